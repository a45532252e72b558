"""k-means on the consensus matrix (KC): instances are alike if they share clusters with the same others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.consensus.base import MAX_BASE_CLUSTERS, LabelMethod, Problem
from consilience.core.canonical import Rows
from consilience.core.cuts import weighted_k_means
from consilience.core.discretize import fill_empty_clusters
from consilience.core.parameters import Count, parameters
from consilience.core.tables import contingency, gather
from consilience.registry import About


class KCResult(NamedTuple):
    """What `kc` found."""

    labels: np.ndarray  # per row
    inertia: float


def kc(rows: Rows, n_clusters: int, *, n_init: int, rng: np.random.RandomState) -> KCResult:
    r"""k-means of the rows of the consensus matrix.

    .. math:: \min_{z} \sum_p w_p \| M_p - \mu_{z_p} \|^2, \qquad
        M_{pr} = \frac{1}{m_p} \sum_i [c_i(p) = c_i(r)]

    :math:`m_p` is the number of labels of row p. Row r stands for ``counts[r]`` equal columns of M.

    Symbols: c_i(p) -> rows.codes[p, i] (-1 = missing); w -> rows.weights.
    Cost: an eigenproblem of the size of all base clusters, and k-means of the rows in as many dimensions.
    """
    w, points = rows.weights, consensus_points(rows)
    lengths = np.linalg.norm(points, axis=1)
    labels, fit = weighted_k_means(points, lengths, w, n_clusters, n_init=n_init, rng=rng)
    return KCResult(fill_empty_clusters(labels, fit, n_clusters), -float(w @ fit))


def consensus_points(rows: Rows) -> np.ndarray:
    """Points with the distances of the rows of M, one dimension per base cluster instead of per instance.

    M = D^-1 B B^T, so distances are those of D^-1 B under the metric B^T W B, of which a root is taken.
    """
    values, vectors = np.linalg.eigh(contingency(rows.codes, rows.offsets, rows.weights))
    kept = values > 1e-12 * values[-1]  # every base but one takes a dimension away
    root = rows.weigh_clusters(vectors[:, kept] * np.sqrt(values[kept]))
    return gather(rows.codes, rows.offsets, root) / rows.weigh_bases(rows.codes >= 0)[:, None]


@parameters
class KC(LabelMethod):
    """k-means on the consensus matrix: instances are alike if they share clusters with the same others.

    Every instance is described by how often it shares a cluster with each of the others, and these
    descriptions are clustered by k-means. Use it as a plain and fast baseline on complete tables of any size.
    Prefer :class:`HBGF` where half of the labels or more are missing, which hurts KC more than most.

    Parameters
    ----------
    n_init : int, default=10
        Starts of k-means; the best is kept.

    Attributes
    ----------
    inertia_ : float
        Squared distances of the rows of the consensus matrix to their centres, summed.

    Notes
    -----
    It runs on distinct label rows with counts, which is exact, and never builds the matrix: its rows are
    linear in the labels, so as many dimensions as there are base clusters hold the same distances. With
    missing labels a row of the matrix is an average over the base clusterings that saw its instance. Dividing
    every entry by how many base clusterings saw both instances needs all pairs, and was not better.

    References
    ----------
    S. Monti, P. Tamayo, J. Mesirov, T. Golub: Consensus Clustering. Machine Learning, 2003 (the matrix).

    Examples
    --------
    >>> from consilience import KC
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = KC(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    """

    about = About(
        use="plain baseline, complete tables",
        avoid="half of the labels missing",
        cost="eigenproblem of all base clusters, k-means",
        paper="Monti, Tamayo, Mesirov, Golub: Consensus Clustering. Machine Learning, 2003 (the matrix).",
        linear=True,
    )
    any_weights = True
    max_base_clusters = MAX_BASE_CLUSTERS

    n_init: Count = 10

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> KCResult:
        return kc(problem.rows, problem.n_clusters, rng=rng, **self._settings)

    def _learn(self, result: KCResult, problem: Problem) -> None:
        self.inertia_ = result.inertia
