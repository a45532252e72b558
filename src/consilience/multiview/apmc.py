"""Anchor-based partial multi-view clustering (APMC): who shares no view meets through those who do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import pairwise_distances_argmin

from consilience._support.errors import Phrase
from consilience._support.threads import one_thread
from consilience._support.warnings import warn
from consilience.core.anchors import (
    FusedSimilarity,
    Matrix,
    anchor_components,
    diffused_kernel,
    fused_eigenpairs,
    graph_eigenpairs,
    nearest_anchors,
    pair_weights,
    spread_rows,
    truncated_kernel,
)
from consilience.core.graphs import neighbour_graph
from consilience.core.parameters import Count, Positive, parameters
from consilience.core.stiefel import polar_factor
from consilience.evidence.views import Views
from consilience.multiview.base import EmbeddingMethod, Normalize
from consilience.multiview.rows import cluster_rows, shares_by_distance, unit_rows
from consilience.multiview.scaling import learn_scalings, scale_views
from consilience.registry import About

# Below this many common instances for every cluster, anchors are reached through the neighbours in a view.
FEW = 8
# Nearest anchors of an instance, as a share of the anchors for each cluster.
SHARE = 0.5
# Neighbours and reach of that diffusion.
_DIFFUSION_NEIGHBOURS, _DIFFUSION_REACH = 10, 0.95


class Side(NamedTuple):
    """How a view reaches the anchors: weights of the nearest reference rows, then `table` if there is one."""

    view: int
    reference: Matrix  # features of the anchors, or of all rows of the view
    n_neighbors: int
    bandwidth: float | None  # None: the distance to the farthest of the nearest reference rows
    table: np.ndarray | None  # what each reference row stands for; None: an anchor of its own


class Link(NamedTuple):
    """A pair of views, its anchors, and its graph ``S = Z Lambda^-1 Z^T``."""

    views: tuple[int, ...]
    anchors: np.ndarray
    sides: tuple[Side, ...]
    scale: np.ndarray  # Lambda^(-1/2)


class UnlinkedViewsError(ValueError):
    """Groups of views without an instance in common, by their numbers."""

    def __init__(self, groups: list[list[int]]) -> None:
        super().__init__(groups)
        self.groups = groups


class APMCResult(NamedTuple):
    """What `apmc` learned."""

    labels: np.ndarray
    embedding: np.ndarray  # F with rows of norm one
    centers: np.ndarray  # of the clusters in the embedding
    eigenvalues: np.ndarray
    links: list[Link]
    linkage: dict[tuple[int, ...], str]  # per pair of views
    similarity: FusedSimilarity | None  # None: no pair has enough anchors, embeddings were aligned instead
    extension: np.ndarray | None  # F of a new instance from its weights, per kind of instance
    n_components: int


def apmc(
    arrays: Sequence[Matrix],
    observed: np.ndarray,
    n_clusters: int,
    *,
    n_neighbors: int | None,
    bandwidth: float | str,
    n_anchors: int,
    n_init: int,
    rng: np.random.RandomState,
) -> APMCResult:
    r"""Spectral clustering of a similarity that goes through the instances two views have in common.

    .. math::
        S^{(ab)} = Z \Lambda^{-1} Z^T, \quad \Lambda = diag(Z^T 1), \qquad
        \max_{F^T F = I} tr(F^T D^{-1/2} S D^{-1/2} F) \qquad (4)

    Z holds Gaussian weights (1) of every instance to its m nearest anchors, averaged over the views that
    have the instance; anchors of a pair of views are the instances in both. With more than two views, S is
    the average of the pairs' graphs, entry by entry, over the pairs that hold both instances; D = diag(S 1).

    Symbols: m -> n_neighbors (None: half the anchors for each cluster); sigma -> bandwidth; l -> n_anchors at
    most; K -> n_clusters; F -> embedding, before its rows are scaled to norm one.

    Cost: instances x anchors x features for the neighbours of each pair; then products with a sparse factor
    of instances x pairs x 2 m entries. Nothing of instances x instances is built.
    """
    links, linkage = _link_views(arrays, observed, n_clusters, n_neighbors, bandwidth, n_anchors, rng)
    if not links:
        return _late(arrays, observed, n_clusters, linkage, n_init, rng)
    tables = [reach(arrays, observed, link, fitted=True) for link in links]
    links = with_scales(links, np.concatenate([np.asarray(z.sum(axis=0)) for z in tables]))
    # Section 4.2: the graphs of all pairs as one operator.
    similarity = FusedSimilarity(scaled_factor(links, tables), membership(links, observed))
    del tables
    parts = anchor_components(similarity.factor)
    values, vectors = fused_eigenpairs(similarity, parts, n_clusters)
    embedding = unit_rows(vectors)
    found = cluster_rows(embedding, n_clusters, n_init=n_init, rng=rng)
    extension = similarity.project(vectors / values / np.sqrt(similarity.degrees)[:, None])
    return APMCResult(
        labels=found.labels,
        embedding=embedding,
        centers=found.centers,
        eigenvalues=values,
        links=links,
        linkage=linkage,
        similarity=similarity,
        extension=extension,
        n_components=int(parts.max()) + 1,
    )


def _link_views(
    arrays: Sequence[Matrix],
    observed: np.ndarray,
    n_clusters: int,
    n_neighbors: int | None,
    bandwidth: float | str,
    n_anchors: int,
    rng: np.random.RandomState,
) -> tuple[list[Link], dict[tuple[int, ...], str]]:
    """The pairs of views with enough anchors, and how each is linked; no links if they leave a view out."""
    n_views = observed.shape[1]
    links: list[Link] = []

    @cache  # a view may have few instances in common with several others
    def graph(view: int) -> sp.csr_array:
        return neighbour_graph(arrays[view][np.flatnonzero(observed[:, view])], _DIFFUSION_NEIGHBOURS, 0)

    chosen, linkage = choose_anchors(observed, n_clusters, n_anchors, rng)
    for pair, anchors in chosen.items():
        m = n_nearest(n_neighbors, len(anchors), n_clusters)
        sides = tuple(
            _diffused_side(arrays[v], observed[:, v], v, anchors, graph(v))
            if linkage[pair] == "diffusion"
            else _anchor_side(arrays[v], observed[:, v], v, anchors, m, bandwidth)
            for v in pair
        )
        links.append(Link(pair, anchors, sides, np.ones(len(anchors))))
    if len(groups_of_views([link.views for link in links], n_views)) == 1:
        return links, linkage
    together = [pair for pair in linkage if observed[:, pair].all(axis=1).any()]
    groups = groups_of_views(together, n_views)
    if len(groups) > 1:
        raise UnlinkedViewsError(groups)
    return [], {pair: "alignment" if pair in together else "none" for pair in linkage}


def choose_anchors(
    observed: np.ndarray, n_clusters: int, n_anchors: int, rng: np.random.RandomState
) -> tuple[dict[tuple[int, ...], np.ndarray], dict[tuple[int, ...], str]]:
    """The anchors of the pairs of views that have enough of them, and how every pair is linked."""
    n_views = observed.shape[1]
    pairs: list[tuple[int, ...]] = list(combinations(range(n_views), 2)) if n_views > 1 else [(0,)]
    chosen, linkage = {}, dict.fromkeys(pairs, "none")
    for pair in pairs:
        common = np.flatnonzero(observed[:, pair].all(axis=1))
        if len(pair) == 2 and len(common) <= n_clusters:
            continue
        linkage[pair] = "diffusion" if len(pair) == 2 and len(common) < FEW * n_clusters else "anchors"
        if len(common) > n_anchors:
            common = np.sort(rng.choice(common, n_anchors, replace=False))
        chosen[pair] = common
    return chosen, linkage


def n_nearest(n_neighbors: int | None, n_anchors: int, n_clusters: int) -> int:
    """Nearest anchors of an instance: as many as asked for, or a share of those for each cluster."""
    return n_neighbors or max(3, round(SHARE * n_anchors / n_clusters))


def groups_of_views(pairs: Sequence[tuple[int, ...]], n_views: int) -> list[list[int]]:
    graph = np.eye(n_views)
    for pair in pairs:
        graph[pair[0], pair[-1]] = 1.0
    n_groups, labels = connected_components(sp.csr_array(graph), directed=False)
    return [np.flatnonzero(labels == group).tolist() for group in range(n_groups)]


def _anchor_side(
    x: Matrix, present: np.ndarray, view: int, anchors: np.ndarray, m: int, bandwidth: float | str
) -> Side:
    """Eq. (1): the view's instances to the anchors."""
    reference = x[anchors]
    sigma = None if isinstance(bandwidth, str) else float(bandwidth)
    if bandwidth == "mean_distance":
        sigma = float(np.sqrt(nearest_anchors(x[present], reference, m).distance).mean())
    return Side(view, reference, m, sigma, None)


