"""Sweeps of a solver: the objective after each, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

Progress = Callable[[int, float], None]


class Sweeps:
    """So many sweeps at most, until `converged` is set.

    >>> sweeps = Sweeps(100)
    >>> for n in sweeps:
    ...     before, now = sweeps.add(0.5**n)  # what was minimised, after this sweep
    ...     sweeps.converged = before - now < 0.1
    >>> sweeps.outcome
    (array([1.    , 0.5   , 0.25  , 0.125 , 0.0625]), 5, True)
    """

    def __init__(self, max_iter: int, progress: Progress | None = None) -> None:
        self.max_iter = max_iter
        self.progress = progress
        self.objective: list[float] = []
        self.converged = False

    def __iter__(self) -> Iterator[int]:
        for iteration in range(self.max_iter):
            yield iteration
            if self.converged:
                return

    def add(self, objective: float) -> tuple[float, float]:
        """Record the objective of a sweep; the one before (NaN, which is near nothing, in the first), and it.

        So a condition on both never holds in the first sweep.
        """
        before = self.objective[-1] if self.objective else np.nan
        self.objective.append(objective)
        if self.progress:
            self.progress(len(self.objective), objective)
        return before, objective

    @property
    def outcome(self) -> tuple[np.ndarray, int, bool]:
        """The objectives, the number of sweeps and whether they came to an end, as results list them."""
        return np.array(self.objective), len(self.objective), bool(self.converged)


def settled(objective: Sequence[float], tol: float) -> bool:
    """At least three sweeps, and the last changed the objective by less than a share `tol`, or it is zero."""
    if len(objective) < 3:
        return False
    last, before = objective[-1], objective[-2]
    return last == 0.0 or abs(last - before) < tol * abs(last)
