"""Affinities of low-rank representations."""

import numpy as np
from numpy.testing import assert_allclose

from consilience.core.lowrank import angular_affinity


def test_a_decomposition_that_gives_up_is_done_another_way(monkeypatch):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(20, 3)) @ rng.normal(size=(3, 20))
    expected = angular_affinity(matrix)

    def gives_up(*_):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", gives_up)
    assert_allclose(angular_affinity(matrix), expected, atol=1e-10)
