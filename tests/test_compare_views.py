"""Methods for views side by side."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from consilience import APMC, PSE, compare_views, fuse_views
from consilience.cli.main import run
from consilience.multiview.neighbours import NeighbourDiagnostics, ViewNeighbours
from consilience.results.view_comparison import VIEW_CANDIDATES


def planted(seed=0, n=120, k=3, n_views=2, apart=2.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return y, {f"v{i}": rng.normal(apart * rng.normal(size=(k, 8))[y]) for i in range(n_views)}


class TestCompareViews:
    def test_every_kind_of_method_is_tried_and_finds_what_is_there(self):
        y, views = planted()
        found = compare_views(views, 3, n_resamples=1, random_state=0)
        assert len(found.rows) == len(VIEW_CANDIDATES)
        assert [row.rank for row in found.rows] == [1, 2, 3, 4, 5, 6]
        assert not any(row.error for row in found.rows)
        for name, fusion in found.fusions.items():
            assert adjusted_rand_score(y, fusion.labels) > 0.9, name

    def test_answers_are_those_of_fuse_views(self):
        _, views = planted(apart=0.8)
        found = compare_views(views, 3, methods=["PSE", "labels", APMC()], n_resamples=0, random_state=4)
        for row, fusion in zip(found.rows, found.fusions.values(), strict=True):
            method = "labels" if row.method.startswith("labels") else fusion.method
            again = fuse_views(views, 3, method=method, random_state=4)
            np.testing.assert_array_equal(fusion.labels, again.labels)

    def test_agreement_is_measured_by_the_same_neighbours(self):
        _, views = planted(apart=0.8)
        found = compare_views(views, 3, methods=["PSE", "APMC"], n_resamples=0, random_state=0)
        for row, fusion in zip(found.rows, found.fusions.values(), strict=True):
            asked = NeighbourDiagnostics(
                type("", (), {"labels_": fusion.labels}), ViewNeighbours().fit(fusion.given_views.table)
            )
            assert row.agreement == pytest.approx(asked.view_agreement_.mean())
            assert row.confidence == pytest.approx(asked.confidence_.mean())

    def test_noise_is_less_stable_than_clusters(self):
        _, views = planted(apart=3.0)
        rng = np.random.default_rng(0)
        noise = {name: rng.normal(size=table.shape) for name, table in views.items()}
        stable = [
            compare_views(each, 3, methods=["PSE"], n_resamples=3, random_state=0).rows[0].stability
            for each in (views, noise)
        ]
        assert stable[0] > 0.95
        assert stable[1] < 0.7

    def test_the_number_that_views_support_comes_first(self):
        _, views = planted(apart=3.0)
        found = compare_views(views, [2, 3, 5], methods=["PSE"], n_resamples=0, random_state=0)
        assert found.n_clusters == 3
        assert [row.n_clusters for row in found.rows] == [3, 2, 5]

    def test_a_method_that_fails_says_why(self):
        _, views = planted()
        found = compare_views(views, 3, methods=["PSE", PSE(kind={"v0": "counts"})], n_resamples=0)
        assert "negative entries" in found.rows[1].error
        assert len(found.fusions) == 1

    def test_a_wrong_name_is_refused_before_the_work(self):
        with pytest.raises(ValueError, match=r"parameter of compare_views .*did you mean PSE"):
            compare_views({"a": np.eye(3)}, 2, methods=["PSEE"])

    def test_at_the_shell(self, tmp_path, monkeypatch, capfd):
        monkeypatch.chdir(tmp_path)
        _, views = planted()
        for name, table in views.items():
            pd.DataFrame(table).add_prefix("x").rename_axis("who").to_csv(f"{name}.csv")
        line = ["compare", "--views", "v0.csv", "v1.csv", "--id", "who", "-k", "3"]
        line += ["-m", "PSE,APMC", "--resamples", "0"]
        assert run([*line, "--json", "--report", "page.html"]) == 0
        rows = json.loads(capfd.readouterr().out)
        assert {row["method"] for row in rows} == {"PSE", "APMC"}
        assert (tmp_path / "page.html").exists()
        assert run(["compare", "-k", "3"]) == 2
        assert "needs tables of labels, or tables of features" in capfd.readouterr().err
        assert run([*line, "v0.csv"]) == 2
        assert "not both" in capfd.readouterr().err


@pytest.mark.filterwarnings("ignore:.*not reliably")
class TestNumberOfClusters:
    def test_it_is_found_unless_given(self):
        _, views = planted(apart=3.0)
        assert fuse_views(views, random_state=0).n_clusters == 3

    @pytest.mark.parametrize("seed", range(3))
    def test_a_useless_view_does_not_change_it(self, seed):
        _, views = planted(seed, n=200, k=4, n_views=3, apart=1.3)
        rng = np.random.default_rng(seed)
        alone = fuse_views(views, random_state=0).n_clusters
        noise = rng.normal(size=(200, 20))
        apart = rng.normal(4 * rng.normal(size=(7, 5))[rng.integers(0, 7, 200)])
        for useless in (noise, (rng.random((200, 30)) < 0.05).astype(float), apart):
            assert fuse_views({**views, "useless": useless}, random_state=0).n_clusters == alone

    def test_a_view_of_weight_zero_has_no_say(self):
        _, views = planted(n=200, n_views=1, apart=1.6)
        rng = np.random.default_rng(0)
        useless = rng.normal(4 * rng.normal(size=(7, 5))[rng.integers(0, 7, 200)])
        with_it = fuse_views({**views, "useless": useless}, view_weights={"useless": 0}, random_state=0)
        assert with_it.n_clusters == fuse_views(views, random_state=0).n_clusters

    def test_clusters_keep_their_numbers(self):
        _, views = planted()
        first = fuse_views(views, 3, random_state=0)
        earlier = first.labels[::-1].max() - first.labels
        again = fuse_views(views, 3, like=earlier, random_state=0)
        np.testing.assert_array_equal(again.labels, earlier)
