"""ACMK as the paper writes it: every formula in full, every matrix dense. Slow on purpose."""

from typing import NamedTuple

import numpy as np
from numpy.linalg import matrix_power
from scipy.optimize import minimize


class Plain(NamedTuple):
    codes: np.ndarray
    alpha: np.ndarray
    w: np.ndarray
    objective: np.ndarray  # Eq. (7) after every step
    gap: np.ndarray


def one_hot(column):
    return (column[:, None] == np.arange(column.max() + 1)).astype(float)


def fused(codes, alpha):
    """sum_m alpha_m G^(m) G^(m)T."""
    return sum(a * one_hot(column) @ one_hot(column).T for a, column in zip(alpha, codes.T, strict=True))


def low_pass(w):
    root = np.diag(w.sum(axis=1) ** -0.5)
    return 0.5 * (np.eye(len(w)) + root @ w @ root)


def power_filter(a, order, cumulative=False):
    powers = [matrix_power(a, j) for j in range(1, order + 1)]
    return sum(powers) if cumulative else powers[-1]


def centres(z, column):
    g = one_hot(column)
    return np.linalg.inv(g.T @ g) @ g.T @ z


def split_objective(a, w, x, codes, fs, alpha, lam, order):
    """Eq. (7)."""
    z = power_filter(a, order) @ x
    fit = sum(np.sum((z - one_hot(column) @ f) ** 2) for column, f in zip(codes.T, fs, strict=True))
    return fit + lam * np.sum((w - fused(codes, alpha)) ** 2)


def filter_gradient(a, x, codes, fs, order, lambda1, mu, c):
    """Eq. (10), as printed."""
    v = codes.shape[1]
    b = sum(x @ f.T @ one_hot(column).T for column, f in zip(codes.T, fs, strict=True))
    power = [matrix_power(a, j) for j in range(order + 1)]
    first = sum((power[order - r - 1] @ x @ x.T @ power[order].T @ power[r]).T for r in range(order))
    second = sum((power[r] @ b @ power[order - r - 1]).T for r in range(order))
    return 2 * v * first - 2 * second + lambda1 + mu * (a - c)


def filter_value(a, x, codes, fs, order, lambda1, mu, c):
    """Eq. (9) without its constant, with the cross term as it follows from Eq. (8): tr(B A^k)."""
    v = codes.shape[1]
    b = sum(x @ f.T @ one_hot(column).T for column, f in zip(codes.T, fs, strict=True))
    power = matrix_power(a, order)
    value = v * np.trace(power @ x @ x.T @ power.T) - 2 * np.trace(b @ power)
    return value + np.trace(lambda1.T @ a) + mu / 2 * np.sum((a - c) ** 2)


def graph_value(w, f, lam, lambda1, e, lambda2, mu, v):
    """Eq. (11)."""
    d = w.sum(axis=1)
    root, inverse = np.diag(d**-0.5), np.diag(1 / d)
    return (
        lam * np.sum((w - f) ** 2)
        - 0.5 * np.trace(lambda1.T @ root @ w @ root)
        + np.trace(lambda2.T @ w)
        + mu / 8 * np.trace(root @ w.T @ inverse @ w @ root)
        - mu / 2 * np.trace(e.T @ root @ w @ root)
        + mu / 2 * np.sum((w - v) ** 2)
    )


def graph_gradient(w, f, lam, lambda1, e, lambda2, mu, v):
    """Eq. (12), as printed."""
    d = w.sum(axis=1)
    root, inverse, ones = np.diag(d**-0.5), np.diag(1 / d), np.ones((1, len(w)))
    pull = lambda1 + mu * e
    first = np.diag(np.diag(d**-1.5) @ (pull.T @ root @ w + pull @ root @ w.T))[:, None] @ ones
    second = np.diag(np.diag(d**-2.0) @ (w.T @ inverse @ w + w @ inverse @ w.T))[:, None] @ ones
    return (
        2 * lam * (w - f)
        - 0.5 * root @ pull @ root
        + 0.25 * first
        + lambda2
        + mu / 4 * inverse @ w @ inverse
        + mu * (w - v)
        - mu / 8 * second
    )


def label_sweep(codes, m, z, f, w, alpha, lam):
    """Eq. (13) row by row, by trying every cluster and evaluating the objective in full."""
    codes = codes.copy()
    for i in range(len(codes)):
        old = codes[i, m]
        if np.sum(codes[:, m] == old) == 1:
            continue
        costs = []
        for j in range(len(f)):
            codes[i, m] = j
            hot = np.eye(len(f))[codes[:, m]]
            others = sum(
                alpha[p] * one_hot(codes[:, p]) @ one_hot(codes[:, p]).T
                for p in range(codes.shape[1])
                if p != m
            )
            gap = w - others - alpha[m] * hot @ hot.T
            costs.append(np.sum((z - hot @ f) ** 2) + lam * np.sum(gap**2))
        codes[i, m] = int(np.argmin(costs))
    return codes[:, m]


