"""What a cluster is in the words of the base clusterings: which of their labels its members have."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from consilience._support.shown import Table, as_html
from consilience._support.values import counted
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import JointRows, Tabulated, joint_rows, label_counts


@dataclass(frozen=True, repr=False, eq=False)
class TypicalLabels(Tabulated):
    """What `typical_labels` returns: columns of one length, so that any frame can be made of `as_dict()`."""

    cluster: np.ndarray  # in increasing order; within one, the most typical label first
    base: tuple[str, ...]  # name of the base clustering
    label: tuple[Any, ...]  # its own name for the base cluster
    count: np.ndarray  # members of the cluster that have the label
    share: np.ndarray  # of the members that the base clustering saw
    lift: np.ndarray  # that share over the label's share in all clusters together

    def __repr__(self) -> str:
        clusters = counted(len(np.unique(self.cluster)), "cluster")
        return f"TypicalLabels({counted(len(self.label), 'label')} of {clusters})"

    def _repr_html_(self) -> str:
        columns = zip(self.cluster, self.base, self.label, self.count, self.share, self.lift, strict=True)
        rows = [
            (str(cluster), base, str(label), str(count), f"{share:.0%}", f"{lift:.1f}")
            for cluster, base, label, count, share, lift in columns
        ]
        return as_html(
            [repr(self)], Table(("cluster", "base clustering", "label", "count", "share", "lift"), rows)
        )

    def most(self, cluster: int, n: int = 2) -> list[str]:
        """The most typical label of each of `n` base clusterings, in words.

        Only labels that are more frequent in the cluster than elsewhere, so there may be fewer.
        """
        said: dict[str, str] = {}
        for row in range(*np.searchsorted(self.cluster, [cluster, cluster + 1]).tolist()):
            if len(said) == n or self.lift[row] <= 1.0:
                break
            base, share, lift = self.base[row], self.share[row], self.lift[row]
            said.setdefault(base, f"{base}: {in_words(self.label[row], share, lift)}")
        return list(said.values())


def typical_labels(partitions: Any, labels: ArrayLike | JointRows) -> TypicalLabels:
    r"""Each cluster against the labels of every base clustering: count, share and lift.

    The share of a label is taken among the members of the cluster that the base clustering saw, so missing
    labels count for nothing. The lift is that share over the share among all instances in clusters that the
    base clustering saw: 2 means twice as frequent as elsewhere.

    Parameters
    ----------
    partitions : Partitions, or whatever `fuse` takes
        The base clusterings.
    labels : array-like of int of shape (n_instances,)
        A consensus cluster per instance, from 0; -1 where unassigned: those are left out.

    Returns
    -------
    found : TypicalLabels
        A row for every label that a member of a cluster has, by cluster. Within one, labels are in the order
        of share times log of lift, high first: a label that nearly all members have and few others comes
        first; a rare one that only a member or two have does not, however high its lift.

    Notes
    -----
    Share times log of lift is what a label adds to the divergence of Kullback and Leibler between the cluster
    and all instances. Cost: a pass over the distinct rows, and a sort of what they have.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import typical_labels
    >>> bank = ["gold", "gold", "basic", "basic", None]
    >>> shop = ["often", "often", "often", "never", "never"]
    >>> found = typical_labels(Partitions.of({"bank": bank, "shop": shop}), [0, 0, 1, 1, 1])
    >>> for row in zip(found.cluster, found.base, found.label, found.count, found.share, found.lift):
    ...     print("{}  {}  {:5s}  {}  {:.2f}  {:.2f}".format(*row))
    0  bank  gold   2  1.00  2.00
    0  shop  often  2  1.00  1.67
    1  bank  basic  2  1.00  2.00
    1  shop  never  2  0.67  1.67
    1  shop  often  1  0.33  0.56
    >>> found.most(1)
    ['bank: basic 100% (x2.0)', 'shop: never 67% (x1.7)']
    """
    partitions = Partitions.of(partitions, unobserved="keep")
    rows = joint_rows(partitions, labels)
    together = label_counts(rows, partitions.offsets)
    bases = list(pairwise(partitions.offsets.tolist()))
    tables = [shares_and_lifts(together[low:high]) for low, high in bases]
    share, lift = (np.vstack([table[which] for table in tables]) for which in (0, 1))
    base_cluster, cluster = np.nonzero(together)
    found = (share[base_cluster, cluster], lift[base_cluster, cluster])
    # Equally typical ones stay in the order of the base clusterings and their labels.
    order = np.lexsort((base_cluster, -typicality(*found), cluster))
    place, cluster = base_cluster[order], cluster[order]
    base = np.repeat(np.arange(len(bases)), partitions.n_clusters_per_partition)[place]
    names = np.concatenate([np.asarray(labels, dtype=object) for labels in partitions.categories])
    return TypicalLabels(
        cluster=cluster,
        base=tuple(partitions.names[j] for j in base),
        label=tuple(value if isinstance(value, int | float | str) else str(value) for value in names[place]),
        count=together[place, cluster].astype(np.int64),
        share=found[0][order],
        lift=found[1][order],
    )


def shares_and_lifts(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of a count table (labels, clusters): the labels' shares of each cluster, and those over their shares of
    all. NaN for a cluster without entries."""
    with np.errstate(invalid="ignore"):
        share = table / table.sum(axis=0)
        return share, share / (table.sum(axis=1, keepdims=True) / table.sum())


def typicality(share: np.ndarray, lift: np.ndarray) -> np.ndarray:
    """Share times log of lift; rounded, so that equal ones are equal however they were summed."""
    return np.round(share * np.log(lift), 12)


def in_words(label: Any, share: float, lift: float) -> str:
    """A label with its share and lift."""
    return f"{label} {share:.0%} (x{lift:.1f})"
