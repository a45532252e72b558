"""PSE, propagated spectral embeddings: embed each view softly, fill in who is absent, cluster once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from sklearn.metrics import adjusted_rand_score, euclidean_distances

from consilience._support.errors import InputError, Phrase
from consilience._support.threads import one_thread
from consilience._support.values import counted, did_you_mean
from consilience._support.warnings import warn
from consilience.core.eigen import leading_eigenpairs
from consilience.core.neighbours import NeighbourIndex
from consilience.core.parameters import parameters
from consilience.evidence.cells import ColumnScaling
from consilience.evidence.views import Kind, Views
from consilience.inference.counts import Finding
from consilience.inference.posterior import complete_chances
from consilience.metrics import matched_accuracy_score
from consilience.multiview.base import ViewMethod
from consilience.multiview.neighbours import (
    SILENT,
    InView,
    ViewDiagnostics,
    chances_of_votes,
    mean_support,
    shares_in_view,
    support_of_clusters,
)
from consilience.multiview.reading import Reading, ViewReading, read, says_something, stored
from consilience.multiview.rows import (
    canonical_order,
    cluster_rows,
    equal_instances,
    equal_rows,
    mean_of_equals,
    quick_clusters,
    unit_rows,
)
from consilience.multiview.scaling import kind_of
from consilience.registry import About

Matrix = Any  # a 2-D float array or a CSR array

# Sizes of neighbourhoods, averaged: which one suits a view is not known. Where there are many rows, one.
_SIZES, _MANY_ROWS, _SIZES_OF_MANY = (5, 10, 20, 40), 20_000, (20,)
# Weight of a row's links to all others, in mean degrees: it keeps small groups out of leading eigenvectors.
_TAU = 0.5
# Eigenvectors of a view and of all views, for each cluster and at most beyond their number.
_RANK, _EXTRA = 2, 30
_EIGEN_TOL, _EIGEN_TOL_OF_MANY = 1e-3, 1e-2
# Sweeps that fill in absent rows.
_SWEEPS = 10
# Views below the first relation to every other view are on their own, above the second not at all.
_APART = (0.10, 0.15)
# Below this one, the user is told.
UNRELATED = 0.12
_LEAST_SHARED = 10  # rows from which a relation is read
_LEAST_WEIGHT = 0.1
# Splits, starts of k-means, most rows and most columns of the test whether clusters of a view come again.
_SPLITS, _SPLIT_STARTS, _SPLIT_ROWS, _SPLIT_COLUMNS = 3, 3, 4000, 512
# Where weights are set: what was found is read in Python, at the shell and on the page.
_WEIGHTS = "view_weights= in Python, --weight at the shell"
# The user is told of a view that supports the clusters less than this much of what the best view does.
UNEQUAL = 0.5


# --- 1., 2. a view is read (see `reading`), and its neighbours make a graph ---------------------------------


class Look(NamedTuple):
    """Rows of a view in one look, and how far each of them reaches: one line for each neighbourhood size."""

    rows: Matrix
    among: NeighbourIndex
    sizes: tuple[int, ...]
    reach: np.ndarray  # mean squared distance to the m nearest
    least: np.ndarray  # the smallest width of a kernel, for each size


def neighbourhoods(x: Matrix) -> tuple[Look, sp.csr_array]:
    r"""Weights of the nearest rows of every row, which sum to one.

    .. math:: R_{ij} \propto \frac{1}{s_{ij}} \exp\left(-\frac{d_{ij}^2}{2 s_{ij}^2}\right), \qquad
        s_{ij} = \frac{r_i + r_j + d_{ij}}{6}

    for the m nearest j, averaged over m. Symbols: d_ij -> squared distance; r_i -> reach, mean of d_ij over
    these j.
    """
    n = x.shape[0]
    sizes = tuple(dict.fromkeys(min(m, n - 1) for m in (_SIZES if n <= _MANY_ROWS else _SIZES_OF_MANY)))
    known = NeighbourIndex(x)
    index, d = known.nearest(sizes[-1])
    reach = np.array([d[:, :m].mean(axis=1) for m in sizes])
    width = [(r[:, None] + r[index[:, :m]] + d[:, :m]).mean() / 6 for m, r in zip(sizes, reach, strict=True)]
    look = Look(x, known, sizes, reach, np.maximum(1e-8 * np.array(width), 1e-300))
    return look, _weights(look, index, d)


def neighbourhoods_of_new(look: Look, x: Matrix) -> sp.csr_array:
    """The same weights, of new rows to those that were fitted."""
    return _weights(look, *look.among.nearest(look.sizes[-1], x))


def _weights(look: Look, index: np.ndarray, d: np.ndarray) -> sp.csr_array:
    total = np.zeros_like(d)
    for m, reach, least in zip(look.sizes, look.reach, look.least, strict=True):
        near = d[:, :m]
        s = np.maximum((near.mean(axis=1)[:, None] + reach[index[:, :m]] + near) / 6.0, least)
        w = np.exp(-0.5 * (near / s) ** 2) / s
        total[:, :m] += w / (w.sum(axis=1, keepdims=True) * len(look.sizes))
    ends = np.arange(0, total.size + 1, total.shape[1])
    return sp.csr_array((total.ravel(), index.ravel(), ends), shape=(len(d), look.rows.shape[0]))


def view_graph(looks: Sequence[Matrix]) -> tuple[list[Look], sp.csr_array]:
    """G = A + A^T, with A the neighbourhoods averaged over looks."""
    found, weights = zip(*(neighbourhoods(x) for x in looks), strict=True)
    mean = sum(weights[1:], weights[0]) / len(looks)
    return list(found), (mean + mean.T).tocsr()


# --- 3. soft embedding of a view ----------------------------------------------------------------------------


def rank_of(n_clusters: int) -> int:
    """c, the eigenvectors that are looked at: more than clusters, since what is last counts least."""
    return min(_RANK * n_clusters, n_clusters + _EXTRA)


def soft_embedding(graph: sp.csr_array, c: int) -> np.ndarray:
    r"""Leading eigenvectors, faded out towards the first that is left out.

    .. math:: M = (D + t)^{-1/2} (G + \tfrac{t}{n} 1 1^T) (D + t)^{-1/2}, \qquad
        F = [\sqrt{\lambda_a - \lambda_{c+1}} \, u_a]_{a \le c}, \text{ rows of length one}

    Symbols: D -> degrees; t -> half the mean degree; lambda, u -> eigenpairs of M.
    """
    n = graph.shape[0]
    c = min(c, n - 1)
    degree = np.asarray(graph.sum(axis=1)).ravel()
    t = _TAU * degree.mean()
    root = 1.0 / np.sqrt(degree + t)
    scaled = (sp.diags_array(root) @ graph @ sp.diags_array(root)).tocsr()

    def product(x: np.ndarray) -> np.ndarray:
        x = x.reshape(n, -1)
        return np.asarray(scaled @ x + (t / n) * root[:, None] * (root @ x))

    matrix = LinearOperator((n, n), matvec=product, matmat=product, dtype=float)
    tol = _EIGEN_TOL if n <= _MANY_ROWS else _EIGEN_TOL_OF_MANY
    values, vectors = leading_eigenpairs(matrix, c + 1, tol=tol)
    values = np.maximum(values, 0.0)
    return unit_rows(vectors[:, :c] * np.sqrt(values[:c] - values[c]))


def at_one_place(f: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The same with rows of a group at their mean: which neighbours equal rows got was a toss-up."""
    return unit_rows(mean_of_equals(f, group)) if group.max() + 1 < len(f) else f


