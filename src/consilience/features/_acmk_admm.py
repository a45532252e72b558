"""ACMK as published: an alternating direction method of multipliers on dense n x n graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from consilience.core.simplex import minimize_quadratic

# The penalty mu starts at one and grows by this factor after every outer step, as in the paper.
_GROWTH = 1.05
# L-BFGS steps an outer step: the multipliers move on before an exact minimum would pay. The history is
# short because each of its vectors is two n x n matrices.
_INNER_STEPS, _HISTORY = 20, 5


class ADMMResult(NamedTuple):
    """What `acmk_admm` learned."""

    codes: np.ndarray  # the refined G^(m), one column per base clustering
    weights: np.ndarray  # alpha
    graph: np.ndarray  # W, symmetric
    objective: np.ndarray  # Eq. (7), the filter being A, after every outer step
    rebuilt_objective: np.ndarray  # Eq. (6), the filter being rebuilt from W
    gap: np.ndarray  # ||A - C||_F: how far the constraint that ties A to W is from being met
    n_iter: int


class _State(NamedTuple):
    """The blocks of Eq. (8) and its multipliers."""

    a: np.ndarray
    w: np.ndarray
    v: np.ndarray
    lambda1: np.ndarray
    lambda2: np.ndarray
    mu: float


def acmk_admm(
    x: np.ndarray,
    codes: np.ndarray,
    *,
    order: int,
    cumulative: bool,
    lam: float,
    refine: bool,
    max_iter: int,
    progress: Callable[[int, float], None] | None = None,
) -> ADMMResult:
    r"""Consensus graph, base weights and refined base clusterings.

    .. math::
        \min \; \sum_m \|A^k X - G^{(m)} F^{(m)}\|_F^2
        + \lambda \|W - \sum_m \alpha_m G^{(m)} G^{(m)T}\|_F^2
        \quad s.t. \; A = (I + D^{-1/2} W D^{-1/2}) / 2 \qquad (7)

    over 0 <= W <= 1, symmetric, one-hot G^(m), any F^(m), alpha on the simplex; D holds the row sums of W.
    With `cumulative` the filter is A + A^2 + ... + A^k. Symmetry and the box are put on a copy V = W (the
    paper puts the box on W itself): both are one projection, and W is free for L-BFGS, whose bounds SciPy
    reads one by one. Without `refine` the graph is the mean co-association and nothing is learned (ACMK-Fix).

    Symbols: X -> x; G^(m) -> codes[:, m]; k -> order; lambda -> lam; W -> graph; alpha -> weights.
    Cost: an outer step takes about 40 evaluations of n^2 (6 k d + 20) operations. Memory: about 45 n x n
    matrices, most of them the history and the work space of L-BFGS.
    """
    codes = codes.copy()
    n_bases = codes.shape[1]
    weights = np.full(n_bases, 1.0 / n_bases)
    w = consensus = _consensus(codes, weights)
    if not refine:
        within = np.array([_scatter_within(filtered(low_pass(w), x, order, cumulative), codes)])
        return ADMMResult(codes, weights, w, within, within, np.zeros(1), 1)
    zero = np.zeros_like(w)
    state = _State(low_pass(w), w, w, zero, zero, 1.0)
    centres = [_centres(x, column) for column in codes.T]
    objective, rebuilt_objective, gap = [], [], []
    for iteration in range(max_iter):
        target = np.sum([centres[m][codes[:, m]] for m in range(n_bases)], axis=0)
        a = _update_filter(state, x, target, n_bases, order, cumulative)
        w = _update_graph(state._replace(a=a), consensus, lam)
        z = filtered(a, x, order, cumulative)
        for m, column in enumerate(codes.T):
            others = consensus - weights[m] * _together(column)
            _update_labels(column, z, centres[m], _pair_cost(w, others, weights[m], lam))
            consensus = others + weights[m] * _together(column)
            centres[m] = _centres(z, column)
        v = _update_copy(w, state.lambda2, state.mu)
        weights = _update_weights(codes, w)
        consensus = _consensus(codes, weights)
        c = low_pass(w)
        state = _update_multipliers(state, a, w, v, c)
        graph = _feasible(w)
        objective.append(_scatter_within(z, codes) + lam * float(np.sum((w - consensus) ** 2)))
        rebuilt = filtered(low_pass(graph), x, order, cumulative)
        fusion = lam * float(np.sum((graph - consensus) ** 2))
        rebuilt_objective.append(_scatter_within(rebuilt, codes) + fusion)
        gap.append(float(np.linalg.norm(a - c)))
        if progress:
            progress(iteration + 1, objective[-1])
    return ADMMResult(
        codes, weights, graph, np.array(objective), np.array(rebuilt_objective), np.array(gap), max_iter
    )


def low_pass(w: np.ndarray) -> np.ndarray:
    """C = (I + D^-1/2 W D^-1/2) / 2, D the row sums. A row without links keeps only its own half."""
    root = 1.0 / np.sqrt(_degrees(w))
    c = 0.5 * root[:, None] * w * root
    c[np.diag_indices(len(c))] += 0.5
    return c


def filtered(a: np.ndarray, x: np.ndarray, order: int, cumulative: bool) -> np.ndarray:
    """A^k X, or (A + A^2 + ... + A^k) X."""
    steps = _chain(a, x, order)
    return np.sum(steps[1:], axis=0) if cumulative else steps[-1]


def _chain(a: np.ndarray, x: np.ndarray, order: int) -> list[np.ndarray]:
    steps = [x]
    for _ in range(order):
        steps.append(a @ steps[-1])
    return steps


def _degrees(w: np.ndarray) -> np.ndarray:
    # The box lets a row of W vanish, and D^-1/2 with it.
    return np.maximum(w.sum(axis=1), 1e-8)


def _consensus(codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """sum_m alpha_m G^(m) G^(m)T."""
    out = np.zeros((len(codes), len(codes)))
    for column, weight in zip(codes.T, weights, strict=True):
        out += weight * _together(column)
    return out


def _together(column: np.ndarray) -> np.ndarray:
    """G G^T of one base clustering."""
    return column[:, None] == column


def _feasible(w: np.ndarray) -> np.ndarray:
    """The nearest symmetric matrix with entries in 0..1."""
    return np.clip(0.5 * (w + w.T), 0.0, 1.0)


def _centres(z: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Eq. (15): F = (G^T G)^-1 G^T Z. No cluster is empty."""
    one_hot = np.eye(column.max() + 1)[column]
    return one_hot.T @ z / one_hot.sum(axis=0)[:, None]


