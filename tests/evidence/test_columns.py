"""How columns are read: planted cases, real tables, an oracle that looks at one cell at a time, and laws."""

import datetime
import math
import re
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.evidence.columns import Column, Columns, read_again, read_columns, split_kinds
from consilience.io.cells import dates_in, numbers_in
from consilience.io.marks import CELL_MARKS

_seconds = settings(max_examples=30, deadline=None, derandomize=True, database=None)


def one(values, *, name="value", kind=None, beside=True):
    """One column, read beside a number so that it may be left out."""
    table = {name: values}
    if beside:
        table["other"] = np.arange(len(values)) ** 2 / 7.0
    frame = pd.DataFrame(table)
    kinds = None if kind is None else {name: kind}
    x, columns = read_columns(frame, name="clinic", kinds=kinds)
    column = columns[name]
    return (x[:, 0] if column.used else None), column, columns


def texts(*values, times=4):
    """Values that occur often enough not to be ids."""
    return list(values) * times


# --- numbers as people write them ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant", "form"),
    [
        (["1", "2.5", "-3"], [1, 2.5, -3], ""),
        (["1e3", "2E-2", "+4"], [1000, 0.02, 4], ""),
        ([" 1 ", "2\t", "3"], [1, 2, 3], ""),
        (["1,234.50", "12,000.00", "999.00"], [1234.5, 12000, 999], "point"),
        (["1.234,50", "12.000,00", "999,00"], [1234.5, 12000, 999], "comma"),
        (["1.234,50", "1.234", "7"], [1234.5, 1234, 7], "comma"),
        (["1,234.50", "1,234", "7"], [1234.5, 1234, 7], "point"),
        (["3,5", "39.0", "215,15"], [3.5, 39, 215.15], "either"),
        (["3,5", "1,234", "7"], [3.5, 1.234, 7], "comma"),
        (["0,123", "1,234", "7"], [0.123, 1.234, 7], "comma"),
        (["1,234,567", "1,234", "7"], [1234567, 1234, 7], "point"),
        (["1.234.567", "1.234", "7"], [1234567, 1234, 7], "comma"),
        (["1 234,50", "12 000,00", "7"], [1234.5, 12000, 7], "comma"),
        (["1'234.50", "12'000.00", "7"], [1234.5, 12000, 7], "point"),
        (["1\N{NO-BREAK SPACE}234", "12\N{NARROW NO-BREAK SPACE}000", "7"], [1234, 12000, 7], "point"),
        (["12 %", "7%", "3.5 %"], [12, 7, 3.5], "point"),
        (["1,234.50 EUR", "€ 12", "7 €"], [1234.5, 12, 7], "point"),
        (["$1,234.50", "-$3", "$7"], [1234.5, -3, 7], "point"),
        (["\N{MINUS SIGN}3", "4", "5"], [-3, 4, 5], "point"),
        ([".5", "1.5", "5."], [0.5, 1.5, 5], ""),
    ],
)
def test_numbers(written, meant, form):
    x, column, _ = one(texts(*written))
    assert column.kind == "number"
    assert x.tolist() == pytest.approx(meant * 4)
    assert (column.form, column.n_missing, column.n_unread) == (form, 0, 0)


@pytest.mark.parametrize("bad", ["1_000", "1,23,4", "1.2.3", "12 34", "1e", "--3", "３", "0x10", "1,2,3"])
def test_what_only_seems_to_be_a_number_is_none(bad):
    found = numbers_in([bad, "x"])
    assert not found.known.any()


def test_three_digits_after_a_comma_are_said_where_nothing_decides():
    x, column, columns = one(texts("1,234", "2,500", "999"))
    assert x[:3].tolist() == [1234, 2500, 999]
    assert "1,234 read as 1234" in column.why
    (remark,) = columns.warnings
    assert "'1,234' is read as 1234" in remark.message
    assert "number:comma" in remark.hint.python
    assert remark.hint.shell == "if it is meant otherwise, say --kind clinic.value=number:comma."
    x, _, columns = one(texts("1,234", "2,500", "999"), kind="number:comma")
    assert x[:3].tolist() == [1.234, 2.5, 999]
    assert not columns.warnings


def test_other_columns_say_which_mark_is_the_decimal_one():
    frame = pd.DataFrame({"a": texts("1.234", "2.500", "999"), "b": texts("3,5", "4,5", "5,25")})
    x, columns = read_columns(frame, name="shop")
    assert x[:3, 0].tolist() == [1234, 2500, 999]
    assert columns["a"].form == "comma"
    assert "'1.234' is read as 1234" in columns.notes[0].message
    frame["c"] = texts("1.5", "2.5", "3.5")  # points too: then a point is one
    assert read_columns(frame, name="shop")[0][:3, 0].tolist() == [1.234, 2.5, 999]


