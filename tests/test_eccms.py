"""ECCMS against the dense version in `oracles`, the authors' outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import ECCMS, LWEA
from consilience.consensus import eccms as module
from tests.oracles.eccms import plain_eccms
from tests.planted import planted


def of_instances(model):
    """C of all instances, without its diagonal."""
    inverse = model.row_of_instance_
    c = model.row_similarity_[np.ix_(inverse, inverse)]
    np.fill_diagonal(c, 0.0)
    return c


def without_ties(n, m, *, missing, seed):
    """A planted table with one more base of another grain, so that no two similarities are equal."""
    _, base = planted(n, m, 4, noise=0.25, missing=missing, seed=seed)
    return np.column_stack([base, np.random.default_rng(seed).integers(0, 30, n)])


@pytest.mark.fixtures
def test_equals_authors_outputs(fixtures_folder):
    given = np.load(fixtures_folder / "eccms_ecoli_m20.npz")
    model = ECCMS(int(given["n_clusters"])).fit(given["base"])
    assert adjusted_rand_score(model.labels_, given["labels"]) == 1.0
    assert model.n_iter_ == given["solver_iters"]
    expected = given["C"].astype(float)
    np.fill_diagonal(expected, 0.0)
    assert_allclose(of_instances(model), expected, atol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_equals_plain_version(missing, seed):
    base = without_ties(120, 8, missing=missing, seed=seed)
    for k in (2, 5):
        c, n_iter, labels = plain_eccms(base, k)
        np.fill_diagonal(c, 0.0)
        model = ECCMS(k).fit(base)
        assert model.n_iter_ == n_iter
        assert_allclose(of_instances(model), c, atol=1e-10)
        assert adjusted_rand_score(model.labels_, labels) == 1.0


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_counts_equal_repeated_rows(missing, seed):
    base = without_ties(50, 6, missing=missing, seed=seed)
    base = base[np.repeat(np.arange(50), np.random.default_rng(seed).integers(1, 6, 50))]
    c, n_iter, labels = plain_eccms(base, 4)
    np.fill_diagonal(c, 0.0)
    model = ECCMS(4).fit(base)
    assert len(model.row_similarity_) <= 50
    assert model.n_iter_ == n_iter
    assert_allclose(of_instances(model), c, atol=1e-10)
    assert adjusted_rand_score(model.labels_, labels) == 1.0


def test_settled_similarity_is_feasible(monkeypatch):
    monkeypatch.setattr(module, "_TOL", 1e-7)
    base = without_ties(80, 8, missing=0.0, seed=0)
    c = ECCMS(4, max_iter=20_000).fit(base).row_similarity_
    assert_allclose(c, c.T, atol=1e-5)
    assert c.min() > -1e-5
    assert c.max() < 1 + 1e-5


def test_without_sure_pairs_the_similarity_stays_what_it_was():
    base = without_ties(80, 8, missing=0.0, seed=0)
    free = ECCMS(4, alpha=1.0, noise=1e6).fit(base)
    assert adjusted_rand_score(free.labels_, LWEA(4).fit_predict(base)) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(seed):
    _, base = planted(150, 6, 4, noise=0.2, missing=0.3, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(150), rng.permutation(6), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    assert adjusted_rand_score(ECCMS(4).fit_predict(base)[rows], ECCMS(4).fit_predict(other)) == 1.0


def test_a_pair_seen_together_once_is_not_sure():
    # Rows 0 and 1 meet in the first base only and agree; all other pairs of a group agree five times.
    truth = np.repeat([0, 1], 10)
    base = np.repeat(truth[:, None], 5, axis=1)
    base[0, 1:], base[10, 1:] = -1, -1
    base[10, 0] = 0  # a wrong label of a row that has no other
    labels = ECCMS(2).fit_predict(base)
    assert adjusted_rand_score(np.delete(labels, 10), np.delete(truth, 10)) == 1.0


def test_too_few_steps_are_told():
    base = without_ties(60, 6, missing=0.0, seed=0)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=2 iterations\. Hint: raise max_iter"):
        ECCMS(3, max_iter=2).fit(base)


def test_too_many_distinct_rows_are_refused(monkeypatch):
    monkeypatch.setattr(ECCMS, "max_rows", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"ECCMS compares all pairs of them and takes at most 10\. Hint"):
        ECCMS(3).fit(base)


def test_one_row_or_one_cluster():
    assert_array_equal(ECCMS(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(ECCMS(1).fit_predict([["a"], ["b"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert ECCMS(2, unobserved="noise").fit(base).labels_[3] == -1
    assert ECCMS(2, unobserved="largest").fit(base).labels_[3] == 0
