"""What distinguishes clusters in columns that were not clustered: how strongly, and in which direction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple, Protocol

import narwhals as nw
import numpy as np
from scipy.stats import rankdata

from consilience._support.errors import InputError, InputTypeError
from consilience._support.shown import Table, as_html
from consilience._support.sklearn import Interval, check_parameter, random_source
from consilience._support.values import counted, did_you_mean, is_missing
from consilience.core import hot
from consilience.core.blocks import map_blocks
from consilience.diagnostics.typical import in_words, shares_and_lifts, typicality
from consilience.evidence.columns import Column, numbers_and_dates
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import Finding, Tabulated, corrected_association
from consilience.io.cells import is_cell_mark
from consilience.io.features import day_text
from consilience.io.frames import require_ids, rows_text

_LEVELS = 3  # of a category that are named for a cluster
_SHOWN = 2  # clusters that the printed table names for a column
_ROUNDING = 1e-9


class Clustered(Protocol):
    """What `profile` reads of a :class:`consilience.Fusion`."""

    @property
    def labels(self) -> np.ndarray:
        """Cluster of every row of the table."""

    @property
    def partitions(self) -> Partitions:
        """The table."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the clusters."""


@dataclass(frozen=True, repr=False, eq=False)
class Level(Tabulated):
    """A value of a category in a cluster."""

    level: Any
    count: int
    share: float  # of the cluster's members that have a value
    lift: float  # that share over the share in all clusters together


@dataclass(frozen=True, repr=False, eq=False)
class ClusterNumbers(Tabulated):
    """A column of numbers in one cluster; NaN where no member has a value."""

    cluster: int
    n: int  # members that have a value
    missing: float  # share of the members that have none
    mean: float
    median: float
    shift: float  # mean in the cluster minus the mean of all, in standard deviations of the column


@dataclass(frozen=True, repr=False, eq=False)
class ClusterLevels(Tabulated):
    """A column of categories in one cluster."""

    cluster: int
    n: int
    missing: float
    levels: tuple[Level, ...]  # what is more frequent than elsewhere, the most typical first; at most three


@dataclass(frozen=True, repr=False, eq=False)
class ColumnProfile(Tabulated):
    """What the clusters have to do with one column."""

    name: str
    kind: str  # "number", "date" (in days since 1970) or "category"
    effect: float  # 0 (nothing) to 1 (the cluster says all)
    p_value: float  # of a difference this large in any of the columns by chance
    missing: float  # share of the instances without a value
    clusters: tuple[ClusterNumbers | ClusterLevels, ...]  # one for each cluster

    def __repr__(self) -> str:
        return f"ColumnProfile({self.name!r}, {self.kind}, effect {self.effect:.2f}, p {self.p_value:.3f})"


@dataclass(frozen=True, repr=False, eq=False)
class LeftOut(Tabulated):
    """A column that nothing can be said about, and why."""

    name: str
    reason: str


@dataclass(frozen=True, repr=False, eq=False)
class Profile(Tabulated):
    """What `profile` returns; ``print`` shows it as a table."""

    cluster_names: tuple[str, ...]
    n_instances: int
    n_permutations: int
    columns: tuple[ColumnProfile, ...]  # the strongest first
    left_out: tuple[LeftOut, ...]
    warnings: list[Finding]

    def __repr__(self) -> str:
        return (
            f"Profile({counted(len(self.columns), 'column')} of {counted(self.n_instances, 'instance')} in "
            f"{counted(len(self.cluster_names), 'cluster')}, {len(self.left_out)} left out)"
        )

    def __str__(self) -> str:
        width = max([6, *(len(column.name) for column in self.columns)])
        lines = [
            f"{counted(len(self.columns), 'column')} of {counted(self.n_instances, 'instance')} in "
            f"{counted(len(self.cluster_names), 'cluster')}; p-values by {self.n_permutations} permutations, "
            "corrected for all columns",
            "",
            f"{'column':{width}s}  effect  p-value  missing  most different",
        ]
        for column in self.columns:
            said = "; ".join(self._most_different(column)) or "-"
            numbers = f"{column.effect:6.2f}  {column.p_value:7.3f}  {column.missing:7.0%}"
            lines.append(f"{column.name:{width}s}  {numbers}  {said}")
        if self.left_out:
            lines += ["", *(f"left out: {one.name} ({one.reason})" for one in self.left_out)]
        lines += ["", *(f"Warning: {sentence}" for sentence in self.warnings)] if self.warnings else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        said = f"{self!r}; p-values by {self.n_permutations} permutations, corrected for all columns."
        rows = [
            (
                column.name,
                f"{column.effect:.2f}",
                f"{column.p_value:.3f}",
                f"{column.missing:.0%}",
                "; ".join(self._most_different(column)) or "-",
            )
            for column in self.columns
        ]
        table = Table(("column", "effect", "p-value", "missing", "most different"), rows)
        left_out = [f"Left out: {one.name} ({one.reason})." for one in self.left_out]
        return as_html([said, *left_out], table, warnings=self.warnings)

    def _most_different(self, column: ColumnProfile) -> Iterator[str]:
        """The clusters that make most of the difference: a few members far away, or many near by."""
        said = []
        for found in column.clusters:
            name = self.cluster_names[found.cluster]
            if isinstance(found, ClusterNumbers):
                if found.n:
                    mean = day_text(round(found.mean)) if column.kind == "date" else f"{found.mean:.4g}"
                    text = f"{name}: mean {mean} ({found.shift:+.1f} sd)"
                    said.append((found.n * found.shift**2, text))
            elif found.levels:
                top = found.levels[0]
                amount = top.count * np.log(top.lift)
                said.append((amount, f"{name}: {in_words(top.level, top.share, top.lift)}"))
        said.sort(key=lambda part: -part[0])
        return (text for _, text in said[:_SHOWN])


