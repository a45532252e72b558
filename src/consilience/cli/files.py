"""Tables in files: read in pieces, written in pieces, never half written.

Labels are read as codes: a column is held as one small integer per row and the distinct labels, whatever its
type, so that ten million rows of text take no more memory than ten million rows of numbers.
"""

from __future__ import annotations

import csv
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.ipc as pa_ipc
import pyarrow.parquet as pa_parquet

from consilience._errors import InputError
from consilience._files import Outputs, is_special
from consilience._label_tables import in_every_row
from consilience._values import did_you_mean
from consilience._warnings import warn
from consilience.cli.errors import UsageError
from consilience.cli.signals import go_on_to_the_end
from consilience.partitions import MISSING, Partitions

# What a CSV file may say where there is no label.
MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
STDIO = "-"
ROWS_A_PIECE = 1_000_000
_BLOCK = 1 << 23  # bytes of a CSV file read at once
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
_ARROW = (".arrow", ".feather", ".ipc")
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_CANONICAL = re.compile(r"-?(0|[1-9]\d*)(\.0*)?")
# A spreadsheet takes a cell that begins like this for a formula, unless it is a number.
# Blanks of any kind and letters of full width do not keep it from that.
_FORMULA = r"^[\s\p{Z}\p{C}]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^[\t\r\n]"
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"

Piece = Callable[[slice], dict[str, Any]]


class Source(NamedTuple):
    """How to read the files of one command."""

    id_column: str | None = None
    columns: tuple[str, ...] = ()
    missing: tuple[str, ...] = MISSING_TEXTS
    delimiter: str | None = None


# --- reading ------------------------------------------------------------------------------------------------


def read_labels(
    paths: Sequence[str], source: Source, *, negative: str = "missing", unobserved: str = "error"
) -> Partitions:
    """The base clusterings in one file, or in several that are joined by id."""
    if len(paths) > 1 and source.id_column is None:
        raise UsageError(
            f"{len(paths)} files can be joined by id only.",
            hint="name their id column with --id, which all of them must have.",
        )
    tables = [_read_codes(path, source) for path in paths]
    names = _distinct_names(paths, [list(table.columns) for table in tables])
    ids, places = _join(paths, tables)
    n_rows = len(ids) if ids is not None else tables[0].n_rows
    columns: dict[str, tuple[Any, Sequence[Any]]] = {}
    for table, new_names, place in zip(tables, names, places, strict=True):
        for name, column in zip(new_names, table.columns.values(), strict=True):
            codes = column.codes
            if place is not None:
                codes = np.full(n_rows, MISSING, dtype=np.int32)
                codes[place] = column.codes
            columns[name] = codes, column.labels
    _refuse_ids_among_labels(columns, source.id_column)
    return Partitions.of_codes(
        columns,
        negative=negative,  # type: ignore[arg-type]
        index=None if ids is None else _id_array(ids),
        index_name=source.id_column,
        unobserved="error" if unobserved == "error" else "keep",
    )


def read_view_tables(paths: Sequence[str], source: Source) -> dict[str, pa.Table]:
    """Feature tables by the names of their files, ids as text where files disagree about their type."""
    tables = {}
    for name, path in zip(stems(paths), paths, strict=True):
        parts = [pa.Table.from_batches([piece]) for piece in pieces(path, source, text=False)]
        tables[name] = pa.concat_tables(parts, promote_options="permissive")
        _refuse_text(path, tables[name], source.id_column)
    key = source.id_column
    if key is not None and len({table.schema.field(key).type for table in tables.values()}) > 1:
        for name, table in tables.items():
            at = table.schema.get_field_index(key)
            tables[name] = table.set_column(at, key, table.column(key).cast(pa.string()))
    return tables


