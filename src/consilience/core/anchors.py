"""Similarities through anchors: instance-to-anchor weights, and the low-rank graphs they make.

A graph ``S = Z Lambda^-1 Z^T`` is kept as its sparse factor ``Z Lambda^(-1/2)``. Several such graphs, each on
some of the instances, are fused into one operator that is never written out.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator

from consilience.core.blocks import BLOCK_ROWS, map_blocks
from consilience.core.eigen import DENSE, Eigenpairs, leading_eigenpairs

Matrix = Any  # a 2-D float array or a CSR array

# Distances held at a time by a thread: 32 MB.
_BLOCK_ENTRIES = 2**22


class Neighbours(NamedTuple):
    """The nearest anchors of every row, in no order, and their squared distances."""

    columns: np.ndarray
    distance: np.ndarray


def nearest_anchors(x: Matrix, anchors: Matrix, k: int) -> Neighbours:
    """Exact k nearest anchors by blocks of rows; of anchors at the same distance, any."""
    k = min(k, anchors.shape[0])
    # Far from the origin, differences of squared norms would lose what they are taken for.
    shift = 0.0 if sp.issparse(anchors) else anchors.mean(axis=0)
    anchors = anchors if sp.issparse(anchors) else anchors - shift
    norms = _squared_norms(anchors)

    def one(rows: slice) -> Neighbours:
        block = x[rows] if sp.issparse(x) else x[rows] - shift
        products = block @ anchors.T
        if sp.issparse(products):
            products = products.toarray()
        # The row's own norm is the same for all anchors: left out, it cannot disturb their order.
        distance = norms - 2.0 * products
        index = np.argpartition(distance, k - 1, axis=1)[:, :k]
        nearest = np.take_along_axis(distance, index, axis=1) + _squared_norms(block)[:, None]
        return Neighbours(index.astype(np.int32), np.maximum(nearest, 0.0))

    block_rows = max(1, min(BLOCK_ROWS, _BLOCK_ENTRIES // anchors.shape[0]))
    parts = list(map_blocks(one, x.shape[0], block_rows=block_rows))
    return Neighbours(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def truncated_kernel(near: Neighbours, n_anchors: int, bandwidth: float | None) -> sp.csr_array:
    """Gaussian weights ``exp(-d^2 / sigma^2)`` of the nearest anchors, rows to sum one.

    Without a bandwidth, sigma is the distance of a row to the farthest of its nearest anchors.
    """
    nearest = near.distance.min(axis=1, keepdims=True)
    scale = near.distance.max(axis=1, keepdims=True) if bandwidth is None else np.square(bandwidth)
    # Less the smallest distance: far from all anchors every weight would underflow to zero. A row on top of
    # all its anchors has scale zero and equal weights.
    weights = np.exp((nearest - near.distance) / np.maximum(scale, np.finfo(float).tiny))
    weights /= weights.sum(axis=1, keepdims=True)
    n, k = weights.shape
    kind = np.int32 if n * k < 2**31 else np.int64  # half the memory wherever it is enough
    starts = np.arange(0, n * k + 1, k, dtype=kind)
    columns = near.columns.ravel().astype(kind, copy=False)
    return sp.csr_array((weights.ravel(), columns, starts), shape=(n, n_anchors))


def spread_rows(matrix: sp.csr_array, rows: np.ndarray, n_rows: int) -> sp.csr_array:
    """The rows of a matrix at the places `rows`, ascending, of a taller one that is empty elsewhere."""
    counts = np.zeros(n_rows + 1, dtype=matrix.indptr.dtype)
    counts[rows + 1] = np.diff(matrix.indptr)
    starts = np.cumsum(counts, dtype=counts.dtype)
    return sp.csr_array((matrix.data, matrix.indices, starts), shape=(n_rows, matrix.shape[1]))


def diffused_kernel(graph: sp.csr_array, anchors: np.ndarray, reach: float) -> np.ndarray:
    """Columns of ``(I - reach P)^-1`` at the anchors, P the random walk on the graph; rows to sum one.

    A row from which no walk leads to an anchor is far from all of them alike.
    """
    n = graph.shape[0]
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    walk = (sp.diags_array(reach / np.where(degrees > 0, degrees, 1.0)) @ graph).tocsr()
    start = np.zeros((n, len(anchors)))
    start[anchors, np.arange(len(anchors))] = 1.0
    z = start
    # The series of walks; what is left out after these steps is below 1e-8 of what is there.
    for _ in range(int(np.ceil(np.log(1e-8) / np.log(reach)))):
        z = walk @ z + start
    sums = z.sum(axis=1, keepdims=True)
    return np.where(sums > 0, z / np.where(sums > 0, sums, 1.0), 1.0 / len(anchors))


def graph_eigenpairs(graph: sp.csr_array, k: int) -> Eigenpairs:
    """The k largest eigenvalues of ``D^(-1/2) W D^(-1/2)`` for a sparse graph."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    root = np.sqrt(np.where(degrees > 0, degrees, 1.0))
    scaled = (sp.diags_array(1.0 / root) @ graph @ sp.diags_array(1.0 / root)).tocsr()
    parts = _largest_first(connected_components(graph, directed=False)[1])
    operator = LinearOperator(graph.shape, matvec=scaled.__matmul__, matmat=scaled.__matmul__, dtype=float)
    return leading_eigenpairs(operator, k, known=_on_components(root, parts, k))


