"""How well two partitions agree, and how well a partition agrees with the evidence it came from.

Every score reads one contingency table, kept as its non-empty cells, so the cost is one pass over the
instances and then follows the number of clusters. The adjusted Rand index is scikit-learn's:
:func:`sklearn.metrics.adjusted_rand_score`.
"""

from collections.abc import Callable, Mapping
from math import sqrt
from numbers import Real
from typing import Any, Literal, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array, eye_array, hstack
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from consilience._support.errors import InputError, InputTypeError
from consilience._support.sklearn import Interval, StrOptions, check_parameter
from consilience._support.values import counted, did_you_mean, is_missing, object_array
from consilience.evidence.partitions import Partitions
from consilience.io.frames import require_ids
from consilience.io.labels import plain

__all__ = [
    "ScoreById",
    "base_agreement",
    "base_diversity",
    "ensemble_agreement",
    "matched_accuracy_score",
    "normalized_mutual_info_score",
    "pair_f_score",
    "purity_score",
    "score_by_id",
]

Normalization = Literal["max", "sqrt", "arithmetic", "min"]

_NORMALIZERS: dict[str, Callable[[float, float], float]] = {
    "max": max,
    "sqrt": lambda first, second: sqrt(first * second),
    "arithmetic": lambda first, second: (first + second) / 2,
    "min": min,
}


# --------------------------------------------------------------------------------------------------
# Scores against known classes


def matched_accuracy_score(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of instances that are right when clusters are matched to classes as well as possible.

    Each cluster is matched to at most one class and each class to at most one cluster (the Hungarian
    method). With different numbers of clusters and classes the surplus ones stay unmatched and their
    instances count as wrong.

    Parameters
    ----------
    labels_true : array-like of shape (n_instances,)
        Known classes: integers, strings, or floats used as labels. A negative number is a label like
        any other.
    labels_pred : array-like of shape (n_instances,)
        Clusters found.

    Returns
    -------
    accuracy : float
        Between 0 and 1.

    Examples
    --------
    >>> from consilience.metrics import matched_accuracy_score
    >>> matched_accuracy_score(["ant", "ant", "bee", "bee"], [1, 1, 0, 0])
    1.0
    >>> matched_accuracy_score(["ant", "ant", "bee", "bee"], [0, 1, 2, 2])
    0.75
    """
    table = _compare(labels_true, labels_pred)
    return float(_largest_matching(table) / table.counts.sum())


def normalized_mutual_info_score(
    labels_true: ArrayLike, labels_pred: ArrayLike, *, normalization: Normalization
) -> float:
    r"""Mutual information of two partitions, divided by a mean of their entropies.

    .. math:: \mathrm{NMI}(U, V) = \frac{I(U; V)}{f(H(U), H(V))}

    Papers differ in :math:`f` and seldom say which they use, and the values differ by several points.
    So it has no default here. Symmetric in its two partitions.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_instances,)
        The two partitions: integers, strings, or floats used as labels. A negative number is a label
        like any other.
    normalization : {"max", "sqrt", "arithmetic", "min"}
        What to divide by: the larger entropy, their geometric mean, their arithmetic mean, or the
        smaller entropy.

    Returns
    -------
    nmi : float
        Between 0 and 1. Two partitions of one cluster each agree: 1. If just one of them has one
        cluster it says nothing about the other: 0.

    Notes
    -----
    Equal to :func:`sklearn.metrics.normalized_mutual_info_score`, where "sqrt" is called "geometric".

    References
    ----------
    A. Strehl and J. Ghosh, "Cluster ensembles: a knowledge reuse framework for combining multiple
    partitions", Journal of Machine Learning Research 3, 2002 ("sqrt").

    Examples
    --------
    >>> from consilience.metrics import normalized_mutual_info_score
    >>> nmi = normalized_mutual_info_score([0, 0, 1, 1], [0, 0, 1, 2], normalization="max")
    >>> round(nmi, 4)
    0.6667
    >>> nmi = normalized_mutual_info_score([0, 0, 1, 1], [0, 0, 1, 2], normalization="sqrt")
    >>> round(nmi, 4)
    0.8165
    """
    _check_normalization(normalization, "normalized_mutual_info_score")
    return _normalized_mutual_info(_compare(labels_true, labels_pred), normalization)


def purity_score(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of instances that belong to the most frequent class of their cluster.

    More clusters never lower it, and clusters of one instance each reach 1: compare purities only at
    equal numbers of clusters.

    Parameters
    ----------
    labels_true : array-like of shape (n_instances,)
        Known classes: integers, strings, or floats used as labels.
    labels_pred : array-like of shape (n_instances,)
        Clusters found.

    Returns
    -------
    purity : float
        Between 0 and 1.

    Examples
    --------
    >>> from consilience.metrics import purity_score
    >>> purity_score([0, 0, 1, 1], [0, 0, 0, 1])
    0.75
    """
    table = _compare(labels_true, labels_pred)
    most_frequent = np.zeros(table.columns.max() + 1, dtype=np.int64)
    np.maximum.at(most_frequent, table.columns, table.counts)
    return float(most_frequent.sum() / table.counts.sum())


