import base64
import hashlib
import json
import os
import re
import sys
from collections import Counter
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib.resources import files
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import consilience
from consilience import DAL, Fusion, Partitions, compare, fuse, fuse_views, load
from consilience.diagnostics import profile
from consilience.generate import base_partitions
from consilience.report import FORMAT, render, summarize, write_report
from consilience.report.form import default
from consilience.report.sections import SECTIONS, method, sources
from consilience.report.sections.doubtful import explaining
from consilience.report.sections.doubtful.reasons import UNDECIDED, UNSEEN
from tests.planted import planted

SAVED = Path(__file__).parent / "saved"
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "=cmd()",
    "\u202eright to left",
    "a\nb\u2028c",
    "{{ 7 * 7 }}",
    "n" * 500,
)


def given(labels, base, **settings):
    """A result as a method would return it, without a method."""
    table = base if isinstance(base, Partitions) else Partitions.of(base, unobserved="keep")
    return Fusion(np.asarray(labels), table, "Planted", "It was given.", None, **settings)


def all_ids(listed):
    """Every id of the list: those of one line are together."""
    return [[first, *others] for first, others in zip(listed["id"], listed["others"], strict=True)]


def noisy(n=300, m=6, c=4, seed=0, missing=0.3):
    truth, base = planted(n, m, c, noise=0.25, missing=missing, seed=seed)
    return given(truth, base)


@pytest.fixture(scope="module")
def fusion():
    return noisy()


@pytest.fixture(scope="module")
def summary(fusion):
    return summarize(fusion, title="A title", command="consilience fuse x.csv", created="2025-01-02T03:04:05")


@pytest.fixture(scope="module")
def page(summary):
    return render(summary)


class TestNumbers:
    """The summary against slow sums over instances."""

    def test_it_survives_json(self, summary):
        assert json.loads(json.dumps(summary, allow_nan=False)) == summary
        assert summary["format"] == FORMAT

    def test_the_table(self, fusion, summary):
        table, codes = summary["tables"][0], fusion.partitions.codes
        assert (table["n_instances"], table["n_partitions"]) == codes.shape
        assert table["n_distinct"] == len({tuple(row) for row in codes.tolist()})
        assert table["n_labels"] == (codes >= 0).sum()
        assert table["missing_share"] == pytest.approx((codes < 0).mean())
        assert table["n_complete"] == (codes >= 0).all(axis=1).sum()
        assert table["n_seen"] == (codes >= 0).sum(axis=0).tolist()

    def test_clusters(self, fusion, summary):
        result = summary["results"][0]
        for c, entry in enumerate(result["clusters"]):
            inside = fusion.labels == c
            assert entry["size"] == inside.sum()
            assert entry["confidence"] == pytest.approx(fusion.confidence[inside].mean())
            assert entry["unsure"] == pytest.approx((fusion.confidence[inside] < 0.5).mean())
            assert entry["coverage"] == pytest.approx(fusion.coverage[inside].mean())

    def test_counts_by_cluster(self):
        truth, base = planted(200, 5, 3, noise=0.2, missing=0.4, seed=1)
        truth[:7], base[:7] = -1, -1
        summary = summarize(given(truth, base))
        table, result = summary["tables"][0], summary["results"][0]
        place = np.where(truth < 0, 3, truth)
        seen = base >= 0
        sizes = Counter(map(tuple, seen.tolist()))
        assert table["patterns"]["n_patterns"] == len(sizes)
        for pattern, size, counts in zip(
            table["patterns"]["seen"], table["patterns"]["size"], result["patterns"], strict=True
        ):
            same = (seen == pattern).all(axis=1)
            assert size == same.sum() == sizes[tuple(pattern)]
            assert counts == np.bincount(place[same], minlength=4).tolist()
        for (low, high), counts in zip(table["seen_by"], result["seen_by"], strict=True):
            inside = (seen.sum(axis=1) >= low) & (seen.sum(axis=1) <= high)
            assert counts == np.bincount(place[inside], minlength=4).tolist()
        for j, counts in enumerate(result["base_seen"]):
            assert counts == np.bincount(truth[seen[:, j]], minlength=3).tolist()
        assert np.sum(result["histogram"], axis=0).tolist() == np.bincount(place, minlength=4).tolist()
        assert result["n_unassigned"] == 7
        assert result["histogram"][0][3] == 7

    def test_votes_are_majorities_of_the_others_in_a_base_cluster(self, fusion, summary):
        listed = summary["results"][0]["instances"]
        codes, labels = fusion.partitions.codes, fusion.labels
        for i, votes in zip(listed["id"], listed["votes"], strict=True):
            for j, vote in enumerate(votes):
                others = np.flatnonzero((codes[:, j] == codes[i, j]) & (np.arange(len(codes)) != i))
                if codes[i, j] < 0:
                    expected = UNSEEN
                else:
                    most, times = (Counter(labels[others].tolist()).most_common(1) or [(0, 0)])[0]
                    expected = most if 2 * times > len(others) else UNDECIDED
                assert vote == expected

    def test_many_base_clusterings_are_shown_as_means_of_a_few(self, monkeypatch):
        monkeypatch.setattr(sources, "_MOST_BASES", 3)
        fusion = noisy(n=80, m=7)
        exact = consilience.diagnostics.pairwise_agreement(fusion.partitions).agreement
        cells = summarize(fusion)["tables"][0]["agreement"]
        assert sorted(j for cell in cells["bases"] for j in cell) == list(range(7))
        for i, rows in enumerate(cells["bases"]):
            for j, columns in enumerate(cells["bases"]):
                expected = exact[np.ix_(rows, columns)].mean()
                assert cells["matrix"][i][j] == pytest.approx(expected, abs=0.006)

    def test_like_base_clusterings_are_beside_each_other(self):
        rng = np.random.default_rng(0)
        first, second = rng.integers(0, 4, (2, 300))
        summary = summarize(given(first, np.column_stack([first, second, first, second])))
        order = [cell[0] % 2 for cell in summary["tables"][0]["agreement"]["bases"]]
        assert order in ([0, 0, 1, 1], [1, 1, 0, 0])

    def test_flows_between_results(self):
        first, second = noisy(seed=0), noisy(seed=0)
        second = given((second.labels + (np.arange(300) < 20)) % 4, second.partitions)
        summary = summarize([first, second])
        counts = Counter(zip(first.labels.tolist(), second.labels.tolist(), strict=True))
        assert {(a, b): count for a, b, count in summary["flows"][0]} == dict(counts)
        assert summary["results"][0]["with_first"] == 1.0
        assert 0.5 < summary["results"][1]["with_first"] < 1.0


