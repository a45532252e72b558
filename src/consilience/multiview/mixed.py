"""Labels and views together: a column of labels is one more view, whose rows are placed by their labels.

PSE (see `pse`) embeds views, fills in who is absent, and clusters all places once. Here columns of labels
stand beside views: one-hot places, and links between all instances of one label. Every source first shows
that it has something to do with the others; one that has not counts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from consilience.core.grouping import row_keys
from consilience.core.tables import indicator
from consilience.multiview.pse import (
    View,
    explained_by_neighbours,
    lifted,
    rank_of,
    soft_projection,
)
from consilience.multiview.rows import cluster_rows, unit_rows

# What a trusted column of labels counts beside a view of weight one: its square in products of places.
LABEL_WEIGHT = 0.5
# Trust up to the first counts nothing, from the second on all.
_DOUBTED, _TRUSTED = 0.07, 0.20
# Trust where nothing is known, how sure that is, and how far relations may miss a product of two trusts.
_PRIOR, _PRIOR_SD, _MISFIT = 0.5, 0.3, 0.05
# What a relation is if there is one, mean and deviation; and the odds that there is, before looking.
_EFFECT, _EFFECT_SD, _ODDS = 0.25, 0.2, 0.25
LEAST_SHARED = 10  # instances from which a relation is read
_SWEEPS = 10  # that fill in absent places
# Instances with so many trusted labels on average let profiles of clusters decide in the end, in sweeps.
MANY_LABELS, _PROFILE_SWEEPS = 4.5, 5
# A view that counts less says nothing that labels share; one that counts no more has no profile.
_HEARD, _HARDLY = 0.5, 0.1
# Columns of labels from which on their trust says how strong views should be.
_MANY_COLUMNS = 3


# --- relations of any two sources ---------------------------------------------------------------------------


class Relations(NamedTuple):
    """Of any two sources, views before columns of labels; NaN where they share too few instances."""

    value: np.ndarray  # 0 as by chance, 1 as to itself
    spread: np.ndarray  # standard deviation by chance


def relations(views: Sequence[View], codes: np.ndarray, offsets: np.ndarray) -> Relations:
    r"""How far any two sources are related on the instances that both have, less what chance would give.

    Two views: as in PSE. A view and labels: the mean of the variance of one-hot labels that neighbours in the
    view explain, and of the variance of the view's places that labels explain, over what its own neighbours
    do. Two columns of labels: the adjusted tau of Goodman and Kruskal, averaged over both directions,

    .. math:: \tau = 1 - \frac{n - 1}{n - g} \cdot
        \frac{n - \sum_{ab} m_{ab}^2 / m_{a \cdot}}{n - \sum_b m_{\cdot b}^2 / n}

    Symbols: m -> instances with label a of one and b of the other; g -> labels of the first; n -> of them.
    """
    (n, m), v_n = codes.shape, len(views)
    r, s = np.full((v_n + m, v_n + m), np.nan), np.full((v_n + m, v_n + m), np.nan)
    own = [max(explained_by_neighbours(v.graph, _centred(v.embedding))[0], 1e-12) for v in views]
    place = np.full((v_n, n), -1)
    for row, view in zip(place, views, strict=True):
        row[view.rows] = np.arange(len(view.rows))

    def put(i: int, j: int, one: tuple[float, float], other: tuple[float, float]) -> None:
        for table, a, b in zip((r, s), one, other, strict=True):
            table[i, j] = table[j, i] = (a + b) / 2

    for i, view in enumerate(views):
        for j in range(i + 1, v_n):
            both = np.flatnonzero((place[i] >= 0) & (place[j] >= 0))
            if len(both) >= LEAST_SHARED:
                p, q, other = place[i, both], place[j, both], views[j]
                first = _by_neighbours(view, p, other.embedding[q], own[j])
                put(i, j, first, _by_neighbours(other, q, view.embedding[p], own[i]))
        for j, column in enumerate(codes.T):
            both = np.flatnonzero((place[i] >= 0) & (column >= 0))
            label = np.unique(column[both], return_inverse=True)[1]
            k = int(label.max(initial=-1)) + 1
            if len(both) >= LEAST_SHARED and k > 1:
                here = place[i, both]
                first = _by_neighbours(view, here, np.eye(k)[label], 1.0)
                put(i, v_n + j, first, _by_labels(view.embedding[here], label, k, own[i]))
    together = indicator(codes, offsets)
    tables = (together.T @ together).toarray()
    for i in range(m):
        for j in range(i + 1, m):
            table = tables[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
            put(v_n + i, v_n + j, tau_of(table), tau_of(table.T))
    return Relations(r, s)


def _centred(z: np.ndarray) -> np.ndarray:
    return z - z.mean(axis=0)


def _by_neighbours(view: View, here: np.ndarray, z: np.ndarray, own: float) -> tuple[float, float]:
    """The share of the variance of z that neighbours in a view explain, less chance, and its deviation."""
    value, mean, spread = explained_by_neighbours(view.graph[here][:, here], _centred(z))
    return (value - mean) / own, spread / own


def _by_labels(f: np.ndarray, label: np.ndarray, k: int, own: float) -> tuple[float, float]:
    """The share of the variance of a view's places that labels explain, less chance, and its deviation."""
    n, f = len(f), _centred(f)
    if n <= k + 1:
        return np.nan, np.nan
    sums = np.zeros((k, f.shape[1]))
    np.add.at(sums, label, f)
    explained = float((sums**2 / np.bincount(label, minlength=k)[:, None]).sum()) / max((f**2).sum(), 1e-300)
    values = np.linalg.eigvalsh(f.T @ f)
    freedom = values.sum() ** 2 / max(float((values**2).sum()), 1e-300)
    adjusted = 1 - (1 - explained) * (n - 1) / (n - k)
    return adjusted / own, float(np.sqrt(2 * (k - 1) / freedom)) / (n - 1) / own


