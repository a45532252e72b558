"""PTA and PTGP against walks step by step, the reference numbers of their authors' program, and laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import PTA, PTGP, Partitions, datasets
from consilience.core.linkage import cut
from consilience.core.trajectory import trajectory_similarity
from consilience.metrics import normalized_mutual_info_score
from tests.oracles.trajectory import plain_hierarchy, plain_pts, plain_trajectories, row_normalized
from tests.planted import planted

both = pytest.mark.parametrize("method", [PTA, PTGP])


def places(rows, model):
    """Where the oracle has the distinct rows of a model."""
    return [int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in model.partitions_.distinct.codes]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "linked", "partitioned"),
    [
        ("pool_LWEA_VS", 0.136, 0.137),
        ("pool_LWEA_Semeion", 0.643, 0.645),
        ("pool_Zhou_Lung", 0.577, 0.412),
        ("pool_RCE_Yale", 0.386, 0.432),
    ],
)
def test_reference_numbers_on_the_pools(data_folder, name, linked, partitioned):
    pool = datasets.load(name)
    base, k = pool.labels[:, :10], len(np.unique(pool.y))
    found = normalized_mutual_info_score(pool.y, PTA(k).fit_predict(base), normalization="max")
    assert abs(found - linked) < 0.001
    labels = PTGP(k, n_init=50, random_state=0).fit_predict(base)
    # k-means decides: its starts move the numbers by about .03.
    assert abs(normalized_mutual_info_score(pool.y, labels, normalization="max") - partitioned) < 0.03


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_similarity_equals_plain_version(missing, seed):
    _, base = planted(150, 6, 4, noise=0.25, missing=missing, seed=seed)
    rows, slow = plain_pts(base)
    for method in (PTA, PTGP):
        model = method(4, random_state=0).fit(base)
        place = places(rows, model)
        assert_allclose(model.row_similarity_, slow[np.ix_(place, place)], atol=1e-10)


@pytest.mark.data
def test_similarity_of_a_pool_equals_plain_version(data_folder):
    base = Partitions.of(datasets.load("pool_LWEA_VS").labels[:, :10]).codes
    rows, slow = plain_pts(base)
    model = PTA(4).fit(base)
    place = places(rows, model)
    assert_allclose(model.row_similarity_, slow[np.ix_(place, place)], atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_labels_equal_plain_linkage_of_distinct_rows(seed):
    _, base = planted(120, 8, 4, noise=0.25, missing=0.2, seed=seed)
    base = np.column_stack([base, np.random.default_rng(seed).integers(0, 30, 120)])
    base = Partitions.of(base).codes
    rows, slow = plain_pts(base)
    for k in (2, 4, 9):
        model = PTA(k).fit(base)
        expected = plain_hierarchy(slow, k)[places(rows, model)]
        found = model.labels_[np.unique(model.row_of_instance_, return_index=True)[1]]
        assert adjusted_rand_score(found, expected) == 1.0


@pytest.mark.parametrize("n_steps", [1, 2, 17])
def test_eigenvectors_walk_like_products(n_steps):
    rng = np.random.default_rng(n_steps)
    graph = rng.random((30, 30)) * (rng.random((30, 30)) < 0.2)
    graph = graph + graph.T
    graph[7], graph[:, 7] = 0.0, 0.0  # nothing is linked to it
    weights = rng.integers(1, 50, 30).astype(float)
    expected = plain_trajectories(row_normalized(graph * weights), n_steps)
    assert_allclose(trajectory_similarity(graph, weights, n_steps), expected, atol=1e-10)


def test_more_instances_draw_walkers():
    # Two distinct rows between which the third hesitates; the one with more instances wins.
    base = np.array([[0, 0, 0, 0]] * 30 + [[0, 0, 1, 1]] + [[1, 1, 1, 1]] * 2)
    s = PTA(2, n_neighbors=2, n_steps=1).fit(base)
    a, b, c = s.row_of_instance_[[0, 30, 32]]
    assert s.partitions_.distinct.counts[a] == 30
    # From b a walker goes to a almost surely, as from nowhere else.
    assert s.row_similarity_[b, c] < 1.0
    labels = PTA(2, n_neighbors=2).fit_predict(base)
    assert len(np.unique(labels)) == 2


@both
@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(method, seed):
    _, base = planted(150, 8, 4, noise=0.15, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(150), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = method(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


def test_merges_give_every_number_of_clusters():
    _, base = planted(120, 6, 4, noise=0.3, missing=0.2, seed=0)
    model = PTA(4).fit(base)
    for k in (2, 4, 7):
        labels = cut(model.row_merges_, k)[model.row_of_instance_]
        assert adjusted_rand_score(labels, PTA(k).fit_predict(base)) == 1.0


def test_embedding_has_length_one_and_zero_for_the_unobserved():
    base = np.array([[0, 0], [0, 1], [1, 1], [-1, -1]])
    model = PTGP(2, unobserved="noise", random_state=0).fit(base)
    assert_allclose(np.linalg.norm(model.embedding_, axis=1), [1, 1, 1, 0])
    assert model.labels_[3] == -1


@both
def test_rows_that_nothing_links(method):
    base = np.array([[0, 0], [0, 0], [1, 1], [1, 1], [2, 2]])
    assert_array_equal(np.bincount(method(3, random_state=0).fit_predict(base)), [2, 2, 1])


@both
def test_too_many_distinct_rows_are_refused(monkeypatch, method):
    monkeypatch.setattr(method, "max_rows", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    name = method.__name__
    with pytest.raises(ValueError, match=rf"{name} compares all pairs of them and takes at most 10\. Hint"):
        method(3).fit(base)


@both
def test_one_row_or_one_cluster(method):
    assert_array_equal(method(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(method(1).fit_predict([["a"], ["b"]]), [0, 0])
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows for n_clusters=2"):
        assert_array_equal(method(2).fit_predict([["a"], ["a"]]), [0, 0])


@both
def test_unobserved_instances_get_what_was_asked_for(method):
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert method(2, unobserved="noise").fit(base).labels_[3] == -1
    assert method(2, unobserved="largest").fit(base).labels_[3] == 0
