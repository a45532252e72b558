"""The tables behind the pictures against loops over all pairs of instances, and their laws."""

import json
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_mutual_info_score

from consilience import Partitions
from consilience.diagnostics import (
    cluster_flow,
    consensus_distribution,
    consensus_map,
    membership,
    missing_patterns,
    pairwise_agreement,
    resample_n_clusters,
    support,
)
from consilience.generate import base_partitions
from tests.oracles.diagnostics import plain_support
from tests.planted import planted


def read(base):
    return Partitions.of(base, unobserved="keep")


@pytest.fixture(params=[0.0, 0.4, 0.7])
def noisy(request):
    """Base labels with gaps, and consensus labels that are sometimes wrong or absent and differ within
    equal rows; one instance that nobody saw, and a cluster number that is not used."""
    rng = np.random.default_rng(3)
    truth, base = planted(70, 5, 3, noise=0.3, missing=request.param, seed=2)
    labels = np.where(rng.random(70) < 0.2, rng.integers(0, 3, 70), truth)
    labels[labels == 2] = 3
    labels[[4, 11]] = -1
    if request.param:
        base[20] = -1
    return base, labels


def plain_order(labels, order):
    """Instances sorted by cluster, then high first, then by position."""
    return sorted(np.flatnonzero(labels >= 0), key=lambda i: (labels[i], -order[i], i))


def pair_counts(base):
    """How many bases agree on a pair, and how many saw it: from the co-association."""
    table = read(base)
    seen = table.observed.astype(float)
    return table.coassociation(normalize="partitions") * base.shape[1], seen @ seen.T


class TestConsensusMap:
    def test_is_the_ordered_coassociation_where_each_instance_is_a_cell(self, noisy):
        base, labels = noisy
        found = consensus_map(read(base), labels)
        place = plain_order(labels, support(read(base), labels).item_consensus)
        assert_allclose(found.coassociation, read(base).coassociation()[np.ix_(place, place)])
        assert_array_equal(found.cluster, labels[place])
        assert_array_equal(found.size, np.ones(len(place)))

    @pytest.mark.parametrize("max_cells", [3, 7, 40])
    def test_a_cell_holds_all_pairs_of_its_instances(self, noisy, max_cells):
        base, labels = noisy
        order = np.random.default_rng(0).random(len(labels))
        found = consensus_map(read(base), labels, order=order, max_cells=max_cells)
        place = plain_order(labels, order)
        cells = np.split(place, np.cumsum(found.size)[:-1])
        agreeing, together = pair_counts(base)
        for g, mine in enumerate(cells):
            assert set(labels[mine]) == {found.cluster[g]}
            for j, codes in enumerate(read(base).codes[mine].T):
                counts = np.bincount(codes[codes >= 0])
                assert found.base_labels[g, j] == (counts.argmax() if counts.any() else -1)
            for h, others in enumerate(cells):
                pairs = [(i, j) for i in mine for j in others if i != j]
                seen = sum(together[pair] for pair in pairs)
                expected = sum(agreeing[pair] for pair in pairs) / seen if seen else np.nan
                if g == h and len(mine) == 1:
                    expected = 1.0 if (base[mine] >= 0).any() else np.nan
                assert_allclose(found.coassociation[g, h], expected, atol=1e-12)

    @pytest.mark.parametrize("max_cells", [1, 4, 5, 11, 57])
    def test_cells_follow_the_sizes_of_the_clusters(self, max_cells):
        sizes = np.array([300, 100, 20, 1])
        labels = np.repeat(np.arange(4), sizes)
        base = planted(len(labels), 4, 4, noise=0.2, missing=0.2, seed=0)[1]
        found = consensus_map(read(base), labels, max_cells=max_cells)
        per_cluster = np.bincount(found.cluster)
        assert len(found.size) == max(max_cells, 4)
        assert_array_equal(np.bincount(found.cluster, found.size), sizes)
        assert per_cluster.min() >= 1
        # The largest cells cannot be made smaller by taking a cell from another cluster.
        assert (sizes / per_cluster).max() <= (sizes / np.maximum(per_cluster - 1, 1))[per_cluster > 1].min(
            initial=np.inf
        )
        for c in range(4):
            assert np.ptp(found.size[found.cluster == c]) <= 1

    def test_a_pair_that_no_base_saw_is_not_a_number(self):
        found = consensus_map(read(np.array([[0, -1], [-1, 0], [1, 1]])), [0, 0, 1])
        assert_array_equal(np.isnan(found.coassociation), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])

    def test_noise_that_is_a_cluster_for_each_instance_stays_small(self):
        labels = np.arange(20_000) % 5
        base = np.tile(labels[:, None], (1, 4))
        base[::3] = -1
        table = Partitions.of(base, negative="noise")
        tracemalloc.start()
        consensus_map(table, labels)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200 * table.offsets[-1] * 8  # a dense table of cells and base clusters


