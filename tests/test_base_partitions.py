"""`generate.BasePartitions`: clusterers that are kept, in scikit-learn's life."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, MiniBatchKMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from consilience import DAL, PCE
from consilience.generate import BasePartitions, base_partitions
from tests.planted import planted

KINDS = [
    {},
    {"n_clusters": (2, 6), "subsample": 0.4},
    {"method": "graph"},
    {"method": "spectral"},
    {"method": AgglomerativeClustering()},
    {"method": DBSCAN(eps=0.6), "n_clusters": None},
    {"method": GaussianMixture(4), "n_clusters": None, "subsample": 0.5},
    {"method": make_pipeline(StandardScaler(), MiniBatchKMeans(n_init=1))},
]


@parametrize_with_checks([BasePartitions(2, 3, random_state=0)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(240, centers=4, cluster_std=1.6, random_state=0)


@pytest.fixture(scope="module", params=KINDS, ids=str)
def made(request, blobs):
    model = BasePartitions(**{"n_clusters": 5, "n_partitions": 4, "random_state": 0, **request.param})
    return model, model.fit_transform(blobs[0])


def test_the_same_rows_have_the_same_labels(made, blobs):
    model, labels = made
    X, _ = blobs
    assert labels.shape == (240, 4)
    assert labels.dtype == np.int32
    assert_array_equal(model.transform(X), labels)
    assert_array_equal(clone(model).fit(X).transform(X), labels)
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X[:7]), labels[:7])
    if not isinstance(model.method, DBSCAN):
        assert labels.min() == 0  # no gaps, whatever the samples


def test_a_pipeline_predicts_what_it_fitted(made, blobs):
    X, _ = blobs
    model = make_pipeline(clone(made[0]), PCE(4, random_state=0, unobserved="noise"))
    labels = model.fit_predict(X)
    assert_array_equal(model.predict(X), labels)
    shuffled = np.random.default_rng(0).permutation(len(X))
    assert_array_equal(model.predict(X[shuffled]), labels[shuffled])
    assert adjusted_rand_score(model.predict(X + 0.01), labels) > 0.9
    assert model.score(X) == model[-1].score(model[0].transform(X))


@pytest.mark.parametrize("more", [{}, {"n_clusters": (2, 6)}, {"method": AgglomerativeClustering()}], ids=str)
def test_of_all_rows_it_is_base_partitions(blobs, more):
    settings = {"n_clusters": 5, "n_partitions": 3, "random_state": 0, **more}
    labels = base_partitions(blobs[0], **settings)
    assert_array_equal(BasePartitions(**settings).fit_transform(blobs[0]), labels)


def test_of_a_sample_it_agrees_where_base_partitions_looked(blobs):
    settings = {"n_clusters": 5, "n_partitions": 3, "subsample": 0.4, "random_state": 0}
    seen, placed = base_partitions(blobs[0], **settings), BasePartitions(**settings).fit_transform(blobs[0])
    assert_array_equal(placed[seen >= 0], seen[seen >= 0])
    assert (placed[seen < 0] >= 0).all()


def test_names_and_frames(blobs):
    X, _ = blobs
    model = BasePartitions(3, 2, random_state=0).set_output(transform="pandas")
    frame = model.fit_transform(pd.DataFrame(X, columns=["x", "y"], index=[f"id{i}" for i in range(len(X))]))
    names = ["basepartitions0", "basepartitions1"]
    assert list(frame.columns) == list(model.get_feature_names_out()) == names
    assert frame.index[1] == "id1"
    assert list(model.feature_names_in_) == ["x", "y"]
    pipeline = make_pipeline(model, DAL(3)).fit(frame.assign(x=X[:, 0], y=X[:, 1])[["x", "y"]])
    assert list(pipeline[-1].feature_names_in_) == names


def test_sparse_is_dense(blobs):
    X, _ = blobs
    model = BasePartitions(4, 3, method="graph", random_state=0).fit(X)
    again = BasePartitions(4, 3, method="graph", random_state=0).fit(sp.csr_array(X))
    assert_array_equal(again.transform(sp.csr_array(X)), model.transform(X))
    assert get_tags(model).input_tags.sparse
    assert not get_tags(BasePartitions(method=AgglomerativeClustering())).input_tags.sparse


def test_one_seed_one_answer_whatever_the_jobs(blobs):
    X, _ = blobs
    labels = BasePartitions(4, 3, subsample=0.5, random_state=7).fit_transform(X)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    with parallel_config(backend="threading"):
        again = BasePartitions(4, 3, subsample=0.5, random_state=7, n_jobs=2).fit_transform(X)
    assert_array_equal(again, labels)
    BasePartitions(4, 3).fit(X)
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_cluster_that_no_fitted_row_is_in_is_missing(blobs):
    class Elsewhere(MiniBatchKMeans):
        def predict(self, X):
            found = super().predict(X)
            return np.where(np.asarray(X)[:, 0] > 1e3, 99, found)

    model = BasePartitions(3, 2, method=Elsewhere(n_init=1), random_state=0).fit(blobs[0])
    assert model.transform([[1e6, 0.0]]).tolist() == [[-1, -1]]


def test_a_search_over_a_pipeline_runs(blobs):
    X, _ = blobs
    pipeline = make_pipeline(BasePartitions(6, 4, random_state=0), PCE(4, random_state=0))
    search = GridSearchCV(pipeline, {"basepartitions__subsample": [0.5, 1.0], "pce__gamma": [0.5, 1.0]}, cv=2)
    search.fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()


def test_a_search_over_labels_runs():
    truth, base = planted(150, 6, 3, noise=0.2, missing=0.2, seed=0)
    names = np.array(["x", "y", "z", None], dtype=object)
    frame = pd.DataFrame({f"base {j}": names[column] for j, column in enumerate(base.T)})
    search = GridSearchCV(DAL(3), {"theta": [0.4, 2.0]}, cv=3).fit(frame)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert adjusted_rand_score(truth, search.predict(frame)) > 0.8
    assert search.score(frame) == search.best_estimator_.score(frame)


def test_labels_that_were_not_fitted_are_missing_to_a_score():
    model = DAL(2).fit([["a", "x"], ["a", "x"], ["b", "y"]])
    with pytest.warns(UserWarning, match="1 label of the new instances did not exist"):
        assert model.score([["a", "x"], ["b", "new"]]) == 1.0


def test_what_is_wrong_is_named(blobs):
    X, _ = blobs
    with pytest.raises(ValueError, match=r"'n_clusters' parameter of BasePartitions must be .* Got \(5, 2\)"):
        BasePartitions((5, 2)).fit(X)
    with pytest.raises(ValueError, match=r"'method' parameter of BasePartitions must be"):
        BasePartitions(method="ward").fit(X)
    with pytest.raises(ValueError, match=r"'n_clusters' parameter of BasePartitions .* Got None"):
        BasePartitions(None).fit(X)
    with pytest.raises(ValueError, match=r"n_samples=3 should be >= n_clusters=8\. Hint"):
        BasePartitions().fit(X[:3])


def test_verbose_counts(blobs, capsys):
    BasePartitions(3, 2, verbose=1, random_state=0).fit(blobs[0])
    assert "BasePartitions: 2 of 2" in capsys.readouterr().err
