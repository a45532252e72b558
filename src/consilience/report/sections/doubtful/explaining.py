"""What is behind a line: what each source said, who is alike, which single opinion would change it."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.inference.counts import JointRows, label_counts
from consilience.inference.posterior import predict_labels
from consilience.io.labels import plain
from consilience.report.job import plain_id
from consilience.report.sections.doubtful.lines import ids_of
from consilience.report.sections.doubtful.reasons import UNSEEN
from consilience.results import Fusion
from consilience.results.explaining import n_changes, nearest_rows, turns_of

# What explanations may take: labels that are kept, rows that are placed to see what would turn them, and
# labels that are compared to find those alike. The least sure lines are explained first.
_MOST_LABELS, _MOST_CHANGES, _MOST_COMPARED = 100_000, 300_000, 3 * 10**8
# A share of a base cluster below this is not written.
_LEAST_SHARE = 0.005


def explain(fusion: Fusion, place: np.ndarray) -> dict[str, Any]:
    """Of the instances in these places, the least sure first; see `Explained`."""
    table, rows = fusion.opinions, fusion.rows
    row = rows.inverse[place[: max(_MOST_LABELS // table.n_partitions, 1)]]
    codes = rows.codes[row]
    seen = codes >= 0
    used, said = np.unique(np.where(seen, table.offsets[:-1] + codes, -1), return_inverse=True)
    said, used = said.reshape(codes.shape) - (used[0] < 0), used[used >= 0]
    weights = None if fusion.given_weights is None else np.asarray(fusion.given_weights)
    by_labels = np.where(seen.any(axis=1), predict_labels(fusion.evidence, codes, weights), UNSEEN)
    n_turned = min(len(row), max(_MOST_CHANGES // n_changes(table), 1))
    turns = _turns(fusion, codes[:n_turned], rows.labels[row], by_labels, weights)
    turns += [None] * (len(row) - n_turned)
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
            [ids_of(fusion, first[r : r + 1])[0], int(rows.counts[r]), int(rows.labels[r]), agreeing, both]
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
