"""The files of the experiments: what is known of each, whether it is there, and what happens if it is not."""

import hashlib
import json
import re

import numpy as np
import pytest

from consilience import bench, datasets
from consilience.bench import DataFile, data_files
from consilience.bench.data import content_digest, needed, require_data, state
from consilience.cli.main import run as command

NAME = "pce-figures-2-3"


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    """A folder without any data, where the user has none either."""
    for variable in ("CONSILIENCE_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_file_of_every_experiment_is_known():
    known = data_files()
    for name in bench.available():
        assert set(needed(bench.load(name))) <= set(known), name
    for file in known.values():
        assert re.fullmatch(r"https://[\w./-]+, \S.*", file.source), file.name
        assert file.licence
        assert file.size > 1000
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert re.fullmatch("[0-9a-f]{64}", file.content)
        assert re.search(r"\b(X|pool|view0|K0|observed12) \(\d+ x \d+", file.holds), file.name
    assert len({file.sha256 for file in known.values()}) == len(known)


@pytest.mark.data
def test_the_files_are_those_that_are_described(data_folder, monkeypatch):
    monkeypatch.setenv("CONSILIENCE_DATA", str(data_folder))
    known = data_files()
    for file in known.values():
        path = data_folder / f"{file.name}.npz"  # among others, which no experiment reads
        assert path.stat().st_size == file.size
        assert state(file) == "here"
    small = [file for file in known.values() if file.size < 50_000]
    assert len(small) > 5
    for file in small:
        assert content_digest(data_folder / f"{file.name}.npz") == file.content
    loaded = datasets.load("mv_WebKB_Texas")
    shapes = re.findall(r"view\d \((\d+) x (\d+)", known["mv_WebKB_Texas"].holds)
    assert [view.shape for view in loaded.views] == [(int(n), int(d)) for n, d in shapes]


def test_a_file_is_known_by_its_bytes_or_by_what_it_holds(nothing):
    X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1], dtype=np.uint8)
    arrays = {"X": X, "y": y, "names": np.array(["a", "é"])}
    np.savez_compressed("toy.npz", **arrays)
    digest = hashlib.sha256((nothing / "toy.npz").read_bytes()).hexdigest()
    file = DataFile("toy", "", "", "", 0, digest, content_digest("toy.npz"))
    assert state(file) == "here"
    np.savez("toy.npz", **{**arrays, "y": y.astype(np.int64), "X": X.astype(np.float32)})
    assert state(file) == "here, repacked"
    others = {"y": [0, 1, 2], "X": X + 1e-3, "names": ["a", "e"], "z": [1]}
    for name, value in others.items():
        np.savez("toy.npz", **{**arrays, name: np.asarray(value)})
        assert state(file) == "different", name
    (nothing / "toy.npz").write_bytes(b"PK\3\4 broken")
    assert state(file) == "different"
    (nothing / "toy.npz").unlink()
    assert state(file) == "absent"


def test_an_experiment_without_its_data_does_not_start(nothing, capfd):
    files = needed(bench.load(NAME))
    assert command(["bench", "run", NAME]) == 1
    said = capfd.readouterr().err
    assert f"Error: {NAME} needs files that are not there: " in said
    assert all(f"{name}.npz" in said for name in files)
    assert f"Hint: consilience bench data {NAME} says" in said
    assert list(nothing.iterdir()) == []
    assert command(["bench", "plot", NAME, "-o", "figure.png"]) == 2
    assert list(nothing.iterdir()) == []


def test_one_absent_file_is_enough_and_built_in_data_need_none(nothing):
    experiment = bench.load(NAME)
    first, *others = needed(experiment)
    for name in others:
        (nothing / f"{name}.npz").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=rf"not there: {first}\.npz\. Hint"):
        require_data(experiment)
    (nothing / f"{first}.npz").write_bytes(b"")
    require_data(experiment)


TOY = """
title = "toy"
paper = "Nobody, 2026"
shows = ["nothing"]
input = "labels"
metrics = ["ACC"]
seeds = 1
data = [{name = "digits", file = "digits", max_rows = 60}]
methods = [{name = "PCE", of = "PCE", parameters = {gamma = -1.0}}]
"""


def test_where_every_fit_fails_it_says_so_and_draws_nothing(nothing, capfd):
    (nothing / "toy.toml").write_text(TOY)
    assert command(["bench", "run", "toy.toml"]) == 1
    assert "every fit failed; the first said: " in capfd.readouterr().err
    assert command(["bench", "plot", "toy.toml", "-o", "figure.png"]) == 1
    said = capfd.readouterr().err
    assert "there is nothing to draw: no fit of toy has a value of ACC. The first that failed said: " in said
    assert not (nothing / "figure.png").exists()


def test_the_list_says_what_is_there_and_what_to_do(nothing, capfd):
    np.savez("GLIOMA.npz", X=np.eye(3))
    assert command(["bench", "data"]) == 0
    out, err = capfd.readouterr()
    head, *rows = [line.split("\t") for line in out.splitlines()]
    assert head == ["file", "state", "bytes", "holds", "source", "licence", "note", "sha256"]
    assert len(rows) == len(data_files())
    found = {row[0]: row for row in rows}
    assert found["GLIOMA.npz"][1] == "different"
    assert {row[1] for name, row in found.items() if name != "GLIOMA.npz"} == {"absent"}
    assert f"0 of {len(rows)} files are there, 1 differ." in err
    assert "numpy.savez_compressed" in err
    assert command(["bench", "data", NAME, "--json", "--quiet"]) == 0
    out, err = capfd.readouterr()
    assert [file["name"] for file in json.loads(out)] == needed(bench.load(NAME))
    assert err == ""
