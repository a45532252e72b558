"""Where a row of base labels belongs among clusters: one rule for models, results and saved files."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from consilience.inference.chances import chances_of_rows
from consilience.inference.posterior import Evidence, FittedRows, judge_rows, place_rows, predict_labels


class _Places(NamedTuple):
    labels: np.ndarray  # -1 where nothing is known of one, unless such instances go to the largest cluster
    confidence: np.ndarray
    alternative: np.ndarray  # the next best cluster, -1 for none


class Placed(_Places):
    """Where new instances were put: ``labels``, ``confidence`` and ``alternative``, an entry for each.

    A tuple of these three; ``chances`` are computed when first asked for.
    """

    _weigh: Callable[[], np.ndarray]

    @classmethod
    def of(
        cls,
        labels: np.ndarray,
        confidence: np.ndarray,
        alternative: np.ndarray,
        chances: Callable[[], np.ndarray],
    ) -> Placed:
        """Newcomers whose chances a function returns."""
        placed = cls(labels, confidence, alternative)
        placed._weigh = chances
        return placed

    @cached_property
    def chances(self) -> np.ndarray:
        """The chance of every cluster, (n_new, n_clusters): see :attr:`Fusion.chances`.

        One of which nothing is known has the shares of the clusters, whatever its label.
        """
        return self._weigh()


class Placement(NamedTuple):
    """What places rows of base labels, as ``partitions.encode`` gives them.

    A row that was clustered keeps its cluster; others are placed by naive Bayes. A row without any label gets
    `unseen`, -1 or the largest cluster: it is no error, for nothing else depends on it.
    """

    evidence: Evidence
    fitted: FittedRows | None  # None where the rows that were clustered are not in memory
    unseen: int = -1

    def labels(self, codes: np.ndarray) -> np.ndarray:
        """Clusters of the rows."""
        if self.fitted is None:
            found = predict_labels(self.evidence, codes)
        else:
            found = place_rows(self.evidence, self.fitted, codes)
        return np.where((codes < 0).all(axis=1), self.unseen, found)

    def place(self, codes: np.ndarray) -> Placed:
        """Clusters of the rows, how sure they are, and which would be next."""
        labels = self.labels(codes)
        found = judge_rows(self.evidence, self.evidence.numbering.recode(codes), labels, leave_out=False)
        sure = np.where((codes < 0).all(axis=1), 0.0, found.confidence)
        weigh = partial(chances_of_rows, self.evidence, codes, labels, leave_out=False)
        return Placed.of(labels, sure, found.alternative, weigh)

    def chances(self, codes: np.ndarray) -> np.ndarray:
        """The chance of every cluster for the rows."""
        return chances_of_rows(self.evidence, codes, self.labels(codes), leave_out=False)
