"""What every reader gives and the builder takes: a table as pieces of rows, each column as codes.

However a table comes (CSV, Excel, Parquet, Arrow, a frame, an array, a dict, dask), it is read as a
`Source`: something with columns that can be gone through again and again, a `Piece` at a time. What a label
means, which tables are refused and what is said about them is decided later, in one place
(:mod:`consilience.evidence.builder`), from the codes of the pieces and the few values that they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np


class Coded(NamedTuple):
    """A column as numbers and the values they stand for; -1 is missing."""

    codes: np.ndarray
    values: Any  # a sequence or array; text of a text file as it stands there; Python's values of all else
    text: bool = False  # whether they are text that may say numbers, where the source does not say so for all


class Piece(NamedTuple):
    """Some consecutive rows of a source."""

    columns: Mapping[str, Coded]
    ids: Any  # a NumPy or Arrow array in the form of `consilience.io.ids`, or None
    n_rows: int
    first: int = 0  # the number of its first row within its source


class Source(Protocol):
    """A table of labels that can be gone through again."""

    @property
    def name(self) -> str:
        """Of the file without its suffix, of the sheet, or the key of a dict."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Of labels: the column of ids is not among them."""

    @property
    def id_name(self) -> str | None:
        """The column of ids."""

    @property
    def text(self) -> bool:
        """Whether its labels are text that may say numbers, as in CSV and Excel."""

    def pieces(self) -> Iterator[Piece]:
        """All rows in their order."""

    def ids(self) -> Iterator[Any]:
        """The ids alone, in the same pieces; nothing where there are none."""

    def where(self, row: int) -> str:
        """The place of a row in words, such as "line 17 of banks.csv"; it may read the file again."""
