"""A party's own files: its settings, the table that stays with it, and the answer that is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from consilience._support.errors import InputError, UsageError
from consilience._support.files import Outputs
from consilience._support.values import did_you_mean
from consilience.evidence.partitions import Partitions
from consilience.evidence.reading import read_labels
from consilience.federated.keys import read_key
from consilience.federated.merging import Answer
from consilience.federated.parts import SMALLEST, PartyError, Prepared, prepare
from consilience.io import files, scan
from consilience.io import ids as _ids


class Own(NamedTuple):
    """The table of a party."""

    labels: Partitions
    ids: list[str]


class Settings(NamedTuple):
    """What a party says in the config of its node."""

    party: str
    table: str
    id_column: str
    columns: tuple[str, ...]
    smallest: int
    key_file: str | None
    key_variable: str | None
    output: str

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """Read the config of a node; a setting that is not known may be one that was meant to protect."""
        party = party_of(config)
        for name in config:
            if name not in _SETTINGS:
                raise PartyError(
                    f"the node of party {party!r} has a setting {name!r}, which is not known.",
                    did_you_mean(name, _SETTINGS),
                )
        for name in ("table", "id", "output"):
            if not isinstance(config.get(name), str):
                raise PartyError(
                    f"the node of party {party!r} has no setting {name!r}.", hint=f'as in {name}="..."'
                )
        smallest = config.get("smallest-cluster", SMALLEST)
        if not isinstance(smallest, int) or isinstance(smallest, bool) or smallest < 1:
            raise PartyError(
                f"the smallest-cluster of party {party!r} is no number from 1.", hint="1 holds nothing back."
            )
        chosen = str(config.get("columns", ""))
        return cls(
            party,
            config["table"],
            config["id"],
            tuple(name.strip() for name in chosen.split(",")) if chosen else (),
            smallest,
            config.get("key-file"),
            config.get("key-variable"),
            config["output"],
        )

    def prepare(self) -> Prepared:
        """What leaves this party. Whatever would keep its answer from being written is an error now."""
        files.check_output(self.output)
        if Path(self.output).resolve() == Path(self.table).resolve():
            raise PartyError(
                f"the output of party {self.party!r} is its table.", hint="give the answer another name."
            )
        try:
            key = read_key(file=self.key_file, variable=self.key_variable)
        except InputError:
            raise PartyError(
                f"party {self.party!r} has no key of 16 bytes or more in its key-file or key-variable.",
                hint="all parties share one key, which openssl rand -hex 32 makes.",
            ) from None
        table = read_own(self.table, self.id_column, self.columns, self.party)
        return prepare(table.labels, table.ids, self.party, key, self.smallest)

    def write(self, answer: Answer, order: np.ndarray) -> None:
        """Write the answer in the order of the party's own table, completely or not at all."""
        ids = read_ids(self.table, self.id_column, self.party)
        place = np.argsort(order)
        columns = {name: values[place] for name, values in answer._asdict().items()}
        columns = {"label": columns.pop("labels"), **columns}
        id_name = f"{self.id_column} (id)" if self.id_column in columns else self.id_column

        pieces = (
            {id_name: ids[rows], **{name: values[rows] for name, values in columns.items()}}
            for rows in files.spans(len(ids))
        )
        with Outputs() as outputs:
            files.write_table(outputs, self.output, len(ids), pieces, lambda *_: None, private=True)


_SETTINGS = (
    "party",
    "table",
    "id",
    "columns",
    "smallest-cluster",
    "key-file",
    "key-variable",
    "output",
)


def party_of(config: Mapping[str, Any]) -> str:
    """The name of a party."""
    party = config.get("party")
    if not isinstance(party, str) or not party.strip() or "/" in party or "," in party:
        raise PartyError("a node has no party, or one with a comma or slash.", hint='as in party="bank_a"')
    return party


def read_own(path: str, id_column: str, columns: tuple[str, ...], party: str) -> Own:
    """The labels and the ids of a table, apart from each other: no error about labels can quote an id."""
    ids = read_ids(path, id_column, party)
    if not columns:
        columns = tuple(name for name in scan(path).columns if name != id_column)
    if id_column in columns:
        raise PartyError(
            f"column {id_column!r} of party {party!r} is its id column and no label.",
            hint="name the columns of labels, or the other id column.",
        )
    if not columns:
        raise PartyError(f"party {party!r} has no column of labels.", hint="a column per base clustering.")
    # Read by id, as the ids were, so that the same lines are left out; which they are is not handed on.
    labels = read_labels(scan(path, id=id_column, columns=columns).sources, unobserved="keep").in_full()
    return Own(replace(labels, index=None, index_name=None), ids)


def read_ids(path: str, id_column: str, party: str) -> list[str]:
    """Ids as text, each of them once."""
    if Path(path).is_file() and not Path(path).stat().st_size:
        raise _empty(party)
    source = files.Source(id_column, (id_column,))
    read = files.pieces(path, source, text=True)
    found = [_ids.as_text(_ids.canonical(piece.column(0), "its table")) for piece in read]
    if not found:
        raise _empty(party)
    ids = pa.chunked_array(found).combine_chunks()
    if ids.null_count:
        row = int(np.argmax(ids.is_null()))
        raise PartyError(f"row {row} of party {party!r} has no id.", hint="give every row an id of its own.")
    place = ids.dictionary_encode().indices.to_numpy()
    _, first = np.unique(place, return_index=True)
    if len(first) < len(place):
        row = int(np.setdiff1d(np.arange(len(place)), first)[0])
        raise PartyError(
            f"rows {int(np.argmax(place == place[row]))} and {row} of party {party!r} have the same id.",
            hint="a row per instance; give another id column, or remove the repetitions.",
        )
    return list(pc.cast(ids, pa.string()).to_pylist())


def _empty(party: str) -> PartyError:
    return PartyError(
        f"party {party!r} has an empty table.", hint="a row per instance, below a line of column names."
    )


def sayable(error: Exception, party: str, path: str) -> PartyError:
    """What may be logged and sent of an error at a party.

    Errors about what the party configured name settings and columns. Others may quote the table.
    """
    if isinstance(error, PartyError):
        return error
    if isinstance(error, UsageError):
        return PartyError(f"party {party!r}: {error.message.replace(path, 'its table')}", hint=error.hint)
    return PartyError(
        f"the table of party {party!r} cannot be used ({type(error).__name__}).",
        hint="at the party itself, consilience federated check says why.",
    )
