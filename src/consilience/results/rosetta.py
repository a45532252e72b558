"""What a label of one source is called by another, and what each source calls the clusters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np

from consilience._support.errors import InputError
from consilience._support.optional import optional_import
from consilience._support.shown import Table, as_html
from consilience._support.values import counted, did_you_mean, object_array
from consilience.inference.counts import Tabulated
from consilience.inference.relations import FEW, RELATIONS, SURE, Labels
from consilience.inference.settling import INDEPENDENT
from consilience.io.labels import plain

if TYPE_CHECKING:
    from consilience.results.fusion import Fusion

SIGNS = ("=", "<", ">", "~")
LEGEND = "= the same, < part of it, > consists of, ~ overlaps, ? undecided, - not seen"
_WORDS = {
    "same": "is the same as",
    "finer": "is part of",
    "coarser": "contains",
    "overlapping": "overlaps with",
}
_SHOWN = 12  # lines in a terminal


class Correspondence(NamedTuple):
    """How a label of one source relates to one of another."""

    a: Any
    b: Any
    relation: str  # "same", "finer", "coarser", "overlapping" or "undecided"
    chance: float  # of the relation; of an undecided pair, of the likeliest one
    shared: int  # instances that have both labels
    of_a: int  # instances with the first label that the other source saw
    of_b: int
    through: str  # "instances", or "consensus" where fewer than ten of a label are shared

    @property
    def text(self) -> str:
        """In words."""
        how = "through the consensus" if self.through == "consensus" else f"{self.shared} shared"
        return f"{self.a!r} {_WORDS[self.relation]} {self.b!r} ({self.chance:.2f}, {how})"


@dataclass(frozen=True, repr=False, eq=False)
class Translation(Tabulated):
    """The labels of two sources against each other; ``print`` it for sentences and a table.

    Attributes
    ----------
    first, second : str
        The sources.
    n_shared : int
        Instances that both saw.
    lines : tuple of Correspondence
        Related pairs of labels, the surest first, then undecided ones. Unrelated pairs are not listed.
    n_blind : int
        Undecided pairs of labels that are finer than the clusters.
    dependence : float
        How far the sources repeat each other.
    """

    first: str
    second: str
    n_shared: int
    lines: tuple[Correspondence, ...]
    n_blind: int
    dependence: float

    @property
    def stated(self) -> tuple[Correspondence, ...]:
        """The pairs whose relation is at least .8 sure."""
        return tuple(line for line in self.lines if line.relation != "undecided")

    @property
    def n_undecided(self) -> int:
        """Pairs that may be related."""
        return len(self.lines) - len(self.stated)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the table rests on, and what it does not say."""
        shared = f"{self.first!r} and {self.second!r} share {counted(self.n_shared, 'instance')}"
        said = [f"{shared}; {counted(len(self.stated), 'pair')} of labels can be matched."]
        through = sum(line.through == "consensus" for line in self.stated)
        if through:
            is_are = "is" if through == 1 else "are"
            said.append(
                f"{through} of them {is_are} known through the consensus: fewer than {FEW} instances of a "
                "label are shared."
            )
        if self.n_undecided:
            said.append(f"{counted(self.n_undecided, 'more pair')} may be related: undecided.")
        if self.n_blind:
            said.append(
                "Labels finer than the clusters cannot be matched without shared instances "
                f"({counted(self.n_blind, 'pair')})."
            )
        if self.stated and self.dependence > INDEPENDENT:
            said.append(
                f"The sources repeat each other (dependence {self.dependence:.2f}): where they err in the "
                "same way, what overlaps is called the same."
            )
        return tuple(said)

    def columns(self) -> dict[str, np.ndarray]:
        """A row per pair that is stated or undecided."""
        names, lines = Correspondence._fields, [tuple(line) for line in self.lines]
        found = dict(zip(names, zip(*lines, strict=True), strict=True)) if lines else dict.fromkeys(names, ())
        kinds = {"chance": float, **dict.fromkeys(("shared", "of_a", "of_b"), np.int64)}
        return {
            name: np.array(values, dtype=kinds[name]) if name in kinds else object_array(values)
            for name, values in found.items()
        }

    def table(self, most: int | None = None) -> Table:
        """The stated lines."""
        rows = [
            (str(one.a), _WORDS[one.relation], str(one.b), f"{one.chance:.2f}", str(one.shared), one.through)
            for one in self.stated[:most]
        ]
        left = len(self.stated) - len(rows)
        head = (self.first, "", self.second, "chance", "shared", "through")
        return Table(head if rows else (), rows, (*head[:3], "through"), f"and {left} more" if left else "")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, and the sentences."""
        return {**super().as_dict(), "n_undecided": self.n_undecided, "sentences": list(self.sentences)}

    def __str__(self) -> str:
        table = self.table(_SHOWN)
        return "\n".join([*self.sentences, *(["", *table.lines()] if table.head else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.sentences, self.table())


@dataclass(frozen=True, repr=False, eq=False)
class Rosetta(Tabulated):
    """What each source calls the clusters; ``print`` it for a table.

    Attributes
    ----------
    clusters, sources : tuple of str
        Rows and columns.
    cells : tuple of tuple of str
        ``= gold`` is that label, ``< basic`` is part of it, ``> a, b`` consists of these, ``~ x`` overlaps
        with it, ``?`` is undecided, ``-`` was not seen by the source.
    chances : tuple of tuple of float
        The least chance of what a cell says, at least .8; 0 where it says nothing.
    """

    clusters: tuple[str, ...]
    sources: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    chances: tuple[tuple[float, ...], ...]

    @property
    def n_undecided(self) -> int:
        """Cells that say nothing though the source saw the cluster."""
        return sum(cell == "?" for row in self.cells for cell in row)

    @property
    def sentences(self) -> tuple[str, ...]:
        """How to read it."""
        told = [f"{LEGEND}."]
        if self.n_undecided:
            n = len(self.clusters) * len(self.sources)
            are = "is" if self.n_undecided == 1 else "are"
            told.append(f"{self.n_undecided} of {n} cells {are} undecided: less than {SURE:g} sure.")
        return tuple(told)

    def columns(self) -> dict[str, np.ndarray]:
        """A row per cluster."""
        found = {"cluster": object_array(self.clusters)}
        for source, cells in zip(self.sources, zip(*self.cells, strict=True), strict=True):
            found[f"{source} (source)" if source in found else source] = object_array(cells)
        return found

    def table(self) -> Table:
        """The same as text."""
        rows = [(name, *row) for name, row in zip(self.clusters, self.cells, strict=True)]
        head = ("cluster", *self.sources)
        return Table(head, rows, head)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, and the sentences."""
        return {**super().as_dict(), "n_undecided": self.n_undecided, "sentences": list(self.sentences)}

    def __str__(self) -> str:
        return "\n".join([*self.table().lines(), "", *self.sentences])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.sentences, self.table())


