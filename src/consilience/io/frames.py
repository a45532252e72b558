"""Labels in memory, in any container, as a source: arrays, nested lists, frames, series and mappings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import did_you_mean, id_array, is_annotated, is_missing, object_array
from consilience._support.warnings import warn
from consilience.io.labels import MISSING, fold_id, look_alike, plain
from consilience.io.pieces import Coded, Piece

_EXACT = 2.0**53  # from here on, floats skip integers


@dataclass(frozen=True)
class Memory:
    """A table of labels in memory: a `Source` of one piece."""

    coded: dict[str, Coded]
    n_rows: int
    index: np.ndarray | None = None  # ids of the instances
    id_name: Any = None
    backend: Any = None  # frame library of the input, so that tables go back the way they came
    named: bool = True  # whether columns have names of their own
    name: str = "labels"
    text: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the base clusterings."""
        return tuple(self.coded)

    def pieces(self) -> Iterator[Piece]:
        """All rows at once."""
        yield Piece(self.coded, self.index, self.n_rows)

    def ids(self) -> Iterator[np.ndarray]:
        """The ids, if there are any."""
        if self.index is not None:
            yield self.index

    def where(self, row: int) -> str:
        """A row in words."""
        return f"row {row}" if self.index is None else f"row {row} (id {plain(self.index[row])!r})"


