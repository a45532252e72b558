"""Names of clusters: after a base clustering, given, and where they show."""

import json
import pickle
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from consilience import Partitions, fuse, fuse_views
from consilience.results import Fusion
from tests.planted import planted


def fusion_of(labels, **base):
    return Fusion(np.array(labels), Partitions.of(base, unobserved="keep"), "none", "", None)


TEAMS = pd.DataFrame(
    {
        "team_a": ["gold", "gold", "basic", "basic", None, "basic"],
        "team_b": ["x", "x", "y", None, "y", "y"],
    },
    index=pd.Index(list("abcdef"), name="customer"),
)


@pytest.fixture(scope="module")
def fusion():
    return fuse(TEAMS, 2, method="DAL")


class TestNamedAfter:
    def test_clusters_have_the_labels_they_overlap_most(self, fusion):
        assert fusion.named_after("team_a").names == ("basic", "gold")
        assert fusion.named_after("team_b").names == ("y", "x")
        assert fuse(TEAMS, 2, method="DAL", named_after="team_a").names == ("basic", "gold")

    def test_numbers_are_the_names_of_the_others(self, fusion):
        assert fusion.names == ("0", "1")
        assert fusion.cluster_names is None

    @pytest.mark.parametrize("seed", range(5))
    def test_as_many_instances_as_possible_have_the_name_of_their_label(self, seed):
        truth, base = planted(40, 1, 4, noise=0.6, missing=0.2, seed=seed)
        named = fusion_of(truth, team=base[:, 0]).named_after("team")
        names = np.array(named.names)
        right = np.sum(names[truth] == base[:, 0].astype(str))
        every = [np.sum(np.array(order)[truth] == base[:, 0]) for order in permutations(range(4))]
        assert right == max(every)

    def test_clusters_that_are_left_over_keep_their_number(self):
        assert fusion_of([0, 0, 0, 1, 2], team=["a", "a", "b", "b", None]).named_after("team").names == (
            "a",
            "b",
            "2",
        )
        assert fusion_of([0, 0, 1, 1], team=["a", "a", "a", "a"]).named_after("team").names == ("a", "1")

    def test_a_label_that_looks_like_a_number_is_not_given_twice(self):
        assert fusion_of([0, 0, 1], team=[1, 1, 1]).named_after("team").names == ("1", "cluster 1")

    def test_noise_names_no_cluster(self):
        base = Partitions.of({"team": [-1, -1, 3, 3]}, negative="noise")
        assert Fusion(np.array([0, 0, 1, 1]), base, "none", "", None).named_after("team").names == ("0", "3")

    def test_unassigned_instances_do_not_matter(self):
        assert fusion_of([0, -1, -1, 1], team=["a", "b", "b", "b"]).named_after("team").names == ("a", "b")

    def test_an_unknown_base_clustering_is_named_before_anything_is_fitted(self, fusion):
        message = r"named_after='team_c' is not a base clustering with labels. Hint: did you mean 'team_b'\?"
        with pytest.raises(ValueError, match=message):
            fusion.named_after("team_c")
        with pytest.raises(ValueError, match=message):
            fuse(TEAMS, 2, method=object, named_after="team_c")

    def test_counted_rows_are_repeated_rows(self):
        base = np.repeat(planted(30, 4, 3, noise=0.2, missing=0.2, seed=0)[1], 3, axis=0)
        table = Partitions.of(base)
        whole, counted = (fuse(rows, 3, method="DAL", named_after="2") for rows in (table, table.distinct))
        assert whole.names == counted.names
        assert whole.summary() == counted.summary()


class TestRename:
    def test_all_or_some(self, fusion):
        assert fusion.rename(["few", "many"]).names == ("few", "many")
        assert fusion.rename({1: "loyal"}).names == ("0", "loyal")
        assert fusion.named_after("team_a").rename({np.int64(1): "loyal"}).names == ("basic", "loyal")
        assert fusion.names == ("0", "1")  # the first is as it was

    def test_keeps_what_was_computed(self, fusion):
        before = fusion.diagnostics
        assert fusion.rename({1: "loyal"}).diagnostics is before

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (["a"], "1 name for 2 clusters. Hint"),
            (["a", "a"], "clusters 0 and 1 are both named 'a'. Hint"),
            ({0: "1"}, "clusters 0 and 1 are both named '1'. Hint"),
            ({2: "a"}, "there is no cluster 2. Hint: clusters are numbered 0 to 1"),
            ({"0": "a"}, "there is no cluster '0'. Hint"),
            (["a", " "], "the name of cluster 1 is ' '. Hint"),
            (["a", 3], "the name of cluster 1 is 3. Hint"),
            ("ab", "names must be a list or a dict. Got 'ab'. Hint"),
        ],
    )
    def test_what_is_no_name_is_said(self, fusion, names, message):
        with pytest.raises((ValueError, TypeError), match=message):
            fusion.rename(names)


class TestWhereNamesShow:
    def test_in_the_frame_where_there_are_any(self, fusion):
        assert "name" not in fusion.to_frame()
        frame = fusion.named_after("team_a").to_frame()
        assert frame.columns[:2].tolist() == ["label", "name"]
        assert frame["name"].tolist() == ["gold", "gold", "basic", "basic", "basic", "basic"]
        polars = fuse(pl.from_pandas(TEAMS.reset_index()), 2, index="customer", method="DAL").rename(
            ["a", "b"]
        )
        assert polars.to_frame()["name"].to_list() == ["b", "b", "a", "a", "a", "a"]

    def test_an_unassigned_instance_has_none(self):
        base = [[0, 0], [0, 0], [1, 1], [1, 1], [-1, -1]]
        fusion = fuse(base, 2, unobserved="noise", method="DAL").rename(["a", "b"])
        assert fusion.to_frame()["name"].isna().tolist() == [False] * 4 + [True]

    def test_in_the_summary(self, fusion):
        assert "cluster  typical labels\n      0  team_a: basic 100% (x1.7), team_b: y 100% (x1.7)" in (
            fusion.summary()
        )
        assert "cluster  name   typical labels\n      0  basic  team_a: basic" in (
            fusion.named_after("team_a").summary()
        )

    def test_base_clusterings_that_were_made_say_nothing_in_words(self):
        rng = np.random.default_rng(0)
        views = [np.repeat([[0.0], [9.0]], 15, axis=0) + rng.normal(size=(30, 3)) for _ in range(2)]
        fusion = fuse_views(views, 2, clusterer="kmeans", n_partitions=3, random_state=0)
        assert "typical" not in fusion.summary()
        assert "cluster  name\n      0  low" in fusion.rename(["low", "high"]).summary()

    def test_survive_a_pickle(self, fusion):
        assert pickle.loads(pickle.dumps(fusion.rename(["a", "b"]))).names == ("a", "b")
        assert json.dumps(fusion.names)
