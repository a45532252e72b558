"""Kernels of views in which rows are absent: similarities, centring, scaling, leading eigenvectors.

A kernel is kept in one of two forms: a block of all pairs of the rows that its view has, or a factor F with
``K = F F^T``. The factor serves whenever the kernel has an explicit map of modest width (linear, cosine,
narrow quadratic) or there are too many rows for a block (a Nystroem map); then nothing of the size n x n is
ever made. Absent rows are zero in either form unless a `Fill` says how they follow from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import euclidean_distances, polynomial_kernel, rbf_kernel
from sklearn.preprocessing import normalize

from consilience.core.eigen import WHOLE, Eigenpairs, lanczos, leading_eigenpairs

Matrix = Any  # a 2-D float array or a scipy.sparse.csr_array; scipy carries no types
Function = str | Callable[[Matrix, Matrix], np.ndarray]

# Up to this many rows a kernel without an explicit map is a block of all pairs (128 MB); beyond, a factor on
# this many landmarks stands for it.
EXACT_ROWS = 4000
N_LANDMARKS = 300
_MAPPED_WIDTH = 2000  # quadratic features that are narrower than this are written out
_BLOCK_ROWS = 16  # of a few thousand columns: they stay in the processor's cache
_NOTHING = 1e-10  # eigenvalues below this share of the largest carry rounding errors only


class Similarity(NamedTuple):
    """A kernel function whose parameters are settled."""

    kernel: Function
    gamma: float = 1.0
    landmarks: Nystroem | None = None


class Factor(NamedTuple):
    """F = values - shift mean^T. Sparse values are centred by the second term, dense ones already are."""

    values: Matrix  # one row per instance, zero where it is absent
    shift: np.ndarray | None = None
    mean: np.ndarray | None = None


class Origin(NamedTuple):
    """What the rows of new instances are compared with, centred by and scaled by."""

    similarity: Similarity
    normalized: bool
    x: Matrix | None  # the rows of the block; None for a factor or where similarities are given
    columns: np.ndarray  # which instances these rows are
    mean: np.ndarray
    grand: float
    scale: np.ndarray
    own: float  # what an instance's similarity to itself is taken to be where it is not given


class Kernel(NamedTuple):
    """The similarities of the instances that a view has, centred and of unit diagonal."""

    n: int
    rows: np.ndarray  # the instances that the view has
    block: np.ndarray | None
    factor: Factor | None
    diagonal: np.ndarray  # per row
    origin: Origin


class Fill(NamedTuple):
    """Absent rows as combinations ``left @ right`` of the rows that are there (in feature space)."""

    left: np.ndarray  # (n_absent, r)
    right: np.ndarray  # (r, n_rows)


# --- similarities ------------------------------------------------------------------------------------


def settle(kernel: Function, x: Matrix, rng: np.random.RandomState) -> Similarity:
    """Parameters from the data alone, and landmarks where there are too many rows for all pairs.

    ``"rbf"`` is :math:`exp(-d^2 / 2 s^2)` with s the mean distance, ``"poly"`` is :math:`(1 + x^T y / r)^2`
    with r the mean squared norm.
    """
    n = x.shape[0]
    if kernel == "rbf":
        sample = x if n <= EXACT_ROWS else x[np.sort(rng.choice(n, EXACT_ROWS // 2, replace=False))]
        width = euclidean_distances(sample).mean()
        gamma = 1.0 / (2.0 * width**2) if width > 0 else 1.0
    elif kernel == "poly":
        size = _squared_norms(x).mean()
        gamma = 1.0 / size if size > 0 else 1.0
    else:
        return Similarity(kernel)
    settled = Similarity(kernel, gamma)
    if n <= EXACT_ROWS or _is_mapped(settled, x):
        return settled
    map_ = Nystroem(
        kernel=kernel,
        gamma=gamma,
        coef0=1.0 if kernel == "poly" else None,
        degree=2 if kernel == "poly" else None,
        n_components=N_LANDMARKS,
        random_state=rng,
    )
    return Similarity(kernel, gamma, map_.fit(x))


def _is_mapped(similarity: Similarity, x: Matrix) -> bool:
    """Whether the kernel is the inner product of features that can be written out."""
    if similarity.kernel == "poly" and similarity.landmarks is None:
        width = x.shape[1]
        return bool((width + 1) * (width + 2) // 2 <= min(_MAPPED_WIDTH, max(x.shape[0], 50)))
    return similarity.landmarks is not None or similarity.kernel in ("linear", "cosine", "embedding")


def _features(similarity: Similarity, x: Matrix) -> Matrix:
    """The features whose inner product is the kernel."""
    if similarity.landmarks is not None:
        return similarity.landmarks.transform(x)
    if similarity.kernel == "cosine":
        return normalize(x)
    if similarity.kernel == "poly":
        return _quadratic_features(x.toarray() if sparse.issparse(x) else x, similarity.gamma)
    return x


def _quadratic_features(x: np.ndarray, gamma: float) -> np.ndarray:
    z = np.hstack([np.ones((len(x), 1)), np.sqrt(gamma) * x])
    i, j = np.triu_indices(z.shape[1])
    return z[:, i] * z[:, j] * np.where(i == j, 1.0, np.sqrt(2.0))


def _compare(similarity: Similarity, x: Matrix, y: Matrix) -> np.ndarray:
    if similarity.kernel == "rbf":
        return rbf_kernel(x, y, gamma=similarity.gamma)
    if similarity.kernel == "poly":
        return polynomial_kernel(x, y, degree=2, gamma=similarity.gamma, coef0=1.0)
    assert callable(similarity.kernel)
    return np.asarray(similarity.kernel(x, y), dtype=float)


def _compare_with_itself(similarity: Similarity, x: Matrix) -> np.ndarray:
    if similarity.kernel == "rbf":
        return np.ones(x.shape[0])
    if similarity.kernel == "poly":
        return (1.0 + similarity.gamma * _squared_norms(x)) ** 2
    return np.array([_compare(similarity, x[[p]], x[[p]])[0, 0] for p in range(x.shape[0])])


def _squared_norms(x: Matrix) -> np.ndarray:
    if sparse.issparse(x):
        return np.asarray(x.multiply(x).sum(axis=1)).ravel()
    return np.einsum("pd,pd->p", x, x)


# --- kernels of a view -------------------------------------------------------------------------------


def fit_kernel(
    x: Matrix,
    rows: np.ndarray,
    n: int,
    kernel: Function,
    rng: np.random.RandomState,
    *,
    precise: bool = True,
) -> Kernel:
    """The kernel of a view that has the instances `rows` of n, `x` being their features.

    ``"precomputed"``: `x` holds the similarities of these instances, and is overwritten. ``"embedding"``:
    `x` is taken as it is, without centring and scaling. Without `precise`, a block of more than 300
    instances is kept in single precision, once centred and scaled: half the bytes to read in each product.
    """
    similarity = settle(kernel, x, rng)
    if kernel == "precomputed":
        return _block_kernel(x, None, rows, n, similarity, precise)
    if _is_mapped(similarity, x):
        return _factor_kernel(_features(similarity, x), rows, n, similarity)
    return _block_kernel(_compare(similarity, x, x), x, rows, n, similarity, precise)


def _block_kernel(
    k: np.ndarray, x: Matrix | None, rows: np.ndarray, n: int, similarity: Similarity, precise: bool
) -> Kernel:
    """Centre in feature space and scale to a unit diagonal; in place, but for single precision."""
    own = np.diag(k).copy()
    mean = np.full(len(k), 1.0 / len(k)) @ k
    grand = float(mean.mean())
    # An instance at the mean has no direction, only rounding errors.
    scale = _inverse_root(own - 2.0 * mean + grand, 1e-12 * abs(float(own.mean())))
    block = k if precise or n <= WHOLE else np.empty(k.shape, dtype=np.float32)
    for start in range(0, len(k), _BLOCK_ROWS):  # while the rows are in the processor's cache
        part = slice(start, start + _BLOCK_ROWS)
        centred = k[part] - mean
        centred -= (mean[part] - grand)[:, None]
        centred *= scale
        np.multiply(centred, scale[part, None], out=block[part], casting="same_kind")
    origin = Origin(similarity, True, x, rows, mean, grand, scale, float(own.mean()))
    return Kernel(n, rows, block, None, np.diag(block).astype(float), origin)


def _factor_kernel(f: Matrix, rows: np.ndarray, n: int, similarity: Similarity) -> Kernel:
    normalized = similarity.kernel != "embedding"
    if not normalized:
        values = f.toarray() if sparse.issparse(f) else f
        mean, scale, diagonal = np.zeros(f.shape[1]), np.ones(len(rows)), _squared_norms(values)
        factor = Factor(_spread(values, rows, n))
    else:
        mean = np.asarray(f.mean(axis=0)).ravel()
        size = float(mean @ mean)
        if sparse.issparse(f):
            norms = _squared_norms(f) - 2.0 * (f @ mean) + size
            scale = _inverse_root(norms, 1e-12 * float(_squared_norms(f).mean()))
            values = sparse.diags_array(scale) @ f
            factor = Factor(_spread_sparse(values, rows, n), _spread(scale, rows, n), mean)
        else:
            values = f - mean
            norms = _squared_norms(values)
            scale = _inverse_root(norms, 1e-24 * size)
            values *= scale[:, None]
            factor = Factor(_spread(values, rows, n))
        diagonal = (scale > 0).astype(float)
    origin = Origin(similarity, normalized, None, rows, mean, 0.0, scale, 1.0)
    return Kernel(n, rows, None, factor, diagonal, origin)


def _inverse_root(values: np.ndarray, floor: float) -> np.ndarray:
    return np.where(values > floor, 1.0 / np.sqrt(np.maximum(values, np.finfo(float).tiny)), 0.0)


def _spread(values: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    if len(rows) == n:
        return values
    out = np.zeros((n, *values.shape[1:]))
    out[rows] = values
    return out


def _spread_sparse(values: Matrix, rows: np.ndarray, n: int) -> Matrix:
    place = sparse.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(n, len(rows)))
    return (place @ values).tocsr()


def restrict(kernel: Kernel, rows: np.ndarray) -> Kernel:
    """Hide the other rows after the kernel was centred and scaled with them."""
    keep = np.zeros(kernel.n, dtype=bool)
    keep[rows] = True
    at = np.flatnonzero(keep[kernel.rows])
    block, factor = kernel.block, kernel.factor
    if block is not None:
        block = take_pairs(block, at)
    if factor is not None:
        shift = None if factor.shift is None else np.where(keep, factor.shift, 0.0)
        if sparse.issparse(factor.values):
            values = (sparse.diags_array(keep.astype(float)) @ factor.values).tocsr()
        else:
            values = np.where(keep[:, None], factor.values, 0.0)
        factor = Factor(values, shift, factor.mean)
    return kernel._replace(rows=rows, block=block, factor=factor, diagonal=kernel.diagonal[at])


def as_matrix(kernel: Kernel) -> np.ndarray:
    """All pairs of the rows that the view has."""
    if kernel.block is not None:
        return kernel.block
    f = _dense_factor(kernel)[kernel.rows]
    return f @ f.T


def complete_kernel(matrix: np.ndarray, like: Kernel) -> Kernel:
    """A kernel that was imputed over all instances; its rows cannot be compared with new ones."""
    n = len(matrix)
    return Kernel(n, np.arange(n), matrix, None, np.diag(matrix).copy(), like.origin)


def take_pairs(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A copy of ``matrix[rows][:, rows]``, while rows are in the processor's cache."""
    out = np.empty((len(rows), len(rows)), dtype=matrix.dtype)
    for start in range(0, len(rows), _BLOCK_ROWS):
        part = slice(start, start + _BLOCK_ROWS)
        np.take(matrix[rows[part]], rows, axis=1, out=out[part], mode="clip")
    return out