class TestHeadline:
    def test_is_the_mean_confidence_of_sources_that_differ(self):
        truth, base = planted(300, 8, 4, noise=0.5, missing=0.2, seed=0)
        summary = summarize(given(truth, base))
        assert summary["results"][0]["ranks_only"] is False
        top = render(summary).split("</header>")[0]
        assert "Mean confidence" in top
        assert "Sources, as independent ones" not in top

    def test_is_another_number_where_they_repeat_each_other(self):
        truth, base = planted(300, 1, 4, noise=0.3, missing=0.0, seed=0)
        summary = summarize(given(truth, np.repeat(base, 5, axis=1)))
        result = summary["results"][0]
        assert result["ranks_only"] is True
        assert "ranks instances and is not the chance of being right" in result["reading"]
        top, rest = render(summary).split("</header>")
        assert "Mean confidence" not in top
        assert "1.0 of 5" in top
        assert result["reading"] in top
        assert result["reading"] in rest


class TestWhy:
    """Two clear clusters of four; the last instance is the one in question."""

    LEFT, RIGHT = [0] * 6, [1] * 6

    def why(self, row, label=0):
        base = [self.LEFT] * 4 + [self.RIGHT] * 4 + [row]
        listed = summarize(given([0] * 4 + [1] * 4 + [label], base))["results"][0]["instances"]
        return next(why for why, ids in zip(listed["why"], all_ids(listed), strict=True) if 8 in ids)

    @pytest.mark.parametrize(
        ("row", "sentence"),
        [
            ([0, 0, 0, 0, 0, 0], "all 6 base clusterings that saw it put it with cluster 0"),
            ([0, 0, -1, -1, -1, -1], "both base clusterings that saw it put it with cluster 0"),
            ([0, -1, -1, -1, -1, -1], "seen by one base clustering only, which puts it with cluster 0"),
            ([1, -1, -1, -1, -1, -1], "seen by one base clustering only, which puts it with cluster 1"),
            ([1, 1, 1, 0, 0, -1], "3 of 5 base clusterings put it with cluster 1, 2 with cluster 0"),
            ([1, 1, 1, -1, -1, -1], "3 of 3 base clusterings put it with cluster 1, none with cluster 0"),
            ([0, 0, 0, 1, -1, -1], "3 of 4 base clusterings put it with cluster 0, 1 with cluster 1"),
            ([-1, -1, -1, -1, -1, -1], "no base clustering saw it, so cluster 0 is a guess"),
        ],
    )
    def test_says_who_put_it_where(self, row, sentence):
        assert self.why(row) == sentence

    def test_ties(self):
        assert self.why([0, 0, 1, 1, -1, -1]).startswith(
            "tie between clusters 0 and 1: 2 of 4 base clusterings for each"
        )

    def test_the_word_tie_follows_the_margin(self):
        fusion = noisy(n=400, m=4, missing=0.1)
        listed = summarize(fusion)["results"][0]["instances"]
        ties = 0
        for why, margin, alternative in zip(
            listed["why"], listed["margin"], listed["alternative"], strict=True
        ):
            if "tie between" in why or "about as likely" in why:
                ties += 1
                assert 0.4499 <= margin <= 0.5501
            elif alternative >= 0 and not why.startswith("no base"):
                assert not 0.4501 < margin < 0.5499
        assert ties

    def test_base_clusters_that_point_nowhere(self):
        assert self.why([0, 0, 2, -1, -1, -1]).startswith(
            "2 of 3 base clusterings put it with cluster 0; 1 points to no single cluster"
        )
        assert self.why([2, 2, -1, -1, -1, -1]).startswith("none of the 2 base clusterings that saw it")

    def test_an_instance_has_no_vote_for_itself(self):
        base = [[0, 0], [0, 0], [2, 0], [1, 1], [1, 1], [2, 1]]  # the third and the last share a base cluster
        listed = summarize(given([0, 0, 0, 1, 1, 1], base))["results"][0]["instances"]
        votes = dict(zip(listed["id"], listed["votes"], strict=True))
        assert (votes[2], votes[5]) == ([1, 0], [0, 1])

    def test_unassigned(self):
        assert self.why([-1] * 6, label=-1) == "no base clustering saw it"
        assert self.why([0] * 6, label=-1) == "the method left it unassigned"

    def test_a_base_that_disagrees_with_the_votes_shows_in_the_margin(self):
        truth = [0] * 6 + [1] * 6
        base = [[c, c] for c in truth]
        base[0] = [1, -1]  # alone with the other cluster
        listed = summarize(given(truth, base))["results"][0]["instances"]
        assert listed["why"][0] == "seen by one base clustering only, which puts it with cluster 1"
        assert listed["margin"][0] < 0.5

    def test_a_tie_of_many_clusters_is_not_spelt_out(self):
        base = np.repeat(np.arange(5), 3)[:, None] * np.ones((1, 5), dtype=int)
        base = np.vstack([base, np.arange(5)])
        listed = summarize(given([*np.repeat(np.arange(5), 3), 0], base))["results"][0]["instances"]
        assert listed["why"][0].startswith("tie between 5 clusters: 1 of 5 base clusterings for each")


