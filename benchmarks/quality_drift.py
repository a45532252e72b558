"""How often drift is found where there is some, and where there is none: planted worlds, pools of k-means.

Each world is drawn anew: 3 to 10 sources, 2 to 8 clusters, 0 to 60 % missing, 500 or 1000 merged instances.
Sources of a pool repeat each other, where alarms are known to be too frequent. For docs/guide/years.md.

Run: python -m benchmarks.quality_drift [--worlds 60] [--still 600] [--pools 40]
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from consilience import fuse

SIZES = (50, 200, 1000)


def world(rng: np.random.Generator):
    """Merged instances, a function that draws new ones, and the number of clusters."""
    k, m = int(rng.integers(2, 9)), int(rng.integers(3, 11))
    errors, missing = rng.uniform(0.05, 0.3, m), rng.uniform(0.0, 0.6)
    shares = rng.dirichlet(np.full(k, 5.0))
    maps = [rng.permutation(k) // (1 + int(rng.random() < 0.2)) for _ in range(m)]

    def draw(n: int, change: str = "nothing"):
        own = shares[::-1] if change == "other shares" else shares
        truth = rng.choice(k, n, p=own)
        e = errors + 0.2 * (np.arange(m) == 0) * (change == "errs more")
        said = np.where(rng.random((n, m)) < e, rng.integers(0, k, (n, m)), truth[:, None])
        table = np.stack([maps[j][said[:, j]] for j in range(m)], axis=1)
        if change == "swapped":
            first = table[:, 0].copy()
            table[:, 0] = np.where(first == 0, 1, np.where(first == 1, 0, first))
        gone = rng.random((n, m)) < missing + 0.2 * (change == "more missing")
        gone[gone.all(axis=1), -1] = False
        return np.where(gone, -1, table)

    return draw, k


def planted(n_worlds: int) -> None:
    changes = ("nothing", "more missing", "swapped", "errs more", "other shares")
    alarms = {(c, n): [] for c in changes for n in SIZES}
    for number in range(n_worlds):
        rng = np.random.default_rng((37, number))
        draw, k = world(rng)
        fusion = fuse(draw(int(rng.choice([500, 1000]))), k, method="DAL", random_state=0)
        for change in changes:
            for n in SIZES:
                found = fusion.drift(draw(n, change))
                alarms[change, n].append(
                    (found.p_meaning < 0.01, found.p_shares < 0.01, found.p < 0.01, found.source == "0")
                )
    print(f"{n_worlds} planted worlds: alarms at .01 of meaning / shares / any; the right source of alarms")
    for (change, n), rows in alarms.items():
        meaning, shares, some, named = np.mean(rows, axis=0)
        right = f"{named / meaning:.2f}" if change in ("swapped", "errs more") and meaning else "-"
        print(f"{change:13s} {n:5d}  {meaning:.3f} {shares:.3f} {some:.3f}  {right}")


def still(n_worlds: int) -> None:
    """False alarms alone, of which there are too few to count in few worlds."""
    p = {n: [] for n in SIZES}
    for number in range(n_worlds):
        rng = np.random.default_rng((371, number))
        draw, k = world(rng)
        fusion = fuse(draw(int(rng.choice([500, 1000]))), k, method="DAL", random_state=0)
        for n in SIZES:
            found = fusion.drift(draw(n))
            p[n].append((found.p_meaning, found.p_shares))
    print(f"{n_worlds} further worlds where nothing changed: meaning, shares at .01; at .05")
    for n, found in p.items():
        rates = [(np.array(found) < level).mean(axis=0) for level in (0.01, 0.05)]
        print(f"{n:5d}  " + "; ".join(f"{meaning:.3f}, {shares:.3f}" for meaning, shares in rates))


def pools(n_pools: int) -> None:
    x, _ = load_digits(return_X_y=True)
    alarms, dependence = [], []
    for number in range(n_pools):
        rng = np.random.default_rng((370, number))
        order = rng.permutation(len(x))
        fitted, new = order[:1400], order[1400:1600]
        table = np.empty((len(x), 8), dtype=int)
        for j in range(8):
            columns = rng.choice(x.shape[1], 32, replace=False)
            model = KMeans(int(rng.integers(8, 16)), n_init=1, random_state=int(rng.integers(2**31)))
            table[:, j] = model.fit(x[order][:, columns]).predict(x[:, columns])
        table[rng.random(table.shape) < 0.3] = -1
        table[(table < 0).all(axis=1), 0] = 0
        fusion = fuse(table[fitted], 10, method="DAL", random_state=0)
        found = fusion.drift(table[new])
        alarms.append((found.p_meaning < 0.01, found.p_shares < 0.01))
        dependence.append(found.dependence)
    meaning, shares = np.mean(alarms, axis=0)
    print(f"{n_pools} pools of k-means (digits), 200 held-out rows, dependence {np.mean(dependence):.2f}: ")
    print(f"alarms at .01 though nothing changed: meaning {meaning:.3f}, shares {shares:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=60)
    parser.add_argument("--still", type=int, default=600)
    parser.add_argument("--pools", type=int, default=40)
    given = parser.parse_args()
    planted(given.worlds)
    still(given.still)
    pools(given.pools)
