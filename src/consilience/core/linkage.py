"""Exact average and single linkage of weighted rows."""

import numpy as np

from consilience.core.compiled import compiled

# Similarities closer than this, relative to the largest, are ties: what is left of rounding when the same
# numbers are summed in another order.
_TIE = 1e-11


def average_linkage(similarity: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Merge the two clusters of highest mean similarity until one is left. Overwrites `similarity`.

    .. math:: s(A, B) = \sum_{i \in A, j \in B} w_i w_j S_{ij} \, / \, (w_A w_B)

    A row of weight w is w equal rows that are already merged. Returns the merges as a table like SciPy's,
    (rows - 1, 4): two clusters, their mean similarity, and the weight of both. The first merge comes first,
    so similarities never rise. Cluster ``t < rows`` is row t, cluster ``rows + t`` is made by merge t.

    Ties are frequent, since two rows may agree with a third in the same base clusters. They are broken by
    the rows' mean similarity to all others and then by their weight, and only then by their number, so that
    the order of rows rarely matters.

    Symbols: S -> similarity, dense and symmetric, its diagonal used to break ties only; w -> weights.
    Cost: rows^2 time by the nearest-neighbour chain, no memory beside `similarity`.
    """
    n_rows = len(similarity)
    if n_rows < 2:
        return np.empty((0, 4))
    scale = max(float(similarity.max()), -float(similarity.min()), np.finfo(float).tiny)
    order = _order(similarity, weights, scale)
    pairs, heights = np.empty((n_rows - 1, 2), dtype=np.int64), np.empty(n_rows - 1)
    sizes = weights.astype(float)
    _chain(similarity, sizes, order, _TIE * scale, pairs, heights)
    return _sorted_merges(pairs, heights, weights, scale)


def single_linkage(similarity: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Merge the two clusters with the most similar pair of rows until one is left.

    The merges have the form of `average_linkage`. They are the edges of a maximum spanning tree, the most
    similar first; weights only count members, and break ties as there.

    Symbols: as `average_linkage`; the similarities are left as they are.
    Cost: rows^2 time by Prim's algorithm, no memory beside `similarity`.
    """
    n_rows = len(similarity)
    if n_rows < 2:
        return np.empty((0, 4))
    scale = max(float(similarity.max()), -float(similarity.min()), np.finfo(float).tiny)
    order = _order(similarity, weights, scale)
    pairs, heights = np.empty((n_rows - 1, 2), dtype=np.int64), np.empty(n_rows - 1)
    _spanning_tree(similarity, order, _TIE * scale, pairs, heights)
    by_height = np.argsort(-np.round(heights / scale, 11), kind="stable")
    parent = np.arange(n_rows)
    slots = np.empty_like(pairs)  # a cluster lives in the slot of the first of its rows to be merged
    for t in by_height.tolist():
        roots = [_root(parent, row) for row in pairs[t].tolist()]
        slots[t] = roots
        parent[roots[1]] = roots[0]
    return _sorted_merges(slots, heights, weights, scale)


def _root(parent: np.ndarray, row: int) -> int:
    while parent[row] != row:
        parent[row] = parent[parent[row]]
        row = int(parent[row])
    return row


def cut(merges: np.ndarray, n_clusters: int) -> np.ndarray:
    """Labels 0..n_clusters-1 of the rows after all but the last ``n_clusters - 1`` merges."""
    n_rows = len(merges) + 1
    n_merges = n_rows - n_clusters
    parent = np.arange(n_rows + n_merges)
    _inherit(merges[:n_merges, :2].astype(np.int64), parent)
    return np.unique(parent[:n_rows], return_inverse=True)[1]


def _order(similarity: np.ndarray, weights: np.ndarray, scale: float) -> np.ndarray:
    """Rows in an order that follows from values: by rounded mean similarity to all rows, then by weight."""
    degree = similarity @ (weights / weights.sum())
    return np.lexsort((-weights, -np.round(degree / scale, 10)))


def _sorted_merges(pairs: np.ndarray, heights: np.ndarray, weights: np.ndarray, scale: float) -> np.ndarray:
    """Merges of slots, in the order of the chain, as a table of merges of clusters, most similar first."""
    n_rows = len(weights)
    # Ties keep the order of the chain, in which clusters are made before they are merged further.
    order = np.argsort(-np.round(heights / scale, 11), kind="stable")
    name = np.arange(n_rows)
    sizes = weights.astype(float)
    merges = np.empty((n_rows - 1, 4))
    for t, (kept, gone) in enumerate(pairs[order].tolist()):
        sizes[kept] += sizes[gone]
        merges[t] = *sorted((name[kept], name[gone])), heights[order[t]], sizes[kept]
        name[kept] = n_rows + t
    return merges


@compiled(reads=1)
def _inherit(pairs, parent):  # type: ignore[no-untyped-def]
    """Every cluster gets the last one that it became part of, its own number before."""
    n_rows = len(parent) - len(pairs)
    for t in range(len(pairs) - 1, -1, -1):  # from the top: a parent is final before its children look
        parent[pairs[t, 0]] = parent[n_rows + t]
        parent[pairs[t, 1]] = parent[n_rows + t]


# Never with `reorder`: reordered sums would make ties of their own.
@compiled()
def _chain(s, sizes, order, tie, pairs, heights):  # type: ignore[no-untyped-def]
    """Nearest-neighbour chain. A cluster lives in the slot of its first row in `order`."""
    n_rows = len(order)
    rank = np.empty(n_rows, dtype=np.int64)
    for r in range(n_rows):
        rank[order[r]] = r
    alive = order.copy()  # slots of living clusters, in any order
    place = rank.copy()  # where a slot is in `alive`, -1 for a dead one
    lowest = np.full(n_rows, np.inf)  # similarity of the last merge of each slot
    chain = np.empty(n_rows, dtype=np.int64)
    length, n_alive, first = 0, n_rows, 0
    for t in range(n_rows - 1):
        if length == 0:
            while place[order[first]] < 0:
                first += 1
            chain[0] = order[first]
            length = 1
        while True:
            top = chain[length - 1]
            near, best = -1, -np.inf
            for a in range(n_alive):
                other = alive[a]
                value = s[top, other]
                if value < best - tie or other == top:
                    continue
                if value > best + tie or rank[other] < rank[near]:
                    near = other
                best = max(best, value)
            # A tie goes to the predecessor, or the chain might not end.
            if length > 1 and s[top, chain[length - 2]] >= best - tie:
                near = chain[length - 2]
                break
            chain[length] = near
            length += 1
        length -= 2
        kept, gone = (top, near) if rank[top] < rank[near] else (near, top)
        # Rounding must not lift a merge above the merges that made its clusters.
        height = min(s[kept, gone], lowest[kept], lowest[gone])
        pairs[t, 0], pairs[t, 1], heights[t] = kept, gone, height
        lowest[kept] = height
        last = alive[n_alive - 1]
        alive[place[gone]] = last
        place[last] = place[gone]
        place[gone] = -1
        n_alive -= 1
        share = sizes[gone] / (sizes[kept] + sizes[gone])
        sizes[kept] += sizes[gone]
        for a in range(n_alive):
            other = alive[a]
            if other != kept:
                value = s[kept, other] + share * (s[gone, other] - s[kept, other])
                s[kept, other] = value
                s[other, kept] = value


@compiled()
def _spanning_tree(s, order, tie, pairs, heights):  # type: ignore[no-untyped-def]
    """Prim's algorithm from the first row of `order`; ties go to the row that comes first in it."""
    n_rows = len(order)
    link = np.full(n_rows, order[0])  # the nearest row of the tree
    near = np.empty(n_rows)
    outside = np.ones(n_rows, dtype=np.bool_)
    outside[order[0]] = False
    for r in range(n_rows):
        near[r] = s[order[0], r]
    for t in range(n_rows - 1):
        new = -1
        for r in range(n_rows):
            row = order[r]
            if outside[row] and (new < 0 or near[row] > near[new] + tie):
                new = row
        pairs[t, 0], pairs[t, 1], heights[t] = link[new], new, near[new]
        outside[new] = False
        for row in range(n_rows):
            if outside[row] and s[new, row] > near[row]:
                near[row] = s[new, row]
                link[row] = new
