"""`consilience simulate`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

import consilience
from consilience import cli
from consilience._support.errors import UsageError
from consilience.cli import options
from consilience.cli.help import WRITING


class Mechanism(StrEnum):
    """Which entries go missing."""

    per_base = "per_base"
    mcar = "mcar"
    mar = "mar"
    mnar = "mnar"


def simulate(
    labels: options.Labels,
    *,
    share: Annotated[
        float,
        typer.Option(
            "--share", "-s", min=0.0, max=1.0, help="Share of the labels to remove.", metavar="SHARE"
        ),
    ] = 0.3,
    mechanism: Annotated[
        Mechanism,
        typer.Option(
            help="per_base: as many from each column; mcar: independently; mar, mnar: by label.",
            metavar="per_base|mcar|mar|mnar",
        ),
    ] = Mechanism.per_base,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Table to write, its kind by suffix.",
            metavar="FILE",
            rich_help_panel=WRITING,
        ),
    ] = None,
    reading: options.Scanning,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Remove labels on purpose, to see what a method makes of the gaps.

    Example: `consilience simulate complete.csv --id customer --share 0.3 --mechanism mnar -o partial.csv`
    """
    from consilience.evidence.reading import read_labels

    if share >= 1:
        raise UsageError(f"--share must leave something: below 1. Got {share:g}.", hint="as in --share 0.3.")
    job = cli.job.Job(labels, reading, quiet=quiet)
    cli.job.check_outputs(labels, [output])
    job.require_memory()
    with job.run() as run:
        table = read_labels(run.sources(), unobserved="keep").in_full()
        codes = consilience.missing.drop_labels(
            table.codes, share, mechanism=mechanism.value, random_state=seed
        )
        cli.results.write_labels(table.fill(codes), run.outputs, output or "-", run.told)
        before, after = (int((each >= 0).sum()) for each in (table.codes, codes))
        run.words = f"Removed {before - after} of {before} labels."
