"""What every view method does at its door: read the views, keep scikit-learn's books, number clusters."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import ClusterMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from consilience.views import Views, check_views


class ViewsMixin(ClusterMixin):
    """For estimators whose ``X`` is several tables about the same instances, with rows absent here and there.

    `_read_views` fills `view_names_`, `index_` (the ids, or None), `observed_`, `n_features_per_view_` and
    `n_features_in_` (their sum). A method gives `_answer` a cluster for every instance.
    """

    n_clusters: int
    n_features_in_: int
    n_features_per_view_: tuple[int, ...]
    view_names_: tuple[str, ...]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # NaN says that a row is absent from a view, which a single table cannot have: it has no other view.
        tags.input_tags.allow_nan = False
        tags.input_tags.sparse = True
        return tags

    def _read_views(self, X: Any, mask: Any = None) -> Views:
        views = check_views(one_table(X), mask=mask)
        if _is_table(X):
            validate_data(self, X, skip_check_array=True, reset=True)
        self.n_features_per_view_ = views.n_features
        self.n_features_in_ = sum(views.n_features)
        self.view_names_ = views.names
        self.index_ = views.index
        self._columns = views.columns
        self.observed_ = views.observed
        if self.n_clusters > views.n_instances:
            raise ValueError(
                f"n_samples={views.n_instances} should be >= n_clusters={self.n_clusters}. "
                "Hint: lower n_clusters, or check that instances are rows."
            )
        return views

    def _read_new_views(self, X: Any, mask: Any = None) -> Views:
        """New instances with all fitted views in their order; a view that was not given has no rows."""
        check_is_fitted(self)
        if _is_table(X) and len(X.shape) == 1:
            raise ValueError(
                "Expected 2D array, got 1D array instead. Reshape your data. Hint: one new instance is "
                "values.reshape(1, -1)."
            )
        if _is_table(X) and not isinstance(X, Views) and len(self.view_names_) == 1:
            validate_data(self, X, skip_check_array=True, reset=False)
        tables, mask = self._given_tables(one_table(X), mask)
        views = check_views(tables, mask=mask)
        for name, width in zip(views.names, views.n_features, strict=True):
            expected = self.n_features_per_view_[self.view_names_.index(name)]
            if width != expected:
                raise ValueError(
                    f"view {name!r} has {width} features, but {type(self).__name__} is expecting {expected} "
                    "features as input. Hint: give the columns that were fitted, in their order."
                )
        at = {name: v for v, name in enumerate(views.names)}
        arrays, observed = [], np.zeros((views.n_instances, len(self.view_names_)), dtype=bool)
        for v, (name, width) in enumerate(zip(self.view_names_, self.n_features_per_view_, strict=True)):
            if name in at:
                observed[:, v] = views.observed[:, at[name]]
                arrays.append(self._in_fitted_order(views, at[name], v))
            else:
                arrays.append(sparse.csr_array((views.n_instances, width)))
        return replace(views, arrays=tuple(arrays), observed=observed, names=self.view_names_)

    def _in_fitted_order(self, views: Views, given: int, fitted: int) -> Any:
        """A new table with its columns in the order that was fitted, where both have names."""
        now = views.columns[given] if views.columns else None
        then = self._columns[fitted] if self._columns else None
        array = views.arrays[given]
        if now is None or then is None or now == then:
            return array
        strange = next((name for name in now if name not in then), None)
        if strange is not None:
            raise ValueError(
                f"view {views.names[given]!r} has a column {strange!r} that was not there when "
                f"{type(self).__name__} was fitted. Hint: the columns are {', '.join(map(repr, then[:5]))}"
                f"{', ...' if len(then) > 5 else ''}; an array is read by position"
            )
        return array[:, [now.index(name) for name in then]]

    def _given_tables(self, X: Any, mask: Any) -> tuple[dict[str, Any], Any]:
        """The tables that hold an instance, by name, and the columns of `mask` that belong to them."""
        names = self.view_names_
        if isinstance(X, Views):
            mask = X.observed if mask is None else X.observed & np.asarray(mask)
            X = dict(zip(X.names, X.arrays, strict=True))
            mask = _in_order(mask, list(X), names)
        if isinstance(X, Mapping) and not sparse.issparse(X):
            unknown = [str(name) for name in X if str(name) not in names]
            if unknown:
                raise ValueError(
                    f"there was no view {unknown[0]!r} when {type(self).__name__} was fitted. "
                    f"Hint: the views are {', '.join(map(repr, names))}"
                )
            tables = {str(name): table for name, table in X.items()}
        else:
            listed = X if isinstance(X, list | tuple) else [X]
            if len(listed) != len(names):
                raise ValueError(
                    f"X has {len(listed)} views, but {type(self).__name__} was fitted with {len(names)}. "
                    f"Hint: give None for a view that is not there, or a dict with some of the keys "
                    f"{', '.join(map(repr, names))}"
                )
            tables = dict(zip(names, listed, strict=True))
        if mask is not None:
            mask = np.asarray(mask)
            if mask.ndim != 2 or mask.shape[1] != len(names):
                raise ValueError(
                    f"mask must have a column for each of the {len(names)} fitted views. "
                    f"Got the shape {mask.shape} instead. Hint: a view that is not given has any column"
                )
        given = {
            name: table
            for name, table in tables.items()
            if table is not None
            and (mask is None or mask[:, names.index(name)].any())
            and not _is_blank(table)
        }
        if not given:
            raise ValueError("no view holds any instance. Hint: give at least one of the fitted views")
        return given, None if mask is None else mask[:, [names.index(name) for name in given]]

    def _answer(self, labels: np.ndarray) -> np.ndarray:
        """Store the labels, numbered from the largest cluster, and return the old numbers in that order."""
        order = np.argsort(-np.bincount(labels, minlength=self.n_clusters), kind="stable")
        self.labels_ = np.argsort(order)[labels]
        self.n_clusters_ = len(np.unique(labels))
        return order

    def _check_converged(self, converged: bool, max_iter: int) -> None:
        if not converged:
            warnings.warn(
                f"{type(self).__name__} did not converge in {max_iter} iterations. "
                "Hint: raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _progress(self, iteration: int, objective: float) -> None:
        print(f"{type(self).__name__} iteration {iteration}: objective {objective:.6g}", file=sys.stderr)


class RowClusters(NamedTuple):
    """Clusters of the rows of an embedding, and where they are centred."""

    labels: np.ndarray
    centers: np.ndarray


def unit_rows(h: np.ndarray) -> np.ndarray:
    """Rows of norm one; a row of (numerical) zeros becomes zero instead of noise."""
    norms = np.sqrt(np.einsum("pd,pd->p", h, h))
    floor = 1e-12 * norms.max(initial=0.0)
    return np.where(norms > floor, 1.0 / np.maximum(norms, max(floor, 1e-300)), 0.0)[:, None] * h


def cluster_rows(h: np.ndarray, n_clusters: int, *, n_init: int, rng: np.random.RandomState) -> RowClusters:
    """k-means on the rows of an embedding: of `n_init` starts, the one with the smallest inertia."""
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: the labels say so, and k-means need not say it too.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KMeans(n_clusters, n_init=n_init, random_state=rng).fit(h)
    return RowClusters(model.labels_.astype(np.int64), model.cluster_centers_)


def settled(objective: Sequence[float], tol: float) -> bool:
    """At least three sweeps, and the last changed the objective by less than a share `tol`, or it is zero."""
    if len(objective) < 3:
        return False
    last, before = objective[-1], objective[-2]
    return last == 0.0 or abs(last - before) < tol * abs(last)


def _is_table(X: Any) -> bool:
    return hasattr(X, "shape")


def one_table(X: Any) -> Any:
    """A nested list of numbers as one table: a list of views would have tables in it."""
    if isinstance(X, list | tuple) and X and all(isinstance(row, list | tuple) for row in X):
        entries = [row[0] for row in X if row]
        if entries and all(isinstance(entry, Number) or entry is None for entry in entries):
            return np.array(X, dtype=float)
    return X


def _is_blank(table: Any) -> bool:
    """Whether a table says nothing: every entry is NaN."""
    if sparse.issparse(table):
        return False
    try:
        return bool(np.isnan(np.asarray(table, dtype=float)).all())
    except (TypeError, ValueError):  # not numbers: the door says what is wrong with it
        return False


def _in_order(mask: np.ndarray, given: list[str], names: tuple[str, ...]) -> np.ndarray:
    """Columns of a mask in the order of the fitted views; False for a view that is not there."""
    out = np.zeros((len(mask), len(names)), dtype=bool)
    for v, name in enumerate(names):
        if name in given:
            out[:, v] = mask[:, given.index(name)]
    return out
