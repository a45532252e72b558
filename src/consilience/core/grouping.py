"""Equal entries of a long vector and equal rows of a table: counted, and found again."""

from typing import NamedTuple

import numpy as np

from consilience.core import hot
from consilience.core.blocks import map_blocks
from consilience.core.compiled import FEW

# Large enough that most repetitions fall into one block, small enough for a hash table in the cache.
_GROUP_ROWS = 2**15


class Groups(NamedTuple):
    """``values[inverse]`` is the vector; ``values`` are sorted and occur ``counts`` times."""

    values: np.ndarray
    counts: np.ndarray
    inverse: np.ndarray


def group(keys: np.ndarray) -> Groups:
    """The distinct entries of a vector of int64 with their counts.

    Where entries repeat, every block shrinks to a few distinct ones by hashing, and only those are sorted;
    where they do not, the vector is sorted as a whole.
    """
    if len(keys) <= FEW:
        return _sort(keys)
    parts = list(map_blocks(lambda rows: _hash(keys[rows]), len(keys), block_rows=_GROUP_ROWS))
    sizes = [len(part.values) for part in parts]
    if sum(sizes) > len(keys) // 2:
        return _sort(keys)
    values, place = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
    counts = np.bincount(place, weights=np.concatenate([part.counts for part in parts])).astype(np.int64)
    places = np.split(place, np.cumsum(sizes)[:-1])
    inverse = np.concatenate([where[part.inverse] for where, part in zip(places, parts, strict=True)])
    return Groups(values, counts, inverse)


def _sort(keys: np.ndarray) -> Groups:
    values, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return Groups(values, counts, inverse)


def _hash(keys: np.ndarray) -> Groups:
    """Groups of a block, in the order of first occurrence instead of sorted."""
    n = len(keys)
    slots = np.full(2 ** (n.bit_length() + 1), -1, dtype=np.int32)
    values, counts, inverse = (
        np.empty(n, dtype=keys.dtype),
        np.empty(n, dtype=np.int64),
        np.empty(n, np.int32),
    )
    found = hot.group(keys, slots, values, counts, inverse)
    return Groups(values[:found], counts[:found], inverse)


def largest_first(
    labels: np.ndarray,
    n_clusters: int,
    counts: np.ndarray | None = None,
    place: np.ndarray | None = None,
) -> np.ndarray:
    """The clusters by size; of equal ones, the one whose first instance comes first.

    `place` is the place of each instance in some order; without it, their given order counts. A solver's own
    numbers play no part, since they may depend on rounding.
    """
    first = np.full(n_clusters, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)) if place is None else place)
    return np.lexsort((first, -np.bincount(labels, counts, n_clusters)))


def row_keys(codes: np.ndarray, n_clusters: np.ndarray) -> np.ndarray:
    """One integer per row of codes from -1, equal exactly for equal rows and in lexicographic order."""
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


class DistinctRows(NamedTuple):
    """``codes[inverse]`` is the table; row p occurs ``counts[p]`` times. In lexicographic order."""

    codes: np.ndarray
    counts: np.ndarray
    inverse: np.ndarray


def distinct_rows(
    codes: np.ndarray, n_clusters: np.ndarray, counts: np.ndarray | None = None
) -> DistinctRows:
    """The distinct rows of a table of codes, each row of which stands for one or ``counts`` instances."""
    key = row_keys(codes, n_clusters)
    _, n_rows, inverse = group(key)
    member = np.empty(len(n_rows), dtype=np.intp)
    member[inverse] = np.arange(len(key))  # any row of a group will do: they are equal
    if counts is not None:
        n_rows = np.bincount(inverse, counts, len(n_rows)).astype(np.int64)
    return DistinctRows(np.ascontiguousarray(codes[member]), n_rows, inverse)


class RowIndex(NamedTuple):
    """Rows of a table by their keys, so that equal rows of other tables are found without a pass over all."""

    keys: np.ndarray  # sorted
    order: np.ndarray  # the row of each key
    codes: np.ndarray


def index_rows(codes: np.ndarray, weights: np.ndarray) -> RowIndex:
    """Rows by key; of equal ones, that of the largest weight is found."""
    keys = _hashed(codes)
    order = np.lexsort((-weights, keys))
    return RowIndex(keys[order], order, codes)


def find_rows(index: RowIndex, codes: np.ndarray) -> np.ndarray:
    """For each row the equal row of the index, -1 where there is none."""
    keys = _hashed(codes)
    place = np.minimum(np.searchsorted(index.keys, keys), len(index.keys) - 1)
    row = index.order[place]
    same = index.keys[place] == keys
    same[same] = (index.codes[row[same]] == codes[same]).all(axis=1)  # two rows can share a key
    return np.where(same, row, -1)


def _hashed(codes: np.ndarray) -> np.ndarray:
    """A 64-bit number per row: a sum of its codes times fixed odd numbers, modulo 2^64."""
    factors = np.random.default_rng(0).integers(np.full(codes.shape[1], 2**63), dtype=np.uint64)
    keys = np.zeros(len(codes), dtype=np.uint64)
    for column, factor in zip(codes.T, factors, strict=True):
        keys += column.astype(np.int64).view(np.uint64) * (2 * factor + 1)
    return keys
