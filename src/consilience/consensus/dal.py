"""Diffused average linkage (DAL): instances are linked through all clusters that overlap with theirs."""

from __future__ import annotations

from numbers import Real
from typing import Annotated, Literal, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience._support.sklearn import Interval
from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.certainty import certainty
from consilience.core.diffusion import (
    MAX_ROWS,
    THETA,
    Kernel,
    counting_share,
    diffuse,
    draw,
    link,
    link_micro_clusters,
    nearest,
    relocate,
)
from consilience.core.parameters import Count, Positive, parameters
from consilience.metrics import ensemble_agreement
from consilience.registry import About

# The exact form keeps two dense tables of rows squared, 6.4 GB in all at this many.
_MOST_ROWS = 20_000
# The scalable form links this many micro-clusters of at most so many instances, from so many starts.
_MICRO_CLUSTERS = 600
_SAMPLE = 10_000
_STARTS = 3


class DALResult(NamedTuple):
    """What `dal` found."""

    labels: np.ndarray  # per row
    certainty: np.ndarray  # q, per cluster of all bases
    n_iter: int


def dal(
    rows: Rows,
    n_clusters: int,
    *,
    theta: float,
    min_share: float,
    max_iter: int,
    exact: bool,
    rng: np.random.RandomState,
) -> DALResult:
    r"""Average linkage on the two-step diffusion kernel of the instance-cluster graph.

    .. math::
        S_{ij} = \frac{z_i^T F z_j}{\sqrt{z_i^T F z_i \; z_j^T F z_j}}, \qquad
        F_{cd} = \frac{q_c q_d}{n_c n_d} \sum_i w_i \frac{z_{ic} z_{id}}{s_i}, \quad s_i = z_i^T q

    z_i marks the clusters that row i is in; a missing label marks none. q_c is the certainty of cluster c,
    n_c its size. F compares what two clusters have in common with what their sizes would let one expect, so
    rows that share no base clustering are still linked through clusters that overlap, and nothing is divided
    by how often two rows were seen together.

    Steps: linkage with the counts as weights; the coarsest cut that has `n_clusters` clusters of at least
    `min_share` of an even share, so that badly observed rows do not take clusters for themselves; then every
    row moves to the cluster of highest mean similarity until none does.

    Symbols: z -> rows.codes (-1 = missing); w -> rows.counts; q -> certainty; theta -> theta.
    Cost: exact, rows^2 in time and memory; otherwise three times the linkage of 600 micro-clusters of 10 000
    instances, of which the one that agrees best with the base clusterings is kept.
    Both rows x bases x (bases + n_clusters) a sweep, and a table of all pairs of base clusters.
    """
    q = certainty(rows, theta)
    kernel = diffuse(rows, q)
    if exact:
        labels = link(kernel).cut(n_clusters, min_share)
    else:
        labels = _from_a_sample(kernel, n_clusters, min_share, max_iter, rng)
    labels, n_iter = relocate(kernel, labels, n_clusters, max_iter)
    return DALResult(labels, q, n_iter)


def _from_a_sample(
    kernel: Kernel, n_clusters: int, min_share: float, max_iter: int, rng: np.random.RandomState
) -> np.ndarray:
    """Labels of all rows by the best of several linkages of drawn ones."""
    rows = kernel.rows
    places, part = draw(kernel, _SAMPLE, rng.random_sample() if len(rows.codes) > _SAMPLE else 0.5)
    best, labels = -1.0, np.full(len(rows.codes), -1)
    for tree in link_micro_clusters(part, max(_MICRO_CLUSTERS, 3 * n_clusters), _STARTS, rng):
        moved, _ = relocate(part, tree.cut(n_clusters, min_share), n_clusters, max_iter)
        # NaN where no base clustering says anything: any start is as good.
        agreement = np.nan_to_num(ensemble_agreement(moved, part.rows))
        if agreement > best:
            best, labels[places] = agreement, moved
    weights = np.zeros(len(labels))
    weights[places] = part.rows.weights
    return nearest(kernel._replace(rows=rows._replace(counts=weights)), labels, n_clusters)


