"""Rows of an embedding, and clusters of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances, pairwise_distances_argmin

from consilience._support.threads import one_thread

# Quick clusters are looked for among so many rows.
_SAMPLE = 5_000


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


def quick_clusters(
    h: np.ndarray, n_clusters: int, rng: np.random.RandomState, *, n_init: int = 1
) -> np.ndarray:
    """k-means on a sample of very many rows, for one opinion of many."""
    sample = h if len(h) <= _SAMPLE else h[np.sort(rng.choice(len(h), _SAMPLE, replace=False))]
    found = cluster_rows(sample, min(n_clusters, len(sample)), n_init=n_init, rng=rng)
    return found.labels if sample is h else pairwise_distances_argmin(h, found.centers)


def equal_rows(x: Any) -> np.ndarray:
    """A number for every row, the same for equal rows."""
    if not sp.issparse(x):
        whole = np.ascontiguousarray(x + 0.0)  # no negative zeros
        return np.unique(whole.view(f"V{whole.itemsize * whole.shape[1]}").ravel(), return_inverse=True)[1]
    known: dict[bytes, int] = {}
    return np.array(
        [
            known.setdefault(x.indices[a:b].tobytes() + x.data[a:b].tobytes(), len(known))
            for a, b in pairwise(x.indptr)
        ],
        dtype=np.intp,
    )


def equal_instances(views: Iterable[tuple[np.ndarray, np.ndarray]], n: int) -> np.ndarray:
    """A number for every instance, the same for those that are equal in all views, and absent from the same.

    Of every view, the instances that it has and `equal_rows` of them.
    """
    columns = []
    for rows, group in views:
        column = np.full(n, -1)
        column[rows] = group
        columns.append(column)
    return np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()


def mean_of_equals(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """For every row the mean over its group; see `equal_rows`."""
    sizes = np.bincount(group)
    if sizes.max(initial=0) <= 1:
        return values
    mean = sp.csr_array((1.0 / sizes[group], (group, np.arange(len(values))))) @ values
    return np.asarray(mean)[group]


def canonical_order(
    arrays: Sequence[Any], observed: np.ndarray, beside: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """An order of instances and one of views that follow from what they hold, and not from how they came.

    By sums of the entries with weights that no two different rows will have in common; `beside` decides
    between instances that are equal in all views.
    """
    keys = []
    for x, present in zip(arrays, observed.T, strict=True):
        direction = np.random.RandomState(0).uniform(1.0, 2.0, x.shape[1])
        sums = x @ direction if sp.issparse(x) else (x * direction).sum(axis=1)
        keys.append(np.where(present, sums, np.inf))
    of_view = [(x.shape[1], *np.sort(key)[[0, len(key) // 2]]) for x, key in zip(arrays, keys, strict=True)]
    views = sorted(range(len(arrays)), key=of_view.__getitem__)
    last = [] if beside is None else [beside]
    return np.lexsort([*last, *(keys[v] for v in views)]), np.array(views)


def shares_by_distance(h: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Shares of the clusters in every row: one over the squared distance to their centres, to sum one."""
    with one_thread():
        near = 1.0 / np.maximum(euclidean_distances(h, centers, squared=True), 1e-12)
    return np.asarray(near / near.sum(axis=1, keepdims=True))
