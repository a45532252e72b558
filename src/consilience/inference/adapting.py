"""Place newcomers by tables that their own labels bring up to date, from those of the merged instances."""

from __future__ import annotations

from functools import partial

import numpy as np

from consilience.core.tables import base_sums, scatter
from consilience.inference.chances import chances_of_rows
from consilience.inference.placement import Placed
from consilience.inference.posterior import Evidence, judge_rows
from consilience.inference.surprise import cluster_chances

_WORTH = 100.0  # members of every cluster that an earlier table counts as
_STEPS = 5


def adapt(evidence: Evidence, codes: np.ndarray) -> Evidence:
    r"""Evidence for new rows alone, in which the earlier tables are worth 100 members of every cluster.

    .. math:: P_j(l | z) = \frac{C_j(l, z) + \tau P^0_j(l | z)}{C_j(z) + \tau}, \qquad
        \pi_z \propto \sum_i q_i(z) + \tau \pi^0_z

    Five steps of expectation (q) and maximisation over the new rows.

    Symbols: codes -> as ``partitions.encode`` gives them; P^0, pi^0 -> evidence; C -> counts by q.
    """
    rows = evidence.numbering.recode(codes[(codes >= 0).any(axis=1)])
    found, once = evidence, np.ones(len(rows))
    for _ in range(_STEPS):
        q = cluster_chances(found, rows)
        counts = scatter(rows, evidence.offsets, once, q)
        chance = (counts + _WORTH * evidence.chance) / (base_sums(counts, evidence.offsets) + _WORTH)
        shares = q.sum(axis=0) + _WORTH * evidence.shares
        found = found._replace(chance=chance, shares=shares / shares.sum())
    return found


def place_adapted(evidence: Evidence, codes: np.ndarray, unseen: int) -> Placed:
    """The likeliest cluster of new rows by the adapted tables; `unseen` for a row without any label."""
    found, nothing = adapt(evidence, codes), (codes < 0).all(axis=1)
    rows = evidence.numbering.recode(codes)
    labels = np.where(nothing, unseen, cluster_chances(found, rows).argmax(axis=1))
    judged = judge_rows(found, rows, labels, leave_out=False)
    sure = np.where(nothing, 0.0, judged.confidence)
    weigh = partial(chances_of_rows, found, codes, labels, leave_out=False)
    return Placed.of(labels, sure, judged.alternative, weigh)
