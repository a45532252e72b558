"""The Laplacian of a weighted graph on distinct rows, and the eigenvectors of its smallest eigenvalues.

A node stands for ``w_p`` instances that are all linked to each other with weight one. The Laplacian of the
instances then has two kinds of eigenvectors. One is constant on nodes: those of the *quotient*
``D - w^(1/2) S w^(1/2)``, ``D_p = sum_q w_q S_pq``. The other lives inside one node and sums to zero:
``w_p - 1`` of them for the eigenvalue ``D_p``. Taken all together, they set every instance of the node apart
from everything else by the same squared distance ``1 - 1 / w_p``, so nodes can still stand for instances.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from consilience.core import hot

# Up to this size a dense eigenproblem is at least as fast as inverse iteration with its two factorisations.
_DENSE = 400


class Components(NamedTuple):
    """``labels`` number the components in the order of their lowest rows."""

    n_components: int
    labels: np.ndarray


class Embedding(NamedTuple):
    """Squared distances of instances in different nodes: ``||h_p - h_q||^2 + spread_p + spread_q``."""

    h: np.ndarray  # the eigenvectors that are constant on nodes, per node
    spread: np.ndarray  # what those inside nodes add
    margin: float  # positive: nodes stand for instances exactly


def components(left: np.ndarray, right: np.ndarray, s: np.ndarray, n_rows: int) -> Components:
    """Connected components of the pairs with a positive weight.

    Their number is the multiplicity of the eigenvalue zero: the rank test, without a tolerance.
    """
    parent = np.arange(n_rows, dtype=np.int32)
    hot.join(left, right, s, parent)
    roots, labels = np.unique(parent, return_inverse=True)
    return Components(len(roots), labels)


def embed(
    left: np.ndarray, right: np.ndarray, s: np.ndarray, counts: np.ndarray, parts: Components, k: int
) -> Embedding:
    """Eigenvectors of the k smallest Laplacian eigenvalues of the instances, exactly, component by component.

    The null space is known: one indicator per component. Only where there are fewer than `k` of them is there
    an eigenproblem, and then one per component. With more than `k` components the null space is larger than
    what is asked for and any choice is as good: zero is returned, which is as constant on components as any.

    The margin is how far the k-th eigenvalue is from cutting the eigenvectors inside one node in two. Only
    then (zero or below) would an n x n solver treat equal instances differently, in a way that depends on the
    solver; here all of them get the average.
    """
    n_rows, n_found = len(counts), parts.n_components
    degrees = counts + np.bincount(left, s * counts[right], n_rows)
    degrees += np.bincount(right, s * counts[left], n_rows)
    repeated = np.flatnonzero(counts > 1)
    least = float(degrees[repeated].min()) if len(repeated) else np.inf
    h, spread = np.zeros((n_rows, k)), np.zeros(n_rows)
    if n_found > k:
        return Embedding(h, spread, least)
    sizes = np.bincount(parts.labels, counts)
    h[np.arange(n_rows), parts.labels] = 1.0 / np.sqrt(sizes[parts.labels])
    if n_found == k:
        return Embedding(h, spread, least)
    values, columns = [np.empty(0)], []
    for part, rows, matrix in _blocks(left, right, s, counts, degrees, parts):
        found, inside = _above_zero(matrix, np.sqrt(counts[rows] / sizes[part]), k - n_found)
        values.append(found)
        columns += [(rows, column / np.sqrt(counts[rows])) for column in inside.T]
    taken, margin = _smallest(np.concatenate(values), degrees[repeated], counts[repeated] - 1, k - n_found)
    for d, which in enumerate(taken[: len(columns)].nonzero()[0], start=n_found):
        rows, column = columns[which]
        h[rows, d] = column
    # Each of the w - 1 vectors inside a node adds the same on average, 1 / w.
    spread[repeated] = taken[len(columns) :] / counts[repeated]
    return Embedding(h, spread, margin)


def _smallest(
    between: np.ndarray, inside: np.ndarray, copies: np.ndarray, k: int
) -> tuple[np.ndarray, float]:
    """How many copies of each eigenvalue belong to the k smallest, and the margin of `embed`."""
    values = np.concatenate([between, inside])
    available = np.concatenate([np.ones(len(between)), copies])
    order = np.argsort(values, kind="stable")
    before = np.cumsum(available[order]) - available[order]
    taken = np.empty(len(values))
    taken[order] = np.clip(k - before, 0.0, available[order])
    last = float(values[taken > 0].max())
    left_out = taken < available
    nodes = np.arange(len(values)) >= len(between)
    margin = np.min(values[nodes & left_out] - last, initial=np.inf)
    # A node's own eigenvalue must also stay away from what is left out, or it might have been the other way.
    following = np.min(values[left_out], initial=np.inf)
    return taken, float(min(margin, following - np.max(values[nodes & (taken > 0)], initial=-np.inf)))


def _blocks(left, right, s, counts, degrees, parts):  # type: ignore[no-untyped-def]
    """Quotient Laplacian of every component of more than one row: its number, rows and dense matrix."""
    linked = s > 0
    left, right, s = left[linked], right[linked], s[linked]
    root = np.sqrt(counts)
    off = -s * root[left] * root[right]
    owner = parts.labels[left]
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=parts.n_components))
    place = np.empty(len(counts), dtype=np.int64)
    for part, end in enumerate(ends):
        rows = np.flatnonzero(parts.labels == part)
        if len(rows) == 1:
            continue
        mine = order[(ends[part - 1] if part else 0) : end]
        place[rows] = np.arange(len(rows))
        matrix = np.zeros((len(rows), len(rows)))
        # Both halves: the factorisations read one of them, the products all.
        matrix[place[left[mine]], place[right[mine]]] = off[mine]
        matrix[place[right[mine]], place[left[mine]]] = off[mine]
        np.fill_diagonal(matrix, degrees[rows] - counts[rows])
        yield part, rows, matrix


def _above_zero(matrix: np.ndarray, null: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k smallest nonzero eigenvalues of a connected Laplacian (all, if fewer) and their eigenvectors.

    Large matrices by inverse iteration on a Cholesky factor. Such an iteration can miss copies of a repeated
    eigenvalue, so a second factorisation counts: with the found vectors lifted away, nothing may be left
    below the largest of them. Where it fails, the dense solver decides.
    """
    n = len(matrix)
    k = min(k, n - 1)
    if n > _DENSE and 10 * k < n:
        found = _inversely(matrix, null, k)
        if found is not None:
            return found
    values, vectors = _dense(matrix, k + 1)
    return values[1:], vectors[:, 1:]


