"""Updates: old instances by id, new ones, new sources; nothing moves where nothing is new."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from consilience import fuse, fuse_views, load
from consilience.cli.main import run
from consilience.core.tables import base_sums
from consilience.inference.adapting import adapt
from tests.test_drift import changed, world


def truth_of(seed, n=900, k=4):
    return np.random.default_rng(seed).integers(0, k, n)


@pytest.fixture(scope="module")
def march():
    return fuse(world(1).iloc[:600], 4, random_state=0)


@pytest.mark.parametrize("method", ["auto", "DAL", "MixtureConsensus", "PCE"])
def test_nothing_moves_where_nothing_is_new(method):
    table = world(2, 300)
    fusion = fuse(table, 4, method=method, random_state=0)
    for new in (table, table.iloc[:40], table.iloc[::-1][["s2", "s0"]]):
        found = fusion.update(new)
        assert_array_equal(found.labels, fusion.labels)
        assert found.updated.n_moved == found.updated.n_new == 0
    assert found.index.tolist() == fusion.index.tolist()


def test_new_instances_join_and_old_ones_stay(march):
    new = world(1).iloc[600:]
    found = march.update(new)
    assert found.index.tolist() == world(1).index.tolist()
    assert (found.labels[:600] == march.labels).mean() > 0.97
    assert found.names == march.names
    truth = truth_of(1)
    refit = fuse(world(1), 4, method="DAL", random_state=0)
    assert adjusted_rand_score(truth, found.labels) > adjusted_rand_score(truth, refit.labels) - 0.03
    told = found.updated
    assert (told.n_before, told.n_again, told.n_new) == (600, 0, 300)
    assert told.n_moved == (found.labels[:600] != march.labels).sum() == found.changes.n_moved
    assert told.drift is not None
    assert not told.drift.found
    assert "It is no new merge" in found.summary()
    assert_allclose(found.chances.sum(axis=1), 1)


def test_a_label_replaces_and_a_blank_does_not():
    ids = [f"i{i}" for i in range(40)]
    base = pd.DataFrame({c: ["a"] * 20 + ["b"] * 20 for c in "xyz"}, index=ids)
    fusion = fuse(base, 2, random_state=0)
    new = pd.DataFrame({"x": ["b", None], "y": ["b", None], "z": ["b", None]}, index=["i0", "i1"])
    found = fusion.update(new)
    table = pd.DataFrame(found.partitions.decode(found.partitions.codes), columns=list("xyz"), index=ids)
    assert table.loc["i0"].tolist() == ["b"] * 3
    assert table.loc["i1"].tolist() == ["a"] * 3
    assert found.labels[0] == found.labels[-1] != fusion.labels[0]
    assert found.changes.to_frame().query("what == 'moved'")["id"].tolist() == ["i0"]
    assert fusion.update(new, pin=["i0"]).labels[0] == fusion.labels[0]
    assert fusion.update(new, pin=True).updated.n_moved == 0


def test_new_sources_and_labels_come_in(march):
    table = world(1)
    new = table.iloc[:900].copy()
    new["extra"] = np.array(["p", "q", "r", "s"], dtype=object)[truth_of(1)]
    new.loc["i650":, "s0"] = "new label"
    found = march.update(new)
    assert found.updated.new_sources == ("extra",)
    assert found.partitions.names == (*march.partitions.names, "extra")
    assert "new label" in found.partitions.categories[0].tolist()
    truth = truth_of(1)
    assert adjusted_rand_score(truth, found.labels) > adjusted_rand_score(truth, march.update(table).labels)
    assert "1 source came in addition." in found.reason


def test_order_and_names_change_nothing(march):
    new = world(1).iloc[600:]
    order = np.random.default_rng(0).permutation(300)
    one, two = march.update(new), march.update(new.iloc[order][["s4", "s1", "s0", "s2", "s3"]])
    by_id = dict(zip(two.index.tolist(), two.labels.tolist(), strict=True))
    assert [by_id[i] for i in one.index.tolist()] == one.labels.tolist()


def test_it_says_when_to_merge_anew(march, tmp_path):
    table = world(1)
    few = fuse(table.iloc[:300], 4, random_state=0)
    once = few.update(table.iloc[300:500])
    assert not once.updated.merge_anew
    once.save(tmp_path / "kept")
    twice = load(tmp_path / "kept").update(table.iloc[500:700])
    assert twice.updated.n_merged == 300
    assert "Merge anew" in twice.reason
    assert "s2" in march.update(changed(table.iloc[600:], "swapped")).updated.merge_anew


def test_weights_and_links_are_kept():
    table = world(3, 300)
    pairs = [("i0", "i1"), ("i1", "i2")]
    fusion = fuse(table.iloc[:200], 4, weights={"s0": 3, "s1": 0.5}, must_link=pairs, random_state=0)
    assert_array_equal(fusion.update(table.iloc[:200]).labels, fusion.labels)
    found = fusion.update(table)
    assert len(set(found.labels[:3].tolist())) == 1
    assert found.given_weights == fusion.given_weights


def test_gaps_in_numbers_stay():
    table = world(4, 200)
    fusion = fuse(table, 3, random_state=0).like(pd.Series(dict.fromkeys(table.index[:20], 7)))
    found = fusion.update(world(4, 250))
    assert set(found.labels.tolist()) == set(fusion.labels.tolist())


def test_errors_name_what_is_wrong(march):
    with pytest.raises(ValueError, match=r"the result has no ids.*Hint"):
        fuse([[0, 0], [1, 1], [0, 0]], 2, random_state=0).update([[0, 1]])
    with pytest.raises(ValueError, match=r"the new table has no ids.*Hint"):
        march.update({"s0": ["L0"]})
    with pytest.raises(ValueError, match=r"'s0' has the label 7.*Hint"):
        march.update(pd.DataFrame({"s0": [7]}, index=["x"]))
    with pytest.raises(ValueError, match=r"the id 'nobody' of pin.*Hint"):
        march.update(world(1), pin=["nobody"])
    rng = np.random.default_rng(0)
    views = fuse_views([rng.normal(size=(40, 3)), rng.normal(size=(40, 2))], 2, random_state=0)
    for call in (lambda: views.update([]), lambda: views.place([], adapt=True)):
        with pytest.raises(TypeError, match="views made this result"):
            call()


def test_adapted_tables_are_tables_and_help_where_a_source_broke(march):
    new = world(1).iloc[600:].copy()
    rng = np.random.default_rng(0)
    for source in ("s2", "s3"):
        new[source] = rng.permutation(new[source])
    codes = march.partitions.encode(new)
    found = adapt(march.evidence, codes)
    assert_allclose(base_sums(found.chance, found.offsets), 1)
    truth = truth_of(1)[600:]
    plain, adapted = march.place(new), march.place(new, adapt=True)
    assert adjusted_rand_score(truth, adapted.labels) > adjusted_rand_score(truth, plain.labels)
    assert_allclose(adapted.chances.sum(axis=1), 1)
    # Where nothing changed it is about as good.
    same = world(1).iloc[600:]
    ari = [adjusted_rand_score(truth, march.place(same, adapt=how).labels) for how in (False, True)]
    assert abs(ari[0] - ari[1]) < 0.03


def test_the_command(march, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    table = world(1)
    march.save("march.consilience")
    table.iloc[500:].to_csv("april.csv", index_label="id")
    given = ["update", "march.consilience", "april.csv", "--id", "id"]
    assert run([*given, "--save", "april.consilience", "-o", "april-out.csv", "--changes", "who.csv"]) == 0
    err = capfd.readouterr().err
    assert "Updated: 600 instances were there, 100 of them in the new table, 300 are new" in err
    assert "No drift in 300 new instances" in err
    expected = march.update(table.iloc[500:])
    assert_array_equal(load("april.consilience").labels, expected.labels)
    with open("april-out.csv") as file:
        assert [int(row["label"]) for row in csv.DictReader(file)] == expected.labels.tolist()
    pd.DataFrame({"id": table.index[:600]}).to_csv("locked.csv", index=False)
    for pin in ("all", "locked.csv"):
        assert run([*given, "--save", "pinned.consilience", "--pin", pin, "-q"]) == 0
        assert_array_equal(load("pinned.consilience").labels[:600], march.labels)
        Path("pinned.consilience").unlink()
    changed(table.iloc[600:], "swapped").to_csv("may.csv", index_label="id")
    assert (
        run(["update", "april.consilience", "may.csv", "--id", "id", "-q", "--save", "may.consilience"]) == 0
    )
    capfd.readouterr()
    code = run(
        [*given[:2], "may.csv", *given[3:], "-q", "--save", "x.consilience", "--fail-on-drift", "0.01"]
    )
    assert code == 3
    assert "'s2' contradicts" in capfd.readouterr().err
    assert run([*given, "--save", "march.consilience"]) == 2  # it would be overwritten


def test_predict_adapts(march, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    march.save("march.consilience")
    new = world(1).iloc[600:]
    new.to_csv("new.csv", index_label="id")
    assert (
        run(["predict", "march.consilience", "new.csv", "--id", "id", "-o", "out.csv", "--adapt", "-q"]) == 0
    )
    assert pd.read_csv("out.csv")["label"].tolist() == march.place(new, adapt=True).labels.tolist()
