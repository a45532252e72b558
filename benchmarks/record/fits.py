"""One fit: labels, what they score, what they cost."""

import time
import warnings
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import consilience
from benchmarks.record import design
from benchmarks.record.tables import Given, make, planted
from consilience import MixtureConsensus, Partitions, fuse, fuse_views
from consilience.bench.runner import peak, reset_peak, versions
from consilience.metrics import ensemble_agreement, matched_accuracy_score, normalized_mutual_info_score

POLISHED = ", polished"  # ends the name of a method whose labels the mixture improves
METRICS = ("nmi_max", "nmi_sqrt", "nmi_arithmetic", "ari", "acc")


class Result(NamedTuple):
    """A row of the results: the fit, its scores and its cost; or why there are none."""

    cell: str
    part: str
    group: str
    data: str
    mechanism: str
    missing: float
    bases: int
    factor: float
    rows: int
    draw: int
    method: str
    n: int = 0
    n_clusters: int = 0
    seed: int = 0
    chosen: str = ""  # by fuse
    agreement: float = float("nan")  # with the base labels
    nmi_max: float = float("nan")
    nmi_sqrt: float = float("nan")
    nmi_arithmetic: float = float("nan")
    ari: float = float("nan")
    acc: float = float("nan")
    seconds: float = float("nan")  # of the processor
    peak_mb: float = float("nan")  # beyond what was in use before
    error: str = ""
    versions: str = ""
    at: float = 0.0  # seconds since 1970, when it was made


KEYS = ("part", "group", "data", "mechanism", "missing", "bases", "factor", "rows", "draw", "method")


class Start(NamedTuple):
    """Labels, and what they cost."""

    labels: np.ndarray
    seconds: float
    peak_mb: float


class Fitter:
    """Fits cells; a table is made once, and a method's first fit, which may compile, is not timed.

    What a method found is kept until the next table, for the fit that improves it; that one is said to take
    as long as both, and at least as much memory as the first.
    """

    def __init__(self) -> None:
        self._table: design.Table | None = None
        self._given: Given | ValueError | None = None
        self._warm: set[str] = set()
        self._starts: dict[str, Start] = {}  # of this table, by method

    def __call__(self, cell: design.Cell) -> Result:
        """The row of one fit, whatever happens in it."""
        row = Result(cell.digest, *cell.table, cell.method, versions=versions())
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if cell.table != self._table:
                self._table = cell.table
                self._starts.clear()
                try:
                    self._given = make(cell.table)
                except ValueError as error:
                    self._given = error
            if not isinstance(self._given, Given):
                return row._replace(error=str(self._given))
            given = self._given
            row = row._replace(n=len(given.y), n_clusters=given.n_clusters, seed=given.seed)
            if cell.method in design.SLOW and len(given.y) > design.SLOW_ROWS:
                return row._replace(error=f"left out above {design.SLOW_ROWS} rows")
            if cell.method in design.TWO_VIEWS and len(given.views or ()) > 2:
                return row._replace(error="left out above 2 views")
            self._warm_up(cell.method)
            known = None
            if cell.method.endswith(POLISHED):
                known = self._starts.get(cell.method.removesuffix(POLISHED))
            before, start = reset_peak(), time.process_time()
            try:
                if known is not None:
                    labels, chosen = polished(given, known.labels), ""
                else:
                    labels, chosen = fit(cell.method, given, cell.table.draw)
            except Exception as error:
                said = f"{type(error).__name__}: {' '.join(str(error).split())}"
                return row._replace(error=said[:300], seconds=time.process_time() - start)
            cost = Start(labels, time.process_time() - start, peak() - before)
            if known is not None:
                cost = Start(labels, known.seconds + cost.seconds, max(known.peak_mb, cost.peak_mb))
            self._starts[cell.method] = cost
            row = row._replace(seconds=cost.seconds, peak_mb=cost.peak_mb, chosen=chosen)
            if given.labels is not None and cell.method not in design.CLASSIFIERS:
                row = row._replace(agreement=ensemble_agreement(labels, given.labels))
            told = labels >= 0
            return row._replace(**scores(given.y[told], labels[told]))

    def _warm_up(self, method: str) -> None:
        if method in self._warm:
            return
        self._warm.add(method)
        if method in design.VIEW_METHODS or method in design.SLOW:
            return  # seconds and more: what is compiled or loaded hardly counts
        y, base = planted("equal", 600, 10, np.random.default_rng(0))
        with suppress(Exception):  # the fit itself will tell
            fit(method, Given(y, 8, 0, labels=Partitions.of(base)), 0)


def fit(method: str, given: Given, seed: int) -> tuple[np.ndarray, str]:
    """Labels, and what was chosen where something was; a negative label is not scored."""
    if given.labels is None:
        return _fit_views(method, given, seed)
    table, k = given.labels, given.n_clusters
    if method == "fuse":
        fusion = fuse(table, k, random_state=seed)
        return fusion.labels, fusion.method
    if method == design.ONE_HOT:
        return KMeans(k, n_init=1, random_state=seed).fit_predict(one_hot(table)), ""
    if method == design.VOTE:
        return vote(table, k), ""
    if method in design.CLASSIFIERS:
        return classified(table, given.y, design.CLASSIFIERS[method], seed), ""
    labels = _with_seed(getattr(consilience, method.removesuffix(POLISHED))(k), seed).fit(table).labels_
    return polished(given, labels) if method.endswith(POLISHED) else labels, ""