def tau_of(table: np.ndarray) -> tuple[float, float]:
    """How far the first label of a table of counts says the second, less chance, and its deviation."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n, (g, h) = float(table.sum()), table.shape
    if n < max(LEAST_SHARED, g + 2) or min(g, h) < 2:
        return np.nan, np.nan
    within = n - (table**2 / table.sum(axis=1)[:, None]).sum()
    whole = n - (table.sum(axis=0) ** 2).sum() / n
    return 1 - within / whole * (n - 1) / (n - g), float(np.sqrt(2 * (g - 1) / (h - 1))) / (n - 1)


# --- how far a source counts --------------------------------------------------------------------------------


def trust(found: Relations) -> np.ndarray:
    r"""How far each source says what all of them share, 0 to 1.

    .. math:: \min_a \sum_{i < j} \frac{(r_{ij} - a_i a_j)^2}{s_{ij}^2 + .05^2}
        + \sum_i \frac{(a_i - .5)^2}{.3^2}

    by coordinates. Noise has 0; a source that shares few instances with others stays near one half: doubt
    needs evidence, too. Symbols: r -> value; s -> spread.
    """
    known = ~np.isnan(found.value)
    precision = np.where(known, 1.0 / (np.nan_to_num(found.spread, nan=1.0) ** 2 + _MISFIT**2), 0.0)
    r, prior = np.clip(np.nan_to_num(found.value), 0.0, 1.0), _PRIOR_SD**-2
    a = np.where(known.any(axis=1), np.sqrt(np.clip(r.max(axis=1, initial=0.0), 0.01, 1.0)), _PRIOR)
    for _ in range(200):
        before = a.copy()
        for i in range(len(a)):
            p = precision[i]
            a[i] = np.clip(((p * r[i]) @ a + prior * _PRIOR) / (p @ a**2 + prior), 0.0, 1.0)
        if np.abs(a - before).max(initial=0.0) < 1e-5:
            break
    return a


def related(found: Relations) -> np.ndarray:
    """The chance that a source has to do with at least one other: a relation of .25 +- .2 against none.

    Bayes factors are averaged over the others, which pays for looking at all of them.
    """
    m = len(found.value)
    if m < 2:
        return np.ones(m)
    r, known = np.nan_to_num(found.value), ~np.isnan(found.value)
    noise = np.nan_to_num(found.spread, nan=1.0) ** 2 + 1e-4
    effect = _EFFECT_SD**2 + noise
    log = 0.5 * (r**2 / noise - (r - _EFFECT) ** 2 / effect - np.log(effect / noise))
    log = np.where(r > _EFFECT, np.maximum(log, 20.0), log)  # more than expected is no evidence against it
    factor = np.where(known, np.exp(np.clip(log, -50.0, 50.0)), 1.0)
    np.fill_diagonal(factor, 0.0)
    odds = _ODDS * factor.sum(axis=1) / (m - 1)
    return np.asarray(odds / (1.0 + odds))


def count_of(a: np.ndarray, found: Relations) -> np.ndarray:
    """How far a source counts, 0 to 1: it says what all share, or is surely related to some other one."""
    return np.maximum(np.clip((a - _DOUBTED) / (_TRUSTED - _DOUBTED), 0.0, 1.0), related(found))


def beside_labels(a: np.ndarray, count: np.ndarray, n_views: int) -> np.ndarray:
    """What views count beside three columns of labels or more: less where they say less of what all share.

    Their trust over the mean trust of the labels that count, at most one. With fewer columns that mean says
    too little. Weak features would otherwise outvote decent labels, whose weight is half that of a view.
    """
    said = a[n_views:][count[n_views:] > _HEARD]
    if len(said) < _MANY_COLUMNS:
        return np.ones(n_views)
    return np.asarray(np.minimum(1.0, a[:n_views] / max(float(said.mean()), 1e-12)))


# --- places of all instances in all sources -----------------------------------------------------------------


class Labels(NamedTuple):
    """Columns of labels as links: everyone to the mean of all who have the same label.

    Of a column, twice the indicator of its clusters over their sizes, times itself: as heavy as the graph of
    a view. Never made: it is applied in two steps.
    """

    indicator: sp.csr_array
    share: np.ndarray  # for every cluster of every column, weight over size

    def __matmul__(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.indicator @ (self.share[:, None] * (self.indicator.T @ x)))


def label_links(codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray) -> Labels:
    """The links of columns of labels, times their weights."""
    found = indicator(codes, offsets)
    sizes = np.asarray(found.sum(axis=0)).ravel()
    return Labels(found, np.repeat(weights, np.diff(offsets)) * 2.0 / np.maximum(sizes, 1.0))


def fill_in(
    views: Sequence[View], codes: np.ndarray, offsets: np.ndarray, weights: np.ndarray
) -> list[np.ndarray]:
    """Step 4 of PSE with labels among the links: places of all instances in every source, views first.

    Absent rows get the mean place of those that are linked to them, by any source of any weight.
    """
    n, v_n = len(codes), len(views)
    graphs = [w * lifted(view, n) for view, w in zip(views, weights, strict=False)]
    graph = sum(graphs, sp.csr_array((n, n)))
    labels = label_links(codes, offsets, weights[v_n:])
    one_hot = labels.indicator.toarray()
    blocks = [_placed(view.embedding, view.rows, n) for view in views]
    blocks += [one_hot[:, a:b] for a, b in pairwise(offsets)]
    present = np.column_stack([*(np.isin(np.arange(n), view.rows) for view in views), codes >= 0])
    ends = np.cumsum([0, *(block.shape[1] for block in blocks)])
    x, known = np.hstack(blocks), present.astype(float)
    if not present.all():
        for _ in range(_SWEEPS):
            everything = np.hstack([x, known])
            linked = graph @ everything + labels @ everything
            mass = linked[:, ends[-1] :]
            some = mass > 1e-12
            for i, (a, b) in enumerate(pairwise(ends)):
                absent = ~present[:, i]
                x[absent, a:b] = linked[absent, a:b] / np.where(some, mass, 1.0)[absent, i][:, None]
                known[absent, i] = some[absent, i]
    return [x[:, a:b] for a, b in pairwise(ends)]


def _placed(embedding: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    x = np.zeros((n, embedding.shape[1]))
    x[rows] = embedding
    return x


# --- a last word of many labels -----------------------------------------------------------------------------


def by_profiles(z: np.ndarray, k: int, views: Sequence[View], codes: np.ndarray) -> np.ndarray:
    """Each instance to the cluster for which its labels and neighbours speak: naive Bayes, own vote left out.

    A view is a source whose label is the cluster of most neighbours. A source that says nothing has the same
    profile in every cluster, and so no say.
    """
    n = len(z)
    for _ in range(_PROFILE_SWEEPS):
        score, heard = np.zeros((n, k)), np.zeros(n, dtype=bool)
        columns = [(np.flatnonzero(c >= 0), c[c >= 0], int(c.max()) + 1) for c in codes.T]
        columns += [(v.rows, (v.graph @ np.eye(k)[z[v.rows]]).argmax(axis=1), k) for v in views]
        for rows, label, q in columns:
            own, place = z[rows], np.arange(len(rows))
            table = np.zeros((k, q))
            np.add.at(table, (own, label), 1.0)
            share = (table.sum(axis=0) / table.sum())[label][:, None]
            inside = table[:, label].T + k * share
            members = np.tile(table.sum(axis=1) + k, (len(rows), 1))
            inside[place, own] -= 1.0
            members[place, own] -= 1.0
            score[rows] += np.log(np.maximum(inside, 1e-3) / members / share)
            heard[rows] = True
        prior = np.log((np.bincount(z, minlength=k) + 1.0) / (n + k))
        found = np.where(heard, (score + prior).argmax(axis=1), z)
        if np.array_equal(found, z) or (np.bincount(found, minlength=k) == 0).any():
            break
        z = found
    return z


# --- all of it ----------------------------------------------------------------------------------------------


class MixedResult(NamedTuple):
    """What `mix` found. All that is said by source has views first, then columns of labels."""

    labels: np.ndarray
    embedding: np.ndarray  # rows of length one; zero where nothing is known, or where labels alone decided
    centers: np.ndarray
    relations: Relations
    trust: np.ndarray
    heard: np.ndarray  # how far each source counts, 0 to 1
    weights: np.ndarray  # in the places side by side
    directions: np.ndarray  # shares of their directions
    speaks: np.ndarray  # (n, 2), whether the views and whether the labels speak for the cluster found
    by_profiles: bool  # whether profiles had the last word
    labels_alone: bool  # whether no view was heard


def mix(
    views: Sequence[View],
    codes: np.ndarray,
    offsets: np.ndarray,
    n_clusters: int,
    *,
    given: np.ndarray,
    by_labels: Callable[[], np.ndarray | None],
    n_init: int,
    rng: np.random.RandomState,
) -> MixedResult:
    r"""Clusters from embedded views and columns of labels, either of which may lack instances.

    1. `relations` of any two sources. 2. How far each counts, c: `trust`, or `related`; and views no more
    than they are trusted `beside_labels`. 3. Weights: c for a view, c / 2 for a column of labels. 4.
    `fill_in`. 5. Places side by side, projected softly, and k-means, as in PSE. 6. Where instances have many
    labels, `by_profiles`. Where no view is heard, what labels alone say, and neighbours for those without
    labels.

    Parameters
    ----------
    views : sequence of View
        Steps 1 to 3 of PSE.
    codes, offsets : ndarray
        Labels from 0 in every column, -1 where there are none, and where clusters begin when stacked.
    n_clusters : int
        Number of clusters.
    given : ndarray
        What a source counts whatever its relations, views first; NaN where these decide.
    by_labels : callable
        What labels alone say, -1 where there are none; None where nothing links them.
    n_init, rng
        Number of starts of k-means, and what draws them.

    Cost: linear in instances x (columns of all places); pairs of sources.
    """
    n, v_n, k = len(codes), len(views), n_clusters
    found = relations(views, codes, offsets)
    a = trust(found)
    count = count_of(a, found)
    count[:v_n] *= beside_labels(a, count, v_n)
    count = np.where(np.isnan(given), count, given)
    full = np.repeat([1.0, LABEL_WEIGHT], [v_n, codes.shape[1]])
    weights = count * full if count.any() else full
    labelled = np.asarray((codes >= 0).any(axis=1))
    if codes.shape[1] > 1 and v_n and count[:v_n].max() < _HEARD:
        z = by_labels()
        if z is not None:
            z = z.copy()
            votes = np.zeros((n, k))
            for view in views:
                votes += lifted(view, n) @ (np.eye(k)[z] * labelled[:, None])
            reached = ~labelled & votes.any(axis=1)
            z[reached] = votes[reached].argmax(axis=1)
            z[~labelled & ~reached] = np.bincount(z[labelled], minlength=k).argmax()
            nowhere = np.zeros((n, 1)), np.zeros((k, 1))
            speaks = np.column_stack([reached, labelled])
            return MixedResult(
                z,
                *nowhere,
                found,
                a,
                count,
                weights,
                np.ones(1),
                speaks,
                by_profiles=False,
                labels_alone=True,
            )
    use = np.flatnonzero(weights > 0)
    used_views = [views[i] for i in use.tolist() if i < v_n]
    used = use[use >= v_n] - v_n
    some_codes = codes[:, used]
    ends = np.concatenate([[0], np.cumsum(np.diff(offsets)[used])])
    blocks = fill_in(used_views, some_codes, ends, weights[use])
    parts = [w * block for w, block in zip(weights[use], blocks, strict=True)]
    x = np.hstack(parts)
    projection, directions = soft_projection(x, rank_of(k))
    y = unit_rows(x @ projection)
    some = y.any(axis=1)
    clusters = cluster_rows(y[some], min(k, int(some.sum())), n_init=n_init, rng=rng)
    z = np.full(n, np.bincount(clusters.labels).argmax())
    z[some] = clusters.labels
    labels_each = float(((some_codes >= 0) @ np.minimum(count[v_n:][used], 1.0)).mean())
    profiled = labels_each >= MANY_LABELS
    if profiled:
        heard = [view for view, c in zip(views, count, strict=False) if c > _HARDLY]
        z = by_profiles(z, k, heard, some_codes)
    centers = np.array(
        [y[some & (z == c)].mean(axis=0) if (some & (z == c)).any() else 0 * y[0] for c in range(k)]
    )
    sides = _sides(parts, use >= v_n, projection, centers)
    speaks = np.column_stack([(score.argmax(axis=1) == z) & score.any(axis=1) for score in sides])
    return MixedResult(
        z, y, centers, found, a, count, weights, directions, speaks, by_profiles=profiled, labels_alone=False
    )


def _sides(
    parts: Sequence[np.ndarray], is_labels: np.ndarray, projection: np.ndarray, centers: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What views and what labels say for every cluster: the projection is linear, so that sides add up."""
    ends = np.cumsum([0, *(part.shape[1] for part in parts)])
    toward = projection @ centers.T
    out = np.zeros((2, len(parts[0]), len(centers)))
    for part, label, a, b in zip(parts, is_labels, ends[:-1], ends[1:], strict=True):
        out[int(label)] += part @ toward[a:b]
    return out[0], out[1]


