"""Options that several commands share, by name, and what their values mean."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience import io
from consilience._support.errors import OPTIONS, UsageError
from consilience._support.values import did_you_mean
from consilience.cli.help import ENGINES, FILES, READING, WRITING
from consilience.cli.terminal import talk
from consilience.registry import resolve

if TYPE_CHECKING:
    from consilience.io import Scan
    from consilience.io.files import Source


class Unobserved(StrEnum):
    """What to do with instances that no base clustering saw."""

    error = "error"
    noise = "noise"
    largest = "largest"


class Engine(StrEnum):
    """Where the work is done."""

    auto = "auto"
    memory = "memory"
    blocks = "blocks"
    dask = "dask"


Labels = Annotated[
    list[str],
    typer.Argument(
        help="Table of labels: a row per instance, a column per base clustering. CSV, TSV (also .gz), Excel "
        "(FILE.xlsx#sheet), Parquet (a file or a folder) or Arrow by suffix; - reads CSV from stdin. "
        "Several files are joined by --id.",
        metavar="LABELS...",
    ),
]
Clusters = Annotated[
    str, typer.Option("--clusters", "-k", help="Number of clusters, or auto.", metavar="NUMBER")
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Table of labels and confidence to write: CSV, TSV, Excel (.xlsx), Parquet or Arrow by suffix; "
        "- is standard output, as CSV.",
        metavar="FILE",
        rich_help_panel=WRITING,
    ),
]
Report = Annotated[
    str | None,
    typer.Option(
        help="Also write a report, one HTML file; - is standard output.",
        metavar="FILE",
        rich_help_panel=WRITING,
    ),
]
Title = Annotated[
    str | None, typer.Option(help="Heading of the report.", metavar="TEXT", rich_help_panel=WRITING)
]
Names = Annotated[
    str | None,
    typer.Option(
        help="CSV file of a line of column names, then numbers of clusters and their names.",
        metavar="FILE",
        show_default=False,
    ),
]
HideIds = Annotated[
    bool,
    typer.Option(
        "--hide-ids",
        help="Leave out the ids of instances on the page and in JSON: positions stand in their place.",
        rich_help_panel=WRITING,
    ),
]
Changes = Annotated[
    str | None,
    typer.Option(
        help="Also write every instance with its cluster before and now; needs an earlier result.",
        metavar="FILE",
        rich_help_panel=WRITING,
    ),
]
Chances = Annotated[
    str | None,
    typer.Option(
        help="Also write the chance of every cluster for every instance, a column per cluster.",
        metavar="FILE",
        rich_help_panel=WRITING,
    ),
]
ExcelCsv = Annotated[
    bool,
    typer.Option(
        "--excel-csv",
        help="Write CSV that Excel opens right where decimals have commas: with semicolons, 0,5 for 0.5.",
        rich_help_panel=WRITING,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Write the result as JSON to standard output.", rich_help_panel=WRITING),
]
Like = Annotated[
    str | None,
    typer.Option(
        help="Earlier result whose cluster numbers are kept: a file that --save wrote, or a table of ids and "
        "a column called label, cluster or segment.",
        metavar="FILE",
    ),
]
LikeColumn = Annotated[
    str | None,
    typer.Option(help="Column of the table of --like that holds its clusters.", metavar="COLUMN"),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help="Table of other facts about the instances, joined by --id: what distinguishes the clusters.",
        metavar="FILE",
    ),
]
Stability = Annotated[
    bool,
    typer.Option(
        "--stability",
        help="Also fit again to parts of the instances and sources, and say how far the answer stays the "
        "same and which source drives it; see consilience stability.",
    ),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "What a view holds, as in --kind notes=counts (measurements, links, binary, log-counts), or "
            "a column, as in --kind clinic.stage=category (number, number:comma, yes/no, date, "
            "date:day-first, left-out, or levels joined by < in their order). Repeatable."
        ),
        metavar="VIEW=KIND",
    ),
]
BesideLabels = Annotated[
    list[str] | None,
    typer.Option(
        "--views",
        help="Tables of features that are merged together with the labels, joined by --id: all files up to "
        "the next option.",
        metavar=FILES,
    ),
]
Noise = Annotated[
    bool,
    typer.Option(
        "--noise", help="Negative labels mean noise (as in HDBSCAN), not missing.", rich_help_panel=READING
    ),
]
Unseen = Annotated[
    Unobserved,
    typer.Option(
        help="Instances that no base clustering saw: refuse them, label them -1, or put them in the largest "
        "cluster.",
        metavar="error|noise|largest",
        rich_help_panel=READING,
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", help="Parameter of the method, as in gamma=10; repeatable.", metavar="NAME=VALUE"
    ),
]
FailOnDrift = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Leave with exit code 3 if a p-value of drift is at most this; what was asked for is written "
        "nonetheless.",
        metavar="P",
        show_default=False,
    ),
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        help="Columns that are near copies of each other and count as one, as in leiden=r0.5,r1,r2; "
        "repeatable.",
        metavar="NAME=A,B,...",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        min=0, max=2**32 - 1, help="Random seed: the same seed gives the same answer.", metavar="NUMBER"
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Saved = Annotated[
    str, typer.Argument(help="A result that fuse --save or cluster --save wrote.", metavar="RESULT")
]


@dataclass(frozen=True)
class Reading:
    """How tables are read."""

    id_column: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            help="Column that holds the ids of the instances; FILE=COLUMN for one file, repeatable.",
            metavar="COLUMN",
            rich_help_panel=READING,
        ),
    ] = None
    columns: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to use, separated by commas; all by default; FILE=A,B for one file, repeatable.",
            metavar="A,B,...",
            rich_help_panel=READING,
        ),
    ] = None
    missing: Annotated[
        list[str] | None,
        typer.Option(
            "--missing",
            help="Text that marks a missing entry; repeatable. It replaces the marks of CSV and Excel: "
            "empty, NA, N/A, NaN, null, None.",
            metavar="TEXT",
            rich_help_panel=READING,
        ),
    ] = None
    delimiter: Annotated[
        str | None,
        typer.Option(
            help="Character between the cells of CSV files; detected if left out.",
            metavar="CHARACTER",
            rich_help_panel=READING,
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            help="Encoding of CSV files, such as latin-1; detected if left out.",
            metavar="NAME",
            rich_help_panel=READING,
        ),
    ] = None

    header: Annotated[
        list[str] | None,
        typer.Option(
            help="Line (row of a sheet) that holds the column names, counted from 1; FILE=ROW for one file, "
            "repeatable.",
            metavar="ROW",
            rich_help_panel=READING,
        ),
    ] = None
    match_ids: Annotated[
        str | None,
        typer.Option(
            help="What to ignore when ids are compared: trim (blanks around them), case, zeros (leading, and "
            ".0), unicode (the form of letters); several between commas.",
            metavar="trim,case,...",
            rich_help_panel=READING,
        ),
    ] = None

    def source(self, paths: Sequence[str], beside: Sequence[str | None] = (), *, quiet: bool) -> Source:
        """How to read the files of a command; `beside` are others than its tables."""
        delimiter = None if self.delimiter is None else self.delimiter.replace("\\t", "\t")
        if delimiter is not None and len(delimiter) != 1:
            raise UsageError(
                f"--delimiter must be one character. Got {self.delimiter!r}.", hint="as in --delimiter ';'."
            )
        files = [*paths, *(path for path in beside if path is not None)]
        every_id, own_ids = by_file("--id", self.id_column, files)
        every_column, own_columns = by_file("--columns", self.columns, files)
        every_header, own_headers = by_file("--header", self.header, files)
        return io.files.Source(
            id_column=every_id,
            columns=() if every_column is None else split(every_column),
            missing=tuple(self.missing) if self.missing else io.files.MISSING_TEXTS,
            delimiter=delimiter,
            encoding=None if self.encoding is None else io.text.check_encoding(self.encoding),
            own_ids=own_ids,
            own_columns={path: split(names) for path, names in own_columns.items()},
            header=None if every_header is None else _line(every_header),
            own_headers={path: _line(number) for path, number in own_headers.items()},
            match_ids=io.ids.check_matches(None if self.match_ids is None else split(self.match_ids)),
            long=self._long(paths, {*own_ids, *own_columns}),
            say=lambda line: talk(line, quiet),
        )

    def _long(self, paths: Sequence[str], named: set[str]) -> dict[str, tuple[str, str, str]]:
        return {}


@dataclass(frozen=True)
class Scanning(Reading):
    """How tables of labels are found and read."""

    long: Annotated[
        list[str] | None,
        typer.Option(
            help="For tables with a row per opinion: their columns of instance, source and label; FILE=A,B,C "
            "for one file beside others, repeatable.",
            metavar="INSTANCE,SOURCE,LABEL",
            rich_help_panel=READING,
        ),
    ] = None

    def _long(self, paths: Sequence[str], named: set[str]) -> dict[str, tuple[str, str, str]]:
        every, own = by_file("--long", self.long, paths)
        texts = own if every is None else dict.fromkeys(paths, every) | own
        for text in texts.values():
            names = split(text)
            if len(set(names)) != 3 or not all(names):
                raise UsageError(
                    f"--long needs three columns. Got {text!r}.", hint="as in --long instance,source,label."
                )
        none_wide = set(texts) == set(paths) and (self.id_column or self.columns)
        if texts and (none_wide or named & set(texts)):
            raise UsageError(
                "--long says which columns are read, so there is no --id and no --columns.",
                hint="leave them out; beside files with a column per source, say --long FILE=A,B,C.",
            )
        return {path: (a, b, c) for path, (a, b, c) in ((path, split(text)) for path, text in texts.items())}

    def scan(self, paths: Sequence[str], source: Source) -> Scan:
        """The tables of labels."""
        return io.scan(
            list(paths),
            id=_for_each(paths, source.id_column, source.own_ids),
            columns=_for_each(paths, source.columns or None, source.own_columns),
            long=dict(source.long),
            missing=source.missing,
            delimiter=source.delimiter,
            encoding=source.encoding,
            header=_for_each(paths, source.header, source.own_headers),
            match_ids=source.match_ids,
            say=source.say,
        )


def _line(number: str) -> int:
    if not number.isdecimal() or int(number) < 1:
        raise UsageError(
            f"--header must be the number of a line, from 1. Got {number!r}.", hint="as in --header 3."
        )
    return int(number)


def _for_each(paths: Sequence[str], every: Any, own: Mapping[str, Any]) -> Any:
    """What holds for all files, or a dict where single files have something else."""
    found = {path: own.get(path, every) for path in paths} if own else every
    return {path: value for path, value in found.items() if value is not None} if own else found


@dataclass(frozen=True)
class Writing:
    """What is written of a result."""

    output: Output = None
    report: Report = None
    save: Annotated[
        str | None,
        typer.Option(
            help="Also keep the result in a file, for predict, explain, report and --like.",
            metavar="FILE",
            rich_help_panel=WRITING,
        ),
    ] = None
    changes: Changes = None
    chances: Chances = None
    title: Title = None
    hide_ids: HideIds = False
    as_json: AsJson = False
    excel_csv: ExcelCsv = False


@dataclass(frozen=True)
class WritingLabels(Writing):
    """What is written of a result of labels."""

    imputed: Annotated[
        str | None,
        typer.Option(
            help="Also write the table of base labels with its gaps filled in.",
            metavar="FILE",
            rich_help_panel=WRITING,
        ),
    ] = None


@dataclass(frozen=True)
class Engines:
    """Where the work is done."""

    engine: Annotated[
        Engine,
        typer.Option(
            help="memory; or for larger tables blocks (one process) or dask (several); auto chooses by size.",
            metavar="auto|memory|blocks|dask",
            rich_help_panel=ENGINES,
        ),
    ] = Engine.auto
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler; by default one is started here.",
            metavar="ADDRESS",
            rich_help_panel=ENGINES,
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="Folder from which an interrupted run with blocks or dask is resumed.",
            metavar="FOLDER",
            rich_help_panel=ENGINES,
        ),
    ] = None


# --- what values mean ---------------------------------------------------------------------------------------


def n_clusters(text: str, *, several_allowed: bool = False, ranges: bool = False) -> Any:
    """A number, "auto", or a range of numbers where it may be one."""
    if text == "auto":
        return text
    first, dash, last = text.partition("-")
    if ranges and dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last):
        return int(first), int(last)
    if not text.isdecimal() or int(text) < 1:
        several = ", a range such as 3-6, or several such as 4,8" if several_allowed else ""
        raise UsageError(f"-k must be a number from 1, or auto{several}. Got {text!r}.", hint="as in -k 8.")
    return int(text)


def several_n_clusters(text: str, *, auto: bool = True) -> Any:
    """All numbers of a list or a range."""
    if not auto and "auto" in text:
        raise UsageError("-k takes numbers here.", hint="as in -k 3,6,12.")
    first, dash, last = text.partition("-")
    if dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last):
        return list(range(int(first), int(last) + 1))
    if dash:
        n_clusters(text, several_allowed=True)
    return [n_clusters(part.strip(), several_allowed=True) for part in text.split(",")]


def groups(texts: Sequence[str] | None) -> dict[str, tuple[str, ...]] | None:
    """Columns that count as one, by the name of their group."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts or ():
        name, _, members = text.partition("=")
        name, columns = name.strip(), split(members)
        if not name or not all(columns):
            raise UsageError(
                f"--group {text!r} is no name and columns.", hint="as in --group leiden=r0.5,r1,r2."
            )
        if name in found:
            raise UsageError(f"--group names {name!r} twice.", hint="name all columns of a group at once.")
        found[name] = columns
    return found or None


