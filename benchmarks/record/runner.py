"""Run what is not there yet; whatever was finished stays, whenever the process ends."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from benchmarks.record.design import DRAWS, ROWS, Cell, cells
from benchmarks.record.fits import KEYS, Fitter, Result
from consilience.bench.store import Store

TOGETHER = 200  # fits after which files are made one


def run(
    folder: Path,
    *,
    draws: int = DRAWS,
    rows: int = ROWS,
    only: tuple[str, ...] = (),
    minutes: float = float("inf"),
    fit: Callable[[Cell], Result] | None = None,
    again: tuple[str, ...] = (),
) -> int:
    """How many fits were made; each is on disk before the next begins.

    `again` names methods whose fits are made anew and take the place of the old ones.
    """
    store, fit = Store(folder, Result, KEYS), fit or Fitter()
    known = read(folder)
    done = set(known["cell"][~known["method"].isin(again)])
    todo = [cell for cell in cells(draws, rows, only) if cell.digest not in done]
    if again:
        before = set(known["cell"])
        todo = [cell for cell in todo if cell.method in again and cell.digest in before]
    end, made = time.monotonic() + 60.0 * minutes, 0
    for cell in todo:
        if time.monotonic() > end:
            break
        store.add([fit(cell)._replace(at=time.time())])
        made += 1
        if made % TOGETHER == 0:
            store.compact()
            print(f"{made} of {len(todo)}: {cell.table}", file=sys.stderr, flush=True)
    store.compact()
    return made


def read(folder: Path) -> pd.DataFrame:
    """All rows; of a fit that was made twice the last."""
    rows = Store(folder, Result, KEYS).read()
    return rows.sort_values("at", kind="stable").drop_duplicates("cell", keep="last").sort_index()
