"""What every label method does at its door: read the table, keep scikit-learn's books, number clusters."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from consilience.partitions import Partitions


class LabelsMixin(ClusterMixin):
    """For estimators whose ``X`` is a table of labels: instances in rows, base clusterings in columns."""

    n_clusters: int
    n_features_in_: int

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    def _read_labels(self, X: Any, unobserved: str) -> Partitions:
        if X is None:
            raise ValueError(
                f"{type(self).__name__} needs a table of labels, got None. Hint: fit(labels), one row per "
                "instance and one column per base clustering."
            )
        partitions = Partitions.of(X, unobserved="error" if unobserved == "error" else "keep")
        if hasattr(X, "shape"):
            validate_data(self, X, skip_check_array=True, reset=True)
        self.n_features_in_ = partitions.n_columns
        n_seen = int(partitions.seen.sum())
        if self.n_clusters > n_seen:
            raise ValueError(
                f"n_samples={n_seen} should be >= n_clusters={self.n_clusters}. "
                "Hint: lower n_clusters, or check that instances are rows."
            )
        return partitions

    def _encode_labels(self, X: Any, partitions: Partitions) -> np.ndarray:
        if len(getattr(X, "shape", ())) == 2:
            validate_data(self, X, skip_check_array=True, reset=False)
        return partitions.encode(X)

    def _feasible_clusters(self, n_distinct: int) -> int:
        if self.n_clusters > n_distinct:
            warnings.warn(
                f"only {n_distinct} distinct label rows for n_clusters={self.n_clusters}: {n_distinct} "
                "clusters are returned. Hint: instances with the same labels everywhere cannot be told "
                "apart; lower n_clusters or add base clusterings.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return min(self.n_clusters, n_distinct)

    def _progress(self, iteration: int, objective: float) -> None:
        print(f"{type(self).__name__} iteration {iteration}: objective {objective:.6g}", file=sys.stderr)


def by_size(labels: np.ndarray, counts: np.ndarray, n_clusters: int) -> np.ndarray:
    """Old numbers of the clusters in the order of their new ones: 0 is the largest cluster."""
    return np.argsort(-np.bincount(labels, weights=counts, minlength=n_clusters), kind="stable")
