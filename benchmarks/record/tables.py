"""What a method is given: classes and base labels, or views, with gaps; all of it follows from the cell."""

import zlib
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from benchmarks.record import few
from benchmarks.record.design import FEW_PART, PUBLISHED_SETS, Table
from consilience import Partitions, datasets
from consilience._support.errors import InputError
from consilience.missing import drop_labels, drop_views

BLOCKS = 50  # of instances: a base clustering sees a block or does not
ATTEMPTS = 200  # to find a pattern that `Partitions` takes and in which base clusterings are linked
MIXTURE_OF_SIZES = 0.7  # each planted cluster is so much smaller than the one before it


class Given(NamedTuple):
    """Classes, number of clusters to ask for, and labels or views with a mask."""

    y: np.ndarray
    n_clusters: int
    seed: int  # of the gaps
    labels: Partitions | None = None
    views: dict[str, Any] | None = None
    mask: np.ndarray | None = None


def seed_of(*what: Any) -> int:
    """The same number for the same words and numbers, in every process."""
    return zlib.crc32(repr(what).encode())


def make(table: Table) -> Given:
    """The same for every method."""
    return _views(table) if table.part in ("views", "published") else _labels(table)


def _labels(table: Table) -> Given:
    if table.part == FEW_PART:
        seed = seed_of(*table[:6], table.draw)
        y, base = few.drawn(table, np.random.default_rng(seed))
        y = np.unique(y, return_inverse=True)[1]
        return Given(y, wanted(y, table.factor), seed, labels=Partitions.of(base))
    rng = np.random.default_rng(seed_of(table.data, table.draw))
    y, base = _base(table, rng)
    seed = seed_of(*table[2:6], table.draw)
    if table.missing and table.mechanism != "as published":
        base, seed = with_gaps(base, table.mechanism, table.missing, seed)
    known = Partitions.of(base)
    y = np.unique(y, return_inverse=True)[1]
    return Given(y, wanted(y, table.factor), seed, labels=known)


def wanted(y: np.ndarray, factor: float) -> int:
    """The number of clusters that a method is told, at least two."""
    return max(2, round(factor * len(np.unique(y))))


def _base(table: Table, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    if table.group == "planted":
        return planted(table.data, table.rows or 1000, table.bases, rng)
    pool = _loaded(f"pool_LWEA_{table.data}" if table.group == "mixed" else f"pool_{table.data}")
    n, m = pool.labels.shape
    if table.group == "as published":  # run r has these columns; who is in none of them is left out
        base = pool.labels[:, table.bases * table.draw : table.bases * (table.draw + 1)]
        seen = (base >= 0).any(axis=1)
        return pool.y[seen], base[seen]
    columns = rng.permutation(m)[: table.bases]  # those of ten are among those of twenty
    rows = np.sort(rng.permutation(n)[: table.rows or n])
    return pool.y[rows], pool.labels[np.ix_(rows, columns)]


def with_gaps(base: np.ndarray, mechanism: str, missing: float, seed: int) -> tuple[np.ndarray, int]:
    """Labels removed so that base clusterings stay linked, and the seed that did it.

    "Entries" go on their own. In "blocks", instances are dealt into groups at random, and a base clustering
    lacks a group as a whole. "Not at random" means that some clusters of a base clustering are seen less than
    others. An instance keeps a label in any case.
    """
    for attempt in range(seed, seed + ATTEMPTS):
        if mechanism == "blocks":
            rng = np.random.default_rng(attempt)
            block = rng.permutation(len(base)) % BLOCKS
            shape = min(BLOCKS, len(base)), base.shape[1]
            seen = (
                drop_labels(np.zeros(shape, dtype=int), missing, mechanism="mcar", random_state=attempt) >= 0
            )
            gaps = np.where(seen[block], base, -1)
        else:
            name: Any = {"entries": "mcar", "not at random": "mnar"}[mechanism]
            gaps = drop_labels(base, missing, mechanism=name, random_state=attempt)
        with suppress(InputError):  # a base clustering may put each of the few that it saw apart
            if len(Partitions.of(gaps).base_groups) == 1:
                return gaps, attempt
    raise ValueError(f"{missing:.0%} missing by {mechanism} leaves {base.shape[1]} bases in separate groups.")


def planted(family: str, n: int, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Classes and base labels of a family.

    "equal": eight clusters, every base has them, 40 % of its labels are drawn at random. "unequal": the same
    with sizes that fall by 30 % each. "mixed numbers": a base merges clusters into two to eight or splits
    them into parts, 20 % at random. "few experts": a quarter of the bases has 20 % at random, others 80 %.
    """
    k = 8
    sizes = MIXTURE_OF_SIZES ** np.arange(k) if family == "unequal" else np.ones(k)
    y = rng.choice(k, n, p=sizes / sizes.sum())
    y[:k] = np.arange(k)
    part = rng.integers(0, 3, n)  # clusters have parts that all bases know
    columns = []
    for j in range(m):
        noise = {"mixed numbers": 0.2, "few experts": 0.2 if j < -(-m // 4) else 0.8}.get(family, 0.4)
        column = y.copy()
        if family == "mixed numbers":
            n_parts = int(rng.integers(1, 4))
            merged = rng.integers(0, int(rng.integers(2, k + 1)), k)
            column = merged[y] if rng.random() < 0.5 else y * n_parts + part % n_parts
        wrong = rng.random(n) < noise
        column[wrong] = rng.permutation(column)[wrong]
        columns.append(column)
    return y, np.column_stack(columns)


def _views(table: Table) -> Given:
    data = _loaded(f"mv_{table.data}")
    tables = dict(zip(data.view_names, data.views, strict=True))
    chosen = PUBLISHED_SETS[table.data][0] if table.part == "published" else None
    if chosen is not None:
        tables = {name: view for v, (name, view) in enumerate(tables.items()) if v in chosen}
    y = np.unique(data.y, return_inverse=True)[1]
    rng = np.random.default_rng(seed_of(table.data, table.draw))
    rows = np.sort(rng.permutation(len(y))[: table.rows or len(y)])
    seed = seed_of(table.data, table.mechanism, table.missing, table.draw)
    if table.mechanism == "natural":
        mask = data.observed[rows]
    else:
        shape = len(rows), len(tables)
        protocol = cast(Any, table.mechanism)
        mask = drop_views(shape, table.missing, protocol=protocol, random_state=seed)
    if connected_components(mask.T.astype(int) @ mask)[0] > 1:  # two views that lack 70 % share nobody
        raise ValueError(
            f"{table.missing:.0%} of each view's rows missing leaves views with nobody in common."
        )
    kept = {
        name: sp.csr_array(view[rows]) if sp.issparse(view) else view[rows] for name, view in tables.items()
    }
    y = np.unique(y[rows], return_inverse=True)[1]
    return Given(y, wanted(y, table.factor), seed, views=kept, mask=mask)


@lru_cache(maxsize=3)
def _loaded(name: str) -> Any:
    return datasets.load(name)
