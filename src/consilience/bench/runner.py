"""Run an experiment: every cell once, in parallel, rows written as they finish."""

from __future__ import annotations

import hashlib
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn import cluster as sklearn_cluster
from sklearn.metrics import adjusted_rand_score

import consilience
from consilience._support.threads import one_thread
from consilience.bench.data import require_data
from consilience.bench.experiment import Data, Experiment, Method
from consilience.bench.samples import Sample, filled, make_sample, one_hot
from consilience.bench.store import Row, Store
from consilience.consensus import LabelMethod
from consilience.metrics import (
    matched_accuracy_score,
    normalized_mutual_info_score,
    pair_f_score,
    purity_score,
)
from consilience.multiview import ViewMethod
from consilience.registry import SUBPACKAGES, resolve

METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "ACC": matched_accuracy_score,
    "NMI (max)": lambda y, z: normalized_mutual_info_score(y, z, normalization="max"),
    "NMI (sqrt)": lambda y, z: normalized_mutual_info_score(y, z, normalization="sqrt"),
    "ARI": adjusted_rand_score,
    "purity": purity_score,
    "pair F": pair_f_score,
}
SECONDS = "seconds"  # a metric as well, of every fit
MEAN_BASE = "base"
LEFT_OUT = "left out above"  # a fit that was not to be made; said where an error would be
BEST_BASE = "best_base"  # chosen with the labels, in every metric
_PACKAGES = ("consilience", "numpy", "scipy", "scikit-learn", "numba")

Progress = Callable[[str, int, int], None]


class Cell(NamedTuple):
    """One fit."""

    data: Data
    missing: float
    seed: int
    method: Method
    setting: dict[str, Any] | None  # a point of the grid; None for the defaults
    digest: str


class Fit(NamedTuple):
    """Labels (several for the mean base clustering), traces and parameters."""

    labels: list[np.ndarray]
    traces: dict[str, np.ndarray]
    parameters: dict[str, Any]
    combine: Callable[[list[float]], float] = np.mean  # the scores of several labels


def run(
    experiment: Experiment,
    folder: Path | str,
    *,
    n_jobs: int | None = None,
    retry: bool = False,
    progress: Progress | None = None,
) -> Store:
    """Run what is not in the folder yet; a fit that fails is a row with its error, and the rest goes on.

    Where files of the experiment are absent, nothing is run: the error names them.

    Parameters
    ----------
    experiment : Experiment
        What to run; see :func:`load`.
    folder : path
        Where its rows are, and go.
    n_jobs : int or None, default=None
        Samples worked on at once, each on one thread.
    retry : bool, default=False
        Whether to run cells again that failed before.
    progress : callable, optional
        Called as ``progress(what, done, total)`` after every sample.
    """
    require_data(experiment)
    store = Store(folder)
    rows = store.read()
    done = set(rows["cell"][rows["error"] == ""] if retry else rows["cell"])
    samples: dict[tuple[str, float, int], list[Cell]] = {}
    for cell in cells(experiment):
        if cell.digest not in done:
            samples.setdefault((cell.data.name, cell.missing, cell.seed), []).append(cell)
    work = delayed(run_sample)
    found = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        work(experiment, group) for group in samples.values()
    )
    for count, batch in enumerate(found, start=1):
        store.add(batch)
        if progress is not None:
            progress(f"{experiment.name}: {batch[0].data}", count, len(samples))
    store.compact()
    return store


def cells(experiment: Experiment) -> Iterator[Cell]:
    """Every fit of an experiment: the defaults, and every point of a grid."""
    for data in experiment.data:
        for missing in experiment.missing if data.at is None else [data.at]:
            if missing not in experiment.missing:
                continue
            for seed in range(min(experiment.seeds, data.seeds or experiment.seeds)):
                for method in experiment.methods:
                    for setting in [None, *method.settings()]:
                        yield Cell(
                            data,
                            missing,
                            seed,
                            method,
                            setting,
                            _digest(experiment, data, missing, seed, method, setting),
                        )


def _digest(
    experiment: Experiment,
    data: Data,
    missing: float,
    seed: int,
    method: Method,
    setting: dict[str, Any] | None,
) -> str:
    """Changes with anything the rows of the fit depend on, and with nothing else."""
    what = {
        "data": {name: value for name, value in asdict(data).items() if name != "seeds"},
        "missing": missing,
        "seed": seed,
        "of": method.of,
        "name": method.name,
        "parameters": dict(method.parameters),
        "setting": setting,
        "labels": method.labels,
        "input": experiment.input,
        "protocol": experiment.protocol,
        "base": asdict(experiment.base),
        "metrics": experiment.metrics,
        "record": experiment.record,
    } | ({"fill": True} if method.fill else {})
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:20]


def run_sample(experiment: Experiment, group: list[Cell]) -> list[Row]:
    """All cells of one sample, which is made once."""
    first = group[0]
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sample = make_sample(experiment, first.data, first.missing, first.seed)
        except Exception as error:
            return [_failed(experiment, cell, error) for cell in group]
        return [row for cell in group for row in run_cell(experiment, cell, sample)]


