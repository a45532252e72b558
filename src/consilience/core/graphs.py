"""Neighbour graphs of feature rows, and the eigenvectors that show their clusters."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import NearestNeighbors

from consilience.core.spectral import leading_eigenpairs

# A row's distance to this neighbour is its scale (Zelnik-Manor and Perona, 2004).
_SCALE_NEIGHBOUR = 7
# Exact neighbours of more rows than this are looked for in this many dimensions.
_EXACT_ROWS, _DIMENSIONS = 20_000, 50
# Up to this size a dense eigenproblem is at least as fast as an iterative one.
_DENSE = 1_000
# Weakly linked clusters have eigenvalues that are almost equal; a looser iteration misses some of them.
_TOL = 1e-6


def neighbour_graph(X: np.ndarray | sp.csr_array, n_neighbors: int, seed: int) -> sp.csr_array:
    r"""Symmetric graph of nearest neighbours with locally scaled weights.

    .. math:: w_{ij} = \exp(-d_{ij}^2 / (s_i s_j)), \qquad s_i = d(i, \text{its 7th neighbour})

    Two rows are linked if one is among the neighbours of the other. `seed` is that of the projection which
    tables of very many rows go through.

    Cost: rows^2 x features, on 50 dimensions above 20 000 rows; memory rows x neighbours.
    """
    n = X.shape[0]
    if n > _EXACT_ROWS and X.shape[1] > _DIMENSIONS:
        X = TruncatedSVD(_DIMENSIONS, n_iter=4, random_state=seed).fit_transform(X)
    m = min(n_neighbors, n - 1)
    if m < 1:
        return sp.csr_array((n, n))
    # Without arguments a row's neighbours do not include the row itself, whatever duplicates it has.
    distances, neighbours = NearestNeighbors(n_neighbors=m).fit(X).kneighbors()
    scale = distances[:, min(_SCALE_NEIGHBOUR, m) - 1]
    # Rows with many duplicates have scale zero; the smallest other scale keeps their weights at one.
    scale = np.maximum(scale, max(scale[scale > 0].min(initial=1.0) * 1e-6, np.finfo(float).tiny))
    weights = np.exp(-(distances**2) / (scale[:, None] * scale[neighbours]))
    graph = sp.csr_array((weights.ravel(), neighbours.ravel(), np.arange(0, n * m + 1, m)), shape=(n, n))
    return graph.maximum(graph.T)


def leading_vectors(graph: sp.csr_array, k: int) -> np.ndarray:
    """Eigenvectors of the k largest eigenvalues of the normalised adjacency, largest first.

    The eigenvalue 1 has one eigenvector per connected component, and these are known. An iterative solver
    could miss some of these copies, so they are taken out before it starts. Where there are more than k
    components, those of the k largest are returned.
    """
    n = graph.shape[0]
    k = min(k, n)
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    root = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    adjacency = sp.diags_array(1.0 / root) @ graph @ sp.diags_array(1.0 / root)
    if n <= max(_DENSE, 4 * k):
        return leading_eigenpairs(adjacency.toarray(), k)[1]
    known = _of_components(graph, root, k)
    rest = k - known.shape[1]
    if not rest:
        return known
    deflated = LinearOperator((n, n), lambda x: adjacency @ x - known @ (known.T @ x))
    start = np.random.RandomState(0).standard_normal(n)
    _, vectors = eigsh(deflated, rest, which="LA", v0=start - known @ (known.T @ start), tol=_TOL)
    return np.hstack([known, vectors[:, ::-1]])


def _of_components(graph: sp.csr_array, root: np.ndarray, k: int) -> np.ndarray:
    """The eigenvectors of eigenvalue 1 of the k largest components, as columns of unit length."""
    n_components, member = connected_components(graph, directed=False)
    sizes = np.bincount(member)
    place = np.full(n_components, -1)
    largest = np.argsort(-sizes, kind="stable")[:k]
    place[largest] = np.arange(len(largest))
    column = place[member]
    vectors = np.zeros((len(member), len(largest)))
    vectors[column >= 0, column[column >= 0]] = root[column >= 0]
    return vectors / np.linalg.norm(vectors, axis=0)