class FusedSimilarity(LinearOperator):
    r"""Anchor graphs, each on some of the instances, averaged over the graphs that hold both instances.

    .. math:: S_{ij} = \frac{1}{C_{ij}} \sum_p (A_p A_p^T)_{ij}, \qquad C_{ij} = \sum_p M_{ip} M_{jp}

    C depends only on which graphs hold the two instances. So with instances grouped by that, and W the table
    of 1 / C between groups, a product is ``A_g sum_h W_gh A_h^T x_h``: two sparse products and a small one.

    Symbols: A_p -> blocks of columns of `factor`; M -> member.
    Cost of a product with a vector: entries of the factor + groups^2 x columns of the factor.
    """

    def __init__(self, factor: sp.csr_array, member: np.ndarray) -> None:
        kinds, inverse = np.unique(member, axis=0, return_inverse=True)
        inverse = inverse.ravel()
        self.factor = factor
        self.member = member
        self.kinds = kinds
        self.kind_weights = pair_weights(kinds, kinds)
        self._rows = [np.flatnonzero(inverse == g) for g in range(len(kinds))]
        self._blocks = [factor[rows] if len(kinds) > 1 else factor for rows in self._rows]
        super().__init__(dtype=np.float64, shape=(len(member), len(member)))
        self.degrees = self._matmat(np.ones((len(member), 1)))[:, 0]

    def __getstate__(self) -> dict[str, Any]:
        # What SciPy keeps in its operators differs by version, and is no business of a file.
        return {"factor": self.factor, "member": self.member}

    def __setstate__(self, state: dict[str, Any]) -> None:
        FusedSimilarity.__init__(self, state["factor"], state["member"])

    def project(self, x: np.ndarray) -> np.ndarray:
        """``A_h^T x_h`` for every group, (groups, columns of the factor, columns of x)."""
        return np.stack([block.T @ x[rows] for rows, block in zip(self._rows, self._blocks, strict=True)])

    def _matmat(self, x: np.ndarray) -> np.ndarray:
        projected = self.project(x)
        mixed = (self.kind_weights @ projected.reshape(len(projected), -1)).reshape(projected.shape)
        out = np.empty((self.shape[0], x.shape[1]))
        for rows, block, part in zip(self._rows, self._blocks, mixed, strict=True):
            out[rows] = block @ part
        return out

    def _adjoint(self) -> LinearOperator:
        return self

    def toarray(self) -> np.ndarray:
        """All of S; for small numbers of instances."""
        return self @ np.eye(self.shape[0])


