"""`consilience bench`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import consilience
from consilience import cli, io
from consilience._support.errors import UsageError
from consilience._support.values import did_you_mean
from consilience.cli import options
from consilience.cli.help import App
from consilience.cli.signals import Interrupted
from consilience.cli.terminal import bar, show, talk

if TYPE_CHECKING:
    from consilience.bench import DataFile

bench = App(
    help="Run experiments that are described in files, such as those of the papers.", no_args_is_help=True
)
Name = Annotated[str, typer.Argument(help="An experiment from bench list, or a TOML file.", metavar="NAME")]
Folder = Annotated[
    str, typer.Option(help="Folder of the results; a folder in it for each experiment.", metavar="FOLDER")
]
Small = Annotated[bool, typer.Option("--small", help="The version that runs in a minute.")]


@bench.command("list")
def list_() -> None:
    """List the experiments that come with the library.

    Example: `consilience bench list`
    """
    rows = []
    for name in consilience.bench.available():
        experiment = consilience.bench.load(name)
        rows.append([name, f"{experiment.title} ({', '.join(experiment.shows)})", experiment.paper])
    show(["name", "what it shows", "paper"], rows)


@bench.command("data")
def data(
    name: Annotated[
        str | None,
        typer.Argument(help="Only the files of one experiment: its name, or a TOML file.", metavar="NAME"),
    ] = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """List the files of the experiments: whether they are there, what they hold, and where they are from.

    Data do not come with the library. Each file is known by a checksum of its bytes, and by one of its
    arrays: a file that you made from the source yourself is "here, repacked" if it holds the same.

    Example: `consilience bench data pce-figures-2-3`
    """
    from consilience.bench.data import CONVERT, needed, state

    known = consilience.bench.data_files()
    names = list(known) if name is None else needed(_experiment(name, False))
    files = [known.get(each) or consilience.bench.DataFile(each, "", "", "", 0, "", "") for each in names]
    states = [state(file) for file in files]
    if as_json:
        found = zip(files, states, strict=True)
        print(json.dumps([{**file._asdict(), "state": is_there} for file, is_there in found], indent=1))
    else:
        _show_files(files, states)
    here = sum(is_there.startswith("here") for is_there in states)
    place = os.environ.get("CONSILIENCE_DATA") or consilience.datasets.cache_folder()
    talk(f"{here} of {len(files)} files are there, {states.count('different')} differ.", quiet)
    talk(f"Put files in {place}, or let $CONSILIENCE_DATA name their folder.", quiet)
    talk(f"\n{CONVERT}", quiet)


@bench.command("run")
def run(
    name: Name,
    folder: Folder = "bench-results",
    small: Small = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Samples worked on at once.", metavar="NUMBER")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed before.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Run an experiment, or what is left of it: rows are written as they finish.

    Example: `consilience bench run pce-figures-2-3 --jobs 2`
    """
    experiment = _experiment(name, small)
    with bar(quiet) as told:
        told(f"running {experiment.name}")
        place = Path(folder, experiment.name)
        try:
            store = consilience.bench.run(experiment, place, n_jobs=jobs, retry=retry, progress=told)
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted; finished rows are in {place}, and the command goes on."
            ) from None
    rows = store.read()
    failed = rows[rows["error"] != ""]["cell"].nunique()
    if failed and failed == rows["cell"].nunique():
        raise ValueError(f"every fit failed; the first said: {rows['error'].iloc[0]}")
    talk(f"{rows['cell'].nunique()} fits, {failed} of them failed; rows are in {place}.", quiet)


@bench.command("show")
def show_table(
    name: Name,
    folder: Folder = "bench-results",
    small: Small = False,
    by_missing: Annotated[
        bool, typer.Option("--by-missing", help="A column for every share of labels missing.")
    ] = False,
) -> None:
    """Print the table of an experiment, the paper's figures beside ours, as Markdown.

    Example: `consilience bench show pce-figures-2-3 > table.md`
    """
    experiment = _experiment(name, small)
    print(consilience.bench.show(experiment, _rows(experiment, folder), by_missing=by_missing), end="")


@bench.command("plot")
def plot(
    name: Name,
    output: Annotated[
        str, typer.Option("--output", "-o", help="A picture; PNG, SVG or PDF by suffix.", metavar="FILE")
    ],
    folder: Folder = "bench-results",
    small: Small = False,
    metric: Annotated[
        str | None, typer.Option(help="Which metric; the first by default.", metavar="NAME")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Draw the figure of an experiment.

    Example: `consilience bench plot pce-figures-2-3 --metric ACC -o figure.png`
    """
    io.files.require_folder(output)
    experiment = _experiment(name, small)
    if metric is not None and metric not in experiment.metrics:
        raise UsageError(f"{name} has no metric {metric!r}.", did_you_mean(metric, experiment.metrics))
    rows = _rows(experiment, folder)
    picture = consilience.bench.draw(experiment, rows, metric=metric)
    with cli.signals.together() as outputs, outputs.open(output) as file:
        picture.savefig(file, dpi=110, format=Path(output).suffix[1:] or None)
    talk(f"Wrote {output}", quiet)


def _experiment(name: str, small: bool) -> Any:
    try:
        experiment = consilience.bench.load(name)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return experiment.in_small() if small else experiment


def _rows(experiment: Any, folder: str) -> Any:
    rows = consilience.bench.Store(Path(folder, experiment.name)).read()
    if rows.empty:
        raise UsageError(
            f"there are no results in {folder!r}.", hint=f"consilience bench run {experiment.name}"
        )
    return rows


def _show_files(files: Sequence[DataFile], states: Sequence[str]) -> None:
    """A paragraph for each on a terminal; columns between tabs for other programs."""
    facts = ("holds", "source", "licence", "note", "sha256")
    if not sys.stdout.isatty():
        rows = [
            [f"{file.name}.npz", state, str(file.size), *(getattr(file, name) for name in facts)]
            for file, state in zip(files, states, strict=True)
        ]
        show(["file", "state", "bytes", *facts], rows)
        return
    for file, state in zip(files, states, strict=True):
        print(f"{file.name}.npz: {state}, {file.size} bytes")
        for name in facts:
            if getattr(file, name):
                print(f"  {name:8} {getattr(file, name)}")
