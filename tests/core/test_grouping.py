"""Grouping by blocks equals grouping at once."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from consilience.core import grouping
from consilience.core.grouping import group


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
