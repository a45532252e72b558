"""Distinct label rows with counts from blocks: the statistics of a block, their merge, and the finish.

A method that reads only labels cannot tell instances with the same row apart, so the distinct rows with
their counts are all it needs. Every block shrinks to its own; two such tables merge into one, whatever the
order. Where even the merged table would be too large, the labels of every base clustering and the sizes of
the blocks are kept, and the rows are left where they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience._support.warnings import warn
from consilience.core.canonical import member_colours, number, stack_codes
from consilience.core.grouping import DistinctRows, distinct_rows, group
from consilience.dask.blocks import Blocks, Encoded, code_type, encode
from consilience.dask.engine import Engine, add
from consilience.evidence.partitions import Partitions
from consilience.io.frames import MISSING, encode_column, plain, refuse_ids, warn_of_marks

_IDS = "if it holds ids, name it by ids=; otherwise leave it out by columns=."


class Summary(NamedTuple):
    """What one or several blocks say."""

    names: tuple[str, ...]
    categories: tuple[np.ndarray, ...]  # per column; empty where there is no label
    codes: np.ndarray | None  # distinct rows with a label; None if there are too many
    counts: np.ndarray | None
    members: tuple[np.ndarray, ...]  # per column, how many rows have each label
    sizes: tuple[int, ...]  # rows of every block
    n_unseen: tuple[int, ...]  # rows of every block that no base clustering saw
    first_unseen: tuple[int, ...]  # the first of them, -1 if there is none
    digests: tuple[str, ...]  # of the rows of every block


class Table(NamedTuple):
    """The finished summary of all blocks."""

    partitions: Partitions  # the distinct rows with counts, where they fit; otherwise without rows
    fits: bool  # whether they do
    members: np.ndarray  # instances of every base cluster
    n_rows: int
    n_unseen: int
    sizes: tuple[int, ...]
    fingerprint: str


def summarize(piece: Any, number: int, max_distinct: int) -> Summary:
    """The statistics of a block."""
    block = encode(number, piece)
    every = distinct_rows(block.codes, _sizes(block.categories))
    seen = (every.codes >= 0).any(axis=1)
    rows, counts = every.codes[seen], every.counts[seen]
    unseen = np.flatnonzero((block.codes < 0).all(axis=1))
    few = len(rows) <= max_distinct
    return Summary(
        block.names,
        block.categories,
        rows if few else None,
        counts if few else None,
        tuple(
            np.bincount(column[column >= 0], counts[column >= 0], len(labels)).astype(np.int64)
            for column, labels in zip(rows.T, block.categories, strict=True)
        ),
        (len(block.codes),),
        (len(unseen),),
        (int(unseen[0]) if len(unseen) else -1,),
        (_digest(block, rows, counts),),
    )


def _digest(block: Encoded, rows: np.ndarray, counts: np.ndarray) -> str:
    found = hashlib.blake2b(digest_size=16)
    found.update(repr((block.names, [labels.tolist() for labels in block.categories])).encode())
    found.update(np.ascontiguousarray(rows).tobytes())
    found.update(counts.tobytes())
    return found.hexdigest()


def merge(parts: Sequence[Summary], max_distinct: int) -> Summary:
    """The statistics of several blocks as one."""
    names = parts[0].names
    for part in parts:
        if part.names != names:
            raise InputError(
                f"blocks have other columns: {list(names)} and {list(part.names)}.",
                hint="every block has the same base clusterings, in the same order.",
            )
    unions = [_union([part.categories[i] for part in parts], name) for i, name in enumerate(names)]
    categories = tuple(labels for _, labels in unions)
    codes, counts = None, None
    if all(part.codes is not None for part in parts):
        stacked = np.concatenate(
            [
                recode(np.asarray(part.codes), [maps[b] for maps, _ in unions], code_type(categories))
                for b, part in enumerate(parts)
            ]
        )
        rows = distinct_rows(stacked, _sizes(categories), np.concatenate([part.counts for part in parts]))
        if len(rows.counts) <= max_distinct:
            codes, counts = rows.codes, rows.counts
    members = tuple(
        np.bincount(np.concatenate(maps), np.concatenate([part.members[i] for part in parts]), len(labels))
        for i, (maps, labels) in enumerate(unions)
    )
    for name, (_, labels), own in zip(names, unions, members, strict=True):
        if len(labels) > max_distinct:  # before the labels alone fill the memory
            refuse_ids(name, own, hint=_IDS)
    joined = (sum(field, ()) for field in zip(*(part[5:] for part in parts), strict=True))
    return Summary(names, categories, codes, counts, members, *joined)


def _union(categories: list[np.ndarray], name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """The labels of all blocks in order, and the code there of every label here."""
    given = [labels for labels in categories if len(labels)]
    if not given:
        return [np.empty(0, dtype=np.int64)] * len(categories), np.empty(0, dtype=np.int64)
    codes, labels = encode_column(np.concatenate(given), "missing", name, None)
    ends = np.cumsum([len(part) for part in categories])
    return np.split(codes, ends[:-1]), labels


def recode(codes: np.ndarray, maps: Sequence[np.ndarray], dtype: Any) -> np.ndarray:
    """Codes in other terms, column by column; missing stays missing."""
    out = np.empty(codes.shape, dtype=dtype, order="F")
    for i, new in enumerate(maps):
        out[:, i] = np.append(new, MISSING)[codes[:, i]]
    return out


def _sizes(categories: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([len(labels) for labels in categories])


def read_table(blocks: Blocks, engine: Engine, max_distinct: int, unobserved: str) -> Table:
    """One pass over the blocks: their distinct rows, checked as a table in memory is."""
    merge_few = partial(merge, max_distinct=max_distinct)
    return finish(engine.reduce("reading", summarize, merge_few, blocks.parts, max_distinct), unobserved)


def finish(summary: Summary, unobserved: str) -> Table:
    """The table of all blocks, checked as a table in memory is."""
    kept = [i for i, labels in enumerate(summary.categories) if len(labels)]
    n_rows, n_unseen = sum(summary.sizes), sum(summary.n_unseen)
    if n_rows == 0:
        raise InputError("the blocks have no rows.", hint="labels need at least one row (instance).")
    if not kept:
        raise InputError(
            "every entry of the label table is missing.", hint="NaN, None and negative numbers mean missing."
        )
    for j in sorted(set(range(len(summary.names))) - set(kept)):
        warn(
            f"base clustering {summary.names[j]!r} (column {j}) has no label at all and is ignored.",
            hint="drop the column, or check how missing entries are marked.",
        )
    if n_unseen and unobserved == "error":
        b = next(b for b, count in enumerate(summary.n_unseen) if count)
        raise InputError(
            f"no base clustering saw row {summary.first_unseen[b]} of block {b} ({n_unseen} in all).",
            hint="remove these instances, or set 'unobserved' to 'noise' or 'largest'.",
        )
    for i in kept:
        refuse_ids(summary.names[i], summary.members[i], hint=_IDS)
    categories = [summary.categories[i] for i in kept]
    own_names = [summary.names[i] for i in kept]
    warn_of_marks(own_names, categories, lambda i, code: summary.members[kept[i]][code])
    codes = np.empty((0, len(kept)), dtype=code_type(categories))
    if summary.codes is not None:
        codes = np.ascontiguousarray(summary.codes[:, kept])
    partitions = Partitions.of_rows(codes, categories, summary.names, counts=summary.counts, kept=kept)
    fingerprint = hashlib.blake2b("".join(summary.digests).encode(), digest_size=16).hexdigest()
    members = np.concatenate([summary.members[i] for i in kept])
    return Table(partitions, summary.codes is not None, members, n_rows, n_unseen, summary.sizes, fingerprint)


# --- the way back to the rows of a block --------------------------------------------------------------------


class Terms(NamedTuple):
    """The labels of the whole table: what a block needs to be read in its terms."""

    columns: tuple[int, ...]
    categories: tuple[np.ndarray, ...]


class Order(NamedTuple):
    """A table's terms in the order in which solvers work, and the way back."""

    terms: Terms
    offsets: np.ndarray
    clusters: np.ndarray  # which of the stacked clusters of the table each stacked cluster is


