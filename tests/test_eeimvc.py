"""EEIMVC against the plain version in `oracles`, the authors' outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from consilience import EEIMVC, datasets
from consilience.core import kernels
from consilience.multiview import kernels as view_kernels
from consilience.multiview import late
from consilience.multiview.eeimvc import eeimvc
from consilience.multiview.rows import unit_rows
from tests.oracles.late_fusion import (
    base_embedding,
    centred_and_scaled,
    gaussian,
    plain_eeimvc,
    plain_factorization,
    plain_mkkm,
    top,
    unexplained,
    zero_filled,
)
from tests.test_common_views import clear_views

FIXTURES = (
    "uci_r10_c1",
    "uci_r50_c2",
    "bbcs_r10_c1",
    "bbcs_r90_c3",
    "msrc_r30_c1",
    "msrc_r50_c2",
    "pf_r10_c1",
    "pf_r90_c3",
)
SETTINGS = {"regularization": 1.0, "init": "aligned", "max_iter": 100, "tol": 1e-4}


def noisy(n=120, k=4, m=3, missing=0.3, seed=0):
    """Views of planted clusters, what is observed, base embeddings and a prior."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    views = [2.0 * rng.standard_normal((k, 6))[truth] + rng.standard_normal((n, 6)) for _ in range(m)]
    observed = rng.random((n, m)) >= missing
    observed[~observed.any(axis=1), 0] = True
    blocks = [centred_and_scaled(gaussian(view[seen])) for view, seen in zip(views, observed.T, strict=True)]
    rows = [np.flatnonzero(seen) for seen in observed.T]
    bases = [base_embedding(block, seen, n, k) for block, seen in zip(blocks, rows, strict=True)]
    average = sum(zero_filled(block, seen, n) for block, seen in zip(blocks, rows, strict=True))
    return views, observed, bases, top(average, k)


def solve(bases, observed, prior, **options):
    return eeimvc(bases, observed, prior, **{**SETTINGS, **options})


def projector(h):
    return h @ h.T


# --- the same as ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.0, 0.5, 8.0])
def test_equals_plain_version(lam):
    _, observed, bases, prior = noisy()
    slow = plain_eeimvc(bases, observed, prior, lam, n_sweeps=12)
    fast = solve(bases, observed, prior, regularization=lam, init="identity", max_iter=12, tol=0.0)
    assert_allclose(fast.embedding, slow.h, atol=1e-10)
    assert_allclose(fast.weights, slow.weights, atol=1e-10)
    assert_allclose(fast.objective, slow.objective, rtol=1e-12)
    for ours, theirs in zip(fast.imputed, slow.hs, strict=True):
        assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.fixtures
@pytest.mark.parametrize("name", FIXTURES)
def test_equals_authors_program(fixtures_folder, name):
    with np.load(fixtures_folder / f"eeimvc_{name}.npz") as file:
        observed = file["mask"].astype(bool)
        bases = list(np.moveaxis(file["HP0"], 2, 0))
        for i, lam in enumerate(file["lambdas"]):
            found = solve(bases, observed, file["H0"], regularization=lam, init="identity", max_iter=101)
            assert_allclose(unit_rows(found.embedding), file[f"H_{i}"], atol=1e-10)
            assert_allclose(found.weights, file[f"beta_{i}"], atol=1e-10)
            assert_allclose(found.objective, file[f"obj_{i}"], rtol=1e-12)


@pytest.mark.fixtures
@pytest.mark.data
def test_published_preprocessing_gives_the_authors_embeddings(fixtures_folder, data_folder):
    """Up to the rounding of the features, which are stored in single precision."""
    with np.load(fixtures_folder / "eeimvc_msrc_r50_c2.npz") as file:
        observed, expected, prior = file["mask"].astype(bool), np.moveaxis(file["HP0"], 2, 0), file["H0"]
    views = datasets.load("mv_MSRCv1_5view").views
    settings = {"prior": "average", "preprocessing": "paper", "n_init": 1, "random_state": 0}
    model = EEIMVC(7, **settings).fit(views, mask=observed)
    assert_allclose(projector(model.prior_), projector(prior), atol=1e-7)
    for p, h in enumerate(model.view_embeddings_):
        assert_allclose(projector(h[observed[:, p]]), projector(expected[p][observed[:, p]]), atol=1e-7)


