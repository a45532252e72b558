"""How the base clusterings agree about instances, sorted by cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from consilience._support.optional import optional_import
from consilience.core.linkage import average_linkage
from consilience.diagnostics import consensus_map, membership
from consilience.plotting._inputs import base_cluster_colors, chosen_bases, require_fusion
from consilience.plotting._style import (
    NEEDED,
    UNASSIGNED,
    axis_or_new,
    cluster_colors,
    color_scale,
    heat_colors,
    name_ticks,
    tidy,
)
from consilience.results import Fusion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_consensus(
    fusion: Fusion, *, max_cells: int = 200, bases: bool | Sequence[str] = False, ax: Axes | None = None
) -> Axes:
    """How often any two instances are in one base cluster, as a heat map sorted by cluster.

    Dark squares on the diagonal are clusters that the base clusterings agree on. A square that is pale, or
    dark beside the diagonal, is a cluster that they do not. Inside a cluster, instances that agree most with
    the others come first. It is drawn from :func:`consilience.diagnostics.consensus_map`.

    .. image:: /gallery/consensus.png
    .. image:: /gallery/consensus-bases.png

    Parameters
    ----------
    fusion : Fusion
        What `fuse` returned.
    max_cells : int, default=200
        The most cells on a side; a cell is one or more instances of one cluster.
    bases : bool or sequence of str, default=False
        Above the map, a bar for every base clustering (or for those named): what it said of each cell, in
        the colour of the cluster that most members of that base cluster are in, and white where it saw none.
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
    require_fusion(fusion, "plot_consensus", labels=True)
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
    if bases is not False and len(chosen := chosen_bases(fusion.partitions, bases, "plot_consensus")):
        _base_bars(ax, fusion, found.base_labels, chosen)
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
    require_fusion(fusion, "plot_membership", labels=True)
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


def plot_dendrogram(fusion: Fusion, *, max_leaves: int = 60, ax: Axes | None = None) -> Axes:
    """The clusters as a tree: which parts of them, and which of them, are most alike.

    Average linkage of the co-association. A leaf is one instance, or a group of one cluster that agrees
    about equally with the rest of it, where there are more instances than leaves. A branch has the colour of
    a cluster as long as all its leaves are in it. Where a grey branch joins parts of two clusters far below
    the top, the base clusterings do not keep these clusters apart.

    .. image:: /gallery/dendrogram.png

    Parameters
    ----------
    fusion : Fusion
        What `fuse` returned.
    max_leaves : int, default=60
        The most leaves; every cluster has at least one.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_dendrogram
    >>> ax = plot_dendrogram(fuse([[0, 0], [0, 0], [1, 1], [1, -1]] * 5, 2, random_state=0), max_leaves=4)
    >>> ax.get_ylabel()
    'mean co-association'
    """
    require_fusion(fusion, "plot_dendrogram", labels=True)
    ax = axis_or_new(ax, (7.2, 4.2))
    order = fusion.diagnostics.item_consensus
    found = consensus_map(fusion.partitions, fusion.labels, order=order, max_cells=max_leaves)
    similarity = found.coassociation.copy()
    unknown = np.isnan(similarity)
    # Never seen together: as alike as the average, which is where such a pair is expected.
    similarity[unknown] = similarity[~unknown].mean() if not unknown.all() else 0.0
    merges = average_linkage(similarity, found.size)
    palette = cluster_colors(fusion.n_numbers)
    leaves, lines, colors = _tree(merges, found.cluster, palette)
    collections = optional_import("matplotlib.collections", **NEEDED)
    ax.add_collection(collections.LineCollection(lines, colors=colors, linewidths=1.4, capstyle="projecting"))
    strip = ax.inset_axes((0.0, -0.06, 1.0, 0.045))
    strip.bar(np.arange(len(leaves)), 1.0, 1.0, color=[palette[c] for c in found.cluster[leaves]])
    strip.set_xlim(-0.5, len(leaves) - 0.5)
    strip.set_ylim(0, 1)
    strip.set_yticks([])
    ends = np.flatnonzero(np.diff(found.cluster[leaves], append=-1)) + 1  # of runs of one cluster
    starts = np.concatenate([[0], ends[:-1]])
    wide = ends - starts >= 0.02 * len(leaves)
    strip.set_xticks((starts + ends - 1)[wide] / 2, [str(c) for c in found.cluster[leaves][starts[wide]]])
    strip.tick_params("x", length=0)
    strip.spines[:].set_visible(False)
    n = int(found.size.sum())
    grouped = f" in {len(leaves)} leaves" if len(leaves) < n else ""
    strip.set_xlabel(f"{n:,} instances{grouped}; colours and numbers are clusters")
    ax.set_xlim(-0.5, len(leaves) - 0.5)
    ax.set_ylim(1.0, min(0.0, float(similarity.min())) - 0.02)
    ax.set_xticks([])
    ax.set_ylabel("mean co-association")
    ax.spines["bottom"].set_visible(False)
    return tidy(ax)


def _tree(
    merges: np.ndarray, cluster: np.ndarray, palette: list[str]
) -> tuple[np.ndarray, list[np.ndarray], list[str]]:
    """Leaves from left to right, and a line with its colour for every merge.

    Of two branches the one whose leaves come first in the order of the clusters is on the left.
    """
    n = len(cluster)
    members = [np.array([leaf]) for leaf in range(n)]
    inside = list(cluster)  # the cluster of all leaves of a branch, -1 for several
    for a, b in merges[:, :2].astype(int):
        first, second = sorted((members[a], members[b]), key=lambda part: float(np.mean(part)))
        members.append(np.concatenate([first, second]))
        inside.append(inside[a] if inside[a] == inside[b] else -1)
    leaves = members[-1]
    x = np.empty(len(members))
    x[leaves] = np.arange(n)
    height = np.concatenate([np.ones(n), merges[:, 2]])
    lines, colors = [], []
    for node, (a, b) in enumerate(merges[:, :2].astype(int), start=n):
        a, b = sorted((a, b), key=lambda part: x[part])
        x[node] = (x[a] + x[b]) / 2
        top = height[node]
        lines.append(np.array([[x[a], height[a]], [x[a], top], [x[b], top], [x[b], height[b]]]))
        colors.append(palette[inside[node]] if inside[node] >= 0 else UNASSIGNED)
    return leaves, lines, colors


def _base_bars(ax: Axes, fusion: Fusion, base_labels: np.ndarray, chosen: list[int]) -> None:
    """What base clusterings said of the cells, above a heat map."""
    colors = optional_import("matplotlib.colors", **NEEDED)
    palette = colors.to_rgb("white"), *map(colors.to_rgb, cluster_colors(fusion.n_numbers))
    stands_for = base_cluster_colors(fusion)
    shown = np.column_stack([np.append(stands_for[j], -1)[base_labels[:, j]] for j in chosen])
    height = min(0.035 * len(chosen), 0.6)
    bars = ax.inset_axes((0.0, 1.015, 1.0, height))
    bars.imshow(np.array(palette)[shown.T + 1], aspect="auto", interpolation="nearest")
    bars.set_xticks([])
    name_ticks(bars, "y", [fusion.partitions.names[j] for j in chosen], most=round(height / 0.035))
    bars.tick_params("y", length=0, labelsize="x-small")
    for border in range(1, len(chosen)):
        bars.axhline(border - 0.5, color="white", linewidth=1.0)
    bars.spines[:].set_visible(False)


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
