"""What the nearest neighbours of an instance, view by view, say about clusters.

`ViewDiagnostics` is what a result of views is told from. A method that knows more than labels, as PSE does,
implements it; for all others `NeighbourDiagnostics` reads it from the views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from consilience.core.graphs import Neighbours
from consilience.evidence.views import TableReading, Views
from consilience.inference.counts import Finding
from consilience.inference.posterior import complete_chances
from consilience.multiview.reading import Reading, ViewReading, read, stored
from consilience.multiview.rows import canonical_order, equal_instances, equal_rows, mean_of_equals
from consilience.multiview.scaling import kind_of

_N_NEIGHBOURS = 10
# A view whose neighbours share a cluster hardly more often than chance, which the user is told.
SILENT = 0.05


class InView(NamedTuple):
    """Instances that a view has, and the weights of their neighbours among them."""

    rows: np.ndarray
    graph: sp.csr_array
    group: np.ndarray  # a number for every row, the same for instances that are equal in all views


class ViewDiagnostics(Protocol):
    """What a result of views says of them, in the numbers that the method gave the clusters."""

    @property
    def labels_(self) -> np.ndarray:
        """Cluster of every instance, -1 for none."""

    @property
    def view_names_(self) -> tuple[str, ...]:
        """Names of the views; all that is said by view is in their order."""

    @property
    def observed_(self) -> np.ndarray:
        """Which instance is in which view, (n_instances, n_views)."""

    @property
    def view_readings_(self) -> Mapping[str, ViewReading]:
        """How each view was read, and which rows were used."""

    @property
    def view_tables_(self) -> Mapping[str, TableReading]:
        """How tables were read that were more than complete numbers, by view."""

    @property
    def view_agreement_(self) -> np.ndarray:
        """How far neighbours in a view share a cluster: 0 as by chance, 1 always; NaN if it was not used."""

    @property
    def view_weights_(self) -> np.ndarray:
        """How much each view counted."""

    @property
    def view_relations_(self) -> np.ndarray:
        """How far each view is related to the closest other one; NaN where that is not known."""

    @property
    def view_support_(self) -> np.ndarray:
        """The agreement by cluster, (n_views, n_clusters)."""

    @property
    def confidence_(self) -> np.ndarray:
        """Per instance, how sure its cluster is, 0 to 1."""

    @property
    def chances_(self) -> np.ndarray:
        """Per instance, the chance of every cluster: rows of sum one, with the confidence of the own one."""

    @property
    def confidence_reading_(self) -> str:
        """One sentence that says how to read the confidence."""

    @property
    def borders_(self) -> tuple[np.ndarray, np.ndarray]:
        """Margin of every instance, and the next best cluster; -1 for none."""

    @property
    def findings_(self) -> Sequence[Finding]:
        """What makes the answer doubtful."""

    def in_view(self, v: int) -> InView | None:
        """The instances that a view was used for and their neighbours; None if it was not used."""

    def read_new(self, X: Any, *, mask: Any = None, on: str | None = None) -> Views:
        """New instances in the views that were fitted, read as those were."""

    def place(self, X: Any, *, mask: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Clusters of new instances (-1 where nothing is known of one), how sure, and which would be next."""

    def predict_proba(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """The chance of every cluster for new instances; as rows of `chances_`."""


def shares_in_view(view: InView, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """For every row of a view the share of its neighbours in each cluster, (n_rows, n_clusters).

    Of instances that are equal in all views, the mean: which of them another row has as a neighbour is a
    toss-up.
    """
    return mean_of_equals(_shares_of_rows(view, labels, n_clusters), view.group)


def _shares_of_rows(view: Any, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    inside = np.eye(n_clusters + 1)[labels[view.rows]][:, :n_clusters]  # -1 is the last, which is left out
    total = np.asarray(view.graph.sum(axis=1)).ravel()
    return np.asarray(view.graph @ inside) / np.where(total > 0, total, 1.0)[:, None]


def support_of_clusters(view: Any, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    r"""How strongly a view supports each cluster: 0 as by chance, 1 where neighbours are all in the same one.

    .. math:: \frac{m_c - \pi_c}{1 - \pi_c}

    Symbols: m_c -> mean share of a member's neighbour weight that is in its own cluster c; pi_c -> share of
    the cluster among the rows of the view. NaN for a cluster of which it has fewer than two rows, or all.
    `view` has ``rows`` and ``graph``, as `InView`.
    """
    z = labels[view.rows]
    placed = z >= 0
    own = np.zeros(len(z))
    own[placed] = _shares_of_rows(view, labels, n_clusters)[placed, z[placed]]
    sizes = np.bincount(z[placed], minlength=n_clusters)
    inside = np.bincount(z[placed], own[placed], n_clusters) / np.maximum(sizes, 1)
    share = sizes / max(int(placed.sum()), 1)
    known = (sizes > 1) & (share < 1)
    return np.where(known, (inside - share) / np.where(known, 1.0 - share, 1.0), np.nan)


def mean_support(support: np.ndarray) -> np.ndarray:
    """The agreement of every view: the mean of its support over clusters; NaN where none is known."""
    known = ~np.isnan(support)
    total = np.where(known, support, 0.0).sum(axis=1)
    return np.where(known.any(axis=1), total / np.maximum(known.sum(axis=1), 1), np.nan)


class _View(NamedTuple):
    rows: np.ndarray  # the instances that the view has, as `by_look` has them
    reading: Reading
    by_look: list[Neighbours]  # one or two


class ViewNeighbours:
    """The neighbours of every instance in every view that has it, and of new instances.

    An instance belongs to the cluster with the largest share of its neighbours, averaged over its views.
    """

    def fit(self, X: Views, y: Any = None) -> ViewNeighbours:
        """Read the views; neighbours are looked for when they are needed."""
        self._table_ = X
        return self

    @property
    def table(self) -> Views:
        """The views."""
        return self._table_

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
            rows, x = self.rows(v), self._table_.arrays[v]
            kind = kind_of(self._table_, v)
            x = stored(x, kind)[rows]
            reading = read(x, kind, self._table_.scaling(v))
            by_look = [Neighbours(look, _N_NEIGHBOURS, 0) for look in reading.apply(x)]
            self._found[v] = _View(rows, reading, by_look)
        return self._found[v]

    @cached_property
    def group(self) -> np.ndarray:
        """A number for every instance, the same for those that are equal in all views."""
        by_view = []
        for v, x in enumerate(self._table_.arrays):
            rows = self.rows(v)
            kind = kind_of(self._table_, v)
            by_view.append((rows, equal_rows(stored(x, kind)[rows])))
        return equal_instances(by_view, self._table_.n_instances)

    @property
    def by_view(self) -> list[_View]:
        """The neighbours in every view."""
        return [self.in_view(v) for v in range(self._table_.n_views)]

    def vote(self, labels: np.ndarray) -> np.ndarray:
        """Every instance in the cluster that its neighbours are in. No cluster becomes empty."""
        votes = np.zeros((len(labels), int(labels.max()) + 1))
        for view in self.by_view:
            graphs = [look.graph for look in view.by_look]
            shares = _shares(graphs, labels[view.rows], votes.shape[1])
            votes[view.rows] += mean_of_equals(shares, self.group[view.rows])
        found = np.where(votes.any(axis=1), votes.argmax(axis=1), labels)
        while len(lost := np.setdiff1d(labels, found)):
            found = np.where(np.isin(labels, lost), labels, found)
        return found

    def read_new(self, X: Any, *, mask: Any = None, on: str | None = None) -> Views:
        """New instances in these views, read as they were."""
        return self._table_.layout.match(X, mask, method=type(self).__name__, on=on)

    def votes_of_new(self, X: Any, labels: np.ndarray, mask: Any = None) -> np.ndarray:
        """For new instances the share of each cluster among their neighbours, averaged over their views."""
        new = self.read_new(X, mask=mask)
        votes = np.zeros((new.n_instances, int(labels.max()) + 1))
        for v, view in enumerate(self.by_view):
            rows = np.flatnonzero(new.observed[:, v])
            if len(rows):
                looks = view.reading.apply(stored(new.arrays[v], view.reading.kind)[rows])
                weights = [near.weights(x) for near, x in zip(view.by_look, looks, strict=True)]
                votes[rows] += _shares(weights, labels[view.rows], votes.shape[1])
        return votes / np.maximum(new.observed.sum(axis=1), 1)[:, None]

    def place(
        self, X: Any, labels: np.ndarray, mask: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The cluster of new instances, from the `labels` of those that were fitted; how sure; the next."""
        return elected(self.votes_of_new(X, labels, mask))

    def chances(self, X: Any, labels: np.ndarray, mask: Any = None) -> np.ndarray:
        """The chance of every cluster for new instances: its share of their neighbours."""
        votes = self.votes_of_new(X, labels, mask)
        return chances_of_votes(votes, *elected(votes)[:2], labels)


def elected(votes: np.ndarray, labels: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The clusters of most votes (-1 without any), or those that were given; their share, and the next."""
    some, place = votes.any(axis=1), np.arange(len(votes))
    labels = np.where(some, votes.argmax(axis=1), -1) if labels is None else labels
    own = np.maximum(labels, 0)
    sure = np.where(some & (labels >= 0), np.minimum(votes[place, own], 1.0), 0.0)
    others = votes.copy()
    others[place, own] = 0.0
    return labels, sure, np.where(others.any(axis=1), others.argmax(axis=1), -1)


def chances_of_votes(
    votes: np.ndarray, labels: np.ndarray, confidence: np.ndarray, fitted: np.ndarray
) -> np.ndarray:
    """The chance of every cluster: that of the own one is its confidence, others share the rest by votes.

    An instance without votes has the shares of the clusters among the `fitted` labels.
    """
    shares = np.bincount(fitted[fitted >= 0], minlength=votes.shape[1]) / np.count_nonzero(fitted >= 0)
    found = complete_chances(votes, labels, confidence, shares)
    found[~votes.any(axis=1)] = shares
    return found


def _shares(graphs: list[sp.csr_array], labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """The share of every cluster among the neighbours, averaged over the graphs."""
    one_hot = np.eye(n_clusters)[labels]
    shares = np.zeros((graphs[0].shape[0], n_clusters))
    for graph in graphs:
        weights = graph @ one_hot
        total = weights.sum(axis=1, keepdims=True)
        shares += np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return shares / len(graphs)


class NeighbourDiagnostics:
    """`ViewDiagnostics` of a method that finds labels only, from the ten nearest neighbours in each view.

    The confidence of an instance is the share of its neighbours that are in its cluster, averaged over its
    views; the next best cluster is that of most of the other neighbours.
    """

    confidence_reading_ = (
        "Confidence is the share of nearest neighbours, view by view, that are in the same cluster: it ranks "
        "instances and is not the chance of being right."
    )

    def __init__(self, model: Any, neighbours: ViewNeighbours) -> None:
        self.model = model
        self.neighbours = neighbours

    @property
    def labels_(self) -> np.ndarray:
        """As the method numbered the clusters."""
        return np.asarray(self.model.labels_)

    @property
    def view_names_(self) -> tuple[str, ...]:
        """Names of the views."""
        return self.neighbours.table.names

    @property
    def observed_(self) -> np.ndarray:
        """Which instance is in which view."""
        return self.neighbours.table.observed

    @cached_property
    def view_readings_(self) -> dict[str, ViewReading]:
        """How neighbours were looked for; the method itself may have read the views otherwise."""
        return {
            name: ViewReading(view.reading.kind, view.reading.looks, len(view.rows), 0)
            for name, view in zip(self.view_names_, self.neighbours.by_view, strict=True)
        }

    @property
    def view_tables_(self) -> dict[str, TableReading]:
        """How tables were read that were more than complete numbers, by view."""
        return self.neighbours.table.layout.special

    @property
    def view_weights_(self) -> np.ndarray:
        """One for each view: the method does not say."""
        return np.ones(len(self.view_names_))

    @property
    def view_relations_(self) -> np.ndarray:
        """Not known."""
        return np.full(len(self.view_names_), np.nan)

    @cached_property
    def view_support_(self) -> np.ndarray:
        """See `support_of_clusters`."""
        views = (self.in_view(v) for v in range(len(self.view_names_)))
        return np.array([support_of_clusters(view, self.labels_, self._n_clusters) for view in views])

    @property
    def view_agreement_(self) -> np.ndarray:
        """The mean over clusters."""
        return mean_support(self.view_support_)

    @cached_property
    def _votes(self) -> np.ndarray:
        votes, labels = np.zeros((len(self.labels_), self._n_clusters)), self.labels_
        for v in range(len(self.view_names_)):
            view = self.in_view(v)
            votes[view.rows] += shares_in_view(view, labels, self._n_clusters)
        return votes / np.maximum(self.observed_.sum(axis=1), 1)[:, None]

    @property
    def confidence_(self) -> np.ndarray:
        """The share of an instance's neighbours that are in its cluster."""
        return elected(self._votes, self.labels_)[1]

    @property
    def chances_(self) -> np.ndarray:
        """The share of every cluster among an instance's neighbours."""
        return chances_of_votes(self._votes, self.labels_, self.confidence_, self.labels_)

    @property
    def borders_(self) -> tuple[np.ndarray, np.ndarray]:
        """The share of neighbours in the own cluster among those in it and in the next; that one."""
        _, own, behind = elected(self._votes, self.labels_)
        following = np.where(behind >= 0, self._votes[np.arange(len(own)), behind], 0.0)
        both = own + following
        return np.divide(own, both, out=np.full_like(both, 0.5), where=both > 0), behind

    @property
    def findings_(self) -> list[Finding]:
        """Views that say next to nothing about the clusters."""
        return [
            Finding(
                f"view {name!r} says next to nothing about the clusters (agreement {agreement:.2f}).",
                hint="compare with an answer without it.",
            )
            for name, agreement in zip(self.view_names_, self.view_agreement_, strict=True)
            if agreement < SILENT
        ]

    @property
    def _n_clusters(self) -> int:
        return int(self.labels_.max()) + 1

    def in_view(self, v: int) -> InView:
        """The instances of a view, and the mean of the graphs of its looks, rows of sum one."""
        view = self.neighbours.in_view(v)
        graphs = []
        for look in view.by_look:
            total = np.asarray(look.graph.sum(axis=1)).ravel()
            graphs.append(sp.diags_array(1.0 / np.where(total > 0, total, 1.0)) @ look.graph)
        graph = (sum(graphs[1:], graphs[0]) / len(graphs)).tocsr()
        return InView(view.rows, graph, self.neighbours.group[view.rows])

    def read_new(self, X: Any, *, mask: Any = None, on: str | None = None) -> Views:
        """New instances in the views that were fitted, read as those were."""
        return self.neighbours.read_new(X, mask=mask, on=on)

    def place(self, X: Any, *, mask: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where the method itself puts new instances, if it can, else where their neighbours are."""
        return self._placed(X, mask)[1]

    def predict_proba(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """The chance of every cluster for new instances: its share of their neighbours."""
        votes, (labels, sure, _) = self._placed(X, mask)
        return chances_of_votes(votes, labels, sure, self.labels_)

    def _placed(self, X: Any, mask: Any) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        votes = self.neighbours.votes_of_new(X, self.labels_, mask)
        predict = getattr(self.model, "predict", None)
        return votes, elected(votes, None if predict is None else np.asarray(predict(X, mask=mask)))
