"""Quality of `fuse` beside every method it chooses from: the tables of the page on `fuse`.

    python -m benchmarks.quality_fuse                    20 draws a pool (about two hours on two cores)
    python -m benchmarks.quality_fuse --draws 2          a quick look
    python -m benchmarks.quality_fuse --tables constant  one of mixed, constant, runs
    python -m benchmarks.quality_fuse --keep FILE        append results to FILE and go on where it stopped

Needs the benchmark files (see `consilience.datasets.load`). The number of clusters is that of the classes;
nothing else is chosen with their help. Every pool, ratio and draw has its own random source.
"""

import argparse
import json
import warnings
import zlib
from pathlib import Path

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks.quality_pce import show
from benchmarks.quality_pools import CONSTANT, MIXED, draws
from consilience import Partitions, datasets, fuse
from consilience.generate import base_partitions
from consilience.inference.sharing import sharing
from consilience.metrics import normalized_mutual_info_score
from consilience.missing import drop_labels
from consilience.results import selection
from consilience.results.labels import candidates, features_of, limits_for
from consilience.results.selection import CANDIDATES

RATIOS = (0.0, 0.3, 0.5, 0.7, 0.9)
# k-means pools made here: every base clustering has as many clusters as there are classes.
FEATURES = ("orlraws10P", "ORL", "jaffe", "UMIST", "warpAR10P", "Isolet1560", "PenDigits", "tr11", "k1b")
MOST_ROWS = 1500
# The authors' own runs: columns of a run, number of clusters.
RUNS = {"Zhou_Lung": (20, 5)} | {f"PCE_pixraw10P_miss{share}": (10, 10) for share in (10, 30, 50, 70)}
METHODS = ("fuse", *CANDIDATES, *(f"{name}, polished" for name in CANDIDATES if name != "MixtureConsensus"))


def mixed(n_draws, ratios):
    """Pools whose base clusterings have 2 to sqrt(n) clusters; ten of them a draw, all rows."""
    for ratio in ratios:
        for name, draw, y, table in draws(MIXED, n_draws, missing=ratio, seed=int(100 * ratio)):
            yield f"{ratio}", name, draw, y, table


def constant(n_draws, ratios):
    """Pools whose base clusterings have the wanted number of clusters."""
    for ratio in ratios:
        for name, draw, y, table in draws(CONSTANT, n_draws, missing=ratio, seed=int(100 * ratio)):
            yield f"{ratio}", name, draw, y, table
        for name in FEATURES:
            data = datasets.load(name)
            for draw in range(min(n_draws, 5)):
                rng = np.random.default_rng((zlib.crc32(name.encode()), draw))
                rows = np.sort(rng.permutation(len(data.y))[:MOST_ROWS])
                table = base_partitions(
                    normalize(data.X[rows]), len(np.unique(data.y)), 10, random_state=draw
                )
                if ratio:
                    table = drop_labels(table, ratio, random_state=draw)
                yield f"{ratio}", name, draw, data.y[rows], table


def runs(n_draws, ratios):
    """The runs of two groups of authors, complete (Lung) and incomplete (pixraw); `ratios` is ignored."""
    for name, (m, _) in RUNS.items():
        pool = datasets.load(f"pool_{name}")
        for run in range(min(n_draws, pool.labels.shape[1] // m)):
            table = pool.labels[:, m * run : m * run + m]
            seen = (table >= 0).any(axis=1)
            yield "as published", name, run, pool.y[seen], table[seen]


def scores(draw, y, table):
    """NMI (max) of `fuse` and of all its candidates on the whole table."""
    known, k = Partitions.of(table), len(np.unique(y))
    found, tried = {}, []
    features = features_of(known, k)
    plan = selection.plan(features, limits_for(known), "agreement")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for candidate, model in candidates(known, k, plan.methods, "error", draw):
            found[candidate.name] = model.labels_
            tried.append(candidate)
        features = features._replace(shared=sharing(known))
        if not plan.sampled and selection.rule_of(features) == "agreement":
            found["fuse"] = found[selection.best_of(tried, "agreement").name]
        else:
            found["fuse"] = fuse(known, k, random_state=draw).labels
    return {name: normalized_mutual_info_score(y, x, normalization="max") for name, x in found.items()}


def measured(tables, n_draws, ratios, keep):
    """Results of all draws, those in `keep` without measuring them again."""
    found = {}
    if keep is not None and keep.exists():
        for line in keep.read_text().splitlines():
            *key, values = json.loads(line)
            found[tuple(key)] = values
    for table_name in tables:
        for ratio, pool, draw, y, table in TABLES[table_name](n_draws, ratios):
            key = (table_name, ratio, pool, draw)
            if key not in found:
                found[key] = scores(draw, y, table)
                if keep is not None:
                    with keep.open("a") as file:
                        file.write(json.dumps([*key, found[key]]) + "\n")
    return {key: values for key, values in found.items() if key[0] in tables and key[3] < n_draws}


def by_ratio(found, table_name):
    """A row per method: the mean over pools of the mean over draws, for every ratio."""
    for method in METHODS:
        row = {"method": method}
        for ratio in sorted({key[1] for key in found if key[0] == table_name}):
            means = _by_pool(found, table_name, ratio, method)
            whole = _by_pool(found, table_name, ratio, "fuse")
            mark = "" if len(means) == len(whole) else f" ({len(means)} of {len(whole)} pools)"
            row[ratio] = f"{np.mean(list(means.values())):.3f}{mark}" if means else ""
        yield row


def by_pool(found, table_name, ratio):
    """A row per method, a column per pool."""
    pools = _by_pool(found, table_name, ratio, "fuse")
    for method in METHODS:
        means = _by_pool(found, table_name, ratio, method)
        yield {"method": method, **{pool: f"{means[pool]:.3f}" if pool in means else "" for pool in pools}}


def _by_pool(found, table_name, ratio, method):
    values = {}
    for (name, r, pool, _), scored in found.items():
        if (name, r) == (table_name, ratio):
            values.setdefault(pool, []).append(scored.get(method, np.nan))
    return {pool: np.mean(v) for pool, v in values.items() if not np.isnan(v).any()}


TABLES = {"runs": runs, "constant": constant, "mixed": mixed}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--ratios", default=",".join(map(str, RATIOS)), help="shares of labels removed")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    tables = given.tables.split(",")
    ratios = [float(ratio) for ratio in given.ratios.split(",")]
    found = measured(tables, given.draws, ratios, given.keep)
    for name in tables:
        if name == "runs":
            show("The authors' runs, NMI(max)", by_pool(found, "runs", "as published"))
            continue
        kind = "mixed numbers of clusters" if name == "mixed" else "a constant number of clusters"
        show(f"Pools of {kind}, share of labels removed, NMI(max)", by_ratio(found, name))
        show(f"Pools of {kind}, complete, NMI(max)", by_pool(found, name, "0.0"))


if __name__ == "__main__":
    main()
