"""Base of the methods that compare all pairs of instances: dense similarities and their normalised cut."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from consilience.core.discretize import fill_empty_clusters, spectral_rotation
from consilience.core.eigen import leading_eigenpairs
from consilience.evidence.views import Views
from consilience.multiview.base import ViewMethod
from consilience.multiview.rows import unit_rows
from consilience.multiview.scaling import Matrix


class GraphMethod(ViewMethod):
    """Base of the methods whose results have a similarity of all pairs of instances, the affinity."""

    # Some matrices of instances x instances and a cubic eigenproblem: beyond, minutes and gigabytes.
    max_instances = 10_000

    def _learn(self, result: Any, views: Views, order: np.ndarray) -> None:
        self.affinity_ = result.affinity
        self.embedding_ = result.embedding
        if hasattr(result, "eigenvalues"):
            self.eigenvalues_ = result.eigenvalues


def squared_distances(x: Matrix) -> np.ndarray:
    """Squared Euclidean distances between all rows."""
    squared = euclidean_distances(x, squared=True)
    np.fill_diagonal(squared, 0.0)
    return squared


def scaled_kernel(squared: np.ndarray, k: int) -> np.ndarray:
    """Normal density of the squared distances, of width half the mean of three local scales.

    The scales of a pair are the mean squared distances of either row to its k nearest others, and the pair's
    own. That the density is one of *squared* distances is how the programs of SNF and NEMO have it.
    """
    n = len(squared)
    k = min(k, n - 1)
    if k < 1:
        return np.ones((n, n))
    others = squared + np.diag(np.full(n, np.inf))
    reach = np.partition(others, k - 1, axis=1)[:, :k].mean(axis=1)
    width = 0.5 * (reach[:, None] + reach + squared) / 3.0
    # Copies of a row have no width; with none at all every density would be infinite.
    width = np.maximum(width, 1e-8 * (width.mean() or 1.0))
    return np.exp(-0.5 * np.square(squared / width)) / (np.sqrt(2.0 * np.pi) * width)


def nearest_only(kernel: np.ndarray, k: int) -> np.ndarray:
    """The k largest entries of every row, itself among them, divided by their sum."""
    k = min(k, len(kernel))
    least = np.partition(kernel, len(kernel) - k, axis=1)[:, len(kernel) - k]
    kept = np.where(kernel >= least[:, None], kernel, 0.0)
    return kept / kept.sum(axis=1, keepdims=True)


def average_over_views(
    blocks: Iterable[np.ndarray], observed: np.ndarray, *, fill_with_mean: bool
) -> np.ndarray:
    """The mean of the views' blocks over the views that have both instances of a pair.

    A pair that no view has gets zero, or the mean of all pairs that some view has.
    """
    n = len(observed)
    total = np.zeros((n, n))
    for v, block in enumerate(blocks):
        rows = np.flatnonzero(observed[:, v])
        total[np.ix_(rows, rows)] += block
    seen = observed.astype(float)
    together = seen @ seen.T
    total /= np.maximum(together, 1.0)
    if fill_with_mean and not together.all():
        known = np.tril(together > 0, k=-1)
        total[together == 0] = total[known].mean() if known.any() else 1.0
    return total


def normalized_embedding(similarity: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of ``D^(-1/2) S D^(-1/2)`` and their eigenvectors."""
    root = np.sqrt(np.maximum(similarity.sum(axis=1), np.finfo(float).tiny))
    return leading_eigenpairs(similarity / root / root[:, None], k)


class Cut(NamedTuple):
    """Clusters of a graph, and the eigenvectors that they were read from."""

    labels: np.ndarray
    embedding: np.ndarray
    affinity: np.ndarray
    eigenvalues: np.ndarray


def cut_by_rotation(
    similarity: np.ndarray, n_clusters: int, *, n_init: int, rng: np.random.RandomState
) -> Cut:
    """The normalised cut by spectral rotation; no cluster is empty."""
    values, vectors = normalized_embedding(similarity, n_clusters)
    found = spectral_rotation(vectors, np.ones(len(vectors)), n_init=n_init, rng=rng)
    scores = unit_rows(vectors) @ found.rotation
    fit = scores[np.arange(len(scores)), found.labels]
    return Cut(fill_empty_clusters(found.labels, fit, n_clusters), vectors, similarity, values)
