"""The figure of an experiment: lines over what it varies, traces of its fits, or bars."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from consilience._support.errors import InputError
from consilience._support.optional import optional_import
from consilience.bench.experiment import Experiment
from consilience.bench.runner import SECONDS

_COLUMNS = 3
_MARKS = "osD^vP*X<>"
_STYLES = ("-", "--", ":")  # one after the other, when colours are used up
# Okabe and Ito's colours, which most eyes tell apart; the first is the method of the paper.
_COLORS = (
    "#D55E00",
    "#0072B2",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#999933",
    "#882255",
)


def draw(experiment: Experiment, rows: pd.DataFrame, *, metric: str | None = None) -> Any:
    """A matplotlib figure with a panel per data set.

    Parameters
    ----------
    experiment : Experiment
        What was run. Where it records a trace, that is drawn; else a metric over what it varies, the share
        missing or a parameter of its grid; bars where it varies nothing.
    rows : DataFrame
        Its rows; see :meth:`Store.read`.
    metric : str, optional
        The first of the experiment by default.
    """
    plt = optional_import("matplotlib.pyplot", needed_for="bench plot", extra="bench")
    metric = metric or (experiment.record[0].rstrip("_") if experiment.record else experiment.metrics[0])
    if not (rows["data"].isin(experiment.sets) & (rows["metric"] == metric) & rows["value"].notna()).any():
        failed = next((error for error in rows["error"] if error), "")
        raise InputError(
            f"there is nothing to draw: no fit of {experiment.name} has a value of {metric}."
            + (f" The first that failed said: {failed}." if failed else ""),
            hint=f"consilience bench run {experiment.name}, or draw another metric.",
        )
    n_columns = min(_COLUMNS, len(experiment.sets))
    n_rows = -(-len(experiment.sets) // n_columns)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=(4.2 * n_columns, 3.2 * n_rows), squeeze=False, layout="constrained"
    )
    for ax in axes.flat[len(experiment.sets) :]:
        ax.remove()
    for name, ax in zip(experiment.sets, axes.flat, strict=False):
        here = rows[(rows["data"] == name) & (rows["metric"] == metric)]
        _panel(ax, experiment, here, metric)
        ax.set_title(name, fontsize=10)
    told = {}  # a method may be in some panels only
    for ax in figure.axes:
        handles, names = ax.get_legend_handles_labels()
        told.update(dict(zip(names, handles, strict=True)))
    order = [method.name for method in experiment.methods if method.name in told]
    names = order + [name for name in told if name not in order]
    if names:
        handles = [told[name] for name in names]
        figure.legend(
            handles, names, loc="outside lower center", ncols=min(6, len(names)), frameon=False, fontsize=8
        )
    figure.suptitle(f"{experiment.title} ({', '.join(experiment.shows)})", fontsize=11)
    return figure


def _panel(ax: Any, experiment: Experiment, rows: pd.DataFrame, metric: str) -> None:
    if metric in {name.rstrip("_") for name in experiment.record}:
        _lines(ax, experiment, _held(rows[rows["setting"] == ""]), "step", "iteration", metric)
    elif experiment.vary != "missing":
        _varied(ax, experiment, rows, metric)
    elif len(experiment.missing) > 1:
        _lines(ax, experiment, rows[rows["setting"] == ""], "missing", "share missing", metric)
    else:
        _bars(ax, experiment, rows[rows["setting"] == ""], metric)


def _held(rows: pd.DataFrame) -> pd.DataFrame:
    """Traces that go on at their last value up to the longest, so that a mean is one of all of them."""
    wide = rows.pivot_table(index=["method", "missing", "seed"], columns="step", values="value")
    held = wide.ffill(axis="columns").stack().rename("value").reset_index()
    longest = rows.groupby("method")["step"].max()
    return held[held["step"] <= held["method"].map(longest)]


def _varied(ax: Any, experiment: Experiment, rows: pd.DataFrame, metric: str) -> None:
    """Over a parameter of the grid: a line per method, level for one without it, or per share missing."""
    varied = rows[rows["setting"] != ""].copy()
    varied["at"] = [json.loads(setting).get(experiment.vary) for setting in varied["setting"]]
    values = varied["at"].dropna().to_numpy(dtype=float)
    if len(experiment.methods) == 1 and len(experiment.missing) > 1:
        for i, (share, mine) in enumerate(varied.groupby("missing")):
            mean = mine.groupby("at")["value"].mean()
            ax.plot(
                mean.index, mean, marker=_MARKS[i], markersize=4, color=_color(i), label=f"{share:g} missing"
            )
        ax.set_xlabel(experiment.vary)
        ax.set_ylabel(metric)
    else:
        _lines(ax, experiment, varied, "at", experiment.vary, metric)
    for i, method in enumerate(experiment.methods):
        level = rows[(rows["method"] == method.name) & (rows["setting"] == "")]["value"].mean()
        if not method.grid and np.isfinite(level):
            ax.axhline(level, color=_color(i), linestyle=":", label=method.name)
    if len(values) and values.min() > 0 and values.max() >= 50 * values.min():
        tried = np.unique(values)
        ax.set_xscale("log")
        ax.set_xticks(tried, [f"{value:g}" for value in tried], fontsize=7)
        ax.minorticks_off()


def _lines(ax: Any, experiment: Experiment, rows: pd.DataFrame, at: str, label: str, metric: str) -> None:
    for i, method in enumerate(experiment.methods):
        mine = rows[rows["method"] == method.name].groupby(at)["value"]
        if not len(mine):
            continue
        mean, deviation = _middle(mine, metric), mine.std(ddof=0)
        line = ax.plot(
            mean.index,
            mean,
            marker=_MARKS[i % len(_MARKS)] if len(mean) < 30 else None,
            markersize=4,
            linewidth=2.2 if i == 0 else 1.1,
            color=_color(i),
            linestyle=_STYLES[i // len(_COLORS) % len(_STYLES)],
            label=method.name,
        )[0]
        if i == 0 and metric != SECONDS:
            ax.fill_between(
                mean.index, mean - deviation, mean + deviation, color=line.get_color(), alpha=0.15
            )
    ax.set_xlabel(label)
    ax.set_ylabel(metric)
    if metric == SECONDS:
        ax.set_yscale("log")


def _bars(ax: Any, experiment: Experiment, rows: pd.DataFrame, metric: str) -> None:
    found = rows.groupby("method")["value"]
    mean, deviation = _middle(found, metric), found.std(ddof=0)
    names = [method.name for method in experiment.methods if method.name in mean.index]
    places = np.arange(len(names))
    colors = [_color(0) if name == experiment.methods[0].name else "0.65" for name in names]
    ax.barh(places, mean[names], xerr=deviation[names], color=colors, error_kw={"elinewidth": 0.8})
    ax.set_yticks(places, names, fontsize=7)
    ax.invert_yaxis()
    ax.set_xlabel(metric)
    if metric == SECONDS:
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter("")  # its labels would overlap


def _middle(groups: Any, metric: str) -> Any:
    """Means; medians of seconds, since the first fit of a process also reads compiled loops from disk."""
    return groups.median() if metric == SECONDS else groups.mean()


def _color(i: int) -> str:
    return _COLORS[i % len(_COLORS)]
