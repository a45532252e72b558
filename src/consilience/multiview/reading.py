"""How the features of a view become rows between which distances mean something."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from consilience.multiview.scaling import Kind, by_deviation, by_rarity, unit_norm_rows

Matrix = Any  # a 2-D float array or a CSR array

# Measurements of so many columns are also looked at by the directions of their rows.
_WIDE = 10


class Reading(NamedTuple):
    """How the features of a view become rows between which distances mean something."""

    kind: Kind
    looks: tuple[str, ...]
    center: np.ndarray | None = None  # of measurements
    factor: np.ndarray | None = None

    def apply(self, x: Matrix) -> list[Matrix]:
        """The rows in every look."""
        if self.kind != "measurements":
            return [unit_norm_rows((x.log1p() @ sp.diags_array(self.factor)).tocsr())]
        scaled = (x - self.center) * self.factor
        return [scaled, unit_norm_rows(x)] if len(self.looks) == 2 else [scaled]


def stored(x: Matrix, kind: Kind) -> Matrix:
    """Counts as a sparse array and measurements as a dense one, however they came: sums round alike."""
    if kind == "measurements":
        return x.toarray() if sp.issparse(x) else x
    x = sp.csr_array(x)
    if x.nnz > x.count_nonzero():
        x = x.copy()
        x.eliminate_zeros()
    x.sort_indices()
    return x


def says_something(x: Matrix) -> np.ndarray:
    """Whether rows have an entry: those of counts that have none are absent, whoever stored them."""
    return np.diff(x.indptr) > 0 if sp.issparse(x) else np.ones(len(x), dtype=bool)


def read(x: Matrix, kind: Kind) -> Reading:
    r"""Learn how rows are scaled.

    Counts: :math:`\log(1 + x_{ij}) (\log \frac{1 + n}{1 + df_j} + 1)`, rows of length one. Measurements:
    columns of mean zero and variance one; wide tables also as they are, with rows of length one.
    """
    if kind != "measurements":
        scaling = by_rarity(x.shape[0], np.bincount(x.indices, minlength=x.shape[1]))
        return Reading(kind, ("log counts by rarity, unit rows",), factor=scaling.factor)
    center = x.mean(axis=0)
    scaling = by_deviation(center, np.square(x - center).mean(axis=0))
    looks = ("standardised columns", "unit rows")[: 2 if x.shape[1] >= _WIDE else 1]
    return Reading(kind, looks, center, scaling.factor)


class ViewReading(NamedTuple):
    """How a view was read, and which of its rows were used."""

    kind: Kind
    looks: tuple[str, ...]
    n_rows: int  # that were used
    n_empty: int  # without any entry: absent
