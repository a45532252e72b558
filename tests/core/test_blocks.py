"""Blocks cover all rows once, in order, and sums do not depend on the number of threads."""

import threading

import numpy as np
import pytest

from consilience.core import blocks, discretize, stiefel, tables
from tests.core.tables import OFFSETS, random_codes

THREADS = [1, 2, 3]


@pytest.fixture
def threads(monkeypatch):
    return lambda number: monkeypatch.setattr(blocks, "n_threads", lambda: number)


@pytest.mark.parametrize("number", [*THREADS, 50])
@pytest.mark.parametrize("n_rows", [1, 9, 10, 11, 1000, 1001])
@pytest.mark.parametrize("block_rows", [1, 10, 1000])
def test_blocks_come_back_in_order_and_cover_all_rows_once(threads, number, n_rows, block_rows):
    threads(number)
    found = list(blocks.map_blocks(lambda rows: rows, n_rows, block_rows=block_rows))
    assert all(rows.stop - rows.start == block_rows for rows in found[:-1])
    assert 0 < found[-1].stop - found[-1].start <= block_rows
    covered = np.concatenate([np.arange(n_rows)[rows] for rows in found])
    np.testing.assert_array_equal(covered, np.arange(n_rows))


@pytest.mark.parametrize("number", THREADS)
def test_no_rows_no_blocks(threads, number):
    threads(number)
    assert list(blocks.map_blocks(lambda rows: rows, 0)) == []


@pytest.mark.parametrize("number", THREADS)
def test_run_blocks_does_all_the_work(threads, number):
    threads(number)
    written = np.zeros(1003, dtype=int)

    def add(rows):
        written[rows] += 1

    assert blocks.run_blocks(add, len(written), block_rows=17) is None
    np.testing.assert_array_equal(written, 1)


@pytest.mark.parametrize("number", THREADS)
def test_errors_in_a_block_reach_the_caller(threads, number):
    threads(number)

    def fail(rows):
        if rows.start == 40:
            raise ArithmeticError("block 40")

    with pytest.raises(ArithmeticError, match="block 40"):
        blocks.run_blocks(fail, 100, block_rows=10)


def test_blocks_run_at_the_same_time(threads):
    # Each thread waits in its first block for the other: one after another, the barrier would break.
    threads(2)
    barrier, met = threading.Barrier(2), set()

    def meet(rows):
        if threading.get_ident() not in met:
            met.add(threading.get_ident())
            barrier.wait(timeout=30)

    blocks.run_blocks(meet, 1000, block_rows=1)
    assert len(met) == 2


def test_one_processor_starts_no_thread(threads):
    threads(1)
    here = threading.get_ident()
    assert set(blocks.map_blocks(lambda _: threading.get_ident(), 1000, block_rows=1)) == {here}


def test_the_number_of_processors_is_a_positive_integer():
    assert isinstance(blocks.n_threads(), int)
    assert blocks.n_threads() >= 1


def _passes(n):
    """Everything in the core that adds up over blocks, on rows whose sums depend on the order of addition."""
    rng = np.random.default_rng(0)
    codes = random_codes(n)
    weights, values = rng.exponential(size=n) * 10.0 ** rng.integers(-8, 8, n), rng.standard_normal((n, 3))
    mild = rng.uniform(0.5, 2.0, n)
    h = stiefel.orthonormalize(values, mild)
    step = stiefel.power_iteration(h, values, rng.random(n), mild, tol=0.0, max_iter=3)
    labels = np.zeros(n, dtype=np.int32)
    return [
        tables.scatter(codes, OFFSETS, weights, values),
        tables.contingency(codes, OFFSETS, weights),
        tables.gather(codes, OFFSETS, rng.standard_normal((14, 3))),
        h,
        step.h,
        np.array(step.slack),
        *map(np.asarray, discretize.assign(values, np.eye(3), weights, labels)),
    ]


def test_sums_are_bitwise_the_same_for_any_number_of_threads(threads, monkeypatch):
    started, pool = set(), blocks._pool

    def spy(workers, process):
        started.add(workers)
        return pool(workers, process)

    monkeypatch.setattr(blocks, "_pool", spy)
    results = []
    for number in THREADS:
        threads(number)
        results.append(_passes(16 * blocks.BLOCK_ROWS + 77))
    assert started == {2, 3}
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
