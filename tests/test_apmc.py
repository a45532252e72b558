"""APMC against the plain version in `oracles`, reference outputs, published figures, and its own edges."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import APMC, datasets
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score
from consilience.multiview.scaling import learn_scaling
from tests.oracles.apmc import plain_eigenpairs, plain_similarity

SOURCES = {"bg": [0, 1], "br": [0, 2], "gr": [1, 2], "all": [0, 1, 2]}
# Table 1 of the paper: ACC and NMI in percent.
TABLE_1 = {"bg": (78.28, 63.86), "br": (75.27, 65.93), "gr": (74.37, 66.20), "all": (80.31, 68.12)}


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


def groups(n, n_views, k=3, *, missing=0.3, seed=0, widths=(3, 4, 5, 6)):
    """Separated clusters in every view; who is where is random, nobody is nowhere."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % k
    views = [4.0 * rng.standard_normal((k, d))[truth] + rng.standard_normal((n, d)) for d in widths[:n_views]]
    observed = rng.random((n, n_views)) >= missing
    lost = np.flatnonzero(~observed.any(axis=1))
    observed[lost, rng.integers(0, n_views, len(lost))] = True
    return truth, views, observed


def sources(name):
    data = datasets.load("mv_3Sources416_partial")
    chosen = SOURCES[name]
    kept = data.observed[:, chosen].any(axis=1)
    return [data.views[v][kept] for v in chosen], data.observed[kept][:, chosen], data.y[kept]


# --- against the plain version and reference outputs --------------------------------------------------------


@pytest.mark.parametrize("n_views", [2, 3, 4])
@pytest.mark.parametrize("bandwidth", ["local", 2.0])
def test_similarity_equals_the_plain_one(n_views, bandwidth):
    _, views, observed = groups(160, n_views)
    model = APMC(3, n_neighbors=5, bandwidth=bandwidth, normalize=None, random_state=0)
    model.fit(views, mask=observed)
    plain = plain_similarity(views, observed, 5, None if bandwidth == "local" else bandwidth)
    assert_allclose(model.affinity_operator_.toarray(), plain, atol=1e-12)
    values, vectors = plain_eigenpairs(plain, 3)
    assert_allclose(model.eigenvalues_, values, atol=1e-8)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert_allclose(model.embedding_ @ model.embedding_.T, unit @ unit.T, atol=1e-6)


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["bg", "br", "gr"])
def test_weights_and_singular_values_equal_the_reference(name, fixtures_folder, data_folder):
    given = np.load(fixtures_folder / f"apmc_3sources_{name}.npz")
    views, observed, _ = sources(name)
    model = APMC(6, n_neighbors=10, bandwidth=1.0, normalize="l2", random_state=0).fit(views, mask=observed)
    assert_array_equal(model.anchors_["view0", "view1"], given["anchors"])
    z = given["Z"]
    assert_allclose(model.affinity_operator_.factor.toarray(), z / np.sqrt(z.sum(axis=0)), atol=1e-12)
    assert_allclose(np.sqrt(model.eigenvalues_), given["sv"][:6], atol=1e-8)


@pytest.mark.fixtures
def test_fused_similarity_equals_the_reference(fixtures_folder, data_folder):
    given = np.load(fixtures_folder / "apmc_3sources_all.npz")
    views, observed, _ = sources("all")
    model = APMC(6, n_neighbors=10, bandwidth=1.0, normalize="l2", random_state=0).fit(views, mask=observed)
    assert_allclose(model.affinity_operator_.toarray(), given["S"], atol=1e-12)


@pytest.mark.data
@pytest.mark.parametrize("name", SOURCES)
def test_published_figures_are_reached_at_defaults(name, data_folder):
    views, observed, y = sources(name)
    scores = []
    for seed in range(20):
        labels = APMC(6, random_state=seed).fit_predict(views, mask=observed)
        scores.append(
            (matched_accuracy_score(y, labels), normalized_mutual_info_score(y, labels, normalization="max"))
        )
    assert (100 * np.mean(scores, axis=0) >= TABLE_1[name]).all()


