"""NEMO against the plain version, and its edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import NEMO, datasets, missing
from consilience.metrics import matched_accuracy_score
from consilience.multiview import _affinity
from tests.oracles.nemo import plain_kernel, plain_local, plain_nemo
from tests.test_apmc import groups


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("k", [None, 4])
def test_similarity_equals_the_plain_one(k):
    _, views, observed = groups(40, 3, missing=0.5)
    assert (observed.astype(int) @ observed.T == 0).any()  # some pairs share no view
    model = NEMO(3, n_neighbors=k or "auto", normalize=None, random_state=0).fit(views, mask=observed)
    assert_allclose(model.affinity_, plain_nemo(views, observed, k), rtol=1e-9)


def test_kernel_and_neighbourhoods_equal_the_plain_ones():
    x = np.random.default_rng(0).standard_normal((25, 3))
    kernel = _affinity.scaled_kernel(_affinity.squared_distances(x), 6)
    assert_allclose(kernel, plain_kernel(x, 6), rtol=1e-9)
    assert_allclose(_affinity.nearest_only(kernel, 6), plain_local(kernel, 6), rtol=1e-12)


def test_copies_of_an_instance_are_harmless():
    kernel = _affinity.scaled_kernel(np.zeros((5, 5)), 3)
    assert np.isfinite(kernel).all()
    truth, views, _ = groups(30, 2, widths=(8, 8))
    many = [np.repeat(view, 8, axis=0) for view in views]
    assert adjusted_rand_score(np.repeat(truth, 8), NEMO(3, random_state=0).fit_predict(many)) == 1.0


def test_eigenvectors_are_those_of_the_normalised_similarity():
    _, views, observed = groups(60, 2)
    model = NEMO(3, random_state=0).fit(views, mask=observed)
    root = np.sqrt(model.affinity_.sum(axis=1))
    scaled = model.affinity_ / root / root[:, None]
    assert_allclose(scaled @ model.embedding_, model.embedding_ * model.eigenvalues_, atol=1e-10)
    assert model.eigenvalues_[0] == pytest.approx(1.0)


def test_views_without_a_common_instance_get_the_mean_between_them():
    _, views, _ = groups(40, 2)
    observed = np.zeros((40, 2), dtype=bool)
    observed[:20, 0], observed[20:, 1] = True, True
    s = NEMO(3, random_state=0).fit(views, mask=observed).affinity_
    inside = [s[i, j] for part in (range(20), range(20, 40)) for i in part for j in part if j < i]
    assert_allclose(s[:20, 20:], np.mean(inside))


@pytest.mark.parametrize("c", [1, 2, 7, 20])
def test_exactly_as_many_clusters_as_asked_for(c):
    rng = np.random.default_rng(0)
    labels = NEMO(c, random_state=0).fit_predict([rng.standard_normal((40, 3)) for _ in range(2)])
    assert_array_equal(np.unique(labels), np.arange(c))


def test_too_many_instances_are_refused_with_a_hint(monkeypatch):
    monkeypatch.setattr(NEMO, "max_instances", 30)
    with pytest.raises(ValueError, match=r"40 instances, NEMO takes at most 30.*Hint: use APMC"):
        NEMO(3).fit(np.zeros((40, 2)))


@pytest.mark.data
def test_digits_with_rows_missing(data_folder):
    data = datasets.load("mv_Handwritten6")
    rows = np.random.default_rng(0).permutation(2000)[:800]
    mask = missing.drop_views((800, 6), 0.3, random_state=0)
    labels = NEMO(10, random_state=0).fit_predict([view[rows] for view in data.views], mask=mask)
    assert matched_accuracy_score(data.y[rows], labels) > 0.8
