"""What a method says of itself, and how methods are found: a file of a subpackage is a method."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from consilience._support.errors import Hint, UsageError

# Where methods are, and what those of each subpackage take.
SUBPACKAGES = {"consensus": "labels", "features": "features", "multiview": "views"}
# What that is in words, and where such a method is used: in Python and in the shell.
_TAKES = {
    "labels": ("labels of base clusterings", "fuse or compare", "consilience fuse or consilience compare"),
    "views": ("views, which are tables of features", "fuse_views", "consilience cluster"),
    "features": ("one table of features", "its own fit", "Python only"),
}


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


def kind_of(made: type) -> str:
    """What a method takes: "labels", "features" or "views"."""
    return SUBPACKAGES[made.__module__.split(".")[1]]


def resolve(name: str, kinds: Sequence[str], *, of: str = "fuse") -> Any:
    """A method by its name, in any case of letters, among those that take one of `kinds`.

    A name that is nearly right is answered with those that it may mean, that of a method of another kind with
    what it takes and where it is used. `of` is the function that was called, for the message.

    Examples
    --------
    >>> from consilience.registry import resolve
    >>> resolve("daimc", ["views"]).__name__
    'DAIMC'
    """
    packages = {f"consilience.{package}": kind for package, kind in SUBPACKAGES.items()}
    wanted = [package for package, kind in packages.items() if kind in kinds]
    try:
        return method(name, *wanted)  # by its exact name only its own file is loaded
    except AttributeError:
        known = {made.__name__.lower(): made for package in packages for made in methods(package)}
    made = known.get(name.lower())
    if made is not None and kind_of(made) in kinds:
        return made
    if made is not None:
        takes, where, command = _TAKES[kind_of(made)]
        asked = " or ".join(_TAKES[kind][0] for kind in kinds)
        raise UsageError(
            f"{made.__name__} takes {takes}; {of} merges {asked}.",
            hint=f"use it in {where}.",
            command=f"use it in {command}.",
        )
    names = [each.__name__ for each in known.values() if kind_of(each) in kinds]
    near = difflib.get_close_matches(name.lower(), [each.lower() for each in names], n=3)
    hint = f"did you mean {' or '.join(known[each].__name__ for each in near)}? " if near else ""
    raise UsageError(
        Hint(
            "The 'method' parameter of {of} must be 'auto', an estimator or the name of a method for "
            "{kinds}. Got {name!r} instead.",
            command="there is no method {name!r} for {kinds}.",
            of=of,
            kinds=" or ".join(kinds),
            name=name,
        ),
        hint=f"{hint}the names are {', '.join(names)}." if not near else hint.strip(),
        command=f"{hint}consilience methods lists all.",
    )
