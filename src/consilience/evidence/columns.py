"""What each column of a table of features is, and its values as numbers.

People's tables have numbers as they write them, yes and no, categories, dates, ids and remarks, with empty
cells anywhere. A column is read by its values; its name only tells ids and postal codes. Whatever was guessed
is said in words, and can be overruled. Only distinct values are ever looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from consilience._support.errors import Hint, InputError, InputTypeError
from consilience._support.values import counted
from consilience._support.warnings import warn
from consilience.evidence.kinds import ColumnKind, SaidKind, overruling, said_of, split_kinds
from consilience.io.cells import Dates, Numbers, dates_in, days_in_numbers, hours_in, numbers_in
from consilience.io.features import RawColumn, day_text, level_text, number_text, raw_columns, raw_series
from consilience.io.labels import look_alike

__all__ = ["Column", "ColumnKind", "Columns", "Remark", "read_again", "read_columns", "split_kinds"]

_SHARE = 0.95  # of the values have to be numbers, or dates, for the others to be missing
_ID_SHARE = 0.5  # of the values are distinct: text of this kind names rows
_FEW_ROWS = 10  # in so few rows, values that are all different say nothing about ids
_RUNNING = 20  # whole numbers without gaps are row numbers if there are more than this
_WORDS = 4  # of values on average: free text
_MOST_LEVELS = 256  # of a category
_FEW_NUMBERS = 12  # different whole numbers, or fewer, may be codes
_ID_NAME = re.compile(r"(^|[_. -])(id|uuid|guid|key|index|rownames?)([_. -]|$)", re.IGNORECASE)
_ID_NAME_CASED = re.compile(r"[a-z]ID$")  # customerID, and not acid
_POSTAL_NAME = re.compile(
    r"(^|[_. -])(zip([_. -]?codes?)?|plz|post(al)?([_. -]?codes?)?)([_. -]|$)", re.IGNORECASE
)
# What is put into a cell for yes where the others stay blank.
_TICKS = frozenset({"x", "✓", "✔", "☑", "*", "+", "1", "y", "yes", "true", "t", "ja", "j", "oui", "si", "sí"})
_SHOWN = 3  # names in a sentence
_LEFT_OUT_SHOWN = 8


@dataclass(frozen=True)
class Column:
    """How one column was read.

    Attributes
    ----------
    name : str
        Its name, or its position in an array.
    kind : str
        "number", "yes/no", "ordered", "category", "date", or "left out".
    levels : tuple of str or None
        The answers of yes/no, ordered and category columns, in order; their codes are 0, 1, ...
    why : str
        Why it was left out, or what about its reading can be doubted.
    n_missing : int
        Cells without a value, among them `n_unread`.
    n_unread : int
        Cells that hold something that is not of this kind, such as a word among numbers.
    form : str
        How text is meant where it can be read in two ways: the decimal mark ("point", "comma" or "either"),
        the order of dates ("day-first", "month-first"), "digits" for dates such as 20200425, "hours" for
        times of the day, "blank" where a blank cell says no.
    """

    name: str
    kind: ColumnKind
    levels: tuple[str, ...] | None = None
    why: str = ""
    n_missing: int = 0
    n_unread: int = 0
    form: str = ""

    @property
    def used(self) -> bool:
        """Whether it is not left out."""
        return self.kind != "left out"


class Remark(NamedTuple):
    """A sentence about how a table was read, and what to do if it is wrong."""

    message: str
    hint: Hint | str


@dataclass(frozen=True)
class Columns:
    """How the columns of one table were read, in their order.

    `warnings` are what a user has to know: columns left out, values read as missing, tables that are mostly
    empty. `notes` are readings that may be meant otherwise.
    """

    name: str
    columns: tuple[Column, ...]
    warnings: tuple[Remark, ...] = field(default=(), compare=False)
    notes: tuple[Remark, ...] = field(default=(), compare=False)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that have values, in the order of the values."""
        return tuple(column for column in self.columns if column.used)

    @property
    def left_out(self) -> tuple[Column, ...]:
        """The columns that say nothing."""
        return tuple(column for column in self.columns if not column.used)

    def __getstate__(self) -> dict[str, Any]:
        """What is kept in a file: hints as Python users read them."""
        plain = {
            name: tuple(Remark(one.message, str(one.hint)) for one in getattr(self, name)) for name in _TOLD
        }
        return {**vars(self), **plain}

    @property
    def line(self) -> str:
        """One sentence.

        >>> named = Column("Id", "left out", why="an id: by its name")
        >>> Columns("clinic", (Column("age", "number"), named)).line
        'clinic: 1 number (age). Left out: Id (an id).'
        """
        return f"{self.name}: {self.words}"

    @property
    def words(self) -> str:
        """The same without the name of the table."""
        kinds = []
        for kind, plural in _PLURALS.items():
            names = [column.name for column in self.used if column.kind == kind]
            if names:
                kinds.append(f"{len(names)} {kind if len(names) == 1 else plural} ({_some(names)})")
        left = [f"{column.name} ({column.why.partition(':')[0]})" for column in self.left_out]
        return f"{', '.join(kinds)}." + (f" Left out: {_some(left, _LEFT_OUT_SHOWN)}." if left else "")

    def warn(self) -> None:
        """Warn of what a user has to know."""
        for remark in self.warnings:
            warn(remark.message, hint=remark.hint)


