"""Bring a result up to date: instances that were there, new ones, new sources, and no new merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from consilience._support.errors import Hint, InputError
from consilience._support.values import counted, object_array
from consilience.core.canonical import Rows
from consilience.core.certainty import certainty
from consilience.core.diffusion import THETA, diffuse, nearest, relocate
from consilience.diagnostics import require_linked
from consilience.evidence.partitions import MISSING, Partitions
from consilience.inference.counts import Tabulated
from consilience.io.labels import plain
from consilience.results.drift import Drift, Watch, require_labels
from consilience.results.following import Earlier, compare_labels
from consilience.results.preparing import merge_rows

if TYPE_CHECKING:
    from consilience.results.fusion import Fusion

_MAX_SWEEPS = 30  # as DAL


@dataclass(frozen=True, repr=False, eq=False)
class Update(Tabulated):
    """What an update did; see :meth:`consilience.Fusion.update`.

    Attributes
    ----------
    n_before : int
        Instances of the result that was updated.
    n_again : int
        Those of them that the new table has.
    n_new : int
        New instances.
    n_moved : int
        Instances that were there and are in another cluster now.
    new_sources : tuple of str
        Columns that were not there.
    n_merged : int
        Instances when everything was last merged.
    drift : Drift or None
        Whether the new instances are like the others; None where there are fewer than 50 of them.
    """

    n_before: int
    n_again: int
    n_new: int
    n_moved: int
    new_sources: tuple[str, ...]
    n_merged: int
    drift: Drift | None = None

    @property
    def merge_anew(self) -> str:
        """Why a new merge is advisable; empty where nothing speaks for it."""
        if self.n_before + self.n_new >= 2 * self.n_merged:
            return f"there were {self.n_merged} instances when everything was merged, less than half"
        if self.drift is not None and min(self.drift.p_meaning, self.drift.p_labels) < 0.01:
            return f"{self.drift.source or 'a source'} changed"
        return ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was done, in words."""
        sources = f" {counted(len(self.new_sources), 'source')} came in addition." if self.new_sources else ""
        said = [
            f"Updated: {counted(self.n_before, 'instance')} were there, {self.n_again} of them in the new "
            f"table, {self.n_new} {'is' if self.n_new == 1 else 'are'} new; {self.n_moved} of those that "
            f"were there moved.{sources}",
            "It is no new merge, which may find other clusters.",
        ]
        if self.merge_anew:
            said.append(f"Merge anew and follow the clusters (like): {self.merge_anew}.")
        return tuple(said)

    def as_dict(self) -> dict[str, Any]:
        """Numbers, strings, lists and dicts only, and the sentences."""
        return {**super().as_dict(), "sentences": list(self.sentences)}

    def __repr__(self) -> str:
        return f"Update({' '.join(self.sentences)})"


def update(fusion: Fusion, labels: Any, *, index: Any = None, pin: Any = None) -> Fusion:
    """See :meth:`consilience.Fusion.update`."""
    require_labels(fusion, "update")
    old = fusion.partitions
    if old.index is None:
        raise InputError(
            "the result has no ids, by which instances are known again.",
            hint=Hint("merge with {index=}, or place newcomers with predict."),
        )
    new = _read(labels, old, index)
    joined = _join(old, new)
    watch = Watch(fusion)
    watch.add(joined.newcomers, joined.strange_of_newcomers)
    table = joined.table
    require_linked(table)
    earlier = np.concatenate([fusion.labels, np.full(table.n_rows - old.n_rows, -1)])
    stay = _pinned(fusion, pin, table.n_rows)
    if fusion.apart is not None:  # where they are they are apart
        stay[[row for rows in fusion.apart for row in rows]] = True
    given, linked = fusion.given_weights, fusion.linked
    if given is not None:
        given = (*given, *[1.0] * (table.n_partitions - old.n_partitions))
    if linked is not None:
        linked = np.concatenate([linked, linked.max() + 1 + np.arange(table.n_rows - old.n_rows)])
    found = _settle(fusion, table, earlier, joined.unchanged, stay, given, linked)
    before = Earlier(
        fusion.labels, old.index, {} if fusion.cluster_names is None else dict(enumerate(fusion.names))
    )
    changes = compare_labels(found, table, before)
    told = Update(
        n_before=old.n_instances,
        n_again=joined.n_again,
        n_new=table.n_rows - old.n_rows,
        n_moved=changes.n_moved,
        new_sources=joined.new_sources,
        n_merged=fusion.updated.n_merged if fusion.updated is not None else old.n_instances,
        drift=watch.found() if watch.enough else None,
    )
    return replace(
        fusion,
        labels=found,
        partitions=table,
        changes=changes,
        given_weights=given,
        linked=linked,
        reason=" ".join(told.sentences),
        updated=told,
    )


