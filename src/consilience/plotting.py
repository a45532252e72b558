"""Pictures of a result: each a function of what was found and an axis, which it returns.

``ax=None`` makes a new figure. A picture of several panels draws them as inset axes inside the axis that was
given, so each fits where one axis fits; they are ``ax.child_axes``. All read tables of a few hundred cells
(:mod:`consilience.diagnostics`), so a million instances are as good as a hundred.

Clusters have one colour in all pictures, chosen with colour-blind readers in mind; where there is space, the
number of the cluster stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import squareform

from consilience._errors import InputError, InputTypeError
from consilience._optional import optional_import
from consilience._sklearn import Interval, check_parameter, random_source
from consilience.diagnostics import (
    ClusterCount,
    ResampledCount,
    base_agreement,
    cluster_flow,
    consensus_distribution,
    consensus_map,
    membership,
    missing_patterns,
)
from consilience.fusion import Fusion
from consilience.partitions import Partitions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "cluster_colors",
    "plot_base_agreement",
    "plot_bases",
    "plot_cdf",
    "plot_confidence",
    "plot_consensus",
    "plot_convergence",
    "plot_count",
    "plot_delta_area",
    "plot_embedding",
    "plot_membership",
    "plot_missing",
    "plot_pac",
    "plot_tracking",
]

# Okabe and Ito's eight colours, told apart by readers with any common colour blindness. Then twelve more:
# each the colour farthest from those before it, from white and from the grey of unassigned instances, by the
# least distance in CIE Lab over normal and three kinds of simulated colour-blind vision.
_COLORS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000"),
    *("#7800FF", "#5A2D00", "#96F096", "#1E2DA5", "#4B3C5A", "#8769FF"),
    *("#E10F4B", "#B4E1FF", "#D2A55A", "#3C2D78", "#691E2D", "#8796FF"),
)
# Steps of viridis, whose lightness grows evenly.
_VIRIDIS = ("#440154", "#482878", "#3E4A89", "#31688E", "#26828E", "#1F9E89", "#35B779", "#6DCD59", "#B4DE2C")
_UNASSIGNED = "#B0B0B0"
_UNKNOWN = "#E3D9CE"  # in heat maps, where there is no number: on no colour of the map
_INK, _MARK = "#0072B2", "#D55E00"
_LONGEST_NAME = 24
_MOST_TICKS = 60
_MOST_IN_LEGEND = 45
_GRID = np.arange(101) / 100
_NEEDED = {"needed_for": "plotting", "extra": "plot"}


class _Curves(NamedTuple):
    """How pairs agree, for some numbers of clusters."""

    k: np.ndarray
    cdf: np.ndarray
    area: np.ndarray
    pac: np.ndarray
    chosen: int | None


def cluster_colors(n_clusters: int) -> list[str]:
    """The colours of clusters 0, 1, ... as ``"#rrggbb"``.

    The first eight are those of Okabe and Ito, made for colour-blind readers; twelve more extend them. Above
    twenty clusters: steps of viridis, in an order that puts different ones next to each other. Neighbouring
    steps then look alike: go by the numbers in the picture.

    Parameters
    ----------
    n_clusters : int
        How many clusters there are.

    Examples
    --------
    >>> from consilience.plotting import cluster_colors
    >>> cluster_colors(2)
    ['#0072B2', '#E69F00']
    """
    if n_clusters <= len(_COLORS):
        return list(_COLORS[:n_clusters])
    # Steps of about three eighths of the way, such that every colour is taken once.
    step = next(s for s in range(3 * n_clusters // 8, 0, -1) if np.gcd(s, n_clusters) == 1)
    ramp = _ramp(n_clusters)
    return [ramp[c * step % n_clusters] for c in range(n_clusters)]


def plot_consensus(fusion: Fusion, *, max_cells: int = 200, ax: Axes | None = None) -> Axes:
    """How often any two instances are in one base cluster, as a heat map sorted by cluster.

    Dark squares on the diagonal are clusters that the base clusterings agree on. A square that is pale, or
    dark beside the diagonal, is a cluster that they do not. Inside a cluster, instances that agree most with
    the others come first. It is drawn from :func:`consilience.diagnostics.consensus_map`.

    .. image:: /gallery/consensus.png

    Parameters
    ----------
    fusion : Fusion
        What `fuse` returned.
    max_cells : int, default=200
        The most cells on a side; a cell is one or more instances of one cluster.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_consensus
    >>> fusion = fuse([[0, 0], [0, 0], [1, 1], [1, -1]] * 5, 2, random_state=0)
    >>> ax = plot_consensus(fusion)
    >>> ax.get_xlabel()
    '20 instances, sorted by cluster'
    """
    _require_fusion(fusion, "plot_consensus")
    ax = _axis(ax, (6.4, 4.8))
    order = fusion.diagnostics.item_consensus
    found = consensus_map(fusion.partitions, fusion.labels, order=order, max_cells=max_cells)
    unknown = np.isnan(found.agreement).any()
    image = ax.imshow(found.agreement, cmap=_heat(), vmin=0, vmax=1, interpolation="nearest")
    meaning = "share of base clusterings that put both in one cluster"
    _color_scale(ax, image, meaning + ("\n(beige: never seen together)" if unknown else ""))
    _cluster_strip(ax, found.cluster, fusion.n_clusters)
    borders = np.flatnonzero(np.diff(found.cluster)) + 0.5
    if len(borders) < 100:
        for draw in (ax.axhline, ax.axvline):
            for border in borders:
                draw(border, color="white", linewidth=0.8)
    ax.set_xticks([])
    ax.set_xlabel(_instances(found.size))
    return ax


def plot_membership(fusion: Fusion, *, max_cells: int = 200, ax: Axes | None = None) -> Axes:
    """How much instances support every cluster, as a heat map: instances down, clusters across.

    A row that is dark in two columns is a set of instances between two clusters. It is drawn from
    :func:`consilience.diagnostics.membership`.

    .. image:: /gallery/membership.png

    Parameters
    ----------
    fusion : Fusion
        What `fuse` returned.
    max_cells : int, default=200
        The most rows; a row is one or more instances of one cluster.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_membership
    >>> ax = plot_membership(fuse([[0, 0], [0, 0], [1, 1], [1, -1]] * 5, 2, random_state=0))
    >>> ax.images[0].get_array().shape
    (20, 2)
    """
    _require_fusion(fusion, "plot_membership")
    ax = _axis(ax, (5.6, 4.8))
    order = fusion.diagnostics.item_consensus
    found = membership(fusion.partitions, fusion.labels, order=order, max_cells=max_cells)
    image = ax.imshow(found.support, cmap=_heat(), vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    _color_scale(ax, image, "share of agreement with the cluster's members")
    _cluster_strip(ax, found.cluster, fusion.n_clusters)
    _ticks(ax, "x", [str(c) for c in range(found.support.shape[1])], most=20)
    ax.set_xlabel(f"cluster that is supported\n{_instances(found.size)}")
    return ax


def plot_confidence(fusion: Fusion, *, bins: int = 20, ax: Axes | None = None) -> Axes:
    """How many instances have how much confidence, in bars stacked by cluster.

    .. image:: /gallery/confidence.png

    Parameters
    ----------
    fusion : Fusion
        What `fuse` returned.
    bins : int, default=20
        Number of bars from 0 to 1.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_confidence
    >>> ax = plot_confidence(fuse([[0, 0], [0, 0], [1, 1], [1, -1]] * 5, 2, random_state=0), bins=4)
    >>> int(sum(bar.get_height() for bar in ax.patches))
    20
    """
    _require_fusion(fusion, "plot_confidence")
    check_parameter("bins", bins, Interval(Integral, 1, None, closed="left"), "plot_confidence")
    ax = _axis(ax, (6.4, 3.8))
    k = fusion.n_clusters
    rows = np.where(fusion.labels >= 0, fusion.labels, k)
    columns = np.minimum((fusion.confidence * bins).astype(np.int64), bins - 1)
    heights = np.bincount(rows * bins + columns, minlength=(k + 1) * bins).reshape(k + 1, bins).astype(float)
    left, below = np.arange(bins) / bins, np.zeros(bins)
    entries = [*zip(map(str, range(k)), cluster_colors(k), strict=True), ("unassigned", _UNASSIGNED)]
    entries = entries if heights[k].any() else entries[:k]
    for (_, color), height in zip(entries, heights, strict=False):
        at = np.flatnonzero(height)  # empty bars would be most of them, and each takes its time
        ax.bar(
            left[at], height[at], 1 / bins, below[at], align="edge", color=color, edgecolor="white", lw=0.3
        )
        below += height
    _legend(ax, entries, "cluster")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.05 * below.max())
    _counts(ax.yaxis)
    ax.set_xlabel("confidence: estimated probability that the label is right")
    ax.set_ylabel("instances")
    return _tidy(ax)


def plot_bases(fusion: Fusion, *, ax: Axes | None = None) -> Axes:
    """How far each base clustering agrees with the consensus, and the weight that follows.

    .. image:: /gallery/bases.png

    Parameters
    ----------
    fusion : Fusion
        What `fuse` returned.
    ax : matplotlib axis, optional
        Where to draw two panels; None is a new figure.

    Returns
    -------
    ax : matplotlib axis
        Its ``child_axes`` are the panels, agreement and weight; the best base clustering is on top.

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_bases
    >>> ax = plot_bases(fuse({"a": [0, 0, 1, 1] * 5, "b": [0, 0, 1, 1] * 5}, 2, random_state=0))
    >>> [float(bar.get_width()) for bar in ax.child_axes[0].patches]
    [1.0, 1.0]
    """
    _require_fusion(fusion, "plot_bases")
    bases = fusion.diagnostics.bases
    m = len(bases.names)
    ax = _axis(ax, (6.4, _height(m)))
    ax.set_axis_off()
    agreement = ax.inset_axes((0.0, 0.0, 0.58, 1.0))
    weight = ax.inset_axes((0.64, 0.0, 0.36, 1.0))
    first = np.argsort(-bases.agreement, kind="stable")
    agreement.barh(np.arange(m), bases.agreement[first], 0.8, color=_INK)
    agreement.set_xlim(0, 1)
    agreement.set_xlabel("agreement with the consensus\n(adjusted mutual information)")
    _ticks(agreement, "y", [bases.names[j] for j in first])
    weight.barh(np.arange(m), bases.weights[first], 0.8, color=_MARK)
    weight.set_xlim(0, 1.05 * float(bases.weights.max()))
    weight.axvline(1.0, color="0.3", linewidth=0.8, linestyle="--")
    weight.set_xlabel("weight\n(dashed: average)")
    weight.set_yticks([])
    for panel in (agreement, weight):
        panel.set_ylim(m - 0.5, -0.5)
        _tidy(panel)
    return ax


def plot_base_agreement(result: Fusion | Partitions, *, ax: Axes | None = None) -> Axes:
    """How far every two base clusterings agree, as a heat map; like ones stand next to each other.

    .. image:: /gallery/base_agreement.png

    Parameters
    ----------
    result : Fusion or Partitions
        What `fuse` returned, or a table of base clusterings.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.plotting import plot_base_agreement
    >>> ax = plot_base_agreement(Partitions.of([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]] * 50))
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['2', '0', '1']
    """
    names, table = base_agreement(_table(result))
    m = len(names)
    side = float(np.clip(0.36 * m + 2.0, 4.0, 9.0))
    ax = _axis(ax, (1.15 * side + 0.6, side))
    first = _alike(table)
    table = table[np.ix_(first, first)]
    image = ax.imshow(table, cmap=_heat(), vmin=0, vmax=1, interpolation="nearest")
    unknown = np.isnan(table).any()
    meaning = "adjusted mutual information" + ("\n(beige: no instance in common)" if unknown else "")
    _color_scale(ax, image, meaning)
    shown = [names[j] for j in first]
    _ticks(ax, "y", shown, most=40)
    _ticks(ax, "x", shown, most=40)
    ax.tick_params("x", rotation=90)
    if m <= 12:
        for (i, j), value in np.ndenumerate(table):
            color = "white" if value > 0.55 else "black"
            ax.text(
                j,
                i,
                "-" if np.isnan(value) else f"{value:.2f}",
                color=color,
                ha="center",
                va="center",
                size=8,
            )
    return ax


def plot_missing(result: Fusion | Partitions, *, max_patterns: int = 20, ax: Axes | None = None) -> Axes:
    """Which combinations of base clusterings saw how many instances.

    A column is a combination; a dark dot says that the base clustering of that row saw these instances. Bars
    above count the instances of the combination, bars beside count those of the base clustering.

    .. image:: /gallery/missing.png

    Parameters
    ----------
    result : Fusion or Partitions
        What `fuse` returned, or a table of base clusterings.
    max_patterns : int, default=20
        The most combinations, the most frequent ones.
    ax : matplotlib axis, optional
        Where to draw three panels; None is a new figure.

    Returns
    -------
    ax : matplotlib axis
        Its ``child_axes`` are the panels: bars above, dots, bars beside.

    Examples
    --------
    >>> from consilience import Partitions
    >>> from consilience.plotting import plot_missing
    >>> ax = plot_missing(Partitions.of([[0, 0], [1, -1], [1, -1], [0, -1]]))
    >>> [int(bar.get_height()) for bar in ax.child_axes[0].patches]
    [3, 1]
    """
    partitions = _table(result)
    found = missing_patterns(partitions, max_patterns=max_patterns)
    n_patterns, m = found.seen.shape
    ax = _axis(ax, (6.4, _height(m) + 1.6))
    ax.set_axis_off()
    share = float(np.clip(m / (m + 6), 0.25, 0.75))
    above = ax.inset_axes((0.0, share + 0.03, 0.72, 0.97 - share))
    dots = ax.inset_axes((0.0, 0.0, 0.72, share))
    beside = ax.inset_axes((0.76, 0.0, 0.24, share))
    above.bar(np.arange(n_patterns), found.size.astype(float), 0.7, color=_INK)
    above.set_ylabel("instances")
    above.set_xticks([])
    _counts(above.yaxis)
    beside.barh(np.arange(m), found.n_seen.astype(float), 0.7, color="0.45")
    beside.set_xlim(0, partitions.n_instances)
    beside.set_xlabel("instances seen")
    beside.set_yticks([])
    _counts(beside.xaxis, nbins=3)
    _draw_dots(dots, found.seen, share * ax.get_window_extent().height)
    _ticks(dots, "y", found.names)
    dots.set_xticks([])
    shown = found.size.sum() / partitions.n_instances
    what = f"{n_patterns} combination{'s' * (n_patterns > 1)}"
    if n_patterns < found.n_patterns:
        what = (
            f"most frequent {n_patterns} of {found.n_patterns:,} combinations\n({shown:.0%} of the instances)"
        )
    dots.set_xlabel(what)
    for panel in (dots, beside):
        panel.set_ylim(m - 0.5, -0.5)
    for panel in (above, dots):
        panel.set_xlim(-0.6, n_patterns - 0.4)
    for panel in (above, beside):
        _tidy(panel)
    dots.spines[:].set_visible(False)
    dots.tick_params("y", length=0)
    return ax


def plot_cdf(result: Any, *, ax: Axes | None = None) -> Axes:
    """How pairs of instances agree: the share of pairs up to every share of agreement, a line for each k.

    A flat line says that nearly all pairs are decided: together (1) or apart (0).

    .. image:: /gallery/cdf.png

    Parameters
    ----------
    result : ResampledCount, Fusion, Partitions, or sequence of Fusion
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
    ax = _axis(ax, (5.6, 3.8))
    if isinstance(result, Fusion | Partitions):
        found = consensus_distribution(_table(result))
        ax.step(_GRID, found.cdf, where="post", color=_INK)
        ax.set_title(f"{found.pac:.0%} of the pairs are undecided", size="medium")
    else:
        curves = _curves(result, "plot_cdf")
        colors = _ramp(len(curves.k))
        for k, cdf, color in zip(curves.k, curves.cdf, colors, strict=True):
            width = 2.6 if k == curves.chosen else 1.2
            ax.step(_GRID, cdf, where="post", color=color, linewidth=width)
        names = [f"{k} (chosen)" if k == curves.chosen else str(k) for k in curves.k]
        _legend(ax, list(zip(names, colors, strict=True)), "clusters")
    ax.set_xlim(0, 1)
    ax.set_ylim(top=1.02)
    ax.set_xlabel("agreement: share of base clusterings with both in one cluster")
    ax.set_ylabel("share of pairs up to here")
    return _tidy(ax)


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
    ax = _axis(ax, (5.6, 3.4))
    ax.plot(curves.k[1:], np.diff(curves.area) / np.maximum(curves.area[:-1], 1e-12), "o-", color=_INK)
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
    ax = _axis(ax, (5.6, 3.4))
    ax.plot(curves.k, curves.pac, "o-", color=_INK)
    ax.set_ylim(bottom=0)
    ax.set_ylabel("share of pairs that are undecided\n(agreement between 0.1 and 0.9)")
    return _over_k(ax, curves.k, curves.chosen)


