"""The method and why it was taken, its parameters, versions, how to repeat it, and the map of instances."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import numpy as np

from consilience.diagnostics import consensus_map
from consilience.inference.counts import to_plain
from consilience.report.form import Per, Place
from consilience.report.job import Job
from consilience.results import Fusion
from consilience.results.calling import call_of

TITLE = "How it was made, and how to repeat it"
SIZES = {"cell": ("consensus", "cluster")}
_PACKAGES = ("consilience", "numpy", "scipy", "scikit-learn", "numba")
# Cells of the map of instances, fewer where there are many results, and the most clusters it shows.
_CELLS, _CELLS_OF_MANY, _MOST_CLUSTERS = 100, 60, 150
_MAPPED = 2_000_000  # instances that a map of counted rows is drawn from
_LONGEST_PARAMETER = 120


@dataclass
class Tried:
    """A method that was tried."""

    method: str
    agreement: float


@dataclass
class Map:
    """How often cells of the instances, ordered by cluster, are put together, in percent."""

    agreement: Annotated[list[Annotated[list[int | None], Per("cell")]], Per("cell")]
    cluster: list[Annotated[int, Place("cluster")]]
    size: Annotated[list[int], Per("cell")]


@dataclass
class Result:
    """How one result was made."""

    candidates: list[Tried] = field(default_factory=list)
    model: str = ""
    parameters: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    call: str = ""
    seed: int | None = None
    consensus: Map | None = None


@dataclass
class Page:
    """How all of them were made."""

    versions: dict[str, str]
    command: str | None = None


def of(fusion: Fusion, job: Job) -> Result:
    """The model as it was set up."""
    model = fusion.model
    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    return Result(
        [Tried(candidate.name, float(candidate.agreement)) for candidate in fusion.candidates],
        type(model).__name__,
        {name: _plain_parameter(value) for name, value in parameters.items()},
        call_of(fusion),
        fusion.seed,
        _map(fusion, _CELLS_OF_MANY if job.many else _CELLS),
    )


def of_page(job: Job) -> Page:
    """Versions of what computed it."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # run from a checkout that was never installed
            versions[package] = "not installed"
    return Page(versions, job.command)


def _map(fusion: Fusion, cells: int) -> Map | None:
    table = fusion.opinions
    if fusion.n_clusters > _MOST_CLUSTERS:
        return None
    part = 1.0
    if table.n_rows < table.n_instances > _MAPPED:  # drawn a row an instance, so of a part of them
        part = _MAPPED / table.n_instances
        table = replace(table, counts=np.maximum(np.rint(part * table.counts), 1).astype(np.int64))
    found = consensus_map(table, fusion.labels, max_cells=cells)
    percent = to_plain((100 * found.coassociation).round())
    agreement = [[None if value is None else int(value) for value in row] for row in percent]
    return Map(agreement, found.cluster.tolist(), np.rint(found.size / part).astype(np.int64).tolist())


def _plain_parameter(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and np.isfinite(value):
        return value
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= _LONGEST_PARAMETER else text[:_LONGEST_PARAMETER] + "…"
