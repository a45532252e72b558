"""What a page is asked to be about."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from consilience.diagnostics import Profile
from consilience.results import Comparison, Fusion, Levels, Stability

_MANY_RESULTS = 5
_LEAST_LISTED = 200
# JavaScript holds integers exactly up to here.
_EXACT_INTEGER = 2**53


class Job(NamedTuple):
    """The results, and what was said about them."""

    fusions: dict[str, Fusion]
    comparison: Comparison | None
    command: str | None
    listed: int
    profile: Profile | None
    stability: Stability | None = None
    levels: Levels | None = None
    hide_ids: bool = False
    name: str = ""  # of the result that is being told

    @property
    def main(self) -> Fusion:
        """The result that the page opens with."""
        return next(iter(self.fusions.values()))

    @property
    def many(self) -> bool:
        """Whether results share the room of the page."""
        return len(self.fusions) > _MANY_RESULTS

    @property
    def lines(self) -> int:
        """The most lines of the list of instances of each result."""
        return min(self.listed, max(_MANY_RESULTS * self.listed // len(self.fusions), _LEAST_LISTED))


def plain_id(value: Any) -> Any:
    """An id as JSON and JavaScript know it: a number or a text."""
    if isinstance(value, tuple):
        return " / ".join(str(part) for part in value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _EXACT_INTEGER:
        return value
    return str(value)


def by_cluster(
    kind: np.ndarray, labels: np.ndarray, counts: np.ndarray, n_kinds: int, k: int
) -> list[list[int]]:
    """How many instances of each kind are in each cluster; the last column is of the unassigned."""
    cells = kind.astype(np.int64) * (k + 1) + np.where(labels < 0, k, labels)
    return np.bincount(cells, counts, n_kinds * (k + 1)).reshape(n_kinds, k + 1).astype(np.int64).tolist()
