"""Speed and memory of APMC and DAIMC, as ratios measured side by side in one run.

    python -m benchmarks.bench_apmc            everything (some minutes on two cores)
    python -m benchmarks.bench_apmc --quick    smaller tables

The plain APMC writes the fused similarity out and solves a full eigenproblem. The plain DAIMC takes the
authors' step, cubic in the number of features; DAIMC of imml 0.6.0 runs beside it where it is installed:
`pip install imml==0.6.0` (best into an environment of its own). Peak memory is that of a process of its own,
the library and the data included.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time

import numpy as np
from sklearn.metrics import adjusted_rand_score
from tests.oracles.apmc import plain_eigenpairs, plain_similarity
from tests.oracles.factors import plain_daimc
from threadpoolctl import threadpool_limits

from benchmarks.bench_pce import high_water, show
from consilience import APMC, DAIMC, datasets
from consilience.core.anchors import anchor_components, fused_eigenpairs
from consilience.missing import drop_views
from consilience.multiview.daimc import daimc, start_daimc

NEIGHBOURS = 10


def seconds(program):
    start = time.perf_counter()
    result = program()
    return time.perf_counter() - start, result


def blobs(n, n_views, *, k=10, width=20, missing=0.3, seed=0):
    """Overlapping clusters in every view; which rows are absent is random, nobody is nowhere."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    views = [
        2.0 * rng.standard_normal((k, width))[truth] + rng.standard_normal((n, width)) for _ in range(n_views)
    ]
    observed = rng.random((n, n_views)) >= missing
    lost = np.flatnonzero(~observed.any(axis=1))
    observed[lost, rng.integers(0, n_views, len(lost))] = True
    return truth, views, observed


def against_plain(sizes):
    """Three views: the similarity and its eigenvectors written out, and ours."""
    for n in sizes:
        _, views, observed = blobs(n, 3, missing=0.4)
        with threadpool_limits(1):
            slow, (values, _) = seconds(
                lambda views=views, observed=observed: plain_eigenpairs(
                    plain_similarity(views, observed, NEIGHBOURS, None), 10
                )
            )
            model = APMC(10, n_neighbors=NEIGHBOURS, normalize=None, n_anchors=n, random_state=0)
            fast, model = seconds(lambda model=model, v=views, o=observed: model.fit(v, mask=o))
            alone, _ = seconds(
                lambda model=model: fused_eigenpairs(
                    model.affinity_operator_, anchor_components(model.affinity_operator_.factor), 10
                )
            )
        gap = float(np.abs(values - model.eigenvalues_).max())
        yield {"n": n, "plain s": slow, "APMC s, all of fit": fast, "of it eigenvectors": alone,
               "ratio": slow / fast, "largest difference of eigenvalues": f"{gap:.0e}"}  # fmt: skip


def large(cases):
    for n, n_views, n_anchors in cases:
        command = [
            sys.executable,
            "-m",
            "benchmarks.bench_apmc",
            "--one",
            str(n),
            str(n_views),
            str(n_anchors),
        ]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        yield {"n": n, "views": n_views, "anchors a pair": n_anchors, **found}


def print_one(n, n_views, n_anchors):
    """Time, quality and peak memory of one fit, as JSON."""
    truth, views, observed = blobs(n, n_views)
    APMC(2).fit(np.random.default_rng(0).random((50, 3)))  # compiled loops and imports are not what is timed
    model = APMC(10, n_anchors=n_anchors, random_state=0)
    busy = time.process_time()
    elapsed, model = seconds(lambda: model.fit(views, mask=observed))
    busy = time.process_time() - busy
    new = slice(0, min(n, 10_000))
    predict, labels = seconds(lambda: model.predict([view[new] for view in views], mask=observed[new]))
    same = float((labels == model.labels_[new]).mean())
    print(json.dumps({
        "fit s": elapsed, "of the processors s": busy,
        "ARI": float(adjusted_rand_score(truth, model.labels_)),
        f"predict {len(labels)} s": predict, "same as fitted": same, "peak MB": high_water(),
        "S written out, MB": n * n * 8 / 2**20,
    }))  # fmt: skip


def unit_rows(views, observed):
    return [
        np.where(observed[:, [v]], x / np.linalg.norm(x, axis=1, keepdims=True), 0.0)
        for v, x in enumerate(views)
    ]


def daimc_against_plain():
    """MSRC-v1, 210 instances, five views: equal sweeps, with the authors' step and with ours."""
    views = datasets.load("mv_MSRCv1_5view").views
    observed = drop_views((210, 5), 0.3, random_state=0)
    arrays = unit_rows(views, observed)
    options = {"alpha": 1e-4, "beta": 1e4}
    with threadpool_limits(1):
        start = start_daimc(arrays, observed, 7, 5, np.random.RandomState(0))
        fast, ours = seconds(lambda: daimc(arrays, observed, *start, **options, max_iter=30, tol=0.0))
        slow, plain = seconds(
            lambda: plain_daimc([x.T for x in arrays], observed, *start, **options, n_sweeps=3)
        )
    gap = float(np.abs(ours.objective[:3] / plain[3] - 1.0).max())
    yield {"task": "a sweep", "other": "with the authors' step", "other s": slow / 3, "ours s": fast / 30,
           "ratio": 10 * slow / fast, "difference of objectives": f"{gap:.0e}"}  # fmt: skip
    try:
        from imml.cluster import DAIMC as Other
    except ImportError:
        print("imml is not installed: pip install imml==0.6.0", file=sys.stderr)
        return
    tables = [np.where(observed[:, [v]], x, np.nan) for v, x in enumerate(arrays)]
    with threadpool_limits(1):
        slow, _ = seconds(lambda: Other(n_clusters=7, random_state=0).fit(tables))
        fast, _ = seconds(lambda: DAIMC(7, random_state=0).fit(views, mask=observed))
    yield {"task": "a whole fit", "other": "imml 0.6.0", "other s": slow, "ours s": fast,
           "ratio": slow / fast, "difference of objectives": "-"}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--one", nargs=3, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print_one(*options.one)
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    cases = [(10_000, 3, 1000), (100_000, 3, 1000), (1_000_000, 2, 1000)]
    show(
        "Three views, S written out and ours",
        against_plain((500, 1000) if options.quick else (500, 1000, 2000)),
    )
    show("Large numbers of instances", large(cases[:1] if options.quick else cases))
    show("DAIMC", daimc_against_plain())


if __name__ == "__main__":
    main()
