"""Are the lines of a Rosetta table right? By the number of instances that two sources share.

    python -m benchmarks.quality_rosetta               about five minutes on one core
    python -m benchmarks.quality_rosetta --tables 3    a quick look

Planted tables: six sources of 600 to 1800 instances, 4 to 8 classes, 0 to 40 % errors, some sources coarser,
finer or across the classes; the truth is the relation of the labels without errors. Pools: ten columns of
runs of k-means; the truth is the rule on all instances. Of two sources only so many shared instances are
left, by hiding the label of one of them elsewhere. Seeds and draws are not those that the rule was chosen on.
"""

import argparse
import warnings
from collections import Counter, defaultdict

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.quality_pce import show
from consilience import datasets, fuse
from consilience.inference.relations import RELATIONS, Labels, relate
from consilience.results.rosetta import rosetta, translate

SHARED = (0, 5, 10, 20, 50, 100, 200, 500)
SHARED_IN_POOLS = (0, 10, 50, 200, 500)
POOLS = ("LWEA_Caltech20", "LWEA_ODR", "LWEA_LS", "LWEA_SPF", "LWEA_USPS", "LWEA_PD")
FIRST_COLUMN = 50


def planted(rng):
    """Classes, and of every source its labels without errors and with them."""
    k, n = int(rng.integers(4, 9)), int(rng.integers(600, 1800))
    error = float(rng.choice([0.0, 0.1, 0.2, 0.3, 0.4]))
    y, half = rng.integers(0, k, n), rng.integers(0, 2, n)
    clean = np.empty((n, 6), dtype=int)
    said = np.empty_like(clean)
    for j in range(6):
        kind = rng.choice(["same", "coarser", "finer", "across"], p=[0.4, 0.25, 0.2, 0.15])
        parts = np.arange(2 * k)  # of every class two halves
        of_part = {
            "same": parts // 2,
            "coarser": parts // 4,
            "finer": np.where(parts // 2 < k // 2, parts, parts // 2 * 2),
            "across": (parts + 1) // 2 % k,
        }[kind]
        wrong = rng.random(n) < error
        clean[:, j] = of_part[2 * y + half]
        said[:, j] = of_part[np.where(wrong, rng.integers(0, 2 * k, n), 2 * y + half)]
    return y, clean, said


def hide(base, first, second, shared, rng):
    """A table in which two sources share so many instances; every instance keeps labels of the others."""
    base = base.copy()
    both = rng.permutation(np.flatnonzero((base[:, [first, second]] >= 0).all(axis=1)))[shared:]
    one = rng.random(len(both)) < 0.5
    base[both[one], first] = -1
    base[both[~one], second] = -1
    return base


def tally(fusion, first, second, truth):
    """Of stated lines how many are right, by relation; of related pairs how many are stated or undecided."""
    found, seen = Counter(), set()
    for line in translate(fusion, str(first), str(second)).lines:
        a, b = int(line.a), int(line.b)
        seen.add((a, b))
        true = RELATIONS[truth[a, b]]
        if line.relation == "undecided":
            found["undecided", true != "unrelated"] += 1
        else:
            found["stated", line.relation == true] += 1
            found[line.relation, line.relation == true] += 1
            found["related and stated", True] += true != "unrelated"
    found["related", True] = int((truth < 4).sum())
    found["not listed", True] = sum((a, b) not in seen for a, b in np.argwhere(truth < 4).tolist())
    return found


def joint(a, b):
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)
    return table


def line(shared, found):
    def share(what):
        right, wrong = found[what, True], found[what, False]
        return f"{right / (right + wrong):.3f}" if right + wrong else "-"

    n_related = max(found["related", True], 1)
    stated = found["stated", True] + found["stated", False]
    return (
        *(str(shared), str(stated), share("stated")),
        *(share(relation) for relation in RELATIONS[:4]),
        *(
            f"{found['related and stated', True] / n_related:.2f}",
            f"{found['undecided', True] / n_related:.2f}",
        ),
        f"{found['not listed', True] / n_related:.2f}",
    )


HEAD = ("shared", "lines", "right", *RELATIONS[:4], "of related: stated", "undecided", "not listed")


