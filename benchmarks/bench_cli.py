"""The command line and the report on large tables: time, peak memory and size of the page.

    python -m benchmarks.bench_cli [--tables parquet:5e6:5 csv:1e7:10] [--rows 1e6 1e7] [--no-pages]

`fuse` from a file to a file, by kind, rows and base clusterings: 10 clusters in each, half of the base
clusterings text, a fifth of the labels wrong and 30 % missing, text ids. Then the same from Parquet to
Parquet with the page; and the page alone, for tables of several shapes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SAVED = Path(__file__).parent / "results" / "cli.json"
TABLES = ("parquet:5e6:5", "csv:1e7:10")
PAGES = ((2_000, 10, 8), (1_000_000, 10, 8))
PIECE = 1_000_000


def piece(rng, start, rows, m):
    """Some rows of the table."""
    import pyarrow as pa

    words = np.array(list("abcdefghij"))
    truth = rng.integers(0, 10, rows)
    columns = {"id": pa.array(np.char.add("C-", np.arange(start, start + rows).astype(str)))}
    for j in range(m):
        labels = np.where(rng.random(rows) < 0.2, rng.integers(0, 10, rows), truth)
        hidden = rng.random(rows) < 0.3
        columns[f"base{j}"] = pa.array(labels if j % 2 else words[labels], mask=hidden)
    return pa.table(columns)


def write(path, n, m):
    """The table, in pieces."""
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n, PIECE):
        table = piece(rng, start, min(PIECE, n - start), m)
        if writer is None:
            parquet = path.suffix == ".parquet"
            plain = pa_csv.WriteOptions(quoting_style="none")
            writer = (
                pq.ParquetWriter(path, table.schema)
                if parquet
                else pa_csv.CSVWriter(path, table.schema, write_options=plain)
            )
        writer.write_table(table)
    writer.close()


def run_fuse(folder, kind, n, m, *, page):
    """Seconds and peak memory of the command, and the size of its page."""
    source, output = folder / f"in.{kind}", folder / f"out.{kind}"
    write(source, n, m)
    options = ["--id", "id", "-k", "10", "--unobserved", "noise", "--quiet", "-o", str(output)]
    options += ["--report", str(folder / "page.html")] if page else []
    command = [sys.executable, "-m", "consilience", "fuse", str(source), *options]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("the command failed")
    return {
        "task": "fuse and page" if page else "fuse",
        "kind": kind,
        "rows": n,
        "bases": m,
        "seconds": time.perf_counter() - start,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
        **({"page_mb": (folder / "page.html").stat().st_size / 1e6} if page else {}),
    }


def run_page(n, m, k):
    """Seconds of diagnostics, summary and page of a planted table."""
    from tests.planted import planted

    from consilience import Partitions, fuse
    from consilience.report import render, summarize

    _, base = planted(n, m, k, noise=0.3, missing=0.3, seed=0)
    fusion = fuse(Partitions.of(base), k, method="DAL", random_state=0)
    times = [time.perf_counter()]
    for step in (lambda: fusion.diagnostics, lambda: summarize(fusion), lambda: render(summarize(fusion))):
        found = step()
        times.append(time.perf_counter())
    diagnostics, summary, both = np.diff(times)
    return {
        "task": "page",
        "rows": n,
        "bases": m,
        "clusters": k,
        "diagnostics_s": diagnostics,
        "summarize_s": summary,
        "render_s": max(both - summary, 0.0),
        "page_mb": len(found.encode()) / 1e6,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=TABLES, metavar="KIND:ROWS:BASES")
    parser.add_argument("--rows", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--no-pages", action="store_true")
    arguments = parser.parse_args()
    runs = [(kind, int(float(n)), int(m), False) for kind, n, m in (t.split(":") for t in arguments.tables)]
    runs += [("parquet", int(n), 10, True) for n in arguments.rows]
    results = []
    for kind, n, m, page in runs:
        with tempfile.TemporaryDirectory() as folder:
            results.append(run_fuse(Path(folder), kind, n, m, page=page))
            print(json.dumps(results[-1]), flush=True)
    for shape in () if arguments.no_pages else PAGES:
        results.append(run_page(*shape))
        print(json.dumps(results[-1]), flush=True)
    SAVED.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