_TOLD = ("warnings", "notes")
_PLURALS = {
    "number": "numbers",
    "yes/no": "yes/no",
    "ordered": "ordered",
    "category": "categories",
    "date": "dates",
}


def _some(names: Sequence[str], shown: int = _SHOWN) -> str:
    return ", ".join(names[:shown]) + (", ..." if len(names) > shown else "")


# --- a table ------------------------------------------------------------------------------------------------


def read_columns(
    table: Any,
    *,
    name: str,
    kinds: Mapping[str, Any] | str | None = None,
    ids: Sequence[Any] | None = None,
    rows: Sequence[int] | np.ndarray | None = None,
) -> tuple[np.ndarray, Columns]:
    """Read every column of a table by its values.

    A column is a *number*; *yes/no* (two answers); *ordered* (categories in a given order); a *category*; a
    *date*; or it is *left out*, since it is empty, constant, an id, or free text. Blank cells and those that
    say NA, NaN, null, ?, ., - or #N/A are missing.

    Parameters
    ----------
    table : pandas, polars or Arrow frame, or 2-D array
        A row per instance. Text may hold numbers and dates as people write them.
    name : str
        What the table is called in sentences.
    kinds : dict of column name to kind, or kind, optional
        Overrules what is found: a kind of all columns, or of those that are named. A kind is "number",
        "yes/no", "ordered", "category", "date" or "left out"; "number:comma" and "number:point" say the
        decimal mark, "date:day-first" and "date:month-first" the order; a list of levels, or
        "low<mid<high", is an order.
    ids : sequence, optional
        What rows are called in errors besides their number.
    rows : sequence of int, optional
        Their numbers in errors, where they are a part of a table.

    Returns
    -------
    values : (n_rows, n_used) float array
        NaN where a cell is missing. Numbers as they are, dates as days since 1970, others as the number of
        their level, from 0.
    columns : Columns
        How each column was read.

    Raises
    ------
    ValueError
        For infinite numbers, two columns of one name, cells that hold lists or other objects, values that are
        not of the kind that `kinds` says, and tables of which no column can be used.

    Examples
    --------
    >>> import pandas as pd
    >>> from consilience.evidence.columns import read_columns
    >>> clinic = pd.DataFrame(
    ...     {
    ...         "age": ["61", "58", "?", "47"],
    ...         "crp": ["3,5", "<0,3", "12,0", ""],
    ...         "smoker": ["yes", "no", "no", None],
    ...         "seen": ["25/04/2020", "03/04/2020", "11/05/2020", "02/06/2020"],
    ...         "ward": ["B", "B", "B", "B"],
    ...     }
    ... )
    >>> values, columns = read_columns(clinic, name="clinic")
    >>> print(columns.line)
    clinic: 2 numbers (age, crp), 1 yes/no (smoker), 1 date (seen). Left out: ward (constant).
    >>> values[:, :3]
    array([[61. ,  3.5,  1. ],
           [58. ,  0.3,  0. ],
           [ nan, 12. ,  0. ],
           [47. ,  nan,  nan]])
    """
    raw = raw_columns(table, name)
    said = said_of([column.name for column in raw], kinds, name)
    where = _Where(name, ids, rows)
    found = [_read_one(column, said.get(column.name), where) for column in raw]
    common = _common_form(found)
    read = [one.finished(common) if isinstance(one, _Written) else one for one in found]
    read = _ticked(raw, read)
    columns = tuple(one.column for one in read)
    used = [one.values for one in read if one.values is not None]
    n_rows = len(raw[0]) if raw else 0
    if not used:
        _nothing_to_use(name, columns)
    values = np.column_stack(used) if used else np.empty((n_rows, 0))
    warnings, notes = _remarks(name, columns, values, read)
    return values, Columns(name, columns, warnings, notes)