@dataclass(frozen=True)
class Partitioned:
    """A dask dataframe or array as a source: a piece is a partition, computed when it is read."""

    collection: Any
    id_name: Any = None
    name: str = "labels"
    text: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the base clusterings."""
        named = getattr(self.collection, "columns", range(self.collection.shape[1]))
        return tuple(str(name) for name in named if name != self.id_name)

    def pieces(self) -> Iterator[Piece]:
        """Partition by partition."""
        first = 0
        for part in (
            self.collection.to_delayed().ravel()
            if hasattr(self.collection, "chunks")
            else (self.collection.to_delayed())
        ):
            table = part.compute(scheduler="synchronous")
            if len(table):
                table = table.reset_index(drop=True) if hasattr(table, "reset_index") else table
                piece = next(read_memory(table, self.id_name).pieces())
                yield piece._replace(ids=None if piece.ids is None else arrow_ids(piece.ids), first=first)
            first += len(table)

    def ids(self) -> Iterator[Any]:
        """The ids alone."""
        return (piece.ids for piece in self.pieces() if piece.ids is not None)

    def where(self, row: int) -> str:
        """A row in words."""
        return f"row {row}"


def arrow_ids(ids: np.ndarray) -> Any:
    """Ids in the form of files; see `consilience.io.ids`."""
    import pyarrow as pa

    from consilience.io.ids import canonical

    return canonical(pa.array(ids.tolist()))


def read_memory(
    labels: Any, index: str | Sequence[Any] | None = None, match_ids: Sequence[str] = ()
) -> Memory:
    """A table of labels in memory.

    Parameters
    ----------
    labels : array, nested list, frame, or dict or list of series
        See :meth:`consilience.Partitions.of`.
    index : str or sequence, optional
        Ids of the instances: a column of the frame, or the ids themselves.
    match_ids : sequence of str, optional
        What to ignore in ids of columns that are joined by them; see :func:`consilience.scan`.
    """
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
        table = _read_columns(list(labels.values()), [str(name) for name in labels], match_ids)
    elif nw.dependencies.is_into_dataframe(labels):
        table = _read_frame(labels, index if isinstance(index, str) else None)
    elif _is_list_of_series(labels):
        names = [getattr(column, "name", None) for column in labels]
        table = _read_columns(
            list(labels),
            [str(j) if name in (None, "") else str(name) for j, name in enumerate(names)],
            match_ids,
        )
    else:
        table = _read_array(labels)
    if index is not None and not isinstance(index, str):
        ids = np.asarray(index) if hasattr(index, "__array__") else id_array(list(index))
        if ids.ndim != 1:
            raise InputError(f"'index' has {ids.ndim} dimensions.", hint="one id per row.")
        if len(ids) != table.n_rows:
            raise InputError(f"'index' has {len(ids)} ids for {table.n_rows} rows.", hint="one id per row.")
        table = replace(table, index=ids)
    if table.index is not None:
        require_ids(table.index, "the table")
    return table


def memory_of(
    columns: Sequence[Any], names: Sequence[str], n_rows: int, index: np.ndarray | None = None, **more: Any
) -> Memory:
    """Columns of any kind, coded already or not, as a source."""
    require_distinct(names)
    coded = {
        name: values if isinstance(values, Coded) else code_column(values, name)
        for name, values in zip(names, columns, strict=True)
    }
    return Memory(coded, n_rows, index, **more)


def _is_list_of_series(labels: Any) -> bool:
    return (
        isinstance(labels, (list, tuple))
        and len(labels) > 0
        and all(nw.dependencies.is_into_series(column) or isinstance(column, Mapping) for column in labels)
    )


def _read_frame(labels: Any, id_column: str | None) -> Memory:
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
        raise empty_table((frame.shape[0], len(columns)))
    names = [str(name) for name in columns]
    id_name = getattr(labels.index, "name", None) if id_column is None and index is not None else id_column
    backend = frame.implementation.value
    return memory_of(list(columns.values()), names, len(frame), index, backend=backend, id_name=id_name)


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


def _read_columns(columns: list[Any], names: list[str], match_ids: Sequence[str]) -> Memory:
    """Separate columns: joined by id where they carry ids, else by position."""
    if not columns:
        raise empty_table((0, 0))
    by_id = [_ids_and_values(column, name) for column, name in zip(columns, names, strict=True)]
    if match_ids:
        by_id = [
            (None if ids is None else id_array([fold_id(key, match_ids) for key in ids.tolist()]), values)
            for ids, values in by_id
        ]
    backend = next((_backend_of(column) for column in columns if _backend_of(column)), None)
    if all(ids is not None for ids, _ in by_id):
        joined, index = _outer_join(by_id, names)
        return memory_of(joined, names, len(index), index, backend=backend)
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
        raise empty_table((0, len(columns)))
    return memory_of([values for _, values in by_id], names, lengths[0], backend=backend)


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
            raise empty_table((0, len(parts)))
        return [values for _, values in parts], first
    position: dict[Any, int] = {}
    for name, (ids, _) in zip(names, parts, strict=True):
        require_ids(ids, f"base clustering {name!r}")
        for key in ids.tolist():
            position.setdefault(key, len(position))
    _warn_of_near_ids([ids.tolist() for ids, _ in parts])
    columns: list[Any] = []
    for name, (ids, values) in zip(names, parts, strict=True):
        own = code_column(values, name)
        codes = np.full(len(position), MISSING, dtype=np.int64)
        codes[[position[key] for key in ids.tolist()]] = own.codes
        columns.append(Coded(codes, own.values))
    return columns, id_array(list(position))


def _warn_of_near_ids(parts: Sequence[list[Any]]) -> None:
    """Say how many ids that occur once would be one if spaces, case or the like were ignored."""
    times = Counter(key for part in parts for key in part)
    alone = [key for key, n in times.items() if n == 1 and isinstance(key, str)]
    found = look_alike(alone)
    if found:
        n = sum(map(len, found))
        warn(
            f"{n} ids differ only in spaces, case, leading zeros or the form of letters, such as "
            f"{found[0][0]!r} and {found[0][1]!r}: they count as different instances.",
            hint="if they are the same, read them with consilience.scan(labels, match_ids='trim,case').",
        )


def _read_array(labels: Any) -> Memory:
    if isinstance(labels, (str, bytes)) or not (isinstance(labels, Iterable) or hasattr(labels, "__array__")):
        raise InputTypeError(
            f"labels must be a table, got {labels!r}.",
            hint="give an array, nested list, frame or dict of columns; files are read by "
            "consilience.scan(path, id=...).",
        )
    if isinstance(labels, np.ma.MaskedArray):
        labels = _unmasked(labels)
    if not hasattr(labels, "__array__"):
        labels = list(labels)
        _require_rectangular(labels)
    array = np.asarray(labels) if hasattr(labels, "__array__") else _nested_array(labels)
    if array.shape == (0,):
        raise empty_table((0, 0))
    if array.ndim != 2:
        shape = "x".join(map(str, array.shape)) or "a scalar"
        reshape = (
            "Reshape your data: one base clustering is labels.reshape(-1, 1)"
            if array.ndim == 1
            else "one row per instance, one column per base clustering"
        )
        raise InputError(f"Expected 2D array of labels, got {array.ndim}D ({shape}).", hint=f"{reshape}.")
    if 0 in array.shape:
        raise empty_table(array.shape)
    if np.iscomplexobj(array):
        raise InputError("Complex data not supported.", hint="labels are integers, strings or categories.")
    names = [str(j) for j in range(array.shape[1])]
    columns = [_column(array[:, j]) for j in range(len(names))]
    return memory_of(columns, names, len(array), named=False)


def _column(values: np.ndarray) -> np.ndarray:
    """NumPy writes NaN beside text or bytes as "nan", which is still missing."""
    if values.dtype.kind not in "US":
        return values
    labels = values.astype(object)
    labels[values == np.array("nan").astype(values.dtype.kind)] = None
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


def empty_table(shape: tuple[int, ...]) -> ValueError:
    """The error about a table without rows or columns, in the words that scikit-learn's checks expect."""
    n_rows, n_columns = shape
    what = "0 sample(s)" if n_rows == 0 else "0 feature(s)"
    return ValueError(
        f"Found array with {what} (shape=({n_rows}, {n_columns})) while a minimum of 1 is required. Hint: "
        "labels need at least one row (instance) and one column (base clustering)."
    )


