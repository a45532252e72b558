"""Coarser and finer clusters of one result: nested levels, what speaks for each split, and where to stop."""

from __future__ import annotations

import heapq
from dataclasses import replace
from functools import cached_property
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy.stats import chi2

from consilience._support.errors import InputError
from consilience._support.optional import optional_import
from consilience._support.shown import Table, as_html
from consilience._support.sklearn import Interval, check_parameter
from consilience._support.values import counted, object_array
from consilience.core.certainty import certainty
from consilience.core.diffusion import (
    MAX_ROWS,
    THETA,
    Kernel,
    counting_share,
    diffuse,
    link,
    link_micro_clusters,
    relocate,
)
from consilience.core.tables import cross, gather
from consilience.inference.counts import to_plain
from consilience.results.drift import require_labels
from consilience.results.preparing import merge_rows

if TYPE_CHECKING:
    from consilience.results.fusion import Fusion

_SUPPORTED, _SEPARATING = 0.01, 2  # p-value, and sources, from which on a split is supported
_LEAST = 5  # instances that a source must have seen to be asked about a split
_DEPENDENT = 0.1  # above it sources repeat each other, and chances are no promise
_SWEEPS = 30  # as DAL
_MICRO = 300  # micro-clusters of a cluster with many rows


class Split(NamedTuple):
    """A cluster of level k - 1 that is two clusters of level k, and what speaks for it."""

    k: int
    cluster: int  # its number; the larger part keeps it
    parts: tuple[int, int]
    sizes: tuple[int, int]
    similarity: float  # between the parts, on average
    sources: tuple[str, ...]  # that keep the parts apart as the others alone make them
    n_able: int  # sources that saw enough of both
    p: float  # chance of so much separation if the split were arbitrary

    @property
    def n_separate(self) -> int:
        """How many sources keep the parts apart."""
        return len(self.sources)

    @property
    def supported(self) -> bool:
        """Beyond chance, and not on the word of one source."""
        return self.p < _SUPPORTED and self.n_separate >= _SEPARATING

    @property
    def sentence(self) -> str:
        """In words."""
        why = f"{self.n_separate} of {counted(self.n_able, 'source')} separate them"
        if not self.supported:
            why += ", which may be chance" if self.n_able > 1 else ", too few to tell"
        first, second = (f"{c} ({n})" for c, n in zip(self.parts, self.sizes, strict=True))
        whole = f"cluster {self.cluster} ({sum(self.sizes)})"
        return f"{self.k - 1} -> {self.k}: {whole} into {first} | {second}; {why}."


class Node(NamedTuple):
    """A cluster of the tree of levels."""

    cluster: int
    size: int
    level: int  # the first at which it is there
    depth: int
    split: Split | None  # None where it is not split any further
    children: tuple[int, ...]  # their positions in the tree


