"""Pairs of rows that share a cluster somewhere, with one bit per base clustering instead of m matrices.

A bit table holds eight base clusterings a byte. Sums over the base clusterings of a pair become one look-up
per byte in a table of 256 sums, and sums over pairs per base clustering one addition per byte.
"""

from typing import NamedTuple

import numpy as np

from consilience.core import hot
from consilience.core.blocks import run_blocks

# Rows compared with all later rows in one piece of work.
_ROWS = 64
# Bit j of every byte, (256, 8); the first base clustering is the lowest bit.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(float)


class Pairs(NamedTuple):
    """Pairs of distinct rows on which at least one base clustering agrees, ordered by ``left``, ``right``."""

    left: np.ndarray
    right: np.ndarray  # always larger than left
    agree: np.ndarray  # bit table per pair: which base clusterings put both in one cluster
    seen: np.ndarray  # bit table per row: which base clusterings saw it
    certain: np.ndarray  # per pair: all base clusterings that saw both agree


def agreeing_pairs(codes: np.ndarray) -> Pairs:
    """All agreeing pairs of the rows of a code table (-1 = missing).

    Cost: rows^2 x bases / 2 comparisons; 9 bytes and a bit per base clustering for every pair kept.
    """
    codes = np.ascontiguousarray(codes)
    n_rows, n_bases = codes.shape
    sizes = np.empty(n_rows, dtype=np.int64)
    run_blocks(lambda rows: hot.count_agreeing(codes, rows.start, rows.stop, sizes), n_rows, block_rows=_ROWS)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    total = int(starts[-1])
    left, right = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32)
    agree = np.zeros((total, -(-n_bases // 8)), dtype=np.uint8)
    seen = np.packbits(codes >= 0, axis=1, bitorder="little")
    run_blocks(
        lambda rows: hot.fill_agreeing(codes, rows.start, rows.stop, starts, left, right, agree),
        n_rows,
        block_rows=_ROWS,
    )
    certain = np.ones(total, dtype=bool)
    for byte in range(agree.shape[1]):
        certain &= agree[:, byte] == (seen[left, byte] & seen[right, byte])
    return Pairs(left, right, agree, seen, certain)


def byte_sums(values: np.ndarray) -> np.ndarray:
    """Sums of per-base values over the bits of every possible byte, (bytes, 256)."""
    padded = np.zeros(-(-len(values) // 8) * 8)
    padded[: len(values)] = values
    return padded.reshape(-1, 8) @ _BITS.T


def per_base(sums: np.ndarray, n_bases: int) -> np.ndarray:
    """The transposed sum: from totals per byte value, (bytes, 256), to totals per base clustering."""
    return (sums @ _BITS).ravel()[:n_bases]


def sum_over_bases(pairs: Pairs, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per pair, the sum of `values` over the base clusterings that agree, and over those that saw both."""
    table = byte_sums(values)
    agreeing, together = np.empty(len(pairs.left)), np.empty(len(pairs.left))

    def one(block: slice) -> None:
        hot.sum_bits(
            pairs.left[block], pairs.right[block], pairs.agree[block], pairs.seen, table,
            agreeing[block], together[block],
        )  # fmt: skip

    run_blocks(one, len(pairs.left))
    return agreeing, together
