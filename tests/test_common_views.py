"""What holds for every method of views: the house's own checks. (scikit-learn's run in `test_common`.)"""

import pickle
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from consilience import check_views, multiview
from consilience.core.parameters import Count, NonNegative, parameters
from tests.instances import INSTANCES

N_CLUSTERS = 3


def build(name, settings, **more):
    return getattr(multiview, name)(random_state=0, **{"n_clusters": N_CLUSTERS, **settings, **more})


def fitted(name, settings):
    """The method on its clear views, fitted once for all checks that compare with it; not to be changed."""
    return _fitted(name, tuple(settings.items()))


@cache
def _fitted(name, settings):
    _, views, observed = clear_views()
    return build(name, dict(settings)).fit(views, mask=observed)


every_view_method = pytest.mark.parametrize(
    ("name", "settings"),
    [(name, settings) for name, settings, _ in INSTANCES if name in multiview.__all__],
    ids=lambda value: value if isinstance(value, str) else str(value or "default"),
)


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


def clear_views(n=90, *, missing=0.15, seed=0, n_views=2):
    """Well separated clusters in every view, and which rows are there. Every instance keeps a view.

    Instances also differ along one direction that all views share: centred, three clusters fill two
    directions, and a third that were noise would follow from the pattern of what is missing.
    """
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % N_CLUSTERS)
    along = rng.uniform(-6.0, 6.0, n)
    views = []
    for width in (4, 6, 5)[:n_views]:
        centers = np.zeros((N_CLUSTERS, width))
        centers[:, :N_CLUSTERS] = 10.0 * np.eye(N_CLUSTERS)
        view = 5.0 + centers[truth] + 0.5 * rng.standard_normal((n, width))
        view[:, N_CLUSTERS] += along
        views.append(view)
    observed = rng.random((n, n_views)) >= missing
    lost = np.flatnonzero(~observed.any(axis=1))
    observed[lost, rng.integers(0, n_views, len(lost))] = True
    return truth, views, observed


@pytest.fixture
def clear():
    return clear_views()


def same(first, second):
    assert adjusted_rand_score(first, second) == 1.0


def with_nan(views, observed):
    return [np.where(observed[:, [v]], view, np.nan) for v, view in enumerate(views)]


