"""Equal entries of a long vector, counted: block by block first, then the blocks together."""

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
