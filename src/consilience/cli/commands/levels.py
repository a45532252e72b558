"""`consilience levels`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

import consilience
from consilience import cli, io
from consilience.cli import options
from consilience.cli.help import WRITING


def levels(
    result: options.Saved,
    *,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters",
            "-k",
            help="Levels: a number of clusters, several (3,6,12) or a range (3-8); all up to that of the "
            "result, if left out.",
            metavar="NUMBERS",
            show_default=False,
        ),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            help="Also stop each instance at the finest level with at most this share of errors.",
            metavar="SHARE",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Table of the cluster of every instance at every level to write: CSV, TSV, Excel (.xlsx), "
            "Parquet or Arrow by suffix; - is standard output, as CSV.",
            metavar="FILE",
            rich_help_panel=WRITING,
        ),
    ] = None,
    report: options.Report = None,
    title: options.Title = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Show coarser and finer clusters of a saved result, and which sources support each split.

    Levels are nested, and that of the result's own number of clusters is the result. With --error, chances
    are summed up the levels, and an instance stops where its cluster is sure enough: in one cluster, or in
    two or more and undecided between them. The share of errors is promised only where sources err
    independently.

    Example: `consilience levels segments.consilience -k 3,6,12 --error 0.1 -o levels.csv`
    """
    ks = None if clusters is None else options.several_n_clusters(clusters, auto=False)
    job = cli.job.Job(
        [], options.Reading(), options.Writing(report=report, title=title, as_json=as_json), quiet=quiet
    )
    cli.job.check_outputs([result], [output], [report], stdout=as_json or output is None)
    with job.run() as run:
        fusion = cli.saved.read_result(result)
        found = fusion.levels(k_max=None if ks is None else max(ks))
        said = list(found.sentences)
        if error is not None:
            said += found.stop(error).sentences
        if report is not None:
            run.told("drawing the page")
            summary = consilience.report.summarize(
                fusion, title=title, command=cli.results.command(), levels=found
            )
            io.files.write_text(run.outputs, report, consilience.report.render(summary))
        if output is not None:
            columns = found.columns(ks, error)
            cli.results.write_columns(fusion.partitions, columns, run.outputs, output, run.told)
        if as_json:
            run.last = lambda: print(json.dumps(found.as_dict(), indent=1))
        elif output is None:
            run.last = lambda: print("\n".join(said))
        else:
            run.words = "\n".join(said)
