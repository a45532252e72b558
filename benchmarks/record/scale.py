"""Sizes that users of other tools reported as out of reach: time and memory, beside tools that install.

A method is a program of its own: a file of labels in, a file of labels out, by a script in `peers`. Processor
seconds and the peak of memory are those of the whole process, start and reading included, for ours as for
others; all have the same limits and one thread. A peer is tried on a small part of a case and then on twice
as many objects (four times, while that is cheap), until it fails, would take too long even if its time only
doubled, or has done them all. `fuse` is given the largest size that each peer finished.

Peers are left out where they are not installed. ensembleclustering 1.0.2 asks for no particular SciPy, but
all of it but hgpa fails from 1.11 on; on Python 3.11 it works with 1.9.3 and 1.10.1:

    python -m venv FOLDER
    FOLDER/bin/pip install "scipy<1.11" "numpy<2" "scikit-learn<1.6" pymetis kahypar
    FOLDER/bin/pip install --no-deps ensembleclustering
    export CONSILIENCE_PEERS=FOLDER/bin/python
    apt-get install r-base-core r-cran-clue r-bioc-consensusclusterplus  # Rscript is looked for on the PATH
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from consilience.bench.store import Store
from consilience.generate import base_partitions

SECONDS = 300  # of the processor
GIGABYTES = 12
SMALLEST = 1000  # objects that a peer is tried on; about
K = 15
HERE = Path(__file__).parent
KEYS = ("case", "method", "n")


class Case(NamedTuple):
    """What somebody wanted to do."""

    name: str
    reported: str  # by whom, and what came of it
    n: int
    m: int
    missing: float
    tool: str  # which it was
    features: int = 0  # where the base clusterings are part of the work


CASES = (
    Case(
        "40 000 objects, 100 clusterings",
        "diceR issue 166: out of memory for one matrix of 13 GB",
        40_000,
        100,
        0.0,
        "diceR is not packaged where this was measured",
    ),
    Case(
        "two million objects",
        "ClusterEnsembles issue 21: hbgf out of memory, mended since",
        2_000_000,
        10,
        0.3,
        "ensembleclustering, its new name, is below",
    ),
    Case(
        "94 655 cells",
        "SC3 issue 68: 5000 cells got a cluster, 89 655 did not",
        94_655,
        30,
        0.2,
        "SC3 is not packaged where this was measured",
    ),
    Case(
        '"five days": 36 260 cells, 100 clusterings of 80 % each',
        "ClustAssess issue 4: five days estimated for 2 to 15 clusters, on 64 cores",
        36_260,
        100,
        0.2,
        "ClustAssess is not packaged where this was measured",
        features=50,
    ),
)


class Method(NamedTuple):
    """How a method is called, and what it can take."""

    name: str
    program: tuple[str, ...]  # that runs the script; empty where there is none
    script: str
    option: str  # what the script calls it
    columns: bool = False  # makes base clusterings itself, of cases that have columns
    gaps: bool = True  # takes missing labels


def programs(setting: str | None, r: str | None) -> list[Method]:
    """The peers, by the interpreter of an environment and by that of R, where there is one."""
    python = (setting, "-I", "-W", "ignore") if setting else ()
    rscript = (r, "--vanilla") if r else ()
    return [
        *(
            Method(f"clue {name}", rscript, "clue.R", name, gaps=False)
            for name in ("DWH", "SE", "HE")  # one pass; the default; its hard form
        ),
        Method("ConsensusClusterPlus km", rscript, "consensusclusterplus.R", "km", columns=True),
        *(
            Method(f"ensembleclustering {name}", python, "ensembleclustering.py", name)
            for name in ("hbgf", "mcla")  # its default; the most accurate of those it calls fit for any size
        ),
    ]


OURS = [Method(name, (sys.executable,), "ours.py", name) for name in ("fuse", "DAL")]
PEERS = programs(os.environ.get("CONSILIENCE_PEERS"), shutil.which("Rscript"))


class Scaled(NamedTuple):
    """A row of the results."""

    case: str
    reported: str
    whole: int  # objects of the case
    n: int  # objects that the method was given
    m: int
    missing: float
    tool: str
    method: str
    base_seconds: float = float("nan")  # to make the base clusterings, where that is part of the work
    seconds: float = float("nan")  # of the processor
    peak_mb: float = float("nan")
    ari: float = float("nan")
    error: str = ""
    versions: str = ""


class Given(NamedTuple):
    """Classes, base labels, columns (none where labels are planted), and what the base labels took."""

    y: np.ndarray
    labels: np.ndarray
    columns: np.ndarray
    seconds: float = float("nan")


@cache
def table(case: Case, n: int) -> Given:
    """A case with so many objects: k-means on columns of cells, or planted labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, n)
    if case.features:
        X = rng.standard_normal((n, case.features)) + 1.2 * rng.standard_normal((K, case.features))[y]
        start = time.process_time()
        base = base_partitions(X, K, case.m, subsample=1.0 - case.missing, random_state=0)
        return Given(y, base.astype(np.int16), X, time.process_time() - start)
    base = np.empty((n, case.m), dtype=np.int16)
    for j in range(case.m):
        column = rng.permutation(K)[y]
        wrong = rng.random(n) < 0.2
        column[wrong] = rng.integers(0, K, int(wrong.sum()))
        base[:, j] = np.where(rng.random(n) < case.missing, -1, column)
    unseen = np.flatnonzero((base < 0).all(axis=1))
    base[unseen, 0] = y[unseen]
    return Given(y, base, np.empty((n, 0)))