def _diffused_side(
    x: Matrix, present: np.ndarray, view: int, anchors: np.ndarray, graph: sp.csr_array
) -> Side:
    """Weights of the anchors by random walks among all instances of the view.

    Few anchors are far from most instances, and a kernel says little at a distance; the instances between
    say more.
    """
    rows = np.flatnonzero(present)
    table = diffused_kernel(graph, np.searchsorted(rows, anchors), _DIFFUSION_REACH)
    return Side(view, x[rows], _DIFFUSION_NEIGHBOURS, None, table)


def reach(arrays: Sequence[Matrix], observed: np.ndarray, link: Link, *, fitted: bool) -> sp.csr_array:
    """Z of a pair: weights of its anchors, averaged over the views that have the instance."""
    total = sp.csr_array((len(observed), len(link.scale)))
    for side in link.sides:
        rows = np.flatnonzero(observed[:, side.view])
        if not len(rows):
            continue
        if fitted and side.table is not None:
            weights = sp.csr_array(side.table)
        else:
            weights = _weights(arrays[side.view][rows], side)
        total = total + spread_rows(weights, rows, len(observed))
    seen = observed[:, list(link.views)].sum(axis=1)
    total.data /= np.repeat(np.maximum(seen, 1), np.diff(total.indptr))
    return total


