"""From pieces of a table to codes: the one place where labels are read, refused and warned about.

A table comes in pieces (`consilience.io.pieces`), each column as codes and the values they stand for. The
builder numbers the values of every column as they come up, and keeps either the codes of all rows or the
distinct rows with their counts. At the end it looks at the values, of which there are few: which say missing,
which are numbers, which are ids by mistake. Memory, blocks, Dask, saved results and parties all read labels
by it, so they take and refuse the same tables in the same words.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from consilience._support.errors import InputError, InputTypeError, UsageError
from consilience._support.values import counted, object_array
from consilience._support.warnings import warn
from consilience.core.grouping import RowIndex, distinct_rows, index_rows
from consilience.io.frames import empty_table
from consilience.io.labels import (
    MISSING,
    Negative,
    is_int64,
    is_mark,
    is_negative,
    labels_as_numbers,
    look_alike,
    plain_values,
)
from consilience.io.pieces import Coded, Piece

Where = Callable[[int], str]
Keep = Literal["rows", "counts"]

# A column of so many labels of which this share occurs once holds ids, or is as useless as if it did.
_IDS_ROWS, _IDS_SHARE = 20, 0.95
_NAMES = 5  # rows of a file that all have another text are names, not clusters of one
_NOISE = -2  # only inside `finish`: a label that says "in no cluster"
_SHOWN = 5  # labels in a sentence
_SLACK = 1_000_000  # rows that are collected before distinct ones are looked for again


class Built(NamedTuple):
    """A table of labels as codes."""

    names: tuple[str, ...]  # of all columns
    kept: tuple[int, ...]  # columns that have a label
    categories: tuple[np.ndarray, ...]  # of those: what codes stand for
    codes: np.ndarray  # of all rows, or of the distinct ones
    counts: np.ndarray | None  # how many instances a row stands for; None where it is one each
    members: tuple[np.ndarray, ...]  # how many instances have each label
    n_instances: int
    row_of: RowOf | None  # which of the rows the instances have, where distinct ones were kept

    @property
    def sizes(self) -> np.ndarray:
        """How many labels each column has."""
        return np.array([len(labels) for labels in self.categories])


class _Column:
    """The values of a column as far as they came up."""

    def __init__(self, text: bool, where: Where | None = None) -> None:
        self.text = text  # whether labels are text that may say numbers
        self.where = where  # rows in words, where they are not those of the table
        self.number: dict[Any, int] = {}
        self._first: list[int] = []  # the row in which each came up
        self._new: list[
            tuple[Coded, list[int], int]
        ] = []  # pieces with values whose rows were not looked for
        self.members = np.zeros(0, dtype=np.int64)
        self.boolean = True

    @property
    def first(self) -> list[int]:
        """The row in which each value came up."""
        for (codes, values, _), fresh, first_row in self._new:
            rows = np.empty(len(values) + 1, dtype=np.int64)
            rows[codes[::-1]] = np.arange(first_row + len(codes) - 1, first_row - 1, -1)
            self._first += rows[fresh].tolist()
        self._new = []
        return self._first

    def add(self, coded: Coded, first_row: int, name: str) -> np.ndarray:
        """Number the values of a piece; the translation of its codes, the last entry that of -1."""
        codes, values, text = coded
        self.text |= text
        n = len(values)
        used = np.bincount(codes + 1, minlength=n + 1)[1:]
        known = len(self.number)
        translation = np.full(n + 1, MISSING, dtype=np.int64)
        keys = plain_values(values)
        fresh: list[int] = []
        try:
            for place, (key, count) in enumerate(zip(keys, used.tolist(), strict=True)):
                if count and key is not None:  # a category may have no row
                    number = self.number.setdefault(key, len(self.number))
                    translation[place] = number
                    if number == known + len(fresh):
                        fresh.append(place)
        except TypeError as error:
            raise InputTypeError(
                f"base clustering {name!r} holds something that cannot be a label ({error}).",
                hint="labels are integers, strings or categories.",
            ) from error
        if fresh:
            self._new.append((coded, fresh, first_row))
            self.members = np.append(self.members, np.zeros(len(fresh), dtype=np.int64))
        said = translation[:-1] >= 0
        if self.boolean:  # True and 1 are one label, and a number
            self.boolean = all(isinstance(values[place], bool | np.bool_) for place in np.flatnonzero(said))
        np.add.at(self.members, translation[:-1][said], used[said])
        return translation

    def merge(self, other: _Column, first_row: int) -> np.ndarray:
        """The same for the values of another builder's column, whose rows come after these."""
        translation = np.full(len(other.number) + 1, MISSING, dtype=np.int64)
        first, other_first = self.first, other.first
        for key, place in other.number.items():
            number = self.number.setdefault(key, len(self.number))
            translation[place] = number
            if number == len(first):
                first.append(first_row + other_first[place])
        self.members = np.append(self.members, np.zeros(len(first) - len(self.members), dtype=np.int64))
        self.members[translation[:-1]] += other.members
        self.boolean &= other.boolean
        return translation


