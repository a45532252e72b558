"""`fuse` from Parquet files to Parquet files, for tables larger than memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from consilience import consensus
from consilience._support.errors import ClusterError, InputError
from consilience._support.optional import optional_import
from consilience._support.sklearn import seed_from
from consilience.dask.aggregate import Table, read_table
from consilience.dask.blocks import BLOCK_ROWS, Blocks, read_parquet
from consilience.dask.consensus import MAX_DISTINCT
from consilience.dask.engine import Engine, Progress, engine_for
from consilience.dask.pce import PCE
from consilience.dask.rows import RowValues, looked_up
from consilience.diagnostics import ClusterCount, confidence
from consilience.results.labels import check_n_clusters, fuse_partitions


class ParquetFusion(NamedTuple):
    """What `fuse_parquet` did."""

    output: Path
    n_instances: int
    n_unseen: int
    n_distinct: int | None  # distinct label rows; None if they were too many to be counted
    n_clusters: int
    sizes: np.ndarray  # instances of every cluster, those that nobody saw left out
    method: str
    reason: str
    path: str  # "distinct rows" or "blocks"
    path_reason: str
    cluster_count: ClusterCount | None = None  # how the number of clusters was found, where it was not given
    chance: str = ""  # that the base clusterings agree no more than by chance; not known of blocks


def fuse_parquet(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    n_clusters: int | Literal["auto"],
    *,
    ids: str | Sequence[str] = (),
    columns: Sequence[str] | None = None,
    method: Any = "auto",
    unobserved: Literal["error", "noise", "largest"] = "error",
    max_distinct: int = MAX_DISTINCT,
    checkpoint: str | os.PathLike[str] | None = None,
    scheduler: str | None = None,
    block_rows: int = BLOCK_ROWS,
    random_state: Any = None,
    progress: Progress | None = None,
) -> ParquetFusion:
    """Merge the base clusterings in Parquet files, and write labels and confidence as Parquet files.

    Parameters
    ----------
    source : path or list of paths
        A file, a folder of files, or files; a column per base clustering.
    output : path
        A folder, which must not exist; it appears when it is complete. Its files have the columns `ids`,
        ``label`` and ``confidence``, and their rows are in the order of the input.
    n_clusters : int or "auto"
        The number of clusters, or "auto" to find it.
    ids : str or sequence of str, default=()
        Columns that are not base clusterings; they are copied to the output.
    columns : sequence of str, optional
        The base clusterings; all columns but `ids` by default.
    method : str or estimator, default="auto"
        As in :func:`consilience.fuse`. Where there are too many distinct rows, only PCE can do it: that is
        what "auto" then means.
    unobserved : {"error", "noise", "largest"}, default="error"
        What to do with rows that have no label: refuse, label them -1, or put them in the largest cluster.
    max_distinct : int, default=5_000_000
        The most distinct label rows that are held in memory.
    checkpoint : path, optional
        A folder from which PCE on blocks goes on if it is interrupted; see :class:`consilience.dask.PCE`.
    scheduler : str, optional
        Address of a Dask scheduler. Without it the active client is used, or else this process.
    block_rows : int, default=1_000_000
        Rows that are read at a time.
    random_state : int, RandomState or None, default=None
        One seed, one answer.
    progress : callable, optional
        Called with the name of a step, how much of it is done, and how much there is.

    Returns
    -------
    done : ParquetFusion
        Where the labels are, how many clusters of what size, and which method found them why.

    Notes
    -----
    Where the distinct rows fit, the labels and confidence are those that :func:`consilience.fuse` gives for
    the whole table in memory, under the same seed.
    """
    check_n_clusters(n_clusters, "fuse_parquet")
    if Path(output).exists():
        raise FileExistsError(f"{str(output)!r} is there already. Hint: remove it, or give another name.")
    with _client(scheduler):
        blocks = read_parquet(source, ids=ids, columns=columns, block_rows=block_rows)
        engine = engine_for(blocks.kind, progress)
        table = read_table(blocks, engine, max_distinct, unobserved)
        seed = seed_from(random_state)
        if table.fits:
            answer, found = _fuse_distinct(blocks, engine, table, n_clusters, method, unobserved, seed)
        else:
            given = {"n_clusters": n_clusters, "unobserved": unobserved, "max_distinct": max_distinct}
            model = _block_method(method, {**given, "checkpoint": checkpoint}, seed)
            model._fit(blocks, engine, table)
            sizes = np.round(model._answer.evidence.prior * (table.n_rows - table.n_unseen)).astype(np.int64)
            reason = "It is the method that works on blocks."
            found = (None, model.n_clusters_, sizes, "PCE", reason, model.path_, model.path_reason_)
            answer = model._values_of_rows
        answer.write(output)
    return ParquetFusion(Path(output), table.n_rows, table.n_unseen, *found)


@contextmanager
def _client(scheduler: str | None) -> Iterator[None]:
    """The scheduler's client is the active one inside."""
    if scheduler is None:
        yield
        return
    distributed = optional_import("distributed", needed_for="a Dask scheduler", extra="dask")
    try:
        client = distributed.Client(scheduler)
    except (OSError, ValueError) as error:  # nobody there, or no address
        raise ClusterError(
            f"no Dask scheduler answers at {scheduler!r}.",
            hint="is it running, and is its address like tcp://host:8786? How long to wait is set by "
            "dask.config.set({'distributed.comm.timeouts.connect': '30s'}).",
        ) from error
    with client:
        yield


def _fuse_distinct(
    blocks: Blocks,
    engine: Engine,
    table: Table,
    n_clusters: Any,
    method: Any,
    unobserved: str,
    seed: int,
) -> tuple[RowValues, tuple[Any, ...]]:
    """`fuse` on distinct rows with counts."""
    known = table.partitions
    fusion = fuse_partitions(known, n_clusters, method, unobserved, seed, 0, None, engine.progress)
    values = {"labels": fusion.labels, "confidence": confidence(known, fusion.labels)}
    key = looked_up(known, values, 0 if unobserved == "largest" else -1)
    sizes = np.bincount(fusion.labels, known.counts).astype(np.int64)
    why = f"{known.n_rows} distinct label rows of {table.n_rows} fit in memory"
    answer = RowValues(blocks, engine, key, None, table.sizes)
    found = (known.n_rows, len(sizes), sizes, fusion.method, fusion.reason, "distinct rows", why)
    return answer, (*found, fusion.cluster_count, fusion.chance_test.sentence)


def _block_method(method: Any, given: dict[str, Any], seed: int) -> PCE:
    """PCE on blocks, with the parameters of the one that was asked for."""
    own: dict[str, Any] = {}
    if isinstance(method, consensus.PCE):
        own = clone(method).get_params()
    elif not isinstance(method, str) or method.lower() not in ("auto", "pce"):
        raise InputError(
            f"there are more than max_distinct={given['max_distinct']} distinct label rows, and only PCE "
            "works on blocks.",
            hint="use method='auto' or 'PCE', or raise max_distinct.",
        )
    return PCE(**{**own, **given, "random_state": seed})