def frame(base):
    return {str(j): [None if x < 0 else int(x) for x in column] for j, column in enumerate(base.T)}


def on_planted(n_tables, seed):
    """By shared instances; and the cells of the table of clusters and sources."""
    found, cells = defaultdict(Counter), Counter()
    for number in range(n_tables):
        for shared in SHARED:
            rng = np.random.default_rng((seed, number, shared))
            y, clean, said = planted(rng)
            first, second = rng.choice(6, 2, replace=False)
            base = hide(said, first, second, shared, rng)
            hidden = rng.random(base.shape) < 0.2
            hidden[:, [first, second]] = False
            hidden[np.where(hidden, -1, base).max(axis=1) < 0] = False
            base = np.where(hidden, -1, base)
            fusion = fuse(frame(base), int(y.max()) + 1, random_state=0)
            truth = relate(joint(clean[:, first], clean[:, second]), 1.0)
            found[shared] += tally(fusion, first, second, truth)
            home = np.zeros((fusion.n_clusters, int(y.max()) + 1))
            np.add.at(home, (fusion.labels, y), 1)
            if shared == SHARED[-1] and len(set(home.argmax(axis=1))) == len(home) == int(y.max()) + 1:
                cells += _cells(fusion, y, clean, home.argmax(axis=1))
    return found, cells


def _cells(fusion, y, clean, home):
    """Cells of clusters that are classes, against the relation of the class to the labels."""
    found, told = Counter(), rosetta(fusion)
    for j in range(clean.shape[1]):
        truth = relate(joint(y, clean[:, j]), 1.0)
        for z, row in enumerate(told.cells):
            true = truth[home[z]]
            best = min(int(true.min()), 4)
            which = sorted(int(x) for x in np.flatnonzero(true == best))
            cell = row[j]
            found["all"] += 1
            if cell[0] in "?-":
                continue
            found["stated"] += 1
            said = sorted(int(x) for x in cell[2:].split(", "))
            found["right"] += best < 4 and cell[0] == "=<>~"[best] and said == which
    return found


def on_pools(n_draws, seed):
    found = defaultdict(Counter)
    for name in POOLS:
        try:
            pool = datasets.load(f"pool_{name}")
        except FileNotFoundError:
            continue
        for number in range(n_draws):
            rng = np.random.default_rng((seed, number))
            rows = np.sort(rng.permutation(len(pool.y))[:2500])
            columns = rng.choice(np.arange(FIRST_COLUMN, 100), 10, replace=False)
            base = np.asarray(pool.labels)[rows][:, columns]
            base = np.column_stack([np.unique(column, return_inverse=True)[1] for column in base.T])
            k = len(np.unique(pool.y[rows]))
            first, second = rng.choice(10, 2, replace=False)
            whole = fuse(frame(base), k, random_state=0)
            labels = Labels(whole.evidence, whole.rows)
            skill = labels.skill[labels.place[first]] * labels.skill[labels.place[second]]
            truth = relate(joint(base[:, first], base[:, second]), max(skill, 0.1))
            for shared in SHARED_IN_POOLS:
                fusion = fuse(frame(hide(base, first, second, shared, rng)), k, random_state=0)
                found[shared] += tally(fusion, first, second, truth)
    return found


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--tables", type=int, default=25, help="planted tables for each number of shared instances"
    )
    parser.add_argument("--draws", type=int, default=2, help="draws of each pool")
    parser.add_argument("--seed", type=int, default=4107)
    asked = parser.parse_args()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, found in (
            ("planted", on_planted(asked.tables, asked.seed)),
            ("pools", (on_pools(asked.draws, asked.seed), Counter())),
        ):
            by_shared, cells = found
            rows = (line(shared, counts) for shared, counts in by_shared.items())
            show(name, [dict(zip(HEAD, row, strict=True)) for row in rows])
            total = sum(by_shared.values(), Counter())
            print(f"all: {' '.join(line('', total)[1:3])}")
            if cells:
                print(
                    f"cells: {cells['all']}, stated {cells['stated'] / cells['all']:.2f}, of these right to "
                    f"the letter {cells['right'] / max(cells['stated'], 1):.3f}"
                )


if __name__ == "__main__":
    main()
