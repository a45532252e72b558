"""The chance of every cluster for every instance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consilience.core.blocks import run_blocks
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import JointRows, joint_rows
from consilience.inference.posterior import Evidence, gather_evidence, weighing


def chances(
    partitions: Any, labels: ArrayLike | JointRows, *, evidence: Evidence | None = None
) -> np.ndarray:
    """The chance of every cluster for every instance; that of its own cluster is its confidence.

    The other clusters share what the confidence leaves, in proportion to the formula of
    :func:`consilience.diagnostics.confidence` with each of them for the own one. So the largest chance need
    not be that of the own cluster: then the labels of the instance speak for another one.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    labels : array-like of int of shape (n_instances,)
        A consensus cluster per instance, from 0; -1 where unassigned.
    evidence : Evidence, optional
        The tables of the same labels, where they are at hand.

    Returns
    -------
    chances : ndarray of shape (n_instances, n_clusters)
        Rows of sum one, a column for each number of a cluster. An instance that no base clustering saw has
        the shares of the clusters.

    Notes
    -----
    They are to be read as the confidence is: as chances where base clusterings err independently, else as a
    ranking.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import chances
    >>> base = Partitions.of([[0, 0]] * 20 + [[1, 1]] * 20 + [[0, 1], [1, 0]] * 2)
    >>> chances(base, [0] * 20 + [1] * 20 + [0, 1] * 2)[[0, 40]].round(2)
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    rows = joint_rows(partitions, labels)
    evidence = gather_evidence(partitions, rows) if evidence is None else evidence
    return np.asarray(chances_of_rows(evidence, rows.codes, rows.labels, leave_out=True)[rows.inverse])


def chances_of_rows(
    evidence: Evidence, codes: np.ndarray, labels: np.ndarray, *, leave_out: bool
) -> np.ndarray:
    """`chances` of rows of base labels, as ``partitions.encode`` gives them, that have these clusters.

    With `leave_out`, of rows that are among those counted.
    """
    codes = np.ascontiguousarray(evidence.numbering.recode(codes))
    weigh, out = weighing(evidence, leave_out=leave_out), np.empty((len(codes), len(evidence.prior)))

    def one(block: slice) -> None:
        out[block] = weigh(codes[block], labels[block])[0]

    run_blocks(one, len(codes))
    return out
