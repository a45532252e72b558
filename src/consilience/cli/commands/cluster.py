"""`consilience cluster`."""

from __future__ import annotations

from typing import Annotated

import typer

import consilience
from consilience import cli, io
from consilience._support.errors import UsageError
from consilience.cli import options


def cluster(
    views: Annotated[
        list[str],
        typer.Argument(
            help="Tables of features of the same instances: CSV, TSV, Excel, Parquet or Arrow by suffix.",
            metavar="VIEWS...",
        ),
    ],
    *,
    clusters: options.Clusters = "auto",
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="auto, labels, or a name from consilience methods (labels or views).",
            metavar="NAME",
        ),
    ] = "auto",
    kind: options.Kind = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            help="How much a view counts, as in --weight notes=0.5. Repeatable.", metavar="VIEW=NUMBER"
        ),
    ] = None,
    clusterer: Annotated[
        str | None,
        typer.Option(
            help="Cluster each view by graph or kmeans, and merge the labels.", metavar="graph|kmeans"
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Base clusterings of each view; 20, or fewer with more than six views.",
            metavar="NUMBER",
        ),
    ] = None,
    like: options.Like = None,
    like_column: options.LikeColumn = None,
    profile: options.Profile = None,
    stability: options.Stability = False,
    param: options.Parameters = None,
    writing: options.Writing,
    reading: options.Reading,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Cluster tables of features about the same instances, each of which may lack some of them.

    By default, every view is embedded on the rows it has, absent rows are filled in through other views, and
    everything is clustered once. With --method labels, every view is clustered several times and the labels
    are merged. Any other method clusters all views in its own way. Columns may be of any kind, and cells may
    be missing. How each view was read and used is reported on standard error.

    Example: `consilience cluster blood.csv notes.parquet --id patient -k 5 --kind notes=counts -o groups.csv`
    """
    job = cli.job.Job(
        views, reading, writing, profile=profile, like=like, like_column=like_column, quiet=quiet
    )
    k = options.n_clusters(clusters)
    by_name = method.lower() in ("auto", "labels") and not param
    chosen = method if by_name else options.method(method, param, views=True)
    kinds, weights = options.by_view("kind", kind), options.by_view("weight", weight)
    if not all(isinstance(value, int | float) for value in weights.values()):
        raise UsageError("--weight needs a number.", hint="as in --weight notes=0.5.")
    job.check_outputs()
    job.require_memory(views=True)
    with job.run() as run:
        tables = io.files.read_view_tables(views, job.source)
        run.told("clustering the views")
        fusion = consilience.fuse_views(
            tables,
            k,
            on=job.id_name,
            method=chosen,
            kind=kinds or None,
            view_weights=weights or None,
            clusterer=clusterer,
            n_partitions=partitions,
            random_state=seed,
            progress=run.told,
        )
        run.write(fusion if run.earlier is None else fusion.like(run.earlier), stability=stability)
