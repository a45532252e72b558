"""Products with the stacked indicator against the dense one."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience.core import blocks, tables
from tests.core.tables import OFFSETS, one_hot, random_codes

N = 400


@pytest.fixture(params=[1, 7, N - 1, N, 10 * N])
def block_rows(request, monkeypatch):
    monkeypatch.setattr(tables, "run_blocks", partial(blocks.run_blocks, block_rows=request.param))
    monkeypatch.setattr(tables, "rows_per_block", lambda offsets: request.param)


@pytest.mark.usefixtures("block_rows")
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_products_with_the_indicator(dtype, missing):
    rng = np.random.default_rng(0)
    codes = random_codes(N, missing=missing, dtype=dtype)
    b = one_hot(codes, OFFSETS)
    weights, values, table = rng.random(N), rng.standard_normal((N, 3)), rng.standard_normal((14, 3))
    assert_allclose(tables.gather(codes, OFFSETS, table), b @ table, atol=1e-13)
    assert_allclose(
        tables.scatter(codes, OFFSETS, weights, values), b.T @ (weights[:, None] * values), atol=1e-12
    )
    assert_allclose(tables.contingency(codes, OFFSETS, weights), b.T @ (weights[:, None] * b), atol=1e-12)


@pytest.mark.usefixtures("block_rows")
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_sums_over_the_clusters_of_a_row(dtype, missing):
    rng = np.random.default_rng(1)
    codes = random_codes(N, missing=missing, dtype=dtype)
    b = one_hot(codes, OFFSETS)
    labels, weights = rng.integers(-1, 4, N), rng.random(N)
    columns = (labels[:, None] == np.arange(4)) * weights[:, None]
    assert_allclose(tables.cross(codes, OFFSETS, labels, weights, 4), b.T @ columns, atol=1e-12)
    square = rng.standard_normal((14, 14))
    square += square.T
    expected = np.einsum("pc,cd,pd->p", b, square, b)
    assert_allclose(tables.quadratic(codes, OFFSETS, square), expected, atol=1e-12)
    table, bias = rng.standard_normal((14, 5)), rng.standard_normal(5)
    assert_array_equal(tables.elect(codes, OFFSETS, table, bias), (b @ table + bias).argmax(axis=1))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_indicator(dtype):
    # More than 127 clusters in all: sums of codes and offsets must not wrap around in the type of the codes.
    ks = (100, 90, 2)
    offsets = np.array([0, 100, 190, 192])
    codes = random_codes(300, ks, dtype=dtype)
    sparse = tables.indicator(codes, offsets)
    assert sparse.shape == (300, 192)
    assert_array_equal(sparse.toarray(), one_hot(codes, offsets))


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    codes, counts, values = random_codes(50), rng.integers(1, 5, 50), rng.standard_normal((50, 2))
    again = np.repeat(np.arange(50), counts)
    ones = np.ones(len(again))
    assert_allclose(
        tables.contingency(codes, OFFSETS, counts.astype(float)),
        tables.contingency(codes[again], OFFSETS, ones),
    )
    assert_allclose(
        tables.scatter(codes, OFFSETS, counts.astype(float), values),
        tables.scatter(codes[again], OFFSETS, ones, values[again]),
        atol=1e-12,
    )


def test_gather_and_scatter_are_transposes():
    rng = np.random.default_rng(2)
    codes, x, y = random_codes(60), rng.standard_normal((14, 1)), rng.standard_normal((60, 1))
    left = (tables.gather(codes, OFFSETS, x) * y).sum()
    assert left == pytest.approx((x * tables.scatter(codes, OFFSETS, np.ones(60), y)).sum())


def test_blocks_grow_with_the_table_of_pairs():
    assert tables.rows_per_block(np.array([0, 3, 6])) == blocks.BLOCK_ROWS // 2
    assert tables.rows_per_block(np.array([0, 1000, 2000])) == 2000**2 // 2


def test_mirror():
    full = np.random.default_rng(3).standard_normal((5, 5))
    full += full.T
    assert_allclose(tables.mirror(np.triu(full)), full, atol=1e-15)


def test_total_adds_in_the_given_order_and_leaves_the_parts():
    large, small = np.array([1e16]), np.array([1.0])
    assert tables.total([large, -large, small])[0] == 1.0
    assert tables.total(iter([large, small, -large]))[0] == 0.0  # the small one is lost in the large one
    assert large[0] == 1e16
