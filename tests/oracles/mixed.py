"""Labels beside views in plain loops and dense matrices, from the definitions; for small tables."""

import numpy as np


def label_graph(column):
    """Twice one over the size of the cluster for every two of one label, oneself included."""
    n = len(column)
    graph = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if column[i] >= 0 and column[i] == column[j]:
                graph[i, j] = 2.0 / np.sum(column == column[i])
    return graph


def view_graph(view, n):
    graph = np.zeros((n, n))
    graph[np.ix_(view.rows, view.rows)] = view.graph.toarray()
    return graph


def fill_in(views, codes, weights, sweeps=10):
    """Places of every instance in every source: its own, or the mean of those linked to it that have one."""
    n = len(codes)
    total = sum(w * view_graph(view, n) for view, w in zip(views, weights, strict=False))
    total = total + sum(w * label_graph(c) for c, w in zip(codes.T, weights[len(views) :], strict=True))
    out = []
    for present, x in [(np.isin(np.arange(n), v.rows), _at(v, n)) for v in views] + [
        (c >= 0, np.eye(c.max() + 2)[c][:, : c.max() + 1]) for c in codes.T
    ]:
        known = present.copy()
        for _ in range(sweeps):
            new, now = x.copy(), known.copy()
            for i in np.flatnonzero(~present):
                mass = total[i] @ known
                new[i] = 0 if mass <= 1e-12 else (total[i] * known) @ x / mass
                now[i] = mass > 1e-12
            x, known = new, now
        out.append(x)
    return out


def _at(view, n):
    x = np.zeros((n, view.embedding.shape[1]))
    x[view.rows] = view.embedding
    return x


def tau(first, second):
    """Adjusted tau: how much better the second label is guessed where the first is known, less chance."""
    both = (first >= 0) & (second >= 0)
    a, b = first[both], second[both]
    n, labels = len(a), np.unique(a)

    def error(values):  # of guessing by the shares of the labels
        return len(values) - sum(np.sum(values == value) ** 2 for value in np.unique(values)) / len(values)

    within = sum(error(b[a == label]) for label in labels)
    return 1 - (within / (n - len(labels))) / (error(b) / (n - 1))


def trust(r, s):
    """The minimum of the sum of squares by a general method."""
    from scipy.optimize import minimize

    pairs = [(i, j) for i in range(len(r)) for j in range(i) if not np.isnan(r[i, j])]

    def loss(a):
        misfit = sum((np.clip(r[i, j], 0, 1) - a[i] * a[j]) ** 2 / (s[i, j] ** 2 + 0.05**2) for i, j in pairs)
        return misfit + ((a - 0.5) ** 2).sum() / 0.3**2

    start = np.full(len(r), 0.5)
    return loss, minimize(loss, start, bounds=[(0, 1)] * len(r)).x
