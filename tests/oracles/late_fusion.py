"""Late fusion and multiple kernel k-means as published: n x n, SVDs, inverses; slow on purpose."""

from typing import NamedTuple

import numpy as np


class Plain(NamedTuple):
    h: np.ndarray
    weights: np.ndarray
    objective: np.ndarray
    hs: list[np.ndarray]


def polar(matrix):
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return left @ right


def top(kernel, k):
    return np.linalg.eigh(0.5 * (kernel + kernel.T))[1][:, ::-1][:, :k]


def gaussian(x):
    distances = np.sqrt(np.maximum(((x[:, None] - x[None]) ** 2).sum(axis=2), 0.0))
    return np.exp(-(distances**2) / (2.0 * distances.mean() ** 2))


def centred_and_scaled(kernel):
    n = len(kernel)
    centring = np.eye(n) - np.ones((n, n)) / n
    kernel = centring @ kernel @ centring
    root = np.sqrt(np.diag(kernel))
    return kernel / np.outer(root, root)


def zero_filled(kernel, rows, n):
    out = np.zeros((n, n))
    out[np.ix_(rows, rows)] = kernel
    return out


def base_embedding(kernel, rows, n, k):
    out = np.zeros((n, k))
    out[rows] = top(kernel, k)
    return out


def plain_eeimvc(bases, observed, prior, lam, *, n_sweeps):
    m = len(bases)
    hs, ws, beta = [h.copy() for h in bases], [np.eye(bases[0].shape[1])] * m, np.full(m, m**-0.5)
    objective = []
    for _ in range(n_sweeps):
        h = polar(sum(b * x @ w for b, x, w in zip(beta, hs, ws, strict=True)) + lam * prior)
        ws = [polar(x.T @ h) for x in hs]
        for p in range(m):
            if not observed[:, p].all():
                hs[p][~observed[:, p]] = polar(h[~observed[:, p]] @ ws[p].T)
        v = np.array([np.trace(h.T @ x @ w) for x, w in zip(hs, ws, strict=True)])
        beta = v / np.linalg.norm(v)
        objective.append(beta @ v + lam * np.trace(h.T @ prior))
    return Plain(h, beta, np.array(objective), hs)


def plain_lfimvc(bases, lam, *, n_sweeps):
    m = len(bases)
    hs, ws = list(bases), [np.eye(bases[0].shape[1])] * m
    objective = []
    for _ in range(n_sweeps):
        h = polar(sum(x @ w for x, w in zip(hs, ws, strict=True)))
        ws = [polar(x.T @ h) for x in hs]
        hs = [polar(h @ w.T + lam * base) for w, base in zip(ws, bases, strict=True)]
        objective.append(
            sum(np.trace(h.T @ x @ w) for x, w in zip(hs, ws, strict=True))
            + lam * sum(np.trace(x.T @ base) for x, base in zip(hs, bases, strict=True))
        )
    return Plain(h, np.ones(m), np.array(objective), hs)


def plain_oslfimvc(bases, observed, prior, centers, lam, *, n_sweeps):
    m, k = len(bases), bases[0].shape[1]
    hs, ws, beta = [h.copy() for h in bases], [np.eye(k)] * m, np.full(m, m**-0.5)
    objective = []
    for _ in range(n_sweeps):
        t = sum(b * x @ w for b, x, w in zip(beta, hs, ws, strict=True)) + lam * prior
        y = np.eye(k)[(t @ centers.T).argmax(axis=1)]
        centers = polar(y.T @ t)
        h = y @ centers
        ws = [polar(x.T @ h) for x in hs]
        for p in range(m):
            if not observed[:, p].all():
                hs[p][~observed[:, p]] = polar(h[~observed[:, p]] @ ws[p].T)
        v = np.array([np.trace(h.T @ x @ w) for x, w in zip(hs, ws, strict=True)])
        beta = v / np.linalg.norm(v)
        objective.append(beta @ v + lam * np.trace(h.T @ prior))
    return Plain(h, beta, np.array(objective), hs)


def _weights_and_objective(kernels, h):
    a = np.array([np.trace(kernel) - np.trace(h.T @ kernel @ h) for kernel in kernels])
    theta = (1.0 / a) / (1.0 / a).sum()
    return theta, float(theta**2 @ a)


