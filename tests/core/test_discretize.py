"""Rotation of embeddings to labels: planted answers, invariances, and laws of the pieces."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from consilience.core import discretize
from consilience.core.discretize import assign, fill_empty_clusters, label_sums, rotate, spectral_rotation
from consilience.core.stiefel import orthonormalize
from tests.core.tables import orthogonal


def planted(n, c, *, noise=0.0, seed=0):
    """Truth, an embedding H^T W H = I of it in a random basis, and the weights W."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.arange(c), rng.choice(c, n - c, p=np.arange(1, c + 1) / (c * (c + 1) / 2))])
    rng.shuffle(truth)
    weights = rng.integers(1, 5, n).astype(float)
    y = np.eye(c)[truth] + noise * rng.standard_normal((n, c))
    return truth, orthonormalize(y, weights) @ orthogonal(c, rng), weights


def rotated(h, weights, n_init=5, seed=0):
    return spectral_rotation(h, weights, n_init=n_init, rng=np.random.RandomState(seed))


def same(labels, truth):
    return adjusted_rand_score(labels, truth) == 1.0


# --- the whole ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_planted_one_hot_rows_are_found_from_any_start(c, seed):
    truth, h, weights = planted(80, c, seed=seed)
    for start in (0, 40, 79):
        found = spectral_rotation(h, weights, n_init=1, rng=np.random.RandomState(0), starts=[start])
        assert same(found.labels, truth)
        # Rows of norm one lie on the axes: alignment is the number of instances.
        assert found.fit == pytest.approx(weights.sum())
        assert_allclose(found.rotation @ found.rotation.T, np.eye(c), atol=1e-12)


def test_labels_rotation_and_fit_belong_together():
    _, h, weights = planted(200, 4, noise=0.3)
    found = rotated(h, weights)
    scores = h / np.linalg.norm(h, axis=1, keepdims=True) @ found.rotation
    assert_array_equal(found.labels, scores.argmax(axis=1))
    assert found.fit == pytest.approx(weights @ scores.max(axis=1))


def test_a_common_rotation_of_the_embedding_changes_nothing():
    _, h, weights = planted(300, 5, noise=0.3)
    for seed in range(3):
        turn = orthogonal(5, np.random.default_rng(seed))
        plain, turned = rotated(h, weights, n_init=1), rotated(h @ turn, weights, n_init=1)
        assert_array_equal(turned.labels, plain.labels)
        assert_allclose(turn @ turned.rotation, plain.rotation, atol=1e-8)
        # Of several starts, rounding may choose another one that fits equally well.
        plain, turned = rotated(h, weights), rotated(h @ turn, weights)
        assert same(turned.labels, plain.labels)
        assert turned.fit == pytest.approx(plain.fit)


def test_permuting_rows_permutes_labels():
    _, h, weights = planted(300, 5, noise=0.3)
    order = np.random.default_rng(1).permutation(300)
    for seed in range(5):
        plain = rotated(h, weights, n_init=1, seed=seed)
        shuffled = rotated(h[order], weights[order], n_init=1, seed=seed)
        assert_array_equal(shuffled.labels, plain.labels[order])
    assert same(rotated(h[order], weights[order]).labels, rotated(h, weights).labels[order])


def test_weights_are_repeated_rows():
    _, h, weights = planted(200, 4, noise=0.3)
    again = np.repeat(np.arange(200), weights.astype(int))
    ones = np.ones(len(again))
    for seed in range(5):
        short = rotated(h, weights, n_init=1, seed=seed)
        long = rotated(h[again], ones, n_init=1, seed=seed)
        assert_array_equal(short.labels[again], long.labels)
        assert_allclose(short.rotation, long.rotation, atol=1e-8)
        assert short.fit == pytest.approx(long.fit)
    short, long = rotated(h, weights), rotated(h[again], ones)
    assert same(short.labels[again], long.labels)
    assert short.fit == pytest.approx(long.fit)


