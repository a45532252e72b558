"""The label methods of :mod:`consilience.consensus` on tables in blocks, by way of distinct label rows."""

from __future__ import annotations

import os
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from consilience import consensus
from consilience.dask.aggregate import Table, finish, merge, summarize
from consilience.dask.blocks import Blocks, read_blocks
from consilience.dask.engine import Engine, Progress, engine_for
from consilience.dask.rows import Answer, looked_up

MAX_DISTINCT = 5_000_000
# Attributes with an entry per instance, and what an entry is called in the output.
_PER_INSTANCE = ("labels", "confidence", "reliability", "embedding", "membership")


class BlocksMixin:
    """Fits a label method of the room on blocks of rows.

    The blocks shrink to their distinct label rows with counts, which is all that such a method reads; the
    method itself runs on these in memory; its answer goes back to the blocks, lazily. So the result is that
    of the method on the whole table in memory.
    """

    max_distinct: int = MAX_DISTINCT
    unobserved: str

    def fit(self, X: Any, y: Any = None) -> Any:
        """Merge the base clusterings.

        Parameters
        ----------
        X : dask dataframe or array, path, list of blocks, function or Blocks
            The table of base labels, a column per base clustering: a dask collection; a Parquet file or
            folder (see :func:`consilience.dask.read_parquet`); a list of arrays or frames; a function that
            returns an iterator over such.
        y : ignored
            There for scikit-learn's interface.
        """
        blocks, engine, table = self._read(X)
        if table.counts is None:
            raise ValueError(
                f"there are more than {self.max_distinct} distinct label rows, too many for "
                f"{type(self).__name__} "
                "in memory. Hint: use consilience.dask.PCE, which then works on blocks, use fewer or "
                "coarser base "
                "clusterings, or set max_distinct on the estimator if memory allows."
            )
        self._fit_distinct(blocks, engine, table)
        return self

    def _read(self, X: Any, progress: Progress | None = None) -> tuple[Blocks, Engine, Table]:
        """One pass: the distinct rows of all blocks."""
        blocks = read_blocks(X)
        engine = engine_for(blocks.kind, progress)
        limit = int(self.max_distinct)
        parts = blocks if blocks.kind == "stream" else list(blocks)
        summary = engine.reduce("reading", summarize, partial(merge, max_distinct=limit), parts, limit)
        return blocks, engine, finish(summary, self.unobserved)

    def _fit_distinct(self, blocks: Blocks, engine: Engine, table: Table) -> None:
        super().fit(table.partitions)  # type: ignore[misc]
        self._name_columns(table)
        rows = {name: getattr(self, f"{name}_", None) for name in _PER_INSTANCE}
        values = {name: np.asarray(value) for name, value in rows.items() if value is not None}
        key = looked_up(table.partitions, values, 0 if self.unobserved == "largest" else -1)
        self.path_ = "distinct rows"
        self.path_reason_ = (
            f"{len(table.partitions.codes)} distinct label rows of {table.n_rows}, at most "
            f"{self.max_distinct}: "
            "solved in memory"
        )
        self._keep(Answer(blocks, engine, key, None, table.sizes), values)

    def _name_columns(self, table: Table) -> None:
        self.n_features_in_ = table.partitions.n_columns
        self.feature_names_in_ = np.array(table.partitions.column_names, dtype=object)

    def _keep(self, answer: Answer, values: dict[str, np.ndarray]) -> None:
        self._values_of_rows = answer
        for name, value in values.items():
            width = value.shape[1] if value.ndim == 2 else None
            self.__dict__[f"{name}_"] = answer.collection(name, value.dtype, width)

    def write_labels(self, path: str | os.PathLike[str]) -> None:
        """Write a folder of Parquet files: the ids of the input, ``label`` and ``confidence``.

        Parameters
        ----------
        path : path
            The folder, which must not exist. It appears when all its files are complete.
        """
        self._values_of_rows.write(path)

    def predict(self, X: Any) -> Any:
        """Clusters of new instances from whatever base labels they have.

        Parameters
        ----------
        X : table of labels, dask dataframe or dask array
            A table in memory gives an array; a dask collection gives one of its kind, lazily.
        """
        if not hasattr(X, "__dask_graph__"):
            return super().predict(X)  # type: ignore[misc]
        light = copy(self)  # the workers need no lazy collections
        for name in ("_values_of_rows", *(f"{name}_" for name in _PER_INSTANCE)):
            light.__dict__.pop(name, None)
        if hasattr(X, "map_partitions"):
            return X.map_partitions(_predict_frame, light, meta=("label", np.int64))
        return X.rechunk({1: -1}).map_blocks(_predict_array, light, dtype=np.int64, drop_axis=1)


def _predict_frame(frame: Any, model: Any) -> Any:
    import pandas as pd

    found = model.predict(frame.reset_index(drop=True)) if len(frame) else np.empty(0, dtype=np.int64)
    return pd.Series(found, index=frame.index, name="label")


def _predict_array(block: np.ndarray, model: Any) -> np.ndarray:
    return np.asarray(model.predict(block)) if len(block) else np.empty(0, dtype=np.int64)


def _on_blocks(method: type) -> type:
    """The method on blocks, under the same name and with the same parameters."""
    summary = (method.__doc__ or "").split("\n\n")[0]
    text = (
        f"{summary}\n\n    On tables in blocks: dask collections, Parquet files, lists of blocks. "
        "Parameters and "
        f"attributes are\n    those of :class:`consilience.{method.__name__}`; attributes with an entry "
        "per instance "
        "are lazy\n    collections. See :class:`consilience.dask.PCE` for what else there is."
    )
    return type(method.__name__, (BlocksMixin, method), {"__doc__": text, "__module__": __name__})


DAL = _on_blocks(consensus.DAL)
HBGF = _on_blocks(consensus.HBGF)
KCC = _on_blocks(consensus.KCC)
LWGP = _on_blocks(consensus.LWGP)
MixtureConsensus = _on_blocks(consensus.MixtureConsensus)
SEC = _on_blocks(consensus.SEC)
USENC = _on_blocks(consensus.USENC)
