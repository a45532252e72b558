"""Tables out: CSV, Excel, Parquet and Arrow by suffix, all outputs together or none."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from consilience._support.errors import UsageError
from consilience._support.files import Outputs
from consilience.io import arrow, parquet
from consilience.io.csv import CsvWriter
from consilience.io.excel import ExcelWriter, split_sheet
from consilience.io.formats import kind_of
from consilience.io.tables import STDIO, suffix_of

ROWS_A_PIECE = 1_000_000


def spans(n_rows: int) -> Iterator[slice]:
    """Rows that are written at a time."""
    for start in range(0, n_rows, ROWS_A_PIECE):
        yield slice(start, min(start + ROWS_A_PIECE, n_rows))


def label_array(labels: Sequence[Any]) -> pa.Array:
    """Labels as Arrow holds them: of one type, or as text."""
    if len({type(label) for label in labels}) == 1:
        for kind in (None, pa.uint64()):  # whole numbers from 2^63 on have to be asked for
            with suppress(OverflowError, pa.ArrowException):
                return pa.array(labels, kind)
    return pa.array([str(label) for label in labels], pa.string())


def check_output(path: str) -> None:
    """Refuse a path that could not be written, before the work is done rather than after."""
    if path == STDIO:
        return
    require_folder(path)
    _kind_of_output(path)


def require_folder(path: str) -> None:
    """Refuse a path where no file can be."""
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            name = Path(path).name
            raise UsageError(f"the name {name!r} is too long.", hint="give a shorter name.") from None
    if Path(path).is_dir():
        raise UsageError(f"{path!r} is a folder.", hint="name a file in it.")
    folder = Path(path).parent
    if not folder.is_dir():
        raise UsageError(f"there is no folder {str(folder)!r} to write to.", hint=f"mkdir -p {folder}")


def write_table(
    outputs: Outputs,
    path: str,
    n_rows: int,
    batches: Iterable[dict[str, Any]],
    told: Callable[[str, int, int], None],
    *,
    excel_csv: bool = False,
    private: bool = False,
) -> None:
    """Write a table in batches of columns, CSV, Excel, Parquet or Arrow by suffix.

    With `excel_csv`, a CSV file is one that Excel opens right in a country of decimal commas. With `private`,
    nobody else may read a new file.
    """
    kind = "csv" if path == STDIO else _kind_of_output(path)
    with opened(outputs, path, private=private) as file:
        writer: Any = None
        done = 0
        try:
            for columns in batches:
                batch = pa.record_batch({name: _array(values) for name, values in columns.items()})
                writer = writer or _writer(kind, path, file, batch.schema, excel_csv)
                writer.write_batch(batch)
                done += batch.num_rows
                told(f"writing {path}", done, n_rows)
        finally:
            if writer is not None:
                writer.close()


def _array(values: Any) -> pa.Array:
    if getattr(getattr(values, "dtype", None), "kind", "") == "T":  # ids; older versions of Arrow know it not
        values = values.astype(object)
    return values if isinstance(values, pa.Array) else pa.array(values)


def _writer(kind: str, path: str, file: IO[bytes], schema: pa.Schema, excel_csv: bool) -> Any:
    if kind == "parquet":
        return parquet.Writer(file, schema)
    if kind == "arrow":
        return arrow.Writer(file, schema)
    if kind == "excel":
        return ExcelWriter(path, file, schema)
    return CsvWriter(path, file, schema, excel=excel_csv)


def write_text(outputs: Outputs, path: str, text: str) -> None:
    """A text file; - is standard output."""
    with opened(outputs, path) as file:
        file.write(text.encode(errors="replace"))  # half a surrogate pair has no bytes


def _kind_of_output(path: str) -> str:
    kind = kind_of(path)
    if split_sheet(path)[1] is not None:
        raise UsageError(
            f"{path!r} is a sheet, and only whole files can be written.", hint="name an .xlsx file."
        )
    if suffix_of(path) != Path(path).suffix.lower() and (Path(path).suffix.lower() != ".gz" or kind != "csv"):
        raise UsageError(
            f"cannot write {path!r}.", hint="the only compressed files that can be written are .csv.gz."
        )
    return kind


@contextmanager
def opened(outputs: Outputs, path: str, *, private: bool = False) -> Iterator[IO[bytes]]:
    """A file of the outputs, or standard output."""
    if path != STDIO:
        with outputs.open(path, private=private) as file:
            yield file
        return
    if sys.stdout is None:
        raise UsageError("standard output is closed.", hint="name a file.", command="give -o a file name.")
    try:
        yield sys.stdout.buffer
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has enough, as in `| head`. Python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
