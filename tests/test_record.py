"""The benchmark of record: what runs, that it goes on where it stopped, what is counted, and its page."""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.record import design, scale
from benchmarks.record.fits import METRICS, Fitter, Result, classified, one_hot, vote
from benchmarks.record.markdown import filled
from benchmarks.record.page import render, write
from benchmarks.record.rules import improved, taken
from benchmarks.record.runner import read, run, small
from benchmarks.record.scale import Case, Scaled
from benchmarks.record.statistics import against, critical_difference, holm, ranks
from benchmarks.record.summary import _scale, by_data, few_means, means, sections
from benchmarks.record.tables import make, planted, with_gaps
from scipy.stats import friedmanchisquare, wilcoxon

from consilience import LWEA, Partitions
from consilience.metrics import normalized_mutual_info_score
from tests.test_report_browser import browser  # noqa: F401 - a fixture

TABLE = design.Table("labels", "planted", "equal", "entries", 0.5, 10, 1.0, 120, 0)


def pretend(cell):
    """A fit that costs nothing."""
    value = np.random.default_rng(int(cell.digest, 16) % 2**32).random()
    return Result(cell.digest, *cell.table, cell.method, nmi_max=value)


class Killed(Exception):
    pass


def killed_after(n):
    left = iter(range(n))

    def fit(cell):
        if next(left, None) is None:
            raise Killed
        return pretend(cell)

    return fit


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    with pytest.raises(Killed):
        run(tmp_path / "killed", draws=1, only=("published",), fit=killed_after(5))
    assert len(read(tmp_path / "killed")) == 5
    left = run(tmp_path / "killed", draws=1, only=("published",), fit=pretend)
    assert left == run(tmp_path / "whole", draws=1, only=("published",), fit=pretend) - 5
    columns = ["cell", "nmi_max"]
    whole, pieces = (read(tmp_path / name)[columns].reset_index(drop=True) for name in ("whole", "killed"))
    pd.testing.assert_frame_equal(whole, pieces)
    assert run(tmp_path / "whole", draws=1, only=("published",), fit=pretend) == 0


def test_fits_made_again_take_the_place_of_the_old_ones(tmp_path):
    run(tmp_path, draws=1, only=("published",), fit=pretend)
    made = run(
        tmp_path,
        draws=1,
        only=("published",),
        fit=lambda cell: pretend(cell)._replace(nmi_max=2.0),
        again=("fuse_views",),
    )
    found = read(tmp_path)
    assert made == len(found)
    assert found["cell"].is_unique
    assert (found["nmi_max"] == 2.0).all()


def test_tables_side_by_side_and_named_methods_give_the_same_fits(tmp_path):
    run(tmp_path / "one", draws=1, only=("as published",), fit=pretend)
    n_named = run(tmp_path / "two", draws=1, only=("as published",), methods=("DAL",), jobs=2, fit=pretend)
    run(tmp_path / "two", draws=1, only=("as published",), jobs=2, fit=pretend)
    one, two = (read(tmp_path / name)[["cell", "nmi_max"]].reset_index(drop=True) for name in ("one", "two"))
    pd.testing.assert_frame_equal(one, two)
    assert n_named == len(design.AS_PUBLISHED)


def test_fits_in_one_file_are_where_a_run_goes_on(tmp_path):
    run(tmp_path / "first", draws=1, only=("published",), fit=pretend)
    (tmp_path / "second").mkdir()
    handed = tmp_path / "second" / "fits.parquet"
    small(read(tmp_path / "first")).to_parquet(handed, index=False)
    assert run(tmp_path / "second", draws=1, only=("published",), fit=pretend) == 0
    assert pd.read_parquet(handed)["nmi_max"].dtype == np.float32


def test_a_polished_fit_goes_on_from_the_one_before_it():
    both = Fitter()
    start, after = (both(design.Cell(TABLE, name)) for name in ("PCE", "PCE, polished"))
    alone = Fitter()(design.Cell(TABLE, "PCE, polished"))
    assert [after._asdict()[name] for name in METRICS] == [alone._asdict()[name] for name in METRICS]
    assert after.nmi_sqrt != start.nmi_sqrt
    assert after.seconds > start.seconds
    assert after.peak_mb >= start.peak_mb