def run_cell(experiment: Experiment, cell: Cell, sample: Sample) -> list[Row]:
    """The rows of one fit."""
    if cell.method.max_rows is not None and len(sample.y) > cell.method.max_rows:
        reason = f"{LEFT_OUT} {cell.method.max_rows} rows"
        return [_failed(experiment, cell, reason)]
    if cell.method.max_views is not None and len(sample.input) > cell.method.max_views:
        reason = f"{LEFT_OUT} {cell.method.max_views} views"
        return [_failed(experiment, cell, reason)]
    before = reset_peak()
    start = time.perf_counter()
    try:
        fit = _fit(cell, sample, experiment.record)
    except Exception as error:  # whatever a method does, the others go on
        return [_failed(experiment, cell, error)]
    seconds = time.perf_counter() - start
    used = peak() - before
    common = _row(experiment, cell)._replace(
        seconds=seconds, peak_mb=used, parameters=json.dumps(fit.parameters, default=str, sort_keys=True)
    )
    rows = [
        common._replace(metric=metric, value=_score(metric, sample.y, fit, seconds))
        for metric in experiment.metrics
        if metric != SECONDS or cell.method.of not in (MEAN_BASE, BEST_BASE)  # nothing is fitted
    ]
    for name, trace in fit.traces.items():
        rows += [common._replace(metric=name, step=i, value=float(v)) for i, v in enumerate(trace)]
    return rows


def _score(metric: str, y: np.ndarray, fit: Fit, seconds: float) -> float:
    if metric == SECONDS:
        return seconds
    return float(fit.combine([METRICS[metric](y[found >= 0], found[found >= 0]) for found in fit.labels]))


def _fit(cell: Cell, sample: Sample, record: tuple[str, ...]) -> Fit:
    parameters = {**cell.data.parameters, **cell.method.parameters, **(cell.setting or {})}
    of, k, seed = cell.method.of, sample.n_clusters, cell.seed
    if of in (MEAN_BASE, BEST_BASE):
        assert sample.base is not None
        return Fit(list(sample.base.T), {}, {}, np.mean if of == MEAN_BASE else np.max)
    if of in ("fuse", "fuse_views"):
        function = getattr(consilience, of)
        given = {"unobserved": "largest"} if of == "fuse" else {"mask": sample.mask}
        fusion = function(sample.input, k, random_state=seed, **given, **parameters)
        return Fit([fusion.labels], {}, {"method": fusion.method, **parameters})
    model = _estimator(of)
    wanted = {"n_clusters": k, "random_state": seed, "unobserved": "largest", **parameters}
    allowed = model.get_params()
    # A data set's own settings, such as a kernel, are for the methods that have them.
    own = {*cell.method.parameters, *(cell.setting or {})}
    model.set_params(**{name: value for name, value in wanted.items() if name in allowed or name in own})
    if isinstance(model, ViewMethod) and sample.base is sample.input:
        return Fit([_views_of_labels(model, sample.base)], {}, model.get_params())
    if isinstance(model, ViewMethod):
        model.fit(sample.input, mask=sample.mask)
    else:
        table: Any = sample.base if isinstance(model, LabelMethod) else sample.input
        model.fit(filled(table, seed) if cell.method.fill else table)
    traces = {name.rstrip("_"): np.ravel(getattr(model, name)) for name in record if hasattr(model, name)}
    found = np.asarray(getattr(model, cell.method.labels))
    return Fit(list(found.T) if found.ndim == 2 else [found], traces, model.get_params())


def _views_of_labels(model: Any, labels: np.ndarray) -> np.ndarray:
    """Base clusterings as views of indicators; who was seen nowhere goes to the largest cluster."""
    tables, mask = one_hot(labels)
    seen = mask.any(axis=1)
    found = np.zeros(len(labels), dtype=int)
    found[seen] = model.fit([table[seen] for table in tables], mask=mask[seen]).labels_
    found[~seen] = np.bincount(found[seen]).argmax()
    return found


def _estimator(name: str) -> Any:
    made = getattr(sklearn_cluster, name, None)
    return (made or resolve(name, list(SUBPACKAGES.values()), of="the experiment"))()


def _row(experiment: Experiment, cell: Cell) -> Row:
    return Row(
        cell=cell.digest,
        experiment=experiment.name,
        data=cell.data.name,
        missing=cell.missing,
        seed=cell.seed,
        method=cell.method.name,
        setting="" if cell.setting is None else json.dumps(cell.setting, sort_keys=True),
        metric="",
        step=0,
        value=float("nan"),
        seconds=float("nan"),
        peak_mb=float("nan"),
        error="",
        parameters="",
        versions=versions(),
    )


@cache
def versions() -> str:
    """JSON of what the figures were made with."""
    found = {name: version(name) for name in _PACKAGES} | {"python": platform.python_version()}
    return json.dumps(found, sort_keys=True)


def _failed(experiment: Experiment, cell: Cell, error: BaseException | str) -> Row:
    said = error if isinstance(error, str) else f"{type(error).__name__}: {' '.join(str(error).split())}"
    return _row(experiment, cell)._replace(error=said[:500])


def reset_peak() -> float:
    """Let the peak of this process begin anew, where the system can; what is in use, in MB."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    except OSError:
        return float("nan")


def peak() -> float:
    """The most memory in use since then, in MB."""
    try:
        return _status("VmHWM")
    except OSError:
        return float("nan")


def _status(field: str) -> float:
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) / 1024