def test_limits_are_the_number_at_the_limit():
    x, column, columns = one(["<0.3", "0.7", "1.2", ">90", "≤ 5", "44", "1", "3"])
    assert x.tolist() == [0.3, 0.7, 1.2, 90, 5, 44, 1, 3]
    assert "read at the limit" in column.why
    assert "3 limits such as" in columns.notes[0].message
    assert not columns.warnings


def test_limits_alone_are_categories():
    _, column, _ = one(texts("<30", "30-40", ">40"))
    assert column.kind == "category"
    assert one(texts("<5", ">=5"))[1].kind == "yes/no"


def test_percents_beside_bare_numbers_are_said():
    _, _, columns = one(texts("12 %", "0.5", "3"))
    assert "of one scale" in columns.warnings[0].message


def test_words_among_numbers_are_missing_and_said():
    values = [str(v) for v in range(100, 199, 2)]
    values[7] = "hemolysed"
    x, column, columns = one(values)
    assert np.isnan(x[7])
    assert (column.kind, column.n_missing, column.n_unread) == ("number", 1, 1)
    assert "1 value such as 'hemolysed' is read as missing" in columns.warnings[0].message
    values[8:20] = ["hemolysed"] * 12
    assert one(values)[1].n_unread == 13  # one word, however often it is there
    values[20:25] = ["low", "high", "mid", "none", "lost"]
    assert one(values)[1].kind == "left out"


def test_a_number_that_was_said_to_be_one_has_to_be_one():
    with pytest.raises(ValueError, match=r"'value' is said to be a number and holds 'low' in row 2\. Hint:"):
        one(["1", "2", "low", "4"], kind="number")
    x, _, _ = one(["1", "2", "?", "4"], kind="number")
    assert np.isnan(x[2])


def test_leading_zeros_are_codes():
    _, column, _ = one(texts("01067", "80331", "10115"))
    assert (column.kind, column.levels) == ("category", ("01067", "10115", "80331"))
    assert one(texts("007", "008", "009"))[1].kind == "category"
    assert one(texts("0.5", "0", "00.7"))[1].kind == "number"


@pytest.mark.parametrize("name", ["zip", "ZIP_code", "plz", "postal code", "home.postcode"])
def test_postal_codes_by_name(name):
    assert one(texts("80331", "10115", "20095"), name=name)[1].kind == "category"
    assert one(texts(80331, 10115, 20095), name=name)[1].levels == ("10115", "20095", "80331")
    assert one(texts(80331, 10115, 20095), name="zipper")[1].kind == "number"


def test_few_whole_numbers_may_be_codes():
    _, column, columns = one([1, 2, 3, 4] * 10)
    assert column.kind == "number"
    assert "codes" in column.why
    assert "value holds few whole numbers" in columns.notes[0].message
    assert columns.notes[0].hint.shell.endswith("say --kind clinic.value=category.")
    x, column, columns = one([1, 2, 3, 4] * 10, kind="category")
    assert (column.kind, column.levels, x[:4].tolist()) == ("category", ("1", "2", "3", "4"), [0, 1, 2, 3])
    assert not columns.notes
    assert not one([0, 1] * 20)[1].why  # codes of two answers are the same as numbers


# --- dates --------------------------------------------------------------------------------------------------


def day(text):
    return (np.datetime64(text, "us") - np.datetime64("1970-01-01", "us")) / np.timedelta64(1, "D")


@pytest.mark.parametrize(
    ("written", "meant", "form"),
    [
        (["2020-04-25", "2021-1-3"], ["2020-04-25", "2021-01-03"], ""),
        (["2020/04/25", "2021/12/31"], ["2020-04-25", "2021-12-31"], ""),
        (["2020-04-25 14:30", "2020-04-25T15:30:36"], ["2020-04-25T14:30", "2020-04-25T15:30:36"], ""),
        (["2020-04-25T14:30Z", "2020-04-25T14:30+02:00"], ["2020-04-25T14:30", "2020-04-25T12:30"], ""),
        (["25/04/2020", "03/04/2020"], ["2020-04-25", "2020-04-03"], "day-first"),
        (["04/25/2020", "04/03/2020"], ["2020-04-25", "2020-04-03"], "month-first"),
        (["25-04-2020", "03-04-2020"], ["2020-04-25", "2020-04-03"], "day-first"),
        (["03.04.2020", "01.02.2020"], ["2020-04-03", "2020-02-01"], ""),
        (["25/4/20", "3/4/69"], ["2020-04-25", "1969-04-03"], "day-first"),
        (["3 Apr 2020", "25-Dec-2019"], ["2020-04-03", "2019-12-25"], ""),
        (["April 3, 2020", "Dec 25th 2019"], ["2020-04-03", "2019-12-25"], ""),
        (["04/25/2020 2:30 PM", "04/03/2020 12:00 AM"], ["2020-04-25T14:30", "2020-04-03"], "month-first"),
        (["02/02/2020", "03/03/2020"], ["2020-02-02", "2020-03-03"], ""),
    ],
)
def test_dates(written, meant, form):
    x, column, columns = one(texts(*written))
    assert (column.kind, column.form) == ("date", form)
    assert x[:2].tolist() == pytest.approx([day(text) for text in meant])
    assert not columns.warnings


