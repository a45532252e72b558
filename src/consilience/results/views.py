"""Merge partial views: embed each and cluster once, or cluster each and merge the partial labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, ValuesView
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from consilience._support.errors import Hint, InputError, Phrase
from consilience._support.sklearn import Interval, check_parameter, random_source, seed_from
from consilience._support.talk import Progress, tell, watched
from consilience.evidence.partitions import MISSING, Partitions
from consilience.evidence.views import Views, check_views
from consilience.generate import base_partitions, graph_partitions
from consilience.multiview.base import ViewMethod
from consilience.multiview.neighbours import ViewNeighbours
from consilience.multiview.pse import PSE, UNRELATED, DoubtfulWarning
from consilience.multiview.reading import read, stored
from consilience.multiview.rows import quick_clusters
from consilience.multiview.scaling import kind_of
from consilience.registry import resolve
from consilience.results.fusion import Fusion, GivenViews, seed_of
from consilience.results.labels import (
    check_n_clusters,
    count_clusters,
    fuse_partitions,
    named_method,
    numbered_by_size,
)

# Numbers of clusters of the base clusterings of a view, as multiples of the wanted one.
_FEWEST, _MOST = 0.6, 3.0
# The same where the number is to be found.
_RANGE = (2, 20)
# Base clusterings a view; fewer where there are many views, so that there are not many more than so many in
# all, and at least the last.
_A_VIEW, _IN_ALL, _FEWEST_A_VIEW = 20, 120, 5
# Why a method was taken.
_REASON = "Each view was embedded on its own, absent rows were filled in through other views."
_ASKED = "It was asked for."
# Clusters that are looked for where PSE embeds views to find their number.
_PROVISIONAL = 10
# A view has a say there if it weighs so much of what the heaviest does.
_MUCH = 0.5


def fuse_views(
    views: Any,
    n_clusters: int | Literal["auto"] = "auto",
    *,
    mask: ArrayLike | None = None,
    on: str | None = None,
    method: Any = "auto",
    kind: Any = None,
    view_weights: Any = None,
    clusterer: Any = None,
    n_partitions: int | None = None,
    n_jobs: int | None = None,
    like: Any = None,
    random_state: Any = None,
    verbose: int = 0,
    progress: Progress | bool | None = None,
) -> Fusion:
    """Cluster instances by several tables of features, each of which may lack some of them.

    Parameters
    ----------
    views : list or dict of arrays, sparse matrices or frames
        Several tables about the same instances, with columns of any kind and cells missing anywhere; an
        absent row is all NaN, or not in the frame. See :func:`consilience.check_views`. How each is read is
        said in the summary, and can be set by `kind`.
    n_clusters : int or "auto", default="auto"
        The number of clusters, or "auto" to find it: for :class:`~consilience.PSE` from clusterings of its
        own embeddings, else from a first round of base clusterings. Views of weight 0 have no say, nor do
        those that share nothing with any other, where some do.
    mask : array-like of bool of shape (n_instances, n_views), optional
        True where an instance is present in a view.
    on : str, optional
        Column of ids by which frames are joined.
    method : str or estimator, default="auto"
        "auto" is :class:`~consilience.PSE`: each view is embedded on its own, absent rows are filled in
        through other views, and all is clustered once. "labels" clusters every view several times and merges
        the labels as :func:`fuse` does; so does the name of a label method, or such an estimator. Or the name
        of another method in :mod:`consilience.multiview`, or such an estimator.
    kind : str or dict, optional
        How views are read: "counts", "measurements", "links", "binary" or "log-counts"; and how columns are,
        as in ``{"notes": "counts", "clinic.stage": "category"}``. What is left out is recognised. See `kind`
        of :func:`consilience.check_views`.
    view_weights : dict of view name to number, or one number a view, optional
        How much each view counts; see `view_weights` of :class:`~consilience.PSE`.
    clusterer : "graph", "kmeans" or a scikit-learn clusterer, optional
        What clusters a view where labels are merged; see ``method`` of
        :func:`consilience.generate.base_partitions`. A clusterer gets the table as it is, dense or sparse.
        None is "graph". With "auto", a clusterer means that its labels are merged.
    n_partitions : int, default=None
        Base clusterings a view, where labels are merged or the number of clusters is to be found. Each draws
        its number of clusters between .6 and 3 times `n_clusters`. None is 20, or fewer where there are more
        than six views: 120 in all, at least five a view.
    n_jobs : int or None, default=None
        Base clusterings made at once, where labels are merged.
    like : Fusion, dict or series of labels by id, or frame of id and label, optional
        An earlier result whose numbers the clusters shall keep; see :meth:`Fusion.like`.
    random_state : int, RandomState or None, default=None
        One seed, one answer.
    verbose : int, default=0
        Whether to say which views were clustered and which methods tried; as in :func:`fuse`.
    progress : bool or callable, optional
        As in :func:`fuse`.

    Returns
    -------
    fusion : Fusion
        Labels, confidence and diagnostics; ``fusion.views`` and ``fusion.sources`` say what was read and used
        of each view. ``fusion.predict`` places new instances by their features. Where labels were merged,
        ``fusion.partitions`` has the base clusterings, named after their views; else it has no columns, since
        no labels were made.

    Notes
    -----
    Where labels are merged with ``clusterer="graph"``, they get a last vote: each instance goes to the
    cluster with the largest share of its ten nearest neighbours, averaged over its views. Views of counts are
    weighted by rarity, those of measurements are standardised, and of measurements of ten and more columns
    half of the base clusterings see the rows as they are, scaled to unit length.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import fuse_views
    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat([0, 1, 2], 30)
    >>> lengths, colours = (rng.normal(5 * rng.normal(size=(3, 4))[kind]) for _ in range(2))
    >>> lengths[:20], colours[70:] = np.nan, np.nan  # not measured
    >>> fusion = fuse_views({"lengths": lengths, "colours": colours}, 3, random_state=0)
    >>> np.unique(fusion.labels + 3 * kind).size  # one cluster a kind
    3
    """
    check_n_clusters(n_clusters, "fuse_views")
    if n_partitions is not None:
        accepted = Interval(Integral, 1, None, closed="left")
        check_parameter("n_partitions", n_partitions, accepted, "fuse_views", hint="use 20")
    rng = random_source(random_state)
    merging = check_method(method, "fuse_views")
    direct = _view_method(method, clusterer, kind, view_weights)
    table = check_views(views, mask=mask, on=on, kind=getattr(direct, "kind", None) if kind is None else kind)
    _require_linked(table)
    given = GivenViews(table, clusterer, n_partitions)
    m = n_partitions or max(_FEWEST_A_VIEW, min(_A_VIEW, _IN_ALL // table.n_views))
    neighbours = ViewNeighbours().fit(table)
    by_graph = clusterer is None or (isinstance(clusterer, str) and clusterer == "graph")
    clusterer = neighbours if by_graph else clusterer
    ids = _instances(table, *_kind_of(views, on))
    with watched(progress) as told:
        count = None
        if n_clusters == "auto" and isinstance(direct, PSE):
            model = _fitted(direct, table, _PROVISIONAL, rng)
            count = count_clusters(_cluster_embeddings(model, table, m, rng, verbose, told), rng)
        elif n_clusters == "auto":
            first = _cluster_views(table, _RANGE, neighbours, clusterer, m, n_jobs, rng, verbose, told)
            count = count_clusters(first, rng)
        k = count.n_clusters if count is not None else int(n_clusters)
        if direct is not None:
            model = _fitted(direct, table, k, rng)
            name = type(model).__name__
            if told is not None:
                told(f"merged by {name}", 1, 1)
            labels = numbered_by_size(model.labels_, place=np.argsort(neighbours.order[0]))
            labels[model.labels_ < 0] = -1
            reason = _REASON if isinstance(direct, PSE) else _ASKED
            told_of = model.diagnose_views(table)
            fusion = Fusion(
                labels,
                ids,
                name,
                reason,
                model,
                (),
                count,
                view_diagnostics=told_of,
                seed=seed_of(random_state),
                given_views=given,
            )
            return fusion if like is None else fusion.like(like)
        ks = max(2, round(_FEWEST * k)), max(2, round(_MOST * k))
        partitions = _cluster_views(table, ks, neighbours, clusterer, m, n_jobs, rng, verbose, told)
        partitions = replace(partitions, backend=ids.backend, index_name=ids.index_name)
        # All base clusterings have the same range of numbers around the wanted: agreement is a good guide.
        found = fuse_partitions(partitions, k, merging, "error", seed_from(rng), verbose, "agreement", told)
        labels, reason = found.labels, found.reason
        if by_graph:
            labels = numbered_by_size(neighbours.vote(labels), place=np.argsort(neighbours.order[0]))
            reason += " Then each instance joined its nearest neighbours."
        fusion = Fusion(
            labels,
            partitions,
            found.method,
            reason,
            found.model,
            found.candidates,
            count,
            neighbours,
            seed=seed_of(random_state),
            given_views=given,
        )
        return fusion if like is None else fusion.like(like)


def check_method(method: Any, of: str) -> Any:
    """What merges labels of views, if `method` says so; a wrong name is an error before any work."""
    if isinstance(method, ViewMethod):
        return method
    if isinstance(method, str):
        if method.lower() in ("auto", "labels"):
            return "auto"
        if issubclass(resolve(method, ["views", "labels"], of=of), ViewMethod):
            return method
    named_method(method, 1, "error", 0, of=of)
    return method


def _view_method(method: Any, clusterer: Any, kind: Any, view_weights: Any) -> Any:
    """An estimator that takes the views themselves, if `method` is or names one."""
    direct = None
    if isinstance(method, ViewMethod):
        direct = clone(method)
    elif isinstance(method, str) and method.lower() == "auto":
        direct = PSE() if clusterer is None else None
    elif isinstance(method, str) and method.lower() != "labels":
        made = resolve(method, ["views", "labels"], of="fuse_views")
        direct = made() if issubclass(made, ViewMethod) else None
    if isinstance(direct, PSE) and kind is not None:
        direct.set_params(kind=kind)
    if view_weights is None:
        return direct
    if not isinstance(direct, PSE):
        raise InputError(
            Phrase("{view_weights} is a setting of PSE, and you asked for another method."),
            hint=Hint("leave out {method} and {clusterer}, or prepare the tables beforehand."),
        )
    return direct.set_params(view_weights=view_weights)


def _fitted(model: Any, table: Views, k: int, rng: np.random.RandomState) -> Any:
    """The method fitted to the views. What PSE found doubtful is in the diagnostics of the fusion."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DoubtfulWarning)
        return clone(model).set_params(n_clusters=k, random_state=int(rng.randint(2**31))).fit(table)