class Stopped:
    """For every instance, the finest level at which its cluster is sure enough; see :meth:`Levels.stop`.

    Attributes
    ----------
    level : ndarray of int of shape (n_instances,)
        The number of clusters of that level; 1 where nothing can be said.
    cluster : ndarray of int
        The cluster at that level, -1 for an unassigned instance.
    chance : ndarray of float
        Its chance.
    within : tuple of tuple of int
        The clusters of the result that it consists of.
    error : float
        The share of errors that was asked for.
    promised : bool
        Whether sources err independently enough for `error` to hold.
    """

    def __init__(self, levels: Levels, error: float) -> None:
        fusion = levels.fusion
        n, chances = len(fusion.labels), fusion.chances
        self.error, self._levels = error, levels
        self.level, self.cluster = np.ones(n, dtype=np.int64), np.full(n, levels.whole, dtype=np.int64)
        self.chance = np.ones(n)
        for k in range(2, levels.n_clusters + 1):
            home = levels.home(k)
            numbers = np.unique(home[home >= 0])
            sums = np.stack([chances[:, home == c].sum(axis=1) for c in numbers], axis=1)
            best = sums.max(axis=1)
            sure = best >= 1.0 - error
            self.level[sure], self.chance[sure] = k, best[sure]
            self.cluster[sure] = numbers[sums.argmax(axis=1)[sure]]
        nowhere = fusion.labels < 0
        self.level[nowhere], self.cluster[nowhere], self.chance[nowhere] = 1, -1, 0.0
        self.promised = fusion.evidence.dependence <= _DEPENDENT

    @cached_property
    def within(self) -> tuple[tuple[int, ...], ...]:
        """See the attributes."""
        homes = {k: self._levels.home(k) for k in np.unique(self.level).tolist()}
        known = {
            (k, c): tuple(np.flatnonzero(homes[k] == c).tolist())
            for k, c in {*zip(self.level.tolist(), self.cluster.tolist(), strict=True)}
            if c >= 0
        }
        known |= {(1, -1): ()}
        return tuple(known[pair] for pair in zip(self.level.tolist(), self.cluster.tolist(), strict=True))

    @property
    def sentences(self) -> tuple[str, ...]:
        """How many instances stop where, in words."""
        counts, k = self._levels.fusion.partitions.counts, self._levels.n_clusters
        seen = self.cluster >= 0
        n = int(counts[seen].sum())
        said = [
            f"With at most {self.error:.0%} errors, {counts[seen & (self.level == k)].sum()} of "
            f"{counted(n, 'instance')} are in one of the {k} clusters, "
            f"{counts[seen & (self.level > 1) & (self.level < k)].sum()} in a coarser one, and of "
            f"{counts[seen & (self.level == 1)].sum()} nothing can be said."
        ]
        if not self.promised:
            said.append(
                f"Sources repeat each other (dependence {self._levels.fusion.evidence.dependence:.2f}): the "
                "share of errors is not promised."
            )
        return tuple(said)

    def told(self, row: int) -> str:
        """Where an instance stops, in words."""
        if self.cluster[row] < 0:
            return "in no cluster"
        if self.level[row] == 1:
            return "undecided"
        *most, last = (self._levels.fusion.names[c] for c in self.within[row])
        return f"at least in {', '.join(most)} or {last}; undecided between them" if most else f"in {last}"

    def columns(self) -> dict[str, np.ndarray]:
        """A table: level, cluster, chance and the clusters of the result that it consists of."""
        names = self._levels.fusion.names
        told: dict[tuple[int, ...], str] = {}
        for clusters in self.within:
            if clusters not in told:
                told[clusters] = " | ".join(names[c] for c in clusters)
        return {
            "level": self.level,
            "cluster": self.cluster,
            "chance": self.chance,
            "within": object_array([told[clusters] for clusters in self.within]),
        }

    def __repr__(self) -> str:
        return f"Stopped({' '.join(self.sentences)})"


