"""When the sweeps of a solver may stop."""

from __future__ import annotations

from collections.abc import Sequence


def settled(objective: Sequence[float], tol: float) -> bool:
    """At least three sweeps, and the last changed the objective by less than a share `tol`, or it is zero."""
    if len(objective) < 3:
        return False
    last, before = objective[-1], objective[-2]
    return last == 0.0 or abs(last - before) < tol * abs(last)
