"""Whatever comes in as labels: the same table in every container, or one sentence with a hint."""

import datetime as dt
import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from consilience import Partitions, fuse
from tests.properties.sentences import ours

MISSING = -1


@st.composite
def tables(draw, max_rows=12, max_bases=5):
    """Codes with gaps; every row has a label."""
    shape = draw(st.integers(1, max_rows)), draw(st.integers(1, max_bases))
    cells = st.integers(MISSING, draw(st.integers(0, 4)))
    table = np.array(draw(st.lists(cells, min_size=math.prod(shape), max_size=math.prod(shape)))).reshape(
        shape
    )
    table[(table < 0).all(axis=1), 0] = 0
    return table


def _names(table, name):
    return [[None if code < 0 else name(code) for code in row] for row in table.tolist()]


def _columns(table, name):
    return {f"b{j}": column for j, column in enumerate(map(list, zip(*_names(table, name), strict=True)))}


def word(code):
    return f"w{code}"


CONTAINERS = {
    "int8": lambda t: t.astype(np.int8),
    "int64 by columns": lambda t: np.asfortranarray(t),
    "not in one piece": lambda t: np.repeat(t, 2, axis=0)[::2],
    "read-only": lambda t: (t.setflags(write=False), t)[1],
    "float": lambda t: np.where(t < 0, np.nan, t).astype(float),
    "float16": lambda t: np.where(t < 0, np.nan, t).astype(np.float16),
    "objects": lambda t: np.array(_names(t, int), dtype=object),
    "words": lambda t: np.array(_names(t, word), dtype=object),
    "text": lambda t: np.array([[word(c) if c >= 0 else "nan" for c in row] for row in t]),
    "masked": lambda t: np.ma.masked_array(np.abs(t), mask=t < 0),
    "lists": lambda t: _names(t, int),
    "tuples": lambda t: tuple(map(tuple, _names(t, word))),
    "iterator": lambda t: iter(_names(t, int)),
    "decimals": lambda t: _names(t, Decimal),
    "fractions": lambda t: _names(t, Fraction),
    "dates": lambda t: _names(t, lambda c: dt.date(2020, 1, 1 + int(c))),
    "dict": lambda t: _columns(t, word),
    "mappings": lambda t: {name: dict(enumerate(column)) for name, column in _columns(t, int).items()},
    "pandas": lambda t: pd.DataFrame(_columns(t, word)),
    "pandas Int64": lambda t: pd.DataFrame(_columns(t, int)).astype("Int64"),
    "pandas categories": lambda t: pd.DataFrame(_columns(t, word)).astype("category"),
    "pandas series": lambda t: [pd.Series(column, name=name) for name, column in _columns(t, word).items()],
    "polars": lambda t: pl.DataFrame(_columns(t, word), strict=False),
    "polars Int128": lambda t: pl.DataFrame(_columns(t, int)).cast(pl.Int128),
    "polars UInt8": lambda t: pl.DataFrame(_columns(t, int)).cast(pl.UInt8),
    "polars categories": lambda t: (
        pl.DataFrame(_columns(t, word), strict=False).cast(pl.String).cast(pl.Categorical)
    ),
    "arrow": lambda t: pa.table(
        {name: pa.array(column, pa.int32()) for name, column in _columns(t, int).items()}
    ),
    "arrow dictionary": lambda t: pa.table(
        {
            name: pa.array(column, pa.string()).dictionary_encode()
            for name, column in _columns(t, word).items()
        }
    ),
}


def same_partition(one, other):
    """Whether two columns are missing alike and group alike."""
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return (
        len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
        and ((one < 0) == (other < 0)).all()
    )


