"""From plain values to one self-contained page: no network, no script but its own, nothing unescaped."""

from __future__ import annotations

import base64
import colorsys
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from consilience._support.errors import InputTypeError
from consilience._support.files import whole_file
from consilience._support.optional import optional_import
from consilience.report.form import default
from consilience.report.sections import SECTIONS
from consilience.report.summarize import Results, checked, summarize
from consilience.results import Comparison, Fusion

# Okabe and Ito's colours that can be told apart by colour-blind readers; yellow, faint on white, comes late.
_PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#6a51a3")
_UNASSIGNED = "#8a8f98"
# Rows of the table of instances that are there without JavaScript.
_STATIC_ROWS = 50


class _Shown(NamedTuple):
    """A section of this page, and the templates that it has."""

    name: str
    title: str
    result: str | None
    once: str | None


def render(results: Results, **settings: Any) -> str:
    """The page: one HTML text with its style, its script and its data inside.

    Parameters
    ----------
    results : Fusion, dict or list of Fusion, Comparison, or dict from :func:`summarize`
        What the page is about. A summary may have been read from JSON that it was written to, by this version
        or an earlier one.
    **settings
        As in :func:`summarize`, where `results` is not a summary already.

    Returns
    -------
    page : str
        It asks nothing of the network. Its content security policy allows no script but its own.

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.report import render
    >>> page = render(fuse([[0, 0], [0, 0], [1, 1]], 2, random_state=0), title="<b>bold</b>")
    >>> "<title>&lt;b&gt;bold&lt;/b&gt;</title>" in page
    True
    """
    summary = _summary(results, settings)
    jinja2 = optional_import("jinja2", needed_for="the HTML report", extra="report")
    sections = [_shown(section) for section in SECTIONS if _says_something(section, summary)]
    script = "".join(_parts("js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Clusters that come and go between results have colours of their own.
    n_colors = max(len(result["clusters"]) for result in summary["results"]) + 8 * (
        len(summary["results"]) > 1
    )
    safe = jinja2.utils.markupsafe.Markup  # our own files, and JSON in which no character can end its element
    return (
        _environment(jinja2)
        .get_template("templates/page.html")
        .render(
            summary=summary,
            sections=sections,
            static_rows=_STATIC_ROWS,
            colors=_cluster_colors(n_colors),
            unassigned=_UNASSIGNED,
            style=safe("".join(_parts("css"))),
            script=safe(script),
            script_hash=digest,
            data=safe(_inline_json(summary)),
        )
    )


def write_report(results: Results, path: str | os.PathLike[str], **settings: Any) -> Path:
    """Write the page to a file; the file is complete or not there.

    Parameters
    ----------
    results : Fusion, dict or list of Fusion, Comparison, or dict from :func:`summarize`
        What the page is about.
    path : path
        Where to write it; its folder must exist.
    **settings
        As in :func:`summarize`, where `results` is not a summary already.

    Returns
    -------
    path : Path
        Where it was written.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {str(path.parent)!r} to write {path.name!r} to. Hint: make it first."
        )
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder. Hint: name a file, such as 'report.html' in it.")
    page = render(results, **settings).encode("utf-8", errors="replace")  # half a surrogate pair has no bytes
    with whole_file(path) as file:
        file.write(page)
    return path


@cache
def _environment(jinja2: Any) -> Any:
    """Where the templates are, and how they write."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_asset),
    )
    for written in (_whole, _share, _fixed, _short, _count, _cut, _moment):
        environment.filters[written.__name__.removeprefix("_")] = written
    return environment


def _summary(results: Any, settings: dict[str, Any]) -> dict[str, Any]:
    named = isinstance(results, Mapping) and any(isinstance(value, Fusion) for value in results.values())
    if named or isinstance(results, Fusion | Comparison) or (isinstance(results, list | tuple) and results):
        return summarize(results, **settings)
    if settings:
        raise InputTypeError(
            f"a summary is rendered as it is and takes no {', '.join(map(repr, settings))}.",
            hint="pass these to summarize.",
        )
    return checked(results)


# What is on the page --------------------------------------------------------------------------------------


def _says_something(section: ModuleType, summary: Mapping[str, Any]) -> bool:
    """Whether a key of the section says more than its default."""
    levels = (("Page", [summary]), ("Result", summary["results"]))
    return any(
        entry[field.name] != default(field)
        for level, entries in levels
        if hasattr(section, level)
        for field in fields(getattr(section, level))
        for entry in entries
    )


def _shown(section: ModuleType) -> _Shown:
    name = section.__name__.rpartition(".")[2]
    result, once = f"sections/{name}/result.html", f"sections/{name}/once.html"
    return _Shown(name, section.TITLE, result if _has(result) else None, once if _has(once) else None)


def _parts(kind: str) -> list[str]:
    """Style or script: that of all sections comes between what they use and what starts them."""
    own = [f"sections/{section.__name__.rpartition('.')[2]}/page.{kind}" for section in SECTIONS]
    return [_asset(name) for name in (f"templates/page.{kind}", *own, f"templates/last.{kind}") if _has(name)]


def _has(name: str) -> bool:
    return (files("consilience.report") / name).is_file()


def _asset(name: str) -> str:
    return (files("consilience.report") / name).read_text(encoding="utf-8")


def _cluster_colors(n: int) -> list[str]:
    """A colour for each cluster: eight that everyone can tell apart, then around the wheel in golden steps.

    Unlike those of pictures on white paper (`consilience.plotting`), none is black or pale yellow: the page
    has a light and a dark face. Colours are never the only sign: clusters are numbered everywhere.
    """
    colors = list(_PALETTE[:n])
    for c in range(len(colors), n):
        hue = (c * 0.618034) % 1.0
        lightness = (0.42, 0.58, 0.5)[c % 3]
        red, green, blue = colorsys.hls_to_rgb(hue, lightness, 0.5)
        colors.append("#{:02x}{:02x}{:02x}".format(*(round(255 * part) for part in (red, green, blue))))
    return colors


def _inline_json(summary: Mapping[str, Any]) -> str:
    """JSON that may stand inside a script element: no character in it can end the element or a line."""
    text = json.dumps(summary, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# What is written in the page ------------------------------------------------------------------------------


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _fixed(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _short(value: float | None) -> str:
    """A number of any size in a few digits: 0.01234, 12.3, 1,234."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _share(value: float | None) -> str:
    """A percentage that says neither nothing nor everything where it is not."""
    if value is None:
        return "–"
    if 0.0 < value < 0.005:
        return "<1%"
    if 0.995 <= value < 1.0:
        return ">99%"
    return f"{value:.0%}"


def _count(value: int, thing: str, plural: str | None = None) -> str:
    """A number and its noun: 1 cluster, 2,000 clusters."""
    return f"{value:,} {thing if value == 1 else plural or thing + 's'}"


def _moment(text: str) -> str:
    """A date and time as people write it; other texts as they are."""
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M}"
    except ValueError:
        return text


def _cut(text: Any, length: int = 60) -> str:
    text = str(text)
    return text if len(text) <= length else text[: length - 1] + "…"
