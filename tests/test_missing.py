"""Laws of removal: exact counts, kept averages, dependence that is really there, nobody disappears."""

from math import comb

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from consilience.missing import drop_labels, drop_views

MECHANISMS = ["per_base", "mcar", "mar", "mnar"]
PROTOCOLS = ["per_view", "mcar", "stratified", "one_lost", "some_lost", "mar", "mnar"]
RATIOS = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9]


def table(n=400, m=5, k=4, seed=0):
    """Independent columns: whatever depends on another column was put there by the mechanism."""
    return np.random.default_rng(seed).integers(0, k, (n, m))


def with_holes(labels, share=0.3, seed=1):
    return np.where(np.random.default_rng(seed).random(labels.shape) < share, -1, labels)


def half_up(x):
    return int(np.floor(x + 0.5))


def p_value(groups, missing):
    """Chance of so large a difference in missing shares between groups if there were none."""
    counts = np.array([[np.sum(groups == g), np.sum(missing[groups == g])] for g in np.unique(groups)])
    counts[:, 0] -= counts[:, 1]
    return chi2_contingency(counts).pvalue


# Counts and averages


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("keep_seen", [True, False])
def test_per_base_removes_exactly_the_share(ratio, keep_seen):
    for n, m in [(400, 12), (101, 12), (7, 12)]:
        partial = drop_labels(table(n, m), ratio, keep_seen=keep_seen, random_state=3)
        np.testing.assert_array_equal((partial < 0).sum(axis=0), half_up(ratio * n))


def test_per_base_stays_exact_up_to_the_last_feasible_ratio():
    # With m columns and a share of (m - 1) / m gone, every instance keeps exactly one label.
    for m in (2, 3, 5, 8):
        partial = drop_labels(table(40 * m, m), (m - 1) / m, random_state=m)
        np.testing.assert_array_equal((partial >= 0).sum(axis=1), 1)
        np.testing.assert_array_equal((partial >= 0).sum(axis=0), 40)


def test_per_base_counts_only_what_is_there():
    labels = with_holes(table(2000, 6), 0.4)
    partial = drop_labels(labels, 0.5, random_state=0)
    there = (labels >= 0).sum(axis=0)
    left = (partial >= 0).sum(axis=0)
    np.testing.assert_array_equal(left, there - [half_up(0.5 * count) for count in there])


@pytest.mark.parametrize("mechanism", ["mcar", "mar", "mnar"])
@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("strength", [0.0, 2.0, 8.0])
def test_the_average_ratio_is_kept(mechanism, ratio, strength):
    n, m = 4000, 6
    skewed = np.random.default_rng(0).choice(4, (n, m), p=[0.7, 0.2, 0.07, 0.03])
    partial = drop_labels(
        skewed, ratio, mechanism=mechanism, strength=strength, keep_seen=False, random_state=5
    )
    # Five standard deviations of a share of n * m independent entries.
    assert (partial < 0).mean() == pytest.approx(ratio, abs=5 * np.sqrt(ratio * (1 - ratio) / (n * m)))
    np.testing.assert_allclose((partial < 0).mean(axis=0), ratio, atol=5 * np.sqrt(ratio * (1 - ratio) / n))


def test_ratio_zero_changes_nothing():
    labels = with_holes(table())
    for mechanism in MECHANISMS:
        np.testing.assert_array_equal(drop_labels(labels, 0, mechanism=mechanism), labels)
    for protocol in PROTOCOLS:
        kept = drop_views(labels >= 0, 0.0, protocol=protocol, y=table()[:, 0])
        np.testing.assert_array_equal(kept, labels >= 0)


# Nobody disappears


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("ratio", [0.5, 0.9, 0.99])
def test_every_seen_instance_stays_seen(mechanism, ratio):
    for seed, labels in enumerate([table(), table(300, 2), table(50, 3, 1), with_holes(table(), 0.7)]):
        partial = drop_labels(labels, ratio, mechanism=mechanism, random_state=seed)
        np.testing.assert_array_equal((partial >= 0).any(axis=1), (labels >= 0).any(axis=1))
        # Nothing new and nothing renamed.
        assert np.all((partial == labels) | (partial == -1))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_instances_may_disappear_if_told(mechanism):
    partial = drop_labels(table(), 0.9, mechanism=mechanism, keep_seen=False, random_state=0)
    assert (partial < 0).all(axis=1).any()


