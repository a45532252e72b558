"""Where instances go when the number of clusters changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from consilience._support.errors import InputError
from consilience._support.optional import optional_import
from consilience.diagnostics import cluster_flow
from consilience.plotting._style import (
    NEEDED,
    UNASSIGNED,
    axis_or_new,
    cluster_colors,
    count_ticks,
    name_ticks,
    readable_on,
    tidy,
)
from consilience.results import Fusion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    ax = axis_or_new(ax, (1.2 * len(fusions) + 1.5, 4.6))
    # Unassigned instances are one more cluster, the last.
    labels = [np.where(fusion.labels < 0, fusion.n_numbers, fusion.labels) for fusion in fusions]
    flows = [cluster_flow(a, b) for a, b in pairwise(labels)]
    sizes = [flows[0].sum(axis=1), *(flow.sum(axis=0) for flow in flows)]
    colors = _carried_colors(flows, [fusion.n_numbers for fusion in fusions])
    bottoms = draw_flows(ax, flows, _untangled(flows), colors)
    for x, (size, bottom, color) in enumerate(zip(sizes, bottoms, colors, strict=True)):
        for c, fusion_size in enumerate(size[: fusions[x].n_numbers]):
            if fusion_size > 0.02 * len(labels[0]):
                ax.text(
                    x,
                    bottom[c] + fusion_size / 2,
                    str(c),
                    ha="center",
                    va="center",
                    size=8,
                    color=readable_on(color[c]),
                )
    name_ticks(ax, "x", names)
    ax.set_xlim(-0.25, len(fusions) - 0.75)
    ax.set_xlabel("" if isinstance(results, Mapping) else "number of clusters")
    ax.set_ylabel("instances")
    count_ticks(ax.yaxis)
    return tidy(ax)


def draw_flows(
    ax: Axes, flows: list[np.ndarray], orders: list[np.ndarray], colors: list[list[str]]
) -> list[np.ndarray]:
    """Columns of blocks in these orders, ribbons between them; returns where each block begins."""
    sizes = [flows[0].sum(axis=1), *(flow.sum(axis=0) for flow in flows)]
    bottoms = [_stacked(size, order) for size, order in zip(sizes, orders, strict=True)]
    _draw_ribbons(ax, flows, bottoms, orders, colors)
    for x, (size, bottom, color) in enumerate(zip(sizes, bottoms, colors, strict=True)):
        block: dict[str, Any] = {"color": color[: len(size)], "edgecolor": "white", "linewidth": 0.6}
        ax.bar(np.full(len(size), x), size.astype(float), 0.16, bottom, **block)
    return bottoms


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
    return [[*(palette[number] for number in column), UNASSIGNED] for column in numbers]


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
    drawing = optional_import("matplotlib.collections", **NEEDED)
    ax.add_collection(drawing.PolyCollection(ribbons, facecolors=faces, alpha=0.4, linewidths=0))
    ax.set_ylim(float(flows[0].sum()), 0)
