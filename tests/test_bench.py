"""Experiments as data: what is run, what is kept, how it is shown."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import wilcoxon

from consilience import EEIMVC, LWEA, bench
from consilience.bench.experiment import Method, Published, parse
from consilience.bench.runner import METRICS, cells, run_sample
from consilience.bench.samples import filled, make_sample, one_hot, scaled
from consilience.bench.store import Row
from consilience.cli.main import run as command
from consilience.metrics import matched_accuracy_score

EXAMPLES = Path(__file__).parents[1] / "examples"
TEXT = """
title = "A small comparison"
paper = "Nobody, Nowhere"
shows = ["Table 1"]
input = "labels"
metrics = ["ACC", "NMI (max)"]
seeds = 2
missing = [0.2, 0.5]
record = ["objective_"]

[base]
clusterings = 4
max_iter = 10

[[data]]
name = "Digits"
file = "digits"
rows = "unit"
max_rows = 200

[[methods]]
name = "PCE"
grid = { gamma = [1.0, 100.0] }

[[methods]]
name = "base"

[[methods]]
name = "Broken"
of = "SPCE"
parameters = { theta = -1.0 }

[[published]]
data = "Digits"
method = "PCE"
metric = "ACC"
missing = 0.2
value = 0.75

[unavailable]
Letters = "too far away"

