"""Leading singular vectors of a table of base clusters."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from consilience.core.eigen import DENSE, leading_eigenpairs
from consilience.core.stiefel import orthonormalize
from consilience.core.tables import contingency, gather, indicator


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
    if n_rows <= min(n_columns, DENSE) or (k > n_columns and n_rows <= DENSE):
        return _through_rows(codes, offsets, weights, k, scale)
    if n_columns <= DENSE:
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
    if b.shape[0] > b.shape[1]:
        images = b @ leading_eigenpairs(_gram(b.T.tocsr()), k).vectors
    else:
        images = leading_eigenpairs(_gram(b), k).vectors
        images *= np.linalg.norm(b.T @ images, axis=0)
    # Once more through a small problem: what is nearly no direction would not come out orthogonal.
    vectors, values, _ = np.linalg.svd(images, full_matrices=False)
    return vectors[:, values > 1e-5 * values[0]] / np.sqrt(weights)[:, None]


def _gram(b: sp.csr_array) -> LinearOperator:
    """``B B^T`` as a product."""
    transposed = b.T.tocsr()

    def product(x: np.ndarray) -> np.ndarray:
        return b @ (transposed @ x)

    return LinearOperator((b.shape[0], b.shape[0]), matvec=product, matmat=product, dtype=float)


def _scaled_indicator(
    codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray, scale: np.ndarray
) -> sp.csr_array:
    return (sp.diags_array(np.sqrt(weights)) @ indicator(codes, offsets) @ sp.diags_array(scale)).tocsr()


def _complete(h: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    extra = np.random.RandomState(0).standard_normal((len(h), k - h.shape[1]))
    extra -= h @ (h.T @ (weights[:, None] * extra))
    return np.hstack([h, orthonormalize(extra, weights)])
