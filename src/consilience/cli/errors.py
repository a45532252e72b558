"""What is there after Ctrl-C."""


class Interrupted(Exception):
    """Ctrl-C in a command that keeps what it has done."""
