"""Bayesian cluster ensemble (BCE): an instance may belong to several clusters, each label to one of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import gammaln, polygamma, psi
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size
from consilience.consensus.kcc import kcc
from consilience.core.discretize import fill_empty_clusters
from consilience.core.profiles import label_shares
from consilience.core.tables import cross, scatter

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
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    progress: Callable[[int, float], None] | None = None,
) -> BCEResult:
    r"""Variational expectation maximisation of a mixed-membership model of the labels.

    .. math:: \theta_p \sim \mathrm{Dir}(\alpha), \qquad z_{pi} \sim \theta_p, \qquad
        l_{pi} \sim \beta_{z_{pi} i} \quad \text{for every observed label}

    The posterior is approximated by :math:`\mathrm{Dir}(\gamma_p) \prod_i \phi_{pi}`. The objective is minus
    the lower bound of the log-likelihood, less a weak prior of :math:`\beta`. Row p stands for ``counts[p]``
    instances. It starts at the partition that `kcc` finds.

    Symbols: l -> codes (-1 = missing); gamma -> gamma, membership up to its sum; beta -> beta, stacked.
    Cost: passes x rows x bases x n_clusters a step.
    """
    w = counts.astype(float)
    start = kcc(
        codes, counts, offsets, n_clusters,
        utility="category", normalize=False, n_init=n_init, max_iter=100, tol=1e-6, rng=rng,
    ).labels  # fmt: skip
    shares = label_shares(codes, offsets, w)
    beta = _profiles(cross(codes, offsets, start, w, n_clusters), offsets, _START * shares)
    alpha = np.ones(n_clusters)
    gamma = alpha + (codes >= 0).sum(axis=1)[:, None] / n_clusters
    n_labels = float(w @ (codes >= 0).sum(axis=1))
    objective: list[float] = []
    converged = False
    for iteration in range(max_iter):
        gamma = _update_memberships(codes, offsets, alpha, beta, gamma)
        sums, bound = _expected_labels(codes, offsets, w, alpha, beta, gamma)
        objective.append(-bound - _PRIOR * float((shares @ np.log(beta)).sum()))
        if progress:
            progress(iteration + 1, objective[-1])
        if iteration and objective[-2] - objective[-1] <= tol * n_labels:
            converged = True
            break
        beta = _profiles(sums, offsets, _PRIOR * shares)
        alpha = _update_alpha(alpha, w @ (psi(gamma) - psi(gamma.sum(axis=1))[:, None]) / w.sum())
    membership = gamma / gamma.sum(axis=1)[:, None]
    labels = membership.argmax(axis=1)
    labels = fill_empty_clusters(labels, membership.max(axis=1), n_clusters)
    return BCEResult(labels, membership, alpha, np.array(objective), iteration + 1, converged)


def _update_memberships(
    codes: np.ndarray, offsets: np.ndarray, alpha: np.ndarray, beta: np.ndarray, gamma: np.ndarray
) -> np.ndarray:
    """gamma_p = alpha + sum_i phi_pi, phi_pic ~ exp(psi(gamma_pc)) beta_ci(l_pi), until rows settle."""
    gamma = gamma.copy()
    active = np.arange(len(codes))
    for _ in range(_PASSES):
        old = gamma[active]
        e = _expected(old)
        new = np.broadcast_to(alpha, old.shape).copy()
        for i in range(codes.shape[1]):
            phi, seen = _responsibilities(codes[active, i], offsets[i], beta, e)
            new[seen] += phi
        gamma[active] = new
        active = active[np.abs(new - old).max(axis=1) > _SETTLED * new.max(axis=1)]
        if not len(active):
            break
    return gamma


def _expected(gamma: np.ndarray) -> np.ndarray:
    """exp(E log theta) up to a factor of the row."""
    e = psi(gamma)
    return np.exp(e - e.max(axis=1)[:, None])


def _responsibilities(
    column: np.ndarray, start: int, beta: np.ndarray, e: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """phi of one base for the rows that it saw, and these rows."""
    seen = np.flatnonzero(column >= 0)
    phi = e[seen] * beta[start + column[seen].astype(np.int64)]
    return phi / phi.sum(axis=1)[:, None], seen


def _expected_labels(
    codes: np.ndarray,
    offsets: np.ndarray,
    w: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    gamma: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Labels of every cluster, sum_p w_p phi_pic [l_pi = l], and the lower bound with the best phi."""
    log_theta = psi(gamma) - psi(gamma.sum(axis=1))[:, None]
    theta = np.exp(log_theta)
    bound = float(w @ ((alpha - gamma) * log_theta).sum(axis=1))
    bound += w.sum() * float(gammaln(alpha.sum()) - gammaln(alpha).sum())
    bound -= float(w @ (gammaln(gamma.sum(axis=1)) - gammaln(gamma).sum(axis=1)))
    sums = np.empty_like(beta)
    for i in range(codes.shape[1]):
        seen = np.flatnonzero(codes[:, i] >= 0)
        phi = theta[seen] * beta[offsets[i] + codes[seen, i].astype(np.int64)]
        total = phi.sum(axis=1)
        bound += float(w[seen] @ np.log(total))
        block = np.array([0, offsets[i + 1] - offsets[i]])
        sums[offsets[i] : offsets[i + 1]] = scatter(
            codes[seen, i : i + 1], block, w[seen], phi / total[:, None]
        )
    return sums, bound


