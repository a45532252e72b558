"""Two to eight sources, each with its own number of clusters, as users have them.

Four families, each in two halves of other data sets. A: views of a real set, each clustered at a number of
its own. B: annotators of planted classes who err, merge and split; in B2 they share confusions or some are
useless. C: several resolutions of one clustering and one or two sources that are independent of it, in C2
graph clusterings of other views. D: columns of a table, a category a cluster.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, ward
from sklearn import datasets as builtin
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler, normalize

from benchmarks.record.design import Table
from consilience import Partitions, datasets
from consilience.generate import base_partitions

NOT_SOURCES = {"animal", "Manufacturer", "Model", "Make", "Id"}  # names and numbers of instances
CLASSES = {
    "zoo": "type",
    "penguins": "species",
    "glass": "Type",
    "Cars93": "Type",
    "pima2": "diabetes",
    "breastcancer": "Class",
    "oils": "class",
    "vehicle": "Class",
    "credit_data": "Status",
}
MOST_VALUES = 10  # of a column that is not cut into bins
ATTEMPTS = 100


def drawn(table: Table, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Classes and base labels, -1 where a source did not see an instance; everybody is seen by one."""
    make = {"A": _views, "B": _annotators, "C": _resolutions, "D": _columns}[table.group[0]]
    for _ in range(ATTEMPTS):
        y, base = make(table, rng)
        seen = (base >= 0).any(axis=1)
        y, base = y[seen], base[seen]
        told = [len(np.unique(column[column >= 0])) > 1 for column in base.T]
        if all(told) and len(np.unique(y)) > 1 and len(Partitions.of(base).base_groups) == 1:
            return y, base
    raise ValueError(f"No {table.bases} linked sources of {table.data} were found.")


def unseen(n: int, table: Table, rng: np.random.Generator) -> np.ndarray:
    """Which instances each source lacks: a share of its own, up to twice that of the table."""
    lacks = rng.random((n, table.bases)) < rng.uniform(0.0, 2.0 * table.missing, table.bases)
    alone = np.flatnonzero(lacks.all(axis=1))
    lacks[alone, rng.integers(0, table.bases, len(alone))] = False
    return lacks


def around(k: int, rng: np.random.Generator, most: float = 2.0) -> int:
    """A number of clusters from half of `k` to `most` times as many, at least two."""
    return max(2, round(k * 2.0 ** rng.uniform(-1.0, np.log2(most))))


# A ---------------------------------------------------------------------------------------------------------


