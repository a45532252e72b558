"""SPCE against the dense version in `oracles`, the authors' outputs, and its own laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from consilience import LWGP, PCE, SPCE, Partitions, datasets
from consilience.consensus.spce import _adjusted_rand, _update_alpha, _update_pairs, coassociation, spce
from consilience.core import laplacian
from consilience.core.laplacian import components, embed
from consilience.core.pairs import agreeing_pairs, sum_over_bases
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score
from tests.oracles.spce import plain_spce
from tests.planted import planted
from tests.rows import all_rows, distinct_rows

FIXTURES = [
    f"spce_{data}_theta{theta}"
    for data in ("glioma_m20", "lung_m10", "lung_m20", "yale_m10")
    for theta in ("0", "0.1", "0.3", "0.5")
    if (data, theta) != ("lung_m20", "0.3")  # not among them
]


@pytest.fixture(autouse=True)
def one_thread():
    """Small eigenproblems of the plain version are many times slower in threads."""
    with threadpool_limits(1, user_api="blas"):
        yield


def solve(base, c, *, read=distinct_rows, **options):
    """`spce` on the distinct rows or on all rows."""
    rows, inverse = read(base)
    return spce(rows, c, **{"theta": 0.2, "weighting": "self_paced", "max_iter": 20, **options}), inverse


def learned(result, inverse):
    """S of all instances."""
    return coassociation(result, inverse.max() + 1).toarray()[np.ix_(inverse, inverse)]


# --- against the authors' program ---------------------------------------------------------------------------


@pytest.mark.fixtures
def test_every_fixture_is_listed(fixtures_folder):
    assert {path.stem for path in fixtures_folder.glob("spce_*.npz")} == set(FIXTURES)


@pytest.mark.fixtures
@pytest.mark.parametrize("name", FIXTURES)
def test_equals_authors_outputs(fixtures_folder, name):
    given = np.load(fixtures_folder / f"{name}.npz")
    c, theta = int(given["n_clusters"]), float(given["theta"])
    result, inverse = solve(given["base"], c, theta=theta)
    assert adjusted_rand_score(result.components[inverse], given["labels"]) == 1.0
    assert result.n_components == int(given["n_components"])
    assert result.n_iter == len(given["trace"])
    assert result.rho == float(given["rho_final"])
    assert_allclose(result.alpha, given["alpha"], atol=1e-12)
    assert_allclose(result.objective, given["trace"][:, 5], rtol=1e-10)
    if given["S"].size:
        assert_allclose(learned(result, inverse), given["S"], atol=1e-6)

    model = SPCE(c, theta=theta, random_state=0).fit(given["base"])
    assert model.n_components_ == result.n_components
    assert model.n_iter_ == result.n_iter
    assert_allclose(model.base_weights_, (1 / given["alpha"]) / np.sum(1 / given["alpha"]), atol=1e-12)
    assert len(np.unique(model.labels_)) == c
    if result.n_components == c:
        assert adjusted_rand_score(model.labels_, given["labels"]) == 1.0


@pytest.mark.fixtures
@pytest.mark.parametrize("name", FIXTURES[::3])
def test_plain_version_is_the_authors_program(fixtures_folder, name):
    given = np.load(fixtures_folder / f"{name}.npz")
    slow = plain_spce(given["base"], int(given["n_clusters"]), theta=float(given["theta"]))
    assert adjusted_rand_score(slow.components, given["labels"]) == 1.0
    assert len(slow.steps) == len(given["trace"])
    assert_allclose(slow.alpha, given["alpha"], atol=1e-12)


@pytest.mark.data
def test_quality_on_the_authors_pool(data_folder):
    pool = datasets.load("pool_Zhou_Lung")
    scores = []
    for run in range(10):
        labels = SPCE(5, theta=0.1, random_state=0).fit_predict(pool.labels[:, 20 * run : 20 * run + 20])
        scores.append(
            [
                matched_accuracy_score(pool.y, labels),
                normalized_mutual_info_score(pool.y, labels, normalization="max"),
            ]
        )
    assert_allclose(np.mean(scores, axis=0), [0.9113, 0.7382], atol=1e-4)  # the authors' stored results


# --- against the plain version ------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["self_paced", "fixed", "none"])
@pytest.mark.parametrize("theta", [0.0, 0.2, 0.4])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(2))
def test_equals_plain_version(weighting, theta, missing, seed):
    _, base = planted(90, 6, 4, noise=0.3, missing=missing, seed=seed)
    slow = plain_spce(base, 4, theta=theta, weighting=weighting)
    fast, inverse = solve(base, 4, theta=theta, weighting=weighting)
    if fast.margin <= 0:
        pytest.skip(
            "an eigenvector between equal instances is cut in two: dense solvers differ among themselves"
        )
    assert fast.n_iter == len(slow.steps)
    assert fast.n_components == slow.n_components
    assert adjusted_rand_score(fast.components[inverse], slow.components) == 1.0
    assert_allclose(fast.alpha, slow.alpha, atol=1e-6)
    assert_allclose(learned(fast, inverse), slow.s, atol=1e-6)
    assert_allclose(fast.objective, slow.objective, rtol=1e-6)


@pytest.mark.parametrize("theta", [0.0, 0.2])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_equals_plain_version_where_eigenvectors_are_searched(theta, missing, monkeypatch):
    monkeypatch.setattr(laplacian, "_DENSE", 0)
    _, base = planted(220, 7, 4, noise=0.3, missing=missing, seed=0)
    slow = plain_spce(base, 4, theta=theta)
    fast, inverse = solve(base, 4, theta=theta)
    assert len(fast.components) > 150
    assert fast.margin > 0
    assert fast.n_iter == len(slow.steps)
    assert fast.n_components == slow.n_components
    assert adjusted_rand_score(fast.components[inverse], slow.components) == 1.0
    assert_allclose(fast.alpha, slow.alpha, atol=1e-9)
    assert_allclose(learned(fast, inverse), slow.s, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_distinct_rows_equal_repeated_rows(seed):
    _, base = planted(300, 4, 3, noise=0.25, missing=0.0, seed=seed)
    few, inverse = solve(base, 3)
    slow = plain_spce(base, 3, theta=0.2)
    assert len(few.components) < 80
    assert few.margin > 0
    assert few.n_iter == len(slow.steps)
    assert adjusted_rand_score(few.components[inverse], slow.components) == 1.0
    assert_allclose(few.alpha, slow.alpha, atol=1e-6)
    everyone, same = solve(base, 3, read=all_rows)
    assert adjusted_rand_score(everyone.components[same], few.components[inverse]) == 1.0
    assert_allclose(everyone.objective, few.objective, rtol=1e-9)


@pytest.mark.fixtures
def test_eigenvectors_between_equal_rows_matter(fixtures_folder, monkeypatch):
    # With eigenvectors of the quotient in their place, this learned graph is not that of the paper.
    given = np.load(fixtures_folder / "spce_yale_m10_theta0.npz")
    honest = laplacian._smallest

    def only_between(between, inside, copies, k):
        return honest(between, np.full_like(inside, 1e9), copies, k)

    monkeypatch.setattr(laplacian, "_smallest", only_between)
    result, inverse = solve(given["base"], 15, theta=0.0)
    assert adjusted_rand_score(result.components[inverse], given["labels"]) < 0.9


# --- laws ---------------------------------------------------------------------------------------------------


def problem(seed, missing):
    _, base = planted(120, 7, 4, noise=0.3, missing=missing, seed=seed)
    rows = Partitions.of(base).distinct
    pairs = agreeing_pairs(rows.codes)
    rng = np.random.default_rng(seed)
    alpha = rng.random(7) + 0.2
    return pairs, rows.counts.astype(float), alpha / alpha.sum(), rng.random(len(pairs.left)) * 0.9 + 0.1


def value(pairs, w, s, z, alpha, pace, rho, threshold):
    """Eq. (10) without the term of W, from the pairs."""
    agreeing, together = sum_over_bases(pairs, 1 / alpha)
    both = 2 * w[pairs.left] * w[pairs.right]
    distance = (
        ((z.h[pairs.left] - z.h[pairs.right]) ** 2).sum(axis=1) + z.spread[pairs.left] + z.spread[pairs.right]
    )
    loss = s * s * together - 2 * s * agreeing + agreeing
    # Both orders of a pair: tr(F' L F) = 1/2 sum S ||f_p - f_q||^2 over ordered pairs; the program's step
    # minimises with half of the paper's rho.
    return float(both @ (pace**2 * loss + threshold**2 * (s > 0) + rho * distance * s))


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("rho", [0.5, 20.0])
def test_every_step_lowers_the_objective_at_fixed_age_and_rho(missing, rho):
    pairs, w, alpha, pace = problem(0, missing)
    agreeing, together = sum_over_bases(pairs, np.ones(7))
    s = agreeing / together
    z = embed(pairs.left, pairs.right, s, w, components(pairs.left, pairs.right, s, len(w)), 4)
    for _ in range(6):
        before = value(pairs, w, s, z, alpha, pace, rho, 1.4)
        s, distances, _ = _update_pairs(pairs, z, w, pace, alpha, rho, 1.4)
        after_s = value(pairs, w, s, z, alpha, pace, rho, 1.4)
        assert after_s <= before * (1 + 1e-12)
        parts = components(pairs.left, pairs.right, s, len(w))
        if parts.n_components > 4:
            break
        z = embed(pairs.left, pairs.right, s, w, parts, 4)
        after_z = value(pairs, w, s, z, alpha, pace, rho, 1.4)
        assert after_z <= after_s * (1 + 1e-12)
        alpha = _update_alpha(distances)
        assert value(pairs, w, s, z, alpha, pace, rho, 1.4) <= after_z * (1 + 1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_no_other_value_of_a_pair_does_better(missing):
    pairs, w, alpha, pace = problem(1, missing)
    agreeing, together = sum_over_bases(pairs, np.ones(7))
    s = agreeing / together
    z = embed(pairs.left, pairs.right, s, w, components(pairs.left, pairs.right, s, len(w)), 4)
    s, _, _ = _update_pairs(pairs, z, w, pace, alpha, 3.0, 1.4)
    agreeing, together = sum_over_bases(pairs, 1 / alpha)
    distance = (
        ((z.h[pairs.left] - z.h[pairs.right]) ** 2).sum(axis=1) + z.spread[pairs.left] + z.spread[pairs.right]
    )

    def cost(s):
        return pace**2 * (s * s * together - 2 * s * agreeing) + 1.4**2 * (s > 0) + 3.0 * distance * s

    free = ~pairs.certain
    best = np.min([cost(np.full(len(s), x)) for x in np.linspace(0, 1, 101)], axis=0)
    assert (cost(s)[free] <= best[free] + 1e-9).all()
    assert_array_equal(s[pairs.certain], 1.0)


def test_weights_favour_base_clusterings_near_the_consensus():
    _, base = planted(300, 6, 3, noise=0.1, missing=0.0, seed=1)
    base[:, 4] = np.random.default_rng(99).integers(0, 3, 300)
    model = SPCE(3).fit(base)
    assert model.base_weights_.sum() == pytest.approx(1.0)
    assert model.base_weights_.argmin() == 4
    assert model.base_weights_[4] < 0.8 * np.delete(model.base_weights_, 4).min()


def test_learned_graph_has_the_components_it_says():
    _, base = planted(200, 6, 3, noise=0.2, missing=0.0, seed=1)
    model = SPCE(3).fit(base)
    dense = model.coassociation(np.arange(200))
    assert dense.shape == (200, 200)
    assert_array_equal(dense, dense.T)
    assert_array_equal(np.diag(dense), 1.0)
    assert model.n_components_ == 3
    assert not dense[model.labels_[:, None] != model.labels_[None]].any()


# --- what the user gets -------------------------------------------------------------------------------------


def test_recovers_planted_clusters_of_unequal_size():
    truth, base = planted(1000, 8, 6, noise=0.1, missing=0.0, seed=0, sizes=(0.5, 0.2, 0.1, 0.1, 0.05, 0.05))
    model = SPCE(6, random_state=0).fit(base)
    assert adjusted_rand_score(truth, model.labels_) > 0.95
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()


@pytest.mark.parametrize("missing", [0.2, 0.5])
def test_partial_labels(missing):
    truth, base = planted(400, 8, 3, noise=0.05, missing=missing, seed=0)
    model = SPCE(3, random_state=0).fit(base)
    assert adjusted_rand_score(truth, model.labels_) > 0.8
    assert adjusted_rand_score(model.predict(base), model.labels_) > 0.8


@pytest.mark.parametrize(("n_bases", "missing"), [(6, 0.1), (12, 0.3)])
def test_a_giant_made_by_gaps_is_called_so(n_bases, missing):
    truth, base = planted(600, n_bases, 6, noise=0.3, missing=missing, seed=0)
    with pytest.warns(ConvergenceWarning, match=r"SPCE put 9\d% .* Hint: use PCE, DAL or fuse"):
        model = SPCE(6, random_state=0).fit(base)
    assert adjusted_rand_score(truth, model.labels_) < 0.1
    assert adjusted_rand_score(truth, PCE(6, random_state=0).fit_predict(base)) > 0.9


@pytest.mark.parametrize(("noise", "missing"), [(0.05, 0.1), (0.2, 0.5), (0.3, 0.1)])
def test_good_answers_with_gaps_are_not_called_giants(noise, missing):
    truth, base = planted(600, 12, 6, noise=noise, missing=missing, seed=0)
    assert adjusted_rand_score(truth, SPCE(6, random_state=0).fit_predict(base)) > 0.9  # warnings are errors


@pytest.mark.data
def test_a_true_giant_is_no_reason_to_warn(data_folder):
    # Two thirds of Lung are one class: also with a fifth of the labels removed, that is no fault.
    pool = datasets.load("pool_Zhou_Lung")
    base = pool.labels[:, :20].astype(int)
    base[np.random.default_rng(0).random(base.shape) < 0.2] = -1
    labels = SPCE(5, random_state=0).fit_predict(base)
    assert np.bincount(labels).max() > 0.6 * len(labels)
    assert matched_accuracy_score(pool.y, labels) > 0.85


def test_nearness_is_the_adjusted_rand_index_of_what_both_saw():
    _, base = planted(200, 4, 3, noise=0.3, missing=0.3, seed=0)
    rows = Partitions.of(base, unobserved="keep").compact().take_seen()
    found = _adjusted_rand(rows.distinct.codes, rows.offsets, rows.distinct.counts.astype(float))
    for i in range(4):
        for j in range(4):
            both = (base[:, i] >= 0) & (base[:, j] >= 0)
            assert found[i, j] == pytest.approx(adjusted_rand_score(base[both, i], base[both, j]))


def test_pairs_never_seen_together_are_undetermined():
    # Two groups of base clusterings that share only the rows in the middle: ends meet through them.
    base = np.full((12, 4), -1)
    base[:8, :2] = np.array([0, 0, 0, 0, 1, 1, 1, 1])[:, None]
    base[2:, 2:] = np.array([0, 0, 1, 1, 1, 1, 0, 0, 1, 1])[:, None]
    model = SPCE(2).fit(base)
    assert len(set(model.labels_[[0, 1, 2, 3, 8, 9]])) == 1
    assert len(set(model.labels_[[4, 5, 6, 7, 10, 11]])) == 1
    assert model.coassociation([0, 8])[0, 1] == 0.0


@pytest.mark.parametrize("theta", [0.0, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("c", [1, 2, 5, 13])
def test_exactly_as_many_clusters_as_asked_for(theta, missing, c):
    _, base = planted(80, 5, 6, noise=0.5, missing=missing, seed=0)
    labels = SPCE(c, theta=theta, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(c))


def test_too_many_components_are_put_together_again():
    truth, base = planted(300, 10, 4, noise=0.25, missing=0.0, seed=0)
    model = SPCE(4, theta=0.7, random_state=0).fit(base)
    assert model.n_components_ > 4
    assert adjusted_rand_score(truth, model.labels_) > 0.9


def test_confidence_is_higher_where_the_answer_is_right():
    truth, base = planted(400, 8, 3, noise=0.3, missing=0.0, seed=0)
    model = SPCE(3, random_state=0).fit(base)
    match = np.array([np.bincount(truth[model.labels_ == q]).argmax() for q in range(3)])
    right = match[model.labels_] == truth
    assert 0 < right.mean() < 1
    assert model.confidence_[right].mean() > model.confidence_[~right].mean()


def test_never_observed_instances():
    _, base = planted(60, 4, 3, noise=0.1, missing=0.1, seed=0)
    base[[5, 17]] = -1
    without = SPCE(3, random_state=0).fit(np.delete(base, [5, 17], axis=0))
    noise = SPCE(3, unobserved="noise", random_state=0).fit(base)
    largest = SPCE(3, unobserved="largest", random_state=0).fit(base)
    assert_array_equal(noise.labels_[[5, 17]], [-1, -1])
    assert_array_equal(largest.labels_[[5, 17]], [0, 0])
    assert_array_equal(np.delete(noise.labels_, [5, 17]), without.labels_)
    assert_array_equal(noise.confidence_[[5, 17]], 0.0)
    assert not noise.coassociation([5, 17, 0])[:2].any()
    assert_array_equal(noise.predict([[-1] * 4]), [-1])


# --- edges --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [0.0, 0.2, 0.5])
def test_identical_base_clusterings(theta):
    _, base = planted(100, 1, 3, noise=0.0, missing=0.0, seed=0)
    model = SPCE(3, theta=theta).fit(np.repeat(base, 4, axis=1))
    assert adjusted_rand_score(model.labels_, base[:, 0]) == 1.0
    assert_allclose(model.base_weights_, 0.25)
    assert np.isfinite(model.objective_).all()


@pytest.mark.parametrize("c", [1, 2, 3, 4])
def test_one_base_clustering(c):
    _, base = planted(60, 1, 4, noise=0.0, missing=0.0, seed=0)
    model = SPCE(c, random_state=0).fit(base)
    assert len(np.unique(model.labels_)) == c
    if c == 4:
        assert adjusted_rand_score(model.labels_, base[:, 0]) == 1.0


@pytest.mark.filterwarnings("ignore:the base clusterings fall into")  # two instances seen apart
@pytest.mark.parametrize("base", [[[0, 0], [0, 1]], [[0], [1]], [[0, 0], [1, 1]], [[0, -1], [-1, 0]]])
@pytest.mark.parametrize("c", [1, 2])
def test_two_instances(base, c):
    assert len(set(SPCE(c, random_state=0).fit_predict(base))) == c


def test_one_cluster():
    _, base = planted(50, 3, 3, noise=0.1, missing=0.2, seed=0)
    model = SPCE(1, random_state=0).fit(base)
    assert_array_equal(model.labels_, 0)
    assert_allclose(model.confidence_, 1.0)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_as_many_clusters_as_distinct_rows(missing):
    _, base = planted(60, 4, 4, noise=0.5, missing=missing, seed=0)
    u = len(np.unique(base, axis=0))
    labels = SPCE(u, random_state=0).fit_predict(base)
    assert len(np.unique(labels)) == u
    assert adjusted_rand_score(labels, np.unique(base, axis=0, return_inverse=True)[1].ravel()) == 1.0


def test_weights_that_would_become_zero():
    # The consensus becomes the base clustering that occurs five times, whose weight would be infinite.
    _, base = planted(90, 1, 3, noise=0.0, missing=0.0, seed=0)
    other = base[:, 0].copy()
    other[:4] = (other[:4] + 1) % 3
    table = np.column_stack([np.repeat(base, 5, axis=1), other])
    model = SPCE(3, random_state=0).fit(table)
    assert np.isfinite(model.base_weights_).all()
    assert np.isfinite(model.objective_).all()
    assert adjusted_rand_score(model.labels_, base[:, 0]) == 1.0
    assert_allclose(_update_alpha(np.array([0.0, 4.0])), [5e-7, 1.0], rtol=1e-5)
    assert_allclose(_update_alpha(np.zeros(4)), 0.25)


def test_fewer_distinct_rows_than_clusters():
    base = np.repeat([[0, 0], [1, 1], [2, -1]], 4, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 3 distinct label rows"):
        model = SPCE(5, random_state=0).fit(base)
    assert model.n_clusters_ == 3
    assert len(np.unique(model.labels_)) == 3


def test_too_many_distinct_rows_are_refused_with_a_hint(monkeypatch):
    _, base = planted(300, 6, 4, noise=0.5, missing=0.0, seed=0)
    monkeypatch.setattr(SPCE, "max_rows", 100)
    with pytest.raises(
        ValueError, match=r"distinct label rows, SPCE compares .* takes at most 100\. Hint: use LWGP or DAL"
    ):
        SPCE(4).fit(base)
    assert len(np.unique(LWGP(4, random_state=0).fit_predict(base))) == 4


def test_more_than_64_base_clusterings():
    truth, base = planted(120, 70, 3, noise=0.4, missing=0.1, seed=0)
    assert adjusted_rand_score(truth, SPCE(3, random_state=0).fit_predict(base)) == 1.0


def test_verbose_talks_on_stderr(capsys):
    SPCE(2, verbose=1).fit([[0, 0], [0, 0], [1, 1], [1, -1]])
    said = capsys.readouterr()
    assert said.out == ""
    assert "SPCE iteration 1: objective" in said.err


@pytest.mark.parametrize("theta", [-0.1, 1.0])
def test_theta_is_checked(theta):
    with pytest.raises(ValueError, match="The 'theta' parameter of SPCE must be a float"):
        SPCE(2, theta=theta).fit([[0, 0], [1, 1]])