def canonical_order(engine: Engine, blocks: Blocks, table: Table) -> Order:
    """The order of base clusterings and clusters of `Partitions.canonical`, by passes over the blocks."""
    known = table.partitions
    given = Terms(known.columns, known.categories)

    def refine(colours: np.ndarray) -> np.ndarray:
        return np.asarray(engine.reduce("ordering", block_colours, add, blocks.parts, given, colours))

    new = number(table.members, refine, known.offsets)
    categories = [
        known.categories[i][new.clusters[low:high] - known.offsets[i]]
        for i, (low, high) in zip(new.bases, pairwise(new.offsets.tolist()), strict=True)
    ]
    terms = Terms(tuple(known.columns[i] for i in new.bases), tuple(categories))
    return Order(terms, new.offsets, new.clusters)


def block_colours(piece: Any, number: int, terms: Terms, colours: np.ndarray) -> np.ndarray:
    """`member_colours` of a block."""
    rows = block_rows(piece, number, terms)
    offsets = np.concatenate([[0], np.cumsum(_sizes(terms.categories))])
    return member_colours(stack_codes(rows.codes, offsets), rows.counts, colours)


def block_rows(piece: Any, number: int, terms: Terms) -> DistinctRows:
    """The distinct rows of a block in the terms of the whole table; rows without a label are among them."""
    block = encode(number, piece)
    maps = [
        _positions(block.categories[j], known, number)
        for j, known in zip(terms.columns, terms.categories, strict=True)
    ]
    codes = recode(block.codes[:, list(terms.columns)], maps, code_type(terms.categories))
    return distinct_rows(codes, _sizes(terms.categories))


