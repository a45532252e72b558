"""A result as plain values: everything that a page shows, and nothing that JSON cannot hold."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import average, leaves_list
from scipy.spatial.distance import squareform

from consilience._support.errors import InputError, InputTypeError
from consilience._support.sklearn import Interval, check_parameter
from consilience._support.values import counted
from consilience.diagnostics import (
    Profile,
    cluster_flow,
    consensus_map,
    missing_patterns,
    pairwise_agreement,
    typical_labels,
)
from consilience.evidence.partitions import Partitions
from consilience.inference.counts import Finding, JointRows, adjusted_information, label_counts, to_plain
from consilience.report._instances import list_instances, plain_id
from consilience.results import Comparison, Fusion

FORMAT = "consilience-report/1"

_PACKAGES = ("consilience", "numpy", "scipy", "scikit-learn", "numba")
# Sizes of the pictures: cells of the consensus map (fewer where there are many results), bases of the map of
# base clusterings, sets and patterns of the chart of gaps, bars of the histograms.
_CELLS, _CELLS_OF_MANY, _MANY_RESULTS, _MOST_CLUSTERS = 100, 60, 5, 150
_MOST_BASES = 200
_MOST_SETS, _MOST_PATTERNS = 40, 20
_BARS = 20
_LEAST_LISTED = 200
_LONGEST_PARAMETER = 120
_TYPICAL = 3  # labels of a cluster


def summarize(
    results: Fusion | Comparison | Mapping[Any, Fusion] | Sequence[Fusion],
    *,
    title: str | None = None,
    command: str | None = None,
    created: datetime | str | None = None,
    listed: int = 3000,
    profile: Profile | None = None,
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
        The command or code that made the result, shown under "How to reproduce it".
    created : datetime or str, optional
        When it was made. None is now.
    listed : int, default=3000
        The most lines of the list of instances; those with the same labels everywhere share a line. With more
        lines, the list has the least sure ones and, for a quarter of it, some of every cluster. It names ten
        times as many ids at most. More than five results share five times this number, with at least 200
        each.
    profile : Profile, optional
        What :func:`consilience.diagnostics.profile` found for the (first) result.

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
    fusions = _named(results.fusions if isinstance(results, Comparison) else results)
    compared = [row for row in results.rows if not row.error] if isinstance(results, Comparison) else []
    tables: list[Partitions] = []
    for fusion in fusions.values():
        if not any(_same(fusion.opinions, table) for table in tables):
            tables.append(fusion.opinions)
    each = min(listed, max(_MANY_RESULTS * listed // len(fusions), _LEAST_LISTED))
    plain_tables = [_table(table) for table in tables]
    plain_results = []
    for name, fusion in fusions.items():
        number = next(t for t, table in enumerate(tables) if _same(fusion.opinions, table))
        cells = _CELLS if len(fusions) <= _MANY_RESULTS else _CELLS_OF_MANY
        plain_results.append(_result(name, fusion, number, plain_tables[number], each, cells))
    main = next(iter(fusions.values()))
    plain_results[0]["profile"] = None if profile is None else _profile(profile, main)
    for entry, fusion in zip(plain_results, fusions.values(), strict=True):
        entry["with_first"] = _similarity(main, fusion)
        entry["compared"] = None
    for entry, row in zip(plain_results, compared, strict=False):
        numbers = {"agreement": row.agreement, "stability": row.stability, "seconds": row.seconds}
        entry["compared"] = {name: to_plain(value) for name, value in numbers.items()}
    count = results.cluster_count if isinstance(results, Comparison) else None
    for entry in plain_results:
        if count is not None and entry["n_clusters"] == count.n_clusters:
            entry["count"] = count.as_dict()
    if created is None or isinstance(created, datetime):
        created = (created or datetime.now().astimezone()).isoformat(timespec="seconds")
    return {
        "format": FORMAT,
        "title": title or f"Consensus of {main.headline.merged}",
        "created": created,
        "command": command,
        "versions": {"python": platform.python_version(), **_versions()},
        "tables": plain_tables,
        "results": plain_results,
        "choice": results.reason if isinstance(results, Comparison) else None,
        "flows": [_flow(first, second) for first, second in pairwise(fusions.values())],
    }


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


def _default_name(fusion: Any) -> str:
    if not isinstance(fusion, Fusion):
        return type(fusion).__name__
    return f"{fusion.method}, {counted(fusion.n_clusters, 'cluster')}"


def _same_instances(first: Fusion, second: Fusion) -> bool:
    if len(first.labels) != len(second.labels) or (first.index is None) != (second.index is None):
        return False
    return first.index is second.index or np.array_equal(first.index, second.index)  # type: ignore[arg-type]


def _same(first: Partitions, second: Partitions) -> bool:
    return first is second or (first.names == second.names and np.array_equal(first.codes, second.codes))


def _versions() -> dict[str, str]:
    out = {}
    for package in _PACKAGES:
        try:
            out[package] = version(package)
        except PackageNotFoundError:  # run from a checkout that was never installed
            out[package] = "not installed"
    return out


# What was combined ----------------------------------------------------------------------------------------


def _table(partitions: Partitions) -> dict[str, Any]:
    """What is known before any consensus."""
    n_seen = partitions.n_seen
    groups = None if partitions.views is None else list(partitions.views)
    return {
        "n_instances": partitions.n_instances,
        "n_partitions": partitions.n_partitions,
        "n_distinct": partitions.distinct.n_rows,
        "n_labels": int(n_seen.sum()),
        "missing_share": partitions.missing_share,
        "n_complete": int((partitions.distinct.counts * _mask(partitions).all(axis=1)).sum()),
        "n_unseen": int(partitions.counts[~partitions.seen].sum()),
        "id_name": _id_name(partitions),
        "names": list(partitions.names),
        "groups": groups,
        "n_clusters": partitions.n_clusters_per_partition.tolist(),
        "n_seen": n_seen.tolist(),
        "patterns": _patterns(partitions, groups),
        "seen_by": _seen_by_bins(partitions.n_partitions),
        "agreement": _agreement(partitions, groups),
    }


def _mask(partitions: Partitions) -> np.ndarray:
    return partitions.distinct.codes >= 0


def _id_name(partitions: Partitions) -> str:
    if partitions.index is None:
        return "row"
    return str(partitions.index_name) if partitions.index_name is not None else "id"


def _patterns(partitions: Partitions, groups: list[str] | None) -> dict[str, Any]:
    """Which sets of base clusterings saw how many instances; bases with the same gaps are one column."""
    packed = np.packbits(_mask(partitions), axis=0)
    columns: dict[bytes, list[int]] = {}
    for j in range(partitions.n_partitions):
        columns.setdefault(packed[:, j].tobytes(), []).append(j)
    sets = list(columns.values())
    found = missing_patterns(partitions, max_patterns=_MOST_PATTERNS)
    shown = len(sets) <= _MOST_SETS
    return {
        "n_patterns": found.n_patterns,
        "n_sets": len(sets),
        "sets": [_set_name(members, partitions.names, groups) for members in sets] if shown else [],
        "first": [members[0] for members in sets] if shown else [],
        "seen": found.seen[:, [members[0] for members in sets]].tolist() if shown else [],
        "size": found.size.tolist() if shown else [],
    }


def _set_name(members: list[int], names: Sequence[str], groups: list[str] | None) -> str:
    if len(members) == 1:
        return names[members[0]]
    if len(members) == len(names):
        return f"all {len(names)}"
    if groups is not None:
        views = sorted({groups[j] for j in members}, key=groups.index)
        if sum(group in views for group in groups) == len(members):
            return " + ".join(views)
    return f"{names[members[0]]} and {len(members) - 1} more"


def _seen_by_bins(m: int) -> list[list[int]]:
    """From and to how many base clusterings saw an instance: a bar each."""
    if m <= _BARS + 4:
        return [[number, number] for number in range(m + 1)]
    edges = np.linspace(0, m + 1, _BARS + 1).round().astype(int).tolist()
    return [[low, high - 1] for low, high in pairwise(edges)]


def _agreement(partitions: Partitions, groups: list[str] | None) -> dict[str, Any]:
    """Base by base agreement in an order that puts like beside like; averaged where bases are many."""
    matrix = pairwise_agreement(partitions).agreement
    m = len(matrix)
    pairs = matrix[~np.eye(m, dtype=bool) & ~np.isnan(matrix)]
    mean = float(pairs.mean()) if len(pairs) else None
    known = np.where(np.isnan(matrix), mean or 0.0, matrix)
    order = np.arange(m)
    if groups is None and m > 2:
        apart = np.clip(1.0 - known, 0.0, None)
        np.fill_diagonal(apart, 0.0)
        order = leaves_list(average(squareform(apart, checks=False)))
    cells = np.array_split(order, min(m, _MOST_BASES))
    if len(cells) < m:
        member = np.zeros((len(cells), m))
        for row, cell in zip(member, cells, strict=True):
            row[cell] = 1.0 / len(cell)
        matrix = member @ known @ member.T
    else:
        matrix = matrix[np.ix_(order, order)]
    return {
        "bases": [cell.tolist() for cell in cells],
        "matrix": to_plain(matrix.round(2)),
        "mean": mean,
    }


# What was found -------------------------------------------------------------------------------------------


def _result(
    name: str, fusion: Fusion, number: int, table: dict[str, Any], listed: int, cells: int
) -> dict[str, Any]:
    partitions, found = fusion.opinions, fusion.diagnostics
    rows, head = fusion.rows, fusion.headline
    instances, explained = list_instances(fusion, rows, listed)
    return {
        "name": name,
        "table": number,
        "method": fusion.method,
        "reason": fusion.reason,
        "n_clusters": head.n_clusters,
        "names": None if fusion.cluster_names is None else list(fusion.names),
        "n_unassigned": head.n_unassigned,
        "confidence": head.confidence,
        "unsure": head.unsure,
        "ranks_only": found.ranks_only,
        "reading": found.reading,
        "effective_number": found.bases.effective_number,
        "dependence": found.dependence,
        "agreement": float(np.nanmean(found.bases.agreement)),
        "views": _views(fusion),
        "clusters": _clusters(fusion),
        "histogram": _histogram(fusion),
        "patterns": _patterns_by_cluster(rows, table["patterns"]),
        "seen_by": _seen_by_cluster(rows, table["seen_by"]),
        "base_seen": _base_seen(rows, partitions.offsets),
        "bases": {
            "agreement": to_plain(found.bases.agreement.round(4)),
            "weight": to_plain(found.bases.weights.round(4)),
            "novelty": to_plain(found.bases.novelty.round(4)),
            "silent": found.bases.silent.tolist(),
            "association": to_plain(found.missing.association.round(4)),
            "p_value": to_plain(found.missing.p_value),
        },
        "missing": {
            "pattern_agreement": to_plain(found.missing.pattern_agreement),
            "best_agreement": to_plain(found.missing.best_agreement),
            "never_together": found.links.never_together,
            "never_together_if_random": found.links.never_together_if_random,
            "n_components": found.links.n_components,
            "bottleneck": found.links.bottleneck,
        },
        "consensus": _consensus(fusion, cells),
        "warnings": [_warning(text) for text in head.warnings],
        "count": None if fusion.cluster_count is None else fusion.cluster_count.as_dict(),
        "candidates": [
            {"method": candidate.name, "agreement": float(candidate.agreement)}
            for candidate in fusion.candidates
        ],
        "model": type(fusion.model).__name__,
        "parameters": _parameters(fusion.model),
        "changes": _changes(fusion),
        "profile": None,
        "instances": instances,
        "explained": explained,
    }


def _views(fusion: Fusion) -> dict[str, Any] | None:
    """What was read and used of each view, and how strongly it supports each cluster."""
    used, told = fusion.views, fusion.view_diagnostics
    if told is None:
        return None
    return {
        "absent_share": float(1.0 - told.observed_.mean()),
        "names": [view.name for view in used],
        "kind": [view.kind for view in used],
        "looks": [", ".join(view.looks) for view in used],
        "n_rows": [view.n_rows for view in used],
        "n_empty": [view.n_empty for view in used],
        "agreement": to_plain(np.array([view.agreement for view in used])),
        "weight": [view.weight for view in used],
        "relation": to_plain(told.view_relations_),
        "support": to_plain(fusion.view_support),
    }


def _clusters(fusion: Fusion) -> list[dict[str, Any]]:
    found, head = fusion.diagnostics, fusion.headline
    typical = _typical(fusion)
    return [
        {
            "size": int(head.size[c]),
            "typical": typical[c],
            "confidence": float(head.cluster_confidence[c]),
            "unsure": float(head.cluster_unsure[c]),
            "coverage": float(head.cluster_coverage[c]),
            "consensus": float(found.clusters.own[c]),
            "between": float(found.clusters.between[c]),
            "nearest": int(found.clusters.nearest[c]),
        }
        for c in range(fusion.n_numbers)
    ]


def _typical(fusion: Fusion) -> list[list[dict[str, Any]]]:
    """For every cluster, the labels that are most typical of it, one of a base clustering."""
    found: list[list[dict[str, Any]]] = [[] for _ in range(fusion.n_numbers)]
    if fusion.partitions.views is not None:  # numbers that a program made up
        return found
    labels = typical_labels(fusion.opinions, fusion.rows)
    columns = (labels.cluster, labels.base, labels.label, labels.count, labels.share, labels.lift)
    for c, base, label, count, share, lift in zip(*columns, strict=True):
        told = found[c]
        if lift > 1.0 and len(told) < _TYPICAL and all(known["base"] != base for known in told):
            numbers = {"count": int(count), "share": round(share, 4), "lift": round(lift, 4)}
            told.append({"base": base, "label": plain_id(label), **numbers})
    return found


def _changes(fusion: Fusion) -> dict[str, Any] | None:
    """What became of the clusters of an earlier result: in words, a line for each cluster, and the flows."""
    found = fusion.changes
    if found is None:
        return None
    names = {} if fusion.cluster_names is None else dict(enumerate(fusion.names))
    before, now = Counter[int](), Counter[int]()
    for flow in found.flows:
        before[flow.before] += flow.n_instances
        now[flow.now] += flow.n_instances
    sizes = np.bincount(fusion.labels[fusion.labels >= 0], fusion.opinions.counts[fusion.labels >= 0])
    kept = {flow.now: flow.n_instances for flow in found.flows if flow.before == flow.now}
    lines = []
    for c in sorted({*found.stayed, *found.appeared, *found.vanished}):
        what = "new" if c in found.appeared else "gone" if c in found.vanished else "stayed"
        here = c not in found.vanished
        size = int(sizes[c]) if here else 0
        lines.append(
            {
                "cluster": c,
                "name": {**found.names, **names}.get(c, str(c)),
                "what": what,
                "split": list(found.split.get(c, ())),
                "merged": list(found.merged.get(c, ())),
                "before": before[c],
                "kept": kept.get(c, 0),
                "left": before[c] - kept.get(c, 0),
                "joined": now[c] - kept.get(c, 0),
                "new": size - now[c],
                "now": size,
            }
        )
    return {
        "sentences": list(found.told(names)),
        "n_common": found.n_common,
        "n_new": found.n_new,
        "n_gone": found.n_gone,
        "n_moved": found.n_moved,
        "clusters": lines,
        "flows": [list(flow) for flow in found.flows],
    }


def _profile(found: Profile, fusion: Fusion) -> dict[str, Any]:
    """What distinguishes the clusters in columns that were not clustered."""
    if not isinstance(found, Profile):
        raise InputTypeError(
            f"profile must be a Profile, got {type(found).__name__}.",
            hint="pass what diagnostics.profile(fusion, frame) returned.",
        )
    if len(found.cluster_names) != fusion.n_numbers:
        raise InputError(
            f"the profile is about {counted(len(found.cluster_names), 'cluster')}, the result has "
            f"{fusion.n_numbers}.",
            hint="make it of the first result: diagnostics.profile(fusion, frame).",
        )
    told = found.as_dict()
    for column in told["columns"]:
        for cluster in column["clusters"]:
            for level in cluster.get("levels", ()):
                level["level"] = plain_id(level["level"])
    del told["cluster_names"]  # the result may have been named since
    return {**told, "warnings": [_warning(text) for text in found.warnings]}


def _histogram(fusion: Fusion) -> list[list[int]]:
    """Instances by confidence, in bars of equal width from 0 to 1, and by cluster (last: unassigned)."""
    bar = np.minimum((fusion.confidence * _BARS).astype(np.int64), _BARS - 1)
    return _by_cluster(bar, fusion.labels, fusion.opinions.counts, _BARS, fusion.n_numbers)


def _by_cluster(
    kind: np.ndarray, labels: np.ndarray, counts: np.ndarray, n_kinds: int, k: int
) -> list[list[int]]:
    """Table of kinds x (clusters and, last, unassigned)."""
    cells = kind.astype(np.int64) * (k + 1) + np.where(labels < 0, k, labels)
    table = np.bincount(cells, counts, n_kinds * (k + 1)).reshape(n_kinds, k + 1)
    return table.astype(np.int64).tolist()


def _patterns_by_cluster(rows: JointRows, patterns: dict[str, Any]) -> list[list[int]]:
    if not patterns["size"]:
        return []
    power = 1 << np.arange(len(patterns["first"]), dtype=np.int64)
    shown = np.array(patterns["seen"]) @ power
    order = np.argsort(shown)
    key = (rows.codes[:, patterns["first"]] >= 0) @ power
    place = np.minimum(np.searchsorted(shown, key, sorter=order), len(shown) - 1)
    known = shown[order][place] == key
    kind = order[place[known]]
    return _by_cluster(kind, rows.labels[known], rows.counts[known], len(shown), rows.n_clusters)


def _seen_by_cluster(rows: JointRows, bins: list[list[int]]) -> list[list[int]]:
    n_seen = (rows.codes >= 0).sum(axis=1)
    kind = np.searchsorted([high for _, high in bins], n_seen)
    return _by_cluster(kind, rows.labels, rows.counts, len(bins), rows.n_clusters)


def _base_seen(rows: JointRows, offsets: np.ndarray) -> list[list[int]]:
    """Members of every cluster that every base clustering saw."""
    return np.add.reduceat(label_counts(rows, offsets), offsets[:-1], axis=0).astype(np.int64).tolist()


def _consensus(fusion: Fusion, cells: int) -> dict[str, Any] | None:
    """Co-association of cells of the instances ordered by cluster, in percent."""
    if fusion.n_clusters > _MOST_CLUSTERS:
        return None
    found = consensus_map(fusion.opinions, fusion.labels, max_cells=cells)
    percent = to_plain((100 * found.coassociation).round())
    return {
        "agreement": [[None if value is None else int(value) for value in row] for row in percent],
        "cluster": found.cluster.tolist(),
        "size": found.size.tolist(),
    }


def _warning(found: Finding) -> dict[str, str]:
    return {part: sentence[:1].upper() + sentence[1:] for part, sentence in vars(found).items()}


def _parameters(model: Any) -> dict[str, Any]:
    if not hasattr(model, "get_params"):
        return {}
    return {name: _plain_parameter(value) for name, value in model.get_params(deep=False).items()}


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


def _similarity(first: Fusion, second: Fusion) -> float | None:
    """Adjusted mutual information of two results; 1 where they are the same."""
    if np.array_equal(first.labels, second.labels):
        return 1.0
    return to_plain(adjusted_information(_joint(first, second).astype(float)))


def _flow(first: Fusion, second: Fusion) -> list[list[int]]:
    """Triples: cluster of the first, cluster of the second, instances in both."""
    table = _joint(first, second)
    a, b = np.nonzero(table)
    return np.column_stack([a, b, table[a, b]]).tolist()


def _joint(first: Fusion, second: Fusion) -> np.ndarray:
    return cluster_flow(first.labels, second.labels, counts=first.opinions.counts)
