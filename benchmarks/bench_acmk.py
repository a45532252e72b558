"""Speed and memory of ACMK, as ratios measured side by side in one run.

    python -m benchmarks.bench_acmk            everything, with k-means medians of three (about five minutes)
    python -m benchmarks.bench_acmk --quick    smaller tables

The sparse solver is compared with the k-means runs that it starts from, made by the same call that a fit
makes, one after the other on one thread. CPU seconds are those of all threads. Memory is the peak of a
process of its own above the imported library and the table.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks.bench_pce import high_water, show
from consilience import ACMK
from consilience.features._acmk_admm import acmk_admm
from consilience.features._acmk_sparse import acmk_sparse, neighbour_pairs
from consilience.features.acmk import coordinates
from consilience.generate import base_partitions


def timed(program, repeats):
    """Median wall and CPU seconds, and the last result."""
    wall, cpu = [], []
    for _ in range(repeats):
        start, busy = time.perf_counter(), time.process_time()
        result = program()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - busy)
    return float(np.median(wall)), float(np.median(cpu)), result


def against_kmeans(sizes):
    """A whole fit over its own k-means runs: below two, the consensus costs less than what it starts from."""
    for n, spread, final in ((n, s, f) for n in sizes for s in (2.0, 8.0) for f in ("kmeans", "spectral")):
        X, truth = make_blobs(n, n_features=32, centers=10, cluster_std=spread, random_state=0)
        ACMK(10, solver="sparse", final=final, random_state=0).fit(X[:20_000])  # compile
        repeats = 3 if final == "kmeans" else 1  # the cut is far from any limit
        base, base_cpu, _ = timed(lambda X=X: base_partitions(X, 10, 10, random_state=0), repeats)
        whole, whole_cpu, model = timed(
            lambda X=X, final=final: ACMK(10, solver="sparse", final=final, random_state=0).fit(X), repeats
        )
        yield {
            "task": f"blobs of width {spread:g}, n = {n:.0e}, 32 features, {final}",
            "10 k-means s": base,
            "whole fit s": whole,
            "fit / k-means": whole / base,
            "by CPU time": whole_cpu / base_cpu,
            "steps": model.n_iter_,
            "ARI of a run": np.mean(
                [adjusted_rand_score(truth, one) for one in model.initial_base_labels_.T]
            ),
            "ARI": adjusted_rand_score(truth, model.labels_),
            "MB": _peak(n, final),
        }


def _peak(n, final):
    command = [sys.executable, "-m", "benchmarks.bench_acmk", "--peak", str(n), final]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_peak(n, final):
    """Peak memory of one fit above the imported library and the table, in MB."""
    X, _ = make_blobs(n, n_features=32, centers=10, cluster_std=2.0, random_state=0)
    ACMK(10, solver="sparse", final=final, random_state=0).fit(X[:1000])
    before = high_water()
    ACMK(10, solver="sparse", final=final, random_state=0).fit(X)
    print(high_water() - before)


def a_step(sizes):
    """One outer step of the dense solver and a whole run of the sparse one, on rows of the digits."""
    X = load_digits().data
    common = {"order": 3, "cumulative": False, "refine": True}
    for n in sizes:
        rows = np.random.RandomState(0).permutation(len(X))[:n]
        x = coordinates(X[rows], np.random.RandomState(0))
        base = base_partitions(X[rows], 10, 10, random_state=0)
        with threadpool_limits(1):
            one, _, _ = timed(lambda x=x, base=base: acmk_admm(x, base, lam=0.01, max_iter=1, **common), 3)
            three, _, _ = timed(lambda x=x, base=base: acmk_admm(x, base, lam=0.01, max_iter=3, **common), 1)
            sparse, _, found = timed(
                lambda x=x, base=base: acmk_sparse(
                    x, base, neighbour_pairs(x, 7, np.random.RandomState(0))[1], max_iter=20, **common
                ),
                3,
            )
        yield {
            "task": f"digits, n = {n}",
            "dense s a step": (three - one) / 2,
            "dense s for 20 steps": one + 19 * (three - one) / 2,
            "sparse s for all": sparse,
            "its steps": found.n_iter,
            "dense / sparse": (one + 19 * (three - one) / 2) / sparse,
            "dense MB": 45 * 8e-6 * n * n,
        }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--peak", nargs=2, metavar=("N", "FINAL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print_peak(int(options.peak[0]), options.peak[1])
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    sizes = (20_000,) if options.quick else (100_000,)
    results = {
        "k-means": show("A whole fit and its k-means runs", against_kmeans(sizes)),
        "step": show("Both solvers", a_step((200,) if options.quick else (200, 400))),
    }
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