def _refuse_text(path: str, table: pa.Table, id_column: str | None) -> None:
    for field in table.schema:
        if field.name != id_column and pa.types.is_string(field.type):
            hint = (
                "choose tables of numbers only"
                if id_column
                else f"if it holds the ids, say --id {field.name}"
            )
            raise UsageError(f"column {field.name!r} of {path} holds text, not numbers.", hint=f"{hint}.")
    name = table.schema.names[0]
    values = table.column(0)
    if id_column is None and pa.types.is_integer(values.type) and len(values.unique()) == len(values) > 1:
        warn(
            f"column {name!r} of {path} has another whole number in every row and is taken for a feature.",
            hint=f"if it holds the ids, say --id {name}.",
        )


class _Column(NamedTuple):
    codes: np.ndarray
    labels: list[Any]


class _CodedTable(NamedTuple):
    columns: dict[str, _Column]
    ids: pa.ChunkedArray | None
    n_rows: int


def _read_codes(path: str, source: Source) -> _CodedTable:
    codes: dict[str, list[np.ndarray]] = {}
    labels: dict[str, dict[Any, int]] = {}
    ids: list[pa.Array] = []
    n_rows = 0
    for piece in pieces(path, source, text=True):
        n_rows += piece.num_rows
        for name, values in zip(piece.schema.names, piece.columns, strict=True):
            if name == source.id_column:
                ids.append(values)
                continue
            found, known = _encode(values), labels.setdefault(name, {})
            number = [known.setdefault(label, len(known)) for label in found.dictionary.to_pylist()]
            place = pc.fill_null(found.indices, len(number)).to_numpy(zero_copy_only=False)
            codes.setdefault(name, []).append(np.array([*number, MISSING], dtype=np.int32)[place])
    if not n_rows:
        raise InputError(f"{path} has no rows.", hint="a row per instance, below a line of column names.")
    if not codes:
        raise InputError(f"{path} has no column of labels.", hint="a column per base clustering.")
    is_text = kind_of(path) == "csv"
    columns = {
        name: _Column(
            np.concatenate(parts), _as_numbers(list(labels[name])) if is_text else list(labels[name])
        )
        for name, parts in codes.items()
    }
    return _CodedTable(columns, pa.chunked_array(ids) if ids else None, n_rows)


def _encode(values: pa.Array) -> pa.DictionaryArray:
    return values if pa.types.is_dictionary(values.type) else values.dictionary_encode()


def encode(values: pa.Array) -> tuple[np.ndarray, list[Any]]:
    """Codes of a column, -1 where missing, and the labels that they stand for."""
    found = _encode(values)
    codes = pc.fill_null(found.indices, MISSING).to_numpy(zero_copy_only=False)
    return codes.astype(np.int32, copy=False), found.dictionary.to_pylist()


def _as_numbers(labels: list[str]) -> list[Any]:
    """Labels of a text file as numbers where all of them are: "-1" means missing, "10" comes after "9"."""
    if all(_CANONICAL.fullmatch(label) for label in labels):
        return [int(label.partition(".")[0]) for label in labels]
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return labels
    # "007" is a name; 0.37 is no label, which `Partitions` says better.
    return labels if any(re.match(r"[+-]?0\d", label) for label in labels) else numbers


def pieces(path: str, source: Source, *, text: bool) -> Iterator[pa.RecordBatch]:
    """A file in pieces, each of which was checked; with `text`, all columns of a CSV file as text."""
    if path != STDIO and not Path(path).exists():
        raise UsageError(
            f"there is no file {path!r}.", hint="check the path; - reads CSV from standard input."
        )
    kind = kind_of(path)
    try:
        for piece in _csv_pieces(path, source, text) if kind == "csv" else _batches(path, source, kind):
            piece.validate(full=True)  # offsets of a damaged file may point anywhere
            _refuse_nested(path, piece.schema)
            if piece.num_rows:
                yield piece
    except (UnicodeDecodeError, pa.ArrowException, OSError) as error:
        raise _unreadable(path, kind, error) from error


def _batches(path: str, source: Source, kind: str) -> Iterator[pa.RecordBatch]:
    if is_special(path):
        raise UsageError(
            f"{path!r} is a pipe, from which only CSV is read.", hint="write it to a file first."
        )
    data = pa_dataset.dataset(path, format=kind)
    if not data.files:
        raise UsageError(
            f"there is no Parquet file in the folder {path!r}.", hint="name a file or its folder."
        )
    yield from data.to_batches(columns=_wanted(path, data.schema.names, source))


