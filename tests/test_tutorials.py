"""The tutorials: notebooks that the site runs (`make docs`); here, what can be seen without running them."""

import ast
import importlib
import re
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parent.parent / "docs" / "tutorials"
NAMES = sorted(page.stem for page in TUTORIALS.glob("*.md") if page.stem != "index")

DRAWING = {"fuse", "fuse_views", "fuse_parquet", "merge_parts", "compare", "base_partitions", "KMeans"}


def cells(name):
    text = (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith("---\nfile_format: mystnb\n"), "a page without this head is shown, not run"
    return re.findall(r"```\{code-cell\} python\n(?::tags: [^\n]*\n)?(.*?)```", text, flags=re.DOTALL)


def imported(tree):
    return [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "consilience"
        for alias in node.names
    ]


def test_the_index_leads_to_every_tutorial():
    index = (TUTORIALS / "index.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(([\w-]+)\.md\)", index)
    listed = re.search(r":hidden:\n\n(.*?)```", index, flags=re.DOTALL).group(1).split()
    assert sorted(linked) == sorted(listed) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_imports_names_that_there_are(name):
    names = imported(ast.parse("\n".join(cells(name))))
    assert names
    for module, attribute in names:
        assert hasattr(importlib.import_module(module), attribute), f"{module} has no {attribute}"


@pytest.mark.parametrize("name", NAMES)
def test_a_tutorial_shows_the_same_whenever_it_is_built(name):
    """Randomness is seeded: `random_state` in every call that takes one, a seed in every generator."""
    code = "\n".join(cells(name))
    assert re.findall(r"default_rng\(\)|np\.random\.(?!default_rng)\w+", code) == []
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    drawing = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in DRAWING]
    assert drawing
    for call in drawing:
        assert "random_state" in {keyword.arg for keyword in call.keywords}, ast.unparse(call)
