"""Why an instance is sure or not, in words: where each base clustering puts it, counted as votes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from consilience.inference.counts import JointRows, label_counts
from consilience.inference.posterior import is_tie

# What a base clustering says about an instance, besides the number of a consensus cluster.
UNSEEN, UNDECIDED = -1, -2
# More clusters than this with as many votes are not spelt out.
_NAMED = 3


def judge_votes(rows: JointRows, which: np.ndarray, offsets: np.ndarray) -> np.ndarray:
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


def reason(
    own: int, alternative: int, margin: float, votes: np.ndarray, names: Sequence[str] | None = None
) -> str:
    """Who put it where, and what the margin says where that is something else."""
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
