"""`consilience stability`, and --stability of fuse and cluster: what Python says, in every output."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

import consilience
from consilience import fuse, load
from consilience.cli.main import run
from consilience.datasets import make_partial_views
from tests.planted import planted


def call(command):
    return run(command.split())


@pytest.fixture
def labels(tmp_path, monkeypatch):
    """banks.csv, its result in banks.consilience, and what Python says of it."""
    monkeypatch.chdir(tmp_path)
    _, base = planted(90, 4, 3, noise=0.2, missing=0.2, seed=2)
    frame = pd.DataFrame(np.array(["x", "y", "z", None], dtype=object)[base], columns=list("abcd"))
    frame = frame[frame.notna().any(axis=1)]
    frame.insert(0, "id", [f"i{n}" for n in range(len(frame))])
    frame.to_csv("banks.csv", index=False)
    assert call("fuse banks.csv --id id -k 3 -m DAL --seed 5 --save banks.consilience -q") == 0
    fusion = fuse(frame.set_index("id"), 3, method="DAL", random_state=5)
    return fusion.stability(n_resamples=2)


@pytest.fixture
def views(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = make_partial_views(60, missing=0.2, random_state=0)
    for v, name in enumerate(("left", "right")):
        frame = pd.DataFrame(data.views[v]).add_prefix("f")
        frame.insert(0, "id", [f"p{n}" for n in range(60)])
        frame[data.observed[:, v]].to_csv(f"{name}.csv", index=False)
    assert call("cluster left.csv right.csv --id id -k 2 --save views.consilience -q") == 0


def test_a_saved_result_of_labels(labels, capfd):
    assert call("stability banks.consilience --resamples 2") == 0
    assert capfd.readouterr().out.strip() == str(labels)


def test_json(labels, capfd):
    assert call("stability banks.consilience --resamples 2 --json") == 0
    assert json.loads(capfd.readouterr().out) == json.loads(json.dumps(labels.as_dict()))


def test_a_table_and_a_page(labels, capfd):
    assert call("stability banks.consilience --resamples 2 -o refits.csv --report page.html") == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert str(labels) in err
    with open("refits.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["part"] for row in rows] == [one.part for one in labels.refits]
    np.testing.assert_allclose(
        [float(row["ari"]) for row in rows], [one.ari for one in labels.refits], atol=1e-6
    )
    np.testing.assert_allclose(
        [float(row["cluster 0"]) for row in rows], [one.jaccard[0] for one in labels.refits], atol=1e-6
    )
    assert rows[-1]["without"] == "d"
    with open("page.html", encoding="utf-8") as file:
        page = file.read()
    assert "How stable it is, and what drives it" in page
    assert labels.sentences[0] in page


def test_a_table_on_standard_output(labels, capfd):
    assert call("stability banks.consilience --resamples 2 -o - -q") == 0
    rows = list(csv.DictReader(io.StringIO(capfd.readouterr().out)))
    assert len(rows) == len(labels.refits)


def test_another_seed_draws_other_parts(labels, capfd):
    assert call("stability banks.consilience --resamples 2 --seed 6 --json") == 0
    assert json.loads(capfd.readouterr().out)["refits"] != json.loads(json.dumps(labels.as_dict()))["refits"]


@pytest.mark.parametrize("engine", ["memory", "blocks"])
def test_fuse_with_stability_says_the_same_in_every_engine(labels, capfd, engine):
    fusion = load("banks.consilience")
    expected = fusion.stability()
    command = f"fuse banks.csv --id id -k 3 -m DAL --seed 5 --stability --engine {engine}"
    assert call(f"{command} --json") == 0
    out, err = capfd.readouterr()
    told = json.loads(out)["results"][0]["stability"]
    assert told["sentences"] == list(expected.sentences)
    assert str(expected) in err
    assert [one["ari"] for one in told["left_out"]] == pytest.approx([one.ari for one in expected.left_out])
    assert call(f"{command} -o merged.csv") == 0
    assert str(expected) in capfd.readouterr().err


def test_views_have_to_be_named(views, capfd):
    assert call("stability views.consilience") == 1
    assert (
        "consilience stability groups.consilience blood.csv notes.csv --id patient" in capfd.readouterr().err
    )
    assert call("stability views.consilience left.csv right.csv --id id --resamples 1 --json") == 0
    told = json.loads(capfd.readouterr().out)
    assert {one["source"] for one in told["left_out"]} == {"left", "right"}
    assert told["noun"] == "view"


def test_cluster_with_stability(views, capfd, monkeypatch):
    few = consilience.Fusion.stability
    monkeypatch.setattr(
        consilience.Fusion, "stability", lambda self, **given: few(self, n_resamples=1, **given)
    )
    assert call("cluster left.csv right.csv --id id -k 2 --stability --json") == 0
    out, err = capfd.readouterr()
    told = json.loads(out)["results"][0]["stability"]
    assert all(sentence in err for sentence in told["sentences"])
    assert len(told["left_out"]) == 2


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("stability nowhere.consilience", "there is no file 'nowhere.consilience'"),
        ("stability banks.csv", "is no saved result"),
        (
            "stability banks.consilience banks.csv --id id",
            "was merged from labels. Hint: leave out the tables.",
        ),
        ("stability banks.consilience --share 2", "'share'"),
        ("stability banks.consilience -o banks.consilience", "would be overwritten"),
        ("stability banks.consilience --json -o -", "only one result can go to standard output"),
        ("stability banks.consilience --title T", "--title is the heading of a page"),
        ("stability banks.consilience -o refits.doc", "refits.doc"),
    ],
)
def test_what_is_refused(labels, capfd, command, message):
    assert call(command) in (1, 2)
    assert message in capfd.readouterr().err
