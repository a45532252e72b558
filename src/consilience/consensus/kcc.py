"""k-means based consensus clustering (KCC): the clusters from which base labels are best predicted."""

from __future__ import annotations

from typing import Literal

import numpy as np

from consilience.consensus.base import LabelMethod, Problem
from consilience.core.blockmeans import BlockMeans, Score, block_k_means
from consilience.core.canonical import Rows
from consilience.core.parameters import Count, NonNegative, Verbose, parameters
from consilience.core.profiles import label_shares
from consilience.core.sweeps import Progress
from consilience.registry import About

# The entropy utility would shut out for ever a label that no member of a cluster carries: so many labels of
# every base are given to every cluster beforehand, in the shares in which that base gives them.
_PRIOR = 0.1


def kcc(
    rows: Rows,
    n_clusters: int,
    *,
    utility: str,
    normalize: bool,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    progress: Progress | None = None,
) -> BlockMeans:
    r"""The partition of highest utility, as a k-means of the stacked labels.

    .. math:: \max_z \sum_i \omega_i \sum_c \frac{n_{ci}}{n} \, \mu(v_{ci}), \qquad
        \mu(v) = \|v\|^2, \; -H(v) \text{ or } \|v\|

    :math:`v_{ci}` are the shares of base i's labels among the :math:`n_{ci}` members of c that it saw. For
    each of the utilities (category, entropy, cosine) this is a k-means in which row p is at the distance
    :math:`\sum_i \omega_i d(l_{pi}, v_{ci})` from c, over its observed labels:
    :math:`1 + \|v\|^2 - 2 v(l)`, :math:`-\log_2 v(l)` or :math:`1 - v(l) / \|v\|`. Row p stands for
    ``counts[p]`` instances. Weights :math:`\omega` are one, or 1 over the base's own :math:`|\mu|`.

    Symbols: l -> rows.codes (-1 = missing); v -> centres.
    Cost: rows x bases x n_clusters a step, and n_init fits of at most 5000 rows.
    """
    offsets, shares = rows.offsets, label_shares(rows)
    prior = _PRIOR if utility == "entropy" else 0.0
    omega = _base_weights(shares, offsets, utility) if normalize else np.ones(len(offsets) - 1)
    omega = omega if rows.base_weights is None else omega * rows.base_weights
    return block_k_means(
        rows,
        n_clusters,
        lambda v: score(v, offsets, utility, omega, prior * shares),
        prior=prior,
        n_init=n_init,
        max_iter=max_iter,
        tol=tol,
        rng=rng,
        progress=progress,
    )


def score(v: np.ndarray, offsets: np.ndarray, utility: str, omega: np.ndarray, prior: np.ndarray) -> Score:
    """Minus the distance of every label to every centre, in the two parts that `block_k_means` wants."""
    weight = np.repeat(omega, np.diff(offsets))[:, None]
    if utility == "entropy":
        pull = weight * np.log2(v)
        return Score(pull, np.zeros_like(v), -float((prior @ pull).sum()))
    squares = np.repeat(np.add.reduceat(v * v, offsets[:-1], axis=0), np.diff(offsets), axis=0)
    if utility == "category":
        return Score(2.0 * weight * v, weight * (1.0 + squares))
    return Score(weight * v / np.sqrt(squares), np.broadcast_to(weight, v.shape).copy())


def _base_weights(shares: np.ndarray, offsets: np.ndarray, utility: str) -> np.ndarray:
    """One over the utility that a base has for itself as a whole; zero for a base with one cluster."""
    if utility == "entropy":
        own = -np.add.reduceat(shares * np.log2(shares), offsets[:-1])
    else:
        own = np.add.reduceat(shares**2, offsets[:-1])
        own = own if utility == "category" else np.sqrt(own)
    return np.divide(1.0, own, out=np.zeros_like(own), where=(own > 1e-12) & (np.diff(offsets) > 1))


@parameters
class KCC(LabelMethod):
    """k-means based consensus clustering: the clusters from which base labels are best predicted.

    A consensus is good if knowing an instance's cluster tells much about its base labels; which kind of
    telling is the `utility`. All of them lead to a k-means on the labels, so it is among the fastest methods
    here and takes any number of instances. Use it for large tables, complete or not, whose base clusterings
    have about as many clusters as you want. Prefer :class:`HBGF`, :class:`LWGP` or :class:`DAL` when they
    have many and different numbers of clusters.

    Parameters
    ----------
    utility : {"category", "entropy", "cosine"}, default="category"
        How well labels are predicted: by their squared shares, by the entropy left, or by the norm of the
        shares. "entropy" is the default of the authors' program; "category" held better with labels missing.
    normalize : bool, default=False
        Divide the utility of every base clustering by what it has for itself as a whole.
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
        Distances of all instances to their centres, summed, after every step; it never rises.
    n_iter_ : int
        Number of steps, those of the starts on a sample not counted.

    Notes
    -----
    Where this differs from the paper: a start is a set of rows that differ, blended with the average row,
    instead of one-hot rows; a centre's block that no member was seen in is the average of its base instead of
    random; an empty cluster takes the row that fits its own worst; the entropy has a prior, without which a
    label that no member carries is shut out for ever. It runs on distinct label rows with counts, which is
    exact; with more than 5000 of them starts are compared on 5000. Ties go to the larger cluster.

    References
    ----------
    J. Wu, H. Liu, H. Xiong, J. Cao, J. Chen: K-means-based Consensus Clustering: A Unified View. IEEE TKDE,
    2015.

    Examples
    --------
    >>> from consilience import KCC
    >>> labels = [
    ...     ["a", "x", "u"],
    ...     ["a", "x", "u"],
    ...     ["a", "y", "u"],
    ...     ["b", "z", "v"],
    ...     ["b", None, "v"],
    ... ]
    >>> model = KCC(n_clusters=2, random_state=0).fit(labels)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1]
    """

    about = About(
        use="large tables, bases with the wanted number of clusters",
        avoid="numbers of clusters differ much",
        cost="rows x bases x clusters a step",
        paper="Wu et al.: K-means-based Consensus Clustering: A Unified View. IEEE TKDE, 2015.",
        linear=True,
    )
    any_weights = True

    utility: Literal["category", "entropy", "cosine"] = "category"
    normalize: bool = False
    n_init: Count = 30
    max_iter: Count = 100
    tol: NonNegative = 1e-6
    verbose: Verbose = 0

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> BlockMeans:
        return kcc(problem.rows, problem.n_clusters, rng=rng, **self._settings)
