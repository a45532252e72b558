"""Small convex quadratic programs over the probability simplex."""

import daqp
import numpy as np


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
    # The ridge decides between equally good weightings; at 1e-9 it moves the objective by less than rounding.
    quadratic = np.ascontiguousarray(gram / scale + 1e-9 * np.eye(m))
    upper = np.concatenate([np.ones(m), [1.0]])
    lower = np.concatenate([np.zeros(m), [1.0]])
    kind = np.zeros(m + 1, dtype=np.int32)
    kind[m] = 5  # equality
    solution, _, flag, _ = daqp.solve(quadratic, -linear / scale, np.ones((1, m)), upper, lower, kind)
    if flag < 1:  # pragma: no cover - the problem is feasible and bounded by construction
        raise RuntimeError(f"the quadratic program of the weights failed (daqp exit flag {flag})")
    weights = np.maximum(solution, 0.0)
    return weights / weights.sum()
