"""How many clusters the sources support, and which other numbers make sense."""

from __future__ import annotations

from dataclasses import dataclass, field

from consilience.report.job import Job
from consilience.results import Fusion

TITLE = "How many clusters"


@dataclass
class Candidate:
    """A number of clusters that makes sense."""

    n_clusters: int
    role: str
    found_by: list[str] = field(default_factory=list)
    modularity: float | None = None
    stability: float | None = None
    smallest: float | None = None


@dataclass
class Curve:
    """What was computed for every number."""

    k: list[int] = field(default_factory=list)
    eigenvalue: list[float] = field(default_factory=list)
    null: list[float] = field(default_factory=list)
    gap: list[float | None] = field(default_factory=list)
    score: list[float | None] = field(default_factory=list)
    silhouette: list[float | None] = field(default_factory=list)
    walk: list[float | None] = field(default_factory=list)
    smallest: list[float | None] = field(default_factory=list)
    modularity: list[float | None] = field(default_factory=list)
    stability: list[float | None] = field(default_factory=list)


@dataclass
class Count:
    """How the number was found."""

    n_clusters: int
    low: int
    high: int
    rule: str
    n_significant: int = 0
    reliable: bool = False
    repeatable: bool = False
    may_be_one_cloud: bool = False
    bases_have: int | None = None
    sentences: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    curve: Curve = field(default_factory=Curve)


@dataclass
class Result:
    """Nothing where the number was given."""

    count: Count | None = None


def of(fusion: Fusion, job: Job) -> Result | None:
    """Of a result whose number of clusters was found, or that has the number a comparison found."""
    found = fusion.cluster_count
    compared = None if job.comparison is None else job.comparison.cluster_count
    if compared is not None and compared.n_clusters == fusion.n_clusters:
        found = compared
    return None if found is None else Result(found.as_dict())  # type: ignore[arg-type]  # read by its form
