"""Tables in files: read in pieces, written in pieces, never half written."""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pa_parquet

from consilience._support.errors import InputError, UsageError
from consilience._support.files import Outputs, is_special
from consilience._support.values import did_you_mean
from consilience._support.warnings import warn
from consilience.io import excel
from consilience.io.labels import is_mark
from consilience.io.text import Form, find_form

# What a CSV file may say where there is no label.
_BLANKS = ("\t", *(" " * n for n in range(1, 9)))  # cells that only seem to hold something
MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
STDIO = "-"
ROWS_A_PIECE = 1_000_000
_BLOCK = 1 << 22  # bytes of a CSV file read at once
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_ARROW = (".arrow", ".feather", ".ipc")
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
# A spreadsheet takes a cell that begins like this for a formula, unless it is a number.
# Blanks of any kind and letters of full width do not keep it from that.
_FORMULA = r"^[\s\p{Z}\p{C}]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^[\t\r\n]"
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


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
    long: tuple[str, str, str] | None = None  # columns of instance, source and label: a row per opinion
    say: Callable[[str], None] = lambda _: None  # what the user should know
    forms: dict[str, Form] = field(default_factory=dict)  # of text files that were looked at

    @property
    def nulls(self) -> list[str]:
        """Cells that say nothing; where an empty one does, one of blanks does too."""
        return [*self.missing, *(_BLANKS if "" in self.missing else ())]

    @property
    def marks(self) -> tuple[str, ...]:
        """Text that says missing in files that know missing values themselves: only what was asked for."""
        return () if self.missing == MISSING_TEXTS else self.missing

    def of(self, path: str) -> Source:
        """How to read one of them."""
        return replace(
            self,
            id_column=self.own_ids.get(path, self.id_column),
            columns=self.own_columns.get(path, self.columns),
        )

    def beside(self, path: str) -> Source:
        """How to read a file that is no table of labels: `columns` that were meant for these do not count."""
        return replace(self.of(path), columns=self.own_columns.get(path, ()))

    def for_columns(self, columns: Sequence[str]) -> Source:
        """How to read just these columns of every file."""
        return replace(self, id_column=None, columns=tuple(columns), own_ids={}, own_columns={})

    def of_copy(self, path: str) -> Source:
        """How to read a copy of a file, under whatever name."""
        own = self.of(path)
        return replace(self, id_column=own.id_column, columns=own.columns, own_ids={}, own_columns={})

    def id_name(self, paths: Sequence[str]) -> str | None:
        """What the ids of all files are called: as the first says."""
        return self.id_column if self.id_column is not None else self.of(paths[0]).id_column


def spans(n_rows: int) -> Iterator[slice]:
    """Rows that are written at a time."""
    for start in range(0, n_rows, ROWS_A_PIECE):
        yield slice(start, min(start + ROWS_A_PIECE, n_rows))


# --- reading ------------------------------------------------------------------------------------------------


def read_view_tables(paths: Sequence[str], source: Source) -> dict[str, pa.Table]:
    """Feature tables by the names of their files, ids as text where files disagree about their type."""
    tables = {}
    key = source.id_name(paths)
    for name, path in zip(stems(paths), paths, strict=True):
        own = source.of(path).id_column
        parts = [pa.Table.from_batches([piece]) for piece in pieces(path, source, text=False)]
        if not parts:
            raise InputError(f"{path} has no rows.", hint="a row per instance, below a line of column names.")
        tables[name] = pa.concat_tables(parts, promote_options="permissive")
        _refuse_text(path, tables[name], own)
        if own is not None and own != key:
            tables[name] = _called(path, tables[name], own, str(key))
    if key is not None and len({table.schema.field(key).type for table in tables.values()}) > 1:
        for name, table in tables.items():
            at = table.schema.get_field_index(key)
            tables[name] = table.set_column(at, key, table.column(key).cast(pa.string()))
    return tables


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


