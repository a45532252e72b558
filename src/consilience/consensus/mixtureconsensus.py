"""Mixture of multinomials: the labels of an instance are drawn from the profile of its cluster."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience.consensus.base import LabelMethod, Problem
from consilience.core import hot
from consilience.core.blocks import map_blocks
from consilience.core.canonical import Rows
from consilience.core.discretize import fill_empty_clusters
from consilience.core.parameters import Count, NonNegative, Positive, Verbose, parameters
from consilience.core.profiles import first_profiles, label_shares, sample_rows, smooth_profiles
from consilience.core.sweeps import Progress, Sweeps
from consilience.core.tables import cross, rows_per_block
from consilience.registry import About


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
    rows: Rows,
    n_clusters: int,
    *,
    prior: float,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    start: np.ndarray | None = None,
    progress: Progress | None = None,
) -> MixtureResult:
    r"""Penalised maximum likelihood of a mixture of multinomials, by expectation maximisation.

    .. math::
        \min \; -\sum_p w_p \log \sum_c \pi_c \prod_{i \, \text{observed}} \theta_{ci}(l_{pi})
        - a \sum_{c, i, l} f_i(l) \log \theta_{ci}(l)

    The second term is a Dirichlet prior: every cluster starts with a labels from every base, in the shares f
    in which that base gives its labels. Without it a label that no member of a cluster carries would be shut
    out for ever. A missing label has no factor. Row p stands for ``counts[p]`` instances.

    `start` is a cluster for every row to begin with; without it `n_init` random starts are compared.

    Symbols: l -> rows.codes (-1 = missing); w -> rows.weights; pi -> proportions; theta -> profiles;
    a -> prior.
    Cost: rows x bases x n_clusters a step, and n_init fits of at most 5000 rows.
    """
    w = rows.weights
    shares = label_shares(rows)
    if start is not None:
        pi = np.bincount(start, weights=w, minlength=n_clusters) / w.sum()
        sums = cross(rows.codes, rows.offsets, start, w, n_clusters)
        theta = smooth_profiles(sums, rows.offsets, prior * shares)
    else:
        sample = sample_rows(rows, shares)[1]

        def on_sample() -> MixtureResult:
            pi = np.full(n_clusters, 1.0 / n_clusters)
            theta = first_profiles(sample, shares, n_clusters, rng)
            return _maximise(sample, shares, pi, theta, prior, max_iter, tol, None)

        best = min((on_sample() for _ in range(n_init)), key=lambda found: found.objective[-1])
        pi, theta = best.proportions, best.profiles
    return _maximise(rows, shares, pi, theta, prior, max_iter, tol, progress)


def _maximise(
    rows: Rows,
    shares: np.ndarray,
    pi: np.ndarray,
    theta: np.ndarray,
    prior: float,
    max_iter: int,
    tol: float,
    progress: Progress | None,
) -> MixtureResult:
    """Expectation maximisation from given proportions and profiles."""
    r = np.empty((len(rows.codes), len(pi)))
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        likelihood, sums, mass = _expect(rows, pi, theta, r)
        before, now = sweeps.add(
            -likelihood - prior * float((rows.weigh_clusters(shares) @ np.log(theta)).sum())
        )
        sweeps.converged = before - now <= tol * abs(now)
        if sweeps.converged:
            break
        pi = mass / mass.sum()
        theta = smooth_profiles(sums, rows.offsets, prior * shares)
    labels = fill_empty_clusters(r.argmax(axis=1), r.max(axis=1), len(pi))
    return MixtureResult(labels, r, pi, theta, *sweeps.outcome)


def _expect(
    rows: Rows, pi: np.ndarray, theta: np.ndarray, r: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Fills r_pc, proportional to pi_c prod theta_ci(l_pi); log-likelihood, B^T W r and the mass of clusters.

    One pass over the rows.
    """
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    log_theta = rows.weigh_clusters(np.log(theta))
    log_pi = np.log(np.maximum(pi, np.finfo(float).tiny))  # a cluster that nobody is in stays empty

    def one(part: slice) -> tuple[float, np.ndarray, np.ndarray]:
        block, weight, out = codes[part], w[part], r[part]
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


