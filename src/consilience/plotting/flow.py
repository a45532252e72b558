"""Where instances go from a base clustering to the consensus, and from one month to the next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from consilience._support.errors import InputError
from consilience.diagnostics import cluster_flow
from consilience.plotting._inputs import base_cluster_colors, chosen_bases, require_fusion
from consilience.plotting._style import UNASSIGNED, axis_or_new, cluster_colors, name_ticks, shown_name
from consilience.plotting.tracking import draw_flows
from consilience.results import Fusion
from consilience.results.following import aligned, read_earlier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALLEST_NAMED = 0.018  # of all instances: names of smaller blocks would overlap


class _Column(NamedTuple):
    """Blocks of one column. After those that have names comes the rest, if there is any."""

    title: str
    labels: np.ndarray
    names: list[str]
    colors: list[str]
    rest: str  # what those are called who are in none of the blocks


def plot_flow(
    fusion: Fusion,
    bases: str | Sequence[str] | None = None,
    *,
    earlier: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Where instances go: from the labels of base clusterings to the clusters, or from an earlier result.

    A block is a label or a cluster, a ribbon the instances that two neighbouring blocks share. A label has
    the colour of the cluster that most of its members are in; who was not seen is grey.

    .. image:: /gallery/flow.png
    .. image:: /gallery/flow-months.png

    Parameters
    ----------
    fusion : Fusion
        What `fuse` returned; its clusters are the last column.
    bases : str or sequence of str, optional
        The base clusterings before it, from left to right. None is the one that agrees best, unless there is
        an earlier result.
    earlier : Fusion, or what `Fusion.like` takes, optional
        An earlier result: its clusters are the first column, with who came since, and the last column has
        who is gone. Colours are numbers of clusters if the result was made `like` an earlier one.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_flow
    >>> fusion = fuse({"a": ["x", "x", "y", None] * 5, "b": [1, 1, 2, 2] * 5}, 2, random_state=0)
    >>> ax = plot_flow(fusion, "a")
    >>> [text.get_text() for text in ax.texts]
    ['x (10)', 'y (5)', 'not seen (5)', '0 (10)', '1 (10)']
    """
    require_fusion(fusion, "plot_flow")
    if earlier is not None and bases is not None:
        raise InputError(
            "plot_flow draws base clusterings or an earlier result, not both.",
            hint="call it twice, with an axis each.",
        )
    columns = _of_bases(fusion, bases) if earlier is None else _of_months(fusion, earlier)
    ax = axis_or_new(ax, (2.2 * len(columns) + 2.2, 4.8))
    flows = [cluster_flow(a.labels, b.labels) for a, b in pairwise(columns)]
    colors = [[*column.colors, UNASSIGNED] for column in columns]
    bottoms = draw_flows(ax, flows, _orders(flows, columns), colors)
    sizes = [flows[0].sum(axis=1), *(flow.sum(axis=0) for flow in flows)]
    n = int(sizes[0].sum())
    for x, (column, size, bottom) in enumerate(zip(columns, sizes, bottoms, strict=True)):
        at, side = (x - 0.11, "right") if x == 0 else (x + 0.11, "left")
        inside = 0 < x < len(columns) - 1
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.65, "pad": 1} if inside else None
        names = [*map(shown_name, column.names), column.rest]
        for block in np.flatnonzero(size >= max(_SMALLEST_NAMED * n, 1)):
            name = f"{names[block]} ({size[block]:,})"
            middle = bottom[block] + size[block] / 2
            ax.text(at, middle, name, ha=side, va="center", size="small", bbox=box)
    name_ticks(ax, "x", [column.title for column in columns])
    ax.tick_params("x", length=0)
    ax.set_xlim(-0.1, len(columns) - 0.9)
    ax.set_yticks([])
    ax.set_xlabel("a ribbon is as wide as the instances that two blocks share", size="small", color="0.35")
    ax.spines[:].set_visible(False)
    return ax


def _orders(flows: list[np.ndarray], columns: list[_Column]) -> list[np.ndarray]:
    """The last column as it is; in those before, a block stands where most of its instances go.

    Who was not seen, came or went stands below all others.
    """
    orders = [np.arange(flows[-1].shape[1])]
    for (before, after), flow in zip(list(pairwise(columns))[::-1], flows[::-1], strict=True):
        most = flow[:, : len(after.names)].argmax(axis=1)
        place = np.argsort(orders[0])[most].astype(float)
        place[len(before.names) :] = np.inf
        orders.insert(0, np.argsort(place, kind="stable"))
    return orders


def _of_bases(fusion: Fusion, bases: str | Sequence[str] | None) -> list[_Column]:
    require_fusion(fusion, "plot_flow", labels=True)
    partitions = fusion.partitions
    palette = cluster_colors(fusion.n_numbers)
    best = partitions.names[int(np.nanargmax(fusion.agreement[: len(partitions.names)]))]
    columns = []
    stands_for = base_cluster_colors(fusion)
    for j in chosen_bases(partitions, best if bases is None else bases, "plot_flow"):
        codes, categories = partitions.codes[:, j], partitions.categories[j]
        labels = np.where(codes < 0, len(categories), codes)
        colors = [palette[c] for c in stands_for[j]]
        columns.append(_Column(partitions.names[j], labels, list(map(str, categories)), colors, "not seen"))
    if not columns:
        raise InputError("plot_flow got no base clustering.", hint=f"bases={best!r}, or leave it out.")
    last = np.where(fusion.labels < 0, fusion.n_numbers, fusion.labels)
    return [*columns, _Column("consensus", last, list(fusion.names), palette, "unassigned")]


def _of_months(fusion: Fusion, earlier: Any) -> list[_Column]:
    read = read_earlier(earlier, fusion.partitions.index_name)
    before = aligned(read, fusion.partitions)
    k, k_before = fusion.n_numbers, int(read.labels.max()) + 1
    sizes = [np.bincount(labels[labels >= 0], minlength=k_before) for labels in (read.labels, before)]
    gone = np.repeat(np.arange(k_before), np.maximum(sizes[0] - sizes[1], 0))
    first = np.concatenate([np.where(before < 0, k_before, before), gone])
    last = np.concatenate([np.where(fusion.labels < 0, k, fusion.labels), np.full(len(gone), k)])
    palette = cluster_colors(max(k, k_before))
    if fusion.changes is not None:
        colors = palette[:k_before]
    else:
        shared = cluster_flow(first, last)[:k_before, :k]
        colors = [palette[c] for c in shared.argmax(axis=1)]
    names = [read.names.get(c, str(c)) for c in range(k_before)]
    return [
        _Column("before", first, names, colors, "new"),
        _Column("now", last, list(fusion.names), palette[:k], "gone"),
    ]
