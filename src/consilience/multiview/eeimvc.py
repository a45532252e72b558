"""Efficient and effective incomplete multi-view clustering (EE-IMVC, EE-R-IMVC): late fusion of views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from consilience._sklearn import Interval, StrOptions, fit_context, random_source
from consilience.core.kernels import forget
from consilience.core.stiefel import orthonormalize, polar_factor
from consilience.multiview._kernels import (
    FUNCTIONS,
    KERNEL_CONSTRAINTS,
    base_embeddings,
    cluster_embedding,
    embed_new,
    nearest,
    one_thread,
    read_kernels,
)
from consilience.multiview._late import align, combine, impute, leveling, read_prior, rotate, weigh
from consilience.multiview._views import ViewsMixin, settled


class EEIMVCResult(NamedTuple):
    """What `eeimvc` learned."""

    embedding: np.ndarray  # H
    weights: np.ndarray  # beta, per view
    rotations: list[np.ndarray]  # W_p, per view
    imputed: list[np.ndarray]  # H_p with the missing rows filled in, per view
    leveling: np.ndarray  # (T^T T)^(-1/2), which makes rows of T = sum_p beta_p H_p W_p + ... rows of H
    objective: np.ndarray
    n_iter: int
    converged: bool


def eeimvc(
    bases: Sequence[np.ndarray],
    observed: np.ndarray,
    prior: np.ndarray | None,
    *,
    regularization: float,
    init: str,
    max_iter: int,
    tol: float,
    progress: Callable[[int, float], None] | None = None,
) -> EEIMVCResult:
    r"""Consensus of base embeddings of which rows are missing, near a prior.

    .. math::
        \max \; tr(H^T \sum_p \beta_p H_p W_p) + \lambda \, tr(H^T H_0) \qquad (6)

    over H with orthonormal columns, orthogonal W_p, the missing rows of H_p with orthonormal columns (rows,
    where fewer than clusters are missing) and beta >= 0 of norm one. The observed rows of H_p stay.

    Symbols: H_p -> bases[p], zero on missing rows; H_0 -> prior; lambda -> regularization; H -> embedding;
    beta -> weights; W_p -> rotations[p].
    Cost: instances x views x clusters^2 a sweep.
    """
    k, m = bases[0].shape[1], len(bases)
    lam = 0.0 if prior is None else regularization
    hs = [h.copy() for h in bases]
    missing = [np.flatnonzero(~observed[:, p]) for p in range(m)]
    beta = np.full(m, 1.0 / np.sqrt(m))
    ws = align(hs, prior, k) if init == "aligned" else [np.eye(k)] * m
    t = combine(rotate(hs, ws), beta, prior, lam)
    objective: list[float] = []
    converged = False
    for iteration in range(max_iter):
        h = orthonormalize(t, np.ones(len(t)))  # Eq. (7)
        ws = [polar_factor(base.T @ h) for base in hs]  # Eq. (8)
        for base, w, rows in zip(hs, ws, missing, strict=True):
            if len(rows):
                base[rows] = impute(h[rows] @ w.T)  # Eq. (9)
        turned = rotate(hs, ws)
        beta = weigh(h, turned)  # Eq. (10)
        t = combine(turned, beta, prior, lam)
        objective.append(float(np.einsum("pd,pd->", h, t)))
        if progress:
            progress(iteration + 1, objective[-1])
        if settled(objective, tol):
            converged = True
            break
    return EEIMVCResult(h, beta, ws, hs, leveling(t), np.array(objective), iteration + 1, converged)


class EEIMVC(ViewsMixin, BaseEstimator):
    """Efficient and effective (regularised) incomplete multi-view clustering: late fusion of views.

    Every view is embedded by itself, from the instances that it has. The embeddings are then rotated
    towards each other and averaged, the rows that a view lacks are filled in from that consensus, and views
    that agree with it count more; k-means on the consensus gives the clusters. Use it when instances lack
    whole views, at any size: after the base embeddings the cost is linear in the instances. Views that need
    different kernels can be brought as ready embeddings. Prefer another method when one view is known to
    be far better than the rest: all get similar weights here.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    regularization : float, default=1.0
        How strongly the consensus is held to the prior. 0 is EE-IMVC, more is EE-R-IMVC; large values return
        the prior itself.
    prior : {"imputed", "average", "mkkm"}, array (n_instances, n_clusters) or None, default="imputed"
        The embedding H_0 that the consensus is held to. "average": of the average of the kernels, absent rows
        zero, the paper's first. "mkkm": of multiple kernel k-means (:class:`MKKM`), the paper's second.
        "imputed": like "average", but every instance is placed by the views that have it alone, as if the
        others had said what this embedding makes of them. Or your own. None is EE-IMVC.
    kernel : {"rbf", "linear", "poly", "cosine", "precomputed", "embedding"} or callable, default="rbf"
        How the rows of a view are compared. "rbf": Gaussian with the mean distance as its width. "poly":
        quadratic, 1 + x.y over the mean squared norm. "precomputed": each view is a square table of
        similarities; rows of absent instances are NaN or hidden by `mask`, their columns are ignored.
        "embedding": each view is its base embedding with `n_clusters` columns. A function takes two tables
        and returns their similarities.
    preprocessing : {"observed", "paper"}, default="observed"
        Kernels are centred and scaled to a unit diagonal: by the rows that a view has, or, as in the
        published experiments, by the complete data before `mask` hides rows (which lets them leak).
    init : {"aligned", "identity"}, default="aligned"
        First rotations: those that align every view with the prior, or none, as published. Without alignment
        the answer depends on the arbitrary signs of eigenvectors.
    max_iter : int, default=100
        Limit of sweeps.
    tol : float, default=1e-4
        Stop when the objective grows by less than this share.
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
        The consensus embedding H, with orthonormal columns.
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
    Where this differs from the paper and its program: rows are compared, centred and scaled inside what a
    view has, where the program centres complete data before hiding them; rotations start aligned with the
    prior, so that the answer no longer depends on signs that an eigensolver happens to return; the default
    prior is one in which absent rows are not zero; views of which fewer rows are missing (or present) than
    there are clusters are allowed; eigenvectors without an eigenvalue, which could be any, are zero.

    From 300 instances on, kernels are held in single precision once they are centred and scaled (not for
    ``prior="mkkm"``), and eigenvectors are found to a residual of 1e-6 of the largest eigenvalue.

    A linear, cosine or narrow quadratic kernel never becomes an n x n matrix. Other kernels of features do
    up to 4000 rows of a view; beyond, a Nystroem map on 300 landmarks stands for them (and a function of
    your own is refused).

    References
    ----------
    X. Liu, M. Li, C. Tang, J. Xia, J. Xiong, L. Liu, M. Kloft, E. Zhu: Efficient and Effective Regularized
    Incomplete Multi-View Clustering. IEEE TPAMI 43(8), 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import EEIMVC
    >>> shape = np.array([[0.0, 0.1], [0.1, 0.0], [0.2, 0.1], [5.0, 5.1], [5.1, 5.0], [np.nan, np.nan]])
    >>> sound = np.array([[1.0], [np.nan], [1.1], [9.0], [9.1], [9.2]])
    >>> model = EEIMVC(n_clusters=2, random_state=0).fit({"shape": shape, "sound": sound})
    >>> model.labels_ == model.labels_[0]
    array([ True,  True,  True, False, False, False])
    >>> model.predict({"sound": [[1.2]]})[0] == model.labels_[0]
    np.True_
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
    def fit(self, X: Any, y: Any = None, *, mask: Any = None) -> EEIMVC:
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
            result = eeimvc(
                [base.h for base in bases],
                self.observed_,
                prior.h,
                regularization=self.regularization,
                init=self.init,
                max_iter=self.max_iter,
                tol=self.tol,
                progress=self._progress if self.verbose else None,
            )
            found = cluster_embedding(result.embedding, self.n_clusters, n_init=self.n_init, rng=rng)
        self._check_converged(result.converged, self.max_iter)
        self._centers = found.centers[self._answer(found.labels)]
        self._projections = [
            (b * base.projection @ w + self.regularization * of_prior) @ result.leveling
            for base, b, w, of_prior in zip(
                bases, result.weights, result.rotations, prior.projections, strict=True
            )
        ]
        self._kernels = [forget(kernel) for kernel in kernels]
        self.embedding_ = result.embedding
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
        weighed and added as learned, and the nearest centre is taken.

        Parameters
        ----------
        X : list, tuple or dict of tables, or one table
            The views of the new instances: a dict may leave views out, a list has None for them, and a row of
            NaN is absent. With ``kernel="precomputed"``, similarities to the fitted instances.
        mask : (n_new, n_views) array of bool, default=None
            False where the instance is absent from the view.
        """
        return nearest(embed_new(self, X, mask), self._centers)
