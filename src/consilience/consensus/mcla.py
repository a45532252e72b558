"""Meta-clustering algorithm (MCLA): group the base clusters, then let instances vote with theirs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.consensus.partitioners import Balance, metis
from consilience.core.canonical import Rows
from consilience.core.cuts import cut_embedding, graph_embedding
from consilience.core.discretize import fill_empty_clusters
from consilience.core.parameters import Count, parameters
from consilience.core.tables import gather, jaccard
from consilience.registry import About

# Ties in the votes of an instance are decided by how similar its base clusters are to all of a meta-cluster;
# two different shares of votes differ by more than this.
_TIE = 1e-7
# The most compact starts of k-means are compared: where they differ, base clusters are moved.
_N_COMPARED = 20
# A move must gain more than rounding. Every move gains, so they end; a limit all the same, per node.
_NO_GAIN = 1e-9
_MOVES = 10


class MCLAResult(NamedTuple):
    """What `mcla` found."""

    labels: np.ndarray  # per row
    association: np.ndarray  # share of votes, per row and cluster
    meta: np.ndarray  # meta-cluster of every base cluster
    partitioner: str  # "spectral" or "metis"


def mcla(
    rows: Rows,
    n_clusters: int,
    *,
    balance: str,
    n_init: int,
    rng: np.random.RandomState,
) -> MCLAResult:
    r"""Cut of the graph of base clusters by their overlap; instances go where most of their clusters are.

    .. math:: J_{ab} = \frac{|a \cap b|}{|a \cup b|}, \qquad
        A_{pc} = \frac{\#\{a \in c : p \in a\}}{\#\{a \in c\}}

    J is taken over the rows that both bases saw, and the denominator of A over the clusters of bases that saw
    row p. Row p stands for ``rows.counts[p]`` instances.

    Symbols: a, b -> base clusters; c -> meta-clusters (result.meta); A -> association.
    Cost: the table of all pairs of base clusters, what `meta_clusters` costs, and rows x bases x n_clusters.
    """
    codes, offsets = rows.codes, rows.offsets
    j = jaccard(codes, offsets, rows.weights)
    nodes = np.ones(len(j))
    n_meta = min(n_clusters, len(j))
    if balance == "equal":
        meta = metis(sp.csr_array(j), nodes, n_meta, rng)
    else:
        meta = meta_clusters(j, n_meta, n_init=n_init, rng=rng)
    member = np.eye(n_clusters)[fill_empty_clusters(meta, nodes, n_meta)]
    share = associate(codes, offsets, member)
    similar = gather(codes, offsets, j @ member / np.maximum(member.sum(axis=0), 1.0))
    score = share + _TIE * similar / codes.shape[1]
    labels = score.argmax(axis=1)
    labels = fill_empty_clusters(labels, score[np.arange(len(score)), labels], n_clusters)
    partitioner = "metis" if balance == "equal" else "spectral"
    return MCLAResult(labels, share, member.argmax(axis=1), partitioner)


def meta_clusters(j: np.ndarray, n_meta: int, *, n_init: int, rng: np.random.RandomState) -> np.ndarray:
    """Meta-cluster of every base cluster: a spectral cut of J, and J's word where starts of k-means differ.

    With noisy labels the last eigenvectors are noise, and starts of k-means on them end in different groups
    that are nearly as compact. J itself then knows better where a disputed base cluster belongs: those are
    moved one at a time, from each of the compact starts, and the best by `within` is returned. What the
    starts agree on stays, since there the eigenvectors know better than J: moving everything was worse.

    Cost: an eigenproblem of the size of J, and for every move disputed base clusters x n_meta.
    """
    nodes = np.ones(len(j))
    h = graph_embedding(j, nodes, n_meta)
    starts = [cut_embedding(h, nodes, n_meta, n_init=1, rng=rng) for _ in range(n_init)]
    compact = np.array([within(unit @ unit.T, labels, n_meta) for labels, unit in starts])
    cuts = [starts[i][0] for i in np.argsort(-compact, kind="stable")[:_N_COMPARED]]
    disputed = np.zeros(len(j), dtype=bool)
    for labels in cuts[1:]:
        disputed |= align(labels, cuts[0], n_meta) != cuts[0]
    moved = [move_nodes(j, labels, n_meta, np.flatnonzero(disputed)) for labels in cuts]
    return max(moved, key=lambda labels: within(j, labels, n_meta))


def align(labels: np.ndarray, reference: np.ndarray, n_groups: int) -> np.ndarray:
    """The same groups, numbered such that most nodes have the number they have in the reference."""
    shared = np.eye(n_groups)[labels].T @ np.eye(n_groups)[reference]
    return linear_sum_assignment(shared, maximize=True)[1][labels]


def within(similarity: np.ndarray, labels: np.ndarray, n_groups: int) -> float:
    r"""How similar the members of a group are: :math:`\sum_c \sum_{a, b \in c} S_{ab} / |c|`."""
    member = np.eye(n_groups)[labels]
    links = np.einsum("ac,ac->c", member, similarity @ member)
    return float(np.sum(links / np.maximum(member.sum(axis=0), 1.0)))


def move_nodes(similarity: np.ndarray, labels: np.ndarray, n_groups: int, nodes: np.ndarray) -> np.ndarray:
    """Labels from which no move of one of the nodes raises `within`; the best move is made first.

    No group is emptied. Equal moves aside, the order of the nodes does not matter.
    """
    labels = labels.copy()
    member = np.eye(n_groups)[labels]
    sizes = member.sum(axis=0)
    to = similarity @ member  # sum of the similarities of a node to a group
    links = np.einsum("ac,ac->c", member, to)
    own, rows = np.diag(similarity)[nodes], np.arange(len(nodes))
    for _ in range(_MOVES * len(nodes)):
        group, mean = labels[nodes], links / np.maximum(sizes, 1.0)
        left = links[group] - 2 * to[nodes, group] + own
        loss = mean[group] - left / np.maximum(sizes[group] - 1, 1.0)
        gain = (links + 2 * to[nodes] + own[:, None]) / (sizes + 1) - mean - loss[:, None]
        gain[rows, group] = -np.inf
        gain[sizes[group] == 1] = -np.inf
        i, new = np.unravel_index(gain.argmax(), gain.shape)
        if gain[i, new] <= _NO_GAIN:
            break
        a, old = nodes[i], group[i]
        links[old] -= 2 * to[a, old] - own[i]
        links[new] += 2 * to[a, new] + own[i]
        to[:, old] -= similarity[:, a]
        to[:, new] += similarity[:, a]
        sizes[old] -= 1
        sizes[new] += 1
        labels[a] = new
    return labels


def associate(codes: np.ndarray, offsets: np.ndarray, member: np.ndarray) -> np.ndarray:
    """A: the share of the clusters of each meta-cluster that a row is in, among the bases that saw it."""
    votes = gather(codes, offsets, member)
    per_base = np.add.reduceat(member, offsets[:-1], axis=0)
    return votes / np.maximum((codes >= 0) @ per_base, 1.0)


@parameters
class MCLA(LabelMethod):
    """Meta-clustering: base clusters that overlap are taken for the same cluster, and instances vote.

    The clusters of all base clusterings are grouped by overlap into `n_clusters` meta-clusters; an instance
    goes to the one that holds the largest share of its clusters. Use it when base clusterings are versions of
    one partition, with about as many clusters as you want: it is fast, at any number of instances, and
    `meta_clusters_` says which base cluster stands for which consensus cluster. Prefer :class:`LWGP` or
    :class:`DAL` when base clusterings have other numbers of clusters than you want, which then do not match
    one to one.

    Parameters
    ----------
    balance : {"free", "equal"}, default="free"
        "free" groups base clusters by a spectral cut, and by their overlap where starts of it differ.
        "equal" wants about as many base clusters in every meta-cluster, by METIS of the extra
        ``consilience[graphs]``.
    n_init : int, default=60
        Starts of k-means on the eigenvectors. The twenty most compact are compared and refined where they
        differ; the best is kept.

    Attributes
    ----------
    association_ : ndarray of shape (n_instances, n_clusters)
        Share of the base clusters of each consensus cluster that hold the instance, among those of base
        clusterings that saw it; 0 for an unobserved instance.
    meta_clusters_ : list of ndarray, one per base clustering with labels
        Consensus cluster of each of its clusters, in the order of ``partitions_.categories``.
    partitioner_ : str
        What made the cut: "spectral" or "metis".

    Notes
    -----
    Where this differs from the paper: base clusters are grouped by a spectral cut and by moves, METIS has
    to be asked for; ties go to the consensus cluster whose base clusters overlap more with those of the
    instance, instead of at random; a consensus cluster that no instance prefers takes the one that fits its
    own worst. It runs on distinct label rows with counts, which is exact. With missing labels, overlaps are
    over the instances that both base clusterings saw and shares over the base clusterings that saw the
    instance.

    References
    ----------
    A. Strehl, J. Ghosh: Cluster Ensembles - A Knowledge Reuse Framework for Combining Multiple Partitions.
    JMLR, 2002.

    Examples
    --------
    >>> from consilience import MCLA
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = MCLA(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> [clusters.tolist() for clusters in model.meta_clusters_]
    [[0, 1], [0, 0, 1], [0, 1]]
    """

    about = About(
        use="bases are versions of one partition; a dictionary of base clusters",
        avoid="noisy bases with many clusters",
        cost="table of pairs of base clusters",
        paper="Strehl, Ghosh: Cluster Ensembles - A Knowledge Reuse Framework for Combining Multiple "
        "Partitions. JMLR, 2002.",
        linear=True,
    )
    max_base_clusters = MAX_BASE_CLUSTERS

    balance: Balance = "free"
    n_init: Count = 60

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> MCLAResult:
        return mcla(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: MCLAResult, problem: Problem) -> None:
        self.association_ = problem.per_instance(result.association[:, problem.order])
        self.meta_clusters_ = problem.per_cluster(np.argsort(problem.order)[result.meta])
        self.partitioner_ = result.partitioner
