"""The labels door: a table of base clusterings comes in, clean integer codes come out.

A row is an instance, a column is a base clustering, and a blank says that this clustering never saw this
instance. Everything behind the door works on `Partitions`; every data error is raised here.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from consilience._values import id_array, is_missing, object_array
from consilience.core.coassociation import coassociation
from consilience.core.grouping import group
from consilience.core.tables import indicator

Negative = Literal["missing", "noise"]
MISSING = -1
_UNKNOWN = -2  # only inside `encode`
_EXACT = 2.0**53  # from here on, floats skip integers


class Distinct(NamedTuple):
    """The distinct label rows: ``codes[inverse]`` is the whole table, ``counts`` how often each occurs."""

    codes: np.ndarray
    counts: np.ndarray
    inverse: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Partitions:
    """Base clusterings of the same instances, each of which may have seen only some of them.

    Make one with :meth:`of`; it never changes afterwards.

    Attributes
    ----------
    codes : ndarray of shape (n_instances, n_partitions), smallest signed integer type that fits
        ``0..k_i - 1`` in column ``i``; -1 where clustering ``i`` never saw the instance.
    categories : tuple of ndarray
        ``categories[i][code]`` is the user's own name of a cluster of clustering ``i``.
    names : tuple of str
        Names of the base clusterings.
    index : ndarray or None
        Ids of the instances, where the input had any.
    columns : tuple of int
        Positions of these clusterings in the table that was given; all-missing columns are left out.
    n_columns : int
        Number of columns of the table that was given.
    backend : str or None
        Frame library of the input, so that tables go back the way they came.
    """

    codes: np.ndarray
    categories: tuple[np.ndarray, ...]
    names: tuple[str, ...]
    index: np.ndarray | None
    columns: tuple[int, ...]
    n_columns: int
    negative: Negative
    backend: Any
    column_names: tuple[str, ...]

    @classmethod
    def of(
        cls,
        labels: Any,
        *,
        negative: Negative = "missing",
        index: str | Sequence[Any] | None = None,
        unobserved: Literal["error", "keep"] = "error",
    ) -> Partitions:
        """Read a table of labels.

        Parameters
        ----------
        labels : array of shape (n, m), nested list, frame, or dict or list of series
            Arrays and nested lists have a row per instance. A dict has a column per key; its values are
            1-D arrays of one length, or pandas series or ``{id: label}`` mappings, which are joined by
            id (outer join). A list of pandas series is joined the same way. Labels may be integers,
            integer-valued floats, booleans, strings or categoricals. NaN, None, NA and the empty string
            are missing.
        negative : {"missing", "noise"}, default="missing"
            What a negative number means: the clustering never saw the instance, or it saw it and put it
            in no cluster (the -1 of HDBSCAN), which makes each such instance a cluster of its own.
        index : str or sequence, optional
            Ids of the instances: a column of the frame, or the ids themselves.
        unobserved : {"error", "keep"}, default="error"
            Whether an instance that no clustering saw is an error.

        Examples
        --------
        >>> from consilience import Partitions
        >>> bank_a = {"ann": "gold", "bob": "basic", "cleo": "gold"}
        >>> bank_b = {"bob": "saver", "cleo": "spender", "dan": "saver"}
        >>> people = Partitions.of({"bank_a": bank_a, "bank_b": bank_b})
        >>> people
        Partitions(4 instances, 2 base clusterings, 25.0% missing)
        >>> people.codes
        array([[ 1, -1],
               [ 0,  0],
               [ 1,  1],
               [-1,  0]], dtype=int8)
        """
        if unobserved not in ("error", "keep"):
            raise ValueError(
                f"The 'unobserved' parameter must be 'error' or 'keep'. Got {unobserved!r} instead. "
                "Hint: use 'keep' to read a table with instances that no clustering saw."
            )
        if isinstance(labels, cls):
            table = labels
        else:
            if negative not in ("missing", "noise"):
                raise ValueError(
                    f"The 'negative' parameter must be 'missing' or 'noise'. Got {negative!r} instead. "
                    "Hint: use 'noise' for the -1 of HDBSCAN or DBSCAN."
                )
            table = cls._build(_read(labels, index), negative)
        if unobserved == "error":
            table._require_observed()
        return table

    @classmethod
    def _build(cls, table: _Table, negative: Negative) -> Partitions:
        n_rows = len(table.columns[0])
        if len(table.columns) > 10 * n_rows:
            warnings.warn(
                f"the table has {len(table.columns)} base clusterings of only {n_rows} instances. "
                "Hint: instances are rows and base clusterings are columns; transpose the table if it is "
                "the other way round.",
                UserWarning,
                stacklevel=3,
            )
        codes, categories, kept = [], [], []
        for j, (name, values) in enumerate(zip(table.names, table.columns, strict=True)):
            column, names_of_clusters = _encode(values, negative, name, table.ids)
            if len(names_of_clusters):
                codes.append(column)
                categories.append(names_of_clusters)
                kept.append(j)
        if not kept:
            raise ValueError(
                "every entry of the label table is missing. Hint: NaN, None and negative numbers mean "
                'missing; pass negative="noise" if -1 is a label of its own.'
            )
        for j in sorted(set(range(len(table.columns))) - set(kept)):
            warnings.warn(
                f"base clustering {table.names[j]!r} (column {j}) has no label at all and is ignored. "
                "Hint: drop the column, or check how missing entries are marked.",
                UserWarning,
                stacklevel=3,
            )
        # -k fits where k - 1 does, and it makes the type signed.
        dtype = np.min_scalar_type(-max(len(c) for c in categories))
        stacked = np.empty((n_rows, len(kept)), dtype=dtype, order="F")  # columns are read one by one
        for i, column in enumerate(codes):
            stacked[:, i] = column
        return cls(
            codes=_frozen(stacked),
            categories=tuple(map(_frozen, categories)),
            names=tuple(table.names[j] for j in kept),
            index=None if table.ids is None else _frozen(table.ids.copy()),
            columns=tuple(kept),
            n_columns=len(table.columns),
            negative=negative,
            backend=table.backend,
            column_names=tuple(table.names),
        )

    def _require_observed(self) -> None:
        empty = np.flatnonzero(~self.seen)
        if len(empty):
            raise ValueError(
                f"no base clustering saw {_rows_text(empty, self.index)}. "
                "Hint: remove these instances, or choose what to do with them by the estimator's "
                "'unobserved' parameter ('noise' or 'largest')."
            )

    def __repr__(self) -> str:
        share = 1.0 - self.observed.mean()
        return (
            f"Partitions({self.n_instances} instances, {self.n_partitions} base clusterings, "
            f"{share:.1%} missing)"
        )

    @property
    def n_instances(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[0])

    @property
    def n_partitions(self) -> int:
        """Number of base clusterings that have at least one label."""
        return int(self.codes.shape[1])

    @cached_property
    def observed(self) -> np.ndarray:
        """Boolean, True where the clustering saw the instance."""
        return _frozen(self.codes >= 0)

    @cached_property
    def seen(self) -> np.ndarray:
        """Boolean per instance, True where at least one clustering saw it."""
        # Column by column: reducing along short rows is several times slower.
        return _frozen(np.logical_or.reduce([column >= 0 for column in self.codes.T]))

    @cached_property
    def n_clusters_per_partition(self) -> np.ndarray:
        """``k_i``, the number of clusters of each base clustering."""
        return _frozen(np.array([len(c) for c in self.categories], dtype=np.int64))

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each clustering's clusters begin in the stacked indicator; the last entry is their number."""
        return _frozen(np.concatenate([[0], np.cumsum(self.n_clusters_per_partition)]))

    @cached_property
    def distinct(self) -> Distinct:
        """The distinct rows with their counts, in lexicographic order of the codes.

        Two instances with the same row cannot be told apart by a method that reads only labels, so such a
        method runs on these rows and hands its answer back through ``inverse``.
        """
        key = _row_keys(self.codes, self.n_clusters_per_partition)
        _, counts, inverse = group(key)
        member = np.empty(len(counts), dtype=np.intp)
        member[inverse] = np.arange(len(key))  # any row of a group will do: they are equal
        return Distinct(_frozen(np.ascontiguousarray(self.codes[member])), _frozen(counts), _frozen(inverse))

    @cached_property
    def indicator(self) -> sp.csr_array:
        """The stacked one-hot tables, sparse: one row per instance, one column per cluster of any base."""
        return indicator(self.codes, self.offsets)

    def coassociation(
        self, *, normalize: Literal["pairs", "partitions"] = "pairs", max_instances: int = 20_000
    ) -> np.ndarray:
        """How often two instances share a cluster, dense, (n_instances, n_instances).

        Parameters
        ----------
        normalize : {"pairs", "partitions"}, default="pairs"
            Divide by the number of clusterings that saw both instances (NaN where none did), or by the
            number of clusterings (a missing entry then counts as disagreement).
        max_instances : int, default=20_000
            Refuse larger tables, whose answer would not fit in memory.

        Examples
        --------
        >>> from consilience import Partitions
        >>> Partitions.of([[0, 0], [0, 1], [1, -1]]).coassociation()
        array([[1. , 0.5, 0. ],
               [0.5, 1. , 0. ],
               [0. , 0. , 1. ]])
        """
        if normalize not in ("pairs", "partitions"):
            raise ValueError(
                f"The 'normalize' parameter must be 'pairs' or 'partitions'. Got {normalize!r} instead. "
                "Hint: 'pairs' divides by the number of clusterings that saw both instances."
            )
        if self.n_instances > max_instances:
            raise ValueError(
                f"a dense co-association of {self.n_instances} instances has {self.n_instances**2:.1e} "
                f"entries. Hint: there are {len(self.distinct.counts)} distinct rows; "
                "use the co-association of those, or raise max_instances."
            )
        return coassociation(self.indicator, self.observed, normalize=normalize)

    def take(self, rows: npt.ArrayLike) -> Partitions:
        """The same clusterings of some of the instances (a boolean mask or positions)."""
        rows = np.asarray(rows)
        index = None if self.index is None else _frozen(self.index[rows])
        return _replace(self, codes=_frozen(self.codes[rows]), index=index)

    def fill(self, codes: np.ndarray) -> Partitions:
        """The same table with other codes, such as a completed one."""
        return _replace(self, codes=_frozen(codes.astype(self.codes.dtype)))

    def encode(self, labels: Any) -> np.ndarray:
        """Codes of new instances in the terms of this table, (n_new, n_partitions), -1 = missing.

        Frames, dicts and `Partitions` are matched by the names of the base clusterings (an absent one is
        missing), arrays by position. A label that is not known here is an error.
        """
        coded, n_rows, ids = self._match(labels)
        codes = np.full((n_rows, self.n_partitions), MISSING, dtype=self.codes.dtype)
        for i, name in enumerate(self.names):
            if name not in coded:
                continue
            new, labels_of_new = coded[name]
            known = {_plain(value): code for code, value in enumerate(self.categories[i])}
            # An instance in no cluster is no member of any known one, so noise becomes missing.
            translate = [
                MISSING if _is_negative(value) else known.get(_plain(value), _UNKNOWN)
                for value in labels_of_new
            ]
            codes[:, i] = translated = np.array([*translate, MISSING])[new]
            strange = np.flatnonzero(translated == _UNKNOWN)
            if len(strange):
                value = labels_of_new[new[strange[0]]]
                raise ValueError(
                    f"base clustering {name!r} has no cluster {_plain(value)!r}, found in "
                    f"{_rows_text(strange, ids)}. Hint: mark labels that were not there when the "
                    "model was fitted as missing, or fit again with them."
                )
        return codes

    def _match(self, labels: Any) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], int, np.ndarray | None]:
        """Codes and categories of a new table by the names of this one, its number of rows and its ids."""
        if isinstance(labels, Partitions):
            self._require_known(labels.column_names)
            columns = zip(labels.names, labels.codes.T, labels.categories, strict=True)
            coded = {name: (codes, categories) for name, codes, categories in columns}
            return coded, labels.n_instances, labels.index
        table = _read(labels, None)
        names: Sequence[str] = table.names
        if table.named:
            self._require_known(names)
        else:
            if len(names) != self.n_columns:
                raise ValueError(
                    f"the new table has {len(names)} columns, the fitted one has {self.n_columns}. "
                    "Hint: keep a column for every base clustering and mark what is unknown as missing."
                )
            names = self.column_names
        coded = {
            name: _encode(values, "missing", name, table.ids)
            for name, values in zip(names, table.columns, strict=True)
            if name in self.names
        }
        return coded, len(table.columns[0]), table.ids

    def _require_known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.column_names:
                raise ValueError(
                    f"unknown base clustering {name!r}. {_did_you_mean(name, self.column_names)}"
                )

    def decode(self, codes: np.ndarray) -> Any:
        """A table of codes in the user's own label names and the user's own kind of table.

        Arrays come back as arrays: of integers with -1 for missing where every label is an integer (and -1
        does not say noise), else of objects with None.
        """
        columns: list[np.ndarray] = []
        kept = {j: i for i, j in enumerate(self.columns)}
        for j in range(self.n_columns):
            if j in kept:
                columns.append(_decode_column(codes[:, kept[j]], self.categories[kept[j]]))
            else:
                columns.append(np.full(len(codes), None, dtype=object))
        if self.backend is not None:
            return self.frame(dict(zip(self.column_names, columns, strict=True)))
        gaps = any(c.dtype == object for c in columns)
        if all(np.issubdtype(c.dtype, np.integer) for c in self.categories) and not (
            gaps and self.negative == "noise"
        ):
            return np.column_stack([_integers_or_missing(c) for c in columns])
        return np.column_stack([c.astype(object) for c in columns])

    def frame(self, columns: dict[str, np.ndarray]) -> Any:
        """A frame of the user's kind with the user's index. Only where the input was a frame or series."""
        if self.backend is None:
            raise ValueError("the input was not a frame. Hint: build a frame from the arrays yourself.")
        data = {
            name: values if values.dtype != object else values.tolist() for name, values in columns.items()
        }
        native = nw.from_dict(data, backend=self.backend).to_native()
        if self.backend == "pandas":
            # Codes of other instances than these (see `encode`) have other ids.
            self._finish_pandas(native, columns, self.index if len(native) == self.n_instances else None)
        return native

    @staticmethod
    def _finish_pandas(frame: Any, columns: dict[str, np.ndarray], ids: np.ndarray | None) -> None:
        pandas: Any = nw.get_native_namespace(frame)
        for name, values in columns.items():
            # Integers beside None became floats, which lose digits above 2**53.
            if values.dtype == object and all(value is None or _is_int64(value) for value in values):
                frame[name] = pandas.array(values, dtype="Int64")
        if ids is not None:
            several_levels = ids.dtype == object and all(isinstance(value, tuple) for value in ids)
            frame.index = pandas.MultiIndex.from_tuples(ids.tolist()) if several_levels else ids


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _replace(partitions: Partitions, **changes: Any) -> Partitions:
    # dataclasses.replace would do, but for the cached properties, which must not be carried over.
    fields = {name: getattr(partitions, name) for name in Partitions.__dataclass_fields__}
    return Partitions(**{**fields, **changes})


