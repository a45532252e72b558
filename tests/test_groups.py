"""Groups of sources: near copies that count as one opinion in merging, weights, confidence and numbers."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

import consilience
from consilience import Partitions, compare, fuse
from consilience.cli.main import run
from consilience.diagnostics import base_table, choose_n_clusters, confidence
from consilience.inference.copies import near_copies, one_of_each
from consilience.inference.counts import joint_rows
from consilience.inference.opinions import n_heard, of_columns, summed
from consilience.inference.posterior import gather_evidence
from consilience.report import render, summarize
from consilience.results.calling import call_of

K = 4
ANY_WEIGHTS = ("DAL", "HBGF", "KCC", "LWEA", "LWGP", "MixtureConsensus", "SEC", "EAC", "CSPA")
COPYING = ("MCLA",)


def noisy(truth, share, rng):
    return np.where(rng.random(len(truth)) < share, rng.integers(0, truth.max() + 1, len(truth)), truth)


@pytest.fixture(scope="module")
def sources():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, K, 400)
    table = {name: noisy(truth, 0.35, rng) for name in "abc"}
    table["b"] = np.where(rng.random(400) < 0.3, -1, table["b"])
    return table


@pytest.fixture(scope="module")
def copied(sources):
    """The first source three times, under other names of clusters."""
    renamed = np.array([2, 0, 3, 1])[sources["a"]]
    return {"c": sources["c"], "a": sources["a"], "a2": renamed, "b": sources["b"], "a3": sources["a"]}


@pytest.fixture(scope="module")
def resolutions():
    """Near copies of one poor source, and two better ones beside them."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, K, 600)
    one = noisy(truth, 0.5, rng)
    table = {name: noisy(one, 0.05, rng) for name in ("r0.5", "r1", "r2")}
    table |= {"expert": noisy(truth, 0.2, rng), "survey": noisy(truth, 0.3, rng)}
    return truth, table


GROUPS = {"leiden": ["r0.5", "r1", "r2"]}


class TestLaws:
    @pytest.mark.parametrize("method", ["auto", *ANY_WEIGHTS, *COPYING])
    def test_copies_in_a_group_are_the_source_once(self, sources, copied, method):
        once = fuse(sources, K, method=method, random_state=0)
        grouped = fuse(copied, K, method=method, groups={"a": ["a", "a2", "a3"]}, random_state=0)
        # Clusters of one size may change places: their order follows from that of the columns.
        assert adjusted_rand_score(grouped.labels, once.labels) == 1.0
        assert_allclose(grouped.confidence, once.confidence, atol=1e-12)
        assert_allclose(grouped.margin, once.margin, atol=1e-12)
        if method == "auto":
            assert grouped.method == once.method

    def test_copies_share_the_weight_of_the_source(self, sources, copied):
        once = fuse(sources, K, random_state=0)
        grouped = fuse(copied, K, groups={"a": ["a", "a2", "a3"]}, random_state=0)
        weight = dict(zip(sources, once.weights, strict=True))
        found = dict(zip(copied, grouped.weights, strict=True))
        assert_allclose([found["a"], found["a2"], found["a3"]], weight["a"] / 3)
        assert_allclose([found["b"], found["c"]], [weight["b"], weight["c"]])
        bases = grouped.diagnostics.bases
        assert_allclose(bases.effective_number, once.diagnostics.bases.effective_number)
        assert grouped.diagnostics.dependence == pytest.approx(once.diagnostics.dependence)

    def test_the_number_of_clusters_counts_a_group_once(self, sources, copied):
        once = choose_n_clusters(Partitions.of(sources), random_state=0)
        table = Partitions.of(copied).grouped({"a": ["a", "a2", "a3"]})
        grouped = choose_n_clusters(table, random_state=0)
        assert grouped.n_clusters == once.n_clusters
        assert_allclose(grouped.curve.eigenvalue, once.curve.eigenvalue)
        assert one_of_each(table).n_partitions == 3

    @pytest.mark.parametrize("method", ["auto", "PCE", "DAL"])
    def test_a_group_of_one_changes_nothing(self, sources, method):
        once = fuse(sources, K, method=method, random_state=0)
        grouped = fuse(sources, K, method=method, groups={"alone": ["b"]}, random_state=0)
        assert_array_equal(grouped.labels, once.labels)
        assert_array_equal(grouped.confidence, once.confidence)
        assert grouped.method == once.method

    def test_order_and_names_change_nothing(self, resolutions):
        _, table = resolutions
        expected = fuse(table, K, groups=GROUPS, random_state=0)
        order = ["survey", "r2", "expert", "r0.5", "r1"]
        renamed = {f"x {name}": table[name] for name in order}
        groups = {"other": ["x r1", "x r2", "x r0.5"]}
        found = fuse(renamed, K, groups=groups, random_state=0)
        assert_array_equal(found.labels, expected.labels)
        assert_array_equal(found.confidence, expected.confidence)

    def test_all_in_one_group_cannot_be_checked(self, sources):
        fusion = fuse(sources, K, groups={"all": ["a", "b", "c"]}, random_state=0)
        assert fusion.diagnostics.dependence == 1.0
        assert fusion.diagnostics.bases.effective_number == pytest.approx(1.0)
        assert fusion.diagnostics.ranks_only

    def test_weights_multiply_and_zero_leaves_the_group(self, resolutions):
        _, table = resolutions
        parts = Partitions.of(table).grouped(GROUPS)
        assert_allclose(parts.opinion_weights, [1 / 3, 1 / 3, 1 / 3, 1, 1])
        assert_allclose(parts.weighted([0, 1, 2, 3, 1]).opinion_weights, [0, 0.5, 1, 3, 1])
        assert parts.weighted([0, 1, 2, 3, 1]).counting.opinion_weights.tolist() == [0.5, 1, 3, 1]
        left = fuse(table, K, groups=GROUPS, weights={"r0.5": 0}, random_state=0)
        without = {name: column for name, column in table.items() if name != "r0.5"}
        expected = fuse(without, K, groups={"leiden": ["r1", "r2"]}, random_state=0)
        assert_array_equal(left.labels, expected.labels)