def _instances(table: Views, backend: Any, index_name: str | None) -> Partitions:
    """The instances of the views as a table without labels."""
    codes = np.empty((table.n_instances, 0), dtype=np.int32)
    empty = Partitions.of_rows(codes, (), (), index=table.index, views=())
    return replace(empty, backend=backend, index_name=index_name)


def _cluster_embeddings(
    model: PSE,
    table: Views,
    n_partitions: int,
    rng: np.random.RandomState,
    verbose: int,
    progress: Progress | None,
) -> Partitions:
    """Base clusterings of every view that has a say, from its soft embedding, to find their number by."""
    columns, names = [], []
    for v in _with_a_say(model.view_weights_, model.view_relations_).tolist():
        codes = np.full((table.n_instances, n_partitions), MISSING, dtype=np.int32)
        rows, f = model.embedded_view(v)
        for j, k in enumerate(rng.randint(_RANGE[0], _RANGE[1] + 1, n_partitions)):
            codes[rows, j] = quick_clusters(f, int(k), rng)
        columns.append(codes)
        names.append(table.names[v])
        _tell(table.names[v], len(rows), v, table.n_views, verbose, progress)
    return _base_table(names, columns, table.index)


def _with_a_say(weight: np.ndarray, relation: np.ndarray) -> np.ndarray:
    """The views by which clusters are counted.

    Those that share something with another. A view that shares nothing has clusters of its own, or none, and
    would add to the number or hide it. Where no two share anything, those of the largest weights.
    """
    related = (weight > 0) & (relation >= UNRELATED)
    return np.flatnonzero(related if related.any() else weight >= _MUCH * weight.max())


