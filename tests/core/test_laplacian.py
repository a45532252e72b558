"""Laplacian eigenvectors on nodes with counts, against a dense solver on all instances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components

from consilience.core import laplacian
from consilience.core.laplacian import _above_zero, components, embed


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


@pytest.mark.parametrize("kind", ["ring", "star of blocks", "nearly equal blocks", "random"])
@pytest.mark.parametrize("k", [1, 4, 7, 9, 12])
@pytest.mark.parametrize("limit", [0, 10_000])
def test_smallest_eigenpairs_survive_repeated_eigenvalues(kind, k, limit, monkeypatch):
    monkeypatch.setattr(laplacian, "_DENSE", limit)
    matrix = repeated(kind, 200)
    values, vectors = _above_zero(matrix, np.full(200, 200**-0.5), k)
    expected = np.linalg.eigvalsh(matrix)[1 : k + 1]
    scale = np.abs(matrix).max()
    assert_allclose(values, expected, atol=1e-9 * scale)
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-7 * scale)
    assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-8)


def test_inverse_iteration_is_used_and_agrees(monkeypatch):
    matrix = repeated("random", 500)
    null = np.full(500, 500**-0.5)
    fast = laplacian._inversely(matrix, null, 6)
    monkeypatch.setattr(laplacian, "_inversely", lambda *_: None)
    slow = _above_zero(matrix, null, 6)
    assert fast is not None
    assert_allclose(fast[0], slow[0], rtol=1e-10)
    assert_allclose(np.abs(np.sum(fast[1] * slow[1], axis=0)), 1.0, rtol=1e-8)


def test_a_missed_copy_is_noticed(monkeypatch):
    matrix = repeated("star of blocks", 500)
    null = np.full(500, 500**-0.5)
    honest = laplacian.eigsh

    def forgetful(operator, k, **options):
        values, vectors = honest(operator, k=k + 1, **options)
        return np.delete(values, k - 1), np.delete(vectors, k - 1, axis=1)

    monkeypatch.setattr(laplacian, "eigsh", forgetful)
    assert laplacian._inversely(matrix, null, 9) is None
    values, _ = _above_zero(matrix, null, 9)
    assert_allclose(values, np.linalg.eigvalsh(matrix)[1:10], atol=1e-9)
