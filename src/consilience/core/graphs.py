"""Neighbour graphs of feature rows."""

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.neighbors import NearestNeighbors

# A row's distance to this neighbour is its scale (Zelnik-Manor and Perona, 2004).
_SCALE_NEIGHBOUR = 7
# Exact neighbours of more rows than this are looked for in this many dimensions.
_EXACT_ROWS, _DIMENSIONS = 20_000, 50


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
