"""MultiNMF: joint nonnegative factorisation of complete views; absent rows are filled in first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consilience.core.parameters import NonNegative, parameters
from consilience.core.sweeps import Progress, Sweeps
from consilience.evidence.views import Views
from consilience.multiview._factors import (
    FactorMethod,
    Factors,
    filled_views,
    squared_error,
    squared_norm,
    start_all,
)
from consilience.multiview.scaling import Matrix
from consilience.registry import About

# Steps of a view within a round, as in the authors' program.
_INNER = 100
_SMALL = 1e-16


def multinmf(
    arrays: Sequence[Matrix],
    factors: Sequence[np.ndarray],
    bases: Sequence[np.ndarray],
    *,
    weight: float,
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
) -> Factors:
    r"""Nonnegative factors of every view, drawn to their mean.

    .. math::
        \min_{U_v, V_v \ge 0} \sum_v \|X_v - V_v U_v^T\|_F^2 + \lambda \|V_v Q_v - V^*\|_F^2,
        \qquad Q_v = diag(1^T U_v)

    After every step the columns of U_v are scaled to sum one and the scale moved to V_v, so that Q_v = I.
    That can raise the objective.

    Symbols: X_v -> arrays[v], instances in rows; V_v -> factors[v]; U_v -> bases[v]; V* -> embedding;
    lambda -> weight.
    Cost: entries of the views x clusters for each step; 100 steps a view and round.
    """
    vs, us = [], []
    for factor, basis in zip(factors, bases, strict=True):
        sums = np.maximum(basis.sum(axis=0), _SMALL)
        vs.append(factor * sums)
        us.append(basis / sums)
    energy = sum(squared_norm(x) for x in arrays)
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        consensus = np.asarray(np.mean(vs, axis=0))
        for i, x in enumerate(arrays):
            vs[i], us[i] = _fit_view(x, vs[i], us[i], consensus, weight)
        consensus = np.asarray(np.mean(vs, axis=0))
        before, now = sweeps.add(
            sum(
                squared_error(x, v, u) + weight * float(np.square(v - consensus).sum())
                for x, v, u in zip(arrays, vs, us, strict=True)
            )
        )
        # Relative to the data, not to the objective, which is zero where the factors fit exactly.
        sweeps.converged = abs(before - now) <= tol * energy
    return Factors(consensus, vs, us, *sweeps.outcome)


def _fit_view(
    x: Matrix, v: np.ndarray, u: np.ndarray, consensus: np.ndarray, weight: float
) -> tuple[np.ndarray, np.ndarray]:
    """Multiplicative steps of one view at a fixed consensus."""
    for _ in range(_INNER):
        v = v * (x @ u + weight * consensus) / np.maximum(v @ (u.T @ u) + weight * v, _SMALL)
        up = x.T @ v + weight * np.einsum("pd,pd->d", consensus, v)
        down = u @ (v.T @ v) + weight * np.einsum("pd,pd->d", v, v) * u.sum(axis=0)
        u = u * up / np.maximum(down, _SMALL)
        sums = np.maximum(u.sum(axis=0), _SMALL)
        v, u = v * sums, u / sums
    return v, u


@parameters
class MultiNMF(FactorMethod):
    """Joint nonnegative factorisation of several views.

    A method for complete views: absent rows are filled with the mean of their view first, and what is filled
    in counts like what was seen. It is here as the baseline of those that do better. Use :class:`MIC` for
    the same idea with absent rows, :class:`APMC` or :class:`NEMO` for accuracy.

    Parameters
    ----------
    weight : float, default=0.01
        Weight of the agreement of the views with their mean.
    tol : float, default=1e-4
        Change of the objective at which to stop, relative to the sum of squares of the views.
    n_init : int, default=10
        Number of starts of k-means on the mean factor.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The mean factor.
    components_ : list of ndarray of shape (n_clusters, n_features)
        The basis of every view, rows of sum one.
    objective_ : ndarray of shape (n_iter,)
        The objective after every round. Not monotone: scales move between factors.

    Notes
    -----
    Features are rescaled to 0..1 and instances to norm one in each view; then each view is divided by its
    sum and multiplied by the number of instances, which changes neither the ratio of the two terms nor the
    solution. It stops when the objective settles. No labels are used anywhere; a program in circulation
    keeps the round of best accuracy.

    References
    ----------
    J. Liu, C. Wang, J. Gao, J. Han: Multi-View Clustering via Joint Nonnegative Matrix Factorization. SDM,
    2013.

    Examples
    --------
    >>> from consilience import MultiNMF
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(random_state=0)
    >>> model = MultiNMF(n_clusters=2, random_state=0).fit(data.views)
    >>> model.embedding_.shape
    (200, 2)
    """

    about = About(
        use="complete nonnegative views",
        avoid="rows absent",
        cost="entries x clusters, 100 steps a round",
        paper="Liu, Wang, Gao, Han: Multi-View Clustering via Joint Nonnegative Matrix Factorization. "
        "SDM, 2013.",
        linear=True,
    )

    weight: NonNegative = 0.01

    def _solve(self, views: Views, rng: np.random.RandomState) -> Factors:
        arrays = [x * (views.n_instances / (x.sum() or 1.0)) for x in filled_views(views)]
        return multinmf(
            arrays,
            *start_all(arrays, self.n_clusters, rng),
            weight=self.weight,
            **self._sweeping,
        )
