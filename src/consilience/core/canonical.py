"""The same table under any names and in any order: base clusterings and clusters by who is in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from consilience.core.grouping import row_keys


class Rows(NamedTuple):
    """Distinct label rows, which is all that a label method reads.

    ``codes[p, i]`` is the cluster, from 0, in which base clustering i has the instances of row p; -1 where it
    never saw them. ``offsets[i]`` is where its clusters begin when those of all bases are stacked; the last
    entry is their number. Row p stands for ``counts[p]`` instances, base clustering i for
    ``base_weights[i]`` that say the same, all for one where that is None.
    """

    codes: np.ndarray
    offsets: np.ndarray
    counts: np.ndarray
    base_weights: np.ndarray | None = None

    @property
    def weights(self) -> np.ndarray:
        """The counts as floating-point numbers."""
        return self.counts.astype(float)

    def weigh_clusters(self, values: np.ndarray) -> np.ndarray:
        """Values of the stacked clusters (rows), each times the weight of its base clustering."""
        if self.base_weights is None:
            return values
        weights = np.repeat(self.base_weights, np.diff(self.offsets))
        return values * (weights if values.ndim == 1 else weights[:, None])

    def weigh_bases(self, marks: np.ndarray) -> np.ndarray:
        """Per row the weight of the base clusterings that are marked in (rows, bases), or their number."""
        return marks.sum(axis=1) if self.base_weights is None else marks @ self.base_weights

    def copied(self, times: np.ndarray) -> Rows:
        """The rows with so many copies of each base clustering, side by side, instead of weights."""
        k = np.repeat(np.diff(self.offsets), times)
        codes = np.ascontiguousarray(np.repeat(self.codes, times, axis=1))
        return Rows(codes, np.concatenate([[0], np.cumsum(k)]), self.counts)


def evenly(counts: np.ndarray, most: int, start: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Rows of `most` instances at equal distances, and how many of these each stands for; all rows if fewer.

    `start`, from 0 to 1, is where between nothing and the first distance the first instance lies.
    """
    if len(counts) <= most:
        return np.arange(len(counts)), counts
    reach = np.cumsum(counts)
    places = (start + np.arange(most)) / most * reach[-1]
    return np.unique(np.searchsorted(reach, places, side="right"), return_counts=True)


class Canonical(NamedTuple):
    """`Rows` in an order of rows, bases and clusters that follows from memberships alone."""

    rows: Rows
    order: np.ndarray  # which row of the given table each row is
    bases: np.ndarray  # which column of the given table each base clustering is
    clusters: np.ndarray  # which of the stacked clusters of the given table each stacked cluster is

    @property
    def numbering(self) -> Numbering:
        """The order of bases and clusters."""
        return Numbering(self.bases, self.clusters, self.rows.offsets)


class Numbering(NamedTuple):
    """Base clusterings and stacked clusters in their new order: which of the given ones each is."""

    bases: np.ndarray
    clusters: np.ndarray
    offsets: np.ndarray  # in the new order

    @classmethod
    def as_given(cls, offsets: np.ndarray) -> Numbering:
        """The numbers that are there."""
        return cls(np.arange(len(offsets) - 1), np.arange(int(offsets[-1])), offsets)

    def recode(self, codes: np.ndarray) -> np.ndarray:
        """Rows of codes of the given table in the new order of bases, by the new numbers of clusters."""
        k = np.diff(self.offsets)
        given = np.zeros(len(k) + 1, dtype=np.intp)
        given[1 + self.bases] = k
        given = np.cumsum(given)
        place = np.empty(len(self.clusters), dtype=np.intp)
        place[self.clusters] = np.arange(len(place))
        out = np.empty_like(codes, order="F")
        for i, old in enumerate(self.bases):
            numbers = place[given[old] : given[old + 1]] - self.offsets[i]
            out[:, i] = np.append(numbers, -1)[codes[:, old]]
        return np.ascontiguousarray(out)


