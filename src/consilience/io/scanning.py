"""One reader for whatever tables of labels come as: see `scan`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from consilience._support.errors import Hint, InputError, Phrase, UsageError
from consilience._support.values import did_you_mean
from consilience.io import frames
from consilience.io import ids as _ids
from consilience.io.excel import split_sheet
from consilience.io.formats import Parts, files_of, is_pattern, named, open_table, read, stems
from consilience.io.labels import MISSING
from consilience.io.marks import MISSING_TEXTS
from consilience.io.parquet import TypedTable
from consilience.io.pieces import Coded, Piece, Source
from consilience.io.shapes import read_long, spread
from consilience.io.tables import STDIO, How, Kind, Table, file_key
from consilience.io.text import check_encoding

T = TypeVar("T")
Long = tuple[str, str, str]
_APPENDED = Hint(
    "these files have the same columns and are read as one table; name them one by one to join them by id."
)


@dataclass(frozen=True)
class Scan:
    """Tables of labels that were found, and can be gone through again and again; see `scan`.

    Attributes
    ----------
    sources : tuple of Source
        One for every table; several are joined by their ids.
    id_name : str or None
        What the ids are called, as the first source says.
    """

    sources: tuple[Source, ...]

    @property
    def id_name(self) -> str | None:
        return self.sources[0].id_name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of labels of all sources."""
        return tuple(name for source in self.sources for name in source.columns)


def scan(
    what: Any,
    *,
    id: str | Mapping[str, str] | None = None,
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    long: Long | Mapping[str, Long] | None = None,
    missing: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: int | Mapping[str, int] | None = None,
    match_ids: str | Sequence[str] | None = None,
    say: Callable[[str], None] | None = None,
) -> Scan:
    """Find the labels in files, folders or tables in memory, and how to read them.

    Nothing but the names of columns is read before it is needed, and every table can be read again, so that
    tables beyond memory are read as others are.

    Parameters
    ----------
    what : str, path, list of these, or a table
        A CSV, Excel, Parquet or Arrow file, ``"FILE.xlsx#SHEET"``, "-" for standard input, a folder of CSV or
        Parquet files, or a pattern such as ``"exports/*.csv"``; several are joined by id. Files of a folder
        are one table, one below the other, and so are files of a pattern that have the same columns. Or a
        frame, array or dict of columns.
    id : str or dict, optional
        The column of ids, in all files or by file. Without it, rows go by position, and an empty line is a
        row.
    columns : list of str or dict, optional
        The columns of labels, in all files or by file; by default all but that of the ids.
    long : tuple of three str or dict, optional
        The columns of instance, source and label of files with a row per opinion; all are, or those named.
    missing : list of str, optional
        Texts that say missing, instead of "", "NA", "N/A", "NaN", "nan", "null", "NULL" and "None".
    delimiter, encoding : str, optional
        Of text files; detected by default.
    header : int or dict, optional
        The line (row of a sheet) with the names of the columns, counted from 1. By default the first line;
        in a sheet, the first row that has a name for every column.
    match_ids : str or list of str, optional
        What to ignore in ids: "trim" (spaces around them), "case", "zeros" (leading zeros and a trailing .0)
        and "unicode" (the form of letters).
    say : callable, optional
        Called with every line that is worth reading, such as the encoding that was detected.

    Returns
    -------
    Scan

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("who,gold\\nann,1\\nbob,0\\n")
    >>> _ = (folder / "b.csv").write_text("who,club\\nbob,x\\ncleo,y\\n")
    >>> found = scan([folder / "a.csv", folder / "b.csv"], id="who")
    >>> found.id_name, found.columns
    ('who', ('gold', 'club'))
    """
    listed = _paths(what)
    if listed is None:
        of_files = {"missing": missing, "delimiter": delimiter, "encoding": encoding, "header": header}
        given = next((name for name, value in of_files.items() if value is not None), None)
        if given is not None or isinstance(id, Mapping) or isinstance(columns, Mapping):
            raise UsageError(
                f"{given or 'a dict by file'} is about files, and a table in memory was given.",
                hint="leave it out.",
            )
        return Scan((_in_memory(what, id, columns, long, _ids.check_matches(match_ids)),))
    tell = say or (lambda _: None)
    groups = [_expanded(path) for path in listed]
    paths = [path for group in groups for path in group]
    _refuse_twice(paths)
    options = _Options(
        paths,
        _by_file("id", id, paths),
        {path: tuple(own) for path, own in _by_file("columns", columns, paths).items()},
        _by_file("long", long, paths),
        _by_file("header", header, paths),
        How(
            tuple(missing) if missing is not None else MISSING_TEXTS,
            delimiter,
            None if encoding is None else check_encoding(encoding),
            say=tell,
        ),
        _ids.check_matches(match_ids),
    )
    found: list[Source] = []
    names = iter(stems(paths))
    for given, group in zip(listed, groups, strict=True):
        own = [next(names) for _ in group]
        found += options.sources(given, group, own)
    kinds = [kind for source in found if isinstance(source, FileSource) for kind in _id_kinds(source)]
    _ids.require_one_kind(kinds)
    return Scan(tuple(found))


