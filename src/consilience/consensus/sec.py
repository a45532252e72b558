"""Spectral ensemble clustering (SEC): the normalised cut of the votes as a weighted k-means."""

from __future__ import annotations

import numpy as np

from consilience.consensus.base import LabelMethod, Problem
from consilience.core.blockmeans import BlockMeans, Score, block_k_means
from consilience.core.canonical import Rows
from consilience.core.parameters import Count, NonNegative, Verbose, parameters
from consilience.core.sweeps import Progress
from consilience.core.tables import base_sums, cluster_sizes, gather
from consilience.registry import About


def sec(
    rows: Rows,
    n_clusters: int,
    *,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    progress: Progress | None = None,
) -> BlockMeans:
    r"""Normalised cut of the votes S = B B^T, B the stacked indicator, by k-means.

    .. math:: \min_z \sum_p w_p b_p \left\| \frac{B_p}{b_p} - \mu_{z_p} \right\|^2, \qquad
        b_p = \sum_i |c_i(p)|

    :math:`b_p`, the sizes of the row's clusters summed, is the degree of p in S. With missing labels it is
    over the observed ones, and so are distances and means, base by base. Row p stands for ``counts[p]``
    instances.

    Symbols: B -> rows.codes (-1 = missing); w -> rows.weights; b -> reach.
    Cost: rows x bases x n_clusters a step, and n_init fits of at most 5000 rows.
    """
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    reach = gather(codes, offsets, rows.weigh_clusters(cluster_sizes(codes, offsets, w))[:, None])[:, 0]
    # In units of its mean: the objective only changes by a factor, and tolerances keep their meaning.
    reach = reach / (w @ reach / w.sum())

    def score(v: np.ndarray) -> Score:
        return Score(2.0 * rows.weigh_clusters(v), rows.weigh_clusters(base_sums(v * v, offsets)))

    found = block_k_means(
        rows,
        n_clusters,
        score,
        reach=reach,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        rng=rng,
        progress=progress,
    )
    # What does not depend on clusters: the weighted squared lengths of the points.
    lengths = float(w @ (rows.weigh_bases(codes >= 0) / reach))
    return found._replace(objective=found.objective + lengths)


@parameters
class SEC(LabelMethod):
    """Spectral ensemble clustering: the cut through the graph of votes, found by a k-means of the labels.

    It seeks the same cut as the spectral form of :class:`CSPA`, by a weighted k-means instead of
    eigenvectors. Here both cost about the same, and the eigenvectors find the better cut: SEC is there for
    comparison. It is weak on tables with half of the labels or more missing; prefer :class:`HBGF`.

    Parameters
    ----------
    n_init : int, default=30
        Random starts; the best is kept.
    max_iter : int, default=100
        Limit of steps.
    tol : float, default=1e-6
        Stop when the objective falls by less than this share of itself.
    verbose : int, default=0
        Say the objective of every step, on stderr or by logging.

    Attributes
    ----------
    objective_ : ndarray of shape (n_iter,)
        Weighted squared distances of all instances to their centres, summed, after every step; it never
        rises. Degrees are in units of their mean.
    n_iter_ : int
        Number of steps, those of the starts on a sample not counted.

    Notes
    -----
    It runs on distinct label rows with counts, which is exact; with more than 5000 of them starts are
    compared on 5000. Missing labels take part neither in degrees nor in distances nor in means; the paper's
    own rule for them is not known to us.

    References
    ----------
    H. Liu, T. Liu, J. Wu, D. Tao, Y. Fu: Spectral Ensemble Clustering. KDD, 2015.

    Examples
    --------
    >>> from consilience import SEC
    >>> labels = [["a", "x", "u"], ["a", "x", "u"], ["a", "y", "u"], ["b", "z", "v"], ["b", None, "v"]]
    >>> model = SEC(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    """

    about = About(
        use="to compare with papers",
        avoid="60 % missing and many clusters",
        cost="rows x bases x clusters a step",
        paper="Liu, Liu, Wu, Tao, Fu: Spectral Ensemble Clustering. KDD, 2015.",
        linear=True,
    )
    any_weights = True

    n_init: Count = 30
    max_iter: Count = 100
    tol: NonNegative = 1e-6
    verbose: Verbose = 0

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> BlockMeans:
        return sec(problem.rows, problem.n_clusters, rng=rng, **self._settings)
