"""What is said while work goes on."""

import io
import logging
import sys
from types import SimpleNamespace

import pytest

from consilience import PCE, compare, fuse
from consilience._support.talk import logger, tell, watched

TABLE = [[0, 0], [0, 0], [1, 1], [1, -1]]


@pytest.fixture
def handler():
    """A handler of the user, on the root logger, which keeps its level."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_verbose_is_a_record_and_a_line(caplog, capsys):
    model = PCE(2, verbose=1, random_state=0).fit(TABLE)
    records = [record for record in caplog.records if record.name == "consilience"]
    assert len(records) == model.n_iter_
    assert {record.levelname for record in records} == {"INFO"}
    assert capsys.readouterr().err.splitlines() == [record.getMessage() for record in records]


def test_a_handler_that_shows_it_shows_it_once(handler, capsys):
    assert logging.getLogger().level == logging.WARNING  # what was asked for is said all the same
    handler.setStream(sys.stderr)
    tell("half of it")
    assert capsys.readouterr().err == "consilience INFO half of it\n"


@pytest.mark.parametrize("quiet", ["level", "file"])
def test_a_handler_that_does_not_show_it_leaves_the_line(handler, quiet, capsys):
    if quiet == "level":
        handler.setLevel("ERROR")
    else:
        handler.setStream(io.StringIO())
    tell("half of it")
    assert capsys.readouterr().err == "half of it\n"


def test_the_level_of_the_logger_silences(monkeypatch, caplog, capsys):
    monkeypatch.setattr(logger, "level", logging.WARNING)
    tell("half of it")
    assert not caplog.records
    assert capsys.readouterr().err == ""


def test_nothing_is_said_unasked(caplog, capsys):
    fuse(TABLE, 2, random_state=0)
    assert not [record for record in caplog.records if record.name == "consilience"]
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_in_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    fuse(TABLE, 2, random_state=0, progress=True)
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert drawn[1].endswith(": tried DAL")
    assert drawn[-2].startswith("[" + "=" * 30 + "]")
    assert drawn[-1] == ""  # gone


def test_a_bar_in_a_notebook(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=shown.append)
    display = SimpleNamespace(HTML=str, display=lambda html, display_id: shown.append(html) or handle)
    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1))
    )
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    compare(TABLE, 2, methods=["DAL"], n_resamples=1, random_state=0, progress=True)
    assert shown[0] == "<progress value='1' max='2'></progress> 1 of 2: merged by DAL"
    assert shown[-1] == ""
    with watched(True) as told:
        told("<view>", 1, 3)
    assert shown[-2].endswith("&lt;view&gt;")


def test_no_bar_where_nobody_looks(capsys):
    fuse(TABLE, 2, random_state=0, progress=True)
    assert capsys.readouterr().err == ""
    with watched(False) as told:
        assert told is None
