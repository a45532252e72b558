"""USENC: published figures of its consensus function, and its relation to HBGF."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience import HBGF, USENC
from tests.oracles.consensus import plain_hbgf
from tests.planted import planted
from tests.pools import first_ten, nmi


@pytest.mark.data
@pytest.mark.parametrize(
    ("pool", "expected"),
    [("LWEA_VS", 0.123), ("LWEA_Semeion", 0.648), ("Zhou_Lung", 0.582), ("RCE_Yale", 0.463)],
)
def test_quality_on_pools(data_folder, pool, expected):
    table, y = first_ten(pool)
    found = [nmi(USENC(len(np.unique(y)), random_state=seed), table, y) for seed in range(3)]
    assert abs(np.mean(found) - expected) < 0.03


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_embedding_equals_plain_version(missing):
    _, base = planted(120, 6, 4, noise=0.25, missing=missing, seed=0)
    slow, fast = plain_hbgf(base, 4), USENC(4, random_state=0).fit(base).embedding_
    assert_allclose(fast @ fast.T, slow @ slow.T, atol=1e-8)


def test_is_hbgf_with_as_many_starts():
    _, base = planted(200, 7, 4, noise=0.25, missing=0.3, seed=0)
    same = HBGF(4, n_init=3, random_state=0)
    assert_array_equal(USENC(4, random_state=0).fit_predict(base), same.fit_predict(base))


def test_one_row_or_one_cluster():
    assert_array_equal(USENC(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(USENC(1).fit_predict([["a"], ["b"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert USENC(2, unobserved="noise").fit(base).labels_[3] == -1
    assert USENC(2, unobserved="largest").fit(base).labels_[3] == 0