def test_the_scale_of_rows_does_not_matter():
    _, h, weights = planted(200, 4, noise=0.3)
    scale = np.random.default_rng(2).uniform(0.1, 10.0, (200, 1))
    starts = [3, 50]
    plain = spectral_rotation(h, weights, n_init=1, rng=np.random.RandomState(0), starts=starts)
    scaled = spectral_rotation(h * scale, weights, n_init=1, rng=np.random.RandomState(0), starts=starts)
    assert_array_equal(plain.labels, scaled.labels)


def test_the_best_of_the_given_starts_is_kept():
    _, h, weights = planted(150, 6, noise=0.5, seed=3)
    rng = np.random.RandomState(0)
    alone = [spectral_rotation(h, weights, n_init=1, rng=rng, starts=[p]).fit for p in range(40)]
    assert max(alone) > min(alone) + 1e-6  # else the choice could not be seen
    together = spectral_rotation(h, weights, n_init=1, rng=rng, starts=range(40))
    assert together.fit == pytest.approx(max(alone))


def test_more_drawn_starts_never_fit_worse():
    _, h, weights = planted(150, 6, noise=0.5, seed=3)
    fits = [rotated(h, weights, n_init=n_init).fit for n_init in (1, 3, 10, 30)]
    assert fits == sorted(fits)
    assert fits[-1] > fits[0]


def test_starts_are_drawn_by_weight():
    # All weight on one planted row: whatever is drawn, it is that row, and nothing else counts as a start.
    _, h, weights = planted(100, 3, noise=0.3)
    heavy = weights.copy()
    heavy[17] = 1e12
    found = rotated(h, heavy, n_init=3)
    only = spectral_rotation(h, heavy, n_init=1, rng=np.random.RandomState(0), starts=[17])
    assert_array_equal(found.labels, only.labels)


def test_rows_without_direction_do_no_harm():
    truth, h, weights = planted(100, 4)
    h = np.vstack([h, np.zeros((10, 4))])
    found = rotated(h, np.append(weights, np.ones(10)))
    assert same(found.labels[:100], truth)
    assert np.isfinite(found.rotation).all()
    assert found.fit == pytest.approx(weights.sum())


@pytest.mark.parametrize("rows", [30, 100])
def test_a_sample_of_rows_is_enough_on_clean_data(monkeypatch, rows):
    truth, h, weights = planted(600, 4, noise=0.05)
    whole = rotated(h, weights)
    assert same(whole.labels, truth)
    monkeypatch.setattr(discretize, "SAMPLE_ROWS", rows)
    sampled = rotated(h, weights)
    assert len(sampled.labels) == 600
    assert same(sampled.labels, truth)
    assert sampled.fit == pytest.approx(whole.fit)
    order = np.random.default_rng(0).permutation(600)
    assert same(rotated(h[order], weights[order]).labels, truth[order])


# --- its pieces ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_no_sweep_decreases_the_fit(seed):
    rng = np.random.default_rng(seed)
    h, weights = rng.standard_normal((120, 4)), rng.random(120) + 0.5
    rotation, labels = orthogonal(4, rng), np.full(120, -1, dtype=np.int32)
    labels, _, fit = assign(h, rotation, weights, labels)
    for _ in range(50):
        rotation = rotate(h, weights, labels, 4)
        between = np.sum(weights * (h @ rotation)[np.arange(120), labels])
        assert between >= fit - 1e-10
        labels, moved, new = assign(h, rotation, weights, labels)
        assert new >= between - 1e-10
        fit = new
        if not moved:
            break
    assert not moved


def test_rotate_is_the_best_rotation_for_the_labels():
    rng = np.random.default_rng(0)
    h, weights, labels = rng.standard_normal((50, 3)), rng.random(50), rng.integers(0, 3, 50).astype(np.int32)
    target = h.T @ (weights[:, None] * np.eye(3)[labels])
    best = rotate(h, weights, labels, 3)
    assert_allclose(best.T @ best, np.eye(3), atol=1e-12)
    assert np.vdot(best, target) == pytest.approx(np.linalg.svd(target, compute_uv=False).sum())


def test_rotate_with_an_empty_cluster_is_orthogonal():
    rng = np.random.default_rng(0)
    h, labels = rng.standard_normal((50, 3)), rng.integers(0, 2, 50).astype(np.int32)
    rotation = rotate(h, np.ones(50), labels, 3)
    assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-12)


