"""Doubly aligned incomplete multi-view clustering (DAIMC): one nonnegative factor for all views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from consilience.core.parameters import Count, Positive, parameters
from consilience.core.sweeps import Progress, Sweeps
from consilience.evidence.views import Views
from consilience.multiview._factors import FactorMethod, nonnegative_views, squared_norm
from consilience.multiview.rows import cluster_rows
from consilience.multiview.scaling import Matrix, fill_with_mean
from consilience.registry import About

# Steps of the shared factor within a sweep, and their tolerance, as in the authors' program.
_INNER, _INNER_TOL = 30, 1e-4
_SMALL = 1e-10


class DAIMCResult(NamedTuple):
    """What `daimc` learned."""

    factor: np.ndarray  # V, instances x clusters, columns sum to one
    bases: list[np.ndarray]  # U_v, features x clusters
    regressions: list[np.ndarray]  # B_v, features x clusters
    objective: np.ndarray
    n_iter: int
    converged: bool

    @property
    def components(self) -> list[np.ndarray]:
        """The bases as scikit-learn has them: clusters x features."""
        return [basis.T for basis in self.bases]

    @property
    def embedding(self) -> np.ndarray:
        """V with columns of mean one."""
        return len(self.factor) * self.factor


def daimc(
    arrays: Sequence[Matrix],
    observed: np.ndarray,
    factor: np.ndarray,
    bases: Sequence[np.ndarray],
    regressions: Sequence[np.ndarray],
    *,
    alpha: float,
    beta: float,
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
) -> DAIMCResult:
    r"""Weighted semi-nonnegative factorisation, its bases aligned by sparse regression.

    .. math::
        \min_{V \ge 0, U_v, B_v} \sum_v \|W_v (X_v - V U_v^T)\|_F^2
        + \alpha (\|B_v^T U_v - I\|_F^2 + \beta \|B_v\|_{2,1})

    W_v selects the instances that view v has.

    Symbols: X_v -> arrays[v], instances in rows, absent ones zero; W_v -> observed[:, v]; V -> factor;
    U_v -> bases[v]; B_v -> regressions[v].

    Cost: entries of the views x clusters for each sweep, and clusters^3; the authors' step for U_v is cubic
    in the number of features.
    """
    v, us, bs = factor, list(bases), list(regressions)
    seen = observed.astype(float)
    energy = sum(squared_norm(x) for x in arrays)
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        us = [
            _update_basis(x, v, b, seen[:, i], alpha) for i, (x, b) in enumerate(zip(arrays, bs, strict=True))
        ]
        v = _update_factor(arrays, seen, us, v, energy)
        sums = v.sum(axis=0)
        sums = np.where(sums > 0, sums, 1.0)
        v = v / sums
        us = [u * sums for u in us]
        bs = [_update_regression(u, b, beta) for u, b in zip(us, bs, strict=True)]
        before, now = sweeps.add(_loss(arrays, seen, us, v, energy) + alpha * _penalty(us, bs, beta))
        sweeps.converged = abs(before - now) < tol * abs(before)
    return DAIMCResult(v, us, bs, *sweeps.outcome)


def _update_basis(x: Matrix, v: np.ndarray, b: np.ndarray, seen: np.ndarray, alpha: float) -> np.ndarray:
    r"""Solve :math:`\alpha B B^T U + U (V^T W V) = X^T W V + \alpha B`.

    In the eigenvectors of the k x k matrix V^T W V these are k systems of the form mu I + alpha B B^T, whose
    second term has rank k.
    """
    mu, q = np.linalg.eigh((v * seen[:, None]).T @ v)
    # A cluster that no instance of the view is in: without a floor its basis would be infinite.
    mu = np.maximum(mu, 1e-12 * max(mu[-1], 1.0 / len(v)))
    right = (x.T @ (v * seen[:, None]) + alpha * b) @ q
    s, p = np.linalg.eigh(b.T @ b)
    inner = (p.T @ (b.T @ right)) / (mu / alpha + np.maximum(s, 0.0)[:, None])
    return ((right - b @ (p @ inner)) / mu) @ q.T


def _update_factor(
    arrays: Sequence[Matrix], seen: np.ndarray, us: list[np.ndarray], v: np.ndarray, energy: float
) -> np.ndarray:
    """The multiplicative rule of semi-nonnegative factorisation, summed over the views."""
    products = [seen[:, [i]] * (x @ u) for i, (x, u) in enumerate(zip(arrays, us, strict=True))]
    grams = [u.T @ u for u in us]
    up = sum(np.maximum(product, 0.0) for product in products)
    down = sum(np.maximum(-product, 0.0) for product in products)
    previous = 0.0
    for step in range(_INNER):
        plus = sum(seen[:, [i]] * (v @ np.maximum(gram, 0.0)) for i, gram in enumerate(grams))
        minus = sum(seen[:, [i]] * (v @ np.maximum(-gram, 0.0)) for i, gram in enumerate(grams))
        v = v * np.sqrt((up + minus) / np.maximum(down + plus, _SMALL))
        loss = _loss_from_products(products, grams, seen, v, energy)
        if step and abs(loss - previous) < _INNER_TOL * abs(previous):
            break
        previous = loss
    return v


def _update_regression(u: np.ndarray, b: np.ndarray, beta: float) -> np.ndarray:
    r""":math:`B = (U U^T + \frac{\beta}{2} D)^{-1} U`, D = diag(1 / ||b_i||), through a k x k system."""
    scaled = (2.0 / beta) * np.sqrt(np.square(b).sum(axis=1) + _SMALL)[:, None] * u
    return np.linalg.solve(np.eye(u.shape[1]) + u.T @ scaled, scaled.T).T


def _loss(
    arrays: Sequence[Matrix], seen: np.ndarray, us: list[np.ndarray], v: np.ndarray, energy: float
) -> float:
    products = [seen[:, [i]] * (x @ u) for i, (x, u) in enumerate(zip(arrays, us, strict=True))]
    return _loss_from_products(products, [u.T @ u for u in us], seen, v, energy)


def _loss_from_products(
    products: list[np.ndarray], grams: list[np.ndarray], seen: np.ndarray, v: np.ndarray, energy: float
) -> float:
    """||W (X - V U^T)||^2 over the views; absent rows of X are zero."""
    loss = energy
    for i, (product, gram) in enumerate(zip(products, grams, strict=True)):
        loss += float(np.vdot(gram, (v * seen[:, [i]]).T @ v)) - 2.0 * float(np.vdot(product, v))
    return loss


def _penalty(us: list[np.ndarray], bs: list[np.ndarray], beta: float) -> float:
    total = 0.0
    for u, b in zip(us, bs, strict=True):
        total += squared_norm(b.T @ u - np.eye(u.shape[1]))
        total += beta * float(np.sqrt(np.square(b).sum(axis=1) + _SMALL).sum())
    return total


def start_daimc(
    arrays: Sequence[Matrix], observed: np.ndarray, n_clusters: int, n_init: int, rng: np.random.RandomState
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """V, U and B from k-means in each view, absent instances filled with the mean of the view.

    Clusters of later views are numbered like those of the first, by the instances they share; else the
    average over views would be noise.
    """
    total = np.zeros((len(observed), n_clusters))
    bases = []
    for i, x in enumerate(arrays):
        found = cluster_rows(fill_with_mean(x, observed[:, i]), n_clusters, n_init=n_init, rng=rng)
        one_hot = np.zeros_like(total)
        one_hot[np.arange(len(total)), found.labels] = 1.0
        order = linear_sum_assignment(total.T @ one_hot, maximize=True)[1] if i else np.arange(n_clusters)
        total += one_hot[:, order] + 0.1
        bases.append(found.centers[order].T + 0.1)
    v = total / len(arrays)
    sums = v.sum(axis=0)
    bases = [u * sums for u in bases]
    ridge = 1e-5 * np.eye(n_clusters)
    regressions = [np.linalg.solve(ridge + u.T @ u, u.T).T for u in bases]
    return v / sums, bases, regressions


@parameters
class DAIMC(FactorMethod):
    """Doubly aligned incomplete multi-view clustering: any number of views, rows absent here and there.

    One nonnegative factor of the instances explains all views, each on the rows it has; the bases of the
    views are kept alike by a sparse regression. Use it for views whose clusters are linear mixtures of
    features. Prefer :class:`APMC` where clusters have other shapes or many rows are absent; on the data sets
    measured here it was more accurate.

    Parameters
    ----------
    alpha : float, default=1e-4
        Weight of the alignment of the bases.
    beta : float, default=1e4
        Weight of its sparsity.
    n_init : int, default=10
        Number of starts of k-means, at the beginning in every view and at the end.
    random_state : int, RandomState instance or None, default=None
        Draws the starts of k-means.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The common factor, columns of mean one.

    Notes
    -----
    Features are rescaled to 0..1 and instances to norm one in each view. The Sylvester equation of the bases
    is solved through matrices of the size of the number of clusters, which is exact; the authors' program
    takes a step cubic in the number of features. Clusters of the views' own k-means are matched before they
    are averaged into the start.

    References
    ----------
    M. Hu, S. Chen: Doubly Aligned Incomplete Multi-view Clustering. IJCAI, 2018.

    Examples
    --------
    >>> from consilience import DAIMC
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(missing=0.3, random_state=0)
    >>> model = DAIMC(n_clusters=2, random_state=0).fit(data.views)
    >>> model.embedding_.shape
    (200, 2)
    """

    about = About(
        use="parts that add up, up to a third of the rows absent",
        avoid="most rows absent",
        cost="entries x clusters a sweep",
        paper="Hu, Chen: Doubly Aligned Incomplete Multi-view Clustering. IJCAI, 2018.",
        linear=True,
    )

    alpha: Positive = 1e-4
    beta: Positive = 1e4
    max_iter: Count = 300

    def _solve(self, views: Views, rng: np.random.RandomState) -> DAIMCResult:
        arrays = nonnegative_views(views, unit_rows=True)
        return daimc(
            arrays,
            views.observed,
            *start_daimc(arrays, views.observed, self.n_clusters, self.n_init, rng),
            alpha=self.alpha,
            beta=self.beta,
            **self._sweeping,
        )