def _refuse_text(path: str, table: pa.Table, id_column: str | None) -> None:
    for column in table.schema:
        if column.name != id_column and pa.types.is_string(column.type):
            texts = table.column(column.name).unique().drop_null().to_pylist()
            first = next((text for text in texts if not re.match(_NUMBER, text)), texts[0])
            hint = "encode it as numbers, or choose the columns with --columns"
            if is_mark(first):
                hint = (
                    f"if that says missing, say --missing {shlex.quote(first)} --missing ''; otherwise {hint}"
                )
            elif id_column is None:
                hint = f"if it holds the ids, say --id {shlex.quote(column.name)}; otherwise {hint}"
            raise UsageError(
                f"column {column.name!r} of {path} holds text such as {first!r}, not numbers.",
                hint=f"{hint}.",
            )
    name = table.schema.names[0]
    values = table.column(0)
    if id_column is None and pa.types.is_integer(values.type) and len(values.unique()) == len(values) > 1:
        warn(
            f"column {name!r} of {path} has another whole number in every row and is taken for a feature.",
            hint=f"if it holds the ids, say --id {name}.",
        )


def pieces(
    path: str, source: Source, *, text: bool, coded: bool = False, only_ids: bool = False
) -> Iterator[pa.RecordBatch]:
    """A file in pieces, each of which was checked.

    With `text`, all columns of a text file or sheet are text. With `coded`, text may come as dictionaries,
    other than that of ids. With `only_ids`, the column of ids alone is read.
    """
    if path != STDIO and not excel.exists(path):
        raise UsageError(
            f"there is no file {path!r}.", hint="check the path; - reads CSV from standard input."
        )
    kind = kind_of(path)
    how = _How(path, source.of(path), text, coded, only_ids)
    try:
        for piece in _READERS[kind](how):
            piece.validate(full=True)  # offsets of a damaged file may point anywhere
            _refuse_nested(path, piece.schema)
            if piece.num_rows:
                yield piece
    except (UnicodeError, pa.ArrowException, OSError) as error:
        raise _unreadable(path, kind, error) from error


class _How(NamedTuple):
    """What to read of a file."""

    path: str
    source: Source
    text: bool
    coded: bool
    only_ids: bool

    def wanted(self, names: list[str]) -> list[str]:
        """The columns to read, ids first."""
        source, own = self.source, self.source.id_column
        for name in [*source.columns, *([own] if own is not None else [])]:
            if name not in names:
                raise UsageError(f"{self.path} has no column {name!r}.", did_you_mean(name, names))
        chosen = [name for name in source.columns or names if name != own]
        return chosen if own is None else [own, *([] if self.only_ids else chosen)]


def _read_parquet(how: _How) -> Iterator[pa.RecordBatch]:
    return _batches(how, "parquet")


def _read_arrow(how: _How) -> Iterator[pa.RecordBatch]:
    return _batches(how, "arrow")


def _batches(how: _How, kind: str) -> Iterator[pa.RecordBatch]:
    path = how.path
    if is_special(path):
        raise UsageError(
            f"{path!r} is a pipe, from which only CSV is read.", hint="write it to a file first."
        )
    data = pa_dataset.dataset(path, format=kind)
    if not data.files:
        raise UsageError(
            f"there is no Parquet file in the folder {path!r}.", hint="name a file or its folder."
        )
    wanted = how.wanted(data.schema.names)
    if how.coded and kind == "parquet":  # text as the file has it: each once, and numbers
        texts = [
            name
            for name in wanted
            if name != how.source.id_column and pa.types.is_string(data.schema.field(name).type)
        ]
        data = pa_dataset.dataset(path, format=pa_dataset.ParquetFileFormat(dictionary_columns=set(texts)))
    for batch in data.to_batches(columns=wanted, batch_readahead=2, fragment_readahead=1):
        yield _without(batch, how.source.marks) if how.source.marks else batch


