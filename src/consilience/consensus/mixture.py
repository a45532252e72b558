"""Mixture of multinomials: the labels of an instance are drawn from the profile of its cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size
from consilience.core import hot
from consilience.core.blocks import map_blocks
from consilience.core.discretize import fill_empty_clusters
from consilience.core.profiles import first_profiles, label_shares, sample_rows
from consilience.core.tables import cross, rows_per_block
from consilience.partitions import Partitions


class MixtureResult(NamedTuple):
    """What `mixture` learned."""

    labels: np.ndarray  # per row
    membership: np.ndarray  # r, per row and cluster
    proportions: np.ndarray  # pi, per cluster
    profiles: np.ndarray  # theta, per cluster of all bases and consensus cluster
    objective: np.ndarray
    n_iter: int
    converged: bool


def mixture(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    prior: float,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    start: np.ndarray | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> MixtureResult:
    r"""Penalised maximum likelihood of a mixture of multinomials, by expectation maximisation.

    .. math::
        \min \; -\sum_p w_p \log \sum_c \pi_c \prod_{i \, \text{observed}} \theta_{ci}(l_{pi})
        - a \sum_{c, i, l} f_i(l) \log \theta_{ci}(l)

    The second term is a Dirichlet prior: every cluster starts with a labels from every base, in the shares f
    in which that base gives its labels. Without it a label that no member of a cluster carries would be shut
    out for ever. A missing label has no factor. Row p stands for ``counts[p]`` instances.

    `start` is a cluster for every row to begin with; without it `n_init` random starts are compared.

    Symbols: l -> codes (-1 = missing); w -> counts; pi -> proportions; theta -> profiles; a -> prior.
    Cost: rows x bases x n_clusters a step, and n_init fits of at most 5000 rows.
    """
    w = counts.astype(float)
    shares = label_shares(codes, offsets, w)
    if start is not None:
        pi = np.bincount(start, weights=w, minlength=n_clusters) / w.sum()
        theta = _update_profiles(cross(codes, offsets, start, w, n_clusters), offsets, shares, prior)
        return _maximise(codes, w, offsets, shares, pi, theta, prior, max_iter, tol, progress)
    drawn, weights = sample_rows(codes, offsets, w, shares)
    sample = codes[drawn]

    def on_sample() -> MixtureResult:
        pi = np.full(n_clusters, 1.0 / n_clusters)
        theta = first_profiles(sample, weights, offsets, shares, n_clusters, rng)
        return _maximise(sample, weights, offsets, shares, pi, theta, prior, max_iter, tol, None)

    best = min((on_sample() for _ in range(n_init)), key=lambda found: found.objective[-1])
    pi, theta = best.proportions, best.profiles
    return _maximise(codes, w, offsets, shares, pi, theta, prior, max_iter, tol, progress)


def _maximise(
    codes: np.ndarray,
    w: np.ndarray,
    offsets: np.ndarray,
    shares: np.ndarray,
    pi: np.ndarray,
    theta: np.ndarray,
    prior: float,
    max_iter: int,
    tol: float,
    progress: Callable[[int, float], None] | None,
) -> MixtureResult:
    """Expectation maximisation from given proportions and profiles."""
    r = np.empty((len(codes), len(pi)))
    objective: list[float] = []
    converged = False
    for iteration in range(max_iter):
        likelihood, sums, mass = _expect(codes, w, offsets, pi, theta, r)
        objective.append(-likelihood - prior * float((shares @ np.log(theta)).sum()))
        if progress:
            progress(iteration + 1, objective[-1])
        if iteration and objective[-2] - objective[-1] <= tol * abs(objective[-1]):
            converged = True
            break
        pi = mass / w.sum()
        theta = _update_profiles(sums, offsets, shares, prior)
    labels = r.argmax(axis=1)
    labels = fill_empty_clusters(labels, r[np.arange(len(r)), labels], len(pi))
    return MixtureResult(labels, r, pi, theta, np.array(objective), iteration + 1, converged)


def _expect(
    codes: np.ndarray, w: np.ndarray, offsets: np.ndarray, pi: np.ndarray, theta: np.ndarray, r: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Fills r_pc, proportional to pi_c prod theta_ci(l_pi); log-likelihood, B^T W r and the mass of clusters.

    One pass over the rows.
    """
    log_theta = np.log(theta)
    log_pi = np.log(np.maximum(pi, np.finfo(float).tiny))  # a cluster that nobody is in stays empty

    def one(rows: slice) -> tuple[float, np.ndarray, np.ndarray]:
        block, weight, out = codes[rows], w[rows], r[rows]
        hot.gather_sum(block, offsets, log_theta, out)
        out += log_pi
        top = out.max(axis=1)
        out -= top[:, None]
        np.exp(out, out=out)
        total = out.sum(axis=1)
        out /= total[:, None]
        sums = np.zeros_like(log_theta)
        hot.scatter_sum(block, offsets, weight, out, sums)
        return float(weight @ (top + np.log(total))), sums, weight @ out

    likelihood, sums, mass = 0.0, np.zeros_like(theta), np.zeros(len(pi))
    for part in map_blocks(one, len(codes), block_rows=rows_per_block(offsets)):
        likelihood += part[0]
        sums += part[1]
        mass += part[2]
    return likelihood, sums, mass


def _update_profiles(sums: np.ndarray, offsets: np.ndarray, shares: np.ndarray, prior: float) -> np.ndarray:
    """theta_ci(l): members of c with label l over members of c that base i saw, prior included."""
    seen = np.add.reduceat(sums, offsets[:-1], axis=0) + prior
    return (sums + prior * shares[:, None]) / np.repeat(seen, np.diff(offsets), axis=0)


