"""Sheets of Excel files as tables of Arrow."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from consilience._support.errors import InputError, UsageError
from consilience._support.optional import optional_import
from consilience._support.values import did_you_mean

SUFFIXES = (".xlsx", ".xlsm")


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


def as_table(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    wanted: Sequence[str],
    as_text: Sequence[str] | None,
    missing: Sequence[str],
) -> pa.Table:
    """Some columns of a sheet: those in `as_text` (None: all) as text, others as numbers if all are."""
    place = {name: j for j, name in enumerate(names)}
    columns = {}
    for name in wanted:
        values = [row[place[name]] if place[name] < len(row) else None for row in rows]
        values = [None if value in ("", None) or value in missing else value for value in values]
        numbers = all(value is None or isinstance(value, int | float) for value in values)
        if numbers and as_text is not None and name not in as_text:
            columns[name] = _numbers(values)
        else:
            columns[name] = pa.array([None if v is None else _text(v) for v in values], pa.string())
    return pa.table(columns)


def read_cells(path: str) -> tuple[list[str], list[list[Any]]]:
    """Names of the columns of a sheet, and its rows."""
    calamine = optional_import("python_calamine", needed_for="reading Excel files", extra="excel")
    file, sheet = split_sheet(path)
    try:
        with open(file, "rb") as opened:
            book = calamine.CalamineWorkbook.from_filelike(opened)
            names = book.sheet_names
            if sheet is None and len(names) > 1:
                raise UsageError(
                    f"{file} has {len(names)} sheets: {', '.join(names)}.",
                    hint=f"name one, as in '{file}#{names[0]}'.",
                )
            if sheet is not None and sheet not in names:
                raise UsageError(f"{file} has no sheet {sheet!r}.", did_you_mean(sheet, names))
            rows = book.get_sheet_by_name(names[0] if sheet is None else sheet).to_python(
                skip_empty_area=True
            )
    except (calamine.CalamineError, calamine.PasswordError) as error:
        raise InputError(
            f"{file} cannot be read: {str(error).rstrip('.')}.",
            hint="is it whole, and an .xlsx file without a password? Save it again.",
        ) from error
    rows = [row for row in rows if any(value not in ("", None) for value in row)]
    if not rows:
        raise InputError(f"{path} is empty.", hint="a line of column names comes first.")
    head, *rows = rows
    while head and head[-1] in ("", None):
        head.pop()
    if not all(name not in ("", None) for name in head):
        at = next(j for j, name in enumerate(head) if name in ("", None))
        raise InputError(f"column {at + 1} of {path} has no name.", hint="give every column a name.")
    return [_text(name) for name in head], rows


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
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return str(value)


def exists(path: str) -> bool:
    """Whether the file that a path names is there."""
    return Path(split_sheet(path)[0]).exists()
