"""One tree of the label rows, cut at every number of clusters: what speaks for each cut."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.core.canonical import Rows, evenly
from consilience.core.certainty import certainty
from consilience.core.diffusion import (
    MAX_ROWS,
    MIN_SHARE,
    THETA,
    Kernel,
    Tree,
    diffuse,
    draw,
    link,
    modularity,
    relocate,
)
from consilience.core.grouping import distinct_rows
from consilience.core.tables import cluster_sizes, cross, gather, scatter

# A cut is improved by at most so many sweeps: the best number of clusters does not wait for the last moves.
_SWEEPS = 3
# Splits into halves of the base clusterings, and the instances on which their answers are compared.
_SPLITS, _COMPARED = 5, 1_000


class Cuts(NamedTuple):
    """What speaks for 1, 2, ... clusters; NaN where the tree has no such cut."""

    modularity: np.ndarray
    walk: np.ndarray  # how much more often than by chance three steps end in the cluster where they began
    smallest: np.ndarray  # share of the instances in the smallest cluster


def judge_cuts(rows: Rows, k_max: int) -> Cuts:
    """Cut the tree of diffused average linkage into 1 to `k_max` clusters, and judge each.

    Not into more than a quarter of the instances: pairs are no clusters. Of many rows, 5000 evenly spaced
    instances are linked and judged, with the similarity of the whole table.

    Cost: that of one fit of DAL, and for every cut some passes over the rows.
    """
    _, kernel = draw(_kernel(rows), MAX_ROWS)
    tree, weights, steps = link(kernel), kernel.rows.weights, _Steps(kernel.rows)
    found = np.full((3, k_max), np.nan)
    for k in range(1, min(k_max, len(weights), max(2, int(rows.counts.sum()) // 4)) + 1):
        labels = _labels(kernel, tree, k)
        shares = np.bincount(labels, weights, k) / weights.sum()
        found[:, k - 1] = modularity(kernel, labels, k), steps.stay(labels, shares), shares.min()
    return Cuts(*found)


def agreement_of_halves(rows: Rows, k_max: int, rng: np.random.RandomState) -> np.ndarray:
    """For 1 to `k_max` clusters, the mean adjusted Rand index of the answers of two halves of the bases.

    Five random splits, and the instances that both halves saw, of at most 1000. NaN for one cluster, and
    where nothing could be compared.

    Cost: ten trees of at most 1000 rows.
    """
    places, counts = evenly(rows.counts, _COMPARED)
    codes, n_clusters = rows.codes[places], np.diff(rows.offsets)
    scores = np.full((_SPLITS, k_max), np.nan)
    for found in scores:
        parts = map(np.sort, np.array_split(rng.permutation(codes.shape[1]), 2))
        first, second = (_Half(codes[:, part], n_clusters[part], counts) for part in parts)
        for k in range(2, min(k_max, first.most, second.most) + 1):
            found[k - 1] = _adjusted_rand(first.labels(k), second.labels(k), counts, k)
    known = np.isfinite(scores)
    sums = np.where(known, scores, 0.0).sum(axis=0)
    return np.divide(sums, known.sum(axis=0), out=np.full(k_max, np.nan), where=known.any(axis=0))


class _Half:
    """Some of the base clusterings, and the tree of what they say."""

    def __init__(self, codes: np.ndarray, n_clusters: np.ndarray, counts: np.ndarray) -> None:
        self.seen = np.asarray((codes >= 0).any(axis=1))
        self.most = 0  # the most clusters they can tell apart
        if not self.seen.any():
            return
        found = distinct_rows(codes[self.seen], n_clusters, counts[self.seen])
        offsets = np.concatenate([[0], np.cumsum(n_clusters)])
        self.inverse = found.inverse
        self.kernel = _kernel(Rows(found.codes, offsets, found.counts))
        self.tree = link(self.kernel)
        self.most = len(found.counts)

    def labels(self, k: int) -> np.ndarray:
        """-1 for rows that none of these base clusterings saw."""
        labels = np.full(len(self.seen), -1)
        labels[self.seen] = _labels(self.kernel, self.tree, k)[self.inverse]
        return labels


class _Steps:
    r"""A walk from an instance to any of its bases, and to any instance of its cluster there."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.sizes = np.maximum(cluster_sizes(rows.codes, rows.offsets, rows.weights), 1.0)[:, None]
        self.n_seen = (rows.codes >= 0).sum(axis=1, keepdims=True)

    def stay(self, labels: np.ndarray, shares: np.ndarray) -> float:
        r"""Three steps from cluster to cluster: how likely they end where they began, beyond chance.

        .. math:: \frac1n \sum_{ic} w_i G_{ic} G'_{ic} - \sum_c p_c^2

        with G where one step leads, from every row to every cluster, and G' where two do.
        """
        codes, offsets, w = self.rows.codes, self.rows.offsets, self.rows.weights
        one = self._gather(cross(codes, offsets, labels, w, len(shares)))
        two = self._gather(scatter(codes, offsets, w, one))
        return float(w @ (one * two).sum(axis=1) / w.sum() - (shares**2).sum())

    def _gather(self, totals: np.ndarray) -> np.ndarray:
        return gather(self.rows.codes, self.rows.offsets, totals / self.sizes) / self.n_seen


def _kernel(rows: Rows) -> Kernel:
    return diffuse(rows, certainty(rows, THETA))


def _labels(kernel: Kernel, tree: Tree, k: int) -> np.ndarray:
    return relocate(kernel, tree.cut(k, MIN_SHARE), k, _SWEEPS)[0]


def _adjusted_rand(first: np.ndarray, second: np.ndarray, counts: np.ndarray, k: int) -> float:
    """Adjusted Rand index on the rows that both label, each standing for `counts` instances."""
    both = (first >= 0) & (second >= 0)
    table = np.bincount(first[both] * k + second[both], counts[both], k * k).reshape(k, k)

    def pairs(sizes: np.ndarray) -> float:
        return float((sizes * (sizes - 1.0)).sum() / 2.0)

    together, a, b = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    n = pairs(table.sum(keepdims=True))
    if n == 0.0:
        return float("nan")
    chance, most = a * b / n, (a + b) / 2.0
    return 1.0 if most == chance else (together - chance) / (most - chance)
