"""How the features of a view become rows between which distances mean something."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from consilience.evidence.cells import ColumnScaling
from consilience.evidence.views import Kind
from consilience.multiview.scaling import FEW_ANSWERS, by_deviation, by_rarity, unit_norm_rows

Matrix = Any  # a 2-D float array or a CSR array

# Kinds that are kept sparse.
_SPARSE = ("counts", "links")
# Measurements of so many columns are also looked at by the directions of their rows.
_WIDE = 10


class Reading(NamedTuple):
    """How the features of a view become rows between which distances mean something."""

    kind: Kind
    looks: tuple[str, ...]
    center: np.ndarray | None = None  # of columns; not of counts and links
    factor: np.ndarray | None = None
    total: float | None = None  # of log-counts: what the entries of a row are scaled to sum up to

    def apply(self, x: Matrix) -> list[Matrix]:
        """The rows in every look."""
        if self.kind in _SPARSE:
            return [unit_norm_rows((x.log1p() @ sp.diags_array(self.factor)).tocsr())]
        if self.total is not None:
            x = log_shares(x, self.total)
        beside = x - self.center
        if self.kind == "binary":
            looks = [beside, beside * self.factor][: len(self.looks)]
            return [unit_norm_rows(look) for look in looks]
        scaled = beside * self.factor
        return [scaled, unit_norm_rows(x)] if len(self.looks) == 2 else [scaled]


def stored(x: Matrix, kind: Kind) -> Matrix:
    """Counts as a sparse array and all else as a dense one, however they came: sums round alike."""
    if kind not in _SPARSE:
        return x.toarray() if sp.issparse(x) else x
    x = sp.csr_array(x)
    if x.nnz > x.count_nonzero():
        x = x.copy()
        x.eliminate_zeros()
    x.sort_indices()
    return x


def says_something(x: Matrix, kind: Kind) -> np.ndarray:
    """Whether rows hold anything: those of counts without any entry are absent, whoever stored them.

    A row of zeros in a table of measurements or of answers ("binary") is a row like any other.
    """
    if kind in ("measurements", "binary"):
        return np.ones(x.shape[0], dtype=bool)
    return np.asarray((x != 0).sum(axis=1)).ravel() > 0


def read(x: Matrix, kind: Kind, scaling: ColumnScaling | None = None) -> Reading:
    r"""Learn how rows are scaled.

    Counts: :math:`\log(1 + x_{ij}) (\log \frac{1 + n}{1 + df_j} + 1)`, rows of length one. Measurements:
    columns of mean zero and variance one; wide tables also as they are, with rows of length one. Log-counts:
    the same of `log_shares`. Binary: :math:`x_{ij} - p_j`, rows of length one, with p_j the share of rows
    that say yes; of very many columns rare answers tell most, and a second look has them times
    :math:`(p_j (1 - p_j))^{-1/4}`.

    A table that was completed brings the `scaling` of its columns; mixed columns have no other look.
    """
    if kind in _SPARSE:
        rarity = by_rarity(x.shape[0], np.bincount(x.indices, minlength=x.shape[1]))
        return Reading(kind, ("log counts by rarity, unit rows",), factor=rarity.factor)
    total, of = None, ""
    if kind == "log-counts":
        total, of = float(np.median(x.sum(axis=1))), " of log shares"
        x = log_shares(x, total)
    center = x.mean(axis=0)
    variance = np.square(x - center).mean(axis=0)
    if kind == "binary":
        names = ("answers less the usual one, unit rows", "the same by rarity")
        looks = names[: 2 if x.shape[1] > FEW_ANSWERS else 1]
        return Reading(kind, looks, center, by_deviation(center, np.sqrt(variance)).factor)
    factor, mixed = by_deviation(center, variance).factor, False
    if kind == "measurements" and scaling is not None:
        center, factor, mixed = scaling.center, scaling.factor, not scaling.as_numbers
    looks = (f"standardised columns{of}", f"unit rows{of}")[: 2 if x.shape[1] >= _WIDE and not mixed else 1]
    return Reading(kind, looks, center, factor, total)


def log_shares(x: np.ndarray, total: float) -> np.ndarray:
    r""":math:`\log(1 + T x_{ij} / \sum_j x_{ij})`: how many there were of all in a row changes nothing.

    Symbols: T -> `total`, the usual sum of a row.
    """
    sums = x.sum(axis=1, keepdims=True)
    return np.asarray(np.log1p(x * (total / np.where(sums > 0, sums, 1.0))))


class ViewReading(NamedTuple):
    """How a view was read, and which of its rows were used."""

    kind: Kind
    looks: tuple[str, ...]
    n_rows: int  # that were used
    n_empty: int  # of counts, links or log-counts, without any entry: absent
