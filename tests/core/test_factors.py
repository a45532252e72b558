"""The factor model of missing cells, against dense normal distributions and laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from consilience.core.factors import LEAST_NOISE, RIDGE, FactorModel, fit_factors


def table(n=120, q=7, missing=0.3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, q)) + 0.5 * rng.normal(size=(n, q))
    x[rng.random((n, q)) < missing] = np.nan
    return x[~np.isnan(x).all(axis=1)]


def penalised_likelihood(model, x, weights=None):
    """The objective, row by row from its whole covariance."""
    whole = model.loadings @ model.loadings.T + np.diag(model.noise)
    total = 0.0
    for row, weight in zip(x, np.ones(len(x)) if weights is None else weights, strict=True):
        o = ~np.isnan(row)
        apart, covariance = row[o] - model.mean[o], whole[np.ix_(o, o)]
        logdet = np.linalg.slogdet(2 * np.pi * covariance)[1]
        total -= 0.5 * weight * (logdet + apart @ np.linalg.solve(covariance, apart))
    return total - 0.5 * RIDGE * ((model.loadings**2).sum(axis=1) / model.noise).sum()


def conditional_means(model, x):
    """Rows filled by the formula of a conditional normal distribution, with whole matrices."""
    whole, out = model.loadings @ model.loadings.T + np.diag(model.noise), x.copy()
    for row in out:
        o = ~np.isnan(row)
        if not o.all():
            known = np.linalg.solve(whole[np.ix_(o, o)], row[o] - model.mean[o])
            row[~o] = model.mean[~o] + whole[np.ix_(~o, o)] @ known
    return out


def slow_em(model, x, weights, floor, sweeps):
    """EM of the same objective, a row and a column at a time, with whole matrices."""
    mean, loadings, noise = (part.copy() for part in model)
    q, r = loadings.shape
    for _ in range(sweeps):
        z, second = np.zeros((len(x), r)), np.zeros((len(x), r, r))
        for i, row in enumerate(x):
            o = ~np.isnan(row)
            scaled = loadings[o] / noise[o, None]
            covariance = np.linalg.inv(np.eye(r) + scaled.T @ loadings[o])
            z[i] = covariance @ scaled.T @ (row[o] - mean[o])
            second[i] = covariance + np.outer(z[i], z[i])
        for j in range(q):
            seen = np.flatnonzero(~np.isnan(x[:, j]))
            w, cells = weights[seen], x[seen, j]
            left, right = np.zeros((r + 1, r + 1)), np.zeros(r + 1)
            for i, weight, cell in zip(seen, w, cells, strict=True):
                augmented = np.append(z[i], 1.0)
                left += weight * np.block([[second[i], z[i][:, None]], [z[i][None], np.ones((1, 1))]])
                right += weight * cell * augmented
            ridge = RIDGE * np.diag(np.append(np.ones(r), 0.0))
            found = np.linalg.solve(left + ridge, right)
            squares = w @ cells**2 - 2 * found @ right + found @ (left + ridge) @ found
            loadings[j], mean[j] = found[:r], found[r]
            noise[j] = max(squares / w.sum(), floor[j])
    return FactorModel(mean, loadings, noise)


def floor_of(x):
    return LEAST_NOISE * np.nanvar(x, axis=0)


@pytest.mark.parametrize("shape", [(60, 5), (12, 20), (5, 2)])
def test_sweeps_are_those_of_a_slow_plain_version(shape):
    x = table(*shape, seed=3)
    x = x[:, ~np.isnan(x).all(axis=0)]
    start = fit_factors(x, max_iter=0).model
    slow = slow_em(start, x, np.ones(len(x)), floor_of(x), 4)
    fast = fit_factors(x, max_iter=4, tol=-np.inf).model
    for mine, plain in zip(fast, slow, strict=True):
        assert_allclose(mine, plain, rtol=1e-7, atol=1e-9)


def test_missing_cells_get_conditional_means():
    x = table()
    model = fit_factors(x).model
    assert_allclose(model.fill(x), conditional_means(model, x), atol=2e-8)


def test_the_objective_is_the_penalised_likelihood_and_never_falls():
    x = table()
    found = fit_factors(x, max_iter=30, tol=-np.inf)
    assert (np.diff(found.objective) > -1e-9 * np.abs(found.objective[:-1])).all()
    before = fit_factors(x, max_iter=29, tol=-np.inf).model
    assert_allclose(found.objective[-1], penalised_likelihood(before, x), rtol=1e-10)
    assert penalised_likelihood(found.model, x) >= found.objective[-1]


def test_a_weight_is_so_many_copies():
    x = table(40, 5)
    times = np.random.default_rng(1).integers(1, 4, len(x))
    weighted, copied = fit_factors(x, times), fit_factors(np.repeat(x, times, axis=0))
    for mine, other in zip(
        weighted.model._replace(loadings=0), copied.model._replace(loadings=0), strict=True
    ):
        assert_allclose(mine, other, atol=1e-8)
    assert_allclose(weighted.model.fill(x), copied.model.fill(x), atol=1e-7)


def test_the_order_of_rows_and_columns_does_not_matter():
    x, rng = table(80, 6), np.random.default_rng(0)
    rows, columns = rng.permutation(len(x)), rng.permutation(x.shape[1])
    filled, moved = fit_factors(x).model.fill(x), x[rows][:, columns]
    assert_allclose(fit_factors(moved).model.fill(moved), filled[rows][:, columns], atol=1e-7)


def test_cells_that_are_there_stay():
    x = table()
    filled = fit_factors(x).model.fill(x)
    assert_array_equal(filled[~np.isnan(x)], x[~np.isnan(x)])
    assert not np.isnan(filled).any()
    assert fit_factors(filled).model.fill(filled) is filled


def test_a_row_is_filled_the_same_in_any_company():
    x = table(3000, 12)
    model = fit_factors(x[:500]).model
    alone = np.vstack([model.fill(x[[i]]) for i in range(0, 3000, 250)])
    assert_allclose(alone, model.fill(x)[::250], atol=2e-8)


def test_common_factors_tell_missing_cells_better_than_means():
    rng = np.random.default_rng(5)
    whole = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 8)) + 0.3 * rng.normal(size=(400, 8))
    x = np.where(rng.random(whole.shape) < 0.3, np.nan, whole)
    gaps = np.isnan(x)
    error = np.square(fit_factors(x).model.fill(x) - whole)[gaps].mean()
    assert error < 0.4 * np.square(np.nanmean(x, axis=0) - whole)[gaps].mean()


@pytest.mark.parametrize(
    "x", [[[1.0], [2.0], [4.0]], [[1.0, np.nan], [np.nan, 3.0]], [[2.0, 2.0], [2.0, np.nan]]]
)
def test_hardly_any_cells(x):
    filled = fit_factors(np.array(x)).model.fill(np.array(x))
    assert np.isfinite(filled).all()


def test_the_number_of_threads_changes_nothing():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3_000, 10)) @ rng.normal(size=(10, 60))
    x[rng.random(x.shape) < 0.2] = np.nan
    filled = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            filled.append(fit_factors(x, max_iter=3).model.fill(x))
    assert_array_equal(*filled)
