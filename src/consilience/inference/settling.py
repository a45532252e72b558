"""Labels that are the most likely clusters, where the sources of labels err independently."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from consilience.evidence.partitions import Partitions
from consilience.inference.chances import chances_of_rows
from consilience.inference.counts import JointRows, joint_rows
from consilience.inference.posterior import Evidence, gather_evidence

INDEPENDENT = 0.1  # the dependence up to which the most likely clusters are better than the labels
_ROUNDS = 8
_DECIMALS = 9  # chances that differ by less are equal: sums of many rows end in other digits in another order


class Settled(NamedTuple):
    """Labels whose clusters are the most likely ones, and how many instances moved."""

    labels: np.ndarray
    n_moved: int


def settle(partitions: Partitions, labels: ArrayLike) -> Settled:
    """Put every instance into its most likely cluster, again and again as the chances follow.

    Only while the dependence of the base clusterings is at most `INDEPENDENT`: where they repeat each other,
    the most likely clusters are no better than the labels. At most eight rounds, and none that would lose a
    cluster.
    """
    first = rows = joint_rows(partitions, labels)
    for _ in range(_ROUNDS):
        evidence = gather_evidence(partitions, rows)
        best = most_likely(evidence, rows)
        lost = len(np.unique(best[best >= 0])) < len(np.unique(rows.labels[rows.labels >= 0]))
        if evidence.dependence > INDEPENDENT or lost or np.array_equal(best, rows.labels):
            break
        rows = rows._replace(labels=best)
    n_moved = int(first.counts[rows.labels != first.labels].sum())
    return Settled(rows.labels[rows.inverse], n_moved)


def most_likely(evidence: Evidence, rows: JointRows) -> np.ndarray:
    """The cluster of the highest chance of every row that has one; its own where none is higher."""
    chance = chances_of_rows(evidence, rows.codes, rows.labels, leave_out=True).round(_DECIMALS)
    place, own = np.arange(len(chance)), np.maximum(rows.labels, 0)
    moves = (chance.max(axis=1) > chance[place, own]) & (rows.labels >= 0)
    return np.where(moves & (rows.codes >= 0).any(axis=1), chance.argmax(axis=1), rows.labels)
