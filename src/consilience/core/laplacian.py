"""The Laplacian of a weighted graph on distinct rows, and the eigenvectors of its smallest eigenvalues.

A node stands for ``w_p`` instances that are all linked to each other with weight one. The Laplacian of the
instances then has two kinds of eigenvectors. One is constant on nodes: those of the *quotient*
``D - w^(1/2) S w^(1/2)``, ``D_p = sum_q w_q S_pq``. The other lives inside one node and sums to zero:
``w_p - 1`` of them for the eigenvalue ``D_p``. Taken all together, they set every instance of the node apart
from everything else by the same squared distance ``1 - 1 / w_p``, so nodes can still stand for instances.
"""

from typing import NamedTuple

import numpy as np

from consilience.core import hot
from consilience.core.eigen import smallest_eigenpairs

# Up to this number of rows a dense eigenproblem is as fast as iterating.
_DENSE = 400
# Vectors beyond those asked for, at least. They start at random and must converge as well, roughly: a vector
# that the start lacks, or another copy of a repeated eigenvalue, shows in them.
_GUARDS = 3
# With fewer, a crowd of nearly equal eigenvalues next to a single one that is asked for takes long to part.
_LEAST_BLOCK = 8
# Blocks of vectors that the search keeps before it goes on with the best two.
_ROOM = 6
# From an exact start, the others would be done before the guards could turn anywhere.
_LEAST_STEPS = 5
_MAX_STEPS = 80
# Largest angle between the space that is found and the exact one, as far as residuals tell.
_ANGLE = 1e-8
# Residuals are not computed better than this, times the largest diagonal entry.
_ROUND_OFF = 1e-14


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


class Links(NamedTuple):
    """The quotient Laplacian: its diagonal, and the negated entries above it, row by row."""

    others: np.ndarray  # columns; those of row p are starts[p] to starts[p + 1]
    weights: np.ndarray
    starts: np.ndarray
    diagonal: np.ndarray

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        hot.multiply(*self, x, out)
        return out


def embed(
    left: np.ndarray,
    right: np.ndarray,
    s: np.ndarray,
    counts: np.ndarray,
    parts: Components,
    k: int,
    start: np.ndarray | None = None,
) -> Embedding:
    """Eigenvectors of the k smallest Laplacian eigenvalues of the instances.

    The null space is known: one indicator per component. Only where there are fewer than `k` of them is there
    an eigenproblem. With more than `k` components the null space is larger than what is asked for and any
    choice is as good: zero is returned, which is as constant on components as any. `start` may be the ``h``
    of a similar graph; it saves time only.

    The margin is how far the k-th eigenvalue is from cutting the eigenvectors inside one node in two. Only
    then (zero or below) would an n x n solver treat equal instances differently, in a way that depends on the
    solver; here all of them get the average.

    Cost: pairs x k for each of about ten steps of a search; see `_search`.
    """
    n_rows, n_found = len(counts), parts.n_components
    root = np.sqrt(counts)
    links = _links(left, right, s, counts, root)
    degrees = links.diagonal + counts
    repeated = np.flatnonzero(counts > 1)
    least = float(degrees[repeated].min()) if len(repeated) else np.inf
    h, spread = np.zeros((n_rows, k)), np.zeros(n_rows)
    if n_found > k:
        return Embedding(h, spread, least)
    sizes = np.bincount(parts.labels, counts)
    h[np.arange(n_rows), parts.labels] = 1.0 / np.sqrt(sizes[parts.labels])
    if n_found == k:
        return Embedding(h, spread, least)
    null = (h[:, :n_found] * root[:, None]).T
    start = np.empty((n_rows, 0)) if start is None else start * root[:, None]
    values, vectors = _above_zero(links, parts, null, k - n_found, start)
    taken, margin = _smallest(values, degrees[repeated], counts[repeated] - 1, k - n_found)
    between = vectors[:, taken[: len(values)] > 0] / root[:, None]
    h[:, n_found : n_found + between.shape[1]] = between
    # Each of the w - 1 vectors inside a node adds the same on average, 1 / w.
    spread[repeated] = taken[len(values) :] / counts[repeated]
    return Embedding(h, spread, margin)


def _links(left: np.ndarray, right: np.ndarray, s: np.ndarray, counts: np.ndarray, root: np.ndarray) -> Links:
    starts = np.empty(len(counts) + 1, dtype=np.int64)
    others, weights, diagonal = np.empty_like(right), np.empty(len(s)), np.zeros(len(counts))
    kept = hot.link(left, right, s, counts, root, starts, others, weights, diagonal)
    return Links(others[:kept], weights[:kept], starts, diagonal)


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


