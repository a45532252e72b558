"""The levels of a result as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consilience._support.errors import InputTypeError
from consilience.plotting._style import INK, UNASSIGNED, axis_or_new, cluster_colors, name_ticks, tidy
from consilience.results import Levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_levels(levels: Levels, *, ax: Axes | None = None) -> Axes:
    """Coarser and finer clusters of a result, and which splits sources support.

    .. image:: /gallery/levels.png

    Parameters
    ----------
    levels : Levels
        What ``fusion.levels()`` returned.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis
        From one cluster at the top to the finest level at the bottom. A split is a horizontal line at its
        number of clusters: solid if sources support it, dashed if it may be chance. The dotted line is the
        level of the result.

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_levels
    >>> said = [0, 0, 1, 1, 2, 2] * 5
    >>> ax = plot_levels(fuse({name: said for name in "abc"}, 3, random_state=0).levels())
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['0 (10)', '1 (10)', '2 (10)']
    """
    if not isinstance(levels, Levels):
        raise InputTypeError(
            f"plot_levels needs Levels, got {type(levels).__name__}.",
            hint="pass what fusion.levels() returned.",
        )
    nodes, bottom = levels.tree, levels.k_max + 0.5
    leaves = [node for node in nodes if node.split is None]
    ax = axis_or_new(ax, (max(4.0, 0.7 * len(leaves)), max(3.0, 0.35 * levels.k_max)))
    colors = cluster_colors(max(node.cluster for node in nodes) + 1)
    place: dict[int, float] = {}  # of every node, by its position in the tree
    for at in range(len(nodes) - 1, -1, -1):
        node = nodes[at]
        if node.split is None:
            place[at] = float(leaves.index(node))
        else:
            place[at] = (place[node.children[0]] + place[node.children[1]]) / 2.0
    for at, node in enumerate(nodes):
        end = bottom if node.split is None else node.split.k
        ax.plot([place[at]] * 2, [node.level, end], color=colors[node.cluster], linewidth=2.5)
        if node.split is not None:
            a, b = (place[child] for child in node.children)
            style = "-" if node.split.supported else "--"
            ax.plot([a, b], [end, end], color=INK if node.split.supported else UNASSIGNED, linestyle=style)
    ax.axhline(levels.n_clusters + 0.25, color="0.5", linewidth=0.8, linestyle=":")
    ax.set_ylim(bottom, 0.8)
    ax.set_xlim(-0.5, len(leaves) - 0.5)
    ax.set_xlabel("cluster (instances)")
    ax.set_ylabel("clusters")
    ax.set_yticks(range(1, levels.k_max + 1, max(1, levels.k_max // 10)))
    names = levels.fusion.names
    called = [names[n.cluster] if n.cluster < len(names) else str(n.cluster) for n in leaves]
    name_ticks(ax, "x", [f"{name} ({node.size})" for name, node in zip(called, leaves, strict=True)])
    tidy(ax)
    return ax
