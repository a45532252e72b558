"""Order statistics of a value that every row has, over all blocks, exactly.

The bits of a floating-point number are ordered like the number itself. So a pass counts weight by the
leading bits, the next one looks closer at those in which a wanted place lies, and after a few passes every
wanted value is known to its last bit. What a block sends is a table of at most a few hundred entries for
each place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.dask.engine import Engine, stack

# Bits that are looked at in the first pass, sign and exponent among them, and in each further one.
_FIRST, _MORE = 24, 8


class Tally(NamedTuple):
    """Weight and range of the values, by their leading bits."""

    keys: np.ndarray
    weights: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Place(NamedTuple):
    """What was asked for, and the largest value of all."""

    values: np.ndarray
    highest: float


def ordered_bits(values: np.ndarray) -> np.ndarray:
    """Integers in the order of the values."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    return bits ^ ((bits >> 63) & np.int64(2**63 - 1))


def tally(
    state: Any, number: int, measure: Any, given: Any, shift: int, wanted: np.ndarray | None, before: int
) -> Tally:
    """The tally of a block; of `wanted` leading bits only, if there are any."""
    values, weights = measure(state, given)
    bits = ordered_bits(values)
    if wanted is not None:
        kept = np.isin(bits >> before, wanted)
        values, weights, bits = values[kept], weights[kept], bits[kept]
    return _grouped(bits >> shift, weights, values, values)


def _grouped(keys: np.ndarray, weights: np.ndarray, low: np.ndarray, high: np.ndarray) -> Tally:
    order = np.argsort(keys, kind="stable")
    known, first = np.unique(keys[order], return_index=True)
    return Tally(
        known,
        np.add.reduceat(weights[order], first),
        np.minimum.reduceat(low[order], first),
        np.maximum.reduceat(high[order], first),
    )


def merge_tallies(parts: Sequence[Tally]) -> Tally:
    """Several tallies as one."""
    return _grouped(*stack(parts))


def locate(
    engine: Engine, step: str, states: list[Any], measure: Any, given: Any, places: np.ndarray
) -> Place:
    """For every place the first value at which the weight of all values up to it exceeds the place.

    ``measure(state, given)`` returns the values of a block and their weights.
    """
    shift = 64 - _FIRST
    wanted, before, below, highest = None, 64, np.zeros(1), -np.inf
    while True:
        found = engine.reduce(step, tally, merge_tallies, states, measure, given, shift, wanted, before)
        highest = max(highest, float(found.high.max()))
        reach = np.cumsum(found.weights)
        if wanted is not None:
            parent = found.keys >> (before - shift)
            first = np.searchsorted(parent, wanted)  # every wanted one has entries
            start = np.append(0.0, reach)[first]
            reach = reach + (below - start)[np.searchsorted(wanted, parent)]
        # Past the end only by rounding: the last value then.
        at = np.minimum(np.searchsorted(reach, places, side="right"), len(reach) - 1)
        if shift == 0 or (found.low[at] == found.high[at]).all():
            return Place(found.low[at], highest)
        chosen = np.unique(at)
        wanted, below = found.keys[chosen], reach[chosen] - found.weights[chosen]
        before, shift = shift, max(shift - _MORE, 0)


def rows_at(state: Any, number: int, measure: Any, given: Any, values: np.ndarray) -> Any:
    """A row of the block for each of the (sorted) values that it has: which value, the row's codes and h."""
    here, _ = measure(state, given)
    place = np.minimum(np.searchsorted(values, here), len(values) - 1)
    found = np.flatnonzero(values[place] == here)
    return _first_of_each(place[found], state.codes[found], state.h[found])


def _first_of_each(place: np.ndarray, codes: np.ndarray, h: np.ndarray) -> Any:
    # Rows of equal value are told apart by their codes, not by where they were found.
    order = np.lexsort((*codes.T[::-1], place))
    values, first = np.unique(place[order], return_index=True)
    return values, codes[order[first]], h[order[first]]


def merge_rows(parts: Sequence[Any]) -> Any:
    """One row for each value."""
    return _first_of_each(*stack(parts))


def rows_of(
    engine: Engine, step: str, states: list[Any], measure: Any, given: Any, values: np.ndarray
) -> np.ndarray:
    """For every value a row of h that has it."""
    known, inverse = np.unique(values, return_inverse=True)
    _, _, h = engine.reduce(step, rows_at, merge_rows, states, measure, given, known)
    return h[inverse]
