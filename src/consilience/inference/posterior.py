"""How sure a consensus label is, from what the base labels of the same instance say about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from consilience._support.threads import one_thread
from consilience.core import hot
from consilience.core.blocks import map_blocks, run_blocks
from consilience.core.canonical import Numbering
from consilience.core.grouping import RowIndex, find_rows, index_rows
from consilience.core.tables import base_sums, elect, total
from consilience.evidence.partitions import Partitions
from consilience.inference.copies import near_copies
from consilience.inference.counts import JointRows, joint_rows, label_counts
from consilience.inference.opinions import (
    Groups,
    alone,
    gathered,
    group_means,
    n_heard,
    n_opinions,
    of_columns,
    summed,
)
from consilience.inference.skill import Sums, one_coin

_SMOOTHING = 0.5  # members added to every consensus cluster, spread evenly over the labels of a base
_SMALLEST = np.finfo(float).tiny  # the logarithm of zero is infinite, and infinity minus infinity unknown
_STEPS = 5  # after which more steps follow the consensus into its mistakes
_STRENGTH = (1.0, 1e4)  # members of every cluster that the one-coin table may be worth
_TIE = 0.05  # margins this near to one half are a tie


class Evidence(NamedTuple):
    """What base labels say about consensus clusters: all that the confidence of an instance needs.

    It has no entry per instance, so it can be kept and applied to new instances. Base clusterings and their
    clusters are in the order of `numbering`.
    """

    prior: np.ndarray  # share of each consensus cluster
    together: np.ndarray  # T, members of each base cluster in each consensus cluster
    seen: np.ndarray  # N, members of each consensus cluster that each base saw
    chance: np.ndarray  # P, how often an instance of each true cluster gets each base label
    shares: np.ndarray  # pi, share of each true cluster
    dependence: float  # lambda, 0 = bases err independently, 1 = they repeat each other
    numbering: Numbering
    groups: Groups = ()  # bases that count as one opinion
    groups_given: bool = True  # by the user; otherwise they were found, and new rows count every base

    @property
    def offsets(self) -> np.ndarray:
        """Where the clusters of each base begin in `together` and `chance`."""
        return self.numbering.offsets

    def __repr__(self) -> str:
        return (
            f"Evidence({len(self.prior)} clusters, {len(self.seen)} base clusterings, "
            f"dependence {self.dependence:.2f})"
        )


class Judgement(NamedTuple):
    """What `judge` returns, an entry per instance."""

    confidence: np.ndarray
    margin: np.ndarray  # own chance over own and next best; see `is_tie`; .5 where there is no label
    alternative: np.ndarray  # the cluster of the next best chance, -1 for none


def is_tie(margin: float) -> bool:
    """Whether an instance fits its cluster and the alternative about equally well: .45 to .55 is a tie."""
    return abs(margin - 0.5) <= _TIE


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
    numbering = partitions.canonical.numbering
    return _count(_recoded(joint_rows(partitions, labels), numbering), numbering, partitions)


def confidence(
    partitions: Any, labels: ArrayLike | JointRows, *, evidence: Evidence | None = None
) -> np.ndarray:
    r"""Chance that an instance belongs to the consensus cluster it was given, as far as base labels can tell.

    .. math::
        (1 - \lambda) \, q_i(z) + \lambda \, \frac{1}{m_i} \sum_j \sqrt{P(z | l_j) \, P(l_j | z)}, \qquad
        q_i(z) \propto \pi_z \Bigl[ \prod_j P_j(l_j | z) \Bigr]^{1 / (1 + (m_i - 1) \lambda)}

    The products and sums are over the :math:`m_i` bases that saw the instance. If bases err independently, q
    (left) is right. If they repeat each other it counts the same opinion many times, and the average overlap
    of the base clusters with the consensus cluster (right, the instance itself not counted) is safer. How
    much they do is measured, by :math:`\lambda`: inside a cluster, independent bases have uncorrelated
    negative log-likelihoods. With :math:`\rho` their mean correlation, lambda is the share of their average
    that the bases have in common,

    .. math:: \lambda = \frac{m \rho}{1 + (m - 1) \rho}.

    Base clusterings of a group (:meth:`consilience.Partitions.grouped`) are one opinion: log P and overlap
    are means over its members that saw the instance, m counts opinions, and pairs are those of different
    opinions. Where no groups are given, near copies beside other base clusterings are taken for one: any two
    of them share .6 or more of what the coarser one says, and .1 less with those outside.

    P(l | z) is not counted in the consensus alone, which broke every tie one way: all instances of that tie
    would vouch for each other. It starts from what the agreement of *pairs* of bases says of their skill and
    takes steps of expectation and maximisation; see `learn`.

    Symbols: l -> a row of ``partitions.codes``; z -> its label; pi -> evidence.shares; P_j ->
    evidence.chance; lambda -> evidence.dependence; overlap -> evidence.together, evidence.seen.
    Cost: up to eleven passes over distinct rows x bases x clusters; memory a few numbers per row.

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
    confidence : ndarray of shape (n_instances,)
        Between 0 and 1. An unassigned instance has 0. An instance that no base saw has the share of its
        cluster. An instance that one base saw has at most the purity of its label, the share of that label's
        members that are in the cluster.

    Notes
    -----
    It is a chance under the clusters that were found, and if bases err independently: .9 is then right nine
    times in ten. Where they repeat each other it ranks instances and is not the chance of being right. Base
    labels may not show that two classes were merged into one cluster, and they cannot show mistakes that all
    bases share. Where two bases are all there is, it is about one half wherever they contradict each other;
    with one base nothing can be checked. The documentation has the tables.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import confidence
    >>> base = Partitions.of([[0, 0]] * 20 + [[1, 1]] * 20 + [[0, 1], [1, 0]] * 2)
    >>> sure = confidence(base, [0] * 20 + [1] * 20 + [0, 1] * 2)
    >>> sure[[0, 20, 40, 41]].round(2)  # where both sources agree, and where they contradict each other
    array([1. , 1. , 0.5, 0.5])
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    return judge(partitions, labels, evidence=evidence).confidence


