"""How the objective of a method falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from consilience._support.errors import InputError
from consilience.plotting._style import axis_or_new, cluster_colors, legend, tidy
from consilience.results import Fusion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_convergence(models: Any, *, ax: Axes | None = None) -> Axes:
    """The objective after every iteration.

    Models of one class are drawn with their own numbers. Different classes have different objectives, so each
    is drawn as the share of its way that is left.

    .. image:: /gallery/convergence.png

    Parameters
    ----------
    models : fitted estimator, Fusion, or a sequence or mapping of names of them
        Each with an ``objective_``.
    ax : matplotlib axis, optional
        Where to draw; None is a new figure.

    Returns
    -------
    ax : matplotlib axis

    Examples
    --------
    >>> from consilience import PCE
    >>> from consilience.plotting import plot_convergence
    >>> model = PCE(n_clusters=2, random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, -1]] * 5)
    >>> ax = plot_convergence(model)
    >>> len(ax.lines[0].get_ydata()) == model.n_iter_
    True
    """
    named = _models(models)
    ax = axis_or_new(ax, (5.6, 3.6))
    same = len({type(model) for _, model in named}) == 1
    colors = cluster_colors(len(named))
    for (name, model), color in zip(named, colors, strict=True):
        values = _trace(name, model)
        if not same:
            way = values[0] - values[-1]
            values = (values - values[-1]) / way if way else np.zeros(len(values))
        ax.plot(np.arange(1, len(values) + 1), values, ".-", color=color)
    if len(named) > 1:
        legend(ax, list(zip((name for name, _ in named), colors, strict=True)), None)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("iteration")
    ax.set_ylabel("objective" if same else "objective: share of its way that is left")
    return tidy(ax)


def _models(models: Any) -> list[tuple[str, Any]]:
    if isinstance(models, Mapping):
        named = list(models.items())
    elif isinstance(models, Sequence):
        named = [("", model) for model in models]
    else:
        named = [("", models)]
    if not named:
        raise InputError(
            "plot_convergence got no model.", hint="pass a fitted estimator, such as PCE(8).fit(labels)."
        )
    bare = [(name, model.model if isinstance(model, Fusion) else model) for name, model in named]
    return [(str(name) or type(model).__name__, model) for name, model in bare]


def _trace(name: str, model: Any) -> np.ndarray:
    values = np.asarray(getattr(model, "objective_", ()), dtype=float)
    if values.ndim != 1 or not len(values):
        raise InputError(
            f"{name} has no objective_.",
            hint="fit it first; methods that do not iterate, such as graph cuts, have none.",
        )
    return values
