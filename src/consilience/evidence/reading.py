"""From sources to evidence: distinct label rows with counts, and the way back to every instance.

A row of the table stands for all instances with the same labels. Which row an instance has is either kept
(`Kept`: its id and a number) or found again by reading the source a second time (`Again`), so that a table
beyond memory differs from a small one in nothing but that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from consilience._support.errors import Hint, InputError, UsageError
from consilience.core.grouping import RowIndex, find_rows
from consilience.evidence.builder import Builder, RowOf
from consilience.evidence.partitions import Partitions, nobody_saw
from consilience.io import ids as _ids
from consilience.io.labels import MISSING, Negative
from consilience.io.pieces import Coded, Piece, Source

ROWS_A_BATCH = 1_000_000
_OPINIONS = 5  # rows from which on three columns may be opinions
Told = Callable[[str, int, int], None]


class Beside(NamedTuple):
    """Some consecutive instances: their ids, or None; and which row of the table each of them has."""

    ids: Any
    rows: np.ndarray


class Instances(Protocol):
    """The instances of a table, in the order in which they were read."""

    @property
    def id_name(self) -> str | None:
        """What their ids are called; None where they have none."""

    @property
    def n_instances(self) -> int:
        """How many they are."""

    def batches(self) -> Iterator[Beside]:
        """All of them, as many at a time as are written at a time."""


@dataclass(frozen=True)
class Labels:
    """What was read: distinct label rows with counts, and the instances that have them."""

    table: Partitions
    instances: Instances

    def in_full(self) -> Partitions:
        """The table with a row and an id for every instance."""
        return self.spread(np.arange(self.table.n_rows))[1]

    def spread(self, values: np.ndarray) -> tuple[np.ndarray, Partitions]:
        """The values of rows for every instance, and the table with a row for each of them."""
        parts = list(self.instances.batches())
        rows = np.concatenate([part.rows for part in parts])
        index = None
        if self.instances.id_name is not None:
            index = _ids.id_array(pa.chunked_array([part.ids for part in parts]))
        full = replace(self.table.take(rows), counts=None, index=index, index_name=self.instances.id_name)
        return values[rows], full


class Kept(NamedTuple):
    """Instances of which the id and the row are in memory."""

    ids: pa.ChunkedArray | None
    rows: np.ndarray
    id_name: str | None

    @property
    def n_instances(self) -> int:
        """How many they are."""
        return len(self.rows)

    def batches(self) -> Iterator[Beside]:
        """All of them."""
        for rows in spans(len(self.rows)):
            yield Beside(None if self.ids is None else _ids.taken(self.ids, rows), self.rows[rows])


class Again(NamedTuple):
    """Instances that are read again from their source."""

    source: Source
    builder: Builder
    row_of: RowOf
    rows: RowIndex
    id_name: str | None

    @property
    def n_instances(self) -> int:
        """How many they are."""
        return self.builder.n_rows

    def batches(self) -> Iterator[Beside]:
        """All of them."""
        return rebatched(self._found())

    def _found(self) -> Iterator[Beside]:
        met = np.zeros(len(self.row_of.noisy), dtype=np.int64)
        for piece in self.source.pieces():
            number = find_rows(self.rows, self.builder.find(piece))
            if number.min(initial=0) < 0:
                raise InputError(
                    f"{self.source.name!r} has changed since it was first read.",
                    hint="a table must not change while it is read; start again.",
                )
            yield Beside(piece.ids, self.row_of.of(number, met))


def read_labels(
    sources: Sequence[Source],
    *,
    negative: Negative = "missing",
    unobserved: str = "error",
    again: bool = False,
    most: float = np.inf,
    told: Told | None = None,
) -> Labels:
    """Read one source, or several that are joined by id.

    Parameters
    ----------
    sources : sequence of Source
        What :func:`consilience.io.scan` found.
    negative : {"missing", "noise"}, default="missing"
        What a negative number means.
    unobserved : str, default="error"
        "error" refuses instances without any label.
    again : bool, default=False
        Forget ids and rows of instances, and read them again when they are asked for. Several sources are
        joined by their ids, which are kept.
    most : int, optional
        The most distinct label rows.
    told : callable, optional
        Called with a step, how much is done and how much there is.
    """
    if len(sources) == 1:
        return _read_one(sources[0], negative, unobserved, again, most, told)
    return _read_joined(sources, negative, unobserved, most, told)


def _read_one(
    source: Source, negative: Negative, unobserved: str, again: bool, most: float, told: Told | None
) -> Labels:
    builder, ids = _collect(source, again, most, told)
    return labels_of(builder, source, negative, unobserved, None if again else ids)


def labels_of(
    builder: Builder, source: Source, negative: Negative, unobserved: str, ids: list[Any] | None = None
) -> Labels:
    """What a builder read of a source; where `ids` is None, instances are read again from it."""
    built = builder.finish(
        negative=negative,
        where=source.where,
        ids="none" if source.id_name is None else "given",
        by_id=source.id_name is not None,
    )
    if not builder.fits:
        raise too_many(builder.most)
    if unobserved == "error":
        row, n = builder.first_unseen(built)
        if n:
            raise nobody_saw(source.where(row), n)
    assert built.row_of is not None
    table = Partitions.of_built(built, negative=negative)
    refuse_opinions(source, table)
    instances: Instances
    if ids is None:
        instances = Again(source, builder, built.row_of, builder.index(), source.id_name)
    else:
        instances = Kept(pa.chunked_array(ids) if ids else None, built.row_of.instances(), source.id_name)
    return Labels(table, instances)


def _collect(source: Source, again: bool, most: float, told: Told | None) -> tuple[Builder, list[Any]]:
    """Go through a source once: its distinct rows, and its ids, each of which occurs once."""
    builder = Builder(text=source.text, keep="counts", number=not again, most=most)
    ids: list[Any] = []
    called = source.table.places if hasattr(source, "table") else source.name
    for piece in source.pieces():
        if piece.ids is not None:
            ids.append(_ids.keys_of(piece.ids) if again else piece.ids)
        builder.add(piece)
        if told is not None:
            told("reading", builder.n_rows, builder.n_rows)
    if again and ids:
        _ids.require_distinct_keys(called, ids, source.ids, hint=_one_row(source))
    elif ids:
        _ids.require_distinct(called, ids, hint=_one_row(source))
    return builder.settled(), ids


def require_ids(source: Source) -> None:
    """Refuse a source in which an id is missing or occurs twice, without reading anything else of it."""
    called = source.table.places if hasattr(source, "table") else source.name
    keys = [_ids.keys_of(part) for part in source.ids()]
    _ids.require_distinct_keys(called, keys, source.ids, hint=_one_row(source))


def _one_row(source: Source) -> Any:
    """What to do where ids repeat: an id and two columns may be an instance, a source and a label."""
    special = getattr(source, "hint_of_repeats", None)
    if special is not None:
        return special
    if len(source.columns) != 2:
        return Hint("give a row per instance; for a row per opinion, give {long=}.")
    long = ",".join([str(source.id_name), *source.columns])
    return Hint(
        "give a row per instance; if this is a row per opinion, say {long=} (instance, source, label).",
        long=long,
    )


def refuse_opinions(source: Source, table: Partitions) -> None:
    """Refuse three columns that nobody chose in which the first two, the second of them names, occur once
    together and repeat by themselves: hardly any two clusterings are that far from each other."""
    chosen = getattr(source, "asked", True)  # columns of what is no file are what they are
    if source.id_name is not None or chosen or table.n_partitions != 3 or table.n_rows < _OPINIONS:
        return
    if isinstance(table.categories[1][0], str) and (table.counts == 1).all():
        first, second = (table.codes[:, j].astype(np.int64) for j in (0, 1))
        sizes = table.n_clusters_per_partition
        pairs = np.unique(first * int(sizes[1]) + second)
        if min(first.min(), second.min()) >= 0 and len(pairs) == len(first) > sizes[:2].max():
            called = getattr(source, "path", source.name)
            raise UsageError(
                f"{called} looks like a row per opinion: {table.names[0]!r} and "
                f"{table.names[1]!r} repeat, but never together.",
                hint=Hint(
                    "say {long=} (instance, source, label); if they are base clusterings, name them with "
                    "{columns=}.",
                    long=",".join(table.names),
                ),
            )


def _read_joined(
    sources: Sequence[Source], negative: Negative, unobserved: str, most: float, told: Told | None
) -> Labels:
    """Several sources by id: a row of the joined table is a combination of their rows."""
    read = [_collect(source, False, most, told) for source in sources]
    ids, places = _join(sources, [ids for _, ids in read])
    number = np.full((len(ids), len(sources)), MISSING, dtype=np.int32, order="F")
    for j, ((builder, _), place) in enumerate(zip(read, places, strict=True)):
        number[place, j] = builder.numbers()
    places_of = [source.where for source in sources]
    builder = Builder.join([builder for builder, _ in read], number, joined_names(sources), places_of)
    id_name = sources[0].id_name

    def where(row: int) -> str:
        return f"the instance {ids[row].as_py()!r}"

    built = builder.finish(negative=negative, where=where, ids="given", by_id=True)
    if unobserved == "error":
        row, n = builder.first_unseen(built)
        if n:
            raise nobody_saw(where(row), n)
    assert built.row_of is not None
    kept = Kept(pa.chunked_array([ids]), built.row_of.instances(), id_name)
    return Labels(Partitions.of_built(built, negative=negative), kept)


class Joined:
    """Several sources as one, joined by id, with the labels of every instance in memory."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.name, self.id_name, self.text = sources[0].name, sources[0].id_name, False
        read = [_collect(source, False, np.inf, None) for source in sources]
        self._ids, places = _join(sources, [ids for _, ids in read])
        self._columns: dict[str, Coded] = {}
        for source, (builder, _), place, names in zip(
            sources, read, places, joined_names(sources), strict=True
        ):
            for name, own in zip(names, builder.columns(), strict=True):
                codes = np.full(len(self._ids), MISSING, dtype=np.int32)
                codes[place] = own.codes
                self._columns[name] = Coded(codes, own.values, source.text)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the base clusterings."""
        return tuple(self._columns)

    def pieces(self) -> Iterator[Piece]:
        """All instances at once."""
        yield Piece(self._columns, self._ids, len(self._ids))

    def ids(self) -> Iterator[pa.Array]:
        """The ids."""
        yield self._ids

    def where(self, row: int) -> str:
        """An instance in words."""
        return f"the instance {self._ids[row].as_py()!r}"


def _join(sources: Sequence[Source], ids: Sequence[list[Any]]) -> tuple[pa.Array, list[np.ndarray]]:
    """The ids of all sources in order of appearance, and where the rows of each go."""
    for source in sources:
        if source.id_name is None:
            raise UsageError(
                f"to join {len(sources)} files, every one needs an id column, and {source.name!r} has none.",
                hint="name it by id=, for all files or for each: id={'a.csv': 'customer'}.",
                command="name their id column with --id, or that of each file with --id FILE=COLUMN.",
            )
    return _ids.join_ids([source.name for source in sources], [pa.chunked_array(own) for own in ids])


def joined_names(sources: Sequence[Source]) -> list[list[str]]:
    """Names of base clusterings: those of their columns, and of their sources where columns repeat."""
    everywhere = [name for source in sources for name in source.columns]
    return [
        [
            name
            if everywhere.count(name) == 1
            else source.name
            if len(source.columns) == 1
            else f"{source.name} {name}"
            for name in source.columns
        ]
        for source in sources
    ]


def too_many(most: float) -> InputError:
    """The error about more distinct rows than are held."""
    return InputError(
        f"there are more than {most:.0f} distinct label rows.",
        hint="consilience.dask.fuse_parquet merges them by PCE on blocks.",
        command="write to a folder, where PCE merges them on blocks: -o merged/.",
    )


def spans(n_rows: int) -> Iterator[slice]:
    """Rows that are written at a time."""
    for start in range(0, n_rows, ROWS_A_BATCH):
        yield slice(start, min(start + ROWS_A_BATCH, n_rows))


def rebatched(parts: Iterable[Beside]) -> Iterator[Beside]:
    """The same instances, as many at a time as are written at a time."""
    waiting: list[Beside] = []
    n_waiting = 0

    def batch() -> Beside:
        known = [part.ids for part in waiting if part.ids is not None]
        ids = pa.chunked_array(known).combine_chunks() if known else None
        return Beside(ids, np.concatenate([part.rows for part in waiting]))

    for ids, rows in parts:
        while n_waiting + len(rows) >= ROWS_A_BATCH:
            here = ROWS_A_BATCH - n_waiting
            waiting.append(Beside(None if ids is None else ids[:here], rows[:here]))
            yield batch()
            waiting, n_waiting = [], 0
            ids, rows = None if ids is None else ids[here:], rows[here:]
        if len(rows):
            waiting.append(Beside(ids, rows))
            n_waiting += len(rows)
    if n_waiting:
        yield batch()
