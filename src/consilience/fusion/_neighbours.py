"""Let the nearest neighbours of an instance, view by view, say which cluster it belongs to."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from consilience.core.graphs import Neighbours
from consilience.multiview._views import ViewsMixin
from consilience.views import Views

_N_NEIGHBOURS = 10


class _View(NamedTuple):
    rows: np.ndarray  # the instances that the view has
    scaling: Any
    neighbours: Neighbours


class ViewNeighbours(ViewsMixin, BaseEstimator):
    """The neighbours of every instance in every view that has it, and of new instances.

    An instance belongs to the cluster with the largest share of its neighbours, averaged over its views.
    """

    n_clusters = 1  # the fewest instances that will do

    def fit(self, X: Views, y: Any = None) -> ViewNeighbours:
        """Read the views; neighbours are looked for when they are needed."""
        self._table_ = self._read_views(X)
        self._found: dict[int, _View] = {}
        return self

    def in_view(self, v: int) -> _View:
        """The neighbours in one view."""
        if v not in self._found:
            rows, features = self._table_.rows(v)
            scaling = scaling_of(features).fit(features)
            self._found[v] = _View(rows, scaling, Neighbours(scaling.transform(features), _N_NEIGHBOURS, 0))
        return self._found[v]

    @property
    def by_view(self) -> list[_View]:
        """The neighbours in every view."""
        return [self.in_view(v) for v in range(self._table_.n_views)]

    def vote(self, labels: np.ndarray) -> np.ndarray:
        """Every instance in the cluster that its neighbours are in. No cluster becomes empty."""
        graphs = [(view.rows, view.neighbours.graph) for view in self.by_view]
        votes = self._count(graphs, labels, len(labels))
        found = np.where(votes.any(axis=1), votes.argmax(axis=1), labels)
        while len(lost := np.setdiff1d(labels, found)):
            found = np.where(np.isin(labels, lost), labels, found)
        return found

    def place(self, X: Any, labels: np.ndarray, mask: Any = None) -> np.ndarray:
        """The cluster of new instances, from the `labels` of those that were fitted."""
        new = self._read_new_views(X, mask)
        graphs = []
        for v, view in enumerate(self.by_view):
            rows = np.flatnonzero(new.observed[:, v])
            if len(rows):
                features = view.scaling.transform(new.arrays[v][rows])
                graphs.append((rows, view.neighbours.weights(features)))
            else:
                graphs.append((rows, sp.csr_array((0, len(view.rows)))))
        return np.asarray(self._count(graphs, labels, new.n_instances).argmax(axis=1))

    def _count(self, graphs: list[tuple[np.ndarray, sp.csr_array]], labels: np.ndarray, n: int) -> np.ndarray:
        """Sum over views of the shares of the clusters among the neighbours, per instance."""
        votes = np.zeros((n, int(labels.max()) + 1))
        one_hot = np.eye(votes.shape[1])
        for (rows, graph), view in zip(graphs, self.by_view, strict=True):
            shares = graph @ one_hot[labels[view.rows]]
            total = shares.sum(axis=1, keepdims=True)
            votes[rows] += np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
        return votes


def scaling_of(X: Any) -> Any:
    """What makes distances in a table mean something, to be fitted.

    Sparse tables are read as counts of terms. A table without negative entries holds sizes, shares or counts,
    whose spread grows with their size: square roots even that out before columns are standardised.
    """
    if sp.issparse(X):
        return TfidfTransformer()  # rows have length one
    if X.min() < 0:
        return StandardScaler()
    return make_pipeline(FunctionTransformer(_root), StandardScaler())


def _root(X: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(X, 0.0))  # new instances may have negative entries