def test_every_method_is_run_and_every_beginning_is_about_whole_draws():
    cells = list(design.cells(2))
    assert len({cell.digest for cell in cells}) == len(cells)
    from consilience import consensus, multiview

    assert {cell.method for cell in cells} >= set(consensus.__all__) | (set(multiview.__all__) - {"PSE"})
    leading = [
        c.table for c in cells if c.table[:4] == ("labels", "mixed", "VS", "entries") and c.method == "fuse"
    ]
    assert all(before.draw <= after.draw for before, after in pairwise(leading) if before[4:7] == after[4:7])
    assert set(design.EIGHT) | set(design.THREE) == set(design.MIXED)


def test_a_fit_is_scored_with_its_seed_and_versions():
    row, same = Fitter()(design.Cell(TABLE, "LWEA")), Fitter()(design.Cell(TABLE, "LWEA"))
    given = make(TABLE)
    expected = normalized_mutual_info_score(
        given.y, LWEA(given.n_clusters).fit_predict(given.labels), normalization="sqrt"
    )
    assert row.nmi_sqrt == pytest.approx(expected, abs=1e-12)
    assert not row.error
    assert row.seconds > 0
    assert "numpy" in row.versions
    assert row.seed == given.seed
    assert [row._asdict()[name] for name in METRICS] == [same._asdict()[name] for name in METRICS]
    other = make(TABLE._replace(draw=1))
    assert not np.array_equal(other.labels.codes, given.labels.codes)


def test_a_fit_that_fails_is_a_row_that_says_why():
    slow = Fitter()(design.Cell(TABLE._replace(rows=300), "CESHL"))
    assert slow.error == "left out above 250 rows"
    assert np.isnan(slow.nmi_max)


@pytest.mark.parametrize("mechanism", ["entries", "blocks", "not at random"])
def test_gaps_are_of_the_size_asked_for_and_leave_bases_linked(mechanism):
    _, base = planted("mixed numbers", 400, 12, np.random.default_rng(0))
    gaps, seed = with_gaps(base, mechanism, 0.6, 3)
    assert np.array_equal(gaps, with_gaps(base, mechanism, 0.6, seed)[0])
    assert (gaps < 0).mean() == pytest.approx(0.6, abs=0.06)
    assert (gaps >= 0).any(axis=1).all()
    assert len(Partitions.of(gaps).base_groups) == 1
    if mechanism == "blocks":
        assert len(np.unique(gaps < 0, axis=0)) <= 50


@pytest.mark.parametrize("half", ["1", "2"])
def test_annotators_are_as_the_table_says_and_follow_from_it(half):
    for table in (one for one in design.few_tables(f"B{half}", 1, 200) if one.factor == 1.0):
        given, same = make(table), make(table)
        np.testing.assert_array_equal(given.labels.codes, same.labels.codes)
        np.testing.assert_array_equal(given.y, same.y)
        assert given.labels.codes.shape == (len(given.y), table.bases)
        assert 2 <= table.bases <= 8
        assert len(given.y) <= 200
        assert (given.labels.codes >= 0).any(axis=1).all()
        assert len(given.labels.base_groups) == 1
        assert (given.labels.codes < 0).mean() <= 2 * table.missing
        again = make(table._replace(draw=table.draw + 8))
        assert again.labels.codes.shape != given.labels.codes.shape or (again.y != given.y).any()
        twice = make(table._replace(factor=2.0))
        np.testing.assert_array_equal(twice.labels.codes, given.labels.codes)
        assert twice.n_clusters == 2 * given.n_clusters


