"""One self-contained file: tables that sort by a click, pictures, light and dark; no network."""

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from benchmarks.record.summary import Picture, Section, Table
from consilience._support.files import whole_file

HERE = Path(__file__).parent


def write(sections: Sequence[Section], path: Path, command: str) -> Path:
    """The page of these sections; the file is complete or not there."""
    page = render(sections, command)
    with whole_file(path) as file:
        file.write(page.encode())
    return path


def render(sections: Sequence[Section], command: str) -> str:
    """HTML text. Its style is that of the report; its content security policy allows its own script only."""
    script = (HERE / "page.js").read_text()
    style = (files("consilience.report") / "templates" / "page.css").read_text() + (
        HERE / "page.css"
    ).read_text()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["cell"] = cell
    environment.tests["table"] = lambda block: isinstance(block, Table)
    environment.tests["picture"] = lambda block: isinstance(block, Picture)
    return environment.from_string((HERE / "page.html").read_text()).render(
        sections=sections,
        created=f"{datetime.now(UTC):%Y-%m-%d}",
        command=command,
        style=Markup(style),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        safe=Markup,
    )


def cell(value: Any, digits: int) -> str:
    """A value as it is shown."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.{0 if abs(value) >= 100.0 else digits}f}"
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)