# --- columns as codes ---------------------------------------------------------------------------------------


def code_column(values: Any, name: str) -> Coded:
    """A column as codes and the values they stand for; Python sees each value once where there is a way."""
    missing = None
    if isinstance(values, nw.Series):
        own = _own_codes(values)
        if own is not None:
            return own
        values, missing = _from_series(values)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        whole = np.where(missing, 0, values)
        exact = 2.0 ** (np.finfo(values.dtype).nmant + 1)  # from here on, floats skip integers
        if len(whole) and (whole == np.floor(whole)).all() and float(np.abs(whole).max()) < exact:
            return _code_integers(whole.astype(np.int64), missing)
        found_values, codes = np.unique(whole, return_inverse=True)
        return Coded(np.where(missing, MISSING, codes), found_values)
    if values.dtype.kind in "biu":
        return _code_integers(values, missing)
    return _code_objects(values, name)


def _own_codes(series: nw.Series[Any]) -> Coded | None:
    """Text and categories by the codes of their own library, so that Python sees each of them once."""
    if series.dtype not in (nw.String, nw.Categorical, nw.Enum):
        return None
    native = series.to_native()
    if nw.dependencies.is_pandas_series(native):
        codes, labels = native.factorize()
        return Coded(np.asarray(codes), object_array(list(labels)))
    if nw.dependencies.is_polars_series(native):
        labels = native.unique(maintain_order=True).drop_nulls()
        places = (
            native.replace_strict(labels, np.arange(len(labels)), default=MISSING) if len(labels) else None
        )
        if places is None:
            return Coded(np.full(len(native), MISSING), object_array([]))
        return Coded(places.fill_null(MISSING).to_numpy(), object_array(labels.to_list()))
    if hasattr(native, "combine_chunks"):
        whole = native.combine_chunks()
        whole = whole if hasattr(whole, "indices") else whole.dictionary_encode()
        codes = whole.indices.fill_null(MISSING).to_numpy(zero_copy_only=False)
        return Coded(codes, object_array(whole.dictionary.to_pylist()))
    return None


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


def _code_integers(values: np.ndarray, missing: np.ndarray | None) -> Coded:
    if not len(values):
        return Coded(np.empty(0, dtype=np.int64), values)
    boolean = values.dtype.kind == "b"
    # In one piece: a column of a table that is stored by rows is scattered over memory.
    values = values.astype(np.int8) if boolean else np.ascontiguousarray(values)
    low, high = int(values.min()), int(values.max())
    if high - low <= 4 * len(values) + 1000 and high < 2**63:
        # A table of all labels in the range is several times faster than sorting them.
        labels, codes = np.arange(low, high + 1), values.astype(np.int64) - low
    else:
        labels, codes = np.unique(values, return_inverse=True)
    codes = codes if missing is None else np.where(missing, MISSING, codes)
    return Coded(codes, labels.astype(bool) if boolean else labels)


def _code_objects(values: np.ndarray, name: str) -> Coded:
    entries = list(values) if values.dtype.kind in "mM" else values.tolist()
    try:
        place = {entry: code for code, entry in enumerate(dict.fromkeys(entries))}
    except TypeError as error:
        raise InputTypeError(
            f"base clustering {name!r} holds something that cannot be a label ({error}).",
            hint="labels are integers, strings or categories.",
        ) from error
    codes = np.fromiter(map(place.__getitem__, entries), dtype=np.int64, count=len(entries))
    known = list(place)
    kinds = set(map(type, entries))
    if bool in kinds and kinds - {bool, np.bool_, str, type(None)}:  # True is there for 1 too, or 1 for True
        known = [int(value) if isinstance(value, bool) else value for value in known]
    return Coded(codes, object_array(known))


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
