"""Which instances a page lists, why each of them is sure or not, and what is behind that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.core.grouping import group
from consilience.inference.counts import JointRows, label_counts, to_plain
from consilience.inference.posterior import is_tie, predict_labels
from consilience.io.labels import plain
from consilience.results import Fusion
from consilience.results.explaining import n_changes, nearest_rows, turns_of

# What a base clustering says about an instance, besides the number of a consensus cluster.
UNSEEN, UNDECIDED = -1, -2
# Ids on the page, for each line that may be listed: instances that cannot be told apart share a line.
_IDS_A_LINE = 10
# The share of the list that shows every cluster, sure members included.
_SAMPLED = 0.25
# A picture of single votes is readable up to this many base clusterings.
_MOST_VOTES = 24
# More clusters than this with as many votes are not spelt out.
_NAMED = 3
# JavaScript holds integers exactly up to here.
_EXACT_INTEGER = 2**53
# What explanations may take: labels that are kept, rows that are placed to see what would turn them, and
# labels that are compared to find those alike. The least sure lines are explained first.
_MOST_LABELS, _MOST_CHANGES, _MOST_COMPARED = 100_000, 300_000, 3 * 10**8
# A share of a base cluster below this is not written.
_LEAST_SHARE = 0.005


class _Lines(NamedTuple):
    """Lines of the list, least sure first: one for all instances that nothing tells apart."""

    first: np.ndarray  # position of the first instance
    members: list[np.ndarray]  # positions of those whose ids are listed, the first among them
    n_instances: np.ndarray
    sampled: np.ndarray  # whether it is there as a sample only


def list_instances(fusion: Fusion, rows: JointRows, listed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns of the table of instances, and what explains its first lines, as plain lists.

    Everything about an instance follows from its base labels and its consensus label, so it is worked out
    once for every distinct row that is listed.
    """
    found = fusion.diagnostics
    chosen = _choose(fusion, rows, listed)
    place = chosen.first
    row = rows.inverse[place]
    votes = _votes(rows, row, fusion.opinions.offsets)
    names = None if fusion.cluster_names is None else fusion.names
    why = [
        _why(own, alternative, margin, row_votes, names)
        for own, alternative, margin, row_votes in zip(
            rows.labels[row].tolist(),
            found.alternative[place].tolist(),
            found.margin[place].tolist(),
            votes,
            strict=True,
        )
    ]
    few = votes.shape[1] <= _MOST_VOTES
    columns = {
        "id": _ids(fusion, place),
        "others": [_ids(fusion, members[1:]) for members in chosen.members],
        "cluster": fusion.labels[place].tolist(),
        "alternative": found.alternative[place].tolist(),
        "confidence": to_plain(found.confidence[place].round(4)),
        "margin": to_plain(found.margin[place].round(4)),
        "coverage": to_plain(found.coverage[place].round(4)),
        "alike": chosen.n_instances.tolist(),
        "sampled": chosen.sampled.tolist(),
        "votes": votes.tolist() if few else None,
        "why": why,
    }
    return columns, _explain(fusion, rows, row)


