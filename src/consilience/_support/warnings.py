"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType

from consilience._support.errors import Phrase, in_shell, joined

_HERE = str(Path(__file__).parent.parent)


def warn(
    message: str | Phrase, category: type[Warning] = UserWarning, *, hint: str | Phrase, command: str = ""
) -> None:
    """Warn at the innermost line outside this package.

    The warning has its parts as attributes, see `consilience._support.errors.Hinted`.
    """
    warning = category(joined(str(message), str(hint)))
    parts = {"message": str(message), "hint": str(hint), "command": command or in_shell(hint)}
    vars(warning).update(parts, in_shell=joined(in_shell(message), parts["command"]))
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_inside(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def _is_inside(frame: FrameType) -> bool:
    """Whether a frame is of this package, or of scikit-learn's wrappers around `fit`."""
    module = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_filename.startswith(_HERE) or module.startswith("sklearn.")
