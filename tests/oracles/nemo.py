"""NEMO and SNF entry by entry, as their programs describe them. Slow on purpose."""

import numpy as np
from scipy.stats import norm


def plain_kernel(x, k):
    """Normal density of squared distances, of width half the mean of three local scales."""
    n = len(x)
    squared = np.array([[((a - b) ** 2).sum() for b in x] for a in x])
    k = min(k, n - 1)
    reach = [np.sort(np.delete(squared[i], i))[:k].mean() for i in range(n)]
    kernel = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            width = (reach[i] + reach[j] + squared[i, j]) / 3
            kernel[i, j] = norm.pdf(squared[i, j], 0, 0.5 * width)
    return kernel


def plain_local(kernel, k):
    """The k most similar of every row, itself among them, to sum one."""
    out = np.zeros_like(kernel)
    for i, row in enumerate(kernel):
        nearest = np.argsort(-row, kind="stable")[:k]
        out[i, nearest] = row[nearest] / row[nearest].sum()
    return out


def plain_nemo(views, observed, k):
    """S: relative similarities, averaged over the views that have both."""
    n = len(observed)
    total, count = np.zeros((n, n)), np.zeros((n, n))
    for v, x in enumerate(views):
        rows = np.flatnonzero(observed[:, v])
        size = k or max(1, round(len(rows) / 6))
        relative = plain_local(plain_kernel(x[rows], size), size)
        for a, i in enumerate(rows):
            for b, j in enumerate(rows):
                total[i, j] += relative[a, b] + relative[b, a]
                count[i, j] += 1
    s = np.divide(total, count, out=np.zeros((n, n)), where=count > 0)
    known = [s[i, j] for i in range(n) for j in range(i) if count[i, j]]
    s[count == 0] = np.mean(known)
    return s


def plain_half(graph):
    n = len(graph)
    out = np.empty((n, n))
    for i in range(n):
        others = sum(graph[i, j] for j in range(n) if j != i)
        out[i] = graph[i] / (2 * others)
        out[i, i] = 0.5
    return (out + out.T) / 2


def plain_snf(views, k, n_rounds):
    """The fused graph of complete views, by the authors' iteration."""
    kernels = [plain_kernel(x, k) for x in views]
    local = [plain_local(kernel, k) for kernel in kernels]
    graphs = [plain_half(kernel) for kernel in kernels]
    for _ in range(n_rounds):
        graphs = [
            plain_half(local[v] @ (sum(graphs[:v] + graphs[v + 1 :]) / (len(views) - 1)) @ local[v].T)
            for v in range(len(views))
        ]
    return plain_half(sum(graphs) / len(views))