def weight_step(codes, w):
    """Eq. (18) by a general solver."""
    shares = [one_hot(column) @ one_hot(column).T for column in codes.T]
    h = np.array([[np.sum(p * q) for q in shares] for p in shares])
    f = np.array([-2 * np.sum(w * p) for p in shares])
    scale = np.trace(h)
    found = minimize(
        lambda a: (a @ h @ a + f @ a) / scale,
        np.full(len(h), 1 / len(h)),
        jac=lambda a: (2 * h @ a + f) / scale,
        bounds=[(0, 1)] * len(h),
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(len(a))},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    return found.x


def plain_admm(x, base, *, order, lam, n_iter, boxed):
    """Algorithm 1. With `boxed`, 0 <= W <= 1 is held by W, as published; otherwise by its copy V."""
    codes = base.copy()
    n, v = codes.shape
    alpha = np.full(v, 1 / v)
    w = fused(codes, alpha)
    a, copy, mu = low_pass(w), w, 1.0
    lambda1, lambda2 = np.zeros((n, n)), np.zeros((n, n))
    fs = [centres(x, column) for column in codes.T]
    objective, gap = [], []
    for _ in range(n_iter):
        c = low_pass(w)
        filters = (x, codes, fs, order, lambda1, mu, c)
        a = _lbfgs(filter_value, filter_gradient, a, filters, None)
        graphs = (fused(codes, alpha), lam, lambda1, a - np.eye(n) / 2, lambda2, mu, copy)
        w = _lbfgs(graph_value, graph_gradient, w, graphs, [(0, 1)] * n * n if boxed else None)
        z = power_filter(a, order) @ x
        for m in range(v):
            codes[:, m] = label_sweep(codes, m, z, fs[m], w, alpha, lam)
            fs[m] = centres(z, codes[:, m])
        copy = (w + w.T) / 2 + (lambda2 + lambda2.T) / (2 * mu)
        copy = copy if boxed else np.clip(copy, 0, 1)
        alpha = weight_step(codes, w)
        lambda1 = lambda1 + mu * (a - low_pass(w))
        lambda2 = lambda2 + mu * (w - copy)
        mu *= 1.05
        objective.append(split_objective(a, w, x, codes, fs, alpha, lam, order))
        gap.append(np.linalg.norm(a - low_pass(w)))
    return Plain(codes, alpha, w, np.array(objective), np.array(gap))


def _lbfgs(value, gradient, start, arguments, bounds):
    found = minimize(
        lambda flat: value(flat.reshape(start.shape), *arguments),
        start.ravel(),
        jac=lambda flat: gradient(flat.reshape(start.shape), *arguments).ravel(),
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 20, "maxcor": 5},
    )
    return found.x.reshape(start.shape)


def plain_sparse(x, base, *, order, cumulative, mask, n_iter):
    """The neighbour form with dense matrices: filter, one Lloyd step of every base, weights, graph."""
    codes = base.copy()
    alpha = np.full(codes.shape[1], 1 / codes.shape[1])
    w = mask * fused(codes, alpha)
    for _ in range(n_iter):
        z = power_filter(low_pass(w), order, cumulative) @ x
        for m, column in enumerate(codes.T.copy()):
            f = centres(z, column)
            codes[:, m] = ((z[:, None, :] - f) ** 2).sum(axis=2).argmin(axis=1)
        shares = [mask * (one_hot(column) @ one_hot(column).T) for column in codes.T]
        gram = np.array([[np.sum(p * q) for q in shares] for p in shares])
        linear = np.array([np.sum(p * w) for p in shares])
        scale = np.trace(gram)
        alpha = minimize(
            lambda a: (a @ gram @ a - 2 * linear @ a) / scale,  # noqa: B023 - used at once
            alpha,
            bounds=[(0, 1)] * len(alpha),
            constraints={"type": "eq", "fun": lambda a: a.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-16, "maxiter": 1000},
        ).x
        w = mask * fused(codes, alpha)
    return codes, alpha, w


def smoothed_consensus(w, codes, c, steps):
    """The projector on N^steps U: U the leading eigenvectors of the co-association, N = D^-1/2 W D^-1/2."""
    together = fused(codes, np.full(codes.shape[1], 1 / codes.shape[1]))
    u = np.linalg.eigh(together)[1][:, -c:]
    normal = 2 * low_pass(w) - np.eye(len(w))
    basis = np.linalg.qr(matrix_power(normal, steps) @ u)[0]
    return basis @ basis.T
