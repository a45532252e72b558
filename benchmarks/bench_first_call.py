"""The first call of a new process: the README's example beside importing scikit-learn.

    python -m benchmarks.bench_first_call [--times 5]

Each run is a process of its own; what is compared takes turns. "Empty" is the first call after installation,
with no compiled loop in the cache, "filled" a later one. The README's table is small enough for loops that
are not compiled; the second table is not.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
EXAMPLE = r"```python\n(from consilience import fuse\n.*?= fuse\(.*?\n)"
TABLE = """
import numpy as np
from consilience import fuse
rng = np.random.default_rng(0)
truth = np.arange(2_000) % 4
labels = np.where(rng.random((2_000, 6)) < 0.7, truth[:, None], rng.integers(0, 4, (2_000, 6)))
fuse(np.where(rng.random(labels.shape) < 0.2, -1, labels), n_clusters=4, random_state=0)
"""


def seconds(code, cache):
    """Processor time of a process that runs the code: what else the machine does matters little to it."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    process = subprocess.Popen([sys.executable, "-c", code], env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("the code failed")
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    example = re.search(EXAMPLE, README.read_text(), re.DOTALL)[1]
    found = {}
    for _ in range(times):
        found.setdefault("import sklearn", []).append(seconds("import sklearn", "unused"))
        for name, code in (("the README's fuse", example), ("fuse, 2000 x 6", TABLE)):
            with tempfile.TemporaryDirectory() as cache:
                for state in ("empty", "filled"):
                    found.setdefault(f"{name}, {state} cache", []).append(seconds(code, cache))
    unit = statistics.median(found["import sklearn"])
    print("| first call | processor s | times `import sklearn` |\n|---|---|---|")
    for name, each in found.items():
        median = statistics.median(each)
        print(f"| {name} | {median:.2f} | {median / unit:.2f} |")


if __name__ == "__main__":
    main()
