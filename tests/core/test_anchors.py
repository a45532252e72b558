"""Anchor graphs against plain dense algebra, repeated eigenvalues above all."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator
from threadpoolctl import threadpool_limits

from consilience.core import anchors as module
from consilience.core import eigen
from consilience.core.anchors import (
    FusedSimilarity,
    anchor_components,
    diffused_kernel,
    fused_eigenpairs,
    graph_eigenpairs,
    nearest_anchors,
    spread_rows,
    truncated_kernel,
)
from consilience.core.eigen import leading_eigenpairs
from consilience.core.graphs import neighbour_graph
from tests.oracles.apmc import plain_eigenpairs, plain_weights


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


def points(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def eigenpairs(operator, k):
    return fused_eigenpairs(operator, anchor_components(operator.factor), k)


def same_space(first, second):
    """Two orthonormal bases of one space: as projections they are equal."""
    assert_allclose(first @ first.T, second @ second.T, atol=1e-7)


# --- weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [None, 0.7, 5.0])
@pytest.mark.parametrize("as_kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_weights_equal_the_plain_ones(sigma, as_kind):
    x, anchors = points(150, 3), points(40, 3, seed=1)
    near = nearest_anchors(as_kind(x), as_kind(anchors), 6)
    assert_allclose(
        truncated_kernel(near, 40, sigma).toarray(), plain_weights(x, anchors, 6, sigma), atol=1e-12
    )


def test_blocks_of_rows_change_nothing(monkeypatch):
    x, anchors = points(60, 3), points(20, 3, seed=1)
    whole = truncated_kernel(nearest_anchors(x, anchors, 5), 20, None).toarray()
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", 100)
    assert_allclose(truncated_kernel(nearest_anchors(x, anchors, 5), 20, None).toarray(), whole, atol=1e-14)


def test_weights_far_from_all_anchors_do_not_underflow():
    x, anchors = np.full((1, 2), 1e4), points(30, 2)
    z = truncated_kernel(nearest_anchors(x, anchors, 4), 30, 1.0).toarray()
    assert_allclose(z.sum(axis=1), 1.0)


def test_weights_far_from_the_origin_are_those_near_it():
    x, anchors = points(50, 3), points(20, 3, seed=1)
    near = truncated_kernel(nearest_anchors(x, anchors, 5), 20, 1.0).toarray()
    far = truncated_kernel(nearest_anchors(x + 1e6, anchors + 1e6, 5), 20, 1.0).toarray()
    assert_allclose(far, near, atol=1e-8)


def test_row_on_top_of_all_its_anchors_gets_equal_weights():
    z = truncated_kernel(nearest_anchors(np.zeros((1, 2)), np.zeros((3, 2)), 3), 3, None).toarray()
    assert_allclose(z, 1 / 3)


def test_more_neighbours_than_anchors_are_all_anchors():
    assert nearest_anchors(points(5, 2), points(3, 2, seed=1), 10).columns.shape == (5, 3)


def test_spread_rows_puts_rows_where_they_belong():
    matrix = sp.csr_array(np.arange(1.0, 7.0).reshape(2, 3))
    tall = spread_rows(matrix, np.array([1, 3]), 5).toarray()
    assert_array_equal(tall[[1, 3]], matrix.toarray())
    assert not tall[[0, 2, 4]].any()


# --- the fused operator -------------------------------------------------------------------------------------


def fused(n=80, seed=0, n_graphs=3):
    """A fused operator of sparse random graphs, and the same S written out."""
    rng = np.random.default_rng(seed)
    member = rng.random((n, n_graphs)) < 0.7
    member[~member.any(axis=1), 0] = True
    tables, dense = [], np.zeros((n, n))
    for p in range(n_graphs):
        z = rng.random((n, 12)) * (rng.random((n, 12)) < 0.4) * member[:, [p]]
        z[member[:, p], 0] += 0.01
        a = z / np.sqrt(z.sum(axis=0))
        tables.append(a)
        dense += a @ a.T
    both = member.astype(float) @ member.T
    dense = np.divide(dense, both, out=np.zeros((n, n)), where=both > 0)
    return FusedSimilarity(sp.csr_array(np.hstack(tables)), member), dense


def test_operator_equals_the_dense_similarity():
    operator, dense = fused()
    assert_allclose(operator.toarray(), dense, atol=1e-15)
    x = points(80, 4)
    assert_allclose(operator @ x, dense @ x, atol=1e-13)
    assert_allclose(operator @ x[:, 0], dense @ x[:, 0], atol=1e-13)
    assert_allclose(operator.T @ x, dense.T @ x, atol=1e-13)
    assert_allclose(operator.degrees, dense.sum(axis=1), atol=1e-13)


@pytest.mark.parametrize("n_graphs", [1, 3])
def test_eigenpairs_equal_the_plain_ones(n_graphs, monkeypatch):
    operator, dense = fused(300, n_graphs=n_graphs)
    if n_graphs == 1:
        operator = FusedSimilarity(operator.factor, np.ones((300, 1), dtype=bool))
    values, vectors = plain_eigenpairs(dense, 6)
    found = eigenpairs(operator, 6)
    assert_allclose(found.values, values, atol=1e-8)
    same_space(found.vectors, vectors)
    monkeypatch.setattr(module, "DENSE", 0)
    found = eigenpairs(operator, 6)
    assert_allclose(found.values, values, atol=1e-8)
    same_space(found.vectors, vectors)


def blocks(sizes, n_anchors, seed=0):
    """Z of a disconnected anchor graph: every block has instances and anchors of its own."""
    rng = np.random.default_rng(seed)
    z = sp.csr_array(sp.block_diag([rng.random((size, n_anchors)) + 0.1 for size in sizes]))
    z = (sp.diags_array(1 / z.sum(axis=1)) @ z).tocsr()
    return (z @ sp.diags_array(1 / np.sqrt(z.sum(axis=0)))).tocsr()


@pytest.mark.parametrize("through", ["anchors", "operator"])
def test_ten_exact_components_give_ten_eigenvalues_of_one(through, monkeypatch):
    factor = blocks([40] * 10, 20)
    if through == "operator":
        monkeypatch.setattr(module, "DENSE", 0)
    labels = anchor_components(factor)
    assert_array_equal(np.bincount(labels), [40] * 10)
    found = eigenpairs(FusedSimilarity(factor, np.ones((400, 1), dtype=bool)), 10)
    assert_allclose(found.values, 1.0, atol=1e-12)
    indicator = np.zeros((400, 10))
    indicator[np.arange(400), labels] = 1 / np.sqrt(40)
    same_space(found.vectors, indicator)


def test_of_more_components_than_asked_for_the_largest_are_taken():
    factor = blocks([10, 40, 20, 30], 5)
    found = eigenpairs(FusedSimilarity(factor, np.ones((100, 1), dtype=bool)), 2)
    assert_allclose(found.values, 1.0)
    where = [np.flatnonzero(vector) for vector in found.vectors.T]
    assert_array_equal(where[0], np.arange(10, 50))
    assert_array_equal(where[1], np.arange(70, 100))


def test_eigenvalues_beyond_the_components_are_not_missed():
    # Two copies of one graph, without a link: every eigenvalue twice, the first two known as components.
    factor = blocks([150], 30)
    twice = sp.csr_array(sp.block_diag([factor, factor]))
    member = np.zeros((300, 2), dtype=bool)
    member[:150, 0], member[150:, 1] = True, True
    found = eigenpairs(FusedSimilarity(twice, member), 6)
    values = np.linalg.eigvalsh((factor @ factor.T).toarray())[::-1][:3]
    assert_allclose(found.values, np.repeat(values, 2), atol=1e-9)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(6), atol=1e-8)


@pytest.mark.parametrize("copies", [1, 3, 7])
def test_copies_of_an_eigenvalue_are_not_missed(copies):
    # On a diagonal matrix Lanczos' iteration finds each distinct value once, and no more in exact arithmetic.
    diagonal = np.concatenate([[0.9], np.full(copies, 0.8), np.full(5, 0.7), np.linspace(0.3, -0.9, 400)])
    n = len(diagonal)
    operator = LinearOperator(
        (n, n), matvec=lambda x: diagonal * x.ravel(), matmat=lambda x: diagonal[:, None] * x
    )
    found = leading_eigenpairs(operator, copies + 3)
    assert_allclose(found.values, np.sort(diagonal)[::-1][: copies + 3], atol=1e-8)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(copies + 3), atol=1e-7)


def test_degrees_of_fused_graphs_are_divided_out():
    operator, dense = fused()
    assert np.ptp(dense.sum(axis=1)) > 0.1  # else there is nothing to divide
    assert eigenpairs(operator, 1).values[0] == pytest.approx(1.0)


# --- graphs within a view -----------------------------------------------------------------------------------


def test_diffusion_equals_the_inverse():
    graph = neighbour_graph(points(60, 3), 6, 0)
    dense = graph.toarray()
    walk = dense / dense.sum(axis=1, keepdims=True)
    inverse = np.linalg.inv(np.eye(60) - 0.95 * walk)[:, [3, 10, 44]]
    expected = inverse / inverse.sum(axis=1, keepdims=True)
    assert_allclose(diffused_kernel(graph, np.array([3, 10, 44]), 0.95), expected, atol=1e-7)


def test_row_without_a_way_to_an_anchor_is_far_from_all_alike():
    graph = sp.csr_array(sp.block_diag([np.ones((3, 3)), np.ones((2, 2))]))
    z = diffused_kernel(graph, np.array([0, 1]), 0.9)
    assert_allclose(z[3:], 0.5)
    assert_allclose(z.sum(axis=1), 1.0)


def test_embedding_of_a_graph_equals_the_plain_one():
    graph = neighbour_graph(points(260, 2), 8, 0)
    values, vectors = plain_eigenpairs(graph.toarray(), 4)
    found = graph_eigenpairs(graph, 4)
    assert_allclose(found.values, values, atol=1e-8)
    same_space(found.vectors, vectors)


def side_by_side(sizes, rng, bridge=0.0):
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
    graph = side_by_side([40] * 10, np.random.default_rng(3), bridge)
    root = np.sqrt(np.asarray(graph.sum(axis=1)).ravel())
    adjacency = graph.toarray() / root / root[:, None]
    values, vectors = np.linalg.eigh(adjacency)
    monkeypatch.setattr(eigen, "WHOLE", 10)
    found = graph_eigenpairs(graph, 10).vectors
    assert_allclose(found.T @ found, np.eye(10), atol=1e-8)
    # All ten copies of the eigenvalue one, or what a weak bridge makes of them.
    overlap = np.linalg.svd(found.T @ vectors[:, -10:], compute_uv=False)
    assert_allclose(overlap, 1.0, atol=1e-3)
    assert_allclose(np.trace(found.T @ adjacency @ found), values[-10:].sum(), atol=1e-3)


def test_more_components_than_vectors_gives_the_largest(monkeypatch):
    graph = side_by_side([30, 10, 50, 20], np.random.default_rng(4))
    monkeypatch.setattr(eigen, "WHOLE", 10)
    found = graph_eigenpairs(graph, 2).vectors
    assert_array_equal(np.flatnonzero(found[:, 0]), np.arange(40, 90))
    assert_array_equal(np.flatnonzero(found[:, 1]), np.arange(30))