def split(names: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in names.split(","))


def by_file(
    option: str, given: Sequence[str] | None, files: Sequence[str]
) -> tuple[str | None, dict[str, str]]:
    """What holds for all files, and what for single ones: COLUMN, FILE=COLUMN."""
    every: str | None = None
    own: dict[str, str] = {}
    for text in given or ():
        starts = [at for at, mark in enumerate(text) if mark == "="]
        known = [at for at in starts if io.files.is_named(text[:at], files)]
        if starts:
            at = known[0] if known else starts[0]
            own[io.files.file_named(text[:at], files, option)] = text[at + 1 :]
        elif every is not None:
            raise UsageError(
                f"{option} is given twice, {every} and {text}.",
                hint=f"say {option} FILE={text} for one file.",
            )
        else:
            every = text
    return every, own


def by_view(option: str, given: Sequence[str] | None) -> dict[str, Any]:
    """What was given for each view, by its name."""
    found = {}
    for text in given or ():
        name, equals, number = text.rpartition("=")
        if not equals:
            raise UsageError(f"--{option} {text!r} names no view.", hint=f"as in --{option} notes=...")
        found[name] = value(number)
    return found


def value(text: str) -> Any:
    """A number, true, false or null as JSON has them; otherwise the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


# Parameters of every method that have an option of their own.
_OWN_OPTIONS = ("n_clusters", "unobserved", "random_state")


def method(name: str, parameters: Sequence[str] | None, *, views: bool = False) -> Any:
    """An estimator by its name, with parameters."""
    if name.lower() == "auto":
        raise UsageError("--param needs --method.", hint="as in --method PCE --param gamma=10.")
    kinds = ("labels", "views") if views else ("labels",)
    estimator = resolve(name, kinds, of="consilience cluster" if views else "consilience fuse")()
    allowed = estimator.get_params()
    values = {}
    for parameter in parameters or ():
        key, equals, given = parameter.partition("=")
        if not equals:
            raise UsageError(f"--param {parameter!r} has no value.", hint="as in --param gamma=10.")
        if key in _OWN_OPTIONS:
            raise UsageError(
                f"--param does not set what {OPTIONS[key]} sets.", hint=f"{OPTIONS[key]} {given}"
            )
        if key not in allowed:
            raise UsageError(
                f"{type(estimator).__name__} has no parameter {key!r}.", did_you_mean(key, allowed)
            )
        values[key] = value(given)
    return estimator.set_params(**values)
