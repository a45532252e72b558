"""The command line: a thin skin over `fuse`, `fuse_views`, `compare` and the report."""

from importlib import import_module
from typing import Any

from consilience.cli.main import main

__all__ = [
    "blocks",
    "catalog",
    "demo",
    "job",
    "main",
    "results",
    "saved",
    "signals",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'consilience.cli' has no attribute {name!r}")
