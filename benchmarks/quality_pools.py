"""Quality of the label methods on pools of base clusterings, complete and with labels removed.

    python -m benchmarks.quality_pools                     20 draws a pool (about an hour on two cores)
    python -m benchmarks.quality_pools --draws 3           a quick look
    python -m benchmarks.quality_pools --methods "LWEA;PTA;HBGF" --tables published    any label method
    python -m benchmarks.quality_pools --methods all --tables all --draws 3 --json FILE    the page of
                                                  methods; those that are in the file are not fitted again
    python -m benchmarks.quality_pools --methods "fuse;DAL;ECCMS" --tables all --draws 6    the leaders

Needs the benchmark files (see `consilience.datasets.load`). A draw takes ten base clusterings of a pool
without replacement, as the authors of the mixed pools do. Every pool and draw has its own random source, so
the tables of two methods are about the same draws. The number of clusters is that of the classes; nothing
else is chosen with their help.
"""

import argparse
import json
import time
import warnings
import zlib
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

from benchmarks.quality_pce import show
from consilience import LWEA, LWGP, PCE, MixtureConsensus, consensus, datasets, fuse
from consilience.metrics import normalized_mutual_info_score
from consilience.missing import drop_labels

N_BASES = 10
MIXED = ("Caltech20", "LS", "ODR", "Semeion", "SPF", "USPS", "VS")
CONSTANT = ("Zhou_Lung", "Zhou_GLIOMA", "RCE_Yale")  # every base has the true number of clusters
# Huang, Wang and Lai (2018), Table V: mean NMI over 100 draws, true number of clusters.
PUBLISHED = {
    "LWEA": dict(zip(MIXED, (0.452, 0.616, 0.829, 0.655, 0.151, 0.633, 0.133), strict=True)),
    "LWGP": dict(zip(MIXED, (0.430, 0.644, 0.816, 0.642, 0.152, 0.614, 0.132), strict=True)),
}
# Rows left of a pool, so that no method has an easier or a cheaper task than another.
PARTIAL_ROWS = 1000
RATIOS = (0.3, 0.5, 0.7, 0.9)
# The comparison of all methods: small enough for those that take a minute a thousand rows.
COMPARED_ROWS = 300
COMPARED_RATIOS = (0.0, 0.3, 0.5, 0.7)
MECHANISMS = {"entries": "mcar", "share": "per_base"}  # entries on their own; each base sees a (1 - r) share

METHODS = {
    "LWEA": lambda k, draw: LWEA(k),
    "LWGP": lambda k, draw: LWGP(k, random_state=draw),
    "LWGP, rotation": lambda k, draw: LWGP(k, discretize="rotation", random_state=draw),
    "MixtureConsensus": lambda k, draw: MixtureConsensus(k, random_state=draw),
    "PCE": lambda k, draw: PCE(k, random_state=draw),
}
USUAL = tuple(METHODS)
METHODS |= {
    name: lambda k, draw, name=name: getattr(consensus, name)(k, random_state=draw)
    for name in consensus.__all__
    if name not in METHODS
}


class Fuse:
    """What a user gets who names no method."""

    def __init__(self, n_clusters, random_state):
        self.settings = {"n_clusters": n_clusters, "random_state": random_state}

    def fit_predict(self, table):
        return fuse(table, **self.settings).labels


METHODS["fuse"] = Fuse


def draws(pools, n_draws, *, missing=0.0, mechanism="entries", n_rows=None, seed=0):
    """Name of the pool, number of the draw, true classes and base labels.

    `n_rows` keeps a random part of a larger pool. Labels are removed by `mechanism`: "entries", each with
    chance `missing`, or "share", exactly that share of every base clustering; an instance that would lose all
    its labels gets one back.
    """
    for name in pools:
        pool = datasets.load(f"pool_LWEA_{name}" if name in MIXED else f"pool_{name}")
        for draw in range(n_draws):
            rng = np.random.default_rng((seed, zlib.crc32(name.encode()), draw))
            columns = rng.permutation(pool.labels.shape[1])[:N_BASES]
            rows = np.arange(len(pool.y)) if n_rows is None else rng.permutation(len(pool.y))[:n_rows]
            table = pool.labels[np.ix_(rows, columns)]
            if missing:
                state = int(rng.integers(2**31))
                table = drop_labels(table, missing, mechanism=MECHANISMS[mechanism], random_state=state)
            yield name, draw, pool.y[rows], table


