"""Files that appear whole: mode, owner, and what a killed run left behind."""

from __future__ import annotations

import os
import stat
import sys

import pytest

import consilience
from consilience._support.files import Outputs, _prefix, whole_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and locks of Unix")


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_the_mode_of_what_is_replaced_is_kept(tmp_path):
    path = tmp_path / "a.csv"
    for mode in (0o600, 0o640, 0o444):
        path.write_text("old") if not path.exists() else None
        path.chmod(mode)
        with whole_file(path) as file:
            file.write(b"new")
        assert mode_of(path) == mode
    assert path.read_text() == "new"


def test_what_is_private_is_new_for_its_owner_only(tmp_path):
    with whole_file(tmp_path / "model", private=True) as file:
        file.write(b"x")
    assert mode_of(tmp_path / "model") == 0o600
    fusion = consilience.fuse([[0, 0], [0, 0], [1, 1]], 2)
    consilience.save(fusion, tmp_path / "saved.consilience")
    assert mode_of(tmp_path / "saved.consilience") == 0o600


def test_parts_of_a_killed_run_go_and_those_of_a_living_one_stay(tmp_path):
    target = tmp_path / "a.csv"
    left = tmp_path / f"{_prefix(target)}0123.part"
    other = tmp_path / ".b.csv.00000000.0123.part"
    for path in (left, other):
        path.write_text("half")
    with Outputs() as alive:
        with alive.open(target) as file:
            file.write(b"first")
        assert not left.exists()
        with whole_file(target) as file:  # another run, which must not take the part of the first away
            file.write(b"second")
    assert target.read_text() == "first"
    assert sorted(os.listdir(tmp_path)) == [".b.csv.00000000.0123.part", "a.csv"]


def test_files_are_synced_before_they_get_their_names(tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: (events.append("sync"), sync(file))[1])
    monkeypatch.setattr(os, "replace", lambda *paths: (events.append("rename"), replace(*paths))[1])
    with whole_file(tmp_path / "a") as file:
        file.write(b"x")
    assert events == ["sync", "rename"]
