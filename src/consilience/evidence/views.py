"""Views as input: several tables about the same instances, with rows absent here and there.

Every data error of a multi-view method is raised here, with the view, the row, the column and a hint;
what comes out is clean arrays and one mask.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from functools import cached_property
from numbers import Number
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import counted, id_array, is_annotated, is_missing
from consilience.evidence.cells import Cells, ColumnScaling, is_count_table, learn_cells, learn_numbers

if TYPE_CHECKING:  # arrays alone do not pay for what reads frames
    from consilience.evidence.columns import Columns

__all__ = ["Views", "check_views"]

Matrix = Any  # a 2-D float array or a scipy.sparse.csr_array; scipy carries no types

Kind = Literal["counts", "measurements", "links", "binary", "log-counts"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class TableReading(NamedTuple):
    """How a table was read that is more than complete numbers, and what completes rows of it."""

    cells: Cells | None  # None: nothing was missing, or they are counts, where a missing cell is no entry
    # Missing cells by column that was used, in the rows that are present; empty where nothing was completed.
    n_missing: tuple[int, ...] = ()
    n_rows: int = 0  # that are present
    names: tuple[str, ...] | None = None  # of the columns that were used
    columns: "Columns | None" = None  # how each was read, where they were read one by one

    @property
    def missing(self) -> float:
        """The share of the cells that are missing."""
        return sum(self.n_missing) / max(self.n_rows * len(self.n_missing), 1)

    @property
    def is_special(self) -> bool:
        """Whether it was more than complete numbers in a given order."""
        return bool(self.n_missing) or self.columns is not None

    def is_how(self, other: "TableReading | None") -> bool:
        """Whether a table was read in this way, so that its rows mean the same."""
        if other is None or not self.is_special:
            return False
        return other is self or not (self.n_missing or other.n_missing or self.columns != other.columns)

    @property
    def mixed(self) -> bool:
        """Whether columns are of several kinds, so that rows are standardised columns."""
        return self.cells is not None and not self.cells.as_numbers

    @property
    def width(self) -> int:
        """The number of columns of the table as it was given."""
        return len(self.n_missing) if self.columns is None else len(self.columns)

    @property
    def line(self) -> str:
        """How the columns were read and what is missing, in words."""
        parts = []
        if self.columns is not None:
            parts.append(self.columns.words)
        elif self.n_missing:
            parts.append(f"{counted(len(self.n_missing), 'number')}.")
        if sum(self.n_missing):
            share = f"{self.missing:.0%}" if self.missing >= 0.005 else "Less than 1%"
            done = "are filled in" if self.cells is not None else "are no entries"
            parts.append(f"{share} of the cells are missing and {done}.")
        return " ".join(parts)


class Layout(NamedTuple):
    """Which views there are, of which features: what is kept of fitted views, to read new instances by."""

    names: tuple[str, ...]
    n_features: tuple[int, ...]
    columns: tuple[tuple[str, ...] | None, ...]
    tables: tuple[TableReading | None, ...] | None = None  # what completes new rows; None: nothing does

    @property
    def special(self) -> dict[str, TableReading]:
        """How tables were read that were more than complete numbers, by view."""
        known = zip(self.names, self.tables or (), strict=self.tables is not None)
        return {name: read for name, read in known if read is not None and read.is_special}

    def match(
        self,
        X: Any,
        mask: Any = None,
        *,
        method: str,
        on: str | None = None,
        unobserved: Literal["error", "keep"] = "error",
    ) -> "Views":
        """New instances with all these views in their order; a view that was not given has no rows.

        Parameters
        ----------
        X : list, tuple or dict of tables, one table, or Views
            A dict may leave views out, a list has None for them, and a table may be NaN throughout. Columns
            of frames are matched by name where those of the fitted ones had names, others by position. Cells
            may be missing: they are completed as the fitted views say.
        mask : (n_new, n_views) array of bool, default=None
            False where the instance is absent from the view; a column for each of the fitted views.
        method : str
            Who was fitted, for errors.
        on : str, default=None
            The column of every frame that holds the ids.
        unobserved : {"error", "keep"}, default="error"
            Whether an instance that is absent from every view is an error.

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
        given, mask = self._given(X, mask, method)
        read = [self._read(name, table, method, on) for name, table in given.items()]
        views = _assembled(read, mask, unobserved)
        arrays, observed = [], np.zeros((views.n_instances, len(self.names)), dtype=bool)
        for v, (name, width) in enumerate(zip(self.names, self.n_features, strict=True)):
            if name in given:
                observed[:, v] = views.observed[:, views.names.index(name)]
                arrays.append(views.arrays[views.names.index(name)])
            else:
                arrays.append(sparse.csr_array((views.n_instances, width)))
        return replace(
            views,
            arrays=tuple(arrays),
            observed=observed,
            names=self.names,
            columns=self.columns,
            tables=self.tables,
        )

    def _given(self, X: Any, mask: Any, method: str) -> tuple[dict[str, Any], Any]:
        """The tables that hold an instance, by name, and the columns of `mask` that belong to them."""
        names = self.names
        X = one_table(X)
        if isinstance(X, Views):
            seen = X.observed if mask is None else X.observed & np.asarray(mask)
            columns = dict(zip(X.names, seen.T, strict=True))
            mask = np.column_stack([columns.get(name, np.zeros(X.n_instances, dtype=bool)) for name in names])
            X = {
                name: _ReadBefore(array, X.layout_names[v], X.table(v))
                for v, (name, array) in enumerate(zip(X.names, X.arrays, strict=True))
            }
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

    def _read(self, name: str, table: Any, method: str, on: str | None) -> "_Table":
        """A new table with its columns in the order that was fitted, and what completes its rows."""
        v = self.names.index(name)
        known = None if self.tables is None else self.tables[v]
        if isinstance(table, _ReadBefore) and known is not None and known.is_how(table.how):
            return _Table(name, table.values, range(table.values.shape[1]))
        if isinstance(table, _ReadBefore) and table.how is not None and table.how.is_special:
            raise InputError(
                f"view {name!r} was read by itself, and not as that of {method} was: its columns may mean "
                "something else.",
                hint="give the table itself instead of what check_views made of it.",
            )
        if known is not None and known.columns is not None:
            if isinstance(table, _ReadBefore):  # complete numbers, in an array that was checked
                table = table.values
            return _read_again(name, table, on, known)
        if isinstance(table, _ReadBefore):
            found = _Table(name, table.values, table.columns or range(table.values.shape[1]))
        else:
            found = _read(name, table, on, np.dtype(float), None)
            if found.unread is not None:
                _refuse_words(found, method)
        width, then = self.n_features[v], self.columns[v]
        if known is not None and known.n_missing:
            width, then = len(known.n_missing), known.names
        if found.values.shape[1] != width:
            raise InputError(
                f"view {name!r} has {found.values.shape[1]} features, but {method} is expecting "
                f"{width} features as input.",
                hint="give the columns that were fitted, in their order.",
            )
        return self._in_order(found, then, method)._replace(fitted=known, whole=self.tables is None)

    def _in_order(self, table: "_Table", then: tuple[str, ...] | None, method: str) -> "_Table":
        """The columns in the order that was fitted, where both have names."""
        if then is None or isinstance(table.columns, range):
            return table
        now = tuple(map(str, table.columns))
        if now == then:
            return table
        strange = next((name for name in now if name not in then), None)
        if strange is not None:
            raise InputError(
                f"view {table.name!r} has a column {strange!r} that was not there when {method} was fitted.",
                hint=(
                    f"the columns are {', '.join(map(repr, then[:5]))}"
                    f"{', ...' if len(then) > 5 else ''}; an array is read by position"
                ),
            )
        return table._replace(values=table.values[:, [now.index(name) for name in then]], columns=then)


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
    tables : tuple of (TableReading or None), or None
        For each view whose table was more than complete numbers how it was read, and what completed it:
        `arrays` have no gaps. ``tables[v].columns`` says how each column was read, ``tables[v].line`` in a
        sentence.
    kinds : tuple of (str or None), or None
        For each view what the user said that it holds.
    """

    arrays: tuple[Matrix, ...]
    observed: NDArray[np.bool_]
    names: tuple[str, ...]
    index: NDArray[Any] | None = None
    columns: tuple[tuple[str, ...] | None, ...] | None = None
    tables: tuple[TableReading | None, ...] | None = None
    kinds: tuple[Kind | None, ...] | None = None

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

    @cached_property
    def layout(self) -> Layout:
        """The names of the views and of their features, without their rows; and how new rows are completed.

        A view of complete numbers learns that from its rows: new ones may have gaps.
        """
        tables = []
        for v in range(self.n_views):
            read = self.table(v) or TableReading(None)
            tables.append(read if read.n_missing else read._replace(cells=self._completing(v)))
        return Layout(self.names, self.n_features, self.layout_names, tuple(tables))

    @property
    def layout_names(self) -> tuple[tuple[str, ...] | None, ...]:
        """The names of the features of each view; None where it was no frame."""
        return self.columns or (None,) * self.n_views

    @property
    def n_given(self) -> tuple[int, ...]:
        """The number of columns of each table as it was given."""
        return tuple(
            read.width if read is not None and read.is_special else width
            for width, read in zip(self.n_features, map(self.table, range(self.n_views)), strict=True)
        )

    def _completing(self, view: int) -> Cells | None:
        """What completes new rows of a view of complete numbers; None for counts."""
        x = self.arrays[view]
        if sparse.issparse(x):
            return None
        rows = self.rows(view)[1]
        if not np.isfinite(rows.sum()):  # similarities that were given, of which some are absent
            return None
        if is_count_table(float(x.min()), int(np.count_nonzero(x)), rows.size):
            return None
        return learn_numbers(rows)

    def table(self, view: int) -> TableReading | None:
        """How a table was read that is more than complete numbers; None for one that is not."""
        return None if self.tables is None else self.tables[view]

    def scaling(self, view: int) -> ColumnScaling | None:
        """How the columns of a completed table are standardised; None for complete numbers and for counts,
        which are scaled by what they hold."""
        read = self.table(view)
        return None if read is None or read.cells is None or not read.n_missing else read.cells.scaling

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

    def part(self, rows: ArrayLike, views: Sequence[int] | None = None) -> "Views":
        """Some of the instances, in this order, and some of the views (all, by default).

        >>> check_views({"a": [[1.0], [2.0]], "b": [[3.0], [4.0]]}).part([1], [0]).arrays
        (array([[2.]]),)
        """
        rows, views = np.asarray(rows), list(range(self.n_views) if views is None else views)
        columns = None if self.columns is None else tuple(self.columns[v] for v in views)
        tables = None if self.tables is None else tuple(self.tables[v] for v in views)
        return replace(
            self,
            arrays=tuple(self.arrays[v][rows] for v in views),
            observed=self.observed[rows][:, views],
            names=tuple(self.names[v] for v in views),
            index=None if self.index is None else self.index[rows],
            columns=columns,
            tables=tables,
            kinds=None if self.kinds is None else tuple(self.kinds[v] for v in views),
        )

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
        read = [table for table in self.tables or () if table is not None]
        n_missing = sum(sum(table.n_missing) for table in read)
        gaps = ""
        if n_missing:
            gaps = f", {counted(n_missing, 'missing cell')} filled in"
        return f"Views({self.n_instances} instances; {tables}; {absent:.0%} of rows absent{gaps})"


class _Table(NamedTuple):
    """One view as it was read, before rows are matched."""

    name: str
    values: Matrix
    columns: Sequence[object]
    ids: list[Hashable] | None = None
    counted: bool = False  # the ids are pandas' default 0..n-1, which may mean nothing
    fitted: TableReading | None = None  # what completes its rows, where that is known
    whole: bool = False  # whether gaps are refused, since nothing is known that would fill them
    unread: Any = None  # a frame or array whose columns are yet to be read; `values` has no columns then
    said: Any = None  # what the user says of columns
    read: "Columns | None" = None  # how its columns were read


class _ReadBefore(NamedTuple):
    """A table of views that have been read already."""

    values: Matrix
    columns: tuple[str, ...] | None
    how: TableReading | None


def check_views(
    views: Any,
    *,
    mask: ArrayLike | None = None,
    on: str | None = None,
    kind: Any = None,
    dtype: DTypeLike = np.float64,
    unobserved: Literal["error", "keep"] = "error",
) -> Views:
    """Read, align and check the views of a set of instances.

    Parameters
    ----------
    views : list, tuple or dict of tables, or one table
        A table has instances in rows and features in columns: a 2-D array, a scipy sparse matrix, or a
        pandas, polars or Arrow frame. One 2-D array, sparse matrix or frame is one view. The keys of a dict
        name the views; otherwise they are called ``view0``, ``view1``, ...

        A table of numbers is taken as it is. Where a column holds something else (text, categories, dates),
        each column is read by its values as a number, yes/no, ordered, a category or a date; those that are
        empty, constant, ids or free text are left out, with a warning where that is a guess. Numbers then end
        at five quartile ranges beyond the quartiles and are standardised; a category is a column a level,
        scaled so that each column counts alike.

        An instance is absent from a view when its row is all NaN, when a frame does not list its id, or
        when `mask` says so. A row with some NaN is present: its missing cells are filled in with what its
        other cells say about them, by a factor model of the table; in a table of counts they are no entries.

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
    kind : str or dict, default=None
        What views and columns hold, where it is not recognised. By the name of a view: "counts",
        "measurements", "links", "binary" or "log-counts", see :class:`~consilience.PSE`. By
        ``"view.column"``, or by the name of a view for all its columns: "number", "yes/no", "ordered",
        "category", "date" or "left out"; "number:comma" and "number:point" say the decimal mark,
        "date:day-first" and "date:month-first" the order; a list of levels, or "low<mid<high", is an order.
    dtype : numpy float type, default=numpy.float64
        The type of the arrays.
    unobserved : {"error", "keep"}, default="error"
        Whether an instance that is absent from every view is an error.

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

    Columns of any kind, of which cells are missing:

    >>> import pandas as pd
    >>> clinic = pd.DataFrame(
    ...     {"age": [61, 58, None, 47], "sex": ["f", "m", "m", None], "stage": ["I", "II", "III", "II"]}
    ... )
    >>> views = check_views({"clinic": clinic}, kind={"clinic.stage": ["I", "II", "III"]})
    >>> print(views.tables[0].line)
    1 number (age), 1 yes/no (sex), 1 ordered (stage). 17% of the cells are missing and are filled in.
    """
    if isinstance(views, Views) and mask is None and on is None:
        return views if kind is None else _said_of_read(views, kind)
    if np.dtype(dtype).kind != "f":
        raise InputError(f"dtype must be a float type. Got {dtype!r} instead.", hint="use numpy.float64")
    named = _named_tables(views)
    of_views, of_columns = _said(
        kind, lambda: {name: _column_names(name, table, on) for name, table in named}
    )
    tables = [_read(name, table, on, np.dtype(dtype), of_columns.get(name)) for name, table in named]
    found = _assembled(tables, mask, unobserved)
    if not of_views:
        return found
    return replace(found, kinds=tuple(of_views.get(name) for name in found.names))


def _assembled(tables: "list[_Table]", mask: ArrayLike | None, unobserved: str = "error") -> Views:
    """Tables with their rows matched and their cells completed."""
    n_instances, ids, places = _match_rows(tables)
    wanted = _check_mask(mask, n_instances, len(tables))

    arrays: list[Matrix] = []
    read: list[TableReading | None] = []
    columns: list[tuple[str, ...] | None] = []
    observed = np.zeros((n_instances, len(tables)), dtype=bool)
    for v, (given, place) in enumerate(zip(tables, places, strict=True)):
        given = _with_columns_read(given, wanted[place, v])
        present, has_gaps = _present_rows(given, wanted[place, v])
        observed[place, v] = present
        table, how = given, None
        if has_gaps and given.whole:
            _refuse_gap(given, present)
        if given.read is not None:
            how = TableReading(None, (), int(present.sum()), _names(given.columns), given.read)
        completed = given.fitted is not None and bool(given.fitted.n_missing)
        if has_gaps or completed or _is_mixed(given):
            _check_scale(given, _fill(_without_missing(given.values), present, place, n_instances), ids)
            table, how = _completed(given, present)
        arrays.append(_fill(table.values, present, place, n_instances))
        read.append(how)
        columns.append(_names(table.columns))
        _check_scale(table, arrays[-1], ids)
    _check_seen(observed, tables, ids, unobserved)

    observed.flags.writeable = False
    index = None if ids is None else id_array(ids)
    names = tuple(table.name for table in tables)
    return Views(tuple(arrays), observed, names, index, tuple(columns), tuple(read) if any(read) else None)


def _names(columns: Sequence[object]) -> tuple[str, ...] | None:
    """Names of columns; None where they are known by position."""
    return None if isinstance(columns, range) else tuple(map(str, columns))


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


def _read(name: str, table: Any, on: str | None, dtype: np.dtype[Any], said: Any) -> _Table:
    frame = _as_frame(name, table)
    if frame is not None:
        return _read_frame(name, frame, on, dtype, said)
    if on is not None:
        raise InputError(
            f"on={on!r} names a column of ids, but view {name!r} is not a frame and has no named columns.",
            hint="give every view as a frame, or match rows by position and leave out on=",
        )
    if sparse.issparse(table):
        if said is not None:
            raise InputError(
                f"the columns of view {name!r} are numbers, since it is sparse.",
                hint="say what the view holds, as in 'counts', or give it as a frame.",
            )
        values = _read_sparse(name, table, dtype)
    else:
        given = _two_dimensional(name, table)
        if said is not None or _holds_words(given):
            unread = given.astype(object) if given.dtype.kind not in "OUSMm" else given
            return _Table(name, np.empty((len(given), 0), dtype), range(0), unread=unread, said=said)
        values = _read_array(name, given, dtype)
    return _Table(name, values, range(values.shape[1]))


def _as_frame(name: str, table: Any) -> Any:
    """The table as a narwhals frame; None if it is no frame."""
    if isinstance(table, np.ndarray | list | tuple) or sparse.issparse(table):
        return None
    import narwhals as nw  # only when a frame may be present: arrays alone do not pay for it

    try:
        frame = nw.from_native(table, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InputError(
            f"view {name!r} has two columns of one name ({' '.join(str(error).split())}).",
            hint="give every column its own name",
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise InputError(f"view {name!r} is a lazy frame.", hint="call .collect() on it first")
    return frame if isinstance(frame, nw.DataFrame) else None


def _read_frame(name: str, frame: Any, on: str | None, dtype: np.dtype[Any], said: Any) -> _Table:
    import narwhals as nw

    ids, counted = _frame_ids(name, frame, on)
    n_rows = len(frame)  # polars may forget it with the last column
    if on is not None:
        frame = frame.drop(on)
    _check_shape(name, (n_rows, len(frame.columns)))
    if said is not None or not all(kind.is_numeric() or kind == nw.Boolean for kind in frame.schema.values()):
        return _Table(name, np.empty((n_rows, 0), dtype), (), ids, counted, unread=frame, said=said)
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


def _two_dimensional(name: str, table: Any) -> NDArray[Any]:
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
    return values


def _holds_words(values: NDArray[Any]) -> bool:
    """Whether an array holds text, dates or times, so that its columns have to be read."""
    if values.dtype.kind != "O":
        return values.dtype.kind not in "biuf"
    return any(isinstance(entry, str | bytes | date | time | np.datetime64) for entry in values.flat)


def _read_array(name: str, values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "biuf":
        values = _numbers_from_objects(name, values.astype(object))
    return _frozen(values, dtype)


def _numbers_from_objects(name: str, values: NDArray[Any]) -> NDArray[np.float64]:
    numbers = np.empty(values.shape)
    for column, entries in enumerate(values.T):
        try:
            numbers[:, column] = entries.astype(float)
        except (TypeError, ValueError) as error:
            _not_numbers(name, column, f"holds an object: {error}", type(error))
    return numbers


def _frozen(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The values in row order and of one type, read-only, without a copy where they already are so."""
    values = np.asarray(values, dtype=dtype, order="C").view()
    values.flags.writeable = False
    return values


