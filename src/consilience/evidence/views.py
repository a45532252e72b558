"""Views as input: several tables about the same instances, with rows absent here and there.

Every data error of a multi-view method is raised here, with the view, the row, the column and a hint;
what comes out is clean arrays and one mask.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import counted, id_array, is_annotated, is_missing

__all__ = ["Views", "check_views"]

Matrix = Any  # a 2-D float array or a scipy.sparse.csr_array; scipy carries no types


class Layout(NamedTuple):
    """Which views there are, of which features: what is kept of fitted views, to read new instances by."""

    names: tuple[str, ...]
    n_features: tuple[int, ...]
    columns: tuple[tuple[str, ...] | None, ...]

    def match(self, X: Any, mask: Any = None, *, method: str) -> "Views":
        """New instances with all these views in their order; a view that was not given has no rows.

        Parameters
        ----------
        X : list, tuple or dict of tables, one table, or Views
            A dict may leave views out, a list has None for them, and a table may be NaN throughout. Columns
            of frames are matched by name where those of the fitted ones had names, others by position.
        mask : (n_new, n_views) array of bool, default=None
            False where the instance is absent from the view; a column for each of the fitted views.
        method : str
            Who was fitted, for errors.

        Examples
        --------
        >>> layout = check_views({"shape": [[1.0, 2.0]], "sound": [[0.1]]}).layout
        >>> layout.match({"sound": [[0.3], [0.4]]}, method="APMC")
        Views(2 instances; shape (2), sound (1); 50% of rows absent)
        """
        if len(getattr(X, "shape", "..")) == 1:
            raise InputError(
                "Expected 2D array, got 1D array instead. Reshape your data.",
                hint="one new instance is values.reshape(1, -1).",
            )
        tables, mask = self._given(X, mask, method)
        views = check_views(tables, mask=mask)
        arrays, observed = [], np.zeros((views.n_instances, len(self.names)), dtype=bool)
        for v, (name, width) in enumerate(zip(self.names, self.n_features, strict=True)):
            if name in tables:
                given = views.names.index(name)
                observed[:, v] = views.observed[:, given]
                arrays.append(self._in_order(views, given, v, method))
            else:
                arrays.append(sparse.csr_array((views.n_instances, width)))
        return replace(views, arrays=tuple(arrays), observed=observed, names=self.names, columns=self.columns)

    def _given(self, X: Any, mask: Any, method: str) -> tuple[dict[str, Any], Any]:
        """The tables that hold an instance, by name, and the columns of `mask` that belong to them."""
        names = self.names
        X = one_table(X)
        if isinstance(X, Views):
            seen = X.observed if mask is None else X.observed & np.asarray(mask)
            columns = dict(zip(X.names, seen.T, strict=True))
            mask = np.column_stack([columns.get(name, np.zeros(X.n_instances, dtype=bool)) for name in names])
            X = dict(zip(X.names, X.arrays, strict=True))
        if isinstance(X, Mapping) and not sparse.issparse(X):
            tables = {str(name): table for name, table in X.items()}
            unknown = [name for name in tables if name not in names]
            if unknown:
                raise InputError(
                    f"there was no view {unknown[0]!r} when {method} was fitted.",
                    hint=f"the views are {', '.join(map(repr, names))}",
                )
        else:
            listed = X if isinstance(X, list | tuple) else [X]
            if len(listed) != len(names):
                raise InputError(
                    f"X has {len(listed)} views, but {method} was fitted with {len(names)}.",
                    hint=(
                        f"give None for a view that is not there, or a dict with some of the keys "
                        f"{', '.join(map(repr, names))}"
                    ),
                )
            tables = dict(zip(names, listed, strict=True))
        if mask is not None:
            mask = np.asarray(mask)
            if mask.ndim != 2 or mask.shape[1] != len(names):
                raise InputError(
                    f"mask must have a column for each of the {len(names)} fitted views. Got the shape "
                    f"{mask.shape} instead.",
                    hint="the column of a view that is not given may hold anything",
                )
        given = {
            name: table
            for name, table in tables.items()
            if table is not None
            and (mask is None or mask[:, names.index(name)].any())
            and not _is_blank(table)
        }
        if not given:
            raise InputError("no view holds any instance.", hint="give at least one of the fitted views")
        return given, None if mask is None else mask[:, [names.index(name) for name in given]]

    def _in_order(self, views: "Views", given: int, fitted: int, method: str) -> Matrix:
        """A new table with its columns in the order that was fitted, where both have names."""
        array, now, then = views.arrays[given], views.layout.columns[given], self.columns[fitted]
        if array.shape[1] != self.n_features[fitted]:
            raise InputError(
                f"view {views.names[given]!r} has {array.shape[1]} features, but {method} is expecting "
                f"{self.n_features[fitted]} features as input.",
                hint="give the columns that were fitted, in their order.",
            )
        if now is None or then is None or now == then:
            return array
        strange = next((name for name in now if name not in then), None)
        if strange is not None:
            raise InputError(
                f"view {views.names[given]!r} has a column {strange!r} that was not there when {method} "
                "was fitted.",
                hint=(
                    f"the columns are {', '.join(map(repr, then[:5]))}"
                    f"{', ...' if len(then) > 5 else ''}; an array is read by position"
                ),
            )
        return array[:, [now.index(name) for name in then]]


@dataclass(frozen=True, eq=False, repr=False)
class Views:
    """Several feature tables about the same instances, aligned and checked.

    Made by :func:`check_views`. Treat it as read-only: dense arrays may share memory with the input.

    Attributes
    ----------
    arrays : tuple of (n_instances, n_features) float arrays or CSR arrays
        One per view, all with the same rows. A row that is absent from a view is zero (empty in a CSR
        array): it adds nothing to a product or a sum, so a solver needs the mask only where it counts.
    observed : (n_instances, n_views) bool array
        Whether the instance is present in the view. Only this says what is absent; a zero row may be
        a real one.
    names : tuple of str
        The names of the views.
    index : (n_instances,) array or None
        The ids of the instances, in the order of the rows; None when rows are known by position only.
    columns : tuple of (tuple of str or None)
        For each view the names of its features; None where it was no frame.
    """

    arrays: tuple[Matrix, ...]
    observed: NDArray[np.bool_]
    names: tuple[str, ...]
    index: NDArray[Any] | None = None
    columns: tuple[tuple[str, ...] | None, ...] | None = None

    @property
    def n_instances(self) -> int:
        return int(self.observed.shape[0])

    @property
    def n_views(self) -> int:
        return len(self.arrays)

    @property
    def n_features(self) -> tuple[int, ...]:
        """The number of features of each view."""
        return tuple(int(array.shape[1]) for array in self.arrays)

    @property
    def layout(self) -> Layout:
        """The names of the views and of their features, without their rows."""
        return Layout(self.names, self.n_features, self.columns or (None,) * self.n_views)

    @property
    def is_complete(self) -> bool:
        """Whether every instance is present in every view."""
        return bool(self.observed.all())

    def rows(self, view: int) -> tuple[NDArray[np.intp], Matrix]:
        """The row numbers of the instances that `view` has, and the sub-matrix of these rows.

        >>> views = check_views({"a": [[1.0], [np.nan]], "b": [[3.0], [4.0]]})
        >>> views.rows(0)
        (array([0]), array([[1.]]))
        """
        present = self.observed[:, view]
        rows = np.flatnonzero(present)
        return rows, (self.arrays[view] if present.all() else self.arrays[view][rows])

    def n_distinct(self, most: int, views: Sequence[int] | None = None) -> int:
        """How many instances differ in what these views (all, by default) hold of them, at most `most`.

        >>> check_views({"a": [[1.0], [1.0], [2.0]], "b": [[3.0], [np.nan], [4.0]]}).n_distinct(5, [0])
        2
        """
        views = range(self.n_views) if views is None else views
        found: set[tuple[bytes, ...]] = set()
        for row in range(self.n_instances):
            found.add(tuple(self._entry(row, v) for v in views))
            if len(found) >= most:
                break
        return len(found)

    def constant(self) -> list[int]:
        """The views whose instances all have the same values."""
        return [
            v
            for v in range(self.n_views)
            if len(rows := np.flatnonzero(self.observed[:, v])) > 1
            and all(self._entry(row, v) == self._entry(rows[0], v) for row in rows[1:])
        ]

    def _entry(self, row: int, view: int) -> bytes:
        """What a view holds of an instance, to be compared with others."""
        if not self.observed[row, view]:
            return b""
        x = self.arrays[view]
        if not sparse.issparse(x):
            return bytes((x[row] + 0.0).tobytes())  # which makes -0 a 0
        entries = slice(x.indptr[row], x.indptr[row + 1])
        return bytes(x.indices[entries].tobytes() + x.data[entries].tobytes() + b".")

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({d})" for name, d in zip(self.names, self.n_features, strict=True))
        absent = 1 - self.observed.mean()
        return f"Views({self.n_instances} instances; {tables}; {absent:.0%} of rows absent)"


class _Table(NamedTuple):
    """One view as it was read, before rows are matched."""

    name: str
    values: Matrix
    columns: Sequence[object]
    ids: list[Hashable] | None = None
    counted: bool = False  # the ids are pandas' default 0..n-1, which may mean nothing


def check_views(
    views: Any, *, mask: ArrayLike | None = None, on: str | None = None, dtype: DTypeLike = np.float64
) -> Views:
    """Read, align and check the views of a set of instances.

    Parameters
    ----------
    views : list, tuple or dict of tables, or one table
        A table has instances in rows and features in columns: a 2-D array, a scipy sparse matrix, or a
        pandas or polars frame. One 2-D array, sparse matrix or frame is one view. The keys of a dict name
        the views; otherwise they are called ``view0``, ``view1``, ...

        An instance is absent from a view when its row is all NaN, when a frame does not list its id, or
        when `mask` says so. A row with some NaN is an error: only its owner knows whether to impute it
        or to drop it.

        pandas frames are matched by their index: where indices differ, the result has every id once, in
        the order in which the ids first appear. Default indices (0, 1, 2, ...) count as ids only beside a
        frame with another index; else rows are matched by position, as those of arrays and polars frames.

        A sparse row without entries is a row of zeros, **not** an absent row: use `mask` for that. (An
        absent row may also be stored as NaN in all of its columns.)
    mask : (n_instances, n_views) array of bool, default=None
        False where the instance is absent from the view; whatever the table holds there is ignored. Its
        rows follow the rows of the result.
    on : str, default=None
        The column of every frame that holds the ids, to match rows by it instead of index or position.
    dtype : numpy float type, default=numpy.float64
        The type of the arrays.

    Returns
    -------
    views : Views
        Read-only; the input is never changed, and is shared rather than copied where nothing has to be
        filled in or converted.

    Raises
    ------
    ValueError
        Naming the view, the row and the column, and ending in a hint.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience.evidence.views import check_views
    >>> shape = np.array([[1.0, 2.0], [np.nan, np.nan], [5.0, 6.0]])
    >>> sound = np.array([[0.1], [0.2], [0.3]])
    >>> views = check_views({"shape": shape, "sound": sound})
    >>> views
    Views(3 instances; shape (2), sound (1); 17% of rows absent)
    >>> views.observed
    array([[ True,  True],
           [False,  True],
           [ True,  True]])
    >>> views.arrays[0]
    array([[1., 2.],
           [0., 0.],
           [5., 6.]])
    """
    if isinstance(views, Views) and mask is None and on is None:
        return views
    if np.dtype(dtype).kind != "f":
        raise InputError(f"dtype must be a float type. Got {dtype!r} instead.", hint="use numpy.float64")

    tables = [_read(name, table, on, np.dtype(dtype)) for name, table in _named_tables(views)]
    n_instances, ids, places = _match_rows(tables)
    wanted = _check_mask(mask, n_instances, len(tables))

    arrays = []
    observed = np.zeros((n_instances, len(tables)), dtype=bool)
    for v, (table, place) in enumerate(zip(tables, places, strict=True)):
        present = _present_rows(table, wanted[place, v])
        observed[place, v] = present
        arrays.append(_fill(table.values, present, place, n_instances))
        _check_scale(table, arrays[-1], ids)
    _check_seen(observed, tables, ids)

    observed.flags.writeable = False
    index = None if ids is None else id_array(ids)
    columns = tuple(
        None if isinstance(table.columns, range) else tuple(map(str, table.columns)) for table in tables
    )
    return Views(tuple(arrays), observed, tuple(table.name for table in tables), index, columns)


def one_table(X: Any) -> Any:
    """A nested list of numbers as one table: a list of views would have tables in it."""
    if isinstance(X, list | tuple) and X and all(isinstance(row, list | tuple) for row in X):
        entries = [row[0] for row in X if row]
        if entries and all(isinstance(entry, Number) or entry is None for entry in entries):
            return np.array(X, dtype=float)
    return X


# --- reading one table -------------------------------------------------------------------------------


def _named_tables(views: Any) -> list[tuple[str, Any]]:
    if sparse.issparse(views):  # before mappings: SciPy's dictionary of keys is one
        named = [("view0", views)]
    elif isinstance(views, Mapping):
        named = [(str(name), table) for name, table in views.items()]
    elif isinstance(views, list | tuple):
        named = [(f"view{v}", table) for v, table in enumerate(views)]
    else:
        named = [("view0", views)]
    if not named:
        raise InputError("there are no views.", hint="give at least one table, such as a 2-D array")
    annotated = next((table for _, table in named if is_annotated(table)), None)
    if annotated is not None:
        raise InputTypeError(
            f"views cannot be {type(annotated).__name__} objects.",
            hint=(
                "consilience.scverse.tl.fuse_views takes MuData and dicts of AnnData; or pass tables, such "
                'as adata.obsm["X_pca"].'
            ),
        )
    repeated = [name for name, count in Counter(name for name, _ in named).items() if count > 1]
    if repeated:
        raise InputError(f"two views are called {repeated[0]!r}.", hint="give every view its own name")
    return named


def _read(name: str, table: Any, on: str | None, dtype: np.dtype[Any]) -> _Table:
    frame = _as_frame(name, table)
    if frame is not None:
        return _read_frame(name, frame, on, dtype)
    if on is not None:
        raise InputError(
            f"on={on!r} names a column of ids, but view {name!r} is not a frame and has no named columns.",
            hint="give every view as a frame, or match rows by position and leave out on=",
        )
    values = _read_sparse(name, table, dtype) if sparse.issparse(table) else _read_array(name, table, dtype)
    return _Table(name, values, range(values.shape[1]))


def _as_frame(name: str, table: Any) -> Any:
    """The table as a narwhals frame; None if it is no frame."""
    if isinstance(table, np.ndarray | list | tuple) or sparse.issparse(table):
        return None
    import narwhals as nw  # only when a frame may be present: arrays alone do not pay for it

    frame = nw.from_native(table, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InputError(f"view {name!r} is a lazy frame.", hint="call .collect() on it first")
    return frame if isinstance(frame, nw.DataFrame) else None


def _read_frame(name: str, frame: Any, on: str | None, dtype: np.dtype[Any]) -> _Table:
    import narwhals as nw

    ids, counted = _frame_ids(name, frame, on)
    n_rows = len(frame)  # polars may forget it with the last column
    if on is not None:
        frame = frame.drop(on)
    _check_shape(name, (n_rows, len(frame.columns)))
    for column, kind in frame.schema.items():
        if not (kind.is_numeric() or kind == nw.Boolean):
            _not_numbers(name, column, f"holds values of type {kind}", by_id=on is None)
    values = frame.select(nw.all().cast(nw.Float64)).to_numpy()
    return _Table(name, _frozen(values, dtype), frame.columns, ids, counted)


def _frame_ids(name: str, frame: Any, on: str | None) -> tuple[list[Hashable] | None, bool]:
    import narwhals as nw

    if on is not None:
        if on not in frame.columns:
            raise InputError(
                f"view {name!r} has no column {on!r}, which on= names.",
                hint=f"its columns are {_some(list(frame.columns))}",
            )
        return frame[on].to_list(), False
    index = nw.maybe_get_index(frame)
    if index is None:
        return None, False
    counted = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    return index.tolist(), counted


def _read_sparse(name: str, table: Any, dtype: np.dtype[Any]) -> Matrix:
    if len(table.shape) != 2:
        _not_two_dimensional(name, len(table.shape))
    _check_shape(name, table.shape)
    if table.dtype.kind == "c":
        _complex(name)
    values = sparse.csr_array(table, dtype=dtype)
    if not values.has_canonical_format:
        values = values.copy()  # summing duplicates works in place, on arrays that may be the user's
        values.sum_duplicates()
    return values


def _read_array(name: str, table: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    if np.ma.isMaskedArray(table):
        table = np.ma.filled(
            np.ma.asarray(table, dtype=float), np.nan
        )  # np.asarray would lay the masked values bare
    try:
        values = np.asarray(table)
    except ValueError as error:
        raise InputError(
            f"view {name!r} is not a rectangular table: {error}.", hint="give every row as many values"
        ) from error
    if values.ndim != 2:
        _not_two_dimensional(name, values.ndim)
    _check_shape(name, values.shape)
    if values.dtype.kind == "c":
        _complex(name)
    if values.dtype.kind not in "biuf":
        values = _numbers_from_objects(name, values.astype(object))
    return _frozen(values, dtype)


def _numbers_from_objects(name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    numbers = np.empty(values.shape)
    for column, entries in enumerate(values.T):
        text = next((entry for entry in entries if isinstance(entry, str | bytes)), None)
        if text is not None:  # NumPy would read "7" as a number; a table of text is rather a mistake
            _not_numbers(name, column, f"holds text such as {text!r}")
        try:
            numbers[:, column] = entries.astype(float)
        except (TypeError, ValueError) as error:
            _not_numbers(name, column, f"holds something else: {error}", type(error))
    return numbers


def _frozen(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The values in row order and of one type, read-only, without a copy where they already are so."""
    values = np.asarray(values, dtype=dtype, order="C").view()
    values.flags.writeable = False
    return values


