"""APMC on views in row blocks: anchors go to every block, small tables of anchors come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator

from consilience import multiview
from consilience._support.errors import InputError
from consilience.core.anchors import nearest_anchors, pair_weights
from consilience.core.eigen import DENSE, Eigenpairs, leading_eigenpairs
from consilience.dask.engine import add, stack
from consilience.dask.views import ViewBlocks, ViewBlocksMixin, ViewRows
from consilience.evidence.cells import FILLED
from consilience.multiview.apmc import (
    FEW,
    Link,
    Side,
    choose_anchors,
    extend,
    groups_of_views,
    membership,
    n_nearest,
    reach,
    scaled_factor,
    unlinked_views,
    with_scales,
)
from consilience.multiview.scaling import (
    Scaling,
    by_deviation,
    by_rarity,
    refuse_negative,
    scale_views,
)


class Seen(NamedTuple):
    """What a first look at the features tells: sums over the rows that a view has."""

    sizes: tuple[int, ...]
    observed: np.ndarray
    lowest: np.ndarray
    sums: Sequence[np.ndarray]
    filled: Sequence[np.ndarray]  # entries that are not zero, per feature


def look(block: ViewRows) -> Seen:
    """The first look at a block."""
    return Seen(
        (len(block.observed),),
        block.observed,
        np.array([array.min(initial=0.0) for array in block.arrays]),
        [array.sum(axis=0) for array in block.arrays],  # absent rows are zero
        [(array != 0).sum(axis=0) for array in block.arrays],
    )


def merge_looks(parts: Sequence[Seen]) -> Seen:
    """Several blocks as one."""
    return Seen(
        sum((part.sizes for part in parts), ()),
        np.concatenate([part.observed for part in parts]),
        np.min([part.lowest for part in parts], axis=0),
        *add([part[3:] for part in parts]),
    )


def spread_of(block: ViewRows, centers: list[np.ndarray]) -> list[np.ndarray]:
    """Squared deviations from the means, summed over the rows that a view has."""
    pairs = zip(block.arrays, centers, block.observed.T, strict=True)
    return [np.square(array[present] - center).sum(axis=0) for array, center, present in pairs]


def learn_scalings(blocks: ViewBlocks, seen: Seen, normalize: str | None) -> list[Scaling]:
    """The scaling of every view, as `multiview.scaling.learn_scaling` finds it."""
    n = seen.observed.sum(axis=0)
    if normalize == "tfidf":
        refuse_negative(blocks.names, seen.lowest)
    kinds = [normalize or "none"] * len(n)
    if normalize == "auto":
        entries = n * [len(filled) for filled in seen.filled]
        text = (np.array([filled.sum() for filled in seen.filled]) < FILLED * entries) & (seen.lowest >= 0)
        kinds = np.where(text, "tfidf", "standard").tolist()
    centers = [total / max(count, 1) for total, count in zip(seen.sums, n, strict=True)]
    spread = blocks.reduce("scaling", spread_of, add, centers) if "standard" in kinds else centers
    learned = {
        "tfidf": lambda v: by_rarity(n[v], seen.filled[v]),
        "standard": lambda v: by_deviation(centers[v], spread[v] / n[v]),
    }
    return [learned[kind](v) if kind in learned else Scaling(kind) for v, kind in enumerate(kinds)]


def take_rows(block: ViewRows, rows: list[np.ndarray], scalings: list[Scaling]) -> list[np.ndarray]:
    """Scaled features of some rows, given per block."""
    return [array[rows[block.number]] for array in scale_views(block, scalings)]


def distances_of(block: ViewRows, scalings: list[Scaling], link: Link) -> np.ndarray:
    """Distances to the nearest anchors, summed, for the sides of a pair, and how many they are."""
    arrays, out = scale_views(block, scalings), np.zeros((len(link.sides), 2))
    for s, side in enumerate(link.sides):
        x = arrays[side.view][block.observed[:, side.view]]
        if len(x):
            distance = np.sqrt(nearest_anchors(x, side.reference, side.n_neighbors).distance)
            out[s] = distance.sum(), distance.size
    return out


def choose_links(
    blocks: ViewBlocks,
    seen: Seen,
    scalings: list[Scaling],
    n_clusters: int,
    *,
    n_neighbors: int | None,
    bandwidth: float | str,
    n_anchors: int,
    rng: np.random.RandomState,
) -> tuple[list[Link], dict[tuple[int, ...], str]]:
    """The pairs of views and their anchors, as `apmc` chooses them."""
    chosen, linkage = choose_anchors(seen.observed, n_clusters, n_anchors, rng)
    for pair, how in linkage.items():
        if how == "diffusion":
            names = " and ".join(repr(blocks.names[v]) for v in pair)
            shared = seen.observed[:, pair].all(axis=1).sum()
            raise InputError(
                f"the views {names} have {shared} instances in common, APMC on blocks needs "
                f"{FEW * n_clusters}.",
                hint="leave one of the views out, or use consilience.APMC in memory.",
            )
    groups = groups_of_views(list(chosen), len(blocks.names))
    if len(groups) > 1:
        raise ValueError(unlinked_views(groups, blocks.names))
    rows = np.unique(np.concatenate(list(chosen.values())))
    ends = np.cumsum(seen.sizes)
    local = np.split(rows, np.searchsorted(rows, ends[:-1]))
    local = [part - start for part, start in zip(local, ends - seen.sizes, strict=True)]
    features = blocks.reduce("anchors", take_rows, stack, local, scalings)
    sigma = None if isinstance(bandwidth, str) else float(bandwidth)
    links = []
    for pair, anchors in chosen.items():
        m, at = n_nearest(n_neighbors, len(anchors), n_clusters), np.searchsorted(rows, anchors)
        sides = tuple(Side(v, features[v][at], m, sigma, None) for v in pair)
        link = Link(pair, anchors, sides, np.ones(len(anchors)))
        if bandwidth == "mean_distance":
            sums = blocks.reduce("anchors", distances_of, add, scalings, link)
            means = (sums[:, 0] / sums[:, 1]).tolist()
            sides = tuple(side._replace(bandwidth=mean) for side, mean in zip(sides, means, strict=True))
            link = link._replace(sides=sides)
        links.append(link)
    return links, linkage


class Reach(NamedTuple):
    """How a block becomes rows of the factor: what every worker knows."""

    scalings: list[Scaling]
    links: list[Link]
    kinds: np.ndarray  # which pairs hold an instance, for every kind of instance there is

    def weights(self, block: ViewRows) -> tuple[sp.csr_array, np.ndarray]:
        """Z Lambda^(-1/2) of a block, and the kind of each row."""
        arrays = scale_views(block, self.scalings)
        tables = [reach(arrays, block.observed, link, fitted=True) for link in self.links]
        member = membership(self.links, block.observed)
        distinct, inverse = np.unique(member, axis=0, return_inverse=True)
        kind = (distinct[:, None] == self.kinds).all(axis=2).argmax(axis=1)
        return scaled_factor(self.links, tables), kind[inverse.ravel()]


class Extension(NamedTuple):
    """How a block becomes rows of the embedding, up to their length."""

    known: Reach
    table: np.ndarray  # per kind of row

    def __call__(self, block: ViewRows) -> np.ndarray:
        """Rows of the embedding."""
        arrays = scale_views(block, self.known.scalings)
        return extend(self.known.links, self.known.kinds, self.table, arrays, block.observed)


def count_anchors(block: ViewRows, known: Reach) -> tuple[np.ndarray, sp.csr_array]:
    """Sums of the columns of Z by kind of row, and in how many rows two anchors occur."""
    factor, kind = known.weights(block)
    n = len(kind)
    chosen = sp.csr_array((np.ones(n), (kind, np.arange(n))), shape=(len(known.kinds), n))
    pattern = factor.copy()
    pattern.data[:] = 1.0
    return (chosen @ factor).toarray(), (pattern.T @ pattern).tocsr()


def normalized_grams(
    block: ViewRows, known: Reach, degree_tables: np.ndarray, parts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A^T D^-1 A by kind of row, and rows and degrees of every component."""
    factor, kind = known.weights(block)
    degrees = np.asarray(factor.multiply(degree_tables[kind]).sum(axis=1)).ravel()
    grams = np.zeros((len(known.kinds), factor.shape[1], factor.shape[1]))
    for g in np.unique(kind):
        rows = np.flatnonzero(kind == g)
        grams[g] = (factor[rows].T @ (sp.diags_array(1.0 / degrees[rows]) @ factor[rows])).toarray()
    part = parts[factor.indices[factor.indptr[:-1]]]
    n_parts = int(parts.max()) + 1
    return grams, np.stack([np.bincount(part, minlength=n_parts), np.bincount(part, degrees, n_parts)])


