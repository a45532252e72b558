"""Tables of labels in files: read piece by piece into distinct label rows, of which there are few.

Labels are read as codes, one small integer each, whatever their type; instances with the same label row are
one row with a count. What is left of an instance is its id and the number of its row. `InMemory` keeps these;
`InCodedPieces` forgets them and reads the file again when they are written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from consilience._support.errors import InputError, InputTypeError, UsageError
from consilience._support.values import object_array
from consilience.core.grouping import DistinctRows, distinct_rows
from consilience.evidence.partitions import MISSING, Partitions
from consilience.io import files
from consilience.io import ids as _ids
from consilience.io.files import Source, is_text, stems
from consilience.io.frames import encode_coded, in_every_row, warn_of_marks
from consilience.io.shapes import spread

_NAMES = 5  # rows that all have another text are taken for names, not for clusters of one
_CANONICAL = re.compile(r"-?(0|[1-9]\d*)(\.0*)?")


class Beside(NamedTuple):
    """Some consecutive instances: their ids under the name of their column, and which row of the table each
    of them has."""

    ids: dict[str, Any]
    rows: Any


class Instances(Protocol):
    """The instances of a table, in the order of the file."""

    @property
    def n_instances(self) -> int:
        """How many they are."""

    def batches(self) -> Iterator[Beside]:
        """All of them, as many at a time as are written at a time."""


# --- pieces of a file as codes ------------------------------------------------------------------------------


class Coder:
    """The labels of the columns of a file, numbered as they appear."""

    def __init__(self) -> None:
        self.known: dict[str, dict[Any, int]] = {}

    def codes(self, columns: dict[str, pa.Array]) -> np.ndarray:
        """A piece as codes, -1 where there is no label."""
        found = []
        for name, values in columns.items():
            coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
            known = self.known.setdefault(name, {})
            labels = coded.dictionary.to_pylist()
            place = coded.indices.fill_null(len(labels)).to_numpy(zero_copy_only=False)
            used = np.bincount(place, minlength=len(labels)).tolist()  # a category may have no row
            number = [
                known.setdefault(label, len(known)) if n else MISSING
                for label, n in zip(labels, used, strict=False)
            ]
            kind = np.min_scalar_type(-max(len(known), 1))
            found.append(np.array([*number, MISSING], dtype=kind)[place])
        out = np.empty((len(found[0]), len(found)), dtype=np.result_type(*found), order="F")
        for j, column in enumerate(found):
            out[:, j] = column
        return out

    @property
    def sizes(self) -> np.ndarray:
        """How many labels each column has."""
        return np.array([len(known) for known in self.known.values()])

    def labels(self, *, text: bool) -> list[list[Any]]:
        """The labels of each column in the order of their codes; of a text file, numbers where all are."""
        return [as_numbers(list(known)) if text else list(known) for known in self.known.values()]


def encode(values: pa.Array) -> tuple[np.ndarray, list[Any]]:
    """Codes of a column, -1 where missing, and the labels that they stand for."""
    found = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    codes = pc.fill_null(found.indices, MISSING).to_numpy(zero_copy_only=False)
    return codes.astype(np.int32, copy=False), found.dictionary.to_pylist()


def as_numbers(labels: list[str]) -> list[Any]:
    """Labels of a text file as numbers where all of them are: "-1" means missing, "10" comes after "9"."""
    if all(_CANONICAL.fullmatch(label) for label in labels):
        return [int(label.partition(".")[0]) for label in labels]
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return labels
    # "007" is a name; 0.37 is no label, which `Partitions` says better.
    return labels if any(re.match(r"[+-]?0\d", label) for label in labels) else numbers


def as_arrow(labels: list[Any]) -> pa.Array:
    """Labels as Arrow holds them: of one type, or as text."""
    if len({type(label) for label in labels}) == 1:
        for kind in (None, pa.uint64()):  # whole numbers from 2^63 on have to be asked for
            with suppress(OverflowError, pa.ArrowException):
                return pa.array(labels, kind)
    return pa.array([str(label) for label in labels], pa.string())


class CodedPiece(NamedTuple):
    """Some rows of a file."""

    ids: pa.Array | None
    codes: np.ndarray


def coded_pieces(path: str, source: Source, coder: Coder) -> Iterator[CodedPiece]:
    """The pieces of a file; labels that come up for the first time are added to those of the coder."""
    id_column = source.of(path).id_column
    n_rows = 0
    for piece in files.pieces(path, source, text=True, coded=True):
        columns = dict(zip(piece.schema.names, piece.columns, strict=True))
        own = None if id_column is None else columns.pop(id_column)
        if not columns:
            raise InputError(f"{path} has no column of labels.", hint="a column per base clustering.")
        if own is not None:
            _ids.require_all(path, own, n_rows)
        n_rows += piece.num_rows
        yield CodedPiece(own, coder.codes(columns))
    if not n_rows:
        raise InputError(f"{path} has no rows.", hint="a row per instance, below a line of column names.")


class LabelRows(NamedTuple):
    """The distinct label rows of one or several files, under the codes of a `Coder`."""

    names: list[str]
    labels: list[list[Any]]
    codes: np.ndarray
    counts: np.ndarray
    number: np.ndarray | None  # of every instance, which row it has; None where that was not kept

    @property
    def sizes(self) -> np.ndarray:
        return np.array([len(labels) for labels in self.labels])


def merged(parts: Sequence[DistinctRows], sizes: np.ndarray, *, number: bool) -> DistinctRows:
    """Distinct rows of several pieces as one; `inverse` is that of all their rows, if it is wanted."""
    codes = np.concatenate([part.codes for part in parts])
    found = distinct_rows(codes, sizes, np.concatenate([part.counts for part in parts]))
    if not number:
        return found._replace(inverse=np.empty(0, dtype=np.int32))
    places = np.split(found.inverse.astype(np.int32), np.cumsum([len(part.codes) for part in parts])[:-1])
    whole = np.concatenate([place[part.inverse] for place, part in zip(places, parts, strict=True)])
    return found._replace(inverse=whole)


def _distinct(codes: np.ndarray, sizes: np.ndarray) -> DistinctRows:
    found = distinct_rows(codes, sizes)
    return found._replace(inverse=found.inverse.astype(np.int32))


# --- the table ----------------------------------------------------------------------------------------------


class Checked(NamedTuple):
    """A table of distinct label rows with counts."""

    table: Partitions
    number: np.ndarray  # which row of the table each of the given label rows is


def checked(rows: LabelRows, *, id_column: str | None) -> Checked:
    """The label rows by the rules of `Partitions`: negative numbers are missing, labels are in order."""
    codes = np.empty(rows.codes.shape, dtype=np.int32, order="F")
    categories = []
    for j, (name, labels) in enumerate(zip(rows.names, rows.labels, strict=True)):
        members = np.bincount(*_counted(rows, j), len(labels))
        _refuse_ids_among_labels(name, labels, members, id_column)
        code_of, known = encode_coded(np.arange(len(labels)), object_array(labels), "missing", name, None)
        codes[:, j] = np.append(code_of, MISSING)[rows.codes[:, j]]
        categories.append(known)
    kept = [j for j, known in enumerate(categories) if len(known)]
    categories = [categories[j] for j in kept]
    if not kept:
        raise InputError(
            "every entry of the label table is missing.",
            hint="empty cells and negative numbers mean missing; say --noise if -1 stands for noise.",
        )
    codes = codes[:, kept].astype(np.min_scalar_type(-max(map(len, categories))))
    found = distinct_rows(codes, np.array([len(known) for known in categories]), rows.counts)
    table = Partitions.of_rows(found.codes, categories, rows.names, counts=found.counts, kept=kept)
    return Checked(table, found.inverse)


def _counted(rows: LabelRows, j: int) -> tuple[np.ndarray, np.ndarray]:
    seen = rows.codes[:, j] >= 0
    return rows.codes[seen, j], rows.counts[seen]


def _refuse_ids_among_labels(
    name: str, labels: list[Any], members: np.ndarray, id_column: str | None
) -> None:
    """What `Partitions` refuses, in the words of commands; and names that nobody said are the ids."""
    where = in_every_row(members)
    if id_column is None and len(members) >= _NAMES and (members == 1).all() and isinstance(labels[0], str):
        where = "in every row"
    if where:
        ids = "" if id_column is not None else f"if it holds the ids, say --id {name!r}; otherwise "
        raise UsageError(
            f"column {name!r} has a different value {where}.",
            hint=f"{ids}choose the columns of labels with --columns.",
        )


# --- in memory ----------------------------------------------------------------------------------------------


class InMemory(NamedTuple):
    """A table of labels of which every instance's id and label row are kept."""

    rows: LabelRows
    ids: pa.ChunkedArray | None
    id_name: str | None

    @property
    def n_instances(self) -> int:
        """Number of instances."""
        return len(self._number)

    @property
    def _number(self) -> np.ndarray:
        assert self.rows.number is not None
        return self.rows.number

    def partitions(self, *, negative: str = "missing", unobserved: str = "error") -> Partitions:
        """The table with a row and an id for every instance."""
        return self._in_full(None if self.ids is None else _ids.id_array(self.ids), negative, unobserved)

    def _in_full(self, index: np.ndarray | None, negative: str, unobserved: str) -> Partitions:
        columns = {
            name: (self.rows.codes[:, j][self._number], labels)
            for j, (name, labels) in enumerate(zip(self.rows.names, self.rows.labels, strict=True))
        }
        for j, (name, labels) in enumerate(zip(self.rows.names, self.rows.labels, strict=True)):
            members = np.bincount(*_counted(self.rows, j), len(labels))
            _refuse_ids_among_labels(name, labels, members, self.id_name)
        return Partitions.of_codes(
            columns,
            negative=negative,  # type: ignore[arg-type]
            index=index,
            index_name=self.id_name,
            unobserved="error" if unobserved == "error" else "keep",
        )

    def compact(self, *, unobserved: str = "error") -> tuple[Partitions, InMemory]:
        """The distinct rows of the table with counts, and the instances in terms of these."""
        try:
            table, number = checked(self.rows, id_column=self.id_name)
        except UsageError:
            raise
        except (InputError, InputTypeError):
            self.partitions(unobserved=unobserved)  # says the same, and where
            raise
        if _is_strange(table, self.ids is not None, unobserved):
            whole = self.partitions(unobserved=unobserved)  # which says so, or refuses it
            rows = self.rows._replace(number=whole.inverse.astype(np.int32))
            return whole.distinct, self._replace(rows=rows)
        say_marks(table)
        rows = self.rows._replace(number=number.astype(np.int32)[self._number])
        return table, self._replace(rows=rows)

    def batches(self) -> Iterator[Beside]:
        """All instances, with the rows of the compact table."""
        for rows in files.spans(self.n_instances):
            own = np.arange(rows.start, rows.stop) if self.ids is None else _ids.taken(self.ids, rows)
            yield Beside({self.id_name or "row": own}, self._number[rows])


