"""APMC on views in row blocks: anchors go to every block, small tables of anchors come back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator
from threadpoolctl import threadpool_limits

from consilience import multiview
from consilience._errors import InputError
from consilience._sklearn import fit_context, random_source
from consilience._warnings import warn
from consilience.core.anchors import nearest_anchors, pair_weights
from consilience.core.eigen import DENSE, Eigenpairs, leading_eigenpairs
from consilience.dask.engine import Engine, engine_for
from consilience.dask.views import (
    ViewBlocks,
    cluster_blocks,
    lazy_rows,
    load_views,
    nearest_center,
    read_views,
)
from consilience.multiview.apmc import (
    FEW,
    SHARE,
    Link,
    Side,
    groups_of_views,
    membership,
    reach,
    scaled_factor,
    unlinked_views,
)
from consilience.multiview.scaling import TEXT, Scaling


class Seen(NamedTuple):
    """What a first look at the features tells: sums over the rows that a view has."""

    sizes: tuple[int, ...]
    observed: np.ndarray
    sums: list[np.ndarray]
    filled: list[np.ndarray]  # entries that are not zero, per feature
    lowest: np.ndarray


class Reach(NamedTuple):
    """How a block becomes rows of the factor: what every worker knows."""

    names: tuple[str, ...]
    scalings: list[Scaling]
    links: list[Link]
    kinds: np.ndarray  # which pairs hold an instance, for every kind of instance there is


def look(piece: Any, number: int, names: tuple[str, ...]) -> Seen:
    """The first look at a block."""
    block = load_views(piece, number, names)
    return Seen(
        (len(block.observed),),
        block.observed,
        [array.sum(axis=0) for array in block.arrays],  # absent rows are zero
        [(array != 0).sum(axis=0) for array in block.arrays],
        np.array([array.min(initial=0.0) for array in block.arrays]),
    )


def merge_looks(parts: Sequence[Seen]) -> Seen:
    """Several blocks as one."""
    return Seen(
        sum((part.sizes for part in parts), ()),
        np.concatenate([part.observed for part in parts]),
        [np.sum(columns, axis=0) for columns in zip(*(part.sums for part in parts), strict=True)],
        [np.sum(columns, axis=0) for columns in zip(*(part.filled for part in parts), strict=True)],
        np.min([part.lowest for part in parts], axis=0),
    )


def spread_of(piece: Any, number: int, names: tuple[str, ...], centers: list[np.ndarray]) -> list[np.ndarray]:
    """Squared deviations from the means, summed over the rows that a view has."""
    block = load_views(piece, number, names)
    pairs = zip(block.arrays, centers, block.observed.T, strict=True)
    return [np.square(array[present] - center).sum(axis=0) for array, center, present in pairs]


def _add_lists(parts: Sequence[list[np.ndarray]]) -> list[np.ndarray]:
    return [np.sum(tables, axis=0) for tables in zip(*parts, strict=True)]


def learn_scalings(engine: Engine, blocks: ViewBlocks, seen: Seen, normalize: str | None) -> list[Scaling]:
    """The scaling of every view, as `multiview.scaling.learn_scaling` finds it."""
    n = seen.observed.sum(axis=0)
    kinds = []
    for v, filled in enumerate(seen.filled):
        kind = normalize or "none"
        if kind == "auto":
            kind = "tfidf" if filled.sum() < TEXT * n[v] * len(filled) and seen.lowest[v] >= 0 else "standard"
        if kind == "tfidf" and seen.lowest[v] < 0:
            raise InputError(
                f"view {blocks.names[v]!r} has negative entries, which normalize='tfidf' cannot take.",
                hint="use normalize='auto' or 'standard'",
            )
        kinds.append(kind)
    centers = [total / max(count, 1) for total, count in zip(seen.sums, n, strict=True)]
    spread = centers
    if "standard" in kinds:
        spread = engine.reduce("scaling", spread_of, _add_lists, blocks.pieces, blocks.names, centers)
    found = []
    for v, kind in enumerate(kinds):
        if kind == "tfidf":
            found.append(Scaling(kind, factor=np.log((1.0 + n[v]) / (1.0 + seen.filled[v])) + 1.0))
        elif kind == "standard":
            deviation = np.sqrt(spread[v] / n[v])
            constant = deviation <= 1e-10 * np.abs(centers[v])
            found.append(
                Scaling(kind, centers[v], 1.0 / np.where(constant | (deviation == 0), 1.0, deviation))
            )
        else:
            found.append(Scaling(kind))
    return found


def take_rows(part: Any, number: int, names: tuple[str, ...], scalings: list[Scaling]) -> list[np.ndarray]:
    """Scaled features of some rows of a block."""
    piece, rows = part
    block = load_views(piece, number, names)
    return [
        scaling.apply(array, present)[rows]
        for scaling, array, present in zip(scalings, block.arrays, block.observed.T, strict=True)
    ]


def _stack_lists(parts: Sequence[list[np.ndarray]]) -> list[np.ndarray]:
    return [np.concatenate(tables) for tables in zip(*parts, strict=True)]


def distances_of(
    piece: Any, number: int, names: tuple[str, ...], scalings: list[Scaling], link: Link
) -> np.ndarray:
    """Distances to the nearest anchors, summed, for the sides of a pair, and how many they are."""
    block = load_views(piece, number, names)
    out = np.zeros((len(link.sides), 2))
    for s, side in enumerate(link.sides):
        present = block.observed[:, side.view]
        if present.any():
            x = scalings[side.view].apply(block.arrays[side.view], present)[present]
            distance = np.sqrt(nearest_anchors(x, side.reference, side.n_neighbors).distance)
            out[s] = distance.sum(), distance.size
    return out


def _sum(parts: Sequence[Any]) -> Any:
    return np.sum(parts, axis=0)


def weights_of(piece: Any, number: int, known: Reach) -> tuple[sp.csr_array, np.ndarray]:
    """Z Lambda^(-1/2) of a block, and which pairs of views hold each row."""
    block = load_views(piece, number, known.names)
    arrays = [
        scaling.apply(array, present)
        for scaling, array, present in zip(known.scalings, block.arrays, block.observed.T, strict=True)
    ]
    tables = [reach(arrays, block.observed, link, fitted=True) for link in known.links]
    return scaled_factor(known.links, tables), membership(known.links, block.observed)


def count_anchors(piece: Any, number: int, known: Reach) -> tuple[np.ndarray, sp.csr_array]:
    """Sums of the columns of Z by kind of row, and which anchors occur in one row."""
    factor, member = weights_of(piece, number, known)
    kind = _kind_of(member, known.kinds)
    chosen = sp.csr_array(
        (np.ones(len(kind)), (kind, np.arange(len(kind)))), shape=(len(known.kinds), len(kind))
    )
    pattern = factor.copy()
    pattern.data[:] = 1.0
    together = (pattern.T @ pattern).tocsr()
    together.data[:] = 1.0
    return (chosen @ factor).toarray(), together


def _merge_anchors(parts: Sequence[Any]) -> Any:
    together = parts[0][1]
    for _, more in parts[1:]:
        together = together + more
    together.data[:] = 1.0
    return np.sum([sums for sums, _ in parts], axis=0), together


def _kind_of(member: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    place = {row.tobytes(): g for g, row in enumerate(np.ascontiguousarray(kinds))}
    distinct, inverse = np.unique(member, axis=0, return_inverse=True)
    return np.array([place[np.ascontiguousarray(row).tobytes()] for row in distinct])[inverse.ravel()]


def normalized_grams(
    piece: Any, number: int, known: Reach, degree_tables: np.ndarray, parts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A^T D^-1 A by kind of row, and rows and degrees of every component."""
    factor, member = weights_of(piece, number, known)
    kind = _kind_of(member, known.kinds)
    degrees = np.asarray(factor.multiply(degree_tables[kind]).sum(axis=1)).ravel()
    grams = np.zeros((len(known.kinds), factor.shape[1], factor.shape[1]))
    for g in range(len(known.kinds)):
        rows = np.flatnonzero(kind == g)
        if len(rows):
            block = factor[rows]
            grams[g] = (block.T @ (sp.diags_array(1.0 / degrees[rows]) @ block)).toarray()
    part = parts[factor.indices[factor.indptr[:-1]]]
    n_parts = int(parts.max()) + 1
    return grams, np.stack([np.bincount(part, minlength=n_parts), np.bincount(part, degrees, n_parts)])


