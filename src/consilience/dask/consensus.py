"""The label methods of :mod:`consilience.consensus` on tables in blocks, by way of distinct label rows."""

from __future__ import annotations

import inspect
import os
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np

from consilience import consensus
from consilience._support.errors import InputError
from consilience._support.sklearn import Interval, fit_context
from consilience.dask.aggregate import Table, read_table
from consilience.dask.blocks import Blocks, read_blocks
from consilience.dask.engine import Engine, engine_for
from consilience.dask.rows import RowValues, looked_up

MAX_DISTINCT = 5_000_000
# Attributes with an entry per instance, and what an entry is called in the output.
_PER_INSTANCE = ("labels", "confidence", "reliability", "embedding", "membership")


class BlocksMixin:
    """Fits a label method on blocks of rows.

    The blocks shrink to their distinct label rows with counts, which is all that such a method reads; the
    method itself runs on these in memory; its answer goes back to the blocks, lazily. So the result is that
    of the method on the whole table in memory.
    """

    max_distinct: int
    unobserved: str

    @fit_context(prefer_skip_nested_validation=True)
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
        return self._fit(*self._read(X))

    def _read(self, X: Any) -> tuple[Blocks, Engine, Table]:
        """One pass: the distinct rows of all blocks."""
        blocks = read_blocks(X)
        engine = engine_for(blocks.kind)
        return blocks, engine, read_table(blocks, engine, int(self.max_distinct), self.unobserved)

    def _fit(self, blocks: Blocks, engine: Engine, table: Table) -> Any:
        if table.fits:
            self._fit_distinct(blocks, engine, table)
        else:
            self._fit_blocks(blocks, engine, table)
        return self

    def _fit_blocks(self, blocks: Blocks, engine: Engine, table: Table) -> None:
        raise InputError(
            f"there are more than {self.max_distinct} distinct label rows, too many for "
            f"{type(self).__name__} in memory.",
            hint="use consilience.dask.PCE, which then works on blocks, use fewer or coarser base "
            "clusterings, or set max_distinct on the estimator if memory allows.",
        )

    def _fit_distinct(self, blocks: Blocks, engine: Engine, table: Table) -> None:
        super().fit(table.partitions)  # type: ignore[misc]
        self._name_columns(table)
        delattr(self, "row_of_instance_")  # the rows are those of the table of distinct ones
        rows = {name: getattr(self, f"{name}_", None) for name in _PER_INSTANCE}
        values = {name: np.asarray(value) for name, value in rows.items() if value is not None}
        key = looked_up(table.partitions, values, 0 if self.unobserved == "largest" else -1)
        self.path_ = "distinct rows"
        self.path_reason_ = (
            f"{table.partitions.n_rows} distinct label rows of {table.n_rows}, at most "
            f"{self.max_distinct}: solved in memory"
        )
        shapes = {name: (value.dtype, value.shape[1:]) for name, value in values.items()}
        self._keep(RowValues(blocks, engine, key, None, table.sizes), shapes)

    def _name_columns(self, table: Table) -> None:
        self.n_features_in_ = table.partitions.n_columns
        self.feature_names_in_ = np.array(table.partitions.column_names, dtype=object)

    def _keep(self, found: RowValues, shapes: dict[str, tuple[Any, tuple[int, ...]]]) -> None:
        """Values of rows as attributes; `shapes` are the type and the shape of an entry."""
        self._values_of_rows = found
        for name, (dtype, tail) in shapes.items():
            setattr(self, f"{name}_", found.collection(name, dtype, tail))

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
        light = self._without_collections
        if hasattr(X, "map_partitions"):
            return X.map_partitions(_predict_frame, light, meta=("label", np.int64))
        return X.rechunk({1: -1}).map_blocks(_predict_array, light, dtype=np.int64, drop_axis=1)

    def predict_proba(self, X: Any) -> Any:
        """The chance of every cluster for new instances; rows sum to one.

        Parameters
        ----------
        X : table of labels, dask dataframe or dask array
            As in `predict`; a dask collection gives one of its kind, a column per cluster.
        """
        if not hasattr(X, "__dask_graph__"):
            return super().predict_proba(X)  # type: ignore[misc]
        light, k = self._without_collections, len(self._answer.evidence.prior)  # type: ignore[attr-defined]
        if hasattr(X, "map_partitions"):
            meta = _chances_frame(X._meta_nonempty.iloc[:0], light, k)
            return X.map_partitions(_chances_frame, light, k, meta=meta)
        rows = X.rechunk({1: -1})
        return rows.map_blocks(_chances_array, light, k, dtype=float, chunks=(rows.chunks[0], (k,)))

    @property
    def _without_collections(self) -> Any:
        """What workers need: nothing lazy."""
        light = copy(self)
        for name in ("_values_of_rows", *(f"{name}_" for name in _PER_INSTANCE)):
            if name in vars(light):
                delattr(light, name)
        return light


