"""Average linkage against SciPy's, on repeated rows and under ties."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import cut_tree, fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score

from consilience.core.linkage import average_linkage, cut


def similarities(n, seed):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, 4))
    return np.exp(-0.3 * ((points[:, None] - points[None]) ** 2).sum(axis=2))


def agreements(n, m, k, seed):
    """Shares of agreement of random labels: few distinct values, so ties everywhere."""
    codes = np.random.default_rng(seed).integers(0, k, (n, m))
    return (codes[:, None] == codes[None]).mean(axis=2)


def scipy_merges(similarity, weights):
    """SciPy on repeated rows: `copies` tells which row each comes from."""
    copies = np.repeat(np.arange(len(weights)), weights)
    distance = 2.0 - similarity[np.ix_(copies, copies)]
    distance[copies[:, None] == copies[None]] = 0.0  # equal rows merge first
    return copies, linkage(squareform(distance, checks=False), "average")


@pytest.mark.parametrize("seed", range(5))
def test_equals_scipy(seed):
    s = similarities(80, seed)
    merges = average_linkage(s.copy(), np.ones(80))
    _, reference = scipy_merges(s, np.ones(80, dtype=int))
    assert_array_equal(merges[:, :2], np.sort(reference[:, :2], axis=1))
    assert_allclose(merges[:, 2], 2.0 - reference[:, 2], atol=1e-12)
    assert_array_equal(merges[:, 3], reference[:, 3])
    for k in (1, 2, 7, 79, 80):  # not fcluster: SciPy 1.13 never gives more than 78
        assert adjusted_rand_score(cut(merges, k), cut_tree(reference, k)[:, 0]) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_weights_equal_repeated_rows(seed):
    s = similarities(50, seed)
    weights = np.random.default_rng(seed).integers(1, 9, 50)
    merges = average_linkage(s.copy(), weights)
    copies, reference = scipy_merges(s, weights)
    apart = reference[weights.sum() - 50 :]  # what is left when equal rows are together
    assert_allclose(merges[:, 2], 2.0 - apart[:, 2], atol=1e-12)
    assert_array_equal(merges[:, 3], apart[:, 3])
    for k in range(1, 50, 7):
        assert adjusted_rand_score(cut(merges, k)[copies], fcluster(reference, k, "maxclust")) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_every_merge_joins_the_most_similar_clusters(seed):
    # Under ties there are many right answers; each merge must be among the best of its time.
    s = agreements(40, 5, 3, seed)
    weights = np.random.default_rng(seed).integers(1, 4, 40)
    merges = average_linkage(s.copy(), weights)
    members = {t: [t] for t in range(40)}
    for t, (a, b, height, weight) in enumerate(merges):
        w = {x: weights[rows] for x, rows in members.items()}
        between = {
            (x, y): w[x] @ s[np.ix_(members[x], members[y])] @ w[y] / (w[x].sum() * w[y].sum())
            for x in members
            for y in members
            if x < y
        }
        assert_allclose(height, between[int(a), int(b)], atol=1e-12)
        assert height >= max(between.values()) - 1e-9
        members[40 + t] = members.pop(int(a)) + members.pop(int(b))
        assert weight == weights[members[40 + t]].sum()


@pytest.mark.parametrize("seed", range(5))
def test_heights_never_rise(seed):
    merges = average_linkage(agreements(300, 6, 4, seed), np.ones(300))
    assert np.diff(merges[:, 2]).max() <= 1e-10
    assert (merges[:, :2].max(axis=1) < 300 + np.arange(299)).all()


@pytest.mark.parametrize("seed", range(5))
def test_order_of_rows_does_not_matter_under_ties(seed):
    s = agreements(120, 8, 4, seed)
    weights = np.random.default_rng(seed).integers(1, 4, 120)
    order = np.random.default_rng(seed + 1).permutation(120)
    merges = average_linkage(s.copy(), weights)
    # Other sums of the same numbers: what another order of base clusterings does to them.
    shuffled = average_linkage(s[np.ix_(order, order)] * (1.0 + 1e-14), weights[order])
    for k in (2, 5, 20, 60):
        assert adjusted_rand_score(cut(merges, k)[order], cut(shuffled, k)) == 1.0


def test_cut_numbers_all_clusters():
    merges = average_linkage(similarities(30, 0), np.ones(30))
    for k in (1, 2, 29, 30):
        assert_array_equal(np.unique(cut(merges, k)), np.arange(k))


def test_negative_similarities_are_similarities():
    s = similarities(40, 3)
    shifted = average_linkage(s - 5.0, np.ones(40))
    assert_array_equal(shifted[:, :2], average_linkage(s.copy(), np.ones(40))[:, :2])


def test_one_row_has_no_merges():
    assert average_linkage(np.ones((1, 1)), np.ones(1)).shape == (0, 4)
    assert_array_equal(cut(np.empty((0, 4)), 1), [0])


def test_rows_that_are_all_alike_merge_in_any_case():
    merges = average_linkage(np.zeros((5, 5)), np.ones(5))
    assert_array_equal(merges[:, 2], np.zeros(4))
    assert len(np.unique(cut(merges, 3))) == 3