def read_again(
    table: Any, columns: Columns, *, name: str | None = None, ids: Sequence[Any] | None = None
) -> np.ndarray:
    """New rows of a table that was read: by the same kinds, levels and forms, columns matched by name.

    What is new is missing and said in a warning: a level that was not there, a word among numbers, a column
    that the new table lacks. Columns that were left out, or not there, are not looked at.

    Parameters
    ----------
    table : frame or 2-D array
        New rows. The columns of an array are known by position.
    columns : Columns
        From `read_columns`.
    name : str, optional
        What the table is called in sentences; by default as it was.
    ids : sequence, optional
        What rows are called in errors besides their number.

    Returns
    -------
    values : (n_rows, n_used) float array
        As `read_columns` gives them.

    Examples
    --------
    >>> import pandas as pd
    >>> from consilience.evidence.columns import read_again, read_columns
    >>> _, columns = read_columns(pd.DataFrame({"stage": ["I", "II", "II", "III"]}), name="clinic")
    >>> read_again(pd.DataFrame({"stage": ["III", "I"]}), columns)
    array([[2.],
           [0.]])
    """
    name = columns.name if name is None else name
    given = {column.name: column for column in raw_columns(table, name)}
    n_rows = len(next(iter(given.values()))) if given else 0
    where = _Where(name, ids)
    there = [column for column in columns.used if column.name in given]
    if not there:
        raise InputError(
            f"view {name!r} has none of the columns that it had when it was fitted.",
            hint=f"they are {_some([repr(column.name) for column in columns.used], 5)}.",
        )
    lacking = [column.name for column in columns.used if column.name not in given]
    if lacking:
        strange = [each for each in given if each not in {column.name for column in columns}]
        warn(
            f"view {name!r} lacks {_named(lacking)}, which it had when it was fitted.",
            hint="its cells are taken as missing"
            + (f"; the columns {_some(strange)} are new and not used." if strange else "."),
        )
    values = np.full((n_rows, len(columns.used)), np.nan)
    for j, column in enumerate(columns.used):
        if column.name in given:
            values[:, j] = _read_again(given[column.name], column, where)
    ticks = [j for j, column in enumerate(columns.used) if column.form == "blank"]
    others = [j for j in range(values.shape[1]) if j not in ticks]
    if ticks and others:
        empty = np.isnan(values[:, others]).all(axis=1)
        empty &= np.all(
            [given[columns.used[j].name].blank() for j in ticks if columns.used[j].name in given], axis=0
        )
        values[np.ix_(empty, ticks)] = np.nan
    return values


def numbers_and_dates(columns: Mapping[str, Any], *, name: str) -> dict[str, tuple[np.ndarray, Column]]:
    """Those of some columns (of narwhals) that hold numbers or dates, as text or as such; and their values.

    Columns that hold anything else, or nothing that can be read, are not among them.
    """
    where = _Where(name, None)
    found: list[_Written | _Read] = []
    for own, series in columns.items():
        try:
            found.append(_read_one(raw_series(series, own, name), None, where))
        except (InputError, InputTypeError):
            continue
    common = _common_form(found)
    read = [one.finished(common) if isinstance(one, _Written) else one for one in found]
    return {
        one.column.name: (one.values, one.column)
        for one in read
        if one.values is not None and one.column.kind in ("number", "date")
    }


# --- one column ---------------------------------------------------------------------------------------------


class _Where(NamedTuple):
    """The table, for errors."""

    name: str
    ids: Sequence[Any] | None
    rows: Sequence[int] | np.ndarray | None = None

    def row(self, p: int) -> str:
        number = p if self.rows is None else self.rows[p]
        return f"row {number}" if self.ids is None else f"row {number} (id {self.ids[p]!r})"


class _Read(NamedTuple):
    """A column that was read, and what may be doubted."""

    column: Column
    values: np.ndarray | None = None  # None if it is left out
    doubts: tuple[Remark, ...] = ()  # to be warned of
    notes: tuple[Remark, ...] = ()
    examples: tuple[str, ...] = ()  # of values that were read as missing


