"""SPCE as its authors run it: m dense n x n matrices, one full eigenproblem a step. Slow on purpose."""

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components


class Plain(NamedTuple):
    components: np.ndarray
    n_components: int
    s: np.ndarray
    alpha: np.ndarray
    rho: float
    steps: list[tuple[float, int]]  # stage and number of every inner step
    objective: np.ndarray  # without the rank term
    margin: float  # how far the n x n eigenvectors were from telling equal rows apart; inf without equal rows


def plain_spce(
    base: np.ndarray,
    c: int,
    *,
    theta: float,
    weighting: str = "self_paced",
    last: int = 20,
    n_steps: int | None = None,
) -> Plain:
    """`n_steps` breaks off after so many inner steps, to time one."""
    n, m = base.shape
    seen = base >= 0
    both = [np.outer(seen[:, i], seen[:, i]).astype(float) for i in range(m)]
    each = [(base[:, i, None] == base[None, :, i]) * both[i] for i in range(m)]
    together = sum(both)
    a = np.divide(sum(each), together, out=np.zeros((n, n)), where=together > 0)
    must, cannot = (a == 1) & (together > 0), a == 0
    s, alpha, rho = a, np.full(m, 1 / m), 1.0
    f = eigenvectors(s, c)[0]
    w = np.ones((n, n))
    equal = (base[:, None, :] == base[None, :, :]).all(axis=2).sum(axis=1) > 1
    steps, objective, margin = [], [], np.inf
    for r in (0.9, 0.8, 0.7, 0.6, 0.5):
        age = 2 * r * (1 - r) * m**2
        if weighting == "self_paced" or (weighting == "fixed" and r == 0.9):
            loss = sum((s - e) ** 2 * b / p for e, b, p in zip(each, both, alpha, strict=True))
            w = np.where(2 * loss > age, age / np.maximum(2 * loss, age), 1.0)
        for inner in range(1, (last if r == 0.5 else min(5, last)) + 1):
            # Not from norms and products: rho may grow to 1e12, and what cancels there with it.
            distance = sum(np.subtract.outer(column, column) ** 2 for column in f.T)
            total = sum(b / p for b, p in zip(both, alpha, strict=True))
            total[together == 0] = 1.0  # cannot pairs, set to zero below
            fit = sum(e / p for e, p in zip(each, alpha, strict=True)) - rho * distance / (2 * w**2)
            level = fit / total
            s = np.where(level < theta * m / (w * np.sqrt(total)), 0.0, np.minimum(level, 1.0))
            s[must], s[cannot] = 1.0, 0.0
            s = (s + s.T) / 2
            previous, (f, values) = f, eigenvectors(s, c)
            found = connected_components(s > 0, directed=False)
            if found[0] < c and equal.any():
                margin = min(margin, s.sum(axis=1)[equal].min() - values[c - 1])
            d = np.array([(((s - e) * w) ** 2 * b).sum() for e, b in zip(each, both, strict=True)])
            alpha = np.sqrt(d) if d.any() else np.ones(m)
            alpha = np.maximum(alpha, 1e-6 * alpha.mean())
            alpha = alpha / alpha.sum()
            steps.append((r, inner))
            objective.append((d / alpha).sum() - age * w.sum() + (theta * m) ** 2 * np.count_nonzero(s))
            if len(steps) == n_steps:
                break
            if found[0] < c:
                rho *= 2
            elif found[0] > c:
                rho, f = rho / 2, previous
            elif inner > 1:
                break
        if len(steps) == n_steps:
            break
    return Plain(found[1], found[0], s, alpha, rho, steps, np.array(objective), margin)


def eigenvectors(s: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors of the c smallest eigenvalues of the Laplacian, and all eigenvalues."""
    values, vectors = np.linalg.eigh(np.diag(s.sum(axis=1)) - s)
    return vectors[:, :c], values
