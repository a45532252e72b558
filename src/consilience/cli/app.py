"""The commands. Results go to standard output or to files; talk and progress go to standard error."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import consilience
from consilience import cli, evidence, io
from consilience._support.errors import InputError, UsageError
from consilience._support.files import is_special
from consilience._support.values import did_you_mean
from consilience.cli.errors import Interrupted
from consilience.cli.federated import federated
from consilience.cli.help import ENGINES, READING, WRITING, App

if TYPE_CHECKING:
    from consilience import Comparison, Fusion
    from consilience.bench import DataFile
    from consilience.diagnostics import Profile
    from consilience.io.files import Source

# Whatever a command needs is loaded when it runs, so that help and completion of the shell are quick.
STDIO = "-"

app = App(
    help="Clustering from incomplete evidence: partial opinions in, one clustering with a confidence out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


class Mechanism(StrEnum):
    """Which entries go missing."""

    per_base = "per_base"
    mcar = "mcar"
    mar = "mar"
    mnar = "mnar"


Labels = Annotated[
    list[str],
    typer.Argument(
        help="Table of labels: a row per instance, a column per base clustering. CSV, TSV (also .gz), Excel "
        "(FILE.xlsx#sheet), Parquet (a file or a folder) or Arrow by suffix; - reads CSV from stdin. "
        "Several files are joined by --id.",
        metavar="LABELS...",
    ),
]
IdColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        help="Column that holds the ids of the instances; FILE=COLUMN for one file, repeatable.",
        metavar="COLUMN",
        rich_help_panel=READING,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to use, separated by commas; all by default; FILE=A,B for one file, repeatable.",
        metavar="A,B,...",
        rich_help_panel=READING,
    ),
]
Long = Annotated[
    str | None,
    typer.Option(
        help="For a table with a row per opinion: its columns of instance, source and label.",
        metavar="INSTANCE,SOURCE,LABEL",
        rich_help_panel=READING,
    ),
]
MissingText = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        help="Text that marks a missing entry; repeatable. It replaces the marks of CSV and Excel: empty, "
        "NA, N/A, NaN, null, None.",
        metavar="TEXT",
        rich_help_panel=READING,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Character between the cells of CSV files; detected if left out.",
        metavar="CHARACTER",
        rich_help_panel=READING,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Encoding of CSV files, such as latin-1; detected if left out.",
        metavar="NAME",
        rich_help_panel=READING,
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
Clusters = Annotated[
    str, typer.Option("--clusters", "-k", help="Number of clusters, or auto.", metavar="NUMBER")
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Table of labels and confidence to write, its kind by suffix; - is standard output.",
        metavar="FILE",
        rich_help_panel=WRITING,
    ),
]
Imputed = Annotated[
    str | None,
    typer.Option(
        help="Also write the table of base labels with its gaps filled in.",
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
Save = Annotated[
    str | None,
    typer.Option(
        help="Also keep the result in a file, for predict, explain and --like.",
        metavar="FILE",
        rich_help_panel=WRITING,
    ),
]
Like = Annotated[
    str | None,
    typer.Option(
        help="Earlier result whose cluster numbers are kept: a file that --save wrote, or a table.",
        metavar="FILE",
    ),
]
Title = Annotated[
    str | None, typer.Option(help="Heading of the report.", metavar="TEXT", rich_help_panel=WRITING)
]
NameAfter = Annotated[
    str | None, typer.Option("--name-after", help="Column whose labels name the clusters.", metavar="COLUMN")
]
Weights = Annotated[
    str | None,
    typer.Option(help="How much columns count, as in bank_a=2,bank_b=1; 1 by default.", metavar="A=N,..."),
]
ProfileFile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help="Table of other facts about the instances, joined by --id: what tells the clusters apart.",
        metavar="FILE",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Write the result as JSON to standard output.", rich_help_panel=WRITING),
]
Seed = Annotated[
    int,
    typer.Option(
        min=0, max=2**32 - 1, help="Random seed: the same seed gives the same answer.", metavar="NUMBER"
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", help="Parameter of the method, as in gamma=10; repeatable.", metavar="NAME=VALUE"
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"consilience {consilience.__version__}")
        raise typer.Exit


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Clustering from incomplete evidence: partial opinions in, one clustering with a confidence out."""


