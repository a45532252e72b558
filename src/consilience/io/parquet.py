"""Parquet files, as tables of Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pa_parquet

from consilience._support.errors import Hint, UsageError
from consilience.io.marks import marks_of, without_marks
from consilience.io.tables import Batches, How, Kind, in_words, refuse_pipe, refuse_same_names

SUFFIXES = (".parquet", ".pq")
Writer = pa_parquet.ParquetWriter


class TypedTable:
    """A file that knows the types of its columns and its missing values; where it says otherwise, its own
    words for missing are those that were asked for only."""

    text = False
    format = ""

    def __init__(self, path: str, how: How) -> None:
        self.path = path
        self._marks = marks_of(how.missing)
        refuse_pipe(path)
        self.schema: pa.Schema = pa_dataset.dataset(path, format=self.format).schema
        self.names: list[str] = self.schema.names
        refuse_same_names(path, self.names)

    def _options(self, coded: Sequence[str]) -> Any:
        """The format, and which columns come as dictionaries."""
        return self.format

    def batches(self, wanted: Sequence[str], kinds: Mapping[str, Kind]) -> Batches:
        """Some columns as the file has them."""
        self._refuse_nested(wanted)
        coded = [
            name for name in wanted if kinds.get(name) == "coded" and _is_text(self.schema.field(name).type)
        ]
        data = pa_dataset.dataset(self.path, format=self._options(coded))
        for batch in data.to_batches(columns=list(wanted), batch_readahead=2, fragment_readahead=1):
            batch.validate(full=True)  # offsets of a damaged file may point anywhere
            if self._marks:
                columns = [without_marks(values, self._marks) for values in batch.columns]
                batch = pa.record_batch(columns, names=batch.schema.names)
            yield batch

    def places(self, rows: Sequence[int]) -> str:
        """Rows, counted from 0, since no editor shows them."""
        return in_words("row", rows, self.path)

    def _refuse_nested(self, wanted: Sequence[str]) -> None:
        for name in wanted:
            kind = self.schema.field(name).type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
                raise UsageError(
                    f"column {name!r} of {self.path} holds values of type {kind}, not single values.",
                    hint=Hint("choose other columns with {columns=}, or unpack the lists."),
                )


class ParquetTable(TypedTable):
    """A Parquet file."""

    format = "parquet"

    def _options(self, coded: Sequence[str]) -> Any:
        return pa_dataset.ParquetFileFormat(dictionary_columns=set(coded))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind))
