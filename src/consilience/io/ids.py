"""Ids of instances as Arrow holds them: checked, joined and handed on without a Python object for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from consilience._support.errors import InputError
from consilience.core.compiled import compiled

_FEW = 1_000_000  # ids that Arrow counts, without the compiler that larger numbers of them are worth
_ROWS = 1_000_000  # that are turned into NumPy's text at a time
_SHOWN = 3  # rows in a sentence
ONE_ROW = "a row per instance; give another id column, or remove the repetitions."


@compiled(reads=2, interpret=False)
def _hash_text(data, offsets, out):  # type: ignore[no-untyped-def]
    """A 64-bit number of every text: FNV-1a over its bytes."""
    for p in range(len(offsets) - 1):
        h = np.uint64(0xCBF29CE484222325)
        for i in range(offsets[p], offsets[p + 1]):
            h = (h ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
        out[p] = h


def keys_of(ids: pa.Array) -> np.ndarray:
    """A number for every id: equal for equal ids, and hardly ever for others."""
    if pa.types.is_integer(ids.type) and ids.type != pa.uint64():
        return np.asarray(ids.cast(pa.int64())).view(np.uint64)
    ids = as_text(ids)
    _, offsets, data = ids.buffers()
    places = np.frombuffer(offsets, dtype=np.int32)[ids.offset : ids.offset + len(ids) + 1]
    out = np.empty(len(ids), dtype=np.uint64)
    _hash_text(np.frombuffer(data if data is not None else b"\0", dtype=np.uint8), places, out)
    return out


def as_text(ids: pa.Array) -> pa.Array:
    """Ids as text, whatever they were."""
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    return ids if pa.types.is_string(ids.type) else ids.cast(pa.string())


def require_all(path: str, ids: pa.Array, first_row: int) -> None:
    """Refuse a row without an id."""
    if ids.null_count:
        row = first_row + int(np.argmax(np.asarray(ids.is_null())))
        raise InputError(f"row {row} of {path} has no id.", hint="give every row an id of its own.")


def require_distinct(path: str, ids: Sequence[pa.Array], *, hint: str = ONE_ROW) -> None:
    """Refuse an id that occurs twice."""
    if sum(map(len, ids)) > _FEW:
        require_distinct_keys(path, [keys_of(part) for part in ids], lambda: ids, hint=hint)
    elif ids:
        _refuse_repeated(path, ids, lambda: ids, hint)


def require_distinct_keys(
    path: str, keys: Sequence[np.ndarray], ids: Callable[[], Iterable[pa.Array]], *, hint: str = ONE_ROW
) -> None:
    """The same by the keys of ids, see `keys_of`; `ids` gives the ids again, if keys repeat."""
    ordered = np.concatenate(keys) if keys else np.empty(0, dtype=np.uint64)
    ordered.sort()
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    del ordered
    if len(twice):

        def suspects(part: pa.Array) -> pa.Array:
            # By sorting: NumPy 2.0 fails at a table of numbers from 2^63 on.
            return part.filter(pa.array(np.isin(keys_of(part), twice, kind="sort")))

        _refuse_repeated(path, [suspects(part) for part in ids()], ids, hint)


def _refuse_repeated(
    path: str, some: Sequence[pa.Array], ids: Callable[[], Iterable[pa.Array]], hint: str
) -> None:
    found = pa.chunked_array(some).value_counts()
    repeats = np.asarray(found.field("counts")) > 1
    if repeats.any():
        values, first = found.field("values"), int(np.argmax(repeats))
        same = [np.asarray(pc.equal(as_text(part), as_text(values)[first])) for part in ids()]
        raise _repeated(path, values[first].as_py(), np.flatnonzero(np.concatenate(same)), hint)


def _repeated(path: str, which: Any, rows: np.ndarray, hint: str) -> InputError:
    told = ", ".join(map(str, rows[:_SHOWN])) + ", ..." * (len(rows) > _SHOWN)
    told = told if len(rows) > 2 else told.replace(", ", " and ")
    return InputError(f"the id {which!r} occurs {len(rows)} times in {path} (rows {told}).", hint=hint)


def join_ids(paths: Sequence[str], parts: Sequence[pa.ChunkedArray]) -> tuple[pa.Array, list[np.ndarray]]:
    """The ids of several files in order of appearance, and where the rows of each go."""
    if len({part.type for part in parts}) > 1:
        parts = [pa.chunked_array([as_text(chunk) for chunk in part.chunks], pa.string()) for part in parts]
    together = pa.chunked_array([chunk for part in parts for chunk in part.chunks]).combine_chunks()
    coded = together if pa.types.is_dictionary(together.type) else together.dictionary_encode()
    places = np.asarray(coded.indices)
    split = np.split(places, np.cumsum([len(part) for part in parts])[:-1])
    for path, place in zip(paths, split, strict=True):
        counts = np.bincount(place)
        if len(place) and counts.max() > 1:
            first = int(np.argmax(counts > 1))
            raise _repeated(path, coded.dictionary[first].as_py(), np.flatnonzero(place == first), ONE_ROW)
    return coded.dictionary, split


def id_array(ids: pa.ChunkedArray) -> np.ndarray:
    """Ids as NumPy holds them: integers, or text without a Python object for every row."""
    if pa.types.is_integer(ids.type):
        return ids.to_numpy()
    out = np.empty(len(ids), dtype=np.dtypes.StringDType())
    start = 0
    for chunk in _small(ids.chunks):
        out[start : start + len(chunk)] = as_text(chunk).to_numpy(zero_copy_only=False)
        start += len(chunk)
    return out


def _small(chunks: Iterable[pa.Array]) -> Iterator[pa.Array]:
    for chunk in chunks:
        for start in range(0, len(chunk), _ROWS):
            yield chunk[start : start + _ROWS]


def taken(ids: pa.ChunkedArray, rows: slice) -> pa.Array:
    """The ids of some rows as one array."""
    part = ids.slice(rows.start, rows.stop - rows.start)
    return pc.cast(part, part.type).combine_chunks() if part.num_chunks != 1 else part.chunk(0)
