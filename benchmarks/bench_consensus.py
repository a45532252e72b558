"""Time, peak memory and quality of every label method, as far as each goes.

    python -m benchmarks.bench_consensus                          everything (about an hour on two cores)
    python -m benchmarks.bench_consensus --quick                  up to ten thousand instances
    python -m benchmarks.bench_consensus --methods "HBGF;KCC"     some of them
    python -m benchmarks.bench_consensus --json FILE              keep the figures; those already there stay

Planted tables: ten base clusterings of ten clusters, a fifth of the labels drawn at random, complete or with
30 % of them missing. Every cell is a process of its own, on one thread and with a time limit. The first fit
of a process loads compiled loops and is made on a small table, untimed. Seconds are those of the processor,
so that other work on the machine matters less. Memory is the peak above the small table's. A table that
a method refuses, a fit over the limit and one that runs out of memory are reported as such, and the method
is not tried on more instances.

Beside them: scikit-learn's KMeans (one start) on the sparse one-hot table, and the functions of the package
ensembleclustering (formerly ClusterEnsembles) if $CONSILIENCE_PEERS names a folder with it. Its release 1.0.2
asks for NumPy 1 and an old scikit-learn, so it cannot be installed beside this library in the usual way:

    pip install --no-deps --target FOLDER ensembleclustering kahypar pymetis

On current SciPy its three METIS functions stop at one line; "mended" is the package with that line changed.
"""

import argparse
import json
import multiprocessing
import os
import platform
import resource
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from tests.planted import planted

from benchmarks.bench_pce import high_water, show
from consilience import Partitions, consensus

SIZES = (10**3, 10**4, 10**5, 10**6)
MISSING = (0.0, 0.3)
LIMIT = 30  # processor seconds of a fit
LOADING = 15  # processor seconds more, to make the table and to fit the small one
PATIENCE = 3600  # seconds of a clock on the wall, on a busy machine
# Peers and methods that use several threads, and those that do not, on equal terms.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)
N_CLUSTERS = 10
METHODS = {name: {} for name in sorted(consensus.__all__, key=str.lower)} | {
    "ECPCS, hierarchy": {"form": "hierarchy"}
}
PEERS = ("cspa", "hgpa", "mcla", "hbgf", "nmf", "cspa, mended", "mcla, mended", "hbgf, mended")


def fit(method, base):
    """Labels by one method, peer or KMeans."""
    if method == "KMeans on one-hot":
        one_hot = Partitions.of(base).indicator
        return KMeans(N_CLUSTERS, n_init=1, random_state=0).fit(one_hot).labels_
    if method.startswith("ensembleclustering"):
        return _peer(method.removeprefix("ensembleclustering "), base)
    estimator = getattr(consensus, method.split(",")[0])
    return estimator(N_CLUSTERS, random_state=0, **METHODS[method]).fit_predict(base)


def _peer(function, base):
    sys.path.append(os.environ["CONSILIENCE_PEERS"])
    from ensembleclustering import ClusterEnsembles as package

    if function.endswith("mended"):
        package.to_pymetis_format = _to_pymetis_format
    labels = np.where(base < 0, np.nan, base.astype(float)).T
    return package.cluster_ensembles(
        labels, nclass=N_CLUSTERS, solver=function[:4].strip(","), random_state=0
    )


def _to_pymetis_format(adj_mat):
    """The peer's function; its values of a row are a matrix on current SciPy and not a sparse one."""
    xadj, adjncy, eweights = [0], [], []
    adj_mat = adj_mat.tolil()
    for i in range(adj_mat.shape[0]):
        row = adj_mat.getrow(i)
        idx_row, idx_col = row.nonzero()
        adjncy += list(idx_col)
        eweights += [int(value) for value in np.asarray(row[idx_row, idx_col]).ravel()]
        xadj.append(len(adjncy))
    return xadj, adjncy, eweights


def run_cell(method, n, missing, answer):
    """Run one cell in this process and send what it gave."""
    spent = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + LIMIT + LOADING, spent + 2 * (LIMIT + LOADING)))
    warnings.simplefilter("ignore", ConvergenceWarning)
    truth, base = planted(n, 10, N_CLUSTERS, noise=0.2, missing=missing, seed=0)
    try:
        fit(method, planted(200, 4, 10, noise=0.1, missing=0.1, seed=0)[1])
        before, start = high_water(), time.process_time()
        labels = fit(method, base)
        taken = time.process_time() - start
    except MemoryError:
        answer.send({"outcome": "out of memory"})
    except Exception as error:  # a peer may fail in any way
        refused = isinstance(error, ValueError) and "Hint:" in str(error)
        answer.send({"outcome": "refused" if refused else "failed", "message": str(error)})
    else:
        found = {"seconds": taken, "MB": high_water() - before, "ARI": adjusted_rand_score(truth, labels)}
        answer.send({"outcome": "over the limit" if taken > LIMIT else "done", **found})


def cell(method, n, missing):
    """What one cell gave, in a process of its own, forked from one that has imported and done nothing."""
    processes = multiprocessing.get_context("forkserver")
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=run_cell, args=(method, n, missing, sender))
    process.start()
    sender.close()
    try:
        if receiver.poll(PATIENCE):
            return receiver.recv()
        return {"outcome": "over the limit"}
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGXCPU:
            return {"outcome": "over the limit"}
        return {"outcome": "failed", "message": f"the process ended with {process.exitcode}"}
    finally:
        process.kill()
        process.join()


def measure(methods, sizes, stored):
    """Fill in the cells that are not stored yet; yields after each."""
    for method in methods:
        cells = stored.setdefault(method, {})
        for missing in MISSING:
            stopped = None
            for n in sizes:
                key = f"{n:.0e}, {missing:.0%} missing"
                if key not in cells:
                    cells[key] = {"outcome": stopped} if stopped else cell(method, n, missing)
                    yield method, key, cells[key]
                if cells[key]["outcome"] != "done":
                    # More instances have more distinct rows, and take longer.
                    stopped = cells[key]["outcome"]


def table(stored, sizes, missing):
    """A row a method: seconds / MB / ARI, or why not."""
    for method, cells in stored.items():
        row = {"method": method}
        for n in sizes:
            found = cells.get(f"{n:.0e}, {missing:.0%} missing", {"outcome": "-"})
            if found["outcome"] == "done":
                text = f"{found['seconds']:.2g} s / {found['MB']:.0f} MB / {found['ARI']:.2f}"
            else:
                text = found["outcome"]
            row[f"n = {n:.0e}"] = text
        yield row


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="up to ten thousand instances")
    parser.add_argument("--methods", help="separated by semicolons")
    parser.add_argument("--json", type=Path, help="read and keep the figures here")
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)
    sizes = SIZES[:2] if options.quick else SIZES
    methods = ["KMeans on one-hot", *METHODS]
    if "CONSILIENCE_PEERS" in os.environ:
        methods += [f"ensembleclustering {function}" for function in PEERS]
    if options.methods:
        methods = options.methods.split(";")
    stored = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    for method, key, found in measure(methods, sizes, stored):
        print(f"{method}, {key}: {found}", file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps(stored, indent=1) + "\n")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for missing in MISSING:
        show(f"{missing:.0%} missing: processor seconds / peak memory / ARI", table(stored, sizes, missing))


if __name__ == "__main__":
    main()