class MixtureConsensus(LabelsMixin, BaseEstimator):
    """Consensus by a mixture of multinomials: every cluster has a profile of labels in every base clustering.

    The probability model behind the question: an instance belongs to one cluster, and each base clustering
    that saw it draws its label from the profile of that cluster. Missing labels just say nothing. Use it when
    the base clusterings have about the number of clusters that you want and you want memberships; the cost is
    linear in the distinct label rows. Prefer :class:`LWEA` or :class:`LWGP` when the base clusterings have
    other and larger numbers of clusters than you want.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    prior : float, default=0.1
        How many labels every cluster is given from every base clustering beforehand, in the shares in which
        that base clustering gives them.
    init : "random" or array-like of int of shape (n_instances,), default="random"
        Where to start: at rows that differ, or at a partition that is to be improved, with clusters
        0..n_clusters - 1.
    n_init : int, default=10
        Random starts; the most likely one is kept.
    unobserved : {"error", "noise", "largest"}, default="error"
        An instance that no base clustering saw: refuse, give it the label -1, or that of the largest cluster.
    max_iter : int, default=200
        Limit of steps.
    tol : float, default=1e-6
        Stop when the objective falls by less than this share of itself.
    verbose : int, default=0
        Print the objective of every step to standard error.
    random_state : int, RandomState instance or None, default=None
        Draws the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster.
    membership_ : ndarray of shape (n_instances, n_clusters)
        Probability of every cluster given the instance's labels, as the model has it. Base clusterings that
        repeat each other count as independent, so it is surer than it should be; `confidence_` is not.
        0 for an unobserved instance.
    confidence_ : ndarray of shape (n_instances,)
        Estimated probability that the instance belongs to its cluster, from its labels; see
        :func:`consilience.diagnostics.confidence`. 0 for an unobserved instance.
    objective_ : ndarray of shape (n_iter,)
        Minus the penalised log-likelihood after every step; it never rises.
    n_clusters_ : int
        Number of clusters found; below `n_clusters` only where there are fewer distinct label rows.
    cluster_count_ : ClusterCount
        How the number of clusters was found; only where `n_clusters` is "auto".
    n_iter_ : int
        Number of steps, those of the starts on a sample not counted.
    partitions_ : Partitions
        The table as it was read.
    n_features_in_ : int
        Number of base clusterings.
    feature_names_in_ : ndarray of str
        Names of the base clusterings, where a frame was given.

    Notes
    -----
    Where this differs from the paper: a prior, without which zeros are for ever; it runs on distinct label
    rows with counts, which is exact; starts are profiles around rows that differ instead of random ones, and
    with more than 5000 distinct rows they are compared on 5000; exactly `n_clusters` clusters come out, so an
    instance may be moved to a cluster that would be empty.

    References
    ----------
    A. Topchy, A. K. Jain, W. Punch: Clustering Ensembles: Models of Consensus and Weak Partitions. IEEE
    TPAMI, 2005.

    Examples
    --------
    >>> from consilience import MixtureConsensus
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "y", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = MixtureConsensus(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.membership_[4].round(2).tolist()
    [0.0, 1.0]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": N_CLUSTERS,
        "prior": [Interval(Real, 0, None, closed="neither")],
        "init": [StrOptions({"random"}), "array-like"],
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
        prior: float = 0.1,
        init: Any = "random",
        n_init: int = 10,
        unobserved: str = "error",
        max_iter: int = 200,
        tol: float = 1e-6,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.prior = prior
        self.init = init
        self.n_init = n_init
        self.unobserved = unobserved
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> MixtureConsensus:
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
            result = mixture(
                rows.codes,
                rows.counts,
                known.offsets,
                k,
                prior=self.prior,
                n_init=self.n_init,
                max_iter=self.max_iter,
                tol=self.tol,
                rng=rng,
                start=self._start(partitions, k),
                progress=self._progress if self.verbose else None,
            )
        if not result.converged:
            warnings.warn(
                f"MixtureConsensus did not converge in {self.max_iter} iterations. "
                "Hint: raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        order = by_size(result.labels, rows.counts, k)
        self._answer(partitions, known, np.argsort(order)[result.labels], k)
        self.membership_ = self._spread(result.membership[:, order][rows.inverse], 0.0)
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        return self

    def _start(self, partitions: Partitions, n_clusters: int) -> np.ndarray | None:
        """The given start, per distinct observed row."""
        if isinstance(self.init, str):
            return None
        labels = np.asarray(self.init)
        if labels.shape != (partitions.n_instances,) or labels.dtype.kind not in "iu":
            raise ValueError(
                f"init has shape {labels.shape} and dtype {labels.dtype}, but the table has "
                f"{partitions.n_instances} instances. Hint: give one whole number per instance."
            )
        labels = labels[partitions.seen]
        wrong = np.flatnonzero((labels < 0) | (labels >= n_clusters))
        if len(wrong):
            row = np.flatnonzero(partitions.seen)[wrong[0]]
            raise ValueError(
                f"init puts row {row} in cluster {labels[wrong[0]]}, but there are clusters 0 to "
                f"{n_clusters - 1}. Hint: number the clusters from 0, or raise n_clusters."
            )
        rows = partitions.take_seen().distinct
        start = np.empty(len(rows.counts), dtype=np.int64)
        start[rows.inverse] = labels  # equal rows have one cluster; the last instance decides
        return start
