"""What holds for every estimator: scikit-learn's checks and the house's own."""

import pickle
import warnings
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import consilience
from consilience import Partitions, consensus, features, multiview
from consilience.consensus import LabelMethod
from consilience.core import blocks, tables
from consilience.metrics import ensemble_agreement
from consilience.multiview import ViewMethod
from tests.instances import INSTANCES, NOT_FOR_LABELS
from tests.planted import planted

ESTIMATORS = {name: home for home in (consensus, features, multiview) for name in home.__all__}


def build(name, settings, **more):
    return getattr(ESTIMATORS[name], name)(random_state=0, **{"n_clusters": 3, **settings, **more})


def clear_labels():
    """Three clusters, five base clusterings, gaps but no noise: every method finds them."""
    return planted(120, 5, 3, noise=0.0, missing=0.15, seed=1)


def clear_table():
    """Three clusters of a table of features, apart enough for every method."""
    X, truth = make_blobs(90, n_features=4, centers=3, cluster_std=0.5, random_state=2)
    return truth, X


def fitted(name, settings):
    """The method on its clear data, fitted once for all checks that compare with it; not to be changed."""
    return _fitted(name, tuple(settings.items()))


@cache
def _fitted(name, settings):
    _, X = clear_labels() if name in consensus.__all__ else clear_table()
    return build(name, dict(settings)).fit(X)


def settings_of(names):
    return pytest.mark.parametrize(
        ("name", "settings"),
        [(name, settings) for name, settings, _ in INSTANCES if name in names],
        ids=lambda value: value if isinstance(value, str) else str(value or "default"),
    )


every_label_method = settings_of(consensus.__all__)
every_table_method = settings_of(features.__all__)


@pytest.fixture(autouse=True)
def excused(request):
    """Skip a house check that a setting cannot pass by its definition."""
    params = getattr(getattr(request.node, "callspec", None), "params", {})
    if "settings" in params:
        excuses = next(
            excuses
            for name, settings, excuses in INSTANCES
            if (name, settings) == (params["name"], params["settings"])
        )
        if reason := excuses.get(request.node.originalname):
            pytest.skip(reason)


@pytest.fixture
def clear():
    return clear_labels()


def test_every_method_is_listed():
    assert {name for name, _, _ in INSTANCES} == set(ESTIMATORS)


# The checks of scikit-learn give it noise, on which its published steps are slow.
@pytest.mark.filterwarnings("ignore:NMFC did not converge")
@parametrize_with_checks([build(name, settings) for name, settings, _ in INSTANCES])
def test_scikit_learn(estimator, check):
    if isinstance(estimator, LabelMethod) and check.func.__name__ in NOT_FOR_LABELS:
        with pytest.raises((ValueError, AssertionError)):
            check(estimator)
    elif check.func.__name__ in NOT_FOR_CHANCES and isinstance(estimator, ViewMethod):
        check(without_chances(estimator))
    else:
        check(estimator)


# These ask whoever has `predict_proba` for what only classifiers have, the number of their classes, and that
# nothing is kept which is found when first asked for, as the confidence that chances of views begin with.
NOT_FOR_CHANCES = ("check_estimator_sparse_array", "check_estimator_sparse_matrix", "check_dict_unchanged")


def without_chances(estimator):
    """The same without `predict_proba`."""

    @property
    def lacking(self):
        raise AttributeError("predict_proba")

    own = type(estimator)
    return type(own.__name__, (own,), {"predict_proba": lacking})(**estimator.get_params(deep=False))


