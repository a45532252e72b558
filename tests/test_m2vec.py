"""What M2VEC adds to MVEC: maps that restore a corrupted view. The rest is in `test_mvec`."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from consilience import M2VEC
from consilience.consensus import m2vec as module
from tests.oracles.mvec import restoring_map
from tests.planted import planted


def test_restoring_map_minimises_the_mean_over_corrupted_copies():
    rng = np.random.default_rng(0)
    x = rng.random((6, 6))
    x = x + x.T
    target, y, mu, p = rng.random((6, 6)), rng.normal(size=(6, 6)), 0.3, 0.4
    move = module._restoring(x[None], np.ones(6), p)
    found = move(target[None], y[None], mu)[0]
    assert_allclose(found, restoring_map(x, target, y, mu, p), atol=1e-10)
    # The closed form is the mean over copies: many of them give nearly the same loss.
    copies = (rng.random((20_000, 6, 6)) >= p) * x / (1 - p)
    loss = np.mean(np.sum((x - found @ copies) ** 2, axis=(1, 2)))
    gram = x @ x.T
    closed = np.sum((x - found @ x) ** 2) + p / (1 - p) * np.sum(found**2 * np.diag(gram))
    assert_allclose(closed, loss, rtol=0.02)

    def objective(w):
        spread = np.sum((x - w @ x) ** 2) + p / (1 - p) * np.sum(w**2 * np.diag(gram))
        return spread / np.sum(x**2) + np.sum(y * (w - target)) + mu / 2 * np.sum((w - target) ** 2)

    for _ in range(20):
        assert objective(found) < objective(found + 1e-2 * rng.normal(size=(6, 6)))


def test_rows_that_a_view_did_not_see_are_not_restored():
    rng = np.random.default_rng(0)
    x = rng.random((5, 5))
    x = x + x.T
    x[2] = x[:, 2] = 0.0
    target, y = rng.random((5, 5)), rng.normal(size=(5, 5))
    found = module._restoring(x[None], np.ones(5), 0.5)(target[None], y[None], 2.0)[0]
    assert_allclose(found[2], target[2] - y[2] / 2.0)
    assert not np.allclose(found[0], target[0] - y[0] / 2.0)


def test_without_corruption_a_view_may_restore_itself():
    _, base = planted(30, 6, 3, noise=0.2, missing=0.0, seed=0)
    x = np.mean([column[:, None] == column for column in base.T], axis=0)
    maps = [
        module._restoring(x[None], np.ones(30), corruption)(
            np.zeros((1, 30, 30)), np.zeros((1, 30, 30)), 1e-9
        )
        for corruption in (0.0, 0.5)
    ]
    assert_allclose(maps[0][0] @ x, x, atol=1e-4)
    # Entries that may be lost cannot be relied on alone: the map spreads over alike instances.
    assert np.diag(maps[1][0]).max() < 0.9


@pytest.mark.parametrize("corruption", [-0.1, 1.0])
def test_chances_outside_their_range_are_refused(corruption):
    with pytest.raises(ValueError, match=r"The 'corruption' parameter of M2VEC must be a float in the range"):
        M2VEC(2, corruption=corruption).fit([["a", "b"], ["c", "d"]])


@pytest.mark.parametrize("seed", range(6))
def test_small_tables_with_gaps_have_an_answer(seed):
    rng = np.random.default_rng(seed)
    base = np.where(rng.random((24, 5)) < 0.2 * (seed % 4), -1, rng.integers(0, 2 + seed, (24, 5)))
    base[(base < 0).all(axis=1), 0] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = M2VEC(3, views=[0, 0, 1, 1, 1], max_iter=50, random_state=0).fit(base)
    assert len(np.unique(model.labels_)) == 3
