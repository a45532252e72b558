"""A method is a file: every list of methods finds it there."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import consilience

ROOT = Path(__file__).parent.parent

TOY = '''
"""The first base clustering, taken for all."""

from typing import NamedTuple

import numpy as np

from consilience.registry import About
from consilience.consensus.base import LabelMethod, Problem


class ToyResult(NamedTuple):
    labels: np.ndarray


class Toy(LabelMethod):
    """A toy that puts all rows in one cluster but the first ones."""

    about = About(use="never", avoid="always", cost="rows", paper="Nobody, 2026.", linear=True)

    def _solve(self, problem: Problem, rng: np.random.RandomState) -> ToyResult:
        return ToyResult(np.maximum(problem.n_clusters - 1 - np.arange(len(problem.rows.counts)), 0))
'''

USE = """
import runpy, consilience, consilience.dask
from consilience import Toy
from consilience.results.labels import named_method
assert "Toy" in dir(consilience) and "Toy" in consilience.consensus.__all__
table = [[0, 0], [0, 1], [1, 1], [1, 1]]
assert set(Toy(2).fit(table).labels_) == {0, 1}
assert type(named_method("toy", 2, "error", 0)) is Toy
in_blocks = consilience.dask.Toy(2, max_distinct=9).fit([table])
assert list(in_blocks.labels_.compute()) == list(Toy(2).fit(table).labels_)
lists = runpy.run_path("docs/lists.py")
print(lists["readme"]())
print(lists["index"]())
"""


@pytest.fixture(scope="module")
def with_toy(tmp_path_factory):
    """A copy of the package with one more file, and its page."""
    folder = tmp_path_factory.mktemp("toy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    shutil.copytree(ROOT / "docs" / "methods", folder / "docs" / "methods", ignore=ignored)
    shutil.copy(ROOT / "docs" / "lists.py", folder / "docs")
    (folder / "src" / "consilience" / "consensus" / "toy.py").write_text(TOY)
    (folder / "docs" / "methods" / "toy.md").write_text("# Toy\n\n```python\nToy(n_clusters=2)\n```\n")

    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_new_file_is_a_new_method_everywhere(with_toy):
    shown = with_toy("-c", USE)
    assert "[`Toy`](https://consilience.readthedocs.io/en/latest/methods/toy.html)" in shown
    assert "| [Toy](toy.md) | never | always | rows |" in shown
    assert "Toy\tlabels\tA toy that puts all rows in one cluster but the first ones." in with_toy(
        "-m", "consilience", "methods", "--input", "labels"
    )


def test_the_stubs_have_the_names_that_there_are():
    for path, text in runpy.run_path(str(ROOT / "docs" / "lists.py"))["stubs"]().items():
        assert path.read_text(encoding="utf-8") == text, "run make lists"


USER = """
import consilience
from consilience import DAL, PCE, Fusion, fuse
from consilience.multiview import PSE

fusion: Fusion = fuse([[0, 1], [1, 0]], 2)
total: int = int(fusion.labels.sum()) + PCE(8, gamma=2.0).fit([[0]]).n_clusters_
reveal_type(fusion.labels)
reveal_type(PCE(8))
reveal_type(consilience.fuse_views([[[0.0]]], 2))
DAL(3, tetha=0.4)
PSE(3).fits
consilience.fuze
fuse([[0]], 2, methods="PCE")
reveal_type(consilience.dask.LWGP(8, max_distinct=9).fit([[0]]))
consilience.dask.PCE(8, gama=2.0)
consilience.metrics.score
"""
SAID = [
    'Revealed type is "numpy.ndarray',
    'Revealed type is "consilience.consensus.pce.PCE"',
    'Revealed type is "consilience.results.fusion.Fusion"',
    'Unexpected keyword argument "tetha" for "DAL"',
    '"PSE" has no attribute "fits"',
    'Module has no attribute "fuze"',
    'Unexpected keyword argument "methods" for "fuse"',
    'Revealed type is "consilience.dask.LWGP"',
    'Unexpected keyword argument "gama" for "PCE"',
    'Module has no attribute "score"',
]
SAID_BY_PYRIGHT = [
    'Type of "fusion.labels" is "ndarray',
    'Type of "PCE(8)" is "PCE"',
    'Type of "consilience.fuse_views([[[0]]], 2)" is "Fusion"',
    'No parameter named "tetha"',
    'Cannot access attribute "fits" for class "PSE"',
    '"fuze" is not a known attribute of module "consilience"',
    'No parameter named "methods"',
    'Type of "consilience.dask.LWGP(8, max_distinct=9).fit([[0]])" is "LWGP"',
    'No parameter named "gama"',
    '"score" is not a known attribute of module "consilience.metrics"',
]


def test_static_tools_know_names_types_and_parameters(tmp_path):
    pytest.importorskip("mypy", reason="static types are checked where mypy is installed")
    (tmp_path / "user.py").write_text(USER)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "user.py"]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout
    lines = [line for line in said.splitlines() if " error: " in line or "Revealed" in line]
    assert len(lines) == len(SAID), said
    for line, expected in zip(lines, SAID, strict=True):
        assert expected in line


def test_pyright_knows_them_too(tmp_path):
    if shutil.which("pyright") is None:
        pytest.skip("types are also checked by pyright where it is installed")
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT / "src")]}))
    command = ["pyright", "--pythonpath", sys.executable, "--outputjson", "user.py"]
    said = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout)
    found = [line for line in said["generalDiagnostics"] if line["severity"] != "warning"]
    found.sort(key=lambda line: line["range"]["start"]["line"])
    assert len(found) == len(SAID_BY_PYRIGHT), found
    for line, expected in zip(found, SAID_BY_PYRIGHT, strict=True):
        assert expected in line["message"]


@pytest.mark.parametrize("name", ["", *consilience._SUBPACKAGES])
def test_completion_shows_every_public_name(name):
    package = import_module(f"consilience.{name}".rstrip("."))
    assert package.__all__
    assert set(package.__all__) <= set(dir(package))


def test_the_lists_in_readme_and_index_are_those_of_the_methods():
    lists = runpy.run_path(str(ROOT / "docs" / "lists.py"))
    readme, index = (path.read_text(encoding="utf-8") for path in lists["TARGETS"])
    assert lists["readme"]() in readme, "run make lists"
    assert lists["index"]() in index, "run make lists"
