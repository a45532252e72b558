"""Run what is not there yet; whatever was finished stays, whenever the process ends."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed

from benchmarks.record.design import DRAWS, ROWS, Cell, cells
from benchmarks.record.fits import KEYS, Fitter, Result
from consilience.bench.store import Store

TOGETHER = 400  # tables after which files are made one

Fit = Callable[[Cell], Result]


def run(
    folder: Path,
    *,
    draws: int = DRAWS,
    rows: int = ROWS,
    only: tuple[str, ...] = (),
    methods: tuple[str, ...] = (),
    minutes: float = float("inf"),
    jobs: int = 1,
    fit: Fit | None = None,
    again: tuple[str, ...] = (),
) -> int:
    """How many fits were made; those of a table are on disk as soon as all of its methods are done.

    `jobs` tables are worked on at once, each on one thread. `methods` names those to fit, all by default;
    `again` names methods whose fits are made anew and take the place of the old ones.
    """
    store, known = Store(folder, Result, KEYS), read(folder)
    done = set(known["cell"][~known["method"].isin(again)])
    todo = [cell for cell in cells(draws, rows, only) if cell.digest not in done]
    if methods:
        todo = [cell for cell in todo if cell.method in methods]
    if again:
        before = set(known["cell"])
        todo = [cell for cell in todo if cell.method in again and cell.digest in before]
    tables = [list(group) for _, group in groupby(todo, key=lambda cell: cell.table)]
    work, made = delayed(_fit_table), 0
    found = Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=jobs)(
        work(table, fit) for table in _until(tables, 60.0 * minutes)
    )
    for count, fits in enumerate(found, start=1):
        store.add(fits)
        made += len(fits)
        if count % TOGETHER == 0:
            store.compact()
            print(f"{made} of {len(todo)}: draw {fits[0].draw}, {fits[0].data}", file=sys.stderr, flush=True)
    store.compact()
    return made


def _until(tables: Iterable[list[Cell]], seconds: float) -> Iterator[list[Cell]]:
    """Tables as long as there is time to begin another."""
    end = time.monotonic() + seconds
    for table in tables:
        if time.monotonic() > end:
            return
        yield table


def _fit_table(table: Sequence[Cell], fit: Fit | None) -> list[Result]:
    fit = fit or _fitter()
    return [fit(cell)._replace(at=time.time()) for cell in table]


@cache
def _fitter() -> Fitter:
    """One in a process, which remembers what is loaded and compiled."""
    return Fitter()


def read(folder: Path) -> pd.DataFrame:
    """All rows; of a fit that was made twice the last."""
    rows = Store(folder, Result, KEYS).read()
    return rows.sort_values("at", kind="stable").drop_duplicates("cell", keep="last").sort_index()


def small(rows: pd.DataFrame) -> pd.DataFrame:
    """The same with scores and costs in single precision: what fits are kept by stays as it is."""
    kept = {*KEYS, "at"}
    floats = [name for name in rows.select_dtypes("float64") if name not in kept]
    return rows.astype(dict.fromkeys(floats, "float32"))
