"""Labels and views in one call: the solver against plain definitions, its laws, and what it says."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import consilience
from consilience import Partitions, check_views, fuse, fuse_views
from consilience._support.errors import InputError, InputTypeError
from consilience.metrics import matched_accuracy_score
from consilience.multiview import mixed
from consilience.multiview.pse import embed_view, rank_of
from consilience.multiview.scaling import recognise
from tests.oracles import mixed as oracle


def make(n=150, k=3, n_labels=3, n_views=2, noise_labels=0, missing=0.4, seed=0, skill=0.7):
    """Classes, columns of labels by name, views by name; both with gaps, and every instance somewhere."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    labels = {}
    for j in range(n_labels):
        column = np.where(rng.random(n) < skill, y, rng.integers(0, k, n))
        labels[f"expert{j}"] = np.where(rng.random(n) < missing, -1, column)
    for j in range(noise_labels):
        labels[f"noise{j}"] = rng.integers(0, k, n)
    views = {}
    for v in range(n_views):
        x = 1.5 * rng.normal(size=(k, 6))[y] + rng.normal(size=(n, 6))
        x[rng.random(n) < missing] = np.nan
        views[f"view{v}"] = x
    table = np.column_stack(list(labels.values()))
    known = (table >= 0).any(axis=1) | ~np.all([np.isnan(x[:, 0]) for x in views.values()], axis=0)
    return y[known], {a: c[known] for a, c in labels.items()}, {a: x[known] for a, x in views.items()}


def embedded(views, k):
    table = check_views(views, unobserved="keep")
    kinds = [recognise(x, seen) for x, seen in zip(table.arrays, table.observed.T, strict=True)]
    return [
        embed_view(x, seen, kind, rank_of(k), None)
        for x, seen, kind in zip(table.arrays, table.observed.T, kinds, strict=True)
    ]


def stacked(labels):
    codes = np.column_stack(list(labels.values()))
    return codes, np.concatenate([[0], np.cumsum(codes.max(axis=0) + 1)])


# --- the solver ---------------------------------------------------------------------------------------------


def test_places_are_filled_in_as_defined():
    _, labels, views = make(n=60)
    found, (codes, offsets) = embedded(views, 3), stacked(labels)
    weights = np.array([1.0, 0.7, 0.5, 0.2, 0.5])
    blocks = mixed.fill_in(found, codes, offsets, weights)
    for ours, plain in zip(blocks, oracle.fill_in(found, codes, weights), strict=True):
        np.testing.assert_allclose(ours, plain, atol=1e-10)


def test_links_of_labels_are_comembership():
    _, labels, _ = make(n=40)
    codes, offsets = stacked(labels)
    x = np.random.default_rng(0).normal(size=(len(codes), 3))
    ours = mixed.label_links(codes, offsets, np.array([1.0, 2.0, 0.5])) @ x
    plain = sum(w * oracle.label_graph(c) for c, w in zip(codes.T, (1.0, 2.0, 0.5), strict=True)) @ x
    np.testing.assert_allclose(ours, plain, atol=1e-12)


def test_relations_of_labels_are_adjusted_tau():
    _, labels, views = make()
    codes, offsets = stacked(labels)
    found = mixed.relations(embedded(views, 3), codes, offsets)
    plain = (oracle.tau(codes[:, 0], codes[:, 2]) + oracle.tau(codes[:, 2], codes[:, 0])) / 2
    assert found.value[2, 4] == pytest.approx(plain)
    np.testing.assert_array_equal(found.value, found.value.T)


def test_relations_are_zero_by_chance():
    values = []
    for seed in range(20):
        _, labels, views = make(n_labels=1, noise_labels=2, seed=seed)
        codes, offsets = stacked(labels)
        values.append(mixed.relations(embedded(views, 3), codes, offsets).value[[3, 3, 3], [0, 1, 4]])
    assert abs(np.mean(values)) < 0.01


