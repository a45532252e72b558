"""Ensemble clustering by propagating cluster-wise similarities (ECPCS): walks between base clusters."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.coassociation import coobservation
from consilience.core.cuts import cut_embedding, graph_embedding
from consilience.core.discretize import fill_empty_clusters
from consilience.core.linkage import average_linkage, cut
from consilience.core.parameters import Count, parameters
from consilience.core.tables import cluster_sizes, elect, gather, jaccard
from consilience.core.trajectory import trajectory_similarity
from consilience.registry import About

# The similarity of all pairs of rows is kept dense, twice: 3.6 GB.
_MAX_ROWS = 15_000
# Far below any difference between mean memberships that is not a tie.
_TIE = 1e-9


class ECPCSResult(NamedTuple):
    """What `ecpcs` found."""

    labels: np.ndarray  # per row
    similarity: np.ndarray  # R, of all pairs of base clusters
    meta_clusters: np.ndarray | None  # per base cluster, in the form "meta"
    merges: np.ndarray | None  # in the form "hierarchy"


def ecpcs(
    rows: Rows,
    n_clusters: int,
    *,
    form: str,
    n_steps: int,
    n_init: int,
    rng: np.random.RandomState,
) -> ECPCSResult:
    r"""Similarity of base clusters by random walks, and from it a partition of the rows.

    .. math::
        R_{cd} = \cos\Bigl(\bigl[P^t_{c \cdot}\bigr]_{t \le T}, \bigl[P^t_{d \cdot}\bigr]_{t \le T}\Bigr),
        \qquad P_{cd} \propto J_{cd}

    J is the Jaccard index of two base clusters, within the instances that both of their bases saw; it has no
    diagonal. "meta" cuts the graph R into meta-clusters, and a row goes to the one of whose clusters it has
    the largest share. "hierarchy" is average linkage on the mean of :math:`R_{c_i(p) c_i(r)}` over the
    bases i that saw both rows, and one more that is like the average.

    Symbols: c_i(p) -> rows.codes[p, i] (-1 = missing); T -> n_steps; R -> similarity.
    Cost: base clusters^3, and rows x bases x n_clusters ("meta") or rows^2 x bases ("hierarchy").
    """
    r = cluster_similarity(rows, n_steps)
    if form == "meta":
        meta = _cut_clusters(r, n_clusters, n_init, rng)
        return ECPCSResult(_vote(rows, meta, n_clusters), r, meta, None)
    merges = average_linkage(_enhanced_coassociation(rows, r), rows.weights)
    return ECPCSResult(cut(merges, n_clusters), r, None, merges)


def cluster_similarity(rows: Rows, n_steps: int) -> np.ndarray:
    """R: similarity of walks between base clusters that overlap."""
    overlap = jaccard(rows.codes, rows.offsets, rows.weights)
    np.fill_diagonal(overlap, 0.0)
    return trajectory_similarity(overlap, np.ones(len(overlap)), n_steps)


def _cut_clusters(r: np.ndarray, n_clusters: int, n_init: int, rng: np.random.RandomState) -> np.ndarray:
    ones = np.ones(len(r))
    h = graph_embedding(np.maximum(r, 0.0), ones, n_clusters)
    return cut_embedding(h, ones, n_clusters, discretize="rotation", n_init=n_init, rng=rng)[0]


def _vote(rows: Rows, meta: np.ndarray, n_clusters: int) -> np.ndarray:
    """For every row, the meta-cluster of which it has the largest share; ties go to the largest one."""
    codes, offsets = rows.codes, rows.offsets
    table = np.eye(n_clusters)[meta] / np.bincount(meta, minlength=n_clusters)[meta, None]
    members = cluster_sizes(codes, offsets, rows.weights)
    bias = _TIE * np.bincount(meta, members, n_clusters) / members.sum()
    labels = elect(codes, offsets, table, bias)
    if len(np.unique(labels)) == n_clusters:
        return labels
    fit = gather(codes, offsets, table)[np.arange(len(labels)), labels]
    return fill_empty_clusters(labels, fit, n_clusters)


def _enhanced_coassociation(rows: Rows, r: np.ndarray) -> np.ndarray:
    """Mean similarity of the clusters of two rows in the same base.

    One more base in which the two are as alike as the average pair takes part: without it a pair seen
    together once would be as sure as one seen by all. Where nothing is missing, the mean is the plain one.
    """
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    m = codes.shape[1]
    base = np.repeat(np.arange(m), np.diff(offsets))
    own = np.where(base[:, None] == base, r, 0.0)
    # Twice the same gather: rows by clusters, then rows by rows.
    half = np.ascontiguousarray(gather(codes, offsets, own).T)
    total = gather(codes, offsets, half)
    together = coobservation(codes >= 0).astype(float)
    average = (w @ total @ w) / (w @ together @ w)
    similarity = (m + 1.0) / m * ((total + average) / (together + 1.0) - average / (m + 1.0))
    return 0.5 * (similarity + similarity.T)


@parameters
class ECPCS(LabelMethod):
    """Propagated cluster similarities: clusters are alike if random walks from them visit the same clusters.

    Base clusters that overlap are linked, walks spread these links, and the similarity of base clusters that
    results is either cut into meta-clusters for which instances vote, or used to compare instances. Use it in
    its default form for large tables with any numbers of base clusters and many missing labels: the cost is
    linear in the instances. Use the form "hierarchy" on small tables with few missing labels, if a hierarchy
    or an answer without random starts is wanted. Prefer :class:`DAL` where base clusterings have many more
    clusters than you want and quality matters most.

    Parameters
    ----------
    form : {"meta", "hierarchy"}, default="meta"
        Vote for meta-clusters (ECPCS-MC of the paper), or average linkage of instances (ECPCS-HC).
    n_steps : int, default=20
        Length of the walks.
    n_init : int, default=10
        Starts of the rotation that finds meta-clusters; the best is kept.

    Attributes
    ----------
    cluster_similarity_ : ndarray of shape (n_base_clusters, n_base_clusters)
        Similarity of all base clusters, base after base, in the order of ``partitions_.categories``.
    meta_clusters_ : list of ndarray, one per base clustering with labels
        The meta-cluster of each of its clusters, numbered like `labels_`; only in the form "meta".
    row_merges_ : ndarray of shape (n_distinct - 1, 4)
        The hierarchy of distinct label rows: two clusters, their mean similarity and the number of instances
        of both, most similar first; numbered like SciPy's linkage. Only in the form "hierarchy".

    Notes
    -----
    Where this differs from the paper: it runs on distinct label rows with counts, which is exact, except that
    equal rows are never separated; the best of several starts of the rotation is kept; missing labels are
    allowed. The Jaccard index of two base clusters is then taken within the instances that both bases saw,
    and the similarity of two instances is a mean over the bases that saw both, and one more which is like the
    average.

    The form "hierarchy" refuses more than 15000 distinct label rows.

    References
    ----------
    D. Huang, C.-D. Wang, H. Peng, J. Lai, C.-K. Kwoh: Enhanced Ensemble Clustering via Fast Propagation of
    Cluster-wise Similarities. IEEE Transactions on Systems, Man, and Cybernetics: Systems, 2021.

    Examples
    --------
    >>> from consilience import ECPCS
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = ECPCS(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="large tables, many gaps",
        avoid="many clusters, as many in every base",
        cost="base clusters^3",
        paper="Huang, Wang, Peng, Lai, Kwoh: Enhanced Ensemble Clustering via Fast Propagation of "
        "Cluster-wise Similarities. IEEE TSMC: Systems, 2021.",
        linear=True,
    )
    max_base_clusters = MAX_BASE_CLUSTERS

    form: Literal["meta", "hierarchy"] = "meta"
    n_steps: Count = 20
    n_init: Count = 10

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> ECPCSResult:
        if self.form == "hierarchy":
            self._check_rows(len(problem.rows.counts), _MAX_ROWS)
        return ecpcs(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: ECPCSResult, problem: Problem) -> None:
        self.cluster_similarity_ = result.similarity[np.ix_(problem.places, problem.places)]
        if result.meta_clusters is not None:
            assert problem.numbers is not None
            self.meta_clusters_ = problem.per_cluster(problem.numbers[result.meta_clusters])
        if result.merges is not None:
            self.row_merges_ = result.merges
