"""SNF against the plain version on complete views, and what it does with absent rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import SNF
from consilience.multiview.snf import _average_of_others, _half_diagonal
from tests.oracles.nemo import plain_half, plain_snf
from tests.test_apmc import groups


@pytest.fixture(autouse=True)
def one_thread():
    """Small problems are many times slower in threads."""
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("n_views", [2, 3])
def test_complete_views_are_fused_as_the_authors_do(n_views):
    _, views, _ = groups(30, n_views)
    model = SNF(3, n_neighbors=5, n_rounds=6, normalize=None, random_state=0).fit(views)
    assert_allclose(model.affinity_, plain_snf(views, 5, 6), atol=1e-12)


def test_rounds_settle():
    _, views, observed = groups(80, 3)
    changes = SNF(3, random_state=0).fit(views, mask=observed).changes_
    assert len(changes) == 20
    assert changes[-1] < 1e-3 * changes[0]


def test_half_of_every_row_is_on_the_diagonal():
    graph = np.random.default_rng(0).random((9, 9))
    assert_allclose(_half_diagonal(graph), plain_half(graph), atol=1e-15)
    assert_allclose(np.diag(_half_diagonal(graph)), 0.5)
    assert_array_equal(_half_diagonal(np.zeros((3, 3))), 0.5 * np.eye(3))


def test_the_others_speak_only_of_pairs_they_have():
    observed = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0]], dtype=bool)
    rows = [np.flatnonzero(column) for column in observed.T]
    graphs = [
        np.full((len(own), len(own)), value) for own, value in zip(rows, (1.0, 10.0, 100.0), strict=True)
    ]
    first, second, third = _average_of_others(graphs, rows, observed)
    # The pair (0, 0) is in all views, (0, 1) in two, those with 2 in the first alone.
    assert_allclose(first, [[55, 10, 1], [10, 10, 1], [1, 1, 1]])
    assert_allclose(second, [[50.5, 1], [1, 1]])
    assert_allclose(third, [[5.5]])


def test_absent_rows():
    truth, views, observed = groups(150, 3, widths=(8, 8, 8), missing=0.4)
    assert adjusted_rand_score(truth, SNF(3, random_state=0).fit_predict(views, mask=observed)) == 1.0


def test_one_view_is_its_own_neighbour():
    truth, views, _ = groups(90, 1, widths=(8,))
    assert adjusted_rand_score(truth, SNF(3, random_state=0).fit_predict(views[0])) == 1.0


@pytest.mark.parametrize("c", [1, 2, 7, 20])
def test_exactly_as_many_clusters_as_asked_for(c):
    rng = np.random.default_rng(0)
    labels = SNF(c, random_state=0).fit_predict([rng.standard_normal((40, 3)) for _ in range(2)])
    assert_array_equal(np.unique(labels), np.arange(c))


def test_too_many_instances_are_refused_with_a_hint(monkeypatch):
    monkeypatch.setattr(SNF, "max_instances", 30)
    with pytest.raises(ValueError, match=r"40 instances, SNF takes at most 30.*Hint: use APMC"):
        SNF(3).fit(np.zeros((40, 2)))
