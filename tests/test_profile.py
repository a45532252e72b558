"""Profiles of clusters in other columns: against textbooks, their laws, and what is said of bad columns."""

import json
import types
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from scipy.stats import fisher_exact, kstest

from consilience import Partitions, fuse
from consilience.diagnostics import profile
from tests.oracles.profile import (
    plain_category_effect,
    plain_chi_square,
    plain_kruskal,
    plain_number_effect,
)


def clustered(labels, ids=None, **base):
    """What `profile` reads of a fusion, with labels as given."""
    labels = np.asarray(labels)
    base = base or {"team": np.maximum(labels, 0)}
    table = Partitions.of(base, index=ids)
    names = tuple(map(str, range(labels.max() + 1)))
    return types.SimpleNamespace(labels=labels, partitions=table, names=names)


def by_name(found):
    return {column.name: column for column in found.columns}


def assert_alike(first, second):
    """The same columns, up to rounding."""
    assert [column.name for column in first.columns] == [column.name for column in second.columns]
    for one, other in zip(first.columns, second.columns, strict=True):
        assert_allclose(one.effect, other.effect, atol=1e-12)
        assert one.p_value == other.p_value
        assert one.missing == other.missing


@pytest.fixture
def mixed():
    """Four clusters; two columns that follow them, two of chance, with gaps and ties, one gap by cluster."""
    rng = np.random.default_rng(0)
    labels = rng.choice(4, 240, p=[0.4, 0.3, 0.2, 0.1])
    income = np.exp(rng.normal(size=240) + 0.5 * labels)
    income[rng.random(240) < 0.2] = np.nan
    visits = rng.integers(0, 6, 240).astype(float)
    visits[(labels == 1) & (rng.random(240) < 0.7)] = np.nan
    region = np.where(rng.random(240) < 0.5, rng.integers(0, 3, 240), labels % 3)
    region = [None if rng.random() < 0.1 else "nsw"[r] for r in region]
    colour = [["red", "green", "blue", None][c] for c in rng.integers(0, 4, 240)]
    frame = pd.DataFrame({"income": income, "visits": visits, "region": region, "colour": colour})
    return labels, frame


def entries(column):
    return [value if isinstance(value, str) else None for value in column]


class TestAgainstTextbooks:
    def test_effects(self, mixed):
        labels, frame = mixed
        found = by_name(profile(clustered(labels), frame, n_permutations=1))
        for name in ("income", "visits"):
            assert_allclose(
                found[name].effect, plain_number_effect(frame[name].to_numpy(), labels), rtol=1e-9
            )
            assert found[name].missing == pytest.approx(frame[name].isna().mean())
        for name in ("region", "colour"):
            assert_allclose(
                found[name].effect, plain_category_effect(entries(frame[name]), labels), rtol=1e-9
            )
        assert found["income"].effect > 0.3
        assert found["region"].effect > 0.3

    @pytest.mark.parametrize("seed", range(6))
    def test_p_value_of_a_single_column_is_that_of_the_test(self, seed):
        """By permutation and by large numbers: apart by the error of 1999 draws and little else."""
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 3, 300)
        numbers = rng.normal(size=300) + 0.1 * labels
        numbers[rng.random(300) < 0.3] = np.nan
        letters = [None if rng.random() < 0.2 else "abcd"[c] for c in rng.integers(0, 4, 300)]
        for column, expected in (
            (numbers, plain_kruskal(numbers, labels)),
            (letters, plain_chi_square(letters, labels)),
        ):
            frame = pd.DataFrame({"x": column})
            found = profile(clustered(labels), frame, n_permutations=1999, random_state=seed)
            assert abs(found.columns[0].p_value - expected) < 4 * 0.5 / np.sqrt(1999)

    def test_small_tables_are_exact_and_gaps_by_cluster_are_no_difference(self):
        labels = np.repeat([0, 1], [12, 8])
        city = ["Rome"] * 4 + ["Bonn"] * 4 + [None] * 4 + ["Rome"] * 8
        expected = fisher_exact([[4, 8], [4, 0]]).pvalue
        found = profile(clustered(labels), pd.DataFrame({"city": city}), n_permutations=4999)
        assert abs(found.columns[0].p_value - expected) < 4 * np.sqrt(expected / 4999)
        assert 0.05 < expected < 0.1

    def test_direction_of_numbers(self, mixed):
        labels, frame = mixed
        column = by_name(profile(clustered(labels), frame, n_permutations=1))["income"]
        every = frame["income"]
        for c, found in enumerate(column.clusters):
            mine = every[labels == c]
            assert (found.cluster, found.n) == (c, mine.notna().sum())
            assert found.missing == pytest.approx(mine.isna().mean())
            assert_allclose([found.mean, found.median], [mine.mean(), mine.median()])
            assert_allclose(found.shift, (mine.mean() - every.mean()) / every.std(ddof=0))

    def test_direction_of_categories(self, mixed):
        labels, frame = mixed
        column = by_name(profile(clustered(labels), frame, n_permutations=1))["region"]
        overall = frame["region"].value_counts(normalize=True)
        for c, found in enumerate(column.clusters):
            mine = frame["region"][labels == c]
            shares = mine.value_counts(normalize=True)
            expected = {level: share for level, share in shares.items() if share > overall[level]}
            assert {level.level for level in found.levels} == set(expected)
            for level in found.levels:
                assert level.count == (mine == level.level).sum()
                assert_allclose(level.share, expected[level.level])
                assert_allclose(level.lift, expected[level.level] / overall[level.level])
            amounts = [level.share * np.log(level.lift) for level in found.levels]
            assert amounts == sorted(amounts, reverse=True)