def _is_strange(table: Partitions, with_ids: bool, unobserved: str) -> bool:
    """Whether there is something to say about a table."""
    return (
        table.n_partitions < table.n_columns
        or table.n_columns > 10 * table.n_instances
        or (unobserved == "error" and not table.seen.all())
        or (with_ids and table.n_partitions > 1 and int((table.codes >= 0).sum(axis=1).max()) == 1)
    )


def say_marks(table: Partitions) -> None:
    """Warn of labels that rather say missing, as `Partitions.of` does."""
    counts, codes = table.counts, table.codes
    warn_of_marks(table.names, table.categories, lambda j, code: counts[codes[:, j] == code].sum())


def read_labels(paths: Sequence[str], source: Source) -> InMemory:
    """The base clusterings in one file, or in several that are joined by id; or one row per opinion."""
    if source.long is not None:
        return _read_long(paths, source)
    if len(paths) > 1 and not all(source.of(path).id_column for path in paths):
        raise UsageError(
            f"{len(paths)} files can be joined by id only.",
            hint="name their id column with --id, or that of each file with --id FILE=COLUMN.",
        )
    tables = [_read_file(path, source) for path in paths]
    if len(tables) == 1:
        return tables[0]._replace(id_name=source.id_name(paths))
    known = [table.ids for table in tables if table.ids is not None]
    ids, places = _ids.join_ids(paths, known)
    number = np.full((len(ids), len(tables)), MISSING, dtype=np.int32, order="F")
    for j, (table, place) in enumerate(zip(tables, places, strict=True)):
        number[place, j] = table._number
    met = distinct_rows(number, np.array([len(table.rows.codes) for table in tables]))
    codes = np.column_stack(
        [
            np.vstack([table.rows.codes, np.full((1, table.rows.codes.shape[1]), MISSING, np.int8)])[own]
            for table, own in zip(tables, met.codes.T, strict=True)
        ]
    )
    names = _distinct_names(paths, [table.rows.names for table in tables])
    labels = [labels for table in tables for labels in table.rows.labels]
    rows = LabelRows(names, labels, codes, met.counts, met.inverse.astype(np.int32))
    return InMemory(rows, pa.chunked_array([ids]), source.id_name(paths))


