"""CESHL on all instances, its matrices built one by one. Slow on purpose."""

import numpy as np
from scipy.optimize import lsq_linear, minimize
from scipy.sparse.csgraph import connected_components

from tests.oracles.lw import clusters

EPS = np.finfo(float).eps


def plain_weights(base, smoothness):
    """H_0 and w, for complete tables."""
    h = np.array([members for _, members in clusters(base)], dtype=float).T
    shared = h @ h.T / base.shape[1]
    quality = np.array([shared[np.ix_(edge > 0, edge > 0)].mean() for edge in h.T])
    overlaps = h.T @ h
    root = np.sqrt(overlaps.sum(axis=1))
    system = (1.0 + smoothness) * np.eye(h.shape[1]) - overlaps / np.outer(root, root)
    upper = np.linalg.cholesky(system).T
    target = np.linalg.solve(upper.T, smoothness * quality)
    return h, lsq_linear(upper, target, bounds=(0, 1), tol=1e-14, method="bvls").x


def plain_value(h, first, w, y, rho):
    """What a step minimises."""
    degrees, sizes = np.maximum(h @ w, EPS), np.maximum(h.sum(axis=0), EPS)
    scale = np.diag(degrees**-0.5)
    normalized = scale @ h @ np.diag(w / sizes) @ h.T @ scale
    return np.sum(((h - first) @ np.diag(w)) ** 2) - rho * np.trace(y.T @ normalized @ y)


def plain_slope(h, first, w, y, rho):
    """Its gradient, by the product rule over the three places in which H stands."""
    degrees, sizes = np.maximum(h @ w, EPS), np.maximum(h.sum(axis=0), EPS)
    t = y / np.sqrt(degrees)[:, None]
    inner = h.T @ t
    by_edges = -2.0 * rho * np.diag(w / sizes) @ inner
    by_sizes = rho * w / sizes**2 * np.sum(inner**2, axis=1)
    by_degrees = -0.5 * degrees**-1.5 * np.sum(y * (h @ by_edges), axis=1)
    return 2.0 * (h - first) * w**2 + t @ by_edges.T + by_sizes + np.outer(by_degrees, w)


def plain_ceshl(base, k, smoothness):
    """w and the labels: components of the learned hypergraph."""
    first, w = plain_weights(base, smoothness)

    def graph(h):
        return h @ np.diag(w / np.maximum(h.sum(axis=0), EPS)) @ h.T

    def eigen(h):
        return np.linalg.eigh(np.diag(h @ w) - graph(h))

    h, rho = first, 100.0
    y = eigen(h)[1][:, :k]
    for step in range(100):
        found = minimize(
            lambda x, y=y, rho=rho: plain_value(x.reshape(first.shape), first, w, y, rho),
            h.ravel(),
            jac=lambda x, y=y, rho=rho: plain_slope(x.reshape(first.shape), first, w, y, rho).ravel(),
            method="L-BFGS-B",
            bounds=[(0, 1)] * first.size,
            options={"maxcor": 5, "maxiter": 20, "gtol": 1e-3, "ftol": 0},
        )
        h = found.x.reshape(first.shape)
        values, vectors = eigen(h)
        if values[:k].sum() > 1e-9:
            rho *= 2.0
            y = vectors[:, :k]
        elif values[: k + 1].sum() < 1e-11:
            rho /= 2.0
        elif step:
            break
        else:
            y = vectors[:, :k]
    return w, connected_components(graph(h) > 0)[1]
