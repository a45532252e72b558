"""One thread inside a fit: the same answer whatever the threads."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from typing import Any, Literal

from threadpoolctl import ThreadpoolController

_kept: tuple[int, ThreadpoolController] | None = None


def one_thread(user_api: Literal["blas", "openmp"] | None = None) -> AbstractContextManager[Any]:
    """Inside the block, numerical libraries have one thread: those of `user_api`, or all.

    Looking for the libraries takes milliseconds, more than a small fit. It is done anew only where modules
    were imported since the last time, for they may have brought a library.
    """
    global _kept
    n_modules = len(sys.modules)
    if _kept is None or _kept[0] != n_modules:
        _kept = n_modules, ThreadpoolController()
    return _kept[1].limit(limits=1, user_api=user_api)