def pair_weights(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """One over the number of graphs that hold both, zero where none does."""
    shared = left.astype(float) @ right.T.astype(float)
    return np.divide(1.0, shared, out=np.zeros_like(shared), where=shared > 0)


def anchor_components(factor: sp.csr_array) -> np.ndarray:
    """Connected component of every row, the largest first: rows are linked by columns in which both have
    an entry."""
    n, n_columns = factor.shape
    bipartite = sp.csr_array(
        (
            np.ones(factor.nnz, dtype=np.int8),
            factor.indices + n,
            np.append(factor.indptr, np.full(n_columns, factor.indptr[-1])),
        ),
        shape=(n + n_columns, n + n_columns),
    )
    return _largest_first(connected_components(bipartite, directed=False)[1][:n])


def _largest_first(parts: np.ndarray) -> np.ndarray:
    _, labels, sizes = np.unique(parts, return_inverse=True, return_counts=True)
    return np.argsort(np.argsort(-sizes, kind="stable"))[labels]


def fused_eigenpairs(similarity: FusedSimilarity, parts: np.ndarray, k: int) -> Eigenpairs:
    """The k largest eigenvalues of ``D^(-1/2) S D^(-1/2)``, none of a repeated one missed.

    The eigenvalue one is known beforehand: once for every connected component in `parts`; of more than k,
    the k largest components. The others come from the Gram matrix of the anchors where one graph holds all
    instances, and from the operator otherwise.
    """
    root = np.sqrt(similarity.degrees)
    known = _on_components(root, parts, k)
    if known.vectors.shape[1] == k:
        return known
    if len(similarity.kinds) == 1 and similarity.factor.shape[1] <= DENSE:
        weight = float(similarity.kind_weights[0, 0])
        gram = weight * _gram(similarity.factor, 1.0 / similarity.degrees)
        values, vectors = leading_eigenpairs(gram, min(k, len(gram)))
        found = values > 1e-12 * values[0]
        values = values[found]
        left = similarity.factor @ (vectors[:, found] * np.sqrt(weight / values))
        return Eigenpairs(values, left / root[:, None])

    def normalised(x: np.ndarray) -> np.ndarray:
        return (similarity @ (x.reshape(len(root), -1) / root[:, None])) / root[:, None]

    operator = LinearOperator(similarity.shape, matvec=normalised, matmat=normalised, dtype=np.float64)
    found = leading_eigenpairs(operator, k, known=known)
    positive = found.values > 1e-12
    return Eigenpairs(found.values[positive], found.vectors[:, positive])


def _gram(factor: sp.csr_array, weights: np.ndarray) -> np.ndarray:
    """``A^T diag(weights) A`` by blocks of rows, so that no copy of the factor is made."""

    def one(rows: slice) -> sp.csr_array:
        block = factor[rows]
        return block.T @ (sp.diags_array(weights[rows]) @ block)

    total = np.zeros((factor.shape[1], factor.shape[1]))
    for part in map_blocks(one, factor.shape[0], block_rows=16 * BLOCK_ROWS):
        total += part.toarray()
    return total


def _on_components(root: np.ndarray, parts: np.ndarray, k: int) -> Eigenpairs:
    """Eigenvectors of eigenvalue one: the k first components, or all if fewer."""
    known = np.zeros((len(root), min(k, parts.max() + 1)))
    rows = np.flatnonzero(parts < k)
    known[rows, parts[rows]] = root[rows]
    known /= np.sqrt(np.einsum("pd,pd->d", known, known))
    return Eigenpairs(np.ones(known.shape[1]), known)


def _squared_norms(x: Matrix) -> np.ndarray:
    if sp.issparse(x):
        return np.asarray(x.multiply(x).sum(axis=1)).ravel()
    return np.einsum("pd,pd->p", x, x)
