"""How stable the answer is on other instances and sources, and which source drives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from consilience._support.errors import InputError, InputTypeError
from consilience.report.form import Place
from consilience.report.job import Job
from consilience.results import Fusion
from consilience.results.stability import Stability as Found
from consilience.results.stability import what_of

TITLE = "How stable it is, and what drives it"


@dataclass
class Part:
    """All refits of a kind."""

    part: str
    what: str
    n_refits: int
    n_failed: int = 0
    ari: float | None = None
    lowest: float | None = None
    n_clusters: list[list[int]] = field(default_factory=list)  # (number, times)
    single: list[float] = field(default_factory=list)  # the ARI of every refit


@dataclass
class Cluster:
    """How far a cluster is found again."""

    cluster: Annotated[int, Place("cluster")]
    verdict: str
    instances: float | None = None
    sources: float | None = None
    lowest: float | None = None
    without: str = ""
    n_dissolved: int = 0
    n_refits: int = 0


@dataclass
class LeftOut:
    """The answer without a source."""

    source: str
    ari: float | None = None
    n_clusters: int = 0
    n_stable: int = 0
    n_lost: int = 0
    problem: str = ""


@dataclass
class Stability:
    """All of it."""

    noun: str
    sentences: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


@dataclass
class Result:
    """Nothing but for the first result, where its stability was given."""

    stability: Stability | None = None


def of(fusion: Fusion, job: Job) -> Result | None:
    """Of the result that was fitted again."""
    found = job.stability
    if found is None or fusion is not job.main:
        return None
    if not isinstance(found, Found):
        raise InputTypeError(
            f"stability must be a Stability, got {type(found).__name__}.",
            hint="pass what fusion.stability() returned.",
        )
    if [one.cluster for one in found.clusters] != [c for c, n in enumerate(fusion.headline.size) if n]:
        raise InputError(
            "the stability is about other clusters than those of the result.",
            hint="make it of the first result: fusion.stability().",
        )
    told = found.as_dict()
    for part in told["parts"]:
        part["what"] = what_of(part["part"], found.share, found.noun)
        own = [one for one in found.refits if one.part == part["part"] and not one.problem]
        part["single"] = [one.ari for one in own]
    return Result(told)  # type: ignore[arg-type]  # read by its form