@pytest.mark.data
@pytest.mark.parametrize("group", ["A1", "A2", "C1", "C2", "D1", "D2"])
def test_few_sources_of_real_sets_have_numbers_of_their_own_and_are_linked(group, data_folder):
    tables = [table for table in design.few_tables(group, 0, 120) if table.factor == 1.0]
    made = [make(table) for table in tables]
    for table, given in zip(tables, made, strict=True):
        assert given.labels.codes.shape == (len(given.y), table.bases)
        assert len(given.y) <= 120
        assert given.n_clusters == len(np.unique(given.y))
        assert len(given.labels.base_groups) == 1
        assert (given.labels.n_clusters_per_partition > 1).all()
    np.testing.assert_array_equal(make(tables[0]).labels.codes, made[0].labels.codes)
    numbers = np.concatenate([given.labels.n_clusters_per_partition - given.n_clusters for given in made])
    assert (numbers < 0).any()
    assert (numbers > 0).any()


def test_rules_are_chosen_and_reported_on_other_data_sets():
    chosen, held_out = (
        {data for group, sets in design.FEW.items() if group.endswith(half) for data in sets} for half in "12"
    )
    assert not chosen & held_out
    for group in design.FEW:
        tables = [t for draw in range(design.DRAWS) for t in design.few_tables(group, draw)]
        assert sum(t.factor == 1.0 for t in tables) == design.FEW_TABLES
        assert sum(t.factor == 2.0 for t in tables) == design.FEW_OTHER_K
        assert {t.bases for t in tables} <= set(range(2, 9))
        assert all(t.rows <= 1000 for t in tables)


def test_a_vote_calls_clusters_after_the_nearest_of_the_reference():
    # The second source has two clusters, as wanted; the third splits one of them, the fourth is wrong once.
    table = Partitions.of(
        [
            ["p", "a", "x", None],
            ["q", "a", "x", "l"],
            ["r", "a", "y", "l"],
            ["r", "b", "z", "m"],
            ["p", "b", "z", "m"],
            ["q", None, "z", "l"],
        ]
    )
    np.testing.assert_array_equal(vote(table, 2), [0, 0, 0, 1, 1, 0])
    alone = Partitions.of([["a", None], ["a", "x"], ["b", "y"], [None, "z"]])
    assert vote(alone, 2)[3] in (0, 1)  # nobody can say what z is


def test_regret_is_what_the_best_single_method_has_more(made):
    rows, _ = made
    here = rows[(rows["part"] == design.FEW_PART) & (rows["factor"] == 1.0)]
    found = few_means(here)["nmi_max"]
    behind = []
    for group in ("A1", "B1", "C1", "D1"):
        tables = here[here["group"] == group].groupby(["data", "draw"])
        each = [one.set_index("method")["nmi_max"] for _, one in tables]
        behind.append(np.mean([one.drop("fuse").max() - one["LWGP"] for one in each]))
    assert found.loc["LWGP", "regret 1"] == pytest.approx(np.mean(behind))
    assert found.loc["LWGP", "A1"] == pytest.approx(
        here[(here["group"] == "A1") & (here["method"] == "LWGP")]["nmi_max"].mean()
    )


@pytest.mark.data
def test_views_that_share_nobody_are_left_out_for_every_method(data_folder):
    table = design.Table("views", "views", "BBCSport544", "per_view", 0.7, 0, 1.0, 60, 0)
    for method in ("fuse_views", "NEMO"):
        assert "nobody in common" in Fitter()(design.Cell(table, method)).error
    assert not Fitter()(design.Cell(table._replace(missing=0.3), "NEMO")).error


def test_the_classifier_is_not_scored_on_what_it_was_told():
    y, _ = planted("equal", 400, 1, np.random.default_rng(0))
    table = Partitions.of(np.column_stack([y, (y + 1) % 8]))
    labels = classified(table, y, 0.1, 0)
    assert (labels < 0).sum() == 40
    assert np.array_equal(labels[labels >= 0], y[labels >= 0])
    assert np.array_equal(classified(table, y, 0.9, 0), y)
    assert np.array_equal(one_hot(table).sum(axis=1), np.full(400, 2))


