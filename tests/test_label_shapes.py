"""Labels in other shapes than a table: long format, groups, memberships."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from consilience import Partitions, fuse

OPINIONS = [
    ("ann", "bank", "gold"),
    ("bob", "bank", "basic"),
    ("cleo", "shop", 7),
    ("ann", "shop", 3),
    ("bob", "shop", 7),
    ("cleo", "bank", None),
    ("ann", "bank", "gold"),  # said twice
]
WIDE = {"bank": {"ann": "gold", "bob": "basic", "cleo": None}, "shop": {"ann": 3, "bob": 7, "cleo": 7}}


def long_frame(rows=OPINIONS):
    return pd.DataFrame(rows, columns=["person", "who", "segment"])


def from_long(frame, **more):
    return Partitions.from_long(frame, "person", "who", "segment", **more)


def assert_same(found, expected):
    assert found.names == expected.names
    assert_array_equal(found.index, expected.index)
    assert_array_equal(found.codes, expected.codes)
    for here, there in zip(found.categories, expected.categories, strict=True):
        assert here.tolist() == there.tolist()


class TestLong:
    def test_is_the_table_that_it_spells_out(self):
        assert_same(from_long(long_frame()), Partitions.of(WIDE))

    @pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas])
    def test_every_kind_of_frame(self, kind):
        rows = [(who, source, str(label)) for who, source, label in OPINIONS if label is not None]
        frame = long_frame(rows)
        assert_same(from_long(kind(frame)), from_long(frame))

    def test_a_long_table_of_numbers_comes_back_as_it_was(self):
        rng = np.random.default_rng(0)
        wide = rng.integers(0, 5, (200, 4))
        wide[rng.random(wide.shape) < 0.3] = -1
        wide[:, 0] = np.where((wide < 0).all(axis=1), 0, wide[:, 0])
        wide[0] = 0  # so that sources occur in the order of the columns
        rows, columns = np.nonzero(wide >= 0)
        frame = pd.DataFrame({"instance": rows, "source": columns, "label": wide[rows, columns]})
        assert_same(Partitions.from_long(frame), Partitions.of(wide, index=np.arange(200)))
        shuffled = Partitions.from_long(frame.sample(frac=1, random_state=0))
        order = np.argsort(shuffled.index)
        names = [shuffled.names.index(str(j)) for j in range(4)]
        assert_array_equal(shuffled.codes[order][:, names], Partitions.of(wide).codes)

    def test_ids_and_kind_of_frame_are_kept(self):
        frame = fuse(from_long(long_frame()), 2, random_state=0).to_frame()
        assert frame.index.tolist() == ["ann", "bob", "cleo"]
        assert frame.index.name == "person"
        text = [(who, source, str(label)) for who, source, label in OPINIONS if label is not None]
        frame = fuse(from_long(pl.from_pandas(long_frame(text))), 2, random_state=0).to_frame()
        assert frame["person"].to_list() == ["ann", "bob", "cleo"]

    def test_two_labels_of_one_source_name_instance_and_source(self):
        rows = [*OPINIONS, ("bob", "shop", 3)]
        with pytest.raises(
            ValueError, match=r"source 'shop' gives instance 'bob' two labels: 7 and 3 \(row 4\)\. Hint: keep"
        ):
            from_long(long_frame(rows))

    def test_noise_said_twice_is_one_cluster_of_its_own(self):
        rows = [("a", "x", -1), ("a", "x", -1), ("b", "x", -1), ("c", "x", 0), ("d", "x", 0)]
        found = from_long(long_frame(rows), negative="noise")
        assert found.codes[:, 0].tolist() == [1, 2, 0, 0]
        with pytest.raises(ValueError, match=r"no base clustering saw row 0 \(id 'a'\) and 1 other"):
            from_long(long_frame(rows))
        assert from_long(long_frame(rows), unobserved="keep").n_rows == 4

    def test_what_is_wrong_is_named(self):
        with pytest.raises(ValueError, match=r"no column 'persn'\. Hint: did you mean 'person'"):
            Partitions.from_long(long_frame(), "persn", "who", "segment")
        with pytest.raises(ValueError, match=r"column 'who' is empty in row 1\. Hint"):
            from_long(long_frame([("a", "x", 1), ("b", None, 1)]))
        with pytest.raises(ValueError, match=r"two base clusterings are named '1'"):
            from_long(long_frame([("a", 1, 1), ("b", "1", 1)]))
        with pytest.raises(TypeError, match=r"must be a frame, got list\. Hint"):
            from_long(OPINIONS)
        with pytest.raises(TypeError, match=r"lazy frame\. Hint: frame.collect"):
            from_long(pl.LazyFrame({"person": [1], "who": [1], "segment": [1]}))
        with pytest.raises(ValueError, match=r"two columns have one name .*'who' 2 times.* Hint"):
            from_long(long_frame().set_axis(["person", "who", "who"], axis=1))
        with pytest.raises(ValueError, match=r"no rows\. Hint"):
            from_long(long_frame([]))
        with pytest.raises(ValueError, match=r"'x' has the value 0.5 in row 1 \(id 'b'\)"):
            from_long(long_frame([("a", "x", 1.0), ("b", "x", 0.5)]))


class TestGroups:
    def test_is_the_table_that_it_spells_out(self):
        wide = {
            "first": {"ann": 0, "bob": 0, "cleo": 1},
            "second": {"bob": "red", "dan": "blue", "cleo": "blue"},
        }
        runs = {"first": [["ann", "bob"], ["cleo"]], "second": {"red": ["bob"], "blue": ["dan", "cleo"]}}
        found, expected = Partitions.from_groups(runs), Partitions.of(wide)
        order = [found.index.tolist().index(name) for name in expected.index]
        assert_same(found.take(order), expected)
        assert set(fuse(found, 2, random_state=0).index) == {"ann", "bob", "cleo", "dan"}

    @pytest.mark.parametrize("kind", [set, frozenset, tuple, np.array, pd.Index, iter])
    def test_any_collection_is_a_group(self, kind):
        found = Partitions.from_groups(
            {"a": [kind([1, 2]), kind([3])], "b": (kind(g) for g in ([3, 1], [2]))}
        )
        assert found.index.tolist() == [1, 2, 3]
        assert found.codes.tolist() == [[0, 0], [0, 1], [1, 0]]

    @pytest.mark.parametrize("turn", [iter, reversed])
    def test_order_of_a_set_does_not_matter(self, turn):
        """Text in sets comes in another order in every process."""

        class Turned(frozenset):
            def __iter__(self):
                return turn(sorted(frozenset.__iter__(self), key=str))

        groups = [Turned(["eve", "ann", "dan"]), Turned([(1, "x"), "bob"])]
        found = Partitions.from_groups({"a": groups})
        assert found.index.tolist() == ["ann", "dan", "eve", "bob", (1, "x")]

    def test_an_id_in_two_groups_is_named(self):
        with pytest.raises(ValueError, match=r"instance 'bob' is in two groups of 'run': 0 and 2\. Hint"):
            Partitions.from_groups({"run": [["ann", "bob"], ["cleo"], ["bob"]]})
        assert Partitions.from_groups({"run": [["ann", "ann"], [], ["bob"]]}).codes[:, 0].tolist() == [0, 1]

    def test_noise(self):
        runs = {"dbscan": {0: ["a", "b"], -1: ["c", "d"]}, "other": [["a", "b", "c", "d"]]}
        assert Partitions.from_groups(runs).codes[:, 0].tolist() == [0, 0, -1, -1]
        assert Partitions.from_groups(runs, negative="noise").codes[:, 0].tolist() == [0, 0, 1, 2]

    def test_what_is_wrong_is_named(self):
        with pytest.raises(TypeError, match=r"dict of base clusterings, got list\. Hint"):
            Partitions.from_groups([["ann"]])
        with pytest.raises(TypeError, match=r"'run' is 3, not a list of groups\. Hint"):
            Partitions.from_groups({"run": 3})
        with pytest.raises(TypeError, match=r"group 'ann' of 'run' is 'gold'.* Hint: .*use Partitions\.of"):
            Partitions.from_groups({"run": {"ann": "gold"}})
        with pytest.raises(TypeError, match=r"group 0 of 'run' holds something that cannot be an id .* Hint"):
            Partitions.from_groups({"run": [[["ann"], ["bob"]]]})
        with pytest.raises(ValueError, match=r"no group has a member\. Hint"):
            Partitions.from_groups({"run": [[]]})
        with pytest.raises(ValueError, match=r"row 1 of the groups has no id\. Hint"):
            Partitions.from_groups({"run": [["ann"], [None]]})
        with pytest.raises(ValueError, match=r"no base clusterings\. Hint"):
            Partitions.from_groups({})


class TestMemberships:
    HOT = np.eye(3)[[0, 2, 1, 1]]

    @pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist, sp.csr_array, lambda x: x.astype(bool)])
    def test_one_hot_is_read_without_a_word(self, kind):
        found = Partitions.from_memberships({"a": kind(self.HOT)})
        assert found.codes[:, 0].tolist() == [0, 2, 1, 1]
        assert found.index is None

    def test_one_hot_of_pandas_is_undone(self):
        labels = pd.Series(["x", "y", "x", None], index=["ann", "bob", "cleo", "dan"])
        others = pd.Series([1, 1, 2, 2], index=["dan", "cleo", "bob", "eve"])
        tables = {"a": pd.get_dummies(labels), "b": pd.get_dummies(others)}
        found = Partitions.from_memberships(tables)
        assert_same(found, Partitions.of({"a": labels, "b": others}))
        assert fuse(found, 2, random_state=0).to_frame().index.tolist() == found.index.tolist()

    def test_polars_is_joined_by_its_column_of_ids(self):
        first = pl.DataFrame({"who": ["ann", "bob"], "x": [1, 0], "y": [0, 1]})
        second = pl.DataFrame({"who": ["bob", "cleo"], "p": [1.0, None], "q": [0.0, None]})
        found = Partitions.from_memberships({"a": first, "b": second}, index="who", unobserved="keep")
        assert found.index.tolist() == ["ann", "bob", "cleo"]
        assert found.codes.tolist() == [[0, -1], [1, 0], [-1, -1]]

    def test_soft_memberships_say_how_unsure_they_were(self):
        soft = [[0.8, 0.2, 0.0], [0.5, 0.45, 0.05], [0.2, 0.2, 0.6], [np.nan] * 3, [0.0] * 3]
        with pytest.warns(
            UserWarning,
            match=r"of 1 base clustering are not .* 'gmm' has its largest at 0\.63 on average, 33\.3% near",
        ) as caught:
            found = Partitions.from_memberships({"gmm": soft, "hot": np.eye(2)[[0, 1, 1, 0, 0]]})
        assert len(caught) == 1
        assert "'hot'" not in str(caught[0].message)
        assert caught[0].filename == __file__
        assert found.codes[:, 0].tolist() == [0, 0, 1, -1, -1]

    def test_scale_of_a_row_does_not_matter(self):
        with pytest.warns(UserWarning, match=r"largest at 0\.75 on average, 0\.0% near ties"):
            Partitions.from_memberships({"a": [[3, 1], [0.5, 1.5]]})

    def test_ids_may_be_given(self):
        found = Partitions.from_memberships({"a": self.HOT, "b": self.HOT}, index=list("wxyz"))
        assert found.index.tolist() == list("wxyz")

    def test_what_is_wrong_is_named(self):
        with pytest.raises(TypeError, match=r"dict of base clusterings, got ndarray\. Hint"):
            Partitions.from_memberships(self.HOT)
        with pytest.raises(ValueError, match=r"'a' have -0\.5 for cluster 1 in row 1\. Hint"):
            Partitions.from_memberships({"a": [[1, 0], [1.5, -0.5]]})
        with pytest.raises(ValueError, match=r"'a' have nan for cluster 0 in row 1\. Hint: .*whole row"):
            Partitions.from_memberships({"a": [[1, 0], [np.nan, 1]]})
        with pytest.raises(ValueError, match=r"'a' have the shape \(2,\)\. Hint"):
            Partitions.from_memberships({"a": [1, 0]})
        with pytest.raises(TypeError, match=r"'a' hold something that is no number .* Hint: .*index="):
            Partitions.from_memberships({"a": pl.DataFrame({"who": ["ann"], "x": [1]})})
        with pytest.raises(ValueError, match=r"'a' have no column 'whom'\. Hint: did you mean 'who'"):
            Partitions.from_memberships({"a": pl.DataFrame({"who": ["ann"], "x": [1]})}, index="whom")
        with pytest.raises(ValueError, match=r"the id 'ann' occurs twice in memberships 'a'"):
            Partitions.from_memberships({"a": pd.DataFrame({"x": [1, 1]}, index=["ann", "ann"])})
        with pytest.raises(ValueError, match=r"'b' has 3 labels, 'a' has 4\. Hint"):
            Partitions.from_memberships({"a": self.HOT, "b": self.HOT[:3]})
