"""PTA, PTGP and ECPCS with a matrix product for every step of the walks. Slow on purpose."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from tests.oracles.lw import clusters, plain_coassociation


def plain_trajectories(p, n_steps):
    """Cosines of R = sum_t P^t (P^t)^T; a node without walks is like itself alone."""
    r, power = np.zeros_like(p), np.eye(len(p))
    for _ in range(n_steps):
        power = power @ p
        r += power @ power.T
    out = np.eye(len(r))
    linked = np.flatnonzero(np.diag(r) > 0)
    inside = r[np.ix_(linked, linked)]
    root = np.sqrt(np.diag(inside))
    out[np.ix_(linked, linked)] = inside / np.outer(root, root)
    return out


def row_normalized(matrix):
    total = matrix.sum(axis=1, keepdims=True)
    return matrix / np.where(total > 0, total, 1.0)


def plain_pts(base, n_neighbors=None):
    """Distinct rows and the similarity of walks from them."""
    rows, first, counts = np.unique(base, axis=0, return_index=True, return_counts=True)
    n = len(rows)
    k = n_neighbors or min(20, int(np.sqrt(n) / 2))
    ca = plain_coassociation(base, np.ones(len(clusters(base))))[np.ix_(first, first)]
    np.fill_diagonal(ca, 0.0)
    graph = np.zeros((n, n))
    for i in range(n):
        least = np.sort(ca[i])[::-1][k - 1]
        kept = ca[i] >= least - 1e-12
        graph[i, kept] = ca[i, kept]
    p = row_normalized(np.maximum(graph, graph.T) * counts)
    return rows, plain_trajectories(p, k)


def plain_cluster_similarity(base, n_steps=20):
    """Similarity of base clusters: walks on their Jaccard indices, each within what both bases saw."""
    found = clusters(base)
    jaccard = np.zeros((len(found), len(found)))
    for a, (i, one) in enumerate(found):
        for b, (j, other) in enumerate(found):
            both = (base[:, i] >= 0) & (base[:, j] >= 0)
            union = ((one | other) & both).sum()
            if a != b and union:
                jaccard[a, b] = (one & other).sum() / union
    return plain_trajectories(row_normalized(jaccard), n_steps)


def plain_ecpcs_similarity(base, r):
    """Of all instances: mean similarity of their clusters, with one more base that is like the average."""
    n, m = base.shape
    place = {(i, base[members, i][0]): a for a, (i, members) in enumerate(clusters(base))}
    total, together = np.zeros((n, n)), np.zeros((n, n))
    for p in range(n):
        for q in range(n):
            for j in range(m):
                if base[p, j] >= 0 and base[q, j] >= 0:
                    total[p, q] += r[place[j, base[p, j]], place[j, base[q, j]]]
                    together[p, q] += 1
    average = total.sum() / together.sum()
    return (m + 1) / m * ((total + average) / (together + 1) - average / (m + 1))


def plain_hierarchy(similarity, k, *, equal=None):
    """Average linkage of SciPy, cut at k; pairs in `equal` are merged first."""
    distance = 10.0 - similarity
    if equal is not None:
        distance[equal] = 0.0
    np.fill_diagonal(distance, 0.0)
    return fcluster(linkage(squareform(distance, checks=False), "average"), k, "maxclust")
