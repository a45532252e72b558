"""`consilience report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import consilience
from consilience import cli, io
from consilience._support.errors import InputError, UsageError
from consilience.cli import options
from consilience.cli.terminal import talk


def report(
    result: Annotated[
        str,
        typer.Argument(
            help="What --save or --json of fuse or cluster wrote; - reads JSON from standard input.",
            metavar="RESULT",
        ),
    ],
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The page; - is standard output.", metavar="FILE")
    ] = "report.html",
    title: options.Title = None,
    hide_ids: options.HideIds = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the page of a saved result.

    Example: `consilience report segments.consilience -o page.html`

    The result: `consilience fuse banks.csv --id customer -k 4 --save segments.consilience`
    """
    cli.job.check_outputs([result], others=[output])
    summary = _summary(result, title, hide_ids)
    with cli.signals.together() as outputs:
        io.files.write_text(outputs, output, consilience.report.render(summary))
    talk(f"Wrote {output}", quiet or output == "-")


def _summary(result: str, title: str | None, hide_ids: bool) -> dict[str, Any]:
    if result != "-" and not Path(result).is_file():
        raise UsageError(f"there is no file {result!r}.", hint="it is what --save or --json wrote.")
    given = io.files.stdin() if result == "-" else Path(result).read_bytes()
    if given.startswith(b"PK") and result != "-":
        return consilience.report.summarize(
            cli.saved.read_result(result), title=title, command=cli.results.command(), hide_ids=hide_ids
        )
    if hide_ids:
        raise UsageError("JSON has the ids already.", hint="use --hide-ids where it is written.")
    if title is not None:
        raise UsageError(
            "JSON has the heading already.", hint="leave out --title, or name what --save wrote."
        )
    try:
        summary: dict[str, Any] = json.loads(given)
    except (ValueError, RecursionError) as error:  # among them bytes that are no text
        raise InputError(
            f"{result} is not JSON: {error}.", hint="it is what --save or --json wrote."
        ) from error
    return summary
