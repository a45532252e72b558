"""ACMK: both solvers against the plain versions in `oracles`, every update against its block, and edges."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, euclidean_distances
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from consilience import ACMK, datasets
from consilience.core import eigen, hot
from consilience.features import _acmk_admm as dense
from consilience.features import _acmk_endings as endings
from consilience.features import _acmk_sparse as sparse
from consilience.features import acmk
from consilience.generate import base_partitions
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score
from tests.oracles import acmk as plain


@pytest.fixture(autouse=True)
def one_thread():
    """As in `fit`: on small matrices several threads wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def small():
    """Twelve instances, three base clusterings, and everything an update of Eq. (8) needs, at random."""
    rng = np.random.default_rng(1)
    n, v, k = 12, 3, 3
    codes = rng.integers(0, k, (n, v)).astype(np.int32)
    codes[:k] = np.arange(k)[:, None]
    x = rng.normal(size=(n, 4))
    w = rng.uniform(0.05, 1.0, (n, n))
    a = 0.3 * rng.normal(size=(n, n))
    alpha = rng.dirichlet(np.ones(v))
    fs = [rng.normal(size=(k, 4)) for _ in range(v)]
    lambda1, lambda2 = rng.normal(size=(2, n, n))
    copy = rng.uniform(size=(n, n))
    return {
        "codes": codes, "x": x, "w": w, "a": a, "alpha": alpha, "fs": fs, "lambda1": lambda1,
        "lambda2": lambda2, "v": copy + copy.T, "mu": 1.3, "lam": 0.7,
    }  # fmt: skip


def noisy(n=60, c=3, seed=0, spread=2.5, n_bases=4):
    """An overlapping table, and base clusterings of it that disagree."""
    X, truth = make_blobs(n, n_features=5, centers=c, cluster_std=spread, random_state=seed)
    x = acmk.coordinates(X, np.random.RandomState(0))
    return truth, x, base_partitions(X, c, n_bases, max_iter=2, random_state=seed)


# --- the blocks of the published problem --------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("cumulative", [False, True])
def test_filter_gradient_equals_finite_differences(small, order, cumulative):
    target = sum(f[column] for f, column in zip(small["fs"], small["codes"].T, strict=True))
    fixed = (small["x"], target, 3, order, cumulative, small["lambda1"], small["mu"], small["w"])
    shape = small["a"].shape
    value, gradient = dense.filter_block(small["a"], *fixed)
    numeric = approx_fprime(
        small["a"].ravel(), lambda flat: dense.filter_block(flat.reshape(shape), *fixed)[0], 1e-6
    )
    assert np.isfinite(value)
    assert_allclose(gradient.ravel(), numeric, rtol=1e-4, atol=1e-3 * np.abs(numeric).max())


def test_graph_gradient_equals_finite_differences(small):
    pull = small["lambda1"] + small["mu"] * (small["a"] - 0.5 * np.eye(12))
    consensus = plain.fused(small["codes"], small["alpha"])
    fixed = (consensus, small["lam"], pull, small["lambda2"], small["mu"], small["v"])
    shape = small["w"].shape
    _, gradient = dense.graph_block(small["w"], *fixed)
    numeric = approx_fprime(
        small["w"].ravel(), lambda flat: dense.graph_block(flat.reshape(shape), *fixed)[0], 1e-7
    )
    assert_allclose(gradient.ravel(), numeric, rtol=1e-4, atol=1e-4 * np.abs(numeric).max())


def test_blocks_equal_the_printed_equations(small):
    a, w, x, codes, fs = (small[key] for key in ("a", "w", "x", "codes", "fs"))
    c = plain.low_pass(w)
    target = sum(f[column] for f, column in zip(fs, codes.T, strict=True))
    found = dense.filter_block(a, x, target, 3, 3, False, small["lambda1"], small["mu"], c)
    fixed = (x, codes, fs, 3, small["lambda1"], small["mu"], c)
    assert_allclose(found[0], plain.filter_value(a, *fixed))
    assert_allclose(found[1], plain.filter_gradient(a, *fixed))

    e, f = a - 0.5 * np.eye(12), plain.fused(codes, small["alpha"])
    pull = small["lambda1"] + small["mu"] * e
    found = dense.graph_block(w, f, small["lam"], pull, small["lambda2"], small["mu"], small["v"])
    fixed = (f, small["lam"], small["lambda1"], e, small["lambda2"], small["mu"], small["v"])
    assert_allclose(found[0], plain.graph_value(w, *fixed))
    assert_allclose(found[1], plain.graph_gradient(w, *fixed))