def _positions(labels: np.ndarray, known: np.ndarray, number: int) -> np.ndarray:
    place = {plain(label): code for code, label in enumerate(known)}
    try:
        return np.array([place[plain(label)] for label in labels], dtype=np.int64)
    except KeyError as error:
        raise InputError(
            f"block {number} has the label {error.args[0]!r}, which was not there in an earlier pass.",
            hint="the blocks must not change while they are read; fit again.",
        ) from None


class RowIndex(NamedTuple):
    """Finds rows of codes among those of a table: a number per row, by a few columns at a time.

    The product of the numbers of clusters soon overflows. Before it does, the numbers so far are ranked
    among those that occur, and the next columns start from the ranks.
    """

    sizes: np.ndarray
    stages: tuple[tuple[int, np.ndarray], ...]  # columns up to here, and the sorted numbers that occur
    order: np.ndarray  # which row of the table the last rank is

    @classmethod
    def of(cls, codes: np.ndarray, n_clusters: np.ndarray) -> RowIndex:
        """The index of a table of distinct rows."""
        key, size, stages = np.zeros(len(codes), dtype=np.int64), 1, []
        for i, k in enumerate(n_clusters.tolist()):
            if size * (k + 1) >= 2**63:
                found = group(key)
                stages.append((i, found.values))
                key, size = found.inverse.astype(np.int64), len(found.values)
            key = key * (k + 1) + codes[:, i] + 1
            size *= k + 1
        order = np.argsort(key)
        return cls(n_clusters, (*stages, (len(n_clusters), key[order])), order)

    def find(self, codes: np.ndarray) -> np.ndarray:
        """The row of the table that equals each of these."""
        key, done = np.zeros(len(codes), dtype=np.int64), 0
        for stop, known in self.stages:
            for i in range(done, stop):
                key = key * (self.sizes[i] + 1) + codes[:, i] + 1
            place = np.minimum(np.searchsorted(known, key), len(known) - 1)
            if not np.array_equal(known[place], key):
                raise InputError(
                    "a block has a label row that was not there in an earlier pass.",
                    hint="the blocks must not change while they are read; fit again.",
                )
            key, done = place, stop
        return self.order[key]
