"""What goes wrong before anything is read."""

from consilience._errors import InputError


class UsageError(InputError):
    """The command was wrong, not the data: exit code 2."""
