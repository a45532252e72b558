"""k-means on the consensus matrix (KC): instances are alike if they share clusters with the same others."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size
from consilience.consensus.lwgp import check_base_clusters
from consilience.core.cuts import weighted_k_means
from consilience.core.discretize import fill_empty_clusters
from consilience.core.tables import contingency, gather


class KCResult(NamedTuple):
    """What `kc` found."""

    labels: np.ndarray  # per row
    inertia: float


def kc(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    n_init: int,
    rng: np.random.RandomState,
) -> KCResult:
    r"""k-means of the rows of the consensus matrix.

    .. math:: \min_{z} \sum_p w_p \| M_p - \mu_{z_p} \|^2, \qquad
        M_{pr} = \frac{1}{m_p} \sum_i [c_i(p) = c_i(r)]

    :math:`m_p` is the number of labels of row p. Row r stands for ``counts[r]`` equal columns of M.

    Symbols: c_i(p) -> codes[p, i] (-1 = missing); w -> counts.
    Cost: an eigenproblem of the size of all base clusters, and k-means of the rows in as many dimensions.
    """
    w = counts.astype(float)
    points = consensus_points(codes, w, offsets)
    labels, fit = weighted_k_means(
        points, np.linalg.norm(points, axis=1), w, n_clusters, n_init=n_init, rng=rng
    )
    return KCResult(fill_empty_clusters(labels, fit, n_clusters), -float(w @ fit))


def consensus_points(codes: np.ndarray, w: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Points with the distances of the rows of M, one dimension per base cluster instead of per instance.

    M = D^-1 B B^T, so distances are those of D^-1 B under the metric B^T W B, of which a root is taken.
    """
    values, vectors = np.linalg.eigh(contingency(codes, offsets, w))
    kept = values > 1e-12 * values[-1]  # every base but one takes a dimension away
    root = vectors[:, kept] * np.sqrt(values[kept])
    return gather(codes, offsets, root) / (codes >= 0).sum(axis=1)[:, None]


class KC(LabelsMixin, BaseEstimator):
    """k-means on the consensus matrix: instances are alike if they share clusters with the same others.

    Every instance is described by how often it shares a cluster with each of the others, and these
    descriptions are clustered by k-means. Use it as a plain and fast baseline on complete tables of any size.
    Prefer :class:`HBGF` where half of the labels or more are missing, which hurts KC more than most.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    n_init : int, default=10
        Starts of k-means; the best is kept.
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
    inertia_ : float
        Squared distances of the rows of the consensus matrix to their centres, summed.
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
    It runs on distinct label rows with counts, which is exact, and never builds the matrix: its rows are
    linear in the labels, so as many dimensions as there are base clusters hold the same distances. With
    missing labels a row of the matrix is an average over the base clusterings that saw its instance. Dividing
    every entry by how many base clusterings saw both instances needs all pairs, and was not better.

    References
    ----------
    S. Monti, P. Tamayo, J. Mesirov, T. Golub: Consensus Clustering. Machine Learning, 2003 (the matrix).

    Examples
    --------
    >>> from consilience import KC
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = KC(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": N_CLUSTERS,
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "unobserved": [StrOptions({"error", "noise", "largest"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        n_init: int = 10,
        unobserved: str = "error",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.unobserved = unobserved
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> KC:
        """Merge the base clusterings.

        Parameters
        ----------
        X : array, nested list, frame, dict or list of series, or Partitions
            The table of base labels; see :meth:`consilience.Partitions.of`.
        y : ignored
            There for scikit-learn's interface.
        """
        partitions = self._read_labels(X, self.unobserved)
        check_base_clusters(partitions, "KC")
        rng = random_source(self.random_state)
        known = partitions.take_seen()
        rows = known.distinct
        k = self._feasible_clusters(known, rng)
        with threadpool_limits(limits=1):  # the same answer whatever the threads
            result = kc(rows.codes, rows.counts, known.offsets, k, n_init=self.n_init, rng=rng)
        labels = np.argsort(by_size(result.labels, rows.counts, k))[result.labels]
        self._answer(partitions, known, labels, k)
        self.inertia_ = result.inertia
        return self