@parameters
class MixtureConsensus(LabelMethod):
    """Consensus by a mixture of multinomials: every cluster has a profile of labels in every base clustering.

    The probability model behind the question: an instance belongs to one cluster, and each base clustering
    that saw it draws its label from the profile of that cluster. Missing labels just say nothing. Use it when
    the base clusterings have about the number of clusters that you want and you want memberships; the cost is
    linear in the distinct label rows. Prefer :class:`LWEA` or :class:`LWGP` when the base clusterings have
    other and larger numbers of clusters than you want.

    Parameters
    ----------
    prior : float, default=0.1
        How many labels every cluster is given from every base clustering beforehand, in the shares in which
        that base clustering gives them.
    init : "random" or array-like of int of shape (n_instances,), default="random"
        Where to start: at rows that differ, or at a partition that is to be improved, with clusters
        0..n_clusters - 1.
    n_init : int, default=10
        Random starts; the most likely one is kept.
    max_iter : int, default=200
        Limit of steps.
    tol : float, default=1e-6
        Stop when the objective falls by less than this share of itself.
    verbose : int, default=0
        Say the objective of every step, on stderr or by logging.

    Attributes
    ----------
    membership_ : ndarray of shape (n_instances, n_clusters)
        Probability of every cluster given the instance's labels, as the model has it. Base clusterings that
        repeat each other count as independent, so it is surer than it should be; `confidence_` is not.
        0 for an unobserved instance.
    objective_ : ndarray of shape (n_iter,)
        Minus the penalised log-likelihood after every step; it never rises.
    n_iter_ : int
        Number of steps, those of the starts on a sample not counted.

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
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "y", "v"], ["b", None, "v"]]
    >>> model = MixtureConsensus(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.membership_[4].round(2).tolist()
    [0.0, 1.0]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="memberships, many gaps",
        avoid="bases have more clusters than wanted",
        cost="rows x bases x clusters a step",
        paper="Topchy, Jain, Punch: Clustering Ensembles: Models of Consensus and Weak Partitions. IEEE "
        "TPAMI, 2005.",
        linear=True,
    )
    any_weights = True

    prior: Positive = 0.1
    init: Literal["random"] | Annotated[Any, "array-like"] = "random"
    n_init: Count = 10
    max_iter: Count = 200
    tol: NonNegative = 1e-6
    verbose: Verbose = 0

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> MixtureResult:
        return mixture(
            problem.rows,
            problem.n_clusters,
            prior=self.prior,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
            start=self._start(problem),
            progress=self._progress if self.verbose else None,
        )

    def _learn(self, result: MixtureResult, problem: Problem) -> None:
        # A cluster at a time: with millions of rows each copy of the whole counts.
        self.membership_ = np.empty((len(problem.table.seen), len(problem.order)))
        for place, cluster in enumerate(problem.order):
            self.membership_[:, place] = problem.per_instance(result.membership[:, cluster])

    def _start(self, problem: Problem) -> np.ndarray | None:
        """The given start, per distinct observed row."""
        if isinstance(self.init, str):
            return None
        labels, seen = np.asarray(self.init), problem.table.seen
        if labels.shape != seen.shape or labels.dtype.kind not in "iu":
            raise InputError(
                f"init has shape {labels.shape} and dtype {labels.dtype}, but the table has {len(seen)} "
                "instances.",
                hint="give one whole number per instance.",
            )
        wrong = np.flatnonzero(seen & ((labels < 0) | (labels >= problem.n_clusters)))
        if len(wrong):
            raise InputError(
                f"init puts row {wrong[0]} in cluster {labels[wrong[0]]}, but there are clusters 0 to "
                f"{problem.n_clusters - 1}.",
                hint="number the clusters from 0, or raise n_clusters.",
            )
        start = np.empty(len(problem.rows.counts), dtype=np.int64)
        start[problem.known.inverse] = labels[seen]  # equal rows have one cluster; the last instance decides
        return start
