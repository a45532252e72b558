"""Follow clusters from an earlier result to a new one: they keep their numbers, and what changed is told."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy.optimize import linear_sum_assignment

from consilience._support.errors import Hint, InputError, InputTypeError
from consilience._support.optional import optional_import
from consilience._support.shown import Table, as_html
from consilience._support.values import counted, is_missing, object_array
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import Tabulated
from consilience.io.labels import plain

_WHOLE = re.compile(r"-?(0|[1-9]\d*)")
_CALLED = ("label", "cluster", "segment")  # columns of labels, the first that there is
_MAJORITY = 0.5  # of the members that both results have


class Flow(NamedTuple):
    """Instances that were in one cluster and are in another, or the same."""

    before: int
    now: int
    n_instances: int


class Moves(NamedTuple):
    """Every instance of both results: those of the new one in its order, then those that are gone."""

    ids: np.ndarray  # positions where instances have no ids
    before: np.ndarray  # -1 for an instance that was in no cluster
    now: np.ndarray  # -1 for one that is in none
    n_here: int  # how many of them the new result has
    id_name: str = "id"
    backend: Any = None  # frame library of the table

    @property
    def what(self) -> np.ndarray:
        """Whether an instance "stayed", "moved", is "new", "gone", or still there but "unassigned"."""
        here = np.arange(len(self.ids)) < self.n_here
        known = [here & (self.now < 0), ~here, self.before < 0, self.before != self.now]
        return np.select(known, ["unassigned", "gone", "new", "moved"], "stayed")

    def columns(self, before: Mapping[int, str], now: Mapping[int, str]) -> dict[str, np.ndarray]:
        """A table: id, before, now, what; and the names of the clusters, where they have any."""
        found = {self.id_name: self.ids, "before": self.before, "now": self.now, "what": self.what}
        if before or now:
            for name, clusters, called in (("before", self.before, before), ("now", self.now, now)):
                words = [None if c < 0 else called.get(c, str(c)) for c in clusters.tolist()]
                found[f"{name}_name"] = object_array(words)
        return found


@dataclass(frozen=True, repr=False, eq=False)
class Changes(Tabulated):
    """What became of the clusters of an earlier result.

    A cluster *went into* another if more than half of its members are there now, of those that both results
    have; it *comes from* one if more than half of its members were there.

    Attributes
    ----------
    stayed : tuple of int
        Clusters that were there before and are there still, under the same number.
    appeared : tuple of int
        New clusters, under numbers that no cluster had.
    vanished : tuple of int
        Clusters of which none is left; their numbers are not used again.
    split : dict of int to tuple of int
        Clusters from which two or more clusters come now.
    merged : dict of int to tuple of int
        Clusters into which two or more earlier ones went.
    flows : tuple of Flow
        How many instances went from where to where, the most first.
    n_common, n_new, n_gone : int
        Instances in both results, only in the new one, only in the earlier one.
    names : dict of int to str
        What the clusters of the earlier result were called.
    moves : Moves or None
        Every instance with its cluster before and now; :meth:`to_frame` has them as a table. None in files
        that an earlier version saved.
    """

    stayed: tuple[int, ...]
    appeared: tuple[int, ...]
    vanished: tuple[int, ...]
    split: dict[int, tuple[int, ...]]
    merged: dict[int, tuple[int, ...]]
    flows: tuple[Flow, ...]
    n_common: int
    n_new: int
    n_gone: int
    names: dict[int, str]
    moves: Moves | None = field(default=None, metadata={"per_instance": True})

    @property
    def n_moved(self) -> int:
        """Instances in both results whose number is another one now."""
        return sum(flow.n_instances for flow in self.flows if flow.before != flow.now)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What changed, in words."""
        return self.told({})

    def told(self, names: Mapping[int, str]) -> tuple[str, ...]:
        """`sentences` with the names that clusters have now; those that are gone have the names they had."""
        called = {**self.names, **names}

        def listed(clusters: Iterable[int]) -> str:
            *most, last = (_called(c, called) for c in clusters)
            return f"{', '.join(most)} and {last}" if most else last

        said = [
            f"{counted(self.n_common, 'instance')} in both, {self.n_new} new, {self.n_gone} gone; "
            f"{self.n_moved} of those in both changed their cluster "
            f"({self.n_moved / max(self.n_common, 1):.0%})."
        ]
        said += [f"Cluster {listed([old])} was split into {listed(new)}." for old, new in self.split.items()]
        said += [
            f"Clusters {listed(old)} were merged into {listed([new])}." for new, old in self.merged.items()
        ]
        said += [f"Cluster {listed([c])} is new." for c in self.appeared]
        said += [f"Cluster {listed([c])} is gone." for c in self.vanished]
        if not (self.split or self.merged or self.appeared or self.vanished):
            said.append("All clusters stayed.")
        return tuple(said)

    def columns(self, names: Mapping[int, str] | None = None) -> dict[str, np.ndarray]:
        """The columns of `to_frame`, with the names that clusters have now."""
        if self.moves is None:
            raise InputError(
                "this result was saved by a version that did not keep who moved.",
                hint="follow the earlier result again with like.",
            )
        return self.moves.columns(self.names, names or {})

    def to_frame(self) -> Any:
        """Every instance of both results: its id, its cluster before and now (-1 for none), and whether it
        "stayed", "moved", is "new" or "gone", or is in the table but "unassigned".

        A frame of the kind that was given; a pandas frame where the labels came in no frame.
        """
        columns = self.columns()
        assert self.moves is not None
        backend = self.moves.backend
        if backend is None:
            optional_import("pandas", needed_for="to_frame() of labels that came in no frame", extra="frames")
        data = {
            name: values if values.dtype != object else values.tolist() for name, values in columns.items()
        }
        return nw.from_dict(data, backend=backend or "pandas").to_native()

    def as_dict(self) -> dict[str, Any]:
        """Numbers, strings, lists and dicts only, and the sentences."""
        return {**super().as_dict(), "sentences": list(self.sentences)}

    def __repr__(self) -> str:
        return f"Changes({' '.join(self.sentences)})"

    def _repr_html_(self) -> str:
        rows = [(str(flow.before), str(flow.now), str(flow.n_instances)) for flow in self.flows]
        return as_html(self.sentences, Table(("was in", "is in", "instances"), rows))