def profile(
    fusion: Clustered, frame: Any, *, on: str | None = None, n_permutations: int = 199, random_state: Any = 0
) -> Profile:
    r"""What distinguishes the clusters in columns that were not clustered: numbers and categories.

    The effect of a column is the strength of its link with the clusters, from 0 to 1, corrected for what
    chance alone would show in small tables. For numbers it is the correlation ratio of their ranks,

    .. math:: \sqrt{1 - (1 - R^2) \frac{n - 1}{n - k}}, \qquad (n - 1) R^2 = H

    so that outliers and the scale of a column do not matter; its square is known as epsilon squared. For
    categories it is Cramer's V [1]_. For a column of two values both are the same up to terms of 1 / n.

    The p-value is the chance of a difference this large in any of the columns if clusters had nothing to do
    with them. Rows are shuffled as a whole, so that columns which say the same count once; in each column
    values move among the instances that have one, so that gaps which depend on the cluster are no difference.

    Symbols: H -> statistic of Kruskal and Wallis; n -> instances with a value; k -> clusters with such.
    Cost: instances x columns for each permutation.

    Parameters
    ----------
    fusion : Fusion
        A clustering.
    frame : pandas, polars or Arrow table
        A row per instance, in any order where the instances have ids, else in the order of the clustering. A
        row of an unknown id is left out; an instance without a row has no values. Text is read as
        :func:`consilience.check_views` reads it: "1,234.50" is a number and "2020-04-25" a date. Other text,
        booleans and categoricals are categories; NaN, None, blank text, NA, ? and the like are missing.
    on : str, optional
        Column of ids. None is the column that is named as the ids of the fusion are, or the index of a pandas
        frame.
    n_permutations : int, default=199
        How often the clusters are shuffled; p-values are multiples of one over this number plus one.
    random_state : int, RandomState or None, default=0
        The seed of the shuffles. Fixed, so that a table is the same twice.

    Returns
    -------
    profile : Profile
        ``columns``, the one of strongest effect first, each with ``effect``, ``p_value``, ``missing`` and
        what it is like in each of the ``clusters``; ``left_out``, columns of which nothing can be said, with
        the reason; ``warnings``. ``print`` shows a table, ``as_dict()`` has plain values.

    Notes
    -----
    The correction is that of Westfall and Young [2]_, step by step from the strongest column down. It holds
    the chance of any false finding, as Holm's correction of single p-values does, but needs no more
    permutations for many columns: with 50 columns, Holm could not come below .25 with 199 of them. Statistics
    of numbers and categories are compared by the cube root of Wilson and Hilferty, which takes their degrees
    of freedom out.

    A column that the base clusterings were made of is different between clusters by construction: its effect
    is worth reading, its p-value is not. Base clusterings themselves are left out.

    References
    ----------
    .. [1] W. Bergsma, "A bias-correction for Cramer's V and Tschuprow's T", Journal of the Korean Statistical
       Society 42, 2013.
    .. [2] P. H. Westfall and S. S. Young, "Resampling-Based Multiple Testing", Wiley, 1993.

    Examples
    --------
    >>> import pandas as pd
    >>> from consilience import fuse
    >>> from consilience.diagnostics import profile
    >>> teams = [["gold", "a"], ["gold", "a"], ["basic", "b"], ["basic", "b"], ["basic", "b"]] * 4
    >>> fusion = fuse(teams, 2, method="DAL")
    >>> city = ["Rome", "Rome", "Rome", "Bonn", None]
    >>> print(profile(fusion, pd.DataFrame({"age": [61, 64, 35, 38, 29] * 4, "city": city * 4})))
    2 columns of 20 instances in 2 clusters; p-values by 199 permutations, corrected for all columns
    <BLANKLINE>
    column  effect  p-value  missing  most different
    age       0.86    0.005       0%  1: mean 62.5 (+1.2 sd); 0: mean 34 (-0.8 sd)
    city      0.53    0.090      20%  0: Bonn 50% (x2.0); 1: Rome 100% (x1.3)
    """
    if not (hasattr(fusion, "labels") and hasattr(fusion, "partitions")):
        raise InputTypeError(
            f"profile needs a Fusion, got {type(fusion).__name__}.",
            hint="pass what fuse or fuse_views returned.",
        )
    name = "profile"
    check_parameter("n_permutations", n_permutations, Interval(Integral, 1, None, closed="left"), name)
    rng = random_source(random_state)
    partitions, names = fusion.partitions, fusion.names
    given = _read(frame)
    place, id_column, warnings = _rows_of(partitions, frame, given, on)
    member = np.repeat(np.arange(len(place)), partitions.counts)
    member = member[fusion.labels[member] >= 0]
    place, labels = place[member], fusion.labels[member].astype(np.int64)
    if len(labels) < partitions.n_instances:
        unassigned = counted(partitions.n_instances - len(labels), "instance")
        warnings.append(Finding(f"left out: {unassigned} in no cluster.", hint="their label is -1."))

    read, left_out = [], []
    clustered = _known_by_name(partitions)
    written = numbers_and_dates(
        {own: values for own, values in given.items() if own != id_column and _may_be_read(values)}, name=name
    )
    for column, values in given.items():
        if column == id_column:
            continue
        try:
            if column in clustered:
                raise _NothingToSay("it is one of the base clusterings")
            found = _column(column, values, place, written.get(column))
            _require_something(found, labels)
            read.append(found)
        except _NothingToSay as reason:
            left_out.append(LeftOut(column, str(reason)))
    # By name, so that the order of columns does not matter to the shuffles.
    read.sort(key=lambda column: column.name)
    described = _describe(read, labels, len(names), n_permutations, rng) if read else []
    described.sort(key=lambda column: (-round(column.effect, 12), column.name))
    return Profile(names, len(labels), int(n_permutations), tuple(described), tuple(left_out), warnings)


