"""Labels and views in one call beside either side alone: the tables of the page on labels and tables.

    python -m benchmarks.quality_any                   both groups of sets, one draw (about 20 minutes)
    python -m benchmarks.quality_any --sets held       the sets on which nothing was chosen
    python -m benchmarks.quality_any --only MSRCv1_5view --draws 2
    python -m benchmarks.quality_any --penguins        a column that is an attribute, and no opinion

Needs the benchmark files (see `consilience.datasets.load`). Of every set at most 700 instances. A view lacks
30 to 70 % of its rows, a column of labels 30 to 70 % of its entries; instances of which nothing is left are
dropped. "d" is what k-means finds in another view, with k/2 to 2k clusters; "a" an annotator who is right in
40 to 80 %, confuses some classes more than others, merges some, and has names of their own; "A" one who is
right in 80 %.

Per setting, means over sets and draws of NMI (max): `fuse` of the labels alone (L, who has none in
the largest cluster), `fuse_views` alone (V), both in one call, and the better side of each case as true
classes know it; the accuracy of both in one call; and the mean confidence and its calibration error.
"""

import argparse
import os
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from benchmarks.quality_confidence import calibration_error, right
from consilience import check_views, datasets, fuse, fuse_views
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score
from consilience.multiview.pse import PSE
from consilience.multiview.rows import cluster_rows

SETS = {
    "dev": ("Handwritten6", "BBC4view", "MSRCv1_5view", "WebKB_Cornell", "NGs500"),
    "held": (
        "MNIST4",
        "3Sources169",
        "ProteinFold12",
        "Prokaryotic551",
        "LandUse21",
        "Movies617",
        "Wikipedia2866",
        "BBCSport544",
    ),
}
# Views, columns of labels by kind, and the share of instances that are on both sides (None: drawn for each).
SETTINGS = {
    "1 view, 1 d": (1, "d", None),
    "2 views, 3 d": (2, "ddd", None),
    "2 views, 1 a": (2, "a", None),
    "2 views, 3 a": (2, "aaa", None),
    "1 view, 3 a + 3 d": (1, "aaaddd", None),
    "1 view, 6 a": (1, "aaaaaa", None),
    "2 views, 12 a": (2, "a" * 12, None),
    "2 views, 2 noise labels": (2, "nn", None),
    "2 views, 3 a, 3 noise": (2, "aaannn", None),
    "1 view, 1 noise view, 3 a": (-1, "aaa", None),
    "20 % shared, 2 views, 3 a": (2, "aaa", 0.2),
}
MOST = 700


