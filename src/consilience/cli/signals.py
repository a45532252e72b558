"""What ends a command from outside: Ctrl-C, SIGTERM, a terminal that closes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from consilience._support.files import Outputs

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is not there on Windows
_ENDING = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


class Terminated(BaseException):
    """A signal asked the process to end; whatever it was writing is to be removed on the way."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


class Interrupted(Exception):
    """Ctrl-C in a command that keeps what it has done."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Inside, signals that would end the process at once raise `Terminated`; ignored ones stay ignored."""
    with signals_kept():
        for number in _ENDING:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _raise)
        yield


@contextmanager
def signals_kept() -> Iterator[None]:
    """What signals did before, they do again after the block."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        yield
    finally:
        if _may_set():
            for number, handler in before.items():
                signal.signal(number, handler)


def go_on_to_the_end() -> None:
    """What is left to do takes no time and must not be done by half: no signal ends it any more."""
    if _may_set():
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def together() -> Iterator[Outputs]:
    """The files of one command: all of them appear at the end, or none does."""
    with Outputs() as outputs:
        yield outputs
        go_on_to_the_end()


def _may_set() -> bool:
    return threading.current_thread() is threading.main_thread()


def _raise(number: int, frame: Any) -> None:
    raise Terminated(number)
