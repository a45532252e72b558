"""What every view method does around its mathematics: read the views, check its limits, number clusters."""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from consilience._support.errors import Hint, InputError, Phrase
from consilience._support.sklearn import Clusterer, Embedder, fit_context, random_source
from consilience._support.talk import tell
from consilience._support.threads import one_thread
from consilience._support.values import counted
from consilience._support.warnings import warn
from consilience.core.grouping import largest_first
from consilience.core.parameters import Count, Seed, parameters
from consilience.evidence.views import TableReading, Views, check_views, one_table
from consilience.multiview.neighbours import NeighbourDiagnostics, ViewDiagnostics, ViewNeighbours
from consilience.multiview.rows import canonical_order, cluster_rows
from consilience.registry import About

# How the features of a view are scaled.
Normalize = Literal["auto", "standard", "tfidf", "l2"] | None


@parameters
class ViewMethod(Clusterer):
    """Base of the estimators whose ``X`` is several tables about the same instances, with rows absent.

    A method writes its mathematics as a function of arrays, calls it in ``_solve`` and says in class
    attributes what it is. Its parameters are annotated names with defaults, see
    :func:`~consilience.core.parameters.parameters`. If it learns more than labels, ``_learn`` keeps that.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    n_init : int
        Number of starts of k-means.
    random_state : int, RandomState instance or None
        Draws the starts of k-means.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster.
    n_clusters_ : int
        Number of clusters found.
    observed_ : ndarray of shape (n_instances, n_views)
        Which instance was present in which view.
    view_names_ : tuple of str
        Names of the views.
    index_ : ndarray or None
        Ids of the instances; None where rows are known by position only.
    n_features_per_view_ : tuple of int
        Number of features of every view.
    n_features_in_ : int
        Number of features of all views together.
    feature_names_in_ : ndarray of str
        Names of the features, where a single frame was given.
    view_tables_ : dict of str to TableReading
        By view, how its columns were read and which cells were missing; of those that were more than complete
        numbers.
    """

    about: ClassVar[About]
    max_instances: ClassVar[float] = np.inf  # the most that it takes
    max_views: ClassVar[float] = np.inf

    n_clusters: Count = field(default=8, kw_only=False)
    n_init: Count = 10
    random_state: Seed = None

    def _solve(self, views: Views, rng: np.random.RandomState) -> Any:
        """A result with ``labels``, a cluster from 0 for every instance, or an ``embedding`` of them.

        Its fields ``centers``, ``objective``, ``n_iter`` and ``converged`` are kept or looked at if there are
        such.
        """
        raise TypeError(f"{type(self).__name__} does not say how it is solved")

    def _cluster(self, result: Any, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray | None]:
        """Labels and centres of the clusters of a result, or of k-means on the rows of its embedding."""
        if hasattr(result, "labels"):
            return result.labels, getattr(result, "centers", None)
        return cluster_rows(result.embedding, self.n_clusters, n_init=self.n_init, rng=rng)

    def _learn(self, result: Any, views: Views, order: np.ndarray) -> None:
        """Keep what `result` has besides labels; `order` are its numbers of clusters, largest first."""

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, mask: Any = None) -> Self:
        """Cluster the instances.

        Parameters
        ----------
        X : list, tuple or dict of tables, one table, or Views
            One table per view, instances in rows; see :func:`consilience.check_views`, which also says what
            columns hold. An absent instance is a row of NaN. A missing cell is filled in by what the other
            cells of its row say.
        y : ignored
            There for scikit-learn's interface.
        mask : array of bool of shape (n_instances, n_views), default=None
            False where the instance is absent from the view.
        """
        views = self._read_views(X, mask)
        self._check_views(views)
        self._layout = views.layout
        self.view_names_, self.n_features_per_view_ = views.names, views.n_features
        self.n_features_in_ = sum(views.n_given)
        self.index_, self.observed_ = views.index, views.observed
        rng = random_source(self.random_state)
        with one_thread():  # the same answer whatever the threads
            result = self._solve(views, rng)
            labels, centers = self._cluster(result, rng)
            self._check_converged(getattr(result, "converged", True), getattr(self, "max_iter", 0))
            order = self._answer(labels, views)
            self._warn_of_equals(views)
            if centers is not None:
                self._centers = centers[order]
            if hasattr(result, "objective"):
                self.objective_ = result.objective
            if hasattr(result, "n_iter"):
                self.n_iter_ = result.n_iter
            self._learn(result, views, order)
        return self

    def diagnose_views(self, views: Views) -> ViewDiagnostics:
        """What can be said of the views that were fitted and of the answer; of a result of these views.

        By the neighbours of every instance in each view, unless the method knows better.

        Parameters
        ----------
        views : Views
            What was fitted.
        """
        check_is_fitted(self)
        return NeighbourDiagnostics(self, ViewNeighbours().fit(views))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a missing cell is filled in
        tags.input_tags.sparse = True
        return tags

    def _read_views(self, X: Any, mask: Any, kind: Any = None) -> Views:
        """What `fit` is given."""
        views = check_views(one_table(X), mask=mask, kind=kind)
        if hasattr(X, "shape"):
            validate_data(self, X, skip_check_array=True, reset=True)
        return views

    def read_new(self, X: Any, *, mask: Any = None, on: str | None = None) -> Views:
        """New instances in the views that were fitted, read as those were; `predict` takes them.

        Parameters
        ----------
        X : list, tuple or dict of tables, one table, or Views
            As in `predict`.
        mask : array of bool of shape (n_instances, n_views), default=None
            False where the instance is absent from the view.
        on : str, default=None
            The column of every frame that holds the ids.
        """
        return self._read_new_views(X, mask, on)

    def _read_new_views(self, X: Any, mask: Any, on: str | None = None) -> Views:
        """New instances with all fitted views in their order; a view that was not given has no rows."""
        check_is_fitted(self)
        if len(getattr(X, "shape", ())) > 1 and len(self.view_names_) == 1 and not self._reads_columns:
            validate_data(self, X, skip_check_array=True, reset=False)
        return self._layout.match(X, mask, method=type(self).__name__, on=on)

    @property
    def view_tables_(self) -> dict[str, TableReading]:
        """How tables were read that were more than complete numbers, by view."""
        check_is_fitted(self)
        return self._layout.special

    @property
    def _reads_columns(self) -> bool:
        """Whether columns are known by their names, so that new tables may lack some."""
        return any(read is not None and read.columns is not None for read in self._layout.tables or ())

    def _check_views(self, views: Views) -> None:
        """Refuse fewer instances than clusters, and more of anything than the method takes."""
        name, n = type(self).__name__, views.n_instances
        if self.n_clusters > n:
            raise InputError(
                Phrase("n_samples={n} should be >= {n_clusters=}.", n=n, n_clusters=self.n_clusters),
                hint=Hint("lower {n_clusters}, or check that instances are rows."),
            )
        if views.n_views > self.max_views:
            raise InputError(
                f"{name} takes at most {self.max_views} views, got {views.n_views}: "
                f"{', '.join(map(repr, views.names))}.",
                hint=f"use APMC, MIC or DAIMC for more, or choose {self.max_views}.",
            )
        if n > self.max_instances:
            raise InputError(
                f"there are {n} instances, {name} takes at most {self.max_instances}: it compares all pairs.",
                hint="use APMC, whose cost is linear in them.",
            )

    def _answer(self, labels: np.ndarray, views: Views | None = None) -> np.ndarray:
        """Store the labels, numbered from the largest cluster, and return the old numbers in that order.

        Of clusters of one size, the one comes first whose first instance does, in the canonical order of the
        instances where there are `views`, else as they were given.
        """
        sizes = np.bincount(labels, minlength=self.n_clusters)
        if views is None or len(np.unique(sizes)) == len(sizes):
            order = largest_first(labels, self.n_clusters)
        else:
            place = np.argsort(canonical_order(views.arrays, views.observed)[0])
            order = largest_first(labels, self.n_clusters, place=place)
        self.labels_ = np.argsort(order)[labels]
        self.n_clusters_ = len(np.unique(labels))
        return order

    def _warn_of_equals(self, views: Views) -> None:
        """Say where instances or clusters are fewer than was asked for, or a view holds nothing."""
        constant = self._constant_views(views)
        telling = [v for v in range(views.n_views) if v not in constant]
        n_distinct = views.n_distinct(self.n_clusters, telling)
        if n_distinct < self.n_clusters:
            warn(
                Phrase(
                    "only {found} for {n_clusters=}: nothing in the views tells the others apart.",
                    found=counted(n_distinct, "distinct instance"),
                    n_clusters=self.n_clusters,
                ),
                ConvergenceWarning,
                hint=Hint("lower {n_clusters}, or add a view in which they differ."),
            )
        elif self.n_clusters_ < self.n_clusters:
            warn(
                Phrase(
                    "{method} found {found} for {n_clusters=}.",
                    method=type(self).__name__,
                    found=counted(self.n_clusters_, "cluster"),
                    n_clusters=self.n_clusters,
                ),
                ConvergenceWarning,
                hint=Hint(
                    "look for instances far from all others, scale the features, or lower {n_clusters}."
                ),
            )
        elif constant and self.n_clusters > 1:  # one cluster needs nothing that tells instances apart
            warn(
                f"view {views.names[constant[0]]!r} tells no two instances apart.",
                hint="leave this view out, or check that its rows differ.",
            )

    def _constant_views(self, views: Views) -> list[int]:
        """Views that tell no two instances apart."""
        return views.constant()

    def _check_converged(self, converged: bool, max_iter: int) -> None:
        if not converged:
            warn(
                f"{type(self).__name__} did not converge in max_iter={max_iter} iterations.",
                ConvergenceWarning,
                hint="raise max_iter or tol.",
            )

    @property
    def _sweeping(self) -> dict[str, Any]:
        """What every iterative solver takes: when to stop, and whom to tell of a sweep."""
        given = self.get_params(deep=False)
        if "verbose" not in given:  # scikit-learn's dir() asks for every property, also where there is none
            raise AttributeError(f"{type(self).__name__} does not iterate.")
        progress = self._progress if given["verbose"] else None
        return {"max_iter": given["max_iter"], "tol": given["tol"], "progress": progress}

    def _progress(self, iteration: int, objective: float) -> None:
        tell(f"{type(self).__name__} iteration {iteration}: objective {objective:.6g}")


class EmbeddingMethod(Embedder, ViewMethod):
    """Base of the methods in whose embedding new instances have a place; `_embed` says where."""

    def _embed(self, X: Any, mask: Any) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} does not say where new instances are")

    def transform(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """Places of instances in the embedding, by the views that they have.

        Fitted instances that have all views are where `embedding_` has them. What was filled in for others
        when they were fitted is in `embedding_` only.

        Parameters
        ----------
        X : list, tuple or dict of tables, one table, or Views
            As in `predict`.
        mask : array of bool of shape (n_instances, n_views), default=None
            False where the instance is absent from the view.
        """
        return self._embed(X, mask)

    def fit_transform(self, X: Any, y: Any = None, *, mask: Any = None) -> np.ndarray:
        """Fit, and then `transform`.

        Parameters
        ----------
        X : list, tuple or dict of tables, one table, or Views
            As in `fit`.
        y : ignored
            There for scikit-learn's interface.
        mask : array of bool of shape (n_instances, n_views), default=None
            False where the instance is absent from the view.
        """
        return self.fit(X, mask=mask).transform(X, mask=mask)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags
