"""DAIMC against the version with Sylvester equations, the authors' program, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import DAIMC, datasets
from consilience.multiview.daimc import _update_basis, daimc, start_daimc
from tests.oracles.factors import plain_daimc
from tests.test_apmc import groups


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


def problem(n=40, k=3, seed=0):
    _, views, observed = groups(n, 2, seed=seed)
    arrays = [np.where(observed[:, [v]], x, 0.0) for v, x in enumerate(views)]
    return arrays, observed, *start_daimc(arrays, observed, k, 3, np.random.RandomState(seed))


def test_sweeps_equal_those_with_sylvester_equations():
    arrays, observed, v, us, bs = problem()
    found = daimc(arrays, observed, v, us, bs, alpha=0.1, beta=2.0, max_iter=8, tol=0.0)
    plain = plain_daimc([x.T for x in arrays], observed, v, us, bs, alpha=0.1, beta=2.0, n_sweeps=8)
    assert_allclose(found.factor, plain[0], rtol=1e-7, atol=1e-12)
    for ours, theirs in zip(found.bases + found.regressions, plain[1] + plain[2], strict=True):
        assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)
    assert_allclose(found.objective, plain[3], rtol=1e-9)


@pytest.mark.fixtures
def test_objective_equals_that_of_the_authors_program(fixtures_folder, data_folder):
    given = np.load(fixtures_folder / "daimc_msrc_r30.npz")
    observed = given["mask"].astype(bool)
    views = datasets.load("mv_MSRCv1_5view").views
    arrays = [
        np.where(observed[:, [v]], x / np.linalg.norm(x, axis=1, keepdims=True), 0.0)
        for v, x in enumerate(views)
    ]
    us = [given[f"daimc_U0_{v}"] for v in range(5)]
    bs = [given[f"daimc_B0_{v}"] for v in range(5)]
    found = daimc(arrays, observed, given["V0"], us, bs, alpha=1e-4, beta=1e4, max_iter=30, tol=1e-4)
    assert_allclose(found.objective, given["F"], rtol=2e-9)
    # The views are stored in single precision, which is all that is left between the two.
    assert_allclose(found.factor, given["V"], atol=1e-7 * given["V"].max())
    for v in range(5):
        assert_allclose(
            found.bases[v], given[f"daimc_U_{v}"], atol=1e-7 * np.abs(given[f"daimc_U_{v}"]).max()
        )


def test_basis_solves_its_equation():
    arrays, observed, v, _, bs = problem()
    u = _update_basis(arrays[0], v, bs[0], observed[:, 0].astype(float), 0.3)
    left = 0.3 * bs[0] @ bs[0].T @ u + u @ (v.T @ np.diag(observed[:, 0]) @ v)
    assert_allclose(left, arrays[0].T @ (v * observed[:, [0]]) + 0.3 * bs[0], atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_objective_falls(seed):
    arrays, observed, v, us, bs = problem(60, seed=seed)
    objective = daimc(arrays, observed, v, us, bs, alpha=1e-2, beta=1.0, max_iter=30, tol=0.0).objective
    assert np.diff(objective).max() <= 1e-8 * objective[0]


def test_absent_rows_have_no_say():
    arrays, observed, v, us, bs = problem()
    found = daimc(arrays, observed, v, us, bs, alpha=0.1, beta=2.0, max_iter=5, tol=0.0)
    only = observed[:, 0]
    part = [arrays[0][only]]
    alone = daimc(
        part, np.ones((only.sum(), 1)), v[only], us[:1], bs[:1], alpha=0.1, beta=2.0, max_iter=1, tol=0.0
    )
    first = daimc(arrays[:1], observed[:, :1], v, us[:1], bs[:1], alpha=0.1, beta=2.0, max_iter=1, tol=0.0)
    assert alone.objective[0] == pytest.approx(first.objective[0], rel=1e-9)
    assert_allclose(found.factor.sum(axis=0), 1.0)
    assert (found.factor >= 0).all()


def test_start_numbers_the_clusters_of_all_views_alike():
    truth, views, observed = groups(120, 3, widths=(8, 8, 8), missing=0.1)
    arrays = [np.where(observed[:, [v]], x, 0.0) for v, x in enumerate(views)]
    v, _, _ = start_daimc(arrays, observed, 3, 5, np.random.RandomState(0))
    assert adjusted_rand_score(truth, v.argmax(axis=1)) > 0.9


def test_finds_clusters_of_views_with_holes():
    truth, views, observed = groups(150, 3, widths=(8, 8, 8))
    model = DAIMC(3, random_state=0).fit(views, mask=observed)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    assert_allclose(model.embedding_.mean(axis=0), 1.0)


def test_constant_view_is_harmless():
    _, views, _ = groups(60, 1, widths=(8,))
    with pytest.warns(UserWarning, match="view 'view1' tells no two instances apart"):
        model = DAIMC(3, random_state=0).fit([views[0], np.ones((60, 2))])
    assert np.isfinite(model.embedding_).all()
    assert model.n_clusters_ == 3


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_parameters_are_checked(name):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of DAIMC must be a float"):
        DAIMC(2, **{name: 0.0}).fit(np.eye(4))
