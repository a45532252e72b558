"""Sheets of Excel files as tables of Arrow, and tables as sheets."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple

import pyarrow as pa

from consilience._support.errors import InputError, UsageError
from consilience._support.optional import optional_import
from consilience._support.values import counted, did_you_mean
from consilience.io.marks import marks_of_cells, null_texts
from consilience.io.tables import Batches, How, Kind, in_words, refuse_pipe, refuse_same_names

SUFFIXES = (".xlsx", ".xlsm")
_MOST_ROWS = 1 << 20  # of a sheet, with its header
_LOOKED_AT = 1000  # rows from which the width of the table is seen
_BLOCK = 1 << 20  # characters of a sheet's text that are looked at at once
_EMPTY = ("", None)


def split_sheet(path: str) -> tuple[str, str | None]:
    """The file and the sheet that ``FILE.xlsx#sheet`` names; other paths as they are.

    >>> split_sheet("a.xlsx#March"), split_sheet("a.xlsx"), split_sheet("a#b.csv")
    (('a.xlsx', 'March'), ('a.xlsx', None), ('a#b.csv', None))
    """
    for suffix in SUFFIXES:
        at = path.lower().rfind(f"{suffix}#")
        if at >= 0:
            return path[: at + len(suffix)], path[at + len(suffix) + 1 :]
    return path, None


class _Sheet(NamedTuple):
    name: str
    rows: list[list[Any]]  # from the first that holds something
    first: int  # the number of the first of them, counted from 1
    left: int  # columns before the first that holds something
    merged: list[tuple[tuple[int, int], tuple[int, int]]]  # corners, as places in `rows`
    errors: str  # a sentence about cells that hold errors


class ExcelTable:
    """A sheet; the names of the columns are in the first row that has as many cells as the table is wide."""

    text = True

    def __init__(self, path: str, how: How) -> None:
        self.path, self._how = path, how
        refuse_pipe(split_sheet(path)[0])
        sheet = _read_sheet(path)
        self._sheet = sheet
        rows = sheet.rows
        if how.header is None:
            start = _find_header(rows, sheet.merged)
            above = sum(any(cell not in _EMPTY for cell in row) for row in rows[:start])
            if above:
                how.say(f"{path}: {counted(above, 'row')} above the header skipped")
        else:
            start = how.header - sheet.first
            if not 0 <= start < len(rows):
                raise UsageError(f"{path} has no row {how.header}.", hint="count rows as Excel shows them.")
        self.names, height = _names(path, rows, start, sheet)
        refuse_same_names(path, self.names)
        below = enumerate(rows[start + height :], start + height)
        self._rows = [
            (number, row)
            for number, row in below
            if how.blank_rows or any(value not in _EMPTY for value in row)
        ]
        if sheet.errors:
            how.say(f"{path}: {sheet.errors}")

    def batches(self, wanted: Sequence[str], kinds: Mapping[str, Kind]) -> Batches:
        """Some columns as one batch."""
        place = {name: j for j, name in enumerate(self.names)}
        columns = [self._column(place[name], kinds.get(name)) for name in wanted]
        yield pa.record_batch(columns, names=list(wanted))

    def _column(self, j: int, kind: Kind | None) -> pa.Array:
        missing = self._how.missing
        nulls = set(null_texts(marks_of_cells(missing) if kind == "cells" else missing))
        blank = "" in nulls
        values = []
        for _, row in self._rows:
            value = row[j] if j < len(row) else None
            if isinstance(value, str) and (value in nulls or (blank and not value.strip())):
                value = None
            values.append(None if value == "" else value)
        if kind is None and all(_is_number(value) for value in values if value is not None):
            return _numbers(values)
        texts = pa.array([None if value is None else _text(value) for value in values], pa.string())
        return texts.dictionary_encode() if kind == "coded" else texts

    def places(self, rows: Sequence[int]) -> str:
        """Rows as Excel shows them."""
        numbers = [self._rows[row][0] + self._sheet.first for row in rows]
        return in_words("row", numbers, f"sheet {self._sheet.name} of {split_sheet(self.path)[0]}")


def _read_sheet(path: str) -> _Sheet:
    calamine = optional_import("python_calamine", needed_for="reading Excel files", extra="excel")
    file, wanted = split_sheet(path)
    try:
        with open(file, "rb") as opened:
            book = calamine.CalamineWorkbook.from_filelike(opened)
            names = book.sheet_names
            if wanted is None and len(names) > 1:
                raise UsageError(
                    f"{file} has {len(names)} sheets: {', '.join(names)}.",
                    hint=f"name one, as in '{file}#{names[0]}'.",
                )
            if wanted is not None and wanted not in names:
                raise UsageError(f"{file} has no sheet {wanted!r}.", did_you_mean(wanted, names))
            name = names[0] if wanted is None else wanted
            sheet = book.get_sheet_by_name(name)
            rows = sheet.to_python(skip_empty_area=True)
            top, left = sheet.start or (0, 0)
            merged = [
                ((a - top, b - left), (c - top, d - left))
                for (a, b), (c, d) in sheet.merged_cell_ranges or ()
            ]
            errors = _errors(opened, names.index(name))
    except (calamine.CalamineError, calamine.PasswordError) as error:
        raise InputError(
            f"{file} cannot be read: {str(error).rstrip('.')}.",
            hint="check that it is complete and an .xlsx file without a password, or save it again.",
        ) from error
    while rows and not any(value not in _EMPTY for value in rows[-1]):
        rows.pop()
    if not rows:
        raise InputError(f"{path} is empty.", hint="a line of column names comes first.")
    return _Sheet(name, rows, top + 1, left, merged, errors)


def _errors(file: IO[bytes], number: int) -> str:
    """A sentence about the cells of a sheet that hold errors, which the reader gives as empty cells."""
    found: list[tuple[str, str]] = []
    n = 0
    with zipfile.ZipFile(file) as packed:
        names = set(packed.namelist())
        if not {"xl/workbook.xml", "xl/_rels/workbook.xml.rels"} <= names:
            return ""
        book = packed.read("xl/workbook.xml").decode(errors="replace")
        links = packed.read("xl/_rels/workbook.xml.rels").decode(errors="replace")
        sheets = re.findall(r"<(?:\w+:)?sheet\s[^>]*?\w+:id=\"([^\"]+)\"", book)
        targets = {}
        for link in re.findall(r"<(?:\w+:)?Relationship\s[^>]*>", links):
            parts = dict(re.findall(r"(\w+)=\"([^\"]*)\"", link))
            targets[parts.get("Id")] = parts.get("Target", "")
        target = targets.get(sheets[number], "") if number < len(sheets) else ""
        member = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        if member not in names:
            return ""
        cell = re.compile(
            r"<(?:\w+:)?c\s(?=[^>]*\bt=\"e\")[^>]*\br=\"(\w+)\"[^>]*>.{0,2000}?v>([^<]*)<", re.S
        )
        with io.TextIOWrapper(packed.open(member), errors="replace") as text:
            tail = ""
            while block := text.read(_BLOCK):
                block = tail + block
                done = 0
                for match in cell.finditer(block):
                    n, done = n + 1, match.end()
                    found = found or [(match[1], match[2])]
                tail = block[max(done, len(block) - 4096) :]
    if not n:
        return ""
    where, what = found[0]
    holds = "1 cell holds an error" if n == 1 else f"{n} cells hold errors"
    return f"{holds} and counts as missing ({what} in {where})".replace(
        "errors and counts", "errors and count"
    )


def _find_header(rows: list[list[Any]], merged: Sequence[Any]) -> int:
    """The first row with a name for every column; titles above it have fewer cells."""
    looked = rows[:_LOOKED_AT]
    width = max(map(_extent, looked))
    for number, row in enumerate(looked):
        if all(cell not in _EMPTY for cell in _spread(row, number, width, merged)):
            return number
    return next(number for number, row in enumerate(rows) if _extent(row))


def _extent(row: Sequence[Any]) -> int:
    """Number of cells up to the last that holds something."""
    return max((j + 1 for j, cell in enumerate(row) if cell not in _EMPTY), default=0)


def _spread(row: Sequence[Any], number: int, width: int, merged: Sequence[Any]) -> list[Any]:
    """A row in which merged cells hold what the first of them does, but for a title over all columns."""
    cells = [*row[:width], *[""] * (width - len(row))]
    for (top, left), (_, right) in merged:
        if top == number and not (left == 0 and right >= width - 1):
            for j in range(left, min(right + 1, width)):
                cells[j] = row[left] if left < len(row) else ""
    return cells


def _names(path: str, rows: list[list[Any]], start: int, sheet: _Sheet) -> tuple[list[str], int]:
    """Names of the columns, and how many rows they take: two where cells of the first are merged."""
    width = max(map(_extent, rows[start : start + _LOOKED_AT]))
    head = _spread(rows[start], start, width, sheet.merged)
    over = [(a, b) for a, b in sheet.merged if a[0] == start and b[1] > a[1] and head[a[1]] not in _EMPTY]
    height = 1
    names = [_text(cell) if cell not in _EMPTY else "" for cell in head]
    if over and start + 1 < len(rows):
        height = 2
        below = _spread(rows[start + 1], start + 1, width, sheet.merged)
        for j, cell in enumerate(below):
            if cell not in _EMPTY and _text(cell) != names[j]:
                names[j] = f"{names[j]} {_text(cell)}".strip()
    if "" in names:
        # A column is counted as Excel does, from the left edge of the sheet.
        raise InputError(
            f"column {sheet.left + names.index('') + 1} of {path} has no name.",
            hint="give every column a name.",
        )
    return names, height


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(values: list[Any]) -> pa.Array:
    whole = all(value is None or (isinstance(value, int) or value.is_integer()) for value in values)
    exact = whole and all(value is None or abs(value) < 2**53 for value in values)
    if exact:
        return pa.array([None if value is None else int(value) for value in values], pa.int64())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def _text(value: Any) -> str:
    """A cell as it would be in a CSV file; Excel holds whole numbers as floats."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