# --- matching rows -----------------------------------------------------------------------------------


def _match_rows(tables: list[_Table]) -> tuple[int, list[Hashable] | None, list[Any]]:
    """The number of instances, their ids, and where the rows of each table go."""
    everywhere = [slice(None)] * len(tables)
    with_ids = [table for table in tables if table.ids is not None]
    if all(table.counted for table in with_ids):
        return _common_length(tables), None, everywhere

    for table in with_ids:
        _check_ids(table)
    ids = with_ids[0].ids
    if all(table.ids == ids for table in with_ids):
        return _common_length(tables), ids, everywhere

    without = [table.name for table in tables if table.ids is None]
    if without:
        raise InputError(
            f"the frames have different ids, but the rows of view {without[0]!r} have none to match them by.",
            hint="give it as a frame with ids too, or put all views in one order",
        )
    return _join(tables)


def _join(tables: list[_Table]) -> tuple[int, list[Hashable], list[Any]]:
    """Outer join: every id once, in the order in which the ids are first met."""
    times_seen = Counter(row_id for table in tables for row_id in table.ids or ())
    for v, table in enumerate(tables):
        if all(times_seen[row_id] == 1 for row_id in table.ids or ()):
            other = tables[0 if v else 1]
            raise InputError(
                f"view {table.name!r} shares no id with any other view: it starts with the id "
                f"{_first(table)!r}, view {other.name!r} with {_first(other)!r}.",
                hint="use the same ids, of the same type, in all views",
            )
    number = {row_id: row for row, row_id in enumerate(times_seen)}
    places = [np.array([number[row_id] for row_id in table.ids or ()]) for table in tables]
    return len(number), list(number), places


