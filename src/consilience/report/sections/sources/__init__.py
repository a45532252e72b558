"""What was merged: base clusterings or views, how far each agrees with the answer and with the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from scipy.cluster.hierarchy import average, leaves_list
from scipy.spatial.distance import squareform

from consilience.diagnostics import pairwise_agreement
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import to_plain
from consilience.report.form import Per, Place
from consilience.report.job import Job
from consilience.results import Fusion

TITLE = "Which sources to trust"
SIZES = {"base clustering": ("n_partitions",), "view": ("views", "names")}
_MOST_BASES = 200  # of the picture of their agreement


@dataclass
class Agreement:
    """Agreement of every two base clusterings, similar ones side by side; averaged where they are many."""

    bases: list[list[Annotated[int, Place("base clustering")]]] = field(default_factory=list)
    matrix: list[list[float | None]] = field(default_factory=list)
    mean: float | None = None


@dataclass
class Table:
    """The base clusterings of a table."""

    n_partitions: int = 0
    n_distinct: int = 0
    names: Annotated[list[str], Per("base clustering")] = field(default_factory=list)
    groups: Annotated[list[str], Per("base clustering")] | None = None  # the view of each
    n_clusters: Annotated[list[int], Per("base clustering")] = field(default_factory=list)
    n_seen: Annotated[list[int], Per("base clustering")] = field(default_factory=list)
    agreement: Agreement = field(default_factory=Agreement)


@dataclass
class Bases:
    """Each base clustering and the answer."""

    agreement: Annotated[list[float | None], Per("base clustering")]
    weight: Annotated[list[float | None], Per("base clustering")]
    novelty: Annotated[list[float], Per("base clustering")]
    silent: Annotated[list[bool], Per("base clustering")]
    association: Annotated[list[float], Per("base clustering")]
    p_value: Annotated[list[float], Per("base clustering")]
    given_weight: Annotated[list[float], Per("base clustering")] | None = None
    group: Annotated[list[str | None], Per("base clustering")] | None = None  # of those that count as one


@dataclass
class Views:
    """What was read and used of each view, and how strongly it supports each cluster."""

    absent_share: float
    names: list[str]
    kind: Annotated[list[str], Per("view")]
    looks: Annotated[list[str], Per("view")]
    n_rows: Annotated[list[int], Per("view")]
    n_empty: Annotated[list[int], Per("view")]
    agreement: Annotated[list[float | None], Per("view")]
    weight: Annotated[list[float], Per("view")]
    relation: Annotated[list[float | None], Per("view")]
    support: Annotated[list[Annotated[list[float | None], Per("cluster")]], Per("view")]


@dataclass
class Together:
    """What base clusterings and views counted beside each other, and why."""

    kind: Annotated[list[str], Per("base clustering")]
    agreement: Annotated[list[float | None], Per("base clustering")]
    trust: Annotated[list[float | None], Per("base clustering")]
    closest: Annotated[list[str], Per("base clustering")]
    weight: Annotated[list[float], Per("base clustering")]


@dataclass
class Result:
    """Of the sources."""

    bases: Bases | None = None
    views: Views | None = None
    together: Together | None = None


def of(fusion: Fusion, job: Job) -> Result:
    """Of labels, of views, or of both."""
    return Result(_bases(fusion), _views(fusion), _together(fusion))


def of_table(partitions: Partitions) -> Table:
    """What is known before any consensus."""
    return Table(
        partitions.n_partitions,
        partitions.distinct.n_rows,
        list(partitions.names),
        None if partitions.views is None else list(partitions.views),
        partitions.n_clusters_per_partition.tolist(),
        partitions.n_seen.tolist(),
        _agreement(partitions),
    )


def _bases(fusion: Fusion) -> Bases:
    found = fusion.diagnostics
    figures = (found.bases.agreement, found.bases.weights, found.bases.novelty)
    agreement, weight, novelty = (to_plain(values.round(4)) for values in figures)
    given = fusion.given_weights
    return Bases(
        agreement,
        weight,
        novelty,
        found.bases.silent.tolist(),
        to_plain(found.missing.association.round(4)),
        to_plain(found.missing.p_value),
        None if given is None else [float(value) for value in given],
        [source.group for source in fusion.sources] if fusion.groups else None,
    )


def _views(fusion: Fusion) -> Views | None:
    used, told = fusion.views, fusion.view_diagnostics
    if told is None:
        return None
    return Views(
        fusion.headline.missing_share,
        [view.name for view in used],
        [view.kind for view in used],
        [", ".join(view.looks) for view in used],
        [view.n_rows for view in used],
        [view.n_empty for view in used],
        to_plain(np.array([view.agreement for view in used])),
        [view.weight for view in used],
        to_plain(told.view_relations_),
        to_plain(fusion.view_support),
    )


def _together(fusion: Fusion) -> Together | None:
    if fusion.mixed is None:
        return None
    sources = fusion.sources
    return Together(
        ["labels" if source.kind == "labels" else "view" for source in sources],
        to_plain(np.array([source.agreement for source in sources])),
        to_plain(np.array([source.trust for source in sources])),
        [source.closest for source in sources],
        [source.weight for source in sources],
    )


def _agreement(partitions: Partitions) -> Agreement:
    matrix = pairwise_agreement(partitions).agreement
    m = len(matrix)
    pairs = matrix[~np.eye(m, dtype=bool) & ~np.isnan(matrix)]
    mean = float(pairs.mean()) if len(pairs) else None
    known = np.where(np.isnan(matrix), mean or 0.0, matrix)
    order = np.arange(m)
    if partitions.views is None and m > 2:
        apart = np.clip(1.0 - known, 0.0, None)
        np.fill_diagonal(apart, 0.0)
        order = leaves_list(average(squareform(apart, checks=False)))
    cells = np.array_split(order, min(m, _MOST_BASES))
    if len(cells) < m:
        member = np.zeros((len(cells), m))
        for row, cell in zip(member, cells, strict=True):
            row[cell] = 1.0 / len(cell)
        matrix = member @ known @ member.T
    else:
        matrix = matrix[np.ix_(order, order)]
    return Agreement([cell.tolist() for cell in cells], to_plain(matrix.round(2)), mean)
