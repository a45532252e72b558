"""The number of clusters: against an SVD, on planted ensembles, and its laws."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from consilience import Partitions, fuse
from consilience.diagnostics import choose_n_clusters, resample_n_clusters
from consilience.generate import base_partitions
from consilience.inference import counting
from consilience.inference.counting import caution
from consilience.inference.resampling import _distribution
from tests.oracles.diagnostics import plain_eigenvalues, plain_support
from tests.planted import planted


def noise_alone(n, ks, *, missing, seed):
    rng = np.random.default_rng((seed, 7))
    base = np.column_stack([rng.integers(0, k, n) for k in ks])
    base[rng.random(base.shape) < missing] = -1
    return base[(base >= 0).any(axis=1)]


class TestFewInstances:
    @pytest.mark.parametrize(("n", "m", "k"), [(15, 85, 5), (30, 85, 5), (15, 85, 3), (12, 100, 4)])
    def test_many_sources_that_agree_are_heard(self, n, m, k):
        """Sortings of a few terms by many people: the null has fewer directions than the table has sides."""
        for seed in range(3):
            base = planted(n, m, k, noise=0.3, missing=0.0, seed=seed)[1]
            found = choose_n_clusters(Partitions.of(base), random_state=seed)
            assert found.curve.null[0] < 0.7
            assert found.n_clusters > 1


class TestChoice:
    @pytest.mark.parametrize("missing", [0.0, 0.4])
    @pytest.mark.parametrize("k", [2, 3, 4, 6, 9])
    def test_planted_clusters_are_counted(self, k, missing):
        for seed in range(3):
            base = planted(300, 12, k, noise=0.3, missing=missing, seed=seed)[1]
            found = choose_n_clusters(Partitions.of(base), max_clusters=15, random_state=seed)
            assert found.n_clusters == k
            assert found.reliable

    @pytest.mark.parametrize("missing", [0.0, 0.4])
    def test_noise_is_one_cluster(self, missing):
        answers = []
        for seed in range(12):
            base = noise_alone(200, (2, 3, 4, 5, 6, 3, 4), missing=missing, seed=seed)
            found = choose_n_clusters(Partitions.of(base), max_clusters=4, random_state=seed)
            answers.append(found.n_clusters)
            assert found.beyond_chance == (found.n_clusters > 1)
        assert answers.count(1) >= 11

    def test_eigenvalues_are_those_of_the_incidence(self):
        base = planted(90, 5, 3, noise=0.3, missing=0.3, seed=1)[1]
        found = choose_n_clusters(Partitions.of(base), max_clusters=8, random_state=0)
        assert_allclose(found.curve.eigenvalue, plain_eigenvalues(base)[:8], atol=1e-10)
        assert_array_equal(found.curve.k, np.arange(1, 9))
        assert_allclose(found.curve.score, found.curve.k * found.curve.gap)

    def test_silhouette_is_that_of_a_cut(self):
        base = planted(60, 5, 3, noise=0.0, missing=0.2, seed=1)[1]
        truth = planted(60, 5, 3, noise=0.0, missing=0.2, seed=1)[0]
        found = choose_n_clusters(Partitions.of(base), max_clusters=5, random_state=0)
        s = plain_support(base, truth)
        own = s[np.arange(60), truth]
        s[np.arange(60), truth] = -1
        assert_allclose(found.curve.silhouette[2], np.mean((own - s.max(axis=1)) / (1 - s.max(axis=1))))
        assert found.curve.silhouette[1:].argmax() == 1
        assert np.isnan(found.curve.silhouette[0])

    def test_names_order_and_silent_bases_change_nothing(self):
        rng = np.random.default_rng(5)
        base = planted(200, 8, 4, noise=0.3, missing=0.3, seed=0)[1]
        found = choose_n_clusters(Partitions.of(base), random_state=0)
        other = np.where(base >= 0, 9 - base, -1)[rng.permutation(200)][:, rng.permutation(8)]
        wider = np.column_stack([other, np.zeros(200, dtype=int)])
        for table in (other, wider):
            again = choose_n_clusters(Partitions.of(table), random_state=0)
            assert again.n_clusters == found.n_clusters
            assert_allclose(again.curve.eigenvalue, found.curve.eigenvalue, atol=1e-10)
            assert_allclose(again.curve.null, found.curve.null, rtol=0.05)

    def test_repeated_rows_have_the_same_spectrum(self):
        base = planted(100, 6, 3, noise=0.3, missing=0.3, seed=0)[1]
        once = choose_n_clusters(Partitions.of(base), random_state=0)
        thrice = choose_n_clusters(Partitions.of(np.repeat(base, 3, axis=0)), random_state=0)
        assert_allclose(once.curve.eigenvalue, thrice.curve.eigenvalue, atol=1e-10)
        assert once.n_clusters == thrice.n_clusters == 3

    def test_same_seed_same_answer_and_the_global_state_is_left_alone(self):
        table = Partitions.of(planted(100, 6, 3, noise=0.3, missing=0.3, seed=0)[1])
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        first, second = (choose_n_clusters(table, random_state=3) for _ in range(2))
        assert json.dumps(first.as_dict(), allow_nan=False) == json.dumps(second.as_dict(), allow_nan=False)
        choose_n_clusters(table)
        assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
        assert repr(first) == "ClusterCount(n_clusters=3, reliable)"

    @pytest.mark.parametrize("ks", [(5,) * 6, (2, 9, 4, 12, 3, 20)])
    @pytest.mark.parametrize("missing", [0.0, 0.4])
    def test_drawn_tables_have_the_level_of_permuted_labels(self, ks, missing):
        rng = np.random.RandomState(0)
        ensemble = counting._speaking(Partitions.of(noise_alone(2000, ks, missing=missing, seed=0)))
        permuted = np.array(list(counting._permuted_levels(ensemble, 25, rng)))
        drawn = np.array(list(counting._drawn_levels(ensemble, 25, rng)))
        # Of what noise adds to the level without noise, not of the level itself.
        floor = np.mean(1.0 / (ensemble.codes >= 0).sum(axis=1))
        assert abs(drawn.mean() - permuted.mean()) < 0.15 * (permuted.mean() - floor)

    def test_many_instances_draw_the_null(self, monkeypatch):
        base = planted(400, 8, 4, noise=0.3, missing=0.3, seed=0)[1]
        monkeypatch.setattr(counting, "_PERMUTED", 100)
        monkeypatch.setattr(counting, "_SAMPLE", 100)
        assert choose_n_clusters(Partitions.of(base), random_state=0).n_clusters == 4

    def test_many_base_clusters_go_through_the_labels(self, monkeypatch):
        table = Partitions.of(planted(200, 8, 4, noise=0.3, missing=0.3, seed=0)[1])
        found = choose_n_clusters(table, random_state=0)
        monkeypatch.setattr(counting, "_MAX_TABLE", 10)
        again = choose_n_clusters(table, random_state=0)
        assert_allclose(again.curve.eigenvalue, found.curve.eigenvalue, atol=1e-10)
        assert_allclose(again.curve.null, found.curve.null, rtol=2e-2)
        assert again.n_clusters == 4


def mixed(seed, centers=5, n=300):
    """k-means of 2 to 20 clusters on overlapping blobs: no gap stands out."""
    X, _ = make_blobs(n, centers=centers, n_features=4, cluster_std=4.0, random_state=seed)
    return base_partitions(X, (2, 20), 10, random_state=seed)


def cloud(seed):
    X = np.random.default_rng(seed).standard_normal((300, 6))
    return base_partitions(X, (2, 20), 10, random_state=seed)


class TestModularity:
    def test_decides_where_no_gap_stands_out(self):
        for seed in range(3):
            found = choose_n_clusters(Partitions.of(mixed(seed)), random_state=0)
            curve = found.curve
            assert (found.rule, found.reliable) == ("modularity", False)
            assert found.n_clusters == np.nanargmax(curve.modularity) + 1
            good = curve.k[curve.modularity >= 0.95 * np.nanmax(curve.modularity)]
            assert (found.low, found.high) == (good[0], good[-1])
            assert found.low <= found.n_clusters <= found.high
            best = curve.score[1:].max()
            others = curve.score[1:][np.abs(curve.k[1:] - (2 + curve.score[1:].argmax())) > 1]
            assert best < 3 * others.max()

    def test_does_not_decide_where_one_does(self):
        base = planted(300, 12, 4, noise=0.1, missing=0.1, seed=0)[1]
        found = choose_n_clusters(Partitions.of(base), random_state=0)
        assert (found.rule, found.n_clusters, found.bases_have) == ("spectrum", 4, 4)
        assert found.repeatable
        assert not found.may_be_one_cloud

    def test_candidates_are_what_each_rule_found(self):
        found = choose_n_clusters(Partitions.of(mixed(1)), random_state=0)
        curve = found.curve
        expected = {
            "walk": 2 + np.nanargmax(curve.walk[1:]),
            "modularity": 2 + np.nanargmax(curve.modularity[1:]),
            "spectrum": 2 + curve.score[1 : found.n_significant].argmax(),
        }
        assert {name: c.n_clusters for c in found.candidates for name in c.found_by} == expected
        ks = [c.n_clusters for c in found.candidates]
        assert ks == sorted(set(ks))
        for c in found.candidates:
            sign = np.sign(c.n_clusters - found.n_clusters)
            assert c.role == {-1: "coarse", 0: "chosen", 1: "fine"}[sign]
            place = c.n_clusters - 1
            assert c.modularity == curve.modularity[place]
            assert c.stability == curve.stability[place]
            assert c.smallest == curve.smallest[place]

    def test_one_cloud_is_flagged_and_clusters_are_not(self):
        flags = [choose_n_clusters(Partitions.of(cloud(seed)), random_state=0) for seed in range(6)]
        assert sum(found.may_be_one_cloud for found in flags) >= 5
        assert all(found.n_clusters > 1 for found in flags)  # said, not decided
        assert any("one cloud" in sentence for sentence in flags[0].warnings)
        for seed in range(6):
            base = planted(300, 10, 5, noise=0.3, missing=0.3, seed=seed)[1]
            assert not choose_n_clusters(Partitions.of(base), random_state=0).may_be_one_cloud

    def test_names_order_and_counts_change_no_bit(self):
        rng = np.random.default_rng(5)
        for base in (mixed(2, n=200), planted(200, 8, 4, noise=0.3, missing=0.3, seed=0)[1]):
            base = np.repeat(base, rng.integers(1, 4, 200), axis=0)
            shuffled = np.where(base >= 0, 99 - base, -1)[rng.permutation(len(base))][
                :, rng.permutation(base.shape[1])
            ]
            tables = [Partitions.of(base), Partitions.of(shuffled), Partitions.of(base).distinct]
            found = [choose_n_clusters(table, random_state=0).as_dict() for table in tables]
            assert json.dumps(found[0]) == json.dumps(found[1]) == json.dumps(found[2])

    def test_too_many_base_clusters_leave_it_to_the_spectrum(self, monkeypatch):
        table = Partitions.of(mixed(0))
        whole = choose_n_clusters(table, random_state=0)
        monkeypatch.setattr(counting, "_MAX_LINKED", 10)
        found = choose_n_clusters(table, random_state=0)
        assert (found.rule, found.reliable, found.repeatable) == ("spectrum", False, False)
        assert found.n_clusters == next(c for c in whole.candidates if "spectrum" in c.found_by).n_clusters
        assert np.isnan(found.curve.modularity).all()
        assert "the gap is largest" in found.sentences[1]
        json.dumps(found.as_dict(), allow_nan=False)

    def test_it_is_said_that_this_is_no_count_of_classes(self):
        noise = noise_alone(200, (2, 3, 4, 5, 6, 3, 4), missing=0.0, seed=0)
        for base in (mixed(0), noise, planted(200, 8, 4, noise=0.3, missing=0.3, seed=0)[1]):
            found = choose_n_clusters(Partitions.of(base), random_state=0)
            assert "this is not a count of classes." in found.sentences[0]
            assert found.as_dict()["sentences"] == list(found.sentences)
        assert "about" in choose_n_clusters(Partitions.of(mixed(0)), random_state=0).sentences[0]


class TestCaution:
    """A number that was given hears what "auto" would have said of it."""

    def test_one_cloud_is_flagged_and_clusters_are_not(self):
        found = [caution(Partitions.of(cloud(seed)), 4) for seed in range(6)]
        assert sum(any("one cloud" in sentence for sentence in each.warnings) for each in found) >= 5
        for seed in range(6):
            base = planted(300, 10, 5, noise=0.3, missing=0.3, seed=seed)[1]
            assert caution(Partitions.of(base), 4).warnings == ()

    def test_repeatability_is_that_of_auto(self):
        for base in (mixed(0), planted(300, 12, 4, noise=0.1, missing=0.1, seed=0)[1]):
            count = choose_n_clusters(Partitions.of(base), random_state=0)
            said = caution(Partitions.of(base), count.n_clusters).repeatability
            halves = count.curve.stability[count.n_clusters - 1]
            shown = float(said.split("agree to ")[1].split()[0])
            assert abs(shown - halves) < 0.15  # other halves
            assert said.startswith("Repeatable" if shown >= 0.7 else "Not repeatable")

    def test_nothing_is_said_where_nothing_can_be(self, monkeypatch):
        table = Partitions.of(planted(100, 6, 3, noise=0.2, missing=0.0, seed=0)[1])
        assert caution(table, 3).repeatability
        for other, k in ((table, 1), (table, 31), (Partitions.of([[0], [1], [1], [0]]), 2)):
            assert caution(other, k) == ("", ())
        monkeypatch.setattr(counting, "_MAX_TABLE", 5)
        assert caution(table, 3) == ("", ())

    def test_fuse_says_it(self):
        found = fuse(cloud(0), 5, method="DAL", random_state=0)
        assert any("one cloud" in sentence for sentence in found.warnings)
        assert found.headline.repeatability.startswith("Not repeatable")


class TestUnimodalReference:
    def test_sees_that_k_means_cuts_one_cloud(self):
        wrong, right = [], []
        for seed in range(6):  # about two of three are seen; fewer than two of six once in a hundred times
            X = np.random.default_rng(seed).standard_normal((200, 6))
            table = Partitions.of(base_partitions(X, (2, 5), 8, random_state=seed))
            for answers, reference in ((wrong, "permutation"), (right, "unimodal")):
                found = choose_n_clusters(table, max_clusters=8, reference=reference, random_state=0)
                answers.append(found.n_clusters)
        assert 1 not in wrong  # k-means bases agree beyond chance about one cloud
        assert right.count(1) >= 2

    def test_leaves_separate_clusters_alone(self):
        X, _ = make_blobs(200, centers=4, n_features=6, cluster_std=1.0, random_state=0)
        base = base_partitions(X, (2, 6), 8, random_state=0)
        base[np.random.default_rng(0).random(base.shape) < 0.3] = -1
        table = Partitions.of(base, unobserved="keep")
        assert choose_n_clusters(table, max_clusters=8, reference="unimodal", random_state=0).n_clusters == 4


class TestHonesty:
    def test_mixed_numbers_of_clusters_are_warned_about(self):
        X, _ = make_blobs(300, centers=4, n_features=6, random_state=0)
        found = choose_n_clusters(
            Partitions.of(base_partitions(X, (2, 20), 8, random_state=0)), random_state=0
        )
        assert not found.reliable
        assert any("clusters" in sentence and "Hint: " in sentence for sentence in found.warnings)

    def test_a_bound_that_is_too_low_is_not_reliable(self):
        table = Partitions.of(planted(300, 10, 9, noise=0.2, missing=0.0, seed=0)[1])
        assert not choose_n_clusters(table, max_clusters=5, random_state=0).reliable

    def test_too_few_labels_to_tell_are_warned_about(self):
        base = planted(100, 10, 10, noise=0.2, missing=0.75, seed=0)[1]
        found = choose_n_clusters(Partitions.of(base), random_state=0)
        assert not found.reliable
        assert any("hide behind it. Hint: more" in sentence for sentence in found.warnings)
        assert found.curve.null.max() <= 1.0
        json.dumps(found.as_dict(), allow_nan=False)

    def test_too_little_to_compare_is_one_cluster_with_a_warning(self):
        for base in ([[0], [1], [1]], [[0, 0], [0, 1], [0, 0]]):
            found = choose_n_clusters(Partitions.of(base))
            assert (found.n_clusters, found.reliable) == (1, False)
            assert "at least two" in found.warnings[0]
            json.dumps(found.as_dict(), allow_nan=False)

    @pytest.mark.parametrize("table_size", [1000, 10])
    def test_identical_bases_give_their_number(self, table_size, monkeypatch):
        monkeypatch.setattr(counting, "_MAX_TABLE", table_size)
        truth = np.arange(60) % 5
        table = Partitions.of(np.repeat(truth[:, None], 6, axis=1))
        assert choose_n_clusters(table, random_state=0).n_clusters == 5

    def test_bad_parameters_are_refused(self):
        table = Partitions.of(planted(50, 4, 3, noise=0.1, missing=0.0, seed=0)[1])
        for options in ({"max_clusters": 1}, {"n_null": 1}, {"reference": "none"}):
            with pytest.raises(ValueError, match="of choose_n_clusters must be"):
                choose_n_clusters(table, **options)


class TestResampling:
    def test_measures_are_those_of_all_pairs(self):
        labels = np.array([[0, 0, -1, 1], [0, 1, 0, 1], [1, 1, 0, 0], [1, -1, 1, 0], [0, 1, 1, -1]])
        shares = []
        for i in range(5):
            for j in range(i):
                both = (labels[i] >= 0) & (labels[j] >= 0)
                if both.any():
                    shares.append(np.mean(labels[i, both] == labels[j, both]))
        shares = np.array(shares)
        found = _distribution(labels)
        grid = np.arange(101) / 100
        assert_allclose(found.cdf, [(shares <= x + 1e-9).mean() for x in grid])
        assert_allclose(found.area, 1 - shares.mean())
        assert_allclose(found.pac, ((shares > 0.1) & (shares <= 0.9)).mean())
        inner = shares[(shares > 0) & (shares < 1)]
        expected = -(inner * np.log(inner) + (1 - inner) * np.log(1 - inner)).sum() / len(shares)
        assert_allclose(found.entropy, expected)

    def test_finds_clusters_and_their_absence(self):
        options = {"n_resamples": 8, "null": "gaussian", "n_null": 20, "random_state": 0}
        X, _ = make_blobs(90, centers=[[0, 0, 0], [8, 0, 0], [0, 8, 0]], random_state=0)
        found = resample_n_clusters(X, (2, 3), **options)
        assert (found.n_clusters, found.reliable) == (3, True)
        cloud = np.random.default_rng(0).standard_normal((90, 3))
        assert resample_n_clusters(cloud, (2,), **options).n_clusters == 1

    def test_curve_without_a_null(self):
        X, _ = make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
        found = resample_n_clusters(X, (4, 2, 3), n_resamples=15, max_instances=50, random_state=1)
        again = resample_n_clusters(X, (4, 2, 3), n_resamples=15, max_instances=50, random_state=1)
        assert_array_equal(found.curve.k, [2, 3, 4])
        assert found.curve.cdf.shape == (3, 101)
        assert_array_equal(found.curve.cdf[:, -1], 1.0)
        assert np.isnan(found.curve.rcsi).all()
        assert (found.n_clusters, found.reliable) == (3, False)
        assert_allclose(found.curve.delta_area[1:], np.diff(found.curve.area) / found.curve.area[:-1])
        assert json.dumps(found.as_dict(), allow_nan=False) == json.dumps(again.as_dict(), allow_nan=False)

    def test_bad_parameters_are_refused(self):
        X = np.random.default_rng(0).standard_normal((20, 2))
        with pytest.raises(ValueError, match=r"'ks' parameter .* at least 2.* Hint"):
            resample_n_clusters(X, (1, 2))
        with pytest.raises(ValueError, match="'null' parameter of resample_n_clusters"):
            resample_n_clusters(X, null="uniform")
