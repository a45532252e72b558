"""What there is to choose from, read from the rooms and from what the methods say of themselves."""

from __future__ import annotations

import inspect
import re
from typing import NamedTuple

from consilience import consensus, multiview
from consilience.consensus._labels import LabelsMixin
from consilience.multiview._views import ViewsMixin

# A paragraph that begins with "Cost:"; it may be the last of its docstring.
_COST = re.compile(r"^\s*Cost: (.+?)(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_PAPER = re.compile(r"References\n\s+-+\n(.+?)(?:\n\s*\n|\Z)", re.DOTALL)


class Method(NamedTuple):
    """A line of the catalogue."""

    name: str
    input: str
    does: str
    cost: str
    paper: str


def catalogue() -> list[Method]:
    """Every method of both rooms."""
    return [_describe(getattr(room, name)) for room in (consensus, multiview) for name in room.__all__]


def _describe(estimator: type) -> Method:
    module = inspect.getmodule(estimator)
    functions = [
        function
        for _, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == estimator.__module__
    ]
    documents = [inspect.getdoc(part) or "" for part in (estimator, *functions)]
    cost = next((found.group(1) for text in documents if (found := _COST.search(text))), "")
    paper = _PAPER.search(estimator.__doc__ or "")
    kind = "labels" if issubclass(estimator, LabelsMixin) else "views"
    return Method(
        name=estimator.__name__,
        input=kind if issubclass(estimator, (LabelsMixin, ViewsMixin)) else "features",
        does=(estimator.__doc__ or "").strip().partition("\n")[0],
        cost=_one_line(cost),
        paper=_first_reference(_one_line(paper.group(1) if paper else "")),
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _first_reference(text: str) -> str:
    numbered = re.split(r"\.\. \[\d+\] ", text)
    return next((part.strip() for part in numbered if part.strip()), "")
