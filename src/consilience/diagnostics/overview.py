"""Small tables that pictures are drawn from: a few hundred cells, however many instances there are."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from consilience._support.errors import InputError
from consilience._support.sklearn import Interval, check_parameter, random_source
from consilience.core.blocks import map_blocks
from consilience.core.tables import indicator, total
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import (
    JointRows,
    Tabulated,
    check_labels,
    joint_rows,
    label_counts,
    pairwise_information,
)
from consilience.inference.neighbours import support, support_of_rows

_GRID = np.arange(101) / 100
_LOW, _HIGH = 10, 90  # places on the grid between which a pair is undecided


@dataclass(frozen=True, repr=False, eq=False)
class ConsensusMap(Tabulated):
    """What `consensus_map` returns: a cell is a few instances of one cluster."""

    coassociation: np.ndarray  # (cells, cells), NaN where no base saw a pair of them
    cluster: np.ndarray  # consensus cluster of each cell, in increasing order
    size: np.ndarray  # instances of each cell
    base_labels: np.ndarray  # (cells, bases), the most frequent label of the cell as a code; -1 for none

    def __repr__(self) -> str:
        return f"ConsensusMap({len(self.size)} cells of {self.size.min()} to {self.size.max()} instances)"


@dataclass(frozen=True, repr=False, eq=False)
class Membership(Tabulated):
    """What `membership` returns: a cell is a few instances of one cluster."""

    support: np.ndarray  # (cells, clusters), between 0 and 1
    cluster: np.ndarray  # consensus cluster of each cell, in increasing order
    size: np.ndarray  # instances of each cell

    def __repr__(self) -> str:
        return f"Membership({len(self.size)} cells of {self.size.min()} to {self.size.max()} instances)"


@dataclass(frozen=True, repr=False, eq=False)
class MissingPatterns(Tabulated):
    """What `missing_patterns` returns; the most frequent pattern comes first."""

    names: tuple[str, ...]
    seen: np.ndarray  # (patterns, bases), True where the base saw the instances of the pattern
    size: np.ndarray  # instances of each pattern
    n_patterns: int  # of all, shown or not
    n_seen: np.ndarray  # instances that each base saw, over all patterns

    def __repr__(self) -> str:
        return f"MissingPatterns({len(self.size)} of {self.n_patterns} patterns, {self.size.sum()} instances)"


@dataclass(frozen=True, repr=False, eq=False)
class ConsensusDistribution(Tabulated):
    """What `consensus_distribution` returns."""

    cdf: np.ndarray  # (101,): share of pairs with co-association at most 0, 0.01, ..., 1
    area: float  # under it: one minus the mean co-association of a pair
    pac: float  # share of pairs that are undecided: co-association above 0.1 and at most 0.9
    never_together: float  # share of pairs that no base saw both of; they are in none of the above
    exact: bool  # all pairs were counted, not a sample

    def __repr__(self) -> str:
        kind = "all pairs" if self.exact else "a sample of pairs"
        return f"ConsensusDistribution({kind}, area {self.area:.2f}, {self.pac:.1%} undecided)"


class PairwiseAgreement(NamedTuple):
    """Names of the base clusterings, and how far every two of them agree."""

    names: tuple[str, ...]
    agreement: np.ndarray


class _Cells(NamedTuple):
    """Instances in the order of a picture, cut into cells; -1 for an unassigned one."""

    of_instance: np.ndarray
    cluster: np.ndarray
    size: np.ndarray


def consensus_map(
    partitions: Any, labels: ArrayLike, *, order: ArrayLike | None = None, max_cells: int = 200
) -> ConsensusMap:
    r"""The co-association of the instances, ordered by cluster, at the resolution of a picture.

    .. math:: A_{gh} = \frac{\sum_l T_{gl} T_{hl}}{\sum_j N_{gj} N_{hj}}

    is the co-association of two cells: over all pairs of different instances, one from each cell, and all
    bases that saw both, how often they have the same label. On the diagonal an instance and itself are left
    out of both sums.

    Symbols: T_gl -> members of base cluster l in cell g; N_gj -> instances of cell g that base j saw.
    Cost: a pass over the distinct rows, and cells x cells x base clusters.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    labels : array-like of int of shape (n_instances,)
        A consensus cluster per instance, from 0; -1 where unassigned: those are left out.
    order : array-like of shape (n_instances,), optional
        What instances of one cluster are sorted by, high first. None is item consensus.
    max_cells : int, default=200
        The most cells. A cell never spans two clusters, and every cluster has at least one: with more
        clusters than this there are as many cells as clusters. With fewer instances each is a cell.

    Returns
    -------
    map : ConsensusMap
        ``coassociation``, and ``cluster``, ``size`` and ``base_labels`` of each cell. The co-association of a
        cell of one instance with itself is 1.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import consensus_map
    >>> base = Partitions.of([[0, 0], [1, 1], [0, 1], [1, 1]])
    >>> consensus_map(base, [0, 1, 0, 1]).coassociation
    array([[1. , 0.5, 0. , 0. ],
           [0.5, 1. , 0.5, 0.5],
           [0. , 0.5, 1. , 1. ],
           [0. , 0.5, 1. , 1. ]])
    >>> consensus_map(base, [0, 1, 0, 1], max_cells=2).coassociation
    array([[0.5 , 0.25],
           [0.25, 1.  ]])
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    partitions, cells = _cells(partitions, labels, order, max_cells, "consensus_map")
    rows = joint_rows(partitions, cells.of_instance)
    members = _members(rows)
    t = members @ indicator(rows.codes, partitions.offsets)
    n = members @ (rows.codes >= 0).astype(float)
    agreeing, pairs = (t @ t.T).toarray(), n @ n.T
    itself = n.sum(axis=1)
    alone = (cells.size == 1) & (itself > 0)
    diagonal = np.diag_indices(len(itself))
    agreeing[diagonal] -= itself
    pairs[diagonal] -= itself
    found = np.divide(agreeing, pairs, out=np.full_like(pairs, np.nan), where=pairs > 0)
    found[alone, alone] = 1.0
    labels_of = [_most_frequent(t[:, a:b].toarray()) for a, b in pairwise(partitions.offsets)]
    return ConsensusMap(found, cells.cluster, cells.size, np.column_stack(labels_of))


