"""The small count tables that all diagnostics read, and the adjusted mutual information of one of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy
from sklearn.metrics.cluster import expected_mutual_information

from consilience._support.errors import InputError
from consilience.core.grouping import group
from consilience.core.tables import contingency, cross
from consilience.evidence.partitions import Partitions

# Up to this many terms the exact chance level of the mutual information is summed; fewer where there are
# thousands of pairs of bases to compare.
_EXACT_TERMS, _EXACT_TERMS_OF_PAIRS = 20_000, 2_000
# All pairs of base clusters are counted in one pass if their table stays below this side (128 MB).
_MAX_SIDE = 4_000


class JointRows(NamedTuple):
    """Distinct pairs of a row of base labels and a consensus label, and how many instances have each.

    ``codes[inverse]`` is the whole table and ``labels[inverse]`` the whole partition, whatever made it: two
    instances with equal base labels may have different consensus labels.
    """

    codes: np.ndarray
    counts: np.ndarray
    labels: np.ndarray  # -1 = unassigned
    inverse: np.ndarray
    n_clusters: int


class Tabulated:
    """For frozen dataclasses of results: a dict of plain values, without the arrays that have an entry per
    instance (marked by ``metadata={"per_instance": True}``)."""

    def as_dict(self) -> dict[str, Any]:
        """Numbers, strings, lists and dicts only; what is not known is None."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {
            field.name: to_plain(getattr(self, field.name))
            for field in fields
            if not field.metadata.get("per_instance")
        }


class Finding(str):
    """A sentence about the data that ends in a hint; `text` and `hint` are its two parts."""

    text: str
    hint: str

    def __new__(cls, text: str, hint: str) -> Finding:
        found = super().__new__(cls, f"{text} Hint: {hint}")
        found.text, found.hint = text, hint
        return found

    def __reduce__(self) -> tuple[Any, ...]:  # both parts survive a pickle
        return type(self), (self.text, self.hint)


