"""Speed and memory of SPCE, as ratios measured side by side in one run.

    python -m benchmarks.bench_spce            everything (about ten minutes on two cores)
    python -m benchmarks.bench_spce --quick    smaller tables

The dense version holds m matrices of n x n and solves a full eigenproblem a step; both run with one BLAS
thread, and processor seconds are compared, which other programs on the machine disturb less; so are SPCE and
k-means. Whole fits are in wall seconds. Labels are compared with those of the dense version where both run to
the end. Memory is the peak of a process of its own above the imported library.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from tests.oracles.spce import plain_spce
from tests.planted import planted
from threadpoolctl import threadpool_limits

from benchmarks.bench_pce import high_water, show
from consilience import SPCE, Partitions, datasets
from consilience.consensus.spce import spce
from consilience.generate import base_partitions

REPEATS = 3
SETTINGS = {"theta": 0.15, "weighting": "self_paced", "max_iter": 20}


def seconds(program, repeats=REPEATS, clock=time.perf_counter):
    """Median seconds, and the last result."""
    times = []
    for _ in range(repeats):
        start = clock()
        result = program()
        times.append(clock() - start)
    return float(np.median(times)), result


def features(name):
    try:
        return name, datasets.load(name).X
    except FileNotFoundError:
        return "digits", load_digits().data


def solve(base, c):
    table = Partitions.of(base)
    with threadpool_limits(1, user_api="blas"):
        return spce(table.canonical.rows, c, **SETTINGS), table.inverse


def dense_step(base, c):
    """Processor seconds of one step of the dense version: five less one, so that setting up is left out."""
    with threadpool_limits(1, user_api="blas"):
        one, _ = seconds(lambda: plain_spce(base, c, theta=0.15, n_steps=1), clock=time.process_time)
        five, _ = seconds(lambda: plain_spce(base, c, theta=0.15, n_steps=5), clock=time.process_time)
    return (five - one) / 4


def against_dense(sizes):
    name, X = features("USPS")
    for n in sizes:
        rows = np.random.default_rng(0).permutation(len(X))[:n]
        base = base_partitions(X[rows], 10, 10, random_state=0)
        slow = dense_step(base, 10)
        fast, (found, inverse) = seconds(lambda base=base: solve(base, 10), 15, clock=time.process_time)
        same = "-"
        if n <= 1000:
            with threadpool_limits(1, user_api="blas"):
                expected = plain_spce(base, 10, theta=0.15)
            same = (
                adjusted_rand_score(expected.components, found.components[inverse]) == 1.0
                and len(expected.steps) == found.n_iter
            )
        yield {
            "task": f"{name}, n = {n}, m = 10",
            "distinct rows": len(found.components),
            "dense s a step": slow,
            "ours s a step": fast / found.n_iter,
            "ratio": slow * found.n_iter / fast,
            "steps": found.n_iter,
            "same labels and steps": same,
            "margin": found.margin,
        }


def end_to_end():
    """Whole fits against one dense step, whose time is extrapolated by n^3 from n = 1000."""
    for name in ("PenDigits", "USPS"):
        name, X = features(name)
        base = base_partitions(X, 10, 10, random_state=0)
        sample = np.random.default_rng(0).permutation(len(X))[:1000]
        extrapolated = dense_step(base[sample], 10) * (len(X) / 1000) ** 3
        SPCE(10, random_state=0).fit(base)
        fast, model = seconds(lambda base=base: SPCE(10, random_state=0).fit(base))
        yield {
            "task": f"{name}, n = {len(X)}, m = 10, whole fit",
            "distinct rows": model.row_coassociation_.shape[0],
            "one dense step s (extrapolated)": extrapolated,
            "SPCE s": fast,
            "share": f"{fast / extrapolated:.3%}",
            "components": model.n_components_,
            "SPCE MB": _peak(base),
        }


def _peak(base):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "base.npy"
        np.save(path, base)
        command = [sys.executable, "-m", "benchmarks.bench_spce", "--peak", str(path)]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_peak(path):
    """Peak memory of one fit above the imported library, in MB, the table of labels included."""
    SPCE(3).fit(planted(300, 4, 3, noise=0.1, missing=0.2, seed=0)[1])
    before = high_water()
    SPCE(10, random_state=0).fit(np.load(path))
    print(high_water() - before)


def many_instances(n):
    for spread, k in ((2.0, (10, 30)), (4.0, 10), (5.0, 10)):
        X, truth = make_blobs(n, n_features=10, centers=10, cluster_std=spread, random_state=0)
        base = base_partitions(X, k, 10, random_state=0)
        one_k = k if isinstance(k, int) else sum(k) // 2
        with threadpool_limits(1):  # threads that wait for each other count as work
            capped, _ = seconds(
                lambda X=X, k=one_k: base_partitions(X, k, 2, random_state=1), clock=time.process_time
            )
            full, _ = seconds(
                lambda X=X, k=one_k: [_kmeans(X, k, seed) for seed in range(2)], clock=time.process_time
            )
        fast, model = seconds(lambda base=base: SPCE(10, random_state=0).fit(base), clock=time.process_time)
        yield {
            "task": f"blobs of width {spread:g}, bases of {k} clusters, n = {n:.0e}, m = 10",
            "distinct rows": model.row_coassociation_.shape[0],
            "SPCE s": fast,
            "two k-means bases s": full,
            "two capped at 20 steps s": capped,
            "k-means / SPCE": full / fast,
            "capped / SPCE": capped / fast,
            "components": model.n_components_,
            "ARI": adjusted_rand_score(truth, model.labels_),
            "ARI of a base": adjusted_rand_score(truth, base[:, 0]),
        }


def _kmeans(X, k, seed):
    return KMeans(k, n_init=1, random_state=seed).fit(X)


def many_rows(sizes):
    """Where it ends: cost by the number of distinct rows."""
    for n in sizes:
        _, base = planted(n, 12, 10, noise=0.3, missing=0.0, seed=0)
        fast, model = seconds(lambda base=base: SPCE(10, random_state=0).fit(base), 1)
        yield {
            "task": f"planted, 30% noise, m = 12, n = {n}",
            "distinct rows": model.row_coassociation_.shape[0],
            "SPCE s": fast,
            "steps": model.n_iter_,
            "components": model.n_components_,
        }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--peak", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print_peak(options.peak)
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    solve(planted(300, 4, 3, noise=0.1, missing=0.2, seed=0)[1], 3)  # compile
    samples = (500, 1000) if options.quick else (500, 1000, 2000)
    results = {
        "dense": show("A step of the dense version and ours", against_dense(samples)),
        "end to end": show("A whole fit and one dense step", end_to_end()),
        "instances": show("Many instances", many_instances(10**5 if options.quick else 10**6)),
        "rows": show("Many distinct rows", many_rows((500, 1000) if options.quick else (1000, 3000, 6000))),
    }
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