def test_label_sums():
    rng = np.random.default_rng(0)
    h, weights, labels = rng.standard_normal((50, 2)), rng.random(50), rng.integers(0, 3, 50).astype(np.int32)
    expected = [sum(weights[p] * h[p] for p in range(50) if labels[p] == q) for q in range(3)]
    assert_allclose(label_sums(h, weights, labels, 3), expected)
    assert_array_equal(label_sums(h, weights, labels, 4)[3], [0.0, 0.0])


def test_assign_over_several_blocks_leaves_its_input():
    rng = np.random.default_rng(0)
    n = 20_001
    h, weights, before = rng.standard_normal((n, 3)), rng.random(n), np.zeros(n, dtype=np.int32)
    rotation = orthogonal(3, rng)
    labels, moved, fit = assign(h, rotation, weights, before)
    scores = h @ rotation
    assert_array_equal(labels, scores.argmax(axis=1))
    assert moved == pytest.approx(weights[labels != 0].sum())
    assert fit == pytest.approx(weights @ scores.max(axis=1))
    assert not before.any()


# --- empty clusters -----------------------------------------------------------------------------------------


def test_nothing_to_fill():
    labels = np.array([0, 1, 2, 1])
    assert_array_equal(fill_empty_clusters(labels, np.zeros(4), 3), labels)


def test_an_empty_cluster_takes_the_row_that_fits_worst():
    labels, fit = np.array([0, 0, 1, 1, 1]), np.array([0.9, 0.5, 0.8, 0.1, 0.3])
    assert fill_empty_clusters(labels, fit, 3).tolist() == [0, 0, 1, 2, 1]
    assert fill_empty_clusters(labels, fit, 4).tolist() == [0, 0, 1, 2, 3]
    assert labels.tolist() == [0, 0, 1, 1, 1]


def test_a_row_that_is_alone_stays():
    # Row 0 fits worst but is all there is of cluster 0; after row 1, row 2 is alone as well.
    labels, fit = np.array([0, 1, 1, 3, 3]), np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    assert fill_empty_clusters(labels, fit, 4).tolist() == [0, 2, 1, 3, 3]
    assert fill_empty_clusters(labels, fit, 5).tolist() == [0, 2, 1, 4, 3]


@pytest.mark.parametrize("seed", range(10))
def test_laws_of_filling(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    c = int(rng.integers(2, n + 1))
    labels, fit = rng.integers(0, rng.integers(1, c + 1), n), rng.random(n)
    filled = fill_empty_clusters(labels, fit, c)
    sizes, old = np.bincount(filled, minlength=c), np.bincount(labels, minlength=c)
    assert (sizes > 0).all()
    moved = np.flatnonzero(filled != labels)
    assert len(moved) == np.count_nonzero(old == 0)
    assert (sizes[old == 0] == 1).all()
    # Of every cluster, those that left fitted worse than those that stayed.
    for q in np.unique(labels[moved]):
        left, stayed = moved[labels[moved] == q], np.flatnonzero((labels == q) & (filled == q))
        assert fit[left].max() < fit[stayed].min()


def test_with_fewer_rows_than_clusters_every_row_is_alone():
    assert sorted(fill_empty_clusters(np.array([0, 0]), np.array([0.2, 0.1]), 4).tolist()) == [0, 1]


def test_short_and_long_rows_are_assigned_alike(monkeypatch):
    _, h, weights = planted(300, 5, noise=0.5)
    rotation = orthogonal(5, np.random.default_rng(1))
    before = np.random.default_rng(2).integers(0, 5, 300).astype(np.int32)
    compiled = assign(h, rotation, weights, before)
    monkeypatch.setattr(discretize, "_SHORT", 0)
    by_blas = assign(h, rotation, weights, before)
    assert_array_equal(compiled[0], by_blas[0])
    assert_allclose(compiled[1:], by_blas[1:], rtol=1e-12)
    assert compiled[1] == weights[compiled[0] != before].sum() > 0
