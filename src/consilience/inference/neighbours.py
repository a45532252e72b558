"""How much other instances support an instance in its cluster: item consensus, cluster consensus."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from consilience.core import hot
from consilience.core.blocks import map_blocks
from consilience.core.tables import total
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import JointRows, Tabulated, joint_rows, label_counts


@dataclass(frozen=True, repr=False, eq=False)
class ClusterConsensus(Tabulated):
    """One entry per consensus cluster."""

    size: np.ndarray  # instances
    own: np.ndarray  # mean item consensus of its members
    between: np.ndarray  # mean support of its members for the other cluster that they support most
    nearest: np.ndarray  # that other cluster, -1 if there is none

    def __repr__(self) -> str:
        return (
            f"ClusterConsensus({len(self.size)} clusters of {self.size.min()} to {self.size.max()} instances"
            f", own {self.own.min():.2f} to {self.own.max():.2f})"
        )


@dataclass(frozen=True, repr=False, eq=False)
class Support(Tabulated):
    """What `support` returns: arrays with one entry per instance, and `clusters`."""

    item_consensus: np.ndarray = field(metadata={"per_instance": True})
    second: np.ndarray = field(metadata={"per_instance": True})
    coverage: np.ndarray = field(metadata={"per_instance": True})
    clusters: ClusterConsensus

    def __repr__(self) -> str:
        return (
            f"Support(mean item consensus {self.item_consensus.mean():.2f}, for another cluster "
            f"{self.second.mean():.2f}, mean coverage {self.coverage.mean():.2f})"
        )


class Scores(NamedTuple):
    """Per row: support for the own cluster and for the best other one."""

    own: np.ndarray
    second: np.ndarray
    sums: np.ndarray  # over the rows of each consensus cluster, the weighted support for each cluster


def support(partitions: Any, labels: ArrayLike | JointRows) -> Support:
    r"""Item consensus and coverage of every instance, and the consensus of every cluster.

    .. math:: s_{ic} = \frac{\sum_j T'(l_{ij}, c)}{\sum_j N'_{jc}}

    is the support of instance i for cluster c: over all members and all bases j that saw both, how often they
    have the same label. The prime says that i itself is not counted.

    Symbols: T(l, c) -> members of base cluster l in cluster c; N_jc -> members of c that base j saw.
    Cost: distinct rows x bases x clusters, no table of pairs of instances.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    labels : array-like of int of shape (n_instances,)
        A consensus cluster per instance, from 0; -1 where unassigned.

    Returns
    -------
    support : Support
        - ``item_consensus``: :math:`s_{iz}`, support for the own cluster; 0 without any other member that a
          common base saw.
        - ``second``: the highest support for another cluster.
        - ``coverage``: share of the bases that saw the instance.
        - ``clusters``: a `ClusterConsensus`.

        All but the coverage are 0 for an unassigned instance. Support says how tight a cluster is around the
        instance: a loose cluster has little even for members that are surely its own. Whether another cluster
        is more likely, the margin of `diagnose` tells.

    References
    ----------
    S. Monti, P. Tamayo, J. Mesirov and T. Golub, "Consensus clustering", Machine Learning 52, 2003.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import support
    >>> base = Partitions.of([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1]])
    >>> found = support(base, [0, 0, 0, 1, 1])
    >>> found.item_consensus
    array([0.75, 0.75, 0.5 , 1.  , 1.  ])
    >>> found.second.round(2)
    array([0.  , 0.  , 0.5 , 0.17, 0.17])
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    rows = joint_rows(partitions, labels)
    found = score_rows(rows, partitions.offsets)
    clustered = rows.labels >= 0
    size = np.bincount(rows.labels[clustered], rows.counts[clustered], rows.n_clusters).astype(np.int64)
    coverage = (rows.codes >= 0).sum(axis=1) / rows.codes.shape[1]
    return Support(
        item_consensus=found.own[rows.inverse],
        second=found.second[rows.inverse],
        coverage=coverage[rows.inverse],
        clusters=_clusters(found.sums, size),
    )


def score_rows(rows: JointRows, offsets: np.ndarray) -> Scores:
    """The support s of `support` for distinct rows."""
    together = label_counts(rows, offsets)
    seen = np.add.reduceat(together, offsets[:-1], axis=0)

    def one(block: slice) -> Scores:
        part = JointRows(
            rows.codes[block], rows.counts[block], rows.labels[block], rows.inverse, rows.n_clusters
        )
        return _score(part, offsets, together, seen)

    parts = list(map_blocks(one, len(rows.codes)))
    own, second = (np.concatenate([part[i] for part in parts]) for i in range(2))
    return Scores(own, second, total(part.sums for part in parts))


def _score(rows: JointRows, offsets: np.ndarray, together: np.ndarray, seen: np.ndarray) -> Scores:
    place, z = np.arange(len(rows.codes)), np.maximum(rows.labels, 0)
    s = support_of_rows(rows, offsets, together, seen)
    weighted = (s * rows.counts[:, None]).T
    sums = np.column_stack([np.bincount(z, column, rows.n_clusters) for column in weighted])
    own = s[place, z]
    s[place, z] = -1.0
    return Scores(own, np.maximum(s.max(axis=1), 0.0), sums)


def support_of_rows(
    rows: JointRows, offsets: np.ndarray, together: np.ndarray, seen: np.ndarray
) -> np.ndarray:
    """s_ic of every row and cluster: 0 where there is no evidence, and for unassigned rows.

    `together` has the members of every base cluster in every cluster, `seen` their sums over each base.
    """
    place, z = np.arange(len(rows.codes)), np.maximum(rows.labels, 0)
    observed = (rows.codes >= 0).astype(float)
    agreeing = np.empty((len(place), rows.n_clusters))
    hot.gather_sum(np.ascontiguousarray(rows.codes), offsets, together, agreeing)
    pairs = observed @ seen
    itself = observed.sum(axis=1) * (rows.labels >= 0)
    agreeing[place, z] -= itself
    pairs[place, z] -= itself
    s = np.divide(agreeing, pairs, out=np.zeros_like(agreeing), where=pairs > 0.5)
    s[rows.labels < 0] = 0.0
    return s


def _clusters(sums: np.ndarray, size: np.ndarray) -> ClusterConsensus:
    mean = sums / np.maximum(size, 1)[:, None]
    own = np.diag(mean).copy()
    np.fill_diagonal(mean, -1.0)
    nearest = mean.argmax(axis=1)
    between = np.maximum(mean[np.arange(len(mean)), nearest], 0.0)
    nearest[between == 0.0] = -1
    return ClusterConsensus(size, own, between, nearest)