def test_cross_term_printed_in_equation_9_is_transposed(small):
    a, x = small["a"], small["x"]
    power = np.linalg.matrix_power(a, 3)
    gf = sum(f[column] for f, column in zip(small["fs"], small["codes"].T, strict=True))
    exact = sum(
        np.sum((power @ x - f[column]) ** 2) - np.sum(f[column] ** 2)
        for f, column in zip(small["fs"], small["codes"].T, strict=True)
    )
    square = 3 * np.trace(power @ x @ x.T @ power.T)
    assert_allclose(square - 2 * np.trace(x @ gf.T @ power), exact)
    assert abs(square - 2 * np.trace(gf @ x.T @ power) - exact) > 0.1 * abs(exact)


def test_label_update_equals_trying_every_cluster(small):
    z, w, lam = small["x"], small["w"], 0.05
    for m in range(3):
        others = plain.fused(small["codes"], small["alpha"])
        others -= small["alpha"][m] * dense._together(small["codes"][:, m])
        column = small["codes"][:, m].copy()
        cost = dense._pair_cost(w, others, small["alpha"][m], lam)
        dense._update_labels(column, z, small["fs"][m], cost)
        expected = plain.label_sweep(small["codes"], m, z, small["fs"][m], w, small["alpha"], lam)
        assert_array_equal(column, expected)
        assert not np.array_equal(column, small["codes"][:, m])


def test_pair_costs_predict_the_change_of_the_fusion_term_and_printed_ones_do_not(small):
    codes, w, alpha, lam, m = small["codes"], small["w"], small["alpha"], small["lam"], 1
    others = plain.fused(codes, alpha) - alpha[m] * dense._together(codes[:, m])
    cost = dense._pair_cost(w, others, alpha[m], lam)
    printed = cost - 2.0 * lam * alpha[m] * others  # the cross term once instead of twice
    printed -= np.diag(np.diag(printed))
    wrong = 0.0
    for i in range(3, 12):
        moved = codes.copy()
        moved[i, m] = (codes[i, m] + 1) % 3
        actual = np.sum((w - plain.fused(moved, alpha)) ** 2) - np.sum((w - plain.fused(codes, alpha)) ** 2)
        joins = (codes[:, m] == moved[i, m]).astype(float) - (codes[:, m] == codes[i, m])
        assert_allclose(cost[i] @ joins, lam * actual, atol=1e-10)
        wrong = max(wrong, abs(printed[i] @ joins - lam * actual))
    assert wrong > 0.1


def test_label_update_empties_no_cluster():
    z = np.zeros((4, 1))
    column = np.array([0, 0, 0, 1], dtype=np.int32)
    dense._update_labels(column, z, np.array([[0.0], [9.0]]), np.zeros((4, 4)))
    assert_array_equal(column, [0, 0, 0, 1])


def test_centres_copy_and_weights_minimise_their_blocks(small, rng):
    x, column, w, mu = small["x"], small["codes"][:, 0], small["w"], small["mu"]
    centres = dense._centres(x, column)
    best = np.sum((x - centres[column]) ** 2)
    for _ in range(20):
        other = centres + 0.1 * rng.normal(size=centres.shape)
        assert best < np.sum((x - other[column]) ** 2)

    shifted = w + small["lambda2"] / mu
    copy = dense._update_copy(w, small["lambda2"], mu)
    assert_array_equal(copy, copy.T)
    assert copy.min() >= 0
    assert copy.max() <= 1
    for _ in range(20):
        other = rng.uniform(size=w.shape)
        other = 0.5 * (other + other.T)
        # The projection onto a convex set: no feasible direction decreases the distance.
        assert np.sum((shifted - copy) * (other - copy)) <= 1e-9

    alpha = dense._update_weights(small["codes"], w)
    assert_allclose(alpha, plain.weight_step(small["codes"], w), atol=1e-5)
    assert alpha.sum() == pytest.approx(1.0)


# --- the dense solver ---------------------------------------------------------------------------------------


def solve_dense(x, base, **options):
    settings = {"order": 3, "cumulative": False, "lam": 0.01, "refine": True, "max_iter": 3, **options}
    return dense.acmk_admm(x, base, **settings)


