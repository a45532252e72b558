"""Cells of a table as numbers between which distances mean something, and what stands in for missing ones.

Numbers end at fences and are standardised; a category is one column a level, scaled so that two instances
drawn at random are as far apart in it as in a number: every column counts alike. Missing cells get what the
cells of their row that are there say about them, by a factor model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from consilience.core.factors import FactorModel, fit_factors

# Numbers end so many quartile ranges beyond the quartiles.
FENCE = 5.0
# A table without negative entries of which less than this share is not zero is one of counts: a cell that is
# missing there is no entry.
FILLED = 0.25
# The model is fitted to at most so many rows; it has fifteen numbers a column to learn.
_FIT_ROWS = 5_000
# Complete tables keep a model for new rows with gaps: its start, from so many rows, costs next to nothing.
_START_ROWS = 500


class Encoding(NamedTuple):
    """How the values of columns become standardised numbers: an entry for each of these."""

    source: np.ndarray  # the column that it is of
    level: np.ndarray  # the code of the level that it stands for; -1 for a number
    low: np.ndarray  # fences
    high: np.ndarray
    center: np.ndarray
    factor: np.ndarray

    def apply(self, values: np.ndarray) -> np.ndarray:
        """Standardised rows, NaN where cells are missing."""
        x = values[:, self.source]
        is_level = self.level >= 0
        if is_level.any():
            codes = x[:, is_level]
            x[:, is_level] = np.where(np.isnan(codes), np.nan, codes == self.level[is_level])
        return (np.clip(x, self.low, self.high) - self.center) * self.factor

    def back(self, z: np.ndarray) -> np.ndarray:
        """The numbers that standardised ones stand for."""
        return z / self.factor + self.center


def encode(values: np.ndarray, n_levels: Sequence[int], names: Sequence[str] | None = None) -> Encoding:
    r"""Learn fences, centres and scales from the cells that are there.

    A number x becomes :math:`(\min(\max(x, q_1 - 5 R), q_3 + 5 R) - m) / s`, a level
    :math:`([x = l] - p_l) / \sqrt{1 - \sum_l p_l^2}`. Of two levels the rarer one says all, and is a number.

    Symbols: q_1, q_3, R -> quartiles and their range (no fences where it is zero); m, s -> mean and standard
    deviation of what is fenced; p_l -> share of the level.

    What is learned does not depend on the order of the rows or on what levels are called, and columns are put
    in an order that follows from what they hold.

    Parameters
    ----------
    values : (n, m) array
        Numbers, or codes of levels from 0; NaN where a cell is missing.
    n_levels : m ints
        How many levels each column has; 0 for a number.
    names : m str, optional
        Names of the columns: they decide where two hold the same.
    """
    parts = []
    for j, k in enumerate(n_levels):
        seen = np.sort(values[:, j])  # sums of sorted numbers are the same in any order of rows
        seen = seen[~np.isnan(seen)]
        if not len(seen):  # a column without any cell is left out
            continue
        levels, one = _levels(seen, k) if k else _number(seen)
        name = "" if names is None else names[j]
        parts.append(((k, len(seen), *one.ravel().tolist(), name, j), levels, one))
    parts.sort(key=lambda part: part[0])
    sources = [np.full(len(levels), key[-1]) for key, levels, _ in parts]
    levels = np.concatenate([levels for _, levels, _ in parts])
    center, factor, low, high = np.hstack([one for _, _, one in parts])
    return Encoding(np.concatenate(sources), levels, low, high, center, factor)


def _number(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, third = np.quantile(seen, [0.25, 0.75])
    reach = FENCE * (third - first) if third > first else np.inf
    fenced = np.clip(seen, first - reach, third + reach)
    center, deviation = float(fenced.mean()), float(fenced.std())
    constant = deviation <= 1e-10 * abs(center)
    factor = 1.0 / (deviation if deviation and not constant else 1.0)
    return np.array([-1]), np.array([[center], [factor], [first - reach], [third + reach]])


def _levels(seen: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels from the rarest on: their names do not matter."""
    count = np.bincount(seen.astype(np.intp), minlength=k)
    levels = np.argsort(count, kind="stable")
    share = count[levels] / len(seen)
    apart = 1.0 - float((share**2).sum())
    if k == 2:
        levels, share, apart = levels[:1], share[:1], apart / 2
    factor = 1.0 / np.sqrt(apart) if apart > 0 else 1.0
    everywhere = np.full(len(levels), np.inf)
    return levels, np.array([share, np.full(len(levels), factor), -everywhere, everywhere])


