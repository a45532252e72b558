"""Whether sources agree more than by chance: Pearson's chi-square of all pairs, with its exact moments."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc

from consilience.core.canonical import Rows
from consilience.core.tables import contingency, indicator, scatter
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import Tabulated

LEVEL = 0.01  # from this p-value on, agreement is called chance
# Up to this many base clusters the table of their pairs is held; beyond, its entries that are not zero.
_MAX_SIDE = 4_000
# A variance below this is rounding: the margins leave one table only.
_NO_VARIANCE = 1e-9


@dataclass(frozen=True, repr=False, eq=False)
class ChanceTest(Tabulated):
    """What `beyond_chance` returns.

    Attributes
    ----------
    beyond : bool or None
        Whether the sources agree more than chance would; None where that cannot be told: no two of them saw
        the same instances, or these are so few that even the same clusters would not be beyond chance.
    p_value : float
        How often sources that have nothing to do with each other would agree as much; NaN where no two of
        them can be compared.
    sources : tuple of str
        Base clusterings; the group in place of its members, the view in place of what was made of it.
    p_values : ndarray of shape (n_sources,)
        The same for each source and all others, as they are; NaN where there is nothing to compare.
    """

    beyond: bool | None
    p_value: float
    sources: tuple[str, ...]
    p_values: np.ndarray

    @classmethod
    def unknown(cls, sources: tuple[str, ...]) -> ChanceTest:
        """Where nothing can be compared."""
        return cls(None, float("nan"), sources, np.full(len(sources), np.nan))

    def __repr__(self) -> str:
        return f"ChanceTest(beyond={self.beyond}, p_value={self.p_value:.2g})"

    @property
    def by_chance(self) -> bool:
        """Whether they agree no more than chance would."""
        return self.beyond is False

    @property
    def sentence(self) -> str:
        """That they agree by chance, in words; empty where they do not."""
        if not self.by_chance:
            return ""
        return (
            f"Your sources agree no more than chance would (p = {self.p_value:.2f}): nothing in them speaks "
            "for clusters."
        )

    @property
    def unrelated(self) -> tuple[str, ...]:
        """Sources that agree with the others no more than by chance, where the others do agree."""
        if not self.beyond or len(self.sources) < 3:
            return ()
        return tuple(name for name, p in zip(self.sources, self.p_values, strict=True) if p >= LEVEL)


class _Pairs(NamedTuple):
    """For every two base clusterings, on the instances that both saw."""

    chi: np.ndarray  # Pearson's chi-square less its mean under permutation
    most: np.ndarray  # the same if one clustering followed from the other
    mean: np.ndarray
    w: np.ndarray  # the two parts of its variance
    u: np.ndarray
    told: np.ndarray  # whether anything can be said


def compare_with_chance(partitions: Partitions) -> ChanceTest:
    r"""How often base clusterings that have nothing to do with each other would agree as much as these.

    .. math:: T = \sum_{i < j} \frac{X_{ij} - E X_{ij}}{\sqrt{\operatorname{var} X_{ij}}}, \qquad
        X_{ij} = N \sum_{ab} \frac{(n_{ab} - n_a n_b / N)^2}{n_a n_b}

    with mean, variance and skewness under permutations of the instances of every base clustering, and the
    tail of the gamma distribution that has them. With :math:`P_i` the projection on the indicators of the
    clusters of i, without the constant, :math:`X_{ij} = N \operatorname{tr} P_i P_j`. Permutations act on
    such matrices in two irreducible parts, one of which the diagonal determines; so with
    :math:`v_i = \|P_i\|^2 - (\operatorname{tr} P_i)^2 / (N - 1)` and :math:`w_i = \frac{N}{N - 2} \sum_x
    (P_{i, xx} - \operatorname{tr} P_i / N)^2`,

    .. math:: \operatorname{var} X_{ij} = \frac{N^2}{N - 1} w_i w_j + \frac{2 N}{N - 3} (v_i - w_i)(v_j - w_j)

    which is Haldane's and Dawson's, and the same holds of sums of projections: that is how the p-value of one
    source takes into account that the others are not independent of each other. Three base clusterings have
    :math:`E \tilde X_{ij} \tilde X_{jk} \tilde X_{ki} = N^3 (w_i w_j w_k / (N - 1)^2 + 4 (v_i - w_i) (v_j -
    w_j)(v_k - w_k) / (N (N - 3))^2)`, the part of the skewness that matters where there are few instances
    and many sources. Where labels are missing, pairs count on the instances that both saw; moments of single
    pairs are then still exact, and those of several are approximations.

    Symbols: n_ab, N -> instances shared by two clusters, by two base clusterings.
    Cost: one pass over the distinct rows, and a table of all pairs of base clusters.
    """
    table = partitions.counting.weighted(None)
    rows = table.canonical.rows
    names, owner = _sources(table)
    if len(names) < 2:
        return ChanceTest.unknown(names)
    pairs = _pairs(rows)
    told = pairs.told & (owner[:, None] != owner)
    if not told.any():
        return ChanceTest.unknown(names)
    scale = np.divide(1.0, np.sqrt(pairs.w + pairs.u), out=np.zeros_like(pairs.w), where=told)
    chi, mean = pairs.chi * scale, pairs.mean * scale
    w, u = np.sqrt(pairs.w) * scale, np.sqrt(pairs.u) * scale
    alike_w, alike_u = _alike(rows, pairs)
    same = owner[:, None] == owner
    moved_w, moved_u = alike_w * same, alike_u * same  # what is permuted together

    together = w * (moved_w @ w @ moved_w) + u * (moved_u @ u @ moved_u)
    of_owners = np.equal.outer(np.arange(len(names)), owner).astype(float)
    variances, means = (of_owners @ values @ of_owners.T for values in (together, mean))
    n = float(rows.counts[(rows.codes >= 0).any(axis=1)].sum())
    three = np.trace(np.linalg.matrix_power(w @ moved_w, 3)) / np.sqrt(n - 1.0)
    three += np.trace(np.linalg.matrix_power(u @ moved_u, 3)) * np.sqrt(2.0 / (n * (n - 3.0)))
    upper = np.triu(means > 0.0, 1)
    third = (2.0 * variances[upper] ** 2 / means[upper]).sum() + three
    variance, most = variances[upper].sum(), pairs.most * scale
    p_value = _tail(0.5 * chi.sum(), variance, third)
    can_tell = _tail(0.5 * most.sum(), variance, third) < LEVEL

    p_values = np.full(len(names), np.nan)
    for s in range(len(names)):
        own, rest = np.flatnonzero(owner == s), np.flatnonzero(owner != s)
        part = np.ix_(own, rest)
        if told[part].any() and can_tell:
            spread = sum(
                np.vdot(alike[np.ix_(own, own)] @ root[part], root[part] @ alike[np.ix_(rest, rest)])
                for alike, root in ((alike_w, w), (alike_u, u))
            )
            p_values[s] = _tail(chi[part].sum(), spread, 2.0 * spread**2 / mean[part].sum())
    return ChanceTest(bool(p_value < LEVEL) if can_tell else None, p_value, names, p_values)


def _sources(table: Partitions) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the sources, and whose each base clustering is, in canonical order."""
    of_each = table.views or table.groups or (None,) * table.n_partitions
    # A base clustering that is in no group is a source of its own, even if a group has its name.
    named = [(of is None, of or name) for of, name in zip(of_each, table.names, strict=True)]
    found = list(dict.fromkeys(named))
    owner = np.array([found.index(key) for key in named])
    return tuple(name for _, name in found), owner[table.canonical.bases]


