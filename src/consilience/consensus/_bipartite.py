"""Base of the methods that cut the graph of instances and base clusters: new instances have a place in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from consilience._support.sklearn import Embedder
from consilience.consensus.base import LabelMethod, Problem
from consilience.core.cuts import unit_length
from consilience.core.tables import gather
from consilience.evidence.partitions import Unknown


class BipartiteMethod(Embedder, LabelMethod):
    """Base of the methods whose results have places of the rows, the embedding, and of the base clusters."""

    def _learn(self, result: Any, problem: Problem) -> None:
        self._places = np.vstack(problem.per_cluster(result.places))
        self.embedding_ = problem.per_instance(result.embedding)

    def transform(self, X: Any, *, unknown: Unknown = "error") -> np.ndarray:
        """Places of instances in the embedding: that of all base clusters that they are in together.

        Fitted instances are where `embedding_` has them; one without labels is at zero.

        Parameters
        ----------
        X : table of labels
            As in `predict`.
        unknown : {"error", "missing"}, default="error"
            As in `predict`.
        """
        check_is_fitted(self)
        codes = self._encode_labels(X, unknown)
        return unit_length(gather(codes, self.partitions_.offsets, self._places))

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and the places of the instances: `embedding_`.

        Parameters
        ----------
        X : table of labels
            As in `fit`.
        y : ignored
            There for scikit-learn's interface.
        """
        return self.fit(X).embedding_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
