"""What is wrong with a command, as opposed to its data."""


class UsageError(ValueError):
    """The command was wrong, not the data: exit code 2."""
