"""Errors about what was given: a sentence that names it, and a hint what to do.

Sentences name parameters by placeholders, so that Python users read `n_clusters` and users of the command
line read `-k`, from one text and one table.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

# Parameters that have an option on the command line.
OPTIONS = {
    "cannot_link": "--cannot-link",
    "clusterer": "--clusterer",
    "columns": "--columns",
    "delimiter": "--delimiter",
    "encoding": "--encoding",
    "groups": "--group",
    "header": "--header",
    "id": "--id",
    "index": "--id",
    "kind": "--kind",
    "like": "--like",
    "long": "--long",
    "match_ids": "--match-ids",
    "method": "--method",
    "missing": "--missing",
    "must_link": "--must-link",
    "n_clusters": "-k",
    "named_after": "--name-after",
    "on": "--id",
    "random_state": "--seed",
    "same_names": "--same-names",
    "unobserved": "--unobserved",
    "view_weights": "--weight",
    "weights": "--weights",
}


class Phrase:
    """A text in which parameters are called as the reader calls them.

    `{n_clusters}` is the name of a parameter, `{unobserved=noise}` a parameter with a value, `{index=}` one
    whose value the reader chooses, or which is among `values`. Any other placeholder is one of `values`.

    >>> few = Phrase("n_samples={n} should be >= {n_clusters=}.", n=3, n_clusters=5)
    >>> few.python, few.shell
    ('n_samples=3 should be >= n_clusters=5.', 'n_samples=3 should be >= -k 5.')
    """

    def __init__(self, text: str, /, **values: Any) -> None:
        self._text = text
        self._values = values

    @property
    def python(self) -> str:
        """The text for those who call functions."""
        return self._text.format_map(_Names(self._values, _in_python))

    @property
    def shell(self) -> str:
        """The text for those who write commands."""
        return self._text.format_map(_Names(self._values, _in_shell))

    def __str__(self) -> str:
        return self.python


class Hint(Phrase):
    """What to do; `command` is the advice for those who write commands, where it is another one.

    >>> hint = Hint("drop them, or say {unobserved=noise}; ids are named by {index=}.")
    >>> print(hint.python)
    drop them, or say unobserved='noise'; ids are named by index=.
    >>> print(hint.shell)
    drop them, or say --unobserved noise; ids are named by --id.
    """

    def __init__(self, text: str, /, command: str = "", **values: Any) -> None:
        super().__init__(text, **values)
        self._command = command

    @property
    def shell(self) -> str:
        """The text for those who write commands."""
        return Phrase(self._command, **self._values).shell if self._command else super().shell


def _in_python(name: str, value: Any) -> str:
    return f"{name}={value!r}"


def _in_shell(name: str, value: Any) -> str:
    return f"{OPTIONS.get(name, name)} {shlex.quote(str(value))}"


class _Names:
    """What placeholders stand for."""

    def __init__(self, values: Mapping[str, Any], say: Any) -> None:
        self._values, self._say = values, say

    def __getitem__(self, key: str) -> Any:
        name, equals, value = key.partition("=")
        if not equals:
            return self._values[name] if name in self._values else self._name(name)
        if value or name in self._values:
            return self._say(name, value or self._values[name])
        return self._name(name) + "=" * (self._say is _in_python)

    def _name(self, name: str) -> str:
        return name if self._say is _in_python else OPTIONS[name]


def in_shell(text: str | Phrase) -> str:
    """A text as those who write commands read it."""
    return text.shell if isinstance(text, Phrase) else text


def joined(message: str, hint: str) -> str:
    """A sentence that ends in a hint."""
    return f"{message} Hint: {hint}" if hint else message


class Hinted(Exception):
    """An error that ends in a hint; `message` and `hint` are its two parts.

    `command` is the hint for those who write commands, and `in_shell` all that they read.
    `file`, `line` and `column` say where the trouble is, as far as that is known: the path as it was given,
    the line as an editor counts, the name of the column.
    """

    def __init__(
        self,
        message: str | Phrase,
        hint: str | Phrase = "",
        command: str = "",
        *,
        file: str | None = None,
        line: int | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(joined(str(message), str(hint)))
        self.message, self.hint = str(message), str(hint)
        self.command = command or in_shell(hint)
        self.in_shell = joined(in_shell(message), self.command)
        self.file, self.line, self.column = file, line, column

    def __reduce__(self) -> tuple[Any, ...]:  # all parts survive the way between processes
        return type(self), (self.message, self.hint, self.command), self.__dict__


class InputError(Hinted, ValueError):
    """What was given has the wrong value."""


class InputTypeError(Hinted, TypeError):
    """What was given is of the wrong kind."""


class UsageError(InputError):
    """The call or command was wrong, not the data."""


class ClusterError(Hinted, RuntimeError):
    """The workers or the scheduler of a cluster of machines are not there."""
