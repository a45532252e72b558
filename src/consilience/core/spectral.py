"""Extreme eigenvectors with a fixed start."""

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from scipy.sparse.linalg import svds

from consilience.core.stiefel import orthonormalize
from consilience.core.tables import contingency, gather, indicator

# Up to this size a dense eigenproblem takes a second or less and has no convergence to worry about.
_DENSE = 2500


def leading_eigenpairs(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a dense symmetric matrix, descending, and their eigenvectors."""
    n = len(matrix)
    values, vectors = linalg.eigh(matrix, subset_by_index=[n - k, n - 1])
    if len(values) < k:
        # Where many eigenvalues are nearly equal, LAPACK's subset drivers can return fewer than asked.
        values, vectors = (part[..., n - k :] for part in linalg.eigh(matrix, driver="evd"))
    return values[::-1], np.ascontiguousarray(vectors[:, ::-1])


def left_singular_vectors(
    codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray, k: int, scale: np.ndarray | None = None
) -> np.ndarray:
    """Leading left singular vectors of ``W^(1/2) B diag(scale)``, B the stacked indicator: ``H^T W H = I``.

    Without `scale` they are the leading eigenvectors of the zero-filled co-association. That matrix is never
    built: they come through the smaller of two Gram matrices, or iteratively where both are large. Where the
    rank is below `k`, any orthonormal completion would do; a fixed one is taken.
    """
    n_rows, n_columns = len(codes), int(offsets[-1])
    scale = np.ones(n_columns) if scale is None else scale
    if n_rows <= min(n_columns, _DENSE) or (k > n_columns and n_rows <= _DENSE):
        return _through_rows(codes, offsets, weights, k, scale)
    if n_columns <= _DENSE:
        h = _through_columns(codes, offsets, weights, k, scale)
    else:
        h = _iteratively(codes, offsets, weights, k, scale)
    return h if h.shape[1] == k else _complete(h, weights, k)


def _through_rows(
    codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray, k: int, scale: np.ndarray
) -> np.ndarray:
    b = _scaled_indicator(codes, offsets, weights, scale)
    _, vectors = leading_eigenpairs((b @ b.T).toarray(), k)
    return vectors / np.sqrt(weights)[:, None]


def _through_columns(
    codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray, k: int, scale: np.ndarray
) -> np.ndarray:
    return gather(codes, offsets, singular_map(contingency(codes, offsets, weights), k, scale))


def singular_map(gram: np.ndarray, k: int, scale: np.ndarray) -> np.ndarray:
    """T such that ``B T`` are the left singular vectors, from ``B^T W B``; narrower than k at low rank."""
    gram = gram * scale * scale[:, None]
    values, vectors = leading_eigenpairs(gram, min(k, len(gram)))
    found = values > 1e-10 * values[0]
    return scale[:, None] * vectors[:, found] / np.sqrt(values[found])


def _iteratively(
    codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray, k: int, scale: np.ndarray
) -> np.ndarray:
    b = _scaled_indicator(codes, offsets, weights, scale)
    start = np.random.RandomState(0).standard_normal(min(b.shape))
    vectors, values, _ = svds(b, k=k, v0=start, solver="arpack")
    return (vectors[:, values > 1e-5 * values.max()] / np.sqrt(weights)[:, None])[:, ::-1]


def _scaled_indicator(
    codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray, scale: np.ndarray
) -> sp.csr_array:
    return (sp.diags_array(np.sqrt(weights)) @ indicator(codes, offsets) @ sp.diags_array(scale)).tocsr()


def _complete(h: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    extra = np.random.RandomState(0).standard_normal((len(h), k - h.shape[1]))
    extra -= h @ (h.T @ (weights[:, None] * extra))
    return np.hstack([h, orthonormalize(extra, weights)])
