"""A source of labels read by the workers of a cluster: the same table as in memory, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from consilience.dask.blocks import Blocks, load, read_piece, reading
from consilience.dask.engine import Engine
from consilience.evidence.builder import Builder
from consilience.evidence.reading import Labels, labels_of
from consilience.io import ids as _ids
from consilience.io.labels import Negative
from consilience.io.pieces import Source


class _Part(NamedTuple):
    """What a worker read."""

    builder: Builder
    keys: list[np.ndarray]  # of ids, where there are any


def read_on_workers(
    blocks: Blocks, source: Source, engine: Engine, *, negative: Negative, unobserved: str, most: float
) -> Labels:
    """Distinct label rows by the workers; instances are read again from `source`, which has the same rows."""
    id_name = source.id_name
    found = engine.reduce("reading", _read, _merge, blocks.parts, most, id_name)
    if id_name is not None:
        _ids.require_distinct_keys(source.name, found.keys, source.ids)
    return labels_of(found.builder, source, negative, unobserved)


def _read(piece: Any, number: int, most: float, id_name: str | None) -> _Part:
    builder = Builder(keep="counts", most=most)
    builder.add(read_piece(number, piece))
    keys = []
    if id_name is not None:
        column = reading(number, piece, lambda: load(piece, (id_name,))).column(0)
        keys = [_ids.keys_of(part) for part in column.chunks]
    return _Part(builder.settled(), keys)


def _merge(parts: Sequence[_Part]) -> _Part:
    whole = Builder(keep="counts", most=parts[0].builder.most)
    for part in parts:
        whole.merge(part.builder)
    return _Part(whole.settled(), [key for part in parts for key in part.keys])
