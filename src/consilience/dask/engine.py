"""Passes over blocks: in this process, one block after the other, or on the workers of a Dask cluster.

Both have the same three verbs, and both add up the parts of a pass in the same order, so that they give the
same answer to the last digit.

- ``reduce``: a statistic of every block, merged into one;
- ``update``: a statistic of every block and what the block carries on to the next pass, its state;
- ``each``: something done for every block, such as writing a file.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from consilience._errors import InputError
from consilience._files import whole_file

Progress = Callable[[str, int, int], None]

# So many parts are merged at a time.
_FAN_IN = 8


class Tree:
    """Merges parts as they come, eight consecutive ones at a time, then eight of those, and so on."""

    def __init__(self, merge: Callable[[Sequence[Any]], Any]) -> None:
        self.merge = merge
        self.levels: list[list[Any]] = [[]]

    def add(self, part: Any, level: int = 0) -> None:
        """The next part."""
        if level == len(self.levels):
            self.levels.append([])
        self.levels[level].append(part)
        if len(self.levels[level]) == _FAN_IN:
            group, self.levels[level] = self.levels[level], []
            self.add(self.merge(group), level + 1)

    def result(self) -> Any:
        """All of them merged."""
        level = 0
        while level < len(self.levels) - 1:
            if self.levels[level]:
                group, self.levels[level] = self.levels[level], []
                self.add(group[0] if len(group) == 1 else self.merge(group), level + 1)
            level += 1
        last = self.levels[-1]
        if not last:
            raise InputError("there are no blocks.", hint="give at least one block of rows.")
        return last[0] if len(last) == 1 else self.merge(last)


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


class Serial:
    """Passes in this process. States wait in files, so that memory holds one block at a time."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.progress = progress
        self._folder: str | None = None

    def scratch(self) -> str | None:
        """A folder for states; it goes when this object does."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="consilience-")
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            for parity in range(2):
                os.mkdir(os.path.join(self._folder, f"state-{parity}"))
        return self._folder

    def reduce(self, step: str, function: Any, merge: Any, parts: Iterable[Any], *shared: Any) -> Any:
        """``merge`` of ``function(part, number, *shared)`` over all parts."""
        tree = Tree(merge)
        for number, part in self._counted(step, parts):
            tree.add(function(part, number, *shared))
        return tree.result()

    def update(
        self, step: str, function: Any, merge: Any, parts: Iterable[Any], *shared: Any, stored: bool
    ) -> tuple[list[Any], Any]:
        """New states, and the statistics merged; ``function`` returns both. `stored`: states are in files."""
        tree, states = Tree(merge), []
        for number, part in self._counted(step, parts):
            state, statistic = function(part, number, *shared)
            states.append(state)
            tree.add(statistic)
        return states, tree.result()

    def each(self, step: str, function: Any, parts: Iterable[Any], *shared: Any) -> list[Any]:
        """``function(part, number, *shared)`` for all parts."""
        return [function(part, number, *shared) for number, part in self._counted(step, parts)]

    def one(self, function: Any, part: Any, number: int, *shared: Any) -> Any:
        """``function(part, number, *shared)`` for one part."""
        return function(part, number, *shared)

    def _counted(self, step: str, parts: Iterable[Any]) -> Iterable[tuple[int, Any]]:
        total = len(parts) if isinstance(parts, list) else 0
        for number, part in enumerate(parts):
            yield number, part
            if self.progress is not None:
                self.progress(step, number + 1, total)


class Cluster:
    """Passes on the workers of a Dask cluster. States stay in the memory of the workers (Dask spills them to
    disk as it must); a block that a lost worker held is computed again from its source."""

    def __init__(self, client: Any, progress: Progress | None = None) -> None:
        self.client = client
        self.progress = progress

    def scratch(self) -> str | None:
        """No folder: states stay on the workers."""
        return None

    def reduce(self, step: str, function: Any, merge: Any, parts: Iterable[Any], *shared: Any) -> Any:
        """``merge`` of ``function(part, number, *shared)`` over all parts."""
        return self._merged(merge, self._submit(step, function, parts, shared))

    def update(
        self, step: str, function: Any, merge: Any, parts: Iterable[Any], *shared: Any, stored: bool
    ) -> tuple[list[Any], Any]:
        """New states, and the statistics merged; ``function`` returns both. `stored`: states are in files."""
        pairs = self._submit(step, function, parts, shared)
        states = self.client.map(itemgetter(0), pairs, pure=False)
        merged = self._merged(merge, self.client.map(itemgetter(1), pairs, pure=False))
        # Names of files are kept here: were they lost with a worker, they would be made again from files that
        # the next pass overwrites.
        return (list(self.client.gather(states)) if stored else states), merged

    def each(self, step: str, function: Any, parts: Iterable[Any], *shared: Any) -> list[Any]:
        """``function(part, number, *shared)`` for all parts."""
        return list(self.client.gather(self._submit(step, function, parts, shared)))

    def one(self, function: Any, part: Any, number: int, *shared: Any) -> Any:
        """``function(part, number, *shared)`` for one part."""
        from dask.delayed import delayed

        return self.client.compute(delayed(function, pure=False)(part, number, *shared)).result()

    def _submit(self, step: str, function: Any, parts: Iterable[Any], shared: tuple[Any, ...]) -> list[Any]:
        from dask.delayed import delayed

        parts = list(parts)
        # As a task and not as scattered data: a task can be run again when the worker that had it is gone. It
        # is sent once a pass, so Dask's advice about large graphs does not apply.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
            common = self.client.submit(tuple, shared, pure=False)
        call = delayed(partial(_call, function), pure=False)
        found = self.client.compute([call(part, number, common) for number, part in enumerate(parts)])
        if self.progress is not None:
            done = _Counter(self.progress, step, len(parts))
            for future in found:
                future.add_done_callback(done)
        return list(found)

    def _merged(self, merge: Any, parts: list[Any]) -> Any:
        # Parts are added up in the order and the groups of the other engine. Before the next blocks, and each
        # part is let go when it is handed on: otherwise those of all blocks would be in memory at once.
        tree = Tree(lambda group: self.client.submit(_merge, merge, group, pure=False, priority=10))
        for part in _emptied(parts):
            tree.add(part)
        return tree.result().result()


def _emptied(parts: list[Any]) -> Iterator[Any]:
    """The parts in order, none of which is kept."""
    parts.reverse()
    while parts:
        yield parts.pop()


class _Counter:
    def __init__(self, progress: Progress, step: str, total: int) -> None:
        self.progress, self.step, self.done, self.total = progress, step, 0, total

    def __call__(self, future: Any) -> None:
        self.done += 1
        self.progress(self.step, self.done, self.total)


def _call(function: Any, part: Any, number: int, shared: tuple[Any, ...]) -> Any:
    return function(part, number, *shared)


def _merge(merge: Any, parts: list[Any]) -> Any:
    return merge(parts)


Engine = Serial | Cluster


def engine_for(kind: str, progress: Progress | None = None) -> Engine:
    """The active Dask client where there is one and the blocks can go to it, else this process."""
    distributed = sys.modules.get("distributed")
    if distributed is not None and kind not in ("list", "stream"):
        try:
            return Cluster(distributed.default_client(), progress)
        except ValueError:  # there is no client
            pass
    return Serial(progress)
