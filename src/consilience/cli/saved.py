"""Living with a saved result: read it again, place newcomers piece by piece, follow its clusters."""

from __future__ import annotations

import csv
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import consilience
from consilience import Fusion, Partitions
from consilience._support.errors import InputError, UsageError
from consilience._support.values import counted, did_you_mean
from consilience.evidence.builder import Frozen
from consilience.evidence.reading import Joined, read_labels, require_ids
from consilience.evidence.views import Views
from consilience.inference.placement import Placed
from consilience.io import excel, files
from consilience.io.files import Source
from consilience.multiview.together import LabelsAndViews
from consilience.results.drift import Watch, require_labels
from consilience.results.following import label_column, of_columns
from consilience.results.together import join

Told = Callable[[str, int, int], None]
_SHOWN = 5  # labels in a sentence


class Newcomers(NamedTuple):
    """New instances in their clusters."""

    placed: Placed
    ids: dict[str, Any]  # a column, by its name
    unknown: str  # a sentence about labels that were not fitted; empty if there are none


def read_result(path: str) -> Fusion:
    """A result that --save wrote."""
    if not Path(path).is_file():
        raise UsageError(f"there is no file {path!r}.", hint="it is what fuse --save wrote.")
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise InputError(
                f"{path!r} is no saved result.", hint="the first file is what fuse --save wrote."
            )
    found = consilience.load(path)
    if not isinstance(found, Fusion):
        raise InputError(f"{path!r} holds a {type(found).__name__}.", hint="give what fuse --save wrote.")
    return found


def read_earlier(path: str, source: Source, column: str | None) -> Any:
    """What --like names: a saved result, or a table of ids and labels, which are in `column`."""
    if Path(path).is_file() and Path(path).suffix.lower() not in excel.SUFFIXES and zipfile.is_zipfile(path):
        if column is not None:
            raise UsageError(f"{path} is a saved result, no table.", hint="leave out --like-column.")
        return read_result(path)
    own = source.beside(path)
    names = own.table(path, decimals=False).names
    of_ids = own.id_column or names[0]
    others = [name for name in own.columns or names if name != of_ids]
    if column is None:
        column = label_column(others, path)
    wanted = replace(own, id_column=of_ids, columns=(column,), own_ids={}, own_columns={})
    table = pa.Table.from_batches(list(files.pieces(path, wanted, text=True)))
    return of_columns(table.column(of_ids).to_pylist(), table.column(column).to_pylist())


def read_ids(path: str, source: Source) -> list[Any]:
    """The ids in a table: its column of ids, or else the first."""
    own = source.beside(path)
    of_ids = own.id_column or own.table(path, decimals=False).names[0]
    wanted = replace(own, id_column=of_ids, columns=(), own_ids={}, own_columns={})
    table = pa.Table.from_batches(list(files.pieces(path, wanted, text=True)))
    return list(table.column(of_ids).to_pylist())


def watched(fusion: Fusion, option: str = "") -> Watch | None:
    """What looks for drift among newcomers, where they have labels; an option that needs them is refused."""
    if fusion.partitions.views is None and not fusion.by_views:
        return Watch(fusion)
    if option:
        require_labels(fusion, option)
    return None