@pytest.mark.parametrize("lam", [1.0, 0.001])
def test_dense_solver_equals_plain_version(lam):
    _, x, base = noisy(24)
    slow = plain.plain_admm(x, base, order=3, lam=lam, n_iter=3, boxed=False)
    fast = solve_dense(x, base, lam=lam)
    assert_array_equal(fast.codes, slow.codes)
    assert_allclose(fast.objective, slow.objective, rtol=1e-4)
    assert_allclose(fast.gap, slow.gap, rtol=1e-3)
    assert_allclose(fast.weights, slow.alpha, atol=1e-4)
    assert_allclose(fast.graph, np.clip(0.5 * (slow.w + slow.w.T), 0, 1), atol=1e-4)


def test_box_on_the_copy_gives_what_the_box_on_the_graph_gives():
    _, x, base = noisy(24)
    published = plain.plain_admm(x, base, order=3, lam=0.01, n_iter=5, boxed=True)
    found = solve_dense(x, base, max_iter=5)
    assert np.mean(found.codes == published.codes) > 0.97
    assert_allclose(found.objective, published.objective, rtol=0.02)
    symmetric = 0.5 * (published.w + published.w.T)
    assert np.linalg.norm(found.graph - symmetric) < 0.01 * np.linalg.norm(symmetric)


@pytest.mark.parametrize("cumulative", [False, True])
def test_dense_constraints_hold_at_the_end(cumulative):
    _, x, base = noisy(40)
    found = solve_dense(x, base, lam=0.001, cumulative=cumulative, max_iter=6)
    assert_array_equal(found.graph, found.graph.T)
    assert found.graph.min() >= 0
    assert found.graph.max() <= 1
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1.0)
    assert_array_equal(found.codes.max(axis=0), base.max(axis=0))
    assert len(found.objective) == len(found.rebuilt_objective) == len(found.gap) == found.n_iter == 6


def test_split_objective_falls_while_the_filter_leaves_the_graph():
    _, x, base = noisy(40)
    found = solve_dense(x, base, lam=0.1, max_iter=12)
    assert found.objective[-1] < 0.5 * found.objective[0]
    assert found.rebuilt_objective[-1] > 2.0 * found.objective[-1]
    assert found.gap[-1] > 0.01


def test_small_lam_refines_and_large_lam_does_not():
    _, x, base = noisy(40)
    moved = [np.mean(solve_dense(x, base, lam=lam, max_iter=10).codes != base) for lam in (1e-3, 1e3)]
    assert moved[0] > 0.05
    assert moved[1] < 0.01


