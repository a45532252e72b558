"""APMC as its paper writes it: dense tables of all pairs, one full eigenproblem. Slow on purpose."""

from itertools import combinations

import numpy as np


def plain_weights(x, anchors, m, sigma):
    """Eq. (1) for one view, row by row; `sigma` None: the distance to the m-th nearest anchor."""
    z = np.zeros((len(x), len(anchors)))
    for i, row in enumerate(x):
        squared = ((anchors - row) ** 2).sum(axis=1)
        nearest = np.argsort(squared, kind="stable")[:m]
        width = squared[nearest[-1]] if sigma is None else sigma**2
        weights = np.exp(-(squared[nearest] - squared[nearest[0]]) / width)
        z[i, nearest] = weights / weights.sum()
    return z


def plain_graph(views, observed, pair, m, sigma):
    """S of one pair of views: zero where an instance is in neither."""
    n = len(observed)
    anchors = np.flatnonzero(observed[:, list(pair)].all(axis=1))
    z = np.zeros((n, len(anchors)))
    for v in pair:
        rows = np.flatnonzero(observed[:, v])
        z[rows] += plain_weights(views[v][rows], views[v][anchors], m, sigma)
    seen = observed[:, list(pair)].sum(axis=1)
    z[seen == 2] /= 2
    return z @ np.diag(1 / z.sum(axis=0)) @ z.T


def plain_similarity(views, observed, m, sigma):
    """Section 4: the graphs of all pairs, averaged over the pairs that hold both instances."""
    n = len(observed)
    total, pairs = np.zeros((n, n)), np.zeros((n, n))
    for pair in combinations(range(len(views)), 2):
        inside = observed[:, list(pair)].any(axis=1)
        total += plain_graph(views, observed, pair, m, sigma)
        pairs += np.outer(inside, inside)
    return np.divide(total, pairs, out=np.zeros((n, n)), where=pairs > 0)


def plain_eigenpairs(s, k):
    """The k largest eigenvalues of the similarity normalised by its degrees."""
    degrees = s.sum(axis=1)
    values, vectors = np.linalg.eigh(s / np.sqrt(np.outer(degrees, degrees)))
    return values[::-1][:k], vectors[:, ::-1][:, :k]
