"""SCCBG against the version on all instances in `oracles`, the authors' outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import SCCBG
from consilience.consensus import sccbg as module
from tests.oracles.sccbg import membership_value, one_hot, pace_matrix, plain_memberships, plain_sccbg
from tests.planted import planted


@pytest.mark.fixtures
@pytest.mark.parametrize("gamma", ["1e-05", "0.01", "1"])
def test_labels_equal_authors_outputs(fixtures_folder, gamma):
    # Theirs came from another solver of the problem that is not convex, so this is agreement of the results.
    given = np.load(fixtures_folder / f"sccbg_allaml_run0_gamma{gamma}.npz")
    base = given["base"]
    model = SCCBG(2, smoothness=float(given["gamma"]) * len(base), random_state=0).fit(base)
    assert model.n_components_ == given["n_components"]
    assert adjusted_rand_score(model.labels_, given["labels"]) == 1.0


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("smoothness", [0.1, 1.0])
def test_equals_plain_version_on_repeated_rows(missing, smoothness):
    _, base = planted(12, 4, 3, noise=0.1, missing=missing, seed=3)
    base = np.repeat(base, np.arange(12) % 2 + 1, axis=0)
    model = SCCBG(3, smoothness=smoothness, random_state=0).fit(base)
    inverse = model.row_of_instance_
    s, w, labels = plain_sccbg(base, 3, smoothness)
    assert_allclose(model.row_memberships_[inverse], s, atol=1e-5)
    assert_allclose(model.row_pace_[inverse], w, atol=1e-4)
    assert labels.max() + 1 == model.n_components_
    if model.n_components_ == 3:
        assert adjusted_rand_score(labels, model.labels_) == 1.0


def _one_row(seed):
    """A row's memberships, the ones in the table, what was seen of them, overlaps, pace and pull."""
    rng = np.random.default_rng(seed)
    base = planted(40, 5, 3, noise=0.2, missing=0.2, seed=seed)[1]
    s0, seen = one_hot(base)
    a = s0.T @ s0 / 40
    np.fill_diagonal(a, 0.0)
    s = np.clip(s0[0] + rng.normal(scale=0.3, size=s0.shape[1]), 0, 1)
    return s, s0[0], seen[0], a, rng.random(s0.shape[1]), 0.3 * rng.random(s0.shape[1])


@pytest.mark.parametrize("seed", range(5))
def test_memberships_solve_their_problem(seed):
    s, s0, seen, a, w, pull = _one_row(seed)
    found = module.update_memberships(s[None], s0[None], w[None], (seen * w**2)[None], a, pull[None])[0]
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    best = plain_memberships(s0, seen, a, w, pull)
    expected = membership_value(best, s0, seen, a, w, pull)
    assert membership_value(found, s0, seen, a, w, pull) <= expected + 1e-9


@pytest.mark.parametrize("age", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_every_step_of_the_pace_lowers_its_objective(seed, age, monkeypatch):
    s, s0, seen, a, w, _ = _one_row(seed)
    m = pace_matrix(s, s0, seen, a)
    monkeypatch.setattr(module, "_PACE_STEPS", 1)
    values = [w @ m @ w - age * w.sum()]
    for _ in range(20):
        w = module.update_pace(w[None], s[None], (seen * (s - s0) ** 2)[None], a, age)[0]
        assert w.min() >= 0.0
        assert w.max() <= 1.0
        values.append(w @ m @ w - age * w.sum())
    assert np.diff(values).max() <= 1e-12


def test_doubtful_memberships_enter_late():
    base = np.repeat([[0, 0, 0, 0], [1, 1, 1, 1]], 10, axis=0)
    base = np.vstack([base, [0, 0, 0, 1]])
    model = SCCBG(2, smoothness=10.0, max_iter=1).fit(base)
    doubtful = model.row_of_instance_[-1]
    assert model.row_pace_[doubtful].mean() < np.delete(model.row_pace_, doubtful, axis=0).mean()


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(seed):
    _, base = planted(120, 8, 4, noise=0.15, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(120), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = SCCBG(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_finds_planted_clusters(missing):
    truth, base = planted(150, 10, 4, noise=0.15, missing=missing, seed=0)
    assert adjusted_rand_score(truth, SCCBG(4, random_state=0).fit_predict(base)) > 0.9


def test_too_many_distinct_rows_are_refused(monkeypatch):
    monkeypatch.setattr(SCCBG, "max_rows", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"SCCBG compares all pairs of them and takes at most 10\. Hint"):
        SCCBG(3).fit(base)


def test_more_clusters_than_base_clusters():
    base = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]])
    labels = SCCBG(4, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(4))


def test_one_row_or_one_cluster():
    assert_array_equal(SCCBG(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(SCCBG(1).fit_predict([["a"], ["b"]]), [0, 0])
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows for n_clusters=2"):
        assert_array_equal(SCCBG(2).fit_predict([["a"], ["a"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert SCCBG(2, unobserved="noise").fit(base).labels_[3] == -1
    assert SCCBG(2, unobserved="largest").fit(base).labels_[3] == 0