def test_repair_never_removes_more_than_asked():
    rng = np.random.default_rng(0)
    for seed in range(40):
        n, m = rng.integers(3, 40), rng.integers(1, 7)
        labels = with_holes(table(n, m, seed=seed), rng.random(), seed)
        ratio = rng.random() * 0.99
        partial = drop_labels(labels, ratio, random_state=seed)
        there, left = (labels >= 0).sum(axis=0), (partial >= 0).sum(axis=0)
        assert np.all(left >= [count - half_up(ratio * count) for count in there])
        np.testing.assert_array_equal((partial >= 0).any(axis=1), (labels >= 0).any(axis=1))


def test_repair_prefers_no_base():
    # Instances left with one label should have it in any column: 12 000 of them, 4 columns.
    partial = drop_labels(table(20_000, 4), 0.7, random_state=0)
    single = (partial >= 0)[(partial >= 0).sum(axis=1) == 1]
    np.testing.assert_allclose(single.mean(axis=0), 0.25, atol=0.02)


# Dependence


def test_mnar_depends_on_the_label_itself_and_mcar_does_not():
    labels = table(4000, 4)
    for mechanism, dependent in [("mnar", True), ("mcar", False), ("mar", False), ("per_base", False)]:
        gone = drop_labels(labels, 0.4, mechanism=mechanism, keep_seen=False, random_state=1) < 0
        values = [p_value(labels[:, j], gone[:, j]) for j in range(4)]
        assert max(values) < 1e-10 if dependent else min(values) > 1e-3


def test_mar_depends_on_another_visible_label_and_on_nothing_hidden():
    labels = table(6000, 4)
    for mechanism, dependent in [("mar", True), ("mcar", False), ("mnar", False), ("per_base", False)]:
        gone = drop_labels(labels, 0.4, mechanism=mechanism, keep_seen=False, random_state=2) < 0
        visible, hidden = np.ones((4, 4)), np.ones((4, 4))
        for i in range(4):
            for j in set(range(4)) - {i}:
                seen = ~gone[:, j]
                visible[i, j] = p_value(labels[seen, j], gone[seen, i])
                hidden[i, j] = p_value(labels[~seen, j], gone[~seen, i])
        # Each base but the first in the chain looks at the one before it, where that is visible.
        assert (visible < 1e-10).sum() == (3 if dependent else 0)
        assert visible[visible >= 1e-10].min() > 1e-4
        assert hidden.min() > 1e-4


def test_strength_is_the_log_odds_between_the_extremes():
    labels = table(200_000, 2, k=3)
    gone = drop_labels(labels, 0.3, mechanism="mnar", strength=1.5, keep_seen=False, random_state=0) < 0
    for j in range(2):
        share = np.array([gone[labels[:, j] == k, j].mean() for k in range(3)])
        odds = np.log(share / (1 - share))
        assert odds.max() - odds.min() == pytest.approx(1.5, abs=0.06)


def test_mar_with_one_base_is_refused():
    with pytest.raises(ValueError, match=r"'mar' of drop_labels needs at least 2 .* Hint: "):
        drop_labels(table(10, 1), 0.3, mechanism="mar")


