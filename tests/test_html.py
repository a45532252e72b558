"""What a notebook shows: HTML that says what the text of a result says, with the user's names escaped."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from consilience import PCE, compare, fuse
from consilience.diagnostics import choose_n_clusters, profile, typical_labels
from consilience.generate import BasePartitions
from consilience.multiview import APMC
from tests.planted import planted


class Reader(HTMLParser):
    """Texts of cells, row by row, and whether every tag is closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.rows, self.said = [], [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data
        else:
            self.said.append(data)


@pytest.fixture(scope="module")
def fusion():
    _, base = planted(120, 5, 3, noise=0.2, missing=0.2, seed=0)
    return fuse(pd.DataFrame(base, columns=["<b>", "b", "c", "d", "e"]), 3, method="DAL", random_state=0)


def test_comparison(fusion):
    found = compare(fusion.partitions, 3, methods=["DAL", PCE(3, gamma=-1)], n_resamples=0, random_state=0)
    page = Reader(found._repr_html_())
    assert page.rows[0][:3] == ["method", "clusters", "agreement"]
    assert page.rows[1][:4] == ["DAL", "3", f"{found.rows[0].agreement:.3f}", "1"]
    assert page.rows[1][4] == "-"  # no stability was asked for
    assert page.rows[2][0] == "PCE"
    assert "gamma" in page.rows[2][-1]
    assert page.said == [found.reason]


def test_cluster_count(fusion):
    found = choose_n_clusters(fusion.partitions, random_state=0)
    page = Reader(found._repr_html_())
    assert page.said[: len(found.sentences)] == list(found.sentences)
    assert [row[0] for row in page.rows[1:]] == [str(c.n_clusters) for c in found.candidates]
    noise = np.random.default_rng(0).integers(0, 3, (200, 4))
    found = choose_n_clusters(fuse(noise, 2, method="DAL").partitions, random_state=0)
    assert found.rule == "chance"
    assert Reader(found._repr_html_()).rows == []


def test_profile_and_typical_labels(fusion):
    frame = pd.DataFrame(
        {"<age>": fusion.labels * 10.0 + np.arange(120) % 7, "id": [f"x{i}" for i in range(120)]}
    )
    found = profile(fusion, frame, n_permutations=9)
    page = Reader(found._repr_html_())
    assert page.rows[1][0] == "<age>"
    assert page.rows[1][1] == f"{found.columns[0].effect:.2f}"
    assert any(text.startswith("Left out: id") for text in page.said)
    rows = Reader(typical_labels(fusion.partitions, fusion.labels)._repr_html_()).rows
    assert {row[1] for row in rows[1:]} == {"<b>", "b", "c", "d", "e"}


def test_partitions_explanation_and_changes(fusion):
    assert Reader(fusion.partitions._repr_html_()).rows[1][:2] == ["<b>", "3"]
    found = fusion.explain(0)
    page = Reader(found._repr_html_())
    assert page.said[: len(found.sentences)] == list(found.sentences)
    assert [row[0] for row in page.rows[1:6]] == ["<b>", "b", "c", "d", "e"]
    changes = fusion.like(fusion).changes
    assert Reader(changes._repr_html_()).said == list(changes.sentences)


@pytest.mark.parametrize("model", [PCE(3), APMC(3), make_pipeline(BasePartitions(3), PCE(3))], ids=repr)
def test_estimators_have_their_diagram(model):
    assert type(model).__name__ in model._repr_html_()
