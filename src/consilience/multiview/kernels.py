"""Base of the kernel methods: kernels from views, and clusters of new instances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted

from consilience._support.errors import InputError
from consilience._support.sklearn import StrOptions
from consilience._support.warnings import warn
from consilience.core.blocks import BLOCK_ROWS
from consilience.core.eigen import Eigenpairs
from consilience.core.kernels import (
    EXACT_ROWS,
    Fill,
    Kernel,
    fit_kernel,
    forget,
    leading_eigenvectors,
    project,
    represent,
    restrict,
    take_pairs,
)
from consilience.core.parameters import Count, NonNegative, Verbose, parameters
from consilience.evidence.views import Views, check_views, one_table
from consilience.multiview.base import EmbeddingMethod
from consilience.multiview.rows import RowClusters, cluster_rows, shares_by_distance, unit_rows

_FUNCTIONS = {"linear", "rbf", "poly", "cosine", "precomputed"}
KernelOrEmbedding = Annotated[Any, StrOptions(_FUNCTIONS | {"embedding"}), callable]
_ROUNDING = 1e-8  # relative; more than rounding errors, less than what is meant


@parameters
class KernelMethod(EmbeddingMethod):
    """Base of the methods that compare the rows of a view by a kernel, and so place new rows too.

    A method embeds the instances in ``_fuse``; k-means on the rows of the embedding gives the clusters.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "cosine", "precomputed"} or callable
        How the rows of a view are compared; see :class:`EEIMVC`.
    preprocessing : {"observed", "paper"}
        Kernels are centred and scaled by the rows that a view has, or by the complete data before `mask`
        hides rows, as in the published experiments.
    n_init : int
        Number of starts of the final k-means, of which the one of smallest inertia is kept.
    max_iter : int
        Limit of sweeps.
    tol : float
        Stop when the objective falls by less than this share.
    verbose : int
        Say the objective of every sweep, on stderr or by logging.
    random_state : int, RandomState instance or None
        Draws the starts of k-means, and landmarks where a view has too many rows for all pairs.

    Attributes
    ----------
    n_iter_ : int
        Number of sweeps.
    """

    precise = True  # whether kernels are held in double precision

    kernel: Annotated[Any, StrOptions(_FUNCTIONS), callable] = "rbf"
    preprocessing: Literal["observed", "paper"] = "observed"
    max_iter: Count = 100
    tol: NonNegative = 1e-4
    verbose: Verbose = 0

    def _fuse(self, kernels: list[Kernel], rng: np.random.RandomState) -> tuple[Any, list[np.ndarray]]:
        """A result with an ``embedding``, and per view what makes `represent` of a new row its embedding."""
        raise TypeError(f"{type(self).__name__} does not say how kernels are fused")

    def _solve(self, views: Views, rng: np.random.RandomState) -> Any:
        kernels = self._compare(views, rng)
        result, self._projections = self._fuse(kernels, rng)
        self._kernels = [forget(kernel) for kernel in kernels]
        return result

    def _cluster(self, result: Any, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        return cluster_embedding(result.embedding, self.n_clusters, n_init=self.n_init, rng=rng)

    def _learn(self, result: Any, views: Views, order: np.ndarray) -> None:
        self.embedding_ = result.embedding
        if self.kernel == "precomputed":  # no similarity says what another one is
            self._layout = self._layout._replace(tables=None)
        learned = {"weights": "view_weights_", "rotations": "rotations_", "imputed": "view_embeddings_"}
        for name, public in learned.items():
            if hasattr(result, name):
                setattr(self, public, getattr(result, name))

    def predict(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """Clusters of new instances from whatever views they have.

        Each view embeds the new rows by their similarities to the fitted ones; what the views say is put
        together as learned, and the nearest centre is taken.

        Parameters
        ----------
        X : list, tuple or dict of tables, one table, or Views
            The views of the new instances: a dict may leave views out, a list has None for them, and a row of
            NaN is absent. With ``kernel="precomputed"``, similarities to the fitted instances.
        mask : (n_new, n_views) array of bool, default=None
            False where the instance is absent from the view.
        """
        return self._nearest(self._embed(X, mask))

    def predict_proba(self, X: Any, *, mask: Any = None) -> np.ndarray:
        """Shares of the clusters for new instances, (n_new, n_clusters); rows sum to one.

        In proportion to one over the squared distance to their centres: they rank clusters and instances and
        are no chances. The largest is that of the cluster which `predict` gives.

        Parameters
        ----------
        X, mask
            As in `predict`.
        """
        return self._shares(self._embed(X, mask))

    def _embed(self, X: Any, mask: Any) -> np.ndarray:
        check_is_fitted(self)
        if self.kernel == "precomputed":
            X = _blank_new_columns(X, self.observed_, self.view_names_)
        new = self._read_new_views(X, mask)
        h = np.zeros((new.n_instances, self.embedding_.shape[1]))
        for v, (kernel, projection) in enumerate(zip(self._kernels, self._projections, strict=True)):
            rows, x = new.rows(v)
            for start in range(0, len(rows), BLOCK_ROWS):
                block = slice(start, start + BLOCK_ROWS)
                h[rows[block]] += represent(kernel, x[block]) @ projection
        return h

    def _nearest(self, h: np.ndarray) -> np.ndarray:
        return nearest(h, self._centers)

    def _shares(self, h: np.ndarray) -> np.ndarray:
        return shares_by_distance(unit_rows(h), self._centers)

    def _read_views(self, X: Any, mask: Any, kind: Any = None) -> Views:
        """Views whose arrays hold features, or all similarities as they were given.

        With ``preprocessing="paper"`` they are complete, and ``observed`` alone says what is absent.
        """
        if self.kernel == "precomputed":
            views = whole = _read_given(X, mask)
            lacking = [np.isnan(np.diag(k)).any() for k in whole.arrays]
        else:
            views = super()._read_views(X, mask, kind)
            if self.preprocessing == "observed":
                return views
            whole = check_views(one_table(X))
            lacking = [
                not seen.all() or whole.table(v) is not None for v, seen in enumerate(whole.observed.T)
            ]
        if self.preprocessing == "paper" and any(lacking):
            raise InputError(
                "preprocessing='paper' centres with all rows, but view "
                f"{views.names[lacking.index(True)]!r} lacks some.",
                hint=(
                    "it reproduces experiments in which complete data are hidden by mask=; for data that "
                    "are incomplete use preprocessing='observed'."
                ),
            )
        return replace(views, arrays=whole.arrays)

    def _constant_views(self, views: Views) -> list[int]:
        return []  # the kernels say so, whatever they compare

    def _compare(self, views: Views, rng: np.random.RandomState) -> list[Kernel]:
        """The kernel of every view, over the rows that it has."""
        n, kernels = views.n_instances, []
        for name, x, present in zip(views.names, views.arrays, views.observed.T, strict=True):
            seen = np.flatnonzero(present)
            if callable(self.kernel):
                self._check_pairs(len(seen), "A kernel function of your own")
            if self.kernel == "embedding" and x.shape[1] != self.n_clusters:
                raise InputError(
                    f"view {name!r} has {x.shape[1]} columns, but an embedding has one per cluster, here "
                    f"{self.n_clusters}.",
                    hint="give that many leading eigenvectors of each view.",
                )
            rows = seen if self.preprocessing == "observed" else np.arange(n)
            if self.kernel == "precomputed":
                x = _checked(name, take_pairs(x, rows), rows)
            elif len(rows) < n:
                x = x[rows]
            kernel = fit_kernel(x, rows, n, self.kernel, rng, precise=self.precise)
            kernels.append(kernel if self.preprocessing == "observed" else restrict(kernel, seen))
            if not kernels[-1].diagonal.any():
                warn(
                    f"view {name!r} tells no two instances apart and is ignored.",
                    hint="leave this view out, or check that its rows differ.",
                )
        return kernels

    def _check_pairs(self, n: int, what: str) -> None:
        """Refuse work on all pairs of more instances than fit."""
        if n > EXACT_ROWS:
            raise InputError(
                f"{what} of {type(self).__name__} needs all pairs of instances and takes at most "
                f"{EXACT_ROWS} of them, got {n}.",
                hint="use EEIMVC, or another setting.",
            )


class Base(NamedTuple):
    """What one view says by itself: an embedding of its rows (absent ones zero), and of new rows."""

    h: np.ndarray  # (n, k)
    values: np.ndarray  # (k,), the eigenvalues: how much of the view each column says
    projection: np.ndarray  # h of a new row x is represent(kernel, x) @ projection


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


def nearest(h: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The nearest centre of each row, rows taken at length one."""
    return pairwise_distances_argmin(unit_rows(h), centers)