def test_dense_solver_holds_no_more_matrices_than_it_says():
    _, x, base = noisy(100)
    tracemalloc.start()
    solve_dense(x, base, max_iter=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    matrices = peak / (8 * len(x) ** 2)
    assert 0.6 * acmk._DENSE_MATRICES < matrices <= acmk._DENSE_MATRICES


# --- the sparse solver --------------------------------------------------------------------------------------


def solve_sparse(x, base, **options):
    settings = {"order": 3, "cumulative": False, "refine": True, "max_iter": 3, **options}
    n_neighbors = settings.pop("n_neighbors", 6)
    order, support = sparse.neighbour_pairs(x, n_neighbors, np.random.RandomState(0))
    return sparse.acmk_sparse(x[order], base[order], support, **settings)


@pytest.mark.parametrize("cumulative", [False, True])
@pytest.mark.parametrize("n_neighbors", [5, 59])
def test_sparse_solver_equals_plain_version(cumulative, n_neighbors):
    _, x, base = noisy(60)
    # Numbers of clusters differ, so that no two bases become equal and their weights are determined.
    base = np.column_stack([base_partitions(x, k, 1, max_iter=1, random_state=k) for k in (2, 3, 4, 5)])
    near = kneighbors_graph(x, n_neighbors, include_self=False).toarray()
    mask = np.maximum(np.maximum(near, near.T), np.eye(60))
    found = solve_sparse(x, base, n_neighbors=n_neighbors, cumulative=cumulative)
    codes, alpha, w = plain.plain_sparse(
        x, base, order=3, cumulative=cumulative, mask=mask, n_iter=found.n_iter
    )
    assert not np.array_equal(codes, base)
    assert_array_equal(found.codes, codes)
    assert_allclose(found.weights, alpha, atol=1e-4)
    assert_allclose(found.graph.toarray(), w, atol=1e-4)


@pytest.mark.parametrize("cumulative", [False, True])
def test_sparse_filter_equals_dense_filter(cumulative):
    _, x, base = noisy(80)
    graph = solve_sparse(x, base).graph
    found = sparse.filtered(graph, x, 3, cumulative)
    assert_allclose(found, dense.filtered(dense.low_pass(graph.toarray()), x, 3, cumulative), atol=1e-13)


def test_filter_makes_the_table_smoother():
    _, x, base = noisy(80)
    graph = solve_sparse(x, base).graph
    z = sparse.filtered(graph, x, 3, False)
    laplacian = np.eye(80) - (2.0 * dense.low_pass(graph.toarray()) - np.eye(80))
    assert np.trace(z.T @ laplacian @ z) < 0.3 * np.trace(x.T @ laplacian @ x)


def test_neighbours_are_the_nearest(rng):
    x = rng.normal(size=(200, 3))
    near = kneighbors_graph(x, 4).toarray()
    order, support = sparse.neighbour_pairs(x, 4, np.random.RandomState(0))
    assert_array_equal(order, np.arange(200))
    assert_array_equal(support.toarray(), np.maximum(np.maximum(near, near.T), np.eye(200)))


def test_neighbours_in_cells_are_mostly_the_nearest(monkeypatch):
    x = acmk.coordinates(load_digits().data, np.random.RandomState(0))
    _, exact = sparse.neighbour_pairs(x, 7, np.random.RandomState(0))
    monkeypatch.setattr(sparse, "_EXACT_ROWS", 100)
    order, found = sparse.neighbour_pairs(x, 7, np.random.RandomState(0))
    assert_array_equal(np.sort(order), np.arange(len(x)))
    exact = exact[order][:, order]
    assert_array_equal((found != found.T).nnz, 0)
    assert_array_equal(found.diagonal(), 1.0)
    assert found.multiply(exact).sum() > 0.6 * exact.sum()


def test_many_equal_rows_fall_into_small_cells(monkeypatch):
    x = np.repeat(np.eye(3), 1000, axis=0).astype(np.float32)
    _, starts, centres = sparse._cells(x, np.random.RandomState(0))
    average = 3000 / int(3 * np.sqrt(3000))
    assert np.diff(starts).max() <= sparse._LARGEST_CELL * average + 1
    assert len(centres) == len(starts) - 1
    assert starts[-1] == 3000


def test_sparse_memory_is_linear_in_the_instances(monkeypatch):
    monkeypatch.setattr(sparse, "_EXACT_ROWS", 100)
    peaks = []
    for n in (2000, 2000, 8000):  # the first compiles
        _, x, base = noisy(n, n_bases=5)
        tracemalloc.start()
        solve_sparse(x, base)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 5 * peaks[1]


@pytest.mark.parametrize("unanimous", [False, True])
def test_leading_vectors_equal_a_dense_eigenproblem(monkeypatch, unanimous):
    truth, x, base = noisy(150, c=4, spread=1.5)
    base = np.column_stack([truth] * 4).astype(np.int32) if unanimous else base
    found = solve_sparse(x, base, refine=False)
    exact = sparse.leading_vectors(found.graph, found.codes, found.weights, 4)
    monkeypatch.setattr(sparse, "DENSE", 0)
    monkeypatch.setattr(eigen, "WHOLE", 0)
    monkeypatch.setattr(sparse, "_EIGEN_TOL", 1e-10)
    vectors = sparse.leading_vectors(found.graph, found.codes, found.weights, 4)
    assert_allclose(vectors @ vectors.T, exact @ exact.T, atol=1e-7)
    if unanimous:  # the eigenvalue one four times
        labels = endings.final_labels(
            "spectral", x, found.graph, found.codes, found.weights, 4, np.random.RandomState(0)
        )
        assert adjusted_rand_score(truth, labels) == 1.0


def test_compiled_search_finds_the_smallest_entries(rng):
    table, bias = rng.normal(size=(50, 30)), rng.normal(size=30)
    for kind in (np.float64, np.float32):
        out = np.empty((50, 8), dtype=np.int64)
        hot.smallest(table.astype(kind), bias.astype(kind), out)
        assert_array_equal(out, np.argsort(bias - 2.0 * table, axis=1)[:, :8])
    few = np.empty((50, 30), dtype=np.int64)
    hot.smallest(table, bias, few)
    assert_array_equal(few, np.argsort(bias - 2.0 * table, axis=1))


def test_compiled_loops_of_a_step_equal_plain_ones(rng):
    support = sp.csr_array(rng.random((40, 40)) < 0.2)
    codes = rng.integers(0, 3, (40, 5))
    agree = np.empty((5, support.nnz), dtype=bool)
    hot.agree(codes, support.indptr, support.indices, agree)
    rows, columns = support.nonzero()
    assert_array_equal(agree, (codes[rows] == codes[columns]).T)
    scores, offsets = rng.integers(0, 4, (40, 9)).astype(float), np.array([0, 2, 5, 9])
    found = np.empty((40, 3), dtype=np.int32)
    hot.largest(scores, offsets, found)
    expected = [scores[:, lo:hi].argmax(axis=1) for lo, hi in ((0, 2), (2, 5), (5, 9))]
    assert_array_equal(found, np.column_stack(expected))


@pytest.mark.parametrize("n_neighbors", [3, 7])
@pytest.mark.parametrize("filter", ["power", "polynomial"])
def test_what_is_learned_in_the_order_of_cells_is_given_back_in_the_order_of_rows(
    monkeypatch, n_neighbors, filter
):
    monkeypatch.setattr(sparse, "_EXACT_ROWS", 100)  # also for single precision
    X, _ = make_blobs(400, n_features=5, centers=3, cluster_std=2.5, random_state=0)
    model = ACMK(3, solver="sparse", filter=filter, n_neighbors=n_neighbors, random_state=0).fit(X)
    assert (model.graph_ != model.graph_.T).nnz == 0
    assert model.graph_.has_sorted_indices
    assert model.graph_.indices.dtype == np.int32
    together = plain.fused(model.base_labels_, model.base_weights_)
    rows, columns = model.graph_.nonzero()
    assert_allclose(model.graph_[rows, columns], together[rows, columns])
    x = acmk.coordinates(X, np.random.RandomState(0))
    expected = plain.power_filter(plain.low_pass(model.graph_.toarray()), 3, filter == "polynomial") @ x
    assert_allclose(model.embedding_, expected, atol=1e-5)


def test_lloyd_step_empties_no_cluster():
    z = np.array([[0.0], [0.1], [5.0], [0.2]])
    codes = np.array([[0, 0], [0, 1], [1, 2], [2, 1]], dtype=np.int32)
    refined = sparse._lloyd_step(z, codes, np.array([0, 3, 6]))
    for column in refined.T:
        assert_array_equal(np.unique(column), [0, 1, 2])


# --- the endings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_graph", [np.asarray, sp.csr_array])
def test_smoothed_consensus_equals_plain_version(as_graph, rng):
    _, x, base = noisy(60, c=4)
    graph = solve_sparse(x, base).graph.toarray()
    vectors = endings.smoothed_consensus(as_graph(graph), base, 4)
    expected = plain.smoothed_consensus(graph, base, 4, endings._ROUNDS * endings._STEPS)
    assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-10)
    assert_allclose(vectors @ vectors.T, expected, atol=1e-6)