def absent(kernel: Kernel) -> np.ndarray:
    """The instances that the view lacks."""
    out = np.ones(kernel.n, dtype=bool)
    out[kernel.rows] = False
    return np.flatnonzero(out)


def _dense_factor(kernel: Kernel) -> np.ndarray:
    assert kernel.factor is not None
    values, shift, mean = kernel.factor
    if shift is None or mean is None:
        return values
    return values.toarray() - np.outer(shift, mean)


# --- algebra -----------------------------------------------------------------------------------------


def multiply(kernel: Kernel, q: np.ndarray, fill: Fill | None = None) -> np.ndarray:
    """``K Q`` over all instances; absent rows are zero, or follow from the others by `fill`."""
    rows = kernel.rows
    if fill is not None:
        missing = absent(kernel)
        seen = q[rows] + fill.right.T @ (fill.left.T @ q[missing])
        q = np.zeros_like(q)
        q[rows] = seen
    if kernel.block is not None:
        out = np.zeros_like(q)
        out[rows] = _times_block(kernel.block, q[rows])
    else:
        out = _times(kernel.factor, _transposed_times(kernel.factor, q))
    if fill is not None:
        out[missing] = fill.left @ (fill.right @ out[rows])
    return out


def _times(factor: Factor | None, b: np.ndarray) -> np.ndarray:
    assert factor is not None
    out = np.asarray(factor.values @ b)
    if factor.shift is not None and factor.mean is not None:
        out -= factor.shift[:, None] * (factor.mean @ b)
    return out