def _require_linked(views: Views) -> None:
    seen = views.observed.astype(float)
    n_groups, group = connected_components(seen.T @ seen > 0, directed=False)
    if n_groups > 1:
        first, other = (
            ", ".join(repr(name) for name, g in zip(views.names, group, strict=True) if (g == 0) == here)
            for here in (True, False)
        )
        raise InputError(
            f"no instance links the views {first} to {other}: their clusters cannot be matched.",
            hint="add a view or instances that both sides have, or cluster each side on its own.",
        )


def _cluster_views(
    views: Views,
    n_clusters: tuple[int, int],
    neighbours: ViewNeighbours,
    clusterer: Any,
    n_partitions: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
    verbose: int,
    progress: Progress | None,
) -> Partitions:
    """Base clusterings of every view; an instance that a view lacks has no labels there.

    All is drawn in an order of rows and views that follows from their values.
    """
    columns: dict[int, np.ndarray] = {}
    for v in neighbours.order[1].tolist():
        rows = neighbours.rows(v)
        few, many = (min(k, max(len(rows) - 1, 1)) for k in n_clusters)
        seed = int(rng.randint(2**31))
        if clusterer is neighbours:
            looks = neighbours.in_view(v).by_look
            parts = [
                graph_partitions(look.graph, (few, many), m, n_jobs=n_jobs, random_state=seed)
                for look, m in zip(looks, _split(n_partitions, len(looks)), strict=True)
                if m
            ]
            found = np.column_stack(parts)
        else:
            if not isinstance(
                clusterer, str
            ):  # it gets the table as it is, whose columns may be the instances
                rows = np.sort(rows)
            X = views.arrays[v][rows]
            if isinstance(clusterer, str):
                kind = kind_of(views, v)
                X = stored(X, kind)
                X = read(X, kind, views.scaling(v)).apply(X)[0]
            found = base_partitions(
                X, (few, many), n_partitions, method=clusterer, n_jobs=n_jobs, random_state=seed
            )
        codes = np.full((views.n_instances, found.shape[1]), MISSING, dtype=np.int32)
        codes[rows] = found
        _tell(views.names[v], len(rows), len(columns), views.n_views, verbose, progress)
        columns[v] = codes
    return _base_table(views.names, [columns[v] for v in range(views.n_views)], views.index)