def _profiles(sums: np.ndarray, offsets: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """beta_ci(l): the share of label l among the labels of base i that are due to c, prior included."""
    sums = sums + prior[:, None]
    return sums / np.repeat(np.add.reduceat(sums, offsets[:-1], axis=0), np.diff(offsets), axis=0)


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


class BCE(LabelsMixin, BaseEstimator):
    """Bayesian cluster ensemble: an instance may belong to several clusters, each of its labels to one.

    Unlike :class:`MixtureConsensus`, where one cluster accounts for all labels of an instance, every base
    clustering may see it as part of another. Use it when memberships are really mixed, on up to some hundred
    thousand distinct label rows. Prefer :class:`MixtureConsensus`, which is several times faster, when each
    instance has one cluster.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    n_init : int, default=10
        Random starts of the k-means on labels that it starts from.
    unobserved : {"error", "noise", "largest"}, default="error"
        An instance that no base clustering saw: refuse, give it the label -1, or that of the largest cluster.
    max_iter : int, default=300
        Limit of steps.
    tol : float, default=1e-5
        Stop when the objective falls by less than this for every label of the table.
    verbose : int, default=0
        Print the objective of every step to standard error.
    random_state : int, RandomState instance or None, default=None
        Draws the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster.
    confidence_ : ndarray of shape (n_instances,)
        Estimated probability that the instance belongs to its cluster, from its labels; see
        :func:`consilience.diagnostics.confidence`. 0 for an unobserved instance.
    membership_ : ndarray of shape (n_instances, n_clusters)
        Expected shares of the clusters in the instance; 0 for an unobserved instance.
    alpha_ : ndarray of shape (n_clusters,)
        The Dirichlet that memberships are drawn from; small values mean that instances have one cluster.
    objective_ : ndarray of shape (n_iter,)
        Minus the lower bound of the log-likelihood after every step; it never rises.
    n_iter_ : int
        Number of steps.
    n_clusters_ : int
        Number of clusters found; below `n_clusters` only where there are fewer distinct label rows.
    cluster_count_ : ClusterCount
        How the number of clusters was found; only where `n_clusters` is "auto".
    partitions_ : Partitions
        The table as it was read.
    n_features_in_ : int
        Number of base clusterings.
    feature_names_in_ : ndarray of str
        Names of the base clusterings, where a frame was given.

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
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = BCE(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": N_CLUSTERS,
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "unobserved": [StrOptions({"error", "noise", "largest"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        n_init: int = 10,
        unobserved: str = "error",
        max_iter: int = 300,
        tol: float = 1e-5,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.unobserved = unobserved
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> BCE:
        """Merge the base clusterings.

        Parameters
        ----------
        X : array, nested list, frame, dict or list of series, or Partitions
            The table of base labels; see :meth:`consilience.Partitions.of`.
        y : ignored
            There for scikit-learn's interface.
        """
        partitions = self._read_labels(X, self.unobserved)
        rng = random_source(self.random_state)
        known = partitions.take_seen()
        rows = known.distinct
        k = self._feasible_clusters(known, rng)
        with threadpool_limits(limits=1, user_api="blas"):  # the same answer whatever the threads
            result = bce(
                rows.codes,
                rows.counts,
                known.offsets,
                k,
                n_init=self.n_init,
                max_iter=self.max_iter,
                tol=self.tol,
                rng=rng,
                progress=self._progress if self.verbose else None,
            )
        if not result.converged:
            warnings.warn(
                f"BCE did not converge in {self.max_iter} iterations. Hint: raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        order = by_size(result.labels, rows.counts, k)
        self._answer(partitions, known, np.argsort(order)[result.labels], k)
        self.membership_ = self._spread(result.membership[:, order][rows.inverse], 0.0)
        self.alpha_ = result.alpha[order]
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        return self
