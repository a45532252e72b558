"""What a user knows beyond the labels: how much each source counts, and which instances belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from consilience._support.errors import InputError
from consilience._support.values import did_you_mean
from consilience.evidence.partitions import MISSING, Partitions


def read_weights(weights: Any, names: Sequence[str]) -> np.ndarray:
    """How much each base clustering counts: from a dict of those that differ from 1, or one number each."""
    if isinstance(weights, Mapping):
        for name in weights:
            if str(name) not in names:
                raise InputError(
                    f"unknown base clustering {name!r} in weights.", did_you_mean(str(name), names)
                )
        given = {str(name): weight for name, weight in weights.items()}
        weights = [given.get(name, 1) for name in names]
    elif len(weights) != len(names):
        raise InputError(
            f"there are {len(weights)} weights for {len(names)} base clusterings.",
            hint="give one for each, or a dict of those that differ from 1.",
        )
    try:
        found = np.array(weights, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"weights must be numbers. Got {weights!r}.", hint="as in {'team_a': 2}.") from error
    for name, weight in zip(names, found.tolist(), strict=True):
        if not (np.isfinite(weight) and weight >= 0):
            raise InputError(
                f"the weight of {name!r} must be a number from 0. Got {weight}.", hint="0 leaves it out."
            )
    if not found.any():
        raise InputError("every weight is 0.", hint="give some base clustering a weight above 0.")
    return found


def merge_rows(partitions: Partitions, group: np.ndarray) -> Partitions:
    """The table with a row per group; `group` has that of every row.

    It has the label that most of its instances have, and none where two are equally frequent.
    """
    n_groups = int(group.max()) + 1
    codes = np.full((n_groups, partitions.n_partitions), MISSING, dtype=partitions.codes.dtype)
    for j, column in enumerate(partitions.codes.T):
        k, seen = len(partitions.categories[j]), np.flatnonzero(column >= 0)
        cells, place = np.unique(group[seen] * k + column[seen].astype(np.int64), return_inverse=True)
        votes = np.bincount(place, partitions.counts[seen])
        row, label = np.divmod(cells, k)
        order = np.lexsort((votes, row))
        last = np.append(row[order][1:] != row[order][:-1], True)
        best = order[last]
        before = np.where(np.arange(len(order))[last] > 0, np.roll(order, 1)[last], best)
        tied = (row[before] == row[best]) & (votes[before] == votes[best]) & (before != best)
        codes[row[best], j] = np.where(tied, MISSING, label[best])
    counts = np.bincount(group, partitions.counts, n_groups).astype(np.int64)
    return replace(partitions, codes=codes, counts=counts, index=None, index_name=None)