def test_dates_that_can_be_read_in_two_ways_are_asked_about():
    _, column, columns = one(texts("03/04/2020", "05/06/2020"))
    assert column.kind == "left out"
    (remark,) = columns.warnings
    assert "no value says whether the day or the month comes first" in remark.message
    assert "--kind clinic.value=date:day-first" in remark.hint.shell
    x, column, _ = one(texts("03/04/2020", "05/06/2020"), kind="date:month-first")
    assert x[:2].tolist() == [day("2020-03-04"), day("2020-05-06")]
    assert column.form == "month-first"


def test_dates_that_contradict_each_other_are_asked_about():
    _, column, _ = one(texts("25/04/2020", "04/25/2020"))
    assert column.kind == "left out"
    with pytest.raises(ValueError, match=r"said to be a date and holds '04/25/2020' in row 1"):
        one(texts("25/04/2020", "04/25/2020"), kind="date:day-first")


def test_days_that_the_calendar_lacks_are_no_dates():
    assert not dates_in(
        ["2020-02-30", "31/04/2020", "2021-13-01", "2020-04-25 25:00", "2019-02-29"]
    ).known.any()
    assert dates_in(["2020-02-29"]).known.all()


def test_dates_of_eight_digits():
    x, column, _ = one([20200425, 20200301, 20191231, 20200425])
    assert (column.kind, column.form) == ("date", "digits")
    assert x[0] == day("2020-04-25")
    assert one(["20200425", "20200301", "20191231"])[1] == one([20200425, 20200301, 20191231])[1]
    assert one([20200425, 20201399, 20191231])[1].kind == "number"


def test_dates_and_times_as_frames_store_them():
    moments = pd.to_datetime(["2020-04-25 12:00", None, "2020-03-01 00:00", "2020-03-01 00:00"])
    x, column, _ = one(moments)
    assert (column.kind, column.n_missing) == ("date", 1)
    assert x[0] == day("2020-04-25T12:00")
    zoned = moments.tz_localize("Europe/Berlin")
    assert one(zoned)[0][0] == day("2020-04-25T10:00")
    assert one([datetime.date(2020, 4, 25), None, datetime.date(2020, 3, 1)])[0][0] == day("2020-04-25")
    spans = pd.to_timedelta(["12h", "36h", None])
    assert one(spans)[0].tolist()[:2] == [0.5, 1.5]
    x, column, _ = one(texts("14:30", "08:15", "2:30 pm"))
    assert (column.kind, x[:3].tolist()) == ("number", [14.5, 8.25, 14.5])


# --- answers ------------------------------------------------------------------------------------------------


def test_two_answers_are_yes_or_no():
    x, column, _ = one(["male", "female", None, "male"])
    assert (column.kind, column.levels, column.n_missing) == ("yes/no", ("female", "male"), 1)
    assert x[[0, 1, 3]].tolist() == [1, 0, 1]
    assert one([True, False, None])[1].levels == ("False", "True")
    assert one(texts("TRUE", "FALSE"))[1] == one(texts(True, False))[1]
    assert one(texts("+", "-"))[1].levels == ("+", "-")


def test_a_cross_or_nothing():
    x, column, columns = one(["x", "", None, "X "[:1].lower(), " "])
    assert (column.kind, column.levels, column.form, column.n_missing) == ("yes/no", ("", "x"), "blank", 0)
    assert x.tolist() == [1, 0, 0, 1, 0]
    assert "blank cells of value are read as no" in columns.notes[0].message
    x, column, _ = one(["x", "", "NA", "x"])  # somebody says that it is not known
    assert np.isnan(x[2])
    assert column.n_missing == 1
    assert one([1.0, None, 1.0])[0].tolist() == [1, 0, 1]
    assert one(["x", "x", "x"])[1].kind == "left out"
    assert one(["Munich", "", "Munich"])[1].kind == "left out"


def test_rows_that_are_blank_throughout_say_no_nowhere():
    frame = pd.DataFrame({"drinks": ["x", None, None, None], "age": [40.0, 50.0, np.nan, 61.0]})
    x, columns = read_columns(frame, name="clinic")
    np.testing.assert_array_equal(x[:, 0], [1, 0, np.nan, 0])
    assert columns["drinks"].n_missing == 1
    np.testing.assert_array_equal(read_again(frame, columns), x)
    alone, _ = read_columns(frame[["drinks"]].assign(smokes=[None, "x", None, "x"]), name="habits")
    assert not np.isnan(alone).any()