def test_ranks_and_tests_equal_those_of_scipy_and_of_tables():
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.random((11, 4)), columns=list("abcd"))
    scores["a"] += 0.5
    found = ranks(scores)
    by_hand = scores.rank(axis=1, ascending=False).mean().sort_values(kind="stable")
    assert found.methods == list(by_hand.index)
    assert np.allclose(found.rank, by_hand)
    assert found.p_value == pytest.approx(friedmanchisquare(*scores.to_numpy().T).pvalue)
    # Demsar (2006): q is 2.569 for four methods, 2.850 for six.
    assert critical_difference(4, 11) == pytest.approx(2.569 * np.sqrt(4 * 5 / 66), abs=1e-3)
    assert critical_difference(6, 30) == pytest.approx(2.850 * np.sqrt(6 * 7 / 180), abs=1e-3)
    told = {one.method: one for one in against(scores, "a")}
    raw = [wilcoxon(scores["a"] - scores[name]).pvalue for name in "bcd"]
    assert [told[name].p_value for name in "bcd"] == pytest.approx(holm(raw))
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    for first, last in found.groups():
        assert found.rank[last] - found.rank[first] <= found.difference


def results():
    """Rows as a run leaves them that was stopped in its second draw."""
    rows = []
    for cell in design.cells(2):
        if cell.table.draw == 1 and cell.table.missing > 0.4:
            continue
        rng = np.random.default_rng(int(cell.digest, 16) % 2**32)
        scores = {name: 0.6 - 0.4 * cell.table.missing + 0.05 * rng.random() for name in METRICS}
        left_out = cell.method in design.SLOW and cell.table.group == "mixed"
        row = Result(cell.digest, *cell.table, cell.method, agreement=rng.random(), seconds=0.1, peak_mb=1.0)
        row = row._replace(versions='{"numpy": "2.0"}', **({"error": "left out"} if left_out else scores))
        rows.append(row)
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def made():
    found = results()
    return found, sections(found, pd.DataFrame(columns=list(Scaled._fields)))


def test_means_are_about_draws_that_every_method_finished(made):
    rows, _ = made
    here = rows[(rows["group"] == "mixed") & (rows["bases"] == 20) & (rows["factor"] == 1.0)]
    here = here[(here["mechanism"] == "entries") & (here["missing"] == 0.3)]
    scores = by_data(here, ("fuse", "DAL"), "acc")
    plain = here.pivot_table(index="data", columns="method", values="acc")[["fuse", "DAL"]]
    pd.testing.assert_frame_equal(scores, plain, check_names=False)
    torn = here.drop(here.index[(here["draw"] == 1) & (here["data"] == "VS") & (here["method"] == "DAL")])
    first = here[here["draw"] == 0].pivot_table(index="data", columns="method", values="acc")[["fuse", "DAL"]]
    pd.testing.assert_frame_equal(by_data(torn, ("fuse", "DAL"), "acc"), first, check_names=False)


def test_a_rule_takes_another_answer_only_when_it_is_far_enough_ahead():
    score = pd.DataFrame({"DAL": [0.5, 0.5], "LWEA": [0.7, 0.1]})
    agreement = pd.DataFrame({"DAL": [0.5, 0.5], "LWEA": [0.6, 0.54]})
    assert taken(score, agreement, ("LWEA",), 0.1).tolist() == [0.7, 0.5]
    assert taken(score, agreement, ("LWEA",), 0.05).tolist() == [0.7, 0.1]


def test_the_mixture_is_believed_where_it_improves_dal_and_labels_are_enough():
    index = pd.MultiIndex.from_tuples(
        [("VS", 0, 20, 0.5), ("VS", 0, 20, 0.9), ("VS", 1, 20, 0.5)],
        names=["data", "draw", "bases", "missing"],
    )
    methods = ["DAL", "DAL, polished", "LWEA", "LWEA, polished", "MixtureConsensus"]
    score = pd.DataFrame([[0.1, 0.2, 0.3, 0.4, 0.5]] * 3, index, methods)
    agreement = pd.DataFrame([[0.5, 0.53, 0.5, 0.54, 0.53]] * 3, index, methods)
    agreement.loc[("VS", 1, 20, 0.5), ["DAL, polished", "LWEA"]] = 0.51, 0.61
    assert improved(score, agreement, 0.04).tolist() == [0.4, 0.1, 0.3]


