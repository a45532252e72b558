"""How far base clusterings follow from each other, against scikit-learn and by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_mutual_info_score

from consilience import Partitions
from consilience.inference.sharing import sharing


def plain(base, weights=None):
    """Pair by pair, with scikit-learn's exact chance level."""
    m = base.shape[1]
    weights = np.ones(m) if weights is None else np.asarray(weights, dtype=float)
    out = np.full(m, np.nan)
    for i in range(m):
        total, shared = 0.0, 0.0
        for j in range(m):
            both = (base[:, i] >= 0) & (base[:, j] >= 0)
            if i == j or not both.any():
                continue
            a, b = base[both, i], base[both, j]
            told = len(set(a)) > 1 and len(set(b)) > 1
            found = adjusted_mutual_info_score(a, b, average_method="min") if told else 0.0
            shared += weights[j] * both.sum() * max(0.0, found)
            total += weights[j] * both.sum()
        out[i] = shared / total if total else np.nan
    return out


def drawn(seed, missing=0.3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, 300)
    base = np.column_stack([truth, truth // 2, truth * 2 + rng.integers(0, 2, 300), rng.integers(0, 4, 300)])
    base = np.where(rng.random(base.shape) < 0.3, rng.integers(0, 5, base.shape), base)
    base[rng.random(base.shape) < missing] = -1
    base[(base < 0).all(axis=1), 0] = 0
    return base


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 2.0, 0.25]])
def test_it_is_the_mean_of_pairs(seed, weights):
    base = drawn(seed)
    table = Partitions.of(base).weighted(weights)
    assert_allclose(sharing(table), plain(base, weights), atol=0.01)


def test_resolutions_follow_from_each_other_and_a_stranger_from_nobody():
    rng = np.random.default_rng(0)
    fine = rng.integers(0, 40, 2_000)
    base = np.column_stack([fine, fine // 4, fine // 20, rng.integers(0, 6, 2_000)])
    found = sharing(Partitions.of(base))
    assert_allclose(found, [2 / 3, 2 / 3, 2 / 3, 0.0], atol=0.01)  # the stranger is one of three others
    assert_allclose(sharing(Partitions.of(base[:, :3])), 1.0, atol=1e-9)


def test_names_order_repeats_and_counts_change_nothing():
    base = drawn(5)
    found = sharing(Partitions.of(base))
    rng = np.random.default_rng(0)
    assert_allclose(sharing(Partitions.of(base[:, ::-1])), found[::-1], atol=1e-12)
    assert_allclose(sharing(Partitions.of(base[rng.permutation(300)])), found, atol=1e-12)
    assert_allclose(
        sharing(Partitions.of(np.where(base < 0, -1, rng.permutation(20)[base]))), found, atol=1e-12
    )
    assert_allclose(sharing(Partitions.of(base).distinct), found, atol=1e-12)


def test_a_weight_of_two_counts_like_a_copy_for_the_others():
    base = drawn(6)
    weighted = sharing(Partitions.of(base).weighted([2.0, 1.0, 1.0, 1.0]))
    copied = sharing(Partitions.of(np.column_stack([base, base[:, 0]])))
    assert_allclose(weighted[1:], copied[1:4], atol=1e-12)


def test_who_says_nothing_or_shares_nobody_is_not_known():
    base = [["a", None, "x", "p"], ["b", None, "x", "q"], ["a", None, "x", "p"]] * 4
    lone = Partitions.of([*base, [None, 0, None, None], [None, 1, None, None]])
    found = sharing(lone)
    assert np.isnan(found[[1, 2]]).all()
    assert_allclose(found[[0, 3]], 1.0)
    assert np.isnan(sharing(Partitions.of([["a"], ["b"], ["a"]]))).all()


def test_few_instances_in_common_say_nothing():
    base = np.array([[0, 0, 0], [1, 1, 1]] * 5)
    assert_allclose(sharing(Partitions.of(base)), 1.0)
    assert np.isnan(sharing(Partitions.of(base[:9]))).all()
    apart = base.copy()
    apart[:5, 2] = -1  # the third has five in common with the others, who have ten with each other
    found = sharing(Partitions.of(apart))
    assert np.isnan(found).tolist() == [True, True, True]
    longer = np.vstack([base, base])
    longer[:11, 2] = -1
    assert np.isnan(sharing(Partitions.of(longer))).tolist() == [False, False, True]
