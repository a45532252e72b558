"""Multiple kernel k-means (MKKM): one weighted kernel from several, absent rows imputed beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from consilience.core.eigen import Eigenpairs
from consilience.core.kernels import (
    Fill,
    Kernel,
    absent,
    as_matrix,
    complete_kernel,
    leading_eigenvectors,
    multiply,
    trace,
)
from consilience.core.parameters import NonNegative, parameters
from consilience.core.sweeps import Progress, Sweeps, settled
from consilience.multiview.kernels import KernelMethod, extension
from consilience.registry import About

_RIDGE = 1e-3  # keeps the imputation of absent rows finite where the embedding lies in them alone
_N_NEIGHBORS = 7


class MKKMResult(NamedTuple):
    """What `mkkm` learned."""

    found: Eigenpairs  # H and its eigenvalues in the sum of kernels
    mixture: np.ndarray  # the factors theta^2 of that sum, per view
    fills: list[Fill | None]  # how absent rows followed from the others in it
    weights: np.ndarray  # theta, per view
    objective: np.ndarray
    n_iter: int
    converged: bool

    @property
    def embedding(self) -> np.ndarray:
        """H."""
        return self.found.vectors

    def extend(self, kernels: Sequence[Kernel]) -> list[np.ndarray]:
        """How each view continues H to new rows."""
        parts = zip(self.mixture, kernels, self.fills, strict=True)
        return [s * extension(kernel, self.found, fill) for s, kernel, fill in parts]


def mkkm(
    kernels: Sequence[Kernel],
    n_clusters: int,
    *,
    fills: Sequence[Fill | None] | None = None,
    refill: bool = False,
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
) -> MKKMResult:
    r"""Embedding and weights of kernels in turn.

    .. math::
        \min_{H, \theta} \; tr\bigl(\sum_p \theta_p^2 K_p (I - H H^T)\bigr) \quad
        s.t. \; H^T H = I, \; \theta \ge 0, \; \sum_p \theta_p = 1

    With `refill`, absent rows are put where H explains them best after every step (MKKM-IK).

    Symbols: K_p -> kernels[p], completed by fills[p]; H -> found.vectors; theta -> weights.
    Cost: some tens of products of every kernel with n_clusters + 4 vectors a sweep.
    """
    m = len(kernels)
    fills = [None] * m if fills is None else list(fills)
    traces = _traces(kernels, fills)
    theta = np.full(m, 1.0 / m)
    start = None
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        mixture, used = theta**2, fills
        found = leading_eigenvectors(kernels, n_clusters, weights=mixture, fills=used, start=start)
        start = found.vectors
        if refill:
            fills = fill_absent(kernels, found.vectors)
            traces = _traces(kernels, fills)
        residuals = unexplained(kernels, fills, traces, found.vectors)
        theta = update_weights(residuals, traces)
        sweeps.add(float(theta**2 @ residuals))
        sweeps.converged = settled(sweeps.objective, tol)
    return MKKMResult(found, mixture, used, theta, *sweeps.outcome)


def _traces(kernels: Sequence[Kernel], fills: Sequence[Fill | None]) -> np.ndarray:
    return np.array([trace(kernel, fill) for kernel, fill in zip(kernels, fills, strict=True)])


def unexplained(
    kernels: Sequence[Kernel], fills: Sequence[Fill | None], traces: np.ndarray, h: np.ndarray
) -> np.ndarray:
    """a_p = tr(K_p) - tr(H^T K_p H), what the embedding leaves of each kernel."""
    explained = [
        float(np.einsum("pd,pd->", h, multiply(kernel, h, fill)))
        for kernel, fill in zip(kernels, fills, strict=True)
    ]
    # A kernel of rank k is explained in full, up to rounding errors that would be its weight's denominator.
    return np.maximum(traces - np.array(explained), 1e-12 * traces)


def update_weights(residuals: np.ndarray, traces: np.ndarray) -> np.ndarray:
    """theta_p proportional to 1 / a_p: the minimum of sum theta_p^2 a_p on the simplex."""
    speaks = traces > 0  # a view that tells nothing apart leaves nothing, and would get all the weight
    if not speaks.any():
        return np.full(len(traces), 1.0 / len(traces))
    inverse = np.where(speaks, 1.0 / np.where(speaks, residuals, 1.0), 0.0)
    return inverse / inverse.sum()


# --- absent rows -------------------------------------------------------------------------------------


def fill_by_mean(kernel: Kernel) -> Fill:
    """Absent rows at the mean of those that are there."""
    n = len(kernel.rows)
    return Fill(np.ones((kernel.n - n, 1)), np.full((1, n), 1.0 / n))


def fill_by_embedding(kernel: Kernel, h: np.ndarray) -> Fill:
    r"""Absent rows u where they leave least of the kernel unexplained by H, given the rows o.

    :math:`K_{ou} = K_{oo} A, \; A = -L_{ou} (L_{uu} + r I)^{-1}, \; L = I - H H^T`. By the push-through
    identity :math:`A = H_o ((1 + r) I - H_u^T H_u)^{-1} H_u^T`: no inverse larger than k x k, no n x n.
    """
    seen, lost = h[kernel.rows], h[absent(kernel)]
    inner = (1.0 + _RIDGE) * np.eye(h.shape[1]) - lost.T @ lost
    return Fill(np.linalg.solve(inner, lost.T).T, seen.T)


def fill_absent(kernels: Sequence[Kernel], h: np.ndarray) -> list[Fill | None]:
    """`fill_by_embedding` for every kernel that lacks rows."""
    return [fill_by_embedding(kernel, h) if len(kernel.rows) < kernel.n else None for kernel in kernels]


def fill_by_neighbors(kernels: Sequence[Kernel]) -> list[Kernel]:
    """Absent rows as the mean of neighbouring rows of the other kernels' average, neighbours by that average.

    As published; the result need not be positive semidefinite. Needs all pairs of instances.
    """
    n = kernels[0].n
    whole = np.zeros((len(kernels), n, n))
    for matrix, kernel in zip(whole, kernels, strict=True):
        matrix[np.ix_(kernel.rows, kernel.rows)] = as_matrix(kernel)
    total = whole.sum(axis=0)
    out = []
    for matrix, kernel in zip(whole, kernels, strict=True):
        lost = absent(kernel)
        if not len(lost):
            out.append(complete_kernel(matrix, kernel))
            continue
        others = (total - matrix) / (len(kernels) - 1)
        near = np.argsort(euclidean_distances(others[lost], others), axis=1, kind="stable")
        filled = matrix.copy()
        for j, neighbors in zip(lost, near[:, 1 : _N_NEIGHBORS + 1], strict=True):
            filled[j] = filled[:, j] = others[neighbors].mean(axis=0)
        out.append(complete_kernel(0.5 * (filled + filled.T), kernel))
    return out


def impute(
    kernels: Sequence[Kernel], n_clusters: int, imputation: str
) -> tuple[list[Kernel], list[Fill | None]]:
    """Kernels to learn from, and how their absent rows follow."""
    m = len(kernels)
    if imputation == "knn":
        return fill_by_neighbors(kernels), [None] * m
    if imputation == "alignment":
        return list(kernels), fill_absent(kernels, leading_eigenvectors(kernels, n_clusters).vectors)
    if imputation == "mean":
        return list(kernels), [
            fill_by_mean(kernel) if len(kernel.rows) < kernel.n else None for kernel in kernels
        ]
    return list(kernels), [None] * m


@parameters
class MKKM(KernelMethod):
    """Multiple kernel k-means: cluster by one weighted sum of the kernels of all views.

    Rows that a view lacks are imputed first, in one of four ways. It is the classic that the late-fusion
    methods are compared with, and the right choice where it wins on your data; but mind its weights: a kernel
    weighs more the better few directions explain it, so a view that is nearly of low rank, or that lacks many
    rows, can take all the weight. Prefer :class:`EEIMVC` where views differ in that.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    imputation : {"zero", "mean", "knn", "alignment"}, default="zero"
        Absent rows of a kernel: zero; at the mean of the rows that are there; the mean of the seven nearest
        rows of the other kernels (all pairs of instances, at most 4000); or where the embedding of the
        average kernel puts them.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, n_clusters)
        The embedding H, with orthonormal columns.
    view_weights_ : ndarray of shape (n_views,)
        The weight theta of every view; they sum to one.
    objective_ : ndarray of shape (n_iter,)
        The objective after every sweep; it never grows.

    Notes
    -----
    A view that tells no two instances apart has weight zero (the formula would give it all). Imputation by
    mean and by alignment is written as a rule that combines the rows that are there, so neither needs an
    n x n matrix; the published formula for the latter inverts one.

    References
    ----------
    H.-C. Huang, Y.-Y. Chuang, C.-S. Chen: Multiple Kernel Fuzzy Clustering. IEEE TFS 20(1), 2012.
    M. Gonen, A. A. Margolin: Localized Data Fusion for Kernel k-Means Clustering with Application to Cancer
    Biology. NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import MKKM
    >>> shape = np.array([[0.0, 0.1], [0.1, 0.0], [0.2, 0.1], [5.0, 5.1], [5.1, 5.0], [np.nan, np.nan]])
    >>> sound = np.array([[1.0], [1.2], [1.1], [9.0], [9.1], [9.2]])
    >>> model = MKKM(n_clusters=2, imputation="mean", random_state=0).fit({"shape": shape, "sound": sound})
    >>> model.labels_ == model.labels_[0]
    array([ True,  True,  True, False, False, False])
    """

    about = About(
        use="baseline of the kernel methods",
        avoid="for work",
        cost="products with every kernel a sweep",
        paper="Huang, Chuang, Chen: Multiple Kernel Fuzzy Clustering. IEEE TFS, 2012.",
        linear=True,
    )

    imputation: Literal["zero", "mean", "knn", "alignment"] = "zero"
    tol: NonNegative = 1e-3

    def _fuse(self, kernels: list[Kernel], rng: np.random.RandomState) -> tuple[MKKMResult, list[np.ndarray]]:
        if self.imputation == "knn":
            self._check_pairs(kernels[0].n, "imputation='knn'")
        completed, fills = impute(kernels, self.n_clusters, self.imputation)
        result = mkkm(
            completed,
            self.n_clusters,
            fills=fills,
            **self._sweeping,
        )
        return result, result.extend(kernels)
