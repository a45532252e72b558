"""Every fit of the benchmark, in an order in which any beginning is useful."""

import hashlib
import json
import zlib
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from consilience import consensus, multiview

DRAWS = 20
FEW_DRAWS = 5  # of views, whose methods take seconds, and of classifiers, which are there for the limit only
OTHER_DRAWS = 10  # of label methods that are neither ahead nor what others are compared with
ROWS = 500  # of a larger pool, drawn at random
VIEW_ROWS = 300  # of a larger set with views
BASES = (20, 10, 40)
RATIOS = (0.0, 0.5, 0.9, 0.3, 0.7)
ENDS = (0.0, 0.5, 0.9)  # of them, where every method is fitted
MECHANISMS = ("blocks", "not at random")
FACTORS = (0.5, 2.0)  # of the number of classes, where the number of clusters is wrong

MIXED = ("Caltech20", "IS", "LR", "LS", "MF", "ODR", "PD", "SPF", "Semeion", "USPS", "VS")
# Rules are chosen on the first and reported on the others, and the other way round.
EIGHT = ("Caltech20", "LS", "ODR", "SPF", "Semeion", "USPS", "VS", "IS")
THREE = tuple(name for name in MIXED if name not in EIGHT)
CONSTANT = ("Zhou_Lung", "Zhou_GLIOMA", "RCE_Yale")
AS_PUBLISHED = {f"PCE_pixraw10P_miss{share}": share / 100 for share in (10, 30, 50, 70)}
PLANTED = ("equal", "unequal", "mixed numbers", "few experts")

# Ahead of others, or what others are compared with; the rest is fitted less often.
LEADING = ("DAL", "LWEA", "LWGP", "PCE", "MixtureConsensus", "EAC", "HBGF")
POLISHED = ("LWEA, polished", "DAL, polished", "PCE, polished")
ONE_HOT = "KMeans on one-hot"
# What base labels know at all: classifiers that are told a part of the classes.
CLASSIFIERS = {"classifier, a tenth of the classes": 0.1, "classifier, nine tenths of the classes": 0.9}
SINGLE = (*LEADING, *POLISHED, ONE_HOT)  # what fuse is to be ahead of
LEADERS = ("fuse", *SINGLE)
SLOW = ("CESHL", "M2VEC", "MVEC", "RCE", "RSEC", "SCCBG")  # 2 to 30 processor seconds for 300 rows
SLOW_ROWS = 250  # the most on which these are fitted
OTHERS = tuple(name for name in consensus.__all__ if name not in LEADING + SLOW)
EVERYTHING = (*LEADERS, *OTHERS)

# Two to eight sources, each with its own number of clusters: families in halves of different data sets, and
# the most sources that a set has. Rules are chosen on the first halves and reported on the second.
FEW = {
    "A1": {
        "MSRCv1_5view": 5,
        "BBC4view": 4,
        "WebKB_Cornell": 4,
        "Reuters1200": 5,
        "ProteinFold12": 12,
        "3Sources169": 3,
        "Movies617": 2,
    },
    "A2": {
        "Handwritten6": 6,
        "NGs500": 3,
        "BBCSport544": 2,
        "Prokaryotic551": 3,
        "LandUse21": 3,
        "MNIST4": 3,
        "Wikipedia2866": 2,
    },
    "B1": {"few classes": 8, "many classes": 8, "unequal classes": 8},
    "B2": {"shared confusions": 8, "useless sources": 8, "confused and useless": 8},
    "C1": {"PenDigits": 8, "UMIST": 8, "jaffe": 8, "tr11": 8, "Isolet1560": 8, "k1b": 8},
    "C2": {
        "Handwritten6": 8,
        "NGs500": 8,
        "BBCSport544": 8,
        "MNIST4": 8,
        "LandUse21": 8,
        "Prokaryotic551": 8,
    },
    "D1": {"zoo": 16, "penguins": 6, "glass": 9, "wine": 13, "Cars93": 23, "pima2": 8},
    "D2": {"breastcancer": 9, "iris": 4, "oils": 7, "vehicle": 18, "digits": 64, "credit_data": 13},
}
FEW_PART = "few sources"
FEW_ROWS = 500
FEW_TABLES = 24  # of a family, by draws of its sets in turn
FEW_OTHER_K = 12  # of these, also with half and twice the number of clusters
FEW_MISSING = (0.0, 0.3, 0.15)  # in turn: each source lacks up to twice this share of the instances
VOTE = "majority vote"
FEW_METHODS = (
    "fuse",
    "DAL",
    "DAL, polished",
    "LWEA",
    "LWEA, polished",
    "LWGP",
    "LWGP, polished",
    "PCE",
    "PCE, polished",
    "HBGF",
    "HBGF, polished",
    "MixtureConsensus",
    "KCC",
    "MCLA",
    "EAC",
    ONE_HOT,
    VOTE,
)

