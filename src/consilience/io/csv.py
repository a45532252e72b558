"""CSV files and their like, as tables of Arrow.

The file is cut into chunks of whole rows here, and Arrow parses each of them from memory. So every row has a
line, an unclosed quote is noticed, and no thread of Arrow ever runs code of Python: one that did when an
error ended the program took the whole process down.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from consilience._support.errors import Hint, InputError, UsageError
from consilience._support.files import is_special
from consilience.io.marks import marks_of_cells, null_texts, without_blanks
from consilience.io.tables import (
    COMPRESSED,
    STDIO,
    Batches,
    How,
    Kind,
    in_words,
    read_stdin,
    refuse_same_names,
    shown,
    suffix_of,
)
from consilience.io.text import find_form

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": "\t"}
SUFFIXES = tuple(DELIMITERS)
BLOCK = 1 << 22  # bytes that are read at once
_THREADS = 4  # that parse, at most
_NEWLINE, _QUOTE = 10, 34


class _Chunk(NamedTuple):
    """Whole rows of a file."""

    data: bytes
    line: int  # the number of its first line, as an editor shows it


class CsvTable:
    """A text file whose first line names its columns."""

    text = True

    def __init__(self, path: str, how: How) -> None:
        self.path, self._how = path, how
        self._given = _given_at_once(path)
        usual = DELIMITERS.get(suffix_of(path), ",")
        form = find_form(path, self._stream, usual, how.encoding, how.delimiter, how.header)
        self._encoding, self._delimiter = form.encoding, form.delimiter
        self._decimal = form.decimal if how.decimals else "."
        commas = "" if self._decimal == "." else "with decimal commas"
        if told := ", ".join(filter(None, [form.found, commas])):
            how.say(f"{shown(path)}: {told}")
        self.names, self._skipped = self._header()
        refuse_same_names(path, self.names)

    def batches(self, wanted: Sequence[str], kinds: Mapping[str, Kind]) -> Batches:
        """Some columns, a batch for every chunk."""
        types = {
            name: pa.dictionary(pa.int32(), pa.string()) if kind == "coded" else pa.string()
            for name, kind in kinds.items()
        }
        missing = self._how.missing
        cells = "cells" in kinds.values()
        convert = pa_csv.ConvertOptions(
            null_values=null_texts(marks_of_cells(missing) if cells else missing),
            strings_can_be_null=True,
            decimal_point=self._decimal,
            include_columns=list(wanted),
            column_types=types,
        )
        workers = min(_THREADS, os.cpu_count() or 1)
        waiting: deque[Future[pa.RecordBatch]] = deque()
        pool = ThreadPoolExecutor(workers)
        try:
            for chunk in self._rows():
                waiting.append(pool.submit(self._parsed, chunk, convert))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def places(self, rows: Sequence[int]) -> str:
        """Lines of rows, counted from 1 with the header, for which the file is read again."""
        lines: dict[int, int] = {}
        sought = sorted(rows)
        n = 0
        for chunk in self._rows():
            starts, data = self._starts(chunk.data), np.frombuffer(chunk.data, np.uint8)
            for row in (row for row in sought if n <= row < n + len(starts)):
                lines[row] = chunk.line + int((data[: starts[row - n]] == _NEWLINE).sum())
            n += len(starts)
            if len(lines) == len(set(sought)):
                break
        return in_words("line", [lines[row] for row in rows], shown(self.path))

    # --- bytes to chunks ------------------------------------------------------------------------------------

    def _stream(self) -> Any:
        if self._given is None:
            return pa.input_stream(self.path, compression="detect")
        return pa.BufferReader(self._given)

    def _blocks(self) -> Iterator[bytes]:
        """The file in UTF-8, without its byte order mark."""
        decoder = None
        if self._encoding not in ("utf-8", "utf-8-sig"):
            decoder = codecs.getincrementaldecoder(self._encoding)()
        first = True
        with self._stream() as stream:
            while block := stream.read(BLOCK):
                if decoder is not None:
                    block = decoder.decode(block).encode()
                if first:
                    block = block.removeprefix(codecs.BOM_UTF8)
                    old_mac = b"\n" not in block and b"\r" in block[:-1]
                    first = False
                yield block.replace(b"\r", b"\n") if old_mac else block
            if decoder is not None and (rest := decoder.decode(b"", final=True)):
                yield rest.encode()

    def _chunks(self) -> Iterator[_Chunk]:
        """The file cut at ends of rows."""
        parts: list[bytes] = []
        line = 1
        open_quote = False
        for block in self._blocks():
            parts.append(block)
            if open_quote and b'"' not in block:
                continue
            data = b"".join(parts)
            cut = self._last_end(data)
            parts = [data[cut:]]
            open_quote = b'"' in parts[0]
            if cut:
                yield _Chunk(data[:cut], line)
                line += data.count(b"\n", 0, cut)
        rest = b"".join(parts)
        if rest:
            rest += b"" if rest.endswith(b"\n") else b"\n"
            if self._last_end(rest) < len(rest):
                raise self._unclosed(rest, line)
            yield _Chunk(rest, line)

    def _last_end(self, data: bytes) -> int:
        if b'"' not in data:
            return data.rfind(b"\n") + 1
        ends = self._ends(data)
        return int(ends[-1]) + 1 if len(ends) else 0

    def _ends(self, data: bytes) -> np.ndarray:
        """Where rows end: line ends outside of quotes."""
        entries = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(entries == _NEWLINE)
        if b'"' not in data:
            return ends
        opens, closes = self._quoted(data, entries)
        inside = np.searchsorted(opens, ends) > np.searchsorted(closes, ends)
        return ends[~inside]

    def _quoted(self, data: bytes, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where quoted text begins and ends. A quote counts at the start of a cell only."""
        quotes = np.flatnonzero(entries == _QUOTE)
        opens, closes = quotes[0::2], quotes[1::2]
        before = entries[opens - 1]
        starts_cell = (before == ord(self._delimiter)) | (before == _NEWLINE) | (before == 13) | (opens == 0)
        starts_cell[1:] |= opens[1:] == closes[: len(opens) - 1] + 1  # two in a row are one within a text
        if starts_cell.all():
            return opens, closes
        mark = re.escape(self._delimiter.encode())
        cell = re.compile(rb'"(?:(?<=[\n\r' + mark + rb']")|(?<=\A"))((?:[^"]|"")*+)("?)')
        found = [(match.start(), match.start(2), match[2]) for match in cell.finditer(data)]
        return np.array([at for at, _, _ in found]), np.array([end for _, end, closed in found if closed])

    def _unclosed(self, data: bytes, line: int) -> InputError:
        opens, _ = self._quoted(data, np.frombuffer(data, np.uint8))
        line += data.count(b"\n", 0, int(opens[-1]))
        return InputError(
            f"line {line} of {shown(self.path)} opens a quote that is never closed.",
            hint='close it, or write a quote within a text as "".',
            file=self.path,
            line=line,
        )

    def _header(self) -> tuple[list[str], int]:
        """The names of the columns, and how many bytes come before the first row."""
        wanted = self._how.header or 1
        for chunk in self._chunks():
            lines, start = chunk.line, 0
            for end in self._ends(chunk.data).tolist():
                record = chunk.data[start : end + 1]
                if lines >= wanted and record.strip(b"\r\n"):
                    text = self._text(record, lines).strip("\r\n")
                    names = next(csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter))
                    return names, end + 1
                lines, start = lines + record.count(b"\n"), end + 1
            break
        if self._how.header is not None:
            raise UsageError(
                f"{shown(self.path)} has no line {wanted} with names of columns.",
                hint="count lines from 1, empty ones too.",
            )
        raise InputError(
            f"{shown(self.path)} is empty.",
            hint="a line of column names comes first, then a row per instance.",
        )

    def _rows(self) -> Iterator[_Chunk]:
        """The chunks below the header."""
        skipped = self._skipped
        for chunk in self._chunks():
            if skipped:
                line = chunk.line + chunk.data.count(b"\n", 0, skipped)
                chunk, skipped = _Chunk(chunk.data[skipped:], line), 0
            if chunk.data:
                yield chunk

    def _starts(self, data: bytes) -> np.ndarray:
        """Where rows begin; empty lines are among them where they are rows."""
        ends = self._ends(data)
        starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.intp)
        if self._how.blank_rows:
            return starts
        entries = np.frombuffer(data, np.uint8)
        length = ends - starts
        empty = (length == 0) | ((length == 1) & (entries[starts] == 13))
        return starts[~empty]

    # --- chunks to columns ----------------------------------------------------------------------------------

    def _parsed(self, chunk: _Chunk, convert: pa_csv.ConvertOptions) -> pa.RecordBatch:
        data = chunk.data
        single = len(self.names) == 1
        if self._how.blank_rows and not single:
            data = self._filled(data)
        if data.startswith(codecs.BOM_UTF8):  # Arrow takes one away, which here is the first letter of a cell
            data = codecs.BOM_UTF8 + data
        read = pa_csv.ReadOptions(column_names=self.names, block_size=len(data) + 1, use_threads=False)
        parse = pa_csv.ParseOptions(
            delimiter=self._delimiter,
            newlines_in_values=True,
            ignore_empty_lines=not (self._how.blank_rows and single),
        )
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(data), read_options=read, parse_options=parse, convert_options=convert
            )
        except pa.ArrowInvalid as error:
            raise self._explained(chunk, error) from error
        columns = [column.combine_chunks() for column in table.columns]
        if "" in self._how.missing:
            columns = [without_blanks(column) for column in columns]
        return pa.record_batch(columns, names=table.schema.names)

    def _filled(self, data: bytes) -> bytes:
        """Empty lines as rows of empty cells."""
        if not (data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or b"\n\r\n" in data):
            return data
        cells = self._delimiter.encode() * (len(self.names) - 1)
        records = (data[start:end] for start, end in _pairs(self._ends(data)))
        return b"".join(cells + each if each in (b"\n", b"\r\n") else each for each in records)

    def _explained(self, chunk: _Chunk, error: Exception) -> Exception:
        """What Arrow did not like, with the line."""
        text = self._text(chunk.data, chunk.line)
        lines = chunk.line
        for start, end in _pairs(self._ends(chunk.data)):
            record = chunk.data[start:end].decode()
            with_cells = record.strip("\r\n")
            row = next(csv.reader(io.StringIO(with_cells, newline=""), delimiter=self._delimiter), [])
            if row and len(row) != len(self.names):
                cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
                return InputError(
                    f"line {lines} of {shown(self.path)} has {cells}, the header has {len(self.names)}.",
                    hint=Hint("give {delimiter=}, or check that every row has as many cells as the header."),
                    file=self.path,
                    line=lines,
                )
            lines += record.count("\n")
        del text
        return error

    def _text(self, data: bytes, line: int) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line += data.count(b"\n", 0, error.start)
            raise InputError(
                f"line {line} of {shown(self.path)} is not text in UTF-8.",
                hint=Hint("name its encoding, as in {encoding=windows-1252}."),
                file=self.path,
                line=line,
            ) from error


