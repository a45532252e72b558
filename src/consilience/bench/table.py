"""The table of an experiment: ours, the best of a grid, the paper's figure, and a paired test."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from consilience.bench.experiment import Experiment
from consilience.bench.runner import LEFT_OUT, SECONDS

_SIGNIFICANT = 0.05
_FEWEST = 6  # pairs from which on a signed-rank test can be significant
LEGEND = (
    "mean (of seconds the median) ±standard deviation; (best of the grid, chosen with the labels in every "
    "run); [published]. "
    "- or +: significantly worse or better than the first method (Wilcoxon signed-rank test, pairs of the "
    "same sample, p < .05)."
)


class Entry(NamedTuple):
    """One method on one data set in one metric."""

    data: str
    missing: float | None  # None is the mean over all
    method: str
    metric: str
    mean: float
    deviation: float
    n: int
    oracle: float  # NaN without a grid
    published: float  # NaN where the paper has none
    sign: str  # "-", "+" or "": against the first method
    error: str = ""

    def __str__(self) -> str:
        if not self.n:
            return self.error[:40] or "·"
        text = f"{self.mean:.3f}" + (f" ±{self.deviation:.3f}" if self.n > 1 else "")
        text += f" ({self.oracle:.3f})" if np.isfinite(self.oracle) else ""
        text += f" [{self.published:.3f}]" if np.isfinite(self.published) else ""
        return text + (f" {self.sign}" if self.sign else "")


def tabulate(experiment: Experiment, rows: pd.DataFrame, *, by_missing: bool = False) -> list[Entry]:
    """An entry per data set, method and metric; with `by_missing`, also per share of labels missing."""
    entries = []
    for metric in experiment.metrics:
        for name in experiment.sets:
            here = rows[rows["data"] == name]
            shares: list[float | None] = sorted(here["missing"].unique()) if by_missing else [None]
            for missing in shares:
                cell = here if missing is None else here[here["missing"] == missing]
                first = _runs(cell, experiment.methods[0].name, metric)
                for method in experiment.methods:
                    entries.append(_entry(experiment, cell, name, missing, method.name, metric, first))
    return entries


def _entry(
    experiment: Experiment,
    rows: pd.DataFrame,
    data: str,
    missing: float | None,
    method: str,
    metric: str,
    first: pd.Series[float],
) -> Entry:
    mine = rows[rows["method"] == method]
    values = _runs(rows, method, metric)
    grid = mine[(mine["setting"] != "") & (mine["metric"] == metric)]
    searched = len(grid) > 0 and metric != SECONDS
    best = grid.groupby(["missing", "seed"])["value"].max().mean() if searched else float("nan")
    # The first fit of a process also reads compiled loops from disk.
    middle = values.median() if metric == SECONDS else values.mean()
    shares = {missing} if missing is not None else set(rows["missing"])
    errors = mine["error"][mine["error"] != ""]
    return Entry(
        data=data,
        missing=missing,
        method=method,
        metric=metric,
        mean=float(middle),
        deviation=float(values.std(ddof=0)) if len(values) else float("nan"),
        n=len(values),
        oracle=float(best),
        published=_published(experiment, (data, method, metric), shares),
        sign="" if metric == SECONDS else _sign(values, first),
        error=errors.iloc[0] if len(errors) else "",
    )


def _runs(rows: pd.DataFrame, method: str, metric: str) -> pd.Series[float]:
    """The metric of the default setting, by sample."""
    chosen = (rows["method"] == method) & (rows["metric"] == metric) & (rows["setting"] == "")
    found: pd.Series[float] = rows[chosen].set_index(["missing", "seed"])["value"]
    return found


def _published(experiment: Experiment, what: tuple[str, str, str], shares: set[float]) -> float:
    """The paper's figure, or the mean of those of these shares missing; none where it lacks one of them."""
    found = {
        row.missing: row.value
        for row in experiment.published
        if (row.data, row.method, row.metric) == what and row.at is None
    }
    if None in found or not shares <= found.keys():
        return found.get(None, float("nan"))
    return float(np.mean([found[share] for share in shares]))