def test_ordered_categoricals_keep_their_order():
    words = ["mid", "low", "high", "low", None]
    kind = pd.CategoricalDtype(["low", "mid", "high", "extreme"], ordered=True)
    x, column, _ = one(pd.Series(words).astype(kind))
    assert (column.kind, column.levels) == ("ordered", ("low", "mid", "high", "extreme"))
    np.testing.assert_array_equal(x, [1, 0, 2, 0, np.nan])
    x, column, _ = one(words, kind=["low", "mid", "high"])
    assert (column.kind, x[:3].tolist()) == ("ordered", [1, 0, 2])
    assert one(words, kind="low<mid<high")[1] == column
    assert one([3, 1, 10, 1], kind="ordered")[1].levels == ("1", "3", "10")
    with pytest.raises(ValueError, match="nothing says how"):
        one(words, kind="ordered")
    with pytest.raises(ValueError, match=r"holds 'high' in row 2, which is none of its levels: low, mid"):
        one(words, kind="low<mid")


def test_categories():
    x, column, _ = one(texts("II", "I", "III", None))
    assert (column.kind, column.levels, column.n_missing) == ("category", ("I", "II", "III"), 4)
    assert x[:3].tolist() == [1, 0, 2]
    assert one(pd.Series(texts(3, 1, 2)).astype("category"))[1].levels == ("1", "2", "3")
    assert one(pd.Series([3.0, 1.0, None, 2.0]), kind="category")[1].levels == ("1", "2", "3")
    assert one(texts("None", "Driver", "Both"))[1].levels == ("Both", "Driver", "None")
    assert one(texts("unknown", "a", "b"))[1].levels == ("a", "b", "unknown")


def test_categories_that_look_alike_are_said():
    _, column, columns = one(texts("Gold", "gold", "basic"))
    assert len(column.levels) == 3
    assert "'Gold' and 'gold' are two categories" in columns.warnings[0].message
    assert one(texts("gold ", "gold", "basic", " basic"))[1].levels == ("basic", "gold")


def test_yes_or_no_that_was_said_needs_two_answers():
    with pytest.raises(ValueError, match="said to be yes/no and has 3 different values"):
        one(texts("a", "b", "c"), kind="yes/no")
    assert one(texts(1, 2), kind="yes/no")[1].levels == ("1", "2")


# --- what is left out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("a", [None] * 12, "empty"),
        ("a", ["", " ", "NA", "?"] * 3, "empty"),
        ("a", [7] * 12, "constant: always 7"),
        ("a", ["B"] * 12, "constant: always 'B'"),
        ("a", ["B", None] * 6, "constant: always 'B'"),
        ("a", ["2020-04-25"] * 12, "constant: always 2020-04-25"),
        ("row", list(range(1, 31)), "an id: running numbers"),
        ("row", [str(v) for v in range(100, 130)][::-1], "an id: running numbers"),
        ("Id", [9, 4, 77, 1020, 5, 64, 640, 12, 12, 12, 4, 90], "an id: by its name"),
        ("patient_id", [f"{v}" for v in (9, 4, 77, 1020, 5, 64)], "an id: by its name"),
        ("hospitalID", [9, 4, 77, 1020, 5, 64], "an id: by its name"),
        ("who", [f"p{v:03d}" for v in range(12)], "an id: nearly every value is another"),
        ("note", [f"came back after {v} days" for v in range(12)], "free text"),
    ],
)
def test_left_out(name, values, why):
    _, column, columns = one(values, name=name)
    assert (column.kind, column.why) == ("left out", why)
    told = any(f"{name} (" in remark.message for remark in columns.warnings)
    assert told == (why.split(":")[0] not in ("empty", "constant"))
    assert f"Left out: {name} ({why.split(':')[0]})" in columns.line


def test_what_is_no_id():
    assert one([0.5 * v for v in range(30)], name="Id")[1].kind == "number"
    assert one(list(range(15)))[1].kind == "number"
    assert one(list(range(30)), kind="number")[1].kind == "number"
    assert one([3, 4] * 20, name="id")[1].kind == "number"
    assert one(list(range(0, 60, 2)), name="fluid")[1].kind == "number"
    assert one(list(range(0, 60, 2)), name="candid")[1].kind == "number"


def test_a_column_can_be_left_out_or_kept():
    assert one(texts("a", "b", "c"), kind="left out")[1].why == "as you said"
    assert one([f"p{v}" for v in range(12)], kind="category")[1].kind == "category"
    assert one([f"c{v % 300}" for v in range(900)])[1].why == "more than 256 categories"