@dataclass(frozen=True)
class _Joined:
    """The table of old and new instances, and what is new in it."""

    table: Partitions
    unchanged: np.ndarray  # of the old instances, those whose labels are as they were
    n_again: int
    new_sources: tuple[str, ...]
    newcomers: np.ndarray  # labels of the new instances by the old sources, in their codes
    strange_of_newcomers: Mapping[tuple[int, Any], np.ndarray]


def _read(labels: Any, old: Partitions, index: Any) -> Partitions:
    if isinstance(labels, Partitions):
        found = labels
    else:
        in_frame = nw.dependencies.is_into_dataframe(labels) and old.index_name in list(labels.columns)
        found = Partitions.of(
            labels,
            negative=old.negative,
            index=old.index_name if index is None and in_frame else index,
            unobserved="keep",
        )
    if found.index is None:
        raise InputError(
            "the new table has no ids, by which instances are known again.",
            hint=Hint("name them with {index=}.", command="name their column with --id."),
        )
    return found


def _join(old: Partitions, new: Partitions) -> _Joined:
    """Every instance with what is known of it: a new label replaces the old one, a blank does not."""
    assert old.index is not None
    assert new.index is not None
    known = [j for j, name in enumerate(new.names) if name in old.names]
    added = [j for j, name in enumerate(new.names) if name not in old.names]
    if not known and not added:
        raise InputError("the new table has no labels.", hint="give a column per base clustering.")
    was, now = old.index.tolist(), new.index.tolist()
    if {type(key) for key in was} != {type(key) for key in now}:
        was, now = list(map(str, was)), list(map(str, now))
    row_of = {key: i for i, key in enumerate(was)}
    fresh = [i for i, key in enumerate(now) if key not in row_of]
    place = np.array([row_of.get(key, -1) for key in now])
    place[fresh] = old.n_rows + np.arange(len(fresh))
    names = tuple(new.names[j] for j in known)
    part = replace(new.choose(known), column_names=names) if known else None
    codes = np.full((old.n_rows + len(fresh), old.n_partitions + len(added)), MISSING, dtype=np.int32)
    codes[: old.n_rows, : old.n_partitions] = old.codes
    given = np.full((new.n_rows, old.n_partitions), MISSING)
    strange: Mapping[tuple[int, Any], np.ndarray] = {}
    if part is not None:
        given, strange = old.encode_known(part)
        for j in range(old.n_partitions):
            has = given[:, j] >= 0
            codes[place[has], j] = given[has, j]
    categories = [list(map(plain, values)) for values in old.categories]
    for (j, label), rows in strange.items():
        _require_alike(old.names[j], categories[j], label)
        codes[place[rows], j] = len(categories[j])
        categories[j].append(label)
    for column, j in enumerate(added, start=old.n_partitions):
        codes[place, column] = new.codes[:, j]
        categories.append(list(map(plain, new.categories[j])))
    unchanged = (codes[: old.n_rows, : old.n_partitions] == old.codes).all(axis=1)
    unchanged &= (codes[: old.n_rows, old.n_partitions :] < 0).all(axis=1)
    everybody = [*was, *(now[i] for i in fresh)] if fresh else old.index.tolist()
    all_names = (*old.names, *(new.names[j] for j in added))
    table = Partitions.of_rows(
        codes.astype(np.min_scalar_type(-max(2, *map(len, categories)))),
        [_values(each) for each in categories],
        all_names,
        index=object_array(everybody) if old.index.dtype == object else np.array(everybody),
        index_name=old.index_name,
        backend=old.backend,
    )
    groups = None if old.groups is None else (*old.groups, *[None] * len(added))
    new_rows = {row: i for i, row in enumerate(fresh)}
    of_newcomers = {
        key: np.array([new_rows[row] for row in rows.tolist() if row in new_rows], dtype=np.int64)
        for key, rows in strange.items()
    }
    return _Joined(
        replace(table, negative=old.negative, groups=groups).compact(),
        unchanged,
        len(now) - len(fresh),
        tuple(new.names[j] for j in added),
        given[fresh],
        {key: rows for key, rows in of_newcomers.items() if len(rows)},
    )


def _values(labels: list[Any]) -> np.ndarray:
    kinds = {type(label) for label in labels}
    return np.array(labels) if kinds <= {int} or kinds <= {bool} else object_array(labels)


