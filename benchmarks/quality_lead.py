"""Which answer `fuse` takes where numbers of clusters are mixed, on ensembles that the rule was not made on.

    python -m benchmarks.quality_lead    about ten minutes on two cores

k-means on nine tables of features, 20 base clusterings of 2 to sqrt(n) clusters, and draws of four pools that
are not those of the benchmark of record. Needs the benchmark files (see `consilience.datasets.load`). Every
method is fitted once; "fuse" is its rule, a percentage the rule that lets LWEA take DAL's place by so much.
"""

import warnings
import zlib

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks.quality_fuse import FEATURES
from benchmarks.quality_pce import show
from benchmarks.quality_pools import draws
from consilience import Partitions, datasets, fuse
from consilience.generate import base_partitions
from consilience.metrics import normalized_mutual_info_score
from consilience.missing import drop_labels
from consilience.results.labels import candidates, features_of
from consilience.results.selection import best_of, mixed

RATIOS = (0.0, 0.3, 0.5, 0.7, 0.9)
LEADS = (0.05, 0.1, 0.2, 0.3)
METHODS = ("DAL", "LWEA", "MixtureConsensus")
POOLS = ("VS", "SPF", "Semeion", "Caltech20")
ROWS = 800


def ensembles(ratio):
    """Draws of the features, then of the pools: kind, number of the draw, classes and base labels."""
    for name in FEATURES:
        data = datasets.load(name)
        for draw in (50,):
            rng = np.random.default_rng((zlib.crc32(name.encode()), draw))
            rows = np.sort(rng.permutation(len(data.y))[:ROWS])
            ks = 2, int(np.sqrt(len(rows)))
            table = base_partitions(normalize(data.X[rows]), ks, 20, random_state=draw)
            if ratio:
                table = drop_labels(table, ratio, random_state=draw)
            yield "features", draw, data.y[rows], table
    for _, draw, y, table in draws(POOLS, 2, missing=ratio, seed=int(100 * ratio) + 7):
        yield "pools", draw, y, table


def answers(draw, y, table):
    """NMI (sqrt) of every candidate and of "fuse"; None where numbers are about the wanted one."""
    known, k = Partitions.of(table), len(np.unique(y))
    if not mixed(features_of(known, k)):
        return None
    quality = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for candidate, model in candidates(known, k, METHODS, "error", draw, polish=False):
            quality[candidate] = normalized_mutual_info_score(y, model.labels_, normalization="sqrt")
        labels = fuse(known, k, random_state=draw).labels
    return quality, normalized_mutual_info_score(y, labels, normalization="sqrt")


def of(quality, name):
    """What a method has."""
    return next(value for candidate, value in quality.items() if candidate.method == name)


def measure():
    for ratio in RATIOS:
        found = {"features": [], "pools": []}
        for kind, draw, y, table in ensembles(ratio):
            answer = answers(draw, y, table)
            if answer is not None:
                found[kind].append(answer)
        for kind, each in found.items():
            row = {"ensembles": f"{len(each)} of {kind}", "missing": f"{ratio:.0%}"}
            for name in METHODS:
                row[name] = f"{np.mean([of(quality, name) for quality, _ in each]):.3f}"
            row["fuse"] = f"{np.mean([fused for _, fused in each]):.3f}"
            for lead in LEADS:
                taken = [quality[best_of(quality, "DAL", lead)] for quality, _ in each]
                row[f"{lead:.0%}"] = f"{np.mean(taken):.3f}"
            yield row


if __name__ == "__main__":
    show("Answers and rules, NMI (sqrt)", measure())