def _sign(values: pd.Series[float], first: pd.Series[float]) -> str:
    both = pd.concat([values, first], axis=1, join="inner").dropna()
    difference = (both.iloc[:, 0] - both.iloc[:, 1]).to_numpy()
    if len(difference) < _FEWEST or not difference.any():
        return ""
    p = wilcoxon(difference, zero_method="zsplit").pvalue
    return "" if p >= _SIGNIFICANT else "+" if np.median(difference) > 0 or difference.mean() > 0 else "-"


def show(experiment: Experiment, rows: pd.DataFrame, *, by_missing: bool = False) -> str:
    """The tables as Markdown: a table per metric, a row per method, a column per data set."""
    parts = [f"# {experiment.title}", f"{experiment.paper}: {', '.join(experiment.shows)}."]
    entries = tabulate(experiment, rows, by_missing=by_missing)
    for metric in experiment.metrics:
        here = [entry for entry in entries if entry.metric == metric]
        parts.append(f"## {metric}")
        groups = [[entry for entry in here if entry.data == name] for name in experiment.sets]
        parts += [_table(experiment, group) for group in (groups if by_missing else [here]) if group]
        if experiment.vary != "missing" and metric != SECONDS:
            parts += [f"### {metric} by {experiment.vary}", _by_value(experiment, rows, metric)]
    parts.append(LEGEND)
    if experiment.unavailable:
        missing_sets = "; ".join(f"{name} ({why})" for name, why in experiment.unavailable.items())
        parts.append(f"In the paper and not here: {missing_sets}.")
    if experiment.notes:
        parts.append(experiment.notes.strip())
    errors = rows[rows["error"] != ""].groupby(["method", "error"]).size()
    for (method, error), n in errors.items():
        told = f"were {error}" if error.startswith(LEFT_OUT) else f"failed: {error}"
        parts.append(f"{n} {'fit' if n == 1 else 'fits'} of {method} {told}")
    return "\n\n".join(parts) + "\n"


def _table(experiment: Experiment, entries: list[Entry]) -> str:
    """A row per method; a column per data set, and share missing where they are apart."""
    columns = list(dict.fromkeys((entry.data, entry.missing) for entry in entries))
    heads = [data if missing is None else f"{data} {missing:g}" for data, missing in columns]
    lines = [["method", *heads, "mean"]]
    for method in experiment.methods:
        mine = {(entry.data, entry.missing): entry for entry in entries if entry.method == method.name}
        means = [entry.mean for entry in mine.values()]
        overall = "·" if not np.isfinite(means).all() else f"{np.mean(means):.3f}"
        lines.append([method.name, *(str(mine[column]) for column in columns), overall])
    return _markdown(lines)


def _by_value(experiment: Experiment, rows: pd.DataFrame, metric: str) -> str:
    """A row per method and value of the parameter that is varied, beside the paper's figure for it."""
    lines = [["method", experiment.vary, *experiment.sets]]
    grid = rows[(rows["setting"] != "") & (rows["metric"] == metric)]
    grid = grid.assign(at=[json.loads(setting).get(experiment.vary) for setting in grid["setting"]])
    for method in experiment.methods:
        for value in method.grid.get(experiment.vary, ()):
            mine = grid[(grid["method"] == method.name) & (grid["at"] == value)]
            cells = []
            for name in experiment.sets:
                ours = mine[mine["data"] == name]["value"].mean()
                text = f"{ours:.3f}" if np.isfinite(ours) else "·"
                theirs = [
                    row.value
                    for row in experiment.published
                    if (row.data, row.method, row.metric, row.at) == (name, method.name, metric, value)
                ]
                cells.append(text + (f" [{theirs[0]:.3f}]" if theirs else ""))
            lines.append([method.name, f"{value:g}", *cells])
    return _markdown(lines)


def _markdown(lines: list[list[str]]) -> str:
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    rows = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([rows[0], rule, *rows[1:]])
