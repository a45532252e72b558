"""Diffused average linkage (DAL): instances are linked through all clusters that overlap with theirs."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Annotated, Literal, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from consilience._errors import InputError
from consilience._methods import About
from consilience._sklearn import Interval
from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.certainty import certainty
from consilience.core.linkage import average_linkage, cut
from consilience.core.parameters import Count, Positive, parameters
from consilience.core.tables import cluster_sizes, contingency, cross, elect, gather, quadratic, scatter
from consilience.metrics import ensemble_agreement

# The exact form keeps two dense tables of rows squared: .4 GB at the first limit, beyond which it must be
# asked for, and 6.4 GB at the second.
_MAX_ROWS, _MOST_ROWS = 5_000, 20_000
# The scalable form links this many micro-clusters of at most so many instances, from so many starts.
_MICRO_CLUSTERS = 600
_SAMPLE = 10_000
_STARTS = 3
_UNASSIGNED = -1


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
    kernel = _diffuse(rows, q)
    if exact:
        merges = average_linkage(_similarity(kernel), rows.weights)
        labels = significant_cut(merges, rows.weights, n_clusters, min_share)
    else:
        labels = _from_a_sample(kernel, n_clusters, min_share, max_iter, rng)
    labels, n_iter = _relocate(kernel, labels, n_clusters, max_iter)
    return DALResult(labels, q, n_iter)


class _Kernel(NamedTuple):
    """S in its parts."""

    rows: Rows
    table: np.ndarray  # F: observed over expected overlap of base clusters, weighted by their certainty
    norms: np.ndarray  # per row, the square root of z^T F z


def _diffuse(rows: Rows, q: np.ndarray) -> _Kernel:
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    s = gather(codes, offsets, q[:, None])[:, 0]
    sizes = cluster_sizes(codes, offsets, w)
    scale = q / np.maximum(sizes, 1.0)  # a cluster without members overlaps with nothing
    table = contingency(codes, offsets, w / s) * scale * scale[:, None]
    return _Kernel(rows, table, np.sqrt(quadratic(codes, offsets, table)))


def _similarity(kernel: _Kernel) -> np.ndarray:
    (codes, offsets, _), table, norms = kernel
    half = np.ascontiguousarray(gather(codes, offsets, table).T)
    return gather(codes, offsets, half) / norms / norms[:, None]


def _relocate(kernel: _Kernel, labels: np.ndarray, n_clusters: int, max_iter: int) -> tuple[np.ndarray, int]:
    """Every row to the cluster of highest mean similarity, until none moves; and the number of sweeps."""
    if (labels == _UNASSIGNED).any():
        labels = np.where(labels == _UNASSIGNED, _nearest(kernel, labels, n_clusters), labels)
    n_iter, settled = 0, False
    while not settled and n_iter < max_iter:
        moved = _nearest(kernel, labels, n_clusters)
        gone = np.bincount(moved, minlength=n_clusters) == 0
        moved = np.where(gone[labels], labels, moved)  # a cluster that would be empty keeps its rows
        settled = np.array_equal(moved, labels)
        labels = moved
        n_iter += 1
    return labels, n_iter


def _nearest(kernel: _Kernel, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """The cluster to whose members each row is most similar on average."""
    codes, offsets, w = kernel.rows.codes, kernel.rows.offsets, kernel.rows.weights
    sums = kernel.table @ cross(codes, offsets, labels, w / kernel.norms, n_clusters)
    assigned = labels != _UNASSIGNED
    sizes = np.bincount(labels[assigned], weights=w[assigned], minlength=n_clusters)
    return elect(codes, offsets, sums / sizes, np.zeros(n_clusters))


def _from_a_sample(
    kernel: _Kernel, n_clusters: int, min_share: float, max_iter: int, rng: np.random.RandomState
) -> np.ndarray:
    """Labels of all rows by the best of several linkages of drawn ones."""
    rows = kernel.rows
    places, drawn = _draw(rows.weights, rng)
    part = kernel._replace(rows=Rows(rows.codes[places], rows.offsets, drawn), norms=kernel.norms[places])
    best, labels = -1.0, np.full(len(rows.codes), _UNASSIGNED)
    for found in _link_micro_clusters(part, n_clusters, min_share, rng):
        moved, _ = _relocate(part, found, n_clusters, max_iter)
        # NaN where no base clustering says anything: any start is as good.
        agreement = np.nan_to_num(ensemble_agreement(moved, part.rows))
        if agreement > best:
            best, labels[places] = agreement, moved
    weights = np.zeros(len(labels))
    weights[places] = drawn
    return _nearest(kernel._replace(rows=rows._replace(counts=weights)), labels, n_clusters)


def _link_micro_clusters(
    kernel: _Kernel, n_clusters: int, min_share: float, rng: np.random.RandomState
) -> Iterator[np.ndarray]:
    """Labels of the rows, from every start.

    With A A^T = F the rows of B A, scaled to unit length, have S as inner products. Mean similarity of two
    groups is then the inner product of their means, so linking the means of micro-clusters is linking their
    members.
    """
    w = kernel.rows.weights
    values, vectors = np.linalg.eigh(kernel.table)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    points = gather(kernel.rows.codes, kernel.rows.offsets, root) / kernel.norms[:, None]
    n_micro = max(min(_MICRO_CLUSTERS, len(w)), min(3 * n_clusters, len(w)))
    for _ in range(_STARTS):
        model = KMeans(n_micro, init="random", n_init=1, max_iter=10, random_state=rng)
        member = np.unique(model.fit(points, sample_weight=w).labels_, return_inverse=True)[1]
        sizes = np.bincount(member, weights=w)
        means = scatter(member[:, None], np.array([0, len(sizes)]), w, points) / sizes[:, None]
        found = significant_cut(average_linkage(means @ means.T, sizes), sizes, n_clusters, min_share)
        yield found[member]


def _draw(w: np.ndarray, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Rows of instances at equal distances from a random start, and how many instances each stands for."""
    if len(w) <= _SAMPLE:
        return np.arange(len(w)), w
    reach = np.cumsum(w)
    places = (rng.random_sample() + np.arange(_SAMPLE)) / _SAMPLE * reach[-1]
    rows, drawn = np.unique(np.searchsorted(reach, places, side="right"), return_counts=True)
    return rows, drawn.astype(float)


