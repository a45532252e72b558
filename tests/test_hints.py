"""Sentences that name parameters, as Python users and users of the command line read them."""

import pickle
import warnings

import pytest

from consilience import fuse
from consilience._support.errors import OPTIONS, Hint, InputError, Phrase
from consilience._support.warnings import warn
from consilience.cli.main import run


@pytest.mark.parametrize(
    ("phrase", "python", "shell"),
    [
        (Phrase("lower {n_clusters}"), "lower n_clusters", "lower -k"),
        (Phrase("{n_clusters=} of {n}", n_clusters=5, n=3), "n_clusters=5 of 3", "-k 5 of 3"),
        (Phrase("say {unobserved=noise}"), "say unobserved='noise'", "say --unobserved noise"),
        (Phrase("named by {index=}"), "named by index=", "named by --id"),
        (Phrase("{index=}", index="my id"), "index='my id'", "--id 'my id'"),
        (Hint("see .curve", command="see {n_clusters}"), "see .curve", "see -k"),
    ],
)
def test_a_phrase_calls_parameters_as_its_reader_does(phrase, python, shell):
    assert (phrase.python, str(phrase), phrase.shell) == (python, python, shell)


def test_values_are_not_read_as_placeholders():
    phrase = Phrase("{name} is no {method}", name="{n_clusters}")
    assert phrase.shell == "{n_clusters} is no --method"


def test_a_placeholder_that_is_neither_parameter_nor_value_is_a_mistake():
    with pytest.raises(KeyError):
        _ = Phrase("{nothing}").shell


def test_every_option_exists():
    import click
    import typer

    from consilience.cli.app import app

    group = typer.main.get_command(app)
    context = click.Context(group)
    known = {
        option
        for command in group.commands.values()
        for parameter in command.get_params(context)
        for option in parameter.opts
    }
    assert set(OPTIONS.values()) <= known


def test_errors_keep_their_parts_and_place_between_processes():
    error = InputError(
        Phrase("{n_clusters=} is too many.", n_clusters=9), Hint("lower {n_clusters}."), file="a.csv", line=7
    )
    found = pickle.loads(pickle.dumps(error))
    assert str(found) == "n_clusters=9 is too many. Hint: lower n_clusters."
    assert found.in_shell == "-k 9 is too many. Hint: lower -k."
    assert (found.message, found.hint, found.command) == (error.message, "lower n_clusters.", "lower -k.")
    assert (found.file, found.line, found.column) == ("a.csv", 7, None)


def test_a_plain_hint_may_differ_for_commands():
    error = InputError("it is so.", "pass x=", "say --x.")
    assert (str(error), error.in_shell) == ("it is so. Hint: pass x=", "it is so. Hint: say --x.")


def test_warnings_have_both_forms():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn(Phrase("few rows for {n_clusters=}.", n_clusters=4), hint=Hint("lower {n_clusters}."))
    assert str(caught[0].message) == "few rows for n_clusters=4. Hint: lower n_clusters."
    assert caught[0].message.in_shell == "few rows for -k 4. Hint: lower -k."


def test_what_users_wrote_is_never_translated(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n_clusters=3.csv").write_text("a,b\n0,1\n1,0\n")
    assert run(["fuse", "n_clusters=3.csv", "-k", "9"]) == 1
    assert "n_samples=2 should be >= -k 9. Hint: lower -k, or" in capfd.readouterr().err
    assert run(["fuse", "n_clusters=3.csv", "--columns", "n_clusters", "-k", "2"]) == 2
    assert "n_clusters=3.csv has no column 'n_clusters'." in capfd.readouterr().err
    with pytest.raises(
        InputError, match=r"n_samples=2 should be >= n_clusters=9\. Hint: lower n_clusters, or"
    ):
        fuse([[0, 1], [1, 0]], 9)