def _transposed_times(factor: Factor | None, q: np.ndarray) -> np.ndarray:
    assert factor is not None
    out = np.asarray(factor.values.T @ q)
    if factor.shift is not None and factor.mean is not None:
        out -= factor.mean[:, None] * (factor.shift @ q)
    return out


def trace(kernel: Kernel, fill: Fill | None = None) -> float:
    """tr K."""
    total = float(kernel.diagonal.sum())
    if fill is not None:
        right = np.zeros((kernel.n, len(fill.right)))
        right[kernel.rows] = fill.right.T
        small = right.T @ multiply(kernel, right)
        total += float(np.einsum("pr,rs,ps->", fill.left, small, fill.left, optimize=True))
    return total


def add_blocks(kernels: Sequence[Kernel], weights: np.ndarray) -> np.ndarray | None:
    """The weighted sum of the kernels that are blocks, absent rows zero; None if there are none."""
    blocks = [kernel.block for kernel in kernels if kernel.block is not None]
    if not blocks:
        return None
    n = kernels[0].n
    total = np.zeros((n, n), dtype=np.result_type(*blocks))
    for w, kernel in zip(weights, kernels, strict=True):
        if kernel.block is None:
            continue
        for start in range(0, len(kernel.rows), _BLOCK_ROWS):  # much faster than by an index of all pairs
            rows = kernel.rows[start : start + _BLOCK_ROWS]
            wide = np.zeros((len(rows), n), dtype=total.dtype)
            wide[:, kernel.rows] = float(w) * kernel.block[start : start + _BLOCK_ROWS]
            total[rows] += wide
    return total


