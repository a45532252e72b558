"""`fuse` on tables beyond memory: in blocks, by this process or by Dask."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from consilience import dask
from consilience._support.errors import InputError
from consilience._support.optional import optional_import
from consilience.cli.results import Told
from consilience.dask.aggregate import read_table
from consilience.dask.blocks import BLOCK_ROWS, load
from consilience.dask.consensus import MAX_DISTINCT
from consilience.dask.engine import engine_for
from consilience.dask.rows import looked_up, values_of
from consilience.evidence import reading
from consilience.evidence.builder import Builder
from consilience.evidence.labels import Beside, as_arrow, read_labels, sources_of
from consilience.evidence.partitions import MISSING, Partitions
from consilience.evidence.reading import rebatched
from consilience.io.files import STDIO, Source, is_parquet


def is_folder(output: str | None) -> bool:
    """Whether the answer goes to a folder of Parquet files."""
    return output is not None and output != STDIO and not Path(output).suffix


def fuse_to_folder(
    path: str,
    output: str,
    n_clusters: Any,
    source: Source,
    *,
    method: Any,
    unobserved: Any,
    on_dask: bool,
    scheduler: str | None,
    checkpoint: str | None,
    seed: int,
    told: Told,
) -> str:
    """From a table to a folder of Parquet files; what was done, in words."""
    own = source.of(path)
    with _as_parquet(path, source, Path(output).parent) as given, _workers(on_dask and scheduler is None):
        done = dask.fuse_parquet(
            given,
            output,
            n_clusters,
            ids=() if own.id_column is None else own.id_column,
            columns=list(own.columns) or None,
            method=method,
            unobserved=unobserved,
            checkpoint=checkpoint,
            scheduler=scheduler,
            random_state=seed,
            progress=told,
        )
    count = "" if done.cluster_count is None else f"\n\n{done.cluster_count.summary()}"
    return (
        f"{done.n_clusters} clusters of {done.n_instances} instances (sizes {done.sizes.min()} to "
        f"{done.sizes.max()}), written to {done.output}\n"
        f"Method: {done.method}. {done.reason}\nSolved by {done.path}: {done.path_reason}.{count}"
    )


@contextmanager
def _as_parquet(path: str, source: Source, place: Path) -> Iterator[str]:
    """The path of a Parquet file or folder, or of a copy that goes when the block ends."""
    if is_parquet(path) and not source.marks:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix=".consilience-", dir=place) as folder:
        copy = f"{folder}/table.parquet"
        as_parquet(path, source, copy)
        yield copy


class InPieces:
    """A table of labels in files that are read twice: for its label rows, and to write beside its ids."""

    def __init__(self, path: str, source: Source, told: Any) -> None:
        self._path, self._source, self._told = path, source, told
        self.id_name = source.id_name([path])

    def compact(self, *, unobserved: str = "error") -> Partitions:
        """The distinct rows of the table with counts."""
        read = read_labels([self._path], self._source)
        table, self._instances = read.compact(
            unobserved=unobserved, again=True, most=MAX_DISTINCT, told=self._told
        )
        return table

    @property
    def n_instances(self) -> int:
        """How many there are."""
        return self._instances.n_instances

    def batches(self) -> Iterator[Beside]:
        """All instances, from the file again."""
        return self._instances.batches()


class OnDask:
    """A table of labels whose distinct label rows are found by the workers of a Dask cluster."""

    def __init__(self, path: str, source: Source, told: Told) -> None:
        self._told = told
        own = source.of(path)
        self.id_name = own.id_column
        ids = () if own.id_column is None else own.id_column
        self._blocks = dask.read_parquet(
            path, ids=ids, columns=list(own.columns) or None, block_rows=BLOCK_ROWS
        )
        self.n_instances = 0

    def compact(self, *, unobserved: str = "error") -> Partitions:
        """The distinct rows of the table with counts."""
        engine = engine_for(self._blocks.kind, self._told)
        found = read_table(self._blocks, engine, MAX_DISTINCT, unobserved)
        if not found.fits:
            raise InputError(
                f"there are more than {MAX_DISTINCT} distinct label rows.",
                hint="they are merged by PCE on blocks, to a folder: -o merged/.",
            )
        self.n_instances = found.n_rows
        known = found.partitions
        self._key = looked_up(known, {"row": np.arange(known.n_rows)}, 0)
        if not found.n_unseen:
            return known
        nobody = np.full((1, known.n_partitions), MISSING, dtype=known.codes.dtype)
        return Partitions.of_rows(
            np.vstack([known.codes, nobody]),
            known.categories,
            known.column_names,
            counts=np.append(known.counts, found.n_unseen),
            kept=known.columns,
        )

    def batches(self) -> Iterator[Beside]:
        """All instances, from the files again."""
        start = 0
        for ids, rows in rebatched(self._beside()):
            own = np.arange(start, start + len(rows)) if ids is None else ids
            yield Beside({self.id_name or "row": own}, rows)
            start += len(rows)

    def _beside(self) -> Iterator[reading.Beside]:
        for number, piece in enumerate(self._blocks):
            rows = values_of((piece, None), number, self._key, ("row",))["row"]
            if self.id_name is None:
                yield reading.Beside(None, rows)
                continue
            start = 0
            for ids in load(piece, (self.id_name,)).column(0).chunks:
                yield reading.Beside(ids, rows[start : start + len(ids)])
                start += len(ids)


@contextmanager
def opened(
    path: str, source: Source, told: Told, *, on_dask: bool, scheduler: str | None
) -> Iterator[InPieces | OnDask]:
    """A table in blocks."""
    if not on_dask:
        yield InPieces(path, source, told)
        return
    with _as_parquet(path, source, Path(path).parent) as given, _workers(scheduler is None, scheduler):
        yield OnDask(given, source.of_copy(path), told)


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


def as_parquet(path: str, source: Source, target: str) -> None:
    """The same table as a Parquet file, for those who read nothing else."""
    (own,) = sources_of([path], source)
    builder = Builder(text=own.text, keep="counts")
    for piece in own.pieces():
        builder.add(piece)
    labels = {name: as_arrow(values) for name, values in builder.labels().items()}
    writer = None
    try:
        for piece in own.pieces():
            columns = {} if piece.ids is None else {str(own.id_name): piece.ids}
            for name, codes in zip(builder.names, builder.find(piece).T, strict=True):
                columns[name] = labels[name].take(pa.array(codes, mask=codes == MISSING))
            table = pa.table(columns)
            writer = writer or pa_parquet.ParquetWriter(target, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