def test_estimator_is_its_function():
    views, observed, bases, _ = noisy()
    model = EEIMVC(4, prior="average", random_state=0).fit(views, mask=observed)
    found = solve(bases, observed, model.prior_)
    assert_allclose(projector(model.embedding_), projector(found.embedding), atol=1e-8)
    assert_allclose(model.view_weights_, found.weights, atol=1e-8)
    assert_allclose(model.objective_, found.objective, rtol=1e-8)


# --- priors -----------------------------------------------------------------------------------------------


def test_average_and_mkkm_priors_are_the_papers():
    views, observed, _, average = noisy()
    model = EEIMVC(4, prior="average", n_init=1, random_state=0).fit(views, mask=observed)
    assert_allclose(projector(model.prior_), projector(average), atol=1e-9)
    kernels = [
        zero_filled(centred_and_scaled(gaussian(view[seen])), np.flatnonzero(seen), len(seen))
        for view, seen in zip(views, observed.T, strict=True)
    ]
    model = EEIMVC(4, prior="mkkm", n_init=1, random_state=0).fit(views, mask=observed)
    sweeps = next(s for s in range(3, 50) if _relative_change(kernels, s) < 1e-3)
    assert_allclose(projector(model.prior_), projector(plain_mkkm(kernels, 4, n_sweeps=sweeps).h), atol=1e-9)


def _relative_change(kernels, n_sweeps):
    objective = plain_mkkm(kernels, 4, n_sweeps=n_sweeps).objective
    return abs(objective[-1] - objective[-2]) / objective[-1]


def kernels_of(views, observed):
    rng, rows = np.random.RandomState(0), [np.flatnonzero(seen) for seen in observed.T]
    return [
        kernels.fit_kernel(view[seen], seen, len(observed), "rbf", rng)
        for view, seen in zip(views, rows, strict=True)
    ]


