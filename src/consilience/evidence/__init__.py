"""What is merged: opinions (columns of labels) and tables of features about the same instances."""

from importlib import import_module
from typing import Any

__all__ = ["labels", "partitions", "views"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'consilience.evidence' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
