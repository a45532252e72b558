"""Base partitions: what every column is, who sees what, and that the seed alone decides."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from consilience import generate
from consilience.core.graphs import neighbour_graph
from consilience.generate import SPECTRAL_BANDWIDTHS, base_partitions, graph_partitions


@pytest.fixture(scope="module")
def blobs():
    centers = 20 * np.eye(4)
    return make_blobs([40, 30, 20, 30], centers=centers, random_state=0)


def assert_contiguous(labels):
    for column in labels.T:
        seen = np.unique(column[column >= 0])
        assert np.array_equal(seen, np.arange(len(seen)))
        assert column.min() >= -1


# --- every method ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["kmeans", "spectral", AgglomerativeClustering()])
@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_shape_type_and_codes(blobs, method, subsample):
    labels = base_partitions(blobs[0], (2, 7), 6, method=method, subsample=subsample, random_state=0)
    assert labels.shape == (120, 6)
    assert labels.dtype == np.int32
    assert_contiguous(labels)
    assert np.array_equal((labels >= 0).sum(axis=0), np.full(6, round(120 * subsample)))


@pytest.mark.parametrize("method", ["kmeans", "spectral", KMeans(n_init=1)])
def test_one_seed_one_answer_whatever_n_jobs(blobs, method):
    options = {"method": method, "subsample": 0.7, "random_state": 3}
    alone = base_partitions(blobs[0], (2, 6), 5, **options)
    assert np.array_equal(alone, base_partitions(blobs[0], (2, 6), 5, n_jobs=2, **options))
    assert np.array_equal(alone, base_partitions(blobs[0], (2, 6), 5, **options))
    options["random_state"] = 4
    assert not np.array_equal(alone, base_partitions(blobs[0], (2, 6), 5, **options))


def test_the_seed_decides_on_large_tables_with_threads_too():
    X = np.random.default_rng(0).normal(size=(20_000, 8))  # no structure: a last bit would show
    alone = base_partitions(X, 30, 2, random_state=0)
    assert np.array_equal(alone, base_partitions(X, 30, 2, n_jobs=2, random_state=0))


def test_global_random_state_is_untouched(blobs):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    base_partitions(blobs[0], 3, 2, subsample=0.5)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_more_partitions_keep_the_first_ones(blobs):
    few = base_partitions(blobs[0], (2, 6), 4, random_state=0)
    assert np.array_equal(few, base_partitions(blobs[0], (2, 6), 9, random_state=0)[:, :4])


@pytest.mark.parametrize("method", ["kmeans", "spectral", KMeans(n_init=1)])
def test_sparse_is_dense(blobs, method):
    X = np.where(blobs[0] > 5, blobs[0], 0)
    dense = base_partitions(X, 4, 4, method=method, subsample=0.8, random_state=0)
    for make in (sparse.csr_array, sparse.csc_matrix):
        again = base_partitions(make(X), 4, 4, method=method, subsample=0.8, random_state=0)
        for a, b in zip(dense.T, again.T, strict=True):
            assert np.array_equal(a < 0, b < 0)
            assert adjusted_rand_score(a, b) == 1


def test_input_is_untouched(blobs):
    X = blobs[0].copy()
    base_partitions(X, 4, 9, method="spectral", random_state=0)
    base_partitions(X, 4, 3, random_state=0)
    assert np.array_equal(X, blobs[0])


# --- numbers of clusters -----------------------------------------------------------------------------


def test_each_base_draws_its_own_number_from_the_range(blobs):
    labels = base_partitions(blobs[0], (2, 5), 60, random_state=0)
    assert set(labels.max(axis=0) + 1) == {2, 3, 4, 5}
    fixed = base_partitions(blobs[0], np.int64(3), 5, random_state=0)
    assert set(fixed.max(axis=0) + 1) == {3}


def test_fewer_distinct_rows_than_clusters_gives_fewer_clusters():
    labels = base_partitions(np.repeat([[0.0], [1.0]], 5, axis=0), 3, 2, random_state=0)
    assert_contiguous(labels)
    assert set(labels.max(axis=0)) == {1}


# --- k-means -----------------------------------------------------------------------------------------


def test_kmeans_is_scikit_learns_with_one_start_and_few_steps(blobs):
    labels = base_partitions(blobs[0], 4, 3, init="k-means++", max_iter=2, random_state=7)
    seeds = np.random.RandomState(7).randint(np.iinfo(np.int32).max, size=3)
    for seed, column in zip(seeds, labels.T, strict=True):
        expected = KMeans(4, init="k-means++", n_init=1, max_iter=2, random_state=seed).fit_predict(blobs[0])
        assert np.array_equal(column, expected)


def test_max_iter_caps_the_steps():
    X = np.random.default_rng(0).normal(size=(500, 2))

    def inertia(max_iter):
        labels = base_partitions(X, 8, 5, max_iter=max_iter, random_state=0)
        return [sum(((X[c == k] - X[c == k].mean(0)) ** 2).sum() for k in range(8)) for c in labels.T]

    assert np.all(np.array(inertia(30)) < inertia(1))


# --- spectral ----------------------------------------------------------------------------------------


def plain_affinity(X, bandwidth):
    distances = np.array([[np.linalg.norm(a - b) for b in X] for a in X])
    sigma = bandwidth * distances[~np.eye(len(X), dtype=bool)].mean()
    kernel = np.exp(-(distances**2) / (2 * sigma**2))
    degree = np.diag(kernel.sum(axis=1) ** -0.5)
    return degree @ kernel @ degree


@pytest.mark.parametrize("bandwidth", SPECTRAL_BANDWIDTHS)
def test_kernel_against_the_definition(blobs, bandwidth):
    X = blobs[0][::4]
    found = generate._normalised_kernel(X, bandwidth)
    assert np.allclose(found, plain_affinity(X, bandwidth), rtol=1e-6, atol=1e-12)


def test_nine_bandwidths_in_turn():
    random = np.random.RandomState(0)
    plans = generate._plan(20, 11, 2, 2, 20, True, random)
    assert [plan.bandwidth for plan in plans] == [*SPECTRAL_BANDWIDTHS, *SPECTRAL_BANDWIDTHS[:2]]
    assert SPECTRAL_BANDWIDTHS == (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100)


def test_spectral_finds_separate_blobs_and_rings_that_kmeans_cannot(blobs):
    labels = base_partitions(blobs[0], 4, 9, method="spectral", random_state=0)
    assert max(adjusted_rand_score(blobs[1], column) for column in labels.T) == 1

    angle = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    X, y = np.vstack([ring, 5 * ring]), np.repeat([0, 1], 150)
    found = base_partitions(X, 2, 9, method="spectral", random_state=0)
    assert max(adjusted_rand_score(y, column) for column in found.T) == 1
    assert max(adjusted_rand_score(y, column) for column in base_partitions(X, 2, 9, random_state=0).T) < 0.5


@pytest.mark.parametrize("bandwidth", [0.05, 0.1, 0.5, 1.0])
def test_block_eigenvectors_span_what_dense_ones_do(blobs, monkeypatch, bandwidth):
    # far blobs: the eigenvalue 1 comes (nearly) four times, where single-vector Lanczos can miss copies
    affinity = generate._normalised_kernel(blobs[0], bandwidth)
    dense = generate._leading_eigenvectors(affinity, 4, 0)
    monkeypatch.setattr(generate, "_DENSE_EIGEN_LIMIT", 10)
    block = generate._leading_eigenvectors(affinity, 4, 0)
    eigenvalues = np.linalg.eigvalsh(affinity)[::-1]
    if eigenvalues[3] - eigenvalues[4] > 1e-3:
        assert np.allclose(np.linalg.svd(dense.T @ block)[1], 1, atol=1e-6)
    captured = np.linalg.eigvalsh(block.T @ affinity @ block)
    assert np.allclose(captured.sum(), eigenvalues[:4].sum(), rtol=0.01)


@pytest.mark.parametrize("bandwidth", SPECTRAL_BANDWIDTHS)
def test_as_many_eigenvectors_as_asked_for_where_the_kernel_is_almost_the_identity(bandwidth):
    X = np.random.default_rng(0).normal(size=(300, 16))
    vectors = generate._leading_eigenvectors(generate._normalised_kernel(X, bandwidth), 10, 0)
    assert np.allclose(vectors.T @ vectors, np.eye(10))


def test_spectral_of_identical_instances():
    labels = base_partitions(np.ones((6, 2)), 2, 9, method="spectral", random_state=0)
    assert_contiguous(labels)


def test_spectral_states_its_limit(monkeypatch, blobs):
    monkeypatch.setattr(generate, "_SPECTRAL_LIMIT", 100)
    with pytest.raises(ValueError, match=r"120 x 120 .* up to 100 instances\. Hint: lower subsample"):
        base_partitions(blobs[0], 3, method="spectral")
    assert base_partitions(blobs[0], 3, 2, method="spectral", subsample=0.5).shape == (120, 2)


# --- any clusterer -----------------------------------------------------------------------------------


def test_a_deterministic_clusterer_repeats_itself(blobs):
    labels = base_partitions(blobs[0], 4, 3, method=AgglomerativeClustering(n_clusters=2))
    assert np.array_equal(labels, labels[:, [0, 0, 0]])
    assert adjusted_rand_score(blobs[1], labels[:, 0]) == 1


def test_the_clusterer_given_is_not_changed(blobs):
    model = KMeans(n_clusters=2, n_init=1, random_state=5)
    base_partitions(blobs[0], 4, 3, method=model)
    assert model.get_params() == KMeans(n_clusters=2, n_init=1, random_state=5).get_params()
    assert not hasattr(model, "labels_")


def test_pipelines_get_clusters_and_seeds(blobs):
    model = make_pipeline(StandardScaler(), KMeans(n_clusters=2, init="random", n_init=1))
    labels = base_partitions(blobs[0], 6, 8, method=model, random_state=0)
    assert set(labels.max(axis=0)) == {5}
    assert len(np.unique(labels, axis=1).T) > 1


def test_noise_stays_minus_one(blobs):
    X = np.vstack([blobs[0], [[500.0] * 4, [-500.0] * 4]])
    labels = base_partitions(X, None, 2, method=DBSCAN(eps=5))
    assert (labels[-2:] == -1).all()
    assert (labels[:-2] >= 0).all()
    assert_contiguous(labels)


def test_none_leaves_the_number_of_clusters_alone(blobs):
    labels = base_partitions(blobs[0], None, 2, method=AgglomerativeClustering(n_clusters=5))
    assert set(labels.max(axis=0)) == {4}


# --- who sees what -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "m", "share"), [(100, 10, 0.1), (101, 10, 0.11), (60, 3, 0.4), (7, 7, 0.15), (50, 9, 0.3)]
)
def test_cover_is_complete_and_samples_keep_their_size(n, m, share):
    X = np.arange(n, dtype=float)[:, None]
    for seed in range(5):
        seen = base_partitions(X, 1, m, subsample=share, random_state=seed) >= 0
        assert seen.any(axis=1).all()
        assert np.array_equal(seen.sum(axis=0), np.full(m, int(share * n + 0.5)))


def test_samples_without_cover_are_plain_and_covering_changes_only_what_it_must():
    X = np.arange(200, dtype=float)[:, None]
    options = {"subsample": 0.3, "random_state": 0}
    plain = base_partitions(X, 1, 6, cover=False, **options) >= 0
    covered = base_partitions(X, 1, 6, **options) >= 0
    n_unseen = (~plain.any(axis=1)).sum()
    assert n_unseen > 0
    assert (plain != covered).sum() == 2 * n_unseen


def test_every_instance_is_as_likely_as_another():
    n, m, size, n_draws = 20, 4, 6, 500
    times = np.zeros(n)
    for seed in range(n_draws):
        for plan in generate._plan(n, m, 1, 1, size, True, np.random.RandomState(seed)):
            times[plan.sample] += 1
    expected = n_draws * m * size / n
    assert np.all(np.abs(times - expected) < 5 * np.sqrt(expected))


def test_samples_too_small_to_cover_grow_with_a_warning():
    X = np.zeros((100, 1))
    with pytest.warns(UserWarning, match=r"4 samples of 10 .* each base clustering sees 25\. Hint"):
        seen = base_partitions(X, 1, 4, subsample=0.1, random_state=0) >= 0
    assert np.array_equal(seen.sum(axis=0), [25] * 4)
    assert np.array_equal(seen.sum(axis=1), np.ones(100))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = base_partitions(X, 1, 4, subsample=0.1, cover=False, random_state=0) >= 0
    assert np.array_equal(plain.sum(axis=0), [10] * 4)


def test_a_base_is_the_clustering_of_its_own_sample(blobs):
    X, _ = blobs
    labels = base_partitions(X, 4, 3, method=AgglomerativeClustering(), subsample=0.5, random_state=0)
    for column in labels.T:
        seen = column >= 0
        assert adjusted_rand_score(column[seen], AgglomerativeClustering(4).fit_predict(X[seen])) == 1


# --- talk and refusals -------------------------------------------------------------------------------


def test_progress_goes_to_stderr_only_when_asked(blobs, capsys):
    base_partitions(blobs[0], 3, 3)
    assert capsys.readouterr() == ("", "")
    base_partitions(blobs[0], 3, 3, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line[: len("base_partitions: 1 of 3")] for line in err.splitlines()] == [
        f"base_partitions: {i} of 3" for i in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"n_clusters": 0},
            r"'n_clusters' parameter of base_partitions must be an int in the range \[1, inf\)",
        ),
        ({"n_clusters": 2.0}, r"'n_clusters'.*Got 2\.0 instead"),
        ({"n_clusters": None}, r"'n_clusters'.*Got None instead"),
        ({"n_clusters": (5, 2)}, r"'n_clusters'.*low <= high.*Got \(5, 2\) instead"),
        ({"n_clusters": (1, 2, 3)}, "'n_clusters'"),
        ({"n_partitions": 0}, r"'n_partitions' parameter .* Got 0 instead"),
        ({"method": "k-means"}, r"'method' .*'kmeans', 'graph', 'spectral'.*Got 'k-means' instead"),
        ({"method": KMeans}, r"'method' .*instance.*brackets"),
        ({"method": 3}, r"'method' .*Got 3 instead"),
        ({"init": "best"}, r"'init' parameter of base_partitions must be a str among"),
        ({"max_iter": 0}, "'max_iter'"),
        ({"subsample": 0}, r"'subsample' .* \(0.*1"),
        ({"subsample": 1.5}, r"'subsample' .*Got 1\.5 instead"),
        ({"n_clusters": 121}, "n_clusters=121 is more than the 120 instances"),
        ({"n_clusters": (2, 61), "subsample": 0.5}, "n_clusters=61 is more than the 60 instances"),
    ],
)
def test_refusals(blobs, changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        base_partitions(blobs[0], **{"n_clusters": 3, **changes})
    assert "Hint: " in str(caught.value)


def test_missing_values_are_refused():
    with pytest.raises(ValueError, match="Input X contains NaN"):
        base_partitions([[1.0, np.nan], [2.0, 3.0]], 2)


class TestGraph:
    def test_finds_clusters_that_are_not_round(self):
        X, y = make_moons(400, noise=0.05, random_state=0)
        found = base_partitions(X, 2, 3, method="graph", random_state=0)
        plain = base_partitions(X, 2, 3, random_state=0)
        assert all(adjusted_rand_score(y, column) > 0.95 for column in found.T)
        assert all(adjusted_rand_score(y, column) < 0.6 for column in plain.T)

    def test_subsamples_have_graphs_of_their_own(self):
        X, y = make_moons(600, noise=0.05, random_state=0)
        found = base_partitions(X, 2, 4, method="graph", subsample=0.5, random_state=0)
        assert_array_equal((found >= 0).sum(axis=0), 300)
        for column in found.T:
            assert adjusted_rand_score(y[column >= 0], column[column >= 0]) > 0.9

    def test_takes_sparse_tables_and_ranges(self, blobs):
        found = base_partitions(sparse.csr_array(np.abs(blobs[0])), (2, 6), 5, method="graph", random_state=0)
        assert found.shape == (len(blobs[0]), 5)
        assert all(2 <= column.max() + 1 <= 6 for column in found.T)

    def test_a_graph_of_ones_own_gives_what_the_table_gives(self):
        X = np.random.default_rng(1).normal(size=(80, 3))  # one component, so no repeated eigenvalue
        graph = neighbour_graph(X, 10, 0)
        expected = base_partitions(X, (2, 6), 4, method="graph", random_state=3)
        assert_array_equal(graph_partitions(graph, (2, 6), 4, random_state=3), expected)

    @pytest.mark.parametrize(
        "graph",
        [np.ones((3, 2)), -np.ones((3, 3)), np.triu(np.ones((3, 3)))],
        ids=["shape", "negative", "one-way"],
    )
    def test_what_is_no_graph_is_refused(self, graph):
        with pytest.raises(ValueError, match=r"graph must be a symmetric matrix without negative .* Hint: "):
            graph_partitions(graph, 2, 2)

    def test_refusals_name_the_function(self):
        with pytest.raises(ValueError, match="'n_clusters' parameter of graph_partitions"):
            graph_partitions(np.ones((3, 3)), 0, 2)
        with pytest.raises(ValueError, match="n_clusters=4 is more than the 3 instances"):
            graph_partitions(np.ones((3, 3)), 4, 2)
