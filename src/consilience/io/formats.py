"""Which reader a path has: by its suffix, for a folder by what is in it."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from consilience._support.errors import InputError, UsageError
from consilience._support.files import is_special
from consilience.io import arrow, csv, excel, parquet
from consilience.io.tables import STDIO, Batches, How, Kind, Table, suffix_of

READERS: Mapping[str, Callable[[str, How], Table]] = {
    "csv": csv.CsvTable,
    "excel": excel.ExcelTable,
    "parquet": parquet.ParquetTable,
    "arrow": arrow.ArrowTable,
}
_MODULES = {"csv": csv, "excel": excel, "parquet": parquet, "arrow": arrow}
_IN_FOLDERS = ("csv", "parquet")
_COLUMNS = 3  # names in a sentence


def kind_of(path: str) -> str:
    """ "csv", "parquet", "arrow" or "excel", by the suffix; a folder holds files of one kind."""
    if path == STDIO:
        return "csv"
    if Path(path).is_dir():
        kind, _ = files_in(path)
        return kind
    return _kind_by_name(path)


def _kind_by_name(path: str) -> str:
    suffix = suffix_of(excel.split_sheet(path)[0])
    for kind, module in _MODULES.items():
        if suffix in module.SUFFIXES:
            return kind
    raise UsageError(
        f"the kind of {path!r} is not known.",
        hint="its name must end in .csv, .tsv, .parquet, .arrow or .xlsx.",
    )


def files_in(folder: str) -> tuple[str, list[str]]:
    """The kind of the tables in a folder and their paths in order; hidden files and those that begin with _
    are none."""
    found: dict[str, list[str]] = {kind: [] for kind in _IN_FOLDERS}
    for path in sorted(Path(folder).iterdir()):
        if path.name.startswith((".", "_")) or not path.is_file():
            continue
        for kind in _IN_FOLDERS:
            if suffix_of(path.name) in _MODULES[kind].SUFFIXES:
                found[kind].append(str(path))
    kinds = [kind for kind in _IN_FOLDERS if found[kind]]
    if len(kinds) > 1:
        raise UsageError(
            f"the folder {folder!r} has CSV and Parquet files.",
            hint=f"name the ones you mean, as in '{Path(folder) / '*.csv'}'.",
        )
    if not kinds:
        raise UsageError(
            f"there is no CSV or Parquet file in the folder {folder!r}.", hint="name a file or its folder."
        )
    return kinds[0], found[kinds[0]]


def is_pattern(path: str) -> bool:
    """Whether a path is a pattern such as ``exports/*.csv``, and no file of that name."""
    return path != STDIO and glob.has_magic(path) and not exists(path)


def files_of(pattern: str) -> list[str]:
    """The files that a pattern fits, in order."""
    found = sorted(path for path in glob.glob(pattern, recursive=True) if Path(path).is_file())
    found = [path for path in found if not Path(path).name.startswith((".", "_"))]
    if not found:
        raise UsageError(f"no file matches {pattern!r}.", hint="check the path, and quote the pattern.")
    return found


def exists(path: str) -> bool:
    """Whether the file that a path names is there."""
    return Path(excel.split_sheet(path)[0]).exists()


def open_table(path: str, how: How) -> Table:
    """A file or a folder of files to read from, once its names are known."""
    if path != STDIO and not exists(path):
        raise UsageError(
            f"there is no file {path!r}.",
            hint="check the path.",
            command="check the path; - reads CSV from standard input.",
        )
    if path != STDIO and Path(path).is_dir():
        kind, files = files_in(path)
        return Parts(path, [_opened(kind, file, how) for file in files], how)
    return _opened(_kind_by_name(path) if path != STDIO else "csv", path, how)


def _opened(kind: str, path: str, how: How) -> Table:
    try:
        return READERS[kind](path, how)
    except (UnicodeError, pa.ArrowException, OSError) as error:
        raise unreadable(path, kind, error) from error


def read(table: Table, wanted: Sequence[str], kinds: Mapping[str, Kind]) -> Batches:
    """Its batches that have rows; whatever goes wrong, in our words."""
    batches = table.batches(wanted, kinds)
    try:
        for batch in batches:
            if batch.num_rows:
                yield batch
    except (UnicodeError, pa.ArrowException, OSError) as error:
        raise unreadable(table.path, kind_of(table.path), error) from error
    finally:
        batches.close()  # its threads end now, not some time


def unreadable(path: str, kind: str, error: Exception) -> Exception:
    """What is wrong with a file, in our words."""
    if isinstance(error, OSError) and error.filename is not None:
        return error  # of the operating system, which names the file
    if kind == "csv":
        return csv.unreadable(path, error)
    said = " ".join(str(error).split())[:300].rstrip(".")
    return InputError(
        f"{path} cannot be read: {said}.",
        hint="check that it is complete and of the kind that its suffix says, or write it again.",
    )


class Parts:
    """Files that are one table, one below the other: columns by name, of a type that holds all of them."""

    def __init__(self, path: str, tables: Sequence[Table], how: How) -> None:
        self.path, self.tables = path, tables
        self.text = tables[0].text
        self.names = list(dict.fromkeys(name for table in tables for name in table.names))
        lacking = [table for table in tables if len(table.names) < len(self.names)]
        if lacking:
            rare = [name for name in self.names if any(name not in table.names for table in tables)]
            names = ", ".join(map(repr, rare[:_COLUMNS])) + ", ..." * (len(rare) > _COLUMNS)
            how.say(
                f"{path}: {len(lacking)} of {len(tables)} files lack some of the columns ({names}), "
                "which are missing there"
            )
        self._n_rows: dict[int, int] = {}

    def batches(self, wanted: Sequence[str], kinds: Mapping[str, Kind]) -> Batches:
        """Some columns of all files; ids, which are read as text, keep the types that they have."""
        target = {} if self.text else self._types([name for name in wanted if kinds.get(name) != "text"])
        for number, table in enumerate(self.tables):
            here = [name for name in wanted if name in table.names]
            n_rows = 0
            for batch in table.batches(here, {name: kinds[name] for name in here if name in kinds}):
                n_rows += batch.num_rows
                yield _aligned(batch, wanted, target)
            self._n_rows[number] = n_rows

    def _types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        target = {}
        schemas = [table.schema for table in self.tables if isinstance(table, parquet.TypedTable)]
        for name in names:
            found = {_plain(schema.field(name).type) for schema in schemas if name in schema.names}
            if len(found) > 1:
                fields = [pa.schema([pa.field(name, kind)]) for kind in found]
                try:
                    target[name] = pa.unify_schemas(fields, promote_options="permissive").field(0).type
                except pa.ArrowTypeError:
                    target[name] = pa.string()
        return target

    def places(self, rows: Sequence[int]) -> str:
        """Rows in the files that they are in."""
        found: dict[int, list[int]] = {}
        for row in rows:
            for number in range(len(self.tables)):
                n_rows = self._length(number)
                if row < n_rows:
                    found.setdefault(number, []).append(row)
                    break
                row -= n_rows
        return " and ".join(self.tables[number].places(own) for number, own in found.items())

    def _length(self, number: int) -> int:
        if number not in self._n_rows:
            table = self.tables[number]
            first = table.names[:1]
            kinds: dict[str, Kind] = dict.fromkeys(first, "text")
            self._n_rows[number] = sum(batch.num_rows for batch in table.batches(first, kinds))
        return self._n_rows[number]


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _aligned(batch: pa.RecordBatch, wanted: Sequence[str], target: Mapping[str, Any]) -> pa.RecordBatch:
    columns = []
    for name in wanted:
        if name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, target.get(name, pa.null())))
            continue
        values = batch.column(name)
        if name in target:
            if pa.types.is_dictionary(values.type):
                values = values.dictionary_decode()
            values = values.cast(target[name])
        columns.append(values)
    return pa.record_batch(columns, names=list(wanted))


def stems(paths: Sequence[str]) -> list[str]:
    """What files are called: their names without suffixes, or their paths where these repeat; sheets by
    their own names."""
    stems = [
        "stdin" if path == STDIO else excel.split_sheet(path)[1] or Path(path).name.split(".")[0]
        for path in paths
    ]
    return [str(path) if stems.count(stem) > 1 else stem for stem, path in zip(stems, paths, strict=True)]


def named(name: str, paths: Sequence[str]) -> str | None:
    """The file that a name means: a path, the name of a file, with its sheet or without, or that without its
    suffix."""
    bare = [excel.split_sheet(path)[0] for path in paths]
    for known in (
        list(paths),
        [Path(path).name for path in paths],
        bare,
        [Path(path).name for path in bare],
        stems(paths),
        [Path(path).name.split(".")[0] for path in bare],
    ):
        if known.count(name) == 1:
            return paths[known.index(name)]
    return None


def is_regular(path: str) -> bool:
    """Whether it is a file that can be read again."""
    return path != STDIO and not is_special(excel.split_sheet(path)[0])
