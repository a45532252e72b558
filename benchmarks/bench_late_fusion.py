"""Speed and memory of late fusion, as ratios measured side by side in one run.

    python -m benchmarks.bench_late_fusion            everything (about ten minutes on two cores)
    python -m benchmarks.bench_late_fusion --quick    fewer repetitions, masks and instances
    python -m benchmarks.bench_late_fusion --quality MSRC --masks 80    one comparison of quality alone

The peer is iMML 0.6.0 (``pip install 'consilience[peers]'``), in Python, on the same kernels and with one
BLAS thread like ours; without it that part is left out. Ratios are of processor seconds, which other work on
the machine changes least. The plain versions are those in `tests/oracles`.
Memory is the peak of a process of its own, library and views included.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import ArpackError
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import normalize
from tests.oracles.late_fusion import plain_eeimvc, plain_mkkmik
from threadpoolctl import threadpool_limits

from benchmarks.bench_pce import show
from consilience import EEIMVC, LFIMVC, datasets
from consilience.core.kernels import fit_kernel
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score
from consilience.missing import drop_views
from consilience.multiview.eeimvc import eeimvc
from consilience.multiview.kernels import base_embeddings
from consilience.multiview.mkkmik import mkkmik

try:
    from imml import cluster as peer
except ImportError:
    peer = None


def gaussian(x):
    distances = euclidean_distances(x)
    return np.exp(-(distances**2) / (2 * distances.mean() ** 2))


def angle(x):
    unit = normalize(x)
    return np.asarray((unit @ unit.T).todense()) if hasattr(unit, "todense") else unit @ unit.T


def product(x):
    return x @ x.T


TASKS = {
    "UCI, n = 2000, m = 3, k = 10": ("mv_Handwritten6", (0, 1, 3), gaussian),
    "ProteinFold, n = 694, m = 12, k = 27": ("mv_ProteinFold12", None, product),
    "BBCSport, n = 544, m = 2, k = 5": ("mv_BBCSport544", None, angle),
    "MSRC, n = 210, m = 5, k = 7": ("mv_MSRCv1_5view", None, gaussian),
}


def task(name):
    file, chosen, kernel = TASKS[name]
    data = datasets.load(file)
    views = [data.views[v] for v in (chosen or range(len(data.views)))]
    views = [view.toarray() if hasattr(view, "toarray") else view for view in views]
    return data.y, views, kernel


OURS = {"kernel": "precomputed", "random_state": 0}


class Given:
    """Hands the peer the ready kernels in turn, whatever table it asks about."""

    def __init__(self, kernels):
        self.kernels, self.asked = kernels, 0

    def __call__(self, x):
        self.asked += 1
        return self.kernels[(self.asked - 1) % len(self.kernels)].copy()


def in_turn(programs, repeats):
    """Median processor seconds of each program, run in turn on one thread, and their last results."""
    times, results = {name: [] for name in programs}, {}
    for _ in range(repeats):
        for name, program in programs.items():
            start = time.process_time()
            results[name] = program()
            times[name].append(time.process_time() - start)
    return {name: float(np.median(seconds)) for name, seconds in times.items()}, results


def against_peer(repeats):
    """Same work: the peer's prior and one start of k-means. Defaults: the imputed prior and ten starts."""
    for name in TASKS:
        y, views, kernel = task(name)
        k, m = len(np.unique(y)), len(views)
        kernels = [kernel(view) for view in views]
        observed = drop_views((len(y), m), 0.5, protocol="stratified", y=y, random_state=0)
        marks = [
            np.where(seen[:, None], view[:, :1], np.nan) for seen, view in zip(observed.T, views, strict=True)
        ]
        same = {**OURS, "n_init": 1}
        times, _ = in_turn(
            {
                "peer EE": lambda k=k, ks=kernels, x=marks: _peer("EEIMVC", k, Given(ks), x),
                "EE": partial(EEIMVC(k, prior="average", **same).fit, kernels, mask=observed),
                "EE default": partial(EEIMVC(k, **OURS).fit, kernels, mask=observed),
                "peer LF": lambda k=k, ks=kernels, x=marks: _peer("LFIMVC", k, Given(ks), x),
                "LF": partial(LFIMVC(k, **same).fit, kernels, mask=observed),
                "LF default": partial(LFIMVC(k, **OURS).fit, kernels, mask=observed),
            },
            repeats,
        )
        yield {
            "task": name,
            "imml EEIMVC s": times["peer EE"],
            "EEIMVC, same work, s": times["EE"],
            "ratio": times["peer EE"] / times["EE"],
            "EEIMVC, defaults, s": times["EE default"],
            "its ratio": times["peer EE"] / times["EE default"],
            "imml LFIMVC s": times["peer LF"],
            "LFIMVC, same work, s": times["LF"],
            "LF ratio": times["peer LF"] / times["LF"],
            "LFIMVC, defaults, s": times["LF default"],
            "its LF ratio": times["peer LF"] / times["LF default"],
        }


