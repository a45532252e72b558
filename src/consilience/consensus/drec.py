"""Dense representation ensemble clustering (DREC): every label row as a mixture of the others."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size, check_rows
from consilience.core.cuts import cut_embedding, graph_embedding
from consilience.core.lowrank import angular_affinity
from consilience.core.tables import indicator

# Three decompositions of rows x rows: minutes at the limit.
_MAX_ROWS = 5_000
# The authors' program makes exactly so many sweeps.
_SWEEPS = 5
# A row that is represented without error would get an infinite weight.
_LEAST_ERROR = 1e-12


class DRECResult(NamedTuple):
    """What `drec` found, on distinct rows."""

    labels: np.ndarray  # per row
    representation: np.ndarray  # Z, (rows, rows)


def drec(
    codes: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    regularization: float,
    n_init: int,
    rng: np.random.RandomState,
) -> DRECResult:
    r"""Dense self-representation of the distinct label rows, then a normalised cut.

    .. math:: \min_Z \; \|X - X Z\|_{2,1} + \lambda \|Z\|_F^2

    Columns of X are the stacked one-hot labels of the distinct rows. The cut is that of the sharpened cosines
    between rows in the column space of Z.

    Symbols: X^T -> codes (-1 = missing); Z -> representation; lambda -> regularization.
    Cost: three decompositions of a dense matrix of rows x rows.
    """
    n_rows, m = codes.shape
    observed = (codes >= 0).sum(axis=1)
    # A row with few labels would be short, and so seem well represented whatever Z.
    scale = np.sqrt(m / observed)
    x = indicator(codes, offsets)
    gram = (x @ x.T).toarray() * scale * scale[:, None]
    z = _represent(gram, regularization)
    ones = np.ones(n_rows)
    h = graph_embedding(angular_affinity(z), ones, n_clusters)
    labels, _ = cut_embedding(h, ones, n_clusters, n_init=n_init, rng=rng)
    return DRECResult(labels, z)


def _represent(gram: np.ndarray, regularization: float) -> np.ndarray:
    """Reweighted least squares: (G + t_j I) z_j = g_j, t_j = 2 lambda |x_j - X z_j|, from t_j = lambda.

    One eigendecomposition of G serves all columns and sweeps. The errors follow from G as well.
    """
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)[:, None]
    target = vectors.T * values  # Q^T G
    ridge = np.full(len(gram), regularization)
    for sweep in range(_SWEEPS):
        if sweep:
            # x_j - X z_j in the basis of eigenvectors: each part shrinks by t_j / (l + t_j).
            left = np.sqrt(values) * vectors.T * (ridge / (values + ridge))
            error = np.sqrt(np.einsum("ij,ij->j", left, left))
            ridge = 2.0 * regularization * np.maximum(error, _LEAST_ERROR)
        solution = target / (values + ridge)
    return vectors @ solution


class DREC(LabelsMixin, BaseEstimator):
    """Dense representation ensemble clustering: label rows that the same others explain belong together.

    Every distinct label row is written as a mixture of all others, with an error that a few odd rows may have
    (the norm is not squared) and a penalty on large coefficients; the similarity of the coefficients is then
    cut. Use it for up to some thousand distinct label rows from base clusterings with various numbers of
    clusters. It counts distinct rows, not instances, so prefer another method where a few label rows hold
    most instances, and :class:`LWGP` or :class:`DAL` for large tables.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    regularization : float, default=10.0
        Price of large coefficients, lambda of the paper.
    n_init : int, default=100
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
    representation_ : ndarray of shape (n_distinct, n_distinct)
        Column j: the coefficients of distinct label row j, in the order of ``partitions_.distinct``.
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
    As in the paper, the representation is of distinct label rows, and how many instances share a row does not
    enter. Where this differs: labels may be missing, and a row with few of them is scaled up to the length of
    a complete one; the default of `regularization`, which the paper
    tunes with true classes over 1e-3 to 1e3, is the value with the best mean over seven pools (the page of
    the method has the table).

    Tables with more than 5000 distinct label rows are refused.

    References
    ----------
    J. Zhou, H. Zheng, L. Pan: Ensemble clustering based on dense representation. Neurocomputing, 2019.

    Examples
    --------
    >>> from consilience import DREC
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = DREC(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": N_CLUSTERS,
        "regularization": [Interval(Real, 0, None, closed="neither")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "unobserved": [StrOptions({"error", "noise", "largest"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        regularization: float = 10.0,
        n_init: int = 100,
        unobserved: str = "error",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.regularization = regularization
        self.n_init = n_init
        self.unobserved = unobserved
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> DREC:
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
        check_rows(len(rows.counts), _MAX_ROWS, "DREC")
        k = self._feasible_clusters(known, rng)
        with threadpool_limits(limits=1):  # the same answer whatever the threads
            result = drec(
                rows.codes,
                known.offsets,
                k,
                regularization=self.regularization,
                n_init=self.n_init,
                rng=rng,
            )
        labels = np.argsort(by_size(result.labels, rows.counts, k))[result.labels]
        self._answer(partitions, known, labels, k)
        self.representation_ = result.representation
        return self
