"""What a command leaves behind: the answer, the completed table, the page, the JSON."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from consilience import Fusion, Partitions
from consilience._support.files import Outputs
from consilience._support.values import object_array
from consilience.cli.saved import Newcomers
from consilience.diagnostics import Profile
from consilience.evidence.partitions import MISSING
from consilience.evidence.reading import Beside, Instances
from consilience.io import files
from consilience.io.files import STDIO
from consilience.io.write import label_array
from consilience.report import render, summarize
from consilience.results import Stability
from consilience.results.saving import write_result

Told = Callable[[str, int, int], None]
Columns = Callable[[Any], dict[str, Any]]  # of some rows of a table: a slice, or numbers of rows


def command() -> str:
    """The command that is running, as it would be typed."""
    return shlex.join(["consilience", *sys.argv[1:]])


def write_fusion(
    fusion: Fusion,
    outputs: Outputs,
    told: Told,
    *,
    instances: Instances | None = None,
    folder: str | None = None,
    output: str | None = None,
    imputed: str | None = None,
    report: str | None = None,
    as_json: bool = False,
    save: str | None = None,
    changes: str | None = None,
    chances: str | None = None,
    title: str | None = None,
    hide_ids: bool = False,
    profile: Profile | None = None,
    stability: Stability | None = None,
    excel_csv: bool = False,
) -> None:
    """All that was asked for; the table of answers to standard output where nothing was.

    A row of the fusion is an instance, unless `instances` says which row each of them has.
    """
    beside: Instances = instances or Whole(fusion.partitions)
    writers: list[tuple[str, Callable[[str], None]]] = []
    if folder is not None:
        write_folder(folder, fusion, beside, told)
    elif output is not None or not (
        as_json or any(path is not None for path in (report, imputed, save, changes, chances))
    ):
        answer = _answer(fusion)
        writers.append((output or STDIO, lambda path: _write(outputs, path, beside, answer, told, excel_csv)))
    if imputed is not None:
        filled = base_labels(fusion.completed)
        writers.append((imputed, lambda path: _write(outputs, path, beside, filled, told, excel_csv)))
    if chances is not None:
        table = _chances(fusion, fusion.chances_of)
        writers.append((chances, lambda path: _write(outputs, path, beside, table, told, excel_csv)))
    if changes is not None and fusion.changes is not None:
        names = {} if fusion.cluster_names is None else dict(enumerate(fusion.names))
        moved = fusion.changes.columns(names)
        n = len(moved["now"])
        writers.append(
            (
                changes,
                lambda path: files.write_table(outputs, path, n, _spans(moved, n), told, excel_csv=excel_csv),
            )
        )
    if report is not None or as_json:
        told("drawing the page", 0, 1)
        summary = summarize(
            fusion,
            title=title,
            command=command(),
            profile=profile,
            stability=stability,
            hide_ids=hide_ids,
        )
        if report is not None:
            writers.append((report, lambda path: files.write_text(outputs, path, render(summary))))
        if as_json:
            text = json.dumps(summary, allow_nan=False) + "\n"
            writers.append((STDIO, lambda path: files.write_text(outputs, path, text)))
    if save is not None:
        with outputs.open(save, private=True) as file:
            write_result(fusion, file)
    for path, write in sorted(writers, key=lambda one: one[0] == STDIO):  # what is out cannot be undone: last
        write(path)


class Whole(NamedTuple):
    """The instances of a table with a row for each of them."""

    table: Partitions

    @property
    def id_name(self) -> str | None:
        """What their ids are called."""
        return None if self.table.index is None else str(self.table.index_name or "id")

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return self.table.n_instances

    def batches(self) -> Iterator[Beside]:
        """All of them."""
        index = self.table.index
        for span in files.spans(self.n_instances):
            ids = None if index is None else index[span]
            if ids is not None and ids.dtype.kind not in "iu":
                ids = ids.astype(object)
            yield Beside(ids, np.arange(span.start, span.stop))


def _write(
    outputs: Outputs, path: str, instances: Instances, columns: Columns, told: Told, excel_csv: bool = False
) -> None:
    def tables() -> Iterator[dict[str, Any]]:
        start = 0
        for ids, rows in instances.batches():
            own = np.arange(start, start + len(rows)) if ids is None else ids
            yield _beside({instances.id_name or "row": own}, columns(rows))
            start += len(rows)

    files.write_table(outputs, path, instances.n_instances, tables(), told, excel_csv=excel_csv)


def _spans(columns: dict[str, Any], n: int) -> Iterator[dict[str, Any]]:
    """A table in parts."""
    for rows in files.spans(n):
        yield {name: values[rows] for name, values in columns.items()}


def write_folder(folder: str, fusion: Fusion, instances: Instances, told: Told) -> None:
    """The answer as a folder of Parquet files, which appears when all of them are complete."""
    target = Path(folder).absolute()
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    partial.mkdir(parents=True)
    try:
        done = 0
        for number, (ids, rows) in enumerate(instances.batches()):
            columns = {} if ids is None else {str(instances.id_name): ids}
            columns["label"] = fusion.labels[rows].astype(np.int32)
            columns["confidence"] = fusion.confidence[rows].astype(np.float32)
            pa_parquet.write_table(pa.table(columns), partial / f"part-{number:05d}.parquet")
            done += len(rows)
            told(f"writing {folder}", done, instances.n_instances)
        os.replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_columns(
    table: Partitions, columns: dict[str, np.ndarray], outputs: Outputs, path: str, told: Told
) -> None:
    """Columns beside the instances of a table."""
    _write(outputs, path, Whole(table), lambda rows: {name: v[rows] for name, v in columns.items()}, told)


def write_labels(table: Partitions, outputs: Outputs, path: str, told: Told) -> None:
    """A table of base labels."""
    _write(outputs, path, Whole(table), base_labels(table), told)


def _answer(fusion: Fusion) -> Columns:
    found = fusion.diagnostics
    columns = {
        "label": fusion.labels,
        **({} if fusion.previous is None else {"previous": fusion.previous}),
        "confidence": found.confidence,
        "margin": found.margin,
        "coverage": found.coverage,
        "alternative": found.alternative,
        **({} if fusion.mixed is None else {"decided_by": object_array(fusion.decided_by.tolist())}),
    }
    return lambda rows: _named({name: values[rows] for name, values in columns.items()}, fusion.cluster_names)


def _chances(fusion: Fusion, of_rows: Callable[[Any], np.ndarray]) -> Columns:
    """The chance of every cluster that has members, under its name."""
    used = np.flatnonzero(fusion.headline.size).tolist()

    def columns_of(rows: Any) -> dict[str, Any]:
        found = of_rows(rows)
        return {fusion.names[c]: found[:, c] for c in used}

    return columns_of


def _named(columns: dict[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """Columns with the names of clusters after their numbers, where they have names."""
    if names is None:
        return columns
    label = columns.pop("label")
    return {"label": label, "name": object_array([*names, None])[label], **columns}


def write_placed(
    found: Newcomers,
    fusion: Fusion,
    outputs: Outputs,
    path: str,
    told: Told,
    *,
    chances: str | None = None,
    excel_csv: bool = False,
) -> None:
    """New instances with their clusters, and in a table of its own the chance of each."""
    placed = found.placed
    columns = {"label": placed.labels, "confidence": placed.confidence, "alternative": placed.alternative}

    def answer(rows: Any) -> dict[str, Any]:
        return _named({name: values[rows] for name, values in columns.items()}, fusion.cluster_names)

    if chances is not None:
        of_clusters = _chances(fusion, lambda rows: placed.chances[rows])
        _write_newcomers(found, outputs, chances, told, of_clusters, excel_csv)
    _write_newcomers(found, outputs, path, told, answer, excel_csv)


def _write_newcomers(
    found: Newcomers, outputs: Outputs, path: str, told: Told, columns: Columns, excel_csv: bool
) -> None:
    n = len(found.placed.labels)

    def tables() -> Iterator[dict[str, Any]]:
        for rows in files.spans(n):
            ids = {name: values[rows] for name, values in found.ids.items()}
            ids = {
                name: v.combine_chunks() if isinstance(v, pa.ChunkedArray) else v for name, v in ids.items()
            }
            yield _beside(ids, columns(rows))

    files.write_table(outputs, path, n, tables(), told, excel_csv=excel_csv)


def base_labels(table: Partitions) -> Columns:
    """The labels in the user's own words."""
    categories = [label_array(values.tolist()) for values in table.categories]

    def columns_of(rows: Any) -> dict[str, Any]:
        columns = zip(table.names, table.codes[rows].T, categories, strict=True)
        return {
            name: values.take(pa.array(codes.astype(np.int32), mask=codes == MISSING))
            for name, codes, values in columns
        }

    return columns_of


def _beside(ids: dict[str, Any], columns: dict[str, Any]) -> dict[str, Any]:
    """Both; ids that are called like a column are called ids."""
    (name, values), *_ = ids.items()
    return {f"{name} (id)" if name in columns else name: values, **columns}
