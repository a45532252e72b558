"""Clusters that keep their numbers from one result to the next, and what is told of the change."""

from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience import fuse, fuse_views, load
from consilience.evidence.partitions import Partitions
from consilience.results.following import follow, read_earlier
from tests.planted import planted


def table(n, ids=None):
    return Partitions.of(np.zeros((n, 1), dtype=int), index=ids)


@pytest.mark.parametrize("seed", range(8))
def test_as_many_as_possible_keep_their_number(seed):
    rng = np.random.default_rng(seed)
    before = rng.integers(0, 4, 60)
    now = np.where(rng.random(60) < 0.4, rng.integers(0, 4, 60), before)
    now = np.roll(np.arange(4), seed)[now]
    found, changes = follow(now, table(60), read_earlier(before))
    kept = max(sum(np.array(order)[now] == before) for order in permutations(range(4)))
    assert (found == before).sum() == kept == 60 - changes.n_moved
    # The same clusters, only under other numbers.
    assert len({*zip(now.tolist(), found.tolist(), strict=True)}) == len(np.unique(now))


def test_what_stayed_split_merged_appeared_and_vanished():
    before = np.repeat([0, 1, 2, 3], [20, 10, 10, 8])
    now = np.repeat([0, 1, 2, 2, 3], [11, 9, 10, 10, 8])  # 0 is split, 1 and 2 are merged
    found, changes = follow(now, table(48), read_earlier(before))
    assert_array_equal(found, np.repeat([0, 4, 1, 3], [11, 9, 20, 8]))
    assert changes.split == {0: (0, 4)}
    assert changes.merged == {1: (1, 2)}
    assert (changes.stayed, changes.appeared, changes.vanished) == ((0, 1, 3), (4,), (2,))
    assert changes.flows[0] == (0, 0, 11)
    assert sum(flow.n_instances for flow in changes.flows) == changes.n_common == 48
    assert "Cluster 0 was split into 0 and 4." in changes.sentences
    assert "Clusters 1 and 2 were merged into 1." in changes.sentences
    assert "All clusters stayed." in follow(before, table(48), read_earlier(before))[1].sentences


def test_instances_are_known_again_by_id():
    march = {"ann": 5, "bob": 5, "cleo": 7, "dan": 7, "old": 5}
    ids = ["dan", "cleo", "new", "bob", "ann"]
    now = np.array([0, 0, 0, 1, 1])
    for like in (
        march,
        pd.Series(march),
        pd.DataFrame({"customer": list(march), "label": march.values(), "confidence": 1.0}),
        pl.DataFrame({"customer": list(march), "label": list(march.values())}),
        pl.DataFrame({"customer": list(march), "group": list(march.values())}),
        pd.DataFrame({"segment": march.values(), "customer": list(march), "churn": "no"}),
        pd.DataFrame({"customer": list(march), "segment": "x", "cluster": march.values(), "churn": "no"}),
    ):
        found, changes = follow(now, table(5, ids), read_earlier(like, "customer"))
        assert_array_equal(found, [7, 7, 7, 5, 5])
        assert (changes.n_common, changes.n_new, changes.n_gone) == (4, 1, 1)


def test_names_of_earlier_clusters_are_kept():
    march = pd.Series({"ann": "gold", "bob": "basic", "cleo": "basic", "dan": None})
    found, changes = follow(np.array([0, 1, 1, 1]), table(4, list(march.index)), read_earlier(march))
    assert_array_equal(found, [1, 0, 0, 0])
    assert changes.names == {0: "basic", 1: "gold"}
    labels = pd.DataFrame([[0, 1], [1, 0], [1, 0], [1, 0], [2, 2]], index=[*march.index, "eve"])
    fusion = fuse(labels, 3, like=march, random_state=0)
    assert dict(zip(fusion.index, np.array(fusion.names)[fusion.labels], strict=True)) == {
        "ann": "gold",
        "bob": "basic",
        "cleo": "basic",
        "dan": "basic",
        "eve": "2",
    }
    again = fuse(labels, 3, like=fusion, random_state=0)
    assert again.names == fusion.names


def test_what_cannot_be_followed_is_said():
    for like, given, message in [
        ([0, 1], table(3), "the earlier result has 2 instances and the table 3"),
        ({"a": 1}, table(1), "the table has no ids, but the other one has"),
        ([0], table(1, ["a"]), "the earlier result has no ids"),
        ({"b": 1}, table(1, ["a"]), "no instance of the table is in the earlier result: ids begin with 'a'"),
    ]:
        with pytest.raises(ValueError, match=message):
            follow(np.zeros(given.n_rows, dtype=int), given, read_earlier(like))
    for columns, listed in [("ab", "it has 'a', 'b' beside the ids"), ("", "it has nothing but ids")]:
        frame = pd.DataFrame({"customer": ["ann"], **{name: ["no"] for name in columns}})
        with pytest.raises(ValueError, match=listed):
            read_earlier(frame, "customer")
    with pytest.raises(TypeError, match="cannot follow clusters of int"):
        read_earlier(3)


@pytest.fixture(scope="module")
def months():
    _, base = planted(300, 6, 4, noise=0.2, missing=0.2, seed=5)
    ids = [f"c{i}" for i in range(300)]
    march = fuse(pd.DataFrame(base[:250], index=ids[:250]), 4, random_state=0)
    april = pd.DataFrame(base[50:], index=ids[50:]).sample(frac=1.0, random_state=1)
    return march, april