def polished(given: Given, labels: np.ndarray) -> np.ndarray:
    """What the mixture makes of these labels."""
    assert given.labels is not None
    return MixtureConsensus(len(np.unique(labels)), init=labels).fit(given.labels).labels_


def _fit_views(method: str, given: Given, seed: int) -> tuple[np.ndarray, str]:
    assert given.views is not None
    k, mask = given.n_clusters, given.mask
    if method in (design.FUSED_VIEWS, design.MERGED_VIEWS):
        how = "auto" if method == design.FUSED_VIEWS else "labels"
        fusion = fuse_views(given.views, k, mask=mask, method=how, random_state=seed)
        return fusion.labels, fusion.method
    model = _with_seed(getattr(consilience, method)(k), seed)
    return model.fit(scaled(given.views, model), mask=mask).labels_, ""


def scaled(views: dict[str, Any], model: Any) -> dict[str, Any]:
    """Views as they are for methods that scale them; for others text as tf-idf, for kernels z-scores."""
    settings = model.get_params()
    if "normalize" in settings or "kind" in settings:
        return views
    return {
        name: sp.csr_array(TfidfTransformer().fit_transform(view))
        if sp.issparse(view)
        else StandardScaler().fit_transform(view)
        if "kernel" in settings
        else view
        for name, view in views.items()
    }


def _with_seed(model: Any, seed: int) -> Any:
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model


def one_hot(table: Partitions) -> sp.csr_array:
    """An indicator for every base cluster; nothing for a missing label."""
    columns = []
    for column, names in zip(table.codes.T, table.categories, strict=True):
        rows = np.flatnonzero(column >= 0)
        shape = len(column), len(names)
        columns.append(sp.csr_array((np.ones(len(rows)), (rows, column[rows])), shape=shape))
    found = sp.csr_array(sp.hstack(columns))
    found.indices, found.indptr = found.indices.astype(np.int32), found.indptr.astype(np.int32)  # for KMeans
    return found


def vote(table: Partitions, n_clusters: int) -> np.ndarray:
    """Majority vote after alignment, as people do it by hand.

    The reference is the source whose number of clusters is nearest to the wanted one, of several the one with
    the most labels. Each cluster of another source is called after the cluster of the reference that it
    shares most instances with; then every instance gets the name that most of its sources give it. There are
    as many clusters as the reference has, or fewer.
    """
    codes = table.codes
    far = np.abs(table.n_clusters_per_partition - n_clusters)
    reference = int(np.lexsort((-(codes >= 0).sum(axis=0), far))[0])
    n_names = int(codes[:, reference].max()) + 1
    votes = np.zeros((len(codes), n_names))
    for column in codes.T:
        both = (column >= 0) & (codes[:, reference] >= 0)
        shared = np.zeros((int(column.max()) + 1, n_names))
        np.add.at(shared, (column[both], codes[both, reference]), 1.0)
        told = np.flatnonzero((column >= 0) & shared.any(axis=1)[column])
        votes[told, shared.argmax(axis=1)[column[told]]] += 1.0
    largest = np.bincount(codes[codes[:, reference] >= 0, reference]).argmax()
    return np.where(votes.any(axis=1), votes.argmax(axis=1), largest)


def classified(table: Partitions, y: np.ndarray, told: float, seed: int) -> np.ndarray:
    """What a classifier says of the other instances when it is told the classes of a share of them.

    Logistic regression on the indicators. Told little, it is told one instance of every class at least, and
    what it was told gets -1. Told nine tenths, it is asked about every tenth in turn.
    """
    X, rng = one_hot(table), np.random.default_rng(seed)
    labels = np.full(len(y), -1)
    if told > 0.5:
        for known, asked in KFold(round(1.0 / (1.0 - told)), shuffle=True, random_state=seed).split(y):
            labels[asked] = LogisticRegression(max_iter=200).fit(X[known], y[known]).predict(X[asked])
        return labels
    firsts = np.array([rng.choice(np.flatnonzero(y == c)) for c in np.unique(y)])
    others = rng.permutation(np.setdiff1d(np.arange(len(y)), firsts))
    known = np.concatenate([firsts, others[: max(1, round(told * len(y)) - len(firsts))]])
    asked = np.setdiff1d(np.arange(len(y)), known)
    labels[asked] = LogisticRegression(max_iter=200).fit(X[known], y[known]).predict(X[asked])
    return labels


def scores(y: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Every metric."""
    found = {
        f"nmi_{form}": normalized_mutual_info_score(y, labels, normalization=form)
        for form in ("max", "sqrt", "arithmetic")
    }
    found["ari"] = float(adjusted_rand_score(y, labels))
    found["acc"] = matched_accuracy_score(y, labels)
    return found
