"""Sizes that users of other tools reported as out of reach: time and memory, each in a process of its own.

Other tools that can be installed are given the same labels, where $CONSILIENCE_PEERS names a folder made by
`pip install --no-deps --target FOLDER ensembleclustering kahypar pymetis`; those in R are named and not run.
"""

import multiprocessing
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from consilience import Partitions, consensus, fuse
from consilience.bench.runner import peak, reset_peak, versions
from consilience.bench.store import Store
from consilience.generate import base_partitions

LIMIT = 60  # processor seconds of a fit
K = 15


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
        "diceR is an R package and was not run here",
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
        "SC3 is an R package and was not run here",
    ),
    Case(
        '"five days": 36 260 cells, 100 clusterings of 80 % each',
        "ClustAssess issue 4: five days estimated for 2 to 15 clusters, on 64 cores",
        36_260,
        100,
        0.2,
        "ClustAssess is an R package and was not run here",
        features=50,
    ),
)
METHODS = ("fuse", "DAL")
PEERS = ("hbgf", "hgpa")


class Scaled(NamedTuple):
    """A row of the results."""

    case: str
    reported: str
    n: int
    m: int
    missing: float
    tool: str
    method: str
    base_seconds: float = float("nan")  # to make the base clusterings, where that is part of the work
    seconds: float = float("nan")  # of the processor, from the table of labels to labels
    peak_mb: float = float("nan")
    ari: float = float("nan")
    error: str = ""
    versions: str = ""


def table(case: Case) -> tuple[np.ndarray, np.ndarray, float]:
    """Classes, base labels and what they took: k-means on columns of cells, or planted labels."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, case.n)
    if case.features:
        X = rng.standard_normal((case.n, case.features)) + 1.2 * rng.standard_normal((K, case.features))[y]
        start = time.process_time()
        base = base_partitions(X, K, case.m, subsample=1.0 - case.missing, random_state=0)
        return y, base, time.process_time() - start
    base = np.empty((case.n, case.m), dtype=np.int16)
    for j in range(case.m):
        column = rng.permutation(K)[y]
        wrong = rng.random(case.n) < 0.2
        column[wrong] = rng.integers(0, K, int(wrong.sum()))
        base[:, j] = np.where(rng.random(case.n) < case.missing, -1, column)
    unseen = np.flatnonzero((base < 0).all(axis=1))
    base[unseen, 0] = y[unseen]
    return y, base, float("nan")


def fitted(method: str, base: np.ndarray) -> np.ndarray:
    """Labels by one of ours or of a peer."""
    if method == "fuse":
        return fuse(base, K, random_state=0).labels
    if method.startswith("ensembleclustering"):
        sys.path.append(os.environ["CONSILIENCE_PEERS"])
        from ensembleclustering import ClusterEnsembles as package

        labels = np.where(base < 0, np.nan, base.astype(float)).T
        solver = method.split()[-1]
        return np.asarray(package.cluster_ensembles(labels, nclass=K, solver=solver, random_state=0))
    return np.asarray(getattr(consensus, method)(K, random_state=0).fit(Partitions.of(base)).labels_)


def measured(case: Case, method: str, answer: Any) -> None:
    """One fit, in this process; what it gave goes to `answer`."""
    warnings.simplefilter("ignore")
    row = Scaled(
        case.name, case.reported, case.n, case.m, case.missing, case.tool, method, versions=versions()
    )
    try:
        if not method.startswith("ensembleclustering"):
            fitted(method, table(case._replace(n=3000, m=10, features=0))[1])  # loads and compiles
        y, base, base_seconds = table(case)
        limit = int(time.process_time()) + LIMIT + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        before, start = reset_peak(), time.process_time()
        labels = fitted(method, base)
        seconds = time.process_time() - start
        row = row._replace(base_seconds=base_seconds, seconds=seconds, peak_mb=peak() - before)
        row = row._replace(ari=float(adjusted_rand_score(y, labels)))
    except Exception as error:
        row = row._replace(error=f"{type(error).__name__}: {error}"[:200])
    answer.send(row)


def in_own_process(case: Case, method: str, work: Callable[..., None] = measured) -> Scaled:
    """The row; one that died says so."""
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(case, method, its))
    process.start()
    its.close()
    try:
        return mine.recv()
    except EOFError:
        process.join()
        limit = f"more than {LIMIT} processor seconds, or out of memory (exit {process.exitcode})"
        return Scaled(*case[:6], method, error=limit, versions=versions())
    finally:
        process.join()


def run(folder: Path) -> None:
    """What is not in the folder yet."""
    store = Store(folder / "scale", Scaled, ("case", "method"))
    known = store.read()
    done = set(zip(known["case"], known["method"], strict=True))
    peers = [f"ensembleclustering {name}" for name in PEERS] if "CONSILIENCE_PEERS" in os.environ else []
    for method, case in product((*METHODS, *peers), CASES):
        if (case.name, method) not in done:
            row = in_own_process(case, method)
            store.add([row])
            print(f"{case.name}, {method}: {row.seconds:.1f} s, {row.error}", file=sys.stderr, flush=True)
    store.compact()


def read(folder: Path) -> pd.DataFrame:
    """All rows, in the order of the cases."""
    rows = Store(folder / "scale", Scaled, ("case", "method")).read()
    order = {case.name: place for place, case in enumerate(CASES)}
    return rows.sort_values("case", key=lambda names: names.map(order), kind="stable", ignore_index=True)
