"""Each compiled loop against its plain NumPy twin."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from consilience.core import hot
from tests.core.tables import KS, OFFSETS, one_hot, random_codes

DTYPES = [np.int8, np.int16, np.int32]
MISSING = [0.0, 0.4, 1.0]


@pytest.fixture(params=DTYPES, ids=lambda dtype: dtype.__name__)
def dtype(request):
    return request.param


@pytest.fixture(params=MISSING)
def codes(request, dtype):
    return random_codes(57, missing=request.param, dtype=dtype)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_gather_sum(codes, width):
    table = np.random.default_rng(1).standard_normal((14, width))
    out = np.full((len(codes), width), np.nan)
    hot.gather_sum(codes, OFFSETS, table, out)
    assert_allclose(out, one_hot(codes, OFFSETS) @ table, atol=1e-14)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_scatter_sum_adds_to_what_is_there(codes, width):
    rng = np.random.default_rng(1)
    weights, values = rng.random(len(codes)), rng.standard_normal((len(codes), width))
    start = rng.standard_normal((14, width))
    out = start.copy()
    hot.scatter_sum(codes, OFFSETS, weights, values, out)
    assert_allclose(out, start + one_hot(codes, OFFSETS).T @ (weights[:, None] * values), atol=1e-13)


def test_contingency_adds_the_upper_triangle(codes):
    rng = np.random.default_rng(1)
    weights, start = rng.random(len(codes)), rng.standard_normal((14, 14))
    out = start.copy()
    hot.contingency(codes, OFFSETS, weights, out)
    b = one_hot(codes, OFFSETS)
    assert_allclose(out, start + np.triu(b.T @ (weights[:, None] * b)), atol=1e-13)


def test_codes_above_127_are_not_taken_for_negative():
    offsets = np.array([0, 300, 600])
    codes = np.array([[200, 299], [299, -1], [0, 128]], dtype=np.int16)
    table = np.random.default_rng(0).standard_normal((600, 2))
    out = np.empty((3, 2))
    hot.gather_sum(codes, offsets, table, out)
    assert_allclose(out, one_hot(codes, offsets) @ table)


def plain_impute(codes, missing, offsets, table, bias, weights, target, diversity):
    codes = codes.astype(int)
    changed = 0
    for p, i in np.argwhere(missing):
        rest = -target[p]
        if diversity:
            for j in range(codes.shape[1]):
                if j != i and codes[p, j] >= 0:
                    rest = rest + weights[j] * table[offsets[j] + codes[p, j]]
        own = slice(offsets[i], offsets[i + 1])
        best = int(np.argmin(bias[own] + table[own] @ rest))
        changed += best != codes[p, i]
        codes[p, i] = best
    return codes, changed


def impute_problem(dtype, seed=0, width=3):
    rng = np.random.default_rng(seed)
    codes = random_codes(60, missing=0.4, dtype=dtype, seed=seed)
    missing = codes < 0
    table = rng.standard_normal((14, width))
    weights = rng.dirichlet(np.ones(4))
    bias = 0.5 * np.repeat(weights, KS) * (table**2).sum(axis=1)
    return codes, missing, OFFSETS, table, bias, weights, rng.standard_normal((60, width))


@pytest.mark.parametrize("diversity", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_impute(dtype, diversity, seed):
    codes, *rest = impute_problem(dtype, seed)
    before, missing = codes.copy(), rest[0]
    # Again from the filled table: entries then leave the sum before they are chosen anew.
    for _ in range(3):
        expected, expected_changes = plain_impute(codes, *rest, diversity)
        changes = hot.impute(codes, *rest, diversity)
        assert_array_equal(codes, expected)
        assert changes == expected_changes
    assert_array_equal(codes[~missing], before[~missing])
    assert (codes >= 0).all()


def test_impute_with_diversity_never_moves_a_row_away_from_its_target():
    codes, missing, offsets, table, bias, weights, target = impute_problem(np.int8)
    weighted = np.repeat(weights, KS)[:, None] * table

    def distances():
        return ((one_hot(codes, offsets) @ weighted - target) ** 2).sum(axis=1)

    hot.impute(codes, missing, offsets, table, bias, weights, target, True)
    previous = distances()
    for _ in range(20):
        changed = hot.impute(codes, missing, offsets, table, bias, weights, target, True)
        assert (distances() <= previous + 1e-12).all()
        previous = distances()
        if not changed:
            break
    assert not changed
    # At the end no single entry can be changed for the better.
    best = previous.copy()
    for p, i in np.argwhere(missing):
        kept = codes[p, i]
        for code in range(KS[i]):
            codes[p, i] = code
            assert distances()[p] >= best[p] - 1e-12
        codes[p, i] = kept


@pytest.mark.parametrize(("n_clusters", "width"), [(1, 1), (4, 4), (5, 3)])
def test_assign(n_clusters, width):
    rng = np.random.default_rng(0)
    h, rotation_t = rng.standard_normal((80, width)), rng.standard_normal((n_clusters, width))
    weights = rng.random(80)
    labels = rng.integers(-1, n_clusters, 80).astype(np.int32)
    before = labels.copy()
    moved, fit = hot.assign(h, rotation_t, weights, labels)
    scores = h @ rotation_t.T
    assert_array_equal(labels, scores.argmax(axis=1))
    assert moved == pytest.approx(weights[labels != before].sum())
    assert fit == pytest.approx(weights @ scores.max(axis=1))
    assert hot.assign(h, rotation_t, weights, labels)[0] == 0.0


def test_assign_where_all_scores_are_negative():
    labels = np.zeros(3, dtype=np.int32)
    moved, fit = hot.assign(-np.ones((3, 1)), np.array([[5.0], [2.0]]), np.ones(3), labels)
    assert labels.tolist() == [1, 1, 1]
    assert (moved, fit) == (3.0, -6.0)


def plain_complete(codes, labels, offsets, log_shares):
    out = codes.astype(int)
    for p, i in np.argwhere(codes < 0):
        own = slice(offsets[i], offsets[i + 1])
        voters = [offsets[j] + int(code) for j, code in enumerate(codes[p]) if code >= 0]
        voters.append(offsets[-2] + labels[p])
        out[p, i] = log_shares[voters, own].sum(axis=0).argmax()
    return out


def test_complete(codes, dtype):
    rng = np.random.default_rng(2)
    offsets = np.append(OFFSETS, 14 + 3)
    labels = rng.integers(0, 3, len(codes)).astype(np.int32)
    log_shares = -rng.exponential(size=(17, 14))
    out = np.full_like(codes, -9)
    hot.complete(codes, labels, offsets, log_shares, out)
    assert_array_equal(out, plain_complete(codes, labels, offsets, log_shares))
    assert out.dtype == dtype


def test_loops_read_arrays_that_may_not_be_written():
    codes = random_codes(20)
    table = np.random.default_rng(0).standard_normal((14, 2))
    for array in (codes, table):
        array.setflags(write=False)
    out = np.empty((20, 2))
    hot.gather_sum(codes, OFFSETS, table, out)
    assert_allclose(out, one_hot(codes, OFFSETS) @ table, atol=1e-14)
