"""Levels: nested, the result itself at its own number of clusters, with splits that sources support."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from consilience import fuse, fuse_views
from consilience.cli.main import run
from consilience.datasets import load_digits
from consilience.generate import base_partitions
from tests.test_drift import world


def hierarchy(seed, n=900, err=0.1, missing=0.2):
    """Six clusters in three pairs; some sources see the pairs only."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 6, n)
    maps = [
        np.arange(6),
        np.arange(6) // 2,
        np.arange(6),
        rng.permutation(6),
        np.arange(6) // 2,
        np.arange(6),
    ]
    said = np.where(rng.random((n, 6)) < err, rng.integers(0, 6, (n, 6)), truth[:, None])
    table = np.stack([maps[j][said[:, j]] for j in range(6)], axis=1)
    gone = rng.random(table.shape) < missing
    gone[gone.all(axis=1), 0] = False
    frame = pd.DataFrame(np.where(gone, -1, table), columns=[f"s{j}" for j in range(6)])
    return truth, frame.rename(index=lambda i: f"i{i}")


@pytest.fixture(scope="module")
def found():
    truth, table = hierarchy(0)
    fusion = fuse(table, 6, random_state=0)
    return truth, fusion, fusion.levels(k_max=9)


def nested(fine, coarse):
    return all(len(np.unique(coarse[fine == c])) == 1 for c in np.unique(fine))


@pytest.mark.parametrize("method", ["DAL", "auto", "MixtureConsensus"])
@pytest.mark.parametrize("seed", [0, 1])
def test_cuts_are_nested_and_the_result_is_one_of_them(method, seed):
    table = world(seed, 300)
    fusion = fuse(table, 5, method=method, random_state=0)
    levels = fusion.levels(k_max=8)
    assert_array_equal(levels.cut(5), fusion.labels)
    for k in range(1, levels.k_max + 1):
        assert len(np.unique(levels.cut(k))) == k
        if k > 1:
            assert nested(levels.cut(k), levels.cut(k - 1))
            # Only the part that is cut off has another number.
            changed = levels.cut(k) != levels.cut(k - 1)
            assert len(np.unique(levels.cut(k)[changed])) == len(np.unique(levels.cut(k - 1)[changed])) == 1
    assert [split.k for split in levels.splits] == list(range(2, levels.k_max + 1))


