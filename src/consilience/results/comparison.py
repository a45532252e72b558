"""Several methods or numbers of clusters on one table: which answer to prefer without true classes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

from consilience._support.shown import Table, as_html
from consilience._support.sklearn import Interval, check_parameter, seed_from
from consilience._support.talk import Progress, watched
from consilience._support.values import counted
from consilience.diagnostics import ClusterCount, choose_n_clusters
from consilience.evidence.partitions import Partitions
from consilience.metrics import ensemble_agreement
from consilience.results.fusion import Fusion
from consilience.results.labels import (
    check_n_clusters,
    count_clusters,
    fuse_partitions,
    limits_for,
    named_method,
)
from consilience.results.selection import CANDIDATES, LIKELY

_SHARE = 0.8  # of the base clusterings, in a resample
_FEWEST = 3  # base clusterings from which one can be left out and the others still compared


class Compared(NamedTuple):
    """One line of a comparison; numbers are NaN where there is none, `error` says why a method failed.

    `rank` is the place by agreement among the lines of the same number of clusters, 0 for a failure.
    """

    method: str
    n_clusters: int
    agreement: float
    stability: float
    confidence: float
    seconds: float
    error: str = ""
    rank: int = 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` returns.

    Attributes
    ----------
    rows : tuple of Compared
        A line per method and number of clusters. Those of the chosen number come first, then those of the
        others in ascending order; within a number the highest agreement first, failures last. Agreement
        favours the finer of two answers, so lines of different numbers are not ranked by it.
    fusions : dict of Fusion
        The answers by name, in the order of the rows; a second estimator of one class is "PCE (2)".
    n_clusters : int
        The chosen number.
    reason : str
        How it was chosen, in words.
    cluster_count : ClusterCount or None
        What the labels say about the number of clusters; None where one number was given.
    """

    rows: tuple[Compared, ...]
    fusions: dict[str, Fusion]
    n_clusters: int
    reason: str
    cluster_count: ClusterCount | None = None

    @property
    def best(self) -> Fusion:
        """The answer of the first line: of the chosen number of clusters, that of the highest agreement."""
        return next(iter(self.fusions.values()))

    def __repr__(self) -> str:
        head = f"{'method':18s} clusters  agreement  rank  stability  confidence  seconds"
        lines = [
            f"{row.method:18s} {row.n_clusters:8d}  "
            + (
                row.error
                or f"{row.agreement:9.3f}  {row.rank:4d}  {row.stability:9.3f}  {row.confidence:10.3f}  "
                f"{row.seconds:7.2f}"
            )
            for row in self.rows
        ]
        return "\n".join([head, *lines, self.reason])

    def _repr_html_(self) -> str:
        head = ("method", "clusters", "agreement", "rank", "stability", "confidence", "seconds", "")
        rows = []
        for row in self.rows:
            measured = (row.agreement, row.rank, row.stability, row.confidence, row.seconds)
            formats = (".3f", "d", ".3f", ".3f", ".2f")
            cells = [f"{value:{how}}" for value, how in zip(measured, formats, strict=True)]
            cells = ["-"] * len(cells) if row.error else [cell.replace("nan", "-") for cell in cells]
            rows.append((row.method, str(row.n_clusters), *cells, row.error))
        return as_html([self.reason], Table(head, rows))


