"""A factor model of a table with missing cells: what the cells of a row that are there say about the others.

Linear in rows, and closed-form for new rows. Rows are worked on in blocks; rows of a block that lack the same
cells share the one inverse that their pattern needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience._support.threads import one_thread
from consilience.core.blocks import map_blocks, run_blocks
from consilience.core.compiled import compiled
from consilience.core.tables import total

# Factors at most, strength of the prior that loadings are small (in rows), and the share of the variance of a
# column that is noise at least.
N_FACTORS, RIDGE, LEAST_NOISE = 15, 4.0, 0.05
# Sweeps at most, and the gain for a cell below which they end.
_MAX_ITER, _TOL = 40, 1e-4
_BLOCK_ROWS = 1024
# Means of missing cells have so many decimals: sums that were taken in another order give the same ones.
_DECIMALS = 8


class FactorModel(NamedTuple):
    """Columns as a mean, loadings on a few common factors, and noise of their own."""

    mean: np.ndarray  # (q,)
    loadings: np.ndarray  # (q, r)
    noise: np.ndarray  # variances, (q,)

    def fill(self, x: np.ndarray) -> np.ndarray:
        r"""The rows with the conditional mean in every missing cell, given those of its row that are there.

        .. math:: \mu_j + \lambda_j^T C_o \Lambda_o^T \Psi_o^{-1} (x_o - \mu_o), \qquad
            C_o = (I + \Lambda_o^T \Psi_o^{-1} \Lambda_o)^{-1}

        Symbols: o -> the cells that are there; lambda_j -> loadings of column j; Psi -> noise; mu -> mean.
        """
        there = ~np.isnan(x)
        if there.all():
            return x
        out = np.array(x, dtype=float)
        parts = _parts(self)

        def one(block: slice) -> None:
            here = there[block]
            if not here.all():
                z = _factors(self, parts, out[block], here)[0]
                means = np.round(self.mean + z @ self.loadings.T, _DECIMALS)
                out[block] = np.where(here, out[block], means)

        with one_thread("blas"):  # the same answer whatever the threads; of small products, many times faster
            run_blocks(one, len(out), block_rows=_BLOCK_ROWS)
        return out


class FactorFit(NamedTuple):
    """A model and the penalised log-likelihood before every sweep, which never falls."""

    model: FactorModel
    objective: np.ndarray


def fit_factors(
    x: np.ndarray, weights: np.ndarray | None = None, *, max_iter: int = _MAX_ITER, tol: float = _TOL
) -> FactorFit:
    r"""Maximise the penalised likelihood of the cells that are there, by EM.

    .. math:: \sum_i w_i \log N(x_{i o_i}; \mu_{o_i}, (\Lambda \Lambda^T + \Psi)_{o_i})
        - \frac{\rho}{2} \sum_j \frac{|\lambda_j|^2}{\psi_j}, \qquad \psi_j \ge f s_j^2

    Symbols: o_i -> the cells of row i that are there; w -> `weights`, 1 by default: a row of weight 2 counts
    as two; rho -> RIDGE; f -> LEAST_NOISE; s_j^2 -> the variance of the cells of column j that are there.

    Every column needs a cell that is there. With ``max_iter=0`` the model is the start: the leading
    eigenvectors of the covariance with missing cells at their means.
    """
    with one_thread("blas"):  # as in `fill`
        return _fit(x, weights, max_iter, tol)


def _fit(x: np.ndarray, weights: np.ndarray | None, max_iter: int, tol: float) -> FactorFit:
    there = ~np.isnan(x)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=float)
    x = np.where(there, x, 0.0)
    count = w @ there
    mean = (w @ x) / count
    variance = np.maximum(w @ np.where(there, np.square(x - mean), 0.0) / count, 1e-12)
    floor = LEAST_NOISE * variance
    model = _start(np.where(there, x - mean, 0.0), w, mean, variance)
    # Sums that do not change from sweep to sweep.
    known = count, w @ x, w @ np.square(x)
    objective: list[float] = []
    for _ in range(max_iter):
        sums = _expectation(model, x, there, w)
        objective.append(
            sums.likelihood - 0.5 * RIDGE * float((model.loadings**2).sum(axis=1) @ (1 / model.noise))
        )
        if len(objective) > 1 and objective[-1] - objective[-2] < tol * count.sum():
            break
        model = _maximisation(sums, known, floor)
    return FactorFit(model, np.array(objective))


def _start(centred: np.ndarray, w: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> FactorModel:
    n, q = centred.shape
    r = max(1, min(N_FACTORS, q - 1, int(w.sum()) - 2))
    rows = np.sqrt(w / w.sum())[:, None] * centred
    if q <= n:
        values, vectors = np.linalg.eigh(rows.T @ rows)
        values, vectors = values[::-1][:r], vectors[:, ::-1][:, :r]
    else:
        values, left = np.linalg.eigh(rows @ rows.T)
        values, left = values[::-1][:r], left[:, ::-1][:, :r]
        vectors = rows.T @ left / np.sqrt(np.maximum(values, 1e-12))
    loadings = vectors * np.sqrt(np.maximum(values, 1e-6))
    noise = np.maximum(variance - (loadings**2).sum(axis=1), LEAST_NOISE * variance)
    return FactorModel(mean, loadings, noise)


class _Parts(NamedTuple):
    """What every row needs of a model."""

    scaled: np.ndarray  # loadings over noise, (q, r)
    products: np.ndarray  # of the scaled loadings and the loadings, upper triangles, (q, r (r + 1) / 2)
    unit: np.ndarray  # the upper triangle of the unit matrix
    upper: tuple[np.ndarray, np.ndarray]


def _parts(model: FactorModel) -> _Parts:
    scaled = model.loadings / model.noise[:, None]
    upper = np.triu_indices(model.loadings.shape[1])
    unit = (upper[0] == upper[1]).astype(float)
    return _Parts(scaled, scaled[:, upper[0]] * model.loadings[:, upper[1]], unit, upper)


def _whole(packed: np.ndarray, r: int) -> np.ndarray:
    """Symmetric matrices from their upper triangles."""
    i, j = np.triu_indices(r)
    out = np.empty((len(packed), r, r))
    out[:, i, j] = out[:, j, i] = packed
    return out


@compiled(reads=1)
def _invert(packed, r, inverse, logdet):  # type: ignore[no-untyped-def]
    """Inverses, as upper triangles, and log determinants of matrices given by theirs, by Cholesky."""
    root = np.zeros((r, r))  # lower triangular; then its inverse in its place
    for m in range(len(packed)):
        k, logs = 0, 0.0
        for i in range(r):
            for j in range(i, r):
                root[j, i] = packed[m, k]
                k += 1
        for i in range(r):
            for j in range(i):
                s = root[i, j]
                for a in range(j):
                    s -= root[i, a] * root[j, a]
                root[i, j] = s / root[j, j]
            s = root[i, i]
            for a in range(i):
                s -= root[i, a] * root[i, a]
            root[i, i] = np.sqrt(s)
            logs += np.log(root[i, i])
        logdet[m] = 2.0 * logs
        for i in range(r):
            root[i, i] = 1.0 / root[i, i]
            for j in range(i):
                s = 0.0
                for a in range(j, i):
                    s += root[i, a] * root[a, j]
                root[i, j] = -s * root[i, i]
        k = 0
        for i in range(r):
            for j in range(i, r):
                s = 0.0
                for a in range(j, r):
                    s += root[a, i] * root[a, j]
                inverse[m, k] = s
                k += 1


@compiled(reads=3)
def _multiply(b, packed, pattern, z):  # type: ignore[no-untyped-def]
    """Every row of `b` times the matrix of its pattern, given by its upper triangle."""
    r = b.shape[1]
    for row in range(len(b)):
        k, m = 0, pattern[row]
        for i in range(r):
            z[row, i] = 0.0
        for i in range(r):
            z[row, i] += packed[m, k] * b[row, i]
            k += 1
            for j in range(i + 1, r):
                z[row, i] += packed[m, k] * b[row, j]
                z[row, j] += packed[m, k] * b[row, i]
                k += 1


def _factors(
    model: FactorModel, parts: _Parts, x: np.ndarray, there: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of every row the mean of its factors and its pattern; of patterns covariances, packed, and log det."""
    r = model.loadings.shape[1]
    packed = np.ascontiguousarray(np.packbits(there, axis=1))
    _, first, pattern = np.unique(
        packed.view(f"V{packed.shape[1]}").ravel(), return_index=True, return_inverse=True
    )
    precision = parts.unit + there[first].astype(float) @ parts.products
    covariance, logdet = np.empty_like(precision), np.empty(len(first))
    _invert(precision, r, covariance, logdet)
    b = np.where(there, x - model.mean, 0.0) @ parts.scaled
    z = np.empty_like(b)
    _multiply(b, covariance, pattern, z)
    return z, pattern, covariance, logdet


