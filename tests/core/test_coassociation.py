"""Counts of agreement against plain loops over pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience.core.coassociation import agreement, coassociation, coobservation
from consilience.core.tables import indicator
from tests.core.tables import OFFSETS, random_codes


def loops(codes):
    n = len(codes)
    together, shared = np.zeros((n, n)), np.zeros((n, n))
    for p in range(n):
        for q in range(n):
            for a, b in zip(codes[p], codes[q], strict=True):
                together[p, q] += a >= 0 and b >= 0
                shared[p, q] += a >= 0 and a == b
    return together, shared


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("dtype", [np.int8, np.int32])
def test_against_plain_loops(missing, dtype):
    codes = random_codes(40, missing=missing, dtype=dtype)
    b, observed = indicator(codes, OFFSETS), codes >= 0
    together, shared = loops(codes)
    assert_array_equal(agreement(b).toarray(), shared)
    assert_array_equal(coobservation(observed), together)
    assert_allclose(coassociation(b, observed, normalize="partitions"), shared / 4, rtol=1e-15)
    expected = np.array(
        [
            [s / t if t else np.nan for s, t in zip(*row, strict=True)]
            for row in zip(shared, together, strict=True)
        ]
    )
    found = coassociation(b, observed, normalize="pairs")
    assert_allclose(found, expected, rtol=1e-15, equal_nan=True)
    assert np.isnan(found).any() == (together == 0).any()
    assert found.dtype == np.float64


def test_agreement_stays_sparse():
    codes = np.arange(1000)[:, None]
    assert agreement(indicator(codes, np.array([0, 1000]))).nnz == 1000


def test_coassociation_is_exact_for_many_clusterings():
    # A third is not a float32: counts may be, shares may not.
    codes = np.zeros((2, 3), dtype=np.int8)
    codes[1, 1:] = 1
    share = coassociation(indicator(codes, np.array([0, 2, 4, 6])), codes >= 0, normalize="pairs")[0, 1]
    assert share == 1.0 / 3.0
