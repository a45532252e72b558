"""A table of labels in blocks of rows: dask collections, Parquet files, or blocks that are given.

Everything behind this file sees a sequence of blocks and one function, `encode`, that turns a block into
integer codes and the labels they stand for, by the rules of :class:`consilience.Partitions`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from consilience._support.errors import InputError, InputTypeError
from consilience._support.optional import optional_import
from consilience.io.frames import read_memory
from consilience.io.pieces import Coded, Piece

# Row groups of a Parquet file are put together up to this many rows.
BLOCK_ROWS = 1_000_000


class ParquetPiece(NamedTuple):
    """Some row groups of a file."""

    path: str
    groups: tuple[int, ...]
    columns: tuple[str, ...]

    def __str__(self) -> str:
        first, last = self.groups[0], self.groups[-1]
        which = f"row group {first}" if first == last else f"row groups {first} to {last}"
        return f"file {self.path!r}, {which}"


@dataclass(eq=False, repr=False)
class Blocks:
    """A table of labels as blocks of rows, which can be gone through any number of times.

    Made by :func:`read_parquet`, and by the estimators from whatever they are given.

    Attributes
    ----------
    kind : {"parquet", "frame", "array", "list", "stream"}
        Where the blocks come from: Parquet files, a dask dataframe, a dask array, a list of blocks or a
        function that starts an iterator over them.
    ids : tuple of str
        Columns that are not labels and go along to the output.
    original : object
        What was given.
    """

    pieces: Any
    kind: str
    original: Any
    ids: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.pieces() if self.kind == "stream" else self.pieces)

    @property
    def parts(self) -> Any:
        """What a pass goes through: the list of the blocks, where there is one."""
        return self if self.kind == "stream" else self.pieces

    @property
    def n_blocks(self) -> int | None:
        """Number of blocks; None where only a pass over them tells."""
        return None if self.kind == "stream" else len(self.pieces)


def read_blocks(X: Any) -> Blocks:
    """Blocks of a dask dataframe or array, a Parquet file or folder, a list of blocks, or a function that
    returns an iterator over blocks."""
    if isinstance(X, Blocks):
        return X
    if isinstance(X, str | os.PathLike):
        return read_parquet(X)
    if is_dask_frame(X):
        return Blocks(list(X.to_delayed()), "frame", X)
    if is_dask_array(X):
        if X.ndim != 2:
            raise InputError(
                f"the dask array has {X.ndim} dimensions.", hint="one row per instance, one column per base."
            )
        return Blocks(list(X.rechunk({1: -1}).to_delayed().ravel()), "array", X)
    if isinstance(X, list | tuple) and X and all(np.ndim(block) == 2 for block in X):
        return Blocks(list(X), "list", X)
    if callable(X):
        return Blocks(X, "stream", X)
    raise InputTypeError(
        f"cannot read blocks of rows from {type(X).__name__}.",
        hint="give a dask dataframe or array, a Parquet file or folder, a list of arrays or frames, or a "
        "function that returns an iterator over them; a table in memory goes to the estimators of "
        "consilience itself, and an iterator can be gone through only once.",
    )


def read_parquet(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    ids: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    block_rows: int = BLOCK_ROWS,
) -> Blocks:
    """Blocks of Parquet files, by row groups.

    Parameters
    ----------
    path : path or list of paths
        A file, a folder of files (with suffix ``.parquet``, in the order of their names), or files.
    ids : str or sequence of str, default=()
        Columns that are not base clusterings; they are copied to the output of ``write_labels``.
    columns : sequence of str, optional
        The base clusterings; all columns but `ids` by default.
    block_rows : int, default=1_000_000
        Row groups are put together up to this many rows. A larger row group is a block of its own.
    """
    pq = optional_import("pyarrow.parquet", needed_for="reading Parquet files", extra="dask")
    ids = (ids,) if isinstance(ids, str) else tuple(ids)
    pieces: list[ParquetPiece] = []
    names: tuple[str, ...] | None = None
    for file in _files(path):
        try:
            with pq.ParquetFile(file) as opened:
                here = tuple(opened.schema_arrow.names)
                sizes = [opened.metadata.row_group(g).num_rows for g in range(opened.num_row_groups)]
        except Exception as error:  # pyarrow raises its own kinds and the operating system's
            raise InputError(
                f"file {str(file)!r} cannot be read: {error}.", hint="is it a Parquet file?"
            ) from error
        wanted = tuple(name for name in here if name not in ids) if columns is None else tuple(columns)
        lacking = [name for name in (*wanted, *ids) if name not in here]
        names = wanted if names is None else names
        if lacking or set(wanted) != set(names):
            strange = lacking[0] if lacking else next(iter(set(wanted) ^ set(names)))
            raise InputError(
                f"file {str(file)!r} and the others do not have the same columns: see {strange!r}.",
                hint="name the base clusterings by columns= and what else there is by ids=.",
            )
        pieces += [ParquetPiece(str(file), groups, names) for groups in _together(sizes, block_rows)]
    return Blocks(pieces, "parquet", path, ids)


def _files(path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    if not isinstance(path, str | os.PathLike):
        return [file for one in path for file in _files(one)]
    from consilience.io.formats import files_in  # which needs Arrow, as reading these files does

    path = Path(path)
    found = [Path(file) for file in files_in(str(path))[1]] if path.is_dir() else [path]
    if not found or not found[0].exists():
        raise FileNotFoundError(
            f"no Parquet file at {str(path)!r}. Hint: give a file, or a folder of .parquet files."
        )
    return found


def _together(sizes: list[int], block_rows: int) -> list[tuple[int, ...]]:
    """Consecutive row groups, as many as stay below the size of a block."""
    found: list[tuple[int, ...]] = []
    rows = 0
    for group, size in enumerate(sizes):
        fits = found and rows + size <= block_rows
        found.append((*found.pop(), group) if fits else (group,))
        rows = rows + size if fits else size
    return found


def is_dask_frame(X: Any) -> bool:
    """Whether it is a dask dataframe; dask is not imported to find out."""
    return "dask.dataframe" in sys.modules and type(X).__module__.startswith("dask.dataframe") and X.ndim == 2


def is_dask_array(X: Any) -> bool:
    """Whether it is a dask array; dask is not imported to find out."""
    return "dask.array" in sys.modules and type(X).__module__.startswith("dask.array")


# --- one block ----------------------------------------------------------------------------------------------


def load(piece: Any, columns: tuple[str, ...] | None = None) -> Any:
    """The table of a block; from Parquet, these columns."""
    if isinstance(piece, ParquetPiece):
        pq = optional_import("pyarrow.parquet", needed_for="reading Parquet files", extra="dask")
        with pq.ParquetFile(piece.path) as file:
            return file.read_row_groups(list(piece.groups), columns=list(columns or piece.columns))
    if hasattr(piece, "__dask_graph__"):
        return piece.compute(scheduler="synchronous")
    return piece


def reading(number: int, piece: Any, read: Callable[[], Any]) -> Any:
    """What `read` returns; an error in it says which block it was."""
    try:
        return read()
    except Exception as error:
        where = str(piece) if isinstance(piece, ParquetPiece) else f"block {number}"
        kind = type(error) if isinstance(error, ValueError | TypeError) else ValueError
        hint = "" if "Hint:" in str(error) else " Hint: is the block whole? Write it again, or leave it out."
        raise kind(f"{where} cannot be read: {error}.{hint}" if hint else f"{where}: {error}") from error


def read_piece(number: int, piece: Any) -> Piece:
    """The labels of a block as codes in its own terms: those of other blocks are not known here."""
    return reading(number, piece, lambda: _as_piece(load(piece)))


def _as_piece(table: Any) -> Piece:
    if hasattr(table, "reset_index"):
        table = table.reset_index(drop=True)  # ids may repeat from block to block
    if len(table) == 0:
        # The columns of an Arrow table are not their names.
        named = getattr(table, "column_names", getattr(table, "columns", range(table.shape[1])))
        return Piece({str(name): Coded(np.empty(0, dtype=np.int8), ()) for name in named}, None, 0)
    return next(read_memory(table).pieces())
