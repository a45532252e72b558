"""Single values of a user's table: what counts as missing, ids as an array, names and counts in words."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def is_missing(value: Any) -> bool:
    """Whether a value says "not there": None, NaN, NaT or pandas' NA.

    >>> [is_missing(value) for value in (None, float("nan"), 0, -1, "", "nan")]
    [True, True, False, False, False, False]
    """
    # pandas.NA answers neither True nor False to a comparison with itself, so it goes by its name.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def is_annotated(value: Any) -> bool:
    """Whether it is an AnnData or MuData object, which only `consilience.scverse` takes."""
    return any(
        cls.__name__ in ("AnnData", "MuData") and cls.__module__.split(".")[0] in ("anndata", "mudata")
        for cls in type(value).__mro__
    )


def object_array(values: Sequence[Any]) -> np.ndarray:
    """A one-dimensional array of the values as they are (NumPy would unpack tuples and mix types)."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def id_array(ids: Sequence[Any]) -> np.ndarray:
    """Ids as integers or strings where they are nothing else, as objects otherwise."""
    kinds = {type(value) for value in ids}
    if not (kinds <= {int} or kinds <= {str}):
        return object_array(ids)
    array = np.array(ids)
    # Integers of either sign beyond 64 bits would become floats, and two ids one.
    return array if array.dtype.kind in "iuU" else object_array(ids)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known."""
    known = [str(k) for k in known]
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(map(repr, known[:8]))}."


def counted(n: int, noun: str) -> str:
    """A number and its noun in singular or plural.

    >>> counted(1, "cluster"), counted(1200, "instance")
    ('1 cluster', '1200 instances')
    """
    return f"{n} {noun}" + "s" * (n != 1)
