"""Cuts into clusters of nearly equal sizes, by the partitioners of the extra ``graphs``."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from consilience._support.optional import optional_import
from consilience.core.canonical import Rows

Balance = Literal["free", "equal"]

# The partitioners count in 32 bits: all edge weights together must stay below.
_MOST = 2**30
# Fractions become whole numbers in steps of one thousandth of the largest.
_STEPS = 1000
# How much larger than the mean a cluster may be: METIS's own tolerance, for both.
_IMBALANCE = 0.03


class Cut(NamedTuple):
    """Labels of the rows, and what made them."""

    labels: np.ndarray
    partitioner: str  # "spectral", "metis" or "kahypar"


def metis(
    graph: sp.csr_array, weights: np.ndarray, n_clusters: int, rng: np.random.RandomState
) -> np.ndarray:
    """Parts of a symmetric weighted graph with little weight between them, of nearly equal node weight.

    Cost: linear in the links.
    """
    pymetis = optional_import("pymetis", needed_for="balance='equal'", extra="graphs")
    links = sp.csr_array(graph, copy=True)
    links.setdiag(0)
    links.data = _whole(links.data)
    links.eliminate_zeros()
    if n_clusters == 1 or not links.nnz:
        return np.arange(len(weights)) % n_clusters
    found = pymetis.part_graph(
        n_clusters,
        pymetis.CSRAdjacency(links.indptr.astype(np.int32), links.indices.astype(np.int32)),
        vweights=weights.astype(np.int32),
        eweights=links.data.astype(np.int32),
        options=pymetis.Options(seed=int(rng.randint(2**31 - 1))),
    )
    return np.asarray(found.vertex_part, dtype=np.intp)


def kahypar(rows: Rows, n_clusters: int, rng: np.random.RandomState) -> np.ndarray:
    """Parts of the hypergraph of base clusters that cut few of them, of nearly equal node weight.

    A base cluster in b parts costs b - 1.

    Cost: linear in the labels.
    """
    package = optional_import("mtkahypar", needed_for="balance='equal'", extra="graphs")
    edges = [
        members.tolist()
        for column, k in zip(rows.codes.T, np.diff(rows.offsets), strict=True)
        for label in range(k)
        if len(members := np.flatnonzero(column == label)) > 1
    ]
    n_rows = len(rows.counts)
    if n_clusters == 1 or not edges:
        return np.arange(n_rows) % n_clusters
    # One thread and the deterministic preset: the same seed, the same answer.
    library = package.initialize(1, False)
    package.set_seed(int(rng.randint(2**31 - 1)))
    context = library.context_from_preset(package.PresetType.DETERMINISTIC)
    context.set_partitioning_parameters(n_clusters, _IMBALANCE, package.Objective.KM1)
    context.logging = False
    graph = library.create_hypergraph(
        context, n_rows, len(edges), edges, rows.counts.tolist(), [1] * len(edges)
    )
    return np.asarray(graph.partition(context).get_partition(), dtype=np.intp)


def _whole(values: np.ndarray) -> np.ndarray:
    """Link weights as whole numbers that 32 bits can add up."""
    if not values.any():
        return values.astype(np.int64)
    if np.any(values != np.round(values)):
        values = values * (_STEPS / values.max())
    return np.floor(values * min(1.0, _MOST / values.sum())).astype(np.int64)
