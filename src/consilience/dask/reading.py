"""A source of labels read by the workers of a cluster: the same table as in memory, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from consilience.dask.blocks import Blocks, read_piece
from consilience.dask.engine import Engine
from consilience.evidence.builder import Builder
from consilience.evidence.reading import Labels, labels_of, require_ids
from consilience.io.labels import Negative
from consilience.io.pieces import Source


def read_on_workers(
    blocks: Blocks, source: Source, engine: Engine, *, negative: Negative, unobserved: str, most: float
) -> Labels:
    """Distinct label rows by the workers; instances are read again from `source`, which has the same rows."""
    require_ids(source)
    builder = engine.reduce("reading", _read, _merge, blocks.parts, most)
    return labels_of(builder, source, negative, unobserved)


def _read(piece: Any, number: int, most: float) -> Builder:
    builder = Builder(keep="counts", most=most)
    builder.add(read_piece(number, piece))
    return builder.settled()


def _merge(parts: Sequence[Builder]) -> Builder:
    whole = Builder(keep="counts", most=parts[0].most)
    for part in parts:
        whole.merge(part)
    return whole.settled()