class TestList:
    def test_few_instances_are_all_there_least_sure_first(self, fusion, summary):
        listed = summary["results"][0]["instances"]
        assert sorted(chain(*all_ids(listed))) == list(range(300))
        assert listed["alike"] == [len(ids) for ids in all_ids(listed)]
        assert listed["confidence"] == sorted(listed["confidence"])
        assert not any(listed["sampled"])

    def test_many_are_the_least_sure_and_some_of_every_cluster(self):
        fusion = noisy(n=3000, m=10, missing=0.2)
        listed = summarize(fusion, listed=400)["results"][0]["instances"]
        least = [i for i, sampled in zip(listed["id"], listed["sampled"], strict=True) if not sampled]
        assert len(least) == 300
        assert len(listed["id"]) == len(set(listed["id"])) <= 400
        rest = np.setdiff1d(np.arange(3000), least)
        crowded = fusion.partitions.distinct.counts[fusion.partitions.inverse] > 10
        assert fusion.confidence[least].max() <= fusion.confidence[rest[~crowded[rest]]].min() + 1e-12
        assert set(listed["cluster"]) == {0, 1, 2, 3}
        sure = [c for c, sampled in zip(listed["confidence"], listed["sampled"], strict=True) if sampled]
        assert max(sure) > np.median(fusion.confidence)

    def test_instances_that_are_alike_share_a_line(self):
        sizes = [400, 300, 100]
        base = np.repeat([[0, 0, 0], [1, 1, 1], [0, 1, -1]], sizes, axis=0)
        fusion = given(np.repeat([0, 1, 0], sizes), base)
        listed = summarize(fusion, listed=80)["results"][0]["instances"]
        assert listed["alike"] == [100, 300, 400] or listed["alike"] == [100, 400, 300]
        assert sorted(chain(*all_ids(listed))) == list(range(800))
        assert set(all_ids(listed)[0]) == set(range(700, 800))
        listed = summarize(fusion, listed=50)["results"][0]["instances"]
        assert [len(ids) for ids in all_ids(listed)] == [100, 200, 200]  # of 500, as many of each as fit
        assert sorted(listed["alike"]) == sorted(sizes)

    def test_instances_of_a_row_in_two_clusters_have_two_lines(self):
        base = np.repeat([[0, 0, 0], [1, 1, 1], [0, 1, -1]], [40, 30, 10], axis=0)
        labels = np.repeat([0, 1, 0, 1], [40, 30, 6, 4])
        listed = summarize(given(labels, base))["results"][0]["instances"]
        assert sorted(zip(listed["cluster"], listed["alike"], strict=True)) == [
            (0, 6),
            (0, 40),
            (1, 4),
            (1, 30),
        ]

    def test_lines_are_split_where_views_are_not_as_sure(self):
        base = np.repeat([[0, 0], [1, 1]], [20, 20], axis=0)
        fusion = given(np.repeat([0, 1], 20), base)
        sure = np.r_[np.full(5, 0.5), np.full(15, 0.9), np.full(20, 0.7)]
        vars(fusion)["diagnostics"] = replace(fusion.diagnostics, confidence=sure)
        listed = summarize(fusion)["results"][0]["instances"]
        assert listed["confidence"] == [0.5, 0.7, 0.9]
        assert listed["alike"] == [5, 20, 15]

    def test_2800_customers_are_all_there(self):
        truth, base = planted(2800, 12, 5, noise=0.3, missing=0.2, seed=0)
        listed = summarize(given(truth, base))["results"][0]["instances"]
        assert sorted(chain(*all_ids(listed))) == list(range(2800))

    def test_more_than_five_results_share_the_rows(self):
        fusions = [noisy(n=3000)] * 10
        sizes = [len(result["instances"]["id"]) for result in summarize(fusions, listed=600)["results"]]
        assert all(200 < size <= 300 for size in sizes)

    @pytest.mark.parametrize(
        ("ids", "expected"),
        [
            (["a", "b", "c"], ["a", "b", "c"]),
            ([7, 2**53, 2**60], [7, 2**53, str(2**60)]),  # JavaScript would round the last
            ([("x", 1), ("x", 2), ("y", 1)], ["x / 1", "x / 2", "y / 1"]),
            ([1.5, "1.5", True], ["1.5", "1.5", "True"]),
            (pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]), None),
        ],
    )
    def test_any_id_is_a_number_or_a_text(self, ids, expected):
        table = Partitions.of([[0, 0], [0, 0], [1, 1]], index=list(ids))
        summary = summarize(given([0, 0, 1], table))
        found = dict(enumerate(chain(*all_ids(summary["results"][0]["instances"]))))
        assert json.loads(json.dumps(summary)) == summary
        if expected is not None:
            assert sorted(map(str, found.values())) == sorted(map(str, expected))
            assert {type(value) for value in found.values()} == {type(value) for value in expected}

    def test_positions_where_there_are_no_ids(self, summary):
        assert summary["tables"][0]["id_name"] == "row"
        frame = pd.DataFrame({"a": [0, 0, 1], "b": [0, 0, 1]}, index=pd.Index([5, 6, 7], name="customer"))
        summary = summarize(fuse(frame, 2, method="DAL"))
        assert summary["tables"][0]["id_name"] == "customer"
        assert sorted(chain(*all_ids(summary["results"][0]["instances"]))) == [5, 6, 7]


