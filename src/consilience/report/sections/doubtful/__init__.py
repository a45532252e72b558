"""Who is doubtful: a list of instances, the least sure first, with what each source said of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from consilience.inference.counts import to_plain
from consilience.report.form import Id, Per, Place
from consilience.report.job import Job
from consilience.report.sections.doubtful.explaining import explain
from consilience.report.sections.doubtful.lines import choose_lines, ids_of
from consilience.report.sections.doubtful.reasons import judge_votes, reason
from consilience.results import Fusion

TITLE = "Who is doubtful"
SIZES = {
    "listed line": ("instances", "id"),
    "explained line": ("explained", "said"),
    "answer": ("explained", "answers", "label"),
}
# A picture of single votes is readable up to this many base clusterings.
_MOST_VOTES = 24


@dataclass
class Instances:
    """Lines of the list; instances that nothing tells apart share one."""

    id: list[Id] = field(default_factory=list)  # of the first, or its labels where instances have no ids
    others: Annotated[list[list[Id]], Per("listed line")] = field(default_factory=list)
    cluster: Annotated[list[Annotated[int, Place("cluster")]], Per("listed line")] = field(
        default_factory=list
    )
    alternative: Annotated[list[Annotated[int, Place("cluster")]], Per("listed line")] = field(
        default_factory=list
    )
    confidence: Annotated[list[float | None], Per("listed line")] = field(default_factory=list)
    margin: Annotated[list[float | None], Per("listed line")] = field(default_factory=list)
    coverage: Annotated[list[float | None], Per("listed line")] = field(default_factory=list)
    alike: Annotated[list[int], Per("listed line")] = field(default_factory=list)
    sampled: Annotated[list[bool], Per("listed line")] = field(default_factory=list)
    why: Annotated[list[str], Per("listed line")] = field(default_factory=list)
    votes: (
        Annotated[
            list[Annotated[list[Annotated[int, Place("cluster")]], Per("base clustering")]],
            Per("listed line"),
        ]
        | None
    ) = None


@dataclass
class Answers:
    """Base clusters that members of the list are in, and how each is spread over the clusters: pairs of a
    cluster and thousandths."""

    base: Annotated[list[Annotated[int, Place("base clustering")]], Per("answer")] = field(
        default_factory=list
    )
    label: list[Id] = field(default_factory=list)
    shares: Annotated[list[list[int]], Per("answer")] = field(default_factory=list)


@dataclass
class Explained:
    """What is behind the first lines."""

    answers: Answers = field(default_factory=Answers)
    said: list[Annotated[list[Annotated[int, Place("answer")]], Per("base clustering")]] = field(
        default_factory=list
    )
    by_labels: Annotated[list[int], Per("explained line")] = field(default_factory=list)
    nearest: Annotated[list[list[list[Id]]], Per("explained line")] = field(default_factory=list)
    turns: Annotated[list[list[list[Id | None]] | None], Per("explained line")] = field(default_factory=list)


@dataclass
class Result:
    """The list and what explains it."""

    instances: Instances = field(default_factory=Instances)
    explained: Explained = field(default_factory=Explained)


def of(fusion: Fusion, job: Job) -> Result:
    """Everything about an instance follows from its labels and cluster, so it is worked out once a line."""
    chosen = choose_lines(fusion, job.lines)
    found, place = fusion.diagnostics, chosen.first
    listed = Instances(
        id=ids_of(fusion, place),
        others=[ids_of(fusion, members[1:]) for members in chosen.members],
        cluster=fusion.labels[place].tolist(),
        alternative=found.alternative[place].tolist(),
        confidence=to_plain(found.confidence[place].round(4)),
        margin=to_plain(found.margin[place].round(4)),
        coverage=to_plain(found.coverage[place].round(4)),
        alike=chosen.n_instances.tolist(),
        sampled=chosen.sampled.tolist(),
        why=[""] * len(place),
    )
    votes = judge_votes(fusion.rows, fusion.rows.inverse[place], fusion.opinions.offsets)
    names = None if fusion.cluster_names is None else fusion.names
    columns = (listed.cluster, listed.alternative, found.margin[place].tolist(), votes)
    listed.why = [reason(*line, names) for line in zip(*columns, strict=True)]
    if votes.shape[1] <= _MOST_VOTES:
        listed.votes = votes.tolist()
    return Result(listed, explain(fusion, place))  # type: ignore[arg-type]  # read by its form
