"""k-means of label rows: a centre has a block for every base clustering, and a distance in each."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from consilience.core import hot
from consilience.core.blocks import run_blocks
from consilience.core.discretize import fill_empty_clusters
from consilience.core.profiles import first_profiles, label_shares, sample_rows
from consilience.core.tables import cross

# Ties go to the larger cluster: this much of the logarithm of its share is added to a score.
_TIE = 1e-10


class Score(NamedTuple):
    """How well a row with label l fits a cluster: ``pull[l] / reach - toll[l]``, summed over its labels.

    ``offset`` is added to the objective; it stands for a prior of the centres.
    """

    pull: np.ndarray
    toll: np.ndarray
    offset: float = 0.0


class BlockMeans(NamedTuple):
    """What `block_k_means` found."""

    labels: np.ndarray
    centres: np.ndarray
    objective: np.ndarray  # the lower the better
    n_iter: int
    converged: bool


def block_k_means(
    codes: np.ndarray,
    offsets: np.ndarray,
    w: np.ndarray,
    n_clusters: int,
    score: Callable[[np.ndarray], Score],
    *,
    reach: np.ndarray | None = None,
    prior: float = 0.0,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    progress: Callable[[int, float], None] | None = None,
) -> BlockMeans:
    r"""Alternate labels and centres; several starts, the best is kept.

    .. math:: \max_{z, v} \sum_p w_p b_p \sum_{i \, \text{observed}} \frac{\text{pull}_{z_p}(l_{pi})}{b_p}
        - \text{toll}_{z_p}(l_{pi})

    A centre's block of base i is the mean of :math:`e_{l_{pi}} / b_p` over the members that base i saw, with
    weights :math:`w_p b_p`. `score` must make that mean its own best answer; then no step raises the
    objective, which is minus the above. `prior` adds as many members to every block, with the base's shares.
    Starts are made and compared on at most 5000 rows, and the best goes on with all.

    Symbols: l -> codes (-1 = missing); w -> w; b -> reach (1 where None); v -> centres; z -> labels.
    Cost: rows x bases x n_clusters a step.
    """
    shares = label_shares(codes, offsets, w)
    b = np.ones(len(w)) if reach is None else reach
    drawn, weights = sample_rows(codes, offsets, w, shares)
    usual = float((w * b).sum() / w.sum())

    def start() -> BlockMeans:
        first = first_profiles(codes[drawn], weights * b[drawn], offsets, shares, n_clusters, rng) / usual
        return _alternate(
            codes[drawn], offsets, weights, b[drawn], shares / usual, score, first, prior, max_iter, tol, None
        )

    best = min((start() for _ in range(n_init)), key=lambda found: found.objective[-1])
    return _alternate(
        codes, offsets, w, b, shares / usual, score, best.centres, prior, max_iter, tol, progress
    )


def _alternate(
    codes: np.ndarray,
    offsets: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    average: np.ndarray,
    score: Callable[[np.ndarray], Score],
    centres: np.ndarray,
    prior: float,
    max_iter: int,
    tol: float,
    progress: Callable[[int, float], None] | None,
) -> BlockMeans:
    n_clusters = centres.shape[1]
    bias = np.zeros(n_clusters)
    objective: list[float] = []
    labels = np.full(len(w), -1)
    converged = False
    for iteration in range(max_iter):
        scores = score(centres)
        new, fit = _assign(codes, offsets, b, scores, bias)
        objective.append(scores.offset - float((w * b) @ fit))
        if progress:
            progress(iteration + 1, objective[-1])
        settled = np.array_equal(new, labels)
        labels = new
        if settled or (iteration and objective[-2] - objective[-1] <= tol * abs(objective[-1])):
            converged = True
            break
        labels = fill_empty_clusters(labels, fit, n_clusters)
        centres = _centres(codes, offsets, w, b, average, labels, n_clusters, prior)
        mass = np.bincount(labels, weights=w, minlength=n_clusters)
        bias = _TIE * np.log(np.maximum(mass, np.finfo(float).tiny) / w.sum())
    return BlockMeans(
        fill_empty_clusters(labels, fit, n_clusters), centres, np.array(objective), iteration + 1, converged
    )


def _assign(
    codes: np.ndarray, offsets: np.ndarray, b: np.ndarray, scores: Score, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The best cluster of every row and its score."""
    labels, fit = np.empty(len(codes), dtype=np.int64), np.empty(len(codes))

    def one(rows: slice) -> None:
        pull = np.empty((rows.stop - rows.start, len(bias)))
        toll = np.empty_like(pull)
        hot.gather_sum(codes[rows], offsets, scores.pull, pull)
        hot.gather_sum(codes[rows], offsets, scores.toll, toll)
        pull /= b[rows, None]
        pull -= toll
        labels[rows] = (pull + bias).argmax(axis=1)
        fit[rows] = np.take_along_axis(pull, labels[rows, None], axis=1)[:, 0]

    run_blocks(one, len(codes))
    return labels, fit


def _centres(
    codes: np.ndarray,
    offsets: np.ndarray,
    w: np.ndarray,
    b: np.ndarray,
    average: np.ndarray,
    labels: np.ndarray,
    n_clusters: int,
    prior: float,
) -> np.ndarray:
    """Means of the members that each base saw; the average row where it saw none."""
    sums = cross(codes, offsets, labels, w, n_clusters)
    mass = np.add.reduceat(cross(codes, offsets, labels, w * b, n_clusters), offsets[:-1], axis=0) + prior
    mass = np.repeat(mass, np.diff(offsets), axis=0)
    means = (sums + prior * average[:, None]) / np.where(mass > 0.0, mass, 1.0)
    return np.where(mass > 0.0, means, average[:, None])