@parameters
class DAL(LabelMethod):
    """Diffused average linkage: what `fuse` takes unless another method agrees clearly better.

    It weighs every base cluster by how far the other base clusterings keep it together, compares instances
    through all clusters that overlap with theirs, links the most similar ones, and cuts where the wanted
    number of clusters is large enough to count. Use it when base clusterings have different numbers of
    clusters, and when much is missing. Prefer another method, or let :func:`consilience.fuse` choose, when
    every base clustering has as many clusters as you want.

    Parameters
    ----------
    theta : float, default=0.4
        How fast certainty falls with the entropy of a cluster in the other base clusterings.
    min_share : float or "auto", default="auto"
        A cluster counts in the cut if it has this share of ``n_instances / n_clusters``. Smaller ones are
        shared out among those that count. Lower it if you expect clusters of very unequal sizes. "auto" is
        0.1, and 0.2 where instances have fewer than six labels on average and at most 60 % of those that they
        could have.
    solver : {"auto", "exact", "scalable"}, default="auto"
        Link all distinct label rows, which is deterministic, or micro-clusters of a sample, which is linear
        in them. "auto" takes the exact form up to 5000 distinct rows; "exact" refuses more than 20 000.
    unobserved : {"error", "noise", "largest"}, default="error"
        What to do with instances that no base clustering saw: refuse, label them -1, or put them in the
        largest cluster. Their confidence is 0.
    max_iter : int, default=30
        Greatest number of sweeps in which instances move to their nearest cluster.
    random_state : int, RandomState or None, default=None
        Seed of the scalable form; the exact form does not use it.

    Attributes
    ----------
    certainty_ : list of ndarray, one per base clustering with labels
        Certainty of its clusters, in the order of ``partitions_.categories``; 1 where no other base splits
        the cluster.
    solver_ : str
        The form that ran: "exact" or "scalable".
    n_iter_ : int
        Number of sweeps.

    Notes
    -----
    A method of this project. The certainty is that of Huang, Wang and Lai [1]_, taken over the base
    clusterings that saw a member. The similarity is the two-step diffusion kernel of the graph of instances
    and clusters.

    References
    ----------
    .. [1] D. Huang, C.-D. Wang, J.-H. Lai, "Locally weighted ensemble clustering", IEEE Transactions on
       Cybernetics, 2018.

    Examples
    --------
    >>> from consilience import DAL
    >>> labels = [[0, 2, None], [0, 2, 1], [None, 2, 1], [1, 0, 0], [1, 0, None], [None, 1, 0]]
    >>> DAL(n_clusters=2).fit_predict(labels)
    array([0, 0, 0, 1, 1, 1])
    """

    about = About(
        use="numbers of clusters differ, much is missing",
        avoid="clusters below a tenth of an even share",
        cost="above 5000 rows by micro-clusters; below, all pairs",
        paper="Of this library; weights of clusters as in Huang, Wang, Lai: IEEE Trans. Cybernetics, 2018.",
        linear=True,
        start=True,
    )
    any_weights = True
    max_base_clusters = MAX_BASE_CLUSTERS

    theta: Positive = THETA
    min_share: Annotated[float, Interval(Real, 0, 1, closed="both")] | Literal["auto"] = "auto"
    solver: Literal["auto", "exact", "scalable"] = "auto"
    max_iter: Count = 30

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> DALResult:
        n_rows = len(problem.rows.counts)
        if self.solver == "exact" and n_rows > _MOST_ROWS:
            raise InputError(
                f"solver='exact' compares all pairs of {n_rows} distinct label rows; it takes at most "
                f"{_MOST_ROWS}.",
                hint="use solver='scalable', or leave it at 'auto'.",
            )
        exact = n_rows <= MAX_ROWS if self.solver == "auto" else self.solver == "exact"
        self.solver_ = "exact" if exact else "scalable"
        return dal(
            problem.rows,
            problem.n_clusters,
            theta=self.theta,
            min_share=counting_share(problem.rows) if self.min_share == "auto" else self.min_share,
            max_iter=self.max_iter,
            exact=exact,
            rng=rng,
        )

    def _learn(self, result: DALResult, problem: Problem) -> None:
        self.certainty_ = problem.per_cluster(result.certainty)
