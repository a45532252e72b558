"""Whatever ends a command, its files are there completely or not at all: signals, a full disk, two writers.

Moments are random: a few in `make test`, a hundred a command and signal in `make fuzz`.
"""

import itertools
import os
import resource
import signal
import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest

import consilience
from tests.planted import planted

RUNS = 100 if os.environ.get("CONSILIENCE_PROFILE") == "fuzz" else 1
# Commands, and the files that each leaves.
COMMANDS = {
    "fuse": (
        [
            "fuse",
            "labels.csv",
            "-k",
            "3",
            "-o",
            "out.csv",
            "--report",
            "out.html",
            "--save",
            "out.consilience",
        ],
        ["out.csv", "out.html", "out.consilience"],
    ),
    "cluster": (
        ["cluster", "one.csv", "two.csv", "-k", "3", "-o", "out.csv", "--save", "out.consilience"],
        ["out.csv", "out.consilience"],
    ),
    "predict": (["predict", "kept.consilience", "labels.csv", "-o", "out.parquet"], ["out.parquet"]),
    "simulate": (["simulate", "labels.csv", "-s", "0.2", "-o", "out.csv"], ["out.csv"]),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Inputs of all commands, and what they write when nothing happens."""
    folder = tmp_path_factory.mktemp("faults")
    truth, base = planted(300, 6, 3, noise=0.2, missing=0.2, seed=0)
    base[~(base >= 0).any(axis=1), 0] = 0
    lines = [",".join("abcdef"), *(",".join(str(v) if v >= 0 else "" for v in row) for row in base)]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    rng = np.random.default_rng(0)
    for name in ("one", "two"):
        x = rng.normal(5 * rng.normal(size=(3, 4))[truth]).round(3)
        rows = [",".join(f"{name}{j}" for j in range(4)), *(",".join(map(str, row)) for row in x)]
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n")
    table = dict(zip("abcdef", base.T, strict=True))
    consilience.fuse(table, 3, random_state=0).save(folder / "kept.consilience")
    return folder


def started(folder, arguments, **options):
    command = [sys.executable, "-m", "consilience", *arguments, "-q"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)


def ended(process):
    """Exit code, and what was said."""
    said = process.communicate(timeout=300)[1].decode()
    return process.returncode, said


@cache
def seconds(folder, name):
    """How long a command takes when nothing happens."""
    begun = time.monotonic()
    assert ended(started(folder, COMMANDS[name][0])) == (0, "")
    return time.monotonic() - begun


def complete(path):
    """A file that holds all it should."""
    if path.suffix == ".consilience":
        return len(consilience.load(path).labels) == 300
    if path.suffix == ".html":
        return path.read_text().rstrip().endswith("</html>")
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(path).num_rows == 300
    return path.read_text().count("\n") == 301


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
# In `make test` each command meets one signal, and each signal a command; in `make fuzz` all meet all.
MEETINGS = (
    [(name, number) for name in COMMANDS for number in SIGNALS]
    if RUNS > 1
    else list(zip(COMMANDS, itertools.cycle(SIGNALS), strict=False))
)


@pytest.mark.parametrize(("name", "number"), MEETINGS)
def test_signals_at_random_moments(given, name, number):
    arguments, outputs = COMMANDS[name]
    whole = seconds(given, name)
    moments = np.random.default_rng(number)
    for _ in range(RUNS):
        for output in outputs:  # an older file, which must stay if the command does not end well
            (given / output).write_bytes(b"old")
        process = started(given, arguments)
        time.sleep(moments.uniform(0.0, 1.2 * whole))
        process.send_signal(number)
        code, said = ended(process)
        kept = {(given / output).read_bytes() == b"old" for output in outputs}
        assert len(kept) == 1, "some files were written and some were not"
        if code == 0 or not kept.pop():
            assert all(complete(given / output) for output in outputs)
        if number != signal.SIGKILL:  # which nobody can answer
            assert not list(given.glob(".*")), said
        for left in given.glob(".*"):
            left.unlink()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_sentence(given, name):
    arguments, outputs = COMMANDS[name]
    for output in outputs:
        (given / output).unlink(missing_ok=True)

    def little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # as a full disk: writing fails after so much

    code, said = ended(started(given, arguments, preexec_fn=little_room))
    assert code == 1, said
    assert said.startswith("Error: ")
    assert "Hint: " in said
    assert said.count("\n") == 1
    assert not any((given / output).exists() for output in outputs)
    assert not list(given.glob(".*"))


@pytest.mark.parametrize("name", ["fuse", "simulate"])
def test_two_writers_leave_the_files_of_one(given, name):
    arguments, outputs = COMMANDS[name]
    for _ in range(max(1, RUNS // 10)):
        for output in outputs:
            (given / output).unlink(missing_ok=True)
        both = [started(given, [*arguments, "--seed", str(seed)]) for seed in (0, 1)]
        assert [ended(process) for process in both] == [(0, ""), (0, "")]
        assert all(complete(given / output) for output in outputs)
        assert not list(given.glob(".*"))
