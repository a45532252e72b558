"""Multiple incomplete views clustering (MIC): nonnegative factors of the views, drawn to a consensus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consilience.core.parameters import NonNegative, parameters
from consilience.core.sweeps import Progress, Sweeps
from consilience.evidence.views import Views
from consilience.multiview._factors import FactorMethod, Factors, filled_views, start_all
from consilience.multiview.scaling import Matrix
from consilience.registry import About

# Steps of a view within a round, as in the authors' program.
_INNER = 30
_SMALL = 1e-12


def mic(
    arrays: Sequence[Matrix],
    weights: np.ndarray,
    factors: Sequence[np.ndarray],
    bases: Sequence[np.ndarray],
    *,
    alpha: float,
    beta: float,
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
) -> Factors:
    r"""Weighted nonnegative factorisation of every view, with a common factor and sparse rows.

    .. math::
        \min_{U_v, V_v, U^* \ge 0} \sum_v \|W_v (X_v - U_v V_v^T)\|_F^2 + \alpha \|W_v (U_v - U^*)\|_F^2
        + \beta \|U_v\|_{2,1}

    Symbols: X_v -> arrays[v], instances in rows, absent ones filled; W_v -> weights[:, v]; U_v -> factors[v];
    V_v -> bases[v]; U* -> embedding.

    Columns of V_v are scaled to sum one after every step and the scale moved to U_v. That, and nothing else,
    can raise the objective.

    Cost: entries of the views x clusters for each step; 30 steps a view and round.
    """
    us, vs = list(factors), list(bases)
    squared = np.square(weights)
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        consensus = _consensus(us, squared)
        for i, x in enumerate(arrays):
            us[i], vs[i] = _fit_view(x, squared[:, [i]], us[i], vs[i], consensus, alpha, beta)
        before, now = sweeps.add(_objective(arrays, weights, us, vs, _consensus(us, squared), alpha, beta))
        sweeps.converged = abs(before - now) <= tol * abs(before)
    return Factors(consensus, us, vs, *sweeps.outcome)


def _consensus(us: Sequence[np.ndarray], squared: np.ndarray) -> np.ndarray:
    total = np.zeros_like(us[0])
    for i, u in enumerate(us):
        total += squared[:, [i]] * u
    return total / squared.sum(axis=1, keepdims=True)


def _fit_view(
    x: Matrix,
    squared: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
    consensus: np.ndarray,
    alpha: float,
    beta: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Multiplicative steps of one view at a fixed consensus."""
    for _ in range(_INNER):
        # Rows that the penalty drove to zero have no direction; without a floor they would be divided by.
        norms = np.maximum(np.linalg.norm(u, axis=1, keepdims=True), _SMALL)
        up = squared * (x @ v + alpha * consensus)
        down = squared * (u @ (v.T @ v) + alpha * u) + 0.5 * beta * u / norms
        u = u * np.sqrt(up / np.maximum(down, _SMALL))
        weighted = squared * u
        v = v * np.sqrt((x.T @ weighted) / np.maximum(v @ (u.T @ weighted), _SMALL))
        sums = v.sum(axis=0)
        sums = np.where(sums > 0, sums, 1.0)
        v, u = v / sums, u * sums
    return u, v


def _objective(
    arrays: Sequence[Matrix],
    weights: np.ndarray,
    us: Sequence[np.ndarray],
    vs: Sequence[np.ndarray],
    consensus: np.ndarray,
    alpha: float,
    beta: float,
) -> float:
    total = 0.0
    for i, (x, u, v) in enumerate(zip(arrays, us, vs, strict=True)):
        w = weights[:, [i]]
        total += float(np.square(w * np.asarray(x - u @ v.T)).sum())
        total += alpha * float(np.square(w * (u - consensus)).sum())
        total += beta * float(np.linalg.norm(u, axis=1).sum())
    return total


@parameters
class MIC(FactorMethod):
    """Multiple incomplete views clustering: nonnegative factors of all views, drawn to a common one.

    Absent instances are filled with the mean of their view and count less the more there are of them. Use
    it for nonnegative data such as counts, when parts that add up are what you look for. Prefer
    :class:`APMC` or :class:`NEMO` otherwise; on the data sets measured here they were more accurate.

    Parameters
    ----------
    alpha : float, default=0.01
        Weight of the agreement with the consensus.
    beta : float, default=0.01
        Weight of the row sparsity of the factors. It is not free of scale: at 0.1, the
        value in the paper, the factors of text go to zero.
    n_init : int, default=10
        Number of starts of k-means on the consensus.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The consensus factor.
    components_ : list of ndarray of shape (n_clusters, n_features)
        The basis of every view, rows of sum one.

    Notes
    -----
    Features are rescaled to 0..1 and instances to norm one in each view, so negative entries are allowed.
    The penalty in ``objective_`` is over rows, as in the update and the paper; the authors' program reports
    it over columns. It stops when the objective settles; their program runs all rounds.

    References
    ----------
    W. Shao, L. He, P. S. Yu: Multiple Incomplete Views Clustering via Weighted Nonnegative Matrix
    Factorization with L2,1 Regularization. ECML PKDD, 2015.

    Examples
    --------
    >>> from consilience import MIC
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(missing=0.3, random_state=0)
    >>> model = MIC(n_clusters=2, random_state=0).fit(data.views)
    >>> model.embedding_.shape
    (200, 2)
    """

    about = About(
        use="counts, few rows absent",
        avoid="many rows absent",
        cost="entries x clusters, 30 steps a round",
        paper="Shao, He, Yu: Multiple Incomplete Views Clustering via Weighted NMF with L2,1 "
        "Regularization. ECML PKDD, 2015.",
        linear=True,
    )

    alpha: NonNegative = 0.01
    beta: NonNegative = 0.01
    tol: NonNegative = 1e-3

    def _solve(self, views: Views, rng: np.random.RandomState) -> Factors:
        arrays = filled_views(views)
        return mic(
            arrays,
            np.where(views.observed, 1.0, views.observed.mean(axis=0)),
            *start_all(arrays, self.n_clusters, rng),
            alpha=self.alpha,
            beta=self.beta,
            **self._sweeping,
        )