def test_the_page_is_one_file_with_tables_that_sort_and_every_question(made):
    page = render(made[1], "<command>")
    assert "&lt;command&gt;" in page
    assert "<command>" not in page
    assert page.count("<table data-sortable>") == page.count("<table") > 10
    assert page.count("<svg") > 5
    assert "http://" not in page
    assert "https://" not in page
    for title in ("What was run", "Does fuse lead?", "How near is the limit?", "Incomplete views"):
        assert f">{title}</h2>" in page


def test_marked_places_of_a_text_are_filled_from_the_sections(made):
    text = "before <!-- record: Does fuse lead?; tables 1; rows 2 -->\nold\n<!-- end of record --> after"
    found = filled(text, made[1])
    assert filled(found, made[1]) == found
    assert "old" not in found
    assert found.startswith("before <!-- record: Does fuse lead?; tables 1; rows 2 -->\n")
    assert found.endswith("<!-- end of record --> after")
    lead = next(section for section in made[1] if section.title == "Does fuse lead?")
    lines = [line for line in found.splitlines() if line.startswith("|")]
    assert len(lines) == 4
    assert lines[0] == "| " + " | ".join(name for name, _ in lead.blocks[0].columns) + " |"
    with pytest.raises(ValueError, match="no section 'nothing'"):
        filled("<!-- record: nothing -->\n<!-- end of record -->", made[1])