@app.command()
def fuse(
    labels: Labels,
    clusters: Clusters = "auto",
    method: Annotated[
        str,
        typer.Option("--method", "-m", help="auto, or a name from consilience methods.", metavar="NAME"),
    ] = "auto",
    output: Output = None,
    imputed: Imputed = None,
    report: Report = None,
    save: Save = None,
    like: Like = None,
    title: Title = None,
    name_after: NameAfter = None,
    profile: ProfileFile = None,
    weights: Weights = None,
    as_json: AsJson = False,
    id_column: IdColumn = None,
    columns: Columns = None,
    long: Long = None,
    missing: MissingText = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    noise: Noise = False,
    unobserved: Unseen = Unobserved.error,
    param: Parameters = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="memory; or for larger tables blocks (one process) or dask (several); auto chooses by size.",
            metavar="auto|memory|blocks|dask",
            rich_help_panel=ENGINES,
        ),
    ] = Engine.auto,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler; by default one is started here.",
            metavar="ADDRESS",
            rich_help_panel=ENGINES,
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="Folder from which an interrupted run with blocks or dask is resumed.",
            metavar="FOLDER",
            rich_help_panel=ENGINES,
        ),
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Merge a table of base labels into one clustering of all instances.

    Example: `consilience fuse banks.csv --id customer -k 4 -o merged.csv --report page.html`

    Beyond memory: `consilience fuse folder/ --id customer -k 4 --engine dask -o merged/`
    """
    source = _source(
        labels, id_column, columns, missing, delimiter, encoding, long, beside=(profile, like), quiet=quiet
    )
    k = _n_clusters(clusters)
    chosen = method if method.lower() == "auto" and not param else _method(method, param)
    counts = None if weights is None else _weights(weights)
    whole = _first_given(report=report, json=as_json, save=save, like=like, profile=profile, noise=noise)
    _check_page(title, report, as_json)
    if engine in (Engine.blocks, Engine.dask):
        _refuse_in_blocks(whole)
        cli.blocks.check(labels, source)
        if cli.blocks.is_folder(output):
            _refuse_in_blocks(_first_given(imputed=imputed, name_after=name_after, weights=weights))
            with cli.progress.bar(quiet) as told, _warnings(quiet):
                done = cli.blocks.fuse_to_folder(
                    labels[0],
                    str(output),
                    k,
                    source,
                    method=chosen,
                    unobserved=unobserved.value,
                    on_dask=engine is Engine.dask,
                    scheduler=scheduler,
                    checkpoint=checkpoint,
                    seed=seed,
                    told=told,
                )
            _talk(done, quiet)
            return
    if checkpoint is not None or (scheduler is not None and engine is not Engine.dask):
        raise UsageError(
            "--scheduler and --checkpoint need --engine dask, and --checkpoint a folder to write to.",
            hint="as in --engine dask -o merged/.",
        )
    _check_outputs(_inputs(labels, profile, source), output, imputed, report, as_json, save)
    in_blocks = engine in (Engine.blocks, Engine.dask)
    if not in_blocks:
        only = cli.memory.why_not(labels, source) if engine is Engine.auto else "leave out --engine memory"
        in_blocks = not cli.memory.fits_in_memory(labels, source, whole=whole, only=only)
    with (
        cli.progress.bar(quiet) as told,
        _warnings(quiet),
        cli.signals.together() as outputs,
        ExitStack() as opened,
    ):
        told("reading")
        instances: Any = None
        earlier = None if like is None else cli.saved.read_earlier(like, source, source.id_name(labels))
        if in_blocks:
            reader = cli.blocks.opened(
                labels[0], source, told, on_dask=engine is Engine.dask, scheduler=scheduler
            )
            instances = opened.enter_context(reader)
            table = instances.compact(unobserved=unobserved)
        elif whole:
            negative = "noise" if noise else "missing"
            read = evidence.labels.read_labels(labels, source)
            table = read.partitions(negative=negative, unobserved=unobserved)
            del read
        else:
            table, instances = evidence.labels.read_labels(labels, source).compact(unobserved=unobserved)
        if name_after is not None and name_after not in table.names:
            raise UsageError(
                f"--name-after: no base clustering with labels is called {name_after!r}.",
                did_you_mean(name_after, table.names),
            )
        facts = None if profile is None else cli.saved.read_facts(profile, source, table)
        told("merging")
        fusion = consilience.fuse(
            table if instances is None else table.take_seen(),
            k,
            method=chosen,
            unobserved=unobserved.value,
            like=earlier,
            weights=counts,
            named_after=name_after,
            random_state=seed,
            progress=told,
        )
        if instances is not None:
            fusion = cli.results.of_all(fusion, table, 0 if unobserved is Unobserved.largest else -1)
        found = _profiled(fusion, facts, told)
        written = {"output": output, "imputed": imputed, "report": report, "as_json": as_json, "save": save}
        cli.results.write_fusion(
            fusion, outputs, told, instances=instances, title=title, profile=found, **written
        )
        summary = fusion.summary()
    _talk(summary if found is None else f"{summary}\n\n{found}", quiet)


@app.command()
def cluster(
    views: Annotated[
        list[str],
        typer.Argument(
            help="Tables of features of the same instances: CSV, TSV, Excel, Parquet or Arrow by suffix.",
            metavar="VIEWS...",
        ),
    ],
    clusters: Clusters = "auto",
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="auto, labels, or a name from consilience methods (labels or views).",
            metavar="NAME",
        ),
    ] = "auto",
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="How a view is read, as in --kind notes=counts: counts, measurements or links. Repeatable.",
            metavar="VIEW=KIND",
        ),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            help="How much a view counts, as in --weight notes=0.5. Repeatable.", metavar="VIEW=NUMBER"
        ),
    ] = None,
    clusterer: Annotated[
        str | None,
        typer.Option(
            help="Cluster each view by graph or kmeans, and merge the labels.", metavar="graph|kmeans"
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Base clusterings of each view; 20, or fewer with more than six views.",
            metavar="NUMBER",
        ),
    ] = None,
    output: Output = None,
    report: Report = None,
    save: Save = None,
    like: Like = None,
    title: Title = None,
    profile: ProfileFile = None,
    as_json: AsJson = False,
    id_column: IdColumn = None,
    columns: Columns = None,
    missing: MissingText = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    param: Parameters = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Cluster tables of features about the same instances, each of which may lack some of them.

    By default, every view is embedded on the rows it has, absent rows are filled in through other views, and
    everything is clustered once. With --method labels, every view is clustered several times and the labels
    are merged. Any other method clusters all views in its own way. How each view was read and used is
    reported on standard error.

    Example: `consilience cluster blood.csv notes.parquet --id patient -k 5 --kind notes=counts -o groups.csv`
    """
    source = _source(
        views, id_column, columns, missing, delimiter, encoding, None, beside=(profile, like), quiet=quiet
    )
    k = _n_clusters(clusters)
    by_name = method.lower() in ("auto", "labels") and not param
    chosen = method if by_name else _method(method, param, views=True)
    kinds, weights = _by_view("kind", kind), _by_view("weight", weight)
    if not all(isinstance(value, int | float) for value in weights.values()):
        raise UsageError("--weight needs a number.", hint="as in --weight notes=0.5.")
    _check_outputs(_inputs(views, profile, source), output, None, report, as_json, save)
    _check_page(title, report, as_json)
    cli.memory.require_memory_for_views(views, source)
    with cli.progress.bar(quiet) as told, _warnings(quiet), cli.signals.together() as outputs:
        told("reading")
        earlier = None if like is None else cli.saved.read_earlier(like, source, source.id_name(views))
        tables = io.files.read_view_tables(views, source)
        told("clustering the views")
        fusion = consilience.fuse_views(
            tables,
            k,
            on=source.id_name(views),
            method=chosen,
            kind=kinds or None,
            view_weights=weights or None,
            clusterer=clusterer,
            n_partitions=partitions,
            random_state=seed,
            progress=told,
        )
        fusion = fusion if earlier is None else fusion.like(earlier)
        facts = None if profile is None else cli.saved.read_facts(profile, source, fusion.partitions)
        found = _profiled(fusion, facts, told)
        written = {"output": output, "report": report, "as_json": as_json, "save": save}
        cli.results.write_fusion(fusion, outputs, told, title=title, profile=found, **written)
        summary = fusion.summary()
    _talk(summary if found is None else f"{summary}\n\n{found}", quiet)


