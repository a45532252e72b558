"""Leading eigenpairs by whole tables and by iteration, against LAPACK's eigh of everything."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.exceptions import ConvergenceWarning

from consilience.core import eigen
from consilience.core.eigen import Eigenpairs, lanczos, leading_eigenpairs, smallest_eigenpairs
from tests.core.tables import orthogonal

FORMS = {"array": np.asarray, "sparse": sp.csr_array, "operator": aslinearoperator}


@pytest.fixture(autouse=True)
def iterate(monkeypatch):
    """Small operators are iterated on as large ones are."""
    monkeypatch.setattr(eigen, "WHOLE", 0)


def turned(values, seed=0):
    basis = orthogonal(len(values), np.random.default_rng(seed))
    return (basis * values) @ basis.T


def disjoint(n, size):
    """Cliques side by side: one eigenvalue as often as there are cliques, all others zero."""
    return np.kron(np.eye(n // size), np.ones((size, size)))


def spread(n, seed=1):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, n)


SPECTRA = {
    "spread": turned(spread(150)),
    "negative": turned(-1.0 - np.abs(spread(150))),
    "rank 3": turned(np.r_[3.0, 2.0, 1.0, np.zeros(147)]),
    "rank 3, far apart": turned(np.r_[1.0, 1e-3, 1e-6, np.zeros(147)]),
    "zero": np.zeros((150, 150)),
    "identity": np.eye(150),
    "copies": turned(np.r_[[0.9] * 7, [0.8] * 5, np.linspace(0.7, -1.0, 138)]),
    "copies on a diagonal": np.diag(np.r_[[0.9] * 7, [0.8] * 5, np.linspace(0.7, -1.0, 138)]),
    "nearly copies": turned(np.r_[1.0 - 1e-7 * np.arange(9), np.linspace(0.7, -1.0, 141)]),
    "cliques": disjoint(150, 5),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", SPECTRA)
@pytest.mark.parametrize("k", [1, 3, 8, 30, 140, 150])
def test_equal_to_all_eigenpairs(form, kind, k):
    matrix = SPECTRA[kind]
    values, vectors = leading_eigenpairs(FORMS[form](matrix), k)
    assert values.shape == (k,)
    assert vectors.shape == (150, k)
    assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:k], atol=1e-9)
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-8)
    assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["rank 3", "copies", "cliques", "zero"])
def test_same_answer_every_time(form, kind):
    matrix = FORMS[form](SPECTRA[kind])
    first = leading_eigenpairs(matrix, 8)
    for _ in range(20):
        again = leading_eigenpairs(matrix, 8)
        assert_array_equal(again.values, first.values)
        assert_array_equal(again.vectors, first.vectors)


def test_more_than_there_are_gives_all():
    for form in FORMS.values():
        assert leading_eigenpairs(form(np.diag([1.0, 3.0, 2.0])), 7).values.tolist() == [3.0, 2.0, 1.0]


@pytest.mark.parametrize("n_known", [0, 1, 4, 7, 9])
def test_known_pairs_are_kept_and_the_others_found(n_known):
    matrix = SPECTRA["copies"]
    values, vectors = (part[..., ::-1] for part in np.linalg.eigh(matrix))
    known = Eigenpairs(values[:n_known], vectors[:, :n_known])
    found = leading_eigenpairs(sp.csr_array(matrix), 9, known=known)
    assert_allclose(found.values, values[:9], atol=1e-9)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(9), atol=1e-9)
    kept = vectors[:, : min(n_known, 7)]  # in any order: of equal eigenvalues none is the first
    assert (found.vectors[:, :, None] == kept[:, None, :]).all(axis=0).any(axis=0).all()


def test_known_pairs_that_are_not_the_largest_give_way():
    matrix = np.diag(np.linspace(0.0, 1.0, 100))
    known = Eigenpairs(np.array([0.0]), np.eye(100)[:, :1])
    found = leading_eigenpairs(sp.csr_array(matrix), 2, known=known)
    assert_allclose(found.values, [1.0, 98 / 99], atol=1e-9)


def test_operator_of_many_rows():
    # Second differences: the eigenvalues are known, and the gaps at the end of the spectrum are small.
    n = 2000

    def product(x):
        x = x.reshape(n, -1)
        out = 2.0 * x
        out[1:] -= x[:-1]
        out[:-1] -= x[1:]
        return out

    operator = LinearOperator((n, n), matvec=product, matmat=product, dtype=float)
    values, vectors = leading_eigenpairs(operator, 4, tol=1e-12)
    assert_allclose(values, 4.0 * np.sin(np.arange(n, n - 4, -1) * np.pi / (2 * (n + 1))) ** 2, rtol=1e-12)
    assert_allclose(np.linalg.norm(product(vectors) - vectors * values, axis=0), 0.0, atol=1e-11)


def test_small_operators_are_solved_whole(monkeypatch):
    monkeypatch.setattr(eigen, "WHOLE", 150)
    monkeypatch.setattr(eigen, "lanczos", None)
    assert_allclose(leading_eigenpairs(sp.csr_array(SPECTRA["identity"]), 2).values, 1.0)


def test_a_block_that_is_exhausted_gives_what_it_led_to():
    start = np.random.default_rng(0).standard_normal((150, 2))
    found = lanczos(SPECTRA["cliques"].__matmul__, 8, start, tol=1e-10)
    assert_allclose(found.values, [5.0, 5.0, 0.0, 0.0], atol=1e-12)


def test_what_does_not_settle_is_the_best_found_and_a_warning(monkeypatch):
    monkeypatch.setattr(eigen, "_MAX_PRODUCTS", 60)
    matrix = sp.csr_array(np.diag(1.0 - 1e-5 * np.arange(400)))
    with pytest.warns(ConvergenceWarning, match=r"leading 2 eigenvectors of 400 rows did not settle .* Hint"):
        found = leading_eigenpairs(matrix, 2)
    assert_allclose(found.values, 1.0, atol=1e-3)
    assert_allclose(found.vectors.T @ found.vectors, np.eye(2), atol=1e-9)


@pytest.mark.parametrize("k", [1, 4, 150, 200])
@pytest.mark.parametrize("kind", SPECTRA)
def test_smallest(kind, k):
    matrix = SPECTRA[kind]
    values, vectors = smallest_eigenpairs(matrix, k)
    assert_allclose(values, np.linalg.eigvalsh(matrix)[:k], atol=1e-12)
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-10)


@pytest.mark.parametrize("k", [1, 3, 12])
def test_leading_eigenpairs(k):
    rng = np.random.default_rng(0)
    values = np.sort(rng.standard_normal(12))[::-1]
    basis = orthogonal(12, rng)
    found_values, found = leading_eigenpairs((basis * values) @ basis.T, k)
    assert_allclose(found_values, values[:k], atol=1e-12)
    assert_allclose(np.abs(np.sum(found * basis[:, :k], axis=0)), 1.0, atol=1e-10)


@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("k", [1, 7, 30, 60])
def test_many_equal_eigenvalues(n, k):
    # The co-association of disjoint pairs: half of the eigenvalues are 2, half are 0.
    matrix = np.kron(np.eye(n // 2), np.ones((2, 2)))
    values, vectors = leading_eigenpairs(matrix, k)
    assert values.shape == (k,)
    assert vectors.shape == (n, k)
    assert_allclose(values, np.where(np.arange(k) < n // 2, 2.0, 0.0), atol=1e-12)
    assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-10)
    assert_allclose(matrix @ vectors, vectors * values, atol=1e-10)


def test_a_subset_solver_that_returns_too_few_is_not_believed(monkeypatch):
    whole = eigen.linalg.eigh

    def short(matrix, subset_by_index=None, **options):
        if subset_by_index is None:
            return whole(matrix, **options)
        values, vectors = whole(matrix, subset_by_index=subset_by_index, **options)
        return values[:-1], vectors[:, :-1]

    monkeypatch.setattr(eigen.linalg, "eigh", short)
    values, vectors = leading_eigenpairs(np.diag([1.0, 4.0, 3.0, 2.0]), 3)
    assert_allclose(values, [4.0, 3.0, 2.0])
    assert_allclose(np.abs(vectors), np.eye(4)[:, [1, 2, 3]], atol=1e-12)


def test_a_subset_solver_that_fails_is_replaced(monkeypatch):
    whole = eigen.linalg.eigh

    def failing(matrix, subset_by_index=None, **options):
        if subset_by_index is None:
            return whole(matrix, **options)
        raise np.linalg.LinAlgError

    monkeypatch.setattr(eigen.linalg, "eigh", failing)
    assert_allclose(leading_eigenpairs(np.diag([1.0, 4.0, 3.0, 2.0]), 3).values, [4.0, 3.0, 2.0])


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-6, 1e-10])
@pytest.mark.parametrize("rank", [14, 29, 60])
def test_few_directions_in_a_large_space(rank, tol):
    """Eigenvalues that hardly differ and rounding alone beyond them: the basis must not come to lean."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        factor = np.linalg.qr(rng.standard_normal((400, rank)))[0]
        expected = 0.2 * (1.0 - 0.9 * rng.random(rank))
        matrix = (factor * expected) @ factor.T
        found = leading_eigenpairs(aslinearoperator(matrix), 1, tol=tol)
        assert_allclose(found.values, expected.max(), rtol=10 * tol)
