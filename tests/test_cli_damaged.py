"""Files that are damaged, of a strange kind or no files at all: one sentence that names them and helps."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from consilience.cli.main import run

PEOPLE = "who,a,b,c\nann,gold,spender,\nbob,basic,saver,\ncleo,gold,,high\ndan,basic,NA,low\neve,,saver,low\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


@pytest.fixture
def error(capfd):
    """The line that a command ends with, and its exit code."""

    def call(*arguments):
        code = run(list(arguments))
        out = capfd.readouterr()
        assert out.out == ""
        assert out.err.count("\n") == 1
        assert out.err.startswith("Error: ")
        return code, out.err

    return call


def in_a_process(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "consilience", *arguments], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("slot", [10, 20])
@pytest.mark.parametrize("value", [2**30, -5])
def test_arrow_offsets_that_point_outside_do_not_end_the_process(here, slot, value):
    feather.write_feather(pa.table({"a": ["x", "y"] * 10, "b": ["u", "v"] * 10}), "bad.arrow", "uncompressed")
    raw = bytearray((here / "bad.arrow").read_bytes())
    at = raw.index(struct.pack("<21i", *range(21))) + 4 * slot
    raw[at : at + 4] = struct.pack("<i", value)
    (here / "bad.arrow").write_bytes(raw)
    code, err = in_a_process("fuse", "bad.arrow", "-k", "2", "-q")
    assert code == 1
    assert err.startswith("Error: bad.arrow cannot be read: ")
    assert err.endswith(
        "Hint: check that it is complete and of the kind that its suffix says, or write it again.\n"
    )
    assert err.count("\n") == 1


def test_arrow_codes_beyond_their_dictionary_do_not_end_the_process(here):
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 99] * 8, pa.int32()), ["x", "y"], safe=False)
    table = pa.record_batch({"a": coded, "b": ["u", "v", "u"] * 8})
    with ipc.new_file("bad.arrow", table.schema) as file:
        file.write_batch(table)
    code, err = in_a_process("fuse", "bad.arrow", "-k", "2", "-q")
    assert code == 1
    assert err.startswith("Error: bad.arrow cannot be read: ")


def test_text_that_is_none_is_no_reason_to_convert_an_arrow_file(here, error):
    bad = pa.array([b"\xff\xfe", b"x"] * 3).view(pa.string())
    feather.write_feather(pa.table({"a": bad, "b": ["u", "v"] * 3}), "bad.arrow", "uncompressed")
    code, err = error("fuse", "bad.arrow", "-k", "2")
    assert code == 1
    assert "bad.arrow cannot be read" in err
    assert "iconv" not in err


@pytest.mark.parametrize("command", ["fuse", "cluster", "simulate", "compare"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1], [2], [1]]),
        pa.array([{"x": 1}, {"x": 2}, {"x": 1}]),
        pa.array([[("x", 1)], [("y", 2)], [("x", 1)]], pa.map_(pa.string(), pa.int64())),
    ],
    ids=["list", "struct", "map"],
)
def test_nested_columns_are_named(here, error, command, values):
    pq.write_table(pa.table({"a": values, "b": [1, 2, 1]}), "nested.parquet")
    code, err = error(command, "nested.parquet")
    assert code == 2
    assert "column 'a' of nested.parquet holds values of type" in err
    assert "Hint: choose other columns" in err
    assert error("fuse", "nested.parquet", "--id", "a")[0] == 2


def test_a_compressed_file_that_was_cut_off(here, error):
    whole = gzip.compress(PEOPLE.encode() * 1000)
    (here / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    code, err = error("fuse", "cut.csv.gz", "--id", "who", "-k", "2")
    assert code == 1
    assert "cut.csv.gz cannot be read" in err
    assert "Hint: it may be incomplete" in err


@pytest.fixture
def piped():
    """Files that are written into pipes, in threads."""
    writers = []

    def make(name, content):
        os.mkfifo(name)
        writers.append(threading.Thread(target=Path(name).write_bytes, args=(content,), daemon=True))
        writers[-1].start()

    yield make
    for writer in writers:
        writer.join(timeout=10)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_csv_is_read_from_a_pipe(here, capfd, piped, suffix):
    content = PEOPLE.encode()
    piped(f"pipe.{suffix}", gzip.compress(content) if suffix.endswith("gz") else content)
    assert run(["fuse", f"pipe.{suffix}", "--id", "who", "-k", "2", "-q"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 6


def test_other_kinds_are_not(here, error):
    os.mkfifo("pipe.parquet")
    code, err = error("fuse", "pipe.parquet", "-k", "2")
    assert code == 2
    assert (
        "'pipe.parquet' is a pipe, and only CSV can be read from a pipe. Hint: write it to a file first."
        in err
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seed", "-1"], "--seed"),
        (["--seed", str(2**32)], "--seed"),
        (["-m", "PCE", "-p", "n_clusters=4"], "--param does not set what -k sets. Hint: -k 4"),
        (["-m", "PCE", "-p", "random_state=4"], "--param does not set what --seed sets. Hint: --seed 4"),
    ],
)
def test_options_that_say_the_same_twice_or_cannot_be(here, error, options, message):
    code, err = error("fuse", "people.csv", "--id", "who", "-k", "2", *options)
    assert code == 2
    assert message in err


def test_a_saved_result_that_is_no_text(here, error):
    (here / "bad.json").write_bytes(b"\xff\xfe\x00")
    assert error("report", "bad.json")[0] == 1
    (here / "deep.json").write_bytes(b"[" * 200_000)
    code, err = error("report", "deep.json")
    assert code == 1
    assert "Hint: it is what --save or --json wrote." in err
