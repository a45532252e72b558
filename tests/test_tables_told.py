"""How tables of any columns were read is said alike in summary, notebook, JSON, page and files."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import consilience
from consilience import PSE, fuse_views
from consilience.multiview.pse import confidence
from consilience.report import render, summarize
from tests.evidence.test_any_table import clinic

LINE = (
    "clinic: 2 numbers (age, crp), 1 yes/no (smoker), 1 ordered (stage), 1 category (ward), 1 date (seen). "
    "Left out: patient (an id), consent (constant). 21% of the cells are missing and are filled in."
)


@pytest.fixture(scope="module", params=["auto", "labels", "EEIMVC"])
def fusion(request):
    rng = np.random.default_rng(0)
    _, frame = clinic()
    frame.insert(0, "patient", [f"p{i}" for i in range(len(frame))])
    genes = rng.normal(size=(len(frame), 4))
    genes[3, 1] = np.nan
    views = {"clinic": frame, "genes": genes, "whole": rng.normal(size=(len(frame), 2))}
    with pytest.warns(UserWarning, match=r"view 'clinic': patient \(an id\) is left out"):
        return fuse_views(views, 3, method=request.param, random_state=0)


def test_a_line_a_table(fusion):
    assert list(fusion.tables) == ["clinic", "genes"]  # the third is complete numbers
    assert LINE in fusion.summary()
    genes = "genes: 4 numbers. Less than 1% of the cells are missing and are filled in."
    assert genes in fusion.summary()
    assert LINE in fusion._repr_html_()
    summary = json.loads(json.dumps(summarize(fusion)))
    clinic_told, genes_told = summary["results"][0]["read_tables"]
    assert f"clinic: {clinic_told['line']}" == LINE
    assert [column["kind"] for column in clinic_told["columns"]] == [
        "left out", "number", "number", "yes/no", "category", "date", "ordered", "left out",
    ]  # fmt: skip
    assert clinic_told["columns"][4]["levels"] == "north, south, west"
    assert clinic_told["remarks"][0]["text"].startswith("View 'clinic': patient (an id) is left out")
    assert [column["missing"] for column in genes_told["columns"]] == [0.0, 1 / 150, 0.0, 0.0]
    missing = [column["missing"] for column in clinic_told["columns"]]
    told = fusion.tables["clinic"]
    assert missing == [None, *(k / told.n_rows for k in told.n_missing), None]
    page = render(summary)
    assert "How the tables were read" in page
    assert "north, south, west" in page


def test_a_file_keeps_how_tables_were_read(fusion, tmp_path):
    fusion.save(tmp_path / "groups.consilience")
    again = consilience.load(tmp_path / "groups.consilience")
    assert LINE in again.summary()
    assert summarize(again, created="now")["results"] == summarize(fusion, created="now")["results"]
    _, new = clinic(n=30, seed=5)
    new = new.assign(ward=new["ward"].fillna("north"))
    assert_array_equal(again.predict({"clinic": new}), fusion.predict({"clinic": new}))
    assert_array_equal(again.place({"clinic": new}).confidence, fusion.place({"clinic": new}).confidence)


def test_stability_following_and_explaining_keep_working():
    _, frame = clinic()
    views = {"clinic": frame.drop(columns="consent"), "late": frame[["age", "crp"]]}
    fusion = fuse_views(views, 3, kind={"clinic.age": "number", "clinic": "measurements"}, random_state=0)
    found = fusion.stability(n_resamples=2)
    assert len(found.left_out) == 2
    assert_array_equal(fusion.like(fusion).labels, fusion.labels)
    assert "'clinic'" in str(fusion.explain(0))


def test_neighbours_in_other_clusters_lower_the_confidence_of_a_single_table():
    """PSE's own, times the share of the neighbours' weight in the own cluster; not of complete numbers."""
    _, frame = clinic()
    frame = frame[frame.notna().any(axis=1)]
    model = PSE(3, random_state=0).fit({"clinic": frame})
    k, found = 3, model._result
    own = confidence(found, model.labels_, model.borders_[0], k)
    graph = found.views[0].graph.toarray()
    rows = found.views[0].rows
    z = model.labels_[rows]
    share = (graph * (z[:, None] == z)).sum(axis=1) / graph.sum(axis=1)
    assert_allclose(model.confidence_[rows], own[rows] * share)
    numbers = np.random.default_rng(0).normal(size=(60, 3))
    plain = PSE(3, random_state=0).fit({"v": numbers})
    whole = confidence(plain._result, plain.labels_, plain.borders_[0], k)
    assert_array_equal(plain.confidence_, whole)


def test_pages_without_such_tables_say_nothing():
    x = np.random.default_rng(0).normal(size=(40, 3))
    fusion = fuse_views({"v": pd.DataFrame(x)}, 2, random_state=0)
    assert fusion.tables == {}
    assert "How the tables were read" not in render(summarize(fusion))
