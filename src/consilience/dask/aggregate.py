"""Distinct label rows with counts from blocks: the statistics of a block, their merge, and the finish.

A method that reads only labels cannot tell instances with the same row apart, so the distinct rows with
their counts are all it needs. Every block shrinks to its own; two such tables merge into one, whatever the
order. Where even the merged table would be too large, the labels of every base clustering and the sizes of
the blocks are kept, and the rows are left where they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience.core.canonical import member_colours, number, stack_codes
from consilience.core.grouping import DistinctRows, distinct_rows
from consilience.dask.blocks import Blocks, read_piece
from consilience.dask.engine import Engine, add
from consilience.evidence.builder import Builder, Frozen
from consilience.evidence.partitions import Partitions, nobody_saw
from consilience.io.labels import is_negative, plain_values
from consilience.io.pieces import Piece


class Summary(NamedTuple):
    """What one or several blocks say."""

    table: Builder
    sizes: tuple[int, ...]  # rows of every block
    digests: tuple[str, ...]  # of the rows of every block
    unseen: tuple[tuple[int, int], ...]  # of every block: rows without any label, and the first of them


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
    read = read_piece(number, piece)
    builder = Builder(keep="counts", most=max_distinct)
    builder.add(read)
    return Summary(builder.settled(), (read.n_rows,), (_digest(read),), (_unseen(read),))


def _unseen(piece: Piece) -> tuple[int, int]:
    """How many rows have no label, and the first: they must be known also where no rows are kept."""
    bare = np.ones(piece.n_rows, dtype=bool)
    for codes, values, _ in piece.columns.values():
        said = [key is not None and not is_negative(key) for key in plain_values(values)]
        bare &= ~np.array([*said, False])[codes]
    return int(bare.sum()), int(bare.argmax()) if len(bare) else 0


def _digest(piece: Piece) -> str:
    """Of the values and codes of a block."""
    found = hashlib.blake2b(digest_size=16)
    for name, (codes, values, _) in piece.columns.items():
        found.update(repr((name, list(values))).encode())
        found.update(np.ascontiguousarray(codes, dtype=np.int64).tobytes())
    return found.hexdigest()


def merge(parts: Sequence[Summary]) -> Summary:
    """The statistics of several blocks as one."""
    whole = Builder(keep="counts", most=parts[0].table.most)
    for part in parts:
        whole.merge(part.table)
    joined = (sum(field, ()) for field in zip(*(part[1:] for part in parts), strict=True))
    return Summary(whole.settled(), *joined)


def read_table(blocks: Blocks, engine: Engine, max_distinct: int, unobserved: str) -> Table:
    """One pass over the blocks: their distinct rows, checked as a table in memory is."""
    return finish(engine.reduce("reading", summarize, merge, blocks.parts, max_distinct), unobserved)


def finish(summary: Summary, unobserved: str) -> Table:
    """The table of all blocks."""
    builder, sizes = summary.table, summary.sizes
    if not builder.n_rows:
        raise InputError("the blocks have no rows.", hint="labels need at least one row (instance).")
    ends = np.cumsum(sizes)

    def where(row: int) -> str:
        block = int(np.searchsorted(ends, row, side="right"))
        return f"row {row - int(ends[block]) + sizes[block]} of block {block}"

    built = builder.finish(where=where, ids="blocks")
    n_unseen = sum(n for n, _ in summary.unseen)
    if n_unseen and unobserved == "error":
        block = next(b for b, (n, _) in enumerate(summary.unseen) if n)
        raise nobody_saw(f"row {summary.unseen[block][1]} of block {block}", n_unseen)
    seen = (built.codes >= 0).any(axis=1)
    known = built._replace(
        codes=built.codes[seen], counts=None if built.counts is None else built.counts[seen]
    )
    fingerprint = hashlib.blake2b("".join(summary.digests).encode(), digest_size=16).hexdigest()
    partitions, members = Partitions.of_built(known), np.concatenate(built.members)
    return Table(partitions, builder.fits, members, builder.n_rows, n_unseen, sizes, fingerprint)


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
    offsets = np.concatenate([[0], np.cumsum([len(labels) for labels in terms.categories])])
    return member_colours(stack_codes(rows.codes, offsets), rows.counts, colours)


def block_rows(piece: Any, number: int, terms: Terms) -> DistinctRows:
    """The distinct rows of a block in the terms of the whole table; rows without a label are among them."""
    read = read_piece(number, piece)
    names = [list(read.columns)[j] for j in terms.columns]
    codes, unknown = Frozen(names, terms.categories).codes(read, text=False)
    if unknown:
        raise InputError(
            f"block {number} has the label {next(iter(unknown))[1]!r}, which was not there in an earlier "
            "pass.",
            hint="the blocks must not change while they are read; fit again.",
        )
    return distinct_rows(codes, np.array([len(labels) for labels in terms.categories]))
