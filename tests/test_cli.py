"""The command line: what it reads, what it writes, what it says when something is wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from consilience import consensus, features, fuse, multiview
from consilience.cli.catalog import catalogue
from consilience.cli.main import run
from tests.planted import planted

COMMANDS = ("fuse", "cluster", "compare", "methods", "simulate", "report", "demo")
PEOPLE = "who,a,b,c\nann,gold,spender,\nbob,basic,saver,\ncleo,gold,,high\ndan,basic,NA,low\neve,,saver,low\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


@pytest.fixture
def table():
    """Planted labels with gaps, as strings."""
    _, base = planted(300, 6, 3, noise=0.15, missing=0.3, seed=0)
    names = np.array(["red", "green", "blue"])
    return {f"b{j}": [str(names[c]) if c >= 0 else None for c in base[:, j]] for j in range(6)}


def said(capfd):
    return capfd.readouterr()


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


class TestFuse:
    def test_writes_the_answer_of_fuse_to_standard_output(self, here, capfd):
        assert run(["fuse", "people.csv", "--id", "who", "-k", "2"]) == 0
        out = said(capfd)
        found = rows_of(out.out)
        assert list(found[0]) == ["who", "label", "confidence", "margin", "coverage", "alternative"]
        label = {row["who"]: row["label"] for row in found}
        assert label["ann"] == label["cleo"] != label["bob"] == label["dan"] == label["eve"]
        assert "2 clusters of 5 instances from 3 base clusterings" in out.err

    def test_says_how_to_read_the_confidence(self, here, capfd):
        (here / "same.csv").write_text(
            "who,a,b,c\n" + "".join(f"i{p},{p % 2},{p % 2},{p % 2}\n" for p in range(20))
        )
        assert run(["fuse", "same.csv", "--id", "who", "-k", "2", "--json"]) == 0
        out = said(capfd)
        told = json.loads(out.out)["results"][0]["reading"]
        assert "confidence ranks instances and is not the chance of being right" in told
        assert told in out.err

    @pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "parquet", "arrow"])
    def test_every_kind_of_file_is_the_same_table(self, here, table, capfd, suffix):
        columns = table
        frame = pa.table({"id": [f"i{p}" for p in range(300)], **columns})
        path = f"labels.{suffix}"
        if suffix == "parquet":
            pq.write_table(frame, path, row_group_size=70)
        elif suffix == "arrow":
            feather.write_feather(frame, path)
        else:
            mark = "\t" if suffix == "tsv" else ","
            lines = [mark.join(frame.column_names)]
            lines += [mark.join(value or "" for value in row.values()) for row in frame.to_pylist()]
            text = ("\n".join(lines) + "\n").encode()
            (here / path).write_bytes(gzip.compress(text) if suffix == "csv.gz" else text)
        assert run(["fuse", path, "--id", "id", "-k", "3", "-q", "--seed", "3"]) == 0
        found = rows_of(said(capfd).out)
        expected = fuse(frame, 3, index="id", random_state=3)
        assert [row["id"] for row in found] == [f"i{p}" for p in range(300)]
        assert [int(row["label"]) for row in found] == expected.labels.tolist()
        np.testing.assert_allclose(
            [float(row["confidence"]) for row in found], expected.confidence, atol=1e-6
        )

    @pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "parquet", "arrow"])
    def test_writes_the_kind_that_the_suffix_says(self, here, capfd, suffix):
        paths = [f"answer.{suffix}", f"full.{suffix}"]
        assert (
            run(["fuse", "people.csv", "--id", "who", "-k", "2", "-o", paths[0], "--imputed", paths[1]]) == 0
        )
        assert said(capfd).out == ""
        if suffix == "parquet":
            answer, full = (pq.read_table(path).to_pylist() for path in paths)
        elif suffix == "arrow":
            answer, full = (feather.read_table(path).to_pylist() for path in paths)
        else:
            pieces = [(here / path).read_bytes() for path in paths]
            texts = [
                (gzip.decompress(piece) if suffix.endswith("gz") else piece).decode() for piece in pieces
            ]
            mark = "\t" if suffix == "tsv" else ","
            answer, full = (list(csv.DictReader(io.StringIO(text), delimiter=mark)) for text in texts)
        assert [row["who"] for row in answer] == ["ann", "bob", "cleo", "dan", "eve"]
        assert full[0] == {"who": "ann", "a": "gold", "b": "spender", "c": "high"}
        assert sorted(os.listdir()) == sorted([*paths, "people.csv"])

    def test_several_files_are_joined_by_id(self, here, capfd):
        (here / "bank.csv").write_text("who,cluster\n7,gold\n8,basic\n9,gold\n10,basic\n")
        (here / "shop.csv").write_text("who,cluster\n8,saver\n7,spender\n11,saver\n")
        pq.write_table(pa.table({"who": [11, 9, 10], "kind": [1, 0, 1], "size": [5, 6, 5]}), "firm.parquet")
        files = ["bank.csv", "shop.csv", "firm.parquet"]
        assert run(["fuse", *files, "--id", "who", "-k", "2", "-q", "--imputed", "-"]) == 0
        found = rows_of(said(capfd).out)
        assert list(found[0]) == ["who", "bank", "shop", "kind", "size"]
        assert [row["who"] for row in found] == ["7", "8", "9", "10", "11"]  # in order of appearance
        assert found[4] == {"who": "11", "bank": "basic", "shop": "saver", "kind": "1", "size": "5"}

    def test_reads_standard_input(self, here):
        done = subprocess.run(
            [sys.executable, "-m", "consilience", "fuse", "-", "--id", "who", "-k", "2", "-q"],
            input=PEOPLE.encode(),
            capture_output=True,
            check=True,
        )
        assert len(rows_of(done.stdout.decode())) == 5

    def test_numbers_in_text_are_numbers(self, here, capfd):
        (here / "runs.csv").write_text("a,b\n10,1.0\n9,2.0\n10,1.0\n9,-1\n-1,2.0\n")
        assert run(["fuse", "runs.csv", "-k", "2", "-q", "--imputed", "-"]) == 0
        assert rows_of(said(capfd).out)[3] == {"row": "3", "a": "9", "b": "2"}
        (here / "codes.csv").write_text("a,b\n007,1\n010,2\n007,1\n010,2\n")
        assert run(["fuse", "codes.csv", "-k", "2", "-q", "--imputed", "-"]) == 0
        assert rows_of(said(capfd).out)[0] == {"row": "0", "a": "007", "b": "1"}

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_a_column_without_labels_is_left_out_with_a_warning(self, here, capfd, suffix):
        (here / "blank.csv").write_text("id,a,b,c\n1,x,,p\n2,x,,p\n3,y,,q\n")
        blank = pa.table(
            {"id": ["1", "2", "3"], "a": list("xxy"), "b": pa.nulls(3, pa.string()), "c": list("ppq")}
        )
        pq.write_table(blank, "blank.parquet")
        assert run(["fuse", f"blank.{suffix}", "--id", "id", "-k", "2"]) == 0
        out = said(capfd)
        assert "Warning: base clustering 'b' (column 1) has no labels and is ignored" in out.err
        assert [row["label"] for row in rows_of(out.out)] == ["0", "0", "1"]

    def test_noise_is_seen_but_in_no_cluster(self, here, capfd):
        (here / "hdbscan.csv").write_text("a,b\n0,0\n0,0\n1,1\n1,1\n-1,1\n-1,-1\n")
        assert run(["fuse", "hdbscan.csv", "-k", "2", "-q"]) == 1
        assert "no base clustering saw line 7 of hdbscan.csv" in said(capfd).err
        assert run(["fuse", "hdbscan.csv", "-k", "3", "-q", "--noise"]) == 0
        found = [row["label"] for row in rows_of(said(capfd).out)]
        assert found[5] not in found[:4]

    def test_instances_that_nobody_saw(self, here, capfd):
        (here / "gap.csv").write_text("a,b\n0,0\n0,0\n1,1\n,\n")
        assert run(["fuse", "gap.csv", "-k", "2", "-q"]) == 1
        assert run(["fuse", "gap.csv", "-k", "2", "-q", "--unobserved", "noise"]) == 0
        assert [row["label"] for row in rows_of(said(capfd).out)] == ["0", "0", "1", "-1"]

    def test_own_words_for_missing_and_own_delimiter(self, here, capfd):
        (here / "odd.csv").write_text("a;b\nNA;x\nNA;x\nu;y\nu;?\n")
        options = ["--delimiter", ";", "--missing", "?", "-k", "2", "-q", "--imputed", "-"]
        assert run(["fuse", "odd.csv", *options]) == 0
        found = rows_of(said(capfd).out)
        assert found[0] == {"row": "0", "a": "NA", "b": "x"}
        assert found[3] == {"row": "3", "a": "u", "b": "y"}

    def test_chooses_columns_and_methods_with_parameters(self, here, table, capfd):
        columns = table
        pq.write_table(pa.table(columns), "labels.parquet")
        options = [
            "-k",
            "3",
            "-m",
            "pce",
            "-p",
            "gamma=10",
            "-p",
            "init=coassociation",
            "--columns",
            "b0, b2,b4",
        ]
        assert run(["fuse", "labels.parquet", *options, "--unobserved", "noise", "--json"]) == 0
        out = said(capfd)
        summary = json.loads(out.out)
        assert summary["format"].startswith("consilience-report/")
        assert "from 3 base clusterings" in out.err
        assert "Method: PCE" in out.err

    def test_names_that_a_spreadsheet_would_run_are_harmless_in_csv_only(self, here, capfd):
        names = ["=cmd()", "+1+1", "@x", "-2", 'a,"b"', "-x"]
        labels = ["=evil()", "ok"] * 3
        pq.write_table(pa.table({"id": names, "=run": labels, "b": labels}), "hostile.parquet")
        run(["fuse", "hostile.parquet", "--id", "id", "-k", "2", "-q", "--imputed", "-"])
        found = rows_of(said(capfd).out)
        assert [row["id"] for row in found] == ["'=cmd()", "'+1+1", "'@x", "-2", 'a,"b"', "'-x"]
        assert list(found[0]) == ["id", "'=run", "b"]
        assert found[0]["b"] == "'=evil()"
        run(["fuse", "hostile.parquet", "--id", "id", "-k", "2", "-q", "-o", "out.parquet"])
        assert pq.read_table("out.parquet")["id"].to_pylist() == names

    def test_an_id_column_may_be_called_anything(self, here, capfd):
        (here / "odd.csv").write_text("label,a,b\nx,0,0\ny,0,0\nz,1,1\n")
        assert run(["fuse", "odd.csv", "--id", "label", "-k", "2", "-q"]) == 0
        assert [row["label (id)"] for row in rows_of(said(capfd).out)] == ["x", "y", "z"]

    def test_large_tables_are_read_and_written_in_pieces(self, here, monkeypatch):
        from consilience.evidence import reading

        rng = np.random.default_rng(0)
        truth = rng.integers(0, 3, 5000)
        columns = {f"b{j}": np.where(rng.random(5000) < 0.1, 0, truth).astype(str) for j in range(3)}
        ids = np.array([f"id-{p}" for p in rng.permutation(5000)])
        pq.write_table(pa.table({"id": ids, **columns}), "big.parquet", row_group_size=512)
        monkeypatch.setattr(reading, "ROWS_A_BATCH", 700)
        assert run(["fuse", "big.parquet", "--id", "id", "-k", "3", "-q", "-o", "out.parquet"]) == 0
        found = pq.read_table("out.parquet")
        assert found["id"].to_pylist() == ids.tolist()
        assert pq.ParquetFile("out.parquet").num_row_groups == 8
        assert found["label"].to_pylist() == fuse(columns, 3, random_state=0).labels.tolist()


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (["fuse", "nothing.csv"], 2, "there is no file 'nothing.csv'. Hint"),
            (["fuse", "people.csv", "--id", "wo"], 2, "has no column 'wo'. Hint: did you mean 'who'"),
            (
                ["fuse", "people.csv", "-k", "none"],
                2,
                "-k must be a number from 1, or auto. Got 'none'. Hint",
            ),
            (
                ["fuse", "people.csv", "-m", "PCX"],
                2,
                "there is no method 'PCX' for labels. Hint: did you mean PCE?",
            ),
            (
                ["fuse", "people.csv", "-m", "APMC"],
                2,
                "consilience fuse merges labels of base clusterings. Hint: use it in consilience cluster",
            ),
            (["fuse", "people.csv", "-p", "gamma=1"], 2, "--param needs --method. Hint"),
            (
                ["fuse", "people.csv", "-m", "PCE", "-p", "gama=1"],
                2,
                "PCE has no parameter 'gama'. Hint: did you mean",
            ),
            (["fuse", "people.csv", "-m", "PCE", "-p", "gamma"], 2, "has no value. Hint"),
            (
                ["fuse", "people.csv", "ids.csv"],
                2,
                "to join 2 files, every one needs an id column, and 'people' has none. Hint",
            ),
            (["fuse"], 2, "Missing argument 'LABELS...'. Hint: see consilience fuse --help."),
            (["fuse", "people.csv", "-o", "no/where.csv"], 2, "there is no folder 'no' to write to. Hint"),
            (
                ["fuse", "people.csv", "-o", "x.xlsx#a"],
                2,
                "'x.xlsx#a' is a sheet, and only whole files can be written. Hint",
            ),
            (
                ["fuse", "people.csv", "--json", "-o", "-"],
                2,
                "only one result can go to standard output. Hint",
            ),
            (["fuse", "people.csv", "--delimiter", "::"], 2, "--delimiter must be one character"),
            (
                ["fuse", "people.csv", "--id", "who", "-k", "9"],
                1,
                "n_samples=5 should be >= -k 9. Hint",
            ),
            (
                ["fuse", "twice.csv", "--id", "who", "-k", "2"],
                1,
                "the id 'ann' occurs 2 times: lines 2 and 4 of twice.csv. Hint",
            ),
            (["fuse", "blank.csv", "--id", "who", "-k", "2"], 1, "line 3 of blank.csv has no id. Hint"),
            (["fuse", "ragged.csv", "-k", "2"], 1, "line 3 of ragged.csv has 3 cells, the header has 2"),
            (["fuse", "empty.csv", "-k", "2"], 1, "empty.csv"),
            (["fuse", "header.csv", "-k", "2"], 1, "header.csv has no rows. Hint"),
            (["fuse", "fake.parquet", "-k", "2"], 1, "fake.parquet cannot be read"),
            (
                ["fuse", "floats.csv", "-k", "2"],
                1,
                "'a' has the value 0.5 in line 3 of floats.csv, which is not a cluster label. Hint",
            ),
            (
                ["fuse", "ids.csv", "-k", "2"],
                2,
                "base clustering 'who' has a different label in every row. Hint",
            ),
            (["fuse", "same.csv", "-k", "2"], 1, "two columns named 'a'. Hint"),
            (
                ["compare", "people.csv", "--id", "who", "-m", "DAL,NOPE"],
                2,
                "there is no method 'NOPE' for labels. Hint",
            ),
            (["methods", "--input", "songs"], 2, "no method takes 'songs'. Hint"),
            (["report", "people.csv"], 1, "people.csv is not JSON"),
            (["report", "none.json"], 2, "there is no file 'none.json'. Hint"),
            (["simulate", "people.csv", "--share", "3"], 2, "--share"),
            (["simulate", "people.csv", "--share", "1"], 2, "--share must leave something"),
            (["fuse", "people.csv", "--id", "who", "-o", "people.csv"], 2, "'people.csv' is named twice"),
            (["fuse", "people.csv", "-o", "./a.csv", "--imputed", "a.csv"], 2, "is named twice"),
            (["simulate", "people.csv", "-o", "./people.csv"], 2, "is named twice"),
            (["report", "people.csv", "-o", "people.csv"], 2, "is named twice"),
            (["fuse", "people.csv", "-o", "folder.csv"], 2, "'folder.csv' is a folder. Hint"),
            (
                ["fuse", "folder.csv", "-k", "2"],
                2,
                "there is no CSV or Parquet file in the folder 'folder.csv'. Hint",
            ),
            (["fuse", "binary.csv", "-k", "2"], 1, "text in neither UTF-8, UTF-16 nor Windows-1252. Hint"),
            (["fuse", "empty.csv", "-k", "2"], 1, "a line of column names comes first"),
            (["compare", "people.csv", "-k", "5-3"], 2, "a range such as 3-6"),
            (["fuse", "people.csv", "--id", "who", "-k", "2", "-m", "PCE", "-p", "gamma=-5"], 1, "'gamma'"),
        ],
    )
    def test_is_one_line_with_a_hint_and_the_right_code(self, here, capfd, arguments, code, message):
        texts = {
            "twice.csv": "who,a,b\nann,0,0\nbob,1,1\nann,0,0\n",
            "blank.csv": "who,a,b\nann,0,0\n,1,1\n",
            "ragged.csv": "a,b\n1,2\n1,2,3\n",
            "empty.csv": "",
            "header.csv": "a,b\n",
            "fake.parquet": "not parquet at all",
            "floats.csv": "a,b\n1.0,1\n0.5,2\n",
            "ids.csv": "who,a\n" + "".join(f"p{p},{p % 2}\n" for p in range(30)),
            "same.csv": "a,a\n1,1\n",
        }
        for name, text in texts.items():
            (here / name).write_text(text)
        (here / "binary.csv").write_bytes(b"a,b\n\x81\x8d,x\n\xff\x90,y\n")
        (here / "folder.csv").mkdir()
        before = sorted(os.listdir())
        assert run(arguments) == code
        out = said(capfd)
        assert message in out.err
        assert out.err.count("\n") == 1
        assert out.err.startswith("Error: ")
        assert "Hint: " in out.err
        assert out.out == ""
        assert sorted(os.listdir()) == before

    def test_an_option_that_does_not_exist(self, here, capfd):
        assert run(["fuse", "people.csv", "--colour"]) == 2
        # Versions of Typer and Click differ in their punctuation, and in whether they guess what was meant.
        form = r"Error: No such option:? '?--colour\b.*\. Hint: see consilience fuse --help\.\n"
        assert re.fullmatch(form, said(capfd).err)

    def test_warnings_are_lines_too_and_quiet_hides_them(self, here, capfd):
        (here / "few.csv").write_text("a,b\n0,0\n0,0\n1,1\n1,1\n")
        assert run(["fuse", "few.csv", "-k", "3"]) == 0
        assert "Warning: only 2 distinct label rows for -k 3" in said(capfd).err
        assert run(["fuse", "few.csv", "-k", "3", "-q"]) == 0
        assert said(capfd).err == ""

    def test_a_failed_write_leaves_the_old_file(self, here, monkeypatch, capfd):
        from consilience.io import csv

        (here / "answer.csv").write_text("the old answer\n")
        monkeypatch.setattr(
            csv, "harmless", lambda values: (_ for _ in ()).throw(OSError(28, "No space left"))
        )
        assert run(["fuse", "people.csv", "--id", "who", "-k", "2", "-o", "answer.csv"]) == 1
        assert (here / "answer.csv").read_text() == "the old answer\n"
        assert sorted(os.listdir()) == ["answer.csv", "people.csv"]

    def test_ctrl_c_leaves_nothing_and_exits_130(self, here):
        rng = np.random.default_rng(0)
        pq.write_table(pa.table({f"b{j}": rng.integers(0, 40, 400_000) for j in range(10)}), "slow.parquet")
        code = (
            "import sys, consilience.results\n"
            "from consilience.cli.main import run; print('ready', flush=True)\n"
            "sys.exit(run(['fuse', 'slow.parquet', '-k', '9', '-o', 'out.csv']))"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout.readline() == b"ready\n"
        time.sleep(2)  # inside the work: it takes far longer
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert err.decode().strip().splitlines()[-1] == "Error: interrupted; nothing was written."
        assert sorted(os.listdir()) == ["people.csv", "slow.parquet"]

    def test_a_reader_that_goes_away_is_no_traceback(self, here):
        (here / "long.csv").write_text("a,b\n" + "0,0\n1,1\n" * 50_000)
        command = f"{sys.executable} -m consilience fuse long.csv -k 2 -q | head -1"
        done = subprocess.run(command, shell=True, capture_output=True, check=True)
        assert done.stdout.decode().startswith("row,label")
        assert b"Traceback" not in done.stderr


class TestTerminal:
    def test_a_bar_is_drawn_on_a_terminal_only(self, here):
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "consilience", "fuse", "people.csv", "--id", "who", "-k", "2"],
            stdout=subprocess.PIPE,
            stderr=follower,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(follower)
        drawn = b""
        try:
            while piece := os.read(leader, 1 << 16):
                drawn += piece
        except OSError:  # the end of a terminal
            pass
        os.close(leader)
        out, _ = process.communicate(timeout=60)
        assert b"tried" in drawn or b"merg" in drawn
        assert rows_of(out.decode())[0]["who"] == "ann"  # and nothing of it in the result

    @pytest.mark.parametrize("command", COMMANDS)
    def test_help_has_an_example(self, command, capfd):
        assert run([command, "--help"]) == 0
        assert f"consilience {command} " in said(capfd).out

    def test_version(self, capfd):
        import consilience

        assert run(["--version"]) == 0
        assert said(capfd).out == f"consilience {consilience.__version__}\n"

    def test_completion_knows_the_commands_without_loading_the_library(self):
        env = {
            **os.environ,
            "_CONSILIENCE_COMPLETE": "complete_bash",
            "COMP_WORDS": "consilience c",
            "COMP_CWORD": "1",
        }
        code = (
            "import sys; sys.argv = ['consilience']\n"
            "try:\n    from consilience.cli import main; main()\n"
            "finally:\n    print('loaded', *sorted({'numba', 'sklearn', 'pyarrow'} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
        words = done.stdout.decode().split()
        assert {"cluster", "compare"} <= set(words)
        assert words[-1] == "loaded"


class TestBlocks:
    @pytest.fixture
    def folder(self, here, table):
        (here / "parts").mkdir()
        frame = pa.table({"id": [f"i{p}" for p in range(300)], **table})
        for part in range(3):
            pq.write_table(frame[100 * part : 100 * part + 100], f"parts/{part}.parquet")
        return frame

    def test_a_part_may_lack_a_column_altogether(self, here, capfd):
        (here / "parts").mkdir()
        for part, b in enumerate((pa.nulls(3, pa.string()), pa.array(["p", "q", "q"]))):
            ids = [f"{part}{p}" for p in range(3)]
            pq.write_table(pa.table({"id": ids, "a": ["u", "v", "v"], "b": b}), f"parts/{part}.parquet")
        assert run(["fuse", "parts", "--id", "id", "-k", "2", "--engine", "blocks", "-o", "merged"]) == 0
        assert pq.read_table("merged")["label"].to_pylist() == [1, 0, 0, 1, 0, 0]

    @pytest.mark.usefixtures("folder")
    def test_a_folder_beyond_memory_says_how_the_number_of_clusters_was_found(self, here, capfd):
        assert run(["fuse", "parts", "--id", "id", "--engine", "blocks", "-o", "merged"]) == 0
        out = said(capfd)
        assert "this is not a count of classes." in out.err
        assert "3 clusters of 300 instances" in out.err

    @pytest.mark.parametrize("engine", ["blocks", "dask"])
    def test_a_folder_beyond_memory_gives_the_labels_of_fuse(self, here, folder, capfd, engine):
        options = ["--id", "id", "-k", "3", "--seed", "3", "--engine", engine, "-o", "merged"]
        with socket.socket() as other:
            with suppress(OSError):  # then somebody has Dask's usual port already
                other.bind(("127.0.0.1", 8787))
                other.listen()
            assert run(["fuse", "parts", *options]) == 0
        out = said(capfd)
        assert "3 clusters of 300 instances" in out.err
        assert "Warning" not in out.err
        found = pq.read_table("merged")
        assert found["id"].to_pylist() == folder["id"].to_pylist()
        expected = fuse(folder, 3, index="id", random_state=3)
        assert found["label"].to_pylist() == expected.labels.tolist()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["parts", "--scheduler", "tcp://nowhere:1"], "need --engine dask"),
            (["parts", "--engine", "blocks", "--checkpoint", "c"], "--checkpoint a folder to write to"),
            (["parts", "--engine", "dask", "--checkpoint", "c", "-o", "m.csv"], "a folder to write to"),
        ],
    )
    def test_what_blocks_cannot_do_is_said(self, here, folder, capfd, arguments, message):
        assert run(["fuse", *arguments, "--id", "id", "-k", "3"]) == 2
        err = said(capfd).err
        assert message in err
        assert err.count("\n") == 1

    @pytest.mark.parametrize("engine", ["blocks", "dask"])
    def test_a_page_and_the_completed_table_are_written_beside_a_folder(self, here, folder, capfd, engine):
        call = ["fuse", "parts", "--id", "id", "-k", "3", "--seed", "3"]
        further = ["--imputed", "i.csv", "--report", "p.html"]
        assert run([*call, "--engine", engine, "-o", "m", *further]) == 0, said(capfd).err
        expected = fuse(folder, 3, index="id", random_state=3)
        found = pq.read_table("m")
        assert found["id"].to_pylist() == folder["id"].to_pylist()
        assert found["label"].to_pylist() == expected.labels.tolist()
        completed = (here / "i.csv").read_text()
        assert "<html" in (here / "p.html").read_text()
        assert run([*call, "--imputed", "i.csv"]) == 0
        assert (here / "i.csv").read_text() == completed


class TestOtherCommands:
    def test_cluster_by_labels_and_by_a_multi_view_method(self, here, capfd):
        rng = np.random.default_rng(0)
        kind = np.repeat([0, 1, 2], 30)
        for name in ("shape", "sound"):
            X = rng.normal(6 * rng.normal(size=(3, 4))[kind])
            kept = rng.random(90) < 0.8
            columns = {f"f{j}": X[kept, j] for j in range(4)}
            pq.write_table(
                pa.table({"id": [f"x{p}" for p in np.flatnonzero(kept)], **columns}), f"{name}.parquet"
            )
        for method in ("auto", "labels", "APMC"):
            options = ["--id", "id", "-k", "3", "-m", method, "--partitions", "5", "-q"]
            assert run(["cluster", "shape.parquet", "sound.parquet", *options]) == 0
            found = rows_of(said(capfd).out)
            pairs = {(kind[int(row["id"][1:])], row["label"]) for row in found}
            assert len(pairs) == 3

    def test_cluster_says_what_was_read_of_each_view(self, here, capfd):
        rng = np.random.default_rng(0)
        kind = np.repeat([0, 1, 2], 30)
        size = rng.normal(6 * rng.normal(size=(3, 4))[kind])
        words = rng.poisson(rng.gamma(0.1, 5.0, size=(3, 40))[kind])
        words[:, 0], words[:5] = words[:, 0] + 1, 0
        for name, X in (("size", size), ("words", words), ("same", np.ones((90, 2)))):
            pq.write_table(pa.table({f"f{j}": column for j, column in enumerate(X.T)}), f"{name}.parquet")
        files = ["size.parquet", "words.parquet", "same.parquet"]
        settings = ["--kind", "words=measurements", "--weight", "size=0.5", "--weight", "same=0"]
        for options, read in (([], "counts 85 5"), (settings, "measurements 90 0")):
            assert run(["cluster", *files, "-k", "3", "--report", "page.html", *options]) == 0
            told = [" ".join(line.split()) for line in said(capfd).err.splitlines()]
            assert any(line.startswith(f"words {read} ") for line in told)
            assert any(line.startswith("Warning: view 'same' tells no two instances apart") for line in told)
            page = (here / "page.html").read_text()
            assert "How strongly each view supports each cluster" in page
            assert "view &#39;same&#39; tells no two" in page.replace("View", "view")
        for wrong, message in (
            (["--kind", "counts"], "--kind 'counts' names no view. Hint: as in --kind notes=..."),
            (["--weight", "size=much"], "--weight needs a number."),
            (["--kind", "word=counts"], "there is neither a view nor a column 'word'. Hint: did you mean"),
        ):
            assert run(["cluster", *files, "-k", "3", *wrong]) != 0
            assert message in said(capfd).err

    @pytest.mark.parametrize(
        ("rows", "code", "message"),
        [
            ("p,0,0\nq,1,inf\nr,5,5\n", 1, "replace it by a finite number, or empty all cells"),
            ("p,0,0\np,1,1\nr,5,5\n", 1, "in rows 0 and 1. Hint: keep one row per instance, or name"),
            ("p,0,a\nq,0,a\n", 1, "leave this view out, or say what a column is, as in --kind v.x=category"),
        ],
    )
    def test_what_is_wrong_with_a_view_is_said_in_the_words_of_the_shell(
        self, here, capfd, rows, code, message
    ):
        (here / "v.csv").write_text(f"id,x,y\n{rows}")
        assert run(["cluster", "v.csv", "-k", "2", "--id", "id"]) == code
        err = said(capfd).err
        assert message in err
        assert err.count("\n") == 1
        assert not re.search(r"mask=|on=|NaN or", err)

    def test_cluster_warns_of_whole_numbers_that_look_like_ids(self, here, capfd):
        (here / "n.csv").write_text("pid,x,y\n1,0,0\n2,.2,.1\n3,5,5\n4,5.1,4.8\n5,.1,.3\n")
        assert run(["cluster", "n.csv", "-k", "2", "--partitions", "2"]) == 0
        assert "say --id pid" in said(capfd).err

    def test_compare_shows_every_method_and_number(self, here, capfd):
        assert run(["compare", "people.csv", "--id", "who", "-k", "2-3", "-m", "DAL,PCE", "--json"]) == 0
        rows = json.loads(said(capfd).out)
        assert {(row["method"], row["n_clusters"]) for row in rows} == {
            (m, k) for m in ("DAL", "PCE") for k in (2, 3)
        }
        assert all(0 <= row["agreement"] <= 1 for row in rows)
        assert [row["rank"] for row in rows] == [1, 2, 1, 2]
        assert (
            run(["compare", "people.csv", "--id", "who", "-k", "2", "-m", "DAL", "--report", "page.html"])
            == 0
        )
        assert said(capfd).out.splitlines()[0].split("\t")[:3] == ["method", "clusters", "agreement"]
        assert "<html" in (here / "page.html").read_text()

    def test_compare_says_which_number_of_clusters_comes_first(self, here, capfd):
        assert (
            run(["compare", "people.csv", "--id", "who", "-k", "2,4", "-m", "DAL", "--resamples", "0"]) == 0
        )
        out = said(capfd)
        assert "clusters first" in out.err
        assert "within a number of clusters only" in out.err
        first = out.out.splitlines()[1].split("\t")[1]
        assert f"{first} clusters first" in out.err

    def test_methods_are_all_there_with_cost_and_paper(self, capfd):
        found = {method.name: method for method in catalogue()}
        assert set(found) == {*consensus.__all__, *features.__all__, *multiview.__all__}
        for method in found.values():
            assert method.cost, method
            assert method.paper, method
            assert method.does.endswith("."), method
        assert run(["methods", "--json"]) == 0
        assert {row["name"] for row in json.loads(said(capfd).out)} == set(found)
        assert run(["methods", "--input", "features"]) == 0
        assert said(capfd).out.splitlines()[1].split("\t")[:2] == ["ACMK", "features"]  # not a terminal
        assert found["APMC"].input == "views"
        assert found["ACMK"].input == "features"

    def test_simulate_removes_as_much_as_it_says(self, here, capfd):
        (here / "full.csv").write_text("id,a,b\n" + "".join(f"p{p},{p % 3},{p % 2}\n" for p in range(200)))
        assert run(["simulate", "full.csv", "--id", "id", "--share", "0.3", "--seed", "1"]) == 0
        out = said(capfd)
        found = rows_of(out.out)
        assert out.err == "Removed 120 of 400 labels.\n"
        assert sum(not row[name] for row in found for name in "ab") == 120
        assert all(row["a"] in ("", str(int(row["id"][1:]) % 3)) for row in found)

    def test_report_rebuilds_the_page_from_a_saved_result(self, here, capfd):
        assert run(["fuse", "people.csv", "--id", "who", "-k", "2", "--json", "--report", "first.html"]) == 0
        (here / "result.json").write_text(said(capfd).out)
        assert run(["report", "result.json", "-o", "second.html"]) == 0
        assert (here / "first.html").read_text() == (here / "second.html").read_text()

    def test_report_refuses_another_json(self, here, capfd):
        (here / "other.json").write_text('{"a": 1}')
        assert run(["report", "other.json"]) == 1
        assert "Hint" in said(capfd).err

    def test_demo_writes_the_page_and_ends_with_its_path(self, here, capfd):
        assert run(["demo", "out"]) == 0
        out = said(capfd)
        assert out.out.strip() == "out/report.html"
        scored = dict(re.findall(r"^(branch_\d|consensus) .* of 1797 +([\d.]+)", out.err, re.MULTILINE))
        best = scored.pop("consensus")
        assert len(scored) == 8
        assert all(float(best) > float(accuracy) for accuracy in scored.values())
        assert re.search(r"^consensus +10 +1797 of 1797", out.err, re.MULTILINE)
        assert sorted(os.listdir("out")) == [
            "branches.csv",
            "consensus.csv",
            "imputed.csv",
            "report.html",
            "summary.txt",
        ]
        consensus_rows = rows_of((here / "out" / "consensus.csv").read_text())
        assert run(["fuse", "out/branches.csv", "--id", "row", "-k", "10", "-q"]) == 0
        assert [row["label"] for row in rows_of(said(capfd).out)] == [row["label"] for row in consensus_rows]


def test_the_commands_in_the_documentation_run(here):
    """Each shell block of the page, one after the other, in one folder."""
    page = (Path(__file__).parent.parent / "docs" / "cli.md").read_text()
    script = "\n".join(re.findall(r"```shell\n(.*?)```", page, re.DOTALL))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={**os.environ, "PATH": path},
        check=True,
        capture_output=True,
    )
    made = {
        "merged.parquet",
        "full.csv",
        "page.html",
        "result.json",
        "groups.csv",
        "compared.html",
        "partial.csv",
        "march.consilience",
        "placed.csv",
        "cleo.json",
        "april.consilience",
        "april.html",
    }
    assert made <= set(os.listdir())
