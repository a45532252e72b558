"""Similarity network fusion (SNF): each view's graph diffused along the others, until they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from consilience.core.parameters import Count, parameters
from consilience.evidence.views import Views
from consilience.multiview._affinity import (
    GraphMethod,
    average_over_views,
    cut_by_rotation,
    nearest_only,
    scaled_kernel,
    squared_distances,
)
from consilience.multiview.base import Normalize
from consilience.multiview.scaling import Matrix, normalized_views
from consilience.registry import About


class SNFResult(NamedTuple):
    """What `snf` learned."""

    labels: np.ndarray
    embedding: np.ndarray
    affinity: np.ndarray  # the fused P
    eigenvalues: np.ndarray
    changes: np.ndarray  # how much the graphs changed, per round


def snf(
    arrays: Sequence[Matrix],
    observed: np.ndarray,
    n_clusters: int,
    *,
    n_neighbors: int,
    n_rounds: int,
    n_init: int,
    rng: np.random.RandomState,
) -> SNFResult:
    r"""Fuse the graphs of the views by message passing, then cut the result.

    .. math:: P^{(v)} \leftarrow S^{(v)} \, \Bigl(\frac{1}{|V| - 1} \sum_{u \ne v} P^{(u)}\Bigr) \, S^{(v)T}

    P are full graphs with half of each row on the diagonal, S graphs of the nearest neighbours only. With
    instances absent, P and S of a view are those of its own instances, and the average over the other views
    is, pair by pair, over those that have both; a pair that no other view has keeps what its own view says.

    Symbols: P -> graphs; S -> local; t -> n_rounds; K -> n_neighbors.
    Cost: all pairs of a view's instances x neighbours for each view and round, one dense eigenproblem.
    """
    n_views = len(arrays)
    rows = [np.flatnonzero(observed[:, v]) for v in range(n_views)]
    kernels = [scaled_kernel(squared_distances(arrays[v][rows[v]]), n_neighbors) for v in range(n_views)]
    local = [sp.csr_array(nearest_only(kernel, n_neighbors)) for kernel in kernels]
    graphs = [_half_diagonal(kernel) for kernel in kernels]
    changes = []
    for _ in range(n_rounds):
        others = _average_of_others(graphs, rows, observed)
        new = [_half_diagonal(s @ (s @ p).T) for s, p in zip(local, others, strict=True)]
        changes.append(max(float(np.abs(a - b).max()) for a, b in zip(new, graphs, strict=True)))
        graphs = new
    similarity = _half_diagonal(average_over_views(graphs, observed, fill_with_mean=True))
    found = cut_by_rotation(similarity, n_clusters, n_init=n_init, rng=rng)
    return SNFResult(*found, np.array(changes))


def _half_diagonal(graph: np.ndarray) -> np.ndarray:
    """Half of each row on the diagonal, the other half shared out by the graph; then symmetric."""
    graph = graph - np.diag(np.diag(graph))
    sums = graph.sum(axis=1, keepdims=True)
    graph = 0.5 * graph / np.where(sums > 0, sums, 1.0)
    np.fill_diagonal(graph, 0.5)
    return 0.5 * (graph + graph.T)


def _average_of_others(
    graphs: list[np.ndarray], rows: list[np.ndarray], observed: np.ndarray
) -> list[np.ndarray]:
    """For each view, the mean of the other views' graphs over those that have both instances of a pair."""
    n = len(observed)
    total = np.zeros((n, n))
    for graph, own in zip(graphs, rows, strict=True):
        total[np.ix_(own, own)] += graph
    seen = observed.astype(float)
    together = seen @ seen.T
    averages = []
    for graph, own in zip(graphs, rows, strict=True):
        block = np.ix_(own, own)
        count = together[block] - 1.0
        averages.append(np.where(count > 0, (total[block] - graph) / np.maximum(count, 1.0), graph))
    return averages


@parameters
class SNF(GraphMethod):
    """Similarity network fusion, for complete views and for views with rows absent here and there.

    The graph of each view is diffused along the average graph of the others for some rounds; links that the
    views share survive, the others fade. Use it for up to some thousand instances. Prefer :class:`NEMO` when
    time matters, it has no rounds, and :class:`APMC` for more instances and for new ones.

    Parameters
    ----------
    n_neighbors : int, default=20
        Neighbours along which a graph is diffused, and by which its kernel is scaled.
    n_rounds : int, default=20
        Number of rounds of diffusion.
    normalize : {"auto", "standard", "tfidf", "l2"} or None, default="auto"
        How the features of a view are prepared, as in :class:`APMC`.
    n_init : int, default=10
        Number of starts of the spectral rotation.
    random_state : int, RandomState instance or None, default=None
        Draws the starts of the rotation. All else is deterministic.

    Attributes
    ----------
    affinity_ : ndarray of shape (n_instances, n_instances)
        The fused similarity.
    embedding_ : ndarray of shape (n_instances, n_clusters)
        Leading eigenvectors of the normalised similarity.
    eigenvalues_ : ndarray
        Their eigenvalues.
    changes_ : ndarray of shape (n_rounds,)
        The largest change of an entry of the views' graphs, round by round.

    Notes
    -----
    The authors ask for complete views. With absent rows a view's graph covers its own instances, averages go
    over the views that have both instances of a pair, and a pair that no view has gets the mean similarity.
    On complete views this is the authors' iteration.

    References
    ----------
    B. Wang, A. M. Mezlini, F. Demir, M. Fiume, Z. Tu, M. Brudno, B. Haibe-Kains, A. Goldenberg: Similarity
    network fusion for aggregating data types on a genomic scale. Nature Methods, 2014.

    Examples
    --------
    >>> from consilience import SNF
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(missing=0.3, random_state=0)
    >>> model = SNF(n_clusters=2, random_state=0).fit(data.views)
    >>> bool(model.changes_[-1] < model.changes_[0])
    True
    """

    about = About(
        use="up to some thousand instances, also with many rows absent",
        avoid="time matters",
        cost="all pairs a view and round",
        paper="Wang et al.: Similarity network fusion for aggregating data types on a genomic scale. "
        "Nature Methods, 2014.",
    )

    n_neighbors: Count = 20
    n_rounds: Count = 20
    normalize: Normalize = "auto"

    def _solve(self, views: Views, rng: np.random.RandomState) -> SNFResult:
        return snf(
            normalized_views(views, self.normalize),
            views.observed,
            self.n_clusters,
            n_neighbors=self.n_neighbors,
            n_rounds=self.n_rounds,
            n_init=self.n_init,
            rng=rng,
        )

    def _learn(self, result: SNFResult, views: Views, order: np.ndarray) -> None:
        super()._learn(result, views, order)
        self.changes_ = result.changes
