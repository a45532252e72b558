"""What a user may say about the answer: a range of numbers, who belongs together and who does not, names."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from consilience import compare, fuse, fuse_views, load
from consilience.cli.main import run
from consilience.diagnostics import choose_n_clusters
from consilience.report import render, summarize
from consilience.results.calling import call_of
from tests.test_drift import world


@pytest.fixture(scope="module")
def table():
    return world(1, 300)


def of(fusion, *ids):
    place = {key: row for row, key in enumerate(fusion.index.tolist())}
    return [int(fusion.labels[place[key]]) for key in ids]


# --- a range of numbers of clusters -------------------------------------------------------------------------


def test_the_best_of_a_range_is_what_auto_finds_if_it_is_in_there(table):
    found = choose_n_clusters(table, random_state=0).n_clusters
    inside = fuse(table, (2, 10), method="DAL", random_state=0)
    assert inside.n_clusters == found
    assert_array_equal(inside.labels, fuse(table, found, method="DAL", random_state=0).labels)
    assert inside.cluster_count is not None
    above = fuse(table, (found + 2, found + 4), method="DAL", random_state=0)
    assert found + 2 <= above.n_clusters <= found + 4
    curve = choose_n_clusters(table, random_state=0).curve
    known = dict(zip(curve.k.tolist(), curve.modularity.tolist(), strict=True))
    assert known[above.n_clusters] == max(known[k] for k in range(found + 2, found + 5))
    assert f"without this range there would be {found}" in above.reason


@pytest.mark.parametrize("wrong", [(5, 3), (0, 3), (2, 3, 4), (2, "x")])
def test_a_wrong_range_is_an_error(table, wrong):
    with pytest.raises(ValueError, match=r"two numbers from 1, the smaller first.*Hint: as in \(5, 8\)"):
        fuse(table, wrong)


# --- links --------------------------------------------------------------------------------------------------


def pairs_apart(fusion, n=5):
    """Instances that are in one cluster and in different ones."""
    ids, labels = fusion.index, fusion.labels
    same = [(ids[labels == c][0], ids[labels == c][1]) for c in range(3)]
    other = [(ids[labels == 0][i], ids[labels == 1][i]) for i in range(n)]
    return same, other


def test_links_hold(table):
    free = fuse(table, 4, random_state=0)
    same, other = pairs_apart(free)
    found = fuse(table, 4, must_link=other, cannot_link=same, random_state=0)
    for a, b in other:
        assert len(set(of(found, a, b))) == 1
    for a, b in same:
        assert len(set(of(found, a, b))) == 2
    assert "because of cannot-links" in found.reason
    assert (found.labels == free.labels).mean() > 0.8
    assert "must_link=pairs, cannot_link=pairs" in call_of(found)


def test_links_come_in_every_form(table, tmp_path):
    ids = table.index[:4].tolist()
    groups = [tuple(ids[:2]), tuple(ids[2:])]
    expected = fuse(table, 4, must_link=groups, random_state=0).labels
    (tmp_path / "pairs.csv").write_text("a,b\n" + "\n".join(",".join(g) for g in groups) + "\n")
    (tmp_path / "groups.csv").write_text(
        "id;group\n" + "\n".join(f"{i};{n}" for n, g in enumerate(groups) for i in g) + "\nnobody;\n"
    )
    frame = pl.DataFrame({"id": ids, "group": ["x", "x", "y", "y"]})
    forms = [dict(enumerate(groups)), frame, str(tmp_path / "pairs.csv"), tmp_path / "groups.csv"]
    for given in (*forms, pd.DataFrame(groups, columns=["a", "b"])):
        assert_array_equal(fuse(table, 4, must_link=given, random_state=0).labels, expected)


def test_a_contradiction_names_the_chain(table):
    chain = r"cannot_link parts 'i0' from 'i3', and must_link puts them together: 'i0' - 'i1' - 'i2' - 'i3'\."
    with pytest.raises(ValueError, match=rf"{chain} Hint"):
        fuse(table, 4, must_link=[("i0", "i1"), ("i2", "i1"), ("i2", "i3")], cannot_link=[("i0", "i3")])
    with pytest.raises(ValueError, match=r"parts 'i0' from itself"):
        fuse(table, 4, cannot_link=[("i0", "i0")])


def test_groups_apart_need_so_many_clusters(table):
    ids = table.index[:4].tolist()
    found = fuse(table, 4, cannot_link=[ids], random_state=0)
    assert len(set(of(found, *ids))) == 4
    with pytest.raises(ValueError, match=r"leave no cluster with n_clusters=3\. Hint: raise n_clusters"):
        fuse(table, 3, cannot_link=[ids], random_state=0)


def test_links_that_hold_already_change_nothing(table):
    free = fuse(table, 4, random_state=0)
    _, other = pairs_apart(free, 1)
    assert_array_equal(fuse(table, 4, cannot_link=other, random_state=0).labels, free.labels)


def test_an_update_keeps_them_apart(table, tmp_path):
    free = fuse(table.iloc[:200], 4, random_state=0)
    same, _ = pairs_apart(free)
    found = fuse(table.iloc[:200], 4, cannot_link=same, random_state=0)
    found.save(tmp_path / "kept")
    later = load(tmp_path / "kept").update(table.iloc[150:])
    for a, b in same:
        assert len(set(of(later, a, b))) == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([("i0", "nobody")], "there is no instance 'nobody'"),
        (["i0"], "entry 0 of cannot_link is 'i0', not a pair"),
        ([("i0",)], "entry 0 of cannot_link has 1 ids"),
    ],
)
def test_wrong_links_are_named(table, given, message):
    with pytest.raises(ValueError, match=rf"{message}.*Hint"):
        fuse(table, 4, cannot_link=given)


# --- the page without ids -----------------------------------------------------------------------------------


def test_a_page_can_hide_ids(table):
    named = table.set_axis([f"person-{i}" for i in range(len(table))])
    earlier = fuse(named.iloc[:200, :3], 4, unobserved="noise", random_state=0)
    fusion = fuse(named, 4, like=earlier, random_state=0)
    assert "person-" in render(fusion)
    hidden = summarize(fusion, hide_ids=True)
    assert "person-" not in json.dumps(hidden)
    assert "person-" not in render(hidden)
    shown = summarize(fusion)
    for key in ("n_clusters", "confidence", "histogram"):
        assert hidden["results"][0][key] == shown["results"][0][key]


# --- at the shell -------------------------------------------------------------------------------------------


@pytest.fixture
def here(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table.to_csv("table.csv", index_label="id")
    Path("apart.csv").write_text("a,b\ni0,i1\ni2,i3\n")
    Path("linked.csv").write_text("a,b\ni4,i5\n")
    Path("names.csv").write_text("cluster,name\n0,loyal\n2,new\n")
    return ["fuse", "table.csv", "--id", "id"]


def test_options_do_what_parameters_do(table, here, capfd):
    links = ["--must-link", "linked.csv", "--cannot-link", "apart.csv"]
    given = [*here, "-k", "3-5", *links, "--names", "names.csv", "--save", "one.consilience"]
    assert run([*given, "--report", "page.html", "--hide-ids", "-q"]) == 0
    expected = fuse(table, (3, 5), must_link="linked.csv", cannot_link="apart.csv", random_state=0)
    found = load("one.consilience")
    assert_array_equal(found.labels, expected.labels)
    assert (found.names[0], found.names[2]) == ("loyal", "new")
    assert "i299" not in Path("page.html").read_text()
    assert run(["report", "one.consilience", "-o", "again.html", "--hide-ids", "-q"]) == 0
    assert "i299" not in Path("again.html").read_text()
    capfd.readouterr()
    assert run([*here, "-k", "3", "--must-link", "none.csv"]) == 2
    assert run([*here, "-k", "8-5"]) == 2
    assert run([*here, "-k", "3", "--must-link", "apart.csv", "--cannot-link", "apart.csv"]) == 1
    assert "'i0' - 'i1'" in capfd.readouterr().err


def test_edit_merges_splits_and_names(here, capfd):
    assert run([*here, "-k", "4", "--save", "four.consilience", "-q"]) == 0
    before = load("four.consilience")
    given = ["edit", "four.consilience", "--merge", "1,3", "--split", "0", "--names", "names.csv"]
    assert run([*given, "--save", "edited.consilience", "--changes", "who.csv"]) == 0
    found = load("edited.consilience")
    assert_array_equal(found.labels, before.merge(1, 3).split(0).labels)
    assert found.names[0] == "loyal"
    assert len(pd.read_csv("who.csv")) == len(before.labels)
    said = capfd.readouterr().err
    assert "merged by hand" in said
    assert "was split into" in said
    assert run(["edit", "four.consilience", "--save", "x.consilience"]) == 2
    assert run(["edit", "four.consilience", "--merge", "0,9", "--save", "x.consilience"]) == 1
    assert "there is no cluster 9" in capfd.readouterr().err
    Path("names.csv").write_text("cluster,name\nzero,loyal\n")
    assert run([*given, "--save", "x.consilience"]) == 1
    assert "line 2 of names.csv" in capfd.readouterr().err


def test_compare_saves_its_winner(table, here):
    given = ["compare", "table.csv", "--id", "id", "-k", "3,4", "-m", "DAL,LWEA", "--resamples", "0", "-q"]
    assert run([*given, "--save", "best.consilience"]) == 0
    found = compare(table, [3, 4], methods=["DAL", "LWEA"], n_resamples=0, random_state=0)
    assert_array_equal(load("best.consilience").labels, found.best.labels)
    assert found.best.n_clusters == found.rows[0].n_clusters == found.n_clusters
    assert found.best.method == found.rows[0].method


def test_views_say_what_is_not_possible(table):
    views = [np.random.default_rng(0).normal(size=(300, 2))]
    with pytest.raises(ValueError, match="cannot_link parts instances by their labels"):
        fuse(table, 3, views={"x": pd.DataFrame(views[0], index=table.index)}, cannot_link=[("i0", "i1")])
    with pytest.raises(ValueError, match="n_clusters"):
        fuse_views([views[0], views[0]], (2, 3))
