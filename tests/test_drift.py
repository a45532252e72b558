"""Drift: a source that changes is found and named, and nothing is found where nothing changed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from consilience import fuse, fuse_views
from consilience.cli.main import run
from consilience.inference.posterior import gather_evidence, leave_out_each
from consilience.inference.surprise import Monitor, judge_labels


def world(seed, n=900, k=4, m=5, err=0.15, missing=0.3):
    """Sources of which one is coarser, with gaps."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    said = np.where(rng.random((n, m)) < err, rng.integers(0, k, (n, m)), truth[:, None])
    said[:, 1] //= 2
    gaps = rng.random((n, m)) < missing
    gaps[gaps.all(axis=1), 0] = False
    words = np.array([f"L{c}" for c in range(k)], dtype=object)[said]
    words[gaps] = None
    return pd.DataFrame(words, columns=[f"s{j}" for j in range(m)], index=[f"i{i}" for i in range(n)])


@pytest.fixture(scope="module")
def fitted():
    table = world(1)
    return fuse(table.iloc[:600], 4, random_state=0), table.iloc[600:]


def slow_surprise(evidence, row):
    """The same from the formula, label by label."""
    out, o = [], evidence.offsets
    for j, label in enumerate(row):
        if label < 0:
            out.append(np.nan)
            continue
        others = [(i, other) for i, other in enumerate(row) if i != j and other >= 0]
        q = np.log(evidence.shares)
        for i, other in others:
            q = q + np.log(evidence.chance[o[i] + other]) / (
                1 + max(len(others) - 1, 0) * evidence.dependence
            )
        q = np.exp(q) / np.exp(q).sum()
        p = np.array([q @ evidence.chance[c] for c in range(o[j], o[j + 1])])
        p /= p.sum()
        out.append(-np.log(p[label]) + (p * np.log(p)).sum())
    return out


def test_surprise_is_that_of_the_formula(fitted):
    fusion, _ = fitted
    codes = fusion.evidence.numbering.recode(fusion.partitions.codes[:60])
    expected = [slow_surprise(fusion.evidence, row) for row in codes.tolist()]
    assert_allclose(judge_labels(fusion.evidence, codes).surprise, expected, atol=1e-9)


def test_tables_without_a_part_are_about_those_of_the_rest(fitted):
    fusion, _ = fitted
    rows = fusion.rows
    cells = np.random.default_rng(0).multivariate_hypergeometric(rows.counts, 120, method="marginals")
    (found,) = leave_out_each(fusion.evidence, rows, cells[:, None])
    rest = gather_evidence(fusion.partitions, rows._replace(counts=rows.counts - cells))
    assert_allclose(found.chance, rest.chance, atol=0.03)
    assert_allclose(found.shares, rest.shares, atol=0.02)
    assert np.abs(found.chance - rest.chance).mean() < np.abs(fusion.evidence.chance - rest.chance).mean()
    alone = np.where(rows.labels == 2, rows.counts, 0)
    assert leave_out_each(fusion.evidence, rows, alone[:, None]) == [None]


def slow_p(monitor, sums, seed):
    """p of meaning, with draws row by row: newcomers among merged rows, and merged rows anew."""
    rng, m = np.random.default_rng(seed), len(sums.n_labels)
    rows = monitor._reference[monitor._instances]
    n, n_merged = int(sums.n), len(rows)
    numbers = np.append(sums.n_labels, n)
    drawn = []
    for _ in range(600):
        new, merged = (rows[rng.integers(0, n_merged, size)] for size in (n, n_merged))
        z = []
        for j in range(m + 1):
            a, b = (part[part[:, j] > 0] if j < m else part for part in (new, merged))
            x, y = a[:, m + j], b[:, m + j]
            z.append((np.sqrt(len(x)) * x.mean() - np.sqrt(numbers[j]) * y.mean()) / y.std())
        drawn.append(np.abs(z))
    drawn = np.array(drawn)
    spread = drawn.mean(axis=0) + drawn.std(axis=0)
    found = np.abs(sums.values[: m + 1]) / np.sqrt(numbers)
    return np.mean((drawn / spread).max(axis=1) >= (found / spread).max())


def test_p_is_that_of_draws_row_by_row(fitted):
    fusion, new = fitted
    monitor = Monitor(fusion.rows, fusion.evidence)
    for part in (new.iloc[:60], new.iloc[60:200], new.iloc[200:]):
        sums = monitor.sums(fusion.partitions.encode(part))
        assert abs(monitor.test(sums).p_meaning - slow_p(monitor, sums, 5)) < 0.1  # four standard errors


def test_nothing_is_found_where_nothing_changed(fitted):
    fusion, new = fitted
    found = fusion.drift(new)
    assert not found.found
    assert found.source is None
    assert found.sentences[0].startswith("No drift in 300 new instances")