def _id_kinds(source: FileSource) -> list[tuple[str, str]]:
    tables = source.table.tables if isinstance(source.table, Parts) else [source.table]
    return [
        (table.path, _ids.id_kind(table.schema.field(source.id_name).type))
        for table in tables
        if isinstance(table, TypedTable) and source.id_name in table.names
    ]


def _in_memory(what: Any, id: Any, columns: Any, long: Any, match_ids: Sequence[str]) -> Source:
    """A frame, array, dict or dask collection as a source."""
    if long is not None:
        return read_long(what, *long)
    if hasattr(what, "__dask_graph__"):
        chosen = what if columns is None else what[[*([id] if id is not None else []), *columns]]
        return frames.Partitioned(chosen, id)
    found = frames.read_memory(what, id, match_ids)
    if columns is None:
        return found
    for name in columns:
        if name not in found.coded:
            raise UsageError(f"the table has no column {name!r}.", did_you_mean(name, found.columns))
    return replace(found, coded={name: found.coded[name] for name in columns})


def _paths(what: Any) -> list[str] | None:
    """The paths that were given; None where it is something else."""
    if isinstance(what, str | os.PathLike):
        return [os.fspath(what)]
    if isinstance(what, list | tuple) and what and all(isinstance(each, str | os.PathLike) for each in what):
        return [os.fspath(each) for each in what]
    return None


def _expanded(path: str) -> list[str]:
    return files_of(path) if is_pattern(path) else [path]


def _refuse_twice(paths: Sequence[str]) -> None:
    seen: dict[Any, str] = {}
    for path in paths:
        file, sheet = split_sheet(path)
        key = (path if path == STDIO else file_key(file), sheet)
        if key in seen:
            also = "" if seen[key] == path else f", also as {seen[key]!r}"
            raise UsageError(
                f"{path!r} is named twice{also}.",
                hint="name every file once; to let one count more, give it a weight.",
            )
        seen[key] = path


def _by_file(option: str, given: Any, paths: Sequence[str]) -> dict[str, Any]:
    """What was given for each file; a value that is no dict is that of all."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return dict.fromkeys(paths, given)
    own = {}
    for name, value in given.items():
        path = named(os.fspath(name), paths)
        if path is None:
            raise UsageError(
                Phrase(
                    "{option} names {name!r}, which is not one of the files.", option=option, name=str(name)
                ),
                did_you_mean(str(name), [Path(path).name for path in paths]),
            )
        own[path] = value
    return own


@dataclass(frozen=True)
class _Options:
    """How to read each of several files."""

    paths: Sequence[str]
    id: Mapping[str, str]
    columns: Mapping[str, tuple[str, ...]]
    long: Mapping[str, Long]
    header: Mapping[str, int]
    how: How
    match_ids: tuple[str, ...]

    def sources(self, given: str, group: Sequence[str], names: Sequence[str]) -> list[Source]:
        """The tables of a path or a pattern: files that have the same columns are one."""
        if len(group) == 1:
            return [self._source(group[0], names[0], self._table(group[0]))]
        alike: dict[Any, list[int]] = {}
        tables = [self._table(path) for path in group]
        for number, (path, table) in enumerate(zip(group, tables, strict=True)):
            key = (frozenset(table.names), self.id.get(path), self.columns.get(path), self.long.get(path))
            alike.setdefault(key, []).append(number)
        found = []
        for numbers in alike.values():
            path, name, table = group[numbers[0]], names[numbers[0]], tables[numbers[0]]
            if len(numbers) > 1:
                table = Parts(given, [tables[number] for number in numbers], self.how)
                name = Path(given).parent.name or name
            found.append(self._source(path, name, table))
        return found

    def _table(self, path: str) -> Table:
        by_position = path not in self.id and path not in self.long
        return open_table(path, self.how._replace(header=self.header.get(path), blank_rows=by_position))

    def _source(self, path: str, name: str, table: Table) -> Source:
        if path in self.long:
            return LongSource(table, name, self.long[path], self.match_ids)
        return FileSource(table, name, self.id.get(path), self.columns.get(path, ()), self.match_ids)


def chosen(table: Table, id_name: str | None, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns of labels; an error for names that the table does not have."""
    for name in [*columns, *([id_name] if id_name is not None else [])]:
        if name not in table.names:
            raise UsageError(f"{table.path} has no column {name!r}.", did_you_mean(name, table.names))
    found = tuple(name for name in columns or table.names if name != id_name)
    if not found:
        raise InputError(
            f"{table.path} has no column of labels.", hint="it needs a column per base clustering."
        )
    return found