def compare(
    labels: Any,
    n_clusters: int | Literal["auto"] | Sequence[int],
    *,
    methods: Sequence[Any] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    negative: Literal["missing", "noise"] | None = None,
    index: Any = None,
    unobserved: Literal["error", "noise", "largest"] = "error",
    n_resamples: int = 5,
    random_state: Any = None,
    progress: Progress | bool | None = None,
) -> Comparison:
    """Merge one table by several methods, for one or several numbers of clusters, and compare the answers.

    Parameters
    ----------
    labels, groups, negative, index, unobserved
        As in :func:`fuse`.
    n_clusters : int, "auto" or sequence of int
        The number of clusters, or several to compare.
    methods : sequence of str or estimators, optional
        Names of label methods, or estimators; "auto" is what :func:`fuse` does. By default those that
        `fuse` chooses from.
    n_resamples : int, default=5
        Fits for the stability; 0 leaves it out.
    random_state : int, RandomState or None, default=None
        One seed, one answer.
    progress : bool or callable, optional
        As in :func:`fuse`.

    Returns
    -------
    comparison : Comparison
        Per method and number of clusters, without any true classes:

        - ``agreement``: mean NMI (sqrt) with the base clusterings. It favours the finer of two answers, so
          methods are ranked by it within a number of clusters only.
        - ``stability``: mean adjusted Rand index with the answers from random four fifths of the base
          clusterings. NaN for fewer than three of them.
        - ``confidence``: mean over instances; see :func:`consilience.diagnostics.confidence`.
        - ``seconds``: of the first fit.

        A method that fails has the reason in ``error``; the others go on.

        Of several numbers of clusters, that is chosen which
        :func:`consilience.diagnostics.choose_n_clusters` finds, or the one of highest modularity where it
        finds another; ``comparison.n_clusters`` and ``comparison.reason`` say so.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import compare
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, 200)
    >>> base = np.where(rng.random((200, 6)) < 0.2, rng.integers(0, 3, (200, 6)), truth[:, None])
    >>> found = compare(base, 3, methods=["DAL", "PCE"], random_state=0)
    >>> sorted(row.method for row in found.rows)
    ['DAL', 'PCE']
    >>> all(row.stability > 0.9 for row in found.rows)
    True
    """
    ks = asked_numbers(n_clusters, n_resamples, "compare")
    for method in methods or ():  # a wrong name is an error before anything is fitted
        if method != "auto":
            named_method(method, 1, unobserved, 0, of="compare")
    partitions = Partitions.of(
        labels, negative=negative, index=index, unobserved="error" if unobserved == "error" else "keep"
    )
    if groups is not None:
        partitions = partitions.grouped(groups)
    taking = limits_for(partitions)
    tried = dict.fromkeys((*CANDIDATES, *LIKELY))
    chosen = [name for name in tried if name in taking] if methods is None else list(methods)
    seed = seed_from(random_state)
    count = None
    if "auto" in ks:
        count = count_clusters(partitions.take_seen(), seed)
    elif len(set(ks)) > 1:
        count = choose_n_clusters(partitions.take_seen(), random_state=seed)
    ks = list(dict.fromkeys(count.n_clusters if k == "auto" and count is not None else int(k) for k in ks))
    with watched(progress) as told:
        steps = Steps(told, len(ks) * len(chosen) * (1 + n_resamples))

        def attempt(method: Any, k: int) -> tuple[Compared, Fusion | None]:
            return _try(partitions, method, k, unobserved, n_resamples, seed, steps)

        return comparison_of(ks, chosen, attempt, count)


def asked_numbers(n_clusters: Any, n_resamples: Any, of: str) -> list[Any]:
    """The numbers of clusters that were asked for, "auto" among them; and a check of the other number."""
    accepted = Interval(Integral, 0, None, closed="left")
    check_parameter("n_resamples", n_resamples, accepted, of, hint="use 5")
    ks: list[Any] = np.atleast_1d(np.asarray(n_clusters, dtype=object)).tolist()
    for k in ks:
        check_n_clusters(k, of)
    return ks


def comparison_of(
    ks: list[int],
    methods: Sequence[Any],
    attempt: Callable[[Any, int], tuple[Compared, Fusion | None]],
    count: ClusterCount | None,
) -> Comparison:
    """Every method for every number of clusters, ranked within a number."""
    best, reason = _prefer(ks, count)
    lines: list[tuple[Compared, Fusion | None]] = []
    for k in sorted(ks, key=lambda k: (k != best, k)):
        tried = [attempt(method, k) for method in methods]
        tried.sort(key=lambda pair: -pair[0].agreement if pair[1] is not None else np.inf)
        lines += [
            (row._replace(rank=place if fusion is not None else 0), fusion)
            for place, (row, fusion) in enumerate(tried, 1)
        ]
    fusions: dict[str, Fusion] = {}
    for row, fusion in lines:
        if fusion is not None:
            name = f"{row.method}, k = {row.n_clusters}" if len(ks) > 1 else row.method
            same = sum(other == name or other.startswith(f"{name} (") for other in fusions)
            fusions[f"{name} ({same + 1})" if same else name] = fusion
    return Comparison(tuple(row for row, _ in lines), fusions, best, reason, count)


