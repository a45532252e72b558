"""Passes over rows: block by block, in threads, with one answer whatever the number of threads.

Blocks have a fixed size and their results come back in order, so sums over blocks are always taken in the
same order. A block is small enough to stay in the processor's cache between the steps of one pass.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from typing import TypeVar

import joblib

T = TypeVar("T")

BLOCK_ROWS = 4096


def map_blocks(function: Callable[[slice], T], n_rows: int, *, block_rows: int | None = None) -> Iterator[T]:
    """Results of ``function(rows)`` for consecutive slices of the rows, in order.

    The work of a block must release the interpreter (compiled loops, BLAS) for threads to help, and must not
    call this function itself.
    """
    size = block_rows or BLOCK_ROWS
    blocks = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    # With fewer blocks, handing them to threads takes longer than working on them.
    workers = n_threads() if len(blocks) > 7 else 1
    if workers == 1:
        yield from map(function, blocks)
        return
    # Handed out in groups: handing out a block costs about as much as its work.
    share = -(-len(blocks) // (4 * workers))
    groups = [blocks[start : start + share] for start in range(0, len(blocks), share)]
    pool = _pool(workers, os.getpid())
    for results in pool.map(lambda group: [function(block) for block in group], groups):
        yield from results


def run_blocks(function: Callable[[slice], object], n_rows: int, *, block_rows: int | None = None) -> None:
    """Like `map_blocks`, for work that only writes to arrays."""
    for _ in map_blocks(function, n_rows, block_rows=block_rows):
        pass


@cache
def n_threads() -> int:
    """Number of processors this process may use (asking takes longer than a pass over a small table)."""
    return int(joblib.cpu_count())


@lru_cache(maxsize=1)
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    # By process, because the threads of a pool do not survive a fork.
    return ThreadPoolExecutor(workers, thread_name_prefix="consilience")