class _Rows(NamedTuple):
    """Distinct rows of some pieces, in the builder's numbers."""

    codes: np.ndarray
    counts: np.ndarray
    first: np.ndarray  # the row in which each came up
    number: np.ndarray | None  # which of them every row is


class Builder:
    """Reads a table of labels piece by piece.

    Parameters
    ----------
    text : bool, default=False
        Whether labels are text that may say numbers, as in CSV files: a column is one of numbers if all its
        labels are.
    keep : {"rows", "counts"}, default="rows"
        Keep the codes of every row, or the distinct rows with their counts.
    number : bool, default=False
        With counts, also keep which of the distinct rows every instance has.
    most : int, optional
        With counts, the most distinct rows. With more of them no row is kept, only what labels there are.
    """

    def __init__(
        self, *, text: bool = False, keep: Keep = "rows", number: bool = False, most: float = np.inf
    ) -> None:
        self.text, self.keep, self.most = text, keep, most
        self.n_rows = 0
        self.fits = True  # whether the distinct rows are no more than `most`
        self._number = number
        self._columns: dict[str, _Column] = {}
        self._whole: list[tuple[list[np.ndarray], list[np.ndarray]]] = []  # codes and translations of pieces
        self._rows: list[_Rows] = []

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that came up."""
        return tuple(self._columns)

    @property
    def _sizes(self) -> np.ndarray:
        return np.array([len(column.number) for column in self._columns.values()])

    def add(self, piece: Piece) -> None:
        """Take the next rows. A column that they lack is missing there."""
        if self.n_rows and set(piece.columns) - set(self._columns):
            raise InputError(
                f"the column {sorted(set(piece.columns) - set(self._columns))[0]!r} is not in all pieces.",
                hint="give every piece of a table the same base clusterings.",
            )
        codes, translations = [], []
        for name in self._columns or piece.columns:
            given = piece.columns.get(name) or Coded(np.full(piece.n_rows, MISSING, dtype=np.int8), ())
            column = self._columns.setdefault(name, _Column(self.text))
            translations.append(column.add(given, self.n_rows, name))
            codes.append(given.codes)
        if self.keep == "rows":
            self._whole.append((codes, translations))
        else:
            self._locate()
            if self.fits:
                self._rows.append(self._distinct(codes, translations, piece.n_rows))
                self._settle()
        self.n_rows += piece.n_rows

    def _locate(self) -> None:
        """Find the first rows of new values while the codes of their piece are here."""
        for column in self._columns.values():
            _ = column.first

    def _distinct(self, codes: list[np.ndarray], translations: list[np.ndarray], n_rows: int) -> _Rows:
        kind = np.min_scalar_type(-max(1, *self._sizes))
        table = np.empty((n_rows, len(codes)), dtype=kind, order="F")
        for j, (column, translation) in enumerate(zip(codes, translations, strict=True)):
            table[:, j] = translation.astype(kind)[column]
        found = distinct_rows(table, self._sizes)
        first = np.empty(len(found.codes), dtype=np.int64)
        first[found.inverse[::-1]] = np.arange(self.n_rows + n_rows - 1, self.n_rows - 1, -1)
        number = found.inverse.astype(np.int32) if self._number else None
        return _Rows(found.codes, found.counts, first, number)

    def merge(self, other: Builder) -> None:
        """Take the rows of another builder after those that are here; both keep counts, without numbers."""
        if self._columns and set(other._columns) != set(self._columns):
            raise InputError(
                f"blocks have different columns: {list(self._columns)} and {list(other._columns)}.",
                hint="give every block the same base clusterings.",
            )
        translations = [
            self._columns.setdefault(name, _Column(self.text)).merge(other._columns[name], self.n_rows)
            for name in self._columns or other._columns
        ]
        order = [list(other._columns).index(name) for name in self._columns]
        self.fits &= other.fits
        for rows in other._rows if self.fits else ():
            codes = np.column_stack(
                [translation[rows.codes[:, j]] for j, translation in zip(order, translations, strict=True)]
            )
            self._rows.append(_Rows(codes, rows.counts, rows.first + self.n_rows, None))
        self.n_rows += other.n_rows
        self._settle()

    def _settle(self, *, now: bool = False) -> None:
        """Put the rows of several pieces together before they fill the memory."""
        n = sum(len(rows.codes) for rows in self._rows)
        if not now and not n > 2 * len(self._rows[0].codes if self._rows else ()) + _SLACK:
            return
        if len(self._rows) > 1:
            self._rows = [_merged(self._rows, self._sizes)]
        if (self._rows and len(self._rows[0].codes) > self.most) or not self.fits:
            self.fits, self._rows = False, []

    def settled(self) -> Builder:
        """The same with all rows in one part, before it is sent elsewhere."""
        self._settle(now=True)
        return self

    def labels(self) -> dict[str, list[Any]]:
        """The labels of every column in the order of their numbers; those of text files as numbers, if so."""
        return {
            name: labels_as_numbers(list(column.number)) if column.text else list(column.number)
            for name, column in self._columns.items()
        }

    @classmethod
    def join(
        cls,
        parts: Sequence[Builder],
        number: np.ndarray,
        names: Sequence[Sequence[str]],
        where: Sequence[Where],
    ) -> Builder:
        """Several tables about the same instances as one.

        ``number[p, s]`` is the row that instance p has in part s, in its numbers; -1 where it has none.
        """
        joint = cls(keep="counts", number=True)
        for part, own, places in zip(parts, names, where, strict=True):
            for name, column in zip(own, part._columns.values(), strict=True):
                if name in joint._columns:
                    raise InputError(
                        f"two base clusterings are named {name!r}.", hint="give every column its own name."
                    )
                joint._columns[name] = column
                column.where = places
        rows = [part._rows[0].codes for part in parts]
        met = distinct_rows(number, np.array([len(codes) for codes in rows]))
        codes = np.column_stack(
            [
                np.vstack([own, np.full((1, own.shape[1]), MISSING, dtype=own.dtype)])[places]
                for own, places in zip(rows, met.codes.T, strict=True)
            ]
        )
        first = np.empty(len(codes), dtype=np.int64)
        first[met.inverse[::-1]] = np.arange(len(number) - 1, -1, -1)
        joint._rows = [_Rows(codes, met.counts, first, met.inverse.astype(np.int32))]
        joint.n_rows = len(number)
        return joint

    def numbers(self) -> np.ndarray:
        """Which of the distinct rows every row is."""
        number = self.settled()._rows[0].number
        assert number is not None
        return number

    def columns(self) -> list[Coded]:
        """The codes of every row, column by column, and what they stand for."""
        codes = self.settled()._rows[0].codes[self.numbers()]
        return [
            Coded(own, list(column.number))
            for own, column in zip(codes.T, self._columns.values(), strict=True)
        ]

    def index(self) -> RowIndex:
        """What finds the distinct rows again; see `find`."""
        rows = self.settled()._rows[0]
        return index_rows(rows.codes, rows.counts)

    def find(self, piece: Piece) -> np.ndarray:
        """Codes of rows that were added before, in the builder's numbers."""
        out = np.empty((piece.n_rows, len(self._columns)), dtype=np.int32, order="F")
        for j, (name, column) in enumerate(self._columns.items()):
            codes, values, _ = piece.columns.get(name) or Coded(np.full(piece.n_rows, MISSING, np.int8), ())
            try:
                used = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
                numbers = [
                    column.number[key] if n and key is not None else MISSING
                    for key, n in zip(plain_values(values), used, strict=True)
                ]
            except KeyError as error:
                raise InputError(
                    f"the label {error.args[0]!r} of {name!r} did not occur in an earlier pass.",
                    hint="a table must not change while it is read; start again.",
                ) from None
            out[:, j] = np.array([*numbers, MISSING], dtype=np.int32)[codes]
        return out

    def finish(
        self,
        *,
        negative: Negative = "missing",
        where: Where = "row {}".format,
        ids: str = "",
        by_id: bool = False,
    ) -> Built:
        """The table, checked.

        Parameters
        ----------
        negative : {"missing", "noise"}, default="missing"
            What a negative number means.
        where : callable, optional
            A row in words.
        ids : {"", "none", "given", "blocks"}, default=""
            Whether a file has a column of ids; empty for what is no file, "blocks" where ``ids=`` names them.
        by_id : bool, default=False
            Whether columns were joined by id.
        """
        if not self.n_rows or not self._columns:
            raise empty_table((self.n_rows, len(self._columns)))
        names = tuple(self._columns)
        if len(names) > 10 * self.n_rows:
            warn(
                f"the table has {len(names)} base clusterings but only {self.n_rows} instances.",
                hint="instances are rows and base clusterings are columns; transpose the table if it is the "
                "other way round.",
            )
        read = [
            _read(name, column, labels, negative, column.where or where)
            for (name, column), labels in zip(self._columns.items(), self.labels().values(), strict=True)
        ]
        kept = tuple(j for j, one in enumerate(read) if len(one.labels) or one.noise)
        if not kept:
            raise InputError(
                "every entry of the label table is missing.",
                hint="NaN, None and negative numbers mean missing; read the table with "
                'Partitions.of(labels, negative="noise") if -1 stands for noise.',
                command="empty cells and negative numbers mean missing; say --noise if -1 stands for noise.",
            )
        for j in sorted(set(range(len(names))) - set(kept)):
            warn(
                f"base clustering {names[j]!r} (column {j}) has no labels and is ignored.",
                hint="drop the column, or check how missing entries are marked.",
            )
        self._refuse_ids([names[j] for j in kept], [read[j] for j in kept], ids)
        _warn_of_marks([names[j] for j in kept], [read[j] for j in kept])
        _warn_of_likes([names[j] for j in kept], [read[j] for j in kept])
        built = self._in_rows(names, kept, read) if self.keep == "rows" else self._counted(names, kept, read)
        if by_id and len(kept) > 1 and len(built.codes) and (built.codes >= 0).sum(axis=1).max() == 1:
            starts = (self._columns[names[j]] for j in kept[:2])
            first, second = ((column.where or where)(min(column.first)) for column in starts)
            warn(
                f"no instance is in two base clusterings: {names[kept[0]]!r} starts with {first}, "
                f"{names[kept[1]]!r} with {second}.",
                hint="use the same ids, of the same type, everywhere.",
            )
        return built

    def _in_rows(self, names: tuple[str, ...], kept: tuple[int, ...], read: Sequence[_Read]) -> Built:
        """Codes of every row; each that is noise is a cluster of its own."""
        columns, categories, members = [], [], []
        for j in kept:
            labels, own = read[j].labels, read[j].members
            # Small numbers: they are written once a row.
            code_of = np.append(read[j].code_of, MISSING).astype(np.min_scalar_type(-len(labels) - 2))
            column = np.concatenate([code_of[given[j]][codes[j]] for codes, given in self._whole])
            if read[j].noise:
                noise = np.flatnonzero(column == _NOISE)
                column = column.astype(np.int64)
                column[noise] = len(labels) + np.arange(len(noise))
                labels = np.concatenate([labels, np.full(len(noise), MISSING, dtype=labels.dtype)])
                own = np.concatenate([own, np.ones(len(noise), dtype=np.int64)])
            columns.append(column)
            categories.append(labels)
            members.append(own)
        codes = _stacked(columns, categories)
        return Built(names, kept, tuple(categories), codes, None, tuple(members), self.n_rows, None)

    def _counted(self, names: tuple[str, ...], kept: tuple[int, ...], read: Sequence[_Read]) -> Built:
        """The distinct rows; those with noise once for each of their instances."""
        self._settle(now=True)
        categories = [read[j].labels for j in kept]
        members = tuple(
            np.bincount(
                read[j].code_of[read[j].code_of >= 0],
                self._columns[names[j]].members[read[j].code_of >= 0],
                len(read[j].labels),
            ).astype(np.int64)
            for j in kept
        )
        if not self.fits:
            codes = np.empty((0, len(kept)), dtype=np.min_scalar_type(-max(map(len, categories))))
            none = np.zeros(0, dtype=np.int64)
            return Built(names, kept, tuple(categories), codes, none, members, self.n_rows, None)
        rows = self._rows[0]
        columns = [np.append(read[j].code_of, MISSING)[rows.codes[:, j]] for j in kept]
        noisy = np.logical_or.reduce([column == _NOISE for column in columns])
        spread = np.where(noisy, rows.counts, 1)  # how many rows each becomes
        start = np.concatenate([[0], np.cumsum(spread)])
        counts = np.repeat(np.where(noisy, 1, rows.counts), spread)
        for i, (j, column) in enumerate(zip(kept, columns, strict=True)):
            column = np.repeat(column, spread)
            if read[j].noise:
                noise = np.flatnonzero(column == _NOISE)
                column[noise] = len(categories[i]) + np.arange(len(noise))
                more = np.full(len(noise), MISSING, dtype=categories[i].dtype)
                categories[i] = np.concatenate([categories[i], more])
            columns[i] = column
        found = distinct_rows(
            _stacked(columns, categories), np.array([len(labels) for labels in categories]), counts
        )
        row_of = RowOf(found.inverse.astype(np.int32), start, noisy, rows.number)
        built = Built(names, kept, tuple(categories), found.codes, found.counts, members, self.n_rows, row_of)
        self._first = rows.first
        return built

    def first_unseen(self, built: Built) -> tuple[int, int]:
        """The first row without any label, and how many there are; (-1, 0) where every row has one."""
        unseen = np.logical_and.reduce([column < 0 for column in built.codes.T])
        if built.counts is None or built.row_of is None:
            rows = np.flatnonzero(unseen)
            return (int(rows[0]) if len(rows) else -1), len(rows)
        n = int(built.counts[unseen].sum())
        if not n:
            return -1, 0
        return int(self._first[unseen[built.row_of.row[built.row_of.start[:-1]]]].min()), n

    def _refuse_ids(self, names: Sequence[str], read: Sequence[_Read], ids: str) -> None:
        """Refuse columns in which nearly every label occurs once, and names that nobody said are the ids."""
        for name, one in zip(names, read, strict=True):
            where = in_every_row(one.members)
            texts = len(one.labels) and isinstance(one.labels[0], str)
            if ids == "none" and texts and len(one.members) >= _NAMES and (one.members == 1).all():
                where = "in every row"
            if where:
                if_ids = (
                    "" if ids == "given" else f"if it holds the ids, say --id {shlex.quote(name)}; otherwise "
                )
                named = "name it by ids=" if ids == "blocks" else f"pass index={name!r}"
                raise UsageError(
                    f"base clustering {name!r} has a different label {where}.",
                    hint=f"if it holds ids, {named}; otherwise leave the column out.",
                    command=f"{if_ids}choose the columns of labels with --columns.",
                )


