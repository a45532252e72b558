"""What was found, how sure it is, and what speaks against it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from consilience.inference.counts import Finding
from consilience.report.form import Per
from consilience.report.job import Job
from consilience.results import Fusion

TITLE = ""  # it is the head of the page


@dataclass
class Warned:
    """A warning and what to try."""

    text: str
    hint: str = ""

    @classmethod
    def of(cls, found: Finding) -> Warned:
        """As sentences that stand alone."""
        return cls(*(part[:1].upper() + part[1:] for part in (found.text, found.hint)))


@dataclass
class Result:
    """The first lines of the page."""

    name: str
    method: str
    n_clusters: int
    reason: str = ""
    names: Annotated[list[str], Per("cluster")] | None = None
    n_unassigned: int = 0
    confidence: float | None = None
    unsure: float | None = None
    ranks_only: bool = False
    reading: str = ""
    chance: str = ""  # that the sources agree no more than by chance
    p_chance: float | None = None
    likelier: str = ""
    repeatability: str = ""
    effective_number: float | None = None
    dependence: float | None = None
    agreement: float | None = None
    warnings: list[Warned] = field(default_factory=list)
    evidence: str = ""  # where labels and views were merged together: what was merged
    sides: list[str] = field(default_factory=list)  # and what each side had to do with it


def of(fusion: Fusion, job: Job) -> Result:
    """Figures that every other surface says too, and how to read them."""
    told, found = fusion.headline, fusion.diagnostics
    return Result(
        name=job.name,
        method=fusion.method,
        n_clusters=told.n_clusters,
        reason=fusion.reason,
        names=None if fusion.cluster_names is None else list(fusion.names),
        n_unassigned=told.n_unassigned,
        confidence=told.confidence,
        unsure=told.unsure,
        ranks_only=found.ranks_only,
        reading=told.reading,
        chance=told.chance,
        repeatability=told.repeatability,
        p_chance=None if np.isnan(told.p_chance) else told.p_chance,
        likelier=told.likelier,
        effective_number=found.bases.effective_number,
        dependence=found.dependence,
        agreement=float(np.nanmean(found.bases.agreement)),
        warnings=[Warned.of(text) for text in told.warnings],
        evidence="" if told.sides is None else told.evidence,
        sides=[] if told.sides is None else list(told.sides.sentences),
    )
