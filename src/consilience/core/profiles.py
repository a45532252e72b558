"""Profiles: the shares in which the members of a cluster carry the labels of every base clustering."""

import numpy as np

from consilience.core.canonical import Rows
from consilience.core.tables import base_sums, cluster_sizes, gather

# Starts are compared on at most this many rows; the best one goes on with all of them.
_SAMPLE_ROWS = 5_000
# How much of a first profile is the row that it starts from; the rest is the average row.
_OWN = 0.9


def label_shares(rows: Rows) -> np.ndarray:
    """f_i(l): in which shares each base gives its labels."""
    sizes = cluster_sizes(rows.codes, rows.offsets, rows.weights)
    return sizes / base_sums(sizes, rows.offsets)


def smooth_profiles(sums: np.ndarray, offsets: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Shares of the labels of every base (rows) in each cluster (columns), from sums and a prior of each."""
    sums = sums + prior[:, None]
    return sums / base_sums(sums, offsets)


def sample_rows(rows: Rows, shares: np.ndarray) -> tuple[np.ndarray, Rows]:
    """Rows in an order that follows from values, thinned out evenly where there are many, and their numbers.

    Drawing from such an order finds the same rows when instances are shuffled or labels renamed.
    """
    score = gather(rows.codes, rows.offsets, rows.weigh_clusters(np.log(shares))[:, None])[:, 0]
    found = np.argsort(np.round(score, 9), kind="stable")
    w = rows.weights[found]
    if len(w) > _SAMPLE_ROWS:
        reach = np.cumsum(w)
        places = (np.arange(_SAMPLE_ROWS) + 0.5) / _SAMPLE_ROWS * reach[-1]
        found = found[np.searchsorted(reach, places, side="right")]
        w = np.full(_SAMPLE_ROWS, reach[-1] / _SAMPLE_ROWS)
    return found, rows._replace(codes=rows.codes[found], counts=w)


def first_profiles(rows: Rows, shares: np.ndarray, n_clusters: int, rng: np.random.RandomState) -> np.ndarray:
    """Profiles around rows that differ: each row is drawn by how far it is from those drawn before.

    Far is the share of labels that differ, among the bases that saw both rows and one more, which differs.
    """
    codes, offsets, w = rows.codes, rows.offsets, rows.weights
    distance = np.ones(len(codes))
    profiles = np.empty((len(shares), n_clusters))
    for c in range(n_clusters):
        reach = np.cumsum(w * distance**2)
        if reach[-1] <= 0.0:
            reach = np.cumsum(w)
        seed = codes[np.searchsorted(reach, rng.random_sample() * reach[-1], side="right")]
        together = (codes >= 0) & (seed >= 0)
        agree = rows.weigh_bases((codes == seed) & together)
        distance = np.minimum(distance, 1.0 - agree / (rows.weigh_bases(together) + 1.0))
        distance[(codes == seed).all(axis=1)] = 0.0
        profiles[:, c] = shares
        seen = seed >= 0
        profiles[np.repeat(seen, np.diff(offsets)), c] *= 1.0 - _OWN
        profiles[(offsets[:-1] + seed)[seen], c] += _OWN
    return profiles
