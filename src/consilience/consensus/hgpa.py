"""Hypergraph partitioning (HGPA): part the instances so that few base clusters are torn."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size
from consilience.consensus._partitioners import BALANCE, Cut, cut_by, kahypar
from consilience.consensus.lwgp import check_base_clusters
from consilience.core.cuts import bipartite_embedding, cut_embedding
from consilience.core.discretize import fill_empty_clusters


class HGPAResult(NamedTuple):
    """What `hgpa` found."""

    labels: np.ndarray  # per row
    cut: Cut


def hgpa(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    balance: str,
    n_init: int,
    rng: np.random.RandomState,
) -> HGPAResult:
    r"""Cut of the hypergraph whose edges are the base clusters.

    .. math:: \min_z \sum_c (\lambda_c(z) - 1) \quad s.t. \text{ parts of nearly equal size}

    :math:`\lambda_c` is in how many parts base cluster c lies. Without the constraint the smallest cut
    separates single instances. The free form is therefore the normalised cut of the hypergraph: the leading
    eigenvectors of :math:`D_v^{-1/2} B D_e^{-1} B^T D_v^{-1/2}`, B the stacked indicator, :math:`D_v` and
    :math:`D_e` its row and column sums. Row p stands for ``counts[p]`` instances.

    Symbols: B -> codes (-1 = missing).
    Cost: an eigenproblem of the size of all base clusters, rows x bases x n_clusters, and k-means.
    """
    w = counts.astype(float)

    def free() -> np.ndarray:
        h = bipartite_embedding(codes, offsets, w, np.ones(int(offsets[-1])), n_clusters)
        return cut_embedding(h, w, n_clusters, n_init=n_init, rng=rng)[0]

    cut = cut_by(balance, free, "kahypar", lambda: kahypar(codes, offsets, counts, n_clusters, rng))
    return HGPAResult(fill_empty_clusters(cut.labels, w, n_clusters), cut)


class HGPA(LabelsMixin, BaseEstimator):
    """Hypergraph partitioning: every base cluster is an edge, and few edges are to be torn.

    Use it to compare with papers that do. With ``balance="equal"`` it is the published method, which is only
    fit for clusters of equal sizes and weak where base clusterings are noisy: a base cluster that is torn
    costs nearly the same wherever it is torn. The free form is the normalised cut of the same hypergraph,
    which is that of :class:`HBGF`; use :class:`HBGF` by itself.

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
    Where this differs from the paper: equal sizes have to be asked for; the partitioner is Mt-KaHyPar instead
    of hMETIS, with parts at most 3 % larger than the mean, on one thread and in its deterministic setting. It
    runs on distinct label rows with counts: exact up to the starts of k-means for the free form, while the
    partitioner never separates equal rows. Missing labels are left out of the edges.

    References
    ----------
    A. Strehl, J. Ghosh: Cluster Ensembles - A Knowledge Reuse Framework for Combining Multiple Partitions.
    JMLR, 2002. The free form: D. Zhou, J. Huang, B. Schoelkopf: Learning with Hypergraphs. NeurIPS, 2006.

    Examples
    --------
    >>> from consilience import HGPA
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = HGPA(n_clusters=2, random_state=0).fit(labels)
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
    def fit(self, X: Any, y: Any = None) -> HGPA:
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
            result = hgpa(
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
        self.partitioner_, self.note_ = result.cut.partitioner, result.cut.note
        return self
