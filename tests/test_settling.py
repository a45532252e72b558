"""Instances for which another cluster is more likely: how many, why, and where they go when labels settle."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from consilience import fuse, fuse_views, load
from consilience.cli.main import run
from consilience.datasets import load_digits
from consilience.generate import base_partitions
from consilience.inference.settling import settle
from consilience.report import render, summarize
from tests.planted import planted


@pytest.fixture(scope="module")
def banks():
    truth, base = planted(800, 5, 4, noise=0.4, missing=0.3, seed=8)
    return truth, fuse(base, 4, method="DAL", random_state=0)


def repeating():
    """Runs of one program on the same features."""
    X = load_digits().X[:400]
    return base_partitions(X, 8, 10, random_state=0)


class TestSettle:
    def test_no_instance_has_a_likelier_cluster_afterwards(self, banks):
        _, fusion = banks
        assert fusion.evidence.dependence <= 0.1
        assert fusion.headline.n_likelier > 20
        found = fusion.settle()
        assert found.headline.n_likelier == 0
        assert_array_equal(found.chances.argmax(axis=1), found.labels)
        assert found.settled == np.count_nonzero(found.labels != fusion.labels)
        assert f"{found.settled} instances were moved to the most likely cluster." in found.summary()

    def test_it_is_nearer_to_the_truth_of_independent_sources(self, banks):
        truth, fusion = banks
        before, after = (np.zeros((4, 4)) for _ in range(2))
        np.add.at(before, (truth, fusion.labels), 1)
        np.add.at(after, (truth, fusion.settle().labels), 1)
        assert after.max(axis=1).sum() > before.max(axis=1).sum()

    def test_the_order_of_rows_and_columns_changes_nothing(self, banks):
        _, fusion = banks
        rng = np.random.default_rng(0)
        rows, columns = rng.permutation(800), rng.permutation(5)
        table = fusion.partitions.codes[rows][:, columns]
        moved = fuse(table, 4, method="DAL", random_state=0).settle()
        assert_array_equal(moved.labels, fusion.settle().labels[rows])

    def test_counted_rows_give_the_same(self, banks):
        _, fusion = banks
        whole = fusion.settle()
        counted = fusion.partitions.distinct
        few = settle(counted, fuse(counted, 4, method="DAL", random_state=0).labels)
        assert_array_equal(few.labels[fusion.partitions.inverse], whole.labels)
        assert few.n_moved == whole.settled

    def test_where_sources_repeat_each_other_nothing_moves(self):
        fusion = fuse(repeating(), 8, method="DAL", random_state=0)
        assert fusion.evidence.dependence > 0.1
        assert fusion.settle().settled == 0

    def test_no_cluster_is_lost(self):
        for seed in range(12):
            _, base = planted(60, 3, 5, noise=0.6, missing=0.3, seed=seed)
            fusion = fuse(base, 5, method="DAL", unobserved="noise", random_state=0)
            assert fusion.settle().n_clusters == fusion.n_clusters

    def test_unobserved_instances_stay(self):
        _, base = planted(300, 4, 3, noise=0.4, missing=0.3, seed=1)
        base[5] = -1
        fusion = fuse(base, 3, method="DAL", unobserved="noise", random_state=0)
        assert fusion.settle().labels[5] == -1

    def test_linked_instances_move_together(self, banks):
        base = banks[1].partitions.codes
        links = [(i, i + 1) for i in range(0, 200, 2)]
        found = fuse(base, 4, method="DAL", must_link=links, random_state=0).settle()
        assert all(found.labels[a] == found.labels[b] for a, b in links)

    def test_a_saved_result_remembers(self, banks, tmp_path):
        found = banks[1].settle()
        found.save(tmp_path / "banks.consilience")
        assert load(tmp_path / "banks.consilience").settled == found.settled

    def test_weights_and_views_are_refused(self, banks):
        weighed = fuse(banks[1].partitions.codes, 4, method="DAL", weights=[2, 1, 1, 1, 1], random_state=0)
        with pytest.raises(ValueError, match=r"weights were given\. Hint: "):
            weighed.settle()
        rng = np.random.default_rng(0)
        both = fuse(banks[1].partitions.codes, 4, views=[rng.normal(size=(800, 3))], random_state=0)
        with pytest.raises(TypeError, match="views put where they are"):
            both.settle()
        with pytest.raises(TypeError, match="needs labels"):
            fuse_views([rng.normal(size=(40, 3)), rng.normal(size=(40, 3))], 2, random_state=0).settle()


def test_the_shell_settles_before_clusters_are_followed_and_named(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    _, base = planted(300, 5, 4, noise=0.4, missing=0.0, seed=8)
    table = pd.DataFrame(np.array(list("wxyz"), dtype=object)[base], columns=list("abcde"))
    table.insert(0, "id", [f"i{n}" for n in range(300)])
    table.to_csv("banks.csv", index=False)
    first = fuse(table.set_index("id"), 4, method="DAL", random_state=0)
    first.save("march.consilience")
    asked = "fuse banks.csv --id id -k 4 -m DAL --settle --like march.consilience --name-after a -o out.csv"
    assert run(asked.split()) == 0
    found = first.settle().like(first).named_after("a")
    assert found.settled > 0
    written = pd.read_csv("out.csv")
    assert_array_equal(written["label"], found.labels)
    assert written["name"].tolist() == [found.names[c] for c in found.labels]
    assert found.headline.likelier in capfd.readouterr().err


class TestSaid:
    def test_how_many_is_what_the_chances_say(self, banks):
        for fusion in (banks[1], fuse(repeating(), 8, method="DAL", random_state=0)):
            own = fusion.chances[np.arange(len(fusion.labels)), fusion.labels]
            n = np.count_nonzero(fusion.chances.max(axis=1) > own + 1e-9)
            assert fusion.headline.n_likelier == n == np.count_nonzero(fusion.margin < 0.5 - 1e-9)

    def test_every_surface_says_it_and_why(self, banks):
        for fusion, why in (
            (banks[1], "they were grouped with instances that are like them"),
            (fuse(repeating(), 8, method="DAL", random_state=0), "the sources repeat each other"),
        ):
            told = fusion.headline.likelier
            assert f"For {fusion.headline.n_likelier} instance" in told
            assert f"another cluster is more likely: {why}" in told
            assert told in fusion.summary()
            assert told in fusion._repr_html_()
            assert told in render(summarize(fusion))
            assert summarize(fusion)["results"][0]["likelier"] == told

    def test_weights_are_the_reason_where_they_were_given(self, banks):
        base = banks[1].partitions.codes
        fusion = fuse(base, 4, method="DAL", weights=[4, 1, 1, 1, 1], random_state=0)
        assert "labels follow the weights that were given" in fusion.headline.likelier

    def test_nothing_is_said_where_there_is_none(self):
        assert fuse([[0, 0]] * 9 + [[1, 1]] * 9, 2, random_state=0).headline.likelier == ""


class TestExplain:
    @pytest.mark.parametrize("weights", [None, [4, 1, 1, 1, 1]])
    def test_no_sentence_contradicts_the_label(self, banks, weights):
        base = banks[1].partitions.codes[:300]
        fusion = fuse(base, 4, method="DAL", unobserved="noise", weights=weights, random_state=0)
        n_likelier = 0
        for row in range(300):
            found = fusion.explain(row)
            told = " ".join(found.sentences)
            assert all(turn.label != found.label for turn in found.turns)
            likelier = fusion.margin[row] < 0.5 - 1e-9 and fusion.labels[row] >= 0
            n_likelier += likelier
            assert (" likely; " in told) == likelier
            if likelier:
                assert f"cluster {fusion.chances[row].argmax()} is " in told
                assert "No single source could have changed that" not in told
            if weights is not None and base[row, 0] >= 0:
                assert "By the weights that were given, '0' counts 4." in told
        assert n_likelier > 3

    def test_settled_instances_have_no_such_sentence(self, banks):
        found = banks[1].settle()
        assert not any(" likely; " in " ".join(found.explain(row).sentences) for row in range(0, 800, 20))