class Levels:
    """Nested clusterings around a result: what :meth:`consilience.Fusion.levels` returns.

    Going up, the two clusters of highest mean similarity are merged, a very small one first; going down, the
    cluster is split whose parts are least similar. A cluster that is merged or split hands its number to the
    larger side, so all others keep theirs. Level 4 is level 4 of this result, not the best four clusters.

    Attributes
    ----------
    fusion : Fusion
        The result.
    n_clusters : int
        Its number of clusters; `cut` of it are its labels.
    k_max : int
        The finest level.
    """

    def __init__(self, fusion: Fusion, k_max: int | None = None) -> None:
        if fusion.by_views:
            require_labels(fusion, "levels")
        self.fusion, self.n_clusters = fusion, fusion.n_clusters
        table, group = fusion.partitions, np.arange(len(fusion.labels))
        if fusion.linked is not None:
            table, group = merge_rows(table, fusion.linked), fusion.linked
        if fusion.given_weights is not None:
            table = table.weighted(np.array(fusion.given_weights)).counting
        rows, row_of = table.canonical.rows, table.inverse[group]
        self._sources = tuple(table.names[j] for j in table.canonical.numbering.bases)
        known = (rows.codes >= 0).any(axis=1)
        place = np.where(known, np.cumsum(known) - 1, -1)
        rows = rows._replace(codes=np.ascontiguousarray(rows.codes[known]), counts=rows.counts[known])
        self._kernel = diffuse(rows, certainty(rows, THETA))
        self._share = counting_share(rows)
        self._row_of = place[row_of]
        self._numbers = np.unique(fusion.labels[fusion.labels >= 0])
        start = _majority(
            self._row_of, fusion.labels, fusion.partitions.counts, len(rows.counts), fusion.n_numbers
        )
        self._rows = {self.n_clusters: start}
        self._homes = _merge(self._kernel, start, self._numbers, self._share)
        for k, home in self._homes.items():
            self._rows[k] = home[start]
        wanted = self.n_clusters if k_max is None else max(int(k_max), self.n_clusters)
        self._rows.update(_divide(self._kernel, start, self._numbers, wanted, self._share))
        self.k_max = max(self._rows)

    @property
    def whole(self) -> int:
        """The number of the one cluster of level 1."""
        return int(self.home(1).max())

    def home(self, k: int) -> np.ndarray:
        """For every number of the result, that of its cluster at a coarser level; -1 if it is not used."""
        if k == self.n_clusters:
            found = np.full(self.fusion.n_numbers, -1)
            found[self._numbers] = self._numbers
            return found
        return self._homes[k]

    def cut(self, k: int) -> np.ndarray:
        """The cluster of every instance at the level of k clusters.

        Parameters
        ----------
        k : int
            From 1 to `k_max`. Each level is made of the one below it, and `cut` of the number of clusters of
            the result are its labels. A cluster that is the same at two levels has one number at both.
        """
        if k not in self._rows:
            raise InputError(
                f"there is no level of {k!r} clusters: they go from 1 to {self.k_max}.",
                hint=f"levels(k_max={k}) looks for finer ones; rows that are alike cannot be split.",
            )
        labels = self.fusion.labels
        if k <= self.n_clusters:
            return np.asarray(np.where(labels >= 0, self.home(k)[labels], -1))
        # Equal rows in different clusters stay there, each in the part that kept the number.
        own = (labels >= 0) & (self._row_of >= 0)
        own &= self._rows[self.n_clusters][self._row_of] == labels
        return np.asarray(np.where(own, self._rows[k][self._row_of], labels))

    @cached_property
    def splits(self) -> tuple[Split, ...]:
        """Every split, from the top, with what speaks for it.

        For each source, the members are sorted into the two parts by the other sources alone, and its labels
        compared with that (G-test); the p-value combines all sources (Fisher). A split is `supported` if it
        is below .01 and two sources separate the parts. Sources that repeat each other, as runs of one
        program do, support nearly every split.
        """
        return tuple(self._split(k) for k in range(2, self.k_max + 1))

    def _split(self, k: int) -> Split:
        before, now = self._rows[k - 1], self._rows[k]
        moved = before != now  # only the smaller part has another number
        cluster, part = int(before[moved][0]), int(now[moved][0])
        rows = np.flatnonzero(before == cluster)
        side = moved[rows].astype(np.int64)
        kernel = _only(self._kernel, rows)
        able, separate, logs = 0, [], 0.0
        for j, name in enumerate(self._sources):
            p = _held_out_p(kernel, side, j)
            if p is not None:
                able, logs = able + 1, logs - 2.0 * np.log(max(p, 1e-300))
                separate += [name] * (p < _SUPPORTED)
        found = self.cut(k)
        counts = self.fusion.partitions.counts
        return Split(
            k,
            cluster,
            (cluster, part),
            (int(counts[found == cluster].sum()), int(counts[found == part].sum())),
            float(_mean_similarity(kernel, side, 2)[0][0, 1]),
            tuple(sorted(separate, key=self.fusion.partitions.names.index)),
            able,
            float(chi2.sf(logs, 2 * able)) if able else 1.0,
        )

    @cached_property
    def tree(self) -> tuple[Node, ...]:
        """All clusters of all levels, each before its two parts; the first is everything."""
        of: dict[int, list[Split]] = {}  # the splits of a cluster, the coarsest first
        for split in self.splits:
            of.setdefault(split.cluster, []).append(split)
        nodes: list[Node] = []
        sizes = self.fusion.partitions.counts[self.fusion.labels >= 0].sum()

        def grow(cluster: int, size: int, level: int, depth: int) -> int:
            at = len(nodes)
            split = next((one for one in of.get(cluster, ()) if one.k > level), None)
            nodes.append(Node(cluster, size, level, depth, split, ()))
            if split is not None:
                parts = zip(split.parts, split.sizes, strict=True)
                children = tuple(grow(part, n, split.k, depth + 1) for part, n in parts)
                nodes[at] = nodes[at]._replace(children=children)
            return at

        grow(self.whole, int(sizes), 1, 0)
        return tuple(nodes)

    def stop(self, error: float = 0.1) -> Stopped:
        """For every instance the finest level at which some cluster has a chance of 1 - error or more.

        Chances of the clusters of the result (``fusion.chances``) are summed up the levels. Where sources err
        independently, at most that share of the instances is then in a wrong cluster; where they repeat each
        other there is no such promise, and ``sentences`` say so.

        Parameters
        ----------
        error : float, default=0.1
            Between 0 and 1.
        """
        check_parameter(
            "error", error, Interval(Real, 0, 1, closed="neither"), "stop", hint="0.1 allows one in ten"
        )
        return Stopped(self, float(error))

    @property
    def sentences(self) -> tuple[str, ...]:
        """A line for every split."""
        return tuple(split.sentence for split in self.splits)

    def to_frame(self, ks: Any = None, error: float | None = None) -> Any:
        """A table with a row per instance and a column per level; with `error`, also where it stops.

        A frame of the kind that was given; a pandas frame where the labels came in no frame.
        """
        table, columns = self.fusion.partitions, self.columns(ks, error)
        if table.backend is not None:
            return table.frame(columns)
        pandas = optional_import(
            "pandas", needed_for="to_frame() of labels that came in no frame", extra="frames"
        )
        data = {name: v if v.dtype != object else v.tolist() for name, v in columns.items()}
        return (
            nw.from_dict(data, backend=pandas)
            .to_native()
            .set_axis(range(len(self.fusion.labels)) if table.index is None else table.index, axis=0)
        )

    def columns(self, ks: Any = None, error: float | None = None) -> dict[str, np.ndarray]:
        """The columns of `to_frame`."""
        wanted = range(2, self.k_max + 1) if ks is None else ks
        found = {f"level {k}": self.cut(k) for k in wanted}
        return found if error is None else {**found, **self.stop(error).columns()}

    def as_dict(self) -> dict[str, Any]:
        """Numbers, strings, lists and dicts only."""
        splits = [{**s._asdict(), "supported": s.supported, "sentence": s.sentence} for s in self.splits]
        return {"n_clusters": self.n_clusters, "k_max": self.k_max, "splits": to_plain(splits)}

    def __repr__(self) -> str:
        return f"Levels(1 to {self.k_max} clusters, around {self.n_clusters})"

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def _repr_html_(self) -> str:
        rows = [
            (
                str(s.k),
                str(s.cluster),
                " | ".join(map(str, s.sizes)),
                f"{s.n_separate} of {s.n_able}",
                f"{s.p:.2g}",
            )
            for s in self.splits
        ]
        return as_html([repr(self)], Table(("clusters", "splits", "sizes", "sources", "p"), rows))


