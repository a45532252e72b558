"""Which instances are listed: the least sure, and some of every cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.core.grouping import group
from consilience.io.labels import plain
from consilience.report.job import plain_id
from consilience.results import Fusion

# Ids on the page, for each line that may be listed: instances that cannot be told apart share a line.
_IDS_A_LINE = 10
# The share of the list that shows every cluster, sure members included.
_SAMPLED = 0.25
_UNKNOWN = "–"  # a label that is missing


class Lines(NamedTuple):
    """Lines of the list, least sure first: one for all instances that nothing tells apart."""

    first: np.ndarray  # position of the first instance
    members: list[np.ndarray]  # positions of those whose ids are listed, the first among them
    n_instances: np.ndarray
    sampled: np.ndarray  # whether it is there as a sample only


def choose_lines(fusion: Fusion, listed: int) -> Lines:
    """All lines if they fit; else the least sure ones, and some of every cluster."""
    found, labels = fusion.diagnostics, fusion.labels
    line, n_lines = _line_of_each(fusion)
    first = np.empty(n_lines, dtype=np.intp)
    first[line[::-1]] = np.arange(len(line))[::-1]  # the last that is written stays
    confidence, count = found.confidence[first], np.bincount(line, found.counts, n_lines).astype(np.int64)
    chosen = np.ones(n_lines, dtype=bool)
    sampled = np.zeros(n_lines, dtype=bool)
    order = np.lexsort((first, found.margin[first], confidence))
    if n_lines > listed:
        n_sampled = int(_SAMPLED * listed)
        chosen[order[listed - n_sampled :]] = False
        sampled[_some_of_each(labels[first], confidence, count, n_sampled)] = True
        sampled &= ~chosen
    order = order[(chosen | sampled)[order]]
    members = _members(line, order, n_lines, _IDS_A_LINE * listed)
    return Lines(first[order], members, count[order], sampled[order])


def _line_of_each(fusion: Fusion) -> tuple[np.ndarray, int]:
    """The line of every instance: its distinct row, split where confidence differs, as of views it may."""
    confidence = fusion.diagnostics.confidence
    rows = fusion.rows
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


def _some_of_each(labels: np.ndarray, confidence: np.ndarray, counts: np.ndarray, wanted: int) -> np.ndarray:
    """About `wanted` lines: as many of every cluster, its instances evenly spaced from unsure to sure."""
    filled = np.unique(labels[labels >= 0])
    chosen = []
    for c in filled[:wanted]:
        own = np.flatnonzero(labels == c)
        own = own[np.argsort(confidence[own], kind="stable")]
        ends = np.cumsum(counts[own])
        each = min(max(wanted // len(filled), 1), int(ends[-1]))
        chosen.append(own[np.searchsorted(ends, (np.arange(each) + 0.5) / each * ends[-1])])
    return np.concatenate(chosen)


def ids_of(fusion: Fusion, place: np.ndarray) -> list[Any]:
    """Ids of the instances in these places: positions where there are none, and the labels of a row that
    stands for many."""
    if fusion.index is not None:
        return [plain_id(value) for value in fusion.index[place].tolist()]
    table = fusion.opinions
    if table.n_rows == table.n_instances:
        return place.tolist()
    columns = [
        np.array([*(str(plain(label)) for label in labels), _UNKNOWN], dtype=object)[table.codes[place, j]]
        for j, labels in enumerate(table.categories)
    ]
    return [", ".join(row) for row in zip(*columns, strict=True)]