def significant_cut(merges: np.ndarray, weights: np.ndarray, n_clusters: int, min_share: float) -> np.ndarray:
    """Labels of the coarsest cut with `n_clusters` clusters that count; -1 for rows of the others.

    A cluster counts if it has `min_share` of the weight that it would have if all were equal. Where no cut
    has exactly so many, the coarsest that has more, and its largest clusters are kept; where none has so
    many, the cut into `n_clusters` clusters of any size.
    """
    n_rows = len(weights)
    enough = max(1.0, min_share * weights.sum() / n_clusters)
    pairs = merges[:, :2].astype(np.int64)
    counts = np.concatenate([weights, merges[:, 3]]) >= enough
    # Every merge takes two clusters away and adds one.
    change = counts[n_rows:].astype(int) - counts[pairs].sum(axis=1)
    n_counting = counts[:n_rows].sum() + np.concatenate([[0], np.cumsum(change)])
    last = n_rows - n_clusters  # merges after which `n_clusters` clusters are left
    n_merges = last
    for wanted in (n_counting == n_clusters, n_counting > n_clusters):
        if wanted[: last + 1].any():
            n_merges = int(np.flatnonzero(wanted[: last + 1])[-1])
            break
    n_left = n_rows - n_merges
    labels = cut(merges, n_left)
    kept = np.full(n_left, _UNASSIGNED)
    largest = np.argsort(-np.bincount(labels, weights, n_left), kind="stable")[:n_clusters]
    kept[largest] = np.arange(n_clusters)
    return kept[labels]


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
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    theta : float, default=0.4
        How fast certainty falls with the entropy of a cluster in the other base clusterings.
    min_share : float, default=0.1
        A cluster counts in the cut if it has this share of ``n_instances / n_clusters``. Smaller ones are
        shared out among those that count. Lower it if you expect clusters of very unequal sizes.
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

    Also those of every :class:`~consilience.consensus.LabelMethod`: labels, confidence and others.

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
    )

    max_base_clusters = MAX_BASE_CLUSTERS

    theta: Positive = 0.4
    min_share: Annotated[float, Interval(Real, 0, 1, closed="both")] = 0.1
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
        exact = n_rows <= _MAX_ROWS if self.solver == "auto" else self.solver == "exact"
        self.solver_ = "exact" if exact else "scalable"
        return dal(
            problem.rows,
            problem.n_clusters,
            theta=self.theta,
            min_share=self.min_share,
            max_iter=self.max_iter,
            exact=exact,
            rng=rng,
        )

    def _learn(self, result: DALResult, problem: Problem) -> None:
        self.certainty_ = problem.per_cluster(result.certainty)
