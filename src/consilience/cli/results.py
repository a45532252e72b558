"""What a command leaves behind: the answer, the completed table, the page, the JSON."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from consilience import Fusion, Partitions
from consilience.cli import files
from consilience.cli.files import STDIO
from consilience.partitions import MISSING
from consilience.report import summarize, write_report

Told = Callable[[str, int, int], None]


def command() -> str:
    """The command that is running, as it would be typed."""
    return shlex.join(["consilience", *sys.argv[1:]])


def write_fusion(
    fusion: Fusion,
    told: Told,
    *,
    output: str | None = None,
    imputed: str | None = None,
    report: str | None = None,
    as_json: bool = False,
) -> None:
    """All that was asked for; the table of answers to standard output where nothing was."""
    n = len(fusion.labels)
    if output is not None or not (as_json or report is not None or imputed is not None):
        files.write_table(output or STDIO, n, _answer(fusion), told)
    if imputed is not None:
        files.write_table(imputed, n, base_labels(fusion.completed), told)
    if report is not None or as_json:
        told("drawing the page", 0, 1)
        summary = summarize(fusion, command=command())
        if report is not None:
            write_report(summary, report)
        if as_json:
            print(json.dumps(summary, allow_nan=False))


def _answer(fusion: Fusion) -> files.Piece:
    found = fusion.diagnostics
    columns = {
        "label": fusion.labels,
        "confidence": found.confidence,
        "margin": found.margin,
        "coverage": found.coverage,
        "alternative": found.alternative,
    }
    return lambda rows: _beside(
        _ids(fusion.partitions, rows), {name: values[rows] for name, values in columns.items()}
    )


def base_labels(table: Partitions) -> files.Piece:
    """The labels in the user's own words."""
    categories = [pa.array(_kept(values)) for values in table.categories]

    def piece(rows: slice) -> dict[str, Any]:
        columns = zip(table.names, table.codes[rows].T, categories, strict=True)
        labels = {
            name: values.take(pa.array(codes.astype(np.int32), mask=codes == MISSING))
            for name, codes, values in columns
        }
        return _beside(_ids(table, rows), labels)

    return piece


def _beside(ids: dict[str, Any], columns: dict[str, Any]) -> dict[str, Any]:
    """Both; ids that are called like a column are called ids."""
    (name, values), *_ = ids.items()
    return {f"{name} (id)" if name in columns else name: values, **columns}


def _kept(values: np.ndarray) -> Any:
    """Labels as Arrow holds them: of one type, or as text."""
    kinds = {type(value) for value in values.tolist()}
    return values.tolist() if len(kinds) == 1 else [str(value) for value in values]


def _ids(table: Partitions, rows: slice) -> dict[str, Any]:
    if table.index is None:
        return {"row": np.arange(*rows.indices(table.n_instances))}
    ids = table.index[rows]
    return {str(table.index_name or "id"): ids if ids.dtype.kind in "iu" else ids.astype(object)}
