"""What goes wrong before anything is read, and what is there after Ctrl-C."""

from consilience._errors import InputError


class UsageError(InputError):
    """The command was wrong, not the data: exit code 2."""


class Interrupted(Exception):
    """Ctrl-C in a command that keeps what it has done."""