def _scatter_within(z: np.ndarray, codes: np.ndarray) -> float:
    return float(sum(np.sum((z - _centres(z, column)[column]) ** 2) for column in codes.T))


def _update_filter(
    state: _State, x: np.ndarray, target: np.ndarray, n_bases: int, order: int, cumulative: bool
) -> np.ndarray:
    """Eq. (9) by L-BFGS, from where A is."""
    c = low_pass(state.w)

    def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = filter_block(
            flat.reshape(c.shape), x, target, n_bases, order, cumulative, state.lambda1, state.mu, c
        )
        return value, gradient.ravel()

    return _lbfgs(evaluate, state.a)


def filter_block(
    a: np.ndarray,
    x: np.ndarray,
    target: np.ndarray,
    n_bases: int,
    order: int,
    cumulative: bool,
    lambda1: np.ndarray,
    mu: float,
    c: np.ndarray,
) -> tuple[float, np.ndarray]:
    """J_1 of Eq. (9) and its gradient, Eq. (10).

    `target` is sum_m G^(m) F^(m), so the cross term is <target, A^k X>: the printed trace has it transposed.
    The gradient runs backwards through the chain X, AX, ..., A^k X: k products with A instead of the k
    products of n x n matrices of Eq. (10).
    """
    steps = _chain(a, x, order)
    z = np.sum(steps[1:], axis=0) if cumulative else steps[-1]
    pull = 2.0 * (n_bases * z - target)
    adjoint = [pull]
    for _ in range(order - 1):
        back = a.T @ adjoint[-1]
        adjoint.append(back + pull if cumulative else back)
    gap = a - c
    value = n_bases * np.sum(z * z) - 2.0 * np.sum(target * z)
    value += np.sum(lambda1 * a) + 0.5 * mu * np.sum(gap * gap)
    gradient = np.hstack(adjoint[::-1]) @ np.hstack(steps[:-1]).T
    gradient += lambda1
    gap *= mu
    gradient += gap
    return float(value), gradient


def _update_graph(state: _State, consensus: np.ndarray, lam: float) -> np.ndarray:
    """Eq. (11) by L-BFGS, from where W is."""
    pull = state.lambda1 + state.mu * (state.a - 0.5 * np.eye(len(state.a)))

    def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
        w = flat.reshape(pull.shape)
        value, gradient = graph_block(w, consensus, lam, pull, state.lambda2, state.mu, state.v)
        return value, gradient.ravel()

    return _lbfgs(evaluate, state.w)