def _explain(fusion: Fusion, rows: JointRows, row: np.ndarray) -> dict[str, Any]:
    """What is behind the lines, the least sure first: who said what, who is alike, what would turn them."""
    table = fusion.opinions
    row = row[: max(_MOST_LABELS // table.n_partitions, 1)]
    codes = rows.codes[row]
    seen = codes >= 0
    used, said = np.unique(np.where(seen, table.offsets[:-1] + codes, -1), return_inverse=True)
    said, used = said.reshape(codes.shape) - (used[0] < 0), used[used >= 0]
    weights = None if fusion.given_weights is None else np.asarray(fusion.given_weights)
    by_labels = np.where(seen.any(axis=1), predict_labels(fusion.evidence, codes, weights), UNSEEN)
    n_turned = min(len(row), max(_MOST_CHANGES // n_changes(table), 1))
    turns = _turns(fusion, codes[:n_turned], rows.labels[row], by_labels, weights) + [None] * (
        len(row) - n_turned
    )
    return {
        "answers": _answers(fusion, rows, used),
        "said": said.tolist(),
        "by_labels": by_labels.tolist(),
        "nearest": _nearest(fusion, rows, codes),
        "turns": [[] if label < 0 else told for label, told in zip(rows.labels[row], turns, strict=True)],
    }


def _answers(fusion: Fusion, rows: JointRows, used: np.ndarray) -> dict[str, Any]:
    """Base clusters that members of the list are in: of which source, its name for it, and the clusters that
    its members are in, as pairs of a cluster and thousandths."""
    table = fusion.opinions
    counts = label_counts(rows, table.offsets)[used]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    base = np.searchsorted(table.offsets, used, side="right") - 1
    labels = [
        plain_id(plain(table.categories[j][code]))
        for j, code in zip(base.tolist(), (used - table.offsets[base]).tolist(), strict=True)
    ]
    written = [
        [value for c in np.flatnonzero(row >= _LEAST_SHARE) for value in (int(c), round(1000 * row[c]))]
        for row in shares
    ]
    return {"base": base.tolist(), "label": labels, "shares": written}


def _nearest(fusion: Fusion, rows: JointRows, codes: np.ndarray) -> list[list[list[Any]]]:
    """Those most alike: an id, how many they are, their cluster, labels in common, of how many."""
    first = np.empty(len(rows.codes), dtype=np.intp)
    first[rows.inverse[::-1]] = np.arange(len(rows.inverse))[::-1]
    compared = np.argsort(-rows.counts, kind="stable")[: max(_MOST_COMPARED // codes.size, 1)]
    found = nearest_rows(rows, codes, compared)
    return [
        [
            [_ids(fusion, first[r : r + 1])[0], int(rows.counts[r]), int(rows.labels[r]), agreeing, both]
            for r, agreeing, both in near
        ]
        for near in found
    ]


def _turns(
    fusion: Fusion, codes: np.ndarray, labels: np.ndarray, by_labels: np.ndarray, weights: np.ndarray | None
) -> list[list[list[Any]] | None]:
    """What would turn them: the number of the source, what it would say (None: nothing), and the cluster."""
    table = fusion.opinions
    sources = table.names if table.views is None else tuple(dict.fromkeys(table.views))
    number = {name: j for j, name in enumerate(sources)}
    return [
        [
            [number[turn.source], None if turn.instead is None else plain_id(turn.instead), turn.label]
            for turn in turns
        ]
        for turns in turns_of(table, fusion.evidence, codes, labels, by_labels, weights)
    ]


def _choose(fusion: Fusion, rows: JointRows, listed: int) -> _Lines:
    """All lines if they fit; else the least sure ones, and some of every cluster."""
    confidence, margin = fusion.diagnostics.confidence, fusion.diagnostics.margin
    line, n_lines = _line_of_each(rows, confidence)
    n = len(line)
    first = np.empty(n_lines, dtype=np.intp)
    first[line[::-1]] = np.arange(n)[::-1]  # the last that is written stays
    chosen = np.ones(n_lines, dtype=bool)
    sampled = np.zeros(n_lines, dtype=bool)
    order = np.lexsort((first, margin[first], confidence[first]))
    if n_lines > listed:
        n_sampled = int(_SAMPLED * listed)
        chosen[order[listed - n_sampled :]] = False
        sampled[line[_some_of_each(fusion.labels, confidence, n_sampled)]] = True
        sampled &= ~chosen
    order = order[(chosen | sampled)[order]]
    count = np.bincount(line, fusion.opinions.counts, n_lines).astype(np.int64)
    members = _members(line, order, n_lines, _IDS_A_LINE * listed)
    return _Lines(first[order], members, count[order], sampled[order])


def _line_of_each(rows: JointRows, confidence: np.ndarray) -> tuple[np.ndarray, int]:
    """The line of every instance: its distinct row, split where confidence differs, as of views it may."""
    per_row = np.empty(len(rows.codes))
    per_row[rows.inverse] = confidence
    if np.array_equal(per_row[rows.inverse], confidence):
        return rows.inverse, len(rows.codes)
    found = group(rows.inverse.astype(np.int64) * 10_001 + np.rint(confidence * 10_000).astype(np.int64))
    return found.inverse, len(found.values)


def _members(line: np.ndarray, order: np.ndarray, n_lines: int, most: int) -> list[np.ndarray]:
    """Positions of the members of some lines, `most` in all: as many of each as that allows."""
    position = np.full(n_lines, -1)
    position[order] = np.arange(len(order))
    inside = np.flatnonzero(position[line] >= 0)
    sizes = np.bincount(position[line[inside]], minlength=len(order))
    low, high = 1, int(sizes.max())
    while low < high:  # the largest quota with which they fit
        quota = (low + high + 1) // 2
        low, high = (quota, high) if np.minimum(sizes, quota).sum() <= most else (low, quota - 1)
    by_line = inside[np.argsort(position[line[inside]], kind="stable")]
    return [part[:low] for part in np.split(by_line, np.cumsum(sizes)[:-1])]


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


def _why(
    own: int, alternative: int, margin: float, votes: np.ndarray, names: Sequence[str] | None = None
) -> str:
    seen = votes[votes != UNSEEN]
    if not len(seen):
        guess = f", so cluster {called(own, names)} is a guess" if own >= 0 else ""
        return "no base clustering saw it" + guess
    if own < 0:
        return "the method left it unassigned"
    clusters, counts = np.unique(seen[seen >= 0], return_counts=True)
    tally = dict(zip(clusters.tolist(), counts.tolist(), strict=True))
    tie = alternative >= 0 and is_tie(margin)
    text = _verdict(own, tally, len(seen), tie, names)
    undecided = len(seen) - sum(tally.values())
    if tally and undecided:
        text += f"; {undecided} point{'s' * (undecided == 1)} to no single cluster"
    return text + _weighed(own, alternative, margin, tally, tie, names)


def called(cluster: int, names: Sequence[str] | None) -> str:
    """The number of a cluster, and its name where it has one of its own.

    >>> called(1, ["loyal", "new"]), called(1, ["loyal", "1"]), called(1, None)
    ('1 (new)', '1', '1')
    """
    named = names is not None and names[cluster] != str(cluster)
    return f"{cluster} ({names[cluster]})" if names is not None and named else str(cluster)


def _weighed(
    own: int,
    alternative: int,
    margin: float,
    tally: dict[int, int],
    tie: bool,
    names: Sequence[str] | None,
) -> str:
    """What the margin says where counting votes says something else: good base clusterings weigh more."""
    leads = tally.get(own, 0) == max(tally.values(), default=0)
    leads_alone = leads and sum(votes == tally.get(own, 0) for votes in tally.values()) <= 1
    if tie:
        as_likely = f"; cluster {called(alternative, names)} is about as likely"
        return as_likely if leads_alone or not leads else ""
    if leads and alternative >= 0 and margin < 0.5:
        return f"; cluster {called(alternative, names)} is more likely all the same"
    if tally and not leads and margin > 0.5:
        return f"; cluster {called(own, names)} is more likely all the same"
    return ""


def _verdict(own: int, tally: dict[int, int], n_seen: int, tie: bool, names: Sequence[str] | None) -> str:
    """Who has most votes, and how many the own cluster or the runner-up has."""
    if n_seen == 1:
        first = called(next(iter(tally)), names) if tally else ""
        told = f"which puts it with cluster {first}" if tally else "and that one cannot tell"
        return f"seen by one base clustering only, {told}"
    if not tally:
        return f"none of the {n_seen} base clusterings that saw it points to a single cluster"
    if tally.get(own) == n_seen:
        who = "both" if n_seen == 2 else f"all {n_seen}"
        return f"{who} base clusterings that saw it put it with cluster {called(own, names)}"
    most = max(tally.values())
    leaders = sorted((c for c in tally if tally[c] == most), key=lambda c: (c != own, c))
    if len(leaders) > 1:
        listed = _joined([called(c, names) for c in leaders])
        first = f"clusters {listed}" if len(leaders) <= _NAMED else f"{len(leaders)} clusters"
        if tie and own in leaders:
            text = f"tie between {first}: {most} of {n_seen} base clusterings for each"
        else:
            text = f"{most} of {n_seen} base clusterings for each of {first}"
    else:
        with_first = f"with cluster {called(leaders[0], names)}"
        text = f"{most} of {n_seen} base clusterings put{'s' * (most == 1)} it {with_first}"
    if own not in leaders:
        return f"{text}, {tally.get(own, 'none')} with cluster {called(own, names)}"
    rest = {c: votes for c, votes in tally.items() if c not in leaders}
    if not rest or len(leaders) > 1:
        return text
    second = max(rest, key=lambda c: rest[c])
    return f"{text}, {rest[second]} with cluster {called(second, names)}"


def _joined(clusters: list[str]) -> str:
    """Clusters in a sentence.

    >>> _joined(["4", "1", "7"])
    '4, 1 and 7'
    """
    *first, last = clusters
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