class _Sums(NamedTuple):
    """Over the rows in which a column is there: E(z z^T) as upper triangles, E(z), E(z) times the cell."""

    second: np.ndarray
    first: np.ndarray
    with_cell: np.ndarray
    likelihood: float


def _expectation(model: FactorModel, x: np.ndarray, there: np.ndarray, w: np.ndarray) -> _Sums:
    parts = _parts(model)
    i, j = parts.upper

    def one(block: slice) -> _Sums:
        here, rows, weight = there[block], x[block], w[block][:, None]
        z, pattern, covariance, logdet = _factors(model, parts, rows, here)
        o = here.astype(float)
        second = weight * (z[:, i] * z[:, j] + covariance[pattern])
        rest = np.where(here, rows - model.mean, 0.0)
        # |x - mu|^2 / psi less what the factors explain of it, and the determinants, of every row.
        b = rest @ parts.scaled
        apart = np.square(rest) @ (1.0 / model.noise) - np.einsum("ir,ir->i", b, z)
        determinant = logdet[pattern] + o @ np.log(2.0 * np.pi * model.noise)
        likelihood = -0.5 * float(w[block] @ (apart + determinant))
        return _Sums(o.T @ second, o.T @ (weight * z), rows.T @ (weight * z), likelihood)

    found = list(map_blocks(one, len(x), block_rows=_BLOCK_ROWS))
    return _Sums(
        total(part.second for part in found),
        total(part.first for part in found),
        total(part.with_cell for part in found),
        sum(part.likelihood for part in found),
    )


def _maximisation(
    sums: _Sums, known: tuple[np.ndarray, np.ndarray, np.ndarray], floor: np.ndarray
) -> FactorModel:
    """Mean and loadings of every column by ridge regression on the factors, then its noise."""
    count, cells, squares = known
    r = sums.first.shape[1]
    left = np.empty((len(count), r + 1, r + 1))
    left[:, :r, :r] = _whole(sums.second, r)
    left[:, np.arange(r), np.arange(r)] += RIDGE
    left[:, :r, r] = left[:, r, :r] = sums.first
    left[:, r, r] = count
    right = np.column_stack([sums.with_cell, cells])
    found = np.linalg.solve(left, right[:, :, None])[:, :, 0]
    # At the solution, what is left of the squares, penalty included.
    left_over = squares - np.einsum("jr,jr->j", found, right)
    return FactorModel(found[:, r], found[:, :r], np.maximum(left_over / count, floor))
