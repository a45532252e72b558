"""A fusion in words and tables: the summary for a terminal, and the same for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from consilience._support.shown import Table
from consilience.diagnostics import typical_labels

if TYPE_CHECKING:
    from consilience.results.fusion import Fusion

_LISTED = 20  # base clusterings in a summary; `diagnostics.bases` has all
_SHOWN = 100  # the same in a notebook


def as_text(fusion: Fusion) -> str:
    """What was found, in words: method, clusters, views or base clusterings, warnings."""
    head = fusion.headline
    lines = [head.chance, ""] if head.chance else []
    lines += [f"{head.found} from {head.evidence}.", f"Method: {fusion.method}. {fusion.reason}"]
    lines += head.sides.sentences if head.sides is not None else ()
    if fusion.cluster_count is not None:
        lines += ["", "The number of clusters was found.", fusion.cluster_count.summary(), ""]
    sure = head.sureness
    if not fusion.by_views:
        n = fusion.diagnostics.bases.effective_number
        sure += f" Effective number of base clusterings: {n:.1f} (1: all say the same)."
    lines += [sure, head.reading, *([head.repeatability] if head.repeatability else [])]
    for table in (_clusters(fusion), _typical(fusion), _sources(fusion, _LISTED)):
        lines += ["", *table.lines()] if table.head else []
    lines += ["", *_read(fusion)] if fusion.tables else []
    if fusion.changes is not None:
        lines += ["", *fusion.changes.sentences]
    if head.warnings:
        lines += ["", *(f"Warning: {sentence}" for sentence in head.warnings)]
    return "\n".join(lines)


def as_html(fusion: Fusion) -> str:
    """The summary for a notebook."""
    head = fusion.headline
    paragraphs = [f"<b>{escape(head.chance)}</b>"] if head.chance else []
    paragraphs += [
        f"<b>{escape(head.found)}</b> from {escape(head.evidence)}. {escape(head.sureness)} "
        + escape(head.reading),
        f"Method: {escape(fusion.method)}. {escape(fusion.reason)}",
    ]
    if head.sides is not None:
        paragraphs.append(escape(" ".join(head.sides.sentences)))
    if head.repeatability:
        paragraphs.append(escape(head.repeatability))
    if fusion.cluster_count is not None:
        paragraphs.append(escape(" ".join(fusion.cluster_count.sentences)))
    if fusion.changes is not None:
        paragraphs.append(escape(" ".join(fusion.changes.sentences)))
    paragraphs += [escape(line) for line in _read(fusion)]
    tables = _clusters(fusion).html() + _sources(fusion, _SHOWN).html()
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in head.warnings)
    return (
        f"<div>{''.join(f'<p>{text}</p>' for text in paragraphs)}"
        f"<div style='display:flex;gap:2em;align-items:flex-start'>{tables}</div>"
        f"{f'<p>Warnings:</p><ul>{sentences}</ul>' if sentences else ''}</div>"
    )


def _read(fusion: Fusion) -> list[str]:
    """How the columns of each table were read, where that can be asked."""
    return [f"{name}: {table.line}" for name, table in fusion.tables.items()]


def _used(fusion: Fusion) -> list[int]:
    """Numbers of clusters that have members."""
    return np.flatnonzero(fusion.headline.size).tolist()


def _clusters(fusion: Fusion) -> Table:
    """Sizes, mean confidence, consensus, and that with the nearest cluster."""
    table, head = fusion.diagnostics.clusters, fusion.headline
    rows = []
    for c in _used(fusion):
        near = f"{table.between[c]:.2f} ({table.nearest[c]})" if table.nearest[c] >= 0 else "-"
        rows.append(
            (str(c), str(head.size[c]), f"{head.cluster_confidence[c]:.2f}", f"{table.own[c]:.2f}", near)
        )
    return Table(("cluster", "instances", "confidence", "consensus", "with next"), rows)


def _typical(fusion: Fusion) -> Table:
    """What clusters are called, and the labels that are typical of them, where those mean something."""
    columns: dict[str, Sequence[str]] = {"cluster": [str(c) for c in _used(fusion)]}
    if fusion.cluster_names is not None:
        columns["name"] = [fusion.names[c] for c in _used(fusion)]
    if fusion.partitions.views is None:
        found = typical_labels(fusion.partitions, fusion.label_rows)
        columns["typical labels"] = [", ".join(found.most(c)) or "-" for c in _used(fusion)]
    if len(columns) == 1:
        return Table((), [])
    return Table(tuple(columns), list(zip(*columns.values(), strict=True)), ("name", "typical labels"))


def _sources(fusion: Fusion, most: int) -> Table:
    """What the answer was made from: views, or base clusterings."""
    if fusion.mixed is not None:
        return _both(fusion, most)
    return _views(fusion) if fusion.by_views else _bases(fusion, most)


def _both(fusion: Fusion, most: int) -> Table:
    """What base clusterings and views counted beside each other, and why."""
    rows = []
    for source in fusion.sources:
        near = "-" if np.isnan(source.agreement) else f"{source.agreement:.2f}"
        trust = "-" if np.isnan(source.trust) else f"{source.trust:.2f}"
        kind = "labels" if source.kind == "labels" else "view"
        weight = f"{source.weight:.2f}"
        rows.append((source.name, kind, str(source.n_instances), near, trust, source.closest or "-", weight))
    head = ("source", "kind", "seen", "agreement", "trust", "closest", "weight")
    note = "Trust: how far a source says what all share. A trusted base clustering weighs .5, a view 1."
    if len(rows) > most:
        note += f" {len(rows) - most} more are in fusion.sources."
    return Table(head, rows[:most], ("source", "kind", "closest"), note)


def _views(fusion: Fusion) -> Table:
    """How each view was read, how far it agrees with the clusters, what it counts."""
    rows = [
        (v.name, v.kind, str(v.n_rows), str(v.n_empty), v.agrees, f"{v.weight:.2f}") for v in fusion.views
    ]
    note = "Empty rows have no entry at all: they say nothing and count as absent."
    head = ("view", "read as", "rows", "empty", "agreement", "weight")
    return Table(head, rows, ("view", "read as"), note if any(v.n_empty for v in fusion.views) else "")


def _bases(fusion: Fusion, most: int) -> Table:
    bases = fusion.diagnostics.bases
    columns = zip(bases.names, bases.n_clusters, bases.n_seen, bases.agreement, bases.weights, strict=True)
    rows: list[tuple[str, ...]] = [
        (name, str(k), str(n), f"{near:.2f}", f"{weight:.2f}") for name, k, n, near, weight in columns
    ]
    note = ""
    if len(rows) > most:
        low, high = bases.agreement[most:].min(), bases.agreement[most:].max()
        note = f"and {len(rows) - most} others, agreement {low:.2f} to {high:.2f}"
    head: tuple[str, ...] = ("base clustering", "clusters", "seen", "agreement", "weight")
    if fusion.given_weights is not None:  # as given, then as learned from agreement
        head = (*head[:-1], "given weight", "learned weight")
        given = [f"{source.given_weight:g}" for source in fusion.sources]
        rows = [(*row[:-1], asked, row[-1]) for row, asked in zip(rows, given, strict=True)]
    if fusion.groups:
        head = (head[0], "group", *head[1:])
        rows = [
            (row[0], source.group or "-", *row[1:]) for row, source in zip(rows, fusion.sources, strict=True)
        ]
    return Table(head, rows[:most], ("base clustering", "group"), note)
