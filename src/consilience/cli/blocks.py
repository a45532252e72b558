"""`fuse` by the workers of a Dask cluster, and from a table of any size to a folder of Parquet files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from consilience import dask, io
from consilience._support.optional import optional_import
from consilience.cli.results import Told
from consilience.dask.consensus import MAX_DISTINCT
from consilience.dask.engine import engine_for
from consilience.dask.reading import read_on_workers
from consilience.evidence.builder import Builder
from consilience.evidence.reading import Labels, require_ids
from consilience.io.labels import MISSING, Negative
from consilience.io.write import label_array

__all__ = ["MAX_DISTINCT", "fuse_to_folder", "read_on_dask"]


def fuse_to_folder(
    source: Any,
    output: str,
    n_clusters: Any,
    *,
    as_it_is: bool,
    on_dask: bool,
    scheduler: str | None,
    seed: int,
    told: Told,
    **settings: Any,
) -> str:
    """From a table to a folder of Parquet files, whatever its size; what was done, in words."""
    require_ids(source)
    with (
        _as_parquet(source, as_it_is, Path(output).parent) as given,
        _workers(on_dask and scheduler is None),
    ):
        done = dask.fuse_parquet(
            given.path,
            output,
            n_clusters,
            ids=() if given.id_name is None else given.id_name,
            columns=list(given.columns),
            scheduler=scheduler,
            random_state=seed,
            progress=told,
            **settings,
        )
    count = "" if done.cluster_count is None else f"\n\n{done.cluster_count.summary()}"
    chance = f"{done.chance}\n\n" if done.chance else ""
    return (
        f"{chance}{done.n_clusters} clusters of {done.n_instances} instances (sizes {done.sizes.min()} to "
        f"{done.sizes.max()}), written to {done.output}\n"
        f"Method: {done.method}. {done.reason}\nSolved by {done.path}: {done.path_reason}.{count}"
    )


@contextmanager
def read_on_dask(
    source: Any, *, as_it_is: bool, scheduler: str | None, told: Told, negative: Negative, unobserved: str
) -> Iterator[Labels]:
    """A table whose distinct label rows are found by the workers of a Dask cluster."""
    place = Path(tempfile.gettempdir())
    with _as_parquet(source, as_it_is, place) as given, _workers(scheduler is None, scheduler):
        ids = () if given.id_name is None else given.id_name
        blocks = dask.read_parquet(given.path, ids=ids, columns=list(given.columns))
        engine = engine_for(blocks.kind, told)
        yield read_on_workers(
            blocks, given, engine, negative=negative, unobserved=unobserved, most=MAX_DISTINCT
        )


@contextmanager
def _as_parquet(source: Any, as_it_is: bool, place: Path) -> Iterator[Any]:
    """The source itself, where workers can read its files, or a copy that goes when the block ends."""
    if as_it_is and _alike(source.table):
        yield source
        return
    with tempfile.TemporaryDirectory(prefix=".consilience-", dir=place) as folder:
        path = f"{folder}/table.parquet"
        _copy(source, path)
        yield io.scan(path, id=source.id_name).sources[0]


def _alike(table: Any) -> bool:
    """Whether all files of a folder have the same columns of the same types."""
    first, *others = (part.schema for part in getattr(table, "tables", [table]))
    return all(schema.equals(first) for schema in others)


def _copy(source: Any, path: str) -> None:
    """The same table as a Parquet file, for those who read nothing else."""
    builder = Builder(text=source.text, keep="counts")
    for piece in source.pieces():
        builder.add(piece)
    labels = {name: label_array(values) for name, values in builder.labels().items()}
    writer = None
    try:
        for piece in source.pieces():
            columns = {} if piece.ids is None else {str(source.id_name): piece.ids}
            for name, codes in zip(builder.names, builder.find(piece).T, strict=True):
                columns[name] = labels[name].take(pa.array(codes, mask=codes == MISSING))
            table = pa.table(columns)
            writer = writer or pa_parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


@contextmanager
def _workers(wanted: bool, scheduler: str | None = None) -> Iterator[None]:
    """A process for every core, on this machine, or those of a scheduler."""
    if not wanted and scheduler is None:
        yield
        return
    distributed = optional_import("distributed", needed_for="--engine dask", extra="dask")
    if scheduler is not None:
        with distributed.Client(scheduler):
            yield
        return
    with (
        # Its web server wants port 8787 if told no address, even without pages, and warns if that is taken.
        distributed.LocalCluster(
            n_workers=os.cpu_count(),
            threads_per_worker=1,
            dashboard_address=None,
            # Without a dashboard it still listens, at 8787, and warns where another cluster is there.
            scheduler_kwargs={"dashboard_address": "localhost:0"},
            silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield
