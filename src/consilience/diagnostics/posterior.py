"""How sure a consensus label is, from what the base labels of the same instance say about it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from consilience.core import hot
from consilience.core.blocks import run_blocks
from consilience.core.tables import elect
from consilience.diagnostics.counts import JointRows, joint_rows, label_counts
from consilience.partitions import Partitions

_SMOOTHING = 0.5  # members added to every consensus cluster, spread evenly over the labels of a base
_SMALLEST = np.finfo(float).tiny  # the logarithm of zero is infinite, and infinity minus infinity unknown


class Evidence(NamedTuple):
    """What base labels say about consensus clusters: all that the confidence of an instance needs.

    It has no entry per instance, so it can be kept and applied to new instances.
    """

    prior: np.ndarray  # pi, share of each consensus cluster
    together: np.ndarray  # T, members of each base cluster in each consensus cluster
    seen: np.ndarray  # N, members of each consensus cluster that each base saw
    offsets: np.ndarray  # where the clusters of each base begin in `together`
    dependence: float  # lambda, 0 = bases err independently, 1 = they repeat each other

    def __repr__(self) -> str:
        return (
            f"Evidence({len(self.prior)} clusters, {len(self.seen)} base clusterings, "
            f"dependence {self.dependence:.2f})"
        )


def gather_evidence(partitions: Partitions, labels: ArrayLike | JointRows) -> Evidence:
    """Count tables of a partition and its base clusterings.

    Parameters
    ----------
    partitions : Partitions
        The base clusterings.
    labels : array-like of int of shape (n_instances,)
        A consensus cluster per instance, from 0; -1 where unassigned.

    Returns
    -------
    evidence : Evidence
        For `confidence` and `predict_confidence`.
    """
    return _count(joint_rows(partitions, labels), partitions.offsets)


def confidence(
    partitions: Partitions, labels: ArrayLike | JointRows, *, evidence: Evidence | None = None
) -> np.ndarray:
    r"""Chance that an instance belongs to the consensus cluster it was given, as far as base labels can tell.

    .. math::
        (1 - \lambda) \, \frac{\pi_z \prod_j P(l_j | z)}{\sum_c \pi_c \prod_j P(l_j | c)}
        + \lambda \, \frac{1}{m_i} \sum_j \sqrt{P(z | l_j) \, P(l_j | z)}

    The products and sums are over the :math:`m_i` bases that saw the instance, and the instance itself is
    taken out of the counts. If bases err independently, naive Bayes (left) is right. If they repeat each
    other it counts the same opinion many times, and the average overlap of the base clusters with the
    consensus cluster (right) is safer. How much they do is measured: inside a consensus cluster, independent
    bases have uncorrelated negative log-likelihoods :math:`x_j = -\log P(l_j | z)`. With :math:`\rho` their
    mean correlation, :math:`\lambda` is the share of their average that the bases have in common,

    .. math:: \lambda = \frac{m \rho}{1 + (m - 1) \rho}.

    Symbols: l -> a row of ``partitions.codes``; z -> its label; pi -> evidence.prior; lambda ->
    evidence.dependence; P(l|c) = (T + .5 / k_j) / (N + .5), T -> evidence.together, N -> evidence.seen.
    Cost: distinct rows x bases x clusters; memory a few numbers per row.

    Parameters
    ----------
    partitions : Partitions
        The base clusterings.
    labels : array-like of int of shape (n_instances,)
        A consensus cluster per instance, from 0; -1 where unassigned.
    evidence : Evidence, optional
        The tables of the same labels, where they are at hand.

    Returns
    -------
    confidence : ndarray of shape (n_instances,)
        Between 0 and 1. An unassigned instance has 0. An instance that no base saw has the share of its
        cluster. An instance that one base saw has at most the purity of its label, the share of that label's
        members that are in the cluster.

    Notes
    -----
    It is a chance under the clusters that were found. That two classes were merged into one cluster, base
    labels may not show, and mistakes that all bases share they cannot; see the reliability tables in the
    documentation. Base clusterings that repeat each other and are much finer than the consensus leave a
    confidence below one even if all of them respect it: they speak for other clusters.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import confidence
    >>> base = Partitions.of([[0, 0, 1], [0, 0, -1], [0, 0, 1], [1, 1, 0], [1, 1, -1], [1, 0, 0]])
    >>> confidence(base, [0, 0, 0, 1, 1, 1]).round(2)
    array([1.  , 0.97, 1.  , 1.  , 0.99, 0.92])
    """
    rows = joint_rows(partitions, labels)
    evidence = _count(rows, partitions.offsets) if evidence is None else evidence
    return row_confidence(evidence, rows.codes, rows.labels, leave_out=True)[rows.inverse]


def predict_confidence(evidence: Evidence, codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """`confidence` of new instances, which are not among those counted.

    Parameters
    ----------
    evidence : Evidence
        From `gather_evidence`.
    codes : ndarray of shape (n_new, n_partitions)
        Their base labels, as ``partitions.encode`` gives them; -1 = missing.
    labels : ndarray of int of shape (n_new,)
        The consensus clusters they were given; -1 where unassigned.

    Returns
    -------
    confidence : ndarray of shape (n_new,)
        Between 0 and 1.
    """
    return row_confidence(evidence, codes, np.asarray(labels), leave_out=False)


def predict_labels(evidence: Evidence, codes: np.ndarray) -> np.ndarray:
    """The most likely consensus cluster of every row of base labels: naive Bayes, as in `confidence`.

    Parameters
    ----------
    evidence : Evidence
        From `gather_evidence`.
    codes : ndarray of shape (n_rows, n_partitions)
        Base labels, as ``partitions.encode`` gives them; -1 = missing.

    Returns
    -------
    labels : ndarray of int of shape (n_rows,)
        A row without labels gets the largest cluster.
    """
    prior = np.log(np.maximum(evidence.prior, _SMALLEST))
    return elect(np.ascontiguousarray(codes), evidence.offsets, _log_chance(evidence, leave_out=False), prior)


def _count(rows: JointRows, offsets: np.ndarray) -> Evidence:
    sizes = np.bincount(rows.labels[rows.labels >= 0], rows.counts[rows.labels >= 0], rows.n_clusters)
    tables = count_tables(sizes, label_counts(rows, offsets), offsets)
    return tables._replace(dependence=_dependence(tables, rows))


def count_tables(sizes: np.ndarray, together: np.ndarray, offsets: np.ndarray) -> Evidence:
    """Evidence from the sizes of the clusters and `label_counts`, as if bases erred independently."""
    seen = np.add.reduceat(together, offsets[:-1], axis=0)
    return Evidence(sizes / sizes.sum(), together, seen, offsets, dependence=0.0)


def _dependence(evidence: Evidence, rows: JointRows) -> float:
    r"""lambda from the correlation of the bases' log-likelihoods inside consensus clusters.

    With :math:`x_{ij}` centred per base and cluster, :math:`(\sum_j x_{ij})^2 - \sum_j x_{ij}^2` holds the
    products of all pairs of bases: rho is their sum over the sum of :math:`(m_i - 1) \sum_j x_{ij}^2`, what
    it would be if each base repeated the others.
    """
    return dependence_of(*shared_log_likelihood(evidence, rows), rows.codes.shape[1])


def dependence_of(together: float, apart: float, m: int) -> float:
    """lambda of m bases from the two sums of `shared_log_likelihood`, each over all instances."""
    rho = min(max(together / apart, 0.0), 1.0) if apart > 0 else 0.0
    return m * rho / (1.0 + (m - 1) * rho)


def shared_log_likelihood(evidence: Evidence, rows: JointRows) -> tuple[float, float]:
    """Both sums of rho, over these rows: sums over parts of the table add up."""
    if np.count_nonzero(evidence.prior) == 1:
        return 0.0, 0.0  # nothing else to belong to
    log_chance = _log_chance(evidence, leave_out=True)
    total = np.add.reduceat(evidence.together * log_chance, evidence.offsets[:-1], axis=0)
    mean = total / np.maximum(evidence.seen, 1.0)
    centred = log_chance - np.repeat(mean, np.diff(evidence.offsets), axis=0)
    together, apart = np.zeros(len(rows.codes)), np.zeros(len(rows.codes))

    def one(block: slice) -> None:
        x = _of_own_cluster(centred, evidence.offsets, rows.codes[block], rows.labels[block])
        squares = np.einsum("pj,pj->p", x, x)
        together[block] = x.sum(axis=1) ** 2 - squares
        apart[block] = ((rows.codes[block] >= 0).sum(axis=1) - 1) * squares

    run_blocks(one, len(rows.codes))
    weights = rows.counts * (rows.labels >= 0)
    return float(weights @ together), float(weights @ apart)


def _log_chance(evidence: Evidence, *, leave_out: bool) -> np.ndarray:
    """log P(l | c); with `leave_out`, for a member of both that is not counted."""
    less = 1.0 if leave_out else 0.0
    k = np.diff(evidence.offsets)
    seen = np.repeat(np.maximum(evidence.seen - less, 0.0), k, axis=0)
    chance = np.maximum(evidence.together - less, 0.0) + _SMOOTHING / np.repeat(k, k)[:, None]
    return np.log(chance / (seen + _SMOOTHING))


def _overlap(evidence: Evidence, *, leave_out: bool) -> np.ndarray:
    """Geometric mean of P(c | l) and P(l | c): one if a base cluster and a consensus cluster are the same.

    The first is smoothed by one member that behaves like the average, so that a small base cluster says
    little.
    """
    less = 1.0 if leave_out else 0.0
    both = np.maximum(evidence.together - less, 0.0)
    members = np.maximum(evidence.together.sum(axis=1, keepdims=True) - less, 0.0)
    seen = np.repeat(np.maximum(evidence.seen - less, 1.0), np.diff(evidence.offsets), axis=0)
    return np.sqrt((both + evidence.prior) / (members + 1.0) * both / seen)


def _of_own_cluster(
    table: np.ndarray, offsets: np.ndarray, codes: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Entries of a stacked table at (base cluster, consensus cluster) of every row, zero where missing."""
    return np.where(codes >= 0, table[codes + offsets[:-1], labels[:, None]], 0.0)


