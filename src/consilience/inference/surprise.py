"""Whether new rows of labels are like those that were merged: what labels mean, and the mix of clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.core.tables import gather
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import JointRows
from consilience.inference.posterior import Evidence, gather_evidence

_FOLDS = 5
_DRAWS = 999
_MOST_DRAWN = 5_000  # of more rows the statistics, which are scaled by their number, are distributed alike
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
    """Standardised surprise and chances, added up over rows; bases in the order of the table."""

    n: float
    n_labels: np.ndarray  # per base
    surprise: np.ndarray  # per base
    together: float  # over rows, of the sum over their bases by the root of their number
    chances: np.ndarray  # per cluster

    def plus(self, other: Sums) -> Sums:
        """Of the rows of both."""
        return Sums(
            self.n + other.n,
            self.n_labels + other.n_labels,
            self.surprise + other.surprise,
            self.together + other.together,
            self.chances + other.chances,
        )


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

    def __init__(self, partitions: Partitions, rows: JointRows, evidence: Evidence) -> None:
        self._evidence = evidence
        seen = (rows.codes >= 0).any(axis=1) & (rows.labels >= 0)
        counts = np.where(seen, rows.counts, 0)
        rng = np.random.default_rng(_SEED)  # a stream that no caller has drawn his rows from
        row = np.repeat(np.arange(len(counts)), counts)
        cells = np.bincount(row * _FOLDS + rng.permutation(len(row)) % _FOLDS, minlength=len(counts) * _FOLDS)
        cells = cells.reshape(-1, _FOLDS)
        used = np.bincount(rows.labels[seen], minlength=rows.n_clusters) > 0
        codes = evidence.numbering.recode(rows.codes)
        parts, weights = [], []
        for own in cells.T:
            others = rows._replace(counts=rows.counts - own)
            tables = gather_evidence(partitions, others)
            if (tables.prior[used] == 0.0).any():  # a cluster is here alone: nothing else can judge it
                tables = evidence
            here = own > 0
            parts.append(judge_labels(tables, np.ascontiguousarray(codes[here])))
            weights.append(own[here])
        surprise, chances = (np.concatenate(each) for each in zip(*parts, strict=True))
        w = np.concatenate(weights).astype(float)
        self._weights, self.n_reference = w, float(w.sum())
        known = ~np.isnan(surprise)
        n_labels = np.maximum(w @ known, 1.0)
        self._mean = w @ np.where(known, surprise, 0.0) / n_labels
        apart = np.where(known, surprise - self._mean, 0.0)
        self._spread = np.sqrt(w @ apart**2 / n_labels) + 1e-9
        self.shares = w @ chances / self.n_reference
        self._spread_shares = np.sqrt(w @ (chances - self.shares) ** 2 / self.n_reference) + 1e-9
        self._reference = self._features(Judged(surprise, chances))

    def _features(self, judged: Judged) -> np.ndarray:
        """Per row: which bases have a label, its standardised surprise, that of all, and the chances."""
        known = ~np.isnan(judged.surprise)
        apart = np.where(known, (judged.surprise - self._mean) / self._spread, 0.0)
        together = apart.sum(axis=1) / np.sqrt(np.maximum(known.sum(axis=1), 1))
        return np.hstack([known, apart, together[:, None], judged.chances])

    def _split(self, n: float, sums: np.ndarray) -> Sums:
        m = len(self._mean)
        return Sums(n, sums[:m], sums[m : 2 * m], float(sums[2 * m]), sums[2 * m + 1 :])

    def sums(self, codes: np.ndarray) -> Sums:
        """Of new rows, as ``partitions.encode`` gives them; those without any label say nothing."""
        codes = codes[(codes >= 0).any(axis=1)]
        judged = judge_labels(self._evidence, self._evidence.numbering.recode(codes))
        return self._split(len(codes), self._features(judged).sum(axis=0))

    def _z(self, sums: Sums) -> tuple[np.ndarray, np.ndarray]:
        each = sums.surprise / np.sqrt(np.maximum(sums.n_labels, 1.0))
        shares = (sums.chances / sums.n - self.shares) / self._spread_shares * np.sqrt(sums.n)
        return np.append(each, sums.together / np.sqrt(sums.n)), shares

    def test(self, sums: Sums) -> Tested:
        """The largest statistic of the new rows against that of as many merged ones, drawn 999 times.

        Meaning: the surprise of each base and of all together, each over its spread in the draws. Shares: the
        mean chances of the clusters. Both are narrowed for what the reference, a sample too, may be off.
        """
        rng, n = np.random.default_rng((_SEED, 1)), int(min(sums.n, _MOST_DRAWN))
        instances = np.repeat(np.arange(len(self._weights)), self._weights.astype(np.int64))
        drawn = []
        for _ in range(_DRAWS):
            rows = instances[rng.integers(0, len(instances), n)]
            drawn.append(self._z(self._split(n, self._reference[rows].sum(axis=0))))
        each, shares = np.abs([d[0] for d in drawn]), np.abs([d[1] for d in drawn]).max(axis=1)
        spread = each.mean(axis=0) + each.std(axis=0) + 1e-9
        wider = np.sqrt(1.0 + sums.n / self.n_reference)
        z, z_shares = (values / wider for values in self._z(sums))
        surprising = np.abs(z) / spread
        largest = (each / spread).max(axis=1)
        given = np.empty(len(self._mean), dtype=np.intp)
        given[self._evidence.numbering.bases] = np.arange(len(given))
        return Tested(
            _p(largest, surprising.max()),
            _p(shares, np.abs(z_shares).max()),
            z[:-1][given],
            int(surprising[:-1][given].argmax()),
            z_shares,
            sums.chances / sums.n,
        )


def _p(drawn: np.ndarray, found: float) -> float:
    # Draws of rows that are all alike differ by rounding only.
    return float((1 + (drawn >= found - 1e-9).sum()) / (len(drawn) + 1))
