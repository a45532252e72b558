"""Left singular vectors by three routes, against dense eigenvectors of the weighted co-association."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience.core import eigen, spectral
from consilience.core.spectral import left_singular_vectors
from tests.core.tables import offsets_of, one_hot, random_codes

ROUTES = {"rows": "_through_rows", "columns": "_through_columns", "iterative": "_iteratively"}
WIDE = (5, 6, 7, 8)  # 26 clusters for 20 rows
TALL = (3, 4, 3)  # 10 clusters for 60 rows


@pytest.fixture
def only(monkeypatch):
    """Forbid all routes but one, and set the size constant so that it is the one to take."""

    def choose(route, dense=None):
        def wrong(*arguments):
            raise AssertionError("another route was taken")

        for name, function in ROUTES.items():
            if name != route:
                monkeypatch.setattr(spectral, function, wrong)
        if dense is not None:
            monkeypatch.setattr(spectral, "DENSE", dense)
            monkeypatch.setattr(eigen, "WHOLE", 0)

    return choose


def whitened(h, weights):
    return np.sqrt(weights)[:, None] * h


def residual(h, weights):
    return np.abs(whitened(h, weights).T @ whitened(h, weights) - np.eye(h.shape[1])).max()


def dense_eigenpairs(codes, offsets, weights):
    b = whitened(one_hot(codes, offsets), weights)
    values, vectors = np.linalg.eigh(b @ b.T)
    return values[::-1], vectors[:, ::-1]


def problem(n, ks, missing=0.3, seed=0):
    weights = np.random.default_rng(seed).integers(1, 5, n).astype(float)
    return random_codes(n, ks, missing=missing, seed=seed), offsets_of(ks), weights


CASES = [
    ("rows", 20, WIDE, None),
    ("iterative", 20, WIDE, 0),
    ("columns", 60, TALL, None),
    ("iterative", 60, TALL, 9),
]


@pytest.mark.parametrize(("route", "n", "ks", "dense"), CASES)
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_every_route_gives_the_leading_eigenvectors(only, route, n, ks, dense, missing, k):
    codes, offsets, weights = problem(n, ks, missing)
    values, vectors = dense_eigenpairs(codes, offsets, weights)
    assert values[k - 1] - values[k] > 1e-3 * values[0]  # else they are not determined
    only(route, dense)
    h = left_singular_vectors(codes, offsets, weights, k)
    assert h.shape == (n, k)
    assert residual(h, weights) < 1e-9
    found = whitened(h, weights)
    assert_allclose(found @ found.T, vectors[:, :k] @ vectors[:, :k].T, atol=1e-8)
    # In order, too: the quotients v^T S v are the eigenvalues, descending.
    b = whitened(one_hot(codes, offsets), weights)
    assert_allclose(((b.T @ found) ** 2).sum(axis=0), values[:k], rtol=1e-8)


@pytest.mark.parametrize(("route", "dense"), [("columns", None), ("iterative", 0)])
def test_weights_are_repeated_rows(only, route, dense):
    codes, offsets, weights = problem(60, TALL)
    again = np.repeat(np.arange(60), weights.astype(int))
    only(route, dense)
    short = left_singular_vectors(codes, offsets, weights, 3)[again]
    long = left_singular_vectors(codes[again], offsets, np.ones(len(again)), 3)
    assert_allclose(short @ short.T, long @ long.T, atol=1e-8)


def rank_deficient(n):
    """Two copies of one clustering in three: rank 3, whatever is asked for."""
    column = np.arange(n) % 3
    return np.column_stack([column, column]).astype(np.int8), np.array([0, 3, 6])


@pytest.mark.parametrize(
    ("route", "n", "k", "dense"),
    [
        ("columns", 40, 5, None),  # fewer than the clusters, more than the rank
        ("rows", 40, 9, None),  # more than the clusters
        ("rows", 40, 40, None),  # as many as rows
        ("columns", 40, 9, 6),  # the same where the rows are too many for a dense matrix
        ("columns", 40, 40, 6),
        ("iterative", 40, 5, 0),
    ],
)
def test_below_the_rank_the_completion_is_orthonormal_and_fixed(only, route, n, k, dense):
    codes, offsets = rank_deficient(n)
    weights = np.random.default_rng(0).integers(1, 4, n).astype(float)
    only(route, dense)
    h = left_singular_vectors(codes, offsets, weights, k)
    assert h.shape == (n, k)
    assert residual(h, weights) < 1e-9
    # The span of the clustering comes first and in full.
    one = whitened(one_hot(codes[:, :1], offsets[:2]), weights)
    one /= np.linalg.norm(one, axis=0)
    first = whitened(h, weights)[:, :3]
    assert_allclose(first @ first.T, one @ one.T, atol=1e-8)
    assert_array_equal(left_singular_vectors(codes, offsets, weights, k), h)


def test_a_row_that_nobody_saw_is_zero():
    codes, offsets, weights = problem(60, TALL)
    codes[7] = -1
    assert_allclose(left_singular_vectors(codes, offsets, weights, 3)[7], 0.0, atol=1e-12)
