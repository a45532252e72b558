"""Sources that use one set of names: annotators, crowd workers, language models.

Where names correspond, two sources can be compared without a single instance that both saw, and what each
confuses with what can be learned. `name_instances` is the model of Dawid and Skene with confusions drawn to
each source's own accuracy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from consilience.core.tables import indicator
from consilience.inference.placement import Placed

# Labels of every name that a source's even errors are worth, so that one of twenty labels is not fitted by
# k^2 numbers; and what its accuracy is before any is seen.
_PRIOR, _ACCURACY = 2.0, 0.7
_SWEEPS, _TOL = 50, 1e-4
# A source whose names, permuted, would agree with others so much more often does not use the same names.
PERMUTED = 0.15
_LEAST_A_NAME = 10  # instances a name that others saw too: few always match better by some permutation


class NamedInstances(NamedTuple):
    """What `name_instances` found."""

    chances: np.ndarray  # (n_rows, n_names), zero where no source said anything
    accuracy: np.ndarray  # (n_sources,), how often each says the right name
    confusion: np.ndarray  # (n_sources, n_names, n_names), chance of saying a name where another is right
    shares: np.ndarray  # (n_names,)


def name_instances(codes: np.ndarray, n_names: int, counts: np.ndarray | None = None) -> NamedInstances:
    r"""The name of every instance from sources that use the same names, and how far each can be trusted.

    Expectation and maximisation from shares of votes, of

    .. math:: q_{iz} \propto \pi_z \prod_j \Theta_{j z l_{ij}}, \qquad
        \Theta_{jzl} \propto \sum_{i: l_{ij} = l} q_{iz} + 2 k A_{jzl}

    with :math:`A_{jzz} = a_j`, the accuracy of source j, and the rest of its errors even. Sources need not
    share any instance: names link them.

    Symbols: l_ij -> codes, the name that source j gave to instance i, -1 for none; k -> n_names; q ->
    chances; Theta -> confusion; pi -> shares.

    References
    ----------
    A. P. Dawid and A. M. Skene: Maximum likelihood estimation of observer error-rates using the EM algorithm.
    Applied Statistics 28, 1979.
    """
    (n, m), k = codes.shape, n_names
    said = indicator(codes, k * np.arange(m + 1))
    times = np.ones(n) if counts is None else counts.astype(float)
    votes = said @ np.tile(np.eye(k), (m, 1))
    seen = votes.any(axis=1)
    q = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0)
    accuracy, confusion, shares = np.full(m, _ACCURACY), np.zeros((m, k, k)), np.full(k, 1.0 / k)
    diagonal = np.eye(k, dtype=bool)
    for _ in range(_SWEEPS):
        before, weighted = q, q * times[:, None]
        shares = (weighted.sum(axis=0) + 1.0) / (times[seen].sum() + k)
        tables = (said.T @ weighted).reshape(m, k, k).transpose(0, 2, 1)  # source, right name, said name
        right = np.einsum("jzz->j", tables)
        accuracy = (right + _ACCURACY * _PRIOR * k) / (tables.sum(axis=(1, 2)) + _PRIOR * k)
        even = (1.0 - accuracy) / max(k - 1, 1)
        drawn = np.where(diagonal, accuracy[:, None, None], even[:, None, None])
        confusion = tables + _PRIOR * k * drawn
        confusion /= confusion.sum(axis=2, keepdims=True)
        q = np.where(seen[:, None], _posterior(codes, confusion, shares), 0.0)
        if np.abs(q - before).max(initial=0.0) < _TOL:
            break
    return NamedInstances(q, accuracy, confusion, shares)


def _posterior(codes: np.ndarray, confusion: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The chance of every name for rows of labels."""
    m, k, _ = confusion.shape
    said = indicator(codes, k * np.arange(m + 1))
    log = np.log(np.maximum(confusion.transpose(0, 2, 1).reshape(m * k, k), 1e-300))
    score = said @ log + np.log(shares)
    odds = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def gain_by_permuting(codes: np.ndarray, n_names: int, counts: np.ndarray | None = None) -> np.ndarray:
    """For each source, how much more it would agree with the votes of all others if its names were permuted.

    Near 0 where names hold; NaN where too few of its instances were also seen by others.
    """
    (n, m), k = codes.shape, n_names
    times = np.ones(n) if counts is None else counts.astype(float)
    votes = indicator(codes, k * np.arange(m + 1)) @ np.tile(np.eye(k), (m, 1))
    out = np.full(m, np.nan)
    for j, column in enumerate(codes.T):
        rows = np.flatnonzero(column >= 0)
        rest = votes[rows].copy()
        rest[np.arange(len(rows)), column[rows]] -= 1.0
        both = rest.any(axis=1)
        rows, rest = rows[both], rest[both]
        if times[rows].sum() < _LEAST_A_NAME * k:
            continue
        table = np.zeros((k, k))
        np.add.at(table, column[rows], times[rows][:, None] * rest / rest.sum(axis=1, keepdims=True))
        first, second = linear_sum_assignment(-table)
        out[j] = (table[first, second].sum() - np.trace(table)) / table.sum()
    return out


class NamedPlacement(NamedTuple):
    """What places rows of labels of such sources: by what each of them confuses.

    `names` has for every source the name of each of its codes, and last -1; `order` has the names in the
    order of the clusters.
    """

    found: NamedInstances
    names: tuple[np.ndarray, ...]
    order: np.ndarray
    unseen: int = -1

    def chances(self, codes: np.ndarray) -> np.ndarray:
        """The chance of every cluster; the shares of the clusters where nothing is known."""
        shared = np.column_stack([names[column] for names, column in zip(self.names, codes.T, strict=True)])
        return _posterior(shared, self.found.confusion, self.found.shares)[:, self.order]

    def labels(self, codes: np.ndarray) -> np.ndarray:
        """Clusters of the rows."""
        return np.where((codes < 0).all(axis=1), self.unseen, self.chances(codes).argmax(axis=1))

    def place(self, codes: np.ndarray) -> Placed:
        """Clusters of the rows, how sure they are, and which would be next."""
        chances, labels = self.chances(codes), self.labels(codes)
        known = (codes >= 0).any(axis=1)
        own = np.maximum(labels, 0)
        sure = np.where(known, chances[np.arange(len(own)), own], 0.0)
        others = chances.copy()
        others[np.arange(len(own)), own] = -1.0
        behind = np.where(known & (chances.shape[1] > 1), others.argmax(axis=1), -1)
        return Placed.of(labels, sure, behind, lambda: chances)
