"""A table as a solver reads it, with bases and clusters as they were given, for comparison with oracles."""

import numpy as np

from consilience import Partitions
from consilience.core.canonical import Rows


def distinct_rows(base):
    """The distinct rows of a table, and which of them every instance has."""
    table = Partitions.of(base)
    rows = table.distinct
    return Rows(rows.codes, rows.offsets, rows.counts), table.inverse


def all_rows(base):
    """All rows of a table, each for itself."""
    table = Partitions.of(base)
    return Rows(table.codes, table.offsets, np.ones(len(table.codes), dtype=int)), np.arange(len(table.codes))
