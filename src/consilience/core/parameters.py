"""Parameters of a method, said once: what a class annotates, its constructor takes and its `fit` checks."""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union

from consilience._support.sklearn import Interval, StrOptions
from consilience.core.docstrings import complete

# Types with what scikit-learn allows of them.
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
NonNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
Verbose = Annotated[int, "verbose"]
Seed = Annotated[Any, "random_state"]

_Class = TypeVar("_Class", bound=type)
_PLAIN: dict[Any, Any] = {bool: "boolean", int: Integral, NoneType: None}


@typing.dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def parameters(cls: _Class) -> _Class:
    """Make the annotated names of a class its parameters.

    scikit-learn wants a constructor that keeps what it is given, and what is allowed by name for `fit` to
    check. Both follow from annotations such as ``n_init: Count = 10`` or ``linkage: Literal["average",
    "single"] = "average"``. In the signature, what is particular to a class stands before what it shares. Its
    docstring gets what its bases say of the parameters and attributes that it has from them.
    """
    dataclass(eq=False, repr=False, kw_only=True)(cls)
    order = ["self", *(name for base in cls.__mro__ for name in inspect.get_annotations(base))]
    init = vars(cls)["__init__"]
    made = inspect.signature(init)
    shown = sorted(made.parameters.values(), key=lambda p: (p.kind, order.index(p.name)))
    init.__signature__ = made.replace(parameters=shown)
    hints = typing.get_type_hints(cls, include_extras=True)
    cls._parameter_constraints = {f.name: _allowed(hints[f.name]) for f in fields(cls)}  # type: ignore[attr-defined]
    defaults = {parameter.name: parameter.default for parameter in shown if parameter.name != "self"}
    cls.__doc__ = complete([base.__doc__ or "" for base in cls.__mro__], defaults)
    return cls


def _allowed(hint: Any) -> list[Any]:
    """What scikit-learn calls the constraints of a type."""
    kind = typing.get_origin(hint)
    if kind is Annotated:
        return list(hint.__metadata__)
    if kind is Literal:
        return [StrOptions(set(typing.get_args(hint)))]
    if kind in (Union, UnionType):
        return [allowed for part in typing.get_args(hint) for allowed in _allowed(part)]
    return [_PLAIN[hint]]