class RowOf(NamedTuple):
    """Which row of a table of distinct rows an instance has."""

    row: (
        np.ndarray
    )  # of each row in the builder's numbers; of those with noise, as many as they have instances
    start: np.ndarray  # where those of each begin
    noisy: np.ndarray
    number: np.ndarray | None  # which row in the builder's numbers each instance has, where that was kept

    def instances(self) -> np.ndarray:
        """For all instances, in their order."""
        assert self.number is not None
        return self.of(self.number, np.zeros(len(self.noisy), dtype=np.int64))

    def of(self, number: np.ndarray, met: np.ndarray) -> np.ndarray:
        """For some of them; `met` counts, row by row, how many came before, and is counted up."""
        place = self.start[number]
        if self.noisy.any():
            noise = np.flatnonzero(self.noisy[number])
            rows = number[noise]
            order = np.argsort(rows, kind="stable")
            ranked = rows[order]
            begins = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1])) if len(ranked) else ranked
            nth = np.empty(len(rows), dtype=np.int64)
            nth[order] = np.arange(len(rows)) - np.repeat(begins, np.diff(np.append(begins, len(rows))))
            place = place.copy()
            place[noise] += met[rows] + nth
            np.add.at(met, rows, 1)
        return self.row[place]


class _Read(NamedTuple):
    """A column whose values were looked at."""

    labels: np.ndarray  # in order
    code_of: np.ndarray  # the place there of every value; -1 for missing, -2 for noise
    members: np.ndarray  # how many rows each label has
    noise: bool  # whether some are in no cluster


