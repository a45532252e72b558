"""Size of the page and seconds of one processor to make it: ``python -m benchmarks.bench_report``.

Planted tables with 30 % noise and 30 % gaps, as docs/report.md has them.
"""

import time

import numpy as np

from consilience import Fusion, Partitions
from consilience.report import render, summarize

SIZES = ((2_000, 10, 8), (2_800, 12, 5), (1_000_000, 10, 8), (20_000, 200, 50))


def planted(n, m, k, seed=0):
    """A partition, and base clusterings that are right for 70 % and silent for 30 % of the instances."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    base = np.where(rng.random((n, m)) < 0.3, rng.integers(0, k, (n, m)), truth[:, None])
    base[rng.random((n, m)) < 0.3] = -1
    return truth, base


def timed(function, *arguments):
    start = time.process_time()
    return function(*arguments), time.process_time() - start


def main():
    print("| instances | base clusterings | clusters | page | diagnostics | `summarize` | `render` |")
    print("|---|---|---|---|---|---|---|")
    for n, m, k in SIZES:
        truth, base = planted(n, m, k)
        fusion = Fusion(truth, Partitions.of(base, unobserved="keep"), "Planted", "It was given.", None)
        _, judged = timed(lambda fusion=fusion: fusion.diagnostics)
        summary, summed = timed(summarize, fusion)
        page, drawn = timed(render, summary)
        size = f"{len(page.encode()) / 1e6:.1f} MB"
        print(
            f"| {n:_} | {m} | {k} | {size} | {judged:.1f} s | {summed:.1f} s | {drawn:.1f} s |".replace(
                "_", " "
            )
        )


if __name__ == "__main__":
    main()
