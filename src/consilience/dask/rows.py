"""From what was learned back to the rows of the blocks: lazily, block by block."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience._support.files import whole_file
from consilience._support.optional import optional_import
from consilience.core.grouping import DistinctRows, RowIndex, find_rows, index_rows
from consilience.dask.aggregate import Terms, block_rows
from consilience.dask.blocks import Blocks, ParquetPiece, load, reading
from consilience.dask.engine import Engine, fetch
from consilience.dask.pce_blocks import Closing, final_labels
from consilience.evidence.partitions import Partitions
from consilience.inference.posterior import Evidence, judge_rows


class Looked(NamedTuple):
    """Values by distinct label row: a row of a block looks up its own."""

    terms: Terms
    rows: RowIndex
    values: dict[str, np.ndarray]
    unseen: int  # label of an instance that no base clustering saw


class Kept(NamedTuple):
    """Values by the state of the block."""

    terms: Terms
    closing: Closing
    evidence: Evidence
    unseen: int


def values_of(part: Any, number: int, key: Looked | Kept, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Values of every row of a block, by name: "labels", "confidence" and what else the method gives."""
    piece, state = part
    rows = block_rows(piece, number, key.terms)
    seen = np.asarray((rows.codes >= 0).any(axis=1))
    if isinstance(key, Looked):
        at = find_rows(key.rows, rows.codes[seen])
        if at.min(initial=0) < 0:
            raise _changed()
        found = {name: key.values[name][at] for name in names}
    else:
        found = _from_state(fetch(state), rows.codes[seen], key, names)
    return {name: _spread(found[name], seen, rows, key.unseen if name == "labels" else 0) for name in names}