def _read_file(path: str, source: Source) -> InMemory:
    coder, parts, own = Coder(), [], []
    for piece in coded_pieces(path, source, coder):
        parts.append(_distinct(piece.codes, coder.sizes))
        if piece.ids is not None:
            own.append(piece.ids)
    id_column = source.of(path).id_column
    _ids.require_distinct(path, own, hint=hint_of_opinions(id_column, list(coder.known)))
    found = merged(parts, coder.sizes, number=True)
    pa.default_memory_pool().release_unused()  # what merging needs now
    labels = coder.labels(text=is_text(path))
    rows = LabelRows(list(coder.known), labels, found.codes, found.counts, found.inverse)
    refuse_opinions(path, source, rows)
    return InMemory(rows, pa.chunked_array(own) if own else None, id_column)


def _distinct_names(paths: Sequence[str], columns: list[list[str]]) -> list[str]:
    """Names of base clusterings: those of their columns, and of their files where columns repeat."""
    everywhere = [name for names in columns for name in names]
    return [
        name if everywhere.count(name) == 1 else stem if len(names) == 1 else f"{stem} {name}"
        for stem, names in zip(stems(paths), columns, strict=True)
        for name in names
    ]


# --- a row per opinion --------------------------------------------------------------------------------------


def _say_long(names: Sequence[str]) -> str:
    return f"--long {shlex.quote(','.join(names))} (instance, source, label)"


