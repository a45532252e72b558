"""The two spectral baselines, by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import SpectralAverage, SpectralConcat
from consilience.multiview.scaling import fill_with_mean
from tests.test_apmc import groups


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


def gaussian(x, sigma=None):
    squared = np.array([[((a - b) ** 2).sum() for b in x] for a in x])
    return np.exp(-squared / (np.sqrt(squared).mean() if sigma is None else sigma) ** 2)


@pytest.mark.parametrize("bandwidth", ["mean_distance", 3.0])
def test_concatenated_features_with_means_for_absent_rows(bandwidth):
    _, views, observed = groups(40, 2)
    model = SpectralConcat(3, bandwidth=bandwidth, normalize=None, random_state=0).fit(views, mask=observed)
    filled = [x.copy() for x in views]
    for v, x in enumerate(filled):
        x[~observed[:, v]] = x[observed[:, v]].mean(axis=0)
    expected = gaussian(np.hstack(filled), None if bandwidth == "mean_distance" else bandwidth)
    assert_allclose(model.affinity_, expected, atol=1e-12)


def test_similarities_averaged_over_the_views_that_have_both():
    _, views, observed = groups(40, 2, missing=0.5)
    model = SpectralAverage(3, normalize=None, random_state=0).fit(views, mask=observed)
    total, count = np.zeros((40, 40)), np.zeros((40, 40))
    for v, x in enumerate(views):
        rows = np.flatnonzero(observed[:, v])
        total[np.ix_(rows, rows)] += gaussian(x[rows])
        count[np.ix_(rows, rows)] += 1
    assert (count == 0).any()
    expected = np.divide(total, count, out=np.zeros((40, 40)), where=count > 0)
    assert_allclose(model.affinity_, expected, atol=1e-12)


@pytest.mark.parametrize("method", [SpectralConcat, SpectralAverage])
def test_embedding_has_rows_of_norm_one(method):
    truth, views, observed = groups(90, 2, widths=(8, 8), missing=0.1)
    model = method(3, random_state=0).fit(views, mask=observed)
    assert_allclose(np.linalg.norm(model.embedding_, axis=1), 1.0)
    assert adjusted_rand_score(truth, model.labels_) == 1.0


@pytest.mark.parametrize("method", [SpectralConcat, SpectralAverage])
def test_equal_instances_are_harmless(method):
    labels = method(1, random_state=0).fit_predict([np.ones((6, 2)), np.ones((6, 3))])
    assert_array_equal(labels, 0)


def test_sparse_rows_are_filled_like_dense_ones():
    x = np.arange(12.0).reshape(4, 3)
    present = np.array([True, False, True, True])
    x[1] = 0.0
    filled = fill_with_mean(sp.csr_array(x), present)
    assert sp.issparse(filled)
    assert_allclose(filled.toarray(), fill_with_mean(x, present))
    assert_allclose(filled.toarray()[1], x[present].mean(axis=0))


@pytest.mark.parametrize("method", [SpectralConcat, SpectralAverage])
def test_too_many_instances_are_refused_with_a_hint(method, monkeypatch):
    monkeypatch.setattr(method, "max_instances", 30)
    with pytest.raises(ValueError, match=rf"{method.__name__} takes at most 30.*Hint: use APMC"):
        method(3).fit(np.zeros((40, 2)))


@pytest.mark.parametrize("method", [SpectralConcat, SpectralAverage])
def test_bandwidth_is_checked(method):
    with pytest.raises(ValueError, match="The 'bandwidth' parameter of Spectral"):
        method(2, bandwidth="local").fit(np.eye(4))
