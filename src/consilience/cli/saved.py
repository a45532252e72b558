"""Living with a saved result: read it again, place newcomers piece by piece, follow its clusters."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import consilience
from consilience import Fusion, Partitions
from consilience._support.errors import InputError, UsageError
from consilience._support.values import did_you_mean
from consilience.evidence.labels import encode, read_labels
from consilience.io import files
from consilience.io import ids as _ids
from consilience.io.files import Source
from consilience.io.frames import plain
from consilience.results.fusion import Placed

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


def read_earlier(path: str, source: Source, id_name: str | None) -> Any:
    """What --like names: a saved result, or a table of ids and labels."""
    if Path(path).is_file() and zipfile.is_zipfile(path):
        return read_result(path)
    table = pa.Table.from_batches(list(files.pieces(path, source.beside(path), text=True)))
    own = source.of(path).id_column
    return table if own is None or own == id_name else files.renamed(table, own, str(id_name))


def read_facts(path: str, source: Source, table: Partitions) -> pa.Table:
    """What --profile names: a table of other facts about the instances of a table, under ids of its type."""
    wanted = source.beside(path)
    assert wanted.id_column is not None
    parts = [pa.Table.from_batches([piece]) for piece in files.pieces(path, wanted, text=False)]
    if not parts:
        raise InputError(f"{path} has no rows.", hint="a row per instance.")
    facts = pa.concat_tables(parts, promote_options="permissive")
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
    fusion: Fusion, paths: Sequence[str], source: Source, *, strict: bool, told: Told
) -> Newcomers:
    """Place the rows of a file, or of several that are joined by id, by the base labels they have."""
    parts: Iterable[_Part]
    id_name = source.long[0] if source.long else source.id_name(paths)
    if len(paths) > 1 or source.long:
        parts = [_of_table(read_labels(paths, source).partitions(unobserved="keep"))]
    else:
        own = source.of(paths[0]).id_column
        parts = (_of_piece(piece, own) for piece in files.pieces(paths[0], source, text=True))
    name_of: dict[str, str] = {}
    found: list[Placed] = []
    ids: list[Any] = []
    strangers: Counter[tuple[str, Any]] = Counter()
    n_rows = 0
    for columns, of_rows, n in parts:
        if of_rows is not None:
            _ids.require_all(paths[0], of_rows, n_rows)
        name_of = name_of or _known_names(fusion.partitions, paths, list(columns))
        codes = np.full((n, fusion.partitions.n_partitions), -1, dtype=fusion.partitions.codes.dtype)
        for name, column in columns.items():
            if name_of[name] in fusion.partitions.names:  # otherwise it had no labels when it was fitted
                j = fusion.partitions.names.index(name_of[name])
                codes[:, j] = _fitted_codes(fusion.partitions, j, *column, strangers)
        if strict and strangers:
            raise InputError(f"{_sentence(strangers)}.", hint="leave out --strict to read them as missing.")
        found.append(fusion.place_codes(codes))
        ids.append(of_rows if of_rows is not None else np.arange(n_rows, n_rows + n))
        n_rows += n
        told("placing", n_rows, n_rows)
    if id_name:
        _ids.require_distinct(paths[0], ids)
    placed = Placed(*(np.concatenate(values) for values in zip(*found, strict=True)))
    told_apart = pa.chunked_array(ids) if id_name else np.concatenate(ids)
    return Newcomers(
        placed,
        {id_name or "row": told_apart},
        f"{_sentence(strangers)}; they count as missing." if strangers else "",
    )


def place_views(fusion: Fusion, paths: Sequence[str], source: Source) -> Newcomers:
    """Place instances by their features, in the views that there are."""
    id_name = source.id_name(paths)
    views = consilience.check_views(files.read_view_tables(paths, source), on=id_name)
    ids = np.arange(views.n_instances) if views.index is None else views.index.astype(object)
    return Newcomers(fusion.place(views), {id_name or "row": ids}, "")


class _Part(NamedTuple):
    """Some rows of new instances."""

    columns: dict[str, tuple[np.ndarray, list[Any]]]  # codes and what they stand for
    ids: pa.Array | None
    n_rows: int


def _of_piece(piece: pa.RecordBatch, id_column: str | None) -> _Part:
    columns = {}
    ids = None
    for name, values in zip(piece.schema.names, piece.columns, strict=True):
        if name == id_column:
            ids = values
        else:
            columns[name] = encode(values)
    return _Part(columns, ids, piece.num_rows)


def _of_table(table: Partitions) -> _Part:
    columns = {
        name: (codes, labels.tolist())
        for name, codes, labels in zip(table.names, table.codes.T, table.categories, strict=True)
    }
    return _Part(columns, None if table.index is None else pa.array(table.index.tolist()), table.n_rows)


def _known_names(fitted: Partitions, paths: Sequence[str], names: list[str]) -> dict[str, str]:
    """What the columns were called when they were fitted: of several files, also by the names of files."""
    out = {}
    for name in names:
        stem = files.stems(paths)[0]
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


def _fitted_codes(
    fitted: Partitions, j: int, codes: np.ndarray, labels: list[Any], strangers: Counter[tuple[str, Any]]
) -> np.ndarray:
    """Codes as they were fitted; text of a file may be a number, and what was not fitted is missing."""
    categories = [plain(value) for value in fitted.categories[j]]
    known = {str(value): code for code, value in enumerate(categories)}
    known |= {f"{value}.0": code for code, value in enumerate(categories) if isinstance(value, int)}
    counts = np.bincount(codes[codes >= 0], minlength=len(labels))
    for label, n in zip(labels, counts.tolist(), strict=True):
        if n and str(label) not in known and not _is_negative(label):
            strangers[fitted.names[j], label] += n
    return np.array([*(known.get(str(label), -1) for label in labels), -1])[codes]


def _is_negative(label: Any) -> bool:
    """Whether it says missing, as a negative number does."""
    try:
        return float(label) < 0
    except (TypeError, ValueError):
        return False


def _sentence(strangers: Counter[tuple[str, Any]]) -> str:
    shown = [f"{label!r} of {name!r} ({n})" for (name, label), n in strangers.most_common(_SHOWN)]
    more = len(strangers) - len(shown)
    others = f" and {more} others" if more > 0 else ""
    n = strangers.total()
    were = "label was" if n == 1 else "labels were"
    return f"{n} {were} not there when it was fitted: {', '.join(shown)}{others}"
