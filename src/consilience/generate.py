"""Make base partitions: many quick, different clusterings of one table.

An ensemble needs its members to differ more than it needs each of them to converge, so the defaults
are cheap: k-means from random starts, stopped after a few steps.
"""

import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field
from numbers import Integral, Real
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize
from sklearn.utils import Tags, check_array, get_tags
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted, validate_data

from consilience._support.errors import Hint, InputError, Phrase
from consilience._support.sklearn import (
    HasMethods,
    Interval,
    StrOptions,
    Transformer,
    check_parameter,
    fit_context,
    random_source,
)
from consilience._support.talk import tell
from consilience._support.threads import one_thread
from consilience._support.warnings import warn
from consilience.core.anchors import graph_eigenpairs
from consilience.core.graphs import neighbour_graph
from consilience.core.parameters import Count, Seed, Verbose, parameters

__all__ = ["SPECTRAL_BANDWIDTHS", "BasePartitions", "base_partitions", "graph_partitions"]

#: Widths of the Gaussian kernel, as multiples of the mean distance between two instances.
SPECTRAL_BANDWIDTHS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 50.0, 100.0)

_DENSE_EIGEN_LIMIT = 1_000  # above it LAPACK's n^3 costs more than a few products with a block of vectors
_N_NEIGHBOURS = 10  # of the graph method
_ON_VECTORS = "vectors"  # the graph method on eigenvectors that are already there
_METHODS = {"kmeans", "graph", "spectral"}
_SPECTRAL_LIMIT = 20_000  # the kernel is n x n: 3.2 GB of float64 here, for every job that runs at once


_Made = TypeVar("_Made")


class _Plan(NamedTuple):
    """Everything that one base clustering needs to know, drawn before any of them runs."""

    seed: int
    n_clusters: int | None
    sample: NDArray[np.intp] | None  # None: all instances
    bandwidth: float  # of the spectral method


