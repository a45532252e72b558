"""From a learned graph that should fall into a given number of components to exactly so many clusters."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from consilience.core.cuts import cut_embedding, graph_embedding


def clusters_of_graph(
    graph: np.ndarray,
    evidence: np.ndarray,
    w: np.ndarray,
    n_clusters: int,
    *,
    n_init: int,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, int]:
    """Labels, and the number of connected components of the graph.

    As many components as clusters: these are the clusters. Fewer: a normalised cut of the graph. More: a
    normalised cut of the components, linked by the mean `evidence` between their instances.

    Symbols: graph, evidence -> dense, symmetric, not negative, between rows; w -> instances of each row.
    Cost: rows^2, and an eigenproblem of rows or of components where their number is not as wanted.
    """
    n_found, component = connected_components(csr_array(graph), directed=False)
    if n_found == n_clusters:
        return component, n_found
    if n_found < n_clusters:
        return _cut(graph, w, n_clusters, n_init, rng), n_found
    members = np.zeros((len(w), n_found))
    members[np.arange(len(w)), component] = w
    sizes = members.sum(axis=0)
    between = members.T @ evidence @ members / sizes / sizes[:, None]
    return _cut(between, sizes, n_clusters, n_init, rng)[component], n_found


def _cut(
    graph: np.ndarray, w: np.ndarray, n_clusters: int, n_init: int, rng: np.random.RandomState
) -> np.ndarray:
    h = graph_embedding(graph, w, n_clusters)
    return cut_embedding(h, w, n_clusters, discretize="rotation", n_init=n_init, rng=rng)[0]