@every_label_method
class TestLabelMethod:
    def test_recovers_what_is_clear(self, name, settings, clear):
        truth, _ = clear
        model = fitted(name, settings)
        assert adjusted_rand_score(truth, model.labels_) == 1.0
        assert model.labels_.dtype.kind == "i"
        assert_array_equal(np.unique(model.labels_), np.arange(model.n_clusters_))
        if hasattr(model, "confidence_"):
            assert model.confidence_.shape == truth.shape
            assert model.confidence_.min() >= 0
            assert model.confidence_.max() <= 1

    def test_finds_the_number_of_clusters(self, name, settings):
        truth, base = planted(150, 8, 3, noise=0.05, missing=0.15, seed=4)
        model = build(name, settings, n_clusters="auto").fit(base)
        assert model.n_clusters_ == model.cluster_count_.n_clusters == 3
        assert adjusted_rand_score(truth, model.labels_) > 0.9

    def test_groups_that_share_no_instance_are_named(self, name, settings, clear):
        _, base = clear
        apart = np.where((np.arange(120) < 60)[:, None] == (np.arange(4) < 2), base[:, :4], -1)
        apart[(apart < 0).all(axis=1)] = np.where(np.arange(4) < 2, 0, -1)
        table = dict(zip("abcd", apart.T, strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            with pytest.warns(UserWarning, match=r"share no instance: 'a', 'b' \| 'c', 'd'. .* Hint"):
                build(name, settings).fit(table)

    def test_part_of_a_table_is_a_table(self, name, settings, clear):
        """Clusters without a member and clusterings without a label do no harm."""
        truth, base = clear
        part = Partitions.of(np.column_stack([base, np.where(truth == 2, 0, -1)])).take(truth != 2)
        model = build(name, settings, n_clusters=2).fit(part)
        assert adjusted_rand_score(truth[truth != 2], model.labels_) == 1.0

    def test_renaming_labels_changes_nothing(self, name, settings, clear):
        _, base = clear
        names = np.array(["zeta", "alpha", "mu", None], dtype=object)
        renamed = names[base]
        renamed[:, 1:] = base[:, 1:]
        model, other = fitted(name, settings), build(name, settings).fit(renamed.tolist())
        assert adjusted_rand_score(model.labels_, other.labels_) == 1.0

    def test_order_of_base_clusterings_changes_nothing(self, name, settings, clear):
        _, base = clear
        model, other = fitted(name, settings), build(name, settings).fit(base[:, ::-1])
        assert adjusted_rand_score(model.labels_, other.labels_) == 1.0

    def test_permuting_instances_permutes_the_answer(self, name, settings, clear):
        _, base = clear
        order = np.random.default_rng(0).permutation(len(base))
        model, other = fitted(name, settings), build(name, settings).fit(base[order])
        assert adjusted_rand_score(model.labels_[order], other.labels_) == 1.0

    def test_unanimous_base_clusterings_are_returned(self, name, settings):
        truth, base = planted(60, 4, 3, noise=0.0, missing=0.0, seed=0)
        assert adjusted_rand_score(truth, build(name, settings).fit_predict(base)) == 1.0

    def test_column_without_labels_is_ignored(self, name, settings, clear):
        _, base = clear
        wider = np.column_stack([base, np.full(len(base), -1)])
        with pytest.warns(UserWarning, match="'5' .* is ignored"):
            other = build(name, settings).fit(wider)
        assert adjusted_rand_score(fitted(name, settings).labels_, other.labels_) == 1.0
        if hasattr(other, "base_weights_"):
            assert len(other.base_weights_) == 6
            assert other.base_weights_[5] == 0.0

    def test_repeated_rows_change_nothing(self, name, settings, clear):
        _, base = clear
        model, other = fitted(name, settings), build(name, settings).fit(np.repeat(base, 3, axis=0))
        assert adjusted_rand_score(np.repeat(model.labels_, 3), other.labels_) == 1.0

    def test_fitted_rows_keep_their_clusters_and_are_scored_by_agreement(self, name, settings):
        _, base = planted(90, 5, 3, noise=0.3, missing=0.3, seed=6)
        model = build(name, settings).fit(base)
        assert_array_equal(model.predict(base), model.labels_)
        assert model.score(base) == ensemble_agreement(model.labels_, base)
        assert model.score(base[:40]) == ensemble_agreement(model.labels_[:40], base[:40])
        if hasattr(model, "transform"):
            assert_allclose(model.transform(base), model.embedding_, atol=1e-7)
            assert_allclose(model.transform(base[:1]), model.embedding_[:1], atol=1e-7)
            frame = model.set_output(transform="pandas").transform(base)
            assert list(frame.columns) == [f"{name.lower()}{j}" for j in range(model.embedding_.shape[1])]

    def test_kinds_of_number_change_nothing(self, name, settings, clear):
        _, base = clear
        with_nan = np.where(base < 0, np.nan, base)
        labels = fitted(name, settings).labels_
        for table in (with_nan, with_nan.astype(np.float32), base.astype(np.int8), base.tolist()):
            assert_array_equal(build(name, settings).fit(table).labels_, labels)

    def test_unseen_instance_is_an_error_that_names_its_row(self, name, settings, clear):
        base = clear[1].copy()
        base[7] = -1
        with pytest.raises(ValueError, match=r"row 7\. Hint"):
            build(name, settings).fit(base)

    def test_same_seed_same_answer_whatever_the_threads(self, name, settings, monkeypatch):
        _, base = planted(200, 5, 3, noise=0.3, missing=0.3, seed=0)
        monkeypatch.setattr(blocks, "BLOCK_ROWS", 16)  # enough blocks of distinct rows for threads
        monkeypatch.setattr(tables, "rows_per_block", lambda offsets: 16)
        answers = []
        for n_threads in (1, 2, 3):
            monkeypatch.setattr(blocks, "n_threads", lambda n_threads=n_threads: n_threads)
            model = build(name, settings).fit(base)
            answers.append((model.labels_, getattr(model, "objective_", None)))
        for labels, objective in answers[1:]:
            assert_array_equal(labels, answers[0][0])
            assert_array_equal(objective, answers[0][1])

    def test_input_and_global_random_state_are_untouched(self, name, settings, clear):
        base = clear[1].copy()
        base.setflags(write=False)
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        build(name, settings).set_params(random_state=None).fit(base)
        assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
        assert_array_equal(base, clear[1])

    def test_survives_pickle_and_clone(self, name, settings, clear):
        _, base = clear
        model = fitted(name, settings)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.labels_, model.labels_)
        if hasattr(model, "predict"):
            assert_array_equal(again.predict(base), model.predict(base))
        assert_array_equal(clone(model).fit(base).labels_, model.labels_)

    def test_frames_in_frames_out(self, name, settings, clear):
        pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
        _, base = clear
        labels = fitted(name, settings).labels_
        columns = [f"bank_{j}" for j in range(base.shape[1])]
        ids = [f"id{p}" for p in range(len(base))]
        pandas_frame = pd.DataFrame(base, columns=columns, index=ids)
        for frame in (pandas_frame, pl.DataFrame(base, schema=columns)):
            model = build(name, settings).fit(frame)
            assert_array_equal(model.labels_, labels)
            assert list(model.feature_names_in_) == columns
            if hasattr(model, "imputed_"):
                assert type(model.imputed_) is type(frame)
                assert list(model.imputed_.columns) == columns
        if hasattr(model, "imputed_"):
            assert list(build(name, settings).fit(pandas_frame).imputed_.index) == ids

    def test_objective_is_recorded_and_falls(self, name, settings):
        if not hasattr(fitted(name, settings), "objective_"):
            pytest.skip("the method has no objective")
        _, base = planted(300, 6, 3, noise=0.3, missing=0.3, seed=2)
        model = build(name, settings).fit(base)
        assert len(model.objective_) == model.n_iter_
        steps = np.diff(model.objective_[1:])
        assert steps.max(initial=0.0) <= 1e-8 * np.abs(model.objective_).max()

    def test_bad_parameters_are_named(self, name, settings, clear):
        with pytest.raises(ValueError, match=r"The 'n_clusters' parameter of \w+ must be an int .* Got -4"):
            build(name, settings, n_clusters=-4).fit(clear[1])
        assert_allclose(build(name, settings, n_clusters=np.int64(3)).fit(clear[1]).n_clusters_, 3)


@pytest.fixture
def blobs():
    return clear_table()


@every_table_method
class TestTableMethod:
    def test_recovers_what_is_clear(self, name, settings, blobs):
        truth, _ = blobs
        model = fitted(name, settings)
        assert adjusted_rand_score(truth, model.labels_) == 1.0
        assert model.labels_.dtype.kind == "i"
        assert_array_equal(np.unique(model.labels_), np.arange(model.n_clusters_))

    def test_permuting_instances_permutes_the_answer(self, name, settings, blobs):
        _, X = blobs
        order = np.random.default_rng(0).permutation(len(X))
        model, other = fitted(name, settings), build(name, settings).fit(X[order])
        assert adjusted_rand_score(model.labels_[order], other.labels_) == 1.0

    def test_same_seed_same_answer_whatever_the_threads(self, name, settings, blobs, monkeypatch):
        X = blobs[1] + np.random.default_rng(0).normal(scale=2.0, size=blobs[1].shape)
        monkeypatch.setattr(blocks, "BLOCK_ROWS", 10)
        answers = []
        for n_threads in (1, 2, 3):
            monkeypatch.setattr(blocks, "n_threads", lambda n_threads=n_threads: n_threads)
            model = build(name, settings).fit(X)
            answers.append((model.labels_, model.objective_))
        for labels, objective in answers[1:]:
            assert_array_equal(labels, answers[0][0])
            assert_array_equal(objective, answers[0][1])

    def test_input_and_global_random_state_are_untouched(self, name, settings, blobs):
        X = blobs[1].copy()
        X.setflags(write=False)
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        build(name, settings).set_params(random_state=None).fit(X)
        assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
        assert_array_equal(X, blobs[1])

    def test_single_precision_and_sparse_tables_change_nothing(self, name, settings, blobs):
        _, X = blobs
        labels = fitted(name, settings).labels_
        for table in (X.astype(np.float32), sp.csr_array(X), sp.csc_matrix(X)):
            assert adjusted_rand_score(labels, build(name, settings).fit(table).labels_) == 1.0

    def test_survives_pickle_and_clone(self, name, settings, blobs):
        _, X = blobs
        model = fitted(name, settings)
        assert_array_equal(pickle.loads(pickle.dumps(model)).labels_, model.labels_)
        assert_array_equal(clone(model).fit(X).labels_, model.labels_)

    def test_bad_parameters_are_named(self, name, settings, blobs):
        with pytest.raises(ValueError, match=r"The 'n_clusters' parameter of \w+ must be an int .* Got -4"):
            build(name, settings, n_clusters=-4).fit(blobs[1])
        assert build(name, settings, n_clusters=np.int64(3)).fit(blobs[1]).n_clusters_ == 3


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_documented(name):
    text = getattr(ESTIMATORS[name], name).__doc__
    for section in ("Parameters", "Attributes", "Notes", "References", "Examples"):
        assert f"{section}\n" in text, f"{name} has no section {section}"


def test_public_names_exist():
    for name in consilience.__all__:
        assert getattr(consilience, name) is not None
    assert set(ESTIMATORS) <= set(consilience.__all__)
