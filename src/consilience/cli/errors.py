"""What is wrong with a command, as opposed to its data."""

from consilience._values import did_you_mean

__all__ = ["UsageError", "did_you_mean"]


class UsageError(ValueError):
    """The command was wrong, not the data: exit code 2."""
