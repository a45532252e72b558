"""How the base clusterings agree about instances, sorted by cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consilience.diagnostics import consensus_map, membership
from consilience.fusion import Fusion
from consilience.plotting._inputs import require_fusion
from consilience.plotting._style import axis_or_new, cluster_colors, color_scale, heat_colors, name_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    require_fusion(fusion, "plot_consensus")
    ax = axis_or_new(ax, (6.4, 4.8))
    order = fusion.diagnostics.item_consensus
    found = consensus_map(fusion.partitions, fusion.labels, order=order, max_cells=max_cells)
    unknown = np.isnan(found.coassociation).any()
    image = ax.imshow(found.coassociation, cmap=heat_colors(), vmin=0, vmax=1, interpolation="nearest")
    meaning = "share of base clusterings that put both in one cluster"
    color_scale(ax, image, meaning + ("\n(beige: never seen together)" if unknown else ""))
    _cluster_strip(ax, found.cluster, fusion.n_numbers)
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
    require_fusion(fusion, "plot_membership")
    ax = axis_or_new(ax, (5.6, 4.8))
    order = fusion.diagnostics.item_consensus
    found = membership(fusion.partitions, fusion.labels, order=order, max_cells=max_cells)
    image = ax.imshow(
        found.support, cmap=heat_colors(), vmin=0, vmax=1, interpolation="nearest", aspect="auto"
    )
    color_scale(ax, image, "support: labels shared with the members")
    _cluster_strip(ax, found.cluster, fusion.n_numbers)
    name_ticks(ax, "x", [str(c) for c in range(found.support.shape[1])], most=20)
    ax.set_xlabel(f"cluster that is supported\n{_instances(found.size)}")
    return ax


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


def _instances(size: np.ndarray) -> str:
    n, cells = int(size.sum()), len(size)
    return f"{n:,} instances{f' in {cells} cells' if cells < n else ''}, sorted by cluster"
