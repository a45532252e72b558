"""Late fusion incomplete multi-view clustering (LF-IMVC): base embeddings that may move."""

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
from consilience.multiview._late import align, leveling
from consilience.multiview._views import ViewsMixin, settled


class LFIMVCResult(NamedTuple):
    """What `lfimvc` learned."""

    embedding: np.ndarray  # H
    rotations: list[np.ndarray]  # W_p, per view
    moved: list[np.ndarray]  # H_p, per view
    objective: np.ndarray
    n_iter: int
    converged: bool


def lfimvc(
    bases: Sequence[np.ndarray],
    *,
    regularization: float,
    init: str,
    max_iter: int,
    tol: float,
    progress: Callable[[int, float], None] | None = None,
) -> LFIMVCResult:
    r"""Consensus of base embeddings, each of which may leave what its view said.

    .. math::
        \max \; tr(H^T \sum_p H_p W_p) + \lambda \sum_p tr(H_p^T \hat H_p^{(0)})

    over H and H_p with orthonormal columns and orthogonal W_p.

    Symbols: \hat H_p^(0) -> bases[p], zero on missing rows; lambda -> regularization; H -> embedding;
    W_p -> rotations[p]; H_p -> moved[p].
    Cost: instances x views x clusters^2 a sweep.
    """
    m, k = len(bases), bases[0].shape[1]
    hs = list(bases)
    ws = align(hs, None, k) if init == "aligned" else [np.eye(k)] * m
    ones = np.ones(len(hs[0]))
    objective: list[float] = []
    converged = False
    for iteration in range(max_iter):
        h = orthonormalize(sum(base @ w for base, w in zip(hs, ws, strict=True)), ones)
        ws = [polar_factor(base.T @ h) for base in hs]
        targets = [h @ w.T + regularization * base for w, base in zip(ws, bases, strict=True)]
        hs = [orthonormalize(target, ones) for target in targets]
        # tr(H^T H_p W_p) + lambda tr(H_p^T H_p0) of a view is tr(H_p^T target).
        objective.append(sum(float(np.vdot(h_p, x)) for h_p, x in zip(hs, targets, strict=True)))
        if progress:
            progress(iteration + 1, objective[-1])
        if settled(objective, tol):
            converged = True
            break
    return LFIMVCResult(h, ws, hs, np.array(objective), iteration + 1, converged)


class LFIMVC(ViewsMixin, BaseEstimator):
    """Late fusion incomplete multi-view clustering: one consensus of the embeddings of all views.

    Like :class:`EEIMVC`, but the base embeddings may move as a whole, also where they were observed, and all
    views count the same. Use it where single views are noisy and should be corrected by the others; prefer
    :class:`EEIMVC` where what was observed is to stay.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    regularization : float, default=1.0
        How strongly the embedding of a view is held to what was observed.
    kernel : {"rbf", "linear", "poly", "cosine", "precomputed", "embedding"} or callable, default="rbf"
        How the rows of a view are compared; see :class:`EEIMVC`.
    preprocessing : {"observed", "paper"}, default="observed"
        Kernels are centred and scaled by the rows that a view has, or by the complete data before `mask`
        hides rows, as in the published experiments.
    init : {"aligned", "identity"}, default="aligned"
        First rotations: those that align the views with what they share, or none, as published. Without
        alignment the answer depends on the arbitrary signs of eigenvectors.
    max_iter : int, default=200
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
    rotations_ : list of ndarray
        The rotation W_p of every view.
    imputed_ : list of ndarray
        The embedding H_p of every view after it moved, for all instances.
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
    The paper's formula is used: base embeddings have orthonormal columns. The authors' program gives their
    rows length one instead, which makes its regularisation stronger by the root of observed rows over
    clusters; and its published demonstration computes the embeddings from complete data. Rotations start
    aligned, so that the answer does not depend on the signs of eigenvectors.

    References
    ----------
    X. Liu, X. Zhu, M. Li, L. Wang, C. Tang, J. Yin, D. Shen, H. Wang, W. Gao: Late Fusion Incomplete
    Multi-View Clustering. IEEE TPAMI 41(10), 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import LFIMVC
    >>> shape = np.array([[0.0, 0.1], [0.1, 0.0], [0.2, 0.1], [5.0, 5.1], [5.1, 5.0], [np.nan, np.nan]])
    >>> sound = np.array([[1.0], [1.2], [1.1], [9.0], [9.1], [9.2]])
    >>> model = LFIMVC(n_clusters=2, random_state=0).fit({"shape": shape, "sound": sound})
    >>> model.labels_ == model.labels_[0]
    array([ True,  True,  True, False, False, False])
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn's name and form
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "regularization": [Interval(Real, 0, None, closed="left")],
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
        kernel: Any = "rbf",
        preprocessing: str = "observed",
        init: str = "aligned",
        max_iter: int = 200,
        tol: float = 1e-4,
        n_init: int = 10,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.regularization = regularization
        self.kernel = kernel
        self.preprocessing = preprocessing
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.verbose = verbose
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, mask: Any = None) -> LFIMVC:
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
            kernels = read_kernels(self, X, mask, rng, precise=False)
            bases = base_embeddings(kernels, self.n_clusters)
            result = lfimvc(
                [base.h for base in bases],
                regularization=self.regularization,
                init=self.init,
                max_iter=self.max_iter,
                tol=self.tol,
                progress=self._progress if self.verbose else None,
            )
            found = cluster_embedding(result.embedding, self.n_clusters, n_init=self.n_init, rng=rng)
        self._check_converged(result.converged, self.max_iter)
        self._centers = found.centers[self._answer(found.labels)]
        combined = sum(base.h @ w for base, w in zip(bases, result.rotations, strict=True))
        level = leveling(combined)
        self._projections = [
            base.projection @ w @ level for base, w in zip(bases, result.rotations, strict=True)
        ]
        self._kernels = [forget(kernel) for kernel in kernels]
        self.embedding_ = result.embedding
        self.rotations_ = result.rotations
        self.imputed_ = result.moved
        self.objective_ = result.objective
        self.n_iter_ = result.n_iter
        return self

    def predict(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """Clusters of new instances from whatever views they have.

        Each view embeds the new rows by their similarities to the fitted ones; the embeddings are rotated
        and added as learned, and the nearest centre is taken.

        Parameters
        ----------
        X : list, tuple or dict of tables, or one table
            The views of the new instances: a dict may leave views out, a list has None for them, and a row of
            NaN is absent. With ``kernel="precomputed"``, similarities to the fitted instances.
        mask : (n_new, n_views) array of bool, default=None
            False where the instance is absent from the view.
        """
        return nearest(embed_new(self, X, mask), self._centers)
