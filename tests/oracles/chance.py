"""Pearson's chi-square of two columns of labels, and its moments over all permutations."""

from itertools import permutations

import numpy as np


def chi_square(first, second):
    """On the instances that both saw."""
    both = (first >= 0) & (second >= 0)
    a, b = (np.unique(column[both], return_inverse=True)[1] for column in (first, second))
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1.0)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    return ((table - expected) ** 2 / expected).sum()


def over_all_permutations(moved, others, of):
    """`of` the columns, for every order of the rows of those that are moved together."""
    return np.array([of(moved[list(order)], others) for order in permutations(range(len(moved)))])