def split_cluster(fusion: Fusion, cluster: int | str) -> Fusion:
    """See :meth:`consilience.Fusion.split`."""
    number = _require_cluster(fusion, cluster)
    levels = Levels(fusion)
    found = _parts(levels._kernel, levels._rows[levels.n_clusters], number, levels._share)
    if found is None:
        raise InputError(
            f"cluster {fusion.names[number]} cannot be split: its instances have the same labels.",
            hint="add a source that tells them apart.",
        )
    rows, side, _ = found
    of_row = np.zeros(len(levels._rows[levels.n_clusters]), dtype=bool)
    of_row[rows[side == _smaller(levels._kernel, rows, side)]] = True
    moved = (fusion.labels == number) & (levels._row_of >= 0) & of_row[levels._row_of]
    labels = np.where(moved, fusion.n_numbers, fusion.labels)
    names = None if fusion.cluster_names is None else (*fusion.names, str(fusion.n_numbers))
    return _renumbered(fusion, labels, names, f"Cluster {fusion.names[number]} was split by hand.")


def merge_clusters(fusion: Fusion, clusters: tuple[int | str, ...]) -> Fusion:
    """See :meth:`consilience.Fusion.merge`."""
    numbers = [_require_cluster(fusion, cluster) for cluster in clusters]
    if len(set(numbers)) < 2:
        raise InputError("merge needs two clusters or more.", hint="as in fusion.merge(2, 5).")
    if len(set(numbers)) == fusion.n_clusters:
        raise InputError("merging all clusters leaves one.", hint="leave one of them out.")
    labels = np.where(np.isin(fusion.labels, numbers), numbers[0], fusion.labels)
    names = None
    called = " and ".join(fusion.names[c] for c in numbers)
    if fusion.cluster_names is not None:
        own = list(fusion.names)
        own[numbers[0]] = " + ".join(fusion.names[c] for c in numbers)
        names = tuple(own[: int(labels.max()) + 1])
    return _renumbered(fusion, labels, names, f"Clusters {called} were merged by hand.")


