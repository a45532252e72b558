"""What people write into cells: numbers, dates and times as text, and what says that there is nothing.

All of it works on the distinct texts of a column. Text that can be read in two ways comes back in both: which
one is meant is seen from the other values, by whoever knows the column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from consilience.io.marks import CELL_MARKS

_PLAIN = np.zeros(256, dtype=bool)
_PLAIN[np.frombuffer(b"0123456789.+-eE\n", np.uint8)] = True
_NEWLINE, _ZERO, _NINE = 10, 48, 57

_MONEY = r"[€$£¥]|(?:EUR|USD|GBP|CHF|JPY)"
_NUMBER = re.compile(
    rf"(?P<limit>[<>]=?|[≤≥])?\s*(?P<sign>[+\-\N{{MINUS SIGN}}]?)\s*(?:{_MONEY})?\s*"
    rf"(?P<body>\d[\d.,'’\s]*|[.,]\d+)(?P<power>[eE][+-]?\d+)?\s*(?P<unit>%|{_MONEY})?",
    re.ASCII,
)
# Groups of three digits; a number that is written in groups does not begin with a zero.
_GROUPED = re.compile(r"(?<=\d)['’\s](?=\d{3}(?!\d))", re.ASCII)
_POINT = re.compile(r"([1-9]\d{0,2}(?:,\d{3})+|\d*)(?:\.(\d*))?", re.ASCII)
_COMMA = re.compile(r"([1-9]\d{0,2}(?:\.\d{3})+|\d*)(?:,(\d*))?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)

_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s*([AaPp]\.?[Mm]\.?)?"
_TIME = rf"(?:(?:\s*T|,?\s+){_CLOCK}\s*(Z|UTC|[+-]\d{{2}}:?\d{{2}})?)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_TIME}", re.ASCII)
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){_TIME}", re.ASCII)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_NAME = rf"({'|'.join(_MONTHS)})[a-z]*\.?"
_DAY_NAMED = re.compile(rf"(\d{{1,2}})(?:st|nd|rd|th|\.)?[-\s]*{_NAME},?[-\s]*(\d{{4}}){_TIME}", re.I | re.A)
_MONTH_NAMED = re.compile(rf"{_NAME}\s*(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}}){_TIME}", re.I | re.A)
_OF_DAY = re.compile(_CLOCK, re.ASCII)
_CENTURY = 69  # a year of two digits below this is one of 2000


def is_cell_mark(text: str) -> bool:
    """Whether a cell of features says that there is nothing: blank, NA, ?, - and the like.

    >>> [is_cell_mark(text) for text in (" ", "n/a", "?", "None", "unknown")]
    [True, True, True, False, False]
    """
    return text.strip().lower() in CELL_MARKS


class Numbers(NamedTuple):
    """Texts as numbers, NaN where a text is none: with a decimal point, and with a decimal comma."""

    point: np.ndarray
    comma: np.ndarray
    limit: np.ndarray  # whether it is a limit, such as <0.3
    percent: np.ndarray
    codes: bool  # whether a text has leading zeros, which numbers have not
    plain: bool  # whether all are as programs write them; `comma` was not looked for then

    @property
    def known(self) -> np.ndarray:
        """Which texts are numbers."""
        return ~(np.isnan(self.point) & np.isnan(self.comma))

    @property
    def ambiguous(self) -> np.ndarray:
        """Which texts are two different numbers, as 1,234 and 1.234 are."""
        return ~np.isnan(self.point) & ~np.isnan(self.comma) & (self.point != self.comma)

    def read(self, form: str) -> np.ndarray:
        """Numbers where "point" or "comma" is the decimal mark, or "either" of them is one.

        A text that can be read in one way only is read in this way.
        """
        first, second = (self.comma, self.point) if form == "comma" else (self.point, self.comma)
        values = np.where(np.isnan(first), second, first)
        if form == "either":  # a mark before three digits is then a decimal mark too, so the smaller number
            values = np.where(self.ambiguous, np.sign(values) * np.fmin(abs(first), abs(second)), values)
        return values


def numbers_in(texts: Sequence[str], *, closely: bool = False) -> Numbers:
    """Stripped texts as numbers; `closely` looks for both decimal marks where a plain reading would do.

    >>> found = numbers_in(["1,234.50", "1.234,50", "12 %", "<0.3", "1,234", "x"])
    >>> found.point.tolist()
    [1234.5, nan, 12.0, 0.3, 1234.0, nan]
    >>> found.comma.tolist()
    [nan, 1234.5, 12.0, nan, 1.234, nan]
    """
    plain = None if closely else _plain_numbers(texts)
    if plain is not None:
        none = np.zeros(len(texts), dtype=bool)
        return Numbers(plain[0], plain[0], none, none, plain[1], True)
    n = len(texts)
    point, comma = np.full(n, np.nan), np.full(n, np.nan)
    limit, percent = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    codes = False
    for i, text in enumerate(texts):
        match = _NUMBER.fullmatch(text.replace("\u00a0", " ").replace("\u202f", " "))
        if match is None:
            if _INFINITE.fullmatch(text):
                point[i] = comma[i] = float(text)
            continue
        body = _GROUPED.sub("", match["body"].rstrip())
        tail = match["power"] or ""
        sign = "-" if match["sign"] not in ("", "+") else ""
        for pattern, values, mark in ((_POINT, point, ","), (_COMMA, comma, ".")):
            parts = pattern.fullmatch(body)
            if parts is not None and (parts[1] or parts[2]):
                values[i] = float(f"{sign}{parts[1].replace(mark, '')}.{parts[2] or '0'}{tail}")
        limit[i], percent[i] = match["limit"] is not None, match["unit"] == "%"
        codes |= len(body) > 1 and body[0] == "0" and body.isdigit()
    return Numbers(point, comma, limit, percent, codes, False)


def _plain_numbers(texts: Sequence[str]) -> tuple[np.ndarray, bool] | None:
    """Numbers as programs write them, and whether one has leading zeros; None if a text is something else."""
    data = np.frombuffer(("\n" + "\n".join(texts) + "\n").encode("utf-8", "replace"), np.uint8)
    if not _PLAIN[data].all():
        return None
    try:
        values = np.fromiter(map(float, texts), dtype=float, count=len(texts))
    except ValueError:
        return None
    digit = (data >= _ZERO) & (data <= _NINE)
    first = np.flatnonzero((data[:-2] == _NEWLINE) & (data[1:-1] == _ZERO) & digit[2:])
    return values, bool(len(first)) and any(texts[i].isdigit() for i in _lines(data, first))


def _lines(data: np.ndarray, places: np.ndarray) -> list[int]:
    """The numbers of the lines that begin after these line ends."""
    return np.searchsorted(np.flatnonzero(data == _NEWLINE), places).tolist()


class Dates(NamedTuple):
    """Texts as days since 1970, NaN where a text is no date: if the day comes first, or the month."""

    day_first: np.ndarray
    month_first: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Which texts are dates."""
        return ~(np.isnan(self.day_first) & np.isnan(self.month_first))

    @property
    def order(self) -> str:
        """ "day-first" or "month-first" where a value decides it, "" where it does not matter, else "?"."""
        day, month = np.isnan(self.day_first), np.isnan(self.month_first)
        says_day, says_month = bool((month & ~day).any()), bool((day & ~month).any())
        if says_day != says_month:
            return "day-first" if says_day else "month-first"
        both = ~day & ~month & (self.day_first != self.month_first)
        return "?" if both.any() or says_day else ""

    def read(self, order: str) -> np.ndarray:
        """Days, by an order; NaN where it does not fit."""
        return self.month_first if order == "month-first" else self.day_first


