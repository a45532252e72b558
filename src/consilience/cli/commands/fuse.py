"""`consilience fuse`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import consilience
from consilience import cli
from consilience._support.errors import UsageError
from consilience._support.values import did_you_mean
from consilience.cli import options
from consilience.cli.options import Unobserved


def fuse(
    labels: options.Labels,
    *,
    clusters: Annotated[
        str,
        typer.Option(
            "--clusters",
            "-k",
            help="Number of clusters; a range (5-8), of which the best is taken; or auto.",
            metavar="NUMBER",
        ),
    ] = "auto",
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="auto (what suits how the sources relate), or a name from consilience methods.",
            metavar="NAME",
        ),
    ] = "auto",
    like: options.Like = None,
    like_column: options.LikeColumn = None,
    name_after: Annotated[
        str | None,
        typer.Option("--name-after", help="Column whose labels name the clusters.", metavar="COLUMN"),
    ] = None,
    names: options.Names = None,
    must_link: Annotated[
        str | None,
        typer.Option(
            help="CSV file of instances that belong together: a pair or group of ids a line, or a column of "
            "ids and one called group; the first line names columns.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    cannot_link: Annotated[
        str | None,
        typer.Option(
            help="CSV file of instances no two of which may be in one cluster, as for --must-link.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    profile: options.Profile = None,
    stability: options.Stability = False,
    settle: Annotated[
        bool,
        typer.Option(
            "--settle",
            help="Put every instance into its most likely cluster, for sources that err independently.",
        ),
    ] = False,
    weights: Annotated[
        str | None,
        typer.Option(
            help="How much columns count, as in bank_a=2,bank_b=1; 1 by default. With --views, views too.",
            metavar="A=N,...",
        ),
    ] = None,
    group: options.Groups = None,
    same_names: Annotated[
        bool,
        typer.Option(
            "--same-names",
            help="All columns use one set of names, as annotators do; the names are the clusters.",
        ),
    ] = False,
    views: options.BesideLabels = None,
    kind: options.Kind = None,
    param: options.Parameters = None,
    writing: options.WritingLabels,
    reading: options.Scanning,
    noise: options.Noise = False,
    unobserved: options.Unseen = Unobserved.error,
    engines: options.Engines,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Merge a table of base labels into one clustering of all instances.

    Example: `consilience fuse banks.csv --id customer -k 4 -o merged.csv --report page.html`

    Beyond memory: `consilience fuse folder/ --id customer -k 4 --engine dask -o merged/`

    With features: `consilience fuse banks.csv --views payments.csv visits.csv --id customer -k 4 -o out.csv`
    """
    tables = list(views or ())
    job = cli.job.Job(
        labels, reading, writing, engines, profile, like, like_column, quiet=quiet, beside=tables
    )
    k = options.n_clusters(clusters, ranges=not tables)
    links = {"must-link": must_link, "cannot-link": cannot_link}
    cli.job.require_files({"names": names, **links})
    chosen = method if method.lower() == "auto" and not param else options.method(method, param)
    settings: dict[str, Any] = {"method": chosen, "unobserved": unobserved.value}
    if same_names:
        if tables:
            raise UsageError(
                "--same-names is of labels alone: beside views, these link the sources already.",
                hint="leave out --same-names; it would add little.",
            )
        settings["same_names"] = True
    counts = None if weights is None else _weights(weights)
    groups = options.groups(group)
    if tables:
        if settle:
            raise UsageError(
                "--settle moves instances by their labels alone, and --views brings features.",
                hint="leave out one of them.",
            )
        if names or must_link or cannot_link:
            raise UsageError(
                "--names, --must-link and --cannot-link are for labels without --views.",
                hint="name clusters by consilience edit --names.",
            )
        if groups is not None:
            raise UsageError(
                "--group is about columns of labels, and --views brings other sources.",
                hint="give near copies lower --weights instead.",
            )
        _fuse_with_views(
            job, tables, k, kind, counts, name_after, method, param, unobserved, seed, noise, stability
        )
        return
    if settle and cannot_link:
        raise UsageError(
            "--settle would move instances that --cannot-link parts.", hint="leave out one of them."
        )
    if kind:
        raise UsageError("--kind says how views are read.", hint="also give --views.")
    engine = job.engine()
    job.check_outputs(*(path for path in (names, must_link, cannot_link) if path is not None))
    about = {"report": writing.report, "json": writing.as_json, "save": writing.save}
    about |= {"like": like, "profile": profile, **links}
    further = [*about.values(), noise, writing.imputed, writing.chances, name_after, weights, stability]
    further += [settle, bool(groups), names, isinstance(k, tuple), same_names]
    if job.folder is not None and len(labels) == 1 and not any(further):
        with job.run() as run:
            run.words = cli.blocks.fuse_to_folder(
                run.sources()[0],
                job.folder,
                k,
                as_it_is=job.as_it_is,
                on_dask=engine is options.Engine.dask,
                scheduler=engines.scheduler,
                checkpoint=engines.checkpoint,
                seed=seed,
                told=run.told,
                **settings,
            )
        return
    in_full = job.in_full(**about)
    with job.run() as run:
        read = run.labels(engine, unobserved, noise=noise)
        table = read.in_full() if in_full else read.table
        run.instances = None if in_full else read.instances
        if name_after is not None and name_after not in table.names:
            raise UsageError(
                f"--name-after: no base clustering with labels is called {name_after!r}.",
                did_you_mean(name_after, table.names),
            )
        run.read_facts(table)
        run.told("merging")
        fusion = consilience.fuse(
            table,
            k,
            like=None if settle else run.earlier,
            weights=counts,
            groups=groups,
            must_link=must_link,
            cannot_link=cannot_link,
            named_after=None if settle else name_after,
            random_state=seed,
            progress=run.told,
            **settings,
        )
        if settle:
            fusion = fusion.settle()
            fusion = fusion if run.earlier is None else fusion.like(run.earlier)
            fusion = fusion if name_after is None else fusion.named_after(name_after)
        if names is not None:
            fusion = fusion.rename(cli.saved.read_names(names))
        run.write(fusion, stability=stability)


def _fuse_with_views(
    job: cli.job.Job,
    paths: list[str],
    k: Any,
    kind: list[str] | None,
    counts: dict[str, float] | None,
    name_after: str | None,
    method: str,
    param: list[str] | None,
    unobserved: Unobserved,
    seed: int,
    noise: bool,
    stability: bool,
) -> None:
    """Labels and tables of features, joined by id."""
    if method.lower() != "auto" or param:
        raise UsageError(
            "labels and views together are merged in one way.", hint="leave out --method and --param."
        )
    if job.engines.engine in (options.Engine.blocks, options.Engine.dask):
        raise UsageError(
            f"--engine {job.engines.engine.value} reads labels in blocks, and neighbours in views need all "
            "rows at once.",
            hint="leave out --engine, or merge the labels alone.",
        )
    job.check_outputs()
    job.require_memory()
    with job.run() as run:
        table = run.labels(options.Engine.memory, Unobserved.largest, noise=noise).in_full()
        if name_after is not None and name_after not in table.names:
            raise UsageError(
                f"--name-after: no base clustering with labels is called {name_after!r}.",
                did_you_mean(name_after, table.names),
            )
        read = cli.saved.read_beside(paths, job.source, table, options.by_view("kind", kind) or None)
        run.told("merging")
        fusion = consilience.fuse(
            table,
            k,
            views=read,
            like=run.earlier,
            weights=counts,
            named_after=name_after,
            unobserved=unobserved.value,
            random_state=seed,
            progress=run.told,
        )
        run.write(fusion, stability=stability)


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
