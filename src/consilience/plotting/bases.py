"""The base clusterings and the views: agreement, weight, and what they saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from consilience._support.errors import InputTypeError
from consilience.diagnostics import missing_patterns, pairwise_agreement
from consilience.evidence.partitions import Partitions
from consilience.plotting._inputs import partitions_of, require_fusion
from consilience.plotting._style import (
    INK,
    MARK,
    axis_or_new,
    color_scale,
    count_ticks,
    heat_colors,
    height_of,
    name_ticks,
    tidy,
)
from consilience.results import Fusion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    require_fusion(fusion, "plot_bases", labels=True)
    bases = fusion.diagnostics.bases
    m = len(bases.names)
    ax = axis_or_new(ax, (6.4, height_of(m)))
    ax.set_axis_off()
    agreement = ax.inset_axes((0.0, 0.0, 0.58, 1.0))
    weight = ax.inset_axes((0.64, 0.0, 0.36, 1.0))
    first = np.argsort(-bases.agreement, kind="stable")
    agreement.barh(np.arange(m), bases.agreement[first], 0.8, color=INK)
    agreement.set_xlim(0, 1)
    agreement.set_xlabel("agreement with the consensus\n(adjusted mutual information)")
    name_ticks(agreement, "y", [bases.names[j] for j in first])
    weight.barh(np.arange(m), bases.weights[first], 0.8, color=MARK)
    weight.set_xlim(0, 1.05 * float(bases.weights.max()))
    weight.axvline(1.0, color="0.3", linewidth=0.8, linestyle="--")
    weight.set_xlabel("weight\n(dashed: average)")
    weight.set_yticks([])
    for panel in (agreement, weight):
        panel.set_ylim(m - 0.5, -0.5)
        tidy(panel)
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
    names, table = pairwise_agreement(partitions_of(result, "plot_base_agreement"))
    m = len(names)
    side = float(np.clip(0.36 * m + 2.0, 4.0, 9.0))
    ax = axis_or_new(ax, (1.15 * side + 0.6, side))
    first = _alike(table)
    table = table[np.ix_(first, first)]
    image = ax.imshow(table, cmap=heat_colors(), vmin=0, vmax=1, interpolation="nearest")
    unknown = np.isnan(table).any()
    meaning = "adjusted mutual information" + ("\n(beige: no instance in common)" if unknown else "")
    color_scale(ax, image, meaning)
    shown = [names[j] for j in first]
    name_ticks(ax, "y", shown, most=40)
    name_ticks(ax, "x", shown, most=40)
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


def plot_views(fusion: Fusion, *, ax: Axes | None = None) -> Axes:
    """How strongly each view supports each cluster, as a heat map.

    A cell says how far the neighbours of a cluster's members in that view are in the cluster too: 0 as by
    chance, 1 all of them. Some views see only some of the clusters; a view of low numbers throughout says
    little.

    .. image:: /gallery/views.png

    Parameters
    ----------
    fusion : Fusion
        What `fuse_views` returned, by its default method.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> import numpy as np
    >>> from consilience import fuse_views
    >>> from consilience.plotting import plot_views
    >>> rng = np.random.default_rng(0)
    >>> kind = np.repeat([0, 1, 2], 30)
    >>> views = {name: rng.normal(5 * rng.normal(size=(3, 4))[kind]) for name in ("size", "colour")}
    >>> ax = plot_views(fuse_views(views, 3, random_state=0))
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['size', 'colour']
    """
    require_fusion(fusion, "plot_views")
    if fusion.view_diagnostics is None:
        raise InputTypeError(
            f"{fusion.method} does not say how views support clusters.",
            hint="use the default method of fuse_views.",
        )
    names = [view.name for view in fusion.views]
    table = fusion.view_support
    m, k = table.shape
    ax = axis_or_new(ax, (float(np.clip(0.45 * k + 2.5, 4.0, 12.0)), height_of(m) + 0.6))
    image = ax.imshow(table, cmap=heat_colors(), vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    unknown = "\n(beige: fewer than two members)" if np.isnan(table).any() else ""
    color_scale(ax, image, "support of the cluster" + unknown)
    name_ticks(ax, "y", names, most=40)
    name_ticks(ax, "x", [str(c) for c in range(k)], most=40)
    ax.set_xlabel("cluster")
    if k <= 12 and m <= 20:
        for (v, c), value in np.ndenumerate(table):
            text, color = ("-", "black") if np.isnan(value) else (f"{value:.2f}", "white")
            ax.text(c, v, text, color=color if value > 0.55 else "black", ha="center", va="center", size=8)
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
    partitions = result.opinions if isinstance(result, Fusion) else partitions_of(result, "plot_missing")
    found = missing_patterns(partitions, max_patterns=max_patterns)
    n_patterns, m = found.seen.shape
    ax = axis_or_new(ax, (6.4, height_of(m) + 1.6))
    ax.set_axis_off()
    share = float(np.clip(m / (m + 6), 0.25, 0.75))
    above = ax.inset_axes((0.0, share + 0.03, 0.72, 0.97 - share))
    dots = ax.inset_axes((0.0, 0.0, 0.72, share))
    beside = ax.inset_axes((0.76, 0.0, 0.24, share))
    above.bar(np.arange(n_patterns), found.size.astype(float), 0.7, color=INK)
    above.set_ylabel("instances")
    above.set_xticks([])
    count_ticks(above.yaxis)
    beside.barh(np.arange(m), found.n_seen.astype(float), 0.7, color="0.45")
    beside.set_xlim(0, partitions.n_instances)
    beside.set_xlabel("instances seen")
    beside.set_yticks([])
    count_ticks(beside.xaxis, nbins=3)
    _draw_dots(dots, found.seen, share * ax.get_window_extent().height)
    name_ticks(dots, "y", found.names)
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
        tidy(panel)
    dots.spines[:].set_visible(False)
    dots.tick_params("y", length=0)
    return ax


def _draw_dots(ax: Axes, seen: np.ndarray, height: float) -> None:
    """`height` in pixels, from which the size of a dot follows."""
    column, row = np.indices(seen.shape)[:2]
    points = 72 * height / ax.figure.dpi
    side = float(np.clip(0.5 * points / seen.shape[1], 1.5, 9))
    for mask, color in ((~seen, "0.88"), (seen, INK)):
        ax.scatter(column[mask], row[mask], s=side**2, color=color, linewidths=0)
    for x, bases in enumerate(seen):
        places = np.flatnonzero(bases)
        if len(places) > 1:
            ax.plot([x, x], places[[0, -1]], color=INK, linewidth=0.15 * side, zorder=0.5)


def _alike(table: np.ndarray) -> np.ndarray:
    """An order of the bases that puts like ones next to each other."""
    if len(table) < 3:
        return np.arange(len(table))
    distance = 1.0 - np.clip(np.nan_to_num(table), 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    return np.asarray(leaves_list(linkage(squareform(distance, checks=False), "average")))
