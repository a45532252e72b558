"""What the kernel methods share at their door: kernels from views, and clusters of new instances."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, NoReturn

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from consilience._sklearn import StrOptions
from consilience.core.blocks import BLOCK_ROWS
from consilience.core.eigen import Eigenpairs
from consilience.core.kernels import (
    EXACT_ROWS,
    Fill,
    Kernel,
    fit_kernel,
    leading_eigenvectors,
    project,
    represent,
    restrict,
    take_pairs,
)
from consilience.multiview._views import RowClusters, cluster_rows, one_table, unit_rows
from consilience.views import Views, check_views

FUNCTIONS = {"linear", "rbf", "poly", "cosine", "precomputed"}
KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions(FUNCTIONS), callable],
    "preprocessing": [StrOptions({"observed", "paper"})],
}
_ROUNDING = 1e-8  # relative; more than rounding errors, less than what is meant


@cache
def _thread_pools() -> ThreadpoolController:
    # Looking for the pools of all libraries takes as long as a small fit; those used here are loaded by now.
    return ThreadpoolController()


def one_thread() -> Any:
    """A context in which BLAS runs in one thread: small factorisations are slower in several."""
    return _thread_pools().limit(limits=1)


class Base(NamedTuple):
    """What one view says by itself: an embedding of its rows (absent ones zero), and of new rows."""

    h: np.ndarray  # (n, k)
    values: np.ndarray  # (k,), the eigenvalues: how much of the view each column says
    projection: np.ndarray  # h of a new row x is represent(kernel, x) @ projection


def read_kernels(
    estimator: Any, X: Any, mask: Any, rng: np.random.RandomState, *, precise: bool = True
) -> list[Kernel]:
    """Read the views of an estimator and compare their rows, as its `kernel` and `preprocessing` say."""
    read = _read_given if estimator.kernel == "precomputed" else _read_features
    kernels = read(estimator, X, mask, rng, precise)
    for name, kernel in zip(estimator.view_names_, kernels, strict=True):
        if not kernel.diagonal.any():
            warnings.warn(
                f"view {name!r} tells no two instances apart and is ignored. "
                "Hint: leave this view out, or check that its rows differ.",
                stacklevel=3,
            )
    return kernels


def _read_features(
    estimator: Any, X: Any, mask: Any, rng: np.random.RandomState, precise: bool
) -> list[Kernel]:
    views = estimator._read_views(X, mask)
    n, function = views.n_instances, estimator.kernel
    for name, width, seen in zip(views.names, views.n_features, views.observed.T, strict=True):
        if function == "embedding" and width != estimator.n_clusters:
            raise ValueError(
                f"view {name!r} has {width} columns, but an embedding has one per cluster, here "
                f"{estimator.n_clusters}. Hint: give that many leading eigenvectors of each view."
            )
        if callable(function):
            check_exact(estimator, int(seen.sum()), "A kernel function of your own")
    if estimator.preprocessing == "observed":
        parts = [views.rows(v) for v in range(views.n_views)]
        return [fit_kernel(x, rows, n, function, rng, precise=precise) for rows, x in parts]
    whole = check_views(one_table(X))
    if not whole.is_complete:
        _refuse_absent(whole.names[int((~whole.observed).any(axis=0).argmax())])
    fitted = [fit_kernel(x, np.arange(n), n, function, rng, precise=precise) for x in whole.arrays]
    return [
        restrict(kernel, np.flatnonzero(seen)) for kernel, seen in zip(fitted, views.observed.T, strict=True)
    ]


def base_embeddings(kernels: list[Kernel], k: int) -> list[Base]:
    """The leading eigenvectors of every view; a ready embedding is taken as it is."""
    bases = []
    for kernel in kernels:
        if kernel.factor is not None and kernel.origin.similarity.kernel == "embedding":
            bases.append(Base(kernel.factor.values, np.ones(k), np.eye(k)))
        else:
            found = leading_eigenvectors([kernel], k, precise=False)
            bases.append(Base(found.vectors, found.values, extension(kernel, found)))
    return bases


def extension(kernel: Kernel, found: Eigenpairs, fill: Fill | None = None) -> np.ndarray:
    """The projection that continues eigenvectors of a sum of kernels to new rows of this one."""
    inverse = np.where(found.values > 0, 1.0 / np.maximum(found.values, np.finfo(float).tiny), 0.0)
    return project(kernel, found.vectors * inverse, fill)


def cluster_embedding(
    h: np.ndarray, n_clusters: int, *, n_init: int, rng: np.random.RandomState
) -> RowClusters:
    """k-means on rows of length one: of `n_init` starts, the one with the smallest inertia."""
    return cluster_rows(unit_rows(h), n_clusters, n_init=n_init, rng=rng)


def embed_new(estimator: Any, X: Any, mask: Any) -> np.ndarray:
    """New instances in the space of the consensus: the sum of what the views that they have say."""
    check_is_fitted(estimator)
    if estimator.kernel == "precomputed":
        X = _blank_new_columns(X, estimator.observed_, estimator.view_names_)
    new = estimator._read_new_views(X, mask)
    out = np.zeros((new.n_instances, estimator.embedding_.shape[1]))
    for v, (kernel, projection) in enumerate(zip(estimator._kernels, estimator._projections, strict=True)):
        rows, x = new.rows(v)
        for start in range(0, len(rows), BLOCK_ROWS):
            block = slice(start, start + BLOCK_ROWS)
            out[rows[block]] += represent(kernel, x[block]) @ projection
    return out


def nearest(h: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The nearest centre of each row, rows taken at length one."""
    return pairwise_distances_argmin(unit_rows(h), centers)


