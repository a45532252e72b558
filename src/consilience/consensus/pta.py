"""Probability trajectory accumulation (PTA): average linkage of where random walkers go."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from consilience.consensus.base import LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.certainty import certain_coassociation
from consilience.core.linkage import average_linkage, cut
from consilience.core.parameters import Count, parameters
from consilience.core.trajectory import trajectory_similarity
from consilience.registry import About

# The neighbours that the paper's program keeps at most, and also its number of steps.
_MOST_NEIGHBORS = 20


class PTAResult(NamedTuple):
    """What `pta` found, on distinct rows."""

    labels: np.ndarray  # per row
    merges: np.ndarray  # two clusters, their mean similarity, rows of both; most similar first
    similarity: np.ndarray  # of trajectories, (rows, rows)


def pta(
    rows: Rows,
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
    similarity = trajectories(rows, n_neighbors=n_neighbors, n_steps=n_steps)
    merges = average_linkage(similarity.copy(), np.ones(len(similarity)))
    return PTAResult(cut(merges, n_clusters), merges, similarity)


def trajectories(
    rows: Rows, *, n_neighbors: int | Literal["auto"], n_steps: int | Literal["auto"]
) -> np.ndarray:
    r"""Similarity of random walks on the sparse co-association of distinct label rows.

    .. math:: R_{ij} / \sqrt{R_{ii} R_{jj}}, \qquad R = \sum_{t=1}^{T} P^t (P^t)^T, \quad
        P_{ij} \propto w_j G_{ij}

    G is the co-association of distinct rows without its diagonal, of which every row keeps the entries that
    reach its K-th largest; a pair that one of the two rows keeps is kept. A walker goes to a row the more
    likely the more instances it stands for. With missing labels, the co-association is a share of the bases
    that saw both, and one more which agrees like the average.

    Symbols: w -> rows.counts; K -> n_neighbors; T -> n_steps; both are min(20, sqrt(rows) / 2) where "auto".
    Cost: rows^3 time, rows^2 memory.
    """
    n_rows = len(rows.codes)
    auto = max(1, min(_MOST_NEIGHBORS, int(np.sqrt(n_rows) / 2.0)))
    k = min(auto if n_neighbors == "auto" else n_neighbors, n_rows - 1)
    if not k:
        return np.ones((1, 1))
    graph = certain_coassociation(rows, diagonal=0.0)
    least = np.partition(graph, n_rows - k, axis=1)[:, n_rows - k]
    graph = np.where(graph >= least[:, None], graph, 0.0)
    graph = np.maximum(graph, graph.T)
    return trajectory_similarity(graph, rows.weights, auto if n_steps == "auto" else n_steps)


@parameters
class PTA(LabelMethod):
    """Probability trajectory accumulation: a hierarchy of label rows by where random walks from them lead.

    Walkers step between distinct label rows that agree most, and two rows are alike if walks that start there
    visit the same places, which reaches further than agreement itself. Average linkage merges what is most
    alike. Use it for base clusterings with many and different numbers of clusters. It is deterministic and
    gives the whole hierarchy. It links distinct rows as if each were one instance; prefer :class:`LWEA`
    where most labels are missing or where a few label rows hold most instances, and :class:`LWGP` above some
    thousand distinct label rows.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        To how many rows a walker may go from each. "auto" is half the square root of the number of distinct
        rows, at most 20.
    n_steps : int or "auto", default="auto"
        Length of the walks that are compared; "auto" as above.
    random_state : int, RandomState instance or None, default=None
        Seed of the search for the number of clusters, where it is "auto"; the rest is deterministic.

    Attributes
    ----------
    row_similarity_ : ndarray of shape (n_distinct, n_distinct)
        Similarity of the walks from two distinct label rows.
    row_merges_ : ndarray of shape (n_distinct - 1, 4)
        The hierarchy of distinct label rows: two clusters, their mean similarity and the number of distinct
        rows of both, most similar first; numbered like SciPy's linkage.

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

    about = About(
        use="many and different numbers of clusters",
        avoid="most labels missing",
        cost="rows^3",
        paper="Huang, Lai, Wang: Robust Ensemble Clustering Using Probability Trajectories. IEEE TKDE, 2016.",
    )

    max_rows = 5_000  # an eigendecomposition and some dense matrices of rows x rows: minutes at the limit

    n_neighbors: Count | Literal["auto"] = "auto"
    n_steps: Count | Literal["auto"] = "auto"

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> PTAResult:
        return pta(problem.rows, problem.n_clusters, **self._settings)

    def _learn(self, result: PTAResult, problem: Problem) -> None:
        self.row_similarity_ = result.similarity
        self.row_merges_ = result.merges
