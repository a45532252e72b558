"""What there is to choose from, as the methods say of themselves."""

from __future__ import annotations

from typing import NamedTuple

from consilience.cli.help import plain
from consilience.registry import SUBPACKAGES, methods


class Method(NamedTuple):
    """A line of the catalogue."""

    name: str
    input: str
    does: str
    cost: str
    paper: str


def catalogue() -> list[Method]:
    """Every method, by what it takes."""
    return [
        Method(cls.__name__, takes, *map(plain, (_first_line(cls), cls.about.cost, cls.about.paper)))  # type: ignore[attr-defined]
        for subpackage, takes in SUBPACKAGES.items()
        for cls in methods(f"consilience.{subpackage}")
    ]


def _first_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0]
