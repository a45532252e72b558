"""One-stage late fusion incomplete multi-view clustering (OS-LF-IMVC): labels inside the optimisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from consilience.core.discretize import fill_empty_clusters, label_sums
from consilience.core.parameters import parameters
from consilience.core.stiefel import polar_factor
from consilience.core.sweeps import Progress
from consilience.evidence.views import Views
from consilience.multiview.kernels import cluster_embedding
from consilience.multiview.late import LateFusion, common_directions, fuse_embeddings
from consilience.multiview.rows import shares_by_distance
from consilience.registry import About


class OSLFIMVCResult(NamedTuple):
    """What `oslfimvc` learned."""

    labels: np.ndarray  # Y
    centers: np.ndarray  # C, orthogonal
    embedding: np.ndarray  # T, the consensus
    weights: np.ndarray  # beta, per view
    rotations: list[np.ndarray]  # W_p, per view
    imputed: list[np.ndarray]  # H_p with the missing rows filled in, per view
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
    progress: Progress | None = None,
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
    k, ones = len(centers), np.ones(len(observed))
    labels = np.empty(len(observed), dtype=np.intp)

    def place(t: np.ndarray) -> np.ndarray:
        nonlocal labels, centers
        labels = (t @ centers.T).argmax(axis=1)
        centers = polar_factor(label_sums(t, ones, labels, k))
        return centers[labels]  # Y C

    _, weights, rotations, imputed, t, objective, n_iter, converged = fuse_embeddings(
        bases,
        observed,
        prior,
        place,
        regularization=regularization,
        init=init,
        max_iter=max_iter,
        tol=tol,
        progress=progress,
    )
    return OSLFIMVCResult(labels, centers, t, weights, rotations, imputed, objective, n_iter, converged)


@parameters
class OSLFIMVC(LateFusion):
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
    init : {"aligned", "identity"}, default="aligned"
        First rotations: those that align every view with the prior, or none, as published. Without
        alignment the answer depends on the arbitrary signs of eigenvectors.
    tol : float, default=1e-4
        Stop when the objective grows by less than this share.
    n_init : int, default=10
        Number of starts of the first k-means, of which the one of smallest inertia is kept.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The consensus T that the labels are read from.
    centers_ : ndarray of shape (n_clusters, n_clusters)
        The directions C of the clusters, orthogonal.
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

    about = About(
        use="labels inside the objective",
        avoid="unequal clusters",
        cost="as EEIMVC",
        paper="Zhang et al.: One-Stage Incomplete Multi-view Clustering via Late Fusion. ACM "
        "Multimedia, 2021.",
        linear=True,
    )

    def _merge(self, bases: list[np.ndarray], rng: np.random.RandomState) -> OSLFIMVCResult:
        first = common_directions(bases, self.n_clusters) if self.prior_ is None else self.prior_
        start = cluster_embedding(first, self.n_clusters, n_init=self.n_init, rng=rng)
        return oslfimvc(bases, self.observed_, self.prior_, polar_factor(start.centers), **self._fusing)

    def _cluster(self, result: OSLFIMVCResult, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        fit = np.einsum("pd,pd->p", result.embedding, result.centers[result.labels])
        return fill_empty_clusters(result.labels, fit, self.n_clusters), result.centers

    def _learn(self, result: OSLFIMVCResult, views: Views, order: np.ndarray) -> None:
        super()._learn(result, views, order)
        self.centers_ = self._centers

    def _nearest(self, h: np.ndarray) -> np.ndarray:
        return (h @ self.centers_.T).argmax(axis=1)

    def _shares(self, h: np.ndarray) -> np.ndarray:
        return shares_by_distance(h, self.centers_)
