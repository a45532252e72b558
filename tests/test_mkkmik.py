"""MKKMIK against the plain version in `oracles`, the authors' outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from consilience import MKKMIK
from consilience.core.kernels import multiply
from consilience.multiview.mkkm import fill_absent
from consilience.multiview.mkkmik import mkkmik
from consilience.multiview.rows import unit_rows
from tests.oracles.late_fusion import centred_and_scaled, gaussian, plain_mkkmik
from tests.test_eeimvc import noisy, projector
from tests.test_mkkm import assert_agrees, authors_kernels, kernels_of


def plainly(views, observed, k, n_sweeps):
    rows = [np.flatnonzero(seen) for seen in observed.T]
    blocks = [centred_and_scaled(gaussian(view[r])) for view, r in zip(views, rows, strict=True)]
    return plain_mkkmik(blocks, rows, len(observed), k, n_sweeps=n_sweeps)


def test_equals_plain_version():
    views, observed, _, _ = noisy()
    slow = plainly(views, observed, 4, 10)
    kernels = kernels_of(views, observed)
    fast = mkkmik(kernels, 4, max_iter=10, tol=0.0)
    assert_allclose(projector(fast.found.vectors), projector(slow.h), atol=1e-10)
    assert_allclose(fast.weights, slow.weights, atol=1e-10)
    assert_allclose(fast.objective, slow.objective, rtol=1e-10)
    for kernel, fill, expected in zip(
        kernels, fill_absent(kernels, fast.found.vectors), slow.hs, strict=True
    ):
        assert_allclose(multiply(kernel, np.eye(120), fill), expected, atol=1e-10)


def test_large_and_small_problems_agree():
    """Beyond 300 instances eigenvectors are found by iteration."""
    views, observed, _, _ = noisy(n=700)
    slow = plainly(views, observed, 4, 4)
    fast = mkkmik(kernels_of(views, observed), 4, max_iter=4, tol=0.0)
    assert_allclose(projector(fast.found.vectors), projector(slow.h), atol=1e-6)
    assert_allclose(fast.weights, slow.weights, rtol=1e-6)


@pytest.mark.fixtures
@pytest.mark.data
@pytest.mark.parametrize("name", ["msrc_r30", "msrc_r50", "bbcsk_r30"])
def test_equals_authors_program(fixtures_folder, data_folder, name):
    with np.load(fixtures_folder / f"kernelmethods_{name}.npz") as file:
        fixture = dict(file)
    found, *moved = (
        mkkmik(authors_kernels(fixture, name, seed), int(fixture["k"]), max_iter=31, tol=1e-4)
        for seed in (None, 0, 1)
    )
    assert found.converged
    assert_agrees(found.objective, fixture["obj_ik"], [other.objective for other in moved])
    assert_agrees(found.weights, fixture["w_ik"], [other.weights for other in moved])
    ours, *others = (projector(unit_rows(each.found.vectors)) for each in (found, *moved))
    assert_agrees(ours, projector(fixture["H_ik"]), others)


@pytest.mark.parametrize("seed", range(3))
def test_objective_never_grows(seed):
    views, observed, _, _ = noisy(missing=0.4, seed=seed)
    objective = mkkmik(kernels_of(views, observed), 4, max_iter=25, tol=0.0).objective
    assert np.diff(objective).max() <= 1e-8 * objective[0]


def test_observed_similarities_stay_and_imputed_kernels_are_positive_semidefinite():
    views, observed, _, _ = noisy()
    kernels = kernels_of(views, observed)
    found = mkkmik(kernels, 4, max_iter=10, tol=0.0)
    for kernel, fill in zip(kernels, fill_absent(kernels, found.found.vectors), strict=True):
        whole = multiply(kernel, np.eye(120), fill)
        assert_allclose(whole[np.ix_(kernel.rows, kernel.rows)], kernel.block, atol=1e-12)
        assert np.linalg.eigvalsh(whole)[0] > -1e-10


def test_factors_and_blocks_agree():
    """A linear kernel is a factor, its precomputed form a block."""
    views, observed, _, _ = noisy()
    tables = []
    for view, seen in zip(views, observed.T, strict=True):
        table = np.full((120, 120), np.nan)
        table[np.ix_(seen, seen)] = view[seen] @ view[seen].T
        tables.append(table)
    model = MKKMIK(4, kernel="linear", random_state=0).fit(views, mask=observed)
    other = MKKMIK(4, kernel="precomputed", random_state=0).fit(tables)
    assert_allclose(projector(model.embedding_), projector(other.embedding_), atol=1e-6)
    assert_allclose(model.view_weights_, other.view_weights_, atol=1e-8)


def test_complete_views_need_no_imputation():
    views, _, _, _ = noisy()
    model = MKKMIK(4, random_state=0).fit(views)
    assert model.n_iter_ >= 3
    assert len(np.unique(model.labels_)) == 4
