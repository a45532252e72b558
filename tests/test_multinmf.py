"""MultiNMF against the plain version, and its edges."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import MultiNMF
from consilience.multiview._factors import squared_error, start_all
from consilience.multiview.multinmf import multinmf
from tests.oracles.factors import plain_multinmf
from tests.test_apmc import groups


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


def problem(seed=0):
    rng = np.random.default_rng(seed)
    arrays = [rng.random((25, width)) for width in (5, 7)]
    return arrays, *start_all(arrays, 3, np.random.RandomState(seed))


def test_rounds_equal_the_plain_ones():
    arrays, vs, us = problem()
    found = multinmf(arrays, vs, us, weight=0.05, max_iter=2, tol=0.0)
    consensus, v = plain_multinmf(arrays, vs, us, weight=0.05, n_rounds=2)
    assert_allclose(found.embedding, consensus, rtol=1e-9)
    for ours, theirs in zip(found.factors, v, strict=True):
        assert_allclose(ours, theirs, rtol=1e-9)


def test_scale_of_the_data_changes_nothing():
    arrays, vs, us = problem()
    one = multinmf(arrays, vs, us, weight=0.05, max_iter=3, tol=0.0)
    other = multinmf([1e3 * x for x in arrays], [1e3 * v for v in vs], us, weight=0.05, max_iter=3, tol=0.0)
    assert_allclose(other.embedding, 1e3 * one.embedding, rtol=1e-8)


@pytest.mark.parametrize("weight", [0.01, 1.0])
def test_the_more_weight_the_more_the_views_agree(weight):
    arrays, vs, us = problem()

    def gap(weight):
        found = multinmf(arrays, vs, us, weight=weight, max_iter=5, tol=0.0)
        return np.abs(found.factors[0] - found.factors[1]).max()

    assert gap(10 * weight) < gap(weight)


def test_bases_sum_to_one_and_factors_are_nonnegative():
    truth, views, observed = groups(120, 2, widths=(8, 8), missing=0.1)
    model = MultiNMF(3, random_state=0).fit(views, mask=observed)
    for basis in model.components_:
        assert basis.shape == (3, 8)
        assert_allclose(basis.sum(axis=1), 1.0)
    assert (model.embedding_ >= 0).all()
    assert adjusted_rand_score(truth, model.labels_) > 0.8


def test_error_of_sparse_views_is_that_of_dense_ones():
    rng = np.random.default_rng(0)
    x, u, v = rng.random((9, 6)), rng.random((9, 2)), rng.random((6, 2))
    assert squared_error(sp.csr_array(x), u, v) == pytest.approx(((x - u @ v.T) ** 2).sum())
    assert squared_error(x, u, v) == pytest.approx(((x - u @ v.T) ** 2).sum())


def test_exact_fit_converges():
    rng = np.random.default_rng(0)
    views = [rng.random((40, 2)) @ rng.random((2, 5)) for _ in range(2)]
    model = MultiNMF(2, weight=0.0, random_state=0).fit(views)
    assert model.n_iter_ < 100