def _dense(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = linalg.eigh(matrix, subset_by_index=[0, k - 1])
    if len(values) < k:
        # Where many eigenvalues are nearly equal, LAPACK's subset drivers can return fewer than asked.
        values, vectors = (part[..., :k] for part in linalg.eigh(matrix, driver="evd"))
    return values, vectors


def _inversely(matrix: np.ndarray, null: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray] | None:
    n = len(matrix)
    scale = float(np.diag(matrix).max())
    lifted = matrix + scale * np.outer(null, null)
    try:
        factor = linalg.cholesky(lifted, lower=True, check_finite=False)
        inverse = LinearOperator((n, n), lambda x: linalg.cho_solve((factor, True), x, check_finite=False))
        start = np.random.RandomState(0).standard_normal(n)
        # One more than asked for: its eigenvalue says where to count.
        inverted, vectors = eigsh(inverse, k=k + 1, which="LA", v0=start - null * (null @ start), tol=1e-13)
        values = 1.0 / inverted[::-1]
        vectors = vectors[:, ::-1]
        # Halfway to the next eigenvalue; below a cluster that k cuts in two, any choice is as good.
        bound = 0.5 * (values[k - 1] + values[k])
        if not values[k] - values[k - 1] > 1e-9 * values[k]:
            return None
        inside = vectors[:, :k]
        lifted += (2.0 * scale) * inside @ inside.T
        lifted[np.diag_indices(n)] -= bound
        linalg.cholesky(lifted, lower=True, overwrite_a=True, check_finite=False)
    except (linalg.LinAlgError, ArpackError):
        return None
    return values[:k], inside
