"""Leading eigenpairs of symmetric matrices: the one way to them, with the same answer every time.

ARPACK is not used. Where its space is exhausted (a matrix of low rank, a repeated eigenvalue) it goes on with
random vectors, and of the versions of SciPy that are supported only the newest let the caller seed them:
elsewhere two calls in a row answer differently, whatever the start.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from consilience._support.warnings import warn

# Up to this size a table is worth building: its eigenproblem takes a second or less.
DENSE = 2500
# Up to this size, or this many times the vectors asked for, solving it whole takes less than iterating.
WHOLE, _TIMES = 300, 4
_MAX_PRODUCTS = 100_000
# Basis vectors may lean on each other by so much: a thousandth of the tolerance. Until then what an image has
# of the basis is taken out only once.
_LEAN = 1e-3


class Eigenpairs(NamedTuple):
    """The largest eigenvalues, descending, and their eigenvectors in columns."""

    values: np.ndarray
    vectors: np.ndarray


def leading_eigenpairs(
    matrix: Any, k: int, *, known: Eigenpairs | None = None, tol: float = 1e-10
) -> Eigenpairs:
    """The k largest eigenvalues of a symmetric matrix, no copy of a repeated one missed.

    An array is solved whole. A sparse array or an operator of more than 300 rows is iterated on until
    residuals are at most `tol` times the largest eigenvalue; `known` may be some of the largest pairs.

    Lanczos' iteration sees one copy of a repeated eigenvalue. So what was found is set aside, and it runs
    again, from another start, until the largest that is left is not larger than any that was taken.
    """
    n = matrix.shape[0]
    k = min(k, n)
    if isinstance(matrix, np.ndarray):
        values, vectors = _whole(matrix, n - k, n)
        return Eigenpairs(values[::-1], np.ascontiguousarray(vectors[:, ::-1]))
    found = Eigenpairs(np.empty(0), np.empty((n, 0))) if known is None else known
    if len(found.values) >= k:
        return Eigenpairs(found.values[:k], found.vectors[:, :k])
    if n <= max(WHOLE, _TIMES * k):
        return leading_eigenpairs(matrix @ np.eye(n), k)
    rng, width = np.random.RandomState(0), 1
    while True:
        missing = k - len(found.values)
        start = rng.standard_normal((n, width))
        last = found.values[-1] if len(found.values) else np.inf
        of_interest = -np.inf if missing else last
        new = lanczos(
            matrix.__matmul__, max(missing, 1), start, tol=tol, outside=found, of_interest=of_interest
        )
        slack = 10.0 * tol * max(np.abs(found.values).max(initial=0.0), np.abs(new.values).max())
        found = _join(found, new, k)
        if missing <= 1 and new.values[0] <= last + slack:
            return found
        # Where the space was exhausted, what is left is the same in all directions: take them at once.
        width = max(1, k - len(found.values))


def smallest_eigenpairs(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k smallest eigenvalues of a dense symmetric matrix, ascending, and their eigenvectors."""
    return _whole(matrix, 0, min(k, len(matrix)))