class Earlier(NamedTuple):
    """An earlier result: a cluster number per instance, ids if there were any, and names of the clusters."""

    labels: np.ndarray  # -1 where it had none
    ids: np.ndarray | None
    names: dict[int, str]


def read_earlier(like: Any, on: str | None = None) -> Earlier:
    """What `like` says of the earlier clusters: a fusion, labels by id, or an array in the same order."""
    if isinstance(like, Earlier):
        return like
    if hasattr(like, "labels") and hasattr(like, "partitions"):
        names = {} if like.cluster_names is None else dict(enumerate(like.names))
        return Earlier(np.asarray(like.labels), like.index, names)
    if nw.dependencies.is_pandas_dataframe(like) and list(like.columns[:1]) == ["label"]:
        like = like["label"]  # as `Fusion.to_frame` gives it: ids are in the index
    if nw.dependencies.is_into_dataframe(like):
        return _of_frame(nw.from_native(like, eager_only=True), on)
    if isinstance(like, Mapping):
        return _numbered(list(like.values()), object_array(list(like)))
    if nw.dependencies.is_pandas_series(like):
        return _numbered(like.tolist(), np.asarray(like.index))
    if isinstance(like, np.ndarray | list | tuple):
        return _numbered(list(like), None)
    raise InputTypeError(
        f"cannot follow clusters of {type(like).__name__}.",
        hint="give an earlier fusion, a dict or series of labels by id, or a frame of id and label.",
    )


def _of_frame(frame: Any, on: str | None) -> Earlier:
    of_ids = on if on in frame.columns else frame.columns[0]
    others = [name for name in frame.columns if name != of_ids]
    column = others[0] if len(others) == 1 else label_column(others, "the earlier result")
    return of_columns(frame[of_ids].to_list(), frame[column].to_list())


def label_column(names: Sequence[str], where: str) -> str:
    """The column of labels, by its name; `names` are all but that of the ids."""
    for wanted in _CALLED:
        if wanted in names:
            return wanted
    listed = f"{', '.join(map(repr, names))} beside the ids" if names else "nothing but ids"
    raise InputError(
        f"which column of {where} holds the clusters is not clear: it has {listed}.",
        hint=Hint(
            "call it label, cluster or segment, or give two columns, ids and labels.",
            command="name it with --like-column, or call it label, cluster or segment.",
        ),
    )