class TestMembership:
    @pytest.mark.parametrize("max_cells", [4, 200])
    def test_is_the_mean_support_of_the_instances_of_a_cell(self, noisy, max_cells):
        base, labels = noisy
        order = np.random.default_rng(0).random(len(labels))
        found = membership(read(base), labels, order=order, max_cells=max_cells)
        cells = np.split(plain_order(labels, order), np.cumsum(found.size)[:-1])
        s = plain_support(base, labels)
        assert_allclose(found.support, [s[mine].mean(axis=0) for mine in cells], atol=1e-12)
        assert_array_equal(found.cluster, [labels[mine[0]] for mine in cells])

    def test_has_the_cells_of_the_consensus_map(self, noisy):
        base, labels = noisy
        first, second = (f(read(base), labels, max_cells=9) for f in (consensus_map, membership))
        assert_array_equal(first.cluster, second.cluster)
        assert_array_equal(first.size, second.size)

    def test_of_one_cluster_each_is_cluster_consensus(self, noisy):
        base, labels = noisy
        found = membership(read(base), labels, max_cells=1)
        own = support(read(base), labels).clusters.own
        assert_allclose([s[c] for s, c in zip(found.support, found.cluster, strict=True)], own[found.cluster])


class TestMissingPatterns:
    def test_counts_every_combination(self, noisy):
        base, _ = noisy
        found = missing_patterns(read(base), max_patterns=1000)
        plain = {}
        for row in base >= 0:
            plain[tuple(row)] = plain.get(tuple(row), 0) + 1
        assert dict(zip(map(tuple, found.seen), found.size, strict=True)) == plain
        assert found.n_patterns == len(plain)
        assert (np.diff(found.size) <= 0).all()
        assert_array_equal(found.n_seen, (base >= 0).sum(axis=0))

    def test_the_rare_ones_are_left_out(self, noisy):
        base, _ = noisy
        every, few = (missing_patterns(read(base), max_patterns=count) for count in (1000, 3))
        assert_array_equal(few.seen, every.seen[:3])
        assert few.n_patterns == every.n_patterns
        assert_array_equal(few.n_seen, every.n_seen)

    def test_equally_frequent_ones_come_in_an_order_that_rows_do_not_change(self):
        base = np.array([[0, -1, -1], [0, 0, -1], [-1, 0, 0], [0, 0, 0], [-1, -1, 0]])
        found = missing_patterns(read(base))
        assert_array_equal(found.seen, np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 0, 0], [0, 0, 1]]))
        assert_array_equal(missing_patterns(read(base[::-1].copy())).seen, found.seen)


class TestPairwiseAgreement:
    def test_is_the_adjusted_mutual_information_on_shared_instances(self):
        base = planted(300, 4, 3, noise=0.2, missing=0.4, seed=1)[1]
        base[:150, 3] = -1
        base[150:, 2] = -1
        names, found = pairwise_agreement(read(dict(zip("abcd", base.T, strict=True))))
        assert names == ("a", "b", "c", "d")
        for i in range(4):
            for j in range(4):
                both = (base[:, i] >= 0) & (base[:, j] >= 0)
                expected = adjusted_mutual_info_score(base[both, i], base[both, j]) if both.any() else np.nan
                assert_allclose(found[i, j], expected, atol=1e-9)
        assert np.isnan(found[2, 3])


class TestClusterFlow:
    def test_counts_instances(self):
        rng = np.random.default_rng(0)
        first, second = rng.integers(-1, 4, 200), rng.integers(-1, 3, 200)
        found = cluster_flow(first, second)
        assert found.shape == (4, 3)
        for a in range(4):
            for b in range(3):
                assert found[a, b] == sum((first == a) & (second == b))

    def test_all_unassigned_is_an_empty_table(self):
        assert cluster_flow([-1, -1], [0, 1]).shape == (0, 2)

    @pytest.mark.parametrize(
        ("first", "second", "words"),
        [
            ([0, 1], [0], r"shapes \(2,\) and \(1,\).*Hint"),
            ([], [], r"shapes \(0,\).*Hint"),
            ([0.5, 1.0], [0, 1], "dtype float64.*Hint"),
        ],
    )
    def test_refuses_what_cannot_be_compared(self, first, second, words):
        with pytest.raises(ValueError, match=words):
            cluster_flow(first, second)