# --- from a frame to columns of the instances ---------------------------------------------------------------


class _Column(NamedTuple):
    """A column, an entry per instance: numbers (NaN is missing), or codes (-1 is missing) of levels."""

    name: str
    values: np.ndarray
    levels: list[Any] | None = None
    is_date: bool = False

    @property
    def seen(self) -> np.ndarray:
        return ~np.isnan(self.values) if self.levels is None else self.values >= 0


def _read(frame: Any) -> dict[str, nw.Series[Any]]:
    if nw.dependencies.is_polars_lazyframe(frame):
        raise InputTypeError("the frame is lazy.", hint="frame.collect().")
    if not nw.dependencies.is_into_dataframe(frame):
        raise InputTypeError(
            f"profile needs a frame, got {type(frame).__name__}.", hint="pandas.DataFrame(columns) makes one."
        )
    try:
        table = nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError as error:
        twice = " ".join(str(error).split())
        raise InputError(f"two columns have one name ({twice}).", hint="rename one of them.") from error
    # Not by name: pandas also has columns named by numbers and tuples.
    names = [str(name) for name in table.columns]
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise InputError(f"two columns are named {twice!r}.", hint="rename one of them.")
    return dict(zip(names, table.iter_columns(), strict=True))


def _rows_of(
    partitions: Partitions, frame: Any, given: dict[str, nw.Series[Any]], on: str | None
) -> tuple[np.ndarray, str | None, list[Finding]]:
    """The row of the frame of every row of the table, -1 for none; the column of ids; what did not fit."""
    n = len(frame)
    if on is not None and on not in given:
        raise InputError(f"the frame has no column {on!r}.", did_you_mean(on, given))
    if partitions.index is None:
        if on is not None:
            raise InputError(
                f"on={on!r} names a column of ids, but the instances of the fusion have none.",
                hint="give ids to fuse (index=...), or leave out on= and keep the order of the instances.",
            )
        if n != partitions.n_rows:
            raise InputError(
                f"the frame has {counted(n, 'row')}, the fusion {counted(partitions.n_rows, 'instance')}, "
                "and there are no ids.",
                hint="give a row for each, in their order, or ids to fuse (index=...).",
            )
        return np.arange(n), None, []
    named = partitions.index_name
    column = on if on is not None or named is None else str(named)
    if column in given:
        ids = given[column].to_numpy()
    elif nw.dependencies.is_pandas_dataframe(frame):
        column, ids = None, np.asarray(frame.index)
    else:
        raise InputError(
            "the instances of the fusion have ids, the frame has none.", hint="name their column by on=."
        )
    require_ids(ids, "the frame")
    row_of = {key: row for row, key in enumerate(ids.tolist())}
    wanted = partitions.index.tolist()
    place = np.fromiter((row_of.get(key, -1) for key in wanted), dtype=np.intp, count=len(wanted))
    matched = int((place >= 0).sum())
    if not matched:
        raise InputError(
            f"no id of the frame is one of the fusion: the frame has {ids.tolist()[0] if n else None!r}, the "
            f"fusion has {wanted[0]!r}.",
            hint="use the same ids, of the same type; name their column by on=.",
        )
    warnings = []
    if matched < len(wanted):
        first = wanted[int(np.argmin(place >= 0))]
        sentence = (
            f"the frame has no row for {counted(len(wanted) - matched, 'instance')}, such as {first!r}."
        )
        warnings.append(Finding(sentence, hint="they have no values; check the ids."))
    if matched < n:
        sentence = f"the fusion has no instance for {counted(n - matched, 'row')} of the frame."
        warnings.append(Finding(sentence, hint="they are left out; check the ids."))
    return place, column, warnings


