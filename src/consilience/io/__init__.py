"""Tables in and out: files, frames and arrays, read exactly or refused."""

from importlib import import_module
from typing import Any

__all__ = ["files", "frames", "ids", "text"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'consilience.io' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
