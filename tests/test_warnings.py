"""Which warnings turn a run red: our own; not those of a dependency's next version."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

DEPENDENCY = """
import warnings

def warn(category, stacklevel=1, message="as of the next version"):
    warnings.warn(message, category, stacklevel=stacklevel)

def call(function):
    function()
"""

OURS = {
    "surprise": "warnings.warn('surprise')",
    "that_points_outside": "dependency.call(lambda: warnings.warn('so.\\nHint: no.', stacklevel=2))",
    "arithmetic": "np.log(np.zeros(1))",
    "file_left_open": "open(__file__)",
    "no_convergence": "dependency.warn(ConvergenceWarning)",
}
THEIRS = {
    "inside": "dependency.warn(UserWarning)",
    "deprecation_inside": "dependency.warn(DeprecationWarning)",
    "deprecated_call": "dependency.warn(DeprecationWarning, 2)",
    "visibly_deprecated_call": "dependency.warn(VisibleDeprecationWarning, 2, 'a() is deprecated')",
    "soon_deprecated_call": "dependency.warn(PendingDeprecationWarning, 2)",
    "call_that_will_change": "dependency.warn(FutureWarning, 2)",
}


def outcomes(folder, *options):
    """What became of a test per line above, under this project's configuration of pytest."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "dependency.py").write_text(DEPENDENCY)
    (folder / "tests").mkdir()
    (folder / "tests" / "__init__.py").touch()
    head = (
        "import warnings, numpy as np, dependency\n"
        "from numpy.exceptions import VisibleDeprecationWarning\n"
        "from sklearn.exceptions import ConvergenceWarning\n"
    )
    tests = "".join(f"\ndef test_{name}():\n    {line}\n" for name, line in {**OURS, **THEIRS}.items())
    (folder / "tests" / "test_lines.py").write_text(head + tests)
    shown = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "tests", *options],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = re.findall(r"^(PASSED|FAILED) tests/test_lines\.py::test_(\w+)", shown, flags=re.MULTILINE)
    return {name: outcome for outcome, name in found}, shown


def test_our_warnings_are_errors_and_those_of_dependencies_are_shown(tmp_path):
    found, shown = outcomes(tmp_path)
    assert found == {**dict.fromkeys(OURS, "FAILED"), **dict.fromkeys(THEIRS, "PASSED")}
    for category in ("UserWarning", "DeprecationWarning", "PendingDeprecationWarning", "FutureWarning"):
        assert f": {category}: as of the next version" in shown


def test_ci_has_every_warning_as_an_error(tmp_path):
    option = "-W error"
    assert f'PYTEST_ADDOPTS="{option}" make test\n' in (ROOT / ".ci" / "run").read_text()
    found, _ = outcomes(tmp_path, *option.split())
    assert found == dict.fromkeys([*OURS, *THEIRS], "FAILED")
