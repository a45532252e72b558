import pickle
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import consilience
from consilience import (
    DAL,
    LWEA,
    LWGP,
    PCE,
    Fusion,
    Partitions,
    compare,
    consensus,
    datasets,
    fuse,
    fuse_views,
)
from consilience.evidence import partitions
from consilience.evidence.views import check_views
from consilience.inference import counts as count_tables
from consilience.inference import posterior
from consilience.metrics import ensemble_agreement
from consilience.multiview.neighbours import ViewNeighbours
from consilience.results import selection as module
from tests.planted import planted


@pytest.fixture(scope="module")
def clear():
    return planted(150, 6, 3, noise=0.1, missing=0.3, seed=2)


@pytest.fixture(scope="module")
def alike():
    """So little noise that base clusterings follow from each other."""
    return planted(150, 6, 3, noise=0.03, missing=0.3, seed=2)[1]


@pytest.fixture(scope="module")
def fusion(clear):
    return fuse(clear[1], 3, random_state=0)


class TestFuse:
    def test_finds_what_is_clear(self, clear, fusion):
        truth, base = clear
        assert isinstance(fusion, Fusion)
        assert adjusted_rand_score(truth, fusion.labels) > 0.9
        assert_array_equal(np.bincount(fusion.labels), np.sort(np.bincount(fusion.labels))[::-1])
        assert fusion.labels.shape == fusion.confidence.shape == fusion.margin.shape == (150,)
        assert_allclose(fusion.coverage, (base >= 0).mean(axis=1))
        assert fusion.weights.shape == fusion.agreement.shape == (6,)
        assert fusion.weights.mean() == pytest.approx(1.0)

    def test_auto_takes_the_candidate_that_agrees_best(self, alike):
        fusion = fuse(alike, 3, random_state=0)
        assert fusion.method == fusion.candidates[0].name
        scores = [candidate.agreement for candidate in fusion.candidates]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] == pytest.approx(ensemble_agreement(fusion.labels, alike))
        tried = {candidate.name for candidate in fusion.candidates}
        assert {"DAL", "LWEA", "LWGP", "MixtureConsensus", "PCE", "SPCE", "DAL, polished"} <= tried
        assert f"{scores[0]:.3f}" in fusion.reason

    def test_nothing_is_counted_twice(self, clear, monkeypatch):
        """Links, joint rows, evidence and confidence, in one call and all that is asked of its answer."""
        calls = Counter()

        def counted(module, name):
            function = getattr(module, name)

            def call(*args, **kwargs):
                calls[name] += 1
                return function(*args, **kwargs)

            monkeypatch.setattr(module, name, call)

        counted(partitions, "connected_components")  # the groups of base clusterings
        counted(count_tables, "check_labels")  # once for all that reads joint rows
        counted(posterior, "_count")  # the evidence
        counted(posterior, "judge_rows")
        fusion = fuse(clear[1], 3, random_state=0)
        fusion.summary()
        assert fusion.to_frame() is not None
        assert fusion.imputed is not None
        assert set(calls.values()) == {1}
        assert len(calls) == 4

    def test_where_numbers_of_clusters_differ_only_those_that_may_be_taken_are_tried(self, clear):
        split = np.column_stack([clear[1], 2 * clear[1] + np.arange(len(clear[1]))[:, None] % 2])
        tried = {candidate.name for candidate in fuse(split, 3, random_state=0).candidates}
        assert tried == {"DAL", "LWEA"}

    def test_methods_that_refuse_very_many_base_clusters_are_not_tried(self, alike, monkeypatch):
        for method in (LWEA, LWGP, PCE):
            monkeypatch.setattr(method, "max_base_clusters", 10)
        tried = {candidate.name for candidate in fuse(alike, 3, random_state=0).candidates}
        assert tried == {"DAL", "DAL, polished", "MixtureConsensus", "SPCE", "SPCE, polished"}

    def test_where_even_dal_refuses_the_others_are_compared(self, alike, monkeypatch):
        for method in (DAL, LWEA, LWGP, PCE):
            monkeypatch.setattr(method, "max_base_clusters", 10)
        fusion = fuse(alike, 3, random_state=0)
        assert {candidate.method for candidate in fusion.candidates} == {"MixtureConsensus", "SPCE"}
        assert fusion.method in ("MixtureConsensus", "SPCE", "SPCE, polished")

    @pytest.mark.parametrize("kind", [np.array, pd.DataFrame, lambda table: table.tolist()])
    def test_whole_numbers_beyond_64_bits_are_filled_in(self, kind):
        big = np.array([[2**63 + 1, 2**63 + 2]] * 3 + [[2**63 + 5, 2**64 - 1]] * 3, dtype=np.uint64)
        filled = fuse(kind(big), 2, random_state=0).imputed
        assert np.asarray(filled, dtype=object).tolist() == big.tolist()

    def test_a_seed_out_of_range_is_named(self, clear):
        for seed in (-1, 2**32, "x"):
            with pytest.raises(ValueError, match=r"'random_state' parameter must be .* Hint: "):
                fuse(clear[1], 3, random_state=seed)

    def test_new_instances_have_the_numbers_of_the_labels(self, clear, fusion):
        _, base = clear
        assert (fusion.predict(base) == fusion.labels).mean() > 0.95
        unseen = np.vstack([base, np.full((2, 6), -1)])
        assert_array_equal(
            fuse(unseen, 3, unobserved="noise", random_state=0).predict(base), fusion.predict(base)
        )
        # What base labels say of the clusters places them, whatever method made the labels.
        given = fuse(base, 3, method=LabelsAsGiven(fusion.labels))
        assert_array_equal(given.predict(base), fusion.predict(base))

    def test_instances_with_labels_that_were_fitted_are_in_their_cluster(self):
        _, base = planted(300, 5, 3, noise=0.4, missing=0.4, seed=3)
        fusion = fuse(base, 3, method="MCLA", random_state=0)
        by_counts = posterior.predict_labels(fusion.evidence, fusion.partitions.codes)
        assert (by_counts != fusion.labels).any()
        assert_array_equal(fusion.predict(base), fusion.labels)
        # Where linked instances with equal labels are apart, most of them decide.
        linked = fuse([[0, 0]] * 3 + [[1, 1]] * 3, 2, method="DAL", must_link=[(2, 3)])
        assert set(linked.predict([[0, 0]])) <= set(linked.labels[:2])

    def test_new_instances_are_placed_with_what_is_sure_of_them(self, clear, fusion):
        _, base = clear
        placed = fusion.place(base)
        assert_array_equal(placed.labels, fusion.model.predict(base))
        assert_array_equal(placed.confidence, fusion.model.predict_confidence(base))
        assert (placed.alternative != placed.labels).all()
        nobody = fusion.place([[None] * 6])
        assert (nobody.labels[0], nobody.confidence[0], nobody.alternative[0]) == (-1, 0.0, -1)
        with pytest.warns(UserWarning, match="1 label of the new instances .* counts as missing: 77 of '0'"):
            assert fusion.place([[77, 0, 0, None, None, None]], unknown="missing").labels[0] >= 0

    def test_runs_of_one_program_with_other_numbers_keep_dal_unless_lwea_is_far_better(self, monkeypatch):
        truth, base = planted(200, 8, 3, noise=0.02, missing=0.0, seed=3)
        base[:, ::2] = base[:, ::2] * 4 + np.random.default_rng(0).integers(0, 4, (200, 4))
        fusion = fuse(base, 3, random_state=0)
        assert fusion.method == "DAL"
        assert "other numbers of clusters" in fusion.reason
        assert {candidate.name for candidate in fusion.candidates} == {"DAL", "LWEA"}
        assert adjusted_rand_score(truth, fusion.labels) > 0.9

    def test_sources_that_go_their_own_way_are_left_to_likelihood(self):
        rng = np.random.default_rng(0)
        truth = rng.integers(0, 8, 500)
        base = np.empty((500, 6), dtype=int)
        for j in range(6):  # clusters merged or cut, each base clustering in its own way; a fifth is noise
            whole = rng.integers(0, int(rng.integers(3, 7)), 8)[truth]
            column = whole if j % 2 else truth * 2 + (np.arange(500) % 2)
            wrong = rng.random(500) < 0.2
            base[:, j] = np.where(wrong, rng.permutation(column), column)
        base[(rng.random(base.shape) < 0.3) & (np.arange(6) != np.arange(500)[:, None] % 6)] = -1
        fusion = fuse(base, 8, random_state=0)
        assert {one.name for one in fusion.candidates} == {"HBGF", "HBGF, polished", "MixtureConsensus"}
        taken = min(
            (one for one in fusion.candidates if one.surprise is not None), key=lambda one: one.surprise
        )
        assert fusion.method == taken.name
        assert taken.surprise == pytest.approx(fusion.model.objective_[-1] / 500)
        assert "most likely" in fusion.reason
        alone = fuse(base, 8, method="DAL", random_state=0)
        assert adjusted_rand_score(truth, fusion.labels) > adjusted_rand_score(truth, alone.labels)

    def test_order_names_copies_and_counts_do_not_change_what_sources_are_left_to(self):
        rng = np.random.default_rng(1)
        truth = rng.integers(0, 4, 240)
        base = np.column_stack([truth, truth * 2 + rng.integers(0, 2, 240), truth // 2, truth])
        base = np.where(rng.random(base.shape) < 0.25, rng.integers(0, 4, base.shape), base)
        base[rng.random(base.shape) < 0.2] = -1
        base[(base < 0).all(axis=1), 0] = 0
        fusion = fuse(base, 4, random_state=0)
        assert "most likely" in fusion.reason
        order, renamed = rng.permutation(240), np.where(base < 0, -1, rng.permutation(20)[base])
        for table, labels in (
            (base[:, ::-1], fusion.labels),
            (renamed, fusion.labels),
            (base[order], fusion.labels[order]),
            (Partitions.of(base).distinct, None),
        ):
            found = fuse(table, 4, random_state=0)
            assert found.reason == fusion.reason
            if labels is not None:
                assert adjusted_rand_score(found.labels, labels) == 1.0
        silenced = fuse(
            np.column_stack([base, rng.integers(0, 9, 240)]), 4, weights=[1, 1, 1, 1, 0], random_state=0
        )
        assert silenced.reason == fusion.reason

    def test_many_distinct_rows_are_compared_on_a_sample_and_the_likeliest_is_fitted_to_all(
        self, monkeypatch
    ):
        monkeypatch.setattr(module, "SAMPLE", 100)
        rng = np.random.default_rng(0)
        truth = rng.integers(0, 5, 600)
        base = np.column_stack(
            [truth * 2 + rng.integers(0, 2, 600), truth // 2, truth * 3, truth, truth // 3]
        )
        base = np.where(rng.random(base.shape) < 0.3, rng.integers(0, 8, base.shape), base)
        fusion = fuse(base, 5, random_state=0)
        assert "most likely on 100 instances" in fusion.reason
        assert fusion.labels.shape == (600,)
        assert adjusted_rand_score(truth, fusion.labels) > 0.5

    @pytest.mark.parametrize("name", consensus.__all__)
    def test_method_by_name(self, name):
        truth, base = planted(120, 5, 3, noise=0.0, missing=0.15, seed=1)
        fusion = fuse(base, 3, method=name.lower(), random_state=0)
        assert type(fusion.model).__name__ == fusion.method == name
        assert fusion.candidates == ()
        assert adjusted_rand_score(truth, fusion.labels) == 1.0

    def test_method_as_estimator_is_cloned(self, clear):
        _, base = clear
        mine = PCE(7, gamma=0.5)
        fusion = fuse(base, 3, method=mine, random_state=0)
        assert fusion.model is not mine
        assert mine.n_clusters == 7
        assert (fusion.model.gamma, fusion.model.n_clusters) == (0.5, 3)

    def test_foreign_estimator_gets_codes(self, clear):
        _, base = clear
        fusion = fuse(base, 3, method=KMeans(n_init=1), random_state=0)
        assert fusion.method == "KMeans"
        assert fusion.n_clusters == 3
        assert fusion.confidence.shape == (150,)

    def test_same_seed_same_answer(self, clear, fusion):
        assert_array_equal(fuse(clear[1], 3, random_state=0).labels, fusion.labels)

    def test_names_and_order_change_nothing(self, clear, fusion):
        _, base = clear
        rng = np.random.default_rng(0)
        renamed = np.where(base < 0, -1, rng.permutation(10)[base])
        order = rng.permutation(150)
        for table, labels in (
            (renamed, fusion.labels),
            (base[:, ::-1], fusion.labels),
            (base[order], fusion.labels[order]),
        ):
            assert adjusted_rand_score(fuse(table, 3, random_state=0).labels, labels) == 1.0

    @pytest.mark.parametrize(
        ("base", "k"),
        [
            ([[0], [0], [1], [1], [2]], 2),
            ([[0, 0], [1, 1]], 2),
            ([[0, 0, 0], [0, 1, 0], [1, 1, 1]], 1),
            ([[0, 0], [0, 0], [1, 1], [2, 2]], 3),
            ([[0, -1], [0, 0], [-1, 1], [1, 1]], 2),
        ],
    )
    def test_tiny_tables(self, base, k):
        fusion = fuse(base, k, random_state=0)
        assert fusion.n_clusters == k
        assert np.isfinite(fusion.confidence).all()
        assert fusion.summary()

    def test_many_distinct_rows_are_compared_on_a_sample(self, monkeypatch):
        truth, base = planted(1500, 10, 4, noise=0.2, missing=0.3, seed=5)
        monkeypatch.setattr(module, "SAMPLE", 400)
        fusion = fuse(base, 4, random_state=0)
        assert "on 400 instances" in fusion.reason
        assert adjusted_rand_score(truth, fusion.labels) > 0.9
        assert len(fusion.model.labels_) == 1500

    def test_predict_places_new_instances(self, clear, fusion):
        _, base = clear
        again = fusion.model.predict(base)
        assert np.mean(again == fusion.labels) > 0.95

    def test_unseen_instances(self):
        base = [[0, 0], [0, 0], [1, 1], [1, 1], [-1, -1]]
        with pytest.raises(ValueError, match="no base clustering saw row 4"):
            fuse(base, 2)
        noise = fuse(base, 2, unobserved="noise", random_state=0)
        assert noise.labels[4] == -1
        assert noise.confidence[4] == 0.0
        assert_array_equal(noise.imputed[4], [-1, -1])
        assert fuse(base, 2, unobserved="largest", random_state=0).labels[4] == 0

    def test_groups_that_share_no_instance_are_refused_by_name(self):
        base = {"a": {1: 0, 2: 1, 3: 0}, "b": {1: 0, 2: 1}, "c": {7: 0, 8: 1}, "d": {7: 1, 8: 0}}
        with pytest.raises(ValueError, match=r"'a'.*'b'.*'c'.*'d'.*Hint"):
            fuse(base, 2)

    def test_finds_the_number_of_clusters(self):
        truth, base = planted(300, 10, 4, noise=0.2, missing=0.3, seed=6)
        fusion = fuse(base, "auto", random_state=0)
        assert fusion.n_clusters == fusion.cluster_count.n_clusters == 4
        assert adjusted_rand_score(truth, fusion.labels) > 0.9
        assert "The number of clusters was found." in fusion.summary()
        assert fusion.cluster_count.summary() in fusion.summary()
        assert "this is not a count of classes." in fusion.summary()
        assert "this is not a count of classes." in fusion._repr_html_()

    def test_an_unreliable_number_of_clusters_warns(self):
        base = np.random.default_rng(0).integers(0, 5, (80, 3))
        base[:, 0] = np.arange(80) % 20
        with pytest.warns(UserWarning, match="not reliably: .* Hint: look at cluster_count.curve"):
            fuse(base, "auto", random_state=0)

    def test_too_few_distinct_rows_say_so_once(self):
        with pytest.warns(UserWarning, match="only 2 distinct label rows") as found:
            fusion = fuse([[0, 0], [0, 0], [1, 1]], 3, random_state=0)
        assert len(found) == 1
        assert fusion.n_clusters == 2

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"n_clusters": 0}, "'n_clusters' parameter of fuse must be an int .* Hint"),
            ({"n_clusters": "many"}, "'n_clusters' parameter of fuse"),
            ({"n_clusters": 200}, "n_samples=150 should be >= n_clusters=200"),
            ({"method": "PCB"}, "Got 'PCB' instead. Hint: did you mean .*PCE"),
            ({"method": "ACMK"}, "ACMK takes one table of features"),
            ({"method": PCE}, "an instance is written with brackets"),
            ({"unobserved": "drop"}, "'unobserved' parameter of fuse"),
        ],
    )
    def test_wrong_settings(self, clear, settings, message):
        with pytest.raises(ValueError, match=message):
            fuse(clear[1], **{"n_clusters": 3, **settings})

    def test_noise_is_a_cluster_of_its_own(self):
        base = [[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1], [-1, 1, 1]]
        fusion = fuse(base, 2, negative="noise", random_state=0)
        assert fusion.coverage[4] == 1.0

    def test_verbose_talks_on_stderr(self, clear, capsys):
        fuse(clear[1], 3, random_state=0, verbose=1)
        streams = capsys.readouterr()
        assert streams.out == ""
        assert "fuse: HBGF, agreement" in streams.err