def _row_keys(codes: np.ndarray, n_clusters: np.ndarray) -> np.ndarray:
    """One integer per row, equal exactly for equal rows and in lexicographic order."""
    key = np.zeros(len(codes), dtype=np.int64)
    size = 1
    for i, k in enumerate(n_clusters):
        if size * (int(k) + 1) >= 2**63:
            # The mixed-radix number would overflow: rank what is there, which keeps both order and equality.
            key = group(key).inverse
            size = int(key.max()) + 1
        key *= int(k) + 1
        key += codes[:, i]
        key += 1
        size *= int(k) + 1
    return key


# --- reading the user's table -------------------------------------------------------------------------------


class _Table(NamedTuple):
    """What every kind of input is turned into first: columns of one length, still in the user's labels."""

    columns: list[Any]  # 1-D arrays or narwhals series
    names: list[str]
    ids: np.ndarray | None
    backend: Any
    named: bool


def _read(labels: Any, index: str | Sequence[Any] | None) -> _Table:
    if sp.issparse(labels):
        raise TypeError("labels cannot be a sparse matrix. Hint: labels.toarray(), with -1 for missing.")
    if nw.dependencies.is_polars_lazyframe(labels):
        raise TypeError("labels cannot be a lazy frame. Hint: labels.collect().")
    if isinstance(index, str) and not nw.dependencies.is_into_dataframe(labels):
        raise ValueError(
            f"index={index!r} names a column, but the labels are not a frame. Hint: pass the ids themselves."
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
            raise ValueError(f"'index' has {ids.ndim} dimensions. Hint: one id per row.")
        if len(ids) != len(table.columns[0]):
            raise ValueError(
                f"'index' has {len(ids)} ids for {len(table.columns[0])} rows. Hint: one id per row."
            )
        table = table._replace(ids=ids)
    if len(set(table.names)) < len(table.names):
        twice = next(name for name in table.names if table.names.count(name) > 1)
        raise ValueError(f"two base clusterings are named {twice!r}. Hint: give every column its own name.")
    if table.ids is not None:
        _require_ids(table.ids, "the table")
    return table


def _is_list_of_series(labels: Any) -> bool:
    return (
        isinstance(labels, (list, tuple))
        and len(labels) > 0
        and all(nw.dependencies.is_into_series(column) or isinstance(column, Mapping) for column in labels)
    )


def _read_frame(labels: Any, id_column: str | None) -> _Table:
    try:
        frame = nw.from_native(labels, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        twice = " ".join(str(error).split())
        raise ValueError(
            f"two base clusterings have one name ({twice}). Hint: give every column its own name."
        ) from error
    # Not by name: pandas also has columns named by numbers and tuples.
    columns = dict(zip(frame.columns, frame.iter_columns(), strict=True))
    index = None
    if id_column is not None:
        if id_column not in columns:
            known = [str(name) for name in columns]
            raise ValueError(f"the frame has no column {id_column!r}. {_did_you_mean(id_column, known)}")
        index = columns.pop(id_column).to_numpy()
    elif nw.dependencies.is_pandas_dataframe(labels):
        index = _pandas_ids(labels)
    if frame.shape[0] == 0 or not columns:
        raise _empty_table((frame.shape[0], len(columns)))
    names = [str(name) for name in columns]
    return _Table(list(columns.values()), names, index, frame.implementation.value, named=True)


def _pandas_ids(frame: Any) -> np.ndarray | None:
    counted = type(frame.index).__name__ == "RangeIndex" and frame.index.start == 0 and frame.index.step == 1
    return None if counted else np.asarray(frame.index)


def _read_columns(columns: list[Any], names: list[str]) -> _Table:
    """Separate columns: joined by id where they carry ids, else by position."""
    if not columns:
        raise _empty_table((0, 0))
    by_id = [_ids_and_values(column, name) for column, name in zip(columns, names, strict=True)]
    backend = next((_backend_of(column) for column in columns if _backend_of(column)), None)
    if all(ids is not None for ids, _ in by_id):
        joined, index = _outer_join(by_id, names)
        return _Table(joined, names, index, backend, named=True)
    if any(ids is not None for ids, _ in by_id):
        bare = next(name for name, (ids, _) in zip(names, by_id, strict=True) if ids is None)
        raise ValueError(
            f"base clustering {bare!r} has no ids while others have. "
            "Hint: give all of them as series with an index (or as mappings), or none."
        )
    lengths = [len(values) for _, values in by_id]
    if len(set(lengths)) > 1:
        j = next(j for j, length in enumerate(lengths) if length != lengths[0])
        raise ValueError(
            f"base clustering {names[j]!r} has {lengths[j]} labels, {names[0]!r} has {lengths[0]}. "
            "Hint: use series with an index (or {id: label} mappings) to join by id, or mark missing entries."
        )
    if lengths[0] == 0:
        raise _empty_table((0, len(columns)))
    return _Table([values for _, values in by_id], names, None, backend, named=True)


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
        raise TypeError(
            f"base clustering {name!r} is {column!r}, not a column of labels. Hint: a dict has one array, "
            "series or {id: label} mapping per base clustering."
        )
    if isinstance(column, np.ma.MaskedArray):
        column = _unmasked(column)
    values = column if isinstance(column, np.ndarray) else object_array(list(column))
    if values.ndim != 1:
        raise ValueError(f"base clustering {name!r} is not one-dimensional. Hint: one array per key.")
    return None, values


def _outer_join(parts: list[tuple[Any, Any]], names: list[str]) -> tuple[list[Any], np.ndarray]:
    first = parts[0][0]
    if all(len(ids) == len(first) and np.array_equal(ids, first) for ids, _ in parts):
        if len(first) == 0:
            raise _empty_table((0, len(parts)))
        return [values for _, values in parts], first
    position: dict[Any, int] = {}
    for name, (ids, _) in zip(names, parts, strict=True):
        _require_ids(ids, f"base clustering {name!r}")
        for key in ids.tolist():
            position.setdefault(key, len(position))
    columns = []
    for ids, values in parts:
        column = np.full(len(position), None, dtype=object)
        where = np.fromiter((position[key] for key in ids.tolist()), dtype=np.intp, count=len(ids))
        column[where] = object_array(values.to_list()) if isinstance(values, nw.Series) else values
        columns.append(column)
    return columns, id_array(list(position))


def _read_array(labels: Any) -> _Table:
    if isinstance(labels, (str, bytes)) or not (isinstance(labels, Iterable) or hasattr(labels, "__array__")):
        raise TypeError(
            f"labels must be a table, got {labels!r}. Hint: an array, nested list, frame or dict of columns; "
            "read a file first."
        )
    if isinstance(labels, np.ma.MaskedArray):
        labels = _unmasked(labels)
    if isinstance(labels, (list, tuple)):
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
        raise ValueError(f"Expected 2D array of labels, got {array.ndim}D ({shape}). Hint: {reshape}.")
    if 0 in array.shape:
        raise _empty_table(array.shape)
    if np.iscomplexobj(array):
        raise ValueError("Complex data not supported. Hint: labels are integers, strings or categories.")
    names = [str(j) for j in range(array.shape[1])]
    return _Table([array[:, j] for j in range(array.shape[1])], names, None, None, named=False)


def _unmasked(array: np.ma.MaskedArray[Any, Any]) -> np.ndarray:
    # Not filled(None): NumPy takes that for "the default filler", which is the label '?'.
    values = np.ma.getdata(array).astype(object)
    values[np.ma.getmaskarray(array)] = None
    return values


def _nested_array(labels: Any) -> np.ndarray:
    rows = [list(row) if isinstance(row, Iterable) and not isinstance(row, str) else row for row in labels]
    array = np.array(rows)
    # Numbers beside strings would all become strings, and large integers beside NaN would lose digits.
    if array.dtype.kind in "US" or (array.dtype.kind == "f" and bool((np.abs(array) >= _EXACT).any())):
        array = np.array(rows, dtype=object)
    return array


def _require_rectangular(rows: Sequence[Any]) -> None:
    lengths = [len(row) if hasattr(row, "__len__") and not isinstance(row, str) else -1 for row in rows]
    ragged = next((p for p, length in enumerate(lengths) if length != lengths[0]), None)
    if ragged is not None:
        raise ValueError(
            f"row {ragged} has {max(lengths[ragged], 1)} labels, row 0 has {max(lengths[0], 1)}. "
            "Hint: every row needs an entry for every base clustering; use None where it is missing."
        )


def _empty_table(shape: tuple[int, ...]) -> ValueError:
    n_rows, n_columns = shape
    what = "0 sample(s)" if n_rows == 0 else "0 feature(s)"
    return ValueError(
        f"Found array with {what} (shape=({n_rows}, {n_columns})) while a minimum of 1 is required. "
        "Hint: labels need at least one row (instance) and one column (base clustering)."
    )


# --- from labels to codes -----------------------------------------------------------------------------------


def _encode(
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


def _from_series(series: nw.Series[Any]) -> tuple[np.ndarray, np.ndarray | None]:
    """Values of a column, and where an integer or boolean column has nulls."""
    if not (series.dtype.is_integer() or series.dtype == nw.Boolean):
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
        raise ValueError(
            f"base clustering {name!r} has the label inf in {_rows_text(strange, index)}. "
            "Hint: mark missing entries as NaN."
        )
    strange = np.flatnonzero(whole != np.floor(whole))
    if len(strange):
        raise ValueError(
            f"base clustering {name!r} has the value {float(whole[strange[0]])!r} in "
            f"{_rows_text(strange, index)}, which is no cluster label. Hint: this looks like a feature, not "
            "a label; cluster the features first (consilience.generate.base_partitions)."
        )
    strange = np.flatnonzero(np.abs(whole) >= 2.0 ** (np.finfo(values.dtype).nmant + 1))
    if len(strange):
        raise ValueError(
            f"base clustering {name!r} has the label {float(whole[strange[0]]):.0f} in "
            f"{_rows_text(strange, index)}, which a float cannot tell from the next integer. "
            "Hint: pass integers or strings."
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
        raise TypeError(
            f"base clustering {name!r} holds something that cannot be a label ({error}). "
            "Hint: labels are integers, strings or categories."
        ) from error
    raw = np.fromiter(map(first_seen.__getitem__, entries), dtype=np.int64, count=len(entries))
    labels = [_plain(entry) for entry in first_seen]
    fraction = next((code for code, label in enumerate(labels) if isinstance(label, float)), None)
    if fraction is not None:
        _integers_from_floats(np.where(raw == fraction, labels[fraction], 0.0), name, index)
    if all(label is None or _is_int64(label) for label in labels):
        missing = np.array([label is None for label in labels])[raw]
        pairs = zip(first_seen, labels, strict=True)
        boolean = all(isinstance(entry, (bool, np.bool_)) or label is None for entry, label in pairs)
        integers = np.array([label or 0 for label in labels], dtype=bool if boolean else np.int64)[raw]
        return _encode_integers(integers, missing if missing.any() else None, negative)

    below = [_is_negative(label) for label in labels]
    kept = {label for label, low in zip(labels, below, strict=True) if label is not None and not low}
    # Sorted, so that codes do not depend on the order of rows; by type first, since 1 < "a" is an error.
    try:
        ordered = sorted(kept, key=lambda label: (type(label).__name__, label))
    except TypeError as error:
        raise TypeError(
            f"base clustering {name!r} holds labels that cannot be put in order ({error}). "
            "Hint: turn them into strings."
        ) from error
    rank = {label: code for code, label in enumerate(ordered)}
    codes = np.array([rank.get(label, MISSING) for label in labels])[raw]
    if negative == "noise":
        noise = np.flatnonzero(np.array(below)[raw])
        codes[noise] = len(ordered) + np.arange(len(noise))
        ordered += [MISSING] * len(noise)
    return codes, object_array(ordered)


def _plain(value: Any) -> Any:
    """A hashable Python value; None for every way of saying missing."""
    # The Python value of a date in nanoseconds would be a number.
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    if is_missing(value) or (isinstance(value, (str, bytes)) and not value):
        return None
    if isinstance(value, bool) or (isinstance(value, float) and abs(value) < _EXACT and value.is_integer()):
        return int(value)
    return value


def _is_int64(value: Any) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _is_negative(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and int(value) < 0


def _integers_or_missing(column: np.ndarray) -> np.ndarray:
    if column.dtype != object:
        return column
    return np.array([MISSING if value is None else value for value in column], dtype=np.int64)


def _decode_column(codes: np.ndarray, categories: np.ndarray) -> np.ndarray:
    if (codes >= 0).all():
        return categories[codes]
    values = np.full(len(codes), None, dtype=object)
    values[codes >= 0] = categories[codes[codes >= 0]]
    return values


# --- words for errors ---------------------------------------------------------------------------------------


def _rows_text(rows: np.ndarray, index: np.ndarray | None) -> str:
    """'row 3 (id 'ann') and 4 others', for an error that points at the data."""
    p = int(rows[0])
    text = f"row {p}"
    if index is not None:
        text += f" (id {_plain(index[p])!r})"
    if len(rows) > 1:
        text += f" and {len(rows) - 1} other" + ("s" if len(rows) > 2 else "")
    return text


def _require_ids(ids: np.ndarray, where: str) -> None:
    values = ids.tolist()
    if ids.dtype.kind not in "biuSU":
        p = next((p for p, value in enumerate(ids) if is_missing(value)), None)
        if p is not None:
            raise ValueError(f"row {p} of {where} has no id. Hint: give every row an id of its own.")
    if len(set(values)) == len(values):
        return
    seen: set[Any] = set()
    for p, value in enumerate(values):
        if value in seen:
            raise ValueError(
                f"the id {value!r} occurs twice in {where} (again in row {p}). "
                "Hint: ids must be unique; reset the index if the rows are different instances."
            )
        seen.add(value)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    known = [str(k) for k in known]
    close = difflib.get_close_matches(name, known, n=1)
    return (
        f"Hint: did you mean {close[0]!r}?"
        if close
        else f"Hint: there are {', '.join(map(repr, known[:8]))}."
    )