# --- kernels that are given --------------------------------------------------------------------------


def _read_given(X: Any, mask: Any) -> Views:
    """Square tables of similarities. Who has no similarity to itself is absent, whatever its column says."""
    if isinstance(X, Views):
        mask = X.observed if mask is None else X.observed & np.asarray(mask)
        X = dict(zip(X.names, X.arrays, strict=True))
    tables, rebuild = _tables(X)
    squares = [_square(v, table) for v, table in enumerate(tables)]
    # Names, mask and sizes are read from the self-similarities; the tables are too large to be copied.
    views = check_views(rebuild([np.diag(k)[:, None] for k in squares]), mask=mask)
    return replace(views, arrays=tuple(squares))


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
        raise InputError(
            f"a precomputed kernel is square, but view {v} is {shape}.",
            hint="give similarities of all pairs of instances, or name a kernel for features.",
        )
    return k


def _checked(name: str, k: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Similarities of `rows` that can be those of a kernel."""
    probe = np.random.RandomState(0).standard_normal(len(k))
    there, back, mean = k @ probe, probe @ k, np.full(len(k), 1.0 / len(k)) @ k
    if not np.isfinite(there).all():
        p, q = np.argwhere(~np.isfinite(k))[0]
        raise InputError(
            f"view {name!r} has no finite similarity of rows {rows[p]} and {rows[q]}, both of which are "
            "present.",
            hint="fill it in, or hide one of them by a row of NaN or by mask=",
        )
    own = np.diag(k)
    size = float(np.abs(own).max())
    if np.abs(there - back).max() > _ROUNDING * size * len(k):
        p, q = np.unravel_index(np.abs(k - k.T).argmax(), k.shape)
        raise InputError(
            f"view {name!r} is not symmetric: its rows {rows[p]} and {rows[q]} differ.",
            hint="average it with its transpose.",
        )
    own = own - 2.0 * mean + mean.mean()
    if own.min() < -_ROUNDING * size:
        raise InputError(
            f"view {name!r} is not a kernel: after centring, row {rows[own.argmin()]} has the negative "
            f"similarity {own.min():.3g} to itself.",
            hint=(
                "a kernel is positive semidefinite; similarities that are not can be made so by adding a "
                "constant to the diagonal."
            ),
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