def _weights(x: Matrix, side: Side) -> sp.csr_array:
    near = nearest_anchors(x, side.reference, side.n_neighbors)
    weights = truncated_kernel(near, side.reference.shape[0], side.bandwidth)
    return weights if side.table is None else sp.csr_array(weights @ side.table)


def with_scales(links: list[Link], sums: np.ndarray) -> list[Link]:
    """The links with their Lambda^(-1/2), from the sums of the columns of Z of all pairs side by side."""
    # An anchor that is nobody's neighbour has an empty column: any scale will do.
    scale = 1.0 / np.sqrt(np.where(sums > 0, sums, 1.0))
    ends = np.cumsum([len(link.scale) for link in links])[:-1]
    return [link._replace(scale=part) for link, part in zip(links, np.split(scale, ends), strict=True)]


def scaled_factor(links: list[Link], tables: list[sp.csr_array]) -> sp.csr_array:
    """Z Lambda^(-1/2) of all pairs side by side. Overwrites the tables: they are the largest things here."""
    for link, z in zip(links, tables, strict=True):
        z.data *= link.scale[z.indices]
    return tables[0] if len(tables) == 1 else sp.hstack(tables, format="csr")


def membership(links: list[Link], observed: np.ndarray) -> np.ndarray:
    return np.column_stack([observed[:, list(link.views)].any(axis=1) for link in links])


def _late(
    arrays: Sequence[Matrix],
    observed: np.ndarray,
    n_clusters: int,
    linkage: dict[tuple[int, ...], str],
    n_init: int,
    rng: np.random.RandomState,
) -> APMCResult:
    """Too few anchors for a similarity between views: embed each view alone, and rotate them together.

    Views come in the order of how many instances they share with those before; each is rotated onto the
    average of those on the shared instances.
    """
    n, n_views = observed.shape
    total, placed = np.zeros((n, n_clusters)), np.zeros(n, dtype=bool)
    links, waiting = [], list(range(n_views))
    while waiting:
        view = max(waiting, key=lambda v: (observed[placed, v].sum(), observed[:, v].sum()))
        waiting.remove(view)
        rows = np.flatnonzero(observed[:, view])
        x = arrays[view][rows]
        h = np.zeros((len(rows), n_clusters))
        vectors = graph_eigenpairs(
            neighbour_graph(x, _DIFFUSION_NEIGHBOURS, 0), min(n_clusters, len(rows))
        ).vectors
        h[:, : vectors.shape[1]] = unit_rows(vectors)
        shared = placed[rows]
        if shared.any():
            h = h @ polar_factor(h[shared].T @ unit_rows(total[rows[shared]]))
        total[rows] += h
        placed[rows] = True
        side = Side(view, x, _DIFFUSION_NEIGHBOURS, None, h)
        links.append(Link((view,), rows, (side,), np.ones(n_clusters)))
    embedding = unit_rows(total)
    found = cluster_rows(embedding, n_clusters, n_init=n_init, rng=rng)
    return APMCResult(
        found.labels, embedding, found.centers, np.empty(0), links, linkage, None, None, n_components=1
    )