@dataclass
class _Written:
    """A column of numbers in text, before the decimal mark is known."""

    raw: RawColumn
    found: Numbers
    where: _Where
    said: SaidKind | None

    @property
    def form(self) -> str:
        """The decimal mark that the values themselves show; "" where they show none."""
        if self.said is not None and self.said.form:
            return self.said.form
        point = bool((~np.isnan(self.found.point) & np.isnan(self.found.comma)).any())
        comma = bool((np.isnan(self.found.point) & ~np.isnan(self.found.comma)).any())
        return "either" if point and comma else "point" if point else "comma" if comma else ""

    def closely(self) -> _Written:
        """With both decimal marks looked for."""
        if not self.found.plain:
            return self
        return replace(self, found=numbers_in(self.raw.texts, closely=True))

    def finished(self, common: str) -> _Read:
        """The column, with the decimal mark of the table where it shows none itself."""
        raw, found, name = self.raw, self.found, self.raw.name
        own = self.form
        form = own or common or "point"
        by_text = np.append(found.read(form), np.nan)
        assert raw.codes is not None
        read = _read_numbers(
            RawColumn(name, numbers=by_text[raw.codes], marked=raw.marked), self.said, self.where, texts=raw
        )
        if read.values is None:
            return read
        unread = (raw.codes >= 0) & np.isnan(by_text[raw.codes])
        column = replace(read.column, n_unread=int(unread.sum()))
        read = read._replace(column=column, examples=_examples(raw, unread))
        if found.plain or column.kind != "number":
            return read
        doubts: list[Remark] = []
        notes: list[Remark] = []
        why = [column.why] if column.why else []
        if own not in ("point", "comma") and found.ambiguous.any():
            text, remark = self._guessed(form)
            (notes if common and not own else doubts).append(remark)
            why.append(text)
        if found.limit.any():
            text, remark = self._at_limits()
            notes.append(remark)
            why.append(text)
        if found.percent.any() and (found.known & ~found.percent).any():
            doubts.append(self._percents())
        column = replace(column, form=form, why="; ".join(why))
        return read._replace(column=column, doubts=tuple(doubts), notes=tuple(notes))

    def _guessed(self, form: str) -> tuple[str, Remark]:
        text = self._example(self.found.ambiguous)
        value = number_text(float(self.found.read(form)[self.raw.texts.index(text)]))
        return f"{text} read as {value}", Remark(
            f"{self._place}: {text!r} is read as {value}; nothing in the column says which mark is the "
            "decimal one.",
            overruling(
                self.where.name,
                self.raw.name,
                "number:comma" if form == "point" else "number:point",
                "if it is meant otherwise, say {it}.",
            ),
        )

    def _at_limits(self) -> tuple[str, Remark]:
        text = self._example(self.found.limit)
        assert self.raw.codes is not None
        n = int(np.append(self.found.limit, False)[self.raw.codes].sum())
        return f"{text} read at the limit", Remark(
            f"{self._place}: {counted(n, 'limit')} such as {text!r} {'is' if n == 1 else 'are'} read as the "
            "number at the limit.",
            Hint("if these cells are rather unknown, leave them blank."),
        )

    def _percents(self) -> Remark:
        text, bare = self._example(self.found.percent), self._example(self.found.known & ~self.found.percent)
        return Remark(
            f"{self._place}: {text!r} and {bare!r} are read as numbers of one scale.",
            Hint("write all of them with %, or none."),
        )

    @property
    def _place(self) -> str:
        return f"view {self.where.name!r}, column {self.raw.name!r}"

    def _example(self, some: np.ndarray) -> str:
        return _first(np.array(self.raw.texts, dtype=object)[some])


def _first(texts: np.ndarray) -> str:
    """One of them, whatever the order of rows."""
    return str(min(texts.tolist(), key=lambda text: (len(text), text)))


def _common_form(found: Sequence[_Written | _Read]) -> str:
    """The decimal mark of a table: what its columns show, if they agree that it is the comma."""
    written = [i for i, one in enumerate(found) if isinstance(one, _Written)]
    if not any(found[i].form == "comma" for i in written):  # type: ignore[union-attr]
        return ""
    assert isinstance(found, list)
    for i in written:
        found[i] = found[i].closely()
    return "" if any(found[i].form in ("point", "either") for i in written) else "comma"


def _read_one(raw: RawColumn, said: SaidKind | None, where: _Where) -> _Read | _Written:
    n_missing = int(raw.missing().sum())
    if said is not None and said.kind == "left out":
        return _left_out(raw, "as you said")
    if n_missing == len(raw):
        return _left_out(raw, "empty")
    if said is not None and said.kind in ("category", "yes/no", "ordered"):
        return _read_levels(raw.as_texts(), said, where)
    if raw.numbers is not None:
        return _read_numbers(raw, said, where)
    if raw.days is not None:
        if said is not None and said.kind == "number":
            said = None  # days are numbers
        return _read_days(raw, raw.days, "", where)
    return _read_texts(raw, said, where)


def _left_out(raw: RawColumn, why: str) -> _Read:
    return _Read(Column(raw.name, "left out", why=why, n_missing=int(raw.missing().sum())))


