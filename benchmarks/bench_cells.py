"""What missing cells and mixed columns cost: `fuse_views` on one table with gaps beside the same complete.

    python -m benchmarks.bench_cells            1e5 rows (some ten minutes on one core)
    python -m benchmarks.bench_cells --quick    a tenth of the rows

Fifty columns: thirty numbers, ten answers of yes and no, eight categories of five levels, two dates; ten
planted classes; 30 % of the cells are removed at random. Each run is a process of its own; complete and with
gaps take turns. Time is in processor seconds after the loops have been compiled, confidence included, of
which reading is the part before anything is clustered. Memory is the peak of the process, library and table
included.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from benchmarks.bench_pce import high_water, show
from consilience import check_views, fuse_views

N_CLUSTERS, MISSING = 10, 0.3
NUMBERS, ANSWERS, CATEGORIES, DATES = 30, 10, 8, 2
LEVELS = np.array(["none", "mild", "fair", "strong", "severe"])


def planted(n, missing):
    """Classes and a table of mixed columns."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_CLUSTERS, n)
    columns = {}
    for j in range(NUMBERS):
        columns[f"number{j}"] = np.round(rng.normal(size=N_CLUSTERS)[y] + rng.normal(size=n), 3)
    for j in range(ANSWERS):
        columns[f"answer{j}"] = np.where(rng.random(n) < rng.random(N_CLUSTERS)[y], "yes", "no")
    for j in range(CATEGORIES):
        chance = rng.dirichlet(np.ones(len(LEVELS)), N_CLUSTERS).cumsum(axis=1)[:, :-1]
        columns[f"level{j}"] = LEVELS[(rng.random(n)[:, None] > chance[y]).sum(axis=1)]
    for j in range(DATES):
        day = (300 * rng.random(N_CLUSTERS)[y] + 400 * rng.random(n)).astype("timedelta64[D]")
        columns[f"date{j}"] = np.datetime_as_string(np.datetime64("2020-01-01") + day)
    table = pd.DataFrame(columns)
    return y, table.mask(rng.random(table.shape) < missing) if missing else table


def print_alone(n, missing):
    """One fusion in this process, as a line of JSON."""
    warnings.simplefilter("ignore")
    y, table = planted(n, missing)
    fuse_views({"table": table[:1_000]}, N_CLUSTERS, random_state=0).confidence  # noqa: B018 - compiles
    before = time.process_time()
    check_views({"table": table})
    reading = time.process_time() - before
    before = time.process_time()
    fusion = fuse_views({"table": table}, N_CLUSTERS, random_state=0)
    fusion.confidence  # noqa: B018 - it belongs to the answer
    seconds = time.process_time() - before
    ari = adjusted_rand_score(y, fusion.labels)
    print(json.dumps({"processor s": seconds, "of it reading": reading, "MB": high_water(), "ARI": ari}))


def _alone(n, missing):
    command = [sys.executable, "-m", "benchmarks.bench_cells", "--alone", str(n), str(missing)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def beside_complete(n, repeats):
    """A row each for the complete table and the one with gaps: medians, and the ratio of the two."""
    runs = [(_alone(n, 0.0), _alone(n, MISSING)) for _ in range(repeats)]
    medians = [
        {name: statistics.median(run[name] for run in side) for name in side[0]}
        for side in zip(*runs, strict=True)
    ]
    for what, found in zip(("complete", f"{MISSING:.0%} of the cells missing"), medians, strict=True):
        ratio = found["processor s"] / medians[0]["processor s"]
        yield {"table": f"n = {n:.0e}, {what}", **found, "times complete": ratio}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--alone", nargs=2, metavar=("N", "MISSING"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        print_alone(int(options.alone[0]), float(options.alone[1]))
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    n = 10**4 if options.quick else 10**5
    results = show(
        "Fifty mixed columns, complete and with missing cells", beside_complete(n, options.repeats)
    )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
