"""All diagnostics of one consensus in one object, with warnings in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consilience._support.values import counted
from consilience.diagnostics.bases import Bases, base_table
from consilience.diagnostics.links import (
    Identifiability,
    MissingNotAtRandom,
    identifiability,
    listed,
    missing_not_at_random,
)
from consilience.evidence.partitions import Partitions
from consilience.inference.chance import ChanceTest
from consilience.inference.counting import beyond_chance
from consilience.inference.counts import Finding, JointRows, Tabulated, joint_rows
from consilience.inference.neighbours import ClusterConsensus, support
from consilience.inference.posterior import Evidence, gather_evidence, judge

# Rules of thumb, not tests: from where on a sentence is worth the reader's time.
_MASK_ASSOCIATION = 0.3
_MASK_AGREEMENT = 0.1
_SIGNIFICANT = 0.05
_NEVER_TOGETHER = 0.5
_REPEATING = 0.5
_UNSURE = 0.5
_UNSURE_SHARE = 0.1
_FEW_OPINIONS = 2.0
_LISTED = 8  # near copies in a hint


@dataclass(frozen=True, repr=False, eq=False)
class Diagnostics(Tabulated):
    """What `diagnose` returns: arrays per instance, a table per kind of thing, and `warnings`."""

    n_instances: int
    n_partitions: int
    n_clusters: int
    missing_share: float
    dependence: float  # of the base clusterings given the consensus, 0..1; see `confidence`
    counts: np.ndarray = field(metadata={"per_instance": True})  # instances that a row stands for
    labels: np.ndarray = field(metadata={"per_instance": True})
    confidence: np.ndarray = field(metadata={"per_instance": True})
    margin: np.ndarray = field(metadata={"per_instance": True})
    item_consensus: np.ndarray = field(metadata={"per_instance": True})
    alternative: np.ndarray = field(metadata={"per_instance": True})
    coverage: np.ndarray = field(metadata={"per_instance": True})
    clusters: ClusterConsensus
    bases: Bases
    links: Identifiability
    missing: MissingNotAtRandom
    chance_test: ChanceTest  # whether the base clusterings agree more than by chance
    warnings: list[Finding]
    reading_of_views: str = ""  # how to read a confidence that comes from views, not from base labels

    def __repr__(self) -> str:
        return (
            f"Diagnostics({counted(self.n_instances, 'instance')} in {counted(self.n_clusters, 'cluster')}, "
            f"mean confidence {self.mean_confidence:.2f}, {counted(len(self.warnings), 'warning')})"
        )

    @property
    def mean_confidence(self) -> float:
        """Of the instances that are in a cluster."""
        return float(np.average(self.confidence, weights=self.counts * (self.labels >= 0)))

    @property
    def ranks_only(self) -> bool:
        """Whether the base clusterings agree so much that they count like fewer than two.

        They are then all good, or they repeat each other, which labels cannot tell apart: confidence ranks
        instances and is not the chance of being right.
        """
        return not self.reading_of_views and self.bases.effective_number < _FEW_OPINIONS

    @property
    def reading(self) -> str:
        """One sentence that says how to read the confidence of this table."""
        if self.reading_of_views:
            return self.reading_of_views
        if self.chance_test.by_chance:
            return (
                "The base clusterings agree no more than chance would: confidence is not the chance of being "
                "right."
            )
        speaking = int((~self.bases.silent).sum())
        if speaking < 2:
            return (
                "Only one base clustering says anything: nothing can be checked, and confidence is not "
                "the chance of being right."
            )
        if not self.ranks_only:
            return (
                "A confidence of .9 is right nine times in ten if the base clusterings err independently; if "
                "they do not, it ranks instances."
            )
        ranks = "ranks instances and is not the chance of being right"
        ranks += ", unless you know that they err independently"
        if speaking == 2:
            return (
                "Where the two base clusterings contradict each other confidence is about one half; "
                f"elsewhere it {ranks}."
            )
        return f"The base clusterings repeat each other or are all good: confidence {ranks}."

    def as_dict(self) -> dict[str, Any]:
        """Plain values. Of the arrays per instance: mean and deciles over those in a cluster."""
        tenths, times = np.linspace(0, 1, 11), self.counts * (self.labels >= 0)
        described = {
            name: {"mean": float(values.mean()), "deciles": np.quantile(values, tenths).tolist()}
            for name in ("confidence", "margin", "item_consensus", "coverage")
            for values in [np.repeat(getattr(self, name), times)]
        }
        read = {"ranks_only": self.ranks_only, "reading": self.reading}
        return {**super().as_dict(), **described, **read}


def diagnose(
    partitions: Any,
    labels: ArrayLike | JointRows,
    *,
    evidence: Evidence | None = None,
    chance_test: ChanceTest | None = None,
) -> Diagnostics:
    """How far a consensus can be trusted, for every instance, cluster and base clustering.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    labels : array-like of int of shape (n_instances,)
        A consensus cluster per instance, from 0; -1 where unassigned.
    evidence : Evidence, optional
        What `gather_evidence` found for the same labels, where it is at hand.
    chance_test : ChanceTest, optional
        What `beyond_chance` found for the base clusterings, where it is at hand.

    Returns
    -------
    diagnostics : Diagnostics
        The answers of `confidence`, `support`, `base_table`, `identifiability`, `missing_not_at_random` and
        `beyond_chance`. ``warnings`` are sentences, each with something to try.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import diagnose
    >>> base = Partitions.of([[0, 0, -1], [0, 0, 1], [1, 1, -1], [1, 1, 0]] * 5)
    >>> diagnose(base, [0, 0, 1, 1] * 5)
    Diagnostics(20 instances in 2 clusters, mean confidence 1.00, 0 warnings)
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    rows = joint_rows(partitions, labels)
    evidence = gather_evidence(partitions, rows) if evidence is None else evidence
    found = support(partitions, rows)
    judged = judge(partitions, rows, evidence=evidence)
    clusters, bases = found.clusters, base_table(partitions, rows)
    links, missing = identifiability(partitions), missing_not_at_random(partitions, rows)
    chance_test = beyond_chance(partitions) if chance_test is None else chance_test
    sentences = [
        *_chance_warnings(chance_test),
        *_link_warnings(links, int((clusters.size > 0).sum())),
        *missing_warnings(missing),
        *_silence_warnings(bases),
    ]
    if not chance_test.by_chance:  # otherwise there is nothing to mend by other clusters
        sentences += [
            *_base_warnings(bases, evidence.dependence, chance_test.unrelated),
            *_copy_warnings(partitions, evidence),
            *_cluster_warnings(clusters),
            *instance_warnings(judged.confidence, rows.labels[rows.inverse], partitions.counts),
        ]
    return Diagnostics(
        n_instances=partitions.n_instances,
        n_partitions=partitions.n_partitions,
        n_clusters=int((clusters.size > 0).sum()),
        missing_share=partitions.missing_share,
        dependence=evidence.dependence,
        counts=partitions.counts,
        labels=rows.labels[rows.inverse],
        confidence=judged.confidence,
        margin=judged.margin,
        item_consensus=found.item_consensus,
        alternative=judged.alternative,
        coverage=found.coverage,
        clusters=clusters,
        bases=bases,
        links=links,
        missing=missing,
        chance_test=chance_test,
        warnings=sentences,
    )