def _known_by_name(partitions: Partitions) -> frozenset[str]:
    """Names of the base clusterings, unless they are only positions of an array."""
    names = partitions.column_names
    return frozenset() if names == tuple(map(str, range(len(names)))) else frozenset(names)


class _NothingToSay(Exception):
    """Why a column is left out."""


def _may_be_read(values: nw.Series[Any]) -> bool:
    """Whether a column may hold numbers or dates that are stored as something else."""
    return values.dtype in (nw.String, nw.Object, nw.Unknown, nw.Date, nw.Datetime)


def _column(
    name: str, values: nw.Series[Any], place: np.ndarray, read: tuple[np.ndarray, Column] | None
) -> _Column:
    kind = values.dtype
    if read is not None:
        return _numbers(name, read[0], place)._replace(is_date=read[1].kind == "date")
    if kind.is_numeric():
        return _numbers(name, values.cast(nw.Float64).to_numpy(), place)
    if kind in (nw.Boolean, nw.String, nw.Categorical, nw.Enum):
        return _categories(name, values.to_list(), place)
    if kind in (nw.Object, nw.Unknown):
        entries = values.to_list()
        known = [value for value in entries if not _is_blank(value)]
        if known and all(isinstance(value, Real) and not isinstance(value, bool) for value in known):
            return _numbers(name, np.array([np.nan if _is_blank(v) else float(v) for v in entries]), place)
        return _categories(name, entries, place)
    raise _NothingToSay(f"its values are of type {kind}, neither numbers nor categories")


def _is_blank(value: Any) -> bool:
    if isinstance(value, str):
        return is_cell_mark(value)
    return is_missing(value) or (isinstance(value, bytes) and not value)


def _numbers(name: str, values: np.ndarray, place: np.ndarray) -> _Column:
    values = np.append(values.astype(float), np.nan)[place]
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise InputError(
            f"column {name!r} has an infinite value in {rows_text(place[infinite], None)} of the frame.",
            hint="mark missing values as NaN.",
        )
    return _Column(name, values)