def graph_block(
    w: np.ndarray,
    consensus: np.ndarray,
    lam: float,
    pull: np.ndarray,
    lambda2: np.ndarray,
    mu: float,
    v: np.ndarray,
) -> tuple[float, np.ndarray]:
    """J_2 of Eq. (11) and its gradient, Eq. (12); `pull` is Lambda_1 + mu E.

    With N = D^-1/2 W D^-1/2, J_2 holds N in mu / 8 ||N||^2 - <pull, N> / 2, whose gradient by N is R. D
    depends on the row sums of W: to row i this adds -(sums of R * N over row i and column i) / 2 D_ii.
    """
    degrees = _degrees(w)
    root = 1.0 / np.sqrt(degrees)
    normal = root[:, None] * w * root
    r = 0.25 * mu * normal - 0.5 * pull
    fusion, split = w - consensus, w - v
    value = lam * np.sum(fusion * fusion) + np.sum(lambda2 * w) + 0.5 * mu * np.sum(split * split)
    value += 0.125 * mu * np.sum(normal * normal) - 0.5 * np.sum(pull * normal)
    normal *= r
    through_degrees = (normal.sum(axis=1) + normal.sum(axis=0)) / (2.0 * degrees)
    fusion *= 2.0 * lam
    split *= mu
    r *= root[:, None]
    r *= root
    r += fusion
    r += split
    r += lambda2
    r -= through_degrees[:, None]
    return float(value), r


def _lbfgs(evaluate: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray) -> np.ndarray:
    found = minimize(
        evaluate,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _INNER_STEPS, "maxcor": _HISTORY},
    )
    return found.x.reshape(start.shape)


def _pair_cost(w: np.ndarray, others: np.ndarray, weight: float, lam: float) -> np.ndarray:
    """T of Eq. (13): what it costs that two instances share a cluster of base m.

    T = -2 lam a_m (W + W^T) + 2 lam a_m^2 + 4 lam a_m sum_{p != m} a_p G^(p) G^(p)T, zero on the diagonal;
    the sum is `others`. It enters with twice the printed factor: ||W - sum_p a_p G^(p) G^(p)T||^2 holds the
    cross term of m and p twice.
    """
    cost = lam * weight * (4.0 * others - 2.0 * (w + w.T) + 2.0 * weight)
    np.fill_diagonal(cost, 0.0)
    return cost


def _update_labels(column: np.ndarray, z: np.ndarray, centres: np.ndarray, cost: np.ndarray) -> None:
    """Eq. (13), instance after instance, in place: the best cluster given all others. None is emptied."""
    sizes = np.bincount(column, minlength=len(centres))
    fit = np.sum(z * z, axis=1)[:, None] - 2.0 * z @ centres.T + np.sum(centres * centres, axis=1)
    fit += cost @ np.eye(len(centres))[column]
    for i in range(len(column)):
        old, new = column[i], int(fit[i].argmin())
        if new == old or sizes[old] == 1:
            continue
        column[i] = new
        sizes[old] -= 1
        sizes[new] += 1
        fit[:, old] -= cost[i]
        fit[:, new] += cost[i]


def _update_copy(w: np.ndarray, lambda2: np.ndarray, mu: float) -> np.ndarray:
    """Eq. (17), with the box: the feasible matrix nearest to W + Lambda_2 / mu."""
    return _feasible(w + lambda2 / mu)


def _update_weights(codes: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Eq. (18): min ||W - sum_m alpha_m G^(m) G^(m)T||^2 over the simplex, from counts of cluster pairs."""
    one_hot = [np.eye(column.max() + 1)[column] for column in codes.T]
    gram = np.array([[np.sum((p.T @ q) ** 2) for q in one_hot] for p in one_hot])
    linear = np.array([np.sum((w @ g) * g) for g in one_hot])
    return minimize_quadratic(gram, linear)


def _update_multipliers(state: _State, a: np.ndarray, w: np.ndarray, v: np.ndarray, c: np.ndarray) -> _State:
    """Eq. (19)."""
    lambda1 = state.lambda1 + state.mu * (a - c)
    lambda2 = state.lambda2 + state.mu * (w - v)
    return _State(a, w, v, lambda1, lambda2, _GROWTH * state.mu)