def pair_f_score(labels_true: ArrayLike, labels_pred: ArrayLike, *, beta: float = 1.0) -> float:
    """F score over pairs of instances: a pair is positive when both carry the same label.

    Precision is the share of pairs put together that belong together; recall is the share of pairs
    that belong together and were put together.

    Parameters
    ----------
    labels_true : array-like of shape (n_instances,)
        Known classes: integers, strings, or floats used as labels.
    labels_pred : array-like of shape (n_instances,)
        Clusters found.
    beta : float, default=1.0
        How many times as much recall matters as precision.

    Returns
    -------
    f : float
        Between 0 and 1. If neither partition puts any two instances together they agree: 1.

    Notes
    -----
    Pairs are counted in whole numbers from the contingency table: exact for up to three thousand
    million instances.

    Examples
    --------
    >>> from consilience.metrics import pair_f_score
    >>> round(pair_f_score([0, 0, 1, 1], [0, 0, 0, 1]), 4)
    0.4
    """
    check_parameter("beta", beta, Interval(Real, 0, None, closed="neither"), "pair_f_score")
    pairs = _pair_counts(_compare(labels_true, labels_pred))
    if pairs.both == pairs.only_true == pairs.only_pred == 0:
        return 1.0
    recall_weight = float(beta) ** 2
    found = (1 + recall_weight) * pairs.both
    return found / (found + recall_weight * pairs.only_true + pairs.only_pred)


# --------------------------------------------------------------------------------------------------
# Scores against the base clusterings: no known classes needed


def ensemble_agreement(labels: ArrayLike, base: Any, *, normalization: Normalization = "sqrt") -> float:
    """Mean agreement of a partition with the base clusterings, over the entries that are there.

    Needs no known classes, so it may be used to choose between consensus partitions.

    Parameters
    ----------
    labels : array-like of shape (n_instances,)
        The partition, one label per instance.
    base : whatever `fuse` takes, or an object with a table of integers as ``codes``
        A row per instance, a column per base clustering; a negative entry is missing. Where the object has
        ``counts``, a row stands for so many instances, and so does its label.
    normalization : {"max", "sqrt", "arithmetic", "min"}, default="sqrt"
        See :func:`normalized_mutual_info_score`.

    Returns
    -------
    agreement : float
        Between 0 and 1: the mean of :func:`base_agreement` over the base clusterings that saw
        anything, by their weights where `base` has any; nan if none did.

    References
    ----------
    A. Strehl and J. Ghosh, "Cluster ensembles: a knowledge reuse framework for combining multiple
    partitions", Journal of Machine Learning Research 3, 2002 (for complete base clusterings).

    Examples
    --------
    >>> from consilience.metrics import ensemble_agreement
    >>> base = [[0, 1, -1], [0, 1, 1], [1, 0, 1], [1, -1, 0]]
    >>> round(ensemble_agreement([0, 0, 1, 1], base), 4)
    0.758
    """
    _check_normalization(normalization, "ensemble_agreement")
    found = base_agreement(labels, base, normalization=normalization)
    weights, known = getattr(base, "opinion_weights", None), ~np.isnan(found)
    if weights is None:
        return _mean_of_known(found)
    total = _sum(weights[known])
    return _sum(weights[known] * found[known]) / total if total else float("nan")


