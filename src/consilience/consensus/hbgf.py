"""Hybrid bipartite graph formulation (HBGF): cut the graph of instances and base clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from consilience.consensus._bipartite import BipartiteMethod
from consilience.consensus.base import MAX_BASE_CLUSTERS, Problem
from consilience.consensus.partitioners import Balance, metis
from consilience.core.canonical import Rows
from consilience.core.cuts import bipartite_embedding, cut_embedding
from consilience.core.discretize import fill_empty_clusters
from consilience.core.parameters import Count, parameters
from consilience.core.tables import indicator
from consilience.registry import About


class HBGFResult(NamedTuple):
    """What `hbgf` found."""

    labels: np.ndarray  # per row
    embedding: np.ndarray  # per row, of length one
    places: np.ndarray  # per cluster of all bases
    partitioner: str


def hbgf(
    rows: Rows,
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

    Symbols: B -> rows.codes (-1 = missing).
    Cost: an eigenproblem of the size of all base clusters, rows x bases x n_clusters, and k-means.
    """
    w = rows.weights
    h, places = bipartite_embedding(rows, n_clusters)
    labels, unit = cut_embedding(h, w, n_clusters, n_init=n_init, rng=rng)
    if balance == "free":
        return HBGFResult(labels, unit, places, "spectral")
    b = sp.diags_array(w) @ indicator(rows.codes, rows.offsets)
    graph = sp.block_array([[None, b], [b.T, None]], format="csr")
    labels = metis(graph, np.concatenate([w, np.ones(b.shape[1])]), n_clusters, rng)[: len(w)]
    return HBGFResult(fill_empty_clusters(labels, w, n_clusters), unit, places, "metis")


@parameters
class HBGF(BipartiteMethod):
    """Hybrid bipartite graph formulation: a cut through the graph of instances and base clusters.

    Instances are linked to the base clusters they are in, and the graph is cut into `n_clusters` parts, so
    that few instances leave their clusters. Use it at any number of instances, for base clusterings with any
    numbers of clusters, and with many labels missing: the eigenproblem has the size of all base clusters
    together. :class:`LWGP` is the same with clusters that count by how certain they are. Prefer
    :class:`EAC` or :class:`LWEA` for a hierarchy or an answer without random starts.

    Parameters
    ----------
    balance : {"free", "equal"}, default="free"
        "free" lets clusters have the sizes that the labels suggest, by a spectral cut. "equal" wants clusters
        of nearly equal sizes, by a graph partitioner of the extra ``consilience[graphs]``.
    n_init : int, default=10
        Starts of k-means on the eigenvectors; the best is kept.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, width)
        Instances on the unit sphere, before k-means; zero for an unobserved instance.
    partitioner_ : str
        What made the cut: "spectral" or "metis".

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
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = HBGF(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="plain cut, any size, many gaps",
        avoid="",
        cost="eigenproblem of all base clusters",
        paper="Fern, Brodley: Solving Cluster Ensemble Problems by Bipartite Graph Partitioning. ICML, 2004.",
        linear=True,
    )
    any_weights = True
    max_base_clusters = MAX_BASE_CLUSTERS

    balance: Balance = "free"
    n_init: Count = 10

    @property
    def _reads_weights(self) -> bool:
        return self.balance == "free"  # METIS wants whole numbers

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> HBGFResult:
        return hbgf(problem.rows, problem.n_clusters, balance=self.balance, n_init=self.n_init, rng=rng)

    def _learn(self, result: HBGFResult, problem: Problem) -> None:
        super()._learn(result, problem)
        self.partitioner_ = result.partitioner
