"""Matrices with orthonormal columns: the polar factor and quadratic problems over them."""

from typing import NamedTuple

import numpy as np

from consilience.core.blocks import map_blocks, run_blocks
from consilience.core.tables import total

# Ratios of extreme Gram eigenvalues. Below the first (condition number 1e3) one pass through the Gram matrix
# leaves a residual above 1e-10 and a second one is needed; below the other, the Gram matrix is useless.
_ONE_PASS, _TWO_PASSES = 1e-6, 1e-9


def polar_factor(matrix: np.ndarray) -> np.ndarray:
    """Nearest matrix with orthonormal columns (rows, where it is wide): ``U V^T`` of the thin SVD."""
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return left @ right


def orthonormalize(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Polar factor of a tall matrix under row weights: ``X (X^T W X)^(-1/2)``, so that ``H^T W H = I``."""
    values, vectors = np.linalg.eigh(total(map_blocks(lambda rows: _gram(x[rows], weights[rows]), len(x))))
    if values[0] <= _TWO_PASSES * values[-1]:
        root = np.sqrt(weights)[:, None]
        return polar_factor(x * root) / root
    factor = (vectors / np.sqrt(values)) @ vectors.T
    out = np.empty_like(x)
    run_blocks(lambda rows: np.matmul(x[rows], factor, out=out[rows]), len(x))
    return out if values[0] > _ONE_PASS * values[-1] else orthonormalize(out, weights)


def _gram(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (x * weights[:, None]).T @ x


class PowerIteration(NamedTuple):
    """Where `power_iteration` stopped."""

    h: np.ndarray
    slack: float  # smallest singular value of the last X minus max(u); not negative: global minimum


def power_iteration(
    h: np.ndarray,
    linear: np.ndarray,
    shift: np.ndarray,
    weights: np.ndarray,
    *,
    tol: float,
    max_iter: int,
) -> PowerIteration:
    r"""Generalised power iteration for a diagonal quadratic under an orthogonality constraint.

    .. math:: \min_H \; tr(H^T W D H) - 2 tr(H^T W C) \quad s.t. \; H^T W H = I

    Each step is :math:`X = (\mu I - D) H + C`, :math:`H = X (X^T W X)^{-1/2}`; it needs no step size and
    never increases the objective. At a fixed point whose smallest singular value of :math:`X` is at least
    :math:`\max(\mu - D)`, no other feasible matrix does better.

    Symbols: C -> linear; mu - D -> shift, not negative; W -> weights.
    Cost: rows x width^2 a step; the rate is about max(shift) / sigma_min(C).
    """
    h = h.copy()
    x = np.empty_like(h)

    def advance(rows: slice) -> np.ndarray:
        np.multiply(h[rows], shift[rows, None], out=x[rows])
        x[rows] += linear[rows]
        return _gram(x[rows], weights[rows])

    largest_shift = float(shift.max())
    slack = -np.inf
    for _ in range(max_iter):
        values, vectors = np.linalg.eigh(total(map_blocks(advance, len(h))))
        smallest = float(np.sqrt(max(values[0], 0.0)))
        slack = smallest - largest_shift
        if values[0] <= _ONE_PASS * values[-1]:
            x, factor = orthonormalize(x, weights), np.eye(h.shape[1])
        else:
            factor = (vectors / np.sqrt(values)) @ vectors.T

        def settle(rows: slice, x: np.ndarray = x, factor: np.ndarray = factor) -> float:
            new = x[rows] @ factor
            difference = new - h[rows]
            h[rows] = new
            return float(weights[rows] @ np.einsum("pd,pd->p", difference, difference))

        moved = np.sqrt(sum(map_blocks(settle, len(h))))
        # Later steps shrink by at least this factor, so what is still to come is known.
        rate = largest_shift / smallest if smallest > 0 else np.inf
        if min(rate, 1.0) * moved <= tol * np.sqrt(h.shape[1]):
            break
    return PowerIteration(h, slack)
