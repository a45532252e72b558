"""Any kind of label table, read column by column: from the user's own labels to codes.

What `consilience.evidence.partitions` needs to take arrays, nested lists, frames, series and
mappings alike, and to say what is wrong with them.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import (
    counted,
    did_you_mean,
    id_array,
    is_annotated,
    is_missing,
    object_array,
)
from consilience._support.warnings import warn

Negative = Literal["missing", "noise"]
MISSING = -1
_EXACT = 2.0**53  # from here on, floats skip integers
# A column of so many labels of which this share occurs once holds ids, or is as useless as if it did.
_IDS_ROWS, _IDS_SHARE = 20, 0.95
# What people write where they know nothing. Whether it is a label, only they can say.
_MARKS = frozenset(
    {"-", "--", "\N{EN DASH}", "\N{EM DASH}", "?", "??", ".", "..", "n/a", "n.a.", "#n/a", "<na>"}
)
_MARKS |= {"na", "nan", "nil", "null", "none", "missing", "unknown", "unassigned"}
_SHOWN = 5  # marks in a sentence


class Coded(NamedTuple):
    """A column as numbers and the labels they stand for; -1 is missing."""

    codes: np.ndarray
    labels: np.ndarray


class LabelTable(NamedTuple):
    """What every kind of input is turned into first: columns of one length, still in the user's labels."""

    columns: list[Any]  # 1-D arrays, narwhals series or `Coded`
    names: list[str]
    ids: np.ndarray | None
    backend: Any
    named: bool
    id_name: Any = None

    @property
    def n_rows(self) -> int:
        first = self.columns[0]
        return len(first.codes if isinstance(first, Coded) else first)


def read_table(labels: Any, index: str | Sequence[Any] | None) -> LabelTable:
    if is_annotated(labels):
        raise InputTypeError(
            f"labels cannot be an {type(labels).__name__} object.",
            hint="consilience.scverse.tl.consensus(adata, keys=[...]), or pass adata.obs[[...]].",
        )
    if sp.issparse(labels):
        raise InputTypeError(
            "labels cannot be a sparse matrix.", hint="labels.toarray(), with -1 for missing."
        )
    if nw.dependencies.is_polars_lazyframe(labels):
        raise InputTypeError("labels cannot be a lazy frame.", hint="labels.collect().")
    if isinstance(index, str) and not nw.dependencies.is_into_dataframe(labels):
        raise InputError(
            f"index={index!r} names a column, but the labels are not a frame.",
            hint="pass the ids themselves.",
        )
    if isinstance(labels, Mapping):
        table = _read_columns(list(labels.values()), [str(name) for name in labels])
    elif nw.dependencies.is_into_dataframe(labels):
        table = _read_frame(labels, index if isinstance(index, str) else None)
    elif _is_list_of_series(labels):
        names = [getattr(column, "name", None) for column in labels]
        table = _read_columns(
            list(labels), [str(j) if name in (None, "") else str(name) for j, name in enumerate(names)]
        )
    else:
        table = _read_array(labels)
    if index is not None and not isinstance(index, str):
        ids = np.asarray(index) if hasattr(index, "__array__") else id_array(list(index))
        if ids.ndim != 1:
            raise InputError(f"'index' has {ids.ndim} dimensions.", hint="one id per row.")
        if len(ids) != len(table.columns[0]):
            raise InputError(
                f"'index' has {len(ids)} ids for {len(table.columns[0])} rows.", hint="one id per row."
            )
        table = table._replace(ids=ids)
    require_distinct(table.names)
    if table.ids is not None:
        require_ids(table.ids, "the table")
    return table


def _is_list_of_series(labels: Any) -> bool:
    return (
        isinstance(labels, (list, tuple))
        and len(labels) > 0
        and all(nw.dependencies.is_into_series(column) or isinstance(column, Mapping) for column in labels)
    )


