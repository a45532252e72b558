"""LFIMVC against the plain version in `oracles`, the authors' outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience import LFIMVC
from consilience.multiview.lfimvc import lfimvc
from consilience.multiview.rows import unit_rows
from tests.oracles.late_fusion import plain_lfimvc
from tests.test_eeimvc import noisy, projector


def solve(bases, **options):
    return lfimvc(
        bases, **{"regularization": 1.0, "init": "aligned", "max_iter": 200, "tol": 1e-4, **options}
    )


@pytest.mark.parametrize("lam", [0.125, 1.0, 8.0])
def test_equals_plain_version(lam):
    _, _, bases, _ = noisy()
    slow = plain_lfimvc(bases, lam, n_sweeps=12)
    fast = solve(bases, regularization=lam, init="identity", max_iter=12, tol=0.0)
    assert_allclose(fast.embedding, slow.h, atol=1e-10)
    assert_allclose(fast.objective, slow.objective, rtol=1e-12)


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["msrc_r30", "msrc_r50", "bbcsk_r30"])
def test_equals_authors_program(fixtures_folder, name):
    with np.load(fixtures_folder / f"kernelmethods_{name}.npz") as file:
        bases = list(np.moveaxis(file["HP0_rownormalised"], 2, 0))
        for i, lam in enumerate(file["lf_lambdas"]):
            found = solve(bases, regularization=lam, init="identity", max_iter=201)
            assert_allclose(unit_rows(found.embedding), unit_rows(file[f"H_lf_{i}"]), atol=1e-10)
            assert_allclose(found.objective, file[f"obj_lf_{i}"], rtol=1e-12)


@pytest.mark.parametrize("init", ["aligned", "identity"])
@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_objective_never_falls(init, lam):
    for seed in range(3):
        _, _, bases, _ = noisy(seed=seed, missing=0.5)
        objective = solve(bases, regularization=lam, init=init, max_iter=40, tol=0.0).objective
        assert np.diff(objective).min() >= -1e-10 * objective[-1]


def test_constraints_hold():
    _, _, bases, _ = noisy()
    found = solve(bases)
    for h in (found.embedding, *found.imputed, *found.rotations):
        assert_allclose(h.T @ h, np.eye(4), atol=1e-10)


def test_signs_and_rotations_of_the_base_embeddings_change_nothing():
    _, _, bases, _ = noisy()
    rng = np.random.default_rng(7)
    turned = [h @ np.linalg.qr(rng.standard_normal((4, 4)))[0] for h in bases]
    flipped = [h * rng.choice([-1.0, 1.0], 4) for h in bases]
    found = solve(bases)
    for others in (turned, flipped):
        other = solve(others)
        assert other.n_iter == found.n_iter
        assert_allclose(projector(other.embedding), projector(found.embedding), atol=1e-8)


def test_strong_regularization_keeps_the_views():
    """H_p stays at the orthonormal matrix nearest to what the view said."""
    _, _, bases, _ = noisy(missing=0.0)
    found = solve(bases, regularization=1e6)
    for moved, base in zip(found.imputed, bases, strict=True):
        assert_allclose(moved, base, atol=1e-4)


def test_estimator_is_its_function():
    views, observed, bases, _ = noisy()
    model = LFIMVC(4, random_state=0).fit(views, mask=observed)
    assert_allclose(projector(model.embedding_), projector(solve(bases).embedding), atol=1e-7)
    ready = LFIMVC(4, kernel="embedding", random_state=0).fit(bases, mask=observed)
    assert_array_equal(ready.labels_, model.labels_)


def test_fewer_observed_rows_than_clusters():
    views, observed, _, _ = noisy()
    observed = np.ones_like(observed)
    observed[2:, 1] = False
    model = LFIMVC(4, random_state=0).fit(views, mask=observed)
    assert np.isfinite(model.embedding_).all()
    assert len(np.unique(model.labels_)) == 4
