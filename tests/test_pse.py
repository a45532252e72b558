"""PSE against the plain version, its laws, and its edges."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import PSE, check_views
from consilience.metrics import matched_accuracy_score
from consilience.multiview import pse
from consilience.multiview.scaling import recognise
from tests.oracles.pse import plain_explained, plain_graph, plain_looks, plain_pse


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


def mixed(n=80, k=3, seed=0, missing=0.3):
    """A narrow and a wide table of measurements and one of counts; every instance keeps a view."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % k)
    narrow = rng.normal(3 * rng.normal(size=(k, 4))[truth])
    wide = rng.normal(2 * rng.normal(size=(k, 12))[truth]) + 3
    words = rng.poisson(rng.gamma(0.15, 3.0, size=(k, 60))[truth]).astype(float)
    words[:, 0] += rng.integers(1, 9, n)  # no row is empty, and no two are as far apart as can be
    observed = rng.random((n, 3)) >= missing
    observed[~observed.any(axis=1), 0] = True
    return truth, {"narrow": narrow, "wide": wide, "words": words}, observed


def noisy(n=120, seed=0):
    """Clusters that overlap, so that every choice shows."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 4
    views = {f"v{v}": rng.normal(1.2 * rng.normal(size=(4, 6))[truth]) for v in range(3)}
    observed = rng.random((n, 3)) >= 0.4
    observed[~observed.any(axis=1), 1] = True
    return truth, views, observed


def gram(x):
    return x @ x.T


class TestAgainstThePlainOne:
    @pytest.mark.parametrize("weights", [None, [1.0, 0.5, 2.0]])
    def test_embedding_and_clusters(self, weights):
        truth, views, observed = mixed()
        model = PSE(3, view_weights="equal" if weights is None else weights, random_state=0)
        model.fit(views, mask=observed)
        kinds = [reading.kind for reading in model.view_readings_.values()]
        assert kinds == ["measurements", "measurements", "counts"]
        expected, _, _ = plain_pse(list(views.values()), observed, kinds, 3, weights)
        assert_allclose(gram(model.embedding_), gram(expected), atol=1e-8)
        best = KMeans(3, n_init=50, random_state=1).fit(expected)
        assert adjusted_rand_score(best.labels_, model.labels_) == 1.0
        assert adjusted_rand_score(truth, model.labels_) > 0.9

    def test_graph(self):
        _, views, _ = mixed(60)
        for name, kind in (("narrow", "measurements"), ("wide", "measurements"), ("words", "counts")):
            x = pse.stored(views[name], kind)
            reading = pse.read(x, kind)
            looks = reading.apply(x)
            expected = plain_looks(views[name], kind)
            for look, plain in zip(looks, expected, strict=True):
                assert_allclose(look.toarray() if sp.issparse(look) else look, plain, atol=1e-12)
            assert_allclose(pse.view_graph(looks)[1].toarray(), plain_graph(expected), atol=1e-10)

    def test_iterated_eigenvectors_are_near_those_of_the_whole_matrix(self, monkeypatch):
        """From 300 rows on eigenvectors are iterated, to 1e-3: the places hardly differ."""
        _, views, _ = mixed(600)
        x = views["wide"]
        graph = pse.view_graph(pse.read(x, "measurements").apply(x))[1]
        rough = pse.soft_embedding(graph, 6)
        monkeypatch.setattr(pse, "_EIGEN_TOL", 1e-10)
        assert_allclose(gram(rough), gram(pse.soft_embedding(graph, 6)), atol=0.02)

    def test_relation_and_its_null_distribution(self):
        _, views, _ = mixed(40)
        first = pse.view_graph(pse.read(views["narrow"], "measurements").apply(views["narrow"]))[1]
        z = np.random.default_rng(0).normal(size=(40, 2)) + np.arange(40)[:, None] / 20
        share, permuted = plain_explained(first.toarray(), z, np.random.default_rng(1), 300)
        found, mean, deviation = pse.explained_by_neighbours(first, z - z.mean(axis=0))
        assert found == pytest.approx(share, rel=1e-9)
        assert mean == pytest.approx(np.mean(permuted), abs=4 * np.std(permuted) / np.sqrt(300))
        assert deviation == pytest.approx(np.std(permuted), rel=0.15)

    def test_support_of_clusters(self):
        truth, views, observed = mixed(50)
        model = PSE(3, random_state=0).fit(views, mask=observed)
        kinds = [reading.kind for reading in model.view_readings_.values()]
        _, graphs, rows = plain_pse(list(views.values()), observed, kinds, 3)
        for v, (g, here) in enumerate(zip(graphs, rows, strict=True)):
            labels = model.labels_[here]
            for c in range(3):
                share = np.mean(labels == c)
                inside = np.mean([g[i][labels == c].sum() / g[i].sum() for i in np.flatnonzero(labels == c)])
                assert model.view_support_[v, c] == pytest.approx((inside - share) / (1 - share))
        assert_allclose(model.view_agreement_, model.view_support_.mean(axis=1))
        assert adjusted_rand_score(truth, model.labels_) > 0.9


class TestLaws:
    def test_order_of_instances_and_views_changes_nothing(self):
        _, views, observed = noisy()
        model = PSE(4, random_state=0).fit(views, mask=observed)
        order = np.random.default_rng(1).permutation(len(observed))
        turned = {name: views[name][order] for name in ("v2", "v0", "v1")}
        other = PSE(4, random_state=0).fit(turned, mask=observed[order][:, [2, 0, 1]])
        assert_array_equal(other.labels_, model.labels_[order])
        assert_array_equal(other.embedding_, model.embedding_[order])
        assert_array_equal(other.view_agreement_, model.view_agreement_[[2, 0, 1]])
        assert_allclose(other.confidence_, model.confidence_[order], rtol=1e-12)

    @pytest.mark.parametrize("seed", range(4))
    def test_dense_with_nan_is_sparse_with_a_mask(self, seed):
        rng = np.random.default_rng(seed)
        truth = np.arange(90) % 3
        tables = [rng.poisson(rng.gamma(0.1, 1.0, size=(3, 80))[truth]) * 0.1 for _ in range(2)]
        for v, table in enumerate(tables):
            table[v : 20 * v + 20] = 0.0
        observed = rng.random((90, 2)) >= 0.3
        observed[~observed.any(axis=1), 0] = True
        dense = [np.where(observed[:, [v]], table, np.nan) for v, table in enumerate(tables)]
        first = PSE(3, random_state=0, unobserved="noise")
        second = PSE(3, random_state=0, unobserved="noise")
        empty = any(not table[observed[:, v]].any(axis=1).all() for v, table in enumerate(tables))
        lost = ~np.logical_or(*(table.any(axis=1) & observed[:, v] for v, table in enumerate(tables)))
        for model, given, mask in (
            (first, dense, None),
            (second, [sp.csr_array(table) for table in tables], observed),
        ):
            if lost.any():
                with pytest.warns(UserWarning, match="nothing is known of"):
                    model.fit(given, mask=mask)
            else:
                model.fit(given, mask=mask)
        assert empty
        assert_array_equal(first.labels_, second.labels_)
        assert_array_equal(first.embedding_, second.embedding_)

    def test_unit_and_shift_of_measurements_change_nothing(self):
        _, views, observed = noisy()
        model = PSE(4, random_state=0).fit(views, mask=observed)
        other = {name: 3.0 * view + 100.0 for name, view in views.items()}
        assert_array_equal(PSE(4, random_state=0).fit(other, mask=observed).labels_, model.labels_)

    def test_equal_rows_get_one_place(self):
        rng = np.random.default_rng(0)
        kinds = rng.normal(size=(9, 3)) * 4
        x = np.repeat(kinds, 12, axis=0)
        model = PSE(3, random_state=0).fit([x, x + 1])
        places = model.embedding_.reshape(9, 12, -1)
        assert_allclose(places, np.broadcast_to(places[:, :1], places.shape), atol=1e-9)
        assert (model.labels_.reshape(9, 12) == model.labels_.reshape(9, 12)[:, :1]).all()

    def test_a_view_of_weight_zero_is_no_view(self):
        _, views, observed = noisy()
        observed[:, :2] = True
        model = PSE(4, view_weights={"v2": 0.0}, random_state=0).fit(views, mask=observed)
        without = PSE(4, random_state=0).fit({n: views[n] for n in ("v0", "v1")})
        assert adjusted_rand_score(model.labels_, without.labels_) == 1.0


class TestReading:
    def test_values_decide_and_not_storage(self):
        rng, every = np.random.default_rng(0), np.ones(30, bool)
        counts = rng.poisson(0.1, size=(30, 40)).astype(float)
        assert recognise(counts, every) == recognise(sp.csr_array(counts), every) == "counts"
        assert recognise(-counts, every) == "measurements"
        assert recognise(counts + 1, every) == "measurements"
        links = (rng.random((30, 30)) < 0.1) * (1.0 - np.eye(30))
        assert recognise(links, every) == recognise(sp.csr_array(links), every) == "links"
        assert recognise(links + np.eye(30), every) == "counts"

    def test_zeros_and_ones_are_answers_unless_they_are_words_or_links(self):
        rng, every = np.random.default_rng(0), np.ones(60, bool)
        for share, columns, kind in (
            (0.05, 40, "binary"),  # mutations of a panel of genes
            (0.05, 501, "counts"),  # words of documents
            (0.4, 501, "binary"),
            (0.4, 12, "binary"),
            (0.05, 60, "counts"),  # links: one of them to itself
        ):
            x = (rng.random((60, columns)) < share).astype(float)
            x[0, 0] = 1.0
            assert recognise(x, every) == recognise(sp.csr_array(x), every) == kind
            assert recognise(2 * x, every) in ("counts", "measurements")
        assert recognise(np.ones((60, 3)), every) == "measurements"
        assert recognise(np.zeros((60, 3)), every) == "counts"

    def test_reads_of_genes_are_recognised_and_other_whole_numbers_are_not(self):
        rng, every = np.random.default_rng(0), np.ones(80, bool)
        genes, depth = np.exp(rng.normal(3, 2, 50)), np.exp(0.4 * rng.normal(size=(80, 1)))
        reads = rng.poisson(genes * depth * rng.gamma(3, 1 / 3, (80, 50))).astype(float)
        assert recognise(reads, every) == recognise(sp.csr_array(reads), every) == "log-counts"
        assert recognise(reads[:, ::-1], every) == "log-counts"
        for other in (
            reads + 0.5,  # not whole
            reads - 1.0,  # negative
            reads[:, :19],  # few columns
            rng.permuted(
                reads, axis=0
            ),  # a row has no size that all its columns share, as with incomes and ages
            rng.poisson(50 * depth * np.ones(50)).astype(float),  # all of one size
            np.rint(1e6 * reads / reads.sum(axis=1, keepdims=True)),  # equal totals
        ):
            assert recognise(other, every) == "measurements"
        some = rng.random(80) < 0.7
        assert recognise(np.where(some[:, None], reads, 0.0), some) == "log-counts"

    @pytest.mark.parametrize(("kind", "columns"), [("binary", 30), ("binary", 520), ("log-counts", 25)])
    def test_looks_against_the_plain_ones(self, kind, columns):
        rng = np.random.default_rng(1)
        x = rng.poisson(rng.gamma(0.4, 4.0, (40, columns))).astype(float)
        x = (x > 0).astype(float) if kind == "binary" else x
        x[:, 3] = 1.0  # a column that is the same everywhere
        x = x[x.any(axis=1)]
        reading = pse.read(x, kind)
        for look, plain in zip(reading.apply(x), plain_looks(x, kind), strict=True):
            assert_allclose(look, plain, atol=1e-12)
        assert len(reading.looks) == len(reading.apply(x))

    def test_a_row_of_zeros_is_an_answer_where_answers_are_binary(self):
        truth, views, _ = mixed(missing=0.0)
        rng = np.random.default_rng(3)
        panel = (rng.random((80, 15)) < np.where(truth == 0, 0.0, 0.4)[:, None]).astype(float)
        model = PSE(3, random_state=0).fit({**views, "panel": panel}, mask=np.ones((80, 4), bool))
        assert model.view_readings_["panel"][0] == "binary"
        assert model.view_readings_["panel"][2:] == (80, 0)
        alone = PSE(2, random_state=0).fit({"panel": panel})
        assert alone.informed_.all()
        assert adjusted_rand_score(truth == 0, alone.labels_) > 0.8
        absent = PSE(2, kind="counts", random_state=0)
        with pytest.warns(pse.DoubtfulWarning, match="nothing is known of"):
            assert not absent.fit({"panel": panel}).informed_[truth == 0].any()
        wild = alone.predict({"panel": np.zeros((2, 15))})
        assert_array_equal(wild, np.bincount(alone.labels_[truth == 0]).argmax())

    def test_any_two_values_are_binary_and_which_is_yes_does_not_matter(self):
        _, views, _ = mixed(missing=0.0)
        panel = (views["words"][:, 1:20] > 0).astype(float)
        (look,) = pse.read(panel, "binary").apply(panel)
        model = PSE(3, random_state=0).fit({"panel": panel})
        for other in (1.0 - panel, 1.0 + panel, 3.0 * panel - 7.0):
            assert_allclose(gram(pse.read(other, "binary").apply(other)[0]), gram(look), atol=1e-12)
            again = PSE(3, kind="binary", random_state=0).fit({"panel": other})
            assert adjusted_rand_score(again.labels_, model.labels_) == 1.0
        with pytest.raises(
            ValueError,
            match=r"view 'panel' has 4 different values \(0, 1, 2, \.\.\.\), .*'binary'.*Hint: code",
        ):
            PSE(3, kind="binary").fit({"panel": np.minimum(views["words"][:, 1:20], 3.0)})

    def test_how_many_reads_a_row_has_does_not_matter(self):
        right = {"log-counts": [], "measurements": []}
        for seed in range(4):
            rng = np.random.default_rng(seed)
            truth = np.arange(120) % 3
            fold = np.exp(0.7 * rng.normal(size=(3, 300)) * (rng.random((3, 300)) < 0.1))
            genes = np.exp(rng.normal(4, 1.5, 300)) * fold
            reads = rng.poisson(genes[truth] * rng.gamma(2, 1 / 2, (120, 300))).astype(float)
            deep = reads * rng.integers(1, 6, (120, 1))
            for kind, found in right.items():
                model = PSE(3, kind=kind, random_state=0).fit({"rna": deep})
                found.append(adjusted_rand_score(truth, model.labels_))
            model = PSE(3, kind="log-counts", random_state=0).fit({"rna": deep})
            assert_array_equal(model.predict({"rna": 3 * deep[:20]}), model.predict({"rna": deep[:20]}))
        assert np.mean(right["log-counts"]) > 0.8
        assert np.mean(right["measurements"]) < 0.5

    def test_a_row_without_reads_is_absent(self):
        rng = np.random.default_rng(0)
        reads = rng.poisson(np.exp(rng.normal(3, 2, 40)), (60, 40)).astype(float)
        reads[:5] = 0.0
        other = reads[:, :4] + rng.normal(size=(60, 4))
        model = PSE(2, kind={"rna": "log-counts"}, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pse.DoubtfulWarning)  # one cloud
            model.fit({"rna": reads, "other": other})
        assert model.view_readings_["rna"][2:] == (55, 5)

    @pytest.mark.parametrize("kind", ["binary", "log-counts"])
    def test_order_and_storage_of_the_new_kinds_change_nothing(self, kind):
        rng = np.random.default_rng(0)
        truth = np.arange(70) % 3
        x = rng.poisson(np.exp(rng.normal(0, 1.5, (3, 30)))[truth]).astype(float)
        x = (x > 0).astype(float) if kind == "binary" else x
        beside = rng.normal(3 * np.eye(3)[truth], 1.0)
        model = PSE(3, kind={"x": kind}, random_state=0).fit({"x": x, "beside": beside})
        rows, columns = rng.permutation(70), rng.permutation(30)
        again = PSE(3, kind={"x": kind}, random_state=0)
        again.fit({"beside": beside[rows], "x": sp.csr_array(x[rows])})
        assert_array_equal(model.labels_[rows], again.labels_)
        again.fit({"x": x[:, columns], "beside": beside})
        assert adjusted_rand_score(model.labels_, again.labels_) == 1.0

    def test_explicit_zeros_of_sparse_tables_are_zeros(self):
        x = sp.csr_array((np.array([1.0, 0.0, 2.0]), [0, 1, 1], [0, 1, 2, 3]), shape=(3, 8))
        assert recognise(x, np.ones(3, bool)) == "counts"
        assert pse.stored(x, "counts").nnz == 2
        assert x.nnz == 3  # the user's table is as it was

    def test_what_the_user_says_counts(self):
        _, views, observed = mixed()
        model = PSE(3, kind={"words": "measurements"}, random_state=0).fit(views, mask=observed)
        assert model.view_readings_["words"].kind == "measurements"
        assert model.view_readings_["words"].looks == ("standardised columns", "unit rows")
        assert model.view_readings_["narrow"].looks == ("standardised columns",)
        model = PSE(3, kind="counts", random_state=0).fit({"words": views["words"]})
        assert model.view_readings_["words"].kind == "counts"
        with pytest.raises(
            ValueError, match=r"view 'narrow' has negative entries, which kind='counts'.*Hint"
        ):
            PSE(3, kind={"narrow": "counts"}).fit(views, mask=observed)
        with pytest.raises(
            ValueError, match=r"neither a view nor a column 'word'.*Hint: did you mean 'words'"
        ):
            PSE(3, kind={"word": "counts"}).fit(views, mask=observed)
        with pytest.raises(ValueError, match=r"the kind of 'words' cannot be 'text'\. Hint: there are"):
            PSE(3, kind={"words": "text"}).fit(views, mask=observed)
        with pytest.raises(ValueError, match=r"'log_counts'\. Hint: did you mean 'log-counts'"):
            PSE(3, kind={"words": "log_counts"}).fit(views, mask=observed)
        with pytest.raises(ValueError, match=r"view 'wide' has negative .* kind='log-counts'.*Hint: .*log"):
            PSE(3, kind={"wide": "log-counts"}).fit(views, mask=observed)

    def test_empty_rows_of_counts_are_absent(self):
        truth, views, observed = mixed(missing=0.0)
        views["words"][:20] = 0.0
        model = PSE(3, random_state=0).fit(views, mask=observed)
        assert model.view_readings_["words"][2:] == (60, 20)
        hidden = observed.copy()
        hidden[:20, 2] = False
        other = PSE(3, random_state=0).fit(views, mask=hidden)
        assert other.view_readings_["words"][2:] == (60, 0)
        assert_array_equal(model.labels_, other.labels_)
        assert adjusted_rand_score(truth, model.labels_) > 0.9

    def test_bad_weights(self):
        _, views, observed = mixed()
        for wrong, message in (
            ([1.0, 2.0], r"a number of at least 0 for each of the 3 views"),
            ([1.0, -1.0, 1.0], r"at least 0"),
            ([0.0, 0.0, 0.0], r"all view_weights are 0\. Hint"),
            ({"word": 1.0}, r"view_weights speaks of a view 'word'"),
        ):
            with pytest.raises(ValueError, match=message):
                PSE(3, view_weights=wrong).fit(views, mask=observed)


class TestNothingKnown:
    @pytest.fixture
    def silent(self):
        """Three instances whose words are empty, and who have no other view."""
        truth, views, observed = mixed(missing=0.0)
        views["words"][:3], observed[:3, :2] = 0.0, False
        return truth, views, observed

    def test_they_go_to_the_largest_cluster_or_nowhere(self, silent):
        truth, views, observed = silent
        with pytest.warns(UserWarning, match="nothing is known of 3 instances: .* Hint"):
            model = PSE(3, random_state=0).fit(views, mask=observed)
        assert_array_equal(np.flatnonzero(~model.informed_), [0, 1, 2])
        assert_array_equal(model.labels_[:3], 0)
        with pytest.warns(UserWarning, match="nothing is known of"):
            other = PSE(3, unobserved="noise", random_state=0).fit(views, mask=observed)
        assert_array_equal(other.labels_[:3], -1)
        assert_array_equal(other.labels_[3:], model.labels_[3:])
        assert adjusted_rand_score(truth[3:], model.labels_[3:]) > 0.9
        with pytest.raises(
            ValueError, match=r"nothing is known of 3 instances: .* The first is row 0\. Hint"
        ):
            PSE(3, unobserved="error", random_state=0).fit(views, mask=observed)
        new = {"words": np.zeros((2, 60))}
        assert_array_equal(model.predict(new), [0, 0])
        assert_array_equal(other.predict(new), [-1, -1])

    @pytest.mark.parametrize("x", [np.ones((20, 2)), np.zeros((20, 30))])
    def test_identical_instances_are_not_split(self, x):
        with pytest.warns() as caught:
            model = PSE(3, random_state=0).fit([x, x])
        said = " ".join(str(warning.message) for warning in caught)
        assert "nothing is known of 20 instances" in said
        assert "only 1 distinct instance for n_clusters=3" in said
        assert_array_equal(model.labels_, 0)
        assert not model.informed_.any()

    def test_few_distinct_instances_make_few_clusters(self):
        x = np.repeat([[0.0, 1.0], [5.0, 2.0]], 15, axis=0)
        with pytest.warns(ConvergenceWarning, match=r"only 2 distinct instances for n_clusters=4"):
            model = PSE(4, random_state=0).fit([x, x])
        assert_array_equal(model.labels_.reshape(2, 15) == model.labels_[[0, 15]][:, None], True)

    def test_a_view_that_says_nothing_is_named(self):
        truth, views, _ = mixed(missing=0.0)
        views["same"] = np.ones((len(truth), 3))
        with pytest.warns(UserWarning, match=r"view 'same' tells no two instances apart.*not used.* Hint"):
            model = PSE(3, random_state=0).fit(views)
        assert model.view_weights_[3] == 0.0
        assert np.isnan(model.view_agreement_[3])
        assert adjusted_rand_score(truth, model.labels_) > 0.9
        assert_array_equal(model.predict({"same": np.ones((2, 3))}), [0, 0])


class TestWeakViews:
    @pytest.fixture
    def unrelated(self):
        """Clusters in one view, noise in the other."""
        rng = np.random.default_rng(0)
        truth = np.arange(400) % 4
        return truth, {
            "good": rng.normal(1.5 * rng.normal(size=(4, 8))[truth]),
            "noise": rng.uniform(size=(400, 2)),
        }

    def test_a_view_that_shares_nothing_counts_by_its_reproducibility(self, unrelated):
        truth, views = unrelated
        with pytest.warns(UserWarning, match=r"view '(good|noise)' shares nothing with any other") as caught:
            model = PSE(4, random_state=0).fit(views)
        assert sum("shares nothing" in str(warning.message) for warning in caught) == 2
        assert_array_equal(model.view_weights_ == 1.0, [True, False])
        assert model.view_weights_[1] == pytest.approx(0.1)
        assert model.view_reproducibility_[0] > 0.5 > 0.3 > model.view_reproducibility_[1]
        assert adjusted_rand_score(truth, model.labels_) > 0.9

    def test_views_that_are_related_count_alike(self):
        _, views, observed = noisy()
        model = PSE(4, random_state=0).fit(views, mask=observed)
        assert_array_equal(model.view_weights_, 1.0)
        assert (model.view_relations_ > 0.2).all()
        assert np.isnan(model.view_reproducibility_).all()

    def test_a_view_that_supports_the_clusters_much_less_is_named(self):
        rng = np.random.default_rng(0)
        truth = np.arange(150) % 3
        good = rng.normal(5 * rng.normal(size=(3, 4))[truth])
        poor = rng.normal(0.4 * rng.normal(size=(3, 4))[truth])
        with pytest.warns(UserWarning, match=r"view 'poor' supports the clusters much less than view 'good'"):
            model = PSE(3, random_state=0).fit({"good": good, "poor": poor})
        assert_array_equal(model.view_weights_, 1.0)
        assert model.view_agreement_[1] < 0.5 * model.view_agreement_[0]
        assert len(model.findings_) == 1

    def test_too_few_common_rows_say_nothing(self):
        rng = np.random.default_rng(0)
        views = [rng.normal(size=(60, 3)), rng.normal(size=(60, 3))]
        observed = np.ones((60, 2), dtype=bool)
        observed[:25, 0], observed[34:, 1] = False, False
        model = PSE(2, random_state=0).fit(views, mask=observed)
        assert np.isnan(model.view_relations_).all()
        assert_array_equal(model.view_weights_, 1.0)

    def test_what_was_weighed_draws_nothing_of_the_answer(self, unrelated):
        _, views = unrelated
        rng = np.random.RandomState(0)
        with pytest.warns(UserWarning, match="shares nothing"):
            PSE(4, random_state=rng).fit(views)
        other = np.random.RandomState(0)
        with pytest.warns(UserWarning, match="shares nothing"):
            PSE(4, view_weights="equal", random_state=other).fit(views)
        assert rng.randint(2**31) == other.randint(2**31)


class TestPredict:
    def test_new_instances_by_hand(self):
        """The share of every cluster among the nearest rows, weighted as in the graph, over views."""
        truth, views, _ = mixed(60, missing=0.0)
        known, new = slice(0, 50), slice(50, 60)
        model = PSE(3, view_weights=[1.0, 2.0, 1.0], random_state=0).fit(
            {n: x[known] for n, x in views.items()}
        )
        expected, total = np.zeros((10, 3)), 0.0
        for name, weight in (("narrow", 1.0), ("wide", 2.0)):
            x = views[name][known]
            fitted = plain_looks(x, "measurements")
            looked = [(views[name][new] - x.mean(axis=0)) / x.std(axis=0)]
            if len(fitted) == 2:
                looked.append(views[name][new] / np.linalg.norm(views[name][new], axis=1)[:, None])
            for z, rows in zip(fitted, looked, strict=True):
                between = ((z[:, None] - z[None]) ** 2).sum(axis=2)
                for i, row in enumerate(rows):
                    d = ((z - row) ** 2).sum(axis=1)
                    for m in (5, 10, 20, 40):
                        near = np.argsort(d)[:m]
                        reach = np.array([np.sort(between[j])[1 : m + 1].mean() for j in near])
                        s = (d[near].mean() + reach + d[near]) / 6
                        w = np.exp(-0.5 * (d[near] / s) ** 2) / s
                        share = np.bincount(model.labels_[near], w / w.sum(), 3)
                        expected[i] += weight * share / (4 * len(fitted))
            total += weight
        given = check_views({"narrow": views["narrow"][new], "wide": views["wide"][new]})
        arrays = [*given.arrays, sp.csr_array((10, 60))]
        observed = np.column_stack([given.observed, np.zeros(10, dtype=bool)])
        votes = pse.votes_of_neighbours(model._result, model.labels_, arrays, observed)
        assert_allclose(votes, expected / total, atol=1e-9)
        found = model.predict({name: views[name][new] for name in ("narrow", "wide")})
        assert_array_equal(found, expected.argmax(axis=1))
        assert adjusted_rand_score(truth[new], found) > 0.8

    def test_any_subset_of_views(self):
        truth, views, observed = mixed(200)
        known, new = np.arange(150), np.arange(150, 200)
        model = PSE(3, random_state=0).fit({n: x[known] for n, x in views.items()}, mask=observed[known])
        for names in (["narrow"], ["words"], ["wide", "words"], ["narrow", "wide", "words"]):
            found = model.predict({name: views[name][new] for name in names})
            assert adjusted_rand_score(truth[new], found) > 0.7
        sparse = model.predict({"words": sp.csr_array(views["words"][new])})
        assert_array_equal(sparse, model.predict({"words": views["words"][new]}))
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict({"words": views["words"][new]}), sparse)


class TestConfidence:
    def test_by_hand(self):
        """The formula, with its numbers counted one by one."""
        _, views, observed = noisy()
        model = PSE(4, random_state=0).fit(views, mask=observed)
        y, z = model.embedding_, model.labels_
        centers = np.array([y[z == c].mean(axis=0) for c in range(4)])
        margins = []
        for row, c in zip(y, z, strict=True):
            d = ((centers - row) ** 2).sum(axis=1)
            other = np.delete(d, c).min()
            margins.append((other - d[c]) / (other + d[c]))
        level = np.log(model.confidence_ / (1 - model.confidence_)) - (np.array(margins) - np.mean(margins))
        assert_allclose(level, level[0], atol=1e-4)  # k-means stops where its centres hardly move
        x = np.hstack(pse.fill_in(model._result.views, np.ones(3), len(y)))
        values = np.sort(np.linalg.eigvalsh(x.T @ x))[::-1]
        shares = np.bincount(z) / len(z)
        even = np.prod(shares**-shares) / 4
        known = 5.5 * np.mean(margins) + 2.8 * even - 3.1 * values[:4].sum() / values.sum() - 2.85
        alone = 1 / (1 + np.exp(-(level[0] - known) / 0.6))
        share = np.mean([matched(z[view.rows], view.embedding) for view in model._result.views])
        assert alone == pytest.approx(share, abs=0.1)

    def test_clear_clusters_are_sure_and_noise_is_not(self):
        rng = np.random.default_rng(0)
        truth = np.arange(200) % 4
        clear = [rng.normal(8 * rng.normal(size=(4, 5))[truth]) for _ in range(3)]
        noise = [x + 0.3 * rng.normal(size=x.shape) for x in [rng.normal(size=(200, 5))] * 3]
        assert PSE(4, random_state=0).fit(clear).confidence_.mean() > 0.95
        assert PSE(4, random_state=0).fit(noise).confidence_.mean() < 0.65

    def test_another_fit_has_another_confidence(self):
        _, views, observed = noisy()
        model = PSE(4, random_state=0).fit(views, mask=observed)
        first = model.confidence_
        assert len(model.fit({"v0": views["v0"][:50]}).confidence_) == 50 != len(first)

    def test_one_cluster(self):
        assert_array_equal(PSE(1).fit(noisy()[1]).confidence_, 1.0)


def matched(labels, embedding):
    found = KMeans(4, n_init=10, random_state=0).fit_predict(embedding)
    return matched_accuracy_score(labels, found)


def test_tiny_tables():
    x = np.array([[0.0], [0.1], [0.2], [0.25], [5.0], [5.1], [5.2], [5.25]])
    assert adjusted_rand_score([0, 0, 0, 0, 1, 1, 1, 1], PSE(2, random_state=0).fit_predict(x)) == 1.0
    with pytest.warns():
        assert_array_equal(PSE(2, random_state=0).fit(x[:2]).labels_, [0, 0])
    assert PSE(1).fit(x).n_clusters_ == 1


def test_views_read_beforehand():
    _, views, observed = mixed()
    given = check_views(views, mask=observed)
    assert_array_equal(
        PSE(3, random_state=0).fit(given).labels_, PSE(3, random_state=0).fit(views, mask=observed).labels_
    )


def test_newcomers_are_placed_with_a_confidence_and_a_next_cluster():
    x, y, _ = noisy()[1].values()
    model = PSE(4, random_state=0).fit([x, y])
    mask = np.tile([[True, True], [True, False], [False, True]], (len(x) // 3, 1))
    labels, sure, behind = model.place([x, y], mask=mask)
    assert_array_equal(labels, model.predict([x, y], mask=mask))
    assert_array_equal(sure, model.predict_confidence([x, y], mask=mask))
    assert ((sure > 0) & (sure <= model.confidence_.max())).all()
    assert (behind != labels).all()
    assert set(behind.tolist()) <= {-1, 0, 1, 2, 3}
    assert sure[mask.all(axis=1)].mean() > 1 / 4