class TestResults:
    def test_names(self, fusion):
        assert [r["name"] for r in summarize([fusion, fusion])["results"]] == [
            "Planted, 4 clusters",
            "Planted, 4 clusters (2)",
        ]
        assert [r["name"] for r in summarize({"one": fusion, 2: fusion})["results"]] == ["one", "2"]

    def test_one_table_is_described_once(self, fusion):
        other = given(fusion.labels, fusion.partitions.codes[:, :4])
        found = summarize([fusion, fusion, other])
        assert [result["table"] for result in found["results"]] == [0, 0, 1]
        assert [table["n_partitions"] for table in found["tables"]] == [6, 4]

    @pytest.mark.parametrize(
        ("results", "error", "message"),
        [
            ([], ValueError, "there is no result to report. Hint"),
            ([1], TypeError, "Got int instead. Hint"),
            (3, TypeError, "Got int instead. Hint"),
            ({"a": "b"}, TypeError, "Got str instead. Hint"),
        ],
    )
    def test_what_is_no_result(self, results, error, message):
        with pytest.raises(error, match=message):
            summarize(results)

    def test_other_instances_are_refused(self, fusion):
        with pytest.raises(ValueError, match=r"'b' is about other instances .*\(200 and 300\)\. Hint"):
            summarize({"a": fusion, "b": noisy(n=200)})
        table = Partitions.of(fusion.partitions.codes, index=[f"p{i}" for i in range(300)])
        with pytest.raises(ValueError, match="other instances"):
            summarize([fusion, given(fusion.labels, table)])

    def test_wrong_number_of_listed_instances(self, fusion):
        with pytest.raises(ValueError, match=r"'listed' parameter of summarize .* Hint: use 3000"):
            summarize(fusion, listed=0)

    def test_what_the_caller_says_of_it(self, fusion):
        when = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
        found = summarize(fusion, created=when)
        assert found["created"] == "2024-05-06T07:08:09+00:00"
        assert found["title"] == "Consensus of 6 base clusterings"
        assert found["command"] is None
        assert found["versions"]["consilience"] == consilience.__version__
        assert datetime.fromisoformat(summarize(fusion)["created"]).tzinfo is not None

    def test_method_parameters_and_candidates(self):
        _, base = planted(120, 5, 3, noise=0.1, missing=0.2, seed=1)
        result = summarize(fuse(base, 3, random_state=0))["results"][0]
        assert result["method"] in [tried["method"] for tried in result["candidates"]]
        assert result["parameters"]["n_clusters"] == 3
        assert result["call"] == "fuse(labels, 3, random_state=0)"
        assert result["seed"] == 0
        assert not any("array(" in str(value) for value in result["parameters"].values())

    def test_warnings_are_split_from_their_hints(self):
        fusion = given([0, 0, 1, 1, 0], [[0, 0], [0, 0], [1, 1], [1, 1], [-1, -1]])
        warnings = summarize(fusion)["results"][0]["warnings"]
        assert len(warnings) == len(fusion.diagnostics.warnings) > 0
        assert all(w["text"][0].isupper() and w["hint"] and " Hint: " not in w["text"] for w in warnings)

    def test_views_are_columns_of_the_picture_of_gaps(self):
        rng = np.random.default_rng(0)
        kind = np.arange(60) % 3
        views = {name: rng.normal(4 * rng.normal(size=(3, 4))[kind]) for name in ("size", "hue")}
        views["size"][:15], views["hue"][50:] = np.nan, np.nan
        table = summarize(fuse_views(views, 3, n_partitions=4, method="DAL", random_state=0))["tables"][0]
        assert table["groups"] == ["size"] * 4 + ["hue"] * 4
        assert table["patterns"]["sets"] == ["size", "hue"]
        assert table["patterns"]["size"] == [35, 15, 10]

    def test_what_was_read_and_used_of_each_view(self):
        rng = np.random.default_rng(0)
        kind = np.arange(60) % 3
        views = {name: rng.normal(4 * rng.normal(size=(3, 4))[kind]) for name in ("size", HOSTILE[0])}
        views["words"] = rng.poisson(rng.gamma(0.1, 5.0, size=(3, 40))[kind]) + np.eye(40)[0]
        views["words"][:6] = 0.0
        views["size"][50:] = np.nan
        fusion = fuse_views(views, 3, n_partitions=2, random_state=0)
        summary = summarize(fusion)
        assert summary["title"] == "Consensus of 3 views"
        found = summary["results"][0]["views"]
        assert found["names"] == ["size", HOSTILE[0], "words"]
        assert found["kind"] == ["measurements", "measurements", "counts"]
        assert (found["n_rows"], found["n_empty"]) == ([50, 60, 54], [0, 0, 6])
        assert found["absent_share"] == pytest.approx(10 / 180)
        assert found["support"] == fusion.model.view_support_.tolist()
        assert json.loads(json.dumps(summary)) == summary
        page = render(summary)
        assert "from 3 views with 6% of the rows absent" in page
        assert "How strongly each view supports each cluster" in page
        assert HOSTILE[0] not in page
        merged = summarize(fuse_views(views, 3, n_partitions=2, method="DAL", random_state=0))
        assert merged["results"][0]["views"] is None
        assert "How strongly each view" not in render(merged)
        found["support"][1].pop()
        with pytest.raises(ValueError, match=r"results\[0\]\.views\.support\[1\] must be a list of 3"):
            render(summary)

    def test_names_that_look_like_views_make_no_views(self):
        base = {name: [0, 0, 1, 1] for name in ("a 1", "a 2", "b 1")}
        assert summarize(given([0, 0, 1, 1], base))["tables"][0]["groups"] is None


class Outline(HTMLParser):
    """Elements in order, and whether they close in order."""

    VOID = frozenset(("meta", "input", "br", "img", "link", "hr"))

    def __init__(self, page):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