def base_agreement(
    labels: ArrayLike, base: Any, *, normalization: Normalization = "sqrt"
) -> NDArray[np.float64]:
    """Agreement of a partition with each base clustering, over the entries that are there.

    Parameters
    ----------
    labels : array-like of shape (n_instances,)
        The partition, one label per instance.
    base : whatever `fuse` takes, or an object with a table of integers as ``codes``
        A row per instance, a column per base clustering; a negative entry is missing. Where the object has
        ``counts``, a row stands for so many instances, and so does its label.
    normalization : {"max", "sqrt", "arithmetic", "min"}, default="sqrt"
        See :func:`normalized_mutual_info_score`.

    Returns
    -------
    agreement : ndarray of shape (n_partitions,)
        Normalised mutual information of the partition and each base clustering on the instances
        that base clustering saw; nan for one that saw none.

    Examples
    --------
    >>> from consilience.metrics import base_agreement
    >>> base = [[0, 1, -1], [0, 1, 1], [1, 0, 1], [1, -1, 0]]
    >>> base_agreement([0, 0, 1, 1], base).round(4)
    array([1.   , 1.   , 0.274])
    """
    _check_normalization(normalization, "base_agreement")
    codes = _encode(labels, "labels")
    columns = _read_base(base)
    if len(codes) != len(columns[0]):
        raise InputError(
            f"labels has {len(codes)} entries but base has {len(columns[0])} rows.",
            hint=(
                "both need one entry per instance, in the same order; base has a column per base clustering."
            ),
        )
    counts = _counts_of(base)
    tables = (_contingency(codes, column, counts) for column in columns)
    return np.array([_nmi_or_nan(table, normalization) for table in tables])


def base_diversity(base: Any, *, normalization: Normalization = "sqrt") -> float:
    """How much the base clusterings differ: one minus their mean pairwise agreement.

    Parameters
    ----------
    base : whatever `fuse` takes, or an object with a table of integers as ``codes``
        A row per instance, a column per base clustering; a negative entry is missing.
    normalization : {"max", "sqrt", "arithmetic", "min"}, default="sqrt"
        See :func:`normalized_mutual_info_score`.

    Returns
    -------
    diversity : float
        0 if all agree, near 1 if none says anything about another. Two base clusterings are compared
        on the instances both saw, and left out if there are none. If that leaves no two to compare
        (a single base clustering, or no overlap at all) the diversity is unknown: nan.

    Examples
    --------
    >>> from consilience.metrics import base_diversity
    >>> base_diversity([[0, 2], [0, 2], [1, 0], [1, 0]])
    0.0
    >>> base_diversity([[0, -1], [1, -1], [-1, 0], [-1, 1]])
    nan
    """
    _check_normalization(normalization, "base_diversity")
    columns, counts = _read_base(base), _counts_of(base)
    agreement = [
        _nmi_or_nan(_contingency(first, second, counts), normalization)
        for position, first in enumerate(columns)
        for second in columns[position + 1 :]
    ]
    return 1.0 - _mean_of_known(np.array(agreement))


# --------------------------------------------------------------------------------------------------
# Labels that are known by id


class ScoreById(NamedTuple):
    """A score of the instances that both partitions have; it is a number wherever one is expected."""

    value: float
    n_both: int  # instances with a label in both
    n_true: int  # with a label in the first
    n_pred: int  # with a label in the second

    @property
    def coverage_true(self) -> float:
        """The share of the first partition that was scored."""
        return self.n_both / self.n_true

    @property
    def coverage_pred(self) -> float:
        """The share of the second partition that was scored."""
        return self.n_both / self.n_pred

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return (
            f"{self.value:.4g} on {counted(self.n_both, 'instance')} that both have "
            f"({self.coverage_true:.1%} of the first, {self.coverage_pred:.1%} of the second)"
        )


