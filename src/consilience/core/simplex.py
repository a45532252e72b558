"""Small convex quadratic programs over the probability simplex."""

import daqp
import numpy as np

# A ridge decides between equally good weightings; the first moves the objective by less than rounding. With
# many copies of a base clustering the solver goes in circles there, and a larger one lets it out.
_RIDGES = (1e-9, 1e-7, 1e-5)


def minimize_quadratic(gram: np.ndarray, linear: np.ndarray) -> np.ndarray:
    r"""Weights on the simplex that minimise a convex quadratic.

    .. math:: \min_a \; a^T G a - 2 f^T a \quad s.t. \; a \ge 0, \; \sum_i a_i = 1

    Symbols: G -> gram, positive semidefinite and possibly singular; f -> linear.
    Where several weightings are equally good (two equal columns), the one of least norm is taken, so that
    equal things get equal weights.
    """
    m = len(linear)
    scale = np.trace(gram) / m
    if not scale > 0:
        best = linear == linear.max()
        return best / best.sum()
    upper = np.concatenate([np.ones(m), [1.0]])
    lower = np.concatenate([np.zeros(m), [1.0]])
    kind = np.zeros(m + 1, dtype=np.int32)
    kind[m] = 5  # equality
    for ridge in _RIDGES:
        quadratic = np.ascontiguousarray(gram / scale + ridge * np.eye(m))
        solution, _, flag, _ = daqp.solve(quadratic, -linear / scale, np.ones((1, m)), upper, lower, kind)
        if flag >= 1:
            break
    else:  # pragma: no cover - the problem is feasible and bounded by construction
        raise RuntimeError(f"the quadratic program of the weights failed (daqp exit flag {flag})")
    weights = np.maximum(solution, 0.0)
    return weights / weights.sum()


def project_rows(matrix: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Nearest rows on the simplex, where entry j stands for ``weights[j]`` equal entries.

    .. math:: \min_x \; \sum_j w_j (x_j - v_j)^2 \quad s.t. \; x \ge 0, \; \sum_j w_j x_j = 1

    Symbols: v -> a row of `matrix`; w -> weights.
    Cost: a sort of every row.
    """
    order = np.argsort(-matrix, axis=1)
    sorted_rows = np.take_along_axis(matrix, order, axis=1)
    sizes = np.cumsum(weights[order], axis=1)
    shift = (np.cumsum(weights[order] * sorted_rows, axis=1) - 1.0) / sizes
    last = np.maximum((sorted_rows > shift).sum(axis=1) - 1, 0)
    return np.maximum(matrix - shift[np.arange(len(matrix)), last][:, None], 0.0)


def minimize_in_box(quadratic: np.ndarray, linear: np.ndarray) -> np.ndarray:
    r"""The minimiser of a strictly convex quadratic with all entries in 0..1.

    .. math:: \min_x \; x^T Q x - 2 f^T x \quad s.t. \; 0 \le x \le 1

    Symbols: Q -> quadratic; f -> linear.
    """
    m = len(linear)
    nothing, kind = np.zeros((0, m)), np.zeros(m, dtype=np.int32)
    solution, _, flag, _ = daqp.solve(
        np.ascontiguousarray(quadratic), -linear, nothing, np.ones(m), np.zeros(m), kind
    )
    if flag < 1:  # pragma: no cover - the problem is feasible and strictly convex
        raise RuntimeError(f"the quadratic program in the box failed (daqp exit flag {flag})")
    return np.clip(solution, 0.0, 1.0)
