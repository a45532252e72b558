"""Cluster-based similarity partitioning (CSPA): cut the graph of how often instances share a cluster."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from consilience.consensus.base import LabelMethod, Problem
from consilience.consensus.partitioners import Balance, Cut, metis
from consilience.core.canonical import Rows
from consilience.core.coassociation import agreement
from consilience.core.cuts import cut_embedding
from consilience.core.discretize import fill_empty_clusters
from consilience.core.parameters import Count, parameters
from consilience.core.spectral import left_singular_vectors
from consilience.core.tables import cluster_sizes, gather, indicator
from consilience.registry import About

# METIS gets the votes of all pairs: some gigabytes at the limit.
_MAX_ROWS = 10_000


def cspa(
    rows: Rows,
    n_clusters: int,
    *,
    balance: str,
    n_init: int,
    rng: np.random.RandomState,
) -> Cut:
    r"""Normalised cut, or balanced cut, of the graph of votes.

    .. math:: S_{pr} = \sum_i [c_i(p) = c_i(r)]

    A normalised cut divides S by the votes that either row has in all, so a row with few labels is not
    punished for those that it lacks. Row p stands for ``counts[p]`` instances. S = B B^T, B the stacked
    indicator, so its eigenvectors come from the base clusters' side and S is never built; METIS needs it.

    Symbols: c_i(p) -> rows.codes[p, i] (-1 = missing).
    Cost: an eigenproblem of the size of all base clusters, rows x bases x n_clusters, and k-means; for equal
    sizes the votes of all pairs of rows that share a cluster.
    """
    w = rows.weights
    if balance == "equal":
        votes = agreement(sp.diags_array(w) @ indicator(rows.codes, rows.offsets))
        return Cut(fill_empty_clusters(metis(votes, w, n_clusters, rng), w, n_clusters), "metis")
    h = votes_embedding(rows, n_clusters)
    return Cut(cut_embedding(h, w, n_clusters, n_init=n_init, rng=rng)[0], "spectral")


def votes_embedding(rows: Rows, width: int) -> np.ndarray:
    """Rows in the leading eigenvectors of the normalised votes."""
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    degree = gather(codes, offsets, rows.weigh_clusters(cluster_sizes(codes, offsets, w))[:, None])[:, 0]
    scale = np.sqrt(rows.weigh_clusters(np.ones(int(offsets[-1]))))
    return left_singular_vectors(codes, offsets, w / degree, min(width, len(w)), scale)


@parameters
class CSPA(LabelMethod):
    """Cluster-based similarity partitioning: a cut through the graph of votes for pairs of instances.

    Every base clustering votes for each pair of instances that it puts together, and the graph of the votes
    is cut into `n_clusters` parts. Use it as the baseline that it is in most papers, at any number of
    instances. Prefer :class:`HBGF` otherwise: at the same cost it divides votes by the size of the base
    cluster that gives them, so that large clusters do not outvote small ones.

    Parameters
    ----------
    balance : {"free", "equal"}, default="free"
        "free" lets clusters have the sizes that the labels suggest, by a spectral cut. "equal" wants clusters
        of nearly equal sizes, by a graph partitioner of the extra ``consilience[graphs]``.
    n_init : int, default=10
        Starts of k-means on the eigenvectors; the best is kept.

    Attributes
    ----------
    partitioner_ : str
        What made the cut: "spectral" or "metis".

    Notes
    -----
    Where this differs from the paper: the default is a spectral cut; METIS, which forces nearly equal sizes,
    has to be asked for. It runs on distinct label rows with counts: exact up to the starts of k-means for the
    spectral cut, while METIS never separates equal rows. Missing labels are votes that are not given.
    Dividing the votes of a pair by how many base clusterings saw both needs all pairs, and was worse.

    Equal sizes are refused above 10000 distinct label rows: METIS needs the votes of all pairs.

    References
    ----------
    A. Strehl, J. Ghosh: Cluster Ensembles - A Knowledge Reuse Framework for Combining Multiple Partitions.
    JMLR, 2002.

    Examples
    --------
    >>> from consilience import CSPA
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = CSPA(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    >>> model.partitioner_
    'spectral'
    """

    about = About(
        use="baseline of most papers",
        avoid="equal sizes forced above 10 000 rows",
        cost="as HBGF",
        paper="Strehl, Ghosh: Cluster Ensembles - A Knowledge Reuse Framework for Combining Multiple "
        "Partitions. JMLR, 2002.",
        linear=True,
    )
    any_weights = True

    balance: Balance = "free"
    n_init: Count = 10

    @property
    def _reads_weights(self) -> bool:
        return self.balance == "free"  # METIS wants whole numbers

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> Cut:
        if self.balance == "equal":
            self._check_rows(len(problem.rows.counts), _MAX_ROWS)
        return cspa(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: Cut, problem: Problem) -> None:
        self.partitioner_ = result.partitioner
