"""One-stage late fusion incomplete multi-view clustering (OS-LF-IMVC): labels inside the optimisation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.core.discretize import fill_empty_clusters, label_sums
from consilience.core.kernels import forget
from consilience.core.stiefel import polar_factor
from consilience.multiview._kernels import (
    FUNCTIONS,
    KERNEL_CONSTRAINTS,
    base_embeddings,
    cluster_embedding,
    embed_new,
    one_thread,
    read_kernels,
)
from consilience.multiview._late import align, combine, common_directions, impute, read_prior, rotate, weigh
from consilience.multiview._views import ViewsMixin, settled


class OSLFIMVCResult(NamedTuple):
    """What `oslfimvc` learned."""

    labels: np.ndarray  # Y
    centers: np.ndarray  # C, orthogonal
    weights: np.ndarray  # beta, per view
    rotations: list[np.ndarray]  # W_p, per view
    imputed: list[np.ndarray]  # H_p with the missing rows filled in, per view
    consensus: np.ndarray  # T
    objective: np.ndarray
    n_iter: int
    converged: bool


def oslfimvc(
    bases: Sequence[np.ndarray],
    observed: np.ndarray,
    prior: np.ndarray | None,
    centers: np.ndarray,
    *,
    regularization: float,
    init: str,
    max_iter: int,
    tol: float,
    progress: Callable[[int, float], None] | None = None,
) -> OSLFIMVCResult:
    r"""Labels of a consensus of base embeddings, learned together with it.

    .. math::
        \max \; tr\bigl((Y C)^T (\sum_p \beta_p H_p W_p + \lambda H_0)\bigr)

    over one-hot Y, orthogonal C and W_p, the missing rows of H_p with orthonormal columns (rows, where fewer
    than clusters are missing) and beta >= 0 of norm one.

    Symbols: H_p -> bases[p], zero on missing rows; H_0 -> prior; lambda -> regularization; Y -> labels;
    C -> centers; beta -> weights; W_p -> rotations[p].
    Cost: instances x views x clusters^2 a sweep.
    """
    k, m = bases[0].shape[1], len(bases)
    hs = [h.copy() for h in bases]
    missing = [np.flatnonzero(~observed[:, p]) for p in range(m)]
    beta = np.full(m, 1.0 / np.sqrt(m))
    ws = align(hs, prior, k) if init == "aligned" else [np.eye(k)] * m
    t = combine(rotate(hs, ws), beta, prior, regularization)
    ones = np.ones(len(t))
    objective: list[float] = []
    converged = False
    for iteration in range(max_iter):
        labels = (t @ centers.T).argmax(axis=1)
        centers = polar_factor(label_sums(t, ones, labels, k))
        h = centers[labels]  # Y C
        ws = [polar_factor(base.T @ h) for base in hs]
        for base, w, rows in zip(hs, ws, missing, strict=True):
            if len(rows):
                base[rows] = impute(h[rows] @ w.T)
        turned = rotate(hs, ws)
        beta = weigh(h, turned)
        t = combine(turned, beta, prior, regularization)
        objective.append(float(np.einsum("pd,pd->", h, t)))
        if progress:
            progress(iteration + 1, objective[-1])
        if settled(objective, tol):
            converged = True
            break
    return OSLFIMVCResult(labels, centers, beta, ws, hs, t, np.array(objective), iteration + 1, converged)


class OSLFIMVC(ViewsMixin, BaseEstimator):
    """One-stage late fusion incomplete multi-view clustering: the clusters themselves are fused.

    Like :class:`EEIMVC`, but labels are learned together with the consensus instead of by k-means at the
    end. Use it when one objective is to account for the labels; it is no faster and hardly better, and a
    start (k-means on the prior) still decides much. Prefer :class:`EEIMVC` in doubt.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    regularization : float, default=1.0
        How strongly the consensus is held to the prior.
    prior : {"imputed", "average", "mkkm"}, array (n_instances, n_clusters) or None, default="imputed"
        The embedding H_0 that the consensus is held to; see :class:`EEIMVC`. "average" is the authors'.
    kernel : {"rbf", "linear", "poly", "cosine", "precomputed", "embedding"} or callable, default="rbf"
        How the rows of a view are compared; see :class:`EEIMVC`.
    preprocessing : {"observed", "paper"}, default="observed"
        Kernels are centred and scaled by the rows that a view has, or by the complete data before `mask`
        hides rows, as in the published experiments.
    init : {"aligned", "identity"}, default="aligned"
        First rotations: those that align every view with the prior, or none, as published. Without
        alignment the answer depends on the arbitrary signs of eigenvectors.
    max_iter : int, default=100
        Limit of sweeps.
    tol : float, default=1e-4
        Stop when the objective grows by less than this share.
    n_init : int, default=10
        Number of starts of the first k-means, of which the one of smallest inertia is kept.
    verbose : int, default=0
        Print the objective of every sweep to standard error.
    random_state : int, RandomState instance or None, default=None
        Draws the starts of k-means, and landmarks where a view has too many rows for all pairs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster.
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The consensus T that the labels are read from.
    centers_ : ndarray of shape (n_clusters, n_clusters)
        The directions C of the clusters, orthogonal.
    weights_ : ndarray of shape (n_views,)
        The weight beta of every view; their squares sum to one.
    rotations_ : list of ndarray
        The rotation W_p of every view.
    imputed_ : list of ndarray
        The base embedding H_p of every view, missing rows filled in.
    prior_ : ndarray of shape (n_instances, n_clusters) or None
        The prior H_0.
    objective_ : ndarray of shape (n_iter,)
        The objective after every sweep; it never falls.
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
    Where this differs from the authors' program: C starts at the orthogonal matrix nearest to the first
    centres instead of at some basis of their span, which also serves when they are dependent; rotations start
    aligned; a cluster that has emptied takes the instance that fits its own worst, so that none is empty.
    Where a cluster has no member among the missing rows of a view, those rows are not determined by the
    problem, and programs may differ.

    References
    ----------
    Y. Zhang, X. Liu, S. Wang, J. Liu, S. Dai, E. Zhu: One-Stage Incomplete Multi-view Clustering via Late
    Fusion. ACM Multimedia 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import OSLFIMVC
    >>> shape = np.array([[0.0, 0.1], [0.1, 0.0], [0.2, 0.1], [5.0, 5.1], [5.1, 5.0], [np.nan, np.nan]])
    >>> sound = np.array([[1.0], [1.2], [1.1], [9.0], [9.1], [9.2]])
    >>> model = OSLFIMVC(n_clusters=2, random_state=0).fit({"shape": shape, "sound": sound})
    >>> model.labels_ == model.labels_[0]
    array([ True,  True,  True, False, False, False])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "regularization": [Interval(Real, 0, None, closed="left")],
        "prior": [StrOptions({"imputed", "average", "mkkm"}), "array-like", None],
        **KERNEL_CONSTRAINTS,
        "kernel": [StrOptions(FUNCTIONS | {"embedding"}), callable],
        "init": [StrOptions({"aligned", "identity"})],
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
        regularization: float = 1.0,
        prior: Any = "imputed",
        kernel: Any = "rbf",
        preprocessing: str = "observed",
        init: str = "aligned",
        max_iter: int = 100,
        tol: float = 1e-4,
        n_init: int = 10,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.regularization = regularization
        self.prior = prior
        self.kernel = kernel
        self.preprocessing = preprocessing
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, mask: Any = None) -> OSLFIMVC:
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
            precise = isinstance(self.prior, str) and self.prior == "mkkm"
            kernels = read_kernels(self, X, mask, rng, precise=precise)
            bases = base_embeddings(kernels, self.n_clusters)
            prior = read_prior(self.prior, kernels, bases)
            hs = [base.h for base in bases]
            first = common_directions(hs, self.n_clusters) if prior.h is None else prior.h
            start = cluster_embedding(first, self.n_clusters, n_init=self.n_init, rng=rng)
            result = oslfimvc(
                hs,
                self.observed_,
                prior.h,
                polar_factor(start.centers),
                regularization=self.regularization,
                init=self.init,
                max_iter=self.max_iter,
                tol=self.tol,
                progress=self._progress if self.verbose else None,
            )
        self._check_converged(result.converged, self.max_iter)
        fit = np.einsum("pd,pd->p", result.consensus, result.centers[result.labels])
        order = self._answer(fill_empty_clusters(result.labels, fit, self.n_clusters))
        self._projections = [
            b * base.projection @ w + self.regularization * of_prior
            for base, b, w, of_prior in zip(
                bases, result.weights, result.rotations, prior.projections, strict=True
            )
        ]
        self._kernels = [forget(kernel) for kernel in kernels]
        self.embedding_ = result.consensus
        self.centers_ = result.centers[order]
        self.weights_ = result.weights
        self.rotations_ = result.rotations
        self.imputed_ = result.imputed
        self.prior_ = prior.h
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        return self

    def predict(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """Clusters of new instances from whatever views they have.

        Each view embeds the new rows by their similarities to the fitted ones; the embeddings are rotated,
        weighed and added as learned, and the cluster of the nearest direction is taken.

        Parameters
        ----------
        X : list, tuple or dict of tables, or one table
            The views of the new instances: a dict may leave views out, a list has None for them, and a row of
            NaN is absent. With ``kernel="precomputed"``, similarities to the fitted instances.
        mask : (n_new, n_views) array of bool, default=None
            False where the instance is absent from the view.
        """
        return (embed_new(self, X, mask) @ self.centers_.T).argmax(axis=1)