def test_smoothed_consensus_in_single_precision_spans_the_same(monkeypatch):
    _, x, base = noisy(60, c=4)
    graph = solve_sparse(x, base).graph
    exact = endings.smoothed_consensus(graph, base, 4)
    monkeypatch.setattr(sparse, "_EXACT_ROWS", 10)
    found = endings.smoothed_consensus(graph, base, 4)
    assert not np.array_equal(found, exact)
    assert_allclose(found @ found.T, exact @ exact.T, atol=1e-4)


@pytest.mark.parametrize("final", ["kmeans", "spectral"])
@pytest.mark.parametrize("as_graph", [sp.csr_array.toarray, sp.csr_array])
def test_endings_are_fixed_points_of_k_means_no_worse_than_their_start(final, as_graph):
    _, x, base = noisy(120, c=4)
    found = solve_sparse(x, base)
    graph = as_graph(found.graph)
    z = endings.filtered(graph, x, 3, False)
    points = (
        z if final == "kmeans" else endings._unit_rows(endings._cut(graph, found.codes, found.weights, 4))
    )
    start = endings.consensus_start(graph, found.codes, 4, np.random.RandomState(0))
    labels = endings.final_labels(final, z, graph, found.codes, found.weights, 4, np.random.RandomState(0))
    centres = plain.centres(points, labels)
    assert_array_equal(labels, euclidean_distances(points, centres).argmin(axis=1))
    before = np.sum((points - plain.centres(points, start)[start]) ** 2)
    assert np.sum((points - centres[labels]) ** 2) <= before + 1e-12


