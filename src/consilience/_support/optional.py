"""Soft imports: a missing extra gives one sentence that says what to install."""

import warnings
from importlib import import_module
from types import ModuleType
from typing import Any


def optional_import(module: str, *, needed_for: str, extra: str) -> ModuleType:
    """Import `module`, or say which extra brings it.

    >>> optional_import("not_a_module", needed_for="the example", extra="frames")
    Traceback (most recent call last):
    ...
    ImportError: the example needs not_a_module. Hint: pip install 'consilience[frames]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{needed_for} needs {module}. Hint: pip install 'consilience[{extra}]'") from error


def moved(old: str, new: str, name: str) -> Any:
    """A public name of a module that has moved, with a warning."""
    if name.startswith("__"):
        raise AttributeError(f"module {old!r} has no attribute {name!r}")
    found = getattr(import_module(new), name)
    warnings.warn(
        f"{old} is now {new}; import {name} from consilience or from there.", FutureWarning, stacklevel=3
    )
    return found
