"""What each source calls the clusters, as a table of colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from consilience._support.errors import InputTypeError
from consilience.plotting._style import axis_or_new, height_of, name_ticks, tidy
from consilience.results import Fusion
from consilience.results.rosetta import LEGEND, rosetta

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The same is darkest, what is undecided or not seen is blank.
_SHADES = {"=": 0.85, "<": 0.6, ">": 0.6, "~": 0.3, "?": 0.0, "-": 0.0}
_LONGEST = 18  # characters of a cell


def plot_rosetta(fusion: Fusion, *, ax: Axes | None = None) -> Axes:
    """What each source calls the clusters: a row per cluster, a column per source, a word in each cell.

    .. image:: /gallery/rosetta.png

    Parameters
    ----------
    fusion : Fusion
        A result of labels.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis
        The stronger the relation, the darker the cell: the same, part of or consisting of, overlapping. Signs
        as in :meth:`consilience.Fusion.rosetta`.

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.plotting import plot_rosetta
    >>> said = {"a": ["x", "x", "y", "y"] * 10, "b": ["p", "p", "q", "q"] * 10}
    >>> ax = plot_rosetta(fuse(said, 2, named_after="a", random_state=0))
    >>> [text.get_text() for text in ax.texts]
    ['= x', '= p', '= y', '= q']
    """
    if not isinstance(fusion, Fusion):
        raise InputTypeError(
            f"plot_rosetta needs a Fusion, got {type(fusion).__name__}.", hint="pass what fuse returned."
        )
    fusion._require_labels("a picture of what sources call clusters")
    found = rosetta(fusion)
    ax = axis_or_new(ax, (1.6 + 1.5 * len(found.sources), height_of(len(found.clusters))))
    shades = np.array([[_SHADES[cell[0]] for cell in row] for row in found.cells])
    ax.imshow(shades, cmap="Blues", vmin=0.0, vmax=1.2, aspect="auto")
    for row, cells in enumerate(found.cells):
        for column, cell in enumerate(cells):
            short = cell if len(cell) <= _LONGEST else f"{cell[: _LONGEST - 1]}…"
            ink = "white" if shades[row, column] > 0.7 else "0.1"
            ax.text(column, row, short, ha="center", va="center", color=ink, fontsize=8)
    name_ticks(ax, "x", list(found.sources))
    name_ticks(ax, "y", list(found.clusters))
    ax.set_xlabel(LEGEND, fontsize=7)
    ax.set_ylabel("cluster")
    tidy(ax)
    return ax