def test_deviations_of_relations_are_those_of_chance():
    _, labels, views = make(n_labels=1, n_views=1, missing=0.0)
    rng, seen = np.random.default_rng(0), []
    found, codes = embedded(views, 3), next(iter(labels.values()))
    for _ in range(200):
        two = np.column_stack([codes, rng.permutation(codes)])
        result = mixed.relations(found, two, np.array([0, 3, 6]))
        seen.append((result.value[0, 2], result.value[1, 2]))
    said = result.spread[[0, 1], [2, 2]]
    np.testing.assert_allclose(np.std(seen, axis=0), said, rtol=0.35)


def test_trust_is_the_minimum_of_its_sum_of_squares():
    _, labels, views = make(noise_labels=1)
    found = mixed.relations(embedded(views, 3), *stacked(labels))
    loss, best = oracle.trust(found.value, found.spread)
    ours = mixed.trust(found)
    assert loss(ours) <= loss(best) + 1e-3
    assert ours[-1] < 0.1 < 0.2 < ours[:-1].min()


def test_nothing_shared_keeps_trust():
    """Doubt needs evidence: sources whose relation is unknown stay at one half and count."""
    unknown = mixed.Relations(np.full((3, 3), np.nan), np.full((3, 3), np.nan))
    np.testing.assert_allclose(mixed.trust(unknown), 0.5)
    np.testing.assert_allclose(mixed.count_of(mixed.trust(unknown), unknown), 1.0)


def test_weak_views_count_less_beside_three_columns():
    a, count = np.array([0.3, 0.9, 0.8, 0.6, 0.7]), np.ones(5)
    np.testing.assert_allclose(mixed.beside_labels(a, count, 2), [0.3 / 0.7, 1.0])
    np.testing.assert_allclose(mixed.beside_labels(a, count, 3), 1.0)  # two columns say too little
    _, labels, views = make(n=300, n_labels=4, n_views=1, missing=0.2, skill=0.8)
    blurred = {"view0": views["view0"] + 2 * np.random.default_rng(0).normal(size=views["view0"].shape)}
    weight = {s.name: s.weight for s in fuse(labels, 3, views=blurred, random_state=0).sources}["view0"]
    assert 0 < weight < 0.8


def test_profiles_repair_a_wrong_start():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    codes = np.column_stack([np.where(rng.random(300) < 0.7, y, rng.integers(0, 3, 300)) for _ in range(9)])
    start = np.where(rng.random(300) < 0.7, y, rng.integers(0, 3, 300))
    assert (mixed.by_profiles(start, 3, [], codes) == y).mean() > 0.95


# --- laws ---------------------------------------------------------------------------------------------------


def same(one, other):
    return adjusted_rand_score(one, other) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_order_and_names_change_nothing(seed):
    _, labels, views = make(seed=seed)
    fusion = fuse(labels, 3, views=views, random_state=0)
    order = np.random.default_rng(seed).permutation(len(fusion.labels))
    names = np.array(["x", "b", "q"], dtype=object)
    turned = {
        name: [None if c < 0 else names[c] for c in labels[name][order]] for name in reversed(list(labels))
    }
    other = fuse(
        turned, 3, views={name: views[name][order] for name in reversed(list(views))}, random_state=0
    )
    assert same(fusion.labels[order], other.labels)
    np.testing.assert_allclose(fusion.confidence[order], other.confidence, atol=1e-6)
    weights = {source.name: source.weight for source in other.sources}
    for source in fusion.sources:
        assert source.weight == pytest.approx(weights[source.name])


@pytest.mark.parametrize("name", ["expert1", "view0"])
def test_a_source_of_weight_0_is_as_if_absent(name):
    _, labels, views = make(missing=0.2, n_views=3)
    without = fuse(
        {a: c for a, c in labels.items() if a != name},
        3,
        views={a: x for a, x in views.items() if a != name},
        unobserved="noise",
        random_state=0,
    )
    weighted = fuse(labels, 3, views=views, weights={name: 0}, unobserved="noise", random_state=0)
    np.testing.assert_array_equal(without.labels, weighted.labels)
    assert {s.name: s.weight for s in weighted.sources}[name] == 0


