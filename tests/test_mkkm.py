"""MKKM and its imputations against the plain version in `oracles`, the authors' outputs, and its laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import MKKM, datasets
from consilience.core.kernels import fit_kernel, multiply, restrict
from consilience.multiview import kernels as view_kernels
from consilience.multiview.mkkm import fill_by_embedding, impute, mkkm
from tests.oracles.late_fusion import (
    alignment_filled,
    centred_and_scaled,
    gaussian,
    mean_filled,
    neighbor_filled,
    plain_mkkm,
    top,
    zero_filled,
)
from tests.test_eeimvc import noisy, projector

IMPUTATIONS = {"zf": "zero", "mf": "mean", "knn": "knn", "af": "alignment"}
AUTHORS = {"msrc": ("mv_MSRCv1_5view", "rbf"), "bbcsk": ("mv_BBCSport544", "cosine")}


def kernels_of(views, observed, kind="rbf"):
    rng = np.random.RandomState(0)
    rows = [np.flatnonzero(seen) for seen in observed.T]
    return [fit_kernel(view[r], r, len(observed), kind, rng) for view, r in zip(views, rows, strict=True)]


def filled_plainly(views, observed, imputation, k):
    """All n x n kernels by the published formulas."""
    n, rows = len(observed), [np.flatnonzero(seen) for seen in observed.T]
    blocks = [centred_and_scaled(gaussian(view[r])) for view, r in zip(views, rows, strict=True)]
    zeros = [zero_filled(block, r, n) for block, r in zip(blocks, rows, strict=True)]
    if imputation == "zero":
        return zeros
    if imputation == "mean":
        return [mean_filled(block, r, n) for block, r in zip(blocks, rows, strict=True)]
    if imputation == "knn":
        return neighbor_filled(blocks, rows, n)
    h = top(sum(zeros), k)
    return [alignment_filled(block, r, n, h) for block, r in zip(blocks, rows, strict=True)]


def authors_kernels(fixture, name, seed=None):
    """The kernels of a fixture: made from complete data, then hidden.

    The data are stored in single precision, the authors' program had more digits. With a seed the features
    are moved within that rounding, at random.
    """
    data, kind = AUTHORS[name.split("_")[0]]
    everyone = np.arange(len(fixture["mask"]))
    views = datasets.load(data).views
    if seed is not None:
        views = [rounded_otherwise(x, np.random.default_rng(seed)) for x in views]
    whole = [fit_kernel(x, everyone, len(everyone), kind, np.random.RandomState(0)) for x in views]
    return [restrict(kernel, np.flatnonzero(fixture["mask"][:, p])) for p, kernel in enumerate(whole)]


def rounded_otherwise(x, rng):
    x = x.copy()
    values = x.data if sparse.issparse(x) else x
    steps = np.spacing(np.abs(values).astype(np.float32)).astype(float)
    values += np.where(values == np.round(values), 0.0, rng.uniform(-0.5, 0.5, values.shape) * steps)
    return x


def assert_agrees(ours, theirs, others):
    """To 1e-10, or as far as the data fix the answer: `others` are ours from data rounded otherwise."""
    size = max(1.0, float(np.abs(theirs).max()))
    unsure = max(float(np.abs(ours - other).max()) for other in others) / size
    assert unsure < 1e-6  # else the comparison would say nothing
    assert_allclose(ours / size, theirs / size, rtol=0.0, atol=max(1e-10, 10.0 * unsure))


@pytest.mark.parametrize("imputation", IMPUTATIONS.values())
def test_imputed_kernels_are_the_published_ones(imputation):
    views, observed, _, _ = noisy()
    expected = filled_plainly(views, observed, imputation, 4)
    kernels, fills = impute(kernels_of(views, observed), 4, imputation)
    for kernel, fill, matrix in zip(kernels, fills, expected, strict=True):
        assert_allclose(multiply(kernel, np.eye(len(observed)), fill), matrix, atol=1e-10)


@pytest.mark.parametrize("imputation", IMPUTATIONS.values())
def test_equals_plain_version(imputation):
    views, observed, _, _ = noisy()
    slow = plain_mkkm(filled_plainly(views, observed, imputation, 4), 4, n_sweeps=8)
    kernels, fills = impute(kernels_of(views, observed), 4, imputation)
    fast = mkkm(kernels, 4, fills=fills, max_iter=8, tol=0.0)
    assert_allclose(projector(fast.found.vectors), projector(slow.h), atol=1e-10)
    assert_allclose(fast.weights, slow.weights, atol=1e-10)
    assert_allclose(fast.objective, slow.objective, rtol=1e-10)


@pytest.mark.fixtures
@pytest.mark.data
@pytest.mark.parametrize("name", ["msrc_r30", "msrc_r50", "bbcsk_r30"])
def test_equals_authors_program(fixtures_folder, data_folder, name):
    with np.load(fixtures_folder / f"kernelmethods_{name}.npz") as file:
        fixture = dict(file)
    n, k = len(fixture["mask"]), int(fixture["k"])
    stored, *others = (authors_kernels(fixture, name, seed) for seed in (None, 0, 1))

    def solved(observed, imputation):
        kernels, fills = impute(observed, k, imputation)
        found = mkkm(kernels, k, fills=fills, max_iter=101, tol=1e-3)
        return found, multiply(kernels[0], np.eye(n), fills[0])

    for key, imputation in IMPUTATIONS.items():
        found, imputed = solved(stored, imputation)
        moved = [solved(kernels, imputation)[0] for kernels in others]
        assert found.converged
        assert_agrees(found.objective, fixture[f"obj_{key}"], [other.objective for other in moved])
        assert_agrees(found.weights, fixture[f"w_{key}"], [other.weights for other in moved])
        spans = [projector(other.found.vectors) for other in moved]
        assert_agrees(projector(found.found.vectors), projector(fixture[f"H_{key}"]), spans)
        if f"K_{key}1" in fixture:  # stored in single precision
            assert_allclose(imputed, fixture[f"K_{key}1"], atol=1e-6)


@pytest.mark.parametrize("imputation", IMPUTATIONS.values())
@pytest.mark.parametrize("seed", range(3))
def test_objective_never_grows(imputation, seed):
    views, observed, _, _ = noisy(missing=0.4, seed=seed)
    kernels, fills = impute(kernels_of(views, observed), 4, imputation)
    objective = mkkm(kernels, 4, fills=fills, max_iter=15, tol=0.0).objective
    assert np.diff(objective).max() <= 1e-10 * objective[0]


def test_large_and_small_problems_agree():
    """Beyond 300 instances eigenvectors are found by iteration."""
    views, observed, _, _ = noisy(n=700)
    slow = plain_mkkm(filled_plainly(views, observed, "alignment", 4), 4, n_sweeps=4)
    kernels, fills = impute(kernels_of(views, observed), 4, "alignment")
    fast = mkkm(kernels, 4, fills=fills, max_iter=4, tol=0.0)
    assert_allclose(projector(fast.found.vectors), projector(slow.h), atol=1e-6)
    assert_allclose(fast.weights, slow.weights, rtol=1e-8)


def test_imputation_by_embedding_is_finite_where_the_embedding_lies_in_absent_rows():
    views, observed, _, _ = noisy(n=40)
    kernel = kernels_of(views, observed)[0]
    h = np.zeros((40, 2))
    h[np.flatnonzero(~observed[:, 0])[:2], [0, 1]] = 1.0
    fill = fill_by_embedding(kernel, h)
    assert np.isfinite(fill.left).all()


def test_kernel_of_low_rank_gets_a_finite_weight():
    views, observed, _, _ = noisy()
    views[2] = views[2][:, :2]
    model = MKKM(4, kernel="linear", random_state=0).fit(views, mask=observed)
    assert np.isfinite(model.objective_).all()
    assert_allclose(model.view_weights_.sum(), 1.0)
    assert model.view_weights_.argmax() == 2  # explained in full by four directions


def test_view_that_lacks_rows_weighs_more_under_zero_imputation():
    """What the page warns of."""
    views, observed, _, _ = noisy(missing=0.0)
    complete = MKKM(4, random_state=0).fit(views, mask=observed).view_weights_
    for v in range(3):
        partial = observed.copy()
        partial[np.random.default_rng(v).permutation(120)[:72], v] = False
        assert MKKM(4, random_state=0).fit(views, mask=partial).view_weights_[v] > 1.3 * complete[v]


def test_constant_view_gets_no_weight():
    views, observed, _, _ = noisy()
    with pytest.warns(UserWarning, match="tells no two instances apart"):
        model = MKKM(4, random_state=0).fit([*views[:2], np.ones((120, 2))], mask=observed)
    assert model.view_weights_[2] == 0.0


def test_views_of_equal_rows_alone_are_one_heap():
    with (
        pytest.warns(ConvergenceWarning, match="only 1 distinct instance for n_clusters=2"),
        pytest.warns(UserWarning, match="tells no two instances apart"),
    ):
        model = MKKM(2, random_state=0).fit([np.ones((9, 2)), np.zeros((9, 3))])
    assert_array_equal(model.labels_, 0)
    assert model.n_clusters_ == 1


def test_neighbours_are_refused_for_too_many_instances(monkeypatch):
    monkeypatch.setattr(view_kernels, "EXACT_ROWS", 50)
    views, observed, _, _ = noisy()
    with pytest.raises(ValueError, match=r"imputation='knn' of MKKM .* at most 50 of them, got 120\. Hint"):
        MKKM(4, imputation="knn").fit(views, mask=observed)


def test_precomputed_kernels_are_features_compared_beforehand():
    views, observed, _, _ = noisy()
    tables = []
    for view, seen in zip(views, observed.T, strict=True):
        table = np.full((120, 120), np.nan)
        table[np.ix_(seen, seen)] = gaussian(view[seen])
        tables.append(table)
    for imputation in IMPUTATIONS.values():
        model = MKKM(4, imputation=imputation, random_state=0).fit(views, mask=observed)
        other = MKKM(4, imputation=imputation, kernel="precomputed", random_state=0).fit(tables)
        # Clusters of one size are numbered by an order of what the tables hold, which is other values here.
        assert adjusted_rand_score(model.labels_, other.labels_) == 1.0
