"""The server's part: join what the parties sent by keyed id, merge it, and give each party its own rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from consilience._support.errors import InputError
from consilience.evidence.builder import in_every_row
from consilience.evidence.partitions import Partitions
from consilience.federated.keys import ID_BYTES
from consilience.federated.parts import Part, PartyError, as_words

if TYPE_CHECKING:
    from consilience.results import Fusion


class Answer(NamedTuple):
    """What a party gets back: a value for each row that it sent, in that order."""

    labels: np.ndarray
    confidence: np.ndarray
    margin: np.ndarray
    coverage: np.ndarray
    alternative: np.ndarray


class Merged(NamedTuple):
    """The consensus of all parties, and what each of them gets."""

    fusion: Fusion
    answers: dict[str, Answer]
    absent: tuple[str, ...] = ()


class Joined(NamedTuple):
    """All parts as one table, and which of its rows those of each party are."""

    table: Partitions
    rows: dict[str, np.ndarray]


def merge_parts(
    parts: Sequence[Part],
    n_clusters: int | Literal["auto"],
    *,
    parties: Collection[str] | None = None,
    allow_absent: bool = False,
    method: str = "auto",
    random_state: int = 0,
) -> Merged:
    """Merge what the parties sent: the answer of :func:`consilience.fuse` on the joined table.

    Parameters
    ----------
    parts : sequence of Part
        What every party sent, in any order.
    n_clusters : int or "auto"
        As in :func:`consilience.fuse`, and so are `method` and `random_state`.
    parties : collection of str, optional
        Who takes part. Whoever sent nothing stops it, unless `allow_absent`.
    allow_absent : bool, default=False
        Whether to go on without those who sent nothing.
    method : str, default="auto"
        The name of a label method, or "auto".
    random_state : int, default=0
        One seed, one answer.

    Returns
    -------
    merged : Merged
        The fusion, and for each party the labels, confidence, margin, coverage and alternative of its own
        rows. An instance of which no label left any party has the label -1.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.federated import merge_parts, prepare
    >>> key, banks = b"a key that the parties share", {
    ...     "a": {"ann": "gold", "bob": "basic", "cleo": "gold", "dan": "basic"},
    ...     "b": {"ann": "spender", "bob": "saver", "eve": "saver"},
    ...     "c": {"cleo": "high", "dan": "low", "eve": "low", "fay": "high"},
    ... }
    >>> sent = {
    ...     bank: prepare(Partitions.of({"segment": list(people.values())}), people, bank, key, smallest=1)
    ...     for bank, people in banks.items()
    ... }
    >>> merged = merge_parts([found.part for found in sent.values()], 2)
    >>> own = dict(zip(np.array(list(banks["c"]))[sent["c"].order], merged.answers["c"].labels))
    >>> bool(own["cleo"] == own["fay"] != own["dan"] == own["eve"])
    True
    """
    from consilience.results import fuse  # only the server needs it, and it takes a second

    _refuse_repeated(parts)
    absent = _who_is_absent(parts, parties, allow_absent)
    joined = join_parts(parts)
    fusion = fuse(joined.table, n_clusters, method=method, unobserved="noise", random_state=random_state)
    found = fusion.diagnostics
    labels, alternative = (clusters.astype(np.int32) for clusters in (fusion.labels, found.alternative))
    values = (labels, found.confidence, found.margin, found.coverage, alternative)
    answers = {party: Answer(*(value[rows] for value in values)) for party, rows in joined.rows.items()}
    return Merged(fusion, answers, absent)


def join_parts(parts: Sequence[Part]) -> Joined:
    """One table of all parts, columns called party/column, in an order that the parts have no part in.

    Parameters
    ----------
    parts : sequence of Part
        What every party sent, in any order.
    """
    _refuse_repeated(parts)
    if len(parts) < 2:
        who = f"only party {parts[0].party!r} has" if parts else "no party has"
        raise InputError(f"{who} sent labels.", hint="there is nothing to merge with fewer than two parties.")
    parts = sorted(parts, key=lambda part: part.party)
    for part in parts:
        _check(part)
    words, place = np.unique(np.concatenate([as_words(part.ids) for part in parts]), return_inverse=True)
    rows = np.split(place, np.cumsum([len(part.ids) for part in parts])[:-1])
    _require_overlap(parts, rows, len(words))
    columns: dict[str, Any] = {}
    for part, own in zip(parts, rows, strict=True):
        for i in sorted(range(len(part.columns)), key=part.columns.__getitem__):
            given = part.codes[:, i]
            if given.max() >= 0:  # a column may have nothing left to say
                codes = np.full(len(words), -1, dtype=given.dtype)
                codes[own] = given
                columns[f"{part.party}/{part.columns[i]}"] = codes, range(int(given.max()) + 1)
    table = Partitions.of_codes(columns, unobserved="keep")
    return Joined(table, {part.party: own for part, own in zip(parts, rows, strict=True)})


def _refuse_repeated(parts: Sequence[Part]) -> None:
    for party, times in Counter(part.party for part in parts).items():
        if times > 1:
            raise PartyError(
                f"party {party!r} answered {times} times.", hint="a node each, and a name for each node."
            )


def _who_is_absent(
    parts: Sequence[Part], parties: Collection[str] | None, allow_absent: bool
) -> tuple[str, ...]:
    if parties is None:
        return ()
    sent = {part.party for part in parts}
    for party in sorted(sent - set(parties)):
        raise PartyError(
            f"party {party!r} answered and is none of this run ({', '.join(map(repr, sorted(parties)))}).",
            hint="add its name to the parties of the run, or stop its node.",
        )
    absent = tuple(sorted(set(parties) - sent))
    if absent and not allow_absent:
        raise PartyError(
            f"no answer in time from party {' and party '.join(map(repr, absent))}.",
            hint="is its node running? Give more time (timeout), or go on without it (allow-absent=true).",
        )
    return absent


def _check(part: Part) -> None:
    """Refuse what is not of the form that `prepare` gives it."""
    ids, codes = part.ids, part.codes
    if ids.ndim != 2 or ids.shape[1] != ID_BYTES or ids.dtype != np.uint8:
        wrong = f"ids of shape {ids.shape} and type {ids.dtype}, not (rows, {ID_BYTES}) of bytes"
    elif codes.dtype.kind != "i" or codes.shape != (len(ids), len(part.columns)):
        wrong = f"codes of shape {codes.shape} and type {codes.dtype} for {len(ids)} ids"
    elif len(set(part.columns)) < len(part.columns) or "/" in part.party:
        wrong = "two columns of one name, or a name of a party with /"
    elif codes.size and (codes.min() < -1 or codes.max() > len(codes)):
        wrong = "codes below -1 or above the number of rows"
    else:
        wrong = ""
    if wrong:
        raise PartyError(
            f"party {part.party!r} sent another schema: {wrong}.",
            hint="all parties and the server need the same version of consilience.",
        )
    if not codes.size or codes.max() < 0:
        raise PartyError(
            f"party {part.party!r} sent an empty table.", hint="a row for each instance, with labels."
        )
    if len(np.unique(as_words(ids))) < len(ids):
        raise PartyError(f"party {part.party!r} sent an id twice.", hint="a row for each instance.")
    for name, given in zip(part.columns, codes.T, strict=True):
        if where := in_every_row(np.bincount(given[given >= 0])):
            raise PartyError(
                f"column {name!r} of party {part.party!r} has a different label {where}, like ids.",
                hint="the party must name its columns of labels.",
            )


def _require_overlap(parts: Sequence[Part], rows: Sequence[np.ndarray], n: int) -> None:
    """Refuse parties that share no instance with the others, not even through others."""
    has = sp.csr_array(
        (np.ones(sum(map(len, rows))), np.concatenate(rows), np.cumsum([0, *map(len, rows)])),
        shape=(len(parts), n),
    )
    n_groups, group = connected_components(has @ has.T, directed=False)
    if n_groups == 1:
        return
    most = np.bincount(group).argmax()
    alone = [part.party for part, g in zip(parts, group, strict=True) if g != most]
    if len(parts) == 2:
        who = f"party {parts[0].party!r} and party {parts[1].party!r} share no instance"
    else:
        verb = "shares" if len(alone) == 1 else "share"
        who = f"party {' and party '.join(map(repr, alone))} {verb} no instance with the others"
    raise PartyError(
        f"{who}.",
        hint=(
            "the keys may differ (compare what consilience federated check says of the key), or the ids are "
            "written in another way."
        ),
    )
