"""Docstrings that say once what many classes share, and show it in all of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

_SHARED = ("Parameters", "Attributes")  # sections of a class that its bases add to


def complete(docs: Sequence[str], defaults: Mapping[str, Any]) -> str:
    """The first docstring, in numpydoc's form, with what the others say of the names that they share.

    The others are those of its bases. Parameters stand in the order of `defaults`, each with its default;
    attributes of the bases come first.
    """
    sources = [_sections(doc) for doc in reversed(docs)]
    sections = sources[-1]
    for title in _SHARED:
        entries: dict[str, str] = {}
        for source in sources:
            entries |= _entries(source.get(title, ""))
        if title == "Parameters":
            known = [name for name in defaults if name in entries]
            entries = {name: _with_default(entries[name], defaults[name]) for name in known}
        sections[title] = "\n".join(entries.values())
    rest = [title for title in sections if title and title not in _SHARED]
    titled = [
        f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in (*_SHARED, *rest) if sections[title]
    ]
    return "\n\n".join([sections[""], *titled])


def _sections(doc: str) -> dict[str, str]:
    """The sections of a docstring by title; what stands before the first has none."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.cleandoc(doc), flags=re.MULTILINE)
    return {title: body.strip() for title, body in zip(["", *parts[1::2]], parts[::2], strict=True)}


def _entries(section: str) -> dict[str, str]:
    """What a section says of each name."""
    return {entry.partition(" :")[0]: entry for entry in re.split(r"\n(?=\S)", section) if entry}


def _with_default(entry: str, default: Any) -> str:
    kind, _, rest = entry.partition("\n")
    shown = f'"{default}"' if isinstance(default, str) else re.sub(r"e-0(\d)", r"e-\1", repr(default))
    return f"{kind.partition(', default=')[0]}, default={shown}\n{rest}"