@pytest.mark.browser
def test_a_click_sorts_a_table_and_chooses_another_metric(made, browser, tmp_path):  # noqa: F811
    path = tmp_path / "record.html"
    write(made[1], path, "python -m benchmarks.record")
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(path.as_uri())
    table = page.locator("section:has-text('Labels missing entry by entry') table").first
    for direction in ("descending", "ascending"):
        table.locator("th button").nth(1).click()
        assert table.locator("th").nth(1).get_attribute("aria-sort") == direction
        values = [float(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
        assert values == sorted(values, reverse=direction == "descending")
    page.get_by_role("button", name="ARI", exact=True).first.click()
    assert not table.is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert said == []
    page.close()


def test_what_is_handed_on_has_means_only(made):
    found = means(made[0])
    fuse = found[(found["method"] == "fuse") & (found["data"] == "VS") & (found["missing"] == 0.0)]
    assert set(fuse["draws"]) <= {1, 2}
    assert "cell" not in found
    assert (found["draws"] > 0).all()
    assert found["nmi_sqrt"].notna().all()


SMALL = Case("small", "somebody", 400, 20, 0.3, "a tool")
linux = pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are measured as Linux does")


@linux
def test_a_method_is_measured_in_a_program_of_its_own():
    row = scale.fitted(SMALL, scale.OURS[1], SMALL.n)
    assert not row.error
    assert row.ari > 0.9
    assert row.seconds > 0
    assert row.peak_mb > 20
    assert "consilience" in row.versions


@linux
def test_what_a_small_program_uses_is_not_what_its_parent_does():
    table = np.ones(40_000_000)
    used = scale.limited([sys.executable, "-I", "-c", "print('{}')"])
    assert used["exit"] == 0
    assert used["peak_mb"] < table.nbytes / 2**20


@linux
@pytest.mark.parametrize(
    ("program", "reason"),
    [("while True: pass", "more than 1 processor seconds"), ("bytes(2 << 30)", "MemoryError")],
)
def test_limits_end_a_program_and_say_which(monkeypatch, program, reason):
    monkeypatch.setattr(scale, "SECONDS", 1)
    monkeypatch.setattr(scale, "GIGABYTES", 1)
    assert reason in scale.why(scale.limited([sys.executable, "-I", "-c", program]))


@linux
def test_the_reason_of_r_is_found_among_its_last_words():
    said = "hello\nError in f(x) : \n  cannot allocate vector of size 9.8 Gb\nCalls: f\nExecution halted\n"
    used = {"exit": 1, "seconds": 3.0, "peak_mb": 2048.0, "error": said, "said": ""}
    assert scale.why(used) == "Error in f(x) : cannot allocate vector of size 9.8 Gb (exit 1, 2.0 GB)"


def climbed(cost, whole=64_000):
    """Sizes that a method of such a cost is given, and the largest that it finished."""
    tried = []

    def fit(n):
        tried.append(n)
        error = "too long" if cost(n) > scale.SECONDS else ""
        return Scaled("", "", whole, n, 1, 0.0, "", "it", seconds=cost(n), error=error)

    largest = scale.climb(SMALL._replace(n=whole), fit)
    return tried, largest and largest.n


def test_a_tool_climbs_to_the_largest_size_that_it_finishes():
    assert climbed(lambda n: 1e-4 * n) == ([1000, 4000, 16000, 64000], 64000)
    assert climbed(lambda n: 1e-6 * n**2) == ([1000, 4000, 16000], 16000)  # 256 s, and twice that at least
    assert climbed(lambda n: 2e-6 * n**2) == ([1000, 4000, 8000, 16000], 8000)
    assert climbed(lambda n: 2e-6 * n**2 if n < 8000 else 1e9) == ([1000, 4000, 8000], 4000)
    assert climbed(lambda n: 1e9) == ([1000], None)
    assert climbed(lambda n: 1.0, whole=300) == ([300], 300)


def test_a_tool_gets_what_it_can_take_and_is_left_out_where_it_is_not_installed(capsys):
    full, gaps, cells = SMALL._replace(missing=0.0), SMALL, SMALL._replace(features=5)
    for method in scale.programs(None, None):
        expected = [False, False, True] if method.columns else [True, method.gaps, method.gaps]
        assert [scale.takes(method, case) for case in (full, gaps, cells)] == expected
        assert not scale.works(method)
        assert f"{method.name} is left out" in capsys.readouterr().err


def test_scale_says_how_far_a_tool_came_and_puts_fuse_beside_it():
    def row(method, n, seconds, error="", **more):
        return Scaled(
            "small", "by", 4000, n, 6, 0.0, "tool", method, float("nan"), seconds, 10.0, 1.0, error, **more
        )

    rows = [
        row("fuse", 4000, 2.0, versions='{"numpy": "2.0"}'),
        row("fuse", 2000, 1.0),
        row("DAL", 4000, 1.0),
        row("quick", 4000, 0.5),
        row("slow", 1000, 10.0),
        row("slow", 2000, 40.0),
        row("slow", 4000, float("nan"), "out of memory"),
        row("slower", 2000, 200.0),
        row("begun", 1000, 10.0),
        row("never", 1000, float("nan"), "out of memory"),
    ]
    section = _scale(pd.DataFrame(rows))
    assert section.title == "Sizes that were out of reach"
    assert "numpy 2.0" in section.text[-1]
    _, whole, beside = section.blocks
    assert {line[1]: line[-1] for line in whole.rows} == {
        "fuse": "",
        "DAL": "",
        "quick": "",
        "slow": "with 4,000: out of memory",
        "slower": "with 2,000: 200 s, so that twice as many were not tried",
        "begun": "with 1,000: 10 s, and no more so far",
        "never": "with 1,000: out of memory",
    }
    assert {line[1]: (line[2], line[5]) for line in beside.rows} == {
        "quick": (4000, 0.25),
        "slow": (2000, 40.0),
        "slower": (2000, 200.0),
    }


def test_shuffling_rows_ends_the_lead_of_the_tensor_and_of_nothing_else():
    path = Path(__file__).parents[1] / "examples" / "row_order.py"
    spec = importlib.util.spec_from_file_location("row_order", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    y, base = example.table(None, 150)
    chosen = {name: example.METHODS[name] for name in ("low-rank tensor", "LWEA", "fuse")}
    found = example.compare(y, base, chosen)
    in_order, shuffled, same = found["low-rank tensor"]
    assert in_order > shuffled + 0.1
    assert same < 1.0
    for name in ("LWEA", "fuse"):
        assert found[name][0] == pytest.approx(found[name][1], abs=1e-12)
        assert found[name][2] == 1.0
