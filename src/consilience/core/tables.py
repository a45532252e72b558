"""Products with the stacked indicator of the base clusterings, without building it.

``codes`` is (rows, bases) with -1 for missing; the clusters of base ``i`` are the rows
``offsets[i]..offsets[i + 1]`` of every stacked table.
"""

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp

from consilience.core import hot
from consilience.core.blocks import BLOCK_ROWS, map_blocks, run_blocks


def indicator(codes: np.ndarray, offsets: np.ndarray) -> sp.csr_array:
    """Stacked one-hot table of codes: one entry per observed label."""
    observed = codes >= 0
    # 32-bit indices where they suffice: half the memory, and scikit-learn accepts no others.
    index = np.int32 if codes.size < 2**31 else np.int64
    columns = (codes + offsets[:-1].astype(index))[observed]
    pointers = np.concatenate([[0], np.cumsum(observed.sum(axis=1))]).astype(index)
    return sp.csr_array((np.ones(len(columns)), columns, pointers), shape=(len(codes), int(offsets[-1])))


def gather(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray) -> np.ndarray:
    """``B @ table``: for every row, the sum of the table's rows of its clusters."""
    out = np.empty((len(codes), table.shape[1]))

    def one(rows: slice) -> None:
        hot.gather_sum(codes[rows], offsets, table, out[rows])

    run_blocks(one, len(codes))
    return out


def scatter(codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """``B.T @ diag(weights) @ values``: for every cluster, the weighted sum of its rows' values."""

    def one(rows: slice) -> np.ndarray:
        out = np.zeros((int(offsets[-1]), values.shape[1]))
        hot.scatter_sum(codes[rows], offsets, weights[rows], values[rows], out)
        return out

    return total(map_blocks(one, len(codes), block_rows=rows_per_block(offsets)))


def cluster_sizes(codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weight of the members of every cluster."""
    return scatter(codes, offsets, weights, np.ones((len(codes), 1)))[:, 0]


def contingency(codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """``B.T @ diag(weights) @ B``: weighted counts of every pair of clusters."""

    def one(rows: slice) -> np.ndarray:
        out = np.zeros((int(offsets[-1]), int(offsets[-1])))
        hot.contingency(codes[rows], offsets, weights[rows], out)
        return out

    return mirror(total(map_blocks(one, len(codes), block_rows=rows_per_block(offsets))))


def jaccard(codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Jaccard index of every pair of clusters, within the rows that both of their bases saw."""
    shared = contingency(codes, offsets, weights)
    seen = base_sums(shared, offsets)  # members of each cluster that each base saw
    union = seen + seen.T - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0.0)


def cross(
    codes: np.ndarray, offsets: np.ndarray, labels: np.ndarray, weights: np.ndarray, n_labels: int
) -> np.ndarray:
    """Weight that every cluster (row) shares with every label (column); negative labels are left out."""

    def one(rows: slice) -> np.ndarray:
        out = np.zeros((int(offsets[-1]), n_labels))
        hot.cross(codes[rows], offsets, labels[rows], weights[rows], out)
        return out

    return total(map_blocks(one, len(codes), block_rows=rows_per_block(offsets)))


def elect(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """For every row, the column in which `bias` and the table's rows of its clusters sum up highest."""
    labels = np.empty(len(codes), dtype=np.int64)

    def one(rows: slice) -> None:
        hot.elect(codes[rows], offsets, table, bias, labels[rows])

    run_blocks(one, len(codes))
    return labels


def quadratic(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray) -> np.ndarray:
    """For every row, the sum of a symmetric table over all pairs of its clusters."""
    out = np.empty(len(codes))

    def one(rows: slice) -> None:
        hot.quadratic(codes[rows], offsets, table, out[rows])

    run_blocks(one, len(codes))
    return out


def base_sums(table: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """For every cluster, the sum of the table's rows of all clusters of its base."""
    return np.repeat(np.add.reduceat(table, offsets[:-1], axis=0), np.diff(offsets), axis=0)


def rows_per_block(offsets: np.ndarray) -> int:
    """Block size at which filling a table of cluster pairs costs more than adding it up.

    Smaller than usual otherwise: such passes do several times the work a row.
    """
    return max(BLOCK_ROWS // 2, int(offsets[-1]) ** 2 // (len(offsets) - 1))


def mirror(upper: np.ndarray) -> np.ndarray:
    """A symmetric matrix from its upper triangle."""
    return upper + np.triu(upper, 1).T


def total(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Sum of arrays, always in the given order."""
    parts = iter(parts)
    out = next(parts).copy()
    for part in parts:
        out += part
    return out
