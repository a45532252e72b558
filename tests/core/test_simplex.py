"""Weights on the simplex: optimality conditions, an independent solver, and the singular cases."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from consilience.core.simplex import minimize_quadratic


def value(a, gram, linear):
    return a @ gram @ a - 2.0 * linear @ a


def random_problem(m, rank, seed):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((rank, m))
    return factor.T @ factor, rng.standard_normal(m)


def assert_optimal(a, gram, linear):
    """KKT: feasible; the gradient is equal wherever a weight is positive, and nowhere smaller."""
    assert (a >= 0).all()
    assert a.sum() == pytest.approx(1.0, abs=1e-12)
    gradient = 2.0 * (gram @ a - linear)
    scale = 1.0 + np.abs(gradient).max()
    assert (gradient[a > 1e-7] <= gradient.min() + 1e-6 * scale).all()


PROBLEMS = [(m, rank, seed) for m in (2, 3, 8, 20) for rank in (1, m // 2, m + 3) for seed in range(3)]


@pytest.mark.parametrize(("m", "rank", "seed"), PROBLEMS)
def test_optimality_and_an_independent_solver(m, rank, seed):
    gram, linear = random_problem(m, max(rank, 1), seed)
    a = minimize_quadratic(gram, linear)
    assert_optimal(a, gram, linear)
    other = minimize(
        value,
        np.full(m, 1.0 / m),
        args=(gram, linear),
        jac=lambda a, gram, linear: 2.0 * (gram @ a - linear),
        bounds=[(0.0, 1.0)] * m,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1.0},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert value(a, gram, linear) == pytest.approx(other.fun, abs=1e-6 * (1.0 + abs(other.fun)))
    if rank > m:  # strictly convex: one answer
        assert_allclose(a, other.x, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e3, 1e9])
def test_scale_does_not_matter(scale):
    gram, linear = random_problem(6, 9, 0)
    assert_allclose(
        minimize_quadratic(scale * gram, scale * linear), minimize_quadratic(gram, linear), atol=1e-8
    )


def test_inside_the_simplex_it_is_the_constrained_solution_by_hand():
    # min a^2 + 3 b^2 with a + b = 1: a = 3/4.
    assert_allclose(minimize_quadratic(np.diag([1.0, 3.0]), np.zeros(2)), [0.75, 0.25], atol=1e-8)


def test_a_corner():
    assert_allclose(minimize_quadratic(np.eye(3), np.array([0.0, 5.0, 0.0])), [0.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_equal_columns_get_equal_weights(seed):
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((10, 4))
    factor = np.hstack([factor, factor[:, :1], factor[:, :1]])
    gram, linear = factor.T @ factor, factor.T @ factor[:, [0, 2]].sum(axis=1)
    a = minimize_quadratic(gram, linear)
    assert a[0] > 0.01
    assert_allclose(a[[4, 5]], a[0], atol=1e-6)
    assert_optimal(a, gram, linear)


def test_all_columns_equal():
    assert_allclose(minimize_quadratic(np.ones((5, 5)), np.ones(5)), 0.2, atol=1e-6)


def test_order_of_columns_does_not_matter():
    gram, linear = random_problem(7, 4, 1)
    order = np.random.default_rng(0).permutation(7)
    a = minimize_quadratic(gram, linear)
    assert_allclose(minimize_quadratic(gram[np.ix_(order, order)], linear[order]), a[order], atol=1e-6)


@pytest.mark.parametrize("gram", [0.0, 1e-300, 1.0, 1e10])
def test_one_column_has_all_the_weight(gram):
    assert minimize_quadratic(np.array([[gram]]), np.array([3.0])).tolist() == [1.0]


def test_where_nothing_is_known_weights_are_equal():
    assert minimize_quadratic(np.zeros((4, 4)), np.zeros(4)).tolist() == [0.25] * 4


def test_a_linear_problem_has_its_answer_in_a_corner():
    assert_allclose(
        minimize_quadratic(np.zeros((3, 3)), np.array([0.0, 1.0, 0.5])), [0.0, 1.0, 0.0], atol=1e-8
    )


def test_input_is_untouched():
    gram, linear = random_problem(4, 4, 2)
    before = gram.copy(), linear.copy()
    minimize_quadratic(gram, linear)
    np.testing.assert_array_equal(gram, before[0])
    np.testing.assert_array_equal(linear, before[1])


@pytest.mark.parametrize("copies", [20, 80])
def test_many_copies_do_not_stop_the_solver(copies):
    gram, linear = random_problem(4, 3, seed=1)
    gram, linear = np.tile(gram, (copies, copies)), np.tile(linear, copies)
    assert_optimal(minimize_quadratic(gram, linear), gram, linear)
