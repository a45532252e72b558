"""From rows of fits to sections of tables and pictures: nothing is on the page that is not in the results."""

import json
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.quality_published_views import SETS as PUBLISHED
from benchmarks.record import design
from benchmarks.record.pictures import bars, critical_differences, lines
from benchmarks.record.rules import held_out
from benchmarks.record.scale import GIGABYTES, OURS, SECONDS
from benchmarks.record.statistics import LEVEL, against, ranks

METRICS = {
    "nmi_sqrt": "NMI (sqrt)",
    "nmi_max": "NMI (max)",
    "nmi_arithmetic": "NMI (arithmetic)",
    "ari": "ARI",
    "acc": "ACC",
}
MAIN = "nmi_sqrt"
SHOWN = ("fuse", *design.SINGLE)
MIXED_PLANTED = "mixed numbers"  # the planted family to which the rule of fuse applies


class Table(NamedTuple):
    """Columns of words or numbers; `choice` names it among tables that take turns in one place."""

    columns: list[tuple[str, str]]  # name, and "name" or "number"
    rows: list[list[Any]]
    note: str = ""
    choice: str = ""
    digits: int = 3


class Picture(NamedTuple):
    """A drawing, as SVG, and what it shows."""

    svg: str
    caption: str


class Section(NamedTuple):
    """A question, words, and what answers it."""

    title: str
    text: list[str]
    blocks: list[Table | Picture | list[Table]]


# Means that are about the same tables ----------------------------------------------------------------------


def by_data(rows: pd.DataFrame, methods: tuple[str, ...], metric: str) -> pd.DataFrame:
    """Mean score of each method (columns) on each data set, over draws in which every one of them has it.

    Only draws that every data set of these rows has, so that a run which was stopped halfway leaves no trace.
    """
    rows = rows[rows["method"].isin(methods) & (rows["error"] == "")]
    wide = rows.pivot_table(index=["data", "draw"], columns="method", values=metric).dropna()
    if wide.empty:
        return wide
    per_draw = wide.groupby("draw").size()
    complete = per_draw.index[per_draw == len(wide.index.unique("data"))]
    wide = wide[wide.index.get_level_values("draw").isin(complete)]
    return wide.groupby("data").mean()[[name for name in methods if name in wide]]


def n_draws(rows: pd.DataFrame, methods: tuple[str, ...]) -> int:
    """In how many draws every method was fitted on every data set of these rows."""
    rows = rows[rows["method"].isin(methods) & (rows["error"] == "")]
    per_draw = rows.groupby("draw").size()
    wanted = rows["data"].nunique() * rows["method"].nunique()
    return int((per_draw == wanted).sum())


