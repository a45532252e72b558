"""Grouping by blocks equals grouping at once."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from consilience.core import grouping
from consilience.core.grouping import find_rows, group, index_rows


@pytest.mark.parametrize("n_distinct", [1, 5, 400, 100_000])
@pytest.mark.parametrize("block_rows", [7, 100, 2000])
def test_equals_numpy(n_distinct, block_rows, monkeypatch):
    monkeypatch.setattr(grouping, "_GROUP_ROWS", block_rows)
    keys = np.random.default_rng(0).integers(-(2**62), 2**62, n_distinct)[
        np.random.default_rng(1).integers(0, n_distinct, 1500)
    ]
    values, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    found = group(keys)
    assert_array_equal(found.values, values)
    assert_array_equal(found.counts, counts)
    assert_array_equal(found.inverse, inverse)
    assert_array_equal(found.values[found.inverse], keys)
    assert found.counts.dtype == np.int64


def test_one_entry():
    assert [part.tolist() for part in group(np.array([7]))] == [[7], [1], [0]]


def test_rows_are_found_again():
    rng = np.random.default_rng(0)
    known, new = rng.integers(-1, 3, (60, 4)).astype(np.int8), rng.integers(-1, 3, (200, 4)).astype(np.int8)
    weights = rng.integers(1, 9, 60)
    found = find_rows(index_rows(known, weights), new)
    for row, place in zip(new, found, strict=True):
        equal = np.flatnonzero((known == row).all(axis=1))
        assert place == (equal[np.argmax(weights[equal])] if len(equal) else -1)
    assert (found >= 0).any()
    assert (found < 0).any()


@pytest.mark.parametrize("k", [3, 2_000])
def test_rows_are_found_also_where_their_numbers_overflow(k):
    rng = np.random.default_rng(0)
    codes = np.unique(rng.integers(-1, k, (500, 9)), axis=0)
    index = index_rows(codes, np.ones(len(codes)))
    order = rng.permutation(len(codes))
    assert_array_equal(find_rows(index, codes[order]), order)
    assert find_rows(index, np.full((1, 9), k - 1)).tolist() == [-1]


def test_rows_that_share_a_key_are_not_taken_for_equal(monkeypatch):
    monkeypatch.setattr(grouping, "_hashed", lambda codes: np.zeros(len(codes), dtype=np.uint64))
    index = index_rows(np.array([[0, 1]]), np.ones(1))
    assert find_rows(index, np.array([[0, 1], [1, 0]])).tolist() == [0, -1]