def _read(name: str, column: _Column, labels: list[Any], negative: Negative, where: Where) -> _Read:
    """Put the labels of a column in order, and refuse what cannot be labels."""
    _refuse_numbers(name, column, labels, where)
    below = [is_negative(label) for label in labels]
    kept = {label for label, low in zip(labels, below, strict=True) if not low}
    _refuse_two_kinds(name, kept)
    # Sorted, so that codes do not depend on the order of rows; by type first, since 1 < "a" is an error.
    try:
        ordered = sorted(kept, key=lambda label: (type(label).__name__, label))
    except TypeError as error:
        raise InputTypeError(
            f"base clustering {name!r} holds labels that cannot be sorted ({error}).",
            hint="turn them into strings.",
        ) from error
    rank = {label: code for code, label in enumerate(ordered)}
    low = _NOISE if negative == "noise" else MISSING
    code_of = np.array([low if is_negative(label) else rank[label] for label in labels], dtype=np.int64)
    members = np.bincount(code_of[code_of >= 0], column.members[code_of >= 0], len(ordered))
    return _Read(
        _array(ordered, boolean=column.boolean and bool(column.number)),
        code_of,
        members.astype(np.int64),
        negative == "noise" and any(below),
    )


def _array(labels: list[Any], *, boolean: bool) -> np.ndarray:
    if all(map(is_int64, labels)):
        return np.array(labels, dtype=bool if boolean and labels else np.int64)
    return object_array(labels)


