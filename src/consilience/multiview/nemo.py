"""NEMO: neighbourhoods compared within each view, averaged over the views that two instances share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from consilience.core.parameters import Count, parameters
from consilience.evidence.views import Views
from consilience.multiview._affinity import (
    Cut,
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

# By the authors' program: a neighbourhood is this share of the instances of a view.
_SHARE = 6


def nemo(
    arrays: Sequence[Matrix],
    observed: np.ndarray,
    n_clusters: int,
    *,
    n_neighbors: int | None,
    n_init: int,
    rng: np.random.RandomState,
) -> Cut:
    r"""Spectral clustering of relative similarities.

    .. math::
        S_{ij} = \frac{1}{|V_{ij}|} \sum_{v \in V_{ij}} (R^{(v)}_{ij} + R^{(v)}_{ji}), \qquad
        R^{(v)}_{ij} = \frac{W^{(v)}_{ij}}{\sum_{r \in N_v(i)} W^{(v)}_{ir}} \; (j \in N_v(i))

    W is a Gaussian with local widths, N_v(i) the instances most similar to i in view v and V_ij the views
    that have both. A pair that no view has gets the mean of all others.

    Symbols: W -> `scaled_kernel`; R -> `nearest_only`; N_v -> the n_neighbors nearest (None: a
    sixth of the instances of the view); S -> affinity.

    Cost: all pairs of instances for each view, and one dense eigenproblem.
    """

    def relative(v: int) -> np.ndarray:
        rows = np.flatnonzero(observed[:, v])
        k = n_neighbors or max(1, round(len(rows) / _SHARE))
        r = nearest_only(scaled_kernel(squared_distances(arrays[v][rows]), k), k)
        return r + r.T

    similarity = average_over_views(map(relative, range(len(arrays))), observed, fill_with_mean=True)
    return cut_by_rotation(similarity, n_clusters, n_init=n_init, rng=rng)


@parameters
class NEMO(GraphMethod):
    """Neighbourhood-based multi-view clustering: any number of views, rows absent here and there.

    In each view an instance is compared with its neighbourhood only, so that views of any scale and density
    count alike; a pair's similarity is averaged over the views that have both. Use it for up to some
    thousand instances, most pairs of which share a view. Prefer :class:`APMC` for more instances, for new
    ones (it has `predict`), and when many pairs share no view.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Size of a neighbourhood. "auto" is a sixth of the instances of each view, as in the authors' program.
    normalize : {"auto", "standard", "tfidf", "l2"} or None, default="auto"
        How the features of a view are prepared, as in :class:`APMC`.
    n_init : int, default=10
        Number of starts of the spectral rotation.
    random_state : int, RandomState instance or None, default=None
        Draws the starts of the rotation. All else is deterministic.

    Attributes
    ----------
    affinity_ : ndarray of shape (n_instances, n_instances)
        The averaged relative similarity.
    embedding_ : ndarray of shape (n_instances, n_clusters)
        Leading eigenvectors of the normalised similarity.
    eigenvalues_ : ndarray
        Their eigenvalues.

    Notes
    -----
    Where this differs from the authors' program: the rotation starts from `n_init` instances instead of the
    middle one, so the order of the instances does not matter; exactly `n_clusters` clusters come out; the
    number of clusters is given. The authors ask for views in which every two instances share one; pairs that
    do not get the mean similarity, as in their program.

    References
    ----------
    N. Rappoport, R. Shamir: NEMO: cancer subtyping by integration of partial multi-omic data.
    Bioinformatics, 2019.

    Examples
    --------
    >>> from consilience import NEMO
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(missing=0.3, random_state=0)
    >>> model = NEMO(n_clusters=2, random_state=0).fit(data.views)
    >>> model.affinity_.shape
    (200, 200)
    """

    about = About(
        use="up to some thousand instances",
        avoid="many rows absent",
        cost="all pairs a view, one eigenproblem",
        paper="Rappoport, Shamir: NEMO: cancer subtyping by integration of partial multi-omic data. "
        "Bioinformatics, 2019.",
    )

    n_neighbors: Count | Literal["auto"] = "auto"
    normalize: Normalize = "auto"

    def _solve(self, views: Views, rng: np.random.RandomState) -> Cut:
        return nemo(
            normalized_views(views, self.normalize),
            views.observed,
            self.n_clusters,
            n_neighbors=None if self.n_neighbors == "auto" else int(self.n_neighbors),
            n_init=self.n_init,
            rng=rng,
        )
