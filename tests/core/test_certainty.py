"""Certainties and the co-association they weigh, against entropies taken one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience.core.canonical import Rows
from consilience.core.certainty import certain_coassociation, certainty
from tests.oracles.lw import plain_certainty, plain_coassociation
from tests.planted import planted
from tests.rows import distinct_rows


@pytest.mark.parametrize("theta", [0.1, 0.4, 4.0])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.8])
def test_certainty_equals_plain_version(theta, missing):
    _, base = planted(200, 6, 4, noise=0.3, missing=missing, seed=0)
    rows, _ = distinct_rows(base)
    assert_allclose(certainty(rows, theta), plain_certainty(base, theta), rtol=1e-12)


def test_certainty_by_hand():
    # Base 0 has one cluster of four; base 1 splits it in halves, base 2 keeps it together.
    codes = np.array([[0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 1, 0]])
    q = certainty(Rows(codes, np.array([0, 1, 3, 4]), np.ones(4)), theta=0.5)
    assert_allclose(q, [np.exp(-(1 / 3) / 0.5), 1.0, 1.0, np.exp(-(1 / 3) / 0.5)])


def test_bases_that_saw_no_member_have_no_say():
    # Cluster 0 of base 0 was seen by base 1 alone, which splits it: the mean is over two bases, not three.
    codes = np.array([[0, 0, -1], [0, 1, -1], [1, -1, 0], [1, -1, 0]])
    q = certainty(Rows(codes, np.array([0, 2, 4, 5]), np.ones(4)), theta=1.0)
    assert_allclose(q, [np.exp(-0.5), 1.0, 1.0, 1.0, 1.0])


def test_certainty_is_never_zero():
    _, base = planted(100, 5, 4, noise=0.9, missing=0.2, seed=0)
    rows, _ = distinct_rows(base)
    assert certainty(rows, theta=1e-6).min() > 0.0


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.8])
def test_coassociation_equals_plain_version(missing):
    _, base = planted(150, 6, 4, noise=0.3, missing=missing, seed=1)
    rows, inverse = distinct_rows(base)
    q = plain_certainty(base, 0.4)
    s = certain_coassociation(rows, q)
    expected = plain_coassociation(base, q)
    apart = inverse[:, None] != inverse[None]
    assert_allclose(s[np.ix_(inverse, inverse)][apart], expected[apart], atol=1e-12)
    assert_array_equal(s, s.T)
    assert_array_equal(np.diag(s), np.ones(len(s)))


def test_pairs_never_seen_together_are_as_alike_as_the_average():
    codes = np.array([[0, -1], [0, 0], [1, 0], [-1, 1]])
    offsets, q = np.array([0, 2, 4]), np.array([0.5, 1.0, 0.8, 1.0])
    # Instance pairs in both orders: base 0 has 4 + 1 of 9 together, base 1 as well.
    average = (0.5 * 4 + 1.0 + 0.8 * 4 + 1.0) / 18
    s = certain_coassociation(Rows(codes, offsets, np.ones(4)), q)
    assert_allclose(s[0, 3], 1.5 * (average - average / 3))
    assert_allclose(s[0, 2], 1.5 * (average / 2 - average / 3))  # seen together once, apart
    assert_allclose(s[0, 1], 1.5 * ((0.5 + average) / 2 - average / 3))