def _read_texts(raw: RawColumn, said: SaidKind | None, where: _Where) -> _Read | _Written:
    assert raw.codes is not None
    if raw.given is not None and said is None:
        return _read_levels(raw, SaidKind("ordered", levels=raw.given), where)
    if raw.flags or (raw.categorical and said is None):
        return _read_levels(raw, said, where)
    sizes = np.bincount(raw.codes[raw.codes >= 0], minlength=len(raw.texts))
    wanted = None if said is None else said.kind
    found = numbers_in(raw.texts)
    if wanted != "number" and not found.plain:
        dates = dates_in(raw.texts)
        if wanted == "date" or _mostly(dates.known, sizes):
            return _read_dates(raw, dates, said, where)
    if wanted == "date":  # plain numbers, as 20200425
        days = days_in_numbers(found.point)
        return _read_dates(raw, Dates(days, days), said, where, form="digits")
    numbers = found.known
    if wanted == "number":
        if not numbers.all():
            hours = hours_in(raw.texts)
            if not np.isnan(hours).any():
                return _read_hours(raw, hours, said, where)
            _not_of_kind(raw, ~numbers, "number", where)
        return _Written(raw, found, where, said)
    # Limits alone are categories, such as <5 and >=5.
    if _mostly(numbers, sizes) and not found.codes and 2 * found.limit.sum() <= numbers.sum():
        return _Written(raw, found, where, said)
    if not numbers.any():
        hours = hours_in(raw.texts)
        if _mostly(~np.isnan(hours), sizes):
            return _read_hours(raw, hours, said, where)
    return _read_levels(raw, None, where)


def _mostly(known: np.ndarray, sizes: np.ndarray) -> bool:
    """Whether nearly all values are of a kind, by the different ones or by cells."""
    if known.mean() >= _SHARE:
        return True
    return known.sum() >= 3 and sizes[known].sum() >= _SHARE * sizes.sum()


def _read_numbers(
    raw: RawColumn, said: SaidKind | None, where: _Where, texts: RawColumn | None = None
) -> _Read:
    """A column of numbers, if it is no date, id or code; `texts` is how it was written."""
    x = raw.numbers
    assert x is not None
    seen = x[~np.isnan(x)]
    if np.isinf(seen).any():
        p = int(np.flatnonzero(np.isinf(x))[0])
        raise InputError(
            f"view {where.name!r} has inf in {where.row(p)}, column {raw.name!r}.",
            hint="replace it by a finite number, or leave the cell blank.",
            column=raw.name,
        )
    n_missing = int(len(x) - len(seen))
    if not len(seen):
        return _left_out(raw, "empty")
    low, high = float(seen.min()), float(seen.max())
    if low == high:
        blank = raw.blank() if texts is None else texts.blank()
        if low == 1.0 and blank.any() and said is None:
            return _Read(_tick_column(raw.name, "1", n_missing - int(blank.sum())), np.where(blank, 0.0, x))
        return _left_out(raw, f"constant: always {number_text(low)}")
    wanted = None if said is None else said.kind
    whole = bool((seen == np.floor(seen)).all())
    if wanted == "date" or (wanted is None and whole and low >= 19000101 and high <= 21001231):
        days = days_in_numbers(x)
        if wanted == "date" and not np.array_equal(np.isnan(days), np.isnan(x)):
            p = int(np.flatnonzero(np.isnan(days) & ~np.isnan(x))[0])
            raise _no_kind(where, raw.name, p, number_text(float(x[p])), "date")
        if wanted == "date" or (not np.isnan(days[~np.isnan(x)]).any() and len(np.unique(seen)) >= 3):
            return _read_days(raw, days, "digits", where)
    why = ""
    if whole and wanted is None:
        if _POSTAL_NAME.search(raw.name):
            return _read_levels((texts or raw).as_texts(), None, where)
        if high - low == len(seen) - 1 and len(seen) > _RUNNING and len(np.unique(seen)) == len(seen):
            return _left_out(raw, "an id: running numbers")
        if _is_id_name(raw.name) and len(np.unique(seen)) > _ID_SHARE * len(seen):
            return _left_out(raw, "an id: by its name")
        if _may_be_codes(seen, low, high):
            why = "few whole numbers, which may be codes"
    column = Column(raw.name, "number", why=why, n_missing=n_missing)
    return _Read(column, x)


def _is_id_name(name: str) -> bool:
    return any(pattern.search(name) is not None for pattern in (_ID_NAME, _ID_NAME_CASED))


def _may_be_codes(seen: np.ndarray, low: float, high: float) -> bool:
    """Whether whole numbers are so few that they may stand for words."""
    if high - low >= 4 * _FEW_NUMBERS:
        return False
    n = int((np.bincount((seen - low).astype(np.int64)) > 0).sum())
    return 2 < n <= _FEW_NUMBERS and len(seen) >= 5 * n


def _read_hours(raw: RawColumn, hours: np.ndarray, said: SaidKind | None, where: _Where) -> _Read:
    assert raw.codes is not None
    x = np.append(hours, np.nan)[raw.codes]
    read = _read_numbers(RawColumn(raw.name, numbers=x), said or SaidKind("number"), where)
    unread = (raw.codes >= 0) & np.isnan(x)
    return read._replace(
        column=replace(read.column, form="hours", n_unread=int(unread.sum())), examples=_examples(raw, unread)
    )


