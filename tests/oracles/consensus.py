"""Plain versions of the classical consensus methods: all instances, dense matrices. Slow on purpose."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.special import gammaln, psi

from tests.oracles.lw import clusters, plain_coassociation


def one_hot(base):
    """Stacked indicator of all base clusters."""
    return np.column_stack([members for _, members in clusters(base)]).astype(float)


def plain_shares(base):
    """Share of agreement among the bases that saw both, and one more, which agrees like the average."""
    return plain_coassociation(base, np.ones(len(clusters(base))))


def plain_eac(base, k, method):
    """SciPy's linkage of all instances, equal ones first."""
    distance = 10.0 - plain_shares(base)
    distance[(base[:, None] == base[None]).all(axis=2)] = 0.0
    return fcluster(linkage(squareform(distance, checks=False), method), k, "maxclust")


def plain_hbgf(base, k):
    """Embedding of the instances by the normalised adjacency of all nodes, instances and base clusters."""
    b = one_hot(base)
    n, c = b.shape
    graph = np.block([[np.zeros((n, n)), b], [b.T, np.zeros((c, c))]])
    root = np.sqrt(graph.sum(axis=1))
    values, vectors = np.linalg.eigh(graph / np.outer(root, root))
    embedding = (vectors[:, -k:] * values[-k:] / root[:, None])[:n]
    return embedding / np.linalg.norm(embedding, axis=1, keepdims=True)


def plain_votes_embedding(base, k):
    """Leading eigenvectors of the normalised votes of all pairs of instances, rows of length one."""
    b = one_hot(base)
    votes = b @ b.T
    root = np.sqrt(votes.sum(axis=1))
    embedding = np.linalg.eigh(votes / np.outer(root, root))[1][:, -k:]
    return embedding / np.linalg.norm(embedding, axis=1, keepdims=True)


def plain_overlap(base):
    """Jaccard index of all pairs of base clusters over the instances that both bases saw."""
    found = clusters(base)
    out = np.zeros((len(found), len(found)))
    for a, (i, first) in enumerate(found):
        for b, (j, second) in enumerate(found):
            both = (base[:, i] >= 0) & (base[:, j] >= 0)
            union = np.sum((first | second) & both)
            out[a, b] = np.sum(first & second) / union if union else 0.0
    return out


def plain_association(base, meta, k):
    """Share of the base clusters of each meta-cluster that hold an instance, among bases that saw it."""
    out = np.zeros((len(base), k))
    for p in range(len(base)):
        for c in range(k):
            mine = [members[p] for (i, members), g in zip(clusters(base), meta, strict=True)
                    if g == c and base[p, i] >= 0]  # fmt: skip
            out[p, c] = np.mean(mine) if mine else 0.0
    return out


def plain_consensus_matrix(base):
    """Row p: votes for p and every other instance, over the number of labels of p."""
    b = one_hot(base)
    return b @ b.T / (base >= 0).sum(axis=1)[:, None]


def plain_nmfc_step(m, q, s):
    """One round of the multiplicative steps on all instances, S diagonal: Q, S and the relative error."""
    d = np.diag(s)
    q = q * np.sqrt((m @ q @ d) / (q @ q.T @ m @ q @ d))
    d = d * np.sqrt(np.where(d > 0, q.T @ m @ q, 0.0) / np.where(d > 0, q.T @ q @ d @ q.T @ q, 1.0))
    return q, np.diag(d), np.sum((m - q @ d @ q.T) ** 2) / np.sum(m**2)


def plain_block_distance(base, labels, k, utility, reach=None, prior=0.0):
    """Distances of all instances to the centres of given labels, label by label; for SEC with `reach`."""
    n, m = base.shape
    b = np.ones(n) if reach is None else reach
    out = np.zeros((n, k))
    for i in range(m):
        seen = base[:, i] >= 0
        names = np.unique(base[seen, i])
        share = np.array([np.mean(base[seen, i] == a) for a in names])
        for c in range(k):
            inside = seen & (labels == c)
            sums = np.array([np.sum(base[inside, i] == a) for a in names]) + prior * share
            v = sums / (b[inside].sum() + prior)
            for p in np.flatnonzero(seen):
                own = v[np.searchsorted(names, base[p, i])]
                if utility == "category":
                    out[p, c] += 1 / b[p] ** 2 + v @ v - 2 * own / b[p]
                elif utility == "entropy":
                    out[p, c] += -np.log2(own)
                else:
                    out[p, c] += 1 - own / np.linalg.norm(v)
    return out


def plain_bce(base, offsets, alpha, beta, gamma):
    """Instance by instance: alpha + sum phi, the expected labels of every cluster, and the lower bound."""
    new, sums, bound = np.empty_like(gamma), np.zeros_like(beta), 0.0
    for p in range(len(base)):
        log_theta = psi(gamma[p]) - psi(gamma[p].sum())
        new[p] = alpha
        bound += gammaln(alpha.sum()) - gammaln(alpha).sum() + (alpha - 1) @ log_theta
        bound -= gammaln(gamma[p].sum()) - gammaln(gamma[p]).sum() + (gamma[p] - 1) @ log_theta
        for i in np.flatnonzero(base[p] >= 0):
            likelihood = beta[offsets[i] + base[p, i]]
            phi = np.exp(log_theta) * likelihood
            phi /= phi.sum()
            new[p] += phi
            sums[offsets[i] + base[p, i]] += phi
            # A responsibility that underflows adds nothing.
            used = phi > 0
            bound += phi[used] @ (log_theta + np.log(likelihood) - np.log(np.where(used, phi, 1.0)))[used]
    return new, sums, bound