class TestPage:
    def test_elements_close_and_ids_are_unique(self, page):
        found = Outline(page)
        assert found.open == []
        ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
        assert len(ids) == len(set(ids))
        anchors = [a["href"] for tag, a in found.elements if tag == "a"]
        assert all(anchor.startswith("#") and anchor[1:] in ids for anchor in anchors)

    def test_it_says_what_a_reader_asks_in_order(self, page):
        headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
        assert headings == [
            "The clusters, and how sure they are",
            "What each source calls the clusters",
            "Who is doubtful",
            "Where the evidence is thin",
            "Which sources to trust",
            "How it was made, and how to repeat it",
        ]
        assert "<title>A title</title>" in page
        assert "consilience fuse x.csv" in page
        assert "2025-01-02 03:04" in page
        assert "The number of clusters was given: 4." in page

    def test_only_its_own_script_may_run(self, page):
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
        script = re.search(r"<script>(.*?)</script>", page, flags=re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in policy
        assert "default-src 'none'" in policy
        assert "unsafe-inline'; script" in policy
        assert "unsafe-eval" not in policy

    def test_nothing_is_loaded(self, page):
        found = Outline(page)
        assert not {tag for tag, _ in found.elements} & {"link", "img", "iframe", "object", "embed", "form"}
        assert not any({"src", "srcset", "action"} & attributes.keys() for _, attributes in found.elements)
        assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
        addresses = set(re.findall(r"https?://[^\"'\s)]*", page))
        assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, not a place
        assert "url(" not in page
        assert "innerHTML" not in page

    def test_the_data_is_in_the_page(self, page, summary):
        text = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
        assert json.loads(text) == summary

    def test_the_same_summary_gives_the_same_page(self, page, summary):
        assert render(json.loads(json.dumps(summary))) == page

    def test_hostile_names_stay_text(self):
        ids = [*HOSTILE, *(f"id {i}" for i in range(22))]
        truth, base = planted(30, len(HOSTILE), 2, noise=0.2, missing=0.2, seed=0)
        table = Partitions.of(dict(zip(HOSTILE, base.T, strict=True)), index=ids)
        fusions = {name: given(truth, table) for name in HOSTILE}
        made = summarize(fusions, title=HOSTILE[1], command=HOSTILE[0])
        assert json.loads(json.dumps(made)) == made
        page = render(made)
        found = Outline(page)
        assert found.open == []
        tags = Counter(tag for tag, _ in found.elements)
        assert tags["script"] == 2
        assert tags["img"] == 0
        assert "<script>alert" not in page
        data = re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[1]
        assert not set(data) & set("<>&\u2028\u2029")
        assert json.loads(data) == made
        assert "{{ 7 * 7 }}" in page

    def test_singular_and_plural(self):
        page = render(summarize(given([0, 0, 0], [[0, 0], [0, 0], [0, 1]])))
        assert "1 cluster of 3 instances" in page
        assert not re.search(r"\b1 (clusters|instances|base clusterings)\b", page)

    @pytest.mark.parametrize(
        ("labels", "base"),
        [
            ([0, 0, 1], [[0], [0], [1]]),
            ([0], [[0]]),
            ([0, 0, 0], [[0, 0], [0, 1], [1, 1]]),
            ([0, 0, 1, -1], [[0, 0], [0, 0], [1, 1], [-1, -1]]),
            ([0, 0, 1, 0], [[0, 0], [0, 0], [1, 1], [-1, -1]]),
            ([0, 1, 2, 3], [[0, 0], [1, 1], [2, 2], [3, 3]]),
            ([0, 0, 3, 3], [[0, 0], [0, 0], [1, 1], [1, 1]]),  # clusters without members
            ([0, 0, 1, 1], [[0, -1], [0, -1], [-1, 0], [-1, 1]]),  # bases that share nobody
            ([0, 0, 1, 1], [[0, 0], [0, 0], [0, 0], [0, 0]]),  # silent bases
        ],
    )
    def test_small_and_strange_tables(self, labels, base):
        made = summarize(given(labels, base))
        assert json.loads(json.dumps(made, allow_nan=False)) == made
        assert Outline(render(made)).open == []

    def test_many_clusters_have_colours_and_no_map(self):
        labels = np.repeat(np.arange(160), 2)
        made = summarize(given(labels, np.column_stack([labels] * 3)))
        assert made["results"][0]["consensus"] is None
        page = render(made)
        assert "map of instances would not be readable" in page
        assert "--c159:" in page

    def test_the_number_of_clusters_that_was_found(self):
        _, base = planted(300, 10, 4, noise=0.2, missing=0.3, seed=6)
        made = summarize(fuse(base, "auto", method="DAL", random_state=0))
        assert made["results"][0]["count"]["curve"]["k"][0] == 1
        page = render(made)
        assert "<p>4 clusters, reliably. " in page
        assert 'data-chart="count"' in page
        assert "this is not a count of classes." in page

    @pytest.mark.filterwarnings("ignore:.*not reliably")
    def test_a_number_that_is_guessed_says_what_speaks_for_it(self):
        X = np.random.default_rng(0).standard_normal((200, 6))
        fusion = fuse(base_partitions(X, (2, 14), 10, random_state=0), "auto", method="DAL", random_state=0)
        count = fusion.cluster_count
        assert (count.rule, count.may_be_one_cloud) == ("modularity", True)
        made = json.loads(json.dumps(summarize(fusion), allow_nan=False))
        kept = made["results"][0]["count"]
        assert (kept["low"], kept["high"]) == (count.low, count.high)
        assert [c["n_clusters"] for c in kept["candidates"]] == [c.n_clusters for c in count.candidates]
        page = render(made)
        assert f"The labels support about {count.n_clusters} clusters ({count.low} to " in page
        assert "It may be one cloud" in page
        for c in count.candidates:
            assert (
                f"{c.n_clusters}</th><td>{'<strong>chosen</strong>' if c.role == 'chosen' else c.role}"
                in page
            )
        assert Outline(page).open == []

    def test_complete_tables_say_so(self):
        page = render(summarize(given([0, 0, 1], [[0, 0], [0, 0], [1, 1]])))
        assert "Nothing is missing: every base clustering saw every instance." in page

    def test_without_jinja_it_says_what_to_install(self, summary, monkeypatch):
        monkeypatch.setitem(sys.modules, "jinja2", None)
        with pytest.raises(
            ImportError, match=r"the HTML report needs jinja2. Hint: pip install .*\[report\]"
        ):
            render(summary)

    @pytest.mark.parametrize(
        "name", ["page.html", "section.html", "macros.html", "page.css", "page.js", "last.js"]
    )
    def test_templates_are_part_of_the_package(self, name):
        assert (files("consilience.report") / "templates" / name).is_file()


class TestDamage:
    @pytest.mark.parametrize(
        "value", [None, [], "text", {}, {"format": None}, {"format": "consilience-report/2"}, {"format": []}]
    )
    def test_what_is_no_summary(self, value):
        with pytest.raises(ValueError, match=r"no result that a page can be made of: .* Hint"):
            render(value)

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (("title",), 3, "summary.title must be of type str"),
            (("versions",), {"python": 3}, r"summary\.versions\.python must be of type str"),
            (("results",), [], "no results"),
            (("results",), {}, "summary.results must be a list"),
            (("results", 0, "table"), 5, r"results\[0\].table must be the position"),
            (("results", 0, "n_clusters"), 9, r"results\[0\].clusters must be a list of 9"),
            (("results", 0, "clusters", 0, "size"), "<b>", r"clusters\[0\].size must be of type int"),
            (("results", 0, "instances", "why"), ["x"], "instances.why must be a list of 249"),
            (("results", 0, "instances", "cluster", 2), True, r"cluster\[2\] must be of type int"),
            (("results", 0, "instances", "votes", 0, 0), "0);", "must be of type int"),
            (("results", 0, "bases", "weight"), [1.0], "weight must be a list of 6"),
            (("tables", 0, "names"), ["a"], "names must be a list of 6"),
        ],
    )
    def test_the_first_damage_is_named(self, summary, path, value, message):
        damaged = json.loads(json.dumps(summary))
        *way, last = path
        at = damaged
        for step in way:
            at = at[step]
        at[last] = value
        with pytest.raises(ValueError, match=rf"{message}.*Hint"):
            render(damaged)

    def test_a_missing_entry_is_named(self, summary):
        damaged = {key: value for key, value in summary.items() if key != "versions"}
        with pytest.raises(ValueError, match=r"summary\.versions must be there"):
            render(damaged)

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (("confidence",), float("nan"), "confidence must be a number that can be shown"),
            (("unsure",), 10**400, "unsure must be a number that can be shown"),
            (("clusters", 0, "confidence"), float("inf"), "confidence must be a number that can be shown"),
            (("instances", "cluster", 0), 99, r"cluster\[0\] must be the position of one of 4"),
            (("consensus", "agreement", 3), [], r"agreement\[3\] must be a list of 100, one per cell"),
            (("parameters",), [], "parameters must be a dict"),
            (("bases", "silent"), None, r"bases\.silent must be a list"),
        ],
    )
    def test_what_no_page_could_show(self, summary, path, value, message):
        damaged = json.loads(json.dumps(summary))
        at = damaged["results"][0]
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value
        with pytest.raises(ValueError, match=rf"{message}.*Hint"):
            render(damaged)


