"""What is said while work goes on: log records of "consilience", and a bar."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import import_module
from typing import Any

Progress = Callable[[str, int, int], None]

logger = logging.getLogger("consilience")

_WIDTH = 30  # of a bar in a terminal


def tell(message: str) -> None:
    """Say what `verbose` asked for: a record of the level INFO, and a line on stderr.

    The handlers of the user get the record whatever the level of the root logger is, since it was asked for;
    the line is left out where one of them shows it already. A higher level of the logger "consilience" itself
    silences both.
    """
    if logger.disabled or logger.level > logging.INFO:
        return
    file, line, function, _ = logger.findCaller(stacklevel=2)
    logger.handle(logger.makeRecord(logger.name, logging.INFO, file, line, message, (), None, function))
    if not any(_shows(handler) for handler in _handlers()):
        print(message, file=sys.stderr, flush=True)


def _handlers() -> Iterator[logging.Handler]:
    at: logging.Logger | None = logger
    while at is not None:
        yield from at.handlers
        at = at.parent if at.propagate else None


def _shows(handler: logging.Handler) -> bool:
    """Whether a handler shows records of the level INFO to somebody, rather than to put them in a file."""
    if handler.level > logging.INFO or isinstance(handler, logging.NullHandler):
        return False
    if isinstance(handler, logging.StreamHandler):
        return handler.stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return True


@contextmanager
def watched(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """What is told of every step: the function that was given, a bar for True, nothing otherwise.

    The bar goes where somebody can see it, a notebook or a terminal, and is gone when the work is done.
    """
    if not isinstance(progress, bool):
        yield progress
        return
    bar = _bar() if progress else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()


class _Bar:
    """A bar that can be drawn again in its place."""

    def __call__(self, step: str, done: int, total: int) -> None: ...

    def close(self) -> None: ...


class _InNotebook(_Bar):
    def __init__(self, display: Any) -> None:
        self._display = display
        self._shown: Any = None

    def __call__(self, step: str, done: int, total: int) -> None:
        self._draw(f"<progress value='{done}' max='{total}'></progress> {done} of {total}: {escape(step)}")

    def close(self) -> None:
        if self._shown is not None:
            self._draw("")

    def _draw(self, html: str) -> None:
        content = self._display.HTML(html)
        if self._shown is None:
            self._shown = self._display.display(content, display_id=True)
        else:
            self._shown.update(content)


class _InTerminal(_Bar):
    def __call__(self, step: str, done: int, total: int) -> None:
        full = _WIDTH * done // max(total, 1)
        self._draw(f"[{'=' * full}{' ' * (_WIDTH - full)}] {done} of {total}: {step}")

    def close(self) -> None:
        self._draw("")

    def _draw(self, line: str) -> None:
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _bar() -> _Bar | None:
    # Whoever runs in a notebook has IPython loaded; nobody else needs it.
    python = sys.modules.get("IPython")
    shell = python.get_ipython() if python is not None else None
    if hasattr(shell, "kernel"):
        return _InNotebook(import_module("IPython.display"))
    return _InTerminal() if sys.stderr.isatty() else None
