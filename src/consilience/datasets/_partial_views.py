"""Two Gaussian clusters seen in two views, with rows missing."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from consilience._support.sklearn import Interval, check_parameter, random_source
from consilience.datasets._dataset import Dataset

_MEANS = (((1.0, 1.0), (4.0, 2.0)), ((1.0, 3.0), (3.0, 1.0)))  # view, cluster
_COVARIANCES = (
    (((0.3, 0.0), (0.0, 0.4)), ((0.2, 0.15), (0.15, 0.35))),
    (((0.25, -0.05), (-0.05, 0.2)), ((0.4, 0.1), (0.1, 0.3))),
)


def make_partial_views(n: int = 200, *, missing: float = 0.0, random_state: Any = None) -> Dataset:
    """The synthetic data of APMC's paper: two Gaussian clusters in the plane, in each of two views.

    Parameters
    ----------
    n : int, default=200
        Number of instances, half of them in each cluster.
    missing : float in [0, 1], default=0.0
        Share of the instances that are missing in one of the views, in the first and the second by turns.
        Every instance is in one view at least.
    random_state : int, RandomState instance or None, default=None
        A number gives the same data every time.

    Returns
    -------
    data : Dataset
        Of kind "views", with the clusters in `y`.

    References
    ----------
    J. Guo, J. Ye: Anchors Bring Ease: An Embarrassingly Simple Approach to Partial Multi-view Clustering.
    AAAI, 2019.

    Examples
    --------
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(missing=0.5, random_state=0)
    >>> data
    Dataset('two Gaussians': views view0 200 x 2, view1 200 x 2, 2 classes)
    >>> data.observed.sum(axis=0)
    array([150, 150])
    """
    check_parameter("n", n, Interval(Integral, 2, None, closed="left"), "make_partial_views")
    check_parameter("missing", missing, Interval(Real, 0, 1, closed="both"), "make_partial_views")
    rng = random_source(random_state)
    y = rng.permutation(np.arange(n) % 2)
    views = []
    for means, covariances in zip(_MEANS, _COVARIANCES, strict=True):
        x = np.empty((n, 2))
        for cluster in (0, 1):
            rows = y == cluster
            x[rows] = rng.multivariate_normal(means[cluster], covariances[cluster], int(rows.sum()))
        views.append(x)
    observed = np.ones((n, 2), dtype=bool)
    losing = rng.permutation(n)[: round(missing * n)]
    observed[losing, np.arange(len(losing)) % 2] = False
    for v, x in enumerate(views):
        x[~observed[:, v]] = np.nan
    return Dataset(
        "two Gaussians", "views", y=y, views=tuple(views), view_names=("view0", "view1"), observed=observed
    )
