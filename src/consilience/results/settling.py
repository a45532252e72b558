"""Instances for which another cluster is more likely than their own: how many, why, and what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import counted
from consilience.inference.settling import INDEPENDENT, settle
from consilience.results.preparing import merge_rows

if TYPE_CHECKING:
    from consilience.results.fusion import Fusion

_EQUAL = 1e-9  # chances that differ by less are equal


def is_likelier(fusion: Fusion) -> np.ndarray:
    """Per row, whether another cluster has a higher chance than its own."""
    assigned = fusion.labels >= 0
    if fusion.by_views:
        known = fusion.confidence > 0.0  # of others nothing is known
        return assigned & known & (fusion.chances.max(axis=1) > fusion.confidence + _EQUAL)
    found = fusion.diagnostics
    return assigned & (found.alternative >= 0) & (found.margin < 0.5 - _EQUAL)


def why_likelier(fusion: Fusion) -> str:
    """Why instances are not in the cluster that is most likely for them, as the end of a sentence."""
    if fusion.given_weights is not None:
        return "chances count every source once, and labels follow the weights that were given"
    if fusion.linked is not None:
        return "chances know of no links, and labels follow the links that were given"
    if fusion.by_views:
        return "they lie nearest to their own cluster, but their evidence is divided"
    dependence = fusion.evidence.dependence
    if dependence > INDEPENDENT:
        return (
            f"the sources repeat each other (dependence {dependence:.2f}), so chances only rank, and labels "
            "follow instances that are alike"
        )
    return "they were grouped with instances that are like them"


def told(fusion: Fusion, n_likelier: int) -> str:
    """How many, why, and how many were moved, in sentences; empty where there is nothing to say."""
    said = []
    if fusion.settled is not None:
        was = "was" if fusion.settled == 1 else "were"
        said.append(f"{counted(fusion.settled, 'instance')} {was} moved to the most likely cluster.")
    if n_likelier:
        said.append(
            f"For {counted(n_likelier, 'instance')} another cluster is more likely: {why_likelier(fusion)}."
        )
    return " ".join(said)


def settled(fusion: Fusion) -> Fusion:
    """The same with every instance in its most likely cluster, under the same numbers."""
    fusion._require_labels("moving instances to their most likely cluster")
    if fusion.by_views:
        raise InputTypeError(
            "chances of labels alone would move instances that views put where they are.",
            hint="leave the labels as they are, or merge without views.",
        )
    if fusion.given_weights is not None:
        raise InputError(
            "chances count every base clustering once, and weights were given.",
            hint="merge without weights, or leave the labels as they are.",
        )
    table, labels, row_of = fusion.partitions, fusion.labels, fusion.linked
    if row_of is not None:  # those that are linked move together
        table, of_groups = merge_rows(table, row_of), np.empty(int(row_of.max()) + 1, dtype=labels.dtype)
        of_groups[row_of] = labels
        labels = of_groups
    found = settle(table, labels)
    moved = found.labels if row_of is None else found.labels[row_of]
    n_moved = int(fusion.partitions.counts[moved != fusion.labels].sum())
    return replace(fusion, labels=moved, settled=n_moved)
