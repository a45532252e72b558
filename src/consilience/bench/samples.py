"""What a method is given: one data set, with one pattern of gaps, from one seed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import MinMaxScaler, StandardScaler, normalize

from consilience import datasets
from consilience.bench.experiment import Data, Experiment
from consilience.generate import base_partitions
from consilience.missing import drop_labels, drop_views

GAUSSIANS = "two_gaussians"  # drawn anew from every seed
BUILT_IN = ("digits", "digits_views", GAUSSIANS)  # need no file


class Sample(NamedTuple):
    """Input, true classes and number of clusters; base clusterings where there are any."""

    input: Any
    y: np.ndarray
    n_clusters: int
    mask: np.ndarray | None = None  # of views
    base: np.ndarray | None = None  # what is scored as the mean base clustering


def make_sample(experiment: Experiment, data: Data, missing: float, seed: int) -> Sample:
    """The same for the same seed, whatever method it is for."""
    found = _loaded(data.file, seed if data.file == GAUSSIANS else 0)
    y = np.asarray(found.y)
    k = data.n_clusters or len(np.unique(y))
    if found.kind == "pool":
        return _from_pool(experiment, data, found, y, k, missing, seed)
    if experiment.input == "views":
        return _from_views(experiment, data, found, y, k, missing, seed)
    if found.kind == "views":
        labels = _clustered_views(experiment, data, found, k, seed)
        return Sample(labels, y, k, base=labels)
    X = scaled(found.X, data.rows)
    if data.max_rows is not None and data.max_rows < len(y):
        rows = np.sort(np.random.default_rng(seed).choice(len(y), data.max_rows, replace=False))
        X, y = X[rows], y[rows]
    base = experiment.base
    # As published: every base clustering runs on the instances it sees.
    labels = base_partitions(
        X,
        base.n_clusters or k,
        base.clusterings,
        method=base.method,
        init=base.init,
        max_iter=base.max_iter,
        subsample=1.0 - missing,
        cover=False,
        random_state=seed,
    )
    return Sample(X if experiment.input == "features" else labels, y, k, base=labels)


def scaled(X: Any, rows: str) -> Any:
    """Features as a paper scaled them."""
    if rows == "tfidf":
        return TfidfTransformer().fit_transform(sparse.csr_matrix(X))
    if rows == "minmax_unit":
        X = MinMaxScaler().fit_transform(np.asarray(X, dtype=float))
    if rows == "zscore_unit":
        X = StandardScaler().fit_transform(np.asarray(X, dtype=float))
    return X if rows == "raw" else normalize(X)


def filled(labels: np.ndarray, seed: int) -> np.ndarray:
    """Every missing label replaced by a cluster of its base clustering, drawn at random."""
    rng = np.random.default_rng(seed)
    known = [np.unique(column[column >= 0]) for column in labels.T]
    drawn = [rng.choice(clusters, len(labels)) for clusters in known]  # clusters are equally likely
    return np.where(labels < 0, np.column_stack(drawn), labels)


def one_hot(labels: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Base clusterings as views: a table of indicators each, and who is in it."""
    seen = labels >= 0
    tables = [np.eye(column.max() + 1)[np.maximum(column, 0)] for column in labels.T]
    return tables, seen


@lru_cache(maxsize=4)
def _loaded(name: str, seed: int = 0) -> datasets.Dataset:
    built_in = {
        "digits": datasets.load_digits,
        "digits_views": datasets.load_digits_views,
        GAUSSIANS: lambda: datasets.make_partial_views(random_state=seed),
    }
    return built_in[name]() if name in built_in else datasets.load(name)


def _from_pool(
    experiment: Experiment, data: Data, pool: Any, y: np.ndarray, k: int, missing: float, seed: int
) -> Sample:
    rng = np.random.default_rng(seed)
    m = experiment.base.clusterings
    if data.columns is not None:
        labels = pool.labels[:, seed * data.columns : (seed + 1) * data.columns]
    else:
        labels = pool.labels[:, np.sort(rng.choice(pool.labels.shape[1], m, replace=False))]
    rows = np.arange(len(y))
    if data.max_rows is not None and data.max_rows < len(y):
        rows = np.sort(rng.choice(len(y), data.max_rows, replace=False))
    labels, y = labels[rows], y[rows]
    if missing > 0 and data.at is None:
        labels = drop_labels(
            labels, missing, mechanism=cast(Any, experiment.protocol), keep_seen=False, random_state=seed
        )
    return Sample(labels, y, k, base=labels)


def _clustered_views(experiment: Experiment, data: Data, found: Any, k: int, seed: int) -> np.ndarray:
    """Base clusterings of the views in turn, each on the instances that its view has."""
    base, n_views = experiment.base, len(found.views)
    columns = []
    for j in range(base.clusterings):
        view = j % n_views
        rows = np.flatnonzero(found.observed[:, view])
        X = scaled(found.views[view][rows], data.rows)
        column = np.full(len(found.y), -1)
        column[rows] = base_partitions(
            X,
            base.n_clusters or k,
            1,
            method=base.method,
            init=base.init,
            max_iter=base.max_iter,
            random_state=1000 * seed + j,
        )[:, 0]
        columns.append(column)
    return np.column_stack(columns)


def _from_views(
    experiment: Experiment, data: Data, found: Any, y: np.ndarray, k: int, missing: float, seed: int
) -> Sample:
    tables = list(found.kernels if found.kind == "kernels" else found.views)
    tables = tables if data.views is None else [tables[v] for v in data.views]
    if found.kind != "kernels":
        tables = [scaled(table, data.rows) for table in tables]
    seen = getattr(found, "observed", None)
    if seen is not None and not seen.all():  # incomplete by nature
        seen = seen if data.views is None else seen[:, list(data.views)]
        kept = seen.any(axis=1)
        return Sample([table[kept] for table in tables], y[kept], k, seen[kept])
    if not missing:
        return Sample(tables, y, k)
    patterns = _loaded(data.patterns).patterns if data.patterns is not None else found.patterns
    if patterns:
        mask = patterns[len(tables)][round(10 * missing) - 1, seed]
    else:
        mask = drop_views(
            (len(y), len(tables)), missing, protocol=cast(Any, experiment.protocol), y=y, random_state=seed
        )
    return Sample(tables, y, k, mask)
