"""Nearest neighbours of rows, dense or sparse, with squared Euclidean distances.

Up to 20 000 rows, and for sparse rows always, neighbours are exact, and the same to the last bit whatever the
threads, the order of the rows and the company in which a row is asked for: products of rows only say which
distances are worth taking, and these are taken term by term. More dense rows are looked for in a tree, if
they have few columns, or in cells with faiss, if it is installed: there, of a hundred neighbours a few are
others, hardly farther, and minutes become seconds. Distances have twelve digits everywhere.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.spatial import KDTree

from consilience._support.threads import one_thread
from consilience._support.warnings import warn
from consilience.core.blocks import run_blocks
from consilience.core.compiled import compiled

Matrix = Any  # a 2-D float array or a CSR array

# Up to so many rows dense ones are compared with all others.
EXACT_ROWS = 20_000
# More rows of so few columns are faster looked for in a tree than in cells.
_TREE_COLUMNS = 6
# Rows of a cell, in the mean, and how many cells are searched: a row is compared with 2048 others. With twice
# as many, ARI of planted clusters rose by .001 to .01, and that of digits not at all.
_CELL_ROWS, _PROBES = 256, 8
# This much times a number, less the difference to the number, is the number with 40 bits. Distances that are
# equal but for rounding are equal then.
_SHORTEN = 2.0**13 + 1.0
# Distances held at a time by a thread: 8 MB.
_BLOCK_ENTRIES = 2**20


class Nearest(NamedTuple):
    """For every row the nearest rows, nearest first, and their squared distances."""

    indices: np.ndarray
    squared_distances: np.ndarray


def nearest_neighbours(X: Matrix, n_neighbours: int, *, seed: int = 0) -> Nearest:
    """The nearest other rows of every row; see `NeighbourIndex`."""
    return NeighbourIndex(X, seed=seed).nearest(n_neighbours)


class NeighbourIndex:
    """Rows among which neighbours are looked for: their own and those of new rows.

    Rows at the same distance, such as texts without a common word, are tossed for, for every row anew: the
    first ones would become hubs. The tosses follow from the content of the two rows, so that the order of the
    rows does not matter, except between copies.

    `seed` is that of the cells. Cost: rows^2 x features, in cells rows x (2048 + rows / 256) x features.
    Memory: the rows, 8 MB a thread and the answer.
    """

    def __init__(self, X: Matrix, *, seed: int = 0) -> None:
        self._search: _Sparse | _Dense
        if sp.issparse(X):
            self._search = _Sparse(X)
        elif X.shape[0] <= EXACT_ROWS:
            self._search = _Dense(X)
        elif X.shape[1] <= _TREE_COLUMNS:
            self._search = _Tree(X)
        else:
            self._search = _Cells(X, seed) if _has_faiss() else _Dense(X)

    def nearest(self, n_neighbours: int, new: Matrix | None = None) -> Nearest:
        """The nearest other rows of every row, or the nearest rows of every new row, or all of them."""
        rows = self._search.rows
        asked = rows if new is None else self._search.read(new)
        n = asked.shape[0]
        m = min(n_neighbours, rows.shape[0] - (new is None))
        if m == 0:
            return _room(n, 0)
        if new is None:
            return self._search.nearest(asked, np.arange(n), self._search.toss, m)
        return self._search.nearest(asked, np.full(n, -1), _tosses(asked), m)


class _Dense:
    """Rows that are compared with all others."""

    def __init__(self, X: np.ndarray) -> None:
        self.rows = self.read(X)
        self.toss = _tosses(self.rows)

    @staticmethod
    def read(X: Matrix) -> np.ndarray:
        return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=float)

    def nearest(self, asked: np.ndarray, own: np.ndarray, toss: np.ndarray, m: int) -> Nearest:
        """The m nearest rows of every row that is asked for; of the rows that are its `own`, not itself."""
        # Far from the origin, differences of squared norms would lose what they are taken for.
        centre = self.rows.mean(axis=0)
        moved = self.rows - centre
        # What rounding can do to such a difference, in parts of the squared norms.
        slack = (3 * self.rows.shape[1] + 20) * np.finfo(float).eps
        square = (1.0 - slack) * np.einsum("ij,ij->i", moved, moved)
        right = np.vstack([-2.0 * moved.T, np.ones(len(moved)), square])
        found = _room(len(asked), m)

        def one(block: slice) -> None:
            x = asked[block] - centre
            square = (1.0 - slack) * np.einsum("ij,ij->i", x, x)
            least = np.column_stack([x, square, np.ones(len(x))]) @ right
            _smallest(
                least, asked[block], self.rows, toss[block], self.toss, own[block], True, *_part(found, block)
            )

        with one_thread("blas"):  # blocks have threads of their own
            run_blocks(one, len(asked), block_rows=max(1, _BLOCK_ENTRIES // len(self.rows)))
        return found


class _Structured(_Dense):
    """Very many rows: a structure says which few to compare a row with."""

    def __init__(self, X: np.ndarray) -> None:
        super().__init__(X)
        self._structure: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_structure": None}  # it can be made again

    def _build(self) -> Any:
        raise NotImplementedError

    def _candidates(self, asked: np.ndarray, m: int) -> np.ndarray:
        raise NotImplementedError

    def nearest(self, asked: np.ndarray, own: np.ndarray, toss: np.ndarray, m: int) -> Nearest:
        """Like `_Dense`; of several rows at the largest distance, any may have been left out."""
        found = _room(len(asked), m)

        def one(block: slice) -> None:
            near = self._candidates(asked[block], m + 1)
            near[near == own[block, None]] = -1
            apart = self.rows[near] - asked[block, None]
            squared = np.einsum("imj,imj->im", apart, apart)
            squared = np.where(near < 0, np.inf, _SHORTEN * squared - (_SHORTEN * squared - squared))
            order = np.lexsort(((toss[block, None] + self.toss[near]) % 1.0, squared))[:, :m]
            found.indices[block] = np.take_along_axis(near, order, axis=1)
            found.squared_distances[block] = np.take_along_axis(squared, order, axis=1)

        with one_thread():  # the same structure whatever the threads; blocks have their own
            if self._structure is None:
                self._structure = self._build()
            run_blocks(one, len(asked), block_rows=1024)
        if asked is self.rows:
            self._structure = None  # it is as large as the rows, and new ones may never come
        few = np.flatnonzero(np.isinf(found.squared_distances[:, -1]))  # too few candidates
        if len(few):
            found.indices[few], found.squared_distances[few] = super().nearest(
                asked[few], own[few], toss[few], m
            )
        return found


class _Tree(_Structured):
    """Rows of few columns: exact."""

    def _build(self) -> Any:
        return KDTree(self.rows)

    def _candidates(self, asked: np.ndarray, m: int) -> np.ndarray:
        near = self._structure.query(asked, np.arange(1, m + 1))[1]
        return np.where(near < len(self.rows), near, -1)


class _Cells(_Structured):
    """Rows of more columns: each is compared with those in the cells nearest to it."""

    def __init__(self, X: np.ndarray, seed: int) -> None:
        super().__init__(X)
        self._seed = seed
        # Single precision needs rows around the origin, of a size whose squares it can hold.
        self._centre = self.rows.mean(axis=0)
        self._size = max(np.abs(self.rows - self._centre).max(), np.finfo(float).tiny)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_centres"}

    def _build(self) -> Any:
        import faiss

        rows = self._single(self.rows)
        n, n_columns = rows.shape
        cells = faiss.IndexIVFFlat(faiss.IndexFlatL2(n_columns), n_columns, max(1, n // _CELL_ROWS))
        cells.cp.seed = self._seed % 2**31
        cells.cp.niter, cells.cp.max_points_per_centroid = 10, 64
        cells.train(rows)
        cells.add(rows)
        cells.nprobe = _PROBES
        return cells

    def _candidates(self, asked: np.ndarray, m: int) -> np.ndarray:
        import faiss

        faiss.omp_set_num_threads(1)  # of this thread
        return np.asarray(self._structure.search(self._single(asked), m)[1])

    def _single(self, rows: np.ndarray) -> np.ndarray:
        return ((rows - self._centre) / self._size).astype(np.float32)


class _Sparse:
    """Sparse rows, multiplied with all that share an entry."""

    def __init__(self, X: Any) -> None:
        self.rows = self.read(X)
        self._by_column = self.rows.tocsc()
        self._square = _squared_norms(self.rows)
        self.toss = _tosses(self.rows)

    @staticmethod
    def read(X: Matrix) -> sp.csr_array:
        rows = sp.csr_array(X, dtype=float)
        if not rows.has_canonical_format:
            rows = rows.copy()
            rows.sum_duplicates()
        return rows

    def nearest(self, asked: sp.csr_array, own: np.ndarray, toss: np.ndarray, m: int) -> Nearest:
        """The m nearest rows of every row that is asked for; of the rows that are its `own`, not itself."""
        columns, nothing = self._by_column, np.empty((0, 0))
        square = _squared_norms(asked)
        found = _room(asked.shape[0], m)

        def one(block: slice) -> None:
            squared = np.zeros((block.stop - block.start, self.rows.shape[0]))
            ends = asked.indptr[block.start : block.stop + 1]
            _sparse_products(
                asked.data, asked.indices, ends, columns.data, columns.indices, columns.indptr, squared
            )
            squared *= -2.0
            squared += square[block, None] + self._square
            np.maximum(squared, 0.0, out=squared)
            _smallest(
                squared, nothing, nothing, toss[block], self.toss, own[block], False, *_part(found, block)
            )

        run_blocks(one, asked.shape[0], block_rows=max(1, _BLOCK_ENTRIES // self.rows.shape[0]))
        return found


@compiled(reads=6)
def _smallest(least, asked, rows, toss, toss_of_rows, own, refine, indices, squared_distances):  # type: ignore[no-untyped-def]
    """The smallest distances of every line and where they are, the one to `own` left out.

    With `refine`, what is given in `least` are lower bounds, and distances are sums of squared differences.
    """
    n_asked, n = least.shape
    m = indices.shape[1]
    for i in range(n_asked):
        found, farthest = 0, np.inf
        for j in range(n):
            if least[i, j] > farthest or j == own[i]:
                continue
            distance = least[i, j]
            if refine:
                distance = 0.0
                for c in range(rows.shape[1]):
                    apart = asked[i, c] - rows[j, c]
                    distance += apart * apart
            distance = _SHORTEN * distance - (_SHORTEN * distance - distance)
            mine = (toss[i] + toss_of_rows[j]) % 1.0
            place = found  # m if there is no room: then the last has to be worse
            while place > 0 and (
                distance < squared_distances[i, place - 1]
                or (
                    distance == squared_distances[i, place - 1]
                    and mine < (toss[i] + toss_of_rows[indices[i, place - 1]]) % 1.0
                )
            ):
                if place < m:
                    indices[i, place] = indices[i, place - 1]
                    squared_distances[i, place] = squared_distances[i, place - 1]
                place -= 1
            if place < m:
                indices[i, place] = j
                squared_distances[i, place] = distance
                found = min(found + 1, m)
                if found == m:
                    farthest = (1.0 + 2.0**-38) * squared_distances[i, m - 1]


@compiled(reads=6)
def _sparse_products(data, columns, ends, data_by_column, rows, column_ends, out):  # type: ignore[no-untyped-def]
    """``out[i, j] += the product of line i and row j``, added up column by column."""
    for i in range(out.shape[0]):
        for p in range(ends[i], ends[i + 1]):
            value, column = data[p], columns[p]
            for q in range(column_ends[column], column_ends[column + 1]):
                out[i, rows[q]] += value * data_by_column[q]


def _squared_norms(rows: sp.csr_array) -> np.ndarray:
    """Added up in the order in which products are, so that the distance of copies is zero."""
    squares = sp.csr_array((rows.data**2, rows.indices, rows.indptr), rows.shape)
    return np.asarray(squares @ np.ones(rows.shape[1]))


def _tosses(rows: Matrix) -> np.ndarray:
    """A number from 0 to 1 for every row, drawn by its content; copies have numbers far apart."""
    direction = np.random.RandomState(0).standard_normal(rows.shape[1])
    content = (rows @ direction if sp.issparse(rows) else np.einsum("ij,j->i", rows, direction)) + 0.0
    mixed = content.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    order = np.argsort(content, kind="stable")
    first = np.searchsorted(content[order], content)
    copy = np.empty(len(content))
    copy[order] = np.arange(len(content)) - first[order]
    return np.asarray((mixed / 2.0**64 + copy * (np.sqrt(5.0) - 1.0) / 2.0) % 1.0)


def _room(n: int, m: int) -> Nearest:
    return Nearest(np.empty((n, m), np.int32), np.empty((n, m)))


def _part(found: Nearest, block: slice) -> Nearest:
    return Nearest(found.indices[block], found.squared_distances[block])


def _has_faiss() -> bool:
    if find_spec("faiss") is not None:
        return True
    warn(
        f"neighbours of more than {EXACT_ROWS} rows are looked for among all rows, because faiss is not "
        "installed: the time grows with their square.",
        hint="pip install 'consilience[neighbours]'",
    )
    return False
