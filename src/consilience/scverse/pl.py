"""Pictures of a consensus in AnnData and MuData."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience._support.errors import InputError, InputTypeError
from consilience._support.sklearn import Interval, check_parameter, random_source
from consilience._support.values import did_you_mean, is_annotated
from consilience.plotting._style import UNASSIGNED, axis_or_new, cluster_colors, legend, tidy

if TYPE_CHECKING:
    from anndata import AnnData
    from matplotlib.axes import Axes
    from mudata import MuData

__all__ = ["embedding"]

_COLOURS = ("cluster", "confidence")
# Between two panels, in widths of the picture: room for a legend.
_GAP = 0.14


def embedding(
    adata: AnnData | MuData,
    basis: str = "X_umap",
    *,
    color: str | Sequence[str] = _COLOURS,
    key: str = "consensus",
    max_points: int = 20_000,
    random_state: Any = 0,
    ax: Axes | None = None,
) -> Axes:
    """An embedding of the cells, coloured by cluster and by confidence, side by side.

    Cells that are less sure are drawn over those that are more so: they are the ones to look at.

    Parameters
    ----------
    adata : AnnData or MuData
        With the results of :func:`consilience.scverse.tl.consensus` or
        :func:`~consilience.scverse.tl.fuse_views`.
    basis : str, default="X_umap"
        An entry of ``.obsm``, with or without its ``X_``; of MuData also ``"modality:entry"``, which shows
        the cells of that modality. The first two columns are drawn.
    color : "cluster", "confidence" or both, default=("cluster", "confidence")
        A panel each.
    key : str, default="consensus"
        The ``key_added`` of the results.
    max_points : int, default=20_000
        Of more cells than this a sample is drawn.
    random_state : int, RandomState or None, default=0
        The seed of the sample.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis
        The panels are ``ax.child_axes``.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> import consilience.scverse as cs
    >>> labels = pd.DataFrame({"a": ["x", "x", "y", "y"] * 5, "b": ["u", "u", "v", None] * 5})
    >>> adata = anndata.AnnData(obs=labels.set_index("c" + labels.index.astype(str)))
    >>> adata.obsm["X_umap"] = np.random.default_rng(0).normal(size=(20, 2))
    >>> cs.tl.consensus(adata, keys=["a", "b"], n_clusters=2)
    >>> ax = cs.pl.embedding(adata, "umap")
    >>> [panel.get_title() for panel in ax.child_axes]
    ['cluster', 'confidence']
    """
    if not is_annotated(adata):
        raise InputTypeError(
            f"embedding takes an AnnData or MuData object. Got {type(adata).__name__} instead.",
            hint="consilience.plotting.plot_embedding draws what fuse returned.",
        )
    panels = [color] if isinstance(color, str) else list(color)
    strange = next((name for name in panels if name not in _COLOURS), None)
    if strange is not None or not panels:
        raise InputError(
            f"The 'color' parameter of embedding must be 'cluster', 'confidence' or both. Got {color!r} "
            "instead.",
            hint="scanpy's pl.embedding colours by other columns of .obs.",
        )
    check_parameter("max_points", max_points, Interval(Integral, 1, None, closed="left"), "embedding")
    _require_result(adata, key)
    obs, points = _placed(adata, basis)
    shown = random_source(random_state).permutation(len(obs))[:max_points]
    shown = shown[np.argsort(-obs[f"{key}_confidence"].to_numpy()[shown], kind="stable")]
    obs, points = obs.iloc[shown], points[shown]
    ax = axis_or_new(ax, (5.2 * len(panels), 4.2))
    ax.set_axis_off()
    width = (1.0 - _GAP * (len(panels) - 1)) / len(panels)
    for number, name in enumerate(panels):
        panel = ax.inset_axes((number * (width + _GAP), 0.0, width, 1.0))
        if name == "cluster":
            _by_cluster(panel, points, obs[key], adata.uns.get(f"{key}_colors"))
        else:
            _by_confidence(panel, points, obs[f"{key}_confidence"].to_numpy())
        panel.set_title(name)
        panel.set_xlabel(f"{basis} 1")
        panel.set_ylabel(f"{basis} 2")
        panel.set_xticks([])
        panel.set_yticks([])
        tidy(panel)
    return ax


def _require_result(adata: Any, key: str) -> None:
    columns = (key, f"{key}_confidence")
    if any(column not in adata.obs for column in columns):
        raise InputError(
            f".obs has no result called {key!r}.",
            hint="run consilience.scverse.tl.consensus or tl.fuse_views first; key= is its key_added.",
        )


def _placed(adata: Any, basis: str) -> tuple[Any, np.ndarray]:
    """What is known of the cells that have a place, and where that is."""
    home, name = adata, basis
    if ":" in basis and hasattr(adata, "mod"):
        modality, _, name = basis.partition(":")
        if modality not in adata.mod:
            raise InputError(f"there is no modality {modality!r}.", did_you_mean(modality, adata.mod))
        home = adata.mod[modality]
    entry = next((entry for entry in (name, f"X_{name}") if entry in home.obsm), None)
    if entry is None:
        known = [key for key in home.obsm if not key.startswith("_")]
        hint = did_you_mean(name, known) if known else "make one, such as by scanpy's tl.umap."
        raise InputError(f".obsm has no {name!r}.", hint)
    points = np.asarray(home.obsm[entry], dtype=float)
    if points.ndim != 2 or points.shape[1] < 2:
        raise InputError(f".obsm[{entry!r}] has shape {points.shape}.", hint="two columns are drawn.")
    obs = adata.obs.loc[home.obs_names]
    placed = np.isfinite(points[:, :2]).all(axis=1)  # MuData has NaN for cells of other modalities
    return obs[placed], points[placed, :2]


def _by_cluster(panel: Axes, points: np.ndarray, clusters: Any, colours: Any) -> None:
    clusters = clusters.astype("category")
    names = [str(name) for name in clusters.cat.categories]
    colours = cluster_colors(len(names)) if colours is None or len(colours) < len(names) else list(colours)
    palette = np.array([*colours[: len(names)], UNASSIGNED])
    codes = clusters.cat.codes.to_numpy()
    panel.scatter(points[:, 0], points[:, 1], s=_size(len(points)), c=palette[codes], linewidths=0)
    entries = list(zip(names, colours, strict=False))
    legend(panel, [*entries, ("unassigned", UNASSIGNED)] if (codes < 0).any() else entries, None)


def _by_confidence(panel: Axes, points: np.ndarray, confidence: np.ndarray) -> None:
    x, y, size = points[:, 0], points[:, 1], _size(len(points))
    drawn = panel.scatter(x, y, s=size, c=confidence, cmap="viridis", vmin=0, vmax=1, linewidths=0)
    scale = panel.inset_axes((1.03, 0.15, 0.03, 0.7))
    panel.figure.colorbar(drawn, cax=scale)


def _size(n: int) -> float:
    return float(np.clip(20_000 / max(n, 1), 4, 40))
