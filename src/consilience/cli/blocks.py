"""`fuse` on tables beyond memory: in blocks, by this process or by Dask."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from consilience import dask
from consilience._support.errors import InputError, UsageError
from consilience._support.optional import optional_import
from consilience._support.warnings import warn
from consilience.cli.memory import why_not
from consilience.cli.results import Told
from consilience.core.grouping import DistinctRows, distinct_rows
from consilience.dask.aggregate import RowIndex, read_table
from consilience.dask.blocks import BLOCK_ROWS, load
from consilience.dask.consensus import MAX_DISTINCT
from consilience.dask.engine import engine_for
from consilience.dask.rows import looked_up, values_of
from consilience.evidence.labels import (
    Beside,
    Coder,
    LabelRows,
    as_arrow,
    checked,
    coded_pieces,
    hint_of_opinions,
    merged,
    refuse_opinions,
    say_marks,
)
from consilience.evidence.partitions import MISSING, Partitions
from consilience.io import files
from consilience.io.files import STDIO, Source, is_parquet, is_text
from consilience.io.ids import keys_of, require_distinct_keys


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
    """A table of labels in one file that is read twice: for its label rows, and to write beside its ids."""

    def __init__(self, path: str, source: Source, told: Any) -> None:
        self._path, self._source, self._told = path, source, told
        self._coder = Coder()
        self.n_instances = 0
        self.id_name = source.id_name([path])

    def compact(self, *, unobserved: str = "error") -> Partitions:
        """The distinct rows of the table with counts."""
        parts: list[DistinctRows] = []
        keys: list[np.ndarray] = []
        large = 0
        for piece in coded_pieces(self._path, self._source, self._coder):
            if piece.ids is not None:
                keys.append(keys_of(piece.ids))
            parts.append(distinct_rows(piece.codes, self._coder.sizes))
            large += len(parts[-1].codes)
            if large > 2 * len(parts[0].codes) + files.ROWS_A_PIECE:
                parts = [merged(parts, self._coder.sizes, number=False)]
                large = len(parts[0].codes)
                self._refuse_too_many(large)
            self.n_instances += len(piece.codes)
            self._told("reading", self.n_instances, self.n_instances)
        hint = hint_of_opinions(self.id_name, list(self._coder.known))
        require_distinct_keys(self._path, keys, self._ids_again, hint=hint)
        found = merged(parts, self._coder.sizes, number=False)
        self._refuse_too_many(len(found.codes))
        labels = self._coder.labels(text=is_text(self._path))
        rows = LabelRows(list(self._coder.known), labels, found.codes, found.counts, None)
        refuse_opinions(self._path, self._source, rows)
        try:
            table, number = checked(rows, id_column=self.id_name)
        except InputError as error:  # names the row of a label, which is forgotten here, by its place
            said = re.sub(r" in row \d+( and \d+ others?)?,", ",", error.message)
            raise type(error)(said, error.hint, error.command) from error
        for j in sorted(set(range(table.n_columns)) - set(table.columns)):
            warn(
                f"base clustering {rows.names[j]!r} (column {j}) has no label at all and is ignored.",
                hint="drop the column, or check how missing entries are marked.",
            )
        if unobserved == "error" and not table.seen.all():
            raise InputError(
                f"no base clustering saw {int(table.counts[~table.seen].sum())} of the instances.",
                hint="remove these instances, or choose what to do with them by --unobserved noise or "
                "--unobserved largest.",
            )
        say_marks(table)
        self._index, self._number = RowIndex.of(found.codes, self._coder.sizes), number
        return table

    def _refuse_too_many(self, n_rows: int) -> None:
        if n_rows > MAX_DISTINCT:
            raise InputError(
                f"{self._path} has more than {MAX_DISTINCT} distinct label rows.",
                hint="they are merged by PCE on blocks, from Parquet to a folder: -o merged/.",
            )

    def _ids_again(self) -> Iterator[pa.Array]:
        assert self.id_name is not None
        for piece in files.pieces(self._path, self._source, text=True, only_ids=True):
            yield piece.column(0)

    def batches(self) -> Iterator[Beside]:
        """All instances, from the file again."""
        yield from rebatched(self._beside(), self.id_name)

    def _beside(self) -> Iterator[tuple[pa.Array | None, np.ndarray]]:
        for piece in coded_pieces(self._path, self._source, self._coder):
            yield piece.ids, self._number[self._index.find(piece.codes)]


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
        yield from rebatched(self._beside(), self.id_name)

    def _beside(self) -> Iterator[tuple[Any, np.ndarray]]:
        for number, piece in enumerate(self._blocks):
            rows = values_of((piece, None), number, self._key, ("row",))["row"]
            if self.id_name is None:
                yield None, rows
                continue
            start = 0
            for ids in load(piece, (self.id_name,)).column(0).chunks:
                yield ids, rows[start : start + len(ids)]
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


def check(paths: list[str], source: Source) -> None:
    """Refuse what cannot be read in blocks."""
    if reason := why_not(paths, source):
        raise UsageError(
            f"--engine blocks and dask read one table: {reason}.", hint="or use --engine memory."
        )


def rebatched(parts: Iterable[tuple[pa.Array | None, np.ndarray]], id_name: str | None) -> Iterator[Beside]:
    """The same instances, as many at a time as are written at a time."""
    waiting: list[tuple[pa.Array | None, np.ndarray]] = []
    n_waiting = start = 0

    def batch() -> Beside:
        rows = np.concatenate([rows for _, rows in waiting])
        known = [ids for ids, _ in waiting if ids is not None]
        ids = pa.chunked_array(known).combine_chunks() if known else np.arange(start, start + len(rows))
        return Beside({id_name or "row": ids}, rows)

    for ids, rows in parts:
        while n_waiting + len(rows) >= files.ROWS_A_PIECE:
            here = files.ROWS_A_PIECE - n_waiting
            waiting.append((None if ids is None else ids[:here], rows[:here]))
            yield batch()
            start, waiting, n_waiting = start + files.ROWS_A_PIECE, [], 0
            ids, rows = None if ids is None else ids[here:], rows[here:]
        if len(rows):
            waiting.append((ids, rows))
            n_waiting += len(rows)
    if n_waiting:
        yield batch()


def as_parquet(path: str, source: Source, target: str) -> None:
    """The same table as a Parquet file, for those who read nothing else."""
    coder = Coder()
    for _ in coded_pieces(path, source, coder):
        pass
    labels = [as_arrow(own) for own in coder.labels(text=is_text(path))]
    id_column = source.of(path).id_column
    writer = None
    try:
        for piece in coded_pieces(path, source, coder):
            columns = {} if piece.ids is None else {str(id_column): piece.ids}
            for name, own, codes in zip(coder.known, labels, piece.codes.T, strict=True):
                columns[name] = own.take(pa.array(codes.astype(np.int32), mask=codes == MISSING))
            table = pa.table(columns)
            writer = writer or pa_parquet.ParquetWriter(target, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
