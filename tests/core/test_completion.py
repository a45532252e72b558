"""Missing labels filled in: a plain loop, and labels that were hidden on purpose."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience import Partitions
from consilience.core.completion import complete_labels, shares
from tests.core.tables import KS, OFFSETS, offsets_of, random_codes


def plain_scores(codes, counts, labels, ks, n_clusters):
    """For every missing entry, the log posterior of its possible labels, up to a constant."""
    columns = [*codes.T.astype(int), labels]
    sizes = [*ks, n_clusters]

    def prior(i):
        average = np.array([counts[columns[i] == b].sum() for b in range(sizes[i])], dtype=float)
        return average / average.sum()

    def lift(j, a, i):
        rows = (columns[j] == a) & (columns[i] >= 0)
        carried = [counts[rows & (columns[i] == b)].sum() for b in range(sizes[i])]
        return np.log((carried + prior(i)) / (sum(carried) + 1.0) / prior(i))

    scores = {}
    for p, i in np.argwhere(codes < 0):
        voters = [j for j in range(len(columns)) if columns[j][p] >= 0]
        scores[p, i] = np.log(prior(i)) + sum(lift(j, columns[j][p], i) for j in voters)
    return scores


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("seed", range(3))
def test_against_a_plain_loop(dtype, seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(70, dtype=dtype, seed=seed)
    counts, labels = rng.integers(1, 6, 70), rng.integers(0, 3, 70).astype(np.int32)
    before = codes.copy()
    filled = complete_labels(codes, counts, OFFSETS, labels, 3)
    assert filled.dtype == dtype
    assert_array_equal(codes, before)
    assert_array_equal(filled[codes >= 0], codes[codes >= 0])
    scores = plain_scores(codes, counts, labels, KS, 3)
    assert len(scores) == np.count_nonzero(codes < 0)
    for (p, i), score in scores.items():
        assert score[filled[p, i]] >= score.max() - 1e-9  # equal up to rounding where labels tie


def test_shares_are_drawn_to_the_average():
    together, average = np.array([[6.0, 3.0, 0.0], [0.0, 0.0, 0.0]]), np.array([0.5, 0.25, 0.25])
    found = shares(together, average)
    assert_allclose(found, [[0.65, 0.325, 0.025], average])
    assert_allclose(found.sum(axis=1), 1.0)


def test_uninformative_labels_leave_the_prior_alone():
    # Base 1 was never seen together with base 0: only the consensus cluster speaks, not the averages again.
    codes = np.array([[0, -1], [0, -1], [1, -1], [-1, 0], [-1, 1], [-1, 1]], dtype=np.int8)
    labels = np.array([0, 0, 1, 0, 1, 1], dtype=np.int32)
    filled = complete_labels(codes, np.ones(6, dtype=int), np.array([0, 2, 4]), labels, 2)
    assert filled[:, 1].tolist() == [0, 0, 1, 0, 1, 1]


def test_counts_are_repeated_rows():
    rng = np.random.default_rng(4)
    codes, counts = random_codes(60, seed=4), rng.integers(1, 5, 60)
    labels = rng.integers(0, 3, 60).astype(np.int32)
    again = np.repeat(np.arange(60), counts)
    short = complete_labels(codes, counts, OFFSETS, labels, 3)
    long = complete_labels(codes[again], np.ones(len(again), dtype=int), OFFSETS, labels[again], 3)
    assert_array_equal(short[again], long)


def test_a_complete_table_stays():
    codes = random_codes(30, missing=0.0)
    filled = complete_labels(codes, np.ones(30, dtype=int), OFFSETS, np.zeros(30, dtype=np.int32), 1)
    assert_array_equal(filled, codes)


def test_a_row_that_nobody_saw_follows_its_consensus_cluster():
    codes = np.array([[0, 1], [0, 1], [1, 0], [1, 0], [-1, -1]], dtype=np.int8)
    labels = np.array([0, 0, 1, 1, 1], dtype=np.int32)
    filled = complete_labels(codes, np.ones(5, dtype=int), np.array([0, 2, 4]), labels, 2)
    assert filled[4].tolist() == [1, 0]


def test_the_other_labels_can_outvote_the_consensus():
    # Base 2 copies bases 0 and 1, and the consensus knows nothing.
    half = np.arange(40) % 2
    codes = np.column_stack([half, half, half]).astype(np.int8)
    codes[:3, 2] = -1
    filled = complete_labels(
        codes, np.ones(40, dtype=int), np.array([0, 2, 4, 6]), np.zeros(40, dtype=np.int32), 1
    )
    assert_array_equal(filled[:, 2], half)


@pytest.mark.parametrize("seed", range(3))
def test_hidden_labels_are_found_again(seed):
    rng = np.random.default_rng(seed)
    n, ks = 2000, (5, 5, 8, 3, 5, 6)
    truth = rng.integers(0, 5, n).astype(np.int32)
    tables = [np.concatenate([rng.permutation(min(k, 5)), rng.integers(0, k, max(5 - k, 0))]) for k in ks]
    full = np.column_stack([table[truth] for table in tables])
    noisy = rng.random(full.shape) < 0.1
    full[noisy] = np.column_stack([rng.integers(0, k, n) for k in ks])[noisy]
    hidden = rng.random(full.shape) < 0.3
    codes = np.where(hidden, -1, full).astype(np.int8)
    filled = complete_labels(codes, np.ones(n, dtype=int), offsets_of(ks), truth, 5)
    for i, k in enumerate(ks):
        found = np.mean(filled[hidden[:, i], i] == full[hidden[:, i], i])
        # A tenth is noise, of which one in k hits by chance; chance alone would give about 1 / 5.
        assert found > 0.9 + 0.1 / k - 0.05
    # Even where the consensus is useless, the other labels tell most of it.
    blind = complete_labels(codes, np.ones(n, dtype=int), offsets_of(ks), np.zeros(n, dtype=np.int32), 1)
    assert np.mean(blind[hidden] == full[hidden]) > 0.8


def test_clusters_and_bases_without_members_are_harmless():
    table = Partitions.of([[0, 0], [0, 0], [1, 1], [1, -1], [2, 1], [-1, 0]]).take([0, 1, 2, 3, 5])
    labels = np.array([0, 0, 1, 1, 0])
    filled = complete_labels(table.codes, np.ones(5, dtype=int), table.offsets, labels, 2)
    assert filled[3, 1] == 1
    assert filled[4, 0] == 0
    empty = Partitions.of([[0, 0], [0, -1], [1, -1]]).take([1, 2])
    filled = complete_labels(empty.codes, np.ones(2, dtype=int), empty.offsets, np.array([0, 1]), 2)
    assert (filled[:, 1] == 0).all()
