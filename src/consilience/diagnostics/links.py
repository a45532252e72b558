"""What a partial ensemble can decide at all: who was seen together, and how the bases are linked.

All of it reads the table alone, before any fit, except `missing_not_at_random`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import chi2

from consilience._support.errors import InputError
from consilience.core import hot
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import (
    JointRows,
    Tabulated,
    adjusted_information,
    corrected_association,
    joint_rows,
    label_counts,
    silent,
)

# Sums over all subsets of the bases take m 2^m additions and 2^m numbers: 30 MB and half a second here.
_MAX_SUBSETS = 22
# Pairs of observation patterns compared one by one: a few seconds. Beyond, one side is sampled.
_MAX_PAIRS = 1e9
_BLOCK_PAIRS = 2**22


class WeakLink(NamedTuple):
    """Two base clusterings that share too few instances to match their clusters."""

    first: str
    second: str
    shared: int
    needed: int


@dataclass(frozen=True, repr=False, eq=False)
class Identifiability(Tabulated):
    """What `identifiability` returns."""

    n_components: int
    component_sizes: np.ndarray
    identifiable_share: float
    n_unseen: int
    base_groups: tuple[tuple[str, ...], ...]
    weak_links: tuple[WeakLink, ...]
    bottleneck: int
    never_together: float
    never_together_if_random: float
    mask_link: float
    n_patterns: int
    silent: tuple[str, ...]
    components: np.ndarray = field(metadata={"per_instance": True})

    def __repr__(self) -> str:
        return (
            f"Identifiability({self.n_components} component{'s' * (self.n_components != 1)}, "
            f"{self.identifiable_share:.1%} of pairs linked, {self.never_together:.1%} never seen together, "
            f"mask link {self.mask_link:.2f})"
        )


@dataclass(frozen=True, repr=False, eq=False)
class MissingNotAtRandom(Tabulated):
    """What `missing_not_at_random` returns; arrays have one entry per base clustering."""

    names: tuple[str, ...]
    association: np.ndarray  # bias-corrected Cramer's V of "seen" and the consensus
    p_value: np.ndarray  # chi-square, times the number of bases
    pattern_agreement: float  # adjusted mutual information of the consensus and the pattern of missing labels
    best_agreement: float  # the same of the consensus and the base that agrees most

    @property
    def follows_mask(self) -> bool:
        """Whether the consensus agrees with the pattern of missing labels more than with any base."""
        return self.pattern_agreement > self.best_agreement

    def __repr__(self) -> str:
        return (
            f"MissingNotAtRandom(association up to {self.association.max():.2f}, agreement with the "
            f"pattern {self.pattern_agreement:.2f}, with the best base {self.best_agreement:.2f})"
        )


def identifiability(partitions: Any) -> Identifiability:
    r"""How much of the table is linked, by instances and by base clusterings.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.

    Returns
    -------
    identifiability : Identifiability
        - ``components``, ``n_components``, ``component_sizes``: two instances are linked if they share a
          base cluster, directly or through others. Between components there is no evidence that any two
          instances belong together. An instance that no base saw has component -1.
        - ``identifiable_share``: share of pairs of instances inside one component.
        - ``n_unseen``: instances that no base saw.
        - ``base_groups``: names of the base clusterings, grouped by chains of shared instances. With more
          than one group the clusters of one cannot be matched with those of another.
        - ``weak_links``: base clusterings with fewer instances in common than the larger has clusters.
        - ``bottleneck``: the fewest shared instances on the best way from any base to any other (the least
          edge of a maximum spanning tree); 0 with more than one group.
        - ``never_together``: share of pairs of instances that no base saw both of, and what it would be if
          each base had missed instances at random, ``never_together_if_random``.
        - ``mask_link``: one minus the second eigenvalue of :math:`D^{-1/2} O^T M^{-1} O D^{-1/2}`, O the mask
          of observed labels, M the labels per instance, D the labels per base: 1 for a complete table, 0 for
          groups of bases that share no instance.
        - ``n_patterns``: number of different sets of bases that saw an instance.
        - ``silent``: names of the bases that say nothing.

    Notes
    -----
    ``never_together`` is exact up to 22 bases, and beyond for up to about thirty thousand patterns. With more
    patterns one side of the pairs is a systematic sample, which leaves an error of a few percent of it.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import identifiability
    >>> found = identifiability(Partitions.of([[0, -1], [0, 0], [1, 1], [-1, 1]]))
    >>> found.component_sizes
    array([2, 2])
    >>> found
    Identifiability(2 components, 50.0% of pairs linked, 12.5% never seen together, mask link 0.67)
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    components = _components(partitions)
    linked = components >= 0
    sizes = np.sort(np.bincount(components[linked], partitions.counts[linked]).astype(np.int64))[::-1]
    masks, counts = partitions.patterns.observed, partitions.patterns.counts
    n = partitions.n_instances
    shared = partitions.n_shared
    chance = np.prod(1.0 - (np.diag(shared) / n) ** 2)
    return Identifiability(
        n_components=len(sizes),
        component_sizes=sizes,
        identifiable_share=float((sizes / n) @ (sizes / n)),
        n_unseen=int(partitions.counts[~partitions.seen].sum()),
        base_groups=partitions.base_groups,
        weak_links=_weak_links(partitions, shared),
        bottleneck=_bottleneck(shared) if len(partitions.base_groups) == 1 else 0,
        never_together=_disjoint_share(masks, counts),
        never_together_if_random=float(chance),
        mask_link=_mask_link(masks, counts),
        n_patterns=len(counts),
        silent=tuple(partitions.names[j] for j in np.flatnonzero(silent(partitions))),
        components=components,
    )


