"""The old name of :mod:`consilience.results`, for one version."""

from typing import Any

from consilience._support.optional import moved


def __getattr__(name: str) -> Any:
    return moved(__name__, "consilience.results", name)
