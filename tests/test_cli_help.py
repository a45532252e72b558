"""The help of every command: complete, plain, and short enough to be read."""

import re

import pytest
import typer
from typer.testing import CliRunner

from consilience import consensus, features, multiview
from consilience.cli.app import app
from consilience.cli.catalog import catalogue
from consilience.cli.help import plain
from consilience.cli.main import run


def walk(command, names=()):
    """Every command and group, by the words that name it."""
    yield names, command
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(below, (*names, name))


PAGES = dict(walk(typer.main.get_command(app)))


@pytest.fixture
def page(request, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    assert run([*request.param, "--help"]) == 0
    return PAGES[request.param], capfd.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=" ".join, indirect=True)
def test_help_is_complete_and_plain(page):
    command, text = page
    assert re.search(r"<\w|list\[|\{|\}|`|:\w+:|VALUE\b(?<!NAME=VALUE)", text) is None
    assert "...]" not in text.replace("[FOLDER]", "").replace("[VIEWS...]", "")
    lines = text.splitlines()
    examples = [line for line in lines if line.startswith("  consilience ")]
    assert max(len(line) for line in lines if line not in examples) <= 90
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            assert re.search(rf"^  {name} +\S", text, flags=re.MULTILINE)
            assert below.help
    else:
        assert examples
    for parameter in command.params:
        name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar
        assert re.search(rf"^  .*{re.escape(name)}(.*|.*\n) {{2,}}\w", text, flags=re.MULTILINE), name
        if parameter.param_type_name == "argument":
            assert parameter.metavar in lines[0]
            continue
        value = "" if parameter.is_flag else f" {parameter.metavar}"
        for name in parameter.opts:
            assert re.search(rf"(?<!\S){name}(,|{re.escape(value)}(  |$))", text, flags=re.MULTILINE), name


def test_a_group_without_a_command_shows_its_help(capfd):
    for words in ([], ["bench"]):
        run(words)
        said = capfd.readouterr()
        assert "Commands:\n" in said.out + said.err


def test_defaults_are_shown_and_flags_have_none():
    text = " ".join(CliRunner().invoke(app, ["fuse", "--help"]).output.split())  # however wide
    assert "--seed NUMBER Random seed: the same seed gives the same answer. [default: 0]" in text
    assert re.search(r"--engine auto\|memory\|blocks\|dask .*?\[default: auto\]", text)
    assert "False" not in text
    assert "None" not in text.replace("null, None", "")


def test_methods_are_described_without_marks():
    found = catalogue()
    assert {method.name for method in found} == {*consensus.__all__, *multiview.__all__, *features.__all__}
    for method in found:
        assert re.search(r"`|:\w+:|\*\*|\$|\\", " ".join(method)) is None, method
        assert method.does.endswith(".")


def test_marks_are_taken_out_and_words_stay():
    assert plain("See :class:`PCE`, ``mask`` and `gamma`.") == "See PCE, mask and gamma."
    assert plain("As :func:`~consilience.results.fuse` does: 3 * 4.") == "As fuse does: 3 * 4."
