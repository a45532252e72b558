"""SCCBG on all instances, one explicit matrix a row and problem. Slow on purpose."""

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components


def one_hot(base):
    """S_0 and, for every entry, whether the base of its column saw the row."""
    blocks = [(column[:, None] == np.unique(column[column >= 0])).astype(float) for column in base.T]
    seen = [
        np.repeat((column >= 0)[:, None], b.shape[1], axis=1)
        for column, b in zip(base.T, blocks, strict=True)
    ]
    return np.hstack(blocks), np.hstack(seen).astype(float)


def pace_matrix(s, s0, seen, a):
    """M of one row: price of its memberships, and of their differences."""
    return np.diag(seen * (s - s0) ** 2) + a * (s[:, None] - s) ** 2


def plain_pace(w, m, age, steps=1000):
    """Descent by the bound of the row sums, one row at a time."""
    bound = np.maximum(m.sum(axis=1), 1e-12)
    for _ in range(steps):
        moved = np.clip(w - (m @ w - age / 2) / bound, 0, 1)
        if np.abs(moved - w).max() <= 1e-6:
            return moved
        w = moved
    return w


def membership_value(s, s0, seen, a, w, pull):
    return seen @ (w * (s - s0)) ** 2 + w @ (a * (s[:, None] - s) ** 2) @ w + 2 * pull @ s


def plain_memberships(s0, seen, a, w, pull):
    """One row, by a general solver."""

    def slope(s):
        return 2 * seen * w**2 * (s - s0) + 4 * w * ((a @ w) * s - a @ (w * s)) + 2 * pull

    found = minimize(
        membership_value, s0, (s0, seen, a, w, pull), "L-BFGS-B", jac=lambda s, *_: slope(s),
        bounds=[(0, 1)] * len(s0), options={"ftol": 0, "gtol": 1e-12, "maxiter": 10_000, "maxfun": 100_000},
    )  # fmt: skip
    return found.x


def plain_distances(s, k):
    """Squared distances in the eigenvectors of the bipartite graph, and the eigenvalues."""
    d1, d2 = s.sum(axis=1), s.sum(axis=0)
    d1, d2 = np.where(d1 > 0, d1, np.inf), np.where(d2 > 0, d2, np.inf)
    u, sigma, vt = np.linalg.svd(s / np.sqrt(d1)[:, None] / np.sqrt(d2), full_matrices=False)
    f = u[:, :k] / np.sqrt(2 * d1)[:, None]
    g = vt[:k].T / np.sqrt(2 * d2)[:, None]
    return ((f[:, None] - g) ** 2).sum(axis=2), sigma**2


def plain_sccbg(base, k, smoothness, max_iter=20):
    """Memberships, pace and components of all instances."""
    s0, seen = one_hot(base)
    a = smoothness / len(base) * s0.T @ s0
    np.fill_diagonal(a, 0)
    s, w = s0, np.zeros_like(s0)
    age, structure = 0.5, 1.0
    for _ in range(max_iter):
        if w.min() < 1:
            w = np.array(
                [plain_pace(w[i], pace_matrix(s[i], s0[i], seen[i], a), age) for i in range(len(base))]
            )
        distance, values = plain_distances(s, k)
        if values[:k].sum() < k - 1e-7:
            structure *= 2
        elif values[: k + 1].sum() > k + 1 - 1e-7:
            structure /= 2
        else:
            break
        pull = structure / 2 * distance
        s = np.array([plain_memberships(s0[i], seen[i], a, w[i], pull[i]) for i in range(len(base))])
        s[s < 1e-4] = 0
        age *= 2
    n = len(base)
    graph = np.block([[np.zeros((n, n)), s], [s.T, np.zeros((s.shape[1],) * 2)]])
    return s, w, connected_components(graph > 0)[1][:n]