@every_view_method
class TestViewMethod:
    def test_recovers_what_is_clear(self, name, settings, clear):
        truth, views, _ = clear
        model = fitted(name, settings)
        same(truth, model.labels_)
        assert model.labels_.dtype.kind == "i"
        assert_array_equal(np.unique(model.labels_), np.arange(model.n_clusters_))
        assert model.n_features_in_ == sum(view.shape[1] for view in views)
        assert model.view_names_ == ("view0", "view1")

    def test_order_of_views_changes_nothing(self, name, settings, clear):
        _, views, observed = clear
        model = fitted(name, settings)
        same(model.labels_, build(name, settings).fit(views[::-1], mask=observed[:, ::-1]).labels_)

    def test_permuting_instances_permutes_the_answer(self, name, settings, clear):
        _, views, observed = clear
        order = np.random.default_rng(0).permutation(len(observed))
        model = fitted(name, settings)
        other = build(name, settings).fit([view[order] for view in views], mask=observed[order])
        same(model.labels_[order], other.labels_)

    def test_mask_without_holes_is_no_mask(self, name, settings):
        _, views, observed = clear_views(missing=0.0)
        assert observed.all()
        model, other = build(name, settings).fit(views), build(name, settings).fit(views, mask=observed)
        assert_array_equal(model.labels_, other.labels_)

    def test_values_of_absent_rows_do_not_matter(self, name, settings, clear):
        _, views, observed = clear
        labels = fitted(name, settings).labels_
        other = [np.where(observed[:, [v]], view, 1e6) for v, view in enumerate(views)]
        assert_array_equal(build(name, settings).fit(other, mask=observed).labels_, labels)
        assert_array_equal(build(name, settings).fit(with_nan(views, observed)).labels_, labels)

    def test_lists_dicts_frames_and_views_are_one(self, name, settings, clear):
        pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
        _, views, observed = clear
        tables = with_nan(views, observed)
        labels = build(name, settings).fit(tables).labels_
        for given in (
            tuple(tables),
            {"a": tables[0], "b": tables[1]},
            [pd.DataFrame(table) for table in tables],
            [pl.DataFrame(table) for table in tables],
            check_views(tables),
        ):
            assert_array_equal(build(name, settings).fit(given).labels_, labels)

    def test_frames_are_joined_by_id(self, name, settings, clear):
        pd = pytest.importorskip("pandas")
        truth, views, observed = clear
        ids = np.array([f"id{p}" for p in range(len(truth))])
        frames = {}
        for v, view in enumerate(views):
            rows = np.random.default_rng(v).permutation(np.flatnonzero(observed[:, v]))
            frames[f"table{v}"] = pd.DataFrame(view[rows], index=ids[rows])
        model = build(name, settings).fit(frames)
        assert model.view_names_ == ("table0", "table1")
        found = pd.Series(model.labels_, index=model.index_)
        same(truth, found[ids].to_numpy())

    def test_sparse_is_dense(self, name, settings, clear):
        _, views, observed = clear
        model = fitted(name, settings)
        other = build(name, settings).fit([sparse.csr_array(view) for view in views], mask=observed)
        same(model.labels_, other.labels_)

    def test_instance_seen_nowhere_is_an_error_that_names_its_row(self, name, settings, clear):
        _, views, observed = clear
        observed[7] = False
        with pytest.raises(ValueError, match=r"row 7\. Hint"):
            build(name, settings).fit(views, mask=observed)

    def test_view_seen_nowhere_is_an_error_that_names_it(self, name, settings, clear):
        _, views, _ = clear
        with pytest.raises(ValueError, match=r"'b' has no instances\. Hint"):
            build(name, settings).fit({"a": views[0], "b": np.full_like(views[1], np.nan)})

    def test_fewer_instances_than_clusters_is_an_error(self, name, settings, clear):
        _, views, _ = clear
        with pytest.raises(ValueError, match=r"n_samples=2 should be >= n_clusters=3\. Hint"):
            build(name, settings).fit([view[:2] for view in views])

    def test_same_seed_same_answer(self, name, settings):
        rng = np.random.default_rng(3)
        views = [rng.standard_normal((60, width)) for width in (4, 6)]
        observed = rng.random((60, 2)) < 0.7
        observed[~observed.any(axis=1)] = True
        first = build(name, settings).fit(views, mask=observed)
        again = build(name, settings).fit(views, mask=observed)
        assert_array_equal(first.labels_, again.labels_)
        assert_array_equal(getattr(first, "objective_", None), getattr(again, "objective_", None))

    def test_input_and_global_random_state_are_untouched(self, name, settings, clear):
        _, views, observed = clear
        copies = [view.copy() for view in views]
        for part in (*views, observed):
            part.setflags(write=False)
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        build(name, settings).set_params(random_state=None).fit(views, mask=observed)
        assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
        for view, copy in zip(views, copies, strict=True):
            assert_array_equal(view, copy)

    def test_single_precision_gives_the_same_answer(self, name, settings, clear):
        _, views, observed = clear
        model = fitted(name, settings)
        same(
            model.labels_,
            build(name, settings).fit([v.astype(np.float32) for v in views], mask=observed).labels_,
        )

    def test_survives_pickle_and_clone(self, name, settings, clear):
        _, views, observed = clear
        model = fitted(name, settings)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.labels_, model.labels_)
        if hasattr(model, "predict"):
            assert_array_equal(again.predict(views), model.predict(views))
        assert_array_equal(clone(model).fit(views, mask=observed).labels_, model.labels_)

    def test_objective_is_recorded(self, name, settings):
        model = fitted(name, settings)
        if not hasattr(model, "objective_"):
            pytest.skip("the method has no objective")
        assert len(model.objective_) == model.n_iter_
        assert np.isfinite(model.objective_).all()

    def test_bad_parameters_are_named(self, name, settings, clear):
        _, views, observed = clear
        with pytest.raises(ValueError, match=r"The 'n_clusters' parameter of \w+ must be an int .* Got -4"):
            build(name, settings, n_clusters=-4).fit(views, mask=observed)
        assert build(name, settings, n_clusters=np.int64(3)).fit(views, mask=observed).n_clusters_ == 3


