"""Sources that are near copies of each other, beside others: which count as one opinion."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import complete, fcluster
from scipy.spatial.distance import squareform

from consilience.evidence.partitions import Partitions
from consilience.inference.counts import pairwise_information
from consilience.inference.sharing import following

# Runs of one program follow from each other by so much and more, people, views and columns by less.
_COPIES = 0.6
# They are copies *beside* others only if all others follow from them by that much less. Where all follow from
# all, as in a pool of runs, there is nothing to set apart.
_APART = 0.1
_UNRELATED = 0.05  # a source that follows by no more than this is no opinion beside them
# Instances that two must have seen both, in all and for each cluster: few are alike by luck.
_FEWEST, _PER_CLUSTER = 100, 5
_MOST = 60  # sources up to which copies are looked for: more are a pool of runs


def near_copies(partitions: Partitions) -> tuple[np.ndarray, ...]:
    """Positions of sources that are near copies of each other and clearly apart from the others.

    Any two of a set follow from each other (:func:`consilience.inference.sharing.following`) by at least .6,
    and from those outside by .1 less than from each other. Empty where groups are given, and where all are
    much alike or one set has nobody beside it: labels do not tell good sources from copies there.
    """
    m = partitions.n_partitions
    if partitions.groups is not None or partitions.views is not None or not 3 <= m <= _MOST:
        return ()
    near, n = following(partitions)
    k = partitions.n_clusters_per_partition
    near[n < np.maximum(_FEWEST, _PER_CLUSTER * np.maximum.outer(k, k))] = np.nan
    apart = 1.0 - np.nan_to_num(near)
    np.fill_diagonal(apart, 0.0)
    # Up to rounding, so that the order of the sources decides nothing.
    found = fcluster(complete(squareform(apart.round(9), checks=False)), 1.0 - _COPIES, "distance")
    sets = (np.flatnonzero(found == number) for number in np.unique(found))
    return tuple(own for own in sets if _stands_apart(near, own))


def _stands_apart(near: np.ndarray, own: np.ndarray) -> bool:
    others = np.delete(np.arange(len(near)), own)
    if len(own) < 2 or not len(others):
        return False
    inside = near[np.ix_(own, own)][np.triu_indices(len(own), 1)].min()
    outside = np.nan_to_num(near[np.ix_(own, others)]).max()
    return bool(_UNRELATED <= outside < inside - _APART)


def one_of_each(partitions: Partitions) -> Partitions:
    """The sources with one in place of every group: the member that is most like the other members.

    By its adjusted mutual information with them, times the instances that it saw.
    """
    if not partitions.members_of_groups:
        return partitions
    near, left = np.nan_to_num(pairwise_information(partitions)), set(range(partitions.n_partitions))
    order = np.argsort(partitions.canonical.bases)
    for own in partitions.members_of_groups:
        likeness = (near[np.ix_(own, own)].sum(axis=1) * partitions.n_seen[own]).round(9)
        left -= set(own[np.lexsort((order[own], -likeness))[1:]].tolist())
    return partitions.choose(sorted(left))
