"""From plain values to one self-contained page: no network, no script but its own, nothing unescaped."""

from __future__ import annotations

import base64
import colorsys
import hashlib
import json
import os
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from consilience._support.errors import InputError, InputTypeError
from consilience._support.files import whole_file
from consilience._support.optional import optional_import
from consilience.report.summarize import FORMAT, summarize
from consilience.results import Fusion

# Okabe and Ito's colours that can be told apart by colour-blind readers; yellow, faint on white, comes late.
_PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#6a51a3")
_UNASSIGNED = "#8a8f98"
# Rows of the table of instances that are there without JavaScript.
_STATIC_ROWS = 50

_NUMBER = (int, float)
_ID = (*_NUMBER, str)  # also of a label


class _Maybe(NamedTuple):
    """What has this form, or is unknown."""

    form: Any


# The form of a summary: a type (or several), a list of one form, or a dict.
_FORM: dict[str, Any] = {
    "format": str,
    "title": str,
    "created": str,
    "command": _Maybe(str),
    "versions": {"consilience": str},
    "tables": [
        {
            "n_instances": int,
            "n_partitions": int,
            "n_distinct": int,
            "n_labels": int,
            "missing_share": _NUMBER,
            "n_complete": int,
            "n_unseen": int,
            "id_name": str,
            "names": [str],
            "groups": _Maybe([str]),
            "n_clusters": [int],
            "n_seen": [int],
            "patterns": {
                "n_patterns": int,
                "n_sets": int,
                "sets": [str],
                "first": [int],
                "seen": [[bool]],
                "size": [int],
            },
            "seen_by": [[int]],
            "agreement": {"bases": [[int]], "matrix": [[_Maybe(_NUMBER)]], "mean": _Maybe(_NUMBER)},
        }
    ],
    "results": [
        {
            "name": str,
            "table": int,
            "method": str,
            "reason": str,
            "n_clusters": int,
            "names": _Maybe([str]),
            "n_unassigned": int,
            "confidence": _NUMBER,
            "unsure": _NUMBER,
            "ranks_only": bool,
            "reading": str,
            "effective_number": _NUMBER,
            "dependence": _NUMBER,
            "agreement": _NUMBER,
            "with_first": _Maybe(_NUMBER),
            "views": _Maybe(
                {
                    "absent_share": _NUMBER,
                    "names": [str],
                    "kind": [str],
                    "looks": [str],
                    "n_rows": [int],
                    "n_empty": [int],
                    "agreement": [_Maybe(_NUMBER)],
                    "weight": [_NUMBER],
                    "relation": [_Maybe(_NUMBER)],
                    "support": [[_Maybe(_NUMBER)]],
                }
            ),
            "clusters": [
                {
                    "size": int,
                    "typical": [{"base": str, "label": _ID, "count": int, "share": _NUMBER, "lift": _NUMBER}],
                    "confidence": _NUMBER,
                    "unsure": _NUMBER,
                    "coverage": _NUMBER,
                    "consensus": _NUMBER,
                    "between": _NUMBER,
                    "nearest": int,
                }
            ],
            "histogram": [[int]],
            "patterns": [[int]],
            "seen_by": [[int]],
            "base_seen": [[int]],
            "bases": {
                "agreement": [_NUMBER],
                "weight": [_NUMBER],
                "novelty": [_NUMBER],
                "silent": [bool],
                "association": [_NUMBER],
                "p_value": [_NUMBER],
            },
            "missing": {
                "pattern_agreement": _Maybe(_NUMBER),
                "best_agreement": _Maybe(_NUMBER),
                "never_together": _NUMBER,
                "never_together_if_random": _NUMBER,
                "n_components": int,
                "bottleneck": int,
            },
            "consensus": _Maybe({"agreement": [[_Maybe(int)]], "cluster": [int], "size": [int]}),
            "warnings": [{"text": str, "hint": str}],
            "count": _Maybe(
                {
                    "n_clusters": int,
                    "low": int,
                    "high": int,
                    "rule": str,
                    "n_significant": int,
                    "reliable": bool,
                    "repeatable": bool,
                    "may_be_one_cloud": bool,
                    "bases_have": _Maybe(int),
                    "sentences": [str],
                    "candidates": [
                        {
                            "n_clusters": int,
                            "role": str,
                            "found_by": [str],
                            "modularity": _Maybe(_NUMBER),
                            "stability": _Maybe(_NUMBER),
                            "smallest": _Maybe(_NUMBER),
                        }
                    ],
                    "curve": {
                        "k": [int],
                        "eigenvalue": [_NUMBER],
                        "null": [_NUMBER],
                        "modularity": [_Maybe(_NUMBER)],
                        "stability": [_Maybe(_NUMBER)],
                    },
                }
            ),
            "candidates": [{"method": str, "agreement": _NUMBER}],
            "model": str,
            "parameters": dict,
            "instances": {
                "id": [_ID],
                "others": [[_ID]],
                "cluster": [int],
                "alternative": [int],
                "confidence": [_NUMBER],
                "margin": [_NUMBER],
                "coverage": [_NUMBER],
                "alike": [int],
                "sampled": [bool],
                "votes": _Maybe([[int]]),
                "why": [str],
            },
            "explained": {
                "answers": {"base": [int], "label": [_ID], "shares": [[int]]},
                "said": [[int]],
                "by_labels": [int],
                "nearest": [[[_ID]]],
                "turns": [_Maybe([[_Maybe(_ID)]])],
            },
            "changes": _Maybe(
                {
                    "sentences": [str],
                    "n_common": int,
                    "n_new": int,
                    "n_gone": int,
                    "n_moved": int,
                    "clusters": [
                        {
                            "cluster": int,
                            "name": str,
                            "what": str,
                            "split": [int],
                            "merged": [int],
                            "before": int,
                            "kept": int,
                            "left": int,
                            "joined": int,
                            "new": int,
                            "now": int,
                        }
                    ],
                    "flows": [[int]],
                }
            ),
            "profile": _Maybe(
                {
                    "n_instances": int,
                    "n_permutations": int,
                    "columns": [
                        {
                            "name": str,
                            "kind": str,
                            "effect": _NUMBER,
                            "p_value": _NUMBER,
                            "missing": _NUMBER,
                            "clusters": [{"cluster": int, "n": int, "missing": _Maybe(_NUMBER)}],
                        }
                    ],
                    "left_out": [{"name": str, "reason": str}],
                    "warnings": [{"text": str, "hint": str}],
                }
            ),
        }
    ],
    "flows": [[[int]]],
}