@pytest.mark.parametrize("final", ["kmeans", "spectral"])
@pytest.mark.parametrize("as_graph", [sp.csr_array.toarray, sp.csr_array])
def test_unanimous_base_clusterings_are_the_answer(final, as_graph):
    truth, x, _ = noisy(150, c=4, spread=1.0)
    base = np.column_stack([truth] * 5).astype(np.int32)
    found = solve_sparse(x, base, refine=False)
    graph, weights = as_graph(found.graph), np.full(5, 0.2)
    z = endings.filtered(graph, x, 3, False)
    labels = endings.final_labels(final, z, graph, base, weights, 4, np.random.RandomState(0))
    assert adjusted_rand_score(truth, labels) == 1.0


def test_starts_may_compete_on_a_sample(monkeypatch):
    X, truth = make_blobs(400, centers=5, cluster_std=0.5, random_state=4)
    base = base_partitions(X, 5, 10, random_state=0)
    found = solve_sparse(acmk.coordinates(X, np.random.RandomState(0)), base)
    monkeypatch.setattr(endings, "_SAMPLE_ROWS", 100)
    labels = endings.consensus_start(found.graph, found.codes, 5, np.random.RandomState(0))
    assert adjusted_rand_score(truth, labels) == 1.0


def test_k_means_of_few_distinct_points_leaves_no_cluster_empty():
    points = np.repeat([[0.0, 0.0], [1.0, 0.0]], 5, axis=0)
    for sample in (points, points[:6]):
        labels = endings._kmeans(sample, points, 4, init="k-means++", n_init=2, rng=np.random.RandomState(0))
        assert_array_equal(np.unique(labels), np.arange(4))


# --- the estimator ------------------------------------------------------------------------------------------

BOTH = pytest.mark.parametrize("solver", ["admm", "sparse"])


@BOTH
@pytest.mark.parametrize("final", ["kmeans", "spectral"])
def test_shifting_and_scaling_the_table_changes_nothing(solver, final):
    X, _ = make_blobs(60, n_features=5, centers=3, cluster_std=2.5, random_state=0)
    settings = {"solver": solver, "final": final, "max_iter": 3, "random_state": 0}
    model, other = ACMK(3, **settings).fit(X), ACMK(3, **settings).fit(1000.0 * X + 5000.0)
    assert adjusted_rand_score(model.labels_, other.labels_) == 1.0
    assert_allclose(model.objective_, other.objective_, rtol=1e-3)


@BOTH
def test_a_constant_column_changes_nothing(solver):
    X, _ = make_blobs(60, n_features=5, centers=3, cluster_std=2.5, random_state=0)
    wider = np.column_stack([X, np.full(60, 7.0)])
    settings = {"solver": solver, "max_iter": 3, "random_state": 0}
    assert_array_equal(ACMK(3, **settings).fit(X).labels_, ACMK(3, **settings).fit(wider).labels_)


@BOTH
def test_fixed_base_clusterings_give_their_mean_coassociation(solver):
    X, _ = make_blobs(60, n_features=5, centers=3, cluster_std=2.5, random_state=0)
    model = ACMK(3, solver=solver, refine=False, final="spectral", random_state=0).fit(X)
    assert_array_equal(model.base_labels_, model.initial_base_labels_)
    assert_allclose(model.base_weights_, 0.1)
    expected = np.mean([dense._together(column) for column in model.initial_base_labels_.T], axis=0)
    if solver == "admm":
        assert_allclose(model.graph_, expected)
    else:
        rows, columns = model.graph_.nonzero()
        assert_allclose(model.graph_[rows, columns], expected[rows, columns])


def test_a_wide_table_is_rotated_without_changing_distances(rng):
    X = rng.normal(size=(30, 200)) + 3.0
    for table in (X, sp.csr_array(X)):
        x = acmk.coordinates(table, np.random.RandomState(0))
        assert x.shape[1] <= 30
        ratio = euclidean_distances(X) / np.maximum(euclidean_distances(x), 1e-9)
        assert_allclose(ratio[np.triu_indices(30, 1)], ratio[0, 1], rtol=1e-8)
        assert np.mean(np.sum(x**2, axis=1)) == pytest.approx(1.0)


