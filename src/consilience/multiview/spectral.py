"""Two baselines: spectral clustering of concatenated features, and of averaged similarities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import numpy as np
import scipy.sparse as sp

from consilience.core.parameters import Positive, parameters
from consilience.evidence.views import Views
from consilience.multiview._affinity import (
    Cut,
    GraphMethod,
    average_over_views,
    normalized_embedding,
    squared_distances,
)
from consilience.multiview.base import Normalize
from consilience.multiview.rows import cluster_rows, unit_rows
from consilience.multiview.scaling import Matrix, fill_with_mean, normalized_views
from consilience.registry import About


def spectral_concat(
    arrays: Sequence[Matrix],
    observed: np.ndarray,
    n_clusters: int,
    *,
    bandwidth: float | None,
    n_init: int,
    rng: np.random.RandomState,
) -> Cut:
    r"""SC[C]: one similarity of all features, absent rows filled with the mean of their view.

    .. math:: S_{ij} = \exp\Bigl(-\sum_v \|x^{(v)}_i - x^{(v)}_j\|^2 / \sigma^2\Bigr)

    Symbols: sigma -> bandwidth (None: the mean distance).
    Cost: all pairs of instances, one dense eigenproblem.
    """
    filled = [fill_with_mean(x, observed[:, v]) for v, x in enumerate(arrays)]
    joined = sp.hstack(filled, format="csr") if any(map(sp.issparse, filled)) else np.hstack(filled)
    similarity = _gaussian(squared_distances(joined), bandwidth)
    return _cut(similarity, n_clusters, n_init, rng)


def spectral_average(
    arrays: Sequence[Matrix],
    observed: np.ndarray,
    n_clusters: int,
    *,
    bandwidth: float | None,
    n_init: int,
    rng: np.random.RandomState,
) -> Cut:
    r"""SC[A]: the mean of the views' similarities over the views that have both instances of a pair.

    .. math:: S_{ij} = \frac{1}{|V_{ij}|} \sum_{v \in V_{ij}} \exp(-\|x^{(v)}_i - x^{(v)}_j\|^2 / \sigma_v^2)

    Symbols: sigma_v -> bandwidth (None: the mean distance in the view); V_ij -> views with both; S = 0 where
    there is none.
    Cost: all pairs of instances for each view, one dense eigenproblem.
    """
    blocks = (
        _gaussian(squared_distances(x[np.flatnonzero(observed[:, v])]), bandwidth)
        for v, x in enumerate(arrays)
    )
    similarity = average_over_views(blocks, observed, fill_with_mean=False)
    return _cut(similarity, n_clusters, n_init, rng)


def _gaussian(squared: np.ndarray, bandwidth: float | None) -> np.ndarray:
    sigma = bandwidth or float(np.sqrt(squared).mean()) or 1.0
    return np.exp(-squared / sigma**2)


def _cut(similarity: np.ndarray, n_clusters: int, n_init: int, rng: np.random.RandomState) -> Cut:
    values, vectors = normalized_embedding(similarity, n_clusters)
    embedding = unit_rows(vectors)
    found = cluster_rows(embedding, n_clusters, n_init=n_init, rng=rng)
    return Cut(found.labels, embedding, similarity, values)


@parameters
class _Spectral(GraphMethod):
    """What the two baselines share: parameters and the order of things."""

    solver: ClassVar[Callable[..., Cut]]

    bandwidth: Positive | Literal["mean_distance"] = "mean_distance"
    normalize: Normalize = "auto"

    def _solve(self, views: Views, rng: np.random.RandomState) -> Cut:
        return type(self).solver(
            normalized_views(views, self.normalize),
            views.observed,
            self.n_clusters,
            bandwidth=None if isinstance(self.bandwidth, str) else float(self.bandwidth),
            n_init=self.n_init,
            rng=rng,
        )


@parameters
class SpectralConcat(_Spectral):
    """Spectral clustering of all features side by side, absent rows filled with the mean of their view.

    The baseline that every other method has to beat. Use it for complete views whose features may be mixed;
    with absent rows the filled-in means look alike and become a cluster of their own.

    Parameters
    ----------
    bandwidth : "mean_distance" or float, default="mean_distance"
        Width of the Gaussian similarity: the mean distance of all pairs, or a number.
    normalize : {"auto", "standard", "tfidf", "l2"} or None, default="auto"
        How the features of a view are prepared, as in :class:`APMC`.

    Attributes
    ----------
    affinity_ : ndarray of shape (n_instances, n_instances)
        The similarity.
    embedding_ : ndarray of shape (n_instances, n_clusters)
        Leading eigenvectors of the normalised similarity, rows of norm one.
    eigenvalues_ : ndarray
        Their eigenvalues.

    Notes
    -----
    The paper does not say how absent rows are filled, and takes a width of 1 after its normalisation.

    References
    ----------
    J. Guo, J. Ye: Anchors Bring Ease: An Embarrassingly Simple Approach to Partial Multi-view Clustering.
    AAAI, 2019 (there SC[C]).

    Examples
    --------
    >>> from consilience import SpectralConcat
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(random_state=0)
    >>> model = SpectralConcat(n_clusters=2, random_state=0).fit(data.views)
    >>> model.affinity_.shape
    (200, 200)
    """

    about = About(
        use="to compare with",
        avoid="many rows absent",
        cost="all pairs, one eigenproblem",
        paper="Guo, Ye: Anchors Bring Ease: A Simple Approach to Partial Multi-view Clustering. AAAI, "
        "2019 (SC[C]).",
    )

    solver = staticmethod(spectral_concat)


@parameters
class SpectralAverage(_Spectral):
    """Spectral clustering of the mean of the views' similarities.

    A baseline that needs no filling: a pair is compared in the views that have both instances. Use it for
    some thousand instances with few absent rows; :class:`NEMO` does the same with neighbourhoods instead of
    one width for all, and better.

    Parameters
    ----------
    bandwidth : "mean_distance" or float, default="mean_distance"
        Width of the Gaussian similarity: the mean distance in each view, or a number.
    normalize : {"auto", "standard", "tfidf", "l2"} or None, default="auto"
        How the features of a view are prepared, as in :class:`APMC`.

    Attributes
    ----------
    affinity_ : ndarray of shape (n_instances, n_instances)
        The similarity.
    embedding_ : ndarray of shape (n_instances, n_clusters)
        Leading eigenvectors of the normalised similarity, rows of norm one.
    eigenvalues_ : ndarray
        Their eigenvalues.

    Notes
    -----
    The mean is over the views that have both instances, not over all views; a pair that no view has gets
    zero. The paper takes a width of 1 after its normalisation.

    References
    ----------
    J. Guo, J. Ye: Anchors Bring Ease: An Embarrassingly Simple Approach to Partial Multi-view Clustering.
    AAAI, 2019 (there SC[A]).

    Examples
    --------
    >>> from consilience import SpectralAverage
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(random_state=0)
    >>> model = SpectralAverage(n_clusters=2, random_state=0).fit(data.views)
    >>> model.affinity_.shape
    (200, 200)
    """

    about = About(
        use="to compare with",
        avoid="many rows absent",
        cost="all pairs, one eigenproblem",
        paper="Guo, Ye: Anchors Bring Ease: A Simple Approach to Partial Multi-view Clustering. AAAI, "
        "2019 (SC[A]).",
    )

    solver = staticmethod(spectral_average)
