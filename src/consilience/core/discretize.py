"""From an embedding to labels."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from consilience.core import hot
from consilience.core.blocks import map_blocks
from consilience.core.stiefel import polar_factor
from consilience.core.tables import scatter

# Several starts are compared on at most this many rows (more for very many clusters): a c x c rotation needs
# no more, and each start would otherwise cost c passes over all rows.
SAMPLE_ROWS = 5_000
MAX_SWEEPS = 21
_SHORT = 32  # up to this width the compiled loop, which makes no table of scores, beats BLAS


class Rotation(NamedTuple):
    """``labels = argmax(h @ rotation)``; ``fit`` is the alignment tr(Y^T W H R), the larger the better."""

    labels: np.ndarray
    rotation: np.ndarray
    fit: float


def spectral_rotation(
    h: np.ndarray,
    weights: np.ndarray,
    *,
    n_init: int,
    rng: np.random.RandomState,
    starts: Sequence[int] | None = None,
) -> Rotation:
    r"""Rotate an embedding towards one-hot rows (Yu and Shi, 2003), from several starts; keep the best.

    .. math:: \min_{Y, R} \; \|W^{1/2} (Y - \tilde H R)\|^2 \quad s.t. \; Y \text{ one-hot}, R^T R = I

    :math:`\tilde H` is the embedding with rows of norm one. A start is a row; the others of its basis are
    chosen to overlap least. Rows are drawn by their place in the order of row norms, not by their number,
    so shuffled instances or renamed labels draw the same starts.

    Symbols: Y -> labels; R -> rotation.
    Cost: (starts x sampled rows + sweeps x rows) x clusters^2.
    """
    norms = np.sqrt(np.einsum("pd,pd->p", h, h))
    unit = h / np.maximum(norms, 1e-12 * norms.max())[:, None]  # a zero row stays zero instead of NaN
    order = np.argsort(norms)
    reach = np.cumsum(weights[order])
    if starts is None:
        starts = order[np.searchsorted(reach, rng.random_sample(n_init) * reach[-1], side="right")]
    n_sampled = max(SAMPLE_ROWS, 50 * h.shape[1])
    if len(h) > n_sampled and len(starts) > 1:
        places = (np.arange(n_sampled) + 0.5) / n_sampled * reach[-1]
        sample = unit[order[np.searchsorted(reach, places, side="right")]]
        sample_weights = np.ones(n_sampled)
    else:
        sample, sample_weights = unit, weights
    best = best_start(sample, sample_weights, unit[starts])
    if sample is not unit:
        best = _sweep(unit, weights, best.rotation)
    return best


def best_start(unit: np.ndarray, weights: np.ndarray, starts: np.ndarray) -> Rotation:
    """The rotation of rows of norm one that aligns best, of those found from each of the start rows."""
    usable = np.einsum("pd,pd->p", unit, unit) > 0.5
    return max(
        (_sweep(unit, weights, _basis(unit, usable, first)) for first in starts),
        key=lambda found: found.fit,
    )


def rotate(h: np.ndarray, weights: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Best rotation for given labels: the polar factor of ``H^T W Y``."""
    return polar_factor(label_sums(h, weights, labels, n_clusters).T)


def assign(
    h: np.ndarray, rotation: np.ndarray, weights: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Best labels for a given rotation, the weight of rows that left `labels`, and tr(Y^T W H R)."""
    labels = labels.copy()
    rotation_t = np.ascontiguousarray(rotation.T)

    def short_rows(rows: slice) -> tuple[float, float]:
        return hot.assign(h[rows], rotation_t, weights[rows], labels[rows])

    def long_rows(rows: slice) -> tuple[float, float]:
        scores = h[rows] @ rotation
        best = scores.argmax(axis=1)
        moved = float(weights[rows] @ (best != labels[rows]))
        labels[rows] = best
        return moved, float(weights[rows] @ scores.max(axis=1))

    parts = list(map_blocks(short_rows if h.shape[1] <= _SHORT else long_rows, len(h)))
    return labels, sum(moved for moved, _ in parts), sum(fit for _, fit in parts)


def label_sums(h: np.ndarray, weights: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """``Y^T W H``: the weighted sum of the rows of each cluster, (n_clusters, width)."""
    return scatter(labels[:, None], np.array([0, n_clusters]), weights, h)


def fill_empty_clusters(labels: np.ndarray, fit: np.ndarray, n_clusters: int) -> np.ndarray:
    """Labels in which every cluster has a row, as long as there are enough rows.

    An empty cluster takes the row that fits its own cluster worst and is not alone there.
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return labels
    labels = labels.copy()
    worst_first = iter(np.argsort(fit, kind="stable"))
    for q in empty:
        p = next((p for p in worst_first if sizes[labels[p]] > 1), None)
        if p is None:
            break
        sizes[labels[p]] -= 1
        labels[p] = q
        sizes[q] = 1
    return labels


def _basis(unit: np.ndarray, usable: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Rows that overlap least with those before them, as columns; rows without direction never count."""
    width = unit.shape[1]
    basis = np.empty((width, width))
    basis[:, 0] = first
    overlap = np.where(usable, 0.0, np.inf)
    for j in range(1, width):
        overlap += np.abs(unit @ basis[:, j - 1])
        basis[:, j] = unit[overlap.argmin()]
    return basis


def _sweep(unit: np.ndarray, weights: np.ndarray, rotation: np.ndarray) -> Rotation:
    """Alternate labels and rotation until the labels stay."""
    n_clusters = rotation.shape[1]
    labels, _, fit = assign(unit, rotation, weights, np.full(len(unit), -1, dtype=np.int32))
    for _ in range(MAX_SWEEPS):
        rotation = rotate(unit, weights, labels, n_clusters)
        labels, moved, fit = assign(unit, rotation, weights, labels)
        if not moved:
            break
    return Rotation(labels, rotation, fit)
