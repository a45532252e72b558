"""Probability trajectory based graph partitioning (PTGP): cut the graph of label rows and base clusters."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.consensus.pta import PTA, trajectories
from consilience.core.canonical import Rows
from consilience.core.cuts import cut_embedding
from consilience.core.eigen import leading_eigenpairs
from consilience.core.parameters import Count, parameters
from consilience.core.tables import scatter
from consilience.registry import About


class PTGPResult(NamedTuple):
    """What `ptgp` found, on distinct rows."""

    labels: np.ndarray  # per row
    embedding: np.ndarray  # per row, of length one
    similarity: np.ndarray  # of trajectories, (rows, rows)


def ptgp(
    rows: Rows,
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

    Symbols: R -> similarity; r in c -> rows.codes (-1 = missing); D_x, D_y = row and column sums of B.
    Cost: rows^3 and base clusters^3 time, rows^2 memory.
    """
    similarity = trajectories(rows, n_neighbors=n_neighbors, n_steps=n_steps)
    ones = np.ones(len(similarity))
    sizes = scatter(rows.codes, rows.offsets, ones, ones[:, None])
    b = (scatter(rows.codes, rows.offsets, ones, similarity) / sizes).T
    # Rows and clusters that no walk links to anything have no edge.
    x, y = np.maximum(b.sum(axis=1), 1e-12), np.maximum(b.sum(axis=0), 1e-12)
    scaled = b / np.sqrt(x)[:, None] / np.sqrt(y)
    _, vectors = leading_eigenpairs(scaled.T @ scaled, min(n_clusters, len(y)))
    labels, unit = cut_embedding(scaled @ vectors, ones, n_clusters, n_init=n_init, rng=rng)
    return PTGPResult(labels, unit, similarity)


@parameters
class PTGP(LabelMethod):
    """Probability trajectory based graph partitioning: a cut through rows and the clusters near to them.

    Walkers step between distinct label rows that agree most, and two rows are alike if walks that start there
    visit the same places. Rows are linked to all base clusters by how alike they are to the rows in it, and
    this graph is cut. Use it as an alternative to :class:`PTA`, from the same similarity, where clusters of
    more even sizes are expected. Prefer :class:`LWGP` above some thousand distinct label rows, or where most
    labels are missing.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        To how many rows a walker may go from each. "auto" is half the square root of the number of distinct
        rows, at most 20.
    n_steps : int or "auto", default="auto"
        Length of the walks that are compared; "auto" as above.
    n_init : int, default=10
        Starts of k-means; the best is kept.

    Attributes
    ----------
    row_similarity_ : ndarray of shape (n_distinct, n_distinct)
        Similarity of the walks from two distinct label rows.
    embedding_ : ndarray of shape (n_instances, width)
        Instances on the unit sphere, before k-means; zero for an unobserved instance.

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
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = PTGP(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="as PTA, more even sizes",
        avoid="most labels missing, one dominant cluster",
        cost="rows^3",
        paper="Huang, Lai, Wang: Robust Ensemble Clustering Using Probability Trajectories. IEEE TKDE, 2016.",
    )

    max_rows = PTA.max_rows
    max_base_clusters = MAX_BASE_CLUSTERS

    n_neighbors: Count | Literal["auto"] = "auto"
    n_steps: Count | Literal["auto"] = "auto"
    n_init: Count = 10

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> PTGPResult:
        return ptgp(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: PTGPResult, problem: Problem) -> None:
        self.row_similarity_ = result.similarity
        self.embedding_ = problem.per_instance(result.embedding)
