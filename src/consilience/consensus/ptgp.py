"""Probability trajectory based graph partitioning (PTGP): cut the graph of label rows and base clusters."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from threadpoolctl import threadpool_limits

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.consensus._labels import N_CLUSTERS, LabelsMixin, by_size, check_rows
from consilience.consensus.lwgp import check_base_clusters
from consilience.consensus.pta import MAX_ROWS, trajectories
from consilience.core.cuts import cut_embedding
from consilience.core.eigen import leading_eigenpairs
from consilience.core.tables import scatter


class PTGPResult(NamedTuple):
    """What `ptgp` found, on distinct rows."""

    labels: np.ndarray  # per row
    embedding: np.ndarray  # per row, of length one
    similarity: np.ndarray  # of trajectories, (rows, rows)


def ptgp(
    codes: np.ndarray,
    counts: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    n_neighbors: int | Literal["auto"],
    n_steps: int | Literal["auto"],
    n_init: int,
    rng: np.random.RandomState,
) -> PTGPResult:
    r"""Normalised cut of the bipartite graph of distinct label rows and base clusters.

    .. math:: B_{pc} = \operatorname{mean}_{r \in c} R_{pr}

    R is the similarity of walks, see `trajectories`; a cluster is as near to a row as its distinct rows are
    on average. Leading left singular vectors of :math:`D_x^{-1/2} B D_y^{-1/2}`, each times its singular
    value, with rows scaled to length one, are clustered by k-means.

    Symbols: R -> similarity; r in c -> codes (-1 = missing); D_x, D_y = row and column sums of B.
    Cost: rows^3 and base clusters^3 time, rows^2 memory.
    """
    similarity = trajectories(codes, counts, offsets, n_neighbors=n_neighbors, n_steps=n_steps)
    ones = np.ones(len(codes))
    sizes = scatter(codes, offsets, ones, ones[:, None])
    b = (scatter(codes, offsets, ones, similarity) / sizes).T
    # Rows and clusters that no walk links to anything have no edge.
    x, y = np.maximum(b.sum(axis=1), 1e-12), np.maximum(b.sum(axis=0), 1e-12)
    scaled = b / np.sqrt(x)[:, None] / np.sqrt(y)
    _, vectors = leading_eigenpairs(scaled.T @ scaled, min(n_clusters, len(y)))
    labels, unit = cut_embedding(scaled @ vectors, ones, n_clusters, n_init=n_init, rng=rng)
    return PTGPResult(labels, unit, similarity)


class PTGP(LabelsMixin, BaseEstimator):
    """Probability trajectory based graph partitioning: a cut through rows and the clusters near to them.

    Walkers step between distinct label rows that agree most, and two rows are alike if walks that start there
    visit the same places. Rows are linked to all base clusters by how alike they are to the rows in it, and
    this graph is cut. Use it as an alternative to :class:`PTA`, from the same similarity, where clusters of
    more even sizes are expected. Prefer :class:`LWGP` above some thousand distinct label rows, or where most
    labels are missing.

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
    similarity_ : ndarray of shape (n_distinct, n_distinct)
        Similarity of the walks from two distinct label rows, in the order of ``partitions_.distinct``.
    embedding_ : ndarray of shape (n_instances, width)
        Instances on the unit sphere, before k-means; zero for an unobserved instance.
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
    As in the paper, the number of instances of a label row draws walkers to it but does not enter the cut.
    Where this differs: missing labels are allowed, with the co-association of :class:`LWEA` without its
    certainties; a row is then near a cluster by the rows known to be in it. The similarity comes from one
    eigendecomposition instead of a product for every step; the result is the same.

    Tables with more than 5000 distinct label rows are refused.

    References
    ----------
    D. Huang, J.-H. Lai, C.-D. Wang: Robust Ensemble Clustering Using Probability Trajectories. IEEE
    Transactions on Knowledge and Data Engineering, 2016.

    Examples
    --------
    >>> from consilience import PTGP
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = PTGP(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": N_CLUSTERS,
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_steps": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "unobserved": [StrOptions({"error", "noise", "largest"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        n_neighbors: int | Literal["auto"] = "auto",
        n_steps: int | Literal["auto"] = "auto",
        n_init: int = 10,
        unobserved: str = "error",
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.n_steps = n_steps
        self.n_init = n_init
        self.unobserved = unobserved
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> PTGP:
        """Merge the base clusterings.

        Parameters
        ----------
        X : array, nested list, frame, dict or list of series, or Partitions
            The table of base labels; see :meth:`consilience.Partitions.of`.
        y : ignored
            There for scikit-learn's interface.
        """
        partitions = self._read_labels(X, self.unobserved)
        check_base_clusters(partitions, "PTGP")
        rng = random_source(self.random_state)
        known = partitions.take_seen()
        rows = known.distinct
        check_rows(len(rows.counts), MAX_ROWS, "PTGP")
        k = self._feasible_clusters(known, rng)
        with threadpool_limits(limits=1):  # the same answer whatever the threads
            result = ptgp(
                rows.codes,
                rows.counts,
                known.offsets,
                k,
                n_neighbors=self.n_neighbors,
                n_steps=self.n_steps,
                n_init=self.n_init,
                rng=rng,
            )
        labels = np.argsort(by_size(result.labels, rows.counts, k))[result.labels]
        self._answer(partitions, known, labels, k)
        self.similarity_ = result.similarity
        self.embedding_ = self._spread(result.embedding[rows.inverse], 0.0)
        return self
