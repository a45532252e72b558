"""Loops written in plain Python and run as machine code, except over a handful of entries."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np

# Up to so many entries in the array that a loop runs over, its first, Python runs the loop itself: it is done
# before the compiler, or even its cache, would be loaded.
FEW = 100


def compiled(
    *, reads: int = 0, reorder: bool = False, interpret: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a loop over arrays, which releases the interpreter while it runs.

    Its first `reads` arguments are arrays that it only reads. With `reorder`, sums may be taken in another
    order for speed; without, Python and the machine code give the same numbers to the last bit. A loop that
    Python cannot run, or that does much with few entries, says so by ``interpret=False``.
    """

    def decorate(loop: Callable[..., Any]) -> Callable[..., Any]:
        @cache
        def machine_code() -> Callable[..., Any]:
            return _compile(loop, reorder)

        @wraps(loop)
        def run(*arguments: Any) -> Any:
            if interpret and arguments[0].size <= FEW:
                return loop(*arguments)
            return machine_code()(*map(_read_only, arguments[:reads]), *arguments[reads:])

        return run

    return decorate


def _read_only(array: np.ndarray) -> np.ndarray:
    """The same entries, not to be written: otherwise a loop is compiled once for arrays that may be written
    and once for others."""
    view = array.view()
    view.flags.writeable = False
    return view


def _compile(loop: Callable[..., Any], reorder: bool) -> Callable[..., Any]:
    from numba import njit  # half a second that a small table does not need

    # Infinities keep their meaning.
    fastmath: Any = {"reassoc", "contract", "nsz"} if reorder else False
    try:
        return njit(nogil=True, cache=True, fastmath=fastmath)(loop)
    except RuntimeError:  # no folder to keep the machine code in: compile in every process
        return njit(nogil=True, fastmath=fastmath)(loop)
