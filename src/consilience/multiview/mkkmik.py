"""Multiple kernel k-means with incomplete kernels (MKKM-IK): impute and cluster together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from consilience._sklearn import Interval, fit_context, random_source
from consilience.core.kernels import Fill, Kernel, forget, leading_eigenvectors, trace
from consilience.multiview._kernels import (
    KERNEL_CONSTRAINTS,
    cluster_embedding,
    embed_new,
    extension,
    nearest,
    one_thread,
    read_kernels,
)
from consilience.multiview._views import ViewsMixin, settled
from consilience.multiview.mkkm import MKKMResult, fill_absent, unexplained, update_weights


def mkkmik(
    kernels: Sequence[Kernel],
    n_clusters: int,
    *,
    max_iter: int,
    tol: float,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[MKKMResult, list[Fill | None]]:
    r"""Embedding, weights and absent rows of kernels in turn; also how those rows followed from the others.

    .. math::
        \min_{H, \theta, K_p} \; tr\bigl(\sum_p \theta_p^2 K_p (I - H H^T)\bigr) \quad
        s.t. \; H^T H = I, \; \theta \ge 0, \; \sum_p \theta_p = 1, \; K_p \succeq 0

    where the similarities of observed rows stay. Absent rows start at zero.

    Symbols: K_p -> kernels[p], completed by the fills; H -> found.vectors; theta -> weights.
    Cost: some tens of products of every kernel with n_clusters + 4 vectors a sweep; the imputed rows are
    never written out (the published form inverts and stores n x n matrices).
    """
    m = len(kernels)
    fills: list[Fill | None] = [None] * m
    theta = np.full(m, 1.0 / m)
    objective: list[float] = []
    start, converged = None, False
    for iteration in range(max_iter):
        mixture, used = theta**2, fills
        found = leading_eigenvectors(kernels, n_clusters, weights=mixture, fills=used, start=start)
        start = found.vectors
        fills = fill_absent(kernels, found.vectors)
        traces = np.array([trace(kernel, fill) for kernel, fill in zip(kernels, fills, strict=True)])
        residuals = unexplained(kernels, fills, traces, found.vectors)
        theta = update_weights(residuals, traces)
        objective.append(float(theta**2 @ residuals))
        if progress:
            progress(iteration + 1, objective[-1])
        if settled(objective, tol):
            converged = True
            break
    return MKKMResult(found, mixture, theta, np.array(objective), iteration + 1, converged), used


class MKKMIK(ViewsMixin, BaseEstimator):
    """Multiple kernel k-means with incomplete kernels: absent rows are imputed while clustering.

    It alternates between the embedding of a weighted sum of kernels, the weights, and the similarities of
    absent rows, which are put where that embedding explains them best. Use it to compare, or where a single
    kernel over all instances is wanted; mind the weights as in :class:`MKKM`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : {"rbf", "linear", "poly", "cosine", "precomputed"} or callable, default="rbf"
        How the rows of a view are compared; see :class:`EEIMVC`.
    preprocessing : {"observed", "paper"}, default="observed"
        Kernels are centred and scaled by the rows that a view has, or by the complete data before `mask`
        hides rows, as in the published experiments.
    max_iter : int, default=100
        Limit of sweeps.
    tol : float, default=1e-4
        Stop when the objective falls by less than this share.
    n_init : int, default=10
        Number of starts of the final k-means, of which the one of smallest inertia is kept.
    verbose : int, default=0
        Print the objective of every sweep to standard error.
    random_state : int, RandomState instance or None, default=None
        Draws the starts of k-means, and landmarks where a view has too many rows for all pairs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster.
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The embedding H, with orthonormal columns.
    weights_ : ndarray of shape (n_views,)
        The weight theta of every view; they sum to one.
    objective_ : ndarray of shape (n_iter,)
        The objective after every sweep.
    n_iter_ : int
        Number of sweeps.
    n_clusters_ : int
        Number of clusters found.
    view_names_, index_, observed_
        Names of the views, ids of the instances (or None), and which instance was present in which view.
    n_features_in_ : int
        Number of features of all views together.

    Notes
    -----
    The imputed rows of a kernel are combinations of its observed ones in feature space, of rank n_clusters:
    by the push-through identity the published inverse of a matrix of absent rows becomes one of n_clusters x
    n_clusters. So a sweep costs products with the kernels instead of the cube of n, and nothing is imputed in
    full. The answer is the published one.

    References
    ----------
    X. Liu, M. Li, L. Wang, Y. Dou, J. Yin, E. Zhu: Multiple Kernel k-Means with Incomplete Kernels.
    AAAI 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import MKKMIK
    >>> shape = np.array([[0.0, 0.1], [0.1, 0.0], [0.2, 0.1], [5.0, 5.1], [5.1, 5.0], [np.nan, np.nan]])
    >>> sound = np.array([[1.0], [1.2], [1.1], [9.0], [9.1], [9.2]])
    >>> model = MKKMIK(n_clusters=2, random_state=0).fit({"shape": shape, "sound": sound})
    >>> model.labels_ == model.labels_[0]
    array([ True,  True,  True, False, False, False])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        **KERNEL_CONSTRAINTS,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Any = "rbf",
        preprocessing: str = "observed",
        max_iter: int = 100,
        tol: float = 1e-4,
        n_init: int = 10,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.preprocessing = preprocessing
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, mask: Any = None) -> MKKMIK:
        """Cluster the instances.

        Parameters
        ----------
        X : list, tuple or dict of tables, or one table
            The views; see :func:`consilience.check_views`. An absent instance is a row of NaN.
        y : ignored
            There for scikit-learn's interface.
        mask : (n_instances, n_views) array of bool, default=None
            False where the instance is absent from the view.
        """
        rng = random_source(self.random_state)
        with one_thread():
            kernels = read_kernels(self, X, mask, rng)
            result, fills = mkkmik(
                kernels,
                self.n_clusters,
                max_iter=self.max_iter,
                tol=self.tol,
                progress=self._progress if self.verbose else None,
            )
            h = result.found.vectors
            clusters = cluster_embedding(h, self.n_clusters, n_init=self.n_init, rng=rng)
        self._check_converged(result.converged, self.max_iter)
        self._centers = clusters.centers[self._answer(clusters.labels)]
        self._projections = [
            s * extension(kernel, result.found, fill)
            for s, kernel, fill in zip(result.mixture, kernels, fills, strict=True)
        ]
        self._kernels = [forget(kernel) for kernel in kernels]
        self.embedding_ = h
        self.weights_ = result.weights
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        return self

    def predict(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """Clusters of new instances from whatever views they have.

        The eigenvectors are continued to the new rows by their similarities to the fitted ones, and the
        nearest centre is taken.

        Parameters
        ----------
        X : list, tuple or dict of tables, or one table
            The views of the new instances: a dict may leave views out, a list has None for them, and a row of
            NaN is absent. With ``kernel="precomputed"``, similarities to the fitted instances.
        mask : (n_new, n_views) array of bool, default=None
            False where the instance is absent from the view.
        """
        return nearest(embed_new(self, X, mask), self._centers)
