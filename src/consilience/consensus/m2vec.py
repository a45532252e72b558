"""Marginalised multi-view ensemble clustering (M2VEC): one graph that restores corrupted views."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Annotated

import numpy as np

from consilience._support.sklearn import Interval
from consilience.consensus.base import Problem
from consilience.consensus.mvec import MVEC, MVECResult, common_graph, shares_of_views
from consilience.core.canonical import Rows
from consilience.core.parameters import NonNegative, Positive, parameters
from consilience.registry import About


def m2vec(
    rows: Rows,
    n_clusters: int,
    *,
    views: np.ndarray,
    corruption: float,
    rank: float,
    noise: float,
    max_iter: int,
    n_init: int,
    rng: np.random.RandomState,
) -> MVECResult:
    r"""A stochastic matrix of low rank near to maps that restore every view from a corrupted copy.

    .. math::
        \min \; \sum_v \frac{1}{\|X_v\|^2} E \|X_v - W_v \tilde X_v\|_F^2 + tr(H^T L_Z H) + \lambda_1 \|Z\|_*
        + \lambda_2 \sum_v \|E_v\|_1 \quad s.t. \; W_v = Z + E_v, \; Z \ge 0, \; Z 1 = 1, \; H^T H = I

    :math:`X_v` is the co-association of view v. In :math:`\tilde X_v` every entry is zero with probability p
    and divided by q = 1 - p otherwise; the mean over all copies is :math:`\|X_v - W_v X_v\|^2 + p/q \sum_{ij}
    W_{ij}^2 (X_v X_v^T)_{jj}`. A row that a view did not see puts no price on W and E there. Row p stands for
    ``counts[p]`` instances.

    Symbols: v -> views, per base; X_v -> co-association of rows.codes (-1 = missing); p -> corruption;
    Z -> graph; E_v -> errors[v]; lambda_1 -> rank; lambda_2 -> noise over the number of instances.
    Cost: a step is two eigenproblems of dense matrices of rows x rows and three products of such a view.
    """
    w = rows.weights
    shares = shares_of_views(rows, views)
    x = np.nan_to_num(shares)
    return common_graph(
        np.zeros_like(x),
        np.isnan(shares),
        w,
        n_clusters,
        rank=rank,
        noise=noise,
        max_iter=max_iter,
        n_init=n_init,
        rng=rng,
        move=_restoring(x, w, corruption),
    )


def _restoring(
    x: np.ndarray, w: np.ndarray, corruption: float
) -> Callable[[np.ndarray, np.ndarray, float], np.ndarray]:
    """W = (2 G / c + mu (Z + E) - Y) (2 (G + p/q diag G) / c + mu I)^-1, G = X X^T, c = |X|^2, of a view.

    Between instances; one eigenproblem a view serves all mu.
    """
    root = np.sqrt(w)
    scale = root * root[:, None]
    prepared = []
    for view in x:
        scaled = view * scale
        gram = 2.0 * (scaled @ scaled) / max(np.sum(scaled**2), np.finfo(float).tiny)
        own = np.diag(gram) / w  # (X X^T)_jj of an instance
        penalty = corruption / (1.0 - corruption) * own
        prepared.append((gram, *np.linalg.eigh(gram + np.diag(penalty)), own > 0.0))

    def move(target: np.ndarray, y: np.ndarray, mu: float) -> np.ndarray:
        found = target - y / mu
        for v, (gram, values, vectors, seen) in enumerate(prepared):
            right = gram + mu * found[v] * scale
            moved = ((right @ vectors) / (values + mu)) @ vectors.T / scale
            found[v][seen] = moved[seen]
        return found

    return move


@parameters
class M2VEC(MVEC):
    """Marginalised multi-view ensemble clustering (experimental): a graph that restores corrupted views.

    As :class:`MVEC`, but what every view gives is not its co-association but the map that best restores it
    from copies of which entries are lost at random; the mean over all such copies has a closed form. It is
    here to compare with the literature, and a reconstruction from the idea alone. Prefer :class:`LWGP` or
    :class:`DAL` for work.

    Parameters
    ----------
    views : sequence or None, default=None
        The view of every base clustering, one entry per column of the table, equal for columns of the same
        view. None: all base clusterings make one view.
    corruption : float, default=0.5
        Probability with which an entry is lost, between 0 and 1.
    rank : float, default=0.1
        Price of the rank, lambda_1 of the paper.
    noise : float, default=1.0
        Price of errors of a view: lambda_2 of the paper times the number of instances, so that it means the
        same for small and large tables.
    max_iter : int, default=400
        Greatest number of steps.
    n_init : int, default=20
        Starts of k-means; the best is kept.

    Attributes
    ----------
    row_graph_ : ndarray of shape (n_distinct, n_distinct)
        The common graph between instances of two distinct label rows. Its rows, each entry times the number
        of instances of its column, sum to one.
    n_views_ : int
        Number of views with labels.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    A reconstruction. The paper was not at hand; the objective here combines its idea (representations that
    survive random corruption, marginalised) with that of :class:`MVEC`. One layer, no stacking. Entries that
    are kept are divided by the chance to be kept, and the loss of a view by the square of its norm. It runs
    on distinct label rows with counts, which is exact. Missing labels are allowed: an instance that a view
    did not see is not to be restored in it, and a pair that none of its base clusterings saw together has a
    free error.

    Tables with more than 1000 distinct label rows are refused.

    References
    ----------
    Z. Tao, H. Liu, S. Li, Z. Ding, Y. Fu: Marginalized Multiview Ensemble Clustering. IEEE Transactions on
    Neural Networks and Learning Systems, 2020.

    Examples
    --------
    >>> from consilience import M2VEC
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = M2VEC(n_clusters=2, views=["shop", "shop", "bank"], random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="to try the idea",
        avoid="for work",
        cost="rows^3 a step",
        paper="Tao, Liu, Li, Ding, Fu: Marginalized Multiview Ensemble Clustering. IEEE TNNLS, 2020.",
        experimental=True,
    )

    corruption: Annotated[float, Interval(Real, 0, 1, closed="left")] = 0.5
    rank: NonNegative = 0.1
    noise: Positive = 1.0

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> MVECResult:
        return m2vec(problem.rows, problem.n_clusters, rng=rng, **self._read(problem))