def score(method, draw, y, table):
    """NMI (max) of one fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = METHODS[method](len(np.unique(y)), draw).fit_predict(table)
    return normalized_mutual_info_score(y, labels, normalization="max")


def scores(method, pools, n_draws, n_jobs, **options):
    """NMI (max) of every draw of every pool, (pools, draws)."""
    found = Parallel(n_jobs=n_jobs)(
        delayed(score)(method, draw, y, table) for _, draw, y, table in draws(pools, n_draws, **options)
    )
    return np.reshape(found, (len(pools), n_draws))


def published(methods, n_draws, n_jobs):
    """All rows, nothing missing, beside the published figures; the error is that of the mean."""
    for method in methods:
        found = scores(method, MIXED, n_draws, n_jobs)
        error = np.sqrt(np.mean(found.var(axis=1, ddof=1)) / found.size) if n_draws > 1 else np.nan
        cells = {name: f"{mean:.3f}" for name, mean in zip(MIXED, found.mean(axis=1), strict=True)}
        yield {"method": method, **cells, "mean": f"{found.mean():.3f}", "its error": f"{error:.3f}"}
        if method in PUBLISHED:
            given = PUBLISHED[method]
            mean = np.mean(list(given.values()))
            cells = {name: f"{value:.3f}" for name, value in given.items()}
            yield {"method": f"{method}, published", **cells, "mean": f"{mean:.3f}", "its error": ""}


def partial(methods, n_draws, n_jobs, *, pools=MIXED, n_rows=PARTIAL_ROWS):
    """Mean over the pools with labels removed: entries on their own / each base sees a share."""
    for method in methods:
        whole = scores(method, pools, n_draws, n_jobs, n_rows=n_rows).mean()
        row = {"method": method, "complete": f"{whole:.3f}"}
        for ratio in RATIOS:
            means = [
                scores(
                    method, pools, n_draws, n_jobs, missing=ratio, mechanism=mechanism, n_rows=n_rows
                ).mean()
                for mechanism in MECHANISMS
            ]
            row[f"r = {ratio}"] = "/".join(f"{mean:.3f}" for mean in means)
        yield row


def constant(methods, n_draws, n_jobs):
    """Pools in which every base clustering has as many clusters as there are classes."""
    for method in methods:
        row = {"method": method}
        for ratio in (0.0, 0.5):
            means = scores(method, CONSTANT, n_draws, n_jobs, missing=ratio).mean(axis=1)
            row |= {
                f"{name}, r = {ratio:g}": f"{mean:.3f}" for name, mean in zip(CONSTANT, means, strict=True)
            }
            row[f"mean, r = {ratio:g}"] = f"{means.mean():.3f}"
        yield row


def compare(methods, n_draws, n_jobs, stored=None, keep=lambda: None):
    """All pools with labels removed, entries on their own; means over mixed and constant pools."""
    stored = {} if stored is None else stored
    for method in methods:
        if method not in stored:
            start = time.perf_counter()
            stored[method] = {
                f"{ratio:.0%} missing": {
                    name: np.round(found, 4).tolist()
                    for name, found in zip(
                        MIXED + CONSTANT,
                        scores(
                            method, MIXED + CONSTANT, n_draws, n_jobs, missing=ratio, n_rows=COMPARED_ROWS
                        ),
                        strict=True,
                    )
                }
                for ratio in COMPARED_RATIOS
            } | {"seconds": round(time.perf_counter() - start, 1)}
            keep()
        row = {"method": method}
        for kind, pools in (("mixed", MIXED), ("constant", CONSTANT)):
            for ratio in COMPARED_RATIOS:
                found = stored[method][f"{ratio:.0%} missing"]
                mean = np.mean([found[name] for name in pools])
                row[f"{kind}, {ratio:.0%} missing" if ratio else f"{kind}, complete"] = f"{mean:.3f}"
        yield row


TABLES = {
    "published": ("Complete mixed pools, all rows, NMI(max)", published),
    "partial": (f"Mixed pools with labels removed, {PARTIAL_ROWS} rows, NMI(max)", partial),
    "constant": ("Pools of constant k, NMI(max)", constant),
    "all": (f"Mixed and constant pools, at most {COMPARED_ROWS} rows, NMI(max)", compare),
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--methods", default=";".join(USUAL), help="separated by semicolons")
    parser.add_argument("--tables", default="published,partial,constant")
    parser.add_argument("--json", type=Path, help="read and keep the figures of the table 'all' here")
    given = parser.parse_args()
    methods = list(METHODS) if given.methods == "all" else given.methods.split(";")
    stored = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}

    def keep():
        if given.json:
            given.json.write_text(json.dumps(stored) + "\n")

    for name in given.tables.split(","):
        title, make = TABLES[name]
        more = {"stored": stored, "keep": keep} if name == "all" else {}
        show(title, make(methods, given.draws, given.jobs, **more))


if __name__ == "__main__":
    main()
