"""How far an answer changes when it is fitted again to other instances and sources, and what drives it.

The first half is arithmetic on answers: which parts are drawn, and how two answers compare. The second fits,
and says what came out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, comb
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience._support.shown import Table, as_html
from consilience._support.sklearn import Interval, check_parameter, seed_from
from consilience._support.talk import Progress, watched
from consilience._support.values import counted
from consilience.inference.counts import Tabulated
from consilience.results.refitting import NotLinked, Refitting, refitting_of

if TYPE_CHECKING:
    from consilience.results.fusion import Fusion

# What a mean Jaccard index says of a cluster, and from where on one refit has dissolved or recovered it:
# the thresholds of Hennig's clusterwise assessment.
STABLE, UNCERTAIN, DISSOLVED = 0.75, 0.6, 0.5
# From so many sources on they say which clusters are stable: of two, leaving one out leaves the other alone.
_JUDGED_FROM = 3
# The most sources that are left out in turn unless asked for.
_LEFT_OUT = 30
# Above this, leaving any source out changes next to nothing.
_SAME = 0.95
_SHOWN = 40  # sources in a table of the terminal


# --- arithmetic ---------------------------------------------------------------------------------------------


def overlap(first: np.ndarray, second: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """How many instances are in each cluster of one answer and of the other, of those that both have."""
    both = (first >= 0) & (second >= 0)
    shape = int(first.max(initial=-1)) + 1, int(second.max(initial=-1)) + 1
    cells = first[both] * shape[1] + second[both]
    return np.bincount(cells, counts[both], shape[0] * shape[1]).astype(np.int64).reshape(shape)


def adjusted_rand(table: np.ndarray) -> float:
    """The adjusted Rand index of two answers from their `overlap`; NaN without an instance."""
    total = int(table.sum())
    if not total:
        return float("nan")
    squares = int((table * table).sum())
    rows, columns = (int((table.sum(axis=axis) ** 2).sum()) for axis in (1, 0))
    together, in_first, in_second = squares - total, rows - squares, columns - squares
    apart = total * total - rows - columns + squares
    if not in_first and not in_second:
        return 1.0
    upper = 2 * (together * apart - in_first * in_second)
    return upper / ((together + in_first) * (in_first + apart) + (together + in_second) * (in_second + apart))


def recovery(table: np.ndarray) -> np.ndarray:
    """For every cluster of the first answer its largest Jaccard index with one of the second, on the
    instances that both have; NaN for a cluster of which none is there."""
    sizes = table.sum(axis=1)
    if not table.size:
        return np.full(len(table), np.nan)
    either = sizes[:, None] + table.sum(axis=0)[None, :] - table
    best = np.divide(table, either, out=np.zeros(table.shape), where=either > 0).max(axis=1)
    return np.where(sizes > 0, best, np.nan)


def draw_instances(counts: np.ndarray, share: float, rng: np.random.RandomState) -> np.ndarray:
    """How many instances of every row are in a random part of all of them, at least one in all."""
    total = int(counts.sum())
    drawn = rng.choice(total, max(1, round(share * total)), replace=False)
    return np.bincount(np.searchsorted(np.cumsum(counts), drawn, side="right"), minlength=len(counts))


def draw_sources(n_sources: int, share: float, n: int, rng: np.random.RandomState) -> list[tuple[int, ...]]:
    """`n` random parts of the sources, each without one at least; all parts, where these are fewer."""
    size = size_of_part(n_sources, share)
    if comb(n_sources, size) <= n:
        return list(combinations(range(n_sources), size))
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < n:
        drawn[tuple(np.sort(rng.choice(n_sources, size, replace=False)).tolist())] = None
    return list(drawn)


def size_of_part(n_sources: int, share: float) -> int:
    """How many sources a part has."""
    return max(1, min(n_sources - 1, ceil(round(share * n_sources, 9))))


def verdict_of(mean: float) -> str:
    """What a mean Jaccard index says of a cluster; see `Stability`."""
    if np.isnan(mean):
        return "unknown"
    return "stable" if mean >= STABLE else "uncertain" if mean >= UNCERTAIN else "dissolved"


# --- what is found ------------------------------------------------------------------------------------------


class Refit(NamedTuple):
    """One answer from a part of the evidence, and how far it is the same."""

    part: str  # "instances", "sources" (a random part of them) or "left out" (all but one)
    without: tuple[str, ...]  # sources that were left out
    n_instances: int  # that both answers have
    ari: float  # adjusted Rand index with the full answer; NaN where there is none
    n_clusters: int  # that were found; 0 where there is no answer
    jaccard: tuple[float, ...]  # of every cluster with the most similar one; NaN for those not there
    problem: str = ""  # why there is no answer


class PartStability(NamedTuple):
    """All refits of a kind: adjusted Rand index with the full answer, and numbers of clusters found."""

    part: str
    n_refits: int
    n_failed: int
    ari: float  # mean
    lowest: float
    n_clusters: tuple[tuple[int, int], ...]  # (number, times), most frequent first


class ClusterStability(NamedTuple):
    """How far a cluster is found again; Jaccard indices, NaN where nothing was fitted."""

    cluster: int
    name: str
    size: int
    instances: float  # mean over parts of the instances
    sources: float  # mean over parts of the sources, or over those that were left out
    lowest: float  # over the sources that were left out
    without: str  # the source without which it is that
    n_dissolved: int  # refits in which no cluster has a Jaccard index above .5 with it
    n_refits: int  # refits that had members of it
    verdict: str  # "stable", "uncertain" or "dissolved"; "unknown" if nothing was fitted


class LeftOut(NamedTuple):
    """The answer without one source."""

    source: str
    ari: float
    n_clusters: int
    n_stable: int  # clusters with a Jaccard index of at least .75
    n_lost: int  # instances that no other source saw
    problem: str = ""


@dataclass(frozen=True, repr=False, eq=False)
class Stability(Tabulated):
    """What `Fusion.stability` returns; ``print`` it for sentences and tables.

    A cluster is judged in the manner of Hennig's clusterwise assessment [1]_: by its largest Jaccard index
    with a cluster of a refit, on the instances that both have, averaged over the refits. From .75 it is
    called "stable"; from .6 "uncertain" (something is there, but who belongs to it is not clear); below, it
    is "dissolved". In a single refit it is dissolved at .5 or less. The smaller mean counts, of those over
    parts of the instances and over parts of the sources. Where a part of the sources is all of them but one,
    as it is for fewer than ten, these are the refits without each source; two are too few to judge by.

    Attributes
    ----------
    n_clusters : int
        Of the full answer.
    found : bool
        Whether the number of clusters was found, and so looked for again in every refit.
    share : float
        The share of the instances in a part.
    noun : str
        What a source is: "source" for base clusterings, or "view".
    parts : tuple of PartStability
        The refits by kind: parts of the instances, parts of the sources, sources left out.
    clusters : tuple of ClusterStability
        How far each cluster is found again.
    left_out : tuple of LeftOut
        The answer without each source, the one that changes it most first.
    sentences : tuple of str
        All of it in words.
    refits : tuple of Refit
        Every single one.

    References
    ----------
    .. [1] C. Hennig, "Cluster-wise assessment of cluster stability", Computational Statistics & Data Analysis
       52, 2007.
    """

    n_clusters: int
    found: bool
    share: float
    noun: str
    parts: tuple[PartStability, ...]
    clusters: tuple[ClusterStability, ...]
    left_out: tuple[LeftOut, ...]
    sentences: tuple[str, ...]
    refits: tuple[Refit, ...]

    @property
    def driver(self) -> LeftOut | None:
        """The source whose removal changes the answer most; None where none could be left out."""
        known = [one for one in self.left_out if not one.problem]
        return known[0] if known else None

    def __str__(self) -> str:
        lines = list(self.sentences)
        for table in self._tables():
            lines += ["", *table.lines()] if table.rows else []
        return "\n".join(lines)

    def __repr__(self) -> str:
        figures = ", ".join(f"{one.part}: {_figure(one.ari)}" for one in self.parts)
        return f"Stability({counted(len(self.refits), 'refit')}; ARI by {figures or 'none'})"

    def _repr_html_(self) -> str:
        return as_html(self.sentences, *(table for table in self._tables() if table.rows))

    def _tables(self) -> tuple[Table, ...]:
        parts = [
            (
                what_of(one.part, self.share, self.noun),
                str(one.n_refits),
                _figure(one.ari),
                _figure(one.lowest),
                _numbers(one.n_clusters),
            )
            for one in self.parts
        ]
        clusters = [
            (
                str(one.cluster) if one.name == str(one.cluster) else f"{one.cluster} {one.name}",
                str(one.size),
                _figure(one.instances),
                _figure(one.sources),
                _figure(one.lowest) + (f" ({one.without})" if one.without else ""),
                one.verdict,
            )
            for one in self.clusters
        ]
        left = [
            (one.source, _figure(one.ari), str(one.n_clusters), str(one.n_stable), str(one.n_lost))
            if not one.problem
            else (one.source, "-", "-", "-", str(one.n_lost))
            for one in self.left_out
        ]
        more = f"and {len(left) - _SHOWN} others" if len(left) > _SHOWN else ""
        return (
            Table(("refitted to", "times", "ARI", "lowest", "clusters found"), parts, ("refitted to",)),
            Table(
                ("cluster", "size", "instances", f"{self.noun}s", "lowest without one", "verdict"),
                clusters,
                ("cluster", "verdict"),
            ),
            Table(("without", "ARI", "clusters", "stable", "lost"), left[:_SHOWN], ("without",), more),
        )


def what_of(part: str, share: float, noun: str) -> str:
    """A kind of refit in words."""
    return {
        "instances": f"{share:.0%} of the instances",
        "sources": f"{share:.0%} of the {noun}s",
        "left out": f"all {noun}s but one",
    }[part]


def _figure(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"


def _numbers(found: Sequence[tuple[int, int]]) -> str:
    """Numbers of clusters and how often each was found."""
    if len(found) == 1:
        return str(found[0][0])
    return ", ".join(f"{k} ({times}x)" for k, times in found)


# --- fitting again ------------------------------------------------------------------------------------------


def stability(
    fusion: Fusion,
    views: Any = None,
    *,
    mask: Any = None,
    on: str | None = None,
    n_resamples: int = 20,
    share: float = 0.8,
    leave_out: bool | None = None,
    random_state: Any = None,
    progress: Progress | bool | None = None,
) -> Stability:
    """See :meth:`consilience.Fusion.stability`."""
    at_least_0 = Interval(Integral, 0, None, closed="left")
    check_parameter("n_resamples", n_resamples, at_least_0, "stability", hint="use 20")
    check_parameter("share", share, Interval(Real, 0, 1, closed="neither"), "stability", hint="use 0.8")
    evidence = refitting_of(fusion, views, mask, on)
    seed = _seed(random_state, fusion)
    with watched(progress) as told:
        refits = refit(evidence, n_resamples, share, _is_left_out(leave_out, evidence), seed, told)
    return _tell(fusion, evidence, refits, share)


def _seed(random_state: Any, fusion: Fusion) -> int:
    """The seed of every fit: the number that was given, or one that is drawn."""
    if random_state is None and fusion.seed is not None:
        return fusion.seed
    return seed_from(random_state)


def _is_left_out(leave_out: bool | None, evidence: Refitting) -> bool:
    if leave_out is None:
        return 1 < len(evidence.sources) <= _LEFT_OUT
    return leave_out and len(evidence.sources) > 1


def refit(
    evidence: Refitting,
    n_resamples: int,
    share: float,
    leave_out: bool,
    seed: int,
    progress: Progress | None = None,
) -> list[Refit]:
    """Fit to parts of the instances, to parts of the sources and to all sources but one.

    All parts are drawn beforehand, from the seed and what the evidence holds, and every fit has the same
    seed: no answer depends on the fits before it.
    """
    rng = np.random.RandomState(seed)
    there = np.where(evidence.labels >= 0, evidence.counts, 0)
    order, m = evidence.order.tolist(), len(evidence.sources)
    every = tuple(range(m))
    wanted: list[tuple[str, np.ndarray, tuple[int, ...]]] = [
        ("instances", draw_instances(there, share, rng), every) for _ in range(n_resamples)
    ]
    leaves_one = size_of_part(m, share) == m - 1
    if m >= _JUDGED_FROM and n_resamples and not (leave_out and leaves_one):
        drawn = draw_sources(m, share, n_resamples, rng)
        wanted += [("sources", there, tuple(sorted(order[v] for v in part))) for part in drawn]
    if leave_out:
        wanted += [("left out", there, tuple(w for w in every if w != v)) for v in every]
    found = []
    for number, (part, counts, kept) in enumerate(wanted, 1):
        found.append(_refit_once(evidence, part, counts, kept, seed))
        if progress is not None:
            progress(_step(found[-1], share, evidence.noun), number, len(wanted))
    return found


def _refit_once(
    evidence: Refitting, part: str, counts: np.ndarray, kept: tuple[int, ...], seed: int
) -> Refit:
    without = tuple(name for v, name in enumerate(evidence.sources) if v not in kept)
    k = int(evidence.labels.max()) + 1
    try:
        labels = evidence.fit(counts, kept, seed)
    except NotLinked:
        problem = f"the {evidence.noun}s that are left share no instance"
        return Refit(part, without, 0, np.nan, 0, (np.nan,) * k, problem)
    except InputError as error:  # such as more clusters than instances
        return Refit(part, without, 0, np.nan, 0, (np.nan,) * k, error.message.rstrip("."))
    table = overlap(evidence.labels, labels, counts)
    return Refit(
        part,
        without,
        int(table.sum()),
        adjusted_rand(table),
        int((table.sum(axis=0) > 0).sum()),
        tuple(recovery(table).tolist()),
    )


def _step(found: Refit, share: float, noun: str) -> str:
    if found.part == "left out":
        return f"without {found.without[0]}"
    return f"refitted to {what_of(found.part, share, noun)}"


# --- telling ------------------------------------------------------------------------------------------------


def _tell(fusion: Fusion, evidence: Refitting, refits: Sequence[Refit], share: float) -> Stability:
    parts = tuple(
        _part(name, [one for one in refits if one.part == name])
        for name in ("instances", "sources", "left out")
        if any(one.part == name for one in refits)
    )
    sizes = np.bincount(
        evidence.labels[evidence.labels >= 0], evidence.counts[evidence.labels >= 0], fusion.n_numbers
    )
    clusters = tuple(
        _cluster(c, fusion.names[c], int(size), refits, len(evidence.sources))
        for c, size in enumerate(sizes.tolist())
        if size
    )
    n = int(sizes.sum())
    left_out = [_left_out(one, n) for one in refits if one.part == "left out"]
    left_out.sort(key=lambda one: (bool(one.problem), one.ari))
    told = _Said(fusion.n_clusters, fusion.cluster_count is not None, share, evidence, parts, clusters)
    return Stability(
        fusion.n_clusters,
        told.found,
        float(share),
        evidence.noun,
        parts,
        clusters,
        tuple(left_out),
        tuple(told.sentences(left_out, refits)),
        tuple(refits),
    )


def _part(name: str, refits: Sequence[Refit]) -> PartStability:
    known = [one for one in refits if not one.problem]
    scores = [one.ari for one in known]
    numbers = sorted(Counter(one.n_clusters for one in known).items(), key=lambda pair: (-pair[1], pair[0]))
    mean, lowest = (float(np.mean(scores)), min(scores)) if scores else (np.nan, np.nan)
    return PartStability(name, len(refits), len(refits) - len(known), mean, lowest, tuple(numbers))


def _cluster(c: int, name: str, size: int, refits: Sequence[Refit], n_sources: int) -> ClusterStability:
    here = [(one, one.jaccard[c]) for one in refits if not np.isnan(one.jaccard[c])]

    def mean_of(part: str) -> float:
        values = [value for one, value in here if one.part == part]
        return float(np.mean(values)) if values else np.nan

    instances, sources = mean_of("instances"), mean_of("sources")
    if np.isnan(sources) and n_sources >= _JUDGED_FROM:
        sources = mean_of("left out")
    left = [(value, one.without[0]) for one, value in here if one.part == "left out"]
    lowest, without = min(left, key=lambda pair: pair[0]) if left else (np.nan, "")
    judged = [value for value in (instances, sources) if not np.isnan(value)] or [np.nan]
    dissolved = sum(value <= DISSOLVED for _, value in here)
    return ClusterStability(
        c,
        name,
        size,
        instances,
        sources,
        lowest,
        without if lowest < 1.0 else "",
        dissolved,
        len(here),
        verdict_of(min(judged)),
    )


def _left_out(found: Refit, n: int) -> LeftOut:
    stable = sum(value >= STABLE for value in found.jaccard)
    lost = 0 if found.problem else n - found.n_instances
    return LeftOut(found.without[0], found.ari, found.n_clusters, stable, lost, found.problem)


class _Said(NamedTuple):
    """What is put in words."""

    n_clusters: int
    found: bool
    share: float
    evidence: Refitting
    parts: tuple[PartStability, ...]
    clusters: tuple[ClusterStability, ...]

    def sentences(self, left_out: Sequence[LeftOut], refits: Sequence[Refit]) -> list[str]:
        return [
            *(self._of_part(one) for one in self.parts),
            *self._of_clusters(),
            *self._of_number(refits),
            *self._of_driver(left_out),
        ]

    def _of_part(self, part: PartStability) -> str:
        what = what_of(part.part, self.share, self.evidence.noun)
        failed = ""
        if part.n_failed:
            failed = f" {part.n_failed} of {part.n_refits} parts could not be clustered."
        if part.n_failed == part.n_refits:
            return f"Refitted to {what}:{failed}"
        times = counted(part.n_refits - part.n_failed, "time")
        ari = "adjusted Rand index (ARI)" if part is self.parts[0] else "ARI"
        return (
            f"Refitted {times} to {what}, the answer has an {ari} of {part.ari:.2f} with that of all on "
            f"average, {part.lowest:.2f} at the lowest.{failed}"
        )

    def _of_clusters(self) -> list[str]:
        judged = [one for one in self.clusters if one.verdict != "unknown"]
        if not judged:
            return []
        stable, n = sum(one.verdict == "stable" for one in judged), len(judged)
        if stable == n:
            who = {1: "The one cluster is", 2: "Both clusters are"}.get(n, f"All {n} clusters are")
        else:
            who = f"{stable} of {n} clusters {'is' if stable == 1 else 'are'}"
        by = [one.part for one in self.parts if one.part != "left out" or len(self.evidence.sources) > 2]
        if "sources" in by and "left out" in by:
            by.remove("left out")
        where = " and to ".join(what_of(part, self.share, self.evidence.noun) for part in by)
        text = f"{who} stable: found again with a mean Jaccard index of {STABLE} or more, refitted to {where}"
        others = [
            f"{verdict}: {', '.join(one.name for one in judged if one.verdict == verdict)}"
            for verdict in ("uncertain", "dissolved")
            if any(one.verdict == verdict for one in judged)
        ]
        return [f"{'; '.join([text, *others])}."]

    def _of_number(self, refits: Sequence[Refit]) -> list[str]:
        known = [one.n_clusters for one in refits if not one.problem]
        if not self.found or not known:
            return []
        same = known.count(self.n_clusters)
        text = f"The number of clusters, {self.n_clusters}, was found again in {same} of {len(known)} refits"
        others = sorted(
            Counter(k for k in known if k != self.n_clusters).items(), key=lambda pair: (-pair[1], pair[0])
        )
        if others:
            text += f"; others: {', '.join(f'{k} ({times}x)' for k, times in others)}"
        return [f"{text}."]

    def _of_driver(self, left_out: Sequence[LeftOut]) -> list[str]:
        noun, m = self.evidence.noun, len(self.evidence.sources)
        if m == 1:
            return [f"There is only one {noun}, so none can be left out."]
        if not left_out:
            return []
        out = []
        if m == 2 and noun == "source":
            out.append(
                "There are two sources: without one of them the answer is the other's own, so these figures "
                "say how far each agrees with the answer."
            )
        known = [one for one in left_out if not one.problem]
        if known:
            out.append(self._driving(known))
        for one in left_out:
            if one.problem:
                out.append(f"Without {one.source!r} there is no answer: {one.problem}.")
        return out

    def _driving(self, known: Sequence[LeftOut]) -> str:
        first = known[0]
        if first.ari >= _SAME:
            return (
                f"No single {self.evidence.noun} drives the answer: without any one of them it is nearly the "
                f"same (ARI {first.ari:.2f} or more)."
            )
        last = "" if len(known) == 1 else f"; without any other, {known[1].ari:.2f} or more"
        return (
            f"{first.source!r} drives the answer most: without it the ARI is {first.ari:.2f}, and "
            f"{first.n_stable} of {counted(self.n_clusters, 'cluster')} "
            f"{'is' if first.n_stable == 1 else 'are'} found again{last}."
        )
