"""Ids of instances as Arrow holds them: what is an id, when are two one, and which nearly are.

An id is text or a whole number, and two ids are one if their texts are equal. Whole floats are whole numbers;
other floats and dates are the text that stands for them exactly. No id has a Python object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from consilience._support.errors import Hint, InputError, Phrase, UsageError
from consilience._support.values import counted
from consilience._support.warnings import warn
from consilience.core.compiled import compiled

_FEW = 1_000_000  # ids that Arrow counts, without the compiler that larger numbers of them are worth
_ROWS = 1_000_000  # that are turned into NumPy's text at a time
_SHOWN = 3  # rows in a sentence
ONE_ROW = "a row per instance; give another id column, or remove the repetitions."
_EXACT = 2**53  # from here on, floats skip integers
# What two spellings of one id may differ in, in the order in which it is tried.
MATCHES = ("trim", "case", "zeros", "unicode")
_DIFFERENCES = {
    "trim": "spaces",
    "case": "upper and lower case",
    "zeros": "leading zeros or a trailing .0",
    "unicode": "the Unicode form of letters",
}
# A place of rows in words, or the path of a file in which they are counted from 0.
Where = str | Callable[[Sequence[int]], str]


# --- one form -----------------------------------------------------------------------------------------------


def canonical(ids: pa.Array, of: str = "the table") -> pa.Array:
    """Ids as whole numbers of 64 bits or as text, equal in one form if they are in the other.

    >>> canonical(pa.array([1.0, 12345678913.0])).to_pylist(), canonical(pa.array([0.5, 2.0])).to_pylist()
    ([1, 12345678913], ['0.5', '2'])
    """
    if pa.types.is_dictionary(ids.type):
        form = canonical(ids.dictionary, of)
        return form.take(ids.indices)
    kind = ids.type
    if pa.types.is_string(kind) or kind == pa.int64():
        return ids
    if pa.types.is_null(kind):
        return ids.cast(pa.string())
    if pa.types.is_uint64(kind):
        high = pc.max(ids).as_py()
        return ids.cast(pa.string() if high is not None and high > np.iinfo(np.int64).max else pa.int64())
    if pa.types.is_integer(kind):
        return ids.cast(pa.int64())
    if pa.types.is_floating(kind):
        return _from_floats(ids, of)
    if pa.types.is_decimal(kind):
        texts = ids.cast(pa.string())
        return texts if kind.scale <= 0 else _short(texts)
    if pa.types.is_timestamp(kind):
        return _short(pc.replace_substring_regex(ids.cast(pa.string()), r" 00:00:00(\.0*)?$", ""), time=True)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _from_bytes(ids, of)
    return ids.cast(pa.string())


def _from_floats(ids: pa.Array, of: str) -> pa.Array:
    exact = ids.cast(pa.float64())
    exact = pc.if_else(pc.is_nan(exact), None, exact)
    if pc.any(pc.greater_equal(pc.abs(exact), float(_EXACT))).as_py():
        large = exact.filter(pc.greater_equal(pc.abs(exact), float(_EXACT)))[0].as_py()
        raise InputError(
            f"{of} has the id {large:.0f} as a float, which is too large to be exact.",
            hint="write ids as integers or text.",
        )
    whole = pc.equal(exact, pc.floor(exact))
    if pc.all(whole).as_py() is not False:
        return exact.cast(pa.int64())
    # Of a float of 32 bits the shortest text is that of its own kind, not of the double it becomes.
    numbers = pc.if_else(whole, exact, None).cast(pa.int64()).cast(pa.string())
    shortest = [None if each is None else str(each) for each in _numpy_floats(ids)]
    return pc.if_else(whole, numbers, pa.array(shortest, pa.string()))


def _numpy_floats(ids: pa.Array) -> Iterator[Any]:
    values = ids.to_numpy(zero_copy_only=False)
    return (None if value != value else value for value in values)


def _from_bytes(ids: pa.Array, of: str) -> pa.Array:
    try:
        return ids.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise InputError(f"{of} has ids that are bytes but not text.", hint="write ids as text.") from error


def _short(texts: pa.Array, *, time: bool = False) -> pa.Array:
    """Decimals without zeros at their end."""
    if time:
        return pc.replace_substring_regex(texts, r"(:[0-9]{2})(\.[0-9]*[1-9])?\.?0*$", r"\1\2")
    return pc.replace_substring_regex(texts, r"(\.[0-9]*[1-9])?\.?0*$", r"\1")


def id_kind(kind: pa.DataType) -> str:
    """What ids of a type can be compared with: text with all, others with their like and with text."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return "booleans"
    if pa.types.is_temporal(kind):
        return "dates or times"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    return "text"


