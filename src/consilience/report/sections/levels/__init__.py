"""Coarser and finer clusters of the result, as a tree, and what speaks for each split."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from consilience._support.errors import InputError
from consilience.report.job import Job
from consilience.results import Fusion
from consilience.results.levels import Levels as Found

TITLE = "Coarser and finer"


@dataclass
class Node:
    """A cluster of the tree, and its split where it has one."""

    depth: int
    cluster: int
    name: str
    size: int
    split_at: int = 0  # the number of clusters from which on it is two; 0 if it is not split
    separate: list[str] = field(default_factory=list)
    n_able: int = 0
    p: float | None = None
    supported: bool = False


@dataclass
class Levels:
    """All of it, from the top."""

    n_clusters: int
    k_max: int
    nodes: list[Node] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    dependence: float | None = None


@dataclass
class Result:
    """Nothing where no levels were asked for."""

    levels: Levels | None = None


def of(fusion: Fusion, job: Job) -> Result | None:
    """Of the first result."""
    found = job.levels
    if found is None or fusion is not job.main:
        return None
    if not isinstance(found, Found) or not np.array_equal(found.fusion.labels, fusion.labels):
        raise InputError(
            "levels are not those of the first result.", hint="pass what fusion.levels() returned."
        )
    nodes = []
    for node in found.tree:
        split = node.split
        name = fusion.names[node.cluster] if node.cluster < len(fusion.names) else str(node.cluster)
        told = Node(node.depth, node.cluster, name, node.size)
        if split is not None:
            told.split_at, told.separate, told.n_able = split.k, list(split.sources), split.n_able
            told.p, told.supported = split.p, split.supported
        nodes.append(told)
    return Result(
        Levels(found.n_clusters, found.k_max, nodes, list(found.sentences), float(fusion.evidence.dependence))
    )
