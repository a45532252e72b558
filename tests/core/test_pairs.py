"""Agreeing pairs and their bits, against plain comparisons of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience.core import blocks
from consilience.core.pairs import agreeing_pairs, byte_sums, per_base, sum_over_bases


def table(n_bases, missing, seed=0, n_rows=90, dtype=np.int8):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 6, (n_rows, n_bases))
    codes[rng.random(codes.shape) < missing] = -1
    return codes.astype(dtype)


def bits(pairs, n_bases):
    return np.unpackbits(pairs.agree, axis=1, bitorder="little")[:, :n_bases].astype(bool)


@pytest.mark.parametrize("n_bases", [1, 3, 8, 9, 70])
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_against_plain_comparison(n_bases, missing):
    codes = table(n_bases, missing)
    pairs = agreeing_pairs(codes)
    same = (codes[:, None] == codes[None]) & (codes[:, None] >= 0)
    both = (codes[:, None] >= 0) & (codes[None] >= 0)
    left, right = np.nonzero(np.triu(same.any(axis=2), 1))
    assert_array_equal(pairs.left, left)
    assert_array_equal(pairs.right, right)
    assert_array_equal(bits(pairs, n_bases), same[left, right])
    assert_array_equal(pairs.certain, (same == both).all(axis=2)[left, right])

    values = np.random.default_rng(1).random(n_bases)
    agreeing, together = sum_over_bases(pairs, values)
    assert_allclose(agreeing, same[left, right] @ values)
    assert_allclose(together, both[left, right] @ values)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_kinds_of_codes_change_nothing(dtype):
    expected, found = agreeing_pairs(table(5, 0.3)), agreeing_pairs(table(5, 0.3, dtype=dtype))
    for one, other in zip(expected, found, strict=True):
        assert_array_equal(one, other)


def test_threads_change_nothing(monkeypatch):
    codes = table(12, 0.2, n_rows=700)
    monkeypatch.setattr(blocks, "n_threads", lambda: 1)
    one = agreeing_pairs(codes)
    monkeypatch.setattr(blocks, "n_threads", lambda: 3)
    for a, b in zip(one, agreeing_pairs(codes), strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("n_bases", [1, 8, 11])
def test_byte_sums_and_their_transpose(n_bases):
    rng = np.random.default_rng(0)
    values = rng.random(n_bases)
    sums = byte_sums(values)
    byte = 0b1001_0101
    assert sums[0, byte] == pytest.approx(sum(values[j] for j in (0, 2, 4, 7) if j < n_bases))
    totals = rng.random(sums.shape)
    assert per_base(totals, n_bases) @ values == pytest.approx(np.sum(totals * sums))


def test_no_pair_agrees():
    pairs = agreeing_pairs(np.array([[0], [1], [2]], dtype=np.int8))
    assert len(pairs.left) == 0
    assert pairs.agree.shape == (0, 1)
