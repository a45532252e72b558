"""Which instances a page lists, and in words why each of them is sure or not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.diagnostics.counts import JointRows, label_counts, to_plain
from consilience.diagnostics.posterior import is_tie
from consilience.fusion import Fusion

# What a base clustering says about an instance, besides the number of a consensus cluster.
UNSEEN, UNDECIDED = -1, -2
# Of instances that cannot be told apart, no more than this many are listed among the least sure.
_ALIKE = 10
# The share of the list that shows every cluster, sure members included.
_SAMPLED = 0.25
# A picture of single votes is readable up to this many base clusterings.
_MOST_VOTES = 24
# More clusters than this with as many votes are not spelt out.
_NAMED = 3
# JavaScript holds integers exactly up to here.
_EXACT_INTEGER = 2**53


class _Listed(NamedTuple):
    """Positions of the listed instances, least sure first, and which are there as a sample only."""

    place: np.ndarray
    sampled: np.ndarray


def list_instances(fusion: Fusion, rows: JointRows, listed: int) -> dict[str, Any]:
    """Columns of the table of instances, as plain lists.

    Everything about an instance follows from its base labels and its consensus label, so it is worked out
    once for every distinct row that is listed.
    """
    found = fusion.diagnostics
    chosen = _choose(rows, fusion.labels, found.confidence, found.margin, listed)
    place = chosen.place
    row, back = np.unique(rows.inverse[place], return_inverse=True)
    member = np.empty(len(row), dtype=np.intp)
    member[back] = place  # any instance of a row will do
    votes = _votes(rows, row, fusion.partitions.offsets)
    why = [
        _why(own, alternative, margin, row_votes)
        for own, alternative, margin, row_votes in zip(
            rows.labels[row].tolist(),
            found.alternative[member].tolist(),
            found.margin[member].tolist(),
            votes,
            strict=True,
        )
    ]
    few = votes.shape[1] <= _MOST_VOTES
    return {
        "id": _ids(fusion, place),
        "cluster": fusion.labels[place].tolist(),
        "alternative": found.alternative[place].tolist(),
        "confidence": to_plain(found.confidence[place].round(4)),
        "margin": to_plain(found.margin[place].round(4)),
        "coverage": to_plain(found.coverage[place].round(4)),
        "alike": rows.counts[row][back].tolist(),
        "sampled": chosen.sampled.tolist(),
        "votes": votes[back].tolist() if few else None,
        "why": [why[i] for i in back.tolist()],
    }


def _choose(
    rows: JointRows, labels: np.ndarray, confidence: np.ndarray, margin: np.ndarray, listed: int
) -> _Listed:
    """All instances if they fit; else the least sure ones, and some of every cluster."""
    n = len(labels)
    chosen = np.ones(n, dtype=bool)
    sampled = np.zeros(n, dtype=bool)
    if n > listed:
        n_sampled = int(_SAMPLED * listed)
        chosen = _least_sure(rows, confidence, margin, listed - n_sampled)
        sampled = _some_of_each(labels, confidence, n_sampled) & ~chosen
    place = np.flatnonzero(chosen | sampled)
    place = place[np.lexsort((place, margin[place], confidence[place]))]
    return _Listed(place, sampled[place])


def _least_sure(rows: JointRows, confidence: np.ndarray, margin: np.ndarray, wanted: int) -> np.ndarray:
    """Mask of the `wanted` least sure instances, few of any distinct row."""
    member = np.empty(len(rows.counts), dtype=np.intp)
    member[rows.inverse] = np.arange(len(rows.inverse))
    order = np.lexsort((margin[member], confidence[member]))
    quota = np.minimum(rows.counts[order], _ALIKE)
    left = wanted - (np.cumsum(quota) - quota)
    quota_of_row = np.zeros(len(order), dtype=np.int64)
    quota_of_row[order] = np.clip(left, 0, quota)
    candidates = np.flatnonzero(quota_of_row[rows.inverse] > 0)
    by_row = candidates[np.argsort(rows.inverse[candidates], kind="stable")]
    row = rows.inverse[by_row]
    first = np.searchsorted(row, row)  # where the instances of the same row begin
    chosen = np.zeros(len(rows.inverse), dtype=bool)
    chosen[by_row[np.arange(len(row)) - first < quota_of_row[row]]] = True
    return chosen


def _some_of_each(labels: np.ndarray, confidence: np.ndarray, wanted: int) -> np.ndarray:
    """Mask of about `wanted` instances: as many of every cluster, evenly spaced from unsure to sure."""
    order = np.lexsort((confidence, labels))
    sizes = np.bincount(labels + 1)
    ends = np.cumsum(sizes)
    chosen = np.zeros(len(labels), dtype=bool)
    filled = np.flatnonzero(sizes[1:]) + 1
    for c in filled[:wanted]:
        each = min(max(wanted // len(filled), 1), int(sizes[c]))
        start = ends[c] - sizes[c]
        chosen[order[start + ((np.arange(each) + 0.5) / each * sizes[c]).astype(np.int64)]] = True
    return chosen


def _votes(rows: JointRows, which: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The consensus cluster that each base puts a row with, (rows, bases).

    It is the one that holds more than half of the other members of the base cluster the row is in.
    """
    together = label_counts(rows, offsets)
    codes, z = rows.codes[which], rows.labels[which]
    votes = np.full(codes.shape, UNSEEN)
    for j in range(codes.shape[1]):
        seen = np.flatnonzero(codes[:, j] >= 0)
        others = together[offsets[j] + codes[seen, j]]
        counted = np.flatnonzero(z[seen] >= 0)
        others[counted, z[seen][counted]] -= 1
        top = others.argmax(axis=1)
        most = others[np.arange(len(seen)), top]
        votes[seen, j] = np.where(2 * most > others.sum(axis=1), top, UNDECIDED)
    return votes


