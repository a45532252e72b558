"""BCE against its definition instance by instance, published figures, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import psi
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import BCE
from consilience.consensus import bce as module
from consilience.core.profiles import smooth_profiles
from tests.oracles.consensus import plain_bce
from tests.planted import planted
from tests.pools import first_ten, nmi
from tests.rows import distinct_rows


@pytest.mark.data
@pytest.mark.parametrize(
    ("pool", "missing", "expected"),
    [
        ("LWEA_VS", 0.0, 0.120),
        ("LWEA_Semeion", 0.0, 0.563),
        ("RCE_Yale", 0.0, 0.463),
        ("LWEA_Semeion", 0.3, 0.557),
        ("LWEA_Semeion", 0.6, 0.569),
    ],
)
def test_quality_on_pools(data_folder, pool, missing, expected):
    table, y = first_ten(pool, missing)
    assert abs(nmi(BCE(len(np.unique(y)), random_state=0), table, y) - expected) < 0.03


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_a_pass_over_the_rows_equals_plain_version_on_repeated_rows(monkeypatch, missing):
    _, base = planted(40, 5, 3, noise=0.3, missing=missing, seed=0)
    base = base[np.repeat(np.arange(40), np.random.default_rng(0).integers(1, 4, 40))]
    rows, inverse = distinct_rows(base)
    rng = np.random.default_rng(1)
    alpha, gamma = rng.random(3) + 0.5, rng.random((len(rows.codes), 3)) + 0.5
    n_base_clusters = int(rows.offsets[-1])
    beta = smooth_profiles(rng.random((n_base_clusters, 3)), rows.offsets, np.zeros(n_base_clusters))
    new, sums, bound = plain_bce(rows.codes[inverse], rows.offsets, alpha, beta, gamma[inverse])
    found = module._expected_labels(rows, alpha, beta, gamma)
    assert_allclose(found[0], sums, rtol=1e-8)
    assert_allclose(found[1], bound, rtol=1e-8)
    monkeypatch.setattr(module, "_PASSES", 1)
    fast = module._update_memberships(rows, alpha, beta, gamma)
    assert_allclose(fast[inverse], new, rtol=1e-8)


def test_alpha_is_the_dirichlet_with_the_given_mean():
    theta = np.random.default_rng(0).dirichlet([0.3, 2.0, 1.0], 5000)
    mean = np.log(np.maximum(theta, 1e-300)).mean(axis=0)
    alpha = module._update_alpha(np.ones(3), mean)
    assert_allclose(psi(alpha) - psi(alpha.sum()), mean, atol=1e-6)
    assert_allclose(alpha, [0.3, 2.0, 1.0], rtol=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_objective_never_rises(seed):
    _, base = planted(200, 7, 4, noise=0.4, missing=0.4, seed=seed)
    found = BCE(4, random_state=seed).fit(base).objective_
    assert np.diff(found).max(initial=0.0) <= 1e-8 * np.abs(found).max()


def test_memberships_are_shares_and_the_largest_is_the_label():
    truth, base = planted(200, 8, 4, noise=0.1, missing=0.2, seed=0)
    model = BCE(4, random_state=0).fit(base)
    assert_allclose(model.membership_.sum(axis=1), 1.0)
    assert_array_equal(model.membership_.argmax(axis=1), model.labels_)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    assert (model.alpha_ > 0).all()


def test_neither_order_nor_names_matter():
    _, base = planted(200, 8, 4, noise=0.05, missing=0.2, seed=0)
    rng = np.random.default_rng(0)
    rows, columns, names = rng.permutation(200), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = BCE(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


def test_more_clusters_than_base_clusters():
    base = np.array([[a, b, 0] for a in range(3) for b in range(3)] * 3)
    labels = BCE(8, tol=1e-3, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(8))
    assert_array_equal(labels[:9], labels[9:18])


def test_one_row_or_one_cluster():
    assert_array_equal(BCE(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(BCE(1).fit_predict([["a"], ["b"]]), [0, 0])


def test_says_when_it_did_not_converge():
    _, base = planted(100, 8, 4, noise=0.5, missing=0.3, seed=0)
    with pytest.warns(ConvergenceWarning, match=r"BCE did not converge in max_iter=1 iterations\. Hint"):
        BCE(4, max_iter=1, random_state=0).fit(base)


def test_more_base_clusters_than_labels_can_have_are_refused():
    households = np.arange(24_000) // 2
    with pytest.raises(ValueError, match=r"BCE takes at most 10000; '0' alone has 12000\. Hint: "):
        BCE(2).fit(np.column_stack([households, households % 2]))


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    model = BCE(2, unobserved="noise").fit(base)
    assert model.labels_[3] == -1
    assert_array_equal(model.membership_[3], 0.0)
    assert BCE(2, unobserved="largest").fit(base).labels_[3] == 0