# Kinds of tables


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("dtype", "comes_back"),
    [("int8", "int8"), ("int64", "int64"), ("uint8", "int16"), ("uint64", "int64"), ("bool", "int8")],
)
def test_integers_stay_integers(mechanism, dtype, comes_back):
    labels = table(k=2).astype(dtype)
    partial = drop_labels(labels, 0.4, mechanism=mechanism, random_state=0)
    assert partial.dtype == comes_back
    kept = partial != -1
    assert 0 < kept.sum() < kept.size
    np.testing.assert_array_equal(partial[kept], labels[kept])


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_same_entries_go_whatever_the_kind_of_table(mechanism):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    labels = with_holes(table(60, 3))
    words = np.array(["a", "b", "c", "d", None], dtype=object)[labels]
    names = ["x", "y", "z"]
    expected = drop_labels(labels, 0.5, mechanism=mechanism, random_state=4) >= 0

    def same(kind):
        return drop_labels(kind, 0.5, mechanism=mechanism, random_state=4)

    floats = same(np.where(labels < 0, np.nan, labels))
    np.testing.assert_array_equal(~np.isnan(floats), expected)
    objects = same(words)
    assert objects.dtype == object
    np.testing.assert_array_equal(objects, np.where(expected, words, None))
    np.testing.assert_array_equal(same(words.tolist()), objects)
    np.testing.assert_array_equal(same(np.where(labels < 0, np.nan, words).tolist()), objects)

    index = np.arange(60)[::-1] // 2
    for frame in (
        pd.DataFrame(labels, columns=names, index=index),
        pd.DataFrame(words, columns=names, index=index),
        pd.DataFrame(words, columns=names, index=index).astype("category"),
        pd.DataFrame(labels, columns=names, index=index).astype("Int64"),
    ):
        before = frame.copy(deep=True)
        partial = same(frame)
        assert type(partial) is pd.DataFrame
        assert list(partial.columns) == names
        np.testing.assert_array_equal(partial.index, index)
        np.testing.assert_array_equal(partial.notna().to_numpy(), expected)
        assert (partial.to_numpy()[expected] == frame.to_numpy()[expected]).all()
        pd.testing.assert_frame_equal(frame, before)

    for frame in (
        pl.DataFrame(labels, schema=names),
        pl.DataFrame(words.tolist(), schema=names, orient="row"),
    ):
        before = frame.clone()
        partial = same(frame)
        assert type(partial) is pl.DataFrame
        assert partial.schema == frame.schema
        np.testing.assert_array_equal(partial.select(pl.all().is_not_null()).to_numpy(), expected)
        assert (partial.to_numpy()[expected] == frame.to_numpy()[expected]).all()
        assert frame.equals(before)


def test_strings_come_back_as_objects_with_none():
    labels = np.array([["a", "b"], ["a", "c"], ["b", "c"], ["b", "c"]])
    partial = drop_labels(labels, 0.5, random_state=0)
    assert partial.dtype == object
    assert [sum(entry is None for entry in column) for column in partial.T] == [2, 2]


def test_every_missing_entry_reads_the_same():
    partial = drop_labels(np.array([[0, -7], [1, 2], [1, 0], [-9, 1]]), 0.0)
    np.testing.assert_array_equal(partial, [[0, -1], [1, 2], [1, 0], [-1, 1]])


