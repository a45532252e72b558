"""How far an answer stays the same with other instances and sources, and which clusters are found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consilience._support.errors import InputTypeError
from consilience.plotting._style import (
    INK,
    UNASSIGNED,
    axis_or_new,
    cluster_colors,
    height_of,
    name_ticks,
    tidy,
)
from consilience.results import Stability
from consilience.results.stability import STABLE, UNCERTAIN, what_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_stability(stability: Stability, *, ax: Axes | None = None) -> Axes:
    """How far refits agree with the answer, what it is without each source, and which clusters hold.

    .. image:: /gallery/stability.png

    Parameters
    ----------
    stability : Stability
        What ``fusion.stability()`` returned.
    ax : matplotlib axis, optional
        Where to draw two panels; None is a new figure.

    Returns
    -------
    ax : matplotlib axis
        Its ``child_axes`` are the panels: the adjusted Rand index of refits, by what they were fitted to,
        with a dot for each; and the Jaccard index of every cluster, the smaller mean as a bar. Dashed: from
        where on it is uncertain, and stable.

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_stability
    >>> fusion = fuse({name: [0, 0, 1, 1] * 5 for name in "abc"}, 2, random_state=0)
    >>> ax = plot_stability(fusion.stability(n_resamples=2))
    >>> [tick.get_text() for tick in ax.child_axes[0].get_yticklabels()]
    ['80% of the instances', 'without a', 'without b', 'without c']
    """
    if not isinstance(stability, Stability):
        raise InputTypeError(
            f"plot_stability needs a Stability, got {type(stability).__name__}.",
            hint="pass what fusion.stability() returned.",
        )
    kinds = [part for part in stability.parts if part.part != "left out"]
    left = [one for one in stability.left_out if not one.problem]
    names = [what_of(part.part, stability.share, stability.noun) for part in kinds]
    names += [f"without {one.source}" for one in left]
    values = np.array([part.ari for part in kinds] + [one.ari for one in left])
    ax = axis_or_new(ax, (8.0, height_of(max(len(names), len(stability.clusters)))))
    ax.set_axis_off()
    refits = ax.inset_axes((0.0, 0.0, 0.46, 1.0))
    clusters = ax.inset_axes((0.56, 0.0, 0.44, 1.0))
    colors = [INK] * len(kinds) + [UNASSIGNED] * len(left)
    refits.barh(np.arange(len(names)), np.nan_to_num(values), 0.7, color=colors)
    for row, part in enumerate(kinds):
        dots = [one.ari for one in stability.refits if one.part == part.part and not one.problem]
        refits.plot(dots, np.full(len(dots), row), ".", color="0.2", markersize=4)
    refits.set_xlabel("adjusted Rand index with the answer")
    name_ticks(refits, "y", names)
    every = cluster_colors(max(one.cluster for one in stability.clusters) + 1)
    held = np.array([_judged(one.instances, one.sources, one.lowest) for one in stability.clusters])
    places = np.arange(len(held))
    chosen = [every[one.cluster] for one in stability.clusters]
    clusters.barh(places, np.nan_to_num(held), 0.7, color=chosen)
    for limit in (UNCERTAIN, STABLE):
        clusters.axvline(limit, color="0.3", linewidth=0.8, linestyle="--")
    clusters.set_xlabel("Jaccard index with the nearest cluster")
    name_ticks(clusters, "y", [one.name for one in stability.clusters])
    for panel, n in ((refits, len(names)), (clusters, len(held))):
        panel.set_xlim(min(0.0, float(np.nanmin(values, initial=0.0))) if panel is refits else 0.0, 1.0)
        panel.set_ylim(n - 0.5, -0.5)
        tidy(panel)
    return ax


def _judged(*means: float) -> float:
    """The smaller mean of those that there are, else the lowest value."""
    known = [value for value in means[:2] if not np.isnan(value)]
    return min(known) if known else means[2]
