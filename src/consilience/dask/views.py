"""What the view methods on blocks share: reading views in row blocks, the fit, clusters of embedded rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience._support.errors import InputError, InputTypeError
from consilience._support.sklearn import fit_context, random_source
from consilience._support.threads import one_thread
from consilience.dask.blocks import is_dask_array, load, reading
from consilience.dask.engine import Engine, engine_for
from consilience.dask.rows import BlockArray, dask_array, delayed_calls
from consilience.multiview.kernels import nearest
from consilience.multiview.rows import cluster_rows, shares_by_distance, unit_rows

# Rows on which k-means runs. More are clustered by those: every so many-th row, and the nearest centres.
MAX_ROWS = 10_000_000


class ViewRows(NamedTuple):
    """A block: tables with zeros in absent rows, and which rows are present."""

    number: int
    names: tuple[str, ...]
    arrays: list[np.ndarray]
    observed: np.ndarray


class ViewBlocks(NamedTuple):
    """Views in row blocks: every piece has a table for each view."""

    pieces: list[Any]
    names: tuple[str, ...]
    is_dask: bool
    engine: Engine

    def reduce(self, step: str, function: Any, merge: Any, *shared: Any) -> Any:
        """``merge`` of ``function(block, *shared)`` over all blocks."""
        return self.engine.reduce(step, _of_views, merge, self.pieces, self.names, function, *shared)

    def lazily(
        self, name: str, sizes: Sequence[int], dtype: Any, tail: tuple[int, ...], function: Any, *shared: Any
    ) -> Any:
        """``function(block, *shared)`` of all blocks as a dask array, or block by block."""
        given = (self.names, function, *shared)
        if not self.is_dask:
            return BlockArray(name, self.engine, self.parts, sizes, _of_views, given)
        return dask_array(delayed_calls(self.pieces, _of_views, given), sizes, dtype, tail)

    def parts(self) -> list[Any]:
        """What a pass goes through."""
        return self.pieces


def read_views(X: Any) -> ViewBlocks:
    """Blocks of a list or dict of dask arrays, one per view, or of a list of blocks, each such a list or dict
    of arrays."""
    names, tables = _named(X)
    if tables and all(is_dask_array(table) for table in tables):
        rows = tables[0].chunks[0]
        for name, table in zip(names, tables, strict=True):
            if table.ndim != 2 or table.shape[0] != tables[0].shape[0]:
                raise InputError(
                    f"view {name!r} has the shape {table.shape}, the first has {tables[0].shape}.",
                    hint="every view is a table with the same rows; an absent row is NaN.",
                )
        columns = [list(table.rechunk({0: rows, 1: -1}).to_delayed().ravel()) for table in tables]
        return ViewBlocks(list(zip(*columns, strict=True)), names, True, engine_for("views"))
    kinds = list | tuple | Mapping
    if tables and not isinstance(X, Mapping) and all(isinstance(block, kinds) for block in tables):
        names = _named(tables[0])[0]
        pieces = [_in_order(block, names) for block in tables]
        for number, piece in enumerate(pieces):
            if any(table is None for table in piece):
                raise InputError(
                    f"block {number} has no table for some of the views {list(names)}.",
                    hint="every block has a table for every view; an absent row is NaN.",
                )
        return ViewBlocks(pieces, names, False, engine_for("list"))
    raise InputTypeError(
        f"cannot read views in blocks from {type(X).__name__}.",
        hint="give a list or dict of dask arrays, one per view, or a list of blocks, each a list or dict of "
        "arrays.",
    )


def _named(X: Any) -> tuple[tuple[str, ...], list[Any]]:
    tables = list(X.values()) if isinstance(X, Mapping) else list(X)
    return tuple(map(str, X if isinstance(X, Mapping) else range(len(tables)))), tables


def _in_order(block: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The tables of a block, one for each of these views; None for one that a dict does not have."""
    given, tables = _named(block)
    if not isinstance(block, Mapping):
        return tuple(tables)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(
            f"there is no view {unknown[0]!r}, only {list(names)}.",
            hint="name the views as in the fitted table.",
        )
    known = dict(zip(given, tables, strict=True))
    return tuple(known.get(name) for name in names)


def load_views(piece: Any, number: int, names: tuple[str, ...]) -> ViewRows:
    """The tables of a block."""
    return reading(number, None, lambda: ViewRows(number, names, *_load(piece, names)))


