"""Cells as numbers: the encoding against a plain one, missing cells, and what does not change the answer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from consilience import PSE, check_views, fuse_views
from consilience.evidence.cells import encode, learn_cells, learn_numbers
from consilience.metrics import matched_accuracy_score
from consilience.multiview import EEIMVC

NAN = np.nan


def plain_encoding(values, n_levels):
    """Column by column, as the docstring of `encode` says; a dict of columns by (source, level)."""
    out = {}
    for j, k in enumerate(n_levels):
        seen = values[~np.isnan(values[:, j]), j]
        if k:
            share = [float(np.mean(seen == level)) for level in range(k)]
            for level in range(k):
                column = [NAN if np.isnan(v) else float(v == level) - share[level] for v in values[:, j]]
                out[j, level] = np.array(column) / np.sqrt(1 - sum(p**2 for p in share))
        else:
            low, high = np.percentile(seen, [25, 75])
            reach = 5 * (high - low) if high > low else np.inf
            fenced = np.minimum(np.maximum(values[:, j], low - reach), high + reach)
            out[j, -1] = (fenced - np.nanmean(fenced)) / np.nanstd(fenced)
    return out


def mixed(n=200, seed=0, missing=0.25):
    rng = np.random.default_rng(seed)
    values = np.column_stack(
        [rng.normal(size=n), rng.integers(0, 4, n), rng.exponential(size=n), rng.integers(0, 2, n)]
    )
    values[7, 0] = 1e6
    values[rng.random(values.shape) < missing] = NAN
    return values[~np.isnan(values).all(axis=1)], (0, 4, 0, 0)


def test_encoding_is_the_plain_one():
    values, n_levels = mixed()
    encoding = encode(values, n_levels)
    plain = plain_encoding(values, n_levels)
    found = encoding.apply(values)
    assert sorted(zip(encoding.source, encoding.level, strict=True)) == sorted(plain)
    for column, key in zip(found.T, zip(encoding.source, encoding.level, strict=True), strict=True):
        assert_allclose(column, plain[key], atol=1e-12)


def test_every_column_counts_alike():
    """Two rows drawn at random are as far apart in a category as in a number."""
    values, n_levels = mixed(missing=0.0)
    encoding = encode(values, n_levels)
    found = encoding.apply(values)
    for j in range(len(n_levels)):
        block = found[:, encoding.source == j]
        apart = np.square(block[:, None] - block[None]).sum(axis=2).mean()
        assert_allclose(apart, 2.0, atol=1e-9)


def test_the_order_of_rows_changes_no_bit_and_that_of_columns_only_theirs():
    values, n_levels = mixed()
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(len(values)), rng.permutation(4)
    names = np.array(["age", "stage", "crp", "sex"])
    cells = learn_cells(values, n_levels, names, as_numbers=False)
    moved = learn_cells(values[rows], n_levels, names, as_numbers=False)
    assert_array_equal(moved.complete(values), cells.complete(values))
    turned = learn_cells(values[:, columns], np.array(n_levels)[columns], names[columns], as_numbers=False)
    assert_array_equal(turned.complete(values[:, columns]), cells.complete(values))


def test_numbers_that_are_there_stay_and_end_at_fences():
    values = mixed()[0][:, [0, 2]]
    values = values[~np.isnan(values).all(axis=1)]
    cells = learn_cells(values, (0, 0), as_numbers=True)
    out, there = cells.complete(values), ~np.isnan(values[:, cells.encoding.source])
    given = values[:, cells.encoding.source]
    assert np.isfinite(out).all()
    assert_array_equal(out[there & (given < 100)], given[there & (given < 100)])
    assert out.max() < 100
    assert_array_equal(np.isnan(values).sum(axis=0), cells.n_missing)


def test_a_column_without_cells_is_left_out():
    values = np.array([[1.0, NAN, 2.0], [2.0, NAN, 1.0], [NAN, NAN, 4.0]])
    cells = learn_cells(values, (0, 0, 0), as_numbers=True)
    assert sorted(cells.encoding.source) == [0, 2]
    assert cells.complete(values).shape == (3, 2)


def test_more_rows_than_are_fitted():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6000, 3)) + rng.normal(size=(6000, 1))
    gaps = rng.random(values.shape) < 0.2
    gaps[:, 2] = True
    gaps[123, 2] = False  # a column of one cell: a constant, which is missing nowhere else
    values[gaps] = NAN
    values = values[~gaps.all(axis=1)]
    out = learn_cells(values, (0, 0, 0), as_numbers=True).complete(values)
    assert np.isfinite(out).all()


def test_complete_numbers_know_what_stands_for_gaps_of_new_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 1)) * [1.0, 10.0, -3.0] + 0.1 * rng.normal(size=(800, 3)) + 7.0
    cells = learn_numbers(x)
    assert_array_equal(cells.complete(x), x)
    new = np.array([[8.0, NAN, NAN]])
    assert_allclose(cells.complete(new), [[8.0, 17.0, 4.0]], atol=0.8)


# --- views -------------------------------------------------------------------------------------------


def planted(seed=0, n=240, missing=0.3):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], n // 3)
    views = {
        name: 3 * rng.normal(size=(3, d))[y] + 1.5 * rng.normal(size=(n, d))
        for name, d in (("a", 6), ("b", 12))
    }
    for x in views.values():
        x[rng.random(x.shape) < missing] = NAN
    views["a"][5] = NAN
    return views, y


def test_any_rate_of_missing_cells_is_clustered():
    views, y = planted()
    fusion = fuse_views(views, 3, random_state=0)
    assert matched_accuracy_score(y, fusion.labels) > 0.95
    again = fusion.place(views)
    assert np.mean(again.labels == fusion.labels) > 0.95


def test_order_of_rows_and_columns_changes_nothing():
    views, _ = planted()
    rng = np.random.default_rng(3)
    rows = rng.permutation(240)
    moved = {name: x[rows][:, rng.permutation(x.shape[1])] for name, x in views.items()}
    first, second = (PSE(3, random_state=0).fit(given) for given in (views, moved))
    assert_array_equal(second.labels_, first.labels_[rows])
    assert_allclose(second.confidence_, first.confidence_[rows], atol=1e-9)


@pytest.mark.parametrize("x", [np.random.default_rng(0).normal(size=(60, 12)), np.eye(9)[np.arange(30) % 9]])
def test_a_table_without_gaps_is_as_it_was(x):
    views = check_views([x])
    assert views.tables is None
    assert views.scaling(0) is None
    assert np.shares_memory(views.arrays[0], x)


def test_a_missing_count_is_no_entry():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.1, size=(50, 20)).astype(float)
    counts[counts.sum(axis=1) == 0, 0] = 1
    gaps = counts.copy()
    gaps[3, 4] = gaps[9, 0] = NAN
    zeros = np.nan_to_num(gaps)
    for given in (gaps, sparse.csr_array(gaps)):
        views = check_views([given])
        array = views.arrays[0].toarray() if sparse.issparse(views.arrays[0]) else views.arrays[0]
        assert_array_equal(array, zeros)
        assert views.tables[0].cells is None
        assert sum(views.tables[0].n_missing) == 2
    assert_array_equal(
        PSE(3, random_state=0).fit([gaps]).labels_, PSE(3, random_state=0).fit([zeros]).labels_
    )


def test_sparse_measurements_are_filled_in_as_dense_ones():
    x = np.random.default_rng(0).normal(size=(40, 4))
    x[2, 1] = NAN
    assert_array_equal(check_views([sparse.csr_array(x)]).arrays[0], check_views([x]).arrays[0])


def test_new_rows_with_gaps_of_a_table_that_had_none():
    views, _ = planted(missing=0.0)
    views["a"][5] = views["a"][6]
    whole = {name: np.nan_to_num(x) for name, x in views.items()}
    model = PSE(3, random_state=0).fit(whole)
    gaps = {
        name: np.where(np.random.default_rng(1).random(x.shape) < 0.3, NAN, x) for name, x in whole.items()
    }
    assert np.mean(model.predict(gaps) == model.labels_) > 0.95


def test_eeimvc_takes_incomplete_features():
    """What the paper leaves as an extension: kernels of rows that lack features."""
    views, y = planted()
    model = EEIMVC(3, random_state=0).fit(views)
    assert matched_accuracy_score(y, model.labels_) > 0.9
    assert matched_accuracy_score(y, model.predict(views)) > 0.9


def test_views_that_were_read_by_themselves_are_not_taken_for_others():
    views, _ = planted()
    model = PSE(3, random_state=0).fit(views)
    with pytest.raises(ValueError, match=r"view 'a' was read by itself.*Hint: give the table itself"):
        model.predict(check_views(views))


def test_a_similarity_that_is_missing_is_refused():
    x = np.random.default_rng(0).normal(size=(30, 3))
    model = EEIMVC(2, kernel="precomputed", random_state=0).fit([x @ x.T])
    new = x[:2] @ x.T
    new[1, 4] = NAN
    with pytest.raises(ValueError, match=r"no value \(NaN\) in row 1, column 4, and nothing that was fitted"):
        model.predict([new])


def test_repr_counts_what_was_filled_in():
    assert "1 missing cell filled in" in repr(check_views([[[1.0, NAN], [2.0, 3.0], [0.5, 4.0]]]))
