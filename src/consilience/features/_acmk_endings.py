"""The endings of ACMK: from a graph and refined base clusterings to labels, for either solver."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from consilience.core.discretize import fill_empty_clusters, label_sums
from consilience.core.eigen import leading_eigenpairs
from consilience.core.spectral import left_singular_vectors
from consilience.core.stiefel import orthonormalize
from consilience.features import _acmk_admm as dense
from consilience.features import _acmk_sparse as sparse

# Starts of k-means are compared on at most this many rows.
_SAMPLE_ROWS = 10_000
# Steps along the graph that smooth the consensus from which both endings start: two rounds of five, because
# single precision loses the directions that more steps at once would shrink.
_ROUNDS, _STEPS = 2, 5


def final_labels(
    final: str,
    z: np.ndarray,
    graph: Any,
    codes: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    rng: np.random.RandomState,
) -> np.ndarray:
    """k-means of the filtered table `z` (ACMK-KM) or of the leading eigenvectors of the graph (ACMK-SC).

    Both start at the consensus of the refined base clusterings. Drawn starts, of which the one of least
    inertia is kept, find other clusters than those that the base clusterings agree on; see the design notes.
    """
    start = consensus_start(graph, codes, n_clusters, rng)
    points = z if final == "kmeans" else _unit_rows(_cut(graph, codes, weights, n_clusters))
    centres = label_sums(points, np.ones(len(points)), start, n_clusters)
    centres /= np.bincount(start, minlength=n_clusters)[:, None]
    return _kmeans(points, points, n_clusters, init=centres.astype(points.dtype), n_init=1, rng=rng)


def consensus_start(graph: Any, codes: np.ndarray, n_clusters: int, rng: np.random.RandomState) -> np.ndarray:
    """Consensus of base clusterings, smoothed along the graph; many rows compare their starts on a sample."""
    unit = _unit_rows(smoothed_consensus(graph, codes, n_clusters))
    sample = unit if len(unit) <= _SAMPLE_ROWS else unit[rng.permutation(len(unit))[:_SAMPLE_ROWS]]
    return _kmeans(sample, unit, n_clusters, init="k-means++", n_init=10, rng=rng)


def smoothed_consensus(graph: Any, codes: np.ndarray, n_clusters: int) -> np.ndarray:
    """The leading eigenvectors of the co-association after some steps along the graph, orthonormal.

    It is the subspace iteration towards the leading eigenvectors of the graph, stopped early.
    """
    offsets = np.concatenate([[0], np.cumsum(codes.max(axis=0) + 1)])
    ones = np.ones(len(codes))
    vectors = left_singular_vectors(codes, offsets, ones, n_clusters)
    normal = _normalised(graph, sparse.precise_enough(vectors).dtype)
    for _ in range(_ROUNDS):
        smooth = vectors.astype(normal.dtype)
        for _ in range(_STEPS):
            smooth = normal @ smooth
        vectors = orthonormalize(smooth.astype(np.float64), ones)
    return vectors


def filtered(graph: Any, table: np.ndarray, order: int, cumulative: bool) -> np.ndarray:
    """The filter of a dense or a sparse graph."""
    if sp.issparse(graph):
        return sparse.filtered(graph, table, order, cumulative)
    return dense.filtered(dense.low_pass(graph), table, order, cumulative)


def _cut(graph: Any, codes: np.ndarray, weights: np.ndarray, n_clusters: int) -> np.ndarray:
    if sp.issparse(graph):
        return sparse.leading_vectors(graph, codes, weights, n_clusters)
    return leading_eigenpairs(_normalised(graph, graph.dtype), n_clusters)[1]


def _normalised(graph: Any, dtype: Any) -> Any:
    """D^-1/2 W D^-1/2 of a dense or a sparse graph."""
    if sp.issparse(graph):
        return sparse.normalised(graph, dtype)
    return 2.0 * dense.low_pass(graph) - np.eye(len(graph))


def _unit_rows(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(norms, 1e-12 * norms.max())  # a zero row stays zero instead of NaN


def _kmeans(
    sample: np.ndarray, points: np.ndarray, n_clusters: int, *, init: Any, n_init: int, rng: Any
) -> np.ndarray:
    """Labels of `points` by the centres of `sample`; no cluster is empty."""
    with warnings.catch_warnings():
        # It says so where there are fewer distinct points than clusters, which are filled below.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(n_clusters, init=init, n_init=n_init, random_state=rng).fit(sample)
    labels = model.labels_ if sample is points else model.predict(points)
    if len(np.unique(labels)) < n_clusters:
        away = np.sum((points - model.cluster_centers_[labels]) ** 2, axis=1)
        labels = fill_empty_clusters(labels, -away, n_clusters)
    return labels