def require_one_kind(kinds: Sequence[tuple[str, str]]) -> None:
    """Refuse ids that cannot be compared; `kinds` has the name of every table and the kind of its ids."""
    typed = [(of, kind) for of, kind in kinds if kind != "text"]
    for of, kind in typed[1:]:
        if kind != typed[0][1]:
            raise InputError(
                f"the ids of {typed[0][0]} are {typed[0][1]}, those of {of} are {kind}.",
                hint="name columns that hold the same ids.",
            )


# --- ids that are nearly one --------------------------------------------------------------------------------


def check_matches(match_ids: Sequence[str] | str | None) -> tuple[str, ...]:
    """What to ignore in ids, in its order; an error for what is not known."""
    given = (match_ids.split(",") if isinstance(match_ids, str) else list(match_ids)) if match_ids else []
    for each in given:
        if each not in MATCHES:
            raise UsageError(
                Phrase("{match_ids} does not know {each!r}.", each=each),
                hint=f"give one or more of {', '.join(MATCHES)}.",
            )
    return tuple(each for each in MATCHES if each in given)


def folded(ids: pa.Array, ignored: Sequence[str]) -> pa.Array:
    """Ids in the form that is common to all spellings that differ in what is ignored only.

    >>> folded(pa.array([" Ann", "007", "7.0"]), ("trim", "case", "zeros")).to_pylist()
    ['ann', '7', '7']
    """
    if not ignored or pa.types.is_integer(ids.type):
        return ids
    texts = as_text(ids)
    if "unicode" in ignored:
        texts = pc.utf8_normalize(texts, "NFC")
    if "trim" in ignored:
        texts = pc.utf8_trim_whitespace(texts)
    if "case" in ignored:
        texts = pc.utf8_lower(texts)
    if "zeros" in ignored:
        texts = pc.replace_substring_regex(texts, r"^(-?)0*([0-9]+)(\.0*)?$", r"\1\2")
    return texts


class NearMatch(NamedTuple):
    """Ids of two tables that would be one if something was ignored."""

    n: int
    ignored: tuple[str, ...]
    example: tuple[str, str]

    def sentence(self, what: str) -> str:
        """All of it in a line."""
        differ = _in_words([_DIFFERENCES[each] for each in self.ignored])
        a, b = self.example
        return f"{counted(self.n, what)} would match if {differ} were ignored, such as {a!r} and {b!r}"


def _in_words(parts: Sequence[str]) -> str:
    return ", ".join(parts[:-1]) + " and " * (len(parts) > 1) + parts[-1]


def near_matches(a: pa.Array | pa.ChunkedArray, b: pa.Array | pa.ChunkedArray) -> NearMatch | None:
    """How many ids of two tables would match if something was ignored; None where none would.

    Only ids without a partner are looked at. Never are they merged because of it.

    >>> near_matches(pa.array(["ann ", "bob"]), pa.array(["ann", "bob"]))
    NearMatch(n=1, ignored=('trim',), example=('ann ', 'ann'))
    """
    a, b = _plain_text(a), _plain_text(b)
    a, b = _not_in(a, b), _not_in(b, a)
    return _near(a, b)


def _combinations() -> Iterator[tuple[str, ...]]:
    """What may be ignored: each alone, so that the one that matters is said, then all together."""
    yield from ((each,) for each in MATCHES)
    yield MATCHES


