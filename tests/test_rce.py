"""RCE against the version on all instances in `oracles`, the authors' outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import RCE
from tests.oracles.rce import plain_rce
from tests.planted import planted


@pytest.mark.fixtures
@pytest.mark.parametrize("number", range(3))
def test_matrix_equals_authors_outputs(fixtures_folder, number):
    # Stored in single precision, as the mean of both halves.
    given = np.load(fixtures_folder / f"rce_yale_m20_p{number}.npz")
    model = RCE(15, sparsity=float(given["lambda1"]), rank=float(given["lambda2"]), random_state=0)
    inverse = model.fit(given["base"]).row_of_instance_
    found = model.row_similarity_[np.ix_(inverse, inverse)]
    assert_allclose(found, given["A_star"], atol=1e-6)


@pytest.mark.parametrize(("sparsity", "rank"), [(0.01, 0.01), (1.0, 0.01), (0.1, 0.0)])
@pytest.mark.parametrize("seed", range(2))
def test_equals_plain_version_on_repeated_rows(sparsity, rank, seed):
    _, base = planted(30, 6, 3, noise=0.2, missing=0.0, seed=seed)
    base = np.repeat(base, np.arange(30) % 3 + 1, axis=0)
    model = RCE(3, sparsity=sparsity, rank=rank, random_state=0).fit(base)
    inverse = model.row_of_instance_
    slow = plain_rce(base, sparsity, rank)
    assert_allclose(model.row_similarity_[np.ix_(inverse, inverse)], 0.5 * (slow + slow.T), atol=1e-8)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_similarity_is_a_probability_and_keeps_what_is_certain(missing):
    truth, base = planted(120, 8, 3, noise=0.1, missing=missing, seed=0)
    model = RCE(3, random_state=0).fit(base)
    assert model.row_similarity_.min() >= 0.0
    assert model.row_similarity_.max() <= 1.0
    assert_allclose(np.diag(model.row_similarity_), 1.0)
    assert adjusted_rand_score(truth, model.labels_) > 0.9


def test_cheap_errors_let_single_bases_be_wrong():
    _, base = planted(60, 8, 3, noise=0.1, missing=0.0, seed=0)
    low = RCE(3, sparsity=0.01, rank=0.0, random_state=0).fit(base).row_similarity_
    high = RCE(3, sparsity=100.0, rank=0.0, random_state=0).fit(base).row_similarity_
    assert not np.allclose(low, high, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(seed):
    _, base = planted(120, 8, 4, noise=0.15, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(120), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = RCE(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


def test_pairs_that_nobody_saw_together_keep_the_average():
    base = np.array([[0, 0, -1], [0, 1, -1], [1, 1, -1], [-1, -1, 0], [-1, 0, 0], [-1, 1, 1]])
    model = RCE(2, random_state=0).fit(base)
    a, b = model.row_of_instance_[[0, 3]]
    seen = base >= 0
    both = seen[:, None] & seen[None]
    agreed = (base[:, None] == base[None]) & both
    assert_allclose(model.row_similarity_[a, b], agreed.sum() / both.sum())


def test_too_many_distinct_rows_are_refused(monkeypatch):
    monkeypatch.setattr(RCE, "max_rows", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"RCE compares all pairs of them and takes at most 10\. Hint"):
        RCE(3).fit(base)


def test_one_row_or_one_cluster():
    assert_array_equal(RCE(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(RCE(1).fit_predict([["a"], ["b"]]), [0, 0])
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows for n_clusters=2"):
        assert_array_equal(RCE(2).fit_predict([["a"], ["a"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert RCE(2, unobserved="noise").fit(base).labels_[3] == -1
    assert RCE(2, unobserved="largest").fit(base).labels_[3] == 0