def score_by_id(
    score: Callable[..., float],
    labels_true: Any,
    labels_pred: Any,
    *,
    index: str | None = None,
    **options: Any,
) -> ScoreById:
    """Any score of two partitions whose instances are known by id: joined, and scored where both have labels.

    A score of what both saw says nothing about the rest, so it comes with how much that is.

    Parameters
    ----------
    score : callable
        Of two sequences of labels: a score of this module or of :mod:`sklearn.metrics`.
    labels_true, labels_pred : dict or pandas series of labels by id, frame, or Fusion
        The two partitions, in any order of ids. NaN, None, NA and empty text are no labels; a negative number
        is one like any other. A frame has a column of labels, called "label" or the only one, and ids: those
        of `index`, a pandas frame's index, or else the first column.
    index : str, optional
        The column of ids, in frames; or the name of a pandas frame's index.
    **options
        For `score`, such as ``normalization="sqrt"``.

    Returns
    -------
    score : ScoreById
        ``value``, ``n_both``, ``coverage_true`` and ``coverage_pred``.

    Examples
    --------
    >>> from sklearn.metrics import adjusted_rand_score
    >>> from consilience.metrics import normalized_mutual_info_score, score_by_id
    >>> may = {"ann": "gold", "bob": "basic", "cleo": "gold", "dan": "basic"}
    >>> june = {"dan": 2, "cleo": 1, "bob": 2, "eve": 1, "fay": None}
    >>> score_by_id(adjusted_rand_score, may, june)
    1 on 3 instances that both have (75.0% of the first, 75.0% of the second)
    >>> found = score_by_id(normalized_mutual_info_score, may, june, normalization="max")
    >>> found.value, found.n_both
    (1.0, 3)
    """
    true, pred = _by_id(labels_true, "labels_true", index), _by_id(labels_pred, "labels_pred", index)
    both = [key for key in true if key in pred]
    if not both:
        first, second = (repr(plain(next(iter(labels)))) for labels in (true, pred))
        raise InputError(
            "no instance has a label in both labels_true and labels_pred: ids begin with "
            f"{first} and {second}.",
            hint="use the same ids, of the same type, in both.",
        )
    number: dict[Any, int] = {}  # every score reads whole numbers; equal labels stay equal
    codes = [
        np.array([number.setdefault(labels[key], len(number)) for key in both]) for labels in (true, pred)
    ]
    return ScoreById(float(score(*codes, **options)), len(both), len(true), len(pred))


def _by_id(labels: Any, name: str, index: str | None) -> dict[Any, Any]:
    """The label of every instance that has one."""
    if isinstance(labels, Mapping):
        ids, values = object_array(list(labels)), list(labels.values())
    elif hasattr(labels, "labels") and hasattr(labels, "index"):
        if labels.index is None:
            raise InputError(f"{name} has no ids.", hint="fuse labels with ids, or score arrays directly.")
        ids, values = labels.index, labels.labels.tolist()
    elif nw.dependencies.is_pandas_series(labels):
        ids, values = np.asarray(labels.index), labels.tolist()
    elif nw.dependencies.is_into_dataframe(labels):
        ids, values = _ids_and_labels(labels, name, index)
    else:
        raise InputTypeError(
            f"{name} has no ids: it is of type {type(labels).__name__}.",
            hint="give a dict or pandas series of labels by id, or a frame of id and label; labels in one "
            "order need no ids and go to the score directly.",
        )
    require_ids(ids, name)
    found = zip(ids.tolist(), map(plain, values), strict=True)
    known = {key: label for key, label in found if label is not None}
    if not known:
        raise InputError(f"{name} has no labels.", hint="it needs at least one instance with a label.")
    return known


def _ids_and_labels(frame: Any, name: str, index: str | None) -> tuple[NDArray[Any], list[Any]]:
    table = nw.from_native(frame, eager_only=True)
    columns = list(table.columns)
    pandas = nw.dependencies.is_pandas_dataframe(frame)
    named = pandas and index == frame.index.name
    if not named and index not in (None, *columns):
        raise InputError(f"{name} has no column {index!r}.", did_you_mean(str(index), columns))
    if pandas and (named or index is None):
        ids = np.asarray(frame.index)
    else:
        index = columns[0] if index is None else index
        ids = object_array(table[index].to_list())
    rest = [column for column in columns if column != index]
    if "label" not in rest and len(rest) != 1:
        raise InputError(
            f"{name} has {counted(len(rest), 'column')} that could be the labels, and none called 'label'.",
            hint="leave one column beside the ids.",
        )
    return ids, table["label" if "label" in rest else rest[0]].to_list()


# --------------------------------------------------------------------------------------------------
# From labels to codes