def _views(table: Table, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Each source has a view of its own, and clusters what it has of it, by k-means or by a graph."""
    y, views = _view_set(table, rng)
    lacks = unseen(len(y), table, rng)
    base = np.full(lacks.shape, -1)
    for column, view in enumerate(rng.permutation(len(views))[: table.bases]):
        rows = np.flatnonzero(~lacks[:, column])
        k = around(len(np.unique(y)), rng)
        how = "graph" if rng.random() < 0.5 else "kmeans"
        base[rows, column] = _clustered(views[view][rows], k, how, rng)
    return y, base


def _view_set(table: Table, rng: np.random.Generator) -> tuple[np.ndarray, list[Any]]:
    data = _loaded(f"mv_{table.data}")
    rows = np.sort(rng.permutation(len(data.y))[: table.rows])
    return data.y[rows], [_scaled(view)[rows] for view in data.views]


def _clustered(X: Any, k: int, how: str, rng: np.random.Generator) -> np.ndarray:
    seed = int(rng.integers(2**31))
    if how == "graph":
        return base_partitions(X, k, 1, method="graph", max_iter=100, random_state=seed)[:, 0]
    return KMeans(k, n_init=3, random_state=seed).fit_predict(X)


def _scaled(X: Any) -> Any:
    """Text as unit rows of tf-idf, measurements as z-scores."""
    if sp.issparse(X):
        return normalize(sp.csr_array(TfidfTransformer().fit_transform(X)))
    return StandardScaler().fit_transform(X)


@lru_cache(maxsize=4)
def _loaded(name: str) -> Any:
    return datasets.load(name)


# B ---------------------------------------------------------------------------------------------------------


def _annotators(table: Table, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Each annotator is right of 50 to 90 %, and merges classes, splits them, or leaves them as they are."""
    n = min(table.rows, int(rng.integers(200, 1001)))
    k = int({"few classes": rng.integers(3, 6), "many classes": rng.integers(8, 13)}.get(
        table.data, rng.integers(4, 9)
    ))  # fmt: skip
    sizes = 0.75 ** np.arange(k) if table.data == "unequal classes" or rng.random() < 0.3 else np.ones(k)
    y = rng.choice(k, n, p=sizes / sizes.sum())
    y[:k] = np.arange(k)
    neighbour = (np.arange(k) + 1) % k  # of which a shared confusion takes a class for
    hard = rng.random(n) < 0.2  # instances of which sources that share confusions are wrong together
    shared = "confus" in table.data
    n_useless = int(rng.integers(1, 1 + max(1, table.bases // 3))) if "useless" in table.data else 0
    n_useless = min(n_useless, table.bases - 1)
    part = rng.integers(0, 2, n)  # every class has two parts, which those who split know
    columns = []
    for j in range(table.bases):
        if j < n_useless:
            columns.append(rng.integers(0, around(k, rng), n))
            continue
        wrong = rng.random(n) < rng.uniform(0.1, 0.5)
        other = rng.integers(0, k, n)
        if shared:
            wrong |= hard & (rng.random(n) < 0.7)
            other = np.where(hard | (rng.random(n) < 0.5), neighbour[y], other)
        columns.append(_seen_through(np.where(wrong, other, y), part, k, rng))
    base = np.column_stack(columns)
    return y, np.where(unseen(n, table, rng), -1, base)


def _seen_through(column: np.ndarray, part: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Classes merged, split in two, or as they are."""
    what = rng.integers(0, 3)
    if what == 0:
        return column
    if what == 1:
        merged = rng.integers(0, int(rng.integers(max(2, k // 2), k + 1)), k)
        merged[:2] = 0, 1  # never all of them
        return merged[column]
    splits = rng.random(k) < rng.uniform(0.3, 1.0)
    return column + k * (splits[column] & (part == 1))


# C ---------------------------------------------------------------------------------------------------------


def _resolutions(table: Table, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One clustering at several numbers, and one or two sources that are independent of it."""
    n_others = 1 if table.bases < 4 else int(rng.integers(1, 3))
    n_resolutions = table.bases - n_others
    if table.group == "C1":
        y, X = _features(table, rng)
        k = len(np.unique(y))
        half = rng.permutation(X.shape[1])
        tree = ward(X[:, half[::2]])
        columns = [fcluster(tree, around(k, rng, 3.0), "maxclust") for _ in range(n_resolutions)]
        for other in range(n_others):
            columns.append(
                KMeans(around(k, rng), n_init=3, random_state=int(rng.integers(2**31))).fit_predict(
                    X[:, half[1::2]]
                )
                if other == 1 or rng.random() < 0.5
                else _annotation(y, rng)
            )
    else:
        y, views = _view_set(table, rng)
        k, order = len(np.unique(y)), rng.permutation(len(views))
        order = order[np.arange(1 + n_others) % len(order)]
        columns = [
            _clustered(views[order[0]], around(k, rng, 3.0), "graph", rng) for _ in range(n_resolutions)
        ]
        columns += [_clustered(views[view], around(k, rng), "graph", rng) for view in order[1:]]
    base = np.column_stack(columns)
    return y, np.where(unseen(len(y), table, rng), -1, base)


def _annotation(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Somebody who is right of 60 to 90 %, and may merge or split classes."""
    k = int(y.max()) + 1
    wrong = rng.random(len(y)) < rng.uniform(0.1, 0.4)
    return _seen_through(np.where(wrong, rng.integers(0, k, len(y)), y), rng.integers(0, 2, len(y)), k, rng)


def _features(table: Table, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    data = _loaded(table.data)
    rows = np.sort(rng.permutation(len(data.y))[: table.rows])
    y = np.unique(data.y[rows], return_inverse=True)[1]
    X = _scaled(data.X)[rows]
    if X.shape[1] > 60:
        X = TruncatedSVD(60, random_state=0).fit_transform(X)
    return y, X


# D ---------------------------------------------------------------------------------------------------------


def _columns(table: Table, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Columns as sources; numbers are cut into two to six bins of about equal size."""
    y, frame = _read(table.data)
    rows = np.sort(rng.permutation(len(y))[: table.rows])
    y, frame = y[rows], frame.iloc[rows]
    usable = [name for name in frame if frame[name].nunique() > 1]
    names = rng.permutation(usable)[: table.bases]
    base = np.column_stack([_as_labels(frame[name], int(rng.integers(2, 7))) for name in names])
    return y, np.where(unseen(len(y), table, rng)[:, : base.shape[1]], -1, base)


def _as_labels(column: pd.Series, n_bins: int) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(column) and column.nunique() > MOST_VALUES:
        column = pd.qcut(column, n_bins, labels=False, duplicates="drop")
    return np.asarray(pd.factorize(column, sort=True)[0])


@lru_cache(maxsize=4)
def _read(name: str) -> tuple[np.ndarray, pd.DataFrame]:
    if name not in CLASSES:
        loaded: Any = getattr(builtin, f"load_{name}")(as_frame=True)
        return np.asarray(loaded.target), loaded.data
    folder = Path(os.environ.get("CONSILIENCE_DATA") or datasets.cache_folder())
    path = folder / "tables" / f"{name}.csv"
    frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    frame = frame[frame[CLASSES[name]].notna()]
    y = pd.factorize(frame[CLASSES[name]], sort=True)[0]
    return np.asarray(y), frame.drop(columns=[CLASSES[name], *NOT_SOURCES & set(frame.columns)])