def _common_length(tables: list[_Table]) -> int:
    lengths = [table.values.shape[0] for table in tables]
    if len(set(lengths)) > 1:
        counts = ", ".join(f"{table.name!r} has {n}" for table, n in zip(tables, lengths, strict=True))
        raise InputError(
            f"the views have different numbers of rows and no ids to match them by: {counts}.",
            hint=(
                "add a row of NaN for every instance that a view lacks, or give frames with an index (or "
                "with a column of ids, named by on=)"
            ),
            command="name the column of ids with --id, or add an empty row where a view lacks an instance",
        )
    return int(lengths[0])


def _check_ids(table: _Table) -> None:
    seen: dict[Hashable, int] = {}
    for row, row_id in enumerate(table.ids or ()):
        if is_missing(row_id):
            raise InputError(
                f"row {row} of view {table.name!r} has no id.", hint="fill in the id or drop the row"
            )
        if row_id in seen:
            raise InputError(
                f"view {table.name!r} has the id {row_id!r} twice, in rows {seen[row_id]} and {row}.",
                hint="keep one row per instance, or drop the ids and match rows by position",
                command="keep one row per instance, or name another column with --id",
            )
        seen[row_id] = row


# --- what is present ---------------------------------------------------------------------------------


def _check_mask(mask: ArrayLike | None, n_instances: int, n_views: int) -> NDArray[np.bool_]:
    if mask is None:
        return np.ones((n_instances, n_views), dtype=bool)
    wanted = np.asarray(mask)
    if wanted.dtype != bool:
        raise InputError(
            f"mask must hold True (present) and False (absent). Got the type {wanted.dtype} instead.",
            hint="convert it by mask.astype(bool)",
        )
    if wanted.shape != (n_instances, n_views):
        raise InputError(
            f"mask must have a row per instance and a column per view, here {(n_instances, n_views)}. "
            f"Got the shape {wanted.shape} instead.",
            hint="stack one column per view",
        )
    return wanted