def _without(batch: pa.RecordBatch, marks: Sequence[str]) -> pa.RecordBatch:
    """A piece in which text that says missing is missing."""
    columns = []
    for values in batch.columns:
        coded = pa.types.is_dictionary(values.type)
        texts = values.dictionary if coded else values
        if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
            blank = pc.is_in(texts, value_set=pa.array(marks, texts.type))
            if coded:
                places = pc.if_else(blank.take(values.indices), None, values.indices)
                values = pa.DictionaryArray.from_arrays(places, texts)
            else:
                values = pc.if_else(blank, None, texts)
        columns.append(values)
    return pa.record_batch(columns, names=batch.schema.names)


def _refuse_nested(path: str, schema: pa.Schema) -> None:
    for column in schema:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            raise UsageError(
                f"column {column.name!r} of {path} has values of type {kind}, not single ones.",
                hint="choose other columns with --columns, or take the values out of their lists.",
            )


def _unreadable(path: str, kind: str, error: Exception) -> Exception:
    """What is wrong with a file, in our words."""
    said = " ".join(str(error).split())[:300].rstrip(".")
    if isinstance(error, OSError) and error.filename is not None:
        return error  # of the operating system, which names the file
    if kind != "csv":
        hint = "is it whole, and of the kind that its suffix says? Write it again"
    elif isinstance(error, UnicodeError):
        return InputError(
            f"{path} is not text in {getattr(error, 'encoding', 'this encoding')}.",
            hint="leave out --encoding, or name another one.",
        )
    elif "invalid UTF8" in said:
        return InputError(
            f"{path} is not text in UTF-8 all through.",
            hint="name its encoding, as in --encoding windows-1252.",
        )
    elif "Empty CSV" in said:
        hint = "a line of column names comes first, then a row per instance"
    elif isinstance(error, OSError):
        hint = "is it whole? Copy or compress it again"
    else:
        hint = "give --delimiter, or check that every row has as many cells as the first"
    return InputError(f"{path} cannot be read: {said}.", hint=f"{hint}.")


def stdin() -> bytes:
    """All of standard input."""
    if sys.stdin is None:
        raise UsageError("standard input is closed.", hint="name a file instead of -.")
    return sys.stdin.buffer.read()


def _given_at_once(path: str) -> pa.Buffer | None:
    """What can be read only once, and is read twice: standard input and pipes."""
    if path == STDIO:
        return pa.py_buffer(stdin())
    if not is_special(path):
        return None
    whole = Path(path).read_bytes()
    packed = COMPRESSED.get(Path(path).suffix.lower())
    if packed is not None:
        with pa.CompressedInputStream(pa.BufferReader(whole), packed) as stream:
            whole = stream.read()
    return pa.py_buffer(whole)


def _read_text(how: _How) -> Iterator[pa.RecordBatch]:
    path, source = how.path, how.source
    given = _given_at_once(path)

    def stream() -> Any:
        return pa.input_stream(path, compression="detect") if given is None else pa.BufferReader(given)

    form = source.forms.get(path)
    if form is None:
        usual = _DELIMITERS.get(_suffix(path), ",")
        form = find_form(path, stream, usual, source.encoding, source.delimiter)
        commas = "" if how.text or form.decimal == "." else "with decimal commas"
        if told := ", ".join(filter(None, [form.found, commas])):
            source.say(f"{'standard input' if path == STDIO else path}: {told}")
        source.forms[path] = form
    parse = pa_csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)
    read = pa_csv.ReadOptions(block_size=_BLOCK, encoding=form.encoding)
    decimal = "." if how.text else form.decimal

    def opened(**convert: Any) -> pa_csv.CSVStreamingReader:
        options = pa_csv.ConvertOptions(
            null_values=source.nulls, strings_can_be_null=True, decimal_point=decimal, **convert
        )
        return pa_csv.open_csv(stream(), read_options=read, parse_options=parse, convert_options=options)

    with opened() as first:
        names = first.schema.names
    _refuse_same_names(path, names)
    wanted = how.wanted(names)
    kinds = {
        name: pa.dictionary(pa.int32(), pa.string())
        if how.coded and name != source.id_column
        else pa.string()
        for name in wanted
        if how.text or name == source.id_column
    }
    with opened(include_columns=wanted, column_types=kinds) as reader:
        yield from reader


