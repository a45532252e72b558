"""An update beside a new merge: quality, who moves, seconds; and newcomers placed with and without adapting.

Pools of k-means on digits, and planted tables of 1500 instances, of which the last 5, 20 or 50 % are new.
For docs/guide/years.md.

Run: python -m benchmarks.quality_updates [--draws 8]
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from time import perf_counter

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from consilience import fuse

N = 1500


def pool(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x, y = load_digits(return_X_y=True)
    rows = rng.permutation(len(x))[:N]
    x, y = x[rows], y[rows]
    table = np.empty((N, 10), dtype=int)
    for j in range(10):
        columns = rng.choice(x.shape[1], 32, replace=False)
        model = KMeans(int(rng.integers(8, 16)), n_init=1, random_state=int(rng.integers(2**31)))
        table[:, j] = model.fit_predict(x[:, columns])
    return table, y


def planted(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 6, N)
    return np.where(rng.random((N, 6)) < 0.25, rng.integers(0, 6, (N, 6)), y[:, None]), y


def with_gaps(table: np.ndarray, rng: np.random.Generator) -> pd.DataFrame:
    gone = rng.random(table.shape) < 0.3
    gone[gone.all(axis=1), 0] = False
    return pd.DataFrame(np.where(gone, -1, table)).rename(index=lambda row: f"i{row}", columns=str)


def updates(draws: int) -> None:
    print("kind     new   NMI update  NMI merge  ARI of both  moved by update  by merge")
    for name, make in (("planted", planted), ("pool", pool)):
        for share in (0.05, 0.2, 0.5):
            rows = []
            for draw in range(draws):
                rng = np.random.default_rng((38, draw))
                table, y = make(rng)
                table, k, old = with_gaps(table, rng), len(np.unique(y)), int(N * (1 - share))
                earlier = fuse(table[:old], k, method="DAL", random_state=0)
                warm = earlier.update(table[old:])
                merged = fuse(table, k, method="DAL", like=earlier, random_state=0)
                rows.append(
                    (
                        normalized_mutual_info_score(y, warm.labels, average_method="geometric"),
                        normalized_mutual_info_score(y, merged.labels, average_method="geometric"),
                        adjusted_rand_score(warm.labels, merged.labels),
                        warm.changes.n_moved / old,
                        merged.changes.n_moved / old,
                    )
                )
            print(f"{name:8s} {share:.0%}  " + "  ".join(f"{value:.3f}" for value in np.mean(rows, axis=0)))


def in_a_row(draws: int) -> None:
    """Eight updates from 20 % of the instances to all."""
    found = []
    for draw in range(draws):
        rng = np.random.default_rng((39, draw))
        table, y = pool(rng)
        table = with_gaps(table, rng)
        ends = np.linspace(0.2 * N, N, 9).astype(int)
        warm = fuse(table[: ends[0]], 10, method="DAL", random_state=0)
        for a, b in pairwise(ends.tolist()):
            warm = warm.update(table[a:b])
        merged = fuse(table, 10, method="DAL", random_state=0)
        scores = [
            normalized_mutual_info_score(y, one.labels, average_method="geometric") for one in (warm, merged)
        ]
        found.append((*scores, adjusted_rand_score(warm.labels, merged.labels)))
    print("eight updates of pools: NMI updated, merged, ARI of both", np.mean(found, axis=0).round(3))


def adapting(draws: int) -> None:
    for change in ("nothing changed", "one source broke"):
        found = []
        for draw in range(5 * draws):
            rng = np.random.default_rng((40, draw))
            table, y = planted(rng)
            if change == "one source broke":
                table[1000:, 0] = rng.permutation(table[1000:, 0])
            table = with_gaps(table, rng)
            fusion = fuse(table[:1000], 6, method="DAL", random_state=0)
            new, own = table[1000:1200], y[1000:1200]
            found.append(
                [adjusted_rand_score(own, fusion.place(new, adapt=how).labels) for how in (False, True)]
            )
        print(f"200 newcomers, {change}: ARI placed, adapted", np.mean(found, axis=0).round(3))


def seconds() -> None:
    for n in (1500, 20_000):
        rng = np.random.default_rng(41)
        y = rng.integers(0, 8, n)
        table = with_gaps(np.where(rng.random((n, 10)) < 0.25, rng.integers(0, 8, (n, 10)), y[:, None]), rng)
        old = int(0.9 * n)
        earlier = fuse(table[:old], 8, random_state=0)
        taken = []
        for _ in range(6):  # the first loads and compiles
            earlier = fuse(table[:old], 8, random_state=0)
            times = [perf_counter()]
            earlier.update(table[old:])
            times.append(perf_counter())
            fuse(table, 8, like=earlier, random_state=0)
            times.append(perf_counter())
            fuse(table, 8, method="DAL", random_state=0)
            times.append(perf_counter())
            taken.append(np.diff(times))
        update, merge, dal = np.median(taken[1:], axis=0)
        print(
            f"{n} instances, 10 % of them new: update {update:.3f} s, {update / merge:.2f} of fuse, "
            f"{update / dal:.2f} of DAL alone"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=8)
    given = parser.parse_args()
    updates(given.draws)
    in_a_row(given.draws)
    adapting(given.draws)
    seconds()
