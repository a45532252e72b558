"""Neighbour graphs of feature rows."""

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD

from consilience.core.neighbours import EXACT_ROWS, NeighbourIndex

# A row's distance to this neighbour is its scale (Zelnik-Manor and Perona, 2004).
_SCALE_NEIGHBOUR = 7
# Neighbours of more rows than can be compared with all others are looked for in this many dimensions.
_EXACT_ROWS, _DIMENSIONS = EXACT_ROWS, 50


class Neighbours:
    r"""Nearest neighbours of the rows of a table, with locally scaled weights.

    .. math:: w_{ij} = \exp(-d_{ij}^2 / (s_i s_j)), \qquad s_i = d(i, \text{its 7th neighbour})

    In `graph`, which is symmetric, two rows are linked if one is among the neighbours of the other. `seed` is
    that of the projection which tables of very many rows go through.

    Cost: that of `NeighbourIndex`, on 50 dimensions above 20 000 rows; memory rows x neighbours.
    """

    def __init__(self, X: np.ndarray | sp.csr_array, n_neighbors: int, seed: int) -> None:
        n = X.shape[0]
        self._projection = None
        if n > _EXACT_ROWS and X.shape[1] > _DIMENSIONS:
            self._projection = TruncatedSVD(_DIMENSIONS, n_iter=4, random_state=seed)
            X = self._projection.fit_transform(X)
        m = min(n_neighbors, n - 1)
        self._index, self._n_neighbors = NeighbourIndex(X, seed=seed), max(m, 1)
        self.graph, self._scale, self._least = sp.csr_array((n, n)), np.ones(n), 1.0
        if m < 1:
            return
        neighbours, squared = self._index.nearest(m)
        scale = _reach(squared)
        # Rows with many duplicates have scale zero; the smallest other scale keeps their weights at one.
        self._least = max(scale[scale > 0].min(initial=1.0) * 1e-6, np.finfo(float).tiny)
        self._scale = np.maximum(scale, self._least)
        graph = _weighted(squared, neighbours, self._scale, self._scale)
        self.graph = graph.maximum(graph.T)

    def weights(self, X: np.ndarray | sp.csr_array) -> sp.csr_array:
        """Weights of new rows to their nearest among the rows that were given, (new rows, rows)."""
        if self._projection is not None:
            X = self._projection.transform(X)
        neighbours, squared = self._index.nearest(self._n_neighbors, X)
        return _weighted(squared, neighbours, np.maximum(_reach(squared), self._least), self._scale)


def neighbour_graph(X: np.ndarray | sp.csr_array, n_neighbors: int, seed: int) -> sp.csr_array:
    """Symmetric graph of nearest neighbours with locally scaled weights; see `Neighbours`."""
    return Neighbours(X, n_neighbors, seed).graph


def _reach(squared: np.ndarray) -> np.ndarray:
    return np.sqrt(squared[:, min(_SCALE_NEIGHBOUR, squared.shape[1]) - 1])


def _weighted(
    squared: np.ndarray, neighbours: np.ndarray, scale: np.ndarray, scale_of_neighbours: np.ndarray
) -> sp.csr_array:
    n, m = squared.shape
    weights = np.exp(-squared / (scale[:, None] * scale_of_neighbours[neighbours]))
    ends = np.arange(0, n * m + 1, m)
    return sp.csr_array((weights.ravel(), neighbours.ravel(), ends), shape=(n, len(scale_of_neighbours)))
