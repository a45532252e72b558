"""Passes over rows: block by block, in threads, with one answer whatever the number of threads.

Blocks have a fixed size and their results come back in order, so sums over blocks are always taken in the
same order. A block is small enough to stay in the processor's cache between the steps of one pass.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from joblib import cpu_count

T = TypeVar("T")

BLOCK_ROWS = 8192


def map_blocks(function: Callable[[slice], T], n_rows: int, *, block_rows: int = BLOCK_ROWS) -> Iterator[T]:
    """Results of ``function(rows)`` for consecutive slices of the rows, in order.

    The work of a block must release the interpreter (compiled loops, BLAS) for threads to help.
    """
    blocks = [slice(start, min(start + block_rows, n_rows)) for start in range(0, n_rows, block_rows)]
    workers = min(cpu_count(), len(blocks))
    if workers <= 1:
        yield from map(function, blocks)
        return
    # Blocks are handed out in groups, since handing out each of them costs as much as a light one takes.
    size = -(-len(blocks) // (4 * workers))
    groups = [blocks[start : start + size] for start in range(0, len(blocks), size)]
    with ThreadPoolExecutor(workers) as pool:
        for results in pool.map(lambda group: [function(block) for block in group], groups):
            yield from results


def run_blocks(function: Callable[[slice], object], n_rows: int, *, block_rows: int = BLOCK_ROWS) -> None:
    """Like `map_blocks`, for work that only writes to arrays."""
    for _ in map_blocks(function, n_rows, block_rows=block_rows):
        pass
