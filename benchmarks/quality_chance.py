"""Evidence for the test against chance: the tables of the pages on diagnostics and the number of clusters.

    python -m benchmarks.quality_chance                 all tables (about ten minutes on one core)
    python -m benchmarks.quality_chance --only noise    unrelated labels: how often they seem related
    python -m benchmarks.quality_chance --only power    how much sources must share to be seen
    python -m benchmarks.quality_chance --only real     tables of few real sources, and pools
    python -m benchmarks.quality_chance --only few      the number of clusters of few instances
    python -m benchmarks.quality_chance --only cost

The real tables need the benchmark files (see `consilience.datasets.load`). The table of few instances needs
`choose_n_clusters` alone, so that it can be made with an earlier version for comparison.
"""

import argparse
import time
import warnings

import numpy as np

from benchmarks.quality_pce import show
from consilience import Partitions, datasets
from consilience.diagnostics import choose_n_clusters

LEVEL = 0.01
NOISE = {
    "300 x 4, 4 clusters": (300, (4,) * 4, 0.0),
    "1000 x 6, 2 to 8 clusters": (1000, (2, 3, 4, 5, 6, 8), 0.0),
    "the same, 60 % missing": (1000, (2, 3, 4, 5, 6, 8), 0.6),
    "200 x 4, 3 to 60 clusters": (200, (3, 3, 60, 20), 0.0),
    "100 x 4, 2 to 30 clusters, 40 % missing": (100, (2, 9, 4, 30), 0.4),
    "30 x 3, 2 to 9 clusters": (30, (2, 5, 9), 0.0),
    "12 x 6, 3 clusters": (12, (3,) * 6, 0.0),
    "15 x 85, 4 clusters": (15, (4,) * 85, 0.0),
    "the same, 40 % missing": (15, (4,) * 85, 0.4),
}
POWER = {
    "300 x 4, 4 clusters": (300, (4,) * 4, 0.0),
    "300 x 4, 2 to 16 clusters": (300, (2, 4, 8, 16), 0.0),
    "300 x 4, 4 clusters, 40 % missing": (300, (4,) * 4, 0.4),
    "300 x 4, three of 4 and one of 100 clusters": (300, (4, 4, 4, 100), 0.0),
    "60 x 6, 4 clusters": (60, (4,) * 6, 0.0),
    "15 x 85, 4 clusters": (15, (4,) * 85, 0.0),
}


