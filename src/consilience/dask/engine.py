"""Passes over blocks: in this process, one block after the other, or on the workers of a Dask cluster.

Both have the same three verbs, and both add up the parts of a pass in the same order, so that they give the
same answer to the last digit.

- ``reduce``: a statistic of every block, merged into one;
- ``update``: a statistic of every block and what the block carries on to the next pass, its state;
- ``each``: something done for every block, such as writing a file.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sys
import tempfile
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, count, islice
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from consilience._support.errors import ClusterError, InputError
from consilience._support.files import whole_file
from consilience._support.warnings import warn

Progress = Callable[[str, int, int], None]

# So many parts are merged at a time.
_FAN_IN = 8
# Seconds without any worker after which a run fails, unless Dask's configuration says otherwise under
# "consilience.wait-for-workers"; after which it warns; and how often it looks.
WAIT_FOR_WORKERS = 300.0
_WARN_AFTER = 5.0
_LOOK_EVERY = 1.0
# Seconds in which a scheduler that is there, and may be busy, says how many workers it has.
_ANSWER_WITHIN = 60.0


def merged(merge: Callable[[Sequence[Any]], Any], parts: Iterable[Any]) -> Any:
    """Parts merged as they come, eight consecutive ones at a time, then eight of those, and so on."""
    parts = iter(parts)
    while True:
        head = list(islice(parts, 2))
        if not head:
            raise InputError("there are no blocks.", hint="give at least one block of rows.")
        if len(head) == 1:
            return head[0]
        parts = _groups(merge, chain(head, parts))
        del head


def _groups(merge: Callable[[Sequence[Any]], Any], parts: Iterator[Any]) -> Iterator[Any]:
    while group := list(islice(parts, _FAN_IN)):
        whole = group[0] if len(group) == 1 else merge(group)
        del group  # parts may be large: none is kept while the next ones come
        yield whole


def add(parts: Sequence[Any]) -> Any:
    """Sums of arrays and numbers, or of tuples and lists of such, field by field; None adds nothing."""
    parts = [part for part in parts if part is not None]
    if not parts:
        return None
    if isinstance(parts[0], tuple | list):
        return tuple(map(add, zip(*parts, strict=True)))
    return sum(parts[1:], start=parts[0])


def stack(parts: Sequence[Any]) -> Any:
    """Tuples or lists of tables as one, field by field."""
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


class Stored(NamedTuple):
    """State of a block in a file, what kind of state it is, and what it must hold."""

    path: str
    kind: Any
    rows: int
    digest: str
    checked: bool = True  # False for what another run has written


def store(state: Any, path: str | None) -> Any:
    """The state itself, or a file that holds it; the file appears complete or not at all."""
    if path is None:
        return state
    with whole_file(path) as file:
        np.savez(file, **state._asdict())
    return Stored(path, type(state), len(state[0]), digest(state))


def fetch(state: Any) -> Any:
    """The state of a block, from wherever it is."""
    if not isinstance(state, Stored):
        return state
    if state.checked:
        with open(state.path, "rb") as file, np.load(file) as arrays:
            return state.kind(**arrays)
    return _checked(state)


def _checked(stored: Stored) -> Any:
    """A state that another run has written, if it is still what that run wrote."""
    try:
        found = fetch(stored._replace(checked=True))
    except Exception as error:  # whatever a damaged file makes of zip and NumPy
        raise _damaged(stored, f"it cannot be read ({error})") from error
    if len(found[0]) != stored.rows:
        raise _damaged(stored, f"it has {len(found[0])} rows instead of {stored.rows}")
    if digest(found) != stored.digest:
        raise _damaged(stored, "its content has changed")
    return found


def _damaged(stored: Stored, how: str) -> InputError:
    return InputError(
        f"the part {stored.path!r} of the checkpoint is damaged: {how}.",
        hint="give an empty folder, and the run starts anew.",
    )


def digest(arrays: Any) -> str:
    """Of the content of a named tuple of arrays and numbers."""
    found = hashlib.blake2b(digest_size=16)
    for name, value in arrays._asdict().items():
        array = np.ascontiguousarray(value)
        found.update(f"{name} {array.dtype.str} {np.shape(value)};".encode())
        found.update(array.data)
    return found.hexdigest()


class Engine:
    """Passes in this process. States wait in files, so that memory holds one block at a time."""

    folder: str | None = None  # where states wait between passes; None: in memory

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress

    def reduce(self, step: str, function: Any, merge: Any, parts: Iterable[Any], *shared: Any) -> Any:
        """``merge`` of ``function(part, number, *shared)`` over all parts."""
        return self._merged(merge, self._map(step, function, parts, shared))

    def update(
        self, step: str, function: Any, merge: Any, parts: Iterable[Any], *shared: Any, version: int
    ) -> tuple[list[Any], Any]:
        """New states, and the statistics merged; ``function`` returns both.

        In the folder two versions take turns: the last complete one is there until the next is.
        """
        keep = partial(_keep, function, self.folder, version % 2)
        return self._split(merge, self._map(step, keep, parts, shared))

    def each(self, step: str, function: Any, parts: Iterable[Any], *shared: Any) -> list[Any]:
        """``function(part, number, *shared)`` for all parts."""
        return list(self._map(step, function, parts, shared))

    def one(self, function: Any, part: Any, number: int, *shared: Any) -> Any:
        """``function(part, number, *shared)`` for one part."""
        return _call(function, part, number, shared)

    def scratch(self) -> str | None:
        """A folder for states, which goes when this object does; None where they wait in memory."""
        folder = tempfile.mkdtemp(prefix="consilience-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _map(self, step: str, function: Any, parts: Iterable[Any], shared: tuple[Any, ...]) -> Any:
        total = len(parts) if isinstance(parts, list) else 0
        for number, part in enumerate(parts):
            yield _call(function, part, number, shared)
            if self.progress is not None:
                self.progress(step, number + 1, total)

    def _merged(self, merge: Any, values: Any) -> Any:
        return merged(merge, values)

    def _split(self, merge: Any, pairs: Any) -> tuple[list[Any], Any]:
        states = []

        def statistics() -> Iterator[Any]:
            for state, statistic in pairs:
                states.append(state)
                yield statistic

        found = merged(merge, statistics())
        return states, found


class Cluster(Engine):
    """Passes on the workers of a Dask cluster. States stay in the memory of the workers (Dask spills them to
    disk as it must); a block that a lost worker held is computed again from its source."""

    def __init__(self, client: Any, progress: Progress | None = None) -> None:
        super().__init__(progress)
        self.client = client

    def reduce(self, step: str, function: Any, merge: Any, parts: Iterable[Any], *shared: Any) -> Any:
        with self._sentences():
            return super().reduce(step, function, merge, parts, *shared)

    def update(
        self, step: str, function: Any, merge: Any, parts: Iterable[Any], *shared: Any, version: int
    ) -> tuple[list[Any], Any]:
        with self._sentences():
            return super().update(step, function, merge, parts, *shared, version=version)

    def each(self, step: str, function: Any, parts: Iterable[Any], *shared: Any) -> list[Any]:
        with self._sentences():
            return self._results(self._map(step, function, parts, shared))

    def one(self, function: Any, part: Any, number: int, *shared: Any) -> Any:
        from dask.delayed import delayed

        with self._sentences():
            future = self.client.compute(delayed(_call, pure=False)(function, part, number, shared))
            return self._results([future])[0]

    def scratch(self) -> str | None:
        return None

    def _map(self, step: str, function: Any, parts: Iterable[Any], shared: tuple[Any, ...]) -> Any:
        from dask.delayed import delayed

        parts = list(parts)
        # As a task and not as scattered data: a task can be run again when the worker that had it is gone. It
        # is sent once a pass, so Dask's advice about large graphs does not apply.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
            common = self.client.submit(tuple, shared, pure=False)
        call = delayed(partial(_call, function), pure=False)
        found = self.client.compute([call(part, number, common) for number, part in enumerate(parts)])
        if (progress := self.progress) is not None:
            done, total = count(1), len(parts)
            for future in found:
                future.add_done_callback(lambda _: progress(step, next(done), total))
        return list(found)

    def _split(self, merge: Any, pairs: Any) -> tuple[list[Any], Any]:
        states = self.client.map(itemgetter(0), pairs, pure=False)
        found = self._merged(merge, self.client.map(itemgetter(1), pairs, pure=False))
        # Names of files are kept here: were they lost with a worker, they would be made again from files that
        # the next pass overwrites.
        return (states if self.folder is None else self._results(states)), found

    def _merged(self, merge: Any, values: Any) -> Any:
        # Before the next blocks, and each part is let go when it is handed on: otherwise those of all blocks
        # would be in memory at once.
        values.reverse()
        rest = (values.pop() for _ in range(len(values)))
        last = merged(lambda group: self.client.submit(merge, group, pure=False, priority=10), rest)
        return self._results([last])[0]

    def _results(self, futures: list[Any]) -> list[Any]:
        """What they return; an error where nobody is left to work on them."""
        import dask

        most = float(dask.config.get("consilience.wait-for-workers", WAIT_FOR_WORKERS))
        gathered = self._soon(self.client.gather(futures, asynchronous=True))
        alone_since, warned = None, False
        try:
            while not wait([gathered], _LOOK_EVERY).done:
                if self._has_workers(gathered):
                    alone_since, warned = None, False
                    continue
                alone_since = alone_since or time.monotonic()
                alone = time.monotonic() - alone_since
                if alone > most:
                    self._soon(self.client.cancel(futures, asynchronous=True))
                    raise ClusterError(
                        f"the Dask cluster has had no worker for {alone:.0f} s.",
                        hint="start workers; how long to wait is set by dask.config.set({"
                        "'consilience.wait-for-workers': seconds}).",
                    )
                if alone > _WARN_AFTER and not warned:
                    warned = True
                    warn(
                        f"the Dask cluster has had no worker for {alone:.0f} s; waiting {most:.0f} s in all.",
                        hint="start workers, or look at their logs for why they ended.",
                    )
            return list(gathered.result())
        finally:
            gathered.cancel()

    def _has_workers(self, *gathered: Future[Any]) -> bool:
        """Whether the scheduler says that there are any, or what is gathered came meanwhile."""
        if self.client.status != "running":  # the connection is lost, and with it all that was asked for
            raise self._gone()
        asked = self._soon(self.client.nthreads(asynchronous=True))
        wait([asked, *gathered], _ANSWER_WITHIN, return_when=FIRST_COMPLETED)
        with suppress(OSError):
            return any(one.done() for one in gathered) or (asked.done() and bool(asked.result()))
        return False

    def _soon(self, question: Any) -> Future[Any]:
        """What the client will have found out: its own calls wait without end."""
        return asyncio.run_coroutine_threadsafe(question, self.client.loop.asyncio_loop)

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Errors of the cluster, not of the work, say in a sentence what to do."""
        from distributed import CancelledError, KilledWorker, client

        closed = getattr(client, "ClosedClientError", CancelledError)  # of newer versions
        try:
            yield
        except KilledWorker as error:
            raise ClusterError(
                f"several workers died at the same piece of work: {error}",
                hint="give the workers more memory, or use smaller blocks (block_rows=, chunks).",
            ) from error
        except (CancelledError, closed) as error:
            raise self._gone() from error
        except OSError as error:
            if self._has_workers():
                raise  # of the work itself, such as a file that is not there
            raise self._gone() from error

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler {self.client.scheduler.address!r} is gone.",
            hint="start it again and fit again; with checkpoint= a run of PCE on blocks goes on.",
        )


def _call(function: Any, part: Any, number: int, shared: tuple[Any, ...]) -> Any:
    return function(fetch(part), number, *shared)


def _keep(function: Any, folder: str | None, turn: int, part: Any, number: int, *shared: Any) -> Any:
    state, statistic = function(part, number, *shared)
    return store(state, None if folder is None else f"{folder}/state-{turn}-{number}.npz"), statistic


def engine_for(kind: str, progress: Progress | None = None) -> Engine:
    """The active Dask client where there is one and the blocks can go to it, else this process."""
    distributed = sys.modules.get("distributed")
    if distributed is not None and kind not in ("list", "stream"):
        with suppress(ValueError):  # there is no client
            return Cluster(distributed.default_client(), progress)
    return Engine(progress)
