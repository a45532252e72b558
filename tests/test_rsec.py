"""RSEC against the version on all instances in `oracles`, reference numbers, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import RSEC
from consilience.core.lowrank import shrink_singular_values
from tests.oracles.rsec import plain_rsec, shares
from tests.planted import planted
from tests.pools import first_ten, nmi


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "price", "expected"),
    [
        ("Zhou_Lung", 0.01, 0.546),
        ("Zhou_Lung", 0.1, 0.639),
        ("Zhou_Lung", 1.0, 0.675),
        ("RCE_Yale", 0.01, 0.471),
        ("RCE_Yale", 0.1, 0.416),
        ("RCE_Yale", 1.0, 0.365),
    ],
)
def test_reference_numbers_on_the_pools(data_folder, name, price, expected):
    table, y = first_ten(name)
    noise = price * np.linalg.norm(shares(table)[0], axis=0).sum()
    model = RSEC(len(np.unique(y)), rank=0.1, noise=noise, random_state=0)
    # k-means decides: its starts move the numbers by about .03.
    assert abs(nmi(model, table, y) - expected) < 0.03


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("noise", [1.0, 10.0, 100.0])
def test_equals_plain_version_on_repeated_rows(missing, noise):
    _, base = planted(25, 5, 3, noise=0.2, missing=missing, seed=0)
    base = np.repeat(base, np.arange(25) % 3 + 1, axis=0)
    # From some tens of steps on, rounding grows where singular values come near the threshold.
    model = RSEC(3, noise=noise, max_iter=30, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=30 iterations"):
        model.fit(base)
    inverse = model.row_of_instance_
    z, e = plain_rsec(base, 3, 0.1, noise, 30)
    assert_allclose(model.row_representation_[np.ix_(inverse, inverse)], z, atol=1e-6)
    assert_allclose(model.row_error_[np.ix_(inverse, inverse)], e, atol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_constraint_holds_in_the_end(missing):
    truth, base = planted(120, 8, 3, noise=0.15, missing=missing, seed=0)
    model = RSEC(3, random_state=0).fit(base)
    inverse = model.row_of_instance_
    z, e = (part[np.ix_(inverse, inverse)] for part in (model.row_representation_, model.row_error_))
    s, _ = shares(base)
    assert_allclose(s @ z + e, s, atol=1e-6)
    assert adjusted_rand_score(truth, model.labels_) > 0.8


def test_dear_errors_are_small():
    _, base = planted(60, 8, 3, noise=0.15, missing=0.0, seed=0)
    sizes = []
    for noise in (1.0, 30.0, 1000.0):
        model = RSEC(3, noise=noise, random_state=0).fit(base)
        inverse = model.row_of_instance_
        sizes.append(np.linalg.norm(model.row_error_[np.ix_(inverse, inverse)], axis=0).sum())
    assert sizes[0] > sizes[1] > sizes[2]


def test_shrunk_singular_values_minimise_their_objective():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, 8))
    best = shrink_singular_values(x, 0.7)

    def objective(j):
        return 0.7 * np.linalg.norm(j, "nuc") + 0.5 * np.sum((j - x) ** 2)

    assert np.linalg.matrix_rank(best) < 8
    for _ in range(20):
        assert objective(best) < objective(best + 1e-3 * rng.normal(size=(8, 8)))


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(seed):
    _, base = planted(120, 8, 4, noise=0.15, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(120), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = RSEC(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


def test_too_many_distinct_rows_are_refused(monkeypatch):
    monkeypatch.setattr(RSEC, "max_rows", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"RSEC compares all pairs of them and takes at most 10\. Hint"):
        RSEC(3).fit(base)


def test_dear_rank_leaves_nothing_and_still_answers():
    _, base = planted(60, 6, 3, noise=0.1, missing=0.0, seed=0)
    labels = RSEC(3, rank=1.0, noise=0.1, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(3))


def test_one_row_or_one_cluster():
    assert_array_equal(RSEC(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(RSEC(1).fit_predict([["a"], ["b"]]), [0, 0])
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows for n_clusters=2"):
        assert_array_equal(RSEC(2).fit_predict([["a"], ["a"]]), [0, 0])


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert RSEC(2, unobserved="noise").fit(base).labels_[3] == -1
    assert RSEC(2, unobserved="largest").fit(base).labels_[3] == 0
