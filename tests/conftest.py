"""Where tests find data they may read but the project does not ship."""

import os
from pathlib import Path

import pytest

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