class FileSource:
    """A table with a column per base clustering."""

    def __init__(
        self,
        table: Table,
        name: str,
        id_name: str | None = None,
        columns: Sequence[str] = (),
        match_ids: Sequence[str] = (),
    ) -> None:
        self.table, self.path, self.name, self.text = table, table.path, name, table.text
        self.id_name, self._match_ids = id_name, match_ids
        self.columns = chosen(table, id_name, columns)
        self.asked = bool(columns)  # whether somebody said that these are the labels

    @property
    def hint_of_repeats(self) -> Hint | None:
        """What to do where an id repeats, if there is something special to do."""
        return _APPENDED if isinstance(self.table, Parts) else None

    def pieces(self) -> Iterator[Piece]:
        """All rows, a batch of the reader at a time."""
        wanted = self.columns if self.id_name is None else (self.id_name, *self.columns)
        kinds: dict[str, Kind] = {name: "text" if name == self.id_name else "coded" for name in wanted}
        n_rows = 0
        for batch in read(self.table, wanted, kinds):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            ids = None if self.id_name is None else self._ids(columns.pop(self.id_name), n_rows)
            coded = {name: coded_column(values) for name, values in columns.items()}
            yield Piece(coded, ids, batch.num_rows, n_rows)
            n_rows += batch.num_rows
        if not n_rows:
            raise InputError(
                f"{self.path} has no rows.", hint="it needs a row per instance, below a line of column names."
            )

    def ids(self) -> Iterator[pa.Array]:
        """The ids alone."""
        if self.id_name is None:
            return
        n_rows = 0
        for batch in read(self.table, [self.id_name], {self.id_name: "text"}):
            yield self._ids(batch.column(0), n_rows)
            n_rows += batch.num_rows

    def _ids(self, values: pa.Array, first: int) -> pa.Array:
        ids = _ids.folded(_ids.canonical(values, self.path), self._match_ids)
        _ids.require_all(self.table.places, ids, first)
        return ids

    def where(self, row: int) -> str:
        """The place of a row in words."""
        return self.table.places([row])


def coded_column(values: pa.Array) -> Coded:
    """A column of Arrow as codes and what they stand for."""
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        values = values.cast(pa.string())  # Python's dates end at microseconds
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    codes = coded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
    return Coded(codes, coded.dictionary.to_pylist())


class LongSource:
    """A table with a row per opinion: an instance, who speaks about it, and what is said."""

    def __init__(self, table: Table, name: str, long: Long, match_ids: Sequence[str] = ()) -> None:
        self.table, self.path, self.name, self.text = table, table.path, name, table.text
        self._long, self.id_name, self._match_ids = long, long[0], match_ids
        chosen(table, None, long)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the base clusterings, for which the table is read."""
        return tuple(self._whole.columns)

    @cached_property
    def _whole(self) -> Piece:
        instance, base, label = self._long
        found: dict[str, list[pa.Array]] = {name: [] for name in self._long}
        n_rows = 0
        for batch in read(self.table, self._long, dict.fromkeys(self._long, "text")):
            for name in self._long:
                values = batch.column(name)
                if name == instance:
                    values = _ids.folded(_ids.canonical(values, self.path), self._match_ids)
                if values.null_count and name != label:
                    row = n_rows + int(np.argmax(np.asarray(values.is_null())))
                    raise InputError(
                        f"{self.where_read(row)} has no {name!r}.",
                        hint=Hint(
                            "only labels may be missing; check the order, {long=}: instance,source,label."
                        ),
                        column=name,
                    )
                found[name].append(values)
            n_rows += batch.num_rows
        if not n_rows:
            raise InputError(
                f"{self.path} has no rows.", hint="it needs a row per opinion, below a line of column names."
            )
        ids, who = _numbered(found[instance])
        bases, which = _numbered(found[base])
        labels, what = _numbered(found[label])
        names = [str(name) for name in bases.to_pylist()]
        known = labels.to_pylist()
        codes = spread(who, which, what, len(ids), names, known, lambda p: ids[p].as_py(), say_rows=True)
        columns = {name: Coded(column, known) for name, column in zip(names, codes.T, strict=True)}
        return Piece(columns, ids, len(ids))

    def pieces(self) -> Iterator[Piece]:
        """All instances at once."""
        yield self._whole

    def ids(self) -> Iterator[pa.Array]:
        """The ids."""
        yield self._whole.ids

    def where_read(self, row: int) -> str:
        """The place of an opinion in words."""
        return self.table.places([row])

    def where(self, row: int) -> str:
        """An instance in words."""
        return f"the instance {self._whole.ids[row].as_py()!r}"


def _numbered(parts: list[pa.Array]) -> tuple[pa.Array, np.ndarray]:
    """Distinct values in order of appearance, and the number of each entry; -1 where there is none."""
    kinds = {part.type for part in parts}
    if len(kinds) > 1:
        parts = [_ids.as_text(part) for part in parts]
    whole = pa.chunked_array(parts).combine_chunks()
    coded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    return coded.dictionary, coded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
