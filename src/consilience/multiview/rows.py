"""Rows of an embedding, and clusters of them."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning


class RowClusters(NamedTuple):
    """Clusters of the rows of an embedding, and where they are centred."""

    labels: np.ndarray
    centers: np.ndarray


def unit_rows(h: np.ndarray) -> np.ndarray:
    """Rows of norm one; a row of (numerical) zeros becomes zero instead of noise."""
    norms = np.sqrt(np.einsum("pd,pd->p", h, h))
    floor = 1e-12 * norms.max(initial=0.0)
    return np.where(norms > floor, 1.0 / np.maximum(norms, max(floor, 1e-300)), 0.0)[:, None] * h


def cluster_rows(h: np.ndarray, n_clusters: int, *, n_init: int, rng: np.random.RandomState) -> RowClusters:
    """k-means on the rows of an embedding: of `n_init` starts, the one with the smallest inertia."""
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: the labels say so, and k-means need not say it too.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(n_clusters, n_init=n_init, random_state=rng).fit(h)
    return RowClusters(model.labels_.astype(np.int64), model.cluster_centers_)