class TestLaws:
    def test_two_values_are_a_number_and_a_category_alike(self):
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 3, 2000)
        number = (rng.random(2000) < 0.3 + 0.2 * labels).astype(int)
        frame = pd.DataFrame({"number": number, "flag": number.astype(bool)})
        found = by_name(profile(clustered(labels), frame, n_permutations=1))
        assert found["flag"].kind == "category"
        assert found["number"].effect == pytest.approx(found["flag"].effect, abs=1 / 2000)

    def test_order_of_rows_and_columns_and_numbers_of_clusters_change_nothing(self, mixed):
        labels, frame = mixed
        rows, names = np.random.default_rng(1).permutation(len(labels)), np.array([2, 0, 3, 1])
        first, by_rows, by_columns, by_clusters = (
            profile(clustered(z), table, n_permutations=499)
            for z, table in (
                (labels, frame),
                (labels[rows], frame.iloc[rows].reset_index(drop=True)),
                (labels, frame[frame.columns[::-1]]),
                (names[labels], frame),
            )
        )
        for other in (by_rows, by_columns, by_clusters):
            assert_alike(first, other)
        for one, other in zip(first.columns, by_clusters.columns, strict=True):
            for c, cluster in enumerate(one.clusters):
                there = other.clusters[names[c]]
                assert (there.n, there.missing) == (cluster.n, cluster.missing)
                if one.kind == "number":
                    assert_allclose(there.shift, cluster.shift, atol=1e-12)
                else:
                    assert there.as_dict()["levels"] == cluster.as_dict()["levels"]

    def test_scale_does_not_matter(self, mixed):
        labels, frame = mixed
        other = frame.assign(income=np.log(frame["income"]))
        assert_alike(profile(clustered(labels), frame), profile(clustered(labels), other))

    def test_counted_rows_are_repeated_rows(self, mixed):
        labels, frame = mixed
        times = np.arange(len(labels)) % 3 + 1
        # A different label row for each row of the frame, so that a distinct row has one row of the frame.
        repeated = clustered(np.repeat(labels, times), team=np.repeat(np.arange(len(labels)), times))
        table = repeated.partitions.distinct
        place = np.empty(len(labels), dtype=int)
        place[repeated.partitions.inverse] = np.repeat(np.arange(len(labels)), times)
        counted = types.SimpleNamespace(labels=labels[place], partitions=table, names=repeated.names)
        whole = profile(repeated, frame.loc[np.repeat(np.arange(len(labels)), times)].reset_index(drop=True))
        short = profile(counted, frame.iloc[place].reset_index(drop=True))
        assert_alike(whole, short)
        assert whole.n_instances == short.n_instances == times.sum()

    def test_same_seed_same_answer(self, mixed):
        labels, frame = mixed
        weak = frame[["colour", "visits"]]
        first, again, other = (profile(clustered(labels), weak, random_state=seed) for seed in (1, 1, 2))
        assert_alike(first, again)
        assert [c.p_value for c in first.columns] != [c.p_value for c in other.columns]

    def test_p_values_are_uniform_where_clusters_mean_nothing(self):
        found = []
        for seed in range(150):
            rng = np.random.default_rng(seed)
            x = rng.normal(size=40)
            x[rng.random(40) < 0.3] = np.nan
            frame = pd.DataFrame({"x": x})
            found.append(
                profile(clustered(rng.integers(0, 3, 40)), frame, n_permutations=99, random_state=seed)
            )
        p_values = [one.columns[0].p_value for one in found]
        assert kstest(p_values, "uniform").pvalue > 0.01

    def test_the_correction_holds_over_all_columns(self):
        """Twelve columns of chance, four of them copies: the least p-value is as small as it says."""
        least = []
        for seed in range(150):
            rng = np.random.default_rng(seed)
            frame = pd.DataFrame({f"x{j}": rng.normal(size=60) for j in range(4)})
            frame = frame.join(frame.add_suffix("copy")).join(
                pd.DataFrame({f"c{j}": rng.choice(list("ab"), 60) for j in range(4)})
            )
            found = profile(clustered(rng.integers(0, 3, 60)), frame, n_permutations=99, random_state=seed)
            least.append(min(column.p_value for column in found.columns))
        share = np.mean(np.array(least) <= 0.1)
        assert share <= 0.1 + 3 * np.sqrt(0.09 / 150)
        assert share >= 0.1 - 3 * np.sqrt(0.09 / 150)  # and it is not too careful

    def test_a_strong_column_does_not_hide_behind_many_of_chance(self):
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 2, 100)
        frame = (
            pd.DataFrame(rng.normal(size=(100, 60))).add_prefix("x").assign(y=labels + rng.normal(size=100))
        )
        found = profile(clustered(labels), frame)
        assert found.columns[0].name == "y"
        assert found.columns[0].p_value == 1 / 200
        assert [c.p_value for c in found.columns[1:] if c.p_value < 0.05] == []

    def test_inputs_stay_untouched(self, mixed):
        labels, frame = mixed
        before, kept = frame.copy(), labels.copy()
        profile(clustered(labels), frame)
        pd.testing.assert_frame_equal(frame, before)
        assert (labels == kept).all()


