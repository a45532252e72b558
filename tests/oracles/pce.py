"""PCE as the paper writes it: dense one-hot matrices, n x n start, every formula in full. Slow on purpose."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize


class Plain(NamedTuple):
    labels: np.ndarray
    init_labels: np.ndarray
    objective: np.ndarray  # after every iteration
    lam: np.ndarray  # in every iteration
    alpha: np.ndarray
    h: np.ndarray
    v: np.ndarray
    rotations: list[np.ndarray]
    filled: np.ndarray


def plain_pce(
    base: np.ndarray,
    c: int,
    *,
    gamma: float = 1.0,
    start: int = 0,
    n_iter: int = 20,
    authors: bool = False,
    self_paced: bool = True,
    diversity: bool = True,
    h0: np.ndarray | None = None,
    h_tol: float = 1e-13,
) -> Plain:
    """With `authors`, rotations start from identity matrices and (Y, R) restarts in every iteration, as in
    the published program; otherwise as in consilience. `h0` spares the n x n start."""
    n, m = base.shape
    missing = base < 0
    ks = [base[:, i].max() + 1 for i in range(m)]
    ys = [one_hot(base[:, i], k) for i, k in enumerate(ks)]
    alpha = np.full(m, 1.0 / m)

    h = h0
    if h is None:
        _, vectors = np.linalg.eigh(sum(y @ y.T for y in ys) / m)
        h = vectors[:, ::-1][:, :c]
    labels, r = rotation_from(h, start)
    init_labels = labels
    rs = [np.eye(k, c) if authors else svd_polar(y.T @ h) for y, k in zip(ys, ks, strict=True)]
    v = np.ones(n)
    rs = rotation_pass(ys, rs, alpha, h, v, diversity)

    lam, lams, objective = None, [], []
    for iteration in range(n_iter):
        loss = losses(ys, rs, alpha, h, diversity)
        if lam is None:
            lam = 2 * np.sort(loss)[max(n // 10, 1) - 1]
            lam = lam if lam > 1e-12 else 1e-3
        if not self_paced:
            lam = 0.0
        else:
            v = np.array([1.0 if 2 * x <= lam else lam / (2 * x) for x in loss])
        s = sum(a * y @ q for a, y, q in zip(alpha, ys, rs, strict=True))
        y_hot = one_hot(labels, c)
        h = h_step(h, v**2, gamma, gamma * y_hot @ r.T + v[:, None] ** 2 * s, h_tol)
        for i in range(m):
            others = sum(alpha[j] * ys[j] @ rs[j] for j in range(m) if j != i) if diversity else 0 * h
            norms = 0.5 * alpha[i] * (rs[i] ** 2).sum(axis=1)
            e = norms[:, None] + rs[i] @ (others - h).T  # (k_i, n)
            filled = np.where(missing[:, i], e.argmin(axis=0), base[:, i])
            ys[i] = one_hot(filled, ks[i])
        alpha = alpha_step(ys, rs, h, v, diversity)
        rs = rotation_pass(ys, rs, alpha, h, v, diversity)
        if authors:
            labels, r = rotation_from(h, start)
        else:
            r = svd_polar(h.T @ one_hot(labels, c))
            labels = (h @ r).argmax(axis=1)
        objective.append(
            float(v**2 @ losses(ys, rs, alpha, h, diversity))
            - lam * v.sum()
            + gamma * ((one_hot(labels, c) - h @ r) ** 2).sum()
        )
        lams.append(lam)
        if iteration < 9:
            lam *= 1.1
    filled = np.column_stack([y.argmax(axis=1) for y in ys])
    return Plain(labels, init_labels, np.array(objective), np.array(lams), alpha, h, v, rs, filled)


def one_hot(codes: np.ndarray, k: int) -> np.ndarray:
    out = np.zeros((len(codes), k))
    out[np.flatnonzero(codes >= 0), codes[codes >= 0]] = 1.0
    return out


def svd_polar(x: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(x, full_matrices=False)
    return left @ right


def losses(ys, rs, alpha, h, diversity):
    s = sum(a * y @ q for a, y, q in zip(alpha, ys, rs, strict=True))
    if diversity:
        return ((h - s) ** 2).sum(axis=1)
    own = sum(a**2 * (y @ q) ** 2 for a, y, q in zip(alpha, ys, rs, strict=True)).sum(axis=1)
    return (h**2 - 2 * h * s).sum(axis=1) + own


def h_step(h, v2, gamma, c, tol):
    """min tr(H' D H) - 2 tr(H' C) over orthonormal H, D = V^2 + gamma I, to a fixed point."""
    mu, d = 1.0 + gamma, v2[:, None] + gamma
    for _ in range(20000):
        previous, h = h, svd_polar((mu - d) * h + c)
        if np.abs(h - previous).max() < tol:
            break
    return h


def alpha_step(ys, rs, h, v, diversity):
    z = [v[:, None] * (y @ q) for y, q in zip(ys, rs, strict=True)]
    g = np.array([[np.sum(a * b) for b in z] for a in z])
    g = g if diversity else np.diag(np.diag(g))
    f = np.array([np.sum(a * v[:, None] * h) for a in z])
    scale = np.trace(g) / len(g)
    found = minimize(
        lambda a: (a @ g @ a - 2 * f @ a) / scale,
        np.full(len(g), 1 / len(g)),
        jac=lambda a: 2 * (g @ a - f) / scale,
        bounds=[(0, 1)] * len(g),
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(len(a))},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )
    return found.x


def rotation_pass(ys, rs, alpha, h, v, diversity):
    rs = list(rs)
    v2 = v[:, None] ** 2
    for i, y in enumerate(ys):
        others = sum(alpha[j] * ys[j] @ rs[j] for j in range(len(ys)) if j != i) if diversity else 0 * h
        k = y.T @ (v2 * (h - others))
        if k.shape[0] <= k.shape[1]:
            rs[i] = svd_polar(k)
            continue
        own = alpha[i] * y.T @ (v2 * y)
        shift = own.max() - np.diag(own)
        for _ in range(10):  # not to the end: it can take thousands of steps, and each is already a descent
            x = shift[:, None] * rs[i] + k
            previous, rs[i] = rs[i], svd_polar(x)
            rate = min(shift.max() / np.linalg.svd(x, compute_uv=False)[-1], 1.0)
            if rate * np.linalg.norm(rs[i] - previous) <= 1e-8 * np.sqrt(k.shape[1]):
                break
    return rs


def rotation_from(h: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray]:
    """Yu and Shi's discretisation from one row."""
    x = h / np.linalg.norm(h, axis=1, keepdims=True)
    c = x.shape[1]
    r = np.zeros((c, c))
    r[:, 0] = x[start]
    overlap = np.zeros(len(x))
    for j in range(1, c):
        overlap += np.abs(x @ r[:, j - 1])
        r[:, j] = x[overlap.argmin()]
    labels = (x @ r).argmax(axis=1)
    for _ in range(21):
        r = svd_polar(x.T @ one_hot(labels, c))
        previous, labels = labels, (x @ r).argmax(axis=1)
        if np.array_equal(previous, labels):
            break
    return labels, r
