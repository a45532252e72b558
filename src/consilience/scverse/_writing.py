"""What a fusion found, in the slots of AnnData and MuData; all of it can be written to a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import consilience
from consilience._support.optional import optional_import
from consilience.core.consensusgraph import consensus_graph, most_sharing
from consilience.plotting import cluster_colors
from consilience.results import Fusion


def write(
    targets: list[Any],
    fusion: Fusion,
    key: str,
    params: dict[str, Any],
    n_neighbours: int,
    rng: np.random.RandomState,
) -> None:
    """Into every object, what was found for the cells that it has."""
    graph = None
    if n_neighbours:
        graph = _graph(fusion, n_neighbours, rng)
    pandas = optional_import("pandas", needed_for="consilience.scverse", extra="scverse")
    found = pandas.DataFrame(
        {
            key: pandas.Categorical.from_codes(fusion.labels, list(fusion.names)),
            f"{key}_confidence": fusion.confidence,
            f"{key}_alternative": pandas.Categorical.from_codes(
                fusion.diagnostics.alternative, list(fusion.names)
            ),
        },
        index=fusion.index,
    )
    about = _about(fusion, params, pandas)
    for target in targets:
        rows = found.index.get_indexer(target.obs_names)
        for name in found:
            target.obs[name] = found[name].array[rows]
        target.uns[key] = {**about}
        target.uns[f"{key}_colors"] = np.array(cluster_colors(fusion.n_numbers))
        if graph is not None:
            target.obsp[f"{key}_connectivities"] = graph[rows][:, rows]
            # Scanpy looks for both names, and does without distances.
            target.uns[key]["connectivities_key"] = f"{key}_connectivities"
            target.uns[key]["distances_key"] = f"{key}_distances"


def _graph(fusion: Fusion, n_neighbours: int, rng: np.random.RandomState) -> Any:
    """Cells that share most base labels; or, where views were clustered themselves, neighbours in them."""
    told = fusion.view_diagnostics
    if told is None:
        table = fusion.partitions
        return consensus_graph(most_sharing(table.distinct.codes, table.inverse, n_neighbours, rng))
    n, total = len(fusion.labels), sp.csr_array((len(fusion.labels),) * 2)
    for v in range(len(told.view_names_)):
        if (view := told.in_view(v)) is not None:
            links = view.graph.tocoo()
            places = view.rows[links.row], view.rows[links.col]
            total = total + sp.csr_array((links.data, places), shape=(n, n))
    total = (total + total.T) / 2
    return (total / max(total.max(), 1e-300)).tocsr()


def _about(fusion: Fusion, params: dict[str, Any], pandas: Any) -> dict[str, Any]:
    """Parameters, and what the fusion says of itself."""
    about = {
        "params": _storable(params),
        "version": consilience.__version__,
        "method": fusion.method,
        "reason": fusion.reason,
        "n_clusters": fusion.n_clusters,
        "warnings": np.array([str(finding) for finding in fusion.warnings], dtype=str),
        "summary": fusion.summary(),
    }
    if fusion.by_views:
        columns = {
            name: [getattr(view, name) for view in fusion.views]
            for name in ("kind", "n_rows", "n_empty", "agreement", "weight")
        }
        about["views"] = pandas.DataFrame(columns, index=[view.name for view in fusion.views])
    else:
        table = fusion.partitions
        about["base_clusterings"] = pandas.DataFrame(
            {
                "agreement": fusion.agreement,
                "weight": fusion.weights,
                "n_clusters": table.n_clusters_per_partition,
                "coverage": table.n_seen / table.n_instances,
            },
            index=list(table.names),
        )
    if fusion.candidates:
        about["candidates"] = pandas.DataFrame(
            {"agreement": [candidate.agreement for candidate in fusion.candidates]},
            index=[candidate.name for candidate in fusion.candidates],
        )
    return about


def _storable(value: Any) -> Any:
    """Parameters as files can hold them: numbers, strings, lists of strings and dicts of these."""
    if isinstance(value, dict):
        return {str(name): _storable(entry) for name, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value):
        return np.array(value, dtype=str)
    return value if isinstance(value, str | bool | int | float | np.number) else str(value)