def plot_count(result: Fusion | ClusterCount, *, ax: Axes | None = None) -> Axes:
    """The eigenvalues from which the number of clusters was read, and what chance alone would reach.

    Clusters show as eigenvalues above the dashed line, and their number as a gap after the last of them.

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
    ax = _axis(ax, (5.6, 3.6))
    curve = count.curve
    ax.plot(curve.k, curve.eigenvalue, "o-", color=_INK, label="base clusterings")
    ax.plot(curve.k, curve.null, "--", color="0.4", label="what chance reaches")
    ax.set_ylim(0, 1.05)
    ax.set_ylabel("eigenvalue")
    ax.legend(frameon=False)
    sure = "" if count.reliable else ", not reliably"
    ax.set_title(f"{count.n_clusters} cluster{'s' * (count.n_clusters > 1)}{sure}", size="medium")
    return _over_k(ax, curve.k, count.n_clusters)


def plot_tracking(results: Sequence[Fusion] | Mapping[str, Fusion], *, ax: Axes | None = None) -> Axes:
    """Where instances go when the number of clusters (or the method) changes.

    A column is a fusion, a block is a cluster, a ribbon is the instances that two clusters of neighbouring
    columns share. A cluster keeps the colour of the one before that it shares most with, one to one.

    .. image:: /gallery/tracking.png

    Parameters
    ----------
    results : sequence of Fusion, or mapping of names to Fusion
        Fusions of the same instances, in the order of the columns.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_tracking
    >>> table = [[0, 0], [0, 1], [1, 2], [1, 2]] * 5
    >>> ax = plot_tracking([fuse(table, k, random_state=0) for k in (2, 3)])
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['2', '3']
    """
    if isinstance(results, Mapping):
        names, fusions = list(results), list(results.values())
    else:
        fusions = [results] if isinstance(results, Fusion) else list(results)
        names = [str(fusion.n_clusters) for fusion in fusions]
    if len(fusions) < 2 or len({len(fusion.labels) for fusion in fusions}) > 1:
        raise InputError(
            "tracking needs at least two fusions of the same instances.",
            hint="[fuse(labels, k) for k in range(2, 11)].",
        )
    ax = _axis(ax, (1.2 * len(fusions) + 1.5, 4.6))
    # Unassigned instances are one more cluster, the last.
    labels = [np.where(fusion.labels < 0, fusion.n_clusters, fusion.labels) for fusion in fusions]
    flows = [cluster_flow(a, b) for a, b in pairwise(labels)]
    sizes = [flows[0].sum(axis=1), *(flow.sum(axis=0) for flow in flows)]
    colors = _carried_colors(flows, [fusion.n_clusters for fusion in fusions])
    orders = _untangled(flows)
    bottoms = [_stacked(size, order) for size, order in zip(sizes, orders, strict=True)]
    _draw_ribbons(ax, flows, bottoms, orders, colors)
    for x, (size, bottom, color) in enumerate(zip(sizes, bottoms, colors, strict=True)):
        ax.bar(
            np.full(len(size), x),
            size.astype(float),
            0.16,
            bottom,
            color=color,
            edgecolor="white",
            linewidth=0.6,
        )
        for c, fusion_size in enumerate(size[: fusions[x].n_clusters]):
            if fusion_size > 0.02 * len(labels[0]):
                ax.text(
                    x,
                    bottom[c] + fusion_size / 2,
                    str(c),
                    ha="center",
                    va="center",
                    size=8,
                    color=_readable(color[c]),
                )
    _ticks(ax, "x", names)
    ax.set_xlim(-0.25, len(fusions) - 0.75)
    ax.set_xlabel("" if isinstance(results, Mapping) else "number of clusters")
    ax.set_ylabel("instances")
    _counts(ax.yaxis)
    return _tidy(ax)


def plot_embedding(
    result: Any,
    coordinates: ArrayLike | None = None,
    *,
    max_points: int = 20_000,
    random_state: Any = 0,
    ax: Axes | None = None,
) -> Axes:
    """The instances as points in the plane, coloured by cluster.

    .. image:: /gallery/embedding.png

    Parameters
    ----------
    result : Fusion or fitted estimator
        What has the labels, and the ``embedding_`` if no coordinates are given.
    coordinates : array-like of shape (n_instances, n_columns), optional
        Where the instances are, such as their features. More than two columns are turned into their first two
        principal components.
    max_points : int, default=20_000
        Of more instances than this a sample is drawn.
    random_state : int, RandomState or None, default=0
        The seed of the sample. Fixed, so that a picture is the same twice.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_embedding
    >>> fusion = fuse([[0, 0], [0, 0], [1, 1], [1, -1]] * 5, 2, method="PCE", random_state=0)
    >>> ax = plot_embedding(fusion)
    >>> len(ax.collections[0].get_offsets())
    20
    """
    check_parameter("max_points", max_points, Interval(Integral, 1, None, closed="left"), "plot_embedding")
    labels, points = _placed(result, coordinates)
    points, axes_names = _plane(points)
    n = len(labels)
    ax = _axis(ax, (5.6, 4.6))
    # In random order, so that no cluster covers the others.
    shown = random_source(random_state).permutation(n)[:max_points]
    if n > max_points:
        ax.set_title(f"a sample of {max_points:,} of {n:,} instances", size="medium")
    k = int(labels.max()) + 1
    palette = np.array([*cluster_colors(k), _UNASSIGNED])
    size = float(np.clip(20_000 / len(shown), 4, 40))
    ax.scatter(points[shown, 0], points[shown, 1], s=size, c=palette[labels[shown]], linewidths=0, alpha=0.8)
    for c in range(k):
        if (labels == c).any():
            x, y = np.median(points[labels == c], axis=0)
            box = {"boxstyle": "circle,pad=0.2", "facecolor": palette[c], "edgecolor": "white"}
            ax.text(x, y, str(c), ha="center", va="center", size=8, color=_readable(palette[c]), bbox=box)
    ax.set_xlabel(axes_names[0])
    ax.set_ylabel(axes_names[1])
    return _tidy(ax)


def plot_convergence(models: Any, *, ax: Axes | None = None) -> Axes:
    """The objective after every iteration.

    Models of one class are drawn with their own numbers. Different classes have different objectives, so each
    is drawn as the share of its way that is left.

    .. image:: /gallery/convergence.png

    Parameters
    ----------
    models : fitted estimator, Fusion, or a sequence or mapping of names of them
        Each with an ``objective_``.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import PCE
    >>> from consilience.plotting import plot_convergence
    >>> model = PCE(n_clusters=2, random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, -1]] * 5)
    >>> ax = plot_convergence(model)
    >>> len(ax.lines[0].get_ydata()) == model.n_iter_
    True
    """
    named = _models(models)
    ax = _axis(ax, (5.6, 3.6))
    same = len({type(model) for _, model in named}) == 1
    colors = cluster_colors(len(named))
    for (name, model), color in zip(named, colors, strict=True):
        values = _trace(name, model)
        if not same:
            way = values[0] - values[-1]
            values = (values - values[-1]) / way if way else np.zeros(len(values))
        ax.plot(np.arange(1, len(values) + 1), values, ".-", color=color)
    if len(named) > 1:
        _legend(ax, list(zip((name for name, _ in named), colors, strict=True)), None)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("iteration")
    ax.set_ylabel("objective" if same else "objective: share of its way that is left")
    return _tidy(ax)


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
    found = [consensus_distribution(fusion.partitions) for fusion in fusions]
    cdf, area, pac = (np.array([getattr(one, name) for one in found]) for name in ("cdf", "area", "pac"))
    return _Curves(k, cdf, area, pac, None)


def _require_fusion(result: Any, function: str) -> None:
    if not isinstance(result, Fusion):
        raise InputTypeError(
            f"{function} needs a Fusion, got {type(result).__name__}.",
            hint=(
                "pass what fuse(labels, n_clusters) returned; fuse(labels, k, method=PCE()) does it by an "
                "estimator of yours."
            ),
        )


def _share_a_table(fusions: Sequence[Fusion]) -> bool:
    return any(
        np.array_equal(first.partitions.codes, second.partitions.codes) for first, second in pairwise(fusions)
    )


def _table(result: Fusion | Partitions) -> Partitions:
    if not isinstance(result, (Fusion, Partitions)):
        raise InputTypeError(
            f"a Fusion or Partitions is needed, got {type(result).__name__}.", hint="Partitions.of(labels)."
        )
    return result.partitions if isinstance(result, Fusion) else result


def _models(models: Any) -> list[tuple[str, Any]]:
    if isinstance(models, Mapping):
        named = list(models.items())
    elif isinstance(models, Sequence):
        named = [("", model) for model in models]
    else:
        named = [("", models)]
    if not named:
        raise InputError(
            "plot_convergence got no model.", hint="pass a fitted estimator, such as PCE(8).fit(labels)."
        )
    bare = [(name, model.model if isinstance(model, Fusion) else model) for name, model in named]
    return [(str(name) or type(model).__name__, model) for name, model in bare]


def _trace(name: str, model: Any) -> np.ndarray:
    values = np.asarray(getattr(model, "objective_", ()), dtype=float)
    if values.ndim != 1 or not len(values):
        raise InputError(
            f"{name} has no objective_.",
            hint="fit it first; methods that do not iterate, such as graph cuts, have none.",
        )
    return values


def _placed(result: Any, coordinates: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
    """Labels and points of the instances that have a place."""
    model = result.model if isinstance(result, Fusion) else result
    if not isinstance(result, Fusion) and not hasattr(result, "labels_"):
        raise InputError(
            f"{type(result).__name__} has no labels_.", hint="fit it first, or pass what fuse returned."
        )
    labels = np.asarray(result.labels if isinstance(result, Fusion) else result.labels_)
    if coordinates is None:
        if not hasattr(model, "embedding_"):
            raise InputError(
                f"{type(model).__name__} makes no embedding.",
                hint=(
                    "pass coordinates, such as the features, or fuse by a method with one, such as "
                    'method="PCE" or "LWGP".'
                ),
            )
        points = np.asarray(model.embedding_, dtype=float)
        if isinstance(result, Fusion) and len(points) < len(labels):
            labels = labels[result.partitions.seen]  # a model is fitted on the instances that were seen
    else:
        points = np.asarray(coordinates, dtype=float)
    if points.ndim != 2 or not points.size or len(points) != len(labels) or not np.isfinite(points).all():
        raise InputError(
            f"coordinates have shape {points.shape}, but there are {len(labels)} instances, each of which "
            "needs finite numbers.",
            hint="pass a row per instance, in the order of the labels.",
        )
    return labels, points


def _plane(points: np.ndarray) -> tuple[np.ndarray, tuple[str, str]]:
    """Two columns: those that there are, or principal components."""
    if points.shape[1] == 2:
        return points, ("first coordinate", "second coordinate")
    centred = points - points.mean(axis=0)
    # The small side: an embedding has few columns and perhaps a million rows.
    values, vectors = np.linalg.eigh(centred.T @ centred)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1][:, :2]
    vectors = vectors * np.where(
        vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])] < 0, -1, 1
    )
    flat = centred @ vectors
    if flat.shape[1] == 1:
        return np.column_stack([flat, np.zeros(len(flat))]), ("the one coordinate", "")
    shares = values[:2] / max(values.sum(), np.finfo(float).tiny)
    first, second = (
        f"{word} principal component ({share:.0%})"
        for word, share in zip(("first", "second"), shares, strict=True)
    )
    return flat, (first, second)


def _carried_colors(flows: list[np.ndarray], ks: list[int]) -> list[list[str]]:
    """Colours by column: a cluster takes that of its best match in the column before, or one not in use."""
    numbers = [np.arange(ks[0])]
    for flow, before, k in zip(flows, ks, ks[1:], strict=False):
        mine = np.full(k, -1)
        row, column = linear_sum_assignment(-flow[:before, :k])
        mine[column] = numbers[-1][row]
        free = (number for number in range(max(ks)) if number not in mine)
        for c in np.flatnonzero(mine < 0):
            mine[c] = next(free)
        numbers.append(mine)
    palette = cluster_colors(max(ks))
    return [[*(palette[number] for number in column), _UNASSIGNED] for column in numbers]


def _untangled(flows: list[np.ndarray]) -> list[np.ndarray]:
    """An order of the clusters in every column: each at the mean place of where its instances come from."""
    orders = [np.arange(len(flows[0]))]
    for flow in flows:
        place = np.argsort(orders[-1])
        mean = place @ flow / np.maximum(flow.sum(axis=0), 1)
        orders.append(np.argsort(mean, kind="stable"))
    return orders


def _stacked(size: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Where each block begins when they are stacked in an order."""
    start = np.empty(len(size))
    start[order] = np.cumsum(size[order]) - size[order]
    return start