class TestFusion:
    def test_frames_come_back_as_they_went_in(self, clear):
        _, base = clear
        ids = [f"p{i}" for i in range(150)]
        names = [f"run_{j}" for j in range(6)]
        table = pd.DataFrame(np.where(base < 0, np.nan, base), columns=names, index=pd.Index(ids, name="who"))
        frame = fuse(table, 3, method="DAL").to_frame()
        assert isinstance(frame, pd.DataFrame)
        assert frame.index.tolist() == ids
        assert frame.index.name == "who"
        assert frame.columns.tolist() == ["label", "confidence", "margin", "coverage", "alternative"]
        other = pl.DataFrame({"who": ids, **dict(zip(names, base.T, strict=True))})
        frame = fuse(other, 3, method="DAL", index="who").to_frame()
        assert isinstance(frame, pl.DataFrame)
        assert frame["who"].to_list() == ids
        assert isinstance(fuse(other, 3, method="DAL", index="who").imputed, pl.DataFrame)

    def test_arrays_become_a_pandas_frame(self, fusion):
        frame = fusion.to_frame()
        assert isinstance(frame, pd.DataFrame)
        assert_array_equal(frame["label"], fusion.labels)
        assert_array_equal(frame["confidence"], fusion.confidence)

    def test_imputed_fills_only_what_was_missing(self, clear, fusion):
        _, base = clear
        assert (fusion.imputed >= 0).all()
        assert_array_equal(fusion.imputed[base >= 0], base[base >= 0])

    def test_imputed_is_what_pce_fills_in(self, clear):
        _, base = clear
        model = PCE(3, random_state=0).fit(base)
        fusion = fuse(base, 3, method=PCE(random_state=0), random_state=0)
        assert_array_equal(fusion.labels, model.labels_)
        assert_array_equal(fusion.imputed, model.imputed_)

    def test_confidence_is_the_models(self, clear):
        _, base = clear
        fusion = fuse(base, 3, method="DAL")
        assert_allclose(fusion.confidence, fusion.model.confidence_)

    def test_summary_says_what_a_reader_asks(self, fusion):
        text = fusion.summary()
        assert "3 clusters of 150 instances from 6 base clusterings" in text
        assert f"Method: {fusion.method}." in text
        assert all(f"\n{c:7d}" in text for c in range(3))
        assert "column_5" in text or "5" in text
        for sentence in fusion.diagnostics.warnings:
            assert f"Warning: {sentence}" in text

    def test_html_escapes_names(self):
        base = {"<b>": [0, 0, 1, 1, 1], "two": [0, 0, 1, 1, 0], "three": [1, 1, 0, 0, 0]}
        page = fuse(base, 2, method="DAL")._repr_html_()
        assert "&lt;b&gt;" in page
        assert "<b>2 clusters of 5 instances</b>" in page
        assert page.count("<table>") == page.count("</table>") == 2

    def test_repr(self, fusion):
        assert repr(fusion) == f"Fusion(150 instances in 3 clusters by {fusion.method})"