def _read_frame(labels: Any, id_column: str | None) -> LabelTable:
    frame = frame_of(labels, "two base clusterings have one name")
    # Not by name: pandas also has columns named by numbers and tuples.
    columns = dict(zip(frame.columns, frame.iter_columns(), strict=True))
    index = None
    if id_column is not None:
        if id_column not in columns:
            known = [str(name) for name in columns]
            raise InputError(f"the frame has no column {id_column!r}.", did_you_mean(id_column, known))
        index = columns.pop(id_column).to_numpy()
    elif nw.dependencies.is_pandas_dataframe(labels):
        index = _pandas_ids(labels)
    if frame.shape[0] == 0 or not columns:
        raise _empty_table((frame.shape[0], len(columns)))
    names = [str(name) for name in columns]
    id_name = getattr(labels.index, "name", None) if id_column is None and index is not None else id_column
    return LabelTable(list(columns.values()), names, index, frame.implementation.value, True, id_name)


def frame_of(given: Any, twice: str) -> nw.DataFrame[Any]:
    """A frame of any library; `twice` says what it means where two columns have one name."""
    try:
        return nw.from_native(given, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        names = " ".join(str(error).split())
        raise InputError(f"{twice} ({names}).", hint="give every column its own name.") from error


def _pandas_ids(frame: Any) -> np.ndarray | None:
    counted = type(frame.index).__name__ == "RangeIndex" and frame.index.start == 0 and frame.index.step == 1
    return None if counted else np.asarray(frame.index)


def _read_columns(columns: list[Any], names: list[str]) -> LabelTable:
    """Separate columns: joined by id where they carry ids, else by position."""
    if not columns:
        raise _empty_table((0, 0))
    by_id = [_ids_and_values(column, name) for column, name in zip(columns, names, strict=True)]
    backend = next((_backend_of(column) for column in columns if _backend_of(column)), None)
    if all(ids is not None for ids, _ in by_id):
        joined, index = _outer_join(by_id, names)
        return LabelTable(joined, names, index, backend, named=True)
    if any(ids is not None for ids, _ in by_id):
        bare = next(name for name, (ids, _) in zip(names, by_id, strict=True) if ids is None)
        raise InputError(
            f"base clustering {bare!r} has no ids while others have.",
            hint="give all of them as series with an index (or as mappings), or none.",
        )
    lengths = [len(values) for _, values in by_id]
    if len(set(lengths)) > 1:
        j = next(j for j, length in enumerate(lengths) if length != lengths[0])
        raise InputError(
            f"base clustering {names[j]!r} has {lengths[j]} labels, {names[0]!r} has {lengths[0]}.",
            hint="use series with an index (or {id: label} mappings) to join by id, or mark missing entries.",
        )
    if lengths[0] == 0:
        raise _empty_table((0, len(columns)))
    return LabelTable([values for _, values in by_id], names, None, backend, named=True)


def _backend_of(column: Any) -> str | None:
    if not nw.dependencies.is_into_series(column):
        return None
    return str(nw.from_native(column, series_only=True).implementation.value)


def _ids_and_values(column: Any, name: str) -> tuple[np.ndarray | None, Any]:
    if isinstance(column, Mapping):
        return id_array(list(column)), object_array(list(column.values()))
    if nw.dependencies.is_pandas_series(column):
        return np.asarray(column.index), nw.from_native(column, series_only=True)
    if nw.dependencies.is_into_series(column):
        return None, nw.from_native(column, series_only=True)
    if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
        raise InputTypeError(
            f"base clustering {name!r} is {column!r}, not a column of labels.",
            hint="a dict has one array, series or {id: label} mapping per base clustering.",
        )
    if isinstance(column, np.ma.MaskedArray):
        column = _unmasked(column)
    values = column if isinstance(column, np.ndarray) else object_array(list(column))
    if values.ndim != 1:
        raise InputError(f"base clustering {name!r} is not one-dimensional.", hint="one array per key.")
    return None, values


def _outer_join(parts: list[tuple[Any, Any]], names: list[str]) -> tuple[list[Any], np.ndarray]:
    first = parts[0][0]
    if all(len(ids) == len(first) and np.array_equal(ids, first) for ids, _ in parts):
        if len(first) == 0:
            raise _empty_table((0, len(parts)))
        return [values for _, values in parts], first
    position: dict[Any, int] = {}
    for name, (ids, _) in zip(names, parts, strict=True):
        require_ids(ids, f"base clustering {name!r}")
        for key in ids.tolist():
            position.setdefault(key, len(position))
    columns = []
    for ids, values in parts:
        column = np.full(len(position), None, dtype=object)
        where = np.fromiter((position[key] for key in ids.tolist()), dtype=np.intp, count=len(ids))
        column[where] = object_array(values.to_list()) if isinstance(values, nw.Series) else values
        columns.append(column)
    return columns, id_array(list(position))


def _read_array(labels: Any) -> LabelTable:
    if isinstance(labels, (str, bytes)) or not (isinstance(labels, Iterable) or hasattr(labels, "__array__")):
        raise InputTypeError(
            f"labels must be a table, got {labels!r}.",
            hint="an array, nested list, frame or dict of columns; read a file first.",
        )
    if isinstance(labels, np.ma.MaskedArray):
        labels = _unmasked(labels)
    if not hasattr(labels, "__array__"):
        labels = list(labels)
        _require_rectangular(labels)
    array = np.asarray(labels) if hasattr(labels, "__array__") else _nested_array(labels)
    if array.shape == (0,):
        raise _empty_table((0, 0))
    if array.ndim != 2:
        shape = "x".join(map(str, array.shape)) or "a scalar"
        reshape = (
            "Reshape your data: one base clustering is labels.reshape(-1, 1)"
            if array.ndim == 1
            else "one row per instance, one column per base clustering"
        )
        raise InputError(f"Expected 2D array of labels, got {array.ndim}D ({shape}).", hint=f"{reshape}.")
    if 0 in array.shape:
        raise _empty_table(array.shape)
    if np.iscomplexobj(array):
        raise InputError("Complex data not supported.", hint="labels are integers, strings or categories.")
    names = [str(j) for j in range(array.shape[1])]
    return LabelTable([_column(array[:, j]) for j in range(len(names))], names, None, None, named=False)


def _column(values: np.ndarray) -> np.ndarray:
    """NumPy writes NaN beside text as the text "nan", which is still missing."""
    if values.dtype.kind != "U":
        return values
    labels = values.astype(object)
    labels[values == "nan"] = None
    return labels


def _unmasked(array: np.ma.MaskedArray[Any, Any]) -> np.ndarray:
    # Not filled(None): NumPy takes that for "the default filler", which is the label '?'.
    values = np.ma.getdata(array).astype(object)
    values[np.ma.getmaskarray(array)] = None
    return values


def _nested_array(labels: Any) -> np.ndarray:
    rows = [list(row) if isinstance(row, Iterable) and not isinstance(row, str) else row for row in labels]
    if any(np.ndim(cell) for row in rows if isinstance(row, list) for cell in row[:1]):
        raise InputError(
            "Expected 2D array of labels, got a list of tables.",
            hint=(
                "labels are one table, a column per base clustering; for several tables of features use "
                "fuse_views."
            ),
        )
    try:
        array = np.array(rows)
    except ValueError:  # a cell holds several values; whether they can be a label is seen later
        array = np.empty((len(rows), len(rows[0])), dtype=object)
        for p, row in enumerate(rows):
            array[p] = object_array(row)
    # Numbers beside strings would all become strings, and large integers beside NaN would lose digits.
    if array.dtype.kind in "US" or (array.dtype.kind == "f" and bool((np.abs(array) >= _EXACT).any())):
        array = np.array(rows, dtype=object)
    return array


def _require_rectangular(rows: Sequence[Any]) -> None:
    lengths = [len(row) if hasattr(row, "__len__") and not isinstance(row, str) else -1 for row in rows]
    ragged = next((p for p, length in enumerate(lengths) if length != lengths[0]), None)
    if ragged is not None:
        raise InputError(
            f"row {ragged} has {max(lengths[ragged], 1)} labels, row 0 has {max(lengths[0], 1)}.",
            hint="every row needs an entry for every base clustering; use None where it is missing.",
        )


def _empty_table(shape: tuple[int, ...]) -> ValueError:
    n_rows, n_columns = shape
    what = "0 sample(s)" if n_rows == 0 else "0 feature(s)"
    return ValueError(
        f"Found array with {what} (shape=({n_rows}, {n_columns})) while a minimum of 1 is required. Hint: "
        "labels need at least one row (instance) and one column (base clustering)."
    )


# --- from labels to codes -----------------------------------------------------------------------------------


def encode_column(
    values: Any, negative: Negative, name: str, index: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Codes 0..k-1 (-1 = missing) of one column, and the sorted labels they stand for."""
    missing = None
    if isinstance(values, nw.Series):
        values, missing = _from_series(values)
    if values.dtype.kind == "f":
        values, missing = _integers_from_floats(values, name, index)
    if values.dtype.kind == "u" and int(values.max()) > np.iinfo(np.int64).max:
        values = values.astype(object)
        values[slice(0) if missing is None else missing] = None
    if values.dtype.kind in "biu":
        return _encode_integers(values, missing, negative)
    return _encode_objects(values, negative, name, index)


def encode_coded(
    codes: np.ndarray, labels: np.ndarray, negative: Negative, name: str, index: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """`encode_column` of a column that is coded already: ``labels[codes]``, missing where a code is -1."""
    if not len(labels):
        return np.full(len(codes), MISSING), labels
    used = np.bincount(codes[codes >= 0], minlength=len(labels)) > 0
    kept = object_array([label if here else None for label, here in zip(labels, used, strict=True)])
    if negative == "noise" and any(is_negative(plain(label)) for label in kept):
        return encode_column(_spelled_out(codes, kept), negative, name, index)  # every entry is a cluster
    try:
        code_of, categories = encode_column(kept, negative, name, None)
    except (TypeError, ValueError):
        encode_column(_spelled_out(codes, kept), negative, name, index)  # the same error, naming the row
        raise
    return np.append(code_of, MISSING)[codes], categories


def _spelled_out(codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.append(labels, object_array([None]))[codes]


def _from_series(series: nw.Series[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """Values of a column, and where an integer or boolean column has nulls."""
    in_numpy = series.dtype.is_integer() and series.dtype not in (nw.Int128, nw.UInt128)
    if not (in_numpy or series.dtype == nw.Boolean):
        is_float = series.dtype.is_float()
        return (series.to_numpy() if is_float else object_array(series.to_list())), None
    if not series.null_count():
        return series.to_numpy(), None
    # Filled first: by way of floats, integers above 2**53 would change.
    filler = False if series.dtype == nw.Boolean else 0
    return series.fill_null(filler).to_numpy(), series.is_null().to_numpy()


def _integers_from_floats(
    values: np.ndarray, name: str, index: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    missing = np.isnan(values)
    whole = np.where(missing, 0.0, values)
    strange = np.flatnonzero(~np.isfinite(whole))
    if len(strange):
        raise InputError(
            f"base clustering {name!r} has the label inf in {rows_text(strange, index)}.",
            hint="mark missing entries as NaN.",
        )
    strange = np.flatnonzero(whole != np.floor(whole))
    if len(strange):
        raise InputError(
            f"base clustering {name!r} has the value {float(whole[strange[0]])!r} in "
            f"{rows_text(strange, index)}, which is no cluster label.",
            hint=(
                "this looks like a feature, not a label; cluster the features first "
                "(consilience.generate.base_partitions)."
            ),
            command="this looks like a feature, not a label; use consilience cluster.",
        )
    strange = np.flatnonzero(np.abs(whole) >= 2.0 ** (np.finfo(values.dtype).nmant + 1))
    if len(strange):
        raise InputError(
            f"base clustering {name!r} has the label {float(whole[strange[0]]):.0f} in "
            f"{rows_text(strange, index)}, which a float cannot tell from the next integer.",
            hint="pass integers or strings.",
        )
    return whole.astype(np.int64), missing if missing.any() else None


def _encode_integers(
    values: np.ndarray, missing: np.ndarray | None, negative: Negative
) -> tuple[np.ndarray, np.ndarray]:
    boolean = values.dtype.kind == "b"
    # In one piece: a column of a table that is stored by rows is scattered over memory.
    values = values.astype(np.int8) if boolean else np.ascontiguousarray(values)
    low, high = values.min(), values.max()
    if int(high) - int(low) <= 4 * len(values) + 1000:
        # A table of all labels in the range is several times faster than sorting them.
        labels = np.arange(int(low), int(high) + 1)
        place = values.astype(np.int64) - int(low)
    else:
        labels, place = np.unique(values, return_inverse=True)
        labels = labels.astype(np.int64)
    if missing is not None:
        place = np.where(missing, len(labels), place)
    occurs = np.bincount(place, minlength=len(labels) + 1)[: len(labels)] > 0
    kept = occurs & (labels >= 0)
    categories = labels[kept]
    code_of = np.full(len(labels) + 1, MISSING)
    code_of[:-1][kept] = np.arange(len(categories))
    codes = code_of[place]
    if negative == "noise" and low < 0:
        below = values < 0
        noise = np.flatnonzero(below if missing is None else below & ~missing)
        codes[noise] = len(categories) + np.arange(len(noise))
        categories = np.concatenate([categories, np.full(len(noise), MISSING)])
    return codes, categories.astype(bool) if boolean else categories


def _encode_objects(
    values: np.ndarray, negative: Negative, name: str, index: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    entries = list(values) if values.dtype.kind in "mM" else values.tolist()
    try:
        first_seen = {entry: code for code, entry in enumerate(dict.fromkeys(entries))}
    except TypeError as error:
        raise InputTypeError(
            f"base clustering {name!r} holds something that cannot be a label ({error}).",
            hint="labels are integers, strings or categories.",
        ) from error
    raw = np.fromiter(map(first_seen.__getitem__, entries), dtype=np.int64, count=len(entries))
    labels = [plain(entry) for entry in first_seen]
    fraction = next((code for code, label in enumerate(labels) if isinstance(label, float)), None)
    if fraction is not None:
        _integers_from_floats(np.where(raw == fraction, labels[fraction], 0.0), name, index)
    if all(label is None or is_int64(label) for label in labels):
        missing = np.array([label is None for label in labels])[raw]
        pairs = zip(first_seen, labels, strict=True)
        boolean = all(isinstance(entry, (bool, np.bool_)) or label is None for entry, label in pairs)
        integers = np.array([label or 0 for label in labels], dtype=bool if boolean else np.int64)[raw]
        return _encode_integers(integers, missing if missing.any() else None, negative)

    below = [is_negative(label) for label in labels]
    kept = {label for label, low in zip(labels, below, strict=True) if label is not None and not low}
    # Sorted, so that codes do not depend on the order of rows; by type first, since 1 < "a" is an error.
    try:
        ordered = sorted(kept, key=lambda label: (type(label).__name__, label))
    except TypeError as error:
        raise InputTypeError(
            f"base clustering {name!r} holds labels that cannot be put in order ({error}).",
            hint="turn them into strings.",
        ) from error
    rank = {label: code for code, label in enumerate(ordered)}
    codes = np.array([rank.get(label, MISSING) for label in labels])[raw]
    if negative == "noise":
        noise = np.flatnonzero(np.array(below)[raw])
        codes[noise] = len(ordered) + np.arange(len(noise))
        ordered += [MISSING] * len(noise)
    return codes, object_array(ordered)


def plain(value: Any) -> Any:
    """A hashable Python value; None for every way of saying missing."""
    # The Python value of a date in nanoseconds would be a number.
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    if is_missing(value) or (isinstance(value, (str, bytes)) and not value):
        return None
    if isinstance(value, Decimal | Fraction):
        return int(value) if _is_whole(value) else float(value)
    if isinstance(value, bool) or (isinstance(value, float) and abs(value) < _EXACT and value.is_integer()):
        return int(value)
    return value


def _is_whole(value: Decimal | Fraction) -> bool:
    return math.isfinite(value) and value == int(value)


def is_int64(value: Any) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def is_negative(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and int(value) < 0


def in_every_row(members: np.ndarray) -> str:
    """Where nearly every label occurs once, that in words; `members` counts the rows of every label.

    Such a column tells no two instances together, and tables of its clusters would fill the memory.
    """
    n, once = int(members.sum()), int((members == 1).sum())
    if n < _IDS_ROWS or once < _IDS_SHARE * n:
        return ""
    return "in every row" if once == n else f"in nearly every row ({once} of {n} occur once)"


def refuse_ids(name: str, members: np.ndarray, *, hint: str) -> None:
    """Refuse a column in which nearly every label occurs once."""
    if where := in_every_row(members):
        raise InputError(f"base clustering {name!r} has a different label {where}.", hint=hint)


def is_mark(text: str) -> bool:
    """Whether text rather says that there is nothing, as "?" does."""
    return text.strip().lower() in _MARKS


def warn_of_marks(
    names: Sequence[str], categories: Sequence[np.ndarray], members: Callable[[int, int], Any]
) -> None:
    """Warn of labels such as "?", which rather say that there is none; `members(j, code)` counts their rows.

    A "-" beside a "+" is the other of two signs.
    """
    found = [
        (j, code, label)
        for j, labels in enumerate(categories)
        if labels.dtype.kind not in "biuf"
        for code, label in enumerate(labels.tolist())
        if isinstance(label, str) and is_mark(label)
        if not (label == "-" and "+" in labels.tolist())
    ]
    if not found:
        return
    told = [
        f"{label!r} in column {names[j]!r} ({counted(int(members(j, code)), 'row')})"
        for j, code, label in found[:_SHOWN]
    ]
    told += [f"{len(found) - _SHOWN} more"] * (len(found) > _SHOWN)
    marks = list(dict.fromkeys(label for _, _, label in found))[:_SHOWN]
    warn(
        f"{', '.join(told)}: it counts as a cluster of its own.",
        hint="where it says that there is no label, put None "
        f"(in pandas: labels.replace({{{marks[0]!r}: None}})).",
        command="where it says that there is no label, name all that do: "
        f"{' '.join(f'--missing {shlex.quote(mark)}' for mark in (*marks, ''))}",
    )


# --- words for errors ---------------------------------------------------------------------------------------


def rows_text(rows: np.ndarray, index: np.ndarray | None) -> str:
    """'row 3 (id 'ann') and 4 others', for an error that points at the data."""
    p = int(rows[0])
    text = f"row {p}"
    if index is not None:
        text += f" (id {plain(index[p])!r})"
    if len(rows) > 1:
        text += f" and {len(rows) - 1} other" + ("s" if len(rows) > 2 else "")
    return text


def require_distinct(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two base clusterings are named {twice!r}.", hint="give every column its own name.")


def require_ids(ids: np.ndarray, where: str) -> None:
    values = ids.tolist()
    if ids.dtype.kind not in "biuSU":
        p = next((p for p, value in enumerate(ids) if is_missing(value)), None)
        if p is not None:
            raise InputError(f"row {p} of {where} has no id.", hint="give every row an id of its own.")
    if len(set(values)) == len(values):
        return
    seen: set[Any] = set()
    for p, value in enumerate(values):
        if value in seen:
            raise InputError(
                f"the id {value!r} occurs twice in {where} (again in row {p}).",
                hint="ids must be unique; reset the index if the rows are different instances.",
            )
        seen.add(value)