def _why(own: int, alternative: int, margin: float, votes: np.ndarray) -> str:
    seen = votes[votes != UNSEEN]
    if not len(seen):
        return "no base clustering saw it" + (f", so cluster {own} is a guess" if own >= 0 else "")
    if own < 0:
        return "the method left it unassigned"
    clusters, counts = np.unique(seen[seen >= 0], return_counts=True)
    tally = dict(zip(clusters.tolist(), counts.tolist(), strict=True))
    tie = alternative >= 0 and is_tie(margin)
    text = _verdict(own, tally, len(seen), tie)
    undecided = len(seen) - sum(tally.values())
    if tally and undecided:
        text += f"; {undecided} point{'s' * (undecided == 1)} to no single cluster"
    return text + _weighed(own, alternative, margin, tally, tie)


def _weighed(own: int, alternative: int, margin: float, tally: dict[int, int], tie: bool) -> str:
    """What the margin says where counting votes says something else: good base clusterings weigh more."""
    leads = tally.get(own, 0) == max(tally.values(), default=0)
    leads_alone = leads and sum(votes == tally.get(own, 0) for votes in tally.values()) <= 1
    if tie:
        as_likely = f"; cluster {alternative} is about as likely"
        return as_likely if leads_alone or not leads else ""
    if leads and alternative >= 0 and margin < 0.5:
        return f"; cluster {alternative} is more likely all the same"
    if tally and not leads and margin > 0.5:
        return f"; cluster {own} is more likely all the same"
    return ""


def _verdict(own: int, tally: dict[int, int], n_seen: int, tie: bool) -> str:
    """Who has most votes, and how many the own cluster or the runner-up has."""
    if n_seen == 1:
        told = f"which puts it with cluster {next(iter(tally))}" if tally else "and that one cannot tell"
        return f"seen by one base clustering only, {told}"
    if not tally:
        return f"none of the {n_seen} base clusterings that saw it points to a single cluster"
    if tally.get(own) == n_seen:
        who = "both" if n_seen == 2 else f"all {n_seen}"
        return f"{who} base clusterings that saw it put it with cluster {own}"
    most = max(tally.values())
    leaders = sorted((c for c in tally if tally[c] == most), key=lambda c: (c != own, c))
    if len(leaders) > 1:
        first = f"clusters {_joined(leaders)}" if len(leaders) <= _NAMED else f"{len(leaders)} clusters"
        if tie and own in leaders:
            text = f"tie between {first}: {most} of {n_seen} base clusterings for each"
        else:
            text = f"{most} of {n_seen} base clusterings for each of {first}"
    else:
        text = f"{most} of {n_seen} base clusterings put{'s' * (most == 1)} it with cluster {leaders[0]}"
    if own not in leaders:
        return f"{text}, {tally.get(own, 'none')} with cluster {own}"
    rest = {c: votes for c, votes in tally.items() if c not in leaders}
    if not rest or len(leaders) > 1:
        return text
    second = max(rest, key=lambda c: rest[c])
    return f"{text}, {rest[second]} with cluster {second}"


def _joined(clusters: list[int]) -> str:
    """Numbers in a sentence.

    >>> _joined([4, 1, 7])
    '4, 1 and 7'
    """
    *first, last = map(str, clusters)
    return f"{', '.join(first)} and {last}"


def _ids(fusion: Fusion, place: np.ndarray) -> list[Any]:
    if fusion.index is None:
        return place.tolist()
    return [plain_id(value) for value in fusion.index[place].tolist()]


def plain_id(value: Any) -> Any:
    """An id as JSON and JavaScript know it: a number or a text."""
    if isinstance(value, tuple):
        return " / ".join(str(part) for part in value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _EXACT_INTEGER:
        return value
    return str(value)