def read_names(path: str) -> dict[int, str]:
    """What --names names: numbers of clusters and their names."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        first = file.readline()
        file.seek(0)
        lines = list(csv.reader(file, delimiter=max(",;\t", key=first.count)))
    found = {}
    for number, line in enumerate(lines[1:], start=2):
        if not any(cell.strip() for cell in line):
            continue
        if len(line) < 2 or not line[0].strip().isdecimal() or not line[1].strip():
            raise InputError(
                f"line {number} of {path} is no number of a cluster and a name: {','.join(line)!r}.",
                hint="a line of column names, then lines such as 0,loyal.",
                file=path,
                line=number,
            )
        found[int(line[0])] = line[1].strip()
    return found


def read_facts(path: str, source: Source, table: Partitions) -> pa.Table:
    """What --profile names: a table of other facts about the instances of a table, under ids of its type."""
    wanted = source.beside(path)
    assert wanted.id_column is not None
    facts = files.read_features(path, wanted)
    ids = facts.column(wanted.id_column)
    as_text = table.index is None or table.index.dtype.kind not in "iu"
    kind = pa.string() if as_text else pa.int64()
    try:
        ids = ids.cast(kind)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"the ids of {path} are no whole numbers, as those of the table are.", hint="use the same ids."
        ) from error
    name = str(table.index_name or wanted.id_column)
    others = facts.drop_columns([wanted.id_column])
    if name in others.schema.names:
        raise InputError(f"{path} has another column {name!r}, as ids are called.", hint="rename it.")
    return others.add_column(0, name, ids)


def place_labels(
    fusion: Fusion,
    sources: Sequence[Any],
    *,
    strict: bool,
    told: Told,
    watch: Watch | None = None,
    adapt: bool = False,
) -> Newcomers:
    """Place the rows of a file, or of several that are joined by id, by the base labels they have.

    `watch` looks at them, too. With `adapt` they are placed together, when all are read.
    """
    fitted = fusion.partitions
    first = sources[0] if len(sources) == 1 else Joined(sources)
    name_of = _known_names(fitted, first.name, first.columns)
    known = Frozen(fitted.names, fitted.categories)
    found: list[Placed] = []
    waiting: list[np.ndarray] = []
    ids: list[Any] = []
    strangers: Counter[tuple[str, Any]] = Counter()
    n_rows = 0
    for piece in first.pieces():
        renamed = {name_of[name]: column for name, column in piece.columns.items()}
        codes, unknown = known.codes(piece._replace(columns=renamed), text=first.text)
        for (i, label), rows in unknown.items():
            strangers[fitted.names[i], label] += len(rows)
        if strict and strangers:
            raise InputError(f"{_sentence(strangers)}.", hint="leave out --strict to read them as missing.")
        codes = codes.astype(fitted.codes.dtype, copy=False)
        if watch is not None:
            watch.add(codes, unknown)
        if adapt:
            waiting.append(codes)
        else:
            found.append(fusion.place_codes(codes))
        ids.append(piece.ids if piece.ids is not None else np.arange(n_rows, n_rows + piece.n_rows))
        n_rows += piece.n_rows
        told("placing", n_rows, n_rows)
    if first.id_name is not None:
        require_ids(first)
    if adapt:
        found.append(fusion.place_codes(np.concatenate(waiting), adapt=True))
    labels, sure, behind = (np.concatenate(values) for values in zip(*found, strict=True))
    placed = Placed.of(labels, sure, behind, lambda: np.concatenate([piece.chances for piece in found]))
    told_apart = pa.chunked_array(ids) if first.id_name is not None else np.concatenate(ids)
    return Newcomers(
        placed,
        {first.id_name or "row": told_apart},
        f"{_sentence(strangers)}; they count as missing." if strangers else "",
    )


def place_views(fusion: Fusion, paths: Sequence[str], source: Source) -> Newcomers:
    """Place instances by their features, in the views that there are."""
    id_name = source.id_name(paths)
    told = fusion.neighbours if fusion.view_diagnostics is None else fusion.view_diagnostics
    assert told is not None
    views = told.read_new(files.read_view_tables(paths, source), on=id_name)
    ids = np.arange(views.n_instances) if views.index is None else views.index.astype(object)
    return Newcomers(fusion.place(views), {id_name or "row": ids}, "")


def read_beside(
    paths: Sequence[str],
    source: Source,
    table: Partitions,
    kind: Any = None,
    model: LabelsAndViews | None = None,
) -> Views:
    """Tables of features beside labels, under ids of their type; as a fitted `model` reads them."""
    own = replace(source, columns=(), header=None)
    tables, on = files.read_view_tables(paths, own), own.id_name(paths)
    if on is not None and table.index is not None:
        wanted = pa.int64() if table.index.dtype.kind in "iu" else pa.string()
        for name, each in tables.items():
            at = each.schema.get_field_index(on)
            try:
                tables[name] = each.set_column(at, on, each.column(on).cast(wanted))
            except pa.ArrowInvalid as error:
                raise InputError(
                    f"the ids of {name} are no whole numbers, as those of the labels are.",
                    hint="use the same ids.",
                ) from error
    if model is not None:
        return model.read_new(tables, on=on)
    return consilience.check_views(tables, on=on, kind=kind, unobserved="keep")


def place_both(
    fusion: Fusion,
    model: LabelsAndViews,
    paths: Sequence[str],
    sources: Callable[[], Sequence[Any]],
    views: Sequence[str],
    source: Source,
    *,
    strict: bool,
) -> Newcomers:
    """Place instances by their labels, by the views they have, or by both, joined by id.

    Files that are all called like views are views.
    """
    fitted = fusion.partitions
    if not views and all(name in model.view_names_ for name in files.stems(paths)):
        read = read_beside(paths, source, fitted, model=model)
        ids = np.arange(read.n_instances) if read.index is None else read.index.astype(object)
        return Newcomers(fusion.place(None, views=read), {source.id_name(paths) or "row": ids}, "")
    table = read_labels(sources(), negative=fitted.negative, unobserved="keep").in_full()
    joined = join(table, read_beside(views, source, table, model=model)) if views else None
    table = table if joined is None else joined.table
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        placed = fusion.place(
            table, views=None if joined is None else joined.views, unknown="error" if strict else "missing"
        )
    ids = np.arange(len(placed.labels)) if table.index is None else table.index.astype(object)
    said = " ".join(str(each.message) for each in caught)
    return Newcomers(placed, {str(table.index_name or "row"): ids}, said)


def _known_names(fitted: Partitions, stem: str, names: Sequence[str]) -> dict[str, str]:
    """What the columns were called when they were fitted: of several files, also by the names of files."""
    out = {}
    for name in names:
        candidates = [name, *([stem] if len(names) == 1 else []), f"{stem} {name}"]
        known = [candidate for candidate in candidates if candidate in fitted.column_names]
        if not known:
            hint = did_you_mean(name, fitted.column_names)
            raise UsageError(
                f"no base clustering was called {name!r}.",
                hint=f"{hint} Choose with --columns, and name the ids with --id; a row per opinion is read "
                "by --long.",
            )
        out[name] = known[0]
    return out


def _sentence(strangers: Counter[tuple[str, Any]]) -> str:
    shown = [f"{label!r} of {name!r} ({n})" for (name, label), n in strangers.most_common(_SHOWN)]
    more = len(strangers) - len(shown)
    others = f" and {more} others" if more > 0 else ""
    n = strangers.total()
    return f"{counted(n, 'label')} did not exist in the saved result: {', '.join(shown)}{others}"
