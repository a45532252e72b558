"""Nearest neighbours of the rows of a table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.lib.stride_tricks import sliding_window_view

Matrix = Any  # a 2-D float array or a CSR array

_CELLS = 2**24  # distances at once
_TIE = 1e-10  # squared distances that differ by less are equal, relative to the mean squared length


class Nearest(NamedTuple):
    """For every row the nearest rows, nearest first, and their squared distances."""

    indices: np.ndarray
    squared_distances: np.ndarray


def nearest_neighbours(X: Matrix, n_neighbours: int) -> Nearest:
    """The nearest other rows of every row; see `NeighbourIndex`."""
    return NeighbourIndex(X).nearest(n_neighbours)


class NeighbourIndex:
    """Rows among which neighbours are looked for: their own and those of new rows.

    Of rows at equal distances, such as texts without a common word, some are taken at random, but the same
    ones every time: the first ones would become hubs.

    Cost: all pairs, a block of them at a time.
    """

    def __init__(self, X: Matrix) -> None:
        self._rows, self._squares = X, _squares(X)

    def nearest(self, n_neighbours: int, new: Matrix | None = None) -> Nearest:
        """The nearest other rows of every row, or the nearest rows of every new row; all if there are few."""
        X, squares = self._rows, self._squares
        asked, own = (X, squares) if new is None else (new, _squares(new))
        (n, size), m = (asked.shape[0], len(squares)), min(n_neighbours, len(squares) - (new is None))
        transposed = X.T.tocsr() if sp.issparse(X) else X.T
        rng = np.random.RandomState(0)
        tosses = sliding_window_view(_TIE * squares.mean() * rng.random_sample(2 * size), size)
        shifts = rng.randint(0, size, n)
        found = Nearest(np.empty((n, m), dtype=np.int64), np.empty((n, m)))
        step = max(1, _CELLS // size)
        for start in range(0, n, step):
            rows = slice(start, min(n, start + step))
            products = asked[rows] @ transposed
            products = products.toarray() if sp.issparse(products) else products
            d = np.maximum(own[rows, None] + squares - 2.0 * products, 0.0)
            if new is None:
                d[np.arange(len(d)), np.arange(rows.start, rows.stop)] = np.inf
            tossed = d + tosses[shifts[rows]]
            near = np.argpartition(tossed, m - 1, axis=1)[:, :m]
            order = np.argsort(np.take_along_axis(tossed, near, axis=1), axis=1, kind="stable")
            found.indices[rows] = np.take_along_axis(near, order, axis=1)
            found.squared_distances[rows] = np.take_along_axis(d, found.indices[rows], axis=1)
        return found


def _squares(X: Matrix) -> np.ndarray:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))
