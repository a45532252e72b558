"""Tables of labels in files, as the command line reads them: see `consilience.evidence.reading`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from consilience._support.errors import InputError
from consilience.evidence.partitions import Partitions
from consilience.evidence.reading import Labels
from consilience.evidence.reading import read_labels as read
from consilience.io import files
from consilience.io.files import Source, is_text, stems
from consilience.io.labels import MISSING
from consilience.io.pieces import Coded, Piece
from consilience.io.shapes import spread


class FileSource:
    """A file as a source of labels."""

    def __init__(self, path: str, how: Source, name: str) -> None:
        self.path, self._how, self.name = path, how, name
        self.id_name = how.of(path).id_column
        self.text = is_text(path)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the base clusterings."""
        return tuple(next(self.pieces()).columns)

    def pieces(self) -> Iterator[Piece]:
        """All rows, a batch of the reader at a time."""
        n_rows = 0
        for batch in files.pieces(self.path, self._how, text=True, coded=True):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            ids = None if self.id_name is None else columns.pop(self.id_name)
            if not columns:
                raise InputError(
                    f"{self.path} has no column of labels.", hint="a column per base clustering."
                )
            coded = {name: coded_column(values) for name, values in columns.items()}
            yield Piece(coded, ids, batch.num_rows, n_rows)
            n_rows += batch.num_rows
        if not n_rows:
            raise InputError(
                f"{self.path} has no rows.", hint="a row per instance, below a line of column names."
            )

    def ids(self) -> Iterator[pa.Array]:
        """The ids alone."""
        for batch in files.pieces(self.path, self._how, text=True, only_ids=True):
            yield batch.column(0)

    def where(self, row: int) -> str:
        """A row in words."""
        return f"row {row} of {self.path}"


def coded_column(values: pa.Array) -> Coded:
    """A column of Arrow as codes and what they stand for."""
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    codes = coded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
    return Coded(codes, coded.dictionary.to_pylist())


class LongSource:
    """Files with a row per opinion (an instance, who speaks about it, what is said) as a source of labels."""

    def __init__(self, paths: Sequence[str], how: Source) -> None:
        assert how.long is not None
        self._paths, self._how = paths, how
        self.id_name, self._base, self._label = how.long
        self.name = stems(paths)[0]
        self.text = all(map(is_text, paths))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the base clusterings."""
        return tuple(self._table.columns)

    @cached_property
    def _table(self) -> Piece:
        assert self._how.long is not None
        instance, base, label = self._how.long
        wanted = self._how.for_columns(self._how.long)
        found: dict[str, list[pa.Array]] = {name: [] for name in self._how.long}
        for path in self._paths:
            n_rows = 0
            for piece in files.pieces(path, wanted, text=True):
                for name in self._how.long:
                    _refuse_gap(path, name, piece.column(name), n_rows, allowed=name == label)
                    found[name].append(piece.column(name))
                n_rows += piece.num_rows
        if not found[instance]:
            raise InputError(
                f"{self._paths[0]} has no rows.", hint="a row per opinion, below a line of column names."
            )
        ids, who = _numbered(found[instance])
        bases, which = _numbered(found[base])
        labels, what = _numbered(found[label])
        names = [str(name) for name in bases.to_pylist()]
        known = labels.to_pylist()
        alone = len(self._paths) == 1
        codes = spread(who, which, what, len(ids), names, known, lambda p: ids[p].as_py(), say_rows=alone)
        columns = {name: Coded(column, known) for name, column in zip(names, codes.T, strict=True)}
        return Piece(columns, ids, len(ids))

    def pieces(self) -> Iterator[Piece]:
        """All instances at once."""
        yield self._table

    def ids(self) -> Iterator[pa.Array]:
        """The ids."""
        yield self._table.ids

    def where(self, row: int) -> str:
        """An instance in words."""
        return f"the instance {self._table.ids[row].as_py()!r}"


def _numbered(parts: list[pa.Array]) -> tuple[pa.Array, np.ndarray]:
    """Distinct values in order of appearance, and the number of each entry; -1 where there is none."""
    whole = pa.chunked_array(parts).combine_chunks()
    coded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    return coded.dictionary, coded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)


def _refuse_gap(path: str, name: str, values: pa.Array, first_row: int, *, allowed: bool) -> None:
    if values.null_count and not allowed:
        row = first_row + int(np.argmax(np.asarray(values.is_null())))
        raise InputError(
            f"row {row} of {path} has no {name!r}.",
            hint="only labels may be missing; check the order: --long instance,source,label.",
        )


def sources_of(paths: Sequence[str], how: Source) -> list[Any]:
    """The files of a command as sources."""
    if how.long is not None:
        return [LongSource(paths, how)]
    return [FileSource(path, how, name) for path, name in zip(paths, stems(paths), strict=True)]


def as_arrow(labels: list[Any]) -> pa.Array:
    """Labels as Arrow holds them: of one type, or as text."""
    if len({type(label) for label in labels}) == 1:
        for kind in (None, pa.uint64()):  # whole numbers from 2^63 on have to be asked for
            with suppress(OverflowError, pa.ArrowException):
                return pa.array(labels, kind)
    return pa.array([str(label) for label in labels], pa.string())


def say_long(names: Sequence[str]) -> str:
    """How to read a table as a row per opinion."""
    return f"--long {shlex.quote(','.join(names))} (instance, source, label)"


class Beside(NamedTuple):
    """Some consecutive instances: their ids under the name of their column, and which row each has."""

    ids: dict[str, Any]
    rows: Any


class Instances(NamedTuple):
    """The instances of a table that was read, for those who write them."""

    read: Labels

    @property
    def n_instances(self) -> int:
        """How many they are."""
        return self.read.instances.n_instances

    def batches(self) -> Iterator[Beside]:
        """All of them."""
        start = 0
        for ids, rows in self.read.instances.batches():
            own = np.arange(start, start + len(rows)) if ids is None else ids
            yield Beside({self.read.instances.id_name or "row": own}, rows)
            start += len(rows)


class ReadFiles(NamedTuple):
    """Files of labels that are read when they are asked for."""

    sources: list[Any]

    def partitions(self, *, negative: Any = "missing", unobserved: str = "error") -> Partitions:
        """The table with a row and an id for every instance."""
        return read(self.sources, negative=negative, unobserved=unobserved).in_full()

    def compact(self, *, unobserved: str = "error", **how: Any) -> tuple[Partitions, Instances]:
        """The distinct rows of the table with counts, and the instances in terms of these."""
        found = read(self.sources, unobserved=unobserved, **how)
        return found.table, Instances(found)


def read_labels(paths: Sequence[str], how: Source) -> ReadFiles:
    """The base clusterings in one file, or in several that are joined by id; or one row per opinion."""
    return ReadFiles(sources_of(paths, how))
