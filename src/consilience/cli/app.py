"""The commands together. Results go to standard output or to files; talk and progress to standard error."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

import consilience
from consilience.cli.help import App

COMMANDS = (
    *("fuse", "cluster", "predict", "update", "edit", "explain", "rosetta", "levels", "stability"),
    *("compare", "methods", "simulate", "report", "demo"),
)
GROUPS = ("bench", "federated")

app = App(
    help="Clustering from incomplete evidence: partial opinions in, one clustering with a confidence out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"consilience {consilience.__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Clustering from incomplete evidence: partial opinions in, one clustering with a confidence out."""


for name in COMMANDS:
    app.command()(getattr(import_module(f"consilience.cli.commands.{name}"), name))
for name in GROUPS:
    app.add_typer(getattr(import_module(f"consilience.cli.commands.{name}"), name), name=name)