def _chance_warnings(test: ChanceTest) -> list[Finding]:
    if test.by_chance:
        return [
            Finding(
                test.sentence[:1].lower() + test.sentence[1:],
                hint="do not report clusters; check that ids match and that all sources have their "
                "instances in the same order, or look for sources that have something in common.",
            )
        ]
    if not test.unrelated:
        return []
    one = len(test.unrelated) == 1
    return [
        Finding(
            f"{listed(test.unrelated)} {'agrees' if one else 'agree'} with the others no more than chance "
            "would.",
            hint=f"check ids and order of instances there, or leave {'it' if one else 'them'} out.",
        )
    ]


def _link_warnings(links: Identifiability, n_clusters: int) -> list[Finding]:
    out = []
    if links.n_unseen:
        out.append(
            Finding(
                f"no base clustering saw {counted(links.n_unseen, 'instance')}; nothing is known there.",
                hint="remove them, or assign them by their features.",
            )
        )
    if len(links.base_groups) > 1:
        groups = " | ".join(listed(group) for group in links.base_groups)
        out.append(
            Finding(
                f"the base clusterings fall into {len(links.base_groups)} groups that share no instance: "
                f"{groups}. Clusters of different groups cannot be matched.",
                hint=(
                    "add a base clustering that saw instances of several groups, or merge each group on "
                    "its own."
                ),
            )
        )
    elif links.n_components > n_clusters:
        out.append(
            Finding(
                f"the instances fall into {links.n_components} sets that share no base cluster, more than "
                f"the {n_clusters} clusters: some were merged without evidence.",
                hint=f"at least {links.n_components} clusters, or base clusterings of fewer clusters.",
            )
        )
    if links.weak_links:
        link = min(links.weak_links, key=lambda link: link.shared)
        out.append(
            Finding(
                f"{counted(len(links.weak_links), 'pair')} of base clusterings with fewer instances in "
                f"common than clusters to match, such as {link.first!r} and {link.second!r} "
                f"({counted(link.shared, 'instance')}, {counted(link.needed, 'cluster')}).",
                hint="base clusterings of more instances or fewer clusters.",
            )
        )
    if links.never_together > _NEVER_TOGETHER:
        out.append(
            Finding(
                f"{links.never_together:.0%} of all pairs of instances were never seen by the same base "
                "clustering; they are compared through others only.",
                hint=(
                    "a method that follows paths (a graph cut) rather than one that reads shares of "
                    "agreement, or more overlap."
                ),
            )
        )
    return out


