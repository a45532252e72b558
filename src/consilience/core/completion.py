"""What labels say about labels, by the members they have in common."""

from itertools import pairwise

import numpy as np

from consilience.core import hot
from consilience.core.blocks import run_blocks
from consilience.core.tables import contingency


def shares(together: np.ndarray, average: np.ndarray) -> np.ndarray:
    """In which shares the members of each cluster (row) carry each label (column).

    Smoothed by one member that behaves like the average, so that no share is zero and a small cluster says
    little.
    """
    return (together + average) / (together.sum(axis=1, keepdims=True) + 1.0)


def complete_labels(
    codes: np.ndarray, counts: np.ndarray, offsets: np.ndarray, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Codes with every missing entry replaced by the label that base would most likely have given.

    Naive Bayes: the observed labels of a row and its consensus cluster are taken as independent evidence,
    each by the shares in which its members carry the labels of the base in question.

    Cost: rows x missing entries x bases x clusters, and a table of all pairs of clusters.
    """
    stacked = np.column_stack([codes, labels])
    all_offsets = np.append(offsets, offsets[-1] + n_clusters)
    pairs = contingency(stacked, all_offsets, counts.astype(float))
    sizes = np.diag(pairs)
    evidence = np.empty((len(pairs), int(offsets[-1])))
    for lo, hi in pairwise(offsets.tolist()):
        average = sizes[lo:hi] / max(sizes[lo:hi].sum(), 1.0)
        evidence[:, lo:hi] = _log(shares(pairs[:, lo:hi], average))
        # Every row has one consensus cluster; with it the prior enters once.
        evidence[: offsets[-1], lo:hi] -= _log(average)
    out = np.empty_like(codes)

    def one(rows: slice) -> None:
        hot.complete(codes[rows], labels[rows], all_offsets, evidence, out[rows])

    run_blocks(one, len(codes))
    return out


def _log(shares: np.ndarray) -> np.ndarray:
    # A label that nobody carries: the least number instead of zero, whose log is infinite.
    return np.log(np.maximum(shares, np.finfo(float).tiny))