VIEWS = (
    "3Sources416_partial",
    "MSRCv1_5view",
    "BBCSport544",
    "NGs500",
    "WebKB_Cornell",
    "WebKB_Texas",
    "3Sources169",
    "Prokaryotic551",
    "Handwritten6",
    "BBC4view",
    "WebKB1051",
    "Reuters1200",
    "BDGP2500_2view",
    "MNIST4",
    "Wikipedia2866",
    "Movies617",
    "LandUse21",
    "ProteinFold12",  # twelve views, 27 classes: the slowest
)
NATURAL = ("3Sources416_partial",)  # incomplete as it is
VIEW_GAPS = (("per_view", 0.3), ("some_lost", 0.7), ("per_view", 0.7), ("some_lost", 0.3))
FUSED_VIEWS, MERGED_VIEWS = "fuse_views", 'fuse_views, method="labels"'
VIEW_METHODS = (FUSED_VIEWS, MERGED_VIEWS, *(name for name in multiview.__all__ if name != "PSE"))
TWO_VIEWS = ("PVC", "IMG")  # take no more
# Under the protocol of papers: set, views, ratios.
PUBLISHED_SETS = {
    "3Sources416_partial": (None, (0.0,)),
    "Handwritten6": (None, (0.1, 0.3, 0.5, 0.7)),
    "LandUse21": ((1, 2), (0.5,)),
    "MSRCv1_5view": (None, (0.1, 0.3, 0.5, 0.7, 0.9)),
    "NGs500": (None, (0.1, 0.3, 0.5, 0.7, 0.9)),
    "ProteinFold12": (None, (0.1, 0.3, 0.5, 0.7, 0.9)),
    "BDGP2500_2view": (None, (0.1, 0.3, 0.5, 0.7, 0.9)),
}


class Table(NamedTuple):
    """What a method is given, of which there is one for each draw."""

    part: str  # "labels", "few sources", "views" or "published"
    group: str  # of data sets
    data: str
    mechanism: str  # or protocol
    missing: float
    bases: int  # 0 for views
    factor: float  # of the number of classes: what the method is told
    rows: int  # the most; 0 is all
    draw: int

    @property
    def words(self) -> set[str]:
        """By which it may be asked for."""
        return {self.part, self.group, self.data, self.mechanism, f"k x {self.factor:g}"}


class Cell(NamedTuple):
    """One fit."""

    table: Table
    method: str

    @property
    def digest(self) -> str:
        """Says which fit it is, and nothing else."""
        return hashlib.sha256(json.dumps([*self.table, self.method]).encode()).hexdigest()[:20]


def cells(draws: int = DRAWS, rows: int = ROWS, only: tuple[str, ...] = ()) -> Iterator[Cell]:
    """In turns: a draw of the leaders, a first look at everything, the next draw of the leaders, the rest."""
    turns = [(2 * draw + behind, draw, of) for draw in range(draws) for of, behind in _BEHIND.items()]
    for _, draw, of in sorted(turns, key=lambda turn: turn[:2]):
        yield from (cell for cell in of(draw, rows) if not only or cell.table.words & set(only))


def _leaders(draw: int, rows: int) -> Iterator[Cell]:
    for missing, bases, data in product(RATIOS, BASES, MIXED):
        table = Table("labels", "mixed", data, "entries", missing, bases, 1.0, rows, draw)
        yield from (Cell(table, method) for method in LEADERS)
        if draw < FEW_DRAWS:
            yield from (Cell(table, method) for method in CLASSIFIERS)


