"""What a command reads and writes, where the work is done, and what is refused before it begins."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as pa_dataset
import typer

import consilience
from consilience import Fusion, Partitions, cli
from consilience._support import memory as _memory
from consilience._support.errors import InputError, UsageError
from consilience._support.files import Outputs, is_special
from consilience.cli.main import DRIFTED
from consilience.cli.options import Engine, Engines, Reading, Scanning, Unobserved, Writing, WritingLabels
from consilience.cli.terminal import Bar, bar, talk
from consilience.evidence.reading import Instances, Labels, read_labels
from consilience.io import excel, files
from consilience.io.files import COMPRESSED, STDIO, Source, is_parquet, kind_of
from consilience.io.formats import is_pattern
from consilience.io.labels import Negative
from consilience.io.tables import suffix_of
from consilience.results.drift import Drift

# Bytes at the peak for a label and for a row with its id: of `fuse` that only writes tables, of what needs
# every instance (a page, a saved result, `compare`), and of `cluster` for a feature. Measured on text ids.
LEAN, WHOLE, VIEWS = (10, 100), (30, 200), (60, 200)
_JOINING = ("--like", "--profile", "--must-link", "--cannot-link")  # what knows instances by their ids
_MANY = 1_000_000  # rows from which on a line says where they are worked on
_SAMPLE = 1 << 16  # bytes of a text file from which its rows are estimated
_PACKED = 4  # how much larger text is than a compressed file of it


@dataclass
class Job:
    """The tables of a command, what is written of its result, and where the work is done."""

    paths: Sequence[str]
    reading: Reading
    writing: Writing = field(default_factory=Writing)
    engines: Engines = field(default_factory=Engines)
    profile: str | None = None
    like: str | None = None
    like_column: str | None = None
    quiet: bool = False
    beside: Sequence[str | None] = ()  # further tables
    updates: bool = False  # whether the earlier result is that of the command

    def __post_init__(self) -> None:
        refuse_twice(self.paths)
        self.source = self.reading.source(
            self.paths, (self.profile, self.like, *self.beside), quiet=self.quiet
        )
        self.id_name = self.source.id_name(self.paths)
        writing = self.writing
        if writing.title is not None and writing.report is None and not writing.as_json:
            raise UsageError("--title is the heading of a page.", hint="also give --report page.html.")
        if self.like_column is not None and self.like is None:
            raise UsageError("--like-column is a column of the table of --like.", hint="also give --like.")
        if writing.changes is not None and self.like is None and not self.updates:
            raise UsageError("--changes compares with an earlier result.", hint="also give --like.")
        if self.profile is not None and self.source.of(self.profile).id_column is None:
            raise UsageError("--profile is joined by id.", hint="name the id column with --id.")

    @property
    def imputed(self) -> str | None:
        """Where the completed table goes."""
        return self.writing.imputed if isinstance(self.writing, WritingLabels) else None

    @property
    def folder(self) -> str | None:
        """The folder of Parquet files that the answer goes to, where it does."""
        output = self.writing.output
        in_blocks = self.engines.engine in (Engine.blocks, Engine.dask)
        return output if in_blocks and output and output != STDIO and not Path(output).suffix else None

    def check_outputs(self, *results: str) -> None:
        """Refuse what could not be written or would destroy an input, before the work is done."""
        further = (*results, self.profile, self.like, *self.beside)
        inputs = [*self.paths, *(path for path in further if path is not None)]
        output, report, save = self.writing.output, self.writing.report, self.writing.save
        if self.writing.excel_csv:
            writing = self.writing
            others = any((report, save, self.imputed, writing.changes, writing.chances, writing.as_json))
            answer = STDIO if output is None and not others else output
            require_csv([self.folder or answer, self.imputed, writing.changes, writing.chances])
        if self.folder is not None:
            refuse_overwriting(inputs, [self.folder])
            return
        if save == STDIO:
            raise UsageError("a result cannot be saved to standard output.", hint="give --save a file name.")
        tables = (output, self.imputed, self.writing.changes, self.writing.chances)
        check_outputs(inputs, tables, (report, save), stdout=self.writing.as_json)

    @contextmanager
    def run(self) -> Iterator[Run]:
        """The work: a bar, and files that appear together at the end or not at all."""
        with cli.signals.together() as outputs:
            with bar(self.quiet) as told, ExitStack() as opened:
                told("reading")
                run = Run(self, told, outputs, opened)
                if self.like is not None:
                    run.earlier = cli.saved.read_earlier(self.like, self.source, self.like_column)
                yield run
            run.last()
        talk(run.words, self.quiet or not run.words)
        _tell_drift(run.drift(), self.quiet, run.fail_below)

    # --- where the work is done -----------------------------------------------------------------------------

    def engine(self) -> Engine:
        """Where `fuse` reads: as it was told, or by the size of the table, which is said for many rows."""
        asked, scheduler, checkpoint = self.engines.engine, self.engines.scheduler, self.engines.checkpoint
        if (checkpoint is not None and self.folder is None) or (
            scheduler is not None and asked is not Engine.dask
        ):
            raise UsageError(
                "--scheduler and --checkpoint need --engine dask, and --checkpoint a folder to write to.",
                hint="as in --engine dask -o merged/.",
            )
        if asked in (Engine.blocks, Engine.dask):
            return asked
        needed = estimate(self.paths, self.source, LEAN)
        if needed.fits:
            if needed.rows >= _MANY:
                self.source.say(f"{needed}: working in memory.")
            return Engine.memory
        why_not = self._why_not_again() if asked is Engine.auto else "leave out --engine memory"
        if why_not:
            _refuse(needed, f"{why_not}, and it is read in blocks.")
        self.source.say(f"{needed}: reading in blocks, twice (--engine blocks).")
        return Engine.blocks

    def _why_not_again(self) -> str:
        """Why reading a table twice would not save memory; empty if it would."""
        if len(self.paths) > 1:
            return "several files are joined by their ids, all of which are held; put them in one table"
        if self.source.long:
            return "--long is put together in memory; put it in a table with a column per source"
        path = self.paths[0]
        if path == STDIO or is_special(path):
            return "a pipe can be read only once; write it to a file"
        if not is_pattern(path) and kind_of(path) == "excel":
            return "a workbook is read as a whole; save it as CSV"
        return ""

    def in_full(self, **needs: Any) -> bool:
        """Whether the result has a row for every instance: where something that was asked for is about single
        instances, and there is memory for all of them.

        Without that memory, a page and a saved result are about distinct label rows. What joins instances to
        another table by their ids is refused.
        """
        wanted = [f"--{name}" for name, given in needs.items() if given]
        if not wanted:
            return False
        needed = estimate(self.paths, self.source, WHOLE)
        if needed.fits:
            return True
        joining = next((option for option in wanted if option in _JOINING), "")
        if joining:
            _refuse(needed, f"{joining} joins every instance by its id; leave it out.")
        self.source.say(f"{needed}: {' and '.join(wanted)} without the ids of instances.")
        return False

    @property
    def as_it_is(self) -> bool:
        """Whether the workers of a cluster can read the files themselves."""
        plain = not self.source.marks and not self.source.match_ids
        return plain and len(self.paths) == 1 and not is_pattern(self.paths[0]) and is_parquet(self.paths[0])

    def require_memory(self, *, views: bool = False) -> None:
        """Refuse tables that do not fit in memory, where there is no other way."""
        needed = estimate(self.paths, self.source, VIEWS if views else WHOLE)
        if not needed.fits:
            _refuse(
                needed,
                "use fewer instances or features, or consilience.dask.APMC."
                if views
                else "fuse -o reads one table in blocks; elsewhere name fewer --columns.",
            )


@dataclass
class Run:
    """A job at work."""

    job: Job
    told: Bar
    outputs: Outputs
    opened: ExitStack
    earlier: Any = None  # the result that cluster numbers are kept from
    instances: Instances | None = None  # where rows go back to; None where a row is an instance
    facts: Any = None  # the table of --profile
    last: Callable[[], None] = lambda: None  # done below the bar, before files appear: printing
    words: str = ""  # what is said when all files are there
    drift: Callable[[], Drift | None] = lambda: None  # of the newcomers, where they are many
    fail_below: float | None = None  # the p-value of --fail-on-drift

    def labels(self, engine: Engine, unobserved: Unobserved, *, noise: bool = False) -> Labels:
        """The distinct label rows of the tables, and the way back to their instances."""
        sources = self.sources()
        negative: Negative = "noise" if noise else "missing"
        how: dict[str, Any] = {"negative": negative, "unobserved": unobserved.value}
        if engine is Engine.dask and len(sources) == 1:  # several are joined here, by their ids
            scheduler = self.job.engines.scheduler
            reader = cli.blocks.read_on_dask(
                sources[0], as_it_is=self.job.as_it_is, scheduler=scheduler, told=self.told, **how
            )
            return self.opened.enter_context(reader)
        again = engine is not Engine.memory
        most = cli.blocks.MAX_DISTINCT if again else math.inf
        return read_labels(sources, again=again, most=most, told=self.told if again else None, **how)

    def sources(self) -> Sequence[Any]:
        """The tables of labels, found and looked at."""
        reading = self.job.reading
        assert isinstance(reading, Scanning)
        return reading.scan(self.job.paths, self.job.source).sources

    def read_facts(self, table: Partitions) -> None:
        """Read what --profile names, for the instances of a table."""
        if self.job.profile is not None and self.facts is None:
            self.facts = cli.saved.read_facts(self.job.profile, self.job.source, table)

    def write(self, fusion: Fusion, *, stability: bool = False) -> None:
        """Everything that was asked for; with `stability`, after the result was fitted again to parts."""
        job, profile = self.job, None
        self.read_facts(fusion.partitions)
        if self.facts is not None:
            self.told("profiling", 0, 1)
            profile = consilience.diagnostics.profile(fusion, self.facts)
        stable = fusion.stability(progress=self.told) if stability else None
        cli.results.write_fusion(
            fusion,
            self.outputs,
            self.told,
            instances=self.instances,
            folder=job.folder,
            output=job.writing.output,
            imputed=job.imputed,
            report=job.writing.report,
            as_json=job.writing.as_json,
            save=job.writing.save,
            changes=job.writing.changes,
            chances=job.writing.chances,
            title=job.writing.title,
            hide_ids=job.writing.hide_ids,
            excel_csv=job.writing.excel_csv,
            profile=profile,
            stability=stable,
        )
        said = (fusion.summary(), profile, stable)
        self.words = "\n\n".join(str(part) for part in said if part is not None)


def _tell_drift(found: Drift | None, quiet: bool, fail_below: float | None) -> None:
    """What newcomers show, where they are many; the quiet are told of drift, too."""
    if found is None:
        return
    talk("\n".join(found.sentences), quiet and not found.found)
    if fail_below is not None and found.p <= fail_below:
        raise typer.Exit(DRIFTED)


# --- inputs and outputs -------------------------------------------------------------------------------------


def require_files(options: Mapping[str, str | None]) -> None:
    """Refuse options that name no file."""
    for name, path in options.items():
        if path is not None and not Path(path).is_file():
            raise UsageError(f"--{name}: there is no file {path!r}.", hint="check the path.")


def refuse_twice(paths: Sequence[str]) -> None:
    """Refuse a table that is named twice, which would count twice."""
    for n, path in enumerate(paths):
        for other in paths[:n]:
            if excel.split_sheet(path)[1] == excel.split_sheet(other)[1] and _same(path, other):
                raise UsageError(f"{path!r} is named twice.", hint="name every table once.")


def check_outputs(
    inputs: Sequence[str],
    tables: Sequence[str | None] = (),
    others: Sequence[str | None] = (),
    *,
    stdout: bool = False,
) -> None:
    """Refuse what could not be written or would destroy an input, before the work is done.

    `tables` have their kind by suffix, `others` do not; `stdout` says whether standard output is taken.
    """
    written = [path for path in (*tables, *others) if path is not None]
    if written.count(STDIO) + stdout > 1:
        raise UsageError("only one result can go to standard output.", hint="give the others a file name.")
    refuse_overwriting(inputs, written)
    for table in tables:
        for folder in inputs:
            if table is not None and Path(folder).is_dir() and _same(os.path.dirname(table) or ".", folder):
                raise UsageError(f"{table!r} would be in the folder that is read.", hint="give another one.")
    for table in tables:
        if table is not None:
            files.check_output(table)
    for other in others:
        if other is not None and other != STDIO:
            files.require_folder(other)


def require_csv(tables: Sequence[str | None]) -> None:
    """Refuse --excel-csv where there is no CSV file to write, or another one."""
    written = [path for path in tables if path is not None]
    other = next((path for path in written if path != STDIO and suffix_of(path) != ".csv"), None)
    if other is not None:
        raise UsageError(
            f"--excel-csv is about CSV files, and {other!r} is none.", hint="as in -o merged.csv."
        )
    if not written:
        raise UsageError(
            "--excel-csv is about CSV files, and none is written.", hint="also give -o merged.csv."
        )


def refuse_overwriting(inputs: Sequence[str], written: Sequence[str]) -> None:
    """Refuse to write to what is read, and to write to one file twice."""
    written = [path for path in written if path != STDIO and not is_special(path)]  # those take everything
    for n, path in enumerate(written):
        for other in (*inputs, *written[:n]):
            if _same(path, other):
                raise UsageError(
                    f"{path!r} is {_twice(path, other)} and would be overwritten.", hint="give another name."
                )


def _twice(path: str, other: str) -> str:
    same = os.path.abspath(path) == os.path.abspath(other)
    return "named twice" if same else f"the same file as {other!r}"


def _same(path: str, other: str) -> bool:
    """Whether two paths name one file, whatever sheet of it."""
    first, second = (excel.split_sheet(each)[0] for each in (path, other))
    with suppress(OSError):
        return os.path.samefile(first, second)
    return os.path.realpath(first) == os.path.realpath(second)


# --- memory -------------------------------------------------------------------------------------------------


class Needed(NamedTuple):
    """What tables would take."""

    rows: int
    columns: int
    memory: float
    free: float | None

    @property
    def fits(self) -> bool:
        """Whether it is there."""
        return self.free is None or self.memory <= self.free

    def __str__(self) -> str:
        return (
            f"{self.rows:.2g} rows of {self.columns} columns take some {self.memory / 1e9:.3g} GB of memory, "
            f"and {(self.free or 0.0) / 1e9:.3g} GB are free"
        )


def estimate(paths: Sequence[str], source: Source, each: tuple[int, int]) -> Needed:
    """What tables would take, from the sizes of their files."""
    a_cell, a_row = each
    sizes = [_size(path, source.of(path)) for path in paths]
    rows, columns = (max(size) for size in zip(*sizes, strict=True))
    try:
        free = _memory.free_memory()
    except InputError as error:  # the environment was wrong
        raise UsageError(error.message, error.hint) from error
    return Needed(rows, columns, sum(n * (a_row + m * a_cell) for n, m in sizes), free)


def _refuse(needed: Needed, hint: str) -> None:
    raise UsageError(f"{needed}.", hint=f"{hint} CONSILIENCE_MEMORY=64G says how much may be used.")


def _size(path: str, source: Source) -> tuple[int, int]:
    """Rows and columns of a table; (0, 0) where only reading it tells, or would say what is wrong with it."""
    if path == STDIO or not Path(path).exists() or is_special(path):
        return 0, 0
    kind = kind_of(path)
    with suppress(pa.ArrowException, OSError, ValueError):
        if kind == "csv":
            rows, columns = _size_of_text(path)
            return rows, len(source.columns) or columns
        data = pa_dataset.dataset(path, format=kind)
        return data.count_rows(), len(source.columns) or len(data.schema.names)
    return 0, 0


def _size_of_text(path: str) -> tuple[int, int]:
    with pa.input_stream(path, compression="detect") as stream:
        sample = stream.read(_SAMPLE)
    size = Path(path).stat().st_size * (_PACKED if Path(path).suffix.lower() in COMPRESSED else 1)
    lines = max(sample.count(b"\n"), 1)
    first = sample.partition(b"\n")[0]
    columns = 1 + max(first.count(mark) for mark in (b",", b"\t", b";", b"|"))
    return int(size / len(sample) * lines) if sample else 0, columns
