"""`consilience methods`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from consilience import cli
from consilience._support.errors import UsageError
from consilience.cli import options
from consilience.cli.terminal import show


def methods(
    *,
    kind: Annotated[
        str | None,
        typer.Option(
            "--input",
            help="Only those that take labels, views or features.",
            metavar="labels|views|features",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """List all methods: what they take, what they cost, and the paper.

    Example: `consilience methods --input views`
    """
    found = [method for method in cli.catalog.catalogue() if kind in (None, method.input)]
    if not found:
        raise UsageError(f"no method takes {kind!r}.", hint="--input is labels, views or features.")
    if as_json:
        print(json.dumps([method._asdict() for method in found], indent=1))
        return
    show(["method", "input", "what it does", "cost", "paper"], found, lines=True)
