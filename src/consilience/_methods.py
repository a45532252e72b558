"""What a method says of itself, and how methods are found: a file of a subpackage is a method."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

# Where methods are, and what those of each subpackage take.
SUBPACKAGES = {"consensus": "labels", "features": "features", "multiview": "views"}


class About(NamedTuple):
    """A method in a few words, for the lists of methods in the shell, in the README and in the docs."""

    use: str  # when to use it
    avoid: str  # when not to
    cost: str  # how its time grows
    paper: str = ""
    linear: bool = False  # whether that is linear in instances (views) or distinct rows (labels)
    experimental: bool = False
    start: bool = False  # a good first choice
    featured: bool = False  # one of the five systems that this library is built around


def method(name: str, *packages: str) -> Any:
    """A method by its name; only its own file is loaded, if that has the method's name."""
    if name[:1].isupper():
        for package in packages:
            if find_spec(module := f"{package}.{name.lower()}") is not None:
                return getattr(import_module(module), name)
        for package in packages:
            for found in methods(package):
                if found.__name__ == name:
                    return found
    raise AttributeError(f"module {packages[0].partition('.')[0]!r} has no attribute {name!r}")


@cache
def methods(package: str) -> tuple[type, ...]:
    """All methods of a subpackage, by name: the classes in its files that say what they are."""
    found = []
    for file in pkgutil.iter_modules(import_module(package).__path__):
        module = import_module(f"{package}.{file.name}")
        found += [
            cls
            for cls in vars(module).values()
            if isinstance(cls, type) and cls.__module__ == module.__name__ and "about" in vars(cls)
        ]
    return tuple(sorted(found, key=lambda cls: cls.__name__))