def _refuse_nested(path: str, schema: pa.Schema) -> None:
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            raise UsageError(
                f"column {field.name!r} of {path} has values of type {kind}, not single ones.",
                hint="choose other columns with --columns, or take the values out of their lists.",
            )


def _unreadable(path: str, kind: str, error: Exception) -> Exception:
    """What is wrong with a file, in our words."""
    said = " ".join(str(error).split())[:300].rstrip(".")
    if isinstance(error, OSError) and error.filename is not None:
        return error  # of the operating system, which names the file
    if kind != "csv":
        hint = "is it whole, and of the kind that its suffix says? Write it again"
    elif isinstance(error, UnicodeDecodeError) or "invalid UTF8" in said:
        return InputError(
            f"{path} is not text in UTF-8.", hint=f"iconv -f latin1 -t utf-8 {path} > converted.csv"
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


def _csv_pieces(path: str, source: Source, text: bool) -> Iterator[pa.RecordBatch]:
    delimiter = source.delimiter or _DELIMITERS.get(_suffix(path), ",")
    given = _given_at_once(path)
    parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    read = pa_csv.ReadOptions(block_size=_BLOCK)

    def opened(**convert: Any) -> pa_csv.CSVStreamingReader:
        stream = path if given is None else pa.BufferReader(given)
        options = pa_csv.ConvertOptions(null_values=list(source.missing), strings_can_be_null=True, **convert)
        return pa_csv.open_csv(stream, read_options=read, parse_options=parse, convert_options=options)

    with opened() as first:
        names = first.schema.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path} has two columns named {twice!r}.", hint="give every column its own name.")
    other = next((mark for mark in ";\t|" if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        raise UsageError(
            f"{path} has a single column, {names[0]!r}.",
            hint=f"its cells seem to be separated by {other!r}; give --delimiter {other!r}.",
        )
    wanted = _wanted(path, names, source)
    as_text = wanted if text else [name for name in wanted if name == source.id_column]
    with opened(include_columns=wanted, column_types=dict.fromkeys(as_text, pa.string())) as reader:
        yield from reader


def _wanted(path: str, names: list[str], source: Source) -> list[str]:
    """The columns to read, ids first."""
    for name in [*source.columns, *([source.id_column] if source.id_column is not None else [])]:
        if name not in names:
            raise UsageError(f"{path} has no column {name!r}.", did_you_mean(name, names))
    chosen = [name for name in source.columns or names if name != source.id_column]
    return chosen if source.id_column is None else [source.id_column, *chosen]


def _suffix(path: str) -> str:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def kind_of(path: str) -> str:
    """ "csv", "parquet" or "arrow", by the suffix; a folder holds Parquet files."""
    suffix = _suffix(path)
    if path != STDIO and Path(path).is_dir():
        return "parquet"
    if path == STDIO or suffix in _DELIMITERS:
        return "csv"
    if suffix in (".parquet", ".pq"):
        return "parquet"
    if suffix in _ARROW:
        return "arrow"
    raise UsageError(
        f"the kind of {path!r} is not known.", hint="its name must end in .csv, .tsv, .parquet or .arrow."
    )


def is_parquet(path: str) -> bool:
    """Whether it is there and is a Parquet file or a folder."""
    return Path(path).exists() and kind_of(path) == "parquet"


# --- joining by id ------------------------------------------------------------------------------------------


def _join(paths: Sequence[str], tables: list[_CodedTable]) -> tuple[pa.Array | None, list[np.ndarray | None]]:
    """All ids in order of appearance, and where the rows of each table go."""
    parts = [table.ids for table in tables if table.ids is not None]
    if len(parts) < len(tables):
        return None, [None] * len(tables)
    if len({part.type for part in parts}) > 1:
        parts = [part.cast(pa.string()) for part in parts]
    together = pa.chunked_array([chunk for part in parts for chunk in part.chunks]).combine_chunks()
    coded = _encode(together)
    places = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
    split = np.split(places, np.cumsum([len(part) for part in parts])[:-1])
    for path, place in zip(paths, split, strict=True):
        if len(place) and place.min() < 0:
            row = int(np.argmin(place >= 0))
            raise InputError(f"row {row} of {path} has no id.", hint="give every row an id of its own.")
        counts = np.bincount(place)
        if len(place) and counts.max() > 1:
            twice = coded.dictionary[int(np.argmax(counts > 1))].as_py()
            raise InputError(
                f"the id {twice!r} occurs {counts.max()} times in {path}.",
                hint="a row per instance; give another id column, or remove the repetitions.",
            )
    if len(tables) == 1:
        return together, [None]
    return coded.dictionary, list(split)


def _id_array(ids: pa.Array) -> np.ndarray:
    """Ids as NumPy holds them: integers, or text without a Python object for every row."""
    if pa.types.is_integer(ids.type):
        return np.asarray(ids)
    text = ids.cast(pa.string())
    out = np.empty(len(text), dtype=np.dtypes.StringDType())
    for start in range(0, len(text), ROWS_A_PIECE):
        out[start : start + ROWS_A_PIECE] = text[start : start + ROWS_A_PIECE].to_numpy(zero_copy_only=False)
    return out


def stems(paths: Sequence[str]) -> list[str]:
    """What files are called: their names without suffixes, or their paths where these repeat."""
    stems = [Path(path).name.split(".")[0] if path != STDIO else "stdin" for path in paths]
    return [str(path) if stems.count(stem) > 1 else stem for stem, path in zip(stems, paths, strict=True)]


def _distinct_names(paths: Sequence[str], columns: list[list[str]]) -> list[list[str]]:
    """Names of base clusterings: those of their columns, and of their files where columns repeat."""
    everywhere = [name for names in columns for name in names]
    return [
        [
            name if everywhere.count(name) == 1 else stem if len(names) == 1 else f"{stem} {name}"
            for name in names
        ]
        for stem, names in zip(stems(paths), columns, strict=True)
    ]


def _refuse_ids_among_labels(columns: dict[str, tuple[Any, Sequence[Any]]], id_column: str | None) -> None:
    """What `Partitions` refuses, in the words of commands."""
    for name, (codes, labels) in columns.items():
        if where := in_every_row(np.bincount(codes[codes >= 0], minlength=len(labels))):
            ids = "" if id_column is not None else f"if it holds the ids, say --id {name!r}; otherwise "
            raise UsageError(
                f"column {name!r} has a different value {where}.",
                hint=f"{ids}choose the columns of labels with --columns.",
            )


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


@contextmanager
def together() -> Iterator[Outputs]:
    """The files of one command: all of them appear at the end, or none does."""
    with Outputs() as outputs:
        yield outputs
        go_on_to_the_end()


def write_table(
    outputs: Outputs, path: str, n_rows: int, piece: Piece, told: Callable[[str, int, int], None]
) -> None:
    """Write a table in pieces, CSV, Parquet or Arrow by suffix; `piece` gives the columns of some rows."""
    kind = "csv" if path == STDIO else _kind_of_output(path)
    with _opened(outputs, path) as file:
        writer = None
        try:
            for start in range(0, n_rows, ROWS_A_PIECE):
                rows = slice(start, min(start + ROWS_A_PIECE, n_rows))
                batch = pa.record_batch({name: pa.array(values) for name, values in piece(rows).items()})
                if kind == "csv":
                    batch = _harmless(batch)
                writer = writer or _writer(kind, path, file, batch.schema)
                writer.write_batch(batch)
                told(f"writing {path}", rows.stop, n_rows)
        finally:
            if writer is not None:
                writer.close()


def write_text(outputs: Outputs, path: str, text: str) -> None:
    """A text file; - is standard output."""
    with _opened(outputs, path) as file:
        file.write(text.encode(errors="replace"))  # half a surrogate pair has no bytes


def _kind_of_output(path: str) -> str:
    kind = kind_of(path)
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