def fitted(case: Case, method: Method, n: int) -> Scaled:
    """A method on so many objects of a case; one that failed says why."""
    row = Scaled(case.name, case.reported, case.n, n, case.m, case.missing, case.tool, method.name)
    given = table(case, n)
    told = given.columns if method.columns else given.labels
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "given", Path(folder) / "found"
        told.T.tofile(source)
        sizes = (str(number) for number in (*told.shape, K))
        script = str(HERE / "peers" / method.script)
        used = limited([*method.program, script, str(source), str(target), *sizes, method.option])
        labels = np.fromfile(target, dtype=np.int32) if target.exists() else np.empty(0)
    row = row._replace(versions=used["said"].partition("\n")[0])
    if used["exit"] or len(labels) != n:
        return row._replace(error=why(used))
    return row._replace(
        base_seconds=float("nan") if method.columns else given.seconds,
        seconds=used["seconds"],
        peak_mb=used["peak_mb"],
        ari=float(adjusted_rand_score(given.y, labels)),
    )


def limited(command: list[str]) -> dict[str, Any]:
    """What a command said and used, within the limits and on one thread."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    launcher = [sys.executable, "-I", str(HERE / "limited.py"), str(SECONDS), str(GIGABYTES)]
    ended = subprocess.run([*launcher, *command], env=os.environ | threads, capture_output=True, check=True)
    return json.loads(ended.stdout)


def why(used: dict[str, Any]) -> str:
    """The reason of a failure: a limit, or its last words."""
    if -used["exit"] == signal.SIGXCPU or used["seconds"] >= SECONDS:
        return f"more than {SECONDS} processor seconds"
    lines = [line.strip() for line in used["error"].splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("Calls:", "Execution halted"))]
    last = max((place for place, line in enumerate(lines) if "Error" in line), default=-1)
    said = " ".join(lines[last:]) or "no word"
    return f"{said[:160]} (exit {used['exit']}, {used['peak_mb'] / 1024:.1f} GB)"


def climb(case: Case, fit: Callable[[int], Scaled]) -> Scaled | None:
    """Larger and larger parts of a case, and all of it in the end: the largest that was finished."""
    largest = None
    halvings = max(int(np.log2(case.n / SMALLEST)), 0)
    while halvings >= 0:
        row = fit(case.n >> halvings)
        if row.error:
            break
        largest = row
        if 2 * row.seconds > SECONDS:  # twice as many objects take twice the time, if not more
            break
        # Where the cost is quadratic, four times as many objects are within the limit still.
        step = 2 if 16 * row.seconds < SECONDS else 1
        halvings = max(halvings - step, 0) if halvings else -1
    return largest


def run(folder: Path) -> None:
    """What is not in the folder yet."""
    store = Store(folder / "scale", Scaled, KEYS)
    rows = (Scaled(**row) for row in store.read().to_dict("records"))
    known = {(row.case, row.method, row.n): row for row in rows}

    def at(case: Case, method: Method, n: int) -> Scaled:
        key = (case.name, method.name, n)
        if key not in known:
            known[key] = row = fitted(case, method, n)
            store.add([row])
            said = f"{case.name}, {method.name}, {n} objects: {row.seconds:.1f} s, {row.error}"
            print(said, file=sys.stderr, flush=True)
        return known[key]

    for method, case in product(filter(works, OURS), CASES):
        at(case, method, case.n)
    for method, case in product(filter(works, PEERS), CASES):
        if takes(method, case) and (largest := climb(case, partial(at, case, method))):
            at(case, OURS[0], largest.n)
    store.compact()


def takes(method: Method, case: Case) -> bool:
    """Whether a method can be given a case at all."""
    return bool(case.features) if method.columns else method.gaps or not case.missing


def works(method: Method) -> bool:
    """Whether a method is installed: it is given a small table, which compiles what it compiles."""
    small = Case("small", "", 300, 5, 0.0, "", features=4)
    error = fitted(small, method, small.n).error if method.program else "no program"
    if error:
        print(f"{method.name} is left out: {error}", file=sys.stderr, flush=True)
    return not error


def read(folder: Path) -> pd.DataFrame:
    """All rows, in the order of the cases."""
    rows = Store(folder / "scale", Scaled, KEYS).read()
    order = {case.name: place for place, case in enumerate(CASES)}
    return rows.sort_values("case", key=lambda names: names.map(order), kind="stable", ignore_index=True)