def _draw_ribbons(
    ax: Axes,
    flows: list[np.ndarray],
    bottoms: list[np.ndarray],
    orders: list[np.ndarray],
    colors: list[list[str]],
) -> None:
    bend = np.linspace(0, 1, 25)
    rise = bend**2 * (3 - 2 * bend)
    ribbons, faces = [], []
    for x, flow in enumerate(flows):
        left, right = bottoms[x].copy(), bottoms[x + 1].copy()
        along = x + 0.08 + 0.84 * bend
        for a in orders[x]:
            for b in orders[x + 1]:
                if flow[a, b]:
                    lower = left[a] + (right[b] - left[a]) * rise
                    edge = np.concatenate([lower, lower[::-1] + flow[a, b]])
                    ribbons.append(np.column_stack([np.concatenate([along, along[::-1]]), edge]))
                    faces.append(colors[x + 1][b])
                    left[a] += flow[a, b]
                    right[b] += flow[a, b]
    drawing = optional_import("matplotlib.collections", **_NEEDED)
    ax.add_collection(drawing.PolyCollection(ribbons, facecolors=faces, alpha=0.4, linewidths=0))
    ax.set_ylim(float(flows[0].sum()), 0)


def _draw_dots(ax: Axes, seen: np.ndarray, height: float) -> None:
    """`height` in pixels, from which the size of a dot follows."""
    column, row = np.indices(seen.shape)[:2]
    points = 72 * height / ax.figure.dpi
    side = float(np.clip(0.5 * points / seen.shape[1], 1.5, 9))
    for mask, color in ((~seen, "0.88"), (seen, _INK)):
        ax.scatter(column[mask], row[mask], s=side**2, color=color, linewidths=0)
    for x, bases in enumerate(seen):
        places = np.flatnonzero(bases)
        if len(places) > 1:
            ax.plot([x, x], places[[0, -1]], color=_INK, linewidth=0.15 * side, zorder=0.5)