def of_columns(ids: list[Any], labels: list[Any]) -> Earlier:
    """An earlier result as two columns."""
    return _numbered(labels, object_array(ids))


def _numbered(labels: list[Any], index: np.ndarray | None) -> Earlier:
    """Whole numbers stay; other labels are numbered by size and become names."""
    if all((isinstance(label, str) and _WHOLE.fullmatch(label)) or is_missing(label) for label in labels):
        labels = [int(label) if isinstance(label, str) else label for label in labels]  # out of a text file
    missing = [is_missing(label) for label in labels]
    known = [label for label, gone in zip(labels, missing, strict=True) if not gone]
    if all(_is_whole(label) for label in known):
        numbers = [-1 if gone else int(label) for label, gone in zip(labels, missing, strict=True)]
        return Earlier(np.array(numbers, dtype=np.int64).reshape(-1), index, {})
    values, sizes = np.unique([str(label) for label in known], return_counts=True)
    order = values[np.argsort(-sizes, kind="stable")].tolist()
    number = {name: c for c, name in enumerate(order)}
    numbers = [-1 if gone else number[str(label)] for label, gone in zip(labels, missing, strict=True)]
    return Earlier(np.array(numbers, dtype=np.int64), index, dict(enumerate(order)))


def _is_whole(label: Any) -> bool:
    try:
        return not isinstance(label, str | bool) and float(label) == int(label)
    except (TypeError, ValueError, OverflowError):
        return False


def follow(labels: np.ndarray, partitions: Partitions, earlier: Earlier) -> tuple[np.ndarray, Changes]:
    """Labels under the numbers of the earlier clusters that they overlap most, and what changed.

    Pairs of clusters are matched so that as many instances as possible keep their number; a pair that shares
    nobody is no match. Clusters without a match get numbers that were never used.
    """
    before = aligned(earlier, partitions)
    n_gone = int((earlier.labels >= 0).sum()) - int((before >= 0).sum())
    placed = labels >= 0
    old, new = np.unique(earlier.labels[earlier.labels >= 0]), np.unique(labels[placed])
    both = placed & (before >= 0)
    table = np.zeros((len(old), len(new)), dtype=np.int64)
    counts = partitions.counts[both]
    np.add.at(table, (np.searchsorted(old, before[both]), np.searchsorted(new, labels[both])), counts)
    kept = {c: o for o, c in zip(*linear_sum_assignment(-table), strict=True) if table[o, c]}
    free = iter(range(int(old.max(initial=-1)) + 1, int(old.max(initial=-1)) + 1 + len(new)))
    numbers = np.array([old[kept[c]] if c in kept else next(free) for c in range(len(new))])
    found = np.full(len(labels), -1, dtype=labels.dtype)
    found[placed] = numbers[np.searchsorted(new, labels[placed])]
    n_new = int(partitions.counts[placed & (before < 0)].sum())
    return found, _changes(
        table, old, numbers, n_gone, n_new, earlier, _moves(found, before, partitions, earlier)
    )


def compare_labels(labels: np.ndarray, partitions: Partitions, earlier: Earlier) -> Changes:
    """What changed where clusters have the numbers of the earlier result already."""
    before = aligned(earlier, partitions)
    n_gone = int((earlier.labels >= 0).sum()) - int((before >= 0).sum())
    both, placed = (labels >= 0) & (before >= 0), labels >= 0
    old, new = np.unique(earlier.labels[earlier.labels >= 0]), np.unique(labels[placed])
    table = np.zeros((len(old), len(new)), dtype=np.int64)
    np.add.at(
        table,
        (np.searchsorted(old, before[both]), np.searchsorted(new, labels[both])),
        partitions.counts[both],
    )
    n_new = int(partitions.counts[placed & (before < 0)].sum())
    return _changes(table, old, new, n_gone, n_new, earlier, _moves(labels, before, partitions, earlier))


