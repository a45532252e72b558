"""Weights of base clusterings: so many copies, without copying."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.metrics import adjusted_rand_score

import consilience
from consilience import Partitions, consensus, fuse
from consilience.core.canonical import canonical
from consilience.metrics import ensemble_agreement
from tests.planted import planted

METHODS = [name for name in consensus.__all__ if not getattr(consensus, name).weighs_bases]
ANY = [name for name in METHODS if getattr(consensus, name).any_weights]
WEIGHTS = np.array([0, 1, 3, 2, 1, 1])
# Attributes that say the same of copies and of weights, up to rounding.
SAME = ("objective_", "inertia_", "embedding_", "membership_", "reconstruction_error_", "row_representation_")


def table(seed, missing=0.25):
    base = planted(110, 6, 3, noise=0.25, missing=missing, seed=seed)[1]
    return base[(base[:, 1:] >= 0).any(axis=1)]


def fitted(name, labels, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(consensus, name)(3, random_state=0, **parameters).fit(labels)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("seed", range(2))
def test_a_whole_weight_is_so_many_copies_and_none_is_leaving_out(name, seed):
    base = table(seed)
    model = fitted(name, Partitions.of(base).weighted(WEIGHTS))
    copies = fitted(name, np.repeat(base, WEIGHTS, axis=1))
    assert adjusted_rand_score(model.labels_, copies.labels_) == 1.0
    for attribute in SAME:
        if hasattr(copies, attribute):
            found, wanted = (np.asarray(getattr(each, attribute)) for each in (model, copies))
            if found.ndim == 2 and attribute != "row_representation_":
                found, wanted = found @ found.T, wanted @ wanted.T  # signs and numbers of clusters are free
            elif found.ndim == 1:
                found, wanted = found[-1], wanted[-1]
            if attribute != "row_representation_":
                assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=attribute)


@pytest.mark.parametrize("name", METHODS)
def test_the_model_keeps_the_table_of_the_user(name):
    base = table(0)
    frame = pd.DataFrame(base, columns=list("abcdef")).replace(-1, np.nan)
    model = fitted(name, Partitions.of(frame).weighted(WEIGHTS))
    assert model.n_features_in_ == 6
    assert model.partitions_.names == tuple("abcdef")
    assert_array_equal(model.predict(frame), model.labels_)
    assert len(model.confidence_) == len(base)
    if hasattr(model, "transform"):
        assert_allclose(model.transform(frame), model.embedding_, atol=1e-8)
    for attribute in ("certainty_", "meta_clusters_", "cluster_weights_"):
        found = getattr(model, attribute, None)
        if found is not None:
            assert [len(part) for part in found] == [3] * 6


@pytest.mark.parametrize("name", ANY)
def test_any_weights_are_between_their_neighbours(name):
    """Half weights of a table in which every base clustering is there twice are whole weights of one."""
    base, weights = table(1), np.array([0.5, 1.5, 1.0, 0.5, 1.0, 0.5])
    twice = fitted(name, Partitions.of(np.repeat(base, 2, axis=1)).weighted(np.repeat(weights, 2)))
    whole = fitted(name, np.repeat(base, (2 * weights).astype(int), axis=1))
    assert adjusted_rand_score(twice.labels_, whole.labels_) == 1.0


@pytest.mark.parametrize("name", sorted(set(METHODS) - set(ANY)))
def test_methods_that_copy_take_ratios_of_whole_numbers_only(name):
    base = Partitions.of(table(0))
    fitted(name, base.weighted([0.5, 1.5, 1, 1, 1, 1]))
    with pytest.raises(
        ValueError, match=rf"{name} counts a base .*whole numbers up to 20.*any weights .*DAL"
    ):
        fitted(name, base.weighted([np.pi, 1, 1, 1, 1, 1]))


@pytest.mark.parametrize("weights", [{"a": np.pi}, {"a": 100}, {"a": 0.001}, {"a": 0, "b": 2.5}])
@pytest.mark.parametrize("method", ["auto", "DAL", "EAC"])
def test_fuse_takes_any_weights(weights, method):
    frame = pd.DataFrame(table(0), columns=list("abcdef")).replace(-1, np.nan)
    fusion = fuse(frame, 3, method=method, weights=weights, random_state=0)
    assert fusion.given_weights == tuple(weights.get(name, 1.0) for name in "abcdef")
    assert fusion.partitions.base_weights is None
    assert_array_equal(fusion.model.labels_, fusion.labels)
    assert_array_equal(fusion.model.predict(frame), fusion.labels)


@pytest.mark.parametrize("seed", range(3))
def test_auto_with_whole_weights_decides_as_on_copies(seed):
    base = table(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weighted = fuse(base, 3, weights=WEIGHTS, random_state=0)
        copies = fuse(np.repeat(base, WEIGHTS, axis=1), 3, random_state=0)
    mine = {(each.method, each.polished): each.agreement for each in weighted.candidates}
    theirs = {(each.method, each.polished): each.agreement for each in copies.candidates}
    assert mine
    for tried, agreement in mine.items():
        assert agreement == pytest.approx(theirs[tried], abs=1e-6)


def test_weight_zero_has_no_say_in_the_number_of_clusters():
    base = table(0)
    other = np.random.default_rng(0).integers(0, 9, (len(base), 1))
    weights = [1] * 6 + [0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in ("auto", "DAL"):
            zero = fuse(np.hstack([base, other]), "auto", weights=weights, method=method, random_state=0)
            without = fuse(base, "auto", weights=[1] * 6, method=method, random_state=0)
            assert zero.cluster_count.n_clusters == without.cluster_count.n_clusters
            assert_array_equal(zero.labels, without.labels)


def test_an_instance_that_only_weightless_sources_saw_is_unobserved():
    base = np.array([[0, 0, -1], [0, 0, 0], [1, 1, 1], [1, 1, -1], [-1, -1, 1], [0, 0, 0], [1, 1, 1]])
    with pytest.raises(ValueError, match="no base clustering saw row 4"):
        fuse(base, 2, weights=[1, 1, 0], random_state=0)
    assert fuse(base, 2, weights=[1, 1, 0], unobserved="noise", random_state=0).labels[4] == -1
    with pytest.raises(ValueError, match="no base clustering saw row 4"):
        consensus.EAC(2).fit(Partitions.of(base).weighted([1, 1, 0]))


def test_agreement_is_a_mean_by_weight():
    base = table(0)
    labels = np.random.default_rng(0).integers(0, 3, len(base))
    weighted = ensemble_agreement(labels, Partitions.of(base).weighted(WEIGHTS))
    assert weighted == pytest.approx(ensemble_agreement(labels, np.repeat(base, WEIGHTS, axis=1)))


def test_equal_columns_of_other_weights_are_told_apart_by_them():
    codes = np.array([[0, 0], [0, 0], [1, 1]], dtype=np.int8)
    offsets, counts = np.array([0, 2, 4]), np.ones(3, dtype=np.int64)
    first = canonical(codes, offsets, counts, np.array([1.0, 2.0])).rows.base_weights
    assert_array_equal(first, canonical(codes, offsets, counts, np.array([2.0, 1.0])).rows.base_weights)


class Foreign(BaseEstimator):
    """Somebody else's estimator."""

    def fit(self, X):
        self.labels_ = X.max(axis=1)
        return self


def test_estimators_of_others_take_no_weights():
    with pytest.raises(ValueError, match=r"Foreign does not take weights .*these do: .*DAL.*'auto'"):
        fuse(table(0), 3, method=Foreign(), weights=WEIGHTS)


def test_weights_are_kept_in_files(tmp_path):
    base = table(0)
    fusion = fuse(base, 3, weights=[0.5, 1, 2, 1, 1, 0], random_state=0)
    fusion.save(tmp_path / "result")
    again = consilience.load(tmp_path / "result")
    assert tuple(again.given_weights) == fusion.given_weights
    assert_array_equal(again.model.partitions_.base_weights, [0.5, 1, 2, 1, 1, 0])
    assert_array_equal(again.model.predict(base), fusion.model.predict(base))
