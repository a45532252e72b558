"""Groups of sources that are near copies of each other, and which source is in which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from consilience._support.errors import Hint, InputError
from consilience._support.values import did_you_mean

_AS_IN = Hint('as in groups={{"leiden": ["r0.5", "r1", "r2"]}}.', command="as in --group leiden=r0.5,r1,r2.")


def group_of_each(groups: Any, names: Sequence[str], known: Sequence[str]) -> tuple[str | None, ...]:
    """The group that each of the sources is in, None for one in no group.

    `known` are all columns that the table had; those without any label are not among `names`.
    """
    if not isinstance(groups, Mapping):
        raise InputError(f"groups must be a dict of group to sources. Got {groups!r}.", hint=_AS_IN)
    found: dict[str, str] = {}
    for group, sources in groups.items():
        if isinstance(sources, str) or not isinstance(sources, Iterable):
            raise InputError(f"group {str(group)!r} must be a list of sources. Got {sources!r}.", hint=_AS_IN)
        members = [str(source) for source in sources]
        if not members:
            raise InputError(f"group {str(group)!r} has no source.", hint=_AS_IN)
        for source in members:
            if source not in known:
                raise InputError(
                    f"unknown base clustering {source!r} in group {str(group)!r}.",
                    did_you_mean(source, known),
                )
            if source in found:
                where = (
                    f"twice in group {found[source]!r}"
                    if found[source] == str(group)
                    else f"in two groups, {found[source]!r} and {str(group)!r}"
                )
                raise InputError(
                    f"base clustering {source!r} is {where}.", hint="a source is one opinion: name it once."
                )
            found[source] = str(group)
    return tuple(found.get(name) for name in names)
