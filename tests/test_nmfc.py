"""NMFC against dense steps on all instances, the published program's quality, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import KC, NMFC
from consilience.consensus.nmfc import nmfc
from tests.oracles.consensus import one_hot, plain_nmfc_step
from tests.planted import planted
from tests.pools import nmi
from tests.rows import distinct_rows


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_steps_equal_plain_version_on_repeated_rows(missing, seed):
    _, base = planted(50, 6, 4, noise=0.25, missing=missing, seed=seed)
    base = base[np.repeat(np.arange(50), np.random.default_rng(seed).integers(1, 4, 50))]
    b = one_hot(base) / np.sqrt((base >= 0).sum(axis=1))[:, None]
    m = b @ b.T
    with pytest.warns(ConvergenceWarning, match="NMFC did not converge in max_iter=5"):
        model = NMFC(4, max_iter=5, tol=0.0, random_state=0).fit(base)
    q = np.eye(4)[KC(4, random_state=0).fit_predict(base)] + 0.2
    q /= np.linalg.norm(q, axis=0)
    s = np.diag(q.T @ m @ q)
    for step in range(5):
        q, s, error = plain_nmfc_step(m, q, s)
        assert_allclose(model.reconstruction_error_[step], error, rtol=1e-8)
    shares = q * np.sqrt(s)
    shares /= shares.sum(axis=1, keepdims=True)
    assert_allclose(np.sort(model.membership_, axis=1), np.sort(shares, axis=1), atol=1e-8)


def test_factors_end_nearly_orthogonal_and_better_than_the_start():
    _, base = planted(300, 8, 4, noise=0.2, missing=0.1, seed=0)
    rows, _ = distinct_rows(base)
    options = {"n_init": 5, "tol": 0.0}
    rng = np.random.RandomState
    found = nmfc(rows, 4, max_iter=200, rng=rng(0), **options)
    assert found.error[-1] < found.error[0]
    assert (found.membership >= 0).all()
    unit = found.membership / np.sqrt(rows.counts @ found.membership**2)
    gram = (rows.counts[:, None] * unit).T @ unit
    assert np.abs(gram - np.eye(4)).max() < 0.35


@pytest.mark.fixtures
@pytest.mark.filterwarnings("ignore:NMFC did not converge")
@pytest.mark.parametrize("name", ["pixraw_miss30", "yale_m10"])
def test_is_as_good_as_the_published_program(fixtures_folder, name):
    given = np.load(fixtures_folder / f"nmf_{name}.npz")
    k = int(given["n_clusters"])
    found = [nmi(NMFC(k, random_state=s), given["base"], given["y"].astype(int)) for s in range(3)]
    assert np.mean(found) > given["nmi"] - 0.03


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(seed):
    _, base = planted(200, 8, 4, noise=0.2, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(200), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = NMFC(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


def test_memberships_are_shares_and_the_largest_is_the_label():
    _, base = planted(200, 8, 4, noise=0.2, missing=0.2, seed=0)
    model = NMFC(4, random_state=0).fit(base)
    assert_allclose(model.membership_.sum(axis=1), 1.0)
    assert_array_equal(model.membership_.argmax(axis=1), model.labels_)


def test_more_clusters_than_base_clusters():
    base = np.array([[a, b, 0] for a in range(3) for b in range(3)] * 3)
    labels = NMFC(8, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(8))
    assert_array_equal(labels[:9], labels[9:18])


def test_one_row_or_one_cluster():
    assert_array_equal(NMFC(1).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(NMFC(1).fit_predict([["a"], ["b"]]), [0, 0])


def test_says_when_it_did_not_converge():
    _, base = planted(100, 8, 4, noise=0.5, missing=0.3, seed=0)
    with pytest.warns(ConvergenceWarning, match=r"in max_iter=1 iterations\. Hint: raise max_iter or tol"):
        NMFC(4, max_iter=1, random_state=0).fit(base)


def test_unobserved_instances_get_what_was_asked_for():
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    model = NMFC(2, unobserved="noise").fit(base)
    assert model.labels_[3] == -1
    assert_array_equal(model.membership_[3], 0.0)
    assert NMFC(2, unobserved="largest").fit(base).labels_[3] == 0