def test_tables_that_are_mostly_empty_are_said():
    frame = pd.DataFrame({"a": [1.0, 2, 4, 8], "b": [None, None, None, 2.0], "c": [1.5, None, None, None]})
    frame.loc[4] = [None, None, None]  # an absent row does not count
    _, columns = read_columns(frame.assign(d=[None, 3.0, None, 1.0, None]), name="clinic")
    assert "50%" not in str(columns.warnings)
    _, columns = read_columns(frame.assign(d=[None, 3.0, None, None, None]), name="clinic")
    assert not columns.warnings or "56% of the cells are missing" in columns.warnings[-1].message


# --- what is refused ----------------------------------------------------------------------------------------


def test_infinite_numbers_are_refused():
    with pytest.raises(ValueError, match=r"view 'clinic' has inf in row 1, column 'value'\. Hint"):
        one([1.0, np.inf, 2.0])
    with pytest.raises(ValueError, match="has inf in row 2"):
        one(["1", "2", "-Infinity", *map(str, range(3, 60))])
    with pytest.raises(ValueError, match=r"row 1 \(id 'ann'\)"):
        read_columns(np.array([[1.0], [np.inf]]), name="a", ids=["bob", "ann"])


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with pytest.raises(ValueError, match="view 'clinic' has two columns"):
        read_columns(frame, name="clinic")
    with pytest.raises(ValueError, match="two columns named '1'"):
        read_columns(pd.DataFrame([[1, 2], [3, 4]], columns=[1, "1"]), name="clinic")


def test_a_table_without_a_usable_column_is_refused():
    frame = pd.DataFrame({"a": [1, 1, 1], "b": [None, None, None]})
    match = r"no column that tells rows apart: a \(constant: always 1\), b \(empty\)\. Hint"
    with pytest.raises(ValueError, match=match):
        read_columns(frame, name="clinic")


@pytest.mark.parametrize(
    "cells", [[[1], [2], [3]], [{"a": 1}, {}, {}], [(1, 2), (3,), (4,)], [object(), 1, 2], [1, {2}, 3]]
)
def test_cells_with_lists_or_objects_are_refused(cells):
    with pytest.raises(TypeError, match=r"view 'clinic', column 'value': row \d holds a \w+"):
        one(pd.Series(cells, dtype=object))


def test_lists_in_polars_are_refused():
    with pytest.raises(TypeError, match="column 'a': row 0 holds a"):
        read_columns(pl.DataFrame({"a": [[1], [2]], "b": [1, 2]}), name="clinic")


def test_what_is_no_table():
    with pytest.raises(TypeError, match="view 'clinic' is no table"):
        read_columns("clinic.csv", name="clinic")
    with pytest.raises(TypeError, match="view 'clinic' is no table"):
        read_columns(pl.LazyFrame({"a": [1, 2]}), name="clinic")
    with pytest.raises(ValueError, match="Expected 2D array"):
        read_columns(np.arange(4), name="clinic")


# --- kinds that are said ------------------------------------------------------------------------------------

VIEWS = {"clinic": ["age", "stage", "a.b"], "clinic.old": ["stage", "Id"], "notes": ["0", "1"]}
KNOWN = ("auto", "counts", "measurements")


@pytest.mark.parametrize(
    ("kind", "views", "columns"),
    [
        (None, {}, {}),
        ("counts", dict.fromkeys(VIEWS, "counts"), {}),
        ("category", {}, dict.fromkeys(VIEWS, "category")),
        ({"notes": "counts"}, {"notes": "counts"}, {}),
        ({"notes": "category"}, {}, {"notes": "category"}),
        ({"clinic": {"stage": "category"}}, {}, {"clinic": {"stage": "category"}}),
        ({"clinic.stage": "category"}, {}, {"clinic": {"stage": "category"}}),
        ({"clinic.a.b": "date:day-first"}, {}, {"clinic": {"a.b": "date:day-first"}}),
        ({"clinic.old.stage": "ordered"}, {}, {"clinic.old": {"stage": "ordered"}}),
        ({"clinic.stage": ["I", "II"]}, {}, {"clinic": {"stage": ["I", "II"]}}),
        ({"clinic.stage": "I<II"}, {}, {"clinic": {"stage": "I<II"}}),
        (
            {"age": "number", "Id": "left-out"},
            {},
            {"clinic": {"age": "number"}, "clinic.old": {"Id": "left-out"}},
        ),
        (
            {"clinic.age": "number", "clinic": "category"},
            {},
            {"clinic": {"age": "number", "stage": "category", "a.b": "category"}},
        ),
    ],
)
def test_kinds_of_views_and_columns(kind, views, columns):
    assert split_kinds(kind, VIEWS, KNOWN) == (views, columns)


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        ({"clinc": "counts"}, "neither a view nor a column 'clinc'. Hint: did you mean 'clinic'"),
        ({"clinic.stge": "category"}, "'clinic.stge'. Hint: did you mean 'clinic.stage'"),
        ({"stage": "category"}, "'clinic' and 'clinic.old' both have a column 'stage'"),
        ({"clinic.stage": "categry"}, "cannot be 'categry'. Hint: did you mean 'category'"),
        ({"clinic.stage": "counts"}, "cannot be 'counts'"),
        ({"notes": "count"}, "cannot be 'count'. Hint: did you mean 'counts'"),
        ({"clinic": {"stge": "category"}}, "view 'clinic' has no column 'stge'. Hint: did you mean 'stage'"),
        ({"clinic": 3}, "cannot be 3"),
    ],
)
def test_kinds_that_mean_nothing_are_answered_with_near_ones(kind, match):
    with pytest.raises(ValueError, match=re.escape(match)):
        split_kinds(kind, VIEWS, KNOWN)


