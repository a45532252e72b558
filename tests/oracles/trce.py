"""TRCE on all instances, dense, row by row: as published, with its bug, or as intended. Slow on purpose."""

import numpy as np
from scipy.optimize import brentq
from scipy.sparse.csgraph import connected_components

EPS = np.finfo(float).eps


def transition_matrices(base):
    """Row-normalised connective matrices; a row that a base did not see has none there."""
    matrices = [(column[:, None] == column) & (column >= 0) for column in base.T]
    return [a / np.maximum(a.sum(axis=1, keepdims=True), 1) for a in matrices]


def divergence(a, b):
    """Rows of the Kullback-Leibler divergence of A from B."""
    return np.sum(a * np.log(np.maximum(a / np.maximum(b, EPS), EPS)), axis=1)


def on_simplex(v):
    """Projection of a vector on the simplex, by sorting."""
    u = np.sort(v)[::-1]
    theta = (np.cumsum(u) - 1.0) / np.arange(1, len(v) + 1)
    return np.maximum(v - theta[np.flatnonzero(u > theta)[-1]], 0.0)


def common_row(h, penalty):
    """h / (penalty + t), with the t at which it sums to one."""
    t = brentq(lambda t: (h / (penalty + t)).sum() - 1.0, EPS, 1e6)
    return h / (penalty + t)


def embed(s, k):
    values, vectors = np.linalg.eigh(np.diag(s.sum(axis=1)) - s)
    return values, vectors[:, :k]


def plain_trce(base, k, gamma, *, bug):
    """S and the labels (its components) after at most ten steps."""
    a = transition_matrices(base)
    n, m = base.shape
    s = sum(a) / m
    s = (s + s.T) / 2.0
    b, weight, rho = s.copy(), np.full(m, 1.0 / m), 1.0
    _, f = embed(s, k)
    for step in range(10):
        kl = np.array([divergence(a_j, b) for a_j in a]).T
        if bug:  # the loop runs over j and reads the last index k
            difficulty = m * kl[:, -1] / weight[-1]
        else:
            difficulty = kl @ (1.0 / weight)
        if step == 0:
            age = 2.0 * np.sort(difficulty)[n // 10 - 1]
        else:
            age *= 1.1
        w = np.minimum(age / np.maximum(2.0 * difficulty, EPS), 1.0)
        distance = ((f[:, None] - f[None]) ** 2).sum(axis=2)
        np.fill_diagonal(distance, 0.0)
        h = w[:, None] ** 2 * sum(a_j / weight_j for a_j, weight_j in zip(a, weight, strict=True))
        b = np.zeros((n, n))
        for i in range(n):
            on = h[i] > 0
            if on.any():
                b[i, on] = common_row(h[i, on], rho * distance[i, on])
        s = np.array([on_simplex(b[i] - rho / (2.0 * gamma) * distance[i]) for i in range(n)])
        s = (s + s.T) / 2.0
        kl = np.array([divergence(a_j, b) for a_j in a]).T
        old = f
        values, f = embed(s, k)
        weight = np.sqrt(np.maximum(w**2 @ kl, 0.0))
        weight /= weight.sum()
        if values[:k].sum() > 1e-9:
            rho *= 2.0
        elif values[: k + 1].sum() < 1e-11:
            rho /= 2.0
            f = old
        elif step >= 1:
            break
    return s, connected_components(s > 0)[1]