def table_of(n, ks, missing, share, rng):
    """Labels of which a share follows from one clustering into four, merged or split; the rest is noise."""
    truth = rng.integers(0, 4, n)
    columns = []
    for k in ks:
        own = rng.permutation(4)[truth] % k if k <= 4 else truth * (k // 4) + rng.integers(0, k // 4, n)
        columns.append(np.where(rng.random(n) < share, own, rng.integers(0, k, n)))
    base = np.column_stack(columns)
    base[rng.random(base.shape) < missing] = -1
    return Partitions.of(base, unobserved="keep")


def noise(n_draws):
    """Tests of unrelated labels."""
    from consilience.diagnostics import beyond_chance
    from consilience.inference.chance import compare_with_chance

    for number, (name, (n, ks, missing)) in enumerate(NOISE.items()):
        rng = np.random.default_rng((7, number))
        tests = [compare_with_chance(table_of(n, ks, missing, 0.0, rng)) for _ in range(n_draws)]
        whole = [
            beyond_chance(table_of(n, ks, missing, 0.0, rng)).beyond for _ in range(max(n_draws // 5, 1))
        ]
        each = np.concatenate([test.p_values for test in tests])
        yield {
            "unrelated labels": name,
            "tables": len(tests),
            "p < .01": f"{np.mean([test.p_value < LEVEL for test in tests]):.1%}",
            "p < .1": f"{np.mean([test.p_value < 0.1 for test in tests]):.1%}",
            "of single sources, p < .01": f"{np.mean(each[~np.isnan(each)] < LEVEL):.1%}",
            "called beyond chance": f"{np.mean([found is True for found in whole]):.1%} of {len(whole)}",
        }


def power(n_draws):
    from consilience.inference.chance import compare_with_chance

    for number, (name, (n, ks, missing)) in enumerate(POWER.items()):
        row = {"sources": name}
        for share in (0.2, 0.3, 0.4, 0.5):
            rng = np.random.default_rng((8, number))
            found = [compare_with_chance(table_of(n, ks, missing, share, rng)).beyond for _ in range(n_draws)]
            row[f"{share:.0%} informed"] = f"{np.mean([one is True for one in found]):.0%}"
        yield row


def real(n_draws):
    """Tables with known classes: how often sources that have something to do with them are called chance."""
    from benchmarks.record.design import FEW, few_tables
    from benchmarks.record.few import drawn
    from consilience import metrics
    from consilience.diagnostics import beyond_chance

    for group in FEW:
        found, near = [], []
        for draw in range(n_draws):
            for table in few_tables(group, draw):
                if table.factor == 1.0:
                    y, base = drawn(table, np.random.default_rng((9, draw, len(found))))
                    found.append(beyond_chance(Partitions.of(base)))
                    near.append(metrics.ensemble_agreement(y, Partitions.of(base)))
        yield _alarms(f"few sources, family {group}", found, near)
    found, near = [], []
    for name in ("Semeion", "SPF", "VS", "LS", "IS", "MF", "ODR", "PD", "Caltech20", "USPS"):
        pool = datasets.load(f"pool_LWEA_{name}")
        for draw in range(n_draws):
            for m in (3, 10):
                rng = np.random.default_rng((10, draw, m))
                rows = rng.choice(len(pool.y), min(len(pool.y), 1000), replace=False)
                columns = rng.choice(pool.labels.shape[1], m, replace=False)
                table = Partitions.of(pool.labels[np.ix_(rows, columns)])
                found.append(beyond_chance(table))
                near.append(metrics.ensemble_agreement(np.asarray(pool.y)[rows], table))
    yield _alarms("pools, 3 and 10 columns", found, near)


def _alarms(name, found, near):
    wrong = np.array([test.by_chance for test in found])
    return {
        "tables": name,
        "number": len(found),
        "called chance": int(wrong.sum()),
        "their mean NMI with the classes": f"{np.mean(np.array(near)[wrong]):.2f}" if wrong.any() else "-",
        "that of the others": f"{np.mean(np.array(near)[~wrong]):.2f}",
        "some source called unrelated": sum(bool(test.unrelated) for test in found),
    }


def sorted_by(n, m, groups, right, rng):
    """People who sort n terms into about so many groups: each merges or splits one, and errs."""
    truth = rng.permutation(np.arange(n) % groups)
    columns = []
    for _ in range(m):
        labels, what = truth.copy(), rng.integers(3)
        if what == 0 and groups > 2:
            first, second = rng.choice(groups, 2, replace=False)
            labels[labels == first] = second
        elif what == 1:
            labels[(labels == rng.integers(groups)) & (rng.random(n) < 0.5)] = groups
        wrong = rng.random(n) >= right
        labels[wrong] = rng.choice(np.unique(labels), int(wrong.sum()))
        columns.append(labels)
    return np.column_stack(columns)


def few(n_draws):
    """10 to 60 instances, 5 to 85 sources: noise found as clusters, and clusters found as one."""
    for n in (10, 15, 30, 60):
        for m in (5, 20, 85):
            counts = {right: [] for right in (0.0, 0.6, 0.7, 0.8)}
            for right, answers in counts.items():
                for draw in range(n_draws):
                    groups = 3 + draw % min(6, n // 3 - 1)
                    rng = np.random.default_rng((11, n, m, draw, int(10 * right)))
                    base = sorted_by(n, m, groups, right, rng)
                    answers.append(choose_n_clusters(Partitions.of(base), random_state=draw).n_clusters)
            false, *missed = (np.array(answers) for answers in counts.values())
            yield {
                "instances": n,
                "sources": m,
                "noise found as clusters": f"{np.mean(false > 1):.0%}",
                "one cluster where 60 / 70 / 80 % are right": " / ".join(
                    f"{np.mean(answers == 1):.0%}" for answers in missed
                ),
            }


def cost():
    from consilience.inference.chance import compare_with_chance

    for n, m, k in ((1_000, 6, 5), (1_000, 40, 20), (100_000, 8, 6), (1_000_000, 8, 6)):
        rng = np.random.default_rng(0)
        table = Partitions.of(rng.integers(0, k, (n, m)))
        table.canonical  # noqa: B018 -- which merging needs, too
        start = time.process_time()
        compare_with_chance(table)
        yield {"table": f"{n} x {m}, {k} clusters", "processor seconds": f"{time.process_time() - start:.3f}"}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=500, help="tables of noise of a kind; fewer of others")
    parser.add_argument("--only", choices=("noise", "power", "real", "few", "cost"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    n_draws = arguments.draws

    def wanted(name):
        return arguments.only in (None, name)

    if wanted("noise"):
        show("Unrelated labels", noise(n_draws))
    if wanted("power"):
        show("Sources of which a share is informed: found beyond chance", power(max(n_draws // 5, 1)))
    if wanted("real"):
        show("Tables with known classes", real(max(n_draws // 250, 1)))
    if wanted("few"):
        show("The number of clusters of few instances", few(max(n_draws // 25, 1)))
    if wanted("cost"):
        show("Cost", cost())


if __name__ == "__main__":
    main()