def test_a_large_offset_does_not_blur_a_wide_table(rng):
    X = rng.normal(size=(30, 200))
    x, far = (acmk.coordinates(table, np.random.RandomState(0)) for table in (X, X + 1e7))
    assert_allclose(euclidean_distances(far), euclidean_distances(x), rtol=1e-6, atol=1e-6)


def test_a_wide_sparse_table_of_some_rows_is_rotated_from_its_inner_products(rng, monkeypatch):
    X = sp.csr_array(rng.random((40, 300)) * (rng.random((40, 300)) < 0.1))
    expected = euclidean_distances(acmk.coordinates(X, np.random.RandomState(0)))
    monkeypatch.setattr(acmk, "_DENSE_ENTRIES", 0)
    x = acmk.coordinates(X, np.random.RandomState(0))
    assert x.shape[1] <= 40
    assert_allclose(euclidean_distances(x), expected, atol=1e-7)


def test_a_large_sparse_table_keeps_its_leading_directions(monkeypatch):
    truth = np.repeat(np.arange(4), 30)
    rng = np.random.default_rng(0)
    words = rng.poisson(np.eye(4).repeat(80, axis=1)[truth] * 0.5 + 0.02)
    X = sp.csr_array(normalize(words.astype(float)))
    exact = ACMK(4, solver="sparse", random_state=0).fit(X)
    monkeypatch.setattr(acmk, "_ROTATE_ROWS", 0)
    monkeypatch.setattr(acmk, "_DENSE_ENTRIES", 0)
    monkeypatch.setattr(acmk, "_SINGULAR", 20)
    assert acmk.coordinates(X, np.random.RandomState(0)).shape == (120, 20)
    model = ACMK(4, solver="sparse", random_state=0).fit(X)
    assert model.embedding_.shape == (120, 20)
    assert adjusted_rand_score(truth, model.labels_) == 1.0
    assert adjusted_rand_score(truth, exact.labels_) == 1.0


def test_auto_takes_the_dense_solver_where_it_fits():
    X, _ = make_blobs(50, centers=3, random_state=0)
    assert ACMK(3, max_iter=1, random_state=0).fit(X).solver_ == "admm"
    model = ACMK(3, memory_limit=1e-4, random_state=0).fit(X)
    assert model.solver_ == "sparse"
    assert not hasattr(model, "gap_")


def test_auto_leaves_the_dense_solver_early_unless_memory_is_granted():
    X, _ = make_blobs(250, centers=3, random_state=0)
    assert ACMK(3, random_state=0).fit(X).solver_ == "sparse"
    for granted in ({"memory_limit": 0.1}, {"solver": "admm"}):
        assert ACMK(3, max_iter=1, random_state=0, **granted).fit(X).solver_ == "admm"


def test_memory_that_the_warning_names_is_enough():
    X, _ = make_blobs(250, centers=3, random_state=0)
    with pytest.warns(UserWarning, match="Hint: raise memory_limit to") as caught:
        ACMK(3, lam=2.0, random_state=0).fit(X)
    named = float(str(caught[0].message).split("memory_limit to ")[1].split(",")[0])
    assert ACMK(3, lam=2.0, memory_limit=named, max_iter=1, random_state=0).fit(X).solver_ == "admm"


def test_auto_warns_where_it_drops_what_was_set():
    X, _ = make_blobs(50, centers=3, random_state=0)
    with pytest.warns(UserWarning, match=r"solver='sparse' is used, which has no lam \(2 was set\)\. Hint"):
        ACMK(3, lam=2.0, memory_limit=1e-4, random_state=0).fit(X)


def test_dense_solver_refuses_what_does_not_fit():
    X, _ = make_blobs(2000, centers=3, random_state=0)
    with pytest.raises(ValueError, match=r"needs about 1\.\d GB for 2000 instances, .* Hint: raise memory"):
        ACMK(3, solver="admm").fit(X)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_missing_values_are_refused_by_row_and_column(convert):
    X = np.arange(40.0).reshape(10, 4)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinity in row 3, column 2\. Hint"):
        ACMK(2).fit(convert(X))


