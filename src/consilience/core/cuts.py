"""Spectral cuts: an embedding of weighted rows, and labels from it."""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from consilience.core.canonical import Rows
from consilience.core.discretize import fill_empty_clusters, spectral_rotation
from consilience.core.eigen import leading_eigenpairs
from consilience.core.spectral import left_singular_vectors
from consilience.core.tables import cluster_sizes, gather, scatter


class Places(NamedTuple):
    """Places of the rows, and of the base clusters: the place of a row is the sum over those it is in."""

    rows: np.ndarray
    clusters: np.ndarray


def bipartite_embedding(rows: Rows, width: int, q: np.ndarray | None = None) -> Places:
    r"""Rows in the leading eigenvectors of the graph of rows and base clusters.

    .. math:: D_x^{-1/2} B D_y^{-1/2}, \qquad B_{pc} = q_c \, [p \in c]

    Its leading left singular vectors, each times its singular value. :math:`D_x` and :math:`D_y` are the row
    and column sums of B, so a row with few labels is not punished for those that it lacks. A row of weight w
    is w equal rows. What is returned lacks the factor :math:`D_x^{-1/2}`: lengths of rows are to be dropped.

    Symbols: [p in c] -> rows.codes (-1 = missing); q -> q, positive, per base cluster, one if None.
    Cost: an eigenproblem of the size of all base clusters, and rows x bases x width.
    """
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    # A base of weight w is w equal ones: sqrt(w) times its columns have the same left singular vectors.
    q = rows.weigh_clusters(np.ones(int(offsets[-1])) if q is None else q)
    degree = gather(codes, offsets, q[:, None])[:, 0]
    scale = np.sqrt(q / cluster_sizes(codes, offsets, w))
    h = left_singular_vectors(codes, offsets, w / degree, min(width, len(w), len(q)), scale)
    right = scale[:, None] * scatter(codes, offsets, w / degree, h)  # singular vectors times their values
    values = np.linalg.norm(right, axis=0)
    # A direction that the graph does not have would be rounding errors over rounding errors.
    there = values > 1e-9 * values.max()
    places = scale[:, None] * np.divide(right, values, out=np.zeros_like(right), where=there)
    return Places(h * values, places)


def graph_embedding(similarity: np.ndarray, w: np.ndarray, width: int) -> np.ndarray:
    r"""Nodes in the leading eigenvectors of :math:`D^{-1/2} S D^{-1/2}`, times :math:`D^{-1/2}`.

    A node of weight w is w nodes with equal similarities. Similarities are dense and not negative.

    Cost: nodes^2 memory, and the leading eigenvectors of a dense matrix.
    """
    degree = similarity @ w
    degree = np.maximum(degree, 1e-12 * degree.max())  # a node that nothing is similar to stays where it is
    root = np.sqrt(w / degree)
    _, vectors = leading_eigenpairs(similarity * root * root[:, None], min(width, len(w)))
    return vectors / np.sqrt(w * degree)[:, None]


def cut_embedding(
    h: np.ndarray,
    w: np.ndarray,
    n_clusters: int,
    *,
    discretize: str = "kmeans",
    n_init: int,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Labels of weighted rows by their directions, every cluster used, and the rows scaled to length one."""
    norms, unit = np.linalg.norm(h, axis=1), unit_length(h)
    if discretize == "rotation":
        labels, fit = _rotate(unit, w, n_clusters, n_init, rng)
    else:
        labels, fit = weighted_k_means(unit, norms, w, n_clusters, n_init=n_init, rng=rng)
    return fill_empty_clusters(labels, fit, n_clusters), unit


def unit_length(h: np.ndarray) -> np.ndarray:
    """Rows scaled to length one; those at zero stay there."""
    norms = np.linalg.norm(h, axis=1)
    return np.asarray(h / np.maximum(norms, 1e-12 * (norms.max(initial=0.0) or 1.0))[:, None])


def weighted_k_means(
    points: np.ndarray,
    key: np.ndarray,
    w: np.ndarray,
    n_clusters: int,
    *,
    n_init: int,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, np.ndarray]:
    """Labels of the rows, and how near each is to its centre.

    Starts are drawn by place in the order of `key`, not negative: with keys that neither a new order of
    instances nor new names of labels nor a rotation of the points changes, so do the starts.
    """
    order = np.argsort(np.round(key / max(float(key.max()), np.finfo(float).tiny), 9), kind="stable")
    model = KMeans(n_clusters, n_init=n_init, max_iter=100, random_state=rng)
    with warnings.catch_warnings():
        # Rows with different labels may be equal points; empty clusters are filled afterwards.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(points[order], sample_weight=w[order])
    labels = np.empty(len(order), dtype=np.intp)
    labels[order] = model.labels_
    difference = points - model.cluster_centers_[labels]
    return labels, -np.einsum("pd,pd->p", difference, difference)


def _rotate(
    unit: np.ndarray, w: np.ndarray, n_clusters: int, n_init: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Labels by spectral rotation, and the score of each row's label."""
    # More clusters than directions: the ones that are left out hold nothing.
    wide = np.pad(unit, ((0, 0), (0, n_clusters - unit.shape[1])))
    found = spectral_rotation(wide, w, n_init=n_init, rng=rng)
    return found.labels, (wide @ found.rotation)[np.arange(len(wide)), found.labels]