def _examples(raw: RawColumn, cells: np.ndarray) -> tuple[str, ...]:
    assert raw.codes is not None
    return tuple(sorted({raw.texts[code] for code in set(raw.codes[cells].tolist())})[:2])


def _read_dates(raw: RawColumn, dates: Dates, said: SaidKind | None, where: _Where, form: str = "") -> _Read:
    assert raw.codes is not None
    order = said.form if said is not None and said.form else dates.order
    if order == "?":
        text = _first(np.array(raw.texts, dtype=object)[dates.known])
        hint = "say {it} if the day comes first, and month-first otherwise."
        return _left_out(raw, f"dates in doubt: {text} can be read in two ways")._replace(
            doubts=(
                Remark(
                    f"view {where.name!r}, column {raw.name!r} is left out: no value says whether the day or "
                    f"the month comes first in dates such as {text!r}.",
                    overruling(where.name, raw.name, "date:day-first", hint),
                ),
            )
        )
    days = dates.read(order)
    if said is not None and np.isnan(days).any():
        _not_of_kind(raw, np.isnan(days), "date", where)
    x = np.append(days, np.nan)[raw.codes]
    unread = (raw.codes >= 0) & np.isnan(x)
    read = _read_days(RawColumn(raw.name, days=x), x, form or order, where)
    return read._replace(
        column=replace(read.column, n_unread=int(unread.sum())), examples=_examples(raw, unread)
    )


def _read_days(raw: RawColumn, days: np.ndarray, form: str, where: _Where) -> _Read:
    seen = days[~np.isnan(days)]
    n_missing = len(days) - len(seen)
    if not len(seen):
        return _left_out(raw, "empty")
    if (seen == seen[0]).all():
        return _left_out(raw, f"constant: always {day_text(float(seen[0]))}")
    return _Read(Column(raw.name, "date", n_missing=n_missing, form=form), days)


def _read_levels(raw: RawColumn, said: SaidKind | None, where: _Where) -> _Read:
    """Categories, two answers, or answers in an order."""
    assert raw.codes is not None
    texts = [level_text(text) for text in raw.texts]
    there = np.unique(raw.codes[raw.codes >= 0])
    known = {texts[code] for code in there.tolist()}
    n_seen = int((raw.codes >= 0).sum())
    wanted = None if said is None else said.kind
    if len(known) == 1:
        text = next(iter(known))
        blank = raw.blank()
        if blank.any() and wanted in (None, "yes/no") and text.lower() in _TICKS and not raw.flags:
            column = _tick_column(raw.name, text, len(raw) - n_seen - int(blank.sum()))
            return _Read(column, np.where(raw.codes >= 0, 1.0, np.where(blank, 0.0, np.nan)))
        return _left_out(raw, f"constant: always {text!r}")
    if wanted == "ordered":
        assert said is not None
        levels = _ordered_levels(raw, known, said, where)
    else:
        levels = tuple(_sorted_levels(known))
    if wanted == "yes/no" and len(levels) != 2:
        raise InputError(
            f"view {where.name!r}, column {raw.name!r} is said to be yes/no and has {len(levels)} different "
            f"values: {_some(levels)}.",
            hint=overruling(where.name, raw.name, "category", "say {it}."),
            column=raw.name,
        )
    if wanted is None and len(levels) > 2 and not raw.flags:
        if len(levels) > _ID_SHARE * n_seen and n_seen > _FEW_ROWS:
            words = np.mean([len(level.split()) for level in levels])
            return _left_out(raw, "free text" if words >= _WORDS else "an id: nearly every value is another")
        if len(levels) > _MOST_LEVELS:
            return _left_out(raw, f"more than {_MOST_LEVELS} categories")
    place = {level: code for code, level in enumerate(levels)}
    by_text = np.array([*(place.get(text, np.nan) for text in texts), np.nan], dtype=float)
    kind: ColumnKind = "ordered" if wanted == "ordered" else "yes/no" if len(levels) == 2 else "category"
    if wanted == "category":
        kind = "category"
    doubts: tuple[Remark, ...] = ()
    alike = look_alike(levels) if kind == "category" else []
    if alike:
        doubts = (
            Remark(
                f"view {where.name!r}, column {raw.name!r}: {alike[0][0]!r} and {alike[0][1]!r} are two "
                "categories.",
                Hint("if they are one, write them alike."),
            ),
        )
    column = Column(raw.name, kind, levels=levels, n_missing=len(raw) - n_seen)
    return _Read(column, by_text[raw.codes], doubts=doubts)


def _sorted_levels(known: Collection[str]) -> list[str]:
    try:
        return sorted(known, key=lambda text: (float(text), text))
    except ValueError:
        return sorted(known)


