"""Numbers of clusters: by size, and of equal ones by the first instance in canonical order."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator

from consilience import consensus, fuse, fuse_views
from consilience.consensus.base import LabelMethod
from consilience.core.grouping import largest_first
from consilience.multiview import PSE
from consilience.multiview.base import ViewMethod
from consilience.results.labels import numbered_by_size

# Four clusters of one size that can be told apart by what a third base clustering says of some.
EVEN = np.repeat(np.arange(4), 10)
TABLE = np.column_stack([EVEN, EVEN, np.where(np.arange(40) % 10 < EVEN, -1, EVEN)])


def test_largest_first_of_equal_ones_by_the_first_instance():
    labels = np.array([2, 0, 0, 1, 1, 3, 3, 3])
    assert largest_first(labels, 5).tolist() == [3, 0, 1, 2, 4]
    assert largest_first(labels, 5, place=np.arange(8)[::-1]).tolist() == [3, 1, 0, 2, 4]
    assert largest_first(labels, 5, counts=np.array([2, 1, 1, 1, 1, 1, 1, 1])).tolist() == [3, 2, 0, 1, 4]


def test_own_numbers_of_a_solver_play_no_part():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(5), 7))
    renamed = np.random.default_rng(1).permutation(5)[labels]
    assert_array_equal(numbered_by_size(labels), numbered_by_size(renamed))


class Renumbered(LabelMethod):
    """The clusters of the first base clustering under any numbers, as another rounding would give them."""

    about = None

    def _solve(self, problem, rng):
        class Found:
            labels = rng.permutation(problem.n_clusters)[problem.rows.codes.max(axis=1)]

        return Found


@pytest.mark.parametrize("seed", range(5))
def test_a_label_method_numbers_alike_whatever_the_solver_calls_them(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(40)
    first = Renumbered(4, random_state=0).fit(TABLE).labels_
    assert_array_equal(Renumbered(4, random_state=seed).fit(TABLE[order]).labels_, first[order])


@pytest.mark.parametrize("method", ["EAC", "LWEA", "DAL", "PCE", "KCC", "CSPA"])
def test_fuse_numbers_alike_in_any_order(method):
    order = np.random.default_rng(0).permutation(40)
    first = fuse(TABLE, 4, method=method, random_state=0).labels
    again = fuse(TABLE[order][:, ::-1], 4, method=method, random_state=0).labels
    assert_array_equal(np.unique(first, return_counts=True)[1], [10] * 4)
    assert_array_equal(again, first[order])


class Foreign(BaseEstimator):
    """The largest label of a row under any number, by an estimator of somebody else."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X):
        self.labels_ = np.random.RandomState(self.random_state).permutation(4)[X.max(axis=1)]
        return self


@pytest.mark.parametrize("seed", range(4))
def test_fuse_numbers_the_clusters_of_other_estimators_by_the_rule(seed):
    order = np.random.default_rng(seed).permutation(40)
    first = fuse(TABLE, 4, method=Foreign(), random_state=0).labels
    assert_array_equal(fuse(TABLE[order], 4, method=Foreign(), random_state=seed).labels, first[order])


@pytest.mark.parametrize("seed", range(4))
def test_a_table_repeated_as_a_whole_keeps_its_numbers(seed):
    for times in (2, 3):
        first = Renumbered(4, random_state=0).fit(TABLE).labels_
        again = Renumbered(4, random_state=seed).fit(np.tile(TABLE, (times, 1))).labels_
        assert_array_equal(again, np.tile(first, times))


def _two_views():
    rng = np.random.default_rng(0)
    return [rng.normal(8 * rng.normal(size=(4, 5))[EVEN]) for _ in range(2)]


class RenumberedViews(ViewMethod):
    """Four even clusters under any numbers."""

    about = None

    def _solve(self, views, rng):
        class Found:
            labels = rng.permutation(4)[(views.arrays[0] @ np.arange(1, 6)).argsort().argsort() // 10]

        return Found


@pytest.mark.parametrize("seed", range(4))
def test_a_view_method_numbers_alike_whatever_the_solver_calls_them(seed):
    views, order = _two_views(), np.random.default_rng(seed).permutation(40)
    first = RenumberedViews(4, random_state=0).fit(views).labels_
    again = RenumberedViews(4, random_state=seed).fit([view[order] for view in views]).labels_
    assert_array_equal(again, first[order])


def test_fuse_views_numbers_alike_in_any_order():
    views, order = _two_views(), np.random.default_rng(0).permutation(40)
    for method in ("auto", "labels", "DAIMC"):
        first = fuse_views(views, 4, method=method, random_state=0).labels
        again = fuse_views([view[order] for view in views], 4, method=method, random_state=0).labels
        assert_array_equal(again, first[order])
    assert isinstance(fuse_views(views, 4, random_state=0).model, PSE)


def test_all_label_methods_are_numbered_by_the_rule():
    rank = None
    for name in consensus.__all__:
        model = getattr(consensus, name)(n_clusters=4)
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        labels = model.fit(TABLE).labels_
        if len(np.unique(np.column_stack([labels, EVEN]), axis=0)) == 4 == len(np.unique(labels)):
            rank = labels if rank is None else rank
            assert_array_equal(labels, rank, err_msg=name)
    assert rank is not None