def canonical(
    codes: np.ndarray, offsets: np.ndarray, counts: np.ndarray, base_weights: np.ndarray | None = None
) -> Canonical:
    """Number base clusterings and clusters by who is in them, and sort the rows.

    A solver that draws its starts by position, or whose ties fall by rounding, then gives the same answer to
    the last bit whatever names the clusters have and in whatever order rows and columns come. Where two
    clusters or bases cannot be told apart by their members, the given order decides between them.

    Cost: rows x bases a refinement; one is enough for most tables.
    """
    sizes = np.zeros(int(offsets[-1]) + 1, dtype=np.uint64)
    stacked = stack_codes(codes, offsets)
    times = counts // max(np.gcd.reduce(counts), 1)  # a table that is repeated as a whole keeps its order
    for column in stacked:
        np.add.at(sizes, column, times.astype(np.uint64))
    if base_weights is not None:  # base clusterings of different weights are different, whatever they say
        of_base = _mix(np.ascontiguousarray(base_weights, dtype=float).view(np.uint64))
        sizes[:-1] ^= np.repeat(of_base, np.diff(offsets))
    new = number(sizes[:-1], lambda colours: member_colours(stacked, times, colours), offsets)
    recoded = new.recode(codes)
    order = np.argsort(row_keys(recoded, np.diff(new.offsets)), kind="stable")
    weights = None if base_weights is None else base_weights[new.bases]
    rows = Rows(np.ascontiguousarray(recoded[order]), new.offsets, counts[order], weights)
    return Canonical(rows, order, new.bases, new.clusters)


def number(sizes: np.ndarray, refine: Callable[[np.ndarray], np.ndarray], offsets: np.ndarray) -> Numbering:
    """The order of bases and clusters, from the sizes of the clusters and sums over their rows.

    Colour refinement of the graph of rows and clusters: clusters are told apart by their sizes first, then by
    the clusters that their rows are in elsewhere (``refine(colours)``, see `member_colours`), and so on until
    that tells no more of them apart.
    """
    n_clusters, k = int(offsets[-1]), np.diff(offsets)
    base = np.repeat(np.arange(len(k)), k)
    colours, n_known = _mix(sizes.astype(np.uint64)), 0
    while True:
        of_base = np.add.reduceat(_mix(colours), offsets[:-1])
        colours = _mix(colours + _mix(of_base)[base])
        n_found = len(np.unique(colours))
        if n_found in (n_known, n_clusters):
            break
        n_known, colours = n_found, _mix(colours ^ refine(colours))
    bases = np.argsort(of_base, kind="stable")
    place = np.empty(len(bases), dtype=np.intp)
    place[bases] = np.arange(len(bases))
    clusters = np.lexsort((colours, place[base]))
    return Numbering(bases, clusters, np.concatenate([[0], np.cumsum(k[bases])]))


def stack_codes(codes: np.ndarray, offsets: np.ndarray) -> list[np.ndarray]:
    """Column by column, the place of every label among the clusters of all bases; the last is missing."""
    kind = np.min_scalar_type(offsets[-1])  # as many numbers as the table has labels: small ones
    return [
        np.where(column >= 0, column + start, offsets[-1]).astype(kind)
        for column, start in zip(codes.T, offsets[:-1], strict=True)
    ]


def member_colours(stacked: list[np.ndarray], counts: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """For every cluster the sum, over its instances, of what the colours of their clusters come to.

    Modulo 2^64: exact, and whatever the order of the terms. Sums over parts of the table add up.
    """
    term = np.append(_mix(colours), np.uint64(0))
    of_rows = np.zeros(len(counts), dtype=np.uint64)
    for column in stacked:
        of_rows += term[column]
    values, total = counts.astype(np.uint64) * _mix(of_rows), np.zeros_like(term)
    for column in stacked:
        np.add.at(total, column, values)
    return total[:-1]


def row_draws(codes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """A number between 0 and 1 for every row of canonical codes, as if drawn, that follows from its labels.

    It is the same wherever the row stands, so a sample of rows that are drawn by it depends neither on their
    order nor on the blocks they come in.
    """
    of_rows = np.zeros(len(codes), dtype=np.uint64)
    for column in stack_codes(codes, offsets):
        of_rows += _mix(column.astype(np.uint64))
    return (_mix(of_rows) >> np.uint64(11)) / 2.0**53  # exactly, so below one


def _mix(values: np.ndarray) -> np.ndarray:
    """Scatter the bits of 64-bit numbers (the finaliser of SplitMix64), so that sums of them say apart."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
