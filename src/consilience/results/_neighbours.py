"""Let the nearest neighbours of an instance, view by view, say which cluster it belongs to."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import Normalizer, StandardScaler

from consilience.core.graphs import Neighbours
from consilience.evidence.views import Views
from consilience.multiview.rows import canonical_order

_N_NEIGHBOURS = 10
_WIDE = 10  # columns


class _Scaled(NamedTuple):
    """Neighbours in a view after one scaling of its features."""

    scaling: Any
    neighbours: Neighbours


class _View(NamedTuple):
    rows: np.ndarray  # the instances that the view has, as `by_scaling` has them
    by_scaling: list[_Scaled]  # one or two


class ViewNeighbours:
    """The neighbours of every instance in every view that has it, and of new instances.

    An instance belongs to the cluster with the largest share of its neighbours, averaged over its views.
    """

    def fit(self, X: Views, y: Any = None) -> ViewNeighbours:
        """Read the views; neighbours are looked for when they are needed."""
        self._table_ = X
        return self

    @cached_property
    def order(self) -> tuple[np.ndarray, np.ndarray]:
        """Instances and views in an order that follows from their values: what is drawn is drawn in it."""
        return canonical_order(self._table_.arrays, self._table_.observed)

    def rows(self, v: int) -> np.ndarray:
        """The instances that a view has, in that order."""
        instances, _ = self.order
        return instances[self._table_.observed[instances, v]]

    @cached_property
    def _found(self) -> dict[int, _View]:
        return {}

    def in_view(self, v: int) -> _View:
        """The neighbours in one view."""
        if v not in self._found:
            rows = self.rows(v)
            features = self._table_.arrays[v][rows]
            by_scaling = [
                _Scaled(scaling, Neighbours(scaling.fit_transform(features), _N_NEIGHBOURS, 0))
                for scaling in scalings_of(features)
            ]
            self._found[v] = _View(rows, by_scaling)
        return self._found[v]

    @property
    def by_view(self) -> list[_View]:
        """The neighbours in every view."""
        return [self.in_view(v) for v in range(self._table_.n_views)]

    def vote(self, labels: np.ndarray) -> np.ndarray:
        """Every instance in the cluster that its neighbours are in. No cluster becomes empty."""
        votes = np.zeros((len(labels), int(labels.max()) + 1))
        for view in self.by_view:
            votes[view.rows] += _shares(
                [scaled.neighbours.graph for scaled in view.by_scaling], labels[view.rows], votes.shape[1]
            )
        found = np.where(votes.any(axis=1), votes.argmax(axis=1), labels)
        while len(lost := np.setdiff1d(labels, found)):
            found = np.where(np.isin(labels, lost), labels, found)
        return found

    def place(self, X: Any, labels: np.ndarray, mask: Any = None) -> np.ndarray:
        """The cluster of new instances, from the `labels` of those that were fitted."""
        new = self._table_.layout.match(X, mask, method=type(self).__name__)
        votes = np.zeros((new.n_instances, int(labels.max()) + 1))
        for v, view in enumerate(self.by_view):
            rows = np.flatnonzero(new.observed[:, v])
            if len(rows):
                features = new.arrays[v][rows]
                weights = [
                    scaled.neighbours.weights(scaled.scaling.transform(features))
                    for scaled in view.by_scaling
                ]
                votes[rows] += _shares(weights, labels[view.rows], votes.shape[1])
        return np.asarray(votes.argmax(axis=1))


def _shares(graphs: list[sp.csr_array], labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """The share of every cluster among the neighbours, averaged over the graphs."""
    one_hot = np.eye(n_clusters)[labels]
    shares = np.zeros((graphs[0].shape[0], n_clusters))
    for graph in graphs:
        weights = graph @ one_hot
        total = weights.sum(axis=1, keepdims=True)
        shares += np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return shares / len(graphs)


def scalings_of(X: Any) -> list[Any]:
    """What makes distances in a table mean something, in one or two ways, to be fitted.

    Sparse tables are read as counts of terms. Columns of dense ones are standardised, which suits columns of
    different units, and blows up the noise in columns of one unit that hardly vary, such as the bins of a
    histogram. So wide tables are also scaled by rows, which leaves their directions.
    """
    if sp.issparse(X):
        return [TfidfTransformer()]  # rows have length one
    return [StandardScaler(), Normalizer()] if X.shape[1] >= _WIDE else [StandardScaler()]