def test_kinds_of_columns_that_are_not_there():
    with pytest.raises(ValueError, match=r"view 'clinic' has no column 'valu'\. Hint: did you mean 'value'"):
        read_columns(pd.DataFrame({"value": [1, 2]}), name="clinic", kinds={"valu": "number"})
    with pytest.raises(ValueError, match="two or more different levels"):
        one(texts("a", "b"), kind=["a", "a"])


# --- new rows -----------------------------------------------------------------------------------------------


def clinic(n=24):
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "Id": [f"p{v}" for v in range(n)],
            "age": rng.randint(20, 90, n),
            "crp": [f"{v:.1f}".replace(".", ",") for v in rng.gamma(2, 5, n)],
            "seen": [
                f"{d:02d}/{m:02d}/2020"
                for d, m in zip(rng.randint(1, 28, n), rng.randint(1, 12, n), strict=True)
            ],
            "stage": rng.choice(["I", "II", "III"], n),
            "smokes": rng.choice(["yes", "no"], n),
            "ward": rng.choice(["x", ""], n),
        }
    )


def test_rows_are_read_again_as_they_were():
    frame = clinic()
    x, columns = read_columns(frame, name="clinic")
    assert [column.kind for column in columns] == [
        "left out", "number", "number", "date", "category", "yes/no", "yes/no",
    ]  # fmt: skip
    np.testing.assert_array_equal(read_again(frame, columns), x)
    np.testing.assert_array_equal(read_again(frame.iloc[[3, 1]][frame.columns[::-1]], columns), x[[3, 1]])
    for row in range(len(frame)):
        np.testing.assert_array_equal(read_again(frame.iloc[[row]], columns), x[[row]])


def test_unseen_levels_are_missing_and_said():
    _, columns = read_columns(clinic(), name="clinic")
    new = clinic(3).assign(stage=["I", "IV", "IV"])
    match = r"column 'stage': 'IV' was not there when it was fitted; 2 cells are read as missing\. Hint"
    with pytest.warns(UserWarning, match=match):
        x = read_again(new, columns)
    np.testing.assert_array_equal(x[:, 3], [0, np.nan, np.nan])


def test_words_among_new_numbers_are_missing_and_said():
    _, columns = read_columns(clinic(), name="clinic")
    with pytest.warns(UserWarning, match=r"column 'crp': 1 value such as 'lost' is read as missing"):
        x = read_again(clinic(2).assign(crp=["lost", "1,234"]), columns)
    np.testing.assert_array_equal(x[:, 1], [np.nan, 1.234])
    with pytest.raises(ValueError, match="has inf in row 1, column 'age'"):
        read_again(clinic(2).assign(age=[1, np.inf]), columns)


def test_new_tables_may_lack_columns():
    _, columns = read_columns(clinic(), name="clinic")
    with pytest.warns(UserWarning, match=r"lacks the column 'age', which it had .* Age are new"):
        x = read_again(clinic(3).rename(columns={"age": "Age"}), columns)
    assert np.isnan(x[:, 0]).all()
    with pytest.raises(ValueError, match="none of the columns"):
        read_again(pd.DataFrame({"z": [1.0]}), columns)


# --- real tables --------------------------------------------------------------------------------------------

KINDS = {  # numbers, yes/no, categories; left out
    "Cars93": (19, 2, 4, {"Model", "Make"}),
    "attrition": (16, 4, 11, set()),
    "boys": (6, 0, 3, set()),
    "breastcancer": (9, 1, 0, {"Id"}),
    "colic": (21, 3, 5, {"age", "hospitalID"}),
    "credit_data": (9, 2, 3, set()),
    "glass": (10, 0, 0, set()),
    "oils": (7, 0, 1, set()),
    "penguins": (4, 1, 2, set()),
    "pima2": (8, 1, 0, set()),
    "vehicle": (18, 0, 1, set()),
    "zoo": (1, 15, 1, {"animal"}),
}


