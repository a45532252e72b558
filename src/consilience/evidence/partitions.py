"""Labels as input: a table of base clusterings comes in, clean integer codes come out.

A row is an instance, a column is a base clustering, and a blank says that this clustering never saw this
instance. Everything after that works on `Partitions`; every data error is raised here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from consilience._support.errors import InputError
from consilience._support.shown import Table, as_html
from consilience._support.values import counted, did_you_mean, object_array
from consilience._support.warnings import warn
from consilience.core.canonical import Canonical, canonical
from consilience.core.coassociation import coassociation
from consilience.core.grouping import distinct_rows
from consilience.core.tables import indicator
from consilience.evidence.builder import Builder, Built, Frozen
from consilience.evidence.groups import group_of_each
from consilience.io.frames import Memory, memory_of, read_memory
from consilience.io.labels import MISSING, Negative, is_int64
from consilience.io.pieces import Coded
from consilience.io.shapes import read_groups, read_long, read_memberships

__all__ = ["MISSING", "Partitions"]

_SHOWN = 5  # names in a sentence
Unknown = Literal["error", "missing"]


@dataclass(frozen=True, eq=False, repr=False)
class Partitions:
    """Base clusterings of the same instances, each of which may have seen only some of them.

    Make one with :meth:`of`, or of labels in other shapes with :meth:`from_long`, :meth:`from_groups` or
    :meth:`from_memberships`; it never changes afterwards.

    Attributes
    ----------
    codes : ndarray of shape (n_rows, n_partitions), smallest signed integer type that fits
        ``0..k_i - 1`` in column ``i``; -1 where clustering ``i`` never saw the instance.
    counts : ndarray of shape (n_rows,)
        How many instances a row stands for: one in a table that was read, more in :attr:`distinct`.
    categories : tuple of ndarray
        ``categories[i][code]`` is the user's own name of a cluster of clustering ``i``.
    names : tuple of str
        Names of the base clusterings.
    index : ndarray or None
        Ids of the instances, where the input had any; `index_name` is the name of their column or index.
    columns : tuple of int
        Positions of these clusterings in the table that was given; all-missing columns are left out.
    n_columns : int
        Number of columns of the table that was given.
    base_weights : ndarray of shape (n_partitions,) or None
        How much each base clustering counts, see :meth:`weighted`; None where all count once.
    groups : tuple of str or None
        The group that each base clustering is in, None for one in no group; see :meth:`grouped`. None where
        there are no groups.
    views : tuple of str or None
        The view of which each clustering was made, where they were made of views.
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
    index_name: Any = None
    counts: Any = None  # an array after __post_init__
    views: tuple[str, ...] | None = None
    base_weights: np.ndarray | None = None
    groups: tuple[str | None, ...] | None = None

    def __post_init__(self) -> None:
        if self.counts is None:  # one for each, without the memory for them
            object.__setattr__(self, "counts", np.broadcast_to(np.int64(1), len(self.codes)))

    @classmethod
    def of(
        cls,
        labels: Any,
        *,
        negative: Negative | None = None,
        index: str | Sequence[Any] | None = None,
        unobserved: Literal["error", "keep"] = "error",
    ) -> Partitions:
        """Read a table of labels.

        Parameters
        ----------
        labels : array of shape (n_instances, n_partitions), nested list, frame, or dict or list of series
            Arrays and nested lists have a row per instance. A dict has a column per key; its values are
            1-D arrays of one length, or pandas series or ``{id: label}`` mappings, which are joined by
            id (outer join). A list of pandas series is joined the same way. Labels may be integers,
            integer-valued floats, booleans, strings or categoricals. NaN, None, NA and the empty string
            are missing, and so is "nan" in NumPy arrays of text, which is how NumPy writes NaN there. A
            column in which nearly every label occurs once is refused: it holds ids. Also files, as
            :func:`consilience.io.scan` finds them. A table that was read already is taken as it is.
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
        if isinstance(labels, cls):
            _check_options("missing", unobserved)
            _refuse_to_read_again(labels, negative, index)
            if unobserved == "error":
                labels._require_observed()
            return labels
        if hasattr(labels, "sources"):
            return cls._of_scan(labels, "missing" if negative is None else negative, unobserved)
        return cls._read(read_memory(labels, index), "missing" if negative is None else negative, unobserved)

    @classmethod
    def from_long(
        cls,
        frame: Any,
        instance: str = "instance",
        source: str = "source",
        label: str = "label",
        *,
        negative: Negative = "missing",
        unobserved: Literal["error", "keep"] = "error",
    ) -> Partitions:
        """Read labels in long format: a row for each label that a source gave to an instance.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame
            A row that occurs several times counts once; two labels of one source for one instance are an
            error. Blank labels are missing. Instances and sources come in the order of their first rows.
        instance, source, label : str
            The columns that say who was labelled, by whom, and how. Each source is a base clustering.
        negative, unobserved
            As in :meth:`of`.

        Examples
        --------
        >>> import pandas as pd
        >>> from consilience import Partitions
        >>> opinions = pd.DataFrame(
        ...     [("ann", "bank", "gold"), ("bob", "bank", "basic"), ("bob", "shop", "rare")],
        ...     columns=["person", "who", "segment"],
        ... )
        >>> people = Partitions.from_long(opinions, "person", "who", "segment")
        >>> people.names, people.index.tolist()
        (('bank', 'shop'), ['ann', 'bob'])
        >>> people.codes
        array([[ 1, -1],
               [ 0,  0]], dtype=int8)
        """
        return cls._read(read_long(frame, instance, source, label), negative, unobserved)

    @classmethod
    def from_groups(
        cls,
        runs: Mapping[str, Any],
        *,
        negative: Negative = "missing",
        unobserved: Literal["error", "keep"] = "error",
    ) -> Partitions:
        """Read groups: for each base clustering its clusters, as the ids of their members.

        Parameters
        ----------
        runs : dict of lists of groups, or of dicts of cluster to members
            A group is a list, set or other collection of ids, as in the partitions of networkx. An id that
            is in no group of a base clustering was not seen by it; one in two groups of it is an error.
            Groups of a list are called by their position. Ids come in the order in which they first occur,
            those of a set sorted.
        negative, unobserved
            As in :meth:`of`.

        Examples
        --------
        >>> from consilience import Partitions
        >>> runs = {"louvain": [{"ann", "bob"}, {"cleo"}], "teams": {"red": ["bob"], "blue": ["dan", "cleo"]}}
        >>> people = Partitions.from_groups(runs)
        >>> people.index.tolist()
        ['ann', 'bob', 'cleo', 'dan']
        >>> people.decode(people.codes).tolist()
        [[0, None], [0, 'red'], [1, 'blue'], [None, 'blue']]
        """
        return cls._read(read_groups(runs), negative, unobserved)

    @classmethod
    def from_memberships(
        cls,
        tables: Mapping[str, Any],
        *,
        index: str | Sequence[Any] | None = None,
        unobserved: Literal["error", "keep"] = "error",
    ) -> Partitions:
        """Read one-hot or soft memberships: for each base clustering a table with a column per cluster.

        An instance is put into the cluster of its largest membership (the first of equal ones). Where
        memberships are not all 0 or 1, a warning says how unsure they were: the mean share of the largest,
        and how many instances are near ties, whose largest is at most .55 of the two largest together.

        Parameters
        ----------
        tables : dict of arrays, sparse matrices or frames
            A row per instance. A row of zeros or of NaN is missing. Rows need not sum to one. Columns of
            frames name the clusters. pandas frames are joined by their index (outer join), frames with a
            column of ids by that; others have their rows in one order.
        index : str or sequence, optional
            Ids of the instances: a column of every frame, or the ids themselves.
        unobserved
            As in :meth:`of`.

        Examples
        --------
        >>> from consilience import Partitions
        >>> one_hot = [[1, 0], [0, 1], [0, 1], [0, 0]]
        >>> Partitions.from_memberships({"a": one_hot, "b": [[0, 1], [0, 1], [1, 0], [1, 0]]}).codes
        array([[ 0,  1],
               [ 1,  1],
               [ 1,  0],
               [-1,  0]], dtype=int8)
        """
        return cls._read(read_memberships(tables, index), "missing", unobserved)

    @classmethod
    def _read(cls, table: Memory, negative: Negative, unobserved: Literal["error", "keep"]) -> Partitions:
        _check_options(negative, unobserved)
        builder = Builder()
        for piece in table.pieces():
            builder.add(piece)
        by_id = table.index is not None
        built = builder.finish(negative=negative, where=table.where, by_id=by_id)
        if unobserved == "error":
            row, n = builder.first_unseen(built)
            if n:
                raise nobody_saw(table.where(row), n)
        return cls.of_built(
            built,
            negative=negative,
            index=table.index,
            index_name=table.id_name,
            backend=table.backend,
        )

    @classmethod
    def _of_scan(cls, scan: Any, negative: Negative, unobserved: Literal["error", "keep"]) -> Partitions:
        """Files, which need Arrow: what is in memory does not."""
        from consilience.evidence.reading import read_labels

        first, *others = scan.sources
        if isinstance(first, Memory) and not others:
            return cls._read(first, negative, unobserved)
        _check_options(negative, unobserved)
        return read_labels(scan.sources, negative=negative, unobserved=unobserved).in_full()

    @classmethod
    def of_built(
        cls,
        built: Built,
        *,
        negative: Negative = "missing",
        index: np.ndarray | None = None,
        index_name: Any = None,
        backend: Any = None,
    ) -> Partitions:
        """The table that a builder read."""
        return cls(
            codes=_frozen(built.codes),
            categories=tuple(map(_frozen, built.categories)),
            names=tuple(built.names[j] for j in built.kept),
            index=None if index is None else _frozen(index.copy()),
            columns=built.kept,
            n_columns=len(built.names),
            negative=negative,
            backend=backend,
            column_names=built.names,
            index_name=index_name,
            counts=None if built.counts is None else _frozen(built.counts),
        )

    @classmethod
    def of_codes(
        cls,
        columns: Mapping[str, tuple[npt.ArrayLike, Sequence[Any]]],
        *,
        negative: Negative = "missing",
        index: np.ndarray | None = None,
        index_name: str | None = None,
        unobserved: Literal["error", "keep"] = "error",
    ) -> Partitions:
        """Read columns that are coded already, as categoricals and dictionary-encoded Arrow columns are.

        The labels themselves are looked at once each, not once a row.

        Parameters
        ----------
        columns : dict of (codes, labels)
            For each base clustering an integer per instance, -1 where it is missing, and the labels that
            these integers stand for.
        negative, unobserved
            As in :meth:`of`.
        index : ndarray, optional
            Ids of the instances, known to be distinct.
        index_name : str, optional
            What the ids are called.

        Examples
        --------
        >>> from consilience import Partitions
        >>> Partitions.of_codes({"bank": ([1, 0, 0, -1], ["gold", "basic"]), "shop": ([0, 0, 1, 1], [7, 3])},
        ...                     unobserved="keep").codes
        array([[ 0,  1],
               [ 1,  1],
               [ 1,  0],
               [-1,  0]], dtype=int8)
        """
        _check_options(negative, unobserved)
        coded = [Coded(np.asarray(codes), object_array(list(labels))) for codes, labels in columns.values()]
        _check_codes(list(columns), coded, index)
        table = memory_of(coded, list(columns), len(coded[0].codes), index, id_name=index_name)
        return cls._read(table, negative, unobserved)

    @classmethod
    def of_rows(
        cls,
        codes: np.ndarray,
        categories: Sequence[np.ndarray],
        names: Sequence[str],
        *,
        counts: np.ndarray | None = None,
        kept: Sequence[int] | None = None,
        index: np.ndarray | None = None,
        index_name: Any = None,
        backend: Any = None,
        views: Sequence[str] | None = None,
    ) -> Partitions:
        """A table that was read already; nothing is checked.

        Parameters
        ----------
        codes : ndarray of int of shape (n_rows, n_partitions)
            From 0 in each column, -1 where missing.
        categories : sequence of ndarray
            Names of the clusters of each base clustering.
        names : sequence of str
            Names of all columns of the table that was given.
        counts : ndarray of int of shape (n_rows,), optional
            How many instances a row stands for.
        kept : sequence of int, optional
            Which columns have labels, where not all do.
        index, index_name, backend, views
            See the attributes.
        """
        kept = tuple(range(len(names)) if kept is None else kept)
        return cls(
            codes=_frozen(codes),
            categories=tuple(categories),
            names=tuple(names[j] for j in kept),
            index=index,
            columns=kept,
            n_columns=len(names),
            negative="missing",
            backend=backend,
            column_names=tuple(names),
            index_name=index_name,
            counts=None if counts is None else _frozen(counts),
            views=None if views is None else tuple(views),
        )

    def _require_observed(self) -> None:
        empty = np.flatnonzero(~self.seen)
        if len(empty):
            where = Memory({}, self.n_rows, self.index).where(int(empty[0]))
            raise nobody_saw(where, int(self.counts[empty].sum()))

    def __repr__(self) -> str:
        return (
            f"Partitions({self.n_instances} instances, {self.n_partitions} base clusterings, "
            f"{self.missing_share:.1%} missing)"
        )

    def _repr_html_(self) -> str:
        columns = zip(self.names, self.n_clusters_per_partition, self.n_seen, strict=True)
        rows = [(name, str(k), str(n)) for name, k, n in columns]
        return as_html([repr(self)], Table(("base clustering", "clusters", "seen"), rows))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[0])

    @cached_property
    def n_instances(self) -> int:
        """Number of instances: that of rows, unless a row stands for several."""
        return int(self.counts.sum())

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
        """Boolean per instance, True where at least one clustering saw it; one of weight 0 does not count."""
        # Column by column: reducing along short rows is several times slower.
        return _frozen(np.logical_or.reduce([column >= 0 for column in self.counting.codes.T]))

    @cached_property
    def counting(self) -> Partitions:
        """The clusterings that count: those without weight 0; all instances stay."""
        if self.base_weights is None or self.base_weights.all():
            return self
        return self.choose(np.flatnonzero(self.base_weights))

    def weighted(self, weights: npt.ArrayLike | None) -> Partitions:
        """The same with weights of the clusterings: one of weight 3 counts like three that say the same.

        Label methods read them; metrics of agreement with the clusterings are means by weight.
        """
        given = None if weights is None else _frozen(np.array(weights, dtype=float))
        return replace(self, base_weights=given)

    def grouped(self, groups: Mapping[str, Iterable[str]] | None) -> Partitions:
        """The same with groups of clusterings that are near copies of each other: a group counts like one.

        Parameters
        ----------
        groups : dict of group to names of base clusterings, or None
            Each clustering is in one group at most; one that is in none counts by itself. None for no groups.

        Examples
        --------
        >>> from consilience import Partitions
        >>> cells = Partitions.of({"r1": [0, 0, 1], "r2": [0, 1, 2], "expert": ["T", "B", "B"]})
        >>> cells.grouped({"leiden": ["r1", "r2"]}).opinion_weights
        array([0.5, 0.5, 1. ])
        """
        of_each = None if groups is None else group_of_each(groups, self.names, self.column_names)
        return replace(self, groups=of_each)

    @cached_property
    def members_of_groups(self) -> tuple[np.ndarray, ...]:
        """Positions of the clusterings of each group of two or more."""
        known = () if self.groups is None else self.groups
        names = [name for name in dict.fromkeys(known) if name is not None]
        members = (np.array([i for i, of in enumerate(known) if of == name]) for name in names)
        return tuple(_frozen(own) for own in members if len(own) > 1)

    @cached_property
    def opinion_weights(self) -> np.ndarray | None:
        """How much each clustering counts when they are merged; None where all count once.

        Its weight, divided by the number of members of its group whose weight is not 0.
        """
        weights = self.base_weights
        if not self.members_of_groups:
            return weights
        out = np.ones(self.n_partitions) if weights is None else weights.copy()
        for members in self.members_of_groups:
            out[members] /= max(np.count_nonzero(out[members]), 1)
        return _frozen(out)

    @cached_property
    def n_clusters_per_partition(self) -> np.ndarray:
        """``k_i``, the number of clusters of each base clustering."""
        return _frozen(np.array([len(c) for c in self.categories], dtype=np.int64))

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each clustering's clusters begin in the stacked indicator; the last entry is their number."""
        return _frozen(np.concatenate([[0], np.cumsum(self.n_clusters_per_partition)]))

    @cached_property
    def n_seen(self) -> np.ndarray:
        """How many instances each base clustering saw."""
        return _frozen(np.array([self.counts[column >= 0].sum() for column in self.codes.T]))

    @property
    def missing_share(self) -> float:
        """The share of the labels that are missing."""
        asked = self.n_instances * self.n_partitions
        return float(1.0 - self.n_seen.sum() / asked) if asked else 0.0  # instances of views have no labels

    @property
    def distinct(self) -> Partitions:
        """The distinct rows, each with the number of instances that have it in ``counts``.

        Two instances with the same row cannot be told apart by a method that reads only labels, so such a
        method runs on these rows and hands its answer back through :attr:`inverse`. Their order does not
        depend on the names of labels or on the order of rows and columns.
        """
        return self._compressed[0]

    @property
    def inverse(self) -> np.ndarray:
        """For every row of the table, which of the distinct rows it is."""
        return self._compressed[1]

    @property
    def canonical(self) -> Canonical:
        """The distinct rows as solvers read them: bases and clusters, too, in an order without names."""
        return self._compressed[2]

    @cached_property
    def _compressed(self) -> tuple[Partitions, np.ndarray, Canonical]:
        found = distinct_rows(self.codes, self.n_clusters_per_partition, self._counts_of(slice(None)))
        form = canonical(found.codes, self.offsets, found.counts, self.opinion_weights)
        rank = np.empty_like(found.inverse, shape=len(form.order))
        rank[form.order] = np.arange(len(rank))
        codes, counts = _frozen(found.codes[form.order]), _frozen(form.rows.counts)
        rows = replace(self, codes=codes, counts=counts, index=None)
        return rows, _frozen(rank[found.inverse]), form

    @cached_property
    def patterns(self) -> Partitions:
        """The distinct sets of clusterings that saw an instance, with counts; codes are 0 where one did."""
        return self._mask.distinct

    @property
    def pattern_of(self) -> np.ndarray:
        """For every row of the table, which of the `patterns` it has."""
        return self._mask.inverse

    @cached_property
    def _mask(self) -> Partitions:
        return replace(
            self,
            codes=_frozen(np.where(self.codes >= 0, np.int8(0), np.int8(MISSING))),
            categories=tuple(np.zeros(1, dtype=np.int64) for _ in self.categories),
        )

    @cached_property
    def n_shared(self) -> np.ndarray:
        """How many instances every two base clusterings saw both, (n_partitions, n_partitions)."""
        seen = self.patterns.observed.astype(float)
        return _frozen((seen * self.patterns.counts[:, None]).T @ seen)

    @cached_property
    def base_groups(self) -> tuple[tuple[str, ...], ...]:
        """Names of the base clusterings, grouped by chains of shared instances; one group is what one wants.

        The clusters of one group cannot be matched with those of another.
        """
        n_groups, which = connected_components(sp.csr_array(self.n_shared > 0), directed=False)
        return tuple(
            tuple(name for name, group in zip(self.names, which, strict=True) if group == number)
            for number in range(n_groups)
        )

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
            raise InputError(
                f"The 'normalize' parameter must be 'pairs' or 'partitions'. Got {normalize!r} instead.",
                hint="'pairs' divides by the number of clusterings that saw both instances.",
            )
        if self.n_rows > max_instances:
            raise InputError(
                f"a dense co-association of {self.n_rows} instances has {self.n_rows**2:.1e} entries.",
                hint=(
                    f"there are {self.distinct.n_rows} distinct rows; use the co-association of those, or "
                    "raise max_instances."
                ),
            )
        return coassociation(self.indicator, self.observed, normalize=normalize)

    def take(self, rows: npt.ArrayLike) -> Partitions:
        """The same clusterings of some of the instances (a boolean mask or positions)."""
        rows = np.asarray(rows)
        index = None if self.index is None else _frozen(self.index[rows])
        return replace(self, codes=_frozen(self.codes[rows]), index=index, counts=self._counts_of(rows))

    def _counts_of(self, rows: np.ndarray | slice) -> np.ndarray | None:
        """None where every row stands for one instance, which needs no memory."""
        return None if self.counts.strides == (0,) else _frozen(self.counts[rows])

    def sample(self, n: int, random_state: np.random.RandomState) -> Partitions:
        """`n` instances drawn without replacement, as distinct rows with counts.

        They do not depend on the order of the instances, only on their labels.
        """
        rows = self.distinct
        drawn = np.sort(random_state.choice(rows.n_instances, n, replace=False))
        row = np.searchsorted(np.cumsum(rows.counts), drawn, side="right")
        kept, counts = np.unique(row, return_counts=True)
        return replace(rows, codes=_frozen(rows.codes[kept]), counts=_frozen(counts)).compact()

    def choose(self, partitions: npt.ArrayLike) -> Partitions:
        """Some of the clusterings (positions) of the same instances."""
        chosen = np.asarray(partitions)
        return replace(
            self,
            codes=_frozen(np.asfortranarray(self.codes[:, chosen])),
            categories=tuple(self.categories[i] for i in chosen),
            names=tuple(self.names[i] for i in chosen),
            columns=tuple(self.columns[i] for i in chosen),
            views=None if self.views is None else tuple(self.views[i] for i in chosen),
            base_weights=None if self.base_weights is None else _frozen(self.base_weights[chosen]),
            groups=None if self.groups is None else tuple(self.groups[i] for i in chosen),
        )

    def repeat(self) -> Partitions:
        """The same table with a row for each instance."""
        rows = np.repeat(np.arange(self.n_rows), self.counts)
        index = None if self.index is None else _frozen(self.index[rows])
        return replace(self, codes=_frozen(self.codes[rows]), index=index, counts=None)

    def take_seen(self) -> Partitions:
        """The same clusterings of the instances that at least one of them saw."""
        return self if self.seen.all() else self.take(self.seen)

    def compact(self) -> Partitions:
        """The same table without clusters that have no member and clusterings that saw nobody.

        A part of a table (:meth:`take`) can have such; a table that was read has none and is returned itself.
        """
        members = [
            np.bincount(column[column >= 0], minlength=k) > 0
            for column, k in zip(self.codes.T, self.n_clusters_per_partition, strict=True)
        ]
        if all(kept.all() for kept in members):
            return self
        left = [i for i, kept in enumerate(members) if kept.any()]
        codes = np.empty((self.n_rows, len(left)), dtype=self.codes.dtype, order="F")
        for place, i in enumerate(left):
            number = np.append(np.cumsum(members[i]) - 1, MISSING)  # the last entry is that of -1
            codes[:, place] = number[self.codes[:, i]]
        return replace(
            self,
            codes=_frozen(codes),
            categories=tuple(_frozen(self.categories[i][members[i]]) for i in left),
            names=tuple(self.names[i] for i in left),
            columns=tuple(self.columns[i] for i in left),
            views=None if self.views is None else tuple(self.views[i] for i in left),
            base_weights=None if self.base_weights is None else _frozen(self.base_weights[left]),
            groups=None if self.groups is None else tuple(self.groups[i] for i in left),
        )

    def fill(self, codes: np.ndarray) -> Partitions:
        """The same table with other codes, such as a completed one."""
        return replace(self, codes=_frozen(codes.astype(self.codes.dtype)))

    def encode(self, labels: Any, *, unknown: Unknown = "error") -> np.ndarray:
        """Codes of new instances in the terms of this table, (n_new, n_partitions), -1 = missing.

        Frames, dicts and `Partitions` are matched by the names of the base clusterings (an absent one is
        missing), arrays by position. A label that is not known here is an error, or missing, with a warning
        that counts them, where `unknown` says so.
        """
        if unknown not in ("error", "missing"):
            raise InputError(
                f"The 'unknown' parameter must be 'error' or 'missing'. Got {unknown!r} instead.",
                hint="use 'missing' to place instances by the labels that are known.",
            )
        codes, strange, source = self._read_known(labels)
        if strange and unknown == "error":
            (i, label), rows = min(strange.items(), key=lambda item: (item[0][0], item[1][0]))
            others = f" and {len(rows) - 1} other" + "s" * (len(rows) > 2) if len(rows) > 1 else ""
            raise InputError(
                f"base clustering {self.names[i]!r} has no cluster {label!r}, found in "
                f"{source.where(int(rows[0]))}{others}.",
                hint="say unknown='missing' to read labels that were not there when the model was fitted as "
                "missing, or fit again with them.",
            )
        if strange:
            n = sum(map(len, strange.values()))
            told = [f"{label!r} of {self.names[i]!r}" for i, label in strange]
            shown = ", ".join(told[:_SHOWN]) + f" and {len(told) - _SHOWN} others" * (len(told) > _SHOWN)
            warn(
                f"{counted(n, 'label')} of the new instances did not exist when the model was fitted and "
                f"{'counts' if n == 1 else 'count'} as missing: {shown}.",
                hint="fit again with them if they mean something new.",
            )
        return codes.astype(self.codes.dtype, copy=False)

    def encode_known(self, labels: Any) -> tuple[np.ndarray, dict[tuple[int, Any], np.ndarray]]:
        """Codes as `encode` gives them, and the rows of every label, by base and name, that is not known."""
        codes, strange, _ = self._read_known(labels)
        return codes.astype(self.codes.dtype, copy=False), strange

    def _read_known(self, labels: Any) -> tuple[np.ndarray, dict[tuple[int, Any], np.ndarray], Memory]:
        source = self._match(labels)
        codes, strange = Frozen(self.names, self.categories).codes(next(source.pieces()), text=source.text)
        return codes, strange, source

    def _match(self, labels: Any) -> Memory:
        """A new table under the names of this one."""
        if isinstance(labels, Partitions):
            self._require_known(labels.column_names)
            columns = zip(labels.names, labels.codes.T, labels.categories, strict=True)
            coded = {name: Coded(codes, categories) for name, codes, categories in columns}
            return Memory(coded, labels.n_rows, labels.index)
        given = list(getattr(labels, "columns", ()))
        with_ids = self.index_name in given and self.index_name not in self.column_names
        table = read_memory(labels, self.index_name if with_ids else None)
        if table.named:
            self._require_known(table.columns)
            return table
        if len(table.columns) != self.n_columns:
            raise InputError(
                f"the new table has {len(table.columns)} columns, the fitted one has {self.n_columns}.",
                hint="keep a column for every base clustering and mark what is unknown as missing.",
            )
        return replace(table, coded=dict(zip(self.column_names, table.coded.values(), strict=True)))

    def _require_known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.column_names:
                raise InputError(f"unknown base clustering {name!r}.", did_you_mean(name, self.column_names))

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
        """A frame of the user's kind with the user's ids. Only where the input was a frame or series."""
        if self.backend is None:
            raise InputError("the input was not a frame.", hint="build a frame from the arrays yourself.")
        # Codes of other instances than these (see `encode`) have other ids.
        n_rows = len(next(iter(columns.values())))
        ids = self.index if n_rows == self.n_rows else None
        if ids is not None and self.index_name is not None and self.backend != "pandas":
            columns = {str(self.index_name): ids, **columns}
        data = {
            name: values if values.dtype != object else values.tolist() for name, values in columns.items()
        }
        native = nw.from_dict(data, backend=self.backend).to_native()
        if self.backend == "pandas":
            self._finish_pandas(native, columns, ids)
        return native

    def _finish_pandas(self, frame: Any, columns: dict[str, np.ndarray], ids: np.ndarray | None) -> None:
        pandas: Any = nw.get_native_namespace(frame)
        for name, values in columns.items():
            # Integers beside None became floats, which lose digits above 2**53.
            if values.dtype == object and all(value is None or is_int64(value) for value in values):
                frame[name] = pandas.array(values, dtype="Int64")
        if ids is not None:
            several_levels = ids.dtype == object and all(isinstance(value, tuple) for value in ids)
            frame.index = pandas.MultiIndex.from_tuples(ids.tolist()) if several_levels else ids
            frame.index.name = None if several_levels else self.index_name


