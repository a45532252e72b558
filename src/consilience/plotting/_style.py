"""Colours, axes, ticks and legends that all pictures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience._support.optional import optional_import

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
UNASSIGNED = "#B0B0B0"
_UNKNOWN = "#E3D9CE"  # in heat maps, where there is no number: on no colour of the map
INK, MARK = "#0072B2", "#D55E00"
_LONGEST_NAME = 24
_MOST_TICKS = 60
_MOST_IN_LEGEND = 45
NEEDED = {"needed_for": "plotting", "extra": "plot"}


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
    ramp = lightness_ramp(n_clusters)
    return [ramp[c * step % n_clusters] for c in range(n_clusters)]


def color_scale(ax: Axes, image: Any, label: str) -> None:
    """Beside a heat map: which colour is which number."""
    ax.figure.colorbar(image, ax=ax, label=label)


def legend(ax: Axes, entries: list[tuple[str, str]], title: str | None) -> None:
    """Beside the axis: it covers nothing, however many entries there are."""
    patch = optional_import("matplotlib.patches", **NEEDED).Patch
    shown = entries if len(entries) <= _MOST_IN_LEGEND else entries[: _MOST_IN_LEGEND - 1]
    handles = [patch(facecolor=color) for _, color in shown]
    names = [shown_name(name) for name, _ in shown]
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


def name_ticks(ax: Axes, axis: str, names: Sequence[str], *, most: int = _MOST_TICKS) -> None:
    """A name at 0, 1, ...; every second, third, ... where there are too many."""
    places = range(0, len(names), -(-len(names) // most))
    size = "medium" if len(names) <= 25 else "x-small"
    set_ticks = ax.set_xticks if axis == "x" else ax.set_yticks
    set_ticks(places, [shown_name(names[place]) for place in places], size=size)


def count_ticks(axis: Any, **options: Any) -> None:
    """Whole numbers, short: 500, 20k, 1.5M."""
    axis.get_major_locator().set_params(integer=True, **options)
    axis.set_major_formatter(
        lambda x, _: f"{x / 1e6:g}M" if x >= 1e6 else f"{x / 1e3:g}k" if x >= 1e4 else f"{x:g}"
    )


def shown_name(name: str) -> str:
    """A name from the user's data as matplotlib shows it: one line, no mathematics, not too long."""
    line = "".join(letter if letter.isprintable() else " " for letter in str(name))
    if len(line) > _LONGEST_NAME:
        # From the middle: long names often differ at their ends only.
        kept = _LONGEST_NAME // 2
        line = line[: kept - 1] + "\N{HORIZONTAL ELLIPSIS}" + line[-kept:]
    # Dollars would begin mathematics, and a legend leaves out what begins with an underscore.
    return (" " if line.startswith("_") else "") + line.replace("$", r"\$")


def lightness_ramp(n: int) -> list[str]:
    """Colours of increasing lightness."""
    stops = np.array([[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in _VIRIDIS])
    places = np.linspace(0, len(stops) - 1, n)
    channels = [np.interp(places, np.arange(len(stops)), channel) for channel in stops.T]
    return ["#{:02X}{:02X}{:02X}".format(*map(round, rgb)) for rgb in zip(*channels, strict=True)]


def readable_on(color: str) -> str:
    """Black or white, whichever stands out against a colour."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "white"


def heat_colors() -> Any:
    """The colours of heat maps: pale to dark blue, and beige where there is no number."""
    return optional_import("matplotlib", **NEEDED).colormaps["Blues"].with_extremes(bad=_UNKNOWN)


def confidence_colors() -> Any:
    """From doubtful to sure: dark orange over pale to blue, told apart by colour-blind readers."""
    colors = optional_import("matplotlib.colors", **NEEDED)
    return colors.LinearSegmentedColormap.from_list("confidence", ["#B3480A", "#F2B77C", "#C9D9E8", INK])


def height_of(m: int) -> float:
    """Inches for a list of m names."""
    return float(np.clip(0.24 * m + 1.2, 2.6, 10.0))


def axis_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axis that was given, or that of a new figure of this size in inches."""
    if ax is not None:
        return ax
    return optional_import("matplotlib.pyplot", **NEEDED).subplots(figsize=size, layout="constrained")[1]


def tidy(ax: Axes) -> Axes:
    """Without the lines above and on the right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
