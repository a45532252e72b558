"""How the tables of features were read: the kind of each column, and which cells are missing."""

from __future__ import annotations

from dataclasses import dataclass, field

from consilience.evidence.views import TableReading
from consilience.report.job import Job
from consilience.report.sections.answer import Warned
from consilience.results import Fusion

TITLE = "How the tables were read"
# Columns of a table that are listed, and levels of a column.
_LISTED, _LEVELS = 200, 6


@dataclass
class Column:
    """How a column was read."""

    name: str
    kind: str
    missing: float | None = None  # share of the rows that are there; None where it was left out
    levels: str = ""
    why: str = ""


@dataclass
class ReadTable:
    """How a table was read that is more than complete numbers."""

    name: str
    line: str
    n_columns: int
    columns: list[Column] = field(default_factory=list)  # those of most gaps, if they are many
    remarks: list[Warned] = field(default_factory=list)


@dataclass
class Result:
    """Nothing where all tables are complete numbers."""

    read_tables: list[ReadTable] = field(default_factory=list)


def of(fusion: Fusion, job: Job) -> Result:
    """Of one result."""
    return Result([_table(name, read) for name, read in fusion.tables.items()])


def _table(name: str, read: TableReading) -> ReadTable:
    n, n_missing = max(read.n_rows, 1), iter(read.n_missing)
    if read.columns is None:
        names = read.names or tuple(map(str, range(read.width)))
        columns = [Column(own, "number", k / n) for own, k in zip(names, n_missing, strict=True)]
        remarks = []
    else:
        columns = [
            Column(
                column.name,
                column.kind,
                next(n_missing, 0) / n if column.used else None,
                _some(column.levels or ()),
                column.why,
            )
            for column in read.columns
        ]
        told = (*read.columns.warnings, *read.columns.notes)
        remarks = [Warned(f"{one.message[:1].upper()}{one.message[1:]}", _sentence(one.hint)) for one in told]
    shown = sorted(range(len(columns)), key=lambda j: (-(columns[j].missing or 0.0), j))[:_LISTED]
    return ReadTable(name, read.line, len(columns), [columns[j] for j in sorted(shown)], remarks)


def _some(levels: tuple[str, ...]) -> str:
    words = [level or "blank" for level in levels[:_LEVELS]]
    return ", ".join(words) + (f" and {len(levels) - _LEVELS} more" if len(levels) > _LEVELS else "")


def _sentence(hint: object) -> str:
    text = str(hint)
    return text[:1].upper() + text[1:]
