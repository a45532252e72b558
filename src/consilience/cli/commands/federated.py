"""The commands of parties that may not share rows."""

from __future__ import annotations

import json
import secrets
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience import io
from consilience._support.errors import UsageError
from consilience._support.optional import optional_import
from consilience._support.values import counted
from consilience.cli import options
from consilience.cli.help import App
from consilience.cli.terminal import bar, show, talk

if TYPE_CHECKING:
    from consilience.federated import Prepared

_SHOWN = 3  # keyed ids

federated = App(help="Merge labels of parties that may not share rows, on Flower.", no_args_is_help=True)


@federated.command()
def check(
    labels: Annotated[str, typer.Argument(help="A party's table of labels.", metavar="LABELS")],
    id_column: Annotated[
        str, typer.Option("--id", help="Column that holds the ids of the instances.", metavar="COLUMN")
    ],
    columns: Annotated[
        str | None,
        typer.Option(help="Columns to use, separated by commas; all by default.", metavar="A,B,..."),
    ] = None,
    smallest: Annotated[
        int,
        typer.Option(
            min=1, help="Labels with fewer members are held back; 1 holds nothing back.", metavar="NUMBER"
        ),
    ] = 5,
    key_file: Annotated[
        str | None, typer.Option(help="File with the key that the parties share.", metavar="FILE")
    ] = None,
    key_variable: Annotated[
        str | None, typer.Option(help="Environment variable with that key.", metavar="NAME")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the result as JSON.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Show what would leave a party, before anything does; nothing is sent.

    Without a key, one is drawn for this look only.

    Example: `consilience federated check labels.csv --id customer --smallest 5 --key-file shared.key`
    """
    from consilience.federated import key_fingerprint, prepare, read_key
    from consilience.federated.table import read_own

    given = key_file is not None or key_variable is not None
    key = read_key(file=key_file, variable=key_variable) if given else secrets.token_bytes(32)
    chosen = tuple(name.strip() for name in columns.split(",")) if columns else ()
    party = io.files.stems([labels])[0]
    own = read_own(labels, id_column, chosen, party)
    found = prepare(own.labels, own.ids, party, key, smallest)
    about = _about(found, key_fingerprint(key) if given else None)
    if as_json:
        print(json.dumps(about, indent=1))
        return
    head = ["column", "labels", "labels held back", "rows", "rows held back"]
    show(head, [[str(value) for value in column] for column in found.columns])
    talk(_in_words(about, given), quiet)


def _about(found: Prepared, fingerprint: str | None) -> dict[str, Any]:
    return {
        "rows": len(found.order),
        "bytes": found.part.n_bytes,
        "key": fingerprint,
        "ids": [keyed.tobytes().hex() for keyed in found.part.ids[:_SHOWN]],
        "columns": [column._asdict() for column in found.columns],
    }


def _in_words(about: dict[str, Any], given: bool) -> str:
    key = f"the key {about['key']}" if given else "a key that was drawn for this look"
    lines = [
        f"{counted(about['rows'], 'row')} of {counted(len(about['columns']), 'column')} would leave, "
        f"{about['bytes']} bytes, under {key}.",
        "Ids would look like this: " + ", ".join(f"{keyed[:16]}..." for keyed in about["ids"]),
        "The server would see how many rows each label has and which keyed ids parties share; no id, "
        "no name of a label. Names of columns leave as they are. Nothing was sent.",
    ]
    return "\n".join(lines)


@federated.command()
def demo(
    folder: Annotated[
        str,
        typer.Argument(
            help="Folder for tables, settings, logs and results; made if need be.", metavar="FOLDER"
        ),
    ] = "federated-demo",
    secure: Annotated[
        bool, typer.Option("--secure", help="With TLS and authentication of the nodes.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Let three banks merge their segments, with a server and a node for each on this machine.

    Example: `consilience federated demo federated-demo --secure`
    """
    if find_spec("flwr") is None:
        optional_import("flwr", needed_for="merging between parties", extra="federated")  # which says so
    from consilience.federated.local import LocalFederation, three_banks

    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise UsageError(f"{folder!r} is not a folder.", hint="give another name.")
    banks = three_banks(place)
    with bar(quiet) as told:
        told("starting a link and three nodes", 0, 2)
        with LocalFederation(place, banks, secure=secure) as federation:
            told("merging", 1, 2)
            federation.run(2)
    for bank, config in banks.items():
        print(f"{bank}\n{Path(config['output']).read_text()}")
    talk(f"Tables, settings of the nodes, logs and results are in {place}/", quiet)
