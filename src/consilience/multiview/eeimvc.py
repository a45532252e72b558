"""Efficient and effective incomplete multi-view clustering (EE-IMVC, EE-R-IMVC): late fusion of views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consilience.core.kernels import Kernel
from consilience.core.parameters import parameters
from consilience.core.stiefel import orthonormalize
from consilience.core.sweeps import Progress
from consilience.multiview.late import Fused, LateFusion, fuse_embeddings, whitening
from consilience.registry import About


def eeimvc(
    bases: Sequence[np.ndarray],
    observed: np.ndarray,
    prior: np.ndarray | None,
    *,
    regularization: float,
    init: str,
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
) -> Fused:
    r"""Consensus of base embeddings of which rows are missing, near a prior.

    .. math::
        \max \; tr(H^T \sum_p \beta_p H_p W_p) + \lambda \, tr(H^T H_0) \qquad (6)

    over H with orthonormal columns, orthogonal W_p, the missing rows of H_p with orthonormal columns (rows,
    where fewer than clusters are missing) and beta >= 0 of norm one. The observed rows of H_p stay.

    Symbols: H_p -> bases[p], zero on missing rows; H_0 -> prior; lambda -> regularization; H -> embedding;
    beta -> weights; W_p -> rotations[p].
    Cost: instances x views x clusters^2 a sweep.
    """
    ones = np.ones(len(observed))
    return fuse_embeddings(
        bases,
        observed,
        prior,
        lambda t: orthonormalize(t, ones),
        regularization=regularization,
        init=init,
        max_iter=max_iter,
        tol=tol,
        progress=progress,
    )


@parameters
class EEIMVC(LateFusion):
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
    tol : float, default=1e-4
        Stop when the objective grows by less than this share.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The consensus embedding H, with orthonormal columns.
    view_weights_ : ndarray of shape (n_views,)
        The weight beta of every view; their squares sum to one.
    rotations_ : list of ndarray
        The rotation W_p of every view.
    view_embeddings_ : list of ndarray
        The base embedding H_p of every view, missing rows filled in.
    prior_ : ndarray of shape (n_instances, n_clusters) or None
        The prior H_0.
    objective_ : ndarray of shape (n_iter,)
        The objective after every sweep; it never falls.

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

    about = About(
        use="whole views missing, kernels or embeddings",
        avoid="clear clusters in two views (then `prior=None`)",
        cost="instances x views x clusters^2 a sweep",
        paper="Liu et al.: Efficient and Effective Regularized Incomplete Multi-View Clustering. IEEE "
        "TPAMI, 2021.",
        linear=True,
        featured=True,
    )

    def _merge(self, bases: list[np.ndarray], rng: np.random.RandomState) -> Fused:
        return eeimvc(bases, self.observed_, self.prior_, **self._fusing)

    def _fuse(self, kernels: list[Kernel], rng: np.random.RandomState) -> tuple[Fused, list[np.ndarray]]:
        result, projections = super()._fuse(kernels, rng)
        white = whitening(result.consensus)  # rows of T become rows of H
        return result, [projection @ white for projection in projections]
