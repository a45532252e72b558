"""Numbers of bases and clusters that follow from memberships: there and back, and draws by row."""

import numpy as np
from numpy.testing import assert_array_equal

from consilience.core.canonical import Numbering, canonical, row_draws
from tests.core.tables import OFFSETS, random_codes


def test_recoding_is_what_the_canonical_rows_have():
    codes = random_codes(80, missing=0.3)
    form = canonical(codes, OFFSETS, np.ones(80, dtype=np.int64))
    assert_array_equal(form.numbering.recode(codes)[form.order], form.rows.codes)
    assert_array_equal(Numbering.as_given(OFFSETS).recode(codes), codes)


def test_recoding_keeps_who_is_together():
    codes = random_codes(60, missing=0.3)
    numbering = canonical(codes, OFFSETS, np.ones(60, dtype=np.int64)).numbering
    new = numbering.recode(codes)
    for i, old in enumerate(numbering.bases):
        assert_array_equal(new[:, i] < 0, codes[:, old] < 0)
        together = codes[:, old][:, None] == codes[:, old]
        assert_array_equal(new[:, i][:, None] == new[:, i], together)


def test_draws_follow_from_the_row_alone_and_are_even():
    codes = np.random.default_rng(0).integers(-1, 50, (4000, 3))
    offsets = np.array([0, 50, 100, 150])
    draws = row_draws(codes, offsets)
    assert_array_equal(row_draws(codes[::-1], offsets), draws[::-1])
    assert draws.min() >= 0
    assert draws.max() < 1
    assert abs((draws < 0.25).mean() - 0.25) < 0.03
    assert abs(np.corrcoef(draws, codes[:, 0])[0, 1]) < 0.06