def hint_of_opinions(id_column: str | None, columns: Sequence[str]) -> str:
    """What to do where ids repeat: an id and two columns may be an instance, a source and a label."""
    if id_column is None or len(columns) != 2:
        return f"{_ids.ONE_ROW[:-1]}; a row per opinion is read by --long."
    return f"a row per instance; if this is a row per opinion, say {_say_long([id_column, *columns])}."


def refuse_opinions(path: str, source: Source, rows: LabelRows) -> None:
    """Refuse three columns that nobody chose in which the first two, the second of them names, occur once
    together and repeat by themselves: hardly any two clusterings are that far from each other."""
    own = source.of(path)
    if own.id_column is not None or own.columns or len(rows.names) != 3 or len(rows.codes) < _NAMES:
        return
    if isinstance(rows.labels[1][0] if rows.labels[1] else None, str) and (rows.counts == 1).all():
        first, second = rows.codes[:, 0].astype(np.int64), rows.codes[:, 1].astype(np.int64)
        pairs = np.unique(first * len(rows.labels[1]) + second)
        if min(first.min(), second.min()) >= 0 and len(pairs) == len(first) > max(rows.sizes[:2]):
            raise UsageError(
                f"{path} looks like a row per opinion: {rows.names[0]!r} and {rows.names[1]!r} repeat, but "
                "never together.",
                hint=f"{_say_long(rows.names)}; if they are base clusterings, name them with --columns.",
            )


def _read_long(paths: Sequence[str], source: Source) -> InMemory:
    """Files with a row per opinion: an instance, who says something about it, and what."""
    assert source.long is not None
    instance, base, label = source.long
    wanted = source.for_columns(source.long)
    found: dict[str, list[pa.Array]] = {name: [] for name in source.long}
    for path in paths:
        n_rows = 0
        for piece in files.pieces(path, wanted, text=True):
            for name in source.long:
                _refuse_gap(path, name, piece.column(name), n_rows, allowed=name == label)
                found[name].append(piece.column(name))
            n_rows += piece.num_rows
    if not found[instance]:
        raise InputError(f"{paths[0]} has no rows.", hint="a row per opinion, below a line of column names.")
    text = all(map(is_text, paths))
    ids, who = _numbered(found[instance])
    bases, which = _numbered(found[base])
    labels, what = _numbered(found[label])
    names = [str(name) for name in bases.to_pylist()]
    known = labels.to_pylist()
    alone = len(paths) == 1
    codes = spread(who, which, what, len(ids), names, known, lambda p: ids[p].as_py(), say_rows=alone)
    of_base = []
    for j in range(len(names)):
        used, place = np.unique(codes[:, j], return_inverse=True)
        first = int(used[0] == MISSING)
        codes[:, j] = place - first
        own = [known[code] for code in used[first:]]
        of_base.append(as_numbers(own) if text else own)
    rows = _distinct(codes, np.array([len(own) for own in of_base]))
    return InMemory(LabelRows(names, of_base, *rows), pa.chunked_array([ids]), instance)


def _numbered(parts: list[pa.Array]) -> tuple[pa.Array, np.ndarray]:
    """Distinct values in order of appearance, and the number of each entry; -1 where there is none."""
    whole = pa.chunked_array(parts).combine_chunks()
    coded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    return coded.dictionary, coded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)


def _refuse_gap(path: str, name: str, values: pa.Array, first_row: int, *, allowed: bool) -> None:
    if values.null_count and not allowed:
        row = first_row + int(np.argmax(np.asarray(values.is_null())))
        raise InputError(
            f"row {row} of {path} has no {name!r}.",
            hint="only labels may be missing; check the order: --long instance,source,label.",
        )
