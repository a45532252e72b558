"""MIC against the version with full matrices, the authors' program, and its edges."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import MIC, check_views, datasets
from consilience.multiview._factors import nonnegative_views, start_all
from consilience.multiview.mic import _objective, mic
from consilience.multiview.scaling import fill_with_mean
from tests.oracles.factors import mic_objective, plain_mic
from tests.test_apmc import groups


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


def reference(given, views):
    """The prepared views of the reference output, and its weights."""
    observed = given["mask"].astype(bool)
    arrays = []
    for v, x in enumerate(views):
        low, high = x.min(axis=0), x.max(axis=0)
        x = (x - low) / np.where(high > low, high - low, 1.0)
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        arrays.append(fill_with_mean(x, observed[:, v]))
    return arrays, np.where(observed, 1.0, observed.mean(axis=0))


def problem(seed=0):
    _, views, observed = groups(40, 2, seed=seed)
    read = check_views(views, mask=observed)
    arrays = [
        fill_with_mean(x, observed[:, v]) for v, x in enumerate(nonnegative_views(read, unit_rows=True))
    ]
    weights = np.where(observed, 1.0, observed.mean(axis=0))
    return arrays, weights, *start_all(arrays, 3, np.random.RandomState(seed))


def test_rounds_equal_those_with_full_matrices():
    arrays, weights, us, vs = problem()
    found = mic(arrays, weights, us, vs, alpha=0.05, beta=0.02, max_iter=4, tol=0.0)
    consensus, u, v = plain_mic(arrays, weights, us, vs, alpha=0.05, beta=0.02, n_rounds=4)
    assert_allclose(found.embedding, consensus, rtol=1e-10)
    for ours, theirs in zip(found.factors + found.bases, u + v, strict=True):
        assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)


@pytest.mark.fixtures
def test_consensus_equals_that_of_the_authors_program(fixtures_folder, data_folder):
    given = np.load(fixtures_folder / "mic_msrc_r30.npz")
    views = datasets.load("mv_MSRCv1_5view").views
    us, vs = [given[f"U0_{v}"] for v in range(5)], [given[f"V0_{v}"] for v in range(5)]

    def consensus(views):
        arrays, weights = reference(given, views)
        return mic(arrays, weights, us, vs, alpha=0.01, beta=0.1, max_iter=10, tol=0.0).embedding

    found = consensus(views)
    # The views are stored in single precision. Rounding them once more, at random, moves the answer by more
    # than what is between it and the reference.
    rng = np.random.default_rng(0)
    half = np.finfo(np.float32).eps / 2
    moved = consensus([x * (1 + half * rng.uniform(-1, 1, x.shape)) for x in views])
    assert np.abs(found - given["Ustar"]).max() <= 2 * np.abs(found - moved).max()
    assert_allclose(found, given["Ustar"], atol=1e-7)


@pytest.mark.fixtures
def test_objective_equals_that_of_the_authors_program(fixtures_folder, data_folder):
    given = np.load(fixtures_folder / "mic_msrc_r30.npz")
    arrays, weights = reference(given, datasets.load("mv_MSRCv1_5view").views)
    us, vs = [given[f"U0_{v}"] for v in range(5)], [given[f"V0_{v}"] for v in range(5)]
    logged = []
    for _ in range(3):
        # Their log is the objective before each round, its penalty over columns.
        squared = weights**2
        star = sum(squared[:, [i]] * u for i, u in enumerate(us)) / squared.sum(axis=1, keepdims=True)
        logged.append(mic_objective(arrays, weights, us, vs, star, alpha=0.01, beta=0.1, axis=0))
        found = mic(arrays, weights, us, vs, alpha=0.01, beta=0.1, max_iter=1, tol=0.0)
        us, vs = found.factors, found.bases
    assert_allclose(logged, given["log"][:3], rtol=1e-8)


def test_objective_is_the_one_of_the_paper():
    arrays, weights, us, vs = problem()
    star = sum(us) / 2
    ours = _objective(arrays, weights, us, vs, star, 0.05, 0.02)
    assert ours == pytest.approx(mic_objective(arrays, weights, us, vs, star, alpha=0.05, beta=0.02, axis=1))
    sparse = [sp.csr_array(x) for x in arrays]
    assert _objective(sparse, weights, us, vs, star, 0.05, 0.02) == pytest.approx(ours)


def test_factors_are_nonnegative_and_bases_sum_to_one():
    truth, views, observed = groups(120, 3, widths=(8, 8, 8), missing=0.2)
    model = MIC(3, random_state=0).fit(views, mask=observed)
    assert (model.embedding_ >= 0).all()
    for basis in model.components_:
        assert basis.shape == (3, 8)
        assert_allclose(basis.sum(axis=1), 1.0)
    assert adjusted_rand_score(truth, model.labels_) > 0.9


def test_start_gives_columns_the_same_meaning_in_all_views():
    _, views, _ = groups(120, 2, widths=(8, 8))
    arrays = nonnegative_views(check_views(views), unit_rows=True)
    us, _ = start_all(arrays, 3, np.random.RandomState(0))
    alike = np.corrcoef(us[0].T, us[1].T)[:3, 3:]
    assert (alike.argmax(axis=1) == np.arange(3)).all()
    assert all((u > 0).all() for u in us)


def test_negative_entries_are_rescaled_and_absent_rows_stay_zero():
    _, views, observed = groups(50, 2)
    arrays = nonnegative_views(check_views([view - 50 for view in views], mask=observed), unit_rows=True)
    for v, x in enumerate(arrays):
        assert x.min() >= 0
        assert_allclose(np.linalg.norm(x, axis=1)[observed[:, v]], 1.0)
        assert not x[~observed[:, v]].any()


def test_rows_driven_to_zero_are_harmless():
    _, views, observed = groups(60, 2)
    model = MIC(3, beta=1e3, random_state=0).fit(views, mask=observed)
    assert np.isfinite(model.embedding_).all()


def test_more_clusters_than_features():
    rng = np.random.default_rng(0)
    labels = MIC(4, random_state=0).fit_predict([rng.random((30, 2)), rng.random((30, 3))])
    assert set(labels) <= set(range(4))
