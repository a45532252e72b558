"""Warnings that point at the user's line."""

import sys
import warnings
from pathlib import Path
from types import FrameType

_HERE = str(Path(__file__).parent.parent)


def warn(message: str, category: type[Warning] = UserWarning, *, hint: str, command: str = "") -> None:
    """Warn at the innermost line outside this package.

    The warning has its parts as attributes; `command` is the hint for those who write commands, where it is
    another one.
    """
    warning = category(f"{message} Hint: {hint}")
    warning.message, warning.hint, warning.command = message, hint, command or hint  # type: ignore[attr-defined]
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_inside(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def _is_inside(frame: FrameType) -> bool:
    """Whether a frame is of this package, or of scikit-learn's wrappers around `fit`."""
    module = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_filename.startswith(_HERE) or module.startswith("sklearn.")
