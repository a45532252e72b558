"""The old name of :mod:`consilience.evidence.views`, for one version."""

from typing import Any

from consilience._support.optional import moved


def __getattr__(name: str) -> Any:
    return moved(__name__, "consilience.evidence.views", name)
