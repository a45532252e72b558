"""Whatever comes in as views: aligned finite tables, or one sentence with a hint."""

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from consilience import check_views, fuse_views, multiview
from tests.properties.sentences import ours
from tests.properties.test_labels import same_partition

numbers = st.one_of(
    st.floats(-5, 5),
    st.floats(),
    st.integers(-3, 3),
    st.just(float("nan")),
    st.sampled_from([0.0, 1e150, 1e-310, -0.0]),
)


@st.composite
def views_of_numbers(draw):
    """Tables with the same rows, of which some are absent, and as they may be given."""
    n, kinds = draw(st.integers(1, 9)), []
    for v in range(draw(st.integers(1, 3))):
        width = draw(st.integers(1, 3))
        cells = draw(st.lists(st.lists(numbers, min_size=width, max_size=width), min_size=n, max_size=n))
        table = np.array(cells, dtype=float)
        if draw(st.booleans()):
            table[draw(st.integers(0, n - 1))] = np.nan
        kinds.append(draw(st.sampled_from(FORMS))(table, v))
    return kinds


FORMS = [
    lambda table, v: table,
    lambda table, v: np.clip(table, -1e30, 1e30).astype(np.float32),
    lambda table, v: np.asfortranarray(table),
    lambda table, v: sparse.csr_array(table),
    lambda table, v: sparse.coo_matrix(table),
    lambda table, v: pd.DataFrame(table),
    lambda table, v: pd.DataFrame(table, index=[f"r{p}" for p in range(v, v + len(table))]),
    lambda table, v: pl.DataFrame(table),
    lambda table, v: np.ma.masked_invalid(table),
    lambda table, v: table.astype(object),
    lambda table, v: table.tolist(),
]


def copied(table):
    return table.copy() if hasattr(table, "copy") else table


@given(views=views_of_numbers())
def test_views_are_aligned_and_finite_or_a_sentence(views):
    before = [copied(table) for table in views]
    with np.errstate(all="ignore"), ours():
        found = check_views(views)
        for v, array in enumerate(found.arrays):
            dense = array.toarray() if sparse.issparse(array) else array
            assert np.isfinite(dense).all()
            assert dense.shape[0] == found.n_instances
            assert not dense[~found.observed[:, v]].any()
        assert found.observed.any(axis=1).all()
        assert found.observed.any(axis=0).all()
    for table, old in zip(views, before, strict=True):
        if isinstance(table, np.ndarray):
            assert repr(table) == repr(old)


@given(
    views=views_of_numbers(),
    method=st.sampled_from(multiview.__all__),
    k=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_method_gives_a_label_a_row_or_a_sentence(views, method, k, seed):
    with np.errstate(all="ignore"), ours():
        model = getattr(multiview, method)(k, random_state=seed).fit(views)
        assert model.labels_.shape == (len(model.observed_),)
        assert set(model.labels_) == set(range(model.n_clusters_))
        assert model.n_clusters_ <= k


@settings(max_examples=max(2, settings().max_examples // 20))
@given(
    seed=st.integers(0, 2**32 - 1),
    absent=st.lists(st.tuples(st.integers(0, 29), st.integers(0, 2)), max_size=12),
    method=st.sampled_from(["auto", "APMC", "SNF"]),
)
def test_one_label_a_row_whatever_the_order_of_rows_and_views(seed, absent, method):
    rng = np.random.default_rng(seed)
    kind = np.repeat([0, 1, 2], 10)
    names = ["one", "two", "three"]
    views = {name: rng.normal(8 * rng.normal(size=(3, 4))[kind]) for name in names}
    lacking = dict(absent)  # an instance is absent from one view at most
    for row, view in lacking.items():
        views[names[view]][row] = np.nan
    before = {name: table.copy() for name, table in views.items()}
    rows, order = rng.permutation(30), rng.permutation(names)
    other = {name: np.asfortranarray(views[name][rows]) for name in order}
    with ours() as outcome:
        fusion = fuse_views(views, 3, method=method, random_state=0)
        again = fuse_views(other, 3, method=method, random_state=0)
        for found in (fusion, again):
            assert found.labels.shape == (30,)
            assert set(found.labels) == set(range(found.n_clusters))
            assert ((found.confidence >= 0) & (found.confidence <= 1)).all()
        assert same_partition(again.labels, fusion.labels[rows])
        if method == "auto":  # others are judged by base clusterings that are drawn, in the order of the rows
            assert_allclose(again.confidence, fusion.confidence[rows], atol=1e-6)
    assert outcome.error is None
    for name, table in before.items():
        assert_array_equal(views[name], table)