def leading_eigenvectors(
    kernels: Sequence[Kernel],
    k: int,
    *,
    weights: np.ndarray | None = None,
    fills: Sequence[Fill | None] | None = None,
    start: np.ndarray | None = None,
    precise: bool = True,
) -> Eigenpairs:
    r"""Leading eigenvectors of :math:`\sum_p w_p K_p` over all instances.

    Eigenvectors beyond the rank, which could be any, are zero: so is what a view says where it has fewer
    rows, or fewer directions, than `k`. `start` is where iterations begin. Without `precise`, more than 300
    instances are iterated on in single precision, to a residual of 1e-6 of the largest eigenvalue, in half
    the time; with it the residual is 1e-8.

    Cost: up to 300 instances one dense eigenproblem; beyond, about 4 k products of the sum with a vector.
    """
    n, first = kernels[0].n, kernels[0]
    w = np.ones(len(kernels)) if weights is None else weights
    if len(kernels) == 1 and fills is None and first.block is not None:  # absent rows need not take part
        block = first.block if w[0] == 1.0 else w[0] * first.block
        if len(block) <= WHOLE:
            values, vectors = _solve_whole(block, k)
        else:
            values, vectors = _iterate(_product_of_block(block, precise), len(block), k, None, precise)
        vectors = _spread(vectors, first.rows, n)
    else:
        product = _product_of_sum(kernels, w, [None] * len(kernels) if fills is None else fills, precise)
        if n <= WHOLE:
            values, vectors = _solve_whole(product(np.eye(n)), k)
        else:
            values, vectors = _iterate(product, n, k, start, precise)
    found = values > _NOTHING * max(float(np.abs(values).max()), np.finfo(float).tiny)
    return Eigenpairs(np.where(found, values, 0.0), vectors * found)


