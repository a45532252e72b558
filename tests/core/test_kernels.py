"""Kernels with absent rows against their n x n definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from consilience.core import kernels as module
from consilience.core.kernels import (
    Fill,
    absent,
    as_matrix,
    fit_kernel,
    forget,
    leading_eigenvectors,
    multiply,
    project,
    represent,
    restrict,
    trace,
)
from tests.oracles.late_fusion import centred_and_scaled, gaussian, top, zero_filled

N = 60
ROWS = np.sort(np.random.default_rng(0).permutation(N)[:45])


def quadratic(x):
    return (1.0 + x @ x.T / (x**2).sum(axis=1).mean()) ** 2


def cosine(x):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return unit @ unit.T


DEFINITIONS = {"linear": lambda x: x @ x.T, "cosine": cosine, "rbf": gaussian, "poly": quadratic}


def table(width=5, n=N, seed=1):
    return 3.0 + np.random.default_rng(seed).standard_normal((n, width))


def kernel_of(x, kind, rows=ROWS, n=N):
    return fit_kernel(x[rows], rows, n, kind, np.random.RandomState(0))


@pytest.mark.parametrize("kind", DEFINITIONS)
@pytest.mark.parametrize("width", [3, 200])
def test_kernel_is_its_definition_centred_and_scaled_among_observed_rows(kind, width):
    x = table(width)
    expected = centred_and_scaled(DEFINITIONS[kind](x[ROWS]))
    assert_allclose(as_matrix(kernel_of(x, kind)), expected, atol=1e-10)


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_sparse_is_dense(kind):
    x = np.where(np.random.default_rng(2).random((N, 6)) < 0.5, table(6), 0.0)
    dense, thin = kernel_of(x, kind), kernel_of(sparse.csr_array(x), kind)
    assert_allclose(as_matrix(thin), as_matrix(dense), atol=1e-10)
    q = np.random.default_rng(0).standard_normal((N, 3))
    assert_allclose(multiply(thin, q), multiply(dense, q), atol=1e-10)
    assert_allclose(represent(thin, sparse.csr_array(x)), represent(dense, x), atol=1e-10)


def test_function_of_the_user_is_compared_like_a_named_kernel():
    x = table()
    width = np.sqrt(((x[ROWS][:, None] - x[ROWS][None]) ** 2).sum(axis=2)).mean()

    def similarity(a, b):
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=2) / (2 * width**2))

    ours, named = kernel_of(x, similarity), kernel_of(x, "rbf")
    assert_allclose(as_matrix(ours), as_matrix(named), atol=1e-10)
    assert_allclose(represent(ours, x), represent(named, x), atol=1e-10)


@pytest.mark.parametrize("kind", ["linear", "cosine", "poly"])
def test_explicit_maps_make_no_square_matrix(kind):
    kernel = kernel_of(table(n=3000), kind, np.arange(3000), 3000)
    assert kernel.block is None
    assert kernel.factor.values.shape[1] < 30


@pytest.mark.parametrize("kind", ["rbf", "poly"])
def test_above_the_stated_size_landmarks_stand_for_all_pairs(kind, monkeypatch):
    monkeypatch.setattr(module, "EXACT_ROWS", 300)
    monkeypatch.setattr(module, "_MAPPED_WIDTH", 10)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 6)) + 8.0 * rng.integers(0, 3, 600)[:, None]
    rows = np.arange(600)
    kernel = kernel_of(x, kind, rows, 600)
    assert kernel.block is None
    monkeypatch.setattr(module, "EXACT_ROWS", 1000)
    exact = kernel_of(x, kind, rows, 600)
    assert exact.block is not None
    # The width of the Gaussian is that of a sample here, so the two agree only roughly.
    assert_allclose(as_matrix(kernel), as_matrix(exact), atol=0.05)


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_restriction_hides_rows_of_a_kernel_that_was_made_with_all(kind):
    x = table(7)
    everyone = np.arange(N)
    kernel = restrict(kernel_of(x, kind, everyone), ROWS)
    expected = centred_and_scaled(DEFINITIONS[kind](x))[np.ix_(ROWS, ROWS)]
    assert_allclose(as_matrix(kernel), expected, atol=1e-10)
    assert_allclose(multiply(kernel, np.eye(N)), zero_filled(expected, ROWS, N), atol=1e-10)
    assert_array_equal(absent(kernel), np.setdiff1d(everyone, ROWS))


@pytest.mark.parametrize("kind", ["linear", "rbf"])
@pytest.mark.parametrize("thin", [False, True])
def test_filled_rows_are_combinations_of_observed_ones(kind, thin):
    rng = np.random.default_rng(3)
    x = table(7)
    kernel = kernel_of(sparse.csr_array(x) if thin else x, kind)
    lost = absent(kernel)
    fill = Fill(rng.standard_normal((len(lost), 2)), rng.standard_normal((2, len(ROWS))))
    spread = np.zeros((N, len(ROWS)))
    spread[ROWS] = np.eye(len(ROWS))
    spread[lost] = fill.left @ fill.right
    expected = spread @ as_matrix(kernel) @ spread.T
    assert_allclose(multiply(kernel, np.eye(N), fill), expected, atol=1e-8)
    assert_allclose(trace(kernel, fill), np.trace(expected))
    coefficients = rng.standard_normal((N, 3))
    new = represent(kernel, x[ROWS])
    assert_allclose(new @ project(kernel, coefficients, fill), (expected @ coefficients)[ROWS], atol=1e-8)


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_fitted_rows_are_represented_as_they_were_fitted(kind):
    x = table(7)
    for kernel in (kernel_of(x, kind), restrict(kernel_of(x, kind, np.arange(N)), ROWS)):
        coefficients = np.random.default_rng(0).standard_normal((N, 3))
        expected = multiply(kernel, coefficients)[ROWS]
        projection = project(kernel, coefficients)
        for same in (kernel, forget(kernel)):
            assert_allclose(represent(same, x[ROWS]) @ projection, expected, atol=1e-10)


@pytest.mark.parametrize("n", [250, 700])  # solved whole and by iteration
def test_leading_eigenvectors_are_those_of_the_sum(n):
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 4, n)
    rows = [np.sort(rng.permutation(n)[: n - 100]) for _ in range(2)]
    tables = [4.0 * rng.standard_normal((4, 6))[truth] + rng.standard_normal((n, 6)) for _ in range(2)]
    parts = [kernel_of(x, kind, r, n) for x, kind, r in zip(tables, ("rbf", "linear"), rows, strict=True)]
    weights = np.array([0.3, 0.7])
    found = leading_eigenvectors(parts, 5, weights=weights)
    total = sum(
        w * zero_filled(as_matrix(part), part.rows, n) for w, part in zip(weights, parts, strict=True)
    )
    expected = top(total, 5)
    assert_allclose(found.values, np.linalg.eigvalsh(total)[::-1][:5], rtol=1e-8)
    assert_allclose(found.vectors @ found.vectors.T, expected @ expected.T, atol=1e-6)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(5), atol=1e-10)


@pytest.mark.parametrize("n", [100, 700])
def test_repeated_eigenvalues_are_all_found(n):
    """Five clusters of equal size, no noise: the centred kernel has one eigenvalue four times."""
    truth = np.arange(n) % 5
    kernel = kernel_of(10.0 * np.eye(5)[truth], "rbf", np.arange(n), n)
    found = leading_eigenvectors([kernel], 4)
    assert_allclose(found.values, found.values[0], rtol=1e-8)
    expected = np.equal.outer(truth, truth) / (n / 5) - 1.0 / n
    assert_allclose(found.vectors @ found.vectors.T, expected, atol=1e-8)


@pytest.mark.parametrize("n", [100, 700])
def test_eigenvectors_beyond_the_rank_are_zero(n):
    kernel = kernel_of(table(2, n), "linear", np.arange(n), n)
    found = leading_eigenvectors([kernel], 9)
    assert found.vectors.shape == (n, 9)
    assert_array_equal(found.values[2:], 0.0)
    assert_array_equal(found.vectors[:, 2:], 0.0)
    few = kernel_of(table(6, n), "rbf", np.arange(3), n)
    found = leading_eigenvectors([few], 9)
    assert found.vectors.shape == (n, 9)
    assert_allclose(found.vectors[3:], 0.0, atol=1e-12)
    assert_array_equal(found.vectors[:, 2:], 0.0)  # three centred rows have two directions


@pytest.mark.parametrize("kind", DEFINITIONS)
@pytest.mark.parametrize("n", [60, 700])
def test_view_of_equal_rows_is_zero(kind, n):
    kernel = kernel_of(np.full((n, 4), 7.3), kind, n=n)
    assert_array_equal(as_matrix(kernel), 0.0)
    assert_array_equal(kernel.diagonal, 0.0)
    assert_array_equal(leading_eigenvectors([kernel], 9).vectors, np.zeros((n, 9)))


def test_single_precision_finds_the_same_directions():
    rng = np.random.default_rng(4)
    x = 4.0 * rng.standard_normal((5, 6))[rng.integers(0, 5, 700)] + rng.standard_normal((700, 6))
    kernel = kernel_of(x, "rbf", np.arange(650), 700)
    exact, rough = (leading_eigenvectors([kernel], 6, precise=precise).vectors for precise in (True, False))
    assert_allclose(rough @ rough.T, exact @ exact.T, atol=1e-4)


def test_kernel_kept_in_single_precision_is_the_same_but_for_rounding():
    x = table(4, 400)
    rows = np.arange(0, 400, 2)
    exact = fit_kernel(x[rows], rows, 400, "rbf", np.random.RandomState(0))
    light = fit_kernel(x[rows], rows, 400, "rbf", np.random.RandomState(0), precise=False)
    assert light.block.dtype == np.float32
    assert_allclose(light.block, exact.block, atol=1e-6)
    assert restrict(light, rows[:50]).block.dtype == np.float32
    q = np.random.default_rng(0).standard_normal((400, 3))
    product = multiply(light, q)
    assert product.dtype == float
    assert_allclose(product, multiply(exact, q), atol=1e-4)
    small = fit_kernel(x[:60], np.arange(60), 60, "rbf", np.random.RandomState(0), precise=False)
    assert small.block.dtype == float  # solved whole: nothing is gained


@pytest.mark.parametrize("decay", [0.97, 0.995])
@pytest.mark.parametrize("warm", [False, True])
def test_iterations_that_restart_find_the_eigenvectors(decay, warm):
    """Eigenvalues so close to each other that the basis is full several times before they are found."""
    n, k = 400, 8
    vectors = np.linalg.qr(np.random.default_rng(5).standard_normal((n, n)))[0]
    values = decay ** np.arange(n)
    matrix = (vectors * values) @ vectors.T
    start = matrix @ np.random.default_rng(6).standard_normal((n, k)) if warm else None
    products = []

    def product(q):
        products.append(q.shape[1])
        return matrix @ q

    found, h = module._iterate(product, n, k, start, True)
    assert sum(products) > 4 * k + 24
    assert_allclose(found, values[:k], rtol=1e-12)
    assert_allclose(h.T @ h, np.eye(k), atol=1e-12)
    assert np.linalg.norm(matrix @ h - h * found, axis=0).max() <= 1.1e-8


def test_large_offsets_do_not_drown_the_rows():
    x = table(4)
    assert_allclose(as_matrix(kernel_of(x + 1e8, "linear")), as_matrix(kernel_of(x, "linear")), atol=1e-6)


def test_input_is_untouched():
    x = table()
    x.setflags(write=False)
    for kind in DEFINITIONS:
        kernel_of(x, kind)
