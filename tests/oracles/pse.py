"""PSE by the formulas, one number at a time, on dense tables."""

from math import exp, log, sqrt

import numpy as np


def plain_looks(x, kind):
    """The looks at the rows of a view; rows of counts that are empty are left out beforehand."""
    n, d = x.shape
    if kind == "binary":
        looks = [np.zeros((n, d)), np.zeros((n, d))]
        for j in range(d):
            p = sum(x[i, j] for i in range(n)) / n
            for i in range(n):
                looks[0][i, j] = x[i, j] - p
                looks[1][i, j] = (x[i, j] - p) / (p * (1 - p)) ** 0.25 if 0 < p < 1 else 0.0
        return [z / np.linalg.norm(z, axis=1)[:, None] for z in looks[: 1 if d <= 500 else 2]]
    if kind == "log-counts":
        total = np.median([sum(row) for row in x])
        x = np.array([[log(1 + total * value / sum(row)) for value in row] for row in x])
    elif kind != "measurements":
        out = np.zeros((n, d))
        for j in range(d):
            df = sum(x[i, j] != 0 for i in range(n))
            for i in range(n):
                out[i, j] = log(1 + x[i, j]) * (log((1 + n) / (1 + df)) + 1)
        return [out / np.linalg.norm(out, axis=1)[:, None]]
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    return [standard, x / np.linalg.norm(x, axis=1)[:, None]] if d >= 10 else [standard]


def plain_graph(looks):
    n = len(looks[0])
    total = np.zeros((n, n))
    sizes = sorted({min(m, n - 1) for m in (5, 10, 20, 40)})
    for z in looks:
        d = np.array([[((z[i] - z[j]) ** 2).sum() for j in range(n)] for i in range(n)])
        near = [[j for j in np.argsort(d[i], kind="stable") if j != i] for i in range(n)]
        for m in sizes:
            r = [np.mean([d[i, j] for j in near[i][:m]]) for i in range(n)]
            for i in range(n):
                w = {}
                for j in near[i][:m]:
                    s = (r[i] + r[j] + d[i, j]) / 6
                    w[j] = exp(-0.5 * (d[i, j] / s) ** 2) / s
                for j, value in w.items():
                    total[i, j] += value / sum(w.values())
    total /= len(looks) * len(sizes)
    return total + total.T


def plain_embedding(g, c):
    n = len(g)
    c = min(c, n - 2)
    degree = g.sum(axis=1)
    t = 0.5 * degree.mean()
    m = np.array(
        [[(g[i, j] + t / n) / sqrt((degree[i] + t) * (degree[j] + t)) for j in range(n)] for i in range(n)]
    )
    values, vectors = np.linalg.eigh(m)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    f = np.column_stack([sqrt(values[a] - values[c]) * vectors[:, a] for a in range(c)])
    return f / np.linalg.norm(f, axis=1)[:, None]


def plain_fill(graphs, rows, embeddings, weights, n):
    total = np.zeros((n, n))
    for g, here, w in zip(graphs, rows, weights, strict=True):
        total[np.ix_(here, here)] += w * g
    blocks = []
    for here, f in zip(rows, embeddings, strict=True):
        x, known = np.zeros((n, f.shape[1])), np.zeros(n, dtype=bool)
        x[here], known[here] = f, True
        for _ in range(10):
            old, old_known = x.copy(), known.copy()
            for i in set(range(n)) - set(here.tolist()):
                mass = sum(total[i, j] for j in range(n) if old_known[j])
                if mass > 0:
                    x[i] = sum(total[i, j] * old[j] for j in range(n) if old_known[j]) / mass
                    known[i] = True
        blocks.append(x)
    return blocks


def plain_stack(blocks, c):
    x = np.hstack(blocks)
    values, vectors = np.linalg.eigh(x.T @ x)
    values, vectors = values[::-1], vectors[:, ::-1]
    c = min(c, x.shape[1] - 1)
    y = np.column_stack([x @ vectors[:, a] * sqrt(max(1 - values[c] / values[a], 0)) for a in range(c)])
    length = np.linalg.norm(y, axis=1)[:, None]
    return y / np.where(length > 1e-12, length, 1)


def plain_pse(views, observed, kinds, k, weights=None):
    """The embedding of all instances, and the graph of every view with its rows."""
    n = len(observed)
    c = min(2 * k, k + 30)
    rows, graphs, embeddings = [], [], []
    for v, (x, kind) in enumerate(zip(views, kinds, strict=True)):
        here = np.array([i for i in range(n) if observed[i, v] and (kind == "measurements" or x[i].any())])
        rows.append(here)
        graphs.append(plain_graph(plain_looks(x[here], kind)))
        embeddings.append(plain_embedding(graphs[-1], c))
    weights = np.ones(len(views)) if weights is None else weights
    blocks = plain_fill(graphs, rows, embeddings, weights, n)
    return plain_stack([w * x for w, x in zip(weights, blocks, strict=True)], c), graphs, rows


def plain_explained(g, z, rng, n_draws):
    """The share of variance that neighbours explain, and the same of permuted rows."""
    z = z - z.mean(axis=0)
    p = g / g.sum(axis=1)[:, None]

    def share(z):
        return sum(p[i, j] * (z[i] @ z[j]) for i in range(len(z)) for j in range(len(z))) / (z**2).sum()

    return share(z), [share(z[rng.permutation(len(z))]) for _ in range(n_draws)]
