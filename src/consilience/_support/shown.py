"""Tables and sentences as people read them: below each other in a terminal, as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

_SHOWN = 100  # rows of a table in a notebook


class Table(NamedTuple):
    """Cells as text; columns named in `left` are words, others numbers."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: tuple[str, ...] = ()
    note: str = ""

    def lines(self) -> Iterator[str]:
        """Columns below each other."""
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows, strict=True)]
        for row in (self.head, *self.rows):
            cells = zip(self.head, row, widths, strict=True)
            yield "  ".join(
                f"{c:{w}s}" if name in self.left else f"{c:>{w}s}" for name, c, w in cells
            ).rstrip()
        if self.note:
            yield self.note

    def html(self) -> str:
        """The same for a browser."""
        top = "".join(f"<th>{escape(cell)}</th>" for cell in self.head)
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self.rows[:_SHOWN]]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        note = f"<caption>{escape(self.note)}</caption>" if self.note else ""
        return f"<table>{note}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def as_html(sentences: Iterable[str], *tables: Table, warnings: Iterable[str] = ()) -> str:
    """Sentences, tables that have columns, and warnings, for a notebook."""
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    drawn = "".join(table.html() for table in tables if table.head)
    listed = "".join(f"<li>{escape(sentence)}</li>" for sentence in warnings)
    return f"<div>{said}{drawn}{f'<p>Warnings:</p><ul>{listed}</ul>' if listed else ''}</div>"
