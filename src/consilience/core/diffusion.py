"""Diffused linkage: similarity of label rows through all clusters that overlap with theirs, and its tree.

`consilience.consensus.dal` merges by it; `consilience.inference.hierarchy` judges its cuts.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from consilience.core.canonical import Rows, evenly
from consilience.core.linkage import average_linkage, cut
from consilience.core.tables import cluster_sizes, contingency, cross, elect, gather, quadratic

# How fast certainty falls with entropy, and the share of an even share from which on a cluster counts: the
# usual one, and the one for rows with so few labels that groups of them gather by chance.
THETA, MIN_SHARE = 0.4, 0.1
_SCARCE_SHARE, _SCARCE, _PRESENT = 0.2, 6.0, 0.6
# Up to this many rows all pairs are linked, in two dense tables of .2 GB; beyond, micro-clusters of a sample.
MAX_ROWS = 5_000
# So many coordinates do for k-means of the points behind the similarity.
_PROJECTED = 256
_UNASSIGNED = -1


class Kernel(NamedTuple):
    """The similarity S in its parts; see `diffuse`."""

    rows: Rows
    table: np.ndarray  # F: observed over expected overlap of base clusters, weighted by their certainty
    norms: np.ndarray  # per row, the square root of z^T F z


def diffuse(rows: Rows, q: np.ndarray) -> Kernel:
    r"""The two-step diffusion kernel of the graph of rows and base clusters, with a unit diagonal.

    .. math::
        S_{ij} = \frac{z_i^T F z_j}{\sqrt{z_i^T F z_i \; z_j^T F z_j}}, \qquad
        F_{cd} = \frac{q_c q_d}{n_c n_d} \sum_i w_i \frac{z_{ic} z_{id}}{s_i}, \quad s_i = z_i^T q

    Symbols: z -> rows.codes (-1 = missing); w -> rows.counts; q -> certainty of every base cluster.
    Cost: a pass over the rows and a table of all pairs of base clusters.
    """
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    q = rows.weigh_clusters(q)  # three bases that say the same mark a cluster three times
    s = gather(codes, offsets, q[:, None])[:, 0]
    sizes = cluster_sizes(codes, offsets, w)
    scale = q / np.maximum(sizes, 1.0)  # a cluster without members overlaps with nothing
    table = contingency(codes, offsets, w / s) * scale * scale[:, None]
    return Kernel(rows, table, np.sqrt(quadratic(codes, offsets, table)))


def similarity(kernel: Kernel) -> np.ndarray:
    """S of all pairs of rows."""
    codes, offsets, table, norms = kernel.rows.codes, kernel.rows.offsets, kernel.table, kernel.norms
    half = np.ascontiguousarray(gather(codes, offsets, table).T)
    return gather(codes, offsets, half) / norms / norms[:, None]


def modularity(kernel: Kernel, labels: np.ndarray, n_clusters: int) -> float:
    r"""How much more similarity lies inside clusters than their sizes, in similarity, let one expect.

    .. math:: Q = \sum_c \frac{M_{cc}}{t} - \sum_c \Bigl( \frac{\sum_d M_{cd}}{t} \Bigr)^2, \qquad
        M_{cd} = \sum_{i \in c, j \in d, i \ne j} S_{ij}, \quad t = \sum_{cd} M_{cd}

    over instances, not rows. One cluster has 0.

    Cost: a pass over the rows; no pairs.
    """
    codes, offsets, w = kernel.rows.codes, kernel.rows.offsets, kernel.rows.weights
    v = cross(codes, offsets, labels, w / kernel.norms, n_clusters)
    m = v.T @ (kernel.table @ v)
    m[np.diag_indices(n_clusters)] -= np.bincount(labels, w, n_clusters)  # an instance is not its own pair
    t = m.sum()
    return float(m.trace() / t - ((m.sum(axis=1) / t) ** 2).sum()) if t > 0.0 else 0.0


def counting_share(rows: Rows) -> float:
    """The share of an even share from which on a cluster counts in a cut of these rows.

    It is twice the usual one where rows have, on average, fewer than six labels and at most 60 % of those
    that they could have: then many agree by chance, and average linkage gives them clusters of their own.
    """
    n_labels = rows.weights @ rows.weigh_bases(rows.codes >= 0) / rows.weights.sum()
    n_bases = rows.codes.shape[1] if rows.base_weights is None else rows.base_weights.sum()
    scarce = n_labels < _SCARCE and n_labels <= _PRESENT * n_bases
    return _SCARCE_SHARE if scarce else MIN_SHARE


class Tree(NamedTuple):
    """Rows in leaves, and the merges of the leaves."""

    merges: np.ndarray
    weights: np.ndarray  # of the leaves
    leaf: np.ndarray  # of every row

    def cut(self, n_clusters: int, min_share: float) -> np.ndarray:
        """Labels of the rows by `significant_cut`; -1 for those in clusters that do not count."""
        return significant_cut(self.merges, self.weights, n_clusters, min_share)[self.leaf]


def link(kernel: Kernel) -> Tree:
    """Average linkage of all rows."""
    w = kernel.rows.weights
    return Tree(average_linkage(similarity(kernel), w), w, np.arange(len(w)))


def link_micro_clusters(
    kernel: Kernel, n_micro: int, n_starts: int, rng: np.random.RandomState
) -> Iterator[Tree]:
    """Average linkage of so many micro-clusters, from every start.

    With A A^T = F the rows of B A, scaled to unit length, have S as inner products; k-means of these points
    makes the micro-clusters. Where there are many base clusters, it gets a random projection of the points,
    which changes their distances little. What is linked is the mean similarity of the members, which needs
    no points and is exact.
    """
    codes, offsets, w = kernel.rows.codes, kernel.rows.offsets, kernel.rows.weights
    table, norms = kernel.table, kernel.norms
    values, vectors = np.linalg.eigh(table)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    if len(root) > _PROJECTED:
        root = root @ (rng.standard_normal((len(root), _PROJECTED)) / np.sqrt(_PROJECTED))
    points = (gather(codes, offsets, root) / norms[:, None]).astype(np.float32)
    for _ in range(n_starts):
        model = KMeans(min(n_micro, len(w)), init="random", n_init=1, max_iter=10, random_state=rng)
        leaf = np.unique(model.fit(points, sample_weight=w).labels_, return_inverse=True)[1]
        sizes = np.bincount(leaf, weights=w)
        sums = cross(codes, offsets, leaf, w / norms, len(sizes)) / sizes
        means = sums.T @ (table @ sums)
        yield Tree(average_linkage((means + means.T) / 2.0, sizes), sizes, leaf)


def draw(kernel: Kernel, most: int, start: float = 0.5) -> tuple[np.ndarray, Kernel]:
    """Which rows `evenly` draws, and the kernel on these."""
    rows = kernel.rows
    places, counts = evenly(rows.counts, most, start)
    return places, kernel._replace(
        rows=rows._replace(codes=rows.codes[places], counts=counts), norms=kernel.norms[places]
    )


def relocate(
    kernel: Kernel, labels: np.ndarray, n_clusters: int, max_iter: int, *, held: np.ndarray | None = None
) -> tuple[np.ndarray, int]:
    """Every row to the cluster of highest mean similarity, until none moves; and the number of sweeps.

    Rows that are `held` stay where they are.
    """
    if (labels == _UNASSIGNED).any():
        labels = np.where(labels == _UNASSIGNED, nearest(kernel, labels, n_clusters), labels)
    n_iter, settled = 0, False
    while not settled and n_iter < max_iter:
        moved = nearest(kernel, labels, n_clusters)
        if held is not None:
            moved = np.where(held, labels, moved)
        gone = np.bincount(moved, minlength=n_clusters) == 0
        moved = np.where(gone[labels], labels, moved)  # a cluster that would be empty keeps its rows
        settled = np.array_equal(moved, labels)
        labels = moved
        n_iter += 1
    return labels, n_iter


def nearest(kernel: Kernel, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """The cluster to whose members each row is most similar on average; label -1 is in none."""
    codes, offsets, w = kernel.rows.codes, kernel.rows.offsets, kernel.rows.weights
    sums = kernel.table @ cross(codes, offsets, labels, w / kernel.norms, n_clusters)
    assigned = labels != _UNASSIGNED
    sizes = np.bincount(labels[assigned], weights=w[assigned], minlength=n_clusters)
    return elect(codes, offsets, sums / sizes, np.zeros(n_clusters))


def significant_cut(merges: np.ndarray, weights: np.ndarray, n_clusters: int, min_share: float) -> np.ndarray:
    """Labels of the coarsest cut with `n_clusters` clusters that count; -1 for rows of the others.

    A cluster counts if it has `min_share` of the weight that it would have if all were equal. Where no cut
    has exactly so many, the coarsest that has more, and its largest clusters are kept; where none has so
    many, the cut into `n_clusters` clusters of any size.
    """
    n_rows = len(weights)
    enough = max(1.0, min_share * weights.sum() / n_clusters)
    pairs = merges[:, :2].astype(np.int64)
    counts = np.concatenate([weights, merges[:, 3]]) >= enough
    # Every merge takes two clusters away and adds one.
    change = counts[n_rows:].astype(int) - counts[pairs].sum(axis=1)
    n_counting = counts[:n_rows].sum() + np.concatenate([[0], np.cumsum(change)])
    last = n_rows - n_clusters  # merges after which `n_clusters` clusters are left
    n_merges = last
    for wanted in (n_counting == n_clusters, n_counting > n_clusters):
        if wanted[: last + 1].any():
            n_merges = int(np.flatnonzero(wanted[: last + 1])[-1])
            break
    n_left = n_rows - n_merges
    labels = cut(merges, n_left)
    kept = np.full(n_left, _UNASSIGNED)
    largest = np.argsort(-np.bincount(labels, weights, n_left), kind="stable")[:n_clusters]
    kept[largest] = np.arange(n_clusters)
    return kept[labels]
