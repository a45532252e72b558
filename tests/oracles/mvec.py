"""MVEC and M2VEC on all instances, as their steps are written down. Slow on purpose."""

import numpy as np
from scipy.optimize import brentq

from tests.oracles.rsec import shares


def on_simplex(row):
    """Nearest point with entries that are not negative and sum to one, by its one multiplier."""
    shift = brentq(lambda t: np.maximum(row - t, 0).sum() - 1, row.min() - 1, row.max(), xtol=1e-15)
    return np.maximum(row - shift, 0)


def transitions(share, free):
    """Rows that sum to the share of instances with which the row was seen."""
    sums = share.sum(axis=1, keepdims=True)
    left = (~free).mean(axis=1, keepdims=True)
    return np.divide(share * left, sums, out=np.zeros_like(share), where=sums > 0)


def restoring_map(x, z_and_e, y, mu, corruption):
    """W of one view, row by row; rows that the view did not see are not moved."""
    gram = x @ x.T
    size = np.sum(x**2)
    ridge = corruption / (1 - corruption) * np.diag(np.diag(gram))
    system = 2 / size * (gram + ridge) + mu * np.eye(len(x))
    w = z_and_e - y / mu
    for i in np.flatnonzero(np.diag(gram) > 0):
        w[i] = np.linalg.solve(system, 2 / size * gram[i] + mu * z_and_e[i] - y[i])
    return w


def plain_graph(tables, k, rank, noise, steps, corruption=None):
    """Z after so many steps, from one table of labels a view."""
    pairs = [shares(table) for table in tables]
    n = len(tables[0])
    s = [transitions(*pair) for pair in pairs]
    z, y_j, apart = (np.zeros((n, n)) for _ in range(3))
    e, y = [np.zeros((n, n)) for _ in s], [np.zeros((n, n)) for _ in s]
    mu = 1.0
    for _ in range(steps):
        if corruption is not None:
            s = [restoring_map(pairs[v][0], z + e[v], y[v], mu, corruption) for v in range(len(s))]
        u, values, vt = np.linalg.svd(z + y_j / mu)
        j = u @ np.diag(np.maximum(values - rank / mu, 0)) @ vt
        for v, (_, free) in enumerate(pairs):
            rest = s[v] - z + y[v] / mu
            shrunk = np.sign(rest) * np.maximum(np.abs(rest) - noise / n / mu, 0)
            e[v] = np.where(free, rest, shrunk)
        wanted = [s[v] - e[v] + y[v] / mu for v in range(len(s))] + [j - y_j / mu]
        mean = sum(wanted) / len(wanted) - apart / (2 * mu * len(wanted))
        z = np.array([on_simplex(row) for row in mean])
        h = np.linalg.eigh((z + z.T) / 2)[1][:, -k:]
        apart = ((h[:, None] - h) ** 2).sum(axis=2)
        y = [y[v] + mu * (s[v] - z - e[v]) for v in range(len(s))]
        y_j = y_j + mu * (z - j)
        mu *= 1.1
    return z
