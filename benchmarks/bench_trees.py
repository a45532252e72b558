"""Two versions of the source side by side: processor time of every label method, by turns, in new processes.

    python -m benchmarks.bench_trees OLD/src NEW/src [--turns 3]

The fast ones run on 100 000 instances, others on 600; ten base clusterings of ten clusters, a
fifth of the labels missing. A fit on few rows comes first, so that loops are compiled.
"""

import argparse
import json
import os
import subprocess
import sys
from statistics import median

from benchmarks.bench_pce import show

MEASURE = """
import json, sys, time, warnings
import numpy as np
import consilience
from consilience import consensus

warnings.simplefilter("ignore")

def planted(n):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 10, n)
    base = np.where(rng.random((n, 10)) < 0.3, rng.integers(0, 10, (n, 10)), truth[:, None])
    return np.where(rng.random((n, 10)) < 0.2, -1, base)

def used(function):
    start = time.process_time()
    function()
    return time.process_time() - start

LINEAR = {names}
tables = {{n: planted(n) for n in (300, 600, 100_000)}}
tables = {{n: table[(table >= 0).any(axis=1)] for n, table in tables.items()}}
found = {{}}
for name in {methods}:
    table = tables[100_000 if name in LINEAR else 600]
    make = lambda: getattr(consilience, name)(10, random_state=0)
    make().fit(tables[300])
    found[name] = used(lambda: make().fit(table).confidence_)
fuse = lambda: consilience.fuse(tables[100_000], 10, random_state=0).diagnostics
consilience.fuse(tables[300], 10, random_state=0).diagnostics
found["fuse"] = used(fuse)
print(json.dumps(found))
"""

# Fast enough for many instances; the others compare all pairs of rows, or take their time.
LINEAR = ["CSPA", "DAL", "HBGF", "KC", "KCC", "LWGP", "MCLA", "MixtureConsensus", "PCE", "SEC", "USENC"]
SMALL = ["BCE", "CESHL", "DREC", "EAC", "ECCMS", "ECPCS", "LWEA", "NMFC", "PTA", "PTGP", "SCCBG", "SPCE"]


def measured(tree: str) -> dict[str, float]:
    """Processor seconds of every method, with the source in this folder."""
    code = MEASURE.format(names=LINEAR, methods=[*LINEAR, *SMALL])
    environment = {**os.environ, "PYTHONPATH": tree}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def rows(old: str, new: str, turns: int):
    """A line per method: medians of both, and the median of the ratios of one turn."""
    pairs = [(measured(old), measured(new)) for _ in range(turns)]
    for name in pairs[0][0]:
        before, after = ([pair[side][name] for pair in pairs] for side in (0, 1))
        ratio = median(b / a for a, b in zip(before, after, strict=True))
        yield {
            "method": name,
            "before (s)": f"{median(before):.2f}",
            "after (s)": f"{median(after):.2f}",
            "after / before": f"{ratio:.2f}",
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    show("Processor time before and after", rows(given.old, given.new, given.turns))
