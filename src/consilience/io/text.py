"""How a text file is written: its encoding, what separates its cells, and its decimal mark.

UTF-8 is taken wherever the bytes are UTF-8, which text in another encoding hardly ever is by chance; and the
usual delimiter of a suffix wherever it cuts all lines into as many cells as the first.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import IO, NamedTuple

from consilience._support.errors import Hint, InputError, UsageError

DELIMITERS = ",;\t|"
_HEAD = 1 << 16  # bytes from which delimiter and decimal mark are found
_LINES = 50  # lines of these
_BLOCK = 1 << 22  # bytes that are decoded at a time
_SCANNED = 1 << 28  # bytes that are decoded to find the encoding
_ZEROS = 0.4  # share of bytes that are zero on one side of each pair, in UTF-16 without a mark
_BYTE_ORDER = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NO_1252 = (b"\x00", b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
_NAMES = {"cp1252": "Windows-1252", "utf-16": "UTF-16", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}
_COMMA, _POINT = (re.compile(rf"\s*[+-]?\d+{mark}\d+([eE][+-]?\d+)?\s*") for mark in (",", r"\."))


class Form(NamedTuple):
    """How to read a text file, and what about it is worth a line."""

    encoding: str = "utf-8"
    delimiter: str = ","
    decimal: str = "."
    found: str = ""


def find_form(
    path: str,
    opened: Callable[[], IO[bytes]],
    usual: str,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: int | None = None,
) -> Form:
    """The form of a file that `opened` opens; what is given is not looked for.

    Lines above the `header`, counted from 1, are titles that say nothing about cells.
    """
    told = []
    with opened() as file:
        head = file.read(_HEAD)
    if encoding is None:
        encoding = _find_encoding(path, opened)
        if encoding != "utf-8":
            told.append(f"read as {_NAMES[encoding]}")
    lines = _lines(head.decode(encoding, errors="ignore").lstrip("\ufeff"), whole=len(head) < _HEAD)
    lines = lines[(header or 1) - 1 :]
    if delimiter is None:
        delimiter = find_delimiter(lines, usual)
        if delimiter != usual:
            told.append(f"separated by {'tabs' if delimiter == chr(9) else delimiter}")
    decimal = "." if delimiter == "," else _find_decimal(lines, delimiter)
    return Form(encoding, delimiter, decimal, ", ".join(told))


def check_encoding(name: str) -> str:
    """The name of an encoding as Python spells it; an error for one that it does not know."""
    try:
        known = codecs.lookup(name)
    except LookupError:
        known = None
    if known is None or not known._is_text_encoding:
        raise UsageError(
            f"there is no encoding {name!r}.",
            hint=Hint("as in {encoding=utf-8}; also utf-16, latin-1 or windows-1252."),
        )
    return known.name


def _find_encoding(path: str, opened: Callable[[], IO[bytes]]) -> str:
    with opened() as file:
        first = file.read(4096)
    for mark, name in _BYTE_ORDER.items():
        if first.startswith(mark):
            return name
    sides = first[0::2], first[1::2]
    for name, zeros, others in (("utf-16-le", *sides[::-1]), ("utf-16-be", *sides)):
        if first and zeros.count(0) > _ZEROS * len(zeros) and not others.count(0):
            return name
    with opened() as file:
        if _is_utf8(_blocks(file)):
            return "utf-8"
    with opened() as file:
        if any(byte in block for block in _blocks(file) for byte in _NO_1252):
            raise InputError(
                f"{path} is text in neither UTF-8, UTF-16 nor Windows-1252.",
                hint=Hint("if it is text, name its encoding, as in {encoding=cp437}."),
            )
    return "cp1252"


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    for _ in range(_SCANNED // _BLOCK):
        if not (block := file.read(_BLOCK)):
            return
        yield block


def _is_utf8(blocks: Iterable[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for block in blocks:
            if decoder.getstate()[0] or not block.isascii():
                decoder.decode(block)
    except UnicodeDecodeError:
        return False
    return True


def _lines(text: str, *, whole: bool) -> list[str]:
    lines = text.splitlines(keepends=True)
    return lines if whole or len(lines) < 2 else lines[:-1]  # the last one was cut off


def _cells(lines: list[str], delimiter: str) -> list[list[str]]:
    rows = csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter)
    return [row for row in islice(rows, _LINES) if row]


def find_delimiter(lines: list[str], usual: str) -> str:
    """What cuts all lines into as many cells as the first, two or more; the usual one if it does.

    >>> find_delimiter(["id;a;b\\n", "p;1,5;2\\n"], ",")
    ';'
    >>> find_delimiter(["id,a\\n", "p,x;y\\n"], ","), find_delimiter(["a\\n", "1;2\\n"], ",")
    (',', ',')
    """
    width: dict[str, int] = {}
    for mark in dict.fromkeys([usual, *DELIMITERS]):
        try:
            widths = {len(row) for row in _cells(lines, mark)}
        except csv.Error:
            continue
        if len(widths) == 1 and max(widths) > 1:
            width[mark] = max(widths)
    return usual if usual in width else max(width, key=lambda mark: width[mark], default=usual)


def _find_decimal(lines: list[str], delimiter: str) -> str:
    cells = [cell for row in _cells(lines, delimiter)[1:] for cell in row]
    commas = any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells))
    return "," if commas else "."
