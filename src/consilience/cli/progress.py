"""A bar on stderr while something takes long; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class Bar:
    """One bar that is told ``(what, done, total)``; it vanishes when the work is done."""

    def __init__(self, progress: Progress | None) -> None:
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
    """A bar for the block, if somebody is there to see it."""
    if quiet or not sys.stderr.isatty():
        yield Bar(None)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Bar(progress)
