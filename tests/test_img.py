"""IMG: its blocks against general solvers, its laws, and its edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import IMG
from consilience.multiview.img import _objective, _spread, _update_basis, _update_factor, _update_graph, img
from consilience.multiview.pvc import start_pvc
from tests.test_apmc import groups


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


def problem(n=40, k=3, seed=0):
    rng = np.random.default_rng(seed)
    _, _, observed = groups(n, 2, seed=seed)
    arrays = [np.where(observed[:, [v]], rng.random((n, d)), 0.0) for v, d in enumerate((5, 7))]
    return arrays, observed, start_pvc(arrays, observed, k, np.random.RandomState(seed))[0]


@pytest.mark.parametrize("seed", range(3))
def test_objective_never_rises(seed):
    arrays, observed, p = problem(60, seed=seed)
    found = img(arrays, observed, p, ridge=0.1, smoothness=0.3, n_neighbors=8, max_iter=25, tol=-1.0)
    assert len(found.objective) == 25
    assert np.diff(found.objective).max() <= 1e-8 * found.objective[0]


def test_graph_is_the_projection_on_the_simplex():
    rng = np.random.default_rng(0)
    p, scale = rng.standard_normal((15, 2)), rng.random(15) + 0.1
    graph = _update_graph(p, scale)
    assert_allclose(graph.sum(axis=1), 1.0)
    assert (graph >= 0).all()
    assert not np.diag(graph).any()
    for i in range(15):
        target = -scale[i] * ((p - p[i]) ** 2).sum(axis=1)
        for _ in range(50):
            other = rng.dirichlet(np.ones(14))
            other = np.insert(other, i, 0.0)
            assert ((graph[i] - target) ** 2).sum() <= ((other - target) ** 2).sum() + 1e-12


@pytest.mark.parametrize("k", [1, 4, 10])
def test_evenness_gives_the_number_of_neighbours_asked_for(k):
    p = np.random.default_rng(0).standard_normal((30, 3))
    graph = _update_graph(p, 0.3 / (4 * _spread(p, 0.3, k)))
    assert ((graph > 1e-12).sum(axis=1) == k).all()


def test_factor_and_bases_have_no_gradient():
    arrays, observed, p = problem(20)
    seen = observed.astype(float)
    us = [_update_basis(x, p * seen[:, [v]], 0.1) for v, x in enumerate(arrays)]
    a = _update_graph(p, np.ones(20))
    gamma = np.ones(20)
    p = _update_factor(arrays, seen, p, us, a, 0.3)
    us = [_update_basis(x, p * seen[:, [v]], 0.1) for v, x in enumerate(arrays)]
    p = _update_factor(arrays, seen, p, us, a, 0.3)

    def value(p):
        return _objective(arrays, seen, p, us, a, 0.1, 0.3, gamma)

    rng = np.random.default_rng(0)
    for _ in range(20):
        step = 1e-4 * rng.standard_normal(p.shape)
        assert abs(value(p + step) - value(p - step)) < 1e-9
        assert value(p + 100 * step) >= value(p)


def test_objective_by_hand():
    arrays, observed, p = problem(12)
    seen = observed.astype(float)
    us = [_update_basis(x, p * seen[:, [v]], 0.1) for v, x in enumerate(arrays)]
    a, gamma = _update_graph(p, np.ones(12)), np.arange(12.0)
    weights = (a + a.T) / 2
    laplacian = np.diag(weights.sum(axis=1)) - weights
    by_hand = 0.3 * np.trace(p.T @ laplacian @ p) + sum(gamma[i] * (a[i] ** 2).sum() for i in range(12))
    for v, x in enumerate(arrays):
        rows = observed[:, v]
        by_hand += ((x[rows] - p[rows] @ us[v]) ** 2).sum() + 0.1 * (us[v] ** 2).sum()
    assert _objective(arrays, seen, p, us, a, 0.1, 0.3, gamma) == pytest.approx(by_hand)


def test_finds_clusters_of_two_views_with_holes():
    truth, views, observed = groups(150, 2, widths=(8, 8))
    model = IMG(3, random_state=0).fit(views, mask=observed)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    assert_allclose(model.affinity_.sum(axis=1), 1.0)


def test_copies_of_instances_are_harmless():
    model = IMG(2, random_state=0).fit([np.repeat([[0.0, 1.0], [1.0, 0.0]], 10, axis=0)] * 2)
    assert np.isfinite(model.embedding_).all()
    assert adjusted_rand_score(np.repeat([0, 1], 10), model.labels_) == 1.0


def test_more_than_two_views_are_refused_with_a_hint():
    _, views, _ = groups(40, 3)
    with pytest.raises(ValueError, match=r"IMG takes at most 2 views, got 3.*Hint: use APMC"):
        IMG(3).fit(views)


def test_too_many_instances_are_refused_with_a_hint(monkeypatch):
    monkeypatch.setattr(IMG, "max_instances", 30)
    with pytest.raises(ValueError, match=r"IMG takes at most 30.*Hint: use APMC"):
        IMG(3).fit(np.zeros((40, 2)))
