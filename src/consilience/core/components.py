"""From a learned graph that should fall into a given number of components to exactly so many clusters."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from consilience.core.cuts import cut_embedding, graph_embedding
from consilience.core.eigen import smallest_eigenpairs

# Eigenvalue sums that count as zero, as in the programs of TRCE and CESHL: of the first c, and of the first
# c + 1.
_ZERO, _STILL_ZERO = 1e-9, 1e-11


def component_embedding(graph: np.ndarray, w: np.ndarray, n_clusters: int) -> tuple[np.ndarray, float]:
    """Eigenvectors of the smallest Laplacian eigenvalues, and by what the price of these is to be multiplied.

    That is 2 while the graph has fewer than `n_clusters` components, 1/2 while it has more, and 1 where it
    falls into so many. The eigenvectors are equal on equal rows: those of the ``w`` instances of a row.

    Cost: an eigenproblem of rows x rows.
    """
    root = np.sqrt(w)
    laplacian = -graph * root * root[:, None]
    laplacian[np.diag_indices_from(laplacian)] += graph @ w
    values, vectors = smallest_eigenpairs(laplacian, n_clusters + 1)
    factor = 1.0
    if values[:n_clusters].sum() > _ZERO:
        factor = 2.0
    elif len(values) > n_clusters and values.sum() < _STILL_ZERO:
        factor = 0.5
    return vectors[:, :n_clusters] / root[:, None], factor


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
