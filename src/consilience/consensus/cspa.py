"""Cluster-based similarity partitioning (CSPA): cut the graph of how often instances share a cluster."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size, check_rows
from consilience.consensus._partitioners import BALANCE, Cut, cut_by, metis
from consilience.core.coassociation import agreement
from consilience.core.cuts import cut_embedding
from consilience.core.discretize import fill_empty_clusters
from consilience.core.spectral import left_singular_vectors
from consilience.core.tables import gather, indicator, scatter

# METIS gets the votes of all pairs: some gigabytes at the limit.
_MAX_ROWS = 10_000


class CSPAResult(NamedTuple):
    """What `cspa` found."""

    labels: np.ndarray  # per row
    cut: Cut


def cspa(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    balance: str,
    n_init: int,
    rng: np.random.RandomState,
) -> CSPAResult:
    r"""Normalised cut, or balanced cut, of the graph of votes.

    .. math:: S_{pr} = \sum_i [c_i(p) = c_i(r)]

    A normalised cut divides S by the votes that either row has in all, so a row with few labels is not
    punished for those that it lacks. Row p stands for ``counts[p]`` instances. S = B B^T, B the stacked
    indicator, so its eigenvectors come from the base clusters' side and S is never built; METIS needs it.

    Symbols: c_i(p) -> codes[p, i] (-1 = missing).
    Cost: an eigenproblem of the size of all base clusters, rows x bases x n_clusters, and k-means; for equal
    sizes the votes of all pairs of rows that share a cluster.
    """
    w = counts.astype(float)

    def free() -> np.ndarray:
        h = votes_embedding(codes, w, offsets, n_clusters)
        return cut_embedding(h, w, n_clusters, n_init=n_init, rng=rng)[0]

    def equal() -> np.ndarray:
        b = sp.diags_array(w) @ indicator(codes, offsets)
        return metis(agreement(b), w, n_clusters, rng)

    cut = cut_by(balance, free, "metis", equal)
    return CSPAResult(fill_empty_clusters(cut.labels, w, n_clusters), cut)


def votes_embedding(codes: np.ndarray, w: np.ndarray, offsets: np.ndarray, width: int) -> np.ndarray:
    """Rows in the leading eigenvectors of the normalised votes."""
    sizes = scatter(codes, offsets, w, np.ones((len(w), 1)))
    degree = gather(codes, offsets, sizes)[:, 0]
    return left_singular_vectors(codes, offsets, w / degree, min(width, len(w)))


class CSPA(LabelsMixin, BaseEstimator):
    """Cluster-based similarity partitioning: a cut through the graph of votes for pairs of instances.

    Every base clustering votes for each pair of instances that it puts together, and the graph of the votes
    is cut into `n_clusters` parts. Use it as the baseline that it is in most papers, at any number of
    instances. Prefer :class:`HBGF` otherwise: at the same cost it divides votes by the size of the base
    cluster that gives them, so that large clusters do not outvote small ones.

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
    Where this differs from the paper: the default is a spectral cut; METIS, which forces nearly equal sizes,
    has to be asked for. It runs on distinct label rows with counts: exact up to the starts of k-means for the
    spectral cut, while METIS never separates equal rows. Missing labels are votes that are not given.
    Dividing the votes of a pair by how many base clusterings saw both needs all pairs, and was worse.

    Equal sizes are refused above 10000 distinct label rows: METIS needs the votes of all pairs.

    References
    ----------
    A. Strehl, J. Ghosh: Cluster Ensembles - A Knowledge Reuse Framework for Combining Multiple Partitions.
    JMLR, 2002.

    Examples
    --------
    >>> from consilience import CSPA
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = CSPA(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.partitioner_
    'spectral'
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
    def fit(self, X: Any, y: Any = None) -> CSPA:
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
        if self.balance == "equal":
            check_rows(len(rows.counts), _MAX_ROWS, "CSPA")
        k = self._feasible_clusters(known, rng)
        with threadpool_limits(limits=1):  # the same answer whatever the threads
            result = cspa(
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
