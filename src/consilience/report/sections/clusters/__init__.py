"""Every cluster: its size and name, the labels that are typical of it, how sure it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from consilience.diagnostics import typical_labels
from consilience.report.form import Id
from consilience.report.job import Job, by_cluster, plain_id
from consilience.results import Fusion

TITLE = "The clusters, and how sure they are"
SIZES = {"cluster": ("clusters",)}
BARS = 20
_TYPICAL = 3  # labels of a cluster


@dataclass
class Typical:
    """A label that is more frequent in a cluster than in all."""

    base: str
    label: Id
    count: int
    share: float
    lift: float


@dataclass
class Cluster:
    """A cluster; one that has no members only keeps its number."""

    size: int
    typical: list[Typical] = field(default_factory=list)
    confidence: float | None = None
    unsure: float | None = None
    coverage: float | None = None
    consensus: float | None = None  # how often two members are put together; None where there are no labels
    between: float | None = None  # the same for a member and those of the nearest cluster
    nearest: int = -1


@dataclass
class Result:
    """Clusters by their numbers."""

    clusters: list[Cluster] = field(default_factory=list)
    histogram: list[list[int]] = field(default_factory=list)  # instances by confidence and by cluster


def of(fusion: Fusion, job: Job) -> Result:
    """A line for each cluster, and instances by confidence in bars of equal width."""
    told, found = fusion.headline, fusion.diagnostics
    figures = (told.size, told.cluster_confidence, told.cluster_unsure, told.cluster_coverage)
    clusters = [
        Cluster(size, [], sure, unsure, coverage)
        for size, sure, unsure, coverage in zip(*(values.tolist() for values in figures), strict=True)
    ]
    for c, cluster in enumerate(clusters):
        cluster.consensus, cluster.between = float(found.clusters.own[c]), float(found.clusters.between[c])
        cluster.nearest = int(found.clusters.nearest[c])
    _add_typical(fusion, clusters)
    bar = np.minimum((found.confidence * BARS).astype(np.int64), BARS - 1)
    return Result(clusters, by_cluster(bar, fusion.labels, found.counts, BARS, len(clusters)))


def _add_typical(fusion: Fusion, clusters: list[Cluster]) -> None:
    """The labels that are most typical of each cluster, one of a base clustering."""
    table = fusion.partitions
    if not table.n_partitions or table.views is not None:  # none, or numbers that a program made up
        return
    labels = typical_labels(table, fusion.label_rows)
    columns = (labels.cluster, labels.base, labels.label, labels.count, labels.share, labels.lift)
    for c, base, label, count, share, lift in zip(*columns, strict=True):
        told = clusters[c].typical
        if lift > 1.0 and len(told) < _TYPICAL and all(known.base != base for known in told):
            told.append(
                Typical(base, plain_id(label), int(count), round(float(share), 4), round(float(lift), 4))
            )