@every_view_method
class TestPredict:
    @pytest.fixture(autouse=True)
    def prepared(self, name, settings, clear):
        if not hasattr(getattr(multiview, name), "predict"):
            pytest.skip("the method has no predict")
        self.truth, self.views, self.observed = clear
        self.model = fitted(name, settings)

    def test_training_rows_keep_their_clusters(self, name, settings):
        assert_array_equal(self.model.predict(self.views, mask=self.observed), self.model.labels_)
        assert_array_equal(self.model.predict(with_nan(self.views, self.observed)), self.model.labels_)

    def test_any_view_will_do(self, name, settings):
        _, new, _ = clear_views(seed=0, missing=0.0)
        for given in ([new[0], None], {"view1": new[1]}, [np.full_like(new[0], np.nan), new[1]]):
            assert_array_equal(self.model.predict(given), self.model.labels_)

    def test_places_in_the_embedding(self, name, settings):
        if not hasattr(self.model, "transform"):
            pytest.skip("the method has no place for new instances")
        places = self.model.transform(self.views, mask=self.observed)
        both = self.observed.all(axis=1)
        imputed = "places of absent rows change those of their neighbours" * (
            settings.get("imputation") == "knn"
        )
        if not imputed:
            assert_allclose(places[both], self.model.embedding_[both], atol=1e-3 * np.abs(places).max())
        assert_allclose(self.model.transform(with_nan(self.views, self.observed)), places)
        again = build(name, settings)
        assert_allclose(again.fit_transform(self.views, mask=self.observed), places)
        frame = again.set_output(transform="pandas").transform(self.views)
        assert list(frame.columns) == [f"{name.lower()}{j}" for j in range(places.shape[1])]

    def test_rows_are_predicted_alone_as_together(self, name, settings):
        together = self.model.predict(self.views, mask=self.observed)
        tables = with_nan(self.views, self.observed)
        alone = [self.model.predict([table[p : p + 1] for table in tables])[0] for p in range(12)]
        assert_array_equal(alone, together[:12])

    def test_row_seen_nowhere_is_an_error_that_names_it(self, name, settings):
        observed = self.observed.copy()
        observed[4] = False
        with pytest.raises(ValueError, match=r"row 4\. Hint"):
            self.model.predict(self.views, mask=observed)
        with pytest.raises(ValueError, match=r"no view holds any instance\. Hint"):
            self.model.predict([None, None])

    def test_views_that_were_not_fitted_are_refused(self, name, settings):
        with pytest.raises(ValueError, match=r"no view 'sound' when .* Hint: the views are 'view0', 'view1'"):
            self.model.predict({"sound": self.views[0]})
        with pytest.raises(ValueError, match=r"X has 1 views, but .* was fitted with 2\. Hint"):
            self.model.predict([self.views[0]])
        with pytest.raises(ValueError, match=r"view 'view1' has 4 features, but .* expecting 6 features"):
            self.model.predict({"view1": self.views[0]})

    def test_mask_of_other_views_is_refused(self, name, settings):
        with pytest.raises(ValueError, match=r"mask must have a column for each of the 2 fitted views\. Got"):
            self.model.predict({"view1": self.views[1]}, mask=self.observed[:, :1])

    def test_views_read_beforehand_are_taken(self, name, settings):
        given = check_views({"view1": self.views[1], "view0": self.views[0]})
        assert_array_equal(self.model.predict(given), self.model.predict(self.views))

    def test_columns_are_matched_by_name(self, name, settings):
        frames = [pd.DataFrame(view).add_prefix("f") for view in self.views]
        model = build(name, settings).fit(frames, mask=self.observed)
        turned = [frame[frame.columns[::-1]] for frame in frames]
        expected = model.predict(frames, mask=self.observed)
        assert_array_equal(model.predict(turned, mask=self.observed), expected)
        with pytest.raises(ValueError, match=r"view 'view0' has a column 'g0' that was not there .* Hint"):
            model.predict([frames[0].rename(columns={"f0": "g0"}), None])


def cut_into_views(X):
    return [X[:, :4], X[:, 4:]]


@pytest.mark.parametrize("name", multiview.__all__)
def test_the_mask_can_be_asked_for(name):
    with config_context(enable_metadata_routing=True):
        model = build(name, {})
        model.set_fit_request(mask=True)
        assert model.get_metadata_routing().fit.requests == {"mask": True}
        for method in ("predict", "transform"):
            if hasattr(model, method):
                getattr(model, f"set_{method}_request")(mask=True)
                assert getattr(model.get_metadata_routing(), method).requests == {"mask": True}


@pytest.mark.parametrize("name", ["APMC", "PVC", "LFIMVC"])
def test_the_mask_is_routed_through_a_pipeline(name, clear):
    """A wide table is cut into views, and the mask comes by scikit-learn's way of handing things on."""
    _, views, observed = clear
    wide = np.hstack([np.where(observed[:, [v]], view, 1e6) for v, view in enumerate(views)])
    pipeline = make_pipeline(FunctionTransformer(cut_into_views), build(name, {}))
    with config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match=r"\[mask\] are passed but are not explicitly set"):
            pipeline.fit(wide, mask=observed)
        pipeline[-1].set_fit_request(mask=True)
        pipeline.fit(wide, mask=observed)
        assert_array_equal(pipeline[-1].labels_, fitted(name, {}).labels_)
        if hasattr(pipeline[-1], "predict"):
            pipeline[-1].set_predict_request(mask=True)
            expected = fitted(name, {}).predict(views, mask=observed)
            assert_array_equal(pipeline.predict(wide, mask=observed), expected)


