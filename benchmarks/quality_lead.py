"""By how much another method must agree better than DAL before `fuse` takes it: the figures of its page.

    python -m benchmarks.quality_lead    about ten minutes on two cores

Base clusterings have mixed numbers of clusters: k-means on nine tables of features, two ensembles each, and
draws of four pools that are not those of `quality_fuse`. Needs the benchmark files (see
`consilience.datasets.load`). Every method is fitted once; leads only choose between the answers.
"""

import warnings
import zlib

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks.quality_fuse import FEATURES
from benchmarks.quality_pce import show
from benchmarks.quality_pools import draws
from consilience import Partitions, datasets
from consilience.fusion.labels import best_of, candidates, lead_of, methods_for
from consilience.generate import base_partitions
from consilience.metrics import normalized_mutual_info_score
from consilience.missing import drop_labels

RATIOS = (0.0, 0.5, 0.9)
LEADS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
POOLS = ("VS", "SPF", "Semeion", "Caltech20")
ROWS = 800


def ensembles(ratio):
    """Draws of the features, then of the pools: kind, number of the draw, classes and base labels."""
    for name in FEATURES:
        data = datasets.load(name)
        for draw in (50, 51):
            rng = np.random.default_rng((zlib.crc32(name.encode()), draw))
            rows = np.sort(rng.permutation(len(data.y))[:ROWS])
            ks = 2, int(np.sqrt(len(rows)))
            table = base_partitions(normalize(data.X[rows]), ks, 10, random_state=draw)
            if ratio:
                table = drop_labels(table, ratio, random_state=draw)
            yield "features", draw, data.y[rows], table
    for _, draw, y, table in draws(POOLS, 4, missing=ratio, seed=int(100 * ratio) + 7):
        yield "pools", draw, y, table


def answers(draw, y, table):
    """NMI (max) of every candidate; None where no lead applies."""
    known, k = Partitions.of(table), len(np.unique(y))
    if not lead_of(known, k):
        return None
    quality = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for candidate, model in candidates(known, k, methods_for(known), "error", draw):
            quality[candidate] = normalized_mutual_info_score(y, model.labels_, normalization="max")
    return quality


def measure():
    for ratio in RATIOS:
        found = {"features": [], "pools": []}
        for kind, draw, y, table in ensembles(ratio):
            answer = answers(draw, y, table)
            if answer is not None:
                found[kind].append(answer)
        for kind, each in found.items():
            row = {"ensembles": f"{len(each)} of {kind}", "missing": f"{ratio:.0%}"}
            row["DAL"] = f"{np.mean([quality[best_of(quality, np.inf)] for quality in each]):.3f}"
            for lead in LEADS:
                taken = [quality[best_of(quality, lead)] for quality in each]
                row[f"{lead:.0%}"] = f"{np.mean(taken):.3f}"
            yield row


if __name__ == "__main__":
    show("Leads of fuse, NMI(max)", measure())