def _extend(result: APMCResult, arrays: Sequence[Matrix], observed: np.ndarray) -> np.ndarray:
    """Embedding of new instances: their similarity to all that were fitted, times the eigenvectors."""
    if result.similarity is None or result.extension is None:
        tables = [reach(arrays, observed, link, fitted=False) for link in result.links]
        return unit_rows(np.asarray(sum(table.toarray() for table in tables)))
    return unit_rows(extend(result.links, result.similarity.kinds, result.extension, arrays, observed))


def extend(
    links: list[Link],
    kinds: np.ndarray,
    extension: np.ndarray,
    arrays: Sequence[Matrix],
    observed: np.ndarray,
) -> np.ndarray:
    """Rows of F, up to their length, from the weights of the anchors and the kinds that were fitted."""
    tables = [reach(arrays, observed, link, fitted=False) for link in links]
    factor = scaled_factor(links, tables)
    here, inverse = np.unique(membership(links, observed), axis=0, return_inverse=True)
    mixed = np.tensordot(pair_weights(here, kinds), extension, axes=1)
    vectors = np.empty((len(observed), mixed.shape[2]))
    for kind, part in enumerate(mixed):
        rows = np.flatnonzero(inverse.ravel() == kind)
        vectors[rows] = factor[rows] @ part
    return vectors


