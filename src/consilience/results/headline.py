"""The figures of a result that are said in more than one place, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from consilience._support.values import counted
from consilience.diagnostics.bases import support_of_bases
from consilience.inference.counts import Finding, Tabulated
from consilience.multiview.together import SIDES, LabelsAndViews
from consilience.results.settling import is_likelier, told

if TYPE_CHECKING:
    from consilience.results.fusion import Fusion

UNSURE = 0.5  # a confidence below this counts as unsure


class SourceUse(NamedTuple):
    """One source of evidence, a column of labels or a table of features, and what it has to do with the
    answer."""

    name: str
    kind: Literal["labels", "table"]
    n_instances: int  # that it says something about
    missing: float  # share of all instances that it says nothing about
    agreement: float  # with the clusters: 0 as by chance, 1 always; NaN where it was not used
    weight: float  # as learned
    given_weight: float  # as the user gave it, 1 unless told otherwise
    support: tuple[float, ...]  # of each cluster: 1 always, 0 as by chance, less below it; NaN if unknown
    # Where labels and views were merged together: how far it says what all share, 0 like noise; NaN unused.
    trust: float = float("nan")
    closest: str = ""  # the source that it is most related to, and how far; empty where that is unknown
    group: str | None = None  # of sources that count as one, if it is in any


class Sides(NamedTuple):
    """Labels and features that were merged together: numbers of instances."""

    n_both: int  # with labels and features
    n_only_labels: int
    n_only_views: int
    decided_by_both: int  # for whose cluster both sides speak
    decided_by_labels: int
    decided_by_views: int
    decided_by_neither: int

    @property
    def sentences(self) -> tuple[str, str]:
        """Both in words."""
        has = "has" if self.n_both == 1 else "have"
        return (
            f"{counted(self.n_both, 'instance')} {has} labels and features, {self.n_only_labels} only "
            f"labels, {self.n_only_views} only features.",
            f"Both sides speak for the cluster of {self.decided_by_both}, labels alone for that of "
            f"{self.decided_by_labels}, features alone of {self.decided_by_views}, neither of "
            f"{self.decided_by_neither}.",
        )


@dataclass(frozen=True, repr=False, eq=False)
class Headline(Tabulated):
    """What the summary, the notebook, the report and the attributes of a fusion all say.

    A row of a table may stand for many instances: all figures count instances. Confidence is that of the
    assigned instances; those without a cluster are counted in `n_unassigned`.

    Attributes
    ----------
    n_instances, n_unassigned, n_clusters : int
        All instances, those that have no cluster, and the clusters that have members.
    missing_share : float
        The share of instances that a source says nothing about, averaged over the sources.
    confidence, unsure : float
        Mean confidence of the assigned instances, and the share of them below one half.
    size, cluster_confidence, cluster_unsure, cluster_coverage : ndarray of shape (n_numbers,)
        The same for every cluster, and the mean share of the sources that saw a member.
    sources : tuple of SourceUse
        What each source contributed.
    warnings : tuple of Finding
        What makes the answer doubtful.
    reading : str
        How to read the confidence.
    sides : Sides or None
        Who has labels and who features, and which of them decided, where both were merged together.
    by_chance : bool
        Whether the sources agree no more than chance would: then it is said before all else.
    p_chance : float
        How often unrelated sources would agree as much; NaN where it is not known.
    chance : str
        That they agree by chance, in a sentence; empty where they do not.
    n_likelier : int
        Instances for which another cluster is more likely than their own.
    likelier : str
        The same in a sentence that says why, and how many were moved, where that was asked for.
    repeatability : str
        Whether two halves of the sources find these clusters, in a sentence, where their number was given and
        that is known.
    """

    n_instances: int
    n_unassigned: int
    n_clusters: int
    missing_share: float
    confidence: float
    unsure: float
    size: np.ndarray
    cluster_confidence: np.ndarray
    cluster_unsure: np.ndarray
    cluster_coverage: np.ndarray
    sources: tuple[SourceUse, ...]
    warnings: tuple[Finding, ...]
    reading: str
    by_chance: bool
    p_chance: float
    chance: str
    repeatability: str
    sides: Sides | None = None
    n_likelier: int = 0
    likelier: str = ""

    @property
    def merged(self) -> str:
        """What was merged, in words."""
        n_tables = sum(source.kind == "table" for source in self.sources)
        parts = ((len(self.sources) - n_tables, "base clustering"), (n_tables, "view"))
        return " and ".join(counted(n, noun) for n, noun in parts if n)

    @property
    def of_tables(self) -> bool:
        """Whether the sources are tables of features."""
        return all(source.kind == "table" for source in self.sources)

    @property
    def found(self) -> str:
        """How many clusters of how many instances."""
        return f"{counted(self.n_clusters, 'cluster')} of {counted(self.n_instances, 'instance')}"

    @property
    def evidence(self) -> str:
        """From how many sources, and how much they lack."""
        if self.sides is not None:
            return f"{self.merged}, {self.missing_share:.0%} of the labels and rows missing"
        lacking = "rows absent" if self.of_tables else "labels missing"
        return f"{self.merged}, {self.missing_share:.0%} of the {lacking}"

    @property
    def sureness(self) -> str:
        """The confidence of all, in a sentence."""
        return (
            f"Mean confidence {self.confidence:.2f}; {self.unsure:.0%} of the instances are below .5."
            + self.unassigned
            + (f" {self.likelier}" if self.likelier else "")
        )

    @property
    def unassigned(self) -> str:
        """How many instances are in no cluster, as the end of a paragraph; empty if none."""
        if not self.n_unassigned:
            return ""
        is_are = "is" if self.n_unassigned == 1 else "are"
        return f" {counted(self.n_unassigned, 'more instance')} {is_are} in no cluster."

    @property
    def sentences(self) -> tuple[str, ...]:
        """All of it in words."""
        sides = () if self.sides is None else self.sides.sentences
        rest = f"{self.found} from {self.evidence}.", *sides, self.sureness, self.reading
        rest = (*rest, self.repeatability) if self.repeatability else rest
        return (self.chance, *rest) if self.chance else rest

    def __repr__(self) -> str:
        return f"Headline({self.found} from {self.evidence}; mean confidence {self.confidence:.2f})"


def headline_of(fusion: Fusion) -> Headline:
    """Compute the figures of a fusion."""
    found, labels = fusion.diagnostics, fusion.labels
    assigned, k = labels >= 0, fusion.n_numbers
    z, counts = labels[assigned], found.counts[assigned]
    size = np.bincount(z, counts, k).astype(np.int64)
    sure = found.confidence[assigned]
    unsure = sure < UNSURE

    def of_clusters(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.bincount(z, counts * values, k) / np.maximum(size, 1))

    sources = sources_of(fusion)
    n_likelier = int(found.counts[is_likelier(fusion)].sum())
    return Headline(
        n_instances=int(found.counts.sum()),
        n_unassigned=int(found.counts[~assigned].sum()),
        n_clusters=int(np.count_nonzero(size)),
        missing_share=float(np.mean([source.missing for source in sources])),
        confidence=float(np.average(sure, weights=counts)),
        unsure=float(np.average(unsure, weights=counts)),
        size=size,
        cluster_confidence=of_clusters(sure),
        cluster_unsure=of_clusters(unsure),
        cluster_coverage=of_clusters(found.coverage[assigned]),
        sources=sources,
        warnings=tuple(fusion.warnings),
        reading=found.reading,
        n_likelier=n_likelier,
        likelier=told(fusion, n_likelier),
        sides=_sides(fusion),
        by_chance=found.chance_test.by_chance,
        p_chance=found.chance_test.p_value,
        chance=found.chance_test.sentence,
        repeatability=fusion.caution.repeatability,
    )


def _sides(fusion: Fusion) -> Sides | None:
    told = fusion.mixed
    if told is None:
        return None
    decided = (int(np.count_nonzero(fusion.decided_by == side)) for side in SIDES)
    return Sides(told.n_both_, told.n_only_labels_, told.n_only_views_, *decided)


def sources_of(fusion: Fusion) -> tuple[SourceUse, ...]:
    """What each source says: views where views were clustered, else base clusterings; or both."""
    told = fusion.view_diagnostics
    if fusion.mixed is not None:
        return _sources_of_both(fusion, fusion.mixed)
    if told is not None:
        n, here = len(fusion.labels), told.observed_.sum(axis=0).tolist()
        given, supports = _given(fusion, len(here)), fusion.view_support.tolist()
        return tuple(
            SourceUse(
                view.name, "table", seen, 1.0 - seen / n, view.agreement, view.weight, asked, tuple(support)
            )
            for view, seen, asked, support in zip(fusion.views, here, given, supports, strict=True)
        )
    table, bases = fusion.partitions, fusion.diagnostics.bases
    n, given = table.n_instances, _given(fusion, table.n_partitions)
    support = support_of_bases(fusion.rows, table.offsets)
    if table.views is None:
        groups = table.groups or (None,) * table.n_partitions
        columns = zip(
            bases.names, bases.n_seen.tolist(), bases.agreement, bases.weights, given, support, strict=True
        )
        return tuple(
            SourceUse(
                name,
                "labels",
                seen,
                1.0 - seen / n,
                float(near),
                float(weight),
                asked,
                tuple(each.tolist()),
                group=group,
            )
            for (name, seen, near, weight, asked, each), group in zip(columns, groups, strict=True)
        )
    out = []
    of_view = np.array(table.views, dtype=object)
    for name in dict.fromkeys(table.views):
        own = of_view == name
        seen = int(table.counts[(table.codes[:, own] >= 0).any(axis=1)].sum())
        near, weight = float(bases.agreement[own].mean()), float(bases.weights[own].mean())
        asked = float(np.mean(np.asarray(given)[own]))
        known = ~np.isnan(support[own])
        mean = np.where(known, support[own], 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        mean = np.where(known.any(axis=0), mean, np.nan)
        out.append(SourceUse(name, "table", seen, 1.0 - seen / n, near, weight, asked, tuple(mean.tolist())))
    return tuple(out)


def _sources_of_both(fusion: Fusion, told: LabelsAndViews) -> tuple[SourceUse, ...]:
    """Base clusterings, then views."""
    bases, m = fusion.diagnostics.bases, fusion.partitions.n_partitions
    n_seen = [*bases.n_seen[:m].tolist(), *told.observed_.sum(axis=0).tolist()]
    support = [
        *support_of_bases(fusion.label_rows, fusion.partitions.offsets).tolist(),
        *fusion.view_support.tolist(),
    ]
    n, given = len(fusion.labels), _given(fusion, len(n_seen))
    return tuple(
        SourceUse(
            name,
            "labels" if i < m else "table",
            n_seen[i],
            1.0 - n_seen[i] / n,
            float(bases.agreement[i]),
            float(bases.weights[i]),
            given[i],
            tuple(support[i]),
            float(told.trust_[i]),
            told.closest(i),
        )
        for i, name in enumerate(told.source_names_)
    )


def _given(fusion: Fusion, n: int) -> Sequence[float]:
    given = fusion.given_weights
    return [1.0] * n if given is None else [float(weight) for weight in given]