class TestSections:
    def test_a_key_belongs_to_one_section(self):
        for level in ("Page", "Table", "Result"):
            keys = [field.name for s in SECTIONS if hasattr(s, level) for field in fields(getattr(s, level))]
            assert len(keys) == len(set(keys))

    def test_each_has_a_title_a_form_and_a_template(self):
        assert [section.__name__.rpartition(".")[2] for section in SECTIONS] == [
            *("answer", "clusters", "rosetta", "doubtful", "changes", "profile"),
            *("missing", "sources", "tables", "stability", "counts", "levels", "compare", "method"),
        ]
        for section in SECTIONS:
            folder = files(section.__name__)
            assert (folder / "result.html").is_file() or (folder / "once.html").is_file()
            assert isinstance(section.TITLE, str)
            assert is_dataclass(section.Result)

    def test_one_that_has_nothing_to_say_is_not_there(self, page):
        shown = re.findall(r'<section id="(\w+)"', page)
        assert shown == ["clusters", "rosetta", "doubtful", "missing", "sources", "method"]

    @pytest.mark.parametrize("kind", ["labels", "views", "compare"])
    def test_summaries_of_the_first_version_go_on_rendering(self, kind):
        kept = json.loads((SAVED / f"report-1-{kind}.json").read_text())
        page = render(kept)
        assert Outline(page).open == []
        assert f"<title>{kept['title']}</title>" in page
        data = json.loads(re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)[1])
        _kept_whole(kept, data)

    @pytest.mark.parametrize("kind", ["labels", "views"])
    def test_saved_results_can_be_reported(self, kind):
        kept = json.loads((SAVED / f"report-1-{kind}.json").read_text())["results"][0]
        told = summarize(load(SAVED / f"v1-{kind}.consilience"))["results"][0]
        for key in ("n_clusters", "confidence", "histogram", "changes"):
            _kept_whole(kept[key], told[key])

    @pytest.mark.parametrize("kind", ["labels", "views", "compare"])
    def test_a_key_that_an_older_version_did_not_have_has_its_default(self, kind):
        kept = json.loads((SAVED / f"report-1-{kind}.json").read_text())
        found = [field for section in SECTIONS for field in fields(section.Result)]
        keys = [f.name for f in found if default(f) is not MISSING and f.name != "clusters"]
        assert len(keys) > 25
        for key in keys:
            older = {**kept, "results": [{k: v for k, v in r.items() if k != key} for r in kept["results"]]}
            assert Outline(render(older)).open == [], key

    def test_results_comparisons_and_summaries_are_all_taken(self, fusion, summary, page):
        assert "<title>Mine</title>" in render(fusion, title="Mine")
        assert "Results side by side" in render({"a": fusion, "b": fusion})
        assert render(summary) == page


def _kept_whole(kept, data, where=""):
    """Every value of the one is in the other."""
    if isinstance(kept, dict):
        for key in kept:
            _kept_whole(kept[key], data[key], f"{where}.{key}")
    elif isinstance(kept, list) and kept and isinstance(kept[0], dict):
        for number, (one, other) in enumerate(zip(kept, data, strict=True)):
            _kept_whole(one, other, f"{where}[{number}]")
    else:
        assert kept == data, where


@pytest.fixture(scope="module")
def both():
    _, base = planted(900, 4, 3, noise=0.15, missing=0.3, seed=2)
    base[:9] = -1
    whole = Partitions.of(np.array(["x", "y", "z", None], dtype=object)[base], unobserved="keep")
    found = fuse(whole.distinct, 3, method="DAL", unobserved="noise", random_state=0)
    assert (found.labels < 0).sum() == 1
    return [summarize(one) for one in (given(found.labels[whole.inverse], whole), found)]


class TestCountedRows:
    """A table of distinct rows with counts says what the table of all instances says."""

    def test_figures(self, both):
        parts = ((made["tables"][0], made["results"][0]) for made in both)
        (whole, counted), (one, other) = zip(*parts, strict=True)
        assert whole["missing_share"] == pytest.approx(counted["missing_share"])
        for key in whole.keys() - {"id_name", "counted", "missing_share"}:
            assert whole[key] == counted[key], key
        for key in ("n_unassigned", "histogram", "patterns", "seen_by", "base_seen", "bases", "missing"):
            assert one[key] == other[key], key
        for a, b in zip(one["clusters"], other["clusters"], strict=True):
            assert a.pop("typical") == b.pop("typical")
            assert a == pytest.approx(b)
        assert one["warnings"] == other["warnings"]

    def test_the_list_has_labels_for_ids(self, both):
        one, other = (made["results"][0]["instances"] for made in both)
        assert both[1]["tables"][0]["id_name"] == "labels"
        assert sorted(one["alike"]) == sorted(other["alike"])
        assert sorted(one["why"]) == sorted(other["why"])
        assert sum(other["alike"]) == 900
        assert all(len(row.split(", ")) == 4 for row in other["id"])
        assert {part for row in other["id"] for part in row.split(", ")} == {"x", "y", "z", "–"}
        page = render(both[1])
        assert "All 900 instances" in page
        first = next(count for count in other["alike"] if count > 1)
        assert f"<small>{first} alike</small>" in page
        assert "each line shows their labels" in page

    def test_flows_count_instances(self):
        _, base = planted(400, 3, 3, noise=0.1, missing=0.2, seed=4)
        rows = Partitions.of(base, unobserved="keep").distinct
        first = np.arange(rows.n_rows) % 3
        made = summarize([given(first, rows), given((first + 1) % 3, rows)])
        assert sum(n for _, _, n in made["flows"][0]) == 400

    def test_the_map_of_many_instances_is_drawn_from_a_part(self, monkeypatch):
        monkeypatch.setattr(method, "_MAPPED", 300)
        _, base = planted(3000, 3, 3, noise=0.05, missing=0.0, seed=4)
        rows = Partitions.of(base).distinct
        sizes = summarize(given(rows.codes[:, 0], rows))["results"][0]["consensus"]["size"]
        assert sum(sizes) == pytest.approx(3000, rel=0.1)


