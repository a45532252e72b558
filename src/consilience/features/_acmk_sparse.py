"""ACMK without n x n matrices: the consensus graph lives on pairs of near neighbours only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator

from consilience.core import hot
from consilience.core.anchors import nearest_anchors
from consilience.core.blocks import map_blocks, run_blocks
from consilience.core.discretize import fill_empty_clusters, label_sums
from consilience.core.eigen import DENSE, Eigenpairs, leading_eigenpairs
from consilience.core.simplex import minimize_quadratic
from consilience.core.tables import gather, scatter

# Up to this many rows every distance is computed; beyond, only those to rows in nearby cells.
_EXACT_ROWS = 16_384
# Cells searched for the neighbours of a row: its own and the nearest other.
_PROBES = 2
# A cell with more than this many times the average is cut: n equal rows must not cost n^2 distances.
_LARGEST_CELL = 4
# Refinement ends when fewer than this share of all labels move, or after so many steps: more of them change
# little, and the filter would smooth differences away.
_MOVED, _MAX_STEPS = 1e-2, 3
# Weight of the co-association of all pairs next to that of neighbours in the spectral ending: enough to tie
# loose ends to the clusters their base clusterings put them in, too little to be seen in the averages.
_TIE = 0.005
_EIGEN_TOL = 1e-4


class SparseResult(NamedTuple):
    """What `acmk_sparse` learned."""

    codes: np.ndarray  # the refined G^(m), one column per base clustering
    weights: np.ndarray  # alpha
    graph: sp.csr_array  # W
    objective: np.ndarray  # the k-means terms after every step
    n_iter: int


def acmk_sparse(
    x: np.ndarray,
    codes: np.ndarray,
    support: sp.csr_array,
    *,
    order: int,
    cumulative: bool,
    refine: bool,
    max_iter: int,
    progress: Callable[[int, float], None] | None = None,
) -> SparseResult:
    r"""Refined base clusterings on a filter that passes between neighbours on which they agree.

    .. math::
        \min \; \sum_m \|C^k X - G^{(m)} F^{(m)}\|_F^2, \quad
        W = K \circ \sum_m \alpha_m G^{(m)} G^{(m)T}, \quad C = (I + D^{-1/2} W D^{-1/2}) / 2

    K marks pairs of which one is among the nearest of the other, and the pairs (i, i). It is
    the published problem (6) for large lambda, which ties W to the co-association, on fewer pairs. Steps
    alternate: filter, one Lloyd step of every base clustering, the graph. Nothing proves that the objective
    falls, because the filter changes with the labels; it ends when hardly any label moves.

    Symbols: X -> x; G^(m) -> codes[:, m]; K -> support; k -> order; W -> graph; alpha -> weights.
    Cost: a step takes features x (order x pairs + rows x bases x clusters) operations. Memory: a few tables
    like x; 16 bytes and one more for every base clustering a pair.
    """
    n_bases = codes.shape[1]
    offsets = np.concatenate([[0], np.cumsum(codes.max(axis=0) + 1)])
    weights = np.full(n_bases, 1.0 / n_bases)
    graph = _mix(support, _agreements(support, codes), weights)
    objective = []
    for iteration in range(min(max_iter, _MAX_STEPS)):
        z = filtered(graph, x, order, cumulative)
        refined = _lloyd_step(z, codes, offsets) if refine else codes
        moved = np.count_nonzero(refined != codes)
        codes = refined
        objective.append(_within(z, codes, offsets))
        if progress:
            progress(iteration + 1, objective[-1])
        if moved:
            agree = _agreements(support, codes)
            weights = _update_weights(graph, agree)
            graph = _mix(support, agree, weights)
        if moved <= _MOVED * codes.size:
            break
    return SparseResult(codes, weights, graph, np.array(objective), iteration + 1)


def precise_enough(x: np.ndarray) -> np.ndarray:
    """Single precision for many rows: half the time and memory, and no distance there depends on the rest."""
    return x.astype(np.float32) if len(x) > _EXACT_ROWS else x


# --- pairs of neighbours ------------------------------------------------------------------------------------


def neighbour_pairs(
    x: np.ndarray, n_neighbors: int, rng: np.random.RandomState
) -> tuple[np.ndarray, sp.csr_array]:
    """An order of the rows, and K in that order, symmetric: ones at (i, i) and where one of a pair is among
    the nearest of the other.

    Many rows are put in an order in which neighbours are close together: what a product with the graph
    reads is then in the processor's cache. The search takes about rows^1.5 x features operations.
    """
    n = len(x)
    order = np.arange(n)
    # One more than asked for: a row is its own nearest, unless there are many copies of it.
    if n <= _EXACT_ROWS:
        nearest = nearest_anchors(x, x, n_neighbors + 1).columns
        rows, columns = np.repeat(order, nearest.shape[1]), nearest.ravel()
    else:
        order, starts, centres = _cells(x, rng)
        rows, columns = _nearest_in_cells(x[order], starts, centres, n_neighbors + 1)
    directed = sp.csr_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(n, n))
    support = directed.maximum(directed.T).maximum(sp.eye_array(n, dtype=np.int8)).tocsr()
    support.sort_indices()
    return order, support


def as_given(graph: sp.csr_array, order: np.ndarray) -> sp.csr_array:
    """The graph of rows that were put in `order`, for the rows as they were given."""
    rows = order.astype(np.int32)
    given = sp.csr_array((graph.data, (rows[_rows(graph)], rows[graph.indices])), shape=graph.shape)
    given.sort_indices()  # not all versions of SciPy have done so
    return given


def _nearest_in_cells(
    x: np.ndarray, starts: np.ndarray, centres: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a row and its nearest among the rows of its cell and of the nearest other cells."""
    around = nearest_anchors(centres, centres, _PROBES).columns
    norms = np.einsum("pd,pd->p", x, x)

    def one(cells: slice) -> list[tuple[np.ndarray, np.ndarray]]:
        pairs = []
        for cell in range(cells.start, cells.stop):
            rows = np.arange(starts[cell], starts[cell + 1])
            candidates = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in around[cell]])
            columns = np.empty((len(rows), min(k, len(candidates))), dtype=np.int64)
            # The row's own norm is the same for all candidates and left out.
            hot.smallest(x[rows] @ x[candidates].T, norms[candidates], columns)
            pairs.append((np.repeat(rows, columns.shape[1]), candidates[columns.ravel()]))
        return pairs

    parts = [pair for pairs in map_blocks(one, len(centres), block_rows=16) for pair in pairs]
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([columns for _, columns in parts])