def _ordered_levels(raw: RawColumn, known: set[str], said: SaidKind, where: _Where) -> tuple[str, ...]:
    given = said.levels or raw.given
    if given is None:
        found = numbers_in(sorted(known))
        if not found.known.all():
            raise InputError(
                f"view {where.name!r}, column {raw.name!r} is said to be ordered, and nothing says how.",
                hint=overruling(
                    where.name,
                    raw.name,
                    "<".join(_sorted_levels(known)[:3]),
                    "name its levels from low to high: {it}.",
                ),
                column=raw.name,
            )
        return tuple(_sorted_levels(known))
    levels = tuple(level_text(text) for text in given)
    strange = sorted(known - set(levels))
    if strange:
        assert raw.codes is not None
        cells = np.array([level_text(text) == strange[0] for text in raw.texts])
        p = int(np.argmax(np.append(cells, False)[raw.codes]))
        raise InputError(
            f"view {where.name!r}, column {raw.name!r} holds {strange[0]!r} in {where.row(p)}, which is none "
            f"of its levels: {_some(levels, 5)}.",
            hint="name all levels, from low to high.",
            column=raw.name,
        )
    return levels


def _tick_column(name: str, text: str, n_missing: int) -> Column:
    why = f"a blank cell read as no, {text!r} as yes"
    return Column(name, "yes/no", levels=("", text), why=why, n_missing=n_missing, form="blank")


def _ticked(raw: Sequence[RawColumn], read: list[_Read]) -> list[_Read]:
    """Rows of which all other columns are blank too are not there: nothing in them says no."""
    ticks = [j for j, one in enumerate(read) if one.column.form == "blank"]
    others = [j for j, one in enumerate(read) if one.values is not None and j not in ticks]
    if not ticks or not others:
        return read
    empty = np.all([raw[j].missing() for j in [*ticks, *others]], axis=0)
    if not empty.any():
        return read
    read = list(read)
    for j in ticks:
        one = read[j]
        assert one.values is not None
        values = np.where(empty, np.nan, one.values)
        column = replace(one.column, n_missing=int(np.isnan(values).sum()))
        read[j] = one._replace(column=column, values=values)
    return read


# --- new rows -----------------------------------------------------------------------------------------------


def _read_again(raw: RawColumn, column: Column, where: _Where) -> np.ndarray:
    if raw.missing().all() and column.form != "blank":
        return np.full(len(raw), np.nan)
    if column.levels is not None:
        return _levels_again(raw.as_texts(), column, where)
    if column.kind == "date":
        if raw.days is not None:
            return raw.days
        if raw.numbers is not None:
            x = days_in_numbers(raw.numbers)
            return _warn_unread(raw.as_texts(), raw.numbers, x, column, where)
        if column.form == "digits":
            by_text = days_in_numbers(numbers_in(raw.texts).point)
        else:
            by_text = dates_in(raw.texts).read(column.form)
    elif raw.numbers is not None or raw.days is not None:
        own = raw.days if raw.numbers is None else raw.numbers
        assert own is not None
        _read_numbers(RawColumn(raw.name, numbers=own), SaidKind("number"), where)  # refuses what is infinite
        return own
    elif column.form == "hours":
        by_text = hours_in(raw.texts)
    else:
        by_text = numbers_in(raw.texts, closely=column.form == "comma").read(column.form or "point")
        if np.isinf(by_text).any():
            _read_numbers(
                RawColumn(raw.name, numbers=np.append(by_text, np.nan)[raw.codes]), SaidKind("number"), where
            )
    assert raw.codes is not None
    x = np.append(by_text, np.nan)[raw.codes]
    return _warn_unread(raw, np.where(raw.codes < 0, np.nan, 0.0), x, column, where)


def _warn_unread(
    raw: RawColumn, given: np.ndarray, x: np.ndarray, column: Column, where: _Where
) -> np.ndarray:
    unread = np.isnan(x) & ~np.isnan(given)
    if unread.any():
        n = int(unread.sum())
        warn(
            _unread(where.name, column, n, _examples(raw, unread)[0]),
            hint="correct or empty these cells.",
        )
    return x


def _levels_again(raw: RawColumn, column: Column, where: _Where) -> np.ndarray:
    assert raw.codes is not None
    assert column.levels is not None
    place = {level: code for code, level in enumerate(column.levels)}
    by_text = np.array([*(place.get(level_text(text), np.nan) for text in raw.texts), np.nan], dtype=float)
    x = by_text[raw.codes]
    new = np.isnan(x) & (raw.codes >= 0)
    if new.any():
        n = int(new.sum())
        warn(
            f"view {where.name!r}, column {column.name!r}: {', '.join(map(repr, _examples(raw, new)))} was "
            f"not there when it was fitted; {counted(n, 'cell')} {'is' if n == 1 else 'are'} read as "
            "missing.",
            hint=f"the levels are {_some([level or 'blank' for level in column.levels], 8)}.",
        )
    if column.form == "blank":
        x = np.where(raw.blank(), 0.0, x)
    return x


