"""How many clusters there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, ValuesView
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience.diagnostics import ClusterCount, consensus_distribution
from consilience.inference.resampling import ResampledCount
from consilience.plotting._inputs import partitions_of
from consilience.plotting._style import INK, MARK, axis_or_new, legend, lightness_ramp, tidy
from consilience.results import Fusion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GRID = np.arange(101) / 100


class _Curves(NamedTuple):
    """How pairs agree, for some numbers of clusters."""

    k: np.ndarray
    cdf: np.ndarray
    area: np.ndarray
    pac: np.ndarray
    chosen: int | None


def plot_cdf(result: Any, *, ax: Axes | None = None) -> Axes:
    """How often pairs are together: the share of pairs up to every co-association, a line for each k.

    A flat line says that nearly all pairs are decided: together (1) or apart (0).

    .. image:: /gallery/cdf.png

    Parameters
    ----------
    result : ResampledCount, Fusion, whatever `fuse` takes, or sequence of Fusion
        What :func:`consilience.diagnostics.resample_n_clusters` returned; or one table of base clusterings;
        or fusions of tables that were made with different numbers of clusters, one of each.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Notes
    -----
    The curves are those of the base clusterings. Fusions of one and the same table into different numbers of
    clusters have one and the same curve, so they are refused.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from consilience.diagnostics import resample_n_clusters
    >>> from consilience.plotting import plot_cdf
    >>> X, _ = make_blobs(100, centers=3, random_state=1)
    >>> ax = plot_cdf(resample_n_clusters(X, (2, 3, 4), n_resamples=10, random_state=0))
    >>> len(ax.lines)
    3
    """
    ax = axis_or_new(ax, (5.6, 3.8))
    if not (isinstance(result, ResampledCount) or _are_fusions(result)):
        found = consensus_distribution(partitions_of(result, "plot_cdf"))
        ax.step(_GRID, found.cdf, where="post", color=INK)
        ax.set_title(f"{found.pac:.0%} of the pairs are undecided", size="medium")
    else:
        curves = _curves(result, "plot_cdf")
        colors = lightness_ramp(len(curves.k))
        for k, cdf, color in zip(curves.k, curves.cdf, colors, strict=True):
            width = 2.6 if k == curves.chosen else 1.2
            ax.step(_GRID, cdf, where="post", color=color, linewidth=width)
        names = [f"{k} (chosen)" if k == curves.chosen else str(k) for k in curves.k]
        legend(ax, list(zip(names, colors, strict=True)), "clusters")
    ax.set_xlim(0, 1)
    ax.set_ylim(top=1.02)
    ax.set_xlabel("co-association: share of base clusterings with both in one cluster")
    ax.set_ylabel("share of pairs up to here")
    return tidy(ax)


def plot_delta_area(result: Any, *, ax: Axes | None = None) -> Axes:
    """How much the area under the curve of `plot_cdf` grows from each number of clusters to the next.

    Look for the number after which it grows little. It always prefers some number, also in one round cloud.

    .. image:: /gallery/delta_area.png

    Parameters
    ----------
    result : ResampledCount or sequence of Fusion
        As in `plot_cdf`.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from consilience.diagnostics import resample_n_clusters
    >>> from consilience.plotting import plot_delta_area
    >>> X, _ = make_blobs(100, centers=3, random_state=1)
    >>> ax = plot_delta_area(resample_n_clusters(X, (2, 3, 4), n_resamples=10, random_state=0))
    >>> ax.lines[0].get_xdata().tolist()
    [3, 4]
    """
    curves = _curves(result, "plot_delta_area")
    if len(curves.k) < 2:
        raise InputError("the growth of the area needs two numbers of clusters.", hint="try range(2, 11).")
    ax = axis_or_new(ax, (5.6, 3.4))
    ax.plot(curves.k[1:], np.diff(curves.area) / np.maximum(curves.area[:-1], 1e-12), "o-", color=INK)
    ax.axhline(0.0, color="0.6", linewidth=0.8)
    ax.set_ylabel("growth of the area\n(share of the one before)")
    return _over_k(ax, curves.k[1:], curves.chosen)


def plot_pac(result: Any, *, ax: Axes | None = None) -> Axes:
    """The share of pairs of instances that are undecided, for each number of clusters; low is good.

    A pair is undecided if more than 10 % and at most 90 % of the base clusterings put both in one cluster.

    .. image:: /gallery/pac.png

    Parameters
    ----------
    result : ResampledCount or sequence of Fusion
        As in `plot_cdf`.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from consilience.diagnostics import resample_n_clusters
    >>> from consilience.plotting import plot_pac
    >>> X, _ = make_blobs(100, centers=3, random_state=1)
    >>> ax = plot_pac(resample_n_clusters(X, (2, 3, 4), n_resamples=10, random_state=0))
    >>> ax.lines[0].get_xdata().tolist()
    [2, 3, 4]
    """
    curves = _curves(result, "plot_pac")
    ax = axis_or_new(ax, (5.6, 3.4))
    ax.plot(curves.k, curves.pac, "o-", color=INK)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("share of pairs that are undecided\n(co-association between 0.1 and 0.9)")
    return _over_k(ax, curves.k, curves.chosen)


def plot_count(result: Fusion | ClusterCount, *, ax: Axes | None = None) -> Axes:
    """What the number of clusters was read from: eigenvalues and what chance alone would reach, modularity.

    Clusters show as eigenvalues above the dashed line, and their number as a gap after the last of them.
    Where no gap stands out, the number of highest modularity is taken; those about as good are shaded.

    .. image:: /gallery/count.png

    Parameters
    ----------
    result : ClusterCount or Fusion
        What :func:`consilience.diagnostics.choose_n_clusters` returned, or a fusion that found its
        number of clusters itself.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.diagnostics import choose_n_clusters
    >>> from consilience.plotting import plot_count
    >>> base = Partitions.of([[0, 0, 1], [0, 0, 1], [1, 1, 0], [2, 2, 2]] * 20)
    >>> ax = plot_count(choose_n_clusters(base, random_state=0))
    >>> ax.get_title()
    '3 clusters, not reliably'
    """
    count = result.cluster_count if isinstance(result, Fusion) else result
    if not isinstance(count, ClusterCount):
        raise InputError(
            "plot_count needs a number of clusters that was found.",
            hint=('fuse(labels, "auto"), or choose_n_clusters(partitions).'),
        )
    ax = axis_or_new(ax, (5.6, 3.6))
    curve = count.curve
    ax.plot(curve.k, curve.eigenvalue, "o-", color=INK, label="eigenvalue")
    ax.plot(curve.k, curve.null, "--", color="0.4", label="what chance reaches")
    ax.plot(curve.k, curve.modularity, "s-", color="0.6", markersize=3, label="modularity")
    if count.rule == "modularity":
        ax.axvspan(count.low - 0.4, count.high + 0.4, color="0.92", zorder=0)
    ax.set_ylim(0, 1.05)
    ax.set_ylabel("eigenvalue, modularity")
    ax.legend(frameon=False)
    sure = "" if count.reliable else ", not reliably"
    ax.set_title(f"{count.n_clusters} cluster{'s' * (count.n_clusters > 1)}{sure}", size="medium")
    return _over_k(ax, curve.k, count.n_clusters)


def _are_fusions(result: Any) -> bool:
    if isinstance(result, list | tuple | ValuesView):
        return any(isinstance(each, Fusion) for each in result)
    return isinstance(result, Iterator)


def _curves(result: Any, function: str) -> _Curves:
    if isinstance(result, ResampledCount):
        curve = result.curve
        return _Curves(curve.k, curve.cdf, curve.area, curve.pac, result.n_clusters)
    fusions = list(result) if isinstance(result, Iterable) else []
    if not fusions or not all(isinstance(fusion, Fusion) for fusion in fusions):
        raise InputError(
            f"{function} needs the answer of resample_n_clusters or a sequence of fusions, got "
            f"{type(result).__name__}.",
            hint="resample_n_clusters(X, range(2, 11)).",
        )
    fusions.sort(key=lambda fusion: fusion.n_clusters)
    k = np.array([fusion.n_clusters for fusion in fusions])
    if len(np.unique(k)) < len(k) or _share_a_table(fusions):
        raise InputError(
            f"{function} compares base clusterings of different numbers of clusters, but these fusions "
            "have equal numbers or were made from one table.",
            hint=(
                "make base clusterings for every number, or draw one fusion by plot_cdf; plot_tracking "
                "compares fusions of one table."
            ),
        )
    found = [consensus_distribution(partitions_of(fusion, function)) for fusion in fusions]
    cdf, area, pac = (np.array([getattr(one, name) for one in found]) for name in ("cdf", "area", "pac"))
    return _Curves(k, cdf, area, pac, None)


def _share_a_table(fusions: Sequence[Fusion]) -> bool:
    return any(
        np.array_equal(first.partitions.codes, second.partitions.codes) for first, second in pairwise(fusions)
    )


def _over_k(ax: Axes, k: np.ndarray, chosen: int | None) -> Axes:
    if chosen is not None and chosen in k:
        ax.axvline(chosen, color=MARK, linewidth=1.0, linestyle=":")
        ax.annotate(
            "chosen",
            (chosen, 1.0),
            (3, -10),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=MARK,
            size=8,
        )
    ax.set_xlim(k[0] - 0.5, k[-1] + 0.5)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("number of clusters")
    return tidy(ax)