def _add_pairs(parts: Sequence[Any]) -> Any:
    return tuple(np.sum(tables, axis=0) for tables in zip(*parts, strict=True))


def embed_rows(piece: Any, number: int, given: Any) -> np.ndarray:
    """Rows of the embedding, up to their length."""
    known, extension = given
    factor, member = weights_of(piece, number, known)
    distinct, inverse = np.unique(member, axis=0, return_inverse=True)
    mixed = np.tensordot(pair_weights(distinct, known.kinds), extension, axes=1)
    out = np.empty((len(member), extension.shape[2]))
    for g, table in enumerate(mixed):
        rows = np.flatnonzero(inverse.ravel() == g)
        out[rows] = factor[rows] @ table
    return out


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
    cuts = ends[:-1]

    def product(x: np.ndarray) -> np.ndarray:
        x = x.reshape(int(ends[-1]), -1)
        spread = np.stack([root @ part for root, part in zip(roots, np.split(x, cuts), strict=True)])
        mixed = np.tensordot(kind_weights, spread, axes=1)
        return np.concatenate([root.T @ part for root, part in zip(roots, mixed, strict=True)])

    ones = [
        np.concatenate([inverse @ part for inverse, part in zip(inverses, b, strict=True)]) for b in known[:k]
    ]
    basis = np.column_stack([u / np.linalg.norm(u) for u in ones])
    if basis.shape[1] == k:
        found = Eigenpairs(np.ones(k), basis)
    elif len(grams) == 1 and ends[-1] <= DENSE:
        found = leading_eigenpairs(product(np.eye(int(ends[-1]))), k)
    else:
        size = int(ends[-1])
        operator = LinearOperator((size, size), matvec=product, matmat=product, dtype=np.float64)
        found = leading_eigenpairs(operator, k, known=Eigenpairs(np.ones(basis.shape[1]), basis))
    kept = found.values > 1e-12
    values, vectors = found.values[kept], found.vectors[:, kept]
    parts = np.split(vectors, cuts)
    return values, np.stack([root @ part for root, part in zip(roots, parts, strict=True)]) / values