def _encode(labels: ArrayLike, name: str) -> NDArray[np.int64]:
    """Whole numbers from 0 on, equal where the labels are equal; some may stay unused."""
    values = np.asarray(labels)
    if values.ndim != 1 or len(values) == 0:
        raise InputError(
            f"{name} must be one-dimensional with at least one entry, got shape {values.shape}.",
            hint="pass one label per instance, for example one column of a table.",
        )
    if values.dtype.kind in "biu":
        return _shift(values)
    if values.dtype.kind == "f":
        _refuse_missing(np.isnan(values), name)
        return np.unique(values, return_inverse=True)[1].astype(np.int64, copy=False)
    # A dictionary beats a sort on strings, and it also takes objects that have no order.
    entries = values.tolist()
    code_of = {entry: code for code, entry in enumerate(dict.fromkeys(entries))}
    codes = np.fromiter(map(code_of.__getitem__, entries), dtype=np.int64, count=len(entries))
    absent = [code for entry, code in code_of.items() if is_missing(entry)]
    if absent:
        _refuse_missing(np.isin(codes, absent), name)
    return codes


def _shift(values: NDArray[Any]) -> NDArray[np.int64]:
    """Codes of an integer column. A sort is needed only if the labels are far apart, like ids."""
    low = values.min()
    if int(values.max()) - int(low) < 4 * len(values):
        return values.astype(np.int64) - low.astype(np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64, copy=False)


def _refuse_missing(missing: NDArray[np.bool_], name: str) -> None:
    if missing.any():
        raise InputError(
            f"{name} has a missing label at position {int(missing.argmax())} ({int(missing.sum())} in all).",
            hint="compare only the instances that have a label in both.",
        )


def _read_base(base: Any) -> list[NDArray[Any]]:
    """The columns of a table of base clusterings, with small codes and negative for missing."""
    table = _codes_of(base)
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(
            "base must be a table with a row per instance and a column per base clustering, got shape "
            f"{table.shape}.",
            hint="stack label vectors with numpy.column_stack.",
        )
    return [_small_codes(column) for column in table.T]


def _codes_of(base: Any) -> NDArray[Any]:
    """Integers of one base clustering in each column; what holds none is read as `fuse` reads it."""
    if isinstance(getattr(base, "codes", None), np.ndarray):
        return base.codes
    if isinstance(base, np.ndarray | list | tuple) and np.asarray(base).dtype.kind in "iu":
        return np.asarray(base)
    read = Partitions.of(base, unobserved="keep")
    codes = np.full((read.n_rows, read.n_columns), -1, dtype=np.int64)
    codes[:, list(read.columns)] = read.codes
    return codes


def _counts_of(base: Any) -> NDArray[Any] | None:
    """How many instances a row stands for; None where it is one."""
    counts = getattr(base, "counts", None)
    return None if counts is None or counts.strides == (0,) else counts


def _small_codes(column: NDArray[Any]) -> NDArray[Any]:
    if column.max() < 4 * len(column):
        return column.astype(np.int64) if column.dtype.kind == "u" else column
    seen = column >= 0
    codes = np.full(len(column), -1, dtype=np.int64)
    codes[seen] = np.unique(column[seen], return_inverse=True)[1]
    return codes


# --------------------------------------------------------------------------------------------------
# The contingency table and what is read off it


class _Contingency(NamedTuple):
    """The non-empty cells: cluster of the first partition, of the second, instances in both."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    counts: NDArray[np.int64]


class _PairCounts(NamedTuple):
    """Ordered pairs of two different instances, by which partition puts them together."""

    both: int
    only_true: int
    only_pred: int


def _compare(labels_true: ArrayLike, labels_pred: ArrayLike) -> _Contingency:
    true, pred = _encode(labels_true, "labels_true"), _encode(labels_pred, "labels_pred")
    if len(true) != len(pred):
        raise InputError(
            f"labels_true and labels_pred must have the same length, got {len(true)} and {len(pred)}.",
            hint="both need one label per instance, in the same order.",
        )
    return _contingency(true, pred)


def _contingency(
    first: NDArray[Any], second: NDArray[Any], weights: NDArray[Any] | None = None
) -> _Contingency:
    """Count co-occurrences of two code vectors where neither is negative."""
    # Missing entries go to a row and a column of their own (0), dropped at the end: cheaper than
    # selecting the observed entries of two long vectors.
    n_rows, n_columns = int(first.max()) + 2, int(second.max()) + 2
    key = np.maximum(first.astype(np.int64), -1)
    key += 1
    key *= n_columns
    key += np.maximum(second, -1)
    key += 1
    if n_rows * n_columns <= max(1 << 16, 4 * len(key)):
        dense = np.bincount(key, weights)
        cells = np.flatnonzero(dense)
        counts = dense[cells].astype(np.int64)
    elif weights is None:
        cells, counts = np.unique(key, return_counts=True)
    else:
        cells, place = np.unique(key, return_inverse=True)
        counts = np.bincount(place, weights).astype(np.int64)
    rows, columns = np.divmod(cells, n_columns)
    seen = (rows > 0) & (columns > 0)
    return _Contingency(rows[seen] - 1, columns[seen] - 1, counts[seen])


def _margins(table: _Contingency) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes of the clusters of either partition, by code; 0 for a code that is not used."""
    # bincount adds in float64: exact, because no sum passes the number of instances (< 2**53).
    row_sums = np.bincount(table.rows, weights=table.counts)
    column_sums = np.bincount(table.columns, weights=table.counts)
    return row_sums.astype(np.int64), column_sums.astype(np.int64)


