"""The pages: their Python runs, and those of methods open with when to use them and when not."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import consilience
from consilience import consensus, features, multiview
from consilience.datasets import load_digits
from consilience.generate import base_partitions
from consilience.missing import drop_labels

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Run by the tests of pictures, of the report and of AnnData.
ELSEWHERE = {"gallery.md", "report.md", "single-cell.md"}
BLOCK = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
METHODS = [*consensus.__all__, *features.__all__, *multiview.__all__]
METHOD_PAGES = {path.name: path.read_text() for path in (DOCS / "methods").glob("*.md")}


def pages_with_code():
    pages = (page for page in DOCS.rglob("*.md") if "_build" not in page.parts and page.name not in ELSEWHERE)
    return sorted(str(page.relative_to(DOCS)) for page in pages if BLOCK.search(page.read_text()))


@pytest.fixture
def at_hand(tmp_path, monkeypatch):
    """What pages take for granted: a table of labels, three views, and a folder of votes to work beside."""
    monkeypatch.chdir(tmp_path)
    X = load_digits().X[:200]
    labels = base_partitions(X, n_clusters=10, n_partitions=6, random_state=0)
    observed = np.ones((200, 3), dtype=bool)
    observed[:60, 1] = observed[100:140, 2] = False

    votes = pd.DataFrame(labels[:, :3], columns=["bank_a", "bank_b", "bank_c"])
    votes.insert(0, "customer", [f"c{i}" for i in range(len(votes))])
    Path("votes").mkdir()
    votes.to_parquet("votes/part.parquet")
    return {
        "labels": drop_labels(labels, 0.3, random_state=0),
        "new_labels": labels[:5],
        "bbc": X[:, :30],
        "guardian": X[:, 20:50],
        "reuters": X[:, 40:],
        "observed": observed,
        "new_articles": X[:5, 40:],
    }


@pytest.mark.parametrize("page", pages_with_code())
def test_the_python_of_a_page_runs(page, at_hand):
    scope = dict(at_hand)
    for block in BLOCK.findall((DOCS / page).read_text()):
        exec(compile(block, page, "exec"), scope)


def test_a_page_shows_what_profile_prints(at_hand, capsys):
    page = (DOCS / "diagnostics.md").read_text()
    scope = dict(at_hand)
    for block in BLOCK.findall(page):
        exec(compile(block, "diagnostics.md", "exec"), scope)
    shown = re.search(r"```text\n(\d+ columns of .*?)```", page, flags=re.DOTALL).group(1)
    assert shown in capsys.readouterr().out
    assert scope["found"].most(0) == ["shop: a 100% (x2.2)", "sales: basic 100% (x2.1)"]


def test_the_tutorial_shows_what_it_prints(at_hand, capsys):
    page = (DOCS / "guide" / "two-months.md").read_text()
    scope = dict(at_hand)
    n_shown = 0
    for block, then in re.findall(r"```python\n(.*?)```\n+(?:```text\n(.*?)```)?", page, flags=re.DOTALL):
        exec(compile(block, "two-months.md", "exec"), scope)
        assert capsys.readouterr().out == then
        n_shown += bool(then)
    assert n_shown == 6
    april = scope["april"]
    assert {"march.html", "april.html", "march.consilience", "april.consilience"} <= {
        path.name for path in Path().iterdir()
    }
    assert consilience.load("april.consilience").names == april.names
    shell = re.findall(r"```text\n(consilience .*?)```", page, flags=re.DOTALL)
    assert f"explain april.consilience {scope['doubtful'].index[0]}\n" in shell[0]


def test_the_front_page_shows_what_its_example_draws(tmp_path):
    assert "(picture.png)" in (DOCS / "index.md").read_text()
    runpy.run_path(str(ROOT / "examples" / "picture.py"))["main"](
        tmp_path / "picture.png", load_digits().X[:200]
    )
    assert (tmp_path / "picture.png").stat().st_size > 5_000


def page_of(method):
    return next((name for name, text in METHOD_PAGES.items() if f"\n{method}(n_clusters" in text), None)


def test_the_reference_has_every_subpackage():
    listed = re.findall(
        r"^   consilience\.(\w+)$", (DOCS / "api" / "index.rst").read_text(), flags=re.MULTILINE
    )
    assert set(listed) == {*consilience._SUBPACKAGES, "dask"}


SITE = "https://consilience.readthedocs.io/en/latest/"
REPOSITORY = "https://github.com/consilience-clustering/consilience"
PICTURES = REPOSITORY.replace("github.com", "raw.githubusercontent.com") + "/main/"


def test_what_the_readme_links_to_is_there():
    """It is shown by package indices too, where no file lies beside it: links and pictures are whole."""
    text = (ROOT / "README.md").read_text()
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text)}
    assert [link for link in links if not link.startswith("https://")] == []
    pages = {link.removeprefix(SITE).removesuffix(".html") for link in links if link.startswith(SITE)}
    assert len(pages) > 20
    assert [
        page for page in pages if not any((DOCS / f"{page}.{kind}").exists() for kind in ("md", "rst"))
    ] == []
    pictures = {link.removeprefix(PICTURES) for link in links if link.startswith(PICTURES)}
    assert len(pictures) == 2
    assert [picture for picture in pictures if not (ROOT / picture).exists()] == []
    elsewhere = {link for link in links if not link.startswith((SITE, PICTURES, REPOSITORY))}
    assert all(link.startswith("https://img.shields.io/badge/") for link in elsewhere)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_has_a_page_with_cost_and_when_not_to_use_it(method):
    page = page_of(method)
    assert page is not None, f"no page in docs/methods opens with {method}(n_clusters"
    opening = re.findall(r"^## (.+)$", METHOD_PAGES[page], flags=re.MULTILINE)[:4]
    expected = ["When to use it, and when not", "In a picture", "In Python", "Parameters that matter"]
    assert opening == expected
    assert re.search(r"\n## .*[Cc]ost\n", METHOD_PAGES[page])


def test_every_page_of_a_method_shows_its_picture():
    pages = {page_of(method) for method in METHODS}
    shown = {name: re.findall(r"\]\(img/([a-z0-9]+)\.png\)", METHOD_PAGES[name]) for name in pages}
    drawn = {path.stem for path in (DOCS / "methods" / "img").glob("*.png")} - {"apmc_sensitivity"}
    assert {one for found in shown.values() for one in found} == drawn
    for name, found in shown.items():
        assert found, name
        assert {one for one in found if page_of_lower(one) == name} == set(found)
    assert max((DOCS / "methods" / "img" / f"{one}.png").stat().st_size for one in drawn) < 60_000


def page_of_lower(stem):
    return page_of(next(method for method in METHODS if method.lower() == stem))


def test_the_pictures_of_methods_are_drawn_by_their_script(tmp_path, capsys):
    runpy.run_path(str(DOCS / "pictures.py"))["main"](["DAL", "PCE", "NEMO"], tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"dal.png", "pce.png", "nemo.png"}
    assert "kB" in capsys.readouterr().out


@pytest.mark.parametrize("method", METHODS)
def test_the_index_leads_to_the_page_of_a_method(method):
    line = rf"^\| .*\[[\w, ]*\b{method}\b[\w, ]*\]\(([\w-]+\.md)\).*\|$"
    found = re.search(line, METHOD_PAGES["index.md"], flags=re.MULTILINE)
    assert found is not None, f"docs/methods/index.md has no line for {method}"
    assert found.group(1) == page_of(method)