class APMC(multiview.APMC):
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
    labels_, embedding_ : dask array or an iterable of blocks
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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> APMC:
        """Cluster the instances.

        Parameters
        ----------
        X : list or dict of dask arrays, or list of blocks
            The features of every view; an absent row is NaN. A block is a list or dict of arrays.
        y : ignored
            There for scikit-learn's interface.
        """
        blocks = read_views(X)
        engine = engine_for("views" if blocks.is_dask else "list")
        k = int(self.n_clusters)
        rng = random_source(self.random_state)
        with threadpool_limits(limits=1):  # the same answer whatever the threads
            seen = engine.reduce("reading", look, merge_looks, blocks.pieces, blocks.names)
            scalings = learn_scalings(engine, blocks, seen, self.normalize)
            links, linkage = self._links(engine, blocks, seen, scalings, rng)
            kinds = np.unique(membership(links, seen.observed), axis=0)
            known = Reach(blocks.names, scalings, links, kinds)
            sums, together = engine.reduce("anchors", count_anchors, _merge_anchors, blocks.pieces, known)
            known, values, extension, n_components = _solve(engine, blocks, known, sums, together, k)
            given = (known, extension)
            n = len(seen.observed)
            clusters = cluster_blocks(engine, blocks.pieces, embed_rows, given, n, k, self.n_init, rng)
        if n_components > k:
            warn(
                f"the similarity graph has {n_components} components, more than n_clusters={k}: the "
                "smallest were put together.",
                hint="raise n_neighbors.",
            )
        self.view_names_, self.observed_ = blocks.names, seen.observed
        self.n_features_per_view_ = tuple(len(total) for total in seen.sums)
        self.n_features_in_ = sum(self.n_features_per_view_)
        self._centers = clusters.centers[self._answer(clusters.labels)]
        self._given = given
        self.eigenvalues_, self.n_components_ = values, n_components
        self.linkage_ = {tuple(blocks.names[v] for v in pair): how for pair, how in linkage.items()}
        self.anchors_ = {tuple(blocks.names[v] for v in link.views): link.anchors for link in links}
        sizes = seen.sizes
        self.embedding_ = lazy_rows(engine, blocks, sizes, embed_rows, (given,), float, extension.shape[2])
        self.labels_ = lazy_rows(
            engine, blocks, sizes, nearest_center, (embed_rows, given, self._centers), np.int64
        )
        return self

    def _links(
        self,
        engine: Engine,
        blocks: ViewBlocks,
        seen: Seen,
        scalings: list[Scaling],
        rng: np.random.RandomState,
    ) -> tuple[list[Link], dict[tuple[int, ...], str]]:
        """The pairs of views and their anchors, as `apmc` chooses them."""
        n_views, k = len(blocks.names), int(self.n_clusters)
        pairs: list[tuple[int, ...]] = list(combinations(range(n_views), 2)) if n_views > 1 else [(0,)]
        chosen, linkage = {}, dict.fromkeys(pairs, "none")
        for pair in pairs:
            common = np.flatnonzero(seen.observed[:, pair].all(axis=1))
            if len(pair) == 2 and len(common) <= k:
                continue
            if len(pair) == 2 and len(common) < FEW * k:
                names = " and ".join(repr(blocks.names[v]) for v in pair)
                raise InputError(
                    f"the views {names} have {len(common)} instances in common, APMC on blocks needs "
                    f"{FEW * k}.",
                    hint="leave one of the views out, or use consilience.APMC in memory.",
                )
            if len(common) > self.n_anchors:
                common = np.sort(rng.choice(common, self.n_anchors, replace=False))
            chosen[pair], linkage[pair] = common, "anchors"
        groups = groups_of_views(list(chosen), n_views)
        if len(groups) > 1:
            raise ValueError(unlinked_views(groups, blocks.names))
        rows = np.unique(np.concatenate(list(chosen.values())))
        ends = np.cumsum(seen.sizes)
        local = np.split(rows, np.searchsorted(rows, ends[:-1]))
        starts = ends - np.array(seen.sizes)
        parts = [(p, r - s) for p, r, s in zip(blocks.pieces, local, starts, strict=True)]
        features = engine.reduce("anchors", take_rows, _stack_lists, parts, blocks.names, scalings)
        links = []
        for pair, anchors in chosen.items():
            m = (
                max(3, round(SHARE * len(anchors) / k))
                if self.n_neighbors == "auto"
                else int(self.n_neighbors)
            )
            sigma = None if isinstance(self.bandwidth, str) else float(self.bandwidth)
            at = np.searchsorted(rows, anchors)
            sides = tuple(Side(v, features[v][at], m, sigma, None) for v in pair)
            link = Link(pair, anchors, sides, np.ones(len(anchors)))
            if self.bandwidth == "mean_distance":
                sums = engine.reduce(
                    "anchors", distances_of, _sum, blocks.pieces, blocks.names, scalings, link
                )
                means = (sums[:, 0] / sums[:, 1]).tolist()
                sides = tuple(side._replace(bandwidth=mean) for side, mean in zip(sides, means, strict=True))
                link = link._replace(sides=sides)
            links.append(link)
        return links, linkage

    def predict(self, X: Any) -> np.ndarray:
        """Clusters of new instances, in memory, from whichever views they have.

        Parameters
        ----------
        X : list or dict of arrays
            The features of the new instances, one table per view; an absent row is NaN.
        """
        return nearest_center(read_views([X]).pieces[0], 0, embed_rows, self._given, self._centers)