# --- the paper's synthetic data -----------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.3, 0.5])
def test_two_gaussians_are_solved_up_to_half_missing(missing):
    # In one view alone the clusters overlap a little: even the rule that knows the densities errs on some
    # draws, on .15 instances of 200 on average at one half missing.
    errors = []
    for seed in range(8):
        data = datasets.make_partial_views(missing=missing, random_state=seed)
        labels = APMC(2, normalize=None, random_state=0).fit_predict(data.views)
        errors.append(round(200 * (1 - matched_accuracy_score(data.y, labels))))
    assert np.median(errors) == 0
    assert np.mean(errors) <= missing


def test_two_gaussians_are_as_described():
    data = datasets.make_partial_views(20_000, missing=0.5, random_state=0)
    assert_array_equal(np.bincount(data.y), [10_000, 10_000])
    assert_array_equal(data.observed.sum(axis=0), [15_000, 15_000])
    assert data.observed.any(axis=1).all()
    for v, x in enumerate(data.views):
        assert_array_equal(np.isnan(x).any(axis=1), ~data.observed[:, v])
    second = data.views[1][(data.y == 1) & data.observed[:, 1]]
    assert_allclose(second.mean(axis=0), [3, 1], atol=0.05)
    assert_allclose(np.cov(second.T), [[0.4, 0.1], [0.1, 0.3]], atol=0.05)
    again = datasets.make_partial_views(20_000, missing=0.5, random_state=0)
    assert_array_equal(again.views[0], data.views[0])


@pytest.mark.parametrize(("name", "value"), [("n", 1), ("missing", 1.5)])
def test_two_gaussians_check_their_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of make_partial_views"):
        datasets.make_partial_views(**{name: value})


# --- what the user gets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_views", [2, 3, 4])
def test_predict_gives_the_fitted_instances_their_clusters(n_views):
    _, views, observed = groups(240, n_views)
    model = APMC(3, random_state=0).fit(views, mask=observed)
    assert_array_equal(model.predict(views, mask=observed), model.labels_)


def test_predict_from_any_subset_of_the_views():
    truth, views, observed = groups(300, 3, widths=(8, 8, 8))
    new = np.arange(300) >= 240
    model = APMC(3, random_state=0).fit([view[~new] for view in views], mask=observed[~new])
    match = np.array([np.bincount(truth[~new][model.labels_ == q]).argmax() for q in range(3)])
    for v in range(3):
        only = [view[new] if u == v else None for u, view in enumerate(views)]
        assert_array_equal(match[model.predict(only)], truth[new])
        assert_array_equal(match[model.predict({f"view{v}": views[v][new]})], truth[new])
    assert_array_equal(match[model.predict([view[new] for view in views])], truth[new])


def test_sparse_text_stays_sparse_and_finds_topics():
    rng = np.random.default_rng(0)
    truth = np.arange(180) % 3
    views = []
    for words in (400, 500):
        rates = np.full((3, words), 0.02)
        for topic in range(3):
            rates[topic, topic * 50 : topic * 50 + 50] = 0.3
        views.append(sp.csr_array(rng.poisson(rates[truth]).astype(float)))
    observed = rng.random((180, 2)) < 0.8
    observed[~observed.any(axis=1), 0] = True
    model = APMC(3, random_state=0).fit(views, mask=observed)
    assert [scaling.kind for scaling in model._scalings] == ["tfidf", "tfidf"]
    assert all(sp.issparse(side.reference) for link in model._result.links for side in link.sides)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    dense = APMC(3, random_state=0).fit([view.toarray() for view in views], mask=observed)
    assert_array_equal(dense.labels_, model.labels_)


def test_negative_entries_are_welcome():
    _, views, observed = groups(150, 2)
    shifted = [view - 100.0 for view in views]
    model = APMC(3, random_state=0).fit(shifted, mask=observed)
    assert_array_equal(model.labels_, APMC(3, random_state=0).fit(views, mask=observed).labels_)
    with pytest.raises(ValueError, match=r"view 'view0' has negative entries.*Hint"):
        APMC(3, normalize="tfidf").fit(shifted, mask=observed)


