"""PVC: every block against a general solver, its laws, the authors' output, and its edges."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import PVC, datasets
from consilience.multiview.pvc import _objective, _update_basis, _update_factor, pvc, start_pvc
from tests.test_apmc import groups


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


def problem(n=30, k=3, seed=0):
    rng = np.random.default_rng(seed)
    _, _, observed = groups(n, 2, seed=seed)
    arrays = [np.where(observed[:, [v]], rng.random((n, d)), 0.0) for v, d in enumerate((5, 7))]
    return arrays, observed, *start_pvc(arrays, observed, k, np.random.RandomState(seed))


def test_objective_by_hand():
    arrays, observed, p, us = problem()
    by_hand = 0.3 * p.sum()
    for v, x in enumerate(arrays):
        rows = observed[:, v]
        by_hand += ((x[rows] - p[rows] @ us[v]) ** 2).sum()
    seen = observed.astype(float)
    assert _objective(arrays, seen, p, us, 0.3) == pytest.approx(by_hand)
    assert _objective([sp.csr_array(x) for x in arrays], seen, p, us, 0.3) == pytest.approx(by_hand)


@pytest.mark.parametrize("seed", range(3))
def test_objective_never_rises_and_constraints_hold(seed):
    arrays, observed, p, us = problem(60, seed=seed)
    found = pvc(arrays, observed, p, us, sparsity=0.1, max_iter=40, tol=0.0)
    assert np.diff(found.objective).max() <= 1e-10 * found.objective[0]
    assert (found.embedding >= 0).all()
    for basis in found.components:
        assert (basis >= 0).all()
        assert np.linalg.norm(basis, axis=1).max() <= 1 + 1e-12


def test_factor_is_the_minimiser_of_its_block():
    arrays, observed, p, us = problem(12)
    seen = observed.astype(float)
    for _ in range(200):
        p = _update_factor(arrays, seen, p, us, 0.2)
    general = minimize(
        lambda flat: _objective(arrays, seen, flat.reshape(p.shape), us, 0.2),
        np.ones(p.size),
        bounds=[(0, None)] * p.size,
        options={"maxfun": 10**6, "ftol": 1e-14},
    )
    assert _objective(arrays, seen, p, us, 0.2) <= general.fun + 1e-6


def test_basis_is_the_minimiser_of_its_block():
    arrays, observed, p, us = problem(20)
    present = p * observed[:, [0]]
    u = us[0]
    for _ in range(200):
        u = _update_basis(arrays[0], present, u)

    def loss(u):
        return ((arrays[0] - present @ u) ** 2).sum()

    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.maximum(u + 0.05 * rng.standard_normal(u.shape), 0.0)
        other /= np.maximum(np.linalg.norm(other, axis=1, keepdims=True), 1.0)
        assert loss(u) <= loss(other) + 1e-9


@pytest.mark.fixtures
def test_explains_the_data_at_least_as_well_as_the_authors_program(fixtures_folder, data_folder):
    given = np.load(fixtures_folder / "pvc_msrc_r30.npz")
    observed = given["mask"].astype(bool)
    views = datasets.load("mv_MSRCv1_5view").views
    arrays = []
    for v, x in enumerate((views[0], views[4])):
        x = (x - x.min(axis=0)) / np.where(np.ptp(x, axis=0) > 0, np.ptp(x, axis=0), 1.0)
        arrays.append(np.where(observed[:, [v]], x, 0.0))
    p = np.empty_like(given["P"])
    p[given["order"]] = given["P"]
    theirs = [given["U1"], given["U2"]]

    def norms(p, us):
        return [np.linalg.norm(x - (p * observed[:, [v]]) @ us[v]) for v, x in enumerate(arrays)]

    # Their objective: norms that are not squared, and the penalty by the widths of the views.
    widths = observed @ np.array([24, 254]) / 7
    assert sum(norms(p, theirs)) + 0.01 * widths @ p.sum(axis=1) == pytest.approx(given["obj"][-1], rel=1e-6)
    ours = pvc(arrays, observed, *start_pvc(arrays, observed, 7, np.random.RandomState(0)),
               sparsity=0.01, max_iter=300, tol=1e-6)  # fmt: skip
    assert sum(norms(ours.embedding, ours.components)) <= sum(norms(p, theirs))


def test_common_instances_have_one_row_for_both_views():
    truth, views, observed = groups(200, 2, widths=(8, 8))
    model = PVC(3, random_state=0).fit(views, mask=observed)
    assert model.embedding_.shape == (200, 3)
    assert adjusted_rand_score(truth, model.labels_) > 0.8


def test_more_than_two_views_are_refused_with_a_hint():
    _, views, _ = groups(40, 3)
    with pytest.raises(ValueError, match=r"PVC takes at most 2 views, got 3: 'view0', .*Hint: use APMC"):
        PVC(3).fit(views)


def test_no_common_instance_still_gives_clusters():
    _, views, _ = groups(60, 2)
    observed = np.zeros((60, 2), dtype=bool)
    observed[::2, 0], observed[1::2, 1] = True, True
    model = PVC(3, random_state=0).fit(views, mask=observed)
    assert np.isfinite(model.embedding_).all()


def test_large_sparsity_empties_the_factor_without_breaking():
    _, views, observed = groups(60, 2)
    with pytest.warns(ConvergenceWarning, match="PVC found 1 cluster for n_clusters=3"):
        model = PVC(3, sparsity=1e6, random_state=0).fit(views, mask=observed)
    assert_allclose(model.embedding_, 0.0)
