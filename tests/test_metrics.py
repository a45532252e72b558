"""Scores are compared with plain slow versions that loop over instances, pairs and matchings."""

from itertools import combinations, permutations
from math import log, sqrt
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics as sk

from consilience import fuse
from consilience.metrics import (
    base_agreement,
    base_diversity,
    ensemble_agreement,
    matched_accuracy_score,
    normalized_mutual_info_score,
    pair_f_score,
    purity_score,
    score_by_id,
)

SKLEARN_NAME = {"max": "max", "sqrt": "geometric", "arithmetic": "arithmetic", "min": "min"}
SCORES = [
    matched_accuracy_score,
    purity_score,
    pair_f_score,
    lambda a, b: normalized_mutual_info_score(a, b, normalization="sqrt"),
]


def random_pairs(count=60):
    """Two partitions of few instances: related or not, equal or different numbers of clusters."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        n = int(rng.integers(2, 30))
        true = rng.integers(0, rng.integers(1, 6), n)
        pred = np.where(rng.random(n) < rng.random(), true, rng.integers(0, rng.integers(1, 6), n))
        yield true, pred


# Plain slow versions


def slow_accuracy(true, pred):
    classes, clusters = np.unique(true), np.unique(pred)
    longer, shorter = (classes, clusters) if len(classes) >= len(clusters) else (clusters, classes)
    a, b = (true, pred) if len(classes) >= len(clusters) else (pred, true)
    return max(
        sum(int(x == partner[y]) for x, y in zip(a, b, strict=True))
        for chosen in permutations(longer, len(shorter))
        for partner in [dict(zip(shorter, chosen, strict=True))]
    ) / len(true)


def slow_purity(true, pred):
    return sum(max(np.sum(true[pred == k] == c) for c in set(true)) for k in set(pred)) / len(true)


def slow_nmi(true, pred, normalization):
    n = len(true)

    def entropy(labels):
        return -sum(np.mean(labels == k) * log(np.mean(labels == k)) for k in set(labels))

    h_true, h_pred = entropy(true), entropy(pred)
    if len(set(true)) == len(set(pred)) == 1:
        return 1.0
    if 1 in (len(set(true)), len(set(pred))):
        return 0.0
    information = 0.0
    for c in set(true):
        for k in set(pred):
            together = np.sum((true == c) & (pred == k))
            if together:
                information += together / n * log(n * together / (np.sum(true == c) * np.sum(pred == k)))
    below = {
        "max": max(h_true, h_pred),
        "sqrt": sqrt(h_true * h_pred),
        "arithmetic": (h_true + h_pred) / 2,
        "min": min(h_true, h_pred),
    }
    return information / below[normalization]


def slow_pair_f(true, pred, beta):
    put, belong, right = 0, 0, 0
    for i, j in combinations(range(len(true)), 2):
        put += pred[i] == pred[j]
        belong += true[i] == true[j]
        right += pred[i] == pred[j] and true[i] == true[j]
    if put == belong == 0:
        return 1.0
    if right == 0:
        return 0.0
    precision, recall = right / put, right / belong
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


# Equal to the plain versions


def test_accuracy_equals_the_best_of_all_matchings():
    for true, pred in random_pairs():
        assert matched_accuracy_score(true, pred) == pytest.approx(slow_accuracy(true, pred), abs=1e-15)


def test_accuracy_with_thousands_of_clusters_equals_the_dense_matching():
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(0)
    true = rng.integers(0, 1500, 6000)
    pred = np.where(rng.random(6000) < 0.4, true, rng.integers(0, 1200, 6000))
    table = sk.cluster.contingency_matrix(true, pred)
    assert table.size > 1_000_000
    matched = table[linear_sum_assignment(table, maximize=True)].sum()
    assert matched_accuracy_score(true, pred) == matched / 6000
    assert matched_accuracy_score(pred, true) == matched / 6000


def test_accuracy_of_singletons_is_settled_without_a_matching():
    ids = np.arange(100_000)
    assert matched_accuracy_score(ids, np.random.default_rng(0).permutation(ids)) == 1.0


def test_purity_equals_the_loop():
    for true, pred in random_pairs():
        assert purity_score(true, pred) == pytest.approx(slow_purity(true, pred), abs=1e-15)


@pytest.mark.parametrize("normalization", list(SKLEARN_NAME))
def test_nmi_equals_the_loop_and_sklearn(normalization):
    for true, pred in random_pairs():
        ours = normalized_mutual_info_score(true, pred, normalization=normalization)
        assert ours == pytest.approx(slow_nmi(true, pred, normalization), abs=1e-12)
        theirs = sk.normalized_mutual_info_score(true, pred, average_method=SKLEARN_NAME[normalization])
        assert ours == pytest.approx(theirs, abs=1e-12)
        assert 0.0 <= ours <= 1.0


@pytest.mark.parametrize("beta", [0.5, 1.0, 2])
def test_pair_f_equals_the_loop_over_all_pairs(beta):
    for true, pred in random_pairs():
        assert pair_f_score(true, pred, beta=beta) == pytest.approx(slow_pair_f(true, pred, beta), abs=1e-12)


# Laws


@pytest.mark.parametrize("score", SCORES)
def test_equal_partitions_score_exactly_one_and_names_do_not_matter(score):
    rng = np.random.default_rng(3)
    for true, pred in random_pairs(30):
        assert score(true, rng.permutation(9)[true]) == 1.0
        words = np.array(["e", "d", "a", "c", "b", "f"])[true]
        floats = pred * 0.5 - 3
        assert score(words, floats) == pytest.approx(score(true, pred), abs=1e-12)
        assert score(words.astype(object), list(pred)) == pytest.approx(score(true, pred), abs=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "bool", "float32", "object"])
def test_every_kind_of_label_gives_the_same_answer(dtype):
    true, pred = np.array([0, 1, 1, 0, 1, 0]), np.array([0, 1, 1, 1, 1, 0])
    assert matched_accuracy_score(true.astype(dtype), pred) == matched_accuracy_score(true, pred)


def test_labels_at_the_ends_of_their_type_do_not_overflow():
    true = np.array([-128, 127, 127, -128], dtype=np.int8)
    assert matched_accuracy_score(true, [0, 1, 1, 0]) == 1.0
    ids = np.array([2**63 + 5, 2**63 + 6, 2**63 + 6, 2**63 + 5], dtype=np.uint64)
    assert matched_accuracy_score(ids, [0, 1, 1, 0]) == 1.0
    far = np.array([-(2**62), 2**62, 2**62, -(2**62)])
    assert matched_accuracy_score(far, [0, 1, 1, 0]) == 1.0


def test_series_are_labels():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert matched_accuracy_score(pd.Series(["a", "b"], index=[5, 2]), pl.Series([1, 0])) == 1.0
    assert (
        matched_accuracy_score(pd.Series(["a", "b"], dtype="category"), pd.Series([1, 0], dtype="Int64"))
        == 1.0
    )


@pytest.mark.parametrize("normalization", list(SKLEARN_NAME))
def test_nmi_of_one_cluster(normalization):
    assert normalized_mutual_info_score([4, 4, 4], [1, 1, 1], normalization=normalization) == 1.0
    assert normalized_mutual_info_score([4, 4, 4], [1, 1, 2], normalization=normalization) == 0.0
    assert normalized_mutual_info_score([1, 1, 2], [4, 4, 4], normalization=normalization) == 0.0
    assert normalized_mutual_info_score([4], [1], normalization=normalization) == 1.0


def test_the_normalization_of_nmi_is_never_silent():
    with pytest.raises(TypeError, match="normalization"):
        normalized_mutual_info_score([0, 1], [0, 1])
    with pytest.raises(ValueError, match=r"'normalization' parameter of normalized_mutual_info_score must"):
        normalized_mutual_info_score([0, 1], [0, 1], normalization="geometric")


def test_pair_counts_do_not_overflow_at_ten_million():
    n = 10_000_000
    half = np.zeros(n, dtype=np.int8)
    half[n // 2 :] = 1
    whole = np.zeros(n, dtype=np.int8)
    together = 2 * (n // 2) * (n // 2 - 1)
    precision = together / (n * (n - 1))
    assert pair_f_score(half, whole) == pytest.approx(2 * precision / (precision + 1), rel=1e-14)


def test_inputs_are_not_changed():
    true, pred = np.array([3, 5, 5]), np.array([-1, 0, 0])
    base = np.array([[0, -7], [1, 2], [1, 2]])
    for score in SCORES:
        score(true, pred)
    ensemble_agreement(true, base)
    base_diversity(base)
    np.testing.assert_array_equal(true, [3, 5, 5])
    np.testing.assert_array_equal(pred, [-1, 0, 0])
    np.testing.assert_array_equal(base, [[0, -7], [1, 2], [1, 2]])


# Errors


@pytest.mark.parametrize("score", SCORES)
def test_different_lengths_are_both_named(score):
    with pytest.raises(ValueError, match=r"got 3 and 4\. Hint: "):
        score([0, 1, 1], [0, 1, 1, 0])


@pytest.mark.parametrize("labels", [[[0], [1]], [], 3])
def test_labels_must_be_a_vector(labels):
    with pytest.raises(ValueError, match=r"labels_pred must be one-dimensional .* Hint: "):
        matched_accuracy_score([0, 1], labels)


def test_missing_labels_are_refused_with_their_position():
    pd = pytest.importorskip("pandas")
    for labels in ([0.0, np.nan, 1.0], ["a", None, "b"], pd.Series([0, None, 1], dtype="Int64")):
        with pytest.raises(ValueError, match=r"labels_pred has a missing label at position 1 .*Hint: "):
            matched_accuracy_score([0, 1, 1], labels)


@pytest.mark.parametrize("beta", [0, -1.0, "one"])
def test_beta_must_be_positive(beta):
    with pytest.raises(ValueError, match="The 'beta' parameter of pair_f_score must be a float"):
        pair_f_score([0, 1], [0, 1], beta=beta)


# Agreement with base clusterings


def random_bases(count=25):
    rng = np.random.default_rng(11)
    for _ in range(count):
        n, m = rng.integers(3, 25), rng.integers(1, 6)
        base = rng.integers(-1, 4, (n, m))
        yield rng.integers(0, 3, n), np.where(rng.random((n, m)) < 0.3, -2, base)


@pytest.mark.parametrize("normalization", list(SKLEARN_NAME))
def test_agreement_with_the_bases_equals_the_loop(normalization):
    for labels, base in random_bases():
        expected = []
        for column in base.T:
            seen = column >= 0
            expected.append(slow_nmi(labels[seen], column[seen], normalization) if seen.any() else np.nan)
        each = base_agreement(labels, base, normalization=normalization)
        np.testing.assert_allclose(each, expected, atol=1e-12)
        if not np.isnan(expected).all():
            mean = ensemble_agreement(labels, base, normalization=normalization)
            assert mean == pytest.approx(np.nanmean(expected), abs=1e-12)


@pytest.mark.parametrize("normalization", list(SKLEARN_NAME))
def test_diversity_equals_the_loop(normalization):
    for _, base in random_bases():
        agreement = []
        for i, j in combinations(range(base.shape[1]), 2):
            seen = (base[:, i] >= 0) & (base[:, j] >= 0)
            if seen.any():
                agreement.append(slow_nmi(base[seen, i], base[seen, j], normalization))
        expected = 1 - np.mean(agreement) if agreement else np.nan
        found = base_diversity(base, normalization=normalization)
        assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_bases_may_come_as_codes_of_any_integer_type(dtype):
    rng = np.random.default_rng(2)
    labels, base = rng.integers(0, 3, 40), rng.integers(-2, 4, (40, 3))
    holder = SimpleNamespace(codes=base.astype(dtype))
    np.testing.assert_array_equal(base_agreement(labels, holder), base_agreement(labels, base))
    assert base_diversity(holder) == base_diversity(base)


def test_base_labels_far_apart_and_unsigned():
    base = np.array([[10**12, 7], [10**12, 7], [5, 10**15], [-1, 7]])
    assert ensemble_agreement([0, 0, 1, 0], base) == 1.0
    assert base_diversity(base) == 0.0
    assert base_diversity(np.array([[0, 1], [0, 1], [1, 0]], dtype=np.uint8)) == 0.0


def test_a_base_that_saw_nothing_is_left_out():
    base = np.array([[0, -1], [0, -1], [1, -1]])
    np.testing.assert_array_equal(base_agreement([0, 0, 1], base), [1.0, np.nan])
    assert ensemble_agreement([0, 0, 1], base) == 1.0
    assert np.isnan(ensemble_agreement([0, 0, 1], base[:, 1:]))
    assert np.isnan(base_diversity(base))


def test_bases_of_a_wrong_form_are_refused():
    with pytest.raises(ValueError, match=r"labels has 2 entries but base has 3 rows\. Hint: "):
        base_agreement([0, 1], [[0], [1], [1]])
    with pytest.raises(ValueError, match=r"base must be a table .* shape \(3,\)\. Hint: "):
        base_diversity([0, 1, 1])
    floats, integers = [[0.0, 1.0], [1.0, np.nan], [1.0, 0.0]], [[0, 1], [1, -1], [1, 0]]
    assert base_diversity(floats) == base_diversity(integers)
    for function in (
        lambda **kw: ensemble_agreement([0], [[0]], **kw),
        lambda **kw: base_diversity([[0]], **kw),
    ):
        with pytest.raises(ValueError, match="The 'normalization' parameter of"):
            function(normalization=None)


def test_counts_of_rows_stand_for_repeated_rows():
    rng = np.random.default_rng(0)
    base, labels = rng.integers(-1, 3, (40, 4)), rng.integers(0, 3, 40)
    counts = rng.integers(1, 6, 40)
    repeated, twice = np.repeat(base, counts, axis=0), np.repeat(labels, counts)
    for codes in (base, np.where(base < 0, -1, base * 10**6)):
        table = SimpleNamespace(codes=codes, counts=counts)
        assert ensemble_agreement(labels, table) == ensemble_agreement(twice, repeated)
        assert base_diversity(table) == base_diversity(repeated)


# --------------------------------------------------------------------------------------------------
# Labels that are known by id


def some_labels(seed, n_ids):
    rng = np.random.default_rng(seed)
    ids = [f"id{i}" for i in rng.permutation(80)[:n_ids]]
    return {name: int(label) for name, label in zip(ids, rng.integers(0, 4, n_ids), strict=True)}


@pytest.mark.parametrize(
    ("score", "options"),
    [
        (sk.adjusted_rand_score, {}),
        (sk.v_measure_score, {"beta": 2.0}),
        (sk.accuracy_score, {}),  # reads the names of labels
        (matched_accuracy_score, {}),
        (purity_score, {}),
        (pair_f_score, {"beta": 0.5}),
        (normalized_mutual_info_score, {"normalization": "sqrt"}),
    ],
)
def test_by_id_is_the_score_of_what_both_have(score, options):
    true, pred = some_labels(0, 60), some_labels(1, 50)
    both = sorted(true.keys() & pred.keys())
    found = score_by_id(score, true, pred, **options)
    assert found.value == pytest.approx(score([true[i] for i in both], [pred[i] for i in both], **options))
    assert float(found) == found.value
    assert (found.n_both, found.n_true, found.n_pred) == (len(both), 60, 50)
    assert (found.coverage_true, found.coverage_pred) == (len(both) / 60, len(both) / 50)
    assert repr(found).endswith(f"({len(both) / 60:.1%} of the first, {len(both) / 50:.1%} of the second)")


def test_every_kind_of_labels_by_id():
    true, pred = some_labels(0, 60), some_labels(1, 50)
    expected = score_by_id(sk.adjusted_rand_score, true, pred)
    ids, labels = list(pred), list(pred.values())
    gaps = pd.Series([*labels, None, None], index=[*ids, "x", "y"], dtype="Int64")
    for given in (
        pd.Series(pred),
        gaps,
        pd.Series(pred).to_frame("anything"),
        pd.DataFrame({"who": ids, "label": labels, "confidence": 1.0}),
        pl.DataFrame({"who": ids, "cluster": labels}),
        pl.DataFrame({"label": labels, "who": ids, "other": ids}),
    ):
        index = "who" if "who" in getattr(given, "columns", ()) else None
        assert score_by_id(sk.adjusted_rand_score, pd.Series(true), given, index=index) == expected
    assert score_by_id(sk.adjusted_rand_score, true, pl.DataFrame({"i": ids, "l": labels})) == expected
    named = pd.Series(pred).to_frame("cluster").rename_axis("who")
    assert score_by_id(sk.adjusted_rand_score, true, named, index="who") == expected


def test_a_fusion_is_scored_by_its_ids():
    first = fuse({"a": {"x": 0, "y": 0, "z": 1}, "b": {"x": 0, "y": 0, "z": 1}}, 2, random_state=0)
    found = score_by_id(matched_accuracy_score, {"z": "p", "y": "q", "w": "q"}, first)
    assert (found.value, found.n_both, found.coverage_pred) == (1.0, 2, pytest.approx(2 / 3))
    with pytest.raises(ValueError, match=r"labels_pred has no ids\. Hint"):
        score_by_id(purity_score, {0: 1}, fuse([[0, 1], [1, 0]], 2, random_state=0))


def test_labels_by_id_that_cannot_be_scored():
    with pytest.raises(ValueError, match=r"no instance has a label in both .* begin with 1 and '1'\. Hint"):
        score_by_id(purity_score, {1: 0}, {"1": 0})
    with pytest.raises(ValueError, match=r"the id 'a' occurs twice in labels_true"):
        score_by_id(purity_score, pd.Series([0, 1], index=["a", "a"]), {"a": 0})
    with pytest.raises(ValueError, match=r"labels_pred has no labels\. Hint"):
        score_by_id(purity_score, {"a": 0}, {"a": None, "b": float("nan"), "c": ""})
    with pytest.raises(TypeError, match=r"labels_true has no ids: it is of type list\. Hint: .*directly"):
        score_by_id(purity_score, [0, 1], {"a": 0})
    with pytest.raises(ValueError, match=r"labels_pred has 2 columns that could be the labels.* Hint"):
        score_by_id(purity_score, {"a": 0}, pd.DataFrame({"x": [0], "y": [1]}, index=["a"]))
    with pytest.raises(ValueError, match=r"no column 'whom'\. Hint: did you mean 'who'"):
        score_by_id(purity_score, {"a": 0}, pl.DataFrame({"who": ["a"], "y": [1]}), index="whom")


def test_agreement_is_the_same_to_the_last_bit_under_other_names_and_in_another_order():
    rng = np.random.default_rng(3)
    base = rng.integers(-1, 6, (400, 7))
    labels = rng.integers(0, 5, 400)
    expected = ensemble_agreement(labels, base)
    for _ in range(20):
        names = np.append(rng.permutation(6), -1)
        other = names[base[:, rng.permutation(7)]]
        assert ensemble_agreement(rng.permutation(5)[labels], other) == expected