def _near(a: pa.Array, b: pa.Array) -> NearMatch | None:
    best: NearMatch | None = None
    if not (len(a) and len(b)):
        return None
    for ignored in _combinations():
        left, right = folded(a, ignored), folded(b, ignored)
        place = pc.index_in(left, value_set=right)
        n = len(left) - place.null_count
        if n > (best.n if best else 0):
            at = int(np.argmax(np.asarray(place.is_valid())))
            best = NearMatch(n, ignored, (a[at].as_py(), b[place[at].as_py()].as_py()))
    if best is not None and best.ignored == MATCHES:  # only those that are needed
        for each in MATCHES:
            fewer = tuple(other for other in best.ignored if other != each)
            found = pc.is_in(folded(a, fewer), value_set=folded(b, fewer))
            if pc.sum(found).as_py() == best.n:
                best = best._replace(ignored=fewer)
    return best


def _plain_text(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    chunks = ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]
    return pa.chunked_array([as_text(chunk) for chunk in chunks], pa.string()).combine_chunks()


def _not_in(a: pa.Array, b: pa.Array) -> pa.Array:
    return a.filter(pc.invert(pc.is_in(a, value_set=b))) if len(b) else a


# --- checks -------------------------------------------------------------------------------------------------


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


def require_all(where: Where, ids: pa.Array, first_row: int) -> None:
    """Refuse a row without an id."""
    if ids.null_count:
        row = first_row + int(np.argmax(np.asarray(ids.is_null())))
        place = f"row {row} of {where}" if isinstance(where, str) else where([row])
        raise InputError(f"{place} has no id.", hint="give every row an id of its own.")


def require_distinct(where: Where, ids: Sequence[pa.Array], *, hint: str = ONE_ROW) -> None:
    """Refuse an id that occurs twice."""
    if sum(map(len, ids)) > _FEW:
        require_distinct_keys(where, [keys_of(part) for part in ids], lambda: ids, hint=hint)
    elif ids:
        _refuse_repeated(where, ids, lambda: ids, hint)


def require_distinct_keys(
    where: Where, keys: Sequence[np.ndarray], ids: Callable[[], Iterable[pa.Array]], *, hint: str = ONE_ROW
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

        _refuse_repeated(where, [suspects(part) for part in ids()], ids, hint)


def _refuse_repeated(
    where: Where, some: Sequence[pa.Array], ids: Callable[[], Iterable[pa.Array]], hint: str
) -> None:
    found = pa.chunked_array(some).value_counts()
    repeats = np.asarray(found.field("counts")) > 1
    if repeats.any():
        values, first = found.field("values"), int(np.argmax(repeats))
        same = [np.asarray(pc.equal(as_text(part), as_text(values)[first])) for part in ids()]
        raise _repeated(where, values[first].as_py(), np.flatnonzero(np.concatenate(same)), hint)


def _repeated(where: Where, which: Any, rows: np.ndarray, hint: str) -> InputError:
    if not isinstance(where, str):
        places = where([int(row) for row in rows[: _SHOWN + 1]])
        return InputError(f"the id {which!r} occurs {len(rows)} times: {places}.", hint=hint)
    told = ", ".join(map(str, rows[:_SHOWN])) + ", ..." * (len(rows) > _SHOWN)
    told = told if len(rows) > 2 else told.replace(", ", " and ")
    return InputError(f"the id {which!r} occurs {len(rows)} times in {where} (rows {told}).", hint=hint)


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
    _warn_of_near(paths, coded.dictionary, split)
    return coded.dictionary, split


def _warn_of_near(paths: Sequence[str], ids: pa.Array, places: Sequence[np.ndarray]) -> None:
    """Say which ids of a table without a partner would have one if something was ignored."""
    before = np.zeros(len(ids), dtype=bool)
    for path, place in zip(paths, places, strict=True):
        here = np.zeros(len(ids), dtype=bool)
        here[place] = True
        alone, others = here & ~before, before & ~here
        if alone.any() and others.any():
            found = _near(*(as_text(ids.filter(pa.array(mask))) for mask in (alone, others)))
            if found is not None:
                warn(
                    f"{found.sentence('id')} ({path}).",
                    hint=Hint(
                        "if they are the same instances, give {match_ids=}.",
                        match_ids=",".join(found.ignored),
                    ),
                )
        before |= here


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
