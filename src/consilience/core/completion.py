"""Fill in the labels that base clusterings lack."""

from itertools import pairwise

import numpy as np

from consilience.core import hot
from consilience.core.blocks import run_blocks
from consilience.core.tables import contingency


def complete_labels(
    codes: np.ndarray, counts: np.ndarray, offsets: np.ndarray, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Codes with every missing entry replaced by the label that base would most likely have given.

    Each observed label of the row, and its consensus cluster, votes with the log of the share in which its
    members carry each label of the base in question (smoothed by one member of average behaviour): naive
    Bayes on small tables of counts.

    Cost: rows x missing entries x bases x clusters, and a table of all pairs of clusters.
    """
    stacked = np.column_stack([codes, labels])
    all_offsets = np.append(offsets, offsets[-1] + n_clusters)
    pairs = contingency(stacked, all_offsets, counts.astype(float))
    sizes = np.diag(pairs)
    log_shares = np.empty((len(pairs), int(offsets[-1])))
    for lo, hi in pairwise(offsets.tolist()):
        average = sizes[lo:hi] / sizes[lo:hi].sum()
        together = pairs[:, lo:hi]
        log_shares[:, lo:hi] = np.log((together + average) / (together.sum(axis=1, keepdims=True) + 1.0))
    out = np.empty_like(codes)

    def one(rows: slice) -> None:
        hot.complete(codes[rows], labels[rows], all_offsets, log_shares, out[rows])

    run_blocks(one, len(codes))
    return out
