"""What is merged: opinions (columns of labels) and tables of features about the same instances."""

from importlib import import_module
from typing import Any

_HOME = {"Partitions": "partitions", "Views": "views", "check_views": "views"}
_MODULES = ("builder", "partitions", "reading", "views")
__all__ = ["Partitions", "Views", "check_views"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'consilience.evidence' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_MODULES]
