"""Several results side by side, and where instances go from one to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from consilience.diagnostics import cluster_flow
from consilience.inference.counts import adjusted_information, to_plain
from consilience.report.job import Job
from consilience.results import Fusion

TITLE = "Results side by side"


@dataclass
class Compared:
    """What `compare` measured."""

    agreement: float | None = None
    stability: float | None = None
    seconds: float | None = None


@dataclass
class Result:
    """How one result compares."""

    with_first: float | None = None
    compared: Compared | None = None


@dataclass
class Page:
    """What is said of all results together."""

    choice: str | None = None
    flows: list[list[list[int]]] = field(default_factory=list)  # (cluster, cluster of the next, instances)


def of(fusion: Fusion, job: Job) -> Result | None:
    """Where there are several."""
    if len(job.fusions) == 1:
        return None
    told = None
    if job.comparison is not None:
        rows = [row for row in job.comparison.rows if not row.error]
        row = dict(zip(job.comparison.fusions, rows, strict=True))[job.name]
        told = Compared(*map(to_plain, (row.agreement, row.stability, row.seconds)))
    same = np.array_equal(fusion.labels, job.main.labels)
    return Result(
        1.0 if same else to_plain(adjusted_information(_flow(job.main, fusion).astype(float))), told
    )


def of_page(job: Job) -> Page:
    """The flows between neighbours."""
    flows = []
    for first, second in pairwise(job.fusions.values()):
        table = _flow(first, second)
        a, b = np.nonzero(table)
        flows.append(np.column_stack([a, b, table[a, b]]).tolist())
    return Page(None if job.comparison is None else job.comparison.reason, flows)


def _flow(first: Fusion, second: Fusion) -> np.ndarray:
    return cluster_flow(first.labels, second.labels, counts=first.diagnostics.counts)