class TestFile:
    def test_results_and_summaries(self, fusion, summary, page, tmp_path):
        path = write_report(summary, tmp_path / "a.html")
        assert path.read_text(encoding="utf-8") == page
        write_report({"one": fusion}, str(path), title="Other")
        assert "<title>Other</title>" in path.read_text(encoding="utf-8")
        assert os.listdir(tmp_path) == ["a.html"]

    def test_no_folder(self, summary, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no folder .*none.* Hint: make it first"):
            write_report(summary, tmp_path / "none" / "a.html")
        with pytest.raises(IsADirectoryError, match=r"is a folder\. Hint"):
            write_report(summary, tmp_path)

    def test_settings_belong_to_results(self, summary, tmp_path):
        with pytest.raises(TypeError, match=r"takes no 'title'\. Hint"):
            write_report(summary, tmp_path / "a.html", title="x")

    def test_a_failure_leaves_the_old_page(self, summary, tmp_path, monkeypatch):
        path = tmp_path / "a.html"
        path.write_text("old")

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_report(summary, path)
        assert os.listdir(tmp_path) == ["a.html"]
        assert path.read_text() == "old"

    def test_half_a_surrogate_pair_is_written_as_a_question_mark(self, summary, tmp_path):
        path = write_report({**summary, "title": "broken \ud800"}, tmp_path / "a.html")
        assert "<title>broken ?</title>" in path.read_text(encoding="utf-8")


class TestSize:
    LIMIT = 3_000_000

    def test_a_million_instances(self):
        truth, base = planted(1_000_000, 10, 8, noise=0.3, missing=0.3, seed=1)
        made = summarize(given(truth, base))
        page = render(made)
        assert len(page.encode()) < self.LIMIT
        assert "of 1,000,000 shown" in page

    def test_two_hundred_base_clusterings_and_fifty_clusters(self, monkeypatch):
        # The agreement of every two has the size it has; to compute it takes half a minute.
        truth, base = planted(4000, 200, 50, noise=0.3, missing=0.3, seed=1)
        names = [f"a base clustering with a long name, number {j}" for j in range(200)]
        table = Partitions.of(
            dict(zip(names, base.T, strict=True)), index=[f"person {i}" for i in range(4000)]
        )
        matrix = np.random.default_rng(0).random((200, 200))
        monkeypatch.setattr("consilience.diagnostics.bases.pairwise_information", lambda partitions: matrix)
        monkeypatch.setattr("consilience.diagnostics.overview.pairwise_information", lambda *_: matrix)
        page = render(summarize(given(truth, table)))
        assert len(page.encode()) < self.LIMIT
        assert Outline(page).open == []


def test_a_comparison_brings_stability_and_seconds():
    _, base = planted(80, 5, 3, noise=0.1, missing=0.2, seed=3)
    found = compare(base, 3, methods=["DAL", "PCE", DAL(theta=0.2)], n_resamples=2, random_state=0)
    assert sorted(found.fusions) == ["DAL", "DAL (2)", "PCE"]
    made = summarize(found)
    for entry, row in zip(made["results"], found.rows, strict=True):
        assert entry["method"] == row.method
        assert entry["compared"] == {
            "agreement": row.agreement,
            "stability": row.stability,
            "seconds": row.seconds,
        }
    page = render(made)
    for text in ("NMI with bases", "Stability", "Seconds", f"{found.rows[0].agreement:.3f}"):
        assert text in page
    assert "Stability" not in render(summarize(found.fusions))
    for entry in made["results"]:
        del entry["compared"]  # as in a summary that was kept by an earlier version
    assert "Stability" not in render(made)
    assert Outline(page).open == []


def test_a_comparison_opens_on_the_number_that_the_labels_support():
    _, base = planted(80, 5, 3, noise=0.1, missing=0.2, seed=3)
    found = compare(base, [2, 3, 6], methods=["DAL", "PCE"], n_resamples=0, random_state=0)
    made = summarize(found)
    assert made["results"][0]["n_clusters"] == found.n_clusters == 3
    assert [entry["count"] is not None for entry in made["results"]] == [True] * 2 + [False] * 4
    page = render(made)
    assert found.reason in page
    del made["choice"]  # as in a summary that was kept by an earlier version
    assert "within a number of clusters only" not in render(made)


def test_the_documentation_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parent.parent / "docs" / "report.md").read_text(encoding="utf-8")
    scope: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "docs/report.md", "exec"), scope)
    assert sorted(os.listdir()) == ["report.html", "result.json"]
    assert re.search(r"\b\d{3} of 1,797 shown: .*, in 4\d\d lines", scope["page"])


def labelled(n=240, seed=3, **settings):
    """Three sources with labels in words, of people with ids."""
    _, base = planted(n, 4, 3, noise=0.25, missing=0.25, seed=seed)
    names = np.array(["red", "green", "blue", None], dtype=object)
    frame = pd.DataFrame(names[base], index=[f"p{i}" for i in range(n)], columns=list("abcd"))
    frame = frame[frame.notna().any(axis=1)]
    return fuse(frame, 3, method="DAL", random_state=0, **settings), frame


class TestExplained:
    """What stands behind a line is what `Fusion.explain` says of each of its instances."""

    @pytest.mark.parametrize("method", [None, "auto", "labels"])
    def test_is_what_explain_says(self, method):
        of_views = method == "labels"  # several base clusterings speak for each view
        if method is not None:
            rng = np.random.default_rng(0)
            kind = np.repeat([0, 1, 2], 20)
            views = {name: rng.normal(2 * rng.normal(size=(3, 4))[kind]) for name in ("one", "two")}
            fusion = fuse_views(views, 3, n_partitions=4, method=method, random_state=0)
        else:
            fusion, _ = labelled()
            labels = np.where(np.arange(len(fusion.labels)) % 29 == 0, -1, fusion.labels)
            fusion = given(labels, fusion.partitions)  # some were left unassigned
        summary = summarize(fusion)
        result, table = summary["results"][0], summary["tables"][0]
        explained, answers = result["explained"], result["explained"]["answers"]
        sources = list(dict.fromkeys(table["groups"])) if of_views else table["names"]
        assert len(explained["said"]) == len(result["instances"]["id"])
        for i, first in enumerate(result["instances"]["id"]):
            told = fusion.explain(first)
            assert told.label == result["instances"]["cluster"][i]
            assert told.n_twins >= result["instances"]["alike"][i] - 1
            assert told.by_labels == explained["by_labels"][i]
            turns = [[sources.index(turn.source), turn.instead, turn.label] for turn in told.turns]
            assert explained["turns"][i] == turns
            near = [[one.id, one.n_instances, one.label, one.n_agreeing, one.n_both] for one in told.alike]
            assert explained["nearest"][i] == near
            for name, said in zip(sources, told.said, strict=True):
                places = [
                    answer
                    for j, answer in enumerate(explained["said"][i])
                    if answer >= 0 and (table["groups"][j] if of_views else table["names"][j]) == name
                ]
                assert bool(places) == said.seen
                if not places:
                    continue
                if not of_views:
                    assert [answers["label"][answer] for answer in places] == [said.label]
                shares = np.zeros(fusion.n_numbers)
                for answer in places:
                    pairs = np.reshape(answers["shares"][answer], (-1, 2))
                    shares[pairs[:, 0]] += pairs[:, 1] / 1000 / len(places)
                np.testing.assert_allclose(shares, said.shares, atol=0.0056)

    def test_takes_no_more_than_it_may(self, monkeypatch):
        fusion, _ = labelled()
        whole = summarize(fusion)["results"][0]["explained"]
        monkeypatch.setattr(explaining, "_MOST_LABELS", 4 * 20)
        monkeypatch.setattr(explaining, "_MOST_CHANGES", 12 * 7)
        some = summarize(fusion)["results"][0]["explained"]
        assert len(some["said"]) == len(some["turns"]) == 20
        assert some["by_labels"] == whole["by_labels"][:20]
        assert some["turns"] == [*whole["turns"][:7], *[None] * 13]
        render(summarize(fusion))
        monkeypatch.setattr(explaining, "_MOST_COMPARED", 4 * 20 * 30)
        frequent = np.argsort(-fusion.rows.counts, kind="stable")[:30]
        first = [int(np.argmax(fusion.rows.inverse == r)) for r in frequent]
        near = summarize(fusion)["results"][0]["explained"]["nearest"]
        assert {found[0] for one in near for found in one} <= set(fusion.index[first])

    @pytest.mark.parametrize(
        ("path", "value", "message"),
        [
            (("said", 0), [0], "explained.said[0] must be a list of 4"),
            (("said", 0, 0), 10_000, "explained.said[0][0] must be the position of one of"),
            (("turns",), [], "explained.turns must be a list of"),
            (("answers", "base"), [], "explained.answers.base must be a list of"),
        ],
    )
    def test_damage_is_named(self, path, value, message):
        damaged = summarize(labelled()[0])
        place = damaged["results"][0]["explained"]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        with pytest.raises(ValueError, match=re.escape(message)):
            render(damaged)