def _largest_matching(table: _Contingency) -> int:
    """Most instances that a one-to-one matching of rows and columns can cover."""
    alone = (np.bincount(table.rows) == 1)[table.rows] & (np.bincount(table.columns) == 1)[table.columns]
    settled = int(table.counts[alone].sum())
    rows, row_of = np.unique(table.rows[~alone], return_inverse=True)
    columns, column_of = np.unique(table.columns[~alone], return_inverse=True)
    shape = (len(rows), len(columns))
    cells = coo_array((table.counts[~alone], (row_of, column_of)), shape=shape)
    if shape[0] * shape[1] <= 1_000_000:
        dense = cells.toarray()
        return settled + int(dense[linear_sum_assignment(dense, maximize=True)].sum())
    # Thousands of clusters on both sides: match over the non-empty cells only. A private column for
    # every row lets it stay unmatched; one more on every cell keeps those zeros in the sparse format.
    cells.data = cells.data + 1
    choices = csr_array(hstack([cells, eye_array(shape[0], dtype=np.int64)]))
    matched = choices[min_weight_full_bipartite_matching(choices, maximize=True)]
    return settled + int(matched.sum()) - shape[0]


def _normalized_mutual_info(table: _Contingency, normalization: str) -> float:
    row_sums, column_sums = _margins(table)
    n_rows, n_columns = np.count_nonzero(row_sums), np.count_nonzero(column_sums)
    if len(table.counts) == n_rows == n_columns:
        return 1.0  # the same partition under other names: exactly 1, whatever the logarithms round to
    if 1 in (n_rows, n_columns):
        return 0.0
    n = table.counts.sum()
    # A sum of logarithms: the product of two cluster sizes can pass 2**63.
    pointwise = np.log(table.counts) + np.log(n)
    pointwise -= np.log(row_sums[table.rows]) + np.log(column_sums[table.columns])
    information = _sum(table.counts * pointwise) / float(n)
    ceiling = _NORMALIZERS[normalization](_entropy(row_sums), _entropy(column_sums))
    return min(max(information / ceiling, 0.0), 1.0)


def _nmi_or_nan(table: _Contingency, normalization: str) -> float:
    return _normalized_mutual_info(table, normalization) if len(table.counts) else float("nan")


def _entropy(sizes: NDArray[np.int64]) -> float:
    shares = sizes[sizes > 0] / sizes.sum()
    return -_sum(shares * np.log(shares))


def _sum(terms: NDArray[np.float64]) -> float:
    """The sum, to the last bit the same in whatever order clusters and base clusterings come."""
    return float(np.sort(terms).sum())


def _pair_counts(table: _Contingency) -> _PairCounts:
    """Python integers, so that their products cannot overflow."""
    row_sums, column_sums = _margins(table)
    n = int(table.counts.sum())
    both = int(table.counts @ table.counts) - n
    only_true = int(row_sums @ row_sums) - n - both
    only_pred = int(column_sums @ column_sums) - n - both
    return _PairCounts(both, only_true, only_pred)


def _mean_of_known(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return _sum(known) / len(known) if len(known) else float("nan")


# --------------------------------------------------------------------------------------------------
# Parameters


def _check_normalization(normalization: str, function: str) -> None:
    # Keys rather than a set: the message then lists them in the same order every time.
    check_parameter(
        "normalization",
        normalization,
        StrOptions(_NORMALIZERS.keys()),
        function,
        hint="scikit-learn's 'geometric' is called 'sqrt' here",
    )
