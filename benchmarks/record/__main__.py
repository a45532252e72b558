"""The commands."""

import argparse
from pathlib import Path

import benchmarks.record as record
from benchmarks.record import design
from benchmarks.record.runner import run


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.record",
        description=record.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="fit what is not there yet")
    running.add_argument("folder", type=Path)
    running.add_argument("--draws", type=int, default=design.DRAWS)
    running.add_argument("--rows", type=int, default=design.ROWS, help="of larger sets; 0 is all")
    running.add_argument("--parts", nargs="+", default=[], choices=("labels", "views", "published"))
    running.add_argument("--minutes", type=float, default=float("inf"))
    running.add_argument(
        "--again", nargs="+", default=[], metavar="METHOD", help="fit these anew where they are"
    )
    given = parser.parse_args()
    if given.command == "run":
        options = {name: getattr(given, name) for name in ("draws", "rows", "minutes")}
        run(given.folder, parts=tuple(given.parts), again=tuple(given.again), **options)


if __name__ == "__main__":
    main()