@pytest.mark.parametrize("normalize", ["auto", None])
def test_views_of_very_different_scale_count_alike(normalize):
    _, views, observed = groups(150, 2)
    labels = APMC(3, normalize=normalize, random_state=0).fit(views, mask=observed).labels_
    scaled = [1e-6 * views[0], 1e5 * views[1]]
    other = APMC(3, normalize=normalize, random_state=0).fit(scaled, mask=observed)
    assert_array_equal(other.labels_, labels)


def test_features_of_very_different_scale_count_alike():
    _, views, observed = groups(150, 2)
    wild = [view * 10.0 ** np.arange(view.shape[1]) for view in views]
    fits = [APMC(3, random_state=0).fit(x, mask=observed).labels_ for x in (wild, views)]
    # Clusters of one size are numbered in an order of instances that follows from their values.
    assert adjusted_rand_score(*fits) == 1.0


def test_constant_feature_is_harmless():
    truth, views, observed = groups(150, 2)
    views = [np.column_stack([view, np.full(150, 7.0)]) for view in views]
    assert adjusted_rand_score(truth, APMC(3, random_state=0).fit_predict(views, mask=observed)) > 0.9


@pytest.mark.parametrize("normalize", ["auto", "standard", "tfidf", "l2", None])
def test_scaling_does_not_depend_on_storage(normalize):
    x = np.random.default_rng(0).poisson(0.05, (50, 30)).astype(float)
    present = np.arange(50) % 5 > 0
    x[~present] = 0.0
    dense = learn_scaling(x, present, normalize)
    sparse = learn_scaling(sp.csr_array(x), present, normalize)
    assert dense.kind == sparse.kind
    left, right = dense.apply(x, present)[present], sparse.apply(sp.csr_array(x), present).toarray()[present]
    # Up to a shift, which changes no distance.
    assert_allclose(left - left[0], right - right[0], atol=1e-10)


def test_instance_in_one_view_only_is_placed_by_it():
    truth, views, observed = groups(150, 3, widths=(8, 8, 8), missing=0.2)
    for row, view in ((0, 0), (1, 1), (2, 2)):
        observed[row] = False
        observed[row, view] = True
    assert adjusted_rand_score(truth, APMC(3, random_state=0).fit_predict(views, mask=observed)) == 1.0


def test_anchors_can_be_a_sample():
    truth, views, observed = groups(300, 2, widths=(8, 8))
    model = APMC(3, n_anchors=60, random_state=0).fit(views, mask=observed)
    anchors = model.anchors_["view0", "view1"]
    assert len(anchors) == len(set(anchors.tolist())) == 60
    assert observed[anchors].all()
    assert adjusted_rand_score(truth, model.labels_) == 1.0


# --- few common instances -----------------------------------------------------------------------------------


def halves(n, n_common, seed=0):
    """Two views that share the first `n_common` instances."""
    truth, views, _ = groups(n, 2, widths=(8, 8), seed=seed)
    observed = np.zeros((n, 2), dtype=bool)
    observed[:n_common] = True
    observed[n_common::2, 0] = True
    observed[n_common + 1 :: 2, 1] = True
    return truth, views, observed


def test_few_common_instances_are_reached_by_diffusion():
    truth, views, observed = halves(200, 9)
    model = APMC(3, random_state=0).fit(views, mask=observed)
    assert model.linkage_ == {("view0", "view1"): "diffusion"}
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert adjusted_rand_score(truth, model.predict(views, mask=observed)) == 1.0


def test_fewer_common_instances_than_clusters_align_embeddings_with_a_warning():
    truth, views, observed = halves(200, 3)
    with pytest.warns(UserWarning, match="embeddings were aligned"):
        model = APMC(3, random_state=0).fit(views, mask=observed)
    assert model.linkage_ == {("view0", "view1"): "alignment"}
    assert model.affinity_operator_ is None
    assert model.anchors_ == {}
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert adjusted_rand_score(truth, model.predict(views, mask=observed)) == 1.0


