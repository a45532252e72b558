"""Instances that belong together and instances that do not: how they are given, and that they are kept."""

from __future__ import annotations

import csv
import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from consilience._support.errors import Hint, InputError, Phrase
from consilience._support.values import did_you_mean, is_missing
from consilience.evidence.partitions import Partitions
from consilience.io.labels import plain

_GROUP = "group"  # the column of a table that says which ids belong together
_SHOWN = 8  # ids in a sentence


def read_links(given: Any, partitions: Partitions, name: str) -> list[tuple[int, ...]]:
    """Groups of rows: from pairs or groups of ids, a dict of groups, a table, or a CSV file of one.

    A table has ids in every column, a pair or group a row; or a column "group" beside the one of ids.
    """
    if isinstance(given, str | os.PathLike):
        groups: Iterable[Any] = _of_table(*_read_csv(Path(given), name))
    elif nw.dependencies.is_into_dataframe(given):
        frame = nw.from_native(given, eager_only=True)
        groups = _of_table(list(frame.columns), [list(row) for row in frame.iter_rows()])
    else:
        groups = given.values() if isinstance(given, Mapping) else given
    row_of = _Rows(partitions)
    found = []
    for number, group in enumerate(groups):
        if isinstance(group, str) or not isinstance(group, Iterable):
            raise InputError(
                f"entry {number} of {name} is {group!r}, not a pair.",
                hint=f"as in {name}=[('ann', 'bob')].",
            )
        rows = tuple(row_of(key) for key in group)
        if len(rows) < 2:
            raise InputError(
                f"entry {number} of {name} has {len(rows)} ids: {list(group)!r}.",
                hint="a pair or group has two or more.",
            )
        found.append(rows)
    return found


class _Rows:
    """Rows by ids, also as text, or by positions where there are no ids."""

    def __init__(self, partitions: Partitions) -> None:
        ids = list(range(partitions.n_rows)) if partitions.index is None else partitions.index.tolist()
        self._known = {key: row for row, key in enumerate(ids)}
        self._as_text = {str(key): row for row, key in enumerate(ids)}

    def __call__(self, key: Any) -> int:
        row = self._known.get(key) if key.__hash__ is not None else None
        row = self._as_text.get(str(plain(key))) if row is None else row
        if row is None:
            near = did_you_mean(str(key), list(self._as_text)[:10_000])
            raise InputError(f"there is no instance {plain(key)!r}.", hint=near)
        return row


def _of_table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    if _GROUP not in names:
        return [
            [cell for cell in row if not is_missing(cell)]
            for row in rows
            if any(not is_missing(c) for c in row)
        ]
    at = list(names).index(_GROUP)
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        own = [cell for place, cell in enumerate(row) if place != at and not is_missing(cell)]
        if own and not is_missing(row[at]):
            groups.setdefault(row[at], []).append(own[0])
    return [group for group in groups.values() if len(group) > 1]


def _read_csv(path: Path, name: str) -> tuple[list[str], list[list[Any]]]:
    """A small table of ids; its first line names the columns."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        first = file.readline()
        file.seek(0)
        mark = max(",;\t", key=first.count)
        lines = [[cell.strip() or None for cell in line] for line in csv.reader(file, delimiter=mark)]
    if not lines:
        raise InputError(
            f"{path} is empty.", hint=f"{name} has a line of names, then a pair or group a line."
        )
    return [str(cell) for cell in lines[0]], lines[1:]


def linked_groups(n_rows: int, together: Sequence[tuple[int, ...]]) -> np.ndarray:
    """A number for every row, the same for those that belong together."""
    pairs = [(group[0], row) for group in together for row in group[1:]]
    a, b = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    ones = np.ones(len(a))
    return np.asarray(
        connected_components(coo_array((ones, (a, b)), shape=(n_rows, n_rows)), directed=False)[1]
    )


def require_consistent(
    partitions: Partitions, together: Sequence[tuple[int, ...]], apart: Sequence[tuple[int, ...]]
) -> None:
    """Refuse instances that belong together by a chain of links and may not; the error names the chain."""
    group = linked_groups(partitions.n_rows, together)
    for members in apart:
        for a, b in combinations(members, 2):
            if a == b or group[a] != group[b]:
                if a == b:
                    raise InputError(
                        f"cannot_link parts {_id(partitions, a)!r} from itself.", hint="leave it out."
                    )
                continue
            chain = " - ".join(repr(_id(partitions, row)) for row in _chain(a, b, together))
            raise InputError(
                f"cannot_link parts {_id(partitions, a)!r} from {_id(partitions, b)!r}, and must_link "
                f"puts them together: {chain}.",
                hint="leave out one of these links.",
            )


def _chain(start: int, end: int, together: Sequence[tuple[int, ...]]) -> list[int]:
    """The shortest way from one row to another over links."""
    near: dict[int, set[int]] = {}
    for group in together:
        for row in group:
            near.setdefault(row, set()).update(group)
    came: dict[int, int] = {start: start}
    waiting = deque([start])
    while waiting and end not in came:
        row = waiting.popleft()
        for other in sorted(near.get(row, ())):
            if other not in came:
                came[other] = row
                waiting.append(other)
    way = [end]
    while way[-1] != start:
        way.append(came[way[-1]])
    return way[::-1]


def keep_apart(
    partitions: Partitions,
    labels: np.ndarray,
    chances: np.ndarray,
    group: np.ndarray,
    apart: Sequence[tuple[int, ...]],
) -> np.ndarray:
    """Labels in which no two of a group that may not be together are.

    Those concerned are placed one after another, each in the likeliest cluster that is left to it; first who
    has the fewest left, then who is surest. All others stay.
    """
    near: dict[int, set[int]] = {}
    for members in apart:
        for a, b in combinations({int(group[row]) for row in members}, 2):
            near.setdefault(a, set()).add(b)
            near.setdefault(b, set()).add(a)
    rows = {g: np.flatnonzero(group == g) for g in near}
    log = {g: np.log(np.maximum(chances[own], 1e-12)).sum(axis=0) for g, own in rows.items()}
    used = np.unique(labels[labels >= 0])
    left = {g: set(used.tolist()) for g in near}
    given: dict[int, int] = {}
    labels = labels.copy()
    while len(given) < len(near):
        g = min((g for g in near if g not in given), key=lambda g: (len(left[g]), -float(log[g].max()), g))
        if not left[g]:
            names = [repr(_id(partitions, int(rows[other][0]))) for other in [g, *sorted(near[g])]]
            shown = ", ".join(names[:_SHOWN]) + " ..." * (len(names) > _SHOWN)
            raise InputError(
                Phrase(
                    "the cannot-links of {who} leave no cluster with {n_clusters=}.",
                    who=shown,
                    n_clusters=len(used),
                ),
                hint=Hint("raise {n_clusters}, or leave out some of them."),
            )
        own = int(labels[rows[g][0]])
        given[g] = max(left[g], key=lambda c: (float(log[g][c]) + (1e-9 if c == own else 0.0), -c))
        labels[rows[g]] = given[g]
        for other in near[g]:
            left[other].discard(given[g])
    return labels


def _id(partitions: Partitions, row: int) -> Any:
    return row if partitions.index is None else plain(partitions.index[row])
