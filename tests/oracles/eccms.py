"""ECCMS as its paper has it: all instances, dense matrices. Slow on purpose."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from tests.oracles.lw import plain_certainty, plain_coassociation


def cautious_share(base):
    """Share of agreement, as if bases that did not see both agreed as often as the average."""
    seen = base >= 0
    pairs = seen[:, None] & seen[None]
    agreed = ((base[:, None] == base[None]) & pairs).sum(axis=2)
    together = pairs.sum(axis=2)
    return (agreed + (base.shape[1] - together) * agreed.sum() / together.sum()) / base.shape[1]


def plain_eccms(base, k, *, theta=0.4, alpha=0.75, noise=0.01, max_iter=100):
    """C of all instances, number of steps, labels."""
    n = len(base)
    q = plain_certainty(base, theta)
    aw = plain_coassociation(base, q)
    sure = cautious_share(base)
    sure[sure < alpha - 1e-10] = 0.0
    np.fill_diagonal(sure, 0.0)
    system = 2.0 * (np.diag(sure.sum(axis=1)) - sure) + 2.0 * np.eye(n)
    c, e, f, y1, y2 = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), aw.copy(), np.zeros((n, n))
    steps = 0
    while steps < max_iter:
        steps += 1
        old = c, e, f, y1, y2
        c = np.linalg.solve(system, aw - e + y1 + f - y2)
        e = np.where(sure > 0, 0.0, (aw - c + y1) / (noise + 1.0))
        f = np.clip((c + y2 + (c + y2).T) / 2.0, 0.0, 1.0)
        y1 = y1 + aw - c - e
        y2 = y2 + c - f
        if all(
            np.linalg.norm(a - b) <= 1e-2 * max(np.linalg.norm(b), 1e-3 * np.linalg.norm(aw))
            for a, b in zip((c, e, f, y1, y2), old, strict=True)
        ):
            break
    distance = 10.0 - (c + c.T) / 2.0
    distance[(base[:, None] == base[None]).all(axis=2)] = 0.0
    return c, steps, fcluster(linkage(squareform(distance, checks=False), "average"), k, "maxclust")