# Manners


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_inputs_and_the_global_state_stay_untouched(mechanism):
    labels = with_holes(table())
    before, state = labels.copy(), np.random.get_state()[1].copy()  # noqa: NPY002
    for random_state in (None, 0, np.random.RandomState(0)):
        drop_labels(labels, 0.6, mechanism=mechanism, random_state=random_state)
    np.testing.assert_array_equal(labels, before)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_same_seed_gives_the_same_labels(mechanism):
    first, second, other = (
        drop_labels(table(), 0.6, mechanism=mechanism, random_state=seed)
        for seed in (1, np.random.RandomState(1), 2)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


@pytest.mark.parametrize("ratio", [1, 1.5, -0.1, "half", None, float("nan")])
def test_ratio_is_a_share(ratio):
    message = r"The 'ratio' parameter of {} must be a float in the range \[0.0, 1.0\). Got .* instead\."
    with pytest.raises(ValueError, match=message.format("drop_labels")):
        drop_labels(table(), ratio)
    with pytest.raises(ValueError, match=message.format("drop_views")):
        drop_views((10, 2), ratio)


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'mechanism' .* among {'per_base', 'mcar', 'mar', 'mnar'}"):
        drop_labels(table(), 0.3, mechanism="random")
    with pytest.raises(ValueError, match=r"'protocol' .* among {'per_view', 'mcar', .*Got 'random'"):
        drop_views((10, 2), 0.3, protocol="random")
    with pytest.raises(ValueError, match="'strength' parameter of drop_labels"):
        drop_labels(table(), 0.3, mechanism="mnar", strength=-1)


@pytest.mark.parametrize("labels", [[0, 1, 1], np.zeros((0, 3), int), np.zeros((3, 0), int), 5])
def test_labels_must_be_a_table(labels):
    with pytest.raises(ValueError, match=r"labels must be a table .* got shape .* Hint: "):
        drop_labels(labels, 0.3)


def test_a_lazy_frame_is_refused_with_a_hint():
    pl = pytest.importorskip("polars")
    with pytest.raises(ValueError, match=r"Hint: .*collect a lazy frame"):
        drop_labels(pl.LazyFrame({"a": [0, 1]}), 0.3)


# Views


@pytest.mark.parametrize("ratio", RATIOS)
def test_per_view_loses_exactly_the_share_of_every_view(ratio):
    for n, views in [(400, 12), (101, 12)]:
        kept = drop_views((n, views), ratio, random_state=1)
        assert kept.dtype == bool
        assert kept.shape == (n, views)
        np.testing.assert_array_equal((~kept).sum(axis=0), half_up(ratio * n))
        assert kept.any(axis=1).all()


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("n_lost", [None, 1, 4])
def test_stratified_takes_the_share_of_every_class_and_a_fixed_number_of_views(ratio, n_lost):
    y = np.repeat(["a", "b", "c"], [13, 50, 7])
    kept = drop_views((70, 5), ratio, protocol="stratified", y=y, n_lost=n_lost, random_state=0)
    lost = (~kept).sum(axis=1)
    assert set(lost) <= {0, n_lost or 2}
    for name, size in [("a", 13), ("b", 50), ("c", 7)]:
        assert np.sum(lost[y == name] > 0) == half_up(ratio * size)


@pytest.mark.data
def test_stratified_counts_are_those_of_the_authors_masks(data_folder):
    published = np.load(data_folder / "miss_proteinFold.npz")["observed12"]
    y = np.load(data_folder / "mv_ProteinFold12.npz")["y"]
    for step, masks in enumerate(published, start=1):
        ours = drop_views((694, 12), step / 10, protocol="stratified", y=y, n_lost=8, random_state=step)
        for mask in masks:
            for name in np.unique(y):
                np.testing.assert_array_equal(
                    np.sort((~ours[y == name]).sum(axis=1)), np.sort((~mask[y == name]).sum(axis=1))
                )


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("views", [2, 3, 6])
def test_one_lost_loses_one_view_evenly(ratio, views):
    kept = drop_views((200, views), ratio, protocol="one_lost", random_state=0)
    lost = ~kept
    assert lost.sum(axis=1).max() <= 1
    assert lost.sum() == half_up(ratio * 200)
    assert np.ptp(lost.sum(axis=0)) <= 1


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("views", [2, 3, 6])
@pytest.mark.parametrize("keep_seen", [True, False])
def test_some_lost_makes_the_share_of_instances_incomplete(ratio, views, keep_seen):
    kept = drop_views((201, views), ratio, protocol="some_lost", keep_seen=keep_seen, random_state=0)
    assert np.sum(~kept.all(axis=1)) == half_up(ratio * 201)
    assert kept.any(axis=1).all()


def test_some_lost_draws_every_number_and_every_view_alike_wherever_a_row_stands():
    kept = drop_views((8000, 5), 0.5, protocol="some_lost", random_state=0)
    lost, place = 5 - kept.sum(axis=1), np.arange(8000) // 1000
    numbers = np.bincount(lost, minlength=6)
    assert numbers[0] == 4000
    assert numbers[5] == 0
    assert chisquare(numbers[1:5]).pvalue > 1e-4
    for n_lost in (1, 2, 3, 4):
        _, sets = np.unique(kept[lost == n_lost], axis=0, return_counts=True)
        assert len(sets) == comb(5, n_lost)
        assert chisquare(sets).pvalue > 1e-4
    assert p_value(place, lost > 0) > 1e-4
    assert p_value(place[lost > 0], lost[lost > 0] > 2) > 1e-4


def test_some_lost_takes_from_what_an_instance_has():
    observed = np.ones((300, 4), bool)
    observed[:100, 1:] = False  # nothing to lose
    observed[100:200, 2:] = False
    kept = drop_views(observed, 0.6, protocol="some_lost", random_state=0)
    lost = (observed & ~kept).sum(axis=1)
    assert not lost[:100].any()
    assert set(lost[100:200]) == {0, 1}
    assert set(lost[200:]) == {0, 1, 2, 3}
    assert np.sum(lost > 0) == 180


@pytest.mark.parametrize("protocol", ["mcar", "mar", "mnar"])
@pytest.mark.parametrize("ratio", [0.2, 0.6])
def test_the_average_ratio_of_views_is_kept(protocol, ratio):
    y = np.random.default_rng(0).choice(4, 5000, p=[0.6, 0.2, 0.15, 0.05])
    kept = drop_views((5000, 4), ratio, protocol=protocol, y=y, keep_seen=False, random_state=1)
    bound = 5 * np.sqrt(ratio * (1 - ratio) / 5000)
    np.testing.assert_allclose((~kept).mean(axis=0), ratio, atol=bound)


def test_views_depend_on_y_where_they_should():
    y = np.random.default_rng(0).integers(0, 5, 5000)
    for protocol in PROTOCOLS:
        gone = ~drop_views((5000, 6), 0.4, protocol=protocol, y=y, keep_seen=False, random_state=1)
        values = [p_value(y, gone[:, view]) for view in range(6)]
        if protocol in ("mar", "mnar"):
            assert max(values) < 1e-10
        else:
            assert min(values) > 1e-4
        share = np.array([gone[y == group].mean(axis=0) for group in range(5)])
        if protocol == "mar":
            assert np.all(np.diff(share, axis=0) > 0)
        if protocol == "mnar":
            assert len(set(share.argmax(axis=0))) > 1


def test_a_number_in_y_is_a_score():
    y = np.random.default_rng(0).normal(size=5000)
    gone = ~drop_views((5000, 2), 0.3, protocol="mar", y=y, keep_seen=False, random_state=0)
    assert gone[y > 0].mean() > gone[y < 0].mean() + 0.1
    object_scores = y.astype(object)
    again = ~drop_views((5000, 2), 0.3, protocol="mar", y=object_scores, keep_seen=False, random_state=0)
    np.testing.assert_array_equal(gone, again)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_views_keep_everyone_and_leave_inputs_alone(protocol):
    y = table()[:, 0]
    observed = np.random.default_rng(0).random((400, 5)) < 0.9
    before, state = observed.copy(), np.random.get_state()[1].copy()  # noqa: NPY002
    kept = drop_views(observed, 0.8, protocol=protocol, y=y, n_lost=1, random_state=0)
    np.testing.assert_array_equal(kept.any(axis=1), observed.any(axis=1))
    assert not (kept & ~observed).any()
    assert kept.sum() < observed.sum()
    np.testing.assert_array_equal(observed, before)
    np.testing.assert_array_equal(
        kept, drop_views(observed.astype(int), 0.8, protocol=protocol, y=y, n_lost=1, random_state=0)
    )
    drop_views((400, 5), 0.9, protocol=protocol, y=y)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert drop_views((400, 5), 0.9, protocol=protocol, y=y, random_state=0).any(axis=1).all()


def test_views_may_lose_everything_if_told():
    y = np.zeros(20, int)
    kept = drop_views((20, 3), 0.5, protocol="stratified", y=y, n_lost=3, keep_seen=False, random_state=0)
    assert np.sum(~kept.any(axis=1)) == 10
    with pytest.raises(ValueError, match=r"'n_lost' .* at most 2 with 3 views .* Got 3 instead.* Hint: "):
        drop_views((20, 3), 0.5, protocol="stratified", y=y, n_lost=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: drop_views((4, 2), 0.5, protocol="stratified"), r"'stratified' .* needs y.* Hint: "),
        (lambda: drop_views((4, 2), 0.5, protocol="mar", y=[0, 1]), r"each of the 4 .* \(2,\)\. Hint: "),
        (lambda: drop_views((2, 2), 0.5, protocol="mnar", y=["a", None]), r"missing for row 1\. Hint: "),
        (lambda: drop_views((0, 2), 0.5), r"at least one instance and one view.* Hint: "),
        (lambda: drop_views([True, False], 0.5), r"a row per instance.* shape \(2,\)\. Hint: "),
        (lambda: drop_views([[0.3, 1.7]], 0.5), r"True or False .* float64\. Hint: "),
        (lambda: drop_views((4, 2), 0.5, n_lost=0), r"'n_lost' parameter of drop_views must be an int"),
        (
            lambda: drop_views((4, 1), 0.5, protocol="some_lost"),
            r"'ratio' asks 2 of the 4 .* only 0 .*Hint: ",
        ),
        (lambda: drop_views((4, 1), 0.5, protocol="one_lost"), r"'ratio' asks 2 of the 4 .* only 0 .*Hint: "),
    ],
)
def test_errors_of_views_name_the_trouble(call, message):
    with pytest.raises(ValueError, match=message):
        call()
