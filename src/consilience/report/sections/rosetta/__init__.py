"""What each source calls the clusters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from consilience.report.form import Place
from consilience.report.job import Job
from consilience.results import Fusion
from consilience.results.rosetta import rosetta

TITLE = "What each source calls the clusters"
MOST_SOURCES = 20  # of more, which are runs of a program, names say nothing


@dataclass
class Called:
    """A cluster in the words of every source."""

    cluster: Annotated[int, Place("cluster")]
    cells: list[str] = field(default_factory=list)


@dataclass
class Rosetta:
    """All clusters."""

    sources: list[str]
    clusters: list[Called] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)


@dataclass
class Result:
    """Nothing where views were clustered, or where there are many sources."""

    rosetta: Rosetta | None = None


def of(fusion: Fusion, job: Job) -> Result | None:
    """Of a few sources with labels of their own."""
    table = fusion.partitions
    if fusion.by_views or table.views is not None or not 2 <= table.n_partitions <= MOST_SOURCES:
        return None
    found = rosetta(fusion)
    numbers = [c for c, n in enumerate(fusion.headline.size) if n]
    called = [Called(c, list(row)) for c, row in zip(numbers, found.cells, strict=True)]
    return Result(Rosetta(list(found.sources), called, list(found.sentences)))
