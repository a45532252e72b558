"""Tables of features with columns of any kind at the shell."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import consilience
from consilience.cli.main import run
from consilience.metrics import matched_accuracy_score


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """A table as a clinic has it, numbers with gaps in another file, and the kind of each patient."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n, truth = 120, np.random.default_rng(1).integers(0, 3, 120)
    frame = pd.DataFrame(
        {
            "patient": [f"p{i}" for i in range(n)],
            "age": np.round(45 + 12 * truth + rng.normal(0, 4, n)).astype(int),
            "crp": [f"{value:.1f}".replace(".", ",") for value in 3 + 4 * truth + rng.normal(0, 1, n)],
            "smoker": np.where(rng.random(n) < np.array([0.1, 0.5, 0.9])[truth], "yes", "no"),
            "ward": np.array(["north", "south", "None"])[truth],  # an answer among features
            "seen": [f"{1 + k % 12:02d}/{1 + k // 12:02d}/2020" for k in rng.integers(0, 144, n)],
            "cost": [f"{value:,.2f}" for value in 2000 + 900 * truth + rng.normal(0, 90, n)],
            "code": [f"{code:03d}" for code in rng.integers(0, 4, n)],
        }
    )
    gaps = rng.random(frame.shape) < 0.1
    gaps[:, 0] = False
    frame = frame.mask(gaps, "?")
    frame.to_csv("clinic.csv", index=False)
    genes = pd.DataFrame(rng.normal(size=(n, 4)) + 2 * truth[:, None], columns=list("abcd"))
    genes = genes.mask(rng.random(genes.shape) < 0.1)
    genes.insert(0, "patient", frame["patient"])
    genes[20:].to_csv("genes.csv", index=False)
    return truth, frame


LINE = (
    "clinic: 3 numbers (age, crp, cost), 1 yes/no (smoker), 2 categories (ward, code), 1 date (seen). "
    "11% of the cells are missing and are filled in.\n"
)
KINDS = ["--kind", "clinic.seen=date:day-first"]


def clustered(capfd, *more):
    assert run(["cluster", "clinic.csv", "genes.csv", "--id", "patient", "-k", "3", *more]) == 0
    out = capfd.readouterr()
    return {row["patient"]: int(row["label"]) for row in csv.DictReader(io.StringIO(out.out))}, out.err


def test_text_gaps_and_decimal_commas(clinic, capfd):
    truth, frame = clinic
    labels, told = clustered(capfd, *KINDS, "-o", "-")
    assert LINE in told
    assert "genes: 4 numbers. 1" in told
    assert matched_accuracy_score(truth, [labels[patient] for patient in frame["patient"]]) > 0.9
    # The same as in Python, of text as it stands in the file.
    views = {"clinic": frame, "genes": pd.read_csv("genes.csv")}
    kind = {"clinic.seen": "date:day-first"}
    fusion = consilience.fuse_views(views, 3, on="patient", kind=kind, random_state=0)
    assert_array_equal(fusion.labels, [labels[patient] for patient in fusion.index])


def test_dates_that_can_be_read_in_two_ways_are_asked_about(clinic, capfd):
    _, told = clustered(capfd, "-o", "-")
    assert (
        "Warning: view 'clinic', column 'seen' is left out: no value says whether the day or the month comes "
        "first" in " ".join(told.split())
    )
    assert "--kind clinic.seen=date:day-first" in " ".join(told.split())


def test_kinds_of_views_and_columns(clinic, capfd):
    more = [
        "--kind",
        "clinic=measurements",
        "--kind",
        "ward=None<north<south",
        "--kind",
        "clinic.code=left-out",
    ]
    _, told = clustered(capfd, *KINDS, *more, "-o", "-")
    assert "1 ordered (ward), 1 date (seen). Left out: code (as you said)." in told
    assert run(["cluster", "clinic.csv", "-k", "3", "--id", "patient", "--kind", "clinic.wart=category"]) == 2
    assert "there is neither a view nor a column 'clinic.wart'. Hint: did you mean" in capfd.readouterr().err
    assert run(["cluster", "clinic.csv", "-k", "3", "--id", "patient", "--kind", "clinic.ward=number"]) != 0
    assert "column 'ward' is said to be a number and holds" in capfd.readouterr().err


@pytest.mark.parametrize("method", ["auto", "labels", "EEIMVC"])
def test_a_saved_result_places_rows_with_holes(clinic, capfd, method):
    _, frame = clinic
    labels, _ = clustered(capfd, *KINDS, "-o", "-", "--save", "groups.consilience", "-m", method)
    new = frame[:40].drop(columns="age")
    new.loc[3, "ward"] = "moon"
    new.to_csv("clinic.csv", index=False)
    assert run(["predict", "groups.consilience", "clinic.csv", "--id", "patient"]) == 0
    out = capfd.readouterr()
    said = " ".join(out.err.split())
    assert "view 'clinic' lacks the column 'age'" in said
    assert "'moon' was not there when it was fitted; 1 cell is read as missing" in said
    placed = {row["patient"]: int(row["label"]) for row in csv.DictReader(io.StringIO(out.out))}
    assert np.mean([placed[patient] == labels[patient] for patient in placed]) > 0.85


def test_stability_of_a_saved_result_reads_tables_as_they_were(clinic, capfd):
    clustered(capfd, *KINDS, "-o", "-", "--save", "groups.consilience")
    tables = ["clinic.csv", "genes.csv", "--id", "patient"]
    assert run(["stability", "groups.consilience", *tables, "--resamples", "2", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    fusion = consilience.load("groups.consilience")
    views = {"clinic": clinic[1], "genes": pd.read_csv("genes.csv")}
    again = fusion.stability(views, on="patient", n_resamples=2)
    assert [one["ari"] for one in found["refits"]] == [one.ari for one in again.refits]


def test_methods_are_compared_on_tables_as_they_were_said_to_be(clinic, capfd):
    views = ["--views", "clinic.csv", "--views", "genes.csv", "--id", "patient"]
    assert run(["compare", *views, "-k", "3", "-m", "PSE", "--resamples", "0", "--json", *KINDS]) == 0
    out = capfd.readouterr()
    assert "is left out" not in out.err
    assert json.loads(out.out)[0]["method"] == "PSE"
    assert run(["compare", "clinic.csv", "-k", "3", *KINDS]) == 2
    assert "--kind" in capfd.readouterr().err


def test_json_and_the_page_say_it(clinic, capfd):
    _, told = clustered(capfd, *KINDS, "--json", "--report", "page.html")
    assert LINE in told
    with open("page.html", encoding="utf-8") as page:
        assert "How the tables were read" in page.read()


def test_a_sheet_and_standard_input_are_the_same_table(clinic, capfd, monkeypatch):
    _, frame = clinic
    wanted, _ = clustered(capfd, *KINDS, "-o", "-")
    typed = frame.assign(age=pd.to_numeric(frame["age"], errors="coerce"))
    typed.to_excel("clinic.xlsx", index=False)
    command = ["cluster", "clinic.xlsx", "genes.csv", "--id", "patient", "-k", "3", *KINDS, "-o", "-"]
    assert run(command) == 0
    out = capfd.readouterr()
    assert LINE in out.err
    found = {row["patient"]: int(row["label"]) for row in csv.DictReader(io.StringIO(out.out))}
    assert found == wanted
