"""Where a row of base labels belongs among clusters: one rule for models, results and saved files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from consilience.inference.posterior import Evidence, FittedRows, judge_rows, place_rows, predict_labels


class Placed(NamedTuple):
    """Where new instances were put, an entry for each."""

    labels: np.ndarray  # -1 where nothing is known of one, unless such instances go to the largest cluster
    confidence: np.ndarray
    alternative: np.ndarray  # the next best cluster, -1 for none


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
        return Placed(labels, sure, found.alternative)