def _categories(name: str, entries: list[Any], place: np.ndarray) -> _Column:
    try:
        first_seen = {entry: code for code, entry in enumerate(dict.fromkeys(entries))}
    except TypeError as error:
        raise _NothingToSay("its values are neither numbers nor categories") from error
    levels = [entry for entry in first_seen if not _is_blank(entry)]
    # Sorted, so that nothing depends on the order of rows; by type first, since 1 < "a" is an error.
    levels.sort(key=lambda entry: (type(entry).__name__, str(entry)))
    rank = {entry: code for code, entry in enumerate(levels)}
    code_of = np.array([rank.get(entry, -1) for entry in first_seen], dtype=np.int32)
    codes = code_of[np.fromiter(map(first_seen.__getitem__, entries), dtype=np.intp, count=len(entries))]
    here = np.append(codes, np.int32(-1))[place]
    used, again = np.unique(here[here >= 0], return_inverse=True)
    here[here >= 0] = again
    plain = [entry if isinstance(entry, int | float | str) else str(entry) for entry in levels]
    return _Column(name, here, [plain[code] for code in used])


def _require_something(column: _Column, labels: np.ndarray) -> None:
    values, clusters = column.values[column.seen], labels[column.seen]
    if not len(values):
        raise _NothingToSay("it has no values")
    if (values == values[0]).all():
        raise _NothingToSay("it has the same value everywhere")
    if (clusters == clusters[0]).all():
        raise _NothingToSay("all its values are in one cluster")
    if column.levels is not None and 2 * (np.bincount(values) == 1).sum() > len(values):
        raise _NothingToSay("most of its values occur only once, as those of ids and free text do")


# --- strength and chance ------------------------------------------------------------------------------------


class _Evidence:
    """Columns in the form that every shuffle reads, those of numbers before those of categories.

    How many instances of a cluster have a value in a column stays as it is: a shuffle moves values among the
    instances that have one, so gaps that depend on the cluster are no difference.
    """

    def __init__(self, columns: list[_Column], labels: np.ndarray, k: int) -> None:
        numbers = [column for column in columns if column.levels is None]
        categories = [column for column in columns if column.levels is not None]
        self.columns = [*numbers, *categories]
        self.n_numbers = len(numbers)
        # Twice the centred ranks: whole numbers, so that half the memory is exact up to 16 million instances.
        self.ranks = np.empty((len(labels), len(numbers)), dtype=np.float32)
        self.variation = np.empty(len(numbers))
        for j, column in enumerate(numbers):
            ranks = 2.0 * rankdata(column.values, nan_policy="omit") - (column.seen.sum() + 1)
            self.ranks[:, j], self.variation[j] = ranks, np.nansum(ranks**2)
        n_levels = [len(column.levels or ()) for column in categories]
        self.offsets = np.cumsum([0, *n_levels])
        self.codes = np.empty((len(labels), len(categories)), np.min_scalar_type(-max([1, *n_levels])))
        for j, column in enumerate(categories):
            self.codes[:, j] = column.values
        sizes = [np.bincount(column.values[column.seen]) for column in categories]
        self.of_level = np.concatenate([np.zeros(0, dtype=np.int64), *sizes])
        in_clusters = [np.bincount(labels[column.seen], minlength=k) for column in self.columns]
        # Clusters in an order that does not depend on their numbers: equal ones are interchangeable.
        rank = np.lexsort(in_clusters[::-1])
        self.seen = np.ascontiguousarray(np.array(in_clusters)[:, rank].T)
        self.n_seen, self.filled = self.seen.sum(axis=0), (self.seen > 0).sum(axis=0)
        self.freedom = (self.filled - 1) * np.array([1] * len(numbers) + [n - 1 for n in n_levels])
        place = np.empty(k, dtype=np.intp)
        place[rank] = np.arange(k)
        self.by_cluster = np.argsort(place[labels], kind="stable")  # the rows as they are clustered

    def explained(self, order: np.ndarray) -> np.ndarray:
        """For every column, the share of the variance of ranks (numbers) or phi squared (categories) that is
        between clusters, if rows are dealt out to them in this order."""
        p, k = self.n_numbers, len(self.seen)
        sums, table = np.zeros((k, p)), np.zeros((int(self.offsets[-1]), k))
        hot.consecutive_sums(self.ranks.take(order, axis=0), self.seen[:, :p], sums)
        numbers = _ratio(sums**2, self.seen[:, :p]).sum(axis=0) / self.variation
        if p == len(self.columns):
            return numbers
        hot.consecutive_counts(self.codes.take(order, axis=0), self.offsets, self.seen[:, p:], table)
        squares = np.add.reduceat(table**2 / self.of_level[:, None], self.offsets[:-1], axis=0)
        return np.append(numbers, _ratio(squares, self.seen[:, p:].T).sum(axis=1) - 1.0)

    def statistic(self, order: np.ndarray) -> np.ndarray:
        """Statistics of Kruskal and Wallis and of chi-square on one scale: about standard normal."""
        spread = 2.0 / (9.0 * self.freedom)
        root = np.cbrt((self.n_seen - 1) * self.explained(order) / self.freedom)
        return np.asarray((root - 1.0 + spread) / np.sqrt(spread))

    def effects(self) -> np.ndarray:
        """From 0 to 1, less what chance alone would show."""
        shares, p, n = self.explained(self.by_cluster), self.n_numbers, self.n_seen
        left = np.maximum(n[:p] - self.filled[:p], 1)
        numbers = np.sqrt(np.clip(1.0 - (1.0 - shares[:p]) * (n[:p] - 1) / left, 0.0, 1.0))
        rest = zip(shares[p:], n[p:], np.diff(self.offsets), self.filled[p:], strict=True)
        return np.array([*numbers, *(corrected_association(*column) for column in rest)])


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Zero where there is nothing to divide by."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _describe(
    columns: list[_Column], labels: np.ndarray, k: int, n_permutations: int, rng: np.random.RandomState
) -> list[ColumnProfile]:
    # In an order that follows from the values alone, so that the order of rows does not matter to the
    # shuffles: equal rows are interchangeable.
    order = np.lexsort([np.where(column.seen, column.values, -np.inf) for column in columns])
    labels = labels[order]
    evidence = _Evidence([column._replace(values=column.values[order]) for column in columns], labels, k)
    seeds = rng.randint(2**31, size=n_permutations)

    def shuffle(block: slice) -> list[np.ndarray]:
        shuffles = (np.random.RandomState(seed).permutation(len(labels)) for seed in seeds[block])
        return [evidence.statistic(shuffled) for shuffled in shuffles]

    by_chance = np.array([one for some in map_blocks(shuffle, n_permutations, block_rows=8) for one in some])
    p_values = _step_down(evidence.statistic(evidence.by_cluster), by_chance)
    found = zip(evidence.columns, evidence.effects(), p_values, strict=True)
    return [
        ColumnProfile(
            name=column.name,
            kind="date" if column.is_date else "number" if column.levels is None else "category",
            effect=float(effect),
            p_value=float(p_value),
            missing=float(1.0 - column.seen.mean()),
            clusters=tuple(_in_clusters(column, labels, k)),
        )
        for column, effect, p_value in found
    ]


