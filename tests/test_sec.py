"""SEC against its distances on all instances, scikit-learn's weighted k-means, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import SEC, Partitions
from tests.oracles.consensus import one_hot, plain_block_distance
from tests.planted import planted
from tests.pools import first_ten, nmi


def reach_of(base):
    b = one_hot(base)
    reach = b @ b.sum(axis=0)
    return reach / reach.mean()


@pytest.mark.data
@pytest.mark.parametrize(
    ("pool", "expected"), [("LWEA_Semeion", 0.555), ("Zhou_Lung", 0.615), ("RCE_Yale", 0.413)]
)
def test_quality_on_pools(data_folder, pool, expected):
    table, y = first_ten(pool)
    found = [nmi(SEC(len(np.unique(y)), random_state=seed), table, y) for seed in range(3)]
    assert abs(np.mean(found) - expected) < 0.03


@pytest.mark.data
def test_reference_figure_of_vs_is_a_worse_optimum(data_folder):
    # .072 there; ours is .14, at an objective that k-means with the reference's seed does not reach.
    table, y = first_ten("LWEA_VS")
    h, b = Partitions.of(table).indicator.toarray(), reach_of(table)
    one = KMeans(4, n_init=10, random_state=0).fit(h / b[:, None], sample_weight=b)
    assert SEC(4, random_state=0).fit(table).objective_[-1] < one.inertia_
    assert nmi(SEC(4, random_state=0), table, y) > 0.072


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_ends_where_every_row_is_at_its_nearest_centre(missing):
    _, base = planted(60, 6, 3, noise=0.25, missing=missing, seed=1)
    base = base[np.repeat(np.arange(60), np.random.default_rng(0).integers(1, 4, 60))]
    model = SEC(3, tol=0.0, random_state=0).fit(base)
    reach = reach_of(base)
    distance = plain_block_distance(base, model.labels_, 3, "category", reach)
    own = distance[np.arange(len(base)), model.labels_]
    assert_allclose(own, distance.min(axis=1), atol=1e-8)
    assert_allclose(model.objective_[-1], reach @ own, rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_is_weighted_k_means_of_scaled_labels(seed):
    _, base = planted(150, 6, 3, noise=0.2, missing=0.0, seed=seed)
    b = reach_of(base)
    slow = KMeans(3, n_init=30, random_state=0).fit(one_hot(base) / b[:, None], sample_weight=b)
    model = SEC(3, random_state=0).fit(base)
    assert_allclose(model.objective_[-1], slow.inertia_, rtol=1e-6)
    assert adjusted_rand_score(model.labels_, slow.labels_) > 0.98


def test_objective_is_the_normalised_cut_of_the_votes():
    # Within-cluster scatter of the kernel D^-1 S D^-1: a constant less the share of votes inside clusters.
    _, base = planted(100, 6, 3, noise=0.2, missing=0.0, seed=0)
    model = SEC(3, random_state=0).fit(base)
    b = one_hot(base)
    votes, degree = b @ b.T, b @ b.sum(axis=0)
    inside = sum(
        votes[np.ix_(c, c)].sum() / degree[c].sum()
        for c in (np.flatnonzero(model.labels_ == k) for k in range(3))
    )
    expected = degree.mean() * (np.sum(6 / degree) - inside)
    assert_allclose(model.objective_[-1], expected, rtol=1e-8)


def test_objective_never_rises():
    _, base = planted(300, 7, 4, noise=0.4, missing=0.4, seed=0)
    found = SEC(4, n_init=1, random_state=0).fit(base).objective_
    assert np.diff(found).max(initial=0.0) <= 1e-8 * np.abs(found).max()


def test_neither_order_nor_names_matter_with_noise():
    _, base = planted(200, 8, 4, noise=0.15, missing=0.1, seed=0)
    rng = np.random.default_rng(0)
    rows, columns, names = rng.permutation(200), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = SEC(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


def test_more_clusters_than_base_clusters():
    base = np.array([[a, b, 0] for a in range(3) for b in range(3)] * 3)
    labels = SEC(8, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(8))
    assert_array_equal(labels[:9], labels[9:18])


def test_one_row_or_one_cluster():
    assert_array_equal(SEC(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(SEC(1).fit_predict([["a"], ["b"]]), [0, 0])


def test_says_when_it_did_not_converge():
    _, base = planted(200, 8, 4, noise=0.5, missing=0.3, seed=0)
    with pytest.warns(ConvergenceWarning, match=r"SEC did not converge in max_iter=1 iterations\. Hint"):
        SEC(4, max_iter=1, random_state=0).fit(base)


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert SEC(2, unobserved="noise").fit(base).labels_[3] == -1
    assert SEC(2, unobserved="largest").fit(base).labels_[3] == 0
