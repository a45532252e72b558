"""Neighbours against all distances, taken one by one and sorted."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from consilience.core import blocks, compiled, neighbours
from consilience.core.neighbours import NeighbourIndex, nearest_neighbours

NO_FAISS = "faiss, of the extra 'neighbours', is not installed"


@pytest.fixture(params=[np.asarray, sp.csr_array], ids=["dense", "sparse"])
def stored(request):
    return request.param


@pytest.fixture
def in_cells(monkeypatch):
    """Cells for few rows."""
    pytest.importorskip("faiss", reason=NO_FAISS)
    monkeypatch.setattr(neighbours, "EXACT_ROWS", 100)
    monkeypatch.setattr(neighbours, "_CELL_ROWS", 40)


def all_distances(X, new=None):
    squared = np.square((X if new is None else new)[:, None] - X).sum(axis=2)
    if new is None:
        np.fill_diagonal(squared, np.inf)
    return squared


def planted(n, n_columns=8, seed=0):
    rng = np.random.default_rng(seed)
    return 4.0 * rng.normal(size=(10, n_columns))[rng.integers(10, size=n)] + rng.normal(size=(n, n_columns))


@pytest.mark.parametrize("few", [0, 10**6], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(("n", "n_columns", "m"), [(60, 3, 7), (40, 70, 39), (500, 5, 1), (30, 1, 100)])
def test_against_all_distances(stored, n, n_columns, m, few, monkeypatch):
    monkeypatch.setattr(compiled, "FEW", few)
    X = np.random.default_rng(n).normal(size=(n, n_columns))
    found = nearest_neighbours(stored(X), m)
    expected = all_distances(X)
    order = np.argsort(expected, axis=1)[:, : min(m, n - 1)]
    assert_array_equal(found.indices, order)
    assert_allclose(found.squared_distances, np.take_along_axis(expected, order, axis=1), atol=1e-12)


def test_new_rows_against_all_distances(stored):
    rng = np.random.default_rng(1)
    X, new = rng.normal(size=(50, 4)), rng.normal(size=(9, 4))
    found = NeighbourIndex(stored(X)).nearest(6, stored(new))
    expected = all_distances(X, new)
    assert_array_equal(found.indices, np.argsort(expected, axis=1)[:, :6])
    assert_allclose(found.squared_distances, np.sort(expected, axis=1)[:, :6], atol=1e-12)


def test_new_rows_stored_otherwise():
    X = np.random.default_rng(2).normal(size=(50, 4))
    for kept, asked in [(np.asarray, sp.csr_array), (sp.csr_array, np.asarray)]:
        found = NeighbourIndex(kept(X)).nearest(1, asked(X[:7]))
        assert_array_equal(found.indices[:, 0], np.arange(7))
        assert_array_equal(found.squared_distances, 0.0)


def test_all_and_none(stored):
    X = np.arange(3.0)[:, None]
    index = NeighbourIndex(stored(X))
    assert index.nearest(5).indices.shape == (3, 2)  # a row is not its own neighbour
    assert index.nearest(5, stored(X)).indices.shape == (3, 3)
    assert index.nearest(2, stored(X[:0])).indices.shape == (0, 2)
    assert nearest_neighbours(stored(X[:1]), 5).squared_distances.shape == (1, 0)


def test_copies_are_at_distance_zero_and_not_oneself(stored):
    X = np.repeat(np.random.default_rng(3).random((3, 20)) / 3, 15, axis=0)
    found = nearest_neighbours(stored(X), 14)
    assert_array_equal(found.squared_distances, 0.0)
    kind = np.repeat(np.arange(3), 15)
    assert_array_equal(kind[found.indices], kind[:, None] + np.zeros(14, int))
    assert not (found.indices == np.arange(45)[:, None]).any()


def test_far_from_the_origin_distances_stay_exact():
    X = np.random.default_rng(4).normal(size=(80, 3))
    moved = X + 1e7
    found = nearest_neighbours(moved, 5)
    expected = all_distances(moved)
    assert_array_equal(found.indices, np.argsort(expected, axis=1)[:, :5])
    assert_allclose(found.squared_distances, np.sort(expected, axis=1)[:, :5], rtol=1e-12)


def test_ties_do_not_depend_on_the_order_of_rows(stored):
    """On a grid nearly every distance occurs several times."""
    grid = np.stack(np.meshgrid(*[np.arange(7.0)] * 3), axis=-1).reshape(-1, 3)
    order = np.random.default_rng(5).permutation(len(grid))
    found, other = nearest_neighbours(stored(grid), 4), nearest_neighbours(stored(grid[order]), 4)
    assert_array_equal(order[other.indices], found.indices[order])
    assert_array_equal(other.squared_distances, found.squared_distances[order])


@pytest.mark.parametrize("n_kinds", [1, 20, 400])
def test_ties_make_no_hubs(stored, n_kinds):
    """Rows without a common column are at the same distance, but for rounding, and copies at none."""
    rng = np.random.default_rng(8)
    X = np.kron(np.eye(n_kinds), [1.0, 1.0, 1.0])[np.arange(400) % n_kinds]
    X *= rng.random(3 * n_kinds)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    times = np.bincount(nearest_neighbours(stored(X), 5).indices.ravel(), minlength=400)
    assert times.max() <= 20
    assert np.mean(times == 0) < 0.05


def test_a_row_has_the_same_neighbours_alone_and_in_company(stored):
    rng = np.random.default_rng(6)
    X, new = rng.integers(4, size=(200, 6)) / 3, rng.integers(4, size=(20, 6)) / 3
    index = NeighbourIndex(stored(X))
    together = index.nearest(5, stored(new))
    for i in range(20):
        alone = index.nearest(5, stored(new[[i]]))
        assert_array_equal(alone.indices[0], together.indices[i])
        assert_array_equal(alone.squared_distances[0], together.squared_distances[i])


def test_blocks_change_nothing(stored, monkeypatch):
    X = np.random.default_rng(7).integers(3, size=(120, 5)) / 7
    whole = nearest_neighbours(stored(X), 6)
    monkeypatch.setattr(neighbours, "_BLOCK_ENTRIES", 500)
    monkeypatch.setattr(blocks, "n_threads", lambda: 2)
    for found, expected in zip(nearest_neighbours(stored(X), 6), whole, strict=True):
        assert_array_equal(found, expected)


def test_a_sparse_table_is_left_as_it_is():
    X = sp.csr_array((np.ones(4), [1, 1, 0, 1], [0, 2, 3, 4]), shape=(3, 2))  # an entry in two parts
    found = nearest_neighbours(X, 1)
    assert_array_equal(found.indices.ravel(), [2, 2, 0])
    assert X.nnz == 4


def test_many_rows_of_few_columns(monkeypatch):
    X, new = planted(400, 3), planted(30, 3, seed=1)
    index = NeighbourIndex(X)
    monkeypatch.setattr(neighbours, "EXACT_ROWS", 100)
    monkeypatch.setattr(neighbours, "find_spec", lambda name: None)  # nothing to install for these
    in_tree = pickle.loads(pickle.dumps(NeighbourIndex(X)))
    for n_neighbours, asked in [(6, None), (500, None), (6, new), (500, new)]:
        for found, expected in zip(
            in_tree.nearest(n_neighbours, asked), index.nearest(n_neighbours, asked), strict=True
        ):
            assert_allclose(found, expected, rtol=1e-11)


class TestCells:
    def test_nearly_all_neighbours_are_found(self, in_cells):
        X = planted(6000, 12)
        found = nearest_neighbours(X, 10)
        exact = np.argsort(all_distances(X, X[:200]), axis=1)[:, 1:11]  # the first is the row itself
        shared = [len(np.intersect1d(a, b)) for a, b in zip(found.indices, exact, strict=False)]
        assert np.mean(shared) > 9.0
        farther = found.squared_distances[:200] / np.square(X[:200, None] - X[exact]).sum(axis=2)
        assert farther.mean() < 1.02

    def test_distances_are_those_of_the_neighbours(self, in_cells):
        X = planted(1000) + 1e6
        found = nearest_neighbours(X, 5)
        expected = np.square(X[found.indices] - X[:, None]).sum(axis=2)
        assert_allclose(found.squared_distances, expected, rtol=1e-12)
        assert (np.diff(found.squared_distances, axis=1) >= 0).all()
        assert not (found.indices == np.arange(1000)[:, None]).any()

    def test_new_rows_and_a_copy_by_pickle(self, in_cells):
        X, new = planted(1000), planted(40, seed=1)
        index = NeighbourIndex(X)
        found = index.nearest(5, new)
        exact = np.sort(all_distances(X, new), axis=1)[:, :5]
        assert np.isclose(found.squared_distances, exact).mean() > 0.9
        for other in (pickle.loads(pickle.dumps(index)), copy.deepcopy(index), NeighbourIndex(X)):
            assert_array_equal(other.nearest(5, new).indices, found.indices)
        assert_array_equal(index.nearest(1, X[:9]).indices[:, 0], np.arange(9))

    def test_one_answer_whatever_the_threads(self, in_cells, monkeypatch):
        X, found = planted(12_000), []
        for n in (1, 2):
            monkeypatch.setattr(blocks, "n_threads", lambda n=n: n)
            with threadpool_limits(limits=n):
                found.append(nearest_neighbours(X, 10))
        assert_array_equal(found[0].indices, found[1].indices)
        assert_array_equal(found[0].squared_distances, found[1].squared_distances)

    def test_more_neighbours_than_the_cells_have(self, in_cells):
        X = planted(400)
        found = nearest_neighbours(X, 390)
        expected = np.sort(all_distances(X), axis=1)[:, :390]
        assert_allclose(found.squared_distances, expected)

    def test_copies(self, in_cells):
        X = np.repeat(planted(20), 50, axis=0)
        found = nearest_neighbours(X, 10)
        assert_array_equal(found.squared_distances, 0.0)
        assert not (found.indices == np.arange(1000)[:, None]).any()

    def test_rows_without_faiss_are_compared_with_all(self, monkeypatch):
        monkeypatch.setattr(neighbours, "EXACT_ROWS", 100)
        monkeypatch.setattr(neighbours, "find_spec", lambda name: None)
        X = planted(300)
        with pytest.warns(UserWarning, match=r"faiss is not installed: .* 'consilience\[neighbours\]'"):
            found = nearest_neighbours(X, 5)
        assert_allclose(found.squared_distances, np.sort(all_distances(X), axis=1)[:, :5])