def _cells(x: np.ndarray, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows grouped into about 3 sqrt(n) cells: the rows in their order, where cells start, and their means.

    Cells are those of two Lloyd steps on a sample; large ones are cut at random.
    """
    n = len(x)
    n_cells = int(3.0 * np.sqrt(n))
    sample = x[rng.permutation(n)[: 8 * n_cells]]
    centres = sample[:n_cells]
    for _ in range(2):
        _, piece = np.unique(_nearest_centre(sample, centres), return_inverse=True)
        centres = _means(sample, piece)
    shuffled = rng.permutation(n)
    cell = _nearest_centre(x, centres)[shuffled]
    order = np.argsort(cell, kind="stable")
    sizes = np.bincount(cell)
    # Where a shuffled row comes within its cell says to which piece of a large cell it goes.
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    _, piece = np.unique(cell * n + place // (_LARGEST_CELL * n // n_cells), return_inverse=True)
    order = shuffled[np.argsort(piece, kind="stable")]
    starts = np.concatenate([[0], np.cumsum(np.bincount(piece))])
    return order, starts, _means(x[shuffled], piece)


def _nearest_centre(x: np.ndarray, centres: np.ndarray) -> np.ndarray:
    half_norms = 0.5 * np.einsum("qd,qd->q", centres, centres)
    out = np.empty(len(x), dtype=np.int64)

    def one(rows: slice) -> None:
        out[rows] = (x[rows] @ centres.T - half_norms).argmax(axis=1)

    run_blocks(one, len(x), block_rows=1024)
    return out


def _means(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    sizes = np.bincount(labels)
    return (label_sums(x, np.ones(len(x)), labels, len(sizes)) / sizes[:, None]).astype(x.dtype)


# --- the graph ----------------------------------------------------------------------------------------------


def _agreements(support: sp.csr_array, codes: np.ndarray) -> np.ndarray:
    """Which base clusterings put both rows of a pair in one cluster, (bases, pairs)."""
    out = np.empty((codes.shape[1], support.nnz), dtype=bool)
    # What is read at random should stay in the cache.
    narrow = codes.astype(np.min_scalar_type(int(codes.max())))
    hot.agree(narrow, support.indptr, support.indices, out)
    return out


def _rows(graph: sp.csr_array) -> np.ndarray:
    return np.repeat(np.arange(graph.shape[0], dtype=np.int32), np.diff(graph.indptr))


def _mix(support: sp.csr_array, agree: np.ndarray, weights: np.ndarray) -> sp.csr_array:
    """W = K o sum_m alpha_m G^(m) G^(m)T."""
    data = np.zeros(agree.shape[1])
    for one, weight in zip(agree, weights, strict=True):
        data += weight * one
    return sp.csr_array((data, support.indices, support.indptr), shape=support.shape)


def _update_weights(graph: sp.csr_array, agree: np.ndarray) -> np.ndarray:
    """Eq. (18) on the support: the mixture of the new base clusterings nearest to the last graph."""
    upper = [[np.count_nonzero(p & q) for q in agree[: i + 1]] for i, p in enumerate(agree)]
    gram = np.array([[upper[max(i, j)][min(i, j)] for j in range(len(agree))] for i in range(len(agree))])
    linear = np.array([graph.data @ one for one in agree])
    return minimize_quadratic(gram.astype(float), linear)


# --- filtering and refining ---------------------------------------------------------------------------------


def filtered(graph: sp.csr_array, x: np.ndarray, order: int, cumulative: bool) -> np.ndarray:
    """C^k X, or (C + C^2 + ... + C^k) X, with C = (I + D^-1/2 W D^-1/2) / 2."""
    normal = normalised(graph, x.dtype)
    z, total = x, np.zeros_like(x)
    for _ in range(order):
        z = 0.5 * (z + normal @ z)
        if cumulative:
            total += z
    return total if cumulative else z


def normalised(graph: sp.csr_array, dtype: Any) -> sp.csr_array:
    """D^-1/2 W D^-1/2."""
    # W_ii = 1: no row is without links.
    root = 1.0 / np.sqrt(graph.sum(axis=1))
    data = graph.data * np.repeat(root, np.diff(graph.indptr)) * root[graph.indices]
    return sp.csr_array((data.astype(dtype), graph.indices, graph.indptr), shape=graph.shape)


def _lloyd_step(z: np.ndarray, codes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Labels of the nearest of the current centres, for all base clusterings; no cluster is emptied."""
    sums, sizes = _sums(z, codes, offsets)
    centres = (sums / sizes[:, None]).astype(z.dtype)
    half_norms = 0.5 * np.einsum("qd,qd->q", centres, centres)
    refined = np.empty_like(codes)

    def one(rows: slice) -> None:
        hot.largest(z[rows] @ centres.T - half_norms, offsets, refined[rows])

    run_blocks(one, len(z))
    for m, k in enumerate(np.diff(offsets).tolist()):
        if len(np.unique(refined[:, m])) < k:
            away = np.sum((z - centres[offsets[m] + refined[:, m]]) ** 2, axis=1)
            refined[:, m] = fill_empty_clusters(refined[:, m], -away, k)
    return refined


def _within(z: np.ndarray, codes: np.ndarray, offsets: np.ndarray) -> float:
    """sum_m ||Z - G^(m) F^(m)||^2 with F^(m) at its best: the squares minus those of the means."""
    sums, sizes = _sums(z, codes, offsets)
    squares = codes.shape[1] * np.einsum("pd,pd->", z, z, dtype=np.float64)
    return float(squares - np.sum(sums * sums / sizes[:, None]))


def _sums(z: np.ndarray, codes: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ones = np.ones(len(z))
    return scatter(codes, offsets, ones, z), scatter(codes, offsets, ones, ones[:, None])[:, 0]


# --- the spectral ending ------------------------------------------------------------------------------------


def leading_vectors(graph: sp.csr_array, codes: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """Eigenvectors of the k largest eigenvalues of D^-1/2 W' D^-1/2, W' = W + tie x co-association.

    The neighbour graph of real data has small components of its own, whose indicators would take the place
    of the clusters. The co-association of all pairs, as the product of thin indicators, ties them together:
    what is left are at most as many components as a base clustering has clusters. Their eigenvectors are
    known. The iteration for the others stops early: labels do not depend on the last digits, and the gaps of
    a graph of many rows are small.
    """
    n = len(codes)
    offsets = np.concatenate([[0], np.cumsum(codes.max(axis=0) + 1)])
    mass = np.repeat(weights, np.diff(offsets))[:, None]
    ones = np.ones(n)

    def everyone(v: np.ndarray) -> np.ndarray:
        return gather(codes, offsets, mass * scatter(codes, offsets, ones, v))

    near, far = graph.sum(axis=1), everyone(ones[:, None])[:, 0]
    tie = _TIE / (1.0 - _TIE) * near.sum() / far.sum()
    root = np.sqrt(near + tie * far)

    def normalised(v: np.ndarray) -> np.ndarray:
        v = v.reshape(n, -1) / root[:, None]
        return (graph @ v + tie * everyone(v)) / root[:, None]

    if n <= DENSE:
        return leading_eigenpairs(normalised(np.eye(n)), k)[1]
    known = _of_components(graph, codes, weights, root)
    operator = LinearOperator((n, n), matvec=normalised, matmat=normalised, dtype=np.float64)
    return leading_eigenpairs(operator, k, known=known, tol=_EIGEN_TOL).vectors


def _of_components(
    graph: sp.csr_array, codes: np.ndarray, weights: np.ndarray, root: np.ndarray
) -> Eigenpairs:
    """The eigenvectors of eigenvalue one: D^1/2 times the indicator of a component, each of norm one."""
    parts = connected_components(graph, directed=False)[1]
    # Components of neighbours are joined where a base clustering has a cluster in both.
    for column in codes.T[weights > 0]:
        size = int(parts.max() + column.max()) + 2
        joined = sp.csr_array((np.ones(len(parts)), (parts, parts.max() + 1 + column)), shape=(size, size))
        parts = connected_components(joined, directed=False)[1][parts]
    parts = np.unique(parts, return_inverse=True)[1]
    known = np.zeros((len(root), parts.max() + 1))
    known[np.arange(len(root)), parts] = root
    return Eigenpairs(np.ones(known.shape[1]), known / np.linalg.norm(known, axis=0))
