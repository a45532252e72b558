"""Locally weighted graph partitioning (LWGP): cut the graph of instances and certain base clusters."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from consilience.consensus._bipartite import BipartiteMethod
from consilience.consensus.base import MAX_BASE_CLUSTERS, Problem
from consilience.core.canonical import Rows
from consilience.core.certainty import certainty
from consilience.core.cuts import bipartite_embedding, cut_embedding
from consilience.core.parameters import Count, Positive, parameters
from consilience.registry import About


class LWGPResult(NamedTuple):
    """What `lwgp` found."""

    labels: np.ndarray  # per row
    embedding: np.ndarray  # per row, of length one
    certainty: np.ndarray  # q, per cluster of all bases
    places: np.ndarray  # per cluster of all bases


def lwgp(
    rows: Rows,
    n_clusters: int,
    *,
    theta: float,
    discretize: str,
    n_init: int,
    rng: np.random.RandomState,
) -> LWGPResult:
    r"""Normalised cut of the bipartite graph of instances and base clusters.

    .. math:: D_x^{-1/2} B D_y^{-1/2}, \qquad B_{pc} = q_c \, [p \in c], \quad q_c = \exp(-h_c / \theta)

    Its leading left singular vectors, each times its singular value, are the embedding; rows are scaled by
    :math:`D_x^{-1/2}` and then to length one, and clustered. :math:`D_x` and :math:`D_y` are the row and
    column sums of B, so a row with few labels is not punished for those that it lacks. Row p stands for
    ``counts[p]`` instances: it enters the matrix with the factor ``sqrt(counts[p])``.

    Symbols: [p in c] -> rows.codes (-1 = missing); q -> certainty; D_x -> degree; D_y = q_c x size of c.
    Cost: an eigenproblem of the size of all clusters of all bases, rows x bases x n_clusters, and k-means.
    """
    w = rows.weights
    q = certainty(rows, theta)
    h, places = bipartite_embedding(rows, n_clusters, q)
    labels, unit = cut_embedding(h, w, n_clusters, discretize=discretize, n_init=n_init, rng=rng)
    return LWGPResult(labels, unit, q, places)


@parameters
class LWGP(BipartiteMethod):
    """Locally weighted graph partitioning: a cut through the graph of instances and base clusters.

    Instances are linked to the base clusters they are in, the more strongly the more the other base
    clusterings keep that cluster together, and the graph is cut into `n_clusters` parts. Use it for base
    clusterings with any numbers of clusters, complete or with many labels missing, at any number of
    instances: the eigenproblem has the size of all base clusters together. Prefer :class:`LWEA` for a
    hierarchy, for an answer without random starts, or when nearly all labels are missing: the graph then
    falls into pieces.

    Parameters
    ----------
    theta : float, default=0.4
        How fast a base cluster loses weight as others split it: one bit of entropy on average divides its
        weight by ``exp(1 / theta)``. Large values weigh all clusters alike.
    discretize : {"kmeans", "rotation"}, default="kmeans"
        From the eigenvectors to clusters: k-means, as in the paper, or the rotation that brings them nearest
        to labels.
    n_init : int, default=10
        Starts of either; the best is kept.

    Attributes
    ----------
    certainty_ : list of ndarray, one per base clustering with labels
        Certainty of its clusters, in the order of ``partitions_.categories``; 1 where no other base splits
        the cluster.
    embedding_ : ndarray of shape (n_instances, width)
        Instances on the unit sphere, before k-means; zero for an unobserved instance.

    Notes
    -----
    Where this differs from the paper: it runs on distinct label rows with counts, which is exact up to the
    starts of k-means; missing labels are allowed, an instance is linked to the clusters it is known to be in;
    ten starts instead of three.

    References
    ----------
    D. Huang, C.-D. Wang, J.-H. Lai: Locally Weighted Ensemble Clustering. IEEE Transactions on Cybernetics,
    2018.

    Examples
    --------
    >>> from consilience import LWGP
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = LWGP(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="any numbers of clusters, any number of instances",
        avoid="hardly two labels an instance",
        cost="eigenproblem of all base clusters",
        paper="Huang, Wang, Lai: Locally Weighted Ensemble Clustering. IEEE Trans. Cybernetics, 2018.",
        linear=True,
    )
    any_weights = True

    max_base_clusters = MAX_BASE_CLUSTERS

    theta: Positive = 0.4
    discretize: Literal["kmeans", "rotation"] = "kmeans"
    n_init: Count = 10

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> LWGPResult:
        return lwgp(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: LWGPResult, problem: Problem) -> None:
        self.certainty_ = problem.per_cluster(result.certainty)
        super()._learn(result, problem)