@pytest.mark.data
@pytest.mark.parametrize("name", KINDS)
def test_real_tables(name, data_folder):
    path = data_folder / "tables" / f"{name}.csv"
    text = pd.read_csv(path, dtype=str, keep_default_na=False)
    x, columns = read_columns(text, name=name)
    found = [column.kind for column in columns]
    assert (
        found.count("number"),
        found.count("yes/no"),
        found.count("category"),
        {column.name for column in columns.left_out},
    ) == KINDS[name]
    # As pandas reads it: only the level "None" is lost.
    y, typed = read_columns(pd.read_csv(path), name=name)
    same = [j for j, column in enumerate(columns.used) if column.name != "AirBags"]
    np.testing.assert_array_equal(x[:, same], y[:, same])
    assert [c for c in columns if c.name != "AirBags"] == [c for c in typed if c.name != "AirBags"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*'rotary' is read as missing")
        np.testing.assert_array_equal(read_again(text, columns), x)


# --- an oracle: one cell at a time --------------------------------------------------------------------------


def plain_value(text):
    """The number in a text, for tables with decimal points only; None for missing; "bad" for the rest."""
    text = text.strip()
    if text.lower() in CELL_MARKS:
        return None
    match = re.fullmatch(r"(?:[<>]=?\s*)?([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?:\s*%)?", text)
    return float(match[1]) if match else "bad"


NUMBERS = st.one_of(
    st.integers(-(10**6), 10**6),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 5)),
)


@_seconds
@given(
    st.lists(
        st.one_of(NUMBERS.map(str), st.sampled_from(["", "NA", " ?", "<3.25", "7 %", "-", "n/a"])), min_size=8
    )
)
def test_numbers_in_text_cell_by_cell(cells):
    values = [plain_value(cell) for cell in cells]
    known = {value for value in values if value is not None}
    limits = {cell.strip() for cell in cells if cell.startswith("<")}
    written = {cell.strip() for cell in cells if plain_value(cell) is not None}
    if len(known) < 2 or 2 * len(limits) > len(written):
        return
    x, column, _ = one(cells, kind="number")
    np.testing.assert_array_equal(x, [np.nan if value is None else value for value in values])
    assert column.n_missing == values.count(None)


WORDS = st.sampled_from(["a", "b", "c ", " c", "NA", "", "None", "1.0", "1", "?"])


@_seconds
@given(st.lists(WORDS, min_size=12, max_size=60))
def test_categories_cell_by_cell(cells):
    def level(cell):
        cell = cell.strip()
        return None if cell.lower() in CELL_MARKS else "1" if cell == "1.0" else cell

    found = [level(cell) for cell in cells]
    levels = sorted({value for value in found if value is not None})
    if len(levels) < 2:
        return
    x, column, _ = one(cells, kind="category")
    assert column.levels == tuple(levels)
    assert [None if math.isnan(value) else column.levels[int(value)] for value in x] == found


@_seconds
@given(
    st.lists(st.dates(datetime.date(1900, 1, 1), datetime.date(2090, 1, 1)), min_size=4, max_size=30),
    st.sampled_from(["%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%b %d, %Y"]),
)
def test_dates_cell_by_cell(days, form):
    cells = [each.strftime(form) for each in days]
    kind = {"%d": "date:day-first", "%m": "date:month-first"}.get(form[:2] if form[2] in "/-" else "", "date")
    if len(set(days)) < 2:
        return
    x, _, _ = one(cells, kind=kind)
    assert x.tolist() == [(each - datetime.date(1970, 1, 1)).days for each in days]
    # Without a word, the same where a value decides it, or nothing.
    x, column, _ = one(cells)
    decided = form[2] not in "/-" or form[0:2] == "%Y" or any(each.day > 12 for each in days)
    if decided:
        assert x.tolist() == [(each - datetime.date(1970, 1, 1)).days for each in days]
    elif all(each.day == each.month for each in days):
        assert column.used
    else:
        assert not column.used


# --- laws ---------------------------------------------------------------------------------------------------

CELLS = st.one_of(
    NUMBERS.map(str), WORDS, st.sampled_from(["3,5", "12 %", "<4", "2020-04-25", "25/04/2020", "x", "007"])
)


@st.composite
def frames(draw):
    n = draw(st.integers(2, 14))
    pools = draw(st.lists(st.lists(CELLS, min_size=1, max_size=5), min_size=1, max_size=4))
    columns = {
        f"c{j}": draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n)) for j, pool in enumerate(pools)
    }
    return pd.DataFrame({**columns, "sure": [v**2 for v in range(n)]})


def read(frame):
    return read_columns(frame, name="t")


