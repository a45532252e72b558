"""What the late-fusion methods share: priors, first rotations, and sweeps over missing rows and weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience._support.sklearn import StrOptions
from consilience.core.kernels import Kernel, leading_eigenvectors, multiply, project
from consilience.core.parameters import NonNegative, parameters
from consilience.core.stiefel import orthonormalize, polar_factor
from consilience.core.sweeps import Progress, Sweeps, settled
from consilience.multiview.kernels import Base, KernelMethod, KernelOrEmbedding, base_embeddings, extension
from consilience.multiview.mkkm import mkkm

Init = Literal["aligned", "identity"]

_N_SWEEPS = 4  # on the way to convergence rows that few views have begin to follow noise
_SHRINKAGE = 0.05  # of the mean weight of a direction: what few views hardly tell about a row stays small
_RIDGE = 1e-3  # keeps the loadings of a view finite where the embedding lies in its absent rows alone


@parameters
class LateFusion(KernelMethod):
    """Base of the methods that merge an embedding of each view, near a prior."""

    regularization: NonNegative = 1.0
    prior: Annotated[Any, StrOptions({"imputed", "average", "mkkm"}), "array-like", None] = "imputed"
    kernel: KernelOrEmbedding = "rbf"
    init: Init = "aligned"

    @property
    def precise(self) -> bool:  # type: ignore[override]
        """Only the weights of multiple kernel k-means are that sensitive."""
        return isinstance(self.prior, str) and self.prior == "mkkm"

    @property
    def _fusing(self) -> dict[str, Any]:
        """What every solver of such a method takes."""
        return {"regularization": self.regularization, "init": self.init, **self._sweeping}

    def _merge(self, bases: list[np.ndarray], rng: np.random.RandomState) -> Any:
        """What is learned from the base embeddings and ``prior_``."""
        raise TypeError(f"{type(self).__name__} does not say how embeddings are merged")

    def _fuse(self, kernels: list[Kernel], rng: np.random.RandomState) -> tuple[Any, list[np.ndarray]]:
        bases = base_embeddings(kernels, self.n_clusters)
        prior = read_prior(self.prior, kernels, bases)
        self.prior_ = prior.h
        result = self._merge([base.h for base in bases], rng)
        parts = zip(bases, result.weights, result.rotations, prior.projections, strict=True)
        return result, [
            b * base.projection @ w + self.regularization * of_prior for base, b, w, of_prior in parts
        ]


class Fused(NamedTuple):
    """What `fuse_embeddings` learned."""

    embedding: np.ndarray  # H
    weights: np.ndarray  # beta, per view
    rotations: list[np.ndarray]  # W_p, per view
    imputed: list[np.ndarray]  # H_p with the missing rows filled in, per view
    consensus: np.ndarray  # T = sum_p beta_p H_p W_p + lambda H_0
    objective: np.ndarray
    n_iter: int
    converged: bool


def fuse_embeddings(
    bases: Sequence[np.ndarray],
    observed: np.ndarray,
    prior: np.ndarray | None,
    place: Callable[[np.ndarray], np.ndarray],
    *,
    regularization: float,
    init: str,
    max_iter: int,
    tol: float,
    progress: Progress | None = None,
) -> Fused:
    """Sweeps over ``H = place(T)``, rotations, missing rows and weights; numbers are those of EE-IMVC."""
    k, m = bases[0].shape[1], len(bases)
    hs = [h.copy() for h in bases]
    missing = [np.flatnonzero(~observed[:, p]) for p in range(m)]
    beta = np.full(m, 1.0 / np.sqrt(m))
    ws = align(hs, prior, k) if init == "aligned" else [np.eye(k)] * m
    t = combine(rotate(hs, ws), beta, prior, regularization)
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        h = place(t)  # Eq. (7)
        ws = [polar_factor(base.T @ h) for base in hs]  # Eq. (8)
        for base, w, rows in zip(hs, ws, missing, strict=True):
            if len(rows):
                base[rows] = impute(h[rows] @ w.T)  # Eq. (9)
        turned = rotate(hs, ws)
        beta = weigh(h, turned)  # Eq. (10)
        t = combine(turned, beta, prior, regularization)
        sweeps.add(float(np.einsum("pd,pd->", h, t)))
        sweeps.converged = settled(sweeps.objective, tol)
    return Fused(h, beta, ws, hs, t, *sweeps.outcome)


class Prior(NamedTuple):
    """An embedding H_0 of all instances (or None), and how each view continues it to new rows."""

    h: np.ndarray | None
    projections: list[np.ndarray]


def read_prior(prior: Any, kernels: Sequence[Kernel], bases: Sequence[Base]) -> Prior:
    """The prior that a user names or gives; one that is given is not continued to new rows."""
    shape = bases[0].h.shape
    nothing = [np.zeros(base.projection.shape) for base in bases]
    if prior is None:
        return Prior(None, nothing)
    if isinstance(prior, str):
        return _find_prior(prior, kernels, bases)
    given = np.array(prior, dtype=float)
    if given.shape != shape or not np.isfinite(given).all():
        raise InputError(
            f"prior must be a finite array of shape {shape}, a row per instance and a column per cluster. "
            f"Got the shape {given.shape} instead{'' if given.shape != shape else ', not all finite'}.",
            hint="give the leading eigenvectors of a kernel over all instances, or 'imputed'.",
        )
    return Prior(given, nothing)


def _find_prior(kind: str, kernels: Sequence[Kernel], bases: Sequence[Base]) -> Prior:
    """H_0 of multiple kernel k-means, of the average kernel, or of what the views have of each row."""
    k = bases[0].h.shape[1]
    if kind == "mkkm":
        result = mkkm(kernels, k, max_iter=100, tol=1e-3)
        return Prior(result.embedding, result.extend(kernels))
    start = common_directions([base.h * np.sqrt(base.values) for base in bases], k)
    if kind == "imputed" and any(len(kernel.rows) < kernel.n for kernel in kernels):
        return factorize(kernels, start)
    found = leading_eigenvectors(kernels, k, start=start, precise=False)
    return Prior(found.vectors, [extension(kernel, found) for kernel in kernels])


def factorize(kernels: Sequence[Kernel], h: np.ndarray) -> Prior:
    r"""An embedding that explains of every view the rows that it has, from a start.

    .. math:: \min_{H, B_p} \sum_p \|\Phi_p - H_{o_p} B_p\|^2

    :math:`\Phi_p` are the rows of :math:`K_p` in feature space and :math:`o_p` the instances that view p has.
    By turns: given H, :math:`B_p = G_p^{-1} H_{o_p}^T \Phi_p` with :math:`G_p = H_{o_p}^T H_{o_p}`; given
    all B_p, a row of H solves :math:`h_i (\sum_p B_p B_p^T + r I) = \sum_p \Phi_{p,i} B_p^T` over the
    views that have it. Nothing stands for an absent row. Where no row is absent, the leading eigenvectors of
    the sum of the kernels stay as they are.

    Symbols: H -> h, the start and the answer; r -> a share of the mean eigenvalue of all B_p B_p^T.
    Cost: a sweep is a product of every kernel with k vectors, and an inverse of k x k for every pattern of
    present views.
    """
    seen = np.zeros((len(h), len(kernels)))
    for p, kernel in enumerate(kernels):
        seen[kernel.rows, p] = 1.0
    patterns, pattern, sizes = np.unique(seen, axis=0, return_inverse=True, return_counts=True)
    groups = np.split(np.argsort(pattern.ravel(), kind="stable"), np.cumsum(sizes)[:-1])
    for _ in range(_N_SWEEPS):
        views = [_load(kernel, h) for kernel in kernels]
        solve = _solvers(np.array([view.gram for view in views]))
        pulls, placed = np.sum([view.pulls for view in views], axis=0), np.empty_like(h)
        for inverse, rows in zip(solve(patterns), groups, strict=True):
            placed[rows] = pulls[rows] @ inverse
        white = whitening(placed)
        h = placed @ white
    everywhere = solve(np.ones((1, len(kernels))))[0] @ white
    parts = zip(kernels, views, strict=True)
    return Prior(h, [project(kernel, view.coefficients) @ everywhere for kernel, view in parts])


class Loadings(NamedTuple):
    """How a view is explained by H: by B = coefficients^T Phi, over the rows that it has."""

    coefficients: np.ndarray  # H G^(-1)
    pulls: np.ndarray  # Phi B^T, zero on absent rows
    gram: np.ndarray  # B B^T


def _load(kernel: Kernel, h: np.ndarray) -> Loadings:
    own = np.zeros_like(h)
    own[kernel.rows] = h[kernel.rows]
    coefficients = own @ np.linalg.inv(own.T @ own + _RIDGE * np.eye(h.shape[1]))
    pulls = multiply(kernel, coefficients)
    return Loadings(coefficients, pulls, coefficients.T @ pulls)


def _solvers(grams: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """For each pattern of present views, the inverse that places its rows."""
    k = grams.shape[1]
    mean = float(np.trace(grams.sum(axis=0))) / k
    floor = max(_SHRINKAGE * mean, np.finfo(float).tiny) * np.eye(k)
    return lambda patterns: np.linalg.inv(np.tensordot(patterns, grams, axes=1) + floor)


def align(hs: Sequence[np.ndarray], prior: np.ndarray | None, k: int) -> list[np.ndarray]:
    """W_p that align every view with the prior, or with the directions that the views share.

    Signs of eigenvectors, and rotations where eigenvalues are equal, are arbitrary; without alignment the
    first consensus adds columns of different views as they happen to come.
    """
    reference = common_directions(hs, k) if prior is None else prior
    return [polar_factor(h.T @ reference) for h in hs]


def common_directions(hs: Sequence[np.ndarray], k: int) -> np.ndarray:
    """Leading left singular vectors of all base embeddings side by side."""
    stacked = np.hstack(hs)
    return stacked @ common_map(stacked.T @ stacked, k)


def common_map(gram: np.ndarray, k: int) -> np.ndarray:
    """What takes a table with this Gram matrix to its leading left singular vectors."""
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    return vectors / np.sqrt(np.maximum(values, 1e-12 * max(values[0], 1e-300)))


def impute(u: np.ndarray) -> np.ndarray:
    """The nearest matrix with orthonormal columns, or rows where it is wide."""
    return polar_factor(u) if len(u) < u.shape[1] else orthonormalize(u, np.ones(len(u)))


def rotate(hs: Sequence[np.ndarray], ws: Sequence[np.ndarray]) -> list[np.ndarray]:
    """H_p W_p of every view."""
    return [h @ w for h, w in zip(hs, ws, strict=True)]


def weigh(h: np.ndarray, turned: Sequence[np.ndarray]) -> np.ndarray:
    """beta = v / ||v|| with v_p = tr(H^T H_p W_p), the best weights of norm one that are not negative."""
    return unit_weights([float(np.einsum("pd,pd->", h, part)) for part in turned])


def unit_weights(agreement: Sequence[float]) -> np.ndarray:
    """Weights of norm one in proportion to these numbers, or to zero where they are negative."""
    v = np.maximum(agreement, 0.0)
    norm = np.linalg.norm(v)
    # All zero only if no view says anything; then no weighting is better than another.
    return v / norm if norm > 0 else np.full(len(v), 1.0 / np.sqrt(len(v)))


def combine(
    turned: Sequence[np.ndarray], beta: np.ndarray, prior: np.ndarray | None, regularization: float
) -> np.ndarray:
    """T = sum_p beta_p H_p W_p + lambda H_0."""
    t = np.zeros_like(turned[0]) if prior is None else regularization * prior
    for part, b in zip(turned, beta, strict=True):
        t += b * part
    return t


def whitening(t: np.ndarray) -> np.ndarray:
    """(T^T T)^(-1/2), which makes rows of T rows of its polar factor; zero where T has no extent."""
    return inverse_root(t.T @ t)


def inverse_root(gram: np.ndarray) -> np.ndarray:
    """G^(-1/2) of a Gram matrix; zero in directions in which it has nothing but rounding errors."""
    values, vectors = np.linalg.eigh(gram)
    floor = 1e-12 * max(float(values[-1]), np.finfo(float).tiny)
    return (vectors * np.where(values > floor, 1.0 / np.sqrt(np.maximum(values, floor)), 0.0)) @ vectors.T