def _predict_frame(frame: Any, model: Any) -> Any:
    import pandas as pd

    found = model.predict(frame.reset_index(drop=True)) if len(frame) else np.empty(0, dtype=np.int64)
    return pd.Series(found, index=frame.index, name="label")


def _chances_frame(frame: Any, model: Any, k: int) -> Any:
    import pandas as pd

    found = model.predict_proba(frame.reset_index(drop=True)) if len(frame) else np.empty((0, k))
    return pd.DataFrame(found, index=frame.index)


def _chances_array(block: np.ndarray, model: Any, k: int) -> np.ndarray:
    return np.asarray(model.predict_proba(block)) if len(block) else np.empty((0, k))


def _predict_array(block: np.ndarray, model: Any) -> np.ndarray:
    return np.asarray(model.predict(block)) if len(block) else np.empty(0, dtype=np.int64)


def with_parameters(method: type, **own: Any) -> type:
    """The method with further parameters, or other defaults of those that it has."""
    given = inspect.signature(method.__init__)  # type: ignore[misc]
    further = own.keys() - given.parameters.keys()

    def __init__(self: Any, *args: Any, **values: Any) -> None:
        values = {**own, **values}
        for name in further:
            setattr(self, name, values.pop(name))
        method.__init__(self, *args, **values)  # type: ignore[misc]

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = {
        **given.parameters,
        **{name: inspect.Parameter(name, kind, default=own[name]) for name in own},
    }
    # This is where scikit-learn looks for the parameters.
    __init__.__signature__ = given.replace(parameters=list(parameters.values()))  # type: ignore[attr-defined]
    return type(method.__name__, (method,), {"__init__": __init__})


def on_blocks(method: type, **more: Any) -> type:
    """The method on blocks, under the same name; with `max_distinct` and `more` as further parameters."""
    text = f"""{(method.__doc__ or "").split(chr(10) + chr(10))[0]}

    On tables in blocks: dask collections, Parquet files, lists of blocks. Parameters and attributes are
    those of :class:`consilience.{method.__name__}`; attributes with an entry per instance are lazy
    collections. `max_distinct` is the most distinct label rows that are solved in memory. See
    :class:`consilience.dask.PCE` for what else there is.
    """
    constraints = {
        **method._parameter_constraints,  # type: ignore[attr-defined]
        "max_distinct": [Interval(Integral, 1, None, closed="left")],
    }
    return type(
        method.__name__,
        (BlocksMixin, with_parameters(method, max_distinct=MAX_DISTINCT, **more)),
        {"__doc__": text, "__module__": "consilience.dask", "_parameter_constraints": constraints},
    )


# Every method whose cost is linear in the distinct rows; PCE has a class of its own.
MIRRORS = {
    name: on_blocks(method)
    for name in consensus.__all__
    if (method := getattr(consensus, name)).about.linear and name != "PCE"
}
