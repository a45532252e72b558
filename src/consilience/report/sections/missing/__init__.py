"""What is missing, and where: who saw whom, and whether gaps follow the clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated

import numpy as np

from consilience.diagnostics import missing_patterns
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import JointRows, label_counts, to_plain
from consilience.report.form import Per, Place
from consilience.report.job import Job, by_cluster
from consilience.results import Fusion

TITLE = "Where the evidence is thin"
SIZES = {
    "set of base clusterings": ("patterns", "sets"),
    "pattern": ("patterns", "size"),
    "bar": ("seen_by",),
}
# Sets of base clusterings and patterns of the chart of gaps, bars of the histogram.
_MOST_SETS, _MOST_PATTERNS, _BARS = 40, 20, 20


@dataclass
class Patterns:
    """Which sets of base clusterings saw how many instances; bases with the same gaps are one column."""

    n_patterns: int = 0
    n_sets: int = 0
    sets: list[str] = field(default_factory=list)
    first: Annotated[list[Annotated[int, Place("base clustering")]], Per("set of base clusterings")] = field(
        default_factory=list
    )
    seen: Annotated[list[Annotated[list[bool], Per("set of base clusterings")]], Per("pattern")] = field(
        default_factory=list
    )
    size: list[int] = field(default_factory=list)


@dataclass
class Table:
    """What a table of labels lacks."""

    n_labels: int = 0
    n_complete: int = 0
    n_unseen: int = 0
    patterns: Patterns = field(default_factory=Patterns)
    seen_by: list[list[int]] = field(default_factory=list)  # from and to how many bases: a bar each


@dataclass
class Missing:
    """Whether gaps have to do with the clusters."""

    pattern_agreement: float | None = None
    best_agreement: float | None = None
    never_together: float = 0.0
    never_together_if_random: float = 0.0
    n_components: int = 1
    bottleneck: int = 0


@dataclass
class Result:
    """Gaps by cluster; the last column is of the unassigned."""

    missing: Missing | None = None
    patterns: Annotated[list[list[int]], Per("pattern")] = field(default_factory=list)
    seen_by: Annotated[list[list[int]], Per("bar")] = field(default_factory=list)
    # Members of each cluster that each base saw.
    base_seen: Annotated[list[list[int]], Per("base clustering")] = field(default_factory=list)


def of(fusion: Fusion, job: Job) -> Result:
    """Of one result."""
    found, rows = fusion.diagnostics, fusion.rows
    table, offsets = of_table(fusion.opinions), fusion.opinions.offsets
    missing = Missing(
        to_plain(found.missing.pattern_agreement),
        to_plain(found.missing.best_agreement),
        found.links.never_together,
        found.links.never_together_if_random,
        found.links.n_components,
        found.links.bottleneck,
    )
    base_seen = np.add.reduceat(label_counts(rows, offsets), offsets[:-1], axis=0)
    return Result(
        missing,
        _by_pattern(rows, table.patterns),
        _by_number(rows, table.seen_by),
        base_seen.astype(np.int64).tolist(),
    )


def of_table(partitions: Partitions) -> Table:
    """What is known before any consensus."""
    distinct = partitions.distinct
    return Table(
        int(partitions.n_seen.sum()),
        int((distinct.counts * (distinct.codes >= 0).all(axis=1)).sum()),
        int(partitions.counts[~partitions.seen].sum()),
        _patterns(partitions),
        _bins(partitions.n_partitions),
    )


def _patterns(partitions: Partitions) -> Patterns:
    packed = np.packbits(partitions.distinct.codes >= 0, axis=0)
    columns: dict[bytes, list[int]] = {}
    for j in range(partitions.n_partitions):
        columns.setdefault(packed[:, j].tobytes(), []).append(j)
    sets = list(columns.values())
    found = missing_patterns(partitions, max_patterns=_MOST_PATTERNS)
    if len(sets) > _MOST_SETS:
        return Patterns(found.n_patterns, len(sets))
    first = [members[0] for members in sets]
    return Patterns(
        found.n_patterns,
        len(sets),
        [_set_name(members, partitions.names, partitions.views) for members in sets],
        first,
        found.seen[:, first].tolist(),
        found.size.tolist(),
    )


def _set_name(members: list[int], names: Sequence[str], views: Sequence[str] | None) -> str:
    if len(members) == 1:
        return names[members[0]]
    if len(members) == len(names):
        return f"all {len(names)}"
    if views is not None:
        own = sorted({views[j] for j in members}, key=views.index)
        if sum(view in own for view in views) == len(members):
            return " + ".join(own)
    return f"{names[members[0]]} and {len(members) - 1} more"


def _bins(m: int) -> list[list[int]]:
    if m <= _BARS + 4:
        return [[number, number] for number in range(m + 1)]
    edges = np.linspace(0, m + 1, _BARS + 1).round().astype(int).tolist()
    return [[low, high - 1] for low, high in pairwise(edges)]


def _by_pattern(rows: JointRows, patterns: Patterns) -> list[list[int]]:
    if not patterns.size:
        return []
    power = 1 << np.arange(len(patterns.first), dtype=np.int64)
    shown = np.array(patterns.seen) @ power
    order = np.argsort(shown)
    key = (rows.codes[:, patterns.first] >= 0) @ power
    place = np.minimum(np.searchsorted(shown, key, sorter=order), len(shown) - 1)
    known = shown[order][place] == key
    kind = order[place[known]]
    return by_cluster(kind, rows.labels[known], rows.counts[known], len(shown), rows.n_clusters)


def _by_number(rows: JointRows, bins: list[list[int]]) -> list[list[int]]:
    kind = np.searchsorted([high for _, high in bins], (rows.codes >= 0).sum(axis=1))
    return by_cluster(kind, rows.labels, rows.counts, len(bins), rows.n_clusters)
