"""For tests and examples alike."""

import os
import signal
import sys
from collections import Counter
from typing import Any

import pytest

# A shell makes background jobs ignore these, and their children would inherit that: commands that the tests
# interrupt would never end. A handler is not inherited.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

_CLOCK = pytest.StashKey[float]()
_FILES = 15  # that are named


@pytest.fixture(autouse=True)
def _no_figure_is_left_open():
    """Examples in docstrings draw, and many figures that stay open are a warning."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    """Note the processor seconds of every phase of a test, those of processes that it waited for too."""
    now = sum(os.times()[:4])
    report = yield
    report.processor = now - item.config.stash.get(_CLOCK, now)
    item.config.stash[_CLOCK] = now
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Processor seconds by file: wall time says little where processors are shared."""
    used: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "processor"):
                used[report.location[0]] += report.processor
    terminalreporter.section(f"processor seconds: {used.total():.0f}")
    for file, seconds in used.most_common(_FILES):
        terminalreporter.line(f"{seconds:7.1f} {file}")
