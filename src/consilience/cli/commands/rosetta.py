"""`consilience rosetta`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from consilience import cli, io
from consilience._support.errors import UsageError
from consilience.cli import options
from consilience.cli.help import WRITING

if TYPE_CHECKING:
    from consilience.results.rosetta import Rosetta, Translation


def rosetta(
    result: options.Saved,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            help="Two sources whose labels are matched; all are matched with the clusters, if left out.",
            metavar="A B",
            show_default=False,
        ),
    ] = None,
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Table to write: CSV, TSV, Excel (.xlsx), Parquet or Arrow by suffix; - is standard "
            "output, as CSV.",
            metavar="FILE",
            rich_help_panel=WRITING,
        ),
    ] = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what each source calls the clusters, or what a label of one source is called by another.

    Only what is at least .8 sure is said. A label that no instance shares with another one is matched through
    the consensus.

    Example: `consilience rosetta segments.consilience bank_a bank_b -o names.csv`
    """
    from consilience.results.rosetta import rosetta as call_clusters  # completion does not load the library
    from consilience.results.rosetta import translate

    named = list(sources or ())
    if len(named) not in (0, 2):
        few = "one source was named" if len(named) == 1 else f"{len(named)} sources were named"
        raise UsageError(f"{few}.", hint="name two, or none.")
    cli.job.check_outputs([result], [output], stdout=as_json or output is None)
    job = cli.job.Job([], options.Reading(), quiet=quiet)
    with job.run() as run:
        fusion = cli.saved.read_result(result)
        fusion._require_labels("a table of what sources call clusters")
        found: Rosetta | Translation = translate(fusion, *named) if named else call_clusters(fusion)
        if output is not None:
            columns = found.columns()
            n_rows = len(next(iter(columns.values())))
            io.files.write_table(run.outputs, output, n_rows, iter([columns]), run.told)
        if as_json:
            run.last = lambda: print(json.dumps(found.as_dict(), indent=1))
        elif output is None:
            run.last = lambda: print(found)
        else:
            run.words = "\n".join(found.sentences)
