"""Parts, answers and refusals as the records that Flower carries."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from consilience.federated.merging import Answer
from consilience.federated.parts import Part, PartyError

_HINT = "all parties and the server need the same version of consilience."


def record_of_part(part: Part) -> RecordDict:
    """What a party sends."""
    about = ConfigRecord({"party": part.party, "columns": list(part.columns)})
    return RecordDict({"about": about, "labels": _arrays({"ids": part.ids, "codes": part.codes})})


def read_part(record: RecordDict, node: int) -> Part:
    """What a party sent, if it has the parts that it should have; what is in them is checked when merging."""
    name = f"the party of node {node}"
    try:
        about = record["about"]
        name = f"party {str(about['party'])!r}"
        labels = record["labels"]
        columns = tuple(str(column) for column in about["columns"])
        return Part(str(about["party"]), columns, labels["ids"].numpy(), labels["codes"].numpy())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise PartyError(f"{name} sent another schema ({type(error).__name__}).", hint=_HINT) from None


def record_of_answer(answer: Answer, part: Part) -> RecordDict:
    """What a party gets. No ids: a digest says of which ids it is the answer, in their order."""
    about = ConfigRecord({"digest": digest(part)})
    return RecordDict({"about": about, "answer": _arrays(answer._asdict())})


def read_answer(record: RecordDict, part: Part) -> Answer:
    """The answer to what would be sent now, if that is what was sent."""
    if record["about"]["digest"] != digest(part):
        raise PartyError(
            f"the table of party {part.party!r} changed while the others were waited for.",
            hint="leave it as it is during a run, and run again.",
        )
    return Answer(*(record["answer"][name].numpy() for name in Answer._fields))


def record_of_refusal(refusal: PartyError) -> RecordDict:
    """A sentence instead of labels."""
    return RecordDict({"refused": ConfigRecord({"message": refusal.message, "hint": refusal.hint})})


def raise_refusal(record: RecordDict) -> None:
    """Say here what a party said there."""
    if "refused" in record:
        said: Any = record["refused"]
        raise PartyError(str(said["message"]), hint=str(said["hint"]))


def digest(part: Part) -> str:
    """A digest of the keyed ids of a party, in their order."""
    return hashlib.sha256(np.ascontiguousarray(part.ids).tobytes()).hexdigest()


def _arrays(arrays: dict[str, np.ndarray]) -> ArrayRecord:
    return ArrayRecord({name: Array(np.ascontiguousarray(values)) for name, values in arrays.items()})
