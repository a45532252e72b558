"""k-means of label rows: a centre has a block for every base clustering, and a distance in each."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from consilience.core import hot
from consilience.core.blocks import run_blocks
from consilience.core.canonical import Rows
from consilience.core.discretize import fill_empty_clusters
from consilience.core.profiles import first_profiles, label_shares, sample_rows
from consilience.core.sweeps import Progress, Sweeps
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
    rows: Rows,
    n_clusters: int,
    score: Callable[[np.ndarray], Score],
    *,
    reach: np.ndarray | None = None,
    prior: float = 0.0,
    n_init: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
    progress: Progress | None = None,
) -> BlockMeans:
    r"""Alternate labels and centres; several starts, the best is kept.

    .. math:: \max_{z, v} \sum_p w_p b_p \sum_{i \, \text{observed}} \frac{\text{pull}_{z_p}(l_{pi})}{b_p}
        - \text{toll}_{z_p}(l_{pi})

    A centre's block of base i is the mean of :math:`e_{l_{pi}} / b_p` over the members that base i saw, with
    weights :math:`w_p b_p`. `score` must make that mean its own best answer; then no step raises the
    objective, which is minus the above. `prior` adds as many members to every block, with the base's shares.
    Starts are made and compared on at most 5000 rows, and the best goes on with all.

    Symbols: l -> rows.codes (-1 = missing); w -> rows.weights; b -> reach (1 where None); v -> centres;
    z -> labels.
    Cost: rows x bases x n_clusters a step.
    """
    w, shares = rows.weights, label_shares(rows)
    b = np.ones(len(w)) if reach is None else reach
    drawn, sample = sample_rows(rows, shares)
    seeds = sample._replace(counts=sample.counts * b[drawn])
    usual = float((w * b).sum() / w.sum())

    def start() -> BlockMeans:
        first = first_profiles(seeds, shares, n_clusters, rng) / usual
        return _alternate(sample, b[drawn], shares / usual, score, first, prior, max_iter, tol, None)

    best = min((start() for _ in range(n_init)), key=lambda found: found.objective[-1])
    return _alternate(rows, b, shares / usual, score, best.centres, prior, max_iter, tol, progress)


def _alternate(
    rows: Rows,
    b: np.ndarray,
    average: np.ndarray,
    score: Callable[[np.ndarray], Score],
    centres: np.ndarray,
    prior: float,
    max_iter: int,
    tol: float,
    progress: Progress | None,
) -> BlockMeans:
    n_clusters = centres.shape[1]
    w, bias = rows.weights, np.zeros(n_clusters)
    labels = np.full(len(w), -1)
    sweeps = Sweeps(max_iter, progress)
    for _ in sweeps:
        scores = score(centres)
        new, fit = _assign(rows, b, scores, bias)
        before, now = sweeps.add(scores.offset - float((w * b) @ fit))
        sweeps.converged = np.array_equal(new, labels) or before - now <= tol * abs(now)
        labels = new
        if sweeps.converged:
            break
        labels = fill_empty_clusters(labels, fit, n_clusters)
        centres = _centres(rows, b, average, labels, n_clusters, prior)
        mass = np.bincount(labels, weights=w, minlength=n_clusters)
        bias = _TIE * np.log(np.maximum(mass, np.finfo(float).tiny) / w.sum())
    return BlockMeans(fill_empty_clusters(labels, fit, n_clusters), centres, *sweeps.outcome)


def _assign(rows: Rows, b: np.ndarray, scores: Score, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best cluster of every row and its score."""
    codes, offsets = rows.codes, rows.offsets
    labels, fit = np.empty(len(codes), dtype=np.int64), np.empty(len(codes))

    def one(part: slice) -> None:
        pull = np.empty((part.stop - part.start, len(bias)))
        toll = np.empty_like(pull)
        hot.gather_sum(codes[part], offsets, scores.pull, pull)
        hot.gather_sum(codes[part], offsets, scores.toll, toll)
        pull /= b[part, None]
        pull -= toll
        labels[part] = (pull + bias).argmax(axis=1)
        fit[part] = np.take_along_axis(pull, labels[part, None], axis=1)[:, 0]

    run_blocks(one, len(codes))
    return labels, fit


def _centres(
    rows: Rows, b: np.ndarray, average: np.ndarray, labels: np.ndarray, n_clusters: int, prior: float
) -> np.ndarray:
    """Means of the members that each base saw; the average row where it saw none."""
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    sums = cross(codes, offsets, labels, w, n_clusters)
    mass = np.add.reduceat(cross(codes, offsets, labels, w * b, n_clusters), offsets[:-1], axis=0) + prior
    mass = np.repeat(mass, np.diff(offsets), axis=0)
    means = (sums + prior * average[:, None]) / np.where(mass > 0.0, mass, 1.0)
    return np.where(mass > 0.0, means, average[:, None])