def test_imputed_prior_equals_the_plain_version():
    views, observed, bases, _ = noisy(n=60)
    parts = kernels_of(views, observed)
    start = late.common_directions(bases, 4)
    found = late.factorize(parts, start).h
    settings = {"n_sweeps": late._N_SWEEPS, "shrinkage": late._SHRINKAGE, "ridge": late._RIDGE}
    slow = plain_factorization([k.block for k in parts], [k.rows for k in parts], start, **settings)
    assert_allclose(projector(found), projector(slow), atol=1e-9)
    assert_allclose(found.T @ found, np.eye(4), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_every_sweep_of_the_imputed_prior_explains_more_of_what_was_observed(seed, monkeypatch):
    """Least squares in turn, where nothing is shrunk."""
    monkeypatch.setattr(late, "_SHRINKAGE", 0.0)
    monkeypatch.setattr(late, "_RIDGE", 0.0)
    views, observed, bases, _ = noisy(missing=0.4, seed=seed)
    parts = kernels_of(views, observed)
    blocks, rows = [k.block for k in parts], [k.rows for k in parts]
    left = []
    for n_sweeps in range(1, 8):
        monkeypatch.setattr(late, "_N_SWEEPS", n_sweeps)
        left.append(unexplained(blocks, rows, late.factorize(parts, late.common_directions(bases, 4)).h))
    assert np.diff(left).max() <= 1e-9 * left[0]
    assert left[-1] < left[0]


def test_imputed_prior_finds_an_embedding_that_explains_everything(monkeypatch):
    """Views that are linear in one table of three columns: absent rows hide nothing of it."""
    monkeypatch.setattr(late, "_N_SWEEPS", 300)
    monkeypatch.setattr(late, "_SHRINKAGE", 0.0)
    monkeypatch.setattr(late, "_RIDGE", 0.0)
    rng = np.random.default_rng(0)
    true = np.linalg.qr(rng.standard_normal((90, 3)))[0]
    observed = rng.random((90, 4)) >= 0.4
    observed[~observed.any(axis=1), 0] = True
    parts = []
    for seen in observed.T:
        rows = np.flatnonzero(seen)
        x = true[rows] @ rng.standard_normal((3, 5))
        kernel = kernels.fit_kernel(x, rows, 90, "embedding", rng)  # neither centred nor scaled
        parts.append(kernel)
    start = np.linalg.qr(rng.standard_normal((90, 3)))[0]
    assert_allclose(projector(late.factorize(parts, start).h), projector(true), atol=1e-6)


def test_average_is_a_fixed_point_of_the_imputed_prior_where_no_row_is_absent(monkeypatch):
    monkeypatch.setattr(late, "_SHRINKAGE", 0.0)
    views, _, _, _ = noisy()
    parts = kernels_of(views, np.ones((120, 3), dtype=bool))
    average = top(sum(kernel.block for kernel in parts), 4)
    assert_allclose(projector(late.factorize(parts, average).h), projector(average), atol=1e-9)


def test_imputed_prior_is_continued_to_new_rows_as_to_fitted_ones_with_all_views():
    views, observed, bases, _ = noisy()
    parts = kernels_of(views, observed)
    prior = late.factorize(parts, late.common_directions(bases, 4))
    new = sum(
        kernels.represent(kernel, view) @ projection
        for kernel, view, projection in zip(parts, views, prior.projections, strict=True)
    )
    complete = observed.all(axis=1)
    assert complete.sum() > 20
    assert_allclose(new[complete], prior.h[complete], atol=1e-9)


def test_imputed_prior_speaks_of_incomplete_instances_as_of_complete_ones():
    """In a sum of kernels whose absent rows are zero, the fewer views an instance has the shorter its row."""
    ratios = {"average": [], "imputed": []}
    for seed in range(4):
        views, observed, _, _ = noisy(n=200, missing=0.4, seed=seed)
        few, all_ = observed.sum(axis=1) == 1, observed.all(axis=1)
        for prior, found in ratios.items():
            h = EEIMVC(4, prior=prior, n_init=1, random_state=0).fit(views, mask=observed).prior_
            norms = np.linalg.norm(h, axis=1)
            found.append(norms[few].mean() / norms[all_].mean())
    assert max(ratios["average"]) < 0.6
    assert min(ratios["imputed"]) > 0.8


@pytest.mark.parametrize("seed", range(4))
def test_missing_rows_do_not_hide_clear_clusters(seed):
    """Centred, three clusters fill two directions; the paper's prior has the pattern of rows for a third."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(150) % 3)
    views = [10.0 * np.eye(3, 5)[truth] + 0.5 * rng.standard_normal((150, 5)) for _ in range(2)]
    observed = rng.random((150, 2)) >= 0.3
    observed[~observed.any(axis=1), 0] = True
    labels = EEIMVC(3, random_state=0).fit(views, mask=observed).labels_
    assert adjusted_rand_score(truth, labels) == 1.0


def test_imputed_prior_of_complete_views_is_the_average():
    views, _, _, _ = noisy()
    imputed, average = (
        EEIMVC(4, prior=p, n_init=1, random_state=0).fit(views) for p in ("imputed", "average")
    )
    assert_allclose(projector(imputed.prior_), projector(average.prior_), atol=1e-9)


def test_strong_regularization_returns_the_prior():
    _, observed, bases, prior = noisy()
    found = solve(bases, observed, prior, regularization=1e6)
    assert_allclose(found.embedding, prior, atol=1e-4)


def test_prior_of_the_user_is_taken_and_checked():
    views, observed, _, average = noisy()
    given = EEIMVC(4, prior=average, random_state=0).fit(views, mask=observed)
    named = EEIMVC(4, prior="average", random_state=0).fit(views, mask=observed)
    assert adjusted_rand_score(given.labels_, named.labels_) == 1.0
    with pytest.raises(
        ValueError, match=r"finite array of shape \(120, 4\).* Got the shape \(120, 3\).* Hint"
    ):
        EEIMVC(4, prior=average[:, :3]).fit(views, mask=observed)


# --- laws -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["aligned", "identity"])
@pytest.mark.parametrize("lam", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_objective_never_falls(init, lam, seed):
    _, observed, bases, prior = noisy(seed=seed, missing=0.5)
    found = solve(bases, observed, prior, regularization=lam, init=init, max_iter=40, tol=0.0)
    assert np.diff(found.objective).min() >= -1e-10 * found.objective[-1]


def test_constraints_hold():
    _, observed, bases, prior = noisy()
    found = solve(bases, observed, prior)
    eye = np.eye(4)
    assert_allclose(found.embedding.T @ found.embedding, eye, atol=1e-10)
    assert_allclose(np.linalg.norm(found.weights), 1.0)
    assert found.weights.min() >= 0
    for p, (h, w) in enumerate(zip(found.imputed, found.rotations, strict=True)):
        assert_allclose(w.T @ w, eye, atol=1e-10)
        assert_allclose(h[~observed[:, p]].T @ h[~observed[:, p]], eye, atol=1e-10)
        assert_array_equal(h[observed[:, p]], bases[p][observed[:, p]])


@pytest.mark.parametrize("with_prior", [True, False])
def test_signs_and_rotations_of_the_base_embeddings_change_nothing(with_prior):
    _, observed, bases, prior = noisy()
    prior = prior if with_prior else None
    rng = np.random.default_rng(7)
    turns = [np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in bases]
    turned = [h @ turn for h, turn in zip(bases, turns, strict=True)]
    flipped = [h * rng.choice([-1.0, 1.0], 4) for h in bases]
    found = solve(bases, observed, prior)
    for others in (turned, flipped):
        other = solve(others, observed, prior)
        assert other.n_iter == found.n_iter
        assert_allclose(projector(other.embedding), projector(found.embedding), atol=1e-8)
        assert_allclose(other.objective, found.objective, rtol=1e-10)


def test_without_alignment_signs_matter():
    """What the aligned start is for."""
    _, observed, bases, prior = noisy()
    flipped = [bases[0] * np.array([-1.0, 1.0, -1.0, 1.0]), *bases[1:]]
    found = solve(bases, observed, prior, init="identity", max_iter=1)
    other = solve(flipped, observed, prior, init="identity", max_iter=1)
    assert np.abs(projector(other.embedding) - projector(found.embedding)).max() > 1e-3


# --- kinds of input ---------------------------------------------------------------------------------------


def given_kernels(views, observed, *, blank):
    kernels = []
    for view, seen in zip(views, observed.T, strict=True):
        kernel = np.full((len(seen), len(seen)), np.nan if blank else 0.123)
        kernel[np.ix_(seen, seen)] = gaussian(view[seen])
        kernels.append(kernel)
    return kernels


def test_precomputed_kernels_are_features_compared_beforehand():
    views, observed, _, _ = noisy()
    expected = EEIMVC(4, random_state=0).fit(views, mask=observed)
    by_nan = EEIMVC(4, kernel="precomputed", random_state=0).fit(given_kernels(views, observed, blank=True))
    by_mask = EEIMVC(4, kernel="precomputed", random_state=0).fit(
        given_kernels(views, observed, blank=False), mask=observed
    )
    for model in (by_nan, by_mask):
        assert_allclose(projector(model.embedding_), projector(expected.embedding_), atol=1e-8)
        assert_array_equal(model.labels_, expected.labels_)


def test_precomputed_kernels_predict_from_similarities_to_what_was_fitted():
    truth, views, observed = clear_views()
    model = EEIMVC(3, kernel="precomputed", random_state=0).fit(given_kernels(views, observed, blank=True))
    for v, (view, seen) in enumerate(zip(views, observed.T, strict=True)):
        width = np.sqrt(((view[seen][:, None] - view[seen][None]) ** 2).sum(axis=2)).mean()
        new = np.exp(-((view[:, None] - view[None]) ** 2).sum(axis=2) / (2 * width**2))
        new[:, ~seen] = np.nan  # nobody can say how similar they are to an instance that is not there
        tables = [None, None]
        tables[v] = new
        assert adjusted_rand_score(truth, model.predict(tables)) == 1.0


def test_ready_embeddings_are_taken_as_they_are():
    views, observed, bases, prior = noisy()
    expected = EEIMVC(4, prior=prior, random_state=0).fit(views, mask=observed)
    model = EEIMVC(4, kernel="embedding", prior=prior, random_state=0).fit(bases, mask=observed)
    assert_allclose(projector(model.embedding_), projector(expected.embedding_), atol=1e-8)
    assert_array_equal(model.labels_, expected.labels_)
    assert model.predict(bases, mask=observed).shape == (120,)
    with pytest.raises(
        ValueError, match=r"'view0' has 4 columns, but an embedding has one per cluster, here 3"
    ):
        EEIMVC(3, kernel="embedding").fit(bases, mask=observed)


@pytest.mark.parametrize("kernel", ["linear", "poly", "cosine"])
def test_explicit_kernels_equal_their_precomputed_form(kernel):
    views, observed, _, _ = noisy()
    blocks = {
        "linear": lambda x: x @ x.T,
        "poly": lambda x: (1 + x @ x.T / (x**2).sum(axis=1).mean()) ** 2,
        "cosine": lambda x: x @ x.T / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(x, axis=1)),
    }
    tables = []
    for view, seen in zip(views, observed.T, strict=True):
        table = np.full((120, 120), np.nan)
        table[np.ix_(seen, seen)] = blocks[kernel](view[seen])
        tables.append(table)
    model = EEIMVC(4, kernel=kernel, random_state=0).fit(views, mask=observed)
    other = EEIMVC(4, kernel="precomputed", random_state=0).fit(tables)
    assert_allclose(projector(model.embedding_), projector(other.embedding_), atol=1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_landmarks_stand_for_all_pairs_in_fit_and_predict(kernel, monkeypatch):
    truth, views, observed = clear_views(n=300)
    exact = EEIMVC(3, kernel=kernel, random_state=0).fit(views, mask=observed)
    monkeypatch.setattr(kernels, "EXACT_ROWS", 150)
    monkeypatch.setattr(kernels, "N_LANDMARKS", 60)
    monkeypatch.setattr(kernels, "_MAPPED_WIDTH", 5)
    model = EEIMVC(3, kernel=kernel, random_state=0).fit(views, mask=observed)
    for labels in (exact.labels_, model.labels_, model.predict({"view1": views[1]})):
        assert adjusted_rand_score(truth, labels) == 1.0


def test_predict_agrees_with_fit_where_views_are_complete():
    """New rows that were fitted: the consensus is continued by the same formula, up to the last sweep."""
    views, _, _, _ = noisy()
    model = EEIMVC(4, tol=1e-9, max_iter=1000, random_state=0).fit(views)
    assert_array_equal(model.predict(views), model.labels_)


# --- what is bad or odd ------------------------------------------------------------------------------------


def test_fewer_missing_rows_than_clusters():
    views, observed, bases, prior = noisy(missing=0.0)
    observed[:2, 1] = False
    bases[1][:2] = 0.0
    found = solve(bases, observed, prior)
    rows = found.imputed[1][:2]
    assert_allclose(rows @ rows.T, np.eye(2), atol=1e-10)  # orthonormal rows, where columns cannot be
    assert len(np.unique(EEIMVC(4, random_state=0).fit(views, mask=observed).labels_)) == 4


def test_fewer_observed_rows_than_clusters():
    truth, views, observed = clear_views(missing=0.0)
    observed[2:, 1] = False
    model = EEIMVC(3, random_state=0).fit(views, mask=observed)
    assert np.isfinite(model.embedding_).all()
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    alone = observed.copy()
    alone[1:, 1] = False
    with pytest.warns(UserWarning, match=r"'view1' tells no two instances apart and is ignored\. Hint"):
        assert adjusted_rand_score(truth, EEIMVC(3, random_state=0).fit(views, mask=alone).labels_) > 0.9


def test_identical_views_weigh_the_same():
    views, _, _, _ = noisy(m=1, missing=0.0)
    model = EEIMVC(4, random_state=0).fit([views[0], views[0]])
    assert_allclose(model.view_weights_, np.sqrt(0.5))
    one = EEIMVC(4, random_state=0).fit(views[0])
    assert adjusted_rand_score(model.labels_, one.labels_) == 1.0


def test_constant_view_is_ignored_with_a_warning():
    truth, views, _ = clear_views()
    with pytest.warns(UserWarning, match=r"'view2' tells no two instances apart"):
        model = EEIMVC(3, random_state=0).fit([*views, np.ones((90, 3))])
    assert model.view_weights_[2] == 0.0
    assert adjusted_rand_score(truth, model.labels_) == 1.0


def test_similarities_that_are_no_kernel_are_refused():
    kernel = gaussian(np.random.default_rng(0).standard_normal((30, 2)))
    model = EEIMVC(3, kernel="precomputed", random_state=0)
    with pytest.raises(ValueError, match=r"a precomputed kernel is square, but view 0 is 30 x 20\. Hint"):
        model.fit([kernel[:, :20]])
    odd = kernel.copy()
    odd[3, 5] += 0.5
    with pytest.raises(ValueError, match=r"not symmetric: its rows (3 and 5|5 and 3) differ\. Hint"):
        model.fit([odd])
    holed = kernel.copy()
    holed[3, 5] = holed[5, 3] = np.nan
    with pytest.raises(ValueError, match=r"no finite similarity of rows 3 and 5, .* Hint"):
        model.fit([holed])
    negative = kernel.copy()
    negative[4, 4] = -5.0
    with pytest.raises(ValueError, match=r"row 4 has the negative similarity -\S+ to itself\. Hint"):
        model.fit([negative])


def test_kernel_that_is_slightly_indefinite_is_sound():
    x, truth = _blobs()
    kernel = gaussian(x)
    noise = 0.01 * np.random.default_rng(1).standard_normal(kernel.shape)
    indefinite = kernel + noise + noise.T
    assert np.linalg.eigvalsh(indefinite)[0] < -0.05
    model = EEIMVC(3, kernel="precomputed", random_state=0).fit([indefinite, kernel])
    assert np.isfinite(model.embedding_).all()
    assert adjusted_rand_score(truth, model.labels_) == 1.0


def _blobs():
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    return 10.0 * rng.standard_normal((3, 4))[truth] + rng.standard_normal((90, 4)), truth


def test_published_preprocessing_needs_complete_tables():
    views, observed, _, _ = noisy()
    holed = [np.where(observed[:, [v]], view, np.nan) for v, view in enumerate(views)]
    with pytest.raises(ValueError, match=r"'view0' lacks some\. Hint: .* preprocessing='observed'"):
        EEIMVC(4, preprocessing="paper").fit(holed)


def test_function_of_the_user_is_refused_for_too_many_rows(monkeypatch):
    monkeypatch.setattr(view_kernels, "EXACT_ROWS", 50)
    views, _, _, _ = noisy()
    with pytest.raises(ValueError, match=r"takes at most 50 of them, got 120\. Hint"):
        EEIMVC(4, kernel=lambda a, b: a @ b.T).fit(views)


def test_progress_goes_to_standard_error(capsys):
    _, views, observed = clear_views()
    model = EEIMVC(3, verbose=1, random_state=0).fit(views, mask=observed)
    assert capsys.readouterr().err.count("EEIMVC iteration") == model.n_iter_


def test_too_few_sweeps_warn_and_name_the_knob():
    views, observed, _, _ = noisy()
    with pytest.warns(
        UserWarning, match=r"did not converge in max_iter=2 iterations\. Hint: raise max_iter or tol"
    ):
        EEIMVC(4, max_iter=2, random_state=0).fit(views, mask=observed)