def test_coarser_levels_find_what_coarse_sources_say(found):
    truth, _, levels = found
    assert adjusted_rand_score(truth // 2, levels.cut(3)) > 0.9


def test_true_splits_are_supported_and_arbitrary_ones_are_not(found):
    _, _, levels = found
    assert all(split.supported for split in levels.splits if split.k <= 6)
    assert not any(split.supported for split in levels.splits if split.k > 6)
    first = levels.splits[3]  # 4 -> 5: one of the pairs
    assert not {"s1", "s4"} & set(first.sources)  # they see pairs only
    assert set(first.sources) <= {"s0", "s2", "s3", "s5"}
    for split in levels.splits:
        cut = levels.cut(split.k)
        assert split.sizes == tuple(int((cut == part).sum()) for part in split.parts)
        assert f"{split.k - 1} -> {split.k}: cluster {split.cluster}" in split.sentence


def test_names_and_order_change_nothing(found):
    _, _, levels = found
    table = hierarchy(0)[1]
    order = np.random.default_rng(0).permutation(len(table))
    other = fuse(table.iloc[order][["s3", "s5", "s0", "s2", "s4", "s1"]], 6, random_state=0).levels(k_max=8)
    for k in range(1, 9):
        assert adjusted_rand_score(levels.cut(k)[order], other.cut(k)) == 1
    for one, two in zip(levels.splits, other.splits, strict=False):
        assert one.sources == tuple(sorted(two.sources))
        assert_allclose(one.p, two.p, atol=1e-12)


def test_stop_is_the_sum_of_chances_up_the_levels(found):
    truth, fusion, levels = found
    stopped = levels.stop(0.1)
    chances = fusion.chances
    for i in range(0, 900, 37):
        level = 1
        for k in range(2, 7):  # the slow way
            home = levels.home(k)
            sums = {c: chances[i, home == c].sum() for c in set(home.tolist())}
            if max(sums.values()) >= 0.9:
                level = k
        assert stopped.level[i] == level
        assert_allclose(stopped.chance[i], chances[i, list(stopped.within[i])].sum())
    wrong = 0
    for k in range(2, 7):
        at, cut = stopped.level == k, levels.cut(k)
        homes = np.array([np.bincount(cut[truth == c]).argmax() for c in range(6)])
        wrong += (homes[truth[at]] != stopped.cluster[at]).sum()
    assert wrong / len(truth) <= 0.1
    assert stopped.promised
    assert (levels.stop(0.01).level <= stopped.level).all()
    between = next(i for i, pair in enumerate(stopped.within) if len(pair) == 2)
    a, b = stopped.within[between]
    assert stopped.told(between) == f"at least in {a} or {b}; undecided between them"


def test_no_promise_where_sources_repeat_each_other():
    x = load_digits().X[:400]
    runs = base_partitions(x, n_clusters=(8, 15), n_partitions=6, random_state=0)
    labels = np.where(np.random.default_rng(0).random(runs.shape) < 0.3, -1, runs)
    labels[0] = -1
    fusion = fuse(labels, 10, method="DAL", unobserved="noise", random_state=0)
    assert fusion.labels[0] == -1
    stopped = fusion.levels().stop(0.1)
    assert not stopped.promised
    assert "not promised" in stopped.sentences[1]
    assert (stopped.cluster[fusion.labels < 0] == -1).all()


def test_weights_links_gaps_and_unseen_instances():
    table = world(5, 200)
    fusion = fuse(table, 4, weights={"s0": 2.0}, must_link=[("i0", "i1")], random_state=0)
    fusion = fusion.like(pd.Series(dict.fromkeys(table.index[:20], 9)))
    levels = fusion.levels(k_max=6)
    assert_array_equal(levels.cut(4), fusion.labels)
    for k in range(2, levels.k_max + 1):
        assert nested(levels.cut(k), levels.cut(k - 1))
        assert levels.cut(k)[0] == levels.cut(k)[1]


def test_split_and_merge_one_cluster():
    table = world(6, 300)
    fusion = fuse(table, 3, random_state=0).rename({0: "big", 1: "mid", 2: "small"})
    halves = fusion.split("big")
    assert halves.n_clusters == 4
    assert nested(halves.labels, fusion.labels)
    assert_array_equal(halves.labels[fusion.labels != 0], fusion.labels[fusion.labels != 0])
    assert (halves.labels == 0).sum() >= (halves.labels == 3).sum()
    assert halves.names == ("big", "mid", "small", "3")
    assert halves.changes.split == {0: (0, 3)}
    again = halves.merge(0, 3)
    assert_array_equal(again.labels, fusion.labels)
    assert again.names[0] == "big + 3"
    assert "merged by hand" in again.reason
    assert_allclose(again.chances.sum(axis=1), 1)
    with pytest.raises(ValueError, match=r"there is no cluster 7\. Hint: there are big, mid, small\."):
        fusion.split(7)
    with pytest.raises(ValueError, match=r"merge needs two clusters"):
        fusion.merge(1, "mid")
    with pytest.raises(ValueError, match=r"cannot be split"):
        fuse([["a", "x"]] * 3 + [["b", "y"]] * 2, 2, random_state=0).split(0)


def test_errors(found):
    _, fusion, levels = found
    with pytest.raises(ValueError, match=r"no level of 99 clusters: they go from 1 to 9"):
        levels.cut(99)
    with pytest.raises(ValueError, match="error"):
        levels.stop(2)
    rng = np.random.default_rng(0)
    with pytest.raises(TypeError, match="levels needs labels"):
        fuse_views([rng.normal(size=(40, 3)), rng.normal(size=(40, 2))], 2, random_state=0).levels()
    frame = levels.to_frame([3, 6], error=0.1)
    assert list(frame.columns) == ["level 3", "level 6", "level", "cluster", "chance", "within"]
    assert frame["level 6"].tolist() == fusion.labels.tolist()


def test_the_command(found, tmp_path, monkeypatch, capfd):
    _, fusion, levels = found
    monkeypatch.chdir(tmp_path)
    fusion.save("six.consilience")
    assert run(["levels", "six.consilience"]) == 0
    assert capfd.readouterr().out.splitlines() == list(levels.sentences[:5])
    assert run(["levels", "six.consilience", "-k", "3,8", "--error", "0.1", "-o", "out.csv"]) == 0
    err = capfd.readouterr().err
    assert levels.sentences[6] in err
    assert "With at most 10% errors" in err
    with open("out.csv") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["level 8"]) for row in rows] == levels.cut(8).tolist()
    assert [int(row["cluster"]) for row in rows] == levels.stop(0.1).cluster.tolist()
    assert run(["levels", "six.consilience", "--json", "--report", "page.html", "-q"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert [split["k"] for split in told["splits"]] == [2, 3, 4, 5, 6]
    assert 'id="levels"' in Path("page.html").read_text()
    assert run(["levels", "six.consilience", "-k", "nine"]) == 2
