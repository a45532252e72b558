"""Whether a table fits in memory, and where it is worked on if not, before any of it is read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as pa_dataset

from consilience._support import memory as _memory
from consilience._support.errors import InputError, UsageError
from consilience._support.files import is_special
from consilience.io.files import COMPRESSED, STDIO, Source, kind_of

# Bytes at the peak for a label and for a row with its id: of `fuse` that only writes tables, of what needs
# every instance (a page, a saved result, `compare`), and of `cluster` for a feature. Measured on text ids.
LEAN, WHOLE, VIEWS = (10, 100), (30, 200), (60, 200)
_MANY = 1_000_000  # rows from which on a line says where they are worked on
_SAMPLE = 1 << 16  # bytes of a text file from which its rows are estimated
_PACKED = 4  # how much larger text is than a compressed file of it


class Needed(NamedTuple):
    """What tables would take."""

    rows: int
    columns: int
    memory: float
    free: float | None

    @property
    def fits(self) -> bool:
        """Whether it is there."""
        return self.free is None or self.memory <= self.free

    def __str__(self) -> str:
        return (
            f"{self.rows:.2g} rows of {self.columns} columns take some {self.memory / 1e9:.3g} GB of memory, "
            f"and {(self.free or 0.0) / 1e9:.3g} GB are free"
        )


def estimate(paths: Sequence[str], source: Source, each: tuple[int, int]) -> Needed:
    """What tables would take, from the sizes of their files."""
    a_cell, a_row = each
    sizes = [_size(path, source.of(path)) for path in paths]
    rows, columns = (max(size) for size in zip(*sizes, strict=True))
    return Needed(rows, columns, sum(n * (a_row + m * a_cell) for n, m in sizes), free_memory())


def require_memory_for_labels(paths: Sequence[str], source: Source) -> None:
    """Refuse tables of labels that do not fit."""
    _require(
        estimate(paths, source, WHOLE), "fuse -o reads one table in blocks; elsewhere name fewer --columns."
    )


def require_memory_for_views(paths: Sequence[str], source: Source) -> None:
    """Refuse tables of features that do not fit."""
    _require(estimate(paths, source, VIEWS), "use fewer instances or features, or consilience.dask.APMC.")


def _require(needed: Needed, hint: str) -> None:
    if not needed.fits:
        raise UsageError(f"{needed}.", hint=f"{hint} CONSILIENCE_MEMORY=64G says how much may be used.")


def fits_in_memory(paths: Sequence[str], source: Source, *, whole: str, only: str) -> bool:
    """Whether `fuse` works in memory, where that was not said; if not, it reads the table in blocks.

    `whole` names what needs every instance in memory, `only` why this input can be read in no other way;
    both are empty where that is not so. What is decided is said, for tables of many rows.
    """
    needed = estimate(paths, source, WHOLE if whole else LEAN)
    if needed.fits:
        if needed.rows >= _MANY:
            source.say(f"{needed}: working in memory.")
        return True
    if whole or only:
        hint = f"{whole} needs the whole table in memory; leave it out" if whole else only
        _require(needed, f"{hint}, and one table is read in blocks.")
    source.say(f"{needed}: reading in blocks, twice (--engine blocks).")
    return False


def why_not(paths: Sequence[str], source: Source) -> str:
    """Why an input cannot be read in blocks; empty if it can."""
    if len(paths) > 1:
        return "several files are joined in memory; put them in one table"
    if source.long is not None:
        return "--long is read in memory; put it in a table with a column per source"
    path = paths[0]
    if path == STDIO or is_special(path):
        return "a pipe can be read only once; write it to a file"
    if kind_of(path) == "excel":
        return "Excel is read in memory; save it as CSV"
    return ""


def free_memory() -> float | None:
    """Bytes that this process may still take."""
    try:
        return _memory.free_memory()
    except InputError as error:  # the environment was wrong
        raise UsageError(error.message, error.hint) from error


def _size(path: str, source: Source) -> tuple[int, int]:
    """Rows and columns of a table; (0, 0) where only reading it tells, or would say what is wrong with it."""
    if path == STDIO or not Path(path).exists() or is_special(path):
        return 0, 0
    kind = kind_of(path)
    with suppress(pa.ArrowException, OSError, ValueError):
        if kind == "csv":
            rows, columns = _size_of_text(path)
            return rows, len(source.columns) or columns
        data = pa_dataset.dataset(path, format=kind)
        return data.count_rows(), len(source.columns) or len(data.schema.names)
    return 0, 0


def _size_of_text(path: str) -> tuple[int, int]:
    with pa.input_stream(path, compression="detect") as stream:
        sample = stream.read(_SAMPLE)
    size = Path(path).stat().st_size * (_PACKED if Path(path).suffix.lower() in COMPRESSED else 1)
    lines = max(sample.count(b"\n"), 1)
    first = sample.partition(b"\n")[0]
    columns = 1 + max(first.count(mark) for mark in (b",", b"\t", b";", b"|"))
    return int(size / len(sample) * lines) if sample else 0, columns