def plain_mkkm(kernels, k, *, n_sweeps):
    theta = np.full(len(kernels), 1.0 / len(kernels))
    objective = []
    for _ in range(n_sweeps):
        h = top(sum(t**2 * kernel for t, kernel in zip(theta, kernels, strict=True)), k)
        theta, value = _weights_and_objective(kernels, h)
        objective.append(value)
    return Plain(h, theta, np.array(objective), [])


def mean_filled(kernel, rows, n):
    lost = np.setdiff1d(np.arange(n), rows)
    out = zero_filled(kernel, rows, n)
    out[np.ix_(rows, lost)] = np.repeat(kernel.mean(axis=1, keepdims=True), len(lost), axis=1)
    out[np.ix_(lost, rows)] = out[np.ix_(rows, lost)].T
    out[np.ix_(lost, lost)] = kernel.mean()
    return out


def neighbor_filled(kernels, rows, n):
    """`kernels` are the observed blocks of all views."""
    zeros = [zero_filled(kernel, seen, n) for kernel, seen in zip(kernels, rows, strict=True)]
    out = []
    for p, (kernel, seen) in enumerate(zip(zeros, rows, strict=True)):
        kernel, others = kernel.copy(), np.mean([z for q, z in enumerate(zeros) if q != p], axis=0)
        for j in np.setdiff1d(np.arange(n), seen):
            near = np.argsort(np.linalg.norm(others - others[j], axis=1), kind="stable")[1:8]
            kernel[j] = kernel[:, j] = others[near].mean(axis=0)
        out.append(0.5 * (kernel + kernel.T))
    return out


def alignment_filled(kernel, rows, n, h):
    """The published formula, with the inverse of a matrix of absent rows."""
    lost = np.setdiff1d(np.arange(n), rows)
    laplacian = np.eye(n) - h @ h.T
    inner = laplacian[np.ix_(lost, lost)] + 1e-3 * np.eye(len(lost))
    a = -laplacian[np.ix_(rows, lost)] @ np.linalg.inv(inner)
    out = zero_filled(kernel, rows, n)
    out[np.ix_(rows, lost)] = kernel @ a
    out[np.ix_(lost, rows)] = (kernel @ a).T
    out[np.ix_(lost, lost)] = a.T @ kernel @ a
    return out


def plain_mkkmik(kernels, rows, n, k, *, n_sweeps):
    """`kernels` are the observed blocks."""
    theta = np.full(len(kernels), 1.0 / len(kernels))
    filled = [zero_filled(kernel, seen, n) for kernel, seen in zip(kernels, rows, strict=True)]
    objective = []
    for _ in range(n_sweeps):
        h = top(sum(t**2 * kernel for t, kernel in zip(theta, filled, strict=True)), k)
        filled = [alignment_filled(kernel, seen, n, h) for kernel, seen in zip(kernels, rows, strict=True)]
        theta, value = _weights_and_objective(filled, h)
        objective.append(value)
    return Plain(h, theta, np.array(objective), filled)


def features(kernel):
    """Rows whose inner products are the kernel."""
    values, vectors = np.linalg.eigh(kernel)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def loadings(blocks, rows, h, ridge):
    """Least squares of the features of every view on the rows of H that it has."""
    found = []
    for block, seen in zip(blocks, rows, strict=True):
        own = h[seen]
        found.append(np.linalg.solve(own.T @ own + ridge * np.eye(h.shape[1]), own.T @ features(block)))
    return found


def plain_factorization(blocks, rows, start, *, n_sweeps, shrinkage, ridge):
    """`blocks` are the observed kernels. Row by row, in feature space."""
    h, k = start, start.shape[1]
    for _ in range(n_sweeps):
        bs = loadings(blocks, rows, h, ridge)
        shrink = shrinkage * sum(np.trace(b @ b.T) for b in bs) / k
        placed = np.zeros_like(h)
        for i in range(len(h)):
            left, right = shrink * np.eye(k), np.zeros(k)
            for block, seen, b in zip(blocks, rows, bs, strict=True):
                if i in seen:
                    left = left + b @ b.T
                    right = right + b @ features(block)[list(seen).index(i)]
            placed[i] = np.linalg.solve(left, right)
        h = polar(placed)
    return h


def unexplained(blocks, rows, h, ridge=0.0):
    """What the embedding leaves of the features of all views."""
    bs = loadings(blocks, rows, h, ridge)
    parts = zip(blocks, rows, bs, strict=True)
    return sum(((features(block) - h[seen] @ b) ** 2).sum() for block, seen, b in parts)