def missing_warnings(missing: MissingNotAtRandom, source: str = "base clustering") -> list[Finding]:
    strong = (missing.association > _MASK_ASSOCIATION) & (missing.p_value < _SIGNIFICANT)
    out = []
    if missing.follows_mask and missing.pattern_agreement > _MASK_AGREEMENT:
        out.append(
            Finding(
                f"the clusters agree more with what is missing ({missing.pattern_agreement:.2f}) than "
                f"with any {source} ({missing.best_agreement:.2f}).",
                hint=f"a method that does not count missing as different, or {source}s with more overlap.",
            )
        )
    elif strong.any():
        names = tuple(np.array(missing.names, dtype=object)[strong])
        out.append(
            Finding(
                f"what is missing in {listed(names)} depends on the cluster (association up to "
                f"{missing.association.max():.2f}): clusters may follow the gaps.",
                hint=f"compare with a fit without these {source}s.",
            )
        )
    return out


def _silence_warnings(bases: Bases) -> list[Finding]:
    if not bases.silent.any():
        return []
    names = tuple(np.array(bases.names, dtype=object)[bases.silent])
    return [
        Finding(
            f"{listed(names)} {'says' if len(names) == 1 else 'say'} nothing: one cluster, or a cluster "
            "for every instance.",
            hint=f"leave {'it' if len(names) == 1 else 'them'} out.",
        )
    ]


def _base_warnings(bases: Bases, dependence: float, unrelated: tuple[str, ...]) -> list[Finding]:
    """Without those that are known to be unrelated to the others."""
    out = []
    opposed = (bases.agreement < 0.05) & ~bases.silent & ~np.isin(bases.names, unrelated)
    if opposed.any() and not opposed.all():
        names = tuple(np.array(bases.names, dtype=object)[opposed])
        out.append(
            Finding(
                f"{listed(names)} {'has' if len(names) == 1 else 'have'} next to nothing in common with the "
                "consensus.",
                hint="check ids and order of instances there, or leave "
                f"{'it' if len(names) == 1 else 'them'} out.",
            )
        )
    if dependence > _REPEATING:
        out.append(
            Finding(
                "inside clusters the base clusterings still agree with each other: they make the same "
                "mistakes, or there are finer clusters. Confidence is lowered for it.",
                hint="more different base clusterings, or more clusters.",
            )
        )
    return out


def _copy_warnings(partitions: Partitions, evidence: Evidence) -> list[Finding]:
    """About near copies that were found, not given as groups."""
    if evidence.groups_given:
        return []
    out = []
    for columns in evidence.groups:
        names = tuple(partitions.names[j] for j in sorted(evidence.numbering.bases[columns].tolist()))
        shown = (*names[:_LISTED], *["..."] * (len(names) > _LISTED))
        out.append(
            Finding(
                f"{listed(names)} are near copies of each other: confidence counts them as one opinion, "
                f"merging as {len(names)}.",
                hint=f'if they are, say groups={{"copies": {list(shown)!r}}} (at the shell --group '
                f"copies={','.join(shown)}), and they count as one in merging too.",
            )
        )
    return out


def _cluster_warnings(clusters: ClusterConsensus) -> list[Finding]:
    blurred = np.flatnonzero((clusters.between >= clusters.own) & (clusters.size > 0))
    if not len(blurred):
        return []
    shown = ", ".join(f"{c} (with {clusters.nearest[c]})" for c in blurred[:5])
    return [
        Finding(
            f"members of {counted(len(blurred), 'cluster')} agree as much with another one as among "
            f"themselves: {shown}.",
            hint="fewer clusters.",
        )
    ]


def instance_warnings(
    sure: np.ndarray, labels: np.ndarray, counts: np.ndarray, sources: str = "base clusterings"
) -> list[Finding]:
    unsure = float(np.average(sure < _UNSURE, weights=counts * (labels >= 0)))
    if unsure <= _UNSURE_SHARE:
        return []
    return [
        Finding(
            f"{unsure:.0%} of the instances have a confidence below {_UNSURE}.",
            hint=f"report clusters for the others only, or add {sources} that saw these instances.",
        )
    ]