def _read_excel(how: _How) -> Iterator[pa.RecordBatch]:
    as_text = None if how.text else ([how.source.id_column] if how.source.id_column else [])
    names, cells = excel.read_cells(how.path)
    _refuse_same_names(how.path, names)
    yield from excel.as_table(names, cells, how.wanted(names), as_text, how.source.nulls).to_batches()


_READERS = {"csv": _read_text, "parquet": _read_parquet, "arrow": _read_arrow, "excel": _read_excel}


def _refuse_same_names(path: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path} has two columns named {twice!r}.", hint="give every column its own name.")


def _suffix(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(excel.split_sheet(path)[0]).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def kind_of(path: str) -> str:
    """ "csv", "parquet", "arrow" or "excel", by the suffix; a folder holds Parquet files."""
    suffix = _suffix(path)
    if path != STDIO and Path(path).is_dir():
        return "parquet"
    if path == STDIO or suffix in _DELIMITERS:
        return "csv"
    if suffix in (".parquet", ".pq"):
        return "parquet"
    if suffix in _ARROW:
        return "arrow"
    if suffix in excel.SUFFIXES:
        return "excel"
    raise UsageError(
        f"the kind of {path!r} is not known.",
        hint="its name must end in .csv, .tsv, .parquet, .arrow or .xlsx.",
    )


def is_text(path: str) -> bool:
    """Whether its labels are read as text, so that numbers among them have to be found."""
    return kind_of(path) in ("csv", "excel")


def is_parquet(path: str) -> bool:
    """Whether it is there and is a Parquet file or a folder."""
    return Path(path).exists() and kind_of(path) == "parquet"


def stems(paths: Sequence[str]) -> list[str]:
    """What files are called: their names without suffixes, or their paths where these repeat; sheets by
    their own names."""
    stems = [
        "stdin" if path == STDIO else excel.split_sheet(path)[1] or Path(path).name.split(".")[0]
        for path in paths
    ]
    return [str(path) if stems.count(stem) > 1 else stem for stem, path in zip(stems, paths, strict=True)]


def _named(name: str, paths: Sequence[str]) -> str | None:
    """The file that a name means: a path, the name of a file, or that without its suffix."""
    for known in (list(paths), [Path(path).name for path in paths], stems(paths)):
        if known.count(name) == 1:
            return paths[known.index(name)]
    return None


def is_named(name: str, paths: Sequence[str]) -> bool:
    """Whether it is the name of one of the files."""
    return _named(name, paths) is not None


def file_named(name: str, paths: Sequence[str], option: str) -> str:
    """Which of the files a name means; an error that lists them if it means none."""
    found = _named(name, paths)
    if found is None:
        raise UsageError(
            f"{option} names {name!r}, which is none of the files: {', '.join(paths)}.",
            hint=f"as in {option} {paths[0]}=..., also for a column that has a = in its name.",
        )
    return found


# --- writing ------------------------------------------------------------------------------------------------


def check_output(path: str) -> None:
    """Refuse a path that could not be written, before the work is done rather than after."""
    if path == STDIO:
        return
    require_folder(path)
    _kind_of_output(path)


def require_folder(path: str) -> None:
    if Path(path).is_dir():
        raise UsageError(f"{path!r} is a folder.", hint="name a file in it.")
    folder = Path(path).parent
    if not folder.is_dir():
        raise UsageError(f"there is no folder {str(folder)!r} to write to.", hint=f"mkdir -p {folder}")


def write_table(
    outputs: Outputs,
    path: str,
    n_rows: int,
    batches: Iterable[dict[str, Any]],
    told: Callable[[str, int, int], None],
) -> None:
    """Write a table in batches of columns, CSV, Parquet or Arrow by suffix."""
    kind = "csv" if path == STDIO else _kind_of_output(path)
    with _opened(outputs, path) as file:
        writer = None
        done = 0
        try:
            for columns in batches:
                batch = pa.record_batch({name: _array(values) for name, values in columns.items()})
                if kind == "csv":
                    batch = _harmless(batch)
                writer = writer or _writer(kind, path, file, batch.schema)
                writer.write_batch(batch)
                done += batch.num_rows
                told(f"writing {path}", done, n_rows)
        finally:
            if writer is not None:
                writer.close()


def _array(values: Any) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values)


