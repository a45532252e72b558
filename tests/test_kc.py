"""KC against the consensus matrix of all instances, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import KC, Partitions
from consilience.consensus.kc import consensus_points
from tests.oracles.consensus import plain_consensus_matrix
from tests.planted import planted
from tests.pools import first_ten, nmi
from tests.rows import distinct_rows


def repeated(n, missing, seed):
    _, base = planted(n, 6, 4, noise=0.25, missing=missing, seed=seed)
    return base[np.repeat(np.arange(n), np.random.default_rng(seed).integers(1, 4, n))]


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("seed", range(2))
def test_points_have_the_distances_of_the_rows_of_the_matrix(missing, seed):
    base = repeated(60, missing, seed)
    rows, inverse = distinct_rows(base)
    fast = consensus_points(rows)[inverse]
    slow = plain_consensus_matrix(base)
    assert fast.shape[1] < slow.shape[1]
    assert_allclose(cdist(fast, fast), cdist(slow, slow), atol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_equals_k_means_of_the_matrix(missing, seed):
    base = repeated(60, missing, seed)
    slow = KMeans(4, n_init=50, random_state=0).fit(plain_consensus_matrix(base))
    model = KC(4, n_init=50, random_state=0).fit(base)
    assert_allclose(model.inertia_, slow.inertia_, rtol=1e-8)
    assert adjusted_rand_score(model.labels_, slow.labels_) == 1.0


def test_complete_matrix_is_the_coassociation():
    _, base = planted(60, 6, 4, noise=0.25, missing=0.0, seed=0)
    assert_allclose(plain_consensus_matrix(base), Partitions.of(base).coassociation())


@pytest.mark.data
@pytest.mark.parametrize(("pool", "floor"), [("LWEA_Semeion", 0.55), ("RCE_Yale", 0.40)])
def test_quality_on_pools(data_folder, pool, floor):
    # No reference is at hand; k-means on the labels themselves (KCC) gives .553 and .450.
    table, y = first_ten(pool)
    assert nmi(KC(len(np.unique(y)), random_state=0), table, y) > floor


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(seed):
    _, base = planted(200, 8, 4, noise=0.2, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(200), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = KC(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


def test_more_clusters_than_base_clusters():
    base = np.array([[a, b, 0] for a in range(3) for b in range(3)] * 3)
    labels = KC(8, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(8))
    assert_array_equal(labels[:9], labels[9:18])


def test_one_row_or_one_cluster():
    assert_array_equal(KC(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(KC(1).fit_predict([["a"], ["b"]]), [0, 0])
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows for n_clusters=2"):
        assert_array_equal(KC(2).fit_predict([["a"], ["a"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert KC(2, unobserved="noise").fit(base).labels_[3] == -1
    assert KC(2, unobserved="largest").fit(base).labels_[3] == 0
