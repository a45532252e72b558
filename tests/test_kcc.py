"""KCC against its distances on all instances, scikit-learn's k-means, published figures, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import KCC, Partitions
from tests.oracles.consensus import one_hot, plain_block_distance
from tests.planted import planted
from tests.pools import first_ten, nmi

UTILITIES = ["category", "entropy", "cosine"]


@pytest.mark.data
@pytest.mark.parametrize(
    ("pool", "expected"), [("LWEA_Semeion", 0.553), ("Zhou_Lung", 0.522), ("RCE_Yale", 0.450)]
)
def test_quality_on_pools(data_folder, pool, expected):
    table, y = first_ten(pool)
    found = [nmi(KCC(len(np.unique(y)), random_state=seed), table, y) for seed in range(3)]
    assert abs(np.mean(found) - expected) < 0.03


@pytest.mark.data
def test_reference_figure_of_vs_is_a_worse_optimum(data_folder):
    # .102 there; ours is .138, at an objective that k-means from ten starts does not better.
    table, y = first_ten("LWEA_VS")
    one = KMeans(4, n_init=10, random_state=0).fit(Partitions.of(table).indicator.toarray())
    assert KCC(4, random_state=0).fit(table).objective_[-1] <= one.inertia_ * (1 + 1e-12)
    assert nmi(KCC(4, random_state=0), table, y) > 0.102


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("utility", UTILITIES)
def test_ends_where_every_row_is_at_its_nearest_centre(utility, missing):
    _, base = planted(60, 6, 3, noise=0.25, missing=missing, seed=1)
    base = base[np.repeat(np.arange(60), np.random.default_rng(0).integers(1, 4, 60))]
    model = KCC(3, utility=utility, tol=0.0, random_state=0).fit(base)
    distance = plain_block_distance(
        base, model.labels_, 3, utility, prior=0.1 if utility == "entropy" else 0.0
    )
    own = distance[np.arange(len(base)), model.labels_]
    assert_allclose(own, distance.min(axis=1), atol=1e-8)
    if utility != "entropy":  # whose objective has a prior
        assert_allclose(model.objective_[-1], own.sum(), rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_category_utility_is_k_means_of_the_stacked_labels(seed):
    _, base = planted(150, 6, 3, noise=0.2, missing=0.0, seed=seed)
    slow = KMeans(3, n_init=30, random_state=0).fit(one_hot(base))
    model = KCC(3, random_state=0).fit(base)
    assert_allclose(model.objective_[-1], slow.inertia_, rtol=1e-6)
    assert adjusted_rand_score(model.labels_, slow.labels_) > 0.98


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("seed", range(2))
def test_objective_never_rises(utility, normalize, seed):
    _, base = planted(300, 7, 4, noise=0.4, missing=0.4, seed=seed)
    base[:, 0] = np.where(base[:, 0] >= 0, 0, -1)  # a base with one cluster says nothing
    found = KCC(4, utility=utility, normalize=normalize, n_init=1, random_state=seed).fit(base).objective_
    assert np.diff(found).max(initial=0.0) <= 1e-8 * np.abs(found).max()


@pytest.mark.parametrize("utility", UTILITIES)
def test_neither_order_nor_names_matter(utility):
    _, base = planted(200, 8, 4, noise=0.05, missing=0.2, seed=0)  # one optimum
    rng = np.random.default_rng(0)
    rows, columns, names = rng.permutation(200), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = KCC(4, utility=utility, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


@pytest.mark.parametrize("utility", UTILITIES)
def test_more_clusters_than_base_clusters(utility):
    base = np.array([[a, b, 0] for a in range(3) for b in range(3)] * 3)
    labels = KCC(8, utility=utility, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(8))
    assert_array_equal(labels[:9], labels[9:18])


def test_one_row_or_one_cluster():
    assert_array_equal(KCC(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(KCC(1).fit_predict([["a"], ["b"]]), [0, 0])


def test_says_when_it_did_not_converge():
    _, base = planted(200, 8, 4, noise=0.5, missing=0.3, seed=0)
    with pytest.warns(ConvergenceWarning, match="KCC did not converge in max_iter=1 iterations. Hint: raise"):
        KCC(4, max_iter=1, random_state=0).fit(base)


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert KCC(2, unobserved="noise").fit(base).labels_[3] == -1
    assert KCC(2, unobserved="largest").fit(base).labels_[3] == 0