def write_text(outputs: Outputs, path: str, text: str) -> None:
    """A text file; - is standard output."""
    with _opened(outputs, path) as file:
        file.write(text.encode(errors="replace"))  # half a surrogate pair has no bytes


def _kind_of_output(path: str) -> str:
    kind = kind_of(path)
    if kind == "excel":
        raise UsageError(f"cannot write {path!r}.", hint="write .csv, which Excel opens.")
    if _suffix(path) != Path(path).suffix.lower() and Path(path).suffix.lower() != ".gz":
        raise UsageError(f"cannot write {path!r}.", hint="of compressed files, only .gz is written.")
    return kind


def _writer(kind: str, path: str, file: Any, schema: pa.Schema) -> Any:
    if kind == "parquet":
        return pa_parquet.ParquetWriter(file, schema)
    if kind == "arrow":
        return pa_ipc.new_file(file, schema)
    return _CsvWriter(path, file, schema)


class _CsvWriter:
    """Writes text without quotes where it needs none, so that shell tools can read it."""

    def __init__(self, path: str, file: Any, schema: pa.Schema) -> None:
        self._stream = pa.CompressedOutputStream(file, "gzip") if path.endswith(".gz") else file
        self._delimiter = _DELIMITERS.get(_suffix(path), ",")
        line = io.StringIO()
        csv.writer(line, delimiter=self._delimiter, lineterminator="\n").writerow(schema.names)
        self._stream.write(line.getvalue().encode())

    def write_batch(self, batch: pa.RecordBatch) -> None:
        special = f'["\\r\\n{self._delimiter}]'
        quote = any(
            pc.any(pc.match_substring_regex(values, special)).as_py()
            for values in batch.columns
            if pa.types.is_string(values.type)
        )
        options = pa_csv.WriteOptions(
            include_header=False, delimiter=self._delimiter, quoting_style="needed" if quote else "none"
        )
        pa_csv.write_csv(batch, self._stream, options)

    def close(self) -> None:
        if isinstance(self._stream, pa.CompressedOutputStream):
            self._stream.close()


@contextmanager
def _opened(outputs: Outputs, path: str) -> Iterator[IO[bytes]]:
    if path != STDIO:
        with outputs.open(path) as file:
            yield file
        return
    if sys.stdout is None:
        raise UsageError("standard output is closed.", hint="give -o a file name.")
    try:
        yield sys.stdout.buffer
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has enough, as in `| head`. Python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _harmless(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    columns = []
    for values in batch.columns:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_large_string(values.type):
            values = values.cast(pa.string())
        if pa.types.is_string(values.type):
            values = _defused(values)
        elif pa.types.is_floating(values.type):
            values = pc.round(values, 6)
        columns.append(values)
    return pa.record_batch(columns, names=_defused(pa.array(batch.schema.names, pa.string())).to_pylist())


def _defused(values: pa.Array) -> pa.Array:
    dangerous = pc.and_(
        pc.match_substring_regex(values, _FORMULA), pc.invert(pc.match_substring_regex(values, _NUMBER))
    )
    return pc.if_else(dangerous, pc.binary_join_element_wise(pa.scalar("'", values.type), values, ""), values)
