"""Labels in other shapes than a table: a row per opinion, lists of groups, one-hot and soft memberships.

Each is turned into the columns that `consilience.evidence.partitions` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import counted, did_you_mean, id_array, is_missing, object_array
from consilience._support.warnings import warn
from consilience.io.frames import (
    Memory,
    frame_of,
    memory_of,
    read_memory,
    require_distinct,
    require_ids,
    rows_text,
)
from consilience.io.labels import MISSING, plain
from consilience.io.pieces import Coded

_TIE = 0.55  # the largest membership over that and the second largest: up to here both are about equal


# --- a row per opinion --------------------------------------------------------------------------------------


class _Factor(NamedTuple):
    """A column as numbers and the distinct values they stand for, in the order in which they first occur."""

    codes: np.ndarray  # -1 where a value is missing
    values: list[Any]


def read_long(frame: Any, instance: str, source: str, label: str) -> Memory:
    """A frame with a row for each label that a source gave to an instance."""
    if nw.dependencies.is_polars_lazyframe(frame):
        raise InputTypeError("labels cannot be a lazy frame.", hint="frame.collect().")
    if not nw.dependencies.is_into_dataframe(frame):
        raise InputTypeError(
            f"labels in long format must be a frame, got {type(frame).__name__}.",
            hint="a pandas, polars or pyarrow frame with a row for each label that a source gave.",
        )
    table = frame_of(frame, "two columns have one name")
    for name in (instance, source, label):
        if name not in table.columns:
            raise InputError(f"the frame has no column {name!r}.", did_you_mean(name, table.columns))
    if not len(table):
        raise InputError("the frame has no rows.", hint="a row for each label that a source gave.")
    who, whose, what = (_factor(table[name]) for name in (instance, source, label))
    for name, factor in ((instance, who), (source, whose)):
        blank = np.flatnonzero(factor.codes < 0)
        if len(blank):
            raise InputError(
                f"column {name!r} is empty in {rows_text(blank, None)}.",
                hint="every label needs the instance it was given to and the source that gave it.",
            )
    names = [str(value) for value in whose.values]
    require_distinct(names)
    n = len(who.values)
    codes = spread(who.codes, whose.codes, what.codes, n, names, what.values, lambda p: plain(who.values[p]))
    known = object_array(what.values)
    columns = [Coded(column, known) for column in codes.T]
    return memory_of(
        columns, names, n, id_array(who.values), backend=table.implementation.value, id_name=instance
    )


def spread(
    who: np.ndarray,
    whose: np.ndarray,
    what: np.ndarray,
    n_instances: int,
    names: Sequence[str],
    labels: Sequence[Any],
    id_of: Callable[[int], Any],
    *,
    say_rows: bool = True,
) -> np.ndarray:
    """Opinions as a table of codes, a row per instance and a column per source; -1 where there is no label.

    `who`, `whose` and `what` are the numbers of instance, source and label of every opinion, -1 for no label;
    `names`, `labels` and `id_of` say what they stand for in the error about two labels.
    """
    codes = np.full((n_instances, len(names)), MISSING, dtype=np.int32, order="F")
    said = what >= 0  # a blank says nothing, so it contradicts nobody
    rows, columns, given = who[said], whose[said], what[said]
    codes[rows, columns] = given
    if len(other := np.flatnonzero(codes[rows, columns] != given)):
        p, j, label = (int(values[other[0]]) for values in (rows, columns, given))
        where = f" ({rows_text(np.flatnonzero(said)[other], None)})" if say_rows else ""
        raise InputError(
            f"source {names[j]!r} gives instance {id_of(p)!r} two labels: {labels[label]!r} and "
            f"{labels[codes[p, j]]!r}{where}.",
            hint="keep one of them, or tell two sources apart, for instance by their date.",
        )
    return codes


def _factor(column: nw.Series[Any]) -> _Factor:
    entries = column.to_list()
    found = {entry: place for place, entry in enumerate(dict.fromkeys(entries))}
    raw = np.fromiter(map(found.__getitem__, entries), dtype=np.int64, count=len(entries))
    said = np.array([plain(entry) is not None for entry in found])
    number = np.where(said, np.cumsum(said) - 1, MISSING)
    return _Factor(number[raw], [entry for entry, here in zip(found, said, strict=True) if here])


# --- lists of groups ----------------------------------------------------------------------------------------


def read_groups(runs: Mapping[str, Any]) -> Memory:
    """For each base clustering its clusters, each of them as its members."""
    if not isinstance(runs, Mapping):
        raise InputTypeError(
            f"groups must be a dict of base clusterings, got {type(runs).__name__}.",
            hint='Partitions.from_groups({"run": [["ann", "bob"], ["cleo"]]}).',
        )
    if not runs:
        raise InputError("there are no base clusterings.", hint="labels need at least one.")
    position: dict[Any, int] = {}
    found: list[tuple[dict[int, int], list[Any]]] = []  # per run: group of each row, and names of the groups
    for run, groups in runs.items():
        group_of: dict[int, int] = {}
        names: list[Any] = []
        for name, members in _groups(run, groups):
            for member in _members(run, name, members):
                row = position.setdefault(member, len(position))
                if group_of.setdefault(row, len(names)) != len(names):
                    raise InputError(
                        f"instance {plain(member)!r} is in two groups of {str(run)!r}: "
                        f"{names[group_of[row]]!r} and {name!r}.",
                        hint="a clustering puts an instance into one cluster; give overlapping groups as "
                        "several base clusterings, or keep one of them.",
                    )
            names.append(name)
        found.append((group_of, names))
    columns = []
    for group_of, names in found:
        codes = np.full(len(position), MISSING, dtype=np.int32)
        codes[list(group_of)] = list(group_of.values())
        columns.append(Coded(codes, object_array(names)))
    if not position:
        raise InputError("no group has a member.", hint="a group lists the ids of its instances.")
    labelled = [str(run) for run in runs]
    require_distinct(labelled)
    ids = id_array(list(position))
    require_ids(ids, "the groups")
    return memory_of(columns, labelled, len(ids), ids)


def _groups(run: Any, groups: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(groups, Mapping):
        return iter(groups.items())
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise InputTypeError(
            f"base clustering {str(run)!r} is {groups!r}, not a list of groups.",
            hint="a list of lists or sets of ids, or a dict of cluster to members.",
        )
    return enumerate(groups)


def _members(run: Any, name: Any, members: Any) -> Iterable[Any]:
    """Ids of a group. A set has no order of its own: its ids are sorted, so that runs can be repeated."""
    if isinstance(members, str | bytes) or not isinstance(members, Iterable):
        raise InputTypeError(
            f"group {name!r} of {str(run)!r} is {members!r}, not a list of ids.",
            hint="for labels by id, {id: label}, use Partitions.of.",
        )
    ids = members.tolist() if isinstance(members, np.ndarray) else list(members)
    try:
        set(ids)
    except TypeError as error:
        raise InputTypeError(
            f"group {name!r} of {str(run)!r} holds something that cannot be an id ({error}).",
            hint="ids are integers or strings, or tuples of them.",
        ) from error
    if not isinstance(members, Set):
        return ids
    try:
        return sorted(ids)
    except TypeError:
        return sorted(ids, key=lambda value: (type(value).__name__, repr(value)))


# --- memberships --------------------------------------------------------------------------------------------


class _Membership(NamedTuple):
    """The largest membership of every row."""

    labels: np.ndarray  # objects, None where the row has none
    ids: Any
    backend: Any
    share: float  # mean of the largest, as a share of the row
    ties: float  # share of rows whose two largest are about equal
    sure: bool  # whether every row has one membership only


def read_memberships(tables: Mapping[str, Any], index: str | Sequence[Any] | None) -> Memory:
    """For each base clustering a table with a column per cluster: how far a row belongs to it."""
    if not isinstance(tables, Mapping):
        raise InputTypeError(
            f"memberships must be a dict of base clusterings, got {type(tables).__name__}.",
            hint='Partitions.from_memberships({"mixture": matrix}).',
        )
    read = {str(name): _membership(str(name), table, index) for name, table in tables.items()}
    columns = {
        name: found.labels if found.ids is None else dict(zip(found.ids.tolist(), found.labels, strict=True))
        for name, found in read.items()
    }
    unsure = [(name, found) for name, found in read.items() if not found.sure]
    if unsure:
        told = "; ".join(
            f"{name!r} has its largest at {found.share:.2f} on average, {found.ties:.1%} near ties"
            for name, found in unsure[:5]
        ) + f"; and {len(unsure) - 5} others" * (len(unsure) > 5)
        warn(
            f"memberships of {counted(len(unsure), 'base clustering')} are not all 0 or 1, and only the "
            f"largest of each instance counts: {told}.",
            hint="set rows to NaN that are too unsure to count: they are then missing.",
        )
    table = read_memory(columns, None if isinstance(index, str) else index)
    backend = next((found.backend for found in read.values() if found.backend), None)
    return replace(table, backend=backend, id_name=index if isinstance(index, str) else None)


def _membership(name: str, given: Any, index: Any) -> _Membership:
    clusters, matrix, ids, backend = _matrix(name, given, index)
    blank = np.isnan(matrix).all(axis=1)
    matrix = np.where(blank[:, None], 0.0, matrix)
    strange = np.flatnonzero(~(np.isfinite(matrix) & (matrix >= 0)).all(axis=1))
    if len(strange):
        row = strange[0]
        column = int(np.flatnonzero(~(np.isfinite(matrix[row]) & (matrix[row] >= 0)))[0])
        raise InputError(
            f"memberships {name!r} have {matrix[row, column]} for cluster {clusters[column]!r} in "
            f"{rows_text(strange, ids)}.",
            hint="0 or more where an instance was seen, NaN in the whole row where it was not.",
        )
    total = matrix.sum(axis=1)
    seen = total > 0
    best = matrix.argmax(axis=1)
    labels = object_array(list(clusters))[best]
    labels[~seen] = None
    # A cluster without members lets a single one have a second largest, too.
    second, top = np.partition(np.pad(matrix[seen], ((0, 0), (1, 0))), -2, axis=1)[:, -2:].T
    sure = bool((second == 0).all())
    share = 1.0 if sure else float((top / total[seen]).mean())
    ties = 0.0 if sure else float((top <= _TIE * (top + second)).mean())
    return _Membership(labels, ids, backend, share, ties, sure)


def _matrix(name: str, given: Any, index: Any) -> tuple[list[Any], np.ndarray, Any, Any]:
    """Names of the clusters, the memberships as floats, ids and the library of a frame where there are."""
    clusters: list[Any]
    if nw.dependencies.is_into_dataframe(given):
        frame = frame_of(given, f"two clusters of {name!r} have one name")
        ids = None
        if isinstance(index, str):
            if index not in frame.columns:
                raise InputError(
                    f"memberships {name!r} have no column {index!r}.", did_you_mean(index, frame.columns)
                )
            ids = object_array(frame[index].to_list())
            frame = frame.drop(index)
        elif index is None and nw.dependencies.is_pandas_dataframe(given):
            ids = np.asarray(given.index)
        if ids is not None:
            require_ids(ids, f"memberships {name!r}")
        clusters, table, backend = list(frame.columns), frame.to_numpy(), frame.implementation.value
    else:
        if isinstance(index, str):
            raise InputError(
                f"index={index!r} names a column, but memberships {name!r} are not a frame.",
                hint="pass the ids themselves.",
            )
        table = given.toarray() if sp.issparse(given) else np.asarray(given)
        clusters, ids, backend = list(range(table.shape[-1] if table.ndim else 0)), None, None
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(
            f"memberships {name!r} have the shape {table.shape}.",
            hint="a row per instance and a column per cluster.",
        )
    if table.dtype == object:
        table = np.array([[np.nan if is_missing(value) else value for value in row] for row in table])
    try:
        matrix = table.astype(float)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"memberships {name!r} hold something that is no number ({error}).",
            hint="a frame has a column of numbers per cluster; name the column of ids by index=.",
        ) from error
    return clusters, matrix, ids, backend
