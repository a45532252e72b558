"""What leaves a party: keyed ids and codes of labels, without the labels that too few instances have."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience.evidence.partitions import MISSING, Partitions
from consilience.federated.keys import keyed_ids

SMALLEST = 5  # members of a label that may leave, where the party does not say


class PartyError(InputError):
    """What is wrong at a party, in words that may be logged and sent: no id, no label, no path is in them."""


class Part(NamedTuple):
    """What leaves a party, and nothing else does.

    Rows are in the order of the keyed ids, so that their order says nothing. ``codes[p, i]`` is the label of
    row p in column i, from 0 for the most frequent label of that column, -1 where there is none.
    """

    party: str
    columns: tuple[str, ...]
    ids: np.ndarray  # (n_rows, 32) bytes
    codes: np.ndarray  # (n_rows, n_columns), the smallest signed integers that fit

    @property
    def n_bytes(self) -> int:
        """Bytes that are sent; Flower adds less than a thousand."""
        return int(self.ids.nbytes + self.codes.nbytes)


class Column(NamedTuple):
    """A column of labels, before and after labels of few members were held back."""

    name: str
    n_labels: int
    n_held_back: int  # labels
    n_rows: int  # with a label that leaves
    n_rows_held_back: int


class Prepared(NamedTuple):
    """What would leave, and where each of its rows is in the party's own table."""

    part: Part
    order: np.ndarray
    columns: tuple[Column, ...]


def prepare(table: Partitions, ids: Any, party: str, key: bytes, smallest: int = SMALLEST) -> Prepared:
    """What leaves a party: its ids under the key, its labels as codes.

    Parameters
    ----------
    table : Partitions
        The party's base clusterings.
    ids : sequence
        An id for every row, all different.
    party : str
        The name of the party, by which the others know it.
    key : bytes
        The key that the parties share.
    smallest : int, default=5
        Labels with fewer members are held back: they become missing. 1 holds nothing back.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.federated import prepare
    >>> table = Partitions.of({"segment": ["gold", "basic", "basic", "platinum"]})
    >>> found = prepare(table, ["ann", "bob", "cleo", "dan"], "bank a", b"a key that the parties share", 2)
    >>> found.part.codes.ravel().tolist(), found.order.tolist()
    ([0, -1, 0, -1], [1, 0, 2, 3])
    >>> found.columns[0].n_held_back, found.part.n_bytes
    (2, 132)
    """
    if smallest < 1:
        raise PartyError(
            f"the smallest cluster of party {party!r} is {smallest}.", hint="1 holds nothing back."
        )
    coded, columns = [], []
    for name, given, labels in zip(table.names, table.codes.T, table.categories, strict=True):
        sizes = np.bincount(given[given >= 0], minlength=len(labels))
        kept = np.flatnonzero(sizes >= smallest)
        # By size, which the codes would give away anyhow; labels of one size stay in their order, by which
        # methods tell apart what members do not.
        kept = kept[np.argsort(-sizes[kept], kind="stable")]
        number = np.full(len(labels) + 1, MISSING)
        number[kept] = np.arange(len(kept))
        coded.append(number[given])
        rows = int(sizes[kept].sum())
        columns.append(Column(name, len(labels), len(labels) - len(kept), rows, int(sizes.sum()) - rows))
    if not any(column.n_rows for column in columns):
        raise PartyError(
            f"every label of party {party!r} has fewer than {smallest} members, and nothing would leave.",
            hint="lower the smallest cluster, or leave the party out.",
        )
    keyed = keyed_ids(ids, key)
    order = np.argsort(as_words(keyed), kind="stable")
    codes = np.column_stack(coded)[order]
    codes = np.ascontiguousarray(codes, dtype=np.min_scalar_type(-int(codes.max()) - 1))
    part = Part(party, table.names, np.ascontiguousarray(keyed[order]), codes)
    return Prepared(part, order, tuple(columns))


def as_words(ids: np.ndarray) -> np.ndarray:
    """Keyed ids as one value each, which NumPy can sort and compare."""
    return np.ascontiguousarray(ids).view(f"S{ids.shape[1]}").ravel()
