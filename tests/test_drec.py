"""DREC against plain linear systems, the reference numbers of its authors' program, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import DREC, datasets
from consilience.metrics import normalized_mutual_info_score
from tests.oracles.drec import plain_representation
from tests.planted import planted


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "regularization", "expected"),
    [
        ("pool_LWEA_VS", 100.0, 0.155),
        ("pool_LWEA_VS", 1.0, 0.109),
        ("pool_LWEA_Semeion", 100.0, 0.629),
        ("pool_LWEA_Semeion", 1.0, 0.481),
        ("pool_Zhou_Lung", 100.0, 0.437),
        ("pool_Zhou_Lung", 1.0, 0.560),
        ("pool_RCE_Yale", 100.0, 0.450),
        ("pool_RCE_Yale", 1.0, 0.222),
    ],
)
def test_reference_numbers_on_the_pools(data_folder, name, regularization, expected):
    pool = datasets.load(name)
    model = DREC(len(np.unique(pool.y)), regularization=regularization, random_state=0)
    labels = model.fit_predict(pool.labels[:, :10])
    # k-means decides: its starts move the numbers by about .03.
    assert abs(normalized_mutual_info_score(pool.y, labels, normalization="max") - expected) < 0.03


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("regularization", [1.0, 10.0, 1e3])
@pytest.mark.parametrize("seed", range(2))
def test_representation_equals_plain_version(missing, regularization, seed):
    # Below one, rows are represented almost without error, and rounding decides the plain version's weights.
    _, base = planted(60, 6, 4, noise=0.3, missing=missing, seed=seed)
    rows, slow = plain_representation(base, regularization)
    model = DREC(4, regularization=regularization, random_state=0).fit(base)
    place = [int(np.flatnonzero((rows == row).all(axis=1))[0]) for row in model.partitions_.distinct.codes]
    assert_allclose(model.row_representation_, slow[np.ix_(place, place)], atol=1e-10)


def test_reweighting_lowers_the_objective():
    _, base = planted(60, 6, 4, noise=0.3, missing=0.2, seed=0)
    model = DREC(4, regularization=1.0, random_state=0).fit(base)
    codes = model.partitions_.distinct.codes
    x = np.vstack([codes[:, j] == c for j in range(6) for c in range(codes[:, j].max() + 1)]).astype(float)
    x *= np.sqrt(6 / (codes >= 0).sum(axis=1))
    ridge = np.linalg.solve(x.T @ x + np.eye(len(codes)), x.T @ x)  # the first of the five sweeps

    def objective(z):
        return np.linalg.norm(x - x @ z, axis=0).sum() + np.sum(z**2)

    assert objective(model.row_representation_) < objective(ridge)


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(seed):
    _, base = planted(150, 8, 4, noise=0.15, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(150), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = DREC(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


def test_how_often_a_row_occurs_does_not_matter():
    _, base = planted(80, 6, 3, noise=0.3, missing=0.0, seed=1)
    base = np.unique(base, axis=0)
    copies = np.repeat(np.arange(len(base)), np.random.default_rng(0).integers(1, 9, len(base)))
    labels = DREC(3, random_state=0).fit_predict(base)
    assert adjusted_rand_score(labels[copies], DREC(3, random_state=0).fit_predict(base[copies])) == 1.0


def test_rows_with_few_labels_are_scaled_to_the_length_of_complete_ones():
    base = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [0, -1, -1, -1]])
    z = DREC(2, random_state=0).fit(base).row_representation_
    # Their representation by themselves shrinks alike, whether four labels or one were seen.
    assert_allclose(sorted(np.diag(z))[1], np.diag(z).max(), rtol=0.3)


def test_too_many_distinct_rows_are_refused(monkeypatch):
    monkeypatch.setattr(DREC, "max_rows", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"DREC compares all pairs of them and takes at most 10\. Hint"):
        DREC(3).fit(base)


def test_a_base_with_one_cluster_in_first_place():
    # The authors' program numbers such a cluster zero and fails.
    _, base = planted(60, 4, 3, noise=0.0, missing=0.0, seed=0)
    labels = DREC(3, random_state=0).fit_predict(np.column_stack([np.zeros(60, dtype=int), base]))
    assert adjusted_rand_score(labels, DREC(3, random_state=0).fit_predict(base)) == 1.0


def test_one_row_or_one_cluster():
    assert_array_equal(DREC(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(DREC(1).fit_predict([["a"], ["b"]]), [0, 0])
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows for n_clusters=2"):
        assert_array_equal(DREC(2).fit_predict([["a"], ["a"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert DREC(2, unobserved="noise").fit(base).labels_[3] == -1
    assert DREC(2, unobserved="largest").fit(base).labels_[3] == 0
