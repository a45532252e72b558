"""Views as input: what is read, how rows are matched, what counts as absent, and every refusal."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.sparse import csr_array

from consilience.evidence.views import Views, check_views

NAN = np.nan


def same(a: Views, b: Views) -> bool:
    """Equal in everything but the storage."""

    def dense(matrix):
        return matrix.toarray() if sparse.issparse(matrix) else matrix

    return (
        a.names == b.names
        and np.array_equal(a.observed, b.observed)
        and all(np.array_equal(dense(x), dense(y)) for x, y in zip(a.arrays, b.arrays, strict=True))
        and (a.index is None) == (b.index is None)
        and (a.index is None or list(a.index) == list(b.index))
    )


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    a[1] = NAN
    b[[0, 4]] = NAN
    return {"a": a, "b": b}


# --- what comes out ----------------------------------------------------------------------------------


def test_absent_rows_are_zero_and_masked(tables):
    views = check_views(tables)
    assert views.names == ("a", "b")
    assert views.index is None
    assert (views.n_instances, views.n_views, views.n_features) == (6, 2, (3, 2))
    assert not views.is_complete
    for v, table in enumerate(tables.values()):
        absent = np.isnan(table).all(axis=1)
        assert np.array_equal(views.observed[:, v], ~absent)
        assert np.array_equal(views.arrays[v], np.where(absent[:, None], 0, table))


def test_rows_gives_the_observed_part(tables):
    for name in ("dense", "sparse"):
        given = tables if name == "dense" else {k: sparse.csr_array(t) for k, t in tables.items()}
        rows, part = check_views(given).rows(1)
        assert rows.tolist() == [1, 2, 3, 5]
        part = part.toarray() if sparse.issparse(part) else part
        assert np.array_equal(part, tables["b"][rows])


def test_rows_of_a_complete_view_is_no_copy():
    X = np.ones((4, 2))
    rows, part = check_views(X).rows(0)
    assert rows.tolist() == [0, 1, 2, 3]
    assert np.shares_memory(part, X)


@pytest.mark.parametrize(
    "convert",
    [
        list,
        lambda t: t.tolist(),
        np.asfortranarray,
        lambda t: t.astype(object),
        lambda t: np.ma.masked_invalid(t),
        pd.DataFrame,
        lambda t: pd.DataFrame(t).astype("Float64"),
        lambda t: pl.DataFrame(t, schema=[str(j) for j in range(t.shape[1])]),
        lambda t: pa.table({str(j): t[:, j] for j in range(t.shape[1])}),
        sparse.csr_array,
        sparse.csc_matrix,
        sparse.coo_array,
    ],
)
def test_every_kind_of_table_says_the_same(tables, convert):
    assert same(check_views({name: convert(t) for name, t in tables.items()}), check_views(tables))


def test_polars_null_is_nan():
    frame = pl.DataFrame({"x": [1, None, 3], "y": [True, None, False]})
    views = check_views([frame, np.ones((3, 1))])
    assert views.observed[:, 0].tolist() == [True, False, True]
    assert views.arrays[0].tolist() == [[1, 1], [0, 0], [3, 0]]


@pytest.mark.parametrize(
    "one", [np.ones((3, 2)), sparse.csr_array(np.ones((3, 2))), pd.DataFrame(np.ones((3, 2)))]
)
def test_one_table_is_one_view(one):
    assert same(check_views(one), check_views([one]))
    assert check_views(one).names == ("view0",)


def test_dtype():
    assert check_views(np.ones((2, 2), dtype=np.uint8)).arrays[0].dtype == np.float64
    assert check_views(np.ones((2, 2)), dtype=np.float32).arrays[0].dtype == np.float32
    assert check_views(sparse.eye_array(2), dtype="float32").arrays[0].dtype == np.float32
    with pytest.raises(ValueError, match=r"dtype must be a float type.*Hint"):
        check_views(np.ones((2, 2)), dtype=int)


def test_views_pass_through():
    views = check_views(np.ones((2, 2)))
    assert check_views(views) is views


def test_result_is_read_only(tables):
    views = check_views({**tables, "c": np.ones((6, 1))})
    for array in (*views.arrays, views.observed):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        views.names = ()


def test_input_is_untouched(tables):
    doubled = sparse.csr_array(([1.0, 2.0, NAN], [0, 0, 0], [0, 2, 3]), shape=(2, 1))
    frame = pd.DataFrame(tables["a"], index=list("fedcba"))
    before = {k: t.copy() for k, t in tables.items()}, doubled.copy(), frame.copy()
    check_views(tables, mask=np.ones((6, 2), bool))
    check_views([doubled, np.ones((2, 1))])
    check_views([frame, pd.DataFrame(tables["b"], index=list("aebcfd"))])
    assert all(np.array_equal(tables[k], before[0][k], equal_nan=True) for k in tables)
    assert doubled.nnz == 3
    assert np.array_equal(doubled.data, before[1].data, equal_nan=True)
    pd.testing.assert_frame_equal(frame, before[2])
    tables["a"][0] = 1  # still the user's to write to


# --- the mask ----------------------------------------------------------------------------------------


def test_mask_without_holes_is_no_mask(tables):
    assert same(check_views(tables, mask=np.ones((6, 2), bool)), check_views(tables))


def test_mask_is_the_same_as_rows_of_nan(tables):
    rng = np.random.default_rng(1)
    full = {name: rng.normal(size=t.shape) for name, t in tables.items()}
    mask = np.column_stack([~np.isnan(t).all(axis=1) for t in tables.values()])
    with_nan = {name: np.where(mask[:, [v]], t, NAN) for v, (name, t) in enumerate(full.items())}
    assert same(check_views(full, mask=mask), check_views(with_nan))
    as_sparse = {name: sparse.csr_array(t) for name, t in full.items()}
    assert same(check_views(as_sparse, mask=mask), check_views(with_nan))


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_masked_rows_may_hold_anything(storage):
    X = np.array([[1.0, 2.0], [NAN, 5.0], [np.inf, 0.0], [-np.inf, np.inf]])
    mask = np.array([[True, True], [False, True], [False, True], [False, True]])
    views = check_views([storage(X), np.ones((4, 1))], mask=mask)
    first = views.arrays[0].toarray() if sparse.issparse(views.arrays[0]) else views.arrays[0]
    assert first.tolist() == [[1, 2], [0, 0], [0, 0], [0, 0]]


def test_empty_sparse_row_is_a_row_of_zeros():
    X = sparse.csr_array(np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert check_views(X).is_complete


def test_large_finite_values_are_no_inf():
    X = np.full((3, 2), np.finfo(float).max)  # whose sum is inf
    with pytest.raises(
        ValueError, match=r"^view 'view0' has a value of 1\.8e\+308 in row 0, .*too large to be squared"
    ):
        check_views(X)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.ones((3, 1), bool), r"\(3, 2\).*Got the shape \(3, 1\).*Hint"),
        (np.ones((2, 3), bool), r"Got the shape \(2, 3\)"),
        (np.ones((3, 2), int), r"True .* False .*int64.*Hint: .*astype\(bool\)"),
    ],
)
def test_bad_masks(mask, message):
    with pytest.raises(ValueError, match=message):
        check_views([np.ones((3, 1)), np.ones((3, 1))], mask=mask)


# --- matching rows by id -----------------------------------------------------------------------------


def test_pandas_outer_join_against_pandas():
    rng = np.random.default_rng(0)
    ids = np.array([f"p{i}" for i in range(30)])
    frames = {}
    for v, name in enumerate("abc"):
        rows = rng.permutation(30)[: 15 + 3 * v]
        frames[name] = pd.DataFrame(rng.normal(size=(len(rows), 2)), index=ids[rows])
    views = check_views(frames)

    first_seen = list(dict.fromkeys(i for frame in frames.values() for i in frame.index))
    assert list(views.index) == first_seen
    for v, frame in enumerate(frames.values()):
        expected = frame.reindex(first_seen)
        assert np.array_equal(views.observed[:, v], expected.notna().all(axis=1))
        assert np.array_equal(views.arrays[v], expected.fillna(0))


def test_order_of_rows_in_a_frame_does_not_matter_to_the_join():
    a = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=[10, 20, 30])
    b = pd.DataFrame({"y": [5.0, 6.0, 7.0]}, index=[20, 30, 40])
    expected = check_views([a, b])
    assert expected.index.tolist() == [10, 20, 30, 40]
    assert same(check_views([a, b.iloc[[2, 0, 1]]]), expected)


def test_equal_indices_keep_the_order_and_the_ids():
    a = pd.DataFrame({"x": [1.0, 2.0]}, index=["q", "p"])
    views = check_views([a, a * 2, np.ones((2, 1)), sparse.eye_array(2)])
    assert list(views.index) == ["q", "p"]
    assert views.is_complete
    assert views.arrays[1].tolist() == [[2], [4]]


def test_mask_follows_the_joined_rows():
    a = pd.DataFrame({"x": [1.0, 2.0]}, index=["p", "q"])
    b = pd.DataFrame({"y": [5.0, 6.0]}, index=["q", "r"])
    views = check_views([a, b], mask=[[True, True], [False, True], [True, True]])
    assert views.observed.tolist() == [[True, False], [False, True], [False, True]]
    assert views.arrays[0].tolist() == [[1], [0], [0]]


def test_on_matches_any_frames_by_a_column():
    a = pl.DataFrame({"id": ["u", "v"], "x": [1, 2]})
    b = pd.DataFrame({"y": [7.0, 8.0], "id": ["w", "v"]})
    views = check_views({"a": a, "b": b}, on="id")
    assert list(views.index) == ["u", "v", "w"]
    assert views.arrays[0].tolist() == [[1], [2], [0]]
    assert views.arrays[1].tolist() == [[0], [8], [7]]


def test_default_index_means_position_unless_another_frame_has_ids():
    a, b = pd.DataFrame({"x": [1.0, 2.0, 3.0]}), pd.DataFrame({"y": [4.0, 5.0, 6.0]})
    assert check_views([a, b]).index is None
    joined = check_views([a, b.iloc[[2, 0]]])
    assert joined.index.tolist() == [0, 1, 2]
    assert joined.arrays[1].tolist() == [[4], [0], [6]]


@pytest.mark.parametrize(
    "index",
    [
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
        pd.date_range("2020-01-01", periods=3),
        pd.Index(["s", 3, 2.5], dtype=object),
    ],
)
def test_any_hashable_id(index):
    a = pd.DataFrame({"x": [1.0, 2.0, 3.0]}, index=index)
    views = check_views([a, a.iloc[[2, 1]]])
    assert list(views.index) == list(index)
    assert views.index.shape == (3,)
    assert views.arrays[1].tolist() == [[0], [2], [3]]


def test_gaps_are_filled_in_after_a_join():
    a = pd.DataFrame({"x": [1.0, 2.0, 5.0], "y": [1.0, NAN, 4.0]}, index=["p", "q", "s"])
    b = pd.DataFrame({"z": [1.0, 2.0]}, index=["r", "q"])
    views = check_views({"a": a, "b": b})
    assert views.observed.tolist() == [[True, False], [True, True], [True, False], [False, True]]
    assert views.tables[0].n_missing == (0, 1)
    assert views.tables[0].names == ("x", "y")
    assert views.tables[1] is None
    filled = pd.DataFrame(views.arrays[0], columns=views.columns[0])
    assert filled["x"].tolist() == [1, 2, 5, 0]
    assert 1 < filled["y"][1] < 4


# --- refusals ----------------------------------------------------------------------------------------

OK = np.ones((3, 2))
INFINITE = np.array([[1.0, 2.0], [-np.inf, 4.0], [NAN, NAN]])
EMPTY = np.full((3, 2), NAN)


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ([], "no views"),
        ({"k": INFINITE, "j": OK}, r"view 'k' has inf in row 1, column 0"),
        ({"k": sparse.csr_array(INFINITE), "j": OK}, r"view 'k' has inf in row 1, column 0"),
        ([OK, np.ones((4, 2))], r"'view0' has 3, 'view1' has 4"),
        ([pd.DataFrame(OK), pd.DataFrame(np.ones((4, 2)))], r"'view0' has 3, 'view1' has 4"),
        ([OK, EMPTY], r"view 'view1' has no instances"),
        (INFINITE[[0, 2]], r"1 of 2 instances is present in no view: row 1"),
        (np.vstack([OK, *[EMPTY] * 3]), r"9 of 12 .* row 3, 4, 5, 6, 7, \.\.\. \(9 in all\)"),
        (np.ones(3), r"Expected 2D array.*got 1D.*reshape\(-1, 1\)"),
        ([[1.0, 2.0], [3.0, 4.0]], r"view 'view0', got 1D"),
        (np.ones((2, 3, 4)), r"got 3D.*list of 2-D arrays"),
        (7, "got 0D"),
        ([pd.Series([1.0, 2.0])], "got 1D"),
        (np.ones((0, 2)), r"0 sample\(s\) \(shape=\(0, 2\)\)"),
        (np.ones((3, 0)), r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required\."),
        (sparse.csr_array((3, 0)), r"0 feature"),
        (pd.DataFrame(index=["a", "b"]), r"0 feature"),
        ([[[1.0, 2.0], [3.0]]], "not a rectangular table"),
        (OK + 1j, "Complex data not supported"),
        (sparse.csr_array(OK + 1j), "Complex data not supported"),
        (np.array([["a", "b"]]), r"view 'view0' has no column that tells rows apart: 0 \(constant"),
        (pl.DataFrame({"x": [1.0], "town": ["Bonn"]}), r"no column that tells rows apart: x .*, town"),
        (pl.LazyFrame({"x": [1.0]}), r"\.collect\(\)"),
        ({1: OK, "1": OK}, "two views are called '1'"),
    ],
)
def test_refusals_name_the_place_and_end_in_a_hint(views, message):
    with pytest.raises(ValueError, match=message) as caught:
        check_views(views)
    assert "Hint: " in str(caught.value)


def test_an_object_that_is_no_number_is_a_type_error():
    with pytest.raises(TypeError, match=r"column 0 .*argument must be .* string.* number.*Hint"):
        check_views(np.array([[{}, 1.0]], dtype=object))


@pytest.mark.parametrize(
    ("views", "on", "message"),
    [
        ([pd.DataFrame(OK, index=list("aba")), pd.DataFrame(OK)], None, r"the id 'a' twice, in rows 0 and 2"),
        ([pd.DataFrame(OK, index=["a", None, "b"])], None, r"row 1 .* has no id"),
        (
            [pd.DataFrame(OK, index=[1, 2, 3]), pd.DataFrame(OK, index=list("123"))],
            None,
            r"shares no id .*type",
        ),
        (
            {"f": pd.DataFrame(OK, index=[1, 2, 3]), "g": pd.DataFrame(OK, index=[2, 3, 4]), "h": OK},
            None,
            r"view 'h' have none",
        ),
        ([OK], "id", r"on='id' .* view 'view0' is not a frame"),
        ([pl.DataFrame({"x": [1.0], "key": [1]})], "id", r"no column 'id'.*'x', 'key'"),
        ([pl.DataFrame({"x": [1.0, 2.0], "id": [1, 1]})], "id", r"the id 1 twice"),
        ([pl.DataFrame({"x": [1.0, 2.0], "id": [1, None]})], "id", r"row 1 .* has no id"),
        ([pl.DataFrame({"id": [1, 2]})], "id", r"0 feature"),
    ],
)
def test_refusals_about_ids(views, on, message):
    with pytest.raises(ValueError, match=message) as caught:
        check_views(views, on=on)
    assert "Hint: " in str(caught.value)


def test_frames_without_ids_match_by_position_only():
    with pytest.raises(ValueError, match=r"different numbers of rows and no ids"):
        check_views([pl.DataFrame({"x": [1.0]}), pl.DataFrame({"x": [1.0, 2.0]})])


def test_repr_is_one_line(tables):
    assert repr(check_views(tables)) == "Views(6 instances; a (3), b (2); 25% of rows absent)"


@pytest.mark.parametrize("kind", ["coo", "csc", "csr", "dok", "lil"])
def test_one_sparse_table_is_one_view_whatever_its_kind(kind):
    views = check_views(sparse.random_array((6, 4), density=0.5, random_state=0).asformat(kind))
    assert views.n_views == 1
    assert views.n_features == (4,)


# --- new instances in the terms of fitted views -----------------------------------------------------------


@pytest.fixture
def layout():
    names = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]})
    return check_views({"a": names, "b": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]}).layout


def test_views_that_are_not_given_have_no_rows(layout):
    expected = np.array([[False, True], [False, True]])
    b = [[7.0, 8.0, 9.0], [1.0, 1.0, 1.0]]
    for given in ({"b": b}, [None, b], [np.full((2, 2), NAN), b], check_views({"b": b})):
        new = layout.match(given, method="METHOD")
        assert (new.names, new.n_features) == (("a", "b"), (2, 3))
        np.testing.assert_array_equal(new.observed, expected)
        np.testing.assert_array_equal(new.arrays[1], b)
        assert sparse.issparse(new.arrays[0])
        assert not new.arrays[0].nnz


def test_views_and_their_columns_come_in_the_fitted_order(layout):
    a, b = pd.DataFrame({"y": [3.0], "x": [1.0]}), [[7.0, 8.0, 9.0]]
    new = layout.match({"b": b, "a": a}, np.array([[True, True]]), method="METHOD")
    np.testing.assert_array_equal(new.arrays[0], [[1.0, 3.0]])
    np.testing.assert_array_equal(new.arrays[1], b)


def test_mask_has_the_columns_of_the_fitted_views(layout):
    a, b = [[1.0, 3.0], [5.0, 6.0]], [[7.0, 8.0, 9.0], [1.0, 1.0, 1.0]]
    mask = np.array([[True, False], [True, True]])
    for given in ([a, b], check_views({"b": b, "a": a})):
        wanted = mask[:, ::-1] if isinstance(given, Views) else mask
        np.testing.assert_array_equal(layout.match(given, wanted, method="METHOD").observed, mask)


@pytest.mark.parametrize(
    ("given", "mask", "message"),
    [
        (np.ones(3), None, r"Expected 2D array, got 1D array instead\. .*Hint: one new instance is"),
        ({"c": OK}, None, r"no view 'c' when METHOD was fitted\. Hint: the views are 'a', 'b'"),
        ([OK], None, r"X has 1 views, but METHOD was fitted with 2\. Hint: give None"),
        ([None, None], None, r"no view holds any instance\. Hint"),
        (
            {"b": [[1.0]]},
            None,
            r"view 'b' has 1 features, but METHOD is expecting 3 features .*Hint",
        ),
        ({"a": pd.DataFrame({"x": [1.0], "z": [1.0]})}, None, r"view 'a' has a column 'z' .*METHOD.*Hint"),
        ({"b": [[1.0, 2.0, 3.0]]}, [[True]], r"mask must have a column for each of the 2 fitted views\. Got"),
    ],
)
def test_refusals_of_new_instances_name_who_was_fitted(layout, given, mask, message):
    with pytest.raises(ValueError, match=message):
        layout.match(given, mask, method="METHOD")


class TestScales:
    X = np.arange(12.0).reshape(6, 2)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_values_that_cannot_be_squared_are_named(self, sparse):
        x = self.X.copy()
        x[3, 1] = -1e160
        table = csr_array(x) if sparse else x
        with pytest.raises(
            ValueError, match=r"'a' has a value of 1\.0e\+160 in row 3, column 1, too large.*Hint: "
        ):
            check_views({"a": table, "b": self.X})
        with pytest.raises(ValueError, match=r"'a' has no value above 1\.1e-159, too small .*Hint: multiply"):
            check_views({"a": self.X * 1e-160 if not sparse else csr_array(self.X * 1e-160)})

    def test_what_is_masked_may_be_as_large_as_it_likes(self):
        x = np.where(np.arange(6)[:, None] == 3, 1e300, self.X)
        assert check_views([x, self.X], mask=np.arange(12).reshape(6, 2) != 6).n_instances == 6

    def test_usual_extremes_pass(self):
        for scale in (1e100, 1e-100):
            assert check_views(self.X * scale).n_views == 1
        assert check_views(np.zeros((4, 2))).n_views == 1
        assert check_views(self.X * 1e15, dtype=np.float32).n_views == 1
        with pytest.raises(ValueError, match="too large to be squared"):
            check_views(self.X * 1e20, dtype=np.float32)

    def test_a_frame_names_its_column_and_id(self):
        frame = pd.DataFrame({"u": [1.0, 2.0], "w": [1.0, 1e200]}, index=["ann", "bob"])
        with pytest.raises(ValueError, match=r"in row 1 \(id 'bob'\), column 'w'"):
            check_views(frame)


@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_equal_instances_are_counted_and_constant_views_found(make):
    a = make(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]))
    b = make(np.array([[2.0, 0.0], [0.0, 2.0], [2.0, -0.0], [5.0, 5.0]]))
    mask = np.array([[True, True], [False, True], [True, True], [True, False]])
    views = check_views([a, b], mask=mask)
    assert views.constant() == [0]
    assert views.n_distinct(10, [1]) == 3  # absent is one more
    assert views.n_distinct(10) == 3
    assert views.n_distinct(2) == 2