def _renumbered(fusion: Fusion, labels: np.ndarray, names: tuple[str, ...] | None, why: str) -> Fusion:
    reason = f"{fusion.reason} {why}"
    found = replace(fusion, labels=labels, cluster_names=names, reason=reason, cluster_count=None)
    return found.compared_with(fusion)


def _require_cluster(fusion: Fusion, cluster: Any) -> int:
    """The number of a cluster, by its number or its name."""
    if fusion.by_views:
        require_labels(fusion, "changing clusters by hand")
    used = np.unique(fusion.labels[fusion.labels >= 0]).tolist()
    if isinstance(cluster, Integral) and int(cluster) in used:
        return int(cluster)
    if isinstance(cluster, str) and cluster in fusion.names and fusion.names.index(cluster) in used:
        return fusion.names.index(cluster)
    listed = ", ".join(fusion.names[c] for c in used[:20])
    raise InputError(f"there is no cluster {cluster!r}.", hint=f"there are {listed}.")


# --- the tree -----------------------------------------------------------------------------------------------


def _majority(
    row_of: np.ndarray, labels: np.ndarray, counts: np.ndarray, n_rows: int, n_numbers: int
) -> np.ndarray:
    """Per distinct row, the cluster that most of its instances are in."""
    has = (labels >= 0) & (row_of >= 0)
    cells = row_of[has].astype(np.int64) * n_numbers + labels[has]
    return np.bincount(cells, counts[has], n_rows * n_numbers).reshape(n_rows, n_numbers).argmax(axis=1)


def _only(kernel: Kernel, rows: np.ndarray) -> Kernel:
    """The similarity among some rows."""
    own = kernel.rows
    part = own._replace(codes=np.ascontiguousarray(own.codes[rows]), counts=own.counts[rows])
    return kernel._replace(rows=part, norms=kernel.norms[rows])