def _above_zero(
    links: Links, parts: Components, null: np.ndarray, k: int, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The k smallest nonzero eigenvalues of the quotient Laplacian (all, if fewer) and their eigenvectors."""
    n, block = len(links.diagonal), _block(k)
    # With a wide block the small eigenproblems of the search grow as large as the one that they replace.
    if n > _DENSE and 2 * _ROOM * block < n - len(null):
        found = _search(links, null, k, start)
        if found is not None:
            return found
    return _by_component(links, parts, k)


def _by_component(links: Links, parts: Components, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Every component by a dense solver: its first eigenvalue is the zero."""
    n = len(links.diagonal)
    owner = np.repeat(np.arange(n), np.diff(links.starts))
    values, vectors = [np.empty(0)], [np.empty((n, 0))]
    members, inner = (_grouped(part, parts.n_components) for part in (parts.labels, parts.labels[owner]))
    for rows, mine in zip(members, inner, strict=True):
        if len(rows) == 1:
            continue
        place = np.searchsorted(rows, owner[mine]), np.searchsorted(rows, links.others[mine])
        matrix = np.diag(links.diagonal[rows])
        matrix[place] = matrix[place[::-1]] = -links.weights[mine]
        found, inside = smallest_eigenpairs(matrix, k + 1)
        values.append(found[1:])
        vectors.append(np.zeros((n, len(found) - 1)))
        vectors[-1][rows] = inside[:, 1:]
    order = np.argsort(np.concatenate(values), kind="stable")[:k]
    return np.concatenate(values)[order], np.hstack(vectors)[:, order]


def _grouped(labels: np.ndarray, n_labels: int) -> list[np.ndarray]:
    """Where each label occurs."""
    ends = np.cumsum(np.bincount(labels, minlength=n_labels))
    return np.split(np.argsort(labels, kind="stable"), ends[:-1])


def _block(k: int) -> int:
    # The compiled product works on four columns at once.
    return max(_LEAST_BLOCK, -(-(k + _GUARDS) // 4) * 4)


def _search(
    links: Links, null: np.ndarray, k: int, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The k smallest eigenpairs orthogonal to `null`, by Davidson's method; None where it does not converge.

    A space grows by the residuals of its best vectors, each divided by the diagonal less its eigenvalue. This
    suits the matrix: apart from the few vectors that tell clusters apart, which the space soon contains,
    links are weak beside the diagonal. The first vectors are `start` and random ones.

    Done when the residuals of the k vectors are small beside the gap above the k-th value. That is the angle
    to the exact space, if the gap is true: so the vector above the gap must have settled as well. It comes
    from random ones, whose part in an eigenvector that the others miss grows with every step.
    """
    n, block = len(links.diagonal), _block(k)
    first = _first_vectors(links, null, k, start)
    bottom = len(null)  # the null space comes first: new vectors are made orthogonal to all at once
    room = bottom + _ROOM * block
    basis, images, projected = np.empty((room, n)), np.empty((room, n)), np.empty((room, room))
    basis[:bottom] = null
    diagonal = links.diagonal[:, None]
    # Where the diagonal meets the eigenvalue, the division would let single rows take over.
    least = 0.1 * np.where(diagonal > 0, diagonal, 1.0)
    end, new = bottom, first
    for step in range(1, _MAX_STEPS + 1):
        size, end = end, end + new.shape[1]
        image = links @ new
        basis[size:end], images[size:end] = new.T, image.T
        projected[bottom:end, size:end] = basis[bottom:end] @ image
        projected[size:end, bottom:size] = projected[bottom:size, size:end].T
        values, rotation = np.linalg.eigh(projected[bottom:end, bottom:end])
        values, best = values[:block], rotation[:, :block]
        vectors = basis[bottom:end].T @ best
        residuals = images[bottom:end].T @ best - vectors * values
        lengths = np.sqrt(np.einsum("pd,pd->d", residuals, residuals))
        gap, round_off = values[k] - values[k - 1], _ROUND_OFF * diagonal.max()
        settled = lengths <= np.maximum(np.where(np.arange(block) < k, _ANGLE, 0.1) * gap, round_off)
        settled[k:] &= step >= _LEAST_STEPS
        if settled[: k + 1].all():
            return values[:k], vectors[:, :k]
        if end + block > room:
            end = _restart(basis, images, projected, rotation[:, : 2 * block], bottom, end)
        moving = ~settled
        new = residuals[:, moving] / np.maximum(np.abs(diagonal - values[moving]), least)
        new = _orthonormal(new, basis[:end])
        if not new.shape[1]:
            break
    return None


def _first_vectors(links: Links, null: np.ndarray, k: int, start: np.ndarray) -> np.ndarray:
    """The best k combinations of `start`, and random ones beside them: what settles above the gap must come
    from these."""
    given = _orthonormal(start, null)
    if given.shape[1] > k:
        given = given @ np.linalg.eigh(given.T @ (links @ given))[1][:, :k]
    random = np.random.RandomState(0).standard_normal((len(start), _block(k) - given.shape[1]))
    return np.hstack([given, _orthonormal(random, np.vstack([null, given.T]))])


def _restart(
    basis: np.ndarray, images: np.ndarray, projected: np.ndarray, kept: np.ndarray, bottom: int, end: int
) -> int:
    """Go on with the combinations `kept` of the basis alone; returns where the basis ends then."""
    middle = bottom + kept.shape[1]
    basis[bottom:middle] = kept.T @ basis[bottom:end]
    images[bottom:middle] = kept.T @ images[bottom:end]
    projected[bottom:middle, bottom:middle] = kept.T @ projected[bottom:end, bottom:end] @ kept
    return middle


def _orthonormal(x: np.ndarray, space: np.ndarray) -> np.ndarray:
    """What `x` adds to the span of the orthonormal rows of `space`, as orthonormal columns."""
    for _ in range(2):
        lengths = np.sqrt(np.einsum("pd,pd->d", x, x))
        x = x[:, lengths > 0] / lengths[lengths > 0]
        x = x - space.T @ (space @ x)
        values, rotation = np.linalg.eigh(x.T @ x)
        new = values > 1e-12
        x = x @ (rotation[:, new] / np.sqrt(values[new]))
        if new.any() and values[0] > 0.01:
            break  # little was cancelled; otherwise twice is enough
    return x
