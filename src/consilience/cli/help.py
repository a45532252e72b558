"""Help in plain text, from what commands say of themselves: the same with every version of typer."""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from consilience._support.errors import UsageError

PANELS = READING, WRITING, ENGINES = "What is read", "What is written", "Where the work is done"
# What an option says it takes if all files up to the next option are its own.
FILES = "FILE..."
# Columns of a line, and where explanations begin.
_WIDEST, _EXPLAINED_AT = 100, 30


class Command(TyperCommand):
    """A command whose help is `page`, and whose options of `FILES` need not be repeated."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As in typer, of words that repeat those options."""
        own = {name for each in self.params if each.metavar == FILES for name in each.opts}
        given = own.intersection(word.partition("=")[0] for word in args)
        try:
            return super().parse_args(ctx, repeat(args, own))
        except Exception as error:
            if not given or type(error).__name__ != "MissingParameter":
                raise
            option, missing = " and ".join(given), error.param.metavar  # type: ignore[attr-defined]
            raise UsageError(
                f"{missing} is missing: all files after {option} belong to it.",
                hint=f"give {missing} before {option}, or after --.",
            ) from error

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write it."""
        formatter.write(page(self, ctx))


class Group(TyperGroup):
    """A group of commands whose help is `page`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write it."""
        formatter.write(page(self, ctx))


class App(typer.Typer):
    """Commands and groups that show their help as above."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=Group, **options)

    def command(self, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
        """As in typer; a parameter that is a dataclass of options is all of these."""
        register = super().command(*arguments, **{"cls": Command, **options})

        def spread_and_register(function: Any) -> Any:
            register(spread(function))
            return function

        return spread_and_register


def repeat(words: Iterable[str], options: Collection[str]) -> list[str]:
    """A command with these options before each of the values that follow them, up to the next option.

    >>> " ".join(repeat("banks.csv --views a.csv b.csv -k 4".split(), {"--views"}))
    'banks.csv --views a.csv --views b.csv -k 4'
    """
    found: list[str] = []
    taking, has_value = "", False
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*found, word, *rest]
        if word.startswith("-") and word != "-":  # which stands for standard input
            name, equals, _ = word.partition("=")
            taking, has_value = name if name in options else "", bool(equals)
        elif taking:
            found += [taking] * has_value
            has_value = True
        found.append(word)
    return found


def spread(function: Any) -> Any:
    """A function with the fields of a dataclass in place of a parameter that is one."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    if not groups:
        return function

    def command(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{each.name: values.pop(each.name) for each in fields(kind)})
        function(**values)

    parameters = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            own = get_type_hints(groups[name], include_extras=True)
            for each in fields(groups[name]):
                parameters.append(
                    parameter.replace(name=each.name, default=each.default, annotation=own[each.name])
                )
        else:
            parameters.append(parameter.replace(annotation=hints[name]))
    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def page(command: Any, ctx: Any) -> str:
    """The help of a command or a group."""
    parameters = [each for each in command.get_params(ctx) if not getattr(each, "hidden", False)]
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    commands = getattr(command, "commands", {})
    pieces = [ctx.command_path, "[OPTIONS]", *map(_argument, arguments), *["COMMAND ..."] * bool(commands)]
    parts = [f"Usage: {' '.join(pieces)}", *_about(command.help or "")]
    if arguments:
        told = ((_argument(each), _explained(each, command)) for each in arguments)
        parts.append(_listed("Arguments", told))
    if commands:
        rows = ((name, plain(one.help or "").partition("\n\n")[0]) for name, one in commands.items())
        parts.append(_listed("Commands", rows))
    panels: dict[str, list[tuple[str, str]]] = {}
    for each in parameters:
        if each.param_type_name != "argument":
            panel = getattr(each, "rich_help_panel", None)
            panel = panel if panel in PANELS else "Options"
            panels.setdefault(panel, []).append((_option(each), _explained(each, command)))
    order = ("Options", *PANELS)
    parts += [_listed(title, panels[title]) for title in sorted(panels, key=order.index)]
    return "\n\n".join(parts)


def plain(text: str) -> str:
    """A sentence without the marks of Markdown and reStructuredText.

    >>> plain("What :func:`~consilience.fuse` takes; see `gamma` and ``mask``.")
    'What fuse takes; see gamma and mask.'
    """
    text = re.sub(r":[\w:]+:`~[^`]*?([^`.]*)`", r"\1", text)
    return re.sub(r"(?::[\w:]+:)?`+([^`]*)`+", r"\1", text)


def _about(text: str) -> Iterable[str]:
    """Paragraphs of a docstring; examples stand on lines of their own, to be copied."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        line = " ".join(paragraph.split())
        example = re.fullmatch(r"([^`]*:) `([^`]*)`", line)
        yield f"{example[1]}\n  {example[2]}" if example else textwrap.fill(plain(line), _width())


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return str(name if parameter.required else f"[{name}]")


def _option(parameter: Any) -> str:
    names = sorted([*parameter.opts, *parameter.secondary_opts], key=lambda name: name.startswith("--"))
    short = "" if not names[0].startswith("--") else "    "
    value = "" if parameter.is_flag else f" {parameter.metavar or 'VALUE'}"
    return f"{short}{', '.join(names)}{value}"


def _explained(parameter: Any, command: Any) -> str:
    default = getattr(parameter.default, "value", parameter.default)
    shown = isinstance(default, str | int | float) and not isinstance(default, bool)
    more = f" [default: {default}]" if shown else ""
    more += " [required]" if parameter.required and parameter.param_type_name == "option" else ""
    return plain(parameter.help or _written(parameter, command)) + more


def _written(parameter: Any, command: Any) -> str:
    """What is said of an argument where it is declared: typer before 0.26 loses it with the newest click."""
    declared = get_type_hints(inspect.unwrap(command.callback), include_extras=True).get(parameter.name)
    return next((each.help for each in getattr(declared, "__metadata__", ()) if each.help), "")


def _listed(title: str, rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"{title}:"]
    at = " " * _EXPLAINED_AT
    for name, explained in rows:
        wrapped = textwrap.wrap(explained, _width() - _EXPLAINED_AT, break_on_hyphens=False) or [""]
        if len(name) + 4 > _EXPLAINED_AT:
            lines += [f"  {name}", *(at + line for line in wrapped)]
        else:
            lines += [f"  {name}".ljust(_EXPLAINED_AT) + wrapped[0], *(at + line for line in wrapped[1:])]
    return "\n".join(lines)


def _width() -> int:
    return min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns)
