"""Bayesian cluster ensemble (BCE): an instance may belong to several clusters, each label to one of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, polygamma, psi

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.consensus.kcc import kcc
from consilience.core.canonical import Rows
from consilience.core.discretize import fill_empty_clusters
from consilience.core.parameters import Count, NonNegative, Verbose, parameters
from consilience.core.profiles import label_shares, smooth_profiles
from consilience.core.sweeps import Progress, Sweeps
from consilience.core.tables import cross, scatter
from consilience.registry import About

# A first profile is that of the start's members and so many labels more; later ones have this prior.
_START, _PRIOR = 0.1, 1e-6
# Passes over the memberships of all rows in one step, and where to stop them: relative change of a row.
_PASSES, _SETTLED = 20, 1e-3
# Newton's steps for alpha, and the lowest it may get: below, memberships are labels.
_NEWTON, _LOWEST = 20, 1e-2


class BCEResult(NamedTuple):
    """What `bce` learned."""

    labels: np.ndarray  # per row
    membership: np.ndarray  # gamma / sum gamma, per row and cluster
    alpha: np.ndarray  # per cluster
    objective: np.ndarray
    n_iter: int
    converged: bool


def bce(
    rows: Rows,
    n_clusters: int,
    *,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    progress: Progress | None = None,
) -> BCEResult:
    r"""Variational expectation maximisation of a mixed-membership model of the labels.

    .. math:: \theta_p \sim \mathrm{Dir}(\alpha), \qquad z_{pi} \sim \theta_p, \qquad
        l_{pi} \sim \beta_{z_{pi} i} \quad \text{for every observed label}

    The posterior is approximated by :math:`\mathrm{Dir}(\gamma_p) \prod_i \phi_{pi}`. The objective is minus
    the lower bound of the log-likelihood, less a weak prior of :math:`\beta`. Row p stands for ``counts[p]``
    instances. It starts at the partition that `kcc` finds.

    Symbols: l -> rows.codes (-1 = missing); gamma -> gamma, membership up to its sum; beta -> beta, stacked.
    Cost: passes x rows x bases x n_clusters a step.
    """
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    start = kcc(
        rows, n_clusters, utility="category", normalize=False, n_init=n_init, max_iter=100, tol=1e-6, rng=rng
    ).labels
    shares = label_shares(rows)
    beta = smooth_profiles(cross(codes, offsets, start, w, n_clusters), offsets, _START * shares)
    alpha = np.ones(n_clusters)
    seen = (codes >= 0).sum(axis=1)
    gamma = alpha + seen[:, None] / n_clusters
    n_labels = float(w @ seen)
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        gamma = _update_memberships(rows, alpha, beta, gamma)
        sums, bound = _expected_labels(rows, alpha, beta, gamma)
        before, now = sweeps.add(-bound - _PRIOR * float((shares @ np.log(beta)).sum()))
        sweeps.converged = before - now <= tol * n_labels
        if sweeps.converged:
            break
        beta = smooth_profiles(sums, offsets, _PRIOR * shares)
        alpha = _update_alpha(alpha, w @ (psi(gamma) - psi(gamma.sum(axis=1))[:, None]) / w.sum())
    membership = gamma / gamma.sum(axis=1)[:, None]
    labels = fill_empty_clusters(membership.argmax(axis=1), membership.max(axis=1), n_clusters)
    return BCEResult(labels, membership, alpha, *sweeps.outcome)


def _update_memberships(rows: Rows, alpha: np.ndarray, beta: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """gamma_p = alpha + sum_i phi_pi, phi_pic ~ exp(psi(gamma_pc)) beta_ci(l_pi), until rows settle."""
    gamma = gamma.copy()
    active = np.arange(len(gamma))
    for _ in range(_PASSES):
        old = gamma[active]
        e = psi(old)
        e = np.exp(e - e.max(axis=1)[:, None])
        new = np.tile(alpha, (len(old), 1))
        for seen, clusters in _by_base(rows._replace(codes=rows.codes[active])):
            phi = e[seen] * beta[clusters]
            new[seen] += phi / phi.sum(axis=1)[:, None]
        gamma[active] = new
        active = active[np.abs(new - old).max(axis=1) > _SETTLED * new.max(axis=1)]
        if not len(active):
            break
    return gamma


def _by_base(rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For every base, the rows that it saw, and which of the stacked clusters they are in."""
    for column, first in zip(rows.codes.T, rows.offsets[:-1], strict=True):
        seen = np.flatnonzero(column >= 0)
        yield seen, column[seen] + first


