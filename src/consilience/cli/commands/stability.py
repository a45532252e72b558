"""`consilience stability`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

import consilience
from consilience import cli, io
from consilience._support.errors import UsageError
from consilience.cli import options
from consilience.cli.help import WRITING

if TYPE_CHECKING:
    from consilience.results import Stability


def stability(
    result: options.Saved,
    views: Annotated[
        list[str] | None,
        typer.Argument(
            help="For a result of cluster: the tables of features that it was made of, which are not saved.",
            metavar="VIEWS...",
            show_default=False,
        ),
    ] = None,
    *,
    resamples: Annotated[
        int,
        typer.Option(
            min=0,
            help="Random parts of the instances, and of ten or more sources, that are clustered.",
            metavar="NUMBER",
        ),
    ] = 20,
    share: Annotated[
        float,
        typer.Option(help="The share of the instances or sources in a part.", metavar="NUMBER"),
    ] = 0.8,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Table of all refits to write: CSV, TSV, Excel (.xlsx), Parquet or Arrow by suffix; - is "
            "standard output, as CSV.",
            metavar="FILE",
            rich_help_panel=WRITING,
        ),
    ] = None,
    report: options.Report = None,
    title: options.Title = None,
    as_json: options.AsJson = False,
    reading: options.Reading,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=2**32 - 1,
            help="Random seed; that of the result, if left out.",
            metavar="NUMBER",
            show_default=False,
        ),
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Say how stable a saved result is, and which source drives it.

    The same method is fitted again to random parts of the instances, to random parts of the sources and to
    all sources but one, each in turn, and every answer compared with the saved one: adjusted Rand index,
    clusters that are found again, number of clusters.

    Example: `consilience stability segments.consilience -o refits.csv --report page.html`

    Of views: `consilience stability groups.consilience blood.csv notes.csv --id patient`
    """
    paths = list(views or ())
    job = cli.job.Job(
        paths, reading, options.Writing(report=report, title=title, as_json=as_json), quiet=quiet
    )
    cli.job.check_outputs([result, *paths], [output], [report], stdout=as_json or output is None)
    with job.run() as run:
        fusion = cli.saved.read_result(result)
        tables = None
        if paths and fusion.partitions.views is None:
            raise UsageError(f"{result} was merged from labels.", hint="leave out the tables.")
        if paths:
            job.require_memory(views=True)
            tables = io.files.read_view_tables(paths, job.source)
        found = fusion.stability(
            tables,
            on=job.id_name if paths else None,
            n_resamples=resamples,
            share=share,
            random_state=seed,
            progress=run.told,
        )
        if report is not None:
            run.told("drawing the page")
            summary = consilience.report.summarize(
                fusion, title=title, command=cli.results.command(), stability=found
            )
            io.files.write_text(run.outputs, report, consilience.report.render(summary))
        if output is not None:
            columns = refit_columns(found)
            io.files.write_table(run.outputs, output, len(found.refits), iter([columns]), run.told)
        if as_json:
            run.last = lambda: print(json.dumps(found.as_dict(), indent=1))
        elif output is None:
            run.last = lambda: print(found)
        else:
            run.words = str(found)


def refit_columns(found: Stability) -> dict[str, Any]:
    """A table with a row per refit: what it was fitted to, how far its answer is the same."""
    if not found.refits:
        raise UsageError("nothing was fitted again.", hint="raise --resamples.")
    refits = found.refits
    columns: dict[str, Any] = {
        "part": [one.part for one in refits],
        "without": [", ".join(one.without) or None for one in refits],
        "instances": [one.n_instances for one in refits],
        "ari": [None if one.problem else one.ari for one in refits],
        "clusters": [None if one.problem else one.n_clusters for one in refits],
    }
    for cluster in found.clusters:
        values = [one.jaccard[cluster.cluster] for one in refits]
        columns[f"cluster {cluster.name}"] = [None if value != value else value for value in values]
    return columns | {"problem": [one.problem or None for one in refits]}