def membership(
    partitions: Any, labels: ArrayLike, *, order: ArrayLike | None = None, max_cells: int = 200
) -> Membership:
    """How much instances support each cluster, ordered by cluster, at the resolution of a picture.

    The support of an instance for a cluster is that of :func:`support`: how often it is in one base cluster
    with the members, 0 where no base saw it together with any.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    labels : array-like of int of shape (n_instances,)
        A consensus cluster per instance, from 0; -1 where unassigned: those are left out.
    order : array-like of shape (n_instances,), optional
        What instances of one cluster are sorted by, high first. None is item consensus.
    max_cells : int, default=200
        The most cells; see :func:`consensus_map`.

    Returns
    -------
    membership : Membership
        ``support``, the mean over each cell's instances, for each cluster; ``cluster`` and ``size`` of cells.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import membership
    >>> base = Partitions.of([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1]])
    >>> membership(base, [0, 0, 0, 1, 1], max_cells=2).support.round(2)
    array([[0.67, 0.17],
           [0.17, 1.  ]])
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    partitions, cells = _cells(partitions, labels, order, max_cells, "membership")
    rows = joint_rows(partitions, cells.of_instance)
    cell = np.maximum(rows.labels, 0)  # an unassigned row has no support and adds nothing
    z = np.append(cells.cluster, -1)[rows.labels]
    rows = rows._replace(labels=z, n_clusters=int(cells.cluster.max()) + 1)
    together = label_counts(rows, partitions.offsets)
    seen = np.add.reduceat(together, partitions.offsets[:-1], axis=0)

    def one(block: slice) -> np.ndarray:
        part = rows._replace(codes=rows.codes[block], counts=rows.counts[block], labels=rows.labels[block])
        weighted = (support_of_rows(part, partitions.offsets, together, seen) * part.counts[:, None]).T
        return np.column_stack([np.bincount(cell[block], column, len(cells.size)) for column in weighted])

    sums = total(map_blocks(one, len(rows.codes)))
    return Membership(sums / cells.size[:, None], cells.cluster, cells.size)


def missing_patterns(partitions: Any, *, max_patterns: int = 20) -> MissingPatterns:
    """Which combinations of base clusterings saw how many instances.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    max_patterns : int, default=20
        The most patterns to return, the most frequent ones.

    Returns
    -------
    found : MissingPatterns
        ``seen`` and ``size`` of the patterns, ``n_patterns`` in all, ``n_seen`` by each base.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import missing_patterns
    >>> found = missing_patterns(Partitions.of([[0, 0], [1, -1], [1, -1], [0, -1]]))
    >>> found.seen
    array([[ True, False],
           [ True,  True]])
    >>> found.size
    array([3, 1])
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    name = "missing_patterns"
    check_parameter("max_patterns", max_patterns, Interval(Integral, 1, None, closed="left"), name)
    seen, counts = partitions.patterns.observed, partitions.patterns.counts
    # Equally frequent ones: what more bases saw first, then by the first base that makes a difference.
    first = np.lexsort((*~seen.T[::-1], -seen.sum(axis=1), -counts))[:max_patterns]
    return MissingPatterns(partitions.names, seen[first], counts[first], len(counts), partitions.n_seen)


