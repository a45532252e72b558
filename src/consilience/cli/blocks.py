"""`fuse` on Parquet beyond memory: in blocks, by this process or by Dask."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from consilience import dask
from consilience._optional import optional_import
from consilience.cli.errors import UsageError
from consilience.cli.files import is_parquet
from consilience.cli.results import Told


def fuse_blocks(
    paths: Sequence[str],
    output: str | None,
    n_clusters: Any,
    *,
    ids: str | None,
    columns: str | None,
    method: Any,
    unobserved: Any,
    on_dask: bool,
    scheduler: str | None,
    checkpoint: str | None,
    seed: int,
    told: Told,
) -> str:
    """From Parquet files to a folder of Parquet files; what was done, in words."""
    for path in paths:
        if not is_parquet(path):
            raise UsageError(
                f"{path!r} is no Parquet file or folder.", hint="only Parquet is read in blocks."
            )
    if output is None or Path(output).suffix:
        raise UsageError("a table beyond memory needs a folder to write to.", hint="-o merged/")
    with _workers(on_dask and scheduler is None):
        done = dask.fuse_parquet(
            paths[0] if len(paths) == 1 else list(paths),
            output,
            n_clusters,
            ids=() if ids is None else ids,
            columns=None if columns is None else [name.strip() for name in columns.split(",")],
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
def _workers(wanted: bool) -> Iterator[None]:
    """A process for every core, on this machine."""
    if not wanted:
        yield
        return
    distributed = optional_import("distributed", needed_for="--engine dask", extra="dask")
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
