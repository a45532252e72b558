import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from consilience.core import graphs
from consilience.core.graphs import Neighbours, neighbour_graph


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


def test_graph_is_symmetric_and_has_no_loops():
    graph = neighbour_graph(np.random.default_rng(6).normal(size=(70, 3)), 5, 0).toarray()
    assert_array_equal(graph, graph.T)
    assert not np.diag(graph).any()
    assert (graph > 0).sum(axis=1).min() >= 5


def test_one_row_has_an_empty_graph():
    found = Neighbours(np.ones((1, 2)), 10, 0)
    assert found.graph.nnz == 0
    assert_array_equal(found.weights(np.ones((1, 2))).toarray(), [[1.0]])


def test_weights_of_new_rows_against_all_distances():
    X, new = np.random.default_rng(3).normal(size=(40, 3)), np.random.default_rng(4).normal(size=(6, 3))
    among = np.linalg.norm(X[:, None] - X, axis=2)
    scale = np.sort(among, axis=1)[:, 7]  # the first is the row itself
    d = np.linalg.norm(new[:, None] - X, axis=2)
    expected = np.exp(-(d**2) / (np.sort(d, axis=1)[:, [6]] * scale))
    expected[d > np.sort(d, axis=1)[:, [9]]] = 0.0
    assert_allclose(Neighbours(X, 10, 0).weights(new).toarray(), expected)


def test_new_rows_that_are_copies_have_finite_weights():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 15, axis=0)
    weights = Neighbours(X, 5, 0).weights(np.array([[5.0, 5.0], [4.0, 4.0]]))
    assert np.isfinite(weights.data).all()
    assert weights.sum(axis=1)[0] == 5.0


def test_many_rows_go_through_a_projection(monkeypatch):
    """Neighbours in the leading directions are neighbours where the other directions are noise."""
    rng = np.random.default_rng(2)
    X = np.hstack([rng.normal(size=(300, 4)) * 10, rng.normal(size=(300, 80)) * 1e-3])
    exact = neighbour_graph(X, 5, 0)
    monkeypatch.setattr(graphs, "_EXACT_ROWS", 100)
    projected = Neighbours(X, 5, 0)
    reduced = projected.graph
    nearest = projected.weights(X[:10]).argmax(axis=1)
    assert_array_equal(np.ravel(nearest), np.arange(10))  # a copy's nearest is itself
    assert np.count_nonzero((exact > 0).toarray() & (reduced > 0).toarray()) > 0.98 * exact.nnz
