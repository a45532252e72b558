"""What a reader of a file format gives: its columns, its rows in batches, and where a row is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import pyarrow as pa

from consilience._support.errors import InputError, UsageError
from consilience._support.files import is_special
from consilience.io.marks import MISSING_TEXTS

STDIO = "-"
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_SHOWN = 3  # places in a sentence

# How a column is read: as text, as text by number, or as the file has it. Cells of features are text in which
# only blank ones are missing, unless the user says otherwise: what else says so is seen by who reads columns.
Kind = Literal["text", "coded", "cells"]
Batches = Generator[pa.RecordBatch, None, None]


class How(NamedTuple):
    """How to read a file."""

    missing: tuple[str, ...] = MISSING_TEXTS
    delimiter: str | None = None
    encoding: str | None = None
    header: int | None = None  # the line or row of the names, counted from 1
    blank_rows: bool = False  # whether an empty line is a row: it is where rows go by position
    decimals: bool = False  # whether the decimal mark matters, since numbers are read
    say: Callable[[str], None] = lambda _: None


class Table(Protocol):
    """A file, or a sheet of one, that can be gone through again."""

    path: str
    names: list[str]  # of all columns
    text: bool  # whether labels in it are text that may say numbers

    def batches(self, wanted: Sequence[str], kinds: Mapping[str, Kind]) -> Batches:
        """Some columns, all rows."""

    def places(self, rows: Sequence[int]) -> str:
        """Where rows are, as a person finds them: "lines 3 and 17 of banks.csv"."""


def in_words(unit: str, numbers: Sequence[int], path: str) -> str:
    """Places in one file.

    >>> in_words("line", [3, 17], "a.csv"), in_words("line", [3, 7, 9, 11], "a.csv")
    ('lines 3 and 17 of a.csv', 'lines 3, 7, 9, ... of a.csv')
    """
    shown = ", ".join(map(str, numbers[:_SHOWN])) + ", ..." * (len(numbers) > _SHOWN)
    if len(numbers) == 2:
        shown = shown.replace(", ", " and ")
    return f"{unit}{'s' * (len(numbers) > 1)} {shown} of {path}"


def suffix_of(path: str) -> str:
    """The suffix that tells the format: that before the one of compression."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def shown(path: str) -> str:
    """What to call a file in a sentence."""
    return "standard input" if path == STDIO else path


def refuse_same_names(path: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path} has two columns named {twice!r}.", hint="give every column its own name.")


def refuse_pipe(path: str) -> None:
    if is_special(path):
        raise UsageError(
            f"{path!r} is a pipe, and only CSV can be read from a pipe.", hint="write it to a file first."
        )


def read_stdin() -> bytes:
    """All of standard input."""
    if sys.stdin is None:
        raise UsageError("standard input is closed.", hint="name a file instead of -.")
    return sys.stdin.buffer.read()


def file_key(path: str) -> Any:
    """Equal for two paths of one file: by device and number where it is there, else by its full name."""
    try:
        found = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return found.st_dev, found.st_ino
