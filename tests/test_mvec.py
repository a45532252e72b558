"""MVEC, and M2VEC where it is the same, against the version on all instances in `oracles`; their laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import M2VEC, MVEC
from tests.oracles.mvec import plain_graph
from tests.planted import planted

both = pytest.mark.parametrize("method", [MVEC, M2VEC])
VIEWS = ["a", "b", "a", "b", "a", "a"]


@both
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("views", [None, VIEWS])
def test_equals_plain_version_on_repeated_rows(method, missing, views):
    _, base = planted(16, 6, 3, noise=0.2, missing=missing, seed=0)
    base = np.repeat(base, np.arange(16) % 3 + 1, axis=0)
    model = method(3, views=views, rank=1.0, noise=3.0, max_iter=30, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=30 iterations"):
        model.fit(base)
    inverse = model.row_of_instance_
    names = np.array(views or ["a"] * 6)
    tables = [base[:, names == name] for name in dict.fromkeys(names)]
    slow = plain_graph(tables, 3, 1.0, 3.0, 30, None if method is MVEC else 0.5)
    assert model.n_views_ == len(tables)
    assert_allclose(model.row_graph_[np.ix_(inverse, inverse)], slow, atol=1e-10)


@both
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_graph_is_stochastic_and_of_low_rank(method, missing):
    truth, base = planted(90, 8, 3, noise=0.15, missing=missing, seed=0)
    model = method(3, random_state=0).fit(base)
    counts = model.partitions_.distinct.counts
    assert model.row_graph_.min() >= 0.0
    assert_allclose(model.row_graph_ @ counts, 1.0, atol=1e-9)
    root = np.sqrt(counts)
    assert np.linalg.matrix_rank(model.row_graph_ * root * root[:, None], tol=1e-3) < len(counts) / 2
    assert adjusted_rand_score(truth, model.labels_) > 0.8


@both
def test_a_view_that_is_noise_does_little_harm(method):
    truth, base = planted(90, 6, 3, noise=0.1, missing=0.0, seed=0)
    rng = np.random.default_rng(0)
    table = np.column_stack([base, rng.integers(0, 3, (90, 3))])
    views = ["good"] * 6 + ["noise"] * 3
    assert adjusted_rand_score(truth, method(3, views=views, random_state=0).fit_predict(table)) > 0.9


@both
def test_names_and_order_of_views_do_not_matter(method):
    _, base = planted(60, 6, 3, noise=0.1, missing=0.1, seed=1)
    order = np.random.default_rng(0).permutation(6)
    one = method(3, views=VIEWS, random_state=0).fit(base)
    other = method(3, views=[{"a": 7, "b": 3}[VIEWS[j]] for j in order], random_state=0).fit(base[:, order])
    assert adjusted_rand_score(one.labels_, other.labels_) == 1.0


@both
def test_views_of_another_number_of_columns_are_refused(method):
    _, base = planted(30, 4, 3, noise=0.1, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"view of 3 base clusterings, the table has 4\. Hint"):
        method(3, views=["a", "a", "b"]).fit(base)


@both
def test_views_count_columns_without_labels(method):
    _, base = planted(30, 4, 3, noise=0.0, missing=0.0, seed=0)
    wide = np.column_stack([base[:, :2], np.full(30, -1), base[:, 2:]])
    with pytest.warns(UserWarning, match="is ignored"):
        model = method(3, views=["a", "a", "lost", "b", "b"], random_state=0).fit(wide)
    assert model.n_views_ == 2
    assert adjusted_rand_score(model.labels_, method(3, random_state=0).fit_predict(base)) == 1.0


@both
@pytest.mark.parametrize("seed", range(2))
def test_neither_order_nor_names_matter_with_noise(method, seed):
    _, base = planted(80, 8, 4, noise=0.15, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(80), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = method(4, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


@both
def test_too_many_distinct_rows_are_refused(method, monkeypatch):
    monkeypatch.setattr(method, "max_rows", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"VEC compares all pairs of them and takes at most 10\. Hint"):
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