class TestFrames:
    def test_all_kinds_say_the_same(self, mixed):
        labels, frame = mixed
        frame = frame.assign(flag=frame["income"] > 1, count=frame["visits"].astype("Int64"))
        first = profile(clustered(labels), frame)
        for other in (
            pl.from_pandas(frame),
            pa.Table.from_pandas(frame),
            frame.convert_dtypes(),
            frame.assign(region=frame["region"].astype("category"), income=frame["income"].astype(object)),
            pl.from_pandas(frame).with_columns(pl.col("colour").cast(pl.Categorical)),
        ):
            assert_alike(first, profile(clustered(labels), other))
        assert {c.name: c.kind for c in first.columns} == {
            "income": "number",
            "visits": "number",
            "count": "number",
            "region": "category",
            "colour": "category",
            "flag": "category",
        }

    def test_numbers_that_are_categoricals_are_categories(self, mixed):
        labels, frame = mixed
        other = pd.DataFrame({"visits": frame["visits"].astype("category")})
        assert profile(clustered(labels), other).columns[0].kind == "category"

    def test_joined_by_id(self, mixed):
        labels, frame = mixed
        ids = [f"p{i}" for i in range(len(labels))]
        fusion = clustered(labels, ids)
        first = profile(clustered(labels), frame)
        moved = frame.assign(who=ids).sample(frac=1, random_state=0)
        assert_alike(first, profile(fusion, moved, on="who"))
        assert_alike(first, profile(fusion, moved.set_index("who")))
        assert_alike(first, profile(fusion, pl.from_pandas(moved), on="who"))
        extra = pd.concat([moved, moved.head(2).assign(who=["x", "y"])])
        found = profile(fusion, extra, on="who")
        assert_alike(first, found)
        assert str(found.warnings[0]).startswith("the fusion has no instance for 2 rows of the frame. Hint")

    def test_the_column_of_ids_is_known_by_its_name(self):
        teams = pd.DataFrame({"who": list("abcdef"), "t": [0, 0, 0, 1, 1, 1], "u": [1, 1, 1, 0, 0, 0]})
        frame = pl.DataFrame({"who": list("fedcba"), "age": [6, 5, 4, 3, 2, 1]})
        found = profile(fuse(teams, 2, index="who", method="DAL"), frame)
        assert [column.name for column in found.columns] == ["age"]
        assert found.left_out == ()

    def test_instances_without_a_row_have_no_values(self):
        fusion = clustered([0, 0, 0, 1, 1, 1], list("abcdef"))
        found = profile(fusion, pd.DataFrame({"age": [1, 2, 8, 9]}, index=list("abde")))
        assert found.columns[0].missing == pytest.approx(1 / 3)
        assert "no row for 2 instances, such as 'c'. Hint" in found.warnings[0]

    def test_unassigned_instances_are_left_out(self):
        found = profile(clustered([0, 0, 0, 1, 1, 1, -1]), pd.DataFrame({"age": [1, 2, 3, 7, 8, 9, 1000]}))
        assert found.n_instances == 6
        assert found.columns[0].clusters[0].shift == pytest.approx(-found.columns[0].clusters[1].shift)
        assert "1 instance in no cluster" in found.warnings[0]


