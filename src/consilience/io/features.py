"""The cells of a table of features, whatever they are stored in: numbers, days, or texts with codes."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import narwhals as nw
import numpy as np

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import is_missing, object_array
from consilience.io.cells import is_cell_mark
from consilience.io.frames import code_column
from consilience.io.labels import number_in


@dataclass
class RawColumn:
    """A column before it is read: numbers, days, or texts by code, -1 where a cell is missing."""

    name: str
    numbers: np.ndarray | None = None
    days: np.ndarray | None = None
    codes: np.ndarray | None = None
    texts: tuple[str, ...] = ()  # distinct, stripped
    marked: np.ndarray | None = None  # cells that say that there is nothing, rather than to be blank
    given: tuple[str, ...] | None = None  # levels in their order
    categorical: bool = False  # whether its owner says that it holds categories
    flags: bool = False  # whether it holds True and False

    def __len__(self) -> int:
        return len(next(x for x in (self.numbers, self.days, self.codes) if x is not None))

    def missing(self) -> np.ndarray:
        """Cells without a value."""
        if self.codes is not None:
            return self.codes < 0
        values = self.days if self.numbers is None else self.numbers
        assert values is not None
        return np.isnan(values)

    def blank(self) -> np.ndarray:
        """Cells without a value and without a mark."""
        return self.missing() if self.marked is None else self.missing() & ~self.marked

    def as_texts(self) -> RawColumn:
        """The same as levels; whole numbers without a decimal point."""
        if self.codes is not None:
            return self
        values = self.days if self.numbers is None else self.numbers
        assert values is not None
        seen = ~np.isnan(values)
        distinct, codes = np.unique(values[seen], return_inverse=True)
        texts = [number_text(value) for value in distinct.tolist()]
        if self.days is not None:
            texts = [day_text(value) for value in distinct.tolist()]
        full = np.full(len(values), -1)
        full[seen] = codes
        return RawColumn(self.name, codes=full, texts=tuple(texts))


def number_text(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)


def day_text(value: float) -> str:
    moment = np.datetime64(round(value * 86_400_000_000), "us")
    return str(moment.astype("datetime64[D]") if value == np.floor(value) else moment.astype("datetime64[s]"))


def raw_columns(table: Any, name: str) -> list[RawColumn]:
    if isinstance(table, np.ndarray | list | tuple):
        return _raw_array(table, name)
    try:
        frame = nw.from_native(table, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        raise InputError(
            f"view {name!r} has two columns of one name ({' '.join(str(error).split())}).",
            hint="give every column its own name.",
        ) from error
    except TypeError as error:
        raise InputTypeError(
            f"view {name!r} is no table: it is of type {type(table).__name__}.",
            hint="give an array or a pandas, polars or Arrow frame; call .collect() on a lazy one.",
        ) from error
    # Not by name: pandas also has columns named by numbers and tuples.
    names = [str(column) for column in frame.columns]
    if len(set(names)) < len(names):
        twice = next(each for each in names if names.count(each) > 1)
        raise InputError(f"view {name!r} has two columns named {twice!r}.", hint="rename one of them.")
    return [raw_series(series, own, name) for own, series in zip(names, frame.iter_columns(), strict=True)]


def _raw_array(table: Any, name: str) -> list[RawColumn]:
    if isinstance(table, np.ma.MaskedArray):
        cells = np.ma.getdata(table).astype(object)
        cells[np.ma.getmaskarray(table)] = None
    elif isinstance(table, np.ndarray):
        cells = table
    else:
        cells = np.array([object_array(list(row)) for row in table])
    if cells.ndim != 2:
        raise InputError(
            f"Expected 2D array for view {name!r}, got {cells.ndim}D array instead.",
            hint="give a table with instances in rows and features in columns.",
        )
    kind = cells.dtype.kind
    if kind in "iuf":
        numbers = cells.astype(float)
        return [RawColumn(str(j), numbers=numbers[:, j]) for j in range(numbers.shape[1])]
    if kind == "M":
        days = _days_of(cells)
        return [RawColumn(str(j), days=days[:, j]) for j in range(days.shape[1])]
    if kind == "m":
        spans = np.where(np.isnat(cells), np.nan, cells / np.timedelta64(1, "D"))
        return [RawColumn(str(j), numbers=spans[:, j]) for j in range(spans.shape[1])]
    if kind == "S":
        cells = np.char.decode(cells, "utf-8", "replace")
    if kind not in "bSUO":
        raise InputTypeError(
            f"view {name!r} is an array of {cells.dtype}.", hint="give numbers, text, or a frame of columns."
        )
    return [_raw_objects(cells[:, j].tolist(), str(j), name) for j in range(cells.shape[1])]


def _days_of(moments: np.ndarray) -> np.ndarray:
    there = ~np.isnat(moments)
    exact = np.where(there, moments, np.datetime64(0, "D")).astype("datetime64[us]").astype(np.int64)
    return np.where(there, exact / 86_400_000_000, np.nan)


def raw_series(series: nw.Series[Any], own: str, name: str) -> RawColumn:
    """One column of a frame."""
    kind = series.dtype
    if kind.is_numeric():
        return RawColumn(own, numbers=_floats(series.cast(nw.Float64)))
    if kind == nw.Boolean:
        missing = series.is_null().to_numpy()
        codes = np.where(missing, -1, series.fill_null(False).to_numpy().astype(np.int64))
        return RawColumn(own, codes=codes, texts=("False", "True"), flags=True)
    if kind in (nw.Date, nw.Datetime):
        if kind == nw.Datetime and kind.time_zone is not None:  # type: ignore[attr-defined]
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        moments = series.cast(nw.Datetime("us"))
        stamps = _floats(moments.dt.timestamp("us").cast(nw.Float64))
        return RawColumn(own, days=stamps / 86_400_000_000)
    if kind in (nw.String, nw.Categorical, nw.Enum):
        coded = code_column(series, own)
        found = _raw_coded(own, np.asarray(coded.codes), coded.values.tolist(), name)
        order = _given_order(series)
        if order is not None:
            return replace(found, given=tuple(order), categorical=True)
        return replace(found, categorical=kind != nw.String)
    if kind in (nw.List, nw.Struct, nw.Array):
        p = int(np.argmin(series.is_null().to_numpy()))
        _no_cell(own, name, f"row {p} holds a {type(series[p]).__name__}")
    return _raw_objects(series.to_list(), own, name)


def _floats(series: nw.Series[Any]) -> np.ndarray:
    return np.asarray(series.to_numpy(), dtype=float)


def _given_order(series: nw.Series[Any]) -> list[str] | None:
    """The levels of an ordered categorical, as pandas, polars (Enum) and Arrow have them."""
    native: Any = series.to_native()
    if nw.dependencies.is_pandas_series(native):
        if not getattr(native.dtype, "ordered", False):
            return None
        levels = list(native.dtype.categories)
    elif nw.dependencies.is_polars_series(native):
        fixed: Any = native.dtype
        if series.dtype != nw.Enum:
            return None
        levels = fixed.categories.to_list()
    elif getattr(native.type, "ordered", False):
        levels = native.combine_chunks().dictionary.to_pylist()
    else:
        return None
    return [cell_text(level).strip() for level in levels]


def _raw_objects(entries: list[Any], own: str, name: str) -> RawColumn:
    # With their types: True and 1 are one key otherwise.
    keys = list(zip(map(type, entries), entries, strict=True))
    try:
        place = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    except TypeError:
        row, value = next((p, v) for p, v in enumerate(entries) if getattr(v, "__hash__", None) is None)
        _no_cell(own, name, f"row {row} holds a {type(value).__name__}")
    values = [value for _, value in place]
    codes = np.fromiter(map(place.__getitem__, keys), dtype=np.int64, count=len(keys))
    known = [value for value in values if not (is_missing(value) or value == "")]
    if known and all(isinstance(value, bool | np.bool_) for value in known):
        truth = np.array([-1 if is_missing(v) or v == "" else int(v) for v in values])
        return RawColumn(own, codes=truth[codes], texts=("False", "True"), flags=True)
    if known and all(_is_number(value) for value in known):
        numbers = np.array([float(value) if _is_number(value) else np.nan for value in values])
        return RawColumn(own, numbers=numbers[codes])
    if known and all(isinstance(value, datetime.timedelta | np.timedelta64) for value in known):
        day = np.timedelta64(1, "D")
        spans = [np.nan if is_missing(v) or v == "" else float(np.timedelta64(v) / day) for v in values]
        return RawColumn(own, numbers=np.array(spans)[codes])
    strange = next((value for value in known if not isinstance(value, _CELLS)), None)
    if strange is not None:
        row = int(np.argmax(codes == values.index(strange)))
        _no_cell(own, name, f"row {row} holds a {type(strange).__name__}")
    return _raw_coded(own, codes, values, name)


_CELLS = (str, bytes, bool, int, float, Decimal, Fraction, np.generic, datetime.date, datetime.time)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal | Fraction | np.integer | np.floating) and not isinstance(
        value, bool
    )


def _no_cell(column: str, name: str, problem: str) -> NoReturn:
    raise InputTypeError(
        f"view {name!r}, column {column!r}: {problem}, which is no value of one cell.",
        hint="give every part a column of its own, or leave the column out.",
    )


def _raw_coded(own: str, codes: np.ndarray, values: Sequence[Any], name: str) -> RawColumn:
    """Texts without blanks around them; those that say missing have no code."""
    texts = [None if is_missing(value) else cell_text(value).strip() for value in values]
    place: dict[str, int] = {}
    new = np.full(len(texts) + 1, -1)
    mark = np.zeros(len(texts) + 1, dtype=bool)
    signs = {text for text in texts if text}
    only_signs = signs == {"+", "-"}  # the result of a test
    for i, text in enumerate(texts):
        if not text:
            continue
        if is_cell_mark(text) and not only_signs:
            mark[i] = True
            continue
        new[i] = place.setdefault(text, len(place))
    return RawColumn(own, codes=new[codes], texts=tuple(place), marked=mark[codes] if mark.any() else None)


def cell_text(value: Any) -> str:
    """A cell as it would be in a CSV file."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return number_text(float(value))
    return str(value)


def level_text(text: str) -> str:
    """What a level is called, however its column is stored.

    3.0 is 3, since whole numbers with gaps are stored as floats; TRUE is what a table of booleans calls True.

    >>> [level_text(text) for text in ("3.0", "007", "TRUE", "yes")]
    ['3', '007', 'True', 'yes']
    """
    if text.lower() in ("true", "false"):
        return text.capitalize()
    number = number_in(text)
    return text if number is None else str(number)
