"""Adaptive consensus of multiple k-means (ACMK): base clusterings that learn from their own consensus."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import validate_data

from consilience._support.errors import InputError
from consilience._support.sklearn import Clusterer, fit_context, random_source
from consilience._support.talk import tell
from consilience._support.threads import one_thread
from consilience._support.warnings import warn
from consilience.core.eigen import leading_eigenpairs
from consilience.core.grouping import largest_first
from consilience.core.parameters import Count, Positive, Seed, Verbose, parameters
from consilience.features import _acmk_admm as dense
from consilience.features import _acmk_sparse as sparse
from consilience.features._acmk_endings import filtered, final_labels
from consilience.generate import base_partitions
from consilience.registry import About

# n x n matrices of float64 that the dense solver holds at its peak, as measured.
_DENSE_MATRICES = 45
# Gigabytes that it may take where none are named: if it is asked for, about 1000 instances; if the choice is
# ours, about 190, some seconds, beyond which the sparse one is better on average.
_MEMORY = {"admm": 0.4, "auto": 0.013}
# Tables with more columns than rows are rotated into as few columns as rows; beyond this many rows the
# rotation costs more than it saves.
_ROTATE_ROWS = 5_000
# Wide sparse tables beyond this many entries when dense become the leading singular vectors instead.
_DENSE_ENTRIES, _SINGULAR = 2**25, 256


def coordinates(X: Any, rng: np.random.RandomState) -> np.ndarray:
    """The table as a dense one of few columns, centred, with rows of mean squared length one.

    Distances are all that counts, so a table with more columns than rows is rotated into as many columns as
    it has rows, exactly. Wide sparse tables of many rows keep their leading singular vectors.
    """
    n, d = X.shape
    if not sp.issparse(X):
        x = X
    elif n * d <= _DENSE_ENTRIES:
        x = X.toarray()
    elif n <= _ROTATE_ROWS:
        x = _rotated((X @ X.T).toarray())
    else:
        left, values, _ = randomized_svd(X, _SINGULAR, random_state=rng)
        x = left * values
    x = x - x.mean(axis=0)
    if x.shape[1] > n and n <= _ROTATE_ROWS:
        x = _rotated(x @ x.T)
    scale = float(np.sqrt(np.einsum("pd,pd->", x, x) / n))
    return x / scale if scale > 0 else np.zeros((n, 1))


def _rotated(gram: np.ndarray) -> np.ndarray:
    """Rows with the given inner products, in no more columns than needed."""
    values, vectors = leading_eigenpairs(gram, len(gram))
    kept = values > 1e-12 * values[0]
    return vectors[:, kept] * np.sqrt(values[kept])


# The weight of the fusion term, chosen over several data sets together; see the method page.
_LAM = 0.01


@parameters
class ACMK(Clusterer):
    """Adaptive consensus of multiple k-means: one clustering of a table of features.

    Runs k-means many times, builds a graph from what the runs agree on, smooths the table along the graph,
    and lets every run improve on the smoothed table. The answer is k-means of the smoothed table or a
    normalised cut of the graph. Use it where k-means is the natural tool but depends on its start, or where
    clusters are not round: faces, digits, text. Prefer plain k-means when its runs agree, and a label method
    such as :class:`PCE` when base clusterings are given or instances are missing from them.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, of the k-means runs and of the consensus.
    n_partitions : int, default=10
        Number of k-means runs.
    order : int, default=3
        Order k of the filter: how many steps along the graph the smoothing reaches.
    filter : {"power", "polynomial"}, default="power"
        The k-th power of the filter, or the sum of its first k powers, which smooths less.
    lam : float, default=0.01
        How closely the graph follows what the runs agree on. From 1 upwards the runs hardly change. Only
        for the dense solver; the sparse one is the limit of large `lam` on pairs of neighbours.
    final : {"kmeans", "spectral"}, default="kmeans"
        k-means of the smoothed table (ACMK-KM), or a normalised cut of the graph (ACMK-SC). Both start at
        the consensus of the runs. The cut is slower beyond some ten thousand instances, and better on most
        data sets that were tried.
    solver : {"auto", "admm", "sparse"}, default="auto"
        - "admm": as published, on graphs of all pairs. Memory and time grow with the square of the
          instances.
        - "sparse": the graph on pairs of neighbours only. Much faster, and better on average; time and
          memory are nearly linear in the instances.
        - "auto": "admm" where it fits in `memory_limit`, "sparse" otherwise. `solver_` says which.
    refine : bool, default=True
        Let the runs improve. False keeps them and takes their plain mean co-association as the graph: with
        ``final="spectral"``, ACMK-Fix.
    n_neighbors : int, default=7
        Neighbours of an instance in the sparse solver.
    memory_limit : float or None, default=None
        Gigabytes that the dense solver may use: four times as much for twice as many instances. None stands
        for 0.4 if ``solver="admm"``, about 1000 instances, and for 0.013 if ``solver="auto"``: up to about
        190 instances it takes some seconds, and beyond it is behind the sparse one.
    max_iter : int, default=20
        Outer steps of the dense solver, which runs all of them, as published. The sparse one takes at most
        three and stops when hardly any label moves.
    n_jobs : int, default=None
        Number of k-means runs made at once.
    verbose : int, default=0
        Say the objective of every step, on stderr or by logging.
    random_state : int, RandomState instance or None, default=None
        Draws the starts of all k-means and the cells in which the neighbours of many instances are searched.

    Attributes
    ----------
    labels_ : ndarray of shape (n_instances,)
        Cluster of every instance; 0 is the largest cluster.
    base_labels_ : ndarray of shape (n_instances, n_partitions)
        The k-means runs after refinement.
    initial_base_labels_ : ndarray of shape (n_instances, n_partitions)
        The k-means runs as they were made.
    base_weights_ : ndarray of shape (n_partitions,)
        The weight alpha of every run in the graph; they sum to one.
    graph_ : ndarray or sparse array of shape (n_instances, n_instances)
        The graph W: symmetric, entries between 0 and 1. Sparse for ``solver_ == "sparse"``.
    embedding_ : ndarray of shape (n_instances, n_columns)
        The smoothed table, centred and scaled. Where it has fewer columns than the input, it is rotated:
        only distances are kept.
    solver_ : {"admm", "sparse"}
        The solver that was used.
    objective_ : ndarray of shape (n_iter,)
        The objective after every step; for the dense solver the split one that it minimises.
    rebuilt_objective_ : ndarray of shape (n_iter,)
        Dense solver only: the objective with the filter that belongs to the graph.
    gap_ : ndarray of shape (n_iter,)
        Dense solver only: the distance between the two filters. It is not zero when the solver ends.
    n_clusters_ : int
        Number of clusters found; below `n_clusters` only where there are fewer distinct rows.
    n_iter_ : int
        Number of steps.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where a frame was given.

    Notes
    -----
    Where this differs from the paper: the table is centred and scaled to rows of mean squared length one, so
    that shifting or scaling all features changes nothing and `lam` means the same everywhere; Eqs. (9)
    and (13) are corrected (a transposed cross term, a missing factor two); the box 0 <= W <= 1 is put on the
    symmetric copy of the graph, where it is a projection, instead of on the graph itself; the filter starts
    at the one that belongs to the first graph; the k-means of either ending starts at the consensus of the
    refined runs instead of at random. The sparse solver is not in the paper.

    The dense solver does not converge within 20 steps: the split objective falls for some steps and rises
    again as the penalty grows, the filter and the graph still disagree (`gap_`), and the objective with the
    graph's own filter is several times the split one.

    Cost: "admm" takes about 40 evaluations of n^2 (6 k d + 20) operations an outer step and some 45 n x n
    matrices; "sparse" rows x features x (2 x order x n_neighbors + bases x clusters) operations a step.

    References
    ----------
    P. Zhou, L. Du, X. Li: Adaptive Consensus Clustering for Multiple K-means via Base Results Refining. IEEE
    TKDE.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from consilience import ACMK
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ACMK(n_clusters=10, final="spectral", random_state=0).fit(X)
    >>> model.solver_
    'sparse'
    >>> from consilience.metrics import matched_accuracy_score
    >>> before = [matched_accuracy_score(y, labels) for labels in model.initial_base_labels_.T]
    >>> bool(matched_accuracy_score(y, model.labels_) > sum(before) / len(before))
    True
    """

    about = About(
        use="k-means is natural, but its runs disagree",
        avoid="base clusterings are given; features are missing",
        cost="about twice its k-means runs at 1e5 instances",
        paper="Zhou, Du, Li: Adaptive Consensus Clustering for Multiple K-means. IEEE TKDE.",
        featured=True,
        start=True,
    )

    n_clusters: Count = field(default=8, kw_only=False)
    n_partitions: Count = 10
    order: Count = 3
    filter: Literal["power", "polynomial"] = "power"
    lam: Positive = _LAM
    final: Literal["kmeans", "spectral"] = "kmeans"
    solver: Literal["auto", "admm", "sparse"] = "auto"
    refine: bool = True
    n_neighbors: Count = 7
    memory_limit: Positive | None = None
    max_iter: Count = 20
    n_jobs: int | None = None
    verbose: Verbose = 0
    random_state: Seed = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> ACMK:
        """Cluster a table of features.

        Parameters
        ----------
        X : (n_instances, n_features) array, sparse matrix or frame
            The table, without missing values.
        y : ignored
            There for scikit-learn's interface.
        """
        _refuse_text(X)
        X = validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, ensure_min_samples=1
        )
        _refuse_missing(X)
        self.solver_ = self._choose_solver(X.shape[0])
        rng = random_source(self.random_state)
        base = base_partitions(X, self.n_clusters, self.n_partitions, n_jobs=self.n_jobs, random_state=rng)
        c = self._feasible_clusters(base)
        # One thread: the same answer whatever the threads, and small products do not gain from more.
        with one_thread():
            order, x, found = self._solve(coordinates(X, rng), base, rng)
            z = filtered(found.graph, x, self.order, self.filter == "polynomial")
            labels = final_labels(self.final, z, found.graph, found.codes, found.weights, c, rng)
        back = np.argsort(order)
        by_size = largest_first(labels, c)
        self.labels_ = np.argsort(by_size)[labels[back]]
        self.n_clusters_ = c
        self.initial_base_labels_ = base
        self.base_labels_ = found.codes[back]
        self.base_weights_ = found.weights
        self.embedding_ = z[back]
        self.objective_ = found.objective
        self.n_iter_ = found.n_iter
        if isinstance(found, dense.ADMMResult):
            self.graph_: Any = found.graph
            self.rebuilt_objective_ = found.rebuilt_objective
            self.gap_ = found.gap
        else:
            self.graph_ = sparse.as_given(found.graph, order)
        return self

    def _choose_solver(self, n: int) -> str:
        if self.solver == "sparse":
            return "sparse"
        needed = _DENSE_MATRICES * 8e-9 * n * n
        limit = self.memory_limit or _MEMORY[self.solver]
        if needed <= limit:
            return "admm"
        if self.solver == "admm":
            raise InputError(
                f"solver='admm' needs about {needed:.1f} GB for {n} instances, memory_limit is {limit:g} GB.",
                hint="raise memory_limit, or use solver='sparse', whose memory is linear in the instances.",
            )
        if self.lam != _LAM:
            # Otherwise there is nothing to be surprised about: the solver is in `solver_`.
            warn(
                f"{n} instances are too many for the dense solver within memory_limit={limit:g} GB: "
                f"solver='sparse' is used, which has no lam ({self.lam:g} was set).",
                hint=f"raise memory_limit to {1.01 * needed:.3g}, or set solver='sparse'.",
            )
        return "sparse"

    def _feasible_clusters(self, base: np.ndarray) -> int:
        # k-means finds fewer clusters than asked for only where there are fewer distinct rows.
        found = int(base.max()) + 1
        if found < self.n_clusters:
            warn(
                f"only {found} distinct rows for n_clusters={self.n_clusters}: {found} clusters are "
                "returned.",
                ConvergenceWarning,
                hint="equal rows cannot be told apart; lower n_clusters.",
            )
        return found

    def _solve(
        self, x: np.ndarray, base: np.ndarray, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray, dense.ADMMResult | sparse.SparseResult]:
        """An order of the rows, the table in that order, and what was learned from it."""
        common: dict[str, Any] = {
            "order": self.order,
            "cumulative": self.filter == "polynomial",
            "refine": self.refine,
            "max_iter": self.max_iter,
            "progress": self._progress if self.verbose else None,
        }
        if self.solver_ == "admm":
            return np.arange(len(x)), x, dense.acmk_admm(x, base, lam=self.lam, **common)
        x = sparse.precise_enough(x)
        order, support = sparse.neighbour_pairs(x, self.n_neighbors, rng)
        return order, x[order], sparse.acmk_sparse(x[order], base[order], support, **common)

    def _progress(self, iteration: int, objective: float) -> None:
        tell(f"ACMK iteration {iteration}: objective {objective:.6g}")


def _refuse_text(X: Any) -> None:
    if isinstance(X, np.ndarray) and X.dtype.kind in "SU" and X.size:
        raise InputError(
            f"X holds text, such as {str(X.flat[0])!r}.",
            hint="ACMK clusters features, which are numbers; merge labels with fuse or PCE.",
        )


def _refuse_missing(X: Any) -> None:
    values = X.data if sp.issparse(X) else X
    if np.isfinite(values.sum()) or np.isfinite(values).all():
        return
    if sp.issparse(X):
        place = int(np.flatnonzero(~np.isfinite(X.data))[0])
        row, column = int(np.searchsorted(X.indptr, place, side="right")) - 1, int(X.indices[place])
    else:
        row, column = (int(part[0]) for part in np.nonzero(~np.isfinite(X)))
    raise InputError(
        f"X has NaN or infinity in row {row}, column {column}.",
        hint="ACMK needs complete features; fill them in, or leave the row or the column out.",
    )
