"""RSEC on all instances, as its steps are written down. Slow on purpose."""

import numpy as np


def shares(base):
    """Co-association of co-observed pairs, and which pairs are none."""
    seen = (base >= 0).astype(float)
    together = seen @ seen.T
    agreed = sum(((c[:, None] == c) & (c >= 0)[:, None]).astype(float) for c in base.T)
    return np.divide(agreed, together, out=np.zeros_like(agreed), where=together > 0), together == 0


def sharpened(a):
    """Fourth powers of cosines between the rows of U sqrt(s)."""
    u, s, _ = np.linalg.svd(a)
    b = u[:, s > 1e-4 * s[0]] * np.sqrt(s[s > 1e-4 * s[0]])
    norms = np.linalg.norm(b, axis=1, keepdims=True)
    b = b / np.where(norms > 1e-10 * norms.max(), norms, np.inf)
    a = (b @ b.T) ** 4
    # Cosines with itself are one, also of a row of zeros.
    np.fill_diagonal(a, 1.0)
    return a


def plain_rsec(base, k, rank, noise, steps):
    """Z and E after so many steps."""
    s, free = shares(base)
    n = len(s)
    l2 = noise / np.linalg.norm(s, axis=0).sum()
    mu = 1.5 / s.sum(axis=0).max()
    z, e, y1, y2, h = (np.zeros((n, n)) for _ in range(5))
    d = np.ones(n)
    for _ in range(steps):
        u, values, vt = np.linalg.svd(z + y2 / mu)
        j = u @ np.diag(np.maximum(values - rank / mu, 0)) @ vt
        spectral = h @ h.T / np.sqrt(d)[:, None] / np.sqrt(d)
        right = s.T @ s + j - s.T @ e + (s.T @ y1 - y2 + spectral) / mu
        z = np.linalg.solve(s.T @ s + np.eye(n), right)
        q = s - s @ z + y1 / mu
        for column in range(n):
            seen = ~free[:, column]
            length = np.linalg.norm(q[seen, column])
            e[:, column] = q[:, column]
            e[seen, column] *= max(1 - l2 / mu / max(length, 1e-300), 0)
        a = sharpened((z + z.T) / 2 + h @ h.T)
        d = a.sum(axis=1)
        h = np.linalg.eigh(a / np.sqrt(d)[:, None] / np.sqrt(d))[1][:, -k:] / np.sqrt(d)[:, None]
        y1 = y1 + mu * (s - s @ z - e)
        y2 = y2 + mu * (z - j)
        mu = min(1.1 * mu, 1e10)
    return z, e
