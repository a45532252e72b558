"""Hybrid bipartite graph formulation (HBGF): cut the graph of instances and base clusters."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size
from consilience.consensus._partitioners import BALANCE, Cut, cut_by, metis
from consilience.consensus.lwgp import check_base_clusters
from consilience.core.cuts import bipartite_embedding, cut_embedding
from consilience.core.discretize import fill_empty_clusters
from consilience.core.tables import indicator


class HBGFResult(NamedTuple):
    """What `hbgf` found."""

    labels: np.ndarray  # per row
    embedding: np.ndarray  # per row, of length one
    cut: Cut


def hbgf(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    balance: str,
    n_init: int,
    rng: np.random.RandomState,
) -> HBGFResult:
    r"""Cut of the bipartite graph that links every instance to its base clusters.

    .. math:: D_x^{-1/2} B D_y^{-1/2}, \qquad B_{pc} = [p \in c]

    The leading left singular vectors, each times its singular value, are the embedding; rows are scaled by
    :math:`D_x^{-1/2}` and then to length one, and clustered. :math:`D_x` is the number of labels of a row,
    so missing ones are left out; :math:`D_y` the size of a base cluster. Row p stands for ``counts[p]``
    instances. With ``balance="equal"`` the same graph, base clusters as nodes of weight one, goes to METIS.

    Symbols: B -> codes (-1 = missing).
    Cost: an eigenproblem of the size of all base clusters, rows x bases x n_clusters, and k-means.
    """
    w = counts.astype(float)
    h = bipartite_embedding(codes, offsets, w, np.ones(int(offsets[-1])), n_clusters)
    labels, unit = cut_embedding(h, w, n_clusters, n_init=n_init, rng=rng)
    cut = cut_by(balance, lambda: labels, "metis", lambda: _equal(codes, w, offsets, n_clusters, rng))
    return HBGFResult(fill_empty_clusters(cut.labels, w, n_clusters), unit, cut)


def _equal(
    codes: np.ndarray, w: np.ndarray, offsets: np.ndarray, n_clusters: int, rng: np.random.RandomState
) -> np.ndarray:
    b = sp.diags_array(w) @ indicator(codes, offsets)
    graph = sp.block_array([[None, b], [b.T, None]], format="csr")
    weights = np.concatenate([w, np.ones(b.shape[1])])
    return metis(graph, weights, n_clusters, rng)[: len(w)]


class HBGF(LabelsMixin, BaseEstimator):
    """Hybrid bipartite graph formulation: a cut through the graph of instances and base clusters.

    Instances are linked to the base clusters they are in, and the graph is cut into `n_clusters` parts, so
    that few instances leave their clusters. Use it at any number of instances, for base clusterings with any
    numbers of clusters, and with many labels missing: the eigenproblem has the size of all base clusters
    together. :class:`LWGP` is the same with clusters that count by how certain they are. Prefer
    :class:`EAC` or :class:`LWEA` for a hierarchy or an answer without random starts.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    balance : {"free", "equal"}, default="free"
        "free" lets clusters have the sizes that the labels suggest, by a spectral cut. "equal" wants clusters
        of nearly equal sizes, by a graph partitioner of the extra ``consilience[graphs]``; without the extra
        the spectral cut is taken, and `partitioner_` and `note_` say so.
    n_init : int, default=10
        Starts of k-means on the eigenvectors; the best is kept.
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
    embedding_ : ndarray of shape (n_instances, width)
        Instances on the unit sphere, before k-means; zero for an unobserved instance.
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
    Where this differs from the paper: the default is the spectral cut by the base clusters' side of the
    graph, which is also the consensus function of U-SENC (:class:`USENC`); METIS, which forces nearly equal
    sizes, has to be asked for. It runs on distinct label rows with counts: exact up to the starts of k-means
    for the spectral cut, while METIS never separates equal rows. Missing labels are links that are not there.

    References
    ----------
    X. Z. Fern, C. E. Brodley: Solving Cluster Ensemble Problems by Bipartite Graph Partitioning. ICML, 2004.

    Examples
    --------
    >>> from consilience import HBGF
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = HBGF(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
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
        n_init: int = 10,
        unobserved: str = "error",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.balance = balance
        self.n_init = n_init
        self.unobserved = unobserved
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> HBGF:
        """Merge the base clusterings.

        Parameters
        ----------
        X : array, nested list, frame, dict or list of series, or Partitions
            The table of base labels; see :meth:`consilience.Partitions.of`.
        y : ignored
            There for scikit-learn's interface.
        """
        partitions = self._read_labels(X, self.unobserved)
        check_base_clusters(partitions, type(self).__name__)
        rng = random_source(self.random_state)
        known = partitions.take_seen()
        rows = known.distinct
        k = self._feasible_clusters(known, rng)
        with threadpool_limits(limits=1):  # the same answer whatever the threads
            result = hbgf(
                rows.codes,
                rows.counts,
                known.offsets,
                k,
                balance=self.balance,
                n_init=self.n_init,
                rng=rng,
            )
        labels = np.argsort(by_size(result.labels, rows.counts, k))[result.labels]
        self._answer(partitions, known, labels, k)
        self.embedding_ = self._spread(result.embedding[rows.inverse], 0.0)
        self.partitioner_, self.note_ = result.cut.partitioner, result.cut.note
        return self
