"""`consilience demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from consilience import cli
from consilience.cli import options
from consilience.cli.terminal import bar, talk


def demo(
    folder: Annotated[
        str, typer.Argument(help="Folder for the results; made if need be.", metavar="FOLDER")
    ] = "demo-output",
    *,
    quiet: options.Quiet = False,
) -> None:
    """Merge eight partial clusterings of handwritten digits, and write the results and the page.

    Example: `consilience demo demo-output`
    """
    with bar(quiet) as told, cli.signals.together() as outputs:
        lines = cli.demo.run_demo(Path(folder), outputs, told)
    talk(lines, quiet)
    print(Path(folder, "report.html"))
