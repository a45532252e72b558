"""Locally weighted evidence accumulation (LWEA): average linkage of what certain base clusters say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.certainty import certain_coassociation, certainty
from consilience.core.linkage import average_linkage, cut
from consilience.core.parameters import Positive, parameters
from consilience.registry import About


class LWEAResult(NamedTuple):
    """What `lwea` found."""

    labels: np.ndarray  # per row
    merges: np.ndarray  # two clusters, their mean similarity, weight of both; most similar first
    certainty: np.ndarray  # q, per cluster of all bases


def lwea(rows: Rows, n_clusters: int, *, theta: float) -> LWEAResult:
    r"""Average linkage on the locally weighted co-association, cut at `n_clusters`.

    .. math:: S_{pr} = \frac{1}{m} \sum_i q_{c_i(p)} [c_i(p) = c_i(r)], \qquad q_c = \exp(-h_c / \theta)

    :math:`h_c` is the mean entropy, in bits, of the labels of the members of cluster c in the bases. Row p
    stands for ``counts[p]`` instances, which are merged from the start. With missing labels, entropies are
    over the members that a base saw, and S is the share among the bases that saw both rows; see
    `certain_coassociation` for pairs that few saw.

    Symbols: c_i(p) -> rows.codes[p, i] (-1 = missing); q -> certainty (ECI of the paper); S is its LWCA.
    Cost: rows^2 x bases time, rows^2 memory, and the table of all pairs of base clusters.
    """
    q = certainty(rows, theta)
    merges = average_linkage(certain_coassociation(rows, q), rows.counts)
    return LWEAResult(cut(merges, n_clusters), merges, q)


@parameters
class LWEA(LabelMethod):
    """Locally weighted evidence accumulation: a hierarchy of instances by how often they are put together.

    Two instances are alike if they share clusters, and a shared cluster counts more if the other base
    clusterings keep it together. Average linkage then merges what is most alike. Use it for base clusterings
    with different and larger numbers of clusters than you want, complete or with up to 70 % of the labels
    missing. It has no random start and gives the whole hierarchy. Prefer :class:`LWGP`, which weighs
    clusters in the same way at a cost linear in the rows, when there are more than some thousand distinct
    label rows.

    Parameters
    ----------
    theta : float, default=0.4
        How fast a base cluster loses weight as others split it: one bit of entropy on average divides its
        weight by ``exp(1 / theta)``. Large values weigh all clusters alike (evidence accumulation).
    random_state : int, RandomState instance or None, default=None
        Seed of the search for the number of clusters, where it is "auto"; the rest is deterministic.

    Attributes
    ----------
    certainty_ : list of ndarray, one per base clustering with labels
        Certainty of its clusters, in the order of ``partitions_.categories``; 1 where no other base splits
        the cluster.
    row_merges_ : ndarray of shape (n_distinct - 1, 4)
        The hierarchy of distinct label rows: two clusters, their mean similarity and the number of instances
        of both, most similar first; numbered like SciPy's linkage.

    Notes
    -----
    Where this differs from the paper: it runs on distinct label rows with counts, so equal rows are never
    separated (the paper's cut may separate instances with equal but uncertain labels); ties are broken by
    value instead of by row number; missing labels are allowed. A base clustering then takes part in the
    similarity of a pair only if it saw both, and one more base that agrees as much as the average takes part
    in all of them. With nothing missing, similarity and certainty are the paper's.

    Tables with more than 15000 distinct label rows are refused: their similarity would need more than
    1.8 GB.

    References
    ----------
    D. Huang, C.-D. Wang, J.-H. Lai: Locally Weighted Ensemble Clustering. IEEE Transactions on Cybernetics,
    2018.

    Examples
    --------
    >>> from consilience import LWEA
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = LWEA(n_clusters=2).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.certainty_[0].round(2).tolist()
    [0.47, 1.0]
    >>> model.predict([[None, None, "v"]]).tolist()
    [1]
    """

    about = About(
        use="a hierarchy; many and different numbers of clusters",
        avoid="more than 15 000 distinct label rows",
        cost="rows^2",
        paper="Huang, Wang, Lai: Locally Weighted Ensemble Clustering. IEEE Trans. Cybernetics, 2018.",
        start=True,
    )
    any_weights = True

    max_rows = 15_000  # the similarity of all pairs is kept dense: 1.8 GB
    max_base_clusters = MAX_BASE_CLUSTERS

    theta: Positive = 0.4

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> LWEAResult:
        return lwea(problem.rows, problem.n_clusters, **self._settings)

    def _learn(self, result: LWEAResult, problem: Problem) -> None:
        self.certainty_ = problem.per_cluster(result.certainty)
        self.row_merges_ = result.merges
