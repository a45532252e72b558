"""What to run: methods x data sets x gaps x seeds, read from a TOML file and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any, Literal

from consilience._support.errors import InputError
from consilience._support.values import did_you_mean

Kind = Literal["labels", "views", "features"]
FOLDER = "experiments"


@dataclass(frozen=True)
class Data:
    """A data set as it enters an experiment."""

    name: str  # in the tables
    file: str  # for `datasets.load`
    rows: Literal["raw", "unit", "zscore_unit", "minmax_unit", "tfidf"] = "raw"  # how rows are scaled
    views: tuple[int, ...] | None = None  # which views, all by default
    n_clusters: int | None = None  # the number of classes by default
    parameters: Mapping[str, Any] = field(
        default_factory=dict
    )  # of every method on this set, such as a kernel
    patterns: str | None = None  # file of published missing patterns
    at: float | None = None  # a pool that was made with this share of labels missing is used there only
    columns: int | None = None  # run r of a pool takes columns r * columns ...; drawn at random by default
    max_rows: int | None = None  # a sample of the rows
    seeds: int | None = None  # fewer than the experiment has, where fits are slow


@dataclass(frozen=True)
class Base:
    """How base clusterings are made where an experiment starts from features, or drawn from a pool."""

    clusterings: int = 10
    method: str = "kmeans"
    init: str = "random"
    max_iter: int = 100
    n_clusters: tuple[int, int] | None = None  # a range; the number of classes by default


@dataclass(frozen=True)
class Method:
    """A method with its parameters; `grid` is what a paper searched with the labels in hand."""

    name: str  # in the tables
    # Of consilience or of sklearn.cluster, or "fuse", "base" (the mean base clustering), "best_base".
    of: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    max_rows: int | None = None  # left out on larger tables
    max_views: int | None = None  # left out where there are more views
    labels: str = "labels_"  # the attribute to score; the mean of its columns where it has several
    fill: bool = False  # give it a random cluster for every missing label, as papers do for complete methods

    def settings(self) -> list[dict[str, Any]]:
        """Every point of the grid; none where there is no grid."""
        if not self.grid:
            return []
        return [dict(zip(self.grid, point, strict=True)) for point in product(*self.grid.values())]


@dataclass(frozen=True)
class Published:
    """A figure of the paper: its value, and where it is comparable."""

    data: str
    method: str
    metric: str
    value: float
    missing: float | None = None
    oracle: bool = True  # chosen with the labels, as most are
    at: float | None = None  # the value of the parameter that the experiment varies


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper, as data."""

    name: str
    title: str
    paper: str
    shows: tuple[str, ...]
    input: Kind
    data: tuple[Data, ...]
    methods: tuple[Method, ...]
    metrics: tuple[str, ...]
    seeds: int
    missing: tuple[float, ...] = (0.0,)
    protocol: str = "per_base"
    base: Base = Base()
    record: tuple[str, ...] = ()  # traces of a fit to keep, such as objective_
    vary: str = "missing"  # what the figure is drawn over: missing, or a parameter in the grid
    unavailable: Mapping[str, str] = field(default_factory=dict)  # what the paper has and we cannot
    notes: str = ""
    published: tuple[Published, ...] = ()
    small: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the data sets, each once: one may have a file for every share missing."""
        return tuple(dict.fromkeys(data.name for data in self.data))

    def in_small(self) -> Experiment:
        """The version that runs in seconds: fewer sets, ratios and seeds, the ends of every grid."""
        chosen = dict(self.small)
        names = chosen.pop("data", [self.data[0].name])
        methods = chosen.pop("methods", [method.name for method in self.methods])
        missing = tuple(chosen.pop("missing", self.missing[:1]))
        return replace(
            self,
            data=tuple(data for data in self.data if data.name in names),
            methods=tuple(_with_ends(method) for method in self.methods if method.name in methods),
            missing=missing,
            seeds=int(chosen.pop("seeds", 1)),
        )


def _with_ends(method: Method) -> Method:
    return replace(method, grid={name: (values[0], values[-1]) for name, values in method.grid.items()})


def available() -> list[str]:
    """Names of the experiments that come with the library."""
    folder = resources.files("consilience.bench") / FOLDER
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def load(name: str | Path) -> Experiment:
    """An experiment by its name, or from a TOML file of your own."""
    if str(name).endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise InputError(f"there is no file {str(path)!r}.", hint="an experiment is a TOML file.")
        return parse(path.read_text(), path.stem)
    if name not in available():
        raise InputError(f"there is no experiment {str(name)!r}.", did_you_mean(str(name), available()))
    text = (resources.files("consilience.bench") / FOLDER / f"{name}.toml").read_text()
    return parse(text, str(name))


def parse(text: str, name: str) -> Experiment:
    """An experiment from the text of its file."""
    content = tomllib.loads(text)
    try:
        content["data"] = tuple(_data(row) for row in content["data"])
        content["methods"] = tuple(_method(row) for row in content["methods"])
        content["published"] = tuple(Published(**row) for row in content.get("published", ()))
        content["base"] = Base(**_tuples(content.get("base", {})))
        found = Experiment(name=name, **_tuples(content))
    except (KeyError, TypeError) as error:
        raise InputError(
            f"experiment {name!r} cannot be read: {error}.", hint="see the fields of bench.Experiment."
        ) from error
    _check(found)
    return found


def _data(row: dict[str, Any]) -> Data:
    return Data(**{"file": row["name"], **_tuples(row)})


def _method(row: dict[str, Any]) -> Method:
    grid = {key: tuple(values) for key, values in row.pop("grid", {}).items()}
    return Method(**{"of": row["name"], **row, "grid": grid})


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def _check(experiment: Experiment) -> None:
    """Names that refer to other parts of the file must be there: a typing error would hide a figure."""
    sets = {data.name for data in experiment.data}
    methods = {method.name for method in experiment.methods}
    for row in experiment.published:
        if row.data not in sets or row.method not in methods or row.metric not in experiment.metrics:
            raise InputError(
                f"experiment {experiment.name!r} has a published figure of {row.method!r} on {row.data!r} "
                f"in {row.metric!r}, which it does not run.",
                hint="check the names.",
            )
    for name in experiment.small.get("data", ()):
        if name not in sets:
            raise InputError(
                f"the small version of {experiment.name!r} has no data {name!r}.", hint="check it."
            )