def columns(kinds, y, views, rng):
    """Columns of labels of every instance."""
    k, n = len(np.unique(y)), len(y)
    out = {}
    for j, kind in enumerate(kinds):
        if kind == "n":
            column = rng.integers(0, k, n)
        elif kind == "d":
            x = views[int(rng.integers(len(views)))]
            model = PSE(k, random_state=0).fit([x])
            rows, f = model.embedded_view(0)
            wanted = int(rng.integers(max(2, k // 2), 2 * k + 1))
            column = np.full(n, -1)
            column[rows] = cluster_rows(f, wanted, n_init=1, rng=np.random.RandomState(j)).labels
        else:
            accuracy = 0.8 if kind == "A" else rng.uniform(0.4, 0.8)
            other = rng.dirichlet(np.full(k, 0.5), k)  # what a class is taken for
            wrong = np.array([rng.choice(k, p=other[c]) for c in y])
            column = np.where(rng.random(n) < accuracy, y, wrong)
            if k > 3 and rng.random() < 0.5:
                column[column == 1] = 0  # classes that they do not tell apart
            column = rng.permutation(k)[column]
        out[f"{kind}{j}"] = np.where(rng.random(n) < rng.uniform(0.3, 0.7), -1, column)
    return out


def case(data, setting, draw):
    """Labels by name, views by name, which rows these have, and the classes."""
    n_views, kinds, shared = SETTINGS[setting]
    rng = np.random.default_rng([draw, list(SETTINGS).index(setting)])
    some = np.sort(rng.permutation(len(data.y))[:MOST])
    y = np.unique(data.y[some], return_inverse=True)[1]
    whole = [x[some] for x in check_views(data.views).arrays]
    chosen = rng.permutation(len(whole))[: abs(n_views)]
    labels = columns(kinds, y, whole, rng)
    views = {f"view{v}": whole[v] for v in chosen}
    if n_views < 0:
        views["noise"] = rng.normal(size=(len(y), 20))
    seen = rng.random((len(y), len(views))) >= rng.uniform(0.3, 0.7, len(views))
    if shared is not None:
        side = rng.random(len(y))
        seen = np.ones_like(seen)
        seen[side < (1 - shared) / 2] = False
        for column in labels.values():
            column[side > (1 + shared) / 2] = -1
    table = np.column_stack(list(labels.values()))
    keep = (table >= 0).any(axis=1) | seen.any(axis=1)
    labels = {name: column[keep] for name, column in labels.items() if (column[keep] >= 0).any()}
    return labels, {name: x[keep] for name, x in views.items()}, seen[keep], y[keep]


def alone(labels, views, seen, k, seed=0):
    """What either side says alone; instances that it lacks are in the largest cluster."""
    n = len(seen)
    by_labels, by_views = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
    rows = np.flatnonzero((np.column_stack(list(labels.values())) >= 0).any(axis=1))
    if len(labels) > 1:
        with suppress(ValueError):  # nothing links them
            by_labels[rows] = fuse({name: c[rows] for name, c in labels.items()}, k, random_state=seed).labels
    else:
        by_labels[rows] = next(iter(labels.values()))[rows]
    rows = np.flatnonzero(seen.any(axis=1))
    tables = {name: x[rows] for name, x in views.items()}
    by_views[rows] = fuse_views(tables, k, mask=seen[rows], random_state=seed).labels
    return by_labels, by_views


def score(y, z):
    return normalized_mutual_info_score(y, z, normalization="max")


def run(names, draws, settings, tell=print):
    """A row of figures for every case: set, setting, L, V, both, better, ACC, confidence, calibration."""
    rows = []
    for name in names:
        data = datasets.load(f"mv_{name}") if not name.startswith("mv_") else datasets.load(name)
        for draw in range(draws):
            for setting in settings:
                labels, views, seen, y = case(data, setting, draw)
                k = len(np.unique(y))
                views = {v: (sp.csr_array(x) if sp.issparse(x) else x) for v, x in views.items()}
                fusion = fuse(labels, k, views=views, mask=seen, random_state=0)
                first, second = (score(y, z) for z in alone(labels, views, seen, k))
                correct = right(y, fusion.labels)
                rows.append(
                    (
                        name,
                        setting,
                        first,
                        second,
                        score(y, fusion.labels),
                        max(first, second),
                        matched_accuracy_score(y, fusion.labels),
                        fusion.confidence.mean(),
                        calibration_error(fusion.confidence, correct),
                    )
                )
                tell(f"{name:15s} {setting:28s}" + " ".join(f"{v:.3f}" for v in rows[-1][2:]), flush=True)
    return rows


def summarise(rows):
    head = ("L", "V", "both", "better", "ACC", "conf", "calibration")
    print(f"\n{'':30s}" + " ".join(f"{h:>7s}" for h in head))
    for at, what in ((1, "setting"), (0, "set")):
        for value in dict.fromkeys(row[at] for row in rows):
            mean = np.mean([row[2:] for row in rows if row[at] == value], axis=0)
            print(f"{value:30s}" + " ".join(f"{v:7.3f}" for v in mean))
        print(f"-- by {what}")
    print(f"{'all':30s}" + " ".join(f"{v:7.3f}" for v in np.mean([row[2:] for row in rows], axis=0)))


def penguins():
    """Species from four lengths, alone and beside island and sex."""
    data = pd.read_csv(Path(os.environ["CONSILIENCE_DATA"]) / "tables" / "penguins.csv")
    lengths = data[[name for name in data if name.endswith(("_mm", "_g"))]]
    data, lengths = data[lengths.notna().all(axis=1)], lengths[lengths.notna().all(axis=1)]
    y = np.unique(data["species"], return_inverse=True)[1]
    alone = fuse_views({"lengths": lengths}, 3, random_state=0)
    print(f"lengths alone: {matched_accuracy_score(y, alone.labels):.3f}")
    for names in (["island"], ["sex"], ["island", "sex"]):
        fusion = fuse(data[names], 3, views={"lengths": lengths}, random_state=0)
        lower = fuse(
            data[names], 3, views={"lengths": lengths}, weights=dict.fromkeys(names, 0.5), random_state=0
        )
        right, then = (matched_accuracy_score(y, each.labels) for each in (fusion, lower))
        print(f"and {' and '.join(names)}: {right:.3f}; of half the weight: {then:.3f}")
        print(*(f"  {finding}" for finding in fusion.warnings), sep="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", choices=("dev", "held"))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS))
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--penguins", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.penguins:
        penguins()
    for group in [] if given.penguins else [given.sets] if given.sets else SETS:
        print(f"== {group}")
        summarise(run(given.only or SETS[group], given.draws, given.settings))
        if given.only:
            break
