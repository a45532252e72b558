"""Tables in and out: files, frames and arrays, read exactly or refused."""

from importlib import import_module
from typing import Any

__all__ = ["Scan", "files", "frames", "ids", "scan", "text", "write"]
_SCAN = ("Scan", "scan")


def __getattr__(name: str) -> Any:
    if name in _SCAN:
        module = import_module(f"{__name__}.scanning")
        return getattr(module, name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'consilience.io' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