def require_linked(partitions: Any) -> None:
    """Raise if the base clusterings fall into groups that share no instance.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    groups = partitions.base_groups
    if len(groups) > 1:
        text = " | ".join(listed(group) for group in groups)
        raise InputError(
            f"the base clusterings fall into {len(groups)} groups that share no instance, so their "
            f"clusters cannot be matched: {text}.",
            hint=(
                "add a base clustering that saw instances of several groups, check that all use the same "
                "ids, or merge each group on its own."
            ),
        )


def missing_not_at_random(partitions: Any, labels: ArrayLike | JointRows) -> MissingNotAtRandom:
    r"""Whether labels are missing more often in some clusters than in others.

    For each base: Cramer's V of "seen by this base" and the consensus cluster, corrected for the bias of
    small tables [1]_, and the p-value of the chi-square test times the number of bases (Bonferroni). Then,
    for all bases together: the adjusted mutual information of the consensus and the pattern of missing
    labels.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    labels : array-like of int of shape (n_instances,)
        A consensus cluster per instance, from 0; -1 where unassigned.

    Returns
    -------
    found : MissingNotAtRandom
        A base that saw everything (or nothing) has association 0 and p-value 1.

    References
    ----------
    .. [1] W. Bergsma, "A bias-correction for Cramer's V and Tschuprow's T", Journal of the Korean Statistical
       Society 42, 2013.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import missing_not_at_random
    >>> base = Partitions.of([[0, 0], [0, 0], [1, -1], [1, -1]] * 10)
    >>> missing_not_at_random(base, [0, 0, 1, 1] * 10).association.round(2)
    array([0., 1.])
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    rows = joint_rows(partitions, labels)
    together = label_counts(rows, partitions.offsets)
    seen = np.add.reduceat(together, partitions.offsets[:-1], axis=0)
    clustered = rows.labels >= 0
    sizes = np.bincount(rows.labels[clustered], rows.counts[clustered], rows.n_clusters)
    found = np.array([_association(row, sizes - row) for row in seen])
    best = max(
        adjusted_information(together[low:high]) if together[low:high].any() else 0.0
        for low, high in pairwise(partitions.offsets.tolist())
    )
    return MissingNotAtRandom(
        names=partitions.names,
        association=found[:, 0],
        p_value=np.minimum(found[:, 1] * len(found), 1.0),
        pattern_agreement=_pattern_agreement(partitions, rows),
        best_agreement=float(best),
    )


def _association(seen: np.ndarray, unseen: np.ndarray) -> tuple[float, float]:
    """Bias-corrected Cramer's V of a 2 x K table, and its chi-square p-value."""
    table = np.vstack([seen, unseen])
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    n, k = table.sum(), table.shape[1]
    if len(table) < 2 or k < 2:
        return 0.0, 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    statistic = float(((table - expected) ** 2 / expected).sum())
    return corrected_association(statistic / n, n, 2, k), float(chi2.sf(statistic, k - 1))


def _pattern_agreement(partitions: Partitions, rows: JointRows) -> float:
    labels, k = rows.labels[rows.inverse], rows.n_clusters
    clustered = labels >= 0
    cells = partitions.pattern_of[clustered] * k + labels[clustered]
    table = np.bincount(cells, partitions.counts[clustered], partitions.patterns.n_rows * k)
    return adjusted_information(table.reshape(-1, k))


