"""Files that are there completely or not at all, alone or all of one command together."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self
from uuid import uuid4


class _Written(NamedTuple):
    part: Path  # what was written, beside its target
    target: Path


class Outputs:
    """Files that appear under their names together, when the block ends well; none of them if it fails.

    Whatever had those names before stays until then, and for good if the block fails. A link is written
    through. What is no regular file, such as a pipe or a device, is written to directly.
    """

    def __init__(self) -> None:
        self._written: list[_Written] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                _rename(self._written)
        finally:
            for part, _ in self._written:
                part.unlink(missing_ok=True)

    @contextmanager
    def open(self, path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
        """A file to write to."""
        target = Path(path)
        if (direct := _special(target)) is not None:
            with direct as file:
                yield file
            return
        target = Path(os.path.realpath(target))
        part = target.with_name(f".{target.name}.{uuid4().hex}.part")
        self._written.append(_Written(part, target))  # first, so that it goes whenever a signal comes
        try:
            file = open(part, "xb")  # noqa: SIM115 - closed below
        except OSError as error:  # of the name that was given, not of ours
            raise type(error)(error.errno, error.strerror, str(path)) from error
        with file:
            yield file


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to, which appears under its name when the block has ended well; see `Outputs`."""
    with Outputs() as outputs, outputs.open(path) as file:
        yield file


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether something is there that is no regular file and no folder: a pipe, a device, a socket."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _special(path: Path) -> IO[bytes] | None:
    """What is written to directly, opened; None for a regular file, and where nothing is there yet."""
    with suppress(OSError, ValueError):  # nothing is there, or a standard stream is closed
        found = os.stat(path)
        for stream in (sys.__stdout__, sys.__stderr__):
            # Where /dev/stdout leads to a file, a new file of its name would not be what the shell opened.
            if stream is not None and os.path.samestat(found, os.fstat(stream.fileno())):
                stream.flush()
                return os.fdopen(os.dup(stream.fileno()), "wb")
    return open(path, "wb") if is_special(path) else None


def _rename(written: list[_Written]) -> None:
    """All parts to their targets; where one cannot, everything is again as it was."""
    if len(written) == 1:
        os.replace(*written[0])
        return
    done: list[tuple[Path, Path | None]] = []  # targets, and what had their names before
    kept: list[Path] = []
    try:
        for part, target in written:
            old = part.with_suffix(".old") if target.exists() else None
            if old is not None:
                kept.append(old)
                try:
                    os.link(target, old)
                except OSError:  # a file system without links
                    shutil.copy2(target, old)
            os.replace(part, target)
            done.append((target, old))
    except BaseException:
        for target, old in done:
            if old is not None:
                os.replace(old, target)
            else:
                target.unlink(missing_ok=True)
        raise
    finally:
        for old in kept:
            old.unlink(missing_ok=True)