def dates_in(texts: Sequence[str]) -> Dates:
    """Stripped texts as dates, with the time of the day if they have one.

    Day and month stand in either order around slashes and hyphens; around points the day comes first.

    >>> found = dates_in(["2020-04-25", "25/04/2020", "03/04/2020", "3 Apr 2020", "x"])
    >>> found.day_first.tolist(), found.order
    ([18377.0, 18377.0, 18355.0, 18355.0, nan], 'day-first')
    """
    rows, parts = [], []
    for i, text in enumerate(texts):
        found = _date_parts(text)
        if found is not None:
            rows.append(i)
            parts.append(found)
    day_first, month_first = np.full(len(texts), np.nan), np.full(len(texts), np.nan)
    if rows:
        year, one, two, either, time = np.array(parts).T
        day_first[rows] = _days(year, two, one) + time
        month_first[rows] = np.where(either == 1.0, _days(year, one, two) + time, day_first[rows])
    return Dates(day_first, month_first)


def _date_parts(text: str) -> tuple[float, int, int, bool, float] | None:
    """Year, day, month, whether the last two may be the other way round, and the time in days."""
    if not text or not (text[0].isdigit() or text[:3].lower() in _MONTHS):
        return None
    match = _YEAR_FIRST.fullmatch(text)
    if match is not None:
        return int(match[1]), int(match[4]), int(match[3]), False, _time(match, 5)
    match = _YEAR_LAST.fullmatch(text)
    if match is not None:
        year = int(match[4])
        if len(match[4]) == 2:
            year += 2000 if year < _CENTURY else 1900
        return year, int(match[1]), int(match[3]), match[2] != ".", _time(match, 5)
    for pattern, day, month in ((_DAY_NAMED, 1, 2), (_MONTH_NAMED, 2, 1)):
        match = pattern.fullmatch(text)
        if match is not None:
            number = _MONTHS.index(match[month].lower()) + 1
            return int(match[3]), int(match[day]), number, False, _time(match, 4)
    return None