# --- 4., 5. fill in absent rows, and stack the views --------------------------------------------------------


class View(NamedTuple):
    """A view that was read: its rows, how they look, and where they are."""

    rows: np.ndarray  # instances
    reading: Reading
    looks: list[Look]
    graph: sp.csr_array  # G, between `rows`
    embedding: np.ndarray  # F, of `rows`


def lifted(view: View, n: int) -> sp.csr_array:
    """The graph of a view between all instances."""
    g, ends = view.graph, np.zeros(n + 1, dtype=view.graph.indptr.dtype)
    ends[view.rows + 1] = np.diff(g.indptr)
    columns = view.rows.astype(g.indices.dtype)[g.indices]
    return sp.csr_array((g.data, columns, np.cumsum(ends, dtype=ends.dtype)), shape=(n, n))


def fill_in(views: Sequence[View], weights: np.ndarray, n: int) -> list[np.ndarray]:
    r"""Embeddings of all instances in every view: those of the neighbours, where it has none of its own.

    .. math:: x_i \leftarrow \frac{\sum_j P_{ij} \kappa_j x_j}{\sum_j P_{ij} \kappa_j} \quad (i \notin R_v)

    Symbols: P -> the sum of the views' graphs, times their weights, rows divided by their sums; kappa -> 1
    where j is in the view or was filled in; R_v -> the rows of the view. Filled-in rows are shorter than one
    where neighbours differ, and so count less.
    """
    total = sum((w * lifted(view, n) for view, w in zip(views, weights, strict=True)), sp.csr_array((n, n)))
    blocks = []
    for view in views:
        x, present = np.zeros((n, view.embedding.shape[1])), np.zeros(n)
        x[view.rows], present[view.rows] = view.embedding, 1.0
        absent = np.setdiff1d(np.arange(n), view.rows)
        part = total[absent]
        # What rows of the view say stays the same; what others say changes from sweep to sweep.
        fixed, fixed_mass = part @ x, part @ present
        among, known = part[:, absent], np.zeros(len(absent))
        for _ in range(_SWEEPS if len(absent) else 0):
            mass = fixed_mass + among @ known
            x[absent] = (fixed + among @ x[absent]) / np.where(mass > 0, mass, 1.0)[:, None]
            known = (mass > 0).astype(float)
        blocks.append(x)
    return blocks


