"""Arrow (Feather) files, as tables of Arrow."""

from __future__ import annotations

import pyarrow.ipc as pa_ipc

from consilience.io.parquet import TypedTable

SUFFIXES = (".arrow", ".feather", ".ipc")
Writer = pa_ipc.new_file


class ArrowTable(TypedTable):
    """An Arrow file."""

    format = "arrow"