def _expected_labels(
    rows: Rows, alpha: np.ndarray, beta: np.ndarray, gamma: np.ndarray
) -> tuple[np.ndarray, float]:
    """Labels of every cluster, sum_p w_p phi_pic [l_pi = l], and the lower bound with the best phi."""
    w = rows.weights
    log_theta = psi(gamma) - psi(gamma.sum(axis=1))[:, None]
    theta = np.exp(log_theta)
    bound = float(w @ ((alpha - gamma) * log_theta).sum(axis=1))
    bound += w.sum() * float(gammaln(alpha.sum()) - gammaln(alpha).sum())
    bound -= float(w @ (gammaln(gamma.sum(axis=1)) - gammaln(gamma).sum(axis=1)))
    sums = np.zeros_like(beta)
    for seen, clusters in _by_base(rows):
        phi = theta[seen] * beta[clusters]
        total = phi.sum(axis=1)
        bound += float(w[seen] @ np.log(total))
        sums += scatter(clusters[:, None], rows.offsets[[0, -1]], w[seen], phi / total[:, None])
    return sums, bound


def _update_alpha(alpha: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The Dirichlet with the given mean of log theta: Newton, halved until the likelihood rises."""

    def likelihood(a: np.ndarray) -> float:
        return float(gammaln(a.sum()) - gammaln(a).sum() + (a - 1.0) @ mean)

    for _ in range(_NEWTON if len(alpha) > 1 else 0):  # one cluster has all members whatever its alpha
        gradient = psi(alpha.sum()) - psi(alpha) + mean
        # The Hessian is a diagonal and a constant.
        diagonal, constant = -polygamma(1, alpha), polygamma(1, alpha.sum())
        shift = (gradient / diagonal).sum() / (1.0 / constant + (1.0 / diagonal).sum())
        step = (gradient - shift) / diagonal
        size = 1.0
        while size > 1e-6:
            new = alpha - size * step
            if new.min() > _LOWEST and likelihood(new) >= likelihood(alpha):
                break
            size /= 2.0
        else:
            break
        moved = np.abs(new - alpha).max()
        alpha = new
        if moved < 1e-6 * alpha.max():
            break
    return alpha


@parameters
class BCE(LabelMethod):
    """Bayesian cluster ensemble: an instance may belong to several clusters, each of its labels to one.

    Unlike :class:`MixtureConsensus`, where one cluster accounts for all labels of an instance, every base
    clustering may see it as part of another. Use it when memberships are really mixed, on up to some hundred
    thousand distinct label rows. Prefer :class:`MixtureConsensus`, which is several times faster, when each
    instance has one cluster.

    Parameters
    ----------
    n_init : int, default=10
        Random starts of the k-means on labels that it starts from.
    max_iter : int, default=300
        Limit of steps.
    tol : float, default=1e-5
        Stop when the objective falls by less than this for every label of the table.
    verbose : int, default=0
        Say the objective of every step, on stderr or by logging.

    Attributes
    ----------
    membership_ : ndarray of shape (n_instances, n_clusters)
        Expected shares of the clusters in the instance; 0 for an unobserved instance.
    alpha_ : ndarray of shape (n_clusters,)
        The Dirichlet that memberships are drawn from; small values mean that instances have one cluster.
    objective_ : ndarray of shape (n_iter,)
        Minus the lower bound of the log-likelihood after every step; it never rises.
    n_iter_ : int
        Number of steps.

    Notes
    -----
    Where this differs from the authors' program: it starts at :class:`KCC` instead of at random; memberships
    go on from those of the step before, so that the bound never falls; it stops by the change of
    the bound instead of 1 % of the profiles. It runs on distinct label rows with counts, which is exact.
    A missing label has no part in any sum.

    References
    ----------
    H. Wang, H. Shan, A. Banerjee: Bayesian Cluster Ensembles. Statistical Analysis and Data Mining, 2011.

    Examples
    --------
    >>> from consilience import BCE
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = BCE(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    """

    about = About(
        use="memberships that are really mixed",
        avoid="every instance has one cluster",
        cost="up to 20 passes a step; not measured above some thousand rows",
        paper="Wang, Shan, Banerjee: Bayesian Cluster Ensembles. Statistical Analysis and Data Mining, 2011.",
        linear=True,
    )
    max_base_clusters = MAX_BASE_CLUSTERS

    n_init: Count = 10
    max_iter: Count = 300
    tol: NonNegative = 1e-5
    verbose: Verbose = 0

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> BCEResult:
        return bce(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: BCEResult, problem: Problem) -> None:
        self.membership_ = problem.per_instance(result.membership[:, problem.order])
        self.alpha_ = result.alpha[problem.order]
