"""What labels say about labels: shares of members in common, and missing entries filled in by them."""

from itertools import pairwise

import numpy as np

from consilience.core import hot
from consilience.core.blocks import run_blocks
from consilience.core.tables import contingency, scatter


def log_shares(together: np.ndarray, average: np.ndarray) -> np.ndarray:
    """Log of the shares in which the members of each cluster (row) carry each label (column).

    Smoothed by one member that behaves like the average, so that no share is zero and a small cluster says
    little. A label that nobody carries gets the least number instead of zero, whose log is infinite.
    """
    shares = (together + average) / (together.sum(axis=1, keepdims=True) + 1.0)
    return np.log(np.maximum(shares, np.finfo(float).tiny))


def votes(
    codes: np.ndarray, counts: np.ndarray, offsets: np.ndarray, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """How much each base cluster speaks for each consensus cluster: log shares, (clusters, n_clusters)."""
    one_hot = np.zeros((len(labels), n_clusters))
    one_hot[np.arange(len(labels)), labels] = 1.0
    sizes = counts @ one_hot
    return log_shares(scatter(codes, offsets, counts.astype(float), one_hot), sizes / sizes.sum())


def complete_labels(
    codes: np.ndarray, counts: np.ndarray, offsets: np.ndarray, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Codes with every missing entry replaced by the label that base would most likely have given.

    Each observed label of the row, and its consensus cluster, votes with its log shares of the labels of the
    base in question; the largest sum wins.

    Cost: rows x missing entries x bases x clusters, and a table of all pairs of clusters.
    """
    stacked = np.column_stack([codes, labels])
    all_offsets = np.append(offsets, offsets[-1] + n_clusters)
    pairs = contingency(stacked, all_offsets, counts.astype(float))
    sizes = np.diag(pairs)
    shares = np.empty((len(pairs), int(offsets[-1])))
    for lo, hi in pairwise(offsets.tolist()):
        shares[:, lo:hi] = log_shares(pairs[:, lo:hi], sizes[lo:hi] / max(sizes[lo:hi].sum(), 1.0))
    out = np.empty_like(codes)

    def one(rows: slice) -> None:
        hot.complete(codes[rows], labels[rows], all_offsets, shares, out[rows])

    run_blocks(one, len(codes))
    return out
