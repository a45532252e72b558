"""The package as a whole: light to import, honest about its version, its README runs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import consilience

ROOT = Path(__file__).parent.parent
HEAVY = ("numpy", "scipy", "sklearn", "numba", "pandas", "polars", "narwhals")


def test_import_loads_nothing_heavy():
    code = f"import sys, consilience; print([name for name in {HEAVY} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_reading_labels_does_not_load_frames_or_the_compiler():
    code = (
        "import sys, consilience; consilience.Partitions.of([[0, 1], [1, 0]]).codes;"
        "print([name for name in ('pandas', 'polars', 'matplotlib') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_unknown_name_is_an_attribute_error():
    assert not hasattr(consilience, "nonsense")


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == consilience.__version__
    assert f"## {consilience.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_readme_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert blocks
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), scope)