def _components(partitions: Partitions) -> np.ndarray:
    """Component of every instance in the graph of instances and base clusters, by lowest cluster; or -1.

    Clusters are joined through the rows, so the union-find has a node per cluster and none per instance.
    """
    rows = partitions.distinct
    offsets = partitions.offsets.astype(np.int32)
    clusters = np.where(rows.codes >= 0, rows.codes + offsets[:-1], offsets[-1])
    first = clusters.min(axis=1)
    parent = np.arange(offsets[-1] + 1, dtype=np.int32)
    for column in clusters.T:
        linked = np.flatnonzero(column < offsets[-1])
        hot.join(first[linked], column[linked], np.ones(len(linked)), parent)
    numbers = np.unique(parent[:-1], return_inverse=True)[1]
    return np.append(numbers, -1)[first][partitions.inverse]


def _weak_links(partitions: Partitions, shared: np.ndarray) -> tuple[WeakLink, ...]:
    k = partitions.n_clusters_per_partition
    needed = np.maximum(k[:, None], k)
    weak = np.argwhere(np.triu((shared > 0) & (shared < needed), 1))
    names = partitions.names
    return tuple(WeakLink(names[i], names[j], int(shared[i, j]), int(needed[i, j])) for i, j in weak)


def _bottleneck(shared: np.ndarray) -> int:
    if len(shared) == 1:
        return int(shared[0, 0])
    off = shared * ~np.eye(len(shared), dtype=bool)
    return int(-minimum_spanning_tree(sparse.csr_array(-off)).data.max())


def _mask_link(masks: np.ndarray, counts: np.ndarray) -> float:
    if masks.shape[1] == 1:
        return 1.0
    seen = masks.any(axis=1)
    weights = counts[seen] / masks[seen].sum(axis=1)
    scale = 1.0 / np.sqrt(counts @ masks)
    matrix = (masks[seen] * weights[:, None]).T @ masks[seen] * scale * scale[:, None]
    return float(np.clip(1.0 - np.linalg.eigvalsh(matrix)[-2], 0.0, 1.0))


def _disjoint_share(masks: np.ndarray, counts: np.ndarray) -> float:
    """Share of ordered pairs of instances whose patterns have no base in common."""
    m = masks.shape[1]
    n = float(counts.sum())
    if m <= _MAX_SUBSETS and len(masks) ** 2 > m << m:
        return _disjoint_by_subsets(masks, counts) / n**2
    # Two patterns with more than m labels together must meet.
    n_labels = masks.sum(axis=1)
    possible = n_labels <= m - n_labels.min()
    return _disjoint_by_pairs(masks[possible], counts[possible].astype(float)) / n**2


def _disjoint_by_subsets(masks: np.ndarray, counts: np.ndarray) -> float:
    """For every set of bases, how many instances were seen by none outside it; then look up complements."""
    m = masks.shape[1]
    key = masks @ (1 << np.arange(m))
    inside = np.bincount(key, counts, 1 << m)
    for bit in range(m):
        halves = inside.reshape(-1, 2, 1 << bit)
        halves[:, 1] += halves[:, 0]
    return float(counts @ inside[(1 << m) - 1 - key])


def _disjoint_by_pairs(masks: np.ndarray, counts: np.ndarray) -> float:
    if not len(masks):
        return 0.0
    bits = np.packbits(masks, axis=1)
    words = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    words[:, : bits.shape[1]] = bits
    columns = words.view(np.uint64).T
    n_left = min(len(masks), max(int(_MAX_PAIRS / len(masks)), 1))
    left = np.arange(len(masks))
    weights = counts
    if n_left < len(masks):
        # Evenly spaced instances in the order of the patterns: every instance is as likely as any other.
        reach = np.cumsum(counts)
        left = np.searchsorted(reach, (np.arange(n_left) + 0.5) / n_left * reach[-1], side="right")
        weights = np.full(n_left, reach[-1] / n_left)
    step = max(_BLOCK_PAIRS // len(masks), 1)
    found = 0.0
    for start in range(0, len(left), step):
        rows = left[start : start + step]
        met = np.zeros((len(rows), len(masks)), dtype=bool)
        for column in columns:
            met |= (column[rows, None] & column) != 0
        found += float(weights[start : start + step] @ (~met @ counts))
    return found


def listed(names: tuple[str, ...]) -> str:
    """Names in quotes, the first five of them."""
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
