"""Warnings that point at the user's line."""

import sys
import warnings
from pathlib import Path

import sklearn

# Frames of this package, and of scikit-learn's wrappers around `fit`, are not where the user's call stands.
_INSIDE = tuple(f"{Path(file).parent}" for file in (__file__, sklearn.__file__))


def warn(message: str, category: type[Warning] = UserWarning, *, hint: str) -> None:
    """Warn at the innermost line outside this package; the warning has the `hint` as an attribute."""
    warning = category(f"{message} Hint: {hint}")
    warning.hint = hint  # type: ignore[attr-defined]
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)
