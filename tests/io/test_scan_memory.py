"""Tables in memory and dask collections, scanned as files are."""

import numpy as np
import pandas as pd
import pytest

from consilience import Partitions, fuse, scan

FRAME = pd.DataFrame(
    {"who": list("abcdef"), "x": [0, 0, 0, 1, 1, 1], "y": ["p", "p", "q", "q", "q", None]},
)


def test_a_frame_is_read_as_it_is_without_scan():
    found = Partitions.of(scan(FRAME, id="who"))
    expected = Partitions.of(FRAME, index="who")
    assert found.index.tolist() == expected.index.tolist()
    np.testing.assert_array_equal(found.codes, expected.codes)
    assert scan(FRAME, id="who", columns=["y"]).columns == ("y",)


def test_a_dask_collection_is_read_partition_by_partition():
    dd = pytest.importorskip("dask.dataframe")
    da = pytest.importorskip("dask.array")
    found = Partitions.of(scan(dd.from_pandas(FRAME, npartitions=3), id="who"))
    expected = Partitions.of(FRAME, index="who")
    assert [str(each) for each in found.index] == expected.index.tolist()
    assert found.names == expected.names
    np.testing.assert_array_equal(found.codes, expected.codes)
    table = np.array([[0, 1], [0, -1], [1, 1], [1, 0]])
    np.testing.assert_array_equal(
        Partitions.of(scan(da.from_array(table, chunks=(3, 1)).rechunk({1: -1}))).codes,
        Partitions.of(table).codes,
    )
    twice = dd.from_pandas(FRAME.assign(who=list("abcabc")), npartitions=2)
    with pytest.raises(ValueError, match="the id 'a' occurs 2 times"):
        Partitions.of(scan(twice, id="who"))


def test_opinions_in_a_frame_are_a_table():
    long = pd.DataFrame({"i": ["a", "a", "b"], "s": ["u", "v", "u"], "l": [1, 2, 3]})
    found = Partitions.of(scan(long, long=("i", "s", "l")))
    assert found.names == ("u", "v")
    assert found.index.tolist() == ["a", "b"]


def test_ids_that_nearly_match_are_said_and_matched_where_that_is_asked_for():
    banks = {"a": {"Ann ": 1, "bob": 0, "007": 1}, "b": {"ann": 1, "bob": 1, "7": 0}}
    with pytest.warns(
        UserWarning, match=r"4 ids differ only in spaces, case, leading zeros .* 'Ann ' and 'ann'"
    ):
        assert Partitions.of(banks).n_instances == 5
    found = Partitions.of(scan(banks, match_ids="trim,case,zeros"))
    assert found.index.tolist() == ["ann", "bob", "7"]


def test_what_is_about_files_is_refused_for_tables_in_memory():
    with pytest.raises(ValueError, match=r"header is about files, and a table in memory was given\. Hint"):
        scan(FRAME, header=3)


def test_fuse_takes_a_scan():
    expected = fuse(FRAME, 2, index="who", random_state=0)
    assert fuse(scan(FRAME, id="who"), 2, random_state=0).labels.tolist() == expected.labels.tolist()
