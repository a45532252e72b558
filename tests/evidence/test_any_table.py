"""A view is any table: columns of any kind, cells missing anywhere, read alike by every method."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from consilience import PSE, check_views, fuse_views
from consilience.metrics import matched_accuracy_score
from consilience.multiview import APMC, DAIMC, EEIMVC, MIC, NEMO, SNF

NAN = np.nan


def clinic(n=150, seed=0, missing=0.2):
    """Three kinds of patients in a table as a clinic has it, and which kind each is of."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "age": np.round(45 + 12 * truth + rng.normal(0, 4, n)),
            "crp": [f"{value:.1f}".replace(".", ",") for value in 3 + 4 * truth + rng.normal(0, 1, n)],
            "smoker": np.where(rng.random(n) < np.array([0.1, 0.5, 0.9])[truth], "yes", "no"),
            "ward": np.array(["north", "south", "west"])[np.where(rng.random(n) < 0.8, truth, 0)],
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(90 * truth + rng.integers(0, 40, n), "D"),
            "stage": pd.Categorical(
                np.array(["I", "II", "III"])[truth], categories=["I", "II", "III"], ordered=True
            ),
            "consent": "given",
        }
    )
    return truth, frame.mask(rng.random(frame.shape) < missing)


def test_every_column_is_read_and_missing_cells_are_filled_in():
    truth, frame = clinic()
    fusion = fuse_views({"clinic": frame}, 3, random_state=0)
    assert matched_accuracy_score(truth, fusion.labels) > 0.85
    views = fusion.given_views.table
    (read,) = views.tables
    kinds = ["number", "number", "yes/no", "category", "date", "ordered", "left out"]
    assert [column.kind for column in read.columns] == kinds
    assert read.line.startswith("2 numbers (age, crp), 1 yes/no (smoker), 1 ordered (stage), 1 category")
    assert "Left out: consent (constant)." in read.line
    there = frame.drop(columns="consent").notna().any(axis=1)
    assert_array_equal(views.observed[:, 0], there)
    assert read.n_missing == tuple(frame[there].isna().sum()[:-1])
    assert np.isfinite(views.arrays[0]).all()
    assert {"age", "crp", "ward = north", "ward = south", "ward = west", "seen"} < set(views.columns[0])
    # Every column counts alike: two rows drawn at random are as far apart in each.
    encoding, x = read.cells.encoding, check_views({"clinic": clinic(missing=0.0)[1]}).arrays[0]
    for j in np.unique(encoding.source):
        assert_allclose(x[:, encoding.source == j].var(axis=0).sum(), 1.0)


def test_the_same_from_pandas_polars_arrow_and_objects():
    _, frame = clinic()
    frame = frame.drop(columns="stage")  # an order is known to pandas in a way of its own
    wanted = check_views({"clinic": frame}).arrays[0]
    others = [pl.from_pandas(frame), pl.from_pandas(frame).to_arrow()]
    for other in others:
        assert_array_equal(check_views({"clinic": other}).arrays[0], wanted)
    objects = frame.astype(object).where(frame.notna(), None).to_numpy()
    assert_array_equal(check_views({"clinic": objects}).arrays[0], wanted)


def test_order_of_rows_and_columns_and_names_of_levels_change_nothing():
    _, frame = clinic()
    labels = fuse_views({"clinic": frame}, 3, random_state=0).labels
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(len(frame)), rng.permutation(frame.shape[1])
    shuffled = frame.iloc[rows, columns].reset_index(drop=True)
    assert_array_equal(fuse_views({"clinic": shuffled}, 3, random_state=0).labels, labels[rows])
    renamed = frame.assign(
        ward=frame["ward"].map({"north": "z", "south": "b", "west": "c"}),
        smoker=frame["smoker"].map({"yes": "0-ja", "no": "1-nein"}),
    )
    assert_array_equal(fuse_views({"clinic": renamed}, 3, random_state=0).labels, labels)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_numbers_in_text_are_the_numbers(data):
    """Complete or not: a table of numbers is the same table however it is written."""
    shape = data.draw(st.tuples(st.integers(12, 20), st.integers(1, 4)))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = np.array([float(f"{value:.4f}") for value in rng.normal(size=shape).ravel()]).reshape(shape)
    x[rng.random(shape) < data.draw(st.sampled_from([0.0, 0.3]))] = NAN
    x[:2] = [[0.25], [0.75]]
    frame = pd.DataFrame(x, columns=[f"c{j}" for j in range(shape[1])])
    text = frame.map(lambda value: "" if np.isnan(value) else f"{value:.4f}")
    if len(frame.dropna(how="all")) < len(frame):
        return
    plain, read = check_views({"v": frame}), check_views({"v": text})
    assert_array_equal(read.arrays[0], plain.arrays[0])
    assert read.n_given == plain.n_given


