"""Instances one by one: how sure they are, and where they lie."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from consilience._support.errors import InputError
from consilience._support.sklearn import Interval, StrOptions, check_parameter, random_source
from consilience.plotting._inputs import require_fusion
from consilience.plotting._style import (
    UNASSIGNED,
    axis_or_new,
    cluster_colors,
    color_scale,
    confidence_colors,
    count_ticks,
    legend,
    readable_on,
    tidy,
)
from consilience.results import Fusion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    require_fusion(fusion, "plot_confidence")
    check_parameter("bins", bins, Interval(Integral, 1, None, closed="left"), "plot_confidence")
    ax = axis_or_new(ax, (6.4, 3.8))
    k = fusion.n_numbers
    rows = np.where(fusion.labels >= 0, fusion.labels, k)
    columns = np.minimum((fusion.confidence * bins).astype(np.int64), bins - 1)
    heights = np.bincount(rows * bins + columns, minlength=(k + 1) * bins).reshape(k + 1, bins).astype(float)
    left, below = np.arange(bins) / bins, np.zeros(bins)
    entries = [*zip(map(str, range(k)), cluster_colors(k), strict=True), ("unassigned", UNASSIGNED)]
    entries = entries if heights[k].any() else entries[:k]
    for (_, color), height in zip(entries, heights, strict=False):
        at = np.flatnonzero(height)  # empty bars would be most of them, and each takes its time
        ax.bar(
            left[at], height[at], 1 / bins, below[at], align="edge", color=color, edgecolor="white", lw=0.3
        )
        below += height
    legend(ax, entries, "cluster")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.05 * below.max())
    count_ticks(ax.yaxis)
    ax.set_xlabel("confidence")
    ax.set_ylabel("instances")
    return tidy(ax)


def plot_embedding(
    result: Any,
    coordinates: ArrayLike | None = None,
    *,
    color: Literal["cluster", "confidence"] = "cluster",
    max_points: int = 20_000,
    random_state: Any = 0,
    ax: Axes | None = None,
) -> Axes:
    """The instances as points in the plane, coloured by cluster or by confidence.

    .. image:: /gallery/embedding.png
    .. image:: /gallery/embedding-confidence.png

    Parameters
    ----------
    result : Fusion or fitted estimator
        What has the labels, and the ``embedding_`` if no coordinates are given.
    coordinates : array-like of shape (n_instances, n_columns), optional
        Where the instances are, such as their features. More than two columns are turned into their first two
        principal components.
    color : {"cluster", "confidence"}, default="cluster"
        What the colours mean. The least confident are drawn last: they are what such a picture is looked at
        for. Numbers are those of the clusters either way.
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
    check_parameter("color", color, StrOptions({"cluster", "confidence"}), "plot_embedding")
    labels, points, kept = _placed(result, coordinates)
    points, axes_names = _plane(points)
    n = len(labels)
    ax = axis_or_new(ax, (5.6, 4.6))
    # In random order, so that no cluster covers the others.
    shown = random_source(random_state).permutation(n)[:max_points]
    if n > max_points:
        ax.set_title(f"a sample of {max_points:,} of {n:,} instances", size="medium")
    k = int(labels.max()) + 1
    palette = np.array([*cluster_colors(k), UNASSIGNED])
    size = float(np.clip(20_000 / len(shown), 4, 40))
    drawn: dict[str, Any] = {"s": size, "linewidths": 0, "alpha": 0.8}
    if color == "confidence":
        confidence = _confidence(result)[kept]
        shown = shown[np.argsort(-confidence[shown], kind="stable")]
        scale: dict[str, Any] = {"vmin": 0, "vmax": 1, "cmap": confidence_colors()}
        dots = ax.scatter(points[shown, 0], points[shown, 1], c=confidence[shown], **drawn, **scale)
        color_scale(ax, dots, "confidence")
    else:
        ax.scatter(points[shown, 0], points[shown, 1], c=palette[labels[shown]], **drawn)
    for c in range(k):
        if (labels == c).any():
            x, y = np.median(points[labels == c], axis=0)
            box = {"boxstyle": "circle,pad=0.2", "facecolor": palette[c], "edgecolor": "white"}
            ax.text(x, y, str(c), ha="center", va="center", size=8, color=readable_on(palette[c]), bbox=box)
    ax.set_xlabel(axes_names[0])
    ax.set_ylabel(axes_names[1])
    return tidy(ax)


def _placed(result: Any, coordinates: ArrayLike | None) -> tuple[np.ndarray, np.ndarray, Any]:
    """Labels and points of the instances that have a place, and which instances these are."""
    model = result.model if isinstance(result, Fusion) else result
    if not isinstance(result, Fusion) and not hasattr(result, "labels_"):
        raise InputError(
            f"{type(result).__name__} has no labels_.", hint="fit it first, or pass what fuse returned."
        )
    labels = np.asarray(result.labels if isinstance(result, Fusion) else result.labels_)
    kept: Any = slice(None)
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
        if isinstance(result, Fusion) and not result.partitions.seen.all():
            kept = result.partitions.seen  # nothing places an instance that nobody saw
            points = points[kept] if len(points) == len(labels) else points
            labels = labels[kept]
    else:
        points = np.asarray(coordinates, dtype=float)
    if points.ndim != 2 or not points.size or len(points) != len(labels) or not np.isfinite(points).all():
        raise InputError(
            f"coordinates have shape {points.shape}, but there are {len(labels)} instances, each of which "
            "needs finite numbers.",
            hint="pass a row per instance, in the order of the labels.",
        )
    return labels, points, kept


def _confidence(result: Any) -> np.ndarray:
    if isinstance(result, Fusion):
        return result.confidence
    if not hasattr(result, "confidence_"):
        raise InputError(
            f"{type(result).__name__} has no confidence_.",
            hint='color="cluster", or pass what fuse returned.',
        )
    return np.asarray(result.confidence_)


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
