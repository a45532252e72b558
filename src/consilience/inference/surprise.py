"""Whether new rows of labels are like those that were merged: what labels mean, and the mix of clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.core.tables import gather
from consilience.inference.counts import JointRows
from consilience.inference.posterior import Evidence, leave_out_each

_FOLDS = 5
_DRAWS = 999
_MOST_DRAWN = 1_000  # of more rows the statistics, which are scaled by their number, are distributed alike
_LEAST_SPREAD = 0.1  # a sample without any of the few surprises has none, and nothing can be divided by it
_SEED = 0x5EED
_SMALLEST = np.finfo(float).tiny


class Judged(NamedTuple):
    """What tables of labels say of rows: how surprising each label is, and the chance of every cluster."""

    surprise: np.ndarray  # (rows, bases), NaN where missing; 0 on average, whatever is missing
    chances: np.ndarray  # (rows, clusters)


def judge_labels(evidence: Evidence, codes: np.ndarray) -> Judged:
    r"""The surprise of every label given the other labels of its row, less what was to be expected.

    .. math:: -\log P(l_{ij} | l_{i, -j}) - E[-\log P(\cdot | l_{i, -j})], \qquad
        P(l | l_{i, -j}) \propto \sum_z q_{i, -j}(z) \, P_j(l | z)

    with q, the chances of the clusters, from the other labels alone.

    Symbols: l -> codes, in the evidence's numbers (-1 = missing); P_j -> evidence.chance.
    """
    offsets, log_chance = evidence.offsets, np.log(evidence.chance)
    prior = np.log(np.maximum(evidence.shares, _SMALLEST))
    n_seen, all_scores = (codes >= 0).sum(axis=1), gather(codes, offsets, log_chance)
    surprise = np.full(codes.shape, np.nan)
    for j in range(codes.shape[1]):
        has = codes[:, j] >= 0
        label = codes[has, j]
        others = all_scores[has] - log_chance[offsets[j] + label]
        expected = _posterior(others, n_seen[has] - 1, evidence.dependence, prior)
        expected = expected @ evidence.chance[offsets[j] : offsets[j + 1]].T
        expected /= expected.sum(axis=1, keepdims=True)
        bits = -np.log(np.maximum(expected, 1e-12))
        surprise[has, j] = bits[np.arange(len(label)), label] - (expected * bits).sum(axis=1)
    return Judged(surprise, _posterior(all_scores, n_seen, evidence.dependence, prior))


def _posterior(scores: np.ndarray, n_seen: np.ndarray, dependence: float, prior: np.ndarray) -> np.ndarray:
    """q of rows from the sums of their log-chances; see `confidence`."""
    scores = scores / (1.0 + np.maximum(n_seen - 1, 0) * dependence)[:, None] + prior
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def cluster_chances(evidence: Evidence, codes: np.ndarray) -> np.ndarray:
    """q of rows in the evidence's numbers, (rows, clusters); see `confidence`."""
    scores = gather(codes, evidence.offsets, np.log(evidence.chance))
    prior = np.log(np.maximum(evidence.shares, _SMALLEST))
    return _posterior(scores, (codes >= 0).sum(axis=1), evidence.dependence, prior)


class Sums(NamedTuple):
    """What new rows show, added up; bases in the order of the evidence."""

    n: float
    n_labels: np.ndarray  # per base
    values: np.ndarray  # standardised: surprise of each base, that of all together, chances of each cluster

    def plus(self, other: Sums) -> Sums:
        """Of the rows of both."""
        return Sums(self.n + other.n, self.n_labels + other.n_labels, self.values + other.values)

    @property
    def numbers(self) -> np.ndarray:
        """How many summands each value has."""
        m = self.n_labels.shape[-1]
        whole = np.full((*self.values.shape[:-1], self.values.shape[-1] - m), float(self.n))
        return np.maximum(np.concatenate([self.n_labels, whole], axis=-1), 1.0)

    @property
    def z(self) -> np.ndarray:
        """The values in standard errors."""
        return np.asarray(self.values / np.sqrt(self.numbers))


class Tested(NamedTuple):
    """What `Monitor.test` found."""

    p_meaning: float
    p_shares: float
    z: np.ndarray  # per base: surprise of its labels, in standard errors
    standing_out: int  # the base that stands out most
    z_shares: np.ndarray  # per cluster
    shares: np.ndarray  # of the new rows, per cluster


