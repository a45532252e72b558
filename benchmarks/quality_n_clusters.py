"""Evidence for `choose_n_clusters`: the tables of the diagnostics page.

    python -m benchmarks.quality_n_clusters           all tables (about fifteen minutes on one core)
    python -m benchmarks.quality_n_clusters --runs 3  a quick look

The pools need the benchmark files (see `consilience.datasets.load`); the other tables are made from seeds.
The rule was fixed before; only the threshold of "reliable" was chosen on such sets, all of them together.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import make_blobs

from benchmarks.quality_pce import show
from consilience import Partitions, datasets
from consilience.diagnostics import choose_n_clusters
from consilience.generate import base_partitions

KS = (1, 2, 3, 4, 6, 9)
# Ten columns of a pool make one ensemble.
POOLS = (
    "ECCMS_Ecoli", "LWEA_Caltech20", "LWEA_LS", "LWEA_ODR", "LWEA_SPF", "LWEA_Semeion", "LWEA_USPS",
    "LWEA_VS", "Zhou_Lung", "Zhou_GLIOMA", "RCE_Yale", "PCE_pixraw10P_miss10", "PCE_pixraw10P_miss30",
    "PCE_pixraw10P_miss50", "PCE_pixraw10P_miss70",
)  # fmt: skip
SMALL_POOLS = (
    "ECCMS_Ecoli", "LWEA_SPF", "LWEA_Semeion", "LWEA_VS", "Zhou_Lung", "Zhou_GLIOMA", "RCE_Yale",
    "PCE_pixraw10P_miss10", "PCE_pixraw10P_miss30",
)  # fmt: skip


def planted(n, m, k, *, noise, missing, seed):
    """Base labels that merge or split planted clusters, with noise and gaps; for k = 1, noise alone."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    columns = []
    for _ in range(m):
        if k == 1:
            columns.append(rng.integers(0, rng.integers(2, 7), n))
            continue
        labels = truth.copy()
        change = rng.choice(["merge", "split", "keep"])
        if change == "merge" and k > 2:
            first, second = rng.choice(k, 2, replace=False)
            labels[labels == first] = second
        elif change == "split":
            torn = rng.integers(k)
            labels[(labels == torn) & (rng.random(n) < 0.5)] = k
        names = np.unique(labels)
        wrong = rng.random(n) < noise
        labels[wrong] = rng.choice(names, int(wrong.sum()))
        columns.append(labels)
    base = np.column_stack(columns)
    hidden = rng.random((n, m)) < missing
    hidden[np.arange(n), rng.integers(0, m, n)] &= ~hidden.all(axis=1)
    return np.where(hidden, -1, base)


def planted_sets(n_runs, m, noise, missing, first_seed):
    for k in KS:
        for run in range(n_runs):
            yield f"K = {k}", k, planted(500, m, k, noise=noise, missing=missing, seed=(first_seed, k, run))


def blob_sets(n_runs, mixed, first_seed):
    for k in KS:
        for run in range(n_runs):
            seed = first_seed + 100 * k + run
            X, _ = make_blobs(500, n_features=10, centers=k, cluster_std=2.0, random_state=seed)
            sizes = (2, 28) if mixed else (2, k + 2)
            yield f"K = {k}", k, base_partitions(X, sizes, 20, random_state=seed)


def pool_sets(n_runs, names=POOLS) -> Iterator[tuple[str, int, np.ndarray]]:
    for name in names:
        pool = datasets.load(f"pool_{name}")
        k = len(np.unique(pool.y))
        for run in range(min(n_runs, pool.labels.shape[1] // 10)):
            yield name.split("_", 1)[1], k, pool.labels[:, 10 * run : 10 * run + 10]


def table(sets, **options):
    """A row per group: how often the number was right, near, and how often the flag was right."""
    found: dict[str, list[tuple[int, int, bool]]] = {}
    for group, k, base in sets:
        known = Partitions.of(base, unobserved="keep").take_seen()
        count = choose_n_clusters(known, random_state=0, **options)
        found.setdefault(group, []).append((k, count.n_clusters, count.reliable))
    rows = [(group, np.array(answers)) for group, answers in found.items()]
    rows.append(("all", np.concatenate([answers for _, answers in rows])))
    for group, answers in rows:
        truth, answer, flagged = answers.T
        right, near, sure = answer == truth, abs(answer - truth) <= 1, flagged.astype(bool)
        yield {
            "group": group,
            "ensembles": len(answers),
            "exact": f"{right.mean():.0%}",
            "within one": f"{near.mean():.0%}",
            "median found": f"{np.median(answer):g}",
            "called reliable": f"{sure.mean():.0%}",
            "of these exact": f"{right[sure].mean():.0%}" if sure.any() else "-",
            "of these within one": f"{near[sure].mean():.0%}" if sure.any() else "-",
        }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=40)
    n_runs = parser.parse_args().runs
    few = max(n_runs // 8, 2)
    for m, noise, missing in ((20, 0.3, 0.0), (20, 0.3, 0.4), (10, 0.5, 0.0), (10, 0.5, 0.4)):
        title = f"Planted clusters, merged and split, {m} bases, {noise:.0%} noise, {missing:.0%} missing"
        show(title, table(planted_sets(n_runs, m, noise, missing, 1000)))
    for mixed in (False, True):
        sizes = "2 to 28" if mixed else "2 to K + 2"
        show(f"Gaussian blobs, k-means of {sizes} clusters", table(blob_sets(few, mixed, 5000)))
        show(
            f"Gaussian blobs, k-means of {sizes} clusters, unimodal reference",
            table(blob_sets(few, mixed, 5000), reference="unimodal"),
        )
    show("Pools", table(pool_sets(few)))
    small = table(pool_sets(3, SMALL_POOLS), reference="unimodal")
    show("Small pools, unimodal reference", small)


if __name__ == "__main__":
    main()
