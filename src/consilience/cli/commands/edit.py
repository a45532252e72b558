"""`consilience edit`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from consilience import cli
from consilience._support.errors import UsageError
from consilience.cli import options


def edit(
    result: options.Saved,
    *,
    merge: Annotated[
        list[str] | None,
        typer.Option(
            help="Clusters to merge, by numbers or names, as in 2,5; repeatable.",
            metavar="A,B,...",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(
            help="Cluster to split in two, by number or name; repeatable.",
            metavar="CLUSTER",
            show_default=False,
        ),
    ] = None,
    names: options.Names = None,
    writing: options.WritingLabels,
    quiet: options.Quiet = False,
) -> None:
    """Change the clusters of a saved result by hand: merge some, split some, name them.

    Merged clusters have the number of the first; the larger part of a split one keeps its number. Merges come
    first, then splits, then names. What changed is said, and --changes lists who moved.

    Example: `consilience edit segments.consilience --merge 2,5 --names names.csv --save edited.consilience`
    """
    if not (merge or split or names):
        raise UsageError("there is nothing to change.", hint="give --merge, --split or --names.")
    cli.job.require_files({"names": names})
    job = cli.job.Job([], options.Reading(), writing, quiet=quiet, updates=True)
    job.check_outputs(result, *([] if names is None else [names]))
    with job.run() as run:
        before = cli.saved.read_result(result)
        fusion = before
        for clusters in merge or ():
            fusion = fusion.merge(*map(_cluster, options.split(clusters)))
        for cluster in split or ():
            fusion = fusion.split(_cluster(cluster))
        if fusion is not before:
            fusion = fusion.compared_with(before)
        if names is not None:
            fusion = fusion.rename(cli.saved.read_names(names))
        run.write(fusion)


def _cluster(text: str) -> Any:
    """A number where it is one, else a name."""
    return int(text) if text.isdecimal() else text
