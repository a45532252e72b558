"""The consensus graph against all pairs, sorted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience import Partitions
from consilience.core.consensusgraph import consensus_graph, most_sharing


def drawn_table(n, n_bases, k, missing, seed):
    """Labels that follow a hidden cluster, with errors and gaps; every row has one label at least."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(k, size=n)
    codes = np.where(rng.random((n, n_bases)) < 0.7, hidden[:, None], rng.integers(k, size=(n, n_bases)))
    codes[rng.random((n, n_bases)) < missing] = -1
    codes[(codes < 0).all(axis=1), 0] = 0
    return codes


def all_shares(codes):
    """The co-association of all pairs, 0 where nobody saw both."""
    both = (codes[:, None] >= 0) & (codes[None] >= 0)
    agree = ((codes[:, None] == codes[None]) & both).sum(axis=2)
    found = np.divide(agree, both.sum(axis=2), out=np.zeros(agree.shape), where=both.any(axis=2))
    np.fill_diagonal(found, 0.0)
    return found


def nearest_shares(shares, alike, k):
    """The k highest shares of an instance, those of at most half of them with the same labels."""
    own, others = shares[alike], np.sort(shares[~alike])[::-1]
    others = others[others > 0]
    n_others = min(len(others), k - min(len(own) - 1, (k + 1) // 2))
    n_own = min(len(own) - 1, k - n_others)
    return np.sort(np.r_[np.ones(n_own), others[:n_others]])[::-1]


@pytest.mark.parametrize(
    ("n", "n_bases", "k", "missing", "n_neighbours"),
    [(60, 4, 3, 0.0, 7), (60, 4, 3, 0.4, 7), (400, 5, 3, 0.3, 15), (300, 12, 6, 0.5, 10), (8, 3, 2, 0.2, 15)],
)
def test_neighbours_are_those_of_the_highest_coassociation(n, n_bases, k, missing, n_neighbours):
    codes = drawn_table(n, n_bases, k, missing, seed=n + n_bases)
    table = Partitions.of(codes)
    found = most_sharing(table.distinct.codes, table.inverse, n_neighbours, np.random.RandomState(0))
    shares = all_shares(codes)
    for i in range(n):
        here = found.indices[i][found.indices[i] >= 0]
        assert i not in here
        assert len(set(here)) == len(here)
        weights = found.shares[i][: len(here)]
        assert_allclose(weights, shares[i, here], atol=1e-7)
        assert (found.shares[i][len(here) :] == 0).all()
        expected = nearest_shares(shares[i], (codes == codes[i]).all(axis=1), n_neighbours)
        assert_allclose(np.sort(weights)[::-1], expected, atol=1e-7)


def test_ties_are_drawn_evenly():
    """Everybody shares one of two labels with everybody of the other row: nobody becomes a hub."""
    codes = np.repeat([[0, 0], [0, 1]], 300, axis=0)
    table = Partitions.of(codes)
    found = most_sharing(table.distinct.codes, table.inverse, 10, np.random.RandomState(0))
    chosen = np.bincount(found.indices.ravel(), minlength=600)
    assert (found.shares == 0.5).sum(axis=1).tolist() == [5] * 600  # half are alike, half are not
    assert chosen.sum() == 6000
    assert chosen.max() <= 25  # 5 alike, and of the others 5 in the mean: more than 20 has a chance of 1e-4


def test_the_graph_is_symmetric_and_follows_the_seed():
    table = Partitions.of(drawn_table(200, 4, 3, 0.3, seed=1))
    graphs = [
        consensus_graph(most_sharing(table.distinct.codes, table.inverse, 6, np.random.RandomState(seed)))
        for seed in (0, 0, 1)
    ]
    assert (graphs[0] != graphs[1]).nnz == 0
    assert (graphs[0] != graphs[2]).nnz > 0
    graph = graphs[0]
    assert (graph != graph.T).nnz == 0
    assert graph.diagonal().sum() == 0
    degree = np.diff(graph.indptr)
    assert degree.min() >= 6
    assert degree.mean() <= 12
    assert_array_equal(graph.data <= 1.0, True)


def test_instances_that_share_nothing_have_no_neighbours():
    table = Partitions.of([[0, 0], [1, 1], [2, 2], [2, 2]])
    graph = consensus_graph(most_sharing(table.distinct.codes, table.inverse, 3, np.random.RandomState(0)))
    assert graph.toarray().tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
