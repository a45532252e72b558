"""Laplacian eigenvectors on nodes with counts, against a dense solver on all instances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

from consilience.core import laplacian
from consilience.core.laplacian import (
    Components,
    _above_zero,
    _by_component,
    _links,
    _search,
    components,
    embed,
)


@pytest.fixture(autouse=True)
def one_thread():
    """As in every fit; many small products are far slower in threads."""
    with threadpool_limits(1, user_api="blas"):
        yield


def graph(n, density, seed, counts=None):
    """Pairs of a random graph, their weights, and counts."""
    rng = np.random.default_rng(seed)
    left, right = np.triu_indices(n, 1)
    kept = rng.random(len(left)) < density
    left, right = left[kept].astype(np.int32), right[kept].astype(np.int32)
    s = np.where(rng.random(len(left)) < 0.2, 0.0, rng.random(len(left)))
    return left, right, s, rng.integers(1, 4, n).astype(float) if counts is None else counts


def expand(left, right, s, counts):
    """The graph of all instances, and the node of each."""
    dense = np.eye(len(counts))
    dense[left, right] = dense[right, left] = s
    node = np.repeat(np.arange(len(counts)), counts.astype(int))
    return dense[np.ix_(node, node)], node


def dense_distances(s, k):
    values, vectors = np.linalg.eigh(np.diag(s.sum(axis=1)) - s)
    f = vectors[:, :k]
    return ((f[:, None] - f[None]) ** 2).sum(axis=2), values


@pytest.mark.parametrize("density", [0.0, 0.02, 0.05, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_components(density, seed):
    left, right, s, counts = graph(60, density, seed)
    found = components(left, right, s, len(counts))
    dense, _ = expand(left, right, s, np.ones(60))
    number, labels = connected_components(dense > 0)
    assert found.n_components == number
    assert_array_equal(found.labels, labels)


@pytest.mark.parametrize("k", [1, 3, 8])
@pytest.mark.parametrize("density", [0.05, 0.1, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_distances_equal_those_of_all_instances(k, density, seed):
    left, right, s, counts = graph(40, density, seed)
    parts = components(left, right, s, len(counts))
    found = embed(left, right, s, counts, parts, k)
    if parts.n_components > k:
        assert_array_equal(found.h, 0.0)
        return
    assert found.margin > 0
    dense, node = expand(left, right, s, counts)
    expected, _ = dense_distances(dense, k)
    ours = ((found.h[:, None] - found.h[None]) ** 2).sum(axis=2) + found.spread[:, None] + found.spread[None]
    apart = node[:, None] != node[None]
    assert_allclose(ours[np.ix_(node, node)][apart], expected[apart], atol=1e-9)


def test_eigenvectors_inside_a_node_are_taken_along():
    # A pair of equal instances that hangs on by a thread comes before everything within the large part.
    n = 12
    left, right = (part.astype(np.int32) for part in np.triu_indices(n, 1))
    s = np.where(left == 0, 1e-3, 1.0)
    counts = np.ones(n)
    counts[0] = 2
    parts = components(left, right, s, n)
    found = embed(left, right, s, counts, parts, 3)
    assert_allclose(found.spread, [0.5] + [0.0] * (n - 1))
    assert found.margin > 0
    counts[0] = 4  # three such vectors, of which only one is asked for: they share
    found = embed(left, right, s, counts, parts, 3)
    assert found.spread[0] == pytest.approx(0.25)
    assert found.margin <= 0


@pytest.mark.parametrize("density", [0.0, 0.1, 0.6])
def test_links_are_the_quotient_laplacian(density):
    left, right, s, counts = graph(50, density, 0)
    root = np.sqrt(counts)
    links = _links(left, right, s, counts, root)
    dense = np.zeros((50, 50))
    dense[left, right] = dense[right, left] = s
    expected = np.diag(dense @ counts) - dense * np.outer(root, root)
    assert_allclose(links @ np.eye(50), expected, atol=1e-13)
    assert_allclose(links.diagonal, np.diag(expected))
    assert len(links.weights) == np.count_nonzero(s)


@pytest.mark.parametrize("k", [2, 4, 5])
@pytest.mark.parametrize("n_parts", [1, 3])
@pytest.mark.parametrize("start", ["none", "its own", "of another graph"])
def test_search_equals_the_dense_solver(k, n_parts, start, monkeypatch):
    left, right, s, counts = graph(160, 0.3, 1)
    s[(left % n_parts) != (right % n_parts)] = 0.0
    parts = components(left, right, s, len(counts))
    assert parts.n_components == n_parts
    dense = embed(left, right, s, counts, parts, k)
    mixed = np.random.default_rng(5).permutation(s)
    other = embed(left, right, mixed, counts, Components(1, np.zeros_like(parts.labels)), k)
    monkeypatch.setattr(laplacian, "_DENSE", 0)
    monkeypatch.setattr(laplacian, "_by_component", None)
    given = {"none": None, "its own": dense.h, "of another graph": other.h}[start]
    found = embed(left, right, s, counts, parts, k, start=given)
    assert_allclose(found.h @ found.h.T, dense.h @ dense.h.T, atol=1e-7)
    assert_allclose(found.spread, dense.spread)
    assert found.margin == pytest.approx(dense.margin)


def repeated(kind, n):
    """Laplacians with repeated or nearly repeated small eigenvalues."""
    rng = np.random.default_rng(0)
    if kind == "ring":  # pairs of equal eigenvalues
        s = np.roll(np.eye(n), 1, axis=0)
        s = s + s.T
    elif kind == "star of blocks":  # equal blocks on a hub: one eigenvalue many times
        s = np.kron(np.eye(10), np.ones((n // 10, n // 10)))
        s[:, 0] = s[0] = np.maximum(s[0], 0.01)
    elif kind == "nearly equal blocks":
        s = np.kron(np.eye(10), np.ones((n // 10, n // 10)))
        s += 1e-6 * (1 + 1e-6 * rng.random((n, n)))
        s = (s + s.T) / 2
    else:
        s = rng.random((n, n))
        s = s + s.T
    np.fill_diagonal(s, 0.0)
    return np.diag(s.sum(axis=1)) - s


def as_links(matrix):
    """A Laplacian as links, its components and its null space."""
    left, right = (part.astype(np.int32) for part in np.triu_indices(len(matrix), 1))
    s = -matrix[left, right]
    ones = np.ones(len(matrix))
    return (
        _links(left, right, s, ones, ones),
        components(left, right, s, len(matrix)),
        ones[None] / len(ones) ** 0.5,
    )


KINDS = ["ring", "star of blocks", "nearly equal blocks", "random"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 4, 7, 9, 12])
@pytest.mark.parametrize("limit", [0, 10_000])
def test_smallest_eigenpairs_survive_repeated_eigenvalues(kind, k, limit, monkeypatch):
    monkeypatch.setattr(laplacian, "_DENSE", limit)
    matrix = repeated(kind, 200)
    values, vectors = _above_zero(*as_links(matrix), k, np.empty((200, 0)))
    expected = np.linalg.eigvalsh(matrix)[1 : k + 1]
    scale = np.abs(matrix).max()
    assert_allclose(values, expected, atol=1e-9 * scale)
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-7 * scale)
    assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-8)


@pytest.mark.parametrize("kind", KINDS[1:])  # a ring has no clusters, and takes too many steps
@pytest.mark.parametrize("k", [1, 4, 9])
def test_search_finds_repeated_eigenvalues_by_itself(kind, k):
    matrix = repeated(kind, 400)
    links, _, null = as_links(matrix)
    found = _search(links, null, k, np.empty((400, 0)))
    assert found is not None
    assert_allclose(found[0], np.linalg.eigvalsh(matrix)[1 : k + 1], atol=1e-9 * np.abs(matrix).max())


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("k", [1, 4, 8, 9])
@pytest.mark.parametrize("missing", [0, -1])
@pytest.mark.parametrize("following", [0, 1, 3])
def test_a_vector_that_the_start_lacks_is_found(kind, k, missing, following):
    # The start spans exact eigenvectors, but not one of those that are asked for: the next are in its place.
    matrix = repeated(kind, 400)
    links, _, null = as_links(matrix)
    values, vectors = np.linalg.eigh(matrix)
    start = np.delete(vectors[:, 1 : k + 1 + following], np.arange(k)[missing], axis=1)
    found = _search(links, null, k, start)
    assert found is not None
    assert_allclose(found[0], values[1 : k + 1], atol=1e-9 * np.abs(matrix).max())


def test_dense_solver_takes_over_where_the_search_does_not_converge(monkeypatch):
    matrix = repeated("random", 500)
    problem = as_links(matrix)
    monkeypatch.setattr(laplacian, "_MAX_STEPS", 2)
    assert _search(problem[0], problem[2], 6, np.empty((500, 0))) is None
    values, vectors = _above_zero(*problem, 6, np.empty((500, 0)))
    assert_allclose(values, np.linalg.eigvalsh(matrix)[1:7], rtol=1e-10)
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-9)


def test_search_is_left_to_the_dense_solver_where_it_would_fill_the_space():
    matrix = repeated("random", 40)
    values, vectors = _by_component(*as_links(matrix)[:2], 39)
    assert_allclose(values, np.linalg.eigvalsh(matrix)[1:], rtol=1e-10)
    assert vectors.shape == (40, 39)
    assert_allclose(_above_zero(*as_links(matrix), 39, np.empty((40, 0)))[0], values)


def test_same_answer_every_time():
    links, _, null = as_links(repeated("random", 500))
    first, second = (_search(links, null, 6, np.empty((500, 0))) for _ in range(2))
    assert_array_equal(first[1], second[1])