def _refuse_numbers(name: str, column: _Column, labels: list[Any], where: Where) -> None:
    """Refuse numbers that are no labels, naming the first row that has one."""
    strange = [place for place, label in enumerate(labels) if isinstance(label, float)]
    if not strange:
        return
    place = min(strange, key=column.first.__getitem__)
    label = labels[place]
    n = sum(int(column.members[other]) for other in strange if _fault(labels[other]) == _fault(label))
    rows = where(column.first[place]) + (f" and {n - 1} other{'s' if n > 2 else ''}" if n > 1 else "")
    if _fault(label) == "infinite":
        raise InputError(
            f"base clustering {name!r} has the label inf in {rows}.", hint="mark missing entries as NaN."
        )
    if _fault(label) == "fraction":
        raise InputError(
            f"base clustering {name!r} has the value {label!r} in {rows}, which is not a cluster label.",
            hint="this looks like a feature, not a label; cluster the features first "
            "(consilience.generate.base_partitions).",
            command="this looks like a feature, not a label; use consilience cluster.",
        )
    raise InputError(
        f"base clustering {name!r} has the label {label:.0f} in {rows}, which is too large for a float to "
        "hold exactly.",
        hint="pass integers or strings.",
    )


def _fault(label: float) -> str:
    """Why a float is no label."""
    return "infinite" if not np.isfinite(label) else "large" if label == np.floor(label) else "fraction"


