"""Speed and memory of `fuse`, and of what it is made of, beside KMeans on the one-hot table.

    python -m benchmarks.bench_fuse            everything (about five minutes on two cores)
    python -m benchmarks.bench_fuse --quick    a tenth of the rows

Programs of one line run in turn; times are medians. `fuse` is timed with its diagnostics. Memory is the
peak of a process of its own above the imported library.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from tests.planted import planted

from benchmarks import bench_pce
from benchmarks.bench_pce import high_water, seconds, show, tables
from consilience import DAL, Partitions, fuse, fuse_views

bench_pce.REPEATS = 3


def fused(base, k=10):
    fusion = fuse(base, k, random_state=0)
    fusion.confidence  # noqa: B018 - the diagnostics belong to the answer
    return fusion


def against_kmeans(n):
    with tempfile.TemporaryDirectory() as folder:
        for name, path in tables(n, folder):
            stored = np.load(path)
            truth, base = stored["truth"], stored["base"]
            one_hot = Partitions.of(base).indicator
            seeds = iter(range(100))

            def peer(one_hot=one_hot, seeds=seeds):
                return KMeans(10, n_init=1, random_state=next(seeds)).fit(one_hot).labels_

            def dal(base=base):
                return DAL(10, random_state=0).fit(base)

            def ours(base=base):
                return fused(base)

            dal()
            (slow, middle, whole), (expected, alone, found) = seconds(peer, dal, ours)
            yield {
                "task": f"n = {n:.0e}, 30% missing, {name}",
                "KMeans on one-hot s": slow,
                "DAL s": middle,
                "fuse s": whole,
                "fuse / KMeans": whole / slow,
                "method": found.method,
                "KMeans ARI": adjusted_rand_score(truth, expected),
                "DAL ARI": adjusted_rand_score(truth, alone.labels_),
                "fuse ARI": adjusted_rand_score(truth, found.labels),
                "KMeans MB": bench_pce._peak("kmeans", path),
                "fuse MB": _peak(path),
            }


def growth(sizes):
    for n in sizes:
        truth, base = planted(n, 10, 10, noise=0.2, missing=0.3, seed=0)

        def ours(base=base):
            return fused(base)

        (taken,), (found,) = seconds(ours)
        yield {
            "task": f"planted, m = 10, n = {n:.0e}",
            "fuse s": taken,
            "microseconds a row": 1e6 * taken / n,
            "method": found.method,
            "ARI": adjusted_rand_score(truth, found.labels),
        }


def views(n):
    """One run: three views of 32 features, 30 % of the rows missing in each."""
    rng = np.random.default_rng(0)
    X, truth = make_blobs(n, n_features=96, centers=10, cluster_std=8.0, random_state=0)
    seen = rng.random((n, 3)) < 0.7
    seen[~seen.any(axis=1), 0] = True
    bench_pce.REPEATS = 1

    def ours():
        return fuse_views([X[:, :32], X[:, 32:64], X[:, 64:]], 10, mask=seen, random_state=0)

    (taken,), (found,) = seconds(ours)
    yield {
        "task": f"three views, n = {n:.0e}",
        "fuse_views s": taken,
        "method": found.method,
        "ARI": adjusted_rand_score(truth, found.labels),
    }


def _peak(path):
    command = [sys.executable, "-m", "benchmarks.bench_fuse", "--peak", str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_peak(path):
    """Peak memory of one fusion above the imported library, in MB, the table of labels included."""
    fused(planted(2000, 4, 3, noise=0.1, missing=0.2, seed=0)[1], 3)
    before = high_water()
    fused(np.load(path)["base"])
    print(high_water() - before)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--peak", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print_peak(options.peak)
        return
    largest = 10**5 if options.quick else 10**6
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, medians of 3")
    results = {
        "kmeans": show("KMeans (one start) on the one-hot table, DAL and fuse", against_kmeans(largest)),
        "growth": show("Cost a row", growth([n for n in (10**4, 10**5, 10**6) if n <= largest])),
        "views": show("Views", views(largest // 10)),
    }
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
