"""Speed and memory of PCE, as ratios measured side by side in one run.

    python -m benchmarks.bench_pce            everything (about five minutes on two cores)
    python -m benchmarks.bench_pce --quick    a tenth of the rows

Every line repeats its two programs in turn and reports medians. Labels of the two are compared where they
solve the same problem. Memory is the peak of a process of its own above the imported library.
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
from tests.oracles.pce import plain_pce
from tests.planted import planted
from threadpoolctl import threadpool_limits

from consilience import PCE, Partitions, datasets
from consilience.consensus.pce import pce
from consilience.core.canonical import Rows
from consilience.core.spectral import left_singular_vectors
from consilience.generate import base_partitions

REPEATS = 5
N_ITER = 20


def seconds(*programs):
    """Median wall seconds of each program, run in turn, and the last results."""
    times, results = [[] for _ in programs], [None] * len(programs)
    for _ in range(REPEATS):
        for i, program in enumerate(programs):
            start = time.perf_counter()
            results[i] = program()
            times[i].append(time.perf_counter() - start)
    return [float(np.median(t)) for t in times], results


# --- against the plain one-hot version ----------------------------------------------------------------------


def features():
    try:
        data = datasets.load("PenDigits")
        return "PenDigits", data.X
    except FileNotFoundError:
        return "digits", load_digits().data


def against_plain():
    name, X = features()
    for missing, on in ((0.3, "all rows"), (0.3, "distinct rows"), (0.0, "all rows"), (0.0, "distinct rows")):
        base = base_partitions(X, 10, 10, subsample=1 - missing, random_state=0)
        table = Partitions.of(base)
        few, inverse = Rows(table.distinct.codes, table.offsets, table.distinct.counts), table.inverse
        h0 = left_singular_vectors(few.codes, few.offsets, few.weights, 10)[inverse]
        rows = few
        if on == "all rows":
            rows = Rows(table.codes, table.offsets, np.ones(len(base), dtype=int))
            inverse = np.arange(len(base))
        settings = {
            "init": "coassociation", "gamma": 1.0, "n_init": 1, "self_paced": True, "diversity": True,
            "joint": True, "max_iter": N_ITER, "tol": 0.0, "rng": np.random.RandomState(0),
            "starts": [inverse[0]],
        }  # fmt: skip

        def ours(rows=rows, settings=settings, **more):
            with threadpool_limits(1, user_api="blas"):
                return pce(rows, 10, **settings | more)

        def to_the_end():
            return ours(tol=1e-3, max_iter=100)

        def plain(base=base, h0=h0):
            with threadpool_limits(1, user_api="blas"):  # in threads, its small SVDs are many times slower
                return plain_pce(base, 10, n_iter=N_ITER, h0=h0, h_tol=1e-7)

        ours()  # compile
        (slow, fast, fastest), (expected, found, stopped) = seconds(plain, ours, to_the_end)
        yield {
            "task": f"{name}, {missing:.0%} missing, {on} ({len(rows.codes)} of {len(base)})",
            "plain one-hot s": slow,
            "ours s": fast,
            "ratio": slow / fast,
            "same labels": adjusted_rand_score(expected.labels, found.labels[inverse]) == 1.0,
            "ours until nothing changes s": fastest,
            "iterations": stopped.n_iter,
            "its ratio": slow / fastest,
            "its labels the same": adjusted_rand_score(expected.labels, stopped.labels[inverse]) == 1.0,
        }


# --- against KMeans on the sparse one-hot table -------------------------------------------------------------


def tables(n, folder):
    X, truth = make_blobs(n, n_features=10, centers=10, random_state=0)
    base = base_partitions(X, 10, 10, subsample=0.7, random_state=0)
    yield "a: k-means bases on blobs", _save(folder, "a", truth, base)
    yield "b: planted, 20% noise", _save(folder, "b", *planted(n, 10, 10, noise=0.2, missing=0.3, seed=0))


def _save(folder, name, truth, base):
    path = Path(folder) / f"{name}.npz"
    np.savez(path, truth=truth, base=base.astype(np.int16))
    return path


def against_kmeans(n):
    with tempfile.TemporaryDirectory() as folder:
        for name, path in tables(n, folder):
            stored = np.load(path)
            truth, base = stored["truth"], stored["base"]
            one_hot = Partitions.of(base).indicator
            seeds = iter(range(100))

            def peer(one_hot=one_hot, seeds=seeds):
                return KMeans(10, n_init=1, random_state=next(seeds)).fit(one_hot).labels_

            def ours(base=base):
                return PCE(10, random_state=0).fit(base)

            ours()
            (slow, fast), (expected, found) = seconds(peer, ours)
            yield {
                "task": f"n = {n:.0e}, 30% missing, {name}",
                "distinct rows": len(found.partitions_.distinct.counts),
                "KMeans on one-hot s": slow,
                "PCE s": fast,
                "KMeans / PCE": slow / fast,
                "KMeans ARI": adjusted_rand_score(truth, expected),
                "PCE ARI": adjusted_rand_score(truth, found.labels_),
                "iterations": found.n_iter_,
                "KMeans MB": _peak("kmeans", path),
                "PCE MB": _peak("pce", path),
            }


def _peak(method, path):
    command = [sys.executable, "-m", "benchmarks.bench_pce", "--peak", method, str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_peak(method, path):
    """Peak memory of one fit above the imported library, in MB, the table of labels included."""
    _, small = planted(2000, 4, 3, noise=0.1, missing=0.2, seed=0)
    PCE(3).fit(small)
    KMeans(3, n_init=1).fit(Partitions.of(small).indicator)
    before = high_water()
    base = np.load(path)["base"]
    if method == "pce":
        PCE(10, random_state=0).fit(base)
    else:
        KMeans(10, n_init=1, random_state=0).fit(Partitions.of(base).indicator)
    print(high_water() - before)


def high_water():
    """Peak memory of this process in MB (not getrusage's, which a child inherits from its parent)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


# --- growth with the number of rows -------------------------------------------------------------------------


def growth(sizes):
    for m in (10, 20):
        for n in sizes:
            truth, base = planted(n, m, 10, noise=0.2, missing=0.3, seed=0)

            def ours(base=base):
                return PCE(10, random_state=0).fit(base)

            (taken,), (found,) = seconds(ours)
            yield {
                "task": f"planted, m = {m}, n = {n:.0e}",
                "distinct rows": len(found.partitions_.distinct.counts),
                "iterations": found.n_iter_,
                "PCE s": taken,
                "microseconds a row": 1e6 * taken / n,
                "ARI": adjusted_rand_score(truth, found.labels_),
            }


# --- output -------------------------------------------------------------------------------------------------


def show(title, rows):
    print(f"\n### {title}\n", flush=True)
    collected = []
    for row in rows:
        if not collected:
            print("| " + " | ".join(row) + " |\n|" + "---|" * len(row))
        print("| " + " | ".join(_text(value) for value in row.values()) + " |", flush=True)
        collected.append(row)
    return collected


def _text(value):
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--peak", nargs=2, metavar=("METHOD", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print_peak(*options.peak)
        return
    largest = 10**5 if options.quick else 10**6
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"medians of {REPEATS}"
    )
    results = {
        "plain": show(f"{N_ITER} iterations of the plain one-hot version and ours", against_plain()),
        "kmeans": show("KMeans (one start) on the sparse one-hot table and PCE", against_kmeans(largest)),
        "growth": show("Cost a row", growth([n for n in (10**4, 10**5, 10**6) if n <= largest])),
    }
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