def _time(match: re.Match[str], at: int) -> float:
    """The time of a day in days, in UTC; NaN where there is no such time."""
    if match[at] is None:
        return 0.0
    hour, minute, second = int(match[at]), int(match[at + 1]), float(match[at + 2] or 0)
    half = match[at + 3]
    if half is not None:
        if not 1 <= hour <= 12:
            return np.nan
        hour = hour % 12 + 12 * (half[0] in "pP")
    if hour > 24 or minute > 59 or second >= 61:
        return np.nan
    zone = match[at + 4] if match.re is not _OF_DAY else None
    shift = 0.0
    if zone is not None and zone not in ("Z", "UTC"):
        shift = int(zone[1:3]) * 60 + int(zone[-2:])
        shift = -shift if zone[0] == "-" else shift
    return (hour * 60 + minute - shift) / 1440 + second / 86400


def _days(year: np.ndarray, month: np.ndarray, day: np.ndarray) -> np.ndarray:
    """Days since 1970; NaN where the calendar has no such day."""
    number = ((year - 1970) * 12 + month - 1).astype(np.int64)
    first = number.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    after = (number + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    there = (month >= 1) & (month <= 12) & (day >= 1) & (day <= after - first)
    return np.where(there, first + day - 1, np.nan)


def days_in_numbers(values: np.ndarray) -> np.ndarray:
    """Whole numbers such as 20200425 as days since 1970; NaN where one is no date between 1900 and 2100.

    >>> days_in_numbers(np.array([20200425.0, 20201340.0, 7.5])).tolist()
    [18377.0, nan, nan]
    """
    there = (values >= 19000101) & (values <= 21001231) & (values == np.floor(values))
    number = np.where(there, values, 19700101)
    days = _days(number // 10000, number // 100 % 100, number % 100)
    return np.where(there, days, np.nan)


def hours_in(texts: Sequence[str]) -> np.ndarray:
    """Times of the day, such as 14:30, in hours; NaN where a text is none.

    >>> hours_in(["14:30", "2:30 pm", "x"]).tolist()
    [14.5, 14.5, nan]
    """
    matches = (_OF_DAY.fullmatch(text) for text in texts)
    return np.array([np.nan if match is None else round(_time(match, 1) * 24, 9) for match in matches])