@given(table=tables(), kind=st.sampled_from(sorted(CONTAINERS)))
def test_every_container_is_the_same_table(table, kind):
    container = CONTAINERS[kind](table.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Partitions.of(container)
        kept = [j for j in range(table.shape[1]) if (table[:, j] >= 0).any()]
        assert found.columns == tuple(kept)
        assert found.codes.shape == (len(table), len(kept))
        for code, j in zip(found.codes.T, kept, strict=True):
            assert same_partition(code, table[:, j])
        again = found.decode(found.codes)
        assert_array_equal(Partitions.of(again).codes, found.codes)


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.decimals(),
    st.fractions(),
    st.complex_numbers(),
    st.dates(),
    st.datetimes(),
    st.timedeltas(),
    st.just(pd.NA),
    st.just(np.datetime64("NaT")),
    st.just(np.float32("nan")),
    st.just(()),
    st.just([]),
    st.tuples(st.integers(0, 2)),
    st.frozensets(st.integers(0, 2), max_size=2),
    st.just(object()),
)
anything = st.one_of(
    values,
    st.lists(values, max_size=4),
    st.lists(st.lists(values, max_size=3), max_size=5),
    st.lists(st.tuples(values, values), max_size=5),
    st.dictionaries(
        st.one_of(st.text(max_size=2), st.integers(0, 3)), st.lists(values, max_size=4), max_size=3
    ),
    st.dictionaries(st.text(max_size=2), st.dictionaries(st.integers(0, 4), values, max_size=4), max_size=3),
    st.lists(st.lists(values, min_size=2, max_size=2), min_size=1, max_size=5).map(
        lambda rows: np.array([[*row, None] for row in rows], dtype=object)[:, :-1]
    ),
)


@given(
    labels=anything,
    negative=st.sampled_from(["missing", "noise"]),
    unobserved=st.sampled_from(["error", "keep"]),
)
def test_anything_is_a_table_or_a_sentence(labels, negative, unobserved):
    before = repr(labels)
    with ours():
        table = Partitions.of(labels, negative=negative, unobserved=unobserved)
        assert table.codes.min() >= MISSING
        assert (table.codes.max(axis=0) + 1 == table.n_clusters_per_partition).all()
    assert repr(labels) == before


@settings(max_examples=settings().max_examples // 5)
@given(table=tables(max_rows=14), k=st.integers(1, 4), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_one_label_a_row_whatever_the_order_and_the_names(table, k, seed, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ours() as outcome:
            fusion = fuse(table, min(k, len(table)), random_state=seed)
            fusion.confidence  # noqa: B018 - computed when it is asked for
        if outcome.error is not None:
            return
        assert fusion.labels.shape == (len(table),)
        assert set(fusion.labels) == set(range(fusion.n_clusters))
        assert ((fusion.confidence >= 0) & (fusion.confidence <= 1)).all()
        order = np.array(data.draw(st.permutations(range(len(table)))))
        bases = np.array(data.draw(st.permutations(range(table.shape[1]))))
        other = np.where(table < 0, MISSING, 10 - table)[order][:, bases]
        again = fuse(other, min(k, len(table)), random_state=seed)
        assert again.method == fusion.method
        assert same_partition(again.labels, fusion.labels[order])
        assert_allclose(again.confidence, fusion.confidence[order], atol=1e-9)


# Fast ones: what is asked here is asked of every method by tests/test_invariance.py, on one table.
SOLVERS = ["DAL", "EAC", "KCC", "LWEA", "MixtureConsensus"]


@settings(max_examples=settings().max_examples // 5)
@given(
    table=tables(max_rows=10),
    repeats=st.lists(st.integers(1, 3), min_size=10, max_size=10),
    method=st.sampled_from(SOLVERS),
    k=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_rows_with_counts_are_repeated_rows(table, repeats, method, k, seed):
    times = np.array(repeats[: len(table)])
    whole = Partitions.of(np.repeat(table, times, axis=0))
    counted = whole.distinct
    with ours() as outcome:
        repeated, found = (
            fuse(given, min(k, len(table)), method=method, random_state=seed) for given in (whole, counted)
        )
        assert_array_equal(found.labels[whole.inverse], repeated.labels)
        assert_allclose(found.confidence[whole.inverse], repeated.confidence, atol=1e-9)
    assert outcome.error is None
