"""What a summary may hold, read off the dataclasses of its sections: types, defaults, lengths.

A key that is not there has the default of its field, so a summary that was kept by an earlier version goes on
loading when a section gets another key. What is there and is something else is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from consilience._support.errors import InputError

_LARGEST = 1e300  # beyond it there is nothing that can be shown

Id = int | float | str  # of an instance; also a label
Read = Callable[[Any, Mapping[str, int]], Any]


class Per(NamedTuple):
    """Of a list: it has an entry for each of these."""

    thing: str


class Place(NamedTuple):
    """Of a number: the position of one of these, or negative."""

    thing: str


class _Damage(Exception):
    """What an entry must be, and the way to it from the inside out."""

    def __init__(self, what: str) -> None:
        self.what, self.way = what, [""]


def read(value: Any, forms: Iterable[type], where: str, sizes: Mapping[str, int]) -> dict[str, Any]:
    """The keys of these dataclasses as plain values; an error names the first that is not of its form."""
    try:
        if not isinstance(value, Mapping):
            raise _Damage("a dict")
        return {key: entry for form in forms for key, entry in _reader(form)(value, sizes).items()}
    except _Damage as damage:
        raise broken(where + "".join(reversed(damage.way)), damage.what) from None


def broken(where: str, what: str) -> InputError:
    """The error of an entry that must be something else."""
    return InputError(
        f"the saved result is damaged: {where} must be {what}.", hint="make it again with summarize."
    )


def plain(value: Any) -> Any:
    """The same with dicts for dataclasses."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return (
        [plain(item) for item in value]
        if isinstance(value, list) and any(map(is_dataclass, value))
        else value
    )


def default(field: Field[Any]) -> Any:
    """What a key is where it is not given; `MISSING` where it must be."""
    if field.default_factory is not MISSING:
        return plain(field.default_factory())
    return field.default


def length(value: Any, path: Iterable[str]) -> int:
    """How many there are at the end of a path: the length of a list, or a number itself; 0 for neither."""
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if type(value) is int else len(value) if isinstance(value, list) else 0


@cache
def _reader(form: Any) -> Read:
    """What makes plain values of this form, or raises."""
    inner = get_args(form)
    if get_origin(form) is Annotated:
        return _marked(_reader(inner[0]), *inner[1:])
    if get_origin(form) is list:
        return _list_of(_reader(inner[0]))
    if get_origin(form) is dict:
        return _dict_of(_reader(inner[1]))
    if is_dataclass(form):
        return _fields_of(form)
    options = inner if get_origin(form) in (Union, UnionType) else (form,)
    if len(options) == 2 and NoneType in options:
        known = _reader(next(option for option in options if option is not NoneType))
        return lambda value, sizes: None if value is None else known(value, sizes)
    return _one_of(options)


def _one_of(kinds: tuple[type, ...]) -> Read:
    allowed = {*kinds, *((int,) if float in kinds else ())}
    what = f"of type {' or '.join(kind.__name__ for kind in kinds)}"

    def entry(value: Any, sizes: Mapping[str, int]) -> Any:
        if type(value) not in allowed:  # True is an int to isinstance
            raise _Damage(what)
        if type(value) in (int, float) and not -_LARGEST < value < _LARGEST:
            raise _Damage("a number that can be shown")
        return value

    return entry


def _list_of(inner: Read) -> Read:
    def entry(value: Any, sizes: Mapping[str, int]) -> list[Any]:
        if not isinstance(value, list):
            raise _Damage("a list")
        found: list[Any] = []
        try:
            for item in value:
                found.append(inner(item, sizes))
        except _Damage as damage:
            damage.way.append(f"[{len(found)}]")
            raise
        return found

    return entry


def _dict_of(inner: Read) -> Read:
    def entry(value: Any, sizes: Mapping[str, int]) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _Damage("a dict")
        return {str(key): _step(inner, value[key], sizes, f".{key}") for key in value}

    return entry


def _fields_of(form: Any) -> Read:
    hints = get_type_hints(form, include_extras=True)
    known = [(field, _reader(hints[field.name])) for field in fields(form)]

    def read_fields(value: Any, sizes: Mapping[str, int]) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _Damage("a dict")
        found = {}
        for field, inner in known:
            if field.name in value:
                found[field.name] = _step(inner, value[field.name], sizes, f".{field.name}")
            elif (entry := default(field)) is not MISSING:
                found[field.name] = entry
            else:
                _step(_absent, None, sizes, f".{field.name}")
        return found

    return read_fields


def _absent(value: Any, sizes: Mapping[str, int]) -> Any:
    raise _Damage("there")


def _step(inner: Read, value: Any, sizes: Mapping[str, int], step: str) -> Any:
    try:
        return inner(value, sizes)
    except _Damage as damage:
        damage.way.append(step)
        raise


def _marked(inner: Read, mark: Per | Place) -> Read:
    def entry(value: Any, sizes: Mapping[str, int]) -> Any:
        found, size = inner(value, sizes), sizes[mark.thing]
        if isinstance(mark, Per) and len(found) != size:
            raise _Damage(f"a list of {size}, one per {mark.thing}")
        if isinstance(mark, Place) and found >= size:
            raise _Damage(f"the position of one of {size} ({mark.thing})")
        return found

    return entry