def _prefer(ks: list[int], count: ClusterCount | None) -> tuple[int, str]:
    """The number of clusters to look at first, and why."""
    if count is None:
        return ks[0], f"{counted(ks[0], 'cluster')}, as was asked for. Methods are ranked by agreement."
    within = "Methods are ranked by agreement within a number of clusters only: it favours more clusters."
    if len(ks) == 1:
        return ks[0], f"{count.sentences[0]} Methods are ranked by agreement."
    if count.n_clusters in ks:
        return (
            count.n_clusters,
            f"{counted(count.n_clusters, 'cluster')} first. {count.sentences[0]} {within}",
        )
    known = dict(zip(count.curve.k.tolist(), np.nan_to_num(count.curve.modularity).tolist(), strict=True))
    best = max(ks, key=lambda k: known.get(k, 0.0))
    return best, (
        f"{counted(best, 'cluster')} first: of the numbers compared it has the highest modularity. "
        f"{count.sentences[0]} {within}"
    )


class Steps:
    """Counts fits for `progress`."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self, what: str, n: int = 1) -> None:
        self.done += n
        if self.progress is not None:
            self.progress(what, self.done, self.total)


def _try(
    partitions: Partitions, method: Any, k: int, unobserved: str, n_resamples: int, seed: int, steps: Steps
) -> tuple[Compared, Fusion | None]:
    name = method if isinstance(method, str) else type(method).__name__
    start = time.perf_counter()
    try:
        fusion = fuse_partitions(partitions, k, method, unobserved, seed, 0, None)
    except (ValueError, MemoryError) as error:
        steps(f"{name} failed", 1 + n_resamples)
        return failed(name, k, error), None
    seconds = time.perf_counter() - start
    name = f"auto ({fusion.method})" if name == "auto" else fusion.method
    steps(f"merged by {name}")
    known, found = partitions.take_seen(), fusion.labels[partitions.seen]
    stable = _stability(known, found, method, k, n_resamples, seed, lambda: steps(f"resampled for {name}"))
    agreement = ensemble_agreement(found, known)
    sure = fusion.diagnostics.mean_confidence
    return Compared(name, fusion.n_clusters, agreement, stable, sure, seconds), fusion


def failed(name: str, k: int, error: Exception) -> Compared:
    """The line of a method that gave no answer."""
    return Compared(name, k, np.nan, np.nan, np.nan, np.nan, " ".join(str(error).split()))


def _stability(
    table: Partitions,
    labels: np.ndarray,
    method: Any,
    k: int,
    n_resamples: int,
    seed: int,
    step: Callable[[], None],
) -> float:
    """Mean adjusted Rand index between `labels` and those from parts of the base clusterings."""
    rng = np.random.RandomState(seed)
    m, scores = table.n_partitions, []
    for _ in range(n_resamples if m >= _FEWEST else 0):
        part = table.choose(np.sort(rng.choice(m, min(m - 1, int(np.ceil(_SHARE * m))), replace=False)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the part; the whole table had its warnings
            try:
                found = fuse_partitions(part, k, method, "noise", seed, 0, None)
            except ValueError:
                step()
                continue  # a part that falls into groups without common instances says nothing
        both = (np.repeat(each[part.seen], part.counts[part.seen]) for each in (labels, found.labels))
        scores.append(adjusted_rand_score(*both))
        step()
    return float(np.mean(scores)) if scores else float("nan")
