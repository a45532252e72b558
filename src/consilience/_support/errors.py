"""Errors about what was given: a sentence that names it, and a hint what to do."""

from typing import Any


class Hinted(Exception):
    """An error that ends in a hint; `message` and `hint` are its two parts.

    `command` is the hint for those who write commands, where it is another one.
    """

    def __init__(self, message: str, hint: str = "", command: str = "") -> None:
        super().__init__(f"{message} Hint: {hint}" if hint else message)
        self.message = message
        self.hint = hint
        self.command = command or hint

    def __reduce__(self) -> tuple[Any, ...]:  # all parts survive the way between processes
        return type(self), (self.message, self.hint, self.command)


class InputError(Hinted, ValueError):
    """What was given has the wrong value."""


class InputTypeError(Hinted, TypeError):
    """What was given is of the wrong kind."""


class UsageError(InputError):
    """The call or command was wrong, not the data."""


class ClusterError(Hinted, RuntimeError):
    """The workers or the scheduler of a cluster of machines are not there."""
