"""Passes over blocks: in this process, one block after the other, or on the workers of a Dask cluster.

Both have the same three verbs, and both add up the parts of a pass in the same order, so that they give the
same answer to the last digit.

- ``reduce``: a statistic of every block, merged into one;
- ``update``: a statistic of every block and what the block carries on to the next pass, its state;
- ``each``: something done for every block, such as writing a file.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, count, islice
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from consilience._errors import InputError
from consilience._files import whole_file

Progress = Callable[[str, int, int], None]

# So many parts are merged at a time.
_FAN_IN = 8


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
    """State of a block in a file, and what kind of state it is."""

    path: str
    kind: Any


def store(state: Any, path: str | None) -> Any:
    """The state itself, or a file that holds it; the file appears complete or not at all."""
    if path is None:
        return state
    with whole_file(path) as file:
        np.savez(file, **state._asdict())
    return Stored(path, type(state))


def fetch(state: Any) -> Any:
    """The state of a block, from wherever it is."""
    if not isinstance(state, Stored):
        return state
    with np.load(state.path) as arrays:
        return state.kind(**arrays)


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

    def each(self, step: str, function: Any, parts: Iterable[Any], *shared: Any) -> list[Any]:
        return list(self.client.gather(self._map(step, function, parts, shared)))

    def one(self, function: Any, part: Any, number: int, *shared: Any) -> Any:
        from dask.delayed import delayed

        return self.client.compute(delayed(_call, pure=False)(function, part, number, shared)).result()

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
        return (states if self.folder is None else list(self.client.gather(states))), found

    def _merged(self, merge: Any, values: Any) -> Any:
        # Before the next blocks, and each part is let go when it is handed on: otherwise those of all blocks
        # would be in memory at once.
        values.reverse()
        rest = (values.pop() for _ in range(len(values)))
        return merged(lambda group: self.client.submit(merge, group, pure=False, priority=10), rest).result()


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
