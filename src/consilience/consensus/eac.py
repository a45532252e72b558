"""Evidence accumulation clustering (EAC): a hierarchy of instances by how often they share a cluster."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from consilience.consensus.base import LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.certainty import certain_coassociation
from consilience.core.linkage import average_linkage, cut, single_linkage
from consilience.core.parameters import parameters
from consilience.registry import About


class EACResult(NamedTuple):
    """What `eac` found."""

    labels: np.ndarray  # per row
    merges: np.ndarray  # two clusters, their similarity, weight of both; most similar first


def eac(rows: Rows, n_clusters: int, *, linkage: str) -> EACResult:
    r"""Linkage of the co-association, cut at `n_clusters`.

    .. math:: S_{pr} = \frac{1}{m} \sum_i [c_i(p) = c_i(r)]

    Row p stands for ``counts[p]`` instances, which are merged from the start. With missing labels S is the
    share among the bases that saw both rows; see `certain_coassociation` for pairs that few saw.

    Symbols: c_i(p) -> rows.codes[p, i] (-1 = missing).
    Cost: rows^2 x bases time, rows^2 memory.
    """
    link = average_linkage if linkage == "average" else single_linkage
    merges = link(certain_coassociation(rows), rows.counts)
    return EACResult(cut(merges, n_clusters), merges)


@parameters
class EAC(LabelMethod):
    """Evidence accumulation: instances that often share a cluster are linked first.

    Every base clustering votes for each pair of instances that it puts together; a linkage of the votes gives
    the consensus. Use it as the plain method that others are compared with, or for a hierarchy that is easy
    to explain. :class:`LWEA` is the same with votes that count by how certain a base cluster is, and is
    better where base clusterings have many different numbers of clusters. Average linkage on labels of which
    most are missing is weak; prefer :class:`HBGF` or :class:`DAL` then, and above 15 000 distinct label rows.

    Parameters
    ----------
    linkage : {"average", "single"}, default="average"
        How alike two clusters are: by the mean of all pairs, or by the most similar pair, as first published.
        Single linkage follows chains, so one wrong vote may join two clusters.
    random_state : int, RandomState instance or None, default=None
        Seed of the search for the number of clusters, where it is "auto"; the rest is deterministic.

    Attributes
    ----------
    row_merges_ : ndarray of shape (n_distinct - 1, 4)
        The hierarchy of distinct label rows: two clusters, their similarity and the number of instances of
        both, most similar first; numbered like SciPy's linkage.

    Notes
    -----
    Where this differs from the papers: it runs on distinct label rows with counts, which is exact; ties are
    broken by value instead of by row number; missing labels are allowed. A base clustering then votes on a
    pair only if it saw both, and one more base clustering that agrees as much as the average votes on all of
    them, without which pairs seen together once would be as alike as pairs on which all agree.

    Tables with more than 15000 distinct label rows are refused: their votes would need more than 1.8 GB.

    References
    ----------
    A. L. N. Fred, A. K. Jain: Combining Multiple Clusterings Using Evidence Accumulation. IEEE TPAMI, 2005.

    Examples
    --------
    >>> from consilience import EAC
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = EAC(n_clusters=2).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="the plain hierarchy",
        avoid="most labels missing",
        cost="rows^2",
        paper="Fred, Jain: Combining Multiple Clusterings Using Evidence Accumulation. IEEE TPAMI, 2005.",
    )
    any_weights = True

    max_rows = 15_000  # the similarity of all pairs is kept dense: 1.8 GB

    linkage: Literal["average", "single"] = "average"

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> EACResult:
        return eac(problem.rows, problem.n_clusters, **self._settings)

    def _learn(self, result: EACResult, problem: Problem) -> None:
        self.row_merges_ = result.merges