def _refuse_two_kinds(name: str, labels: set[Any]) -> None:
    """Refuse 1 beside "1": whether they are one label, only the user knows."""
    texts = {label for label in labels if isinstance(label, str)}
    twice = sorted(str(label) for label in labels if isinstance(label, int) and str(label) in texts)
    if twice:
        raise InputError(
            f"base clustering {name!r} has the label {twice[0]} both as a number and as text.",
            hint="write it one way everywhere: all as numbers, or all as text.",
        )


def in_every_row(members: np.ndarray) -> str:
    """Where nearly every label occurs once, that in words; `members` counts the rows of every label.

    Such a column tells no two instances together, and tables of its clusters would fill the memory.
    """
    n, once = int(members.sum()), int((members == 1).sum())
    if n < _IDS_ROWS or once < _IDS_SHARE * n:
        return ""
    return "in every row" if once == n else f"in nearly every row ({once} of {n} occur once)"


def _warn_of_marks(names: Sequence[str], columns: Sequence[_Read]) -> None:
    """Warn of labels such as "?", which rather say that there is none. A "-" beside a "+" is a sign."""
    found = [
        (name, label, int(n))
        for name, column in zip(names, columns, strict=True)
        if column.labels.dtype == object
        for label, n in zip(column.labels.tolist(), column.members, strict=True)
        if isinstance(label, str) and (is_mark(label) or label == "-1")
        if not (label == "-" and "+" in column.labels.tolist())
    ]
    if not found:
        return
    counts = "counts as a cluster" if len(found) == 1 else "count as clusters"
    told = [f"{label!r} in column {name!r} ({counted(n, 'row')})" for name, label, n in found[:_SHOWN]]
    told += [f"{len(found) - _SHOWN} more"] * (len(found) > _SHOWN)
    marks = list(dict.fromkeys(label for _, label, _ in found))[:_SHOWN]
    warn(
        f"{', '.join(told[:-1])}{' and ' * (len(told) > 1)}{told[-1]} {counts}.",
        hint="if this means that there is no label, replace it by None "
        f"(in pandas: labels.replace({{{marks[0]!r}: None}})).",
        command="if this means that there is no label, name every such mark: "
        f"{' '.join(f'--missing {shlex.quote(mark)}' for mark in (*marks, ''))}",
    )


