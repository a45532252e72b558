"""The factorisation methods with full matrices, as their papers write them. Slow on purpose."""

import numpy as np
from scipy.linalg import solve_sylvester


def plain_daimc(x, observed, v, u, b, *, alpha, beta, n_sweeps, n_inner=30):
    """Sylvester equations, full diagonal matrices; returns V, U, B and the objective of every sweep.

    `x` has instances in columns here, as in the paper.
    """
    w = [np.diag(column.astype(float)) for column in observed.T]
    u, b = list(u), list(b)
    trace = []
    for _ in range(n_sweeps):
        for i in range(len(x)):
            u[i] = solve_sylvester(alpha * b[i] @ b[i].T, v.T @ w[i] @ v, x[i] @ w[i] @ v + alpha * b[i])
        before = None
        for _ in range(n_inner):
            up, down = np.zeros_like(v), np.zeros_like(v)
            for i in range(len(x)):
                xu, uu = x[i].T @ u[i], u[i].T @ u[i]
                up += w[i] @ (np.maximum(xu, 0) + v @ np.maximum(-uu, 0))
                down += w[i] @ (np.maximum(-xu, 0) + v @ np.maximum(uu, 0))
            v = v * np.sqrt(up / np.maximum(down, 1e-10))
            loss = sum((((x[i] - u[i] @ v.T) @ w[i]) ** 2).sum() for i in range(len(x)))
            if before is not None and abs(loss - before) < 1e-4 * before:
                break
            before = loss
        sums = v.sum(axis=0)
        v = v / sums
        total = 0.0
        for i in range(len(x)):
            u[i] = u[i] * sums
            d = np.diag(1 / np.sqrt((b[i] ** 2).sum(axis=1) + 1e-10))
            b[i] = np.linalg.solve(u[i] @ u[i].T + 0.5 * beta * d, u[i])
            total += (((x[i] - u[i] @ v.T) @ w[i]) ** 2).sum()
            total += alpha * ((b[i].T @ u[i] - np.eye(v.shape[1])) ** 2).sum()
            total += alpha * beta * np.sqrt((b[i] ** 2).sum(axis=1) + 1e-10).sum()
        trace.append(total)
    return v, u, b, np.array(trace)


def plain_mic(x, weights, u, v, *, alpha, beta, n_rounds, n_inner=30):
    """Weights as full diagonal matrices; returns U*, U and V after so many rounds."""
    u, v = list(u), list(v)
    w = [np.diag(column) for column in weights.T]
    for _ in range(n_rounds):
        consensus = np.linalg.inv(sum(a @ a for a in w)) @ sum(a @ a @ b for a, b in zip(w, u, strict=True))
        for i in range(len(x)):
            w2 = w[i] @ w[i]
            for _ in range(n_inner):
                d = np.diag(1 / np.linalg.norm(u[i], axis=1))
                down = w2 @ u[i] @ v[i].T @ v[i] + alpha * w2 @ u[i] + 0.5 * beta * d @ u[i]
                u[i] = u[i] * np.sqrt((w2 @ x[i] @ v[i] + alpha * w2 @ consensus) / down)
                v[i] = v[i] * np.sqrt((x[i].T @ w2 @ u[i]) / (v[i] @ u[i].T @ w2 @ u[i]))
                q = np.diag(v[i].sum(axis=0))
                v[i], u[i] = v[i] @ np.linalg.inv(q), u[i] @ q
    return consensus, u, v


def mic_objective(x, weights, u, v, consensus, *, alpha, beta, axis):
    """With the l2,1 norm over rows (axis 1, the paper) or columns (axis 0, the authors' program)."""
    total = 0.0
    for i in range(len(x)):
        w = weights[:, [i]]
        total += ((w * (x[i] - u[i] @ v[i].T)) ** 2).sum() + alpha * ((w * (u[i] - consensus)) ** 2).sum()
        total += beta * np.sqrt((u[i] ** 2).sum(axis=axis)).sum()
    return total


def plain_multinmf(x, v, u, *, weight, n_rounds, n_inner=100):
    """One entry of a basis at a time where the paper sums; returns V* and V."""
    v, u = [a.copy() for a in v], [a.copy() for a in u]
    for i in range(len(x)):
        q = np.diag(u[i].sum(axis=0))
        v[i], u[i] = v[i] @ q, u[i] @ np.linalg.inv(q)
    for _ in range(n_rounds):
        consensus = sum(v) / len(v)
        for i in range(len(x)):
            for _ in range(n_inner):
                v[i] = v[i] * (x[i] @ u[i] + weight * consensus) / (v[i] @ u[i].T @ u[i] + weight * v[i])
                up, down = x[i].T @ v[i], u[i] @ v[i].T @ v[i]
                for k in range(u[i].shape[1]):
                    up[:, k] += weight * sum(consensus[j, k] * v[i][j, k] for j in range(len(consensus)))
                    down[:, k] += (
                        weight * u[i][:, k].sum() * sum(v[i][j, k] ** 2 for j in range(len(consensus)))
                    )
                u[i] = u[i] * up / down
                q = np.diag(u[i].sum(axis=0))
                v[i], u[i] = v[i] @ q, u[i] @ np.linalg.inv(q)
    return sum(v) / len(v), v