def _solve(
    engine: Engine, blocks: ViewBlocks, known: Reach, sums: np.ndarray, together: sp.csr_array, k: int
) -> tuple[Reach, np.ndarray, np.ndarray, int]:
    """Scales of the anchors, degrees, components and eigenvectors."""
    total = sums.sum(axis=0)
    # An anchor that is nobody's neighbour has an empty column: any scale will do.
    scale = 1.0 / np.sqrt(np.where(total > 0, total, 1.0))
    ends = np.cumsum([len(link.scale) for link in known.links])[:-1]
    links = [link._replace(scale=part) for link, part in zip(known.links, np.split(scale, ends), strict=True)]
    known = known._replace(links=links)
    kind_weights = pair_weights(known.kinds, known.kinds)
    projected = sums * scale  # A_h^T 1
    parts = connected_components(together, directed=False)[1]
    grams, members = engine.reduce(
        "similarity", normalized_grams, _add_pairs, blocks.pieces, known, kind_weights @ projected, parts
    )
    occupied = np.flatnonzero(members[0] > 0)
    largest = occupied[np.argsort(-members[0][occupied], kind="stable")]
    ones = [np.where(parts == part, projected, 0.0) / np.sqrt(members[1][part]) for part in largest]
    values, extension = eigenpairs_of(grams, kind_weights, ones, k)
    return known, values, extension, len(largest)
