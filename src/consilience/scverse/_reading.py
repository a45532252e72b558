"""Modalities as views: the union of their cells, and a table of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from consilience._support.errors import InputError
from consilience._support.optional import optional_import
from consilience._support.values import did_you_mean
from consilience.evidence.views import Views, check_views

Choice = str | Mapping[str, str] | None


def read_modalities(
    data: Any, use_rep: Choice, layer: Choice, obs: Sequence[str] = (), kind: Any = None
) -> tuple[Views, dict[str, str]]:
    """The views of MuData or of a dict of AnnData, and where each table was found.

    Columns of ``.obs`` are one more view, called "obs".
    """
    modalities = {str(name): adata for name, adata in (data.mod if hasattr(data, "mod") else data).items()}
    if getattr(data, "axis", 0) != 0:
        raise InputError(
            "the modalities of this MuData share variables, not cells.", hint="give one made with axis=0."
        )
    for choice, word in ((use_rep, "use_rep"), (layer, "layer")):
        named = choice if isinstance(choice, Mapping) else {}
        strange = next((name for name in named if name not in modalities), None)
        if strange is not None:
            raise InputError(f"{word} names a modality {strange!r}.", did_you_mean(str(strange), modalities))
    cells = _all_cells(data, modalities)
    tables, sources, mask = {}, {}, np.zeros((len(cells), len(modalities)), dtype=bool)
    for v, (name, adata) in enumerate(modalities.items()):
        source = _source_of(name, adata, _chosen(use_rep, name), _chosen(layer, name))
        rows = cells.get_indexer(adata.obs_names)
        mask[rows, v] = True
        tables[name] = _spread(_table(adata, source), _columns(adata, source), rows, cells)
        sources[name] = source
    if obs:
        tables["obs"], sources["obs"] = _annotations(data, modalities, obs, cells), "obs"
        mask = np.column_stack([mask, tables["obs"].notna().any(axis=1)])
    return replace(check_views(tables, mask=mask, kind=kind), index=np.asarray(cells)), sources


def _annotations(data: Any, modalities: dict[str, Any], obs: Sequence[str], cells: Any) -> Any:
    """Columns of ``.obs`` of MuData, or of the modalities: of each cell what the first says that knows it."""
    if "obs" in modalities:
        raise InputError("a modality is called 'obs', as the view of obs= is.", hint="rename the modality.")
    if isinstance(obs, str):
        raise InputError(
            f"obs must be a list of columns of .obs. Got {obs!r} instead.", hint=f"obs=[{obs!r}]."
        )
    tables = [data.obs] if hasattr(data, "mod") else [adata.obs for adata in modalities.values()]
    known = list(dict.fromkeys(str(column) for table in tables for column in table.columns))
    absent = next((column for column in obs if column not in known), None)
    if absent is not None:
        raise InputError(f".obs has no column {absent!r}.", did_you_mean(str(absent), known))
    pandas = optional_import("pandas", needed_for="consilience.scverse", extra="scverse")
    found = {}
    for column in obs:
        parts = [table[column].reindex(cells) for table in tables if column in table.columns]
        found[column] = parts[0]
        for other in parts[1:]:
            found[column] = found[column].astype(object).where(found[column].notna(), other.astype(object))
    return pandas.DataFrame(found, index=cells)


def require_names(adata: Any, owner: str) -> None:
    """An error where two cells have one name."""
    if not adata.obs_names.is_unique:
        twice = adata.obs_names[adata.obs_names.duplicated()][0]
        raise InputError(f"{owner} has the cell {twice!r} twice.", hint="adata.obs_names_make_unique().")


def _chosen(choice: Choice, name: str) -> str | None:
    return choice.get(name) if isinstance(choice, Mapping) else choice


def _all_cells(data: Any, modalities: dict[str, Any]) -> Any:
    """Names of all cells: those of MuData, or in the order in which they are first met."""
    for name, adata in modalities.items():
        require_names(adata, f"modality {name!r}")
    if hasattr(data, "mod"):
        return data.obs_names
    pandas = optional_import("pandas", needed_for="consilience.scverse", extra="scverse")
    return pandas.Index(dict.fromkeys(cell for adata in modalities.values() for cell in adata.obs_names))


def _source_of(name: str, adata: Any, rep: str | None, layer: str | None) -> str:
    """Where the table of a modality is: "X", "obsm/..." or "layers/..."."""
    if rep is not None and layer is not None:
        raise InputError(f"modality {name!r} has both a use_rep and a layer.", hint="give one of them.")
    if layer is not None:
        if layer not in adata.layers:
            raise InputError(
                f"modality {name!r} has no layer {layer!r}.", did_you_mean(layer, ["X", *adata.layers.keys()])
            )
        return f"layers/{layer}"
    if rep is None:
        return "obsm/X_pca" if "X_pca" in adata.obsm else "X"
    if rep != "X" and rep not in adata.obsm:
        raise InputError(
            f"modality {name!r} has no {rep!r} in .obsm.", did_you_mean(rep, ["X", *adata.obsm.keys()])
        )
    return "X" if rep == "X" else f"obsm/{rep}"


def _table(adata: Any, source: str) -> Any:
    slot, _, key = source.partition("/")
    found = adata.X if slot == "X" else getattr(adata, slot)[key]
    if found is None:
        raise InputError("a modality has no X.", hint="name an entry of .obsm by use_rep, or a layer.")
    return found if sp.issparse(found) else np.asarray(found, dtype=float)


def _columns(adata: Any, source: str) -> Any:
    return None if source.startswith("obsm") else adata.var_names


def _spread(table: Any, columns: Any, rows: np.ndarray, cells: Any) -> Any:
    """The table with a row for every cell; rows that are absent are empty, and left to the mask."""
    if sp.issparse(table):
        table = sp.csr_array(table)
        place = sp.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), (len(cells), len(rows)))
        return (place @ table).tocsr()
    pandas = optional_import("pandas", needed_for="consilience.scverse", extra="scverse")
    full = np.zeros((len(cells), table.shape[1]))
    full[rows] = table
    return pandas.DataFrame(full, index=cells, columns=columns)