def test_labels_alone_and_views_alone_are_the_limits():
    _, labels, views = make(missing=0.1)
    no_views = fuse(
        labels, 3, views=views, weights=dict.fromkeys(views, 0), unobserved="noise", random_state=0
    )
    np.testing.assert_array_equal(no_views.labels, fuse(labels, 3, unobserved="noise", random_state=0).labels)
    table = check_views(views, unobserved="keep")
    rows = np.flatnonzero(table.observed.any(axis=1))
    some = {name: c[rows] for name, c in labels.items()}
    no_labels = fuse(some, 3, views=table.part(rows), weights=dict.fromkeys(labels, 0), random_state=0)
    np.testing.assert_array_equal(no_labels.labels, fuse_views(table.part(rows), 3, random_state=0).labels)


def test_input_is_untouched():
    _, labels, views = make()
    before = {name: c.copy() for name, c in {**labels, **views}.items()}
    fuse(labels, 3, views=views, random_state=0)
    for name, kept in before.items():
        np.testing.assert_array_equal({**labels, **views}[name], kept)


def test_sparse_counts_are_the_same_as_dense_ones():
    y, labels, _ = make(n_views=1)
    rng = np.random.default_rng(1)
    words = rng.poisson(np.where(rng.random((3, 60)) < 0.15, 1.5, 0.02)[y]).astype(float)
    dense = fuse(labels, 3, views={"words": words}, random_state=0)
    sparse = fuse(labels, 3, views={"words": sp.csr_array(words)}, random_state=0)
    np.testing.assert_array_equal(dense.labels, sparse.labels)


# --- what it gains, and what it leaves out ------------------------------------------------------------------


def test_both_are_better_than_either():
    gains = []
    for seed in range(5):
        y, labels, views = make(n=300, seed=seed, missing=0.5, skill=0.6)
        both = fuse(labels, 3, views=views, random_state=0).labels
        alone = fuse(labels, 3, unobserved="largest", random_state=0).labels
        gains.append(matched_accuracy_score(y, both) - matched_accuracy_score(y, alone))
    assert np.mean(gains) > 0.1


def test_noise_sources_cost_nothing_and_are_named():
    plain, noisy = [], []
    for seed in range(4):
        y, labels, views = make(n=250, seed=seed, noise_labels=2)
        fusion = fuse(labels, 3, views=views, random_state=0)
        noisy.append(matched_accuracy_score(y, fusion.labels))
        only = {name: c for name, c in labels.items() if not name.startswith("noise")}
        plain.append(
            matched_accuracy_score(y, fuse(only, 3, views=views, unobserved="largest", random_state=0).labels)
        )
        told = " ".join(finding.text for finding in fusion.warnings)
        assert "'noise0' shares next to nothing with other sources" in told
    assert np.mean(noisy) > np.mean(plain) - 0.01


def test_views_of_noise_leave_labels_alone():
    y, labels, views = make(n=250, n_labels=5, n_views=1, missing=0.2)
    views = {"static": np.random.default_rng(3).normal(size=views["view0"].shape)}
    fusion = fuse(labels, 3, views=views, random_state=0)
    assert fusion.model.labels_alone_
    assert "no view says what the labels share" in fusion.summary()
    seen = (np.column_stack(list(labels.values())) >= 0).any(axis=1)
    assert matched_accuracy_score(y[seen], fusion.labels[seen]) > 0.85


def test_unrelated_sides_are_told():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 300), rng.integers(0, 3, 300)
    views = {"v": 2 * rng.normal(size=(3, 5))[a] + rng.normal(size=(300, 5))}
    fusion = fuse({"one": b}, 3, views=views, random_state=0)
    assert "labels and features say unrelated things" in fusion.summary()


def test_an_answer_that_repeats_a_column_is_told():
    y, _, views = make(missing=0.0)
    fusion = fuse({"truth": y}, 3, views=views, random_state=0)
    assert "the answer repeats 'truth'" in fusion.summary()


def test_constant_sources_are_said_and_skipped():
    y, labels, views = make()
    fusion = fuse({**labels, "same": np.zeros(len(y), int)}, 3, views={**views, "flat": np.ones((len(y), 2))})
    assert "'same' tells no two instances apart" in fusion.summary()
    assert "'flat' tells no two instances apart" in fusion.summary()