def judge(
    partitions: Partitions, labels: ArrayLike | JointRows, *, evidence: Evidence | None = None
) -> Judgement:
    """Confidence, margin and alternative of every instance: one chance per cluster decides all three.

    The chance of the own cluster is its confidence. The other clusters share what is left in proportion to
    the formula of `confidence` with each for z: see `chances`. The alternative is the other cluster of the
    highest chance among those a member of which shares a label with the instance; -1 if there is none. The
    margin is own / (own + that one): below .5 the alternative has the higher chance, and the confidence is
    below .5.

    Parameters as in `confidence`.
    """
    rows, numbering = joint_rows(partitions, labels), partitions.canonical.numbering
    numbered = _recoded(rows, numbering)
    evidence = _count(numbered, numbering, partitions) if evidence is None else evidence
    found = judge_rows(evidence, numbered.codes, rows.labels, leave_out=True)
    return Judgement(*(values[rows.inverse] for values in found))


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
    return judge_rows(evidence, evidence.numbering.recode(codes), labels, leave_out=False).confidence


def predict_labels(evidence: Evidence, codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The most likely consensus cluster of every row of base labels: naive Bayes, by counts in the consensus.

    Parameters
    ----------
    evidence : Evidence
        From `gather_evidence`.
    codes : ndarray of shape (n_rows, n_partitions)
        Base labels, as ``partitions.encode`` gives them; -1 = missing.
    weights : ndarray of shape (n_partitions,), optional
        How often each base clustering counts.

    Returns
    -------
    labels : ndarray of int of shape (n_rows,)
        A row without labels gets the largest cluster.
    """
    prior = np.log(np.maximum(evidence.prior, _SMALLEST))
    chance = _log_chance(evidence, leave_out=False)
    if weights is not None:
        chance *= np.repeat(weights[evidence.numbering.bases], np.diff(evidence.offsets))[:, None]
    numbered = evidence.numbering.recode(codes)
    if not (evidence.groups and evidence.groups_given):
        return elect(numbered, evidence.offsets, chance, prior)
    labels = np.empty(len(codes), dtype=np.int64)

    def one(block: slice) -> None:
        scores = summed(numbered[block], evidence.offsets, chance, evidence.groups)
        labels[block] = (scores + prior).argmax(axis=1)

    run_blocks(one, len(codes))
    return labels


class FittedRows(NamedTuple):
    """Rows of base labels that were clustered, and where they were put."""

    rows: RowIndex
    labels: np.ndarray


def fitted_rows(rows: JointRows) -> FittedRows:
    """Rows by which others are known again; where equal ones were told apart, most of them decide."""
    return FittedRows(index_rows(rows.codes, rows.counts), rows.labels)


def place_rows(evidence: Evidence, fitted: FittedRows, codes: np.ndarray) -> np.ndarray:
    """Clusters of rows of base labels: that of the same row where it was clustered, else naive Bayes.

    Instances that no base label tells apart so have one cluster, whether they were there or are new.
    """
    labels = predict_labels(evidence, codes)
    row = find_rows(fitted.rows, codes)
    known = np.where(row >= 0, fitted.labels[row], -1)
    return np.where(known >= 0, known, labels)


def _recoded(rows: JointRows, numbering: Numbering) -> JointRows:
    return rows._replace(codes=numbering.recode(rows.codes))


def _count(rows: JointRows, numbering: Numbering, partitions: Partitions) -> Evidence:
    """Evidence of rows in canonical order; groups are those that were given, or near copies."""
    place = np.argsort(numbering.bases)
    found = near_copies(partitions)
    groups = tuple(np.sort(place[members]) for members in partitions.members_of_groups or found)
    sizes = np.bincount(rows.labels[rows.labels >= 0], rows.counts[rows.labels >= 0], rows.n_clusters)

    def sums(function: Any, *given: Any) -> Any:
        return function(rows, *given)

    evidence = learn(sizes, label_counts(rows, numbering.offsets), numbering, sums, groups)
    return evidence._replace(groups_given=not found)


def learn(
    sizes: np.ndarray, together: np.ndarray, numbering: Numbering, sums: Sums, groups: Groups = ()
) -> Evidence:
    r"""Evidence from the sizes of the clusters, `label_counts`, and passes over the rows.

    P starts as the one-coin table O of `one_coin`. Each step gives every instance its chances q of being in
    each cluster and counts labels by them; the table is then

    .. math:: P_j(l | z) = \frac{C_j(l, z) + a_j O_j(l | z) + .5 / k_j}{C_j(z) + a_j + .5}

    with the counts C and a strength :math:`a_j` that the counts themselves show (`_strength`): confusions of
    clusters are believed as far as the instances that speak for them outweigh the coin.

    The first five steps are taken as if bases erred independently. If they do, their surprises under q are
    uncorrelated, even if the consensus has merged clusters so that they look dependent there. lambda comes
    from the smaller of both correlations. If it is not zero, five steps with it are taken from the start.

    Symbols: q -> `_posterior`; C -> `expected_counts`; O -> coin; rho -> `shared_log_likelihood` in the
    consensus, `shared_surprise` under q.
    Cost: up to eleven passes over rows x bases x clusters. `sums` makes a pass: it adds up what a function of
    rows returns over all rows, wherever they are.
    """
    offsets, m = numbering.offsets, n_opinions(len(numbering.bases), groups)
    seen = np.add.reduceat(together, offsets[:-1], axis=0)
    prior = sizes / sizes.sum()

    def steps(found: Evidence) -> Evidence:
        for _ in range(_STEPS):
            counts, shares = sums(expected_counts, found)
            found = _maximised(found, counts, shares, coin, _strength(counts, coin, offsets))
        return found

    with one_thread("blas"):  # the same answer whatever the threads
        coin = one_coin(sizes, together, seen, offsets, sums, groups)
        start = Evidence(prior, together, seen, coin, prior, 0.0, numbering, groups)
        found = steps(start)
        rho = min(_correlation(*sums(pass_, found)) for pass_ in (shared_log_likelihood, shared_surprise))
        if rho > 0.0:
            found = steps(start._replace(dependence=_common_share(rho, m)))
    # One base is what ten copies of it are: nothing shows that it errs on its own.
    unchecked = m == 1 and np.count_nonzero(sizes) > 1
    return found._replace(dependence=1.0) if unchecked else found


def _maximised(
    found: Evidence, counts: np.ndarray, shares: np.ndarray, coin: np.ndarray, strength: np.ndarray
) -> Evidence:
    """P and pi of `learn` from counts."""
    offsets, k = found.offsets, np.diff(found.offsets)
    worth = np.repeat(strength, k)[:, None]
    chance = counts + worth * coin + _SMOOTHING / np.repeat(k, k)[:, None]
    chance /= base_sums(counts, offsets) + worth + _SMOOTHING
    return found._replace(chance=chance, shares=shares / shares.sum())


def leave_out_each(evidence: Evidence, rows: JointRows, cells: np.ndarray) -> list[Evidence | None]:
    """P and pi without each part of the rows: one more step of `learn`, from counts that lack the part.

    How skilled and how dependent bases are is taken from all rows, which a part of them hardly changes. So
    all parts together cost about two passes over the rows instead of eleven passes each.

    Parameters
    ----------
    evidence : Evidence
        Of all rows.
    rows : JointRows
        The rows, as they were given to `gather_evidence`.
    cells : ndarray of int of shape (n_rows, n_parts)
        How many instances of each distinct row are in each part.

    Returns
    -------
    evidence : list of Evidence or None
        None where no member of a cluster is left.
    """
    rows = _recoded(rows, evidence.numbering)
    has = rows.labels >= 0
    sizes = np.stack(
        [np.bincount(rows.labels[has], own[has], rows.n_clusters) for own in (rows.counts, *cells.T)]
    )
    with one_thread("blas"):

        def sums(function: Any, *given: Any) -> Any:
            return function(rows, *given)

        coin = one_coin(sizes[0], evidence.together, evidence.seen, evidence.offsets, sums, evidence.groups)
        all_counts, all_shares = expected_counts(rows, evidence)
        strength = _strength(all_counts, coin, evidence.offsets)
        found: list[Evidence | None] = []
        for own, size in zip(cells.T, sizes[1:], strict=True):
            if ((sizes[0] > 0) & (sizes[0] == size)).any():
                found.append(None)
                continue
            here = own > 0
            part = rows._replace(
                codes=np.ascontiguousarray(rows.codes[here]), labels=rows.labels[here], counts=own[here]
            )
            counts, shares = expected_counts(part, evidence)
            # Differences of sums may fall below zero by rounding.
            left = np.maximum(all_counts - counts, 0.0), np.maximum(all_shares - shares, 0.0)
            found.append(_maximised(evidence, *left, coin, strength))
    return found


def _strength(counts: np.ndarray, coin: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """How many members of a cluster the one-coin table is worth, per base.

    By the moments of a Dirichlet-multinomial: if labels were drawn from the coin, chi-square over its degrees
    of freedom would be one; what exceeds one shows how far the true table is from the coin.
    """
    members = np.add.reduceat(counts, offsets[:-1], axis=0)
    expected = np.repeat(members, np.diff(offsets), axis=0) * coin
    terms = ((counts - expected) ** 2 / np.maximum(expected, 1e-9)).sum(axis=1)
    freedom = (np.diff(offsets) - 1) * (members > 0.5).sum(axis=1)
    chi = np.add.reduceat(terms, offsets[:-1]) / np.maximum(freedom, 1)
    typical = (members**2).sum(axis=1) / np.maximum(members.sum(axis=1), 1.0)
    return np.clip((typical - 1.0) / np.maximum(chi - 1.0, 1e-6) - 1.0, *_STRENGTH)


def _correlation(together: Any, apart: Any) -> float:
    """rho from the two sums of `shared_log_likelihood` or `shared_surprise`."""
    return min(max(float(together / apart), 0.0), 1.0) if apart > 0 else 0.0


def _common_share(rho: float, m: int) -> float:
    """lambda of m bases."""
    return m * rho / (1.0 + (m - 1) * rho)


def shared_log_likelihood(rows: JointRows, evidence: Evidence) -> tuple[float, float]:
    r"""Two sums whose ratio is rho, the correlation of the bases' log-likelihoods inside consensus clusters.

    With :math:`x_{ij}` centred per base and cluster, :math:`(\sum_j x_{ij})^2 - \sum_j x_{ij}^2` holds the
    products of all pairs of bases: the first sum. The second, of :math:`(m_i - 1) \sum_j x_{ij}^2`, is what
    it would be if each base repeated the others.
    """
    if np.count_nonzero(evidence.prior) == 1:
        return 0.0, 0.0  # nothing else to belong to
    log_chance = _log_chance(evidence, leave_out=True)
    sums = np.add.reduceat(evidence.together * log_chance, evidence.offsets[:-1], axis=0)
    mean = sums / np.maximum(evidence.seen, 1.0)
    centred = log_chance - np.repeat(mean, np.diff(evidence.offsets), axis=0)
    together, apart = np.zeros(len(rows.codes)), np.zeros(len(rows.codes))

    def one(block: slice) -> None:
        codes = rows.codes[block]
        x = _of_own_cluster(centred, evidence, codes, rows.labels[block])
        squares = np.einsum("pj,pj->p", x, x)
        together[block] = x.sum(axis=1) ** 2 - squares
        apart[block] = (n_heard(codes, evidence.groups) - 1) * squares

    run_blocks(one, len(rows.codes))
    weights = rows.counts * (rows.labels >= 0)
    return float(weights @ together), float(weights @ apart)


def shared_surprise(rows: JointRows, evidence: Evidence) -> tuple[float, float]:
    """The same two sums with log P for x, inside the clusters of q instead of those of the consensus."""
    x = np.log(evidence.chance)
    x -= base_sums(evidence.chance * x, evidence.offsets)
    squared, groups = x**2, evidence.groups
    weights = (rows.counts * (rows.labels >= 0)).astype(float)

    def one(block: slice) -> np.ndarray:
        codes = rows.codes[block]
        q = _posterior(evidence, codes) * weights[block][:, None]
        own = alone(codes, evidence.offsets, groups)
        once, squares = gathered(*own, x), gathered(*own, squared)
        for mean in group_means(codes, evidence.offsets, x, groups):
            once += mean
            squares += mean**2
        others = n_heard(codes, groups) - 1
        return np.array([np.vdot(q, once**2 - squares), others @ np.einsum("pz,pz->p", q, squares)])

    together, apart = total(map_blocks(one, len(rows.codes)))
    return float(together), float(apart)


def expected_counts(rows: JointRows, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """C, how many instances of every cluster have every base label if q is right, and the clusters' sizes."""
    weights = (rows.counts * (rows.labels >= 0)).astype(float)

    def one(block: slice) -> np.ndarray:
        q = _posterior(evidence, rows.codes[block])
        out = np.zeros((len(evidence.together) + 1, len(evidence.prior)))
        hot.scatter_sum(rows.codes[block], evidence.offsets, weights[block], q, out)
        out[-1] = weights[block] @ q
        return out

    counts = total(map_blocks(one, len(rows.codes)))
    return counts[:-1], counts[-1]


def _posterior(evidence: Evidence, codes: np.ndarray) -> np.ndarray:
    """q_i(z) of every row and cluster."""
    scores = summed(codes, evidence.offsets, np.log(evidence.chance), evidence.groups)
    others = np.maximum(n_heard(codes, evidence.groups) - 1, 0)
    scores /= (1.0 + others * evidence.dependence)[:, None]
    scores += np.log(np.maximum(evidence.shares, _SMALLEST))
    scores -= scores.max(axis=1, keepdims=True)
    odds = np.exp(scores)
    return odds / odds.sum(axis=1, keepdims=True)


def _log_chance(evidence: Evidence, *, leave_out: bool) -> np.ndarray:
    """log P(l | c) counted in the consensus; with `leave_out`, for a member of both that is not counted."""
    less = 1.0 if leave_out else 0.0
    k = np.diff(evidence.offsets)
    seen = np.repeat(np.maximum(evidence.seen - less, 0.0), k, axis=0)
    chance = np.maximum(evidence.together - less, 0.0) + _SMOOTHING / np.repeat(k, k)[:, None]
    return np.log(chance / (seen + _SMOOTHING))


def _overlap(evidence: Evidence, *, leave_out: bool, own: bool) -> np.ndarray:
    """Geometric mean of P(c | l) and P(l | c): one if a base cluster and a consensus cluster are the same.

    The first is smoothed by one member that behaves like the average, so that a small base cluster says
    little. With `leave_out`, for a member of the base cluster that is not counted, which is also in the
    consensus cluster (`own`) or not.
    """
    less = 1.0 if leave_out else 0.0
    inside = less if own else 0.0
    both = np.maximum(evidence.together - inside, 0.0)
    members = np.maximum(evidence.together.sum(axis=1, keepdims=True) - less, 0.0)
    seen = np.repeat(np.maximum(evidence.seen - inside, 1.0), np.diff(evidence.offsets), axis=0)
    return np.sqrt((both + evidence.prior) / (members + 1.0) * both / seen)


def _of_own_cluster(
    table: np.ndarray, evidence: Evidence, codes: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Entries of a stacked table at (base cluster, consensus cluster) of every row, zero where missing; a
    column for every opinion."""
    seen = codes >= 0
    entries = np.where(seen, table[codes + evidence.offsets[:-1], labels[:, None]], 0.0)
    return of_columns(entries, seen, evidence.groups)


def judge_rows(evidence: Evidence, codes: np.ndarray, labels: np.ndarray, *, leave_out: bool) -> Judgement:
    """`judge` of rows of base labels, in the evidence's numbers of bases and clusters.

    With `leave_out`, of rows that are among those counted.
    """
    weigh = weighing(evidence, leave_out=leave_out)
    codes, labels = np.ascontiguousarray(codes), np.asarray(labels)
    sure, margin = np.empty(len(codes)), np.empty(len(codes))
    alternative = np.empty(len(codes), dtype=np.int64)

    def one(block: slice) -> None:
        z, place = np.maximum(labels[block], 0), np.arange(block.stop - block.start)
        chance, shared = weigh(codes[block], labels[block])
        own = chance[place, z]
        chance[~shared] = 0.0
        chance[place, z] = 0.0
        best = chance.argmax(axis=1)
        second = chance[place, best]
        both = own + second
        told = (both > 0.0) & (codes[block] >= 0).any(axis=1)
        sure[block] = own
        margin[block] = np.divide(own, both, out=np.full_like(both, 0.5), where=told)
        alternative[block] = np.where(second > 0.0, best, -1)

    run_blocks(one, len(codes))
    for values, nothing in ((sure, 0.0), (margin, 0.0), (alternative, -1)):
        values[labels < 0] = nothing
    return Judgement(sure, margin, alternative)


Weighing = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def weighing(evidence: Evidence, *, leave_out: bool) -> Weighing:
    """What weighs rows of base labels and their clusters: a function of both, for a block of rows.

    It returns the chance of every cluster, and whether some member of the cluster has one of the labels. The
    own cluster has the chance of `confidence`; the others share what is left in proportion to the same
    formula. A row without labels has the shares of the clusters.
    """
    own_overlap, overlap = (_overlap(evidence, leave_out=leave_out, own=own) for own in (True, False))
    purity = evidence.together / np.maximum(evidence.together.sum(axis=1, keepdims=True), 1.0)

    def weigh(rows: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place, z, n_seen = np.arange(len(rows)), np.maximum(labels, 0), n_heard(rows, evidence.groups)
        average = summed(rows, evidence.offsets, overlap, evidence.groups)
        shared = average > 0.0
        average[place, z] = _of_own_cluster(own_overlap, evidence, rows, z).sum(axis=1)
        average /= np.maximum(n_seen, 1)[:, None]
        chance = (1.0 - evidence.dependence) * _posterior(evidence, rows) + evidence.dependence * average
        limit = _of_own_cluster(purity, evidence, rows, z).sum(axis=1)
        own = np.where(n_seen == 1, np.minimum(chance[place, z], limit), chance[place, z])
        chance = complete_chances(chance, labels, own, evidence.prior)
        chance[n_seen == 0] = evidence.prior
        return chance, shared

    return weigh


def complete_chances(
    weights: np.ndarray, labels: np.ndarray, confidence: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Rows of sum one: the own cluster has the confidence, others share the rest in proportion to weights.

    Where there are no other weights, in proportion to the shares of the clusters. A row without a cluster
    (-1) divides all of it.
    """
    out, place, some = weights.copy(), np.arange(len(weights)), labels >= 0
    z = np.maximum(labels, 0)
    out[place[some], z[some]] = 0.0
    lost = ~out.any(axis=1)
    out[lost] = shares
    out[place[some], z[some]] = 0.0
    left = np.where(some, 1.0 - confidence, 1.0)
    total = out.sum(axis=1)
    out *= np.divide(left, total, out=np.zeros_like(total), where=total > 0.0)[:, None]
    out[place[some], z[some]] = confidence[some]
    return out
