"""Walks over base clusters by loops over instances. Slow on purpose."""

import numpy as np


def walk_matrix(base):
    """Chance to get from i to j: any base that saw i, then any instance of i's cluster there."""
    n, m = base.shape
    p = np.zeros((n, n))
    for i in range(n):
        seen = [j for j in range(m) if base[i, j] >= 0]
        for j in seen:
            members = np.flatnonzero(base[:, j] == base[i, j])
            for other in members:
                p[i, other] += 1.0 / len(seen) / len(members)
    return p


def plain_walk(base, labels):
    """One step and two steps from every instance meet in a cluster, beyond what shares let one expect."""
    p = walk_matrix(base)
    n, total = len(base), 0.0
    for i in range(n):
        for c in np.unique(labels):
            one = p[i] @ (labels == c)
            two = p[i] @ (p @ (labels == c))
            total += one * two / n
    return total - sum(np.mean(labels == c) ** 2 for c in np.unique(labels))
