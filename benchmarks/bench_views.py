"""Speed and memory of `fuse_views` on very many instances, beside KMeans on all columns side by side.

    python -m benchmarks.bench_views            1e5 instances beside KMeans, a million once (half an hour)
    python -m benchmarks.bench_views --quick    a tenth of the instances

Ten clusters, three views of 50 columns, 30 % of the rows of each view absent; KMeans (ten starts) gets the
complete columns, since it takes no gaps. Centres are drawn with a deviation of `spread` beside noise of one:
at 1 clusters are apart in every view, at .5 hardly. The two run in turn; time is in processor seconds, which
other work on the machine changes least. `fuse_views` is timed with its confidence. Memory is the peak of a
process of its own, library and views included. faiss is used where it is installed
(``pip install 'consilience[neighbours]'``).
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.bench_pce import high_water, show
from consilience import fuse_views
from consilience.missing import drop_views

N_CLUSTERS, N_VIEWS, N_COLUMNS, MISSING = 10, 3, 50, 0.3


def planted(n, spread):
    """Classes, views and which rows they have."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_CLUSTERS, n)
    views = []
    for _ in range(N_VIEWS):
        views.append(rng.standard_normal((n, N_COLUMNS)))
        views[-1] += spread * rng.standard_normal((N_CLUSTERS, N_COLUMNS))[y]
    return y, views, drop_views((n, N_VIEWS), MISSING, protocol="mcar", random_state=0)


def fused(views, seen, seed=0):
    fusion = fuse_views(views, N_CLUSTERS, mask=seen, random_state=seed)
    fusion.confidence  # noqa: B018 - it belongs to the answer
    return fusion


def taken(program):
    """Processor and wall seconds of a program, and what it returns."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = program()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def against_kmeans(n, spreads, repeats):
    for spread in spreads:
        y, views, seen = planted(n, spread)
        fused([view[:500] for view in views], seen[:500])  # compiles
        columns, ours, peer = np.hstack(views), [], []
        for seed in range(repeats):
            peer.append(
                taken(lambda x=columns, s=seed: KMeans(N_CLUSTERS, n_init=10, random_state=s).fit(x).labels_)
            )
            ours.append(taken(lambda x=views, m=seen, s=seed: fused(x, m, s).labels))
        slow, fast = (np.median([run[0] for run in runs]) for runs in (ours, peer))
        yield {
            "task": f"n = {n:.0e}, spread {spread}",
            "KMeans processor s": float(fast),
            "fuse_views processor s": float(slow),
            "ratio": float(slow / fast),
            "KMeans ARI, no gaps": adjusted_rand_score(y, peer[-1][2]),
            "fuse_views ARI": adjusted_rand_score(y, ours[-1][2]),
            "fuse_views MB": _alone(n, spread)["MB"],
        }


def many(n, spread):
    yield _alone(n, spread)


def _alone(n, spread):
    command = [sys.executable, "-m", "benchmarks.bench_views", "--alone", str(n), str(spread)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_alone(n, spread):
    """One fusion in this process, as a line of JSON."""
    y, views, seen = planted(n, spread)
    cpu, wall, fusion = taken(lambda: fused(views, seen))
    print(
        json.dumps(
            {
                "task": f"n = {n:.0e}, spread {spread}",
                "processor s": cpu,
                "wall s": wall,
                "MB": high_water(),
                "MB of the views": sum(view.nbytes for view in views) / 2**20,
                "ARI": adjusted_rand_score(y, fusion.labels),
            }
        )
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the instances")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--alone", nargs=2, metavar=("N", "SPREAD"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        print_alone(int(options.alone[0]), float(options.alone[1]))
        return
    n = 10**4 if options.quick else 10**5
    faiss = "with" if find_spec("faiss") else "without"
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {faiss} faiss")
    results = {
        "kmeans": show("KMeans and fuse_views", against_kmeans(n, (1.0, 0.5), options.repeats)),
        "many": show("Once", many(10 * n, 0.5)),
    }
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