def check_exact(estimator: Any, n: int, what: str) -> None:
    """Refuse work on all pairs of more instances than fit."""
    if n > EXACT_ROWS:
        raise ValueError(
            f"{what} of {type(estimator).__name__} needs all pairs of instances and takes at most "
            f"{EXACT_ROWS} of them, got {n}. Hint: use EEIMVC, or another setting."
        )


# --- kernels that are given --------------------------------------------------------------------------


def _read_given(estimator: Any, X: Any, mask: Any, rng: np.random.RandomState, precise: bool) -> list[Kernel]:
    """Square tables of similarities. Who has no similarity to itself is absent, whatever its column says."""
    if isinstance(X, Views):
        mask = X.observed if mask is None else X.observed & np.asarray(mask)
        X = dict(zip(X.names, X.arrays, strict=True))
    tables, rebuild = _tables(X)
    squares = [_square(v, table) for v, table in enumerate(tables)]
    # The door reads names, mask and sizes from the self-similarities; the tables are too large to be copied.
    views = estimator._read_views(rebuild([np.diag(k)[:, None] for k in squares]), mask)
    n = views.n_instances
    estimator.n_features_per_view_ = (n,) * views.n_views
    estimator.n_features_in_ = n * views.n_views
    everyone, kernels = np.arange(n), []
    for name, k, seen in zip(views.names, squares, views.observed.T, strict=True):
        rows = np.flatnonzero(seen)
        if estimator.preprocessing == "observed":
            block = _checked(name, take_pairs(k, rows), rows)
            kernels.append(fit_kernel(block, rows, n, "precomputed", rng, precise=precise))
        else:
            if np.isnan(np.diag(k)).any():
                _refuse_absent(name)
            block = _checked(name, k.copy(), everyone)
            whole = fit_kernel(block, everyone, n, "precomputed", rng, precise=precise)
            kernels.append(restrict(whole, rows))
    return kernels


def _tables(X: Any) -> tuple[list[Any], Any]:
    """The tables of X, and a function that puts others in their place."""
    if isinstance(X, Mapping) and not sparse.issparse(X):
        return list(X.values()), lambda tables: dict(zip(X, tables, strict=True))
    if isinstance(X, list | tuple) and any(np.ndim(table) == 2 or sparse.issparse(table) for table in X):
        return list(X), list
    return [X], lambda tables: tables[0]


def _square(v: int, table: Any) -> np.ndarray:
    k = np.asarray(table.toarray() if sparse.issparse(table) else table, dtype=float)
    if k.ndim != 2 or k.shape[0] != k.shape[1]:
        shape = " x ".join(map(str, k.shape))
        raise ValueError(
            f"a precomputed kernel is square, but view {v} is {shape}. Hint: give similarities of all pairs "
            "of instances, or name a kernel for features."
        )
    return k


def _checked(name: str, k: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Similarities of `rows` that can be those of a kernel."""
    probe = np.random.RandomState(0).standard_normal(len(k))
    there, back, mean = k @ probe, probe @ k, np.full(len(k), 1.0 / len(k)) @ k
    if not np.isfinite(there).all():
        p, q = np.argwhere(~np.isfinite(k))[0]
        raise ValueError(
            f"view {name!r} has no finite similarity of rows {rows[p]} and {rows[q]}, both of which are "
            "present. Hint: fill it in, or hide one of them by a row of NaN or by mask="
        )
    own = np.diag(k)
    size = float(np.abs(own).max())
    if np.abs(there - back).max() > _ROUNDING * size * len(k):
        p, q = np.unravel_index(np.abs(k - k.T).argmax(), k.shape)
        raise ValueError(
            f"view {name!r} is not symmetric: its rows {rows[p]} and {rows[q]} differ. "
            "Hint: average it with its transpose."
        )
    own = own - 2.0 * mean + mean.mean()
    if own.min() < -_ROUNDING * size:
        raise ValueError(
            f"view {name!r} is not a kernel: after centring, row {rows[own.argmin()]} has the negative "
            f"similarity {own.min():.3g} to itself. Hint: a kernel is positive semidefinite; similarities "
            "that are not can be made so by adding a constant to the diagonal."
        )
    return k


def _blank_new_columns(X: Any, observed: np.ndarray, names: tuple[str, ...]) -> Any:
    """Similarities to instances that were absent as zeros: they were not fitted."""
    if isinstance(X, Views):
        return X
    tables, rebuild = _tables(X)
    keys = [str(key) for key in X] if isinstance(X, Mapping) else list(names)
    out: list[Any] = []
    for key, table in zip(keys, tables, strict=False):
        if table is None or key not in names:
            out.append(table)
            continue
        k = np.array(table, dtype=float)
        if k.ndim == 2 and k.shape[1] == len(observed):
            blank = np.isnan(k).all(axis=1)
            k[:, ~observed[:, names.index(key)]] = 0.0
            k[blank] = np.nan
        out.append(k)
    return rebuild(out + tables[len(out) :])


def _refuse_absent(name: str) -> NoReturn:
    raise ValueError(
        f"preprocessing='paper' centres with all rows, but view {name!r} lacks some. Hint: it reproduces "
        "experiments in which complete data are hidden by mask=; for data that are incomplete use "
        "preprocessing='observed'."
    )
