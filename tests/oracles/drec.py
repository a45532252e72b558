"""DREC column by column, with plain linear systems. Slow on purpose."""

import numpy as np

from tests.oracles.lw import clusters


def plain_representation(base, regularization):
    """Distinct rows and their Z: five sweeps of reweighted least squares."""
    rows = np.unique(base, axis=0)
    x = np.array([members for _, members in clusters(rows)], dtype=float)
    x *= np.sqrt(rows.shape[1] / (rows >= 0).sum(axis=1))
    n = len(rows)
    z, d = np.zeros((n, n)), np.ones(n)
    for _ in range(5):
        for j in range(n):
            z[:, j] = np.linalg.solve(x.T @ x + regularization / d[j] * np.eye(n), x.T @ x[:, j])
        d = 1.0 / (2.0 * np.maximum(np.linalg.norm(x @ z - x, axis=0), 1e-12))
    return rows, z
