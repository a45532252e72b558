"""What is said on a terminal: tables on standard output, talk, warnings and a bar on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def talk(text: str, quiet: bool) -> None:
    """A line on standard error."""
    if not quiet:
        print(text, file=sys.stderr)


def show(head: Sequence[str], rows: Sequence[Sequence[str]], *, lines: bool = False) -> None:
    """A table for the eye on a terminal; columns between tabs for other programs."""
    if not sys.stdout.isatty():
        print("\n".join("\t".join(row) for row in [head, *rows]))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*head, show_lines=lines)
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


class Bar:
    """One bar that is told ``(what, done, total)``; it vanishes when the work is done."""

    def __init__(self, progress: Any = None) -> None:
        self._progress = progress
        self._task: Any = progress.add_task("", total=None) if progress is not None else None

    def __call__(self, what: str, done: int = 0, total: int | None = None) -> None:
        if self._progress is not None:
            # Not markup: names come from the user's data.
            self._progress.update(
                self._task, description=what.replace("[", r"\["), completed=done, total=total
            )


@contextmanager
def bar(quiet: bool) -> Iterator[Bar]:
    """A bar for the block, if somebody is there to see it; the quiet see no warnings either."""
    with warnings.catch_warnings(action="ignore") if quiet else warnings.catch_warnings():
        if quiet or not sys.stderr.isatty():
            yield Bar()
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            yield Bar(progress)