def _mean_similarity(kernel: Kernel, labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean similarity of the members of every two clusters, and the sizes of all."""
    rows, w = kernel.rows, kernel.rows.weights
    sizes = np.bincount(labels, w, k)
    sums = cross(rows.codes, rows.offsets, labels, w / kernel.norms, k) / np.maximum(sizes, 1e-12)
    means = sums.T @ (kernel.table @ sums)
    return (means + means.T) / 2.0, sizes


def _merge(kernel: Kernel, labels: np.ndarray, numbers: np.ndarray, share: float) -> dict[int, np.ndarray]:
    """Average linkage of clusters: for every coarser level, the new number of each.

    On the way to k clusters, one that would not count there (see `counting_share`) goes first.
    """
    n = len(numbers)
    means, sizes = _mean_similarity(kernel, np.searchsorted(numbers, labels), n)
    home, alive, out = np.arange(n), list(range(n)), {}
    while len(alive) > 1:
        a, k = np.array(alive), len(alive) - 1
        near = means[np.ix_(a, a)].copy()
        np.fill_diagonal(near, -np.inf)
        small = sizes[a] < max(1.0, share * sizes[a].sum() / k)
        if k > 1 and small.any():
            smallest = np.where(small, sizes[a], np.inf).argmin()
            kept = np.full_like(near, -np.inf)
            kept[smallest], kept[:, smallest] = near[smallest], near[:, smallest]
            near = kept
        i, j = (int(a[x]) for x in np.unravel_index(near.argmax(), near.shape))
        i, j = (i, j) if (sizes[i], -i) > (sizes[j], -j) else (j, i)  # the larger keeps its number
        p = sizes[i] / (sizes[i] + sizes[j])
        row = p * means[i] + (1.0 - p) * means[j]
        own = p * row[i] + (1.0 - p) * row[j]
        means[i], means[:, i], means[i, i] = row, row, own
        sizes[i] += sizes[j]
        home[home == j] = i
        alive.remove(j)
        to = np.full(int(numbers.max()) + 1, -1)
        to[numbers] = numbers[home]
        out[k] = to
    return out


def _parts(
    kernel: Kernel, labels: np.ndarray, cluster: int, share: float
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """The rows of a cluster, the side of each as DAL cuts it in two, and the similarity of the sides."""
    rows = np.flatnonzero(labels == cluster)
    if len(rows) < 2:
        return None
    part = _only(kernel, rows)
    if len(rows) > MAX_ROWS:
        tree = next(iter(link_micro_clusters(part, _MICRO, 1, np.random.RandomState(0))))
    else:
        tree = link(part)
    side, _ = relocate(part, tree.cut(2, share), 2, _SWEEPS)
    if len(np.unique(side)) < 2:
        return None
    return rows, side, float(_mean_similarity(part, side, 2)[0][0, 1])


def _smaller(kernel: Kernel, rows: np.ndarray, side: np.ndarray) -> int:
    sizes = np.bincount(side, kernel.rows.weights[rows], 2)
    return int(sizes[1] <= sizes[0])


def _divide(
    kernel: Kernel, labels: np.ndarray, numbers: np.ndarray, k_max: int, share: float
) -> dict[int, np.ndarray]:
    """Split the cluster whose parts are least similar, again and again; labels of the rows at every level."""
    labels, out = labels.copy(), {}
    heap: list[tuple[float, int, np.ndarray]] = []
    free = int(numbers.max()) + 1

    def push(cluster: int) -> None:
        found = _parts(kernel, labels, cluster, share)
        if found is not None:
            rows, side, similarity = found
            heapq.heappush(heap, (similarity, cluster, rows[side == _smaller(kernel, rows, side)]))

    if k_max > len(numbers):
        for cluster in numbers.tolist():
            push(cluster)
    for k in range(len(numbers) + 1, k_max + 1):
        if not heap:
            break
        _, cluster, rows = heapq.heappop(heap)
        labels[rows] = free
        out[k] = labels.copy()
        push(cluster)
        push(free)
        free += 1
    return out


def _held_out_p(kernel: Kernel, side: np.ndarray, j: int) -> float | None:
    """Whether source j tells the sides apart that the other sources make of the members: p of a G-test.

    None where it saw too few.
    """
    rows, w = kernel.rows, kernel.rows.weights
    codes, own = rows.codes.copy(), rows.codes[:, j].astype(np.int64)
    codes[:, j] = -1
    sums = kernel.table @ cross(codes, rows.offsets, side, w / kernel.norms, 2)
    score = gather(codes, rows.offsets, sums / np.bincount(side, w, 2))
    asked = (own >= 0) & (codes >= 0).any(axis=1)
    if not asked.any():
        return None
    n_labels = int(own.max()) + 1
    table = np.bincount(score.argmax(axis=1)[asked] * n_labels + own[asked], w[asked], 2 * n_labels)
    table = table.reshape(2, n_labels)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if table.sum() < _LEAST:
        return None
    if min(table.shape) < 2:
        return 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    full = table > 0
    g = 2.0 * (table[full] * np.log(table[full] / expected[full])).sum()
    return float(chi2.sf(g, table.shape[1] - 1))
