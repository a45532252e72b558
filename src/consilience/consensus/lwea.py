"""Locally weighted evidence accumulation (LWEA): average linkage of what certain base clusters say."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size
from consilience.consensus.lwgp import check_base_clusters
from consilience.core.certainty import certain_coassociation, certainty
from consilience.core.linkage import average_linkage, cut

# The similarity of all pairs of rows is kept dense: 1.8 GB.
_MAX_ROWS = 15_000


class LWEAResult(NamedTuple):
    """What `lwea` found."""

    labels: np.ndarray  # per row
    merges: np.ndarray  # two clusters, their mean similarity, weight of both; most similar first
    certainty: np.ndarray  # q, per cluster of all bases


def lwea(
    codes: np.ndarray, counts: np.ndarray, offsets: np.ndarray, n_clusters: int, *, theta: float
) -> LWEAResult:
    r"""Average linkage on the locally weighted co-association, cut at `n_clusters`.

    .. math:: S_{pr} = \frac{1}{m} \sum_i q_{c_i(p)} [c_i(p) = c_i(r)], \qquad q_c = \exp(-h_c / \theta)

    :math:`h_c` is the mean entropy, in bits, of the labels of the members of cluster c in the bases. Row p
    stands for ``counts[p]`` instances, which are merged from the start. With missing labels, entropies are
    over the members that a base saw, and S is the share among the bases that saw both rows; see
    `certain_coassociation` for pairs that few saw.

    Symbols: c_i(p) -> codes[p, i] (-1 = missing); q -> certainty (ECI of the paper); S is its LWCA.
    Cost: rows^2 x bases time, rows^2 memory, and the table of all pairs of base clusters.
    """
    q = certainty(codes, counts, offsets, theta)
    similarity = certain_coassociation(codes, counts, offsets, q)
    merges = average_linkage(similarity, counts)
    return LWEAResult(cut(merges, n_clusters), merges, q)


class LWEA(LabelsMixin, BaseEstimator):
    """Locally weighted evidence accumulation: a hierarchy of instances by how often they are put together.

    Two instances are alike if they share clusters, and a shared cluster counts more if the other base
    clusterings keep it together. Average linkage then merges what is most alike. Use it for base clusterings
    with different and larger numbers of clusters than you want, complete or with up to 70 % of the labels
    missing. It has no random start and gives the whole hierarchy. Prefer :class:`LWGP`, which weighs
    clusters in the same way at a cost linear in the rows, when there are more than some thousand distinct
    label rows.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    theta : float, default=0.4
        How fast a base cluster loses weight as others split it: one bit of entropy on average divides its
        weight by ``exp(1 / theta)``. Large values weigh all clusters alike (evidence accumulation).
    unobserved : {"error", "noise", "largest"}, default="error"
        An instance that no base clustering saw: refuse, give it the label -1, or that of the largest cluster.
    random_state : int, RandomState instance or None, default=None
        Seed of the search for the number of clusters, where it is "auto"; the rest is deterministic.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster.
    confidence_ : ndarray of shape (n_instances,)
        Estimated probability that the instance belongs to its cluster, from its labels; see
        :func:`consilience.diagnostics.confidence`. 0 for an unobserved instance.
    certainty_ : list of ndarray, one per base clustering with labels
        Certainty of its clusters, in the order of ``partitions_.categories``; 1 where no other base splits
        the cluster.
    merges_ : ndarray of shape (n_distinct - 1, 4)
        The hierarchy of distinct label rows: two clusters, their mean similarity and the number of instances
        of both, most similar first; numbered like SciPy's linkage.
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
    Where this differs from the paper: it runs on distinct label rows with counts, so equal rows are never
    separated (the paper's cut may separate instances with equal but uncertain labels); ties are broken by
    value instead of by row number; missing labels are allowed. A base clustering then takes part in the
    similarity of a pair only if it saw both, and one more base that agrees as much as the average takes part
    in all of them. With nothing missing, similarity and certainty are the paper's.

    Tables with more than 15000 distinct label rows are refused: their similarity would need more than
    1.8 GB.

    References
    ----------
    D. Huang, C.-D. Wang, J.-H. Lai: Locally Weighted Ensemble Clustering. IEEE Transactions on Cybernetics,
    2018.

    Examples
    --------
    >>> from consilience import LWEA
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = LWEA(n_clusters=2).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.certainty_[0].round(2).tolist()
    [0.47, 1.0]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": N_CLUSTERS,
        "theta": [Interval(Real, 0, None, closed="neither")],
        "unobserved": [StrOptions({"error", "noise", "largest"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        theta: float = 0.4,
        unobserved: str = "error",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.theta = theta
        self.unobserved = unobserved
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> LWEA:
        """Merge the base clusterings.

        Parameters
        ----------
        X : array, nested list, frame, dict or list of series, or Partitions
            The table of base labels; see :meth:`consilience.Partitions.of`.
        y : ignored
            There for scikit-learn's interface.
        """
        partitions = self._read_labels(X, self.unobserved)
        check_base_clusters(partitions, "LWEA")
        known = partitions.take_seen()
        rows = known.distinct
        _check_size(len(rows.counts))
        k = self._feasible_clusters(known, self.random_state)
        with threadpool_limits(limits=1, user_api="blas"):  # the same answer whatever the threads
            result = lwea(rows.codes, rows.counts, known.offsets, k, theta=self.theta)
        labels = np.argsort(by_size(result.labels, rows.counts, k))[result.labels]
        self._answer(partitions, known, labels, k)
        self.certainty_ = np.split(result.certainty, known.offsets[1:-1])
        self.merges_ = result.merges
        return self


def _check_size(n_rows: int) -> None:
    if n_rows > _MAX_ROWS:
        raise ValueError(
            f"the table has {n_rows} distinct label rows, LWEA takes at most {_MAX_ROWS}. Hint: use LWGP, "
            "whose cost is linear in them, or DAL, or fewer or coarser base clusterings."
        )
