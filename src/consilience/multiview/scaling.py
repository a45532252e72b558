"""Features of a view brought to a form in which Euclidean distances mean something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from consilience._support.errors import InputError
from consilience.evidence.cells import ColumnScaling, is_count_table
from consilience.evidence.views import Kind, Views

Matrix = Any  # a 2-D float array or a CSR array

# Zeros and ones in at most so many columns are answers even where few are ones: mutations of a panel of
# genes, symptoms, products. Words of documents are more, and those that are not there say nothing.
FEW_ANSWERS = 500
# Whole numbers in at least so many columns are counts of very different sizes (reads of genes) where the
# hundredth largest of a hundred entries is so many times the usual one, totals of rows differ by this share
# of their mean, and columns rise and fall with the total of the others.
_COUNTED_COLUMNS, _SKEWED, _UNEVEN_TOTALS, _WITH_TOTAL = 20, 10.0, 0.1, 0.1


def kind_of(views: Views, v: int) -> Kind:
    """What a view holds: what the user says, measurements where columns are of several kinds, or what its
    values show."""
    said = None if views.kinds is None else views.kinds[v]
    if said is not None:
        return said
    read = views.table(v)
    if read is not None and read.mixed:
        return "measurements"
    return recognise(views.arrays[v], views.observed[:, v])


def recognise(x: Matrix, present: np.ndarray) -> Kind:
    """What a table with zeros in absent rows holds, by its values and not by how they are stored.

    The one place where this is decided: for PSE and for neighbours in views.

    - measurements: some entry is negative, or none of what follows holds;
    - links: mostly zeros (see `mostly_zeros`), square, with an empty diagonal;
    - binary: zeros and ones, in few columns or not mostly zeros, and not square;
    - counts: mostly zeros;
    - log-counts: whole numbers of very different sizes that grow with the total of their row.
    """
    values = x.data if sp.issparse(x) else x
    n = int(present.sum())
    few, square = mostly_zeros(x, n), x.shape[0] == x.shape[1]
    if few and square:
        return "counts" if np.any(x.diagonal()) else "links"
    if not square and 0 < np.count_nonzero(values) < n * x.shape[1] and np.isin(values, (0.0, 1.0)).all():
        return "binary" if x.shape[1] <= FEW_ANSWERS or not few else "counts"
    if few:
        return "counts"
    return "log-counts" if _reads_of_rows(x, values, present) else "measurements"


def mostly_zeros(x: Matrix, n_present: int) -> bool:
    """Whether no entry is negative and less than a quarter are not zero; also for ``normalize="auto"``."""
    filled = x.count_nonzero() if sp.issparse(x) else np.count_nonzero(x)
    return bool(is_count_table(x.min(), int(filled), n_present * x.shape[1]))


def _reads_of_rows(x: Matrix, values: np.ndarray, present: np.ndarray) -> bool:
    """Whether a table looks like numbers of reads: how many there are of all differs from row to row."""
    if x.shape[1] < _COUNTED_COLUMNS or values.min() < 0 or np.any(values != np.rint(values)):
        return False
    rows = (x.toarray() if sp.issparse(x) else x)[present]
    usual, high = np.quantile(rows[rows > 0], (0.5, 0.99))
    total = rows.sum(axis=1)
    if high < _SKEWED * usual or total.std() < _UNEVEN_TOTALS * total.mean():
        return False
    # Columns of other things, such as ages and incomes, do not rise and fall together.
    others = np.log1p(total[:, None] - rows)
    own = np.log1p(rows)
    others, own = others - others.mean(axis=0), own - own.mean(axis=0)
    scale = np.sqrt((others**2).sum(axis=0) * (own**2).sum(axis=0))
    known = scale > 0
    return bool(known.any() and np.median((others * own).sum(axis=0)[known] / scale[known]) > _WITH_TOTAL)


class Scaling(NamedTuple):
    """What was learned from the rows that a view has, to be applied to these and to new rows."""

    kind: str  # "standard", "tfidf", "l2" or "none"
    center: np.ndarray | None = None
    factor: np.ndarray | None = None

    def apply(self, x: Matrix, present: np.ndarray) -> Matrix:
        """Scaled rows; those that are not present stay zero."""
        if self.kind == "none":
            return x
        if self.kind == "standard":
            if sp.issparse(x):  # a shift changes no distance, and would fill the matrix
                return (x @ sp.diags_array(self.factor)).tocsr()
            return np.where(present[:, None], (x - self.center) * self.factor, 0.0)
        if self.kind == "tfidf":
            x = x.log1p() if sp.issparse(x) else np.log1p(x)
            x = (x @ sp.diags_array(self.factor)).tocsr() if sp.issparse(x) else x * self.factor
        return unit_norm_rows(x)


def learn_scalings(views: Views, normalize: str | None) -> list[Scaling]:
    """The scaling of every view."""
    if normalize == "tfidf":
        refuse_negative(views.names, [array.min() for array in views.arrays])
    return [
        learn_scaling(array, views.observed[:, v], _asked(views, v, normalize), views.scaling(v))
        for v, array in enumerate(views.arrays)
    ]


def _asked(views: Views, v: int, normalize: str | None) -> str | None:
    """How to scale a view, where the user says what it holds."""
    said = None if views.kinds is None else views.kinds[v]
    if normalize != "auto" or said is None:
        return normalize
    return "tfidf" if said in ("counts", "links") else "standard"


def refuse_negative(names: Sequence[str], lowest: Sequence[float] | np.ndarray) -> None:
    """ "tfidf" is for counts and the like; `lowest` are the lowest entries of the views."""
    for name, low in zip(names, lowest, strict=True):
        if low < 0:
            raise InputError(
                f"view {name!r} has negative entries, which normalize='tfidf' cannot take.",
                hint="use normalize='auto' or 'standard'",
            )


def scale_views(views: Any, scalings: list[Scaling]) -> list[Matrix]:
    """The features of every view, scaled."""
    return [
        scaling.apply(array, views.observed[:, v])
        for v, (array, scaling) in enumerate(zip(views.arrays, scalings, strict=True))
    ]


def normalized_views(views: Views, normalize: str | None) -> list[Matrix]:
    """The features of every view, scaled as its own rows say."""
    return scale_views(views, learn_scalings(views, normalize))


def learn_scaling(
    x: Matrix,
    present: np.ndarray,
    normalize: str | None,
    given: ColumnScaling | None = None,
) -> Scaling:
    """The scaling of a view, from its present rows.

    "auto" scales what is mostly zeros as text ("tfidf") and all else by column ("standard").
    A table that was completed brings centre and factor of its columns, see `Views.scaling`.
    """
    if given is not None and normalize in ("auto", "standard"):
        return Scaling("standard", given.center, given.factor)
    kind = normalize or "none"
    n = int(present.sum())
    if kind == "auto":
        kind = "tfidf" if mostly_zeros(x, n) else "standard"
    if kind == "tfidf":
        counts = np.asarray((x != 0).sum(axis=0)).ravel() if sp.issparse(x) else (x != 0).sum(axis=0)
        return by_rarity(n, counts)
    if kind != "standard":
        return Scaling(kind)
    rows = x[present]
    center = np.asarray(rows.mean(axis=0)).ravel()
    squares = rows.multiply(rows) if sp.issparse(rows) else np.square(rows - center)
    spread = np.asarray(squares.mean(axis=0)).ravel() - (center**2 if sp.issparse(rows) else 0.0)
    return by_deviation(center, spread)


def by_rarity(n: int, counts: np.ndarray) -> Scaling:
    """From the number of rows, and in how many of them each feature is not zero."""
    return Scaling("tfidf", factor=np.log((1.0 + n) / (1.0 + counts)) + 1.0)


def by_deviation(center: np.ndarray, variance: np.ndarray) -> Scaling:
    """From mean and variance of the features."""
    deviation = np.sqrt(np.maximum(variance, 0.0))
    # A constant feature keeps its scale; so does one whose spread is round-off.
    constant = deviation <= 1e-10 * np.abs(center)
    return Scaling("standard", center, 1.0 / np.where(constant | (deviation == 0), 1.0, deviation))


def fill_with_mean(x: Matrix, present: np.ndarray) -> Matrix:
    """The matrix with the mean of the present rows in place of the absent ones."""
    if present.all():
        return x
    mean = np.asarray(x[np.flatnonzero(present)].mean(axis=0)).reshape(1, -1)
    if sp.issparse(x):
        absent = sp.csr_array((~present)[:, None].astype(float))
        return (x + absent @ sp.csr_array(mean)).tocsr()  # absent rows are empty
    return np.where(present[:, None], x, mean)


def unit_norm_rows(x: Matrix) -> Matrix:
    """Rows of norm one; a row of zeros stays."""
    squares = x.multiply(x) if sp.issparse(x) else np.square(x)
    norms = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    inverse = 1.0 / np.where(norms > 0, norms, 1.0)
    return (sp.diags_array(inverse) @ x).tocsr() if sp.issparse(x) else x * inverse[:, None]