def test_means_over_opinions_are_loops():
    rng = np.random.default_rng(0)
    k = np.array([3, 2, 4, 3, 2])
    offsets = np.concatenate([[0], np.cumsum(k)])
    codes = np.column_stack([rng.integers(-1, size, 50) for size in k])
    table, groups = rng.random((int(k.sum()), 3)), (np.array([0, 3]), np.array([1, 2]))
    found, heard = summed(codes, offsets, table, groups), n_heard(codes, groups)
    values = np.where(codes >= 0, rng.random(codes.shape), 0.0)
    columns = of_columns(values, codes >= 0, groups)
    for row in range(50):
        expected, n = np.zeros(3), 0
        for place, opinion in enumerate(([4], [0, 3], [1, 2])):
            seen = [j for j in opinion if codes[row, j] >= 0]
            if seen:
                expected += np.mean([table[offsets[j] + codes[row, j]] for j in seen], axis=0)
                n += 1
            mean = np.mean([values[row, j] for j in seen]) if seen else 0.0
            assert columns[row, place] == pytest.approx(mean)
        assert_allclose(found[row], expected)
        assert heard[row] == n


class TestConfidence:
    def test_near_copies_do_not_vouch_for_each_other(self, resolutions):
        truth, table = resolutions
        parts = Partitions.of(table)
        labels = table["r1"]  # what they all say
        right = (labels == truth).mean()
        together = confidence(parts.grouped({"none": ["survey"]}), labels).mean()
        assert together > right + 0.25
        assert abs(confidence(parts.grouped(GROUPS), labels).mean() - right) < 0.12

    def test_groups_change_the_answer_for_the_better(self, resolutions):
        truth, table = resolutions
        alone, grouped = (fuse(table, K, groups=groups, random_state=0) for groups in (None, GROUPS))
        scores = [adjusted_rand_score(truth, one.labels) for one in (alone, grouped)]
        assert scores[1] > scores[0] + 0.2
        assert grouped.groups == {"leiden": ("r0.5", "r1", "r2")}

    def test_new_instances_are_placed_by_opinions(self, resolutions):
        _, table = resolutions
        fusion = fuse(table, K, groups=GROUPS, random_state=0)
        new = pd.DataFrame({name: column[:50] for name, column in table.items()})
        assert_array_equal(fusion.predict(new), fusion.labels[:50])
        # One member speaks for its group.
        some = fusion.predict(new.drop(columns=["r0.5", "r2"]))
        assert (some == fusion.labels[:50]).mean() > 0.9


