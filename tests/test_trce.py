"""TRCE against the dense version in `oracles`, the authors' outputs through their bug, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import TRCE, Partitions
from consilience.consensus import trce as module
from consilience.core.components import clusters_of_graph
from consilience.core.simplex import project_rows
from tests.oracles.trce import on_simplex, plain_trce
from tests.planted import planted

LUNG = [f"trce_lung_run0_gamma{gamma}.npz" for gamma in ("1e-5", "1e-2", "1e0", "1e2", "1e5")]


@pytest.mark.fixtures
@pytest.mark.parametrize("name", LUNG)
def test_oracle_with_the_published_bug_equals_authors_outputs(fixtures_folder, name):
    given = np.load(fixtures_folder / name)
    _, labels = plain_trce(given["base"], int(given["n_clusters"]), float(given["gamma"]), bug=True)
    assert adjusted_rand_score(labels, given["labels"]) == 1.0


@pytest.mark.fixtures
@pytest.mark.parametrize("name", LUNG[1:3])
def test_equals_oracle_without_the_bug_on_the_authors_inputs(fixtures_folder, name):
    given = np.load(fixtures_folder / name)
    s, labels = plain_trce(given["base"], 5, float(given["gamma"]), bug=False)
    model = TRCE(5, gamma=float(given["gamma"]), max_iter=10, random_state=0).fit(given["base"])
    inverse = model.row_of_instance_
    assert_allclose(model.row_graph_[np.ix_(inverse, inverse)], s, atol=1e-10)
    if model.n_components_ == 5:
        assert adjusted_rand_score(model.labels_, labels) == 1.0


@pytest.mark.parametrize("gamma", [0.1, 10.0])
@pytest.mark.parametrize("seed", range(3))
def test_equals_plain_version_on_repeated_rows(gamma, seed):
    _, base = planted(40, 6, 3, noise=0.2, missing=0.0, seed=seed)
    base = base[np.repeat(np.arange(40), np.random.default_rng(seed).integers(1, 4, 40))]
    s, _ = plain_trce(base, 3, gamma, bug=False)
    model = TRCE(3, gamma=gamma, max_iter=10, random_state=0).fit(base)
    inverse = model.row_of_instance_
    assert_allclose(model.row_graph_[np.ix_(inverse, inverse)], s, atol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_rows_of_the_common_walk_sum_to_one(missing):
    _, base = planted(80, 6, 3, noise=0.2, missing=missing, seed=0)
    w = Partitions.of(base).distinct.counts.astype(float)
    rng = np.random.default_rng(0)
    h = rng.random((len(w), len(w))) + np.eye(len(w))
    b = module._update_b(h, rng.random((len(w), len(w))) * (1 - np.eye(len(w))), w)
    assert_allclose(b @ w, 1.0, rtol=1e-12)


def test_projection_with_weights_is_that_of_repeated_entries():
    rng = np.random.default_rng(0)
    v, w = rng.normal(size=(20, 7)), rng.integers(1, 5, 7)
    fast = np.repeat(project_rows(v, w.astype(float)), w, axis=1)
    slow = np.array([on_simplex(np.repeat(row, w)) for row in v])
    assert_allclose(fast, slow, atol=1e-12)


def test_doubtful_instances_and_a_random_base_count_less():
    rng = np.random.default_rng(99)
    _, base = planted(150, 8, 3, noise=0.0, missing=0.0, seed=0)
    base[:, 7] = rng.integers(0, 3, 150)
    base[:15] = rng.integers(0, 3, (15, 8))
    model = TRCE(3, random_state=0).fit(base)
    assert model.base_weights_.argmin() == 7
    assert model.reliability_[:15].mean() < model.reliability_[15:].mean()
    assert_allclose(model.base_weights_.sum(), 1.0)


def test_missing_labels_are_neither_rewarded_nor_punished():
    truth, base = planted(200, 8, 3, noise=0.1, missing=0.4, seed=0)
    model = TRCE(3, random_state=0).fit(base)
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    base[:, 0] = np.where(np.arange(200) < 150, -1, base[:, 0])
    base[:, 0] = np.where((base < 0).all(axis=1), 0, base[:, 0])
    weights = TRCE(3, random_state=0).fit(base).base_weights_
    assert 0.3 < weights[0] / np.median(weights) < 3.0


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(seed):
    _, base = planted(150, 8, 4, noise=0.15, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(150), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = TRCE(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


def test_exactly_the_wanted_number_of_clusters_whatever_the_components():
    graph = np.zeros((6, 6))
    graph[0, 1] = graph[2, 3] = graph[4, 5] = 1.0
    graph += graph.T + np.eye(6)
    evidence = np.full((6, 6), 0.1)
    evidence[:4, :4] = 0.9
    w = np.ones(6)
    for k in (2, 3, 5):
        labels, n_found = clusters_of_graph(graph, evidence, w, k, n_init=5, rng=np.random.RandomState(0))
        assert n_found == 3
        assert len(np.unique(labels)) == k
        if k == 2:
            assert_array_equal(labels == labels[0], [1, 1, 1, 1, 0, 0])


def test_too_many_distinct_rows_are_refused(monkeypatch):
    monkeypatch.setattr(TRCE, "max_rows", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"TRCE compares all pairs of them and takes at most 10\. Hint"):
        TRCE(3).fit(base)


def test_one_row_or_one_cluster():
    assert_array_equal(TRCE(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(TRCE(1).fit_predict([["a"], ["b"]]), [0, 0])
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows for n_clusters=2"):
        assert_array_equal(TRCE(2).fit_predict([["a"], ["a"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert TRCE(2, unobserved="noise").fit(base).labels_[3] == -1
    assert TRCE(2, unobserved="largest").fit(base).labels_[3] == 0
