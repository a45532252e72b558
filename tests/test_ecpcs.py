"""ECPCS against walks step by step, the reference numbers of its authors' program, and laws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from consilience import ECPCS, Partitions, datasets
from consilience.consensus import ecpcs as module
from consilience.core.linkage import cut
from consilience.metrics import normalized_mutual_info_score
from tests.oracles.trajectory import plain_cluster_similarity, plain_ecpcs_similarity, plain_hierarchy
from tests.planted import planted
from tests.rows import distinct_rows

both = pytest.mark.parametrize("form", ["meta", "hierarchy"])


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "hierarchy", "meta"),
    [
        ("pool_LWEA_VS", 0.108, 0.128),
        ("pool_LWEA_Semeion", 0.613, 0.654),
        ("pool_Zhou_Lung", 0.738, 0.663),
        ("pool_RCE_Yale", 0.322, 0.358),
    ],
)
def test_reference_numbers_on_the_pools(data_folder, name, hierarchy, meta):
    pool = datasets.load(name)
    base, k = pool.labels[:, :10], len(np.unique(pool.y))
    labels = ECPCS(k, form="hierarchy").fit_predict(base)
    assert abs(normalized_mutual_info_score(pool.y, labels, normalization="max") - hierarchy) < 0.001
    labels = ECPCS(k, random_state=0).fit_predict(base)
    assert abs(normalized_mutual_info_score(pool.y, labels, normalization="max") - meta) < 0.03


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_cluster_similarity_equals_plain_version(missing, seed):
    _, base = planted(100, 6, 5, noise=0.25, missing=missing, seed=seed)
    model = ECPCS(5, random_state=0).fit(base)
    assert_allclose(model.cluster_similarity_, plain_cluster_similarity(base), atol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(2))
def test_instance_similarity_and_hierarchy_equal_plain_version(missing, seed):
    _, base = planted(60, 5, 4, noise=0.25, missing=missing, seed=seed)
    base = np.column_stack([base, np.random.default_rng(seed).integers(0, 20, 60)])  # no ties
    base = Partitions.of(base[np.repeat(np.arange(60), np.arange(60) % 3 + 1)]).codes
    rows, inverse = distinct_rows(base)
    r = plain_cluster_similarity(base)
    slow = plain_ecpcs_similarity(base, r)
    fast = module._enhanced_coassociation(rows, r)
    assert_allclose(fast[np.ix_(inverse, inverse)], slow, atol=1e-10)
    if missing:
        return  # pairs that agree wherever both were seen are as alike as others: ties, broken at will
    equal = inverse[:, None] == inverse
    for k in (2, 5):
        labels = ECPCS(k, form="hierarchy").fit_predict(base)
        assert adjusted_rand_score(labels, plain_hierarchy(slow, k, equal=equal)) == 1.0


def test_instances_vote_by_their_share_of_each_meta_cluster():
    _, base = planted(100, 8, 3, noise=0.35, missing=0.2, seed=0)
    model = ECPCS(3, random_state=0).fit(base)
    shares = np.zeros((100, 3))
    for q in range(3):
        clusters = [(j, c) for j in range(8) for c in np.flatnonzero(model.meta_clusters_[j] == q)]
        shares[:, q] = np.mean([base[:, j] == c for j, c in clusters], axis=0)
    own = shares[np.arange(100), model.labels_]
    assert_allclose(own, shares.max(axis=1))


@both
@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_names_matter_with_noise(form, seed):
    _, base = planted(150, 8, 4, noise=0.15, missing=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(150), rng.permutation(8), rng.permutation(4)
    other = base[np.ix_(rows, columns)]
    other = np.where(other >= 0, names[other], -1)
    model = ECPCS(4, form=form, random_state=0)
    assert adjusted_rand_score(model.fit_predict(base)[rows], model.fit_predict(other)) == 1.0


@both
@pytest.mark.parametrize("seed", range(3))
def test_counts_equal_repeated_rows(form, seed):
    _, base = planted(90, 8, 4, noise=0.15, missing=0.2, seed=seed)
    model = ECPCS(4, form=form, random_state=0).fit(base)
    again = ECPCS(4, form=form, random_state=0).fit(np.repeat(base, 3, axis=0))
    assert_allclose(again.cluster_similarity_, model.cluster_similarity_, atol=1e-10)
    assert_array_equal(again.labels_[::3], model.labels_)


def test_missing_labels_cost_the_vote_little():
    truth, base = planted(600, 10, 4, noise=0.1, missing=0.6, seed=0)
    assert adjusted_rand_score(truth, ECPCS(4, random_state=0).fit_predict(base)) > 0.85


def test_unequal_sizes_are_found():
    sizes = [0.5, 0.2, 0.1, 0.1, 0.05, 0.05]
    truth, base = planted(1000, 10, 6, noise=0.15, missing=0.0, seed=0, sizes=sizes)
    assert adjusted_rand_score(truth, ECPCS(6, random_state=0).fit_predict(base)) > 0.9


def test_merges_give_every_number_of_clusters():
    _, base = planted(120, 6, 4, noise=0.3, missing=0.2, seed=0)
    model = ECPCS(4, form="hierarchy").fit(base)
    for k in (2, 4, 7):
        labels = ECPCS(k, form="hierarchy").fit_predict(base)
        assert adjusted_rand_score(cut(model.row_merges_, k)[model.row_of_instance_], labels) == 1.0
    assert not hasattr(model, "meta_clusters_")


def test_more_clusters_than_base_clusters():
    base = np.array([[a, b] for a in range(3) for b in range(3)] * 3)
    labels = ECPCS(8, random_state=0).fit_predict(base)
    assert_array_equal(np.unique(labels), np.arange(8))


def test_too_many_distinct_rows_are_refused(monkeypatch):
    monkeypatch.setattr(module, "_MAX_ROWS", 10)
    _, base = planted(100, 6, 3, noise=0.5, missing=0.0, seed=0)
    with pytest.raises(ValueError, match=r"ECPCS compares all pairs .* at most 10\. Hint"):
        ECPCS(3, form="hierarchy").fit(base)
    ECPCS(3, random_state=0).fit(base)


@both
def test_one_row_or_one_cluster(form):
    assert_array_equal(ECPCS(1, form=form).fit_predict([["a"], ["a"]]), [0, 0])
    assert_array_equal(ECPCS(1, form=form).fit_predict([["a"], ["b"]]), [0, 0])
    with pytest.warns(ConvergenceWarning, match="only 1 distinct label rows for n_clusters=2"):
        assert_array_equal(ECPCS(2, form=form).fit_predict([["a"], ["a"]]), [0, 0])


@both
def test_unobserved_instances_get_what_was_asked_for(form):
    base = np.array([[0, 0], [0, 0], [1, 1], [-1, -1]])
    assert ECPCS(2, form=form, unobserved="noise").fit(base).labels_[3] == -1
    assert ECPCS(2, form=form, unobserved="largest").fit(base).labels_[3] == 0
