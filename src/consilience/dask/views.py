"""What the view methods on blocks share: reading views in row blocks, and clusters of embedded rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from consilience._errors import InputError, InputTypeError
from consilience.dask.blocks import is_dask_array, load, reading
from consilience.dask.engine import Engine
from consilience.multiview.rows import RowClusters, cluster_rows, unit_rows

# Rows on which k-means runs. More are clustered by those: every so many-th row, and the nearest centres.
MAX_ROWS = 10_000_000


class ViewBlocks(NamedTuple):
    """Views in row blocks: every piece has a table for each view."""

    pieces: list[Any]
    names: tuple[str, ...]
    is_dask: bool


class ViewRows(NamedTuple):
    """A block: tables with zeros in absent rows, and which rows are present."""

    arrays: list[np.ndarray]
    observed: np.ndarray


def read_views(X: Any) -> ViewBlocks:
    """Blocks of a list or dict of dask arrays, one per view, or of a list of blocks, each such a list or dict
    of arrays."""
    tables = list(X.values()) if isinstance(X, Mapping) else list(X)
    if tables and all(is_dask_array(table) for table in tables):
        names = tuple(map(str, X)) if isinstance(X, Mapping) else tuple(map(str, range(len(tables))))
        rows = tables[0].chunks[0]
        for name, table in zip(names, tables, strict=True):
            if table.ndim != 2 or table.shape[0] != tables[0].shape[0]:
                raise InputError(
                    f"view {name!r} has the shape {table.shape}, the first has {tables[0].shape}.",
                    hint="every view is a table with the same rows; an absent row is NaN.",
                )
        columns = [list(table.rechunk({0: rows, 1: -1}).to_delayed().ravel()) for table in tables]
        return ViewBlocks(list(zip(*columns, strict=True)), names, True)
    if (
        tables
        and not isinstance(X, Mapping)
        and all(isinstance(block, list | tuple | Mapping) for block in tables)
    ):
        first = tables[0]
        names = tuple(map(str, first)) if isinstance(first, Mapping) else tuple(map(str, range(len(first))))
        pieces = [tuple(block.values()) if isinstance(block, Mapping) else tuple(block) for block in tables]
        return ViewBlocks(pieces, names, False)
    raise InputTypeError(
        f"cannot read views in blocks from {type(X).__name__}.",
        hint=(
            "give a list or dict of dask arrays, one per view, or a list of blocks, each a list or dict of "
            "arrays."
        ),
    )


def load_views(piece: Any, number: int, names: tuple[str, ...]) -> ViewRows:
    """The tables of a block."""
    return reading(number, None, lambda: _load_views(piece, names))


def _load_views(piece: Any, names: tuple[str, ...]) -> ViewRows:
    arrays = [np.array(load(table), dtype=float) for table in piece]
    if len(arrays) != len(names) or len({len(array) for array in arrays}) != 1:
        raise InputError(
            f"it has tables of {[len(array) for array in arrays]} rows for the views {list(names)}.",
            hint="every block has a table for every view, with the same rows.",
        )
    observed = np.empty((len(arrays[0]), len(arrays)), dtype=bool)
    for v, array in enumerate(arrays):
        blank = np.isnan(array)
        observed[:, v] = ~blank.all(axis=1)
        array[~observed[:, v]] = 0.0
        strange = np.flatnonzero(~np.isfinite(array).all(axis=1))
        if len(strange):
            raise InputError(
                f"row {strange[0]} of view {names[v]!r} is not finite and not absent either.",
                hint="a row that is absent is NaN throughout.",
            )
    nowhere = np.flatnonzero(~observed.any(axis=1))
    if len(nowhere):
        raise InputError(
            f"row {nowhere[0]} is in no view.", hint="leave out rows that nothing is known about."
        )
    return ViewRows(arrays, observed)


Embed = Callable[[Any, int, Any], np.ndarray]


def cluster_blocks(
    engine: Engine,
    pieces: list[Any],
    embed: Embed,
    given: Any,
    n: int,
    n_clusters: int,
    n_init: int,
    rng: np.random.RandomState,
) -> RowClusters:
    """k-means on the embedded rows of all blocks, or on a sample of them if there are too many."""
    stride = -(-n // MAX_ROWS)
    rows = engine.reduce("embedding", _unit_rows, np.concatenate, pieces, embed, given, stride)
    return cluster_rows(rows, n_clusters, n_init=n_init, rng=rng)


def _unit_rows(piece: Any, number: int, embed: Embed, given: Any, stride: int) -> np.ndarray:
    return unit_rows(embed(piece, number, given)[::stride])


def nearest_center(piece: Any, number: int, embed: Embed, given: Any, centers: np.ndarray) -> np.ndarray:
    """The cluster of every row of a block."""
    return pairwise_distances_argmin(unit_rows(embed(piece, number, given)), centers).astype(np.int64)


class ViewArray:
    """Values of all rows, a block at a time; see `BlockArray`."""

    def __init__(self, engine: Engine, pieces: list[Any], function: Any, given: tuple[Any, ...]) -> None:
        self._engine, self._pieces, self._function, self._given = engine, pieces, function, given

    def __iter__(self) -> Any:
        for number, piece in enumerate(self._pieces):
            yield self._engine.one(self._function, piece, number, *self._given)

    def compute(self) -> np.ndarray:
        """All values as one array."""
        return np.concatenate(list(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.compute(), dtype=dtype)


def lazy_rows(
    engine: Engine,
    blocks: ViewBlocks,
    sizes: Sequence[int],
    function: Any,
    given: tuple[Any, ...],
    dtype: Any,
    width: int | None = None,
) -> Any:
    """``function(piece, number, *given)`` of all blocks as a dask array, or block by block."""
    if not blocks.is_dask:
        return ViewArray(engine, blocks.pieces, function, given)
    import dask.array as da
    from dask.delayed import delayed

    shared = [delayed(value, traverse=False) for value in given]
    tail = () if width is None else (width,)
    return da.concatenate(
        [
            da.from_delayed(delayed(function, pure=False)(piece, number, *shared), (size, *tail), dtype)
            for number, (piece, size) in enumerate(zip(blocks.pieces, sizes, strict=True))
        ]
    )