class TestLiving:
    """Names, typical labels, changes and profiles."""

    def test_names_and_typical_labels(self):
        fusion, frame = labelled(named_after="a")
        summary = summarize(fusion)
        result = summary["results"][0]
        assert result["names"] == list(fusion.names)
        for c, entry in enumerate(result["clusters"]):
            for told in entry["typical"]:
                inside = frame.loc[fusion.labels == c, told["base"]].dropna()
                everywhere = frame[told["base"]].dropna()
                assert told["count"] == (inside == told["label"]).sum()
                assert told["share"] == pytest.approx((inside == told["label"]).mean(), abs=1e-4)
                lift = told["share"] / (everywhere == told["label"]).mean()
                assert told["lift"] == pytest.approx(lift, rel=1e-3)
            assert {told["base"] for told in entry["typical"]} <= set(frame)
            assert len(entry["typical"]) == 3
        named = f"cluster 0 ({fusion.names[0]})"
        assert any(named in why for why in result["instances"]["why"])
        page = render(summary)
        assert "Typical labels" in page
        assert f'0 <bdi title="{fusion.names[0]}">{fusion.names[0]}</bdi>' in page
        assert summarize(labelled()[0])["results"][0]["names"] is None

    def test_changes(self):
        march, frame = labelled()
        march = march.rename(["loyal", "new", "gone"])
        shifted = given((march.labels + 1) % 3, march.partitions).like(march)
        assert summarize(shifted)["results"][0]["changes"]["n_moved"] == 0
        april = fuse(frame.iloc[30:], 4, method="DAL", like=march, random_state=0)
        result = summarize(april)["results"][0]
        told, changes = result["changes"], april.changes
        assert told["sentences"] == list(changes.told(dict(enumerate(april.names))))
        for line in told["clusters"]:
            c = line["cluster"]
            before = march.labels[30:] == c
            now = april.labels == c
            assert line["before"] == before.sum()
            assert line["kept"] == (before & now).sum()
            assert (line["left"], line["joined"]) == ((before & ~now).sum(), (~before & now).sum())
            assert (line["new"], line["now"]) == (0, now.sum())
        assert {line["cluster"] for line in told["clusters"] if line["what"] == "new"} == set(
            changes.appeared
        )
        assert sum(n for _, _, n in told["flows"]) == len(april.labels)
        page = render(summarize(april))
        assert ">What changed</h2>" in page
        assert ">What changed</h2>" not in render(summarize(march))
        page = render(summarize([april, given(april.labels, april.partitions)]))
        assert page.count("This result follows no earlier one.") == 1

    def test_clusters_that_are_gone(self):
        march, _ = labelled()
        april = given(np.where(march.labels == 1, 0, march.labels), march.partitions).like(march)
        told = summarize(april)["results"][0]["changes"]
        gone = [line for line in told["clusters"] if line["what"] == "gone"]
        assert [line["now"] for line in gone] == [0]
        assert f"Cluster {gone[0]['cluster']} is gone." in told["sentences"]
        render(summarize(april))

    def test_a_profile(self):
        fusion, frame = labelled()
        facts = pd.DataFrame(
            {"age": 30 + 10.0 * fusion.labels, "city": np.array(["Rome", "<b>Bonn", None])[fusion.labels]},
            index=frame.index,
        )
        found = profile(fusion, facts)
        summary = summarize(fusion, profile=found)
        assert json.loads(json.dumps(summary, allow_nan=False)) == summary
        told = summary["results"][0]["profile"]
        assert [column["name"] for column in told["columns"]] == [column.name for column in found.columns]
        assert told["columns"][0]["clusters"][1]["mean"] == 40.0
        page = render(summary)
        assert ">What else distinguishes the clusters</h2>" in page
        assert "&lt;b&gt;Bonn" in page
        assert "<b>Bonn" not in page
        assert "What else distinguishes" not in render(summarize(fusion))

    def test_stability(self):
        fusion = labelled()[0].rename({0: "<b>many"})
        found = fusion.stability(n_resamples=2)
        summary = summarize(fusion, stability=found)
        assert json.loads(json.dumps(summary, allow_nan=False)) == summary
        told = summary["results"][0]["stability"]
        assert told["sentences"] == list(found.sentences)
        assert [part["ari"] for part in told["parts"]] == [part.ari for part in found.parts]
        assert [one["verdict"] for one in told["clusters"]] == [one.verdict for one in found.clusters]
        page = render(summary)
        assert ">How stable it is, and what drives it</h2>" in page
        assert "<b>many" not in page
        assert "How stable it is" not in render(summarize(fusion))
        other = fuse(fusion.partitions, 2, method="DAL", random_state=0)
        assert f"Only <bdi>{summary['results'][0]['name']}" in render([fusion, other], stability=found)

    def test_a_stability_of_something_else(self, fusion):
        with pytest.raises(TypeError, match=r"must be a Stability, got dict\. Hint"):
            summarize(fusion, stability={})
        with pytest.raises(ValueError, match=r"about other clusters than those of the result\. Hint"):
            summarize(fusion, stability=labelled()[0].stability(n_resamples=1))

    def test_a_profile_of_something_else(self, fusion):
        with pytest.raises(TypeError, match=r"must be a Profile, got dict\. Hint"):
            summarize(fusion, profile={})
        other, frame = labelled()
        found = profile(other, pd.DataFrame({"x": range(len(frame))}, index=frame.index))
        with pytest.raises(ValueError, match=r"about 3 clusters, the result has 4\. Hint"):
            summarize(fusion, profile=found)