def kinds(n=120, seed=0):
    """Three kinds of things in two dense views and one of counts."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    dense = [rng.normal(4 * rng.normal(size=(3, 5))[truth]) for _ in range(2)]
    counts = rng.poisson(np.array([[4, 1, 1, 1], [1, 4, 1, 1], [1, 1, 4, 1]])[truth] * 1.5).astype(float)
    observed = rng.random((n, 3)) < 0.7
    observed[~observed.any(axis=1), 0] = True
    return truth, {"size": dense[0], "colour": dense[1], "words": sp.csr_array(counts)}, observed


class LabelsAsGiven(ClusterMixin, BaseEstimator):
    """Says what it was told."""

    def __init__(self, labels):
        self.labels = labels

    def fit(self, X, y=None):
        self.labels_ = np.asarray(self.labels)
        return self


class TestFuseViews:
    def test_finds_what_is_clear(self):
        truth, views, observed = kinds()
        fusion = fuse_views(views, 3, mask=observed, n_partitions=8, random_state=0)
        assert adjusted_rand_score(truth, fusion.labels) > 0.9
        merged = fuse_views(views, 3, mask=observed, n_partitions=8, method="labels", random_state=0)
        assert merged.partitions.names[:2] == ("size 1", "size 2")
        assert_array_equal(merged.partitions.observed[:, 0], observed[:, 0])
        assert_array_equal(merged.partitions.observed[:, -1], observed[:, 2])

    def test_same_seed_same_answer(self):
        _, views, observed = kinds()
        first, second = (
            fuse_views(views, 3, mask=observed, n_partitions=4, random_state=3).labels for _ in range(2)
        )
        assert_array_equal(first, second)

    def test_the_default_embeds_views_and_labels_can_be_merged_instead(self):
        truth, views, observed = kinds()
        settings = {"mask": observed, "n_partitions": 4, "random_state": 0}
        fusion = fuse_views(views, 3, **settings)
        assert fusion.method == "PSE"
        assert isinstance(fusion.model, consilience.PSE)
        assert [view.kind for view in fusion.views] == ["measurements"] * 3  # the counts are not sparse
        assert_array_equal(fusion.labels, fuse_views(views, 3, method="pse", **settings).labels)
        merged = fuse_views(views, 3, method="labels", **settings)
        assert merged.method != "PSE"
        assert merged.views == []
        assert_array_equal(merged.labels, fuse_views(views, 3, clusterer="graph", **settings).labels)
        assert adjusted_rand_score(truth, merged.labels) > 0.9

    def test_settings_of_the_default(self):
        _, views, observed = kinds()
        settings = {"mask": observed, "n_partitions": 2, "random_state": 0}
        fusion = fuse_views(views, 3, kind={"words": "counts"}, view_weights={"size": 0.5}, **settings)
        assert [view.kind for view in fusion.views] == ["measurements", "measurements", "counts"]
        assert [view.weight for view in fusion.views] == [0.5, 1.0, 1.0]
        asked = consilience.PSE(kind={"words": "counts"}, view_weights={"size": 0.5})
        assert_array_equal(fusion.labels, fuse_views(views, 3, method=asked, **settings).labels)
        assert asked.n_clusters == 8  # the user's own estimator is as it was
        for method in ("APMC", "labels"):  # what a view holds is said to every method
            said = fuse_views(views, 3, kind={"words": "counts"}, method=method, **settings)
            assert said.given_views.table.kinds == (None, None, "counts")
        with pytest.raises(ValueError, match=r"view_weights is a setting of PSE"):
            fuse_views(views, 3, view_weights=[1, 1, 1], clusterer="kmeans", **settings)

    def test_says_what_was_read_and_used_of_each_view(self):
        rng = np.random.default_rng(0)
        truth = np.arange(90) % 3
        size = rng.normal(4 * rng.normal(size=(3, 5))[truth])
        words = rng.poisson(rng.gamma(0.1, 5.0, size=(3, 60))[truth]).astype(float)
        words[:, 0] += 1
        words[:10] = 0.0
        fusion = fuse_views({"size": size, "words": words, "same": np.ones((90, 2))}, 3, random_state=0)
        first, second, third = fusion.views
        assert first[:5] == ("size", "measurements", ("standardised columns",), 90, 0)
        assert (second.kind, second.n_rows, second.n_empty) == ("counts", 80, 10)
        assert (third.n_rows, third.weight) == (0, 0.0)
        assert first.agreement > 0.7
        lines = fusion.summary().splitlines()
        assert lines[0] == "3 clusters of 90 instances from 3 views, 0% of the rows absent."
        start = next(i for i, line in enumerate(lines) if line.startswith("view "))
        assert lines[start + 1].split() == ["size", "measurements", "90", "0", first.agrees, "1.00"]
        assert lines[start + 2].split() == ["words", "counts", "80", "10", second.agrees, "1.00"]
        assert lines[start + 3].split() == ["same", "measurements", "0", "0", "-", "0.00"]
        assert lines[start + 4].startswith("Empty rows have no entry at all")
        assert any(line.startswith("Warning: view 'same' tells no two instances apart") for line in lines)
        page = fusion._repr_html_()
        assert "<b>3 clusters of 90 instances</b> from 3 views" in page
        assert "<td>measurements</td>" in page

    def test_margin_and_alternative_follow_the_places_that_confidence_follows(self):
        _, views, observed = kinds()
        fusion = fuse_views(views, 3, mask=observed, random_state=0)
        centers = fusion.model._centers
        d = ((fusion.model.embedding_[:, None] - centers) ** 2).sum(axis=2)
        others = 1.0 / np.sort(d, axis=1)[:, 1:]  # share what the confidence leaves
        following = (1.0 - fusion.confidence) * others[:, 0] / others.sum(axis=1)
        assert_allclose(fusion.margin, fusion.confidence / (fusion.confidence + following), atol=1e-9)
        assert_array_equal(fusion.diagnostics.alternative, np.argsort(d, axis=1)[:, 1])
        turned = fusion.like(np.array([5, 9, 7])[fusion.labels])
        expected = np.array([5, 9, 7])[fusion.diagnostics.alternative]
        assert_array_equal(turned.diagnostics.alternative, expected)

    def test_identical_instances_are_not_sure(self):
        with pytest.warns(ConvergenceWarning, match=r"only 1 distinct instance for n_clusters=3"):
            fusion = fuse_views([np.ones((20, 2))] * 2, 3, random_state=0)
        assert_array_equal(fusion.labels, 0)
        assert_array_equal(fusion.confidence, 0.0)
        assert any("nothing is known of 20 instances" in sentence for sentence in fusion.diagnostics.warnings)

    def test_instances_without_information(self):
        rng = np.random.default_rng(0)
        truth = np.arange(90) % 3
        size = rng.normal(4 * rng.normal(size=(3, 5))[truth])
        words = sp.csr_array(np.where(np.arange(90)[:, None] < 5, 0.0, 2 * np.eye(30)[truth * 7]))
        size[:5] = np.nan
        fusion = fuse_views({"size": size, "words": words}, 3, random_state=0)
        assert_array_equal(fusion.labels[:5], 0)
        assert_array_equal(fusion.confidence[:5], 0.0)
        assert (fusion.confidence[5:] > 0).all()
        assert_array_equal(fusion.coverage[:5], 0.0)
        assert_array_equal(fusion.coverage[5:], 1.0)
        assert any("nothing is known of 5 instances" in sentence for sentence in fusion.diagnostics.warnings)
        left_out = consilience.PSE(unobserved="noise")
        other = fuse_views({"size": size, "words": words}, 3, method=left_out, random_state=0)
        assert_array_equal(other.labels[:5], -1)
        assert_array_equal(other.confidence[:5], 0.0)
        assert_array_equal(fusion.predict({"size": size[5:9]}), fusion.labels[5:9])
        assert "nothing is known" in other.summary()
        assert len(other.to_frame()) == 90

    def test_any_clusterer_will_do(self):
        truth, views, observed = kinds()
        dense = {name: views[name] for name in ("size", "colour")}
        observed[~observed[:, :2].any(axis=1), 0] = True
        for clusterer in ("kmeans", AgglomerativeClustering()):
            fusion = fuse_views(
                dense, 3, mask=observed[:, :2], clusterer=clusterer, n_partitions=5, random_state=0
            )
            assert adjusted_rand_score(truth, fusion.labels) > 0.8

    def test_frames_are_joined_by_id(self):
        truth, views, observed = kinds()
        ids = np.array([f"p{i}" for i in range(len(truth))])
        frames = {
            name: pd.DataFrame(views[name][observed[:, v]], index=ids[observed[:, v]])
            for v, name in enumerate(("size", "colour"))
        }
        fusion = fuse_views(frames, 3, n_partitions=6, random_state=0)
        found = dict(zip(fusion.index, fusion.labels, strict=True))
        kept = np.isin(ids, list(found))
        assert kept.sum() == len(fusion.labels)
        assert adjusted_rand_score(truth[kept], [found[i] for i in ids[kept]]) > 0.9

    def test_finds_the_number_of_clusters(self):
        _, views, _ = kinds(seed=1)
        with pytest.warns(UserWarning, match="not reliably"):  # base clusterings of 2 to 20 clusters
            fusion = fuse_views(views, "auto", n_partitions=6, random_state=0)
        assert fusion.n_clusters == fusion.cluster_count.n_clusters

    def test_views_that_share_no_instance_are_refused(self):
        X = np.random.default_rng(0).normal(size=(40, 2))
        mask = np.repeat([[True, False], [False, True]], 20, axis=0)
        with pytest.raises(ValueError, match=r"no instance links the views 'view0' to 'view1': .* Hint"):
            fuse_views([X, X], 2, mask=mask, n_partitions=2)

    def test_a_multi_view_method_clusters_the_views_itself(self):
        truth, views, _ = kinds(seed=1)
        fusion = fuse_views(views, 3, method="apmc", n_partitions=4, random_state=0)
        assert fusion.method == "APMC"
        assert isinstance(fusion.model, consilience.APMC)
        again = fuse_views(views, 3, method=consilience.APMC(), n_partitions=4, random_state=0)
        assert_array_equal(fusion.labels, again.labels)
        assert (np.diff(np.bincount(fusion.labels)) <= 0).all()  # the largest first, as everywhere
        assert adjusted_rand_score(truth, fusion.labels) > 0.9
        assert fusion.partitions.n_partitions == 0  # no base clusterings are made up

    def test_answers_in_the_kind_of_frame_that_was_given(self):
        _, views, _ = kinds(seed=1)
        ids = [f"i{p}" for p in range(120)]
        frames = [
            pl.DataFrame({"who": ids, **{f"f{j}": views[name][:, j] for j in range(5)}})[start:]
            for name, start in (("size", 0), ("colour", 20))
        ]
        table = fuse_views(frames, 3, on="who", n_partitions=2, method="DAL", random_state=0).to_frame()
        assert isinstance(table, pl.DataFrame)
        assert table["who"].to_list() == ids

    def test_progress_counts_views_then_methods(self):
        _, views, _ = kinds(seed=1)
        told = []
        fuse_views(
            views, 3, n_partitions=3, method="labels", random_state=0, progress=lambda *s: told.append(s)
        )
        assert [step[1:] for step in told[: len(views)]] == [(v + 1, len(views)) for v in range(len(views))]
        assert all(done <= total for _, done, total in told)
        assert told[-1][0].startswith("merged by ")

    def test_wrong_settings(self):
        X = np.random.default_rng(0).normal(size=(10, 2))
        with pytest.raises(ValueError, match="'n_partitions' parameter of fuse_views"):
            fuse_views([X], 2, n_partitions=0)
        with pytest.raises(ValueError, match="'method' parameter of base_partitions"):
            fuse_views([X], 2, clusterer="forest")
        with pytest.raises(ValueError, match="Got 'APMD' instead"):
            fuse_views([X], 2, method="APMD")

    def test_neighbours_have_the_last_word(self, monkeypatch):
        truth, views, observed = kinds()
        labels = truth.copy()
        labels[::10] = (labels[::10] + 1) % 3
        wrong = LabelsAsGiven(labels)
        fusion = fuse_views(views, 3, mask=observed, method=wrong, n_partitions=2, random_state=0)
        assert adjusted_rand_score(truth, labels) < 0.8 < 0.95 < adjusted_rand_score(truth, fusion.labels)
        assert fusion.reason.endswith("joined its nearest neighbours.")
        by_means = fuse_views(
            views, 3, mask=observed, method=wrong, clusterer="kmeans", n_partitions=2, random_state=0
        )
        assert adjusted_rand_score(labels, by_means.labels) == 1.0

    def test_a_clusterer_of_ones_own_gets_the_table_as_it_is(self):
        X = np.r_[
            np.random.default_rng(0).normal(size=(15, 2)), np.random.default_rng(1).normal(9, 1, (15, 2))
        ]
        apart = np.linalg.norm(X[:, None] - X, axis=2)[::-1, ::-1]
        given = AgglomerativeClustering(2, metric="precomputed", linkage="average")
        fusion = fuse_views([apart], 2, clusterer=given, n_partitions=2, method="DAL", random_state=0)
        for column in fusion.partitions.codes.T:
            assert not set(column[:15]) & set(column[15:])

    def test_the_vote_against_a_loop(self):
        truth, views, observed = kinds(seed=4)
        table = check_views(views, mask=observed)
        neighbours = ViewNeighbours().fit(table)
        expected = []
        for i in range(len(truth)):
            votes = np.zeros(3)
            for v, view in enumerate(neighbours.by_view):
                for look in view.by_look if observed[i, v] else ():
                    row = look.graph[np.flatnonzero(view.rows == i)].toarray().ravel()
                    votes += np.bincount(truth[view.rows], row, 3) / row.sum() / len(view.by_look)
            expected.append(votes.argmax())
        assert_array_equal(neighbours.vote(truth), expected)

    def test_the_vote_empties_no_cluster(self):
        X = np.random.default_rng(0).normal(size=(40, 2))
        labels = np.zeros(40, dtype=int)
        labels[[3, 30]] = 1, 2  # instances alone among others
        found = ViewNeighbours().fit(check_views([X])).vote(labels)
        assert_array_equal(found, labels)

    @pytest.mark.parametrize("clusterer", ["graph", "kmeans"])
    def test_new_instances_are_placed_by_their_features(self, clusterer):
        truth, views, observed = kinds(seed=2)
        known, new = np.arange(90), np.arange(90, 120)
        fusion = fuse_views(
            {name: view[known] for name, view in views.items()},
            3,
            mask=observed[known],
            clusterer=clusterer,
            n_partitions=8,
            random_state=0,
        )
        found = fusion.predict({name: view[new] for name, view in views.items()}, mask=observed[new])
        together = np.concatenate([fusion.labels, found])
        assert adjusted_rand_score(truth, together) > 0.85
        assert_array_equal(
            found,
            pickle.loads(pickle.dumps(fusion)).predict(
                {name: view[new] for name, view in views.items()}, mask=observed[new]
            ),
        )
        of_one_view = fusion.predict({"colour": views["colour"][new]})
        assert adjusted_rand_score(truth[new], of_one_view) > 0.6
        with pytest.raises(ValueError, match=r"there was no view 'taste' .* Hint: the views are 'size'"):
            fusion.predict({"taste": views["colour"][new]})

    def test_wide_views_are_scaled_in_two_ways(self):
        rng = np.random.default_rng(0)
        wide, narrow, text = rng.normal(5, 2, (30, 12)), rng.normal(size=(30, 4)), sp.csr_array(np.eye(30))
        found = ViewNeighbours().fit(check_views([wide, narrow, text])).by_view
        assert [len(view.by_look) for view in found] == [2, 1, 1]
        standard, directions = found[0].reading.apply(wide)
        assert_allclose(standard, (wide - wide.mean(axis=0)) / wide.std(axis=0))
        assert_allclose(directions, wide / np.linalg.norm(wide, axis=1, keepdims=True))
        assert (
            fuse_views(
                [wide, narrow], 2, n_partitions=3, method="labels", random_state=0
            ).partitions.n_partitions
            == 6
        )
        assert (
            fuse_views([wide], 2, n_partitions=1, method="DAL", random_state=0).partitions.n_partitions == 1
        )

    def test_many_views_get_fewer_base_clusterings_each(self):
        X = np.random.default_rng(0).normal(size=(15, 2))
        for n_views, expected in ((2, 20), (12, 10), (30, 5)):
            fusion = fuse_views([X] * n_views, 2, method="MixtureConsensus", random_state=0)
            assert fusion.partitions.n_partitions == n_views * expected

    def test_tiny_views_get_few_clusters(self):
        X = np.random.default_rng(0).normal(size=(5, 2))
        assert len(np.unique(fuse_views([X, X], 2, n_partitions=3, random_state=0).labels)) == 2


class TestCompare:
    def test_lines_are_what_each_method_says(self, clear):
        _, base = clear
        found = compare(base, 3, methods=["DAL", consilience.PCE(gamma=10)], n_resamples=2, random_state=0)
        assert [row.method for row in found.rows] == list(found.fusions)
        for row in found.rows:
            fusion = found.fusions[row.method]
            assert row.agreement == pytest.approx(ensemble_agreement(fusion.labels, base))
            assert row.confidence == pytest.approx(fusion.confidence.mean())
            assert row.stability > 0.9
        assert found.rows[0].agreement >= found.rows[1].agreement

    def test_stability_tells_a_ruled_table_from_noise(self, clear):
        _, base = clear
        noise = np.random.default_rng(0).integers(0, 3, base.shape)
        many = {"methods": ["DAL"], "n_resamples": 40, "random_state": 0}
        ruled, random = (compare(t, 3, **many).rows[0] for t in (base, noise))
        assert ruled.stability > 0.9 > 0.6 > random.stability

    def test_several_numbers_of_clusters(self, clear):
        _, base = clear
        found = compare(base, range(2, 5), methods=["DAL"], n_resamples=0, random_state=0)
        assert sorted(row.n_clusters for row in found.rows) == [2, 3, 4]
        assert set(found.fusions) == {"DAL, k = 2", "DAL, k = 3", "DAL, k = 4"}
        assert all(np.isnan(row.stability) for row in found.rows)

    def test_numbers_of_clusters_are_not_ranked_by_agreement(self, clear):
        _, base = clear
        found = compare(base, [2, 8, 3, 5], methods=["LWGP", "DAL"], n_resamples=0, random_state=0)
        assert found.n_clusters == found.cluster_count.n_clusters == 3
        assert [row.n_clusters for row in found.rows] == [3, 3, 2, 2, 5, 5, 8, 8]
        assert [row.rank for row in found.rows] == [1, 2] * 4
        for first, second in zip(found.rows[::2], found.rows[1::2], strict=True):
            assert first.agreement >= second.agreement
        assert next(iter(found.fusions)).endswith(", k = 3")
        assert found.reason.startswith("3 clusters first. The labels support 3 clusters")
        assert "within a number of clusters only" in repr(found)

    def test_of_other_numbers_the_one_of_highest_modularity_comes_first(self, clear):
        _, base = clear
        found = compare(base, [12, 4, 8], methods=["DAL"], n_resamples=0, random_state=0)
        modularity = found.cluster_count.curve.modularity
        assert (
            found.n_clusters == found.rows[0].n_clusters == max([12, 4, 8], key=lambda k: modularity[k - 1])
        )
        assert "of the numbers compared it has the highest modularity" in found.reason

    def test_one_number_of_clusters_is_taken_as_it_is(self, clear):
        _, base = clear
        given = compare(base, 4, methods=["DAL"], n_resamples=0, random_state=0)
        assert (given.n_clusters, given.cluster_count) == (4, None)
        assert given.reason.startswith("4 clusters, as was asked for.")
        found = compare(base, "auto", methods=["DAL"], n_resamples=0, random_state=0)
        assert (found.n_clusters, len(found.rows)) == (3, 1)
        assert "not a count of classes" in found.reason

    def test_a_number_that_is_given_and_found_is_compared_once(self, clear):
        _, base = clear
        found = compare(base, [3, "auto", 3], methods=["DAL"], n_resamples=0, random_state=0)
        assert [row.n_clusters for row in found.rows] == [3]

    def test_a_method_that_fails_does_not_stop_the_others(self, clear):
        class Broken(consilience.DAL):
            def fit(self, X, y=None):
                raise ValueError("this one refuses. Hint: none")

        _, base = clear
        found = compare(base, 3, methods=[Broken(), "DAL"], n_resamples=1, random_state=0)
        assert [row.method for row in found.rows] == ["DAL", "Broken"]
        assert found.rows[1].error == "this one refuses. Hint: none"
        assert [row.rank for row in found.rows] == [1, 0]
        assert list(found.fusions) == ["DAL"]
        assert "this one refuses" in repr(found)

    def test_auto_is_what_fuse_does_and_progress_reaches_the_end(self, clear):
        _, base = clear
        told = []
        found = compare(
            base, 3, methods=["auto"], n_resamples=1, random_state=0, progress=lambda *step: told.append(step)
        )
        assert found.rows[0].method.startswith("auto (")
        assert told[-1][1:] == (2, 2)

    def test_two_base_clusterings_leave_no_part_to_compare_with(self, clear):
        _, base = clear
        assert np.isnan(compare(base[:, :2], 3, methods=["DAL"], unobserved="noise").rows[0].stability)

    def test_wrong_settings_are_refused_before_any_fit(self, clear):
        _, base = clear
        with pytest.raises(ValueError, match=r"Got 'DALL' instead. Hint"):
            compare(base, 3, methods=["DAL", "DALL"])
        with pytest.raises(ValueError, match=r"'n_clusters' parameter of compare"):
            compare(base, [3, 0])
        with pytest.raises(ValueError, match=r"'n_resamples' parameter of compare"):
            compare(base, 3, n_resamples=-1)


def test_names_of_the_package():
    assert consilience.fuse is fuse
    assert consilience.results.fuse is fuse


@pytest.mark.data
@pytest.mark.usefixtures("data_folder")
class TestOnPools:
    def test_lung_is_left_to_the_method_that_suits_it(self):
        """Very unequal sizes: DAL alone has .55 on these runs, SPCE .74."""
        pool = datasets.load("pool_Zhou_Lung")
        scores = []
        for run in range(3):
            fusion = fuse(pool.labels[:, 20 * run : 20 * run + 20], 5, random_state=0)
            scores.append(
                consilience.metrics.normalized_mutual_info_score(pool.y, fusion.labels, normalization="max")
            )
        assert np.mean(scores) > 0.68

    def test_never_far_below_dal_on_a_pool_of_mixed_numbers(self):
        pool = datasets.load("pool_LWEA_VS")
        columns = np.random.default_rng(1).permutation(100)[:10]
        table = Partitions.of(pool.labels[:, columns])
        fusion = fuse(table, 4, random_state=0)
        dal = DAL(4).fit_predict(table)
        assert ensemble_agreement(fusion.labels, table) >= ensemble_agreement(dal, table)
