"""A result fitted again to a part of its evidence: some instances, some sources, with the same settings."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from consilience._support.errors import InputError, InputTypeError
from consilience._support.values import counted
from consilience.consensus import LabelMethod
from consilience.core.grouping import row_keys
from consilience.evidence.views import Views, check_views
from consilience.inference.counts import JointRows, joint_rows
from consilience.multiview.rows import canonical_order
from consilience.multiview.together import LabelsAndViews
from consilience.results.labels import fuse, fuse_partitions
from consilience.results.preparing import merge_rows
from consilience.results.views import fuse_views

if TYPE_CHECKING:
    from consilience.results.fusion import Fusion


class NotLinked(InputError):
    """The sources that are left share no instance."""


class Refitting(Protocol):
    """Evidence as rows and sources, of which parts can be clustered.

    Rows stand for `counts` instances. They are in an order that follows from what they hold, so that what is
    drawn by position does not depend on how they came; `order` is such an order of the sources.
    """

    labels: np.ndarray  # the answer for every row, -1 for none
    counts: np.ndarray
    sources: tuple[str, ...]
    order: np.ndarray
    noun: str  # what a source is called

    def fit(self, counts: np.ndarray, sources: Sequence[int], seed: int) -> np.ndarray:
        """Clusters of the rows from so many instances of each and from some sources; -1 where there are none.

        Raises an `InputError` where that is not possible, `NotLinked` where nothing links the sources.
        """


def refitting_of(fusion: Fusion, views: Any = None, mask: Any = None, on: str | None = None) -> Refitting:
    """How a result is fitted again; one of views needs them, unless it still has them."""
    if not hasattr(fusion.model, "fit"):
        raise InputTypeError(
            "this result holds no method that could be fitted again.",
            hint="ask for the stability of what fuse or fuse_views returned.",
        )
    if fusion.mixed is not None:
        if views is not None or fusion.given_views is None:
            raise InputTypeError(
                "a saved result does not hold the tables that were merged together with labels.",
                hint="ask for the stability of what fuse returned.",
                command="ask for it when they are merged: consilience fuse ... --views FILE --stability",
            )
        return _Both(fusion, fusion.mixed, fusion.given_views.table)
    if fusion.partitions.views is None:
        if views is not None:
            raise InputTypeError(
                "views were given, and this result was merged from labels, which it has.",
                hint="leave them out.",
            )
        return _Labels(fusion)
    if views is not None:
        return _Views(fusion, _matching(fusion, _read(fusion, views, mask, on)))
    if fusion.given_views is None:
        raise InputTypeError(
            "the tables of the views are needed to cluster parts of them, and a saved result has none.",
            hint="give them: fusion.stability({'blood': blood, 'notes': notes}).",
            command="name them after the result, as in: consilience stability groups.consilience blood.csv "
            "notes.csv --id patient",
        )
    return _Views(fusion, fusion.given_views.table)


def _read(fusion: Fusion, views: Any, mask: Any, on: str | None) -> Views:
    """Views as the result has read them, where there is more than one way to do so."""
    told = fusion.view_diagnostics
    if told is None or not fusion.tables or not isinstance(views, Mapping):
        return check_views(views, mask=mask, on=on)
    if set(map(str, views)) != set(told.view_names_):
        return check_views(views, mask=mask, on=on)  # what is wrong is said later
    return told.read_new(views, mask=mask, on=on)


class _Labels:
    """A table of labels and its answer, as distinct rows with counts."""

    noun = "source"

    def __init__(self, fusion: Fusion) -> None:
        table, labels = fusion.partitions, fusion.labels
        if fusion.linked is not None:
            table, labels = merge_rows(table, fusion.linked), _of_groups(labels, fusion.linked)
        if fusion.given_weights is not None:
            table = table.weighted(np.array(fusion.given_weights)).counting  # weight 0: no say
        rows: JointRows = joint_rows(table, labels)
        seen = (rows.codes >= 0).any(axis=1)
        self.labels, self.counts = np.where(seen, rows.labels, -1), rows.counts
        self.sources, self.order = table.names, table.canonical.bases
        self._table = replace(table.distinct, codes=rows.codes, counts=rows.counts)
        self._method: Any = "auto" if fusion.candidates else fusion.model
        self._place = np.arange(len(self.labels))
        if not fusion.candidates and not isinstance(fusion.model, LabelMethod):
            # It knows no counts, and may tell instances with equal labels apart, by their order too.
            self._place = np.argsort(rows.inverse, kind="stable")
            self.labels = self.labels[rows.inverse[self._place]]
            self._table = table.take(self._place)
            self.counts = np.ones(len(self.labels), dtype=np.int64)
        self._n_clusters = asked_n_clusters(fusion)

    def fit(self, counts: np.ndarray, sources: Sequence[int], seed: int) -> np.ndarray:
        rows = np.flatnonzero(counts)
        rows = rows[np.argsort(self._place[rows])]
        part = self._table.choose(sorted(sources))
        part = replace(part, codes=part.codes[rows], counts=counts[rows]).compact()
        if not part.n_partitions:
            raise InputError("no instance is left.", hint="keep more of them.")
        _require_linked(part.observed)
        found = np.full(len(counts), -1)
        if part.n_partitions == 1:  # there is nothing to merge: its own clusters are the answer
            found[rows] = part.codes[:, 0]
            return found
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the part; the whole table had its warnings
            fusion = fuse_partitions(part, self._n_clusters, self._method, "noise", seed, 0, None)
        found[rows] = fusion.labels
        return found


class _Views:
    """Tables of features and the answer, a row per instance."""

    noun = "view"

    def __init__(self, fusion: Fusion, table: Views) -> None:
        given = fusion.given_views
        if not fusion.by_views and given is None:
            raise InputTypeError(
                "a saved result does not know what clustered the views before their labels were merged.",
                hint="ask for the stability of what fuse_views returned.",
                command="ask for it when they are clustered: consilience cluster ... --stability",
            )
        instances, self.order = canonical_order(table.arrays, table.observed)
        self._table = table.part(instances)
        self.labels = fusion.labels[instances]
        self.counts = np.ones(table.n_instances, dtype=np.int64)
        self.sources = table.names
        merged = "labels" if fusion.candidates else fusion.model
        self._method = fusion.model if fusion.by_views else merged
        self._n_clusters = asked_n_clusters(fusion)
        self._settings: dict[str, Any] = {} if given is None else {"n_partitions": given.n_partitions}
        if not fusion.by_views:
            assert given is not None
            self._settings["clusterer"] = given.clusterer

    def fit(self, counts: np.ndarray, sources: Sequence[int], seed: int) -> np.ndarray:
        seen = self._table.observed[:, sorted(sources)]
        rows = np.flatnonzero((counts > 0) & seen.any(axis=1))
        chosen = [v for v in sorted(sources) if self._table.observed[rows, v].any()]
        if not chosen:
            raise InputError("no instance is left.", hint="keep more of them.")
        part = self._table.part(rows, chosen)
        _require_linked(part.observed)
        method = for_views(self._method, self.sources, chosen)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fusion = fuse_views(part, self._n_clusters, method=method, random_state=seed, **self._settings)
        found = np.full(len(counts), -1)
        found[rows] = fusion.labels
        return found


class _Both:
    """Labels, tables of features and the answer, a row per instance."""

    noun = "source"

    def __init__(self, fusion: Fusion, model: LabelsAndViews, views: Views) -> None:
        table, numbering = fusion.partitions, fusion.partitions.canonical.numbering
        keys = row_keys(numbering.recode(table.codes), np.diff(numbering.offsets))
        instances, of_views = canonical_order(views.arrays, views.observed, beside=keys)
        self._table, self._views = table.take(instances), views.part(instances)
        self._n_labels = table.n_partitions
        self.order = np.concatenate([table.canonical.bases, self._n_labels + of_views])
        self.labels = fusion.labels[instances]
        self.counts = np.ones(len(instances), dtype=np.int64)
        self.sources = model.source_names_
        self._n_clusters, self._given = model.n_clusters, model.given_

    def fit(self, counts: np.ndarray, sources: Sequence[int], seed: int) -> np.ndarray:
        m = self._n_labels
        columns = [j for j in sorted(sources) if j < m]
        tables = [j - m for j in sorted(sources) if j >= m]
        seen = np.hstack([self._table.observed[:, columns], self._views.observed[:, tables]])
        rows = np.flatnonzero((counts > 0) & seen.any(axis=1))
        columns = [j for j in columns if self._table.observed[rows, j].any()]
        tables = [v for v in tables if self._views.observed[rows, v].any()]
        if not columns and not tables:
            raise InputError("no instance is left.", hint="keep more of them.")
        _require_linked(
            np.hstack([self._table.observed[rows][:, columns], self._views.observed[rows][:, tables]])
        )
        found = np.full(len(counts), -1)
        labels = self._table.take(rows).choose(columns).compact() if columns else None
        chosen = [*columns, *(m + v for v in tables)]
        given = {self.sources[j]: float(self._given[j]) for j in chosen if not np.isnan(self._given[j])}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if labels is None:
                part = self._views.part(rows, tables)
                fusion = fuse_views(part, self._n_clusters, view_weights=given or None, random_state=seed)
            elif not tables and len(columns) == 1:  # there is nothing to merge
                found[rows] = labels.codes[:, 0]
                return found
            else:
                views = self._views.part(rows, tables) if tables else None
                fusion = fuse(
                    *(labels, self._n_clusters),
                    views=views,
                    weights=given or None,
                    unobserved="noise",
                    random_state=seed,
                )
        found[rows] = fusion.labels
        return found


def asked_n_clusters(fusion: Fusion) -> Any:
    """The number of clusters that was asked for: "auto" where it was found."""
    if fusion.cluster_count is not None:
        return "auto"
    parameters = fusion.model.get_params() if hasattr(fusion.model, "get_params") else {}
    return int(parameters.get("n_clusters", fusion.n_clusters))


def for_views(method: Any, names: Sequence[str], chosen: Sequence[int]) -> Any:
    """A method whose settings by view are those of some of the views."""
    if isinstance(method, str):
        return method
    method, kept = clone(method), {names[v] for v in chosen}
    settings: dict[str, Any] = {}
    for name, value in method.get_params(deep=False).items():
        if isinstance(value, Mapping):
            settings[name] = {view: entry for view, entry in value.items() if str(view) in kept}
        elif isinstance(value, list | tuple | np.ndarray) and len(value) == len(names):
            settings[name] = [value[v] for v in chosen]
    return method.set_params(**settings)


def _of_groups(labels: np.ndarray, group: np.ndarray) -> np.ndarray:
    found = np.empty(int(group.max()) + 1, dtype=labels.dtype)
    found[group] = labels  # all of a group have the same
    return found


def _require_linked(observed: np.ndarray) -> None:
    seen = observed.astype(float)
    n_groups, _ = connected_components(seen.T @ seen > 0, directed=False)
    if n_groups > 1:
        raise NotLinked("the sources that are left share no instance.")


def _matching(fusion: Fusion, table: Views) -> Views:
    """Views in the order of the instances of a result, or an error that says what is not as it was."""
    told = fusion.view_diagnostics
    names = table.names if told is None else told.view_names_
    if set(names) != set(table.names):
        raise InputError(
            f"the views are {', '.join(map(repr, table.names))}; the result was made of "
            f"{', '.join(map(repr, names))}.",
            hint="give the same views under the same names.",
        )
    table = table.part(np.arange(table.n_instances), [table.names.index(name) for name in names])
    if fusion.index is None or table.index is None:
        if table.n_instances != len(fusion.labels):
            raise InputError(
                f"the views have {counted(table.n_instances, 'instance')}, the result has "
                f"{len(fusion.labels)}.",
                hint="give the views that were clustered.",
            )
        return table
    place = {value: row for row, value in enumerate(table.index.tolist())}
    known = fusion.index.tolist()
    lost = next((value for value in known if value not in place), None)
    if lost is not None or len(place) != len(known):
        strange = next((value for value in place if value not in set(known)), None)
        where = f"no row of {lost!r}" if lost is not None else f"a row of {strange!r}, which the result lacks"
        raise InputError(f"the views have {where}.", hint="give the views that were clustered.")
    return table.part(np.array([place[value] for value in known]))