def test_large_finite_values_are_not_taken_for_missing_ones():
    X = np.full((6, 2), 1e308)
    X[3:] = -1e308
    X *= 1e-160
    assert adjusted_rand_score(ACMK(2, random_state=0).fit(X).labels_, [0, 0, 0, 1, 1, 1]) == 1.0


def test_fewer_rows_than_clusters():
    with pytest.raises(ValueError, match="Hint"):
        ACMK(5).fit(np.eye(3))


@BOTH
def test_fewer_distinct_rows_than_clusters(solver):
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 3 distinct rows for n_clusters=5"):
        model = ACMK(5, solver=solver, max_iter=2, random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(model.labels_, np.repeat([0, 1, 2], 5)) == 1.0


@BOTH
@pytest.mark.parametrize("final", ["kmeans", "spectral"])
def test_smallest_tables(solver, final):
    settings = {"solver": solver, "final": final, "max_iter": 2, "random_state": 0}
    assert_array_equal(ACMK(1, **settings).fit([[1.0, 2.0]]).labels_, [0])
    assert_array_equal(ACMK(1, **settings).fit(np.random.default_rng(0).normal(size=(20, 2))).labels_, 0)
    assert_array_equal(np.sort(ACMK(4, **settings).fit(np.eye(4)).labels_), np.arange(4))
    with pytest.warns(ConvergenceWarning, match="only 1 distinct rows"):
        assert_array_equal(ACMK(2, **settings).fit(np.ones((6, 3))).labels_, 0)


def test_clusters_are_numbered_by_size():
    X, _ = make_blobs([20, 60, 40], cluster_std=0.3, random_state=0)
    assert_array_equal(np.bincount(ACMK(3, solver="sparse", random_state=0).fit_predict(X)), [60, 40, 20])


def test_verbose_talks_on_stderr(capsys):
    ACMK(2, verbose=1, max_iter=1, random_state=0).fit(np.eye(6))
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("ACMK iteration 1: objective")


# --- quality ------------------------------------------------------------------------------------------------


def scores(y, table):
    return np.mean([normalized_mutual_info_score(y, labels, normalization="max") for labels in table.T])


def test_refined_base_clusterings_are_better_than_initial_ones(data_folder):
    gains = []
    for name in ("Yale", "orlraws10P", "jaffe", "tr11"):
        data = datasets.load(name)
        model = ACMK(len(np.unique(data.y)), solver="sparse", random_state=0).fit(normalize(data.X))
        gains.append(scores(data.y, model.base_labels_) - scores(data.y, model.initial_base_labels_))
    assert np.mean(gains) > 0.02


def test_consensus_is_better_than_its_base_clusterings_on_orlraws(data_folder):
    data = datasets.load("orlraws10P")
    found, base = {"kmeans": [], "spectral": []}, []
    for seed in range(3):
        model = ACMK(10, random_state=seed).fit(normalize(data.X))
        assert model.solver_ == "admm"
        found["kmeans"].append(matched_accuracy_score(data.y, model.labels_))
        learned = (model.embedding_, model.graph_, model.base_labels_, model.base_weights_, 10)
        cut = endings.final_labels("spectral", *learned, np.random.RandomState(seed))
        found["spectral"].append(matched_accuracy_score(data.y, cut))
        base += [matched_accuracy_score(data.y, labels) for labels in model.initial_base_labels_.T]
    assert np.mean(found["kmeans"]) > np.mean(base) + 0.05
    assert np.mean(found["spectral"]) > np.mean(base) + 0.08


def test_consensus_is_no_worse_than_the_mean_of_its_runs(data_folder):
    for name in ("Yale", "orlraws10P", "jaffe", "tr11", "tr31"):
        data = datasets.load(name)
        c, gains = len(np.unique(data.y)), []
        for seed in range(2):
            model = ACMK(c, solver="sparse", random_state=seed).fit(normalize(data.X))
            learned = (model.embedding_, model.graph_, model.base_labels_, model.base_weights_, c)
            cut = endings.final_labels("spectral", *learned, np.random.RandomState(seed))
            answers = np.column_stack([model.labels_, cut])
            gains.append(scores(data.y, answers) - scores(data.y, model.initial_base_labels_))
        assert np.mean(gains) > 0, name


def test_text_is_refused_with_a_hint():
    with pytest.raises(ValueError, match=r"X holds text, such as 'a'\. Hint"):
        ACMK(2).fit(np.array([["a", "b"], ["c", "d"], ["a", "b"]]))
