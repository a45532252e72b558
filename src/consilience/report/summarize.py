"""A result as plain values: everything that a page shows, and nothing that JSON cannot hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from numbers import Integral
from typing import Any

import numpy as np

from consilience._support.errors import InputError, InputTypeError
from consilience._support.sklearn import Interval, check_parameter
from consilience._support.values import counted
from consilience.diagnostics import Profile
from consilience.report.form import broken, length, plain, read
from consilience.report.job import Job
from consilience.report.sections import SECTIONS
from consilience.results import Comparison, Fusion, Levels, Stability

FORMAT = "consilience-report/1"

Results = Fusion | Comparison | Mapping[Any, Any] | Sequence[Fusion]


@dataclass
class _Page:
    """Keys of a summary that no section adds."""

    format: str
    title: str
    created: str = ""


@dataclass
class _Table:
    """Keys of a table that no section adds."""

    n_instances: int
    missing_share: float = 0.0
    id_name: str = "row"
    counted: bool = False  # rows stand for many instances, which have no ids


@dataclass
class _Result:
    """Keys of a result that no section adds."""

    table: int


_FORMS = {
    level: [own, *(getattr(section, level) for section in SECTIONS if hasattr(section, level))]
    for level, own in (("Page", _Page), ("Table", _Table), ("Result", _Result))
}
_SIZES = {thing: path for section in SECTIONS for thing, path in getattr(section, "SIZES", {}).items()}


def summarize(
    results: Results,
    *,
    title: str | None = None,
    command: str | None = None,
    created: datetime | str | None = None,
    listed: int = 3000,
    profile: Profile | None = None,
    stability: Stability | None = None,
    levels: Levels | None = None,
    hide_ids: bool = False,
) -> dict[str, Any]:
    """Everything that the page shows, as numbers, texts, lists and dicts; what is unknown is None.

    It survives ``json.dumps`` and ``json.loads`` unchanged, so it is also how a result is kept for later.

    Parameters
    ----------
    results : Fusion, dict or list of Fusion, or Comparison
        One result, or several of the same instances: other methods, or other numbers of clusters. The first
        is the main one. The keys of a dict name them. What :func:`consilience.compare` returns also has their
        stability and the seconds they took.
    title : str, optional
        Heading of the page.
    command : str, optional
        The command or code that made the result, shown under "How it was made".
    created : datetime or str, optional
        When it was made. None is now.
    listed : int, default=3000
        The most lines of the list of instances; those with the same labels everywhere share a line. With more
        lines, the list has the least sure ones and, for a quarter of it, some of every cluster. It names ten
        times as many ids at most. More than five results share five times this number, with at least 200
        each.
    profile : Profile, optional
        What :func:`consilience.diagnostics.profile` found for the (first) result.
    stability : Stability, optional
        What :meth:`consilience.Fusion.stability` found for the (first) result.
    levels : Levels, optional
        What :meth:`consilience.Fusion.levels` found for the (first) result.
    hide_ids : bool, default=False
        Whether to leave out the ids of instances, as on a page that is passed on: positions in the table are
        in their place.

    Returns
    -------
    summary : dict
        ``summary["format"]`` names the form. It is what :func:`render` takes.

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.report import summarize
    >>> labels = [["a", "x"], ["a", None], ["b", "y"], [None, "y"], ["a", "y"]]
    >>> summary = summarize(fuse(labels, 2, random_state=0), title="Two opinions")
    >>> summary["tables"][0]["n_instances"], summary["results"][0]["n_clusters"]
    (5, 2)
    """
    check_parameter(
        "listed", listed, Interval(Integral, 1, None, closed="left"), "summarize", hint="use 3000"
    )
    comparison = results if isinstance(results, Comparison) else None
    fusions = _named(results if comparison is None else comparison.fusions)
    if hide_ids:
        fusions = {name: _without_ids(fusion) for name, fusion in fusions.items()}
    job = Job(fusions, comparison, command, listed, profile, stability, levels, hide_ids)
    tables: list[Fusion] = []  # one for each table
    entries = []
    for name, fusion in fusions.items():
        number = next((t for t, known in enumerate(tables) if _same_table(known, fusion)), len(tables))
        tables += [fusion] * (number == len(tables))
        entries.append({"table": number, **_merged("of", fusion, job._replace(name=name))})
    if created is None or isinstance(created, datetime):
        created = (created or datetime.now().astimezone()).isoformat(timespec="seconds")
    return checked(
        {
            "format": FORMAT,
            "title": title or f"Consensus of {job.main.headline.merged}",
            "created": created,
            **_merged("of_page", job),
            "tables": [_table(fusion) for fusion in tables],
            "results": entries,
        }
    )


def checked(summary: Any) -> dict[str, Any]:
    """A summary with every key of every section; an error names the first entry that is something else."""
    name = summary.get("format") if isinstance(summary, Mapping) else None
    if name != FORMAT:
        shown = f"its format is {repr(name)[:40]}" if name is not None else "it names no format"
        raise InputError(
            f"this is no result that a page can be made of: {shown}, not {FORMAT!r}.",
            hint="use what summarize returned or 'consilience fuse --json' wrote, with this version.",
        )
    for key in ("tables", "results"):
        if not isinstance(summary.get(key), list):
            raise broken(f"summary.{key}", "a list")
    if not summary["results"]:
        raise InputError("the summary has no results.", hint="make it again with summarize.")
    found = read(summary, _FORMS["Page"], "summary", {})
    found["tables"] = [
        read(table, _FORMS["Table"], f"tables[{number}]", _sizes(table))
        for number, table in enumerate(summary["tables"])
    ]
    found["results"] = []
    for number, result in enumerate(summary["results"]):
        where, table = f"results[{number}]", length(result, ["table"])
        if not 0 <= table < len(found["tables"]):
            raise broken(f"{where}.table", "the position of a table")
        sizes = {
            thing: n or length(result, _SIZES[thing]) for thing, n in _sizes(found["tables"][table]).items()
        }
        entry = read(result, _FORMS["Result"], where, sizes)
        if sum(cluster["size"] > 0 for cluster in entry["clusters"]) != entry["n_clusters"]:
            raise broken(f"{where}.clusters", f"a list of {entry['n_clusters']} clusters with members")
        found["results"].append(entry)
    return found


def _sizes(value: Any) -> dict[str, int]:
    return {thing: length(value, path) for thing, path in _SIZES.items()}


def _merged(function: str, *given: Any) -> dict[str, Any]:
    """The keys that sections add, by the name of the function that makes them."""
    made = (getattr(section, function)(*given) for section in SECTIONS if hasattr(section, function))
    return {key: value for part in made if part is not None for key, value in plain(part).items()}


def _table(fusion: Fusion) -> dict[str, Any]:
    table, told = fusion.opinions, fusion.headline
    own = _Table(told.n_instances, told.missing_share)
    own.counted = table.index is None and table.n_rows < table.n_instances
    if own.counted:
        own.id_name = "labels"
    elif table.index is not None:
        own.id_name = "id" if table.index_name is None else str(table.index_name)
    return {**plain(own), **_merged("of_table", table)}


def _named(results: Any) -> dict[str, Fusion]:
    """Results by name, and an error for what is none or does not belong together."""
    if isinstance(results, Fusion):
        results = [results]
    if isinstance(results, Mapping):
        named = {str(name): fusion for name, fusion in results.items()}
    else:
        named, times = {}, Counter[str]()
        for fusion in results if isinstance(results, Sequence) else [results]:
            name = _default_name(fusion)
            times[name] += 1
            named[f"{name} ({times[name]})" if times[name] > 1 else name] = fusion
    if not named:
        raise InputError("there is no result to report.", hint="pass what fuse or fuse_views returned.")
    main = next(iter(named.values()))
    for name, fusion in named.items():
        if not isinstance(fusion, Fusion):
            raise InputTypeError(
                f"a report is about a Fusion, or a list or dict of them. Got {type(fusion).__name__} "
                "instead.",
                hint="pass what fuse or fuse_views returned.",
            )
        if not _same_instances(main, fusion):
            raise InputError(
                f"result {name!r} is about other instances than the first one ({len(fusion.labels)} and "
                f"{len(main.labels)}).",
                hint="one page compares results of the same instances in one order.",
            )
    return named


def _without_ids(fusion: Fusion) -> Fusion:
    return replace(fusion, partitions=replace(fusion.partitions, index=None, index_name=None))


def _default_name(fusion: Any) -> str:
    if not isinstance(fusion, Fusion):
        return type(fusion).__name__
    return f"{fusion.method}, {counted(fusion.n_clusters, 'cluster')}"


def _same_instances(first: Fusion, second: Fusion) -> bool:
    if len(first.labels) != len(second.labels) or (first.index is None) != (second.index is None):
        return False
    return first.index is second.index or np.array_equal(first.index, second.index)  # type: ignore[arg-type]


def _same_table(one: Fusion, other: Fusion) -> bool:
    first, second = one.opinions, other.opinions
    return first is second or (first.names == second.names and np.array_equal(first.codes, second.codes))
