"""Are the most likely clusters better than the labels of `fuse`? By the dependence of the sources.

    python -m benchmarks.quality_settling               about eight minutes on one core
    python -m benchmarks.quality_settling --tables 2    a quick look

NMI (square root) with the classes of what `fuse` merged before and after its labels settle, at the true
number of clusters: planted tables whose sources have about the wanted number of clusters, planted tables of
sources of other numbers, few sources (the families of the record), gaps, pools. Labels settle where the
dependence is at most .1; the last column is what would happen without that rule.
"""

import argparse
import warnings

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from benchmarks.quality_n_clusters import POOLS
from benchmarks.record import few
from benchmarks.record.design import few_tables
from consilience import Partitions, datasets
from consilience.inference import settling
from consilience.inference.posterior import gather_evidence
from consilience.results.labels import fuse_partitions

FIRST_COLUMN = 50
FEW = ("A1", "A2", "B1", "B2", "C1", "D1")


def planted(rng, *, mixed, missing):
    """Classes and base labels of 2 to 12 sources that err independently, 5 to 50 % of the time."""
    k, n, m = int(rng.integers(3, 13)), int(rng.integers(300, 1500)), int(rng.integers(3, 13))
    y = np.unique(rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0))), return_inverse=True)[1]
    k = int(y.max()) + 1
    columns = []
    for _ in range(m):
        label = np.where(rng.random(n) < rng.uniform(0.05, 0.5), rng.integers(0, k, n), y)
        kind = rng.random() if mixed else 1.0
        if kind < 0.35:
            label = 2 * label + rng.integers(0, 2, n)
        elif kind < 0.7 and k > 3:
            label = label // 2
        columns.append(label)
    base = np.column_stack(columns)
    hidden = rng.random(base.shape) < missing
    hidden[hidden.all(axis=1), 0] = False
    return y, np.where(hidden, -1, base)


def tables(n_tables, seed):
    """Family, classes and base labels."""
    for number in range(n_tables):
        for mixed in (False, True):
            for missing in (0.0, 0.4, 0.7):
                rng = np.random.default_rng((seed, number, mixed, int(100 * missing)))
                name = f"planted, {'other numbers' if mixed else 'one number'}, {missing:.0%} missing"
                yield name, *planted(rng, mixed=mixed, missing=missing)
        for group in FEW:
            for table in few_tables(group, number % 3, 800):
                if table.factor != 1.0:
                    continue
                rng = np.random.default_rng((seed, number, table.bases, *map(ord, group + table.data)))
                try:
                    y, base = few.drawn(table, rng)
                except (FileNotFoundError, ValueError):
                    continue
                yield f"few sources, {group}", y, base
    for name in POOLS:
        try:
            pool = datasets.load(f"pool_{name}")
        except FileNotFoundError:
            continue
        for number in range(max(n_tables // 3, 1)):
            rng = np.random.default_rng((seed, number, 7))
            rows = np.sort(rng.permutation(len(pool.y))[:1500])
            base = np.asarray(pool.labels)[rows][:, rng.choice(np.arange(FIRST_COLUMN, 100), 10, False)]
            hidden = rng.random(base.shape) < (0.0 if number % 2 else 0.4)
            hidden[hidden.all(axis=1), 0] = False
            y = np.unique(pool.y[rows], return_inverse=True)[1]
            yield (
                "pools",
                y,
                np.where(hidden, -1, np.unique(base, return_inverse=True)[1].reshape(base.shape)),
            )


def measure(base, y):
    """Dependence, NMI as merged, NMI where labels would settle whatever the dependence, clusters lost."""
    table = Partitions.of(base)
    rng = np.random.RandomState(0)
    merged = fuse_partitions(table, len(np.unique(y)), "auto", "error", rng, 0, None)
    dependence = gather_evidence(table, merged.labels).dependence
    found, settling.INDEPENDENT = settling.INDEPENDENT, 1.0
    try:
        settled = settling.settle(table, merged.labels)
    finally:
        settling.INDEPENDENT = found
    before, after = (
        normalized_mutual_info_score(y, z, average_method="geometric")
        for z in (merged.labels, settled.labels)
    )
    return dependence, before, after, settled.n_moved / len(y)


def main():
    """Print a line per family and one per range of the dependence."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", type=int, default=6, help="tables of every kind")
    parser.add_argument("--seed", type=int, default=3001)
    asked = parser.parse_args()
    found = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family, y, base in tables(asked.tables, asked.seed):
            try:
                found.append((family, *measure(base, y)))
            except ValueError as error:
                print(f"{family}: {error}")
    families = np.array([one[0] for one in found])
    dependence, before, after, moved = np.array([one[1:] for one in found]).T
    gain, low = after - before, dependence <= settling.INDEPENDENT
    print("| | tables | settle | NMI | settled | gain | worst | better / worse | moved | gain if always |")
    print("|---|---|---|---|---|---|---|---|---|---|")

    def line(name, own):
        now = own & low
        if not own.any():
            return
        told = f"| {name} | {own.sum()} | {now.mean() / own.mean():.0%} | "
        if now.any():
            told += (
                f"{before[now].mean():.3f} | {after[now].mean():.3f} | {gain[now].mean():+.4f} | "
                f"{gain[now].min():+.3f} | {(gain[now] > 0.002).sum()} / {(gain[now] < -0.002).sum()} | "
                f"{moved[now].mean():.1%} | "
            )
        else:
            told += "- | - | - | - | - | - | "
        print(f"{told}{gain[own].mean():+.4f} |")

    for name in dict.fromkeys(families.tolist()):
        line(name, families == name)
    line("**all**", np.ones(len(found), dtype=bool))
    edges = [(-0.01, 0.0), (0.0, 0.1), (0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 1.0)]
    print("\n| dependence | tables | mean gain | worst |\n|---|---|---|---|")
    for first, last in edges:
        own = (dependence > first) & (dependence <= last)
        if own.any():
            told = f"| {max(first, 0):g} to {last:g} | {own.sum()} | {gain[own].mean():+.4f}"
            print(f"{told} | {gain[own].min():+.3f} |")


if __name__ == "__main__":
    main()
