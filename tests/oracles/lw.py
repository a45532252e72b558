"""LWEA and LWGP as their paper has them: all instances, dense matrices. Slow on purpose."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans


def clusters(base):
    """Base and members of every cluster, base after base, in the order of their labels."""
    return [
        (i, base[:, i] == label)
        for i in range(base.shape[1])
        for label in np.unique(base[:, i][base[:, i] >= 0])
    ]


def plain_certainty(base, theta):
    """ECI, entropy by entropy; with missing labels, over the members and bases that there are."""
    found = []
    for _, members in clusters(base):
        entropies = []
        for j in range(base.shape[1]):
            labels = base[members, j]
            labels = labels[labels >= 0]
            if len(labels):
                share = np.unique(labels, return_counts=True)[1] / len(labels)
                entropies.append(-np.sum(share * np.log2(share)))
        found.append(np.exp(-np.mean(entropies) / theta))
    return np.array(found)


def plain_coassociation(base, q):
    """LWCA; with missing labels, shares of those who saw both and one more, which agrees like the average."""
    n, m = base.shape
    total, together = np.zeros((n, n)), np.zeros((n, n))
    for value, (_, members) in zip(q, clusters(base), strict=True):
        total += value * np.outer(members, members)
    for j in range(m):
        together += np.outer(base[:, j] >= 0, base[:, j] >= 0)
    average = total.sum() / together.sum()
    s = (m + 1) / m * ((total + average) / (together + 1) - average / (m + 1))
    np.fill_diagonal(s, 1.0)
    return s


def plain_lwea(base, k, theta=0.4):
    """Average linkage of all instances, those with equal labels first."""
    s = plain_coassociation(base, plain_certainty(base, theta))
    distance = 10.0 - s
    distance[(base[:, None] == base[None]).all(axis=2)] = 0.0
    return fcluster(linkage(squareform(distance, checks=False), "average"), k, "maxclust")


def plain_lwgp(base, k, theta=0.4):
    """Transfer cut: eigenvectors of the graph of base clusters, mapped to instances. Embedding, labels."""
    q = plain_certainty(base, theta)
    b = np.column_stack([members for _, members in clusters(base)]) * q
    degree = b.sum(axis=1)
    wy = b.T @ (b / degree[:, None])
    root = np.sqrt(wy.sum(axis=1))
    vectors = np.linalg.eigh(wy / np.outer(root, root))[1][:, -k:]
    embedding = b / degree[:, None] @ (vectors / root[:, None])
    embedding /= np.linalg.norm(embedding, axis=1, keepdims=True)
    return embedding, KMeans(k, n_init=20, random_state=0).fit_predict(embedding)
