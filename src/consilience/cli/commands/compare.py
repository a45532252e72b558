"""`consilience compare`."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

import consilience
from consilience import cli, io
from consilience._support.errors import UsageError
from consilience.cli import options
from consilience.cli.help import FILES, WRITING
from consilience.cli.options import Engine, Unobserved
from consilience.cli.terminal import show

if TYPE_CHECKING:
    from consilience import Comparison


def compare(
    labels: Annotated[
        list[str] | None,
        typer.Argument(help="Table of labels, as for fuse; or none with --views.", metavar="LABELS"),
    ] = None,
    *,
    views: Annotated[
        list[str] | None,
        typer.Option(
            help="Compare methods for views: tables of features, as for cluster; all files up to the next "
            "option.",
            metavar=FILES,
        ),
    ] = None,
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
            help="Names separated by commas; all is every method for labels, or for views; left out, those "
            "that auto tries, or one of each kind for views.",
            metavar="A,B,...",
        ),
    ] = None,
    group: options.Groups = None,
    kind: options.Kind = None,
    resamples: Annotated[
        int, typer.Option(min=0, help="How often each method is fitted for its stability.", metavar="NUMBER")
    ] = 5,
    report: options.Report = None,
    save: Annotated[
        str | None,
        typer.Option(
            help="Keep the answer of the first line in a file, for predict, explain, report and --like.",
            metavar="FILE",
            rich_help_panel=WRITING,
        ),
    ] = None,
    title: options.Title = None,
    hide_ids: options.HideIds = False,
    as_json: options.AsJson = False,
    reading: options.Scanning,
    noise: options.Noise = False,
    unobserved: options.Unseen = Unobserved.error,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Run several methods on one table and show how good they are without any true classes.

    Agreement is the mean NMI with the base clusterings, stability the likeness of answers from parts of
    them, confidence its mean over instances. Agreement favours more clusters, so methods are ranked by it
    within a number of clusters, and the number that the labels support comes first. The page lets you
    toggle between the answers.

    With --views, agreement says how far nearest neighbours share a cluster, averaged over the views, and
    stability how alike the answers from parts of the instances are.

    Example: `consilience compare banks.csv --id customer -k 3-6 -m DAL,PCE,LWGP --report page.html`
    """
    if bool(labels) == bool(views):
        raise UsageError(
            "compare needs tables of labels, or tables of features as --views."
            if not views
            else "compare takes tables of labels or --views, not both.",
            hint="as in consilience compare --views blood.csv notes.csv --id patient -k 4.",
        )
    if kind and not views:
        raise UsageError("--kind says what views hold, and there are labels.", hint="leave it out.")
    paths = list(views or labels or ())
    job = cli.job.Job(paths, reading, options.Writing(report=report, title=title), quiet=quiet)
    names = _names(methods, "views" if views else "labels")
    ks = options.several_n_clusters(clusters)
    groups = options.groups(group)
    if groups and views:
        raise UsageError("--group is about columns of labels.", hint="leave it out with --views.")
    cli.job.check_outputs(paths, (), [report, save], stdout=True)  # the table of methods goes there
    job.require_memory(views=bool(views))
    with job.run() as run:
        how: dict[str, Any] = {
            "methods": names,
            "n_resamples": resamples,
            "random_state": seed,
            "progress": run.told,
        }
        if views:
            tables = io.files.read_view_tables(paths, job.source)
            found = consilience.compare_views(
                tables, ks, on=job.id_name, kind=options.by_view("kind", kind) or None, **how
            )
        else:
            table = run.labels(Engine.memory, unobserved, noise=noise).in_full()
            found = consilience.compare(table, ks, groups=groups, unobserved=unobserved.value, **how)
        if (report is not None or save is not None) and not found.fusions:
            raise ValueError(f"every method failed; the first said: {found.rows[0].error}")
        if save is not None:
            with run.outputs.open(save, private=True) as file:
                cli.results.write_result(found.best, file)
        if report is not None:
            run.told("drawing the page")
            summary = consilience.report.summarize(
                found, title=title, command=cli.results.command(), hide_ids=hide_ids
            )
            io.files.write_text(run.outputs, report, consilience.report.render(summary))
        run.last = lambda: _show(found, as_json)
        run.words = found.reason


def _names(methods: str | None, kind: str) -> list[str] | None:
    if methods is None:
        return None
    if methods == "all":
        return [method.name for method in cli.catalog.catalogue() if method.input == kind]
    names = list(options.split(methods))
    for name in names:
        if name.lower() not in (("auto", "labels") if kind == "views" else ("auto",)):
            options.method(name, None, views=kind == "views")
    return names


def _show(found: Comparison, as_json: bool) -> None:
    if as_json:
        rows = [{name: _plain(value) for name, value in row._asdict().items()} for row in found.rows]
        print(json.dumps(rows, indent=1))
        return
    table = []
    for row in found.rows:
        agreement, stable, sure = (f"{each:.3f}" for each in (row.agreement, row.stability, row.confidence))
        cells = [agreement, str(row.rank), stable, sure, f"{row.seconds:.2f}"]
        table.append(
            [row.method, str(row.n_clusters), *([row.error, "", "", "", ""] if row.error else cells)]
        )
    show(["method", "clusters", "agreement", "rank", "stability", "confidence", "seconds"], table)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