def test_a_search_cuts_the_mask_by_rows():
    truth, views, observed = clear_views()
    with config_context(enable_metadata_routing=True):
        model = multiview.EEIMVC(random_state=0).set_fit_request(mask=True)
        pipeline = make_pipeline(FunctionTransformer(cut_into_views), model)
        search = GridSearchCV(pipeline, {"eeimvc__n_clusters": [2, 3]}, scoring="adjusted_rand_score", cv=2)
        search.fit(np.hstack(views), truth, mask=observed)
    assert search.best_params_ == {"eeimvc__n_clusters": 3}
    assert search.best_score_ == 1.0
    assert_array_equal(search.best_estimator_[-1].observed_, observed)


@parameters
class Plain(multiview.ViewMethod):
    """Clusters by the signs of the first feature; what a new method has to write."""

    max_instances, max_views = 40, 2

    n_clusters: Count = 2
    converges: bool = True
    max_iter: Count = 7
    tol: NonNegative = 0.0

    def _solve(self, views, rng):
        labels = (views.arrays[0][:, 0] > 0).astype(int)
        return SimpleNamespace(labels=labels, objective=np.array([1.0]), n_iter=1, converged=self.converges)

    def _learn(self, result, views, order):
        self.order_ = order


class TestBase:
    X = np.array([[-1.0], [2.0], [3.0]])

    def test_numbers_clusters_by_size_and_keeps_what_was_learned(self):
        model = Plain().fit({"a": self.X})
        assert_array_equal(model.labels_, [1, 0, 0])
        assert_array_equal(model.order_, [1, 0])
        assert (model.n_clusters_, model.n_iter_, model.objective_.tolist()) == (2, 1, [1.0])
        assert (model.view_names_, model.n_features_per_view_, model.index_) == (("a",), (1,), None)

    def test_limits_are_said_once(self):
        with pytest.raises(ValueError, match=r"41 instances, Plain takes at most 40: .*Hint: use APMC"):
            Plain().fit(np.ones((41, 2)))
        with pytest.raises(ValueError, match=r"Plain takes at most 2 views, got 3: .*Hint: use APMC"):
            Plain().fit([self.X] * 3)

    def test_warnings_point_at_the_line_of_the_user(self):
        with pytest.warns(ConvergenceWarning, match=r"Plain did not converge in max_iter=7 .*Hint") as caught:
            Plain(converges=False).fit(self.X)
        assert caught[0].filename == __file__

    def test_a_method_that_does_not_say_how_it_is_solved_is_an_error(self):
        with pytest.raises(TypeError, match="Unsolved does not say how it is solved"):
            Unsolved(2).fit(self.X)


class Unsolved(multiview.ViewMethod):
    """Says nothing."""


@pytest.mark.parametrize("method", multiview.__all__)
class TestEqualInstances:
    """Nobody is given clusters that nothing in the views tells apart without being told."""

    def test_identical_instances_are_warned_about(self, method):
        X = [np.ones((20, 2)), np.ones((20, 3))]
        with pytest.warns(UserWarning, match=r"Hint: ") as caught:
            model = getattr(multiview, method)(3, random_state=0).fit(X)
        said = [str(warning.message) for warning in caught]
        assert any("only 1 distinct instance for n_clusters=3" in text for text in said)
        assert all(warning.filename == __file__ for warning in caught)
        assert set(model.labels_) <= {0, 1, 2}

    def test_scales_that_cannot_be_squared_are_refused(self, method):
        X = np.random.default_rng(0).normal(size=(30, 3))
        for scale in (1e160, 1e-160):
            with pytest.raises(ValueError, match=r"view 'view0' has .* to be squared\. Hint: "):
                getattr(multiview, method)(3, random_state=0).fit([X * scale, X])


@pytest.mark.parametrize("method", ["MKKM", "MKKMIK"])
def test_fewer_clusters_than_asked_for_are_warned_about(method):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[0, 0] = 1e12
    with pytest.warns(ConvergenceWarning, match=rf"{method} found 3 clusters for n_clusters=4\. Hint: "):
        model = getattr(multiview, method)(4, random_state=0).fit([X, X[::-1].copy()])
    assert model.n_clusters_ == 3


@pytest.mark.parametrize("method", multiview.__all__)
def test_a_constant_view_is_named(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) + 8.0 * (np.arange(30) % 2)[:, None]
    with pytest.warns(
        UserWarning, match=r"view 'flat' tells no two instances apart.* Hint: leave this view out"
    ):
        getattr(multiview, method)(2, random_state=0).fit({"x": X, "flat": np.ones((30, 2))})


@pytest.mark.parametrize("method", multiview.__all__)
def test_names_can_be_completed(method):
    assert {"fit", "get_params"} <= set(dir(getattr(multiview, method)(2)))
