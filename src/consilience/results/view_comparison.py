"""Several methods or numbers of clusters on the same views: which answer to prefer without true classes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from consilience._support.errors import InputError
from consilience._support.talk import Progress, watched
from consilience.evidence.views import Views, check_views
from consilience.multiview.neighbours import NeighbourDiagnostics, ViewNeighbours
from consilience.results.comparison import Compared, Comparison, Steps, asked_numbers, comparison_of, failed
from consilience.results.fusion import Fusion
from consilience.results.refitting import refitting_of
from consilience.results.stability import adjusted_rand, draw_instances, overlap
from consilience.results.views import check_method, fuse_views

# One of each kind: neighbours, merged labels, anchors, late fusion of kernels, fused networks, factors.
VIEW_CANDIDATES = ("PSE", "labels", "APMC", "EEIMVC", "SNF", "DAIMC")
_SHARE = 0.8  # of the instances, in a resample


def compare_views(
    views: Any,
    n_clusters: int | Literal["auto"] | Sequence[int] = "auto",
    *,
    methods: Sequence[Any] | None = None,
    mask: ArrayLike | None = None,
    on: str | None = None,
    kind: Any = None,
    n_resamples: int = 5,
    random_state: Any = None,
    progress: Progress | bool | None = None,
) -> Comparison:
    """Cluster the same views by several methods, for one or several numbers of clusters, and compare.

    Parameters
    ----------
    views, mask, on, kind
        As in :func:`fuse_views`.
    n_clusters : int, "auto" or sequence of int, default="auto"
        The number of clusters, or several to compare.
    methods : sequence of str or estimators, optional
        What :func:`fuse_views` takes as `method`. By default PSE, "labels", APMC, EEIMVC, SNF and DAIMC.
    n_resamples : int, default=5
        Fits for the stability; 0 leaves it out.
    random_state : int, RandomState or None, default=None
        One seed, one answer: that of ``fuse_views`` with this method and seed.
    progress : bool or callable, optional
        As in :func:`fuse`.

    Returns
    -------
    comparison : Comparison
        Per method and number of clusters, without any true classes:

        - ``agreement``: how far nearest neighbours in a view share a cluster, 0 as by chance and 1 always,
          averaged over the views. Every method is measured by the same neighbours. It favours methods that
          look at neighbours themselves, as PSE does.
        - ``stability``: mean adjusted Rand index with the answers from random four fifths of the instances.
        - ``confidence``: the mean share of an instance's nearest neighbours that are in its cluster.
        - ``seconds``: of the first fit.

        A method that fails has the reason in ``error``; the others go on. Of several numbers of clusters that
        comes first which "auto" finds, as in :func:`compare`.

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import compare_views
    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat([0, 1, 2], 30)
    >>> lengths, colours = (rng.normal(5 * rng.normal(size=(3, 4))[kind]) for _ in range(2))
    >>> found = compare_views([lengths, colours], 3, methods=["PSE", "APMC"], random_state=0)
    >>> sorted(row.method for row in found.rows)
    ['APMC', 'PSE']
    >>> all(row.stability > 0.9 for row in found.rows)
    True
    """
    ks = asked_numbers(n_clusters, n_resamples, "compare_views")
    chosen = list(VIEW_CANDIDATES if methods is None else methods)
    for method in chosen:  # a wrong name is an error before anything is fitted
        check_method(method, "compare_views")
    table = check_views(views, mask=mask, on=on, kind=kind)
    count = None
    if "auto" in ks or len(set(ks)) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said below, by the comparison
            count = fuse_views(table, "auto", random_state=random_state).cluster_count
        assert count is not None
        ks = [count.n_clusters if k == "auto" else k for k in ks]
    ks = list(dict.fromkeys(int(k) for k in ks))
    neighbours = ViewNeighbours().fit(table)
    with watched(progress) as told:
        steps = Steps(told, len(ks) * len(chosen) * (1 + n_resamples))

        def attempt(method: Any, k: int) -> tuple[Compared, Fusion | None]:
            return _try(table, neighbours, method, k, n_resamples, random_state, steps)

        return comparison_of(ks, chosen, attempt, count)


class _Found:
    """Labels of which neighbours are asked."""

    def __init__(self, labels: np.ndarray) -> None:
        self.labels_ = labels


def _try(
    table: Views,
    neighbours: ViewNeighbours,
    method: Any,
    k: int,
    n_resamples: int,
    random_state: Any,
    steps: Steps,
) -> tuple[Compared, Fusion | None]:
    name = method if isinstance(method, str) else type(method).__name__
    start = time.perf_counter()
    try:
        fusion = fuse_views(table, k, method=method, random_state=random_state)
    except (ValueError, MemoryError) as error:
        steps(f"{name} failed", 1 + n_resamples)
        return failed(name, k, error), None
    seconds = time.perf_counter() - start
    name = f"{name} ({fusion.method})" if name in ("auto", "labels") else fusion.method
    steps(f"clustered by {name}")
    asked = NeighbourDiagnostics(_Found(fusion.labels), neighbours)
    agreement = float(np.nanmean(asked.view_agreement_)) if fusion.n_clusters > 1 else 0.0
    sure = float(asked.confidence_[fusion.labels >= 0].mean())
    stable = _stability(fusion, n_resamples, lambda: steps(f"resampled for {name}"))
    return Compared(name, fusion.n_clusters, agreement, stable, sure, seconds), fusion


def _stability(fusion: Fusion, n_resamples: int, step: Callable[[], None]) -> float:
    """Mean adjusted Rand index between an answer and those from parts of the instances."""
    rng, again, scores = np.random.RandomState(0), refitting_of(fusion), []
    every = range(len(again.sources))
    for _ in range(n_resamples):
        part = draw_instances(again.counts, _SHARE, rng)
        try:
            found = again.fit(part, every, 0 if fusion.seed is None else fusion.seed)
        except InputError:
            found = None  # a part without common instances says nothing
        step()
        if found is not None:
            scores.append(adjusted_rand(overlap(again.labels, found, part)))
    return float(np.mean(scores)) if scores else float("nan")
