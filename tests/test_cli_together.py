"""Labels and views at the shell: `fuse --views`, and `predict` of such results."""

import json

import numpy as np
import pandas as pd
import pytest

from consilience.cli.help import repeat
from consilience.cli.main import run
from tests.test_together import make


@pytest.fixture
def files(tmp_path):
    y, labels, views = make(n=200, missing=0.3)
    ids = [f"c{i}" for i in range(len(y))]
    table = pd.DataFrame(labels, index=pd.Index(ids, name="customer"))
    table = table.mask(table < 0)
    table[table.notna().any(axis=1)].to_csv(tmp_path / "banks.csv")
    for name, x in views.items():
        frame = pd.DataFrame(x, index=table.index, columns=[f"f{j}" for j in range(x.shape[1])])
        frame.dropna().to_csv(tmp_path / f"{name}.csv")
    return tmp_path, len(y)


def command(folder, *more):
    views = [f"--views={folder / name}" for name in ("view0.csv", "view1.csv")]
    return run(["fuse", str(folder / "banks.csv"), *views, "--id", "customer", "-k", "3", *map(str, more)])


def test_both_sides_become_one_table(files, capfd):
    folder, n = files
    page, saved = folder / "page.html", folder / "both.consilience"
    assert command(folder, "-o", folder / "merged.csv", "--report", page, "--save", saved) == 0
    said = capfd.readouterr().err
    assert "3 base clusterings and 2 views" in said
    assert "instances have labels and features" in said
    merged = pd.read_csv(folder / "merged.csv")
    assert len(merged) == n
    assert set(merged["decided_by"]) <= {"both", "labels", "views", "neither"}
    text = page.read_text()
    assert "Labels and views" in text
    assert "only features" in text
    both = ["banks.csv", "--views", "view0.csv", "view1.csv"]
    for new in (both, ["banks.csv", f"--views={folder / 'view0.csv'}"], ["banks.csv"], ["view1.csv"]):
        out = folder / "placed.csv"
        told = [str(folder / name) if name.endswith(".csv") and "=" not in name else name for name in new]
        assert run(["predict", str(saved), *told, "--id", "customer", "-o", str(out)]) == 0
        placed = pd.read_csv(out).set_index("customer")["label"]
        before = merged.set_index("customer")["label"].loc[placed.index]
        assert (placed == before).mean() > 0.75


def test_all_files_after_views_are_views(files, monkeypatch):
    folder, n = files
    monkeypatch.chdir(folder)
    more = ["--id", "customer", "-k", "3", "-q", "-o"]
    written = []
    for number, words in enumerate(
        [
            ["banks.csv", "--views", "view0.csv", "--views", "view1.csv", *more],
            ["banks.csv", "--views", "view0.csv", "view1.csv", *more],
            ["banks.csv", "--views=view0.csv", "view1.csv", *more],
            ["--views", "view0.csv", "view1.csv", *more],
        ]
    ):
        before = ["--", "banks.csv"] if "banks.csv" not in words else []
        assert run(["fuse", *words, f"{number}.csv", *before]) == 0
        written.append((folder / f"{number}.csv").read_text())
    assert len(written[0].splitlines()) == n + 1
    assert set(written) == {written[0]}


@pytest.mark.parametrize("views", [["--views", "v.csv", "banks.csv"], ["--views=v.csv", "banks.csv"]])
def test_labels_come_before_views(views, capfd):
    assert run(["fuse", *views, "-k", "3"]) == 2
    said = capfd.readouterr().err
    assert "LABELS... is missing: all files after --views belong to it." in said
    assert "Hint: give LABELS... before --views, or after --." in said


def test_options_are_repeated_before_each_of_their_values():
    def repeated(line):
        return " ".join(repeat(line.split(), {"--views"}))

    assert repeated("a --views v w x --id i b") == "a --views v --views w --views x --id i b"
    assert repeated("a --views v - -k 3") == "a --views v --views - -k 3"
    assert repeated("--views=v w --views x y") == "--views=v --views w --views x --views y"
    for same in ("a b -k 3", "a --views v", "a --views", "-o o --views v -- a b", "-- --views v w"):
        assert repeated(same) == same


def test_json_says_what_each_source_counted(files, capfd):
    folder, _ = files
    assert command(folder, "--json", "--weights", "view0=0.5") == 0
    result = json.loads(capfd.readouterr().out)["results"][0]
    assert result["together"]["kind"] == ["labels"] * 3 + ["view"] * 2
    assert result["together"]["weight"][3] == 0.5
    assert len(result["sides"]) == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--engine", "dask"], "need all rows at once"),
        (["--method", "PCE"], "merged in one way"),
        (["--weights", "rna=2"], "unknown base clustering or view 'rna'"),
    ],
)
def test_refusals(files, capfd, more, words):
    assert command(files[0], *more) != 0
    assert words in capfd.readouterr().err


def test_the_number_of_clusters_is_to_be_given(files, monkeypatch, capfd):
    monkeypatch.chdir(files[0])
    assert run(["fuse", "banks.csv", "--views", "view0.csv", "--id", "customer"]) == 1
    said = capfd.readouterr().err
    assert "Hint: give -k; consilience fuse without --views, and consilience cluster, find one" in said


def test_kind_needs_views(files, capfd):
    assert (
        run(["fuse", str(files[0] / "banks.csv"), "--id", "customer", "-k", "3", "--kind", "a=counts"]) == 2
    )
    assert "also give --views" in capfd.readouterr().err


def test_ids_that_are_numbers(tmp_path):
    y, labels, views = make(n=120, missing=0.2, n_views=1)
    table = pd.DataFrame(labels, index=pd.Index(np.arange(len(y)) + 1000, name="customer"))
    table.mask(table < 0).to_csv(tmp_path / "banks.csv")
    frame = pd.DataFrame(views["view0"], index=table.index).rename(columns=lambda j: f"f{j}")
    frame.dropna().to_csv(tmp_path / "view0.csv")
    out = tmp_path / "merged.csv"
    words = ["fuse", str(tmp_path / "banks.csv"), "--views", str(tmp_path / "view0.csv"), "--id", "customer"]
    assert run([*words, "-k", "3", "-o", str(out), "-q"]) == 0
    assert len(pd.read_csv(out)) == len(y)