# --- sentences ----------------------------------------------------------------------------------------------


def _not_of_kind(raw: RawColumn, bad: np.ndarray, kind: str, where: _Where) -> NoReturn:
    """The error about a value that is not of the kind that the user says."""
    assert raw.codes is not None
    p = int(np.argmax(np.append(bad, False)[raw.codes]))
    raise _no_kind(where, raw.name, p, raw.texts[int(raw.codes[p])], kind)


def _no_kind(where: _Where, column: str, p: int, value: str, kind: str) -> InputError:
    return InputError(
        f"view {where.name!r}, column {column!r} is said to be a {kind} and holds {value!r} in "
        f"{where.row(p)}.",
        hint="correct or empty the cell, or say another kind.",
        column=column,
    )


def _nothing_to_use(name: str, columns: Sequence[Column]) -> NoReturn:
    left = _some([f"{column.name} ({column.why})" for column in columns], _LEFT_OUT_SHOWN)
    first = columns[0].name if columns else "column"
    raise InputError(
        f"view {name!r} has no column that tells rows apart" + (f": {left}." if left else "."),
        hint=overruling(name, first, "category", "leave this view out, or say what a column is, as in {it}."),
    )


def _remarks(
    name: str, columns: Sequence[Column], values: np.ndarray, read: Sequence[_Read]
) -> tuple[tuple[Remark, ...], tuple[Remark, ...]]:
    warnings = [remark for one in read for remark in one.doubts]
    asked = {one.column.name for one in read if one.doubts}
    guessed = [
        column
        for column in columns
        if not column.used and column.name not in asked and column.why.startswith(_GUESSES)
    ]
    if guessed:
        told = [f"{column.name} ({column.why.partition(':')[0]})" for column in guessed]
        warnings.append(
            Remark(
                f"view {name!r}: {_some(told, _LEFT_OUT_SHOWN)} {'is' if len(told) == 1 else 'are'} left "
                "out.",
                _about_guess(name, guessed[0]),
            )
        )
    for one in read:
        if one.examples:
            warnings.append(
                Remark(
                    _unread(name, one.column, one.column.n_unread, one.examples[0]),
                    overruling(name, one.column.name, "category", "correct these cells, or say {it}."),
                )
            )
    there = ~np.isnan(values).all(axis=1)
    if there.any():
        share = float(np.isnan(values[there]).mean())
        if share > 0.5:
            warnings.append(
                Remark(
                    f"view {name!r}: {share:.0%} of the cells are missing.",
                    Hint("what little is known of an instance says little about its cluster."),
                )
            )
    notes = [remark for one in read for remark in one.notes]
    codes = [
        column.name for column in columns if column.kind == "number" and column.why.startswith("few whole")
    ]
    if codes:
        notes.append(
            Remark(
                f"view {name!r}: {_some(codes, _LEFT_OUT_SHOWN)} {'holds' if len(codes) == 1 else 'hold'} "
                f"few whole numbers, read as {'a number' if len(codes) == 1 else 'numbers'}.",
                overruling(name, codes[0], "category", "if these are codes of categories, say {it}."),
            )
        )
    ticks = [column.name for column in columns if column.form == "blank"]
    if ticks:
        notes.append(
            Remark(
                f"view {name!r}: blank cells of {_some(ticks, _LEFT_OUT_SHOWN)} are read as no.",
                overruling(name, ticks[0], "left out", "if they are unknown, say {it}."),
            )
        )
    return tuple(warnings), tuple(notes)


_GUESSES = ("an id", "free text", "more than")


def _about_guess(name: str, column: Column) -> Hint:
    """What to do about a column that was left out."""
    if not column.why.startswith("an id"):
        return overruling(name, column.name, "category", "to use a column, say what it is, as in {it}.")
    text = "if it names the instances, say {on=}; to use it as a feature, {it}."
    return overruling(name, column.name, "category", text, on=column.name)


def _unread(view: str, column: Column, n: int, example: str) -> str:
    return (
        f"view {view!r}, column {column.name!r}: {counted(n, 'value')} such as {example!r} "
        f"{'is' if n == 1 else 'are'} read as missing, since the column holds {_PLURALS[column.kind]}."
    )


def _named(names: Sequence[str]) -> str:
    shown = _some([repr(name) for name in names], 5)
    return f"the column {shown}" if len(names) == 1 else f"the columns {shown}"