def _pairs(ends: np.ndarray) -> Iterator[tuple[int, int]]:
    start = 0
    for end in ends.tolist():
        yield start, end + 1
        start = end + 1


def _given_at_once(path: str) -> pa.Buffer | None:
    """What can be read only once, and is read twice: standard input and pipes."""
    if path == STDIO:
        return pa.py_buffer(read_stdin())
    if not is_special(path):
        return None
    whole = Path(path).read_bytes()
    packed = COMPRESSED.get(Path(path).suffix.lower())
    if packed is not None:
        with pa.CompressedInputStream(pa.BufferReader(whole), packed) as stream:
            whole = stream.read()
    return pa.py_buffer(whole)


def unreadable(path: str, error: Exception) -> Exception:
    """What is wrong with a file, in our words."""
    said = " ".join(str(error).split())[:300].rstrip(".")
    if isinstance(error, UnicodeError):
        return InputError(
            f"{shown(path)} is not text in {getattr(error, 'encoding', 'this encoding')}.",
            hint=Hint("leave out {encoding=}, or name another one."),
        )
    return InputError(
        f"{shown(path)} cannot be read: {said}.", hint="it may be incomplete; copy or compress it again."
    )


# --- writing ------------------------------------------------------------------------------------------------

# A spreadsheet takes a cell that begins like this for a formula, unless it is a number.
# Blanks of any kind and letters of full width do not keep it from that. Apostrophes before it are doubled,
# so that "@ann" and "'@ann" are written as two.
_FORMULA = r"^'*[\s\p{Z}\p{C}]*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^'*[\t\r\n]"
_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


