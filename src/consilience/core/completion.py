"""What labels say about labels, by the members they have in common."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from consilience.core import hot, tables
from consilience.core.blocks import run_blocks
from consilience.core.tables import contingency, cross, gather


class Votes(NamedTuple):
    """What base clusters say about consensus clusters; tables are (base clusters, consensus clusters)."""

    prior: np.ndarray  # log size of each consensus cluster, as a share
    lift: np.ndarray  # log of how much more often than average members of a base cluster are in it
    share: np.ndarray  # in which shares members of a base cluster are in it
    share_of_others: np.ndarray  # the same without one member, for the cluster that this member is in


def shares(together: np.ndarray, average: np.ndarray) -> np.ndarray:
    """In which shares the members of each cluster (row) carry each label (column).

    Smoothed by one member that behaves like the average, so that no share is zero and a small cluster says
    little.
    """
    return (together + average) / (together.sum(axis=1, keepdims=True) + 1.0)


def votes(
    codes: np.ndarray, counts: np.ndarray, offsets: np.ndarray, labels: np.ndarray, n_clusters: int
) -> Votes:
    """How much each base cluster speaks for each consensus cluster."""
    together = cross(codes, offsets, labels, counts.astype(float), n_clusters)
    average = np.bincount(labels, weights=counts, minlength=n_clusters) / counts.sum()
    share = shares(together, average)
    others = np.maximum(together - 1.0, 0.0) + average
    others /= np.maximum(together.sum(axis=1, keepdims=True), 1.0)
    return Votes(_log(average), _log(share) - _log(average), share, others)


def elect(codes: np.ndarray, offsets: np.ndarray, votes: Votes) -> np.ndarray:
    """Consensus cluster of each row of labels: naive Bayes, the labels of a row taken as independent."""
    return tables.elect(codes, offsets, votes.lift, votes.prior)


def confidence(codes: np.ndarray, offsets: np.ndarray, share: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """How much of the opinion about each row points to its consensus cluster, 0..1.

    Each label of a row points to the consensus clusters in the shares in which its members are there. The
    average is over the bases that saw the row and one opinion that knows nothing (equal shares), so that a
    row which few bases saw is never certain.
    """
    opinions = gather(codes, offsets, share)[np.arange(len(labels)), labels]
    return (opinions + 1.0 / share.shape[1]) / ((codes >= 0).sum(axis=1) + 1.0)


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
