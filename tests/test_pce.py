"""PCE against the plain version in `oracles`, the authors' outputs, and its own laws."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import PCE, Partitions, datasets
from consilience.consensus.pce import pce
from consilience.metrics import matched_accuracy_score, normalized_mutual_info_score
from tests.oracles.pce import plain_pce
from tests.planted import planted
from tests.rows import all_rows, distinct_rows

FIXTURES = [
    f"pce_{data}_g{gamma}"
    for data in ("orlraws10p_m0", "orlraws10p_m30", "pixraw_m30", "pixraw_m50", "yale_m0", "yale_m30")
    for gamma in ("1", "100")
]


def solve(base, c, *, on="distinct", start=0, **options):
    """`pce` on the distinct rows or on all rows, started at instance `start`."""
    rows, inverse = all_rows(base) if on == "all" else distinct_rows(base)
    settings = {
        "init": "coassociation", "gamma": 1.0, "n_init": 1, "self_paced": True, "diversity": True,
        "joint": True, "max_iter": 20, "tol": 0.0, "rng": np.random.RandomState(0), **options,
    }  # fmt: skip
    settings.setdefault("starts", [inverse[start]])
    return pce(rows, c, **settings), inverse


def mixed_base(seed, n=120):
    """Bases with 2 to 7 clusters, some entries missing."""
    truth, _ = planted(n, 1, 4, noise=0.0, missing=0.0, seed=seed)
    rng = np.random.default_rng(seed)
    columns = [
        np.where(rng.random(n) < 0.2, rng.integers(0, k, n), (truth * k // 4) % k) for k in (2, 4, 7, 5)
    ]
    table = np.column_stack(columns)
    hidden = rng.random(table.shape) < 0.25
    hidden[hidden.all(axis=1), 0] = False
    return np.where(hidden, -1, table)


# --- against the plain version ------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_equals_plain_version(gamma, missing):
    _, base = planted(150, 6, 4, noise=0.3, missing=missing, seed=3)
    slow = plain_pce(base, 4, gamma=gamma, n_iter=15)
    fast, inverse = solve(base, 4, gamma=gamma, max_iter=15)
    assert_array_equal(fast.labels[inverse], slow.labels)
    assert_allclose(fast.objective, slow.objective, rtol=1e-7, atol=1e-7)
    assert_allclose(fast.weights, slow.alpha, atol=1e-5)
    assert_allclose(fast.reliability[inverse], slow.v, rtol=1e-4)
    assert_array_equal(fast.codes[inverse], slow.filled)


@pytest.mark.parametrize("options", [{"self_paced": False}, {"diversity": False}])
def test_ablations_equal_plain_version(options):
    _, base = planted(150, 6, 4, noise=0.3, missing=0.3, seed=4)
    slow = plain_pce(base, 4, n_iter=12, **options)
    fast, inverse = solve(base, 4, max_iter=12, **options)
    assert_array_equal(fast.labels[inverse], slow.labels)
    assert_allclose(fast.objective, slow.objective, rtol=1e-7, atol=1e-7)
    assert_allclose(fast.weights, slow.alpha, atol=1e-5)


def test_equals_plain_version_when_bases_have_other_numbers_of_clusters():
    base = mixed_base(0)
    slow = plain_pce(base, 4, n_iter=12)
    fast, inverse = solve(base, 4, max_iter=12)
    assert adjusted_rand_score(fast.labels[inverse], slow.labels) == 1.0
    assert_allclose(fast.objective, slow.objective, rtol=1e-5)


# --- against the authors' program ---------------------------------------------------------------------------


@pytest.mark.fixtures
@pytest.mark.parametrize("name", FIXTURES)
def test_equals_authors_labels(fixtures_folder, name):
    given = np.load(fixtures_folder / f"{name}.npz")
    c, gamma = int(given["n_clusters"]), float(given["gamma"])
    fast, inverse = solve(given["base"], c, gamma=gamma, max_iter=100, tol=1e-3)
    assert adjusted_rand_score(fast.labels[inverse], given["labels"]) == 1.0


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["pce_orlraws10p_m30_g1", "pce_pixraw_m50_g100", "pce_yale_m0_g1"])
def test_plain_version_is_the_authors_program(fixtures_folder, name):
    # Rotations started from identity matrices depend on the signs of the eigenvectors, which differ between
    # programs: labels are equal, the objective only nearly so.
    given = np.load(fixtures_folder / f"{name}.npz")
    slow = plain_pce(given["base"], int(given["n_clusters"]), gamma=float(given["gamma"]), authors=True)
    assert adjusted_rand_score(slow.init_labels, given["init_labels"]) == 1.0
    assert adjusted_rand_score(slow.labels, given["labels"]) == 1.0
    assert_allclose(slow.objective, given["objective_blocks"][:, -1], rtol=0.02)


# Mean ACC and NMI (max) of the authors' program on their own incomplete pools.
REFERENCE = {10: (0.909, 0.912), 30: (0.868, 0.880), 70: (0.641, 0.674)}


def pixraw_scores(missing, **options):
    pool = datasets.load(f"pool_PCE_pixraw10P_miss{missing}")
    scores = []
    for run in range(10):
        table = pool.labels[:, 10 * run : 10 * run + 10]
        labels = PCE(10, unobserved="largest", random_state=run, **options).fit_predict(table)
        nmi = normalized_mutual_info_score(pool.y, labels, normalization="max")
        scores.append((matched_accuracy_score(pool.y, labels), nmi))
    return np.mean(scores, axis=0)


@pytest.mark.data
@pytest.mark.parametrize("missing", REFERENCE)
def test_published_start_reaches_the_authors_quality(data_folder, missing):
    assert (pixraw_scores(missing, init="coassociation") >= np.array(REFERENCE[missing]) - 0.01).all()


@pytest.mark.data
def test_default_start_is_better_on_average_and_nowhere_much_worse(data_folder):
    found, given = np.array([pixraw_scores(r) for r in REFERENCE]), np.array(list(REFERENCE.values()))
    assert (found >= given - 0.012).all()
    assert (found.mean(axis=0) > given.mean(axis=0) + 0.01).all()


# --- laws ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"self_paced": False}, {"diversity": False}, {"joint": False}])
@pytest.mark.parametrize(
    "make", [lambda: planted(300, 8, 5, noise=0.4, missing=0.5, seed=1)[1], lambda: mixed_base(2)]
)
def test_objective_never_rises_after_the_first_iteration(options, make):
    result, _ = solve(make(), 4, max_iter=40, **options)
    steps = np.diff(result.objective[1:])
    assert steps.max() <= 1e-8 * np.abs(result.objective).max()


def test_constraints_hold():
    result, _ = solve(mixed_base(1), 4, max_iter=30)
    table = Partitions.of(mixed_base(1))
    w = table.distinct.counts
    assert np.abs(result.embedding.T @ (w[:, None] * result.embedding) - np.eye(4)).max() < 1e-8
    for rotation in (*np.split(result.rotations, table.offsets[1:-1]), result.rotation):
        gram = rotation @ rotation.T if rotation.shape[0] < rotation.shape[1] else rotation.T @ rotation
        assert np.abs(gram - np.eye(len(gram))).max() < 1e-8
    assert result.weights.min() >= 0
    assert result.weights.sum() == pytest.approx(1.0)
    assert result.reliability.min() >= 0
    assert result.reliability.max() <= 1
    assert (result.codes >= 0).all()
    observed = table.distinct.codes >= 0
    assert_array_equal(result.codes[observed], table.distinct.codes[observed])


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_distinct_rows_equal_repeated_rows(missing):
    _, base = planted(2000, 4, 3, noise=0.2, missing=missing, seed=5)
    few, inverse = solve(base, 3)
    every, same = solve(base, 3, on="all")
    assert len(few.labels) < 300
    assert_array_equal(few.labels[inverse], every.labels[same])
    assert_allclose(few.objective, every.objective, rtol=1e-10)
    assert_allclose(few.weights, every.weights, atol=1e-8)
    assert_array_equal(few.codes[inverse], every.codes)


def test_embedding_steps_are_certified():
    model = PCE(3, random_state=0).fit(planted(500, 6, 3, noise=0.2, missing=0.3, seed=0)[1])
    assert model.certified_


def test_age_starts_at_the_most_reliable_tenth():
    _, base = planted(400, 5, 3, noise=0.3, missing=0.3, seed=0)
    result, inverse = solve(base, 3, max_iter=1)
    assert np.mean(result.reliability[inverse] == 1.0) == pytest.approx(0.1, abs=0.06)


def test_stops_when_nothing_changes():
    _, base = planted(500, 6, 3, noise=0.1, missing=0.2, seed=0)
    short = PCE(3, random_state=0).fit(base)
    long, _ = solve(base, 3, max_iter=60, init="normalized")
    assert short.n_iter_ < 30
    assert short.objective_[-1] == pytest.approx(long.objective[-1], rel=1e-3)


def test_says_when_it_did_not_converge():
    _, base = planted(300, 6, 3, noise=0.3, missing=0.3, seed=0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        PCE(3, max_iter=2, random_state=0).fit(base)


# --- what the user gets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"self_paced": False}, {"diversity": False}])
def test_recovers_planted_clusters_of_unequal_size(options):
    truth, base = planted(
        3000, 10, 6, noise=0.15, missing=0.3, seed=0, sizes=(0.5, 0.2, 0.1, 0.1, 0.05, 0.05)
    )
    labels = PCE(6, random_state=0, **options).fit_predict(base)
    assert adjusted_rand_score(truth, labels) > 0.9


def test_labels_after_the_fact_are_worse_than_joint_ones():
    # The paper's ablation: without the discretisation term, H follows the diversity term away from the start.
    truth, base = planted(1000, 10, 5, noise=0.3, missing=0.3, seed=0)
    joint = PCE(5, random_state=0).fit_predict(base)
    post = PCE(5, discretize="post", random_state=0).fit_predict(base)
    assert adjusted_rand_score(truth, joint) > 0.9
    assert adjusted_rand_score(truth, post) < adjusted_rand_score(truth, joint)


def test_random_filling_is_worse_than_learning():
    truth, base = planted(1000, 10, 5, noise=0.3, missing=0.6, seed=0)
    learned = PCE(5, random_state=0).fit_predict(base)
    filled = PCE(5, imputation="random", random_state=0).fit_predict(base)
    assert adjusted_rand_score(truth, learned) > adjusted_rand_score(truth, filled)


def test_random_filling_reports_what_it_filled_in():
    _, base = planted(200, 4, 3, noise=0.1, missing=0.4, seed=0)
    model = PCE(3, imputation="random", random_state=0).fit(base)
    again = PCE(3, imputation="random", random_state=0).fit(base)
    assert_array_equal(model.imputed_, again.imputed_)
    assert_array_equal(model.imputed_[base >= 0], base[base >= 0])
    hidden = model.imputed_[base < 0]
    assert np.bincount(hidden).min() > 0.2 * len(hidden)  # drawn from all three clusters, not learned


def test_imputed_labels_are_mostly_right():
    _, full = planted(2000, 8, 5, noise=0.1, missing=0.0, seed=2)
    rng = np.random.default_rng(0)
    hidden = rng.random(full.shape) < 0.4
    hidden[hidden.all(axis=1), 0] = False
    model = PCE(5, random_state=0).fit(np.where(hidden, -1, full))
    assert_array_equal(model.imputed_[~hidden], full[~hidden])
    assert np.mean(model.imputed_[hidden] == full[hidden]) > 0.85  # 0.92 is what the noise leaves


def test_confidence_is_higher_where_the_answer_is_right():
    truth, base = planted(2000, 6, 5, noise=0.4, missing=0.4, seed=0)
    model = PCE(5, random_state=0).fit(base)
    assert model.confidence_.min() >= 0
    assert model.confidence_.max() <= 1
    match = np.array([np.bincount(truth[model.labels_ == q]).argmax() for q in range(5)])
    right = match[model.labels_] == truth
    assert model.confidence_[right].mean() > model.confidence_[~right].mean() + 0.1


def test_confidence_grows_with_the_number_of_opinions():
    rows = [[0, 0, 0, 0], [0, 0, 0, -1], [0, 0, -1, -1], [0, -1, -1, -1], [1, 1, 1, 1]]
    model = PCE(2, random_state=0).fit(np.repeat(rows, 20, axis=0))
    assert (np.diff(model.confidence_[:80:20]) < 0).all()
    assert_allclose(model.predict_confidence([rows[0], rows[3]]), model.confidence_[[0, 60]], atol=0.05)


@pytest.mark.parametrize(
    ("sizes", "m", "missing"), [((0.85, 0.15), 3, 0.5), ((0.7, 0.3), 3, 0.7), ((0.95, 0.05), 10, 0.5)]
)
def test_small_clusters_survive_missing_entries(sizes, m, missing):
    truth, base = planted(1000, m, 2, noise=0.0, missing=missing, seed=3, sizes=sizes)
    assert adjusted_rand_score(truth, PCE(2, random_state=0).fit_predict(base)) == 1.0


def test_survives_a_base_of_pure_noise():
    truth, base = planted(1000, 5, 4, noise=0.1, missing=0.2, seed=0)
    base[:, 2] = np.random.default_rng(1).integers(0, 4, len(base))
    assert adjusted_rand_score(truth, PCE(4, random_state=0).fit_predict(base)) > 0.9


def test_published_rotations_and_filled_labels_do_not_predict():
    # Why predict and imputed_ read counts of labels instead: the rotated sum of base embeddings and the
    # labels filled in by Eq. (11) follow the diversity term, not the evidence.
    truth, full = planted(1000, 8, 4, noise=0.1, missing=0.0, seed=0)
    hidden = np.random.default_rng(1).random(full.shape) < 0.3
    base = np.where(hidden, -1, full)
    model = PCE(4, random_state=0).fit(base)
    hot = [np.where(base[:, i, None] >= 0, np.eye(4)[base[:, i]], 0.0) for i in range(8)]
    published = sum(a * y @ r for a, y, r in zip(model.base_weights_, hot, model.rotations_, strict=True))
    by_rotation = (published @ model.rotation_).argmax(axis=1)
    assert adjusted_rand_score(truth, by_rotation) < 0.6
    assert adjusted_rand_score(truth, model.predict(base)) > 0.95
    filled, inverse = solve(base, 4, max_iter=20)
    assert np.mean(filled.codes[inverse][hidden] == full[hidden]) < 0.6
    assert np.mean(model.imputed_[hidden] == full[hidden]) > 0.85


def test_clusters_are_numbered_by_size():
    _, base = planted(1000, 6, 4, noise=0.1, missing=0.2, seed=0, sizes=(0.1, 0.5, 0.15, 0.25))
    sizes = np.bincount(PCE(4, random_state=0).fit_predict(base))
    assert (np.diff(sizes) <= 0).all()


def test_predict_gives_training_rows_their_own_cluster():
    _, base = planted(1000, 8, 4, noise=0.1, missing=0.3, seed=0)
    model = PCE(4, random_state=0).fit(base)
    assert adjusted_rand_score(model.predict(base), model.labels_) > 0.95
    new_truth, new = planted(500, 8, 4, noise=0.1, missing=0.5, seed=0, draw=7)
    assert adjusted_rand_score(new_truth, model.predict(new)) > 0.85


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_predict_matches_columns_by_name(library):
    frames = pytest.importorskip(library)
    _, base = planted(300, 3, 3, noise=0.05, missing=0.0, seed=0)
    frame = frames.DataFrame({name: base[:, j] for j, name in enumerate("abc")})
    model = PCE(3, random_state=0).fit(frame)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    expected = model.predict(np.column_stack([np.full(300, -1), base[:, 1], np.full(300, -1)]))
    assert_array_equal(model.predict(frame[["b"]]), expected)
    assert_array_equal(model.predict({"b": base[:, 1]}), expected)
    assert_array_equal(model.predict(frame[["c", "a", "b"]]), model.predict(frame))
    with pytest.raises(ValueError, match=r"unknown base clustering 'B'\. Hint: "):
        model.predict({"B": base[:, 1]})
    with pytest.raises(
        ValueError, match=r"X has 2 features, but PCE is expecting 3 features as input\. Hint"
    ):
        model.predict(base[:, :2])


def test_predict_refuses_unknown_labels_by_name():
    model = PCE(2, random_state=0).fit([["a", "x"], ["a", "x"], ["b", "y"]])
    with pytest.raises(ValueError, match=r"'1' has no cluster 'z', found in row 1\. Hint"):
        model.predict([["a", "x"], ["a", "z"]])


# --- edges --------------------------------------------------------------------------------------------------


def test_never_observed_instances():
    _, base = planted(60, 4, 3, noise=0.1, missing=0.3, seed=0)
    base[[5, 17]] = -1
    with pytest.raises(ValueError, match=r"row 5 and 1 other\. Hint"):
        PCE(3).fit(base)
    without = PCE(3, random_state=0).fit(np.delete(base, [5, 17], axis=0))
    noise = PCE(3, unobserved="noise", random_state=0).fit(base)
    largest = PCE(3, unobserved="largest", random_state=0).fit(base)
    assert_array_equal(noise.labels_[[5, 17]], [-1, -1])
    assert_array_equal(largest.labels_[[5, 17]], [0, 0])
    for model in (noise, largest):
        assert_array_equal(np.delete(model.labels_, [5, 17]), without.labels_)
        assert_array_equal(model.confidence_[[5, 17]], 0.0)
        assert_array_equal(model.imputed_[[5, 17]], -1)
        assert model.embedding_.shape == (60, 3)
    assert_array_equal(without.predict([[-1] * 4]), [-1])  # as fusion.predict does
    assert_array_equal(noise.predict([[-1] * 4]), [-1])
    assert_array_equal(largest.predict([[-1] * 4]), [0])


def test_identical_base_clusterings():
    _, base = planted(200, 1, 3, noise=0.0, missing=0.0, seed=0)
    model = PCE(3, random_state=0).fit(np.repeat(base, 4, axis=1))
    assert model.base_weights_.sum() == pytest.approx(1.0)
    assert adjusted_rand_score(model.labels_, base[:, 0]) == 1.0


def test_one_cluster():
    _, base = planted(50, 3, 3, noise=0.1, missing=0.2, seed=0)
    model = PCE(1, random_state=0).fit(base)
    assert_array_equal(model.labels_, 0)
    assert_allclose(model.confidence_, 1.0)


def test_as_many_clusters_as_instances():
    base = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, -1]])
    model = PCE(5, random_state=0).fit(base)
    assert sorted(model.labels_) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_few_instances(n):
    base = np.column_stack([np.arange(n) % 2, np.arange(n) % 2, np.arange(n) % 2])
    labels = PCE(2, random_state=0).fit_predict(base)
    assert adjusted_rand_score(labels, np.arange(n) % 2) == 1.0


@pytest.mark.parametrize("seed", range(8))
def test_no_cluster_is_empty(seed):
    rng = np.random.default_rng(seed)
    base = rng.integers(-1, 6, (40, 3))
    base[(base < 0).all(axis=1), 0] = 0
    c = 20
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = PCE(c, random_state=0).fit_predict(base)
    assert len(np.unique(labels)) == min(c, len(np.unique(base, axis=0)))


def test_fewer_distinct_rows_than_clusters():
    base = np.repeat([[0, 0], [1, 1], [2, -1]], 4, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 3 distinct label rows"):
        model = PCE(5, random_state=0).fit(base)
    assert model.n_clusters_ == 3
    assert len(np.unique(model.labels_)) == 3


def test_more_clusters_than_instances():
    with pytest.raises(ValueError, match=r"n_samples=2 should be >= n_clusters=3\. Hint"):
        PCE(3).fit([[0, 1], [1, 0]])


def test_a_column_of_ids_is_refused_by_name():
    base = np.column_stack([np.arange(12_000), np.arange(12_000) % 3])
    with pytest.raises(ValueError, match=r"'0' has a different label in every row\. Hint: if it holds ids"):
        PCE(3).fit(base)


def test_more_base_clusters_than_their_pairs_fit_in_memory_are_refused_by_name():
    base = np.column_stack([np.arange(24_000) // 2, np.arange(24_000) % 3])
    with pytest.raises(ValueError, match=r"'0' alone has 12000\. Hint: leave out columns that are ids"):
        PCE(3).fit(base)


def test_one_base_clustering_is_returned():
    _, base = planted(100, 1, 4, noise=0.0, missing=0.0, seed=0)
    assert adjusted_rand_score(PCE(4, random_state=0).fit_predict(base), base[:, 0]) == 1.0


def test_noise_labels_are_opinions_of_their_own():
    truth, base = planted(300, 5, 3, noise=0.0, missing=0.05, seed=0)
    base[:5] = -1
    model = PCE(3, random_state=0).fit(Partitions.of(base, negative="noise"))
    assert adjusted_rand_score(truth[5:], model.labels_[5:]) > 0.95
    assert model.confidence_[:5].max() < 0.5 < model.confidence_[5:].min()
    assert_array_equal(model.predict(base)[:5], -1)
    assert adjusted_rand_score(truth[5:], model.predict(base)[5:]) > 0.95
    assert_array_equal(model.predict_confidence(base)[:5], 0.0)


def test_results_come_in_the_users_own_frame():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": ["x", "x", "y", None], "b": ["u", None, "v", "v"]})
    model = PCE(2, random_state=0).fit(frame)
    assert model.imputed_.to_dict(as_series=False) == {"a": ["x", "x", "y", "y"], "b": ["u", "u", "v", "v"]}


def test_verbose_talks_on_stderr(capsys):
    PCE(2, verbose=1, random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, -1]])
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("PCE iteration 1: objective")
