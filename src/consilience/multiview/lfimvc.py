"""Late fusion incomplete multi-view clustering (LF-IMVC): base embeddings that may move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from consilience.core.kernels import Kernel
from consilience.core.parameters import Count, NonNegative, parameters
from consilience.core.stiefel import orthonormalize, polar_factor
from consilience.core.sweeps import Progress, Sweeps, settled
from consilience.multiview.kernels import (
    KernelMethod,
    KernelOrEmbedding,
    base_embeddings,
)
from consilience.multiview.late import Init, align, rotate, whitening
from consilience.registry import About


class LFIMVCResult(NamedTuple):
    """What `lfimvc` learned."""

    embedding: np.ndarray  # H
    rotations: list[np.ndarray]  # W_p, per view
    imputed: list[np.ndarray]  # H_p, moved, per view
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
    progress: Progress | None = None,
) -> LFIMVCResult:
    r"""Consensus of base embeddings, each of which may leave what its view said.

    .. math::
        \max \; tr(H^T \sum_p H_p W_p) + \lambda \sum_p tr(H_p^T \hat H_p^{(0)})

    over H and H_p with orthonormal columns and orthogonal W_p.

    Symbols: \hat H_p^(0) -> bases[p], zero on missing rows; lambda -> regularization; H -> embedding;
    W_p -> rotations[p]; H_p -> imputed[p].
    Cost: instances x views x clusters^2 a sweep.
    """
    m, k = len(bases), bases[0].shape[1]
    hs = list(bases)
    ws = align(hs, None, k) if init == "aligned" else [np.eye(k)] * m
    ones = np.ones(len(hs[0]))
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        h = orthonormalize(np.sum(rotate(hs, ws), axis=0), ones)
        ws = [polar_factor(base.T @ h) for base in hs]
        targets = [h @ w.T + regularization * base for w, base in zip(ws, bases, strict=True)]
        hs = [orthonormalize(target, ones) for target in targets]
        # tr(H^T H_p W_p) + lambda tr(H_p^T H_p0) of a view is tr(H_p^T target).
        sweeps.add(sum(float(np.vdot(h_p, x)) for h_p, x in zip(hs, targets, strict=True)))
        sweeps.converged = settled(sweeps.objective, tol)
    return LFIMVCResult(h, ws, hs, *sweeps.outcome)


@parameters
class LFIMVC(KernelMethod):
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
    init : {"aligned", "identity"}, default="aligned"
        First rotations: those that align the views with what they share, or none, as published. Without
        alignment the answer depends on the arbitrary signs of eigenvectors.
    tol : float, default=1e-4
        Stop when the objective grows by less than this share.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The consensus embedding H, with orthonormal columns.
    rotations_ : list of ndarray
        The rotation W_p of every view.
    view_embeddings_ : list of ndarray
        The embedding H_p of every view after it moved, for all instances.
    objective_ : ndarray of shape (n_iter,)
        The objective after every sweep; it never falls.

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

    about = About(
        use="noisy single views",
        avoid="what was observed is to stay",
        cost="as EEIMVC",
        paper="Liu et al.: Late Fusion Incomplete Multi-View Clustering. IEEE TPAMI, 2019.",
        linear=True,
    )

    precise = False

    regularization: NonNegative = 1.0
    kernel: KernelOrEmbedding = "rbf"
    init: Init = "aligned"
    max_iter: Count = 200

    def _fuse(
        self, kernels: list[Kernel], rng: np.random.RandomState
    ) -> tuple[LFIMVCResult, list[np.ndarray]]:
        bases = base_embeddings(kernels, self.n_clusters)
        hs = [base.h for base in bases]
        result = lfimvc(
            hs,
            regularization=self.regularization,
            init=self.init,
            **self._sweeping,
        )
        white = whitening(np.sum(rotate(hs, result.rotations), axis=0))
        parts = zip(bases, result.rotations, strict=True)
        return result, [base.projection @ w @ white for base, w in parts]