def _require_alike(name: str, known: list[Any], label: Any) -> None:
    text = {isinstance(each, str) for each in known}
    if text == {not isinstance(label, str)}:
        raise InputError(
            f"{name!r} has the label {label!r}, and its labels were {'text' if True in text else 'numbers'}, "
            f"as {known[0]!r}.",
            hint="write its labels as they were written before.",
        )


def _pinned(fusion: Fusion, pin: Any, n_rows: int) -> np.ndarray:
    """Which instances stay where they are."""
    stay = np.zeros(n_rows, dtype=bool)
    if pin is None or pin is False:
        return stay
    table = fusion.partitions
    if pin is True:
        stay[: table.n_rows] = fusion.labels >= 0
        return stay
    assert table.index is not None
    row_of = {str(key): i for i, key in enumerate(table.index.tolist())}
    for key in pin:
        if str(key) not in row_of:
            raise InputError(
                f"the id {plain(key)!r} of pin is not in the result.", hint="pin instances that were there."
            )
        stay[row_of[str(key)]] = True
    return stay


def _settle(
    fusion: Fusion,
    table: Partitions,
    earlier: np.ndarray,
    unchanged: np.ndarray,
    stay: np.ndarray,
    given: Any,
    linked: np.ndarray | None,
) -> np.ndarray:
    """Labels of all instances: from those they have, rows move to the nearest cluster until none does.

    Rows that the earlier table would have moved, and whose labels are as they were, keep their place: another
    method, or the user, put them there for a reason that an update does not know. So nothing moves where
    nothing is new.
    """
    used = np.unique(earlier[earlier >= 0])
    start = np.where(earlier >= 0, np.searchsorted(used, earlier), -1)
    same = np.zeros(table.n_rows, dtype=bool)
    same[: len(unchanged)] = unchanged
    held = stay.copy()
    held[: len(unchanged)] |= unchanged & _against(fusion, used)
    group = np.arange(table.n_rows) if linked is None else linked
    merged = table if linked is None else merge_rows(table, linked)
    weighted = merged if given is None else merged.weighted(np.array(given)).counting
    rows, row_of = weighted.canonical.rows, weighted.inverse[group]
    seen = table.seen
    first = _majority(row_of, np.where(same, start, -1), len(rows.counts), len(used))
    first = np.where(first >= 0, first, _majority(row_of, start, len(rows.counts), len(used)))
    fixed = _majority(row_of, np.where(start >= 0, held.astype(int), -1), len(rows.counts), 2) == 1
    kernel, known = _kernel_of_seen(rows)
    moved = first.copy()
    moved[known], _ = relocate(kernel, first[known], len(used), _MAX_SWEEPS, held=fixed[known])
    of_row = moved[row_of]
    keeps = (start >= 0) & (held | (same & (of_row == first[row_of])))
    found = np.where(keeps, start, of_row)
    # One that nobody has seen stays as it was; a new one is in no cluster.
    found = np.where(seen, found, start)
    return np.where(found >= 0, used[found], -1)


def _kernel_of_seen(rows: Rows) -> tuple[Any, np.ndarray]:
    known = np.asarray((rows.codes >= 0).any(axis=1))
    part = rows._replace(codes=np.ascontiguousarray(rows.codes[known]), counts=rows.counts[known])
    return diffuse(part, certainty(part, THETA)), known


def _against(fusion: Fusion, used: np.ndarray) -> np.ndarray:
    """Which instances are not in the cluster that is nearest to them in the table of the result."""
    table, labels, group = fusion.partitions, fusion.labels, np.arange(len(fusion.labels))
    if fusion.linked is not None:
        table, group = merge_rows(table, fusion.linked), fusion.linked
    if fusion.given_weights is not None:
        table = table.weighted(np.array(fusion.given_weights)).counting
    rows, row_of = table.canonical.rows, table.inverse[group]
    start = _majority(
        row_of, np.where(labels >= 0, np.searchsorted(used, labels), -1), len(rows.counts), len(used)
    )
    kernel, known = _kernel_of_seen(rows)
    near = start.copy()
    near[known] = nearest(kernel, start[known], len(used))
    return np.asarray(used[near][row_of] != labels)


def _majority(row_of: np.ndarray, values: np.ndarray, n_rows: int, n_values: int) -> np.ndarray:
    """Per distinct row, the value that most of its instances have; -1 where none has one."""
    has = values >= 0
    votes = np.bincount(row_of[has] * n_values + values[has], minlength=n_rows * n_values)
    votes = votes.reshape(n_rows, n_values)
    return np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