@parameters
class APMC(EmbeddingMethod):
    """Anchor-based partial multi-view clustering: any number of views, rows absent here and there.

    Two instances that share no view are compared through those that both views have, the anchors: they are
    alike if they are near the same anchors. Nothing is imputed and nothing is iterated: nearest anchors, a
    few eigenvectors of a sparse low-rank similarity, and k-means. Use it for views of any kind, text counts
    included, of which every two (or enough of the pairs) have some tens of instances in common, and for
    large numbers of instances. Prefer another method when hardly any instance is in two views (it says so
    in a warning), and when one view is complete and the others add little: cluster that view.

    Parameters
    ----------
    n_neighbors : int or "auto", default="auto"
        Number of nearest anchors of an instance. "auto" is half of the anchors for each cluster of a pair of
        views, at least 3: more would reach beyond a cluster.
    bandwidth : {"local", "mean_distance"} or float, default="local"
        Width of the Gaussian weights of the nearest anchors: for every instance the distance to the farthest
        of them; their mean distance in a pair of views; or a number, in units of the normalised features.
    normalize : {"auto", "standard", "tfidf", "l2"} or None, default="auto"
        How the features of a view are prepared. "standard": every feature divided by its standard
        deviation. "tfidf": log(1 + value), weighted by how rare the feature is, rows of norm one. "l2": rows
        of norm one. None: as they are. "auto": "tfidf" for views without negative entries of which less than
        a tenth is not zero, else "standard".
    n_anchors : int, default=1000
        At most so many anchors for a pair of views; of more common instances, a random sample.
    random_state : int, RandomState instance or None, default=None
        Draws the starts of k-means, and the anchors where there are more than `n_anchors`.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, n_clusters)
        Rows of norm one, on which k-means runs; zero for the smallest components of a graph that has more of
        them than clusters.
    eigenvalues_ : ndarray
        The largest eigenvalues of the normalised similarity. Empty where views were aligned instead.
    affinity_operator_ : scipy.sparse.linalg.LinearOperator of shape (n_instances, n_instances) or None
        The fused similarity. It is never written out; its ``toarray()`` does, for small data. None where
        views were aligned instead.
    anchors_ : dict
        The rows that serve as anchors, by pair of view names.
    linkage_ : dict
        How each pair of views is linked: "anchors", as in the paper; "diffusion", where there are fewer than
        8 common instances for each cluster; "alignment", where there are too few for all pairs that are
        needed; "none", where the pair is left out.
    n_components_ : int
        Connected components of the similarity graph. Exactly `n_clusters` are the clusters; of more, the
        smallest are put together, with a warning.

    Notes
    -----
    Where this differs from the paper: the fused similarity of more than two views is not doubly stochastic,
    so it is normalised by its degrees; eigenvectors come from an operator grouped by the pairs of views that
    hold an instance, and copies of a repeated eigenvalue are never missed; rows of the embedding are scaled
    to norm one and the constant eigenvector is kept, which on synthetic data is better than either
    alternative; the bandwidth follows the data, since 1 fails for features that are not of norm one;
    pairs of views with few common instances are linked by diffusion among all instances of a view (a random
    walk with reach 0.95 over 10 neighbours), or, with `n_clusters` of them or fewer, through other views or
    by aligning the views' own spectral embeddings. All of that is said in ``linkage_``, the last in a
    warning. Views that no chain of common instances links are refused.

    References
    ----------
    J. Guo, J. Ye: Anchors Bring Ease: An Embarrassingly Simple Approach to Partial Multi-view Clustering.
    AAAI, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import APMC
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(missing=0.5, random_state=0)
    >>> model = APMC(n_clusters=2, random_state=0).fit(data.views, mask=data.observed)
    >>> model.labels_.shape
    (200,)
    >>> model.predict([[[1.0, 1.0], [4.0, 2.0]], None]).tolist() != [0, 0]
    True
    """

    about = About(
        use="any number of views of any kind; very many instances",
        avoid="hardly any instance is in two views",
        cost="instances x anchors x features",
        paper="Guo, Ye: Anchors Bring Ease: An Embarrassingly Simple Approach to Partial Multi-view "
        "Clustering. AAAI, 2019.",
        linear=True,
        featured=True,
    )

    n_neighbors: Count | Literal["auto"] = "auto"
    bandwidth: Positive | Literal["local", "mean_distance"] = "local"
    normalize: Normalize = "auto"
    n_anchors: Count = 1000

    def _solve(self, views: Views, rng: np.random.RandomState) -> APMCResult:
        self._scalings = learn_scalings(views, self.normalize)
        try:
            return apmc(
                scale_views(views, self._scalings),
                views.observed,
                self.n_clusters,
                n_neighbors=None if self.n_neighbors == "auto" else int(self.n_neighbors),
                bandwidth=self.bandwidth,
                n_anchors=self.n_anchors,
                n_init=self.n_init,
                rng=rng,
            )
        except UnlinkedViewsError as error:
            raise ValueError(unlinked_views(error.groups, views.names)) from None

    def _learn(self, result: APMCResult, views: Views, order: np.ndarray) -> None:
        names = views.names
        self._result = result
        self.embedding_ = result.embedding
        self.eigenvalues_ = result.eigenvalues
        self.affinity_operator_ = result.similarity
        self.n_components_ = result.n_components
        self.linkage_ = {tuple(names[v] for v in pair): how for pair, how in result.linkage.items()}
        self.anchors_ = {
            tuple(names[v] for v in link.views): link.anchors
            for link in result.links
            if self.affinity_operator_
        }
        if result.similarity is None:
            warn(
                Phrase(
                    "no more than {n_clusters=} instances link some of the views: their "
                    "embeddings were aligned instead of using anchors, which is less reliable.",
                    n_clusters=self.n_clusters,
                ),
                hint="have more instances in common, or leave out the view that is not linked.",
            )
        self._check_components()

    def _check_components(self) -> None:
        if self.n_components_ > self.n_clusters:
            warn(
                Phrase(
                    "the similarity graph has {n} components, more than {n_clusters=}: the "
                    "smallest were put together.",
                    n=self.n_components_,
                    n_clusters=self.n_clusters,
                ),
                hint="raise n_neighbors.",
            )

    def predict(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """Clusters of new instances from whichever views they have.

        An instance is placed among those that were fitted by its similarity to them, and gets the cluster
        whose centre is nearest.

        Parameters
        ----------
        X : list, tuple or dict of tables, one table, or Views
            The views that were fitted; None or NaN for those that are not there. A dict may leave views out.
        mask : array of bool of shape (n_instances, n_views), default=None
            False where the instance is absent from the view.
        """
        h = self._embed(X, mask)
        with one_thread():
            return pairwise_distances_argmin(h, self._centers).astype(self.labels_.dtype)

    def predict_proba(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """Shares of the clusters for new instances, (n_new, n_clusters); rows sum to one.

        In proportion to one over the squared distance to their centres: they rank clusters and instances and
        are no chances. The largest is that of the cluster which `predict` gives.

        Parameters
        ----------
        X, mask
            As in `predict`.
        """
        return shares_by_distance(self._embed(X, mask), self._centers)

    def _embed(self, X: Any, mask: Any) -> np.ndarray:
        views = self._read_new_views(X, mask)
        with one_thread():
            return _extend(self._result, scale_views(views, self._scalings), views.observed)


def unlinked_views(groups: list[list[int]], names: tuple[str, ...]) -> str:
    said = " and ".join("(" + ", ".join(repr(names[v]) for v in group) + ")" for group in groups)
    return (
        f"no instance links these groups of views: {said}. Hint: cluster each group on its own, or add "
        "instances that are present in a view of both."
    )
