"""Steps that the late-fusion methods share: first rotations, missing rows, weights, priors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.core.kernels import Fill, Kernel, add_blocks, leading_eigenvectors
from consilience.core.stiefel import orthonormalize, polar_factor
from consilience.multiview._kernels import Base, extension
from consilience.multiview.mkkm import fill_absent, mkkm

_N_FILLS = 3  # more change the prior little


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
        return _find_prior(prior, kernels, [base.h for base in bases])
    given = np.array(prior, dtype=float)
    if given.shape != shape or not np.isfinite(given).all():
        raise ValueError(
            f"prior must be a finite array of shape {shape}, a row per instance and a column per cluster. "
            f"Got the shape {given.shape} instead{'' if given.shape != shape else ', not all finite'}. "
            "Hint: give the leading eigenvectors of a kernel over all instances, or 'imputed'."
        )
    return Prior(given, nothing)


def _find_prior(kind: str, kernels: Sequence[Kernel], hs: Sequence[np.ndarray]) -> Prior:
    """H_0 of the average kernel, absent rows zero or imputed, or of multiple kernel k-means."""
    k = hs[0].shape[1]
    if kind == "mkkm":
        result = mkkm(kernels, k, max_iter=100, tol=1e-3)
        shares = zip(result.mixture, kernels, strict=True)
        return Prior(result.found.vectors, [s * extension(kernel, result.found) for s, kernel in shares])
    total = add_blocks(kernels, np.ones(len(kernels)))
    found = leading_eigenvectors(kernels, k, start=common_directions(hs, k), total=total, precise=False)
    fills: list[Fill | None] = [None] * len(kernels)
    incomplete = any(len(kernel.rows) < kernel.n for kernel in kernels)
    for _ in range(_N_FILLS if kind == "imputed" and incomplete else 0):
        fills = fill_absent(kernels, found.vectors)
        found = leading_eigenvectors(kernels, k, fills=fills, start=found.vectors, total=total, precise=False)
    parts = zip(kernels, fills, strict=True)
    return Prior(found.vectors, [extension(kernel, found, fill) for kernel, fill in parts])


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
    values, vectors = np.linalg.eigh(stacked.T @ stacked)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    return stacked @ (vectors / np.sqrt(np.maximum(values, 1e-12 * max(values[0], 1e-300))))


def impute(u: np.ndarray) -> np.ndarray:
    """The nearest matrix with orthonormal columns, or rows where it is wide."""
    return polar_factor(u) if len(u) < u.shape[1] else orthonormalize(u, np.ones(len(u)))


def weigh(h: np.ndarray, hs: Sequence[np.ndarray], ws: Sequence[np.ndarray]) -> np.ndarray:
    """beta = v / ||v|| with v_p = tr(H^T H_p W_p), the best weights of norm one that are not negative."""
    v = np.array([float(np.einsum("pd,pd->", h, base @ w)) for base, w in zip(hs, ws, strict=True)])
    v = np.maximum(v, 0.0)
    norm = np.linalg.norm(v)
    # All zero only if no view says anything; then no weighting is better than another.
    return v / norm if norm > 0 else np.full(len(v), 1.0 / np.sqrt(len(v)))


def combine(
    hs: Sequence[np.ndarray],
    ws: Sequence[np.ndarray],
    beta: np.ndarray,
    prior: np.ndarray | None,
    regularization: float,
) -> np.ndarray:
    """T = sum_p beta_p H_p W_p + lambda H_0."""
    t = np.zeros_like(hs[0]) if prior is None else regularization * prior
    for h, w, b in zip(hs, ws, beta, strict=True):
        t += h @ (b * w)
    return t


def leveling(t: np.ndarray) -> np.ndarray:
    """(T^T T)^(-1/2), which makes rows of T rows of its polar factor; zero where T has no extent."""
    values, vectors = np.linalg.eigh(t.T @ t)
    floor = 1e-12 * max(float(values[-1]), np.finfo(float).tiny)
    return (vectors * np.where(values > floor, 1.0 / np.sqrt(np.maximum(values, floor)), 0.0)) @ vectors.T