def _base_table(views: Sequence[str], columns: list[np.ndarray], index: np.ndarray | None) -> Partitions:
    """Base clusterings of every view as one table."""
    codes = np.hstack(columns)
    names = [
        f"{name} {j + 1}" for name, part in zip(views, columns, strict=True) for j in range(part.shape[1])
    ]
    of_view = np.repeat(np.array(views, dtype=object), [part.shape[1] for part in columns]).tolist()
    categories = [np.arange(k + 1) for k in codes.max(axis=0)]
    return Partitions.of_rows(codes, categories, names, index=index, views=of_view).compact()


def _tell(name: str, n_rows: int, v: int, n_views: int, verbose: int, progress: Progress | None) -> None:
    if progress is not None:
        progress(f"clustered view {name}", v + 1, n_views)
    if verbose:
        tell(f"fuse_views: clustered view {name!r} ({n_rows} instances)")


def _split(n: int, parts: int) -> list[int]:
    """`n` as a sum of nearly equal numbers, the larger ones first."""
    return [n // parts + (part < n % parts) for part in range(parts)]


def _kind_of(views: Any, on: str | None) -> tuple[Any, str | None]:
    """The kind of frame that the views came in, in which tables go back, and the name of their ids."""
    tables = views.values() if isinstance(views, Mapping) else views
    tables = tables if isinstance(tables, list | tuple | ValuesView) else [tables]
    frames = [nw.from_native(table) for table in tables if nw.dependencies.is_into_dataframe(table)]
    return (frames[0].implementation.value, on) if frames else (None, None)
