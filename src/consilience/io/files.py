"""Files as those read them that know no `Scan` yet: batches of Arrow, by the path of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from consilience._support.errors import InputError, UsageError
from consilience._support.files import Outputs
from consilience._support.values import did_you_mean
from consilience._support.warnings import warn
from consilience.io import write
from consilience.io.formats import kind_of, named, open_table, read, stems
from consilience.io.ids import canonical, folded
from consilience.io.marks import MISSING_TEXTS, marks_of
from consilience.io.tables import COMPRESSED, STDIO, How, Kind, Table
from consilience.io.tables import read_stdin as stdin
from consilience.io.write import ROWS_A_PIECE, check_output, require_folder, spans, write_table, write_text

__all__ = [
    "COMPRESSED",
    "MISSING_TEXTS",
    "ROWS_A_PIECE",
    "STDIO",
    "Outputs",
    "Source",
    "check_output",
    "file_named",
    "is_named",
    "is_parquet",
    "is_text",
    "kind_of",
    "pieces",
    "read_features",
    "read_view_tables",
    "renamed",
    "require_folder",
    "spans",
    "stdin",
    "stems",
    "write",
    "write_table",
    "write_text",
]


@dataclass(frozen=True)
class Source:
    """How to read the files of one command."""

    id_column: str | None = None
    columns: tuple[str, ...] = ()
    missing: tuple[str, ...] = MISSING_TEXTS
    delimiter: str | None = None
    encoding: str | None = None
    own_ids: Mapping[str, str] = field(default_factory=dict)  # of single files, by path
    own_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    header: int | None = None  # line with the names of columns, from 1; by default it is found
    own_headers: Mapping[str, int] = field(default_factory=dict)
    match_ids: tuple[str, ...] = ()  # what to ignore in ids
    # Of files with a row per opinion, by path: the columns of instance, source and label.
    long: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    say: Callable[[str], None] = lambda _: None  # what the user should know
    blank_rows: bool | None = None  # whether an empty line is a row; by default where there are no ids
    tables: dict[tuple[str, How], Table] = field(default_factory=dict)  # that were looked at

    @property
    def marks(self) -> tuple[str, ...]:
        """Text that says missing in files that know missing values themselves."""
        return marks_of(self.missing)

    def of(self, path: str) -> Source:
        """How to read one of them."""
        return replace(
            self,
            id_column=self.own_ids.get(path, self.id_column),
            columns=self.own_columns.get(path, self.columns),
        )

    def beside(self, path: str) -> Source:
        """How to read a file beside the tables: `columns` and `header` of these do not count."""
        return replace(self.of(path), columns=self.own_columns.get(path, ()), header=None)

    def for_columns(self, columns: Sequence[str]) -> Source:
        """How to read just these columns of every file."""
        return replace(
            self, id_column=None, columns=tuple(columns), own_ids={}, own_columns={}, blank_rows=False
        )

    def of_copy(self, path: str) -> Source:
        """How to read a copy of a file, under whatever name."""
        own = self.of(path)
        return replace(
            self, id_column=own.id_column, columns=own.columns, own_ids={}, own_columns={}, tables={}
        )

    def id_name(self, paths: Sequence[str]) -> str | None:
        """What the ids of all files are called: as the first says."""
        if self.id_column is not None or not paths:
            return self.id_column
        return self.of(paths[0]).id_column

    def table(self, path: str, *, decimals: bool) -> Table:
        """The table in a file, which is looked at once."""
        blank_rows = self.of(path).id_column is None if self.blank_rows is None else self.blank_rows
        header = self.own_headers.get(path, self.header)
        how = How(self.missing, self.delimiter, self.encoding, header, blank_rows, decimals)
        if (path, how) not in self.tables:
            known = any(path == other for other, _ in self.tables)  # then all was said
            say = (lambda _: None) if known else self.say
            self.tables[path, how] = open_table(path, how._replace(say=say))
        return self.tables[path, how]


def read_view_tables(paths: Sequence[str], source: Source) -> dict[str, pa.Table]:
    """Feature tables by the names of their files, ids as text where files disagree about their type.

    Numbers are numbers where a file has nothing else; otherwise all cells are as they were written.
    """
    tables = {}
    key = source.id_name(paths)
    for name, path in zip(stems(paths), paths, strict=True):
        own = source.of(path).id_column
        tables[name] = read_features(path, source)
        _warn_of_ids(path, tables[name], own)
        if own is not None and own != key:
            tables[name] = _called(path, tables[name], own, str(key))
    if key is not None and len({table.schema.field(key).type for table in tables.values()}) > 1:
        for name, table in tables.items():
            at = table.schema.get_field_index(key)
            tables[name] = table.set_column(at, key, table.column(key).cast(pa.string()))
    return tables


def read_features(path: str, source: Source) -> pa.Table:
    """A table of features: numbers, or cells as they were written."""
    own = source.of(path).id_column
    found = _whole(path, pieces(path, source, text=False))
    numeric = all(
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_boolean(column.type)
        for column in found.schema
        if column.name != own
    )
    return (
        found if numeric or not is_text(path) else _whole(path, pieces(path, source, text=False, cells=True))
    )


def _whole(path: str, parts: Iterator[pa.RecordBatch]) -> pa.Table:
    tables = [pa.Table.from_batches([piece]) for piece in parts]
    if not tables:
        raise InputError(f"{path} has no rows.", hint="a row per instance, below a line of column names.")
    return _below_each_other(tables)


def _below_each_other(parts: list[pa.Table]) -> pa.Table:
    """Pieces of a table as one; a column that is text in one of them is text."""
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowTypeError:
        for name in parts[0].schema.names:
            kinds = {part.schema.field(name).type for part in parts}
            if pa.string() in kinds and len(kinds) > 1:
                at = parts[0].schema.get_field_index(name)
                parts = [part.set_column(at, name, part.column(name).cast(pa.string())) for part in parts]
        return pa.concat_tables(parts, promote_options="permissive")


def _called(path: str, table: pa.Table, own: str, name: str) -> pa.Table:
    """A table with its ids under the name that they have in the first file."""
    if name in table.schema.names:
        raise UsageError(
            f"{path} has ids in {own!r} and also a column {name!r}, as the ids of the first file are called.",
            hint="rename one of them.",
        )
    return renamed(table, own, name)


def renamed(table: pa.Table, own: str, name: str) -> pa.Table:
    """A table with another name for a column."""
    return table.rename_columns([name if each == own else each for each in table.schema.names])


def _warn_of_ids(path: str, table: pa.Table, id_column: str | None) -> None:
    name = table.schema.names[0]
    values = table.column(0)
    if id_column is None and pa.types.is_integer(values.type) and len(values.unique()) == len(values) > 1:
        warn(
            f"column {name!r} of {path} has another whole number in every row and is taken for a feature.",
            hint=f"if it holds the ids, say --id {name}.",
        )


def pieces(
    path: str,
    source: Source,
    *,
    text: bool,
    coded: bool = False,
    only_ids: bool = False,
    cells: bool = False,
) -> Iterator[pa.RecordBatch]:
    """A file in pieces, each of which was checked.

    With `text`, all columns of a text file or sheet are text. With `coded`, text may come as dictionaries,
    other than that of ids. With `only_ids`, the column of ids alone is read. With `cells`, features are as
    they were written.
    """
    table = source.table(path, decimals=not text)
    own = source.of(path)
    wanted = chosen(table, own.id_column, own.columns, only_ids=only_ids)
    label: Kind = "coded" if coded else "text"
    kinds: dict[str, Kind] = {name: "text" if name == own.id_column else label for name in wanted}
    if cells:
        kinds = {name: "text" if name == own.id_column else "cells" for name in wanted}
    elif not text:
        kinds = {name: kind for name, kind in kinds.items() if name == own.id_column}
    for batch in read(table, wanted, kinds):
        if own.id_column is not None:
            ids = folded(canonical(batch.column(0), path), own.match_ids)
            batch = batch.set_column(0, own.id_column, ids)
        yield batch


def chosen(
    table: Table, id_column: str | None, columns: Sequence[str], *, only_ids: bool = False
) -> list[str]:
    """The columns to read, ids first."""
    for name in [*columns, *([id_column] if id_column is not None else [])]:
        if name not in table.names:
            raise UsageError(f"{table.path} has no column {name!r}.", did_you_mean(name, table.names))
    labels = [name for name in columns or table.names if name != id_column]
    return labels if id_column is None else [id_column, *([] if only_ids else labels)]


def is_text(path: str) -> bool:
    """Whether its labels are read as text, so that numbers among them have to be found."""
    return kind_of(path) in ("csv", "excel")


def is_parquet(path: str) -> bool:
    """Whether it is there and is a Parquet file or a folder of them."""
    return Path(path).exists() and kind_of(path) == "parquet"


def is_named(name: str, paths: Sequence[str]) -> bool:
    """Whether it is the name of one of the files."""
    return named(name, paths) is not None


def file_named(name: str, paths: Sequence[str], option: str) -> str:
    """Which of the files a name means; an error that lists them if it means none."""
    found = named(name, paths)
    if found is None:
        raise UsageError(
            f"{option} names {name!r}, which is not one of the files: {', '.join(paths)}.",
            hint=f"as in {option} {paths[0]}=..., also for a column that has a = in its name.",
        )
    return found