@pytest.mark.parametrize("as_frame", [False, True])
def test_complete_numbers_are_as_they_were(as_frame):
    x = np.random.default_rng(0).normal(size=(30, 4))
    given_table = pd.DataFrame(x) if as_frame else x
    views = check_views({"v": given_table})
    assert_array_equal(views.arrays[0], x)
    assert views.tables is None


def test_columns_that_the_user_says():
    _, frame = clinic(missing=0.0)
    frame["code"] = np.arange(150) % 5
    kind = {"clinic": "measurements", "clinic.code": "category", "ward": "left out", "age": "ordered"}
    views = check_views({"clinic": frame}, kind=kind)
    read = views.tables[0].columns
    assert (read["code"].kind, read["ward"].kind, read["age"].kind) == ("category", "left out", "ordered")
    assert views.kinds == ("measurements",)
    assert check_views(views, kind=kind).kinds == views.kinds  # it is what was said
    with pytest.raises(ValueError, match=r"column 'code' is said to be 'number', and has been read already"):
        check_views(views, kind={"clinic.code": "number"})
    plain = check_views({"v": np.arange(40).reshape(20, 2) % 7})
    with pytest.raises(ValueError, match=r"column '1' is said to be 'category'.*as 'number'\. Hint: .*kind="):
        PSE(2, kind={"v.1": "category"}).fit(plain)
    codes = check_views({"v": np.arange(40).reshape(20, 2) % 7}, kind={"v.1": "category"})
    assert [column.kind for column in codes.tables[0].columns] == ["number", "category"]
    with pytest.raises(ValueError, match=r"view 'clinic' has columns that are not numbers, .* kind='counts'"):
        PSE(3, kind={"clinic": "counts"}).fit({"clinic": frame})
    with pytest.raises(ValueError, match=r"'words' are numbers, since it is sparse\. Hint"):
        check_views({"words": sparse.eye_array(4)}, kind={"words.0": "category"})
    with pytest.raises(
        ValueError, match=r"neither a view nor a column 'clinc'\. Hint: did you mean 'clinic'"
    ):
        check_views({"clinic": frame}, kind={"clinc": "counts"})


@pytest.mark.parametrize("method", [PSE, APMC, EEIMVC, SNF, NEMO, MIC, DAIMC])
def test_every_method_takes_any_table(method):
    truth, frame = clinic()
    rows = frame.notna().any(axis=1)
    model = method(3, random_state=0).fit({"clinic": frame[rows], "again": frame[rows].iloc[::-1]})
    assert adjusted_rand_score(truth[rows], model.labels_) > 0.4
    assert model.n_features_in_ == 14


def test_rows_that_the_mask_hides_are_not_read():
    _, frame = clinic(missing=0.0)
    strange = frame.astype(object).copy()
    strange.loc[0] = ["?!", "none", "maybe", "moon", "never", "XX", "no"]
    mask = np.ones((len(frame), 1), dtype=bool)
    mask[0] = False
    other = pd.DataFrame({"x": np.arange(len(frame)) * 0.5})
    found = check_views({"clinic": strange, "other": other}, mask=np.hstack([mask, mask | True]), kind=ORDER)
    wanted = check_views({"clinic": frame[1:].astype(object)}, kind=ORDER)
    assert_array_equal(found.arrays[0][1:], wanted.arrays[0])
    assert not found.observed[0, 0]
    strange.loc[5, "stage"] = "IV"
    with pytest.raises(ValueError, match=r"column 'stage' holds 'IV' in row 5, which is none of its levels"):
        check_views({"clinic": strange, "other": other}, mask=np.hstack([mask, mask | True]), kind=ORDER)


ORDER = {"clinic.stage": ["I", "II", "III"]}