class TestWhatIsSaid:
    def test_of_columns_that_say_nothing(self):
        labels = np.arange(12) % 2
        frame = pd.DataFrame(
            {
                "same": [3] * 12,
                "empty": [None] * 12,
                "nan": [np.nan] * 12,
                "key": [f"id{i}" for i in range(12)],
                "one side": [float(i) if i % 2 else np.nan for i in range(12)],
                "lists": [[i] for i in range(12)],
                "team": list("ab") * 6,
                "good": np.arange(12) // 3,
            }
        )
        found = profile(clustered(labels, team=labels), frame)
        said = {one.name: one.reason for one in found.left_out}
        assert [column.name for column in found.columns] == ["good"]
        assert said.keys() == set(frame.columns) - {"good"}
        for name, words in {
            "same": "same value everywhere",
            "empty": "no values",
            "nan": "no values",
            "key": "occur only once",
            "one side": "in one cluster",
            "lists": "neither numbers nor categories",
            "team": "one of the base clusterings",
        }.items():
            assert words in said[name], name
            assert f"left out: {name} (" in str(found)

    def test_of_numbers_and_dates_in_text(self):
        labels = np.repeat([0, 1], 20)
        rng = np.random.default_rng(0)
        amount = 1000.0 + 2000.0 * labels + rng.normal(0, 50, 40)
        days = pd.Timestamp("2020-01-01") + pd.to_timedelta(100 * labels + rng.integers(0, 20, 40), "D")
        plain = pd.DataFrame({"revenue": amount.round(2), "since": days})
        text = pd.DataFrame(
            {
                "revenue": [f"{value:,.2f}" for value in amount],
                "since": days.strftime("%d.%m.%Y"),
                "tier": ["gold", "?"] * 20,
            }
        )
        text.loc[3, "revenue"] = "n/a"
        plain.loc[3, "revenue"] = np.nan
        found, wanted = profile(clustered(labels), text), profile(clustered(labels), plain)
        assert {column.name: column.kind for column in found.columns} == {
            "revenue": "number",
            "since": "date",
        }
        for one, other in zip(found.columns, wanted.columns, strict=True):
            assert one.as_dict() == other.as_dict()
        assert ": mean 2020-0" in str(found)
        assert [(one.name, one.reason) for one in found.left_out] == [
            ("tier", "it has the same value everywhere")
        ]

    def test_of_positions_that_look_like_names(self):
        labels = np.arange(12) % 2
        table = Partitions.of(np.column_stack([labels, labels]))
        fusion = types.SimpleNamespace(labels=labels, partitions=table, names=("0", "1"))
        found = profile(fusion, pd.DataFrame(np.random.default_rng(0).normal(size=(12, 2))))
        assert sorted(column.name for column in found.columns) == ["0", "1"]

    def test_of_one_cluster(self):
        found = profile(clustered(np.zeros(6, dtype=int)), pd.DataFrame({"age": range(6)}))
        assert found.columns == ()
        assert found.left_out[0].reason == "all its values are in one cluster"
        assert "0 columns of 6 instances in 1 cluster" in str(found)

    def test_a_cluster_without_values_is_not_a_number(self):
        frame = pd.DataFrame({"x": [1, 2, 5, 6, None], "c": ["a", "a", "b", "b", None]})
        found = by_name(profile(clustered([0, 0, 1, 1, 2]), frame))
        assert np.isnan(found["x"].clusters[2].mean)
        assert found["x"].clusters[2].n == 0
        assert found["c"].clusters[2].levels == ()

    def test_is_plain_and_readable(self, mixed):
        labels, frame = mixed
        fusion = clustered(labels)
        fusion.names = ("many", "some", "few", "rare")
        found = profile(fusion, frame.assign(day=date(2024, 1, 1), x=[1.0, None] * 120))
        plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert plain["cluster_names"] == ["many", "some", "few", "rare"]
        assert plain["columns"][0]["clusters"][0].keys() >= {"cluster", "n", "missing"}
        assert plain["left_out"][0].keys() == {"name", "reason"}
        text = str(found)
        assert text.splitlines()[2].split() == ["column", "effect", "p-value", "missing", "most", "different"]
        assert "many: mean" in text
        assert [line.split()[0] for line in text.splitlines()[3:7]] == [c.name for c in found.columns[:4]]
        effects = [column.effect for column in found.columns]
        assert effects == sorted(effects, reverse=True)
        assert len(repr(found)) < 110
        assert len(repr(found.columns[0])) < 110

    @pytest.mark.parametrize(
        ("given", "settings", "message"),
        [
            (pd.DataFrame({"x": [1, 2]}), {}, "the frame has 2 rows, the fusion 4 instances.* Hint"),
            (pd.DataFrame({"x": [1, 2, 3, np.inf]}), {}, "column 'x' has an infinite value in row 3"),
            (pd.DataFrame([[1, 2]] * 4, columns=["x", "x"]), {}, "two columns have one name.*Hint"),
            (pd.DataFrame([[1, 2]] * 4, columns=[1, "1"]), {}, "two columns are named '1'. Hint"),
            (pd.DataFrame({"x": [1, 2, 3, 4]}), {"on": "y"}, "the frame has no column 'y'. Hint"),
            (pd.DataFrame({"x": [1, 2, 3, 4]}), {"on": "x"}, "the instances of the fusion have none. Hint"),
            (
                pd.DataFrame({"x": [1, 2, 3, 4]}),
                {"n_permutations": 0},
                "'n_permutations' parameter of profile",
            ),
            (pl.LazyFrame({"x": [1]}), {}, "the frame is lazy. Hint"),
            ([1, 2, 3, 4], {}, "profile needs a frame, got list. Hint"),
        ],
    )
    def test_of_what_cannot_be_read(self, given, settings, message):
        with pytest.raises((ValueError, TypeError), match=message):
            profile(clustered([0, 0, 1, 1]), given, **settings)

    @pytest.mark.parametrize(
        ("given", "settings", "message"),
        [
            (
                pl.DataFrame({"x": [1, 2]}),
                {},
                "the instances of the fusion have ids, the frame has none. Hint",
            ),
            (pd.DataFrame({"x": [1, 2]}, index=["a", "a"]), {}, "the id 'a' occurs twice in the frame"),
            (pl.DataFrame({"k": ["a", None]}), {"on": "k"}, "row 1 of the frame has no id"),
            (pd.DataFrame({"x": [1, 2]}), {}, "the frame has 0, the fusion has 'a'. Hint"),
        ],
    )
    def test_of_ids_that_do_not_fit(self, given, settings, message):
        with pytest.raises(ValueError, match=message):
            profile(clustered([0, 0, 1, 1], list("abcd")), given, **settings)

    def test_of_what_is_no_fusion(self):
        with pytest.raises(TypeError, match=r"profile needs a Fusion, got list\. Hint"):
            profile([0, 1], pd.DataFrame({"x": [1, 2]}))