def _from_state(state: Any, codes: np.ndarray, key: Kept, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    if not np.array_equal(codes, state.codes):
        raise _changed()
    labels = final_labels(state, key.closing)
    found = {"labels": labels, "reliability": state.v, "embedding": state.h}
    if "confidence" in names:
        found["confidence"] = judge_rows(key.evidence, codes, labels, leave_out=True).confidence
    return found


def _changed() -> InputError:
    return InputError(
        "a block has changed since it was fitted.", hint="blocks must be the same in every pass; fit again."
    )


def _spread(values: np.ndarray, seen: np.ndarray, rows: DistinctRows, otherwise: float) -> np.ndarray:
    out = np.full((len(seen), *values.shape[1:]), otherwise, dtype=values.dtype)
    out[seen] = values
    return out[rows.inverse]


class BlockArray:
    """Values of all rows, computed a block at a time when they are asked for.

    Iterate over it for the blocks; ``compute()`` (or ``np.asarray``) puts them together.
    """

    def __init__(
        self,
        name: str,
        engine: Engine,
        parts: Any,
        sizes: Sequence[int],
        function: Any,
        given: tuple[Any, ...],
    ) -> None:
        self._name, self._engine, self._parts, self._sizes = name, engine, parts, sizes
        self._function, self._given = function, given

    def __iter__(self) -> Iterator[np.ndarray]:
        for number, part in enumerate(self._parts()):
            yield self._engine.one(self._function, part, number, *self._given)

    def __len__(self) -> int:
        return sum(self._sizes)

    def compute(self) -> np.ndarray:
        """All values as one array."""
        return np.concatenate(list(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.compute(), dtype=dtype)

    def __repr__(self) -> str:
        return f"BlockArray({self._name}, {len(self)} rows in {len(self._sizes)} blocks)"


def delayed_calls(parts: Any, function: Any, given: tuple[Any, ...]) -> list[Any]:
    """``function(part, number, *given)`` of all parts, lazily."""
    from dask.delayed import delayed

    shared = [delayed(value, traverse=False) for value in given]
    return [delayed(function, pure=False)(part, number, *shared) for number, part in enumerate(parts)]


def dask_array(calls: list[Any], sizes: Sequence[int], dtype: Any, tail: tuple[int, ...]) -> Any:
    """The blocks of rows that the calls return, each row of shape `tail`, as one dask array."""
    import dask.array as da

    pairs = zip(calls, sizes, strict=True)
    return da.concatenate([da.from_delayed(call, (size, *tail), dtype) for call, size in pairs])


class RowValues(NamedTuple):
    """What was learned and where the rows are."""

    blocks: Blocks
    engine: Engine
    key: Looked | Kept
    states: list[Any] | None
    sizes: tuple[int, ...]

    def parts(self) -> Any:
        """Every block with its state."""
        parts = zip(self.blocks, repeat(None) if self.states is None else self.states, strict=False)
        return parts if self.blocks.kind == "stream" else list(parts)

    def collection(self, name: str, dtype: Any, tail: tuple[int, ...]) -> Any:
        """Values of all rows, lazily: a dask series or array for a dask input, else a `BlockArray`."""
        given = (self.key, name)
        if self.blocks.kind not in ("frame", "array"):
            return BlockArray(name, self.engine, self.parts, self.sizes, _one_value, given)
        calls = delayed_calls(self.parts(), _one_value, given)
        if self.blocks.kind == "frame" and not tail:
            return _series(self.blocks.original, calls, name.removesuffix("s"), dtype)
        return dask_array(calls, self.sizes, dtype, tail)

    def write(self, path: str | os.PathLike[str]) -> None:
        """A folder of Parquet files with a row per instance: ids, label, confidence; see `write_labels`."""
        optional_import("pyarrow", needed_for="writing labels", extra="dask")
        target = Path(path).absolute()
        if target.exists():
            raise FileExistsError(f"{str(target)!r} is there already. Hint: remove it, or give another name.")
        partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
        partial.mkdir(parents=True)
        try:
            self.engine.each("writing", write_block, self.parts(), self.key, self.blocks.ids, str(partial))
            os.replace(partial, target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _one_value(part: Any, number: int, key: Any, name: str) -> np.ndarray:
    return values_of(part, number, key, (name,))[name]


def _series(frame: Any, calls: list[Any], name: str, dtype: Any) -> Any:
    import dask.dataframe as dd
    import pandas as pd
    from dask.delayed import delayed

    meta = pd.Series(np.empty(0, dtype=dtype), index=frame._meta.index[:0], name=name)
    parts = [
        delayed(_with_index, pure=False)(call, piece, name)
        for call, piece in zip(calls, frame.to_delayed(), strict=True)
    ]
    return dd.from_delayed(parts, meta=meta, divisions=frame.divisions, verify_meta=False)


def _with_index(values: np.ndarray, frame: Any, name: str) -> Any:
    import pandas as pd

    return pd.Series(values, index=frame.index, name=name)


def write_block(part: Any, number: int, key: Looked | Kept, ids: tuple[str, ...], folder: str) -> str:
    """Ids, labels and confidence of a block as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    piece = part[0]
    found = values_of(part, number, key, ("labels", "confidence"))
    columns: dict[str, Any] = {}
    if isinstance(piece, ParquetPiece) and ids:
        table = reading(number, piece, lambda: load(piece, ids))
        columns = {name: table.column(name) for name in ids}
    elif hasattr(piece, "reset_index") and piece.index.name is not None:
        columns = {str(piece.index.name): pa.array(piece.index)}
    columns["label"] = found["labels"].astype(np.int32)
    columns["confidence"] = found["confidence"].astype(np.float32)
    path = f"{folder}/part-{number:05d}.parquet"
    with whole_file(path) as file:
        pq.write_table(pa.table(columns), file)
    return path


def looked_up(partitions: Partitions, values: dict[str, np.ndarray], unseen: int) -> Looked:
    """The key to values by distinct row."""
    index = index_rows(partitions.codes, partitions.counts)
    return Looked(Terms(partitions.columns, partitions.categories), index, values, unseen)
