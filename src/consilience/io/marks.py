"""What says missing in a file. Which text is a number is decided in `consilience.io.labels`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # frames and arrays are read without it
    import pyarrow as pa

# What a text file may say where there is no label.
MISSING_TEXTS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
# What a cell of features may say, in small letters: "none" and "unknown" are answers there. The rest are what
# programs write, errors of Excel among it.
CELL_MARKS = frozenset({"", "na", "n/a", "n.a.", "nan", "nat", "null", "<na>", "?", ".", "-", "--"})
CELL_MARKS |= {
    "\N{EN DASH}",
    "\N{EM DASH}",
    "#n/a",
    "#div/0!",
    "#name?",
    "#null!",
    "#num!",
    "#ref!",
    "#value!",
}
# Cells that only seem to hold something, for readers that decide by a list; `without_blanks` knows them all.
_BLANKS = ("\t", "\N{NO-BREAK SPACE}", *(" " * n for n in range(1, 65)))


def null_texts(missing: Sequence[str]) -> list[str]:
    """Cells that say nothing; where an empty one does, one of blanks does too."""
    return [*missing, *(_BLANKS if "" in missing else ())]


def marks_of(missing: Sequence[str]) -> tuple[str, ...]:
    """Text that says missing in files that know missing values themselves: only what was asked for."""
    return () if tuple(missing) == MISSING_TEXTS else tuple(missing)


def marks_of_cells(missing: Sequence[str]) -> tuple[str, ...]:
    """Text that says missing in cells of features, before their columns are read."""
    return ("",) if tuple(missing) == MISSING_TEXTS else tuple(missing)


def without_blanks(values: pa.Array) -> pa.Array:
    """Text in which cells of white space of any length and kind are missing."""
    import pyarrow.compute as pc

    return _masked(values, pc.utf8_is_space)


def without_marks(values: pa.Array, marks: Sequence[str]) -> pa.Array:
    """Text in which some texts are missing; other arrays as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return _masked(values, lambda texts: pc.is_in(texts, value_set=pa.array(marks, texts.type)))


def _masked(values: pa.Array, blank: Any) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = pa.types.is_dictionary(values.type)
    texts = values.dictionary if coded else values
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        return values
    says_nothing = blank(texts)
    if not pc.any(says_nothing).as_py():
        return values
    if not coded:
        return pc.if_else(says_nothing, None, texts)
    places = pc.if_else(says_nothing.take(values.indices), None, values.indices)
    return pa.DictionaryArray.from_arrays(places, texts)
