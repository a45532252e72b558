"""`consilience explain`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from consilience import cli
from consilience.cli import options


def explain(
    result: options.Saved,
    instance: Annotated[
        str,
        typer.Argument(help="The id of an instance, or its row where there are no ids.", metavar="INSTANCE"),
    ],
    *,
    as_json: options.AsJson = False,
) -> None:
    """Say why an instance is in its cluster: who said what, who is like it, what would change it.

    Example: `consilience explain segments.consilience C-1042`
    """
    found = cli.saved.read_result(result).explain(instance)
    print(json.dumps(found.as_dict(), indent=1) if as_json else found)
