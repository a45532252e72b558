"""Merge labels of sources that use one set of names: the names are the clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience._support.errors import Hint, InputError, Phrase
from consilience.core.grouping import largest_first
from consilience.evidence.partitions import Partitions
from consilience.inference.annotators import (
    PERMUTED,
    NamedInstances,
    NamedPlacement,
    gain_by_permuting,
    name_instances,
)
from consilience.results.fusion import Fusion

_REASON = "The sources use the same names: what each confuses with what was learned from all of them."


class SameNames:
    """What was learned of sources that use the same names; see :func:`consilience.fuse`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,)
        Cluster of every row; 0 is the largest. -1 where no source said anything.
    names_ : tuple of str
        The names, in the order of the clusters.
    accuracy_ : ndarray of shape (n_sources,)
        How often each source is right, drawn to .7 where it said little.
    confusion_ : ndarray of shape (n_sources, n_names, n_names)
        How often each source says a name (last) where another one is right, both in the order of `names_`.
    """

    def __init__(self, table: Partitions, names: tuple[str, ...], found: NamedInstances, order: np.ndarray):
        self.names_ = tuple(names[z] for z in order)
        self.accuracy_ = found.accuracy
        self.confusion_ = found.confusion[:, order][:, :, order]
        seen = found.chances.any(axis=1)
        self.labels_ = np.where(seen, np.argsort(order)[found.chances.argmax(axis=1)], -1)
        self.placement_ = NamedPlacement(found, numbers_of(table, names), order)


def fuse_same_names(table: Partitions, n_clusters: Any, unobserved: str, seed: int) -> Fusion:
    """The name of every instance, as sources that use the same names say it."""
    names = tuple(sorted({str(label) for labels in table.categories for label in labels.tolist()}))
    if n_clusters not in ("auto", len(names)):
        raise InputError(
            Phrase(
                "the sources use {n} names and {n_clusters=}: with the same names, these are the clusters.",
                n=len(names),
                n_clusters=n_clusters,
            ),
            hint=Hint("give their number or 'auto', or leave out {same_names}.", command="leave out -k."),
        )
    own = numbers_of(table, names)
    codes = np.column_stack([number[column] for number, column in zip(own, table.codes.T, strict=True)])
    _refuse_permuted(table, gain_by_permuting(codes, len(names), table.counts))
    found = name_instances(codes, len(names), table.counts)
    seen = np.asarray(found.chances.any(axis=1))
    order = largest_first(found.chances[seen].argmax(axis=1), len(names), table.counts[seen])
    model = SameNames(table, names, found, order)
    labels = np.where(seen, model.labels_, 0 if unobserved == "largest" else -1)
    used = int(labels.max()) + 1  # names that nobody has are the last
    return Fusion(labels, table, "same names", _REASON, model, cluster_names=model.names_[:used], seed=seed)


def numbers_of(table: Partitions, names: tuple[str, ...]) -> tuple[np.ndarray, ...]:
    """For every source, which of the names each of its codes is; the last entry is that of -1."""
    place = {name: z for z, name in enumerate(names)}
    return tuple(
        np.array([*(place[str(label)] for label in labels.tolist()), -1]) for labels in table.categories
    )


def _refuse_permuted(table: Partitions, gain: np.ndarray) -> None:
    if not np.isnan(gain).all() and np.nanmax(gain) > PERMUTED:
        worst = int(np.nanargmax(gain))
        raise InputError(
            f"source {table.names[worst]!r} does not use the names as others do: with its names permuted, "
            f"{gain[worst]:.0%} more of its labels would agree with theirs.",
            hint=Hint("rename its labels, leave it out, or leave out {same_names}."),
        )
