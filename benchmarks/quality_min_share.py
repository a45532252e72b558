"""How large a cluster must be for DAL to count it, where labels are few: the figures of its page.

    python -m benchmarks.quality_min_share    about four minutes

Pools with mixed numbers of clusters, eight of them to choose by and three to check; k-means on nine tables of
features; planted clusters, equal and unequal; three pools with a constant number. Draws are not those of the
benchmark of record. Needs the benchmark files (see `consilience.datasets.load`).
"""

import argparse
import warnings
import zlib
from itertools import product

import numpy as np
import pandas as pd
from sklearn.preprocessing import normalize

from benchmarks.quality_fuse import FEATURES
from benchmarks.quality_pce import show
from benchmarks.record.design import CONSTANT, EIGHT, PLANTED, THREE, Table
from benchmarks.record.tables import make, with_gaps
from consilience import DAL, Partitions, datasets
from consilience.generate import base_partitions
from consilience.metrics import normalized_mutual_info_score

SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
CASES = tuple(product((5, 10, 20, 40), (0.5, 0.7, 0.8, 0.9)))  # base clusterings, share of labels missing
FIRST = 200  # draw


def tables(bases, missing, draws):
    """Family, classes and base labels; patterns in which base clusterings fall apart are left out."""
    for draw in range(FIRST, FIRST + draws):
        for family, group, names in (
            ("eight pools", "mixed", EIGHT),
            ("three pools", "mixed", THREE),
            ("planted", "planted", PLANTED),
            ("constant", "constant", CONSTANT),
        ):
            for name in names:
                try:
                    given = make(Table("labels", group, name, "entries", missing, bases, 1.0, 500, draw))
                except ValueError:
                    continue
                yield family, name, given.y, given.labels
        for name in FEATURES:
            data = datasets.load(name)
            rng = np.random.default_rng((zlib.crc32(name.encode()), draw))
            rows = np.sort(rng.permutation(len(data.y))[:500])
            base = base_partitions(normalize(data.X[rows]), (2, 22), bases, random_state=draw)
            try:
                yield (
                    "features",
                    name,
                    data.y[rows],
                    Partitions.of(with_gaps(base, "entries", missing, draw)[0]),
                )
            except ValueError:
                continue


def measure(draws):
    """A row for every table: NMI (sqrt) by the share that counts."""
    for bases, missing in CASES:
        for family, name, y, labels in tables(bases, missing, draws):
            seen = (labels.codes >= 0).sum(axis=1).mean()
            row = {"family": family, "data": name, "bases": bases, "missing": missing, "labels a row": seen}
            for share in SHARES:
                found = DAL(len(np.unique(y)), min_share=share).fit(labels).labels_
                row[str(share)] = normalized_mutual_info_score(y, found, normalization="sqrt")
            yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = pd.DataFrame(measure(parser.parse_args().draws))
    rows["labels"] = pd.cut(rows["labels a row"], [0, 1.5, 2.5, 4, 6, 10, 40]).astype(str)
    means = rows.groupby(["family", "labels", "data"])[[str(share) for share in SHARES]].mean()
    means = means.groupby(["family", "labels"]).mean().round(3).astype(str).reset_index()
    show("NMI (sqrt) of DAL by min_share and labels a row", means.to_dict("records"))


if __name__ == "__main__":
    main()