class CsvWriter:
    """Writes text without quotes where it needs none, so that shell tools can read it.

    With `excel`, in the form that Excel opens right where decimals have commas: with a byte order mark,
    semicolons and decimal commas.
    """

    def __init__(self, path: str, file: IO[bytes], schema: pa.Schema, *, excel: bool = False) -> None:
        self._stream: Any = pa.CompressedOutputStream(file, "gzip") if path.endswith(".gz") else file
        self._delimiter = ";" if excel else DELIMITERS.get(suffix_of(path), ",")
        self._excel = excel
        line = io.StringIO()
        names = harmless(pa.array(schema.names, pa.string())).to_pylist()
        csv.writer(line, delimiter=self._delimiter, lineterminator="\n").writerow(names)
        self._stream.write((codecs.BOM_UTF8 if excel else b"") + line.getvalue().encode())

    def write_batch(self, batch: pa.RecordBatch) -> None:
        columns = [self._cells(values) for values in batch.columns]
        special = f'["\\r\\n{self._delimiter}]'
        quote = any(
            pc.any(pc.match_substring_regex(values, special)).as_py()
            for values in columns
            if pa.types.is_string(values.type)
        )
        options = pa_csv.WriteOptions(
            include_header=False, delimiter=self._delimiter, quoting_style="needed" if quote else "none"
        )
        pa_csv.write_csv(pa.record_batch(columns, names=batch.schema.names), self._stream, options)

    def _cells(self, values: pa.Array) -> pa.Array:
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_large_string(values.type):
            values = values.cast(pa.string())
        if pa.types.is_string(values.type):
            return harmless(values)
        if pa.types.is_floating(values.type):
            values = pc.round(values, 6)
            if self._excel:
                return pc.replace_substring(values.cast(pa.string()), ".", ",")
        return values

    def close(self) -> None:
        if isinstance(self._stream, pa.CompressedOutputStream):
            self._stream.close()


def harmless(values: pa.Array) -> pa.Array:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    match, join = pc.match_substring_regex, pc.binary_join_element_wise
    dangerous = pc.and_(match(values, _FORMULA), pc.invert(match(values, _NUMBER)))
    return pc.if_else(dangerous, join(pa.scalar("'", values.type), values, ""), values)
