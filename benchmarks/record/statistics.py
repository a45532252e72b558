"""Ranks of methods over data sets, and which differences are more than chance."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon

LEVEL = 0.05


class Ranks(NamedTuple):
    """Mean ranks, 1 is the best; two further apart than `difference` are not the same (Nemenyi)."""

    methods: list[str]  # best first
    rank: list[float]
    n: int  # data sets
    p_value: float  # of Friedman's test that all are the same; NaN for two methods
    difference: float

    def groups(self) -> list[tuple[int, int]]:
        """First and last place of the largest runs of methods that are not told apart."""
        found: list[tuple[int, int]] = []
        for first in range(len(self.rank)):
            close = [i for i, rank in enumerate(self.rank) if 0 <= rank - self.rank[first] <= self.difference]
            last = max(i for i in close if i >= first)
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found


class Against(NamedTuple):
    """One method against another over the same data sets."""

    method: str
    mean: float  # difference, positive where the reference is ahead
    wins: int
    losses: int
    p_value: float  # Wilcoxon's signed ranks, after Holm


def ranks(scores: pd.DataFrame) -> Ranks:
    """Of methods in columns over data sets in rows; ties share their ranks."""
    n, k = scores.shape
    each = np.apply_along_axis(rankdata, 1, -scores.to_numpy().round(9))
    mean = each.mean(axis=0)
    order = np.argsort(mean, kind="stable")
    same = np.ptp(each, axis=1).max() == 0
    p_value = float(friedmanchisquare(*each.T).pvalue) if k > 2 and not same else float("nan")
    return Ranks(
        [str(scores.columns[i]) for i in order],
        [float(mean[i]) for i in order],
        n,
        p_value,
        critical_difference(k, n),
    )


def critical_difference(k: int, n: int) -> float:
    """Nemenyi's, of mean ranks of k methods over n data sets (Demsar, JMLR 2006)."""
    return float(
        studentized_range.ppf(1 - LEVEL, k, np.inf) / np.sqrt(2.0) * np.sqrt(k * (k + 1) / (6.0 * n))
    )


def against(scores: pd.DataFrame, reference: str) -> list[Against]:
    """The reference against every other method, the closest call last."""
    others = [name for name in scores.columns if name != reference]
    found = []
    for name in others:
        gaps = (scores[reference] - scores[name]).to_numpy().round(9)
        p_value = float(wilcoxon(gaps).pvalue) if gaps.any() else 1.0
        found.append(Against(name, float(gaps.mean()), int((gaps > 0).sum()), int((gaps < 0).sum()), p_value))
    adjusted = holm([one.p_value for one in found])
    found = [one._replace(p_value=p_value) for one, p_value in zip(found, adjusted, strict=True)]
    return sorted(found, key=lambda one: -one.mean)


def holm(p_values: list[float]) -> list[float]:
    """P-values adjusted for their number, step by step from the smallest."""
    order = np.argsort(p_values, kind="stable")
    adjusted, highest = np.empty(len(p_values)), 0.0
    for place, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = highest
    return [float(p) for p in adjusted]