def _first_look(draw: int, rows: int) -> Iterator[Cell]:
    for mechanism, missing, data in product(MECHANISMS, (0.5, 0.9), MIXED):
        table = Table("labels", "mixed", data, mechanism, missing, 20, 1.0, rows, draw)
        yield from (Cell(table, method) for method in LEADERS)
    yield from _others(draw, rows, (0.5,))
    yield from _views(draw, *VIEW_GAPS[0])
    for table in _small_pools(draw, rows):
        yield from (Cell(table, method) for method in _all(draw))


def _rest(draw: int, rows: int) -> Iterator[Cell]:
    yield from _views(draw, *VIEW_GAPS[1])
    for table in _small_pools(draw, rows):
        if table.missing == 0.5 and draw < OTHER_DRAWS:
            yield from (Cell(table, method) for method in SLOW)
    for missing, factor, data in product((0.5, 0.0, 0.9), FACTORS, MIXED):
        table = Table("labels", "mixed", data, "entries", missing, 20, factor, rows, draw)
        yield from (Cell(table, method) for method in LEADERS)
    for missing, data in product(RATIOS, PLANTED):
        table = Table("labels", "planted", data, "entries", missing, 20, 1.0, rows, draw)
        yield from (Cell(table, method) for method in (_all(draw) if missing in ENDS else LEADERS))
    yield from _others(draw, rows, (0.0, 0.9))
    for data, (_, ratios) in PUBLISHED_SETS.items():
        for missing in ratios:
            protocol = "natural" if data in NATURAL else "some_lost"
            yield Cell(Table("published", "views", data, protocol, missing, 0, 1.0, 0, draw), FUSED_VIEWS)
    for gaps in VIEW_GAPS[2:]:
        yield from _views(draw, *gaps)


def _few(draw: int, rows: int) -> Iterator[Cell]:
    for group in FEW:
        for table in few_tables(group, draw, rows):
            yield from (Cell(table, method) for method in FEW_METHODS)


def few_tables(group: str, draw: int, rows: int = FEW_ROWS) -> Iterator[Table]:
    """Tables of one draw of a family; how many sources there are follows from set and draw."""
    most_rows = min(rows, FEW_ROWS) if rows else FEW_ROWS
    n_sets = len(FEW[group])
    for place, (data, most) in enumerate(FEW[group].items()):
        number = n_sets * draw + place
        drawn = zlib.crc32(f"{group} {data} {draw}".encode())
        sources = min(most, 4 + drawn % 5 if group.startswith("D") else 2 + drawn % 7)
        missing = FEW_MISSING[(place + draw) % len(FEW_MISSING)]
        for factor in (1.0, *FACTORS):
            if number < (FEW_TABLES if factor == 1.0 else FEW_OTHER_K):
                yield Table(FEW_PART, group, data, "own shares", missing, sources, factor, most_rows, draw)


_BEHIND = {_leaders: 0, _first_look: 1, _few: 1, _rest: 3}  # in half turns


def _all(draw: int) -> tuple[str, ...]:
    return EVERYTHING if draw < OTHER_DRAWS else LEADERS


def _others(draw: int, rows: int, ratios: tuple[float, ...]) -> Iterator[Cell]:
    for missing, data in product(ratios if draw < OTHER_DRAWS else (), MIXED):
        table = Table("labels", "mixed", data, "entries", missing, 20, 1.0, rows, draw)
        yield from (Cell(table, method) for method in OTHERS)


def _small_pools(draw: int, rows: int) -> Iterator[Table]:
    for data, missing in product(CONSTANT, ENDS):
        yield Table("labels", "constant", data, "entries", missing, 20, 1.0, rows, draw)
    for data, missing in AS_PUBLISHED.items():
        if draw < 10:  # as many runs as there are
            yield Table("labels", "as published", data, "as published", missing, 10, 1.0, 0, draw)


def _views(draw: int, protocol: str, missing: float) -> Iterator[Cell]:
    for data in VIEWS if draw < FEW_DRAWS else ():
        gaps = (protocol, missing)
        if data in NATURAL:
            if gaps != VIEW_GAPS[0]:
                continue
            gaps = ("natural", 0.0)
        table = Table("views", "views", data, *gaps, 0, 1.0, VIEW_ROWS, draw)
        yield from (Cell(table, method) for method in VIEW_METHODS)