def _moves(labels: np.ndarray, before: np.ndarray, partitions: Partitions, earlier: Earlier) -> Moves:
    """Everybody: the instances of the table, and those that only the earlier result has in a cluster."""
    ids, gone, was = partitions.index, np.empty(0, dtype=object), np.empty(0, dtype=np.int64)
    if ids is None:
        ids = np.arange(len(labels))
    else:
        assert earlier.ids is not None
        of, now = _comparable(earlier.ids, ids)
        here = set(now)
        left = [i for i, key in enumerate(of) if earlier.labels[i] >= 0 and key not in here]
        gone, was = earlier.ids[left], earlier.labels[left]
    if len(gone):
        everybody = [*ids.tolist(), *gone.tolist()]
        alike = len({type(key) for key in everybody}) == 1
        ids = object_array(everybody if alike else list(map(str, everybody)))
    return Moves(
        ids,
        np.concatenate([before, was]).astype(np.int64),
        np.concatenate([labels, np.full(len(was), -1)]).astype(np.int64),
        len(labels),
        "row" if partitions.index is None else str(partitions.index_name or "id"),
        partitions.backend,
    )


def _comparable(first: np.ndarray, second: np.ndarray) -> tuple[list[Any], list[Any]]:
    """Two lists of ids; as text where they are of other types: numbers of one file are text of another."""
    was, now = first.tolist(), second.tolist()
    if {type(i) for i in was} != {type(i) for i in now}:
        return list(map(str, was)), list(map(str, now))
    return was, now


def aligned(earlier: Earlier, partitions: Partitions) -> np.ndarray:
    """The earlier label of every instance of the new table, -1 where it was not there."""
    if partitions.index is None and earlier.ids is None:
        if len(earlier.labels) != partitions.n_rows:
            raise InputError(
                f"the earlier result has {len(earlier.labels)} instances and the table {partitions.n_rows}, "
                "and neither has ids.",
                hint="give both with ids, so that instances can be matched.",
            )
        return earlier.labels
    if partitions.index is None or earlier.ids is None:
        which = "table" if partitions.index is None else "earlier result"
        raise InputError(
            f"the {which} has no ids, but the other one has.", hint="give both with ids, or both without."
        )
    was, now = _comparable(earlier.ids, partitions.index)
    by_id = dict(zip(was, earlier.labels.tolist(), strict=True))
    if len(by_id) < len(was):
        twice = next(key for key, n in Counter(was).items() if n > 1)
        raise InputError(
            f"the id {twice!r} occurs several times in the earlier result.",
            hint="give every instance one earlier label.",
        )
    before = np.array([by_id.get(i, -1) for i in now], dtype=np.int64)
    if not (before >= 0).any():
        here, there = plain(partitions.index[0]), plain(earlier.ids[0])
        raise InputError(
            f"no instance of the table is in the earlier result: ids begin with {here!r} here and {there!r} "
            "there.",
            hint="use the same ids, of the same type, in both.",
        )
    return before


def _changes(
    table: np.ndarray,
    old: np.ndarray,
    numbers: np.ndarray,
    n_gone: int,
    n_new: int,
    earlier: Earlier,
    moves: Moves,
) -> Changes:
    went = table > _MAJORITY * table.sum(axis=1, keepdims=True)  # of an old cluster, where most of it is
    comes = table > _MAJORITY * table.sum(axis=0)  # of a new cluster, where most of it was
    flows = [
        Flow(int(old[o]), int(numbers[c]), int(table[o, c])) for o, c in zip(*np.nonzero(table), strict=True)
    ]
    was, now = set(old.tolist()), set(numbers.tolist())
    return Changes(
        stayed=tuple(sorted(was & now)),
        appeared=tuple(sorted(now - was)),
        vanished=tuple(sorted(was - now)),
        split={int(old[o]): _of(numbers, comes[o]) for o in np.flatnonzero(comes.sum(axis=1) > 1)},
        merged={int(numbers[c]): _of(old, went[:, c]) for c in np.flatnonzero(went.sum(axis=0) > 1)},
        flows=tuple(sorted(flows, key=lambda flow: (-flow.n_instances, flow))),
        n_common=int(table.sum()),
        n_new=n_new,
        n_gone=n_gone,
        names=earlier.names,
        moves=moves,
    )


def _of(numbers: np.ndarray, chosen: np.ndarray) -> tuple[int, ...]:
    return tuple(sorted(int(number) for number in numbers[chosen]))


def _called(cluster: int, names: Mapping[int, str]) -> str:
    """Its number, and its name where it has one of its own."""
    name = names.get(cluster, str(cluster))
    return str(cluster) if name == str(cluster) else f"{cluster} ({name})"
