"""Labels as input: every kind of table gives the same codes, and every bad one a sentence that helps."""

import datetime as dt
import re
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest

from consilience import Partitions

# One table in many guises: rows are instances, None is missing.
ROWS = [[3, 10], [7, None], [3, 20], [None, 10], [9, 20]]
CODES = np.array([[0, 0], [1, -1], [0, 1], [-1, 0], [2, 1]])
CATEGORIES = [[3, 7, 9], [10, 20]]
COLUMNS = {"a": [3, 7, 3, None, 9], "b": [10, None, 20, 10, 20]}


def with_negatives(dtype):
    return np.array([[-1 if value is None else value for value in row] for row in ROWS], dtype=dtype)


def with_nans(dtype):
    return np.array([[np.nan if value is None else value for value in row] for row in ROWS], dtype=dtype)


def masked():
    filled = np.array([[0 if value is None else value for value in row] for row in ROWS])
    return np.ma.array(filled, mask=[[value is None for value in row] for row in ROWS])


def series(index=range(5)):
    return {name: pd.Series(values, index=list(index), dtype="Int64") for name, values in COLUMNS.items()}


def random_codes(n, ks, missing=0.3, seed=0):
    """Codes in which every cluster occurs, with missing entries; every row is seen by the first column."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([np.concatenate([np.arange(k), rng.integers(0, k, n - k)]) for k in ks])
    codes = np.column_stack([rng.permutation(column) for column in codes.T])
    hidden = rng.random(codes.shape) < missing
    hidden[:, 0] = False
    for i in range(1, len(ks)):
        # The first row of each cluster stays, so that no cluster is lost.
        hidden[np.unique(codes[:, i], return_index=True)[1], i] = False
    return np.where(hidden, -1, codes)


def read(labels, **options):
    return Partitions.of(labels, unobserved="keep", **options)


def names_of(partitions):
    return [categories.tolist() for categories in partitions.categories]


# --- kinds of tables ----------------------------------------------------------------------------------------

INTEGER_TABLES = {
    "int64": with_negatives(np.int64),
    "int8": with_negatives(np.int8),
    "int16, by columns": np.asfortranarray(with_negatives(np.int16)),
    "every other row": np.repeat(with_negatives(np.int32), 2, axis=0)[::2],
    "float64": with_nans(np.float64),
    "float32": with_nans(np.float32),
    "float16": with_nans(np.float16),
    "object with None": np.array(ROWS, dtype=object),
    "object with NaN": with_nans(object),
    "object with NumPy scalars": np.array(
        [[v if v is None else np.int16(v) for v in row] for row in ROWS], dtype=object
    ),
    "object with floats": np.array(
        [[v if v is None else float(v) for v in row] for row in ROWS], dtype=object
    ),
    "nested lists": ROWS,
    "nested tuples": tuple(map(tuple, ROWS)),
    "list of arrays": list(with_negatives(np.int64)),
    "masked": masked(),
    "masked floats": masked().astype(float),
    "pandas floats": pd.DataFrame(COLUMNS),
    "pandas Int64": pd.DataFrame(COLUMNS, dtype="Int64"),
    "pandas Float64": pd.DataFrame(COLUMNS, dtype="Float64"),
    "pandas arrow": pd.DataFrame(COLUMNS, dtype="int64[pyarrow]"),
    "pandas objects": pd.DataFrame(COLUMNS, dtype=object),
    "pandas categories": pd.DataFrame(COLUMNS).astype("Int64").astype("category"),
    "pandas with numbers as names": pd.DataFrame(with_negatives(np.int64)),
    "pandas with levels of names": pd.DataFrame(
        with_negatives(np.int64), columns=pd.MultiIndex.from_tuples([("x", "a"), ("x", "b")])
    ),
    "polars": pl.DataFrame(COLUMNS),
    "polars Int8": pl.DataFrame(COLUMNS, schema={"a": pl.Int8, "b": pl.Int8}),
    "polars Float32": pl.DataFrame(COLUMNS, schema={"a": pl.Float32, "b": pl.Float32}),
    "arrow": pl.DataFrame(COLUMNS).to_arrow(),
    "dict of lists": COLUMNS,
    "dict of arrays": dict(zip("ab", with_nans(float).T, strict=True)),
    "dict of masked arrays": dict(zip("ab", masked().T, strict=True)),
    "dict of polars series": {name: pl.Series(values) for name, values in COLUMNS.items()},
    "dict of pandas series": series(),
    "list of pandas series": list(series().values()),
    "list of polars series": [pl.Series(values) for values in COLUMNS.values()],
    "dict of mappings": {name: dict(zip("pqrst", values, strict=True)) for name, values in COLUMNS.items()},
}


@pytest.mark.parametrize("kind", INTEGER_TABLES)
def test_every_kind_of_integer_table_gives_the_same_codes(kind):
    partitions = Partitions.of(INTEGER_TABLES[kind])
    np.testing.assert_array_equal(partitions.codes, CODES)
    assert names_of(partitions) == CATEGORIES
    assert all(categories.dtype == np.int64 for categories in partitions.categories)
    assert partitions.n_clusters_per_partition.tolist() == [3, 2]
    assert partitions.offsets.tolist() == [0, 3, 5]
    np.testing.assert_array_equal(partitions.observed, CODES >= 0)
    assert (partitions.n_instances, partitions.n_partitions, partitions.n_columns) == (5, 2, 2)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_unsigned_integers(dtype):
    partitions = Partitions.of(np.array([[3, 200], [7, 100], [3, 200]], dtype=dtype))
    assert partitions.codes.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert names_of(partitions) == [[3, 7], [100, 200]]


TEXT = {"a": ["x", "z", "x", None, "y"], "b": ["q", None, "p", "q", "p"]}
TEXT_CODES = [[0, 1], [2, -1], [0, 0], [-1, 1], [1, 0]]
TEXT_TABLES = {
    "nested lists": [list(row) for row in zip(*TEXT.values(), strict=True)],
    "object": np.array(list(TEXT.values()), dtype=object).T,
    "str, empty where missing": np.array([[v or "" for v in column] for column in TEXT.values()]).T,
    "pandas": pd.DataFrame(TEXT),
    "pandas objects": pd.DataFrame(TEXT, dtype=object),
    "pandas strings": pd.DataFrame(TEXT, dtype="string"),
    "pandas categories": pd.DataFrame(
        {
            "a": pd.Categorical(TEXT["a"], categories=["z", "unused", "y", "x"]),
            "b": pd.Categorical(TEXT["b"]),
        }
    ),
    "polars": pl.DataFrame(TEXT),
    "polars Categorical": pl.DataFrame(TEXT, schema={"a": pl.Categorical, "b": pl.Categorical}),
    "polars Enum": pl.DataFrame(TEXT, schema={"a": pl.Enum(["z", "unused", "x", "y"]), "b": pl.Enum("qp")}),
    "dict": TEXT,
    "mappings": {name: dict(enumerate(values)) for name, values in TEXT.items()},
}


@pytest.mark.parametrize("kind", TEXT_TABLES)
def test_every_kind_of_text_table_gives_the_same_codes(kind):
    partitions = Partitions.of(TEXT_TABLES[kind])
    assert partitions.codes.tolist() == TEXT_CODES
    assert names_of(partitions) == [["x", "y", "z"], ["p", "q"]]


BOOLEANS = {
    "array": np.array([[True, False], [False, False], [True, True]]),
    "pandas": pd.DataFrame({"a": [True, False, True], "b": [False, False, True]}),
    "polars": pl.DataFrame({"a": [True, False, True], "b": [False, False, True]}),
    "objects": np.array([[True, False], [False, False], [True, True]], dtype=object),
}


@pytest.mark.parametrize("kind", BOOLEANS)
def test_booleans_keep_their_names(kind):
    partitions = Partitions.of(BOOLEANS[kind])
    assert partitions.codes.tolist() == [[1, 0], [0, 0], [1, 1]]
    assert all(value is False or value is True for names in names_of(partitions) for value in names)


@pytest.mark.parametrize(
    "column",
    [
        pd.array([True, None, False], dtype="boolean"),
        pl.Series([True, None, False]),
        [True, None, False],
        [np.True_, np.nan, np.False_],
    ],
    ids=["pandas", "polars", "list", "NumPy scalars"],
)
def test_booleans_with_gaps(column):
    partitions = read({"a": column})
    assert partitions.codes[:, 0].tolist() == [1, -1, 0]
    assert names_of(partitions) == [[False, True]]


@pytest.mark.parametrize(
    "marker",
    [None, np.nan, float("nan"), pd.NA, pd.NaT, np.float32("nan"), np.datetime64("NaT", "D"), ""],
    ids=repr,
)
@pytest.mark.parametrize("present", [["x", "y"], [4, 5]])
def test_markers_of_missing(marker, present):
    column = np.array([present[0], marker, present[1], marker], dtype=object)
    partitions = read(column[:, None])
    assert partitions.codes[:, 0].tolist() == [0, -1, 1, -1]
    assert names_of(partitions) == [present]


def test_the_word_nan_is_a_label_and_asked_about():
    with pytest.warns(UserWarning, match=r"'None' in column '0' \(1 row\) and 'nan' in column '0' \(1 row\)"):
        table = Partitions.of([["nan"], ["a"], ["None"]])
    assert names_of(table) == [["None", "a", "nan"]]


def test_columns_may_be_of_different_kinds():
    frame = pl.DataFrame(
        {"a": [2, None, 1], "b": ["u", "v", None], "c": [True, False, True], "d": [1.0, 3, 2]}
    )
    partitions = Partitions.of(frame)
    assert partitions.codes.tolist() == [[1, 0, 1, 0], [-1, 1, 0, 2], [0, -1, 1, 1]]
    assert names_of(partitions) == [[1, 2], ["u", "v"], [False, True], [1, 2, 3]]


def test_integers_beside_strings_stay_apart():
    # As an array the list would be all strings, and 1 would be "1".
    partitions = Partitions.of([[1, "a"], ["x", 2], [None, "a"], [1, "a"]])
    assert partitions.codes.tolist() == [[0, 1], [1, 0], [-1, 1], [0, 1]]
    assert names_of(partitions) == [[1, "x"], [2, "a"]]
    with pytest.raises(ValueError, match=r"'0' has the label 1 both as a number and as text\. Hint: "):
        Partitions.of([[1, "a"], ["1", 2], [None, "a"], [1, "a"]])


def test_a_number_is_one_label_however_it_is_written():
    assert Partitions.of({"a": [1, 1.0, np.int8(1), np.float32(1), 2]}).codes[:, 0].tolist() == [
        0,
        0,
        0,
        0,
        1,
    ]


# --- labels that are easily damaged -------------------------------------------------------------------------

HUGE = 2**53 + 1  # the first integer that no float64 holds
HUGE_TABLES = {
    "nested list": [[HUGE], [HUGE - 1], [HUGE]],
    "nested list with NaN": [[HUGE], [HUGE - 1], [HUGE], [np.nan]],
    "nested list with None": [[HUGE], [HUGE - 1], [HUGE], [None]],
    "int64": np.array([[HUGE], [HUGE - 1], [HUGE]]),
    "uint64": np.array([[HUGE], [HUGE - 1], [HUGE]], dtype=np.uint64),
    "pandas Int64": pd.DataFrame({"a": pd.array([HUGE, HUGE - 1, HUGE, None], dtype="Int64")}),
    "polars": pl.DataFrame({"a": [HUGE, HUGE - 1, HUGE, None]}),
    "masked": np.ma.array([[HUGE], [HUGE - 1], [HUGE], [0]], mask=[[0], [0], [0], [1]]),
}


@pytest.mark.parametrize("kind", HUGE_TABLES)
def test_huge_integers_keep_their_digits(kind):
    partitions = read(HUGE_TABLES[kind])
    assert partitions.codes[:, 0].tolist() == [1, 0, 1, -1][: partitions.n_instances]
    assert names_of(partitions) == [[HUGE - 1, HUGE]]
    back = partitions.decode(partitions.codes)
    column = back["a"] if hasattr(back, "columns") else back[:, 0]
    assert [int(value) for value in list(column)[:3]] == [HUGE, HUGE - 1, HUGE]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([[2**63 + 1], [5], [2**63]], dtype=np.uint64),
        [[2**63 + 1], [5], [2**63], [-1]],
        [[2**63 + 1], [5], [2**63], [None]],
        pl.DataFrame({"a": pl.Series([2**63 + 1, 5, 2**63, None], dtype=pl.UInt64)}),
    ],
    ids=["uint64", "beside a negative", "beside None", "polars"],
)
def test_integers_beyond_64_signed_bits(labels):
    partitions = read(labels)
    assert partitions.codes[:, 0].tolist() == [2, 0, 1, -1][: partitions.n_instances]
    assert names_of(partitions) == [[5, 2**63, 2**63 + 1]]


def test_any_integer_of_python_is_a_label():
    assert names_of(Partitions.of([[2**70], [1], [2**70 + 1]])) == [[1, 2**70, 2**70 + 1]]


def test_far_apart_and_near_integers_decode_to_integers():
    # One column is encoded by sorting and one by a table; both must end up in one integer type.
    table = np.array([[10**15, 3], [2**20, 5]], dtype=np.uint64)
    partitions = Partitions.of(table)
    back = partitions.decode(partitions.codes)
    assert back.dtype == np.int64
    assert back.tolist() == table.tolist()


@pytest.mark.parametrize(
    ("labels", "value"),
    [
        (np.array([[1.0], [2.0**53]]), "9007199254740992"),
        (np.array([[1.0], [2.0**24]], dtype=np.float32), "16777216"),
        (np.array([[1], [2.0**60]], dtype=object), str(2**60)),
        (pd.DataFrame({"0": [1, HUGE, None]}), "9007199254740992"),
    ],
    ids=["float64", "float32", "object", "pandas"],
)
def test_floats_that_lost_digits_are_refused(labels, value):
    message = (
        f"'0' has the label {value} in row 1, which is too large for a float .* Hint: pass integers or str"
    )
    with pytest.raises(ValueError, match=message):
        read(labels)


UTC = dt.UTC
DATES = {
    "datetime64[ns]": np.array([["2021-01-01"], ["2020-01-01"], ["NaT"]], dtype="M8[ns]"),
    "datetime64[D]": np.array([["2021-01-01"], ["2020-01-01"], ["NaT"]], dtype="M8[D]"),
    "timedelta64": np.array([[2], [1], ["NaT"]], dtype="m8[Y]"),
    "pandas": pd.DataFrame({"a": pd.to_datetime(["2021-01-01", "2020-01-01", None])}),
    "pandas with time zone": pd.DataFrame(
        {"a": pd.to_datetime(["2021-01-01", "2020-01-01", None]).tz_localize("Europe/Berlin")}
    ),
    "polars": pl.DataFrame({"a": [dt.date(2021, 1, 1), dt.date(2020, 1, 1), None]}),
    "polars with time zone": pl.DataFrame(
        {"a": [dt.datetime(2021, 1, 1, tzinfo=UTC), dt.datetime(2020, 1, 1, tzinfo=UTC), None]}
    ),
    "objects": [[dt.date(2021, 1, 1)], [dt.date(2020, 1, 1)], [None]],
}


@pytest.mark.parametrize("negative", ["missing", "noise"])
@pytest.mark.parametrize("kind", DATES)
def test_dates_are_labels(kind, negative):
    # A date in nanoseconds must not turn into a number, nor its NaT into a negative one.
    partitions = read(DATES[kind], negative=negative)
    assert partitions.codes[:, 0].tolist() == [1, 0, -1]
    first, second = partitions.categories[0]
    assert not isinstance(first, int)
    assert first < second
    again = partitions.encode(DATES[kind])
    np.testing.assert_array_equal(again, partitions.codes)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([[b"v"], [b"u"], [b""]]),
        [[b"v"], [b"u"], [None]],
        pl.DataFrame({"0": [b"v", b"u", None]}),
    ],
    ids=["array", "list", "polars"],
)
def test_bytes_are_labels(labels):
    partitions = read(labels)
    assert partitions.codes[:, 0].tolist() == [1, 0, -1]
    assert names_of(partitions) == [[b"u", b"v"]]


def test_tuples_are_labels():
    assert Partitions.of({"a": [(1, 2), (0, 5), (1, 2)]}).codes[:, 0].tolist() == [1, 0, 1]


# --- negative numbers ---------------------------------------------------------------------------------------

NOISY = [[0, -1], [-1, 4], [-7, 4], [0, 5], [2, -1]]
NOISY_TABLES = {
    "int": np.array(NOISY),
    "float": np.array(NOISY, dtype=float),
    "object": np.array(NOISY, dtype=object),
    "pandas": pd.DataFrame(NOISY),
    "polars": pl.DataFrame(NOISY, orient="row"),
}


@pytest.mark.parametrize("kind", NOISY_TABLES)
def test_noise_makes_each_instance_a_cluster_of_its_own(kind):
    partitions = Partitions.of(NOISY_TABLES[kind], negative="noise")
    assert partitions.observed.all()
    assert partitions.codes.tolist() == [[0, 2], [2, 0], [3, 0], [0, 1], [1, 3]]
    assert names_of(partitions) == [[0, 2, -1, -1], [4, 5, -1, -1]]


@pytest.mark.parametrize("kind", NOISY_TABLES)
def test_negatives_are_missing_by_default(kind):
    partitions = read(NOISY_TABLES[kind])
    assert partitions.codes.tolist() == [[0, -1], [-1, 0], [-1, 0], [0, 1], [1, -1]]
    assert names_of(partitions) == [[0, 2], [4, 5]]


@pytest.mark.parametrize("column", [[-1, None, 3, -1], ["u", None, "v", -1], [np.nan, -2, -1, 0]])
def test_noise_is_not_missing(column):
    partitions = read({"a": column, "b": [0, 0, 1, 1]}, negative="noise")
    missing = [value is None or value != value for value in column]
    np.testing.assert_array_equal(partitions.codes[:, 0] < 0, missing)
    noise = [p for p, value in enumerate(column) if isinstance(value, (int, float)) and value < 0]
    codes = partitions.codes[noise, 0]
    assert len(set(codes.tolist())) == len(noise)
    assert all(np.count_nonzero(partitions.codes[:, 0] == code) == 1 for code in codes)


def test_a_column_of_noise_alone_is_a_clustering():
    partitions = Partitions.of([[-1, 0], [-1, 0]], negative="noise")
    assert partitions.codes.tolist() == [[0, 0], [1, 0]]


# --- ids and joins ------------------------------------------------------------------------------------------


def test_outer_join_keeps_first_seen_order():
    first = pd.Series(["u", "v", "u"], index=["cleo", "ann", "bob"])
    second = pd.Series([5, 6, 5], index=["dan", "bob", "cleo"])
    for labels in (
        {"a": first, "b": second},
        [first.rename("a"), second.rename("b")],
        {"a": first.to_dict(), "b": second.to_dict()},
    ):
        partitions = Partitions.of(labels)
        assert partitions.index.tolist() == ["cleo", "ann", "bob", "dan"]
        assert partitions.codes.tolist() == [[0, 0], [1, -1], [0, 1], [-1, 0]]
        assert partitions.names == ("a", "b")


def test_equal_ids_in_another_order_are_joined_too():
    partitions = Partitions.of({"a": pd.Series([0, 1, 2], index=[5, 6, 7]), "b": {7: "x", 5: "y", 6: "y"}})
    assert partitions.index.tolist() == [5, 6, 7]
    assert partitions.codes.tolist() == [[0, 1], [1, 1], [2, 0]]


@pytest.mark.parametrize("labels", [{"a": pd.Series([4, 3], index=["x", "y"])}, {"a": {"x": 4, "y": 3}}])
def test_a_single_column_with_ids(labels):
    partitions = Partitions.of(labels)
    assert partitions.codes.tolist() == [[1], [0]]
    assert partitions.index.tolist() == ["x", "y"]


def test_ids_of_several_levels():
    ids = pd.MultiIndex.from_tuples([("p", 1), ("p", 2), ("q", 1)])
    frame = pd.DataFrame({"a": [0, 1, 1]}, index=ids)
    assert Partitions.of(frame).index.tolist() == [("p", 1), ("p", 2), ("q", 1)]
    joined = Partitions.of({"a": frame["a"].iloc[:2], "b": frame["a"].iloc[1:]})
    assert joined.index.tolist() == [("p", 1), ("p", 2), ("q", 1)]
    assert joined.codes.tolist() == [[0, -1], [1, 0], [-1, 0]]
    mapping = Partitions.of([{("p", 1): 0, ("q", 1): 1}])
    assert mapping.index.tolist() == [("p", 1), ("q", 1)]


def test_huge_ids_of_both_signs_stay_different():
    partitions = Partitions.of({"a": {2**63: 0, -1: 1, 2**63 + 1: 1}})
    assert partitions.index.tolist() == [2**63, -1, 2**63 + 1]


def test_pandas_index_gives_ids_unless_it_only_counts():
    assert Partitions.of(pd.DataFrame({"a": [0, 1]})).index is None
    assert Partitions.of(pd.DataFrame({"a": [0, 1]}, index=[1, 2])).index.tolist() == [1, 2]
    assert Partitions.of(pd.DataFrame({"a": [0, 1]}, index=["u", "v"])).index.tolist() == ["u", "v"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_ids_from_a_column(frame):
    partitions = Partitions.of(frame({"a": [1, 2], "id": ["u", "v"], "b": [0, 0]}), index="id")
    assert partitions.index.tolist() == ["u", "v"]
    assert partitions.names == ("a", "b")
    assert partitions.n_columns == 2


@pytest.mark.parametrize(
    "ids",
    [
        ["u", "v"],
        np.array(["u", "v"]),
        pd.Index(["u", "v"]),
        pl.Series(["u", "v"]),
        [1, "v"],
        [(1, 2), (1, 3)],
    ],
    ids=["list", "array", "pandas", "polars", "mixed", "tuples"],
)
@pytest.mark.parametrize("labels", [[[0, 1], [1, 1]], pl.DataFrame({"a": [0, 1]}), {"a": [0, 1]}])
def test_ids_given_beside_the_labels(ids, labels):
    assert Partitions.of(labels, index=ids).index.tolist() == list(ids)


def test_names_of_columns():
    assert Partitions.of([[0, 1]]).names == ("0", "1")
    assert Partitions.of(pd.DataFrame([[0, 1]], columns=[5, "x"])).names == ("5", "x")
    assert Partitions.of([pd.Series([0], name="p"), pd.Series([0])]).names == ("p", "1")


# --- what never changes -------------------------------------------------------------------------------------


def test_all_arrays_are_read_only():
    partitions = Partitions.of({"a": {"x": 1, "y": 2}, "b": {"x": "u", "z": "v"}})
    for one in (partitions, partitions.take([0, 2]), partitions.fill(np.zeros((3, 2), dtype=int))):
        arrays = [one.codes, one.index, one.observed, one.seen, one.offsets, one.n_clusters_per_partition]
        for array in [*arrays, *one.categories, one.distinct.codes, one.distinct.counts, one.inverse]:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[0]
    with pytest.raises(AttributeError):
        partitions.codes = np.zeros((3, 2))


def test_input_is_untouched_and_not_shared():
    for dtype in (np.int8, np.int64, float, object):
        table = with_negatives(dtype)
        before, ids = table.copy(), np.array([f"row{p}" for p in range(5)])
        partitions = Partitions.of(table, index=ids)
        np.testing.assert_array_equal(table, before)
        table[:] = 0
        ids[:] = "other"
        np.testing.assert_array_equal(partitions.codes, CODES)
        assert partitions.index.tolist() == [f"row{p}" for p in range(5)]
    frame = pd.DataFrame(COLUMNS, index=list("pqrst"))
    before = frame.copy()
    Partitions.of(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_partitions_pass_through():
    partitions = Partitions.of(ROWS)
    assert Partitions.of(partitions) is partitions


def test_distinct_is_computed_once():
    partitions = Partitions.of(ROWS)
    assert partitions.distinct is partitions.distinct


@pytest.mark.parametrize(
    ("k", "dtype"),
    [(1, np.int8), (128, np.int8), (129, np.int16), (32768, np.int16), (32769, np.int32)],
)
def test_codes_have_the_smallest_type(k, dtype):
    twice = np.repeat(np.arange(k), 2)
    partitions = Partitions.of(np.column_stack([twice, np.zeros(2 * k, dtype=int)]))
    assert partitions.codes.dtype == dtype
    np.testing.assert_array_equal(partitions.codes[:, 0], twice)


@pytest.mark.parametrize("n", [20, 200, 100_000])
def test_a_column_of_ids_is_refused_by_name(n):
    groups = np.arange(n) % 3
    with pytest.raises(ValueError, match=r"'id' has a different label in every row\. Hint: if it holds ids"):
        Partitions.of({"id": np.arange(n), "a": groups})
    kept = Partitions.of(pd.DataFrame({"id": np.arange(n), "a": groups}), index="id")
    assert kept.names == ("a",)


def test_nearly_every_label_once_is_as_bad():
    ids = np.arange(100)
    ids[:4] = -1  # what nobody saw does not count
    ids[4:6] = 7
    with pytest.raises(ValueError, match=r"'id' has .* in nearly every row \(93 of 96 occur once\)\. Hint: "):
        Partitions.of({"id": ids, "a": np.arange(100) % 3})
    ids[6:12] = 7
    assert Partitions.of({"id": ids, "a": np.arange(100) % 3}).n_partitions == 2


def test_noise_is_no_id():
    noise = np.where(np.arange(100) < 90, -1, np.arange(100) % 2)
    assert Partitions.of({"a": noise, "b": np.arange(100) % 3}, negative="noise").n_partitions == 2
    with pytest.raises(ValueError, match="'a' has a different label in every row"):
        Partitions.of({"a": np.where(np.arange(100) < 50, -1, np.arange(100))}, negative="noise")


class TestStrangeValues:
    def test_integers_of_128_bits(self):
        wide = pl.DataFrame({"a": pl.Series([2**70, 1, 2**70, None], dtype=pl.Int128), "b": [0, 1, 0, 0]})
        table = Partitions.of(wide)
        assert table.codes[:, 0].tolist() == [1, 0, 1, -1]
        assert table.categories[0].tolist() == [1, 2**70]

    @pytest.mark.parametrize("rows", [[(0, 1), (0,)], ((0, 1), (0,)), [np.array([0, 1]), np.array([0])]])
    def test_ragged_rows_are_named(self, rows):
        for given in (rows, iter(rows)):
            with pytest.raises(ValueError, match=r"row 1 has 1 labels, row 0 has 2\. Hint: "):
                Partitions.of(given)

    def test_cells_of_several_values_are_labels_or_named(self):
        assert Partitions.of([(None, ()), (1, (2, 3))], unobserved="keep").codes.tolist() == [[-1, 0], [0, 1]]
        with pytest.raises(TypeError, match=r"'1' holds something that cannot be a label .* Hint: "):
            Partitions.of([(0, []), (1, [2, 3])])

    def test_nan_beside_text_is_missing(self):
        table = Partitions.of(np.array([["a", "x"], [np.nan, "x"]]))  # NumPy makes it the text "nan"
        assert table.codes.tolist() == [[0, 0], [-1, 0]]

    @pytest.mark.parametrize("kind", [Decimal, Fraction])
    def test_exact_numbers_are_numbers(self, kind):
        table = Partitions.of([[kind(-1), 0], [kind(2), 0], [2, 0], [kind(10) ** 30, 0]])
        assert table.codes[:, 0].tolist() == [-1, 0, 0, 1]
        assert table.categories[0].tolist() == [2, 10**30]
        with pytest.raises(ValueError, match=r"has the value 2\.5 in row 1, which is not a cluster label"):
            Partitions.of([[kind(1)], [kind("2.5")]])

    @pytest.mark.parametrize("value", ["NaN", "Infinity"])
    def test_decimals_that_are_no_numbers(self, value):
        labels = [[Decimal(value), 0], [Decimal(1), 0]]
        if value == "Infinity":
            with pytest.raises(ValueError, match="label inf in row 0"):
                Partitions.of(labels)
        else:
            assert Partitions.of(labels).codes[:, 0].tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"a": ([0, 1], ["x", "y"])}, {"negative": "bogus"}, "'negative' parameter"),
        ({"a": ([0, 1], ["x", "y"])}, {"unobserved": "bogus"}, "'unobserved' parameter"),
        ({"a": ([0, 1], ["x", "y"])}, {"index": np.array([1])}, "'a' has 2 codes for 1 rows"),
        ({"a": ([0, 1], ["x", "y"]), "b": ([0], ["x"])}, {}, "'b' has 1 codes for 2 rows"),
        ({"a": ([0, 2], ["x", "y"])}, {}, "'a' has codes other than -1 to 1"),
        ({"a": ([0, -2], ["x", "y"])}, {}, "'a' has codes other than -1 to 1"),
        ({"a": ([0.5, 1], ["x", "y"])}, {}, "'a' has codes other than -1 to 1"),
        ({"a": ([], ["x"])}, {}, "'a' has 0 codes for 0 rows"),
        ({}, {}, "there are no columns"),
    ],
)
def test_codes_are_checked(columns, options, message):
    with pytest.raises(ValueError, match=rf"{message}.*Hint: "):
        Partitions.of_codes(columns, **options)


def test_ids_that_never_meet_are_pointed_out():
    with pytest.warns(UserWarning, match=r"'a' starts with row 0 \(id 1\), 'b' with row 2 \(id '1'\)"):
        Partitions.of({"a": {1: 0, 2: 1}, "b": {"1": 0, "2": 1}})


def test_repr():
    assert repr(Partitions.of(ROWS)) == "Partitions(5 instances, 2 base clusterings, 20.0% missing)"


# --- distinct rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "ks"),
    [(300, (2, 3)), (500, (3, 2, 4, 2)), (60, (20,) * 40), (2000, (15,) * 16), (700, (300, 2, 300, 2) * 5)],
    ids=["few", "some", "40 columns of 20", "16 columns of 15", "uneven"],
)
def test_distinct_rows_are_those_of_numpy(n, ks):
    codes = random_codes(n, ks, seed=n)
    # Rows that repeat, also where the key of a row does not fit in 64 bits.
    codes = codes[np.random.default_rng(1).integers(0, n, n)] if n < 100 else np.vstack([codes, codes[::3]])
    partitions = read(codes)
    rows, counts = np.unique(partitions.codes, axis=0, return_counts=True)
    distinct = partitions.distinct
    order = np.lexsort(distinct.codes.T[::-1])
    np.testing.assert_array_equal(distinct.codes[order], rows)
    np.testing.assert_array_equal(distinct.counts[order], counts)
    np.testing.assert_array_equal(distinct.codes[partitions.inverse], partitions.codes)
    assert distinct.codes.dtype == partitions.codes.dtype
    assert distinct.n_instances == partitions.n_instances == len(codes)


def test_distinct_tells_rows_apart_that_differ_in_one_entry_of_a_wide_table():
    # 40 columns of 20 clusters: 21**40 possible rows; each pair below differs in a single column.
    base = np.tile(np.arange(20)[:, None], (1, 40))
    rows = [np.zeros(40, dtype=int)]
    for j in range(40):
        row = np.zeros(40, dtype=int)
        row[j] = 1
        rows.append(row)
    partitions = Partitions.of(np.vstack([base, rows, rows]))
    distinct = partitions.distinct
    # The first row of both blocks is the row of zeros in `base`; the other 40 occur twice.
    assert len(distinct.counts) == 20 + 40
    assert sorted(distinct.counts.tolist()) == [1] * 19 + [2] * 40 + [3]


def test_order_of_distinct_rows_does_not_depend_on_the_order_of_rows():
    codes = random_codes(400, (4, 3, 5))
    order = np.random.default_rng(3).permutation(len(codes))
    plain, shuffled = Partitions.of(codes), Partitions.of(codes[order])
    np.testing.assert_array_equal(plain.distinct.codes, shuffled.distinct.codes)
    np.testing.assert_array_equal(plain.distinct.counts, shuffled.distinct.counts)
    np.testing.assert_array_equal(plain.inverse[order], shuffled.inverse)


@pytest.mark.parametrize("ks", [(4, 3, 5), (20,) * 6, (2, 2, 2)], ids=["few", "many", "tied"])
def test_canonical_rows_depend_neither_on_names_nor_on_order(ks):
    codes = random_codes(300, ks, missing=0.2)
    rng = np.random.default_rng(4)
    rows, columns = rng.permutation(len(codes)), rng.permutation(len(ks))
    names = [np.append(rng.permutation(k), -1) for k in ks]
    renamed = np.column_stack([name[column] for name, column in zip(names, codes.T, strict=True)])
    plain, other = Partitions.of(codes), Partitions.of(renamed[rows][:, columns])
    for first, second in zip(plain.canonical.rows, other.canonical.rows, strict=True):
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(plain.inverse[rows], other.inverse)
    np.testing.assert_array_equal(columns[other.canonical.bases], plain.canonical.bases)


def test_canonical_rows_are_the_distinct_rows_in_other_terms():
    partitions = Partitions.of(random_codes(300, (4, 3, 5), missing=0.2))
    form, distinct = partitions.canonical, partitions.distinct
    np.testing.assert_array_equal(form.rows.counts, distinct.counts)
    stacked = np.where(form.rows.codes >= 0, form.clusters[form.rows.codes + form.rows.offsets[:-1]], -1)
    given = np.where(distinct.codes >= 0, distinct.codes + partitions.offsets[:-1], -1)
    np.testing.assert_array_equal(stacked, given[:, form.bases])


def test_clusters_of_equal_sizes_are_told_apart_by_who_is_in_them():
    # Three clusters of four in each base; only the second base and the rows tell those of the first apart.
    table = np.repeat([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 1], [2, 2], [2, 2], [2, 0]], 4, axis=0)
    swapped = np.column_stack([np.array([2, 0, 1])[table[:, 0]], table[:, 1]])
    first, second = Partitions.of(table), Partitions.of(swapped[::-1])
    np.testing.assert_array_equal(first.canonical.rows.codes, second.canonical.rows.codes)
    np.testing.assert_array_equal(first.inverse, second.inverse[::-1])


# --- rows with counts ---------------------------------------------------------------------------------------


def test_counts_stay_with_their_rows():
    partitions = Partitions.of(random_codes(400, (4, 3), missing=0.3), unobserved="keep")
    rows = partitions.distinct
    assert rows.n_rows < rows.n_instances == 400
    np.testing.assert_array_equal(rows.n_seen, partitions.n_seen)
    assert rows.missing_share == partitions.missing_share
    np.testing.assert_array_equal(rows.take([3, 1]).counts, rows.counts[[3, 1]])
    np.testing.assert_array_equal(rows.choose([1]).counts, rows.counts)
    np.testing.assert_array_equal(rows.fill(rows.codes).counts, rows.counts)
    assert rows.choose([1]).distinct.n_instances == 400
    np.testing.assert_array_equal(np.sort(rows.repeat().codes, axis=0), np.sort(partitions.codes, axis=0))
    np.testing.assert_array_equal(rows.n_shared, partitions.n_shared)


def test_sample_follows_from_the_labels_and_not_from_their_order():
    codes = random_codes(400, (4, 3, 5))
    first, second = (
        Partitions.of(table).sample(100, np.random.RandomState(0)) for table in (codes, codes[::-1])
    )
    assert first.n_instances == second.n_instances == 100
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_array_equal(first.counts, second.counts)


# --- indicator and co-association ---------------------------------------------------------------------------


def loop_coassociation(codes, normalize):
    n, m = codes.shape
    out = np.empty((n, n))
    for p in range(n):
        for q in range(n):
            both = [i for i in range(m) if codes[p, i] >= 0 and codes[q, i] >= 0]
            agree = sum(codes[p, i] == codes[q, i] for i in both)
            if normalize == "partitions":
                out[p, q] = agree / m
            else:
                out[p, q] = agree / len(both) if both else np.nan
    return out


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("normalize", ["pairs", "partitions"])
def test_coassociation_is_that_of_plain_loops(missing, normalize):
    codes = random_codes(40, (3, 5, 2, 4), missing)
    if missing > 0.5:
        codes[5:20, 0] = -1
    partitions = read(codes)
    np.testing.assert_allclose(
        partitions.coassociation(normalize=normalize),
        loop_coassociation(codes, normalize),
        rtol=1e-15,
        equal_nan=True,
    )


def test_coassociation_of_instances_never_seen_together_is_unknown():
    partitions = Partitions.of([[0, None], [None, 0]])
    assert np.isnan(partitions.coassociation()[0, 1])
    assert partitions.coassociation(normalize="partitions")[0, 1] == 0.0


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_indicator_is_one_hot(missing):
    codes = random_codes(50, (3, 5, 2), missing)
    partitions = Partitions.of(codes)
    dense = np.zeros((50, 10))
    for p, row in enumerate(codes):
        for i, (lo, _) in enumerate(pairwise([0, 3, 8, 10])):
            if row[i] >= 0:
                dense[p, lo + row[i]] = 1.0
    np.testing.assert_array_equal(partitions.indicator.toarray(), dense)
    assert partitions.indicator.nnz == np.count_nonzero(codes >= 0)


def test_large_dense_coassociation_is_refused():
    partitions = Partitions.of(np.arange(30)[:, None] % 3)
    with pytest.raises(
        ValueError, match=r"30 instances .* Hint: there are 3 distinct rows; .* max_instances"
    ):
        partitions.coassociation(max_instances=29)
    assert partitions.coassociation(max_instances=30).shape == (30, 30)


# --- take and fill ------------------------------------------------------------------------------------------


def test_take():
    partitions = Partitions.of(pd.DataFrame(COLUMNS, index=list("pqrst")))
    mask = np.array([True, False, False, True, True])
    for rows in (mask, mask.tolist(), [0, 3, 4], np.array([0, 3, 4])):
        part = partitions.take(rows)
        np.testing.assert_array_equal(part.codes, CODES[mask])
        assert part.index.tolist() == ["p", "s", "t"]
        # Clusters keep their numbers, also those that nobody is in any more.
        assert names_of(part) == CATEGORIES
    assert partitions.take([4, 0]).codes.tolist() == CODES[[4, 0]].tolist()


def test_take_does_not_carry_over_what_was_computed():
    partitions = Partitions.of(ROWS)
    assert len(partitions.inverse) == 5
    assert partitions.observed.shape == (5, 2)
    part = partitions.take([0, 2])
    assert len(part.inverse) == 2
    assert part.observed.shape == part.indicator.toarray()[:, :2].shape == (2, 2)


def test_fill():
    partitions = Partitions.of(ROWS)
    completed = np.where(CODES < 0, 1, CODES)
    filled = partitions.fill(completed)
    np.testing.assert_array_equal(filled.codes, completed)
    assert filled.codes.dtype == partitions.codes.dtype
    assert names_of(filled) == CATEGORIES
    np.testing.assert_array_equal(partitions.codes, CODES)
    completed[:] = 0
    assert filled.codes.max() == 2


# --- new instances ------------------------------------------------------------------------------------------

FITTED = Partitions.of(pd.DataFrame({"bank_a": [3, 7, 9], "bank_b": ["x", None, "y"]}, index=list("pqr")))


def test_encode_gives_the_codes_of_the_table_itself():
    for tables in (INTEGER_TABLES, TEXT_TABLES):
        for kind, labels in tables.items():
            partitions = Partitions.of(labels)
            np.testing.assert_array_equal(partitions.encode(labels), partitions.codes, err_msg=kind)


def test_encode_by_name():
    frame = pl.DataFrame({"bank_b": ["y", "x", None], "bank_a": [9, None, 3]})
    assert FITTED.encode(frame).tolist() == [[2, 1], [-1, 0], [0, -1]]
    assert FITTED.encode({"bank_b": ["y"]}).tolist() == [[-1, 1]]
    assert FITTED.encode({"bank_b": {"new": "y"}, "bank_a": {"newer": 7}}).tolist() == [[-1, 1], [1, -1]]


def test_encode_by_position():
    assert FITTED.encode([[9, "x"], [None, "y"]]).tolist() == [[2, 0], [-1, 1]]
    assert FITTED.encode(np.array([[9.0, None]], dtype=object)).tolist() == [[2, -1]]


def test_encode_knows_columns_that_were_left_out():
    with pytest.warns(UserWarning, match="ignored"):
        partitions = Partitions.of({"a": [1, 2], "void": [None, None], "b": [0, 1]})
    assert partitions.encode([[2, 5, 0]]).tolist() == [[1, 0]]
    assert partitions.encode({"void": [5], "b": [1]}).tolist() == [[-1, 1]]


def test_encode_partitions_by_name():
    other = Partitions.of(pd.DataFrame({"bank_b": ["y", "y", "x"], "bank_a": [3, None, 9]}))
    assert FITTED.encode(other).tolist() == [[0, 1], [-1, 1], [2, 0]]
    assert FITTED.encode(other.take([2])).tolist() == [[2, 0]]
    np.testing.assert_array_equal(FITTED.encode(FITTED), FITTED.codes)


def test_encode_partitions_is_encode_of_their_table():
    codes = random_codes(80, (4, 3, 5))
    partitions = Partitions.of(codes)
    new = codes[codes[:, 1] != 0]
    np.testing.assert_array_equal(partitions.encode(Partitions.of(new)), partitions.encode(new))


def test_encode_partitions_reports_what_it_does_not_know():
    with pytest.raises(ValueError, match=r"unknown base clustering 'bank_aa'. Hint: did you mean 'bank_a'\?"):
        FITTED.encode(Partitions.of({"bank_aa": [3]}))
    other = Partitions.of({"bank_a": {"u": 3, "v": 4}})
    with pytest.raises(ValueError, match=r"'bank_a' has no cluster 4, found in row 1 \(id 'v'\)\. Hint: "):
        FITTED.encode(other)


def test_noise_is_no_known_cluster_for_a_new_instance():
    labels = [[0, 1], [-1, 1], [-1, 0]]
    partitions = Partitions.of(labels, negative="noise")
    expected = [[0, 1], [-1, 1], [-1, 0]]
    assert partitions.encode(labels).tolist() == expected
    assert partitions.encode(Partitions.of(labels, negative="noise")).tolist() == expected


@pytest.mark.parametrize(
    "labels", [{"bank_a": [3, 8]}, [[3, None], [8, "x"]], pl.DataFrame({"bank_a": [3, 8]})]
)
def test_encode_unknown_label_names_row_column_and_value(labels):
    with pytest.raises(
        ValueError, match=r"'bank_a' has no cluster 8, found in row 1\. Hint: say unknown='missing'"
    ):
        FITTED.encode(labels)


def test_encode_counts_unknown_labels_that_are_read_as_missing():
    labels = {"bank_a": [3, 8, 8, 9], "bank_b": ["x", "zz", "x", None]}
    message = r"3 labels of the new instances .* count as missing: 8 of 'bank_a', 'zz' of 'bank_b'\."
    with pytest.warns(UserWarning, match=message):
        codes = FITTED.encode(labels, unknown="missing")
    known = FITTED.encode({"bank_a": [3, None, None, 9], "bank_b": ["x", None, "x", None]})
    assert codes.tolist() == known.tolist()
    with pytest.raises(ValueError, match=r"'unknown' parameter must be 'error' or 'missing'. Got 'drop'"):
        FITTED.encode(labels, unknown="drop")


def test_encode_unknown_label_names_the_id():
    frame = pd.DataFrame({"bank_b": ["x", "zz", "zz", "zz"]}, index=["u", "v", "w", "t"])
    message = r"'bank_b' has no cluster 'zz', found in row 1 \(id 'v'\) and 2 others\. Hint: "
    with pytest.raises(ValueError, match=message):
        FITTED.encode(frame)


def test_encode_unknown_column():
    with pytest.raises(ValueError, match=r"unknown base clustering 'bnk_b'. Hint: did you mean 'bank_b'\?"):
        FITTED.encode({"bnk_b": ["x"]})
    with pytest.raises(ValueError, match=r"clustering 'zzz'. Hint: there are 'bank_a', 'bank_b'\."):
        FITTED.encode({"zzz": ["x"]})


def test_encode_wrong_number_of_columns():
    with pytest.raises(ValueError, match=r"has 3 columns, the fitted one has 2\. Hint: keep a column"):
        FITTED.encode([[3, "x", 1]])


def test_encode_leaves_strings_and_numbers_apart():
    with pytest.raises(ValueError, match=r"'bank_a' has no cluster '3', found in row 0"):
        FITTED.encode({"bank_a": ["3"]})


# --- and back -----------------------------------------------------------------------------------------------


def test_decode_integer_arrays():
    for kind in ("int64", "float64", "nested lists", "masked", "object with None"):
        partitions = Partitions.of(INTEGER_TABLES[kind])
        back = partitions.decode(partitions.codes)
        assert back.dtype == np.int64
        np.testing.assert_array_equal(back, with_negatives(np.int64))


def test_decode_other_arrays():
    for kind in ("nested lists", "object", "str, empty where missing"):
        partitions = Partitions.of(TEXT_TABLES[kind])
        assert partitions.decode(partitions.codes).tolist() == TEXT_TABLES["nested lists"]
    mixed = [[1, "a"], [2, None], [None, "b"]]
    partitions = Partitions.of(mixed)
    assert partitions.decode(partitions.codes).tolist() == mixed
    booleans = [[True, 3], [False, 4]]
    partitions = Partitions.of({"a": [True, False], "b": [3, 4]})
    back = partitions.decode(partitions.codes).tolist()
    assert back == booleans
    assert back[0][0] is True


def test_decode_keeps_noise_and_missing_apart():
    labels = [[-1, 0], [None, 1], [2, 2]]
    partitions = Partitions.of(labels, negative="noise")
    assert partitions.decode(partitions.codes).tolist() == labels
    complete = [[-1, 0], [5, -1]]
    partitions = Partitions.of(complete, negative="noise")
    back = partitions.decode(partitions.codes)
    assert back.tolist() == complete
    assert back.dtype == np.int64


@pytest.mark.parametrize("columns", [COLUMNS, TEXT])
@pytest.mark.parametrize(
    "index",
    [None, list("pqrst"), pd.MultiIndex.from_product([["u"], range(5)])],
    ids=["none", "ids", "levels"],
)
def test_decode_pandas(columns, index):
    frame = pd.DataFrame(columns, index=index)
    partitions = Partitions.of(frame)
    back = partitions.decode(partitions.codes)
    assert isinstance(back, pd.DataFrame)
    assert back.index.tolist() == frame.index.tolist()
    assert isinstance(back.index, pd.MultiIndex) == isinstance(index, pd.MultiIndex)
    assert back.columns.tolist() == ["a", "b"]
    for name, values in columns.items():
        assert back[name].isna().tolist() == [value is None for value in values]
        assert back[name].dropna().tolist() == [value for value in values if value is not None]
    whole = np.where(partitions.codes < 0, 0, partitions.codes)
    assert partitions.decode(whole)["a"].dtype.kind == ("i" if columns is COLUMNS else "O")


def test_decode_joined_series_is_a_frame_with_their_ids():
    partitions = Partitions.of(
        {"a": pd.Series([1, 2], index=["x", "y"]), "b": pd.Series(["u", "v"], index=["y", "z"])}
    )
    back = partitions.decode(partitions.codes)
    assert back.index.tolist() == ["x", "y", "z"]
    assert back["b"].tolist()[1:] == ["u", "v"]
    assert back["a"].tolist()[:2] == [1, 2]
    assert back.isna().to_numpy().tolist() == [[False, True], [False, False], [True, False]]


@pytest.mark.parametrize("columns", [COLUMNS, TEXT, {"a": [True, None, False]}])
def test_decode_polars(columns):
    frame = pl.DataFrame(columns)
    partitions = read(frame)
    assert partitions.decode(partitions.codes).equals(frame)


def test_decode_gives_back_columns_that_were_left_out():
    labels = [[1, None, 4], [2, None, 3]]
    for table, missing in [(np.array(labels, dtype=object), -1), (pl.DataFrame(labels, orient="row"), None)]:
        with pytest.warns(UserWarning, match="ignored"):
            partitions = Partitions.of(table)
        back = partitions.decode(partitions.codes)
        rows = back.tolist() if isinstance(back, np.ndarray) else [list(row) for row in back.rows()]
        assert rows == [[1, missing, 4], [2, missing, 3]]


def test_decode_codes_of_new_instances():
    codes = FITTED.encode({"bank_a": [9, 3, 3, 7], "bank_b": ["x", "y", "x", None]})
    back = FITTED.decode(codes)
    assert back["bank_a"].tolist() == [9, 3, 3, 7]
    assert back["bank_b"].tolist()[:3] == ["x", "y", "x"]


def test_frame_speaks_the_users_kind():
    columns = {"label": np.array([0, 1, 0])}
    assert FITTED.frame(columns).index.tolist() == ["p", "q", "r"]
    assert isinstance(Partitions.of(pl.DataFrame({"a": [0, 1, 1]})).frame(columns), pl.DataFrame)
    with pytest.raises(ValueError, match=r"not a frame\. Hint: "):
        Partitions.of([[0], [1], [1]]).frame(columns)


# --- laws ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_renaming_labels_changes_nothing_but_names(seed):
    rng = np.random.default_rng(seed)
    ks = rng.integers(1, 9, 4)
    codes = random_codes(60, ks, seed=seed)
    plain = Partitions.of(codes)
    np.testing.assert_array_equal(plain.codes, codes)

    # An increasing renaming keeps the codes themselves.
    spread = [np.sort(rng.choice(10**6, k, replace=False)) for k in ks]
    larger = np.column_stack(
        [np.where(c < 0, -1, names[c]) for c, names in zip(codes.T, spread, strict=True)]
    )
    renamed = Partitions.of(larger)
    np.testing.assert_array_equal(renamed.codes, codes)
    assert names_of(renamed) == [names.tolist() for names in spread]

    # Any renaming keeps the partitions: same pairs together, same distinct rows.
    words = [rng.permutation([f"cluster {q}" for q in range(k)]).astype(object) for k in ks]
    text = np.column_stack([np.where(c < 0, None, names[c]) for c, names in zip(codes.T, words, strict=True)])
    worded = Partitions.of(text)
    np.testing.assert_array_equal(worded.coassociation(), plain.coassociation())
    assert sorted(worded.distinct.counts) == sorted(plain.distinct.counts)
    np.testing.assert_array_equal(worded.decode(worded.codes), text)


@pytest.mark.parametrize("seed", range(5))
def test_permuting_rows_permutes_codes(seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(70, (3, 6, 2), seed=seed)
    order = rng.permutation(70)
    words = np.where(codes < 0, "", np.char.add("c", codes.astype(str)))
    for table in (codes, codes * 10**12, words):
        plain, shuffled = Partitions.of(table), Partitions.of(table[order])
        np.testing.assert_array_equal(shuffled.codes, plain.codes[order])
        assert names_of(shuffled) == names_of(plain)


@pytest.mark.parametrize("seed", range(3))
def test_categories_speak_for_the_codes(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(-2, 40, (90, 5)) * 10 ** rng.integers(0, 12, 5)
    partitions = read(table)
    for i, categories in enumerate(partitions.categories):
        assert categories.tolist() == sorted(set(table[table[:, i] >= 0, i].tolist()))
        seen = partitions.observed[:, i]
        np.testing.assert_array_equal(seen, table[:, i] >= 0)
        np.testing.assert_array_equal(categories[partitions.codes[seen, i]], table[seen, i])


# --- errors and warnings ------------------------------------------------------------------------------------

ERRORS = {
    "ragged": ([[0, 1], [0], [1, 1]], ["row 1 has 1 labels", "row 0 has 2"]),
    "ragged by a scalar": ([[0, 1], 5], ["row 1 has 1 labels", "row 0 has 2"]),
    "no rows": (np.empty((0, 3), dtype=int), ["0 sample(s)", "(0, 3)"]),
    "no columns": (np.empty((3, 0), dtype=int), ["0 feature(s)", "(3, 0)"]),
    "empty list": ([], ["0 sample(s)"]),
    "empty inner list": ([[], []], ["0 feature(s)", "(2, 0)"]),
    "empty dict": ({}, ["0 sample(s)"]),
    "empty columns": ({"a": [], "b": []}, ["0 sample(s)", "(0, 2)"]),
    "empty series": ({"a": pd.Series([], dtype=int)}, ["0 sample(s)"]),
    "empty frame": (pd.DataFrame({"a": []}), ["0 sample(s)", "(0, 1)"]),
    "frame without columns": (pd.DataFrame(index=[0, 1]), ["0 feature(s)", "(2, 0)"]),
    "one dimension": (np.array([0, 1, 1]), ["got 1D (3)", "reshape(-1, 1)"]),
    "one dimension of strings": (["u", "v"], ["got 1D (2)"]),
    "a series": (pd.Series([0, 1, 1]), ["got 1D (3)"]),
    "three dimensions": (np.zeros((2, 3, 4)), ["got 3D (2x3x4)"]),
    "never observed": ([[0, 1], [-1, None], [2, 2]], ["row 1."]),
    "never observed, more": ([[0], [None], [None], [None]], ["row 1 and 2 others."]),
    "never observed, id": (
        pd.DataFrame({"a": [0, None], "b": [1, None]}, index=["ann", "bob"]),
        ["row 1 (id 'bob')."],
    ),
    "nothing observed": ([[None, -1], [np.nan, None]], ["every entry", "negative="]),
    "coordinates": (
        np.array([[0, 1.0], [1, 0.25], [1, 0.5]]),
        ["clustering '1'", "value 0.25", "row 1 and 1 other,", "base_partitions"],
    ),
    "coordinates in a frame": (
        pl.DataFrame({"x": [1.0, 2.0], "height": [3.0, 1.85]}),
        ["clustering 'height'", "value 1.85", "row 1,"],
    ),
    "coordinates among objects": (
        np.array([[1, "u"], [0.5, "v"]], dtype=object),
        ["'0'", "value 0.5", "row 1,"],
    ),
    "coordinates with ids": (
        {"a": {"ann": 1, "bob": 0.5}},
        ["clustering 'a'", "value 0.5", "row 1 (id 'bob'),"],
    ),
    "infinity": (np.array([[0, 1.0], [1, np.inf]]), ["clustering '1'", "inf", "row 1."]),
    "infinity among objects": ([["u", 1], [-np.inf, 1]], ["clustering '0'", "inf", "row 1."]),
    "complex": (np.array([[1j]]), ["Complex data not supported"]),
    "duplicate ids": (
        pd.DataFrame({"a": [0, 1, 2]}, index=["u", "v", "u"]),
        ["the id 'u' occurs twice in the table", "row 2"],
    ),
    "duplicate ids in a join": (
        {"a": pd.Series([0, 1]), "b": pd.Series([0, 1], index=[4, 4])},
        ["the id 4 occurs twice in base clustering 'b'", "row 1"],
    ),
    "missing id": (
        {"a": pd.Series([0, 1], index=[1.0, np.nan]), "b": pd.Series([0, 1])},
        ["row 1 of base clustering 'a' has no id"],
    ),
    "missing id in a frame": (
        pd.DataFrame({"a": [0, 1]}, index=["u", None]),
        ["row 1 of the table has no id"],
    ),
    "duplicate names": (pd.DataFrame([[0, 1]], columns=["u", "u"]), ["'u'"]),
    "duplicate names of series": ([pd.Series([0], name="u"), pd.Series([0], name="u")], ["named 'u'"]),
    "names that are equal as text": (pd.DataFrame([[0, 1]], columns=[1, "1"]), ["named '1'"]),
    "unequal lengths": ({"a": [0, 1], "b": [0, 1, 2]}, ["'b' has 3 labels, 'a' has 2"]),
    "ids beside none": ({"a": pd.Series([0, 1]), "b": [0, 1]}, ["'b' has no ids"]),
    "a matrix as a column": ({"a": np.zeros((2, 2))}, ["'a' is not one-dimensional"]),
    "a number as a column": ({"a": 3}, ["'a' is 3"]),
    "a word as a column": ({"a": "abc"}, ["'a' is 'abc'"]),
    "lists as labels": (pd.DataFrame({"a": [[1], [2]]}), ["'a'", "unhashable"]),
    "labels without an order": (
        [[dt.datetime(2020, 1, 1)], [dt.datetime(2020, 1, 1, tzinfo=UTC)]],
        ["'0'", "cannot be sorted"],
    ),
    "a lazy frame": (pl.LazyFrame({"a": [0, 1]}), ["lazy frame", "collect()"]),
    "a sparse matrix": (Partitions.of([[0], [1]]).indicator, ["sparse", "toarray()"]),
    "nothing": (None, ["got None"]),
    "a file name": ("labels.csv", ["got 'labels.csv'"]),
    "a number": (3, ["got 3"]),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_say_where_and_end_in_a_hint(kind):
    labels, parts = ERRORS[kind]
    with pytest.raises((ValueError, TypeError)) as caught:
        Partitions.of(labels)
    message = str(caught.value)
    for part in parts:
        assert part in message
    assert re.search(r"Hint: [^.].*[.?]$", message)


OPTIONS = {
    "negative": ({"negative": "drop"}, "'negative' parameter must be 'missing' or 'noise'. Got 'drop'"),
    "unobserved": ({"unobserved": "drop"}, "'unobserved' parameter must be 'error' or 'keep'. Got 'drop'"),
    "length of ids": ({"index": ["u"]}, "'index' has 1 ids for 2 rows"),
    "shape of ids": ({"index": np.zeros((2, 2))}, "'index' has 2 dimensions"),
    "duplicate ids": ({"index": ["u", "u"]}, "the id 'u' occurs twice in the table (again in row 1)"),
    "missing ids": ({"index": ["u", None]}, "row 1 of the table has no id"),
    "column": ({"index": "custmer"}, "no column 'custmer'. Hint: did you mean 'customer'?"),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_options_that_make_no_sense(kind):
    options, sentence = OPTIONS[kind]
    frame = pl.DataFrame({"customer": [8, 9], "a": [0, 1]})
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        Partitions.of(frame, **options)
    assert "Hint: " in str(caught.value)


@pytest.mark.parametrize("labels", [{"id": [8, 9], "a": [0, 1]}, [[0], [1]]])
def test_only_frames_have_an_id_column(labels):
    with pytest.raises(ValueError, match=r"index='id' names a column, .* Hint: pass the ids themselves"):
        Partitions.of(labels, index="id")


def test_unknown_normalisation():
    with pytest.raises(ValueError, match=r"'normalize' parameter must be .* Got 'rows' instead\. Hint: "):
        Partitions.of(ROWS).coassociation(normalize="rows")


def test_instances_never_observed_can_be_kept():
    partitions = Partitions.of([[0, 1], [-1, -1], [2, 2]], unobserved="keep")
    assert partitions.seen.tolist() == [True, False, True]
    with pytest.raises(ValueError, match="no base clustering saw row 1"):
        Partitions.of(partitions)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([[0, -1, 1], [1, -1, 1]]),
        np.array([[0, np.nan, 1], [1, np.nan, 1]]),
        [[0, None, 1], [1, None, 1]],
        pd.DataFrame({"0": [0, 1], "1": pd.array([None, None], dtype="Int64"), "2": [1, 1]}),
        pl.DataFrame({"0": [0, 1], "1": [None, None], "2": [1, 1]}),
    ],
    ids=["int", "float", "list", "pandas", "polars"],
)
def test_a_column_without_labels_is_ignored_with_a_warning(labels):
    with pytest.warns(UserWarning, match=r"'1' \(column 1\) has no labels .* Hint: ") as caught:
        partitions = Partitions.of(labels)
    assert caught[0].filename == __file__
    assert partitions.codes.tolist() == [[0, 0], [1, 0]]
    assert partitions.names == ("0", "2")
    assert partitions.columns == (0, 2)
    assert partitions.n_columns == 3
    assert partitions.column_names == ("0", "1", "2")


def test_marks_that_rather_say_missing_are_named_with_their_column():
    frame = pd.DataFrame({"bank": ["gold", "?", "gold", "?"], "shop": ["x", "y", "Unknown", "y"]})
    with pytest.warns(UserWarning, match="count as clusters") as told:
        assert Partitions.of(frame).n_clusters_per_partition.tolist() == [2, 3]
    assert str(told[0].message) == (
        "'?' in column 'bank' (2 rows) and 'Unknown' in column 'shop' (1 row) count as clusters. Hint: "
        "if this means that there is no label, replace it by None (in pandas: labels.replace({'?': None}))."
    )
    assert told[0].message.command.endswith("--missing '?' --missing Unknown --missing ''")
    assert Partitions.of(frame.replace({"?": None, "Unknown": None})).missing_share == 3 / 8
    with pytest.warns(UserWarning, match=r"\(1 row\) and 2 more count as clusters"):
        Partitions.of({f"run {j}": ["n/a", "a", "b"] for j in range(7)})


def test_a_sign_beside_its_opposite_is_a_label():
    assert Partitions.of({"marker": ["+", "-", "+"], "run": [0, 1, 0]}).n_clusters_per_partition.tolist() == [
        2,
        2,
    ]


def test_far_more_columns_than_rows_is_warned_about():
    with pytest.warns(
        UserWarning, match=r"31 base clusterings but only 3 instances\. Hint: .* transpose"
    ) as caught:
        Partitions.of(np.zeros((3, 31), dtype=int))
    assert caught[0].filename == __file__
    assert (
        Partitions.of(np.zeros((3, 30), dtype=int)).n_partitions == 30
    )  # no warning, or it would be an error


def test_ids_keep_their_name():
    named = pd.DataFrame({"a": [0, 1, None]}, index=pd.Index(["u", "v", "w"], name="customer"))
    partitions = Partitions.of(named, unobserved="keep")
    assert partitions.decode(partitions.codes).index.name == "customer"
    for library in (pd, pl):
        frame = library.DataFrame({"customer": ["u", "v", "w"], "a": [0, 1, 1], "b": [1, 0, 0]})
        partitions = Partitions.of(frame, index="customer")
        back = partitions.decode(partitions.codes)
        ids = back.index if library is pd else back["customer"]
        assert list(ids) == ["u", "v", "w"]
        # The column of ids may also be there in a new table.
        assert partitions.encode(frame).tolist() == partitions.codes.tolist()
        assert partitions.encode(frame[["customer", "b"]])[:, 0].tolist() == [-1, -1, -1]


class TestCompact:
    def test_a_table_that_was_read_is_itself(self):
        table = Partitions.of([[0, "a"], [1, "b"], [None, "a"]])
        assert table.compact() is table

    def test_clusters_without_members_and_clusterings_without_labels_go(self):
        table = Partitions.of({"x": ["p", "q", "r", None], "y": [None, None, None, "u"], "z": [7, 7, 8, 9]})
        part = table.take([0, 2]).compact()
        assert part.names == ("x", "z")
        assert part.columns == (0, 2)
        assert [c.tolist() for c in part.categories] == [["p", "r"], [7, 8]]
        np.testing.assert_array_equal(part.codes, [[0, 0], [1, 1]])
        np.testing.assert_array_equal(part.offsets, [0, 2, 4])
        assert part.n_columns == 3
        assert part.decode(part.codes)[1].tolist() == ["r", None, 8]
        np.testing.assert_array_equal(part.encode({"x": ["r"], "y": [None], "z": [7]}), [[1, 0]])

    def test_missing_entries_stay_missing(self):
        table = Partitions.of([[0, 1], [1, -1], [2, 0], [-1, 1]])
        part = table.take([1, 3]).compact()
        np.testing.assert_array_equal(part.codes, [[0, -1], [-1, 0]])


class TestOfCodes:
    @pytest.mark.parametrize("negative", ["missing", "noise"])
    @pytest.mark.parametrize("labels", [["b", "a", "c"], [7, -1, 3], ["x", None, "unused"]])
    def test_is_the_table_that_the_codes_spell_out(self, labels, negative):
        codes = np.array([0, 1, 2, 1, -1, 0, 2, 1])
        if labels[2] == "unused":
            codes[codes == 2] = 0
        spelled = {"a": [labels[c] if c >= 0 else None for c in codes], "b": [0, 1] * 4}
        coded = {"a": (codes, labels), "b": ([0, 1] * 4, [0, 1])}
        expected = Partitions.of(spelled, negative=negative, unobserved="keep")
        found = Partitions.of_codes(coded, negative=negative, unobserved="keep")
        np.testing.assert_array_equal(found.codes, expected.codes)
        assert names_of(found) == names_of(expected)
        assert found.names == expected.names

    def test_a_column_without_categories_has_no_label(self):
        with pytest.warns(UserWarning, match="'a' .* has no labels"):
            table = Partitions.of_codes({"a": ([-1, -1], []), "b": ([0, 1], [0, 1])})
        assert table.names == ("b",)

    def test_errors_name_the_row_not_the_category(self):
        codes = np.array([0, 0, 0, 1])
        with pytest.raises(ValueError, match=r"'a' has the value 0.5 in row 3, which is not a cluster label"):
            Partitions.of_codes({"a": (codes, [1.0, 0.5])})

    def test_keeps_ids_and_refuses_what_nobody_saw(self):
        coded = {"a": ([0, -1, 0], ["x"]), "b": ([0, -1, 1], ["u", "v"])}
        with pytest.raises(ValueError, match=r"no base clustering saw row 1 \(id 'q'\)"):
            Partitions.of_codes(coded, index=np.array(["p", "q", "r"]))
        kept = Partitions.of_codes(
            coded, index=np.array(["p", "q", "r"]), index_name="who", unobserved="keep"
        )
        assert kept.index_name == "who"
        assert kept.index.tolist() == ["p", "q", "r"]


def test_choose_takes_some_of_the_clusterings():
    table = Partitions.of({"a": [0, 1, 1], "b": ["x", "y", "x"], "c": [5, None, 5]})
    part = table.choose([2, 0])
    assert part.names == ("c", "a")
    np.testing.assert_array_equal(part.codes, table.codes[:, [2, 0]])
    assert part.encode({"c": [5], "a": [1]}).tolist() == [[0, 1]]


@pytest.mark.parametrize("widths", [(3, 3), (3, 4)])
def test_several_tables_of_features_are_no_labels(widths):
    with pytest.raises(ValueError, match=r"got a list of tables\. Hint: .*fuse_views"):
        Partitions.of([np.zeros((5, width)) for width in widths])