# --- ids ----------------------------------------------------------------------------------------------------


def test_sides_are_joined_by_id():
    y, labels, views = make()
    ids = np.array([f"p{i}" for i in range(len(y))])
    order = np.random.default_rng(1).permutation(len(y))
    frame = pd.DataFrame(views["view0"], index=ids)[~np.isnan(views["view0"][:, 0])]
    table = pd.DataFrame({name: pd.array(c).astype("Int64") for name, c in labels.items()}, index=ids)
    table = table.mask(table < 0).iloc[order]
    table = table[table.notna().any(axis=1)]
    fusion = fuse(table, 3, views={"view0": frame}, random_state=0)
    plain = fuse(labels, 3, views={"view0": views["view0"]}, unobserved="noise", random_state=0)
    expected = dict(zip(ids.tolist(), plain.labels.tolist(), strict=True))
    assert same(fusion.labels, [expected[i] for i in fusion.index.tolist()])
    sides = fusion.headline.sides
    assert sides.n_both == len(set(table.index) & set(frame.index))
    assert sides.n_only_views == len(set(frame.index) - set(table.index))


def test_a_column_of_ids_serves_both_sides():
    y, labels, views = make(missing=0.2)
    ids = np.arange(len(y)) + 100
    table = pd.DataFrame({"who": ids, **labels})
    frame = pd.DataFrame(np.nan_to_num(views["view0"])).rename(columns=str).assign(who=ids)
    fusion = fuse(table, 3, views={"view0": frame}, index="who", unobserved="noise", random_state=0)
    assert fusion.index.tolist() == ids.tolist()


def test_bad_input_is_named():
    y, labels, views = make()
    with pytest.raises(InputError, match="share no id"):
        fuse(
            pd.DataFrame({"a": [0, 1, 1]}, index=["x", "y", "z"]),
            2,
            views={"v": pd.DataFrame([[1.0], [2.0]], index=["p", "q"])},
        )
    with pytest.raises(InputError, match="the labels have 2 rows and the views"):
        fuse({"a": [0, 1]}, 2, views=views)
    with pytest.raises(InputError, match="both called 'view0'"):
        fuse({"view0": y}, 3, views=views)
    with pytest.raises(InputError, match="unknown base clustering or view 'rna'"):
        fuse(labels, 3, views=views, weights={"rna": 1})
    with pytest.raises(InputTypeError, match="by name"):
        fuse(labels, 3, views=views, weights=[1, 2])
    with pytest.raises(InputError, match="asks for another method"):
        fuse(labels, 3, views=views, method="PCE")
    with pytest.raises(InputError, match="number of clusters cannot be found"):
        fuse(labels, "auto", views=views)
    with pytest.raises(InputError, match="must_link"):
        fuse(labels, 3, views=views, must_link=[(0, 1)])
    lost = {name: np.append(c, -1) for name, c in labels.items()}
    gaps = {name: np.vstack([x, np.full(6, np.nan)]) for name, x in views.items()}
    with pytest.raises(InputError, match=f"nothing is known of row {len(y)}"):
        fuse(lost, 3, views=gaps)
    assert fuse(lost, 3, views=gaps, unobserved="noise", random_state=0).labels[-1] == -1
    assert fuse(lost, 3, views=gaps, unobserved="largest", random_state=0).labels[-1] == 0
    with pytest.raises(InputError, match="no instance links"):
        fuse(
            {"a": np.r_[np.tile([0, 1], 20), np.full(20, -1)]},
            2,
            views={"v": np.r_[np.full((40, 2), np.nan), np.random.default_rng(0).normal(size=(20, 2))]},
        )


# --- living with the result ---------------------------------------------------------------------------------


