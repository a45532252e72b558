"""RCE on all instances, one dense matrix and one matrix of errors a base. Slow on purpose."""

import numpy as np

EPS = np.finfo(float).eps


def log_ratio(x, y):
    return np.log(np.maximum(np.maximum(x, EPS) / np.maximum(y, EPS), EPS))


def divergence(a, b):
    """KL of two probabilities of being linked, entry by entry."""
    return a * log_ratio(a, b) + (1.0 - a) * log_ratio(1.0 - a, 1.0 - b)


def best_error(a, s, price):
    """Of one base: the better of the two candidates, a link too many and a link too few."""
    t = s + s.T
    over = (1 + 2 * price * a - price - np.sqrt(1 + price**2 - 2 * price + 2 * price * t)) / (2 * price)
    over = np.where(np.maximum(over, 0) > a, 0.0, np.maximum(over, 0))
    inside = np.maximum(1 + price**2 + 2 * price - 2 * price * t, 0)
    under = (2 * price * a - price - 1 + np.sqrt(inside)) / (2 * price)
    under = np.where(np.minimum(under, 0) < a - 1, 0.0, np.minimum(under, 0))

    def cost(e):
        return divergence(s, a - e) + divergence(s.T, a - e) + 2 * price * np.abs(e)

    return np.where(cost(over) <= cost(under), over, under)


def plain_rce(base, sparsity, rank, *, rounds=20, steps=20):
    """A* of all instances, for complete tables."""
    n, v = base.shape
    links = [(column[:, None] == column).astype(float) for column in base.T]
    s = sum(links) / v
    still = (s == 0) | (s == 1)
    p = np.zeros((n, n))
    for _ in range(rounds):
        c = np.zeros((n, n))
        for a in links:
            kept = a - best_error(a, s, sparsity)
            c += np.log(np.maximum((1 - kept) / np.maximum(kept, EPS), EPS))
        more, less = np.maximum(rank * p, 0), np.maximum(-rank * p, 0)
        for _ in range(steps):
            x, y = np.maximum(s, EPS), np.maximum(1 - s, EPS)
            quadratic = 2 * v / x + 2 * v / y + np.maximum(c, 0) / x + 2 * (more @ s) / x
            linear = v * np.log(x / y) - 2 * v / y
            constant = np.maximum(-c, 0) * s + 2 * (less @ s) * s
            root = (np.sqrt(linear**2 + 4 * quadratic * constant) - linear) / (2 * quadratic)
            s = np.where(still, s, np.minimum(root, 1))
        values, vectors = np.linalg.eigh(s @ s.T + 1e-3 * np.eye(n))
        p = (vectors / np.sqrt(values)) @ vectors.T
    return s
