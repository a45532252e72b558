"""Who moved since an earlier result."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from consilience.report.form import Id
from consilience.report.job import Job, plain_id
from consilience.results import Changes as FoundChanges
from consilience.results import Fusion

TITLE = "What changed"
# As in the list of doubtful instances: the most ids of a line, on average.
_IDS_A_LINE = 10


@dataclass
class Line:
    """What became of a cluster; counts are of the instances in both results, except the last two."""

    cluster: int
    name: str
    what: str  # "stayed", "new" or "gone"
    split: list[int] = field(default_factory=list)
    merged: list[int] = field(default_factory=list)
    before: int = 0
    kept: int = 0
    left: int = 0
    joined: int = 0
    new: int = 0  # instances that the earlier result did not have
    now: int = 0


@dataclass
class Changes:
    """What became of the clusters of an earlier result: in words, a line for each cluster, and the flows."""

    sentences: list[str] = field(default_factory=list)
    n_common: int = 0
    n_new: int = 0
    n_gone: int = 0
    n_moved: int = 0
    clusters: list[Line] = field(default_factory=list)
    flows: list[list[int]] = field(default_factory=list)
    who: list[list[Id]] = field(default_factory=list)  # of each flow to another cluster, its instances


@dataclass
class Result:
    """Nothing where no earlier result was followed."""

    changes: Changes | None = None


def of(fusion: Fusion, job: Job) -> Result | None:
    """Of a result whose clusters follow earlier ones."""
    found = fusion.changes
    if found is None:
        return None
    names = {} if fusion.cluster_names is None else dict(enumerate(fusion.names))
    before, now = Counter[int](), Counter[int]()
    for flow in found.flows:
        before[flow.before] += flow.n_instances
        now[flow.now] += flow.n_instances
    kept = Counter({flow.now: flow.n_instances for flow in found.flows if flow.before == flow.now})
    sizes = dict(enumerate(fusion.headline.size.tolist()))
    lines = []
    for c in sorted({*found.stayed, *found.appeared, *found.vanished}):
        size = 0 if c in found.vanished else sizes[c]
        lines.append(
            Line(
                cluster=c,
                name={**found.names, **names}.get(c, str(c)),
                what="new" if c in found.appeared else "gone" if c in found.vanished else "stayed",
                split=list(found.split.get(c, ())),
                merged=list(found.merged.get(c, ())),
                before=before[c],
                kept=kept[c],
                left=before[c] - kept[c],
                joined=now[c] - kept[c],
                new=size - now[c],
                now=size,
            )
        )
    return Result(
        Changes(
            list(found.told(names)),
            found.n_common,
            found.n_new,
            found.n_gone,
            found.n_moved,
            lines,
            [list(flow) for flow in found.flows],
            [] if job.hide_ids else _who(found, _IDS_A_LINE * job.lines),
        )
    )


def _who(found: FoundChanges, most: int) -> list[list[Id]]:
    """Who moved, flow by flow; none of a flow that would be more than a page can hold."""
    moves = found.moves
    who: list[list[Id]] = [[] for _ in found.flows]
    if moves is None:
        return []
    for ids, flow in zip(who, found.flows, strict=True):
        most -= flow.n_instances if flow.before != flow.now else 0
        if flow.before != flow.now and most >= 0:
            there = (moves.before == flow.before) & (moves.now == flow.now)
            ids += [plain_id(each) for each in moves.ids[there].tolist()]
    return who