def _peer(method, k, kernel, tables):
    return getattr(peer, method)(k, kernel=kernel, random_state=0).fit(tables)


def quality_against_peer(n_masks, tasks=tuple(TASKS)):
    """Over masks; the peer's LFIMVC imputes features by their means and makes complete kernels of them.

    The last column is the gain of EEIMVC in ACC, with its standard error over masks.
    """
    for name in tasks:
        y, views, kernel = task(name)
        k, m = len(np.unique(y)), len(views)
        kernels = [kernel(view) for view in views]
        found = {}
        for draw in range(n_masks):
            observed = drop_views((len(y), m), 0.5, protocol="stratified", y=y, random_state=draw)
            tables = [
                np.where(seen[:, None], view, np.nan) for seen, view in zip(observed.T, views, strict=True)
            ]
            marks = [table[:, :1] for table in tables]
            programs = {
                "imml EEIMVC": partial(_peer, "EEIMVC", k, Given(kernels), marks),
                "EEIMVC, same prior": partial(EEIMVC(k, prior="average", **OURS).fit, kernels, mask=observed),
                "EEIMVC": partial(EEIMVC(k, **OURS).fit, kernels, mask=observed),
                "imml LFIMVC": partial(_peer, "LFIMVC", k, kernel, tables),
                "LFIMVC": partial(LFIMVC(k, **OURS).fit, kernels, mask=observed),
            }
            for method, program in programs.items():
                scores = found.setdefault(method, [])
                try:
                    labels = program().labels_
                except ArpackError:  # the peer's eigensolver, where a kernel has too low a rank for it
                    continue
                nmi = normalized_mutual_info_score(y, labels, normalization="max")
                scores.append((100 * matched_accuracy_score(y, labels), 100 * nmi))
        row = {"task": name, **{method: _mean(scores, n_masks) for method, scores in found.items()}}
        gain = np.subtract(found["EEIMVC"], found["imml EEIMVC"])[:, 0]
        row["EEIMVC - imml"] = f"{gain.mean():+.1f} +-{gain.std(ddof=1) / np.sqrt(n_masks):.1f}"
        yield row


def _mean(scores, n_masks):
    failed = n_masks - len(scores)
    mean = "{:.1f}/{:.1f}".format(*np.mean(scores, axis=0)) if scores else ""
    return f"{mean} ({failed} of {n_masks} failed)" if failed else mean