def pairwise_agreement(partitions: Any) -> PairwiseAgreement:
    """Adjusted mutual information of every two base clusterings, on the instances that both saw.

    NaN where there are none; about 0 where they agree as far as chance would.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.

    Returns
    -------
    names, agreement : tuple of str, ndarray of shape (n_partitions, n_partitions)
        Symmetric, ones on the diagonal.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import pairwise_agreement
    >>> names, agreement = pairwise_agreement(Partitions.of([[0, 1, 0], [0, 1, 1], [1, 0, -1]]))
    >>> agreement
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    return PairwiseAgreement(partitions.names, pairwise_information(partitions))


def cluster_flow(first: ArrayLike, second: ArrayLike, *, counts: ArrayLike | None = None) -> np.ndarray:
    """How many instances go from every cluster of one labeling to every cluster of another.

    Parameters
    ----------
    first, second : array-like of int of shape (n_instances,)
        Two consensus labelings of the same instances, from 0; instances that either left unassigned (-1) are
        not counted.
    counts : array-like of int of shape (n_instances,), optional
        How many instances each entry stands for, where rows are counted. None is one each.

    Returns
    -------
    flow : ndarray of int of shape (clusters of the first, clusters of the second)

    Examples
    --------
    >>> from consilience.diagnostics import cluster_flow
    >>> cluster_flow([0, 0, 0, 1], [0, 1, 1, 2])
    array([[1, 2, 0],
           [0, 0, 1]])
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise InputError(
            f"two labelings of shapes {a.shape} and {b.shape} cannot be compared.",
            hint="pass one label per instance, of the same instances in the same order.",
        )
    for labels in (a, b):
        if labels.dtype.kind not in "iu":
            raise InputError(
                f"labels must be integers, got dtype {labels.dtype}.", hint="number clusters 0, 1, ..."
            )
    height, width = max(int(a.max()) + 1, 0), max(int(b.max()) + 1, 0)
    both = (a >= 0) & (b >= 0)
    cells = a[both].astype(np.int64) * width + b[both]
    times = None if counts is None else np.asarray(counts)[both]
    return np.bincount(cells, times, height * width).astype(np.int64).reshape(height, width)