def test_a_cross_or_nothing_and_all_answers():
    """A table of yes and no is one of 0 and 1, whatever the answers are called."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 40)
    x = (rng.random((80, 12)) < np.where(truth == 0, 0.2, 0.8)[:, None]).astype(float)
    words = pd.DataFrame(x).map(lambda value: "ja" if value else "nein")
    views = check_views({"panel": words})
    assert_array_equal(views.arrays[0], 1.0 - x)  # "ja" comes before "nein"
    model = PSE(2, random_state=0).fit({"panel": words})
    assert model.view_readings_["panel"].kind == "binary"
    assert_array_equal(model.labels_, PSE(2, random_state=0).fit({"panel": x}).labels_)


def test_new_rows_with_holes_levels_that_are_new_and_columns_that_are_not_there():
    truth, frame = clinic(n=300, missing=0.1)
    rows = frame.drop(columns="consent").notna().any(axis=1)
    frame, truth = frame[rows].reset_index(drop=True), truth[rows]
    fusion = fuse_views({"clinic": frame[:200]}, 3, random_state=0)
    new = frame[200:].reset_index(drop=True)
    placed = fusion.place({"clinic": new})
    assert matched_accuracy_score(truth, np.append(fusion.labels, placed.labels)) > 0.85
    assert_array_equal(fusion.predict({"clinic": new.iloc[:, ::-1]}), placed.labels)
    blank = new.copy()
    blank.loc[3] = None
    with pytest.raises(ValueError, match=r"1 of \d+ instances is present in no view: row 3"):
        fusion.place({"clinic": blank})
    strange = new.astype({"ward": object}).copy()
    strange.loc[4, "ward"] = "moon"
    missing = new.copy()
    missing.loc[4, "ward"] = None
    with pytest.warns(
        UserWarning, match=r"'moon' was not there when it was fitted; 1 cell is read as missing"
    ):
        found = fusion.predict({"clinic": strange})
    assert_array_equal(found, fusion.predict({"clinic": missing}))
    with pytest.warns(UserWarning, match=r"lacks the columns 'age', 'seen'"):
        fewer = fusion.predict({"clinic": new.drop(columns=["age", "seen"])})
    assert adjusted_rand_score(fewer, placed.labels) > 0.5
    model = PSE(3, random_state=0).fit(frame[:200])
    with pytest.warns(UserWarning, match=r"lacks the column 'age'"):
        model.predict(new.drop(columns="age"))


def test_text_where_numbers_were_fitted_is_refused():
    x = np.random.default_rng(0).normal(size=(30, 2))
    model = PSE(2, random_state=0).fit({"v": pd.DataFrame(x, columns=["a", "b"])})
    new = pd.DataFrame({"a": ["x", "y", "z"], "b": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"column 'a' holds text; it held numbers when PSE was fitted"):
        model.predict({"v": new})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame([["a", 1.0], ["b", 2.0]], columns=["x", "x"]), r"view 'v' has two columns of one name"),
        (pd.DataFrame({"c": ["a", "b"], "x": [np.inf, 1.0]}), r"view 'v' has inf in row 0, column 'x'"),
        (pd.DataFrame({"c": ["a", "b"], "x": [[1], [2]]}), r"column 'x': row 0 holds a list"),
        (pd.DataFrame({"c": ["a", "a"], "x": [None, None]}), r"view 'v' has no column that tells rows apart"),
    ],
)
def test_what_is_still_refused(table, message):
    with pytest.raises((ValueError, TypeError), match=rf"{message}.*Hint: "):
        check_views({"v": table})


def test_ids_join_tables_of_any_columns():
    truth, frame = clinic(missing=0.1)
    frame = frame.drop(columns="consent").assign(patient=[f"p{i}" for i in range(len(frame))])
    half = frame.sample(100, random_state=0)[["patient", "age", "ward"]]
    fusion = fuse_views({"clinic": frame, "half": half}, 3, on="patient", random_state=0)
    assert matched_accuracy_score(truth, fusion.labels) > 0.9
    placed = fusion.place({"half": half[:5], "clinic": frame[:90]}, on="patient")
    assert len(placed.labels) == len({*half["patient"][:5], *frame["patient"][:90]})
    with pytest.warns(
        UserWarning, match=r"patient \(an id\) is left out\. Hint: if it names .* on='patient'"
    ):
        check_views({"clinic": frame})


@pytest.mark.parametrize("name", ["penguins", "breastcancer", "zoo", "colic", "credit_data", "boys"])
def test_real_tables(name, data_folder):
    frame = pd.read_csv(data_folder / "tables" / f"{name}.csv", dtype=str, keep_default_na=False).head(300)
    with noted(name):
        views = check_views({name: frame})
    assert np.isfinite(views.arrays[0]).all()
    shuffled = frame.sample(frac=1, random_state=0)
    with noted(name):
        again = check_views({name: shuffled.iloc[:, ::-1].reset_index(drop=True)})
    order = shuffled.index.to_numpy()
    places = [again.columns[0].index(column) for column in views.columns[0]]
    assert_allclose(again.arrays[0][:, places], views.arrays[0][order], atol=1e-6)


def noted(name):
    """A table of which a column is left out is warned about."""
    if name in ("penguins", "boys", "credit_data"):
        return nullcontext()
    return pytest.warns(UserWarning, match=rf"view '{name}': .* left out\. Hint: if it names")