def test_fuse_keeps_the_numbers_of_an_earlier_result(months, tmp_path):
    march, april = months
    free, kept = fuse(april, 4, random_state=0), fuse(april, 4, like=march, random_state=0)
    before = dict(zip(march.index, march.labels, strict=True))
    same = [label == before[i] for i, label in zip(kept.index, kept.labels, strict=True) if i in before]
    assert np.mean(same) > 0.9
    assert kept.changes.n_common == 200
    assert_allclose(kept.confidence, free.confidence)
    assert kept.changes.sentences[0] in kept.summary()
    assert_array_equal(kept.predict(april), kept.labels)
    kept.save(tmp_path / "april.consilience")
    assert load(tmp_path / "april.consilience").changes.sentences == kept.changes.sentences


def test_numbers_may_have_gaps(months):
    march, april = months
    fewer = fuse(april, 3, like=march, random_state=0)
    assert fewer.n_clusters == 3
    assert len(fewer.changes.vanished) == 1
    assert fewer.n_numbers == fewer.labels.max() + 1
    gone = fewer.changes.vanished[0]
    assert f"\n{gone:7d} " not in fewer.summary()
    assert f"Cluster {gone} is gone." in fewer.summary()
    assert set(fewer.predict(april)) == set(fewer.labels)


def test_views_follow_too():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], 20)
    views = [rng.normal(8 * rng.normal(size=(3, 3))[kind]) for _ in range(2)]
    numbers = np.array([7, 3, 5])
    fusion = fuse_views(views, 3, random_state=0).like(numbers[kind])
    assert_array_equal(fusion.labels, numbers[kind])
    assert_array_equal(fusion.predict(views), fusion.labels)


def test_a_frame_of_results_has_its_ids_in_the_index():
    table = pd.DataFrame({"a": list("xxyyzz"), "b": list("ppqqrr")}, index=list("abcdef"))
    fusion = fuse(table, 3, random_state=0)
    again = fuse(table.iloc[::-1], 3, random_state=0, like=fusion.to_frame())
    assert again.labels[::-1].tolist() == fusion.labels.tolist()
    assert again.changes.n_common == 6


def test_an_id_that_repeats_in_the_earlier_result_is_refused():
    fusion = fuse({"a": {"ann": 0, "bob": 1}, "b": {"ann": 0, "bob": 1}}, 2, random_state=0)
    earlier = pd.DataFrame({"id": ["ann", "bob", "ann"], "label": [0, 1, 1]})
    with pytest.raises(ValueError, match=r"the id 'ann' occurs several times in the earlier result\. Hint: "):
        fusion.like(earlier)


def test_everybody_is_listed_with_the_cluster_before_and_now():
    march = {"ann": 5, "bob": 5, "cleo": 7, "dan": 7, "old": 5, "lost": None}
    frame = pl.DataFrame(
        {"id": ["dan", "cleo", "new", "bob", "ann"], "x": [0, 0, 0, 1, 0], "y": [0, 0, 0, 1, 0]}
    )
    fusion = fuse(frame, 2, index="id", like=march, random_state=0)
    listed = fusion.changes.to_frame()
    assert isinstance(listed, pl.DataFrame)  # of the kind that was given
    assert [tuple(row) for row in listed.rows()] == [
        ("dan", 7, 7, "stayed"),
        ("cleo", 7, 7, "stayed"),
        ("new", -1, 7, "new"),
        ("bob", 5, 5, "stayed"),
        ("ann", 5, 7, "moved"),
        ("old", 5, -1, "gone"),
    ]
    assert fusion.to_frame()["previous"].to_list() == fusion.previous.tolist() == [7, 7, -1, 5, 5]
    assert "previous" not in fuse(frame, 2, index="id", random_state=0).to_frame().columns


@pytest.mark.parametrize("seed", range(3))
def test_the_list_adds_up_to_the_counts(seed):
    """Whoever is counted is listed, and in whatever order the table comes."""
    rng = np.random.default_rng(seed)
    _, base = planted(300, 5, 4, noise=0.4, missing=0.2, seed=seed)
    ids = np.array([f"i{n}" for n in range(300)])
    earlier = fuse(pd.DataFrame(base[:200], index=ids[:200]).where(lambda t: t >= 0), 4, random_state=0)
    order = 60 + rng.permutation(240)
    later = pd.DataFrame(base[order][:, :3], index=ids[order]).where(lambda t: t >= 0).dropna(how="all")
    changes = fuse(later, 4, like=earlier, random_state=0).changes
    listed = changes.to_frame()
    n = listed["what"].value_counts().to_dict()
    assert n["moved"] == changes.n_moved
    assert (n["moved"] + n["stayed"], n["new"], n["gone"]) == (
        changes.n_common,
        changes.n_new,
        changes.n_gone,
    )
    for before, now, count in changes.flows:
        assert ((listed["before"] == before) & (listed["now"] == now)).sum() == count


def test_who_moved_survives_saving_and_ids_of_other_types(tmp_path):
    fusion = fuse([["a", "x"], ["a", "x"], ["b", "y"]], 2, index=[1, 2, 3], random_state=0)
    followed = fusion.like({"1": "old", "2": "new", "3": "new", "4": "old"})
    followed.save(tmp_path / "one")
    again = load(tmp_path / "one").changes
    assert again.columns()["id"].tolist() == ["1", "2", "3", "4"]
    assert again.columns()["before_name"].tolist() == ["old", "new", "new", "old"]
    assert again.as_dict().keys() == followed.changes.as_dict().keys()
    assert "moves" not in again.as_dict()