def test_newcomers_are_placed_by_what_is_known_of_them():
    y, labels, views = make(n=400, missing=0.3)
    old = np.arange(len(y)) < 300
    fusion = fuse(
        {name: c[old] for name, c in labels.items()},
        3,
        views={name: x[old] for name, x in views.items()},
        random_state=0,
    )
    new = {name: c[~old] for name, c in labels.items()}
    tables = {name: x[~old] for name, x in views.items()}
    match = np.array([np.bincount(y[old][fusion.labels == c]).argmax() for c in range(3)])
    for labels_of_new, views_of_new, least in (
        (new, tables, 0.85),
        (None, {"view1": tables["view1"]}, 0.5),
        (new, None, 0.6),
    ):
        placed = fusion.place(labels_of_new, views=views_of_new)
        known = placed.labels >= 0
        assert (match[placed.labels[known]] == y[~old][known]).mean() > least
        assert ((placed.confidence >= 0) & (placed.confidence <= 1)).all()
    with pytest.raises(InputTypeError, match="nothing to place"):
        fusion.place(None)


def test_saved_results_are_the_same(tmp_path):
    _, labels, views = make()
    fusion = fuse(labels, 3, views=views, random_state=0)
    fusion.save(tmp_path / "both.consilience")
    again = consilience.load(tmp_path / "both.consilience")
    np.testing.assert_array_equal(again.labels, fusion.labels)
    np.testing.assert_allclose(again.confidence, fusion.confidence)
    np.testing.assert_array_equal(again.decided_by, fusion.decided_by)
    assert again.summary() == fusion.summary()
    first = {name: x[:9] for name, x in views.items()}
    some = {name: c[:9] for name, c in labels.items()}
    np.testing.assert_array_equal(again.predict(some, views=first), fusion.predict(some, views=first))


def test_everything_a_result_does():
    _, labels, views = make()
    fusion = fuse(labels, 3, views=views, random_state=0, named_after="expert0")
    assert set(fusion.decided_by) <= {"both", "labels", "views", "neither"}
    assert list(fusion.to_frame().columns)[-1] == "decided_by"
    assert fusion.like(fusion).changes.n_moved == 0
    np.testing.assert_allclose(fusion.chances.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        fusion.chances[np.arange(len(fusion.labels)), fusion.labels], fusion.confidence
    )
    assert [said.source for said in fusion.explain(0).said] == [*labels, *views]
    assert np.asarray(fusion.imputed).shape == (len(fusion.labels), 3)
    assert [source.kind for source in fusion.sources] == ["labels"] * 3 + ["table"] * 2
    assert "3 base clusterings and 2 views" in fusion._repr_html_()
    assert fuse(labels, 3, unobserved="noise", random_state=0).decided_by.tolist().count("labels") > 0


def test_a_given_weight_is_kept():
    _, labels, views = make(noise_labels=1)
    fusion = fuse(labels, 3, views=views, weights={"noise0": 1, "view0": 0.3}, random_state=0)
    weight = {source.name: source.weight for source in fusion.sources}
    assert weight["noise0"] == 0.5
    assert weight["view0"] == 0.3


def test_labels_keep_partitions():
    _, labels, views = make()
    fusion = fuse(Partitions.of(labels, unobserved="keep"), 3, views=views, random_state=0)
    np.testing.assert_array_equal(fusion.labels, fuse(labels, 3, views=views, random_state=0).labels)


def test_stability_refits_both_sides():
    _, labels, views = make(n=120, noise_labels=1)
    fusion = fuse(labels, 3, views=views, random_state=0)
    found = fusion.stability(n_resamples=2)
    assert {left.without[0] for left in found.refits if left.part == "left out"} == {*labels, *views}
    lost = {left.without[0]: left.ari for left in found.refits if left.part == "left out"}
    assert lost["noise0"] > 0.95


def test_kinds_of_views_can_be_said():
    y, labels, views = make()
    model = consilience.PSE(kind={"view0": "measurements"})
    fusion = fuse(labels, 3, views=views, method=model, random_state=0)
    np.testing.assert_array_equal(fusion.labels, fuse(labels, 3, views=views, random_state=0).labels)
    answers = pd.DataFrame({"colour": np.array(["red", "blue", "green"])[y], "age": y + 0.5})
    mixed_table = fuse(labels, 3, views={"form": answers}, random_state=0)
    assert matched_accuracy_score(y, mixed_table.labels) > 0.9