[small]
missing = [0.2]
"""


@pytest.fixture(scope="module")
def experiment():
    return parse(TEXT, "toy")


@pytest.fixture(scope="module")
def rows(experiment, tmp_path_factory):
    return bench.run(experiment, tmp_path_factory.mktemp("toy")).read()


class TestFile:
    def test_says_what_to_run(self, experiment):
        assert experiment.data[0].file == "digits"
        assert experiment.methods[0].settings() == [{"gamma": 1.0}, {"gamma": 100.0}]
        assert experiment.base.clusterings == 4
        # 2 ratios x 2 seeds x (default and two points, mean base, one that fails)
        assert len(list(cells(experiment))) == 2 * 2 * (3 + 1 + 1)
        small = experiment.in_small()
        assert (small.missing, small.seeds) == ((0.2,), 1)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('method = "PCE"\nmetric', 'method = "PCX"\nmetric', "published figure of 'PCX' on 'Digits'"),
            ("seeds = 2", "sedes = 2", "cannot be read: .*sedes.* Hint"),
            ('title = "A small comparison"', "", "cannot be read: .*title.* Hint"),
            ("[small]", '[small]\ndata = ["Letters"]', "has no data 'Letters'"),
        ],
    )
    def test_a_typing_error_is_said(self, old, new, message):
        with pytest.raises(ValueError, match=message):
            parse(TEXT.replace(old, new), "toy")

    def test_unknown_names(self, tmp_path):
        with pytest.raises(ValueError, match=r"there is no experiment 'pce-figure-2'\. Hint"):
            bench.load("pce-figure-2")
        with pytest.raises(ValueError, match=r"there is no file .*none.toml'. Hint"):
            bench.load(tmp_path / "none.toml")

    @pytest.mark.parametrize("name", bench.available())
    def test_every_experiment_that_comes_with_the_library_is_sound(self, name):
        from sklearn import cluster

        import consilience

        found = bench.load(name)
        assert found.title
        assert found.shows
        assert set(found.metrics) <= {*METRICS, "seconds"}
        for method in found.methods:
            known = ("base", "best_base", *consilience.__all__)
            assert method.of in known or hasattr(cluster, method.of), method
        assert found.in_small().data
        assert found.in_small().methods
        assert set(found.in_small().missing) <= set(found.missing)


def test_the_small_version_has_the_ends_of_every_grid():
    text = TEXT.replace("gamma = [1.0, 100.0]", "gamma = [1.0, 10.0, 100.0]")
    assert parse(text, "toy").in_small().methods[0].grid == {"gamma": (1.0, 100.0)}


class TestRun:
    def test_has_a_row_for_every_number(self, experiment, rows):
        scores = rows[(rows["metric"] == "ACC") & (rows["setting"] == "")]
        assert sorted(scores["method"].unique()) == ["PCE", "base"]
        assert len(scores) == 2 * 2 * 2
        assert set(rows["setting"]) == {"", '{"gamma": 1.0}', '{"gamma": 100.0}'}
        assert scores["value"].between(0, 1).all()
        assert (scores["seconds"] >= 0).all()
        assert json.loads(scores["versions"].iloc[0])["numpy"] == np.__version__
        assert json.loads(scores[scores["method"] == "PCE"]["parameters"].iloc[0])["n_clusters"] == 10

    def test_scores_are_those_of_the_same_fit_by_hand(self, experiment, rows):
        from consilience import PCE

        sample = make_sample(experiment, experiment.data[0], 0.5, 1)
        labels = PCE(10, random_state=1, unobserved="largest").fit_predict(sample.input)
        mine = rows[(rows["missing"] == 0.5) & (rows["seed"] == 1) & (rows["metric"] == "ACC")]
        pce = mine[(mine["method"] == "PCE") & (mine["setting"] == "")]["value"].item()
        assert pce == pytest.approx(matched_accuracy_score(sample.y, labels))
        base = [matched_accuracy_score(sample.y[c >= 0], c[c >= 0]) for c in sample.base.T]
        assert mine[mine["method"] == "base"]["value"].item() == pytest.approx(np.mean(base))

    def test_traces_are_kept_step_by_step(self, rows):
        trace = rows[(rows["metric"] == "objective") & (rows["seed"] == 0) & (rows["missing"] == 0.2)]
        trace = trace[trace["setting"] == ""]
        assert trace["step"].tolist() == list(range(len(trace)))
        assert len(trace) > 1

    def test_a_method_that_fails_is_a_row_with_its_error(self, rows):
        failed = rows[rows["method"] == "Broken"]
        assert len(failed) == 4
        assert failed["error"].str.contains("theta").all()
        assert failed["value"].isna().all()

    def test_resumes_where_it_stopped(self, experiment, tmp_path, monkeypatch):
        from consilience.bench import runner as module

        calls = []

        def stops_early(given, group):
            calls.append(group)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return run_sample(given, group)

        monkeypatch.setattr(module, "run_sample", stops_early)
        with pytest.raises(KeyboardInterrupt):
            bench.run(experiment, tmp_path)
        kept = bench.Store(tmp_path).read()["cell"].nunique()
        assert 0 < kept < 20
        store = bench.run(experiment, tmp_path)
        assert len(calls) == 3 + 2  # the one that was interrupted and the one after it
        whole = store.read()
        assert whole["cell"].nunique() == 20
        assert not whole.duplicated(["cell", "metric", "step"]).any()
        bench.run(experiment, tmp_path)
        assert len(calls) == 5

    def test_only_what_changed_runs_again(self, experiment, tmp_path):
        bench.run(experiment.in_small(), tmp_path)
        before = set(bench.Store(tmp_path).read()["cell"])
        method = replace(experiment.methods[0], parameters={"max_iter": 3})
        changed = replace(experiment.in_small(), methods=(method, *experiment.methods[1:]))
        after = set(bench.run(changed, tmp_path).read()["cell"])
        assert before < after
        assert len(after - before) == 3  # PCE and the two points of its grid

    def test_the_number_of_jobs_changes_nothing(self, experiment, rows, tmp_path):
        again = bench.run(experiment, tmp_path, n_jobs=2).read()
        keys = ["data", "missing", "seed", "method", "setting", "metric", "step", "value"]
        pd.testing.assert_frame_equal(again[keys], rows[keys])

    def test_views_and_features(self, tmp_path):
        views = parse(
            TEXT.replace('input = "labels"', 'input = "views"\nprotocol = "stratified"')
            .replace('file = "digits"', 'file = "digits_views"')
            .replace('rows = "unit"\nmax_rows = 200', "")
            .replace('name = "PCE"\ngrid = { gamma = [1.0, 100.0] }', 'name = "LFIMVC"')
            .replace('name = "base"', 'name = "PCE"\nof = "fuse_views"\nparameters = { n_partitions = 2 }'),
            "views",
        ).in_small()
        found = bench.run(replace(views, methods=views.methods[:2]), tmp_path / "v").read()
        assert (found["error"] == "").all()
        assert set(found["method"]) == {"LFIMVC", "PCE"}
        features = parse(
            TEXT.replace('input = "labels"', 'input = "features"').replace(
                'name = "Broken"\nof = "SPCE"\nparameters = { theta = -1.0 }', 'name = "KMeans"'
            ),
            "features",
        ).in_small()
        found = bench.run(features, tmp_path / "f").read()
        assert (found["error"] == "").all()
        assert set(found["method"]) == {"PCE", "base", "KMeans"}

    def test_the_best_base_clustering_is_that_of_every_metric(self, experiment):
        best = replace(experiment.methods[1], name="best", of="best_base")
        sample = make_sample(experiment, experiment.data[0], 0.2, 0)
        chosen = replace(experiment, methods=(best,), missing=(0.2,), seeds=1)
        found = {row.metric: row.value for row in run_sample(chosen, list(cells(chosen)))}
        for metric in experiment.metrics:
            scores = [METRICS[metric](sample.y[c >= 0], c[c >= 0]) for c in sample.base.T]
            assert found[metric] == pytest.approx(max(scores))

    def test_the_mean_base_clustering_takes_no_time(self, experiment):
        timed = replace(experiment, metrics=("ACC", "seconds"), record=(), missing=(0.2,), seeds=1)
        found = [(row.method, row.metric) for row in run_sample(timed, list(cells(timed))) if row.metric]
        assert ("PCE", "seconds") in found
        assert ("base", "ACC") in found
        assert ("base", "seconds") not in found

    def test_gaps_can_be_filled_with_random_clusters(self, experiment):
        labels = np.array([[3, -1], [3, 0], [5, 1], [-1, 1], [5, -1]] * 200)
        full = filled(labels, 0)
        np.testing.assert_array_equal(full[labels >= 0], labels[labels >= 0])
        gaps = full[labels[:, 0] < 0, 0]
        assert set(gaps) == {3, 5}
        assert 60 < (gaps == 3).sum() < 140  # equally likely
        np.testing.assert_array_equal(full, filled(labels, 0))
        method = Method("LWEA, filled", "LWEA", fill=True)
        group = [c for c in cells(replace(experiment, methods=(method,))) if (c.missing, c.seed) == (0.5, 1)]
        sample = make_sample(experiment, experiment.data[0], 0.5, 1)
        expected = matched_accuracy_score(sample.y, LWEA(10).fit_predict(filled(sample.base, 1)))
        assert run_sample(experiment, group)[0].value == pytest.approx(expected)
        plain = cells(replace(experiment, methods=(replace(method, fill=False),)))
        assert group[0].digest not in [cell.digest for cell in plain]

    def test_a_view_method_is_given_base_clusterings_as_indicators(self, experiment):
        method = Method("IMVC", "EEIMVC", {"kernel": "linear"})
        chosen = replace(experiment, methods=(method,), missing=(0.8,), seeds=1)
        sample = make_sample(chosen, chosen.data[0], 0.8, 0)
        tables, seen = one_hot(sample.base)
        assert not seen.any(axis=1).all()
        for column, table, mine in zip(sample.base.T, tables, seen.T, strict=True):
            np.testing.assert_array_equal(table[mine].argmax(axis=1), column[mine])
            np.testing.assert_array_equal(table[mine].sum(axis=1), 1.0)
        known = seen.any(axis=1)
        model = EEIMVC(10, kernel="linear", random_state=0)
        found = np.zeros(len(known), dtype=int)  # 0 is the largest cluster
        found[known] = model.fit([table[known] for table in tables], mask=seen[known]).labels_
        row = run_sample(chosen, list(cells(chosen)))[0]
        assert row.error == ""
        assert row.value == pytest.approx(matched_accuracy_score(sample.y, found))

    def test_a_data_set_may_have_fewer_seeds_and_they_are_the_same_fits(self, experiment):
        few = replace(experiment, data=(replace(experiment.data[0], seeds=1),))
        first = {cell.digest for cell in cells(experiment) if cell.seed == 0}
        assert {cell.digest for cell in cells(few)} == first

    def test_a_method_for_two_views_is_left_out_where_there_are_more(self, tmp_path):
        text = (
            TEXT.replace('input = "labels"', 'input = "views"\nprotocol = "stratified"')
            .replace('file = "digits"', 'file = "digits_views"')
            .replace('rows = "unit"\nmax_rows = 200', "")
            .replace(
                'name = "PCE"\ngrid = { gamma = [1.0, 100.0] }', 'name = "PCE"\nof = "PVC"\nmax_views = 2'
            )
        )
        three = parse(text, "views").in_small()
        three = replace(three, methods=three.methods[:1])
        found = bench.run(three, tmp_path / "three").read()
        assert found["error"].tolist() == ["left out above 2 views"]
        two = replace(three, data=(replace(three.data[0], views=(0, 2)),))
        assert (bench.run(two, tmp_path / "two").read()["error"] == "").all()

    @pytest.mark.data
    def test_instances_that_no_chosen_view_has_are_left_out(self, data_folder, monkeypatch):
        monkeypatch.setenv("CONSILIENCE_DATA", str(data_folder))
        experiment = bench.load("apmc-table-1")
        sizes = [len(make_sample(experiment, data, 0.0, 0).y) for data in experiment.data]
        assert sizes == [404, 407, 384, 416]

    def test_rows_are_scaled_as_said(self):
        X = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 2.0]])
        np.testing.assert_allclose(np.linalg.norm(scaled(X, "unit"), axis=1), 1.0)
        np.testing.assert_array_equal(scaled(X, "raw"), X)
        np.testing.assert_allclose(scaled(X, "minmax_unit")[0], np.array([1.0, 1.0]) / np.sqrt(2))
        z = (X - X.mean(0)) / X.std(0)
        np.testing.assert_allclose(scaled(X, "zscore_unit"), z / np.linalg.norm(z, axis=1, keepdims=True))


class TestShow:
    def test_means_oracle_and_published_stand_side_by_side(self, experiment, rows):
        entry = next(e for e in bench.tabulate(experiment, rows) if (e.method, e.metric) == ("PCE", "ACC"))
        mine = rows[(rows["method"] == "PCE") & (rows["metric"] == "ACC")]
        plain, grid = mine[mine["setting"] == ""], mine[mine["setting"] != ""]
        assert entry.mean == pytest.approx(plain["value"].mean())
        assert entry.deviation == pytest.approx(plain["value"].std(ddof=0))
        assert entry.oracle == pytest.approx(grid.groupby(["missing", "seed"])["value"].max().mean())
        assert np.isnan(entry.published)  # the paper's is at one share, ours the mean over two
        halves = bench.tabulate(experiment, rows, by_missing=True)
        shares = {e.missing: e.published for e in halves if (e.method, e.metric) == ("PCE", "ACC")}
        assert shares[0.2] == 0.75
        assert np.isnan(shares[0.5])
        text = bench.show(experiment, rows)
        assert f"{entry.mean:.3f} ±{entry.deviation:.3f} ({entry.oracle:.3f})" in text
        assert "Letters (too far away)" in text
        assert "4 fits of Broken failed" in text

    def test_by_missing_splits_the_columns(self, experiment, rows):
        text = bench.show(experiment, rows, by_missing=True)
        assert "| Digits 0.2" in text
        assert "| Digits 0.5" in text
        assert "[0.750]" in text

    def test_files_of_one_name_are_one_set(self, experiment, rows):
        first = replace(experiment.data[0], at=0.2)
        both = replace(experiment, data=(first, replace(first, at=0.5)))
        assert both.sets == ("Digits",)
        shares = [cell.missing for cell in cells(both) if cell.method.name == "base"]
        assert shares == [0.2, 0.2, 0.5, 0.5]
        assert [e.n for e in bench.tabulate(both, rows) if (e.method, e.metric) == ("PCE", "ACC")] == [4]

    def test_a_varied_parameter_has_a_row_for_every_value(self, experiment, rows):
        known = Published("Digits", "PCE", "ACC", 0.5, at=100.0)
        text = bench.show(replace(experiment, vary="gamma", published=(known,)), rows)
        part = text.split("### ACC by gamma")[1].split("##")[0]
        lines = [
            [cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if "|" in line
        ]
        mine = rows[(rows["method"] == "PCE") & (rows["metric"] == "ACC")]
        means = mine.groupby("setting")["value"].mean()
        assert [line[:2] for line in lines[2:]] == [["PCE", "1"], ["PCE", "100"]]
        assert float(lines[2][2]) == pytest.approx(means[json.dumps({"gamma": 1.0})], abs=6e-4)
        ours, theirs = lines[3][2].split()
        assert float(ours) == pytest.approx(means[json.dumps({"gamma": 100.0})], abs=6e-4)
        assert theirs == "[0.500]"

    def test_seconds_are_medians_and_have_no_best(self, experiment, rows):
        timed = rows[rows["metric"] == "ACC"]
        timed = timed.assign(metric="seconds", value=np.arange(len(timed)) ** 3.0)
        found = bench.tabulate(replace(experiment, metrics=("seconds",)), timed)
        entry = next(e for e in found if e.method == "PCE")
        own = timed[(timed["method"] == "PCE") & (timed["setting"] == "")]["value"]
        assert entry.mean == own.median() != own.mean()
        assert np.isnan(entry.oracle)

    def test_signs_are_those_of_the_paired_test(self, experiment):
        rng = np.random.default_rng(0)
        first = rng.random(12)
        values = {
            "PCE": first,
            "base": first - 0.1 + 0.05 * rng.random(12),
            "Broken": first + rng.normal(0, 0.1, 12),
        }
        common = dict.fromkeys(Row._fields, "") | {
            "data": "Digits",
            "missing": 0.2,
            "metric": "ACC",
            "step": 0,
        }
        rows = pd.DataFrame(
            [
                {**common, "method": m, "seed": s, "value": v}
                for m, vs in values.items()
                for s, v in enumerate(vs)
            ]
        )
        found = {e.method: e.sign for e in bench.tabulate(experiment, rows) if e.metric == "ACC"}
        assert found["PCE"] == ""
        assert found["base"] == "-"
        worse = wilcoxon(values["Broken"] - first).pvalue < 0.05
        assert bool(found["Broken"]) == worse
        timed = replace(experiment, metrics=("seconds",))  # less is better there: no signs
        assert {e.sign for e in bench.tabulate(timed, rows.assign(metric="seconds"))} == {""}

    @pytest.mark.parametrize("vary", ["missing", "gamma", "trace", "bars"])
    def test_figures_draw_the_means(self, experiment, rows, vary):
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        chosen = replace(experiment, record=("objective_",) if vary == "trace" else ())
        chosen = replace(chosen, vary="gamma" if vary == "gamma" else "missing")
        if vary == "bars":
            chosen = replace(chosen, missing=(0.2,))
        figure = bench.draw(chosen, rows)
        ax = figure.axes[0]
        mine = rows[(rows["method"] == "PCE") & (rows["metric"] == "ACC")]
        if vary == "missing":
            expected = mine[mine["setting"] == ""].groupby("missing")["value"].mean()
            np.testing.assert_allclose(ax.lines[0].get_ydata(), expected)
            np.testing.assert_allclose(ax.lines[0].get_xdata(), [0.2, 0.5])
        elif vary == "gamma":
            expected = mine[mine["setting"] != ""].groupby("setting")["value"].mean()
            np.testing.assert_allclose(ax.lines[0].get_xdata(), [1.0, 100.0])
            np.testing.assert_allclose(sorted(ax.lines[0].get_ydata()), sorted(expected))
        elif vary == "trace":
            assert len(ax.lines[0].get_ydata()) > 1
        else:
            assert len(ax.patches) == 2
        plt.close(figure)

    @pytest.mark.parametrize("shares", [(0.2,), (0.2, 0.5)])
    def test_seconds_are_drawn_on_a_scale_of_powers(self, experiment, rows, shares):
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        timed = rows[rows["metric"] == "ACC"].assign(metric="seconds")
        chosen = replace(experiment, missing=shares, metrics=("seconds",), record=())
        ax = bench.draw(chosen, timed).axes[0]
        assert (ax.get_xscale(), ax.get_yscale()) == (
            ("log", "linear") if len(shares) == 1 else ("linear", "log")
        )
        plt.close(ax.figure)

    def test_the_legend_has_methods_that_only_some_panels_have(self, experiment, rows):
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        both = replace(experiment.data[0], name="Letters")
        chosen = replace(experiment, data=(both, *experiment.data), record=())
        mine = rows[rows["method"] == "PCE"].assign(data="Letters")
        figure = bench.draw(chosen, pd.concat([mine, rows]))
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["PCE", "base"]
        plt.close(figure)

    def test_a_method_without_the_parameter_is_a_level_line(self, experiment, rows):
        mine = rows[(rows["method"] == "base") & (rows["metric"] == "ACC")]["value"].mean()
        lines = _lines_of(replace(experiment, record=(), vary="gamma"), rows)
        np.testing.assert_allclose(lines["base"].get_ydata(), mine)

    def test_one_method_has_a_line_for_every_share(self, experiment, rows):
        mine = rows[(rows["method"] == "PCE") & (rows["metric"] == "ACC") & (rows["setting"] != "")]
        lines = _lines_of(replace(experiment, record=(), vary="gamma", methods=experiment.methods[:1]), mine)
        assert list(lines) == ["0.2 missing", "0.5 missing"]
        for share in (0.2, 0.5):
            expected = mine[mine["missing"] == share].groupby("setting")["value"].mean()
            np.testing.assert_allclose(lines[f"{share} missing"].get_ydata(), expected)

    def test_a_trace_that_ended_early_counts_with_its_last_value(self, experiment):
        common = dict.fromkeys(Row._fields, "") | {"data": "Digits", "method": "PCE", "metric": "objective"}
        traces = {0: [1.0, 4.0], 1: [2.0, 3.0, 6.0]}
        rows = pd.DataFrame(
            [
                {**common, "missing": 0.2, "seed": seed, "step": step, "value": value}
                for seed, trace in traces.items()
                for step, value in enumerate(trace)
            ]
        )
        line = _lines_of(experiment, rows, metric="objective")["PCE"]
        np.testing.assert_allclose(line.get_ydata(), [1.5, 3.5, 5.0])

    def test_a_metric_is_drawn_where_traces_are_recorded_as_well(self, experiment, rows):
        np.testing.assert_allclose(_lines_of(experiment, rows)["PCE"].get_xdata(), [0.2, 0.5])


def _lines_of(experiment, rows, metric="ACC"):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = bench.draw(experiment, rows, metric=metric)
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    plt.close(figure)
    return lines


@pytest.mark.data
@pytest.mark.parametrize("name", bench.available())
def test_the_small_version_of_every_experiment_runs_without_failures(
    name, data_folder, monkeypatch, tmp_path
):
    monkeypatch.setenv("CONSILIENCE_DATA", str(data_folder))
    experiment = bench.load(name).in_small()
    rows = bench.run(experiment, tmp_path).read()
    errors = rows["error"][(rows["error"] != "") & ~rows["error"].str.startswith("left out above")]
    assert errors.tolist() == []
    assert bench.show(experiment, rows).startswith(f"# {experiment.title}")


def test_the_script_of_pictures_before_and_after_smoothing_draws_every_order():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    script = runpy.run_path(str(EXAMPLES / "reproduce_acmk_figure_1.py"))
    data = bench.samples._loaded("digits")
    X, y = data.X[:60], data.y[:60]
    found = script["tables"](X, 5, (1, 3))
    # Smoothing along the graph brings instances closer to each other, more so the higher the order.
    spread = [np.var(found[name], axis=0).sum() for name in ("k = 1", "k = 3")]
    assert spread[1] < spread[0]
    figure = script["draw"](found, y)
    assert [ax.get_title() for ax in figure.axes] == ["features", "k = 1", "k = 3"]
    plt.close(figure)


def test_the_script_of_consensus_matrices_draws_every_method():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    script = runpy.run_path(str(EXAMPLES / "reproduce_spce_figure_1.py"))
    y = np.repeat([0, 1, 2], 12)
    rng = np.random.default_rng(0)
    labels = np.column_stack([np.where(rng.random(36) < 0.2, rng.integers(0, 3, 36), y) for _ in range(6)])
    found = script["matrices"](labels, 3)
    assert list(found) == ["co-association", "RCE", "MEC", "RSEC", "SPCE"]
    for matrix in found.values():
        assert matrix.shape == (36, 36)
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
        assert script["purity_of_links"](matrix, y) > 0.5  # 11 of 35 by chance
    assert script["purity_of_links"](np.equal.outer(y, y).astype(float), y) == 1.0
    figure = script["draw"](found, y)
    assert len(figure.axes) == 5
    plt.close(figure)


def test_the_script_of_selection_by_labels_never_loses_by_it():
    script = runpy.run_path(str(EXAMPLES / "reproduce_eeimvc_selection.py"))
    experiment = bench.load("eeimvc-table-3")
    data = replace(experiment.data[0], file="digits_views", views=None, parameters={"kernel": "linear"})
    sample = make_sample(experiment, data, 0.1, 0)
    single, selected = script["both"](sample, "linear", (1.0,), 8)
    assert (single > 0).all()
    assert (selected >= single - 0.02).all()  # a single run of k-means may miss the least inertia


def test_on_the_command_line(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(TEXT)
    assert command(["bench", "run", "toy.toml", "--small"]) == 0
    assert "5 fits, 1 of them failed; rows are in bench-results/toy." in capfd.readouterr().err
    assert command(["bench", "show", "toy.toml", "--small"]) == 0
    assert "## NMI (max)" in capfd.readouterr().out
    assert command(["bench", "plot", "toy.toml", "--small", "--metric", "ACC", "-o", "toy.png"]) == 0
    assert (tmp_path / "toy.png").stat().st_size > 5000
    assert command(["bench", "show", "toy.toml", "--folder", "nowhere"]) == 2
    assert command(["bench", "plot", "toy.toml", "--metric", "AC", "-o", "toy.png"]) == 2
    assert command(["bench", "list"]) == 0