class TestNearCopies:
    def test_they_are_named_with_the_option(self, resolutions):
        _, table = resolutions
        fusion = fuse(table, K, random_state=0)
        told = [str(finding) for finding in fusion.warnings if "near copies" in finding]
        assert len(told) == 1
        assert "'r0.5', 'r1', 'r2' are near copies" in told[0]
        assert "groups={" in told[0]
        assert "--group copies=r0.5,r1,r2" in told[0]
        assert told[0] in fusion.summary()
        grouped = fuse(table, K, groups=GROUPS, random_state=0)
        assert not any("near copies" in finding for finding in grouped.warnings)

    def test_they_count_as_one_in_confidence(self, resolutions):
        _, table = resolutions
        parts, labels = Partitions.of(table), table["r1"]
        assert_allclose(confidence(parts, labels), confidence(parts.grouped(GROUPS), labels), atol=1e-12)
        found = gather_evidence(parts, joint_rows(parts, labels))
        assert not found.groups_given

    def test_the_order_of_sources_changes_nothing(self, resolutions):
        _, table = resolutions
        for names in (list(table), list(table)[::-1]):
            parts = Partitions.of({name: table[name] for name in names})
            found = [{parts.names[j] for j in own} for own in near_copies(parts)]
            assert found == [{"r0.5", "r1", "r2"}]

    @pytest.mark.parametrize("noise", [0.05, 0.2, 0.4])
    @pytest.mark.parametrize("n_sources", [3, 6, 20])
    def test_independent_sources_and_pools_are_none(self, noise, n_sources):
        rng = np.random.default_rng(n_sources)
        truth = rng.integers(0, 5, 500)
        table = np.column_stack([noisy(truth, noise, rng) for _ in range(n_sources)])
        assert near_copies(Partitions.of(table)) == ()
        table[:, 0] = rng.integers(0, 5, 500)  # one that knows nothing makes the others no copies
        assert near_copies(Partitions.of(table)) == ()

    def test_few_instances_tell_nothing(self, resolutions):
        _, table = resolutions
        assert near_copies(Partitions.of({name: column[:60] for name, column in table.items()})) == ()


class TestErrors:
    @pytest.mark.parametrize(
        ("groups", "words"),
        [
            ({"g": ["r1", "r3"]}, "unknown base clustering 'r3' in group 'g'."),
            ({"g": ["r1"], "h": ["r1", "r2"]}, "'r1' is in two groups, 'g' and 'h'"),
            ({"g": ["r1", "r1"]}, "'r1' is twice in group 'g'"),
            ({"g": []}, "group 'g' has no source"),
            ({"g": "r1"}, "group 'g' must be a list of sources"),
            (["r1", "r2"], "groups must be a dict"),
        ],
    )
    def test_what_is_wrong_is_named(self, resolutions, groups, words):
        with pytest.raises(ValueError) as error:
            fuse(resolutions[1], K, groups=groups)
        assert words in str(error.value)
        assert "Hint: " in str(error.value)

    def test_methods_that_learn_weights_refuse(self, resolutions):
        with pytest.raises(ValueError, match="PCE does not take groups of base clusterings: it learns"):
            fuse(resolutions[1], K, method="PCE", groups=GROUPS)