def render(summary: Mapping[str, Any]) -> str:
    """The page: one HTML text with its style, its script and its data inside.

    Parameters
    ----------
    summary : dict
        From :func:`summarize`, or read from JSON that it was written to.

    Returns
    -------
    page : str
        It asks nothing of the network. Its content security policy allows no script but its own.

    Examples
    --------
    >>> from consilience import fuse
    >>> from consilience.report import render, summarize
    >>> page = render(summarize(fuse([[0, 0], [0, 0], [1, 1]], 2, random_state=0), title="<b>bold</b>"))
    >>> "<title>&lt;b&gt;bold&lt;/b&gt;</title>" in page
    True
    """
    _check(summary)
    jinja2 = optional_import("jinja2", needed_for="the HTML report", extra="report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    for written in (_whole, _share, _fixed, _short, _count, _cut, _moment):
        environment.filters[written.__name__.removeprefix("_")] = written
    script = _asset("charts.js") + _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Clusters that come and go between results have colours of their own.
    n_colors = max(len(result["clusters"]) for result in summary["results"]) + 8 * (
        len(summary["results"]) > 1
    )
    return environment.from_string(_asset("page.html")).render(
        summary=summary,
        static_rows=_STATIC_ROWS,
        colors=_cluster_colors(n_colors),
        unassigned=_UNASSIGNED,
        # Marked as safe: our own files, and JSON in which no character can end its element.
        style=jinja2.utils.markupsafe.Markup(_asset("page.css")),
        script=jinja2.utils.markupsafe.Markup(script),
        script_hash=digest,
        data=jinja2.utils.markupsafe.Markup(_inline_json(summary)),
    )


def write_report(results: Any, path: str | os.PathLike[str], **settings: Any) -> Path:
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
    if isinstance(results, Mapping) and not any(isinstance(value, Fusion) for value in results.values()):
        if settings:
            raise InputTypeError(
                f"a summary is rendered as it is and takes no {', '.join(map(repr, settings))}.",
                hint="pass these to summarize.",
            )
        summary = results
    else:
        summary = summarize(results, **settings)
    page = render(summary).encode("utf-8", errors="replace")  # half a surrogate pair has no bytes
    with whole_file(path) as file:
        file.write(page)
    return path


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


def _asset(name: str) -> str:
    return (files("consilience.report") / "templates" / name).read_text(encoding="utf-8")


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


# Whether it is a summary ----------------------------------------------------------------------------------


def _check(summary: Any) -> None:
    name = summary.get("format") if isinstance(summary, Mapping) else None
    if name != FORMAT:
        shown = f"its format is {_cut(repr(name), 40)}" if name is not None else "it names no format"
        raise InputError(
            f"this is no result that a page can be made of: {shown}, not {FORMAT!r}.",
            hint="use what summarize returned or 'consilience fuse --json' wrote, with this version.",
        )
    _check_form(summary, _FORM, "summary")
    if not summary["results"]:
        raise InputError("the summary has no results.", hint="make it again with summarize.")
    for number, result in enumerate(summary["results"]):
        where = f"results[{number}]"
        if not 0 <= result["table"] < len(summary["tables"]):
            raise _broken(f"{where}.table", "the position of a table")
        if sum(cluster["size"] > 0 for cluster in result["clusters"]) != result["n_clusters"]:
            raise _broken(f"{where}.clusters", f"a list of {result['n_clusters']} clusters with members")
        m = summary["tables"][result["table"]]["n_partitions"]
        columns = {**result["bases"], "base_seen": result["base_seen"]}
        columns |= {key: summary["tables"][result["table"]][key] for key in ("names", "n_clusters", "n_seen")}
        for key, column in columns.items():
            if len(column) != m:
                raise _broken(f"{where}: {key}", f"a list of {m}, one per base clustering")
        if result["views"] is not None:
            views = len(result["views"]["names"])
            for key, column in result["views"].items():
                if key != "absent_share" and len(column) != views:
                    raise _broken(f"{where}.views.{key}", f"a list of {views}, one per view")
            n_numbers = len(result["clusters"])
            if any(len(row) != n_numbers for row in result["views"]["support"]):
                raise _broken(f"{where}.views.support", f"lists of {n_numbers}, one per cluster")
        listed = len(result["instances"]["id"])
        for key, column in result["instances"].items():
            if column is not None and len(column) != listed:
                raise _broken(f"{where}.instances.{key}", f"a list of {listed}, one per listed line")
        if result["names"] is not None and len(result["names"]) != len(result["clusters"]):
            raise _broken(f"{where}.names", f"a list of {len(result['clusters'])}, one per cluster")
        _check_explained(result["explained"], where, listed, m)


def _check_explained(explained: Mapping[str, Any], where: str, listed: int, m: int) -> None:
    """Raise where explanations point at what is not there: the script would stop at it."""
    n, n_answers = len(explained["said"]), len(explained["answers"]["label"])
    if n > listed:
        raise _broken(f"{where}.explained.said", f"a list of at most {listed}, one per listed line")
    for key in ("by_labels", "nearest", "turns"):
        if len(explained[key]) != n:
            raise _broken(f"{where}.explained.{key}", f"a list of {n}, one per explained line")
    for key, column in explained["answers"].items():
        if len(column) != n_answers:
            raise _broken(f"{where}.explained.answers.{key}", f"a list of {n_answers}, one per answer")
    for said in explained["said"]:
        if len(said) != m or not all(-1 <= answer < n_answers for answer in said):
            raise _broken(f"{where}.explained.said", f"lists of {m} positions of answers")


def _check_form(value: Any, form: Any, where: str) -> None:
    """Raise for the first entry that is not of its form."""
    if isinstance(form, _Maybe):
        if value is not None:
            _check_form(value, form.form, where)
    elif isinstance(form, dict):
        if not isinstance(value, Mapping):
            raise _broken(where, "a dict")
        for key, inner in form.items():
            if key not in value:
                raise _broken(f"{where}.{key}", "there")
            _check_form(value[key], inner, f"{where}.{key}")
    elif isinstance(form, list):
        if not isinstance(value, list):
            raise _broken(where, "a list")
        for number, item in enumerate(value):
            _check_form(item, form[0], f"{where}[{number}]")
    else:
        kinds = form if isinstance(form, tuple) else (form,)
        # True is an int to Python.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise _broken(where, f"of type {' or '.join(kind.__name__ for kind in kinds)}")


def _broken(where: str, what: str) -> ValueError:
    return ValueError(
        f"the saved result is damaged: {where} must be {what}. Hint: make it again with summarize."
    )
