"""The commands that live with a result: --save, --like, predict and explain."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import consilience
from consilience import Partitions
from consilience.cli.main import run
from consilience.io import csv as io_csv
from consilience.io import ids
from tests.planted import planted


@pytest.fixture
def march(tmp_path, monkeypatch):
    """A result in march.consilience, of march.csv; the frame of labels, and what Python makes of it."""
    monkeypatch.chdir(tmp_path)
    _, base = planted(200, 5, 3, noise=0.2, missing=0.2, seed=2)
    frame = pd.DataFrame(np.array(["red", "green", "blue", None], dtype=object)[base], columns=list("abcde"))
    frame["e"] = pd.Series(base[:, 4]).where(base[:, 4] >= 0).astype("Int64")  # numbers among text
    frame = frame[frame.notna().any(axis=1)]
    frame.insert(0, "id", [f"i{n}" for n in range(len(frame))])
    frame.to_csv("march.csv", index=False)
    assert run(["fuse", "march.csv", "--id", "id", "-k", "3", "--save", "march.consilience", "-q"]) == 0
    return frame, consilience.load("march.consilience")


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_saved_result_is_that_of_fuse(march, capfd):
    frame, saved = march
    fusion = consilience.fuse(Partitions.of(frame.set_index("id").astype(object)), 3, random_state=0)
    assert saved.labels.tolist() == fusion.labels.tolist()
    assert capfd.readouterr().out == ""  # nothing was asked for but the file


@pytest.mark.parametrize("rows_a_block", [None, 300])
def test_newcomers_are_placed_as_predict_does(march, capfd, monkeypatch, rows_a_block):
    if rows_a_block is not None:  # bytes: several pieces
        monkeypatch.setattr(io_csv, "BLOCK", rows_a_block)
    frame, saved = march
    new = frame[["id", "b", "e"]].iloc[::2].dropna(subset=["b", "e"], how="all")
    new.to_csv("new.csv", index=False)
    assert run(["predict", "march.consilience", "new.csv", "--id", "id"]) == 0
    out, err = capfd.readouterr()
    expected = saved.place(new[["b", "e"]].astype(object))
    found = rows(out)
    assert [row["id"] for row in found] == new["id"].tolist()
    assert [int(row["label"]) for row in found] == expected.labels.tolist()
    assert [int(row["alternative"]) for row in found] == expected.alternative.tolist()
    np.testing.assert_allclose([float(row["confidence"]) for row in found], expected.confidence, atol=1e-6)
    assert f"Placed {len(new)} of {len(new)} instances." in err


def test_labels_that_were_not_there_are_counted_and_named(march, capfd):
    new = "id,a,b\nx,red,mauve\ny,mauve,\nz,,green\n"
    Path("new.csv").write_text(new)
    assert run(["predict", "march.consilience", "new.csv", "--id", "id", "-o", "placed.csv"]) == 0
    err = capfd.readouterr().err
    assert "2 labels did not exist in the saved result: 'mauve' of 'a' (1), 'mauve' of 'b' (1)" in err
    assert "Placed 2 of 3 instances; nothing is known of 1." in err
    assert [row["label"] == "-1" for row in rows(Path("placed.csv").read_text())] == [False, True, False]
    assert run(["predict", "march.consilience", "new.csv", "--id", "id", "-o", "other.csv", "--strict"]) == 1
    assert "Hint: leave out --strict" in capfd.readouterr().err
    assert not Path("other.csv").exists()


def test_several_files_are_joined(march, capfd):
    frame, saved = march
    frame[["id", "a"]].iloc[:50].dropna().to_csv("one.csv", index=False)
    frame[["id", "b"]].iloc[:50].dropna().to_csv("two.csv", index=False)
    assert run(["predict", "march.consilience", "one.csv", "two.csv", "--id", "id"]) == 0
    found = {row["id"]: int(row["label"]) for row in rows(capfd.readouterr().out)}
    both = frame.set_index("id")[["a", "b"]].iloc[:50].dropna(how="all")
    assert found == dict(zip(both.index, saved.predict(both).tolist(), strict=True))


@pytest.mark.parametrize("few", [1_000_000, 2])
def test_an_id_that_comes_twice_is_refused_with_its_rows(march, capfd, monkeypatch, few):
    monkeypatch.setattr(ids, "_FEW", few)  # above so many, ids are compared by numbers
    predict = ["predict", "march.consilience", "new.csv", "--id", "id"]
    for new, message in [
        ("p,0,1\nq,1,1\np,1,1\n", "the id 'p' occurs 2 times: lines 2 and 4 of new.csv. Hint: give a row"),
        ("p,0,1\nq,1,1\nq,1,1\nq,0,0\nq,,1\n", "'q' occurs 4 times: lines 3, 4, 5, ... of new.csv. Hint"),
        ("p,0,1\n,1,1\n", "line 3 of new.csv has no id. Hint: give every row an id of its own."),
    ]:
        Path("new.csv").write_text(f"id,a,b\n{new}")
        assert run(predict) == 1
        out, err = capfd.readouterr()
        assert out == ""
        assert message in err
        assert err.count("\n") == 1


def test_wrong_inputs_are_one_line(march, capfd):
    frame, _ = march
    frame.rename(columns={"a": "aa"}).to_csv("new.csv", index=False)
    for arguments, message in [
        (
            ["predict", "nowhere", "new.csv"],
            "there is no file 'nowhere'. Hint: it is what fuse --save wrote.",
        ),
        (
            ["predict", "new.csv", "new.csv"],
            "'new.csv' is no saved result. Hint: the first file is what fuse --save wrote.",
        ),
        (
            ["predict", "march.consilience", "new.csv", "--id", "id"],
            "no base clustering was called 'aa'. Hint: did",
        ),
        (["explain", "march.consilience", "i9999"], "there is no instance 'i9999'. Hint: did you mean 'i"),
        (["fuse", "march.csv", "--id", "id", "--save", "-"], "cannot be saved to standard output"),
    ]:
        assert run(arguments) in (1, 2)
        err = capfd.readouterr().err
        assert err.startswith("Error: ")
        assert message in err
        assert err.count("\n") == 1


def test_explanations_are_those_of_python(march, capfd):
    _, saved = march
    assert run(["explain", "march.consilience", "i7"]) == 0
    assert capfd.readouterr().out == f"{saved.explain('i7')}\n"
    assert run(["explain", "march.consilience", "i7", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == saved.explain("i7").as_dict()


@pytest.mark.parametrize("like", ["march.consilience", "march-labels.csv", "march-labels.parquet"])
def test_clusters_keep_their_numbers(march, capfd, like):
    frame, saved = march
    table = pd.DataFrame({"id": saved.index.astype(object), "label": saved.labels})
    table.to_csv("march-labels.csv", index=False)
    table.to_parquet("march-labels.parquet")
    frame.iloc[40:].sample(frac=1.0, random_state=0).to_csv("april.csv", index=False)
    assert run(["fuse", "april.csv", "--id", "id", "-k", "3", "--like", like]) == 0
    out, err = capfd.readouterr()
    before = dict(zip(saved.index, saved.labels.tolist(), strict=True))
    same = [before[row["id"]] == int(row["label"]) for row in rows(out)]
    assert np.mean(same) > 0.9
    assert f"{len(same)} instances in both, 0 new, 40 gone; {len(same) - sum(same)} of those" in err


def test_the_clusters_of_a_table_are_in_a_column_that_says_so(march, capfd):
    _, saved = march
    earlier = pd.DataFrame({"id": saved.index.astype(object), "segment": saved.labels, "churn": "nein"})
    fuse = ["fuse", "march.csv", "--id", "id", "-k", "3", "-o", "out.csv", "--like", "earlier.csv"]
    earlier.to_csv("earlier.csv", index=False)
    assert run(fuse) == 0
    assert "All clusters stayed." in capfd.readouterr().err
    answer = Path("out.csv").read_text()
    renamed = earlier.rename(columns={"segment": "group"})
    renamed.to_csv("earlier.csv", index=False)
    assert run(fuse) == 1
    assert capfd.readouterr().err == (
        "Error: which column of earlier.csv holds the clusters is not clear: it has 'group', 'churn' beside "
        "the ids. Hint: name it with --like-column, or call it label, cluster or segment.\n"
    )
    renamed.drop(columns="churn").to_csv("earlier.csv", index=False)
    assert run(fuse) == 1  # one column, but who says that it holds clusters?
    capfd.readouterr()
    assert run([*fuse, "--like-column", "group"]) == 0
    assert Path("out.csv").read_text() == answer
    renamed.rename(columns={"id": "customer"}).to_excel("earlier.xlsx", index=False)
    fuse[-1] = "earlier.xlsx"
    assert run([*fuse, "--like-column", "group", "--id", "earlier.xlsx=customer"]) == 0
    assert Path("out.csv").read_text() == answer
    capfd.readouterr()
    assert run([*fuse, "--like-column", "grupe", "--id", "earlier.xlsx=customer"]) == 2
    assert "earlier.xlsx has no column 'grupe'. Hint: did you mean 'group'?" in capfd.readouterr().err
    for arguments in ([], ["--like", "march.consilience"]):
        assert run([*fuse[:-2], *arguments, "--like-column", "group"]) == 2
        assert "--like" in capfd.readouterr().err


def test_views_are_saved_followed_and_placed(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 30)
    ids = [f"p{n}" for n in range(90)]
    tables = {
        name: pd.DataFrame(rng.normal(6 * rng.normal(size=(3, 4))[kind]), index=ids)
        for name in ("one", "two")
    }
    for name, table in tables.items():
        table.columns = [f"{name}{j}" for j in range(4)]
        table.drop(index=ids[:5] if name == "one" else ids[-5:]).to_csv(f"{name}.csv", index_label="id")
    assert (
        run(["cluster", "one.csv", "two.csv", "--id", "id", "-k", "3", "--save", "views.consilience", "-q"])
        == 0
    )
    saved = consilience.load("views.consilience")
    tables["two"].iloc[:20].to_csv("two.csv", index_label="id")
    assert run(["predict", "views.consilience", "two.csv", "--id", "id"]) == 0
    found = rows(capfd.readouterr().out)
    assert [row["id"] for row in found] == ids[:20]
    where = dict(zip(saved.index, saved.labels.tolist(), strict=True))
    assert [int(row["label"]) for row in found] == [where[i] for i in ids[:20]]


def test_explanations_in_json_name_their_parts(march, capfd):
    _, saved = march
    assert run(["explain", "march.consilience", "i7", "--json"]) == 0
    found, told = json.loads(capfd.readouterr().out), saved.explain("i7")
    assert found["sentences"] == list(told.sentences)
    assert [said["source"] for said in found["said"]] == list("abcde")
    assert [one["n_agreeing"] for one in found["alike"]] == [one.n_agreeing for one in told.alike]
    assert [set(turn) for turn in found["turns"]] == [{"source", "instead", "label"}] * len(told.turns)


def facts_of(saved):
    return pd.DataFrame(
        {
            "id": saved.index.astype(object),
            "age": 20 + 10 * saved.labels,
            "city": np.array(["Rome", "Bonn", ""])[saved.labels],
        }
    )


def test_names_title_and_profile_reach_every_output(march, capfd):
    _, saved = march
    facts_of(saved).sample(frac=1.0, random_state=0).to_csv("facts.csv", index=False)
    command = ["fuse", "march.csv", "--id", "id", "-k", "3", "--name-after", "a", "--profile", "facts.csv"]
    written = ["--title", "Spring", "--report", "page.html", "--save", "named.consilience"]
    assert run([*command, *written, "-o", "out.csv", "--json"]) == 0
    out, err = capfd.readouterr()
    summary = json.loads(out)
    again = consilience.load("named.consilience")
    assert set(again.names) == {"red", "green", "blue"}
    assert summary["title"] == "Spring"
    assert summary["results"][0]["names"] == list(again.names)
    first = summary["results"][0]["profile"]["columns"][0]
    assert (first["name"], first["clusters"][1]["mean"]) == ("age", 30.0)
    assert "2 columns of" in err
    assert "corrected for all columns" in err
    page = Path("page.html").read_text()
    assert "<title>Spring</title>" in page
    assert "What else distinguishes the clusters" in page
    for row in rows(Path("out.csv").read_text()):
        assert row["name"] == again.names[int(row["label"])]
    assert run(["predict", "named.consilience", "march.csv", "--id", "id"]) == 0
    placed = rows(capfd.readouterr().out)
    assert all(row["name"] == again.names[int(row["label"])] for row in placed)


def test_ids_of_a_profile_may_be_numbers(march, capfd):
    frame, saved = march
    frame["id"] = np.arange(len(frame)) + 1000
    facts = facts_of(saved)
    facts["id"] = frame["id"].to_numpy()
    frame.to_csv("numbers.csv", index=False)
    frame.astype({"e": "float"}).to_parquet("numbers.parquet")
    facts.to_csv("facts.csv", index=False)
    facts.to_parquet("facts.parquet")
    for table in ("numbers.csv", "numbers.parquet"):
        for other in ("facts.csv", "facts.parquet"):
            assert run(["fuse", table, "--id", "id", "-k", "3", "--profile", other, "--json", "-q"]) == 0
            told = json.loads(capfd.readouterr().out)["results"][0]["profile"]
            assert told["warnings"] == []
            assert told["columns"][0]["missing"] == 0.0


def test_weights_are_those_of_python(march, capfd):
    frame, _ = march
    command = ["fuse", "march.csv", "--id", "id", "-k", "3", "-m", "DAL", "--weights", "a=3, b=0"]
    assert run(command) == 0
    labels = [int(row["label"]) for row in rows(capfd.readouterr().out)]
    table = Partitions.of(frame.set_index("id").astype(object))
    weighted = consilience.fuse(table, 3, method="DAL", weights={"a": 3, "b": 0}, random_state=0)
    assert labels == weighted.labels.tolist()
    assert labels != consilience.fuse(table, 3, method="DAL", random_state=0).labels.tolist()


def test_a_profile_of_views(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 20)
    ids = pd.Index([f"p{n}" for n in range(60)], name="id")
    pd.DataFrame(rng.normal(6 * rng.normal(size=(3, 4))[kind]), index=ids).to_csv("one.csv")
    pd.DataFrame({"age": kind + 30.0}, index=ids).to_csv("facts.csv")
    assert run(["cluster", "one.csv", "--id", "id", "-k", "3", "--profile", "facts.csv", "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["results"][0]["profile"]["columns"][0]["name"] == "age"
    assert "1 column of 60 instances" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--title", "x"], "--title is the heading of a page. Hint: also give --report"),
        (["--name-after", "aa"], "no base clustering with labels is called 'aa'. Hint: did you mean 'a'"),
        (["--weights", "a"], "--weights 'a' is no name and number. Hint: as in"),
        (["--weights", "a=2,=3"], "--weights '=3' is no name and number. Hint: as in"),
        (["--weights", "a=much"], "--weights 'a=much' is no name and number. Hint: as in"),
        (["--weights", "aa=2"], "unknown base clustering 'aa' in weights. Hint: did you mean 'a'"),
        (["--weights", "a=-1"], "the weight of 'a' must be a number from 0. Got -1.0. Hint"),
        (["--profile", "nowhere.csv"], "there is no file 'nowhere.csv'. Hint"),
        (["--profile", "other.csv"], "no id of the frame is one of the fusion"),
        (["--profile", "empty.csv"], "empty.csv has no rows. Hint"),
        (["--profile", "wrong.csv"], "wrong.csv has no column 'id'. Hint"),
        (["--profile", "march.csv", "-o", "march.csv"], "'march.csv' is named twice"),
    ],
)
def test_wrong_options_are_one_line(march, capfd, options, message):
    Path("other.csv").write_text("id,age\nx1,3\nx2,4\n")
    Path("empty.csv").write_text("id,age\n")
    Path("wrong.csv").write_text("name,age\nx1,3\n")
    assert run(["fuse", "march.csv", "--id", "id", "-k", "3", "-q", *options]) in (1, 2)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert message in err
    assert err.count("\n") == 1


def test_a_profile_needs_ids(march, capfd):
    assert run(["fuse", "march.csv", "-k", "3", "--columns", "a,b", "--profile", "march.csv"]) == 2
    assert "--profile is joined by id. Hint: name the id column with --id." in capfd.readouterr().err


def test_instances_in_no_cluster_are_no_cluster_to_follow(march, capfd):
    frame, _ = march
    frame = pd.concat([frame, pd.DataFrame({"id": ["nobody", "noone"]})])
    frame.to_csv("april.csv", index=False)
    fuse = ["fuse", "april.csv", "--id", "id", "-k", "3", "--unobserved", "noise"]
    assert run([*fuse, "-o", "earlier.csv", "-q"]) == 0
    assert "nobody,-1," in Path("earlier.csv").read_text()
    assert run([*fuse, "--like", "earlier.csv", "-o", "now.csv"]) == 0
    assert "All clusters stayed." in capfd.readouterr().err
    now = pd.read_csv("now.csv")
    assert now.pop("previous").tolist() == now["label"].tolist()
    pd.testing.assert_frame_equal(now, pd.read_csv("earlier.csv"))


def test_report_takes_what_save_wrote(march, capfd):
    assert run(["report", "march.consilience", "-o", "page.html", "--title", "March"]) == 0
    page = Path("page.html").read_text()
    assert "<title>March" in page
    assert run(["fuse", "march.csv", "--id", "id", "-k", "3", "--json"]) == 0
    Path("march.json").write_text(capfd.readouterr().out)
    assert run(["report", "march.json", "--title", "March"]) == 2
    assert "JSON has the heading already." in capfd.readouterr().err
    Path("broken.consilience").write_bytes(Path("march.consilience").read_bytes()[:300])
    assert run(["report", "broken.consilience"]) == 1
    assert capfd.readouterr().err.startswith("Error: ")
    assert not Path("report.html").exists()


def test_changes_writes_everybody(march, capfd):
    frame, saved = march
    frame.iloc[20:].assign(a=frame["b"].fillna(frame["a"])).to_csv("april.csv", index=False)
    given = ["fuse", "april.csv", "--id", "id", "-k", "3", "--like", "march.consilience"]
    assert run([*given, "--changes", "who.csv", "-o", "april-merged.csv", "--report", "page.html", "-q"]) == 0
    who = rows(Path("who.csv").read_text())
    assert {row["id"]: int(row["before"]) for row in who} == dict(zip(saved.index, saved.labels, strict=True))
    assert [row["what"] for row in who[-20:]] == ["gone"] * 20
    merged = rows(Path("april-merged.csv").read_text())
    assert [(row["id"], row["previous"], row["label"]) for row in merged] == [
        (row["id"], row["before"], row["now"]) for row in who[:-20]
    ]
    moved = [row["id"] for row in who if row["what"] == "moved"]
    page = Path("page.html").read_text()
    assert moved
    assert all(f"{each}" in page for each in moved)
    assert run(["fuse", "april.csv", "--id", "id", "-k", "3", "--changes", "other.csv"]) == 2
    assert "--like" in capfd.readouterr().err
