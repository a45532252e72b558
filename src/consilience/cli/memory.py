"""Whether a table fits in memory, before any of it is read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pa_dataset

from consilience import _memory
from consilience._errors import InputError
from consilience._files import is_special
from consilience.cli.errors import UsageError
from consilience.cli.files import COMPRESSED, STDIO, Source, kind_of

# Bytes that `fuse` takes at its peak for a label and for a row with its id, and `cluster` for a feature.
A_LABEL, A_ROW, A_FEATURE = 30, 200, 60
_SAMPLE = 1 << 16  # bytes of a text file from which its rows are estimated
_PACKED = 4  # how much larger text is than a compressed file of it


def require_memory_for_labels(paths: Sequence[str], source: Source) -> None:
    """Refuse tables of labels that do not fit."""
    in_blocks = "fuse reads Parquet in blocks by --engine blocks -o folder; elsewhere name fewer --columns."
    _require(paths, source, A_LABEL, in_blocks)


def require_memory_for_views(paths: Sequence[str], source: Source) -> None:
    """Refuse tables of features that do not fit."""
    _require(paths, source, A_FEATURE, "use fewer instances or features, or consilience.dask.APMC.")


def _require(paths: Sequence[str], source: Source, a_cell: int, hint: str) -> None:
    free = free_memory()
    if free is None:
        return
    sizes = [_size(path, source) for path in paths]
    needed = sum(rows * (A_ROW + columns * a_cell) for rows, columns in sizes)
    if needed > free:
        rows, columns = (max(size) for size in zip(*sizes, strict=True))
        raise UsageError(
            f"{rows:.2g} rows of {columns} columns take some {needed / 1e9:.3g} GB of memory, and "
            f"{free / 1e9:.3g} GB are free.",
            hint=f"{hint} CONSILIENCE_MEMORY=64G says how much may be used.",
        )


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
