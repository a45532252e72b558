"""What sources call clusters and each other's labels: against loops, laws, planted relations, surfaces."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience import fuse, fuse_views
from consilience.cli.main import run
from consilience.inference.relations import RELATIONS, Labels, relate
from consilience.plotting import plot_rosetta
from consilience.report import render, summarize
from consilience.results.rosetta import rosetta, translate


def planted(seed=0, n=1200, error=0.15, missing=0.3):
    """Six sources of six classes: four have all, one has pairs of them, one has two halves."""
    rng, k = np.random.default_rng(seed), 6
    y = rng.integers(0, k, n)
    maps = [
        np.arange(k),
        np.arange(k) // 2,
        np.arange(k),
        rng.permutation(k),
        np.arange(k) // 3,
        np.arange(k),
    ]
    said = {}
    for name, of_class in zip("ABCDEF", maps, strict=True):
        label = of_class[np.where(rng.random(n) < error, rng.integers(0, k, n), y)]
        hidden = (rng.random(n) < missing) & (name != "C")
        said[name] = [None if gone else f"{name.lower()}{x}" for x, gone in zip(label, hidden, strict=True)]
    return pd.DataFrame(said), maps


@pytest.fixture(scope="module")
def fusion():
    return fuse(planted()[0], 6, random_state=0)


class TestRule:
    def test_against_loops(self):
        table = np.random.default_rng(0).integers(1, 40, (5, 4)).astype(float)
        table[0] = [90, 0, 0, 0]
        n, skill = table.sum(), 0.7
        for a in range(5):
            for b in range(4):
                p_a, p_b = table[a].sum() / n, table[:, b].sum() / n
                one = (table[a, b] / table[a].sum() - p_b) / (1 - p_b) / skill
                other = (table[a, b] / table[:, b].sum() - p_a) / (1 - p_a) / skill
                if one >= 0.6 and other >= 0.6:
                    expected = "same"
                elif one >= 0.6 or other >= 0.6:
                    expected = "finer" if one >= 0.6 else "coarser"
                else:
                    expected = "overlapping" if max(one, other) >= 0.2 else "unrelated"
                assert RELATIONS[relate(table, skill)[a, b]] == expected

    @pytest.mark.parametrize("error", [0.2, 0.4])
    def test_independent_errors_divide_out(self, error):
        clean = np.diag([0.25] * 4)
        u = 1 - error
        noisy = u**2 * clean + (1 - u**2) * np.full((4, 4), 1 / 16)
        assert_array_equal(relate(noisy, u**2), relate(clean, 1.0))


class TestPairs:
    def test_finds_planted_relations(self, fusion):
        found = translate(fusion, "A", "B")
        assert [(line.a, line.b) for line in sorted(found.stated)] == [
            (f"a{i}", f"b{i // 2}") for i in range(6)
        ]
        assert {line.relation for line in found.stated} == {"finer"}
        assert {line.relation for line in translate(fusion, "A", "F").stated} == {"same"}
        assert {line.relation for line in translate(fusion, "E", "C").stated} == {"coarser"}

    def test_the_other_way_round_is_the_mirror(self, fusion):
        there, back = translate(fusion, "B", "D"), translate(fusion, "D", "B")
        mirror = {"finer": "coarser", "coarser": "finer"}
        turned = {
            (one.b, one.a, mirror.get(one.relation, one.relation), one.chance, one.of_b, one.of_a)
            for one in back.lines
        }
        assert turned == {(o.a, o.b, o.relation, o.chance, o.of_a, o.of_b) for o in there.lines}

    def test_the_order_of_rows_columns_and_names_changes_nothing(self, fusion):
        table = planted()[0]
        other = table.sample(frac=1, random_state=1)[["E", "C", "A", "F", "B", "D"]]
        other = other.replace({"A": {f"a{i}": f"z{5 - i}" for i in range(6)}})
        moved = fuse(other, 6, random_state=0)
        lines = {(f"z{5 - int(o.a[1])}", *o[1:]) for o in translate(fusion, "A", "B").lines}
        assert {tuple(o) for o in translate(moved, "A", "B").lines} == lines

    def test_without_shared_instances_it_goes_through_the_consensus(self):
        table, _ = planted(seed=3)
        both = table["A"].notna() & table["F"].notna()
        table.loc[both & (table.index % 2 == 0), "A"] = None
        table.loc[both & (table.index % 2 == 1), "F"] = None
        found = translate(fuse(table, 6, random_state=0), "A", "F")
        assert found.n_shared == 0
        assert found.stated
        assert all(one.through == "consensus" and one.shared == 0 for one in found.stated)
        assert all((one.relation, one.a[1]) == ("same", one.b[1]) for one in found.stated)
        assert "through the consensus: fewer than 10 instances" in " ".join(found.sentences)

    def test_labels_finer_than_the_clusters_stay_undecided_without_shared_instances(self):
        rng = np.random.default_rng(0)
        y, part = rng.integers(0, 3, 900), rng.integers(0, 4, 900)
        fine = np.array([f"{c}{p}" for c, p in zip(y, part, strict=True)], dtype=object)
        half = rng.random(900) < 0.5
        said = {"a": np.where(half, fine, None), "b": np.where(half, None, fine), "c": y, "d": y}
        found = translate(fuse(said, 3, random_state=0), "a", "b")
        assert found.n_blind == 3 * 4 * 4
        assert not found.stated
        assert "Labels finer than the clusters cannot be matched" in " ".join(found.sentences)

    def test_counts(self, fusion):
        table = planted()[0]
        seen = table[["A", "B"]].dropna()
        found = translate(fusion, "A", "B")
        assert found.n_shared == len(seen)
        for one in found.lines:
            assert one.shared == ((seen["A"] == one.a) & (seen["B"] == one.b)).sum()
            assert (one.of_a, one.of_b) == ((seen["A"] == one.a).sum(), (seen["B"] == one.b).sum())

    def test_chances_are_shares_of_all_relations(self, fusion):
        found = Labels(fusion.evidence, fusion.rows).of_sources(0, 1)
        assert_allclose(found.chance.sum(axis=-1), 1.0)

    def test_repeating_sources_are_said(self):
        rng = np.random.default_rng(0)
        shared = np.where(rng.random(600) < 0.35, rng.integers(0, 3, 600), rng.integers(0, 3, 600))
        y = rng.integers(0, 3, 600)
        said = {name: np.where(rng.random(600) < 0.5, shared, y) for name in "ab"} | {
            "c": shared,
            "d": shared,
        }
        fusion = fuse(said, 3, random_state=0)
        told = " ".join(translate(fusion, "c", "d").sentences)
        assert ("repeat each other" in told) == (fusion.evidence.dependence > 0.1)


class TestClusters:
    def test_finds_planted_relations(self, fusion):
        found = rosetta(fusion)
        for row in found.cells:
            number = int(row[0][3:])
            assert row[:3] == (f"= a{number}", f"< b{number // 2}", f"= c{number}")
            assert row[4] == f"< e{number // 3}"
        assert all(0.8 <= sure <= 1 for row in found.chances for sure in row)

    def test_coarser_clusters_consist_of_labels(self):
        table, _ = planted(seed=2, error=0.05)
        found = rosetta(fuse(table[["B", "C", "B"]].set_axis(["B", "C", "B2"], axis=1), 3, random_state=0))
        for row in found.cells:
            assert row[0][0] == "="
            assert row[1][0] == ">"
            assert len(row[1].split(",")) == 2

    def test_a_source_that_did_not_see_a_cluster(self):
        said = {"a": ["x"] * 20 + ["y"] * 20, "b": ["p"] * 20 + ["q"] * 20, "c": ["s"] * 20 + [None] * 20}
        found = rosetta(fuse(said, 2, named_after="a", random_state=0))
        assert found.cells[found.clusters.index("y")][2] == "-"

    def test_numbers_of_clusters_do_not_matter(self, fusion):
        names = [f"group {c}" for c in range(6)]
        moved = fusion.rename(names).like(np.array([3, 1, 2, 0, 5, 9])[fusion.labels])
        cells = dict(zip((int(c) for c in rosetta(fusion).clusters), rosetta(fusion).cells, strict=True))
        again = dict(zip((int(c) for c in rosetta(moved).clusters), rosetta(moved).cells, strict=True))
        assert {np.array([3, 1, 2, 0, 5, 9])[c]: row for c, row in cells.items()} == again


class TestSurfaces:
    def test_frames_are_of_the_kind_that_was_given(self, fusion):
        assert fusion.rosetta().columns.tolist() == ["cluster", *"ABCDEF"]
        found = fusion.rosetta("A", "B")
        assert found.columns.tolist() == ["a", "b", "relation", "chance", "shared", "of_a", "of_b", "through"]
        assert isinstance(fuse(pl.DataFrame(planted()[0]), 6, random_state=0).rosetta(), pl.DataFrame)
        assert isinstance(fuse([[0, 1]] * 9 + [[1, 0]] * 9, 2, random_state=0).rosetta(), pd.DataFrame)

    def test_a_source_called_cluster(self):
        fusion = fuse(planted()[0].rename(columns={"A": "cluster"}), 6, random_state=0)
        assert fusion.rosetta().columns[:2].tolist() == ["cluster", "cluster (source)"]

    def test_bad_names(self, fusion):
        with pytest.raises(ValueError, match=r"there is no source 'G'\. Hint: "):
            fusion.rosetta("A", "G")
        with pytest.raises(ValueError, match="'A' is one source"):
            fusion.rosetta("A", "A")
        with pytest.raises(TypeError, match="one source was named"):
            fusion.rosetta("A")

    def test_views_have_no_labels(self):
        views = [np.random.default_rng(0).normal(size=(40, 3)), np.random.default_rng(1).normal(size=(40, 3))]
        with pytest.raises(TypeError, match="needs labels"):
            fuse_views(views, 2, random_state=0).rosetta()

    def test_words_and_dicts(self, fusion):
        for found in (rosetta(fusion), translate(fusion, "A", "B")):
            assert json.loads(json.dumps(found.as_dict()))["sentences"] == list(found.sentences)
            assert str(found) == repr(found)
            assert "<table>" in found._repr_html_()
        assert "is part of" in str(translate(fusion, "A", "B"))

    def test_the_shell_says_the_same(self, fusion, tmp_path, capfd):
        path = str(tmp_path / "six.consilience")
        fusion.save(path)
        assert run(["rosetta", path]) == 0
        assert capfd.readouterr().out.rstrip() == str(rosetta(fusion))
        assert run(["rosetta", path, "A", "B", "--json"]) == 0
        assert json.loads(capfd.readouterr().out) == translate(fusion, "A", "B").as_dict()
        assert run(["rosetta", path, "A", "B", "-o", str(tmp_path / "names.csv")]) == 0
        assert translate(fusion, "A", "B").sentences[0] in capfd.readouterr().err
        assert run(["rosetta", path, "A"]) == 2
        assert "one source was named" in capfd.readouterr().err
        written = pd.read_csv(tmp_path / "names.csv")
        pd.testing.assert_frame_equal(written, fusion.rosetta("A", "B"), check_dtype=False)

    def test_the_page_has_it(self, fusion):
        summary = summarize(fusion)
        told = summary["results"][0]["rosetta"]
        assert tuple(tuple(one["cells"]) for one in told["clusters"]) == rosetta(fusion).cells
        assert "What each source calls the clusters" in render(summary)

    def test_the_picture_has_it(self, fusion):
        ax = plot_rosetta(fusion)
        assert [text.get_text() for text in ax.texts] == [
            cell for row in rosetta(fusion).cells for cell in row
        ]
        with pytest.raises(TypeError, match="plot_rosetta needs a Fusion, got dict"):
            plot_rosetta({})
