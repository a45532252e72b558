"""Partial view clustering (PVC): a common nonnegative factor for two views, each with rows absent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from consilience.core.parameters import Count, NonNegative, parameters
from consilience.core.sweeps import Progress, Sweeps
from consilience.evidence.views import Views
from consilience.multiview._factors import FactorMethod, nonnegative_views, squared_error, start_factors
from consilience.multiview.rows import cluster_rows, unit_rows
from consilience.multiview.scaling import Matrix
from consilience.registry import About

# Passes over the columns of a block before the next block has its turn.
_PASSES = 5


class PVCResult(NamedTuple):
    """What `pvc` learned."""

    embedding: np.ndarray  # P, instances x clusters
    components: list[np.ndarray]  # U_v, clusters x features, rows of norm one at most
    objective: np.ndarray
    n_iter: int
    converged: bool


def pvc(
    arrays: Sequence[Matrix],
    observed: np.ndarray,
    factor: np.ndarray,
    bases: Sequence[np.ndarray],
    *,
    sparsity: float,
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
) -> PVCResult:
    r"""One nonnegative factor for the instances of both views, sparse, and a basis for each view.

    .. math::
        \min_{P, U_v \ge 0} \sum_v \|X_v - P_v U_v\|_F^2 + \lambda \|P\|_1
        \quad s.t. \; \|u_{v,j}\|_2 \le 1

    P_v are the rows of P of the instances that view v has: common instances have one row for both views.

    Symbols: X_v -> arrays[v], absent rows zero; P -> factor, the start, and embedding; U_v -> bases[v];
    lambda -> sparsity.
    Every column of a block is solved exactly, so the objective never rises.
    Cost: entries of the views x clusters for each sweep.
    """
    p, us = factor.copy(), [basis.copy() for basis in bases]
    seen = observed.astype(float)
    first = before = _objective(arrays, seen, p, us, sparsity)
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        us = [_update_basis(x, p * seen[:, [v]], u) for v, (x, u) in enumerate(zip(arrays, us, strict=True))]
        p = _update_factor(arrays, seen, p, us, sparsity)
        _, now = sweeps.add(_objective(arrays, seen, p, us, sparsity))
        sweeps.converged = before - now <= tol * first
        before = now
    return PVCResult(p, us, *sweeps.outcome)


def _update_basis(x: Matrix, p: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Row by row of U: a least-squares problem of round contours, so clipping and shrinking is exact."""
    gram = p.T @ p
    target = np.asarray(p.T @ x)
    u = u.copy()
    for _ in range(_PASSES):
        for j in range(len(u)):
            if gram[j, j] <= 0:
                continue
            row = np.maximum(u[j] + (target[j] - gram[j] @ u) / gram[j, j], 0.0)
            u[j] = row / max(np.linalg.norm(row), 1.0)
    return u


def _update_factor(
    arrays: Sequence[Matrix], seen: np.ndarray, p: np.ndarray, us: Sequence[np.ndarray], sparsity: float
) -> np.ndarray:
    """Column by column of P, all instances at once, each by what its own views say."""
    target = np.sum([x @ u.T for x, u in zip(arrays, us, strict=True)], axis=0) - 0.5 * sparsity
    grams = [u @ u.T for u in us]
    p = p.copy()
    for _ in range(_PASSES):
        for j in range(p.shape[1]):
            predicted, curvature = np.zeros(len(p)), np.zeros(len(p))
            for v, gram in enumerate(grams):
                predicted += seen[:, v] * (p @ gram[j])
                curvature += seen[:, v] * gram[j, j]
            step = (target[:, j] - predicted) / np.where(curvature > 0, curvature, 1.0)
            # Without a basis in any view of the instance, only the sparsity is left.
            p[:, j] = np.where(curvature > 0, np.maximum(p[:, j] + step, 0.0), 0.0)
    return p


def _objective(
    arrays: Sequence[Matrix], seen: np.ndarray, p: np.ndarray, us: Sequence[np.ndarray], sparsity: float
) -> float:
    loss = sum(
        squared_error(x, p * seen[:, [v]], u.T) for v, (x, u) in enumerate(zip(arrays, us, strict=True))
    )
    return loss + sparsity * float(p.sum())


def start_pvc(
    arrays: Sequence[Matrix], observed: np.ndarray, k: int, rng: np.random.RandomState
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Factors of the view with most instances; the other view's basis from those it shares with them.

    Where it shares none, from its own factorisation: the columns then mean what they happen to mean.
    """
    order = np.argsort(-observed.sum(axis=0), kind="stable")
    p = np.zeros((len(observed), k))
    placed = np.zeros(len(observed), dtype=bool)
    bases: dict[int, np.ndarray] = {}
    for v in order.tolist():
        rows = np.flatnonzero(observed[:, v])
        shared = placed[rows]
        start = None
        if shared.any():
            start = np.full((len(rows), k), p[placed].mean(axis=0) + 1e-6)
            start[shared] = p[rows[shared]]
        u, basis = start_factors(arrays[v][rows], k, start, rng)
        norms = np.maximum(np.linalg.norm(basis, axis=0), 1e-12)
        bases[v] = (basis / norms).T
        p[rows[~shared]] = (u * norms)[~shared]
        placed[rows] = True
    return p, [bases[v] for v in range(len(arrays))]


@parameters
class PVC(FactorMethod):
    """Partial view clustering, for two views with rows absent in either.

    A nonnegative factor of all instances, with one row for those that both views have, explains each view on
    its own rows. Use it for two nonnegative views with a fair share of common instances. Prefer
    :class:`APMC` otherwise; on the data sets measured here it was more accurate.

    Parameters
    ----------
    sparsity : float, default=0.01
        Weight of the sum of the factor's entries.
    tol : float, default=1e-5
        Change of the objective at which to stop, relative to the first.
    n_init : int, default=10
        Number of starts of k-means on the factor.

    Attributes
    ----------
    objective_ : ndarray of shape (n_iter,)
        The objective after every sweep; it never rises.

    Notes
    -----
    Features are rescaled to 0..1 in each view. Rows of the bases have norm one at most: without a bound, as
    in the paper, large bases make the penalty on the factor void. Instances keep their order. One view alone
    is allowed, and is then factorised.

    References
    ----------
    S.-Y. Li, Y. Jiang, Z.-H. Zhou: Partial Multi-View Clustering. AAAI, 2014.

    Examples
    --------
    >>> from consilience import PVC
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(missing=0.3, random_state=0)
    >>> model = PVC(n_clusters=2, random_state=0).fit(data.views)
    >>> model.embedding_.shape
    (200, 2)
    """

    about = About(
        use="two nonnegative views",
        avoid="three views",
        cost="entries x clusters a sweep",
        paper="Li, Jiang, Zhou: Partial Multi-View Clustering. AAAI, 2014.",
        linear=True,
    )

    max_views = 2

    sparsity: NonNegative = 0.01
    max_iter: Count = 500
    tol: NonNegative = 1e-5

    def _solve(self, views: Views, rng: np.random.RandomState) -> PVCResult:
        arrays = nonnegative_views(views, unit_rows=False)
        return pvc(
            arrays,
            views.observed,
            *start_pvc(arrays, views.observed, self.n_clusters, rng),
            sparsity=self.sparsity,
            **self._sweeping,
        )

    def _cluster(self, result: PVCResult, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        return cluster_rows(unit_rows(result.embedding), self.n_clusters, n_init=self.n_init, rng=rng)
