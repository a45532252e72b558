"""Merge partial views: cluster each on the rows it has, and merge the partial labels."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from consilience import multiview
from consilience._sklearn import Interval, check_parameter, random_source
from consilience.fusion._neighbours import ViewNeighbours, scalings_of
from consilience.fusion.labels import (
    Progress,
    check_n_clusters,
    count_clusters,
    fuse_partitions,
    named_method,
    numbered_by_size,
)
from consilience.fusion.result import Fusion
from consilience.generate import base_partitions, graph_partitions
from consilience.multiview._views import ViewsMixin
from consilience.partitions import MISSING, Partitions
from consilience.views import Views, check_views

# Numbers of clusters of the base clusterings of a view, as multiples of the wanted one.
_FEWEST, _MOST = 0.6, 3.0
# The same where the number is to be found.
_RANGE = (2, 20)
# Base clusterings a view; fewer where there are many views, so that there are not many more than so many in
# all, and at least the last.
_A_VIEW, _IN_ALL, _FEWEST_A_VIEW = 20, 120, 5


def fuse_views(
    views: Any,
    n_clusters: int | Literal["auto"],
    *,
    mask: ArrayLike | None = None,
    on: str | None = None,
    clusterer: Any = "graph",
    n_partitions: int | None = None,
    method: Any = "auto",
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    progress: Progress | None = None,
) -> Fusion:
    """Cluster every view several times on the rows it has, and merge the partial labels.

    Parameters
    ----------
    views : list or dict of arrays, sparse matrices or frames
        Several feature tables about the same instances; an absent row is all NaN, or not in the frame. See
        :func:`consilience.check_views`. Sparse tables are read as counts of terms: they are weighted by
        inverse document frequency and scaled to unit rows. Dense columns are standardised; of tables of ten
        and more columns, half of the base clusterings see the rows as they are, scaled to unit length.
    n_clusters : int or "auto"
        The number of clusters, or "auto" to find it from a first round of base clusterings.
    mask : array-like of bool of shape (n_instances, n_views), optional
        True where an instance is present in a view.
    on : str, optional
        Column of ids by which frames are joined.
    clusterer : "graph", "kmeans" or a scikit-learn clusterer, default="graph"
        What clusters a view; see ``method`` of :func:`consilience.generate.base_partitions`. A clusterer
        gets the table as it is, dense or sparse.
    n_partitions : int, default=None
        Base clusterings a view. Each draws its number of clusters between .6 and 3 times `n_clusters`. None
        is 20, or fewer where there are more than six views: 120 in all, at least five a view.
    method : str or estimator, default="auto"
        What merges the labels, as in :func:`fuse`. Or the name of a method in :mod:`consilience.multiview`,
        or such an estimator: it clusters the views itself, and the base clusterings only tell how far to
        trust its answer.
    n_jobs : int or None, default=None
        Base clusterings made at once.
    random_state : int, RandomState or None, default=None
        One seed, one answer.
    verbose : int, default=0
        Whether to write a line to stderr for every view and every method tried.
    progress : callable, optional
        Called as ``progress(step, done, total)`` after every step, with what was done in words.

    Returns
    -------
    fusion : Fusion
        Labels, confidence and diagnostics; ``fusion.partitions`` holds the base clusterings, named after
        their views. ``fusion.predict`` places new instances by their features.

    Notes
    -----
    With ``clusterer="graph"``, merged labels get a last vote: each instance goes to the cluster with the
    largest share of its ten nearest neighbours, averaged over its views. Labels of base clusterings say in
    which part of a view an instance lies, neighbours say it more finely.

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
    direct = _view_method(method)
    if direct is None and not (isinstance(method, str) and method.lower() == "auto"):
        named_method(method, 1, "error", 0)  # a wrong name is an error before the views are clustered
    table = check_views(views, mask=mask, on=on)
    _require_linked(table)
    m = n_partitions or max(_FEWEST_A_VIEW, min(_A_VIEW, _IN_ALL // table.n_views))
    neighbours = ViewNeighbours().fit(table)
    by_graph = isinstance(clusterer, str) and clusterer == "graph"
    clusterer = neighbours if by_graph else clusterer
    count = None
    if n_clusters == "auto":
        first = _cluster_views(table, _RANGE, clusterer, m, n_jobs, rng, verbose, progress)
        count = count_clusters(Partitions.of(first, unobserved="keep"), rng)
    k = count.n_clusters if count is not None else int(n_clusters)
    ks = max(2, round(_FEWEST * k)), max(2, round(_MOST * k))
    columns = _cluster_views(table, ks, clusterer, m, n_jobs, rng, verbose, progress)
    partitions = _as_given(columns, views, table.index, on)
    if direct is not None:
        model = named_method(direct, k, "error", int(rng.randint(2**31))).fit(table)
        reason = "It was asked for; base clusterings of each view only tell how far to trust it."
        labels = numbered_by_size(model.labels_)
        return Fusion(labels, partitions, type(model).__name__, reason, model, (), count)
    # All base clusterings have the same range of numbers around the wanted one: agreement is a good guide.
    found = fuse_partitions(partitions, k, method, "error", rng, verbose, 0.0, progress)
    labels, reason = found.labels, found.reason
    if by_graph:
        labels = numbered_by_size(neighbours.vote(labels))
        reason += " Then each instance joined its nearest neighbours."
    return Fusion(labels, partitions, found.method, reason, found.model, found.candidates, count, neighbours)


def _view_method(method: Any) -> Any:
    """An estimator that takes the views themselves, if `method` is or names one."""
    if isinstance(method, ViewsMixin):
        return method
    rooms = {name.lower(): getattr(multiview, name) for name in multiview.__all__}
    return rooms[method.lower()]() if isinstance(method, str) and method.lower() in rooms else None


def _require_linked(views: Views) -> None:
    seen = views.observed.astype(float)
    n_groups, group = connected_components(seen.T @ seen > 0, directed=False)
    if n_groups > 1:
        first, other = (
            ", ".join(repr(name) for name, g in zip(views.names, group, strict=True) if (g == 0) == here)
            for here in (True, False)
        )
        raise ValueError(
            f"no instance links the views {first} to {other}: their clusters cannot be matched. "
            "Hint: add a view or instances that both sides have, or cluster each side on its own."
        )


def _cluster_views(
    views: Views,
    n_clusters: tuple[int, int],
    clusterer: Any,
    n_partitions: int,
    n_jobs: int | None,
    rng: np.random.RandomState,
    verbose: int,
    progress: Progress | None,
) -> dict[str, np.ndarray]:
    """Base clusterings of every view; an instance that a view lacks has no labels there."""
    columns: dict[str, np.ndarray] = {}
    for v, name in enumerate(views.names):
        rows, X = views.rows(v)
        few, many = (min(k, max(len(rows) - 1, 1)) for k in n_clusters)
        seed = int(rng.randint(2**31))
        if isinstance(clusterer, ViewNeighbours):
            looks = clusterer.in_view(v).looks
            parts = [
                graph_partitions(look.neighbours.graph, (few, many), m, n_jobs=n_jobs, random_state=seed)
                for look, m in zip(looks, _split(n_partitions, len(looks)), strict=True)
                if m
            ]
            found = np.column_stack(parts)
        else:
            X = scalings_of(X)[0].fit_transform(X) if isinstance(clusterer, str) else X
            found = base_partitions(
                X, (few, many), n_partitions, method=clusterer, n_jobs=n_jobs, random_state=seed
            )
        if progress is not None:
            progress(f"clustered view {name}", v + 1, views.n_views)
        for j, column in enumerate(found.T):
            columns[f"{name} {j + 1}"] = np.full(views.n_instances, MISSING)
            columns[f"{name} {j + 1}"][rows] = column
        if verbose:
            print(f"fuse_views: clustered view {name!r} ({len(rows)} instances)", file=sys.stderr)
    return columns


def _split(n: int, parts: int) -> list[int]:
    """`n` as a sum of nearly equal numbers, the larger ones first."""
    return [n // parts + (part < n % parts) for part in range(parts)]


def _as_given(
    columns: dict[str, np.ndarray], views: Any, ids: np.ndarray | None, on: str | None
) -> Partitions:
    """The base clusterings, in the kind of frame that the views came in, so that tables go back that way."""
    tables = (
        views.values()
        if isinstance(views, Mapping)
        else views
        if isinstance(views, list | tuple)
        else [views]
    )
    frames = [nw.from_native(table) for table in tables if nw.dependencies.is_into_dataframe(table)]
    if not frames or nw.dependencies.is_pandas_dataframe(frames[0].to_native()):
        return Partitions.of(columns, index=None if ids is None else list(ids), unobserved="keep")
    known = {} if ids is None else {str(on): ids}
    frame = nw.from_dict({**known, **columns}, backend=frames[0].implementation).to_native()
    return Partitions.of(frame, index=None if ids is None else on, unobserved="keep")