def base_partitions(
    X: Any,
    n_clusters: int | tuple[int, int] | None,
    n_partitions: int = 10,
    *,
    method: Any = "kmeans",
    init: str = "random",
    max_iter: int = 20,
    subsample: float = 1.0,
    cover: bool = True,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> NDArray[np.int32]:
    r"""Cluster one table many times.

    Parameters
    ----------
    X : (n_instances, n_features) array, sparse matrix or frame
        The table, without missing values.
    n_clusters : int, (int, int) or None
        The number of clusters of every base clustering; or a range, both ends included, from which each
        of them draws its own; or None, only with a scikit-learn clusterer, to leave it as the clusterer
        has it.
    n_partitions : int, default=10
        The number of base clusterings.
    method : {"kmeans", "graph", "spectral"} or scikit-learn clusterer, default="kmeans"
        - "kmeans": one start each, at most `max_iter` Lloyd steps.
        - "graph": such a k-means on the leading eigenvectors, rows scaled to length one, of a graph of 10
          nearest neighbours with locally scaled weights [2]_. It finds clusters that are not round. The
          graph is sparse and made once, so it takes 100 000 instances in minutes; above 20 000 instances,
          neighbours are looked for in 50 dimensions.
        - "spectral": normalised spectral clustering with the Gaussian kernel
          :math:`e^{-\|x_i - x_j\|^2 / 2\sigma^2}`, where :math:`\sigma` goes through the nine
          ``SPECTRAL_BANDWIDTHS`` in turn, each times the mean distance between the instances seen [1]_.
          Nine base clusterings use each of them once. The extremes are weak on purpose. It needs a kernel
          of (instances seen)^2 numbers for every job, so it refuses more than 20 000 instances.
        - a clusterer such as ``AgglomerativeClustering()`` or a pipeline that ends in one: each base
          clustering is a clone, with its ``n_clusters`` and ``random_state`` set where it has them. What
          it labels as noise (-1) stays -1.
    init : {"random", "k-means++"}, default="random"
        The start of k-means. Random starts differ more.
    max_iter : int, default=20
        The most Lloyd steps of k-means.
    subsample : float, default=1.0
        The share of instances that each base clustering sees. The others are -1.
    cover : bool, default=True
        Whether every instance must be seen by at least one base clustering. The samples keep their exact
        size: an instance that no sample has takes the place of one that several have. Where
        `n_partitions` samples are too small to cover all, they grow as much as needed, with a warning.
    n_jobs : int, default=None
        The number of base clusterings made at once, as in joblib. Each runs on one thread, so that the
        answer depends on the seed alone: use `n_jobs` to occupy more cores. Starting the processes takes
        a few seconds once, so it pays for large tables and slow methods.
    random_state : int, RandomState or None, default=None
        One seed gives one answer, whatever `n_jobs` is. None draws a new one and leaves NumPy's global
        random state alone.
    verbose : int, default=0
        Whether to say after each base clustering that it is done, on stderr or by logging.

    Returns
    -------
    labels : (n_instances, n_partitions) int32 array
        In each column 0, 1, ... without gaps; -1 where the base clustering did not see the instance or
        called it noise. A column can have fewer clusters than asked for, for instance when the table has
        fewer distinct rows.

    References
    ----------
    .. [1] P. Zhou, L. Du, X. Liu, Y.-D. Shen, M. Fan, X. Li, "Self-paced clustering ensemble", IEEE
       Transactions on Neural Networks and Learning Systems, 2021.
    .. [2] L. Zelnik-Manor, P. Perona, "Self-tuning spectral clustering", NIPS, 2004.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from consilience.generate import base_partitions
    >>> X, _ = make_blobs(1000, centers=10, random_state=0)
    >>> labels = base_partitions(X, 10, 8, subsample=0.4, random_state=0)
    >>> labels.shape
    (1000, 8)
    >>> (labels >= 0).mean(axis=0).round(3)
    array([0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4])
    >>> bool((labels >= 0).any(axis=1).all())
    True
    """
    low, high = _check_parameters(n_clusters, n_partitions, method, init, max_iter, subsample)
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
    size = _sample_size(X.shape[0], n_partitions, subsample, cover)
    _check_size(size, high, method)

    plans = _plan(X.shape[0], n_partitions, low, high, size, cover, random_source(random_state))
    if isinstance(method, str) and method == "graph" and size == X.shape[0]:
        # All base clusterings see the same instances, so they share one embedding.
        X, method = _graph_vectors(X, _most_clusters(plans), plans[0].seed), _ON_VECTORS
    return _all_bases(X, plans, method, init, max_iter, n_jobs, verbose)


@parameters
class BasePartitions(Transformer):
    """Cluster one table many times, and place new rows in the same clusters: base clusterings for a pipeline.

    The clusterers are kept. `transform` lets each of them place every row it is given, the rows it was fitted
    to among them, so `fit_transform` and `transform` of the same table are the same table of labels, and a
    pipeline that ends in a label method predicts what it fitted. So, unlike in :func:`base_partitions`, there
    are no gaps where `subsample` is below one: a clusterer learns from its sample and places everybody.

    Parameters
    ----------
    n_clusters : int, (int, int) or None
        The number of clusters of every base clustering; or a range, both ends included, from which each
        of them draws its own; or None, only with a scikit-learn clusterer, to leave it as the clusterer has
        it.
    n_partitions : int
        The number of base clusterings.
    method : {"kmeans", "graph", "spectral"} or scikit-learn clusterer
        As in :func:`base_partitions`. What cannot place new rows ("graph", "spectral", clusterers without
        `predict`) puts a row where the nearest row that it saw is, and keeps its sample for that.
    init : {"random", "k-means++"}
        The start of k-means. Random starts differ more.
    max_iter : int
        The most Lloyd steps of k-means.
    subsample : float
        The share of the rows that each clusterer learns from.
    cover : bool
        Whether every row must be in at least one sample.
    n_jobs : int or None
        The number of clusterers fitted at once, as in joblib.
    random_state : int, RandomState instance or None
        One seed gives one answer, whatever `n_jobs` is.
    verbose : int
        Whether to say after each base clustering that it is done.

    Attributes
    ----------
    clusterers_ : list
        What places rows, one for each base clustering.
    clusters_ : list of ndarray
        The labels that each of them gave the fitted rows. Those are the clusters that there are: a new row
        for which a clusterer has another answer, or noise, gets -1, which is missing.
    n_iter_ : int
        The most steps that a clusterer took, as far as they say.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where a frame was given.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.pipeline import make_pipeline
    >>> from consilience import PCE
    >>> from consilience.generate import BasePartitions
    >>> X, _ = make_blobs(500, centers=4, random_state=0)
    >>> model = make_pipeline(BasePartitions(6, random_state=0), PCE(4, random_state=0))
    >>> labels = model.fit_predict(X[:400])
    >>> bool((model.predict(X[:400]) == labels).all())
    True
    >>> model.predict(X[400:]).shape
    (100,)
    """

    n_clusters: Annotated[Any, Interval(Integral, 1, None, closed="left"), tuple, list, None] = field(
        default=8, kw_only=False
    )
    n_partitions: Count = field(default=10, kw_only=False)
    method: Annotated[Any, StrOptions(_METHODS), HasMethods(["fit_predict", "get_params"])] = "kmeans"
    init: Literal["random", "k-means++"] = "random"
    max_iter: Count = 20
    subsample: Annotated[float, Interval(Real, 0, 1, closed="right")] = 1.0
    cover: bool = True
    n_jobs: Annotated[int | None, Integral, None] = None
    random_state: Seed = None
    verbose: Verbose = 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the clusterers.

        Parameters
        ----------
        X : (n_instances, n_features) array, sparse matrix or frame
            The table, without missing values.
        y : ignored
            There for scikit-learn's interface.
        """
        self.fit_transform(X)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.int32]:
        """Fit the clusterers and let them place the rows; as `fit` and then `transform`.

        Parameters
        ----------
        X : (n_instances, n_features) array, sparse matrix or frame
            The table, without missing values.
        y : ignored
            There for scikit-learn's interface.
        """
        given = self.n_clusters, self.n_partitions, self.method, self.init, self.max_iter, self.subsample
        low, high = _check_parameters(*given, "BasePartitions")
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        n = X.shape[0]
        if high is not None and high > n:
            raise InputError(
                Phrase("n_samples={n} should be >= {n_clusters=}.", n=n, n_clusters=high),
                hint=Hint("lower {n_clusters}, or check that instances are rows."),
            )
        size = _sample_size(n, self.n_partitions, self.subsample, self.cover)
        _check_size(size, high, self.method)
        plans = _plan(n, self.n_partitions, low, high, size, self.cover, random_source(self.random_state))
        vectors = None
        if isinstance(self.method, str) and self.method == "graph" and size == n:
            vectors = _graph_vectors(X, _most_clusters(plans), plans[0].seed)
        fit = delayed(_fit_one)
        found = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            fit(X, plan, self.method, self.init, self.max_iter, vectors) for plan in plans
        )
        self.clusterers_ = list(_reported(found, len(plans), "BasePartitions") if self.verbose else found)
        self.n_iter_ = max(int(getattr(clusterer, "n_iter_", 1)) for clusterer in self.clusterers_)
        columns = self._place(X)
        self.clusters_ = [np.unique(column[column >= 0]) for column in columns]
        return self._codes(columns)

    def transform(self, X: Any) -> NDArray[np.int32]:
        """Labels of the rows, (n_instances, n_partitions); -1 where a clusterer has none.

        Parameters
        ----------
        X : (n_instances, n_features) array, sparse matrix or frame
            Rows with the features that were fitted.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return self._codes(self._place(X))

    def _place(self, X: Any) -> list[NDArray[Any]]:
        with one_thread():  # the same answer whatever the threads
            return [np.asarray(clusterer.predict(X)) for clusterer in self.clusterers_]

    def _codes(self, columns: list[NDArray[Any]]) -> NDArray[np.int32]:
        """Numbers without gaps of the clusters that fitted rows are in."""
        codes = np.full((len(columns[0]), len(columns)), -1, dtype=np.int32)
        for i, (column, known) in enumerate(zip(columns, self.clusters_, strict=True)):
            place = np.searchsorted(known, column)
            there = place < len(known)
            there[there] = known[place[there]] == column[there]
            codes[there, i] = place[there]
        return codes

    @property
    def _n_features_out(self) -> int:
        return len(self.clusterers_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = isinstance(self.method, str) or get_tags(self.method).input_tags.sparse
        tags.transformer_tags.preserves_dtype = []
        return tags


def graph_partitions(
    graph: Any,
    n_clusters: int | tuple[int, int],
    n_partitions: int = 10,
    *,
    max_iter: int = 20,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> NDArray[np.int32]:
    """Cluster the nodes of one graph many times: `base_partitions` with "graph", on a graph of your own.

    Parameters
    ----------
    graph : (n_instances, n_instances) sparse matrix
        Weights of the links: symmetric, without negative entries.
    n_clusters : int or (int, int)
        As in :func:`base_partitions`.
    n_partitions : int, default=10
        The number of base clusterings.
    max_iter : int, default=20
        The most Lloyd steps of k-means on the leading eigenvectors.
    n_jobs : int, default=None
        The number of base clusterings made at once, as in joblib.
    random_state : int, RandomState or None, default=None
        One seed, one answer.
    verbose : int, default=0
        Whether to say after each base clustering that it is done, on stderr or by logging.

    Returns
    -------
    labels : (n_instances, n_partitions) int32 array
        As in :func:`base_partitions`, without missing entries.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from consilience.generate import graph_partitions
    >>> two_cliques = sp.block_diag([[[0, 1, 1], [1, 0, 1], [1, 1, 0]]] * 2, format="csr")
    >>> labels = graph_partitions(two_cliques, 2, 3, random_state=0)
    >>> (labels[:3] == labels[0]).all() and (labels[3:] == labels[3]).all()
    np.True_
    """
    low, high = _check_parameters(
        n_clusters, n_partitions, "graph", "random", max_iter, 1.0, "graph_partitions"
    )
    graph = check_array(graph, accept_sparse="csr", dtype=np.float64, input_name="graph")
    n = graph.shape[0]
    if graph.shape[1] != n or graph.min() < 0 or abs(graph - graph.T).max() > 1e-8 * graph.max():
        raise InputError(
            f"graph must be a symmetric matrix without negative weights. Got one of shape {graph.shape}.",
            hint="graph.maximum(graph.T) links two nodes if either links to the other",
        )
    _check_size(n, high, "graph")
    plans = _plan(n, n_partitions, low, high, n, True, random_source(random_state))
    vectors = graph_eigenpairs(sp.csr_array(graph), _most_clusters(plans)).vectors
    return _all_bases(vectors, plans, _ON_VECTORS, "random", max_iter, n_jobs, verbose)


def _all_bases(
    X: Any, plans: list[_Plan], method: Any, init: str, max_iter: int, n_jobs: int | None, verbose: int
) -> NDArray[np.int32]:
    cluster = delayed(_one_base)
    columns = Parallel(n_jobs=n_jobs, return_as="generator")(
        cluster(X, plan, method, init, max_iter) for plan in plans
    )
    if verbose:
        columns = _reported(columns, len(plans), "base_partitions")
    return np.column_stack(list(columns))


def _most_clusters(plans: list[_Plan]) -> int:
    return max(plan.n_clusters or 1 for plan in plans)


# --- plans: all that is random about the ensemble as a whole -----------------------------------------


def _plan(
    n: int, m: int, low: int | None, high: int | None, size: int, cover: bool, random: np.random.RandomState
) -> list[_Plan]:
    seeds = random.randint(np.iinfo(np.int32).max, size=m).tolist()
    # A generator per base: its k and its sample do not depend on how many other bases there are.
    generators = [np.random.default_rng(seed) for seed in seeds]
    ks = [None if low is None or high is None else int(g.integers(low, high + 1)) for g in generators]
    samples: list[NDArray[np.intp] | None] = [None] * m
    if size < n:
        seen = np.zeros((n, m), dtype=bool)
        for column, generator in enumerate(generators):
            seen[generator.choice(n, size, replace=False), column] = True
        if cover:
            _cover(seen, np.random.default_rng(random.randint(np.iinfo(np.int32).max)))
        samples = [np.flatnonzero(column) for column in seen.T]
    widths = [SPECTRAL_BANDWIDTHS[i % len(SPECTRAL_BANDWIDTHS)] for i in range(m)]
    return [_Plan(*plan) for plan in zip(seeds, ks, samples, widths, strict=True)]


def _cover(seen: NDArray[np.bool_], rng: np.random.Generator) -> None:
    """Let every unseen instance replace, in a random base, one that other bases see too. In place.

    It ends because the samples together have at least n places: while an instance is unseen, another
    one is seen twice. Column sums never change.
    """
    times_seen = seen.sum(axis=1)
    unseen = rng.permutation(np.flatnonzero(times_seen == 0))
    share = -(-len(unseen) // seen.shape[1])  # spread them over the bases
    while len(unseen):
        for column in rng.permutation(seen.shape[1]):
            spare = np.flatnonzero(seen[:, column] & (times_seen > 1))
            n_swaps = min(share, len(spare), len(unseen))
            leaving = rng.choice(spare, n_swaps, replace=False)
            entering, unseen = unseen[:n_swaps], unseen[n_swaps:]
            seen[leaving, column] = False
            seen[entering, column] = True
            times_seen[leaving] -= 1
            times_seen[entering] += 1


def _sample_size(n: int, m: int, subsample: float, cover: bool) -> int:
    size = max(1, int(subsample * n + 0.5))
    needed = -(-n // m)
    if not cover or size >= needed:
        return size
    warn(
        f"{m} samples of {size} instances cannot cover {n} instances: each base clustering sees {needed}.",
        hint="raise subsample or n_partitions, or pass cover=False",
    )
    return needed


# --- one base clustering -----------------------------------------------------------------------------


def _one_base(X: Any, plan: _Plan, method: Any, init: str, max_iter: int) -> NDArray[np.int32]:
    part = X if plan.sample is None else X[plan.sample]
    with _quietly_on_one_thread():
        labels = _cluster(part, plan, method, init, max_iter)[0]
    codes = np.full(X.shape[0], -1, dtype=np.int32)
    codes[slice(None) if plan.sample is None else plan.sample] = _contiguous(np.asarray(labels))
    return codes


def _fit_one(X: Any, plan: _Plan, method: Any, init: str, max_iter: int, vectors: Any) -> Any:
    """What places rows: the clusterer, or the nearest of the rows that it saw."""
    part = X if plan.sample is None else X[plan.sample]
    with _quietly_on_one_thread():
        if vectors is not None:
            labels, model = _cluster(vectors, plan, _ON_VECTORS, init, max_iter)
        else:
            labels, model = _cluster(part, plan, method, init, max_iter)
        return KNeighborsClassifier(1).fit(part, labels) if model is None else model


@contextmanager
def _quietly_on_one_thread() -> Iterator[None]:
    # One thread: sums over threads are added in the order in which threads finish, and a last bit can
    # move an instance to another cluster.
    with one_thread(), warnings.catch_warnings():
        # k-means says so when there are fewer distinct rows than clusters; the codes show it anyway.
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _cluster(part: Any, plan: _Plan, method: Any, init: str, max_iter: int) -> tuple[NDArray[Any], Any]:
    """Labels, and the clusterer if it can place new rows of the same table."""
    if not isinstance(method, str):
        model = _configured(method, plan)
        labels = model.fit_predict(part)
        return labels, model if hasattr(model, "predict") else None
    if method == "kmeans":
        model = _kmeans(part, plan, init, max_iter)
        return model.labels_, model
    if method == "spectral":
        return _spectral(part, plan), None
    k = plan.n_clusters or 1
    vectors = part if method == _ON_VECTORS else _graph_vectors(part, k, plan.seed)
    return _kmeans(normalize(vectors[:, :k]), plan, init, max_iter).labels_, None


def _kmeans(X: Any, plan: _Plan, init: str, max_iter: int) -> Any:
    model = KMeans(plan.n_clusters, init=init, n_init=1, max_iter=max_iter, random_state=plan.seed)
    return model.fit(X)


def _spectral(X: Any, plan: _Plan) -> NDArray[Any]:
    """Ng, Jordan and Weiss: rows of the leading eigenvectors, on the sphere, then k-means."""
    affinity = _normalised_kernel(X, plan.bandwidth)
    vectors = _leading_eigenvectors(affinity, plan.n_clusters or 1, plan.seed)
    model = KMeans(plan.n_clusters, n_init=10, random_state=plan.seed)
    return model.fit(normalize(vectors)).labels_


def _graph_vectors(X: Any, k: int, seed: int) -> NDArray[np.float64]:
    return graph_eigenpairs(neighbour_graph(X, _N_NEIGHBOURS, seed), k).vectors


def _normalised_kernel(X: Any, bandwidth: float) -> NDArray[np.float64]:
    squares = euclidean_distances(X, squared=True).astype(np.float64, copy=False)
    n = len(squares)
    mean = sum(np.sqrt(row).sum() for row in squares) / max(n * (n - 1), 1)  # by rows: no second n x n
    sigma = bandwidth * (mean or 1.0)  # all instances equal: any width gives the same kernel
    kernel = np.exp(np.divide(squares, -2 * sigma**2, out=squares), out=squares)
    root = np.sqrt(kernel.sum(axis=1))  # at least 1: every instance is similar to itself
    kernel /= root
    kernel /= root[:, None]
    return kernel


def _leading_eigenvectors(affinity: NDArray[np.float64], k: int, seed: int) -> NDArray[np.float64]:
    n = len(affinity)
    if n <= max(_DENSE_EIGEN_LIMIT, 4 * k):
        # All of them, then the last k: asked for k only, LAPACK can return fewer where many are equal.
        return eigh(affinity, driver="evd")[1][:, n - k :]
    # The kernel has no negative eigenvalue, so its singular vectors are its eigenvectors. A block method
    # finds all copies of a repeated eigenvalue (one per well-separated cluster); Lanczos can miss some.
    return randomized_svd(affinity, k, n_iter=10, power_iteration_normalizer="QR", random_state=seed)[0]


def _configured(clusterer: Any, plan: _Plan) -> Any:
    """A clone with its number of clusters and its seed set, also inside a pipeline."""
    model = clone(clusterer)
    values = {"n_clusters": plan.n_clusters, "random_state": plan.seed}
    model.set_params(
        **{
            name: values[last]
            for name in model.get_params(deep=True)
            if (last := name.rpartition("__")[2]) in values and values[last] is not None
        }
    )
    return model


def _contiguous(labels: NDArray[Any]) -> NDArray[np.int32]:
    codes = np.full(len(labels), -1, dtype=np.int32)
    labelled = labels >= 0
    codes[labelled] = np.unique(labels[labelled], return_inverse=True)[1]
    return codes


def _reported(made: Iterable[_Made], m: int, what: str) -> Iterator[_Made]:
    start = time.perf_counter()
    for done, one in enumerate(made, start=1):
        seconds = time.perf_counter() - start
        tell(f"{what}: {done} of {m} after {seconds:.1f} s")
        yield one


# --- checks ------------------------------------------------------------------------------------------

_POSITIVE_INT = Interval(Integral, 1, None, closed="left")


def _check_parameters(
    n_clusters: Any,
    n_partitions: Any,
    method: Any,
    init: Any,
    max_iter: Any,
    subsample: Any,
    function: str = "base_partitions",
) -> tuple[int | None, int | None]:
    """The range of the number of clusters; (None, None) if the clusterer decides."""
    share = Interval(Real, 0, 1, closed="right")
    check_parameter("n_partitions", n_partitions, _POSITIVE_INT, function, hint="use 10 to 20")
    check_parameter("max_iter", max_iter, _POSITIVE_INT, function, hint="20 steps are enough for an ensemble")
    check_parameter(
        "subsample",
        subsample,
        share,
        function,
        hint="0.4 lets each base clustering see 40 % of the instances",
    )
    check_parameter(
        "init", init, StrOptions({"random", "k-means++"}), function, hint="random starts differ more"
    )
    _check_method(method, function)
    if n_clusters is None and not isinstance(method, str):
        return None, None
    low, high = (
        n_clusters if isinstance(n_clusters, tuple | list) and len(n_clusters) == 2 else [n_clusters] * 2
    )
    if not (_POSITIVE_INT.is_satisfied_by(low) and _POSITIVE_INT.is_satisfied_by(high) and low <= high):
        accepted = f"{_POSITIVE_INT} or a range (low, high) of such integers with low <= high"
        hint = "use (2, 10) to let each base clustering draw its own number"
        _refuse("n_clusters", accepted, n_clusters, hint, function)
    return int(low), int(high)


def _check_method(method: Any, function: str) -> None:
    if isinstance(method, str):
        if method in _METHODS:
            return
    elif not isinstance(method, type) and hasattr(method, "fit_predict") and hasattr(method, "get_params"):
        return
    accepted = "a str among {'kmeans', 'graph', 'spectral'} or an instance of a scikit-learn clusterer"
    hint = "an instance is written with brackets, as in AgglomerativeClustering()"
    _refuse("method", accepted, method, hint, function)


def _check_size(size: int, k: int | None, method: Any) -> None:
    if k is not None and k > size:
        raise InputError(
            Phrase(
                "{n_clusters=} is more than the {n} instances that each base clustering sees.",
                n_clusters=k,
                n=size,
            ),
            hint=Hint("lower {n_clusters} or raise subsample"),
        )
    if isinstance(method, str) and method == "spectral" and size > _SPECTRAL_LIMIT:
        raise InputError(
            f"method='spectral' needs a kernel of {size} x {size} numbers; it goes up to {_SPECTRAL_LIMIT} "
            "instances.",
            hint="lower subsample, or use method='graph' or method='kmeans'",
        )


def _refuse(name: str, accepted: str, value: Any, hint: str, function: str) -> None:
    raise InputError(
        f"The {name!r} parameter of {function} must be {accepted}. Got {value!r} instead.", hint=f"{hint}"
    )