def eigenpairs_of(
    grams: np.ndarray, kind_weights: np.ndarray, known: list[np.ndarray], k: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""The leading eigenvalues of the normalised similarity, and the tables that make rows of eigenvectors.

    .. math:: D^{-1/2} S D^{-1/2} = B (C \otimes I) B^T

    B holds the rows of :math:`D^{-1/2} Z \Lambda^{-1/2}`, each in the columns of its kind, and C one over the
    number of pairs that two kinds have in common. With :math:`B^T B = R R^T`, the small matrix
    :math:`R^T (C \otimes I) R` has the same eigenvalues; of its eigenvector u, the rows of the large one are
    those of B times :math:`(C \otimes I) R u / \lambda`.

    Symbols: B^T B -> grams, per kind; C -> kind_weights. `known` are ``B^T v`` of eigenvectors v of
    value one.
    Cost: kinds x anchors^3 and products of that size.
    """
    roots, inverses = [], []
    for gram in grams:
        values, vectors = np.linalg.eigh(gram)
        kept = values > 1e-13 * max(values[-1], 1e-300)
        roots.append(vectors[:, kept] * np.sqrt(values[kept]))
        inverses.append((vectors[:, kept] / np.sqrt(values[kept])).T)
    ends = np.cumsum([root.shape[1] for root in roots])
    size, cuts = int(ends[-1]), ends[:-1]

    def product(x: np.ndarray) -> np.ndarray:
        parts = np.split(x.reshape(size, -1), cuts)
        spread = np.stack([root @ part for root, part in zip(roots, parts, strict=True)])
        mixed = np.tensordot(kind_weights, spread, axes=1)
        return np.concatenate([root.T @ part for root, part in zip(roots, mixed, strict=True)])

    ones = [
        np.concatenate([inverse @ part for inverse, part in zip(inverses, b, strict=True)]) for b in known[:k]
    ]
    basis = np.column_stack([u / np.linalg.norm(u) for u in ones])
    if len(grams) == 1 and size <= DENSE and basis.shape[1] < k:
        found = leading_eigenpairs(product(np.eye(size)), k)
    else:
        operator = LinearOperator((size, size), matvec=product, matmat=product, dtype=np.float64)
        found = leading_eigenpairs(operator, k, known=Eigenpairs(np.ones(basis.shape[1]), basis))
    kept = found.values > 1e-12
    values, vectors = found.values[kept], found.vectors[:, kept]
    parts = np.split(vectors, cuts)
    return values, np.stack([root @ part for root, part in zip(roots, parts, strict=True)]) / values


class Found(NamedTuple):
    """What APMC learned from blocks."""

    sizes: tuple[int, ...]
    n_features: tuple[int, ...]
    width: int
    embed: Extension
    extend: Extension
    eigenvalues: np.ndarray
    observed: np.ndarray
    linkage: dict[tuple[int, ...], str]
    n_components: int


class APMC(ViewBlocksMixin, multiview.APMC):  # type: ignore[misc]  # blocks have no mask
    """APMC on views in row blocks: a dask array per view, or a list of blocks.

    The anchors, which are few, go to every block; blocks send back tables of the size of the anchors, and the
    eigenvectors follow from these. So it takes a handful of passes and no memory of the size of the rows but
    for k-means on the embedding. The answer is that of :class:`consilience.APMC`.

    Parameters
    ----------
    n_clusters, n_neighbors, bandwidth, normalize, n_anchors, n_init, random_state
        See :class:`consilience.APMC`.

    Attributes
    ----------
    labels_, embedding_ : dask array or BlockArray
        As in :class:`consilience.APMC`, aligned with the input and computed when asked for; rows of
        `embedding_` are not scaled to norm one.
    eigenvalues_, anchors_, linkage_, n_components_, n_clusters_, observed_, view_names_
        As in :class:`consilience.APMC`.

    Notes
    -----
    Every pair of views that is needed must have 8 common instances for each cluster: what the method does for
    fewer needs all rows at once. k-means runs on all rows up to ten million, and on every so many-th row of
    more. Blocks send tables of the anchors of all pairs, squared, for every kind of row: with many views,
    lower `n_anchors`.
    """

    def _solve_blocks(self, blocks: ViewBlocks, rng: np.random.RandomState) -> Found:
        k = int(self.n_clusters)
        seen = blocks.reduce("reading", look, merge_looks)
        scalings = learn_scalings(blocks, seen, self.normalize)
        links, linkage = choose_links(
            blocks,
            seen,
            scalings,
            k,
            n_neighbors=None if self.n_neighbors == "auto" else int(self.n_neighbors),
            bandwidth=self.bandwidth,
            n_anchors=self.n_anchors,
            rng=rng,
        )
        known = Reach(scalings, links, np.unique(membership(links, seen.observed), axis=0))
        sums, together = blocks.reduce("anchors", count_anchors, add, known)
        known = known._replace(links=with_scales(links, sums.sum(axis=0)))
        projected = sums * np.concatenate([link.scale for link in known.links])  # A_h^T 1
        kind_weights = pair_weights(known.kinds, known.kinds)
        parts = connected_components(together, directed=False)[1]
        grams, (members, degrees) = blocks.reduce(
            "similarity", normalized_grams, add, known, kind_weights @ projected, parts
        )
        occupied = np.flatnonzero(members)
        largest = occupied[np.argsort(-members[occupied], kind="stable")]
        ones = [np.where(parts == part, projected, 0.0) / np.sqrt(degrees[part]) for part in largest]
        values, table = eigenpairs_of(grams, kind_weights, ones, k)
        embed = Extension(known, table)
        n_features = tuple(map(len, seen.sums))
        return Found(
            seen.sizes, n_features, table.shape[2], embed, embed, values, seen.observed, linkage, len(largest)
        )

    def _keep(self, found: Found) -> None:
        names = self.view_names_
        self.observed_ = found.observed
        self.eigenvalues_, self.n_components_ = found.eigenvalues, found.n_components
        self.linkage_ = {tuple(names[v] for v in pair): how for pair, how in found.linkage.items()}
        links = found.embed.known.links
        self.anchors_ = {tuple(names[v] for v in link.views): link.anchors for link in links}
        self._check_components()
