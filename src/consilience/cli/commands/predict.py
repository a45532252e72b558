"""`consilience predict`."""

from __future__ import annotations

from typing import Annotated

import typer

from consilience import cli
from consilience._support.errors import UsageError
from consilience.cli import options
from consilience.cli.help import FILES


def predict(
    result: options.Saved,
    new: Annotated[
        list[str],
        typer.Argument(
            help="New instances: their labels by the same base clusterings, or tables of the same views. "
            "Columns and views may be left out.",
            metavar="NEW...",
        ),
    ],
    *,
    views: Annotated[
        list[str] | None,
        typer.Option(
            "--views",
            help="Of a result of labels and views: tables of features beside the labels, all files up to the "
            "next option.",
            metavar=FILES,
        ),
    ] = None,
    output: options.Output = None,
    chances: options.Chances = None,
    excel_csv: options.ExcelCsv = False,
    reading: options.Scanning,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse labels that the saved result does not know.")
    ] = False,
    adapt: Annotated[
        bool,
        typer.Option(
            "--adapt",
            help="Let the new instances change what labels mean and how frequent clusters are; what was "
            "merged counts as 100 members of every cluster.",
        ),
    ] = False,
    fail_on_drift: options.FailOnDrift = None,
    quiet: options.Quiet = False,
) -> None:
    """Place new instances in the clusters of a saved result.

    Writes a table with the label, the confidence and the next best cluster of each. An instance about which
    nothing is known gets the label -1. A label that the saved result does not know counts as missing. From 50
    new instances on, a line says whether they are like those that were merged; --quiet does not hide drift.

    Example: `consilience predict segments.consilience new.csv --id customer -o placed.csv`
    """
    tables = list(views or ())
    job = cli.job.Job(new, reading, quiet=quiet, beside=tables)
    if excel_csv:
        cli.job.require_csv([output or "-", chances])
    cli.job.check_outputs([result, *new, *tables], [output, chances])
    with job.run() as run:
        fusion = cli.saved.read_result(result)
        if tables and fusion.mixed is None:
            raise UsageError(f"{result} is no result of labels and views.", hint="leave out --views.")
        needing = "--adapt" if adapt else "--fail-on-drift" if fail_on_drift is not None else ""
        watch = cli.saved.watched(fusion, needing)
        if fusion.mixed is not None:
            found = cli.saved.place_both(
                fusion, fusion.mixed, new, run.sources, tables, job.source, strict=strict
            )
        elif watch is not None:
            run.drift, run.fail_below = lambda: watch.found() if watch.enough else None, fail_on_drift
            found = cli.saved.place_labels(
                fusion, run.sources(), strict=strict, told=run.told, watch=watch, adapt=adapt
            )
        else:
            found = cli.saved.place_views(fusion, new, job.source)
        cli.results.write_placed(
            *(found, fusion, run.outputs, output or "-", run.told), chances=chances, excel_csv=excel_csv
        )
        labels = found.placed.labels
        lost = int((labels < 0).sum())
        nowhere = f"; nothing is known of {lost}" if lost else ""
        unknown = f"Warning: {found.unknown}\n" if found.unknown else ""
        run.words = f"{unknown}Placed {len(labels) - lost} of {len(labels)} instances{nowhere}."
        if chances is not None:
            run.words += f"\n{fusion.diagnostics.reading}"