def _load(piece: Any, names: tuple[str, ...]) -> tuple[list[np.ndarray], np.ndarray]:
    arrays = [_numbers(load(table), (*names, "?")[min(v, len(names))]) for v, table in enumerate(piece)]
    if len(arrays) != len(names) or len({len(array) for array in arrays}) != 1:
        raise InputError(
            f"it has tables of {[len(array) for array in arrays]} rows for the views {list(names)}.",
            hint="every block has a table for every view, with the same rows.",
        )
    observed = np.column_stack([~np.isnan(array).all(axis=1) for array in arrays])
    for name, array, present in zip(names, arrays, observed.T, strict=True):
        array[~present] = 0.0
        strange = np.flatnonzero(~np.isfinite(array).all(axis=1))
        if len(strange):
            raise InputError(
                f"row {strange[0]} of view {name!r} is not finite and not absent either.",
                hint="a row that is absent is NaN throughout; single cells are filled in where views are "
                "clustered in memory.",
            )
    nowhere = np.flatnonzero(~observed.any(axis=1))
    if len(nowhere):
        raise InputError(
            f"row {nowhere[0]} is in no view.", hint="leave out rows that nothing is known about."
        )
    return arrays, observed


def _numbers(table: Any, name: str) -> np.ndarray:
    try:
        return np.array(table, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"view {name!r} holds something that is no number: {error}.",
            hint="give numbers in blocks; in memory, consilience.PSE and others read columns of any kind.",
        ) from error


def _of_views(piece: Any, number: int, names: tuple[str, ...], function: Any, *shared: Any) -> Any:
    return function(load_views(piece, number, names), *shared)


Embed = Callable[[ViewRows], np.ndarray]


def _unit_rows(block: ViewRows, embed: Embed, stride: int) -> np.ndarray:
    return unit_rows(embed(block)[::stride])


def _nearest(block: ViewRows, embed: Embed, centers: np.ndarray) -> np.ndarray:
    rows = embed(block)
    return nearest(rows, centers).astype(np.int64) if len(rows) else np.empty(0, dtype=np.int64)


class ViewBlocksMixin:
    """Fits a view method on row blocks: embeds the rows and runs k-means on them.

    The method itself is ``_solve_blocks(blocks, rng)``. Its result has ``sizes`` of the blocks,
    ``n_features`` of the views, ``embed``, which gives the embedded rows of a block, ``width`` of those, and
    ``extend``, which does it for new rows; ``_keep`` keeps what else it has.
    """

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self: Any, X: Any, y: Any = None) -> Any:
        """Cluster the instances.

        Parameters
        ----------
        X : list or dict of dask arrays, or list of blocks
            The table of every view; an absent row is NaN. A block is a list or dict of arrays.
        y : ignored
            There for scikit-learn's interface.
        """
        blocks = read_views(X)
        rng = random_source(self.random_state)
        with one_thread():  # the same answer whatever the threads
            found = self._solve_blocks(blocks, rng)
            stride = -(-sum(found.sizes) // MAX_ROWS)
            rows = blocks.reduce("embedding", _unit_rows, np.concatenate, found.embed, stride)
            clusters = cluster_rows(rows, self.n_clusters, n_init=self.n_init, rng=rng)
        self.view_names_, self.n_features_per_view_ = blocks.names, found.n_features
        self.n_features_in_ = sum(found.n_features)
        self._centers, self._extend = clusters.centers[self._answer(clusters.labels)], found.extend
        self._keep(found)
        sizes, embed = found.sizes, found.embed
        self.embedding_ = blocks.lazily("embedding", sizes, float, (found.width,), embed)
        self.labels_ = blocks.lazily("labels", sizes, np.int64, (), _nearest, embed, self._centers)
        return self

    def predict(self: Any, X: Any, *, mask: Any = None) -> np.ndarray:
        """Clusters of new instances, in memory, from whichever views they have.

        Parameters
        ----------
        X : list or dict of arrays
            The tables of the new instances, one per view; an absent row is NaN. A dict may leave views out, a
            list has None for them.
        mask : array of bool of shape (n_new, n_views), optional
            False where the instance is absent from the view.
        """
        h = self._embed(X, mask)
        return nearest(h, self._centers).astype(np.int64) if len(h) else np.empty(0, dtype=np.int64)

    def predict_proba(self: Any, X: Any, *, mask: Any = None) -> np.ndarray:
        """Shares of the clusters for new instances, in memory: one over the squared distance to centres.

        Parameters
        ----------
        X, mask
            As in `predict`.
        """
        return shares_by_distance(unit_rows(self._embed(X, mask)), self._centers)

    def fit_transform(self: Any, X: Any, y: Any = None) -> Any:
        """Fit, and the places of all rows in the embedding: a lazy collection.

        Parameters
        ----------
        X : views in blocks
            As in `fit`.
        y : ignored
            There for scikit-learn's interface.
        """
        return self.fit(X).embedding_

    def _embed(self: Any, X: Any, mask: Any) -> np.ndarray:
        tables = _in_order(X, self.view_names_)
        n = next((len(table) for table in tables if table is not None), 0)
        widths = self.n_features_per_view_
        piece = [np.full((n, d), np.nan) if x is None else x for x, d in zip(tables, widths, strict=True)]
        if mask is not None:
            seen = np.asarray(mask, dtype=bool)
            piece = [np.where(seen[:, [v]], load(x), np.nan) for v, x in enumerate(piece)]
        return np.asarray(self._extend(load_views(piece, 0, self.view_names_)))
