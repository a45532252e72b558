"""One self-contained HTML page about a result: `summarize` makes plain values, `render` makes the page."""

from consilience.report.render import render, write_report
from consilience.report.summarize import FORMAT, summarize

__all__ = ["FORMAT", "render", "summarize", "write_report"]
