"""How good each base clustering is, from how far pairs of them agree, and what it then says of a cluster."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from consilience.core.blocks import map_blocks
from consilience.core.canonical import row_draws
from consilience.core.tables import base_sums, total
from consilience.inference.counts import JointRows
from consilience.inference.opinions import Groups, apart, shares

_SAMPLE = 10_000  # instances whose labels are compared, about
_ITERATIONS = 60
_WORST, _BEST = 0.02, 0.995
_UNKNOWN = 0.9  # the skill of a base clustering that can be compared with no other
_SMALLEST = 1e-12
_RAREST = 1e-9  # chance of a label that nobody stands for

# The sums over all rows of what a function of rows, and of more, returns.
Sums = Callable[..., tuple[np.ndarray, np.ndarray]]


def one_coin(
    sizes: np.ndarray,
    together: np.ndarray,
    seen: np.ndarray,
    offsets: np.ndarray,
    sums: Sums,
    groups: Groups = (),
) -> np.ndarray:
    r"""P(l | z) of base clusterings that either know the cluster or say anything: (base clusters, clusters).

    .. math:: P_j(l | z) = u_j D_j(l | z) + (1 - u_j) M_j(l)

    A base knows the cluster of a share :math:`u_j` of its instances and gives the others a label as often as
    it gives it to anybody. The skills u follow from pairs of bases, which know nothing of the consensus: a
    tie that the consensus broke one way leaves both bases of the tie equally good. Members of a group say
    nothing of each other's skill, and together as much of others' as one base.

    Symbols: D -> `_ideal`; M -> shares of the labels; u -> `_skills`, times n_l / (n_l + .5) for a label of
    n_l members.
    """
    k, m = np.diff(offsets), len(offsets) - 1
    base, members = np.repeat(np.arange(m), k), together.sum(axis=1)
    said = members / np.maximum(seen.sum(axis=1), 1.0)[base]
    ideal = _ideal(together, seen, said, offsets)
    skill = _skills(ideal, said, sizes, offsets, sums, groups)[base] * members / (members + 0.5)
    coin = np.maximum(skill[:, None] * ideal + ((1.0 - skill) * said)[:, None], _RAREST)
    return coin / base_sums(coin, offsets)


def skills(rows: JointRows, together: np.ndarray, seen: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """u_j: for which share of its instances each base clustering knows the cluster; see `one_coin`.

    Rows, counts and skills are all in one order of the bases and their clusters.
    """
    placed = rows.labels >= 0
    sizes = np.bincount(rows.labels[placed], rows.counts[placed], rows.n_clusters)
    base = np.repeat(np.arange(len(seen)), np.diff(offsets))
    said = together.sum(axis=1) / np.maximum(seen.sum(axis=1), 1.0)[base]
    ideal = _ideal(together, seen, said, offsets)
    return _skills(ideal, said, sizes, offsets, lambda function, *given: function(rows, *given))


def _ideal(together: np.ndarray, seen: np.ndarray, said: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """D(l | z): how often a base clustering without mistakes gives a member of z the label l.

    A label stands for the cluster that has most of its members, by the square root of the clusters' sizes so
    that large ones do not take all. A cluster for which no label stands takes the label that is nearest to
    being one of its own. Where several are equally near, all are taken: no order decides.
    """
    base, starts = np.repeat(np.arange(len(seen)), np.diff(offsets)), offsets[:-1]
    members = together.sum(axis=1, keepdims=True)
    near = together / np.sqrt(seen + 1.0)[base]
    stands = (near == near.max(axis=1, keepdims=True)) & (members > 0.0)
    near = together / np.sqrt(np.maximum(members, 1.0))
    nearest = near == np.maximum.reduceat(near, starts, axis=0)[base]
    stands |= nearest & ~np.logical_or.reduceat(stands, starts, axis=0)[base]
    ideal = stands * said[:, None]
    return ideal / np.maximum(base_sums(ideal, offsets), _SMALLEST)


def _skills(
    ideal: np.ndarray,
    said: np.ndarray,
    sizes: np.ndarray,
    offsets: np.ndarray,
    sums: Sums,
    groups: Groups = (),
) -> np.ndarray:
    r"""u_j, by the rank-one fit :math:`c_{jk} \approx u_j u_k` of the agreement of all pairs of bases.

    With D, a label says :math:`R(z | l) \propto \pi_z D(l | z)`, as a vector :math:`v_l = (R - \pi) /
    \sqrt\pi` whose mean over a base is zero. Two bases without mistakes have products of these vectors with
    mean E; of two that know the cluster for shares u and u' of their instances, independently, it is u u' E.
    c is what is found over E.
    """
    m, n = len(offsets) - 1, float(sizes.sum())
    prior = sizes / n
    says = ideal * prior
    says /= np.maximum(says.sum(axis=1, keepdims=True), _SMALLEST)
    vectors = (says - prior) / np.sqrt(np.maximum(prior, _SMALLEST))
    vectors -= base_sums(said[:, None] * vectors, offsets)
    base = np.repeat(np.arange(m), np.diff(offsets))
    expected = np.zeros((m, m))
    for z in np.flatnonzero(prior):
        mean, labels = np.zeros((m, len(prior))), np.flatnonzero(ideal[:, z])
        np.add.at(mean, base[labels], ideal[labels, z][:, None] * vectors[labels])
        expected += prior[z] * (mean @ mean.T)
    agreed, both = sums(pair_agreement, n, offsets, vectors)
    size = np.sqrt(np.diag(expected))
    valid = (expected > 1e-6 * np.outer(size, size)) & apart(m, groups)
    share = shares(m, groups)
    weight = np.where(valid, both * expected, 0.0) * share
    found = np.clip(np.where(valid, agreed / np.maximum(both * expected, _SMALLEST), 0.0), 0.0, 1.0)
    linked = weight.sum(axis=1) > 0.0
    if not linked.any():
        return np.full(m, _UNKNOWN)
    pairs = share[:, None] * weight
    u = np.full(m, np.sqrt(max((pairs * found).sum() / pairs.sum(), 1e-6)))
    for _ in range(_ITERATIONS):
        new = (weight * found) @ u / np.maximum(weight @ u**2, _SMALLEST)
        u = np.sqrt(u * np.clip(new, _WORST, 1.0))
    return np.clip(np.where(linked, u, np.average(u[linked], weights=share[linked])), _WORST, _BEST)


def pair_agreement(
    rows: JointRows, n: float, offsets: np.ndarray, vectors: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For every two bases the sum of the products of their labels' vectors, and the instances that both saw.

    Of n instances about `_SAMPLE` are looked at: a row of w instances with a chance of w `_SAMPLE` / n, and
    it then stands for at least n / `_SAMPLE`.
    """
    weights, rate = rows.counts * (rows.labels >= 0.0), _SAMPLE / n
    drawn = np.flatnonzero(row_draws(rows.codes, offsets) < weights * rate)
    codes, root = rows.codes[drawn], np.sqrt(np.maximum(weights[drawn], 1.0 / rate if rate < 1.0 else 0.0))
    place = np.where(codes >= 0, codes + offsets[:-1], offsets[-1])
    columns = np.vstack([vectors, np.zeros_like(vectors[:1])]).T

    def one(block: slice) -> np.ndarray:
        scale = root[block][:, None]
        parts = (column[place[block]] * scale for column in columns)
        observed = (codes[block] >= 0) * scale
        return np.stack([sum((x.T @ x for x in parts), start=np.zeros((m, m))), observed.T @ observed])

    m = codes.shape[1]
    agreed, both = total(map_blocks(one, len(codes))) if len(codes) else np.zeros((2, m, m))
    return agreed, both
