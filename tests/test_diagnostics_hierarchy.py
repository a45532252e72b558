"""What speaks for a cut: against plain sums over all pairs, walks by loops, and scikit-learn's Rand index."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from consilience.core.canonical import Rows, evenly
from consilience.core.certainty import certainty
from consilience.core.diffusion import diffuse, modularity
from consilience.inference import hierarchy
from tests.oracles import dal as oracle
from tests.oracles.hierarchy import plain_walk
from tests.planted import planted
from tests.rows import distinct_rows
from tests.test_dal import noisy


def halves_of(base, k_max=6, seed=0):
    return hierarchy.agreement_of_halves(distinct_rows(base)[0], k_max, np.random.RandomState(seed))


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
class TestAgainstLoops:
    def test_modularity(self, missing):
        _, base = noisy(3, missing=missing)
        base = np.repeat(base, np.arange(len(base)) % 3 + 1, axis=0)  # rows that stand for several
        rows, inverse = distinct_rows(base)
        kernel, s = diffuse(rows, certainty(rows, 0.4)), oracle.similarity(base, 0.4)
        for k in (1, 2, 5):
            labels = np.random.default_rng(k).permutation(np.arange(len(rows.codes)) % k)
            assert modularity(kernel, labels, k) == pytest.approx(
                oracle.modularity(s, labels[inverse]), abs=1e-13
            )

    def test_curve_of_cuts(self, missing):
        _, base = noisy(1, missing=missing)
        s = oracle.similarity(base, 0.4)
        stages = oracle.link(s)
        found = hierarchy.judge_cuts(distinct_rows(base)[0], 8)
        for k in range(2, 9):
            labels = oracle.assign(s, oracle.choose(stages, len(base), k, 0.1), max_iter=3)
            assert found.modularity[k - 1] == pytest.approx(oracle.modularity(s, labels), abs=1e-12)
            assert found.walk[k - 1] == pytest.approx(plain_walk(base, labels), abs=1e-12)
            assert found.smallest[k - 1] == pytest.approx(np.bincount(labels).min() / len(base))
        assert_allclose([each[0] for each in found], [0.0, 0.0, 1.0], atol=1e-12)


class TestCuts:
    def test_not_into_more_than_a_quarter_of_the_instances(self):
        found = hierarchy.judge_cuts(distinct_rows(noisy(1, n=45)[1])[0], 15)
        assert_array_equal(np.isfinite(found.modularity), np.arange(1, 16) <= 11)

    def test_many_rows_are_drawn(self, monkeypatch):
        rows, _ = distinct_rows(planted(1500, 8, 5, noise=0.3, missing=0.3, seed=0)[1])
        whole = hierarchy.judge_cuts(rows, 10)
        monkeypatch.setattr(hierarchy, "MAX_ROWS", 400)
        drawn = hierarchy.judge_cuts(rows, 10)
        assert 2 + drawn.modularity[1:].argmax() == 2 + whole.modularity[1:].argmax() == 5
        assert_allclose(drawn.modularity, whole.modularity, atol=0.05)
        assert not np.array_equal(drawn.modularity, whole.modularity)

    def test_counted_rows_are_repeated_rows(self):
        rows, _ = distinct_rows(planted(60, 6, 4, noise=0.3, missing=0.3, seed=0)[1])
        times = np.arange(len(rows.codes)) % 3 + 1
        counted = hierarchy.judge_cuts(Rows(rows.codes, rows.offsets, times), 6)
        spread = Rows(np.repeat(rows.codes, times, axis=0), rows.offsets, np.ones(times.sum(), dtype=int))
        for one, other in zip(counted, hierarchy.judge_cuts(spread, 6), strict=True):
            assert_allclose(one, other, atol=1e-12)


class TestHalves:
    def test_the_same_opinions_agree_and_noise_does_not(self):
        same = np.repeat(np.arange(60)[:, None] % 5, 6, axis=1)
        assert halves_of(same)[4] == 1.0
        noise = np.random.default_rng(0).integers(0, 4, (200, 8))
        assert np.abs(halves_of(noise)[1:]).max() < 0.2

    def test_weighted_index_is_that_of_repeated_instances(self):
        rng = np.random.default_rng(2)
        first, second, counts = rng.integers(-1, 4, 50), rng.integers(-1, 4, 50), rng.integers(1, 5, 50)
        both = np.repeat((first >= 0) & (second >= 0), counts)
        expected = adjusted_rand_score(np.repeat(first, counts)[both], np.repeat(second, counts)[both])
        assert hierarchy._adjusted_rand(first, second, counts, 4) == pytest.approx(expected)

    def test_halves_that_saw_nobody_in_common_say_nothing(self):
        base = np.full((40, 2), -1)
        base[:20, 0] = base[20:, 1] = np.arange(20) % 4
        assert np.isnan(halves_of(base)).all()

    def test_a_half_that_saw_nobody_of_a_sample_says_nothing(self, monkeypatch):
        base = np.column_stack([np.arange(100) % 4, np.full(100, -1)])
        base[:4, 1] = [0, 0, 1, 1]
        monkeypatch.setattr(hierarchy, "_COMPARED", 2)
        assert np.isnan(halves_of(base)).all()


def test_evenly_drawn_rows_stand_for_all():
    counts = np.array([1, 50, 1, 1, 30, 1, 16])
    places, drawn = evenly(counts, 5)
    assert drawn.sum() == 5
    assert_array_equal(drawn[np.isin(places, [1, 4])], [3, 1])
    assert_array_equal(evenly(counts, 7)[1], counts)
