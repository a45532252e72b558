"""Meta-clustering algorithm (MCLA): group the base clusters, then let instances vote with theirs."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size
from consilience.consensus._partitioners import BALANCE, Cut, cut_by, metis
from consilience.consensus.lwgp import check_base_clusters
from consilience.core.cuts import cut_embedding, graph_embedding
from consilience.core.discretize import fill_empty_clusters
from consilience.core.tables import contingency, gather

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
    cut: Cut


def mcla(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
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
    row p. Row p stands for ``counts[p]`` instances.

    Symbols: a, b -> base clusters; c -> meta-clusters (result.meta); A -> association.
    Cost: the table of all pairs of base clusters, what `meta_clusters` costs, and rows x bases x n_clusters.
    """
    w = counts.astype(float)
    j = overlap(codes, w, offsets)
    nodes = np.ones(len(j))
    n_meta = min(n_clusters, len(j))

    cut = cut_by(
        balance,
        lambda: meta_clusters(j, n_meta, n_init=n_init, rng=rng),
        "metis",
        lambda: metis(sp.csr_array(j), nodes, n_meta, rng),
    )
    member = np.eye(n_clusters)[fill_empty_clusters(cut.labels, nodes, n_meta)]
    share = associate(codes, offsets, member)
    similar = gather(codes, offsets, j @ member / np.maximum(member.sum(axis=0), 1.0))
    score = share + _TIE * similar / codes.shape[1]
    labels = score.argmax(axis=1)
    labels = fill_empty_clusters(labels, score[np.arange(len(score)), labels], n_clusters)
    return MCLAResult(labels, share, member.argmax(axis=1), cut)


def overlap(codes: np.ndarray, w: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """J: Jaccard index of all pairs of base clusters, over the rows that both bases saw; diagonal one."""
    both = contingency(codes, offsets, w)
    seen = np.repeat(np.add.reduceat(both, offsets[:-1], axis=1), np.diff(offsets), axis=1)
    return both / np.maximum(seen + seen.T - both, 1.0)


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


class MCLA(LabelsMixin, BaseEstimator):
    """Meta-clustering: base clusters that overlap are taken for the same cluster, and instances vote.

    The clusters of all base clusterings are grouped by overlap into `n_clusters` meta-clusters; an instance
    goes to the one that holds the largest share of its clusters. Use it when base clusterings are versions of
    one partition, with about as many clusters as you want: it is fast, at any number of instances, and
    `meta_` says which base cluster stands for which consensus cluster. Prefer :class:`LWGP` or :class:`DAL`
    when base clusterings have other numbers of clusters than you want, which then do not match one to one.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    balance : {"free", "equal"}, default="free"
        "free" groups base clusters by a spectral cut, and by their overlap where starts of it differ.
        "equal" wants about as many base clusters in every meta-cluster, by METIS of the extra
        ``consilience[graphs]``; without the extra the spectral cut is taken, and `partitioner_` and `note_`
        say so.
    n_init : int, default=60
        Starts of k-means on the eigenvectors. The twenty most compact are compared and refined where they
        differ; the best is kept.
    unobserved : {"error", "noise", "largest"}, default="error"
        An instance that no base clustering saw: refuse, give it the label -1, or that of the largest cluster.
    random_state : int, RandomState instance or None, default=None
        Draws the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster.
    confidence_ : ndarray of shape (n_instances,)
        Estimated probability that the instance belongs to its cluster, from its labels; see
        :func:`consilience.diagnostics.confidence`. 0 for an unobserved instance.
    association_ : ndarray of shape (n_instances, n_clusters)
        Share of the base clusters of each consensus cluster that hold the instance, among those of base
        clusterings that saw it; 0 for an unobserved instance.
    meta_ : list of ndarray, one per base clustering with labels
        Consensus cluster of each of its clusters, in the order of ``partitions_.categories``.
    partitioner_ : str
        What made the cut: "spectral", "metis" or "kahypar".
    note_ : str
        Why another partitioner was taken than the one asked for; empty otherwise.
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
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = MCLA(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> [clusters.tolist() for clusters in model.meta_]
    [[0, 1], [0, 0, 1], [0, 1]]
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": N_CLUSTERS,
        "balance": BALANCE,
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "unobserved": [StrOptions({"error", "noise", "largest"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        balance: str = "free",
        n_init: int = 60,
        unobserved: str = "error",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.balance = balance
        self.n_init = n_init
        self.unobserved = unobserved
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> MCLA:
        """Merge the base clusterings.

        Parameters
        ----------
        X : array, nested list, frame, dict or list of series, or Partitions
            The table of base labels; see :meth:`consilience.Partitions.of`.
        y : ignored
            There for scikit-learn's interface.
        """
        partitions = self._read_labels(X, self.unobserved)
        check_base_clusters(partitions, "MCLA")
        rng = random_source(self.random_state)
        known = partitions.take_seen()
        rows = known.distinct
        k = self._feasible_clusters(known, rng)
        with threadpool_limits(limits=1):  # the same answer whatever the threads
            result = mcla(
                rows.codes,
                rows.counts,
                known.offsets,
                k,
                balance=self.balance,
                n_init=self.n_init,
                rng=rng,
            )
        order = by_size(result.labels, rows.counts, k)
        self._answer(partitions, known, np.argsort(order)[result.labels], k)
        self.association_ = self._spread(result.association[:, order][rows.inverse], 0.0)
        self.meta_ = np.split(np.argsort(order)[result.meta], known.offsets[1:-1])
        self.partitioner_, self.note_ = result.cut.partitioner, result.cut.note
        return self