Saved = Annotated[
    str, typer.Argument(help="A result that fuse --save or cluster --save wrote.", metavar="RESULT")
]


@app.command()
def predict(
    result: Saved,
    new: Annotated[
        list[str],
        typer.Argument(
            help="New instances: their labels by the same base clusterings, or tables of the same views. "
            "Columns and views may be left out.",
            metavar="NEW...",
        ),
    ],
    output: Output = None,
    id_column: IdColumn = None,
    columns: Columns = None,
    long: Long = None,
    missing: MissingText = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse labels that the saved result does not know.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Place new instances in the clusters of a saved result.

    Writes a table with the label, the confidence and the next best cluster of each. An instance about which
    nothing is known gets the label -1. A label that the saved result does not know counts as missing.

    Example: `consilience predict segments.consilience new.csv --id customer -o placed.csv`
    """
    source = _source(new, id_column, columns, missing, delimiter, encoding, long, quiet=quiet)
    _check_outputs([result, *new], output)
    with cli.progress.bar(quiet) as told, _warnings(quiet), cli.signals.together() as outputs:
        told("reading")
        fusion = cli.saved.read_result(result)
        if fusion.partitions.views is None:
            found = cli.saved.place_labels(fusion, new, source, strict=strict, told=told)
        else:
            found = cli.saved.place_views(fusion, new, source)
        cli.results.write_placed(found, outputs, output or STDIO, told, fusion.cluster_names)
    _talk(f"Warning: {found.unknown}" if found.unknown else "", quiet or not found.unknown)
    labels = found.placed.labels
    lost = int((labels < 0).sum())
    nowhere = f"; nothing is known of {lost}" if lost else ""
    _talk(f"Placed {len(labels) - lost} of {len(labels)} instances{nowhere}.", quiet)


@app.command()
def explain(
    result: Saved,
    instance: Annotated[
        str,
        typer.Argument(help="The id of an instance, or its row where there are no ids.", metavar="INSTANCE"),
    ],
    as_json: AsJson = False,
) -> None:
    """Say why an instance is in its cluster: who said what, who is like it, what would change it.

    Example: `consilience explain segments.consilience C-1042`
    """
    found = cli.saved.read_result(result).explain(instance)
    print(json.dumps(found.as_dict(), indent=1) if as_json else found)


@app.command()
def compare(
    labels: Labels,
    clusters: Annotated[
        str,
        typer.Option(
            "--clusters",
            "-k",
            help="Number of clusters, several (4,6,8), a range (4-8), or auto.",
            metavar="NUMBERS",
        ),
    ] = "auto",
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            "-m",
            help="Names separated by commas; all is every label method; left out, those that auto tries.",
            metavar="A,B,...",
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option(min=0, help="How often each method is fitted for its stability.", metavar="NUMBER")
    ] = 5,
    report: Report = None,
    title: Title = None,
    as_json: AsJson = False,
    id_column: IdColumn = None,
    columns: Columns = None,
    long: Long = None,
    missing: MissingText = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    noise: Noise = False,
    unobserved: Unseen = Unobserved.error,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Run several methods on one table and show how good they are without any true classes.

    Agreement is the mean NMI with the base clusterings, stability the likeness of answers from parts of
    them, confidence its mean over instances. Agreement favours more clusters, so methods are ranked by it
    within a number of clusters, and the number that the labels support comes first. The page lets you
    toggle between the answers.

    Example: `consilience compare banks.csv --id customer -k 3-6 -m DAL,PCE,LWGP --report page.html`
    """
    source = _source(labels, id_column, columns, missing, delimiter, encoding, long, quiet=quiet)
    names = _names(methods)
    ks = _several_n_clusters(clusters)
    _check_outputs(labels, None, None, report, True)  # the table of methods goes to standard output
    _check_page(title, report)
    cli.memory.require_memory_for_labels(labels, source)
    with cli.signals.together() as outputs:
        with cli.progress.bar(quiet) as told, _warnings(quiet):
            told("reading")
            table = evidence.labels.read_labels(labels, source).partitions(
                negative="noise" if noise else "missing", unobserved=unobserved
            )
            found = consilience.compare(
                table,
                ks,
                methods=names,
                unobserved=unobserved.value,
                n_resamples=resamples,
                random_state=seed,
                progress=told,
            )
            if report is not None:
                told("drawing the page")
                _require_an_answer(found)
                summary = consilience.report.summarize(found, title=title, command=cli.results.command())
                io.files.write_text(outputs, report, consilience.report.render(summary))
        if as_json:
            rows = [{name: _plain(value) for name, value in row._asdict().items()} for row in found.rows]
            print(json.dumps(rows, indent=1))
        else:
            _show_comparison(found)
    _talk(found.reason, quiet)


@app.command()
def methods(
    kind: Annotated[
        str | None,
        typer.Option(
            "--input",
            help="Only those that take labels, views or features.",
            metavar="labels|views|features",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List all methods: what they take, what they cost, and the paper.

    Example: `consilience methods --input views`
    """
    found = [method for method in cli.catalog.catalogue() if kind in (None, method.input)]
    if not found:
        raise UsageError(f"no method takes {kind!r}.", hint="--input is labels, views or features.")
    if as_json:
        print(json.dumps([method._asdict() for method in found], indent=1))
        return
    _show(["method", "input", "what it does", "cost", "paper"], found, lines=True)


@app.command()
def simulate(
    labels: Labels,
    share: Annotated[
        float,
        typer.Option(
            "--share", "-s", min=0.0, max=1.0, help="Share of the labels to remove.", metavar="SHARE"
        ),
    ] = 0.3,
    mechanism: Annotated[
        Mechanism,
        typer.Option(
            help="per_base: as many from each column; mcar: independently; mar, mnar: by label.",
            metavar="per_base|mcar|mar|mnar",
        ),
    ] = Mechanism.per_base,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Table to write, its kind by suffix.",
            metavar="FILE",
            rich_help_panel=WRITING,
        ),
    ] = None,
    id_column: IdColumn = None,
    columns: Columns = None,
    long: Long = None,
    missing: MissingText = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Remove labels on purpose, to see what a method makes of the gaps.

    Example: `consilience simulate complete.csv --id customer --share 0.3 --mechanism mnar -o partial.csv`
    """
    if share >= 1:
        raise UsageError(f"--share must leave something: below 1. Got {share:g}.", hint="as in --share 0.3.")
    source = _source(labels, id_column, columns, missing, delimiter, encoding, long, quiet=quiet)
    _check_outputs(labels, output)
    cli.memory.require_memory_for_labels(labels, source)
    with cli.progress.bar(quiet) as told, _warnings(quiet), cli.signals.together() as outputs:
        told("reading")
        table = evidence.labels.read_labels(labels, source).partitions(unobserved="keep")
        codes = consilience.missing.drop_labels(
            table.codes, share, mechanism=mechanism.value, random_state=seed
        )
        cli.results.write_labels(table.fill(codes), outputs, output or STDIO, told)
    gone = int((table.codes >= 0).sum() - (codes >= 0).sum())
    _talk(f"Removed {gone} of {int((table.codes >= 0).sum())} labels.", quiet)


@app.command()
def report(
    result: Annotated[
        str,
        typer.Argument(
            help="What fuse --json or cluster --json wrote; - is standard input.", metavar="RESULT"
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", help="The page; - is standard output.", metavar="FILE")
    ] = "report.html",
    quiet: Quiet = False,
) -> None:
    """Rebuild the page from a saved result.

    Example: `consilience report result.json -o page.html`

    The result: `consilience fuse banks.csv --id customer -k 4 --json > result.json`
    """
    _check_outputs([result], None, None, output)
    if result != STDIO and not Path(result).is_file():
        raise UsageError(f"there is no file {result!r}.", hint="it is what fuse --json wrote.")
    try:
        summary = json.loads(io.files.stdin() if result == STDIO else Path(result).read_bytes())
    except (ValueError, RecursionError) as error:  # among them bytes that are no text
        raise InputError(f"{result} is not JSON: {error}.", hint="it is what fuse --json wrote.") from error
    with cli.signals.together() as outputs:
        io.files.write_text(outputs, output, consilience.report.render(summary))
    _talk(f"Wrote {output}", quiet or output == STDIO)


@app.command()
def demo(
    folder: Annotated[
        str, typer.Argument(help="Folder for the results; made if need be.", metavar="FOLDER")
    ] = "demo-output",
    quiet: Quiet = False,
) -> None:
    """Merge eight partial clusterings of handwritten digits, and write the results and the page.

    Example: `consilience demo demo-output`
    """
    with cli.progress.bar(quiet) as told, cli.signals.together() as outputs:
        lines = cli.demo.run_demo(Path(folder), outputs, told)
    _talk(lines, quiet)
    print(Path(folder, "report.html"))


bench = App(
    help="Run experiments that are described in files, such as those of the papers.", no_args_is_help=True
)
app.add_typer(bench, name="bench")

Name = Annotated[str, typer.Argument(help="An experiment from bench list, or a TOML file.", metavar="NAME")]
Folder = Annotated[
    str, typer.Option(help="Folder of the results; a folder in it for each experiment.", metavar="FOLDER")
]
Small = Annotated[bool, typer.Option("--small", help="The version that runs in a minute.")]


@bench.command("list")
def bench_list() -> None:
    """List the experiments that come with the library.

    Example: `consilience bench list`
    """
    rows = []
    for name in consilience.bench.available():
        experiment = consilience.bench.load(name)
        rows.append([name, f"{experiment.title} ({', '.join(experiment.shows)})", experiment.paper])
    _show(["name", "what it shows", "paper"], rows)


@bench.command("data")
def bench_data(
    name: Annotated[
        str | None,
        typer.Argument(help="Only the files of one experiment: its name, or a TOML file.", metavar="NAME"),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """List the files of the experiments: whether they are there, what they hold, and where they are from.

    Data do not come with the library. Each file is known by a checksum of its bytes, and by one of its
    arrays: a file that you made from the source yourself is "here, repacked" if it holds the same.

    Example: `consilience bench data pce-figures-2-3`
    """
    from consilience.bench.data import CONVERT, needed, state

    known = consilience.bench.data_files()
    names = list(known) if name is None else needed(_experiment(name, False))
    files = [known.get(each) or consilience.bench.DataFile(each, "", "", "", 0, "", "") for each in names]
    states = [state(file) for file in files]
    if as_json:
        found = zip(files, states, strict=True)
        print(json.dumps([{**file._asdict(), "state": is_there} for file, is_there in found], indent=1))
    else:
        _show_files(files, states)
    here = sum(is_there.startswith("here") for is_there in states)
    place = os.environ.get("CONSILIENCE_DATA") or consilience.datasets.cache_folder()
    _talk(f"{here} of {len(files)} files are there, {states.count('different')} differ.", quiet)
    _talk(f"Put files in {place}, or let $CONSILIENCE_DATA name their folder.", quiet)
    _talk(f"\n{CONVERT}", quiet)


@bench.command("run")
def bench_run(
    name: Name,
    folder: Folder = "bench-results",
    small: Small = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Samples worked on at once.", metavar="NUMBER")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed before.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment, or what is left of it: rows are written as they finish.

    Example: `consilience bench run pce-figures-2-3 --jobs 2`
    """
    experiment = _experiment(name, small)
    with cli.progress.bar(quiet) as told:
        told(f"running {experiment.name}")
        place = Path(folder, experiment.name)
        try:
            store = consilience.bench.run(experiment, place, n_jobs=jobs, retry=retry, progress=told)
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted; finished rows are in {place}, and the command goes on."
            ) from None
    rows = store.read()
    failed = rows[rows["error"] != ""]["cell"].nunique()
    if failed and failed == rows["cell"].nunique():
        raise ValueError(f"every fit failed; the first said: {rows['error'].iloc[0]}")
    _talk(f"{rows['cell'].nunique()} fits, {failed} of them failed; rows are in {place}.", quiet)


@bench.command("show")
def bench_show(
    name: Name,
    folder: Folder = "bench-results",
    small: Small = False,
    by_missing: Annotated[
        bool, typer.Option("--by-missing", help="A column for every share of labels missing.")
    ] = False,
) -> None:
    """Print the table of an experiment, the paper's figures beside ours, as Markdown.

    Example: `consilience bench show pce-figures-2-3 > table.md`
    """
    experiment = _experiment(name, small)
    print(consilience.bench.show(experiment, _rows(experiment, folder), by_missing=by_missing), end="")


@bench.command("plot")
def bench_plot(
    name: Name,
    output: Annotated[
        str, typer.Option("--output", "-o", help="A picture; PNG, SVG or PDF by suffix.", metavar="FILE")
    ],
    folder: Folder = "bench-results",
    small: Small = False,
    metric: Annotated[
        str | None, typer.Option(help="Which metric; the first by default.", metavar="NAME")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw the figure of an experiment.

    Example: `consilience bench plot pce-figures-2-3 --metric ACC -o figure.png`
    """
    io.files.require_folder(output)
    experiment = _experiment(name, small)
    if metric is not None and metric not in experiment.metrics:
        raise UsageError(f"{name} has no metric {metric!r}.", did_you_mean(metric, experiment.metrics))
    rows = _rows(experiment, folder)
    picture = consilience.bench.draw(experiment, rows, metric=metric)
    with cli.signals.together() as outputs, outputs.open(output) as file:
        picture.savefig(file, dpi=110, format=Path(output).suffix[1:] or None)
    _talk(f"Wrote {output}", quiet)


def _experiment(name: str, small: bool) -> Any:
    try:
        experiment = consilience.bench.load(name)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return experiment.in_small() if small else experiment


def _rows(experiment: Any, folder: str) -> Any:
    rows = consilience.bench.Store(Path(folder, experiment.name)).read()
    if rows.empty:
        raise UsageError(
            f"there are no results in {folder!r}.", hint=f"consilience bench run {experiment.name}"
        )
    return rows


app.add_typer(federated, name="federated")


# --- options ------------------------------------------------------------------------------------------------


def _n_clusters(text: str, *, several_allowed: bool = False) -> Any:
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 1:
        several = ", a range such as 3-6, or several such as 4,8" if several_allowed else ""
        raise UsageError(f"-k must be a number from 1, or auto{several}. Got {text!r}.", hint="as in -k 8.")
    return int(text)


def _several_n_clusters(text: str) -> Any:
    first, dash, last = text.partition("-")
    if dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) <= int(last):
        return list(range(int(first), int(last) + 1))
    if dash:
        _n_clusters(text, several_allowed=True)
    return [_n_clusters(part.strip(), several_allowed=True) for part in text.split(",")]


def _source(
    paths: Sequence[str],
    id_column: Sequence[str] | None,
    columns: Sequence[str] | None,
    missing: Sequence[str] | None,
    delimiter: str | None,
    encoding: str | None,
    long: str | None,
    *,
    beside: Sequence[str | None] = (),
    quiet: bool = False,
) -> Source:
    """How to read the files of a command; `beside` are others than its tables."""
    if delimiter is not None and len(delimiter.replace("\\t", "\t")) != 1:
        raise UsageError(
            f"--delimiter must be one character. Got {delimiter!r}.", hint="as in --delimiter ';'."
        )
    files = [*paths, *(path for path in beside if path is not None)]
    every_id, own_ids = _by_file("--id", id_column, files)
    every_column, own_columns = _by_file("--columns", columns, files)
    return io.files.Source(
        id_column=every_id,
        columns=() if every_column is None else _split(every_column),
        missing=tuple(missing) if missing else io.files.MISSING_TEXTS,
        delimiter=None if delimiter is None else delimiter.replace("\\t", "\t"),
        encoding=None if encoding is None else io.text.check_encoding(encoding),
        own_ids=own_ids,
        own_columns={path: _split(names) for path, names in own_columns.items()},
        long=None if long is None else _long(long, id_column, columns),
        say=lambda line: _talk(line, quiet),
    )


def _split(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.split(","))


def _by_file(
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


def _long(text: str, id_column: Any, columns: Any) -> tuple[str, str, str]:
    names = _split(text)
    if len(set(names)) != 3 or not all(names):
        raise UsageError(
            f"--long needs three columns. Got {text!r}.", hint="as in --long instance,source,label."
        )
    if id_column or columns:
        raise UsageError(
            "--long says which columns are read, so there is no --id and no --columns.",
            hint="leave them out.",
        )
    instance, source, label = names
    return instance, source, label


def _first_given(**options: Any) -> str:
    """The first of some options that was used."""
    return next((f"--{name.replace('_', '-')}" for name, value in options.items() if value), "")


def _refuse_in_blocks(option: str) -> None:
    if option:
        raise UsageError(
            f"{option} needs the whole table in memory.", hint="leave it out, or use --engine memory."
        )


def _names(methods: str | None) -> list[str] | None:
    if methods is None:
        return None
    if methods == "all":
        return [method.name for method in cli.catalog.catalogue() if method.input == "labels"]
    names = [name.strip() for name in methods.split(",")]
    for name in names:
        if name != "auto":
            _method(name, None)
    return names


# Parameters of every method that have an option of their own, which `fuse` hands to the method.
_OWN_OPTIONS = {"n_clusters": "-k", "unobserved": "--unobserved", "random_state": "--seed"}


def _method(name: str, parameters: Sequence[str] | None, *, views: bool = False) -> Any:
    """An estimator by its name, with parameters; or the name, which `fuse` knows."""
    if name.lower() == "auto":
        raise UsageError("--param needs --method.", hint="as in --method PCE --param gamma=10.")
    kinds = ("labels", "views") if views else ("labels",)
    catalogue = cli.catalog.catalogue()
    known = {method.name.lower(): method.name for method in catalogue if method.input in kinds}
    if name.lower() not in known:
        other = next((method for method in catalogue if method.name.lower() == name.lower()), None)
        if other is not None:
            where = {"views": "consilience cluster", "labels": "consilience fuse"}.get(other.input, "Python")
            raise UsageError(f"{other.name} takes {other.input}, not labels.", hint=f"use it in {where}.")
        hint = f"{did_you_mean(name.upper(), known.values())} See consilience methods."
        raise UsageError(f"there is no method {name!r} for this input.", hint)
    estimator = getattr(consilience, known[name.lower()])()
    allowed = estimator.get_params()
    values = {}
    for parameter in parameters or ():
        key, equals, value = parameter.partition("=")
        if not equals:
            raise UsageError(f"--param {parameter!r} has no value.", hint="as in --param gamma=10.")
        if key in _OWN_OPTIONS:
            own = _OWN_OPTIONS[key]
            raise UsageError(f"--param does not set what {own} sets.", hint=f"{own} {value}")
        if key not in allowed:
            raise UsageError(f"{known[name.lower()]} has no parameter {key!r}.", did_you_mean(key, allowed))
        values[key] = _value(value)
    return estimator.set_params(**values)


def _by_view(option: str, given: Sequence[str] | None) -> dict[str, Any]:
    """What was given for each view, by its name."""
    found = {}
    for text in given or ():
        name, equals, value = text.rpartition("=")
        if not equals:
            raise UsageError(f"--{option} {text!r} names no view.", hint=f"as in --{option} notes=...")
        found[name] = _value(value)
    return found


def _weights(text: str) -> dict[str, float]:
    """How much base clusterings count, by name."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.rpartition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            name = ""
        if not name.strip():
            raise UsageError(
                f"--weights {part.strip()!r} is no name and number.",
                hint="as in --weights bank_a=2,bank_b=1.",
            )
    return found


def _inputs(paths: Sequence[str], profile: str | None, source: Source) -> list[str]:
    """All files that are read."""
    if profile is not None and source.of(profile).id_column is None:
        raise UsageError("--profile is joined by id.", hint="name the id column with --id.")
    return [*paths, *([] if profile is None else [profile])]


def _check_page(title: str | None, report: str | None, as_json: bool = False) -> None:
    if title is not None and report is None and not as_json:
        raise UsageError("--title is the heading of a page.", hint="also give --report page.html.")


def _profiled(fusion: Fusion, facts: Any, told: Any) -> Profile | None:
    """What distinguishes the clusters in a table of facts, if there is one."""
    if facts is None:
        return None
    told("profiling", 0, 1)
    return consilience.diagnostics.profile(fusion, facts)


def _value(text: str) -> Any:
    """A number, true, false or null as JSON has them; otherwise the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _check_outputs(
    inputs: Sequence[str],
    output: str | None,
    imputed: str | None = None,
    report: str | None = None,
    as_json: bool = False,
    save: str | None = None,
) -> None:
    """Refuse what could not be written or would destroy an input, before the work is done."""
    written = [path for path in (output, imputed, report, save) if path is not None and path != STDIO]
    written = [path for path in written if not is_special(path)]  # those take everything
    everything = [Path(path).resolve() for path in (*inputs, *written)]
    for path in written:
        if everything.count(Path(path).resolve()) > 1:
            raise UsageError(f"{path!r} is named twice and would be overwritten.", hint="give another name.")
    for table in (output, imputed):
        if table is not None:
            io.files.check_output(table)
    if save == STDIO:
        raise UsageError("a result cannot be saved to standard output.", hint="give --save a file name.")
    for name in (report, save):
        if name is not None and name != STDIO:
            io.files.require_folder(name)
    if [output, imputed, report, STDIO if as_json else None].count(STDIO) > 1:
        raise UsageError("only one result can go to standard output.", hint="give the others a file name.")


# --- results ------------------------------------------------------------------------------------------------


def _require_an_answer(found: Comparison) -> None:
    if not found.fusions:
        raise ValueError(f"every method failed; the first said: {found.rows[0].error}")


def _show_comparison(found: Comparison) -> None:
    rows = []
    for row in found.rows:
        agreement, stable, sure = (f"{each:.3f}" for each in (row.agreement, row.stability, row.confidence))
        cells = [agreement, str(row.rank), stable, sure, f"{row.seconds:.2f}"]
        rows.append([row.method, str(row.n_clusters), *([row.error, "", "", "", ""] if row.error else cells)])
    _show(["method", "clusters", "agreement", "rank", "stability", "confidence", "seconds"], rows)


def _show_files(files: Sequence[DataFile], states: Sequence[str]) -> None:
    """A paragraph for each on a terminal; columns between tabs for other programs."""
    facts = ("holds", "source", "licence", "note", "sha256")
    if not sys.stdout.isatty():
        rows = [
            [f"{file.name}.npz", state, str(file.size), *(getattr(file, name) for name in facts)]
            for file, state in zip(files, states, strict=True)
        ]
        _show(["file", "state", "bytes", *facts], rows)
        return
    for file, state in zip(files, states, strict=True):
        print(f"{file.name}.npz: {state}, {file.size} bytes")
        for name in facts:
            if getattr(file, name):
                print(f"  {name:8} {getattr(file, name)}")


def _show(head: Sequence[str], rows: Sequence[Sequence[str]], *, lines: bool = False) -> None:
    """A table for the eye on a terminal; columns between tabs for other programs."""
    if not sys.stdout.isatty():
        print("\n".join("\t".join(row) for row in [head, *rows]))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*head, show_lines=lines)
    for row in rows:
        table.add_row(*map(escape, row))
    Console().print(table)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _talk(text: str, quiet: bool) -> None:
    if not quiet:
        print(text, file=sys.stderr)


def _warnings(quiet: bool) -> warnings.catch_warnings[Any]:
    return warnings.catch_warnings(action="ignore") if quiet else warnings.catch_warnings()