def _pairs(rows: Rows) -> _Pairs:
    offsets, counts = rows.offsets, rows.counts.astype(float)
    # How many members of every base cluster each base clustering saw.
    seen = scatter(rows.codes, offsets, counts, (rows.codes >= 0).astype(float))

    def per_base(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.add.reduceat(values, offsets[:-1], axis=0))

    n = per_base(seen)
    k = per_base((seen > 0).astype(float))
    inverse = per_base(np.divide(1.0, seen, out=np.zeros_like(seen), where=seen > 0))
    shared = n * (_squares(rows.codes, offsets, counts, seen) - 1.0)
    few = n < 4
    n = np.where(few, 4.0, n)
    v = np.maximum((k - 1.0) * (n - k) / (n - 1.0), 0.0)
    w = np.clip((n * inverse - k**2) / (n - 2.0), 0.0, v)
    mean = n / (n - 1.0) * (k - 1.0) * (k.T - 1.0)
    var_w, var_u = n**2 / (n - 1.0) * w * w.T, 2.0 * n / (n - 3.0) * (v - w) * (v - w).T
    told = ~few & (k > 1) & (k.T > 1) & (var_w + var_u > _NO_VARIANCE)
    np.fill_diagonal(told, False)
    most = n * (np.minimum(k, k.T) - 1.0)
    return _Pairs(shared - mean, most - mean, mean, var_w, var_u, told)