def against_plain(repeats):
    """The same sweeps by the published formulas: SVDs for EE-IMVC, n x n inverses for MKKM-IK."""
    for name in ("UCI, n = 2000, m = 3, k = 10", "BBCSport, n = 544, m = 2, k = 5"):
        y, views, kernel = task(name)
        n, k = len(y), len(np.unique(y))
        observed = drop_views((n, len(views)), 0.5, protocol="stratified", y=y, random_state=0)
        rows = [np.flatnonzero(seen) for seen in observed.T]
        rng = np.random.RandomState(0)
        kernels = [
            fit_kernel(kernel(view)[np.ix_(r, r)], r, n, "precomputed", rng)
            for view, r in zip(views, rows, strict=True)
        ]
        hs = [base.h for base in base_embeddings(kernels, k)]
        blocks = [part.block for part in kernels]
        options = {"regularization": 1.0, "init": "identity", "max_iter": 20, "tol": 0.0}
        sweeps = 2 if n > 1000 else 5
        times, found = in_turn(
            {
                "plain EE": lambda h=hs, o=observed: plain_eeimvc(h, o, h[0], 1.0, n_sweeps=20),
                "EE": lambda h=hs, o=observed, s=options: eeimvc(h, o, h[0], **s),
                "plain IK": lambda b=blocks, r=rows, n=n, k=k, s=sweeps: plain_mkkmik(b, r, n, k, n_sweeps=s),
                "IK": lambda p=kernels, k=k, s=sweeps: mkkmik(p, k, max_iter=s, tol=0.0),
            },
            repeats,
        )
        yield {
            "task": name,
            "20 sweeps of EE-IMVC, plain s": times["plain EE"],
            "ours s": times["EE"],
            "ratio": times["plain EE"] / times["EE"],
            "largest difference": float(np.abs(found["plain EE"].h - found["EE"].embedding).max()),
            "sweeps of MKKM-IK": sweeps,
            "plain IK s": times["plain IK"],
            "MKKM-IK s": times["IK"],
            "its ratio": times["plain IK"] / times["IK"],
            "difference of weights": float(np.abs(found["plain IK"].weights - found["IK"].weights).max()),
        }


def many_instances(n):
    for kernel in ("linear", "rbf"):
        command = [sys.executable, "-m", "benchmarks.bench_late_fusion", "--peak", f"{kernel},{n}"]
        yield json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_peak(kernel, n):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n)
    views = [3.0 * rng.standard_normal((10, d))[y] + 2.0 * rng.standard_normal((n, d)) for d in (20, 50, 100)]
    observed = drop_views((n, 3), 0.3, protocol="mcar", random_state=0)
    EEIMVC(3, kernel=kernel, random_state=0).fit([view[:100] for view in views])
    start, cpu = time.perf_counter(), time.process_time()
    model = EEIMVC(10, kernel=kernel, random_state=0).fit(views, mask=observed)
    row = {
        "task": f"three views of 20, 50 and 100 features, {kernel}, n = {n:.0e}, 30% of rows missing",
        "s": time.perf_counter() - start,
        "processor s": time.process_time() - cpu,
        "MB": int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024,
        "ACC": 100 * matched_accuracy_score(y, model.labels_),
    }
    start = time.perf_counter()
    model.predict([None, views[1], None])
    print(json.dumps({**row, "predict from one view s": time.perf_counter() - start}))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, masks and instances")
    parser.add_argument("--quality", metavar="TASK", help="compare the quality on one task, nothing else")
    parser.add_argument("--masks", type=int, default=10)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--peak", metavar="KERNEL,N", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.peak:
        kernel, n = options.peak.split(",")
        print_peak(kernel, int(n))
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    repeats, masks = (1, 2) if options.quick else (5, options.masks)
    results = {}
    if options.quality:
        tasks = [name for name in TASKS if name.startswith(options.quality)]
        with threadpool_limits(1):
            show(f"Quality over {masks} masks, ACC/NMI(max)", quality_against_peer(masks, tasks))
        return
    with threadpool_limits(1):
        if peer is None:
            print("iMML is not installed, the comparison is left out: pip install 'consilience[peers]'")
        else:
            results["peer"] = show(
                "iMML and ours, given kernels, half of the instances incomplete", against_peer(repeats)
            )
            results["quality"] = show(
                f"The same over {masks} masks, ACC/NMI(max)", quality_against_peer(masks)
            )
        results["plain"] = show("Published formulas and ours", against_plain(1 if options.quick else 3))
    results["instances"] = show("Many instances", many_instances(10**4 if options.quick else 10**5))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
