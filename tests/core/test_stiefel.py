"""Orthogonality, and the laws of the generalised power iteration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from scipy.optimize import minimize

from consilience.core.stiefel import orthonormalize, polar_factor, power_iteration
from tests.core.tables import orthogonal


def residual(h, weights):
    return np.abs(h.T @ (weights[:, None] * h) - np.eye(h.shape[1])).max()


def conditioned(n, k, condition, rng):
    """A matrix with a known polar factor and singular values from 1 down to 1 / condition."""
    left, _ = np.linalg.qr(rng.standard_normal((n, k)))
    right = orthogonal(k, rng)
    return (left * np.geomspace(1.0, 1.0 / condition, k)) @ right.T, left @ right.T


# --- the polar factor ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (9, 3), (3, 9), (5, 1), (1, 1)])
def test_polar_factor_is_orthonormal_and_nearest(shape):
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal(shape)
    factor = polar_factor(matrix)
    small = factor.T @ factor if shape[0] >= shape[1] else factor @ factor.T
    assert_allclose(small, np.eye(min(shape)), atol=1e-12)
    # Nearest: the alignment <factor, matrix> is the sum of singular values, which no other reaches.
    assert np.vdot(factor, matrix) == pytest.approx(np.linalg.svd(matrix, compute_uv=False).sum())
    if shape[0] >= shape[1]:
        assert_allclose(factor, linalg.polar(matrix)[0], atol=1e-12)


@pytest.mark.parametrize("matrix", [np.zeros((4, 3)), np.ones((4, 3)), np.diag([1.0, 0.0, 0.0])])
def test_polar_factor_of_a_rank_deficient_matrix_is_orthonormal(matrix):
    factor = polar_factor(matrix)
    assert_allclose(factor.T @ factor, np.eye(3), atol=1e-12)
    assert np.vdot(factor, matrix) == pytest.approx(np.linalg.svd(matrix, compute_uv=False).sum())


CONDITIONS = [1e0, 1e2, 1e3, 1e4, 1e5, 9e5, 2e6, 1e10, 1e15]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_orthonormalize(condition):
    rng = np.random.default_rng(1)
    weights = rng.integers(1, 6, 200).astype(float)
    scaled, factor = conditioned(200, 5, condition, rng)
    root = np.sqrt(weights)[:, None]
    h = orthonormalize(scaled / root, weights)
    assert residual(h, weights) < 1e-10
    if condition < 1e10:  # beyond, the factor itself is not determined by the matrix
        assert_allclose(h * root, factor, atol=1e-8)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_orthonormalize_rank_deficient(rank):
    rng = np.random.default_rng(2)
    weights = rng.uniform(0.5, 3.0, 60)
    x = rng.standard_normal((60, rank)) @ rng.standard_normal((rank, 4))
    assert residual(orthonormalize(x, weights), weights) < 1e-10


def test_orthonormalize_leaves_its_input():
    rng = np.random.default_rng(3)
    x, weights = rng.standard_normal((30, 3)), rng.random(30) + 0.5
    before = x.copy()
    orthonormalize(x, weights)
    np.testing.assert_array_equal(x, before)


def test_orthonormalize_weights_are_repeated_rows():
    rng = np.random.default_rng(4)
    x, counts = rng.standard_normal((40, 3)), rng.integers(1, 5, 40)
    again = np.repeat(np.arange(40), counts)
    h = orthonormalize(x, counts.astype(float))
    assert_allclose(h[again], orthonormalize(x[again], np.ones(len(again))), atol=1e-12)


# --- the power iteration ------------------------------------------------------------------------------------


def objective(h, linear, shift, weights):
    """tr(H^T W D H) - 2 tr(H^T W C) for mu = 0: D = -shift. Another mu only adds a constant."""
    return -np.sum(weights[:, None] * h * (shift[:, None] * h + 2.0 * linear))


def problem(n, k, strength, seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, n).astype(float)
    h = orthonormalize(rng.standard_normal((n, k)), weights)
    return h, strength * rng.standard_normal((n, k)), rng.random(n), weights


@pytest.mark.parametrize("strength", [0.0, 0.01, 0.3, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_step_increases_the_objective(strength, seed):
    h, linear, shift, weights = problem(40, 3, strength, seed)
    value = objective(h, linear, shift, weights)
    start = value
    for _ in range(30):
        h = power_iteration(h, linear, shift, weights, tol=0.0, max_iter=1).h
        new = objective(h, linear, shift, weights)
        assert new <= value + 1e-12 * abs(value)
        assert residual(h, weights) < 1e-10
        value = new
    assert value < start


def test_one_step_is_the_formula():
    h, linear, shift, weights = problem(40, 3, 0.3, 0)
    x = shift[:, None] * h + linear
    gram = x.T @ (weights[:, None] * x)
    expected = x @ linalg.inv(linalg.sqrtm(gram))
    found = power_iteration(h, linear, shift, weights, tol=0.0, max_iter=1)
    assert_allclose(found.h, expected, atol=1e-12)
    smallest = np.linalg.svd(np.sqrt(weights)[:, None] * x, compute_uv=False)[-1]
    assert found.slack == pytest.approx(smallest - shift.max())


@pytest.mark.parametrize("strength", [0.3, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_fixed_point_meets_the_first_order_condition(strength, seed):
    h, linear, shift, weights = problem(30, 3, strength, seed)
    h = power_iteration(h, linear, shift, weights, tol=1e-13, max_iter=5000).h
    # X = H L with a symmetric, positive semidefinite multiplier L.
    x = shift[:, None] * h + linear
    multiplier = h.T @ (weights[:, None] * x)
    assert_allclose(x, h @ multiplier, atol=1e-8)
    assert_allclose(multiplier, multiplier.T, atol=1e-8)
    assert np.linalg.eigvalsh(0.5 * (multiplier + multiplier.T))[0] >= -1e-10


def best_of_many_starts(linear, shift, weights, n_starts=15):
    """Quasi-Newton over all matrices A, each standing for its weighted polar factor: no power steps."""
    n, k = linear.shape
    root = np.sqrt(weights)[:, None]
    rng = np.random.default_rng(0)

    def value(flat):
        return objective(linalg.polar(flat.reshape(n, k))[0] / root, linear, shift, weights)

    runs = (minimize(value, rng.standard_normal(n * k), method="L-BFGS-B") for _ in range(n_starts))
    return min(run.fun for run in runs)


@pytest.mark.parametrize("seed", range(4))
def test_where_the_slack_is_not_negative_no_other_start_does_better(seed):
    _, linear, shift, weights = problem(6, 2, 1.5, seed)
    best = best_of_many_starts(linear, shift, weights)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        start = orthonormalize(rng.standard_normal((6, 2)), weights)
        found = power_iteration(start, linear, shift, weights, tol=1e-12, max_iter=2000)
        assert found.slack >= 0.0
        assert objective(found.h, linear, shift, weights) == pytest.approx(best, rel=1e-7)


def test_the_slack_is_negative_where_starts_end_differently():
    # Without a linear term, eigenvectors of other eigenvalues are fixed points too.
    shift, weights = np.array([1.0, 0.5, 0.25, 0.1]), np.ones(4)
    worse = power_iteration(np.eye(4)[:, 1:3], np.zeros((4, 2)), shift, weights, tol=1e-12, max_iter=50)
    assert_allclose(np.abs(worse.h), np.eye(4)[:, 1:3], atol=1e-12)
    assert worse.slack == pytest.approx(0.25 - 1.0)


def test_without_a_linear_term_it_finds_the_leading_rows():
    rng = np.random.default_rng(0)
    shift = np.array([1.0, 0.9, 0.3, 0.2, 0.1])
    h = orthonormalize(rng.standard_normal((5, 2)), np.ones(5))
    found = power_iteration(h, np.zeros((5, 2)), shift, np.ones(5), tol=1e-14, max_iter=500).h
    assert_allclose(found @ found.T, np.diag([1.0, 1.0, 0.0, 0.0, 0.0]), atol=1e-8)


def test_weights_are_repeated_rows():
    h, linear, shift, weights = problem(40, 3, 0.3, 5)
    again = np.repeat(np.arange(40), weights.astype(int))
    short = power_iteration(h, linear, shift, weights, tol=1e-10, max_iter=200)
    long = power_iteration(
        h[again], linear[again], shift[again], np.ones(len(again)), tol=1e-10, max_iter=200
    )
    assert_allclose(short.h[again], long.h, atol=1e-10)
    assert short.slack == pytest.approx(long.slack, abs=1e-10)


def test_a_step_onto_a_rank_deficient_matrix_stays_orthonormal():
    # X has one direction only: the Gram matrix has no inverse root.
    h, _, _, weights = problem(30, 3, 1.0, 6)
    linear = np.outer(np.random.default_rng(0).standard_normal(30), [1.0, 2.0, -1.0])
    for max_iter in (1, 5):
        found = power_iteration(h, linear, np.zeros(30), weights, tol=0.0, max_iter=max_iter)
        assert residual(found.h, weights) < 1e-10
        assert found.slack == pytest.approx(0.0, abs=1e-6)


def test_power_iteration_leaves_its_input():
    arrays = problem(30, 2, 0.3, 7)
    before = [array.copy() for array in arrays]
    power_iteration(*arrays, tol=1e-8, max_iter=10)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_tolerance_bounds_the_distance_from_the_fixed_point():
    h, linear, shift, weights = problem(40, 3, 3.0, 8)
    exact = power_iteration(h, linear, shift, weights, tol=1e-15, max_iter=5000).h
    for tol in (1e-2, 1e-5, 1e-8):
        found = power_iteration(h, linear, shift, weights, tol=tol, max_iter=5000).h
        # rate / (1 - rate) <= 1 here, so what is still to come is at most the last step.
        assert np.sqrt(np.sum(weights[:, None] * (found - exact) ** 2)) <= 2 * tol * np.sqrt(3)
