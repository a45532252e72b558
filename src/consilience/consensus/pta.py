"""Probability trajectory accumulation (PTA): average linkage of where random walkers go."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size, check_rows
from consilience.core.certainty import certain_coassociation
from consilience.core.linkage import average_linkage, cut
from consilience.core.trajectory import trajectory_similarity

# An eigendecomposition and some dense matrices of rows x rows: minutes at the limit.
MAX_ROWS = 5_000
# The neighbours that the paper's program keeps at most, and also its number of steps.
_MOST_NEIGHBORS = 20


class PTAResult(NamedTuple):
    """What `pta` found, on distinct rows."""

    labels: np.ndarray  # per row
    merges: np.ndarray  # two clusters, their mean similarity, rows of both; most similar first
    similarity: np.ndarray  # of trajectories, (rows, rows)


def pta(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    n_neighbors: int | Literal["auto"],
    n_steps: int | Literal["auto"],
) -> PTAResult:
    r"""Average linkage of distinct label rows by the similarity of random walks that start in them.

    See `trajectories` for the similarity. The linkage counts distinct rows, not instances, as in the paper.

    Symbols: see `trajectories`.
    Cost: rows^3 time, rows^2 memory.
    """
    similarity = trajectories(codes, counts, offsets, n_neighbors=n_neighbors, n_steps=n_steps)
    merges = average_linkage(similarity.copy(), np.ones(len(codes)))
    return PTAResult(cut(merges, n_clusters), merges, similarity)


def trajectories(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    *,
    n_neighbors: int | Literal["auto"],
    n_steps: int | Literal["auto"],
) -> np.ndarray:
    r"""Similarity of random walks on the sparse co-association of distinct label rows.

    .. math:: R_{ij} / \sqrt{R_{ii} R_{jj}}, \qquad R = \sum_{t=1}^{T} P^t (P^t)^T, \quad
        P_{ij} \propto w_j G_{ij}

    G is the co-association of distinct rows without its diagonal, of which every row keeps the entries that
    reach its K-th largest; a pair that one of the two rows keeps is kept. A walker goes to a row the more
    likely the more instances it stands for. With missing labels, the co-association is a share of the bases
    that saw both, and one more which agrees like the average.

    Symbols: w -> counts; K -> n_neighbors; T -> n_steps; both are min(20, sqrt(rows) / 2) where "auto".
    Cost: rows^3 time, rows^2 memory.
    """
    n_rows = len(codes)
    auto = max(1, min(_MOST_NEIGHBORS, int(np.sqrt(n_rows) / 2.0)))
    k = min(auto if n_neighbors == "auto" else n_neighbors, n_rows - 1)
    if not k:
        return np.ones((1, 1))
    graph = certain_coassociation(codes, counts, offsets, np.ones(int(offsets[-1])), diagonal=0.0)
    least = np.partition(graph, n_rows - k, axis=1)[:, n_rows - k]
    graph = np.where(graph >= least[:, None], graph, 0.0)
    graph = np.maximum(graph, graph.T)
    return trajectory_similarity(graph, counts.astype(float), auto if n_steps == "auto" else n_steps)


class PTA(LabelsMixin, BaseEstimator):
    """Probability trajectory accumulation: a hierarchy of label rows by where random walks from them lead.

    Walkers step between distinct label rows that agree most, and two rows are alike if walks that start there
    visit the same places, which reaches further than agreement itself. Average linkage merges what is most
    alike. Use it for base clusterings with many and different numbers of clusters. It is deterministic and
    gives the whole hierarchy. It links distinct rows as if each were one instance; prefer :class:`LWEA`
    where most labels are missing or where a few label rows hold most instances, and :class:`LWGP` above some
    thousand distinct label rows.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters of the consensus. The base clusterings may have other numbers, each its own.
        "auto" finds it, and warns where it cannot be relied on; see
        :func:`consilience.diagnostics.choose_n_clusters`.
    n_neighbors : int or "auto", default="auto"
        To how many rows a walker may go from each. "auto" is half the square root of the number of distinct
        rows, at most 20.
    n_steps : int or "auto", default="auto"
        Length of the walks that are compared; "auto" as above.
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
    similarity_ : ndarray of shape (n_distinct, n_distinct)
        Similarity of the walks from two distinct label rows, in the order of ``partitions_.distinct``.
    merges_ : ndarray of shape (n_distinct - 1, 4)
        The hierarchy of distinct label rows: two clusters, their mean similarity and the number of distinct
        rows of both, most similar first; numbered like SciPy's linkage.
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
    As in the paper, the number of instances of a label row draws walkers to it but does not enter the
    linkage. Where this differs: missing labels are allowed, with the co-association of :class:`LWEA` without
    its certainties; ties in the linkage are broken by value instead of by row number. The similarity comes
    from one eigendecomposition instead of a product for every step; the result is the same.

    A walker never stays where it is, so two rows that are linked to each other alone are not alike: the
    method needs some dozen distinct label rows, and may fail on fewer.

    Tables with more than 5000 distinct label rows are refused.

    References
    ----------
    D. Huang, J.-H. Lai, C.-D. Wang: Robust Ensemble Clustering Using Probability Trajectories. IEEE
    Transactions on Knowledge and Data Engineering, 2016.

    Examples
    --------
    >>> from consilience import PTA
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", None],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", "z", "w"],
    ...     ["b", "t", "v"],
    ... ]
    >>> model = PTA(n_clusters=2, n_neighbors=2).fit(labels)
    >>> (model.labels_ == model.labels_[0]).tolist()
    [True, True, True, False, False, False]
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": N_CLUSTERS,
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_steps": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "unobserved": [StrOptions({"error", "noise", "largest"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        n_steps: int | Literal["auto"] = "auto",
        unobserved: str = "error",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.n_steps = n_steps
        self.unobserved = unobserved
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> PTA:
        """Merge the base clusterings.

        Parameters
        ----------
        X : array, nested list, frame, dict or list of series, or Partitions
            The table of base labels; see :meth:`consilience.Partitions.of`.
        y : ignored
            There for scikit-learn's interface.
        """
        partitions = self._read_labels(X, self.unobserved)
        known = partitions.take_seen()
        rows = known.distinct
        check_rows(len(rows.counts), MAX_ROWS, "PTA")
        k = self._feasible_clusters(known, self.random_state)
        with threadpool_limits(limits=1, user_api="blas"):  # the same answer whatever the threads
            result = pta(
                rows.codes,
                rows.counts,
                known.offsets,
                k,
                n_neighbors=self.n_neighbors,
                n_steps=self.n_steps,
            )
        labels = np.argsort(by_size(result.labels, rows.counts, k))[result.labels]
        self._answer(partitions, known, labels, k)
        self.similarity_ = result.similarity
        self.merges_ = result.merges
        return self