def test_more_clusters_than_anchors():
    _, views, observed = halves(60, 5)
    with pytest.warns(UserWarning, match="embeddings were aligned"):
        model = APMC(8, random_state=0).fit(views, mask=observed)
    assert_array_equal(np.unique(model.labels_), np.arange(8))


def test_pair_without_common_instances_is_linked_through_a_third_view():
    truth, views, _ = groups(240, 3, widths=(8, 8, 8))
    observed = np.zeros((240, 3), dtype=bool)
    observed[:120, 0], observed[120:, 1] = True, True
    observed[30:210, 2] = True
    model = APMC(3, random_state=0).fit(dict(zip("abc", views, strict=True)), mask=observed)
    assert model.linkage_ == {("a", "b"): "none", ("a", "c"): "anchors", ("b", "c"): "anchors"}
    assert set(model.anchors_) == {("a", "c"), ("b", "c")}
    assert adjusted_rand_score(truth, model.labels_) == 1.0


def test_views_that_cannot_be_linked_are_an_error_that_names_the_groups():
    _, views, _ = groups(120, 4)
    observed = np.zeros((120, 4), dtype=bool)
    observed[:60, :2], observed[60:, 2:] = True, True
    with pytest.raises(ValueError, match=r"\('a', 'b'\) and \('c', 'd'\)\. Hint"):
        APMC(3).fit(dict(zip("abcd", views, strict=True)), mask=observed)


def test_more_components_than_clusters_is_said():
    rng = np.random.default_rng(0)
    truth = np.arange(120) % 4
    views = [100.0 * np.eye(4)[truth] + rng.standard_normal((120, 4)) for _ in range(2)]
    with pytest.warns(UserWarning, match="has 4 components, more than n_clusters=2"):
        model = APMC(2, n_neighbors=5, random_state=0).fit(views)
    assert model.n_components_ == 4
    # No cluster is cut: each holds whole components.
    assert all(len(set(model.labels_[truth == c])) == 1 for c in range(4))


@pytest.mark.parametrize("n_views", [2, 3])
def test_ten_clusters_without_a_link_are_found(n_views):
    rng = np.random.default_rng(0)
    truth = np.arange(400) % 10
    views = [100.0 * np.eye(10)[truth] + rng.standard_normal((400, 10)) for _ in range(n_views)]
    observed = rng.random((400, n_views)) < 0.8
    observed[~observed.any(axis=1), 0] = True
    model = APMC(10, n_neighbors=6, random_state=0).fit(views, mask=observed)
    assert model.n_components_ == 10
    assert_allclose(model.eigenvalues_, 1.0)
    assert adjusted_rand_score(truth, model.labels_) == 1.0


# --- edges --------------------------------------------------------------------------------------------------


def test_one_view():
    truth, views, _ = groups(150, 1, widths=(8,))
    model = APMC(3, random_state=0).fit(views[0])
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert_array_equal(model.predict(views[0]), model.labels_)


def test_one_cluster():
    _, views, observed = groups(50, 2)
    assert_array_equal(APMC(1, random_state=0).fit(views, mask=observed).labels_, 0)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_as_many_clusters_as_instances(n):
    _, views, _ = groups(n, 2)
    with pytest.warns(UserWarning, match="embeddings were aligned"):
        labels = APMC(n, random_state=0).fit_predict(views)
    assert len(set(labels)) == n


def test_copies_of_instances():
    truth, views, _ = groups(30, 2, widths=(8, 8))
    many = [np.repeat(view, 10, axis=0) for view in views]
    labels = APMC(3, random_state=0).fit_predict(many)
    assert adjusted_rand_score(np.repeat(truth, 10), labels) == 1.0


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_neighbors", 0), ("bandwidth", 0.0), ("bandwidth", "wide"), ("normalize", "zscore")],
)
def test_parameters_are_checked(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of APMC must be"):
        APMC(2, **{name: value}).fit(np.eye(4))
