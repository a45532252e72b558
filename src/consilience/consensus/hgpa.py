"""Hypergraph partitioning (HGPA): part the instances so that few base clusters are torn."""

from __future__ import annotations

import numpy as np

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.consensus.partitioners import Balance, Cut, kahypar
from consilience.core.canonical import Rows
from consilience.core.cuts import bipartite_embedding, cut_embedding
from consilience.core.discretize import fill_empty_clusters
from consilience.core.parameters import Count, parameters
from consilience.registry import About


def hgpa(
    rows: Rows,
    n_clusters: int,
    *,
    balance: str,
    n_init: int,
    rng: np.random.RandomState,
) -> Cut:
    r"""Cut of the hypergraph whose edges are the base clusters.

    .. math:: \min_z \sum_c (\lambda_c(z) - 1) \quad s.t. \text{ parts of nearly equal size}

    :math:`\lambda_c` is in how many parts base cluster c lies. Without the constraint the smallest cut
    separates single instances. The free form is therefore the normalised cut of the hypergraph: the leading
    eigenvectors of :math:`D_v^{-1/2} B D_e^{-1} B^T D_v^{-1/2}`, B the stacked indicator, :math:`D_v` and
    :math:`D_e` its row and column sums. Row p stands for ``counts[p]`` instances.

    Symbols: B -> rows.codes (-1 = missing).
    Cost: an eigenproblem of the size of all base clusters, rows x bases x n_clusters, and k-means.
    """
    w = rows.weights
    if balance == "equal":
        return Cut(fill_empty_clusters(kahypar(rows, n_clusters, rng), w, n_clusters), "kahypar")
    h = bipartite_embedding(rows, n_clusters).rows
    return Cut(cut_embedding(h, w, n_clusters, n_init=n_init, rng=rng)[0], "spectral")


@parameters
class HGPA(LabelMethod):
    """Hypergraph partitioning: every base cluster is an edge, and few edges are to be torn.

    Use it to compare with papers that do. With ``balance="equal"`` it is the published method, which is only
    fit for clusters of equal sizes and weak where base clusterings are noisy: a base cluster that is torn
    costs nearly the same wherever it is torn. The free form is the normalised cut of the same hypergraph,
    which is that of :class:`HBGF`; use :class:`HBGF` by itself.

    Parameters
    ----------
    balance : {"free", "equal"}, default="free"
        "free" lets clusters have the sizes that the labels suggest, by a spectral cut. "equal" wants clusters
        of nearly equal sizes, by a graph partitioner of the extra ``consilience[graphs]``.
    n_init : int, default=10
        Starts of k-means on the eigenvectors; the best is kept.

    Attributes
    ----------
    partitioner_ : str
        What made the cut: "spectral" or "kahypar".

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
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = HGPA(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="to compare with papers",
        avoid="clusters of unequal sizes, if forced equal",
        cost="as HBGF",
        paper="Strehl, Ghosh: Cluster Ensembles - A Knowledge Reuse Framework for Combining Multiple "
        "Partitions. JMLR, 2002.",
        linear=True,
    )
    max_base_clusters = MAX_BASE_CLUSTERS

    balance: Balance = "free"
    n_init: Count = 10

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> Cut:
        return hgpa(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: Cut, problem: Problem) -> None:
        self.partitioner_ = result.partitioner
