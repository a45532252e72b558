"""What each base clustering contributes: agreement with the consensus, weight, novelty."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consilience.evidence.partitions import Partitions
from consilience.inference.counts import (
    JointRows,
    Tabulated,
    adjusted_information,
    joint_rows,
    label_counts,
    pairwise_information,
    silent,
)
from consilience.inference.opinions import apart, shares

# Instances that a base must have seen, per cluster, before its own agreement outweighs the average one.
_TRUSTED_PER_CLUSTER = 10


@dataclass(frozen=True, repr=False, eq=False)
class Bases(Tabulated):
    """What `base_table` returns; arrays have one entry per base clustering."""

    names: tuple[str, ...]
    n_clusters: np.ndarray
    n_seen: np.ndarray
    agreement: np.ndarray
    weights: np.ndarray
    novelty: np.ndarray
    silent: np.ndarray
    effective_number: float

    def __repr__(self) -> str:
        return (
            f"Bases({len(self.names)} base clusterings, effective number {self.effective_number:.1f}, "
            f"agreement {self.agreement.min():.2f} to {self.agreement.max():.2f})"
        )


def base_table(partitions: Any, labels: ArrayLike | JointRows) -> Bases:
    r"""Agreement, weight and novelty of every base clustering.

    The agreement :math:`a_j` is the adjusted mutual information of base j and the consensus on the instances
    that j saw, at least 0, shrunk towards the mean of the bases:

    .. math:: a_j \leftarrow \frac{n_j a_j + n_0 \bar a}{n_j + n_0}, \qquad n_0 = 10 \max(k_j, K)

    so that a base which saw few instances can neither lead nor fall behind by luck. Weights are
    :math:`a_j^2`, scaled to mean one. Members of a group share the weight of one base clustering: each of g
    has 1/g of :math:`a_j^2`, and the mean is over opinions.

    Symbols: n_j -> n_seen; k_j -> n_clusters; K -> number of consensus clusters.
    Cost: distinct rows x bases^2 and a table of all pairs of base clusters.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    labels : array-like of int of shape (n_instances,)
        A consensus cluster per instance, from 0; -1 where unassigned.

    Returns
    -------
    bases : Bases
        - ``agreement``, ``weights``: as above. A silent base has agreement and weight zero.
        - ``novelty``: one minus the highest adjusted mutual information with another base.
        - ``silent``: whether it says nothing, by having one cluster or a cluster for every instance.
        - ``effective_number``: :math:`m^2 / \sum_{jj'} \mathrm{AMI}_{jj'}` over the bases that are not
          silent: m if they are independent, 1 if all are the same or only one speaks. Two bases that never
          saw the same instance count like an average pair. A group counts as one base clustering.

    Notes
    -----
    The consensus was made from the bases, so each agrees a little with itself. With five bases or fewer
    that matters: do not read a small difference between them as quality.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import base_table
    >>> base = Partitions.of([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]] * 50)
    >>> table = base_table(base, [0, 0, 1, 1] * 50)
    >>> table.weights.round(1)
    array([1.5, 1.5, 0. ])
    >>> table.novelty.round(1)
    array([0., 0., 1.])
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    rows = joint_rows(partitions, labels)
    together = label_counts(rows, partitions.offsets)
    n_seen = partitions.n_seen
    k = partitions.n_clusters_per_partition
    share = shares(len(k), partitions.members_of_groups)
    says_nothing = silent(partitions)
    speaking = np.flatnonzero(~says_nothing)
    agreement = np.zeros(len(k))
    for j, (low, high) in enumerate(pairwise(partitions.offsets.tolist())):
        if not says_nothing[j]:
            # NaN where the base saw no assigned instance: it then counts as no agreement.
            agreement[j] = np.clip(np.nan_to_num(adjusted_information(together[low:high])), 0.0, 1.0)
    if len(speaking):
        prior = _TRUSTED_PER_CLUSTER * np.maximum(k[speaking], rows.n_clusters)
        own = n_seen[speaking] / (n_seen[speaking] + prior)
        mean = np.average(agreement[speaking], weights=share[speaking])
        agreement[speaking] = own * agreement[speaking] + (1.0 - own) * mean
    novelty, effective = _redundancy(partitions, speaking)
    squares = share * agreement**2
    weights = squares / (squares.sum() / share.sum()) if squares.any() else share
    return Bases(partitions.names, k, n_seen, agreement, weights, novelty, says_nothing, effective)


def support_of_bases(rows: JointRows, offsets: np.ndarray) -> np.ndarray:
    r"""How strongly each base clustering supports each cluster, (n_partitions, n_clusters).

    .. math:: \frac{m_c - \pi_c}{1 - \pi_c}

    is 0 as by chance, and 1 where all that share a label with a member are members too.

    Symbols: m_c -> for a member of c, the mean share of the others with its label that are in c; pi_c ->
    share of c among the instances that the base saw. NaN for a cluster of which it saw fewer than two
    members, or where it saw no other.
    """
    together = label_counts(rows, offsets)
    others = np.maximum(together.sum(axis=1, keepdims=True) - 1.0, 1.0)
    inside = np.add.reduceat(together * np.maximum(together - 1.0, 0.0) / others, offsets[:-1], axis=0)
    sizes = np.add.reduceat(together, offsets[:-1], axis=0)
    share = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1.0)
    known = (sizes > 1) & (share < 1)
    inside = inside / np.maximum(sizes, 1.0)
    return np.where(known, (inside - share) / np.where(known, 1.0 - share, 1.0), np.nan)


def _redundancy(partitions: Partitions, speaking: np.ndarray) -> tuple[np.ndarray, float]:
    """Novelty of every base, and the effective number of those that speak."""
    novelty = np.ones(partitions.n_partitions)
    m = len(speaking)
    if m < 2:
        return novelty, 1.0
    shared = np.maximum(pairwise_information(partitions)[np.ix_(speaking, speaking)], 0.0)
    known = ~np.isnan(shared)
    off = ~np.eye(m, dtype=bool)
    groups = partitions.choose(speaking).members_of_groups
    share = shares(m, groups)
    novelty[speaking] = 1.0 - np.where(known & off, shared, 0.0).max(axis=1)
    average = shared[known & off].mean() if (known & off).any() else 0.0
    shared = np.where(known, shared, average)
    shared[~apart(m, groups)] = 1.0  # a member says what its group says
    return novelty, float(share.sum() ** 2 / (share @ shared @ share))
