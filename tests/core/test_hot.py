"""Each loop against its plain NumPy twin, as machine code and as Python runs it over a few entries."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components

from consilience.core import compiled, hot
from consilience.core.pairs import byte_sums, per_base
from tests.core.tables import KS, OFFSETS, one_hot, random_codes

DTYPES = [np.int8, np.int16, np.int32]
MISSING = [0.0, 0.4, 1.0]


@pytest.fixture(params=[0, 10**6], ids=["compiled", "interpreted"], autouse=True)
def _few(request, monkeypatch):
    monkeypatch.setattr(compiled, "FEW", request.param)


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


def pair_problem(missing, seed=0, n_bases=11):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (40, n_bases)).astype(np.int8)
    codes[rng.random(codes.shape) < missing] = -1
    codes[5] = codes[4]  # a certain pair
    codes[5, 0] = -1
    return codes, rng


def plain_agreement(codes):
    same = (codes[:, None] == codes[None]) & (codes[:, None] >= 0)
    both = (codes[:, None] >= 0) & (codes[None] >= 0)
    left, right = np.nonzero(np.triu(same.any(axis=2), 1))
    return left, right, same[left, right], both[left, right]


@pytest.mark.parametrize("missing", MISSING)
def test_agreeing_pairs_are_counted_and_filled(missing):
    codes, _ = pair_problem(missing)
    left, right, same, _ = plain_agreement(codes)
    sizes = np.zeros(len(codes), dtype=np.int64)
    hot.count_agreeing(codes, 0, 20, sizes)
    hot.count_agreeing(codes, 20, len(codes), sizes)
    assert_array_equal(sizes, np.bincount(left, minlength=len(codes)))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    found = np.zeros(len(left), dtype=np.int32), np.zeros(len(left), dtype=np.int32)
    agree = np.zeros((len(left), 2), dtype=np.uint8)
    hot.fill_agreeing(codes, 0, len(codes), starts, *found, agree)
    assert_array_equal(found[0], left)
    assert_array_equal(found[1], right)
    assert_array_equal(agree, np.packbits(same, axis=1, bitorder="little").reshape(-1, 2))


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("theta", [0.0, 0.2])
def test_learn_pairs(missing, theta):
    codes, rng = pair_problem(missing)
    left, right, same, both = plain_agreement(codes)
    alpha = rng.random(11) + 0.1
    pace, counts = rng.random(len(left)) + 0.05, rng.integers(1, 5, 40).astype(float)
    embedding, spread = rng.standard_normal((40, 3)), rng.random(40)
    certain = (same == both).all(axis=1)
    rho, threshold = 1.5, theta * 11

    distance = ((embedding[left] - embedding[right]) ** 2).sum(axis=1) + spread[left] + spread[right]
    total = both @ (1 / alpha)
    level = (same @ (1 / alpha) - rho * distance / (2 * pace**2)) / total
    cut = (level < threshold / (pace * np.sqrt(total))) | (level <= 0)
    s = np.where(certain, 1.0, np.where(cut, 0.0, np.minimum(level, 1.0)))
    pairs = 2 * counts[left] * counts[right]
    gaps = (pairs * pace**2)[:, None] * both * (s[:, None] - same) ** 2

    table = byte_sums(1 / alpha)
    by_agree, by_seen, found = np.zeros_like(table), np.zeros_like(table), np.full(len(left), np.nan)
    nonzero = hot.learn_pairs(
        left.astype(np.int32), right.astype(np.int32), np.packbits(same, axis=1, bitorder="little"),
        np.packbits(codes >= 0, axis=1, bitorder="little"), certain, table, embedding, spread, counts, pace,
        rho, threshold, found, by_agree, by_seen,
    )  # fmt: skip
    assert 0 < np.count_nonzero(s) < len(s)
    assert_allclose(found, s, atol=1e-13)
    assert_allclose(per_base(by_agree + by_seen, 11), gaps.sum(axis=0), rtol=1e-10)
    assert nonzero == pairs[s > 0].sum()


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_sum_bits(missing):
    codes, rng = pair_problem(missing)
    left, right, same, both = plain_agreement(codes)
    values = rng.random(11)
    agreeing, together = np.empty(len(left)), np.empty(len(left))
    hot.sum_bits(
        left.astype(np.int32), right.astype(np.int32), np.packbits(same, axis=1, bitorder="little"),
        np.packbits(codes >= 0, axis=1, bitorder="little"), byte_sums(values), agreeing, together,
    )  # fmt: skip
    assert_allclose(agreeing, same @ values)
    assert_allclose(together, both @ values)


@pytest.mark.parametrize("seed", range(5))
def test_join_finds_connected_components(seed):
    rng = np.random.default_rng(seed)
    left, right = (part.astype(np.int32) for part in np.triu_indices(50, 1))
    s = np.where(rng.random(len(left)) < 0.03, rng.random(len(left)), 0.0)
    parent = np.arange(50, dtype=np.int32)
    hot.join(left, right, s, parent)
    linked = s > 0  # SciPy takes a stored zero for a link
    kept = sp.coo_array((s[linked], (left[linked], right[linked])), shape=(50, 50))
    _, labels = connected_components(kept, directed=False)
    lowest = np.array([np.flatnonzero(labels == label)[0] for label in labels])
    assert_array_equal(parent, lowest)


def groups(present, sizes):
    """Rows of the entries of each group of one column: the first so many that are present, the next ..."""
    return np.split(np.flatnonzero(present), np.cumsum(sizes)[:-1])


@pytest.fixture(params=[0.0, 0.4])
def dealt(request):
    """Which entries are there, and how many of them every group gets; a group may get none."""
    rng = np.random.default_rng(4)
    present = rng.random((57, 4)) >= request.param
    return present, np.array([np.bincount(rng.choice([0, 2, 3], n), minlength=4) for n in present.sum(0)]).T


def test_consecutive_sums(dealt):
    present, sizes = dealt
    values = np.random.default_rng(5).integers(-9, 9, (57, 4)).astype(np.float32)
    out = np.zeros((4, 4))
    hot.consecutive_sums(np.where(present, values, np.float32(np.nan)), sizes, out)
    for j in range(4):
        parts = groups(present[:, j], sizes[:, j])
        assert_array_equal(out[:, j], [values[rows, j].sum() for rows in parts])


def test_consecutive_counts(dealt, dtype):
    present, sizes = dealt
    codes = np.where(present, np.random.default_rng(5).integers(0, KS, (57, 4)), -1).astype(dtype)
    out = np.zeros((14, 4))
    hot.consecutive_counts(codes, OFFSETS, sizes, out)
    for j, k in enumerate(KS):
        for c, rows in enumerate(groups(present[:, j], sizes[:, j])):
            assert_array_equal(out[OFFSETS[j] : OFFSETS[j] + k, c], np.bincount(codes[rows, j], minlength=k))
