"""Multiple kernel k-means with incomplete kernels (MKKM-IK): impute and cluster together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consilience.core.kernels import Kernel
from consilience.core.parameters import parameters
from consilience.core.sweeps import Progress
from consilience.multiview.kernels import KernelMethod
from consilience.multiview.mkkm import MKKMResult, mkkm
from consilience.registry import About


def mkkmik(
    kernels: Sequence[Kernel],
    n_clusters: int,
    *,
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
) -> MKKMResult:
    r"""Embedding, weights and absent rows of kernels in turn.

    .. math::
        \min_{H, \theta, K_p} \; tr\bigl(\sum_p \theta_p^2 K_p (I - H H^T)\bigr) \quad
        s.t. \; H^T H = I, \; \theta \ge 0, \; \sum_p \theta_p = 1, \; K_p \succeq 0

    where the similarities of observed rows stay. Absent rows start at zero.

    Symbols: K_p -> kernels[p], completed by fills[p]; H -> found.vectors; theta -> weights.
    Cost: some tens of products of every kernel with n_clusters + 4 vectors a sweep; the imputed rows are
    never written out (the published form inverts and stores n x n matrices).
    """
    return mkkm(kernels, n_clusters, refill=True, max_iter=max_iter, tol=tol, progress=progress)


@parameters
class MKKMIK(KernelMethod):
    """Multiple kernel k-means with incomplete kernels: absent rows are imputed while clustering.

    It alternates between the embedding of a weighted sum of kernels, the weights, and the similarities of
    absent rows, which are put where that embedding explains them best. Use it to compare, or where a single
    kernel over all instances is wanted; mind the weights as in :class:`MKKM`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The embedding H, with orthonormal columns.
    view_weights_ : ndarray of shape (n_views,)
        The weight theta of every view; they sum to one.

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

    about = About(
        use="one kernel over all instances",
        avoid="for work",
        cost="products with every kernel a sweep",
        paper="Liu et al.: Multiple Kernel k-Means with Incomplete Kernels. AAAI, 2017.",
        linear=True,
    )

    def _fuse(self, kernels: list[Kernel], rng: np.random.RandomState) -> tuple[MKKMResult, list[np.ndarray]]:
        result = mkkmik(kernels, self.n_clusters, **self._sweeping)
        return result, result.extend(kernels)
