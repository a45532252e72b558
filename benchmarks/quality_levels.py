"""Levels: how often true and arbitrary splits are supported, and how many errors stopping early leaves.

Planted tables have six classes in three pairs, and sources that see classes or pairs; pools are runs of
k-means on digits, which repeat each other. For docs/guide/years.md.

Run: python -m benchmarks.quality_levels [--tables 30] [--pools 10]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from consilience import fuse
from consilience.results import Levels


def planted(rng: np.random.Generator, n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    y, m = rng.integers(0, 6, n), int(rng.integers(4, 9))
    error, missing = rng.uniform(0.05, 0.25), rng.uniform(0.1, 0.4)
    said = np.where(rng.random((n, m)) < error, rng.integers(0, 6, (n, m)), y[:, None])
    said[:, rng.random(m) < 0.3] //= 2
    return _with_gaps(said, missing, rng), y


def pool(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x, y = load_digits(return_X_y=True)
    table = np.empty((len(x), 10), dtype=int)
    for j in range(10):
        columns = rng.choice(x.shape[1], 32, replace=False)
        model = KMeans(int(rng.integers(8, 16)), n_init=1, random_state=int(rng.integers(2**31)))
        table[:, j] = model.fit_predict(x[:, columns])
    return _with_gaps(table, 0.3, rng), y


def _with_gaps(table: np.ndarray, missing: float, rng: np.random.Generator) -> np.ndarray:
    gone = rng.random(table.shape) < missing
    gone[gone.all(axis=1), 0] = False
    return np.where(gone, -1, table)


def errors(levels: Levels, y: np.ndarray, error: float) -> tuple[float, float]:
    """The share of instances in a cluster that is not the home of their class, and of those in a leaf."""
    stopped, wrong = levels.stop(error), 0
    for k in range(2, levels.n_clusters + 1):
        at, cut = stopped.level == k, levels.cut(k)
        home = np.array([np.bincount(cut[y == c]).argmax() for c in range(y.max() + 1)])
        wrong += int((home[y[at]] != stopped.cluster[at]).sum())
    return wrong / len(y), float((stopped.level == levels.n_clusters).mean())


def main(n_tables: int, n_pools: int) -> None:
    for name, make, k, times in (("planted", planted, 6, n_tables), ("pools", pool, 10, n_pools)):
        true, arbitrary, stopped = [], [], []
        for number in range(times):
            table, y = make(np.random.default_rng((42, number)))
            levels = fuse(table, k, method="DAL", random_state=0).levels(k_max=k + 3)
            true += [split.supported for split in levels.splits if split.k <= k]
            arbitrary += [split.supported for split in levels.splits if split.k > k]
            stopped.append(errors(levels, y, 0.1))
        wrong, reached = np.mean(stopped, axis=0)
        kept = np.mean([one[0] <= 0.12 for one in stopped])
        print(
            f"{name}: splits up to {k} clusters supported {np.mean(true):.2f} of {len(true)}, beyond "
            f"{np.mean(arbitrary):.3f} of {len(arbitrary)}; errors at .1: {wrong:.3f}, kept (+.02) in "
            f"{kept:.0%} of tables, {reached:.0%} of instances in a cluster of the result"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=30)
    parser.add_argument("--pools", type=int, default=10)
    given = parser.parse_args()
    main(given.tables, given.pools)