def consensus_distribution(
    partitions: Any, *, max_pairs: int = 200_000, random_state: Any = 0
) -> ConsensusDistribution:
    """How many pairs of instances the base clusterings agree on: distribution, area and undecided share.

    The co-association of a pair is the share of the bases that saw both which put them in one cluster. If all
    bases found the same clusters, each is 0 or 1. The numbers speak of the table and not of a consensus; to
    compare numbers of clusters, make base clusterings of each number (or use :func:`resample_n_clusters`).

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    max_pairs : int, default=200_000
        All pairs are counted if the distinct rows have no more pairs than this. Else this many pairs of
        instances are drawn; their distribution function is then off by about 0.001.
    random_state : int, RandomState or None, default=0
        The seed of the draw. Fixed, so that a picture is the same twice.

    Returns
    -------
    distribution : ConsensusDistribution
        ``cdf``, ``area``, ``pac``, ``never_together``, ``exact``. The first three are NaN where no base saw
        any two instances.

    References
    ----------
    S. Monti, P. Tamayo, J. Mesirov and T. Golub, "Consensus clustering", Machine Learning 52, 2003.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import consensus_distribution
    >>> found = consensus_distribution(Partitions.of([[0, 0], [0, 0], [0, 1], [1, 1]]))
    >>> found
    ConsensusDistribution(all pairs, area 0.58, 50.0% undecided)
    >>> found.cdf[[0, 50, 100]].round(2)
    array([0.33, 0.83, 1.  ])
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    name = "consensus_distribution"
    check_parameter("max_pairs", max_pairs, Interval(Integral, 1, None, closed="left"), name)
    n_rows = partitions.distinct.n_rows
    exact = n_rows * (n_rows + 1) // 2 <= max_pairs
    if exact:
        shares, weights = _all_pairs(partitions)
    else:
        shares, weights = _drawn_pairs(partitions, max_pairs, random_source(random_state))
    known = ~np.isnan(shares)
    every, weight = weights.sum(), weights[known].sum()
    if not weight:
        unknown = float("nan")
        return ConsensusDistribution(np.full(101, unknown), unknown, unknown, 1.0, exact)
    # Shares are fractions: a rounded 0.3 must count as 0.3.
    step = np.searchsorted(_GRID + 1e-9, shares[known])
    cdf = np.cumsum(np.bincount(step, weights[known], 101)) / weight
    undecided = float(cdf[_HIGH] - cdf[_LOW])
    area = float(1.0 - shares[known] @ weights[known] / weight)
    return ConsensusDistribution(cdf, area, undecided, float(1.0 - weight / every), exact)


def _all_pairs(partitions: Partitions) -> tuple[np.ndarray, np.ndarray]:
    """Agreement of every two distinct rows, a row with itself included, and how many pairs have it."""
    codes, counts = partitions.distinct.codes, partitions.distinct.counts
    left, right = np.triu_indices(len(codes))
    weights = counts[left] * np.where(left == right, (counts[left] - 1) / 2, counts[right])
    return _shares(codes, left, right), weights


def _drawn_pairs(
    partitions: Partitions, n_pairs: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    n = partitions.n_instances
    left = rng.randint(n, size=n_pairs)
    right = (left + rng.randint(1, n, size=n_pairs)) % n
    row_of = np.repeat(np.arange(partitions.n_rows), partitions.counts)
    return _shares(partitions.codes, row_of[left], row_of[right]), np.ones(n_pairs)


def _shares(codes: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    agreeing, together = np.zeros(len(left)), np.zeros(len(left))
    for column in codes.T:
        a, b = column[left], column[right]
        both = (a >= 0) & (b >= 0)
        together += both
        agreeing += both & (a == b)
    return np.divide(agreeing, together, out=np.full_like(agreeing, np.nan), where=together > 0)


def _most_frequent(counts: np.ndarray) -> np.ndarray:
    """In every row the column of the largest count, -1 where all are zero."""
    return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)


def _members(rows: JointRows) -> sp.csr_array:
    """How many instances of every row are in every cell, (cells, rows); `rows.labels` are cells."""
    inside = np.flatnonzero(rows.labels >= 0)
    counts = rows.counts[inside].astype(float)
    return sp.csr_array((counts, (rows.labels[inside], inside)), shape=(rows.n_clusters, len(rows.counts)))


def _cells(
    partitions: Partitions, labels: ArrayLike, order: ArrayLike | None, max_cells: int, function: str
) -> tuple[Partitions, _Cells]:
    """The table with a row for each instance, and the cells of its rows: one may end inside a counted row."""
    check_parameter("max_cells", max_cells, Interval(Integral, 1, None, closed="left"), function)
    z = check_labels(partitions, labels)
    keys = support(partitions, z).item_consensus if order is None else _check_order(order, len(z))
    if partitions.n_rows < partitions.n_instances:
        row_of = np.repeat(np.arange(partitions.n_rows), partitions.counts)
        partitions, z, keys = partitions.repeat(), z[row_of], keys[row_of]
    assigned = np.flatnonzero(z >= 0)
    place = assigned[np.lexsort((-keys[assigned], z[assigned]))]
    sizes = np.bincount(z[assigned])
    n_cells = _cells_per_cluster(sizes, max_cells)
    starts, first = np.cumsum(sizes) - sizes, np.cumsum(n_cells) - n_cells
    cluster = z[place]
    rank = np.arange(len(place)) - starts[cluster]
    of_instance = np.full(len(z), -1)
    of_instance[place] = first[cluster] + rank * n_cells[cluster] // sizes[cluster]
    cells = _Cells(of_instance, np.repeat(np.arange(len(sizes)), n_cells), np.bincount(of_instance[place]))
    return partitions, cells


def _cells_per_cluster(sizes: np.ndarray, max_cells: int) -> np.ndarray:
    """One for every cluster that has members; the next one always where cells are largest."""
    cells = (sizes > 0).astype(np.int64)
    for _ in range(min(max_cells, int(sizes.sum())) - int(cells.sum())):
        cells[np.argmax(sizes / np.maximum(cells, 1))] += 1
    return cells


def _check_order(order: ArrayLike, n: int) -> np.ndarray:
    values = np.asarray(order)
    if values.shape != (n,) or values.dtype.kind not in "biuf":
        raise InputError(
            f"order has shape {values.shape} and dtype {values.dtype}, but the table has {n} instances.",
            hint="pass one number per instance, such as the confidence.",
        )
    return values.astype(float)
