"""Single labels: what is one, what says missing, when text is a number, and which of them look alike."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from consilience._support.values import is_missing

Negative = Literal["missing", "noise"]
MISSING = -1

_EXACT = 2.0**53  # from here on, floats skip integers
# Plain digits only: float() and int() also take 1_12, 1e2 and digits of other scripts, and 007 is a name.
_WHOLE = re.compile(r"(-?[1-9][0-9]*|0)(\.0*)?")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*)?")
# What people write where they know nothing. Whether it is a label, only they can say.
_MARKS = frozenset(
    {"-", "--", "\N{EN DASH}", "\N{EM DASH}", "?", "??", ".", "..", "n/a", "n.a.", "#n/a", "<na>"}
)
_MARKS |= {"na", "nan", "nil", "null", "none", "missing", "unknown", "unassigned"}


def plain(value: Any) -> Any:
    """A hashable Python value; None for every way of saying missing."""
    # The Python value of a date in nanoseconds would be a number.
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    if is_missing(value) or (isinstance(value, (str, bytes)) and not value.strip()):
        return None
    if isinstance(value, Decimal | Fraction):
        return int(value) if _is_whole(value) else float(value)
    if isinstance(value, bool) or (isinstance(value, float) and abs(value) < _EXACT and value.is_integer()):
        return int(value)
    return value


def plain_values(values: Any) -> list[Any]:
    """`plain` of many values; floats of few digits are integers only as far as these are exact."""
    if not isinstance(values, np.ndarray) or values.dtype.kind in "OmMSU":
        return [plain(value) for value in values]
    if values.dtype.kind != "f":
        return [int(value) for value in values.tolist()]
    exact = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    return [
        None if value != value else int(value) if abs(value) < exact and value.is_integer() else value
        for value in values.astype(float).tolist()
    ]


def _is_whole(value: Decimal | Fraction) -> bool:
    return math.isfinite(value) and value == int(value)


def is_int64(value: Any) -> bool:
    """Whether it is a whole number that NumPy's default integers hold."""
    return isinstance(value, int) and -(2**63) <= value < 2**63


def is_negative(value: Any) -> bool:
    """Whether it is a negative whole number."""
    return isinstance(value, (int, np.integer)) and int(value) < 0


def labels_as_numbers(labels: Sequence[str]) -> list[Any]:
    """The labels of a column of a text file as numbers where all of them are plain ones.

    "-1" then means missing, and "10" comes after "9". 0.37 becomes a number too, so that it can be refused as
    a feature.

    >>> labels_as_numbers(["1", "2.0", "-1"]), labels_as_numbers(["1_1", "11"]), labels_as_numbers(["007"])
    ([1, 2, -1], ['1_1', '11'], ['007'])
    """
    if all(map(_WHOLE.fullmatch, labels)):
        return [int(label.partition(".")[0]) for label in labels]
    if all(map(_NUMBER.fullmatch, labels)):
        return [plain(float(label)) for label in labels]
    return list(labels)


def number_in(text: str) -> int | None:
    """The whole number that text says by the same rule; None where it says none."""
    return int(text.partition(".")[0]) if _WHOLE.fullmatch(text) else None


def is_mark(text: str) -> bool:
    """Whether text rather says that there is nothing, as "?" does."""
    return text.strip().lower() in _MARKS


def fold_id(key: Any, ignored: Sequence[str]) -> Any:
    """An id in the form that is common to all spellings that differ in what is ignored only.

    >>> fold_id(" 007 ", ["trim", "zeros"])
    '7'
    """
    if not isinstance(key, str):
        return key
    if "unicode" in ignored:
        key = unicodedata.normalize("NFC", key)
    if "trim" in ignored:
        key = key.strip()
    if "case" in ignored:
        key = key.lower()
    if "zeros" in ignored:
        key = re.sub(r"^(-?)0*([0-9]+)(\.0*)?$", r"\1\2", key)
    return key


def look_alike(labels: Iterable[Any]) -> list[list[str]]:
    """Groups of texts that differ in spaces, case, leading zeros, a ".0" or the form of letters only.

    >>> look_alike(["Gold", "gold ", "basic", "01", "1.0"])
    [['Gold', 'gold '], ['01', '1.0']]
    """
    groups: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            groups.setdefault(_looks(label), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def _looks(text: str) -> str:
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return re.sub(r"^(-?)0+(?=\d)|\.0*$", r"\1", text) if re.fullmatch(r"-?\d+(\.0*)?", text) else text
