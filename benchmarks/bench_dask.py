"""Tables larger than memory: from Parquet on disk to labels on disk, by distinct rows and by blocks.

    python -m benchmarks.bench_dask [--rows 1e6 1e7 1e8] [--block-rows 1e6 1e7] [--folder DIR] [--save FILE]

Base clusterings are planted (10 of 10 clusters, a fifth of the labels wrong and 30 % missing; for distinct
rows in numbers as k-means bases have them, noise comes in patterns). Every run is a process of its own, so
that its peak memory is its own; runs on a cluster have two worker processes of one thread each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS_PER_FILE = 10_000_000
M, C = 10, 10


def write(folder: Path, n: int, kind: str) -> None:
    """Parquet files of `n` rows. "patterns": rows repeat, as with k-means runs; "random": they do not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    tables = np.array([rng.permutation(C) for _ in range(M)])
    wrong = rng.integers(0, C, (1_000, M)).astype(np.int8)  # what a pattern says where it errs
    errs = rng.random((1_000, M)) < 0.2
    hidden = rng.random((50, M)) < 0.3
    hidden[:, 0] &= ~hidden.all(axis=1)
    folder.mkdir(parents=True)
    for number, start in enumerate(range(0, n, ROWS_PER_FILE)):
        size = min(ROWS_PER_FILE, n - start)
        with pq.ParquetWriter(folder / f"{number:03d}.parquet", _schema()) as writer:
            for first in range(0, size, 1_000_000):
                rows = min(1_000_000, size - first)
                truth = rng.integers(0, C, rows)
                base = tables[:, truth].T.astype(np.int8)
                if kind == "patterns":
                    which, mask = rng.integers(0, len(wrong), rows), rng.integers(0, len(hidden), rows)
                    base = np.where(errs[which], wrong[which], base)
                    base[hidden[mask]] = -1
                else:
                    bad = rng.random((rows, M)) < 0.2
                    base[bad] = rng.integers(0, C, int(bad.sum()))
                    gone = rng.random((rows, M)) < 0.3
                    gone[gone.all(axis=1), 0] = False
                    base[gone] = -1
                ids = pa.array(np.arange(start + first, start + first + rows))
                writer.write_table(pa.table([ids, *map(pa.array, base.T.copy())], schema=_schema()))


def _schema():  # type: ignore[no-untyped-def]
    import pyarrow as pa

    return pa.schema([("id", pa.int64()), *((f"base{i}", pa.int8()) for i in range(M))])


def run(folder: str, output: str, workers: int, max_distinct: int, max_iter: int) -> dict[str, float]:
    """One run in this process: seconds of its steps and peak memory."""
    import warnings

    from consilience.consensus import PCE
    from consilience.dask import fuse_parquet

    warnings.simplefilter("ignore")
    steps: dict[str, list[float]] = {}

    def progress(step: str, done: int, total: int) -> None:
        steps.setdefault(step, []).append(time.perf_counter())

    cluster = None
    if workers:
        import dask
        from distributed import Client, LocalCluster

        # Dask makes workers return freed memory at once, which costs a third of the time of such passes.
        keep = {"MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**28}
        dask.config.set({"distributed.nanny.pre-spawn-environ": keep})
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit="4GB",
            dashboard_address=None,
            silence_logs=50,
        )
        client = Client(cluster)
        client.run(_warm)
    _warm()
    empty = _empty_round(client) if cluster else 0.0
    before = sum(client.run(time.process_time).values()) if cluster else 0.0
    start, cpu = time.perf_counter(), time.process_time()
    done = fuse_parquet(
        folder, output, C, ids="id", method=PCE(C, max_iter=max_iter, tol=0.0), max_distinct=max_distinct,
        random_state=0, progress=progress,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    found = {
        "seconds": seconds,
        "reading": steps["reading"][-1] - start,
        "writing": time.perf_counter() - steps["writing"][0],
        "rounds_a": _n_passes(steps, "round A", len(steps["writing"])),
        "rounds_b": _n_passes(steps, "round B", len(steps["writing"])),
        "iterations": (steps["round B"][-1] - steps["round A"][0]) if "round B" in steps else 0.0,
        "distinct": done.n_distinct or 0,
        "cpu": time.process_time() - cpu,
        "load": os.getloadavg()[0],
        "peak_mb": _peak_mb(),
        "empty_round": empty,
    }
    if cluster:
        found["cpu"] += sum(client.run(time.process_time).values()) - before
        found["peak_worker_mb"] = max(client.run(_peak_mb).values())
        client.close()
        cluster.close()
    return found


def _n_passes(steps: dict[str, list[float]], step: str, n_blocks: int) -> int:
    return len(steps.get(step, ())) // n_blocks


def _empty_round(client) -> float:  # type: ignore[no-untyped-def]
    """A pass whose blocks do nothing: what the cluster itself costs, the least of five."""
    from consilience.dask.engine import Cluster

    engine, times = Cluster(client), []
    for _ in range(5):
        start = time.perf_counter()
        engine.reduce("empty", _nothing, sum, list(range(20)))
        times.append(time.perf_counter() - start)
    return min(times)


def _nothing(part: int, number: int) -> int:
    return 0


def _warm() -> None:
    """Compile and import what a first run would."""
    from consilience.dask import PCE as OnBlocks

    table = np.random.RandomState(0).randint(0, 3, (300, 4)).astype(np.int8)
    OnBlocks(3, random_state=0, max_distinct=10).fit([table, table])
    OnBlocks(3, random_state=0).fit([table, table])


def _peak_mb() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(
    folder: Path, out: Path, workers: int, max_distinct: int = 5_000_000, max_iter: int = 5
) -> dict[str, float]:
    """`run` in a process of its own."""
    shutil.rmtree(out, ignore_errors=True)
    code = (
        "if __name__ == '__main__':\n"
        "    import json, sys\n"
        "    from benchmarks.bench_dask import run\n"
        f"    print(json.dumps(run({str(folder)!r}, {str(out)!r}, {workers}, {max_distinct}, {max_iter})))\n"
    )
    script = out.with_suffix(".py")
    script.write_text(code)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.getcwd(),
    }
    environment["LOKY_MAX_CPU_COUNT"] = "1"  # a process uses one core, so that processes can be compared
    done = subprocess.run(
        [sys.executable, str(script)], check=True, capture_output=True, text=True, env=environment
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, nargs="*", default=[1e6, 1e7, 1e8])
    parser.add_argument("--block-rows", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--save", type=Path, default=Path(__file__).parent / "results" / "dask.json")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="consilience-bench-", dir=arguments.folder))
    results = json.loads(arguments.save.read_text()) if arguments.save.exists() else []
    try:
        for kind, sizes in (("patterns", arguments.rows), ("random", arguments.block_rows)):
            for n in map(int, sizes):
                source = folder / f"{kind}-{n}"
                write(source, n, kind)
                for workers in (0, 1, 2):
                    if (n < 1e7 and kind == "patterns" and workers) or (n > 1e7 and workers == 1):
                        continue  # too short to compare, or too long to do three times
                    limit = 5_000_000 if kind == "patterns" else 100_000
                    found = measure(source, folder / "out", workers, limit)
                    results = [
                        row
                        for row in results
                        if (row["kind"], row["n"], row["workers"]) != (kind, n, workers)
                    ]
                    results.append({"kind": kind, "n": n, "workers": workers, **found})
                    print(json.dumps(results[-1]), flush=True)
                    arguments.save.write_text(json.dumps(results, indent=1) + "\n")
                shutil.rmtree(source)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