def to_plain(value: Any) -> Any:
    """A value as JSON knows it; NaN and infinities become None."""
    if isinstance(value, Tabulated):
        return value.as_dict()
    if isinstance(value, Finding):
        return str(value)
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return to_plain(value._asdict())
    if isinstance(value, Mapping):
        return {name: to_plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def check_labels(partitions: Partitions, labels: ArrayLike) -> np.ndarray:
    """Consensus labels as integers, one per instance of the table."""
    values = np.asarray(labels)
    if values.shape != (partitions.n_rows,):
        raise InputError(
            f"labels has shape {values.shape}, but the table has {partitions.n_rows} instances.",
            hint="pass one consensus label per instance, in the order of the table.",
        )
    if values.dtype.kind not in "iu":
        raise InputError(
            f"labels must be integers, got dtype {values.dtype}.",
            hint="number the clusters 0, 1, ...; -1 stands for unassigned.",
        )
    if values.max() < 0:
        raise InputError(
            "labels assigns no instance to a cluster: all are negative.", hint="clusters are numbered from 0."
        )
    return np.maximum(values, -1).astype(np.int64)


def joint_rows(partitions: Partitions, labels: ArrayLike | JointRows) -> JointRows:
    """The distinct rows of the table, split where their instances have different consensus labels.

    Whoever needs several diagnostics makes them once and gives them to each instead of the labels.
    """
    if isinstance(labels, JointRows):
        return labels
    labels = check_labels(partitions, labels)
    rows, inverse = partitions.distinct, partitions.inverse
    n_clusters = int(labels.max()) + 1
    per_row = np.empty(rows.n_rows, dtype=np.int64)
    per_row[inverse] = labels
    if np.array_equal(per_row[inverse], labels):
        return JointRows(rows.codes, rows.counts, per_row, inverse, n_clusters)
    found = group(inverse.astype(np.int64) * (n_clusters + 1) + (labels + 1))
    row, label = np.divmod(found.values, n_clusters + 1)
    counts = np.bincount(found.inverse, partitions.counts, len(row)).astype(np.int64)
    return JointRows(rows.codes[row], counts, label - 1, found.inverse, n_clusters)


def label_counts(rows: JointRows, offsets: np.ndarray) -> np.ndarray:
    """How many members of every base cluster are in every consensus cluster, (base clusters, clusters)."""
    return cross(rows.codes, offsets, rows.labels, rows.counts.astype(float), rows.n_clusters)


def silent(partitions: Partitions) -> np.ndarray:
    """Which base clusterings say nothing about any pair: one cluster, or every instance in its own."""
    k = partitions.n_clusters_per_partition
    return (k == 1) | (k == partitions.n_seen)


# Diagnostics and pictures of one table both need all pairs, which take a minute for 200 base clusterings.
_pairs_of: WeakKeyDictionary[Partitions, np.ndarray] = WeakKeyDictionary()


def pairwise_information(partitions: Partitions) -> np.ndarray:
    """Adjusted mutual information of every two base clusterings on the rows that both saw.

    NaN where there are no such rows; one on the diagonal. Read-only, and computed once a table.
    """
    if partitions not in _pairs_of:
        _pairs_of[partitions] = _pairwise_information(partitions)
        _pairs_of[partitions].flags.writeable = False
    return _pairs_of[partitions]


def _pairwise_information(partitions: Partitions) -> np.ndarray:
    out = np.eye(partitions.n_partitions)
    for i, j, table in pair_tables(partitions):
        out[i, j] = out[j, i] = adjusted_information(table, exact_terms=_EXACT_TERMS_OF_PAIRS)
    return out


def pair_tables(partitions: Partitions) -> Iterator[tuple[int, int, np.ndarray]]:
    """Two base clusterings, i < j, and how many instances each pair of their clusters shares; all pairs."""
    rows, offsets, codes = partitions.distinct, partitions.offsets, partitions.distinct.codes
    m = partitions.n_partitions
    whole = contingency(codes, offsets, rows.counts.astype(float)) if offsets[-1] <= _MAX_SIDE else None
    for i in range(m):
        for j in range(i + 1, m):
            if whole is not None:
                yield i, j, whole[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
            else:
                yield i, j, _cross(codes[:, i], codes[:, j], rows.counts)


def _cross(first: np.ndarray, second: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Contingency table of two columns of codes, where both saw the instance."""
    both = (first >= 0) & (second >= 0)
    a, b, width = first[both].astype(np.int64), second[both].astype(np.int64), int(second.max()) + 1
    height = int(first.max()) + 1
    if height * width > _MAX_SIDE**2:
        # Nearly as many clusters as instances: keep those that meet.
        a, b = (np.unique(codes, return_inverse=True)[1] for codes in (a, b))
        height, width = (int(codes.max(initial=-1)) + 1 for codes in (a, b))
    return np.bincount(a * width + b, counts[both], height * width).reshape(height, width)


def adjusted_information(
    table: np.ndarray, *, of_coarser: bool = False, exact_terms: int | None = None
) -> float:
    r"""Mutual information of a contingency table, adjusted for chance; NaN for an empty table.

    .. math:: \frac{I - E[I]}{\frac12 (H_1 + H_2) - E[I]}

    as in scikit-learn; `of_coarser` divides by the smaller entropy instead of the mean. Where the exact
    expectation under random labels is expensive (large tables of many instances), an approximation takes its
    place; see `_chance_information`.
    """
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    if not table.size:
        return float("nan")
    a, b = table.sum(axis=1), table.sum(axis=0)
    n = a.sum()
    if len(a) == 1 or len(b) == 1:
        # One of them says nothing; two that both say nothing are the same, but agree on no distinction.
        return 0.0
    cells = table[table > 0]
    if len(cells) == len(a) == len(b):
        return 1.0  # the same partition under other names, exactly
    in_a, in_b, in_cells = (xlogy(sizes, sizes).sum() / n for sizes in (a, b, cells))
    information = np.log(n) + in_cells - in_a - in_b
    ceiling = np.log(n) - (max(in_a, in_b) if of_coarser else 0.5 * (in_a + in_b))
    limit = _EXACT_TERMS if exact_terms is None else exact_terms
    if len(a) * len(b) <= limit and np.minimum(a[:, None], b).sum() <= limit:
        chance = expected_mutual_information(table.astype(np.int64), int(n))
    else:
        chance = _chance_information(a, b, n)
    return float((information - chance) / max(ceiling - chance, np.finfo(float).eps))


def _chance_information(a: np.ndarray, b: np.ndarray, n: float) -> float:
    """About the expected mutual information of two random partitions with these cluster sizes.

    The count shared by two clusters, hypergeometric, is taken as a Poisson variable whose surplus shrinks
    like the hypergeometric variance. Clusters of equal size give equal terms, so thousands of clusters cost
    little.
    """
    sizes_a, times_a = np.unique(a, return_counts=True)
    sizes_b, times_b = np.unique(b, return_counts=True)
    mean = np.outer(sizes_a, sizes_b) / n
    spread = np.outer(times_a * (1.0 - sizes_a / n), times_b * (1.0 - sizes_b / n)) * n / (n - 1.0)
    return float((spread * _surplus(mean)).sum() / n)


def _surplus(mean: np.ndarray) -> np.ndarray:
    """``E[x log x] - mean log mean`` of a Poisson variable x: a half for large means."""
    # Below the grid it is next to nothing, above it the limit.
    return np.interp(np.log(mean), *_surplus_table())


@cache
def _surplus_table() -> tuple[np.ndarray, np.ndarray]:
    """The surplus on a grid of log means; it is within 0.001 of its limit at the upper end."""
    log_mean = np.linspace(np.log(1e-6), np.log(100.0), 2000)
    mean = np.exp(log_mean)[:, None]
    x = np.arange(300.0)
    chance = np.exp(x * log_mean[:, None] - mean - gammaln(x + 1.0))
    return log_mean, chance @ xlogy(x, x) - (mean * log_mean[:, None])[:, 0]


def corrected_association(phi_squared: float, n: float, height: int, width: int) -> float:
    """Cramer's V of a table of `n` entries, corrected for the bias of small tables (Bergsma 2013).

    `phi_squared` is the chi-square statistic over n.
    """
    if n < 2 or height < 2 or width < 2:
        return 0.0
    excess = max(phi_squared - (height - 1) * (width - 1) / (n - 1), 0.0)
    # Both sides shrink with the number of entries.
    smaller = min(side - (side - 1) ** 2 / (n - 1) for side in (height, width)) - 1.0
    return float(min(np.sqrt(excess / smaller), 1.0)) if smaller > 0 else 0.0
