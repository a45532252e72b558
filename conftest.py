"""For tests and examples alike."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    """Examples in docstrings draw, and many figures that stay open are a warning."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
