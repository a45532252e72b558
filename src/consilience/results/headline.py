"""The figures of a result that are said in more than one place, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from consilience._support.values import counted
from consilience.diagnostics.bases import support_of_bases
from consilience.inference.counts import Finding, Tabulated

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

    @property
    def merged(self) -> str:
        """What was merged, in words."""
        noun = "view" if self.of_tables else "base clustering"
        return counted(len(self.sources), noun)

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
        lacking = "rows absent" if self.of_tables else "labels missing"
        return f"{self.merged}, {self.missing_share:.0%} of the {lacking}"

    @property
    def sureness(self) -> str:
        """The confidence of all, in a sentence."""
        return (
            f"Mean confidence {self.confidence:.2f}; {self.unsure:.0%} of the instances are below .5."
            + self.unassigned
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
        return f"{self.found} from {self.evidence}.", self.sureness, self.reading

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
    )


def sources_of(fusion: Fusion) -> tuple[SourceUse, ...]:
    """What each source says: views where views were clustered, else base clusterings."""
    told = fusion.view_diagnostics
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
        columns = zip(
            bases.names, bases.n_seen.tolist(), bases.agreement, bases.weights, given, support, strict=True
        )
        return tuple(
            SourceUse(
                name, "labels", seen, 1.0 - seen / n, float(near), float(weight), asked, tuple(each.tolist())
            )
            for name, seen, near, weight, asked, each in columns
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


def _given(fusion: Fusion, n: int) -> Sequence[float]:
    given = fusion.given_weights
    return [1.0] * n if given is None else [float(weight) for weight in given]