def row_confidence(
    evidence: Evidence, codes: np.ndarray, labels: np.ndarray, *, leave_out: bool
) -> np.ndarray:
    """`confidence` of rows of base labels; with `leave_out`, of rows that are among those counted."""
    prior = np.log(np.maximum(evidence.prior, _SMALLEST))
    chance, own_chance = (_log_chance(evidence, leave_out=less) for less in (False, leave_out))
    overlap = _overlap(evidence, leave_out=leave_out)
    purity = evidence.together / np.maximum(evidence.together.sum(axis=1, keepdims=True), 1.0)
    codes = np.ascontiguousarray(codes)
    out = np.empty(len(codes))

    def one(block: slice) -> None:
        rows, z = codes[block], np.maximum(labels[block], 0)
        place = np.arange(len(rows))
        scores = np.empty((len(rows), len(prior)))
        hot.gather_sum(rows, evidence.offsets, chance, scores)
        scores[place, z] = _of_own_cluster(own_chance, evidence.offsets, rows, z).sum(axis=1)
        scores += prior
        scores -= scores.max(axis=1, keepdims=True)
        odds = np.exp(scores)
        bayes = odds[place, z] / odds.sum(axis=1)
        n_seen = (rows >= 0).sum(axis=1)
        average = _of_own_cluster(overlap, evidence.offsets, rows, z).sum(axis=1) / np.maximum(n_seen, 1)
        mixed = (1.0 - evidence.dependence) * bayes + evidence.dependence * average
        limit = _of_own_cluster(purity, evidence.offsets, rows, z).sum(axis=1)
        mixed = np.where(n_seen == 1, np.minimum(mixed, limit), mixed)
        out[block] = np.where(n_seen == 0, evidence.prior[z], mixed)

    run_blocks(one, len(codes))
    out[np.asarray(labels) < 0] = 0.0
    return out