class ColumnScaling(NamedTuple):
    """Centre and factor of the columns of a completed table, after which each of its own counts alike."""

    center: np.ndarray
    factor: np.ndarray
    as_numbers: bool  # whether the columns are numbers as they were given


class Cells(NamedTuple):
    """What completes rows of a table: how its cells become numbers, and the model of missing ones."""

    encoding: Encoding
    model: FactorModel
    as_numbers: bool  # a completed row has its numbers as they are, fenced; else standardised columns
    n_missing: tuple[int, ...] = ()  # by column as they were given, in the rows that are present

    @property
    def width(self) -> int:
        """The number of columns of a completed row."""
        return len(self.encoding.source)

    @property
    def scaling(self) -> ColumnScaling:
        """By which columns of completed rows are standardised."""
        if self.as_numbers:
            return ColumnScaling(self.encoding.center, self.encoding.factor, True)
        return ColumnScaling(np.zeros(self.width), np.ones(self.width), False)

    def complete(self, values: np.ndarray) -> np.ndarray:
        """Rows without gaps. A row of which no cell is there gets means; it is for the caller to know."""
        z = self.encoding.apply(values)
        gaps = np.isnan(z)
        z = self.model.fill(z)
        if not self.as_numbers:
            return z
        x = np.clip(values[:, self.encoding.source], self.encoding.low, self.encoding.high)
        return np.where(gaps, self.encoding.back(z), x)


def learn_cells(
    values: np.ndarray, n_levels: Sequence[int], names: Sequence[str] | None = None, *, as_numbers: bool
) -> Cells:
    """Learn from rows of which some cell is there, and columns of which some cell is; see `encode`."""
    encoding = encode(values, n_levels, names)
    z = encoding.apply(values)
    if np.isnan(z).any():
        model = fit_factors(_in_order(z, _FIT_ROWS)).model
    else:  # new rows may have gaps
        model = fit_factors(_in_order(z, _START_ROWS), max_iter=0).model
    return Cells(encoding, model, as_numbers, tuple(np.isnan(values).sum(axis=0).tolist()))


def learn_numbers(x: np.ndarray) -> Cells:
    """The same from complete rows of numbers, for new rows that have gaps: no fences, and a quick model."""
    center, deviation = x.mean(axis=0), x.std(axis=0)
    constant = deviation <= 1e-10 * np.abs(center)
    factor = 1.0 / np.where(constant | (deviation == 0), 1.0, deviation)
    q = x.shape[1]
    everywhere = np.full(q, np.inf)
    encoding = Encoding(np.arange(q), np.full(q, -1), -everywhere, everywhere, center, factor)
    model = fit_factors(_in_order(encoding.apply(x), _START_ROWS), max_iter=0).model
    return Cells(encoding, model, True)


def _in_order(z: np.ndarray, most: int) -> np.ndarray:
    """Rows in an order that follows from what they hold, at most so many, evenly taken."""
    key = np.where(np.isnan(z), 7.0, z) @ np.random.RandomState(0).uniform(1.0, 2.0, z.shape[1])
    every = order = np.argsort(key, kind="stable")
    if len(order) > most:
        order = every[np.linspace(0, len(order) - 1, most).astype(np.intp)]
        seen = ~np.isnan(z[order])
        rare = np.flatnonzero(~seen.any(axis=0))  # columns of very few cells: a row more for each
        more = [every[~np.isnan(z[every, j])][0] for j in rare]
        order = np.concatenate([order, more]).astype(np.intp)
    return z[order]


def is_count_table(lowest: float, n_nonzero: int, n_cells: int) -> bool:
    """Whether numbers are counts: none is negative, and few are not zero."""
    return lowest >= 0 and n_nonzero < FILLED * n_cells
