"""The commands."""

import argparse
from pathlib import Path

import benchmarks.record as record
from benchmarks.record import design, scale
from benchmarks.record.markdown import filled
from benchmarks.record.page import write
from benchmarks.record.runner import read, run, small
from benchmarks.record.summary import means, sections


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.record",
        description=record.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    only = "a part, group, data set, way of missing, or 'k x 2'; any of several: published, planted, VS, ..."
    running = commands.add_parser("run", help="fit what is not there yet")
    running.add_argument("folder", type=Path)
    running.add_argument("--draws", type=int, default=design.DRAWS)
    running.add_argument("--rows", type=int, default=design.ROWS, help="of larger sets; 0 is all")
    running.add_argument("--only", nargs="+", default=[], metavar="WORD", help=only)
    running.add_argument("--methods", nargs="+", default=[], metavar="METHOD", help="all by default")
    running.add_argument("--minutes", type=float, default=float("inf"))
    running.add_argument("--jobs", type=int, default=1, help="tables worked on at once, a thread each")
    running.add_argument(
        "--again", nargs="+", default=[], metavar="METHOD", help="fit these anew where they are"
    )
    scaling = commands.add_parser("scale", help="sizes that users of other tools reported")
    scaling.add_argument("folder", type=Path)
    paging = commands.add_parser("page", help="tables and pictures of what is there")
    paging.add_argument("folder", type=Path)
    paging.add_argument("file", type=Path)
    telling = commands.add_parser("docs", help="fill the tables of a page of the documentation")
    telling.add_argument("folder", type=Path)
    telling.add_argument("file", type=Path)
    for name, what in (("summary", "means of every cell, as Parquet"), ("fits", "every fit, as Parquet")):
        handing = commands.add_parser(name, help=what)
        handing.add_argument("folder", type=Path)
        handing.add_argument("file", type=Path)
    given = parser.parse_args()
    if given.command == "run":
        options = {name: getattr(given, name) for name in ("draws", "rows", "minutes", "jobs")}
        words = {name: tuple(getattr(given, name)) for name in ("only", "methods", "again")}
        run(given.folder, **words, **options)
    elif given.command == "scale":
        scale.run(given.folder)
    elif given.command == "page":
        made = sections(read(given.folder), scale.read(given.folder))
        write(made, given.file, "python -m benchmarks.record run FOLDER")
    elif given.command == "docs":
        made = sections(read(given.folder), scale.read(given.folder))
        given.file.write_text(filled(given.file.read_text(), made))
    else:
        found = means(read(given.folder)) if given.command == "summary" else small(read(given.folder))
        found.to_parquet(given.file, index=False, compression="zstd", compression_level=15)


if __name__ == "__main__":
    main()