def _pick(rows: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    for name, value in wanted.items():
        rows = rows[rows[name].isin(value) if isinstance(value, tuple) else rows[name] == value]
    return rows


def _mixed(rows: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    usual: dict[str, Any] = {"part": "labels", "group": "mixed", "mechanism": "entries", "factor": 1.0}
    return _pick(rows, **(usual | wanted))


# Sections --------------------------------------------------------------------------------------------------


def sections(rows: pd.DataFrame, scale: pd.DataFrame) -> list[Section]:
    """The page, in the order of a reader's questions."""
    made = [
        _what(rows),
        _entries(rows),
        _lead(rows),
        _ranks(rows),
        _mechanisms(rows),
        _wrong_k(rows),
        _other_pools(rows),
        _few(rows),
        _everything(rows),
        _limit(rows),
        _rule(rows),
        _views(rows),
        _published(rows),
        _scale(scale),
        _left_out(rows),
    ]
    return [section for section in made if section is not None and section.blocks]


def _what(rows: pd.DataFrame) -> Section:
    keys = ["part", "group", "mechanism"]
    lines_ = []
    for key, some in rows.groupby(keys):
        fitted = some[some["error"] == ""]
        lines_.append(
            [
                *key,
                some["data"].nunique(),
                _listed(sorted(some["missing"].unique())),
                _listed(sorted(some["bases"].unique())),
                _listed(sorted(some["factor"].unique())),
                some["method"].nunique(),
                int(some["draw"].max()) + 1,
                len(fitted),
                round(float(fitted["seconds"].sum())),
            ]
        )
    columns = [
        *((name, "name") for name in ("part", "data", "how labels or rows are missing")),
        ("sets", "number"),
        *((name, "name") for name in ("shares missing", "base clusterings", "k told / classes")),
        *((name, "number") for name in ("methods", "draws begun", "fits", "processor s")),
    ]
    return Section(
        "What was run",
        [
            "Every line is a part of the design; draws come outermost, so what is here is about the same "
            "tables "
            "for all methods. A mean below is over data sets of means over the draws that all methods of its "
            "table have; a draw that was begun and not finished is not counted.",
            f"Pools have at most {_listed(sorted(set(_pick(rows, part='labels')['rows']) - {0}))} rows, "
            "drawn "
            "at random for every draw. Methods have their defaults, know the number of clusters as the "
            "column "
            "says, and never the classes.",
            _not_begun(rows),
        ],
        [Table(columns, lines_)],
    )


def _not_begun(rows: pd.DataFrame) -> str:
    """Parts of the design and methods of which there is nothing yet."""
    designed = {
        (_words(cell.table), cell.method) for cell in design.cells(1) if cell.table.part != "published"
    } | {("beside published figures", design.FUSED_VIEWS)}
    begun = {
        ("beside published figures" if row.part == "published" else _words(row), row.method)
        for row in rows[["part", "group", "mechanism", "missing", "factor", "method"]]
        .drop_duplicates()
        .itertuples()
    }
    parts = sorted({part for part, _ in designed} - {part for part, _ in begun})
    methods = sorted({method for _, method in designed} - {method for _, method in begun})
    if not parts and not methods:
        return "Every part of the design and every method has been begun."
    return (
        f"Not begun yet: {'; '.join(parts) or 'no part'}. Methods without a fit: "
        f"{', '.join(methods) or 'none'}."
    )


def _words(what: Any) -> str:
    if what.part == "views":
        return "views as they are" if what.mechanism == "natural" else f"views, {_PROTOCOLS[what.mechanism]}"
    told = "" if what.factor == 1.0 else f", {what.factor:g} times as many clusters as classes"
    if what.part == design.FEW_PART:
        return f"{design.FEW_PART}, {what.group}{told}"
    return f"labels, {what.group} pools, missing by {what.mechanism}{told}"


def _entries(rows: pd.DataFrame) -> Section | None:
    some = _mixed(rows)
    if some.empty:
        return None
    conditions = sorted(set(zip(some["bases"], some["missing"], strict=True)))
    means = {
        (metric, *condition): by_data(
            _pick(some, bases=condition[0], missing=condition[1]), SHOWN, metric
        ).mean()
        for metric in METRICS
        for condition in conditions
    }
    blocks: list[Any] = []
    for bases in sorted(some["bases"].unique()):
        ratios = [missing for b, missing in conditions if b == bases]
        columns = [
            ("method", "name"),
            *((f"{missing:.0%}", "number") for missing in ratios),
            ("mean", "number"),
        ]
        tables = []
        for metric, name in METRICS.items():
            lines_ = []
            for method in SHOWN:
                values = [_number(means[metric, bases, missing].get(method)) for missing in ratios]
                known = [value for value in values if value is not None]
                lines_.append([method, *values, _number(np.mean(known)) if known else None])
            note = f"{bases} base clusterings; columns are shares of labels missing."
            tables.append(Table(columns, _sorted(lines_), note, choice=name))
        curves = {
            method: [
                (missing, float(means[MAIN, bases, missing][method]))
                for missing in ratios
                if method in means[MAIN, bases, missing]
            ]
            for method in SHOWN
        }
        picture = lines(curves, "share of labels missing", METRICS[MAIN])
        blocks += [tables, Picture(picture, f"{bases} base clusterings")]
    costs = some[(some["error"] == "") & some["method"].isin(SHOWN)].groupby("method")
    cost_table = Table(
        [
            ("method", "name"),
            ("processor s, median", "number"),
            ("s, largest", "number"),
            ("MB, largest", "number"),
        ],
        [
            [
                method,
                _number(one["seconds"].median()),
                _number(one["seconds"].max()),
                _number(one["peak_mb"].max(), 1),
            ]
            for method, one in costs
        ],
        "Seconds of the processor on one thread, of a machine busy with other work; memory beyond what "
        "was in use.",
    )
    counts = {
        condition: n_draws(_pick(some, bases=condition[0], missing=condition[1]), SHOWN)
        for condition in conditions
    }
    return Section(
        "Labels missing entry by entry",
        [
            f"{some['data'].nunique()} pools of base clusterings with 2 to sqrt(n) clusters (Huang, Wang "
            "and Lai, "
            f"2018); {_range(counts.values())} draws a cell.",
        ],
        [*blocks, cost_table],
    )


def _lead(rows: pd.DataFrame) -> Section | None:
    some = _mixed(rows)
    lines_, behind = [], []
    for (bases, missing), here in some.groupby(["bases", "missing"]):
        scores = by_data(here, SHOWN, MAIN)
        if "fuse" not in scores:
            continue
        single = scores.drop(columns="fuse")
        best = str(single.mean().idxmax())
        gap = scores["fuse"] - single[best]
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        oracle = _best_each(here, MAIN)
        ahead = gap.mean() > 0.0
        lines_.append(
            [
                int(bases),
                f"{missing:.0%}",
                n_draws(here, SHOWN),
                _number(scores["fuse"].mean(), 4),
                best,
                _number(single[best].mean(), 4),
                _number(gap.mean(), 4),
                _number(error, 4),
                "ahead" if ahead else "level" if abs(gap.mean()) < 5e-5 else "behind",
                _number(oracle, 4),
            ]
        )
        if gap.mean() < -5e-5:
            behind.append(f"{bases} bases, {missing:.0%} missing ({best}, {-gap.mean():.4f})")
    if not lines_:
        return None
    columns = [
        ("bases", "number"),
        ("missing", "name"),
        ("draws", "number"),
        ("fuse", "number"),
        ("best single method", "name"),
        ("its mean", "number"),
        ("difference", "number"),
        ("its error", "number"),
        ("fuse is", "name"),
        ("best method a draw", "number"),
    ]
    n_behind = len(behind)
    text = [
        "The best single method of a cell is picked with the classes in hand, after the fact. The error is "
        "the standard error over pools.",
        f"fuse is behind the best single method in {n_behind} of {len(lines_)} cells: {'; '.join(behind)}."
        if behind
        else "fuse is behind no single method in any cell.",
    ]
    overall = pd.concat([by_data(here, SHOWN, MAIN) for _, here in some.groupby(["bases", "missing"])])
    means = overall.groupby("data").mean()
    table = Table(
        [
            ("method", "name"),
            ("fuse is ahead by", "number"),
            ("pools won", "number"),
            ("lost", "number"),
            ("p (Wilcoxon, Holm)", "number"),
        ],
        [
            [one.method, _number(one.mean, 4), one.wins, one.losses, _number(one.p_value)]
            for one in against(means, "fuse")
        ],
        f"Means over all cells above, {len(means)} pools; p below {LEVEL} is more than chance.",
    )
    return Section("Does fuse lead?", text, [Table(columns, lines_, digits=4), table._replace(digits=4)])


def _best_each(rows: pd.DataFrame, metric: str) -> float:
    """The best single method of every draw, picked with the classes."""
    rows = rows[rows["method"].isin(design.SINGLE) & (rows["error"] == "")]
    wide = rows.pivot_table(index=["data", "draw"], columns="method", values=metric).dropna()
    return float(wide.max(axis=1).groupby("data").mean().mean())


def _ranks(rows: pd.DataFrame) -> Section | None:
    some = _mixed(rows)
    pictures: list[Any] = []
    for missing, here in [("all", some), *((f"{m:.0%} missing", g) for m, g in some.groupby("missing"))]:
        cells = [by_data(one, SHOWN, MAIN) for _, one in here.groupby(["bases", "missing"])]
        scores = pd.concat(cells).groupby("data").mean().dropna(axis=1) if cells else pd.DataFrame()
        if scores.shape[0] < 3 or scores.shape[1] < 3:
            continue
        found = ranks(scores)
        caption = (
            f"{'All shares missing' if missing == 'all' else missing}: mean ranks over {found.n} pools. "
            "Methods joined by "
            f"a bar are not told apart (Nemenyi, critical difference {found.difference:.2f}; Friedman p = "
            f"{found.p_value:.1e})."
        )
        pictures.append(Picture(critical_differences(found), caption))
    return (
        Section(
            "Ranks, and which differences are more than chance",
            [
                "A pool counts once: its score is the mean over cells and draws. With eleven pools only "
                "large differences are "
                "more than chance."
            ],
            pictures,
        )
        if pictures
        else None
    )


def _grid(
    rows: pd.DataFrame,
    by: list[str],
    methods: tuple[str, ...],
    name: Any,
    metrics: tuple[str, ...] = (MAIN, "ari", "acc"),
) -> list[Table]:
    tables = []
    for metric in metrics:
        means = {key: by_data(here, methods, metric) for key, here in rows.groupby(by)}
        # A condition that not all data sets have yet would be about others than its neighbours.
        most = max(len(found) for found in means.values())
        means = {key: found for key, found in means.items() if most and len(found) == most}
        if not means:
            continue
        columns: list[tuple[str, str]] = [("method", "name"), *((name(key), "number") for key in means)]
        lines_ = []
        for method in methods:
            values = [_number(found[method].mean()) if method in found else None for found in means.values()]
            known = [value for value in values if value is not None]
            if known:
                lines_.append(
                    [method, *values, _number(np.mean(known)) if len(known) == len(values) else None]
                )
        tables.append(Table([*columns, ("mean", "number")], _sorted(lines_), choice=METRICS[metric]))
    return tables


def _mechanisms(rows: pd.DataFrame) -> Section | None:
    some = _mixed(rows, mechanism=("entries", *design.MECHANISMS), bases=20, missing=(0.5, 0.9))
    if some["mechanism"].nunique() < 2:
        return None
    tables = _grid(some, ["mechanism", "missing"], SHOWN, lambda key: f"{key[0]}, {key[1]:.0%}")
    return Section(
        "Labels missing by blocks, and not at random",
        [
            "20 base clusterings. Blocks: instances are dealt into 50 groups at random, and a base "
            "clustering lacks "
            "whole groups. Not at random: some clusters of a base clustering are seen less than others "
            "(log odds two "
            "apart). Entries, for comparison: each on its own."
        ],
        [tables],
    )


def _wrong_k(rows: pd.DataFrame) -> Section | None:
    some = _pick(rows, part="labels", group="mixed", mechanism="entries", bases=20, missing=(0.0, 0.5, 0.9))
    if some["factor"].nunique() < 2:
        return None
    tables = _grid(some, ["factor", "missing"], SHOWN, lambda key: f"k x {key[0]:g}, {key[1]:.0%}")
    return Section(
        "The number of clusters wrong by a factor of two",
        [
            "20 base clusterings, share of labels missing; methods are told half or twice the number of "
            "classes."
        ],
        [tables],
    )


def _other_pools(rows: pd.DataFrame) -> Section | None:
    every = (*SHOWN, *design.OTHERS, *design.SLOW)
    some = _pick(rows, part="labels", group=("constant", "planted", "as published"), factor=1.0)
    if some.empty:
        return None
    blocks: list[Any] = []
    for group, here in some.groupby("group"):
        for table in _grid(here, ["missing"], every, lambda key: f"{key[0]:.0%}", (MAIN,)):
            blocks.append(table._replace(note=_GROUPS[str(group)], choice=""))
    return Section(
        "Constant numbers of clusters, and planted ones",
        [
            "Columns are shares of labels missing. Here every method is fitted, the slowest on tables of "
            "at most "
            f"{design.SLOW_ROWS} rows and at half of the labels missing."
        ],
        blocks,
    )


_GROUPS = {
    "constant": "Lung, GLIOMA and Yale: every base clustering has as many clusters as there are classes; "
    "20 bases.",
    "planted": "Eight planted clusters: equal, unequal, seen through mixed numbers of clusters, and by "
    "few experts.",
    "as published": "pixraw10P as the authors of PCE made it: runs of ten base clusterings with gaps of "
    "their own.",
}


def _few(rows: pd.DataFrame) -> Section | None:
    some = _pick(rows, part=design.FEW_PART)
    if some.empty:
        return None
    true_k = few_means(_pick(some, factor=1.0))
    blocks: list[Any] = [table for metric in FEW_METRICS for table in [_few_table(true_k, metric)] if table]
    other = _pick(some, factor=design.FACTORS)
    if not other.empty:
        means_ = {factor: few_means(here) for factor, here in other.groupby("factor")}
        columns = [
            ("method", "name"),
            *((f"k x {factor:g}, {half}", "number") for factor in means_ for half in HALVES.values()),
        ]
        lines_ = [
            [
                method,
                *(_number(found[MAIN_FEW].loc[method, half]) for found in means_.values() for half in HALVES),
            ]
            for method in design.FEW_METHODS
            if all(method in found[MAIN_FEW].index for found in means_.values())
        ]
        note = f"{METRICS[MAIN_FEW]} where methods are told half or twice the number of classes."
        blocks.append(Table(columns, sorted(lines_, key=lambda line: -sum(line[1:])), note))
    counts = _pick(some, factor=1.0, method="fuse").groupby("group").size()
    return Section(
        "Few sources",
        [
            f"Two to eight sources with numbers of clusters of their own, {_range(counts)} tables a family, "
            f"at most {design.FEW_ROWS} rows; each source lacks up to 60 % of the instances. A: views of a "
            "real set, each clustered at half to twice the number of classes. B: annotators who are right of "
            "50 to 90 % and merge or split classes; in B2 they share confusions, or some are useless. C: "
            "resolutions of one clustering and one or two independent sources; in C2 graph clusterings of "
            "views. D: columns of tables. The rule of fuse was chosen on A1, B1, C1 and D1, and the others, "
            "of other data sets, were held out.",
            "Regret: how far a method is behind the best of all single methods of the same table, picked "
            "with the classes.",
        ],
        blocks,
    )


HALVES = {"1": "development", "2": "held out"}
MAIN_FEW = "nmi_max"  # divided by the larger entropy: too many clusters are not rewarded
FEW_METRICS = (MAIN_FEW, "ari")


def few_means(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By metric: a row per method, its mean in each family and half, over both, and its regret.

    Only tables that every method has; a half is the mean of its families.
    """
    rows = rows[rows["error"] == ""]
    found = {}
    for metric in FEW_METRICS:
        keys = ["group", "data", "draw", "factor"]
        wide = rows.pivot_table(index=keys, columns="method", values=metric).dropna()
        regret = -wide.sub(wide.drop(columns="fuse", errors="ignore").max(axis=1), axis=0)
        mean, behind = (each.groupby("group").mean().T for each in (wide, regret))
        for half in HALVES:
            families = [group for group in design.FEW if group.endswith(half) and group in behind]
            mean[half] = mean[families].mean(axis=1)
            mean[f"regret {half}"] = behind[families].mean(axis=1)
        found[metric] = mean
    return found


def _few_table(means_: dict[str, pd.DataFrame], metric: str) -> Table | None:
    found = means_[metric]
    families = [group for group in design.FEW if group in found]
    names = {half: said for half, said in HALVES.items() if half in found}
    if found.empty or not families:
        return None
    columns = [("method", "name"), *((name, "number") for name in families)]
    columns += [(said, "number") for said in names.values()]
    columns += [(f"regret, {said}", "number") for said in names.values()]
    shown = [*families, *names, *(f"regret {half}" for half in names)]
    lines_ = [[str(method), *map(_number, found.loc[method, shown])] for method in found.index]
    lines_.sort(key=lambda line: -sum(line[1 + len(families) : 1 + len(families) + len(names)]))
    return Table(columns, lines_, METRICS[metric])


def _everything(rows: pd.DataFrame) -> Section | None:
    every = ("fuse", *design.SINGLE, *design.OTHERS)
    some = _mixed(rows, bases=20, missing=(0.0, 0.5, 0.9))
    some = some[some["missing"].isin(some["missing"][some["method"].isin(design.OTHERS)].unique())]
    if some.empty:
        return None
    blocks: list[Any] = [_grid(some, ["missing"], every, lambda key: f"{key[0]:.0%}")]
    half = by_data(_pick(some, missing=0.5), every, MAIN)
    if half.shape[0] > 2:
        found = ranks(half)
        difference = f"critical difference {found.difference:.1f}"
        caption = f"Half of the labels missing: mean ranks over {found.n} pools, {difference}."
        blocks.append(Picture(critical_differences(found), caption))
    return Section(
        "Every label method",
        [
            f"The mixed pools, 20 base clusterings, share of labels missing. {', '.join(design.SLOW)} "
            "take 2 to 30 processor "
            "seconds for 300 rows and are left to the small pools above."
        ],
        blocks,
    )


def _limit(rows: pd.DataFrame) -> Section | None:
    some = _mixed(rows)
    lines_, bars_ = [], {}
    names = (*SHOWN, *design.CLASSIFIERS)
    for (bases, missing), here in some.groupby(["bases", "missing"]):
        here = here[here["draw"].isin(here["draw"][here["method"].isin(design.CLASSIFIERS)])]
        scores = by_data(here, names, MAIN)
        told = [name for name in design.CLASSIFIERS if name in scores]
        if "fuse" not in scores or len(told) < len(design.CLASSIFIERS):
            continue
        best = _best_each(here, MAIN)
        row = [float(scores["fuse"].mean()), best, *(float(scores[name].mean()) for name in told)]
        lines_.append([int(bases), f"{missing:.0%}", *map(_number, row)])
        if bases == 20:
            bars_[f"{missing:.0%}"] = row
    if not lines_:
        return None
    legend = ["fuse", "best method a draw", *design.CLASSIFIERS]
    columns = [("bases", "number"), ("missing", "name"), *((name, "number") for name in legend)]
    return Section(
        "How near is the limit?",
        [
            "What could be won by choosing better: the best single method of every draw, picked with the "
            "classes. "
            "What base labels know: logistic regression on them, told the classes of a tenth of the "
            "instances or of "
            "nine tenths, and scored on those it was not told."
        ],
        [
            Table(columns, lines_, METRICS[MAIN]),
            Picture(bars(bars_, legend, METRICS[MAIN]), "20 base clusterings"),
        ],
    )


def _rule(rows: pd.DataFrame) -> Section | None:
    found = held_out(_mixed(rows))
    if not found:
        return None
    planted = {
        one.name: one for one in held_out(_pick(rows, part="labels", group="planted", data=MIXED_PLANTED))
    }
    columns = [
        ("rule", "name"),
        *((name, "number") for name in ("eight pools", "three pools", "planted")),
        ("chosen on", "name"),
    ]
    lines_ = [
        [
            one.name,
            _number(one.eight, 4),
            _number(one.three, 4),
            _number(planted[one.name].all) if planted else None,
            one.chosen,
        ]
        for one in found
    ]
    return Section(
        "The rule of fuse, chosen on some pools and reported on the others",
        [
            "A rule says when another answer takes the place of DAL's: whose, and by how much it must agree "
            "better with the base labels; or by how much the mixture must improve DAL's agreement before the "
            "best of its answers is taken. Means over all cells of labels missing entry by entry; rules "
            f"choose between the answers of the single methods. The eight: {', '.join(design.EIGHT)}; "
            f"the three: {', '.join(design.THREE)}; planted: seen through mixed numbers of clusters. "
            '"Chosen on eight" is reported by its figure on the three, and the other way round.'
        ],
        [Table(columns, lines_, digits=4)],
    )


def _views(rows: pd.DataFrame) -> Section | None:
    some = _pick(rows, part="views")
    finished = some.groupby(["data", "mechanism", "missing", "draw"])["method"].transform("size")
    some = some[finished == len(design.VIEW_METHODS)]
    if some.empty:
        return None
    tables, pictures = [], []
    for metric in ("acc", "nmi_max", "ari"):
        for (protocol, missing), here in some.groupby(["mechanism", "missing"]):
            wide = here[here["error"] == ""].groupby(["data", "method"])[metric].mean().unstack()
            wide = wide.loc[[name for name in design.VIEWS if name in wide.index]]
            columns = [("method", "name"), *((name, "number") for name in wide.index)]
            lines_ = [
                [name, *map(_number, wide[name]), _number(wide[name].mean(skipna=False))] for name in wide
            ]
            how = _PROTOCOLS[protocol] if protocol == "natural" else f"{_PROTOCOLS[protocol]}, {missing:.0%}"
            choice = f"{METRICS[metric]}: {how}"
            tables.append(Table([*columns, ("mean", "number")], _sorted(lines_), choice=choice))
            everywhere = wide.dropna(axis=1)
            if metric == "acc" and len(wide) > 3:
                found = ranks(everywhere)
                caption = f"{how}: mean ranks by ACC over {found.n} sets, critical difference "
                pictures.append(Picture(critical_differences(found), f"{caption}{found.difference:.2f}."))
    return Section(
        "Incomplete views",
        [
            "Each view loses a share of its rows; or a share of the instances is incomplete, each losing "
            "one to "
            f"all but one of its views. At most {_listed(sorted(set(some['rows'])))} rows of a set, "
            f"{some['draw'].max() + 1} mask(s). Methods that scale features get the views as they are; "
            "others "
            "get text as tf-idf, and kernels z-scores of the rest. PVC and IMG take two views only. No "
            "mean where "
            "a method has not every set.",
        ],
        [
            _view_means(some),
            sorted(tables, key=lambda table: _PROTOCOLS["natural"] in table.choice),
            *pictures,
        ],
    )


def _view_means(rows: pd.DataFrame) -> Table:
    """ACC and NMI of methods that take every set, over the sets of each way of losing rows."""
    ok = rows[(rows["error"] == "") & (rows["mechanism"] != "natural")]
    columns, found = [("method", "name")], []
    for (protocol, missing), here in ok.groupby(["mechanism", "missing"]):
        sets = here.groupby(["data", "method"])[["acc", "nmi_max"]].mean()
        found.append(sets.groupby("method").mean()[sets.groupby("method").size() == here["data"].nunique()])
        how = f"{_PROTOCOLS[protocol]}, {missing:.0%}, {here['data'].nunique()} sets"
        columns += [(f"{how}: ACC", "number"), ("NMI (max)", "number")]
    wide = pd.concat(found, axis=1)
    lines_ = [[name, *map(_number, values)] for name, values in zip(wide.index, wide.to_numpy(), strict=True)]
    lines_.sort(key=lambda line: -(line[1] or -1.0))
    return Table(columns, lines_, "Means over sets whose views are left with somebody in common.")


_PROTOCOLS = {
    "per_view": "share of each view's rows",
    "some_lost": "share of the instances",
    "natural": "as they are",
}


def _published(rows: pd.DataFrame) -> Section | None:
    some = _pick(rows, part="published")
    lines_ = []
    for name, paper in PUBLISHED.items():
        here = some[(some["data"] == paper.file.removeprefix("mv_")) & (some["error"] == "")]
        nmi = f"nmi_{paper.nmi}"
        as_mean = len(next(iter(paper.figures.values()))) < len(paper.ratios)
        ratios = [ratio or 0.0 for ratio in paper.ratios]
        for place, group in enumerate([ratios] if as_mean else [[ratio] for ratio in ratios]):
            found = here[here["missing"].isin(group)]
            if set(found["missing"]) != set(group):
                continue
            each = found.groupby("missing")[["acc", nmi]].mean().mean()
            figures = ", ".join(f"{who} {f[place]}" for who, f in paper.figures.items() if f[place])
            what = "mean" if as_mean else "natural" if paper.ratios[place] is None else f"{group[0]:g}"
            lines_.append(
                [
                    name,
                    what,
                    int(found.groupby("missing").size().min()),
                    _number(each["acc"]),
                    _number(each[nmi]),
                    figures,
                ]
            )
    columns = [
        ("set", "name"),
        ("incomplete", "name"),
        ("masks", "number"),
        ("ACC", "number"),
        ("NMI", "number"),
        ("published, ACC/NMI", "name"),
    ]
    return (
        Section(
            "Beside published figures",
            [
                "fuse_views at its defaults on all rows; a share of the instances is incomplete, as in "
                "the papers. Their masks are "
                "others, and some choose settings with the classes. NMI is divided by the larger "
                "entropy, for LandUse-21 by the mean."
            ],
            [Table(columns, lines_)],
        )
        if lines_
        else None
    )


def _scale(scale: pd.DataFrame) -> Section | None:
    if scale.empty:
        return None
    cases = scale[["case", "reported", "tool"]].drop_duplicates()
    versions = dict.fromkeys(text for text in scale["versions"] if text)
    said = [", ".join(f"{name} {number}" for name, number in json.loads(text).items()) for text in versions]
    blocks: list[Table | Picture | list[Table]] = [
        Table(
            [("case", "name"), ("reported", "name"), ("that tool here", "name")], cases.to_numpy().tolist()
        ),
        _whole(scale),
    ]
    beside = _beside(scale)
    return Section(
        "Sizes that were out of reach",
        [
            "Cases that users of other tools reported, with planted labels of fifteen clusters (a fifth "
            "of them wrong); for the last, with k-means on 50 columns. Each fit is a program of its own, "
            f"within {SECONDS} processor seconds, {GIGABYTES} GB and on one thread; seconds and memory are "
            "those of the whole program, its start and the reading of the labels included, for ours as for "
            "others.",
            "The five days were for 2 to 15 clusters, and ConsensusClusterPlus makes all of these and its "
            "own base clusterings in the time below; the others merge for fifteen only. clue takes no "
            "missing labels, so it has the first case only.",
            f"Made with {'; '.join(said)}.",
        ],
        blocks + ([beside] if beside.rows else []),
    )


def _whole(scale: pd.DataFrame) -> Table:
    """Every method on all objects of a case, or where it stopped."""
    columns = [
        *((name, "name") for name in ("case", "method")),
        *((name, "number") for name in ("objects", "bases")),
        ("missing", "name"),
        *((name, "number") for name in ("base clusterings, s", "seconds", "MB", "ARI")),
        ("not finished", "name"),
    ]
    lines_ = []
    for (case, method), some in scale.groupby(["case", "method"], sort=False):
        last = some.sort_values("n").iloc[-1]  # no larger part was tried
        finished = last["n"] == last["whole"] and not last["error"]
        why = (
            "so that twice as many were not tried" if 2 * last["seconds"] > SECONDS else "and no more so far"
        )
        stopped = last["error"] or f"{last['seconds']:.0f} s, {why}"
        figures = [_number(last[name], 2) for name in ("base_seconds", "seconds", "peak_mb", "ari")]
        lines_.append(
            [
                case,
                method,
                int(last["whole"]),
                int(last["m"]),
                f"{last['missing']:.0%}",
                *(figures if finished else [None] * len(figures)),
                "" if finished else f"with {last['n']:,}: {stopped}",
            ]
        )
    return Table(columns, lines_, digits=2)


def _beside(scale: pd.DataFrame) -> Table:
    """The largest part of a case that each other tool finished, and fuse on the same labels."""
    names = ["seconds", "peak_mb", "ari", "base_seconds"]
    columns = [
        *((name, "name") for name in ("case", "tool")),
        *((name, "number") for name in ("objects", "its s", "fuse, s", "times")),
        *((name, "number") for name in ("its MB", "fuse, MB", "its ARI", "fuse, ARI")),
    ]
    finished = scale[scale["error"] == ""]
    fuse = finished[finished["method"] == "fuse"].set_index(["case", "n"])[names]
    lines_ = []
    for (case, method), some in finished.groupby(["case", "method"], sort=False):
        largest = some.sort_values("n").iloc[-1]
        if method in {one.name for one in OURS} or (case, largest["n"]) not in fuse.index:
            continue
        ours = fuse.loc[(case, largest["n"])].copy()
        if np.isnan(largest["base_seconds"]):  # it made them itself
            ours["seconds"] += np.nan_to_num(ours["base_seconds"])
        pairs = [_number(one[name], 2) for name in names[:3] for one in (largest, ours)]
        times = _number(largest["seconds"] / ours["seconds"], 2)
        lines_.append([case, method, int(largest["n"]), *pairs[:2], times, *pairs[2:]])
    note = (
        "The most objects that each tool finished, and fuse on the same; times: its seconds by those of fuse."
        " Where a tool makes the base clusterings itself, the seconds of ours are in those of fuse."
    )
    return Table(columns, lines_, note, digits=2)


def _left_out(rows: pd.DataFrame) -> Section:
    failed = rows[rows["error"] != ""].groupby(["part", "method", "error"]).size()
    lines_ = [[*key, int(count)] for key, count in failed.items()]
    versions = sorted({text for text in rows["versions"] if text})
    said = [", ".join(f"{name} {number}" for name, number in json.loads(text).items()) for text in versions]
    columns = [("part", "name"), ("method", "name"), ("why", "name"), ("fits", "number")]
    return Section(
        "What was left out, and with what it was made",
        [
            f"Made with {'; or with '.join(said)}. Every row of the results has its seed and these versions.",
            "The command that goes on where this ended: python -m benchmarks.record run FOLDER",
        ],
        [Table(columns, lines_, "Fits that were left out or failed.")]
        if lines_
        else [Table(columns, [["-", "-", "nothing", 0]])],
    )


# Words and numbers -----------------------------------------------------------------------------------------


def _number(value: Any, digits: int = 3) -> float | None:
    return None if value is None or not np.isfinite(value) else round(float(value), digits)


def _range(values: Any) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def _listed(values: Any) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _sorted(lines_: list[list[Any]]) -> list[list[Any]]:
    return sorted(lines_, key=lambda line: -(line[-1] if line[-1] is not None else -1.0))


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """What may be handed on: means and spreads of every cell over its draws, no data."""
    keys = ["part", "group", "data", "mechanism", "missing", "bases", "factor", "rows", "method"]
    ok = rows[rows["error"] == ""]
    grouped = ok.groupby(keys)
    scores = [*METRICS, "agreement", "seconds", "peak_mb"]
    found = grouped[scores].mean().astype("float32")
    found["deviation"] = grouped[MAIN].std(ddof=0).astype("float32")
    found["draws"] = grouped.size().astype("int16")
    found["versions"] = grouped["versions"].last()
    return found.reset_index()
