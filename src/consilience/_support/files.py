"""Files that are there completely or not at all, alone or all of one command together."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self
from uuid import uuid4

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NAME = 40  # characters of a name that are also in that of its part


class _Written(NamedTuple):
    part: Path  # what was written, beside its target
    target: Path
    lock: int | None = None  # the same file once more: others see that the part is no left-over


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
            if fcntl is None:  # Windows renames no open file
                self._unlock()
            if kind is None:
                _rename(self._written)
        finally:
            for part, _, _ in self._written:
                part.unlink(missing_ok=True)
            self._unlock()

    def _unlock(self) -> None:
        for each in self._written:
            if each.lock is not None:
                os.close(each.lock)
        self._written = [each._replace(lock=None) for each in self._written]

    @contextmanager
    def open(self, path: str | os.PathLike[str], *, private: bool = False) -> Iterator[IO[bytes]]:
        """A file to write to. One that replaces another gets its mode and owner; a new one that is `private`
        can be read by nobody else."""
        target = Path(path)
        if (direct := _special(target)) is not None:
            with direct as file:
                yield file
            return
        target = Path(os.path.realpath(target))
        prefix = _prefix(target)
        _remove_leftovers(target.parent, prefix)
        part = target.with_name(f"{prefix}{uuid4().hex[:12]}.part")
        self._written.append(_Written(part, target))  # first, so that it goes whenever a signal comes
        try:
            old = _status(target)
            mode = 0o666 if old is None and not private else 0o600
            file = os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode), "wb")
        except OSError as error:  # of the name that was given, not of ours
            raise type(error)(error.errno, error.strerror, str(path)) from error
        with file:
            own = _locked(file.fileno())
            self._written[-1] = _Written(part, target, own)
            yield file
        if old is not None:
            _be_like(own, part, old)
        os.fsync(own)  # so that no loss of power leaves an empty file under the name


_BINARY = getattr(os, "O_BINARY", 0)


def _status(target: Path) -> os.stat_result | None:
    try:
        return os.stat(target)
    except FileNotFoundError:
        return None


def _be_like(file: int, part: Path, old: os.stat_result) -> None:
    """The owner and mode of the file that is replaced; a group that cannot be kept gets no rights."""
    mode = stat.S_IMODE(old.st_mode)
    if hasattr(os, "fchown"):
        try:
            os.fchown(file, old.st_uid, old.st_gid)
        except OSError:
            with suppress(OSError):
                os.fchown(file, -1, old.st_gid)
            if os.fstat(file).st_gid != old.st_gid:
                mode &= ~stat.S_IRWXG
    os.chmod(part, mode)


def _prefix(target: Path) -> str:
    """How the names of all parts of a file begin, however long its own name is."""
    return f".{target.name[:_NAME]}.{zlib.crc32(os.fsencode(target.name)):08x}."


def _locked(file: int) -> int:
    own = os.dup(file)
    if fcntl is not None:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return own


def _remove_leftovers(folder: Path, prefix: str) -> None:
    """Remove parts of the same file whose writer is gone, so that nobody holds their locks."""
    if fcntl is None or not folder.is_dir():
        return
    for entry in os.scandir(folder):
        if not (entry.name.startswith(prefix) and entry.name.endswith(".part")):
            continue
        with suppress(OSError):
            file = os.open(entry.path, os.O_RDONLY)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry.path)
            finally:
                os.close(file)


@contextmanager
def whole_file(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to, which appears under its name when the block has ended well; see `Outputs`."""
    with Outputs() as outputs, outputs.open(path, private=private) as file:
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
        os.replace(written[0].part, written[0].target)
        return
    done: list[tuple[Path, Path | None]] = []  # targets, and what had their names before
    kept: list[Path] = []
    try:
        for part, target, _ in written:
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