@_seconds
@given(frames(), st.randoms(use_true_random=False))
def test_order_of_rows_and_columns_changes_nothing(frame, random):
    x, columns = read(frame)
    rows = random.sample(range(len(frame)), len(frame))
    y, again = read(frame.iloc[rows])
    assert again == columns
    np.testing.assert_array_equal(y, x[rows])
    names = random.sample(list(frame.columns), len(frame.columns))
    z, turned = read(frame[names])
    assert {column.name: column for column in turned} == {column.name: column for column in columns}
    of = [column.name for column in turned.used]
    np.testing.assert_array_equal(z, x[:, [[c.name for c in columns.used].index(name) for name in of]])


@_seconds
@given(frames())
def test_any_container_is_the_same(frame):
    x, columns = read(frame)
    cells = frame.astype(object).to_numpy()
    said = [remark.message for remark in (*columns.warnings, *columns.notes)]
    for table in (
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame, preserve_index=False),
        frame.astype(object),
        frame.astype("category").astype(object),
    ):
        y, other = read(table)
        assert other == columns
        assert [remark.message for remark in (*other.warnings, *other.notes)] == said
        np.testing.assert_array_equal(y, x)
    y, other = read(cells)
    assert [(c.kind, c.levels, c.why, c.n_missing) for c in other] == [
        (c.kind, c.levels, c.why, c.n_missing) for c in columns
    ]
    np.testing.assert_array_equal(y, x)


@_seconds
@given(st.lists(st.one_of(NUMBERS, st.none()), min_size=3, max_size=40))
def test_numbers_as_text_are_the_numbers(values):
    if len({value for value in values if value is not None}) < 2:
        return
    numbers = pd.Series([np.nan if value is None else float(value) for value in values])
    x, column, _ = one(numbers)
    for text in (
        ["" if value is None else repr(value) for value in values],
        ["NA" if np.isnan(value) else repr(float(value)) for value in numbers],
        [None if value is None else Decimal(str(value)) for value in values],
    ):
        y, again, _ = one(text)
        assert again == column
        np.testing.assert_array_equal(y, x) if column.used else None


@_seconds
@given(frames())
def test_read_again_is_what_was_read(frame):
    x, columns = read(frame)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*read as missing")
        np.testing.assert_array_equal(read_again(frame, columns), x)


def test_ordered_in_any_container():
    words = ["mid", "low", None, "high"]
    order = ["low", "mid", "high"]
    pandas = pd.DataFrame({"a": pd.Categorical(words, order, ordered=True)})
    polars = pl.DataFrame({"a": pl.Series(words, dtype=pl.Enum(order))})
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 2]), pa.array(order), ordered=True)
    for table in (pandas, polars, pa.table({"a": coded})):
        x, columns = read(table)
        np.testing.assert_array_equal(x[:, 0], [1, 0, np.nan, 2])
        assert columns["a"] == Column("a", "ordered", tuple(order), n_missing=1)


def test_arrays_of_all_kinds():
    x, columns = read(np.array([[1, 2.5], [3, np.nan]]))
    np.testing.assert_array_equal(x, [[1, 2.5], [3, np.nan]][:2] if columns["1"].used else [[1], [3]])
    assert columns["1"].why.startswith("constant")
    x, _ = read(np.array([["1", "a"], ["2", "b"], ["nan", "a"]]))
    np.testing.assert_array_equal(x, [[1, 0], [2, 1], [np.nan, 0]])
    x, _ = read(np.ma.masked_array([[1.0, 2], [3, 4], [5, 6]], [[0, 0], [1, 0], [0, 0]]))
    np.testing.assert_array_equal(x, [[1, 2], [np.nan, 4], [5, 6]])
    x, _ = read(np.array([["2020-01-02"], ["1970-01-01"]], dtype="M8[ns]"))
    assert x[:, 0].tolist() == [day("2020-01-02"), 0]
    assert read(np.array([[True], [False]]))[1]["0"].kind == "yes/no"
    assert read([["1", "x"], ["2", "y"]])[1]["1"].levels == ("x", "y")


def test_the_line_and_its_parts():
    columns = Columns(
        "clinic",
        (
            *(Column(name, "number") for name in ("age", "bmi", "crp", "ldl")),
            Column("sex", "yes/no", ("f", "m")),
            Column("stage", "category", ("I", "II", "III")),
            Column("Id", "left out", why="an id: by its name"),
        ),
    )
    assert columns.line == (
        "clinic: 4 numbers (age, bmi, crp, ...), 1 yes/no (sex), 1 category (stage). Left out: Id (an id)."
    )
    assert len(columns) == 7
    assert [column.name for column in columns.left_out] == ["Id"]
    with pytest.raises(KeyError):
        columns["none"]
    _, found = read_columns(clinic(), name="clinic")
    with pytest.warns(
        UserWarning, match=r"view 'clinic': Id \(an id\) is left out\. Hint: if it names the inst"
    ):
        found.warn()