class ExcelWriter:
    """A sheet, row by row. Text is written as text, so that nothing in it is run."""

    def __init__(self, path: str, file: IO[bytes], schema: pa.Schema) -> None:
        xlsxwriter = optional_import("xlsxwriter", needed_for="writing Excel files", extra="excel")
        self._path = path
        self._book = xlsxwriter.Workbook(file, {"constant_memory": True, "in_memory": False})
        self._sheet = self._book.add_worksheet("result")
        self._row = 0
        self._write(schema.names)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        if self._row + batch.num_rows > _MOST_ROWS:
            raise UsageError(
                f"a sheet has room for {_MOST_ROWS - 1} rows below its header, too few for {self._path}.",
                hint="write .csv or .parquet.",
            )
        columns = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            self._write(row)

    def _write(self, row: Sequence[Any]) -> None:
        for j, value in enumerate(row):
            if value is None or value != value:
                continue
            if isinstance(value, bool):
                self._sheet.write_boolean(self._row, j, value)
            elif isinstance(value, int) and abs(value) >= 10**15:  # Excel keeps 15 digits of a number
                self._sheet.write_string(self._row, j, str(value))
            elif isinstance(value, int | float):
                self._sheet.write_number(self._row, j, value)
            else:
                self._sheet.write_string(self._row, j, _text(value))
        self._row += 1

    def close(self) -> None:
        self._book.close()