def _squares(codes: np.ndarray, offsets: np.ndarray, counts: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """For every two base clusterings, the sum over their clusters of shared members squared, divided by the
    members of both that both saw."""
    base = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if len(base) <= _MAX_SIDE:
        table = contingency(codes, offsets, counts)
        out = np.empty((len(offsets) - 1,) * 2)
        for i, (start, stop) in enumerate(pairwise(offsets)):
            both = seen[start:stop, base] * seen[:, i]
            ratio = np.divide(table[start:stop] ** 2, both, out=np.zeros_like(both), where=both > 0)
            out[i] = np.add.reduceat(ratio.sum(axis=0), offsets[:-1])
        return out
    found = indicator(codes, offsets)
    entries = (found.T.multiply(counts) @ found).tocoo()
    a, b = entries.coords
    ratio = entries.data**2 / (seen[a, base[b]] * seen[b, base[a]])
    m = len(offsets) - 1
    return np.bincount(base[a] * m + base[b], ratio, m * m).reshape(m, m)


def _alike(rows: Rows, pairs: _Pairs) -> tuple[np.ndarray, np.ndarray]:
    """How far the chi-squares of two base clusterings with a third go together, in both parts: 1 for copies.

    Those of two that saw few instances in common do not.
    """
    offsets, counts = rows.offsets, rows.counts.astype(float)
    observed = (rows.codes >= 0).astype(float)
    sizes = scatter(rows.codes, offsets, counts, np.ones((len(counts), 1)))[:, 0]
    both = (observed * counts[:, None]).T @ observed
    n = np.diag(both)
    diagonal = observed * (n / sizes[rows.codes + offsets[:-1]] - np.diff(offsets))
    both = np.maximum(both, 4.0)
    w = (diagonal * counts[:, None]).T @ diagonal / (both * (both - 2.0))
    overlap = both**2 / np.outer(n, n)
    return tuple(_correlation(part) * overlap for part in (w, pairs.chi / both - w))


def _correlation(products: np.ndarray) -> np.ndarray:
    root = np.sqrt(np.maximum(np.diag(products), 0.0))
    scale = np.outer(root, root)
    out = np.divide(products, scale, out=np.zeros_like(products), where=scale > _NO_VARIANCE)
    np.fill_diagonal(out, 1.0)
    return np.clip(out, -1.0, 1.0)


def _tail(excess: float, variance: float, third: float) -> float:
    """The chance of so much or more under the shifted gamma distribution with these central moments."""
    if variance <= 0.0:
        return 1.0
    shape = 4.0 * variance**3 / third**2
    return float(gammaincc(shape, max(shape + 2.0 * variance * excess / third, 0.0)))