def soft_projection(x: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Onto the leading directions, faded out: :math:`V_c \, diag \sqrt{1 - \omega_{c+1} / \omega_a}`.

    Also the share of every direction, omega over their sum.
    """
    width = x.shape[1]
    values, vectors = leading_eigenpairs(x.T @ x, width)
    values = np.maximum(values, 0.0)
    c = max(1, min(c, width - 1))
    following = values[c] if c < width else 0.0
    fading = np.sqrt(np.maximum(1.0 - following / np.maximum(values[:c], 1e-300), 0.0))
    return vectors[:, :c] * fading, values / max(float(values.sum()), 1e-300)


# --- weights of views that share nothing with others --------------------------------------------------------


def relations(views: Sequence[View], n: int) -> np.ndarray:
    r"""How far each view is related to every other: 0 as by chance, 1 as to itself; NaN where it is unknown.

    .. math:: C_{uv} = \frac{tr(Z^T P_u Z)}{tr(Z^T Z)}, \qquad
        \rho_{uv} = \frac12 \left(\frac{C_{uv}}{C_{vv}} + \frac{C_{vu}}{C_{uu}}\right)

    is the share of the variance of v's embedding that neighbours in u explain, less what they explain after
    the rows have been permuted, over what v's own neighbours explain. Two standard deviations over
    permutations are added: few shared rows should not look unrelated by chance.

    Symbols: P_u -> the graph of u on the rows that both have, rows divided by their sums; Z -> the embedding
    of v there, centred. Mean and deviation over permutations are exact, by Mantel's formula.
    """
    k = len(views)
    c, spread = np.full((k, k), np.nan), np.full((k, k), np.nan)
    for u, first in enumerate(views):
        place = np.full(n, -1)
        place[first.rows] = np.arange(len(first.rows))
        for v, second in enumerate(views):
            here = place[second.rows]
            if np.count_nonzero(here >= 0) < _LEAST_SHARED:
                continue
            z = second.embedding[here >= 0]
            graph = first.graph[here[here >= 0]][:, here[here >= 0]]
            c[u, v], mean, spread[u, v] = explained_by_neighbours(graph, z - z.mean(axis=0))
            c[u, v] -= mean * (u != v)
    own = np.maximum(np.diag(c), 1e-12)
    rho, spread = c / own, spread / own
    rho = (rho + rho.T) / 2 + (spread + spread.T)
    np.fill_diagonal(rho, np.nan)
    return rho


def explained_by_neighbours(graph: sp.csr_array, z: np.ndarray) -> tuple[float, float, float]:
    """The share of the variance that neighbours explain; its mean and deviation over permutations of rows."""
    n, g = len(z), graph.tocoo()
    degree = np.bincount(g.row, g.data, n)
    share = 1.0 / np.where(degree > 0, degree, 1.0)
    squares = np.einsum("ij,ij->i", z, z)
    total = max(float(squares[degree > 0].sum()), 1e-300)
    value = float(np.einsum("i,ij,ij->", share, z, graph @ z))
    # Mantel: moments of the sum of a_ij b_p(i)p(j), a and b symmetric without diagonals.
    a = g.data * (share[g.row] + share[g.col]) / 2
    a0, a1, a2 = a.sum(), (a**2).sum(), (np.bincount(g.row, a, n) ** 2).sum()
    gram = z.T @ z
    b0, b1, b2 = -squares.sum(), (gram * gram).sum() - (squares**2).sum(), (squares**2).sum()
    pairs, triples, quadruples = n * (n - 1), n * (n - 1) * (n - 2), n * (n - 1) * (n - 2) * (n - 3)
    mean = a0 * b0 / pairs
    square = (
        2 * a1 * b1 / pairs
        + 4 * (a2 - a1) * (b2 - b1) / triples
        + (a0**2 + 2 * a1 - 4 * a2) * (b0**2 + 2 * b1 - 4 * b2) / quadruples
    )
    return value / total, mean / total, float(np.sqrt(max(square - mean**2, 0.0))) / total


def reproducibility(looks: Sequence[Matrix], n_clusters: int, rng: np.random.RandomState) -> float:
    """How far two halves of the rows of a view have the same clusters, beyond what shapeless rows have.

    0: no more than Gaussian rows of the same mean and covariance; 1: the same clusters.
    """
    n = looks[0].shape[0]
    if n < max(4 * n_clusters, 20):
        return 0.0
    if n > _SPLIT_ROWS:
        some = np.sort(rng.permutation(n)[:_SPLIT_ROWS])
        looks = [x[some] for x in looks]
    real = _agreement_of_halves(looks, n_clusters, rng)
    shapeless = _agreement_of_halves([_shapeless(x, rng) for x in looks], n_clusters, rng)
    return max(0.0, (real - shapeless) / max(1.0 - shapeless, 1e-12))


def _agreement_of_halves(looks: Sequence[Matrix], k: int, rng: np.random.RandomState) -> float:
    """Mean adjusted Rand index of the clusters of a half and those that neighbours carry over to it."""
    n, scores = looks[0].shape[0], []
    graph = view_graph(looks)[1]
    for _ in range(_SPLITS):
        halves, labels = [np.sort(half) for half in np.array_split(rng.permutation(n), 2)], []
        for half in halves:
            f = soft_embedding(view_graph([x[half] for x in looks])[1], rank_of(k))
            labels.append(cluster_rows(f, k, n_init=_SPLIT_STARTS, rng=rng).labels)
        for here, there in ((0, 1), (1, 0)):
            votes = graph[halves[there]][:, halves[here]] @ np.eye(k)[labels[here]]
            reached = votes.any(axis=1)
            scores.append(adjusted_rand_score(labels[there][reached], votes[reached].argmax(axis=1)))
    return float(np.mean(scores))


def _shapeless(x: Matrix, rng: np.random.RandomState) -> np.ndarray:
    """Gaussian rows with the mean and covariance of those given: as many dimensions, no clusters."""
    if x.shape[1] > _SPLIT_COLUMNS:
        x = x @ (rng.standard_normal((x.shape[1], _SPLIT_COLUMNS)) / np.sqrt(_SPLIT_COLUMNS))
    x = x.toarray() if sp.issparse(x) else x
    mean, n = x.mean(axis=0), len(x)
    return np.asarray(mean + rng.standard_normal((n, n)) @ (x - mean) / np.sqrt(n))


class Weights(NamedTuple):
    """What views count, and why; an entry a view."""

    weight: np.ndarray
    relation: np.ndarray  # to the view that is closest, NaN where it is unknown
    reproducibility: np.ndarray  # NaN where it was not needed

    @property
    def unrelated(self) -> np.ndarray:
        """Whether a view shares nothing with any other."""
        return self.relation < UNRELATED


def weigh(views: Sequence[View], n: int, n_clusters: int, given: np.ndarray | None = None) -> Weights:
    r"""The given weights, or equal ones; but a view that is related to no other counts by how it reproduces.

    .. math:: w_v = \max\left(\left(\frac{e_v + .02}{\max e + .02}\right)^2, .1\right)^{a_v}, \qquad
        a_v = clip\left(\frac{.15 - r_v}{.05}, 0, 1\right)

    Views that share something gain from each other, however poor one of them is. Views that share nothing
    would give the product of two partitions; then the one with real clusters is the better bet.

    Symbols: r_v -> the largest relation of v to another view; e_v -> `reproducibility`.
    """
    rho = relations(views, n)
    known = ~np.isnan(rho)
    relation = np.where(known.any(axis=1), np.where(known, rho, -np.inf).max(axis=1), np.nan)
    weight, e = np.ones(len(views)), np.full(len(views), np.nan)
    if given is not None:
        return Weights(given, relation, e)
    low, high = _APART
    alone = np.nan_to_num(np.clip((high - relation) / (high - low), 0.0, 1.0))
    if alone.any():
        rng = np.random.RandomState(0)  # of its own: what it draws changes no other answer
        e = np.array([reproducibility([x.rows for x in view.looks], n_clusters, rng) for view in views])
        weight = np.maximum(((e + 0.02) / (e.max() + 0.02)) ** 2, _LEAST_WEIGHT) ** alone
    return Weights(weight, relation, e)


# --- all of it ----------------------------------------------------------------------------------------------


class PSEResult(NamedTuple):
    """What `pse` found."""

    labels: np.ndarray  # the largest cluster where nothing is known
    cluster_centers: np.ndarray
    embedding: np.ndarray  # Y, rows of length one; zero where nothing is known
    kinds: list[Kind]
    views: list[View | None]  # None: it has fewer than three rows, or they are all the same
    weights: Weights
    directions: np.ndarray  # omega, shares of the directions of all places side by side


def embed_view(
    x: Matrix, present: np.ndarray, kind: Kind, c: int, scaling: ColumnScaling | None
) -> View | None:
    """Steps 1 to 3 for a view."""
    rows = np.flatnonzero(present)
    if len(rows) < 3:
        return None
    x = x[rows]
    group = equal_rows(x)
    if group.max() == 0:
        return None
    reading = read(x, kind, scaling)
    looks, graph = view_graph(reading.apply(x))
    return View(rows, reading, looks, graph, at_one_place(soft_embedding(graph, c), group))


def pse(
    arrays: Iterable[Matrix],
    observed: np.ndarray,
    kinds: Sequence[Kind],
    n_clusters: int,
    *,
    view_weights: np.ndarray | None,
    n_init: int,
    rng: np.random.RandomState,
    scalings: Sequence[ColumnScaling | None] | None = None,
) -> PSEResult:
    r"""k-means on the embeddings of all views side by side, absent rows filled in through other views.

    1. Each view is read by its kind. 2. Its neighbours make a graph. 3. Leading eigenvectors
    of the graph, faded out, place its rows. 4. Absent rows get the mean place of their neighbours in other
    views. 5. Of the places side by side, X = [X_1 ... X_V] with :math:`X^T X = V diag(\omega) V^T`, leading
    directions are kept, faded out: :math:`Y = X V_c \, diag \sqrt{1 - \omega_{c+1} / \omega_a}`, rows of
    length one. 6. k-means.

    Symbols: c -> `rank_of`; steps -> the functions above, in their order.

    `scalings` are those of tables that were completed, see `Views.scaling`.

    Cost: neighbours of all rows of each view; then linear in instances x clusters.
    """
    n, c = len(observed), rank_of(n_clusters)
    scalings = [None] * len(kinds) if scalings is None else scalings
    found = [embed_view(x, observed[:, v], kinds[v], c, scalings[v]) for v, x in enumerate(arrays)]
    used = [v for v, view in enumerate(found) if view is not None]
    views = [view for view in found if view is not None]
    every = Weights(np.zeros(observed.shape[1]), *np.full((2, observed.shape[1]), np.nan))
    y, directions = np.zeros((n, 1)), np.ones(1)
    if views:
        weights = weigh(views, n, n_clusters, None if view_weights is None else view_weights[used])
        for of_used, of_all in zip(weights, every, strict=True):
            of_all[used] = of_used
        blocks = fill_in(views, weights.weight, n)
        x = np.hstack([w * block for w, block in zip(weights.weight, blocks, strict=True)])
        projection, directions = soft_projection(x, c)
        y = x @ projection
    embedding = unit_rows(y)
    labels, centers = np.zeros(n, dtype=np.int64), np.zeros((1, y.shape[1]))
    some = embedding.any(axis=1)
    if some.any():
        known = cluster_rows(embedding[some], min(n_clusters, int(some.sum())), n_init=n_init, rng=rng)
        labels[:] = np.bincount(known.labels).argmax()
        labels[some], centers = known.labels, known.centers
    return PSEResult(labels, centers, embedding, list(kinds), found, every, directions)


def votes_of_neighbours(
    result: PSEResult, labels: np.ndarray, arrays: Sequence[Matrix], observed: np.ndarray
) -> np.ndarray:
    """For new instances the share of every cluster among their neighbours, averaged over their views."""
    k = int(labels.max()) + 1
    votes, total = np.zeros((len(observed), k)), np.zeros(len(observed))
    for view, weight, x, present in zip(result.views, result.weights.weight, arrays, observed.T, strict=True):
        if view is None or weight == 0:
            continue
        x = stored(x, view.reading.kind)
        rows = np.flatnonzero(present & says_something(x, view.reading.kind))
        if not len(rows):
            continue
        of_rows = np.eye(k)[labels[view.rows]]
        looks = zip(view.looks, view.reading.apply(x[rows]), strict=True)
        shares = [neighbourhoods_of_new(look, new) @ of_rows for look, new in looks]
        votes[rows] += weight * sum(shares) / len(shares)
        total[rows] += weight
    return votes / np.where(total > 0, total, 1.0)[:, None]


def borders(result: PSEResult, labels: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far instances are from the border of their cluster, .5 to 1, and the cluster behind it.

    d_2 / (d_1 + d_2), with d_1 and d_2 the squared distances to the own and the next centre. 0 and -1 for an
    instance of which nothing is known; 1 and -1 where there is one cluster.
    """
    some = result.embedding.any(axis=1) & (labels >= 0)
    margin, behind = some.astype(float), np.full(len(labels), -1)
    if len(centers) > 1 and some.any():
        d = euclidean_distances(result.embedding[some], centers, squared=True)
        place, z = np.arange(len(d)), labels[some]
        own = d[place, z]
        d[place, z] = np.inf
        behind[some] = d.argmin(axis=1)
        margin[some] = d.min(axis=1) / np.maximum(d.min(axis=1) + own, 1e-300)
    return margin, behind


def confidence(result: PSEResult, labels: np.ndarray, margin: np.ndarray, n_clusters: int) -> np.ndarray:
    r"""The chance that an instance is in the right cluster, as far as its place can tell.

    .. math:: logit \, p_i = 5.5 \bar m + 0.6 \, logit \, a + 2.8 b - 3.1 l - 2.85 + (m_i - \bar m)

    is what held on sets of known classes: first how well instances are placed on the whole, then how far one
    is from the border of its cluster. Zero for an instance of which nothing is known.

    Symbols: m_i -> twice the `margin` less one, (d_2 - d_1) / (d_2 + d_1); a -> the share of rows that
    clusters of a view alone put where they are; b -> how even the clusters are, the exponential of the
    entropy of their shares over `n_clusters`; l -> the share of the first `n_clusters` directions in all
    places.
    """
    some = margin > 0.0
    out, z = np.zeros(len(labels)), labels[some]
    if not len(z) or z.max() == 0:
        out[some] = 1.0 / n_clusters  # one cluster: right in one of as many as were asked for
        return out
    m = 2.0 * margin[some] - 1.0
    shares = np.bincount(z) / len(z)
    even = np.exp(-(shares * np.log(np.maximum(shares, 1e-300))).sum()) / n_clusters
    alone = np.clip(_found_alone(result, labels, n_clusters), 0.02, 0.98)
    level = (
        5.5 * m.mean()
        + 0.6 * np.log(alone / (1.0 - alone))
        + 2.8 * even
        - 3.1 * result.directions[:n_clusters].sum()
        - 2.85
    )
    out[some] = 1.0 / (1.0 + np.exp(-(level + m - m.mean())))
    return out


def chances(result: PSEResult, labels: np.ndarray, centers: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """The chance of every cluster: that of the own one is its confidence, and the others share the rest by
    one over the squared distance to their centre. The shares of clusters where nothing is known."""
    k, some = len(centers), result.embedding.any(axis=1) & (labels >= 0)
    shares = np.bincount(labels[labels >= 0], minlength=k) / np.count_nonzero(labels >= 0)
    out = np.tile(shares, (len(labels), 1))
    if some.any():
        d = euclidean_distances(result.embedding[some], centers, squared=True)
        out[some] = complete_chances(1.0 / np.maximum(d, 1e-12), labels[some], confidence[some], shares)
    return out


def _found_alone(result: PSEResult, labels: np.ndarray, n_clusters: int) -> float:
    """The share of rows that clusters of a view alone, matched with all, put where they are."""
    right = total = 0.0
    for view in result.views:
        if view is None:
            continue
        rng = np.random.RandomState(0)  # for each view alone: another order of views changes nothing
        found = quick_clusters(view.embedding, n_clusters, rng, n_init=3)
        known = labels[view.rows] >= 0
        right += known.sum() * matched_accuracy_score(labels[view.rows][known], found[known])
        total += known.sum()
    return right / total


def in_given_order(result: PSEResult, instances: np.ndarray, views: np.ndarray) -> PSEResult:
    """A result about instances and views in another order, as they were given."""
    back, first = np.argsort(instances), np.argsort(views)
    found = [view and view._replace(rows=instances[view.rows]) for view in result.views]
    return result._replace(
        labels=result.labels[back],
        embedding=result.embedding[back],
        kinds=[result.kinds[v] for v in first],
        views=[found[v] for v in first],
        weights=Weights(*(values[first] for values in result.weights)),
    )


class DoubtfulWarning(UserWarning):
    """Something makes the answer doubtful: a view or instances that say nothing."""


@parameters
class PSE(ViewMethod):
    """Propagated spectral embeddings: any number of views of any kind, rows absent here and there.

    Every view is embedded on its own, by eigenvectors of a graph of its neighbours; who is absent from a view
    gets the place of its neighbours in other views; all places side by side are clustered once. This is the
    default of :func:`consilience.fuse_views`. Use it for views of any kind, each of which says something
    about the clusters. Prefer clustering a view alone where the others are known to say nothing.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kind : str or dict, default="auto"
        How views are read, by their names; "auto" recognises it by the values, however they are stored. Also
        how columns of frames are, as in ``{"clinic.stage": "category"}``: see `kind` of
        `consilience.check_views`.

        - "counts" (words of documents, events), where no entry is negative and less than a quarter are not
          zero: weighted by rarity. A row without any entry says nothing and counts as absent.
        - "links", where such a table is square with an empty diagonal: read as counts are, so that instances
          that link to the same ones are alike.
        - "binary" (mutations, symptoms, answers), where all entries are 0 or 1, and columns are at most 500
          or a quarter of the entries is not zero. Zero is an answer, and a row of zeros is a row like others.
        - "log-counts" (reads of genes), for whole numbers in 20 columns or more that are very unequal in size
          and grow with the total of their row: logarithms of shares of that total.
        - "measurements" otherwise: columns are standardised. So are tables with columns of several kinds.
    view_weights : "auto", "equal", dict of view name to number, or one number a view, default="auto"
        How much each view counts. "auto" is equal weights, but for views that share nothing with any other:
        these count by how well their clusters come again in halves of the rows.
    unobserved : {"largest", "noise", "error"}, default="largest"
        What to do with instances whose rows are empty in all their views: put them in the largest cluster,
        label them -1, or refuse.
    n_init : int, default=10
        Number of starts of k-means.
    random_state : int, RandomState instance or None, default=None
        Draws the starts of k-means. All else is deterministic.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_instances, n_directions)
        Rows of length one, on which k-means runs; zero where nothing is known of an instance.
    view_readings_ : dict of str to ViewReading
        By view: ``kind``, ``looks`` (the scalings), ``n_rows`` (that were used) and ``n_empty`` (rows of
        counts, links or log-counts without any entry, which count as absent).
    view_agreement_ : ndarray of shape (n_views,)
        How far neighbours in a view share a cluster: 0 as by chance, 1 always; the mean over clusters.
    view_support_ : ndarray of shape (n_views, n_clusters)
        The same for every cluster; NaN where a view has fewer than two of its members.
    view_weights_ : ndarray of shape (n_views,)
        How much each view counted; 0 for one whose rows are all alike.
    view_relations_ : ndarray of shape (n_views,)
        How far each view is related to the one that is closest to it: 0 as by chance, 1 as to itself. NaN
        where they have too few rows in common.
    view_reproducibility_ : ndarray of shape (n_views,)
        How well clusters of a view come again in halves of its rows; NaN where weights did not need it.
    informed_ : ndarray of bool of shape (n_instances,)
        Whether anything is known of an instance.
    confidence_ : ndarray of shape (n_instances,)
        The estimated chance that an instance is in the right cluster; 0 where nothing is known of it. Of a
        single table with gaps or with columns of several kinds, times the share of its neighbours' weight in
        the own cluster.
    borders_ : tuple of ndarray
        The margin of every instance, d_2 / (d_1 + d_2) of the squared distances to the own and the next
        centre, and that next cluster; 0 and -1 where nothing is known.
    findings_ : list of str
        What makes the answer doubtful, in sentences; `fit` warns of each.

    Also those of every :class:`~consilience.multiview.ViewMethod`: labels, views and others.

    Notes
    -----
    Instances and views are put in an order that follows from their values, so that another order of rows or
    of views changes nothing. Equal rows of a view get one place.

    References
    ----------
    None: the method is this library's own. Kernels with local widths are those of B. Wang et al., "Similarity
    network fusion", Nature Methods 11, 2014; a link from every row to every other is from T. Qin and K. Rohe,
    "Regularized spectral clustering", NeurIPS 2013.

    Examples
    --------
    >>> from consilience import PSE
    >>> from consilience.datasets import make_partial_views
    >>> data = make_partial_views(missing=0.5, random_state=0)
    >>> model = PSE(n_clusters=2, random_state=0).fit(data.views, mask=data.observed)
    >>> [reading.kind for reading in model.view_readings_.values()]
    ['measurements', 'measurements']
    >>> model.predict([data.views[0][:3], None]).shape
    (3,)
    """

    about = About(
        use="the default for views: text, counts, answers, links and measurements",
        avoid="only one of the views says anything about the clusters",
        cost="nearest neighbours in each view",
        paper="Of this library; kernels of local widths as in Wang et al.: Nature Methods, 2014.",
        start=True,
    )

    kind: Annotated[str | dict[str, Any], str, dict] = "auto"
    view_weights: Literal["auto", "equal"] | Annotated[Any, dict, "array-like"] = "auto"
    unobserved: Literal["largest", "noise", "error"] = "largest"

    def _read_views(self, X: Any, mask: Any, kind: Any = None) -> Views:
        return super()._read_views(X, mask, self.kind)

    def _solve(self, views: Views, rng: np.random.RandomState) -> PSEResult:
        kinds = self._kinds(views)
        arrays = [stored(x, kind) for x, kind in zip(views.arrays, kinds, strict=True)]
        weights = self._weights(views)
        said = [says_something(x, kind) for x, kind in zip(arrays, kinds, strict=True)]
        present = views.observed & np.column_stack(said)
        self._n_empty = views.observed.sum(axis=0) - present.sum(axis=0)
        instances, order = canonical_order(arrays, present)
        result = pse(
            (arrays[v][instances] for v in order),
            present[np.ix_(instances, order)],
            [kinds[v] for v in order],
            self.n_clusters,
            view_weights=None if weights is None else weights[order],
            n_init=self.n_init,
            rng=rng,
            scalings=[views.scaling(v) for v in order],
        )
        return in_given_order(result, instances, order)

    def _kinds(self, views: Views) -> list[Kind]:
        """How each view is to be read."""
        kinds = []
        for v, name in enumerate(views.names):
            kind, x, present = kind_of(views, v), views.arrays[v], views.observed[:, v]
            read = views.table(v)
            if read is not None and read.mixed and kind != "measurements":
                raise InputError(
                    Phrase(
                        "view {view} has columns that are not numbers, which {kind=} cannot take.",
                        view=repr(name),
                        kind=kind,
                    ),
                    hint="leave its kind out, or leave these columns out.",
                )
            if kind in ("counts", "links", "log-counts") and x.min() < 0:
                raise InputError(
                    Phrase(
                        "view {view} has negative entries, which {kind=} cannot take.",
                        view=repr(name),
                        kind=kind,
                    ),
                    hint="read it as 'measurements', which logarithms of counts are.",
                )
            filled_in = views.scaling(v)
            if kind == "binary" and filled_in is None:
                _refuse_third(name, x, present)
            kinds.append(kind)
        return kinds

    def _weights(self, views: Views) -> np.ndarray | None:
        """The weights that were given."""
        if isinstance(self.view_weights, str):
            return None if self.view_weights == "auto" else np.ones(views.n_views)
        given = _by_name("view_weights", self.view_weights, views.names, 1.0)
        weights = np.asarray(given, dtype=float)
        if weights.shape != (views.n_views,) or not np.isfinite(weights).all() or weights.min() < 0:
            raise InputError(
                Phrase(
                    "{view_weights} must be a number of at least 0 for each of the {n} views. Got {given} "
                    "instead.",
                    n=views.n_views,
                    given=repr(self.view_weights),
                ),
                hint=f"the views are {', '.join(map(repr, views.names))}.",
            )
        if not weights.any():
            raise InputError(Phrase("all {view_weights} are 0."), hint="give one view a weight.")
        return weights

    def _learn(self, result: PSEResult, views: Views, order: np.ndarray) -> None:
        self._result = result
        for name in ("confidence_", "borders_", "_group"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self._centers = result.cluster_centers[order[order < len(result.cluster_centers)]]
        self.embedding_ = result.embedding
        self.informed_ = np.asarray(result.embedding.any(axis=1))
        self.view_readings_ = {
            name: ViewReading(
                result.kinds[v],
                () if view is None else view.reading.looks,
                0 if view is None else len(view.rows),
                int(self._n_empty[v]),
            )
            for v, (name, view) in enumerate(zip(views.names, result.views, strict=True))
        }
        self.view_weights_, self.view_relations_, self.view_reproducibility_ = result.weights
        lost = np.flatnonzero(~self.informed_)
        if len(lost) and self.unobserved == "error":
            raise InputError(
                f"nothing is known of {counted(len(lost), 'instance')}: their rows are empty or the same as "
                f"all others in every view they have. The first is row {lost[0]}.",
                hint="drop them, or set unobserved='largest' or 'noise'.",
            )
        self.labels_[lost] = 0 if self.unobserved == "largest" else -1
        k = self.n_clusters
        self.view_support_ = np.array(
            [
                np.full(k, np.nan) if view is None else support_of_clusters(view, self.labels_, k)
                for view in result.views
            ]
        )
        self.view_agreement_ = mean_support(self.view_support_)
        self.findings_ = [
            *_uninformed(self.informed_),
            *_unused(self.view_readings_),
            *_unrelated(views.names, result.weights),
            *_weak(views.names, self.view_agreement_, result.weights),
        ]
        for found in self.findings_:
            warn(found.text, DoubtfulWarning, hint=found.hint)

    def _warn_of_equals(self, views: Views) -> None:
        if self.n_clusters_ < self.n_clusters:  # of views that say nothing there is a finding
            super()._warn_of_equals(views)

    @cached_property
    def confidence_(self) -> np.ndarray:
        """Per instance, the estimated chance that it is in the right cluster; found when first asked for."""
        with one_thread():
            found = confidence(self._result, self.labels_, self.borders_[0], self.n_clusters)
            return found * self._support_of_cells()

    def _support_of_cells(self) -> np.ndarray:
        """The share of neighbours in the own cluster, where all that is known is a table of several kinds of
        columns or with gaps: its instances are sure to be right less often than those of several views."""
        share = np.ones(len(self.labels_))
        used = [v for v, view in enumerate(self._result.views) if view is not None]
        if len(used) != 1 or self.view_names_[used[0]] not in self.view_tables_:
            return share
        view = self.in_view(used[0])
        assert view is not None
        of_clusters = shares_in_view(view, self.labels_, int(self.labels_.max()) + 1)
        z = self.labels_[view.rows]
        share[view.rows] = np.where(z < 0, 1.0, of_clusters[np.arange(len(z)), z])
        return share

    @cached_property
    def borders_(self) -> tuple[np.ndarray, np.ndarray]:
        """Margin and next cluster of every instance; found when first asked for."""
        with one_thread():
            return borders(self._result, self.labels_, self._centers[: self.n_clusters_])

    @property
    def chances_(self) -> np.ndarray:
        """Per instance, the chance of every cluster: rows of sum one, with the confidence of the own one."""
        with one_thread():
            centers = self._centers[: self.n_clusters_]
            return chances(self._result, self.labels_, centers, self.confidence_)

    @property
    def confidence_reading_(self) -> str:
        """One sentence that says how to read the confidence."""
        return (
            "Confidence was fitted to data sets of known classes: on a new one it ranks instances well, and "
            "as a chance it is rough."
        )

    def diagnose_views(self, views: Views) -> ViewDiagnostics:
        """What can be said of the views and the answer: the method knows it.

        Parameters
        ----------
        views : Views
            What was fitted.
        """
        return self

    def in_view(self, v: int) -> InView | None:
        """The instances that a view was used for and the weights of their neighbours; None if it was not."""
        view = self._result.views[v]
        return None if view is None else InView(view.rows, view.graph, self._group[view.rows])

    @cached_property
    def _group(self) -> np.ndarray:
        """A number for every instance, the same for those that are equal in all views that were used."""
        views = (view for view in self._result.views if view is not None)
        return equal_instances(
            ((view.rows, equal_rows(view.looks[0].rows)) for view in views), len(self.labels_)
        )

    def embedded_view(self, v: int) -> tuple[np.ndarray, np.ndarray]:
        """The instances that a view was used for and their places in it; one place where it says nothing."""
        view = self._result.views[v]
        if view is not None:
            return view.rows, view.embedding
        rows = np.flatnonzero(self.observed_[:, v])
        return rows, np.zeros((len(rows), 1))

    def predict(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """Clusters of new instances from whichever views they have.

        An instance goes to the cluster with the largest share of its neighbours, averaged over the views that
        it has. One of which nothing is known goes where `unobserved` says.

        Parameters
        ----------
        X : list, tuple or dict of tables, one table, or Views
            The views that were fitted; None or NaN for those that are not there. A dict may leave views out.
        mask : array of bool of shape (n_instances, n_views), default=None
            False where the instance is absent from the view.
        """
        return self._elect(self._votes(X, mask))

    def predict_confidence(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """The estimated chance that new instances are placed rightly.

        The share of their neighbours in the cluster among those in it and in the next one, times the mean
        confidence of that cluster. It ranks well and is too cautious: right more often than it says.

        Parameters
        ----------
        X, mask
            As in `predict`.
        """
        return self.place(X, mask=mask)[1]

    def place(self, X: Any, *, mask: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What `predict` and `predict_confidence` give, and the cluster of most neighbours after that; -1
        for none.

        Parameters
        ----------
        X, mask
            As in `predict`.
        """
        return self._placed(self._votes(X, mask))

    def _placed(self, votes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        labels, place, best = self._elect(votes), np.arange(len(votes)), votes.argmax(axis=1)
        right = np.array([self.confidence_[self.labels_ == c].mean() for c in range(votes.shape[1])])
        own = votes[place, best]
        votes[place, best] = 0.0
        sure = right[best] * own / np.where(own > 0, own + votes.max(axis=1), 1.0)
        return labels, sure, np.where(votes.any(axis=1), votes.argmax(axis=1), -1)

    def predict_proba(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """The chance of every cluster for new instances, (n_new, n_clusters).

        That of the cluster which `predict` gives is `predict_confidence`; the others share the rest by their
        share of the neighbours. One of which nothing is known has the shares of the clusters.

        Parameters
        ----------
        X, mask
            As in `predict`.
        """
        votes = self._votes(X, mask)
        labels, sure, _ = self._placed(votes.copy())
        return chances_of_votes(votes, labels, sure, self.labels_)

    def _votes(self, X: Any, mask: Any) -> np.ndarray:
        views = self._read_new_views(X, mask)
        with one_thread():
            return votes_of_neighbours(self._result, self.labels_, views.arrays, views.observed)

    def _elect(self, votes: np.ndarray) -> np.ndarray:
        labels = votes.argmax(axis=1).astype(self.labels_.dtype)
        labels[~votes.any(axis=1)] = -1 if self.unobserved == "noise" else 0
        return labels


def _refuse_third(name: str, x: Matrix, present: np.ndarray) -> None:
    """A table that is to be read as binary has two values."""
    found = np.unique(x[present].toarray() if sp.issparse(x) else x[present])
    if len(found) > 2:
        shown = ", ".join(f"{value:g}" for value in found[:3]) + ", ..." * (len(found) > 3)
        raise InputError(
            Phrase(
                "view {view} has {n} different values ({shown}), and {kind=binary} takes two.",
                view=repr(name),
                n=len(found),
                shown=shown,
            ),
            hint="code yes as 1 and no as 0, or leave the kind out to have it recognised.",
        )


def _by_name(parameter: str, given: Any, names: tuple[str, ...], default: Any) -> list[Any]:
    """What was given for each view: by name, in their order, or once for all."""
    if isinstance(given, str):
        return [given] * len(names)
    if not isinstance(given, Mapping):
        return list(given)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(
            Phrase(f"{{{parameter}}} speaks of a view {{view}}, which is not there.", view=repr(unknown[0])),
            hint=did_you_mean(str(unknown[0]), names),
        )
    return [given.get(name, default) for name in names]


# --- what makes an answer doubtful, in words ----------------------------------------------------------------


def _uninformed(informed: np.ndarray) -> list[Finding]:
    n = int(np.count_nonzero(~informed))
    if not n:
        return []
    return [
        Finding(
            f"nothing is known of {counted(n, 'instance')}: in every view they have, their rows are empty or "
            "the same as all others.",
            hint=(
                "drop them, or label them -1: method=PSE(unobserved='noise') in Python, --method PSE --param "
                "unobserved=noise at the shell."
            ),
        )
    ]


def _unused(readings: Mapping[str, ViewReading]) -> list[Finding]:
    return [
        Finding(
            f"view {name!r} tells no two instances apart, or has fewer than three rows: it was not used.",
            hint="leave this view out, or check what it holds.",
        )
        for name, reading in readings.items()
        if not reading.n_rows
    ]


def _unrelated(names: tuple[str, ...], found: Weights) -> list[Finding]:
    out = []
    for v in np.flatnonzero(found.unrelated & (found.weight > 0)):
        e = found.reproducibility[v]
        again = "" if np.isnan(e) else f", since its clusters come again in halves of its rows by {e:.2f}"
        out.append(
            Finding(
                f"view {names[v]!r} shares nothing with any other view (relation {found.relation[v]:.2f}). "
                f"It counts {found.weight[v]:.2f}{again}; which of such views to trust, data cannot tell.",
                hint=f"leave out the view that does not belong, or give it a lower weight: {_WEIGHTS}.",
            )
        )
    return out


def _weak(names: tuple[str, ...], agreement: np.ndarray, found: Weights) -> list[Finding]:
    """Views that say little about the clusters, by themselves or beside the one that says most."""
    counts = (found.weight > 0) & ~found.unrelated & ~np.isnan(agreement)
    if not counts.any():
        return []
    best = int(np.argmax(np.where(counts, agreement, -np.inf)))
    out = []
    for v in np.flatnonzero(counts & (agreement < max(SILENT, UNEQUAL * agreement[best]))):
        if agreement[v] < SILENT:
            said = f"says next to nothing about the clusters (agreement {agreement[v]:.2f})."
        else:
            said = (
                f"supports the clusters much less than view {names[best]!r} (agreement {agreement[v]:.2f}, "
                f"that {agreement[best]:.2f}), and counts {found.weight[v]:.2f}."
            )
        hint = f"compare with an answer without it, or give it a lower weight: {_WEIGHTS}."
        out.append(Finding(f"view {names[v]!r} {said}", hint=hint))
    return out
