"""How stable an answer is: a plain oracle that fits every part by `fuse`, laws, and what is said of it."""

import json
import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.metrics import adjusted_rand_score

from consilience import Fusion, Partitions, fuse, fuse_views, load
from consilience.datasets import make_partial_views
from consilience.results.stability import (
    adjusted_rand,
    draw_instances,
    draw_sources,
    overlap,
    recovery,
    verdict_of,
)

K = 3


def _table(n=120, noise=(0.1, 0.2, 0.3, 0.4), missing=0.2, seed=0):
    """Opinions of different quality with gaps; every instance is seen at least once."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(K, n, p=(0.5, 0.3, 0.2))
    base = np.column_stack([np.where(rng.random(n) < share, rng.integers(0, K, n), truth) for share in noise])
    base[rng.random(base.shape) < missing] = -1
    base[:, 0] = np.where((base < 0).all(axis=1), truth, base[:, 0])
    return base


def _views(n=90):
    data = make_partial_views(n, missing=0.3, random_state=0)
    return dict(zip(("left", "right"), data.views, strict=True)), data.observed


# --- an oracle ----------------------------------------------------------------------------------------------


def _jaccard(first, second):
    """Per cluster of the first the best Jaccard index, by sets."""
    found = []
    for c in np.unique(first):
        own = set(np.flatnonzero(first == c))
        others = [set(np.flatnonzero(second == d)) for d in np.unique(second)]
        found.append(max(len(own & other) / len(own | other) for other in others))
    return dict(zip(np.unique(first).tolist(), found, strict=True))


def _oracle(fusion, parts, settings):
    """(ARI, number of clusters, Jaccard by cluster) of every part, each fitted by the public `fuse`.

    A part is the positions of instances in the table, and of columns.
    """
    out = []
    for rows, columns in parts:
        table = fusion.partitions.take(np.asarray(rows)).choose(np.asarray(columns)).compact()
        rows = np.asarray(rows)[table.seen]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = fuse(table.take_seen(), **settings).labels
        full = fusion.labels[rows]
        out.append((adjusted_rand_score(full, labels), len(np.unique(labels)), _jaccard(full, labels)))
    return out


def _drawn(fusion, n_resamples, share, seed):
    """The parts of instances and of sources, in the order in which they are drawn."""
    rng = np.random.RandomState(seed)
    n, m = fusion.partitions.n_rows, fusion.partitions.n_partitions
    # Rows in canonical order, equal ones beside each other: which of them is drawn does not matter.
    order = np.argsort(fusion.partitions.inverse, kind="stable")
    bases = fusion.partitions.canonical.bases
    instances = [order[rng.choice(n, round(share * n), replace=False)] for _ in range(n_resamples)]
    sources = [[bases[v] for v in part] for part in draw_sources(m, share, n_resamples, rng)]
    return instances, sources


@pytest.mark.parametrize(
    "settings",
    [{"method": "PCE"}, {"method": "auto"}, {"method": "DAL", "n_clusters": "auto"}],
    ids=["method", "auto", "number found"],
)
def test_every_refit_is_what_fuse_says_of_that_part(settings):
    settings = {"n_clusters": K, "random_state": 3, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the number of clusters is doubtful
        fusion = fuse(_table(), **settings)
    found = fusion.stability(n_resamples=4, share=0.5)
    instances, drawn = _drawn(fusion, 4, 0.5, 3)
    every = np.arange(fusion.partitions.n_rows)
    m = fusion.partitions.n_partitions
    parts = [(rows, range(m)) for rows in instances]
    parts += [(every, sorted(part)) for part in drawn]
    parts += [(every, [w for w in range(m) if w != v]) for v in range(m)]
    expected = _oracle(fusion, parts, settings)
    assert len(found.refits) == len(expected) == 4 + 4 + m
    for one, (ari, k, jaccard) in zip(found.refits, expected, strict=True):
        assert one.ari == pytest.approx(ari)
        assert one.n_clusters == k
        assert {c: v for c, v in enumerate(one.jaccard) if not np.isnan(v)} == pytest.approx(jaccard)


@pytest.mark.parametrize("share", [0.5, 0.8], ids=["drawn", "left out"])
def test_the_figures_follow_from_the_refits(share):
    fusion = fuse(_table(), K, method="DAL", random_state=0)
    found = fusion.stability(n_resamples=4, share=share)
    for part in found.parts:
        own = [one.ari for one in found.refits if one.part == part.part]
        assert (part.ari, part.lowest) == pytest.approx((np.mean(own), np.min(own)))
        assert sum(times for _, times in part.n_clusters) == part.n_refits == len(own)
    for c, cluster in enumerate(found.clusters):
        by_part = {
            part: [one.jaccard[c] for one in found.refits if one.part == part]
            for part in ("instances", "sources", "left out")
        }
        assert cluster.instances == pytest.approx(np.mean(by_part["instances"]))
        by_sources = by_part["sources" if share == 0.5 else "left out"]
        assert cluster.sources == pytest.approx(np.mean(by_sources))
        assert cluster.lowest == min(by_part["left out"])
        assert cluster.verdict == verdict_of(min(cluster.instances, cluster.sources))
        assert cluster.n_dissolved == sum(v <= 0.5 for values in by_part.values() for v in values)
        assert cluster.size == (fusion.labels == c).sum()
    assert [one.ari for one in found.left_out] == sorted(one.ari for one in found.left_out)
    assert found.driver == found.left_out[0]


def test_arithmetic_by_hand():
    first, second = np.array([0, 0, 0, 1, 1, -1]), np.array([0, 0, 1, 1, -1, 2])
    table = overlap(first, second, np.ones(6, dtype=int))
    np.testing.assert_array_equal(table, [[2, 1, 0], [0, 1, 0]])
    np.testing.assert_allclose(recovery(table), [2 / 3, 1 / 2])
    assert np.isnan(adjusted_rand(np.zeros((2, 2), dtype=int)))
    assert np.isnan(recovery(np.array([[1], [0]]))[1])


@pytest.mark.parametrize("seed", range(5))
def test_the_rand_index_counts_instances(seed):
    rng = np.random.default_rng(seed)
    first, second, counts = rng.integers(0, 4, 30), rng.integers(0, 3, 30), rng.integers(1, 5, 30)
    expected = adjusted_rand_score(np.repeat(first, counts), np.repeat(second, counts))
    assert adjusted_rand(overlap(first, second, counts)) == pytest.approx(expected)


@pytest.mark.parametrize(("mean", "verdict"), [(0.75, "stable"), (0.74, "uncertain"), (0.6, "uncertain"),
                                               (0.59, "dissolved"), (np.nan, "unknown")])  # fmt: skip
def test_thresholds(mean, verdict):
    assert verdict_of(mean) == verdict


def test_parts_are_drawn_without_replacement():
    counts, rng = np.array([5, 0, 3, 2]), np.random.RandomState(0)
    for _ in range(50):
        drawn = draw_instances(counts, 0.5, rng)
        assert drawn.sum() == 5
        assert (drawn <= counts).all()


def test_parts_of_sources_are_all_there_are_where_these_are_few():
    assert draw_sources(4, 0.5, 20, np.random.RandomState(0)) == list(combinations(range(4), 2))
    assert draw_sources(5, 0.9, 20, np.random.RandomState(0)) == list(combinations(range(5), 4))
    drawn = draw_sources(10, 0.6, 20, np.random.RandomState(0))  # .6 * 10 is a little more than 6
    assert len(set(drawn)) == 20
    assert {len(part) for part in drawn} == {6}


# --- laws ---------------------------------------------------------------------------------------------------


def _figures(found):
    """All that does not depend on names and order."""
    parts = [(p.part, p.n_refits, round(p.ari, 9), round(p.lowest, 9), p.n_clusters) for p in found.parts]
    clusters = sorted((c.size, round(c.instances, 9), round(c.sources, 9)) for c in found.clusters)
    return parts, clusters, sorted(round(one.ari, 9) for one in found.left_out)


@pytest.fixture(scope="module")
def plain():
    return fuse(_table(), K, method="PCE", random_state=0).stability(n_resamples=3)


def test_the_order_of_rows_and_columns_and_names_have_no_influence(plain):
    rng = np.random.default_rng(1)
    base, order = _table()[rng.permutation(120)], [2, 0, 3, 1]
    names = np.array(["north", "east", "south"])
    named = {
        f"s{j}": [None if v < 0 else names[(v + j) % K] for v in base[:, column]]
        for j, column in enumerate(order)
    }
    other = fuse(named, K, method="PCE", random_state=0).stability(n_resamples=3)
    assert _figures(other) == _figures(plain)


def test_rows_with_counts_are_rows_repeated():
    base = np.repeat(_table(60), 3, axis=0)
    repeated = fuse(base, K, method="PCE", random_state=0).stability(n_resamples=3)
    table = Partitions.of(base).distinct
    counted = fuse(table, K, method="PCE", random_state=0).stability(n_resamples=3)
    assert _figures(counted) == _figures(repeated)
    assert counted.sentences == repeated.sentences


def test_one_seed_one_answer(plain):
    fusion = fuse(_table(), K, method="PCE", random_state=0)
    assert fusion.stability(n_resamples=3).as_dict() == plain.as_dict()
    assert fusion.stability(n_resamples=3, random_state=0).as_dict() == plain.as_dict()
    assert fusion.stability(n_resamples=3, random_state=1).as_dict() != plain.as_dict()


def test_sources_that_all_say_the_same_are_perfectly_stable():
    truth = np.repeat([0, 1, 2], (30, 20, 10))
    found = fuse(np.column_stack([truth] * 5), K, random_state=0).stability(n_resamples=3)
    assert all(one.ari == 1.0 for one in found.refits)
    assert {one.verdict for one in found.clusters} == {"stable"}
    assert "No single source drives the answer" in found.sentences[-1]


def test_the_source_that_drives_it_is_named():
    """Two clusters are known to one source only."""
    truth = np.repeat([0, 1, 2, 3], 25)
    coarse = truth // 2
    table = {"coarse": coarse, "alike": coarse, "fine": truth, "again": coarse}
    found = fuse(table, 4, method="DAL", weights={"fine": 3}, random_state=0).stability(n_resamples=0)
    assert found.driver.source == "fine"
    assert found.sentences[-1].startswith("'fine' drives the answer most")


def test_weights_are_kept_and_weight_0_has_no_say():
    base = _table()
    columns = dict(zip("abcd", base.T, strict=True))
    fusion = fuse(columns, K, method="DAL", weights={"a": 0, "b": 2}, unobserved="noise", random_state=0)
    found = fusion.stability(n_resamples=0)
    assert {one.source for one in found.left_out} == {"b", "c", "d"}
    left = next(one for one in found.refits if one.without == ("d",))
    part = {name: columns[name] for name in "bc"}
    alone = fuse(part, K, method="DAL", weights={"b": 2}, unobserved="noise", random_state=0)
    both = (fusion.labels >= 0) & (alone.labels >= 0)
    assert left.ari == pytest.approx(adjusted_rand_score(fusion.labels[both], alone.labels[both]))


def test_must_links_are_kept():
    base = _table()
    pairs = [(0, 1), (1, 2), (50, 51)]
    fusion = fuse(base, K, method="PCE", must_link=pairs, random_state=0)
    found = fusion.stability(n_resamples=0)
    for j, one in enumerate(found.refits):
        kept = [c for c in range(4) if c != j]
        rows = fuse(base[:, kept], K, method="PCE", must_link=pairs, unobserved="noise", random_state=0)
        both = rows.labels >= 0
        assert one.ari == pytest.approx(adjusted_rand_score(fusion.labels[both], rows.labels[both]))


def test_noise_is_kept():
    base = _table(missing=0)
    base[:6, 1] = -1
    fusion = fuse(base, K, method="PCE", negative="noise", random_state=0)
    found = fusion.stability(n_resamples=0)
    part = fuse(base[:, [0, 1, 2]], K, method="PCE", negative="noise", random_state=0)
    assert found.refits[3].ari == pytest.approx(adjusted_rand_score(fusion.labels, part.labels))


def test_instances_that_nobody_saw_are_left_out():
    base = _table()
    base[:10] = -1
    for unobserved in ("noise", "largest"):
        fusion = fuse(base, K, method="PCE", unobserved=unobserved, random_state=0)
        found = fusion.stability(n_resamples=2)
        assert sum(one.size for one in found.clusters) == 110
        assert all(one.n_instances == 88 for one in found.refits[:2])


def test_an_estimator_of_another_library():
    base = _table(missing=0)
    found = fuse(base, K, method=AgglomerativeClustering(), random_state=0).stability(n_resamples=2)
    part = fuse(base[:, 1:], K, method=AgglomerativeClustering(), random_state=0)
    full = fuse(base, K, method=AgglomerativeClustering(), random_state=0)
    left = next(one for one in found.refits if one.without == ("0",))
    assert left.ari == pytest.approx(adjusted_rand_score(full.labels, part.labels))


def test_a_result_is_not_changed():
    fusion = fuse(_table(), K, method="PCE", random_state=0)
    codes, labels = fusion.partitions.codes.copy(), fusion.labels.copy()
    fusion.stability(n_resamples=2)
    np.testing.assert_array_equal(fusion.partitions.codes, codes)
    np.testing.assert_array_equal(fusion.labels, labels)


# --- few sources, and what cannot be fitted -----------------------------------------------------------------


def test_of_two_sources_one_is_left():
    base = _table(noise=(0.1, 0.3), missing=0.0)
    fusion = fuse({"a": base[:, 0], "b": base[:, 1]}, K, random_state=0)
    found = fusion.stability(n_resamples=2)
    assert [one.part for one in found.parts] == ["instances", "left out"]
    for one in found.refits[2:]:
        own = base[:, 0 if one.without == ("b",) else 1]
        assert one.ari == pytest.approx(adjusted_rand_score(fusion.labels, own))
    assert any("without one of them the answer is the other's own" in text for text in found.sentences)


def test_of_one_source_none_can_be_left_out():
    found = fuse(_table(noise=(0.1,), missing=0), K, random_state=0).stability(n_resamples=2)
    assert not found.left_out
    assert found.driver is None
    assert found.sentences[-1] == "There is only one source, so none can be left out."


def test_a_source_that_links_the_others_is_named():
    truth = np.tile([0, 1], 30).astype(float)
    left, right = truth.copy(), truth.copy()
    left[30:], right[:30] = np.nan, np.nan
    fusion = fuse({"left": left, "right": right, "link": truth}, 2, method="PCE", random_state=0)
    found = fusion.stability(n_resamples=2)
    link = next(one for one in found.left_out if one.source == "link")
    assert link.problem
    assert found.left_out[-1] == link
    assert (
        "Without 'link' there is no answer: the sources that are left share no instance." in found.sentences
    )
    assert found.driver.source != "link"


def test_parts_with_fewer_instances_than_clusters_are_said():
    fusion = fuse([[0, 0, 0], [1, 1, 1], [2, 2, 2], [0, 1, 2]], 4, method="PCE", random_state=0)
    found = fusion.stability(n_resamples=2, share=0.5)
    assert found.parts[0].n_failed == 2
    assert "2 of 2 parts could not be clustered." in found.sentences[0]
    json.dumps(found.as_dict(), allow_nan=False)


def test_many_sources_are_left_out_only_where_asked_for():
    base = _table(noise=(0.3,) * 31)
    fusion = fuse(base, K, method="PCE", random_state=0)
    assert not fusion.stability(n_resamples=1).left_out
    assert len(fusion.stability(n_resamples=0, leave_out=True).left_out) == 31


def test_numbers_of_clusters_that_were_given_are_not_said_to_be_found():
    given = fuse(_table(), K, method="PCE", random_state=0).stability(n_resamples=2)
    assert not given.found
    assert not any("number of clusters" in text for text in given.sentences)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_resamples": -1}, "n_resamples"),
        ({"share": 1.0}, "share"),
        ({"share": 0}, "share"),
        ({"views": [[[1.0]]]}, "views were given"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_what_is_refused(settings, message):
    fusion = fuse(_table(), K, method="PCE", random_state=0)
    with pytest.raises((ValueError, TypeError), match=message):
        fusion.stability(**settings)


def test_a_result_without_a_method():
    fusion = Fusion(np.array([0, 1]), Partitions.of([[0, 0], [1, 1]]), "Given", "It was given.", None)
    with pytest.raises(TypeError, match="holds no method"):
        fusion.stability()


# --- views --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "DAIMC", "labels", "PCE"])
def test_views_are_refitted_as_fuse_views_does(method):
    views, mask = _views()
    settings = {"method": method, "n_partitions": 3, "random_state": 2}
    fusion = fuse_views(views, 2, mask=mask, **settings)
    found = fusion.stability(n_resamples=1)
    assert found.noun == "view"
    for one in found.refits[1:]:
        (gone,) = one.without
        kept = [v for v, name in enumerate(views) if name != gone]
        rows = mask[:, kept].any(axis=1)
        part = {name: table[rows] for name, table in views.items() if name != gone}
        alone = fuse_views(part, 2, mask=mask[rows][:, kept], **settings)
        assert one.ari == pytest.approx(adjusted_rand_score(fusion.labels[rows], alone.labels))
        assert one.n_instances == rows.sum()


def test_settings_by_view_are_those_of_the_views_that_are_left():
    views, mask = _views()
    views["third"] = views["left"] + 1.0
    mask = np.column_stack([mask, mask[:, 0]])
    fusion = fuse_views(
        views,
        2,
        mask=mask,
        kind={"left": "measurements"},
        view_weights={"left": 2.0, "third": 0.5},
        random_state=0,
    )
    found = fusion.stability(n_resamples=0)
    assert not any(one.problem for one in found.refits)
    part = {name: views[name] for name in ("right", "third")}
    rows = mask[:, 1:].any(axis=1)
    part = {name: table[rows] for name, table in part.items()}
    alone = fuse_views(part, 2, mask=mask[rows][:, 1:], view_weights={"third": 0.5}, random_state=0)
    assert found.refits[0].ari == pytest.approx(adjusted_rand_score(fusion.labels[rows], alone.labels))


def test_the_order_of_views_and_instances_has_no_influence():
    views, mask = _views()
    first = fuse_views(views, 2, mask=mask, random_state=0).stability(n_resamples=2)
    order = np.random.default_rng(0).permutation(len(mask))
    turned = {"b": views["right"][order], "a": views["left"][order]}
    second = fuse_views(turned, 2, mask=mask[order][:, ::-1], random_state=0).stability(n_resamples=2)
    for one, other in zip(first.refits[:2], second.refits[:2], strict=True):
        assert one.ari == pytest.approx(other.ari)
    assert sorted(one.ari for one in first.left_out) == pytest.approx(
        sorted(one.ari for one in second.left_out)
    )


def test_a_saved_result_of_views_needs_them(tmp_path):
    views, mask = _views()
    names = [f"P{i}" for i in range(len(mask))]
    frames = {
        name: pd.DataFrame(table, index=names)[mask[:, v]] for v, (name, table) in enumerate(views.items())
    }
    fusion = fuse_views(frames, 2, random_state=0)
    fusion.save(tmp_path / "views.consilience")
    again = load(tmp_path / "views.consilience")
    assert again.given_views is None
    with pytest.raises(TypeError, match="tables of the views are needed"):
        again.stability()
    expected = fusion.stability(n_resamples=2).as_dict()
    assert again.stability(frames, n_resamples=2).as_dict() == expected
    turned = {name: frame[::-1] for name, frame in reversed(frames.items())}
    assert again.stability(turned, n_resamples=2).as_dict() == expected
    with pytest.raises(ValueError, match="the same views under the same names"):
        again.stability({"left": frames["left"]})
    with pytest.raises(ValueError, match="no row of 'P"):
        again.stability({name: frame[:20] for name, frame in frames.items()})


def test_a_saved_result_of_merged_views_says_what_it_lacks(tmp_path):
    views, mask = _views()
    fusion = fuse_views(views, 2, mask=mask, clusterer=KMeans(3, n_init=2), n_partitions=2, random_state=0)
    assert fusion.stability(n_resamples=1).parts
    fusion.save(tmp_path / "views.consilience")
    with pytest.raises(TypeError, match="does not know what clustered the views"):
        load(tmp_path / "views.consilience").stability(views, mask=mask)


def test_a_saved_result_of_labels_is_as_good_as_a_fresh_one(tmp_path):
    fusion = fuse(_table(), K, method="DAL", must_link=[(0, 1)], weights=[1, 2, 1, 1], random_state=4)
    fusion.save(tmp_path / "labels.consilience")
    again = load(tmp_path / "labels.consilience")
    assert again.seed == 4
    assert again.stability(n_resamples=2).as_dict() == fusion.stability(n_resamples=2).as_dict()


# --- what is said -------------------------------------------------------------------------------------------


def test_text_html_and_json_say_the_same(plain):
    text, page, data = str(plain), plain._repr_html_(), json.loads(json.dumps(plain.as_dict()))
    assert data["sentences"] == list(plain.sentences)
    for sentence in plain.sentences:
        assert sentence in text
        assert sentence.replace("'", "&#x27;") in page
    for part, told in zip(plain.parts, data["parts"], strict=True):
        assert f"{part.ari:.2f}" in text
        assert told["ari"] == part.ari
    assert [one["source"] for one in data["left_out"]] == [one.source for one in plain.left_out]


def test_clusters_go_by_their_names_and_numbers():
    fusion = fuse(_table(), K, method="PCE", random_state=0)
    named = fusion.rename({0: "many"})
    found = named.stability(n_resamples=1)
    assert found.clusters[0].name == "many"
    assert "0 many" in str(found)


def test_progress_is_told():
    steps = []
    fusion = fuse(dict(zip("abcd", _table().T, strict=True)), K, method="PCE",
                  random_state=0)  # fmt: skip
    fusion.stability(n_resamples=2, progress=lambda *step: steps.append(step))
    assert [done for _, done, _ in steps] == list(range(1, 7))
    assert {total for *_, total in steps} == {6}
    assert [what for what, *_ in steps][-1] == "without d"
