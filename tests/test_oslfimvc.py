"""OSLFIMVC against the plain version in `oracles`, the authors' outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from consilience import OSLFIMVC
from consilience.core.kernels import leading_eigenvectors
from consilience.multiview.oslfimvc import oslfimvc
from consilience.multiview.rows import unit_rows
from tests.oracles.late_fusion import plain_oslfimvc, polar
from tests.test_common_views import clear_views
from tests.test_eeimvc import noisy
from tests.test_mkkm import assert_agrees, authors_kernels

SETTINGS = {"regularization": 1.0, "init": "aligned", "max_iter": 100, "tol": 1e-4}

# Where a cluster has no member among the missing rows of a view, those rows are not unique, and neither are
# the authors' outputs: all of msrc_r30, and bbcsk_r50 at the second lambda.
STRICT = [("msrc_r90_c3", (0, 1, 2)), ("bbcsk_r50_c2", (0, 2))]


def first_centers(prior):
    return polar(KMeans(4, n_init=5, random_state=0).fit(unit_rows(prior)).cluster_centers_)


def solve(bases, observed, prior, centers=None, **options):
    centers = first_centers(prior) if centers is None else centers
    return oslfimvc(bases, observed, prior, centers, **{**SETTINGS, **options})


def with_authors_signs(vectors):
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])


@pytest.mark.parametrize("lam", [0.0, 1.0, 8.0])
def test_equals_plain_version(lam):
    _, observed, bases, prior = noisy()
    slow = plain_oslfimvc(bases, observed, prior, first_centers(prior), lam, n_sweeps=6)
    fast = solve(bases, observed, prior, regularization=lam, init="identity", max_iter=6, tol=0.0)
    assert_allclose(fast.centers[fast.labels], slow.h, atol=1e-8)
    assert_allclose(fast.weights, slow.weights, atol=1e-8)
    assert_allclose(fast.objective, slow.objective, rtol=1e-10)


@pytest.mark.fixtures
@pytest.mark.data
@pytest.mark.parametrize(("name", "indices"), STRICT)
def test_equals_authors_program(fixtures_folder, data_folder, name, indices):
    with np.load(fixtures_folder / f"oslf_{name}.npz") as file:
        fixture = dict(file)
    k, observed = int(fixture["k"]), fixture["mask"].astype(bool)
    starts = []
    for seed in (None, 0, 1):
        kernels = authors_kernels(fixture, name, seed)
        parts = [leading_eigenvectors([kernel], k) for kernel in kernels]
        bases = [with_authors_signs(found.vectors) for found in parts]
        starts.append((bases, observed, with_authors_signs(leading_eigenvectors(kernels, k).vectors)))
    for i in indices:
        options = {"regularization": fixture["lambdas"][i], "init": "identity", "max_iter": 101}
        found, *moved = (solve(*start, fixture["C0"], **options) for start in starts)
        assert adjusted_rand_score(found.labels, fixture[f"labels_{i}"]) == 1.0
        assert_agrees(found.objective, fixture[f"obj_{i}"], [other.objective for other in moved])
        assert_agrees(found.weights, fixture[f"beta_{i}"], [other.weights for other in moved])
        assert_agrees(found.centers, fixture[f"C_{i}"], [other.centers for other in moved])


@pytest.mark.parametrize("init", ["aligned", "identity"])
@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_objective_never_falls(init, lam):
    for seed in range(3):
        _, observed, bases, prior = noisy(seed=seed)
        objective = solve(
            bases, observed, prior, regularization=lam, init=init, tol=0.0, max_iter=30
        ).objective
        assert np.diff(objective).min() >= -1e-10 * objective[-1]


def test_constraints_hold():
    _, observed, bases, prior = noisy()
    found = solve(bases, observed, prior)
    for matrix in (found.centers, *found.rotations):
        assert_allclose(matrix.T @ matrix, np.eye(4), atol=1e-10)
    assert_allclose(np.linalg.norm(found.weights), 1.0)
    for p, h in enumerate(found.imputed):
        assert_array_equal(h[observed[:, p]], bases[p][observed[:, p]])


def test_signs_and_rotations_of_the_base_embeddings_change_nothing():
    _, observed, bases, prior = noisy()
    rng = np.random.default_rng(7)
    turned = [h @ np.linalg.qr(rng.standard_normal((4, 4)))[0] for h in bases]
    found, other = solve(bases, observed, prior), solve(turned, observed, prior)
    assert_array_equal(found.labels, other.labels)
    assert_allclose(found.objective, other.objective, rtol=1e-8)


def test_no_cluster_is_empty_even_where_the_optimum_has_fewer():
    rng = np.random.default_rng(0)
    views = [np.repeat([[0.0, 0.0], [9.0, 9.0]], 20, axis=0) + 1e-3 * rng.standard_normal((40, 2))] * 2
    model = OSLFIMVC(5, kernel="linear", random_state=0).fit(views)
    assert_array_equal(np.unique(model.labels_), np.arange(5))


def test_weights_tell_a_view_of_noise():
    _, views, observed = clear_views()
    rng = np.random.default_rng(0)
    model = OSLFIMVC(3, random_state=0).fit(
        [*views, rng.standard_normal((90, 4))], mask=np.column_stack([observed, np.ones(90, dtype=bool)])
    )
    assert model.view_weights_.argmin() == 2
