"""One result, one number: terminal, notebook, report, page, attributes and frame all say the same."""

import html
import json
import re

import numpy as np
import pytest

from consilience import Partitions, fuse, fuse_views
from consilience.datasets import make_partial_views
from consilience.report import render, summarize

K = 3


def _labels(unseen=0):
    """Six noisy opinions on 300 instances with gaps; the last rows seen by nobody where asked for."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(K), (150, 100, 50))
    table = np.where(rng.random((300, 6)) < 0.25, rng.integers(0, K, (300, 6)), truth[:, None])
    table[rng.random((300, 6)) < 0.3] = -1
    table[:, 0] = np.where((table < 0).all(axis=1), truth, table[:, 0])
    if unseen:
        table[-unseen:] = -1
    return table


def _views():
    data = make_partial_views(120, missing=0.3, random_state=0)
    return {"left": data.views[0], "right": data.views[1]}, data.observed


def _by_views(method):
    views, mask = _views()
    return fuse_views(views, 2, mask=mask, method=method, n_partitions=5, random_state=0)


def _together():
    views, mask = _views()
    rng = np.random.default_rng(0)
    y = make_partial_views(120, missing=0.3, random_state=0).y
    experts = {
        name: np.where(rng.random(120) < 0.3, -1, np.where(rng.random(120) < 0.2, 1 - y, y)) for name in "ab"
    }
    return fuse(experts, 2, views=views, mask=mask, random_state=0)


def _followed():
    table = _labels()
    earlier = fuse(table, K, method="DAL", random_state=0)
    names = {0: "many", 1: "some", 2: "few"}
    return fuse(table[:, :4], K, method="DAL", random_state=0, unobserved="noise").like(earlier).rename(names)


def _noise():
    return np.random.default_rng(0).integers(0, 5, (400, 6))


CASES = {
    "plain": lambda: fuse(_labels(), K, method="DAL", random_state=0),
    "repeated": lambda: fuse(np.repeat(_labels(), 4, axis=0), K, method="DAL", random_state=0),
    "counted": lambda: fuse(
        Partitions.of(np.repeat(_labels(), 4, axis=0)).distinct, K, method="DAL", random_state=0
    ),
    "noise": lambda: fuse(_labels(20), K, method="DAL", unobserved="noise", random_state=0),
    "largest": lambda: fuse(_labels(20), K, method="DAL", unobserved="largest", random_state=0),
    "counted noise": lambda: fuse(
        Partitions.of(np.repeat(_labels(20), 4, axis=0), unobserved="keep").distinct,
        K,
        method="DAL",
        unobserved="noise",
        random_state=0,
    ),
    "weights": lambda: fuse(_labels(), K, method="DAL", weights=[3, 1, 1, 1, 1, 2], random_state=0),
    "must_link": lambda: fuse(
        _labels(), K, method="DAL", must_link=[(0, 1), (1, 2), (170, 171)], random_state=0
    ),
    "followed": _followed,
    "chance": lambda: fuse(_noise(), 5, method="DAL", random_state=0),
    "chance, number found": lambda: fuse(_noise(), "auto", method="DAL", random_state=0),
    "views by PSE": lambda: _by_views("auto"),
    "views by another method": lambda: _by_views("DAIMC"),
    "views by labels": lambda: _by_views("labels"),
    "labels and views": _together,
}


@pytest.fixture(scope="module", params=list(CASES))
def fusion(request):
    return CASES[request.param]()


@pytest.fixture(scope="module")
def expected(fusion):
    """The figures from the frame with a row per row of the table, counted by hand."""
    frame = fusion.to_frame()
    counts = np.ones(len(frame), int) if fusion.partitions is None else fusion.partitions.counts
    label, sure, cover = (frame[name].to_numpy() for name in ("label", "confidence", "coverage"))
    each = [np.repeat(values, counts) for values in (label, sure, cover)]
    label, sure, cover = each
    inside = label >= 0
    k = int(label.max()) + 1
    return {
        "n_instances": len(label),
        "n_unassigned": int((~inside).sum()),
        "n_clusters": len(np.unique(label[inside])),
        "confidence": sure[inside].mean(),
        "unsure": (sure[inside] < 0.5).mean(),
        "size": [int((label == c).sum()) for c in range(k)],
        "cluster_confidence": [sure[label == c].mean() if (label == c).any() else 0.0 for c in range(k)],
        "cluster_unsure": [(sure[label == c] < 0.5).mean() if (label == c).any() else 0.0 for c in range(k)],
        "cluster_coverage": [cover[label == c].mean() if (label == c).any() else 0.0 for c in range(k)],
    }


def test_the_headline_counts_instances(fusion, expected):
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(fusion.headline, name), value, atol=1e-12, err_msg=name)


def test_attributes_say_the_headline(fusion):
    head = fusion.headline
    assert fusion.n_instances == head.n_instances
    assert fusion.n_clusters == head.n_clusters
    assert f"Fusion({head.n_instances} instances in {head.n_clusters} cluster" in repr(fusion)
    assert fusion.diagnostics.mean_confidence == pytest.approx(head.confidence)
    assert fusion.warnings == list(head.warnings)
    assert fusion.sources == head.sources
    assert head.missing_share == pytest.approx(np.mean([source.missing for source in head.sources]))
    for source in head.sources:
        assert source.missing == pytest.approx(1 - source.n_instances / head.n_instances)
        assert len(source.support) == fusion.n_numbers


def _said(text):
    """The numbers that a summary says of all instances."""
    return {
        "n_clusters": int(re.search(r"(\d+) clusters? of", text)[1]),
        "n_instances": int(re.search(r"clusters? of (\d+) instances", text)[1]),
        "missing": int(
            re.search(r"(\d+)% of the (?:labels missing|rows absent|labels and rows missing)", text)[1]
        ),
        "confidence": float(re.search(r"Mean confidence ([\d.]+);", text)[1]),
        "unsure": int(re.search(r"; (\d+)% of the instances are below", text)[1]),
        "n_unassigned": int(
            (re.search(r"(\d+) more instances? (?:is|are) in no cluster", text) or [0, 0])[1]
        ),
    }


def _rounded(head):
    return {
        "n_clusters": head.n_clusters,
        "n_instances": head.n_instances,
        "missing": int(f"{head.missing_share:.0%}"[:-1]),
        "confidence": float(f"{head.confidence:.2f}"),
        "unsure": int(f"{head.unsure:.0%}"[:-1]),
        "n_unassigned": head.n_unassigned,
    }


def test_the_summary_says_the_headline(fusion):
    head, text = fusion.headline, fusion.summary()
    assert _said(text) == _rounded(head)
    for c in np.flatnonzero(head.size):
        assert re.search(rf"^ *{c}  +{head.size[c]}  +{head.cluster_confidence[c]:.2f}", text, re.M), c
    for finding in head.warnings:
        assert str(finding) in text


def test_the_notebook_says_the_headline(fusion):
    head, page = fusion.headline, fusion._repr_html_()
    assert _said(html.unescape(re.sub("<[^>]*>", "", page))) == _rounded(head)
    for c in np.flatnonzero(head.size):
        assert f"<td>{c}</td><td>{head.size[c]}</td><td>{head.cluster_confidence[c]:.2f}</td>" in page
    for finding in head.warnings:
        assert html.escape(str(finding)) in page


def test_weights_that_were_given_stand_beside_the_learned_ones(fusion):
    text, page = fusion.summary(), fusion._repr_html_()
    given = fusion.given_weights
    assert ("given weight  learned weight" in text) == (given is not None)
    assert ("<th>given weight</th><th>learned weight</th>" in page) == (given is not None)
    for source, asked in zip(fusion.sources, given or (), strict=given is not None):
        assert source.given_weight == asked
        cells = f"{source.agreement:.2f}", f"{asked:g}", f"{source.weight:.2f}"
        assert re.search(rf"^{re.escape(source.name)} .*{'  +'.join(map(re.escape, cells))}$", text, re.M)
        assert "".join(f"<td>{cell}</td>" for cell in cells) in page


def test_the_report_says_the_headline(fusion):
    head, told = fusion.headline, json.loads(json.dumps(summarize(fusion)))
    result = told["results"][0]
    table = told["tables"][result["table"]]
    assert table["n_instances"] == head.n_instances
    assert table["missing_share"] == pytest.approx(head.missing_share)
    for name in ("n_unassigned", "n_clusters"):
        assert result[name] == getattr(head, name)
    for name in ("confidence", "unsure"):
        assert result[name] == pytest.approx(getattr(head, name))
    for name in ("confidence", "unsure", "coverage"):
        found = [cluster[name] for cluster in result["clusters"]]
        np.testing.assert_allclose(found, getattr(head, f"cluster_{name}"), err_msg=name)
    assert [cluster["size"] for cluster in result["clusters"]] == head.size.tolist()
    assert np.sum(result["histogram"]) == head.n_instances
    assert len(result["warnings"]) == len(head.warnings)
    assert head.merged in told["title"]


def test_the_page_says_the_headline(fusion):
    head, page = fusion.headline, render(summarize(fusion))
    text = re.sub(
        r"\s+", " ", html.unescape(re.sub("<(script|style).*?</\\1>|<[^>]*>", " ", page, flags=re.S))
    )
    assert re.search(rf"\b{head.n_instances:,} instances".replace(",", "[, \u202f\u2009\u00a0]?"), text)
    assert f"{head.n_clusters} cluster" in text
    if head.n_unassigned:
        assert re.search(rf"\b{head.n_unassigned}\b", text)


def _page_text(fusion):
    page = render(summarize(fusion))
    return re.sub(
        r"\s+", " ", html.unescape(re.sub("<(script|style).*?</\\1>|<[^>]*>", " ", page, flags=re.S))
    )


def test_agreement_by_chance_is_said_first_everywhere_and_nothing_advises_to_report(fusion, request):
    head, test = fusion.headline, fusion.chance_test
    by_chance = "chance" in request.node.callspec.params["fusion"]
    assert head.by_chance == test.by_chance == bool(head.chance) == by_chance
    assert np.isnan(head.p_chance) == fusion.by_views  # their opinions are read from the answer
    told = json.loads(json.dumps(summarize(fusion)))["results"][0]
    assert told["chance"] == head.chance
    assert told["p_chance"] == (None if fusion.by_views else pytest.approx(head.p_chance))
    page = _page_text(fusion)
    if not by_chance:
        for text in (*head.sentences, fusion.summary(), fusion._repr_html_(), page):
            assert "sources agree no more than chance" not in text
        return
    assert head.p_chance >= 0.01
    assert head.chance.startswith("Your sources agree no more than chance would")
    assert head.sentences[0] == head.chance
    assert fusion.summary().startswith(head.chance)
    assert fusion._repr_html_().startswith(f"<div><p><b>{html.escape(head.chance)}</b></p>")
    assert page.index(head.chance) < page.index("instances, merged from")
    assert "no more than chance" in fusion.warnings[0]
    for text in (fusion.summary(), page, html.unescape(fusion._repr_html_())):
        assert "not the chance of being right" in text
        assert "nine times in ten" not in text
        assert not re.search(r"(?<!do not )report clusters", text, re.I)


def test_a_number_that_was_given_is_called_repeatable_or_not_everywhere(fusion):
    said = fusion.headline.repeatability
    silent = fusion.by_views or fusion.headline.by_chance or fusion.cluster_count is not None
    silent |= fusion.partitions.n_partitions < 6  # a half of them is one or two sources
    assert (said == "") == silent
    texts = (fusion.summary(), html.unescape(fusion._repr_html_()), _page_text(fusion))
    assert all(said in text for text in (*texts, " ".join(fusion.headline.sentences)))
    assert json.loads(json.dumps(summarize(fusion)))["results"][0]["repeatability"] == said


def test_an_unrelated_source_is_named():
    rng = np.random.default_rng(0)
    table = {f"bank_{j}": column for j, column in enumerate(_labels().T)}
    table["survey"] = rng.integers(0, 3, len(_labels()))
    fusion = fuse(table, K, method="DAL", random_state=0)
    assert fusion.chance_test.unrelated == ("survey",)
    said = "'survey' agrees with the others no more than chance would."
    assert [finding.text for finding in fusion.warnings].count(said) == 1
    assert said in fusion.summary()
    left_out = fuse(table, K, method="DAL", weights={"survey": 0}, random_state=0)
    assert said not in left_out.summary()


def test_instances_that_belong_together_count_once():
    """Four copies of every instance would make noise agree beyond chance."""
    noise = np.repeat(_noise()[:100], 4, axis=0)
    pairs = [(i, i + 1) for i in range(400) if i % 4 < 3]
    assert fuse(noise, 3, method="DAL", random_state=0).chance_test.beyond
    assert fuse(noise, 3, method="DAL", must_link=pairs, random_state=0).chance_test.by_chance


def test_counted_rows_say_what_repeated_ones_say():
    one, many = (CASES[name]().headline.as_dict() for name in ("counted", "repeated"))
    assert one.keys() == many.keys()
    assert one["likelier"] == many["likelier"]
    words = {"warnings", "reading", "chance", "repeatability", "likelier"}
    for name in one.keys() - {"sources", "sides"} - words:
        np.testing.assert_allclose(one[name], many[name], atol=1e-9, err_msg=name)
    assert one["warnings"] == many["warnings"]
    assert one["chance"] == many["chance"]
    assert one["repeatability"] == many["repeatability"]
