"""Whether sources agree beyond chance: moments against all permutations, rates, laws."""

import json
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from consilience import Partitions
from consilience.diagnostics import beyond_chance
from consilience.inference import chance
from consilience.inference.chance import LEVEL, compare_with_chance
from tests.oracles.chance import chi_square, over_all_permutations
from tests.planted import planted


def noise_alone(n, ks, *, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    base = np.column_stack([rng.integers(0, k, n) for k in ks])
    base[rng.random(base.shape) < missing] = -1
    return base[(base >= 0).any(axis=1)]


SMALL = np.array(
    [[0, 0, 1, 0], [0, 1, 1, 2], [0, 1, 0, 1], [1, 0, 2, 0], [1, 2, 2, 1], [1, 2, 0, 2], [0, 2, 1, 0]]
)


def of_columns(base):
    """Pairs in the order of the columns, not in that of the canonical table."""
    form = Partitions.of(base).canonical
    place = np.argsort(form.bases)
    return chance._Pairs(*(part[np.ix_(place, place)] for part in chance._pairs(form.rows)))


class TestMoments:
    @pytest.mark.parametrize(("i", "j"), [(0, 1), (1, 2), (0, 3), (2, 3)])
    def test_of_a_pair_are_those_of_all_permutations(self, i, j):
        found = of_columns(SMALL)
        all_of_them = over_all_permutations(SMALL[:, i], SMALL[:, j], chi_square)
        assert_allclose(found.mean[i, j], all_of_them.mean())
        assert_allclose(found.w[i, j] + found.u[i, j], all_of_them.var())
        assert_allclose(
            found.chi[i, j], chi_square(SMALL[:, i], SMALL[:, j]) - all_of_them.mean(), atol=1e-12
        )

    def test_of_a_pair_with_gaps_are_those_on_the_instances_that_both_saw(self):
        base = np.vstack([SMALL, [[-1, 0, 0, -1], [1, -1, 2, -1], [-1, -1, -1, 3]]])
        whole, found = (of_columns(table) for table in (SMALL, base))
        for part, expected in zip(found[:5], whole[:5], strict=True):
            assert_allclose(part[0, 1], expected[0, 1], atol=1e-12)

    def test_of_one_source_the_others_stay_as_they_are(self, monkeypatch):
        base = SMALL[:, [0, 1, 1, 2]]  # two of the others are copies
        asked = []
        monkeypatch.setattr(chance, "_tail", lambda *moments: asked.append(moments) or 0.0)
        compare_with_chance(Partitions.of(base))
        pairs = of_columns(base)
        scale = 1.0 / np.sqrt(pairs.w + pairs.u)

        def total(moved, others):
            return sum(scale[0, j + 1] * chi_square(moved, column) for j, column in enumerate(others.T))

        sums = over_all_permutations(base[:, 0], base[:, 1:], total)
        excess, variance, _ = asked[2]  # after that of all, and the most it can be
        assert_allclose(excess, total(base[:, 0], base[:, 1:]) - sums.mean(), atol=1e-12)
        assert_allclose(variance, sums.var())

    def test_base_clusterings_of_a_view_are_permuted_together(self, monkeypatch):
        table = Partitions.of(SMALL)
        table = Partitions.of_rows(
            table.codes, table.categories, table.names, views=("one", "one", "two", "two")
        )
        asked = []
        monkeypatch.setattr(chance, "_tail", lambda *moments: asked.append(moments) or 0.0)
        found = compare_with_chance(table)
        assert found.sources == ("one", "two")
        pairs = of_columns(SMALL)
        scale = 1.0 / np.sqrt(pairs.w + pairs.u)

        def total(moved, others):
            columns = ((i, j) for i in range(2) for j in range(2))
            return sum(scale[i, j + 2] * chi_square(moved[:, i], others[:, j]) for i, j in columns)

        sums = over_all_permutations(SMALL[:, :2], SMALL[:, 2:], total)
        for excess, variance, _ in (asked[0], *asked[2:]):  # of all, and of each of two, are the same
            assert_allclose(excess, total(SMALL[:, :2], SMALL[:, 2:]) - sums.mean(), atol=1e-12)
            assert_allclose(variance, sums.var())

    def test_of_all_pairs_are_those_of_many_permutations(self, monkeypatch):
        """With few instances and many sources the skewness is that of triples."""
        base = noise_alone(10, (3, 4, 3, 3, 4, 3, 5, 3) * 3, seed=3)
        asked = []
        monkeypatch.setattr(chance, "_tail", lambda *moments: asked.append(moments) or 0.0)
        rng = np.random.default_rng(0)
        for _ in range(1500):
            asked.append("next")
            compare_with_chance(Partitions.of(rng.permuted(base, axis=0)))
        sums = np.array([after[0] for mark, after in pairwise(asked) if mark == "next"])
        _, variance, third = asked[1]
        assert_allclose(sums.mean(), 0.0, atol=5 * np.sqrt(variance / 1500))
        assert_allclose(sums.var(), variance, rtol=0.15)
        assert_allclose((sums**3).mean(), third, rtol=0.5)
        pairs = of_columns(base)
        alone = 2.0 * np.sqrt(pairs.w + pairs.u)[pairs.told] / pairs.mean[pairs.told]
        assert third > 1.5 * 0.5 * alone.sum()


class TestRates:
    @pytest.mark.parametrize(
        ("n", "ks", "missing"),
        [(300, (4, 3, 6, 5), 0.0), (100, (2, 9, 4, 30), 0.4), (15, (4,) * 60, 0.0), (12, (3,) * 30, 0.3)],
    )
    def test_of_noise_about_one_in_a_hundred_is_beyond(self, n, ks, missing):
        found = [
            compare_with_chance(Partitions.of(noise_alone(n, ks, missing=missing, seed=seed)))
            for seed in range(60)
        ]
        assert sum(bool(test.beyond) for test in found) <= 4  # more once in 300 times
        assert abs(np.mean([test.p_value for test in found]) - 0.5) < 0.15  # four standard errors
        each = np.concatenate([test.p_values for test in found])
        assert np.mean(each < LEVEL) < 0.05

    def test_what_agrees_is_seen(self):
        for seed in range(5):
            for n, m, k in ((300, 4, 4), (40, 6, 3), (15, 85, 5)):
                base = planted(n, m, k, noise=0.4, missing=0.2, seed=seed)[1]
                test = compare_with_chance(Partitions.of(base))
                assert test.beyond
                assert test.p_value < 0.01

    def test_a_source_on_its_own_is_named_though_the_others_are_copies(self):
        named = 0
        for seed in range(40):
            rng = np.random.default_rng(seed)
            base = noise_alone(200, (5, 4), seed=seed)[:, [0, 0, 0, 0, 0, 1]]
            base[rng.random(base.shape) < 0.02] = 3
            table = dict(zip(("a", "b", "c", "d", "e", "survey"), base.T, strict=True))
            test = compare_with_chance(Partitions.of(table))
            assert test.beyond
            assert set(test.unrelated) <= {"survey"}
            named += test.unrelated == ("survey",)
        assert named >= 37


class TestLaws:
    def test_names_order_and_counts_change_nothing(self):
        rng = np.random.default_rng(1)
        base = planted(80, 5, 3, noise=0.7, missing=0.3, seed=0)[1]
        base = base[(base >= 0).any(axis=1)]
        base = np.repeat(base, rng.integers(1, 4, len(base)), axis=0)
        found = compare_with_chance(Partitions.of(base))
        order = rng.permutation(5)
        shuffled = np.where(base >= 0, 9 - base, -1)[rng.permutation(len(base))][:, order]
        for table in (Partitions.of(shuffled), Partitions.of(shuffled).distinct):
            again = compare_with_chance(table)
            assert_allclose(again.p_value, found.p_value, rtol=1e-9)
            assert_allclose(again.p_values, found.p_values[order], rtol=1e-9)

    def test_weight_zero_has_no_say(self):
        base = planted(100, 5, 3, noise=0.6, missing=0.0, seed=0)[1]
        table = Partitions.of(base)
        found = compare_with_chance(table.weighted([1, 0, 2, 1, 1]))
        assert found.p_value == compare_with_chance(Partitions.of(base[:, [0, 2, 3, 4]])).p_value
        assert len(found.sources) == 4

    def test_a_group_is_one_source(self):
        base = noise_alone(300, (4, 5), seed=2)[:, [0, 0, 0, 1]]
        table = Partitions.of(dict(zip("abcd", base.T, strict=True)))
        assert beyond_chance(table).beyond
        assert beyond_chance(table.grouped({"runs": ["a", "b", "c"]})).by_chance
        found = compare_with_chance(table.grouped({"runs": ["a", "b", "c"]}))
        assert found.sources == ("runs", "d")
        assert_allclose(found.p_value, compare_with_chance(Partitions.of(base[:, 2:])).p_value)

    def test_many_base_clusters_go_through_what_is_there(self, monkeypatch):
        table = Partitions.of(noise_alone(60, (30, 20, 4), missing=0.3))
        found = compare_with_chance(table)
        monkeypatch.setattr(chance, "_MAX_SIDE", 10)
        assert_allclose(compare_with_chance(table).p_value, found.p_value, rtol=1e-9)

    def test_too_little_to_tell_says_nothing(self):
        same = [[0, 0], [0, 0], [1, 1], [1, 1], [1, 1]]
        for base in (same, [[0], [1], [1]], [[0, 0], [0, 1], [0, 0]], [[0, -1], [1, -1], [-1, 0], [-1, 1]]):
            found = compare_with_chance(Partitions.of(base))
            assert found.beyond is None
            assert not found.by_chance
            assert found.unrelated == ()
            assert found.sentence == ""
            json.dumps(found.as_dict(), allow_nan=False)
        assert compare_with_chance(Partitions.of(same * 3)).beyond

    def test_a_permutation_of_rows_has_the_last_word(self):
        """Where chi-square says chance, the graph of permuted labels is asked, too."""
        noise = Partitions.of(noise_alone(200, (4, 4, 4)))
        assert beyond_chance(noise).by_chance
        rng = np.random.default_rng(0)
        base = np.column_stack([rng.integers(0, 40, 120) for _ in range(6)])
        base[:3] = 41  # three instances that everybody sets apart
        assert beyond_chance(Partitions.of(base)).beyond
