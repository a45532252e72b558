"""Base clusterings that count as one opinion: of a group, what its members say on average.

`groups` are the columns of each group of two or more base clusterings. A row hears a group once, however many
of its members saw the row; a base clustering in no group is an opinion of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from consilience.core import hot

Groups = tuple[np.ndarray, ...]


def gathered(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray) -> np.ndarray:
    """For every row of a block, the sum of the table's rows of its base clusters."""
    out = np.empty((len(codes), table.shape[1]))
    hot.gather_sum(codes, offsets, table, out)
    return out


def alone(codes: np.ndarray, offsets: np.ndarray, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    """The codes of base clusterings in no group, and where the clusters of each begin."""
    if not groups:
        return codes, offsets
    columns = np.delete(np.arange(codes.shape[1]), np.concatenate(groups))
    return np.ascontiguousarray(codes[:, columns]), offsets[columns]


def group_means(
    codes: np.ndarray, offsets: np.ndarray, table: np.ndarray, groups: Groups
) -> Iterator[np.ndarray]:
    """For every group the mean, not the sum, of the table's rows; zero in rows that no member saw."""
    for columns in groups:
        own = np.ascontiguousarray(codes[:, columns])
        n_seen = np.maximum((own >= 0).sum(axis=1), 1)
        yield gathered(own, offsets[columns], table) / n_seen[:, None]


def summed(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray, groups: Groups) -> np.ndarray:
    """For every row of a block, the sum over opinions of the table's rows of its base clusters."""
    out = gathered(*alone(codes, offsets, groups), table)
    for mean in group_means(codes, offsets, table, groups):
        out += mean
    return out


def of_columns(values: np.ndarray, seen: np.ndarray, groups: Groups) -> np.ndarray:
    """A value for every row and base clustering, zero where unseen, by opinion; groups come last."""
    if not groups:
        return values
    means = [
        values[:, columns].sum(axis=1) / np.maximum(seen[:, columns].sum(axis=1), 1) for columns in groups
    ]
    return np.column_stack([np.delete(values, np.concatenate(groups), axis=1), *means])


def n_heard(codes: np.ndarray, groups: Groups) -> np.ndarray:
    """How many opinions there are of every row."""
    seen = codes >= 0
    n = seen.sum(axis=1)
    for columns in groups:
        n -= np.maximum(seen[:, columns].sum(axis=1) - 1, 0)
    return np.asarray(n)


def n_opinions(m: int, groups: Groups) -> int:
    """How many opinions `m` base clusterings are."""
    return m - sum(len(columns) - 1 for columns in groups)


def shares(m: int, groups: Groups) -> np.ndarray:
    """The part of an opinion that each of `m` base clusterings is."""
    out = np.ones(m)
    for columns in groups:
        out[columns] = 1.0 / len(columns)
    return out


def apart(m: int, groups: Groups) -> np.ndarray:
    """Which of `m` base clusterings (rows) are other opinions than which (columns)."""
    out = ~np.eye(m, dtype=bool)
    for columns in groups:
        out[np.ix_(columns, columns)] = False
    return out
