"""How the labels of two sources, or of a source and the clusters, relate: the same, part of, overlapping."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.inference.counts import JointRows
from consilience.inference.posterior import Evidence
from consilience.inference.skill import skills

RELATIONS = ("same", "finer", "coarser", "overlapping", "unrelated")
_MIRRORED = [0, 2, 1, 3, 4]  # the other way round
_INCLUDED, _OVERLAPS = 0.6, 0.2  # of a label in another, beyond chance and without errors
_STRENGTH = 50.0  # shared instances that the consensus is worth
SURE = 0.8  # a relation is stated from this chance on
FEW = 10  # fewer shared instances of a label do not carry a relation by themselves
_FILLS = 0.6  # a label of less of its cluster than this is finer than the clusters
_LEAST_SKILL = 0.1  # of two sources together: less is noise, which nothing divides out
_DRAWS = 300
_HELD = 2_000_000  # numbers that are drawn at once


class Related(NamedTuple):
    """The labels of two sources against each other, in the order of their categories."""

    chance: np.ndarray  # (a, b, 5): of every relation
    shared: np.ndarray  # (a, b): instances that have both labels
    blind: np.ndarray  # (a, b): both finer than the cluster that they are in, and few are shared

    @property
    def few(self) -> np.ndarray:
        """Which pairs are known through the consensus: fewer than ten instances of a label are shared."""
        return np.minimum.outer(self.shared.sum(axis=1), self.shared.sum(axis=0)) < FEW


class Labels:
    """What relations of labels are read from: distinct rows, and what their labels say of the clusters."""

    def __init__(self, evidence: Evidence, rows: JointRows) -> None:
        numbering = evidence.numbering
        self.evidence = evidence
        self.rows = rows._replace(codes=np.ascontiguousarray(numbering.recode(rows.codes)))
        self.place = np.argsort(numbering.bases)  # of every source in the canonical order
        self.skill = skills(self.rows, evidence.together, evidence.seen, evidence.offsets)

    def _part(self, j: int) -> slice:
        return slice(int(self.evidence.offsets[j]), int(self.evidence.offsets[j + 1]))

    def _given(self, j: int) -> np.ndarray:
        """Places of the labels of a source, as they were given, in the canonical order."""
        return np.argsort(self.evidence.numbering.clusters[self._part(j)])

    def of_sources(self, first: int, second: int) -> Related:
        r"""Relations of the labels of two sources.

        Their joint table is drawn from Dirichlet(shared counts + 50 J), with :math:`J(a, b) = \sum_z \pi_z
        P(a | z) P(b | z)`, what the consensus says where no instance has both labels.
        """
        a, b = int(self.place[first]), int(self.place[second])
        if a > b:  # one draw for both ways round
            chance, shared, blind = self.of_sources(second, first)
            return Related(chance.transpose(1, 0, 2)[..., _MIRRORED], shared.T, blind.T)
        codes, found = self.rows.codes[:, [a, b]].astype(np.int64), self.evidence
        both = (codes >= 0).all(axis=1)
        shape = len(found.together[self._part(a)]), len(found.together[self._part(b)])
        cells = np.ravel_multi_index(tuple(codes[both].T), shape)
        shared = np.bincount(cells, self.rows.counts[both], shape[0] * shape[1]).reshape(shape)
        of_a, of_b = found.chance[self._part(a)], found.chance[self._part(b)]
        joint = (of_a * found.shares) @ of_b.T
        chance = relation_chances(shared, _STRENGTH * joint, self.skill[a] * self.skill[b])
        (main_a, fills_a), (main_b, fills_b) = self._fills(a), self._fills(b)
        blind = np.equal.outer(main_a, main_b) & np.logical_and.outer(fills_a < _FILLS, fills_b < _FILLS)
        given = np.ix_(self._given(a), self._given(b))
        related = Related(chance[given], shared[given], blind[given])
        return related._replace(blind=related.blind & related.few)

    def _fills(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Of every label the cluster of most of its members, and which share of that cluster it is."""
        table = self.evidence.together[self._part(j)]
        main = table.argmax(axis=1)
        return main, table[np.arange(len(table)), main] / np.maximum(table.sum(axis=0)[main], 1.0)

    def of_clusters(self, source: int) -> tuple[np.ndarray, np.ndarray]:
        """Relations of the clusters to the labels of a source, (clusters, labels, 5), and their counts."""
        j = int(self.place[source])
        counts = self.evidence.together[self._part(j)].T
        order = np.lexsort(counts.T)  # the numbers of clusters do not matter
        chance = np.empty((*counts.shape, len(RELATIONS)))
        chance[order] = relation_chances(
            counts[order], np.full(counts.shape, 1.0 / counts.size), self.skill[j]
        )
        given = self._given(j)
        return chance[:, given], counts[:, given]


def relate(table: np.ndarray, skill: float) -> np.ndarray:
    r"""Relation of every row to every column of joint tables, as its place in `RELATIONS`.

    .. math:: in(a, b) = \frac{P(b | a) - P(b)}{1 - P(b)} / (u_a u_b)

    is 0 by chance and 1 if all of a is in b. Errors that are independent of the label multiply it by the
    skills of both, whatever the labels, so that is divided out. a is the same as b where in(a, b) and
    in(b, a) are at least .6, finer where the first is, coarser where the second is, overlapping where one is
    .2.
    """
    tiny = 1e-12
    total = np.maximum(table.sum(axis=(-1, -2), keepdims=True), tiny)
    a, b = table.sum(axis=-1, keepdims=True) / total, table.sum(axis=-2, keepdims=True) / total
    shares = table / total
    one = (shares / np.maximum(a, tiny) - b) / np.maximum(1.0 - b, tiny) / skill
    other = (shares / np.maximum(b, tiny) - a) / np.maximum(1.0 - a, tiny) / skill
    inside, contains = one >= _INCLUDED, other >= _INCLUDED
    some = np.where((one >= _OVERLAPS) | (other >= _OVERLAPS), 3, 4)
    return np.where(inside & contains, 0, np.where(inside, 1, np.where(contains, 2, some)))


def relation_chances(counts: np.ndarray, prior: np.ndarray, skill: float) -> np.ndarray:
    """(a, b, 5): the share of draws of the joint table, Dirichlet(counts + prior), with each relation."""
    rng, worth = np.random.default_rng(0), counts + prior + 1e-9
    found = np.zeros((*counts.shape, len(RELATIONS)))
    at_once = max(1, min(_DRAWS, _HELD // counts.size))
    for start in range(0, _DRAWS, at_once):
        n = min(at_once, _DRAWS - start)
        drawn = relate(
            rng.standard_gamma(np.broadcast_to(worth, (n, *worth.shape))), max(skill, _LEAST_SKILL)
        )
        found += (drawn[..., None] == np.arange(len(RELATIONS))).sum(axis=0)
    return found / _DRAWS