def rosetta(fusion: Fusion) -> Rosetta:
    """What each source calls the clusters."""
    labels, table, names = Labels(fusion.evidence, fusion.rows), fusion.partitions, fusion.names
    used = np.unique(fusion.labels[fusion.labels >= 0]).tolist()
    cells: list[list[tuple[str, float]]] = [[] for _ in used]
    for j, categories in enumerate(table.categories):
        chance, counts = labels.of_clusters(j)
        for place, z in enumerate(used):
            cells[place].append(_cell(chance[z], counts[z], categories))
    return Rosetta(
        clusters=tuple(names[z] for z in used),
        sources=tuple(table.names),
        cells=tuple(tuple(text for text, _ in row) for row in cells),
        chances=tuple(tuple(sure for _, sure in row) for row in cells),
    )


def _cell(chance: np.ndarray, counts: np.ndarray, categories: np.ndarray) -> tuple[str, float]:
    """The strongest relation of a cluster with labels of a source, and how sure it is."""
    if not counts.any():
        return "-", 0.0
    best, sure = chance.argmax(axis=-1), chance.max(axis=-1)
    for relation, sign in enumerate(SIGNS):
        which = np.flatnonzero((best == relation) & (sure >= SURE))
        if len(which):
            which = which[np.argsort(-counts[which], kind="stable")]
            return f"{sign} {', '.join(str(categories[x]) for x in which)}", float(sure[which].min())
    return "?", 0.0


def translate(fusion: Fusion, first: str, second: str) -> Translation:
    """How the labels of two sources correspond."""
    table = fusion.partitions
    for name in (first, second):
        if str(name) not in table.names:
            raise InputError(f"there is no source {name!r}.", hint=did_you_mean(str(name), table.names))
    a, b = table.names.index(str(first)), table.names.index(str(second))
    if a == b:
        raise InputError(f"{first!r} is one source.", hint="name two sources.")
    found = Labels(fusion.evidence, fusion.rows).of_sources(a, b)
    best, sure, few = found.chance.argmax(axis=-1), found.chance.max(axis=-1), found.few
    of_a, of_b = found.shared.sum(axis=1), found.shared.sum(axis=0)

    def lines() -> Iterator[Correspondence]:
        for x, y in np.argwhere((best < len(SIGNS)) | found.blind).tolist():
            stated = sure[x, y] >= SURE and not found.blind[x, y]
            yield Correspondence(
                plain(table.categories[a][x]),
                plain(table.categories[b][y]),
                RELATIONS[best[x, y]] if stated else "undecided",
                round(float(sure[x, y]), 2),
                int(found.shared[x, y]),
                int(of_a[x]),
                int(of_b[y]),
                "consensus" if few[x, y] else "instances",
            )

    ranked = sorted(lines(), key=lambda line: (line.relation == "undecided", -line.chance, -line.shared))
    return Translation(
        first=table.names[a],
        second=table.names[b],
        n_shared=int(found.shared.sum()),
        lines=tuple(ranked),
        n_blind=int(found.blind.sum()),
        dependence=float(fusion.evidence.dependence),
    )


def as_frame(fusion: Fusion, columns: dict[str, np.ndarray]) -> Any:
    """A frame of the kind that was given, or of pandas."""
    if fusion.partitions.backend is None:
        pandas = optional_import(
            "pandas", needed_for="rosetta() of labels that came in no frame", extra="frames"
        )
        return pandas.DataFrame(columns)
    data = {name: values if values.dtype != object else values.tolist() for name, values in columns.items()}
    return nw.from_dict(data, backend=fusion.partitions.backend).to_native()
