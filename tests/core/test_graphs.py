import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from consilience.core import graphs
from consilience.core.graphs import leading_vectors, neighbour_graph


def plain_graph(X, n_neighbors):
    """By the definition: all distances, a loop over rows."""
    d = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(d, np.inf)
    near = np.argsort(d, axis=1, kind="stable")[:, :n_neighbors]
    scale = np.array([d[i, near[i, min(7, n_neighbors) - 1]] for i in range(len(X))])
    w = np.zeros_like(d)
    for i in range(len(X)):
        for j in near[i]:
            w[i, j] = w[j, i] = np.exp(-(d[i, j] ** 2) / (scale[i] * scale[j]))
    return w


@pytest.mark.parametrize("n_neighbors", [3, 10, 100])
def test_graph_against_all_distances(n_neighbors):
    X = np.random.default_rng(0).normal(size=(40, 3))
    assert_allclose(neighbour_graph(X, n_neighbors, 0).toarray(), plain_graph(X, min(n_neighbors, 39)))


def test_sparse_rows_have_the_graph_of_dense_ones():
    X = np.random.default_rng(1).poisson(1.0, (60, 8)).astype(float)
    X += np.arange(60)[:, None] / 1000  # no ties
    dense, sparse = neighbour_graph(X, 5, 0), neighbour_graph(sp.csr_array(X), 5, 0)
    assert_allclose(dense.toarray(), sparse.toarray(), atol=1e-6)


def test_duplicates_are_linked_and_finite():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 15, axis=0)
    graph = neighbour_graph(X, 5, 0)
    assert np.isfinite(graph.data).all()
    assert_array_equal(graph[:15][:, 15:].toarray(), 0.0)
    assert (graph.max(axis=1).toarray() == 1.0).all()


def test_one_row_has_an_empty_graph():
    assert neighbour_graph(np.ones((1, 2)), 10, 0).nnz == 0


def test_many_rows_go_through_a_projection(monkeypatch):
    """Neighbours in the leading directions are neighbours where the other directions are noise."""
    rng = np.random.default_rng(2)
    X = np.hstack([rng.normal(size=(300, 4)) * 10, rng.normal(size=(300, 80)) * 1e-3])
    exact = neighbour_graph(X, 5, 0)
    monkeypatch.setattr(graphs, "_EXACT_ROWS", 100)
    reduced = neighbour_graph(X, 5, 0)
    assert np.count_nonzero((exact > 0).toarray() & (reduced > 0).toarray()) > 0.98 * exact.nnz


def blocks(sizes, rng, bridge=0.0):
    """Random connected graphs side by side."""
    parts = [np.abs(rng.normal(size=(n, n))) * (rng.random((n, n)) < 0.3) + np.eye(n, k=1) for n in sizes]
    whole = sp.block_diag(parts).toarray()
    whole = np.maximum(whole, whole.T)
    np.fill_diagonal(whole, 0.0)
    if bridge:
        starts = np.cumsum([0, *sizes[:-1]])
        whole[starts[:-1], starts[1:]] = whole[starts[1:], starts[:-1]] = bridge
    return sp.csr_array(whole)


@pytest.mark.parametrize("bridge", [0.0, 1e-4, 0.01])
def test_iterative_eigenvectors_span_what_the_dense_ones_span(monkeypatch, bridge):
    graph = blocks([40] * 10, np.random.default_rng(3), bridge)
    root = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    adjacency = graph.toarray() / root / root[:, None]
    values, vectors = np.linalg.eigh(adjacency)
    monkeypatch.setattr(graphs, "_DENSE", 10)
    found = leading_vectors(graph, 10)
    assert_allclose(found.T @ found, np.eye(10), atol=1e-8)
    # All ten copies of the eigenvalue one, or what a weak bridge makes of them.
    overlap = np.linalg.svd(found.T @ vectors[:, -10:], compute_uv=False)
    assert_allclose(overlap, 1.0, atol=1e-3)
    assert_allclose(np.trace(found.T @ adjacency @ found), values[-10:].sum(), atol=1e-3)


def test_more_components_than_vectors_gives_the_largest(monkeypatch):
    graph = blocks([30, 10, 50, 20], np.random.default_rng(4))
    monkeypatch.setattr(graphs, "_DENSE", 10)
    found = leading_vectors(graph, 2)
    assert_array_equal(np.flatnonzero(found[:, 0]), np.arange(40, 90))
    assert_array_equal(np.flatnonzero(found[:, 1]), np.arange(30))