# --- columns that are read one by one ----------------------------------------------------------------


def _column_names(name: str, table: Any, on: str | None) -> list[str]:
    """What the columns of a table are called: in an array, by their positions."""
    frame = _as_frame(name, table)
    if frame is not None:
        return [str(column) for column in frame.columns if column != on]
    shape = table.shape if hasattr(table, "shape") else _two_dimensional(name, table).shape
    return list(map(str, range(shape[1]))) if len(shape) == 2 else []


def _said(
    kind: Any, columns: Callable[[], Mapping[str, Sequence[str]]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was said of views, and of columns by view."""
    if kind is None or (isinstance(kind, str) and kind == "auto"):
        return {}, {}
    from consilience.evidence.kinds import split_kinds

    of_views, of_columns = split_kinds(kind, columns(), ("auto", *KINDS))
    return {name: said for name, said in of_views.items() if said != "auto"}, of_columns


def _said_of_read(views: Views, kind: Any) -> Views:
    """Views with what was said of them; columns have been read, and cannot be read otherwise any more."""
    names = {}
    for v, name in enumerate(views.names):
        read = views.table(v)
        if read is not None and read.columns is not None:
            names[name] = [column.name for column in read.columns]
        else:
            names[name] = list(views.layout_names[v] or map(str, range(views.n_features[v])))
    of_views, of_columns = _said(kind, lambda: names)
    for name, said in of_columns.items():
        read = views.table(views.names.index(name))
        _require_read_so(name, None if read is None else read.columns, names[name], said)
    before = views.kinds or (None,) * views.n_views
    kinds = tuple(of_views.get(name, known) for name, known in zip(views.names, before, strict=True))
    return replace(views, kinds=kinds)


def _require_read_so(name: str, read: "Columns | None", names: Sequence[str], said: Any) -> None:
    from consilience.evidence.kinds import said_of

    for column, wanted in said_of(names, said, name).items():
        found = "number" if read is None else read[column].kind
        if found != wanted.kind:
            raise InputError(
                f"view {name!r}, column {column!r} is said to be {wanted.kind!r}, and has been read already, "
                f"as {found!r}.",
                hint="say it where the tables are read, as in check_views(tables, kind=...).",
            )


def _with_columns_read(table: _Table, wanted: NDArray[np.bool_]) -> _Table:
    """A table of which each column was read, by the rows that are wanted; others are missing."""
    if table.unread is None:
        return table
    from consilience.evidence.columns import read_columns

    n, dtype = len(wanted), table.values.dtype
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return table._replace(values=np.full((n, 1), np.nan, dtype), columns=range(1))
    part = table.unread if len(rows) == n else table.unread[rows]
    ids = None if table.ids is None or table.counted else [table.ids[row] for row in rows]
    found, read = read_columns(part, name=table.name, kinds=table.said, ids=ids, rows=rows)
    read.warn()
    values = np.full((n, found.shape[1]), np.nan, dtype)
    values[rows] = found
    values.flags.writeable = False
    return table._replace(values=values, columns=[column.name for column in read.used], read=read)


def _is_mixed(table: _Table) -> bool:
    """Whether its columns are of more kinds than numbers alone, or yes and no alone, which are 0 and 1."""
    if table.read is None:
        return False
    kinds = {column.kind for column in table.read.used}
    return kinds not in ({"number"}, {"yes/no"})


def _read_again(name: str, table: Any, on: str | None, known: TableReading) -> _Table:
    """New rows of a table whose columns were read one by one."""
    from consilience.evidence.columns import read_again

    assert known.columns is not None
    frame = _as_frame(name, table)
    ids, counted = None, False
    if frame is not None:
        ids, counted = _frame_ids(name, frame, on)
        table = frame.drop(on) if on is not None else frame
    elif sparse.issparse(table):
        table = table.toarray()
    values = read_again(table, known.columns, ids=None if counted else ids)
    columns = [column.name for column in known.columns.used]
    return _Table(name, _frozen(values, np.dtype(float)), columns, ids, counted, known)


def _refuse_words(table: _Table, method: str) -> NoReturn:
    """New rows with text where there were numbers."""
    known = _with_columns_read(table, np.ones(len(table.values), dtype=bool)).read
    assert known is not None
    column = next((one for one in known if one.kind != "number"), known.columns[0])
    raise InputError(
        f"view {table.name!r}, column {column.name!r} holds text; it held numbers when {method} was fitted.",
        hint="give the columns that were fitted, as numbers.",
        column=column.name,
    )


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


def _present_rows(table: _Table, wanted: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], bool]:
    """The wanted rows without the all-NaN ones, and whether any of them has a gap."""
    data = table.values.data if sparse.issparse(table.values) else table.values
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.sum()):  # one pass and no table of flags in the usual case
            return wanted, False
    flags = _flags(table, np.isnan)
    n_missing = _count_by_row(flags)
    infinite = _flags(table, np.isinf)
    if (wanted & (_count_by_row(infinite) > 0)).any():
        row, column = _first_flag(table, infinite, wanted)
        raise InputError(
            f"view {table.name!r} has inf in {row}, column {column!r}.",
            hint="replace it by a finite value, or drop that row from the view by mask=",
            command="replace it by a finite number, or empty all cells of that row",
        )
    present = wanted & (n_missing < table.values.shape[1])
    return present, bool((n_missing[present] > 0).any())


def _refuse_gap(table: _Table, present: NDArray[np.bool_]) -> NoReturn:
    flags = _flags(table, np.isnan)
    row, column = _first_flag(table, flags, present)
    raise InputError(
        f"view {table.name!r} has no value (NaN) in {row}, column {column!r}, and nothing that was fitted "
        "says what to fill in.",
        hint="fill it in, or drop that row from the view by filling it with NaN or by mask=",
        command="fill in the empty cell, or empty all cells of that row",
    )


def _completed(table: _Table, present: NDArray[np.bool_]) -> tuple[_Table, TableReading | None]:
    """A table without gaps in the rows that are present, and how it was read."""
    values, known = table.values, table.fitted
    rows = values[np.flatnonzero(present)]
    n_missing = _n_missing(rows)
    names = _names(table.columns)
    if known is not None:
        cells = known.cells
    elif _is_mixed(table):
        assert table.read is not None
        n_levels = [
            len(column.levels or ()) if column.kind in ("category", "yes/no") else 0
            for column in table.read.used
        ]
        cells = learn_cells(np.asarray(rows, dtype=float), n_levels, names, as_numbers=False)
    elif not rows.shape[0] or _are_counts(rows):
        cells = None
    else:
        rows = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=float)
        cells = learn_cells(rows, (0,) * rows.shape[1], names, as_numbers=True)
    how = TableReading(cells, n_missing, int(present.sum()), names, table.read)
    if cells is None:
        return table._replace(values=_without_missing(values)), how
    values = values.toarray() if sparse.issparse(values) else values
    out = np.zeros((len(values), cells.width), dtype=values.dtype)
    out[present] = cells.complete(values[present])
    out.flags.writeable = False
    return table._replace(values=out, columns=_names_after(table, cells)), how


def _n_missing(rows: Matrix) -> tuple[int, ...]:
    """Missing cells by column."""
    if sparse.issparse(rows):
        return tuple(np.bincount(rows.indices[np.isnan(rows.data)], minlength=rows.shape[1]).tolist())
    return tuple(np.isnan(rows).sum(axis=0).tolist())


def _are_counts(rows: Matrix) -> bool:
    """Whether the cells that are there are counts."""
    data = rows.data if sparse.issparse(rows) else rows
    known = data[~np.isnan(data)]
    n_cells = rows.shape[0] * rows.shape[1] - (data.size - known.size)
    return is_count_table(float(known.min(initial=0.0)), int(np.count_nonzero(known)), n_cells)


def _without_missing(values: Matrix) -> Matrix:
    """Counts in which missing cells are no entries."""
    if not sparse.issparse(values):
        return _frozen(np.nan_to_num(values, nan=0.0), values.dtype)
    values = values.copy()
    values.data[np.isnan(values.data)] = 0.0
    values.eliminate_zeros()
    return values


def _names_after(table: _Table, cells: Cells) -> Sequence[object]:
    """Names of the columns of completed rows: of a category, one a level."""
    if isinstance(table.columns, range):
        return table.columns
    used = table.read.used if table.read is not None else ()
    names = []
    for j, level in zip(cells.encoding.source.tolist(), cells.encoding.level.tolist(), strict=True):
        levels = used[j].levels if used else None
        names.append(table.columns[j] if level < 0 or levels is None else f"{used[j].name} = {levels[level]}")
    return names


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
    if sparse.issparse(table) or isinstance(table, _ReadBefore):
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


def _check_seen(
    observed: NDArray[np.bool_], tables: list[_Table], ids: list[Hashable] | None, unobserved: str
) -> None:
    empty = np.flatnonzero(~observed.any(axis=0))
    if empty.size:
        raise InputError(
            f"view {tables[empty[0]].name!r} has no instances.",
            hint="leave this view out, or check its NaN and its column of mask=",
            command="leave this view out, or check its empty cells",
        )
    unseen = np.flatnonzero(~observed.any(axis=1))
    if unseen.size and unobserved == "error":
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


def _not_numbers(name: str, column: object, problem: str, kind: type[Exception]) -> NoReturn:
    error = InputTypeError if issubclass(kind, TypeError) else InputError
    raise error(
        f"view {name!r}, column {column!r} {problem}; a cell is a number, a text or a date.",
        hint="give every part a column of its own, or leave the column out",
    )


def _first(table: _Table) -> Hashable:
    return table.ids[0] if table.ids else None


def _some(items: list[Any]) -> str:
    """The first few items, as text."""
    more = f", ... ({len(items)} in all)" if len(items) > 5 else ""
    return ", ".join(map(repr, items[:5])) + more