def test_false_alarms_are_about_as_frequent_as_they_say():
    p = []
    for seed in range(20):
        table = world(100 + seed, 700)
        found = fuse(table.iloc[:500], 4, method="DAL", random_state=0).drift(table.iloc[500:])
        p.append((found.p_meaning, found.p_shares))
    p = np.array(p)
    assert (p < 0.01).mean() <= 0.05
    assert 0.25 < p.mean() < 0.75  # uniform has a half, and so has what is told
    assert (p < 0.5).mean() > 0.2


def changed(new, how):
    new = new.copy()
    if how == "swapped":
        new["s2"] = new["s2"].map({"L0": "L1", "L1": "L0"}).fillna(new["s2"])
    elif how == "errs":
        new["s2"] = np.random.default_rng(0).permutation(new["s2"])
    elif how == "scheme":
        new["s2"] = new["s2"].map(
            lambda label: None if label is None else f"tier {label}", na_action="ignore"
        )
    return new


@pytest.mark.parametrize("how", ["swapped", "errs", "scheme"])
def test_the_source_that_changed_is_named(fitted, how):
    fusion, new = fitted
    found = fusion.drift(changed(new, how))
    assert found.found
    assert found.source == "s2"
    assert "'s2'" in " ".join(found.sentences)
    assert (found.p_labels < 0.01) == (how == "scheme")
    if how != "scheme":
        assert found.p_meaning < 0.01
    assert found.as_dict()["source"] == "s2"


def test_another_mix_is_told_apart_from_another_meaning(fitted):
    fusion, new = fitted
    labels = fusion.predict(new)
    few = new[(labels == 0) | (np.arange(len(new)) % 4 == 0)]
    found = fusion.drift(few)
    assert found.p_shares < 0.01 <= found.p_meaning
    assert "The mix is another one" in found.sentences[0]
    assert found.source is None


def test_names_and_order_change_nothing(fitted):
    fusion, new = fitted
    table = world(1).iloc[:600]
    order = np.random.default_rng(3).permutation(600)
    columns = ["s3", "s0", "s4", "s2", "s1"]
    words = {f"L{c}": f"x{9 - c}" for c in range(4)}
    other = fuse(table.iloc[order][columns].replace(words), 4, random_state=0)
    new = changed(new, "swapped")
    one = fusion.drift(new)
    two = other.drift(new.iloc[::-1][columns[::-1]].replace(words))
    assert_allclose([one.p_meaning, one.p_shares], [two.p_meaning, two.p_shares])
    assert {s.name: round(s.surprise, 6) for s in one.sources} == {
        s.name: round(s.surprise, 6) for s in two.sources
    }


def test_pieces_add_up(fitted):
    from consilience.results.drift import Watch

    fusion, new = fitted
    watch = Watch(fusion)
    for part in (new.iloc[:30], new.iloc[30:31], new.iloc[31:]):
        watch.add(*fusion.partitions.encode_known(part))
    one, two = watch.found(), fusion.drift(new)
    assert (one.p_meaning, one.p_shares, one.n_new) == (two.p_meaning, two.p_shares, two.n_new)
    assert_allclose([s.surprise for s in one.sources], [s.surprise for s in two.sources])


def test_views_are_a_sentence():
    rng = np.random.default_rng(0)
    fusion = fuse_views([rng.normal(size=(40, 3)), rng.normal(size=(40, 2))], 2, random_state=0)
    with pytest.raises(TypeError, match=r"drift needs labels .* Hint: "):
        fusion.drift([rng.normal(size=(5, 3))])


@pytest.fixture
def saved(fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fusion, new = fitted
    fusion.save("march.consilience")
    new.to_csv("same.csv", index_label="id")
    changed(new, "swapped").to_csv("swapped.csv", index_label="id")
    changed(new, "scheme").to_csv("scheme.csv", index_label="id")
    new.iloc[:40].to_csv("few.csv", index_label="id")


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_predict_says_so_by_itself_and_fails_if_asked_to(saved, capfd, quiet):
    def said(file, *options):
        code = run(["predict", "march.consilience", file, "--id", "id", "-o", "out.csv", *options, *quiet])
        return code, capfd.readouterr().err

    code, err = said("same.csv", "--fail-on-drift", "0.01")
    assert code == 0
    assert ("No drift in 300 new instances" in err) == (not quiet)
    assert said("few.csv") == (0, "" if quiet else "Placed 40 of 40 instances.\n")
    code, err = said("swapped.csv")
    assert code == 0
    assert "'s2' contradicts the other sources more than it did" in err
    Path("out.csv").unlink()
    code, err = said("swapped.csv", "--fail-on-drift", "0.01")
    assert code == 3
    assert Path("out.csv").exists()
    code, err = said("scheme.csv", "--fail-on-drift", "0.01")
    assert code == 3
    assert "'s2' uses labels that did not exist" in err
