"""The same sections as Markdown: what stands between the marks of a page of the documentation is replaced."""

import re
from collections.abc import Sequence

from benchmarks.record.page import cell
from benchmarks.record.summary import Section, Table

# <!-- record: title --> ... <!-- end of record -->; "title; tables 1; rows 10" shows so many of them
_MARKED = re.compile(
    r"(<!-- record: (.+?)(?:; tables (\d+))?(?:; rows (\d+))? -->\n).*?(<!-- end of record -->)", re.DOTALL
)


def filled(text: str, sections: Sequence[Section]) -> str:
    """The text with every marked place filled from its section; a mark without a section is an error."""
    by_title = {section.title: section for section in sections}

    def fill(mark: re.Match[str]) -> str:
        opening, title, tables, rows, closing = mark.groups()
        if title not in by_title:
            raise ValueError(f"There is no section {title!r} in the results. Hint: {', '.join(by_title)}.")
        most = [int(number) if number else None for number in (tables, rows)]
        return f"{opening}\n{section(by_title[title], *most)}\n{closing}"

    return _MARKED.sub(fill, text)


def section(found: Section, n_tables: int | None = None, n_rows: int | None = None) -> str:
    """Words and the first tables; of tables that take turns in one place the first, of pictures none."""
    shown = [block[0] if isinstance(block, list) else block for block in found.blocks]
    parts = list(found.text)
    for one in [block for block in shown if isinstance(block, Table)][:n_tables]:
        said = ", ".join(words for words in (one.choice, one.note) if words)
        parts += [*([said] if said else []), table(one, n_rows)]
    return "\n\n".join(parts) + "\n"


def table(found: Table, n_rows: int | None = None) -> str:
    """A table, or its first rows."""
    names = [name for name, _ in found.columns]
    rows = [[cell(value, found.digits) for value in row] for row in found.rows[:n_rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in (names, ["---"] * len(names), *rows))