def _solve_whole(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    matrix = matrix.astype(float, copy=False)
    return _padded(*leading_eigenpairs(0.5 * (matrix + matrix.T), k), k)


def _padded(values: np.ndarray, vectors: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Zeros where there are fewer than k directions."""
    lacking = k - len(values)
    return np.pad(values, (0, lacking)), np.pad(vectors, ((0, 0), (0, lacking)))


def _product_of_block(block: np.ndarray, precise: bool) -> Callable[[np.ndarray], np.ndarray]:
    used = block if precise or len(block) <= WHOLE else block.astype(np.float32, copy=False)
    return lambda q: _times_block(used, q)


def _times_block(block: np.ndarray, q: np.ndarray) -> np.ndarray:
    """``K Q`` as ``(Q^T K)^T``, K being symmetric: for few columns BLAS takes a third less time."""
    return (np.ascontiguousarray(q.T, dtype=block.dtype) @ block).T


def _product_of_sum(
    kernels: Sequence[Kernel], w: np.ndarray, fills: Sequence[Fill | None], precise: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """The product of the sum with vectors. What a fill adds is of low rank, so blocks are added up first."""
    total = add_blocks(kernels, w)
    times_total = None if total is None else _product_of_block(total, precise)
    factors = [p for p, kernel in enumerate(kernels) if kernel.block is None]
    added = [
        (p, absent(kernel), fill, multiply(kernel, _on_rows(fill.right.T, kernel))[kernel.rows])
        for p, (kernel, fill) in enumerate(zip(kernels, fills, strict=True))
        if fill is not None
    ]

    def product(q: np.ndarray) -> np.ndarray:
        out = np.zeros_like(q) if times_total is None else times_total(q).astype(float, copy=False)
        for p in factors:
            out += w[p] * multiply(kernels[p], q)
        for p, lost, fill, reach in added:
            seen = kernels[p].rows
            moved = w[p] * (fill.left.T @ q[lost])
            out[lost] += fill.left @ (w[p] * (reach.T @ q[seen]) + fill.right @ (reach @ moved))
            out[seen] += reach @ moved
        return out

    return product


def _on_rows(values: np.ndarray, kernel: Kernel) -> np.ndarray:
    out = np.zeros((kernel.n, values.shape[1]))
    out[kernel.rows] = values
    return out


def _iterate(
    product: Callable[[np.ndarray], np.ndarray], n: int, k: int, start: np.ndarray | None, precise: bool
) -> tuple[np.ndarray, np.ndarray]:
    """By a block of vectors: one pass over the kernel serves several."""
    guess = np.random.RandomState(0).standard_normal((n, max(4, k // 3)))
    guess = guess if start is None else np.hstack([start, guess])
    return _padded(*lanczos(product, k, guess, tol=1e-8 if precise else 1e-6), k)


# --- new instances -----------------------------------------------------------------------------------


def forget(kernel: Kernel) -> Kernel:
    """The kernel without what only fitting needs; `represent` still works."""
    nothing = np.empty((0, 0))
    if kernel.factor is not None:
        return kernel._replace(factor=Factor(nothing))
    return kernel._replace(block=nothing)


def represent(kernel: Kernel, x: Matrix) -> np.ndarray:
    """Rows of new instances in the form that `project` speaks of: features, or similarities to the old."""
    origin = kernel.origin
    if kernel.factor is not None:
        f = _features(origin.similarity, x)
        f = f.toarray() if sparse.issparse(f) else f
        if not origin.normalized:
            return f
        f = f - origin.mean
        return f * _inverse_root(_squared_norms(f), 1e-24 * float(origin.mean @ origin.mean))[:, None]
    if origin.x is None:
        raw = (x.toarray() if sparse.issparse(x) else x)[:, origin.columns]
        own = np.full(len(raw), origin.own)
    else:
        raw, own = _compare(origin.similarity, x, origin.x), _compare_with_itself(origin.similarity, x)
    mean = raw.mean(axis=1)
    own = own - 2.0 * mean + origin.grand
    scale = _inverse_root(own, 1e-12 * abs(origin.own))
    return (raw - origin.mean - (mean - origin.grand)[:, None]) * origin.scale * scale[:, None]


def project(kernel: Kernel, coefficients: np.ndarray, fill: Fill | None = None) -> np.ndarray:
    """P such that ``represent(kernel, x) @ P`` is the sum of K(x, q) coefficients[q] over instances q."""
    c = np.zeros_like(coefficients)
    c[kernel.rows] = coefficients[kernel.rows]
    if fill is not None:
        c[kernel.rows] += fill.right.T @ (fill.left.T @ coefficients[absent(kernel)])
    if kernel.factor is not None:
        return _transposed_times(kernel.factor, c)
    return c[kernel.origin.columns]