def _present_rows(table: _Table, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The wanted rows without the all-NaN ones; an error where a wanted row is neither whole nor absent."""
    data = table.values.data if sparse.issparse(table.values) else table.values
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.sum()):  # one pass and no table of flags in the usual case
            return wanted
    flags = _flags(table, np.isnan)
    n_missing = _count_by_row(flags)
    partly = wanted & (n_missing > 0) & (n_missing < table.values.shape[1])
    if partly.any():
        row, column = _first_flag(table, flags, partly)
        raise InputError(
            f"view {table.name!r} has no value (NaN) in {row}, column {column!r}, but values in other "
            f"columns of that row ({counted(int(partly.sum()), 'such row')} in the view).",
            hint="impute it, or drop that row from the view by filling it with NaN or by mask=",
            command=(
                "fill in the empty cell, leave the column out by --columns, or empty all cells of that row "
                "(with --id, remove the row), which says that the view lacks this instance"
            ),
        )
    infinite = _flags(table, np.isinf)
    if (wanted & (_count_by_row(infinite) > 0)).any():
        row, column = _first_flag(table, infinite, wanted)
        raise InputError(
            f"view {table.name!r} has inf in {row}, column {column!r}.",
            hint="replace it by a finite value, or drop that row from the view by mask=",
            command="replace it by a finite number, or empty all cells of that row",
        )
    return wanted & (n_missing == 0)


def _flags(table: _Table, test: Any) -> Any:
    """Where `test` holds, with the shape and the sparsity of the table."""
    if not sparse.issparse(table.values):
        return test(table.values)
    flags = table.values.astype(bool)
    flags.data = test(table.values.data)
    flags.eliminate_zeros()
    return flags


def _count_by_row(flags: Any) -> NDArray[np.intp]:
    return np.diff(flags.indptr) if sparse.issparse(flags) else flags.sum(axis=1)


def _first_flag(table: _Table, flags: Any, rows: NDArray[np.bool_]) -> tuple[str, object]:
    row = int(np.flatnonzero(rows & (_count_by_row(flags) > 0))[0])
    column = flags.indices[flags.indptr[row]] if sparse.issparse(flags) else np.argmax(flags[row])
    name = f"row {row}" if table.ids is None else f"row {row} (id {table.ids[row]!r})"
    return name, table.columns[int(column)]


def _is_blank(table: Any) -> bool:
    """Whether a table says nothing: every entry is NaN."""
    if sparse.issparse(table):
        return False
    try:
        return bool(np.isnan(np.asarray(table, dtype=float)).all())
    except (TypeError, ValueError):  # not numbers: `check_views` says what is wrong with it
        return False


def _fill(values: Matrix, present: NDArray[np.bool_], place: Any, n_instances: int) -> Matrix:
    """The values with one row per instance, zero where the instance is absent."""
    if isinstance(place, slice) and present.all():
        return values
    if sparse.issparse(values):  # sparse tables have no ids, so their rows are already in place
        return _keep_rows(values, present)
    filled = np.zeros((n_instances, values.shape[1]), dtype=values.dtype)
    filled[np.arange(n_instances)[place][present]] = values[present]
    filled.flags.writeable = False
    return filled


def _keep_rows(values: Matrix, present: NDArray[np.bool_]) -> Matrix:
    """Empty the other rows. (A product with a diagonal matrix would keep 0 * NaN = NaN.)"""
    lengths = np.diff(values.indptr)
    kept = np.repeat(present, lengths)
    indptr = np.concatenate([[0], np.cumsum(np.where(present, lengths, 0))]).astype(values.indptr.dtype)
    return sparse.csr_array((values.data[kept], values.indices[kept], indptr), shape=values.shape)


def _check_scale(table: _Table, values: Matrix, ids: list[Hashable] | None) -> None:
    """Refuse what cannot be squared and added up: every distance is a sum of squares."""
    data = values.data if sparse.issparse(values) else values
    if not data.size:
        return
    high, limits = max(float(data.max()), -float(data.min())), np.finfo(values.dtype)
    if high > float(limits.max) ** 0.45:
        flags = np.abs(values) == high
        row = int(np.flatnonzero(_count_by_row(flags))[0])
        column = flags.indices[flags.indptr[row]] if sparse.issparse(flags) else np.argmax(flags[row])
        where = f"row {row}" if ids is None else f"row {row} (id {ids[row]!r})"
        raise InputError(
            f"view {table.name!r} has a value of {high:.1e} in {where}, column "
            f"{table.columns[int(column)]!r}, too large to be squared.",
            hint="divide the view by a constant, or check that the value is meant.",
        )
    if 0.0 < high < float(limits.tiny) ** 0.45:
        raise InputError(
            f"view {table.name!r} has no value above {high:.1e}, too small to be squared.",
            hint="multiply the view by a constant.",
        )


def _check_seen(observed: NDArray[np.bool_], tables: list[_Table], ids: list[Hashable] | None) -> None:
    empty = np.flatnonzero(~observed.any(axis=0))
    if empty.size:
        raise InputError(
            f"view {tables[empty[0]].name!r} has no instances.",
            hint="leave this view out, or check its NaN and its column of mask=",
            command="leave this view out, or check its empty cells",
        )
    unseen = np.flatnonzero(~observed.any(axis=1))
    if unseen.size:
        rows = _some([int(row) if ids is None else ids[row] for row in unseen])
        raise InputError(
            f"{unseen.size} of {len(observed)} instances {'is' if unseen.size == 1 else 'are'} present in no "
            f"view: {'row' if ids is None else 'id'} {rows}.",
            hint="drop these instances: nothing is known about them",
        )


# --- sentences ---------------------------------------------------------------------------------------


def _check_shape(name: str, shape: tuple[int, ...]) -> None:
    for size, what in zip(shape, ("sample", "feature"), strict=True):
        if size == 0:  # scikit-learn's words, which its users and its estimator checks know
            raise InputError(
                f"view {name!r}: found array with 0 {what}(s) (shape={tuple(shape)}) while a minimum of 1 "
                "is required.",
                hint="instances are rows and features are columns; leave out an empty view",
            )


def _not_two_dimensional(name: str, ndim: int) -> NoReturn:
    hint = {
        0: "give a table with instances in rows and features in columns",
        1: "a view with one feature is values.reshape(-1, 1); a list of rows is numpy.array(rows)",
    }.get(ndim, "give several views as a list of 2-D arrays")
    raise InputError(f"Expected 2D array for view {name!r}, got {ndim}D array instead.", hint=f"{hint}")


def _complex(name: str) -> NoReturn:
    raise InputError(
        f"Complex data not supported (view {name!r}).", hint="give real and imaginary parts as columns"
    )


def _not_numbers(
    name: str, column: object, problem: str, kind: type[Exception] = ValueError, *, by_id: bool = False
) -> NoReturn:
    hint = "encode the column as numbers or leave it out"
    error = InputTypeError if issubclass(kind, TypeError) else InputError
    raise error(
        f"view {name!r}, column {column!r} {problem}; a view needs numbers.",
        hint + (f", or pass on={column!r} if it holds the ids of the instances" if by_id else ""),
        f"{hint} by --columns" + (f", or say --id {column!r} if it holds the ids" if by_id else ""),
    )


def _first(table: _Table) -> Hashable:
    return table.ids[0] if table.ids else None


def _some(items: list[Any]) -> str:
    """The first few items, as text."""
    more = f", ... ({len(items)} in all)" if len(items) > 5 else ""
    return ", ".join(map(repr, items[:5])) + more
