"""The page as a list of sections, in the order in which a reader asks: what is it, who is doubtful, why.

A section is a folder. Its module has

- ``TITLE``, the heading;
- ``Result``, a dataclass of plain values: the keys that it adds to every result of a summary, each with a
  default that says "not known"; and ``of(fusion, job)``, which makes one, or None where there is nothing to
  say, as of labels where views were clustered;
- if it needs them, ``Table`` and ``of_table(partitions)``: what it says of a table of labels, once for all
  results of that table; ``Page`` and ``of_page(job)``: what it says of all results together;
- ``SIZES``, the things whose number lists depend on, and where the number is found (see `form.Per`).

Beside it lie ``result.html``, shown once for each result, or ``once.html``, shown once, or both, and where
there is something to draw or to style, ``page.js`` and ``page.css``. A section is on the page if one of its
keys says more than its default.
"""

from types import ModuleType

from consilience.report.sections import (
    answer,
    changes,
    clusters,
    compare,
    counts,
    doubtful,
    levels,
    method,
    missing,
    profile,
    rosetta,
    sources,
    stability,
    tables,
)

SECTIONS: tuple[ModuleType, ...] = (
    answer,
    clusters,
    rosetta,
    doubtful,
    changes,
    profile,
    missing,
    sources,
    tables,
    stability,
    counts,
    levels,
    compare,
    method,
)