def nobody_saw(where: str, n: int) -> InputError:
    """The error about instances without any label."""
    others = f" and {n - 1} other" + "s" * (n > 2) if n > 1 else ""
    return InputError(
        f"no base clustering saw {where}{others}.",
        hint="remove these instances, or choose what to do with them with the 'unobserved' parameter of "
        "fuse or of the estimator ('noise' or 'largest'); if -1 stands for noise instead of "
        'missing, read the table with Partitions.of(labels, negative="noise").',
        command="remove these instances, or keep them with --unobserved noise or "
        "--unobserved largest; if -1 stands for noise instead of missing, say --noise.",
    )


def _check_options(negative: Any, unobserved: Any) -> None:
    if unobserved not in ("error", "keep"):
        raise InputError(
            f"The 'unobserved' parameter must be 'error' or 'keep'. Got {unobserved!r} instead.",
            hint="use 'keep' to read a table with instances that no clustering saw.",
        )
    if negative not in ("missing", "noise"):
        raise InputError(
            f"The 'negative' parameter must be 'missing' or 'noise'. Got {negative!r} instead.",
            hint="use 'noise' for the -1 of HDBSCAN or DBSCAN.",
        )


def _check_codes(names: Sequence[str], columns: Sequence[Coded], index: np.ndarray | None) -> None:
    """Codes are whole numbers from -1 that have a label each, as many in every column as there are ids."""
    if not columns:
        raise InputError("there are no columns.", hint="labels need at least one base clustering.")
    n_rows = len(columns[0].codes) if index is None else len(index)
    for name, (codes, labels, _) in zip(names, columns, strict=True):
        if codes.shape != (n_rows,) or not n_rows:
            raise InputError(
                f"base clustering {name!r} has {codes.size} codes for {n_rows} rows.",
                hint="one code per instance, at least one instance.",
            )
        if codes.dtype.kind not in "iu" or codes.min() < MISSING or codes.max() >= len(labels):
            raise InputError(
                f"base clustering {name!r} has codes other than -1 to {len(labels) - 1}.",
                hint="a code is the position of a label, or -1 where it is missing.",
            )


def _refuse_to_read_again(table: Partitions, negative: Any, index: Any) -> None:
    """Codes no longer say what a negative number was, and ids belong to the rows that were read."""
    if negative not in (None, table.negative):
        raise InputError(
            f"negative={negative!r}, but the table was read with negative={table.negative!r}.",
            hint="give it to Partitions.of when the labels are first read.",
        )
    if index is not None:
        raise InputError(
            "index was given for a table that has already been read.",
            hint="give it to Partitions.of when the labels are first read.",
        )


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


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
