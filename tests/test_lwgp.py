"""LWGP against the dense version in `oracles`, the authors' outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from consilience import LWGP, Partitions, datasets
from consilience.metrics import normalized_mutual_info_score
from tests.oracles.lw import plain_lwgp
from tests.planted import planted


@pytest.mark.fixtures
@pytest.mark.parametrize("seed", range(3))
def test_equals_authors_outputs(fixtures_folder, seed):
    given = np.load(fixtures_folder / "lwgp_ecoli_m20.npz")
    model = LWGP(int(given["n_clusters"]), theta=0.4, random_state=seed).fit(given["base"])
    assert adjusted_rand_score(model.labels_, given["labels"]) == 1.0
    assert_allclose(np.concatenate(model.certainty_), given["ECI"], atol=1e-10)


@pytest.mark.data
def test_quality_on_the_authors_pool(data_folder):
    pool = datasets.load("pool_LWEA_Semeion")
    found = []
    for draw in range(10):
        columns = np.random.default_rng(draw).permutation(100)[:10]
        labels = LWGP(10, random_state=draw).fit_predict(pool.labels[:, columns])
        found.append(normalized_mutual_info_score(pool.y, labels, normalization="max"))
    # Published: .642 over 100 draws, standard deviation .024; the band is three errors of a mean of ten.
    assert abs(np.mean(found) - 0.642) < 0.023


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_embedding_equals_plain_version(missing, seed):
    _, base = planted(150, 6, 4, noise=0.25, missing=missing, seed=seed)
    slow, labels = plain_lwgp(base, 4)
    model = LWGP(4, random_state=0).fit(base)
    # Eigenvectors are free up to sign, so angles between instances are compared.
    assert_allclose(model.embedding_ @ model.embedding_.T, slow @ slow.T, atol=1e-8)
    if missing < 0.5:
        assert adjusted_rand_score(model.labels_, labels) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_counts_equal_repeated_rows(seed):
    _, base = planted(90, 6, 4, noise=0.3, missing=0.2, seed=seed)
    copies = np.repeat(np.arange(90), np.random.default_rng(seed).integers(1, 6, 90))
    slow, _ = plain_lwgp(base[copies], 4)
    fast = LWGP(4, random_state=0).fit(base[copies]).embedding_
    assert_allclose(fast @ fast.T, slow @ slow.T, atol=1e-8)


@pytest.mark.parametrize("discretize", ["kmeans", "rotation"])
@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(discretize, seed):
    _, base = planted(200, 8, 4, noise=0.2, missing=0.3, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(200), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = LWGP(4, discretize=discretize, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


@pytest.mark.parametrize("discretize", ["kmeans", "rotation"])
def test_more_clusters_than_base_clusters(discretize):
    # Nine distinct rows from six base clusters: the embedding is narrower than the answer.
    base = np.array([[a, b, -1] for a in range(3) for b in range(3)] * 3)
    base[:, 2] = 0
    labels = LWGP(8, discretize=discretize, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(8))
    assert_array_equal(labels[:9], labels[9:18])


@pytest.mark.parametrize("discretize", ["kmeans", "rotation"])
def test_groups_that_nothing_links_are_found(discretize):
    # Eigenvalue one has the multiplicity of the components: any basis of it will do.
    base = np.full((60, 4), -1)
    truth = np.repeat(np.arange(3), 20)
    base[:, 0] = truth
    base[:20, 1], base[20:40, 2], base[40:, 3] = 0, 0, 0
    assert adjusted_rand_score(LWGP(3, discretize=discretize, random_state=0).fit_predict(base), truth) == 1.0


def test_tiny_theta_leaves_an_answer():
    _, base = planted(100, 6, 3, noise=0.3, missing=0.2, seed=0)
    model = LWGP(3, theta=1e-4, random_state=0).fit(base)
    assert np.isfinite(model.embedding_).all()
    assert len(np.unique(model.labels_)) == 3


def test_embedding_has_length_one_and_zero_for_the_unobserved():
    base = np.array([[0, 0], [0, 1], [1, 1], [-1, -1]])
    model = LWGP(2, unobserved="noise", random_state=0).fit(base)
    assert_allclose(np.linalg.norm(model.embedding_, axis=1), [1, 1, 1, 0])
    assert model.labels_[3] == -1


def test_rows_with_few_labels_are_not_punished():
    # A row that one base saw lies where the certain rows of its cluster lie.
    truth, base = planted(200, 6, 3, noise=0.0, missing=0.0, seed=0)
    base[:20, 1:] = -1
    model = LWGP(3, random_state=0).fit(base)
    assert adjusted_rand_score(model.labels_, truth) == 1.0
    centre = {c: model.embedding_[20:][truth[20:] == c].mean(axis=0) for c in range(3)}
    for p in range(20):
        assert_allclose(model.embedding_[p], centre[truth[p]], atol=1e-6)


def test_too_many_base_clusters_are_refused(monkeypatch):
    monkeypatch.setattr(LWGP, "max_base_clusters", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(
        ValueError, match=r"18 clusters in all, LWGP takes at most 10; '0' alone has 3\. Hint"
    ):
        LWGP(3).fit(base)


def test_result_does_not_depend_on_the_solver_of_singular_vectors():
    _, base = planted(40, 30, 4, noise=0.3, missing=0.2, seed=0)  # fewer rows than base clusters
    slow, _ = plain_lwgp(base, 4)
    assert len(Partitions.of(base).distinct.counts) < Partitions.of(base).offsets[-1]
    fast = LWGP(4, random_state=0).fit(base).embedding_
    assert_allclose(fast @ fast.T, slow @ slow.T, atol=1e-8)
