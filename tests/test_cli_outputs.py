"""What a command writes is there together or not at all, wherever it goes and whatever ends the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from consilience._support.files import Outputs, whole_file
from consilience.cli.main import run
from consilience.io import files
from tests.test_cli_files import write_xlsx

PEOPLE = "who,a,b,c\nann,gold,spender,\nbob,basic,saver,\ncleo,gold,,high\ndan,basic,NA,low\neve,,saver,low\n"
FUSE = ["fuse", "people.csv", "--id", "who", "-k", "2", "-q"]
COMMAND = [sys.executable, "-m", "consilience"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


class TestOutputs:
    def test_files_appear_together_at_the_end(self, tmp_path):
        with Outputs() as outputs:
            for name in "ab":
                with outputs.open(tmp_path / name) as file:
                    file.write(name.encode())
            assert not any((tmp_path / name).exists() for name in "ab")
        assert sorted(os.listdir(tmp_path)) == ["a", "b"]
        assert (tmp_path / "b").read_bytes() == b"b"

    @pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, SystemExit])
    def test_a_failure_of_the_second_leaves_everything_as_it_was(self, tmp_path, error):
        (tmp_path / "a").write_text("old")

        def write():
            with Outputs() as outputs:
                with outputs.open(tmp_path / "a") as file:
                    file.write(b"new")
                with outputs.open(tmp_path / "b"):
                    raise error

        with pytest.raises(error):
            write()
        assert os.listdir(tmp_path) == ["a"]
        assert (tmp_path / "a").read_text() == "old"

    def test_a_name_that_cannot_be_taken_takes_the_others_back(self, tmp_path, monkeypatch):
        for name in "ab":
            (tmp_path / name).write_text("old")

        def write():
            with Outputs() as outputs:
                for name in "abcd":
                    with outputs.open(tmp_path / name) as file:
                        file.write(b"new")
                (tmp_path / "d").mkdir()

        with pytest.raises(OSError):
            write()
        assert {name: (tmp_path / name).read_text() for name in "ab"} == {"a": "old", "b": "old"}
        assert sorted(os.listdir(tmp_path)) == ["a", "b", "d"]

    def test_file_systems_without_links_keep_the_old_files_too(self, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError))
        self.test_a_name_that_cannot_be_taken_takes_the_others_back(tmp_path, monkeypatch)

    def test_a_link_is_written_through(self, tmp_path):
        (tmp_path / "real").write_text("old")
        (tmp_path / "link").symlink_to("real")
        (tmp_path / "dangling").symlink_to("made")
        for name in ("link", "dangling"):
            with whole_file(tmp_path / name) as file:
                file.write(b"new")
            assert (tmp_path / name).is_symlink()
        assert (tmp_path / "real").read_text() == (tmp_path / "made").read_text() == "new"

    def test_a_pipe_is_written_to(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        found = []
        reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
        reader.start()
        with whole_file(tmp_path / "pipe") as file:
            file.write(b"new")
        reader.join(timeout=30)
        assert found == [b"new"]
        assert os.listdir(tmp_path) == ["pipe"]

    def test_a_folder_that_is_not_there_is_named_as_it_was_given(self, tmp_path):
        with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "no" / "where"):
            pass
        assert caught.value.filename == str(tmp_path / "no" / "where")


class TestCommands:
    def test_no_output_where_a_second_one_fails(self, here, monkeypatch, capfd):
        (here / "merged.csv").write_text("old")
        monkeypatch.setattr(
            "consilience.cli.results.render", lambda _: (_ for _ in ()).throw(OSError(28, "Full"))
        )
        assert run([*FUSE, "-o", "merged.csv", "--imputed", "full.csv", "--report", "page.html"]) == 1
        assert "Full" in capfd.readouterr().err
        assert sorted(os.listdir()) == ["merged.csv", "people.csv"]
        assert (here / "merged.csv").read_text() == "old"

    def test_nothing_goes_to_standard_output_where_a_file_fails(self, here, monkeypatch, capfd):
        monkeypatch.setattr(
            "consilience.cli.results.render", lambda _: (_ for _ in ()).throw(OSError(28, "Full"))
        )
        assert run([*FUSE, "-o", "-", "--report", "page.html"]) == 1
        assert capfd.readouterr().out == ""

    def test_the_page_goes_to_standard_output_by_a_dash(self, here, capfd):
        assert run([*FUSE, "--report", "-"]) == 0
        assert capfd.readouterr().out.startswith("<!DOCTYPE html>")
        assert os.listdir() == ["people.csv"]
        assert run([*FUSE, "--report", "-", "-o", "-"]) == 2
        assert "only one result can go to standard output. Hint" in capfd.readouterr().err
        assert run(["compare", "people.csv", "--id", "who", "-m", "DAL", "--report", "-"]) == 2
        assert os.listdir() == ["people.csv"]

    @pytest.mark.parametrize("appended", [False, True])
    def test_a_link_to_standard_output_stays_one(self, here, appended):
        (here / "out").symlink_to("/proc/self/fd/1")  # as /dev/stdout is
        (here / "log").write_text("before\n")
        with open("log", "ab" if appended else "wb") as log:
            subprocess.run([*COMMAND, *FUSE, "--report", "out"], stdout=log, check=True)
        text = (here / "log").read_text()
        assert text.startswith("before\n<!DOCTYPE html>" if appended else "<!DOCTYPE html>")
        assert text.rstrip().endswith("</html>")
        assert (here / "out").is_symlink()

    def test_one_device_may_take_several_outputs(self, here):
        (here / "nothing.csv").symlink_to(os.devnull)
        assert run([*FUSE, "-o", "nothing.csv", "--imputed", "nothing.csv"]) == 0
        assert (here / "nothing.csv").is_symlink()

    def test_a_link_to_an_input_is_still_an_input(self, here, capfd):
        (here / "link.csv").symlink_to("people.csv")
        assert run([*FUSE, "-o", "link.csv"]) == 2
        assert "'link.csv' is the same file as 'people.csv'" in capfd.readouterr().err

    def test_files_appear_where_the_reader_of_standard_output_went_away(self, here):
        (here / "long.csv").write_text("a,b\n" + "0,0\n1,1\n" * 50_000)
        command = f"{' '.join(COMMAND)} fuse long.csv -k 2 -q -o - --report page.html | head -1"
        done = subprocess.run(command, shell=True, capture_output=True, check=True)
        assert done.stdout.decode().startswith("row,label")
        assert done.stderr == b""
        assert (here / "page.html").read_text().rstrip().endswith("</html>")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_while_files_are_written_leaves_none(here, number, code):
    (here / "merged.csv").write_text("old")
    program = (
        "import sys, time\n"
        "from consilience.cli import main, results\n"
        "def render(summary):\n    print('writing', flush=True)\n    time.sleep(60)\n"
        "results.render = render\n"
        f"main({[*FUSE, '-o', 'merged.csv', '--imputed', 'full.csv', '--report', 'page.html']})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"writing\n"
    assert any(name.endswith(".part") for name in os.listdir())
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err.decode().endswith("nothing was written.\n")
    assert err.count(b"\n") == 1
    assert sorted(os.listdir()) == ["merged.csv", "people.csv"]
    assert (here / "merged.csv").read_text() == "old"


def test_signals_end_nothing_once_the_files_are_complete(here, monkeypatch):
    """A command that has said that it is done is done, and does as before afterwards."""
    rename = files.Outputs.__exit__

    def slow(self, *error):
        os.kill(os.getpid(), signal.SIGINT)
        rename(self, *error)

    monkeypatch.setattr(files.Outputs, "__exit__", slow)
    assert run([*FUSE, "-o", "merged.csv", "--imputed", "full.csv"]) == 0
    assert sorted(os.listdir()) == ["full.csv", "merged.csv", "people.csv"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_an_experiment_says_what_is_kept(here, monkeypatch, capfd):
    monkeypatch.setattr("consilience.bench.run", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    assert run(["bench", "run", "pce-figures-2-3", "--small", "-q"]) == 130
    assert "finished rows are in bench-results" in capfd.readouterr().err


class TestClosedStreams:
    @pytest.fixture
    def closed(self, here):
        def call(redirections, *arguments):
            line = f"{' '.join([*COMMAND, *arguments])} {redirections}"
            done = subprocess.run(
                ["bash", "-c", line], input=PEOPLE.encode(), capture_output=True, timeout=60, check=False
            )
            return done.returncode, done.stdout.decode(), done.stderr.decode()

        return call

    def test_input(self, closed):
        code, out, err = closed("<&-", "fuse", "-", "-k", "2")
        assert (code, out) == (2, "")
        assert err == "Error: standard input is closed. Hint: name a file instead of -.\n"

    def test_output(self, closed):
        code, _, err = closed(">&-", *FUSE)
        assert (code, err) == (2, "Error: standard output is closed. Hint: give -o a file name.\n")
        assert closed(">&-", *FUSE, "-o", "merged.csv")[0] == 0

    def test_errors(self, closed):
        code, out, _ = closed("2>&-", "fuse", "people.csv", "--id", "who", "-k", "2")
        assert code == 0
        assert len(out.splitlines()) == 6  # and nothing of what is said
        assert closed("2>&-", "fuse", "nothing.csv")[0] == 2

    def test_all_of_them(self, closed, here):
        assert closed("<&- >&- 2>&-", *FUSE, "-o", "merged.csv")[0] == 0
        assert (here / "merged.csv").read_text().startswith("who,label")


def test_whole_numbers_beyond_64_bits_are_written(here, capfd):
    big = pa.array([2**63 + 1, 2**63 + 2, 2**63 + 1, None], pa.uint64())
    pq.write_table(pa.table({"a": big, "b": [1, 2, 1, 1]}), "big.parquet")
    assert run(["fuse", "big.parquet", "-k", "2", "-q", "--imputed", "full.parquet"]) == 0
    assert pq.read_table("full.parquet")["a"].to_pylist() == [2**63 + 1, 2**63 + 2, 2**63 + 1, 2**63 + 1]
    assert run(["simulate", "big.parquet", "-q", "--share", "0", "-o", "same.parquet"]) == 0
    assert pq.read_table("same.parquet")["a"].to_pylist() == big.to_pylist()
    (here / "big.csv").write_text(f"a,b\n{10**30},1\n{10**30},1\n5,2\n5,2\n")
    assert run(["fuse", "big.csv", "-k", "2", "-q", "--imputed", "-"]) == 0
    assert capfd.readouterr().out.splitlines()[1] == f"0,{10**30},1"


@pytest.mark.parametrize(
    "name",
    [
        "\n=1+1",
        "\r=1",
        "\t=1",
        " =1+1",
        "\u00a0=1+1",
        "\u200b=1",
        "\ufeff=1",
        "＝1+1",
        "＋x",
        "－x",
        "＠x",
        " -x",
    ],
)
def test_what_a_spreadsheet_takes_for_a_formula_is_harmless(here, name):
    frame = pa.table({"id": [name, "a", "b"], name: ["x", "x", "y"], "-5": [name, name, "-5"]})
    pq.write_table(frame, "hostile.parquet")
    assert run(["fuse", "hostile.parquet", "--id", "id", "-k", "2", "-q", "--imputed", "out.csv"]) == 0
    text = (here / "out.csv").read_bytes().decode()
    assert text.count(f"'{name}") == 4
    assert text.count(name) == 4
    assert text.splitlines()[-1].replace('"', "").endswith(",-5")  # a number is none


class TestInputsAreSafe:
    """No output takes the place of a file that is read, under whatever name; all before the work."""

    @pytest.fixture
    def workbook(self, here):
        sheet = [[cell or None for cell in line.split(",")] for line in PEOPLE.splitlines()]
        write_xlsx("w.xlsx", {"S": sheet, "T": sheet})
        return here

    def refused(self, arguments, what, capfd):
        before = {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}
        assert run([*arguments, "--id", "who", "-k", "2"]) == 2
        assert what in capfd.readouterr().err
        assert {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before

    @pytest.mark.parametrize("option", ["--save", "--report", "-o"])
    def test_a_workbook_of_which_a_sheet_is_read(self, workbook, option, capfd):
        self.refused(["fuse", "w.xlsx#S", option, "w.xlsx"], "'w.xlsx' is the same file as 'w.xlsx#S'", capfd)

    def test_the_table_of_like_and_that_of_profile(self, here, capfd):
        (here / "earlier.csv").write_text("who,label\nann,0\nbob,1\n")
        for option in ("--like", "--profile"):
            command = ["fuse", "people.csv", option, "earlier.csv", "-o", "earlier.csv"]
            self.refused(command, "'earlier.csv' is named twice and would be overwritten", capfd)

    def test_another_name_of_the_same_file(self, here, capfd):
        os.symlink("people.csv", "link.csv")
        os.link("people.csv", "hard.csv")
        for name in ("link.csv", "hard.csv"):
            self.refused(["fuse", "people.csv", "-o", name], "is the same file as 'people.csv'", capfd)

    def test_the_folder_that_is_read(self, here, capfd):
        (here / "parts").mkdir()
        table = pa.table({"who": ["a", "b", "c"], "x": [0, 0, 1], "y": [0, 1, 1]})
        pq.write_table(table, "parts/0.parquet")
        self.refused(
            ["fuse", "parts", "-o", "parts/out.parquet"], "would be in the folder that is read", capfd
        )
        self.refused(["fuse", "parts", "--engine", "blocks", "-o", "parts"], "'parts' is named twice", capfd)

    @pytest.mark.parametrize("again", ["people.csv", "./people.csv", "link.csv"])
    @pytest.mark.parametrize("command", ["fuse", "cluster", "compare", "simulate"])
    def test_a_table_named_twice_does_not_count_twice(self, here, again, command, capfd):
        os.symlink("people.csv", "link.csv")
        assert run([command, "people.csv", again, "--id", "who"]) == 2
        assert f"{again!r} is named twice. Hint: name every table once." in capfd.readouterr().err

    def test_two_sheets_are_two_tables(self, workbook, capfd):
        assert run(["fuse", "w.xlsx#S", "w.xlsx#T", "--id", "who", "-k", "2", "-q"]) == 0
        self.refused(["fuse", "w.xlsx#S", "w.xlsx#S"], "'w.xlsx#S' is named twice", capfd)