class TestConsensusDistribution:
    def plain(self, base):
        shares = read(base).coassociation()[np.triu_indices(len(base), 1)]
        known = shares[~np.isnan(shares)]
        return known, np.isnan(shares).mean()

    def test_all_pairs(self, noisy):
        base = noisy[0]
        found, (shares, unknown) = consensus_distribution(read(base)), self.plain(base)
        assert found.exact
        assert_allclose(found.cdf, [(shares <= x / 100 + 1e-9).mean() for x in range(101)])
        assert_allclose(found.area, 1 - shares.mean())
        assert_allclose(found.pac, ((shares > 0.1) & (shares <= 0.9)).mean())
        assert_allclose(found.never_together, unknown, atol=1e-12)

    def test_repeated_rows_are_counted_as_often_as_they_occur(self):
        base = np.repeat(planted(20, 4, 3, noise=0.3, missing=0.3, seed=0)[1], 5, axis=0)
        found, (shares, _) = consensus_distribution(read(base), max_pairs=300), self.plain(base)
        assert found.exact
        assert_allclose(found.area, 1 - shares.mean())
        assert_allclose(found.cdf[50], (shares <= 0.5).mean())

    def test_a_sample_comes_near_all_pairs(self):
        base = planted(400, 12, 4, noise=0.3, missing=0.3, seed=0)[1]
        every, sample = (consensus_distribution(read(base), max_pairs=pairs) for pairs in (10**6, 20_000))
        assert every.exact
        assert not sample.exact
        # Four standard errors of a share, at most.
        assert np.abs(sample.cdf - every.cdf).max() < 4 * 0.5 / np.sqrt(20_000)
        assert abs(sample.never_together - every.never_together) < 4 * 0.5 / np.sqrt(20_000)

    def test_is_what_resampling_reports_for_the_same_table(self):
        X = np.random.default_rng(0).normal(size=(60, 3))
        curve = resample_n_clusters(X, [3], n_resamples=10, random_state=0).curve
        labels = base_partitions(
            X, 3, 10, subsample=0.8, init="k-means++", max_iter=100, random_state=np.random.RandomState(0)
        )
        found = consensus_distribution(read(labels))
        assert_allclose(found.cdf, curve.cdf[0])
        assert_allclose([found.area, found.pac], [curve.area[0], curve.pac[0]])

    def test_without_a_pair_there_is_nothing_to_say(self):
        found = consensus_distribution(read(np.array([[0, -1], [-1, 0]])))
        assert np.isnan([found.area, found.pac, *found.cdf]).all()
        assert found.never_together == 1.0


class TestAllTables:
    def test_are_plain_values_for_a_page(self, noisy):
        base, labels = noisy
        table = read(base)
        for found in (
            consensus_map(table, labels),
            membership(table, labels),
            missing_patterns(table),
            consensus_distribution(table),
        ):
            json.dumps(found.as_dict(), allow_nan=False)
            assert type(found).__name__ in repr(found)

    def test_do_not_depend_on_the_names_of_clusters(self, noisy):
        base, labels = noisy
        renamed = np.where(base >= 0, 2 - base, -1)
        maps, members = (
            [function(read(b), labels, max_cells=9) for b in (base, renamed)]
            for function in (consensus_map, membership)
        )
        assert_allclose(maps[0].coassociation, maps[1].coassociation)
        assert_allclose(members[0].support, members[1].support)
        assert_allclose(consensus_distribution(read(base)).cdf, consensus_distribution(read(renamed)).cdf)

    def test_one_instance(self):
        table = read(np.array([[0, 1]]))
        assert_array_equal(consensus_map(table, [0]).coassociation, [[1.0]])
        assert_array_equal(membership(table, [0]).support, [[0.0]])

    @pytest.mark.parametrize("function", [consensus_map, membership])
    def test_bad_input_is_named(self, function):
        table = read(np.array([[0, 1], [1, 0]]))
        with pytest.raises(ValueError, match="'max_cells' parameter"):
            function(table, [0, 1], max_cells=0)
        with pytest.raises(ValueError, match=r"order has shape \(3,\).*Hint"):
            function(table, [0, 1], order=[1, 2, 3])
        with pytest.raises(ValueError, match=r"order has .*dtype"):
            function(table, [0, 1], order=["a", "b"])
        with pytest.raises(ValueError, match="labels has shape"):
            function(table, [0])