def _step_down(observed: np.ndarray, by_chance: np.ndarray) -> np.ndarray:
    """How often chance does as well anywhere among a column and all that are weaker; never less than for a
    stronger column."""
    order = np.argsort(-observed, kind="stable")
    highest = np.maximum.accumulate(by_chance[:, order[::-1]], axis=1)[:, ::-1]
    as_well = (highest >= observed[order] - _ROUNDING).sum(axis=0)
    p_values = np.empty(len(order))
    p_values[order] = np.maximum.accumulate((1.0 + as_well) / (1.0 + len(by_chance)))
    return p_values


# --- direction ----------------------------------------------------------------------------------------------


def _in_clusters(column: _Column, labels: np.ndarray, k: int) -> Iterator[ClusterNumbers | ClusterLevels]:
    seen, sizes = column.seen, np.bincount(labels, minlength=k)
    n = np.bincount(labels[seen], minlength=k)
    with np.errstate(invalid="ignore"):
        missing = (1.0 - n / sizes).tolist()
    if column.levels is None:
        values = column.values[seen]
        parts = np.split(values[np.argsort(labels[seen], kind="stable")], np.cumsum(n)[:-1])
        mean, spread = values.mean(), values.std()
        for c, part in enumerate(parts):
            own, middle = (part.mean(), np.median(part)) if len(part) else (np.nan, np.nan)
            shift = (own - mean) / spread
            yield ClusterNumbers(c, len(part), missing[c], float(own), float(middle), float(shift))
        return
    cells = column.values[seen].astype(np.int64) * k + labels[seen]
    table = np.bincount(cells, minlength=len(column.levels) * k).reshape(-1, k)
    share, lift = shares_and_lifts(table)
    for c in range(k):
        more = np.flatnonzero(lift[:, c] > 1.0)
        top = more[np.argsort(-typicality(share[more, c], lift[more, c]), kind="stable")][:_LEVELS]
        named = [
            Level(column.levels[j], int(table[j, c]), float(share[j, c]), float(lift[j, c])) for j in top
        ]
        yield ClusterLevels(c, int(n[c]), missing[c], tuple(named))