def _whole(matrix: np.ndarray, first: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    """The eigenpairs of these places, ascending."""
    try:
        values, vectors = linalg.eigh(matrix, subset_by_index=[first, end - 1])
    except linalg.LinAlgError:
        values = np.empty(0)
    if len(values) < end - first:
        # Where many eigenvalues are nearly equal, LAPACK's subset drivers can fail or return too few.
        values, vectors = (part[..., first:end] for part in linalg.eigh(matrix, driver="evd"))
    return values, vectors


def _join(first: Eigenpairs, second: Eigenpairs, k: int) -> Eigenpairs:
    values = np.concatenate([first.values, second.values])
    order = np.argsort(-values, kind="stable")[:k]
    return Eigenpairs(values[order], np.hstack([first.vectors, second.vectors])[:, order])


def lanczos(
    product: Callable[[np.ndarray], np.ndarray],
    k: int,
    start: np.ndarray,
    *,
    tol: float,
    outside: Eigenpairs | None = None,
    of_interest: float = -np.inf,
) -> Eigenpairs:
    """The k largest eigenvalues that the start leads to: fewer, if its space is exhausted before.

    Block Lanczos with full orthogonalisation, restarted at the best Ritz vectors. As many copies of a
    repeated eigenvalue are found as the start has columns, and one pass over the matrix serves them all; one
    column takes the fewest products where gaps are small. With V the basis, T = V^T A V and Q R what the
    images of the last block have outside V, A V = V T + Q R E^T: residuals come from R alone. `outside` of
    known eigenvectors the search goes on in their complement; it ends where all that is left is clearly below
    what is `of_interest`.
    """
    n, bottom = len(start), 0 if outside is None else outside.vectors.shape[1]
    most = min(n - bottom, 4 * k + 24)
    keep = min(most, k + max(4, most // 4))
    room = bottom + most + start.shape[1]
    basis, small = np.empty((n, room), order="F"), np.zeros((room, room))
    scale, lean = 0.0, float(np.finfo(float).eps)
    if outside is not None and bottom:
        basis[:, :bottom] = outside.vectors
        scale = float(np.abs(outside.values).max())
        start = _without(start, basis[:, :bottom])
    fresh, _ = _directions(start, 1e-12 * float(np.linalg.norm(start)))
    size, solved, n_products = bottom, bottom + min(most, k + 8), 0
    while True:
        block = slice(size, size + fresh.shape[1])
        size = block.stop
        basis[:, block] = fresh
        v = basis[:, :size]
        images = np.asarray(product(fresh), dtype=float)
        n_products += fresh.shape[1]
        whole = float(np.linalg.norm(images))
        floor = 0.1 * tol * max(scale, whole)
        small[:size, block] = v.T @ images
        images -= v @ small[:size, block]
        # What is left may be small beside the images, and then lies in the basis by what the basis leans:
        # next to nothing at first, but a few times more with every step.
        left = float(np.linalg.norm(images, axis=0).min())
        lean = lean * max(1.0, whole / left) if left > floor else np.inf
        if lean > _LEAN * tol:
            images = _without(images, v)
        fresh, spread = _directions(images, floor)
        full = size + fresh.shape[1] > bottom + most
        if fresh.shape[1] and not full and size < solved:
            continue
        solved = size + 4  # the small problem would take longer than products that are cheap
        values, mix = linalg.eigh(small[bottom:size, bottom:size], lower=False)  # of its upper triangle
        values, mix = values[::-1][:keep], mix[:, ::-1][:, :keep]
        errors = np.linalg.norm(spread @ mix[block.start - bottom :, :k], axis=0)
        error = errors.max()
        scale = max(scale, float(np.abs(values).max()))
        if not fresh.shape[1] or (len(values) >= k and error <= tol * scale):
            break
        if values[0] + errors[0] < of_interest:
            break
        if n_products > _MAX_PRODUCTS:
            warn(
                f"the leading {k} eigenvectors of {n} rows did not settle (error {error / scale:.0e}).",
                ConvergenceWarning,
                hint="ask for another number of clusters.",
            )
            break
        if full:
            v[:, bottom : bottom + keep] = v[:, bottom:] @ mix
            size = bottom + keep
            small[bottom:size, bottom:size] = np.diag(values)
            solved = size + 4
    return Eigenpairs(values[:k], np.ascontiguousarray(v[:, bottom:] @ mix[:, :k]))


def _without(x: np.ndarray, basis: np.ndarray) -> np.ndarray:
    return x - basis @ (basis.T @ x)


def _directions(x: np.ndarray, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """Q and R with ``x = Q R`` but for what is below the floor."""
    if x.shape[1] == 1:
        length = float(np.linalg.norm(x))
        return (x / length, np.array([[length]])) if length > floor else (x[:, :0], np.empty((0, 1)))
    q, r, order = linalg.qr(x, mode="economic", pivoting=True)
    rank = int((np.abs(np.diag(r)) > floor).sum())
    spread = np.empty((rank, x.shape[1]))
    spread[:, order] = r[:rank]
    return q[:, :rank], spread