class TestSurfaces:
    @pytest.fixture
    def fusion(self, resolutions):
        return fuse(resolutions[1], K, groups=GROUPS, random_state=0)

    def test_every_source_says_its_group(self, fusion):
        assert [source.group for source in fusion.sources] == ["leiden"] * 3 + [None] * 2
        assert "base clustering  group" in fusion.summary()
        assert "<th>group</th>" in fusion._repr_html_()
        told = summarize(fusion)
        assert told["results"][0]["bases"]["group"] == ["leiden"] * 3 + [None] * 2
        assert "Members of a group count as one" in render(told)

    def test_without_groups_there_is_no_column(self, sources):
        fusion = fuse(sources, K, random_state=0)
        assert fusion.groups == {}
        assert "group" not in fusion.summary().split("typical")[1]
        assert summarize(fusion)["results"][0]["bases"].get("group") is None

    def test_explain_says_who_counts_as_one(self, fusion):
        found = fusion.explain(0)
        assert "'r0.5', 'r1' and 'r2' count as one." in found.sentences
        shares = [np.array(said.shares) for said in found.said]
        assert_allclose(found.support, (np.mean(shares[:3], axis=0) + shares[3] + shares[4]) / 3)

    def test_a_saved_result_keeps_them(self, fusion, tmp_path):
        fusion.save(tmp_path / "x.consilience")
        again = consilience.load(tmp_path / "x.consilience")
        assert again.groups == fusion.groups
        assert_array_equal(again.confidence, fusion.confidence)

    def test_an_update_keeps_them(self, resolutions):
        frame = pd.DataFrame(resolutions[1], index=[f"cell {i}" for i in range(600)])
        fusion = fuse(frame[:500], K, groups=GROUPS, random_state=0)
        other = frame[500:].assign(nurse=0)
        assert fusion.update(other).groups == fusion.groups

    def test_the_call_is_printed_with_them(self, fusion):
        assert "groups={'leiden': ['r0.5', 'r1', 'r2']}" in call_of(fusion)

    def test_views_beside_labels_take_none(self, resolutions):
        with pytest.raises(ValueError, match="groups are of base clusterings that are merged alone"):
            fuse(resolutions[1], K, views=[np.ones((600, 2))], groups=GROUPS)

    def test_parts_are_fitted_with_groups(self, fusion, resolutions):
        left = {one.source: one.ari for one in fusion.stability(n_resamples=0).left_out}
        table = {name: column for name, column in resolutions[1].items() if name != "r2"}
        expected = fuse(table, K, groups={"leiden": ["r0.5", "r1"]}, random_state=0)
        ari = adjusted_rand_score(fusion.labels, expected.labels)
        assert left["r2"] == pytest.approx(ari, abs=1e-9)

    def test_compare_leaves_out_those_that_learn_weights(self, resolutions):
        found = compare(resolutions[1], K, groups=GROUPS, n_resamples=0, random_state=0)
        assert {"PCE", "SPCE"}.isdisjoint(row.method for row in found.rows)
        assert not any(row.error for row in found.rows)

    def test_base_table_of_a_group_that_says_nothing(self):
        table = Partitions.of({"a": [0] * 4, "b": [0, 0, 1, 1], "c": [0, 1, 0, 1]}).grouped({"g": ["a", "b"]})
        assert base_table(table, [0, 0, 1, 1]).effective_number == pytest.approx(2.0, abs=1.0)


class TestShell:
    @pytest.fixture
    def file(self, resolutions, tmp_path):
        path = tmp_path / "cells.csv"
        pd.DataFrame(resolutions[1]).rename_axis("cell").reset_index().to_csv(path, index=False)
        return path

    def test_group(self, file, resolutions, capsys):
        command = ["fuse", str(file), "--id", "cell", "-k", "4", "--json", "--group", "leiden=r0.5,r1,r2"]
        assert run(command) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["results"][0]["bases"]["group"] == ["leiden"] * 3 + [None] * 2
        expected = fuse(resolutions[1], K, groups=GROUPS, random_state=0)
        assert told["results"][0]["confidence"] == pytest.approx(expected.headline.confidence)

    def test_compare(self, file, capsys):
        command = ["compare", str(file), "--id", "cell", "-k", "4", "--resamples", "0", "--json"]
        assert run([*command, "--group", "leiden=r0.5,r1,r2"]) == 0
        assert "PCE" not in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("group", "words"),
        [
            (["leiden"], "--group 'leiden' is no name and columns."),
            (["leiden=r1,"], "is no name and columns."),
            (["a=r1", "a=r2"], "--group names 'a' twice."),
            (["a=r1,r9"], "unknown base clustering 'r9' in group 'a'"),
        ],
    )
    def test_errors(self, file, capsys, group, words):
        options = [part for one in group for part in ("--group", one)]
        assert run(["fuse", str(file), "--id", "cell", "-k", "4", *options]) == 2 - ("unknown" in words)
        said = capsys.readouterr().err
        assert words in said
        assert "Traceback" not in said