class Monitor:
    """The merged rows as the reference that new ones are compared with.

    Every fifth of the merged rows is judged by the tables of the others, for a table knows the labels that it
    was counted from too well. Which fifth an instance is in is drawn over distinct rows in canonical order,
    so it depends on no name and on no order.
    """

    def __init__(self, rows: JointRows, evidence: Evidence) -> None:
        self._evidence = evidence
        seen = (rows.codes >= 0).any(axis=1) & (rows.labels >= 0)
        counts = np.where(seen, rows.counts, 0)
        rng = np.random.default_rng(_SEED)  # a stream that no caller has drawn his rows from
        row = np.repeat(np.arange(len(counts)), counts)
        cells = np.bincount(row * _FOLDS + rng.permutation(len(row)) % _FOLDS, minlength=len(counts) * _FOLDS)
        cells = cells.reshape(-1, _FOLDS)
        codes = evidence.numbering.recode(rows.codes)
        parts, weights = [], []
        for own, others in zip(cells.T, leave_out_each(evidence, rows, cells), strict=True):
            here = own > 0
            # None: a cluster is here alone, and nothing else can judge it.
            tables = evidence if others is None else others
            parts.append(judge_labels(tables, np.ascontiguousarray(codes[here])))
            weights.append(own[here])
        surprise, chances = (np.concatenate(each) for each in zip(*parts, strict=True))
        w = np.concatenate(weights).astype(float)
        self._instances, self.n_reference = np.repeat(np.arange(len(w)), w.astype(np.int64)), float(w.sum())
        self._known_mean, self._known_spread = _moments(surprise, w)
        together = self._together(surprise)
        self._mean, self._spread = _moments(np.column_stack([together, chances]), w)
        self.shares = self._mean[1:]
        self._reference = self._features(Judged(surprise, chances))
        self._whole = self._split(self.n_reference, w @ self._reference)

    def _apart(self, surprise: np.ndarray) -> np.ndarray:
        return np.where(np.isnan(surprise), 0.0, (surprise - self._known_mean) / self._known_spread)

    def _together(self, surprise: np.ndarray) -> np.ndarray:
        known = (~np.isnan(surprise)).sum(axis=1)
        return np.asarray(self._apart(surprise).sum(axis=1) / np.sqrt(np.maximum(known, 1)))

    def _features(self, judged: Judged) -> np.ndarray:
        """Per row: which bases have a label, and the values of `Sums`."""
        surprise, chances = judged
        whole = np.column_stack([self._together(surprise), chances])
        return np.hstack([~np.isnan(surprise), self._apart(surprise), (whole - self._mean) / self._spread])

    def _split(self, n: float, sums: np.ndarray) -> Sums:
        m = len(self._known_mean)
        return Sums(n, sums[..., :m], sums[..., m:])

    def sums(self, codes: np.ndarray) -> Sums:
        """Of new rows, as ``partitions.encode`` gives them; those without any label say nothing."""
        codes = codes[(codes >= 0).any(axis=1)]
        judged = judge_labels(self._evidence, self._evidence.numbering.recode(codes))
        return self._split(len(codes), self._features(judged).sum(axis=0))

    def _draw(self, rng: np.random.Generator, n: float, features: np.ndarray) -> Sums:
        """Sums over so many merged instances, drawn with replacement, 999 times."""
        n = int(min(n, _MOST_DRAWN))
        rows = self._instances[rng.integers(0, len(self._instances), (_DRAWS, n))]
        return self._split(n, gather(rows, np.zeros(n + 1, dtype=np.int64), features))

    def _draw_merged(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Means (in standard errors) and spreads (about 1) that other samples of this size would have."""
        values = self._reference[:, len(self._known_mean) :]
        drawn = self._draw(rng, self.n_reference, np.hstack([self._reference, values**2]))
        width = values.shape[1]
        numbers = drawn.numbers[:, :width]
        mean, square = drawn.values[:, :width] / numbers, drawn.values[:, width:] / numbers
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        # Fewer rows were drawn than merged: the spread of fewer is more off.
        spread = 1.0 + (spread - 1.0) * np.sqrt(drawn.n / self.n_reference)
        return mean * np.sqrt(numbers), np.maximum(spread, _LEAST_SPREAD)

    def test(self, sums: Sums) -> Tested:
        """The largest statistic of the new rows against that of as many merged ones, drawn 999 times.

        Meaning: the surprise of each base and of all together, each over its spread in the draws. Shares: the
        mean chances of the clusters. The merged rows are a sample, too, whose means and spreads are off, the
        more so as surprises are few and large: so each draw is standardised by another one, of as many rows
        as were merged.
        """
        rng, m = np.random.default_rng((_SEED, 1)), len(self._known_mean)
        off = np.sqrt(sums.numbers / self._whole.numbers)
        z, (z_merged, spread_merged) = self._draw(rng, sums.n, self._reference).z, self._draw_merged(rng)
        drawn = np.abs((z - off * z_merged) / spread_merged)
        spread = drawn.mean(axis=0) + drawn.std(axis=0) + 1e-9
        z = sums.z / np.sqrt(1.0 + off**2)
        meaning, shares = slice(0, m + 1), slice(m + 1, None)
        found = np.abs(sums.z)
        given = np.empty(m, dtype=np.intp)
        given[self._evidence.numbering.bases] = np.arange(m)
        return Tested(
            _p((drawn / spread)[:, meaning].max(axis=1), (found / spread)[meaning].max()),
            _p(drawn[:, shares].max(axis=1), found[shares].max()),
            z[given],
            int((found / spread)[given].argmax()),
            z[shares],
            self.shares + sums.values[shares] / sums.n * self._spread[1:],
        )


def _moments(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread of columns, where they are known."""
    known = ~np.isnan(values)
    n = np.maximum(weights @ known, 1.0)
    mean = weights @ np.where(known, values, 0.0) / n
    return mean, np.sqrt(weights @ np.where(known, values - mean, 0.0) ** 2 / n) + 1e-9


def _p(drawn: np.ndarray, found: float) -> float:
    # Draws of rows that are all alike differ by rounding only.
    return float((1 + (drawn >= found - 1e-9).sum()) / (len(drawn) + 1))
