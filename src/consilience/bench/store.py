"""Results on disk: tidy rows in Parquet files, added as they come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pandas as pd

from consilience._support.files import whole_file


class Row(NamedTuple):
    """One number. What identifies a fit is in `cell`; a fit that failed has its reason in `error`."""

    cell: str  # digest of everything the fit depends on
    experiment: str
    data: str
    missing: float
    seed: int
    method: str
    setting: str  # JSON of a point of the grid; empty for the defaults
    metric: str
    step: int  # of a trace; 0 otherwise
    value: float
    seconds: float
    peak_mb: float  # beyond what was in use before the fit
    error: str
    parameters: str  # JSON of all parameters of the estimator
    versions: str  # JSON


KEYS = ("data", "missing", "seed", "method", "setting", "metric", "step")  # what rows are ordered by


class Store:
    """A folder of Parquet files, one for every batch of rows; rows of another form have keys of their own."""

    def __init__(self, folder: Path | str, form: Any = Row, keys: Sequence[str] = KEYS) -> None:
        self.folder, self.form, self.keys = Path(folder), form, list(keys)

    def add(self, rows: Sequence[Any]) -> None:
        """Write rows as a new file, complete or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with whole_file(self.folder / f"{uuid4().hex}.parquet") as file:
            pd.DataFrame(rows, columns=list(self.form._fields)).to_parquet(file, index=False)

    def read(self) -> pd.DataFrame:
        """All rows, in an order that does not depend on when they came."""
        files = sorted(self.folder.glob("*.parquet"))
        frames = [pd.read_parquet(path) for path in files]
        if not frames:
            return pd.DataFrame(columns=list(self.form._fields))
        return pd.concat(frames, ignore_index=True).sort_values(self.keys, ignore_index=True)

    def compact(self) -> None:
        """All rows in one file, when a run has ended."""
        old = list(self.folder.glob("*.parquet"))
        if len(old) > 1:
            rows = self.read()
            self.add([self.form(**_named(row)) for row in rows.to_dict("records")])
            for path in old:
                path.unlink()


def _named(row: dict[Any, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in row.items()}
