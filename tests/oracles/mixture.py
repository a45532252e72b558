"""Expectation maximisation of a mixture of multinomials, instance by instance. Slow on purpose."""

import numpy as np


def plain_shares(base):
    """In which shares each base gives its labels: one dict a base."""
    tables = []
    for column in base.T:
        labels, sizes = np.unique(column[column >= 0], return_counts=True)
        tables.append(dict(zip(labels.tolist(), (sizes / sizes.sum()).tolist(), strict=True)))
    return tables


def plain_step(base, pi, theta, prior):
    """One step from `theta`, one dict a base and cluster: memberships, objective before it, pi and theta."""
    n, m = base.shape
    k = len(pi)
    shares = plain_shares(base)
    r, likelihood = np.empty((n, k)), 0.0
    for p in range(n):
        for c in range(k):
            r[p, c] = pi[c]
            for i in range(m):
                if base[p, i] >= 0:
                    r[p, c] *= theta[i][c][base[p, i]]
        likelihood += np.log(r[p].sum())
        r[p] /= r[p].sum()
    penalty = sum(
        prior * share * np.log(theta[i][c][label])
        for i in range(m)
        for c in range(k)
        for label, share in shares[i].items()
    )
    new = []
    for i in range(m):
        seen = base[:, i] >= 0
        new.append(
            [
                {
                    label: (r[base[:, i] == label, c].sum() + prior * share) / (r[seen, c].sum() + prior)
                    for label, share in shares[i].items()
                }
                for c in range(k)
            ]
        )
    return r, -likelihood - penalty, r.mean(axis=0), new