# --- an order that follows from the evidence ----------------------------------------------------------------


class Ordered(NamedTuple):
    """Labels under numbers, and instances in an order, that do not depend on how they came."""

    instances: np.ndarray
    codes: np.ndarray  # of the instances in that order


def in_order(codes: np.ndarray, sizes: Sequence[int], first: np.ndarray, seen: np.ndarray) -> Ordered:
    """Instances by their rows in views, then by their labels, which are numbered by who has them.

    `first` is an order of the instances by what views hold, `seen` whether any view has them. Columns, and
    labels where views do not decide, keep their order, which should follow from who has which label (see
    `Partitions.canonical`).
    """
    n = len(codes)
    rank = np.empty(n, dtype=np.int64)
    rank[first] = np.arange(n)
    rank[~seen] = n
    out = np.empty((n, codes.shape[1]), dtype=np.int64)
    for j, (column, k) in enumerate(zip(codes.T, sizes, strict=True)):
        here = column >= 0
        earliest = np.full(k, n)
        np.minimum.at(earliest, column[here], rank[here])
        order = np.lexsort((earliest, -np.bincount(column[here], minlength=k)))
        number = np.empty(k + 1, dtype=np.int64)
        number[order], number[k] = np.arange(k), -1
        out[:, j] = number[column]
    instances = np.lexsort((row_keys(out, np.asarray(sizes)), rank))
    return Ordered(instances, out[instances])
