"""Where tests find data they may read but the project does not ship, and what is said of those left out."""

import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Workers share the processors. Each with a thread a processor, they would spend their time waiting for each
# other. (Read when NumPy is loaded, here and in the processes that tests start.)
if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // int(workers))))

REQUIRED = {word.strip() for word in os.environ.get("CONSILIENCE_REQUIRE", "").split(",") if word.strip()}


def _folder_or_skip(kind: str, variable: str) -> Path:
    folder = os.environ.get(variable)
    if folder and Path(folder).is_dir():
        return Path(folder)
    reason = f"${variable} does not name a folder with the {kind}"
    if kind in REQUIRED:
        pytest.fail(f"{reason}, and CONSILIENCE_REQUIRE asks for them", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The benchmark files, or a skip that says why."""
    return _folder_or_skip("data", "CONSILIENCE_DATA")


@pytest.fixture(scope="session")
def fixtures_folder() -> Path:
    """The authors' own outputs, or a skip that says why."""
    return _folder_or_skip("fixtures", "CONSILIENCE_FIXTURES")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Examples in docstrings of `consilience.scverse` need what they are about."""
    if find_spec("anndata") is None or find_spec("mudata") is None:
        left_out = pytest.mark.skip(reason="anndata and mudata, of the extra 'scverse', are not installed")
        for item in items:
            if "scverse" in item.path.parts and "src" in item.path.parts:
                item.add_marker(left_out)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Why tests were skipped or expected to fail: a line a reason, not a line a test."""
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    reasons.update(
        f"Expected to fail: {report.wasxfail}" for report in terminalreporter.stats.get("xfailed", [])
    )
    if reasons:
        terminalreporter.section("left out")
        for reason, times in reasons.most_common():
            terminalreporter.line(f"{times:5} {reason}")