def _cluster_strip(ax: Axes, cluster: np.ndarray, n_clusters: int) -> None:
    """Colours and numbers of the clusters beside the rows of a heat map."""
    palette = cluster_colors(n_clusters)
    present, start, size = np.unique(cluster, return_index=True, return_counts=True)
    strip = ax.inset_axes((-0.055, 0.0, 0.035, 1.0))
    strip.bar(np.zeros(len(present)), size, 1.0, start - 0.5, color=[palette[c] for c in present])
    strip.set_xlim(-0.5, 0.5)
    strip.set_ylim(len(cluster) - 0.5, -0.5)
    strip.set_xticks([])
    middles = start + size / 2 - 0.5
    shown: list[int] = []
    last = -np.inf
    for place, middle in enumerate(middles):
        if middle - last >= 0.035 * len(cluster):  # numbers nearer to each other would overlap
            shown.append(place)
            last = middle
    strip.set_yticks(middles[shown], [str(c) for c in present[shown]])
    strip.tick_params("y", length=0)
    strip.spines[:].set_visible(False)
    strip.set_ylabel("cluster")
    ax.set_yticks([])


def _color_scale(ax: Axes, image: Any, label: str) -> None:
    ax.figure.colorbar(image, ax=ax, label=label)


def _legend(ax: Axes, entries: list[tuple[str, str]], title: str | None) -> None:
    """Beside the axis: it covers nothing, however many entries there are."""
    patch = optional_import("matplotlib.patches", **_NEEDED).Patch
    shown = entries if len(entries) <= _MOST_IN_LEGEND else entries[: _MOST_IN_LEGEND - 1]
    handles = [patch(facecolor=color) for _, color in shown]
    names = [_text(name) for name, _ in shown]
    if len(shown) < len(entries):
        handles.append(patch(facecolor="none"))
        names.append(f"and {len(entries) - len(shown)} more")
    ax.legend(
        handles,
        names,
        title=title,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        ncols=-(-len(names) // 15),
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        handlelength=1.0,
        columnspacing=1.0,
    )


def _ticks(ax: Axes, axis: str, names: Sequence[str], *, most: int = _MOST_TICKS) -> None:
    """A name at 0, 1, ...; every second, third, ... where there are too many."""
    places = range(0, len(names), -(-len(names) // most))
    size = "medium" if len(names) <= 25 else "x-small"
    set_ticks = ax.set_xticks if axis == "x" else ax.set_yticks
    set_ticks(places, [_text(names[place]) for place in places], size=size)


def _counts(axis: Any, **options: Any) -> None:
    """Whole numbers, short: 500, 20k, 1.5M."""
    axis.get_major_locator().set_params(integer=True, **options)
    axis.set_major_formatter(
        lambda x, _: f"{x / 1e6:g}M" if x >= 1e6 else f"{x / 1e3:g}k" if x >= 1e4 else f"{x:g}"
    )


def _over_k(ax: Axes, k: np.ndarray, chosen: int | None) -> Axes:
    if chosen is not None and chosen in k:
        ax.axvline(chosen, color=_MARK, linewidth=1.0, linestyle=":")
        ax.annotate(
            "chosen",
            (chosen, 1.0),
            (3, -10),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=_MARK,
            size=8,
        )
    ax.set_xlim(k[0] - 0.5, k[-1] + 0.5)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("number of clusters")
    return _tidy(ax)


def _alike(table: np.ndarray) -> np.ndarray:
    """An order of the bases that puts like ones next to each other."""
    if len(table) < 3:
        return np.arange(len(table))
    distance = 1.0 - np.clip(np.nan_to_num(table), 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    return np.asarray(leaves_list(linkage(squareform(distance, checks=False), "average")))


def _text(name: str) -> str:
    """A name from the user's data as matplotlib shows it: one line, no mathematics, not too long."""
    line = "".join(letter if letter.isprintable() else " " for letter in str(name))
    if len(line) > _LONGEST_NAME:
        # From the middle: long names often differ at their ends only.
        kept = _LONGEST_NAME // 2
        line = line[: kept - 1] + "\N{HORIZONTAL ELLIPSIS}" + line[-kept:]
    # Dollars would begin mathematics, and a legend leaves out what begins with an underscore.
    return (" " if line.startswith("_") else "") + line.replace("$", r"\$")


def _instances(size: np.ndarray) -> str:
    n, cells = int(size.sum()), len(size)
    return f"{n:,} instances{f' in {cells} cells' if cells < n else ''}, sorted by cluster"


def _ramp(n: int) -> list[str]:
    """Colours of increasing lightness."""
    stops = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in _VIRIDIS])
    places = np.linspace(0, len(stops) - 1, n)
    channels = [np.interp(places, np.arange(len(stops)), channel) for channel in stops.T]
    return ["#{:02X}{:02X}{:02X}".format(*map(round, rgb)) for rgb in zip(*channels, strict=True)]


def _readable(color: str) -> str:
    """Black or white, whichever stands out against a colour."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "white"


def _heat() -> Any:
    return optional_import("matplotlib", **_NEEDED).colormaps["Blues"].with_extremes(bad=_UNKNOWN)


def _height(m: int) -> float:
    """Inches for a list of m names."""
    return float(np.clip(0.24 * m + 1.2, 2.6, 10.0))


def _axis(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    return optional_import("matplotlib.pyplot", **_NEEDED).subplots(figsize=size, layout="constrained")[1]


def _tidy(ax: Axes) -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    return ax
