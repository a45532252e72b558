"""What distinguishes the clusters in columns that were not clustered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import counted
from consilience.diagnostics import Profile as Found
from consilience.io.features import day_text
from consilience.report.form import Id, Place
from consilience.report.job import Job, plain_id
from consilience.report.sections.answer import Warned
from consilience.results import Fusion

TITLE = "What else distinguishes the clusters"


@dataclass
class Level:
    """A value that is more frequent in a cluster than elsewhere."""

    level: Id
    count: int
    share: float
    lift: float


@dataclass
class InCluster:
    """A column in a cluster: its mean, or its levels."""

    cluster: Annotated[int, Place("cluster")]
    n: int
    missing: float | None = None
    mean: float | None = None
    median: float | None = None
    shift: float | None = None
    day: str = ""  # the mean of a date
    levels: list[Level] = field(default_factory=list)


@dataclass
class Column:
    """A column and how strongly it goes with the clusters."""

    name: str
    kind: str
    effect: float
    p_value: float
    missing: float
    clusters: list[InCluster] = field(default_factory=list)


@dataclass
class LeftOut:
    """A column that nothing can be said about."""

    name: str
    reason: str


@dataclass
class Profile:
    """The columns, the strongest first."""

    n_instances: int
    n_permutations: int
    columns: list[Column] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)


@dataclass
class Result:
    """Nothing but for the first result, where a profile was given."""

    profile: Profile | None = None


def of(fusion: Fusion, job: Job) -> Result | None:
    """Of the result that the profile was made of."""
    found = job.profile
    if found is None or fusion is not job.main:
        return None
    if not isinstance(found, Found):
        raise InputTypeError(
            f"profile must be a Profile, got {type(found).__name__}.",
            hint="pass what diagnostics.profile(fusion, frame) returned.",
        )
    if len(found.cluster_names) != fusion.n_numbers:
        raise InputError(
            f"the profile is about {counted(len(found.cluster_names), 'cluster')}, the result has "
            f"{fusion.n_numbers}.",
            hint="make it of the first result: diagnostics.profile(fusion, frame).",
        )
    told = found.as_dict()
    for column in told["columns"]:
        for cluster in column["clusters"]:
            if column["kind"] == "date" and cluster["mean"] is not None:
                cluster["day"] = day_text(round(cluster["mean"]))
            for level in cluster.get("levels", ()):
                level["level"] = plain_id(level["level"])
    told["warnings"] = [Warned.of(text) for text in found.warnings]
    return Result(told)  # type: ignore[arg-type]  # read by its form
