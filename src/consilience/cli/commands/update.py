"""`consilience update`."""

from __future__ import annotations

from typing import Annotated

import typer

from consilience import cli
from consilience.cli import options
from consilience.cli.options import Engine, Unobserved


def update(
    result: options.Saved,
    new: Annotated[
        list[str],
        typer.Argument(
            help="Labels of instances that were there, of new ones, or of both; columns may be left out or "
            "be new.",
            metavar="NEW...",
        ),
    ],
    *,
    pin: Annotated[
        str | None,
        typer.Option(
            help="Instances that stay in their clusters: all, or a table of their ids.",
            metavar="all|FILE",
            show_default=False,
        ),
    ] = None,
    writing: options.WritingLabels,
    reading: options.Scanning,
    fail_on_drift: options.FailOnDrift = None,
    quiet: options.Quiet = False,
) -> None:
    """Bring a saved result up to date: instances that were there, new ones, new columns.

    Instances are known again by --id. A label of the new table replaces the one that was there, a blank does
    not. Clusters keep their numbers and names; instances move to the nearest cluster until none does. It is
    fast and no new merge, which may find other clusters: for that, use fuse --like. From 50 new instances on,
    a line says whether they are like the others; --quiet does not hide drift.

    Example: `consilience update march.consilience april.csv --id customer --save april.consilience`
    """
    beside = pin if pin not in (None, "all") else None
    job = cli.job.Job(new, reading, writing, profile=None, quiet=quiet, beside=(beside,), updates=True)
    job.check_outputs(result)
    job.require_memory()
    with job.run() as run:
        fusion = cli.saved.read_result(result)
        table = run.labels(Engine.memory, Unobserved.noise, noise=fusion.partitions.negative == "noise")
        run.told("updating")
        stay = True if pin == "all" else None if beside is None else cli.saved.read_ids(beside, job.source)
        updated = fusion.update(table.in_full(), pin=stay)
        assert updated.updated is not None
        found = updated.updated.drift
        run.drift, run.fail_below = lambda: found, fail_on_drift
        run.write(updated)