def _warn_of_likes(names: Sequence[str], columns: Sequence[_Read]) -> None:
    """Warn of labels that differ in spaces, case or the like only: they are never put together by guess."""
    found = [
        (name, group)
        for name, column in zip(names, columns, strict=True)
        if column.labels.dtype == object
        for group in look_alike(column.labels.tolist())
    ]
    if not found:
        return
    name, group = found[0]
    more = f" ({len(found) - 1} more such groups)" if len(found) > 1 else ""
    warn(
        f"{', '.join(map(repr, group[:_SHOWN]))} in column {name!r}{more} differ only in spaces, case, "
        "leading zeros or the form of letters; they count as different labels.",
        hint="if they mean the same, write them the same way.",
    )


def _stacked(columns: Sequence[np.ndarray], categories: Sequence[np.ndarray]) -> np.ndarray:
    # -k fits where k - 1 does, and it makes the type signed.
    kind = np.min_scalar_type(-max(len(labels) for labels in categories))
    out = np.empty((len(columns[0]), len(columns)), dtype=kind, order="F")  # columns are read one by one
    for i, column in enumerate(columns):
        out[:, i] = column
    return out


def _merged(parts: Sequence[_Rows], sizes: np.ndarray) -> _Rows:
    """Distinct rows of several pieces as one."""
    found = distinct_rows(
        np.concatenate([part.codes for part in parts]),
        sizes,
        np.concatenate([part.counts for part in parts]),
    )
    first = np.full(len(found.codes), np.iinfo(np.int64).max)
    np.minimum.at(first, found.inverse, np.concatenate([part.first for part in parts]))
    number = None
    if all(part.number is not None for part in parts):
        places = np.split(found.inverse.astype(np.int32), np.cumsum([len(part.codes) for part in parts])[:-1])
        number = np.concatenate([place[part.number] for place, part in zip(places, parts, strict=True)])
    return _Rows(found.codes, found.counts, first, number)


class Frozen:
    """New rows in the terms of labels that were read before; see `Built`."""

    def __init__(self, names: Sequence[str], categories: Sequence[np.ndarray]) -> None:
        self.names = tuple(names)
        self._known = [
            {label: code for code, label in enumerate(plain_values(labels)) if not is_negative(label)}
            for labels in categories
        ]
        self._boolean = [labels.dtype == bool for labels in categories]

    def codes(self, piece: Piece, *, text: bool) -> tuple[np.ndarray, dict[tuple[int, Any], np.ndarray]]:
        """Codes of a piece, -1 for what is missing or not known; and the rows of labels that are not known.

        Negative numbers are in no cluster that was fitted: they are missing.
        """
        kind = np.min_scalar_type(-max(1, *map(len, self._known)))
        out = np.full((piece.n_rows, len(self.names)), MISSING, dtype=kind)
        unknown: dict[tuple[int, Any], np.ndarray] = {}
        for i, name in enumerate(self.names):
            if name not in piece.columns:
                continue
            codes, values, own = piece.columns[name]
            used = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
            numbers = [MISSING] * len(values)
            for place, (label, n) in enumerate(zip(plain_values(values), used, strict=True)):
                if not n or label is None:
                    continue
                spoken = self._spoken(i, label) if text or own else label
                numbers[place] = self._known[i].get(spoken, MISSING)
                if numbers[place] == MISSING and not is_negative(spoken):
                    unknown[i, label] = np.flatnonzero(codes == place)
            out[:, i] = np.array([*numbers, MISSING])[codes]
        return out, unknown

    def _spoken(self, i: int, label: Any) -> Any:
        """What text of a file says: a number, or true or false, where these were fitted."""
        if not isinstance(label, str) or label in self._known[i]:
            return label
        if self._boolean[i] and label.lower() in ("true", "false"):
            return int(label.lower() == "true")
        spoken = labels_as_numbers([label])[0]
        return spoken if isinstance(spoken, int) else label
